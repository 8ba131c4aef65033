package fmuslave

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// trial is the result of a test request for directional derivatives.
//
// Two things go wrong in practice. A refused request puts the instance into a state that only a restore
// ends. And FMUs that compute differences internally leave states and inputs displaced (by 1e-5 and more
// for each call in Dymola 2020 to 2022x, whatever the seed), so that the simulation continues from there.
// Both are tested on separate instances. If a request displaces the FMU, its state is saved before and
// restored after it. That helped with all FMUs tested; other cures, such as a second request with a seed
// of zero, did not.
type trial struct {
	done      bool
	refused   string // "" = requests succeed
	displaces bool   // the state must be saved and restored
}

// refusal is the error of a refused request if the trial was made before a checkpoint.
type refusal string

func (r refusal) Error() string { return string(r) }
func (r refusal) Unwrap() error { return master.ErrCapability }

// tryOut tests, once, the request for derivatives of outputs by inputs, or with which = 1 of all unknowns by
// all knowns. An FMU that can be instantiated only once is not tested; its state is saved and restored.
func (s *Slave) tryOut(which int) (displaces bool, refused error) {
	t, refusals := &s.trials[which], &s.linear.refused
	if !t.done {
		if err := s.try(which, t); err != nil {
			t.refused, refusals[which] = err.Error(), err
		}
	}
	if t.refused != "" && refusals[which] == nil {
		refusals[which] = refusal(t.refused)
	}
	return t.displaces, refusals[which]
}

// try makes the trial; refused is why requests are refused.
func (s *Slave) try(which int, t *trial) (refused error) {
	l, rollback := &s.linear, s.info.Caps.SaveState
	t.done, t.displaces = true, rollback
	if s.config.once() {
		return nil
	}
	unknown, known, what := l.unknown, l.known, "its outputs and the derivatives of its states with respect to its inputs and states"
	if which == 0 {
		unknown, known, what = unknown[l.outputs:], known[:l.inputs], "its outputs by its inputs"
	}
	seed := slices.Repeat([]float64{1}, len(known))
	ask := func(in *fmi.Instance) error {
		return in.GetDirectionalDerivative(unknown, known, seed, make([]float64, len(unknown)))
	}
	const remedy = "with the quirk noDirectionalDerivatives nothing relies on them"
	if in := s.spare(); in != nil {
		err := ask(in)
		in.Free() // whatever state it is in: nothing depends on it
		if err != nil {
			return fmt.Errorf("%w: the FMU declares providesDirectionalDerivative but does not provide those of %s: %w; "+remedy,
				master.ErrCapability, what, err)
		}
	}
	plain, asked := s.rehearse(nothing), s.rehearse(ask)
	switch {
	case plain == nil || asked == nil:
		return nil
	case same(plain, asked):
		t.displaces = false
		return nil
	}
	if rollback {
		around := func(do func(*fmi.Instance) error) []float64 {
			return s.rehearse(func(in *fmi.Instance) error {
				state, err := in.GetFMUState(nil)
				if err != nil {
					return err
				}
				return errors.Join(do(in), in.SetFMUState(state))
			})
		}
		restored := around(nothing)
		if restored != nil && same(restored, around(ask)) {
			return nil
		}
	}
	return fmt.Errorf("%w: reading the directional derivatives of %s changes the state of the FMU, "+
		"and a rollback does not restore it; "+remedy,
		master.ErrCapability, what)
}

func nothing(*fmi.Instance) error { return nil }

// spare returns another instance at the start of the experiment, nil if that fails. Its log messages are
// only for debugging.
func (s *Slave) spare() *fmi.Instance {
	c, err := s.beside("probe")
	if err != nil {
		return nil
	}
	in, err := c.FMU.Instantiate(c.Name, c.Options)
	if err != nil {
		return nil
	}
	if s.setUp(in, s.experiment) == nil && in.EnterInitializationMode() == nil && s.set(in, s.starts.inside) == nil &&
		in.ExitInitializationMode() == nil {
		return in
	}
	in.Free()
	return nil
}

// A rehearsal takes a few steps, so that the internal solver has a history, and a few more to see their
// results.
const (
	rehearsalSteps = 3
	rehearsalStep  = 1e-3 // s, if the FMU suggests none
	// rehearsalShift moves the inputs, relative to their magnitude and a little more from one to the
	// next, because a system at rest would hide differences.
	rehearsalShift = 0.01
)

// rehearse steps a separate instance, with do called between steps, and returns its states and outputs at the end; nil if that fails.
func (s *Slave) rehearse(do func(*fmi.Instance) error) []float64 {
	in := s.spare()
	if in == nil {
		return nil
	}
	defer in.Free()
	H := rehearsalStep
	if d := s.config.FMU.Description.DefaultExperiment; d != nil && d.StepSize != nil && *d.StepSize > 0 {
		H = *d.StepSize
	}
	u := slices.Clone(s.stepper.RealIn[:len(s.in)])
	for k, p := range s.info.In {
		size := math.Abs(p.Nominal)
		if size == 0 {
			size = 1
		}
		u[k] += rehearsalShift * (1 + float64(k)/float64(len(u))) * max(size, math.Abs(u[k]))
	}
	for i := range 2 * rehearsalSteps {
		if i == rehearsalSteps && do(in) != nil {
			return nil
		}
		if in.SetReal(s.initPlan.RealIn, u) != nil {
			return nil
		}
		if st, err := in.DoStep(s.experiment.Start+float64(i)*H, H, true); st > fmi.StatusWarning || err != nil {
			return nil
		}
	}
	at := slices.Concat(s.linear.known[s.linear.inputs:], references(s.out[:s.coupled], master.Real))
	end := make([]float64, len(at))
	if in.GetReal(at, end) != nil {
		return nil
	}
	return end
}

// same reports whether two rehearsals gave the same bits.
func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}
