package fmuslave_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
)

// The master reports given values that an FMU does not keep, of every type, and parameters whose
// start values differ from the documented ones, but not start values of driven inputs.
func TestReadBack(t *testing.T) {
	given := []fmuslave.Value{
		{Variable: "k", Real: 9}, {Variable: "mode", Integer: 3, String: "high"}, {Variable: "n", Integer: 8}, {Variable: "on", Boolean: true},
		{Variable: "text", String: "uvwxyz"}, {Variable: "u", Real: 4},
	}
	for _, c := range []struct {
		name, caps string
		macros     []string
		starts     []fmuslave.Value
		want       []string
	}{
		{"kept", "", nil, given, nil},
		{"not kept", "", []string{"CLIP"}, given, []string{
			"c.k was set to 9 and is 5 after initialisation: the FMU does not keep the value; remove it, or set what it is computed from",
			"c.mode was set to high (3) and is low (1) after initialisation: the FMU does not keep the value; remove it, or set what it is computed from",
			"c.on was set to true and is false after initialisation: the FMU does not keep the value; remove it, or set what it is computed from",
			`c.text was set to "uvwxyz" and is "uvw" after initialisation: the FMU does not keep the value; remove it, or set what it is computed from`,
		}},
		{"of the FMU's own document", `canBeInstantiatedOnlyOncePerProcess="true"`, []string{"CLIP"}, nil, []string{
			`c (life.fmu): start values differ from modelDescription.xml: mode is low (1) (documented: high (3)), ` +
				`on is false (documented: true), text is "abc" (documented: "abcdef"); the run uses the values of the FMU; choose others with --set, or all documented ones with --quirk c=setStarts`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lived(t, fmuslave.Config{FMU: lifeFMU(t, c.caps, c.macros...), Starts: c.starts})
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
	const mute, once = "check its effect in the results", `canBeInstantiatedOnlyOncePerProcess="true"`
	for _, c := range []struct {
		name      string
		caps      string
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
		{name: "get, error, only once per process", caps: once, macros: []string{"MUTE=fmi2Error", "RESET"}, instances: 1},
		{name: "get, warning", macros: []string{"MUTE=fmi2Warning"}, instances: 1},
		{name: "get of what was given, discarded", macros: []string{"MUTE=fmi2Discard"}, starts: given, notes: []string{mute, mute}, instances: 1},
		{name: "get of what was given, error", macros: []string{"MUTE=fmi2Error"}, starts: given, notes: []string{mute, mute}, instances: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			var worst fmi.Status
			var trace bytes.Buffer
			s := newSlave(t, fmuslave.Config{Name: "c", FMU: lifeFMU(t, c.caps, c.macros...), Inputs: []string{"u"}, Outputs: []string{"y"}, Starts: c.starts, Quirks: c.quirks,
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
		for name, want := range map[string]string{"noterminate": `did you mean "noTerminate"?`, "noroll": `did you mean "noRollback"?`, "xyz": "noTerminate, "} {
			if _, err := fmuslave.ParseQuirk(name); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
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
	for name, macro := range map[string]string{"inputsBeforeInit": "DIVIDE", "stopTime": "STOP", "noTerminate": "BAD_END"} {
		t.Run(name, func(t *testing.T) {
			f := lifeFMU(t, "", macro)
			quirk, err := fmuslave.ParseQuirk(name)
			must(t, err)
			for quirks, works := range map[fmuslave.Quirk]bool{0: false, quirk: true} {
				s := newSlave(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Quirks: quirks})
				err := s.EnterInit(t.Context(), master.Experiment{Stop: 1, StopKnown: true})
				if err == nil {
					err = errors.Join(s.EvalInit(), s.ExitInit(), s.Terminate())
				}
				if (err == nil) != works {
					t.Errorf("%v: %v", quirks.Names(), err)
				}
			}
		})
	}
}
