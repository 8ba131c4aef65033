package watch

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// watched returns the recorder of a run whose second output, which feeds an input, is y by the number of the step; the
// first output grows and feeds no input.
func watched(t testing.TB, y func(n int) float64, at func(n int) float64) *Recorder {
	t.Helper()
	return watchedOver(t, y, at, -1)
}

// watchedOver is watched with a recorder that continues from a checkpoint after a step; -1 = none.
func watchedOver(t testing.TB, y func(n int) float64, at func(n int) float64, checkpoint int) *Recorder {
	t.Helper()
	one := mastertest.NewLinear("one", mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}, {2}}}, []float64{1})
	two := mastertest.NewLinear("two", mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{1})
	sys, err := master.NewSystem([]master.Subsystem{one, two}, []master.Connection{
		{From: master.Endpoint{Subsystem: "one", Port: "y2"}, To: master.Endpoint{Subsystem: "two", Port: "u1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := new(Recorder)
	if err := w.Begin(sys, nil); err != nil {
		t.Fatal(err)
	}
	for n := range 600 {
		if err := w.Record(&master.Point{T: at(n), Y: []float64{math.Pow(-2, float64(n)), y(n), 0}}); err != nil {
			t.Fatal(err)
		}
		if n == checkpoint {
			to := master.NewArchive()
			w.Archive(to)
			from := master.ReadArchive(to.Data())
			w = new(Recorder)
			if w.Archive(from); from.Finish() != nil || w.Begin(sys, nil) != nil {
				t.Fatal(from.Finish())
			}
		}
	}
	return w
}

// Growth of unresolved outputs that feed inputs is reported, in steps of one size.
func TestWatch(t *testing.T) {
	even := func(n int) float64 { return 0.1 * float64(n) }
	rng := rand.New(rand.NewPCG(5, 6))
	for name, c := range map[string]struct {
		y     func(n int) float64
		at    func(n int) float64
		grows bool
	}{
		"alternating, fast": {func(n int) float64 { return 300 + 1e-9*math.Pow(-3, float64(n)) }, even, true},
		"oscillating, slow": {func(n int) float64 { return math.Pow(1.05, float64(n)) * math.Cos(1.3*float64(n)) }, even, true},
		"after a while":     {func(n int) float64 { return math.Sin(0.01*float64(n)) + math.Pow(-1.2, float64(n-300)) }, even, true},
		"hardly":            {func(n int) float64 { return math.Pow(-1.001, float64(n)) }, even, false},
		"dies out":          {func(n int) float64 { return math.Pow(-0.9, float64(n)) }, even, false},
		"a resolved growth": {func(n int) float64 { return math.Exp(0.2*float64(n)) * math.Cos(0.1*float64(n)) }, even, false},
		"a power of time":   {func(n int) float64 { return math.Pow(float64(max(n-3, 0)), 12) }, even, false},
		"a jump":            {func(n int) float64 { return 1e6*float64(n/100) + 1e-6*math.Sin(float64(n)) }, even, false},
		"noise":             {func(int) float64 { return rng.NormFloat64() }, even, false},
		"a switch":          {func(n int) float64 { return float64(n / 3 % 2) }, even, false},
		"nothing":           {func(int) float64 { return 0 }, even, false},
		"steps of other sizes": {func(n int) float64 { return math.Pow(-1.5, float64(n)) },
			func(n int) float64 { return 0.1 * math.Pow(1.1, float64(n)) }, false},
	} {
		w := watched(t, c.y, c.at)
		if (w.Text != "") != c.grows {
			t.Errorf("%s: %q", name, w.Text)
		}
	}
	want := "up to t = 1.6 s, one.y2 has grown by 2 in every macro step of 0.1 s"
	if w := watched(t, func(n int) float64 { return math.Pow(-2, float64(n)) }, even); !strings.HasPrefix(w.Text, want) {
		t.Error(w.Text)
	}
}

// Large growth is reported in short runs, unless the steps resolve the motion.
func TestWatchShortRuns(t *testing.T) {
	even := func(n int) float64 { return 0.5 * float64(n) }
	grows := func(by float64) func(n int) float64 {
		return func(n int) float64 { return math.Pow(by, float64(n)) * math.Cos(1.2*float64(n)) }
	}
	for name, c := range map[string]struct {
		y    func(n int) float64
		told bool
	}{
		"1.97 a step":       {grows(1.97), true},
		"5 a step":          {grows(5), true},
		"1.6 a step":        {grows(1.6), false}, // in 20 steps
		"a power of time":   {func(n int) float64 { return math.Pow(float64(n), 9) }, false},
		"a late power":      {func(n int) float64 { return math.Pow(float64(max(n-4, 0)), 6) }, false},
		"resolved":          {func(n int) float64 { return math.Exp(0.3 * float64(n)) }, false},
		"two jumps":         {func(n int) float64 { return 1e3*float64(n/8) + 1e6*float64(n/13) }, false},
		"dies out at first": {func(n int) float64 { return 1e6*math.Pow(-0.1, float64(n)) + math.Sin(float64(n)) }, false},
	} {
		y := func(n int) float64 {
			if n > 20 { // in a straight line from there
				return c.y(20) + float64(n-20)*(c.y(20)-c.y(19))
			}
			return c.y(n)
		}
		if w := watched(t, y, even); (w.Text != "") != c.told {
			t.Errorf("%s: %q", name, w.Text)
		}
	}
}

// A resumed run is watched as if it had not been broken.
func TestWatchResumed(t *testing.T) {
	y := func(n int) float64 { return math.Sin(0.01*float64(n)) + math.Pow(-1.2, float64(n-300)) }
	at := func(n int) float64 { return 0.1 * float64(n) }
	want := watched(t, y, at)
	for n := 0; n < 400; n += 7 {
		if got := watchedOver(t, y, at, n); got.Text != want.Text || !reflect.DeepEqual(got.state, want.state) {
			t.Errorf("resumed after %d steps: %q, want %q", n, got.Text, want.Text)
		}
	}
}

// Record allocates no memory.
func TestWatchAllocates(t *testing.T) {
	w := watched(t, func(n int) float64 { return math.Sin(float64(n)) }, func(n int) float64 { return float64(n) })
	p := master.Point{Y: []float64{1, 2, 3}}
	n := 600.0
	if a := testing.AllocsPerRun(1000, func() {
		p.T, p.Y[1] = n, math.Sin(n)
		n++
		if w.Record(&p) != nil {
			t.Fail()
		}
	}); a > 0 {
		t.Errorf("%g allocations a step", a)
	}
}
