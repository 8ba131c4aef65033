package worker_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
)

// BenchmarkBareC is for comparison with BenchmarkStep by shared memory: two processes in C
// wait for each other on futexes.
func BenchmarkBareC(b *testing.B) {
	cc, err := csrc.Compiler()
	must(b, err)
	program := filepath.Join(b.TempDir(), "roundtrip")
	if out, err := exec.Command(cc[0], append(cc[1:], "-O2", "-o", program, "testdata/roundtrip.c")...).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.ResetTimer()
	out, err := exec.Command(program, fmt.Sprint(b.N)).Output()
	must(b, err)
	var p50, p99 float64
	if _, err := fmt.Sscan(string(out), &p50, &p99); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(p50, "p50-ns")
	b.ReportMetric(p99, "p99-ns")
}
