// Package exact holds the reference solutions of our FMUs and of the example systems, and the figures by which the
// papers judge a co-simulation. It uses neither the C sources nor the master.
package exact

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// StateSpace is x' = A x + B u, y = C x + D u. A is [nx,nx], B [nx,nu], C
// [ny,nx], D [ny,nu]. B may be nil if there is no input; C and D serve Outputs
// only.
type StateSpace struct{ A, B, C, D *mat.Dense }

// Propagation returns E [nx,nx] and G[j] [nx,nu], j = 0…degree, of the exact step
// under a polynomial input,
//
//	x(t+h) = E x(t) + Σ_j G[j] u(j)(t),   G[j] = ∫_0^h e^{A(h-s)} B s^j/j! ds,
//
// with u(j) the j-th derivative at the start of the step. Both come from one
// block matrix exponential, never from A⁻¹ (haid's formulas use the inverse and
// lose digits).
func (s StateSpace) Propagation(h float64, degree int) (E *mat.Dense, G []*mat.Dense) {
	nx, _ := s.A.Dims()
	nu := 0
	if s.B != nil {
		_, nu = s.B.Dims()
	}
	n := nx + nu*(degree+1)
	m := mat.NewDense(n, n, nil)
	for i := range nx {
		for j := range nx {
			m.Set(i, j, h*s.A.At(i, j))
		}
		for j := range nu {
			m.Set(i, nx+j, h*s.B.At(i, j))
		}
	}
	for i := nx; i < n-nu; i++ {
		m.Set(i, i+nu, 1)
	}
	var e mat.Dense
	e.Exp(m)
	E = mat.DenseCopyOf(e.Slice(0, nx, 0, nx))
	if nu == 0 {
		return E, nil
	}
	power := 1.0
	for j := 0; j <= degree; j++ {
		g := mat.DenseCopyOf(e.Slice(0, nx, nx+j*nu, nx+(j+1)*nu))
		g.Scale(power, g)
		G = append(G, g)
		power *= h
	}
	return E, G
}

// Step returns x(t+h) from x(t) and u, where u[j] [nu] is the j-th derivative of
// the inputs at t; len(u)-1 is the degree of the polynomial. x is not changed.
func (s StateSpace) Step(x []float64, u [][]float64, h float64) []float64 {
	E, G := s.Propagation(h, len(u)-1)
	var next, part mat.VecDense
	next.MulVec(E, mat.NewVecDense(len(x), x))
	for j := range G {
		part.MulVec(G[j], mat.NewVecDense(len(u[j]), u[j]))
		next.AddVec(&next, &part)
	}
	return next.RawVector().Data
}

// Outputs returns y [ny] = C x + D u.
func (s StateSpace) Outputs(x, u []float64) []float64 {
	var y, part mat.VecDense
	y.MulVec(s.C, mat.NewVecDense(len(x), x))
	part.MulVec(s.D, mat.NewVecDense(len(u), u))
	y.AddVec(&y, &part)
	return y.RawVector().Data
}

// Taylor returns the value at tau of the polynomial with derivatives u[j] at 0.
func Taylor(u []float64, tau float64) float64 {
	v := 0.0
	for j := len(u) - 1; j >= 0; j-- {
		v = u[j] + v*tau/float64(j+1)
	}
	return v
}

// TwoMass is the two-mass oscillator (schweizer (4)), SI units:
//
//	m1 x1'' = -c1 x1 - d1 x1' + c_c (x2 - x1) + d_c (x2' - x1')
//	m2 x2'' = -c2 x2 - d2 x2' - c_c (x2 - x1) - d_c (x2' - x1')
type TwoMass struct {
	M1, C1, D1, M2, C2, D2, Cc, Dc float64
	Start                          [4]float64 // x1, v1, x2, v2 at t = 0
}

// DefaultTwoMass has the parameters of schweizer 3.2, which are those of the
// FMUs, and the start of the example systems: x1 = 1, all others 0.
func DefaultTwoMass() TwoMass {
	return TwoMass{M1: 1, C1: 1000, D1: 10, M2: 1, C2: 1000, D2: 10, Cc: 1000, Dc: 10, Start: [4]float64{1}}
}

// Matrix returns A [4,4] of (x1, v1, x2, v2).
func (o TwoMass) Matrix() *mat.Dense {
	return mat.NewDense(4, 4, []float64{
		0, 1, 0, 0,
		-(o.C1 + o.Cc) / o.M1, -(o.D1 + o.Dc) / o.M1, o.Cc / o.M1, o.Dc / o.M1,
		0, 0, 0, 1,
		o.Cc / o.M2, o.Dc / o.M2, -(o.C2 + o.Cc) / o.M2, -(o.D2 + o.Dc) / o.M2,
	})
}

// At returns x1, v1, x2, v2 = e^{A t} Start at time t, which may be negative (for the history of
// multi-step schemes).
func (o TwoMass) At(t float64) [4]float64 {
	var e mat.Dense
	e.Scale(t, o.Matrix())
	e.Exp(&e)
	var x mat.VecDense
	x.MulVec(&e, mat.NewVecDense(4, o.Start[:]))
	return [4]float64(x.RawVector().Data)
}

// Force returns the coupling force on mass 1 at the state x: schweizer 2.1.1.
func (o TwoMass) Force(x [4]float64) float64 {
	return o.Cc*(x[2]-x[0]) + o.Dc*(x[3]-x[1])
}

// QuarterCar is the quarter car of sadjina (18), SI units; it starts at rest in
// zero, and the road jumps to ZRoad at t = 0.
type QuarterCar struct {
	Mc, Mw, Kc, Kw, Dc, Nd, ZRoad float64
}

// LinearQuarterCar has the parameters of sadjina Table II, which are those of the FMUs.
func LinearQuarterCar() QuarterCar {
	return QuarterCar{Mc: 400, Mw: 40, Kc: 15000, Kw: 150000, Dc: 1000, Nd: 0.5, ZRoad: 0.1}
}

// NonlinearQuarterCar has the parameters of sadjina Table II with the changes of Table IV.
func NonlinearQuarterCar() QuarterCar {
	q := LinearQuarterCar()
	q.Dc, q.Nd = 900, 1.5
	return q
}

// Force returns F_c (18c) at the state x = (z_c, v_c, z_w, v_w).
func (q QuarterCar) Force(x [4]float64) float64 {
	return q.Suspension(x[0]-x[2], x[1]-x[3])
}

// Suspension returns F_c (18c) of the relative displacement z and velocity v,
// chassis less wheel.
func (q QuarterCar) Suspension(z, v float64) float64 {
	return q.Kc*z + math.Copysign(q.Dc*math.Pow(math.Abs(v), 2/(1+2*q.Nd)), v)
}

// Right returns the right side of (18) at x = (z_c, v_c, z_w, v_w).
func (q QuarterCar) Right(x [4]float64) [4]float64 {
	f := q.Force(x)
	return [4]float64{x[1], -f / q.Mc, x[3], (f - q.Kw*(x[2]-q.ZRoad)) / q.Mw}
}

// Solve returns the monolithic solution (z_c, v_c, z_w, v_w) at the times, which
// start at 0 or later and increase. With Nd = 0.5 it is exact (a matrix
// exponential per time); otherwise it is integrated by Dormand and Prince's
// method of order 5(4) with a tolerance of 1e-11 per step, relative and absolute.
func (q QuarterCar) Solve(times []float64) ([][4]float64, error) {
	if err := increasing(times); err != nil {
		return nil, err
	}
	if q.Nd == 0.5 {
		return q.linear(times), nil
	}
	return q.integrate(times)
}

// linear solves x' = A x + b from 0: x(t) = ∫_0^t e^{As} ds b, which is G[0] of
// Propagation with the road as held input.
func (q QuarterCar) linear(times []float64) [][4]float64 {
	s := StateSpace{
		A: mat.NewDense(4, 4, []float64{
			0, 1, 0, 0,
			-q.Kc / q.Mc, -q.Dc / q.Mc, q.Kc / q.Mc, q.Dc / q.Mc,
			0, 0, 0, 1,
			q.Kc / q.Mw, q.Dc / q.Mw, -(q.Kc + q.Kw) / q.Mw, -q.Dc / q.Mw,
		}),
		B: mat.NewDense(4, 1, []float64{0, 0, 0, q.Kw / q.Mw}),
	}
	x := make([][4]float64, len(times))
	for i, t := range times {
		if t > 0 {
			x[i] = [4]float64(s.Step(make([]float64, 4), [][]float64{{q.ZRoad}}, t))
		}
	}
	return x
}

// integrate solves (18) from rest at 0.
func (q QuarterCar) integrate(times []float64) ([][4]float64, error) {
	x, err := integrate(func(_ float64, x, dx []float64) {
		d := q.Right([4]float64(x))
		copy(dx, d[:])
	}, make([]float64, 4), times, tolerance, evenTolerance(4))
	out := make([][4]float64, len(x))
	for i := range x {
		out[i] = [4]float64(x[i])
	}
	return out, err
}
