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

// column is one column. Its values lie in a block among those of its kind.
type column struct {
	name, unit string
	kind       master.Kind
	at         int         // among the columns of the kind
	about      Description // for formats that have room for it
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

// addColumn appends a column and returns its place among those of its kind.
func (l *layout) addColumn(c column) (to int) {
	c.at = l.count[c.kind]
	l.count[c.kind]++
	l.columns = append(l.columns, c)
	return c.at
}

// add appends a column with its source.
func (l *layout) add(name string, p master.Port, from source, sub, at int) {
	to := l.addColumn(column{name: name, unit: p.Unit, kind: p.Kind})
	if n := len(l.segments); n > 0 {
		s := &l.segments[n-1]
		if s.from == from && s.kind == p.Kind && (s.sub == sub || from <= fromMeasured) && s.at+s.n == at && s.to+s.n == to {
			s.n++
			return
		}
	}
	l.segments = append(l.segments, segment{from: from, kind: p.Kind, sub: sub, at: at, to: to, n: 1})
}

// choose returns the columns: by subsystem, outputs before inputs before further
// variables; what the algorithm measures at the end. Inputs that driven names are
// recorded by default like connected ones.
func choose(sys *master.System, measured []master.Port, sel Selection, driven []string) (layout, error) {
	var l layout
	l.addColumn(column{name: "time", unit: "s", about: Description{Text: "communication point", Causality: "independent", Variability: "continuous"}})
	given := map[string]bool{}
	for _, name := range driven {
		given[name] = true
	}
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
			take(fromU, p, sys.InAt[i]+k, connected || bare || given[info.Name+"."+p.Name])
		}
		byKind(info.DiscreteIn, func(k, at int, p master.Port) {
			take(fromDiscreteIn, p, at, bare || sys.DiscreteConnected(i, k) || given[info.Name+"."+p.Name])
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
