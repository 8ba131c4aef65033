package exact

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Spring is the nonlinear spring and damper of meyer (37), SI units:
//
//	F = C s + D r + C3 s³ + D3 r³
//
// of the elongation s and its rate r.
type Spring struct{ C, D, C3, D3 float64 }

// Force returns F, which pulls the ends together.
func (p Spring) Force(s, r float64) float64 {
	return p.C*s + p.D*r + p.C3*s*s*s + p.D3*r*r*r
}

// ContactOscillator is the nonlinear two-mass oscillator of meyer (35), SI units:
//
//	m1 x1'' = -c1 x1 - d1 x1' + A e^(B x1) + f,   m2 x2'' = -c2 x2 - d2 x2' - f
//
// with f the force of Coupling at x2 - x1.
type ContactOscillator struct {
	M1, C1, D1, M2, C2, D2 float64
	A, B                   float64 // N, 1/m
	Coupling               Spring
	Start                  [4]float64 // x1, v1, x2, v2 at t = 0
}

// DefaultContactOscillator has the parameters of meyer 6.1, which are those of
// the example system.
func DefaultContactOscillator() ContactOscillator {
	return ContactOscillator{M1: 50, C1: 1e5, M2: 1, C2: 1e3, A: -1e-2, B: 1e7,
		Coupling: Spring{C: 1e5, C3: 1e5, D3: 1e-2}, Start: [4]float64{-2, 100, 0, -200}}
}

// Solve returns the monolithic solution x1, v1, x2, v2 at the times, which start at
// 0 or later and increase, integrated by Dormand and Prince's method of order
// 5(4) with a tolerance of 1e-12 per step, relative to 1 + |x|.
func (o ContactOscillator) Solve(times []float64) ([][4]float64, error) {
	right := func(_ float64, x, dx []float64) {
		f := o.Coupling.Force(x[2]-x[0], x[3]-x[1])
		dx[0], dx[2] = x[1], x[3]
		dx[1] = (-o.C1*x[0] - o.D1*x[1] + o.A*math.Exp(o.B*x[0]) + f) / o.M1
		dx[3] = (-o.C2*x[2] - o.D2*x[3] - f) / o.M2
	}
	// The contact happens within micrometres.
	rows, err := integrate(right, o.Start[:], times, 1e-12, []float64{1e-16, 1e-12, 1e-12, 1e-12})
	if err != nil {
		return nil, err
	}
	out := make([][4]float64, len(rows))
	for i, x := range rows {
		out[i] = [4]float64(x)
	}
	return out, nil
}

// Chain is a row of masses, each joined to the next by Spring (meyer 6.2, 6.6), SI
// units. Random values are functions of Seed and the number of a mass, so that a
// piece of a chain has the values of the whole. They are those
// of the FMU of the same name.
type Chain struct {
	Masses int
	Number int // of the first mass, from 1
	Total  int // masses of the whole chain; see Block
	Seed   int
	M      float64 // of each mass
	Spring Spring
	Ground [2]bool // whether the first, the last mass is joined to the ground too

	// Impulses is how many of ten masses have forces of random size, ForceMin to ForceMax, and
	// direction. With Block > 0, instead, the masses on both sides of the joints of blocks of
	// Block masses have forces of ForceMax, alternately to the right and to the left.
	Impulses, Block                int
	ForceMin, ForceMax             float64
	First, Period, Duration, Delta float64

	Contacts int     // how many of ten masses have a contact force A e^(B x)
	A, B     float64 // N, 1/m

	X0Max, V0Max float64 // bounds of the random start

	// Left and Right are forces on the first and the last mass; nil: none.
	Left, Right func(t float64) float64
}

// DefaultChain has the parameters of meyer 6.2 and is held at both ends.
func DefaultChain(masses int) Chain {
	return Chain{Masses: masses, Number: 1, Total: masses, Seed: 1, M: 0.1,
		Spring: Spring{C: 1e7, D: 1e4, C3: 1e14, D3: 1e2}, Ground: [2]bool{true, true},
		Impulses: 3, ForceMin: 1e6, ForceMax: 5e6, Period: 0.05, Duration: 2.5e-3, Delta: 1e-5,
		Contacts: 1, A: -1e-2, B: 5e5, X0Max: 1e-3, V0Max: 10}
}

// Streams of random numbers.
const (
	streamX = iota
	streamV
	streamImpulse
	streamForce
	streamSide
	streamContact
)

// random returns a number in [0, 1): the output function of SplitMix64, of the seed and then
// of mass and stream.
func (c Chain) random(mass, stream int) float64 {
	mix := func(z uint64) uint64 {
		z += 0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		return z ^ z>>31
	}
	z := mix(mix(uint64(c.Seed)) ^ (uint64(mass)<<32 | uint64(stream)))
	return float64(z>>11) / (1 << 53)
}

// chosen reports whether a mass has one of the n smallest random numbers among its ten.
func (c Chain) chosen(mass, stream, n int) bool {
	first := (mass-1)/10*10 + 1
	smaller := 0
	for i := first; i < first+10; i++ {
		if c.random(i, stream) < c.random(mass, stream) {
			smaller++
		}
	}
	return smaller < n
}

// Start returns x and v [Masses] at t = 0.
func (c Chain) Start() (x, v []float64) {
	for i := c.Number; i < c.Number+c.Masses; i++ {
		xi := c.X0Max * (2*c.random(i, streamX) - 1)
		if c.chosen(i, streamContact, c.Contacts) {
			xi = -math.Abs(xi)
		}
		x, v = append(x, xi), append(v, c.V0Max*(2*c.random(i, streamV)-1))
	}
	return x, v
}

// amplitude returns the amplitude of the impulses on a mass.
func (c Chain) amplitude(mass int) float64 {
	switch {
	case c.Block > 0 && (mass == 1 || mass == c.Total):
		return 0
	case c.Block > 0:
		switch mass % c.Block {
		case 0:
			return c.ForceMax
		case 1:
			return -c.ForceMax
		}
		return 0
	case !c.chosen(mass, streamImpulse, c.Impulses):
		return 0
	}
	f := c.ForceMin + (c.ForceMax-c.ForceMin)*c.random(mass, streamForce)
	if c.random(mass, streamSide) < 0.5 {
		return -f
	}
	return f
}

// impulse returns the sum of the impulses of amplitude 1 at time t.
func (c Chain) impulse(t float64) float64 {
	sum := 0.0
	for k := 0; ; k++ {
		since := t - c.First - float64(k)*c.Period
		if since < -20*c.Delta {
			return sum
		}
		sum += 0.5 * (math.Tanh(since/c.Delta) - math.Tanh((since-c.Duration)/c.Delta))
	}
}

// right returns the right side of the chain's equations for (x, v).
func (c Chain) right() func(t float64, y, dy []float64) {
	n := c.Masses
	amplitude, contact := make([]float64, n), make([]bool, n)
	for i := range n {
		amplitude[i] = c.amplitude(c.Number + i)
		contact[i] = c.chosen(c.Number+i, streamContact, c.Contacts)
	}
	return func(t float64, y, dy []float64) {
		x, v, a := y[:n], y[n:], dy[n:]
		copy(dy[:n], v)
		clear(a)
		p := c.impulse(t)
		for i := range n {
			a[i] += amplitude[i] * p
			if contact[i] {
				a[i] += c.A * math.Exp(c.B*x[i])
			}
			if i > 0 {
				f := c.Spring.Force(x[i]-x[i-1], v[i]-v[i-1])
				a[i] -= f
				a[i-1] += f
			}
		}
		if c.Ground[0] {
			a[0] -= c.Spring.Force(x[0], v[0])
		}
		if c.Ground[1] {
			a[n-1] -= c.Spring.Force(x[n-1], v[n-1])
		}
		if c.Left != nil {
			a[0] += c.Left(t)
		}
		if c.Right != nil {
			a[n-1] += c.Right(t)
		}
		for i := range a {
			a[i] /= c.M
		}
	}
}

// Solve returns the solution (x, v) [2 Masses] at the times, which start at 0 or
// later and increase, integrated by Dormand and Prince's method of order 5(4) with
// a relative tolerance per step, 1e-12 for the best that doubles allow. Being
// explicit, it needs steps of about 0.8 M/Spring.D and is for short chains only.
func (c Chain) Solve(times []float64, tolerance float64) ([][]float64, error) {
	x, v := c.Start()
	atol := make([]float64, 2*c.Masses)
	for i := range c.Masses {
		// The contacts happen within micrometres.
		atol[i], atol[c.Masses+i] = tolerance*1e-4, tolerance
	}
	return integrate(c.right(), append(x, v...), times, tolerance, atol)
}

// LinearChain returns a chain without cubic terms, impulses and contacts as state
// space of x and v [2 Masses]; the inputs are the forces on the first and the last
// mass. Spring.C3 and Spring.D3, Impulses and Contacts count as 0.
func LinearChain(c Chain) StateSpace {
	n := c.Masses
	s := StateSpace{A: mat.NewDense(2*n, 2*n, nil), B: mat.NewDense(2*n, 2, nil)}
	add := func(i, j int, sign float64) {
		s.A.Set(n+i, j, s.A.At(n+i, j)+sign*c.Spring.C/c.M)
		s.A.Set(n+i, n+j, s.A.At(n+i, n+j)+sign*c.Spring.D/c.M)
	}
	for i := range n {
		s.A.Set(i, n+i, 1)
		if i > 0 || c.Ground[0] {
			add(i, i, -1)
		}
		if i+1 < n || c.Ground[1] {
			add(i, i, -1)
		}
		if i > 0 {
			add(i, i-1, 1)
			add(i-1, i, 1)
		}
	}
	s.B.Set(n, 0, 1/c.M)
	s.B.Set(2*n-1, 1, 1/c.M)
	return s
}
