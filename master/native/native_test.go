package native_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/native"
	"github.com/macrostep/macrostep/master/record"
)

func gain() master.Subsystem {
	return native.Func("gain", []string{"u"}, []string{"y"}, func(_ float64, u, y []float64) { y[0] = 3*u[0] - u[0]*u[0]/10 })
}

func lag() master.Subsystem {
	return native.New(native.Model[struct{ X float64 }]{
		Name: "lag", Inputs: []string{"u"}, Outputs: []string{"x"}, Start: struct{ X float64 }{1},
		Step: func(s *struct{ X float64 }, _, H float64, u []float64) error {
			s.X = u[0] + (s.X-u[0])*math.Exp(-H)
			return nil
		},
		Output: func(s *struct{ X float64 }, y []float64) { y[0] = s.X },
	})
}

// Both keep to what master asks of subsystems.
func TestConformance(t *testing.T) {
	for name, fresh := range map[string]func() master.Subsystem{"function": gain, "model": lag} {
		err := mastertest.TestSubsystem(func() (master.Subsystem, error) { return fresh(), nil }, []float64{0.5}, 0, 0.01)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A state that holds references is not taken back, unless it can be cloned.
func TestRollback(t *testing.T) {
	m := native.Model[[]float64]{Step: func(*[]float64, float64, float64, []float64) error { return nil }, Output: func(*[]float64, []float64) {}}
	p := native.Model[*int]{Step: func(**int, float64, float64, []float64) error { return nil }, Output: func(**int, []float64) {}}
	if native.New(m).Info().Caps.SaveState || native.New(p).Info().Caps.SaveState {
		t.Error("a slice or a pointer is taken for a value")
	}
	m.Clone = slices.Clone[[]float64]
	if !native.New(m).Info().Caps.SaveState {
		t.Error("a state with Clone is not taken back")
	}
}

// coupled runs subsystems to their end.
func coupled(t *testing.T, subs []master.Subsystem, connections []master.Connection, stop float64, preset string, params map[string]string) *master.Run {
	t.Helper()
	sys, err := master.NewSystem(subs, connections)
	must(t, err)
	c, err := algorithms.New(preset, params)
	must(t, err)
	run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: stop, Step: 0.01})
	must(t, err)
	_, err = run.Run(t.Context())
	must(t, err)
	return run
}

// Functions solve algebraic loops by their derivatives, with every algorithm.
func TestImplicit(t *testing.T) {
	for _, solver := range []string{"newton-los", "newton-fd"} {
		half := native.Func("half", []string{"u"}, []string{"y"}, func(_ float64, u, y []float64) { y[0] = 1 + math.Cos(u[0])/2 })
		same := native.Func("same", []string{"u"}, []string{"y"}, func(_ float64, u, y []float64) { y[0] = u[0] })
		run := coupled(t, []master.Subsystem{half, same}, []master.Connection{master.Connect("half.y", "same.u"), master.Connect("same.y", "half.u")},
			0.1, "implicit", map[string]string{"solver.kind": solver})
		if y, _ := run.Real("half.y"); math.Abs(y-(1+math.Cos(y)/2)) > 1e-6 {
			t.Errorf("%s: y = %v", solver, y)
		}
	}
}

func TestTable(t *testing.T) {
	table := func(text string) (master.Subsystem, error) {
		path := filepath.Join(t.TempDir(), "road.csv")
		must(t, os.WriteFile(path, []byte(text), 0o666))
		signals, err := record.ReadSignals(t.Context(), path)
		if err != nil {
			return nil, err
		}
		return native.Table("road", signals)
	}
	road, err := table("time,z,v\n0,0,1\n1,2,1\n")
	must(t, err)
	run := coupled(t, []master.Subsystem{road, gain()}, []master.Connection{master.Connect("road.z", "gain.u")}, 0.5, "explicit", nil)
	z, _ := run.Real("road.z")
	y, _ := run.Real("gain.y")
	if math.Abs(z-1) > 1e-12 || math.Abs(y-2.9) > 1e-12 {
		t.Errorf("z = %g, y = %g", z, y)
	}
	if _, err = table("time,z\n0,x\n"); err == nil {
		t.Error("a text is taken for a number")
	}
}

// A controller that counts, and a plant, both in Go.
func Example() {
	type tank struct{ Level float64 }
	plant := native.New(native.Model[tank]{
		Name: "tank", Inputs: []string{"inflow"}, Outputs: []string{"level"},
		Step:   func(s *tank, _, H float64, u []float64) error { s.Level += H * (u[0] - s.Level); return nil },
		Output: func(s *tank, y []float64) { y[0] = s.Level },
	})
	valve := native.Func("valve", []string{"level"}, []string{"flow"}, func(_ float64, u, y []float64) { y[0] = 4 * (1 - u[0]) })
	sys, err := master.NewSystem([]master.Subsystem{plant, valve}, []master.Connection{
		master.Connect("tank.level", "valve.level"), master.Connect("valve.flow", "tank.inflow"),
	})
	if err != nil {
		log.Fatal(err)
	}
	choice, err := algorithms.New("explicit", nil)
	if err != nil {
		log.Fatal(err)
	}
	run, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 5, Step: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	level, _ := run.Real("tank.level")
	fmt.Printf("level %.3f\n", level)
	// Output: level 0.800
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
