package fmuslave

import (
	"context"
	"errors"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// groupKey is the key of slaves that can be stepped by one call, apartKey that of slaves in processes of
// their own.
type (
	groupKey struct{}
	apartKey struct{}
)

// GroupKey returns the key of slaves that can be stepped together: all in this process without Strings,
// which need calls of their own; and all in processes of their own, which step at the same time.
func (s *Slave) GroupKey() any {
	switch {
	case s.config.Options.Launcher != nil:
		return apartKey{}
	case len(s.stringInVR)+len(s.stringOutVR) > 0:
		return nil
	}
	return groupKey{}
}

// group steps several FMUs in one batch of calls.
type group struct {
	members  []*Slave
	exchange []master.Exchange
	in, out  []transfer // inputs and outputs of the members
	whole    *fmi.Group
	part     *fmi.Group // without reading outputs; nil = not used yet
}

// transfer copies a value between the run and the buffer of an FMU.
type transfer struct{ to, from *float64 }

func transfers(to, from []float64) (list []transfer) {
	for k := range from {
		list = append(list, transfer{&to[k], &from[k]})
	}
	return list
}

func carry(all []transfer) {
	for _, t := range all {
		*t.to = *t.from
	}
}

// NewGroup prepares the batch for members, all of them slaves.
func (s *Slave) NewGroup(members []master.Subsystem, exchange []master.Exchange) (master.Group, error) {
	slaves := make([]*Slave, len(members))
	for k, m := range members {
		slaves[k], _ = master.As[*Slave](m)
	}
	if s.config.Options.Launcher != nil {
		return &apart{members: slaves, exchange: exchange}, nil
	}
	g := &group{members: slaves, exchange: exchange}
	for k, m := range slaves {
		x, n := &exchange[k], len(m.in)
		g.in = append(g.in, transfers(m.stepper.RealIn, x.In)...)
		for order, du := range x.Slopes {
			g.in = append(g.in, transfers(m.stepper.Derivatives[order*n:], du)...)
		}
		g.out = append(g.out, transfers(x.Out, m.stepper.RealOut[:len(x.Out)])...)
	}
	var err error
	g.whole, err = g.crossing(true)
	return g, err
}

func (g *group) crossing(read bool) (*fmi.Group, error) {
	steppers := make([]*fmi.Stepper, len(g.members))
	for k, m := range g.members {
		steppers[k] = m.stepper
	}
	return fmi.NewGroup(steppers, read)
}

// take stages the inputs of the next step.
func (s *Slave) take(x *master.Exchange) {
	copy(s.stepper.RealIn, x.In)
	n := len(s.in)
	for m, du := range x.Slopes {
		copy(s.stepper.Derivatives[m*n:], du)
	}
}

// apart steps FMUs in processes of their own at the same time.
type apart struct {
	members  []*Slave
	exchange []master.Exchange
	under    bool  // a step has begun
	begun    int   // members that have begun it
	refused  error // of the next member
}

// Begin begins the steps of all members.
func (g *apart) Begin(t, H float64) {
	g.under, g.begun, g.refused = true, 0, nil
	for g.begun < len(g.members) {
		m := g.members[g.begun]
		m.take(&g.exchange[g.begun])
		if g.refused = m.post(t, H); g.refused != nil {
			return
		}
		g.begun++
	}
}

// Step waits for each member. The error is that of the first member that failed; those after it have been
// stepped, too, but are not counted, so that all counts are those of a group in this process.
func (g *apart) Step(ctx context.Context, t, H float64, read bool) (ran int, reached float64, err error) {
	if !g.under {
		g.Begin(t, H)
	}
	g.under = false
	for k, m := range g.members[:g.begun] {
		at, failed := m.collect(ctx, t, H)
		if failed == nil || atEnd(t, H, at, failed) {
			failed = errors.Join(failed, m.Outputs(g.exchange[k].Out))
		}
		if failed != nil && (err == nil || atEnd(t, H, reached, err)) {
			ran, reached, err = k+1, at, failed
		}
	}
	switch {
	case g.refused != nil && (err == nil || atEnd(t, H, reached, err)):
		return g.begun + 1, t, g.refused
	case err != nil:
		return ran, reached, err
	}
	return len(g.members), t + H, nil
}

// atEnd reports whether the FMU ends the simulation exactly at the end of the step.
func atEnd(t, H, reached float64, err error) bool {
	return reached == t+H && errors.Is(err, master.ErrTerminated)
}

// Step is that of each member, in order, up to the first that fails.
func (g *group) Step(ctx context.Context, t, H float64, read bool) (int, float64, error) {
	crossing := g.whole
	if !read {
		if g.part == nil {
			var err error
			if g.part, err = g.crossing(false); err != nil {
				return 1, t, err
			}
		}
		crossing = g.part
	}
	for k, m := range g.members {
		if m.linear.displaced {
			if err := m.settle(); err != nil {
				return k + 1, t, err
			}
		}
		m.stale = m.stale && !read
	}
	carry(g.in)
	ran, err := crossing.Step(t, H)
	if err != nil {
		return g.after(ctx, t, H, read, crossing, ran, err)
	}
	if !read {
		return ran, t + H, nil
	}
	carry(g.out)
	for k, m := range g.members {
		if m.ticking.runs {
			if err := m.checkClock(t, H); err != nil {
				return k + 1, t, err
			}
		}
	}
	return ran, t + H, nil
}

// after continues the step after the member that ended the batch, because its step was pending or it ends
// the simulation at the end of the step; or if no call was made because a member cannot be stepped. The
// remaining members are stepped one by one.
func (g *group) after(ctx context.Context, t, H float64, read bool, crossing *fmi.Group, ran int, err error) (int, float64, error) {
	ended, end := len(g.members), error(nil)
	if ran > 0 {
		last := ran - 1
		reached, err := g.members[last].after(ctx, t, H, crossing.Status(last), err)
		switch {
		case atEnd(t, H, reached, err):
			ended, end = ran, err
		case err != nil:
			return ran, reached, err
		}
	}
	for k, m := range g.members[ran:] {
		step := m.Step
		if !read {
			step = m.Substep
		}
		reached, err := step(ctx, t, H)
		switch {
		case atEnd(t, H, reached, err):
			if end == nil {
				ended, end = ran+k+1, err
			}
		case err != nil:
			return ran + k + 1, reached, err
		}
	}
	for k, m := range g.members {
		if !read {
			break
		}
		if err := m.Outputs(g.exchange[k].Out); err != nil {
			return k + 1, t + H, err
		}
	}
	return ended, t + H, end
}

// stateGroup saves and restores several FMUs together.
type stateGroup struct {
	members []*Slave
	states  []*fmi.FMUState
	batch   *fmi.StateGroup
}

// NewStateGroup makes a group of members, all of them slaves with the same GroupKey.
func (s *Slave) NewStateGroup(members []master.Subsystem) (master.StateGroup, error) {
	g := &stateGroup{members: make([]*Slave, len(members)), states: make([]*fmi.FMUState, len(members))}
	instances := make([]*fmi.Instance, len(members))
	for k, m := range members {
		g.members[k], _ = master.As[*Slave](m)
		instances[k] = g.members[k].instance
	}
	var err error
	g.batch, err = fmi.NewStateGroup(instances)
	return g, err
}

// Save saves the states of all members.
func (g *stateGroup) Save(states []master.State) (failed int, err error) {
	for k, m := range g.members {
		if err := m.settle(); err != nil {
			return k, err
		}
		g.states[k], _ = states[k].(*fmi.FMUState)
	}
	failed, err = g.batch.Save(g.states)
	for k, s := range g.states {
		if s != nil { // not saved because of an error
			states[k] = s
		}
	}
	return failed, err
}

// Restore returns all members to their saved states. It keeps staged inputs.
func (g *stateGroup) Restore(states []master.State) (failed int, err error) {
	for k := range g.members {
		g.states[k], _ = states[k].(*fmi.FMUState)
	}
	if failed, err = g.batch.Restore(g.states); err != nil {
		return failed, err
	}
	for _, m := range g.members {
		m.restored()
	}
	return 0, nil
}
