package assemble

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// Table is a table of signals over time, one column a signal.
type Table interface {
	Columns() []string
	// At gives column c at time t: linear between the rows.
	At(c int, t float64) float64
	// Held gives the text of column c in the last row at or before time t.
	Held(c int, t float64) string
}

// Signals gives the inputs of the system that a table drives: columns are named
// "component.variable", as Options.Driven was when the system was opened.
func (a *Assembly) Signals(table Table) (master.Signals, error) {
	s := &signals{table: table, column: map[int]int{}, discrete: make([][]discreteSignal, len(a.Components))}
	var errs []error
	for c, name := range table.Columns() {
		if k, ok := a.System.FindIn(name); ok {
			s.inputs = append(s.inputs, k)
			s.column[k] = c
			continue
		}
		i, v, err := a.find(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ports := a.System.Infos[i].DiscreteIn
		at := slices.IndexFunc(ports, func(p master.Port) bool { return p.Name == v.Name })
		if at < 0 {
			errs = append(errs, fmt.Errorf("%s is no free input", name))
			continue
		}
		nth := 0
		for _, p := range ports[:at] {
			if p.Kind == ports[at].Kind {
				nth++
			}
		}
		d := discreteSignal{kind: ports[at].Kind, index: nth, column: c, parse: func(text string) (v32 int32, b bool, err error) {
			value, err := parseValue(v, a.Components[i].FMU.Description, text)
			return value.Integer, value.Boolean, err
		}}
		s.discrete[i] = append(s.discrete[i], d)
	}
	return s, errors.Join(errs...)
}

type signals struct {
	table    Table
	inputs   []int
	column   map[int]int // of entry of u
	discrete [][]discreteSignal
}

type discreteSignal struct {
	kind   master.Kind
	index  int // among the values of the kind
	column int
	parse  func(string) (int32, bool, error)
	// The last text parsed and its value, since most rows repeat it.
	text    string
	integer int32
	boolean bool
}

func (s *signals) Inputs() []int { return s.inputs }

func (s *signals) Real(i int, t float64) float64 { return s.table.At(s.column[i], t) }

func (s *signals) Discrete(sub int, t float64, v *master.Values) {
	for k := range s.discrete[sub] {
		d := &s.discrete[sub][k]
		text := s.table.Held(d.column, t)
		if d.kind == master.String {
			v.String[d.index] = text
			continue
		}
		if text != d.text {
			if n, b, err := d.parse(text); err == nil {
				d.integer, d.boolean = n, b
			}
			d.text = text
		}
		switch d.kind {
		case master.Integer:
			v.Integer[d.index] = d.integer
		case master.Boolean:
			v.Boolean[d.index] = d.boolean
		}
	}
}

// Past gives the communication points before the start that a history holds:
// columns are named as in results. points are the times, oldest first; value
// gives column c at point p. Every output that feeds an extrapolated input
// must be there, and at least order points before start.
func (a *Assembly) Past(columns []string, times []float64, value func(p, c int) float64, start float64, order int) ([]master.PastOutputs, error) {
	column := map[int]int{} // of entry of y
	for c, name := range columns {
		if k, ok := a.System.FindOut(name); ok {
			column[k] = c
		}
	}
	var errs []error
	for _, k := range a.System.ExtrapolatedOutputs() {
		if _, ok := column[k]; !ok {
			errs = append(errs, fmt.Errorf("the history has no column %s, which an extrapolated input needs", a.System.OutName(k)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var past []master.PastOutputs
	for p, t := range times {
		if t >= start {
			break
		}
		y := slices.Repeat([]float64{math.NaN()}, a.System.OutAt[len(a.System.Subsystems)])
		for k, c := range column {
			y[k] = value(p, c)
		}
		past = append(past, master.PastOutputs{T: t, Y: y})
	}
	if len(past) < order {
		return nil, fmt.Errorf("the history has %d rows before the start at %g s; extrapolation order %d needs %d", len(past), start, order, order)
	}
	return past, nil
}
