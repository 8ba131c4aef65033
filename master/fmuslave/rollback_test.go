package fmuslave_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/test/probe"
)

// lifeFMU returns an FMU compiled from sources with these macros.
func lifeFMU(tb testing.TB, capabilities string, macros ...string) *fmi.FMU {
	tb.Helper()
	path, err := probe.Sources(tb.TempDir(), "life", capabilities, macros...)
	must(tb, err)
	f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: true})
	must(tb, err)
	tb.Cleanup(func() { must(tb, f.Close()) })
	return f
}

// initialised returns a slave after its initialisation with the start values.
func initialised(tb testing.TB, c fmuslave.Config) *fmuslave.Slave {
	tb.Helper()
	if c.Name == "" {
		c.Name = "c"
	}
	c.Inputs, c.Outputs = []string{"u"}, []string{"y"}
	s := newSlave(tb, c)
	must(tb, s.EnterInit(tb.Context(), master.Experiment{Stop: 1}))
	must(tb, s.EvalInit())
	must(tb, s.ExitInit())
	return s
}

// What an FMU does when it goes back decides whether anything may rely on it
// (fmi2 59).
func TestVerifyRollback(t *testing.T) {
	const once = ` canBeInstantiatedOnlyOncePerProcess="true"`
	for _, c := range []struct {
		name           string
		more           string // capabilities
		macros         []string
		u              float64
		first, replays float64 // noise to be found, ±1%
		step           float64
		wrong          []string // parts of the error; none = it is fine
		unpromised     string   // part of it
	}{
		{name: "honest", u: 1, step: 0.01},
		{name: "honest, once per process", more: once, macros: []string{"A=1"}, u: 1, step: 0.01, unpromised: "(--isolate)"},
		{name: "needs the promise", macros: []string{"COMMIT"}, u: 1, step: 0.01, unpromised: "y after step 11 of 0.01 s is 0.332192347 with true and 0.033 with false"},
		{name: "needs the promise, at rest", macros: []string{"COMMIT"}, step: 0.01, unpromised: "y after step 11 of 0.01 s is 0.02"},
		{name: "needs the promise, restarts", macros: []string{"COMMIT", "RESTART=1e-5"}, u: 1, first: 1e-5, step: 0.01, unpromised: "with false"},
		{name: "needs the promise, forgets a state", macros: []string{"COMMIT", "FORGET"}, u: 1, wrong: []string{"canGetAndSetFMUstate", "y is 0."}},
		{name: "restarts", macros: []string{"RESTART=1e-5"}, u: 1, first: 1e-5, step: 0.01},
		{name: "goes another way at first", macros: []string{"OPENING=0.5"}, u: 1, step: 0.01},
		{name: "jitters", macros: []string{"JITTER=7e-4"}, u: 1, first: 7e-4, replays: 7e-4, step: 0.01},
		{name: "discards long steps", macros: []string{"COARSE=0.003"}, u: 1, step: 0.0025},
		{name: "forgets a state", macros: []string{"FORGET"}, u: 1, wrong: []string{"canGetAndSetFMUstate", "y is 0.", "relative difference"}},
		{name: "forgets a state at rest", macros: []string{"FORGET"}, u: 0, wrong: []string{"y is 0 after"}},
		{name: "forgets a state, once per process", more: once, macros: []string{"FORGET", "A=2"}, u: 1, wrong: []string{"y is"}},
		{name: "does not go back", macros: []string{"STUCK"}, u: 1, wrong: []string{"y is"}},
		{name: "noise without bound", macros: []string{"JITTER=0.5"}, u: 1, wrong: []string{"y is"}},
		{name: "gives no state", macros: []string{"REFUSE"}, u: 1, wrong: []string{"fmi2GetFMUstate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := initialised(t, fmuslave.Config{FMU: lifeFMU(t, probe.LifeCapabilities+c.more, c.macros...)})
			must(t, s.SetInputs([]float64{c.u}))
			before := outputOf(t, s)
			r, err := s.VerifyRollback(t.Context(), master.Experiment{Stop: 1}, 0.01)
			if len(c.wrong) > 0 {
				if err == nil {
					t.Fatalf("accepted with %+v", r)
				}
				for _, part := range c.wrong {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("no %q in %q", part, err)
					}
				}
				if !errors.Is(err, master.ErrCapability) {
					t.Errorf("%v is no missing capability", err)
				}
				return
			}
			must(t, err)
			near := func(got, want float64) bool { return got >= 0.99*want && got <= 1.01*want }
			if !near(r.FirstTry, c.first) || !near(r.Replays, c.replays) || r.Step != c.step || r.Known {
				t.Errorf("%+v, want first %g, replays %g, step %g", r, c.first, c.replays, c.step)
			}
			if !strings.Contains(r.Unpromised, c.unpromised) || (r.Unpromised == "") != (c.unpromised == "") {
				t.Errorf("without the promise: %q, want %q", r.Unpromised, c.unpromised)
			}
			if other := strings.HasPrefix(r.AtStart, "y after step 1"); other != (c.name == "goes another way at first") || !other && r.AtStart != "" {
				t.Errorf("at the start: %q", r.AtStart)
			}
			// The run's instance is where it was.
			if after := outputOf(t, s); after != before {
				t.Errorf("y is %g after the test and was %g", after, before)
			}
			must(t, s.SetInputs([]float64{c.u}))
			if _, err := s.Step(t.Context(), 0, 0.001); err != nil {
				t.Error(err)
			}
			want := 0.003 * c.u
			if r.AtStart != "" {
				want += 0.5
			}
			if y := outputOf(t, s); y < 0.99*want || y > 1.01*want {
				t.Errorf("y = %g after a step, want %g", y, want)
			}
		})
	}
}

func outputOf(tb testing.TB, s *fmuslave.Slave) float64 {
	tb.Helper()
	var y [1]float64
	must(tb, s.Outputs(y[:]))
	return y[0]
}

// What was measured is kept by FMU and step; nothing depends on the place being
// usable or the file being sane.
func TestReplayCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	s := initialised(t, fmuslave.Config{FMU: lifeFMU(t, probe.LifeCapabilities, "RESTART=1e-5"), Cache: dir})
	verify := func(H float64, known bool) master.Replay {
		t.Helper()
		r, err := s.VerifyRollback(t.Context(), master.Experiment{Stop: 1}, H)
		must(t, err)
		if r.Known != known {
			t.Errorf("H = %g: known %v, want %v", H, r.Known, known)
		}
		return r
	}
	first := verify(0.01, false)
	second := verify(0.01, true)
	if second.Known = false; first != second {
		t.Errorf("measured %+v, kept %+v", first, second)
	}
	verify(0.02, false)
	verify(0.01, true)
	files, err := filepath.Glob(filepath.Join(dir, "replay", "*"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	good, err := os.ReadFile(files[0])
	must(t, err)
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "null": "null", "other version": strings.Replace(string(good), `"version": 4`, `"version": 99`, 1),
		"other FMU": strings.Replace(string(good), "sha256:", "sha256:0", 1), "nonsense": strings.ReplaceAll(string(good), `"step": 0.`, `"step": -0.`),
		"huge": string(good) + strings.Repeat(" ", 1<<17),
	} {
		must(t, os.WriteFile(files[0], []byte(content), 0o600))
		t.Run(name, func(t *testing.T) { verify(0.01, false) })
	}
	verify(0.01, true) // the last one was written anew
	for k := range 40 {
		verify(1e-3*float64(k+20)+1e-7, false)
	}
	kept, err := os.ReadFile(files[0])
	must(t, err)
	if n := strings.Count(string(kept), `"kind": "rollback"`); n != 16 {
		t.Errorf("of 42 measurements %d are kept, and not the last 16", n)
	}
	// Runs that differ in the sizes of their parameters share it, others do not.
	for _, c := range []struct {
		starts []fmuslave.Value
		known  bool
	}{
		{[]fmuslave.Value{{Variable: "k", Real: 1}}, false}, {[]fmuslave.Value{{Variable: "k", Real: 2}}, true},
		{[]fmuslave.Value{{Variable: "k", Real: 2}, {Variable: "k", Real: 3}}, true},
		{[]fmuslave.Value{{Variable: "k"}}, false}, {[]fmuslave.Value{{Variable: "n", Integer: 2}}, false}, {[]fmuslave.Value{{Variable: "n", Integer: 4}}, false},
	} {
		s = initialised(t, fmuslave.Config{FMU: lifeFMU(t, probe.LifeCapabilities, "RESTART=1e-5"), Starts: c.starts, Cache: dir})
		verify(0.01, c.known)
	}
	// A file where the folder should be.
	blocked := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(blocked, nil, 0o600))
	s = initialised(t, fmuslave.Config{FMU: lifeFMU(t, probe.LifeCapabilities, "RESTART=2e-5"), Cache: blocked})
	verify(0.01, false)
	verify(0.01, false)
}

// A refusal is not kept: it is found again each time.
func TestRefusalNotKept(t *testing.T) {
	dir := t.TempDir()
	s := initialised(t, fmuslave.Config{FMU: lifeFMU(t, probe.LifeCapabilities, "FORGET"), Cache: dir})
	for range 2 {
		if _, err := s.VerifyRollback(t.Context(), master.Experiment{Stop: 1}, 0.01); err == nil {
			t.Error("accepted")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "replay")); err == nil {
		t.Error("something was kept")
	}
}

// Given values that an FMU does not keep are told, of every kind, and parameters that
// it starts with other values than it documents; those of driven inputs are not.
func TestReadBack(t *testing.T) {
	given := []fmuslave.Value{
		{Variable: "k", Real: 9}, {Variable: "mode", Integer: 3}, {Variable: "n", Integer: 8}, {Variable: "on", Boolean: true},
		{Variable: "text", String: "uvwxyz"}, {Variable: "u", Real: 4},
	}
	for _, c := range []struct {
		name   string
		macros []string
		starts []fmuslave.Value
		want   []string
	}{
		{"kept", nil, given, nil},
		{"not kept", []string{"CLIP"}, given, []string{
			"c.k was set to 9 and is 5 after initialisation: the FMU does not keep the value",
			"c.mode was set to high (3) and is low (1) after initialisation: the FMU does not keep the value",
			"c.on was set to true and is false after initialisation: the FMU does not keep the value",
			`c.text was set to "uvwxyz" and is "uvw" after initialisation: the FMU does not keep the value`,
		}},
		{"of the FMU's own document", []string{"CLIP"}, nil, []string{
			`c (life.fmu): of its parameters and free inputs the FMU starts 3 with another value than modelDescription.xml documents: mode is low (1) (documented: high (3)), ` +
				`on is false (documented: true), text is "abc" (documented: "abcdef"); the run uses the FMU's own values; set those that should differ, or have all documented ones set with the quirk setStarts`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := initialised(t, fmuslave.Config{FMU: lifeFMU(t, probe.LifeCapabilities, c.macros...), Starts: c.starts})
			if got := s.Notes(); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// An FMU that refuses what nobody asked for runs: no documented start is set, and a
// parameter that cannot be read is neither an error nor a warning (fmi2 42). Where the
// refusal is an error, the FMU begins anew, with its inputs as they were.
func TestRefusesStarts(t *testing.T) {
	given := []fmuslave.Value{{Variable: "k", Real: 9}, {Variable: "mode", Integer: 1}}
	const mute = "the FMU does not tell whether it keeps the value"
	for _, c := range []struct {
		name      string
		macros    []string
		starts    []fmuslave.Value
		quirks    fmuslave.Quirk
		refused   bool
		notes     []string
		instances int
	}{
		{name: "set", macros: []string{"LOCKED"}, instances: 1},
		{name: "set, as asked", macros: []string{"LOCKED"}, quirks: fmuslave.SetStarts, refused: true},
		{name: "get, discarded", macros: []string{"MUTE=fmi2Discard"}, instances: 1},
		{name: "get, error", macros: []string{"MUTE=fmi2Error"}, instances: 4},
		{name: "get, warning", macros: []string{"MUTE=fmi2Warning"}, instances: 1},
		{name: "get of what was given, discarded", macros: []string{"MUTE=fmi2Discard"}, starts: given, notes: []string{mute, mute}, instances: 1},
		{name: "get of what was given, error", macros: []string{"MUTE=fmi2Error"}, starts: given, notes: []string{mute, mute}, instances: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			var worst fmi.Status
			var trace bytes.Buffer
			s := newSlave(t, fmuslave.Config{Name: "c", FMU: lifeFMU(t, "", c.macros...), Inputs: []string{"u"}, Outputs: []string{"y"}, Starts: c.starts, Quirks: c.quirks,
				Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace), Log: func(m fmi.LogMessage) { worst = max(worst, m.Status) }}})
			err := s.EnterInit(t.Context(), master.Experiment{})
			if c.refused != (err != nil) {
				t.Fatal(err)
			}
			if c.refused {
				return
			}
			must(t, s.SetInputs([]float64{3}))
			must(t, s.EvalInit())
			must(t, s.ExitInit())
			notes := s.Notes()
			if len(notes) != len(c.notes) {
				t.Errorf("notes %q", notes)
			}
			for k, want := range c.notes {
				if k < len(notes) && !strings.Contains(notes[k], want) {
					t.Errorf("note %q, want %q", notes[k], want)
				}
			}
			if len(c.starts) == 0 && worst > fmi.StatusOK {
				t.Errorf("what the FMU logs when it is asked is shown as %v", worst)
			}
			if n := strings.Count(trace.String(), "fmi2Instantiate"); n != c.instances {
				t.Errorf("%d instances, want %d", n, c.instances)
			}
			must(t, s.SetInputs([]float64{3}))
			if _, err := s.Step(t.Context(), 0, 0.5); err != nil {
				t.Fatal(err)
			}
			k := 2.0
			if c.starts != nil {
				k = 9
			}
			if y := outputs(t, s)[0]; y != 0.5*k*3+0.5*3 {
				t.Errorf("y is %g", y)
			}
		})
	}
}

func TestQuirks(t *testing.T) {
	t.Run("names", func(t *testing.T) {
		var all fmuslave.Quirk
		for _, q := range fmuslave.Quirks() {
			if got, err := fmuslave.ParseQuirk(q.Name); err != nil || got != q.Quirk || q.Doc == "" || all&got != 0 {
				t.Errorf("%s: %v, %v", q.Name, got, err)
			}
			all |= q.Quirk
		}
		if names := all.Names(); len(names) != len(fmuslave.Quirks()) || names[0] != "chdirOnLoad" {
			t.Errorf("names %v", names)
		}
		if _, err := fmuslave.ParseQuirk("noterminate"); err == nil || !strings.Contains(err.Error(), "noTerminate, ") {
			t.Errorf("%v", err)
		}
	})
	t.Run("capabilities", func(t *testing.T) {
		const all = `canHandleVariableCommunicationStepSize="true" canInterpolateInputs="true" canGetAndSetFMUstate="true" canSerializeFMUstate="true" providesDirectionalDerivative="true"`
		f := lifeFMU(t, all)
		for _, c := range []struct {
			quirks fmuslave.Quirk
			want   master.Caps
		}{
			{0, master.Caps{VariableStep: true, InputDerivatives: true, SaveState: true, SerializeState: true, DirectionalDerivative: true}},
			{fmuslave.ConstantH | fmuslave.NoRollback | fmuslave.NoInputDerivatives | fmuslave.NoDirectionalDerivatives, master.Caps{}},
		} {
			s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: f, Quirks: c.quirks})
			must(t, err)
			if s.Info().Caps != c.want {
				t.Errorf("%v: %+v", c.quirks.Names(), s.Info().Caps)
			}
		}
	})
	t.Run("ignoreInitialUnknowns", func(t *testing.T) {
		for quirks, want := range map[fmuslave.Quirk]int{0: 0, fmuslave.IgnoreInitialUnknowns: 1} {
			s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: lifeFMU(t, ""), Inputs: []string{"u"}, Outputs: []string{"y"}, Quirks: quirks})
			must(t, err)
			if got := len(s.Info().Init.On[0]); got != want || len(s.Info().Step.On[0]) != 0 {
				t.Errorf("%v: y depends on %d inputs", quirks.Names(), got)
			}
		}
	})
	t.Run("inputsBeforeInit", func(t *testing.T) {
		f := lifeFMU(t, "", "DIVIDE")
		for quirks, works := range map[fmuslave.Quirk]bool{0: false, fmuslave.InputsBeforeInit: true} {
			s := newSlave(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Quirks: quirks})
			if err := s.EnterInit(t.Context(), master.Experiment{}); (err == nil) != works {
				t.Errorf("%v: %v", quirks.Names(), err)
			}
		}
	})
	t.Run("stopTime", func(t *testing.T) {
		f := lifeFMU(t, "", "STOP")
		for quirks, works := range map[fmuslave.Quirk]bool{0: false, fmuslave.StopTime: true} {
			s := newSlave(t, fmuslave.Config{Name: "c", FMU: f, Quirks: quirks})
			if err := s.EnterInit(t.Context(), master.Experiment{Stop: 1, StopKnown: true}); (err == nil) != works {
				t.Errorf("%v: %v", quirks.Names(), err)
			}
		}
	})
	t.Run("noTerminate", func(t *testing.T) {
		f := lifeFMU(t, "", "BAD_END")
		for quirks, works := range map[fmuslave.Quirk]bool{0: false, fmuslave.NoTerminate: true} {
			if err := initialised(t, fmuslave.Config{FMU: f, Quirks: quirks}).Terminate(); (err == nil) != works {
				t.Errorf("%v: %v", quirks.Names(), err)
			}
		}
	})
}
