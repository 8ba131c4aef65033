package assemble_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
)

// An FMU is asked once how it has crashed, however many components it has.
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
	for i, want := range []string{"its FMU is on record: it crashed", "its FMU is on record: it crashed", "", "its FMU is on record: it crashed"} {
		if got := a.Components[i].Isolated; got != want {
			t.Errorf("%s is isolated because %q", a.Components[i].Name, got)
		}
	}
}

// BenchmarkStart is what stands before the first macro step and behind the last: a
// system of many instances of one FMU is opened, loaded, initialised, stepped once and
// closed.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var elements strings.Builder
			for i := range n {
				elements.WriteString(component(fmt.Sprint("m", i), "f.fmu", ""))
			}
			path := system{fmus: map[string]string{"f.fmu": exampleFMU(b, "quarter_wheel_a")}, elements: elements.String()}.write(b)
			for b.Loop() {
				a, err := assemble.Open(path, assemble.Options{})
				must(b, err)
				must(b, a.Load())
				c, err := algorithms.New("explicit", nil)
				must(b, err)
				r, err := master.NewRun(a.System, c.Algorithm, master.Options{Stop: 1e-3, Step: 1e-3})
				must(b, err)
				_, err = r.Run(context.Background())
				must(b, err)
				must(b, a.Close())
			}
		})
	}
}

// BenchmarkRun is one of many runs of the quarter car, 1 s in steps of 1 ms with results in
// memory: of a model that is open, and of a system that is opened for it.
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

// large opens n components in a ring, each of which feeds itself, too: n algebraic loops
// and one block of all.
func large(tb testing.TB, n int) *assemble.Assembly {
	var elements, connections strings.Builder
	for i := range n {
		name := fmt.Sprint("component", i)
		elements.WriteString(component(name, "f.fmu", ""))
		connections.WriteString(connection(name+".y", name+".u", ""))
		connections.WriteString(connection(name+".q", fmt.Sprintf("component%d.ud", (i+1)%n), ""))
	}
	return sound(tb, system{fmus: map[string]string{"f.fmu": probeFMU(tb, "", "")}, elements: elements.String(), connections: connections.String()}.write(tb), assemble.Options{})
}

// checkLarge judges it for an algorithm that all rules on coupling ask about.
func checkLarge(tb testing.TB, a *assemble.Assembly) int {
	c, err := algorithms.New("explicit", nil)
	must(tb, err)
	return len(a.Check(assemble.Strategy{Preset: "explicit", Algorithm: c.Algorithm}).Findings)
}

// Every loop of a large system is found.
func TestCheckLarge(t *testing.T) {
	const n = 300
	if got := checkLarge(t, large(t, n)); got < n {
		t.Errorf("%d findings for %d loops", got, n)
	}
}

// BenchmarkCheck judges systems of two sizes, n components with 2n connections: the time
// for one component, which is that of the smaller one where it grows linearly.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{150, 1500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := large(b, n)
			for b.Loop() {
				checkLarge(b, a)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/component")
		})
	}
}
