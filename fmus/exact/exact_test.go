package exact

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.17g, not %.17g ± %g", what, got, want, tolerance)
	}
}

// An integrator chain has a singular A, for which a formula with A⁻¹ would fail.
func TestIntegratorChain(t *testing.T) {
	s := StateSpace{A: mat.NewDense(2, 2, []float64{0, 1, 0, 0}), B: mat.NewDense(2, 1, []float64{0, 1})}
	h, x := 0.3, []float64{1, 2}
	u := [][]float64{{5}, {-7}, {11}, {-13}}
	got := s.Step(x, u, h)
	wantX, wantV := 1+2*h, 2.0
	factorial := 1.0
	for j := range u {
		factorial *= float64(j + 1)
		wantV += u[j][0] * math.Pow(h, float64(j+1)) / factorial
		wantX += u[j][0] * math.Pow(h, float64(j+2)) / (factorial * float64(j+2))
	}
	near(t, "x", got[0], wantX, 1e-14)
	near(t, "v", got[1], wantV, 1e-14)
	if x[0] != 1 || x[1] != 2 {
		t.Errorf("Step changed its argument: %v", x)
	}
}

// x' = -a x + b + c t has the solution below; a h = 40 needs the squarings.
func TestScalarRamp(t *testing.T) {
	a, b, c, x0, h := 80.0, 3.0, -2.0, 1.5, 0.5
	s := StateSpace{A: mat.NewDense(1, 1, []float64{-a}), B: mat.NewDense(1, 1, []float64{1}),
		C: mat.NewDense(1, 1, []float64{2}), D: mat.NewDense(1, 1, []float64{3})}
	p := func(t float64) float64 { return (b+c*t)/a - c/(a*a) }
	x := s.Step([]float64{x0}, [][]float64{{b}, {c}}, h)
	near(t, "x", x[0], p(h)+(x0-p(0))*math.Exp(-a*h), 1e-15)
	near(t, "y", s.Outputs(x, []float64{7})[0], 2*x[0]+21, 1e-15)
	near(t, "polynomial", Taylor([]float64{1, 2, 6}, 0.5), 1+2*0.5+6*0.25/2, 1e-15)
}

// The symmetric oscillator has two modes that are single masses: in phase
// without the coupling, and in opposition with twice the coupling.
func TestTwoMassModes(t *testing.T) {
	for _, c := range []struct{ sign, stiffness, damping float64 }{{1, 1000, 10}, {-1, 3000, 30}} {
		o := DefaultTwoMass()
		o.Start = [4]float64{1, 0, c.sign, 0}
		delta := c.damping / 2
		omega := math.Sqrt(c.stiffness - delta*delta)
		for _, time := range []float64{-0.003, 0, 0.1, 0.5} {
			e, sin, cos := math.Exp(-delta*time), math.Sin(omega*time), math.Cos(omega*time)
			x := e * (cos + delta/omega*sin)
			v := -e * c.stiffness / omega * sin
			got := o.At(time)
			near(t, "x1", got[0], x, 1e-12)
			near(t, "v1", got[1], v, 1e-11)
			near(t, "x2", got[2], c.sign*x, 1e-12)
			near(t, "v2", got[3], c.sign*v, 1e-11)
			near(t, "force", o.Force(got), -(1-c.sign)*(1000*x+10*v), 1e-8)
		}
	}
}

// The matrix exponential and the integration agree, and the solution comes to rest on the road.
func TestQuarterCarLinear(t *testing.T) {
	q := LinearQuarterCar()
	times := []float64{0, 1e-3, 0.01, 0.1, 1, 4}
	x, err := q.Solve(times)
	if err != nil {
		t.Fatal(err)
	}
	y, err := q.integrate(times)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		for j := range x[i] {
			near(t, "state", y[i][j], x[i][j], 1e-9)
		}
	}
	near(t, "displacement of the wheel after 4 s", x[5][2], 0.1, 1e-3)
}

// Stored and dissipated energy add up to what the road put in, k_w z_road²/2 = 750 J (sadjina IV).
func TestQuarterCarEnergy(t *testing.T) {
	for _, q := range []QuarterCar{LinearQuarterCar(), NonlinearQuarterCar()} {
		const n, T = 50000, 2.0
		times := make([]float64, n+1)
		for i := range times {
			times[i] = T * float64(i) / n
		}
		x, err := q.Solve(times)
		if err != nil {
			t.Fatal(err)
		}
		loss := func(x [4]float64) float64 {
			return q.Suspension(0, x[1]-x[3]) * (x[1] - x[3])
		}
		dissipated := 0.0
		for i := range n {
			dissipated += (loss(x[i]) + loss(x[i+1])) / 2 * T / n
		}
		e := x[n]
		stored := (q.Mc*e[1]*e[1] + q.Mw*e[3]*e[3] + q.Kc*(e[0]-e[2])*(e[0]-e[2]) + q.Kw*(e[2]-q.ZRoad)*(e[2]-q.ZRoad)) / 2
		near(t, "energy", stored+dissipated, 750, 1e-4)
	}
}
