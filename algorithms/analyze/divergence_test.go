package analyze

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
		want fate
		by   float64 // radius; 0 = whatever
	}{
		"grows":                 {func(n float64) float64 { return math.Pow(1.02, n) }, 400, false, grows, 1.02},
		"grows in a few steps":  {func(n float64) float64 { return math.Pow(3, n) }, 14, false, grows, 3},
		"grows slowly":          {func(n float64) float64 { return math.Pow(1.001, n) }, 400, false, undecided, 0},
		"slowly, long":          {func(n float64) float64 { return math.Pow(1.001, n) }, 2000, true, grows, 1.001},
		"with a ripple":         {func(n float64) float64 { return math.Pow(1.001, n) * (1.3 + math.Sin(n/7)) }, 2000, true, grows, 1.001},
		"too slowly to be seen": {func(n float64) float64 { return math.Pow(1.0001, n) }, 2000, true, calm, 0},
		"dies out":              {func(n float64) float64 { return math.Pow(0.97, n) }, 400, false, calm, 0.97},
		"to noise":              {func(n float64) float64 { return max(math.Pow(0.8, n), 1e-13) }, 400, false, calm, 0.8},
		"stays":                 {func(n float64) float64 { return 2 + math.Sin(n/5) }, 2000, true, calm, 0},
		"with time":             {func(n float64) float64 { return n + 1 }, 2000, true, calm, 1},
		"with its square":       {func(n float64) float64 { return (n + 1) * (n + 1) }, 2000, true, calm, 1},
		"with a high power":     {func(n float64) float64 { return math.Pow(n+1, 12) }, 2000, true, undecided, 0},
		"a wave that rises":     {func(n float64) float64 { return 0.02 + math.Sin(n/2000*math.Pi/2) }, 2000, true, undecided, 0},
		"then grows no more":    {func(n float64) float64 { return 1 / (math.Pow(1.01, 900-n) + 1) }, 2000, true, undecided, 0},
	} {
		e, noise := make([]float64, c.n), make([]float64, c.n)
		for n := range e {
			e[n], noise[n] = c.e(float64(n)), 1e-13
		}
		got := follow(e, noise, c.long)
		if got.kind != c.want || c.by != 0 && math.Abs(got.radius-c.by) > 0.1*math.Abs(c.by-1)+1e-9 {
			t.Errorf("%s: %d by %g, want %d by %g; %s", name, got.kind, got.radius, c.want, c.by, got.why)
		}
	}
}

// Kicks of different size have to agree, and what is left of what they make has to go with their size.
func TestKicksAgree(t *testing.T) {
	of := func(kick float64, kind fate, radius, peak, end float64) pursuit {
		return pursuit{kick: kick, finding: finding{kind: kind, radius: radius}, peak: peak, end: end}
	}
	for name, c := range map[string]struct {
		seen []pursuit
		want fate
		done bool
	}{
		"one":            {[]pursuit{of(1e-3, calm, 0.9, 1, 0)}, unknown, false},
		"one is noise":   {[]pursuit{of(1e-3, calm, 0.9, 1, 0), of(1e-5, lost, 0, 0, 0)}, unknown, false},
		"calm":           {[]pursuit{of(1e-3, calm, 0.9, 1, 1e-9), of(1e-5, calm, 0.9, 1e-2, 1e-9)}, calm, true},
		"level":          {[]pursuit{of(1e-3, calm, 1, 1, 0.5), of(1e-5, calm, 1, 1e-2, 0.5e-2)}, calm, true},
		"a part is left": {[]pursuit{of(1e-3, calm, 1, 1, 0.5), of(1e-5, calm, 1, 1, 0.5)}, unknown, true},
		"grow":           {[]pursuit{of(1e-3, grows, 1.1, 1, 1), of(1e-5, grows, 1.1, 1, 1)}, grows, true},
		"differently":    {[]pursuit{of(1e-3, grows, 1.1, 1, 1), of(1e-5, grows, 1.3, 1, 1)}, undecided, true},
		"contradict":     {[]pursuit{of(1e-3, grows, 1.1, 1, 1), of(1e-5, calm, 0.9, 1, 0)}, unknown, true},
		"one is bounded": {[]pursuit{of(1e-3, bounded, 1.1, 1, 1), of(1e-5, grows, 1.1, 1, 1)}, bounded, true},
	} {
		if got, done := together(c.seen); got.kind != c.want || done != c.done {
			t.Errorf("%s: %d, %t, want %d, %t; %s", name, got.kind, done, c.want, c.done, got.why)
		}
	}
}

// A motion that goes on from step to step is not resolved; one that dies out, or is slower, is another thing.
func TestJagged(t *testing.T) {
	for name, c := range map[string]struct {
		y    func(n float64) float64
		want bool
	}{
		"to and fro":    {func(n float64) float64 { return math.Cos(math.Pi * n) }, true},
		"four steps":    {func(n float64) float64 { return math.Sin(math.Pi / 2 * n) }, true},
		"twenty steps":  {func(n float64) float64 { return math.Sin(math.Pi / 10 * n) }, false},
		"dies out":      {func(n float64) float64 { return math.Pow(0.99, n) * math.Cos(math.Pi*n) }, false},
		"stands still":  {func(n float64) float64 { return 1 }, false},
		"only rounding": {func(n float64) float64 { return 1 + 1e-12*math.Cos(math.Pi*n) }, false},
	} {
		r := &trace{size: []float64{1}}
		for n := range 300 {
			r.y = append(r.y, []float64{c.y(float64(n))})
		}
		if got := r.jagged(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
