package algorithms

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// explicit is the explicit scheme: inputs are extrapolated over the macro step, every
// subsystem is stepped once, then the outputs are exchanged.
//
// Stateless subsystems on no loop of stateless subsystems are stepped after their sources,
// with the new values held (System.Late).
//
// Source: schweizer 2.1.2, 2.2.2, 2.3.2 (predictor step only); meyer 3.1.
type explicit struct {
	in          *input.Approximation
	gaussSeidel bool
	names       []string // Gauss–Seidel: Config.Sequence

	sequence []int             // Gauss–Seidel: the order of the subsystems
	turns    []turn            // Jacobi: one
	slow     []*input.Stepping // subsystems with one step over several macro steps
}

// turn is a part of a macro step: subsystems are stepped together (Gauss–Seidel: consecutive ones of the sequence
// that do not feed each other), then the late subsystems whose sources have all been stepped.
type turn struct {
	steps *input.Stepping
	fresh []int // inputs whose sources were stepped in earlier turns
	late  []int
}

// check determines the sequence of a Gauss–Seidel scheme.
func (e *explicit) check(s *master.System) error {
	if !e.gaussSeidel {
		return nil
	}
	e.sequence = s.SequenceFromGraph()
	if e.names == nil {
		return nil
	}
	all := componentNames(s)
	var given []int
	for _, name := range e.names {
		i := slices.Index(all, name)
		if i < 0 {
			return fmt.Errorf("the sequence names %q, which is not a subsystem of the system%s", name, diag.DidYouMeanOr(name, all, "; they are "))
		}
		if slices.Contains(given, i) {
			return fmt.Errorf("the sequence names %q twice", name)
		}
		given = append(given, i)
	}
	missing := slices.DeleteFunc(all, func(name string) bool { return slices.Contains(e.names, name) })
	if len(missing) > 0 {
		return fmt.Errorf("the sequence must name every subsystem once; it lacks %s", strings.Join(missing, ", "))
	}
	e.sequence = given
	return nil
}

// init groups the subsystems that are stepped together.
func (e *explicit) init(x *master.Exec, _ float64) error {
	var every []int
	e.slow = nil
	for _, i := range x.Sys.Stepped {
		r := e.in.Rate(i)
		x.ScaleStep(i, r.Steps, r.Over)
		if r.Over == 1 {
			every = append(every, i)
			continue
		}
		e.slow = append(e.slow, input.NewStepping(x, e.in, []int{i}))
	}
	if e.gaussSeidel {
		e.prepareTurns(x)
	} else {
		e.turns = []turn{{steps: input.NewStepping(x, e.in, every), late: x.Sys.Late}}
	}
	return nil
}

// prepareTurns divides the sequence into turns.
func (e *explicit) prepareTurns(x *master.Exec) {
	s := x.Sys
	e.turns = nil
	done := make([]bool, len(s.Subsystems))
	isDone := func(i int) bool { return done[i] }
	var members, fresh []int
	end := func() {
		for _, m := range members {
			done[m] = true
		}
		t := turn{steps: input.NewStepping(x, e.in, members), fresh: fresh}
		for _, l := range s.Late {
			if !done[l] && !slices.ContainsFunc(s.Sources(l), func(from int) bool { return !done[from] }) {
				t.late = append(t.late, l)
				done[l] = true
			}
		}
		e.turns = append(e.turns, t)
		members, fresh = nil, nil
	}
	// A source in the current turn, or a late one that waits for a member.
	waits := func(from int) bool {
		return slices.Contains(members, from) || slices.Contains(s.Late, from) && !done[from]
	}
	for _, i := range e.sequence {
		if slices.Contains(s.Late, i) || e.in.Over(i) > 1 {
			continue
		}
		if len(members) > 0 && slices.ContainsFunc(s.Sources(i), waits) {
			end()
		}
		for k := s.InAt[i]; k < s.InAt[i+1]; k++ {
			if from := s.SourceSubsystem(k); from >= 0 && done[from] {
				fresh = append(fresh, k)
			}
		}
		members = append(members, i)
	}
	end()
	// Late subsystems that wait for slow ones.
	last := &e.turns[len(e.turns)-1]
	last.late = append(last.late, slices.DeleteFunc(slices.Clone(s.Late), isDone)...)
}

// advance takes one macro step.
func (e *explicit) advance(ctx context.Context, x *master.Exec, t, H float64, degree int) (effort, error) {
	e.in.Begin(x, t, H, degree)
	return effort{}, e.step(ctx, x, t, H)
}

func (e *explicit) accept(*master.Exec, float64) {}
func (e *explicit) reject(float64, float64)      {}

// archive does nothing: the scheme keeps nothing between steps.
func (e *explicit) archive(*master.Archive) {}

// step takes one macro step with the current polynomials. For sources that were stepped in earlier turns, the
// value at t+H is the newest point of the polynomial.
func (e *explicit) step(ctx context.Context, x *master.Exec, t, H float64) error {
	// Slow subsystems get their inputs first and are stepped last: no other subsystem uses
	// their outputs before the next macro step.
	e.stageSlow(x, t+H)
	for n := range e.turns {
		turn := &e.turns[n]
		if len(turn.fresh) > 0 {
			x.CoupleSome(turn.steps.Members(), t+H, x.U)
		}
		for _, k := range turn.fresh {
			e.in.Arrived(k, x.U[k])
		}
		if err := turn.steps.Run(ctx, t, H); err != nil {
			return err
		}
		if err := input.StepLate(ctx, x, turn.late, t, H); err != nil {
			return err
		}
	}
	return e.stepSlow(ctx, t, H)
}

// stageSlow sets the inputs of the slow subsystems whose step ends at t.
func (e *explicit) stageSlow(x *master.Exec, t float64) {
	for _, s := range e.slow {
		if i := s.Members()[0]; e.in.Due(i) {
			s.Stage(e.in.BeginBlock(x, i, t))
		}
	}
}

// stepSlow steps these subsystems to the end t+H of the macro step. If all macro steps have
// one size, so do the steps of each slow subsystem (fmi2 49).
func (e *explicit) stepSlow(ctx context.Context, t, H float64) error {
	const rounding = 8 * 0x1p-52
	for _, s := range e.slow {
		i := s.Members()[0]
		if !e.in.Due(i) {
			continue
		}
		from := e.in.BlockStart(i)
		own := float64(e.in.Over(i)) * H
		if math.Abs(from+own-(t+H)) > rounding*max(math.Abs(from), math.Abs(t+H)) {
			own = t + H - from
		}
		if err := s.Advance(ctx, master.BeginOf(from, own, t+H), own); err != nil {
			return err
		}
	}
	return nil
}

// review returns a warning for each slow subsystem whose last step ends before the run.
func (e *explicit) review() []string {
	var out []string
	for _, s := range e.slow {
		i := s.Members()[0]
		if n := e.in.Since(e.in.Over(i)); n != 0 {
			out = append(out, fmt.Sprintf("%s: its last step ends %d macro steps before the end of the run, and its outputs at "+
				"the end are those of that step; choose a stop time that is a multiple of its step", e.in.System().Infos[i], n))
		}
	}
	return out
}
