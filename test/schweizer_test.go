package test

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/oracle"
)

// methods returns the methods of schweizer with orders up to highest: 24 up to 3.
func methods(highest int) []oracle.Scheme {
	var out []oracle.Scheme
	for _, decomposition := range []string{"ff", "fd", "dd"} {
		for _, implicit := range []bool{false, true} {
			for k := 0; k <= highest; k++ {
				out = append(out, oracle.Scheme{Decomposition: decomposition, Implicit: implicit, Order: k})
			}
		}
	}
	return out
}

// schemeArgs returns the command line for an oscillator under a scheme.
func schemeArgs(t testing.TB, o exact.TwoMass, s oracle.Scheme, H float64, steps int) []string {
	t.Helper()
	args := append(twoMassArgs(t, o, s.Decomposition), "--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(H*float64(steps)),
		"--param", fmt.Sprintf("order=%d", s.Order))
	switch {
	case s.Implicit:
		args = append(args, "--algorithm", "implicit")
	case s.Sequence != nil:
		names := []string{fmt.Sprintf("mass%d", s.Sequence[0]+1), fmt.Sprintf("mass%d", s.Sequence[1]+1)}
		if s.Decomposition != "dd" {
			names = append(names, "coupling")
		}
		args = append(args, "--algorithm", "gauss-seidel", "--param", "sequence="+strings.Join(names, ","))
	}
	if s.History && s.Order > 0 {
		args = append(args, "--history", writeHistory(t, o, s.Order, H))
	}
	return args
}

// runScheme runs the FMUs under a scheme, through the command line.
func runScheme(t testing.TB, o exact.TwoMass, s oracle.Scheme, H float64, steps int) *outcome {
	t.Helper()
	out := complete(t, schemeArgs(t, o, s, H, steps)...)
	if out.rows != steps+1 {
		t.Fatalf("%d points, want %d", out.rows, steps+1)
	}
	return out
}

// The trajectories from the FMUs are those of the propagation matrices: three
// decompositions, explicit (Jacobi and both sequences of Gauss–Seidel) and
// implicit, up to k = 5, from a short start and with exact history, to 1e-10 of the
// largest value of each state.
func TestTwoMassPropagation(t *testing.T) {
	take := long.Sample(13)
	const H, steps, tolerance = 1e-3, 1000, 1e-10
	schemes := methods(5)
	for _, s := range methods(3) {
		if s.Implicit {
			continue
		}
		for _, sequence := range [][]int{{0, 1}, {1, 0}} {
			s.Sequence = sequence
			schemes = append(schemes, s)
		}
	}
	for _, s := range schemes {
		for _, history := range []bool{false, true} {
			if history && (s.Order == 0 || s.Sequence != nil) {
				continue
			}
			s := s
			s.History = history
			if !take() {
				continue
			}
			t.Run(fmt.Sprintf("%v/history=%t", s, history), func(t *testing.T) {
				t.Parallel()
				want, radius := oracle.States(uneven, s, H, steps)
				if radius >= 1 {
					t.Fatalf("spectral radius %g: choose a stable case", radius)
				}
				got := runScheme(t, uneven, s, H, steps).states(t)
				for c := range want[0] {
					size, worst := 0.0, 0.0
					for n := range want {
						size = max(size, math.Abs(want[n][c]))
						worst = max(worst, math.Abs(got[n][c]-want[n][c]))
					}
					if !(worst <= tolerance*size) {
						t.Errorf("state %d is off by %.2g of its largest value, tolerance %g", c, worst/size, tolerance)
					}
				}
			})
		}
	}
}

// stabilityCase is an oscillator under one of the methods, with what its
// propagation matrix says.
type stabilityCase struct {
	oscillator exact.TwoMass
	scheme     oracle.Scheme
	H          float64
	dominant   complex128
}

// stabilityCases draws n of them with |ρ−1| > 1e-3, every method in turn,
// stable and unstable ones in turn, three of four with 0.7 < ρ < 1.3, as far as
// the method has such. Eigenvalues lie in the ranges of Figs. 5–10 of schweizer;
// half of the oscillators are symmetric, the others have all ratios in 1/2…2.
func stabilityCases(n int) []stabilityCase {
	const patience = 200
	random := rand.New(rand.NewPCG(24, 200))
	ratio := func() float64 { return math.Pow(2, 2*random.Float64()-1) }
	all := methods(3)
	var out []stabilityCase
	for draws := 0; len(out) < n; draws++ {
		s, round := all[len(out)%len(all)], len(out)/len(all)
		wide := 2.0
		if s.Implicit {
			wide = 10
		}
		H := math.Pow(10, -4+3*random.Float64())
		p := oracle.Symmetric(-2*random.Float64()*random.Float64(), wide*random.Float64())
		p.MacroStepH = H
		if random.IntN(2) == 0 {
			p.Mass, p.R21, p.I21, p.Rc, p.Ic = ratio(), ratio(), ratio(), ratio(), ratio()
		}
		o := p.TwoMass()
		dominant := oracle.Eigenvalues(oracle.Propagation(o, s, H))[0]
		rho := cmplx.Abs(dominant)
		asked := (rho < 1) == (round%2 == 0) && (rho > 0.7 && rho < 1.3) == (round%4 < 3)
		if math.Abs(rho-1) <= 1e-3 || !asked && draws < patience {
			continue
		}
		for c := range o.Start {
			o.Start[c] = 2*random.Float64() - 1
			if c%2 == 1 {
				o.Start[c] *= p.I / H
			}
		}
		out = append(out, stabilityCase{o, s, H, dominant})
		draws = 0
	}
	return out
}

// 200 seeded points are stable or not as their propagation matrices say, and for
// 0.7 < ρ < 1.3 the dominant eigenvalue fitted from the recorded states is theirs
// to 1e-3.
func testTwoMassStability(t *testing.T) {
	take := long.Sample(20)
	const steps, tolerance = 80, 1e-3
	for n, c := range stabilityCases(200) {
		rho := cmplx.Abs(c.dominant)
		if !take() {
			continue
		}
		t.Run(fmt.Sprintf("%d/%v/rho=%.4f", n, c.scheme, rho), func(t *testing.T) {
			t.Parallel()
			states := runScheme(t, c.oscillator, c.scheme, c.H, steps).states(t)
			// The first steps have lower orders.
			fit, err := oracle.Fit(states[c.scheme.Order:], c.scheme.Depth())
			if err != nil {
				t.Fatal(err)
			}
			if got := cmplx.Abs(fit[0]); (got < 1) != (rho < 1) {
				t.Errorf("%+v, H = %g: fitted spectral radius %.6f, matrix %.6f", c.oscillator, c.H, got, rho)
			}
			if rho <= 0.7 || rho >= 1.3 {
				return
			}
			// Others can have the same magnitude.
			near := math.Inf(1)
			for _, e := range fit {
				near = min(near, cmplx.Abs(e-c.dominant))
			}
			if off := math.Abs(cmplx.Abs(fit[0]) - rho); !(off <= tolerance && near <= tolerance) {
				t.Errorf("%+v, H = %g: fitted eigenvalues %.6f, of the matrix %.6f", c.oscillator, c.H, fit, c.dominant)
			}
		})
	}
}

// uneven tells the two masses apart, and starts both.
var uneven = exact.TwoMass{
	M1: 1, C1: 1000, D1: 10, M2: 1.75, C2: 700, D2: 12, Cc: 850, Dc: 7,
	Start: [4]float64{1, -20, -0.5, 30},
}

// twoMassArgs returns the command line for an oscillator in a decomposition.
func twoMassArgs(t testing.TB, o exact.TwoMass, decomposition string) []string {
	t.Helper()
	args := []string{system(t, "two-mass-"+decomposition)}
	set := func(name string, v float64) { args = append(args, "--set", fmt.Sprintf("%s=%v", name, v)) }
	for i, p := range [2][5]float64{{o.M1, o.C1, o.D1, o.Start[0], o.Start[1]}, {o.M2, o.C2, o.D2, o.Start[2], o.Start[3]}} {
		for j, name := range []string{"m", "c", "d", "x0", "v0"} {
			set(fmt.Sprintf("mass%d.%s", i+1, name), p[j])
		}
	}
	holders := map[string][]string{"ff": {"coupling"}, "fd": {"coupling", "mass2"}, "dd": {"mass1", "mass2"}}
	for _, component := range holders[decomposition] {
		set(component+".c_c", o.Cc)
		set(component+".d_c", o.Dc)
	}
	return args
}

// writeHistory writes the exact outputs at k points before the start.
func writeHistory(t testing.TB, o exact.TwoMass, k int, H float64) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,mass1.x,mass1.v,mass2.x,mass2.v,coupling.F\n")
	for j := k; j > 0; j-- {
		at := -float64(j) * H
		x := o.At(at)
		fmt.Fprintf(&b, "%v,%v,%v,%v,%v,%v\n", at, x[0], x[1], x[2], x[3], o.Force(x))
	}
	path := filepath.Join(t.TempDir(), "history.csv")
	write(t, path, []byte(b.String()))
	return path
}

// states returns x1, v1, x2, v2 at every point.
func (o *outcome) states(t testing.TB) [][4]float64 {
	t.Helper()
	out := make([][4]float64, o.rows)
	for c, name := range []string{"mass1.x", "mass1.v", "mass2.x", "mass2.v"} {
		for n, v := range o.column(t, name) {
			out[n][c] = v
		}
	}
	return out
}
