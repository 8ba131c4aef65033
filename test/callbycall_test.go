package test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// Many calls in one crossing into C give what calls one by one give: the same bytes, counts, messages and ends.
func testCallByCall(t *testing.T) {
	t.Parallel()
	take := long.Sample(15)
	type facts struct {
		table, status, reason string
		warnings, fmuSteps    string
	}
	gather := func(t *testing.T, args []string) facts {
		o := run(t, args...)
		table, err := os.ReadFile(o.results)
		if err != nil && o.manifest.Status == "complete" {
			t.Fatal(err)
		}
		return facts{string(table), o.manifest.Status, o.manifest.Reason, o.warnings(), fmt.Sprint(o.manifest.Steps, o.manifest.FMUSteps)}
	}
	same := func(t *testing.T, args ...string) facts {
		t.Helper()
		args = slices.Clip(args)
		got, want := gather(t, args), gather(t, append(args, "--debug", "call-by-call"))
		if got.table != want.table {
			t.Errorf("%v: the results differ", args)
		}
		got.table, want.table = "", ""
		if got != want {
			t.Errorf("%v:\n%+v, call by call\n%+v", args, got, want)
		}
		return got
	}

	for _, name := range fmus.Systems() {
		path := system(t, name)
		for _, more := range [][]string{{"--algorithm", "explicit", "--record", "*"}, {"--algorithm", "gauss-seidel", "--output-interval", "0.0137"}} {
			if !take() {
				continue
			}
			t.Run(name+" "+more[1], func(t *testing.T) {
				t.Parallel()
				if f := same(t, append([]string{path, "--stop-time", "0.2003"}, more...)...); f.status != "complete" {
					t.Errorf("%s: %s: %s", name, f.status, f.reason)
				}
			})
		}
	}

	// A fault in the middle of many steps.
	take = long.Sample(3)
	for k, set := range []string{
		"fault=Warning", "fault=Discard at=0.35", "fault=DiscardMute at=0.35", "fault=DiscardAndEnd at=0.35",
		"fault=Error at=0.35", "fault=Fatal at=0.35", "fault=Undefined at=0.35",
		"fault=Pending at=0.35 polls=3 times=1", "fault=Pending at=0.35 polls=3 ending=Error", "fault=Pending at=0.35 polls=3 ending=Discard fraction=0.5",
		"fault=NaN at=0.35", "fault=Infinity at=0.35", "fault=NaN during=GetReal at=0.35", "fault=NaN during=GetReal at=0.35 variable=3",
		"fault=Error during=GetReal at=0.35", "fault=Fatal during=GetReal at=0.35", "fault=Error during=SetReal at=0.35",
		"fault=Discard during=SetReal at=0.35", "fault=Warning during=SetReal at=0.35", "fault=Warning during=GetReal at=0.35",
		"fault=Error during=Terminate",
	} {
		if !take() {
			continue
		}
		algorithm := []string{"explicit", "gauss-seidel"}[k%2]
		t.Run(set+" "+algorithm, func(t *testing.T) {
			t.Parallel()
			args := []string{badPair(t, "misbehave"), "--step-size", "0.001", "--algorithm", algorithm, "--record", "*"}
			for _, s := range strings.Fields(set) {
				args = append(args, "--set", "bad."+s)
			}
			same(t, args...)
		})
	}
	// One that fails with the first step, and one that cannot vary its step.
	same(t, badPair(t, "misbehave"), "--set", "bad.fault=Error", "--step-size", "0.01")
	same(t, badPair(t, "misbehave_constant"), "--step-size", "0.003", "--stop-time", "1")
}

// With nothing recorded, and with a few rows only, as many steps are taken.
func TestUnrecordedSteps(t *testing.T) {
	path := system(t, "quarter-car-a")
	want := complete(t, path).manifest.FMUSteps
	for _, args := range [][]string{{"--output-interval", "0.5"}, {"--record", "none"}} {
		if got := complete(t, append(args, path)...).manifest.FMUSteps; !maps.Equal(got, want) {
			t.Errorf("%v: steps %v, with every row %v", args, got, want)
		}
	}
}
