package fmuprobe_test

import (
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuprobe"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/internal/slavetest"
	"github.com/macrostep/macrostep/test/probe"
)

// lived returns a slave of the FMU life with these macros, at the start of the steps.
func lived(tb testing.TB, cache, capabilities string, macros []string, starts ...fmuslave.Value) *fmuslave.Slave {
	tb.Helper()
	return started(tb, fmuslave.Config{Name: "c", FMU: slavetest.Life(tb, probe.LifeCapabilities+capabilities, macros...),
		Inputs: []string{"u"}, Outputs: []string{"y"}, Starts: starts, Cache: &fmuprobe.Cache{Dir: cache}}, unitTime)
}

// What an FMU does after going back decides whether anything may rely on it (fmi2 59).
func TestVerifyRollback(t *testing.T) {
	const once = ` canBeInstantiatedOnlyOncePerProcess="true"`
	for _, c := range []struct {
		name           string
		more           string   // capabilities
		macros         []string // of the FMU
		atRest         bool     // its input is 0
		first, replays float64  // noise that is measured, ±1 %
		step           float64  // of the test; 0 = 0.01 s
		stop           float64  // of the experiment; 0 = 1 s
		wrong          string   // part of the error; "" = none
		unpromised     string   // part of it
		untested       string   // likewise
	}{
		{name: "honest"},
		{name: "honest, once per process", more: once, macros: []string{"A=1"}, untested: "(--isolate)"},
		{name: "needs the promise", macros: []string{"COMMIT"},
			unpromised: "y after step 11 of 0.01 s is 0.332192347 with true and 0.033 with false", untested: "its steps differ"},
		{name: "needs the promise, at rest", macros: []string{"COMMIT"}, atRest: true, unpromised: "y after step 11 of 0.01 s is 0.02", untested: "its steps differ"},
		{name: "needs the promise, forgets a state", macros: []string{"COMMIT", "FORGET"}, unpromised: "with false", untested: "its steps differ"},
		{name: "restarts", macros: []string{"RESTART=1e-5"}, first: 1e-5},
		{name: "goes another way at first", macros: []string{"OPENING=0.5"}},
		{name: "goes another way at first, in a short run", macros: []string{"OPENING=0.5"}, stop: 0.02},
		{name: "jitters", macros: []string{"JITTER=7e-4"}, first: 7e-4, replays: 7e-4},
		{name: "discards long steps", macros: []string{"COARSE=0.003"}, step: 0.0025},
		{name: "forgets a state", macros: []string{"FORGET"}, wrong: "relative difference"},
		{name: "forgets a state at rest", macros: []string{"FORGET"}, atRest: true, wrong: "y is 0 after"},
		{name: "forgets a state, once per process", more: once, macros: []string{"FORGET", "A=2"}, wrong: "y is"},
		{name: "does not go back", macros: []string{"STUCK"}, wrong: "y is"},
		{name: "noise without bound", macros: []string{"JITTER=0.5"}, wrong: "y is"},
		{name: "gives no state", macros: []string{"REFUSE"}, wrong: "fmi2GetFMUstate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lived(t, "", c.more, c.macros)
			u, step := 1.0, 0.01
			if c.atRest {
				u = 0
			}
			if c.step > 0 {
				step = c.step
			}
			must(t, s.SetInputs([]float64{u}))
			before := outputs(t, s)[0]
			e := unitTime
			e.Stop = cmp.Or(c.stop, e.Stop)
			r, err := s.VerifyRollback(t.Context(), e, 0.01)
			if c.wrong != "" {
				if !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "canGetAndSetFMUstate") || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%+v, %v; want … %s", r, err, c.wrong)
				}
				return
			}
			must(t, err)
			near := func(got, want float64) bool { return got >= 0.99*want && got <= 1.01*want }
			if !near(r.FirstTry, c.first) || !near(r.Replays, c.replays) || r.Step != step || r.Known {
				t.Errorf("%+v, want first %g, replays %g, step %g", r, c.first, c.replays, step)
			}
			if !strings.Contains(r.Unpromised, c.unpromised) || (r.Unpromised == "") != (c.unpromised == "") {
				t.Errorf("without the promise: %q, want %q", r.Unpromised, c.unpromised)
			}
			if !strings.Contains(r.Untested, c.untested) || (r.Untested == "") != (c.untested == "") {
				t.Errorf("untested: %q, want %q", r.Untested, c.untested)
			}
			opens := strings.HasPrefix(c.name, "goes another way at first")
			if strings.HasPrefix(r.AtStart, "y after step 1") != opens || (r.AtStart != "") != opens {
				t.Errorf("at the start: %q", r.AtStart)
			}
			// The run's instance is where it was.
			if after := outputs(t, s)[0]; after != before {
				t.Errorf("y is %g after the test and was %g", after, before)
			}
			must(t, s.SetInputs([]float64{u}))
			_, err = s.Step(t.Context(), 0, 0.001)
			must(t, err)
			want := 0.003 * u
			if opens {
				want += 0.5
			}
			if y := outputs(t, s)[0]; !near(y, want) {
				t.Errorf("y = %g after a step, want %g", y, want)
			}
		})
	}
}

// reading is a subject with these outputs.
type reading struct {
	fmuprobe.Subject
	info *master.Info
	y    []float64
}

func (r *reading) Info() *master.Info            { return r.info }
func (r *reading) Outputs(y []float64) error     { copy(y, r.y); return nil }
func (r *reading) Discrete(*master.Values) error { return nil }
func (r *reading) Watched(*master.Values) error  { return nil }

// A variable that has been infinite is still compared.
func TestCompareInfinite(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	r := &reading{info: &master.Info{Out: []master.Port{{Name: "y"}}}, y: make([]float64, 1)}
	for _, c := range []struct{ before, a, b, want float64 }{
		{inf, 2, 2, 0}, {inf, 2, 3, 1. / 3}, {nan, 2, 3, 1. / 3}, {0, inf, inf, 0}, {0, nan, nan, 0}, {0, inf, 3, inf}, {0, nan, 3, inf}, {0, inf, -inf, inf},
	} {
		compared := fmuprobe.Comparison{Of: r, Scale: []float64{1e-6}}
		var readings []fmuprobe.Reading
		for _, v := range []float64{c.before, c.a, c.b} {
			r.y[0] = v
			g, err := compared.Read()
			must(t, err)
			readings = append(readings, g)
		}
		if d := compared.Compare(readings[1:2], readings[2:], ""); d.Relative != c.want {
			t.Errorf("%g and %g after %g: %g, want %g", c.a, c.b, c.before, d.Relative, c.want)
		}
	}
}

// Measurements are kept by FMU, settings and step, and refusals are not. Nothing depends on the
// folder being usable or the file being sane.
func TestReplayCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	restarts := []string{"RESTART=1e-5"}
	s := lived(t, dir, "", restarts)
	verify := func(H float64, known bool) master.Replay {
		t.Helper()
		r, err := s.VerifyRollback(t.Context(), unitTime, H)
		must(t, err)
		if r.Known != known {
			t.Errorf("H = %g: known %v, want %v", H, r.Known, known)
		}
		return r
	}
	first, second := verify(0.01, false), verify(0.01, true)
	if second.Known = false; first != second {
		t.Errorf("measured %+v, kept %+v", first, second)
	}
	verify(0.02, false)
	verify(0.01, true)
	files, err := filepath.Glob(filepath.Join(dir, "replay", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, files %v", err, files)
	}
	good, err := os.ReadFile(files[0])
	must(t, err)
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "null": "null",
		"other version": strings.Replace(string(good), `"version": 5`, `"version": 99`, 1),
		"other FMU":     strings.Replace(string(good), "sha256:", "sha256:0", 1),
		"nonsense":      strings.ReplaceAll(string(good), `"step": 0.`, `"step": -0.`),
		"huge":          string(good) + strings.Repeat(" ", 1<<17),
	} {
		must(t, os.WriteFile(files[0], []byte(content), 0o600))
		verify(0.01, true) // it was read before
		s = lived(t, dir, "", restarts)
		t.Run(name, func(t *testing.T) { verify(0.01, false) })
	}
	s = lived(t, dir, "", restarts)
	verify(0.01, true) // the last one was written anew
	for k := range 40 {
		verify(1e-3*float64(k+20)+1e-7, false)
	}
	kept, err := os.ReadFile(files[0])
	must(t, err)
	if n := strings.Count(string(kept), `"kind": "rollback"`); n != 16 {
		t.Errorf("of 42 measurements %d are kept, and not the last 16", n)
	}
	// Runs that differ in the sizes of Real parameters share measurements, others do not.
	for _, c := range []struct {
		starts []fmuslave.Value
		known  bool
	}{
		{[]fmuslave.Value{{Variable: "k", Real: 1}}, false}, {[]fmuslave.Value{{Variable: "k", Real: 2}}, true},
		{[]fmuslave.Value{{Variable: "k", Real: 2}, {Variable: "k", Real: 3}}, true},
		{[]fmuslave.Value{{Variable: "k"}}, false},
		{[]fmuslave.Value{{Variable: "n", Integer: 2}}, false}, {[]fmuslave.Value{{Variable: "n", Integer: 4}}, false},
	} {
		s = lived(t, dir, "", restarts, c.starts...)
		verify(0.01, c.known)
	}
	blocked := filepath.Join(t.TempDir(), "a file where the folder should be")
	must(t, os.WriteFile(blocked, nil, 0o600))
	s = lived(t, blocked, "", []string{"RESTART=2e-5"})
	verify(0.01, false)
	verify(0.01, true)
	s = lived(t, blocked, "", []string{"RESTART=2e-5"})
	verify(0.01, false)

	s = lived(t, t.TempDir(), "", []string{"COMMIT"})
	verify(0.01, false)
	verify(0.01, true)

	dir = t.TempDir()
	s = lived(t, dir, "", []string{"FORGET"})
	for range 2 {
		if _, err := s.VerifyRollback(t.Context(), unitTime, 0.01); err == nil {
			t.Error("an FMU that forgets a state is accepted")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "replay")); err == nil {
		t.Error("a refusal was kept")
	}
}
