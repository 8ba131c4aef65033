package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// The commands of the example of the README run as they stand there.
func TestReadmePair(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "## Couple two FMUs of your own")
	section, _, ok := strings.Cut(rest, "\n## ")
	if !ok {
		t.Fatal("the README has no example")
	}
	var commands [][]string
	for line := range strings.Lines(section) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), "  ") // an explanation may follow
		if args, ok := strings.CutPrefix(command, "macrostep "); ok {
			commands = append(commands, strings.Fields(args))
		}
	}
	if len(commands) != 5 {
		t.Fatalf("the example has the commands %v", commands)
	}
	dir := t.TempDir()
	for name, model := range map[string]string{"chassis": "quarter_chassis_a", "wheel": "quarter_wheel_a"} {
		path, err := fmus.Build(dir, model)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, filepath.Join(dir, name+".fmu")); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range commands {
		code, output := macrostepIn(t, dir, args...)
		if code != 0 || args[0] == "run" && !strings.Contains(output, "complete at t = 1 s") {
			t.Errorf("macrostep %v: exit code %d\n%s", args, code, output)
		}
	}
	if table, err := os.ReadFile(filepath.Join(dir, "pair.csv")); err != nil || strings.Count(string(table), "\n") != 1002 {
		t.Errorf("results: %v, %d lines", err, strings.Count(string(table), "\n"))
	}
}
