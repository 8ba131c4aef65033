package test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/oracle"
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
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
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

// Each delivery reaches the order that it can: derivatives k+1, sampled
// substeps min(k+1, 2) at fixed n (seen with few of them; with ten the error of
// the sampling is still below that of the extrapolation at these steps), held 1.
func TestDeliveryOrder(t *testing.T) {
	for _, c := range []struct {
		delivery []string
		k        int
		want     float64
	}{
		{[]string{"--param", "delivery=derivatives"}, 1, 2},
		{[]string{"--param", "delivery=derivatives"}, 2, 3},
		{[]string{"--param", "delivery=derivatives"}, 3, 4},
		{[]string{"--param", "substeps=10"}, 1, 2},
		{[]string{"--param", "substeps=1"}, 1, 2},
		{[]string{"--param", "substeps=1"}, 2, 2},
		{[]string{"--param", "substeps=1"}, 3, 2},
		{[]string{"--param", "delivery=held"}, 2, 1},
	} {
		t.Run(fmt.Sprintf("%s/k=%d", strings.Join(c.delivery[1:], ","), c.k), func(t *testing.T) {
			t.Parallel()
			p, _ := orders(t, oracle.Scheme{Decomposition: "dd", Order: c.k, History: true}, c.delivery...)
			if math.Abs(p-c.want) > 0.12 {
				t.Errorf("order %.3f, want %g", p, c.want)
			}
		})
	}
}

// With more substeps the sampled polynomial comes to the exact one, with the
// square of their number.
func TestSubstepsConverge(t *testing.T) {
	args := func(p ...string) []string {
		a := append(twoMassArgs(t, uneven, "dd"), "--step-size", "2e-3", "--stop-time", "0.4", "--param", "order=2")
		for _, q := range p {
			a = append(a, "--param", q)
		}
		return a
	}
	exactly := complete(t, args("delivery=derivatives")...).states(t)
	var errs []float64
	for _, n := range []int{4, 8, 16} {
		got := complete(t, args(fmt.Sprintf("substeps=%d", n))...).states(t)
		worst := 0.0
		for i := range got {
			worst = max(worst, math.Abs(got[i][0]-exactly[i][0]))
		}
		errs = append(errs, worst)
	}
	for i := range errs[1:] {
		if order := math.Log2(errs[i] / errs[i+1]); math.Abs(order-2) > 0.1 {
			t.Errorf("errors %v: order %.3f in the number of substeps, want 2", errs, order)
		}
	}
}

// The manifest says how each input got its polynomial.
func TestDeliveryReported(t *testing.T) {
	o := complete(t, append(twoMassArgs(t, uneven, "fd"), "--param", "order=2", "--param", "substeps=4", "--stop-time", "0.01")...)
	var got []string
	for _, d := range o.manifest.Delivery {
		got = append(got, fmt.Sprintf("%s %s %d", d.Input, d.How, d.Order))
	}
	slices.Sort(got)
	want := []string{
		"coupling.v1 late 0", "coupling.v2 late 0", "coupling.x1 late 0", "coupling.x2 late 0",
		"mass1.F substeps=4 2", "mass2.v_other substeps=4 2", "mass2.x_other substeps=4 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
