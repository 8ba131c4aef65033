package test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Bonds that are none are refused with what is wrong with them.
func TestBadBonds(t *testing.T) {
	path := system(t, "quarter-car-a")
	for _, c := range []struct {
		bonds []string
		code  int
		says  []string
	}{
		{[]string{"axle=wheel.F_c"}, 2, []string{"--bond", "NAME=COMPONENT.EFFORT:COMPONENT.FLOW"}},
		{[]string{"axle=wheel.F_c:chassis.v_c", "axle=wheel.F_c:chassis.v_c"}, 2, []string{"two bonds are called axle"}},
		{[]string{"axle=wheel.F_c:chassis.z_c"}, 2, []string{"bond axle", "N·m", "no power", "displacement"}},
		{[]string{"axle=wheel.z_w:chassis.v_c"}, 2, []string{"bond axle", "no power"}},
		{[]string{"axle=wheel.F_c:wheel.v_w"}, 2, []string{"bond axle", "same component"}},

		{[]string{"axle=wheel.F_c:chassis.v"}, 2, []string{"bond axle", `no variable "v"`}},
		{[]string{"one=wheel.F_c:chassis.v_c", "two=wheel.F_c:chassis.v_c"}, 2, []string{"bond two", "takes part in bond one"}},
	} {
		args := []string{path, "--algorithm", "ecco"}
		for _, b := range c.bonds {
			args = append(args, "--bond", b)
		}
		o := run(t, args...)
		if o.code != c.code {
			t.Errorf("%v: exit code %d\n%s", c.bonds, o.code, o.output)
		}
		for _, part := range c.says {
			if !strings.Contains(o.output, part) {
				t.Errorf("%v: no %q in\n%s", c.bonds, part, o.output)
			}
		}
	}
}

// A bond of which one direction is missing is refused.
func TestHalfABond(t *testing.T) {
	o := run(t, system(t, "two-mass-fd"), "--algorithm", "ecco", "--bond", "half=coupling.F:mass2.v")
	if o.code != 2 || !strings.Contains(o.output, "coupling.F does not lead to mass2: one direction of the exchange is missing") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
}

// macrostep bonds finds the bonds by their units, and says why others are none.
func TestBondsFoundByUnits(t *testing.T) {
	code, out := macrostep(t, "bonds", system(t, "two-mass-fd"), "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	var got struct {
		Bonds []struct {
			Name, Pair, Unit string
			Watt             float64
		}
		Others []struct{ A, B, Why string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(got.Bonds) != 1 || got.Bonds[0].Pair != "coupling.F:mass1.v" || got.Bonds[0].Watt != 1 {
		t.Errorf("bonds %+v", got.Bonds)
	}
	if len(got.Others) != 1 || !strings.Contains(got.Others[0].Why, "energy") {
		t.Errorf("others %+v", got.Others)
	}
}

// A run that follows the energy has its columns; the residual energy in them is
// that of the manifest, and the integral of the residual power.
func TestEnergyColumns(t *testing.T) {
	o := complete(t, system(t, "quarter-car-b"), "--monitor-energy", "--bond", "axle=chassis.F_c:wheel.v_w", "--param", "order=1")
	times, power, energy := o.column(t, "time"), o.column(t, "bond.axle.residual_power"), o.column(t, "bond.axle.residual_energy")
	sum := 0.0
	for i := 1; i < len(times); i++ {
		sum += power[i] * (times[i] - times[i-1])
		if math.Abs(sum-energy[i]) > 1e-9*math.Max(1, math.Abs(sum)) {
			t.Fatalf("at t = %g s the residual energy is %g, the integral %g", times[i], energy[i], sum)
		}
	}
	if got := o.manifest.Bonds["axle"].ResidualEnergy; got != energy[len(energy)-1] {
		t.Errorf("the manifest says %g, the last row %g", got, energy[len(energy)-1])
	}
	// The outputs of an implicit run agree with its inputs: no energy appears.
	o = complete(t, system(t, "quarter-car-b"), "--monitor-energy", "--bond", "axle=chassis.F_c:wheel.v_w", "--algorithm", "implicit")
	if got := o.manifest.Bonds["axle"]; math.Abs(got.ResidualEnergy) > 1e-6*math.Abs(got.MeanPower) {
		t.Errorf("an implicit run has the residual energy %g J at a mean power of %g W", got.ResidualEnergy, got.MeanPower)
	}
}
