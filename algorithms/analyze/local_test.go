package analyze

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/long"
)

// localOf returns the local error of haid's oscillator by its propagation matrix, of the output where
// it is largest, and that output.
func localOf(o exact.Haid, H float64, k, steps int) (worst float64, of string) {
	c := exact.Corrected{Haid: o, H: H, P: k}
	phi := c.Propagation()
	size, _ := phi.Dims()
	for out, name := range []string{"one.y1", "one.y2", "two.y1"} {
		mean, square, e := 0.0, 0.0, 0.0
		var want []float64
		for i := k; i < steps; i++ {
			t := float64(i) * H
			z := mat.NewVecDense(size, nil)
			for n, v := range o.States(t) {
				z.SetVec(n, v)
			}
			for j := range k + 1 {
				for n, v := range o.Outputs(t - float64(j)*H) {
					z.SetVec(4+3*j+n, v)
				}
			}
			var next mat.VecDense
			next.MulVec(phi, z)
			v := o.Outputs(t + H)[out]
			e += (next.AtVec(4+out) - v) * (next.AtVec(4+out) - v)
			want = append(want, v)
		}
		for _, v := range want {
			mean += v / float64(len(want))
		}
		for _, v := range want {
			square += (v - mean) * (v - mean)
		}
		if v := math.Sqrt(e / square); v > worst {
			worst, of = v, name
		}
	}
	return worst, of
}

// The local errors that are expected are those that the coupling makes, by the independent
// propagation matrix, and grow with the power of the step that the order asks for.
func TestLocalErrors(t *testing.T) {
	const H = 5e-5
	stop, highest := 0.1, 1
	if long.On {
		stop, highest = 1, 2
	}
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.3}
	for name, caps := range map[string]func(*master.Caps){
		"derivatives": nil,
		"held":        func(c *master.Caps) { c.InputDerivatives = false },
	} {
		if name == "held" && !long.On {
			continue
		}
		r, err := Run(t.Context(), analyzetest.Haid(t, o, analyzetest.With(caps)), Options{Step: H, Stop: stop, Order: highest, From: H, To: 2 * H})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			switch {
			case s.Preset == "model-based-corrector":
				if s.Local != nil || s.WhyNoLocal == "" {
					t.Errorf("%s: %+v", s.Preset, s)
				}
				continue
			case s.Local == nil:
				t.Errorf("%s: %s, order %d: %s", name, s.Preset, s.Order, s.WhyNoLocal)
				continue
			}
			t.Logf("%s: %s, order %d: %+v", name, s.Preset, s.Order, *s.Local)
			if s.Preset != "explicit" {
				continue
			}
			steps := int(math.Round(r.Horizon / H))
			want, of := localOf(o, H, s.Order, steps)
			if math.Abs(s.Local.Error-want) > 0.2*want || s.Local.Of != of {
				t.Errorf("%s: order %d: %+v, want %g of %s", name, s.Order, *s.Local, want, of)
			}
			half, _ := localOf(o, H/2, s.Order, steps)
			twice, _ := localOf(o, 2*H, s.Order, steps)
			if slope := math.Log(twice/half) / math.Log(4); math.Abs(s.Local.Growth-slope) > 0.1 || math.Abs(slope-float64(s.Order)-1) > 0.5 {
				t.Errorf("%s: order %d: grows by the power %.3f, want %.3f", name, s.Order, s.Local.Growth, slope)
			}
		}
	}
}
