package measure_test

import (
	"math"
	"math/cmplx"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// slowest returns the slowest pole of the oscillator of mastertest, with gains of its connections.
func slowest(t *testing.T, gain [3]float64) complex128 {
	t.Helper()
	var eigen mat.Eigen
	if !eigen.Factorize(mat.NewDense(4, 4, []float64{
		0, 1, 0, 0,
		-100, -1, 100 * gain[0], gain[0],
		0, 0, 0, 1,
		100 * gain[1], gain[2], -200, -2,
	}), mat.EigenNone) {
		t.Fatal("no eigenvalues")
	}
	best := complex(math.Inf(-1), 0)
	for _, p := range eigen.Values(nil) {
		if imag(p) >= 0 && real(p) > real(best) {
			best = p
		}
	}
	return best
}

// The slowest mode is that of the exact matrix, and connections move it as their gains in the matrix do. The gain around the loops is the spectral
// radius of the responses to constant inputs over a step.
func TestMode(t *testing.T) {
	const H = 0.01
	o := searching(t, fixed("explicit", "0", H), plain)
	o.Kicks, o.Error = true, 0.01
	out, err := o.Run(t.Context())
	if err != nil || out.Err != nil || out.Motion == nil || out.Motion.Mode == nil {
		t.Fatalf("%v, %+v, %+v", err, out, out.Motion)
	}
	m, p := out.Motion.Mode, slowest(t, [3]float64{1, 1, 1})
	if got := complex(m.Rate, 2*math.Pi*m.Frequency); cmplx.Abs(got-p) > 0.01*cmplx.Abs(p) || math.Abs(real(got)-real(p)) > max(m.Doubt, 0.02*math.Abs(real(p))) ||
		math.Abs(m.Damping+real(p)/cmplx.Abs(p)) > 0.01 {
		t.Errorf("%v, damping ratio %g, doubt %g; want %v", got, m.Damping, m.Doubt, p)
	}
	for i, to := range []string{"first.u1", "second.u1", "second.u2"} {
		more, less := [3]float64{1, 1, 1}, [3]float64{1, 1, 1}
		more[i], less[i] = 1.05, 0.95
		want := slowest(t, more) - slowest(t, less)
		found := false
		for _, c := range m.Connections {
			if c.To != to {
				continue
			}
			found = true
			if got := complex(c.Rate, 2*math.Pi*c.Frequency); cmplx.Abs(got-want) > 0.05*cmplx.Abs(want) {
				t.Errorf("%s: %v, want %v", to, got, want)
			}
		}
		if !found {
			t.Errorf("%s is missing", to)
		}
	}
	response := func(c, d float64) (x, v float64) { // to a constant force of 1, of a mass on a spring c with a damper d
		s := (complex(-d, 0) + cmplx.Sqrt(complex(d*d-4*c, 0))) / 2
		y := (1 - cmplx.Exp(s*H)*complex(1, real(s)/imag(s))) // its real part: cos − σ/ω sin
		return real(y) / c, real(cmplx.Exp(s*H) * complex(0, -1/imag(s)))
	}
	x1, v1 := response(100, 1)
	x2, v2 := response(200, 2)
	// F returns as x1 and v1, and these as F: the square of the gain is its way around.
	if want := math.Sqrt((100*x2 + v2) * (100*x1 + v1)); out.Motion.Gain == nil || math.Abs(*out.Motion.Gain-want) > 0.02*want {
		t.Errorf("gain %v, want %g", out.Motion.Gain, want)
	}
}
