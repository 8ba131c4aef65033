package test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// energyCase is a system made by others with a bond. Where units tell nothing, as in
// the FMUs of 20-sim, the bond is taken on trust.
type energyCase struct {
	name, path, bond string
	args             []string
	column           string   // whose mean distance from the fine run is the error
	fine             string   // step of that, s
	steps            []string // constant ones, s
	tolerances       []string // of ECCO
	hMin, hMax       string   // its bounds, s
	correction       string   // how what the run says of the energy correction begins
	// ECCO over constant steps at equal cost, at most: mean absolute residual
	// power, and error; 0 = it is no better.
	residual, error float64
}

func energyCases(t testing.TB) []energyCase {
	t.Helper()
	return []energyCase{
		// A stiff speed control: all happens in the first 0.1 s.
		{"drivetrain", pair(t), "shaft=controller.y:drivetrain.w",
			[]string{"--set", "controller.u_s=10", "--set", "controller.PI.yMax=1e4", "--tolerance", "1e-9", "--stop-time", "1"}, "drivetrain.w",
			"2e-5", []string{"1e-3", "2e-3"}, []string{"1e-4", "1e-3", "1e-2"}, "1e-4", "2e-2", "harms", 0.1, 0.2},
		// They integrate in steps of 10 ms: the finest run has those.
		{"dampers", dampers(t), "spring=two.fk:one.v1",
			[]string{"--set", "two.dc=1", "--stop-time", "10"}, "one.x1",
			"1e-2", []string{"2e-2", "5e-2"}, []string{"1e-3", "1e-2", "1e-1"}, "1e-2", "0.5", "unknown: two", 0.5, 1},
		// The boom swings all the time in the fastest way that it can.
		{"crane", filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"),
			"boom=CraneController.p_Crane.e[1]:KnuckleBoomCrane.p_Crane.f[1],CraneController.p_Crane.e[2]:KnuckleBoomCrane.p_Crane.f[2],CraneController.p_Crane.e[3]:KnuckleBoomCrane.p_Crane.f[3]",
			[]string{"--stop-time", "1"}, "KnuckleBoomCrane.p_Crane.f[2]",
			"1e-5", []string{"1e-4", "2e-4"}, []string{"1e-3", "4e-3"}, "2e-5", "5e-4", "unknown: KnuckleBoomCrane", 1, 0},
	}
}

// Energy at bonds of systems made by others: explicit coupling, the orders, Gauss–Seidel
// and the energy correction at constant steps, and ECCO against constant steps at
// equal cost, as a table. The residual grows with the step; ECCO does better where
// there are quiet times, and no better where there are none.
func testRealEnergy(t *testing.T) {
	for _, c := range energyCases(t) {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{c.path, "--monitor-energy", "--bond", c.bond}, c.args...)
			name, _, _ := strings.Cut(c.bond, "=")
			fine := complete(t, append(slices.Clip(args), "--step-size", c.fine)...)
			var table strings.Builder
			fmt.Fprintf(&table, "%-24s %10s %10s %12s %12s %12s %10s\n", c.name, "steps", "mean/s", "residual/J", "mean |δP|/W", "mean P/W", "error")
			measure := func(label string, more ...string) (o *outcome, residual, deviation float64) {
				t.Helper()
				o = complete(t, append(slices.Clip(args), more...)...)
				e := o.manifest.Bonds[name]
				deviation = between(t, fine, o, c.column)
				fmt.Fprintf(&table, "%-24s %10d %10.3g %12.4g %12.4g %12.4g %10.3g %s\n", label, o.manifest.Steps.Accepted, o.manifest.Steps.Mean,
					e.ResidualEnergy, e.MeanAbsResidualPower, e.MeanPower, deviation, e.Correction)
				return o, e.MeanAbsResidualPower, deviation
			}
			last := fine.manifest.Bonds[name].MeanAbsResidualPower
			for _, H := range c.steps {
				_, residual, _ := measure("explicit", "--step-size", H)
				if !(residual > 1.2*last) {
					t.Errorf("the mean residual power is %g W at %s s and %g W at the step before", residual, H, last)
				}
				last = residual
				measure("explicit, order 1", "--step-size", H, "--param", "order=1")
				if _, turns, _ := measure("gauss-seidel", "--step-size", H, "--algorithm", "gauss-seidel"); !(turns < residual) {
					t.Errorf("at %s s the mean residual power is %g W by Gauss–Seidel and %g W by Jacobi", H, turns, residual)
				}
				o, _, _ := measure("energy-correction", "--step-size", H, "--algorithm", "energy-correction")
				if got := o.manifest.Bonds[name].Correction; !strings.HasPrefix(got, c.correction) {
					t.Errorf("the correction is said to be %q, not %q", got, c.correction)
				}
			}
			for _, r := range c.tolerances {
				o, residual, deviation := measure("ecco, r = "+r, "--step-size", c.steps[0], "--algorithm", "ecco", "--param", "ecco.tolerance="+r,
					"--param", "control.h-min="+c.hMin, "--param", "control.h-max="+c.hMax)
				_, constant, off := measure("  explicit", "--step-size", fmt.Sprint(o.manifest.Steps.Mean))
				if !(residual <= c.residual*constant) {
					t.Errorf("at r = %s the mean residual power is %g W, in %g W with as many constant steps", r, residual, constant)
				}
				if c.error > 0 && !(deviation <= c.error*off) {
					t.Errorf("at r = %s the error is %g, and %g with as many constant steps", r, deviation, off)
				}
			}
			t.Log("\n" + table.String())
		})
	}
}

// between gives the mean distance over time of a column from that of a fine run,
// linear between the points of the latter.
func between(t testing.TB, fine, o *outcome, name string) float64 {
	t.Helper()
	ft, fv := fine.column(t, "time"), fine.column(t, name)
	v := o.column(t, name)
	k, sum, last := 0, 0.0, 0.0
	for i, at := range o.column(t, "time") {
		for k < len(ft)-2 && ft[k+1] < at {
			k++
		}
		w := (at - ft[k]) / (ft[k+1] - ft[k])
		sum += math.Abs(v[i]-(fv[k]+w*(fv[k+1]-fv[k]))) * (at - last)
		last = at
	}
	return sum / last
}
