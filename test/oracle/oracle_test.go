package oracle

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
)

// There are 4·max(k, 1) eigenvalues implicit and 4(k+1) explicit (schweizer 2.1 as corrected). Each past point adds
// as many that are not 0 as there are independent coupling forces: one in force/force, else one per mass.
func TestEigenvalueCount(t *testing.T) {
	o := exact.TwoMass{M1: 1, C1: 1.3, D1: 0.6, M2: 1.4, C2: 1.265, D2: 1.008, Cc: 2.47, Dc: 0.63}
	for _, s := range Methods(3) {
		all, past, forces := 4*(s.Order+1), s.Order, 2
		if s.Implicit {
			all, past = 4*max(s.Order, 1), max(s.Order-1, 0)
		}
		if s.Decomposition == "ff" {
			forces = 1
		}
		e := Eigenvalues(Propagation(o, s, 1))
		// Zeros of a Jordan block of size 3 come out as 1e-16 to the power of 1/3.
		nonzero := slices.IndexFunc(e, func(v complex128) bool { return cmplx.Abs(v) < 1e-4 })
		if nonzero < 0 {
			nonzero = len(e)
		}
		if len(e) != all || nonzero != 4+forces*past {
			t.Errorf("%v: %d eigenvalues, %d of them not 0; want %d and %d", s, len(e), nonzero, all, 4+forces*past)
		}
	}
}

// In force/force of the symmetric model the masses in phase do not feel the coupling: e^{λr ± iλi} are eigenvalues,
// and ρ ≥ e^{λr}.
func TestInPhase(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		r, i := -2*random.Float64(), 10*random.Float64()
		want := cmplx.Exp(complex(r, i))
		for _, s := range Methods(3) {
			if s.Decomposition != "ff" {
				continue
			}
			e := Eigenvalues(Propagation(Symmetric(r, i), s, 1))
			near := math.Inf(1)
			for _, v := range e {
				near = min(near, cmplx.Abs(v-want))
			}
			if !(near < 1e-9) || cmplx.Abs(e[0]) < math.Exp(r)-1e-12 {
				t.Errorf("%v at %g%+gi: the nearest eigenvalue is off by %.2g, ρ = %g", s, r, i, near, cmplx.Abs(e[0]))
			}
		}
	}
}

// Global errors fall with H^(k+1), local ones with H^(k+3) in the positions and H^(k+2) in the velocities (schweizer
// 3.2). The start lies between the phases in which the leading term of a local error vanishes.
func TestOrders(t *testing.T) {
	o := exact.DefaultTwoMass()
	o.Start = [4]float64{0.6, -30, -0.4, 25}
	for _, s := range Methods(3) {
		s.History = true
		var H, gp, gv, lp, lv []float64
		for _, steps := range []int{1600, 2400, 3600} {
			h := 0.5 / float64(steps)
			states, _ := States(o, s, h, steps)
			var times []float64
			for n := range states {
				times = append(times, float64(n)*h)
			}
			p, v := GlobalError(o, times, states)
			H, gp, gv = append(H, h), append(gp, p), append(gv, v)
		}
		local := []float64{1e-3, 5e-4, 2.5e-4}
		for _, h := range local {
			states, _ := States(o, s, h, 1)
			x := o.At(h)
			lp = append(lp, math.Hypot(states[1][0]-x[0], states[1][2]-x[2]))
			lv = append(lv, math.Hypot(states[1][1]-x[1], states[1][3]-x[3]))
		}
		k := float64(s.Order)
		for _, c := range []struct {
			what                 string
			got, want, tolerance float64
		}{
			{"global, positions", Slope(H, gp), k + 1, 0.02},
			{"global, velocities", Slope(H, gv), k + 1, 0.02},
			{"local, positions", Slope(local, lp), k + 3, 0.1},
			{"local, velocities", Slope(local, lv), k + 2, 0.1},
		} {
			if !(math.Abs(c.got-c.want) <= c.tolerance) {
				t.Errorf("%v: order %.3f, %s; want %g ± %g", s, c.got, c.what, c.want, c.tolerance)
			}
		}
	}
}

// What schweizer 3.1 reads off Figs. 5–10, on the grids of the figures: the number of stable points of the symmetric
// model.
func TestStableRegions(t *testing.T) {
	stable := func(s Scheme) (n int) {
		width := 2.0
		if s.Implicit {
			width = 10
		}
		const points = 40
		for i := 0; i <= points; i++ {
			for j := 1; j <= points; j++ {
				o := Symmetric(-2*float64(i)/points, width*float64(j)/points)
				if cmplx.Abs(Eigenvalues(Propagation(o, s, 1))[0]) <= 1+1e-10 {
					n++
				}
			}
		}
		return n
	}
	count := map[string]int{}
	for _, s := range Methods(3) {
		count[s.String()] = stable(s)
	}
	at := func(d string, implicit bool, k int) int {
		return count[Scheme{Decomposition: d, Implicit: implicit, Order: k}.String()]
	}
	for _, d := range []string{"ff", "fd", "dd"} {
		for k := 1; k <= 3; k++ {
			if !(at(d, false, k) < at(d, false, k-1)) {
				t.Errorf("explicit %s: %d stable points at k = %d, %d at %d; a higher order has fewer", d,
					at(d, false, k), k, at(d, false, k-1), k-1)
			}
			if k > 1 && !(at(d, true, k) < at(d, true, k-1)) {
				t.Errorf("implicit %s: %d stable points at k = %d, %d at %d; a higher order has fewer", d,
					at(d, true, k), k, at(d, true, k-1), k-1)
			}
		}
		// k = 0 is less stable than k = 1 but in force/force.
		if better := at(d, true, 0) > at(d, true, 1); better != (d == "ff") {
			t.Errorf("implicit %s: %d stable points at k = 0, %d at 1", d, at(d, true, 0), at(d, true, 1))
		}
	}
	for k := 0; k <= 3; k++ {
		if !(at("dd", false, k) > at("fd", false, k) && at("dd", false, k) > at("ff", false, k)) {
			t.Errorf("explicit, k = %d: %d stable points in dd, %d in fd, %d in ff; dd has most", k,
				at("dd", false, k), at("fd", false, k), at("ff", false, k))
		}
	}
}

// "The implicit schemes are also stable for very large values" (schweizer 3.1.1).
func TestImplicitStableFarOut(t *testing.T) {
	for _, s := range Methods(3) {
		if !s.Implicit {
			continue
		}
		for _, far := range []float64{50, 200, 600} {
			o := Symmetric(-far, far)
			if radius := cmplx.Abs(Eigenvalues(Propagation(o, s, 1))[0]); !(radius < 1) {
				t.Errorf("%v at %g%+gi: spectral radius %g", s, -far, far, radius)
			}
		}
	}
}
