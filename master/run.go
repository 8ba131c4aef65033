package master

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"
)

// DiscardPolicy is the reaction to a subsystem that cannot finish a step.
type DiscardPolicy uint8

// The policies.
const (
	// StopOnDiscard ends the run.
	StopOnDiscard DiscardPolicy = iota
	// ShortenOnDiscard restores the start of the step and takes it in shorter pieces; all subsystems must
	// be able to roll back and to vary their step. States are saved at every macro step.
	ShortenOnDiscard
)

// Options of a run. The zero value of each field is its default.
type Options struct {
	Start, Stop float64 // s; the run goes from Start to Stop
	Step        float64 // macro step H in s; required
	Tolerance   float64 // relative tolerance passed to the subsystems; 0 = none
	Discard     DiscardPolicy
	// Workers is the number of threads that step subsystems in parallel; 0 = as many as reduce the time by
	// the costs of steps in earlier runs (Priced), one if these are not known. Each subsystem is called from
	// one thread in the whole run. Results do not depend on the number.
	Workers     int
	Recorders   []Recorder
	Attempts    AttemptRecorder // records every attempt; nil = none
	Signals     Signals         // inputs from outside; nil = none
	Past        []PastOutputs   // communication points before Start, oldest first
	Checkpoints *Checkpoints    // nil = none
	Hooks       []Hook          // act at each communication point, in this order
	// Steer allows a program that steps the run to set variables (Variable.Settable) without hooks.
	Steer    bool
	Realtime *Realtime // nil = as fast as possible
	// Resume is Checkpoint.State of a run of the same system, algorithm and options, which this run
	// continues; nil = from the start. Stop may differ.
	Resume  []byte
	Observe func(Progress) // called a few times a second; nil = none
	Admit   Admission      // admits macro steps; nil = all
	// Tidy is called a few times a second, and before the subsystems are ended, to restore what they have
	// changed in the process. It returns what was restored, and what could not be.
	Tidy func() (restored, lasting []string)
	// Strict turns warnings about false declarations of subsystems into errors.
	Strict bool
	Logger *slog.Logger // nil = discard
}

// PastOutputs holds y [ny] at a communication point before the start. Entries that feed no extrapolated
// input may be NaN.
type PastOutputs struct {
	T float64
	Y []float64
}

// Progress is the progress of a run.
type Progress struct {
	T, Start, Stop float64
	Steps          int
	Rejected       int
	Iterations     int // of correctors
	Wall           time.Duration
	Timing         *Timing // nil = not in real time; it belongs to the receiver
}

// Run simulates a system from start to stop. Run.Run does all of it; Start, Step and Close do it step by
// step, so that a program can act between steps. All methods must be called from one goroutine; Start
// locks it to its thread until Close, because many subsystems must be called from one thread.
type Run struct {
	given *System // the argument of NewRun
	sys   *System // the same, with derivatives that include overridden inputs
	alg   Algorithm
	can   services // of it
	plan  Plan     // likewise
	opt   Options
	parts []part // marked as in use by this run, from Start to Close
	x     *Exec

	timeline
	runState
	record    recording
	keep      checkpointing
	growth    *growth
	own       *ownSteps
	trial     Trial // of the last attempt
	loops     []Loop
	initLoops int // the first of loops: those of the initialisation

	tick      *time.Timer // sets ticked; nil: the run has not started
	ticked    atomic.Bool
	lastFlush time.Time
	startWall time.Time     // of the stepping, or of the last checkpoint
	wall      time.Duration // of the stepping
	starting  time.Duration // before it

	pacer     *pacer               // nil: not in real time
	variables map[string]*Variable // looked up so far
	stopped   string               // why a hook has ended the run; "" = none has
	ended     string               // how a subsystem has ended the simulation; "" = none has

	admitted int // total number of macro steps that may be taken

	phase        phase
	started      bool // subsystems may have been called
	err          error
	result       Result
	initWarnings []string // those before the stepping, which a resumed run gives again

	ready     bool // Start has succeeded
	stopKnown bool // the stop time was passed to the subsystems
}

// runState is the state of a run between two steps, apart from its time and its parts.
type runState struct {
	accepted, rejected    int
	orders                []int // Result.Orders
	iterations, jacobians int
	manipulated           []string      // Result.Manipulated
	disturbed             bool          // a variable was set at the present point
	warnings, notes       []string      // since the start of the stepping
	earlier               time.Duration // wall time of the stepping before startWall
	inRecorders           time.Duration // part of the stepping
}

type phase uint8

const (
	fresh phase = iota
	running
	finished
	closed
)

// NewRun checks options and algorithm against the system. It calls no subsystem.
func NewRun(sys *System, alg Algorithm, o Options) (*Run, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &Run{given: sys, sys: sys, alg: alg, can: servicesOf(alg), opt: o, result: Result{Status: Incomplete}}
	if err := r.prepareGrid(); err != nil {
		return nil, err
	}
	// NewRun of another run must not disturb the algorithm of one that steps.
	prepared := r.preparedParts()
	if err := r.mark(prepared); err != nil {
		return nil, err
	}
	defer r.unmark(prepared)
	if err := r.prepare(); err != nil {
		return nil, err
	}
	return r, nil
}

// check returns an error for numbers that no run can have.
func (o *Options) check() error {
	for _, v := range []float64{o.Start, o.Stop, o.Step} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("start %g, stop %g and step size %g must be finite", o.Start, o.Stop, o.Step)
		}
	}
	switch {
	case o.Workers < 0:
		return fmt.Errorf("there are %d workers; give at least 1, or 0 for as many as pay off", o.Workers)
	case !(o.Tolerance >= 0) || math.IsInf(o.Tolerance, 0):
		return fmt.Errorf("the tolerance is %g; it must be finite and greater than 0, or 0 for none", o.Tolerance)
	case o.Step <= 0:
		return fmt.Errorf("the step size is %g s; it must be greater than 0", o.Step)
	case o.Stop <= o.Start:
		return fmt.Errorf("the stop time %g s is not after the start time %g s; give a later one", o.Stop, o.Start)
	case math.Abs(o.Start+o.Step-o.Start-o.Step) > 1e-3*o.Step || math.Abs(o.Stop-(o.Stop-o.Step)-o.Step) > 1e-3*o.Step:
		return fmt.Errorf("the step size %g s is negligible beside the time %g s: it is little more than the "+
			"time's last digit; choose a larger one",
			o.Step, max(math.Abs(o.Start), math.Abs(o.Stop)))
	}
	return nil
}

// prepareGrid computes the communication points. The run ends at the last whole step if a subsystem
// cannot take a shorter one.
func (r *Run) prepareGrid() error {
	o := &r.opt
	r.grid = newGrid(o.Start, o.Stop, o.Step)
	if r.grid.points() == 0 {
		return fmt.Errorf("the time from %g s to %g s holds no step of %g s; choose a smaller step size", o.Start, o.Stop, o.Step)
	}
	name, fixed := r.fixedStepSubsystem()
	if !r.grid.rest || !fixed {
		return nil
	}
	r.grid.rest = false
	if r.grid.whole == 0 {
		return fmt.Errorf("the time from %g s to %g s is shorter than one step of %g s, and %s cannot take a "+
			"shorter one", o.Start, o.Stop, o.Step, name)
	}
	r.warn(fmt.Sprintf("the stop time %g s is not on the grid of %g s, and %s cannot vary its step: the run ends at %.12g s; choose a step size that divides the time span",
		o.Stop, o.Step, name, r.grid.at(r.grid.whole)))
	return nil
}

// prepare checks the algorithm and its requirements, and binds the hooks.
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
	r.plan = PlanOf(r.alg, sys, o.Step)
	workers := o.Workers
	if workers == 0 && r.plan.Sequential {
		workers = 1
	}
	r.x = newExec(sys, o.Step, workers)
	if steer != nil {
		r.x.steer(steer)
	}
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
	r.growth, r.own = newGrowth(r.sys), newOwnSteps(r.sys)
	for _, prepare := range []func() error{
		r.prepareRollback, r.prepareStepSizes, r.prepareCheckpoints, r.prepareRecording, r.preparePace, r.prepareHooks,
	} {
		if err := prepare(); err != nil {
			return err
		}
	}
	return nil
}

// prepareAgain prepares the algorithm and the hooks, because another run may have prepared them for itself
// since NewRun.
func (r *Run) prepareAgain() error {
	if err := r.alg.Check(r.given); err != nil {
		return err
	}
	r.plan = PlanOf(r.alg, r.sys, r.opt.Step)
	if err := r.prepareRollback(); err != nil {
		return err
	}
	if err := r.prepareStepSizes(); err != nil {
		return err
	}
	return r.prepareHooks()
}

func (r *Run) fixedStepSubsystem() (string, bool) {
	for _, info := range r.sys.Infos {
		if !info.Caps.VariableStep {
			return info.String(), true
		}
	}
	return "", false
}

// prepareRollback determines the subsystems with rollback: those of the algorithm, and all if discarded
// steps are shortened.
func (r *Run) prepareRollback() error {
	needed := r.plan.Rollback
	if r.opt.Discard == ShortenOnDiscard {
		if info := r.inflexible(); info != nil {
			return fmt.Errorf("%s: %w: discarded steps are shortened only if every subsystem can roll back and vary its step "+
				"(canGetAndSetFMUstate, canHandleVariableCommunicationStepSize); choose discard=stop, with which "+
				"a discarded step ends the run",
				info, ErrCapability)
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
		return fmt.Errorf("%w: the algorithm takes subsystems back to the start of a step, and %s cannot go back "+
			"(canGetAndSetFMUstate; Clone of a native.Model, else master.StateSaver with Info.Caps.SaveState): "+
			"choose an explicit algorithm without error estimate, or another export of the FMU",
			ErrCapability, strings.Join(unable, ", "))
	}
	return nil
}

// prepareStepSizes gets the size of the first step if the algorithm chooses step sizes.
func (r *Run) prepareStepSizes() error {
	first := r.plan.FirstStep
	if first == 0 {
		return nil
	}
	if !(first > 0) || math.IsInf(first, 0) || r.opt.Start+first == r.opt.Start {
		return fmt.Errorf("the first step size is %g s; it must be greater than 0 and large enough beside the "+
			"start time %g s", first, r.opt.Start)
	}
	if name, fixed := r.fixedStepSubsystem(); fixed {
		return fmt.Errorf("%s: %w: it cannot vary its step (canHandleVariableCommunicationStepSize), and the "+
			"algorithm chooses the step sizes; "+
			"choose one with steps of one size (explicit, gauss-seidel, implicit, or control.step=fixed)", name, ErrCapability)
	}
	r.want = first
	return nil
}

// inflexible returns a subsystem that cannot repeat a step with another size; nil if all can.
func (r *Run) inflexible() *Info {
	for i, info := range r.sys.Infos {
		if r.x.able[i].saver == nil || !info.Caps.VariableStep {
			return info
		}
	}
	return nil
}

// discardRemedy returns the remedy for a discarded step.
func (r *Run) discardRemedy() string {
	if info := r.inflexible(); info != nil {
		return fmt.Sprintf("%s cannot roll back and take a shorter step: choose a smaller step size, or one whose "+
			"grid contains the time reached", info)
	}
	return "choose a smaller step size, or an algorithm with discard=shorten, with which macrostep goes back and takes the step in pieces"
}

func (r *Run) warn(text string) {
	r.warnings = append(r.warnings, text)
	r.opt.Logger.Warn(text)
}

// Time returns the last accepted communication point.
func (r *Run) Time() float64 { return r.t }

// Steps returns the number of accepted macro steps.
func (r *Run) Steps() int { return r.accepted }

// Point returns the values at the last accepted communication point. It belongs to the run and changes
// with the next Step.
func (r *Run) Point() *Point { return &r.record.point }

// Real returns the value of a Real output or input, "subsystem.port", at the last
// accepted communication point.
func (r *Run) Real(name string) (float64, error) {
	if i, ok := r.sys.FindOut(name); ok {
		return r.record.point.Y[i], nil
	}
	if i, ok := r.sys.FindIn(name); ok {
		return r.record.point.U[i], nil
	}
	return 0, fmt.Errorf("no Real input or output is called %q", name)
}

// SetReal sets a Real input that is not connected, from the present communication point on.
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
