package record

import (
	"slices"

	"github.com/macrostep/macrostep/master"
)

// layout says which columns a table has and where their values come from. Column 0
// is the time.
type layout struct {
	columns  []column
	count    [master.String + 1]int // columns of each kind
	segments []segment
}

// blockRows is how many rows are gathered before they are formatted.
func (l *layout) blockRows() int { return max(1, blockValues/len(l.columns)) }

// column is one column. Its values lie in a block among those of its kind.
type column struct {
	name, unit string
	kind       master.Kind
	at         int // among the columns of the kind
}

// segment is neighbouring values of a point that become neighbouring columns of one
// kind.
type segment struct {
	from source
	kind master.Kind
	sub  int // subsystem, for the sources below fromMeasured
	at   int // of the first in U or Y, or among the values of the kind
	to   int // among the columns of the kind
	n    int
}

type source uint8

const (
	fromU source = iota
	fromY
	fromMeasured
	fromDiscreteIn
	fromDiscreteOut
	fromWatch
)

// add appends a column.
func (l *layout) add(name string, p master.Port, from source, sub, at int) {
	to := l.count[p.Kind]
	l.count[p.Kind]++
	l.columns = append(l.columns, column{name: name, unit: p.Unit, kind: p.Kind, at: to})
	if n := len(l.segments); n > 0 {
		s := &l.segments[n-1]
		if s.from == from && s.kind == p.Kind && (s.sub == sub || from <= fromMeasured) && s.at+s.n == at && s.to+s.n == to {
			s.n++
			return
		}
	}
	l.segments = append(l.segments, segment{from: from, kind: p.Kind, sub: sub, at: at, to: to, n: 1})
}

// choose gives the columns: by subsystem, outputs before inputs before further
// variables; what the algorithm measures at the end. Inputs that driven names are
// recorded by default like connected ones.
func choose(sys *master.System, measured []master.Port, sel Selection, driven []string) (layout, error) {
	var l layout
	l.columns = []column{{name: "time", unit: "s"}}
	l.count[master.Real] = 1
	var all []string
	for i, info := range sys.Infos {
		bare := true // neither outputs nor connected inputs
		if len(info.DiscreteOut) > 0 || slices.ContainsFunc(info.Out, func(p master.Port) bool { return !p.Internal }) {
			bare = false
		}
		for k := range info.In {
			if _, ok := sys.Source(sys.InAt[i] + k); ok {
				bare = false
			}
		}
		for k := range info.DiscreteIn {
			bare = bare && !sys.DiscreteConnected(i, k)
		}
		take := func(from source, p master.Port, at int, byDefault bool) {
			name := info.Name + "." + p.Name
			if sel.IsDefault() {
				if !byDefault {
					return
				}
			} else {
				all = append(all, name)
				if !sel.Match(name) {
					return
				}
			}
			l.add(name, p, from, i, at)
		}
		for k, p := range info.Out {
			if p.Internal {
				continue
			}
			take(fromY, p, sys.OutAt[i]+k, true)
		}
		byKind(info.DiscreteOut, func(_, at int, p master.Port) { take(fromDiscreteOut, p, at, true) })
		for k, p := range info.In {
			_, connected := sys.Source(sys.InAt[i] + k)
			take(fromU, p, sys.InAt[i]+k, connected || bare || slices.Contains(driven, info.Name+"."+p.Name))
		}
		byKind(info.DiscreteIn, func(k, at int, p master.Port) {
			take(fromDiscreteIn, p, at, bare || sys.DiscreteConnected(i, k) || slices.Contains(driven, info.Name+"."+p.Name))
		})
		byKind(info.Watch, func(_, at int, p master.Port) { take(fromWatch, p, at, true) })
	}
	for k, p := range measured {
		if !sel.IsDefault() {
			all = append(all, p.Name)
			if !sel.Match(p.Name) {
				continue
			}
		}
		p.Kind = master.Real
		l.add(p.Name, p, fromMeasured, 0, k)
	}
	return l, sel.check(all)
}

// byKind calls f for each port with its number k and its place at among the
// ports of its kind.
func byKind(ports []master.Port, f func(k, at int, p master.Port)) {
	var n [master.String + 1]int
	for k, p := range ports {
		f(k, n[p.Kind], p)
		n[p.Kind]++
	}
}

// block is rows as they come from the run: values of a kind row by row, since that
// is how a point has them.
type block struct {
	rows    int
	real    []float64
	integer []int32
	boolean []bool
	text    int // bytes of the strings
	str     []string

	number int  // among those handed over
	now    bool // it is to be written at once
}

func newBlock(l *layout, rows int) *block {
	return &block{
		real: make([]float64, rows*l.count[master.Real]), integer: make([]int32, rows*l.count[master.Integer]),
		boolean: make([]bool, rows*l.count[master.Boolean]), str: make([]string, rows*l.count[master.String]),
	}
}

// clear empties the block.
func (b *block) clear() {
	b.rows, b.text = 0, 0
	clear(b.str)
}

// row gives the values of a kind in a row.
func row[T any](values []T, columns, r int) []T { return values[r*columns : (r+1)*columns] }

// add copies the values of a point.
func (b *block) add(l *layout, p *master.Point) {
	reals := row(b.real, l.count[master.Real], b.rows)
	reals[0] = p.T
	for i := range l.segments {
		s := &l.segments[i]
		var v *master.Values
		switch s.from {
		case fromU:
			copy(reals[s.to:], p.U[s.at:s.at+s.n])
			continue
		case fromY:
			copy(reals[s.to:], p.Y[s.at:s.at+s.n])
			continue
		case fromMeasured:
			copy(reals[s.to:], p.Measured[s.at:s.at+s.n])
			continue
		case fromDiscreteIn:
			v = &p.DiscreteIn[s.sub]
		case fromDiscreteOut:
			v = &p.DiscreteOut[s.sub]
		case fromWatch:
			v = &p.Watch[s.sub]
		}
		switch s.kind {
		case master.Real:
			copy(reals[s.to:], v.Real[s.at:s.at+s.n])
		case master.Integer:
			copy(row(b.integer, l.count[master.Integer], b.rows)[s.to:], v.Integer[s.at:s.at+s.n])
		case master.Boolean:
			copy(row(b.boolean, l.count[master.Boolean], b.rows)[s.to:], v.Boolean[s.at:s.at+s.n])
		case master.String:
			to := row(b.str, l.count[master.String], b.rows)[s.to:]
			for k, text := range v.String[s.at : s.at+s.n] {
				to[k] = text
				b.text += len(text)
			}
		}
	}
	b.rows++
}
