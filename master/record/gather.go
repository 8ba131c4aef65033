package record

import "unsafe"

// leastView is how many bytes are worth a write of their own; fewer are copied
// together.
const leastView = 64 << 10

// gather collects what is written to it, as few parts for as few writes to a file.
// What lies in home stays there, where neighbours follow each other; the rest is
// copied.
type gather struct {
	home  []byte // nil = all is copied
	own   []byte // copies
	parts []part
	begin int // of the view under way, in home
	end   int // equal to begin if there is none
	size  int // bytes
	list  [][]byte
}

// part is bytes of home or of own.
type part struct {
	view       bool
	begin, end int
}

// reset forgets everything; home is where the following may lie.
func (g *gather) reset(home []byte) {
	g.home, g.own, g.parts, g.begin, g.end, g.size = home, g.own[:0], g.parts[:0], 0, 0, 0
	clear(g.list)
}

func (g *gather) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	g.size += len(b)
	at := g.offset(b)
	switch {
	case at < 0:
		g.endView()
		g.copy(b)
	case g.begin < g.end && at == g.end:
		g.end += len(b)
	default:
		g.endView()
		g.begin, g.end = at, at+len(b)
	}
	return len(b), nil
}

// offset returns where b lies in home, or -1.
func (g *gather) offset(b []byte) int {
	if len(g.home) == 0 {
		return -1
	}
	at := uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&g.home[0])) // huge if it lies before
	if at >= uintptr(len(g.home)) || len(b) > len(g.home)-int(at) {
		return -1
	}
	return int(at)
}

func (g *gather) copy(b []byte) {
	from := len(g.own)
	g.own = append(g.own, b...)
	if n := len(g.parts); n > 0 && !g.parts[n-1].view {
		g.parts[n-1].end = len(g.own)
		return
	}
	g.parts = append(g.parts, part{begin: from, end: len(g.own)})
}

func (g *gather) endView() {
	switch n := g.end - g.begin; {
	case n >= leastView:
		g.parts = append(g.parts, part{view: true, begin: g.begin, end: g.end})
	case n > 0:
		g.copy(g.home[g.begin:g.end])
	}
	g.begin, g.end = 0, 0
}

// bytes returns what was written, in order. It is the gather's until its next use.
func (g *gather) bytes() [][]byte {
	g.endView()
	g.list = g.list[:0]
	for _, p := range g.parts {
		of := g.own
		if p.view {
			of = g.home
		}
		g.list = append(g.list, of[p.begin:p.end])
	}
	return g.list
}
