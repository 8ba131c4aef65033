package main

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master/record"
)

// A run whose steps turn out to be worth a second thread begins anew, once, and gives what
// it would have given; what it had warned of is not said twice. Where something has left
// the program already, it goes on as it is.
func TestBeginAnew(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var inside, most atomic.Int32 // steps at the same time
	slow := func() *fake {
		return &fake{slow: func() {
			most.Store(max(most.Load(), inside.Add(1)))
			time.Sleep(2 * time.Millisecond)
			inside.Add(-1)
		}, warnings: []string{"odd"}}
	}
	// says lets the FMUs of f say something at their first step, and at each.
	says := func(f *fake) *fake {
		at := 0
		f.beginStep = func() {
			if f.opens > at {
				at = f.opens
				f.asked.Logger.Warn("first", "slave", "a")
				f.asked.Logger.Warn("first", "slave", "b")
			}
			f.asked.Logger.Warn("each", "slave", "a")
		}
		return f
	}
	const steps = "700"
	f := says(slow())
	code, stdout, stderr := call(t, f, "run", "s.ssp", "--step-size", "0.001", "--stop-time", "0."+steps)
	if code != 0 || f.opens != 2 || f.closed != 2 {
		t.Fatalf("exit code %d, opened %d times, closed %d:\n%s%s", code, f.opens, f.closed, stdout, stderr)
	}
	contains(t, "standard error", stderr, "begins anew", "--workers 2", "--workers 1")
	if n := strings.Count(stdout+stderr, "odd"); n != 1 {
		t.Errorf("a warning is said %d times:\n%s%s", n, stdout, stderr)
	}
	for _, line := range []string{"first (slave=a)", "first (slave=b)"} {
		if n := strings.Count(stderr, line); n != 1 {
			t.Errorf("%q is said %d times:\n%s", line, n, stderr)
		}
	}
	if n := strings.Count(stderr, "each (slave=a)"); n != 700 {
		t.Errorf("what each step says is said %d times", n)
	}
	contains(t, "the manifest", read(t, "results.json"), "begins anew", `"status": "complete"`)
	var m record.Manifest
	if err := json.Unmarshal([]byte(read(t, "results.json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Workers != 2 {
		t.Errorf("the manifest tells of %d workers", m.Workers)
	}
	if most.Load() != 2 {
		t.Errorf("%d steps were taken at once", most.Load())
	}
	rows := read(t, "results.csv")

	f.slow, f.beginStep = nil, nil
	if code, _, stderr := call(t, f, "run", "s.ssp", "--step-size", "0.001", "--stop-time", "0."+steps, "--workers", "1"); code != 0 || read(t, "results.csv") != rows {
		t.Errorf("exit code %d, or one worker gives another table: %s", code, stderr)
	}
	for _, args := range [][]string{{"--workers", "1"}, {"--algorithm", "gauss-seidel"}, {"--output", "/dev/null"}, {"--quiet"}} {
		f := slow()
		f.unique = args[0] == "--quiet"                                       // a subsystem that cannot be made again
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond) // others have begun anew by then
		_, _, stderr := callContext(ctx, t, f, append([]string{"run", "s.ssp", "--step-size", "0.001", "--stop-time", "0." + steps}, args...)...)
		cancel()
		if f.opens != 1 {
			t.Errorf("%s: opened %d times:\n%s", args, f.opens, stderr)
		}
	}
}
