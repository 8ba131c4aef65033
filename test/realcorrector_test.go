package test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/mastertest"
)

// The model-based corrector on FMUs made by others: error against a fine run, and what
// it costs.
func testRealCorrector(t *testing.T) {
	t.Run("drivetrain", func(t *testing.T) {
		// Both FMUs go another way once they have gone back to their start, and are told
		// of: all these runs do so.
		args := []string{pair(t), "--set", "controller.u_s=10", "--set", "controller.PI.yMax=1e4", "--tolerance", "1e-9", "--stop-time", "1"}
		fine := complete(t, append(args[:len(args):len(args)], "--step-size", "1e-4", "--algorithm", "implicit")...)
		if told := fine.warnings(); strings.Count(told, "it goes another way once it has gone back to its start") != 2 {
			t.Errorf("warnings: %s", told)
		}
		var table strings.Builder
		fmt.Fprintf(&table, "%10s %12s %12s %10s %8s\n", "H/s", "explicit", "corrected", "FMU steps", "models")
		for _, c := range []struct {
			H    string
			gain float64 // at least
		}{{"2.5e-3", 5}, {"5e-3", 3}, {"1e-2", 2}, {"2e-2", 2}} {
			plain := complete(t, append(args[:len(args):len(args)], "--step-size", c.H, "--param", "discard=shorten")...)
			corrected := complete(t, append(args[:len(args):len(args)], "--step-size", c.H, "--algorithm", "model-based-corrector", "--param", "model.jacobian=rollback")...)
			e, better := between(t, fine, plain, "drivetrain.w"), between(t, fine, corrected, "drivetrain.w")
			steps := 0
			for _, n := range corrected.manifest.FMUSteps {
				steps += n
			}
			fmt.Fprintf(&table, "%10s %12.3g %12.3g %10d %8d\n", c.H, e, better, steps, corrected.manifest.Jacobians)
			if !(better*c.gain <= e) {
				t.Errorf("H = %s s: error %g corrected, %g not", c.H, better, e)
			}
		}
		t.Log("\n" + table.String())
	})
	t.Run("pendulum", func(t *testing.T) {
		var table strings.Builder
		fmt.Fprintf(&table, "%10s %3s %12s %12s %12s %12s\n", "H/s", "p", "explicit", "directional", "repeated", "identified")
		want := pendulum(t, 1e-3, algorithms.Config{Scheme: algorithms.Implicit, Order: 2})
		for order := range 2 {
			for _, H := range []float64{1e-2, 2e-2, 5e-2} {
				config := algorithms.Config{Order: order}
				e := want.from(pendulum(t, H, config))
				fmt.Fprintf(&table, "%10g %3d %12.3g", H, order, e)
				for _, source := range []algorithms.JacobianSource{algorithms.DirectionalJacobian, algorithms.RollbackJacobian, algorithms.IdentifiedJacobian} {
					config.Correct, config.Model = algorithms.ModelCorrection, algorithms.Model{Jacobian: source, Alpha: 1, Refresh: 0.01}
					better := want.from(pendulum(t, H, config))
					fmt.Fprintf(&table, " %12.3g", better)
					gain := []float64{5, 3}[order]
					if source == algorithms.IdentifiedJacobian {
						gain = 1 / 1.1
					}
					if !(better*gain <= e) {
						t.Errorf("H = %g s, order %d, model %d: error %g corrected, %g not", H, order, source, better, e)
					}
				}
				fmt.Fprintln(&table)
			}
		}
		t.Log("\n" + table.String())
	})
}

// course is the velocity of the pendulum at the points of a run.
type course struct{ t, v []float64 }

// from gives the root of the mean square of the distance at common points.
func (c course) from(o course) float64 {
	at := map[int64]float64{}
	for i, t := range c.t {
		at[int64(math.Round(t*1e9))] = c.v[i]
	}
	sum := 0.0
	for i, t := range o.t {
		v, ok := at[int64(math.Round(t*1e9))]
		if !ok {
			return math.NaN()
		}
		sum += (v - o.v[i]) * (v - o.v[i])
	}
	return math.Sqrt(sum / float64(len(o.t)))
}

// pendulum couples Dymola's spring pendulum with a PI controller of its velocity in Go,
// F = −d v − k ∫ v dt, whose integral is its state.
func pendulum(t testing.TB, H float64, config algorithms.Config) course {
	t.Helper()
	const d, k = 12, 400
	f, _, err := fmi.Open(filepath.Join(*realDir, "fmus", "dymola", "SpringPendulumExtForce1D.fmu"), fmi.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	slave, err := fmuslave.New(fmuslave.Config{Name: "pendulum", FMU: f, Inputs: []string{"extForce"}, Outputs: []string{"v"}})
	if err != nil {
		t.Fatal(err)
	}
	controller := mastertest.NewLinear("controller", mastertest.Matrices{A: [][]float64{{0}}, B: [][]float64{{1}}, C: [][]float64{{-k}}, D: [][]float64{{-d}}}, []float64{0})
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{slave, controller}, []master.Connection{
		{From: at("pendulum", "v"), To: at("controller", "u1")}, {From: at("controller", "y1"), To: at("pendulum", "extForce")},
	})
	if err != nil {
		t.Fatal(err)
	}
	alg, err := algorithms.NewCoupling(config)
	if err != nil {
		t.Fatal(err)
	}
	var m mastertest.Memory
	run, err := master.NewRun(sys, alg, master.Options{Stop: 2, Step: H, Tolerance: 1e-9, Recorders: []master.Recorder{&m}})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var c course
	for i := range m.T {
		c.t, c.v = append(c.t, m.T[i]), append(c.v, m.Y[i][0])
	}
	return c
}
