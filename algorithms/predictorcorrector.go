package algorithms

import (
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// PredictorCorrector compares extrapolated with new outputs and repeats no step (sadjina III D).
const PredictorCorrector Estimator = "predictor-corrector"

func newPredictorCorrector(k *Control, _ *Coupling) (indicator, controller) {
	return &predictorCorrector{tolerance: k.PCTolerance, rho: k.PCRho}, newPI(k, 1)
}

// predictorCorrector compares the connected outputs y with their extrapolation ỹ, whose degree is
// one more than that of the inputs (sadjina (16), (17), after Busch):
//
//	ε = max |y − ỹ| / (TOL (1 + ρ max(|y|, |ỹ|))).
type predictorCorrector struct {
	tolerance, rho []Tolerance

	outputs []int // connected outputs
	names   []string
	tol, r  []float64 // by output: TOL, ρ
	recentOutputs
}

// recentOutputs is the state of a predictorCorrector.
type recentOutputs struct {
	times  [num.MaxNodes]float64   // of the last points, newest first
	values [num.MaxNodes][]float64 // at these points, by output
	points int
}

func (p *predictorCorrector) check(s *master.System) error {
	return known(s, p.tolerance, p.rho)
}

func (p *predictorCorrector) init(x *master.Exec, t0 float64) error {
	sys := x.Sys
	p.outputs = nil
	for k := range x.W {
		if y, ok := sys.Source(k); ok {
			p.outputs = append(p.outputs, y)
		}
	}
	slices.Sort(p.outputs)
	p.outputs = slices.Compact(p.outputs)
	n := len(p.outputs)
	p.names, p.tol, p.r = make([]string, n), make([]float64, n), make([]float64, n)
	for i, y := range p.outputs {
		p.names[i] = sys.OutName(y)
		p.tol[i], p.r[i] = valueOf(p.tolerance, p.names[i], math.NaN()), valueOf(p.rho, p.names[i], math.NaN())
	}
	for i := range p.values {
		p.values[i] = make([]float64, n)
	}
	p.points = 0
	p.accept(x, t0)
	return nil
}

// measure returns ε with a predictor on the actual grid. A short history lowers its degree; with
// one point ε is NaN.
func (p *predictorCorrector) measure(x *master.Exec, t, H float64, degree int) float64 {
	n := min(degree+2, p.points)
	if n < 2 {
		return math.NaN()
	}
	var w [1][num.MaxNodes]float64
	num.Weights(w[:], p.times[:n], t+H)
	worst := 0.0
	for i, y := range p.outputs {
		predicted := 0.0
		for j := range n {
			predicted += float64(w[0][j] * p.values[j][i])
		}
		e := math.Abs(x.Y[y]-predicted) / (p.tol[i] * (1 + p.r[i]*max(math.Abs(x.Y[y]), math.Abs(predicted))))
		worst = max(worst, orInf(e))
	}
	return worst
}

func (p *predictorCorrector) accept(x *master.Exec, t float64) {
	oldest := p.values[num.MaxNodes-1]
	copy(p.values[1:], p.values[:])
	copy(p.times[1:], p.times[:])
	p.values[0], p.times[0] = oldest, t
	for i, y := range p.outputs {
		oldest[i] = x.Y[y]
	}
	p.points = min(p.points+1, num.MaxNodes)
}

func (p *predictorCorrector) review() []string { return nil }

func (p *predictorCorrector) archive(a *master.Archive) { a.All(&p.recentOutputs) }

func (p *predictorCorrector) monitored() []string {
	var out []string
	for _, name := range p.names {
		out = append(out, name+" (connected output)")
	}
	return out
}
