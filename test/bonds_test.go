package test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// Bonds that are none are refused, before any FMU is touched, with which it is and why.
func testBadBonds(t *testing.T) {
	t.Parallel()
	take := long.Sample(3)
	for _, c := range []struct {
		name, system string
		bonds        []string
		says         []string
	}{
		{"half a declaration", "quarter-car-a", []string{"axle=wheel.F_c"}, []string{"--bond", "NAME=COMPONENT.EFFORT:COMPONENT.FLOW"}},
		{"one name twice", "quarter-car-a", []string{"axle=wheel.F_c:chassis.v_c", "axle=wheel.F_c:chassis.v_c"}, []string{"two bonds are called axle"}},
		{"no such variable", "quarter-car-a", []string{"axle=wheel.F_c:chassis.v"}, []string{"bond axle", `no variable "v"`}},

		{"product an energy", "quarter-car-a", []string{"axle=wheel.F_c:chassis.z_c"}, []string{"bond axle: wheel.F_c and chassis.z_c", "N·m", "no power", "displacement"}},
		{"product no power", "quarter-car-a", []string{"axle=wheel.z_w:chassis.v_c"}, []string{"bond axle: wheel.z_w and chassis.v_c", "m·m/s", "no power"}},

		{"one side only", "quarter-car-a", []string{"axle=wheel.F_c:wheel.v_w"}, []string{"bond axle", "wheel.F_c and wheel.v_w are outputs of the same component"}},
		{"one direction missing", "two-mass-fd", []string{"half=coupling.F:mass2.v"}, []string{"bond half", "coupling.F does not lead to mass2: one direction of the exchange is missing"}},

		{"effort and flow swapped", "quarter-car-a", []string{"axle=chassis.v_c:wheel.F_c"}, []string{"bond axle: chassis.v_c (m/s) is the flow and wheel.F_c (N) the effort; write wheel.F_c:chassis.v_c"}},

		{"two flows", "quarter-car-a", []string{"axle=wheel.v_w:chassis.v_c"}, []string{"bond axle: wheel.v_w and chassis.v_c", "both sides give the same kind"}},
		{"two efforts", "energy-star-3", []string{"hub=left1.f:left2.f"}, []string{"bond hub: left1.f and left2.f", "both sides give the same kind"}},

		{"two bonds, one exchange", "quarter-car-a", []string{"one=wheel.F_c:chassis.v_c", "two=wheel.F_c:chassis.v_c"}, []string{"bond two: chassis.F_c takes part in bond one already"}},
		{"two bonds, one input", "pendula", []string{"x=left.f_x:right.v_x", "y=left.f_y:right.v_y,left.f_x:right.v_x"}, []string{"bond y: right.f_x takes part in bond x already"}},
		{"a vector with one flow twice", "pendula", []string{"tips=left.f_x:right.v_x,left.f_y:right.v_x"}, []string{"bond tips: left.v_x_other takes part in bond tips already"}},
		{"a vector with a displacement", "pendula", []string{"tips=left.f_x:right.v_x,left.f_y:right.y"}, []string{"bond tips: left.f_y and right.y", "displacement"}},
		{"a star, one bond twice", "energy-star-3", []string{"one=left1.f:right.v", "two=left1.f:right.v"}, []string{"bond two: right.f[1] takes part in bond one already"}},
	} {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for _, algorithm := range []string{"ecco", "energy-correction"} {
				args := []string{system(t, c.system), "--algorithm", algorithm}
				for _, b := range c.bonds {
					args = append(args, "--bond", b)
				}
				o := run(t, args...)
				if o.code != 2 {
					t.Errorf("%v: exit code %d\n%s", c.bonds, o.code, o.output)
				}
				for _, part := range c.says {
					if !strings.Contains(o.output, part) {
						t.Errorf("%v: no %q in\n%s", c.bonds, part, o.output)
					}
				}
			}
		})
	}
}

// A flow may serve several bonds, as that of the hub of a star does; a planar force
// with its velocity is one bond.
func TestGoodBonds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		system string
		bonds  []string
	}{
		{"energy-star-5", []string{"one=left1.f:right.v", "two=left2.f:right.v", "three=left3.f:right.v", "four=left4.f:right.v"}},
		{"pendula", []string{"tips=left.f_x:right.v_x,left.f_y:right.v_y"}},
		{"pendula", []string{"x=left.f_x:right.v_x", "y=left.f_y:right.v_y"}},
	} {
		args := []string{system(t, c.system), "--monitor-energy", "--stop-time", "1"}
		for _, b := range c.bonds {
			args = append(args, "--bond", b)
		}
		if o := complete(t, args...); len(o.manifest.Bonds) != len(c.bonds) {
			t.Errorf("%v: the manifest has %v", c.bonds, o.manifest.Bonds)
		}
	}
	// The residual of a vector is the sum of those of its parts.
	whole := complete(t, system(t, "pendula"), "--monitor-energy", "--bond", "tips=left.f_x:right.v_x,left.f_y:right.v_y").column(t, "bond.tips.residual_power")
	parts := complete(t, system(t, "pendula"), "--monitor-energy", "--bond", "x=left.f_x:right.v_x", "--bond", "y=left.f_y:right.v_y")
	x, y := parts.column(t, "bond.x.residual_power"), parts.column(t, "bond.y.residual_power")
	for i := range whole {
		if math.Abs(whole[i]-x[i]-y[i]) > 1e-12*(math.Abs(x[i])+math.Abs(y[i])) {
			t.Fatalf("row %d: %g W, of the parts %g and %g W", i, whole[i], x[i], y[i])
		}
	}
}

// macrostep bonds finds the bonds by their units, and says why others are none.
func TestBondsFoundByUnits(t *testing.T) {
	t.Parallel()
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
