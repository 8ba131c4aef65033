package fmuslave

import (
	"context"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// groupKey marks slaves that may share a crossing.
type groupKey struct{}

// GroupKey tells which slaves can be stepped together: all in this process
// whose strings do not need calls of their own.
func (s *Slave) GroupKey() any {
	if len(s.stringInVR)+len(s.stringOutVR) > 0 {
		return s // with itself only
	}
	return groupKey{}
}

// group steps several FMUs in one crossing.
type group struct {
	members []*Slave
	batch   *fmi.Group
}

// NewGroup prepares the crossing for members, all of them slaves.
func (s *Slave) NewGroup(members []master.Subsystem) (master.Group, error) {
	g := &group{}
	var steppers []*fmi.Stepper
	for _, m := range members {
		slave, _ := master.As[*Slave](m)
		g.members = append(g.members, slave)
		steppers = append(steppers, slave.stepper)
	}
	var err error
	g.batch, err = fmi.NewGroup(steppers)
	return g, err
}

// Step is that of each member, in order, up to the first that fails.
func (g *group) Step(ctx context.Context, t, H float64) (int, float64, error) {
	for done := 0; done < len(g.members); {
		ran, err := g.batch.StepFrom(done, t, H)
		done += ran
		last := done - 1
		status := g.batch.Status(last)
		if err == nil && status <= fmi.StatusWarning && done == len(g.members) {
			break
		}
		// The last one that ran has not simply succeeded; a pending step may still.
		if reached, err := g.members[last].after(ctx, t, H, status, err); err != nil {
			return done, reached, err
		}
	}
	return len(g.members), t + H, nil
}
