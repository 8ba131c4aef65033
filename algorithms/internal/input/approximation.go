// Package input is the input approximation: polynomials through past values of the coupling
// inputs, their delivery to the subsystems, and the steps of subsystems that follow them.
package input

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Delivery is the way in which the polynomial of an input reaches its subsystem.
type Delivery uint8

// The deliveries. A subsystem that cannot take the one asked for gets the next
// one that it can: derivatives, substeps, held.
const (
	Auto        Delivery = iota
	Derivatives          // input derivatives at the start of the macro step
	Substeps             // the polynomial sampled in substeps
	Held                 // the last value: order 0
)

// Rate is how a subsystem steps: n steps a macro step, or one step over a number of macro steps.
type Rate struct{ Steps, Over int }

// Config is what an approximation is asked for.
type Config struct {
	Order, Substeps int // the highest degree that is delivered; pieces of a macro step
	Delivery        Delivery
	LooksAhead      bool // Arrived may be called during a step
	Biased          bool // SetBias may be called
}

// Approximation is the part "input approximation": polynomials of order k
// through the last k+1 values of u = L y + b on the actual time grid
// (schweizer 2.1.1, meyer 3.1), and their delivery to the subsystems.
//
// While the history is short the degree is the number of points less one. An
// input driven from outside has its value at the end of the step as newest
// point, unless the order is 0; one that nothing drives is held.
type Approximation struct {
	config Config

	sys      *master.System
	delivery []Delivery // by subsystem
	holds    []bool     // by input: order 0 whatever else
	late     []bool     // by subsystem
	free     []int      // inputs that nothing drives: their value may be set at any communication point
	external []int      // extrapolated inputs that are driven from outside: known at the end of the step

	rates  []Rate        // by subsystem
	grid                 // of all communication points
	slow   []*grid       // of those at which slower subsystems take part
	gridOf []*grid       // by input: the points its polynomial goes through
	course []*polynomial // by input: through these, over the present step of its subsystem
	owner  []int         // by input: its subsystem
	count  int           // macro steps taken
	degree int           // asked for in the present step

	// Of the present step: the polynomials with the value at its end as newest
	// point.
	ahead   polynomial
	newest  []float64 // values at the end of the step, [nu]
	isAhead []bool    // by input: its newest value is known
	someAre bool      // one of isAhead may be set
	through []bool    // by input: outputs may depend on it directly

	newestFirst [MaxPoints][]float64 // of the last history that was asked for
	bias        []float64            // what a correction adds to each input over the step, [nu]
	kick        []float64            // added to the extrapolated value at the end of the step, [nu]; nil = nothing is
}

// New returns an approximation, which Init prepares for a run.
func New(c Config) *Approximation { return &Approximation{config: c} }

// SetRates sets the rate of each subsystem; without it all step once a macro step. It is called
// before Init.
func (a *Approximation) SetRates(r []Rate) { a.rates = r }

func (a *Approximation) Init(x *master.Exec, t0 float64) error {
	a.sys = x.Sys
	nu := len(x.W)
	a.holds = x.Sys.Holds()
	a.free, a.external = nil, nil
	for k := range nu {
		if _, connected := x.Sys.Source(k); connected {
			continue
		}
		if !x.External(k) {
			a.holds[k] = true
			a.free = append(a.free, k)
		} else if !a.holds[k] && a.config.Order > 0 {
			a.external = append(a.external, k)
		}
	}
	a.newest, a.isAhead, a.bias = make([]float64, nu), make([]bool, nu), make([]float64, nu)
	a.grid, a.slow, a.count, a.kick = *newGrid(1, nu), nil, 0, nil
	a.placeOnGrids(x)
	a.late = make([]bool, len(x.Sys.Subsystems))
	for _, i := range x.Sys.Late {
		a.late[i] = true
	}
	a.delivery = make([]Delivery, len(x.Sys.Subsystems))
	for i := range a.delivery {
		var err error
		if a.delivery[i], err = a.choose(x, i); err != nil {
			return err
		}
		if a.whole(i) {
			continue
		}
		if err := x.Splits(i); err != nil {
			return err
		}
	}
	a.through = feedThrough(x.Sys)
	a.ahead.midpoints = nil
	if slices.Contains(a.delivery, Substeps) {
		a.old.midpoints = make([][num.MaxNodes]float64, a.config.Substeps)
		a.ahead.midpoints = make([][num.MaxNodes]float64, a.config.Substeps)
		for _, g := range a.slow {
			g.old.midpoints = make([][num.MaxNodes]float64, a.config.Substeps)
			g.block.midpoints = make([][num.MaxNodes]float64, a.config.Substeps)
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

// feedThrough reports of each input whether an output of its subsystem depends on it
// directly, or is not declared not to.
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

// placeOnGrids finds for each input the points that its polynomial goes through:
// those at which both its source and its subsystem take part.
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
		a.external = slices.DeleteFunc(a.external, func(e int) bool { return e == k })
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

// choose returns the delivery for subsystem i: the one asked for, or the next
// that it supports.
func (a *Approximation) choose(x *master.Exec, i int) (Delivery, error) {
	info := x.Sys.Infos[i]
	if a.config.Order == 0 || a.config.Delivery == Held || len(info.In) == 0 || a.late[i] {
		return Held, nil
	}
	if !slices.Contains(a.holds[x.Sys.InAt[i]:x.Sys.InAt[i+1]], false) { // there is nothing to deliver
		return Held, nil
	}
	delivery, how := Held, "held, as at order 0"
	if info.Caps.VariableStep {
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
		err := x.PrepareDerivatives(i, a.config.Order)
		if err == nil {
			return Derivatives, nil
		}
		if !errors.Is(err, master.ErrCapability) {
			return Held, err
		}
		why = err.Error()
	}
	if delivery == Held || a.config.Delivery == Derivatives || x.Interpolates(i) && a.config.Delivery != Substeps {
		x.Note(fmt.Sprintf("%s: extrapolation of order %d: its inputs are %s, since %s", info.Name, a.config.Order, how, why))
	}
	return delivery, nil
}

// gridWith returns the history with a period.
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

// Begin computes the weights for the step from t to t+H with polynomials of a
// degree, and takes what is known of the inputs that no subsystem drives.
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
	if !a.config.LooksAhead && (len(a.external) == 0 || degree == 0) {
		return
	}
	var nodes [num.MaxNodes]float64
	nodes[0] = t + H
	n := 1 + copy(nodes[1:degree+1], a.times[:a.points])
	a.ahead.weigh(nodes[:n], t, H)
	if degree == 0 {
		return
	}
	for _, k := range a.external {
		a.Arrived(k, x.Signal(k, t+H))
	}
	for k, d := range a.kick {
		if d != 0 {
			a.Arrived(k, a.Extrapolated(k)+d)
		}
	}
}

// BeginBlock computes the weights for the step that slow subsystem i takes from
// its last point to t, the end of the present macro step, and gives the former.
func (a *Approximation) BeginBlock(i int, t float64) (from float64) {
	from = a.BlockStart(i)
	for _, g := range a.slow {
		g.block.weigh(g.nodes(a.degree), from, t-from)
	}
	return from
}

// Arrived makes the value of input k at the end of the step its newest point,
// unless its polynomial goes through fewer points than there are.
func (a *Approximation) Arrived(k int, value float64) {
	if a.gridOf[k] == &a.grid {
		a.newest[k], a.isAhead[k], a.someAre = value, true, true
	}
}

// Push takes the values at a new communication point.
func (a *Approximation) Push(t float64, w []float64) {
	a.grid.push(t, w)
	a.count++
	for _, g := range a.slow {
		if a.count%g.period == 0 {
			g.push(t, w)
		}
	}
}

// Pop forgets the newest point of a history without slower subsystems.
func (a *Approximation) Pop() { a.grid.pop() }

// Forget keeps the newest point only.
func (a *Approximation) Forget() {
	a.points = 1
	for _, g := range a.slow {
		g.points = min(g.points, 1)
	}
}

func (a *Approximation) Archive(to *master.Archive) {
	to.Section("history of the coupling inputs")
	to.Index(&a.count, 0, math.MaxInt)
	a.grid.archive(to)
	to.Count(len(a.slow), "rates")
	for _, g := range a.slow {
		g.archive(to)
	}
	num.Carry(to, a.bias, a.kick)
}

// Report returns the delivery of every input, late ones as such; nothing before
// Init has come to its end.
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
			case a.delivery[i] == Derivatives:
				d.How, d.Order = "derivatives", a.config.Order
			case a.delivery[i] == Substeps:
				d.How, d.Order = fmt.Sprintf("substeps=%d", a.config.Substeps), a.config.Order
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
