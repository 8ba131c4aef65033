package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// Varying is an algorithm that chooses its steps, at the orders that it is looked at: a number, or "auto" where it
// chooses the order too.
type Varying struct {
	Preset string `json:"algorithm"`
	Order  string `json:"order"`
	// Tolerance is the parameter by which it is told how exact to be.
	Tolerance string    `json:"tolerance"`
	Settled   []Settled `json:"settled,omitempty"` // by falling tolerance
	Why       string    `json:"why,omitempty"`     // nothing is told of it, because of this
}

// Settled is where the steps of an algorithm settle at one tolerance, and what it makes of the motion then. Step is the
// median over time.
type Settled struct {
	Tolerance float64 `json:"tolerance,omitempty"`
	Forecast
	// In a tenth of the time, and in nine tenths of it, steps are at most so long (s).
	Short float64 `json:"short"`
	Long  float64 `json:"long"`
	// Macro steps over the horizon, and the order that most of the accepted ones have.
	Accepted  int `json:"accepted"`
	Rejected  int `json:"rejected"`
	MostOrder int `json:"most_order"`
	// Fails is how the run is expected to end early, "" if it is not; Cut tells that it takes so many steps that it was not
	// followed to the end. The rest is of the time (s) up to there.
	Fails string  `json:"fails,omitempty"`
	Cut   bool    `json:"cut,omitempty"`
	Time  float64 `json:"time"`
}

// Choice is a setting of an algorithm that chooses its steps.
type Choice struct {
	Preset string            `json:"algorithm"`
	Params map[string]string `json:"params"`
	Rates  []string          `json:"rates,omitempty"` // as Strategy.Rates
	Settled
}

// varying is an algorithm that chooses its steps, at an order.
type varying struct {
	preset, order string
	tolerance     string  // parameter
	usual         float64 // value of it
}

const (
	// The tolerances that are looked at are the usual one and, as far as the error that is asked for needs, so many
	// decades below it and above it at most.
	mostTighter, mostLooser = 3, 2
	mostSteps               = 20_000 // macro steps of a forecast at most
	// Parts of the time by which the range of the steps is told.
	shortQuantile = 0.1
	longQuantile  = 0.9
	// beyond is how far steps may lie outside of those at which components were looked at.
	beyond = 1.5
)

// toleranceOf gives the parameter by which a preset that chooses its steps is told how exact to be, "" for those with
// steps of one size.
func toleranceOf(preset string) string {
	switch preset {
	case "ex-local", "ex-milne", "ex-slocal", "richardson", "im-milne", "im-slocal":
		return errorTolerance
	case "predictor-corrector":
		return "pc.tolerance"
	case "ecco":
		return "ecco.tolerance"
	}
	return ""
}

const errorTolerance = "control.rtol"

// varies gives the algorithms that choose their steps, as far as they can be used.
func (p *point) varies(o Options, list []Applicability) (out []varying) {
	for _, a := range list {
		v := varying{preset: a.Preset, order: "auto", tolerance: toleranceOf(a.Preset)}
		if v.tolerance == "" {
			continue
		}
		if a.Refused != "" {
			continue // and told where the structure is
		}
		defaults, err := algorithms.New(v.preset, nil)
		if err != nil {
			continue
		}
		if v.usual, err = strconv.ParseFloat(defaults.Values[v.tolerance], 64); err != nil {
			continue
		}
		if defaults.Values["order"] == v.order {
			out = append(out, v)
			continue
		}
		for k := range o.Order + 1 {
			v.order = fmt.Sprint(k)
			out = append(out, v)
		}
	}
	return out
}

// estimates tells that a preset estimates errors.
func (v *varying) estimates() bool { return v.tolerance == errorTolerance }

// implicit tells that a preset iterates.
func (v *varying) implicit() bool { return v.preset == "im-milne" || v.preset == "im-slocal" }

// lookVarying finds where the steps settle, at the usual tolerance first, and then at as many more as the error asks for.
func (p *point) lookVarying(v *varying, ref *reference, o Options) Varying {
	out := Varying{Preset: v.preset, Order: v.order, Tolerance: v.tolerance}
	if v.implicit() && len(p.models) > manySubsystems {
		out.Why = fmt.Sprintf("implicit coupling is not looked at so closely with more than %d components", manySubsystems)
		return out
	}
	rates := ownRatesOf(o.Rates)
	if v.implicit() { // which take none
		rates = nil
	}
	if out.Why = (&scheme{rates: rates}).beyond(); out.Why != "" {
		return out
	}
	at := func(n int) (s Settled, ok bool) {
		tolerance := v.usual * math.Pow10(n)
		with := algorithms.With{Rates: rates}
		if algorithms.UsesEnergy(v.preset) {
			with.Bonds = o.bonds()
		}
		estimates := 0.0
		if v.estimates() {
			estimates = tolerance
		}
		order := algorithms.MaxOrder
		if fixed, err := strconv.Atoi(v.order); err == nil {
			order = fixed
		}
		if v.preset == "ex-local" {
			order++
		}
		s, err := p.settled(func() (master.Algorithm, error) {
			choice, err := algorithms.New(v.preset, v.params(tolerance), with)
			if err != nil {
				return nil, err
			}
			return choice.Algorithm, nil
		}, &scheme{order: order, rates: rates}, estimates, ref)
		if err != nil {
			out.Why = cmp.Or(out.Why, err.Error())
			return s, false
		}
		s.Tolerance = tolerance
		out.Settled = append(out.Settled, s)
		return s, true
	}
	usual, ok := at(0)
	if !ok || len(p.models) > manySubsystems {
		return out
	}
	s := usual
	for n := -1; n >= -mostTighter && ok && s.ends() && !s.keepsTo(o.Error); n-- {
		s, ok = at(n)
	}
	s = usual
	for n := 1; n <= mostLooser && ok && (!s.ends() || s.keepsTo(o.Error)); n++ {
		s, ok = at(n)
	}
	slices.SortStableFunc(out.Settled, func(a, b Settled) int { return cmp.Compare(b.Tolerance, a.Tolerance) })
	return out
}

// keepsTo reports whether the run is expected to come to its end with no larger error.
func (s *Settled) keepsTo(most float64) bool { return s.ends() && s.Error+s.Doubt <= most }

// ends reports whether the run is expected to come to its end.
func (s *Settled) ends() bool { return s.Fails == "" && !s.Cut }

// Better reports whether it is to be taken rather than another one where an error is asked for: it keeps to that at less cost, or
// comes nearer to it.
func (s *Settled) Better(than *Settled, most float64) bool {
	mine, other := s.keepsTo(most), than.keepsTo(most)
	switch {
	case mine != other:
		return mine
	case mine:
		return s.FMUSteps < (1-1e-9)*than.FMUSteps
	case s.ends() != than.ends():
		return s.ends()
	}
	return s.Error+s.Doubt < than.Error+than.Doubt
}

// Best gives the tolerance to take where an error is asked for; nil = nothing is known of any.
func (v *Varying) Best(most float64) *Settled {
	var best *Settled
	for k := range v.Settled {
		if s := &v.Settled[k]; best == nil || s.Better(best, most) {
			best = s
		}
	}
	return best
}

// flows are a coupled system that goes over steps of any size, where each component moves as it does in macro
// steps of one size: the steps of its own solver, which may follow from that, are part of it.
type flows struct {
	twins []*twin
	sys   *master.System
}

// sampledStep is stepOf where the order may be higher than those that the analysis looks at.
func (p *point) sampledStep(i int, s *scheme, h float64) float64 {
	as := *s
	if as.order = 0; s.order > p.models[i].takes {
		as.order = mostDerivatives
	}
	return p.stepOf(i, &as, h)
}

// flowing makes flows of what components do over macro steps of size h at the order and rates of a scheme. Outputs and
// inputs are those of the components and no deviations, as tolerances go by them.
func (p *point) flowing(h float64, like *scheme) (out flows, err error) {
	for i, m := range p.models {
		own := p.sampledStep(i, like, h)
		r, err := p.over(i, own)
		if err != nil {
			return out, err
		}
		if r.Whole != nil {
			r = r.Whole
		}
		f, err := linear.NewFlow(r, own, len(m.info.In))
		if err != nil {
			return out, fmt.Errorf("%s over steps of %.4g s: %w", m.info, own, err)
		}
		t := newTwin(m.info, r, own, m.takes)
		t.flow, t.driven = f, true
		p.absolute(i, t)
		out.twins = append(out.twins, t)
	}
	if out.sys, err = p.coupledTwins(out.twins, -1, 1); err != nil {
		return out, err
	}
	return out, out.agree()
}

// agree makes the outputs at the start what they are after a step of no length: (I − D L) y = v. A jump there, as small as the
// misfit of a model, would be an error that no step makes smaller.
func (f *flows) agree() error {
	ny := len(twinsOutputs(f.twins))
	if ny == 0 {
		return nil
	}
	m, v := mat.NewDense(ny, ny, nil), mat.NewVecDense(ny, nil)
	at := 0
	for i, t := range f.twins {
		d := t.flow.Space.D
		for o := range t.y {
			m.Set(at+o, at+o, 1)
			v.SetVec(at+o, d.At(o, len(t.u[0])))
			for k := range t.u[0] {
				if y, ok := f.sys.Source(f.sys.InAt[i] + k); ok {
					m.Set(at+o, y, m.At(at+o, y)-d.At(o, k)*f.sys.Gain(f.sys.InAt[i]+k))
				}
			}
		}
		at += len(t.y)
	}
	var y mat.VecDense
	if err := y.SolveVec(m, v); err != nil {
		return fmt.Errorf("the gain around a loop is 1: %w", err)
	}
	at = 0
	for _, t := range f.twins {
		for o := range t.y0 {
			t.y0[o] = y.AtVec(at + o)
		}
		at += len(t.y0)
	}
	return nil
}

// off returns how far what components do over macro steps within a range is from flows found at another step, as far as
// they are among the steps that are forecast.
func (p *point) off(f *flows, like *scheme, short, long float64) (worst float64, of *master.Info, err error) {
	// At a shorter step too: what oscillates so fast that a step has more than half a period of it looks slow.
	const below = 3
	for _, c := range candidates {
		h := c * p.step
		if h < short/below || h > long*beyond {
			continue
		}
		for i, m := range p.models {
			own := p.sampledStep(i, like, h)
			r, err := p.over(i, own)
			if err != nil {
				return 0, nil, err
			}
			away, err := f.twins[i].flow.Off(r, own, len(m.info.In))
			if err != nil {
				return 0, nil, fmt.Errorf("%s: %w", m.info, err)
			}
			if !(away <= strayed) {
				return 0, nil, fmt.Errorf("%s does over steps of %.4g s what is %.2g off what it does over steps of other sizes: the steps of its own solver follow from the macro step", m.info, own, away)
			}
			if of == nil || away > worst {
				worst, of = away, m.info
			}
		}
	}
	return worst, of, nil
}

// settled forecasts an algorithm of the order and rates of a scheme, on flows found at a step near those at which it
// settles.
//
// An error control compares solutions over steps of several sizes. Where solvers inside the components make them differ,
// it sees that too; models with one solver for all steps do not. estimates is the relative error that the algorithm
// aims at, 0 = it estimates none.
func (p *point) settled(make func() (master.Algorithm, error), like *scheme, estimates float64, ref *reference) (s Settled, err error) {
	const passes = 3
	h := p.step
	for n := 1; ; n++ {
		alg, err := make()
		if err != nil {
			return s, err
		}
		f, err := p.flowing(h, like)
		for k := len(candidates) - 1; k >= 0 && err != nil; k-- { // fast motions show in shorter steps alone
			if shorter := candidates[k] * p.step; shorter < h {
				h = shorter
				f, err = p.flowing(h, like)
			}
		}
		if err != nil {
			return s, err
		}
		if s, err = p.settle(alg, &f, ref); err != nil || s.Accepted == 0 {
			return s, err
		}
		off, of, err := p.off(&f, like, s.Short, s.Long)
		if err == nil && estimates > 0 && off > min(good, estimates) {
			return s, fmt.Errorf("its error estimate sees what the solver inside %s makes of steps of different sizes, and the models do not follow that", of)
		}
		if least, most := candidates[0]*p.step, candidates[len(candidates)-1]*p.step; err == nil && off > good && (s.Short < least/beyond || s.Long > most*beyond) {
			err = fmt.Errorf("it takes steps of %.2g to %.2g s, and what %s does depends on the steps of its own solver, which was looked at over %.2g to %.2g s: take a step size (--step-size) nearer to them", s.Short, s.Long, of, least, most)
		}
		s.Doubt = max(p.doubt, off)
		nearest := slices.MinFunc(candidates, func(a, b float64) int {
			return cmp.Compare(math.Abs(math.Log(a*p.step/s.Step)), math.Abs(math.Log(b*p.step/s.Step)))
		}) * p.step
		if err == nil && off <= good || nearest == h || n == passes {
			return s, err
		}
		h = nearest
	}
}

// settle runs an algorithm over the forecast motion.
func (p *point) settle(alg master.Algorithm, f *flows, ref *reference) (s Settled, err error) {
	run, err := master.NewRun(f.sys, alg, master.Options{Stop: p.horizon, Step: p.step, Workers: 1})
	if err != nil {
		return s, err
	}
	var pieces []float64 // steps (s)
	square, want := make([]float64, len(ref.sizes)), make([]float64, len(ref.sizes))
	err = run.Start(p.ctx)
	t, stopped := 0.0, false
	for more := true; err == nil && more; {
		if more, err = macroStep(p.ctx, run); err != nil {
			break
		}
		at := run.Point()
		H := at.T - t
		if t = at.T; H <= 0 {
			continue
		}
		pieces = append(pieces, H)
		ref.at(t, want)
		k := 0
		for i, m := range p.models {
			for n := range m.outputs() {
				d := at.Y[k] - p.y[p.x.Sys.OutAt[i]+n] - want[k]
				square[k] += H * d * d
				k++
			}
		}
		if len(pieces) > mostSteps {
			stopped = true
			break
		}
	}
	result, closed := run.Close()
	if cause := p.ctx.Err(); cause != nil {
		return s, cause
	}
	switch {
	case err != nil:
		s.Fails = err.Error()
	case closed != nil:
		return s, closed
	}
	s.Cut, s.Time = stopped, t
	if len(pieces) == 0 {
		return s, nil
	}
	for k := range square {
		square[k] /= t
	}
	if s.Error, s.Of, err = p.worst(square, ref); err != nil {
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

// Own is an algorithm as a run is to have it.
type Own struct {
	Preset string
	New    func() (master.Algorithm, error) // makes it anew
}

// own forecasts one; unknown tells why there is no reference, where there is none.
func (p *point) own(o *Own, rates []algorithms.Rate, ref *reference, unknown string) (*Settled, string) {
	if ref == nil {
		return nil, cmp.Or(unknown, "the models do not tell")
	}
	if why := (&scheme{rates: rates}).beyond(); why != "" {
		return nil, why
	}
	estimates := 0.0
	if v := (&varying{tolerance: toleranceOf(o.Preset)}); v.estimates() {
		estimates = good
	}
	s, err := p.settled(o.New, &scheme{order: algorithms.MaxOrder, rates: rates}, estimates, ref)
	if err != nil {
		return nil, err.Error()
	}
	return &s, ""
}

// params are those of a run with a tolerance.
func (v *varying) params(tolerance float64) map[string]string {
	out := map[string]string{v.tolerance: fmt.Sprintf("%.3g", tolerance)}
	if v.order != "auto" {
		out["order"] = v.order
	}
	return out
}

// quantile gives the size that steps have at most in a part of the time t, which they fill.
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

// at puts the motion at a time after the operating point, by the cubic through the four points around it.
func (r *reference) at(t float64, y []float64) {
	const points = 4
	n := min(max(int(t/r.h)-1, 0), max(len(r.y)-points, 0))
	s := t/r.h - float64(n)
	clear(y)
	for j := range min(points, len(r.y)) {
		weight := 1.0
		for l := range min(points, len(r.y)) {
			if l != j {
				weight *= (s - float64(l)) / float64(j-l)
			}
		}
		for o, v := range r.y[n+j] {
			y[o] += weight * v
		}
	}
}

// chooseVarying finds the cheapest of the algorithms that choose their steps which keeps to the error, nil where steps of one
// size that keep to it cost no more.
func (r *Report) chooseVarying(all []varying, rates []algorithms.Rate, most float64) *Choice {
	var best *Choice
	for k := range r.Varying {
		if s := r.Varying[k].Best(most); s != nil && s.keepsTo(most) && (best == nil || s.Better(&best.Settled, most)) {
			best = &Choice{Preset: all[k].preset, Params: all[k].params(s.Tolerance), Settled: *s}
			if !all[k].implicit() {
				best.Rates = (&scheme{rates: rates}).rateTexts()
			}
		}
	}
	if best != nil && r.Promised != nil && r.Promised.Error+r.Promised.Doubt <= most && r.Promised.FMUSteps <= best.FMUSteps {
		return nil
	}
	return best
}
