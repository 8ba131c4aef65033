package test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// What is told of components with rates of their own holds in runs: the limit, the recommendation, which has the
// rates that it was found with, and what run --analyze tells.
func testAnalyzeRates(t *testing.T) {
	t.Parallel()
	path := system(t, "quarter-car-b")
	for _, c := range []struct {
		rates []string
		step  float64
		cut   float64 // the limit without rates by that with them, held over the period
	}{
		{[]string{"wheel=1/3"}, 2e-3, 3},
		{[]string{"chassis=2"}, 5e-3, 1},
		{[]string{"wheel=1/2", "chassis=4"}, 2e-3, 2},
	} {
		t.Run(strings.Join(c.rates, " "), func(t *testing.T) {
			t.Parallel()
			var flags []string
			for _, rate := range c.rates {
				flags = append(flags, "--rate", rate)
			}
			r := analysis(t, append([]string{path, "--order", "1", "--step-size", fmt.Sprint(c.step)}, flags...)...)
			s := strategy(t, r, "explicit", 0)
			if len(s.Stable) != 1 || math.Abs(s.Stable[0].To*c.cut-11.2e-3) > 0.1e-3 || strings.Join(s.Rates, " ") != strings.Join(c.rates, " ") {
				t.Fatalf("stable: %v, rates %v, %s", s.Stable, s.Rates, s.Why)
			}
			const steps = 4000
			for part, grows := range map[float64]bool{0.97: false, 1.03: true} {
				H := part * s.Stable[0].To
				o := complete(t, append([]string{path, "--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(steps * H), "--record", "chassis.F_c"}, flags...)...)
				early, late := 0.0, 0.0
				for n, v := range o.column(t, "chassis.F_c") {
					switch n * 4 / steps {
					case 1:
						early = max(early, math.Abs(v))
					case 3:
						late = max(late, math.Abs(v))
					}
				}
				if (late > early) != grows {
					t.Errorf("with %g of the limit of %g s, the force goes from %g to %g N", part, s.Stable[0].To, early, late)
				}
			}
		})
	}
	code, text := macrostep(t, "analyze", path, "--order", "0", "--rate", "chassis=2")
	if code != 0 || !strings.Contains(text, "chassis has a rate of its own, 2 steps a macro step") || !strings.Contains(text, "--rate chassis=2 --step-size") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if code, text := macrostep(t, "analyze", path, "--order", "0", "--rate", "wheel=1/3", "--from", "9e-4", "--to", "1.1e-3"); code != 0 || !strings.Contains(text, "delayed by up to 3 macro steps: explicit all 2 connections; gauss-seidel all 2 connections; implicit none") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	for arg, says := range map[string]string{"wheel=1/a": "is not COMPONENT=N or COMPONENT=1/N", "whel=2": `a rate names "whel", which is no component of the system`} {
		if code, text := macrostep(t, "analyze", path, "--rate", arg); code != 2 || !strings.Contains(text, says) {
			t.Errorf("%s: exit code %d\n%s", arg, code, text)
		}
	}
	for step, says := range map[string]string{"0.002": "the spectral radius is 1; stable steps: up to 0.0037", "0.005": "the coupling is unstable with explicit of order 0 and steps of 0.005 s"} {
		o := complete(t, path, "--analyze", "--rate", "wheel=1/3", "--step-size", step, "--stop-time", "0.3")
		told := o.output + o.warnings()
		if !strings.Contains(told, "explicit of order 0, rates wheel=1/3, steps of "+step+" s") || !strings.Contains(told, says) || !strings.Contains(told, "without --rate") {
			t.Errorf("steps of %s s: %s", step, told)
		}
	}
}

// The errors that are forecast of the energy correction hold in runs within a factor of 3; of its stability nothing is
// known, so that it is not recommended.
func testAnalyzeEnergyCorrection(t *testing.T) {
	t.Parallel()
	path := system(t, "quarter-car-b")
	r := analysis(t, path, "--order", "1", "--step-size", "0.002")
	fineH := 0.002 / 40
	fine := complete(t, path, "--algorithm", "implicit", "--param", "order=2", "--param", "solver.tolerance=1e-9", "--step-size", fmt.Sprint(fineH), "--stop-time", fmt.Sprint(r.Horizon))
	for order := range 2 {
		s := strategy(t, r, "energy-correction", order)
		if s.Known() || s.Points != nil || !strings.Contains(s.Why, "no eigenvalue") || len(s.Forecasts) == 0 || s.Local != nil || r.Strategies[r.Recommended].Preset == s.Preset {
			t.Fatalf("order %d: %+v", order, s)
		}
		args := []string{path, "--algorithm", "energy-correction", "--param", fmt.Sprint("order=", order)}
		for _, f := range s.Forecasts {
			if f.Step < 1e-3 || f.Step > 4e-3 {
				continue
			}
			got := off(t, path, []string{"chassis.F_c", "wheel.v_w"}, r.Horizon, f.Step, args, fine, fineH)
			t.Logf("order %d, %g s: error %.3g, expected %.3g", order, f.Step, got, f.Error)
			if !(got < 3*f.Error && f.Error < 3*got) {
				t.Errorf("order %d, %g s: error %.3g, expected %.3g", order, f.Step, got, f.Error)
			}
		}
	}
	o := complete(t, path, "--analyze", "--algorithm", "energy-correction", "--param", "energy.mu=0.2", "--step-size", "0.005", "--stop-time", "0.3")
	if !strings.Contains(o.output, "analysis: unknown: it is not linear") || !strings.Contains(o.output, "energy-correction: steps of 0.005 to 0.005 s are expected") {
		t.Errorf("%s", o.output)
	}
	if _, text := macrostep(t, "analyze", path, "--order", "0"); !strings.Contains(text, "energy-correction, order 0: it is not linear") {
		t.Errorf("%s", text)
	}
}

// Of FMUs of others, with rates, that is told stable which settles, and no other.
func testRealAnalyzeRates(t *testing.T) {
	path := pair(t)
	cases := 1
	if long.On {
		cases = 4
	}
	for _, c := range []struct {
		rate        string
		order, over int
	}{{"drivetrain=1/3", 0, 3}, {"controller=4", 1, 1}, {"drivetrain=1/3", 1, 3}, {"controller=4", 0, 1}}[:cases] {
		r := analysis(t, path, "--at", "0.3", "--tolerance", "1e-9", "--order", "1", "--step-size", "0.01", "--rate", c.rate)
		s := strategy(t, r, "explicit", c.order)
		if len(s.Stable) == 0 {
			t.Fatalf("%s, order %d: nothing is stable: %s", c.rate, c.order, s.Why)
		}
		for _, factor := range []float64{0.8, 1.25} {
			H := factor * s.Stable[0].To
			o := complete(t, path, "--param", fmt.Sprint("order=", c.order), "--rate", c.rate, "--step-size", fmt.Sprint(H), "--tolerance", "1e-9", "--stop-time", fmt.Sprint(max(4, 600*H)))
			w := o.column(t, "drivetrain.w")
			moves := 0.0
			for i := len(w) * 4 / 5; i < len(w)-2*c.over; i++ {
				moves = max(moves, math.Abs(w[i+2*c.over]-2*w[i+c.over]+w[i]))
			}
			t.Logf("%s, order %d, %.4g s: %g of the limit, moves by %.2g in the end", c.rate, c.order, H, factor, moves)
			if settled := moves < 1e-6; settled != (factor < 1) {
				t.Errorf("%s, order %d, %.4g s: %g of the limit, moves by %.2g in the end", c.rate, c.order, H, factor, moves)
			}
		}
	}
}
