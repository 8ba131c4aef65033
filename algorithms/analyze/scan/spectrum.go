package scan

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

// Eigen is a mode of the coupled run: its outputs are multiplied by Value in every macro step.
type Eigen struct {
	Value   complex128
	Outputs []float64 // magnitudes
	Lasts   bool      // there is also an eigenvalue of 1, or undamped motion of a component that nothing feeds
	Coupled float64   // largest magnitude without components that nothing feeds, set by Spectrum
}

// Radius returns the growth per macro step.
func (e Eigen) Radius() float64 {
	if e.Lasts {
		return max(cmplx.Abs(e.Value), 1)
	}
	return cmplx.Abs(e.Value)
}

// Frequency returns that of the mode in Hz.
func (e Eigen) Frequency(H float64) float64 {
	return math.Abs(cmplx.Phase(e.Value)) / (2 * math.Pi * H)
}

// Spectrum returns the dominant mode of the strategy at steps of size h, with its outputs if outputs is set; scaled and
// gain are those of twin.Point.Twins.
//
// States of components that nothing feeds, and that no input reaches, are on no loop: the coupling does not change
// their eigenvalues, which are compared with those of the coupled system.
func (p *Scanner) Spectrum(s *twin.Scheme, h float64, scaled int, gain float64, outputs bool) (Eigen, error) {
	mode, err := p.coupledSpectrum(s, h, scaled, gain, outputs, false)
	if err != nil {
		return mode, err
	}
	mode.Coupled = cmplx.Abs(mode.Value)
	for i := range p.Models {
		step := p.StepOf(i, s, h)
		own, uncertain, err := p.Free(i, step)
		if step != h { // per macro step
			own, uncertain = cmplx.Pow(own, complex(h/step, 0)), uncertain*max(h/step, 1)
		}
		switch size := cmplx.Abs(own); {
		case err != nil:
			return mode, err
		case own == 0:
		case math.Abs(size-1) <= max(linear.Marginal, uncertain):
			mode.Lasts = true
		case size > cmplx.Abs(mode.Value):
			mode.Value = own
			if outputs {
				all, err := p.coupledSpectrum(s, h, scaled, gain, true, true)
				if err != nil {
					return mode, err
				}
				mode.Outputs = all.Outputs
			}
		}
	}
	return mode, nil
}

// Free returns the largest eigenvalue of component i over steps of size h if nothing feeds it and it has states that no
// input reaches, and its uncertainty; 0 = there are none, or its motion is not known to be linear.
func (p *Scanner) Free(i int, h float64) (own complex128, uncertain float64, err error) {
	for k := p.X.Sys.InAt[i]; k < p.X.Sys.InAt[i+1]; k++ {
		if p.X.Sys.SourceSubsystem(k) >= 0 {
			return 0, 0, nil
		}
	}
	r, err := p.Over(i, h)
	if err != nil || r.Whole == nil || r.OwnMisfit > twin.Good {
		return 0, 0, err
	}
	return r.Whole.Largest(), linear.SlowPart * r.OwnMisfit, nil
}

// coupledSpectrum is Spectrum without components that nothing feeds; whole models include the states that no input reaches.
func (p *Scanner) coupledSpectrum(s *twin.Scheme, h float64, scaled int, gain float64, outputs, whole bool) (Eigen, error) {
	twins, sys, err := p.TwinsOf(s, h, scaled, gain, false, whole)
	if err != nil {
		return Eigen{}, err
	}
	if s.Hidden {
		mode, err := p.followed(s, h, twins, sys, len(twinsOutputs(twins)))
		one := []complex128{mode.Value}
		roots(one, s.Period())
		mode.Value = one[0]
		return mode, err
	}
	g, err := NewPropagator(p.Point, s, h, twins, sys)
	if err != nil {
		return Eigen{}, err
	}
	phi, err := g.form(s)
	_, closed := g.Run.Close() // frees its thread
	if err = errors.Join(err, closed); err != nil {
		return Eigen{}, err
	}
	return g.dominantOf(phi, outputs)
}

func twinsOutputs(twins []*twin.Twin) []float64 {
	var y []float64
	for _, t := range twins {
		y = append(y, t.Y0...)
	}
	return y
}

// limiting returns the index of the eigenvalue of largest magnitude among those that count. An eigenvalue of 1 is a free
// motion, such as that of a displacement that nothing holds: it is returned only if there is no other; else lasts
// reports it.
func limiting(values []complex128, counts func(i int) bool) (worst int, lasts bool) {
	worst, free := -1, 0
	for i, v := range values {
		switch {
		case !counts(i):
		case cmplx.Abs(v-1) < linear.Marginal:
			free, lasts = i, true
		case worst < 0 || cmplx.Abs(v) > cmplx.Abs(values[worst]):
			worst = i
		}
	}
	if worst < 0 {
		return free, false
	}
	return worst, lasts
}

// Growth is a motion that grows at any macro step, by a factor of e every 1/Rate seconds.
type Growth struct {
	Component string  `json:"component,omitempty"` // by itself, its inputs held; "" = of the coupled system
	Rate      float64 `json:"rate"`                // 1/s
	Frequency float64 `json:"frequency"`           // Hz
	// ByStep is set if it grows less, or not at all, at shorter steps: its solver takes steps that are too long for it.
	ByStep bool `json:"by_step,omitempty"`
}

func (g *Growth) String() string {
	motion := "a motion without oscillation"
	if g.Frequency > 0 {
		motion = fmt.Sprintf("an oscillation of %.4g Hz", g.Frequency)
	}
	return fmt.Sprintf("%s grows by a factor of e every %.3g s", motion, 1/g.Rate)
}

// sameRate is the least ratio of the growth rates at half the step and at the step if the growth is that of the component.
const sameRate = 0.75

// Alone finds the components that are unstable by themselves at steps of size H.
func (p *Scanner) Alone(H float64) (out []Growth) {
	for i := range p.Models {
		if g, err := p.alone(i, H); err == nil && g.Rate > 0 {
			half, err := p.alone(i, H/2)
			g.ByStep = err == nil && half.Rate < sameRate*g.Rate
			out = append(out, g)
		}
	}
	return out
}

// alone returns the growth of component i with held inputs at steps of size h; a rate of 0 = none.
func (p *Scanner) alone(i int, h float64) (g Growth, err error) {
	r, err := p.Over(i, h)
	if err != nil {
		return g, err
	}
	worst, grows := r.Largest(), r.Unstable()
	if own, uncertain, err := p.Free(i, h); err == nil && cmplx.Abs(own) > cmplx.Abs(worst) {
		worst, grows = own, cmplx.Abs(own) > 1+max(linear.Marginal, uncertain)
	}
	if !grows {
		return g, nil
	}
	return Growth{Component: p.Models[i].Info.Name, Rate: math.Log(cmplx.Abs(worst)) / h, Frequency: math.Abs(cmplx.Phase(worst)) / (2 * math.Pi * h)}, nil
}
