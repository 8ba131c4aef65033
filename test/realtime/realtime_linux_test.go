package realtime

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
)

var (
	seconds = flag.Int("seconds", 2, "how long to measure")
	verdict = flag.Bool("verdict", false, "fail where the run is later than twice the loop in C")
	// With a priority what else runs is no part of the comparison.
	priority = flag.Int("priority", 0, "SCHED_FIFO priority of both (needs the right to it, and chrt)")
	load     = flag.Int("load", 0, "threads that use the processors meanwhile")
)

// build makes the program and the loop in C.
func build(t *testing.T, dir string) (program, loop string) {
	t.Helper()
	program, loop = filepath.Join(dir, "macrostep"), filepath.Join(dir, "loop")
	c := exec.Command("go", "build", "-o", program, "../../cmd/macrostep")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("building macrostep: %v\n%s", err, out)
	}
	compiler, err := csrc.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler[0], append(compiler[1:], "-O2", "-o", loop, "src/loop.c")...).CombinedOutput(); err != nil {
		t.Fatalf("compiling the loop: %v\n%s", err, out)
	}
	return program, loop
}

func TestLateness(t *testing.T) {
	dir := t.TempDir()
	program, loop := build(t, dir)
	system, err := fmus.WriteSystem(dir, "quarter-car-a")
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	defer stop.Store(true)
	for range *load {
		go func() {
			runtime.LockOSThread()
			for x := 1.0; !stop.Load(); x *= 1.000001 {
				if x > 2 {
					x = 1
				}
			}
		}()
	}
	const period = time.Millisecond
	n := *seconds * int(time.Second/period)
	beside := exec.Command(loop, strconv.Itoa(int(period)), strconv.Itoa(n))
	run := exec.Command(program, "run", system, "--stop-time", strconv.Itoa(*seconds), "--step-size", "1e-3", "--realtime", "--output", "r.csv")
	run.Dir = dir
	if *priority > 0 {
		run.Args = append(run.Args, "--realtime-priority", strconv.Itoa(*priority))
		beside = exec.Command("chrt", "-f", strconv.Itoa(*priority), loop, strconv.Itoa(int(period)), strconv.Itoa(n))
	}
	type result struct {
		out []byte
		err error
	}
	looped := make(chan result, 1)
	go func() {
		out, err := beside.CombinedOutput()
		looped <- result{out, err}
	}()
	begin := time.Now()
	out, err := run.CombinedOutput()
	took := time.Since(begin)
	c := <-looped
	if err != nil || c.err != nil {
		t.Fatalf("%v\n%s\n%v\n%s", err, out, c.err, c.out)
	}
	t.Logf("%s", out)
	var manifest struct{ Realtime *master.Timing }
	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err == nil {
		err = json.Unmarshal(data, &manifest)
	}
	if err != nil || manifest.Realtime == nil {
		t.Fatalf("the manifest: %v\n%s", err, data)
	}
	timing := manifest.Realtime
	count, missed := 0, 0
	for _, b := range timing.Lateness.Histogram {
		count += b.Count
		if b.UpTo > 2e-3 {
			missed += b.Count // more than a step behind
		}
	}
	if timing.Deadlines != n || count != n || took < time.Duration(*seconds)*time.Second {
		t.Errorf("%d deadlines, %d in the histogram, in %v", timing.Deadlines, count, took)
	}
	// What was late by more than a step has missed deadlines.
	if timing.Overruns < missed {
		t.Errorf("%d overruns, and %d deadlines late by more than a step", timing.Overruns, missed)
	}
	lines := strings.Fields(string(c.out))
	for k, own := range []float64{timing.Lateness.P50, timing.Lateness.P99, timing.Lateness.P999, timing.Lateness.Worst} {
		ns, err := strconv.ParseFloat(lines[k], 64)
		if err != nil {
			t.Fatal(err)
		}
		name := []string{"50 %", "99 %", "99.9 %", "worst"}[k]
		t.Logf("%-6s  macrostep %9.1f µs   loop in C %9.1f µs", name, own*1e6, ns*1e-3)
		if *verdict && own > 2e-9*ns {
			t.Errorf("%s: it is later than twice the loop in C", name)
		}
	}
}
