package graph

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const style = `
text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;font-size:10px;fill:#333}
.heading{font-size:15px;font-weight:bold}
.title{font-size:12px;font-weight:bold;fill:#1d2b3a}
.detail{fill:#6b7785}
.box{fill:#f6f8fb;stroke:#5b6b82;stroke-width:1.2}
.wire{fill:none;stroke:#56708f;stroke-width:1.3}
.many{stroke-width:2.2}
.loop{stroke:#c0392b}
.assumed{stroke:#d98880;stroke-dasharray:5 3}
.bond{fill:none;stroke:#58b06f;stroke-opacity:.45;stroke-width:7;stroke-linecap:round}
.proposed{stroke-opacity:.22}
.name{fill:#1e7a3c;paint-order:stroke;stroke:#fff;stroke-width:3px}
.ring{stroke:#c0392b;stroke-width:1.8}
`

// SVG draws the system. The picture needs nothing else: no font, no script. Where
// the pointer rests on a curve, the variables are named.
func SVG(w io.Writer, s *System) error {
	list, err := s.bundles()
	if err != nil {
		return err
	}
	var blocks, singles []*layout
	width, height := 260.0, margin+30
	for _, nodes := range parts(len(s.Nodes), list) {
		l := newLayout(s, nodes, list)
		if len(nodes) == 1 && len(l.bundles) == 0 {
			singles = append(singles, l)
			continue
		}
		blocks = append(blocks, l)
		width = max(width, l.w)
	}
	left := map[*layout]float64{}
	const side = 60.0 // for curves that lead around
	for _, l := range blocks {
		l.top = height
		height += l.h + bandGap
		left[l] = margin + side
	}
	if len(blocks) == 0 {
		width = max(width, 1000)
	}
	// Components without connections, in rows below.
	x, row := 0.0, 0.0
	for _, l := range singles {
		if x > 0 && x+l.w > width {
			x, height = 0, height+row+nodeGap
			row = 0
		}
		l.top, left[l] = height, margin+side+x
		x += l.w + nodeGap
		row = max(row, l.h)
	}
	if len(singles) > 0 {
		height += row + bandGap
	}
	d := &drawing{w: bufio.NewWriter(w), s: s}
	width += 2 * (margin + side)
	height += 20 // the legend
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+"\n", num(width), num(height), num(width), num(height))
	d.printf("<title>%s</title>\n", escape(s.Title))
	d.printf("<desc>%s</desc>\n", escape(fmt.Sprintf("%d components, %d connections", len(s.Nodes), len(s.Edges))))
	d.printf("<style>%s</style>\n<defs>\n", style)
	for _, m := range []struct{ id, colour string }{{"a", "#56708f"}, {"al", "#c0392b"}, {"as", "#d98880"}} {
		d.printf(`<marker id="%s" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker>`+"\n", m.id, m.colour)
	}
	d.printf("</defs>\n" + `<rect width="100%%" height="100%%" fill="#fff"/>` + "\n")
	d.printf(`<text class="heading" x="%s" y="%s">%s</text>`+"\n", num(margin), num(margin+8), escape(cut(s.Title, 80)))
	for _, l := range append(blocks, singles...) {
		d.left = left[l]
		d.part(l)
	}
	d.legend(margin, height-20)
	d.printf("</svg>\n")
	return d.w.Flush()
}

// drawing writes one picture.
type drawing struct {
	w    *bufio.Writer
	s    *System
	left float64
	used struct{ many, loop, assumed, bond, proposed bool }
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d.w, format, args...) }

func num(v float64) string {
	s := fmt.Sprintf("%.1f", v)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // to memory: it cannot fail
	return b.String()
}

// part draws one connected part.
func (d *drawing) part(l *layout) {
	type wire struct {
		b    *bundle
		path string
		x, y float64 // of the name of a bond
	}
	var wires []wire
	for _, b := range l.bundles {
		path, x, y := d.route(l, b)
		wires = append(wires, wire{b, path, x, y})
	}
	for _, w := range wires { // below everything else
		if len(w.b.bonds) > 0 {
			class := "bond"
			if w.b.proposed {
				class += " proposed"
				d.used.proposed = true
			} else {
				d.used.bond = true
			}
			d.printf(`<path class="%s" d="%s"/>`+"\n", class, w.path)
		}
	}
	for _, w := range wires {
		class, marker := "wire", "a"
		if len(w.b.edges) > 1 {
			class += " many"
			d.used.many = true
		}
		switch {
		case w.b.loop && w.b.assumed:
			class, marker = class+" assumed", "as"
			d.used.assumed = true
		case w.b.loop:
			class, marker = class+" loop", "al"
			d.used.loop = true
		}
		d.printf(`<path class="%s" d="%s" marker-end="url(#%s)"><title>%s</title></path>`+"\n", class, w.path, marker, escape(d.names(w.b)))
	}
	for _, it := range l.items {
		if it.node >= 0 {
			d.box(l, it)
		}
	}
	named := map[string]bool{}
	for _, w := range wires {
		var names []string
		for _, name := range w.b.bonds {
			if !w.b.proposed && !named[name] {
				named[name] = true
				names = append(names, name)
			}
		}
		text := strings.Join(names, ", ")
		if len(names) > 1 && len(text) > 16 {
			text = fmt.Sprintf("%d bonds", len(names))
		}
		if text != "" {
			d.printf(`<text class="name" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(w.x), num(w.y-5), escape(cut(text, 16)))
		}
	}
}

// names lists the connections of a bundle, one in a line.
func (d *drawing) names(b *bundle) string {
	var lines []string
	for _, i := range b.edges {
		e := d.s.Edges[i]
		line := d.s.Nodes[e.From].Name + "." + e.Output + " → " + d.s.Nodes[e.To].Name + "." + e.Input
		if e.Note != "" {
			line += "  " + e.Note
		}
		if e.Loop > 0 {
			line += fmt.Sprintf("  (loop %d)", e.Loop)
		}
		lines = append(lines, line)
	}
	for _, name := range b.bonds {
		lines = append(lines, "bond "+name)
	}
	return strings.Join(lines, "\n")
}

// box draws a node with its ports.
func (d *drawing) box(l *layout, it *item) {
	node := d.s.Nodes[it.node]
	x := d.left + l.x[it.layer] + (l.width[it.layer]-it.width)/2
	y := l.top + it.y - it.up
	ring := ""
	for _, b := range l.bundles {
		if b.loop && !b.assumed && (b.from == it.node || b.to == it.node) {
			ring = " ring"
		}
	}
	d.printf(`<g><title>%s</title><rect class="box%s" x="%s" y="%s" width="%s" height="%s" rx="5"/>`+"\n",
		escape(strings.TrimSpace(node.Name+"\n"+node.Detail)), ring, num(x), num(y), num(it.width), num(it.up+it.down))
	d.printf(`<text class="title" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(x+it.width/2), num(y+15), escape(cut(node.Name, 34)))
	if node.Detail != "" {
		d.printf(`<text class="detail" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(x+it.width/2), num(y+28), escape(cut(node.Detail, 40)))
	}
	for side, list := range it.sides {
		for _, p := range list {
			at, px, anchor := p.bundles[0].toAt, x+boxPadding, "start"
			if p.output {
				at = p.bundles[0].fromAt
			}
			if (side == behind) != l.reversed[it.layer] {
				px, anchor = x+it.width-boxPadding, "end"
			}
			d.printf(`<text x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", num(px), num(l.top+it.y+at+3.5), anchor, escape(p.label))
		}
	}
	d.printf("</g>\n")
}

// sideOf returns the x of a side of an item: of the box, or of the column of a crossing.
func (d *drawing) sideOf(l *layout, it *item, side int) float64 {
	x, w := d.left+l.x[it.layer], l.width[it.layer]
	if it.node >= 0 {
		x, w = x+(w-it.width)/2, it.width
	}
	if (side == behind) != l.reversed[it.layer] {
		x += w
	}
	return x
}

// route returns the curve of a bundle, and where its name goes.
func (d *drawing) route(l *layout, b *bundle) (path string, nameX, nameY float64) {
	f, t := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
	leave, enter := behind, before
	if b.back {
		leave, enter = before, behind
	}
	var p strings.Builder
	x, y := d.sideOf(l, f, leave), l.top+f.y+b.fromAt
	fmt.Fprintf(&p, "M%s %s", num(x), num(y))
	curve := func(c1, c2, x2, y2 float64) {
		fmt.Fprintf(&p, "C%s %s %s %s %s %s", num(c1), num(y), num(c2), num(y2), num(x2), num(y2))
		nameX, nameY = (x+3*c1+3*c2+x2)/8, (y+y2)/2
		x, y = x2, y2
	}
	// outwards is where a side faces: +1 = to the right.
	outwards := func(it *item, side int) float64 {
		if (side == behind) != l.reversed[it.layer] {
			return 1
		}
		return -1
	}
	// bend goes around something: out of one side and back into the same.
	bend := func(dir, reach, x2, y2 float64) {
		far := dir*max(dir*x, dir*x2) + dir*(reach+math.Min(26, math.Abs(y2-y)/8))
		curve(far, far, x2, y2)
	}
	last := f
	for _, i := range append(slices.Clone(b.chain), l.nodes[b.to]) {
		it := l.items[i]
		x2, y2 := d.sideOf(l, it, enter), l.top+it.y
		if it == t {
			y2 += b.toAt
		}
		switch {
		case b.around && it != t:
			x2 = d.sideOf(l, it, behind)
			bend(outwards(f, behind), b.turn, x2, y2)
			x = d.sideOf(l, it, before)
			fmt.Fprintf(&p, "H%s", num(x))
			nameX, nameY = (x+x2)/2, y
			continue
		case b.around:
			mx, my := nameX, nameY
			bend(outwards(t, before), b.turn, x2, y2)
			return p.String(), mx, my
		case l.band[last.layer] != l.band[it.layer]: // around the fold
			bend(outwards(last, leave), 24, x2, y2)
		default:
			half := (x + x2) / 2
			curve(half, half, x2, y2)
		}
		if it != t {
			x = d.sideOf(l, it, leave)
			fmt.Fprintf(&p, "H%s", num(x))
		}
		last = it
	}
	return p.String(), nameX, nameY
}

// legend explains the marks that occur.
func (d *drawing) legend(x, y float64) {
	for _, e := range []struct {
		used              bool
		class, mark, text string
	}{
		{true, "wire", "a", "connection"}, {d.used.many, "wire many", "a", "several connections"},
		{d.used.loop, "wire loop", "al", "on an algebraic loop"}, {d.used.assumed, "wire assumed", "as", "on a loop if outputs depend on all inputs (not declared)"},
		{d.used.bond, "bond", "", "power bond"}, {d.used.proposed, "bond proposed", "", "power bond by its units"},
	} {
		if !e.used {
			continue
		}
		marker := ""
		if e.mark != "" {
			marker = fmt.Sprintf(` marker-end="url(#%s)"`, e.mark)
		}
		d.printf(`<path class="%s" d="M%s %sh34"%s/><text x="%s" y="%s">%s</text>`+"\n", e.class, num(x), num(y), marker, num(x+42), num(y+3.5), escape(e.text))
		x += 42 + textChar*float64(len(e.text)) + 26
	}
}
