package test

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/long"
)

// analysis runs macrostep analyze, with time for all trial runs.
func analysis(t testing.TB, args ...string) *analyze.Report {
	t.Helper()
	args = append([]string{"analyze", "--json"}, args...)
	if !slices.Contains(args, "--runs") {
		args = append(args, "--runs", "3600")
	}
	code, out := macrostep(t, args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, code, out)
	}
	r := new(analyze.Report)
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

func strategy(t testing.TB, r *analyze.Report, preset string, order int) *analyze.Strategy {
	t.Helper()
	for i := range r.Strategies {
		if s := &r.Strategies[i]; s.Preset == preset && s.Order == order {
			return s
		}
	}
	t.Fatalf("there is no %s of order %d", preset, order)
	return nil
}

// FMUs without rollback and derivatives are measured on further instances, with the same result; strategies that need
// rollback are reported as impossible.
func testAnalyzeBlackboxes(t *testing.T) {
	t.Parallel()
	args := []string{"--order", "1", "--step-size", "3e-4", "--from", "3e-5"}
	open := analysis(t, append([]string{system(t, "corrector-oscillator")}, args...)...)
	closed := analysis(t, append([]string{system(t, "corrector-oscillator-blackbox")}, args...)...)
	for k := range 2 {
		a, b := strategy(t, open, "explicit", k), strategy(t, closed, "explicit", k)
		if len(a.Stable) == 0 || len(a.Stable) != len(b.Stable) {
			t.Fatalf("order %d: %v and %v", k, a.Stable, b.Stable)
		}
		for i := range a.Stable {
			if math.Abs(a.Stable[i].To-b.Stable[i].To) > 0.01*a.Stable[i].To {
				t.Errorf("order %d: stable to %g s and %g s", k, a.Stable[i].To, b.Stable[i].To)
			}
		}
	}
	if closed.Stray == nil || closed.Stray.Off > 1e-4 || closed.Large != "" {
		t.Errorf("along the motion: %+v, %q", closed.Stray, closed.Large)
	}
	// Later, by instances that are led the way again.
	later := analysis(t, system(t, "corrector-oscillator-blackbox"), "--order", "0", "--step-size", "3e-4",
		"--from", "3e-4", "--to", "3e-3", "--at", "0.01")
	if a, b := strategy(t, open, "explicit", 0), strategy(t, later, "explicit", 0); later.Subsystems[0].Model != twin.Renewed ||
		len(b.Stable) != 1 ||
		math.Abs(b.Now-a.Now) > 1e-4 || math.Abs(a.Stable[0].To-b.Stable[0].To) > 0.01*a.Stable[0].To {
		t.Errorf("at 0.01 s: %+v, %+v", later.Subsystems, b)
	}
	if s := strategy(t, closed, "model-based-corrector", 0); len(s.Points) > 0 || len(s.Forecasts) > 0 ||
		!strings.Contains(s.Why, "a run has to identify the model of one") {
		t.Errorf("model-based-corrector: %+v", s)
	}
	if s := strategy(t, closed, "implicit", 0); !strings.Contains(s.Why, "cannot go back") || len(s.Points) > 0 {
		t.Errorf("implicit: %+v", s)
	}
	if s := closed.Subsystems[0]; s.Model != twin.Renewed {
		t.Errorf("%+v", s)
	}
}

// off returns the error of a run in steps of H against a fine run, over the outputs that feed other components, as
// analyze defines it.
func off(t testing.TB, outputs []string, H float64, o, fine *outcome, fineH float64) float64 {
	t.Helper()
	worst := 0.0
	each := int(math.Round(H / fineH))
	for _, name := range outputs {
		want := fine.column(t, name)
		e := 0.0
		got := o.column(t, name)
		for n, v := range got {
			e += math.Pow(v-want[n*each], 2) / float64(len(got))
		}
		if s := spread(want); s > 0 {
			worst = max(worst, math.Sqrt(e)/s)
		}
	}
	return worst
}

// spread returns the standard deviation.
func spread(x []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)))
}

// Where the analysis cannot predict anything the report gives the reason.
func testAnalyzeUnknown(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"crane": "not those of a linear system", "sqrt-oscillator": "depends on when it is moved"} {
		if name == "crane" && !long.On {
			continue
		}
		r := analysis(t, system(t, name), "--order", "0", "--runs", "0")
		if s := strategy(t, r, "explicit", 0); len(s.Points) > 0 || s.Seen != nil || !strings.Contains(s.Why, says) || r.Recommended >= 0 {
			t.Errorf("%s: %+v, recommended %d", name, s, r.Recommended)
		}
	}
	// Dampers whose force goes with the square of the speed: at rest there is none. Along the motion the models are
	// off: the report promises no error that they cannot predict.
	r := analysis(t, system(t, "quadratic-oscillator"), "--order", "0", "--from", "8e-4", "--to", "1.2e-3",
		"--stop-time", "0.4", "--runs", "0")
	s := strategy(t, r, "explicit", 0)
	if r.Stray == nil || r.Stray.Off < 0.05 || r.Large != "" || len(s.Stable) > 0 ||
		!strings.Contains(s.Why, "the model of left") || r.Promised != nil || r.Recommended >= 0 {
		t.Errorf("dampers whose force goes with the square of the speed: along the motion %+v, %q, %+v, promised %+v",
			r.Stray, r.Large, s, r.Promised)
	}
	for _, f := range s.Forecasts {
		if f.Error < 0.1 && !f.IsRough() {
			t.Errorf("dampers whose force goes with the square of the speed: %+v", f)
		}
	}
	r = analysis(t, system(t, "contact-oscillator"), "--order", "0", "--runs", "0")
	if s := strategy(t, r, "explicit", 0); r.Stray == nil || r.Stray.Off < 0.5 || r.Large == "" ||
		r.WhyNoError != r.Large || len(s.Stable) == 0 || len(s.Forecasts) > 0 || r.Promised != nil {
		t.Errorf("a contact: along the motion %+v, %q, %+v, promised %+v", r.Stray, r.WhyNoError, s, r.Promised)
	}
}

// A run says what grows, and a check finds whether the coupling is the cause: the amplitude of the energy oscillator is constant,
// and the systems with negative damping grow whatever the step. The times of doubling are those of the spectral radii: 11.7 % and
// 0.494 % in each step of 0.05 s and 0.01 s, and a factor of e in 4.34 s.
func TestSteadyGrowth(t *testing.T) {
	t.Parallel()
	take := long.Sample(9)
	const coupling, itself, both = "the coupling is unstable", "the coupling is not the cause", "the coupling may add to it"
	const near = 0.15 // relative; other modes die out meanwhile
	doubles := regexp.MustCompile(` every ([0-9.]+) s`)
	for _, c := range []struct {
		demo, args string
		says       string  // after a check; "" = nothing grows
		every      float64 // s, in which it doubles; 0 = not known
	}{
		{"energy-oscillator", "--step-size 0.05 --stop-time 5", coupling, 0.05 * math.Ln2 / math.Log(1.117)},
		{"energy-oscillator", "--step-size 0.01 --stop-time 10", coupling, 0.01 * math.Ln2 / math.Log(1.00494)},
		{"energy-oscillator", "--step-size 0.001 --stop-time 2", "", 0},
		{"sqrt-oscillator", "--step-size 0.1 --stop-time 20", coupling, 0},
		{"corrector-oscillator", "--algorithm model-based-corrector --step-size 0.01 --stop-time 0.5", coupling, 0},
		{"corrector-oscillator", "--set one.d=-600 --stop-time 0.3", both, 0},
		{"quarter-car-b", "--set chassis.d_c=-20 --algorithm gauss-seidel --step-size 2e-5 --stop-time 10 --output-interval 0.01", itself, 4.34 * math.Ln2},
		{"quarter-car-b", "--step-size 0.0115 --stop-time 3", coupling, 0},
		{"quarter-car-b", "--step-size 0.02 --stop-time 4", coupling, 0},
		{"quarter-car-b", "--step-size 0.005 --stop-time 4", "", 0},
		{"energy-oscillator", "--algorithm gauss-seidel --step-size 0.005 --stop-time 100 --output-interval 1", coupling, 0},
	} {
		if !take() {
			continue
		}
		args := append([]string{system(t, c.demo)}, strings.Fields(c.args)...)
		o := complete(t, args...)
		want := master.Outcome{Ended: master.EndedComplete, Stability: master.NotJudged, Expectations: master.NoExpectations}
		if c.says != "" {
			want.Stability, want.Growth = master.Grows, o.manifest.Outcome.Growth
		}
		if !strings.HasSuffix(want.Growth, "cause unknown (--check)") != (c.says == "") ||
			o.manifest.Outcome != want || strings.Contains(o.warnings(), "unstable") != (c.says != "") {
			t.Errorf("%s %s: %+v, warnings %q", c.demo, c.args, o.manifest.Outcome, o.warnings())
		}
		if c.every > 0 {
			found := doubles.FindStringSubmatch(want.Growth)
			if every, _ := strconv.ParseFloat(append(found, "", "")[1], 64); math.Abs(every/c.every-1) > near {
				t.Errorf("%s %s: %s, want every %.3g s", c.demo, c.args, want.Growth, c.every)
			}
		}
		if want.Stability = master.Stable; c.says == coupling {
			want.Stability = master.Unstable
		} else if c.says != "" {
			want.Stability = master.Grows
		}
		o = complete(t, append(args, "--check")...)
		if want.Growth = o.manifest.Outcome.Growth; o.manifest.Outcome != want || !strings.HasSuffix(want.Growth, c.says) {
			t.Errorf("%s %s: %+v, %s", c.demo, c.args, o.manifest.Outcome, o.output)
		}
	}
	run(t, system(t, "energy-oscillator"), "--step-size", "0.05", "--stop-time", "5", "--strict").is(t, 1)
}

// A control loop of Dymola's FMUs, without and with rates of its components: at parts and multiples of the limits,
// runs settle where the report says stable and only there. The FMUs of 20-sim take steps of their own, for which the
// report has no models.
func testRealAnalyze(t *testing.T) {
	path := pair(t)
	hits := 0
	for _, c := range []struct {
		preset  string
		order   int
		rate    string
		over    int // macro steps after which a rate repeats itself
		factors []float64
	}{
		{"explicit", 0, "", 1, []float64{0.5, 0.8, 1.25, 2}},
		{"explicit", 1, "", 1, []float64{0.5, 0.8, 1.25, 2}},
		{"gauss-seidel", 1, "", 1, []float64{0.5, 0.8, 1.25, 2}},
		{"explicit", 0, "drivetrain=1/3", 3, []float64{0.8, 1.25}}, {"explicit", 1, "controller=4", 1, []float64{0.8, 1.25}},
	} {
		args := []string{path, "--tolerance", "1e-9"}
		more := []string{"--at", "0.3", "--order", "1", "--runs", "0"}
		if c.rate != "" {
			args = append(args, "--rate", c.rate)
			more = []string{"--at", "0.3", "--order", "1", "--step-size", "0.01"}
		}
		s := strategy(t, analysis(t, slices.Concat(args, more)...), c.preset, c.order)
		if len(s.Stable) == 0 {
			t.Fatalf("%+v: nothing is stable: %s", c, s.Why)
		}
		for _, factor := range c.factors {
			H := factor * s.Stable[0].To
			stable := slices.ContainsFunc(s.Stable, func(within scan.Range) bool { return within.From <= H && H <= within.To })
			if H > s.Points[len(s.Points)-1].Step {
				continue // nothing is told of it
			}
			o := complete(t, append(slices.Clip(args), "--algorithm", c.preset, "--param", fmt.Sprint("order=", c.order),
				"--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(max(4, 600*H)))...)
			w := o.column(t, "drivetrain.w")
			moves := 0.0
			for i := len(w) * 4 / 5; i < len(w)-2*c.over; i++ {
				moves = max(moves, math.Abs(w[i+2*c.over]-2*w[i+c.over]+w[i]))
			}
			if settled := moves < 1e-6; settled != stable {
				t.Errorf("%s, order %d, %s, %.4g s: told stable %t, moves by %.2g in the end", c.preset, c.order, c.rate, H, stable, moves)
			} else {
				hits++
			}
		}
	}
	if hits < 14 {
		t.Errorf("%d hits", hits)
	}
	path = dampers(t)
	report := analysis(t, path, "--order", "1", "--at", "0.1", "--runs", "0")
	if s := strategy(t, report, "explicit", 0); len(s.Points) > 0 || !strings.Contains(s.Why, "MassSpringDamper") {
		t.Errorf("dampers: %+v", s)
	}
	// They take steps of 10 ms whatever the macro step. Where both coincide, the prediction for their multiples is
	// what runs do.
	report = analysis(t, path, "--order", "0", "--step-size", "0.01", "--at", "0.32", "--to", "0.1")
	for _, c := range []struct {
		preset string
		stable int // multiples of 10 ms
	}{{"explicit", 1}, {"gauss-seidel", 5}, {"implicit", 6}} {
		s := strategy(t, report, c.preset, 0)
		if s.Multiples != 0.01 || len(s.Stable) != 1 || math.Abs(s.Stable[0].To-0.01*float64(c.stable)) > 1e-9 {
			t.Errorf("dampers, %s: %+v", c.preset, s)
			continue
		}
		for n := c.stable; n <= c.stable+1; n++ {
			o := complete(t, path, "--algorithm", c.preset, "--param", "order=0",
				"--step-size", fmt.Sprint(0.01*float64(n)), "--stop-time", fmt.Sprint(12*float64(n)))
			x := o.column(t, "one.x1")
			third := len(x) / 3
			grows := math.Pow(most(x[2*third:])/most(x[third:2*third]), 3/float64(len(x)))
			if math.Abs(grows-s.Points[n-1].Radius) > 2e-3 {
				t.Errorf("dampers, %s, %g s: radius %.4f, grows by %.4f in the run", c.preset, 0.01*float64(n), s.Points[n-1].Radius, grows)
			}
		}
	}
}

// Third-party FMUs without usable models, which take steps of their own or are far from linear: runs at 0.5 and 0.8
// times the limit that trial runs show do not grow; at 1.25 and 2 times it they grow, fail or jump from step to step.
// The long test takes two systems and more strategies.
func testRealRuns(t *testing.T) {
	type subject struct {
		path, output string
		args         []string
		strategies   []string // preset/order
	}
	systems, least := []subject{{dampers(t), "one.x1", []string{"--at", "0.1", "--order", "0", "--from", "4e-3",
		"--to", "0.04", "--runs", "60"}, []string{"explicit/0"}}}, 4
	if long.On {
		systems[0].args = []string{"--at", "0.1", "--order", "1", "--runs", "120"}
		systems[0].strategies = []string{"explicit/0", "explicit/1", "gauss-seidel/0", "gauss-seidel/1", "implicit/0", "implicit/1"}
		systems = append(systems, subject{filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"),
			"KnuckleBoomCrane.p_Crane.f[2]",
			[]string{"--order", "1", "--step-size", "1e-3", "--from", "2e-4", "--to", "5e-3", "--runs", "600"},
			[]string{"explicit/1", "gauss-seidel/1", "implicit/0", "implicit/1"}})
		least = 28
	}
	hits := 0
	for _, c := range systems {
		r := analysis(t, append([]string{c.path}, c.args...)...)
		for _, name := range c.strategies {
			preset, k, _ := strings.Cut(name, "/")
			s := strategy(t, r, preset, int(k[0]-'0'))
			if s.Seen == nil || len(s.Stable) == 0 || s.Stable[0].From > 1.01*r.From {
				t.Errorf("%s, %s: stable %v; %s", c.output, name, s.Stable, s.Why)
				continue
			}
			for _, factor := range []float64{0.5, 0.8, 1.25, 2} {
				H := factor * s.Stable[0].To
				within := func(from, to float64) bool { return from <= H && H <= to }
				stable := slices.ContainsFunc(s.Stable, func(at scan.Range) bool { return within(at.From, at.To) }) || factor < 1
				gap := slices.ContainsFunc(s.Gaps, func(at scan.Gap) bool { return within(at.From/1.5, at.To*1.5) })
				if !stable && (gap || H > s.Points[len(s.Points)-1].Step) {
					continue // the report has no statement
				}
				args := []string{c.path, "--algorithm", preset, "--param", "order=" + k, "--step-size", fmt.Sprint(H),
					"--stop-time", fmt.Sprint(0.1 + 2000*H)}
				if preset == "implicit" {
					args = append(args, "--param", "solver.tolerance=1e-9")
				}
				o := run(t, args...)
				growth, jumps := math.Inf(1), math.Inf(1)
				if o.code == 0 {
					growth, jumps = unsteady(o.column(t, c.output))
				}
				if observed := growth < 1.5 && !(jumps > 0.5 && growth > 0.9); observed != stable { // jumps may die out
					t.Errorf("%s, %s, %.4g s: reported stable %t, grows by %.3g over a third, jumps by %.2g",
						c.output, name, H, stable, growth, jumps)
					continue
				}
				hits++
			}
		}
	}
	if hits < least {
		t.Errorf("%d hits", hits)
	}
}

// The swings of the crane grow more and more slowly, up to thirty times those of finer coupling: the page says so. A check
// finds that the coupling is the cause of the growth of the dampers.
func testRealGrowth(t *testing.T) {
	crane := []string{filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"), "--stop-time", "10", "--output-interval", "0.1"}
	page := filepath.Join(t.TempDir(), "run.html")
	o := complete(t, append(crane, "--report", page)...)
	if o.manifest.Outcome.Stability != master.Grows || !strings.Contains(string(read(t, page)), ">complete, grows<") {
		t.Errorf("crane: %+v\n%s", o.manifest.Outcome, o.output)
	}
	if o := complete(t, append(crane, "--param", "order=1")...); o.manifest.Outcome.Stability != master.NotJudged {
		t.Errorf("crane, order 1: %+v\n%s", o.manifest.Outcome, o.output)
	}
	o = complete(t, dampers(t), "--step-size", "0.03", "--stop-time", "10", "--check")
	if o.manifest.Outcome.Stability != master.Unstable {
		t.Errorf("dampers: %+v\n%s", o.manifest.Outcome, o.output)
	}
}

// unsteady returns how much farther a motion goes in its last third than in the one before, and which part of it
// changes from step to step, as root mean squares.
func unsteady(x []float64) (growth, jumps float64) {
	n := len(x) / 3
	last, bends := x[2*n:], 0.0
	for k := 2; k < len(last); k++ {
		b := last[k] - 2*last[k-1] + last[k-2]
		bends += b * b
	}
	size := max(most(x), 1e-300)
	goes := spread(last)
	if goes < 1e-9*size {
		return 0, 0
	}
	return goes / spread(x[n:2*n]), math.Sqrt(bends/float64(len(last))) / goes
}

// most returns the largest magnitude.
func most(x []float64) (m float64) {
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}

// Predictions for components with rates of their own hold in runs: the limit, the recommendation with these rates,
// and the report of run --analyze.
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
			if len(s.Stable) != 1 || math.Abs(s.Stable[0].To*c.cut-11.2e-3) > 0.1e-3 ||
				strings.Join(s.Rates, " ") != strings.Join(c.rates, " ") {
				t.Fatalf("stable: %v, rates %v, %s", s.Stable, s.Rates, s.Why)
			}
			const steps = 4000
			for part, grows := range map[float64]bool{0.97: false, 1.03: true} {
				H := part * s.Stable[0].To
				o := complete(t, append([]string{path, "--step-size", fmt.Sprint(H),
					"--stop-time", fmt.Sprint(steps * H), "--record", "chassis.F_c"}, flags...)...)
				f := o.column(t, "chassis.F_c")
				early, late := most(f[steps/4:steps/2]), most(f[3*steps/4:])
				if (late > early) != grows {
					t.Errorf("with %g of the limit of %g s, the force goes from %g to %g N", part, s.Stable[0].To, early, late)
				}
			}
		})
	}
	call(t, "analyze", path, "--order", "0", "--rate", "chassis=2").is(t, 0,
		"chassis has a rate of its own, 2 steps a macro step", "--rate chassis=2 --step-size")
	call(t, "analyze", path, "--all", "--order", "0", "--rate", "wheel=1/3", "--from", "9e-4", "--to", "1.1e-3").is(t, 0,
		"delayed by up to 3 macro steps: explicit all 2 connections; gauss-seidel all 2 connections; implicit none")
}

// The step sizes at which variable-step algorithms settle are those of runs of the FMUs: the numbers of steps over
// the horizon agree to a tenth. The report says where the solver inside an FMU misleads an error estimate, and where
// the tolerance cannot be met.
func testAnalyzeVarying(t *testing.T) {
	for _, c := range []struct{ name, settled, unknown, fails string }{
		{"two-mass-ff", "ex-local ex-milne im-milne im-slocal richardson predictor-corrector ecco", "", ""},
		{"quarter-car-b", "predictor-corrector ecco", "ex-milne im-milne richardson", "ex-slocal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := system(t, c.name)
			r := analysis(t, path, "--order", "1")
			for preset := range strings.FieldsSeq(c.settled + " " + c.unknown + " " + c.fails) {
				at := slices.IndexFunc(r.Varying, func(v forecast.Varying) bool { return v.Preset == preset })
				if at < 0 {
					t.Fatalf("nothing is reported of %s", preset)
				}
				v := &r.Varying[at]
				if strings.Contains(c.unknown, preset) {
					if !strings.Contains(v.Why, "the solver inside") {
						t.Errorf("%s: %+v", preset, v)
					}
					continue
				}
				if len(v.Settled) == 0 {
					t.Fatalf("%s: %+v", preset, v)
				}
				s := last(v.Settled)
				args := []string{path, "--algorithm", preset, "--param", fmt.Sprintf("%s=%g", v.Tolerance, s.Tolerance),
					"--param", "order=" + v.Order,
					"--stop-time", fmt.Sprint(r.Horizon), "--record", "none"}
				for _, b := range r.Structure.Bonds {
					if preset == "ecco" && !b.Declared {
						args = append(args, "--bond", b.Name+"="+strings.Join(b.Pairs, ","))
					}
				}
				o := run(t, args...)
				fails := preset == c.fails
				if n := float64(o.manifest.Steps.Accepted); fails != (s.Fails != "") || fails != (o.code != 0) ||
					!fails && math.Abs(float64(s.Accepted)-n) > 0.1*n {
					t.Errorf("%s: %+v, and a run has exit code %d after %g steps\n%s", preset, s, o.code, n, o.output)
				}
			}
		})
	}
}
