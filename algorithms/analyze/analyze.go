package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// Options of an analysis.
type Options struct {
	Start, At float64 // s; the operating point is the start, or the first communication point at or after At
	Step      float64 // macro step in s, up to the operating point and in the middle of the scan
	Tolerance float64 // of the solvers in the subsystems; 0 = their default
	Order     int     // highest extrapolation order
	// From and To bound the scanned step sizes, in s; 0 = Step/30 and Step·30.
	From, To float64
	Stop     float64 // s; errors are forecast up to here, or over a number of steps
	Error    float64 // largest acceptable error of a recommendation, defined as in Forecast
	// Bonds are the declared power bonds, BondsSeen those recognised by units.
	Bonds, BondsSeen []algorithms.Bond
	// Rates are those of the components in a run. Implicit coupling does not support rates and is analysed without them.
	Rates []algorithms.Rate
	// Own is the algorithm to judge, such as that of a run with its parameters; nil = none.
	Own *forecast.Own
	// Observe is called with the number of jobs done and of all jobs; may be nil.
	Observe func(done, all int)
	// Runs are the options of trial runs where models are missing; experiment and steps are those of the analysis.
	Runs trial.Options
}

// at returns the options of the operating point.
func (o *Options) at() twin.Options {
	return twin.Options{Start: o.Start, At: o.At, Stop: o.Stop, Step: o.Step, Tolerance: o.Tolerance, Order: o.Order, From: o.From, To: o.To}
}

// forecasts returns the options of forecasts.
func (o *Options) forecasts() forecast.Options {
	return forecast.Options{Rates: twin.OwnRates(o.Rates), Bonds: o.bonds(), Error: o.Error}
}

// analysis is an analysis at an operating point.
type analysis struct {
	*scan.Scanner
	motion *forecast.Forecaster // nil = the motion is unknown
}

// Run analyses the coupling of a system at an operating point. The subsystems are
// initialised and stepped as in a run, and cannot be used afterwards. Errors are those of
// the run to the operating point; the report gives the reason where something is unknown.
func Run(ctx context.Context, sys *master.System, o Options) (*Report, error) {
	if err := CheckRates(sys, o.Rates); err != nil {
		return nil, err
	}
	r := &Report{Step: o.Step, Tolerance: o.Tolerance, Asked: o.Error, Recommended: -1, Structure: structure(sys, o), Present: o.Own}
	for _, rate := range twin.OwnRates(o.Rates) {
		own := fmt.Sprintf("%d steps a macro step", rate.Steps)
		if rate.Over > 1 {
			own = fmt.Sprintf("one step over %d macro steps", rate.Over)
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s has a rate of its own, %s; implicit coupling, which takes no rates, is "+
			"analysed without it", rate.Component, own))
	}
	result, err := twin.At(ctx, sys, o.at(), func(p *twin.Point) error { return (&analysis{Scanner: &scan.Scanner{Point: p}}).run(r, o) })
	for _, l := range result.Loops { // with their treatment in the initialisation, and those found by trial steps
		same := func(m Loop) bool {
			return m.Initialization == l.Initialization && slices.Equal(m.Variables, l.Variables)
		}
		if k := slices.IndexFunc(r.Structure.Loops, same); k >= 0 {
			r.Structure.Loops[k].Treatment = l.Treatment
		} else {
			r.Structure.Loops = append(r.Structure.Loops, Loop{Loop: l, Why: "its gain is unknown: it was found by trial steps"})
		}
	}
	if err == nil {
		err = r.lookAtRuns(ctx, sys, o)
	}
	if err == nil && o.Own != nil {
		r.Verdict = r.judgePresent()
	}
	return r, err
}

// run fills the report.
func (p *analysis) run(r *Report, o Options) error {
	r.At = p.T
	if asked := max(o.At, o.Start); math.Abs(p.T-asked) > 1e-6*o.Step {
		r.Notes = append(r.Notes, fmt.Sprintf("the operating point is the first communication point after the requested %.10g s", asked))
	}
	moot := p.moot(&r.Structure)
	unknown := p.trust(r, o.Stop, moot)
	p.unfound(r.Structure.Algorithms)
	r.Structure.Loops = p.loops(slices.Concat(p.X.Sys.InitLoops(), p.X.Sys.Loops))
	at := o.at()
	r.From, r.To = at.Bounds()
	r.schemes = p.schemes(o.Order, twin.OwnRates(o.Rates), o.bonds())
	if unknown == "" {
		p.follow(r, o, forecast.Candidates)
	}
	if p.motion != nil {
		var usable []string
		for _, a := range r.Structure.Algorithms {
			if a.Refused == "" {
				usable = append(usable, a.Preset)
			}
		}
		r.Varying = forecast.Varies(usable, o.Order)
	}
	if err := p.lookAll(r, o, unknown); err != nil {
		return err
	}
	if moot == "" {
		r.Alone = p.Alone(r.Step)
		r.Whole = r.whole(r.schemes, func(s *twin.Scheme, h float64) float64 {
			mode, err := p.Spectrum(s, h, -1, 1, false)
			if err != nil {
				return 0
			}
			return mode.Frequency(h)
		})
	}
	switch {
	case o.Own == nil:
	case p.motion == nil:
		r.WhyNotOwn = cmp.Or(unknown, r.WhyNoError, "there is no forecast of the motion")
	default:
		r.Own, r.WhyNotOwn = p.motion.SettleOwn(o.Own, twin.OwnRates(o.Rates))
	}
	r.doubtFollowed(r.schemes)
	r.recommend(o.Error)
	r.RecommendedVarying = forecast.Choose(r.Varying, r.Promised, o.forecasts())
	return nil
}

// lookAll analyses the strategies and forecasts the algorithms with variable steps. unknown is why nothing can be known of
// the stability, or "". The error is that of the context.
func (p *analysis) lookAll(r *Report, o Options, unknown string) error {
	n := len(r.schemes)
	r.Strategies = make([]Strategy, n)
	for k, s := range r.schemes {
		r.Strategies[k] = Strategy{Preset: s.Preset, Order: s.Order, Params: s.Params, Rates: s.RateTexts(), Why: unknown}
	}
	return p.Each(n+len(r.Varying), o.Observe, func(k int) {
		if k < n {
			p.look(&r.Strategies[k], r.schemes[k], r)
		} else {
			p.motion.Settle(&r.Varying[k-n], o.forecasts())
		}
	}, func(k int, err error) {
		if k < n {
			s := &r.Strategies[k]
			*s = Strategy{Preset: s.Preset, Order: s.Order, Params: s.Params, Rates: s.Rates, Why: err.Error()}
		} else {
			v := &r.Varying[k-n]
			v.Settled, v.Why = nil, err.Error()
		}
	})
}

// follow forecasts the coupled motion for candidates of the step, unless discrete connections make it unknown.
func (p *analysis) follow(r *Report, o Options, candidates []float64) {
	switch d := r.Structure.Discrete; {
	case len(d) > 1:
		r.WhyNoError = fmt.Sprintf("the motion is unknown: %d connections, such as %s -> %s, are not of Reals; in the "+
			"models they keep their values at the operating point [discrete]", len(d), d[0].From, d[0].To)
		return
	case len(d) > 0:
		r.WhyNoError = fmt.Sprintf("the motion is unknown: %s -> %s is not of Reals; in the models it keeps its value at "+
			"the operating point [discrete]", d[0].From, d[0].To)
		return
	}
	f := forecast.New(p.Point, o.Stop, o.Error, candidates)
	if r.Motion = f.Motion; r.WhyNoError == "" {
		p.motion = f
	}
	if len(f.Apart) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the errors leave out %s: these outputs feed no component and are not linear "+
			"over the motion", twin.SomeNames(f.Apart)))
	}
}

// schemes returns the strategies to analyse.
func (p *analysis) schemes(order int, rates []algorithms.Rate, bonds []algorithms.Bond) []*twin.Scheme {
	var out []*twin.Scheme
	for _, preset := range []string{twin.Explicit, twin.GaussSeidel, twin.Implicit, twin.Corrector, twin.EnergyCorrection} {
		for k := range order + 1 {
			s := &twin.Scheme{Preset: preset, Order: k, Rates: rates}
			switch preset {
			case twin.EnergyCorrection:
				if s.Hidden, s.Bonds = true, bonds; len(bonds) == 0 {
					continue
				}
			case twin.Implicit:
				s.Params, s.Rates = map[string]string{"solver.tolerance": "1e-9"}, nil
			case twin.Corrector:
				s.Hidden = true
			}
			out = append(out, s)
		}
	}
	return out
}

// trust finds the models of the subsystems over steps of the analysis and compares them with the subsystems. It fills
// r.Subsystems and returns why nothing can be known of the coupling, or "". moot is the result of moot.
func (p *analysis) trust(r *Report, stop float64, moot string) (unknown string) {
	unknown = moot
	for i, m := range p.Models {
		c := m.Info.Caps
		s := Subsystem{Name: m.Info.Name, Model: m.Source, Why: m.Why, Rollback: p.X.Reverts(i),
			Serializes: c.SerializeState, VariableStep: c.VariableStep,
			InputDerivatives: c.InputDerivatives, DirectionalDerivatives: c.DirectionalDerivative, Stateless: m.Info.Stateless}
		if moot != "" {
			s.Unmeasured = true
		} else if m.Source == twin.None {
			unknown = fmt.Sprintf("there is no model of %s: %s", m.Info, m.Why)
		} else if model, err := p.Over(i, r.Step); err != nil {
			unknown = err.Error()
			s.Why = err.Error()
		} else {
			s.States, s.Misfit = model.States(), model.Misfit
			if own, _, err := p.Free(i, r.Step); err == nil && own != 0 {
				s.States = model.Whole.States()
			}
			why, err := p.Beside(i, model, stop)
			if m.Source == twin.Measured { // the run goes on from here
				err = errors.Join(err, p.X.Restore(i))
			}
			if err != nil {
				why = fmt.Sprintf("%s could not be compared with its model: %v", m.Info, err)
			}
			if why != "" {
				unknown, s.Why = why, why
			}
		}
		r.Subsystems = append(r.Subsystems, s)
	}
	return unknown
}

// moot returns why the stability is unknown or irrelevant, with any models, or "".
func (p *analysis) moot(s *Structure) string {
	if why := s.heldOnLoop(); why != "" {
		return why
	}
	if !p.coupled() {
		return "no component feeds another: there is no coupling that could be unstable [uncoupled]"
	}
	return ""
}

// coupled reports whether a component feeds another.
func (p *analysis) coupled() bool {
	for k := range p.X.W {
		if p.X.Sys.SourceSubsystem(k) >= 0 {
			return true
		}
	}
	return false
}

// look analyses one strategy, unless out.Why is set already: then nothing is known of any strategy.
func (p *analysis) look(out *Strategy, s *twin.Scheme, r *Report) {
	if out.Why == "" && s.Preset == twin.Corrector {
		out.Why = p.identified()
	}
	if out.Why == "" {
		out.Why = p.refused(s)
	}
	if out.Why != "" {
		return
	}
	if out.Why = nonlinear(s); out.Why == "" {
		out.Result, out.Why = p.Scan(s, r.Step, r.From, r.To)
	}
	if p.motion == nil {
		return
	}
	out.Local, out.WhyNoLocal = p.motion.Local(s)
	out.Forecasts = p.motion.Forecasts(s)
}

// identified returns why the model-based corrector is not analysed if it has to identify a model during the run, or "".
func (p *analysis) identified() string {
	for _, m := range p.Models {
		if len(m.Info.In) > 0 && m.Outputs() > 0 && m.Space == nil {
			return fmt.Sprintf("a run has to identify the model of %s, since it gives no directional derivatives, and is uncorrected "+
				"until then: neither its stability nor its error can be forecast [learning]", m.Info)
		}
	}
	return ""
}

// nonlinear returns why the stability of a nonlinear strategy is unknown, or "".
func nonlinear(s *twin.Scheme) string {
	if s.Preset == twin.EnergyCorrection {
		return "it is not linear, because it divides an energy by a velocity: eigenvalues do not show whether it is stable [not-covered]"
	}
	return ""
}

// refused returns why the strategy cannot be used or analysed with these subsystems, or "".
func (p *analysis) refused(s *twin.Scheme) string {
	if why := s.Beyond(); why != "" {
		return why
	}
	if s.Preset == twin.Corrector {
		for _, m := range p.Models {
			if m.Departs != "" {
				return fmt.Sprintf("a run corrects by the directional derivatives of %s, which do not agree with its steps: %s", m.Info, m.Departs)
			}
		}
	}
	alg, err := s.Algorithm()
	if err == nil {
		err = alg.Check(p.X.Sys)
	}
	if err != nil {
		return err.Error()
	}
	return p.fails(alg)
}

// CheckRates returns an error for rates that a run would refuse, such as rates of unknown components.
func CheckRates(sys *master.System, rates []algorithms.Rate) error {
	if len(rates) == 0 {
		return nil
	}
	choice, err := algorithms.New(twin.Explicit, nil, algorithms.With{Rates: rates})
	if err != nil {
		return err
	}
	return choice.Algorithm.Check(sys)
}

// ownRates is the largest relative difference of growth rates at the shortest steps that counts as growth of the system
// itself.
const ownRates = 0.02

// whole returns the growth of the coupled system that no algorithm and no step can change: the rate that all algorithms
// have at the shortest steps of the scan. nil = there is none, or the motion is too large for linear models. frequency
// returns the frequency in Hz of the mode of a strategy at a step.
func (r *Report) whole(all []*twin.Scheme, frequency func(s *twin.Scheme, h float64) float64) *scan.Growth {
	if r.Large != "" {
		return nil
	}
	least, most, n, last := math.Inf(1), 0.0, 0, -1
	var at float64
	for k := range r.Strategies {
		s := &r.Strategies[k]
		if all[k].Hidden || len(s.Points) == 0 || s.Multiples > 0 {
			continue
		}
		first := s.Points[0]
		if linear.Stable(first.Radius) {
			return nil
		}
		rate := math.Log(first.Radius) / first.Step
		least, most = min(least, rate), max(most, rate)
		n, last, at = n+1, k, first.Step
	}
	if n < 2 || most-least > ownRates*most {
		return nil
	}
	return &scan.Growth{Rate: most, Frequency: frequency(all[last], at)}
}
