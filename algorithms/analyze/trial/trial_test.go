package trial

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master"
)

// A difference that grows by the same factor in every step is growth; a power of time and a rising wave are not. Kicks of
// different size have to agree, and the remaining differences have to be in proportion to them.
func TestShapes(t *testing.T) {
	pow := func(by float64) func(float64) float64 { return func(n float64) float64 { return math.Pow(by, n) } }
	const linear = 1e-2 // of the small kick's difference to that of the large one
	for name, c := range map[string]struct {
		e     func(n float64) float64
		n     int
		small float64
		want  Kind
		by    float64 // radius; 0 = whatever
	}{
		"grows":                 {pow(1.02), fewSteps, linear, Grows, 1.02},
		"grows slowly":          {pow(1.001), fewSteps, linear, Unknown, 0},
		"slowly, long":          {pow(1.001), Steps, linear, Grows, 1.001},
		"with a ripple":         {func(n float64) float64 { return math.Pow(1.001, n) * (3 + math.Sin(n/7)) }, Steps, linear, Grows, 1.001},
		"too slowly to be seen": {pow(1.0001), Steps, linear, Calm, 0},
		"dies out":              {pow(0.97), fewSteps, linear, Calm, 0.97},
		"to rounding":           {func(n float64) float64 { return max(math.Pow(0.8, n), 1e-12) }, fewSteps, linear, Calm, 0.8},
		"stays":                 {func(n float64) float64 { return 2 + math.Sin(n/5) }, Steps, linear, Calm, 0},
		"with time":             {func(n float64) float64 { return n + 1 }, Steps, linear, Unknown, 0},
		"with a high power":     {func(n float64) float64 { return math.Pow(n+1, 12) }, Steps, linear, Unknown, 0},
		"a wave that rises":     {func(n float64) float64 { return 0.02 + math.Sin(n/Steps*math.Pi/2) }, Steps, linear, Unknown, 0},
		"then grows no more":    {func(n float64) float64 { return 1 / (math.Pow(1.01, 900-n) + 1) }, Steps, linear, Unknown, 0},
		"level at once":         {func(n float64) float64 { return 1 / (math.Pow(1.2, 40-n) + 1) }, Steps, linear, Unknown, 0},
		"not in proportion":     {func(n float64) float64 { return 2 + math.Sin(n/5) }, Steps, 1, Unknown, 0},
	} {
		base, moved := &trace{}, []*trace{{}, {}}
		for n := range c.n {
			base.y = append(base.y, []float64{1, 0})
			for k, size := range []float64{1e-3, 1e-3 * c.small} {
				moved[k].y = append(moved[k].y, []float64{1 + size*c.e(float64(n)), 0})
			}
		}
		got := compare(base, moved, c.n == Steps)
		if got.Kind != c.want || c.by != 0 && math.Abs(got.Radius-c.by) > 0.1*math.Abs(c.by-1)+1e-9 {
			t.Errorf("%s: %d by %g, want %d by %g; %s", name, got.Kind, got.Radius, c.want, c.by, got.Why)
		}
	}
}

// A motion that steps do not resolve, and one that ends early, is unknown even if differences decay.
func TestUnresolved(t *testing.T) {
	for name, c := range map[string]struct {
		y    func(n float64) float64
		err  error
		want Kind
	}{
		"to and fro":    {func(n float64) float64 { return math.Cos(math.Pi * n) }, nil, Unknown},
		"four steps":    {func(n float64) float64 { return math.Sin(math.Pi / 2 * n) }, nil, Unknown},
		"twenty steps":  {func(n float64) float64 { return math.Sin(math.Pi / 10 * n) }, nil, Calm},
		"dies out":      {func(n float64) float64 { return math.Pow(0.99, n) * math.Cos(math.Pi*n) }, nil, Calm},
		"stands still":  {func(n float64) float64 { return 1 }, nil, Calm},
		"only rounding": {func(n float64) float64 { return 1 + 1e-12*math.Cos(math.Pi*n) }, nil, Calm},
		"fails":         {func(n float64) float64 { return 1 }, errors.New("failed"), Unknown},
	} {
		base, moved := &trace{err: c.err}, []*trace{{}, {}}
		for n := range fewSteps {
			base.y = append(base.y, []float64{c.y(float64(n))})
			for k, size := range kicks {
				moved[k].y = append(moved[k].y, []float64{c.y(float64(n)) + size*math.Pow(0.97, float64(n))})
			}
		}
		if got := compare(base, moved, false); got.Kind != c.want {
			t.Errorf("%s: %d, %s", name, got.Kind, got.Why)
		}
	}
}

// A strategy is tried at its nearest steps before the next one, and steps without a try are counted.
func TestFirstComesFirst(t *testing.T) {
	var tried []string
	o := Options{Step: 0.01, From: 0.001, To: 0.1, Time: time.Hour, Observe: func(what string) { tried = append(tried, what) },
		Again: func(context.Context) (*master.System, func() error, error) { return nil, nil, errors.New("none") }}
	all := []*Strategy{{Preset: "gauss-seidel"}, {Preset: "explicit"}}
	if err := Run(t.Context(), o, all); err != nil {
		t.Fatal(err)
	}
	for k, what := range []string{"gauss-seidel, order 0, with steps of 0.01 s", "gauss-seidel", "gauss-seidel", "explicit, order 0, with steps of 0.01 s",
		"explicit", "explicit"} {
		if !strings.Contains(tried[k], what) {
			t.Errorf("trial %d is of %s, want %s", k+1, tried[k], what)
		}
	}
	if len(tried) != 2*points || all[0].Missed+all[1].Missed != 0 {
		t.Errorf("%d trials, missed %d and %d", len(tried), all[0].Missed, all[1].Missed)
	}
	o.Time = 0
	if err := Run(t.Context(), o, all[1:]); err != nil || all[1].Missed != points {
		t.Errorf("without time: missed %d, %v", all[1].Missed, err)
	}
}
