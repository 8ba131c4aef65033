package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A short soak finds nothing; CONTRIBUTING.md has the long one.
func testSoak(t *testing.T) {
	t.Parallel()
	soak := filepath.Join(t.TempDir(), "soak")
	if out, err := exec.Command("go", "build", "-o", soak, "./soak").CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, out)
	}
	const cases = "4"
	out, err := exec.Command(soak, "--seed", "4", "--duration", "0", "--cases", cases, "--program", program, "--work", filepath.Join(work, "soak")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n"+cases+" cases in ") {
		t.Errorf("%v\n%s", err, out)
	}
}
