package measure_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/measure"
)

// pair is a system whose first output feeds the second subsystem.
func pair(t *testing.T) *master.System {
	t.Helper()
	gain := func(name string) master.Subsystem {
		return mastertest.NewLinear(name, mastertest.Matrices{D: [][]float64{{1}}}, nil)
	}
	sys, err := master.NewSystem([]master.Subsystem{gain("a"), gain("b")}, []master.Connection{master.Connect("a.y1", "b.u1")})
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// sampled runs f over points with steps of H.
func sampled(t *testing.T, s *measure.Samples, H float64, f func(t float64) (a, b float64)) *measure.Samples {
	t.Helper()
	if err := s.Begin(pair(t), nil); err != nil {
		t.Fatal(err)
	}
	n := int(math.Round((s.Stop - s.Start) / H))
	for k := range n + 1 {
		at := s.Start + float64(k)*H
		a, b := f(at)
		if err := s.Record(&master.Point{T: at, Y: []float64{a, b}, DiscreteOut: make([]master.Values, 2), Watch: make([]master.Values, 2)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(master.Result{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func waves(t float64) (a, b float64) { return math.Sin(t), 5 }

// A run is sampled at its own points, at most two million of two variables, or at those of another: there by interpolation of third order.
func TestSamples(t *testing.T) {
	whole := sampled(t, &measure.Samples{Start: 1, Stop: 11}, 4e-6, waves)
	if n := len(whole.T); n < 1_999_000 || n > 2_000_001 {
		t.Errorf("%d samples", n)
	}
	few := sampled(t, &measure.Samples{Start: 1, Stop: 11}, 0.1, waves)
	if n := len(few.T); n != 101 {
		t.Errorf("%d samples", n)
	}
	for _, H := range []float64{0.025, 0.03, 0.05, 0.07} {
		other := sampled(t, &measure.Samples{Start: 1, Stop: 11, At: func() []float64 { return few.T }}, H, waves)
		if len(other.T) < 99 || !slices.Equal(other.T, few.T[:len(other.T)]) {
			t.Fatalf("steps of %g s: %d samples", H, len(other.T))
		}
		for i, at := range other.T {
			if off := math.Abs(other.V[0][i] - math.Sin(at)); !(off < 0.15*H*H*H) && i > 0 && i < len(other.T)-2 {
				t.Errorf("steps of %g s: off by %.2g at %g s", H, off, at)
			}
		}
	}
}

// A jump is not rounded off beyond its step, nor overshot.
func TestSamplesJump(t *testing.T) {
	jump := func(t float64) (a, b float64) {
		if t > 5.04 {
			return 1, 0
		}
		return 0, 0
	}
	base := sampled(t, &measure.Samples{Start: 0, Stop: 10}, 0.01, jump)
	other := sampled(t, &measure.Samples{Start: 0, Stop: 10, At: func() []float64 { return base.T }}, 0.1, jump)
	for i, at := range other.T {
		v := other.V[0][i]
		if v < 0 || v > 1 || at < 5-1e-9 && v != 0 || at > 5.1+1e-9 && v != 1 {
			t.Errorf("%g at %g s", v, at)
		}
	}
}

// The distance is relative to the motion of the reference. Variables that do not move, and those that feed nothing, are never the worst.
func TestApart(t *testing.T) {
	a := sampled(t, &measure.Samples{Start: 0, Stop: 2 * math.Pi}, math.Pi/500, func(t float64) (a, b float64) { return 3 + 1.02*math.Sin(t), math.Exp(t) })
	b := sampled(t, &measure.Samples{Start: 0, Stop: 2 * math.Pi}, math.Pi/500, func(t float64) (a, b float64) { return 3 + math.Sin(t), 1 })
	d := measure.Apart(a, b, len(a.T))
	if math.Abs(d[0].Relative-0.02) > 1e-4 || math.Abs(d[0].RMS-0.02/math.Sqrt2) > 1e-4 || math.Abs(d[0].Largest-0.02) > 1e-4 || d[0].Still {
		t.Errorf("%+v", d[0])
	}
	if worst, at := a.Worst(d); at != 0 || worst != d[0].Relative {
		t.Errorf("worst %g of %d", worst, at)
	}
	if d := measure.Apart(b, b, len(b.T)); d[0].Relative != 0 || !d[1].Still {
		t.Errorf("%+v", d)
	}
	still := sampled(t, &measure.Samples{Start: 0, Stop: 1}, 0.1, func(float64) (a, b float64) { return 2, 3 })
	if _, at := still.Worst(measure.Apart(still, still, len(still.T))); at != -1 {
		t.Errorf("the worst is %d", at)
	}
}

// Runs are equal to the bit, or the first difference is named.
func TestSame(t *testing.T) {
	a := sampled(t, &measure.Samples{Start: 0, Stop: 1}, 0.1, waves)
	b := sampled(t, &measure.Samples{Start: 0, Stop: 1}, 0.1, func(t float64) (float64, float64) {
		x, y := waves(t)
		if t > 0.45 {
			x = math.Nextafter(x, 2)
		}
		return x, y
	})
	if differs := measure.Same(a, a, len(a.T)); differs != "" {
		t.Error(differs)
	}
	if differs := measure.Same(a, b, len(a.T)); !strings.HasPrefix(differs, "a.y1 at 0.5 s") {
		t.Error(differs)
	}
}

// Points crowded about an event count by the time that they cover.
func TestApartOverTime(t *testing.T) {
	times := []float64{0, 1, 2, 3, 4}
	for i := range 100 {
		times = append(times, 4+1e-6*float64(i+1))
	}
	times = append(times, 5, 6, 7, 8)
	take := func(late float64) *measure.Samples {
		s := &measure.Samples{Stop: 8}
		if err := s.Begin(pair(t), nil); err != nil {
			t.Fatal(err)
		}
		for _, at := range times {
			x := math.Sin(at)
			if at > 4 && at < 5 {
				x += late
			}
			if err := s.Record(&master.Point{T: at, Y: []float64{x, 0}, DiscreteOut: make([]master.Values, 2), Watch: make([]master.Values, 2)}); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	if d := measure.Apart(take(0.1), take(0), len(times)); math.Abs(d[0].RMS-0.1*math.Sqrt(0.5/8)) > 1e-4 {
		t.Errorf("%+v", d[0])
	}
}

// An error may be as large as it is, also relative to a reference that hardly moves or does not at all.
func TestApartFar(t *testing.T) {
	take := func(a float64) *measure.Samples {
		return sampled(t, &measure.Samples{Stop: 2 * math.Pi}, math.Pi/500, func(t float64) (float64, float64) { return a * math.Sin(t), 0 })
	}
	for _, c := range [][3]float64{{1e20, 1, 1e20}, {1, 0, 1e6}, {1e-20, 0, 0}} {
		if d := measure.Apart(take(c[0]), take(c[1]), 1001); !(math.Abs(d[0].Relative-c[2]) <= 1e-3*c[2]) {
			t.Errorf("%g beside %g: %+v", c[0], c[1], d[0])
		}
	}
}

// Values that are no Reals are compared by the time in which they differ, and by their first change.
func TestApartDiscrete(t *testing.T) {
	sys := &master.System{InAt: []int{0, 0}, OutAt: []int{0, 0}, Infos: []*master.Info{{Name: "a",
		DiscreteOut: []master.Port{{Name: "on", Kind: master.Boolean}},
		Watch:       []master.Port{{Name: "text", Kind: master.String}, {Name: "n", Kind: master.Integer}}}}}
	take := func(H, at float64, text string) *measure.Samples {
		s := &measure.Samples{Stop: 10}
		if H < 0.1 {
			s.At = func() []float64 { return steps(0.1) }
		}
		if err := s.Begin(sys, nil); err != nil {
			t.Fatal(err)
		}
		for _, now := range steps(H) {
			p := master.Point{T: now, DiscreteOut: []master.Values{{Boolean: []bool{now > at-1e-9}}}, Watch: []master.Values{{String: []string{text}, Integer: []int64{3}}}}
			if err := s.Record(&p); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.End(master.Result{}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := take(0.1, 4, "x"), take(0.05, 6, "x")
	d := measure.Apart(a, b, 101)
	if math.Abs(d[0].Relative-0.2) > 1e-3 || math.Abs(d[0].Shift-2) > 1e-9 || d[0].Still || !d[1].Still || !d[2].Still || a.Name(1) != "a.n" || a.Name(2) != "a.text" {
		t.Errorf("%+v", d)
	}
	if _, at := a.Worst(d); at != -1 {
		t.Errorf("the worst is %d, which feeds nothing", at)
	}
	if d := measure.Apart(a, take(0.1, 11, "y"), 101); d[2].Relative < 0.999 || d[0].Shift != 0 || d[0].Relative < 0.59 {
		t.Errorf("%+v", d)
	}
}

// steps returns the times from 0 to 10 s.
func steps(H float64) (t []float64) {
	for k := range int(math.Round(10/H)) + 1 {
		t = append(t, float64(k)*H)
	}
	return t
}
