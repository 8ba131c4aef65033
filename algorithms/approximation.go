package algorithms

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

// approximation is the part "input approximation": polynomials of order k
// through the last k+1 values of u = L y + b on the actual time grid
// (schweizer 2.1.1, meyer 3.1), and their delivery to the subsystems.
//
// While the history is short the degree is the number of points less one. An
// input driven from outside has its value at the end of the step as newest
// point, unless the order is 0; one that nothing drives is held.
type approximation struct {
	order    int // the highest degree that is delivered
	substeps int
	want     Delivery
	// looksAhead tells that arrived may be called during a step.
	looksAhead bool

	sys      *master.System
	delivery []Delivery // by subsystem
	holds    []bool     // by input: order 0 whatever else
	free     []int      // inputs that nothing drives: their value may be set at any communication point
	external []int      // extrapolated inputs that are driven from outside: known at the end of the step

	rates  []rate  // by subsystem
	grid           // of all communication points
	slow   []*grid // of those at which slower subsystems take part
	gridOf []*grid // by input: the points its polynomial goes through
	owner  []int   // by input: its subsystem
	count  int     // macro steps taken
	degree int     // asked for in the present step

	// Of the present step: the polynomials with the value at its end as newest
	// point.
	ahead   polynomial
	newest  []float64 // values at the end of the step, [nu]
	isAhead []bool    // by input: its newest value is known
	someAre bool      // one of isAhead may be set
	inBlock bool      // a slow subsystem is being stepped over all the macro steps of its own
	through []bool    // by input: outputs may depend on it directly

	newestFirst [maxPoints][]float64 // of the last history that was asked for
	bias        []float64            // what a correction adds to each input over the step, [nu]
	biases      bool                 // there is such a correction
	kick        []float64            // added to the extrapolated value at the end of the step, [nu]; nil = nothing is
}

// rate returns how a subsystem steps: n steps a macro step, or one step over a
// number of macro steps.
type rate struct{ steps, over int }

// grid is a history: the last points that belong to it, newest first.
type grid struct {
	period int // macro steps from one to the next
	times  [maxPoints]float64
	points int
	// W at the points: a ring, the newest at newestAt.
	ring     [maxPoints][]float64
	newestAt int
	// The polynomials through these points over the present macro step, and over
	// the steps since the newest of them.
	old, block polynomial
}

// MaxOrder is the highest extrapolation order: error estimates look one degree above the
// order in force.
const MaxOrder = num.MaxNodes - 2

// maxPoints are kept: one more than any polynomial takes, so that the newest can
// be taken back.
const maxPoints = num.MaxNodes + 1

func newGrid(period, nu int) *grid {
	g := &grid{period: period}
	for p := range g.ring {
		g.ring[p] = make([]float64, nu)
	}
	return g
}

// at returns W at the point that is p points before the newest, [nu].
func (g *grid) at(p int) []float64 { return g.ring[uint(g.newestAt+p)%maxPoints] }

// push takes the values at a new point.
func (g *grid) push(t float64, w []float64) {
	copy(g.times[1:], g.times[:])
	g.times[0] = t
	g.newestAt = (g.newestAt + maxPoints - 1) % maxPoints
	copy(g.at(0), w)
	g.points = min(g.points+1, maxPoints)
}

// pop forgets the newest point.
func (g *grid) pop() {
	copy(g.times[:], g.times[1:])
	g.newestAt = (g.newestAt + 1) % maxPoints
	g.points--
}

// archive carries the points, and the polynomial over the last step that went by
// them. That over the macro step is computed for each.
func (g *grid) archive(a *master.Archive) {
	a.Index(&g.points, 1, maxPoints)
	a.Floats(g.times[:])
	a.Index(&g.newestAt, 0, maxPoints-1)
	for _, w := range g.ring {
		a.Floats(w)
	}
	g.block.archive(a)
}

func (p *polynomial) archive(a *master.Archive) {
	a.Index(&p.degree, 0, num.MaxNodes-1)
	a.Floats(p.nodes[:])
	for m := range p.start {
		a.Floats(p.start[m][:])
	}
	for j := range p.midpoints {
		a.Floats(p.midpoints[j][:])
	}
	a.Floats(p.end[:])
}

// forget keeps the newest point only.
func (a *approximation) forget() {
	a.points = 1
	for _, g := range a.slow {
		g.points = min(g.points, 1)
	}
}

// nodes are the points of a polynomial of a degree.
func (g *grid) nodes(degree int) []float64 { return g.times[:min(g.points, degree+1)] }

// polynomial holds the weights of the points of one step: at its start for the
// value and the derivatives, at the midpoints of the substeps, and at its end.
type polynomial struct {
	degree    int
	nodes     [num.MaxNodes]float64
	start     num.WeightTable
	midpoints [][num.MaxNodes]float64
	end       [num.MaxNodes]float64
}

func (a *approximation) init(x *master.Exec, t0 float64) error {
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
		} else if !a.holds[k] && a.order > 0 {
			a.external = append(a.external, k)
		}
	}
	a.newest, a.isAhead, a.bias = make([]float64, nu), make([]bool, nu), make([]float64, nu)
	a.grid, a.slow, a.count = *newGrid(1, nu), nil, 0
	a.placeOnGrids(x)
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
		a.old.midpoints = make([][num.MaxNodes]float64, a.substeps)
		a.ahead.midpoints = make([][num.MaxNodes]float64, a.substeps)
		for _, g := range a.slow {
			g.old.midpoints = make([][num.MaxNodes]float64, a.substeps)
			g.block.midpoints = make([][num.MaxNodes]float64, a.substeps)
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

// feedThrough tells of each input whether an output of its subsystem depends on it
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
func (a *approximation) placeOnGrids(x *master.Exec) {
	if a.rates == nil {
		a.rates = slices.Repeat([]rate{{1, 1}}, len(x.Sys.Subsystems))
	}
	a.gridOf, a.owner = make([]*grid, len(x.W)), make([]int, len(x.W))
	for k := range a.gridOf {
		a.gridOf[k], a.owner[k] = &a.grid, num.Owner(x.Sys.InAt, k)
		period := a.rates[a.owner[k]].over
		if from := x.Sys.SourceSubsystem(k); from >= 0 {
			period = num.LCM(period, a.rates[from].over)
		}
		if period == 1 || slices.Contains(a.free, k) {
			continue
		}
		a.external = slices.DeleteFunc(a.external, func(e int) bool { return e == k })
		a.gridOf[k] = a.gridWith(period)
	}
	for _, r := range a.rates {
		if r.over > 1 {
			a.gridWith(r.over)
		}
	}
}

// choose gives the delivery for subsystem i: the one asked for, or the next
// that it supports.
func (a *approximation) choose(x *master.Exec, i int) (Delivery, error) {
	info := x.Sys.Infos[i]
	if a.order == 0 || a.want == Held || len(info.In) == 0 || slices.Contains(x.Sys.Late, i) {
		return Held, nil
	}
	if !slices.Contains(a.holds[x.Sys.InAt[i]:x.Sys.InAt[i+1]], false) { // there is nothing to deliver
		return Held, nil
	}
	delivery, how := Held, "held, as at order 0"
	if info.Caps.VariableStep {
		delivery, how = Substeps, fmt.Sprintf("sampled in %d substeps", a.substeps)
		if own := a.rates[i].steps; own > 1 {
			how = fmt.Sprintf("sampled in its %d steps a macro step", own)
		}
	}
	why := "it cannot vary its step"
	switch {
	case a.want == Substeps:
	case !x.Interpolates(i):
		why = "it does not interpolate its inputs"
	default:
		err := x.PrepareDerivatives(i, a.order)
		if err == nil {
			return Derivatives, nil
		}
		if !errors.Is(err, master.ErrCapability) {
			return Held, err
		}
		why = err.Error()
	}
	if delivery == Held || a.want == Derivatives || x.Interpolates(i) && a.want != Substeps {
		x.Note(fmt.Sprintf("%s: extrapolation of order %d: its inputs are %s, since %s", info.Name, a.order, how, why))
	}
	return delivery, nil
}

// push takes the values at a new communication point.
func (a *approximation) push(t float64, w []float64) {
	a.grid.push(t, w)
	a.count++
	for _, g := range a.slow {
		if a.count%g.period == 0 {
			g.push(t, w)
		}
	}
}

func (a *approximation) archive(to *master.Archive) {
	to.Section("history of the coupling inputs")
	to.Index(&a.count, 0, math.MaxInt)
	a.grid.archive(to)
	to.Count(len(a.slow), "rates")
	for _, g := range a.slow {
		g.archive(to)
	}
	to.Floats(a.bias)
	to.Floats(a.kick)
}

// begin computes the weights for the step from t to t+H with polynomials of a
// degree, and takes what is known of the inputs that no subsystem drives.
func (a *approximation) begin(x *master.Exec, t, H float64, degree int) {
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
	if !a.looksAhead && (len(a.external) == 0 || degree == 0) {
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
		a.arrived(k, x.Signal(k, t+H))
	}
	for k, d := range a.kick {
		if d != 0 {
			a.arrived(k, a.extrapolated(k)+d)
		}
	}
}

func (p *polynomial) weigh(nodes []float64, t, H float64) {
	p.degree = copy(p.nodes[:], nodes) - 1
	if p.degree == 0 {
		p.start[0][0], p.end[0] = 1, 1
		for j := range p.midpoints {
			p.midpoints[j][0] = 1
		}
		return
	}
	num.Weights(&p.start, nodes, t, p.degree)
	var w num.WeightTable
	for j := range p.midpoints {
		num.Weights(&w, nodes, t+H*(float64(j)+0.5)/float64(len(p.midpoints)), 0)
		p.midpoints[j] = w[0]
	}
	num.Weights(&w, nodes, t+H, 0)
	p.end = w[0]
}

// arrived makes the value of input k at the end of the step its newest point,
// unless its polynomial goes through fewer points than there are.
func (a *approximation) arrived(k int, value float64) {
	if a.gridOf[k] == &a.grid {
		a.newest[k], a.isAhead[k], a.someAre = value, true, true
	}
}

// beginBlock computes the weights for the step that slow subsystem i takes from
// its last point to t, the end of the present macro step, and gives the former.
func (a *approximation) beginBlock(i int, t float64) (from float64) {
	from = a.blockOf(i)
	for _, g := range a.slow {
		g.block.weigh(g.nodes(a.degree), from, t-from)
	}
	return from
}

// blockOf gives the last communication point of slow subsystem i.
func (a *approximation) blockOf(i int) float64 { return a.gridWith(a.rates[i].over).times[0] }

// gridWith gives the history with a period.
func (a *approximation) gridWith(period int) *grid {
	for _, g := range a.slow {
		if g.period == period {
			return g
		}
	}
	g := newGrid(period, len(a.newest))
	a.slow = append(a.slow, g)
	return g
}

// extrapolated gives the value of input k at the end of the step by the
// polynomial through old points only.
func (a *approximation) extrapolated(k int) float64 {
	g := a.gridOf[k]
	if a.holds[k] {
		return g.at(0)[k]
	}
	v := 0.0
	for p := 0; p <= g.old.degree; p++ {
		v += float64(g.old.end[p] * g.at(p)[k])
	}
	return v
}

// history gives the communication points, newest first.
func (a *approximation) history() num.History {
	h := num.History{Times: a.times[:a.points]}
	for p := range a.points {
		a.newestFirst[p] = a.at(p)
	}
	h.Values = a.newestFirst[:a.points]
	return h
}

// eval combines the values of input k with the weights of one instant.
func (a *approximation) eval(k int, w *[num.MaxNodes]float64) float64 {
	return a.evalOn(a.of(k), k, w)
}

// evalOn is eval with a polynomial of input k.
func (a *approximation) evalOn(p *polynomial, k int, w *[num.MaxNodes]float64) float64 {
	var v [num.MaxNodes]float64
	n := a.nodeValues(p, k, &v)
	return combine(w[:n], v[:n])
}

// nodeValues puts the values of input k at the nodes of its polynomial into v, and returns
// their number.
func (a *approximation) nodeValues(p *polynomial, k int, v *[num.MaxNodes]float64) int {
	n, known := p.degree+1, 0
	if p == &a.ahead {
		v[0], known = a.newest[k], 1
	}
	g := a.gridOf[k]
	for q := known; q < n; q++ {
		v[q] = g.at(q - known)[k]
	}
	return n
}

// combine returns Σ wᵢ vᵢ, rounded after each product and sum on every platform.
func combine(w, v []float64) float64 {
	sum := 0.0
	for q := range w {
		sum += float64(w[q] * v[q])
	}
	return sum
}

// last is the newest value of input k.
func (a *approximation) last(k int) float64 {
	if a.isAhead[k] {
		return a.newest[k]
	}
	return a.gridOf[k].at(0)[k]
}

// of gives the polynomial of input k.
func (a *approximation) of(k int) *polynomial {
	switch {
	case a.isAhead[k]:
		return &a.ahead
	case a.inBlock:
		return &a.gridOf[k].block
	}
	return &a.gridOf[k].old
}

// whole reports whether subsystem i takes the macro step in one piece.
func (a *approximation) whole(i int) bool { return a.delivery[i] != Substeps && a.rates[i].steps == 1 }

// stage puts the inputs of subsystem i for a whole step into U and DU.
func (a *approximation) stage(x *master.Exec, i int) {
	follows := a.delivery[i] == Derivatives
	for k := a.sys.InAt[i]; k < a.sys.InAt[i+1]; k++ {
		if follows && !a.holds[k] {
			a.stageSlopes(x, k)
			continue
		}
		x.U[k] = a.biased(k, a.last(k))
		for m := range a.order {
			if follows {
				x.DU[m][k] = 0
			}
		}
	}
}

// stageHeld is stage for neighbouring inputs that are held, if no input is ahead or biased.
func (a *approximation) stageHeld(x *master.Exec, at span) {
	copy(x.U[at.from:at.to], a.at(0)[at.from:at.to])
}

// stageCurves is stage for neighbouring inputs that get their derivatives, if no input is ahead
// or biased.
func (a *approximation) stageCurves(x *master.Exec, at span) {
	a.combineAll(x.U[at.from:at.to], &a.old.start[0], at.from)
	for m := 1; m <= a.order; m++ {
		if du := x.DU[m-1][at.from:at.to]; m <= a.old.degree {
			a.combineAll(du, &a.old.start[m], at.from)
		} else {
			clear(du)
		}
	}
}

// combineAll is combine for the inputs from one on.
func (a *approximation) combineAll(to []float64, weights *[num.MaxNodes]float64, from int) {
	for q, w := range weights[:a.old.degree+1] {
		values := a.at(q)[from:][:len(to)]
		if q == 0 {
			for k, v := range values {
				to[k] = 0 + float64(w*v) // no negative zero
			}
			continue
		}
		for k, v := range values {
			to[k] += float64(w * v)
		}
	}
}

// stageSlopes puts the polynomial of input k at the start of the step into U and DU.
func (a *approximation) stageSlopes(x *master.Exec, k int) {
	p := a.of(k)
	var v [num.MaxNodes]float64
	n := a.nodeValues(p, k, &v)
	x.U[k] = a.biased(k, combine(p.start[0][:n], v[:n]))
	for m := 1; m <= a.order; m++ {
		x.DU[m-1][k] = 0
		if m < n {
			x.DU[m-1][k] = combine(p.start[m][:n], v[:n])
		}
	}
}

// biased adds what a correction adds to input k.
func (a *approximation) biased(k int, v float64) float64 {
	if b := a.bias[k]; b != 0 { // else every bit stays, a zero's sign too
		v += b
	}
	return v
}

// inSubstep gives the value of input k over substep j of the polynomial: at its midpoint.
// Outputs that depend on the input directly show at the end what it was in the last
// substep; there it is the value at the end, for which the substep before makes
// up, so that the integral is as good.
func (a *approximation) inSubstep(k, j int) float64 {
	p := a.of(k)
	v := a.eval(k, &p.midpoints[j])
	last := len(p.midpoints) - 1
	if !a.through[k] || last == 0 || j < last-1 {
		return v
	}
	end := a.eval(k, &p.end)
	if j == last {
		return end
	}
	return v + (a.eval(k, &p.midpoints[last]) - end)
}

// pieces returns in how many pieces subsystem i takes the macro step.
func (a *approximation) pieces(i int) int {
	if n := a.rates[i].steps; n > 1 || a.delivery[i] != Substeps {
		return n
	}
	return a.substeps
}

// stagePiece puts the inputs of subsystem i for piece j of the macro step, from time t on,
// into U and DU. Where the pieces are a means of delivery, the polynomial is sampled
// (inSubstep); a subsystem with a rate of its own takes its steps as such, each with the
// polynomial, or where it cannot follow it with the value, at its start.
func (a *approximation) stagePiece(x *master.Exec, i, j int, t float64) {
	if a.rates[i].steps > 1 {
		a.stageAt(x, i, t)
		return
	}
	for k := a.sys.InAt[i]; k < a.sys.InAt[i+1]; k++ {
		if a.holds[k] {
			x.U[k] = a.biased(k, a.last(k))
		} else {
			x.U[k] = a.biased(k, a.inSubstep(k, j))
		}
	}
}

// stageAt puts the inputs of subsystem i for a step from time t within the macro step into
// U and DU.
func (a *approximation) stageAt(x *master.Exec, i int, t float64) {
	from, to := a.sys.InAt[i], a.sys.InAt[i+1]
	var w num.WeightTable
	var of *polynomial
	at := func(p *polynomial) {
		if p != of {
			of = p
			num.Weights(&w, p.nodes[:p.degree+1], t, p.degree)
		}
	}
	for k := from; k < to; k++ {
		if a.holds[k] || a.delivery[i] == Held {
			x.U[k] = a.biased(k, a.last(k))
		} else {
			at(a.of(k))
			x.U[k] = a.biased(k, a.eval(k, &w[0]))
		}
	}
	if a.delivery[i] != Derivatives {
		return
	}
	for m := 1; m <= a.order; m++ {
		for k := from; k < to; k++ {
			x.DU[m-1][k] = 0
			if p := a.of(k); !a.holds[k] && m <= p.degree {
				at(p)
				x.DU[m-1][k] = a.eval(k, &w[m])
			}
		}
	}
}

// report tells the delivery of every input, late ones as such; nothing before
// init has come to its end.
func (a *approximation) report() []master.Delivery {
	if a.points == 0 {
		return nil
	}
	late := make([]bool, len(a.sys.Subsystems))
	for _, i := range a.sys.Late {
		late[i] = true
	}
	var out []master.Delivery
	for i := range a.sys.Subsystems {
		for k := a.sys.InAt[i]; k < a.sys.InAt[i+1]; k++ {
			d := master.Delivery{Input: a.sys.InName(k), How: "held"}
			switch {
			case late[i]:
				d.How = "late" // the new values of its sources, held
			case a.holds[k]:
			case a.delivery[i] == Derivatives:
				d.How, d.Order = "derivatives", a.order
			case a.delivery[i] == Substeps:
				d.How, d.Order = fmt.Sprintf("substeps=%d", a.substeps), a.order
			}
			switch r := a.rates[i]; {
			case r.steps > 1 && a.delivery[i] == Substeps && !late[i] && !a.holds[k]:
				d.How = fmt.Sprintf("sampled, %d steps a macro step", r.steps)
			case r.steps > 1:
				d.How += fmt.Sprintf(", %d steps a macro step", r.steps)
			case r.over > 1:
				d.How += fmt.Sprintf(", one step over %d macro steps", r.over)
			}
			out = append(out, d)
		}
	}
	return out
}

// shapes reports whether subsystem i sees its inputs change over a macro step.
func (a *approximation) shapes(i int) bool { return a.delivery[i] != Held }

// atEnd gives the value that input k of subsystem i had at the end of its step.
func (a *approximation) atEnd(k, i int) float64 {
	if a.holds[k] || !a.shapes(i) {
		return a.last(k)
	}
	p := a.polynomialOf(k, i)
	return a.evalOn(p, k, &p.end)
}

// polynomialOf gives the polynomial that input k of subsystem i had over its step.
func (a *approximation) polynomialOf(k, i int) *polynomial {
	switch {
	case a.isAhead[k]:
		return &a.ahead
	case a.rates[i].over > 1:
		return &a.gridOf[k].block
	}
	return &a.gridOf[k].old
}

// sampled gives the value of input k of subsystem i with which its outputs at t, the
// end of the step of size H, were computed: at the end of its last own step, or at
// the start of it as rodriguez 3.1 has it.
func (a *approximation) sampled(k, i int, t, H float64, end bool) float64 {
	switch n := a.rates[i].steps; {
	case end:
		return a.atEnd(k, i)
	case n == 1 && a.delivery[i] != Substeps, a.holds[k], a.delivery[i] == Held:
		return a.last(k)
	case n == 1:
		return a.inSubstep(k, a.substeps-1)
	default:
		var w num.WeightTable
		p := a.of(k)
		num.Weights(&w, p.nodes[:p.degree+1], t-H/float64(n), 0)
		return a.eval(k, &w[0])
	}
}
