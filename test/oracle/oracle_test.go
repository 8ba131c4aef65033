package oracle

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
)

var decompositions = []string{"ff", "fd", "dd"}

// uneven tells the two masses apart.
var uneven = exact.TwoMass{
	M1: 1, C1: 1000, D1: 10, M2: 1.75, C2: 700, D2: 12, Cc: 850, Dc: 7,
	Start: [4]float64{1, -20, -0.5, 30},
}

// methods gives the schemes with all orders up to highest.
func methods(highest int) []Scheme {
	var out []Scheme
	for _, d := range decompositions {
		for _, implicit := range []bool{false, true} {
			for k := 0; k <= highest; k++ {
				out = append(out, Scheme{Decomposition: d, Implicit: implicit, Order: k})
			}
		}
	}
	return out
}

// oscillator is one mass as it stands in schweizer (7), (25b) and (30): m x” +
// d x' + c x = what drives it.
type oscillator struct{ m, c, d float64 }

// free gives the solution without input at time t: the closed form of the damped
// oscillator.
func (o oscillator) free(x [2]float64, t float64) [2]float64 {
	r := -o.d / (2 * o.m)
	w := math.Sqrt(4*o.m*o.c-o.d*o.d) / (2 * o.m)
	e, cos, sin := math.Exp(r*t), math.Cos(w*t), math.Sin(w*t)/w
	return [2]float64{
		e * (x[0]*cos + (x[1]-r*x[0])*sin),
		e * (x[1]*cos + (r*x[1]-(r*r+w*w)*x[0])*sin),
	}
}

// driven gives the solution at H under a force, by Gauss quadrature on panels
// between the breaks of the force.
func (o oscillator) driven(x [2]float64, H float64, panels int, force func(s float64) float64) [2]float64 {
	end := o.free(x, H)
	var s, w [16]float64
	for p := range panels {
		h := H / float64(panels)
		quad.Legendre{}.FixedLocations(s[:], w[:], float64(p)*h, float64(p+1)*h)
		for i := range s {
			kick := o.free([2]float64{0, force(s[i]) / o.m}, H-s[i])
			end[0] += w[i] * kick[0]
			end[1] += w[i] * kick[1]
		}
	}
	return end
}

// neville gives the polynomial through (t, v) at z.
func neville(t, v []float64, z float64) float64 {
	p := slices.Clone(v)
	for m := 1; m < len(p); m++ {
		for i := range len(p) - m {
			p[i] = ((z-t[i+m])*p[i] + (t[i]-z)*p[i+1]) / (t[i] - t[i+m])
		}
	}
	return p[0]
}

// simulate takes macro steps as schweizer 2 describes them, coupling variable by
// coupling variable: λ for a mass driven by the force, x̃ and ṽ for one driven by
// motion. The interface equation of implicit schemes is affine in the unknowns at
// T_{N+1}: its value at 0 and at the unit vectors gives its solution.
func simulate(o exact.TwoMass, s Scheme, H float64, steps int) [][4]float64 {
	byForce := [2]bool{s.Decomposition != "dd", s.Decomposition == "ff"}
	masses := [2]oscillator{{o.M1, o.C1, o.D1}, {o.M2, o.C2, o.D2}}
	for i := range masses {
		if !byForce[i] {
			masses[i].c += o.Cc
			masses[i].d += o.Dc
		}
	}
	// The coupling variables of both masses at a point.
	inputs := func(i int, x [4]float64) []float64 {
		switch {
		case byForce[i]:
			return []float64{(1 - 2*float64(i)) * (o.Cc*(x[2]-x[0]) + o.Dc*(x[3]-x[1]))}
		default:
			return []float64{x[2-2*i], x[3-2*i]}
		}
	}
	var past [][4]float64 // newest first
	points := 1
	if s.History {
		points = s.Order + 1
	}
	for j := range points {
		past = append(past, o.At(-float64(j)*H))
	}
	panels := 4
	if s.Substeps > 0 {
		panels = s.Substeps // the force jumps between them
	}
	// step takes mass i over the macro step; end are its coupling variables at
	// T_{N+1}, nil if the polynomial does not know them.
	step := func(i int, end []float64) [2]float64 {
		var t []float64
		var u [][]float64
		if end != nil {
			t, u = append(t, H), append(u, end)
		}
		for j := 0; j < len(past) && len(t) <= s.Order; j++ {
			t, u = append(t, -float64(j)*H), append(u, inputs(i, past[j]))
		}
		force := func(z float64) float64 {
			if s.Substeps > 0 {
				h := H / float64(s.Substeps)
				z = (math.Floor(z/h) + 0.5) * h
			}
			var at []float64
			for c := range u[0] {
				v := make([]float64, len(u))
				for j := range u {
					v[j] = u[j][c]
				}
				at = append(at, neville(t, v, z))
			}
			if byForce[i] {
				return at[0]
			}
			return o.Cc*at[0] + o.Dc*at[1]
		}
		return masses[i].driven([2]float64(past[0][2*i:2*i+2]), H, panels, force)
	}
	both := func(end [2][]float64) (x [4]float64) {
		for i := range 2 {
			m := step(i, end[i])
			x[2*i], x[2*i+1] = m[0], m[1]
		}
		return x
	}
	states := [][4]float64{past[0]}
	for range steps {
		var x [4]float64
		switch {
		case s.Implicit:
			count := len(inputs(0, x))
			split := func(w []float64) [2][]float64 { return [2][]float64{w[:count], w[count:]} }
			residual := func(w []float64) []float64 {
				y := both(split(w))
				r := append(inputs(0, y), inputs(1, y)...)
				for j := range r {
					r[j] = w[j] - r[j]
				}
				return r
			}
			n := count + len(inputs(1, x))
			r0 := residual(make([]float64, n))
			jacobian := mat.NewDense(n, n, nil)
			for j := range n {
				unit := make([]float64, n)
				unit[j] = 1
				for i, v := range residual(unit) {
					jacobian.Set(i, j, v-r0[i])
				}
			}
			var w mat.VecDense
			if err := w.SolveVec(jacobian, mat.NewVecDense(n, r0)); err != nil {
				panic(err)
			}
			w.ScaleVec(-1, &w)
			x = both(split(w.RawVector().Data))
		case s.Sequence != nil:
			first := s.Sequence[0]
			m := step(first, nil)
			x[2*first], x[2*first+1] = m[0], m[1]
			second := 1 - first
			var end []float64
			if !byForce[second] {
				end = inputs(second, x)
			}
			m = step(second, end)
			x[2*second], x[2*second+1] = m[0], m[1]
		default:
			x = both([2][]float64{})
		}
		past = append([][4]float64{x}, past[:min(len(past), s.Order+1)]...)
		states = append(states, x)
	}
	return states
}

// The matrices are the recursion: every decomposition, scheme, order and start,
// 100 steps to 1e-12 of the largest value.
func TestRecursion(t *testing.T) {
	const H, steps, tolerance = 1e-3, 100, 1e-12
	for _, s := range methods(5) {
		var cases []Scheme
		for _, history := range []bool{false, true} {
			s.History = history
			s.Substeps = 0
			cases = append(cases, s)
			s.Substeps = 3
			cases = append(cases, s)
			s.Substeps = 0
			if !s.Implicit {
				for _, q := range [][]int{{0, 1}, {1, 0}} {
					c := s
					c.Sequence = q
					cases = append(cases, c)
				}
			}
		}
		for _, c := range cases {
			got, _ := States(uneven, c, H, steps)
			want := simulate(uneven, c, H, steps)
			if d := distance(got, want); !(d <= tolerance) {
				t.Errorf("%v, history %t, substeps %d: off by %.2g", c, c.History, c.Substeps, d)
			}
		}
	}
}

// distance is the largest difference in units of the largest value of its column.
func distance(a, b [][4]float64) float64 {
	worst := 0.0
	for c := range 4 {
		size, d := 0.0, 0.0
		for n := range b {
			size = max(size, math.Abs(b[n][c]))
			d = max(d, math.Abs(a[n][c]-b[n][c]))
		}
		worst = max(worst, d/size)
	}
	return worst
}

// There are 4·max(k, 1) eigenvalues implicit and 4(k+1) explicit (schweizer 2.1
// as corrected). Each past point adds as many that are not 0 as there are
// independent coupling forces: one in force/force, else one per mass.
func TestEigenvalueCount(t *testing.T) {
	o := Dimensionless{R: -0.3, I: 1.1, Mass: 1.4, R21: 1.2, I21: 0.8, Rc: 0.9, Ic: 1.3, MacroStepH: 1}.TwoMass()
	for _, s := range methods(3) {
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

// In force/force of the symmetric model the masses in phase do not feel the
// coupling: e^{λr ± iλi} are eigenvalues, and ρ ≥ e^{λr}.
func TestInPhase(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		r, i := -2*random.Float64(), 10*random.Float64()
		want := cmplx.Exp(complex(r, i))
		for _, s := range methods(3) {
			if s.Decomposition != "ff" {
				continue
			}
			e := Eigenvalues(Propagation(Symmetric(r, i).TwoMass(), s, 1))
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

// The dimensionless parameters (35) follow from (5) of the oscillator.
func TestDimensionless(t *testing.T) {
	p := Dimensionless{R: -0.3, I: 1.1, Mass: 1.4, R21: 1.2, I21: 0.8, Rc: 0.9, Ic: 1.3, MacroStepH: 0.02}
	o, H := p.TwoMass(), p.MacroStepH
	c1, d1, am := o.C1*H*H/o.M1, o.D1*H/o.M1, o.M2/o.M1
	ac, ad, acc, adc := o.C2/o.C1, o.D2/o.D1, o.Cc/o.C1, o.Dc/o.D1
	star := 2 * am / (1 + am)
	root := math.Sqrt(4*c1 - d1*d1)
	got := []float64{-d1 / 2, root / 2, am, ad / am, math.Sqrt(4*am*ac*c1-ad*ad*d1*d1) / root / am, adc / star,
		math.Sqrt(4*star*acc*c1-adc*adc*d1*d1) / root / star}
	for i, want := range []float64{p.R, p.I, p.Mass, p.R21, p.I21, p.Rc, p.Ic} {
		if math.Abs(got[i]-want) > 1e-14 {
			t.Errorf("parameter %d is %.17g, want %g", i, got[i], want)
		}
	}
	s := Symmetric(-0.2, 1.5).TwoMass()
	if s.C1 != 0.2*0.2+1.5*1.5 || s.D1 != 0.4 || s.C2 != s.C1 || s.Cc != s.C1 || s.D2 != s.D1 || s.Dc != s.D1 || s.M2 != 1 {
		t.Errorf("the symmetric model is %+v", s)
	}
}

// Global errors fall with H^(k+1), local ones with H^(k+3) in the positions and
// H^(k+2) in the velocities (schweizer 3.2). The start lies between the phases
// in which the leading term of a local error vanishes.
func TestOrders(t *testing.T) {
	o := exact.DefaultTwoMass()
	o.Start = [4]float64{0.6, -30, -0.4, 25}
	for _, s := range methods(3) {
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

// What schweizer 3.1 reads off Figs. 5–10, on the grids of the figures: the
// number of stable points of the symmetric model.
func TestStableRegions(t *testing.T) {
	stable := func(s Scheme) (n int) {
		width := 2.0
		if s.Implicit {
			width = 10
		}
		const points = 40
		for i := 0; i <= points; i++ {
			for j := 1; j <= points; j++ {
				o := Symmetric(-2*float64(i)/points, width*float64(j)/points).TwoMass()
				if cmplx.Abs(Eigenvalues(Propagation(o, s, 1))[0]) <= 1+1e-10 {
					n++
				}
			}
		}
		return n
	}
	count := map[string]int{}
	for _, s := range methods(3) {
		count[s.String()] = stable(s)
	}
	at := func(d string, implicit bool, k int) int {
		return count[Scheme{Decomposition: d, Implicit: implicit, Order: k}.String()]
	}
	for _, d := range decompositions {
		for k := 1; k <= 3; k++ {
			if !(at(d, false, k) < at(d, false, k-1)) {
				t.Errorf("explicit %s: %d stable points at k = %d, %d at %d; a higher order has fewer", d, at(d, false, k), k, at(d, false, k-1), k-1)
			}
			if k > 1 && !(at(d, true, k) < at(d, true, k-1)) {
				t.Errorf("implicit %s: %d stable points at k = %d, %d at %d; a higher order has fewer", d, at(d, true, k), k, at(d, true, k-1), k-1)
			}
		}
		// k = 0 is less stable than k = 1 but in force/force.
		if better := at(d, true, 0) > at(d, true, 1); better != (d == "ff") {
			t.Errorf("implicit %s: %d stable points at k = 0, %d at 1", d, at(d, true, 0), at(d, true, 1))
		}
	}
	for k := 0; k <= 3; k++ {
		if !(at("dd", false, k) > at("fd", false, k) && at("dd", false, k) > at("ff", false, k)) {
			t.Errorf("explicit, k = %d: %d stable points in dd, %d in fd, %d in ff; dd has most", k, at("dd", false, k), at("fd", false, k), at("ff", false, k))
		}
	}
}

// "The implicit schemes are also stable for very large values" (schweizer 3.1.1).
func TestImplicitStableFarOut(t *testing.T) {
	for _, s := range methods(3) {
		if !s.Implicit {
			continue
		}
		for _, far := range []float64{50, 200, 600} {
			o := Symmetric(-far, far).TwoMass()
			if radius := cmplx.Abs(Eigenvalues(Propagation(o, s, 1))[0]); !(radius < 1) {
				t.Errorf("%v at %g%+gi: spectral radius %g", s, -far, far, radius)
			}
		}
	}
}

// Fit finds the dominant eigenvalue from a trajectory, whatever the start.
func TestFit(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	tried := 0
	for _, s := range methods(5) {
		for range 20 {
			p := Dimensionless{R: -random.Float64(), I: 0.2 + 2*random.Float64(), Mass: 0.5 + random.Float64(),
				R21: 0.5 + random.Float64(), I21: 0.5 + random.Float64(), Rc: 0.5 + random.Float64(), Ic: 0.5 + random.Float64(), MacroStepH: 1}
			o := p.TwoMass()
			for c := range o.Start {
				o.Start[c] = 1 + random.Float64()
			}
			want := Eigenvalues(Propagation(o, s, 1))[0]
			if rho := cmplx.Abs(want); rho < 0.7 || rho > 1.3 {
				continue
			}
			tried++
			states, _ := States(o, s, 1, 80)
			// The short start follows other matrices.
			e, err := Fit(states[s.Order:], s.Depth())
			if err != nil {
				t.Errorf("%v: %v", s, err)
				continue
			}
			if d := cmplx.Abs(e[0] - want); !(d < 1e-6) {
				t.Errorf("%v, %+v: %v, want %v, off by %.2g", s, p, e[0], want, d)
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d cases lie in the range", tried)
	}
	if _, err := Fit(make([][4]float64, 10), 3); err == nil {
		t.Error("ten points at rest show twelve eigenvalues")
	}
}
