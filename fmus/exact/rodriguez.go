package exact

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// OscillatorMass is a mass on spring and damper to the ground, SI units; X0 and V0
// are displacement and velocity at the start. Kc and Cc are the coupling element
// to the hub of a Star; the hub itself ignores them.
type OscillatorMass struct{ M, K, C, X0, V0, Kc, Cc float64 }

// Star is the n-mass oscillator of rodriguez 3.3, 4.1 and 4.2: masses each coupled
// with one hub,
//
//	m_i x_i'' = -S(k_i, x_i) - D(c_i, x_i') - f_i
//	m_h x_h'' = -S(k_h, x_h) - D(c_h, x_h') + Σ f_i
//	f_i = S(kc_i, x_i - x_h) + D(cc_i, x_i' - x_h')
//
// with S(k, z) = k sgn(z) |z|^SpringPower and D(c, z) = c sgn(z) |z|^DamperPower.
// States are x_1, v_1, x_2, v_2, …, those of the hub last.
type Star struct {
	Coupled                  []OscillatorMass
	Hub                      OscillatorMass
	SpringPower, DamperPower float64
}

// EnergyOscillator has the parameters of the example system energy-oscillator:
// chosen to reproduce the results of rodriguez, whose Table 1 is not published; 10 kJ at the start.
func EnergyOscillator() Star {
	return Star{Coupled: []OscillatorMass{{M: 1, K: 10, V0: 100, Kc: 100}}, Hub: hub(), SpringPower: 1, DamperPower: 1}
}

func hub() OscillatorMass { return OscillatorMass{M: 1, K: 1000, V0: -100} }

// EnergyStar3 has the parameters of energy-star-3: mass and stiffnesses of the
// coupled mass of EnergyOscillator divided unevenly.
func EnergyStar3() Star {
	s := EnergyOscillator()
	s.Coupled = []OscillatorMass{{M: 0.6, K: 6, V0: 100, Kc: 55}, {M: 0.4, K: 4, V0: 100, Kc: 45}}
	return s
}

// EnergyStar5 has the parameters of energy-star-5, divided likewise.
func EnergyStar5() Star {
	s := EnergyOscillator()
	s.Coupled = []OscillatorMass{{M: 0.3, K: 3, V0: 100, Kc: 28}, {M: 0.25, K: 3, V0: 100, Kc: 26},
		{M: 0.25, K: 2, V0: 100, Kc: 24}, {M: 0.2, K: 2, V0: 100, Kc: 22}}
	return s
}

// SqrtOscillator has the parameters of sqrt-oscillator: square-root springs (22).
func SqrtOscillator() Star {
	s := EnergyOscillator()
	s.Coupled[0].Kc, s.SpringPower = 150, 0.5
	return s
}

// QuadraticOscillator has the parameters of quadratic-oscillator: quadratic
// dampers (23).
func QuadraticOscillator() Star {
	s := EnergyOscillator()
	s.Coupled[0].C, s.Coupled[0].Cc, s.Hub.C, s.DamperPower = 1e-3, 1e-3, 1e-3, 2
	return s
}

func power(k, n, z float64) float64 { return math.Copysign(k*math.Pow(math.Abs(z), n), z) }

// Start returns the states at the start.
func (s Star) Start() []float64 {
	var x []float64
	for _, m := range s.Coupled {
		x = append(x, m.X0, m.V0)
	}
	return append(x, s.Hub.X0, s.Hub.V0)
}

// Force returns f_i, the force of coupled mass i on the hub, if they have these
// displacements and velocities.
func (s Star) Force(i int, x, v, xHub, vHub float64) float64 {
	return power(s.Coupled[i].Kc, s.SpringPower, x-xHub) + power(s.Coupled[i].Cc, s.DamperPower, v-vHub)
}

// acceleration of a mass under the force f.
func (s Star) acceleration(m *OscillatorMass, x, v, f float64) float64 {
	return (f - power(m.K, s.SpringPower, x) - power(m.C, s.DamperPower, v)) / m.M
}

// right is the right side of the whole.
func (s Star) right(_ float64, x, dx []float64) {
	h := 2 * len(s.Coupled)
	sum := 0.0
	for i := range s.Coupled {
		f := s.Force(i, x[2*i], x[2*i+1], x[h], x[h+1])
		dx[2*i], dx[2*i+1] = x[2*i+1], s.acceleration(&s.Coupled[i], x[2*i], x[2*i+1], -f)
		sum += f
	}
	dx[h], dx[h+1] = x[h+1], s.acceleration(&s.Hub, x[h], x[h+1], sum)
}

// Energy returns the mechanical energy in J at the states x.
func (s Star) Energy(x []float64) float64 {
	h := 2 * len(s.Coupled)
	spring := func(k, z float64) float64 {
		return k * math.Pow(math.Abs(z), s.SpringPower+1) / (s.SpringPower + 1)
	}
	e := s.Hub.M*x[h+1]*x[h+1]/2 + spring(s.Hub.K, x[h])
	for i, m := range s.Coupled {
		e += m.M*x[2*i+1]*x[2*i+1]/2 + spring(m.K, x[2*i]) + spring(m.Kc, x[2*i]-x[h])
	}
	return e
}

// Solve returns the states at increasing times from 0 on, solved as a whole: exactly
// (a matrix exponential per time) if all laws are linear, otherwise by
// integration.
func (s Star) Solve(times []float64) ([][]float64, error) {
	if err := increasing(times); err != nil {
		return nil, err
	}
	if s.SpringPower != 1 || s.DamperPower != 1 {
		return integrate(s.right, s.Start(), times, tolerance, evenTolerance(len(s.Start())))
	}
	start := s.Start()
	n := len(start)
	A, unit, column := mat.NewDense(n, n, nil), make([]float64, n), make([]float64, n)
	for j := range n {
		unit[j] = 1
		s.right(0, unit, column)
		A.SetCol(j, column)
		unit[j] = 0
	}
	out := make([][]float64, len(times))
	for i, t := range times {
		var e mat.Dense
		e.Scale(t, A)
		e.Exp(&e)
		var x mat.VecDense
		x.MulVec(&e, mat.NewVecDense(n, start))
		out[i] = x.RawVector().Data
	}
	return out, nil
}

// Symplectic returns the states after n steps of symplectic Euler of the whole,
// v += h a(x, v), x += h v: the result of a co-simulation without coupling error.
func (s Star) Symplectic(h float64, n int) []float64 {
	x, dx := s.Start(), make([]float64, len(s.Start()))
	for range n {
		s.right(0, x, dx)
		for i := 0; i < len(x); i += 2 {
			x[i+1] += h * dx[i+1]
			x[i] += h * x[i+1]
		}
	}
	return x
}

// Jacobi runs the co-simulation of rodriguez 3 and 4 as a plain loop: n macro steps
// H with the outputs at the start of the step as held inputs, micro steps of
// symplectic Euler in the coupled masses and in the hub, forces after the
// last one with the held inputs. It returns the states [n+1][] and forces [n+1][] at
// the communication points.
func (s Star) Jacobi(H float64, n, coupledSteps, hubSteps int) (states, forces [][]float64) {
	x := s.Start()
	h := len(x) - 2
	f := make([]float64, len(s.Coupled))
	for i := range f {
		f[i] = s.Force(i, x[2*i], x[2*i+1], x[h], x[h+1])
	}
	for {
		states, forces = append(states, append([]float64(nil), x...)), append(forces, append([]float64(nil), f...))
		if len(states) > n {
			return states, forces
		}
		sum, xHub, vHub := 0.0, x[h], x[h+1]
		for i := range f {
			sum += f[i]
			m, step := &s.Coupled[i], H/float64(coupledSteps)
			for range coupledSteps {
				x[2*i+1] += step * s.acceleration(m, x[2*i], x[2*i+1], -s.Force(i, x[2*i], x[2*i+1], xHub, vHub))
				x[2*i] += step * x[2*i+1]
			}
			f[i] = s.Force(i, x[2*i], x[2*i+1], xHub, vHub)
		}
		for range hubSteps {
			x[h+1] += H / float64(hubSteps) * s.acceleration(&s.Hub, x[h], x[h+1], sum)
			x[h] += H / float64(hubSteps) * x[h+1]
		}
	}
}

// Pendula are the coupled pendula of rodriguez 4.3 in angles: point masses on
// massless rods, pinned at (0, 0) and (Distance, 0), a spring and damper between
// their tips. Angles are to the vertical, positive where the tip is right of its
// pin; both start at rest. States are θ1, ω1, θ2, ω2; SI units.
type Pendula struct {
	M1, L1, Theta1, M2, L2, Theta2 float64
	Distance, G, Kc, Cc, Lc        float64
}

// DefaultPendula has the parameters of the example system pendula. The paper gives the angles at the
// start and the length of the spring without load, 8.756 m, which is its length at the start for two
// rods of 2 m, 10.5 m apart. The other parameters are our choice.
func DefaultPendula() Pendula {
	p := Pendula{M1: 5, L1: 2, Theta1: math.Pi / 4, M2: 1, L2: 2, Theta2: -math.Pi / 18, Distance: 10.5, G: 9.81, Kc: 100}
	x1, y1, x2, y2 := p.Tips([]float64{p.Theta1, 0, p.Theta2, 0})
	p.Lc = math.Hypot(x2-x1, y2-y1)
	return p
}

// Tips returns the positions of both tips.
func (p Pendula) Tips(x []float64) (x1, y1, x2, y2 float64) {
	return p.L1 * math.Sin(x[0]), -p.L1 * math.Cos(x[0]), p.Distance + p.L2*math.Sin(x[2]), -p.L2 * math.Cos(x[2])
}

// Energy returns kinetic and potential energy in J, 0 where both hang at rest.
func (p Pendula) Energy(x []float64) float64 {
	x1, y1, x2, y2 := p.Tips(x)
	stretch := math.Hypot(x2-x1, y2-y1) - p.Lc
	return p.M1*(p.L1*p.L1*x[1]*x[1]/2+p.G*(y1+p.L1)) + p.M2*(p.L2*p.L2*x[3]*x[3]/2+p.G*(y2+p.L2)) + p.Kc*stretch*stretch/2
}

func (p Pendula) right(_ float64, x, dx []float64) {
	x1, y1, x2, y2 := p.Tips(x)
	dX, dY := x2-x1, y2-y1
	length := math.Hypot(dX, dY)
	// The tips move along (cos θ, sin θ).
	c1, s1, c2, s2 := math.Cos(x[0]), math.Sin(x[0]), math.Cos(x[2]), math.Sin(x[2])
	v1, v2 := p.L1*x[1], p.L2*x[3]
	rate := (dX*(v2*c2-v1*c1) + dY*(v2*s2-v1*s1)) / length
	pull := (p.Kc*(length-p.Lc) + p.Cc*rate) / length
	dx[0], dx[2] = x[1], x[3]
	dx[1] = (pull*(dX*c1+dY*s1)/p.M1 - p.G*s1) / p.L1
	dx[3] = (-pull*(dX*c2+dY*s2)/p.M2 - p.G*s2) / p.L2
}

// Solve returns the states at increasing times from 0 on.
func (p Pendula) Solve(times []float64) ([][]float64, error) {
	return integrate(p.right, []float64{p.Theta1, 0, p.Theta2, 0}, times, tolerance, evenTolerance(4))
}

// Crane is the hydraulic crane of rodriguez 4.4, SI units; see
// fmus/src/crane_mechanics.c and crane_hydraulics.c for the names. States are θ1, θ2,
// ω1, ω2, p1, p2.
type Crane struct {
	L1, L2, M1, M2, M3, AttachedAt, XB, YB, Theta1, Theta2, G float64
	Ap, L3, S0, C, Cd, Av, Rho, A, B, PT, PP                  float64
	Gamma0, Amplitude, Frequency                              float64
}

// DefaultCrane has the parameters of the example system crane. The paper gives the angles at the
// start and the laws; the other parameters are our choice, with a static equilibrium at
// the spool displacement of the paper (γ0 = 0.454346; the paper has 0.45435).
func DefaultCrane() Crane {
	c := Crane{L1: 1, L2: 0.5, M1: 200, M2: 250, M3: 100, AttachedAt: 0.5,
		XB: math.Sqrt(3) / 2, Theta1: math.Pi / 6, Theta2: 3 * math.Pi / 2, G: 9.81,
		Ap: 65e-4, L3: 0.442, S0: 0.5, C: 1e5, Cd: 0.67, Av: 5e-4, Rho: 850, A: 6.53e-10, B: -1.19e-18, PT: 1e5, PP: 7.6e6,
		Amplitude: 0.1, Frequency: 2}
	c.Gamma0 = c.Equilibrium()
	return c
}

// Equilibrium returns the spool displacement that holds the crane where it starts.
// Link 2 must hang straight down. With r = γ/(1-γ) the valve holds p2 - p1 =
// (p_P - p_T)(1 - r²)/(1 + r²).
func (c Crane) Equilibrium() float64 {
	_, _, arm := c.cylinder([]float64{c.Theta1, c.Theta2, 0, 0})
	force := (c.M1/2 + c.M2 + c.M3) * c.G * c.L1 * math.Cos(c.Theta1) / arm
	q := force / (c.Ap * (c.PP - c.PT))
	r := math.Sqrt((1 - q) / (1 + q))
	return r / (1 + r)
}

// cylinder returns its length, its rate and ds/dθ1.
func (c Crane) cylinder(x []float64) (s, v, arm float64) {
	dx, dy := c.AttachedAt*math.Cos(x[0])-c.XB, c.AttachedAt*math.Sin(x[0])-c.YB
	s = math.Hypot(dx, dy)
	arm = c.AttachedAt * (dy*math.Cos(x[0]) - dx*math.Sin(x[0])) / s
	return s, arm * x[2], arm
}

// Cylinder returns length, rate and force (25) of the cylinder at the states x.
func (c Crane) Cylinder(x []float64) (s, v, f float64) {
	s, v, _ = c.cylinder(x)
	return s, v, c.Ap*(x[5]-x[4]) - c.C*v
}

// Spool returns γ (33).
func (c Crane) Spool(t float64) float64 {
	a := 1.0
	switch {
	case t < 1:
		a = t
	case t >= 9:
		a = 0
	case t >= 8:
		a = 9 - t
	}
	return c.Gamma0 * (1 - c.Amplitude*a*math.Sin(2*math.Pi*c.Frequency*t))
}

// Right returns the right side at time t.
func (c Crane) Right(t float64, x, dx []float64) {
	s, v, arm := c.cylinder(x)
	f := c.Ap*(x[5]-x[4]) - c.C*v
	// M ω' = b of the two angles.
	d := x[0] - x[1]
	m12 := c.M3 * c.L1 * c.L2
	M := mat.NewDense(2, 2, []float64{(c.M1/3 + c.M2 + c.M3) * c.L1 * c.L1, m12 * math.Cos(d), m12 * math.Cos(d), c.M3 * c.L2 * c.L2})
	b := mat.NewVecDense(2, []float64{
		f*arm - (c.M1/2+c.M2+c.M3)*c.G*c.L1*math.Cos(x[0]) - m12*math.Sin(d)*x[3]*x[3],
		-c.M3*c.G*c.L2*math.Cos(x[1]) + m12*math.Sin(d)*x[2]*x[2],
	})
	var a mat.VecDense
	if a.SolveVec(M, b) != nil { // not possible: M is positive definite
		a = *mat.NewVecDense(2, []float64{math.NaN(), math.NaN()})
	}
	dx[0], dx[1], dx[2], dx[3] = x[2], x[3], a.AtVec(0), a.AtVec(1)

	gamma := c.Spool(t)
	in, out := c.Av*gamma, c.Av*(1-gamma)
	flow := func(area, dp float64) float64 { return area * c.Cd * math.Sqrt(2*max(dp, 0)/c.Rho) }
	bulk := func(p float64) float64 { return (1 + c.A*p + c.B*p*p) / (c.A + 2*c.B*p) }
	l4, l5 := c.L3/2+c.S0-s, c.L3/2+s-c.S0
	dx[4] = bulk(x[4]) / (c.Ap * l4) * (c.Ap*v + flow(in, c.PP-x[4]) - flow(out, x[4]-c.PT))
	dx[5] = bulk(x[5]) / (c.Ap * l5) * (-c.Ap*v + flow(out, c.PP-x[5]) - flow(in, x[5]-c.PT))
}

// Start returns the states at the start: at rest, with the pressures that the valve
// holds at γ0.
func (c Crane) Start() []float64 {
	in, out := c.Gamma0*c.Gamma0, (1-c.Gamma0)*(1-c.Gamma0)
	return []float64{c.Theta1, c.Theta2, 0, 0, (in*c.PP + out*c.PT) / (in + out), (out*c.PP + in*c.PT) / (in + out)}
}

// Solve returns the states at increasing times from 0 on.
func (c Crane) Solve(times []float64) ([][]float64, error) {
	return integrate(c.Right, c.Start(), times, tolerance, evenTolerance(6))
}
