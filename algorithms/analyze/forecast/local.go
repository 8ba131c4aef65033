package forecast

import (
	"errors"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
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

// Local finds the local error of a strategy at the step of the analysis and how it grows.
//
// From states and outputs of the reference, one macro step is taken by the strategy on twins that go
// in the steps of the reference whatever the macro step is: what is left is the error of the coupling
// alone, and not the difference that the step makes to the solvers inside the FMUs. Polynomials
// are taken as they are, not as substeps sample them.
func (p *Forecaster) Local(s *twin.Scheme) (*Local, string) {
	if s.Preset == twin.Implicit && len(p.Models) > twin.Many {
		return nil, fmt.Sprintf("implicit coupling is not looked at so closely with more than %d components", twin.Many)
	}
	if why := p.noLocal(s); why != "" {
		return nil, why
	}
	if s.Hidden {
		return nil, "its error in a step depends on what it has corrected before"
	}
	sizes := []float64{1. / localSpan, 1, localSpan}
	found := make([][]float64, len(sizes))
	for k, c := range sizes {
		var err error
		if found[k], err = p.localError(s, c); err != nil {
			return nil, err.Error()
		}
	}
	l := &Local{Step: p.Step}
	worst := -1
	for o, e := range found[1] {
		if p.ref.sizes[o] > 0 && (worst < 0 || e > l.Error) {
			worst, l.Error = o, e
		}
	}
	if worst < 0 || l.Error == 0 {
		return nil, "no output is off after a step"
	}
	at := 0
	for i, m := range p.Models {
		if worst < at+m.Outputs() {
			l.Of = p.X.Sys.OutName(p.X.Sys.OutAt[i] + worst - at)
			break
		}
		at += m.Outputs()
	}
	l.Growth = math.Log(found[2][worst]/found[0][worst]) / math.Log(localSpan*localSpan)
	if !linear.Finite(l.Growth, l.Error) {
		return nil, "it leaves the numbers"
	}
	if s.Preset == twin.Implicit && l.Growth < float64(s.Order)+slowest {
		return nil, fmt.Sprintf("of order %d it is %.1e or less, which does not grow with the step as that of the coupling has to (H^%.1f): it is that of the motion that it is compared with, in steps of %.2g s",
			s.Order, l.Error, math.Round(10*l.Growth)/10+0, p.ref.h)
	}
	return l, ""
}

// noLocal returns why the error in one macro step is not looked at with the rates, "" if it is.
func (p *Forecaster) noLocal(s *twin.Scheme) string {
	const pieces = finer * 10 / localSpan // of the reference in the shortest macro step that is looked at
	for _, r := range s.Rates {
		if r.Over > 1 {
			return fmt.Sprintf("%s takes one step over %d macro steps, so that one macro step has no error of its own", r.Component, r.Over)
		}
		if pieces%r.Steps != 0 {
			return fmt.Sprintf("%s takes %d steps a macro step, into which those of the motion that it is compared with do not divide", r.Component, r.Steps)
		}
		for _, m := range p.Models {
			if m.Info.Name == r.Component && m.Order < s.Order {
				return fmt.Sprintf("%s takes the polynomials of its inputs in %d steps a macro step as values that it holds, and what that does is not told from its steps", r.Component, r.Steps)
			}
		}
	}
	return ""
}

// localError returns the error of each output after one macro step of c steps of the analysis.
func (p *Forecaster) localError(s *twin.Scheme, c float64) ([]float64, error) {
	h := c * p.Step
	twins, sys, err := p.fineTwins(s)
	if err != nil {
		return nil, err
	}
	g, err := scan.NewPropagator(p.Point, s, h, twins, sys)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = g.Run.Close() }() // nothing of it is used
	each := int(math.Round(c * localSpan))  // points of the reference in a macro step
	first := s.Order * each
	last := len(p.ref.states.x) - 1 - each
	samples := localSamples
	if len(p.Models) > twin.Many {
		samples = localFewer
	}
	if last <= first {
		return nil, errors.New("the forecast motion is too short for its history")
	}
	samples = min(samples, last-first+1)
	out := make([]float64, g.Ny)
	z, next := make([]float64, g.Size()), make([]float64, g.Size())
	for n := range samples {
		point := first
		if samples > 1 {
			point += n * (last - first) / (samples - 1)
		}
		at := copy(z, p.ref.states.x[point])
		for _, j := range g.Lags {
			at += copy(z[at:], p.ref.y[(point-j*each)*p.ref.states.n])
		}
		if err := g.Apply(z, next); err != nil {
			return nil, err
		}
		for o, want := range p.ref.y[(point+each)*p.ref.states.n] {
			d := next[g.N+o] - want
			out[o] += d * d / float64(samples)
		}
	}
	for o := range out {
		if out[o] = math.Sqrt(out[o]); p.ref.sizes[o] > 0 {
			out[o] /= p.ref.sizes[o]
		}
	}
	return out, nil
}

// fineTwins makes a system of twins like those of the reference, which take longer steps in
// several of theirs.
func (p *Forecaster) fineTwins(s *twin.Scheme) ([]*twin.Twin, *master.System, error) {
	twins, _, err := p.Twins(p.ref.scheme, p.ref.h, -1, 1, true)
	if err != nil {
		return nil, nil, err
	}
	for i, t := range twins {
		t.Fine = true
		if t.Decl.Caps.VariableStep = !s.Holds(p.Models[i]); !t.Decl.Caps.VariableStep {
			continue
		}
		t.Order = highestDegree
		t.Decl.Caps.InputDerivatives = true
	}
	sys, err := p.Couple(twins, -1, 1) // anew, for what they can do now
	return twins, sys, err
}

// highestDegree is that of polynomials that twins in fine steps take.
const highestDegree = 5
