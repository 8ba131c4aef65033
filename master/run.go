package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Tolerances of the time grid, in units of H: a remainder below gridTolerance
// is no step.
const (
	gridTolerance = 1e-9
	maxRetries    = 20
	tickInterval  = 250 * time.Millisecond
	flushInterval = time.Second
)

// DiscardPolicy says what happens when a subsystem cannot finish a step.
type DiscardPolicy uint8

// The policies.
const (
	// StopOnDiscard ends the run.
	StopOnDiscard DiscardPolicy = iota
	// ShortenOnDiscard goes back to the start of the step and takes it in
	// shorter pieces; all subsystems must be able to roll back and to vary
	// their step. States are saved at every macro step.
	ShortenOnDiscard
)

// Options of a run. The zero value of each field is its default.
type Options struct {
	Start, Stop float64 // s; the run goes from Start to Stop
	Step        float64 // macro step H in s; required
	Tolerance   float64 // relative tolerance told to the subsystems; 0 = none
	Discard     DiscardPolicy
	// Workers is the number of threads that step subsystems side by side; 0 = as many
	// as pay, by the costs of their steps in earlier runs (Priced), and one from the time
	// on at which they turn out not to pay. The results are the same.
	Workers     int
	Recorders   []Recorder
	Attempts    AttemptRecorder // sees every attempt; nil = none
	Signals     Signals         // inputs from outside; nil = none
	Past        []PastOutputs   // communication points before Start, oldest first
	Checkpoints *Checkpoints    // nil = none
	// CallByCall steps every subsystem by itself. The results are the same.
	CallByCall bool
	Hooks      []Hook // act at each communication point, in this order
	// Steer allows to set connected inputs and what else Variable.Settable tells
	// without hooks, when the run is stepped piece by piece.
	Steer    bool
	Realtime *Realtime // nil = as fast as can be
	// Resume is Checkpoint.State of a run of the same system, algorithm and
	// options, which this one continues; nil = from the start. Stop may differ.
	Resume  []byte
	Observe func(Progress)
	Admit   Admission // lets macro steps be taken; nil = all
	// Tidy is asked a few times a second, and before the subsystems are ended, to
	// put back what they changed around them; what it gives goes to the warnings.
	Tidy func() []string
	// Strict makes an error of what a subsystem claims and does not hold, where
	// the run could go on with a warning.
	Strict bool
	Logger *slog.Logger // nil = discard
}

// PastOutputs holds y [ny] at a communication point before the start; entries
// that feed no extrapolated input may be NaN.
type PastOutputs struct {
	T float64
	Y []float64
}

// Progress returns how far a run is. It is given a few times a second.
type Progress struct {
	T, Start, Stop float64
	Steps          int
	Rejected       int
	Iterations     int // of correctors
	Wall           time.Duration
	Timing         *Timing // nil = not in real time; it belongs to the receiver
}

// Run takes a system from start to stop. Run.Run does all of it; Start, Step
// and Close do it piece by piece, so that a program may pause, look and act in
// between. All methods must be called from one goroutine; Start locks it to its
// thread until Close, because many subsystems want to be called from one thread.
type Run struct {
	given *System // as NewRun got it
	sys   *System // the same, with derivatives by inputs that are overridden
	alg   Algorithm
	can   services // of it
	opt   Options
	parts []part // in use by this run, from Start to Close
	x     *Exec
	grid  grid

	growth   *growth // of the outputs
	t        float64
	lost     float64 // what t has lost by rounding its sums, if the steps vary
	intended float64 // the size in mind for the present step, lost included; 0 = clipped
	want     float64 // size of the next macro step, if the algorithm chooses it; else 0
	accepted int
	rejected int
	trial    Trial // of the last attempt
	onGrid   int   // grid points reached
	point    Point
	watched  []int // subsystems with watched variables
	watchAll *Phase
	measured []Port
	watchBad []bool // by subsystem: it was said that a watched value is not finite
	begun    int    // recorders that have begun
	loops    []Loop

	tick      *time.Timer // sets ticked; nil: the run has not begun
	ticked    atomic.Bool
	lastFlush time.Time
	startWall time.Time     // of the stepping
	wall      time.Duration // of the stepping

	pacer     *pacer               // nil: not in real time
	variables map[string]*Variable // those that were asked for
	disturbed bool                 // something was set at the present point
	stopped   string               // why a hook has ended the run; "" = none has
	ended     string               // how a subsystem has ended the simulation; "" = none has
	beyond    string               // why the run does not reach the time at which it has; "" = it does

	sampler  sampler
	admitted int // macro steps in all that may be taken

	phase    phase
	started  bool // at least one subsystem was touched
	err      error
	result   Result
	warnings []string
	notes    []string

	// Checkpoints: by subsystem, nil = none are made; the multiple of the interval
	// that the next one waits for; whether the last one was not written.
	keepers          []stateKeeper
	ready            bool // Start has come to its end
	recording        bool // the present communication point is not with all hooks and recorders yet
	stopKnown        bool // the subsystems were told the stop time
	clipped          bool // the algorithm's steps were cut to end at the stop time
	checkpointDue    int
	checkpointFailed bool
	initWarnings     int           // those of warnings that the start gave
	earlier          time.Duration // wall time before the checkpoint from which the run was resumed
	earlierSeconds   []float64     // by subsystem, likewise; nil = none
}

type phase uint8

const (
	fresh phase = iota
	running
	finished
	closed
)

// grid is the sequence of communication points t0 + i·H, never a running sum.
type grid struct {
	start, stop, step float64
	whole             int  // number of whole steps
	rest              bool // one shorter step ends at stop
	meets             bool // the last whole step ends at stop, but for rounding
}

// at gives communication point i. The product is rounded before the sum on
// every platform. The last point is stop itself.
func (g *grid) at(i int) float64 {
	if i > g.whole || i == g.whole && g.meets {
		return g.stop
	}
	return g.start + float64(float64(i)*g.step)
}

// size gives the size of the step from communication point i. It is the same number
// for all whole steps: the difference of two points varies in its last bit, and some
// FMUs compare exactly (fmi2 49).
func (g *grid) size(i int) float64 {
	if i < g.whole {
		return g.step
	}
	return g.stop - g.at(i)
}

// bounded tells that no step ends after stop, not by rounding either.
func (g *grid) bounded() bool {
	last := g.points() - 1
	return g.at(last)+g.size(last) <= g.stop
}

func (g *grid) points() int {
	if g.rest {
		return g.whole + 1
	}
	return g.whole
}

// NewRun checks options and algorithm against the system; no subsystem is touched.
func NewRun(sys *System, alg Algorithm, o Options) (*Run, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Run{given: sys, sys: sys, alg: alg, can: servicesOf(alg), opt: o, result: Result{Status: Incomplete}}
	for _, v := range []float64{o.Start, o.Stop, o.Step} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("start %g, stop %g and step size %g must be finite", o.Start, o.Stop, o.Step)
		}
	}
	switch {
	case o.Workers < 0:
		return nil, fmt.Errorf("there are %d workers; give at least 1, or 0 for as many as pay", o.Workers)
	case !(o.Tolerance >= 0) || math.IsInf(o.Tolerance, 0):
		return nil, fmt.Errorf("the tolerance is %g; it must be finite and greater than 0, or 0 for none", o.Tolerance)
	case o.Step <= 0:
		return nil, fmt.Errorf("the step size is %g s; it must be greater than 0", o.Step)
	case o.Stop <= o.Start:
		return nil, fmt.Errorf("the stop time %g s is not after the start time %g s; give a later one", o.Stop, o.Start)
	case math.Abs(o.Start+o.Step-o.Start-o.Step) > 1e-3*o.Step || math.Abs(o.Stop-(o.Stop-o.Step)-o.Step) > 1e-3*o.Step:
		return nil, fmt.Errorf("the step size %g s vanishes beside the time %g s, whose last digit it is not far above; choose a larger one", o.Step, max(math.Abs(o.Start), math.Abs(o.Stop)))
	}
	r.grid = newGrid(o.Start, o.Stop, o.Step)
	if r.grid.points() == 0 {
		return nil, fmt.Errorf("the time from %g s to %g s is no step of %g s; choose a smaller step size", o.Start, o.Stop, o.Step)
	}
	if r.grid.rest {
		if name, fixed := r.fixedStepSubsystem(); fixed {
			r.grid.rest = false
			if r.grid.whole == 0 {
				return nil, fmt.Errorf("the time from %g s to %g s is shorter than one step of %g s, and %s cannot take a shorter one", o.Start, o.Stop, o.Step, name)
			}
			r.warn(fmt.Sprintf("the stop time %g s is not on the grid of %g s, and %s cannot vary its step: the run ends at %.12g s",
				o.Stop, o.Step, name, r.grid.at(r.grid.whole)))
		}
	}
	// NewRun of another run must not disturb the algorithm of one that steps.
	prepared := r.preparedParts()
	if err := r.mark(prepared); err != nil {
		return nil, err
	}
	defer r.unmark(prepared)
	r.notePrepared()
	if err := r.prepare(); err != nil {
		r.forgetPrepared()
		return nil, err
	}
	return r, nil
}

// prepare checks the algorithm and all that it needs, and binds the hooks.
func (r *Run) prepare() error {
	o, sys := &r.opt, r.sys
	if err := r.alg.Check(sys); err != nil {
		return err
	}
	var steer *steering
	if len(o.Hooks) > 0 || o.Steer {
		steer = newSteering(sys)
		sys = steer.steered(sys)
		r.sys = sys
	}
	workers := o.Workers
	if s := r.can.sequential; s != nil && workers == 0 && s.Sequential() {
		workers = 1
	}
	r.x = newExec(sys, o.Step, workers)
	r.sampler = newSampler(len(sys.Subsystems))
	if steer != nil {
		r.x.steer(steer)
	}
	r.x.callByCall = o.CallByCall
	var errs []error
	for i, info := range sys.Infos {
		errs = append(errs, r.x.able[i].check(info))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.Signals != nil {
		r.x.signals, r.x.external = o.Signals, o.Signals.Inputs()
	}
	if err := r.prepareRollback(); err != nil {
		return err
	}
	if err := r.prepareStepSizes(); err != nil {
		return err
	}
	if err := r.prepareCheckpoints(); err != nil {
		return err
	}
	r.watchBad = make([]bool, len(sys.Subsystems))
	for i, info := range sys.Infos {
		r.point.Watch = append(r.point.Watch, NewValues(info.Watch))
		if len(info.Watch) > 0 {
			r.watched = append(r.watched, i)
		}
	}
	if m := r.can.measuring; m != nil {
		r.measured = m.Quantities()
		r.point.Measured = make([]float64, len(r.measured))
	}
	r.watchAll = r.x.NewPhase(r.watched, r.readWatched)
	r.point.DiscreteIn, r.point.DiscreteOut = r.x.discreteIn, r.x.discreteOut
	r.point.U, r.point.Y = r.x.W, r.x.Y
	if steer != nil {
		r.point.U = slices.Clone(r.x.W)
	}
	if err := r.preparePace(); err != nil {
		return err
	}
	r.growth = newGrowth(len(r.x.Y))
	return r.prepareHooks()
}

// prepareAgain prepares the algorithm and the hooks, which another run has prepared for
// itself since NewRun.
func (r *Run) prepareAgain() error {
	if err := r.alg.Check(r.given); err != nil {
		return err
	}
	if err := r.prepareRollback(); err != nil {
		return err
	}
	if err := r.prepareStepSizes(); err != nil {
		return err
	}
	if r.can.measuring != nil {
		r.measured = r.can.measuring.Quantities()
	}
	return r.prepareHooks()
}

func newGrid(start, stop, step float64) grid {
	g := grid{start: start, stop: stop, step: step}
	// Far out the times themselves are rounded to more than the tolerance.
	tolerance := max(gridTolerance, g.rounding()/step)
	g.whole = int(math.Floor((stop-start)/step + tolerance))
	last := g.at(g.whole)
	g.rest = stop-last > tolerance*step
	g.meets = math.Abs(stop-last) <= g.rounding()
	return g
}

// rounding bounds what communication points lose by it.
func (g *grid) rounding() float64 { return 4 * 0x1p-52 * max(math.Abs(g.start), math.Abs(g.stop)) }

func (r *Run) fixedStepSubsystem() (string, bool) {
	for _, info := range r.sys.Infos {
		if !info.Caps.VariableStep {
			return info.String(), true
		}
	}
	return "", false
}

// prepareRollback finds the subsystems that are taken back: those the algorithm
// names, and all if discarded steps are shortened.
func (r *Run) prepareRollback() error {
	var needed []int
	if user := r.can.rollback; user != nil {
		needed = user.NeedsRollback(r.sys)
	}
	if r.opt.Discard == ShortenOnDiscard {
		if info := r.inflexible(); info != nil {
			return fmt.Errorf("%s: %w: discarded steps are shortened only if every subsystem can roll back and vary its step (canGetAndSetFMUstate, canHandleVariableCommunicationStepSize); choose discard=stop, with which a discarded step ends the run", info, ErrCapability)
		}
		needed = nil
		for i := range r.sys.Subsystems {
			needed = append(needed, i)
		}
	}
	var unable []string
	for _, i := range needed {
		if r.x.able[i].saver == nil {
			unable = append(unable, r.sys.Infos[i].String())
			continue
		}
		r.x.saver[i] = r.x.able[i].saver
	}
	r.x.prepareRollback()
	if len(unable) > 0 {
		return fmt.Errorf("%w: the algorithm takes subsystems back to the start of a step, and %s cannot go back (canGetAndSetFMUstate; Clone of a native.Model, else master.StateSaver with Info.Caps.SaveState): choose an explicit algorithm without error estimate, or another export of the FMU",
			ErrCapability, strings.Join(unable, ", "))
	}
	return nil
}

// prepareStepSizes asks the algorithm for the first step, if it chooses them.
func (r *Run) prepareStepSizes() error {
	if r.can.sizer == nil {
		return nil
	}
	first := r.can.sizer.StepSizes(r.opt.Step)
	if first == 0 {
		return nil
	}
	if !(first > 0) || math.IsInf(first, 0) || r.opt.Start+first == r.opt.Start {
		return fmt.Errorf("the first step size is %g s; it must be greater than 0 and large enough beside the start time %g s", first, r.opt.Start)
	}
	if name, fixed := r.fixedStepSubsystem(); fixed {
		return fmt.Errorf("%s: %w: it cannot vary its step (canHandleVariableCommunicationStepSize), and the algorithm chooses the step sizes; choose one with steps of one size (explicit, gauss-seidel, implicit, or control.step=fixed)", name, ErrCapability)
	}
	r.want = first
	return nil
}

// inflexible gives a subsystem that cannot repeat a step with another size; nil
// if all can.
func (r *Run) inflexible() *Info {
	for i, info := range r.sys.Infos {
		if r.x.able[i].saver == nil || !info.Caps.VariableStep {
			return info
		}
	}
	return nil
}

// discardRemedy says what can be done about a discarded step.
func (r *Run) discardRemedy() string {
	if info := r.inflexible(); info != nil {
		return fmt.Sprintf("%s cannot roll back and take a shorter step: choose a smaller step size, or one whose grid holds the time that was reached", info)
	}
	return "choose a smaller step size, or an algorithm with discard=shorten, with which macrostep goes back and takes the step in pieces"
}

func (r *Run) warn(text string) {
	r.warnings = append(r.warnings, text)
	r.opt.Logger.Warn(text)
}

// Time gives the last accepted communication point.
func (r *Run) Time() float64 { return r.t }

// Steps gives the number of accepted macro steps.
func (r *Run) Steps() int { return r.accepted }

// Point gives what holds at the last accepted communication point. It is the
// run's own; it changes with the next Step.
func (r *Run) Point() *Point { return &r.point }

// Real gives the value of a Real output or input, "subsystem.port", at the last
// accepted communication point.
func (r *Run) Real(name string) (float64, error) {
	if i, ok := r.sys.FindOut(name); ok {
		return r.x.Y[i], nil
	}
	if i, ok := r.sys.FindIn(name); ok {
		return r.point.U[i], nil
	}
	return 0, fmt.Errorf("no Real input or output is called %q", name)
}

// SetReal gives a Real input that is not connected a value, from the present
// communication point on.
func (r *Run) SetReal(name string, v float64) error {
	i, ok := r.sys.FindIn(name)
	if !ok {
		return fmt.Errorf("no Real input is called %q", name)
	}
	if src, connected := r.sys.Source(i); connected {
		return fmt.Errorf("%s is connected to %s; only free inputs can be set", name, r.sys.OutName(src))
	}
	if r.x.External(i) {
		return fmt.Errorf("%s is driven by signals from outside; only free inputs can be set", name)
	}
	r.x.b[i], r.x.W[i] = v, v
	r.seeInputs()
	return nil
}

var errOnce = errors.New("a run starts once; make another one with NewRun, of subsystems that are made anew")

// Run takes the system from start to stop, once. The result holds also if err is not
// nil; it ends on cancellation of ctx at the next communication point.
func (r *Run) Run(ctx context.Context) (res Result, err error) {
	if r.phase != fresh {
		return r.result, errOnce
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r.Start(ctx) == nil {
		_ = r.stepToEnd(ctx) // Close gives the error
	}
	return r.Close()
}

func (r *Run) stepToEnd(ctx context.Context) (err error) {
	defer r.contain(&err)
	for more := true; more && err == nil; {
		if err = r.admit(ctx); err == nil {
			more, err = r.step(ctx)
		}
	}
	return err
}

// Start initialises the subsystems and records the start. After an error only Close is
// left.
func (r *Run) Start(ctx context.Context) (err error) {
	if r.phase != fresh {
		return errOnce
	}
	r.phase = running
	runtime.LockOSThread()
	defer r.contain(&err)
	parts, err := r.startedParts()
	if err == nil {
		err = r.mark(parts)
	}
	if err != nil {
		return r.fail(err)
	}
	if r.parts = parts; !r.notePrepared() {
		if err := r.prepareAgain(); err != nil {
			return r.fail(err)
		}
	}
	r.x.crew.start()
	r.tick = time.AfterFunc(tickInterval, func() { r.ticked.Store(true) })
	r.startWall = time.Now()
	r.lastFlush = r.startWall
	r.t = r.opt.Start

	var saved *Archive
	if r.opt.Resume != nil {
		saved = ReadArchive(r.opt.Resume)
		if r.archiveRecorders(saved); saved.Err() != nil {
			return r.fail(saved.Err())
		}
	}
	for _, rec := range r.opt.Recorders {
		if err := rec.Begin(r.sys, r.measured); err != nil {
			return r.fail(err)
		}
		r.begun++
	}
	r.started = true
	n := initializer{x: r.x, t: r.t, g: r.sys.portGraph(initStep, false), modes: make([]Initializer, len(r.sys.Subsystems)),
		declared: r.sys.onDeclaredLoop(initStep), compared: map[int]bool{}, distrusted: map[int]bool{}}
	e := Experiment{Start: r.opt.Start, Stop: r.opt.Stop, Tolerance: r.opt.Tolerance, HasTol: r.opt.Tolerance > 0,
		StopKnown: r.want == 0 && r.grid.bounded()}
	r.stopKnown = e.StopKnown
	if user := r.can.slopes; user != nil {
		e.InputDerivatives = user.InputDerivativeOrder()
	}
	if err := n.enter(ctx, e); err != nil {
		return r.fail(err)
	}
	err = n.solve(ctx)
	if lie := r.tellLies(&n); err == nil {
		err = lie
	}
	if err != nil {
		return r.fail(err)
	}
	for i, mode := range n.modes {
		r.x.touch(i)
		if mode == nil {
			continue
		}
		if err := r.x.crew.on(i, mode.ExitInit); err != nil {
			return r.fail(n.failed(i, err))
		}
	}
	// Outputs may be known only now (fmi2 71).
	for i := range r.sys.Subsystems {
		if err := r.x.readOn(i); err != nil {
			return r.fail(n.failed(i, err))
		}
	}
	if err := r.x.finite(r.t); err != nil {
		return r.fail(err)
	}
	r.x.keep()
	r.growth.begin(r.x.Y)
	r.x.CoupleAll(r.t, r.x.W)
	r.takeNotes()
	if err := r.verifyRollback(ctx, e); err != nil {
		return r.fail(err)
	}
	loops, err := r.verifyFeedthrough(ctx, e)
	if err != nil {
		return r.fail(err)
	}
	r.loops = append(n.report, loops...)
	if err := r.verifyDerivatives(ctx, e); err != nil {
		return r.fail(err)
	}
	if err := r.takePast(); err != nil {
		return r.fail(err)
	}
	if err := r.alg.Init(r.x, r.t); err != nil {
		return r.fail(err)
	}
	r.tellNotes()
	if solver := r.can.loops; solver != nil {
		treatment := solver.LoopTreatment()
		for i := len(n.report); i < len(r.loops); i++ {
			r.loops[i].Treatment = treatment
		}
	}
	if err := r.tryRestarts(); err != nil {
		return r.fail(err)
	}
	if err := r.x.save(r.t); err != nil { // an FMU that cannot is found before the first step
		return r.fail(err)
	}
	if r.keepers != nil {
		if err := r.tryCheckpoints(); err != nil {
			return r.fail(err)
		}
	}
	r.initWarnings = len(r.warnings)
	r.startWall = time.Now()
	if saved == nil {
		err = r.record()
	} else if r.archive(saved); saved.Err() != nil {
		err = r.fail(saved.Err())
	}
	if c := r.opt.Checkpoints; err == nil && c != nil && c.Every > 0 {
		r.checkpointDue = r.nextCheckpoint()
	}
	if err == nil && r.pacer != nil {
		if err = r.pacer.start(r.t); err != nil {
			err = r.fail(err)
		}
	}
	r.ready = err == nil
	return err
}

// tellNotes hands what the algorithm has said since to the warnings.
func (r *Run) tellNotes() {
	for _, text := range r.x.notes {
		r.warn(text)
	}
	r.x.notes = nil
}

// takeNotes hands what the subsystems tell about their initialisation to the
// warnings.
func (r *Run) takeNotes() {
	for i := range r.x.able {
		r.x.touch(i)
		if noter := r.x.able[i].notes; noter != nil {
			for _, text := range noter.Notes() {
				r.warn(text)
			}
		}
	}
}

// verifyRollback lets the subsystems prove their rollback, if the run relies on
// it (fmi2 59).
func (r *Run) verifyRollback(ctx context.Context, e Experiment) error {
	for i, saver := range r.x.saver {
		if saver == nil && r.keepers == nil && r.x.able[i].restarter == nil {
			continue
		}
		r.x.touch(i)
		verifier := r.x.able[i].rollbackTest
		if verifier == nil {
			continue
		}
		info := r.sys.Infos[i]
		var replay Replay
		err := r.x.crew.on(i, func() (err error) {
			replay, err = verifier.VerifyRollback(ctx, e, r.grid.size(0))
			return err
		})
		if err != nil {
			err = fmt.Errorf("%s: rollback at t = %.12g s: %w", info, r.t, err)
			if r.opt.Discard == ShortenOnDiscard || r.keepers != nil || r.x.able[i].restarter != nil || !r.waives(i, err) {
				return err
			}
			r.x.saver[i] = nil
			r.x.prepareRollback()
			continue
		}
		if r.result.Replay == nil {
			r.result.Replay = make(map[string]Replay)
		}
		r.result.Replay[info.Name] = replay
		r.x.replay[i] = replay
		if replay.AtStart != "" {
			err := r.lie(fmt.Sprintf("%s: it goes another way once it has gone back to its start: %s; a run that never goes back, as with explicit coupling, does not compute the same; "+
				"find out which of the two is right, and tell the exporter", info, replay.AtStart))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// waives reports whether the algorithm goes on without what subsystem i has not
// proved.
func (r *Run) waives(i int, why error) bool {
	w := r.can.waiver
	if w == nil || r.opt.Strict || !errors.Is(why, ErrCapability) || !w.DoesWithout(i, why) {
		return false
	}
	r.warn(why.Error() + "; the run goes on without")
	return true
}

// takePast couples the points before the start.
func (r *Run) takePast() error {
	for _, p := range r.opt.Past {
		if !(p.T < r.opt.Start) {
			continue
		}
		if len(p.Y) != len(r.x.Y) {
			return fmt.Errorf("the history before the start has %d values at t = %.12g s for %d outputs", len(p.Y), p.T, len(r.x.Y))
		}
		for _, y := range r.sys.ExtrapolatedOutputs() {
			if math.IsNaN(p.Y[y]) || math.IsInf(p.Y[y], 0) {
				return fmt.Errorf("the history before the start has no value of %s at t = %.12g s", r.sys.OutName(y), p.T)
			}
		}
		w := make([]float64, len(r.x.W))
		r.x.takeSignals(p.T)
		for k, src := range r.sys.source {
			w[k] = r.x.b[k]
			if src >= 0 {
				w[k] += float64(r.sys.gain[k] * p.Y[src])
			}
		}
		r.x.Past = append(r.x.Past, PastPoint{T: p.T, W: w})
	}
	return nil
}

// Step takes one macro step. more is false at the end of the run, and after an
// error.
func (r *Run) Step(ctx context.Context) (more bool, err error) {
	if r.err != nil {
		return false, r.err
	}
	if r.phase == fresh || r.phase == closed {
		return false, errors.New("a run is stepped between its start and its close")
	}
	if r.phase == finished {
		return false, nil
	}
	defer r.contain(&err)
	return r.step(ctx)
}

func (r *Run) step(ctx context.Context) (more bool, err error) {
	if ctx.Err() != nil {
		return false, r.cancelled(ctx)
	}
	r.tellDisturbance()
	next, planned := r.target()
	H, end, err := r.takeStep(ctx, planned)
	if end != nil && H == 0 {
		r.x.revert()
		return false, r.terminate(end)
	}
	reached := r.t + H
	switch {
	case H == planned:
		reached = next
	case end != nil:
		reached = end.Reached
	}
	if err == nil {
		err = r.x.finite(reached)
	}
	if err != nil {
		r.x.revert()
		return false, r.fail(err)
	}
	r.advance(reached, H, reached == next)
	r.x.keep()
	r.growth.see(r.accepted, r.x.Y)
	r.x.CoupleAll(r.t, r.x.W)
	r.alg.Accept(r.x, r.t)
	missed := r.pace(ctx)
	if err := r.record(); err != nil {
		return false, err
	}
	if missed != nil {
		return false, r.fail(missed)
	}
	if end != nil {
		return false, r.terminate(end)
	}
	return r.goOn()
}

// terminate ends the run at the present point, as a subsystem wants it: a regular end.
func (r *Run) terminate(end *StepError) error {
	r.phase = finished
	r.ended = end.Error()
	if r.beyond != "" {
		r.ended += "; " + r.beyond
		r.warn(r.ended)
	}
	if r.opt.Strict {
		return r.fail(end)
	}
	return nil
}

// Terminated reports whether a subsystem has ended the simulation.
func (r *Run) Terminated() bool { return r.ended != "" }

// goOn does what is due at the communication point that was reached.
func (r *Run) goOn() (more bool, err error) {
	if r.accepted >= r.sampler.next {
		r.sample()
	}
	if r.ticked.Load() {
		r.ticked.Store(false)
		r.tick.Reset(tickInterval)
		if err := r.onTick(time.Now()); err != nil {
			return false, err
		}
	}
	if r.atEnd() || r.stopped != "" {
		r.phase = finished
		return false, nil
	}
	if err := r.checkpointIfDue(); err != nil {
		return false, r.fail(err)
	}
	return true, nil
}

// target gives the time at which the next macro step is to end, and its size.
func (r *Run) target() (end, H float64) {
	if r.want == 0 {
		end = r.grid.at(r.onGrid + 1)
		if r.t == r.grid.at(r.onGrid) {
			return end, r.grid.size(r.onGrid)
		}
		return end, end - r.t // the rest of a step that was shortened
	}
	end = r.until()
	left := end - r.t
	r.intended = 0
	r.clipped = r.clipped || left < 2*r.want && end == r.opt.Stop
	switch {
	case left <= r.want*(1+stretch): // rather than a sliver at the end
	case left < 2*r.want:
		end = r.t + left/2
	default:
		r.intended = r.want + r.lost
		end = r.t + r.intended
	}
	return end, end - r.t
}

// stretch is the part by which the last step may be longer than wanted.
const stretch = 1e-3

// advance makes the point reached by a step of size H the present one; whole
// tells that it is where the step was to end.
func (r *Run) advance(reached, H float64, whole bool) {
	trial := &r.trial
	if r.want > 0 {
		// A step that was clipped to the end says nothing against longer ones.
		next := trial.Next
		if next == 0 {
			next = r.want
		}
		if whole && H < r.want && next >= H {
			next = max(next, r.want)
		}
		r.lost = 0
		if whole && r.intended > 0 {
			r.lost = r.intended - (reached - r.t)
		}
		r.want = next
	} else if reached == r.grid.at(r.onGrid+1) {
		r.onGrid++
	}
	r.t = reached
	r.accepted++
	for len(r.result.Orders) <= trial.Order {
		r.result.Orders = append(r.result.Orders, 0)
	}
	r.result.Orders[trial.Order]++
}

// atEnd tells that the run has come to its end.
func (r *Run) atEnd() bool {
	if r.want > 0 {
		return r.t == r.opt.Stop
	}
	return r.onGrid == r.grid.points()
}

// takeStep attempts the step by H until one attempt is accepted, and gives its step
// size, and the subsystem that has ended the simulation there; without a step size,
// that has ended it in a step to which not all others can go.
func (r *Run) takeStep(ctx context.Context, H float64) (_ float64, end *StepError, err error) {
	if err := r.x.save(r.t); err != nil {
		return 0, nil, err
	}
	last := H // attempted
	var cause error
	stays := false // the subsystem that has ended the simulation is where it did
	for range maxRetries {
		// The first attempt too: replays equal each other, often not a first try.
		if err := r.x.RestoreAll(); err != nil {
			return 0, nil, err
		}
		var err error
		r.trial, err = r.alg.Attempt(ctx, r.x, r.t, H)
		trial := &r.trial
		r.result.Iterations += trial.Iters
		r.result.Jacobians += trial.Jacobians
		accepted := err == nil && trial.Verdict == Accept
		if err != nil { // it came to no estimate
			trial.Est, trial.Indicator = math.NaN(), math.NaN()
		}
		if r.opt.Attempts != nil {
			if err := r.opt.Attempts.RecordAttempt(r.t, H, *trial, accepted, err); err != nil {
				return 0, nil, err
			}
		}
		if accepted {
			if end == nil || H != end.Reached-r.t {
				end = r.x.terminated(r.t + H)
			}
			return H, end, nil
		}
		shorter := H / 2
		cause = err
		var step *StepError
		terminated := errors.Is(err, ErrTerminated) && errors.As(err, &step)
		switch {
		case terminated:
			i := slices.IndexFunc(r.sys.Infos, func(info *Info) bool { return info.Name == step.Subsystem })
			if end = step; end.Reached <= r.t {
				return 0, end, nil
			}
			if r.beyond = r.noWay(i, end, H); r.beyond != "" {
				return 0, end, nil
			}
			shorter = end.Reached - r.t
			if stays = r.x.saver[i] == nil; stays {
				r.x.end(i, end)
			}
		case stays && (err == nil || errors.Is(err, ErrDiscard)):
			if cause == nil {
				cause = errors.New(trial.Why)
			}
			r.beyond = fmt.Sprintf("the run ends at the last common point, t = %.12g s, because the others do not get there: %v", r.t, cause)
			return 0, end, nil
		case err != nil:
			if !errors.As(err, &step) || !errors.Is(err, ErrDiscard) {
				return 0, nil, err
			}
			if !r.x.repeats() {
				return 0, nil, fmt.Errorf("%w; %s", err, r.discardRemedy())
			}
			if done := step.Reached - r.t; done > 0 && done < H {
				shorter = done
			}
		default:
			cause = errors.New(trial.Why)
			if info := r.inflexible(); !r.x.repeats() || info != nil {
				return 0, nil, fmt.Errorf("the step from t = %.12g s by %.4g s is to be repeated with a smaller one, because %s; %w: %s",
					r.t, H, trial.Why, ErrCapability, r.repeatRemedy(info))
			}
			if trial.Next > 0 && trial.Next < H {
				shorter = trial.Next
			}
		}
		r.opt.Logger.Debug("macro step rejected", "t", r.t, "H", H, "next", shorter, "why", cause)
		r.rejected++
		r.alg.Reject(r.t, H)
		r.x.revert()
		if r.t+shorter == r.t {
			break
		}
		last, H = H, shorter
	}
	return 0, nil, fmt.Errorf("the step from t = %.12g s was rejected down to H = %.4g s; the last attempt: %w", r.t, last, cause)
}

// noWay returns why the run ends before the time at which subsystem i has ended the simulation,
// in the step from the present point by H; "" = all others can get there.
func (r *Run) noWay(i int, end *StepError, H float64) string {
	why := ""
	switch {
	case math.IsNaN(end.Reached):
		why = "the time that it reached is unknown"
	case !(end.Reached-r.t < H):
		why = "its step is longer than the macro step"
	default:
		for k, info := range r.sys.Infos {
			back := r.x.saver[k] != nil
			if back && info.Caps.VariableStep || !back && k == i { // which stays where it ended
				continue
			}
			why = fmt.Sprintf("%s is not taken back to a shorter step (with discard=shorten macrostep does that, if every subsystem can roll back and vary its step)", info)
			break
		}
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("the run ends at the last common point, t = %.12g s, because %s", r.t, why)
}

// repeatRemedy says what can be done where a step cannot be repeated.
func (r *Run) repeatRemedy(info *Info) string {
	if info == nil {
		return "not every subsystem is taken back; choose a smaller step size"
	}
	return fmt.Sprintf("%s cannot roll back and take a shorter step (canGetAndSetFMUstate, canHandleVariableCommunicationStepSize); choose a smaller step size", info)
}

// record completes the present communication point and hands it to the recorders.
func (r *Run) record() error {
	r.recording = true
	err := r.recordPoint()
	r.recording = false
	if err != nil {
		return r.fail(err)
	}
	return nil
}

func (r *Run) recordPoint() error {
	if err := r.watchAll.Run(); err != nil {
		return err
	}
	for _, i := range r.watched {
		r.checkWatched(i)
	}
	for _, i := range r.x.listening {
		r.x.coupleDiscrete(i, r.t)
	}
	if len(r.measured) > 0 {
		r.can.measuring.Measured(r.point.Measured)
	}
	r.x.current = outside
	r.point.T, r.point.Step = r.t, r.accepted
	if err := r.act(); err != nil {
		return err
	}
	for _, rec := range r.opt.Recorders {
		if err := rec.Record(&r.point); err != nil {
			return err
		}
	}
	return nil
}

// readWatched reads the watched variables of subsystem i.
func (r *Run) readWatched(i int) error {
	r.x.touch(i)
	if err := r.x.able[i].watcher.Watched(&r.point.Watch[i]); err != nil {
		return fmt.Errorf("%s: reading recorded variables at t = %.12g s: %w", r.sys.Infos[i], r.t, err)
	}
	return nil
}

// checkWatched warns once of a subsystem whose recorded variables are not all
// finite. They feed nothing, so that the run goes on (fmi2 72 is about the rest).
func (r *Run) checkWatched(i int) {
	if r.watchBad[i] {
		return
	}
	for k, v := range r.point.Watch[i].Real {
		if v-v != 0 {
			r.watchBad[i] = true
			r.warn(fmt.Sprintf("%s: the variable %s is %s from t = %.12g s on; it is only recorded, so the run goes on",
				r.sys.Infos[i], r.realWatch(i, k), notFinite(v), r.t))
			return
		}
	}
}

// realWatch names watched Real k of subsystem i.
func (r *Run) realWatch(i, k int) string {
	for _, p := range r.sys.Infos[i].Watch {
		if p.Kind != Real {
			continue
		}
		if k == 0 {
			return r.sys.Infos[i].Name + "." + p.Name
		}
		k--
	}
	return ""
}

func (r *Run) onTick(now time.Time) error {
	if now.Sub(r.lastFlush) >= flushInterval && r.pacer == nil {
		r.lastFlush = now
		for _, rec := range r.opt.Recorders {
			if err := rec.Flush(); err != nil {
				return r.fail(err)
			}
		}
	}
	r.tidy()
	r.tellNotes()
	if r.opt.Observe != nil {
		p := Progress{T: r.t, Start: r.opt.Start, Stop: r.opt.Stop, Steps: r.accepted, Rejected: r.rejected, Iterations: r.result.Iterations,
			Wall: r.earlier + now.Sub(r.startWall)}
		if r.pacer != nil {
			p.Timing = r.pacer.result()
		}
		r.opt.Observe(p)
	}
	return nil
}

// tidy puts back what subsystems changed around them.
func (r *Run) tidy() {
	if r.opt.Tidy != nil {
		for _, text := range r.opt.Tidy() {
			r.warn(text)
		}
	}
}

// fail ends the stepping; the first error stands.
func (r *Run) fail(err error) error {
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// contain turns a panic of a Go subsystem, algorithm or recorder into an error
// of the run, so that results and the other subsystems survive it.
func (r *Run) contain(err *error) {
	if *err != nil {
		r.reportElsewhere(*err)
	}
	if p := recover(); p != nil {
		r.x.revert()
		near := ""
		if r.x.current != outside {
			near = " near subsystem " + r.sys.Infos[r.x.current].Name
		}
		r.opt.Logger.Error("panic"+near, "t", r.t, "panic", p, "stack", string(debug.Stack()))
		*err = r.fail(fmt.Errorf("panic%s at t = %.12g s: %v", near, r.t, p))
	}
}

// reportElsewhere logs a panic of another thread than the run's.
func (r *Run) reportElsewhere(err error) {
	var p *panicError
	if errors.As(err, &p) {
		r.opt.Logger.Error("panic near subsystem "+p.subsystem, "t", r.t, "panic", p.value, "stack", string(p.stack))
	}
}

// Close ends the run wherever it is: subsystems are terminated and freed,
// recorders ended. The error is the one that ended the run before its end,
// joined with what went wrong while closing.
func (r *Run) Close() (Result, error) {
	if r.phase == closed {
		return r.result, r.err
	}
	if r.phase != fresh {
		defer runtime.UnlockOSThread()
	}
	defer r.unmark(r.parts)
	defer r.forgetPrepared()
	r.wall = r.stepping()
	if r.pacer != nil {
		r.pacer.stop()
	}
	if r.tick != nil {
		r.tick.Stop()
	}
	if reviewer := r.can.reviewer; reviewer != nil && r.accepted > 0 {
		for _, text := range reviewer.Review() {
			r.warn(text)
		}
	}
	if r.started {
		r.tidy()
	}
	r.keepCosts()
	r.conclude()
	r.phase = closed
	var errs []error
	for i := range r.sys.Subsystems {
		if r.parts == nil { // it has not started, or was refused: another run may use the subsystem
			parts := r.subsystemParts(i)
			if r.mark(parts) != nil {
				continue
			}
			defer r.unmark(parts)
		}
		if err := r.x.crew.on(i, func() error { return r.release(i) }); err != nil {
			errs = append(errs, fmt.Errorf("%s: ending: %w", r.sys.Infos[i], err))
		}
	}
	r.x.crew.stop()
	r.blame(errs)
	for _, rec := range r.opt.Recorders[:r.begun] {
		if err := r.end(rec); err != nil && !errors.Is(r.err, err) {
			errs = append(errs, err)
			r.blame(errs)
		}
	}
	r.err = errors.Join(append([]error{r.err}, errs...)...)
	return r.result, r.err
}

// blame makes a run failed that went well but for its end.
func (r *Run) blame(errs []error) {
	if len(errs) > 0 && r.err == nil {
		r.result.Status, r.result.Reason = Failed, errors.Join(errs...).Error()
	}
}

// end ends one recorder; a panic in it does not keep the others.
func (r *Run) end(rec Recorder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a recorder: %v", p)
		}
	}()
	return rec.End(r.result)
}

// release ends one subsystem; a panic in it does not keep the others.
func (r *Run) release(i int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if state := r.x.states[i]; state != nil {
		err = r.x.saver[i].FreeState(state)
	}
	able := &r.x.able[i]
	if able.terminator != nil && r.started {
		err = errors.Join(err, able.terminator.Terminate())
	}
	if able.closer != nil {
		err = errors.Join(err, able.closer.Close())
	}
	return err
}

// concludeParts fills in what algorithm, hooks and subsystems say.
func (r *Run) concludeParts() {
	res := &r.result
	if m := r.can.monitoring; m != nil {
		res.Monitored = m.Monitored()
	}
	if b := r.can.bonds; b != nil {
		res.Bonds = b.BondEnergies()
	}
	if m := r.can.models; m != nil {
		res.Models = m.Models()
	}
	for _, h := range r.opt.Hooks {
		if e, ok := h.(Expecter); ok {
			res.Expectations.add(e.Expectations())
		}
	}
	res.Restarts = r.x.restarts()
	r.judgeStability()
}

// conclude fills the result from the state of the run.
func (r *Run) conclude() {
	res := &r.result
	r.tellNotes()
	res.Workers = len(r.x.crew.errs)
	res.Time, res.Accepted, res.Rejected = r.t, r.accepted, r.rejected
	if r.parts != nil { // else algorithm, hooks and subsystems may be at work for another run
		r.concludeParts()
	}
	inside := make([]float64, len(r.x.crew.errs)) // by worker
	for i := range r.sys.Subsystems {
		res.SubsystemSteps = append(res.SubsystemSteps, r.x.steps[i])
		res.SubsystemSaves = append(res.SubsystemSaves, r.x.saves[i])
		res.SubsystemRestores = append(res.SubsystemRestores, r.x.restores[i])
		seconds := r.subsystemSeconds(i)
		res.SubsystemSeconds = append(res.SubsystemSeconds, seconds)
		inside[r.x.crew.owner[i]] += seconds
	}
	if r.tick != nil {
		res.WallSeconds = r.wall.Seconds()
	}
	res.MasterSeconds = res.WallSeconds - slices.Max(inside)
	if p := r.pacer; p != nil {
		res.Realtime = p.result()
		res.MasterSeconds -= p.waited.Seconds()
		if text := res.Realtime.Missed(); text != "" && !errors.Is(r.err, ErrOverrun) {
			r.warn(text)
		}
	}
	res.MasterSeconds = max(0, res.MasterSeconds)
	res.Loops, res.Warnings, res.Notes = r.loops, r.warnings, r.notes
	switch {
	case r.ended != "" && (r.err == nil || errors.Is(r.err, ErrTerminated)):
		res.Status, res.Reason = Terminated, r.ended
	case r.err == nil && r.phase == finished:
		res.Status, res.Reason = Complete, r.stopped
	case r.err == nil:
		res.Status, res.Reason = Incomplete, fmt.Sprintf("stopped at t = %.12g s", r.t)
	case errors.Is(r.err, context.Canceled), errors.Is(r.err, context.DeadlineExceeded), errors.Is(r.err, ErrInterrupted):
		res.Status, res.Reason = Incomplete, fmt.Sprintf("cancelled at t = %.12g s: %v", r.t, r.err)
	default:
		res.Status, res.Reason = Failed, r.err.Error()
	}
}
