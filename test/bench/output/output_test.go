//go:build unix

// Package output measures the cost of recording as ratios: to a run that reads all variables plus a
// program in C that writes as many bytes, and to strconv formatting the numbers on all cores. One
// benchmark measures all of them in turn.
//
//	go test ./test/bench/output -bench . -run '^$' -benchtime 5x -real "$PWD/../shared/real"
//
// The system is a crane with its controller, 1482 variables. Metrics are medians; an
// operation is one measurement of everything.
package output

import (
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
)

var (
	real  = flag.String("real", "", "folder with third-party FMUs")
	steps = flag.Int("steps", 10_000, "macro steps; 100000 make 1.2 GB of numbers")
)

//go:embed src/write.c
var writeSource []byte

// cost is time spent, in s: on the wall, and by the processors.
type cost struct{ wall, cpu float64 }

func (c cost) plus(o cost) cost { return cost{c.wall + o.wall, c.cpu + o.cpu} }

func seconds(of int) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(of, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// measure returns the cost of f in processes of a kind: RUSAGE_SELF or RUSAGE_CHILDREN.
func measure(of int, f func()) cost {
	runtime.GC()
	cpu, start := seconds(of), time.Now()
	f()
	return cost{time.Since(start).Seconds(), seconds(of) - cpu}
}

// reader discards every point.
type reader struct{}

func (reader) Begin(*master.System, []master.Port) error { return nil }
func (reader) Record(*master.Point) error                { return nil }
func (reader) Flush() error                              { return nil }
func (reader) End(master.Result) error                   { return nil }

// run runs the crane; with reading, all variables are read at every step.
func run(b *testing.B, reading bool, rec master.Recorder) cost {
	b.Helper()
	a, err := assemble.Open(filepath.Join(*real, "systems", "libcosim", "demo", "demo.ssp"), assemble.Options{Record: func(string) bool { return reading }})
	defer func() {
		if err := a.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	if err == nil {
		err = a.Load(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	choice, err := algorithms.New("explicit", nil)
	if err != nil {
		b.Fatal(err)
	}
	r, err := master.NewRun(a.System, choice.Algorithm, master.Options{Stop: float64(*steps) * 1e-4, Step: 1e-4, Recorders: []master.Recorder{rec}})
	if err != nil {
		b.Fatal(err)
	}
	return measure(syscall.RUSAGE_SELF, func() {
		if res, err := r.Run(b.Context()); err != nil || res.Accepted != *steps {
			b.Fatal(res.Accepted, err)
		}
	})
}

// numbers returns a table by rows.
func numbers(b *testing.B, path string) [][]float64 {
	b.Helper()
	t, err := results.Read(path, results.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	rows := make([][]float64, len(t.Times))
	for i, at := range t.Times {
		rows[i] = []float64{at}
		for _, c := range t.Columns {
			rows[i] = append(rows[i], c.Values[i])
		}
	}
	return rows
}

// format formats all numbers on all cores and discards the text.
func format(rows [][]float64) {
	var wg sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for w := range n {
		wg.Go(func() {
			var text []byte
			for _, row := range rows[len(rows)*w/n : len(rows)*(w+1)/n] {
				text = text[:0]
				for _, v := range row {
					text = strconv.AppendFloat(text, v, 'g', -1, 64)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkFullOutput(b *testing.B) {
	if *real == "" {
		b.Fatal("name the folder with third-party FMUs by -real")
	}
	cc, err := csrc.Compiler()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	write, source := filepath.Join(dir, "write"), filepath.Join(dir, "write.c")
	if err := os.WriteFile(source, writeSource, 0o600); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command(cc[0], append(slices.Clone(cc[1:]), "-O2", "-o", write, source)...).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	metrics := map[string][]float64{}
	note := func(name string, c cost) {
		metrics[name+"-s"] = append(metrics[name+"-s"], c.wall)
		metrics[name+"-cpu-s"] = append(metrics[name+"-cpu-s"], c.cpu)
	}
	ratio := func(name string, c, beside cost) {
		metrics[name+"-ratio"] = append(metrics[name+"-ratio"], c.wall/beside.wall)
		metrics[name+"-cpu-ratio"] = append(metrics[name+"-cpu-ratio"], c.cpu/beside.cpu)
	}
	table := func(f record.Format) (cost, int64) {
		path := filepath.Join(dir, "r")
		_ = os.Remove(path)
		c := run(b, true, record.NewTable(path, record.Options{Format: f, Select: everything(b)}))
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		return c, info.Size()
	}
	written := func(bytes int64) cost {
		path := filepath.Join(dir, "w")
		_ = os.Remove(path)
		return measure(syscall.RUSAGE_CHILDREN, func() {
			if out, err := exec.Command(write, path, fmt.Sprint(bytes), fmt.Sprint(1<<20)).CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		})
	}
	var rows [][]float64
	for b.Loop() {
		bare := run(b, false, reader{})
		read := run(b, true, reader{})
		columnar, size := table(record.Parquet)
		if rows == nil {
			rows = numbers(b, filepath.Join(dir, "r"))
		}
		inC := written(size)
		text, _ := table(record.CSV)
		formatted := measure(syscall.RUSAGE_SELF, func() { format(rows) })
		note("run", bare)
		note("read", read)
		note("parquet", columnar)
		note("write-in-C", inC)
		note("csv", text)
		note("strconv", formatted)
		ratio("parquet", columnar, read.plus(inC))
		ratio("csv", text, formatted)
	}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		v := metrics[name]
		slices.Sort(v)
		b.ReportMetric(math.Round(v[len(v)/2]*1000)/1000, name)
	}
	b.ReportMetric(0, "ns/op")
}

func everything(b *testing.B) record.Selection {
	b.Helper()
	s, err := record.ParseSelection([]string{"*"})
	if err != nil {
		b.Fatal(err)
	}
	return s
}
