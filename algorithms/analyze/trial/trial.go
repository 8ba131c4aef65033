// Package trial finds from runs of a system whether coupling algorithms are stable, where there are no models.
//
// The system runs twice, the second time with its coupled inputs moved a little over some macro steps from the operating
// point on. The difference of the two runs grows by the spectral radius in every step, also for periodic motions, and along
// the motion of a nonlinear system. Moves of different size have to agree; otherwise the stability is unknown.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/macrostep/macrostep/master"
)

// Options of trial runs.
type Options struct {
	Start, At, Tolerance float64 // of the experiment (s); inputs are moved at the first point at or after At
	Step, From, To       float64 // s: the first step, and the range around it
	// Again returns a new instance of the system, not yet started, and a function to call after its run was closed,
	// which may be nil. nil = no trial runs.
	Again func(ctx context.Context) (*master.System, func() error, error)
	// Time limits all runs together. It decides how many steps are tried, not the result of a step.
	Time    time.Duration
	Only    func(preset string, order int) bool // the strategies to try; nil = all
	Observe func(what string)                   // called before each trial; may be nil
}

// Strategy is an algorithm to try, with the findings.
type Strategy struct {
	Preset string
	Order  int
	New    func() (master.Algorithm, error)
	Looks  []Finding // by rising step
	Runs   int
	Missed int // steps that were not tried for lack of time
}

const (
	// points is the number of steps of a scan, three per decade of the usual range: each takes a few thousand steps.
	points = 9
	// precision of the ends of stable ranges: in nonlinear systems finer ones would depend on the size of the kick.
	precision = 0.02
	// outOfNumbers ends a run; the square of a difference is still finite.
	outOfNumbers = 1e150
	// fewSteps follow the kick, and Steps if these do not decide: the first show growth by 1 % per step, the others by a
	// thousandth. Least is the least growth per step that shows: calmFactor over a third of Steps.
	fewSteps, Steps, Least = 400, 2000, 3 * 0.223 / Steps
	// Inputs are moved over 1/heldPart of the run, 25 or 125 steps, because components that sample or take internal steps
	// may not see a shorter move: the steps of a scan go down to 1/30 of that of the analysis.
	heldPart = 16
)

// kicks are the relative moves of the inputs: well above rounding, and small beside the motion.
var kicks = [2]float64{1e-3, 1e-5}

// ErrNoTime is why steps were not tried.
var ErrNoTime = errors.New("not checked: the time for trial runs was used up (--runs) [no-time]")

// tryer makes the runs.
type tryer struct {
	Options
	until time.Time
}

// Run tries strategies at the steps of a scan, those nearest to Step first, and then narrows the ends of their stable
// ranges while there is time. Each strategy is first tried at its nearest steps, because one alone shows little. Then the
// strategy that has taken least time goes on, so that expensive ones do not take the time of the others. The first strategies
// are the most important. Its error is that of the context.
func Run(ctx context.Context, o Options, all []*Strategy) error {
	r := &tryer{o, time.Now().Add(o.Time)}
	steps := []float64{o.Step}
	away := func(h float64) float64 { return math.Abs(math.Log(h / o.Step)) }
	for i := range points {
		const same = 0.01 // relative distance from Step below which a step is not tried again
		if h := o.From * math.Pow(o.To/o.From, float64(i)/(points-1)); away(h) >= same {
			steps = append(steps, h)
		}
	}
	slices.SortStableFunc(steps, func(a, b float64) int { return cmp.Compare(away(a), away(b)) })
	steps = slices.DeleteFunc(steps, func(h float64) bool { return h < o.From*(1-1e-9) || h > o.To*(1+1e-9) })
	for _, s := range all {
		s.Missed = len(steps)
	}
	taken := make([]time.Duration, len(all))
	for {
		next, h := -1, 0.0
		for k, s := range all {
			wanted, tried := s.next(steps), len(steps)-s.Missed
			if wanted > 0 && (next < 0 || taken[k] < taken[next]) {
				next, h = k, wanted
			}
			if wanted > 0 && tried > 0 && tried < nearest {
				next, h = k, wanted
				break
			}
		}
		if next < 0 {
			return nil
		}
		from := time.Now()
		if tried, err := r.try(ctx, all[next], h); err != nil || !tried {
			return err
		}
		taken[next] += time.Since(from)
	}
}

// nearest is the number of steps of a strategy that come first: Step, and one above and one below it.
const nearest = 3

// next returns the step to try next, the next of the scan or one between a stable and another step; 0 = none.
func (s *Strategy) next(steps []float64) float64 {
	if s.Missed > 0 {
		return steps[len(steps)-s.Missed]
	}
	for i := len(s.Looks) - 1; i > 0; i-- {
		if a, b := s.Looks[i-1], s.Looks[i]; Ends(a, b) && b.Step > a.Step*(1+precision) {
			return math.Sqrt(a.Step * b.Step)
		}
	}
	return 0
}

// Ends reports whether a stable range ends between neighbours.
func Ends(a, b Finding) bool { return (a.Kind == Calm) != (b.Kind == Calm) }

// try adds the finding at a step size, if there is time. Its error is that of the context; other errors make the step
// unknown.
func (r *tryer) try(ctx context.Context, s *Strategy, h float64) (tried bool, err error) {
	if r.Observe != nil {
		r.Observe(fmt.Sprintf("runs of %s, order %d, with steps of %.4g s", s.Preset, s.Order, h))
	}
	f, err := r.over(ctx, s, h, fewSteps)
	if err == nil && f.open {
		f, err = r.over(ctx, s, h, Steps)
	}
	if cause := context.Cause(ctx); cause != nil || errors.Is(err, ErrNoTime) {
		return false, cause
	} else if err != nil {
		f = Finding{Why: err.Error()}
	}
	f.Step, s.Missed = h, max(s.Missed-1, 0)
	s.Looks = append(s.Looks, f)
	slices.SortFunc(s.Looks, func(a, b Finding) int { return cmp.Compare(a.Step, b.Step) })
	return true, nil
}

// over follows differences at one step size over n steps.
func (r *tryer) over(ctx context.Context, s *Strategy, h float64, n int) (f Finding, err error) {
	base, err := r.run(ctx, s, h, 0, n)
	if err != nil {
		return f, err
	}
	var moved []*trace
	for _, kick := range kicks {
		m, err := r.run(ctx, s, h, kick, n)
		if err != nil {
			return f, err
		}
		moved = append(moved, m)
		if f = compare(base, moved, n == Steps); f.Kind == Unknown {
			break
		}
	}
	return f, nil
}

// run runs the system over n steps from the operating point on, with its coupled inputs moved over the first of them by
// the relative kick. It returns errors up to the operating point; one that ends the run later is in the trace.
func (r *tryer) run(ctx context.Context, s *Strategy, h, kick float64, n int) (out *trace, err error) {
	if !time.Now().Before(r.until) {
		return nil, ErrNoTime
	}
	s.Runs++
	sys, end, err := r.Again(ctx)
	if err != nil {
		return nil, err
	}
	if end != nil {
		defer func() { err = errors.Join(err, end()) }()
	}
	alg, err := s.New()
	if err != nil {
		return nil, err
	}
	way := int(math.Ceil((max(r.At, r.Start)-r.Start)/h - 1e-6))
	run, err := master.NewRun(sys, alg, master.Options{Start: r.Start, Stop: r.Start + (float64(way+n)+1.5)*h, Step: h,
		Tolerance: r.Tolerance, Workers: 1, Steer: true})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = run.Close() }() // errors at the end do not matter for stability
	err = run.Start(ctx)
	out = &trace{held: n / heldPart}
	for k := 0; err == nil && k <= way+n; k++ {
		if !time.Now().Before(r.until) {
			return nil, ErrNoTime
		}
		if k >= way {
			out.y = append(out.y, slices.Clone(run.Point().Y))
		}
		if k == way || k == way+out.held {
			err = move(run, sys, k == way, kick)
		}
		if err == nil {
			_, err = run.Step(ctx)
		}
		if err == nil && run.Terminated() {
			err = fmt.Errorf("%w at t = %.12g s", master.ErrTerminated, run.Time())
		} else if err == nil && slices.ContainsFunc(run.Point().Y, func(v float64) bool { return v-v == 0 && math.Abs(v) > outOfNumbers }) {
			err = errors.New("the coupled run diverges to NaN or infinity [diverges]")
		}
		if err != nil && k >= way {
			out.err = err
			return out, nil
		}
	}
	return out, err
}

// move moves all coupled inputs by random numbers, the same in all runs, so that no mode is missed, or releases them. A
// kick of 0 overrides the inputs too, so that algorithms behave the same in both runs.
func move(run *master.Run, sys *master.System, on bool, kick float64) error {
	rng := rand.New(rand.NewPCG(11, 12))
	u := run.Point().U
	for k := range sys.InAt[len(sys.InAt)-1] {
		if sys.SourceSubsystem(k) < 0 {
			continue
		}
		v, err := run.Variable(sys.InName(k))
		if err != nil {
			return err
		}
		if on {
			by := kick * (0.5 + 0.5*rng.Float64()) * float64(2*rng.IntN(2)-1)
			err = v.Override(master.Linear{Gain: 1, Offset: by * cmp.Or(math.Abs(u[k]), v.Port.Magnitude())})
		} else {
			err = v.Release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
