package mastertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master"
)

// TestAlgorithm checks that an algorithm follows the rules of package master on a damped oscillator cut in two
// (Oscillator). It returns all violations, joined.
//
// On the plain system the algorithm must step every subsystem to the end, meet the grid exactly, give the same
// bits twice and when it is used again, have smaller errors with smaller steps, free the states that it saves,
// and give a partial result when cancelled.
//
// Then the subsystems have fewer capabilities or other demands: they discard steps, one of them is late
// (System.Late), they take steps of one size only, do not accept input derivatives, have no rollback, or have
// no directional derivatives. In each case the algorithm must run to the end, with the same bits twice, or
// refuse the system before the first step by an error that wraps master.ErrCapability, or warn of a limitation
// for the late subsystem, named "gain". After a discarded step it must give the same bits as a run that takes
// the shorter step at once, because Reject discards all effects of the attempt; algorithms that iterate
// (Trial.Iters) may reset their solver and differ by a millionth.
//
// fresh makes a new algorithm. If it monitors a power bond, the effort is second.y1 and the flow first.y2.
func TestAlgorithm(fresh func() master.Algorithm) error {
	if err := testPlain(fresh); err != nil {
		return err
	}
	errs := []error{testRepetition(fresh)}
	for _, c := range circumstances {
		if err := c.test(fresh); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

// The experiment of the suite. Times and steps are dyadic, so that their sums are exact.
const (
	suiteStart = 1.0
	suiteStep  = 1.0 / 128
	suiteSteps = 32
	suiteStop  = suiteStart + suiteSteps*suiteStep
)

// trialSystem is the oscillator, with changes by the suite.
type trialSystem struct {
	linear []*Linear
	subs   []master.Subsystem
	wires  []master.Connection
}

func newTrialSystem() *trialSystem {
	s := &trialSystem{linear: Oscillator(), wires: OscillatorConnections()}
	for _, l := range s.linear {
		s.subs = append(s.subs, l)
	}
	return s
}

// trialRun is one run of the suite.
type trialRun struct {
	Memory
	discard master.DiscardPolicy
	step    float64 // 0 = suiteStep
}

// run takes the system through the experiment.
func (r *trialRun) run(ctx context.Context, alg master.Algorithm, s *trialSystem) error {
	sys, err := master.NewSystem(s.subs, s.wires)
	if err != nil {
		return err
	}
	step := r.step
	if step == 0 {
		step = suiteStep
	}
	run, err := master.NewRun(sys, alg, master.Options{Start: suiteStart, Stop: suiteStop, Step: step, Discard: r.discard,
		Recorders: []master.Recorder{&r.Memory}})
	if err != nil {
		return err
	}
	_, err = run.Run(ctx)
	return err
}

// sameBits reports whether two runs have the same points.
func (r *trialRun) sameBits(o *trialRun) bool {
	return slices.Equal(r.T, o.T) && equalBits(r.Y, o.Y) && equalBits(r.U, o.U)
}

// testPlain runs the oscillator as it is.
func testPlain(fresh func() master.Algorithm) error {
	first, s := fresh(), newTrialSystem()
	var a trialRun
	if err := a.run(context.Background(), &watched{Algorithm: first, s: s}, s); err != nil {
		return err
	}
	var errs []error
	for what, alg := range map[string]master.Algorithm{"two runs differ": fresh(), "used a second time it gives another result": first} {
		var b trialRun
		if err := b.run(context.Background(), alg, newTrialSystem()); err != nil {
			return err
		}
		if !a.sameBits(&b) {
			errs = append(errs, errors.New(what))
		}
	}
	if a.Result.Status != master.Complete {
		errs = append(errs, fmt.Errorf("status %s: %s", a.Result.Status, a.Result.Reason))
	}
	for _, l := range s.linear {
		if l.Calls.Save > 0 && l.Calls.Free == 0 {
			errs = append(errs, fmt.Errorf("%s: saved states are not freed", l.Info().Name))
		}
	}
	errs = append(errs, testConvergence(fresh, distance(&a.Memory)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var c trialRun
	if err := c.run(ctx, fresh(), newTrialSystem()); !errors.Is(err, context.Canceled) || !c.Ended || c.Result.Status != master.Incomplete {
		errs = append(errs, errors.New("a cancelled run does not end as incomplete"))
	}
	return errors.Join(errs...)
}

// testConvergence compares the error of the experiment with that of a run with smaller steps. First order
// gives a quarter of the error. An algorithm that chooses its steps must meet a tolerance instead.
func testConvergence(fresh func() master.Algorithm, coarse float64) error {
	fine := trialRun{step: suiteStep / 4}
	if err := fine.run(context.Background(), fresh(), newTrialSystem()); err != nil {
		return err
	}
	better := distance(&fine.Memory)
	if limit := 0.05; choosesSteps(fresh()) {
		if !(coarse < limit) {
			return fmt.Errorf("it chooses its steps and is %g off the exact solution, more than %g", coarse, limit)
		}
	} else if !(better < coarse/2 || better < 1e-9) {
		return fmt.Errorf("it does not converge: %g off the exact solution with H = %g s, %g with a quarter of that",
			coarse, suiteStep, better)
	}
	return nil
}

func choosesSteps(alg master.Algorithm) bool {
	s := newTrialSystem()
	sys, err := master.NewSystem(s.subs, s.wires)
	return err == nil && alg.Check(sys) == nil && master.PlanOf(alg, sys, suiteStep).FirstStep > 0
}

// circumstance is a change of the subsystems.
type circumstance struct {
	name  string
	setUp func(*trialSystem)
	judge func(*trialRun) error // nil = nothing more
}

var circumstances = []circumstance{
	{"a late subsystem", putGain, judgeGain},
	{"the first takes steps of one size only", func(s *trialSystem) { makeRigid(s, 0) }, nil},
	{"the second takes steps of one size only", func(s *trialSystem) { makeRigid(s, 1) }, nil},
	{"both take steps of one size only", func(s *trialSystem) { makeRigid(s, 0, 1) }, nil},
	{"the first does not take input derivatives", func(s *trialSystem) { s.linear[0].info.Caps.InputDerivatives = false }, nil},
	{"the second does not take input derivatives", func(s *trialSystem) { s.linear[1].info.Caps.InputDerivatives = false }, nil},
	{"subsystems do not take input derivatives, and one is late", func(s *trialSystem) {
		putGain(s)
		for _, l := range s.linear {
			l.info.Caps.InputDerivatives = false
		}
	}, judgeGain},
	{"subsystems do not go back", func(s *trialSystem) {
		for _, l := range s.linear {
			l.info.Caps.SaveState, l.info.Caps.SerializeState = false, false
		}
	}, nil},
	{"subsystems have no directional derivatives", func(s *trialSystem) {
		for _, l := range s.linear {
			l.info.Caps.DirectionalDerivative = false
		}
	}, nil},
}

// test runs the algorithm twice under the circumstance.
func (c *circumstance) test(fresh func() master.Algorithm) error {
	var runs [2]trialRun
	for i := range runs {
		s, r := newTrialSystem(), &runs[i]
		c.setUp(s)
		alg := &watched{Algorithm: fresh(), s: s}
		err := r.run(context.Background(), alg, s)
		if errors.Is(err, master.ErrCapability) && !alg.attempted {
			return nil
		}
		if err != nil {
			return err
		}
		if off := distance(&r.Memory); !(off < 2) {
			return fmt.Errorf("it is %g off the exact solution, whose size is about 10", off)
		}
	}
	if !runs[0].sameBits(&runs[1]) {
		return errors.New("two runs differ")
	}
	if c.judge != nil {
		return c.judge(&runs[0])
	}
	return nil
}

// putGain inserts a stateless subsystem with gain 1 between the position of the first subsystem and the second.
func putGain(s *trialSystem) {
	gain := NewLinear("gain", Matrices{D: [][]float64{{1}}}, nil)
	gain.info.StartIn[0] = 1
	s.linear, s.subs = append(s.linear, gain), append(s.subs, gain)
	at := s.wires[1].To
	s.wires[1].To = master.Endpoint{Subsystem: "gain", Port: "u1"}
	s.wires = append(s.wires, master.Connection{From: master.Endpoint{Subsystem: "gain", Port: "y1"}, To: at})
}

// judgeGain fails unless the gain was stepped after its source, with its new value.
func judgeGain(r *trialRun) error {
	if slices.ContainsFunc(r.Result.Warnings, func(w string) bool { return strings.Contains(w, "gain") }) {
		return nil
	}
	for n, y := range r.Y {
		if position, passed := y[0], y[3]; math.Abs(position-passed) > 1e-12*(1+math.Abs(position)) {
			return fmt.Errorf("at t = %g its output is %g although its source gives %g: "+
				"late subsystems must be stepped after their sources, with their new values (System.Late)", r.T[n], passed, position)
		}
	}
	return nil
}

// makeRigid restricts subsystems of the oscillator to the steps of the grid.
func makeRigid(s *trialSystem, which ...int) {
	for _, i := range which {
		s.linear[i].info.Caps.VariableStep = false
		s.subs[i] = &rigid{s.subs[i]}
	}
}

// rigid is a subsystem that takes only the steps of the grid.
type rigid struct{ master.Subsystem }

func (r *rigid) Unwrap() master.Subsystem { return r.Subsystem }

func (r *rigid) Step(ctx context.Context, t, h float64) (float64, error) {
	const tolerance = 1e-9 * suiteStep
	if off := math.Remainder(t-suiteStart, suiteStep); math.Abs(off) > tolerance || math.Abs(h-suiteStep) > tolerance {
		return t, fmt.Errorf("the algorithm requested a step from %g by %g, but the subsystem takes only steps of "+
			"%g from %g on (Caps.VariableStep)",
			t, h, suiteStep, suiteStart)
	}
	return r.Subsystem.Step(ctx, t, h)
}

// testRepetition compares a run in which a subsystem discards steps with one that takes the shorter steps at
// once.
func testRepetition(fresh func() master.Algorithm) error {
	var errs []error
	for _, late := range []bool{false, true} {
		for which, name := range []string{"first", "second"} {
			if err := repeats(fresh, late, which); err != nil {
				errs = append(errs, fmt.Errorf("the %s discards steps: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// discards holds the times at which a subsystem ends its step early, in steps after the start: in the first
// step, later, and twice in one step.
var discards = []float64{0.5, 3.5, 5.25, 8.375, 11.25, 11.625, 17.5, 17.75, 23.75}

func repeats(fresh func() master.Algorithm, late bool, which int) error {
	var stops, grid []float64
	for _, at := range discards {
		stops = append(stops, suiteStart+at*suiteStep)
	}
	for n := 1; n <= suiteSteps; n++ {
		grid = append(grid, suiteStart+float64(n)*suiteStep)
	}
	// run takes steps that end at these points at the latest, with a subsystem that discards.
	run := func(points, stops []float64, exact bool) (*trialRun, *scripted, int, error) {
		s := newTrialSystem()
		if late {
			putGain(s)
		}
		sub := &interrupted{Subsystem: s.subs[which], at: stops}
		s.subs[which] = sub
		alg := &scripted{watched: watched{Algorithm: fresh(), s: s}, points: points, exact: exact}
		r := &trialRun{discard: master.ShortenOnDiscard}
		err := r.run(context.Background(), alg, s)
		return r, alg, sub.discards, err
	}
	repeated, a, discarded, err := run(grid, stops, !choosesSteps(fresh()))
	if errors.Is(err, master.ErrCapability) && !a.attempted {
		return nil
	}
	if err != nil {
		return err
	}
	if discarded == 0 {
		return errors.New("no step was discarded: the subsystem is not stepped over the macro step")
	}
	straight, b, _, err := run(repeated.T[1:], nil, true)
	if err != nil {
		return err
	}
	for n := range min(len(straight.T), len(repeated.T)) {
		// After a repetition the algorithm may choose another order or judge a step differently.
		if n > 0 && !a.exact && (straight.T[n] != repeated.T[n] || a.orders[n-1] != b.orders[n-1]) {
			return nil
		}
		same := slices.Equal(straight.Y[n], repeated.Y[n]) && slices.Equal(straight.U[n], repeated.U[n])
		if a.iterates {
			same = near(straight.Y[n], repeated.Y[n]) && near(straight.U[n], repeated.U[n])
		}
		if straight.T[n] != repeated.T[n] || !same {
			return fmt.Errorf("at t = %g the outputs are %v after a repetition, and %v in a run that took the shorter steps at once: "+
				"before Accept, an attempt must not change the algorithm",
				repeated.T[n], repeated.Y[n], straight.Y[n])
		}
	}
	return nil
}

// near reports whether values agree to a millionth of the largest, or of 1.
func near(a, b []float64) bool {
	size := 1.0
	for _, v := range a {
		size = max(size, math.Abs(v))
	}
	return slices.EqualFunc(a, b, func(p, q float64) bool { return math.Abs(p-q) <= 1e-6*size })
}

// interrupted is a subsystem that ends steps at given times and discards the rest.
type interrupted struct {
	master.Subsystem
	at       []float64
	discards int
}

func (i *interrupted) Unwrap() master.Subsystem { return i.Subsystem }

func (i *interrupted) Step(ctx context.Context, t, h float64) (float64, error) {
	const tiny = 1e-9 * suiteStep
	for _, at := range i.at {
		if t < at-tiny && at+tiny < t+h {
			i.discards++
			reached, err := i.Subsystem.Step(ctx, t, at-t)
			return reached, errors.Join(err, master.ErrDiscard)
		}
	}
	return i.Subsystem.Step(ctx, t, h)
}

// watched checks an algorithm: it must not change Exec.W, and all subsystems must reach the end of the step.
type watched struct {
	master.Algorithm
	s       *trialSystem
	w       []float64
	t, h    float64 // of the last attempt
	pending bool    // it is neither accepted nor rejected

	attempted bool
}

func (a *watched) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	a.attempted = true
	if a.pending {
		return errors.New("the attempt before was neither accepted nor rejected")
	}
	a.w = append(a.w[:0], x.W...)
	err := a.Algorithm.Attempt(ctx, x, t, H, trial)
	a.t, a.h, a.pending = t, H, true
	if err == nil && !slices.Equal(a.w, x.W) {
		err = errors.New("the attempt changed Exec.W, which belongs to the last accepted point")
	}
	if err != nil || trial.Verdict != master.Accept {
		return err
	}
	for _, l := range a.s.linear {
		if math.Abs(l.t-(t+H)) > 1e-9 {
			return fmt.Errorf("%s was left at t = %g, the step ends at %g", l.info.Name, l.t, t+H)
		}
	}
	return nil
}

func (a *watched) Accept(x *master.Exec, t float64) {
	if !a.pending || math.Abs(t-(a.t+a.h)) > 1e-12 {
		panic(fmt.Sprintf("mastertest: Accept at %g after an attempt from %g by %g", t, a.t, a.h))
	}
	a.pending = false
	a.Algorithm.Accept(x, t)
}

func (a *watched) Reject(t, H float64) {
	if !a.pending || t != a.t || H != a.h {
		panic(fmt.Sprintf("mastertest: Reject from %g by %g after an attempt from %g by %g", t, H, a.t, a.h))
	}
	a.pending = false
	a.Algorithm.Reject(t, H)
}

// Optional interfaces of the algorithm.

func (a *watched) Plan(s *master.System, H float64) master.Plan {
	p := master.PlanOf(a.Algorithm, s, H)
	p.Quantities = nil // which are not passed on
	return p
}

func (a *watched) DoesWithout(i int, why error) bool {
	w, ok := a.Algorithm.(master.Waiver)
	return ok && w.DoesWithout(i, why)
}

// scripted makes an algorithm take steps that end at given points, or earlier. All sizes are multiples of a
// quantum, so that another run can take the same ones.
type scripted struct {
	watched
	points []float64 // ascending
	exact  bool      // the algorithm does not choose
	orders []int     // of the accepted attempts
	order  int       // of the last attempt

	iterates bool
}

func (a *scripted) Accept(x *master.Exec, t float64) {
	a.orders = append(a.orders, a.order)
	a.watched.Accept(x, t)
}

// quantum is small beside each step, and times of the experiment are multiples of it.
const quantum = 0x1p-40

// next returns the size of the step from t, given the one wanted by the algorithm; 0 = any.
func (a *scripted) next(t, wanted float64) float64 {
	i, _ := slices.BinarySearch(a.points, math.Nextafter(t, math.Inf(1)))
	if i == len(a.points) {
		return suiteStep // the run ends at t
	}
	left := a.points[i] - t
	if wanted = quantized(wanted); a.exact || wanted == 0 {
		return left
	}
	return min(wanted, left)
}

func quantized(H float64) float64 { return math.Floor(H/quantum) * quantum }

func (a *scripted) Plan(s *master.System, H float64) master.Plan {
	p := a.watched.Plan(s, H)
	p.FirstStep = a.next(suiteStart, p.FirstStep)
	return p
}

func (a *scripted) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	err := a.watched.Attempt(ctx, x, t, H, trial)
	a.order, a.iterates = trial.Order, a.iterates || trial.Iters > 0
	if trial.Verdict == master.Accept {
		trial.Next = a.next(t+H, trial.Next)
	} else {
		trial.Next = quantized(trial.Next)
	}
	return err
}
