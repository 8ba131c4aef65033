package analyze

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"runtime"
	"slices"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/master"
)

// Options of an analysis.
type Options struct {
	Start, At float64 // s; the operating point is the start, or the first communication point at or after At
	Step      float64 // macro step in s, of the way there and in the middle of the scan
	Tolerance float64 // told to the subsystems; 0 = none
	Order     int     // highest extrapolation order that is looked at
	// From and To bound the step sizes that are scanned, in s; 0 = Step/30 and Step·30.
	From, To float64
	Stop     float64 // s; errors are forecast up to here, or over a number of steps
	Error    float64 // that is asked of what is recommended, as in Forecast
	// Bonds are those that the system declares, BondsSeen those that units show.
	Bonds, BondsSeen []algorithms.Bond
	// Rates are those that the components of the system would have in a run. Implicit coupling, which takes none, is
	// analysed without them.
	Rates []algorithms.Rate
	// Own gives the algorithm of a run whose steps are to be forecast besides, as with parameters of the user's; nil = none.
	Own *Own
	// Observe is told how much is done, out of all; nil = nobody is.
	Observe func(done, all int)
	// Runs may show what the models do not. Their experiment and steps are those of the analysis.
	Runs trial.Options
}

// bounds returns the range of step sizes that is scanned.
func (o *Options) bounds() (from, to float64) {
	const part = 30
	return cmp.Or(o.From, o.Step/part), cmp.Or(o.To, o.Step*part)
}

// macroStep takes a macro step of a run. That a subsystem ends the simulation is an error
// here: what is measured after it means nothing.
func macroStep(ctx context.Context, run *master.Run) (more bool, err error) {
	more, err = run.Step(ctx)
	if err == nil && run.Terminated() {
		err = fmt.Errorf("%w at t = %.12g s", master.ErrTerminated, run.Time())
	}
	return more, err
}

// at has something done at the operating point of a system.
func at(ctx context.Context, sys *master.System, o Options, do func(p *point) error) (master.Result, error) {
	way, err := algorithms.NewCoupling(algorithms.Config{})
	if err != nil {
		return master.Result{}, err
	}
	probe := &prober{Coupling: way, at: max(o.At, o.Start), order: o.Order}
	var failed error
	probe.do = func(ctx context.Context, x *master.Exec, t float64) error {
		p, err := newPoint(ctx, x, o, t, probe)
		if err == nil {
			err = guarded(func() error { return do(p) })
		}
		failed = err
		return err
	}
	run, err := master.NewRun(sys, probe, master.Options{Start: o.Start, Stop: probe.at + 2*o.Step, Step: o.Step, Tolerance: o.Tolerance})
	if err != nil {
		return master.Result{}, err
	}
	err = run.Start(ctx)
	for more := true; err == nil && more && !probe.done; {
		more, err = macroStep(ctx, run)
	}
	result, closed := run.Close()
	if failed != nil {
		return result, failed
	}
	if err == nil && !probe.done {
		err = errors.New("the run ends before the operating point")
	}
	if err == nil {
		err = closed
	}
	return result, err
}

// guarded does part of an analysis. A fault in it is an error, and ends nothing else: a run
// that is to follow does not depend on what is told beforehand.
func guarded(do func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("it could not be analysed, through a fault of macrostep that is worth a report: %v", fault)
		}
	}()
	return do()
}

// radius is the growth in one macro step.
func (e eigen) radius() float64 {
	if e.lasts {
		return max(cmplx.Abs(e.value), 1)
	}
	return cmplx.Abs(e.value)
}

// frequency gives that of the mode in Hz.
func (e eigen) frequency(H float64) float64 {
	return math.Abs(cmplx.Phase(e.value)) / (2 * math.Pi * H)
}

// Report is what an analysis finds.
type Report struct {
	At         float64     `json:"at"`   // s, the operating point
	Step       float64     `json:"step"` // s
	From       float64     `json:"from"` // s, bounds of the scan
	To         float64     `json:"to"`
	Structure  Structure   `json:"structure"`
	Subsystems []Subsystem `json:"subsystems"`
	Strategies []Strategy  `json:"strategies"`
	// Varying are the algorithms that choose their steps; none where errors are not forecast.
	Varying []Varying `json:"variable_steps,omitempty"`
	Horizon float64   `json:"horizon,omitempty"` // s after the operating point, over which errors are forecast
	// Stray returns how far the models are off the components along the forecast motion.
	Stray *Stray `json:"stray,omitempty"`
	// Large tells that the motion is too large for linear models, so that what is told of the
	// stability holds for small motions about the operating point alone; "" = it is not.
	Large string `json:"large,omitempty"`
	// WhyNoError tells why they are not.
	WhyNoError string `json:"why_no_error,omitempty"`
	// Alone are the components that are unstable by themselves. Whole is the growth of the coupled system by
	// itself, which no step and no algorithm changes; nil = it is stable, or that is not known.
	Alone []Growth `json:"unstable_alone,omitempty"`
	Whole *Growth  `json:"unstable_whole,omitempty"`
	Asked float64  `json:"asked_error"` // of what is recommended
	// Recommended is the index of the strategy to take, −1 if none is stable.
	Recommended int       `json:"recommended"`
	StepToTake  float64   `json:"step_to_take"`       // s
	Promised    *Forecast `json:"promised,omitempty"` // of it at this step
	Why         string    `json:"why"`
	// RecommendedVarying is an algorithm that chooses its steps and keeps to the error at less cost than what is
	// recommended of those with steps of one size; nil = there is none.
	RecommendedVarying *Choice `json:"recommended_variable_steps,omitempty"`
	// Own is the forecast of the algorithm of Options.Own, WhyNotOwn why there is none.
	Own       *Settled `json:"own,omitempty"`
	WhyNotOwn string   `json:"why_not_own,omitempty"`
	// Notes tell what of the system is not as it is analysed.
	Notes []string `json:"notes,omitempty"`

	schemes []*scheme // of Strategies
}

// Stray is how far a component is from its model along the forecast motion, as root mean squares
// over time relative to how much the output moves.
type Stray struct {
	Off float64 `json:"off"`
	Of  string  `json:"of"` // the output that is farthest off
}

// Subsystem tells what is known of one.
type Subsystem struct {
	Name  string `json:"name"`
	Model string `json:"model"` // Measured, Directional, Renewed, None
	Why   string `json:"why,omitempty"`
	// Unmeasured tells that its model was not looked at, as nothing could be told of the coupling anyway.
	Unmeasured bool `json:"not_measured,omitempty"`
	// States of the model at the step of the analysis.
	States int `json:"states"`
	// Misfit returns how far the measured responses are from those of the model, relative to the largest
	// of each output to each input.
	Misfit float64 `json:"misfit"`
	// What decides which algorithms can be used.
	Rollback               bool `json:"rollback"`
	Serializes             bool `json:"serializes_state"`
	VariableStep           bool `json:"variable_step"`
	InputDerivatives       bool `json:"input_derivatives"`
	DirectionalDerivatives bool `json:"directional_derivatives"`
	Stateless              bool `json:"stateless"`
}

// Strategy is one algorithm at one order.
type Strategy struct {
	Preset string            `json:"algorithm"`
	Order  int               `json:"order"`
	Params map[string]string `json:"params,omitempty"`
	// Rates are those that it is analysed with, as COMPONENT=N steps a macro step or COMPONENT=1/N, one step over
	// N macro steps; none = each component takes one step a macro step.
	Rates  []string `json:"rates,omitempty"`
	Points []Radius `json:"points"`
	// Stable are the ranges of the step size in which nothing grows, within the scan; known if there are Points;
	// stability is not monotone in the step, so there may be several.
	Stable []Range `json:"stable"`
	// Gaps are ranges of the step size within the scan of which nothing is known, with the reason:
	// those from the first to the last step that was looked at in vain.
	Gaps []Gap `json:"gaps,omitempty"`
	// Multiples is the step of whose whole multiples alone something is told, where FMUs take steps of
	// their own; 0 = the points are those of the scan.
	Multiples float64 `json:"multiples_of,omitempty"`
	// Now is the spectral radius at the step of the analysis; see Known.
	Now float64 `json:"radius"`
	// Lasts tells that something does not die out: there is an eigenvalue of 1 besides that of
	// Mode, of a displacement that nothing holds, or of a gain of 1 around a loop, or something that nothing
	// feeds oscillates without damping. Besides is the
	// radius of all else.
	Lasts   bool    `json:"lasts,omitempty"`
	Besides float64 `json:"radius_besides,omitempty"`
	Mode    *Mode   `json:"mode,omitempty"`
	// Forecasts of the error and cost, at steps in the neighbourhood of that of the analysis.
	Forecasts []Forecast `json:"forecasts,omitempty"`
	// Local is the error of one step, WhyNoLocal why it is not known.
	Local      *Local `json:"local,omitempty"`
	WhyNoLocal string `json:"why_no_local,omitempty"`
	// Untold is what a real run will do otherwise than the models, "" if nothing: such a
	// strategy is not recommended.
	Untold string `json:"untold,omitempty"`
	Why    string `json:"why,omitempty"` // it cannot be told, or not be used, because of this
	// Seen tells that runs of the system show what the models do not; nil = all is from the models.
	Seen *Seen `json:"runs,omitempty"`
}

// Known reports whether Now is.
func (s *Strategy) Known() bool { return s.Mode != nil || s.Seen != nil && s.Seen.Now }

// MarshalJSON gives null for the radius at the step of the analysis, and for the stable ranges, where they are not
// known, with the reason in "unknown": 0 would be a coupling that dies out at once, and no range one that
// is stable nowhere.
func (s Strategy) MarshalJSON() ([]byte, error) {
	type plain Strategy
	out := struct {
		plain
		Now     *float64 `json:"radius"`
		Unknown string   `json:"unknown,omitempty"`
	}{plain: plain(s)}
	if s.Known() {
		out.Now = &s.Now
	}
	switch {
	case len(s.Points) == 0:
		out.Points, out.Stable = nil, nil
	case s.Stable == nil:
		out.Stable = []Range{}
	}
	if out.Now == nil || out.Stable == nil {
		out.Unknown = cmp.Or(s.Why, "it was not looked at")
	}
	return json.Marshal(out)
}

// AtLimit tells that the radius at the step of the analysis is 1 within what counts as no growth,
// a millionth in a step: what is not damped at all stands there, and what grows that slowly.
func (s *Strategy) AtLimit() bool {
	return len(s.Points) > 0 && math.Abs(s.Now-1) <= marginal && s.Mode != nil
}

// slowest is the radius of all that does not last.
func (s *Strategy) slowest() float64 {
	if s.Lasts {
		return s.Besides
	}
	return s.Now
}

// IsStable reports whether nothing grows at the step of the analysis.
func (s *Strategy) IsStable() bool { return s.Now <= 1+marginal }

// Radius is the spectral radius of the coupled run at one step size: the factor by which
// what grows most, or dies out slowest, is multiplied in every macro step.
type Radius struct {
	Step   float64 `json:"step"` // s
	Radius float64 `json:"radius"`
}

// Range of step sizes in s.
type Range struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Gap is a range of the step size, in s, of which nothing is known.
type Gap struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Why  string  `json:"why"`
}

// Mode is what limits the stability: the dominant mode at the step of the analysis.
type Mode struct {
	Frequency float64 `json:"frequency"` // Hz
	Outputs   []Part  `json:"outputs"`   // those that take part most
	// Connections by how much a change of their gain changes the radius, dρ/d ln g.
	Connections []Part `json:"connections"`
}

// Part is a share of something in a mode.
type Part struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

const (
	scanPoints = 61
	// Above manySubsystems, less is looked at: fewer points, few connections, and only where something grows.
	manySubsystems  = 20
	fewerPoints     = 13
	fewerSteps      = 250 // of a forecast
	coarsePrecision = 2e-3
	// windowSteps is how long responses are followed at least, in steps of the analysis.
	windowSteps = 10
	// marginal is how far above 1 a radius counts as no growth: a system without
	// damping stands at 1.
	marginal = 1e-6
	// Where fewer than fewKnown points of the scan are known, or less than one in fewPart, whole multiples of the
	// step are looked at, mostMultiples of them at most; where none is known up to lastTry, no more.
	fewKnown, fewPart, mostMultiples, lastTry = 3, 4, 12, 3
	// besidePoint is how far beside a step one looks whether it is unstable there too, relative to it.
	besidePoint, besideAlone = 2e-3, 1e-2
	// edgePrecision is that of the ends of stable ranges.
	edgePrecision = 1e-4
)

// schemes are those that are looked at. The models of the corrector are those that the analysis
// has: where all can go back, their responses.
func (p *point) schemes(order int, rates []algorithms.Rate, bonds []algorithms.Bond) []*scheme {
	reverts := true
	for i, m := range p.models {
		reverts = reverts && (len(m.info.In) == 0 || m.source == Measured && p.x.Reverts(i))
	}
	var out []*scheme
	for _, preset := range []string{"explicit", "gauss-seidel", "implicit", "model-based-corrector", energyCorrection} {
		for k := range order + 1 {
			s := &scheme{preset: preset, order: k, rates: rates}
			switch preset {
			case energyCorrection:
				if s.hidden, s.bonds = true, bonds; len(bonds) == 0 {
					continue
				}
			case "implicit":
				s.params, s.rates = map[string]string{"solver.tolerance": "1e-9"}, nil
			case "model-based-corrector":
				s.hidden = true
				if reverts {
					s.params = map[string]string{"model.jacobian": "rollback"}
				}
			}
			out = append(out, s)
		}
	}
	return out
}

// Run analyses the coupling of a system at an operating point: the subsystems are
// initialised and stepped as in a run, and are not to be used after it. Errors are those of
// the run to the operating point; what cannot be told of a strategy stands in the report.
func Run(ctx context.Context, sys *master.System, o Options) (*Report, error) {
	if err := CheckRates(sys, o.Rates); err != nil {
		return nil, err
	}
	r := &Report{Step: o.Step, Asked: o.Error, Recommended: -1, Structure: structure(sys, o)}
	for _, rate := range ownRatesOf(o.Rates) {
		own := fmt.Sprintf("%d steps a macro step", rate.Steps)
		if rate.Over > 1 {
			own = fmt.Sprintf("one step over %d macro steps", rate.Over)
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s has a rate of its own, %s; implicit coupling, which takes no rates, is analysed without it", rate.Component, own))
	}
	result, err := at(ctx, sys, o, func(p *point) error { return p.analyse(r, o) })
	for _, l := range result.Loops { // as the initialisation has solved them, and the trials have found them
		same := func(m Loop) bool {
			return m.Initialization == l.Initialization && slices.Equal(m.Variables, l.Variables)
		}
		if k := slices.IndexFunc(r.Structure.Loops, same); k >= 0 {
			r.Structure.Loops[k].Treatment = l.Treatment
		} else {
			r.Structure.Loops = append(r.Structure.Loops, Loop{Loop: l, Why: "its gain was not looked at: it was found by trial"})
		}
	}
	if err == nil {
		err = r.lookAtRuns(ctx, sys, o)
	}
	return r, err
}

// moot returns why nothing can be told of the coupling whatever the models are, "" if something can.
func (p *point) moot(s *Structure) string {
	if why := s.heldOnLoop(); why != "" {
		return why
	}
	if !p.coupled() {
		return "no component feeds another: there is no coupling that could be unstable"
	}
	return ""
}

func (p *point) analyse(r *Report, o Options) error {
	r.At, p.window = p.t, windowSteps*o.Step
	if asked := max(o.At, o.Start); math.Abs(p.t-asked) > 1e-6*o.Step {
		r.Notes = append(r.Notes, fmt.Sprintf("the operating point is the first communication point after the %.10g s that are asked for", asked))
	}
	moot := p.moot(&r.Structure)
	unknown := p.trust(r, o.Stop, moot)
	p.unfound(r.Structure.Algorithms)
	r.Structure.Loops = p.loops(slices.Concat(p.x.Sys.InitLoops(), p.x.Sys.Loops))
	r.From, r.To = o.bounds()
	all := p.schemes(o.Order, ownRatesOf(o.Rates), o.bonds())
	r.schemes = all
	var ref *reference
	if unknown == "" {
		ref = p.motion(r, o, candidates)
	}
	var varies []varying
	if ref != nil {
		varies = p.varies(o, r.Structure.Algorithms)
	}
	r.Strategies, r.Varying = make([]Strategy, len(all)), make([]Varying, len(varies))
	err := p.each(len(all)+len(varies), o.Observe, func(k int) {
		if k < len(all) {
			r.Strategies[k] = p.look(all[k], o, r, ref, unknown)
		} else {
			r.Varying[k-len(all)] = p.lookVarying(&varies[k-len(all)], ref, o)
		}
	}, func(k int, err error) {
		if k < len(all) {
			r.Strategies[k] = Strategy{Preset: all[k].preset, Order: all[k].order, Params: all[k].params, Rates: all[k].rateTexts(), Why: err.Error()}
		} else {
			v := &varies[k-len(all)]
			r.Varying[k-len(all)] = Varying{Preset: v.preset, Order: v.order, Tolerance: v.tolerance, Why: err.Error()}
		}
	})
	if err != nil {
		return err
	}
	if moot == "" {
		r.Alone = p.alone(r.Step)
		r.Whole = r.whole(all, func(s *scheme, h float64) float64 {
			mode, err := p.spectrum(s, h, -1, 1, false)
			if err != nil {
				return 0
			}
			return mode.frequency(h)
		})
	}
	if o.Own != nil {
		r.Own, r.WhyNotOwn = p.own(o.Own, ownRatesOf(o.Rates), ref, cmp.Or(unknown, r.WhyNoError))
	}
	r.doubtFollowed(all)
	r.recommend(o.Error)
	r.RecommendedVarying = r.chooseVarying(varies, ownRatesOf(o.Rates), o.Error)
	return nil
}

// trust finds the models of the subsystems over steps of the analysis and holds them against the subsystems. It fills
// r.Subsystems, and returns why nothing can be known of the coupling, "" if something can. moot is what moot returns.
func (p *point) trust(r *Report, stop float64, moot string) (unknown string) {
	unknown = moot
	for i, m := range p.models {
		c := m.info.Caps
		s := Subsystem{Name: m.info.Name, Model: m.source, Why: m.why, Rollback: p.x.Reverts(i), Serializes: c.SerializeState, VariableStep: c.VariableStep,
			InputDerivatives: c.InputDerivatives, DirectionalDerivatives: c.DirectionalDerivative, Stateless: m.info.Stateless}
		if moot != "" {
			s.Unmeasured = true
		} else if m.source == None {
			unknown = fmt.Sprintf("there is no model of %s: %s", m.info, m.why)
		} else if model, err := p.over(i, r.Step); err != nil {
			unknown = err.Error()
			s.Why = err.Error()
		} else {
			s.States, s.Misfit = model.States(), model.Misfit
			if own, _, err := p.free(i, r.Step); err == nil && own != 0 {
				s.States = model.Whole.States()
			}
			why, err := p.beside(i, model, stop)
			if m.source == Measured { // the run goes on from here
				err = errors.Join(err, p.x.Restore(i))
			}
			if err != nil {
				why = fmt.Sprintf("%s was not led beside its model: %v", m.info, err)
			}
			if why != "" {
				unknown, s.Why = why, why
			}
		}
		r.Subsystems = append(r.Subsystems, s)
	}
	return unknown
}

// motion forecasts the coupled motion from the operating point on, and holds the models against the components along
// it. candidates are the steps that errors are to be forecast for, rising, in steps of the analysis. It returns nil, with
// the reason in r.WhyNoError, where the motion is not known or too large for linear models (r.Large).
func (p *point) motion(r *Report, o Options, candidates []float64) *reference {
	steps, longest := float64(horizonSteps), candidates[len(candidates)-1]
	if len(p.models) > manySubsystems {
		steps = fewerSteps
	}
	p.horizon = min(max(o.Stop-p.t, 0), steps*o.Step)
	p.horizon = math.Floor(p.horizon/(longest*o.Step)+1e-9) * longest * o.Step
	if p.horizon == 0 {
		r.WhyNoError = "there is too little time up to the stop"
		return nil
	}
	if d := r.Structure.Discrete; len(d) > 0 {
		r.WhyNoError = fmt.Sprintf("the motion is not known: %s -> %s is of no Real, and kept at its value at the operating point in the models", d[0].From, d[0].To)
		if len(d) > 1 {
			r.WhyNoError = fmt.Sprintf("the motion is not known: %d connections, such as %s -> %s, are of no Reals, and kept at their values at the operating point in the models", len(d), d[0].From, d[0].To)
		}
		return nil
	}
	var ref *reference
	if ref, r.WhyNoError = p.refer(o.Step, candidates[0]); ref == nil {
		return nil
	}
	r.Horizon = p.horizon
	off, of, apart, err := p.stray(ref, ownDoubt*o.Error)
	for i := range p.models { // the run goes on from here
		if p.models[i].source == Measured {
			err = errors.Join(err, p.x.Restore(i))
		}
	}
	if err == nil && linear.Finite(off) {
		r.Stray, p.doubt = &Stray{Off: off, Of: of}, off
	}
	switch {
	case err != nil:
		r.WhyNoError = fmt.Sprintf("the components were not led along the forecast motion: %v", err)
	case !(off <= strayed):
		r.Large = fmt.Sprintf("the motion over %.4g s is too large for linear models: along it, %s is off its model by %.2g of how much it moves", p.horizon, of, off)
		r.WhyNoError = r.Large
	case len(apart) > 0 && !slices.ContainsFunc(ref.sizes, func(size float64) bool { return size > 0 }):
		r.WhyNoError = fmt.Sprintf("the outputs that move feed nobody, and are not linear: %s", someNames(apart))
	case len(apart) > 0:
		r.Notes = append(r.Notes, fmt.Sprintf("%s, which feed no component and are not linear over the motion, do not count in the errors", someNames(apart)))
		return ref
	default:
		return ref
	}
	return nil
}

// coupled reports whether a component feeds another.
func (p *point) coupled() bool {
	for k := range p.x.W {
		if p.x.Sys.SourceSubsystem(k) >= 0 {
			return true
		}
	}
	return false
}

// look looks at one strategy; unknown tells why nothing is known of any, ref is nil where errors are not.
func (p *point) look(s *scheme, o Options, r *Report, ref *reference, unknown string) Strategy {
	out := Strategy{Preset: s.preset, Order: s.order, Params: s.params, Rates: s.rateTexts(), Why: unknown}
	if s.preset == "model-based-corrector" {
		out.Untold = p.identified()
	}
	if unknown == "" {
		out.Why = p.refused(s)
	}
	if out.Why != "" {
		return out
	}
	if out.Why = s.nonlinear(); out.Why == "" {
		p.scan(&out, s, r.Step, r.From, r.To)
	}
	if ref == nil {
		return out
	}
	out.Local, out.WhyNoLocal = p.localErrors(s, ref)
	if out.Untold != "" { // what a run does until it has identified models is most of its error
		return out
	}
	for _, c := range candidates {
		if f, err := p.forecast(s, c*o.Step, ref); err == nil {
			out.Forecasts = append(out.Forecasts, f)
		}
	}
	return out
}

// each does n pieces of work side by side, while the calling thread takes the measurements
// that they ask for: subsystems are called from it alone.
func (p *point) each(n int, observe func(done, all int), work func(k int), failed func(k int, err error)) error {
	next, finished := make(chan int, n), make(chan struct{}, n)
	p.measurements = make(chan func())
	for k := range n {
		next <- k
	}
	close(next)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for k := range next {
				if p.ctx.Err() == nil {
					if err := guarded(func() error { work(k); return nil }); err != nil {
						failed(k, err)
					}
				}
				finished <- struct{}{}
			}
		}()
	}
	for done := 0; done < n; {
		if observe != nil {
			observe(done, n)
		}
		select {
		case f := <-p.measurements:
			f()
		case <-finished:
			done++
		}
	}
	p.measurements = nil
	return context.Cause(p.ctx)
}

// identified tells that the model-based corrector has to identify models in a run first.
func (p *point) identified() string {
	for i, m := range p.models {
		if len(m.info.In) > 0 && !p.x.Reverts(i) && m.space == nil {
			return fmt.Sprintf("a run has to identify the model of %s first, and is uncorrected until then: its errors are not forecast, and at steps at which explicit coupling grows, it may grow too far for models to be found", m.info)
		}
	}
	return ""
}

const energyCorrection = "energy-correction"

// nonlinear returns why the stability of the strategy is not known, whatever the models are, "" if it may be.
func (s *scheme) nonlinear() string {
	if s.preset == energyCorrection {
		return "it is not linear, as it divides an energy by a velocity: no eigenvalue tells whether it is stable"
	}
	return ""
}

// refused returns why the strategy cannot be used with these subsystems, or nothing be told of it, "" if
// neither.
func (p *point) refused(s *scheme) string {
	if why := s.beyond(); why != "" {
		return why
	}
	if s.preset == correctorScheme {
		for _, m := range p.models {
			if m.departs != "" {
				return fmt.Sprintf("a run corrects by the directional derivatives of %s, and what it does is another thing: %s", m.info, m.departs)
			}
		}
	}
	alg, err := s.algorithm()
	if err == nil {
		err = alg.Check(p.x.Sys)
	}
	if err != nil {
		return err.Error()
	}
	return p.fails(alg)
}

// scan finds the radius over the step sizes, and the ranges without growth.
func (p *point) scan(out *Strategy, s *scheme, H, from, to float64) {
	radius := func(h float64) (float64, error) {
		mode, err := p.spectrum(s, h, -1, 1, false)
		if err == nil {
			err = p.untold(s, h, mode.coupled)
		}
		if err != nil {
			if out.Why == "" {
				out.Why = fmt.Sprintf("at steps of %.4g s: %v", h, err)
			}
			return math.NaN(), err
		}
		return mode.radius(), nil
	}
	points, precision := scanPoints, edgePrecision
	if len(p.models) > manySubsystems {
		points, precision = fewerPoints, coarsePrecision
	}
	var looked []look
	for i := range points {
		h := from * math.Pow(to/from, float64(i)/float64(points-1))
		v, err := radius(h)
		looked = append(looked, look{Radius{h, v}, err})
		if p.ctx.Err() != nil {
			break
		}
	}
	confirm(looked, radius, func(h float64) bool { return p.noisy(s, h) })
	out.take(looked)
	if len(out.Points) < fewKnown || fewPart*len(out.Points) < len(looked) {
		// FMUs with steps of their own are known at whole multiples of them, if at all.
		whole := wholeSteps(H, from, to)
		var known []Radius
		for _, h := range whole {
			if v, err := radius(h); err == nil {
				known = append(known, Radius{h, v})
			} else if p.ctx.Err() != nil || len(known) == 0 && h >= lastTry*H {
				break
			}
		}
		if len(known) > len(out.Points) || len(known) >= fewKnown {
			out.Points, out.Gaps, out.Multiples = known, nil, H
		}
	}
	// The end of a range between two points, by secants, each followed by a look to its
	// other side, and by halves in turn.
	edge := func(from, to Radius, was bool) float64 {
		a, b := from.Step, to.Step
		above := func(v float64) float64 { return v - 1 - marginal }
		fa, fb := above(from.Radius), above(to.Radius)
		look := func(h float64) {
			v, _ := radius(h) // NaN with an error
			f := above(v)
			if (f <= 0) == was {
				a, fa = h, f
			} else { // unknown counts as this
				b, fb = h, f
			}
		}
		for n := 0; b-a > precision*a; n++ {
			c, beside := a+(b-a)*fa/(fa-fb), 0.5*precision*a
			if n%2 == 1 || !(c > a+beside && c < b-beside) {
				look(math.Sqrt(a * b))
				continue
			}
			if look(c); c == a {
				look(c + beside)
			} else {
				look(c - beside)
			}
		}
		return a
	}
	if out.Multiples > 0 {
		edge = func(from, to Radius, was bool) float64 { // nothing is known between them
			if was {
				return from.Step
			}
			return to.Step / (1 + precision)
		}
	}
	// A step that is left out parts what is known on both of its sides.
	parted := func(i int) bool {
		before, after := out.Points[i-1].Step, out.Points[i].Step
		return out.Multiples > 0 && after-before > 1.5*out.Multiples ||
			slices.ContainsFunc(out.Gaps, func(g Gap) bool { return before < g.From && g.To < after })
	}
	for i, point := range out.Points {
		switch {
		case !stable(point.Radius):
		case i == 0 || parted(i):
			out.Stable = append(out.Stable, Range{point.Step, point.Step})
		case !stable(out.Points[i-1].Radius):
			begin := edge(out.Points[i-1], point, false)
			out.Stable = append(out.Stable, Range{begin * (1 + precision), point.Step})
		}
		if n := len(out.Stable); n > 0 && stable(point.Radius) {
			out.Stable[n-1].To = point.Step
			if i+1 < len(out.Points) && !parted(i+1) && !stable(out.Points[i+1].Radius) {
				out.Stable[n-1].To = edge(point, out.Points[i+1], true)
			}
		}
	}
	mode, err := p.spectrum(s, H, -1, 1, true)
	if err == nil {
		err = p.untold(s, H, mode.coupled)
	}
	if err != nil {
		if out.Why == "" {
			out.Why = err.Error()
		}
		return
	}
	at := look{Radius: Radius{H, mode.radius()}}
	known := slices.ContainsFunc(out.Stable, func(r Range) bool { return r.From <= H && H <= r.To })
	if known != stable(at.Radius.Radius) && out.Multiples == 0 || p.noisy(s, H) {
		if at.doubt(radius, false); at.err != nil {
			out.fill(Gap{H, H, at.err.Error()})
			out.Why = fmt.Sprintf("at steps of %.4g s: %v", H, at.err)
			return
		}
	}
	if out.Now = mode.radius(); mode.lasts {
		out.Lasts, out.Besides = true, cmplx.Abs(mode.value)
	}
	out.Mode = p.describe(s, H, mode)
}

func stable(radius float64) bool { return radius <= 1+marginal }

// look is a point of the scan, or why it is not known.
type look struct {
	Radius
	err error
}

// doubt looks at steps close by on both sides, and makes the point unknown if whether it is stable cannot be
// told from all three: the measured responses of FMUs with solvers that choose their own steps have
// noise, which differs from step to step.
//
// One that stands alone in the scan is looked at in a wider neighbourhood, too.
func (l *look) doubt(radius func(h float64) (float64, error), alone bool) {
	least, most := l.Radius.Radius, l.Radius.Radius
	besides := []float64{-besidePoint, besidePoint}
	if alone {
		besides = append(besides, -besideAlone, besideAlone)
	}
	for _, beside := range besides {
		h := l.Step * (1 + beside)
		v, err := radius(h)
		if err != nil {
			l.err = fmt.Errorf("at %.6g s close by: %w", h, err)
			return
		}
		least, most = min(least, v), max(most, v)
	}
	if stable(least) != stable(most) {
		l.err = fmt.Errorf("the radius is between %.6g and %.6g at steps close by: the responses of the components have noise", least, most)
	}
}

// confirm looks closer at the points beside which the stability changes: at those that stand alone, and, where
// responses are noisy, at all of them, on and on where others have become unknown.
func confirm(looked []look, radius func(h float64) (float64, error), noisy func(h float64) bool) {
	done := make([]bool, len(looked))
	differs := func(i, j int) bool {
		return j >= 0 && j < len(looked) && (looked[j].err != nil && done[j] || looked[j].err == nil && stable(looked[i].Radius.Radius) != stable(looked[j].Radius.Radius))
	}
	for again := true; again; {
		again = false
		for i := range looked {
			l := &looked[i]
			if done[i] || l.err != nil {
				continue
			}
			before, after := differs(i, i-1), differs(i, i+1)
			if before && after || (before || after) && noisy(l.Step) {
				done[i], again = true, true
				l.doubt(radius, before && after)
			}
		}
	}
}

// take puts the points that are known, and the gaps between them.
func (s *Strategy) take(looked []look) {
	for i, l := range looked {
		switch {
		case l.err == nil:
			s.Points = append(s.Points, l.Radius)
		case i > 0 && looked[i-1].err != nil:
			s.Gaps[len(s.Gaps)-1].To = l.Step
		default:
			s.Gaps = append(s.Gaps, Gap{l.Step, l.Step, l.err.Error()})
		}
	}
}

// fill puts a gap among the others.
func (s *Strategy) fill(g Gap) {
	if slices.ContainsFunc(s.Gaps, func(have Gap) bool { return have.From <= g.From && g.To <= have.To }) {
		return
	}
	s.Gaps = append(s.Gaps, g)
	slices.SortFunc(s.Gaps, func(a, b Gap) int { return cmp.Compare(a.From, b.From) })
}

// noisy reports whether the response of a component over such steps is known with less than
// rounding.
func (p *point) noisy(s *scheme, h float64) bool {
	for i := range p.models {
		if r, err := p.over(i, p.stepOf(i, s, h)); err != nil || r.Misfit > clean {
			return true
		}
	}
	return false
}

// clean is the misfit of a model up to which its response has no noise to speak of.
const clean = 1e-7

// untold tells that a radius is too close to 1 for models that are off by so much: a mode that is slow
// beside the steps takes little part in the responses.
func (p *point) untold(s *scheme, h, radius float64) error {
	for i, m := range p.models {
		r, err := p.over(i, p.stepOf(i, s, h))
		if err != nil {
			return err
		}
		if r.Misfit > good && math.Abs(radius-1) <= slowPart*r.Misfit {
			return fmt.Errorf("the model of %s is off by %.1g, and whether the coupling grows by %.3g in a step or does not is within that", m.info, r.Misfit, radius)
		}
	}
	return nil
}

// slowPart is how much farther from 1 than the misfit of a model a radius has to be to tell something.
const slowPart = 30

// wholeSteps gives whole multiples of the step of the analysis within the scan.
func wholeSteps(H, from, to float64) (out []float64) {
	for n := range mostMultiples {
		if h := float64(n+1) * H; h >= from*(1-1e-9) && h <= to*(1+1e-9) {
			out = append(out, h)
		}
	}
	return out
}

// describe tells what takes part in a mode.
func (p *point) describe(s *scheme, H float64, mode eigen) *Mode {
	const most = 5
	sys := p.x.Sys
	m := &Mode{Frequency: mode.frequency(H)}
	at := 0
	for i, model := range p.models {
		for o := range model.outputs() {
			size := math.Abs(p.y[sys.OutAt[i]+o])
			if n := model.info.Out[o].Nominal; n > 0 {
				size = max(size, n)
			}
			if size == 0 {
				size = 1
			}
			m.Outputs = append(m.Outputs, Part{Name: sys.OutName(sys.OutAt[i] + o), Share: mode.outputs[at] / size})
			at++
		}
	}
	m.Outputs = largest(m.Outputs, most, true)
	const change = 1e-3
	many := len(p.models) > manySubsystems
	if !many || !stable(mode.radius()) {
		for k := range sys.InAt[len(sys.InAt)-1] {
			if sys.SourceSubsystem(k) < 0 {
				continue
			}
			if y, _ := sys.Source(k); many && !slices.ContainsFunc(m.Outputs, func(part Part) bool { return part.Name == sys.OutName(y) }) {
				continue // of many, those from where the mode is largest
			}
			if moved, err := p.spectrum(s, H, k, 1+change, false); err == nil {
				y, _ := sys.Source(k)
				by := cmplx.Abs(moved.value) - cmplx.Abs(mode.value)
				if moved.lasts != mode.lasts { // what has stood at 1 does no longer
					by = moved.radius() - mode.radius()
				}
				m.Connections = append(m.Connections, Part{sys.OutName(y) + " -> " + sys.InName(k), by / change})
			}
		}
		m.Connections = largest(m.Connections, most, false)
	}
	return m
}

// alike is how far shares may be apart, relative to them, that count as equal: rounding does not order them.
const alike = 1e-6

// largest gives the parts of largest size, as shares of the first if asked.
func largest(parts []Part, most int, relative bool) []Part {
	slices.SortStableFunc(parts, func(a, b Part) int {
		switch x, y := math.Abs(a.Share), math.Abs(b.Share); {
		case math.Abs(x-y) <= alike*max(x, y):
			return 0
		case x > y:
			return -1
		}
		return 1
	})
	parts = parts[:min(most, len(parts))]
	if relative && len(parts) > 0 && parts[0].Share > 0 {
		whole := parts[0].Share
		for i := range parts {
			parts[i].Share /= whole
		}
	}
	return parts
}

const (
	// undamped is how close to 1 the radius of a coupling is whose slowest mode hardly dies out.
	undamped = 1e-4
	// followedOff is what the radius of a strategy that is followed may be off by then: over the steps
	// that are followed, its slowest mode cannot be told from those beside it.
	followedOff = 3e-3
)

// doubtFollowed tells where the radii of strategies that are followed and not formed are not exact.
func (r *Report) doubtFollowed(all []*scheme) {
	formed := func(k int) bool {
		s := &r.Strategies[k]
		return !all[k].hidden && s.Mode != nil && math.Abs(s.slowest()-1) < undamped
	}
	for k := range all {
		if !formed(k) {
			continue
		}
		for i := range all {
			if s := &r.Strategies[i]; all[i].hidden && len(s.Points) > 0 && s.Untold == "" {
				s.Untold = fmt.Sprintf("the system is hardly damped, and this radius is followed in a run of the models: it may be off by %.0g, and its stable steps are not exact", followedOff)
			}
		}
		return
	}
}

// nearUnknown is how far from a step that is unknown one is recommended at least, relative to it.
const nearUnknown = 0.05

// ownDoubt is the part of the error that is asked for by which outputs that feed nobody may be off their models
// to count in it.
const ownDoubt = 0.1

// safety is the part of the largest stable step that is recommended.
const safety = 0.5

// covers reports whether a step is known to be stable with a margin: it and those up to the inverse of
// the margin lie in one stable range. Steps shorter than the scan, which begins at from, count to a range
// that begins there.
func (s *Strategy) covers(h, from float64) bool {
	if slices.ContainsFunc(s.Gaps, func(g Gap) bool { return h >= g.From*(1-nearUnknown) && h <= g.To*(1+nearUnknown) }) {
		return false
	}
	return slices.ContainsFunc(s.Stable, func(r Range) bool {
		return h <= safety*r.To && (r.From <= h*(1+1e-9) || r.From <= from*(1+1e-9))
	})
}

// largest gives the largest step that is stable with a margin, in the range that begins lowest; 0 = none.
func (s *Strategy) largest() float64 {
	if len(s.Stable) == 0 || s.Stable[0].From > s.Points[0].Step || safety*s.Stable[0].To < s.Stable[0].From {
		return 0
	}
	return safety * s.Stable[0].To
}

// recommend takes, where errors are known, the cheapest strategy and step that is stable with a margin
// and has no larger error than is asked for; else the simplest strategy that is stable at the
// step of the analysis with a margin, else the one with the largest stable step.
func (r *Report) recommend(most float64) {
	var nearest *Forecast
	near := -1
	for i := range r.Strategies {
		s := &r.Strategies[i]
		for k := range s.Forecasts {
			f := &s.Forecasts[k]
			switch {
			case s.Untold != "":
			case !s.covers(f.Step, r.From):
			case f.Error+f.Doubt > most:
				if nearest == nil || f.Error+f.Doubt < nearest.Error+nearest.Doubt {
					nearest, near = f, i
				}
			case r.Promised == nil || f.FMUSteps < (1-1e-9)*r.Promised.FMUSteps:
				r.Recommended, r.Promised = i, f
			}
		}
	}
	switch {
	case r.Promised != nil:
		r.Why = fmt.Sprintf("the cheapest with an error of at most %g and a margin of stability", most)
	case nearest != nil:
		r.Recommended, r.Promised = near, nearest
		r.Why = fmt.Sprintf("nothing that was looked at has an error of at most %g and a margin of stability; this one comes nearest", most)
		if nearest.Error <= most {
			known := fmt.Sprintf("uncertain by %.2g", nearest.Doubt)
			if nearest.IsRough() {
				known = "an order of magnitude only"
			}
			r.Why = fmt.Sprintf("an error of at most %g can be promised of nothing that was looked at with a margin of stability; this one comes nearest: what it is expected to be off by is %s, as the models are off by %.2g along the motion", most, known, nearest.Doubt)
		}
	}
	if r.Promised != nil {
		r.StepToTake = r.Promised.Step
		return
	}
	best, where := -1, 0.0
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if s.Untold != "" {
			continue
		}
		if s.covers(r.Step, r.From) {
			r.Recommended, r.StepToTake = i, r.Step
			r.Why = "the simplest that is stable at this step with a margin"
			return
		}
		if l := s.largest(); l > where {
			best, where = i, l
		}
	}
	if best < 0 {
		r.Why = "nothing that was looked at is stable down to the smallest step of the scan"
		if r.Whole != nil {
			r.Why = "the system is unstable by itself, whatever the step: judge algorithms by their errors over the time that is of interest"
		}
		if !slices.ContainsFunc(r.Strategies, func(s Strategy) bool {
			return len(s.Points) > 0 && (s.Multiples > 0 || s.Points[0].Step <= r.From*(1+1e-9))
		}) {
			r.Why = "nothing is known of the stability at short steps"
		}
		return
	}
	r.Recommended, r.StepToTake = best, where
	r.Why = "nothing is stable at this step with a margin; this one is at the largest"
}
