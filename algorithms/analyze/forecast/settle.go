package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// flows are a coupled system for steps of any size, made of the models for macro steps of one size. The effect of the
// internal steps of a solver is that at this size.
type flows struct {
	twins []*twin.Twin
	sys   *master.System
}

// sampledStep is StepOf for orders that may be above the highest of the analysis.
func (p *Forecaster) sampledStep(i int, s *twin.Scheme, h float64) float64 {
	as := *s
	if as.Order = 0; s.Order > p.Models[i].Takes {
		as.Order = twin.MostDerivatives
	}
	return p.StepOf(i, &as, h)
}

// flowing returns flows from the models for macro steps of size h at the order and rates of a scheme. Outputs and
// inputs are absolute values, as needed for tolerances.
func (p *Forecaster) flowing(h float64, like *twin.Scheme) (out flows, err error) {
	for i, m := range p.Models {
		own := p.sampledStep(i, like, h)
		r, err := p.Over(i, own)
		if err != nil {
			return out, err
		}
		if r.Whole != nil {
			r = r.Whole
		}
		f, err := linear.NewFlow(r, own, len(m.Info.In))
		if err != nil {
			return out, fmt.Errorf("%s over steps of %.4g s: %w", m.Info, own, err)
		}
		t := twin.NewTwin(m.Info, r, own, m.Takes)
		t.Flow, t.Driven = f, true
		p.Absolute(i, t)
		out.twins = append(out.twins, t)
	}
	if out.sys, err = p.Couple(out.twins, -1, 1); err != nil {
		return out, err
	}
	return out, out.agree()
}

// agree sets the outputs at the start to those after a step of length 0: (I − D L) y = v. A jump between them, even one as
// small as the misfit of a model, would be an error that no step makes smaller.
func (f *flows) agree() error {
	ny := 0
	for _, t := range f.twins {
		ny += len(t.Y)
	}
	if ny == 0 {
		return nil
	}
	m, v := mat.NewDense(ny, ny, nil), mat.NewVecDense(ny, nil)
	at := 0
	for i, t := range f.twins {
		d := t.Flow.Space.D
		for o := range t.Y {
			m.Set(at+o, at+o, 1)
			v.SetVec(at+o, d.At(o, len(t.U[0])))
			for k := range t.U[0] {
				if y, ok := f.sys.Source(f.sys.InAt[i] + k); ok {
					m.Set(at+o, y, m.At(at+o, y)-d.At(o, k)*f.sys.Gain(f.sys.InAt[i]+k))
				}
			}
		}
		at += len(t.Y)
	}
	var y mat.VecDense
	if err := y.SolveVec(m, v); err != nil {
		return fmt.Errorf("the gain around a loop is 1: %w", err)
	}
	at = 0
	for _, t := range f.twins {
		for o := range t.Y0 {
			t.Y0[o] = y.AtVec(at + o)
		}
		at += len(t.Y0)
	}
	return nil
}

// off returns the largest distance of the models for macro steps between short and long, among Candidates, from flows made
// at another step, and the component that has it.
func (p *Forecaster) off(f *flows, like *twin.Scheme, short, long float64) (worst float64, of *master.Info, err error) {
	// Shorter steps too: an oscillation with a period below two steps looks slow.
	const below = 3
	for _, c := range Candidates {
		h := c * p.Step
		if h < short/below || h > long*beyond {
			continue
		}
		for i, m := range p.Models {
			own := p.sampledStep(i, like, h)
			r, err := p.Over(i, own)
			if err != nil {
				return 0, nil, err
			}
			away, err := f.twins[i].Flow.Off(r, own, len(m.Info.In))
			if err != nil {
				return 0, nil, fmt.Errorf("%s: %w", m.Info, err)
			}
			if !(away <= twin.Strayed) {
				return 0, nil, fmt.Errorf("over steps of %.4g s, the response of %s differs by %.2g from that over steps of other sizes: "+
					"its internal steps depend on the macro step [own-steps]", own, m.Info, away)
			}
			if of == nil || away > worst {
				worst, of = away, m.Info
			}
		}
	}
	return worst, of, nil
}

// settled forecasts an algorithm of the order and rates of a scheme, on flows made at a step near those that it chooses.
//
// An error control compares solutions over steps of several sizes. Solvers inside the components may make these differ,
// which flows for one size do not show. estimates is the relative error that the algorithm
// aims at, 0 = it estimates none.
func (p *Forecaster) settled(make func() (master.Algorithm, error), like *twin.Scheme, estimates float64) (s Settled, err error) {
	const passes = 3
	h := p.Step
	for n := 1; ; n++ {
		alg, err := make()
		if err != nil {
			return s, err
		}
		f, err := p.flowing(h, like)
		for k := len(Candidates) - 1; k >= 0 && err != nil; k-- { // fast motions show only in shorter steps
			if shorter := Candidates[k] * p.Step; shorter < h {
				h = shorter
				f, err = p.flowing(h, like)
			}
		}
		if err != nil {
			return s, err
		}
		if s, err = p.settle(alg, &f); err != nil || s.Accepted == 0 {
			return s, err
		}
		off, of, err := p.off(&f, like, s.Short, s.Long)
		if err == nil && estimates > 0 && off > min(twin.Good, estimates) {
			return s, fmt.Errorf("its error estimate depends on how the solver inside %s responds to steps of different sizes, "+
				"which the models do not show [own-steps]", of)
		}
		if least, most := Candidates[0]*p.Step, Candidates[len(Candidates)-1]*p.Step; err == nil && off > twin.Good &&
			(s.Short < least/beyond || s.Long > most*beyond) {
			err = fmt.Errorf("it takes steps of %.2g to %.2g s, but the solver inside %s behaves differently over the steps of "+
				"%.2g to %.2g s for which there are models: choose a --step-size nearer to its steps [own-steps]", s.Short, s.Long, of, least, most)
		}
		s.Doubt = max(p.doubt, off)
		nearest := slices.MinFunc(Candidates, func(a, b float64) int {
			return cmp.Compare(math.Abs(math.Log(a*p.Step/s.Step)), math.Abs(math.Log(b*p.Step/s.Step)))
		}) * p.Step
		if err == nil && off <= twin.Good || nearest == h || n == passes {
			return s, err
		}
		h = nearest
	}
}

// settle runs an algorithm on flows over the forecast motion.
func (p *Forecaster) settle(alg master.Algorithm, f *flows) (s Settled, err error) {
	run, err := master.NewRun(f.sys, alg, master.Options{Stop: p.Horizon, Step: p.Step, Workers: 1})
	if err != nil {
		return s, err
	}
	pieces, square, t, err := p.followSteps(run)
	result, closed := run.Close()
	if cause := p.Ctx.Err(); cause != nil {
		return s, cause
	}
	switch {
	case err != nil:
		s.Fails = err.Error()
	case closed != nil:
		return s, closed
	}
	s.Cut, s.Time = len(pieces) > mostSteps, t
	if len(pieces) == 0 {
		return s, nil
	}
	for k := range square {
		square[k] /= t
	}
	if s.Error, s.Of, err = p.worst(square); err != nil {
		return s, err
	}
	s.Short, s.Step, s.Long = quantile(pieces, t, shortQuantile), quantile(pieces, t, 0.5), quantile(pieces, t, longQuantile)
	s.Accepted, s.Rejected = result.Accepted, result.Rejected
	for k, n := range result.Orders {
		if n > result.Orders[s.MostOrder] {
			s.MostOrder = k
		}
	}
	s.FMUSteps = stepsPerSecond(&result)
	return s, nil
}

// followSteps makes the steps of a run, at most mostSteps+1. It returns the steps (s), the integral over time of the squared
// error of each output, and the time reached.
func (p *Forecaster) followSteps(run *master.Run) (pieces, square []float64, t float64, err error) {
	square = make([]float64, len(p.ref.sizes))
	want := make([]float64, len(p.ref.sizes))
	err = run.Start(p.Ctx)
	for more := true; err == nil && more && len(pieces) <= mostSteps; {
		if more, err = twin.MacroStep(p.Ctx, run); err != nil {
			break
		}
		at := run.Point()
		H := at.T - t
		if t = at.T; H <= 0 {
			continue
		}
		pieces = append(pieces, H)
		p.ref.at(t, want)
		k := 0
		for i, m := range p.Models {
			for n := range m.Outputs() {
				d := at.Y[k] - p.Y[p.X.Sys.OutAt[i]+n] - want[k]
				square[k] += H * d * d
				k++
			}
		}
	}
	return pieces, square, t, err
}

// quantile returns the step length that is not exceeded during a part of the time t, the sum of all steps.
func quantile(steps []float64, t, part float64) float64 {
	sorted := slices.Sorted(slices.Values(steps))
	sum := 0.0
	for _, h := range sorted {
		if sum += h; sum >= part*t {
			return h
		}
	}
	return sorted[len(sorted)-1]
}
