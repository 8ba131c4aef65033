package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// crashing returns the settings of an FMU that ends its process at three times: in the first, the second and the
// third process. Tests on instances of their own take up to a hundred steps before the run.
func crashing(fault, place string, marker string, at [3]float64) string {
	return fmt.Sprintf("fault=%s during=%s at=%g at2=%g at3=%g times=3 marker=%s", fault, place, at[0], at[1], at[2], marker)
}

// threeTimes returns such times, in order, for steps of 0.002 s up to 1 s.
func threeTimes(rng *rand.Rand) [3]float64 {
	var at [3]float64
	for k := range at {
		at[k] = float64(150+100*k+rng.IntN(100)) * 0.002
	}
	return at
}

// With every preset a run in which an FMU ends its process at three steps gives the bytes of the undisturbed run.
func TestRestart(t *testing.T) {
	take := long.Sample(25)
	rng := rand.New(rand.NewPCG(7, 2))
	kills := slices.DeleteFunc(fmus.Kills(), func(k fmus.Kill) bool {
		return slices.Contains(handled, k.Fault) || k.Ending == fmus.Exhausts // which come back from the call
	})
	for k, p := range algorithms.Presets() {
		args := []string{"--step-size", "0.002", "--algorithm", p.Name, "--on-crash", "restart",
			"--step-timeout", "2", "--quirk", "bad=noDirectionalDerivatives"}
		if algorithms.UsesEnergy(p.Name) {
			args = append(args, "--bond", "b=bad.x:good.x")
		}
		first, second := threeTimes(rng), threeTimes(rng)
		if !take() {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			whole := runSystem(t, badPair(t, "misbehave"), "", args...)
			for n, at := range [][3]float64{first, second} {
				kill := kills[(2*k+n)%len(kills)]
				set := crashing(kill.Fault, []string{"DoStep", "GetReal"}[n], filepath.Join(t.TempDir(), fmt.Sprint("marker", n)), at)
				run := runSystem
				if n == 0 {
					run = runUntraced
				}
				restarted(t, whole, run(t, badPair(t, "misbehave"), set, args...), kill)
			}
		})
	}
}

// restarted compares a run with three restarts of bad with one without.
func restarted(t *testing.T, whole, broken *aftermath, kill fmus.Kill) {
	t.Helper()
	if whole.code != 0 || broken.code != 0 {
		t.Fatalf("exit codes %d and %d\n%s\n%s", whole.code, broken.code, whole.output, broken.output)
	}
	if !bytes.Equal(read(t, whole.results), read(t, broken.results)) {
		t.Error("the results differ")
	}
	got := broken.manifest.Restarts
	if len(whole.manifest.Restarts) != 0 || len(got) != 1 || len(got["bad"]) != 3 {
		t.Errorf("restarts %v", got)
	}
	warnings := broken.warnings()
	for k, r := range got["bad"] {
		if r.Call != "fmi2DoStep" && r.Call != "fmi2GetReal" && r.Call != "fmi2SetFMUstate" &&
			r.Call != "fmi2SerializeFMUstate" || !(r.Time > 0.25) {
			t.Errorf("restart %d: %+v", k, r)
		}
		says := fmt.Sprintf("its process ended in %s at t = %.12g s: ", r.Call, r.Time)
		if !strings.Contains(r.Cause, killCause(kill)) || !strings.Contains(broken.output, says) || !strings.Contains(warnings, says) {
			t.Errorf("restart %d: %+v is not as told:\n%s\n%s", k, r, broken.output, warnings)
		}
	}
	if left := processesOf(broken.dir); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

// The process may end while a state is set or serialised, in a subsystem on another thread, in one with several
// rates, and beside checkpoints.
func testRestartAnywhere(t *testing.T) {
	segfault := fmus.Kills()[0]
	for name, test := range map[string]struct {
		place string
		args  []string
	}{
		"set a state":         {"SetFMUstate", []string{"--algorithm", "implicit"}},
		"serialise a state":   {"SerializeFMUstate", nil},
		"workers":             {"DoStep", []string{"--workers", "2", "--algorithm", "ex-milne"}},
		"rates":               {"DoStep", []string{"--rate", "bad=7"}},
		"with timeout":        {"DoStep", []string{"--step-timeout", "60"}},
		"checkpoints":         {"DoStep", []string{"--checkpoint", "0.04", "run.checkpoint"}},
		"discarded steps":     {"DoStep", []string{"--param", "discard=shorten"}},
		"only this component": {"DoStep", []string{"--isolate", "bad"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := crashing("Segfault", test.place, filepath.Join(t.TempDir(), "marker"), [3]float64{0.3, 0.501, 0.8})
			args := append([]string{"--step-size", "0.01", "--on-crash", "restart"}, test.args...)
			restarted(t, runSystem(t, badPair(t, "misbehave"), "", args...), runSystem(t, badPair(t, "misbehave"), set, args...), segfault)
		})
	}
}

// Beyond the limit of restarts a run fails, and so does one whose FMU has no state to go on from.
func testRestartLimit(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "marker")
	set := crashing("Abort", "DoStep", marker, [3]float64{0.4, 0.5, 0.6})
	a := runSystem(t, badPair(t, "misbehave"), set, "--step-size", "0.01", "--on-crash", "restart:2")
	if a.code != 1 || a.manifest.Status != "failed" || len(a.manifest.Restarts["bad"]) != 2 {
		t.Errorf("exit code %d, %s, restarts %v", a.code, a.manifest.Status, a.manifest.Restarts)
	}
	for _, part := range []string{"step from t = 0.6 s", "ended in fmi2DoStep at t = 0.6 s: killed by signal SIGABRT",
		"its process was replaced 2 times, which is the limit"} {
		if !strings.Contains(a.manifest.Reason, part) {
			t.Errorf("%q is missing in %q", part, a.manifest.Reason)
		}
	}
	if a.rows != 61 || !a.ends("good", "Terminate OK", "FreeFMUstate OK", "FreeInstance void") {
		t.Errorf("%d rows; good does not end as it should", a.rows)
	}
	// One that crashes each time it is tried.
	a = runSystem(t, badPair(t, "misbehave"), "fault=Segfault at=0.4", "--step-size", "0.01", "--on-crash", "restart:4")
	if a.code != 1 || len(a.manifest.Restarts["bad"]) != 4 || !strings.Contains(a.manifest.Reason, "replaced 4 times") {
		t.Errorf("exit code %d, restarts %v: %s", a.code, a.manifest.Restarts, a.manifest.Reason)
	}
	a = runSystem(t, badPair(t, "misbehave"), "fault=Segfault during=EnterInitializationMode", "--step-size", "0.01", "--on-crash", "restart")
	if a.code != 1 || len(a.manifest.Restarts) != 0 || !strings.Contains(a.manifest.Reason, "ended in fmi2EnterInitializationMode") {
		t.Errorf("exit code %d, restarts %v: %s", a.code, a.manifest.Restarts, a.manifest.Reason)
	}
}
