// Program algorithm is macrostep with one more coupling algorithm: two-sweeps takes every macro
// step twice, first with held inputs, and after a rollback in substeps with inputs that change
// linearly from the old values to those of the first sweep.
//
//	algorithm run SYSTEM.ssp --algorithm two-sweeps --param substeps=4
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/cmd/macrostep/app"
	"github.com/macrostep/macrostep/master"
)

func main() {
	app.Main(os.Args[1:], app.Options{Presets: []algorithms.Preset{{
		Name: "two-sweeps", Doc: "Every macro step is taken with held inputs, and again with interpolated ones (with rollback).",
		Source: "waveform relaxation with two iterations",
		Params: []algorithms.Param{{Name: "substeps", Default: "10", Range: "1, 2, …", Doc: "substeps of a macro step in the second sweep"}},
		New: func(values map[string]string, _ algorithms.With) (*algorithms.Choice, error) {
			n, err := strconv.Atoi(values["substeps"])
			if err != nil || n < 1 {
				return nil, fmt.Errorf("parameter substeps=%s: must be a whole number from 1 on", values["substeps"])
			}
			return &algorithms.Choice{Algorithm: &twoSweeps{substeps: n}}, nil
		},
	}}})
}

// twoSweeps is the algorithm. An algorithm that chooses step sizes, or reports or records more,
// implements further interfaces of package master.
type twoSweeps struct {
	substeps      int
	first, second *master.Team // all subsystems but the late ones, in one step and in substeps
	saved         *master.Team // of all
	new           []float64    // L y + b after the first sweep
}

// Plan asks for the rollback of all subsystems.
func (*twoSweeps) Plan(s *master.System, _ float64) master.Plan {
	var all []int
	for i := range s.Subsystems {
		all = append(all, i)
	}
	return master.Plan{Rollback: all}
}

// Check refuses systems that cannot take substeps.
func (a *twoSweeps) Check(s *master.System) error {
	for _, i := range s.Stepped {
		if !s.Infos[i].Caps.VariableStep && a.substeps > 1 {
			return fmt.Errorf("%s: %w: it cannot take substeps; choose substeps=1", s.Infos[i], master.ErrCapability)
		}
	}
	return nil
}

func (a *twoSweeps) Init(x *master.Exec, _ float64) error {
	a.new = make([]float64, len(x.W))
	for _, i := range x.Sys.Stepped {
		x.ScaleStep(i, a.substeps, 1)
	}
	a.saved = x.NewTeam(a.Plan(x.Sys, 0).Rollback)
	a.first, a.second = x.NewTeam(x.Sys.Stepped), x.NewTeam(x.Sys.Stepped)
	holds := x.Sys.Holds()
	a.second.InPieces(a.substeps, func(i, j int, _ float64) { // x.W holds the old values
		theta := (float64(j) + 0.5) / float64(a.substeps)
		for k := x.Sys.InAt[i]; k < x.Sys.InAt[i+1]; k++ {
			if x.U[k] = x.W[k]; !holds[k] {
				x.U[k] += theta * (a.new[k] - x.W[k])
			}
		}
	})
	return nil
}

// Attempt takes a macro step. It changes no state of the algorithm, so that the step can be repeated.
func (a *twoSweeps) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	trial.Order, trial.Iters = 1, 1
	copy(x.U, x.W)
	if err := sweep(ctx, x, a.first, t, H); err != nil {
		return err
	}
	x.CoupleAll(t+H, a.new)
	if err := a.saved.Restore(); err != nil {
		return err
	}
	return sweep(ctx, x, a.second, t, H)
}

// sweep steps all subsystems, the late ones last: stateless subsystems take the new values of their
// sources.
func sweep(ctx context.Context, x *master.Exec, team *master.Team, t, H float64) error {
	for _, i := range x.Sys.Stepped {
		x.StageDiscrete(i, t)
	}
	if err := team.Step(ctx, t, H); err != nil {
		return err
	}
	for _, i := range x.Sys.Late {
		x.Couple(i, t+H, x.U)
		x.StageDiscrete(i, t+H)
		if err := x.Step(ctx, i, t, H); err != nil {
			return err
		}
	}
	return nil
}

func (*twoSweeps) Accept(*master.Exec, float64) {}
func (*twoSweeps) Reject(_, _ float64)          {}
