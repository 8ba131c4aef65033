package exact

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// What haid says of his example in 4.1 to 4.3, and numerics makes of it.
func testHaidStatements(t *testing.T) {
	radius := func(ck, dk, H float64, p int, correct bool) float64 {
		o := DefaultHaid()
		o.CK, o.DK = ck, dk
		return Corrected{o, H, p, correct, 1}.Radius()
	}
	// The fourth-order hold loses stability at 1.77e-4 s.
	if a, b := radius(2e5, 5e2, 1.75e-4, 4, false), radius(2e5, 5e2, 1.79e-4, 4, false); !(a < 1 && b > 1) {
		t.Errorf("fourth-order hold: radius %.6f at 1.75e-4 s, %.6f at 1.79e-4 s", a, b)
	}
	// The first-order hold is stable in a window only (Fig. 5).
	for _, c := range []struct {
		H      float64
		stable bool
	}{{1e-4, false}, {1.2e-4, false}, {1.6e-4, true}, {2e-4, true}, {2.9e-4, true}, {3.4e-4, false}, {5e-4, false}} {
		if r := radius(1e9, 3.6e5, c.H, 1, false); (r < 1) != c.stable {
			t.Errorf("first-order hold at %g s: radius %.6f", c.H, r)
		}
	}
	// A local error of 1e-3 takes 7e-6 s without and 2e-4 s with correction (4.3).
	local := func(H float64, p int, correct bool) float64 {
		return Corrected{DefaultHaid(), H, p, correct, 1}.LocalError(int(0.05 / H))
	}
	if e := local(7e-6, 0, false); e < 0.7e-3 || e > 1.4e-3 {
		t.Errorf("zero-order hold at 7e-6 s: local error %.3g", e)
	}
	if e := local(2e-4, 0, true); e < 0.7e-3 || e > 1.4e-3 {
		t.Errorf("zero-order hold, corrected, at 2e-4 s: local error %.3g", e)
	}
	// Each correction gains one order (Fig. 8).
	for p := range 5 {
		if p == 0 && !long.On {
			continue // many steps
		}
		H := []float64{1e-6, 4e-6, 2e-5, 4e-5, 8e-5}[p]
		for _, correct := range []bool{false, true} {
			order := math.Log2(local(2*H, p, correct) / local(H, p, correct))
			want := float64(p + 1)
			if correct {
				want++
			}
			if math.Abs(order-want) > 0.1 {
				t.Errorf("p = %d, corrected %t: local order %.2f, want %g", p, correct, order, want)
			}
		}
	}
}

// The global error by doubled sums is that of the plain sequence.
func TestHaidGlobalError(t *testing.T) {
	for _, c := range []struct {
		o Corrected
		n int
	}{
		{Corrected{DefaultHaid(), 1e-5, 0, false, 1}, 5000}, {Corrected{DefaultHaid(), 1e-4, 1, true, 1}, 1023},
		{Corrected{DefaultHaid(), 2e-4, 2, true, 0.5}, 777}, {Corrected{DefaultHaid(), 1e-3, 2, false, 1}, 100},
	} {
		_, y := c.o.Solve(c.n)
		var reference [][3]float64
		for i := range c.n {
			reference = append(reference, [3]float64(c.o.Outputs(float64(i+1)*c.o.H)))
		}
		if got, want := c.o.GlobalError(c.n), NRMSE(y[1:], reference); !(math.Abs(got/want-1) <= 1e-5) {
			t.Errorf("p = %d, H = %g: %g by doubling, %g by steps", c.o.P, c.o.H, got, want)
		}
	}
}

// What haid says of the accuracy of the zero-order hold in 4.2, over 0.1 s: nothing is
// accurate to 1 % from 3.16e-4 s on; with correction much is, about as much as
// without at 1e-5 s.
func TestHaidAccuracy(t *testing.T) {
	count := func(H float64, correct bool) int {
		n := 0
		for i := range 21 {
			for j := range 15 {
				o := DefaultHaid()
				o.CK, o.DK = math.Pow(10, float64(i)/2), math.Pow(10, float64(j)/2)
				if (Corrected{o, H, 0, correct, 1}).GlobalError(int(0.1/H)) <= 0.01 {
					n++
				}
			}
		}
		return n
	}
	for _, H := range []float64{math.Pow(10, -2.5), 1e-3, math.Pow(10, -3.5)} {
		if n := count(H, false); n > 0 {
			t.Errorf("without correction %d of 315 points are accurate at %.3g s", n, H)
		}
	}
	with, fine := count(math.Pow(10, -3.5), true), count(1e-5, false)
	t.Logf("accurate: %d of 315 points with correction at 3.16e-4 s, %d without at 1e-5 s", with, fine)
	if with < 60 || math.Abs(float64(with-fine)) > 0.2*float64(fine) {
		t.Errorf("%d of 315 points are accurate with correction at 3.16e-4 s, %d without at 1e-5 s", with, fine)
	}
}
