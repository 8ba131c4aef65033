package test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// Isolated or not, by shared memory or not, a run gives the same bytes.
func TestIsolationKeepsResults(t *testing.T) {
	t.Parallel()
	take := long.Sample(5)
	for _, c := range []struct{ system, algorithm, more string }{
		{"quarter-car-a", "explicit", "--param=order=2"}, {"quarter-car-a", "ecco", ""}, {"quarter-car-b", "explicit", "--workers=2"},
		{"two-mass-ff", "implicit", "--param=solver.kind=newton-fd"}, {"two-mass-dd", "ex-slocal", ""},
		{"contact-oscillator", "im-slocal", ""}, {"energy-star-3", "energy-correction", ""}, {"crane", "explicit", "--stop-time=0.5"},
	} {
		if !take() {
			continue
		}
		t.Run(c.system+"/"+c.algorithm, func(t *testing.T) {
			var results [2][]byte
			for i, mode := range []string{"never", "always"} {
				dir := t.TempDir()
				output := filepath.Join(dir, "results.csv")
				args := []string{"run", system(t, c.system), "--algorithm", c.algorithm, "--isolate", mode, "--output", output}
				if c.more != "" {
					args = append(args, c.more)
				}
				if code, text := macrostep(t, args...); code != 0 {
					t.Fatalf("exit code %d\n%s", code, text)
				}
				data := read(t, output)
				results[i] = data
				manifest := read(t, strings.TrimSuffix(output, ".csv")+".json")
				if told := bytes.Contains(manifest, []byte(`"isolated": "all components are"`)); told != (mode == "always") {
					t.Errorf("--isolate %s: told in the manifest: %v", mode, told)
				}
			}
			if !bytes.Equal(results[0], results[1]) {
				t.Error("the results differ")
			}
		})
	}
}
