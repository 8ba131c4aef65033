package master_test

import (
	"context"
	"errors"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// asking is an algorithm that asks the executor for something before it steps.
type asking struct{ ask func(*master.Exec) error }

func (*asking) Check(*master.System) error       { return nil }
func (*asking) Init(*master.Exec, float64) error { return nil }
func (*asking) Accept(*master.Exec, float64)     {}
func (*asking) Reject(_, _ float64)              {}
func (a *asking) Attempt(_ context.Context, x *master.Exec, _, _ float64, _ *master.Trial) error {
	return a.ask(x)
}

// The executor refuses what a subsystem cannot do, and what the algorithm has not announced.
func TestRefusals(t *testing.T) {
	for name, ask := range map[string]func(*master.Exec) error{
		"restore":     func(x *master.Exec) error { return x.Restore(0) },
		"restore all": func(x *master.Exec) error { return x.NewTeam([]int{0, 1}).Restore() },
		"derivatives": func(x *master.Exec) error { return x.PrepareDerivatives(0, 1) },
	} {
		r := made(t, system(t, []master.Subsystem{newFake("a", 1, 1), newFake("b", 1, 1)}), &asking{ask}, master.Options{Stop: 1, Step: 0.5})
		if _, err := r.Run(t.Context()); !errors.Is(err, master.ErrCapability) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
