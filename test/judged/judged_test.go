package judged_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/test/cc"
	"github.com/macrostep/macrostep/test/judged"
)

func TestMain(m *testing.M) {
	cc.Cache()
	os.Exit(m.Run())
}

// fine are runs whose coupling error must be below 0.2 %: macro steps H and stop times, in s.
var fine = map[string]struct{ H, stop float64 }{
	"lorenz":      {4e-6, 2},
	"lotka":       {5e-5, 50},
	"stick-slip":  {1e-5, 8},
	"backlash":    {1e-5, 10},
	"van-der-pol": {1e-5, 12},
	"loop":        {1e-3, 20},
	"ring":        {1e-3, 40},
	"beats":       {2.5e-4, 200},
	"quantised":   {2e-5, 20},
	"robertson":   {1e-3, 40},
}

// run returns the error of explicit coupling with held inputs. Rows of results are at least the interval (s) apart.
func run(t *testing.T, s *judged.System, path string, H, stop, interval float64) float64 {
	t.Helper()
	out := filepath.Join(t.TempDir(), "r.csv")
	if _, err := simulate.Run(t.Context(), simulate.Request{System: path, Algorithm: "explicit", Params: map[string]string{"order": "0"},
		Stop: simulate.Number(stop), Step: simulate.Number(H), Interval: interval, Output: out}); err != nil {
		t.Fatal(err)
	}
	e, where, err := judged.Error(s, out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("H = %g s, %g s: %.3g %% (%s)", H, stop, 100*e, where)
	return e
}

// each runs a test of every system, with its path.
func each(t *testing.T, test func(t *testing.T, s *judged.System, path string)) {
	t.Parallel()
	for _, s := range judged.Systems() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			path, err := s.Write(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			test(t, s, path)
		})
	}
}

// TestReference compares FMUs and references, which have no code in common, by runs with fine steps.
func TestReference(t *testing.T) {
	each(t, func(t *testing.T, s *judged.System, path string) {
		f := fine[s.Name]
		if e := run(t, s, path, f.H, f.stop, f.stop/2000); !(e < 2e-3) {
			t.Errorf("the FMUs differ from the reference by %.3g %%, want less than 0.2 %%", 100*e)
		}
	})
}

// TestSteps checks the errors that the documentation of System.Steps promises.
func TestSteps(t *testing.T) {
	each(t, func(t *testing.T, s *judged.System, path string) {
		limits := [4]float64{0, 0.05, 0.5, 10}
		for i, H := range s.Steps {
			if e := run(t, s, path, H, s.Stop, s.Stop/5e4); !(e > limits[i] && e <= limits[i+1]) {
				t.Errorf("with H = %g s the error is %.3g %%, want %g to %g %%", H, 100*e, 100*limits[i], 100*limits[i+1])
			}
		}
	})
}
