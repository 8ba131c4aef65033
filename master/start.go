package master

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Start initialises the subsystems and records the start. After an error only Close may be called.
func (r *Run) Start(ctx context.Context) (err error) {
	if r.phase != fresh {
		return errOnce
	}
	r.phase = running
	runtime.LockOSThread()
	defer r.contain(&err)
	saved, err := r.begin()
	if err == nil {
		err = r.initialize(ctx)
	}
	if err == nil {
		err = r.prepareSteps()
	}
	if err == nil {
		err = r.goFrom(saved)
	}
	if err != nil {
		return r.fail(err)
	}
	r.ready = true
	return nil
}

// begin marks the parts of the run as in use, and begins its records. It returns the checkpoint that the
// run resumes; nil = none.
func (r *Run) begin() (saved *Archive, err error) {
	parts, err := r.startedParts()
	if err == nil {
		err = r.mark(parts)
	}
	if err != nil {
		return nil, err
	}
	r.parts = parts
	if err := r.prepareAgain(); err != nil {
		return nil, err
	}
	r.x.crew.start()
	r.tick = time.AfterFunc(tickInterval, func() { r.ticked.Store(true) })
	r.startWall = time.Now()
	r.lastFlush = r.startWall
	r.t = r.opt.Start
	if r.opt.Resume != nil {
		saved = ReadArchive(r.opt.Resume)
		if r.archiveRecorders(saved); saved.Err() != nil {
			return nil, saved.Err()
		}
	}
	for _, rec := range r.opt.Recorders {
		if err := rec.Begin(r.sys, r.plan.Quantities); err != nil {
			return nil, err
		}
		r.record.begun++
	}
	r.started = true
	return saved, nil
}

// initialize solves the initialisation, and verifies the capabilities that the run relies on.
func (r *Run) initialize(ctx context.Context) error {
	n := initializer{x: r.x, t: r.t, g: r.sys.portGraph(initStep, false), modes: make([]Initializer, len(r.sys.Subsystems)),
		declared: r.sys.onDeclaredLoop(initStep)}
	e := Experiment{Start: r.opt.Start, Stop: r.opt.Stop, Tolerance: r.opt.Tolerance, HasTol: r.opt.Tolerance > 0,
		StopKnown: r.want == 0 && r.grid.bounded(), InputDerivatives: r.plan.InputDerivatives}
	r.stopKnown = e.StopKnown
	if err := n.enter(ctx, e); err != nil {
		return err
	}
	err := n.solve(ctx)
	if lie := r.tellLies(&n); err == nil {
		err = lie
	}
	if err != nil {
		return err
	}
	exchanged := slices.Clone(r.x.Y)
	if err := n.exit(); err != nil {
		return err
	}
	if err := r.tellChanged(exchanged); err != nil {
		return err
	}
	if err := r.x.Finite(r.t); err != nil {
		return err
	}
	r.x.keep()
	r.record.point.Y = r.x.shown()
	r.growth.begin(r.t)
	r.x.CoupleAll(r.t, r.x.W)
	r.takeNotes()
	if err := r.verifyRollback(ctx, e); err != nil {
		return err
	}
	loops, err := r.verifyFeedthrough(ctx, e)
	if err != nil {
		return err
	}
	r.loops = append(n.report, loops...)
	r.initLoops = len(n.report)
	return r.verifyDerivatives(ctx, e)
}

// prepareSteps initialises the algorithm, and tests restarts and checkpoints.
func (r *Run) prepareSteps() error {
	if err := r.takePast(); err != nil {
		return err
	}
	if err := r.alg.Init(r.x, r.t); err != nil {
		return err
	}
	r.tellNotes()
	if r.can.reporter != nil {
		treatment := r.can.reporter.Report().Loops
		for i := r.initLoops; i < len(r.loops); i++ {
			r.loops[i].Treatment = treatment
		}
	}
	if err := r.tryRestarts(); err != nil {
		return err
	}
	if err := r.x.save(r.t); err != nil {
		return err
	}
	if r.keep.keepers == nil {
		return nil
	}
	return r.tryCheckpoints()
}

// goFrom starts the stepping, from the start or a checkpoint.
func (r *Run) goFrom(saved *Archive) error {
	r.initWarnings, r.warnings = r.warnings, nil
	now := time.Now()
	r.starting, r.startWall = now.Sub(r.startWall), now
	if saved == nil {
		if err := r.recordPoint(); err != nil {
			return err
		}
	} else if r.archive(saved); saved.Err() != nil {
		return saved.Err()
	}
	if c := r.opt.Checkpoints; c != nil && c.Every > 0 {
		r.keep.due = r.nextCheckpoint()
	}
	if r.pacer != nil {
		return r.pacer.start(r.t)
	}
	return nil
}

// tellNotes adds the new notes of the algorithm to the warnings.
func (r *Run) tellNotes() {
	for _, text := range r.x.notes {
		r.warn(text)
	}
	r.x.notes = nil
}

// takeNotes adds the subsystems' notes about their initialisation to the warnings.
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

// takePast computes the coupled inputs of the points before the start.
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
