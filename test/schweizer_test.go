package test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/oracle"
)

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

// The trajectories from the FMUs are those of the propagation matrices: three decompositions, explicit (Jacobi and
// both sequences of Gauss–Seidel) and implicit, up to k = 5, from a short start and with exact history, to 1e-10 of
// the largest value of each state.
func TestTwoMassPropagation(t *testing.T) {
	take := long.Sample(13)
	const H, steps, tolerance = 1e-3, 1000, 1e-10
	schemes := oracle.Methods(5)
	for _, s := range oracle.Methods(3) {
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
				o := complete(t, schemeArgs(t, uneven, s, H, steps)...)
				if o.rows != steps+1 {
					t.Fatalf("%d points, want %d", o.rows, steps+1)
				}
				got := o.states(t)
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

// uneven has two different masses, both in motion at the start.
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
