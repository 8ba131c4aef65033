// Package trial finds out from runs of a system whether coupling algorithms are stable, where models do not show it.
//
// The system is run as it is, and with its coupled inputs moved a little over some macro steps from the operating point on. The
// difference of the two grows by the spectral radius in every step, also where the system repeats itself periodically, and
// along the motion of one that is not linear. Moves of different size have to agree; what they leave open is unknown.
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
	Step, From, To       float64 // s: the step that is tried first, and the range around it
	// Again makes the system anew, as it is before its start, and returns a function that ends it once its run is closed,
	// which may be nil. nil = no trial runs.
	Again func(ctx context.Context) (*master.System, func() error, error)
	// Time is how long all runs may take. It decides how many steps are tried, not what is found at one.
	Time    time.Duration
	Only    func(preset string, order int) bool // the strategies to try; nil = all
	Observe func(what string)                   // called before each trial; nil = nobody is
}

// Strategy is an algorithm to try, and what is found of it.
type Strategy struct {
	Preset string
	Order  int
	New    func() (master.Algorithm, error)
	Looks  []Finding // by rising step
	Runs   int
	Missed int // steps that were not tried for lack of time
}

const (
	// points are the steps of a scan: two in a decade of the usual range of three, as each takes some thousand steps.
	points = 9
	// precision is that of the ends of stable ranges: finer ones move with the size of the kick where the system is not linear.
	precision = 0.02
	// outOfNumbers ends a run: the square of a difference is still a number.
	outOfNumbers = 1e150
	// fewSteps are followed after the kick, and Steps if these leave a question open: growth by 1 % in a step shows in the
	// first, by a thousandth in the others. Least is the least growth in a step that shows: calmFactor in a third of them.
	fewSteps, Steps, Least = 400, 2000, 3 * 0.223 / Steps
	// Inputs are moved over a heldPart of the run, 25 or 125 steps. Components that sample, or take steps of their own, see
	// them now and then only, and the steps of a scan are 1/30 of that of the analysis at least.
	heldPart = 16
)

// kicks are how far inputs are moved, relative to their size: enough to rise above rounding, and little beside a motion.
var kicks = [2]float64{1e-3, 1e-5}

// ErrNoTime is why steps are missed.
var ErrNoTime = errors.New("not checked: the time for trial runs was used up (--runs)")

// tryer makes the runs.
type tryer struct {
	Options
	until time.Time
}

// Run tries strategies at the steps of a scan, from Step on, and then narrows the ends of their stable ranges down, as far
// as time suffices. Its error is that of the context.
func Run(ctx context.Context, o Options, all []*Strategy) error {
	r := &tryer{o, time.Now().Add(o.Time)}
	steps := []float64{o.Step}
	for i := range points {
		steps = append(steps, o.From*math.Pow(o.To/o.From, float64(i)/(points-1)))
	}
	away := func(h float64) float64 { return math.Abs(math.Log(h / o.Step)) }
	slices.SortStableFunc(steps, func(a, b float64) int { return cmp.Compare(away(a), away(b)) })
	for i, h := range steps {
		const same = 0.01 // relative distance from Step below which a second look shows nothing new
		if i > 0 && away(h) < same || h < o.From*(1-1e-9) || h > o.To*(1+1e-9) {
			continue
		}
		for _, s := range all {
			if tried, err := r.try(ctx, s, h); err != nil {
				return err
			} else if !tried {
				s.Missed++
			}
		}
	}
	for more := true; more; { // each in turn, so that none is left coarse for another
		more = false
		for _, s := range all {
			for i := len(s.Looks) - 1; i > 0; i-- {
				if a, b := s.Looks[i-1], s.Looks[i]; Ends(a, b) && b.Step > a.Step*(1+precision) {
					more = true
					if tried, err := r.try(ctx, s, math.Sqrt(a.Step*b.Step)); err != nil || !tried {
						return err
					}
				}
			}
		}
	}
	return nil
}

// Ends reports whether a stable range ends between neighbours.
func Ends(a, b Finding) bool { return (a.Kind == Calm) != (b.Kind == Calm) }

// try adds a look at a step size, if there is time. Its error is that of the context: why a step is unknown is in the look.
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
	f.Step = h
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
// kick of their size. The error is the reason why there is no such run; one that ends it early is in the trace.
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
	run, err := master.NewRun(sys, alg, master.Options{Start: r.Start, Stop: r.Start + (float64(way+n)+1.5)*h, Step: h, Tolerance: r.Tolerance, Workers: 1, Steer: true})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = run.Close() }() // what a subsystem says at its end is nothing of the coupling
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
		} else if err == nil && slices.ContainsFunc(run.Point().Y, func(v float64) bool { return math.Abs(v) > outOfNumbers }) {
			err = errors.New("the coupled run diverges to NaN or infinity")
		}
		if err != nil && k >= way {
			out.err = err
			return out, nil
		}
	}
	return out, err
}

// move moves all coupled inputs at random, always alike, so that no mode is missed, or releases them. It moves by nothing
// too, so that algorithms that know of it do the same in both runs.
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
