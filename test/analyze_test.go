package test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/probe"
)

// analysis runs macrostep analyze, with time for all runs that it wants to make.
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

// What is told of haid's oscillator, from FMUs by the command line, is what the eigenvalues
// of the independent propagation matrix say: radii to 1e-6, with correction, whose responses are
// differences, to 1e-4, and the ends of all stable ranges within half a percent, windows
// included.
func testAnalyzeHaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ck, dk, H float64
	}{{2e5, 5e2, 3e-4}, {1e9, 3.6e5, 2e-4}} {
		o := exact.DefaultHaid()
		o.CK, o.DK = c.ck, c.dk
		r := analysis(t, system(t, "corrector-oscillator"), "--set", fmt.Sprint("two.c_k=", c.ck), "--set", fmt.Sprint("two.d_k=", c.dk),
			"--step-size", fmt.Sprint(c.H), "--from", fmt.Sprint(c.H/10), "--order", "2", "--runs", "0")
		for _, s := range r.Subsystems {
			if s.Model != analyze.Measured || s.States != 2 {
				t.Errorf("%+v", s)
			}
		}
		ends := 0
		for k := range 3 {
			for _, preset := range []string{"explicit", "model-based-corrector"} {
				s := strategy(t, r, preset, k)
				tolerance := 1e-6
				if preset != "explicit" {
					tolerance = 1e-4
				}
				radius := func(H float64) float64 {
					return exact.Corrected{Haid: o, H: H, P: k, Correct: preset != "explicit", Alpha: 1}.Radius()
				}
				if want := radius(c.H); math.Abs(s.Now-want) > tolerance*want {
					t.Errorf("c_k = %g, %s, order %d: radius %.9g, want %.9g", c.ck, preset, k, s.Now, want)
				}
				for _, p := range s.Points {
					if want := radius(p.Step); math.Abs(p.Radius-want) > tolerance*want {
						t.Errorf("c_k = %g, %s, order %d, H = %g: radius %.9g, want %.9g", c.ck, preset, k, p.Step, p.Radius, want)
						break
					}
				}
				for _, at := range s.Stable {
					if at.From > r.From*1.001 {
						ends++
						if below, above := radius(at.From*0.995), radius(at.From*1.005); !(below > 1 && above < 1) {
							t.Errorf("%s, order %d: stable from %g s, radii %g and %g around it", preset, k, at.From, below, above)
						}
					}
					if at.To < r.To*0.999 {
						ends++
						if below, above := radius(at.To*0.995), radius(at.To*1.005); !(below < 1 && above > 1) {
							t.Errorf("%s, order %d: stable to %g s, radii %g and %g around it", preset, k, at.To, below, above)
						}
					}
				}
			}
		}
		if ends < 3 {
			t.Errorf("c_k = %g: %d ends of ranges", c.ck, ends)
		}
		if c.ck == 1e9 { // haid 4.3
			s := strategy(t, r, "explicit", 1)
			if n := len(s.Stable); n == 0 || math.Abs(s.Stable[n-1].From-1.4e-4) > 0.1e-4 || math.Abs(s.Stable[n-1].To-3.1e-4) > 0.1e-4 {
				t.Errorf("the window of stability is %v", s.Stable)
			}
		}
	}
}

// The limits of sadjina's quarter cars with the solvers in their FMUs, as runs show them.
func testAnalyzeQuarterCars(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]float64{"quarter-car-b": 11.21e-3, "quarter-car-a": 53.09e-3} {
		if name != "quarter-car-b" && !long.On {
			continue
		}
		r := analysis(t, system(t, name), "--order", "0", "--step-size", "1e-3", "--to", "0.1")
		s := strategy(t, r, "explicit", 0)
		if len(s.Stable) != 1 || math.Abs(s.Stable[0].To-limit) > 5e-3*limit {
			t.Errorf("%s: stable %v, limit of runs %g s", name, s.Stable, limit)
		}
	}
}

// FMUs that can neither go back nor give derivatives are measured on further instances, with the
// same result; what needs rollback is said to need it.
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
	later := analysis(t, system(t, "corrector-oscillator-blackbox"), "--order", "0", "--step-size", "3e-4", "--from", "3e-4", "--to", "3e-3", "--at", "0.01")
	if a, b := strategy(t, open, "explicit", 0), strategy(t, later, "explicit", 0); later.Subsystems[0].Model != analyze.Renewed || len(b.Stable) != 1 ||
		math.Abs(b.Now-a.Now) > 1e-4 || math.Abs(a.Stable[0].To-b.Stable[0].To) > 0.01*a.Stable[0].To {
		t.Errorf("at 0.01 s: %+v, %+v", later.Subsystems, b)
	}
	if s := strategy(t, closed, "model-based-corrector", 0); s.Points == nil || s.Forecasts != nil || !strings.Contains(s.Untold, "errors are not forecast") {
		t.Errorf("model-based-corrector: %+v", s)
	}
	if s := strategy(t, closed, "implicit", 0); !strings.Contains(s.Why, "cannot go back") || s.Points != nil {
		t.Errorf("implicit: %+v", s)
	}
	if s := closed.Subsystems[0]; s.Model != analyze.Renewed {
		t.Errorf("%+v", s)
	}
}

// Where the step is far beyond what is stable, another algorithm or step is recommended, and
// a run with it does not grow.
func testAnalyzeRecommends(t *testing.T) {
	t.Parallel()
	path := system(t, "quarter-car-b")
	r := analysis(t, path, "--step-size", "0.02", "--order", "1")
	if r.Recommended < 0 {
		t.Fatal(r.Why)
	}
	s := r.Strategies[r.Recommended]
	o := complete(t, path, "--algorithm", s.Preset, "--param", fmt.Sprint("order=", s.Order), "--step-size", fmt.Sprint(r.StepToTake), "--stop-time", "20")
	for i, v := range o.column(t, "chassis.z_c") {
		if math.Abs(v) > 1 {
			t.Fatalf("%s, order %d, %g s: the chassis is at %g m in row %d", s.Preset, s.Order, r.StepToTake, v, i)
		}
	}
	explicit := strategy(t, r, "explicit", 0)
	if explicit.Now <= 1 || explicit.Mode == nil || len(explicit.Mode.Connections) == 0 || len(explicit.Mode.Outputs) == 0 {
		t.Errorf("%+v", explicit)
	}
	if code, out := macrostep(t, "analyze", path, "--step-size", "0.02", "--order", "1"); code != 0 || !strings.Contains(out, "recommended") || !strings.Contains(out, "macrostep run "+path) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// off runs a system and gives the error of what it finds, as analyze defines it, against a fine
// run: of the outputs that feed others.
func off(t testing.TB, path string, outputs []string, horizon, H float64, args []string, fine *outcome, fineH float64) float64 {
	t.Helper()
	o := complete(t, append(args, "--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(horizon))...)
	worst := 0.0
	each := int(math.Round(H / fineH))
	for _, name := range outputs {
		want := fine.column(t, name)
		mean, square, e := 0.0, 0.0, 0.0
		for _, v := range want {
			mean += v / float64(len(want))
		}
		for _, v := range want {
			square += (v - mean) * (v - mean) / float64(len(want))
		}
		got := o.column(t, name)
		for n, v := range got {
			d := v - want[n*each]
			e += d * d / float64(len(got))
		}
		if square > 0 {
			worst = max(worst, math.Sqrt(e/square))
		}
	}
	return worst
}

// The recommendation, followed, has the error that it promises, and so have the other algorithms
// at the step of the analysis, within a factor of 3.
func testAnalyzeErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		H       float64
		outputs []string
	}{
		{"corrector-oscillator-blackbox", 1e-4, []string{"one.s", "one.v", "two.F"}},
		{"quarter-car-b", 2e-3, []string{"chassis.F_c", "wheel.v_w"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := system(t, c.name)
			r := analysis(t, path, "--step-size", fmt.Sprint(c.H))
			if r.Promised == nil {
				t.Fatalf("%s; %s", r.WhyNoError, r.Why)
			}
			fineH := c.H / 40
			best := []string{path, "--algorithm", "implicit", "--param", "order=2", "--param", "solver.tolerance=1e-9"}
			if strings.Contains(c.name, "blackbox") {
				best = []string{path, "--algorithm", "gauss-seidel", "--param", "order=2", "--param", "substeps=2"}
			}
			fine := complete(t, append(best, "--step-size", fmt.Sprint(fineH), "--stop-time", fmt.Sprint(r.Horizon))...)
			check := func(s *analyze.Strategy, f analyze.Forecast) {
				t.Helper()
				got := off(t, path, c.outputs, r.Horizon, f.Step, []string{path, "--algorithm", s.Preset, "--param", fmt.Sprint("order=", s.Order)}, fine, fineH)
				t.Logf("%s, order %d, %g s: error %.3g, expected %.3g of %s", s.Preset, s.Order, f.Step, got, f.Error, f.Of)
				if !(got < 3*f.Error && f.Error < 3*got) && max(got, f.Error) > 1e-4 { // below that the model of the responses decides
					t.Errorf("%s, order %d, %g s: error %.3g, expected %.3g", s.Preset, s.Order, f.Step, got, f.Error)
				}
			}
			check(&r.Strategies[r.Recommended], *r.Promised)
			for i := range r.Strategies {
				s := &r.Strategies[i]
				for _, f := range s.Forecasts {
					if f.Step == c.H && (s.Preset == "explicit" || s.Preset == "implicit" && s.Order == 1) {
						check(s, f)
					}
				}
			}
		})
	}
}

// The limits of a linear system are the same at every time, when it has come to rest too.
func testAnalyzeLater(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"0.3", "2", "100"} {
		r := analysis(t, system(t, "quarter-car-b"), "--order", "0", "--at", at)
		s := strategy(t, r, "explicit", 0)
		if len(s.Stable) != 1 || math.Abs(s.Stable[0].To-11.21e-3) > 0.06e-3 || s.Now != 1 || !s.Lasts || math.Abs(s.Besides-0.998958) > 1e-5 { // nothing holds both masses together
			t.Errorf("at %s s: stable %v, radius %.9g besides %.9g", at, s.Stable, s.Now, s.Besides)
		}
	}
}

// What an FMU says when an analysis tries it is not printed as if it were of the run.
func TestAnalysisIsQuiet(t *testing.T) {
	t.Parallel()
	path := twoLives(t, life(t, probe.LifeCapabilities, "MUTE=fmi2Error"), "")
	var printed []int
	for _, more := range [][]string{nil, {"--analyze"}} {
		o := complete(t, append([]string{path, "--compile", "--step-size", "0.1", "--stop-time", "1", "--set", "first.k=3"}, more...)...)
		printed = append(printed, strings.Count(o.output, "parameters are not shown"))
	}
	if printed[0] == 0 || printed[0] != printed[1] {
		t.Errorf("printed %d times, with an analysis %d times", printed[0], printed[1])
	}
}

// Where nothing can be told, that is told, and a run with --analyze goes on.
func testAnalyzeUnknown(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"crane": "not those of a linear system", "sqrt-oscillator": "depends on when it is moved"} {
		if name == "crane" && !long.On {
			continue
		}
		r := analysis(t, system(t, name), "--order", "0", "--runs", "0")
		if s := strategy(t, r, "explicit", 0); s.Points != nil || s.Seen != nil || !strings.Contains(s.Why, says) || r.Recommended >= 0 {
			t.Errorf("%s: %+v, recommended %d", name, s, r.Recommended)
		}
	}
	// Dampers whose force goes with the square of the speed: at rest there is none.
	// Along the motion the models are off: no error is promised that they cannot tell.
	r := analysis(t, system(t, "quadratic-oscillator"), "--order", "0", "--from", "8e-4", "--to", "1.2e-3", "--stop-time", "0.4", "--runs", "0")
	s := strategy(t, r, "explicit", 0)
	if r.Stray == nil || r.Stray.Off < 0.05 || r.Large != "" || len(s.Stable) > 0 || !strings.Contains(s.Why, "the model of left") || r.Promised != nil || r.Recommended >= 0 {
		t.Errorf("dampers whose force goes with the square of the speed: along the motion %+v, %q, %+v, promised %+v", r.Stray, r.Large, s, r.Promised)
	}
	for _, f := range s.Forecasts {
		if f.Error < 0.1 && !f.IsRough() {
			t.Errorf("dampers whose force goes with the square of the speed: %+v", f)
		}
	}
	r = analysis(t, system(t, "contact-oscillator"), "--order", "0", "--runs", "0")
	if s := strategy(t, r, "explicit", 0); r.Stray == nil || r.Stray.Off < 0.5 || r.Large == "" || r.WhyNoError != r.Large || len(s.Stable) == 0 || s.Forecasts != nil || r.Promised != nil {
		t.Errorf("a contact: along the motion %+v, %q, %+v, promised %+v", r.Stray, r.WhyNoError, s, r.Promised)
	}
	o := complete(t, system(t, "sqrt-oscillator"), "--analyze", "--stop-time", "0.1")
	if !strings.Contains(o.output, "analysis: unknown") || !strings.Contains(strings.Join(o.manifest.Notes, "\n"), "analysis: unknown") {
		t.Errorf("%s\n%v", o.output, o.manifest.Notes)
	}
	o = complete(t, system(t, "quarter-car-b"), "--analyze", "--step-size", "0.02", "--stop-time", "1")
	if w := strings.Join(o.manifest.Warnings, "\n"); !strings.Contains(w, "analysis: the coupling is unstable with explicit of order 0") || !strings.Contains(o.output, "recommended: --algorithm") {
		t.Errorf("%s\n%v", o.output, o.manifest.Warnings)
	}
}

// A run whose outputs grow steadily is unstable if its coupling is; the spectral radii are those
// of analyze, and the growth of the energy oscillator is spurious: its exact amplitude is constant.
func TestSteadyGrowth(t *testing.T) {
	t.Parallel()
	take := long.Sample(9)
	for _, c := range []struct {
		demo, args string
		says       string // of a warning; "" = there is none on growth
		unstable   bool
	}{
		{"energy-oscillator", "--step-size 0.05 --stop-time 5", "of order 0 and steps of 0.05 s: it grows by 11.7 % in each", true},
		{"energy-oscillator", "--step-size 0.01 --stop-time 10", "of order 0 and steps of 0.01 s: it grows by 0.494 % in each", true},
		{"energy-oscillator", "--step-size 0.001 --stop-time 2", "", false},
		{"sqrt-oscillator", "--step-size 0.1 --stop-time 20", "the analysis cannot decide which", false},
		{"corrector-oscillator", "--algorithm model-based-corrector --step-size 0.01 --stop-time 0.5", "with model-based-corrector of order 0", true},
		{"corrector-oscillator", "--set one.d=-600 --stop-time 0.3", "the system itself is unstable, whatever the step", false},
		{"quarter-car-b", "--set chassis.d_c=-20 --algorithm gauss-seidel --step-size 2e-5 --stop-time 10 --output-interval 0.01", "the system itself is unstable: it grows by 2", false},
		{"quarter-car-b", "--step-size 0.0115 --stop-time 3", "of order 0 and steps of 0.0115 s", true},
		{"energy-oscillator", "--algorithm gauss-seidel --step-size 0.005 --stop-time 100 --output-interval 1", "with gauss-seidel of order 0 and steps of 0.005 s", true},
	} {
		if !take() {
			continue
		}
		o := complete(t, append([]string{system(t, c.demo)}, strings.Fields(c.args)...)...)
		w := strings.Join(o.manifest.Warnings, "\n")
		if says := strings.Contains(w, "grow steadily"); says != (c.says != "") || !strings.Contains(w, c.says) || (o.manifest.Outcome.Stability == master.Unstable) != c.unstable {
			t.Errorf("%s %s: %+v, warnings %q", c.demo, c.args, o.manifest.Outcome, w)
		}
	}
	if o := run(t, system(t, "energy-oscillator"), "--step-size", "0.05", "--stop-time", "5", "--strict"); o.code != 1 {
		t.Errorf("strictly: exit code %d", o.code)
	}
}

// What models tell nothing of is told from runs, as of dampers whose force goes with the square of the speed: what is
// told to be stable stays where it is, and what is told to grow does not.
func testAnalyzeRuns(t *testing.T) {
	t.Parallel()
	path := system(t, "quadratic-oscillator")
	args := []string{path, "--order", "0", "--from", "1e-3", "--to", "0.1", "--step-size", "0.01", "--runs", "120"}
	r := analysis(t, args...)
	s := strategy(t, r, "explicit", 0)
	if s.Seen == nil || s.Seen.Missed > 0 || len(s.Stable) == 0 {
		t.Fatalf("%+v", s)
	}
	goes := func(H float64) (far float64) {
		o := run(t, path, "--param", "order=0", "--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(1000*H))
		for _, x := range o.column(t, "left.x") {
			far = max(far, math.Abs(x))
		}
		return far
	}
	limit := s.Stable[len(s.Stable)-1].To
	grown := s.Points[slices.IndexFunc(s.Points, func(p analyze.Radius) bool { return p.Radius > 1.1 })].Step
	fine, calm, wild := goes(1e-3), goes(0.8*limit), goes(grown)
	t.Logf("stable %v, seen to grow at %g s: it goes as far as %g, at 0.8 of the limit as far as %g, and there %g", s.Stable, grown, fine, calm, wild)
	if calm > 2*fine || wild < 100*fine {
		t.Errorf("stable %v, seen to grow at %g s: it goes as far as %g, at 0.8 of the limit as far as %g, and there %g", s.Stable, grown, fine, calm, wild)
	}
	code, out := macrostep(t, append([]string{"analyze"}, args...)...)
	if code != 0 || !strings.Contains(out, "seen in runs: in ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	// Without time for them there are none, and that is told.
	r = analysis(t, append(args[:len(args)-1:len(args)-1], "1e-9")...)
	if s := strategy(t, r, "explicit", 0); s.Seen != nil || !strings.Contains(s.Why, "--runs") {
		t.Errorf("%+v", s)
	}
}

// A run tells by itself that its step is far too large, as it sees, and of no other.
func TestRunWatchesGrowth(t *testing.T) {
	for step, far := range map[string]bool{"0.005": false, "0.02": true} {
		o := complete(t, system(t, "quarter-car-b"), "--step-size", step, "--stop-time", "4")
		w := strings.Join(o.manifest.Warnings, "\n")
		if told := strings.Contains(w, "has grown by 1.2") && strings.Contains(w, "in every macro step of 0.02 s"); told != far {
			t.Errorf("steps of %s s: %s\n%s", step, w, o.output)
		}
	}
}

func TestAnalyzeRefusals(t *testing.T) {
	path, pictures := system(t, "quarter-car-b"), t.TempDir()
	if err := os.WriteFile(filepath.Join(pictures, "graph.svg"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{path, "--plot", pictures}, "graph.svg exists already; choose another name, or give --force"},
		{[]string{path, "--order", "9"}, "--order: 9 is not between 0 and 5"},
		{[]string{path, "--at", "-1"}, "--at -1 is before the start"},
		{[]string{path, "--from", "1", "--to", "0.1"}, "--from 1 is not below --to 0.1"},
		{[]string{path, "--step-size", "NaN"}, `--step-size: "NaN" is not a finite number`},
		{[]string{path, "--set", "wheel.nothing=1"}, "nothing"},
		{[]string{"nowhere.ssp"}, "nowhere.ssp"},
		{nil, "SYSTEM"},
	} {
		if code, out := macrostep(t, append([]string{"analyze"}, c.args...)...); code != 2 || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, out)
		}
	}
}

// A control loop of Dymola's FMUs: what is told to be stable settles, and what is told to be
// unstable does not, at 0.5, 0.8, 1.25 and 2 times the limits. FMUs of 20-sim take steps of their
// own; nothing is told of them.
func testRealAnalyze(t *testing.T) {
	path := pair(t)
	r := analysis(t, path, "--at", "0.3", "--tolerance", "1e-9", "--order", "1", "--runs", "0")
	hits := 0
	for _, c := range []struct {
		preset string
		order  int
	}{{"explicit", 0}, {"explicit", 1}, {"gauss-seidel", 1}} {
		s := strategy(t, r, c.preset, c.order)
		if len(s.Stable) == 0 {
			t.Fatalf("%s, order %d: nothing is stable", c.preset, c.order)
		}
		limit := s.Stable[0].To
		for _, factor := range []float64{0.5, 0.8, 1.25, 2} {
			H := factor * limit
			stable := false
			for _, within := range s.Stable {
				stable = stable || within.From <= H && H <= within.To
			}
			if H > s.Points[len(s.Points)-1].Step {
				continue // nothing is told of it
			}
			o := complete(t, path, "--algorithm", c.preset, "--param", fmt.Sprint("order=", c.order), "--step-size", fmt.Sprint(H),
				"--tolerance", "1e-9", "--stop-time", fmt.Sprint(max(4, 400*H)))
			w := o.column(t, "drivetrain.w")
			moves := 0.0
			for i := len(w) * 4 / 5; i < len(w)-1; i++ {
				moves = max(moves, math.Abs(w[i+1]-2*w[i]+w[i-1]))
			}
			t.Logf("%s, order %d, %.4g s: told stable %t, moves by %.2g in the end", c.preset, c.order, H, stable, moves)
			if settled := moves < 1e-6; settled != stable {
				t.Errorf("%s, order %d, %.4g s: told stable %t, moves by %.2g in the end", c.preset, c.order, H, stable, moves)
			} else {
				hits++
			}
		}
	}
	if hits < 10 {
		t.Errorf("%d hits", hits)
	}
	path = besideFMUs(t, "dampers.ssd", dampersDocument, "20sim", "MassSpringDamper1.fmu", "MassSpringDamper2.fmu")
	dampers := analysis(t, path, "--order", "1", "--at", "0.1", "--runs", "0")
	if s := strategy(t, dampers, "explicit", 0); s.Points != nil || !strings.Contains(s.Why, "MassSpringDamper") {
		t.Errorf("dampers: %+v", s)
	}
	// They take steps of 10 ms whatever they are asked. Where these fall in with the macro steps, what
	// is told of their multiples is what runs do.
	dampers = analysis(t, path, "--order", "0", "--step-size", "0.01", "--at", "0.32", "--to", "0.1")
	for _, c := range []struct {
		preset string
		stable int // multiples of 10 ms
	}{{"explicit", 1}, {"gauss-seidel", 5}, {"implicit", 6}} {
		s := strategy(t, dampers, c.preset, 0)
		if s.Multiples != 0.01 || len(s.Stable) != 1 || math.Abs(s.Stable[0].To-0.01*float64(c.stable)) > 1e-9 {
			t.Errorf("dampers, %s: %+v", c.preset, s)
			continue
		}
		for n := c.stable; n <= c.stable+1; n++ {
			o := complete(t, path, "--algorithm", c.preset, "--param", "order=0", "--step-size", fmt.Sprint(0.01*float64(n)), "--stop-time", fmt.Sprint(12*float64(n)))
			x := o.column(t, "one.x1")
			first, last := 0.0, 0.0
			for k, v := range x {
				switch third := 3 * k / len(x); third {
				case 1:
					first = max(first, math.Abs(v))
				case 2:
					last = max(last, math.Abs(v))
				}
			}
			grows := math.Pow(last/first, 3/float64(len(x)))
			t.Logf("dampers, %s, %g s: radius %.4f, grows by %.4f in the run", c.preset, 0.01*float64(n), s.Points[n-1].Radius, grows)
			if math.Abs(grows-s.Points[n-1].Radius) > 2e-3 {
				t.Errorf("dampers, %s, %g s: radius %.4f, grows by %.4f in the run", c.preset, 0.01*float64(n), s.Points[n-1].Radius, grows)
			}
		}
	}
}

// No power of the step is told of an error that is that of the motion which is compared with: in steps of
// half the size it is half as large, and in one analysis it does not depend on the step.
func testAnalyzeOneStepBelowReference(t *testing.T) {
	t.Parallel()
	r := analysis(t, system(t, "energy-oscillator"), "--order", "1", "--step-size", "1e-3", "--from", "1e-3", "--to", "2e-3")
	for k := range 2 {
		if l := strategy(t, r, "explicit", k).Local; l == nil || math.Abs(l.Growth-float64(k+1)) > 0.1 {
			t.Errorf("explicit, order %d: %+v", k, l)
		}
		if s := strategy(t, r, "implicit", k); s.Local != nil || !strings.Contains(s.WhyNoLocal, "does not grow with the step") {
			t.Errorf("implicit, order %d: %+v, %q", k, s.Local, s.WhyNoLocal)
		}
	}
}

// FMUs made by others of which models tell nothing, as they take steps of their own or are far from linear: what runs
// of the analysis show to be stable does not grow in runs at 0.5 and 0.8 times the limit, and what lies at 1.25 and
// 2 times it does, or fails, or jumps from step to step. With long tests, of two systems and more strategies.
func testRealRuns(t *testing.T) {
	type subject struct {
		name, path, output string
		args               []string
		strategies         []string // preset/order
	}
	dampers := subject{"dampers", besideFMUs(t, "dampers.ssd", dampersDocument, "20sim", "MassSpringDamper1.fmu", "MassSpringDamper2.fmu"), "one.x1",
		[]string{"--at", "0.1", "--order", "0", "--from", "4e-3", "--to", "0.04", "--runs", "60"}, []string{"explicit/0"}}
	systems, least := []subject{dampers}, 4
	if long.On {
		dampers.args = []string{"--at", "0.1", "--order", "1", "--runs", "120"}
		dampers.strategies = []string{"explicit/0", "explicit/1", "gauss-seidel/0", "gauss-seidel/1", "implicit/0", "implicit/1"}
		systems, least = []subject{dampers, {"crane", filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"), "KnuckleBoomCrane.p_Crane.f[2]",
			[]string{"--order", "1", "--step-size", "1e-3", "--from", "2e-4", "--to", "5e-3", "--runs", "90"},
			[]string{"explicit/1", "gauss-seidel/1", "implicit/0", "implicit/1"}}}, 28
	}
	hits, misses := 0, 0
	for _, c := range systems {
		r := analysis(t, append([]string{c.path}, c.args...)...)
		for _, name := range c.strategies {
			preset, k, _ := strings.Cut(name, "/")
			s := strategy(t, r, preset, int(k[0]-'0'))
			if s.Seen == nil || len(s.Stable) == 0 || s.Stable[0].From > 1.01*r.From {
				t.Errorf("%s, %s: stable %v; %s", c.name, name, s.Stable, s.Why)
				continue
			}
			limit := s.Stable[0].To
			if limit >= r.To*0.999 {
				t.Logf("%s, %s: no limit up to %.4g s", c.name, name, limit)
			}
			for _, factor := range []float64{0.5, 0.8, 1.25, 2} {
				within := func(from, to float64) bool { H := factor * limit; return from <= H && H <= to }
				told := slices.ContainsFunc(s.Stable, func(at analyze.Range) bool { return within(at.From, at.To) }) || factor < 1
				gap := slices.ContainsFunc(s.Gaps, func(at analyze.Gap) bool { return within(at.From/1.5, at.To*1.5) })
				if last := s.Points[len(s.Points)-1].Step; !told && (gap || factor*limit > last) {
					t.Logf("%-8s %-14s limit %.4g s, at %.4g of it nothing is told", c.name, name, limit, factor)
					continue
				}
				H := factor * limit
				args := []string{c.path, "--algorithm", preset, "--param", "order=" + k, "--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(0.1 + 2000*H)}
				if preset == "implicit" {
					args = append(args, "--param", "solver.tolerance=1e-9")
				}
				o := run(t, args...)
				growth, jumps := math.Inf(1), math.Inf(1)
				if o.code == 0 {
					growth, jumps = unsteady(o.column(t, c.output))
				}
				observed := growth < 1.5 && !(jumps > 0.5 && growth > 0.9) // jumps may die out
				verdict := "hit"
				if observed == told {
					hits++
				} else {
					misses++
					verdict = "MISS"
				}
				t.Logf("%-8s %-14s limit %.4g s, at %.4g of it (%.4g s): told stable %t, grows by %.3g over a third, jumps by %.2g: %s", c.name, name, limit, factor, H, told, growth, jumps, verdict)
			}
		}
	}
	t.Logf("%d hits, %d misses", hits, misses)
	if misses > 0 || hits < least {
		t.Errorf("%d hits, %d misses", hits, misses)
	}
}

// unsteady gives by how much a motion goes farther in the last third than in the one before, and how much of how
// far it goes changes from step to step, as root mean squares.
func unsteady(x []float64) (growth, jumps float64) {
	spread := func(x []float64) float64 {
		mean, sum := 0.0, 0.0
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for _, v := range x {
			sum += (v - mean) * (v - mean)
		}
		return math.Sqrt(sum / float64(len(x)))
	}
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

// most gives the largest magnitude.
func most(x []float64) (m float64) {
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}
