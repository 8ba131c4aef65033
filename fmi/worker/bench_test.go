package worker_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/worker"
)

// BenchmarkStep measures a step (set, step, get; ten Reals each way) of several FMUs: one after
// the other in this process, or in parallel in separate processes. Metrics are per FMU.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name string
		l    fmi.Launcher
	}{{"process", nil}, {"shared", &worker.Launcher{}}, {"pipes", &worker.Launcher{Pipes: true}}} {
		for _, n := range []int{1, 2, 10, 50} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				f := open(b, "mass_force")
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var steppers []*fmi.Stepper
				for k := range n {
					s := ready(b, f, fmt.Sprint("c", k), fmi.InstanceOptions{Launcher: c.l})
					steppers = append(steppers, s)
				}
				batch, err := fmi.NewBatch(steppers)
				must(b, err)
				b.ReportAllocs()
				samples := make([]time.Duration, 0, 1<<16)
				t := 0.0
				i := 0
				for b.Loop() {
					begin := time.Now()
					for _, s := range steppers {
						s.RealIn[0] = t
					}
					if _, _, err := batch.Step(0, t, 1e-9, true); err != nil {
						b.Fatal(err)
					}
					t += 1e-9
					if len(samples) < cap(samples) {
						samples = append(samples, time.Since(begin))
					} else {
						samples[i%cap(samples)] = time.Since(begin)
					}
					i++
				}
				slices.Sort(samples)
				at := func(q float64) float64 {
					return float64(samples[int(q*float64(len(samples)-1))]) / float64(n)
				}
				b.ReportMetric(at(0.5), "p50-ns/FMU")
				b.ReportMetric(at(0.99), "p99-ns/FMU")
			})
		}
	}
}

// A step allocates no memory by shared memory or pipes, with or without time limit and Keep.
func TestStepsWithoutAllocation(t *testing.T) {
	f := open(t, "mass_force")
	for name, o := range map[string]fmi.InstanceOptions{
		"shared":          {Launcher: &worker.Launcher{}},
		"pipes":           {Launcher: &worker.Launcher{Pipes: true}},
		"shared, bounded": {Launcher: &worker.Launcher{Timeout: time.Hour}, Restarts: 1},
		"pipes, bounded":  {Launcher: &worker.Launcher{Pipes: true, Timeout: time.Hour}, Restarts: 1},
	} {
		var steppers []*fmi.Stepper
		for range 3 {
			steppers = append(steppers, ready(t, f, "c", o))
		}
		batch, err := fmi.NewBatch(steppers)
		must(t, err)
		at := 0.0
		step := func() {
			for _, s := range steppers {
				if o.Restarts > 0 {
					must(t, s.Instance().Keep())
				}
				s.RealIn[0] = at
			}
			_, _, err := batch.Step(0, at, 1e-3, true)
			must(t, err)
			at += 1e-3
		}
		if n := testing.AllocsPerRun(500, step); n != 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

// ready returns a stepper of an initialised instance.
func ready(tb testing.TB, f *fmi.FMU, name string, o fmi.InstanceOptions) *fmi.Stepper {
	tb.Helper()
	in, err := f.Instantiate(name, o)
	must(tb, err)
	tb.Cleanup(func() {
		if err := in.Free(); err != nil {
			tb.Error(err)
		}
	})
	ten := make([]description.ValueReference, 10)
	s, err := begin(in, fmi.StepPlan{RealIn: ten, RealOut: ten})
	must(tb, err)
	return s
}
