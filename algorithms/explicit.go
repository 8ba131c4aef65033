package algorithms

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/master"
)

// explicit is explicit coupling: the inputs are extrapolated over the macro
// step, every subsystem is stepped once, the outputs are exchanged.
//
// Stateless subsystems that lie on no loop of their own kind are stepped after
// their sources, with the new values held (System.Late).
//
// Source: schweizer 2.1.2, 2.2.2, 2.3.2 (predictor step only); meyer 3.1.
type explicit struct {
	in          *input.Approximation
	gaussSeidel bool
	names       []string // Gauss–Seidel: the sequence asked for

	sequence []int             // Gauss–Seidel
	together *input.Stepping   // Jacobi: all but the late ones
	slow     []*input.Stepping // those that take one step over several macro steps
	turns    []turn            // Gauss–Seidel
}

// turn is a part of a Gauss–Seidel macro step: neighbours in the sequence that do not feed
// each other take their step, then late ones whose sources are new by then.
type turn struct {
	steps *input.Stepping
	fresh []int // inputs of the members that are fed by outputs that are new
	late  []int
}

// check finds the sequence of a Gauss–Seidel scheme.
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
			return fmt.Errorf("the sequence names %q, which is no subsystem of the system", name)
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

// init groups the subsystems.
func (e *explicit) init(x *master.Exec, _ float64) error {
	var err error
	var every []int
	e.slow = nil
	for _, i := range x.Sys.Stepped {
		r := e.in.Rate(i)
		x.ScaleStep(i, r.Steps, r.Over)
		if r.Over == 1 {
			every = append(every, i)
			continue
		}
		s, err := input.NewStepping(x, e.in, []int{i})
		if err != nil {
			return err
		}
		e.slow = append(e.slow, s)
	}
	if e.together, err = input.NewStepping(x, e.in, every); err != nil || !e.gaussSeidel {
		return err
	}
	return e.prepareTurns(x)
}

// prepareTurns divides the sequence into turns.
func (e *explicit) prepareTurns(x *master.Exec) error {
	s := x.Sys
	e.turns = nil
	done := make([]bool, len(s.Subsystems))
	allDone := func(sources []int) bool {
		return !slices.ContainsFunc(sources, func(from int) bool { return !done[from] })
	}
	var members, fresh []int
	end := func() error {
		steps, err := input.NewStepping(x, e.in, members)
		if err != nil {
			return err
		}
		t := turn{steps: steps, fresh: fresh}
		for _, l := range s.Late {
			if !done[l] && allDone(s.Sources(l)) {
				t.late = append(t.late, l)
				done[l] = true
			}
		}
		e.turns = append(e.turns, t)
		members, fresh = nil, nil
		return nil
	}
	for _, i := range e.sequence {
		if slices.Contains(s.Late, i) || e.in.Over(i) > 1 { // later, or by itself
			continue
		}
		// Late sources may wait for a member, too.
		waits := func(from int) bool {
			return slices.Contains(members, from) || slices.Contains(s.Late, from) && !done[from]
		}
		if len(members) > 0 && slices.ContainsFunc(s.Sources(i), waits) {
			for _, m := range members {
				done[m] = true
			}
			if err := end(); err != nil {
				return err
			}
		}
		for k := s.InAt[i]; k < s.InAt[i+1]; k++ {
			if from := s.SourceSubsystem(k); from >= 0 && done[from] {
				fresh = append(fresh, k)
			}
		}
		members = append(members, i)
	}
	for _, m := range members {
		done[m] = true
	}
	if err := end(); err != nil {
		return err
	}
	// Those without any source but the world outside.
	last := &e.turns[len(e.turns)-1]
	for _, l := range s.Late {
		if !done[l] {
			last.late = append(last.late, l)
		}
	}
	return nil
}

// advance takes one macro step.
func (e *explicit) advance(ctx context.Context, x *master.Exec, t, H float64, degree int) (effort, error) {
	e.in.Begin(x, t, H, degree)
	return effort{}, e.step(ctx, x, t, H)
}

func (e *explicit) accept(*master.Exec, float64) {}
func (e *explicit) reject(float64, float64)      {}

// archive has nothing to carry: every macro step begins anew.
func (e *explicit) archive(*master.Archive) {}

// step takes one macro step with the polynomials as they stand.
func (e *explicit) step(ctx context.Context, x *master.Exec, t, H float64) error {
	// Slow ones are given what was known before, and step last: no other sees
	// what they give before the next macro step.
	if err := e.stageSlow(t + H); err != nil {
		return err
	}
	var err error
	if e.gaussSeidel {
		err = e.stepSequence(ctx, x, t, H)
	} else {
		err = e.stepAll(ctx, x, t, H)
	}
	if err != nil {
		return err
	}
	return e.stepSlow(ctx, t, H)
}

// stageSlow hands the slow subsystems whose step ends at t their inputs.
func (e *explicit) stageSlow(t float64) error {
	for _, s := range e.slow {
		i := s.Members()[0]
		if !e.in.Due(i) {
			continue
		}
		if err := s.Stage(e.in.BeginBlock(i, t)); err != nil {
			return err
		}
	}
	return nil
}

// stepSlow steps them to the end of the macro step from t by H. Over macro steps of one
// size their own step has one size, too (fmi2 49).
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

// review names the subsystems that the end of the run has left before their own step.
func (e *explicit) review() []string {
	var out []string
	for _, s := range e.slow {
		i := s.Members()[0]
		if n := e.in.Since(e.in.Over(i)); n != 0 {
			out = append(out, fmt.Sprintf("%s: the run ends %d macro steps after its last step: its outputs at the end are those from before", e.in.System().Infos[i], n))
		}
	}
	return out
}

func (e *explicit) stepAll(ctx context.Context, x *master.Exec, t, H float64) error {
	if err := e.together.Run(ctx, t, H); err != nil {
		return err
	}
	return input.StepLate(ctx, x, x.Sys.Late, t, H)
}

// stepSequence steps the subsystems in turn, with the value at t+H of every source that has
// been stepped as the newest point of its input.
func (e *explicit) stepSequence(ctx context.Context, x *master.Exec, t, H float64) error {
	for k := range e.turns {
		turn := &e.turns[k]
		x.CoupleSome(turn.steps.Members(), t+H, x.U)
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
	return nil
}
