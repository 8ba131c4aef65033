package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// The example of the README runs as it stands there.
func TestReadmePair(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```xml\n")
	document, rest, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the README has no example document")
	}
	command := ""
	for line := range strings.Lines(rest) {
		if command = strings.TrimSpace(line); command != "" {
			break
		}
	}
	args, ok := strings.CutPrefix(command, "macrostep run ")
	if !ok {
		t.Fatalf("the line after the example is %q", command)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pair.ssd"), []byte(document), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, model := range map[string]string{"chassis": "quarter_chassis_a", "wheel": "quarter_wheel_a"} {
		path, err := fmus.Build(dir, model)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, filepath.Join(dir, name+".fmu")); err != nil {
			t.Fatal(err)
		}
	}
	code, output := macrostepIn(t, dir, append([]string{"run"}, strings.Fields(args)...)...)
	if code != 0 || !strings.Contains(output, "complete at t = 1 s") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	if table, err := os.ReadFile(filepath.Join(dir, "pair.csv")); err != nil || strings.Count(string(table), "\n") != 1002 {
		t.Errorf("results: %v, %d lines", err, strings.Count(string(table), "\n"))
	}
}
