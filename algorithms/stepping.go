package algorithms

import (
	"context"
	"maps"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// stepping steps some subsystems over the same macro step with the polynomials
// as they stand, side by side.
type stepping struct {
	in        *approximation
	x         *master.Exec
	members   []int
	listening []int // those with discrete inputs
	whole     []int // those that take the step in one piece
	sets      []*master.StepSet
}

func newStepping(x *master.Exec, in *approximation, members []int) (*stepping, error) {
	s := &stepping{in: in, x: x, members: members}
	inPieces := map[int][]int{} // by their number
	for _, i := range members {
		if in.whole(i) {
			s.whole = append(s.whole, i)
		} else {
			inPieces[in.pieces(i)] = append(inPieces[in.pieces(i)], i)
		}
		if len(x.Sys.Infos[i].DiscreteIn) > 0 {
			s.listening = append(s.listening, i)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(inPieces)) {
		set, err := x.NewStepSet(inPieces[n])
		if err != nil {
			return nil, err
		}
		set.InPieces(n, func(i, j int, t float64) { in.stagePiece(x, i, j, t) })
		s.sets = append(s.sets, set)
	}
	set, err := x.NewStepSet(s.whole)
	s.sets = append(s.sets, set)
	return s, err
}

// run steps the members from t to t+H.
func (s *stepping) run(ctx context.Context, t, H float64) error {
	if err := s.stage(t); err != nil {
		return err
	}
	return s.advance(ctx, t, H)
}

// stage puts what the members get at t in place.
func (s *stepping) stage(t float64) error {
	for _, i := range s.listening {
		if err := s.x.StageDiscrete(i, t); err != nil {
			return err
		}
	}
	for _, i := range s.whole {
		s.in.stage(s.x, i)
	}
	return nil
}

// advance steps the members from t to t+H.
func (s *stepping) advance(ctx context.Context, t, H float64) error {
	for _, set := range s.sets {
		if err := s.x.StepAll(ctx, set, t, H); err != nil {
			return err
		}
	}
	return nil
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
