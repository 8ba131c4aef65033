package input

import (
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Order returns the highest degree that is delivered.
func (a *Approximation) Order() int { return a.config.Order }

// OrderFor returns the highest degree that subsystem i gets.
func (a *Approximation) OrderFor(i int) int {
	if len(a.external[i]) > 0 {
		return max(a.config.Order, 1)
	}
	return a.config.Order
}

// Substeps returns the number of substeps per macro step for the delivery Substeps.
func (a *Approximation) Substeps() int { return a.config.Substeps }

// Delivery returns the delivery of subsystem i.
func (a *Approximation) Delivery(i int) Delivery { return a.delivery[i] }

// Shapes reports whether extrapolated inputs of subsystem i may vary over a macro step.
func (a *Approximation) Shapes(i int) bool { return a.config.Order > 0 && a.delivery[i] != Held }

// System returns the system; nil before Init.
func (a *Approximation) System() *master.System { return a.sys }

// Late reports whether subsystem i is stepped after its sources.
func (a *Approximation) Late(i int) bool { return a.late[i] }

// Holds reports whether input k is always held.
func (a *Approximation) Holds(k int) bool { return a.holds[k] }

// Owner returns the subsystem of input k.
func (a *Approximation) Owner(k int) int { return a.owner[k] }

// Rate returns the rate of subsystem i.
func (a *Approximation) Rate(i int) Rate { return a.rates[i] }

// Over returns the number of macro steps in a step of subsystem i.
func (a *Approximation) Over(i int) int { return a.rates[i].Over }

// Since returns the number of macro steps since the last multiple of over macro steps.
func (a *Approximation) Since(over int) int { return a.count % over }

// Ends reports whether a multiple of over macro steps ends with the current one.
func (a *Approximation) Ends(over int) bool { return over == 1 || (a.count+1)%over == 0 }

// Due reports whether a step of subsystem i ends with the current macro step.
func (a *Approximation) Due(i int) bool { return a.Ends(a.rates[i].Over) }

// BlockStart returns the last communication point of slow subsystem i.
func (a *Approximation) BlockStart(i int) float64 { return a.gridWith(a.rates[i].Over).times[0] }

// Times returns the times of the communication points, newest first.
func (a *Approximation) Times() []float64 { return a.times[:a.points] }

// At returns W [nu] at the p-th communication point before the newest.
func (a *Approximation) At(p int) []float64 { return a.at(p) }

// TimesOf returns the times of the points of input k, newest first.
func (a *Approximation) TimesOf(k int) []float64 {
	g := a.gridOf[k]
	return g.times[:g.points]
}

// Newest returns the value of input k at its newest point.
func (a *Approximation) Newest(k int) float64 { return a.gridOf[k].at(0)[k] }

// History returns the communication points, newest first.
func (a *Approximation) History() num.History {
	h := num.History{Times: a.times[:a.points]}
	for p := range a.points {
		a.newestFirst[p] = a.at(p)
	}
	h.Values = a.newestFirst[:a.points]
	return h
}

// Degree returns the degree of the polynomials through old points.
func (a *Approximation) Degree() int { return a.old.degree }

// DegreeAhead returns the degree of the polynomials through the value at the end of the step.
func (a *Approximation) DegreeAhead() int { return a.ahead.degree }

// DegreeOf returns the degree of the polynomial of input k that its subsystem gets.
func (a *Approximation) DegreeOf(k int) int {
	if i := a.owner[k]; a.late[i] || a.holds[k] || a.delivery[i] == Held {
		return 0
	}
	return a.of(k).degree
}

// Known reports whether input k is external and varies within steps.
func (a *Approximation) Known(k int) bool { return a.known[k] }

// Course returns the polynomial that is 0 at the points of input k, except the oldest, and 1 at the
// end of the step of its subsystem, which has the size H and, unless the subsystem is slow, starts
// at t.
func (a *Approximation) Course(k int, t, H float64) num.Shape {
	if p := a.course[k]; a.rates[a.owner[k]].Over > 1 {
		return num.NewShape(p.degree, p.nodes[0], H, p.nodes[:p.degree+1])
	}
	return num.NewShape(a.gridOf[k].old.degree, t, H, a.TimesOf(k))
}

// Ahead returns the value of input k at the end of the step, if it is known.
func (a *Approximation) Ahead(k int) (value float64, known bool) { return a.newest[k], a.isAhead[k] }

// Extrapolated returns the value of input k at the end of the step from the polynomial through old
// points.
func (a *Approximation) Extrapolated(k int) float64 {
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

// Last returns the value of input k if it is held: the mean if it is external, else the newest, at the end of the step if
// that is known.
func (a *Approximation) Last(k int) float64 {
	switch {
	case a.known[k]:
		return a.lines[0][k]/2 + a.lines[1][k]/2
	case a.isAhead[k]:
		return a.newest[k]
	}
	return a.gridOf[k].at(0)[k]
}

// of returns the polynomial of input k over the step of its subsystem.
func (a *Approximation) of(k int) *polynomial {
	switch {
	case a.known[k]:
		return &a.gridOf[k].line
	case a.isAhead[k]:
		return &a.ahead
	}
	return a.course[k]
}

// Slope returns the m-th derivative of the polynomial of input k at the start of the step; m = 0 is
// the value.
func (a *Approximation) Slope(k, m int) float64 {
	p := a.of(k)
	return a.eval(p, k, &p.start[m])
}

// eval returns the polynomial of input k at the time of the weights w: the sum of the weighted values at its nodes,
// with the same rounding on every platform.
func (a *Approximation) eval(p *polynomial, k int, w *[num.MaxNodes]float64) float64 {
	if a.known[k] {
		return 0 + float64(w[0]*a.lines[0][k]) + float64(w[1]*a.lines[1][k])
	}
	sum, old := 0.0, w[:p.degree+1]
	if p == &a.ahead {
		sum, old = sum+float64(w[0]*a.newest[k]), old[1:]
	}
	g := a.gridOf[k]
	for q, w := range old {
		sum += float64(w * g.at(q)[k])
	}
	return sum
}

// AtEnd returns the value of input k at the end of the step of its subsystem, without bias.
func (a *Approximation) AtEnd(k int) float64 {
	if a.holds[k] || a.delivery[a.owner[k]] == Held {
		return a.Last(k)
	}
	p := a.of(k)
	return a.eval(p, k, &p.end)
}

// Sampled returns the value of input k with which its subsystem computed its outputs at t, the end
// of the macro step of size H: the value at the end of its last own step or, as in rodriguez 3.1,
// at the start.
func (a *Approximation) Sampled(k int, t, H float64, end bool) float64 {
	i := a.owner[k]
	switch n := a.rates[i].Steps; {
	case end:
		return a.AtEnd(k)
	case n == 1 && a.delivery[i] != Substeps, a.holds[k], a.delivery[i] == Held:
		return a.Last(k)
	case n == 1:
		return a.inSubstep(k, a.config.Substeps-1)
	default:
		var w [1][num.MaxNodes]float64
		p := a.of(k)
		num.Weights(w[:], p.nodes[:p.degree+1], t-H/float64(n))
		return a.eval(p, k, &w[0])
	}
}

// Bias returns the constant that a correction adds to input k over the step.
func (a *Approximation) Bias(k int) float64 { return a.bias[k] }

// SetBias sets the constant that a correction adds to input k over the step.
func (a *Approximation) SetBias(k int, v float64) { a.bias[k] = v }

// Kick returns the value added to the extrapolation of input k at the end of the step. It needs
// EnableKicks.
func (a *Approximation) Kick(k int) float64 { return a.kick[k] }

// SetKick sets the value added to the extrapolation of input k at the end of the step. It needs
// EnableKicks.
func (a *Approximation) SetKick(k int, v float64) { a.kick[k] = v }

// EnableKicks allocates the kicks. It is called after Init.
func (a *Approximation) EnableKicks() {
	if a.kick == nil {
		a.kick = make([]float64, len(a.bias))
	}
}
