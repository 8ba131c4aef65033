package assemble_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
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
