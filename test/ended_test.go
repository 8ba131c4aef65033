package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/probe"
)

// A system in which an FMU ends the simulation at the end of a step: every way of
// stepping takes the others to that point, and tells the same.
func TestEndWithStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"first", "second"} {
		if _, err := probe.Build(dir, name, probe.Everything, ""); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "SystemStructure.ssd")
	write(t, path, document("2", member{"first", "first", "u", "x"}.component("")+member{"second", "second", "u", "x"}.component(""), "first.x → second.u"))
	const doStep, discard = "1", "2"
	for _, args := range [][]string{
		nil, {"--log-fmi-calls", "calls.txt"}, {"--workers", "2"}, {"--isolate", "always"}, {"--record", "second.x"},
		{"--param", "discard=shorten"}, {"--param", "order=1", "--param", "substeps=2", "--param", "delivery=substeps"},
	} {
		for _, who := range []string{"first", "second"} {
			at := "3" // the step that ends it
			if who == "second" && slices.Contains(args, "delivery=substeps") {
				at = "6"
			}
			o := run(t, append([]string{path, "--step-size", "0.25", "--set", "first.u=2", "--set", who + ".fault=" + doStep, "--set", who + ".status=" + discard,
				"--set", who + ".at=" + at, "--set", who + ".share=1", "--set", who + ".ends=1"}, args...)...)
			if o.code != 0 || o.manifest.Status != "terminated" || o.column(t, "time")[len(o.column(t, "time"))-1] != 0.75 || !strings.Contains(o.manifest.Reason, who+" (") || strings.Contains(strings.Join(o.manifest.Warnings, " "), "common point") {
				t.Errorf("%s %v: exit code %d, %s: %q, warnings %q", who, args, o.code, o.manifest.Status, o.manifest.Reason, o.manifest.Warnings)
				continue
			}
			if slices.Contains(args, "substeps=2") {
				continue
			}
			x := o.column(t, "second.x")
			want := []float64{0, 0, 125, 375}
			if who == "second" {
				want[3] = want[2] // the probe does not step when it ends the simulation
			}
			if !slices.Equal(x, want) {
				t.Errorf("%s %v: second.x is %v, want %v", who, args, x, want)
			}
		}
	}
}
