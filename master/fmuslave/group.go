package fmuslave

import (
	"context"
	"errors"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// groupKey marks slaves that may share a crossing, apartKey those that have
// processes of their own.
type (
	groupKey struct{}
	apartKey struct{}
)

// GroupKey returns which slaves can be stepped together: all in this process
// whose strings do not need calls of their own; and all in processes of their own,
// which step at the same time.
func (s *Slave) GroupKey() any {
	switch {
	case s.config.Options.Launcher != nil:
		return apartKey{}
	case len(s.stringInVR)+len(s.stringOutVR) > 0:
		return s // with itself only
	}
	return groupKey{}
}

// group steps several FMUs in one crossing.
type group struct {
	members []*Slave
	timed   []*Slave // those that expose the time they are at
	batch   *fmi.Group
}

// NewGroup prepares the crossing for members, all of them slaves.
func (s *Slave) NewGroup(members []master.Subsystem) (master.Group, error) {
	if s.config.Options.Launcher != nil {
		a := make(apart, len(members))
		for k, m := range members {
			a[k], _ = master.As[*Slave](m)
		}
		return a, nil
	}
	g := &group{}
	var steppers []*fmi.Stepper
	for _, m := range members {
		slave, _ := master.As[*Slave](m)
		g.members = append(g.members, slave)
		if slave.clock.runs {
			g.timed = append(g.timed, slave)
		}
		steppers = append(steppers, slave.stepper)
	}
	var err error
	g.batch, err = fmi.NewGroup(steppers)
	return g, err
}

// apart steps FMUs in processes of their own at the same time.
type apart []*Slave

// Step begins the steps of all members and then waits for each. The failure is that
// of the first member that failed; those behind it have been stepped too.
func (g apart) Step(ctx context.Context, t, H float64) (ran int, reached float64, err error) {
	begun := 0
	var refused error
	for begun < len(g) && refused == nil {
		if refused = g[begun].post(t, H); refused == nil {
			begun++
		}
	}
	for k, m := range g[:begun] {
		if at, failed := m.collect(ctx, t, H); failed != nil && (err == nil || atEnd(t, H, reached, err)) {
			ran, reached, err = k+1, at, failed
		}
	}
	switch {
	case refused != nil && (err == nil || atEnd(t, H, reached, err)):
		return begun + 1, t, refused
	case err != nil:
		return ran, reached, err
	}
	return len(g), t + H, nil
}

// atEnd reports whether a step has got to its end, and the FMU ends the simulation there.
func atEnd(t, H, reached float64, err error) bool {
	return reached == t+H && errors.Is(err, master.ErrTerminated)
}

// Step is that of each member, in order, up to the first that fails.
func (g *group) Step(ctx context.Context, t, H float64) (int, float64, error) {
	for k, m := range g.members {
		if m.linear.displaced {
			if err := m.settle(); err != nil {
				return k + 1, t, err
			}
		}
	}
	ran, err := g.batch.Step(t, H)
	for _, m := range g.members[:ran] {
		m.stale = false
	}
	if err == nil {
		for _, m := range g.timed {
			m.checkClock(t, t, H)
		}
		return ran, t + H, nil
	}
	ended, end := len(g.members), error(nil)
	if ran > 0 {
		last := ran - 1
		reached, err := g.members[last].after(ctx, t, H, g.batch.Status(last), err)
		switch {
		case atEnd(t, H, reached, err):
			ended, end = ran, err
		case err != nil:
			return ran, reached, err
		}
	}
	// The last one was pending, or ends the simulation, and has come to its end, or one
	// cannot be stepped at all and nothing was called: the rest goes one by one.
	for k, m := range g.members[ran:] {
		reached, err := m.Step(ctx, t, H)
		switch {
		case atEnd(t, H, reached, err):
			if end == nil {
				ended, end = ran+k+1, err
			}
		case err != nil:
			return ran + k + 1, reached, err
		}
	}
	return ended, t + H, end
}
