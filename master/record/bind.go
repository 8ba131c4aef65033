package record

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Inputs drives free inputs of a system with the columns of a table. Reals are linear
// between rows; Integers, Booleans, Strings and discrete Reals (master.Port.Discrete) are
// held. The first value applies before the first row, the last value after the last row. It
// must not be used concurrently.
type Inputs struct {
	signals  *Signals
	real     []int // indices in u, ascending
	columnOf map[int]realColumn
	discrete [][]discreteColumn // by subsystem
	cursor   int                // row found last
}

type realColumn struct {
	col  int
	held bool
}

type discreteColumn struct {
	kind master.Kind
	col  int
	at   int // among the values of the kind
	text []string
}

var _ master.Signals = (*Inputs)(nil)

// BindInputs binds each column of s to the input of sys with its name "component.variable".
// It returns the first twenty errors: columns that name no input or a connected one, and
// cells that are not values of the input's type. Reals must be finite; Booleans are 0, 1, false
// or true.
func BindInputs(s *Signals, sys *master.System) (*Inputs, error) {
	in := &Inputs{signals: s, columnOf: map[int]realColumn{}, discrete: make([][]discreteColumn, len(sys.Infos))}
	inputs := inputsOf(sys)
	var errs []error
	for col, name := range s.Names {
		var err error
		if to, ok := inputs[name]; ok {
			err = in.bind(sys, col, to)
		} else {
			err = fmt.Errorf("%s:1: no input is called %q%s", s.Path, name, inputHint(sys, name))
		}
		if err == nil {
			continue
		}
		if errs = append(errs, err); len(errs) == mostErrors {
			break
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	slices.Sort(in.real)
	return in, nil
}

// input locates an input.
type input struct {
	sub, k   int // port k in Info.In or Info.DiscreteIn of the subsystem
	discrete bool
	at       int // index among the values of its kind, if it is discrete
}

// inputsOf returns the inputs by name. If two inputs have one name, the component with the
// longer name wins.
func inputsOf(sys *master.System) map[string]input {
	all := map[string]input{}
	for i, info := range sys.Infos {
		add := func(port string, to input) {
			name := info.Name + "." + port
			if was, ok := all[name]; !ok || was.sub != i && len(info.Name) > len(sys.Infos[was.sub].Name) {
				all[name] = to
			}
		}
		for k, p := range info.In {
			add(p.Name, input{sub: i, k: k})
		}
		byKind(info.DiscreteIn, func(k, at int, p master.Port) { add(p.Name, input{i, k, true, at}) })
	}
	return all
}

func (in *Inputs) bind(sys *master.System, col int, to input) (err error) {
	s, info := in.signals, sys.Infos[to.sub]
	connected := func() error {
		return fmt.Errorf("%s:1: %s is connected; only free inputs can be given, remove the column",
			s.Path, s.Names[col])
	}
	if to.discrete {
		if sys.DiscreteConnected(to.sub, to.k) {
			return connected()
		}
		d := discreteColumn{kind: info.DiscreteIn[to.k].Kind, col: col, at: to.at}
		d.text, err = s.readDiscrete(col, d.kind)
		in.discrete[to.sub] = append(in.discrete[to.sub], d)
		return err
	}
	u := sys.InAt[to.sub] + to.k
	if _, ok := sys.Source(u); ok {
		return connected()
	}
	in.real = append(in.real, u)
	in.columnOf[u] = realColumn{col: col, held: info.In[to.k].Discrete}
	return s.check(col, master.Real, len(s.Times))
}

// Inputs returns the indices in u of the inputs that the table drives, ascending.
func (in *Inputs) Inputs() []int { return in.real }

// Real returns the value of u[i] at time t.
func (in *Inputs) Real(i int, t float64) float64 {
	c := in.columnOf[i]
	row := in.at(t)
	if c.held {
		return in.signals.columns[c.col][max(row, 0)]
	}
	return in.signals.linear(c.col, row, t)
}

// Discrete sets the driven values of subsystem sub at time t in v.
func (in *Inputs) Discrete(sub int, t float64, v *master.Values) {
	if len(in.discrete[sub]) == 0 {
		return
	}
	row := max(in.at(t), 0)
	for _, d := range in.discrete[sub] {
		value := in.signals.columns[d.col][row]
		switch d.kind {
		case master.Integer:
			v.Integer[d.at] = int32(value)
		case master.Boolean:
			v.Boolean[d.at] = value == 1
		case master.String:
			v.String[d.at] = d.text[row]
		}
	}
}

// at is like Signals.row, but looks near the row found last first.
func (in *Inputs) at(t float64) int {
	times := in.signals.Times
	after := func(i int) bool { return i+1 >= len(times) || times[i+1] > t }
	if c := in.cursor; c >= 0 && times[c] <= t {
		if after(c) {
			return c
		}
		if after(c + 1) {
			in.cursor = c + 1
			return c + 1
		}
	}
	row := in.signals.row(t)
	in.cursor = max(row, 0)
	return row
}

// BindHistory returns the communication points before start (s) from a table whose columns
// are named as in results. It must have the outputs that feed extrapolated inputs
// (master.System.ExtrapolatedOutputs); other columns and rows from start on are ignored.
// Times before start must be strictly increasing. At least points rows must be before start:
// extrapolation of order k needs k.
func BindHistory(s *Signals, sys *master.System, start float64, points int) ([]master.PastOutputs, error) {
	rows := 0
	for rows < len(s.Times) && s.Times[rows] < start {
		if rows > 0 && s.Times[rows] == s.Times[rows-1] {
			return nil, fmt.Errorf("%s:%d: the row above has the time %g, too; the times of a history must be strictly increasing",
				s.Path, s.table.Lines[rows], s.Times[rows])
		}
		rows++
	}
	if rows < points {
		return nil, fmt.Errorf("%s: %d rows lie before the start time %g s; the extrapolation order needs %d: "+
			"give more rows, a later --start-time or a smaller order", s.Path, rows, start, points)
	}
	needed := sys.ExtrapolatedOutputs()
	cols := make([]int, len(needed))
	var errs []error
	for i, y := range needed {
		name := sys.OutName(y)
		col, ok := s.Column(name)
		var err error
		if ok {
			cols[i] = col
			err = s.check(col, master.Real, rows)
		} else {
			err = fmt.Errorf("%s:1: a history must contain every output that feeds an extrapolated input, and there is no column %q%s",
				s.Path, name, diag.DidYouMean(name, s.Names))
		}
		if err == nil {
			continue
		}
		if errs = append(errs, err); len(errs) == mostErrors {
			break
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	past := make([]master.PastOutputs, rows)
	for r := range past {
		y := slices.Repeat([]float64{math.NaN()}, sys.OutAt[len(sys.Subsystems)])
		for i, k := range needed {
			y[k] = s.columns[cols[i]][r]
		}
		past[r] = master.PastOutputs{T: s.Times[r], Y: y}
	}
	return past, nil
}

// inputHint returns the end of the message for a name that is not an input: that it is an output, or which
// inputs have similar names.
func inputHint(sys *master.System, name string) string {
	var inputs []string
	for _, info := range sys.Infos {
		for _, p := range slices.Concat(info.Out, info.DiscreteOut) {
			if name == info.Name+"."+p.Name {
				return "; it is an output, remove the column"
			}
		}
		for _, p := range slices.Concat(info.In, info.DiscreteIn) {
			inputs = append(inputs, info.Name+"."+p.Name)
		}
	}
	return diag.DidYouMean(name, inputs)
}

// readDiscrete checks a column for a kind; text has the cells of a column of Strings.
func (s *Signals) readDiscrete(col int, kind master.Kind) (text []string, err error) {
	if kind == master.String {
		return s.cells(col), nil
	}
	return nil, s.check(col, kind, len(s.Times))
}
