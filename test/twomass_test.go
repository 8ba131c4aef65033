package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
)

// uneven tells the two masses apart, and starts both.
var uneven = exact.TwoMass{
	M1: 1, C1: 1000, D1: 10, M2: 1.75, C2: 700, D2: 12, Cc: 850, Dc: 7,
	Start: [4]float64{1, -20, -0.5, 30},
}

// twoMassArgs gives the command line for an oscillator in a decomposition.
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

// states gives x1, v1, x2, v2 at every point.
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
