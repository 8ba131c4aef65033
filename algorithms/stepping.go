package algorithms

import (
	"context"

	"github.com/macrostep/macrostep/master"
)

// stepping steps some subsystems over the same macro step with the polynomials
// as they stand, side by side.
type stepping struct {
	in      *approximation
	x       *master.Exec
	members []int
	whole   *master.StepSet // those that take the step in one piece
	pieces  *master.Phase   // those that take it in substeps

	// Of the step under way.
	ctx  context.Context
	t, H float64
}

func newStepping(x *master.Exec, in *approximation, members []int) (*stepping, error) {
	s := &stepping{in: in, x: x, members: members}
	var whole, pieces []int
	for _, i := range members {
		if in.whole(i) {
			whole = append(whole, i)
		} else {
			pieces = append(pieces, i)
		}
	}
	s.pieces = x.NewPhase(pieces, func(i int) error { return s.in.step(s.ctx, s.x, i, s.t, s.H) })
	var err error
	s.whole, err = x.NewStepSet(whole)
	return s, err
}

// run steps the members from t to t+H.
func (s *stepping) run(ctx context.Context, t, H float64) error {
	if err := s.stage(t); err != nil {
		return err
	}
	return s.advance(ctx, t, H)
}

// stage hands the members what they get at t.
func (s *stepping) stage(t float64) error {
	for _, i := range s.members {
		if err := s.x.StageDiscrete(i, t); err != nil {
			return err
		}
		if s.in.whole(i) {
			if err := s.in.stage(s.x, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance steps the members, which have been staged, from t to t+H.
func (s *stepping) advance(ctx context.Context, t, H float64) error {
	s.ctx, s.t, s.H = ctx, t, H
	if err := s.pieces.Run(); err != nil {
		return err
	}
	return s.x.StepAll(ctx, s.whole, t, H)
}

// stepLate steps a stateless subsystem with the new values of its sources.
func stepLate(ctx context.Context, x *master.Exec, i int, t, H float64) error {
	x.Couple(i, t+H, x.U)
	if err := x.StageDiscrete(i, t+H); err != nil {
		return err
	}
	if err := x.Stage(i); err != nil {
		return err
	}
	return x.Step(ctx, i, t, H)
}
