package record

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master"
)

// layout lists the columns of a table and the sources of their values. Column 0 is the time.
type layout struct {
	columns  []column
	count    [master.String + 1]int // columns of each kind
	segments []segment
}

// column is one column of a table.
type column struct {
	name, unit string
	kind       master.Kind
	binary     bool        // its strings are written in hexadecimal
	at         int         // index among the columns of the kind
	about      Description // for formats with column metadata
	held       bool        // it changes only at communication points
	equals     string      // the output that a connected input equals; "" = none
}

// segment is a run of adjacent values of a point that become adjacent columns of one kind.
type segment struct {
	from source
	kind master.Kind
	sub  int // subsystem, for the sources after fromMeasured
	at   int // index of the first value in U, Y or Measured, or among the values of the kind
	to   int // index of the first column among those of the kind
	n    int
	by   *Output // a change of the only value; nil = it is copied
}

// changed returns the changed Real or Integer of a segment with by.
func (s *segment) changed(p *master.Point) (real float64, integer int64) {
	if s.from == fromY {
		return s.by.Gain*p.Y[s.at] + s.by.Offset, 0
	}
	var n int64
	if v := s.values(p); s.kind != master.Boolean {
		n = v.Integer[s.at]
	} else if v.Boolean[s.at] {
		n = 1
	}
	if to, mapped := s.by.Map[n]; mapped {
		n = to
	}
	return s.by.Gain*float64(n) + s.by.Offset, n
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

// addColumn appends a column and returns its index among those of its kind.
func (l *layout) addColumn(c column) (to int) {
	c.at = l.count[c.kind]
	l.count[c.kind]++
	l.columns = append(l.columns, c)
	return c.at
}

// add appends a column with its source.
func (l *layout) add(name string, p master.Port, from source, sub, at int) {
	held := p.Kind != master.Real || p.Discrete
	to := l.addColumn(column{name: name, unit: p.Unit, kind: p.Kind, binary: p.Binary, held: held})
	if n := len(l.segments); n > 0 {
		s := &l.segments[n-1]
		if s.by == nil && s.from == from && s.kind == p.Kind && (s.sub == sub || from <= fromMeasured) && s.at+s.n == at && s.to+s.n == to {
			s.n++
			return
		}
	}
	l.segments = append(l.segments, segment{from: from, kind: p.Kind, sub: sub, at: at, to: to, n: 1})
}

// choose returns the columns: for each subsystem its outputs, inputs and watched variables;
// at the end the quantities that the algorithm measures.
func choose(sys *master.System, measured []master.Port, o *Options) (layout, error) {
	var l layout
	sel := o.Select
	about := Description{Text: "communication point", Causality: "independent", Variability: "continuous"}
	l.addColumn(column{name: "time", unit: "s", about: about})
	var names []string // of all variables
	take := func(name string, p master.Port, from source, sub, at int, byDefault bool) (taken bool) {
		names = append(names, name)
		taken = sel.IsDefault() && byDefault || sel.Match(name)
		if taken {
			l.add(name, p, from, sub, at)
		}
		return taken
	}
	given := map[string]bool{}
	for _, name := range o.Driven {
		given[name] = true
	}
	equals := map[string]string{} // by connected discrete input
	for _, link := range sys.DiscreteLinks() {
		if link.Map == "" {
			equals[link.To] = link.From
		}
	}
	for i, info := range sys.Infos {
		bare := isBare(sys, i)
		name := func(p master.Port) string { return info.Name + "." + p.Name }
		for k, p := range info.Out {
			if !p.Internal {
				take(name(p), p, fromY, i, sys.OutAt[i]+k, true)
			}
		}
		byKind(info.DiscreteOut, func(_, at int, p master.Port) { take(name(p), p, fromDiscreteOut, i, at, true) })
		for k, p := range info.In {
			u := sys.InAt[i] + k
			y, connected := sys.Source(u)
			taken := take(name(p), p, fromU, i, u, connected || bare || given[name(p)])
			if taken && connected && sys.Gain(u) == 1 && sys.Offset(u) == 0 && !given[name(p)] {
				l.columns[len(l.columns)-1].equals = outputName(sys, y)
			}
		}
		byKind(info.DiscreteIn, func(k, at int, p master.Port) {
			taken := take(name(p), p, fromDiscreteIn, i, at, bare || sys.DiscreteConnected(i, k) || given[name(p)])
			if taken && !given[name(p)] {
				l.columns[len(l.columns)-1].equals = equals[name(p)]
			}
		})
		byKind(info.Watch, func(_, at int, p master.Port) { take(name(p), p, fromWatch, i, at, true) })
	}
	for i := range o.Outputs {
		l.output(sys, &o.Outputs[i], take, names)
	}
	for k, p := range measured {
		p.Kind = master.Real
		take(p.Name, p, fromMeasured, 0, k, true)
	}
	return l, sel.check(names, o.Names)
}

// output adds an output of the system. One with the name of a variable is left out.
func (l *layout) output(sys *master.System, of *Output, take func(name string, p master.Port, from source, sub, at int, byDefault bool) bool, names []string) {
	if slices.Contains(names, of.Name) {
		return
	}
	add := func(p master.Port, from source, sub, at int) {
		if from == fromDiscreteOut && p.Kind == master.Integer && (of.Gain != 1 || of.Offset != 0) {
			p.Kind = master.Real
		}
		if p.Unit = cmp.Or(of.Unit, p.Unit); !take(of.Name, p, from, sub, at, false) {
			return
		}
		if of.Gain == 1 && of.Offset == 0 && of.Map == nil {
			return
		}
		last := &l.segments[len(l.segments)-1]
		if last.n > 1 { // only this value is changed
			last.n--
			l.segments = append(l.segments, segment{from: from, kind: last.kind, sub: sub, at: last.at + last.n, to: last.to + last.n, n: 1})
			last = &l.segments[len(l.segments)-1]
		}
		last.by = of
	}
	for i, info := range sys.Infos {
		port, ok := strings.CutPrefix(of.From, info.Name+".")
		if !ok {
			continue
		}
		for k, p := range info.Out {
			if p.Name == port && !p.Internal {
				add(p, fromY, i, sys.OutAt[i]+k)
			}
		}
		byKind(info.DiscreteOut, func(_, at int, p master.Port) {
			if p.Name == port {
				add(p, fromDiscreteOut, i, at)
			}
		})
	}
}

// outputName returns the name "component.variable" of an entry of y.
func outputName(sys *master.System, y int) string {
	sub := 0
	for y >= sys.OutAt[sub+1] {
		sub++
	}
	return sys.Infos[sub].Name + "." + sys.Infos[sub].Out[y-sys.OutAt[sub]].Name
}

// Variable is a variable that a table records.
type Variable struct {
	Name, Unit string
	Kind       master.Kind
	Held       bool   // it changes only at communication points
	Equals     string // the output that a connected input equals; "" = none
	// Value returns its value at a point as a number; nil for a String.
	Value func(*master.Point) float64
}

// Variables returns the variables that a table with these options records. A selection that matches no
// variable is an error.
func Variables(sys *master.System, measured []master.Port, sel Selection, driven []string) ([]Variable, error) {
	l, err := choose(sys, measured, &Options{Select: sel, Driven: driven})
	return l.variables(), err
}

func (l *layout) variables() []Variable {
	var columns [master.String + 1][]int // the first real one is the time
	var list []Variable
	for i, c := range l.columns {
		columns[c.kind] = append(columns[c.kind], i)
		list = append(list, Variable{Name: c.name, Unit: c.unit, Kind: c.kind, Held: c.held, Equals: c.equals})
	}
	for i := range l.segments {
		s := &l.segments[i]
		for k := range s.n {
			list[columns[s.kind][s.to+k]].Value = s.value(k)
		}
	}
	return list[1:]
}

// value returns the function that returns value k of a segment as a number; nil for a String.
func (s *segment) value(k int) func(*master.Point) float64 {
	at := s.at + k
	switch {
	case s.from == fromU:
		return func(p *master.Point) float64 { return p.U[at] }
	case s.from == fromY:
		return func(p *master.Point) float64 { return p.Y[at] }
	case s.from == fromMeasured:
		return func(p *master.Point) float64 { return p.Measured[at] }
	case s.kind == master.Real:
		return func(p *master.Point) float64 { return s.values(p).Real[at] }
	case s.kind == master.Integer:
		return func(p *master.Point) float64 { return float64(s.values(p).Integer[at]) }
	case s.kind == master.Boolean:
		return func(p *master.Point) float64 {
			if s.values(p).Boolean[at] {
				return 1
			}
			return 0
		}
	}
	return nil
}

// isBare reports whether a subsystem has neither outputs nor connected inputs.
func isBare(sys *master.System, i int) bool {
	info := sys.Infos[i]
	if len(info.DiscreteOut) > 0 || slices.ContainsFunc(info.Out, func(p master.Port) bool { return !p.Internal }) {
		return false
	}
	for k := range info.In {
		if _, connected := sys.Source(sys.InAt[i] + k); connected {
			return false
		}
	}
	for k := range info.DiscreteIn {
		if sys.DiscreteConnected(i, k) {
			return false
		}
	}
	return true
}

// withoutStrings removes the columns of strings and returns their names.
func (l *layout) withoutStrings() (names []string) {
	l.columns = slices.DeleteFunc(l.columns, func(c column) bool {
		if c.kind == master.String {
			names = append(names, c.name)
		}
		return c.kind == master.String
	})
	l.segments = slices.DeleteFunc(l.segments, func(s segment) bool { return s.kind == master.String })
	l.count[master.String] = 0
	return names
}

// byKind calls f for each port with its index k and its index at among the ports of its
// kind.
func byKind(ports []master.Port, f func(k, at int, p master.Port)) {
	var n [master.String + 1]int
	for k, p := range ports {
		f(k, n[p.Kind], p)
		n[p.Kind]++
	}
}
