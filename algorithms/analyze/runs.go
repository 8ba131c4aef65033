package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms/analyze/divergence"
	"github.com/macrostep/macrostep/master"
)

// Runs allow trial runs of the system itself, of strategies of which its models show nothing.
type Runs struct {
	// Again makes the system anew, as it is before its start, together with a function that ends it once its run is
	// closed, which may be nil. nil = no trial runs.
	Again func(ctx context.Context) (*master.System, func() error, error)
	// Time is how long they may take in all, a fourth of it with many subsystems. It decides how many steps are tried,
	// not what is found at one.
	Time    time.Duration
	Only    func(preset string, order int) bool // the strategies to try; nil = all
	Observe func(what string)                   // called before each trial; nil = nobody is
}

// Seen is how the points of a strategy were found in trial runs: its coupled inputs are moved a little over some macro
// steps from the operating point on, and the difference to the run in which they are not is followed.
type Seen struct {
	Looks int `json:"looks"` // step sizes that were tried
	Runs  int `json:"runs"`
	// Steps is how many macro steps a difference is followed at most, Least the growth in a step below which it is not
	// told from none.
	Steps int     `json:"steps"`
	Least float64 `json:"least_growth"`
	// Precision of the ends of stable ranges: how far, relative to it, the next step lies that was seen to grow.
	Precision float64 `json:"precision"`
	Now       bool    `json:"at_step"`          // the step of the analysis is known by trial runs
	Missed    int     `json:"missed,omitempty"` // steps that were not tried for lack of time
}

const (
	// trialPoints are the steps of a scan by trial runs: two in a decade of the usual range of three, as each takes some
	// thousand steps of the system.
	trialPoints = 9
	// trialPrecision is that of the ends of stable ranges: finer ones move with the size of the kick where the system is
	// not linear.
	trialPrecision = 0.02
	// trialManyPart divides the time with many subsystems, of which runs are slow and seldom tell more.
	trialManyPart = 4
	// clockSteps lie between looks at the clock: some ms of slow FMUs.
	clockSteps = 64
	// fewTrialSteps and manyTrialSteps are followed after the kick: the first show what grows by 1 % in a step, the
	// others a thousandth. mostTrialSteps are for steps that these leave open, once all have been tried.
	fewTrialSteps, manyTrialSteps, mostTrialSteps = 400, 2000, 8000
	// shortHeld, heldPart: inputs are moved over 40 macro steps (a 50th of a long run), at most a 16th of the run: more than
	// one, as components that sample, or take steps of their own, see them now and then only. The steps of a scan are 1/30
	// of that of the analysis at least.
	shortHeld, heldPart, heldMost = 40, 50, 16
	// settling is the number of steps after the operating point over which the size of an output is taken, before a kick grows.
	settling = 10
	// fickle is the part of the outputs by which runs that are alike may differ: a hundredth of the largest usual kick.
	fickle = 1e-5
	// sameRate is how far growths in time may be apart at the two shortest steps that count as the motion's own: the steps
	// lie a factor of two apart, by which that of a coupling changes at least.
	sameRate = 0.3
)

// trialKicks are how far inputs are moved, relative to their size. Two that agree are asked for, and none that contradicts:
// the first two are enough as a rule; the third is for components with noise, the last where the second is large.
var trialKicks = []float64{1e-3, 1e-5, 1e-1, 1e-7}

// errNoTime ends what the time does not suffice for.
var errNoTime = errors.New("not looked at: the time for runs was over (--runs)")

// trial is what runs show at one step size.
type trial struct {
	step float64 // s
	divergence.Finding
	open bool // more steps than were followed may tell
}

// trials are those of one strategy, by rising step.
type trials struct {
	of           *Strategy
	scheme       *scheme
	done         []trial
	runs, missed int
}

// tryer makes trial runs.
type tryer struct {
	ctx   context.Context
	o     Options
	until time.Time
	floor float64 // part of the outputs by which two runs that are alike differ; NaN = not known yet
	runs  int
}

// lookAtRuns fills in from trial runs the strategies of which models show nothing.
func (r *Report) lookAtRuns(ctx context.Context, sys *master.System, o Options) error {
	if o.Runs.Again == nil || !(o.Runs.Time > 0) || len(r.Structure.Connections) == 0 {
		return nil
	}
	var all []*trials
	for k, s := range r.schemes {
		of := &r.Strategies[k]
		if len(of.Points) > 0 || s.nonlinear() != "" || o.Runs.Only != nil && !o.Runs.Only(s.preset, s.order) {
			continue
		}
		if alg, err := s.algorithm(); err == nil && alg.Check(sys) == nil {
			all = append(all, &trials{of: of, scheme: s})
		}
	}
	if all == nil {
		return nil
	}
	if len(sys.Infos) > manySubsystems {
		o.Runs.Time /= trialManyPart
	}
	l := &tryer{ctx: ctx, o: o, until: time.Now().Add(o.Runs.Time), floor: math.NaN()}
	for _, h := range r.trialSteps() {
		for _, t := range all {
			if err := l.try(t, h, h == r.Step); err != nil {
				return err
			}
		}
	}
	for _, t := range all {
		t.settle()
	}
	for more := true; more; {
		if err := l.narrow(all); err != nil {
			return err
		}
		more = false
		for _, t := range all {
			again, err := l.tryLonger(t)
			if err != nil {
				return err
			}
			more = more || again
		}
	}
	for _, t := range all {
		t.doubtAlone()
		t.report(r.Step)
	}
	if r.Recommended < 0 {
		if r.recommend(o.Error); r.Recommended >= 0 && r.Strategies[r.Recommended].Seen != nil {
			r.Why += "; that it is stable is seen in runs"
		}
	}
	return nil
}

// narrow finds the ends of stable ranges, of each strategy in turn, so that none is left coarse for another.
func (l *tryer) narrow(all []*trials) error {
	for more := true; more; {
		more = false
		for _, t := range all {
			again, err := l.halve(t)
			if err != nil {
				return err
			}
			more = more || again
		}
	}
	return nil
}

// trialSteps returns the step of the analysis, and those of a scan around it from near to far.
func (r *Report) trialSteps() []float64 {
	const same = 0.01 // relative distance below which a second look shows nothing new
	var steps []float64
	if r.Step >= r.From*(1-1e-9) && r.Step <= r.To*(1+1e-9) {
		steps = append(steps, r.Step)
	}
	for i := range trialPoints {
		if h := r.From * math.Pow(r.To/r.From, float64(i)/(trialPoints-1)); math.Abs(h-r.Step) >= same*r.Step {
			steps = append(steps, h)
		}
	}
	away := func(h float64) float64 { return math.Round(1e3 * math.Abs(math.Log(h/r.Step))) }
	slices.SortStableFunc(steps, func(a, b float64) int { return cmp.Compare(away(a), away(b)) })
	return steps
}

// try adds the trial of a step size, by many steps at once if it is to be precise. Its error ends all; the reason why a step is unknown is in the trial.
func (l *tryer) try(t *trials, h float64, precise bool) error {
	if l.o.Runs.Observe != nil {
		l.o.Runs.Observe(fmt.Sprintf("runs of %s, order %d, with steps of %.4g s", t.scheme.preset, t.scheme.order, h))
	}
	before := l.runs
	f, err := divergence.Finding{Kind: divergence.Undecided}, error(nil)
	if !precise {
		f, err = l.over(t.scheme, h, fewTrialSteps, false)
	}
	if err == nil && f.Kind == divergence.Undecided {
		f, err = l.over(t.scheme, h, manyTrialSteps, true)
	}
	open := f.Kind == divergence.Undecided
	if open {
		f.Kind = divergence.Unknown
	}
	t.runs += l.runs - before
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	if err != nil {
		f = divergence.Finding{Why: err.Error()}
	}
	if errors.Is(err, errNoTime) {
		t.missed++
	}
	t.done = append(t.done, trial{h, f, open})
	slices.SortFunc(t.done, func(a, b trial) int { return cmp.Compare(a.step, b.step) })
	return nil
}

// tryLonger follows what was left open over more steps, as far as time suffices.
func (l *tryer) tryLonger(t *trials) (tried bool, err error) {
	for k := range t.done {
		at := &t.done[k]
		if !at.open {
			continue
		}
		at.open = false
		before := l.runs
		f, err := l.over(t.scheme, at.step, mostTrialSteps, true)
		t.runs += l.runs - before
		if cause := context.Cause(l.ctx); cause != nil {
			return false, cause
		}
		if err == nil && f.Kind != divergence.Undecided {
			at.Finding, tried = f, true
		}
	}
	if tried {
		t.settle()
	}
	return tried, nil
}

// settle decides of differences that grow up to some size, and no more: where shorter steps are calm, the coupling does
// it, else it may be the motion itself.
func (t *trials) settle() {
	calmed := false
	for i := range t.done {
		switch at := &t.done[i]; {
		case at.Kind == divergence.Calm:
			calmed = true
		case at.Kind == divergence.Bounded && calmed:
			at.Kind = divergence.Grows
		case at.Kind == divergence.Bounded:
			at.Kind, at.Why = divergence.Unknown, fmt.Sprintf("differences grow by %.4g in a step until they are as large as the motion, and no more: the motion itself may be one that does not forget, as of chaos", at.Radius)
		}
	}
}

// parts reports whether a stable range ends between neighbours.
func parts(a, b trial) bool {
	ends := func(at trial) bool { return at.Kind == divergence.Grows || at.Ends }
	return a.Kind == divergence.Calm && ends(b) || ends(a) && b.Kind == divergence.Calm
}

// halve tries the middle of each pair of neighbours between which a stable range ends; more reports whether it tried any.
func (l *tryer) halve(t *trials) (more bool, err error) {
	var middle []float64
	for i := range len(t.done) - 1 {
		if a, b := t.done[i], t.done[i+1]; parts(a, b) && b.step > a.step*(1+trialPrecision) {
			middle = append(middle, math.Sqrt(a.step*b.step))
		}
	}
	for _, h := range middle {
		missed := t.missed
		if err := l.try(t, h, true); err != nil {
			return false, err
		}
		k := slices.IndexFunc(t.done, func(at trial) bool { return at.step == h })
		switch {
		case t.missed > missed: // the end stays as coarse as it is
			t.done, t.missed = slices.Delete(t.done, k, k+1), missed
			return false, nil
		case t.done[k].Kind == divergence.Bounded: // between one that is calm and one that grows
			t.done[k].Kind = divergence.Grows
		}
	}
	return middle != nil, nil
}

// doubtAlone makes unknown what is calm with nothing but unknown steps beside: among them, it may be so by chance.
func (t *trials) doubtAlone() {
	blank := func(k int) bool {
		return k < 0 || k >= len(t.done) || t.done[k].Kind == divergence.Unknown && t.done[k].Why != errNoTime.Error()
	}
	for k := range t.done {
		if at := &t.done[k]; len(t.done) > 1 && at.Kind == divergence.Calm && blank(k-1) && blank(k+1) {
			at.Kind, at.Why = divergence.Unknown, "differences do not grow, but at the steps beside nothing is known"
		}
	}
}

// report puts the trials into the strategy.
func (t *trials) report(step float64) {
	s, why := t.of, ""
	seen := &Seen{Looks: len(t.done) - t.missed, Runs: t.runs, Missed: t.missed, Steps: manyTrialSteps, Least: divergence.Least(manyTrialSteps)}
	s.Gaps = nil
	for i, at := range t.done {
		switch {
		case at.Kind != divergence.Unknown:
			s.Points = append(s.Points, Radius{at.step, at.Radius})
			if at.step == step && s.Mode == nil {
				s.Now, seen.Now = at.Radius, true
			}
		case i > 0 && t.done[i-1].Kind == divergence.Unknown:
			s.Gaps[len(s.Gaps)-1].To = at.step
		default:
			s.Gaps = append(s.Gaps, Gap{at.step, at.step, at.Why})
		}
		if at.Kind == divergence.Unknown && why == "" && at.Why != errNoTime.Error() {
			why = fmt.Sprintf("in runs with steps of %.4g s: %s", at.step, at.Why)
		}
		if at.Kind == divergence.Calm {
			if i == 0 || t.done[i-1].Kind != divergence.Calm {
				s.Stable = append(s.Stable, Range{at.step, at.step})
			}
			s.Stable[len(s.Stable)-1].To = at.step
		}
		if i > 0 && parts(t.done[i-1], at) {
			seen.Precision = max(seen.Precision, at.step/t.done[i-1].step-1)
		}
	}
	if s.Points == nil {
		s.Gaps, s.Why = nil, cmp.Or(s.Why, "nothing is known of it")+"; "+cmp.Or(why, errNoTime.Error())
		return
	}
	s.Seen, s.Why = seen, why
	if p := s.Points; len(p) > 1 && !stable(p[0].Radius) && !stable(p[1].Radius) {
		a, b := math.Log(p[0].Radius)/p[0].Step, math.Log(p[1].Radius)/p[1].Step
		if math.Abs(a-b) <= sameRate*max(a, b) {
			s.Why = strings.TrimPrefix(fmt.Sprintf("%s; at the shortest steps differences grow by a factor of e every %.3g s, whatever the step: the motion itself does that, or steps have to be far shorter", why, 1/a), "; ")
		}
	}
}

// over follows differences at one step size over n steps. Long runs show slow growth, too.
func (l *tryer) over(s *scheme, h float64, n int, long bool) (divergence.Finding, error) {
	base, err := l.run(s, h, 0, n)
	if err != nil {
		return divergence.Finding{}, err
	}
	if math.IsNaN(l.floor) {
		again, err := l.run(s, h, 0, n)
		if err != nil {
			return divergence.Finding{}, err
		}
		l.floor = slices.Max(base.Apart(again))
	}
	if !(l.floor < fickle) {
		return divergence.Finding{}, fmt.Errorf("runs of the system differ by %.2g of the outputs although nothing is moved: they have noise", l.floor)
	}
	var seen []divergence.Pursuit
	for _, kick := range trialKicks {
		moved, err := l.run(s, h, kick, n)
		if err != nil {
			return divergence.Finding{}, err
		}
		c := divergence.Follow(base, moved, kick, l.floor, long)
		if c.Kind == divergence.Undecided || c.Kind == divergence.Lost && !long {
			return divergence.Finding{Kind: divergence.Undecided, Why: c.Why}, nil
		}
		seen = append(seen, c)
		if f, done := divergence.Together(seen); done {
			return f, nil
		}
	}
	return divergence.Finding{Kind: divergence.Undecided, Why: "the differences that moved inputs make, of whatever size, are within noise"}, nil
}

// run runs the system over n steps from the operating point on, with its coupled inputs moved over the first of them by
// kick of their size. The error is the reason why there is no such run; one that ends it early is in the trace.
func (l *tryer) run(s *scheme, h, kick float64, n int) (out *divergence.Trace, err error) {
	l.runs++
	sys, end, err := l.o.Runs.Again(l.ctx)
	if err != nil {
		return nil, err
	}
	if end != nil {
		defer func() { err = errors.Join(err, end()) }()
	}
	alg, err := s.algorithm()
	if err != nil {
		return nil, err
	}
	way := int(math.Ceil((max(l.o.At, l.o.Start)-l.o.Start)/h - 1e-6))
	run, err := master.NewRun(sys, alg, master.Options{Start: l.o.Start, Stop: l.o.Start + (float64(way+n)+1.5)*h, Step: h, Tolerance: l.o.Tolerance, Workers: 1, Steer: true})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = run.Close() }() // what a subsystem says at its end is nothing of the coupling
	if err := run.Start(l.ctx); err != nil {
		return nil, err
	}
	out = &divergence.Trace{Held: min(n/heldMost, max(shortHeld, n/heldPart))}
	for k := range way + n + 1 {
		if k%clockSteps == 0 && !time.Now().Before(l.until) {
			return nil, errNoTime
		}
		switch k {
		case way:
			out.Y = append(out.Y, slices.Clone(run.Point().Y))
			err = move(run, sys, kick)
		case way + out.Held:
			err = coupledInputs(run, sys, func(_ int, v *master.Variable) error { return v.Release() })
		}
		if err != nil {
			return nil, err
		}
		if _, err := macroStep(l.ctx, run); err != nil && k < way {
			return nil, fmt.Errorf("on the way to the operating point: %w", err)
		} else if err != nil {
			out.Err = err
			break
		}
		if k >= way {
			out.Y = append(out.Y, slices.Clone(run.Point().Y))
		}
	}
	for i, info := range sys.Infos {
		for o := sys.OutAt[i]; o < sys.OutAt[i+1]; o++ {
			size := 0.0
			for _, y := range out.Y[:min(settling, len(out.Y))] {
				size = max(size, math.Abs(y[o]))
			}
			out.Size = append(out.Size, cmp.Or(size, info.Out[o-sys.OutAt[i]].Magnitude()))
		}
	}
	return out, nil
}

// coupledInputs calls do for each Real input that another subsystem feeds.
func coupledInputs(run *master.Run, sys *master.System, do func(k int, v *master.Variable) error) error {
	for k := range sys.InAt[len(sys.InAt)-1] {
		if sys.SourceSubsystem(k) < 0 {
			continue
		}
		v, err := run.Variable(sys.InName(k))
		if err == nil {
			err = do(k, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// move moves all inputs at random, always alike, so that no mode is missed; by nothing, too, so that algorithms that
// know of it do the same in both runs.
func move(run *master.Run, sys *master.System, kick float64) error {
	rng := rand.New(rand.NewPCG(11, 12))
	u := slices.Clone(run.Point().U)
	return coupledInputs(run, sys, func(k int, v *master.Variable) error {
		by := 0.5 + 0.5*rng.Float64()
		if rng.IntN(2) == 0 {
			by = -by
		}
		return v.Override(master.Linear{Gain: 1, Offset: kick * by * cmp.Or(math.Abs(u[k]), v.Port.Magnitude())})
	})
}
