package embedding

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
)

// footprint is the use of resources of a process.
type footprint struct {
	resident   int // bytes
	heap       int // bytes, of Go
	mappings   int
	threads    int
	goroutines int
	handles    int // open files
	children   int
	files      int // in the folder for temporary ones
}

func measure(t testing.TB, temp string) footprint {
	t.Helper()
	runtime.GC() // twice: finalisers
	debug.FreeOSMemory()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	p := footprint{heap: int(mem.HeapAlloc), goroutines: runtime.NumGoroutine()}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	list := func(path string) int {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for line := range strings.Lines(read("/proc/self/status")) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch name {
		case "VmRSS":
			kib, err := strconv.Atoi(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			p.resident = kib << 10
		case "Threads":
			p.threads, _ = strconv.Atoi(fields[0])
		}
	}
	p.mappings = strings.Count(read("/proc/self/maps"), "\n")
	p.handles, p.files = list("/proc/self/fd"), list(temp)
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // a thread may have gone
		p.children += len(strings.Fields(string(text)))
	}
	return p
}

// once opens, runs and closes a system.
func once(t testing.TB, path, preset string, launcher fmi.Launcher, dir string) {
	t.Helper()
	o := assemble.Options{Cache: filepath.Join(dir, "cache")}
	if launcher != nil {
		o.Isolate, o.Launcher, o.Restarts = assemble.IsolateAlways, launcher, 1
	}
	a, err := assemble.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	stop, step := 0.05, 0.001
	a.Override(nil, &stop, &step, nil)
	choice, err := algorithms.New(preset, nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := master.NewRun(a.System, choice.Algorithm, master.Options{
		Stop: stop, Step: step, Recorders: []master.Recorder{record.NewTable(filepath.Join(dir, "results.csv"), record.Options{})},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := run.Run(t.Context())
	if err = errors.Join(err, a.Close()); err != nil || result.Status != master.Complete {
		t.Fatalf("%s: %v, %v", path, result.Status, err)
	}
}

// Nothing grows with the number of runs, except by libraries that are new: each is loaded once and stays.
func TestNoGrowth(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	var systems []string
	for _, name := range []string{"quarter-car-a", "two-mass-ff", "two-mass-dd", "quarter-car-b"} {
		path, err := fmus.WriteSystem(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		systems = append(systems, path)
	}
	shared, pipes := &worker.Launcher{}, &worker.Launcher{Pipes: true}
	for _, test := range []struct {
		name string
		part int // of the runs
		do   func(k int)
	}{
		{"the same", 1, func(int) { once(t, systems[0], "explicit", nil, dir) }},
		{"changing", 1, func(k int) { once(t, systems[k%len(systems)], []string{"explicit", "implicit"}[k%2], nil, dir) }},
		{"in processes", 3, func(k int) { once(t, systems[k%len(systems)], "explicit", []fmi.Launcher{shared, pipes}[k%2], dir) }},
	} {
		n := max(*runs/test.part, 10)
		// The first runs allocate what stays: libraries, threads of the runtime, heaps of the C library.
		warm := max(n/4, len(systems))
		for k := range warm {
			test.do(k)
		}
		before := measure(t, temp)
		for k := range n - warm {
			test.do(k)
		}
		after := measure(t, temp)
		t.Logf("%s: after %d runs %+v", test.name, warm, before)
		t.Logf("%s: after %d runs %+v", test.name, n, after)
		before.judge(t, test.name, after, 0)
	}

	// Libraries that are new each time: each adds itself.
	n := min(max(*runs/12, 5), 40)
	var before footprint
	for k := range n + 2 {
		if k == 2 {
			before = measure(t, temp)
		}
		name := fmt.Sprint("fresh", k)
		path, err := fmus.BuildMisbehaving(t.TempDir(), name, "misbehave", map[string]string{"x0": strconv.Itoa(k + 2)})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			once(t, path, "explicit", nil, dir)
		}
	}
	after := measure(t, temp)
	t.Logf("new libraries: %+v, %d later %+v", before, n, after)
	before.judge(t, "new libraries", after, n)
}

// judge reports what has grown since an earlier measurement, between which some libraries were loaded for
// the first time.
func (p footprint) judge(t *testing.T, what string, now footprint, libraries int) {
	t.Helper()
	const (
		slack    = 3 << 20 // bytes: the allocators of Go and C keep varying amounts
		library  = 512 << 10
		segments = 8 // mappings of a library
		thread   = 4 // mappings of a thread: its stack, its part of the C heap, a guard for each
		threads  = 3 // the Go runtime starts some at any time
	)
	made := max(0, now.threads-p.threads)
	for _, c := range []struct {
		name                 string
		before, after, slack int
	}{
		{"bytes in memory", p.resident, now.resident, slack + libraries*library},
		{"bytes of heap", p.heap, now.heap, slack/3 + libraries*library/4},
		{"mappings", p.mappings, now.mappings, 8 + libraries*segments + made*thread},
		{"threads", p.threads, now.threads, threads},
		{"goroutines", p.goroutines, now.goroutines, 0},
		{"open files", p.handles, now.handles, 0},
		{"child processes", p.children, now.children, 0},
		{"temporary files", p.files, now.files, 0},
	} {
		if c.after > c.before+c.slack {
			t.Errorf("%s: %s have grown from %d to %d", what, c.name, c.before, c.after)
		}
	}
}
