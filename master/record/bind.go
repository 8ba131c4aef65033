package record

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Inputs drives free inputs of a system with the columns of a table. Reals are linear
// between rows; two rows at one time are a jump. Integers, Booleans, Strings and discrete Reals (master.Port.Discrete) are
// held. The first value applies before the first row, the last value after the last row. It
// must not be used concurrently.
type Inputs struct {
	signals  *Signals
	real     []int // indices in u, ascending
	columnOf map[int]realColumn
	discrete [][]discreteColumn // by subsystem
	cursor   int                // row found last
	events   []event            // in the order of their times
}

// event is a row at which a column jumps or bends.
type event struct {
	t   float64
	col int
	sub int  // subsystem that the column drives
	big bool // a jump, or a bend that would be missed
}

// A column bends where no line is within fine of its range of all rows since the last bend; a bend within coarse is not missed.
const fine, coarse = 1e-3, 0.1

type realColumn struct {
	col  int
	held bool
}

type discreteColumn struct {
	at    int // among the values of the kind
	value func(row int) master.Scalar
}

var (
	_ master.Signals     = (*Inputs)(nil)
	_ master.EventSource = (*Inputs)(nil)
)

// BindInputs binds each column of s to the input of sys with its name "component.variable".
// It returns the first twenty errors: columns that name no input or a connected one, and
// cells that are not values of the input's type and range. Reals must be finite; Booleans are 0, 1, false
// or true; Binaries are hexadecimal.
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
	slices.SortStableFunc(in.events, func(a, b event) int { return cmp.Compare(a.t, b.t) })
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
		value, err := s.held(col, info.DiscreteIn[to.k])
		if err == nil {
			in.discrete[to.sub] = append(in.discrete[to.sub], discreteColumn{to.at, value})
			in.findJumps(to.sub, col, func(row int) bool { return value(row) != value(row-1) })
		}
		return err
	}
	u := sys.InAt[to.sub] + to.k
	if _, ok := sys.Source(u); ok {
		return connected()
	}
	in.real = append(in.real, u)
	held := info.In[to.k].Discrete
	in.columnOf[u] = realColumn{col: col, held: held}
	in.findJumps(to.sub, col, func(row int) bool {
		return s.columns[col][row] != s.columns[col][row-1] && (held || s.Times[row] == s.Times[row-1])
	})
	if err := s.check(col, info.In[to.k], len(s.Times)); err != nil || held {
		return err
	}
	big := s.bends(col, coarse)
	for _, row := range s.bends(col, fine) {
		in.events = append(in.events, event{t: s.Times[row], col: col, sub: to.sub})
	}
	for _, row := range big {
		in.events = append(in.events, event{t: s.Times[row], col: col, sub: to.sub, big: true})
	}
	return nil
}

// findJumps adds the rows at which a column jumps.
func (in *Inputs) findJumps(sub, col int, at func(row int) bool) {
	for row := 1; row < len(in.signals.Times); row++ {
		if at(row) {
			in.events = append(in.events, event{in.signals.Times[row], col, sub, true})
		}
	}
}

// bends returns rows between which a column is on lines, up to a part of its range.
func (s *Signals) bends(col int, part float64) (rows []int) {
	v := s.columns[col]
	within := part * (slices.Max(v) - slices.Min(v))
	from := 0
	low, high := math.Inf(-1), math.Inf(1) // slopes of the lines from there that are near all rows
	for row := 1; row < len(v); row++ {
		span := s.Times[row] - s.Times[from]
		if span == 0 || s.Times[row] == s.Times[row-1] { // a jump, or equal rows
			from, low, high = row, math.Inf(-1), math.Inf(1)
			continue
		}
		if slope := (v[row] - v[from]) / span; slope < low || slope > high {
			rows = append(rows, row-1)
			from, low, high = row-1, math.Inf(-1), math.Inf(1)
			span = s.Times[row] - s.Times[from]
		}
		low, high = max(low, (v[row]-v[from]-within)/span), min(high, (v[row]-v[from]+within)/span)
	}
	return rows
}

// NextEvent returns the time of the first jump or bend after t. Algorithms that choose their steps end one there; with fixed steps a
// jump acts at the first communication point at or after it.
func (in *Inputs) NextEvent(t float64) float64 {
	after := t + slack(t)
	if i := sort.Search(len(in.events), func(i int) bool { return in.events[i].t > after }); i < len(in.events) {
		return in.events[i].t
	}
	return math.Inf(1)
}

// Warnings returns what a run from start to stop (s) does not see of the table or takes from beyond its ends. steps are the
// sizes of the fixed steps of subsystems; nil = the algorithm chooses them.
func (in *Inputs) Warnings(start, stop float64, steps []float64) (list []string) {
	s := in.signals
	if len(in.columnOf) == 0 && !slices.ContainsFunc(in.discrete, func(d []discreteColumn) bool { return len(d) > 0 }) {
		return nil
	}
	if first := s.Times[0]; first > start+slack(first) && len(s.Times) > 1 {
		list = append(list, fmt.Sprintf("%s begins at %g s, the run at %g s: before %[2]g s the inputs have the values of its first row", s.Path, first, start))
	}
	if last := s.Times[len(s.Times)-1]; last < stop-slack(last) && len(s.Times) > 1 {
		list = append(list, fmt.Sprintf("%s ends at %g s, the run later: from %[2]g s on the inputs have the values of its last row", s.Path, last))
	}
	if steps == nil {
		return list
	}
	type last struct{ t, point float64 }
	missed, seen := map[int][]event{}, map[int]last{} // by column
	for _, e := range in.events {
		if !e.big || e.t > stop {
			continue
		}
		n := math.Ceil((e.t - start - slack(e.t)) / steps[e.sub])
		if was, ok := seen[e.col]; ok && was.point == n && was.t != e.t && n > 0 {
			missed[e.col] = append(missed[e.col], e)
		}
		seen[e.col] = last{e.t, n}
	}
	if cols := slices.Sorted(maps.Keys(missed)); len(cols) > 0 { // one is enough: the remedy is the same
		at := missed[cols[0]]
		list = append(list, fmt.Sprintf("%s: %s changes more than once within a step of %g s, first before t = %g s (changes like this: %d): of jumps only the "+
			"last acts, of all else the mean; use a smaller step", s.Path, s.Names[cols[0]], steps[at[0].sub], at[0].t, len(at)))
	}
	return list
}

// slack returns the rounding error of a time.
func slack(t float64) float64 { return 4 * 0x1p-52 * math.Abs(t) }

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

// Over returns the course of u[i] over a step from t to t+H (master.Signals).
func (in *Inputs) Over(i int, t, H float64) (start, end, mean float64) {
	c := in.columnOf[i]
	if start = in.Real(i, t); c.held {
		return start, start, start
	}
	times, values, until := in.signals.Times, in.signals.columns[c.col], t+H
	row, at, v, integral := in.at(t)+1, t, start, 0.0
	to := func(next, value float64) {
		integral += (v/2 + value/2) * (next - at)
		at, v = next, value
	}
	for ; row < len(times) && times[row] < until-slack(until); row++ {
		if row > 0 && times[row] == times[row-1] && values[row] != v {
			to(until, v)
			return start, v, integral / H
		}
		to(times[row], values[row])
	}
	switch {
	case row == len(times):
		end = values[row-1]
	case row == 0:
		end = values[0]
	case times[row] <= until:
		end = values[row]
	default:
		end = in.signals.linear(c.col, row-1, until)
	}
	if at == t {
		return start, end, start/2 + end/2
	}
	to(until, end)
	return start, end, integral / H
}

// Discrete sets the driven values of subsystem sub at time t in v.
func (in *Inputs) Discrete(sub int, t float64, v *master.Values) {
	if len(in.discrete[sub]) == 0 {
		return
	}
	row := max(in.at(t), 0)
	for _, d := range in.discrete[sub] {
		switch value := d.value(row); value.Kind {
		case master.Integer:
			v.Integer[d.at] = value.Integer
		case master.Boolean:
			v.Boolean[d.at] = value.Boolean
		case master.String:
			v.String[d.at] = value.Text
		}
	}
}

// at is like Signals.row, but looks near the row found last first.
func (in *Inputs) at(t float64) int {
	times := in.signals.Times
	t += slack(t)
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
			err = s.check(col, master.Port{}, rows)
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
