package fmus

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// fault returns the value of an item of the parameter fault.
func fault(name string) float64 { return float64(slices.Index(Faults(), name)) }

// Without a fault misbehave computes its model, and its tables in C agree with the description.
func TestMisbehaveWithoutFault(t *testing.T) {
	if _, err := Build(work, "misbehave"); err != nil {
		t.Fatal(err)
	}
	i := start(t, "misbehave", map[string]float64{"d": 3, "u": 2})
	for _, v := range i.md.Variables {
		if v.Causality != "parameter" || v.Name == "d" {
			continue
		}
		if v.String != nil {
			continue // see TestStrings
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
	i.near("x", x, 1e-14)
	i.near("z", 2*0.5-(1-math.Exp(-0.5)), 1e-14) // ∫ 2 − exp(−t)
	i.near("w", x+6, 1e-13)
	i.near("time", 0.5, 0)

	i = start(t, "misbehave", map[string]float64{"fault": float64(len(Faults()))}) // the item after the last one
	i.step(0, 0.5)
	i.near("x", math.Exp(-0.5), 1e-14)
}

// A string parameter is limited in length, fixed after initialization, and part of the state.
func TestStrings(t *testing.T) {
	const word = `a "b" \ <ü>`
	if _, err := BuildMisbehaving(work, "worded", "misbehave", map[string]string{"marker": word}); err != nil {
		t.Fatal(err)
	}
	i := instantiate(t, "worded")
	i.enter()
	vr := i.vr("marker")
	get := func() string {
		t.Helper()
		var p uintptr
		i.must(i.GetString(i.c, &vr, 1, &p))
		return cString(p)
	}
	if got, described := get(), i.variables["marker"].String.Start; got != word || described != word {
		t.Errorf("starts at %q, at %q in the description", got, described)
	}
	i.setText("marker", "a longer one, then a short one")
	i.setText("marker", "short")
	if got := get(); got != "short" {
		t.Errorf("set to %q", got)
	}
	set := func(v string) int32 {
		b := append([]byte(v), 0)
		defer runtime.KeepAlive(b)
		p := uintptr(unsafe.Pointer(&b[0]))
		return i.SetString(i.c, &vr, 1, &p)
	}
	*messages = nil
	i.refused("a string that is too long", set(strings.Repeat("x", maxText)), discard, "must be shorter")
	var state uintptr
	i.must(i.GetState(i.c, &state))
	i.setText("marker", strings.Repeat("x", maxText-1))
	if got := get(); len(got) != maxText-1 {
		t.Errorf("the longest string has %d bytes", len(got))
	}
	i.must(i.SetState(i.c, state))
	if got := get(); got != "short" {
		t.Errorf("restored to %q", got)
	}
	i.must(i.FreeState(i.c, &state))
	i.must(i.Exit(i.c))
	i.refused("after initialization", set("late"), failed, "fixed after initialization")
	other := uint32(1000)
	var p uintptr
	i.refused("another string", i.GetString(i.c, &other, 1, &p), failed, "no string variable with value reference")
}

// at2 and at3 delay the second and third fault; a marker counts over all instances.
func TestMisbehaveHappensAgain(t *testing.T) {
	if _, err := Build(work, "misbehave"); err != nil {
		t.Fatal(err)
	}
	warning := func(marker string, set map[string]float64) *instance {
		t.Helper()
		i := instantiate(t, "misbehave")
		i.set("fault", fault("Warning"))
		for name, v := range set {
			i.set(name, v)
		}
		i.setText("marker", marker)
		i.must(i.Setup(i.c, 0, 0, -1, 0, 0))
		i.must(i.Enter(i.c))
		i.must(i.Exit(i.c))
		return i
	}
	marker := filepath.Join(t.TempDir(), "marker")
	for _, c := range []struct {
		marker string
		set    map[string]float64
		want   string
	}{
		{"", map[string]float64{"at": -0.75}, "..WWWWWW"},
		{"", map[string]float64{"at": -0.75, "times": 2}, "..WW...."},
		{"", map[string]float64{"at": -0.75, "at2": -0.375, "at3": -0.125, "times": 3}, "..W..W.W"},
		{"", map[string]float64{"at": -1, "at3": -0.25}, "WW....WW"},
		{marker, map[string]float64{"at": -0.75, "times": 3}, "..WWW..."},
		{marker, map[string]float64{"at": -0.75, "times": 4}, "..W....."},
		{marker, map[string]float64{"at": -0.75, "times": 4}, "........"},
	} {
		i, steps := warning(c.marker, c.set), ""
		for n := range 8 {
			steps += []string{".", "W", "D", "E", "F"}[i.DoStep(i.c, float64(n-8)/8, 0.125, 1)]
		}
		if steps != c.want {
			t.Errorf("%v, marker %q: %s, want %s", c.set, c.marker, steps, c.want)
		}
	}
	if data, err := os.ReadFile(marker); err != nil || len(data) != 4 {
		t.Errorf("the marker holds %q (%v)", data, err)
	}
	i := warning(filepath.Join(t.TempDir(), "missing", "marker"), map[string]float64{"at": -1})
	i.refused("a marker in no folder", i.DoStep(i.c, -1, 0.1, 1), failed, "cannot be written")
}

// Start values select faults in fmi2Instantiate; names and values that do not fit are refused.
func TestBuildMisbehaving(t *testing.T) {
	path, err := BuildMisbehaving(work, "early_2", "misbehave_plain",
		map[string]string{"fault": "Error", "during": "Instantiate", "x0": "2.5", "times": "3"})
	if err != nil {
		t.Fatal(err)
	}
	if path != filepath.Join(work, "early_2.fmu") {
		t.Errorf("built as %s", path)
	}
	l := load(t, "early_2")
	if got := *l.variables["x0"].Real.Start; got != 2.5 {
		t.Errorf("x0 starts at %g", got)
	}
	set := callbacks()
	*messages = nil
	if c := l.Instantiate("one", 1, l.guid, "file:///tmp", unsafe.Pointer(&set), 0, 0); c != 0 {
		t.Error("there is an instance")
	}
	if len(*messages) != 1 || !strings.HasPrefix((*messages)[0], "3 logStatusError ") {
		t.Errorf("messages %q", *messages)
	}
	*messages = nil

	dir := t.TempDir()
	for _, c := range []struct{ as, name, parameter, value, want string }{
		{"a", "linear", "", "", "misbehave_once"},
		{"a b", "misbehave", "", "", "digits"},
		{"", "misbehave", "", "", "digits"},
		{"a", "misbehave", "x", "1", `no parameter "x"`},
		{"a", "misbehave", "x0", "NaN", "finite"},
		{"a", "misbehave", "x0", "1m", "finite"},
		{"a", "misbehave", "times", "-1", "of at least 0"},
		{"a", "misbehave", "times", "1.5", "integer"},
		{"a", "misbehave", "fault", "Segv", "Segfault"},
		{"a", "misbehave", "marker", strings.Repeat("x", maxText), "1023 bytes"},
		{"a", "misbehave", "marker", "\x00", "none of them 0"},
	} {
		starts := map[string]string{}
		if c.parameter != "" {
			starts[c.parameter] = c.value
		}
		if _, err := BuildMisbehaving(dir, c.as, c.name, starts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v (%v)", left, err)
	}
}
