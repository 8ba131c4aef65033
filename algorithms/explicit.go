package algorithms

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	in          *approximation
	gaussSeidel bool
	names       []string // Gauss–Seidel: the sequence asked for

	sequence []int       // Gauss–Seidel
	late     []bool      // by subsystem: stepped after its sources
	sources  [][]int     // by subsystem
	from     []int       // by input: the subsystem that feeds it, or -1
	done     []bool      // Gauss–Seidel: stepped in this macro step
	together *stepping   // Jacobi: all but the late ones
	turns    []*stepping // Gauss–Seidel: by subsystem; nil = late
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
	var given []int
	for _, name := range e.names {
		i := slices.IndexFunc(s.Infos, func(info *master.Info) bool { return info.Name == name })
		if i < 0 {
			return fmt.Errorf("the sequence names %q, which is no subsystem of the system", name)
		}
		if slices.Contains(given, i) {
			return fmt.Errorf("the sequence names %q twice", name)
		}
		given = append(given, i)
	}
	if len(given) != len(s.Subsystems) {
		return errors.New("the sequence must name every subsystem once")
	}
	e.sequence = given
	return nil
}

// init groups the subsystems.
func (e *explicit) init(x *master.Exec) error {
	n := len(x.Sys.Subsystems)
	e.late, e.done = make([]bool, n), make([]bool, n)
	for _, i := range x.Sys.Late {
		e.late[i] = true
	}
	e.sources, e.from = make([][]int, n), make([]int, len(x.W))
	for i := range e.sources {
		e.sources[i] = x.Sys.Sources(i)
	}
	for k := range e.from {
		e.from[k] = x.Sys.SourceSubsystem(k)
	}
	var err error
	if e.together, err = newStepping(x, e.in, x.Sys.Stepped); err != nil || !e.gaussSeidel {
		return err
	}
	e.turns = make([]*stepping, n)
	for _, i := range x.Sys.Stepped {
		if e.turns[i], err = newStepping(x, e.in, []int{i}); err != nil {
			return err
		}
	}
	return nil
}

// advance takes one macro step.
func (e *explicit) advance(ctx context.Context, x *master.Exec, t, H float64, degree int) (effort, error) {
	e.in.begin(x, t, H, degree)
	return effort{}, e.step(ctx, x, t, H)
}

func (e *explicit) accept() {}
func (e *explicit) reject() {}

// step takes one macro step with the polynomials as they stand.
func (e *explicit) step(ctx context.Context, x *master.Exec, t, H float64) error {
	if e.gaussSeidel {
		return e.stepSequence(ctx, x, t, H)
	}
	return e.stepAll(ctx, x, t, H)
}

func (e *explicit) stepAll(ctx context.Context, x *master.Exec, t, H float64) error {
	if err := e.together.run(ctx, t, H); err != nil {
		return err
	}
	for _, i := range x.Sys.Late {
		if err := stepLate(ctx, x, i, t, H); err != nil {
			return err
		}
	}
	return nil
}

func (e *explicit) stepSequence(ctx context.Context, x *master.Exec, t, H float64) error {
	clear(e.done)
	for _, i := range e.sequence {
		if e.late[i] {
			continue // as soon as its sources are new
		}
		if err := e.stepInTurn(ctx, x, i, t, H); err != nil {
			return err
		}
		e.done[i] = true
		for _, l := range x.Sys.Late {
			if e.done[l] || !e.sourcesDone(l) {
				continue
			}
			if err := stepLate(ctx, x, l, t, H); err != nil {
				return err
			}
			e.done[l] = true
		}
	}
	// Those without any source but the world outside.
	for _, l := range x.Sys.Late {
		if !e.done[l] {
			if err := stepLate(ctx, x, l, t, H); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *explicit) sourcesDone(i int) bool {
	for _, from := range e.sources[i] {
		if !e.done[from] {
			return false
		}
	}
	return true
}

// stepInTurn steps subsystem i with the value at t+H of every source that has
// been stepped as the newest point of its input.
func (e *explicit) stepInTurn(ctx context.Context, x *master.Exec, i int, t, H float64) error {
	x.Couple(i, t+H, x.U)
	for k := x.Sys.InAt[i]; k < x.Sys.InAt[i+1]; k++ {
		if from := e.from[k]; from >= 0 && e.done[from] {
			e.in.arrived(k, x.U[k])
		}
	}
	return e.turns[i].run(ctx, t, H)
}
