package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// An update that removes or replaces the program while a run goes on leaves the run
// alone, also when a worker is started once more.
func testProgramReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	take := long.Sample(2)
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink("/bin/true", path)
		},
	} {
		if !take() {
			continue
		}
		dir := t.TempDir()
		own := filepath.Join(dir, "own")
		write(t, own, read(t, program))
		cmd := exec.Command(own, "run", system(t, "quarter-car-a"), "--isolate", "always", "--on-crash", "restart",
			"--step-size", "1e-4", "--stop-time", "1", "--output", filepath.Join(dir, "r.csv"))
		var out listener
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "two workers", func() bool { return len(offspring(t, cmd.Process.Pid)) == 2 })
		written(t, filepath.Join(dir, "r.csv"), 1000)
		if err := replace(own); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command("kill", "-9", offspring(t, cmd.Process.Pid)[0]).Run(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "goes on in another one") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}
