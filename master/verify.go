package master

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Derivatives are compared with differences over several distances. Rounding and the solvers in a subsystem
// disturb short distances, curvature long ones. So a derivative is wrong if it differs from all of them by
// more than slopeTolerance, relative to the larger of the two, while two neighbours agree by steadySlopes.
// With derivatives that are off by slopeTolerance, Newton's method still gains a digit per iteration.
const (
	slopeTolerance = 0.1
	steadySlopes   = 0.01
	// SmallSlope is a slope, relative to the magnitudes of output and input, that counts as zero.
	SmallSlope = 1e-6
)

// SlopesAgree reports whether a derivative and a difference agree, up to floor, which is in their unit.
func SlopesAgree(told, found, floor float64) bool {
	return near(told, found, slopeTolerance, floor)
}

func near(a, b, tolerance, floor float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))+floor
}

// WrongSlope reports whether a derivative is wrong, judged by the differences found over growing
// distances, and its true value. If the differences are too uncertain, it is not.
func WrongSlope(told float64, found []float64, floor float64) (truth float64, wrong bool) {
	for _, f := range found {
		if SlopesAgree(told, f, floor) {
			return told, false
		}
	}
	for i := 1; i < len(found); i++ {
		if near(found[i-1], found[i], steadySlopes, floor) {
			return found[i-1], true
		}
	}
	return told, false
}

// tellLies warns of the undeclared dependencies that the initialisation has found.
func (r *Run) tellLies(n *initializer) error {
	for _, l := range n.leaks {
		if err := r.leak(l.sub, l.out, l.in, l.slope, "in the initialisation",
			"macrostep takes the dependency into account"); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) leak(sub, out, in int, slope float64, when, then string) error {
	return r.lie(fmt.Sprintf("%s: the output %s depends directly on the input %s %s, by %.4g, and its description "+
		"says that it does not; %s; tell the exporter",
		r.sys.Infos[sub], r.sys.OutName(r.sys.OutAt[sub]+out), r.sys.InName(r.sys.InAt[sub]+in), when, slope, then))
}

// tellChanged warns of the output that feeds an input and has changed most when the initialisation ended, relative to its size.
// exchanged are the outputs in the initialisation, [ny].
func (r *Run) tellChanged(exchanged []float64) error {
	most, at := initAcceptable, -1
	for u, y := range r.sys.source {
		if y < 0 {
			continue
		}
		i, a, b := owner(r.sys.OutAt, y), exchanged[y], r.x.Y[y]
		if d := math.Abs(b-a) / max(math.Abs(a), math.Abs(b), r.sys.Infos[i].Out[y-r.sys.OutAt[i]].Magnitude()); d > most {
			most, at = d, u
		}
	}
	if at < 0 {
		return nil
	}
	y := r.sys.source[at]
	i := owner(r.sys.OutAt, y)
	return r.lie(fmt.Sprintf("%s: the output %s was %.6g in the initialisation, and is %.6g after it: %s was initialised with the "+
		"first value; the error that this makes is not measured by --check; if the FMU takes inputs only before its initialisation, "+
		"--quirk %s=inputsBeforeInit helps", r.sys.Infos[i], r.sys.OutName(y), exchanged[y], r.x.Y[y], r.sys.InName(at), r.sys.Infos[i].Name))
}

// verifyFeedthrough tests the subsystems with rollback for dependencies within a step that their
// descriptions deny. It returns the loops including these.
func (r *Run) verifyFeedthrough(ctx context.Context, e Experiment) ([]Loop, error) {
	leaks := map[int][]Leak{}
	for i := range r.x.able {
		verifier := r.x.able[i].leakTest
		if verifier == nil || r.x.saver[i] == nil {
			continue
		}
		ins := r.relies(i)
		if len(ins) == 0 {
			continue
		}
		r.x.touch(i)
		var found []Leak
		err := r.x.crew.on(i, func() (err error) {
			found, err = verifier.VerifyFeedthrough(ctx, e, r.grid.size(0), ins)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			if err := r.leak(i, l.Out, l.In, l.Slope, "within a step", "loops through it are treated as if it were declared"); err != nil {
				return nil, err
			}
		}
		leaks[i] = found
	}
	return r.sys.loops(leaks), nil
}

// relies returns the driven inputs of subsystem i on which, by its description, a connected output does not
// depend within a step.
func (r *Run) relies(i int) (ins []int) {
	s := r.sys
	connected := make([]bool, len(s.Infos[i].Out))
	for _, y := range s.source {
		if y >= s.OutAt[i] && y < s.OutAt[i+1] {
			connected[y-s.OutAt[i]] = true
		}
	}
	for k := range s.Infos[i].In {
		if s.source[s.InAt[i]+k] < 0 && !r.x.External(s.InAt[i]+k) {
			continue
		}
		for o := range connected {
			if connected[o] && s.Infos[i].Step.denies(o, k) {
				ins = append(ins, k)
				break
			}
		}
	}
	return ins
}

// lie warns of a false declaration of a subsystem. In a strict run it returns an error instead.
func (r *Run) lie(text string) error {
	if r.opt.Strict {
		return fmt.Errorf("%s (an error because the run is strict)", text)
	}
	r.warn(text)
	return nil
}

// verifyDerivatives verifies directional derivatives that the algorithm relies on.
func (r *Run) verifyDerivatives(ctx context.Context, e Experiment) error {
	for _, i := range r.plan.Derivatives {
		verifier := r.x.able[i].slopeTest
		if verifier == nil {
			continue
		}
		info := r.sys.Infos[i]
		r.x.touch(i)
		H := 0.0
		if r.x.saver[i] != nil {
			H = r.grid.size(0)
		}
		var test SlopeTest
		err := r.x.crew.on(i, func() (err error) {
			test, err = verifier.VerifyDerivatives(ctx, e, H)
			return err
		})
		if err != nil {
			err = fmt.Errorf("%s: directional derivatives at t = %.12g s: %w", info, r.t, err)
			if !r.waives(i, err) {
				return err
			}
			continue
		}
		if r.result.Slopes == nil {
			r.result.Slopes = make(map[string]SlopeTest)
		}
		r.result.Slopes[info.Name] = test
	}
	return nil
}

// verifyRollback verifies the rollback that the run relies on (fmi2 59).
func (r *Run) verifyRollback(ctx context.Context, e Experiment) error {
	for i, saver := range r.x.saver {
		if saver == nil && r.keep.keepers == nil && r.x.able[i].restarter == nil {
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
			if r.opt.Discard == ShortenOnDiscard || r.keep.keepers != nil || r.x.able[i].restarter != nil || !r.waives(i, err) {
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
		if saver != nil && replay.Unpromised != "" {
			return fmt.Errorf("%s: %w: this run takes it back to earlier states, so its steps are announced as steps that may be undone "+
				"(noSetFMUStatePriorToCurrentPoint = false), and then it computes something else: %s; choose an algorithm that repeats "+
				"nothing (explicit or gauss-seidel, without discard=shorten), and tell the exporter", info, ErrCapability, replay.Unpromised)
		}
		if replay.Untested != "" {
			r.warn(fmt.Sprintf("%s: its rollback is not fully tested: %s; if it does not work, the results are wrong",
				info, replay.Untested))
		}
		if replay.AtStart == "" {
			continue
		}
		text := fmt.Sprintf("%s: it goes another way once it has gone back to its start: %s", info, replay.AtStart)
		if saver == nil { // states are saved for a checkpoint or a restart only
			r.note(text + "; this run does not go back to its start, so its results are not affected")
		} else if err := r.lie(text + "; this run goes back and may have other results than one without rollback: compare it " +
			"with a run by the algorithm explicit, decide which of them is right, and tell the exporter"); err != nil {
			return err
		}
	}
	return nil
}

// waives reports whether the algorithm does without a capability of subsystem i that failed verification,
// and warns if so.
func (r *Run) waives(i int, why error) bool {
	w := r.can.waiver
	if w == nil || r.opt.Strict || !errors.Is(why, ErrCapability) || !w.DoesWithout(i, why) {
		return false
	}
	r.warn(why.Error() + "; the run goes on without")
	return true
}
