package exact

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// Without damping, energy is kept: by the mass before its contact alone, which it meets and does not pass, and with the
// coupling to the second mass.
func TestContactOscillatorKeepsEnergy(t *testing.T) {
	free, coupled := DefaultContactOscillator(), DefaultContactOscillator()
	free.Coupling, coupled.Coupling.D3 = Spring{}, 0
	for _, c := range []struct {
		o         ContactOscillator
		tolerance float64
	}{{free, 1e-9}, {coupled, 1e-8}} {
		o := c.o
		energy := func(x [4]float64) float64 {
			s := x[2] - x[0]
			return o.M1*x[1]*x[1]/2 + o.C1*x[0]*x[0]/2 - o.A/o.B*math.Exp(o.B*x[0]) +
				o.M2*x[3]*x[3]/2 + o.C2*x[2]*x[2]/2 + o.Coupling.C*s*s/2 + o.Coupling.C3*s*s*s*s/4
		}
		rows, err := o.Solve(evenly(0.2, 200)[1:])
		if err != nil {
			t.Fatal(err)
		}
		impacts := 0
		for i, x := range rows {
			near(t, "energy", energy(x)/energy(o.Start), 1, c.tolerance)
			if o.Coupling.C == 0 && x[0] > 0 {
				t.Errorf("x1 is %g in row %d, behind the contact", x[0], i)
			}
			if i > 0 && rows[i-1][1] > 0 && x[1] < 0 && x[0] > -0.5 {
				impacts++
			}
		}
		if impacts == 0 {
			t.Error("the mass never meets the contact")
		}
	}
}

// A linear chain against the matrix exponential of the system written down anew.
func TestLinearChain(t *testing.T) {
	c := DefaultChain(7)
	c.Spring.C3, c.Spring.D3, c.Spring.D, c.Impulses, c.Contacts = 0, 0, 300, 0, 0
	s := LinearChain(c)
	x, v := c.Start()
	const T = 1e-3
	want := s.Step(append(x, v...), [][]float64{{0, 0}}, T)
	rows, err := c.Solve([]float64{T}, 1e-12)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		scale := 1e-3
		if i >= c.Masses {
			scale = 10
		}
		near(t, "state", rows[0][i], want[i], 1e-10*scale)
	}
	// One mass between two grounds: two springs.
	one := DefaultChain(1)
	one.Spring.C3, one.Spring.D3 = 0, 0
	if !mat.Equal(LinearChain(one).A, mat.NewDense(2, 2, []float64{0, 1, -2e8, -2e5})) {
		t.Errorf("%v", mat.Formatted(LinearChain(one).A))
	}
}

// Random values do not depend on how the chain is cut, and are as many as requested.
func TestChainIsTheSameHoweverCut(t *testing.T) {
	whole := DefaultChain(40)
	x, v := whole.Start()
	contacts, pushed := 0, 0
	for i := 1; i <= 40; i++ {
		if whole.chosen(i, streamContact, whole.Contacts) {
			contacts++
			if x[i-1] > 0 {
				t.Errorf("mass %d starts behind its contact", i)
			}
		}
		if f := math.Abs(whole.amplitude(i)); f > 0 {
			pushed++
			if f < 1e6 || f > 5e6 {
				t.Errorf("the impulse on mass %d is %g N", i, f)
			}
		}
	}
	if contacts != 4 || pushed != 12 {
		t.Errorf("%d contacts and %d impulses among 40 masses", contacts, pushed)
	}
	piece := whole
	piece.Number, piece.Masses = 14, 9
	px, pv := piece.Start()
	for i := range px {
		if px[i] != x[13+i] || pv[i] != v[13+i] {
			t.Errorf("mass %d starts at %g, %g in the piece and %g, %g in the whole", 14+i, px[i], pv[i], x[13+i], v[13+i])
		}
	}
	whole.Block = 10
	var got []int
	for i := 1; i <= 40; i++ {
		if f := whole.amplitude(i); f != 0 {
			got = append(got, int(math.Copysign(float64(i), f)))
		}
	}
	for i, want := range []int{10, -11, 20, -21, 30, -31} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("impulses at the joints: %v", got)
		}
	}
	near(t, "impulse before", whole.impulse(-1e-3), 0, 0)
	near(t, "impulse at its start", whole.impulse(0), 0.5, 1e-15)
	near(t, "impulse", whole.impulse(1e-3), 1, 1e-15)
	near(t, "impulse after", whole.impulse(0.01), 0, 0)
	near(t, "second impulse", whole.impulse(0.0525), 0.5, 1e-9)
}

// The reference converges: a tolerance of a hundredth changes it by no more than the coarser tolerance allows.
func TestChainConverges(t *testing.T) {
	c := DefaultChain(6)
	a, err := c.Solve([]float64{5e-4, 3e-3}, 1e-8)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Solve([]float64{5e-4, 3e-3}, 1e-10)
	if err != nil {
		t.Fatal(err)
	}
	for k := range a {
		for i := range a[k] {
			scale := 1e-3
			if i >= c.Masses {
				scale = 10
			}
			near(t, "state", a[k][i], b[k][i], 1e-5*scale)
		}
	}
}
