package native_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
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

// A state that refers to others is not taken back, unless it can be cloned.
func TestRollback(t *testing.T) {
	m := native.Model[[]float64]{Name: "m", Start: []float64{1}, Step: func(*[]float64, float64, float64, []float64) error { return nil }, Output: func(*[]float64, []float64) {}}
	if native.New(m).Info().Caps.SaveState {
		t.Error("a slice is taken for a value")
	}
	m.Clone = func(s []float64) []float64 { return append([]float64(nil), s...) }
	s := native.New(m)
	if !s.Info().Caps.SaveState {
		t.Error("a state with Clone is not taken back")
	}
	if native.New(native.Model[*int]{Step: func(**int, float64, float64, []float64) error { return nil }, Output: func(**int, []float64) {}}).Info().Caps.SaveState {
		t.Error("a pointer is taken for a value")
	}
}

// Functions solve algebraic loops by their derivatives, with every algorithm.
func TestImplicit(t *testing.T) {
	for _, solver := range []string{"newton-los", "newton-fd"} {
		at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
		half := native.Func("half", []string{"u"}, []string{"y"}, func(_ float64, u, y []float64) { y[0] = 1 + math.Cos(u[0])/2 })
		twice := native.Func("twice", []string{"u"}, []string{"y"}, func(_ float64, u, y []float64) { y[0] = u[0] })
		sys, err := master.NewSystem([]master.Subsystem{half, twice}, []master.Connection{{From: at("half", "y"), To: at("twice", "u")}, {From: at("twice", "y"), To: at("half", "u")}})
		must(t, err)
		c, err := algorithms.New("implicit", map[string]string{"solver.kind": solver})
		must(t, err)
		run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: 0.1, Step: 0.01})
		must(t, err)
		if _, err := run.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if y, _ := run.Real("half.y"); math.Abs(y-(1+math.Cos(y)/2)) > 1e-6 {
			t.Errorf("%s: y = %v", solver, y)
		}
	}
}

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "road.csv")
	must(t, os.WriteFile(path, []byte("time,z,v\n0,0,1\n1,2,1\n"), 0o666))
	signals, err := record.ReadSignals(t.Context(), path)
	must(t, err)
	road, err := native.Table("road", signals)
	must(t, err)
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{road, gain()}, []master.Connection{{From: at("road", "z"), To: at("gain", "u")}})
	must(t, err)
	c, err := algorithms.New("explicit", nil)
	must(t, err)
	run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: 0.5, Step: 0.1})
	must(t, err)
	if _, err := run.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	z, _ := run.Real("road.z")
	y, _ := run.Real("gain.y")
	if math.Abs(z-1) > 1e-12 || math.Abs(y-2.9) > 1e-12 {
		t.Errorf("z = %g, y = %g", z, y)
	}
	bad := filepath.Join(t.TempDir(), "bad.csv")
	must(t, os.WriteFile(bad, []byte("time,z\n0,x\n"), 0o666))
	if signals, err = record.ReadSignals(t.Context(), bad); err == nil {
		_, err = native.Table("bad", signals)
	}
	if err == nil {
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
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{plant, valve}, []master.Connection{
		{From: at("tank", "level"), To: at("valve", "level")}, {From: at("valve", "flow"), To: at("tank", "inflow")},
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
