package divergence

import (
	"math"
	"testing"
)

// What becomes of a difference is told by its shape: what grows in every step by as much does, and neither what goes
// with a power of time nor a wave that rises.
func TestFollowsShape(t *testing.T) {
	for name, c := range map[string]struct {
		e    func(n float64) float64
		n    int
		long bool
		want Fate
		by   float64 // radius; 0 = whatever
	}{
		"grows":                 {func(n float64) float64 { return math.Pow(1.02, n) }, 400, false, Grows, 1.02},
		"grows in a few steps":  {func(n float64) float64 { return math.Pow(3, n) }, 14, false, Grows, 3},
		"grows slowly":          {func(n float64) float64 { return math.Pow(1.001, n) }, 400, false, Undecided, 0},
		"slowly, long":          {func(n float64) float64 { return math.Pow(1.001, n) }, 2000, true, Grows, 1.001},
		"with a ripple":         {func(n float64) float64 { return math.Pow(1.001, n) * (1.3 + math.Sin(n/7)) }, 2000, true, Grows, 1.001},
		"too slowly to be seen": {func(n float64) float64 { return math.Pow(1.0001, n) }, 2000, true, Calm, 0},
		"dies out":              {func(n float64) float64 { return math.Pow(0.97, n) }, 400, false, Calm, 0.97},
		"to noise":              {func(n float64) float64 { return max(math.Pow(0.8, n), 1e-13) }, 400, false, Calm, 0.8},
		"stays":                 {func(n float64) float64 { return 2 + math.Sin(n/5) }, 2000, true, Calm, 0},
		"with time":             {func(n float64) float64 { return n + 1 }, 2000, true, Calm, 1},
		"with its square":       {func(n float64) float64 { return (n + 1) * (n + 1) }, 2000, true, Calm, 1},
		"with a high power":     {func(n float64) float64 { return math.Pow(n+1, 12) }, 2000, true, Undecided, 0},
		"a wave that rises":     {func(n float64) float64 { return 0.02 + math.Sin(n/2000*math.Pi/2) }, 2000, true, Undecided, 0},
		"then grows no more":    {func(n float64) float64 { return 1 / (math.Pow(1.01, 900-n) + 1) }, 2000, true, Undecided, 0},
	} {
		e, noise := make([]float64, c.n), make([]float64, c.n)
		for n := range e {
			e[n], noise[n] = c.e(float64(n)), 1e-13
		}
		got := judge(e, noise, c.long)
		if got.Kind != c.want || c.by != 0 && math.Abs(got.Radius-c.by) > 0.1*math.Abs(c.by-1)+1e-9 {
			t.Errorf("%s: %d by %g, want %d by %g; %s", name, got.Kind, got.Radius, c.want, c.by, got.Why)
		}
	}
}

// Kicks of different size have to agree, and what is left of what they make has to go with their size.
func TestKicksAgree(t *testing.T) {
	of := func(kick float64, kind Fate, radius, peak, end float64) Pursuit {
		return Pursuit{kick: kick, Finding: Finding{Kind: kind, Radius: radius}, peak: peak, end: end}
	}
	for name, c := range map[string]struct {
		seen []Pursuit
		want Fate
		done bool
	}{
		"one":            {[]Pursuit{of(1e-3, Calm, 0.9, 1, 0)}, Unknown, false},
		"one is noise":   {[]Pursuit{of(1e-3, Calm, 0.9, 1, 0), of(1e-5, Lost, 0, 0, 0)}, Unknown, false},
		"calm":           {[]Pursuit{of(1e-3, Calm, 0.9, 1, 1e-9), of(1e-5, Calm, 0.9, 1e-2, 1e-9)}, Calm, true},
		"level":          {[]Pursuit{of(1e-3, Calm, 1, 1, 0.5), of(1e-5, Calm, 1, 1e-2, 0.5e-2)}, Calm, true},
		"a part is left": {[]Pursuit{of(1e-3, Calm, 1, 1, 0.5), of(1e-5, Calm, 1, 1, 0.5)}, Unknown, true},
		"grow":           {[]Pursuit{of(1e-3, Grows, 1.1, 1, 1), of(1e-5, Grows, 1.1, 1, 1)}, Grows, true},
		"differently":    {[]Pursuit{of(1e-3, Grows, 1.1, 1, 1), of(1e-5, Grows, 1.3, 1, 1)}, Undecided, true},
		"contradict":     {[]Pursuit{of(1e-3, Grows, 1.1, 1, 1), of(1e-5, Calm, 0.9, 1, 0)}, Unknown, true},
		"one is bounded": {[]Pursuit{of(1e-3, Bounded, 1.1, 1, 1), of(1e-5, Grows, 1.1, 1, 1)}, Bounded, true},
	} {
		if got, done := Together(c.seen); got.Kind != c.want || done != c.done {
			t.Errorf("%s: %d, %t, want %d, %t; %s", name, got.Kind, done, c.want, c.done, got.Why)
		}
	}
}

// A motion that goes on from step to step is not resolved; one that dies out, or is slower, is another thing.
func TestJagged(t *testing.T) {
	for name, c := range map[string]struct {
		Y    func(n float64) float64
		want bool
	}{
		"to and fro":    {func(n float64) float64 { return math.Cos(math.Pi * n) }, true},
		"four steps":    {func(n float64) float64 { return math.Sin(math.Pi / 2 * n) }, true},
		"twenty steps":  {func(n float64) float64 { return math.Sin(math.Pi / 10 * n) }, false},
		"dies out":      {func(n float64) float64 { return math.Pow(0.99, n) * math.Cos(math.Pi*n) }, false},
		"stands still":  {func(n float64) float64 { return 1 }, false},
		"only rounding": {func(n float64) float64 { return 1 + 1e-12*math.Cos(math.Pi*n) }, false},
	} {
		r := &Trace{Size: []float64{1}}
		for n := range 300 {
			r.Y = append(r.Y, []float64{c.Y(float64(n))})
		}
		if got := r.jagged(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
