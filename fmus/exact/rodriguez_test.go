package exact

import (
	"math"
	"testing"
)

func evenly(T float64, n int) []float64 {
	times := make([]float64, n+1)
	for i := range times {
		times[i] = T * float64(i) / float64(n)
	}
	return times
}

// All systems start with 10 kJ and keep it, but for the dampers.
func TestStarsKeepEnergy(t *testing.T) {
	for name, s := range map[string]Star{"2": EnergyOscillator(), "3": EnergyStar3(), "5": EnergyStar5(),
		"sqrt": SqrtOscillator(), "quadratic": QuadraticOscillator()} {
		x, err := s.Solve(evenly(10, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if e := s.Energy(x[0]); math.Abs(e-1e4) > 1e-9 {
			t.Errorf("%s: energy %g J at the start", name, e)
		}
		last := 1e4
		for _, x := range x {
			e := s.Energy(x)
			if name == "quadratic" {
				if !(e <= last*(1+1e-9)) {
					t.Errorf("quadratic: the energy rises from %g to %g J", last, e)
				}
				last = e
				continue
			}
			near(t, name+": energy", e, 1e4, 1e-2)
		}
	}
}

// The energy lost is that which the dampers dissipate.
func TestQuadraticDampers(t *testing.T) {
	s := QuadraticOscillator()
	const n, T = 100000, 1.0
	x, err := s.Solve(evenly(T, n))
	if err != nil {
		t.Fatal(err)
	}
	loss := func(x []float64) float64 {
		cube := func(v float64) float64 { return 1e-3 * math.Abs(v*v*v) }
		return cube(x[1]) + cube(x[3]) + cube(x[1]-x[3])
	}
	lost := 0.0
	for i := range n {
		lost += (loss(x[i]) + loss(x[i+1])) / 2 * T / n
	}
	near(t, "energy lost", 1e4-s.Energy(x[n]), lost, 1e-3)
}

// Integration gives what the matrix exponential gives, and the discrete maps
// approach it with order 1.
func TestStarReferencesAgree(t *testing.T) {
	s := EnergyStar3()
	s.Coupled[0].C, s.Coupled[1].Cc, s.Hub.C = 0.5, 0.7, 0.3
	times := []float64{0.1, 1, 2}
	x, err := s.Solve(times)
	if err != nil {
		t.Fatal(err)
	}
	y, err := integrate(s.right, s.Start(), times, tolerance, evenTolerance(6))
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		for j := range x[i] {
			near(t, "state", y[i][j], x[i][j], 1e-6)
		}
	}
	for name, at := range map[string]func(n int) []float64{
		"symplectic": func(n int) []float64 { return s.Symplectic(1/float64(n), n) },
		"jacobi":     func(n int) []float64 { states, _ := s.Jacobi(1/float64(n), n, 1, 1); return states[n] },
		"multi-rate": func(n int) []float64 { states, _ := s.Jacobi(1/float64(n), n, 3, 2); return states[n] },
	} {
		worst := func(n int) float64 {
			e := 0.0
			for j, v := range at(n) {
				e = max(e, math.Abs(v-x[1][j]))
			}
			return e
		}
		if order := math.Log2(worst(20000) / worst(40000)); math.Abs(order-1) > 0.05 {
			t.Errorf("%s: order %g", name, order)
		}
	}
}

// One mass on a square-root spring has the quarter period of its quadrature, ∫ dx / v.
func TestSqrtSpring(t *testing.T) {
	// One mass on the hub's spring, the other decoupled: v² = v0² - 4/3 k |x|^1.5.
	s := Star{Coupled: []OscillatorMass{{M: 1}}, Hub: OscillatorMass{M: 1, K: 1000, V0: 100}, SpringPower: 0.5, DamperPower: 1}
	amplitude := math.Pow(0.75*100*100/1000, 2./3)
	// With x = amplitude (1 - w²) and the substitution the integrand is smooth.
	quarter, n := 0.0, 2000
	for i := range n {
		w := (float64(i) + 0.5) / float64(n)
		quarter += 2 * w * amplitude / (100 * math.Sqrt(1-math.Pow(1-w*w, 1.5))) / float64(n)
	}
	x, err := s.Solve([]float64{quarter, 2 * quarter})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "displacement at the turn", x[0][2], amplitude, 1e-6*amplitude)
	near(t, "velocity at the turn", x[0][3], 0, 1e-2)
	near(t, "velocity on the way back", x[1][3], -100, 1e-2)
}

// lagrange returns the accelerations that follow from the Lagrange function L(q, v) of
// two coordinates under the generalized forces Q, by differences alone:
// L_vv a = L_q + Q - L_vq v.
func lagrange(L func(q, v [2]float64) float64, q, v, Q [2]float64) (a [2]float64) {
	const h, hv = 1e-4, 1.0 // L is of second degree in v
	at := func(dq, dv [2]float64) float64 {
		return L([2]float64{q[0] + dq[0], q[1] + dq[1]}, [2]float64{v[0] + dv[0], v[1] + dv[1]})
	}
	e := func(i int, s float64) (d [2]float64) { d[i] = s * h; return d }
	ev := func(i int, s float64) (d [2]float64) { d[i] = s * hv; return d }
	add := func(a, b [2]float64) [2]float64 { return [2]float64{a[0] + b[0], a[1] + b[1]} }
	var none [2]float64
	var M [2][2]float64
	var b [2]float64
	for i := range 2 {
		b[i] = Q[i] + (at(e(i, 1), none)-at(e(i, -1), none))/(2*h)
		for j := range 2 {
			M[i][j] = (at(none, add(ev(i, 1), ev(j, 1))) - at(none, add(ev(i, 1), ev(j, -1))) - at(none,
				add(ev(i, -1), ev(j, 1))) + at(none, add(ev(i, -1), ev(j, -1)))) / (4 * hv * hv)
			b[i] -= v[j] * (at(e(j, 1), ev(i, 1)) - at(e(j, -1), ev(i, 1)) - at(e(j, 1), ev(i, -1)) + at(e(j, -1), ev(i, -1))) / (4 * h * hv)
		}
	}
	det := M[0][0]*M[1][1] - M[0][1]*M[1][0]
	return [2]float64{(M[1][1]*b[0] - M[0][1]*b[1]) / det, (M[0][0]*b[1] - M[1][0]*b[0]) / det}
}

// The equations of motion are those of positions and masses alone.
func TestEquationsOfMotion(t *testing.T) {
	p := DefaultPendula()
	pendula := func(q, v [2]float64) float64 {
		x := []float64{q[0], v[0], q[1], v[1]}
		rest := []float64{q[0], 0, q[1], 0}
		return p.Energy(x) - 2*p.Energy(rest) // T - V
	}
	c := DefaultCrane()
	crane := func(q, v [2]float64) float64 {
		mass := func(m float64, at func(q [2]float64) (x, y float64)) float64 {
			const h = 1e-5 // velocities of points from positions
			x1, y1 := at([2]float64{q[0] + h*v[0], q[1] + h*v[1]})
			x0, y0 := at([2]float64{q[0] - h*v[0], q[1] - h*v[1]})
			_, y := at(q)
			return m*((x1-x0)*(x1-x0)+(y1-y0)*(y1-y0))/(8*h*h) - m*c.G*y
		}
		link := func(s float64) func(q [2]float64) (x, y float64) {
			return func(q [2]float64) (x, y float64) { return s * math.Cos(q[0]), s * math.Sin(q[0]) }
		}
		L := mass(c.M2, link(c.L1)) + mass(c.M3, func(q [2]float64) (x, y float64) {
			return c.L1*math.Cos(q[0]) + c.L2*math.Cos(q[1]), c.L1*math.Sin(q[0]) + c.L2*math.Sin(q[1])
		})
		// Gauss's two points are exact for the uniform link.
		for _, g := range []float64{-1 / math.Sqrt(3), 1 / math.Sqrt(3)} {
			L += mass(c.M1/2, link(c.L1*(1+g)/2))
		}
		return L
	}
	for _, s := range [][4]float64{{0.5, 4.7, 0, 0}, {0.8, -0.2, 1.5, -0.7}, {-1.1, 2, -2, 3}, {0.3, 5.5, 0.4, 6}} {
		q, v := [2]float64{s[0], s[1]}, [2]float64{s[2], s[3]}
		dx := make([]float64, 4)
		p.right(0, []float64{q[0], v[0], q[1], v[1]}, dx)
		want := lagrange(pendula, q, v, [2]float64{})
		near(t, "pendulum 1", dx[1], want[0], 1e-6*(1+math.Abs(want[0])))
		near(t, "pendulum 2", dx[3], want[1], 1e-6*(1+math.Abs(want[1])))

		x := []float64{q[0], q[1], v[0], v[1], 3e6, 4.5e6}
		_, _, f := c.Cylinder(x)
		const h = 1e-5
		up, _, _ := c.Cylinder([]float64{q[0] + h, q[1], 0, 0, 0, 0})
		down, _, _ := c.Cylinder([]float64{q[0] - h, q[1], 0, 0, 0, 0})
		want = lagrange(crane, q, v, [2]float64{f * (up - down) / (2 * h), 0})
		dx = make([]float64, 6)
		c.Right(0, x, dx)
		near(t, "link 1", dx[2], want[0], 1e-6*(1+math.Abs(want[0])))
		near(t, "link 2", dx[3], want[1], 1e-6*(1+math.Abs(want[1])))
	}
}

func TestPendulaKeepEnergy(t *testing.T) {
	p := DefaultPendula()
	near(t, "length of the spring", p.Lc, 8.756, 5e-4) // rodriguez 4.3
	x, err := p.Solve(evenly(10, 100))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range x {
		near(t, "energy", p.Energy(x), p.Energy([]float64{p.Theta1, 0, p.Theta2, 0}), 1e-7)
	}
}

// The crane is in equilibrium where the paper says, and stays there while the spool
// does not move; it then follows the balance of energy.
func TestCraneEquilibrium(t *testing.T) {
	c := DefaultCrane()
	near(t, "spool displacement", c.Gamma0, 0.45435, 5e-6) // rodriguez 4.4
	dx := make([]float64, 6)
	c.Right(0, c.Start(), dx)
	for i, scale := range []float64{1, 1, 1, 1, 1e9, 1e9} { // of the pressures: what 1 m/s of the piston does
		near(t, "rate at the start", dx[i], 0, 1e-12*scale)
	}
	c.Amplitude = 0
	x, err := c.Solve([]float64{5})
	if err != nil {
		t.Fatal(err)
	}
	s, v, f := c.Cylinder(x[0])
	near(t, "length", s, 0.5, 1e-9)
	near(t, "rate", v, 0, 1e-9)
	near(t, "force", f, 8829, 1e-3)
}

// Times that do not increase from 0 are refused by every solution.
func TestReferencesRefuseTimes(t *testing.T) {
	quarter := func(q QuarterCar) func([]float64) ([][]float64, error) {
		return func(times []float64) ([][]float64, error) { _, err := q.Solve(times); return nil, err }
	}
	contact := func(times []float64) ([][]float64, error) {
		_, err := DefaultContactOscillator().Solve(times)
		return nil, err
	}
	for _, times := range [][]float64{{-1}, {0, 0}, {1, 0.5}, {math.NaN()}, {math.Inf(1)}} {
		for name, solve := range map[string]func([]float64) ([][]float64, error){
			"star": EnergyOscillator().Solve, "pendula": DefaultPendula().Solve, "crane": DefaultCrane().Solve, "contact": contact,
			"linear car": quarter(LinearQuarterCar()), "nonlinear car": quarter(NonlinearQuarterCar()),
		} {
			if _, err := solve(times); err == nil {
				t.Errorf("%s: %v is accepted", name, times)
			}
		}
	}
}
