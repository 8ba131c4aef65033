package input

import (
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// whole reports whether subsystem i takes a macro step as one step.
func (a *Approximation) whole(i int) bool { return a.delivery[i] != Substeps && a.rates[i].Steps == 1 }

// stage writes the inputs of subsystem i for a whole step to U and DU.
func (a *Approximation) stage(x *master.Exec, i int) {
	follows := a.delivery[i] == Derivatives
	for k := a.sys.InAt[i]; k < a.sys.InAt[i+1]; k++ {
		if follows && !a.holds[k] {
			a.stageSlopes(x, k)
			continue
		}
		x.U[k] = a.biased(k, a.Last(k))
		for m := range a.slopes[i] {
			x.DU[m][k] = 0
		}
	}
}

// stageHeld is stage for a range of held inputs if no input is ahead or biased.
func (a *Approximation) stageHeld(x *master.Exec, at span) {
	copy(x.U[at.from:at.to], a.at(0)[at.from:at.to])
}

// stageCurves is stage for a range of inputs with derivatives if no input is ahead or biased.
func (a *Approximation) stageCurves(x *master.Exec, at span) {
	a.combineAll(x.U[at.from:at.to], &a.old.start[0], at.from)
	for m := 1; m <= a.slopes[a.owner[at.from]]; m++ {
		if du := x.DU[m-1][at.from:at.to]; m <= a.old.degree {
			a.combineAll(du, &a.old.start[m], at.from)
		} else {
			clear(du)
		}
	}
}

// combineAll is eval for len(to) inputs, the first of which is input from.
func (a *Approximation) combineAll(to []float64, weights *[num.MaxNodes]float64, from int) {
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

// stageSlopes writes value and derivatives of input k at the start of the step to U and DU.
func (a *Approximation) stageSlopes(x *master.Exec, k int) {
	p := a.of(k)
	x.U[k] = a.biased(k, a.eval(p, k, &p.start[0]))
	for m := 1; m <= a.slopes[a.owner[k]]; m++ {
		x.DU[m-1][k] = 0
		if m <= p.degree {
			x.DU[m-1][k] = a.eval(p, k, &p.start[m])
		}
	}
}

// biased adds the bias of input k to v.
func (a *Approximation) biased(k int, v float64) float64 {
	if b := a.bias[k]; b != 0 { // keeps −0
		v += b
	}
	return v
}

// inSubstep returns the value of input k in substep j: that of the polynomial at the midpoint. If
// outputs depend on the input directly, the last substep has the value at the end of the step
// instead, so that these outputs are correct there. The substep before compensates for this in the
// integral.
func (a *Approximation) inSubstep(k, j int) float64 {
	p := a.of(k)
	v := a.eval(p, k, &p.midpoints[j])
	last := len(p.midpoints) - 1
	if !a.through[k] || last == 0 || j < last-1 {
		return v
	}
	end := a.eval(p, k, &p.end)
	if j == last {
		return end
	}
	return v + (a.eval(p, k, &p.midpoints[last]) - end)
}

// pieces returns the number of steps of subsystem i in a macro step.
func (a *Approximation) pieces(i int) int {
	if n := a.rates[i].Steps; n > 1 || a.delivery[i] != Substeps {
		return n
	}
	return a.config.Substeps
}

// stagePiece writes the inputs of subsystem i for piece j of the macro step, which starts at time
// t, to U and DU. Substeps of a delivery sample the polynomial (inSubstep). The steps of a fast
// subsystem get the polynomial or, without input derivatives, its value at the start of the step, external inputs that in its
// middle.
func (a *Approximation) stagePiece(x *master.Exec, i, j int, t float64) {
	if a.rates[i].Steps > 1 {
		a.stageAt(x, i, t)
		return
	}
	for k := a.sys.InAt[i]; k < a.sys.InAt[i+1]; k++ {
		if a.holds[k] {
			x.U[k] = a.biased(k, a.Last(k))
		} else {
			x.U[k] = a.biased(k, a.inSubstep(k, j))
		}
	}
}

// stageAt writes the inputs of subsystem i for a step from time t within the macro step to U and DU.
func (a *Approximation) stageAt(x *master.Exec, i int, t float64) {
	from, to := a.sys.InAt[i], a.sys.InAt[i+1]
	var w num.WeightTable
	var of *polynomial
	at := func(p *polynomial) {
		if p != of {
			of = p
			num.Weights(w[:p.degree+1], p.nodes[:p.degree+1], t)
		}
	}
	for k := from; k < to; k++ {
		switch p := a.of(k); {
		case a.known[k] && a.delivery[i] != Derivatives: // its value in the middle of the step
			share := (t-p.nodes[0])/(p.nodes[1]-p.nodes[0]) + 0.5/float64(a.rates[i].Steps)
			x.U[k] = a.biased(k, float64(a.lines[0][k]*(1-share))+float64(a.lines[1][k]*share))
		case a.holds[k] || a.delivery[i] == Held:
			x.U[k] = a.biased(k, a.Last(k))
		default:
			at(p)
			x.U[k] = a.biased(k, a.eval(p, k, &w[0]))
		}
	}
	if a.delivery[i] != Derivatives {
		return
	}
	for m := 1; m <= a.slopes[i]; m++ {
		for k := from; k < to; k++ {
			x.DU[m-1][k] = 0
			if p := a.of(k); !a.holds[k] && m <= p.degree {
				at(p)
				x.DU[m-1][k] = a.eval(p, k, &w[m])
			}
		}
	}
}
