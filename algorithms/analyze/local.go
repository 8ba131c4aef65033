package analyze

import (
	"errors"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// Local is the error that the coupling is expected to make in one macro step from exact values at
// the last communication points (haid (31), meyer 4): root mean square over the horizon by the
// standard deviation of the output, of the output Of, where it is largest.
type Local struct {
	Step  float64 `json:"step"` // s, that of the analysis
	Error float64 `json:"error"`
	Of    string  `json:"of"`
	// Growth is the power of the step by which it grows between half and twice the step.
	Growth float64 `json:"growth"`
}

const (
	// localSamples are the macro steps that are looked at along the horizon.
	localSamples, localFewer = 24, 4
	// localSpan is the largest of the steps that are compared, in steps of the analysis, and the
	// smallest by its inverse.
	localSpan = 2
	// slowest, with the order, is the least power by which the error of implicit coupling in one step grows
	// where it is that of the coupling: its polynomials go through the end of the step, and what they are off
	// by in between grows by the order + 1 at least. The motion that it is compared with is found by
	// implicit coupling itself, in shorter steps, whose error does not depend on the step.
	slowest = 0.6
)

// states are those of the reference at points that lie apart by half a step of the analysis.
type states struct {
	x [][]float64 // by point: of all twins, one after the other
	n int         // steps of the reference between them
}

// localErrors finds the local error of a strategy at the step of the analysis and how it grows.
//
// From states and outputs of the reference, one macro step is taken by the strategy on twins that go
// in the steps of the reference whatever the macro step is: what is left is the error of the coupling
// alone, and not the difference that the step makes to the solvers inside the FMUs. Polynomials
// are taken as they are, not as substeps sample them.
func (p *point) localErrors(s *scheme, ref *reference) (*Local, string) {
	if s.preset == implicitScheme && len(p.models) > manySubsystems {
		return nil, fmt.Sprintf("implicit coupling is not looked at so closely with more than %d components", manySubsystems)
	}
	if why := p.noLocal(s); why != "" {
		return nil, why
	}
	if s.hidden {
		return nil, "its error in a step depends on what it has corrected before"
	}
	sizes := []float64{1. / localSpan, 1, localSpan}
	found := make([][]float64, len(sizes))
	for k, c := range sizes {
		var err error
		if found[k], err = p.localError(s, c, ref); err != nil {
			return nil, err.Error()
		}
	}
	l := &Local{Step: p.step}
	worst := -1
	for o, e := range found[1] {
		if ref.sizes[o] > 0 && (worst < 0 || e > l.Error) {
			worst, l.Error = o, e
		}
	}
	if worst < 0 || l.Error == 0 {
		return nil, "no output is off after a step"
	}
	at := 0
	for i, m := range p.models {
		if worst < at+m.outputs() {
			l.Of = p.x.Sys.OutName(p.x.Sys.OutAt[i] + worst - at)
			break
		}
		at += m.outputs()
	}
	l.Growth = math.Log(found[2][worst]/found[0][worst]) / math.Log(localSpan*localSpan)
	if !linear.Finite(l.Growth, l.Error) {
		return nil, "it leaves the numbers"
	}
	if s.preset == implicitScheme && l.Growth < float64(s.order)+slowest {
		return nil, fmt.Sprintf("of order %d it is %.1e or less, which does not grow with the step as that of the coupling has to (H^%.1f): it is that of the motion that it is compared with, in steps of %.2g s",
			s.order, l.Error, math.Round(10*l.Growth)/10+0, ref.h)
	}
	return l, ""
}

// localError gives the error of each output after one macro step of c steps of the analysis.
func (p *point) localError(s *scheme, c float64, ref *reference) ([]float64, error) {
	h := c * p.step
	twins, sys, err := p.fineTwins(s, ref)
	if err != nil {
		return nil, err
	}
	g, err := p.newPropagator(s, h, twins, sys)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = g.run.Close() }() // nothing of it is used
	each := int(math.Round(c * localSpan))  // points of the reference in a macro step
	first := s.order * each
	last := len(ref.states.x) - 1 - each
	samples := localSamples
	if len(p.models) > manySubsystems {
		samples = localFewer
	}
	if last <= first {
		return nil, errors.New("the forecast motion is too short for its history")
	}
	samples = min(samples, last-first+1)
	out := make([]float64, g.ny)
	z, next := make([]float64, g.size()), make([]float64, g.size())
	for n := range samples {
		point := first
		if samples > 1 {
			point += n * (last - first) / (samples - 1)
		}
		at := copy(z, ref.states.x[point])
		for _, j := range g.lags {
			at += copy(z[at:], ref.y[(point-j*each)*ref.states.n])
		}
		if err := g.apply(z, next); err != nil {
			return nil, err
		}
		for o, want := range ref.y[(point+each)*ref.states.n] {
			d := next[g.n+o] - want
			out[o] += d * d / float64(samples)
		}
	}
	for o := range out {
		if out[o] = math.Sqrt(out[o]); ref.sizes[o] > 0 {
			out[o] /= ref.sizes[o]
		}
	}
	return out, nil
}

// fineTwins makes a system of twins like those of the reference, which take longer steps in
// several of theirs.
func (p *point) fineTwins(s *scheme, ref *reference) ([]*twin, *master.System, error) {
	twins, _, err := p.twins(ref.scheme, ref.h, -1, 1, true)
	if err != nil {
		return nil, nil, err
	}
	for i, t := range twins {
		t.fine = true
		if t.info.Caps.VariableStep = !s.holds(p.models[i]); !t.info.Caps.VariableStep {
			continue
		}
		t.order = highestDegree
		t.info.Caps.InputDerivatives = true
	}
	sys, err := p.coupledTwins(twins, -1, 1) // anew, for what they can do now
	return twins, sys, err
}

// highestDegree is that of polynomials that twins in fine steps take.
const highestDegree = 5
