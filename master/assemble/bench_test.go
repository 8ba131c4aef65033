package assemble_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/assemble"
)

// Options.Crashed is called once for each FMU, even if several components use it.
func TestCrashedIsAskedOnce(t *testing.T) {
	s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", ""), "g.fmu": exampleFMU(t, "quarter_wheel_a")},
		elements: component("one", "f.fmu", "") + component("two", "f.fmu", "") + component("three", "g.fmu", "") + component("four", "f.fmu", "")}
	asked := map[string]int{}
	a := sound(t, s.write(t), assemble.Options{Launcher: struct{ fmi.Launcher }{}, Crashed: func(f *fmi.FMU) string {
		asked[filepath.Base(f.Path)]++
		if filepath.Base(f.Path) == "f.fmu" {
			return "it crashed"
		}
		return ""
	}})
	if asked["f.fmu"] != 1 || asked["g.fmu"] != 1 {
		t.Errorf("asked %v", asked)
	}
	for i, want := range []string{"its FMU has ended a process before: it crashed", "its FMU has ended a process before: it crashed", "", "its FMU has ended a process before: it crashed"} {
		if got := a.Components[i].Isolated; got != want {
			t.Errorf("%s is isolated because %q", a.Components[i].Name, got)
		}
	}
}

// BenchmarkRun runs the quarter car for 1 s in steps of 1 ms with results in memory: with a model
// that is open, and with a system that is opened for each run.
func BenchmarkRun(b *testing.B) {
	path, err := fmus.WriteSystem(b.TempDir(), "quarter-car-a")
	must(b, err)
	m, err := assemble.OpenModel(path, assemble.Options{})
	must(b, err)
	for name, open := range map[string]func(assemble.Assignment) (*assemble.Assembly, error){
		"model": func(v assemble.Assignment) (*assemble.Assembly, error) { return m.Instantiate(v) },
		"open": func(v assemble.Assignment) (*assemble.Assembly, error) {
			return assemble.Open(path, assemble.Options{Set: []assemble.Assignment{v}})
		},
	} {
		b.Run(name, func(b *testing.B) {
			for k := 0; b.Loop(); k++ {
				a, err := open(assemble.Real("chassis.m_c", 300+float64(k)))
				must(b, err)
				columns(b, a, 1, 1e-3)
				must(b, a.Close())
			}
		})
	}
	must(b, m.Close())
}

// Each loop of a large system is reported: n components in a ring, each of which also feeds
// itself.
func TestCheckLarge(t *testing.T) {
	const n = 300
	var elements, connections strings.Builder
	for i := range n {
		name := fmt.Sprint("component", i)
		elements.WriteString(component(name, "f.fmu", ""))
		connections.WriteString(connection(name+".y", name+".u", ""))
		connections.WriteString(connection(name+".q", fmt.Sprintf("component%d.ud", (i+1)%n), ""))
	}
	s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", "")}, elements: elements.String(), connections: connections.String()}
	c, err := algorithms.New("explicit", nil)
	must(t, err)
	got := sound(t, s.write(t), assemble.Options{}).Check(assemble.Strategy{Preset: "explicit", Algorithm: c.Algorithm})
	if len(got.Findings) < n {
		t.Errorf("%d findings for %d loops", len(got.Findings), n)
	}
}
