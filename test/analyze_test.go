package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/cmplx"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/oracle"
)

// analysis returns the report on a system, made without a limit of time that matters.
func analysis(t testing.TB, args ...string) *analyze.Report {
	t.Helper()
	cmd := exec.Command(program, append([]string{"analyze", "--json", "--budget", "600"}, args...)...)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	r := &analyze.Report{}
	if err == nil {
		err = json.Unmarshal(out, r)
	}
	if err != nil {
		t.Fatalf("analyze %v: %v\n%s", args, err, out)
	}
	return r
}

// flags returns the arguments of run for a setting.
func flags(t *analyze.Trial) []string {
	args := []string{"--algorithm", t.Algorithm, "--step-size", strconv.FormatFloat(t.Step, 'g', -1, 64)}
	for key, value := range t.Params {
		args = append(args, "--param", key+"="+value)
	}
	return args
}

// beside returns how far a run of a system is from one with much finer steps: the root mean square over the rows, relative to that of the
// motion, of an output.
func beside(t testing.TB, path, output string, setting, fine []string) float64 {
	t.Helper()
	a, b := complete(t, append(setting, path)...), complete(t, append(fine, path)...)
	x, y, at, times := a.column(t, output), b.column(t, output), b.column(t, "time"), a.column(t, "time")
	off, mean, motion := 0.0, 0.0, 0.0
	var want []float64
	for _, now := range times {
		i := min(max(1, slices.IndexFunc(at, func(t float64) bool { return t >= now })), len(at)-1)
		want = append(want, y[i-1]+(y[i]-y[i-1])*(now-at[i-1])/(at[i]-at[i-1]))
		mean += want[len(want)-1] / float64(len(times))
	}
	for i, w := range want {
		off, motion = math.Hypot(off, x[i]-w), math.Hypot(motion, w-mean)
	}
	return off / motion
}

// The error of the present setting and that of the recommended one are those of runs beside much finer ones, and the recommendation
// keeps what was asked for, costs less or has a smaller error.
func TestAnalyze(t *testing.T) {
	t.Parallel()
	const alike = 1.5 // factor
	take := long.Sample(3)
	for _, c := range []struct {
		demo, output string
		fine, args   []string
	}{
		{"quarter-car-a", "wheel.F_c", []string{"--step-size", "1e-4"}, nil},
		{"quarter-car-b", "wheel.v_w", []string{"--step-size", "1e-4"}, []string{"--step-size", "0.002", "--error", "2%"}},
		{"two-mass-ff", "coupling.F", []string{"--step-size", "5e-5"}, nil},
		{"two-mass-dd", "mass1.x", []string{"--step-size", "5e-5"}, []string{"--step-size", "0.05", "--stop-time", "2"}},
		{"corrector-oscillator-blackbox", "one.v", []string{"--step-size", "1e-5", "--algorithm", "gauss-seidel"}, []string{"--step-size", "2e-4"}},
	} {
		if !take() {
			continue
		}
		t.Run(c.demo, func(t *testing.T) {
			t.Parallel()
			path := system(t, c.demo)
			shared := []string{}
			if at := slices.Index(c.args, "--stop-time"); at >= 0 {
				shared = c.args[at : at+2]
			}
			fine := slices.Concat([]string{"--algorithm", "implicit", "--param", "order=1"}, c.fine, shared)
			if strings.Contains(c.demo, "blackbox") {
				fine = slices.Concat([]string{"--param", "order=1"}, c.fine, shared)
			}
			r := analysis(t, append(c.args, path)...)
			if r.Ended != "" || r.Recommended == nil {
				t.Fatalf("%s; recommended %+v", r.Ended, r.Recommended)
			}
			if c.demo == "two-mass-ff" { // x'' = -1000 x - 10 x', of both masses alike
				const rate, damping = -5.0, 0.15811388
				m := r.Motion.Mode
				if frequency := math.Sqrt(1000-25) / (2 * math.Pi); m == nil || math.Abs(m.Frequency-frequency) > 1e-3*frequency || math.Abs(m.Rate-rate) > 1e-3*-rate ||
					math.Abs(m.Damping-damping) > 1e-3*damping {
					t.Errorf("%+v: %+v", r.Motion, m)
				}
			}
			for _, trial := range []*analyze.Trial{&r.Present, r.Recommended} {
				got := beside(t, path, trial.Of, append(flags(trial), shared...), fine)
				if t.Logf("%s, %s, %.4g s: %.4g of %s, got %.4g", trial.Algorithm, trial.Order(), trial.Step, *trial.Error, trial.Of, got); got > alike**trial.Error ||
					*trial.Error > alike*got+0.2*r.Asked {
					t.Errorf("%+v: the error of %s is %.3g, not %.3g", trial, trial.Of, got, *trial.Error)
				}
			}
			if p, b := &r.Present, r.Recommended; *b.Bound > r.Asked*(1+1e-9) || p.Usable && *p.Error <= r.Asked && b.FMUSteps > 0.9*p.FMUSteps {
				t.Errorf("asked for %g, present %+v, recommended %+v", r.Asked, p, b)
			}
		})
	}
}

// run --accuracy runs a setting that has it, by runs with far smaller steps, keeps what is given, and fails where there is none.
func TestAccuracy(t *testing.T) {
	t.Parallel()
	path := system(t, "quarter-car-b")
	fine := []string{"--algorithm", "implicit", "--param", "order=1", "--step-size", "1e-4"}
	for _, c := range []struct {
		args                    []string
		algorithm, order, where string // "" = any
	}{
		{[]string{"2%"}, "", "", ""}, {[]string{"2%", "--algorithm", "gauss-seidel"}, "gauss-seidel", "", ""},
		{[]string{"2%", "--param", "order=1"}, "", "1", ""}, {[]string{"3%:chassis.z_c"}, "", "", "chassis.z_c"},
	} {
		args := append([]string{path, "--budget", "600", "--accuracy"}, c.args...)
		o := complete(t, args...)
		m := o.manifest
		found := flags(&analyze.Trial{Algorithm: m.Algorithm, Params: m.Parameters, Step: m.StepSize.Value})
		limit, _ := strconv.ParseFloat(c.args[0][:1], 64)
		if off := beside(t, path, m.Error.Where, found, fine); off > limit/100 || *m.Error.Worst > limit/100 || off < *m.Error.Worst/2 ||
			c.algorithm != "" && m.Algorithm != c.algorithm || c.order != "" && m.Parameters["order"] != c.order || c.where != "" && m.Error.Where != c.where {
			t.Errorf("%v: %s is %.3g off, told %+v, step %+v", args, found, off, m.Error, m.StepSize)
		}
	}
	at := filepath.Join(t.TempDir(), "checkpoint")
	whole := complete(t, path, "--accuracy", "2%", "--budget", "600", "--checkpoint", "1", at)
	resumed := run(t, "--resume", at, "--stop-time", "5")
	if resumed.is(t, 0); resumed.manifest.Algorithm != whole.manifest.Algorithm || resumed.manifest.StepSize.Value != whole.manifest.StepSize.Value ||
		!maps.Equal(resumed.manifest.Parameters, whole.manifest.Parameters) {
		t.Errorf("resumed with %s, %v, %+v", resumed.manifest.Algorithm, resumed.manifest.Parameters, resumed.manifest.StepSize)
	}
	run(t, "--resume", at, "--stop-time", "5", "--accuracy", "2%").is(t, 2, "leave out --accuracy")
	o := run(t, path, "--accuracy", "0.1%", "--step-size", "0.01", "--budget", "600")
	if o.is(t, 1, "no setting with an error of 0.1 % was found"); o.manifest.StepSize.Value != 0.01 || o.manifest.Status != "complete" {
		t.Errorf("%+v, %s", o.manifest.StepSize, o.manifest.Status)
	}
	_, text := macrostep(t, "run", path, "--accuracy", "2%", "--step-size", "0.002", "--budget", "600", "--output", filepath.Join(t.TempDir(), "results.csv"))
	if !strings.Contains(text, "\nto keep   macrostep ssp set "+path+" --algorithm ") || !strings.Contains(text, " FMU steps)\n") {
		t.Error(text)
	}
	run(t, path, "--accuracy", "1%", "--check").is(t, 2, "leave out --check")
	run(t, path, "--accuracy", "1%:chassis.z").is(t, 2, `did you mean "chassis.z_c"?`)
}

// The limit of stability of a strategy lies between the two steps of the report: that of the independent propagation matrix (schweizer), and
// those of sadjina, 53.2 ms and 11.23 ms.
func TestAnalyzeLimits(t *testing.T) {
	t.Parallel()
	type limit struct {
		name string
		args []string
		at   float64 // s
	}
	cases := []limit{{"quarter-car-a", []string{system(t, "quarter-car-a"), "--to", "0.2"}, 53.2e-3},
		{"quarter-car-b", []string{system(t, "quarter-car-b"), "--to", "0.2"}, 11.23e-3}}
	for _, decomposition := range []string{"ff", "fd", "dd"} {
		for order := range 2 {
			radius := func(H float64) float64 {
				s := oracle.Scheme{Decomposition: decomposition, Order: order}
				return cmplx.Abs(oracle.Eigenvalues(oracle.Propagation(uneven, s, H))[0])
			}
			low, high := 1e-4, 1e-4
			for ; radius(high) <= 1 && high < 1; high *= 1.02 {
				low = high
			}
			if radius(low) > 1 || high >= 1 { // unstable at all steps, or at none
				continue
			}
			cases = append(cases, limit{fmt.Sprintf("%s, order %d", decomposition, order), append(twoMassArgs(t, uneven, decomposition), "--algorithm", "explicit",
				"--param", fmt.Sprint("order=", order), "--step-size", fmt.Sprint(low/4), "--stop-time", fmt.Sprint(3000*low)), low})
		}
	}
	if len(cases) < 5 {
		t.Errorf("%d cases", len(cases))
	}
	take := long.Sample(3)
	for _, c := range cases {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := analysis(t, c.args...)
			if t.Logf("%.4g s: stable %+v, usable %+v", c.at, r.Stable, r.Usable); !(r.Stable.To <= c.at*1.02 && c.at <= r.Stable.Not*1.02) || r.Usable.To > r.Stable.To {
				t.Errorf("the limit is %.4g s, the report %+v, %+v", c.at, r.Stable, r.Usable)
			}
		})
	}
}

// A system that grows by itself is not unstable, and no setting cures it.
func TestAnalyzeGrowth(t *testing.T) {
	t.Parallel()
	r := analysis(t, system(t, "quarter-car-b"), "--set", "chassis.d_c=-20", "--algorithm", "gauss-seidel", "--step-size", "1e-4", "--stop-time", "10")
	if r.Verdict.State != analyze.Usable || r.Reference.Grows == "" || r.Present.Grows == "" || !strings.Contains(r.Verdict.Text, "the system itself grows") {
		t.Errorf("%+v, reference %+v", r.Verdict, r.Reference)
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

// The error of a third-party system is that of a run beside one with far smaller steps.
func testRealAnalyze(t *testing.T) {
	path := filepath.Join(*realDir, "systems", "libcosim", "quarter_truck", "OspSystemStructure.xml")
	stop := []string{"--stop-time", "2"}
	r := analysis(t, append(stop, path, "--algorithm", "explicit", "--step-size", "0.002")...)
	fine := append(stop, "--algorithm", "gauss-seidel", "--step-size", "1e-4")
	if off := beside(t, path, r.Present.Of, append(flags(&r.Present), stop...), fine); off > 1.5**r.Present.Error || *r.Present.Error > 1.5*off {
		t.Errorf("%s is %.3g off, not %.3g", r.Present.Of, off, *r.Present.Error)
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
