package fmus

import (
	"math"
	"slices"
	"testing"
)

// Without a fault misbehave does what it says, and its tables in C agree with
// the description: starts, references, the time reached.
func TestMisbehaveWithoutFault(t *testing.T) {
	if _, err := Build(work, "misbehave"); err != nil {
		t.Fatal(err)
	}
	i := start(t, "misbehave", map[string]float64{"d": 3, "u": 2})
	for _, v := range i.md.Variables {
		if v.Causality != "parameter" || v.Name == "d" {
			continue
		}
		if v.Real == nil {
			var got int32
			i.must(i.GetInteger(i.c, &v.Reference, 1, &got))
			want := int32(0) // enumerations start with their first item
			if v.Integer != nil {
				want = *v.Integer.Start
			}
			if got != want {
				t.Errorf("%s starts at %d in C, %d in the description", v.Name, got, want)
			}
		} else if got := i.get(v.Name); got != *v.Real.Start {
			t.Errorf("%s starts at %g in C, %g in the description", v.Name, got, *v.Real.Start)
		}
	}
	i.step(0, 0.5)
	x := 2 - math.Exp(-0.5)
	near(t, "x", i.get("x"), x, 1e-14)
	near(t, "z", i.get("z"), 2*0.5-(1-math.Exp(-0.5)), 1e-14) // ∫ 2 − exp(−t)
	near(t, "w", i.get("w"), x+6, 1e-13)
	near(t, "time", i.get("time"), 0.5, 0)
}

// The FMUs that misbehave are none of the examples, and have names of their own.
func TestMisbehavingStandsApart(t *testing.T) {
	for _, name := range Misbehaving() {
		if slices.Contains(Names(), name) {
			t.Errorf("%s is listed among the examples", name)
		}
	}
}
