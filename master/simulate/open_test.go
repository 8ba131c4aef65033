package simulate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/test/probe"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Options whose zero value is left open a system, whatever its FMU logs, and instantiate, inspect and run it.
func TestZeroOptions(t *testing.T) {
	// It logs where it was loaded.
	path, err := probe.Sources(t.TempDir(), "talker", probe.LifeCapabilities, "FOLDER")
	must(t, err)
	var zero simulate.OpenOptions
	zero.Compile = true
	run := func(sys *simulate.System, err error) {
		t.Helper()
		must(t, err)
		choice, err := algorithms.New("explicit", nil)
		must(t, err)
		r, err := master.NewRun(sys.System, choice.Algorithm, master.Options{Stop: 1, Step: 0.1})
		must(t, err)
		_, err = r.Run(t.Context())
		must(t, errors.Join(err, sys.Close()))
	}
	run(simulate.Open(t.Context(), path, zero))
	m, err := simulate.OpenModel(t.Context(), path, zero)
	must(t, err)
	run(m.Instantiate(simulate.OpenOptions{}))
	must(t, m.Close())
	_, err = simulate.Inspect(t.Context(), path, zero, nil)
	must(t, err)
	zero.System, zero.Output = path, filepath.Join(t.TempDir(), "r.csv")
	zero.Start, zero.Stop, zero.Step = simulate.Number(0), simulate.Number(1), simulate.Number(0.1)
	out, err := simulate.Run(t.Context(), zero.Request)
	if err != nil || out.Result.Status != master.Complete {
		t.Errorf("%v, %+v", err, out)
	}
}

// Inspecting a system leaves no files behind, whether it succeeds or fails.
func TestInspectLeavesNothing(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	path, err := fmus.WriteSystem(dir, "quarter-car-a")
	must(t, err)
	broken := filepath.Join(dir, "broken.ssp")
	must(t, os.WriteFile(broken, []byte("no archive"), 0o666))
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, temp)
	}
	onHost := []assemble.On{{Pattern: "*", Host: filepath.Join(dir, "absent.json")}}
	for _, c := range []struct {
		path, variable, fails string
		on                    []assemble.On
	}{
		{path, "wheel.d_c", "", onHost},
		{path, "wheel.absent", "no variable", onHost},
		{path, "", "no component", []assemble.On{{Pattern: "absent", Host: "lab7:7447"}}},
		{broken, "", "not well-formed", nil},
		{filepath.Join(dir, "absent.ssp"), "", "no", nil},
	} {
		var o simulate.OpenOptions
		o.On = c.on
		var variables []string
		if c.variable != "" {
			variables = []string{c.variable}
		}
		_, err := simulate.Inspect(t.Context(), c.path, o, variables)
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s %s: %v", c.path, c.variable, err)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("%s %s left %v, %v", c.path, c.variable, left, err)
		}
	}
}

// Reading documents connects to no host, so that it needs neither the host nor a ticket for it.
func TestInspectReachesNoHost(t *testing.T) {
	path, err := fmus.Build(t.TempDir(), "mass_force")
	must(t, err)
	var o simulate.OpenOptions
	o.On = []assemble.On{{Pattern: "*", Host: filepath.Join(t.TempDir(), "absent.json")}}
	i, err := simulate.Inspect(t.Context(), path, o, nil)
	if err != nil || len(i.Components) != 1 {
		t.Errorf("%v, %+v", err, i)
	}
	if _, err := simulate.Open(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "there is no ticket") {
		t.Errorf("a run needs no ticket: %v", err)
	}
}
