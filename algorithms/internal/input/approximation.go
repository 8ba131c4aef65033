// Package input holds the input approximation: polynomials through past values of the coupling
// inputs, their delivery to the subsystems, and the steps of subsystems with these inputs.
package input

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Delivery selects how the polynomial of an input reaches its subsystem.
type Delivery uint8

// The deliveries. A subsystem that does not support the chosen one gets the next one
// in the order derivatives, substeps, held.
const (
	Auto        Delivery = iota
	Derivatives          // input derivatives at the start of the macro step
	Substeps             // the polynomial sampled in substeps
	Held                 // the last value, as at order 0
)

// Rate is the step of a subsystem: Steps steps per macro step, or one step over Over macro steps.
type Rate struct{ Steps, Over int }

// Config configures an approximation.
type Config struct {
	Order, Substeps int // highest degree that is delivered; substeps per macro step
	Delivery        Delivery
	LooksAhead      bool // Arrived may be called during a step
	Biased          bool // SetBias may be called
}

// Approximation extrapolates the inputs by polynomials of degree k through the last k+1 values of u
// = L y + b on the actual time grid (schweizer 2.1.1, meyer 3.1), and delivers them to the
// subsystems.
//
// With fewer points the degree is lower. An external input is known over the whole step: whatever the order, it is
// delivered as a line (follow) or, held, as its mean. An input without any source is held.
type Approximation struct {
	config Config

	sys      *master.System
	delivery []Delivery // by subsystem
	holds    []bool     // by input: always held
	late     []bool     // by subsystem: stepped after its sources
	free     []int      // inputs without source, whose value may be set at any communication point
	slopes   []int      // by subsystem: highest order of derivatives that are delivered
	external [][]int    // by subsystem: external inputs that are not held
	driven   []int      // subsystems that have any and take at least one step per macro step
	known    []bool     // by input: it is one of them

	rates  []Rate        // by subsystem
	grid                 // all communication points
	slow   []*grid       // communication points of slow subsystems
	gridOf []*grid       // by input: the points of its polynomial
	course []*polynomial // by input: its polynomial over the current step of its subsystem
	owner  []int         // by input: its subsystem
	degree int           // requested in the current step

	ahead   polynomial // of the current step, with the value at its end as newest point
	newest  []float64  // values at the end of the step, [nu]
	isAhead []bool     // by input: newest is known
	someAre bool       // isAhead may have a true entry
	through []bool     // by input: outputs may depend on it directly

	newestFirst [MaxPoints][]float64 // buffer of History
	added
}

// added is the state of an approximation, apart from those of its grids.
type added struct {
	slope [2][]float64 // of the lines of the last accepted step, and of the one before; NaN = there was none
	lines [2][]float64 // of the external inputs that are not held, over the last step: values at its start and its end, [nu]
	count int          // macro steps so far
	bias  []float64    // constant that a correction adds to each input over the step, [nu]
	kick  []float64    // added to the extrapolation at the end of the step, [nu]; nil = nothing
}

// New returns an approximation. Init prepares it for a run.
func New(c Config) *Approximation { return &Approximation{config: c} }

// SetRates sets the rate of each subsystem; the default is one step per macro step. It is called
// before Init.
func (a *Approximation) SetRates(r []Rate) { a.rates = r }

// Init prepares the approximation for a run that starts at t0.
func (a *Approximation) Init(x *master.Exec, t0 float64) error {
	a.sys = x.Sys
	nu := len(x.W)
	a.holds = x.Sys.Holds()
	a.free, a.external, a.known = nil, make([][]int, len(x.Sys.Subsystems)), make([]bool, nu)
	a.lines = [2][]float64{make([]float64, nu), make([]float64, nu)}
	none := slices.Repeat([]float64{math.NaN()}, nu)
	a.slope = [2][]float64{none, slices.Clone(none)}
	for k := range nu {
		if _, connected := x.Sys.Source(k); connected {
			continue
		}
		if !x.External(k) {
			a.holds[k] = true
			a.free = append(a.free, k)
		} else if i := num.Owner(x.Sys.InAt, k); !a.holds[k] {
			a.external[i] = append(a.external[i], k)
			a.known[k] = true
		}
	}
	a.newest, a.isAhead, a.bias = make([]float64, nu), make([]bool, nu), make([]float64, nu)
	a.grid, a.slow, a.count, a.kick = *newGrid(1, nu), nil, 0, nil
	a.placeOnGrids(x)
	a.driven = nil
	for i, inputs := range a.external {
		if len(inputs) > 0 && a.rates[i].Over == 1 {
			a.driven = append(a.driven, i)
		}
	}
	a.late = make([]bool, len(x.Sys.Subsystems))
	for _, i := range x.Sys.Late {
		a.late[i] = true
	}
	a.delivery, a.slopes = make([]Delivery, len(x.Sys.Subsystems)), make([]int, len(x.Sys.Subsystems))
	for i := range a.delivery {
		var err error
		if a.delivery[i], err = a.choose(x, i); err != nil {
			return err
		}
	}
	a.through = feedThrough(x.Sys)
	a.ahead.midpoints = nil
	if slices.Contains(a.delivery, Substeps) {
		sampled := []*polynomial{&a.old, &a.line, &a.ahead}
		for _, g := range a.slow {
			sampled = append(sampled, &g.old, &g.line, &g.block)
		}
		for _, p := range sampled {
			p.midpoints = make([][num.MaxNodes]float64, a.config.Substeps)
		}
	}
	for _, past := range x.Past {
		a.grid.push(past.T, past.W)
	}
	a.grid.push(t0, x.W)
	for _, g := range a.slow {
		g.push(t0, x.W)
	}
	return nil
}

// feedThrough reports for each input whether outputs of its subsystem depend on it directly, or may
// do so because dependencies are not declared.
func feedThrough(s *master.System) []bool {
	through := make([]bool, s.InAt[len(s.Subsystems)])
	for i, info := range s.Infos {
		for _, on := range info.Step.On[:min(len(info.Step.On), len(info.Out))] {
			for _, k := range on {
				if k < len(info.In) {
					through[s.InAt[i]+k] = true
				}
			}
		}
	}
	return through
}

// placeOnGrids determines the points of the polynomial of each input: those at which steps of both
// its source and its subsystem end.
func (a *Approximation) placeOnGrids(x *master.Exec) {
	if a.rates == nil {
		a.rates = slices.Repeat([]Rate{{1, 1}}, len(x.Sys.Subsystems))
	}
	a.gridOf, a.owner = make([]*grid, len(x.W)), make([]int, len(x.W))
	for k := range a.gridOf {
		a.gridOf[k], a.owner[k] = &a.grid, num.Owner(x.Sys.InAt, k)
		period := a.rates[a.owner[k]].Over
		if from := x.Sys.SourceSubsystem(k); from >= 0 {
			period = num.LCM(period, a.rates[from].Over)
		}
		if period == 1 || slices.Contains(a.free, k) {
			continue
		}
		a.gridOf[k] = a.gridWith(period)
	}
	a.course = make([]*polynomial, len(x.W))
	for k, g := range a.gridOf {
		if a.course[k] = &g.old; a.rates[a.owner[k]].Over > 1 {
			a.course[k] = &g.block
		}
	}
	for _, r := range a.rates {
		if r.Over > 1 {
			a.gridWith(r.Over)
		}
	}
}

// choose returns the delivery for subsystem i: the configured one, or the next that it supports.
func (a *Approximation) choose(x *master.Exec, i int) (Delivery, error) {
	info := x.Sys.Infos[i]
	if a.config.Delivery == Held || a.late[i] {
		return Held, nil
	}
	order, extrapolated := 0, false
	for k := x.Sys.InAt[i]; k < x.Sys.InAt[i+1]; k++ {
		if !a.holds[k] {
			order = max(order, a.orderOf(k))
			extrapolated = extrapolated || a.orderOf(k) > 0 && !a.known[k]
		}
	}
	if order == 0 {
		return Held, nil
	}
	delivery, how := Held, "held, as at order 0"
	if info.Caps.VariableStep && (a.config.Order > 0 || a.config.Delivery == Substeps) {
		delivery, how = Substeps, fmt.Sprintf("sampled in %d substeps", a.config.Substeps)
		if own := a.rates[i].Steps; own > 1 {
			how = fmt.Sprintf("sampled in its %d steps a macro step", own)
		}
	}
	why := "it cannot vary its step"
	switch {
	case a.config.Delivery == Substeps:
	case !x.Interpolates(i):
		why = "it does not interpolate its inputs"
	default:
		err := x.PrepareDerivatives(i, order)
		if err == nil {
			a.slopes[i] = order
			return Derivatives, nil
		}
		if !errors.Is(err, master.ErrCapability) {
			return Held, err
		}
		why = strings.TrimPrefix(err.Error(), master.ErrCapability.Error()+": ")
	}
	if extrapolated && (delivery == Held || a.config.Delivery == Derivatives || x.Interpolates(i) && a.config.Delivery != Substeps) {
		x.Note(fmt.Sprintf("%s: its inputs are not extrapolated with order %d but %s, since %s; take smaller steps for the same accuracy", info.Name,
			order, how, why))
	}
	return delivery, nil
}

// gridWith returns the grid with a period in macro steps.
func (a *Approximation) gridWith(period int) *grid {
	for _, g := range a.slow {
		if g.period == period {
			return g
		}
	}
	g := newGrid(period, len(a.newest))
	a.slow = append(a.slow, g)
	return g
}

// Begin computes the weights for the step from t to t+H with polynomials of a degree, and reads the
// values of inputs without a subsystem as source.
func (a *Approximation) Begin(x *master.Exec, t, H float64, degree int) {
	for _, k := range a.free {
		a.at(0)[k] = x.W[k]
	}
	a.degree = degree
	a.old.weigh(a.nodes(degree), t, H)
	for _, g := range a.slow {
		g.old.weigh(g.nodes(degree), t, H)
	}
	if a.someAre {
		clear(a.isAhead)
		a.someAre = false
	}
	if len(a.driven) > 0 {
		a.line.weighLine(t, H)
		for _, i := range a.driven {
			a.follow(x, i, t, H)
		}
	}
	if !a.config.LooksAhead {
		return
	}
	var nodes [num.MaxNodes]float64
	nodes[0] = t + H
	n := 1 + copy(nodes[1:degree+1], a.times[:a.points])
	a.ahead.weigh(nodes[:n], t, H)
	if degree == 0 {
		return
	}
	for k, d := range a.kick {
		if d != 0 {
			a.Arrived(k, a.Extrapolated(k)+d)
		}
	}
}

// Some FMUs ignore another derivative while the value is the one that they expect. So where the line bends by more than the part bend
// of its size, which is no rounding, its start moves by the part nudge.
const bend, nudge = 1e-9, 1e-12

// follow computes the lines of the external inputs of subsystem i over a step from t to t+H. They have the mean of
// the signal, and lie between its values. If the signal is linear over the step, the line is the signal.
func (a *Approximation) follow(x *master.Exec, i int, t, H float64) {
	for _, k := range a.external[i] {
		start, end, mean := x.Signal(k, t, H)
		if mean != start/2+end/2 {
			rise := (end - start) / 2
			room := min(mean-min(start, end, mean), max(start, end, mean)-mean)
			rise = max(-room, min(rise, room))
			start, end = mean-rise, mean+rise
		}
		size, slope := max(math.Abs(start), math.Abs(end)), (end-start)/H
		if a.delivery[i] == Derivatives && math.Abs(slope-a.slope[0][k])*H > bend*size {
			start += nudge * size
		}
		if a.lines[0][k], a.lines[1][k] = start, end; a.rates[i].Over > 1 {
			a.slope[0][k] = slope
		}
	}
}

// BeginBlock computes the weights for the step of slow subsystem i from its last point to t, the
// end of the current macro step, and returns the time of the last point.
func (a *Approximation) BeginBlock(x *master.Exec, i int, t float64) (from float64) {
	from = a.BlockStart(i)
	for _, g := range a.slow {
		g.block.weigh(g.nodes(a.degree), from, t-from)
		g.line.weighLine(from, t-from)
	}
	a.follow(x, i, from, t-from)
	return from
}

// Arrived makes value, that of input k at the end of the step, its newest point. It has no effect on
// inputs from or to slow subsystems.
func (a *Approximation) Arrived(k int, value float64) {
	if a.gridOf[k] == &a.grid {
		a.newest[k], a.isAhead[k], a.someAre = value, true, true
	}
}

// Push adds the values w [nu] at a new communication point t.
func (a *Approximation) Push(t float64, w []float64) {
	for _, i := range a.driven {
		for _, k := range a.external[i] {
			a.slope[1][k] = a.slope[0][k]
			a.slope[0][k] = (a.lines[1][k] - a.lines[0][k]) / (t - a.times[0])
		}
	}
	a.grid.push(t, w)
	a.count++
	for _, g := range a.slow {
		if a.count%g.period == 0 {
			g.push(t, w)
		}
	}
}

// Pop removes the newest point. There must be no slow subsystems.
func (a *Approximation) Pop() {
	a.grid.pop()
	copy(a.slope[0], a.slope[1])
}

// Forget removes all points except the newest.
func (a *Approximation) Forget() {
	a.points = 1
	for _, g := range a.slow {
		g.points = min(g.points, 1)
	}
}

// Archive saves or restores the history.
func (a *Approximation) Archive(to *master.Archive) {
	to.Section("history of the coupling inputs")
	to.Same(a.config.Order, "the highest order")
	to.All(&a.history, &a.added)
	for _, g := range a.slow {
		to.All(&g.history)
	}
}

// orderOf returns the highest degree of the polynomial of input k, which is not held.
func (a *Approximation) orderOf(k int) int {
	if a.known[k] {
		return 1
	}
	return a.config.Order
}

// Report returns the delivery of every input; nil before Init.
func (a *Approximation) Report() []master.Delivery {
	if a.points == 0 {
		return nil
	}
	var out []master.Delivery
	for i := range a.sys.Subsystems {
		for k := a.sys.InAt[i]; k < a.sys.InAt[i+1]; k++ {
			d := master.Delivery{Input: a.sys.InName(k), How: "held"}
			switch {
			case a.late[i]:
				d.How = "late" // the new values of its sources, held
			case a.holds[k]:
			case a.known[k] && a.delivery[i] == Held:
				d.How = "mean"
			case a.delivery[i] == Derivatives && a.orderOf(k) > 0:
				d.How, d.Order = "derivatives", a.orderOf(k)
			case a.delivery[i] == Substeps:
				d.How, d.Order = fmt.Sprintf("substeps=%d", a.config.Substeps), a.orderOf(k)
			}
			switch r := a.rates[i]; {
			case r.Steps > 1 && a.delivery[i] == Substeps && !a.late[i] && !a.holds[k]:
				d.How = fmt.Sprintf("sampled, %d steps a macro step", r.Steps)
			case r.Steps > 1:
				d.How += fmt.Sprintf(", %d steps a macro step", r.Steps)
			case r.Over > 1:
				d.How += fmt.Sprintf(", one step over %d macro steps", r.Over)
			}
			out = append(out, d)
		}
	}
	return out
}
