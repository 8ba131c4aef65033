package input

import (
	"context"
	"maps"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// Stepping steps some subsystems together over a macro step with the current polynomials.
type Stepping struct {
	in        *Approximation
	x         *master.Exec
	members   []int
	listening []int // members with discrete inputs
	whole     []int // members that take the macro step as one step
	// Inputs of these members on the grid of all communication points: ranges of held inputs and of
	// inputs with derivatives. rest are the members with other inputs.
	held, curves []span
	rest         []int
	teams        []*master.Team
}

// NewStepping returns the stepping of some subsystems.
func NewStepping(x *master.Exec, in *Approximation, members []int) *Stepping {
	s := &Stepping{in: in, x: x, members: members}
	inPieces := map[int][]int{} // by their number
	for _, i := range members {
		if in.whole(i) {
			s.whole = append(s.whole, i)
			s.divide(i)
		} else {
			inPieces[in.pieces(i)] = append(inPieces[in.pieces(i)], i)
		}
		if len(x.Sys.Infos[i].DiscreteIn) > 0 {
			s.listening = append(s.listening, i)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(inPieces)) {
		team := x.NewTeam(inPieces[n])
		team.InPieces(n, func(i, j int, t float64) { in.stagePiece(x, i, j, t) })
		s.teams = append(s.teams, team)
	}
	if len(s.whole) > 0 {
		s.teams = append(s.teams, x.NewTeam(s.whole))
	}
	return s
}

// span is the half-open range [from, to) of entries of a vector.
type span struct{ from, to int }

// divide adds the inputs of subsystem i, a member of whole, to held, curves or rest.
func (s *Stepping) divide(i int) {
	at := span{s.x.Sys.InAt[i], s.x.Sys.InAt[i+1]}
	if at.from == at.to {
		return
	}
	parts := &s.curves
	if s.in.delivery[i] == Held {
		parts = &s.held
	}
	for k := at.from; k < at.to; k++ {
		if s.in.gridOf[k] != &s.in.grid || s.in.known[k] || s.in.delivery[i] != Held && s.in.holds[k] {
			s.rest = append(s.rest, i)
			return
		}
	}
	if n := len(*parts); n > 0 && (*parts)[n-1].to == at.from && s.in.slopes[i] == s.in.slopes[s.in.owner[at.from-1]] {
		(*parts)[n-1].to = at.to
		return
	}
	*parts = append(*parts, at)
}

// Members returns the subsystems that are stepped.
func (s *Stepping) Members() []int { return s.members }

// Run steps the members from t to t+H.
func (s *Stepping) Run(ctx context.Context, t, H float64) error {
	s.Stage(t)
	return s.Advance(ctx, t, H)
}

// Stage sets the inputs of the members at t.
func (s *Stepping) Stage(t float64) {
	for _, i := range s.listening {
		s.x.StageDiscrete(i, t)
	}
	if s.in.someAre || s.in.config.Biased {
		for _, i := range s.whole {
			s.in.stage(s.x, i)
		}
		return
	}
	for _, at := range s.held {
		s.in.stageHeld(s.x, at)
	}
	for _, at := range s.curves {
		s.in.stageCurves(s.x, at)
	}
	for _, i := range s.rest {
		s.in.stage(s.x, i)
	}
}

// Advance steps the members from t to t+H.
func (s *Stepping) Advance(ctx context.Context, t, H float64) error {
	for _, team := range s.teams {
		if err := team.Step(ctx, t, H); err != nil {
			return err
		}
	}
	return nil
}

// StepLate steps stateless subsystems one after the other with the new values of their sources.
func StepLate(ctx context.Context, x *master.Exec, late []int, t, H float64) error {
	for _, i := range late {
		x.Couple(i, t+H, x.U)
		if err := StepWith(ctx, x, i, t, H); err != nil {
			return err
		}
	}
	return nil
}

// StepWith steps a stateless subsystem with the inputs in U.
func StepWith(ctx context.Context, x *master.Exec, i int, t, H float64) error {
	x.StageDiscrete(i, t+H)
	return x.Step(ctx, i, t, H)
}
