package test

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An output that feeds nothing and is infinite is recorded in every format, and in a process of its own. All commands take
// the results; --strict accepts infinity, and fails at NaN.
func TestInfiniteResults(t *testing.T) {
	system := badPair(t, "misbehave")
	with := func(fault string, more ...string) []string {
		return append([]string{system, "--step-size", "0.1", "--set", "bad.fault=" + fault, "--set", "bad.during=GetReal",
			"--set", "bad.at=0.35", "--set", "bad.variable=5"}, more...)
	}
	const warning = "bad (misbehave.fmu): bad.w is infinite at "
	first := complete(t, with("Infinity")...)
	for n, v := range first.column(t, "bad.w") {
		if at := first.column(t, "time")[n]; math.IsInf(v, -1) != (at > 0.35) {
			t.Errorf("bad.w is %g at t = %g s", v, at)
		}
	}
	want := []string{warning + "t = 0.4 s and feeds no input, so the run continues", warning + "7 of 11 communication points, the last at t = 1 s"}
	if w := first.manifest.Warnings; len(w) < 2 || !slices.Equal(w[len(w)-2:], want) {
		t.Errorf("the warnings are %q, want %q", w, want)
	}
	if again := complete(t, with("Infinity", "--isolate", "always", "--strict")...); again.table(t) != first.table(t) {
		t.Error("isolated and strict, the results differ")
	}
	dir := t.TempDir()
	other := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a.parquet", "a.mat"} {
		call(t, append([]string{"run", "--quiet", "--output", other(name)}, with("Infinity", "--report", other(name+".html"), "--manifest", other(name+".json"))...)...).is(t, 0)
		call(t, "compare", first.results, other(name)).is(t, 0, "all agree")
		call(t, "plot", other(name), "-o", other(name+".svg")).is(t, 0)
		call(t, "report", other(name), "-o", other(name+".page.html")).is(t, 0)
		if !json.Valid(read(t, other(name+".json"))) || bytes.Contains(read(t, other(name+".svg")), []byte("NaN")) {
			t.Errorf("%s: the manifest or the picture has numbers that are none", name)
		}
	}
	run(t, with("NaN", "--strict")...).is(t, 1, "bad.w is NaN at t = 0.4 s: a strict run accepts no NaN")
	run(t, with("NaN")...).is(t, 0)

	write(t, other("study.yaml"), "system: "+system+"\nrun: {step-size: 0.1}\nvary: {bad.fault: [NaN, Infinity], bad.during: [GetReal], bad.at: [0.35], bad.variable: [5]}\n"+
		"collect: {low: minimum(bad.w), when: time-of-minimum(bad.w), high: maximum(bad.w), end: final(bad.x)}\n")
	call(t, "study", other("study.yaml"), "-o", other("study")).is(t, 0)
	rows := readCSV(t, other("study/results.csv"))
	at := func(row int, column string) string { return rows[row][slices.Index(rows[0], column)] }
	for row, exact := range map[int][2]string{1: {"", ""}, 2: {"0.4", "1"}} {
		if at(row, "low") != "" || at(row, "when") != exact[0] || at(row, "high") != exact[1] || at(row, "status") != "ok" ||
			at(row, "end") == "" || !strings.Contains(at(row, "reason"), "is empty, because the variable is infinite or NaN") {
			t.Errorf("%q", rows[row])
		}
	}
}
