//go:build unix

package bench

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
)

// variants is the number of runs of the studies that are measured.
const variants = 2000

// BenchmarkStudy compares the runs of a study with a loop over an opened model in one process that collects the same values:
// the quarter car for 1 s at 1 ms. It reports the processor time of a run, with one engine or goroutine and with one for each
// core, and the gain by the others.
func BenchmarkStudy(b *testing.B) {
	t := build(b)
	s := quarterCar(b, t)
	write(b, t.dir, "study.yaml", fmt.Appendf(nil, `
system: %s
run: {step-size: 1e-3, stop-time: 1}
vary: {wheel.k_w: "linear(1e5, 2e5)", wheel.d_c: "uniform(500, 1500)"}
samples: %d
collect: [maximum(chassis.v_c), minimum(chassis.v_c), final(chassis.v_c), mean(wheel.F_c), rms(wheel.F_c)]
`, s.path, variants))
	study := func(engines int) cost {
		took, _ := run(b, "", t.macrostep, "study", filepath.Join(t.dir, "study.yaml"), "--output", filepath.Join(t.dir, "study"),
			"--force", "--quiet", "--engines", fmt.Sprint(engines))
		return took
	}
	each := func(c cost) float64 { return c.cpu / variants * 1e6 }
	cores := runtime.GOMAXPROCS(0)
	processor := func(b *testing.B, engines int) {
		paired(b, [2]string{"study-µs/run", "loop-µs/run"}, "ratio", func(m, f float64) float64 { return m / f },
			func() float64 { return each(study(engines)) }, func() float64 { return each(loop(b, s.path, engines)) })
	}
	b.Run("processor", func(b *testing.B) {
		b.Run("one", func(b *testing.B) { processor(b, 1) })
		b.Run("cores", func(b *testing.B) { processor(b, cores) })
	})
	b.Run("gain", func(b *testing.B) {
		paired(b, [2]string{"study-gain", "loop-gain"}, "ratio", func(m, f float64) float64 { return m / f },
			func() float64 { return study(1).wall / study(cores).wall },
			func() float64 { return loop(b, s.path, 1).wall / loop(b, s.path, cores).wall })
	})
	b.Run("shell", func(b *testing.B) { // one call of macrostep run for each run
		const runs = 20
		for b.Loop() {
			sum := 0.0
			for i := range runs {
				took, _ := run(b, "", t.macrostep, "run", s.path, "--step-size", "1e-3", "--stop-time", "1", "--quiet",
					"--set", fmt.Sprint("wheel.k_w=", 1e5+i), "--output", filepath.Join(t.dir, "r.csv"))
				sum += took.cpu
			}
			b.ReportMetric(sum/runs*1e6, "shell-µs/run")
		}
	})
}

// loop makes the runs in this process.
func loop(b *testing.B, system string, parallel int) cost {
	model, err := assemble.OpenModel(system, assemble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	collected, err := record.ParseSelection([]string{"chassis.v_c", "wheel.F_c"})
	if err != nil {
		b.Fatal(err)
	}
	one := func(i int) error {
		sys, err := model.Instantiate(assemble.Real("wheel.k_w", 1e5+float64(i)), assemble.Real("wheel.d_c", 500+float64(i)/2))
		if err != nil {
			return err
		}
		defer sys.Close()
		choice, err := algorithms.New("explicit", nil)
		if err != nil {
			return err
		}
		points := record.Columns{Select: collected}
		job, err := master.NewRun(sys.System, choice.Algorithm, master.Options{Stop: 1, Step: 1e-3, Workers: 1, Recorders: []master.Recorder{&points}})
		if err != nil {
			return err
		}
		if _, err := job.Run(b.Context()); err != nil {
			return err
		}
		v, err := points.Real("chassis.v_c")
		if err != nil {
			return err
		}
		f, err := points.Real("wheel.F_c")
		most, least, sum, square := v[0], v[0], 0.0, 0.0
		for k := range v {
			most, least, sum, square = max(most, v[k]), min(least, v[k]), sum+f[k], square+f[k]*f[k]
		}
		sink.Store(most + least + v[len(v)-1] + sum + square)
		return err
	}
	before, begin := used(b), time.Now()
	var next atomic.Int64
	var working sync.WaitGroup
	for range parallel {
		working.Go(func() {
			for i := next.Add(1); i <= variants; i = next.Add(1) {
				if err := one(int(i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	working.Wait()
	return cost{used(b) - before, time.Since(begin).Seconds()}
}

var sink atomic.Value // so that nothing is left out

// used returns the processor time of this process in s.
func used(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
