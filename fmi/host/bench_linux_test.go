package host_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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
			b.ReportAllocs()
			steps(b, all)
		})
	}
}

// steps measures a step of instances.
func steps(b *testing.B, all []*fmi.Stepper) {
	samples := make([]time.Duration, 0, 1<<20)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	batch, err := fmi.NewBatch(all)
	must(b, err)
	t := 0.0
	for b.Loop() {
		start := time.Now()
		_, _, err := batch.Step(0, t, 1e-9, true)
		must(b, err)
		t += 1e-9
		if len(samples) < cap(samples) {
			samples = append(samples, time.Since(start))
		}
	}
	slices.Sort(samples)
	b.ReportMetric(float64(samples[len(samples)/2]), "p50-ns")
	b.ReportMetric(float64(samples[len(samples)*99/100]), "p99-ns")
}

// BenchmarkBeside measures a step of one of three runs on a host, while nothing else happens there, and while a fourth run sends
// 1 GiB again and again.
func BenchmarkBeside(b *testing.B) {
	f := built(b, "mass_force")
	cmd, ticket := apart(b, work, "127.0.0.1:0")
	defer func() { _ = cmd.Process.Kill() }()
	for _, sending := range []bool{false, true} {
		b.Run(map[bool]string{false: "idle", true: "upload"}[sending], func(b *testing.B) {
			ctx, end := context.WithCancel(b.Context())
			var others sync.WaitGroup
			var mine *fmi.Stepper
			for k := range 3 {
				c, err := host.NewClient(ticket, "", host.ClientOptions{})
				must(b, err)
				b.Cleanup(func() { _ = c.Close() })
				s := begun(b, f, fmt.Sprint("c", k), fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 10)
				if mine == nil {
					mine = s
					continue
				}
				others.Go(func() {
					for t := 0.0; ctx.Err() == nil; t += 1e-9 {
						_, err := s.Step(t, 1e-9, true)
						must(b, err)
					}
				})
			}
			if sending {
				path := filepath.Join(b.TempDir(), "large.fmu")
				must(b, os.WriteFile(path, nil, 0o600))
				must(b, os.Truncate(path, 1<<30))
				others.Go(func() {
					for ctx.Err() == nil {
						c, err := host.NewClient(ticket, "", host.ClientOptions{})
						must(b, err)
						stop := context.AfterFunc(ctx, func() { _ = c.Close() })
						_, err = c.Launcher(host.Place{}).Launch(fmi.Launch{Instance: "x", FMU: path, Hash: "sha256:" + strings.Repeat("0", 64)})
						if err == nil || ctx.Err() == nil && !strings.Contains(err.Error(), "its hash is") {
							b.Error(err)
						}
						stop()
						_ = c.Close()
					}
				})
			}
			steps(b, []*fmi.Stepper{mine})
			end()
			others.Wait()
		})
	}
}

// BenchmarkState fetches serialised states.
func BenchmarkState(b *testing.B) {
	_, ticket := apart(b, work, "127.0.0.1:0")
	for _, mebibytes := range []int{64, 128, 256, 512, 1024} {
		b.Run(fmt.Sprint(mebibytes), func(b *testing.B) {
			f := misbehaving(b, work, fmt.Sprint("state", mebibytes), "misbehave", map[string]string{"ballast": fmt.Sprint(mebibytes)})
			c, err := host.NewClient(ticket, "", host.ClientOptions{})
			must(b, err)
			defer c.Close()
			in := begun(b, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1).Instance()
			state, err := in.GetFMUState(nil)
			must(b, err)
			var buf []byte
			b.SetBytes(int64(mebibytes) << 20)
			for b.Loop() {
				buf, err = in.SerializeFMUState(state, buf[:0])
				must(b, err)
			}
			must(b, in.Free())
		})
	}
}
