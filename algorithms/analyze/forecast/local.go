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

// Local is the expected error of the coupling in one macro step from exact values at
// the last communication points (haid (31), meyer 4): root mean square over the horizon, divided by the
// standard deviation of the output, for the output Of, where it is largest.
type Local struct {
	Step  float64 `json:"step"` // s, that of the analysis
	Error float64 `json:"error"`
	Of    string  `json:"of"`
	// Growth is the power of the step with which the error grows between half and twice the step.
	Growth float64 `json:"growth"`
}

const (
	// localSamples is the number of macro steps along the horizon, localFewer that of many subsystems.
	localSamples, localFewer = 24, 4
	// localSpan is the largest compared step, in steps of the analysis; the smallest is its inverse.
	localSpan = 2
	// slowest plus the order is the least power with which the error of implicit coupling in one step grows: its
	// polynomials go through the end of the step, and their error in between grows at least with the order + 1. An error
	// that grows more slowly is that of the reference, which is implicit coupling in shorter steps.
	slowest = 0.6
)

// Local returns the local error of a strategy at the step of the analysis, or why it is unknown.
//
// From states and outputs of the reference, the strategy makes one macro step on twins that take
// the steps of the reference, for any macro step. The result is the error of the coupling
// alone, without the effect of the step on the solvers inside the FMUs. Twins use
// the polynomials of the inputs themselves, without sampling in substeps.
func (p *Forecaster) Local(s *twin.Scheme) (*Local, string) {
	if s.Preset == twin.Implicit && len(p.Models) > twin.Many {
		return nil, fmt.Sprintf("the error in one step of implicit coupling is not computed for more than %d components [too-large]", twin.Many)
	}
	if why := p.noLocal(s); why != "" {
		return nil, why
	}
	if s.Hidden {
		return nil, "its error in a step depends on its earlier corrections [not-covered]"
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
		return nil, "no output has an error after a step [no-motion]"
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
		return nil, "it diverges to NaN or infinity [diverges]"
	}
	if s.Preset == twin.Implicit && l.Growth < float64(s.Order)+slowest {
		return nil, fmt.Sprintf("for order %d it is %.1e or less and does not grow with the step like an error of the "+
			"coupling (H^%.1f): it is the error of the reference motion, which has steps of %.2g s [not-covered]",
			s.Order, l.Error, math.Round(10*l.Growth)/10+0, p.ref.h)
	}
	return l, ""
}

// noLocal returns why the error in one macro step is unknown with these rates, or "".
func (p *Forecaster) noLocal(s *twin.Scheme) string {
	const pieces = finer * 10 / localSpan // steps of the reference in the shortest macro step
	for _, r := range s.Rates {
		if r.Over > 1 {
			return fmt.Sprintf("%s takes one step over %d macro steps, so that a single macro step has no error [not-covered]", r.Component, r.Over)
		}
		if pieces%r.Steps != 0 {
			return fmt.Sprintf("%s takes %d steps per macro step, and the steps of the reference motion do not divide into them [not-covered]", r.Component, r.Steps)
		}
		for _, m := range p.Models {
			if m.Info.Name == r.Component && m.Order < s.Order {
				return fmt.Sprintf("%s holds its inputs in each of %d steps per macro step; this error cannot be separated from "+
					"that of its steps [not-covered]", r.Component, r.Steps)
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
	defer func() { _, _ = g.Run.Close() }() // its result is not used
	each := int(math.Round(c * localSpan))  // points of the reference in a macro step
	first := s.Order * each
	last := len(p.ref.states.x) - 1 - each
	samples := localSamples
	if len(p.Models) > twin.Many {
		samples = localFewer
	}
	if last <= first {
		return nil, errors.New("the forecast motion is too short for its history [no-motion]")
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

// fineTwins returns twins like those of the reference, which make longer steps of several of these.
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
	sys, err := p.Couple(twins, -1, 1) // again, with the changed capabilities
	return twins, sys, err
}

// highestDegree is the highest degree of input polynomials for twins in fine steps.
const highestDegree = 5
