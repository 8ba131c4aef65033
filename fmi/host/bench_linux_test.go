package host_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmi/host"
)

// BenchmarkBareC is for comparison with BenchmarkStep: two processes in C exchange messages of the same sizes.
func BenchmarkBareC(b *testing.B) {
	cc, err := csrc.Compiler()
	must(b, err)
	program := filepath.Join(b.TempDir(), "roundtrip")
	if out, err := exec.Command(cc[0], append(cc[1:], "-O2", "-o", program, "testdata/roundtrip.c")...).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.ResetTimer()
	out, err := exec.Command(program, fmt.Sprint(b.N), "248", "256").Output()
	must(b, err)
	var p50, p99 float64
	if _, err := fmt.Sscan(string(out), &p50, &p99); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(p50, "p50-ns")
	b.ReportMetric(p99, "p99-ns")
}

// BenchmarkStep measures a step of FMUs with ten inputs and outputs on a host in another process.
func BenchmarkStep(b *testing.B) {
	f := built(b, "mass_force")
	_, ticket := apart(b, work, "127.0.0.1:0")
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, err := host.NewClient(ticket, "", host.ClientOptions{})
			must(b, err)
			defer c.Close()
			var all []*fmi.Stepper
			for k := range n {
				all = append(all, begun(b, f, fmt.Sprint("c", k), fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 10))
			}
			samples := make([]time.Duration, 0, 1<<20)
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			t := 0.0
			for b.Loop() {
				start := time.Now()
				for _, s := range all {
					must(b, s.Post(t, 1e-9))
				}
				for _, s := range all {
					_, err := s.Collect()
					must(b, err)
				}
				t += 1e-9
				if len(samples) < cap(samples) {
					samples = append(samples, time.Since(start))
				}
			}
			slices.Sort(samples)
			b.ReportMetric(float64(samples[len(samples)/2]), "p50-ns")
			b.ReportMetric(float64(samples[len(samples)*99/100]), "p99-ns")
		})
	}
}
