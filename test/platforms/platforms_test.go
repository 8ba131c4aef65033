//go:build linux

package main

import (
	"math"
	"strings"
	"testing"
)

func TestDifference(t *testing.T) {
	const table = "time,a,b\n0,1,100\n1,-2,0\n"
	for _, test := range []struct {
		got  string
		d    float64
		says string
	}{
		{table, 0, ""},
		{strings.Replace(table, "-2", "-2.002", 1), 0.001, ""},
		{strings.Replace(table, "100", "100.1", 1), 0.001, ""},
		{strings.Replace(table, "100", "NaN", 1), math.NaN(), ""},
		{table + "2,1,1\n", 0, "4 lines, and should have 3"},
		{strings.Replace(table, "b", "c", 1), 0, "other columns"},
		{strings.Replace(table, "100", "x", 1), 0, "invalid syntax"},
		{"", 0, "should have 3"},
	} {
		rows, d, err := difference(table, test.got)
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q: error %v, want %q", test.got, err, test.says)
			}
			continue
		}
		if err != nil || rows != 2 || !(math.Abs(d-test.d) < 1e-12) && !(math.IsNaN(d) && math.IsNaN(test.d)) {
			t.Errorf("%q: %d rows, difference %g, want %g; %v", test.got, rows, d, test.d, err)
		}
	}
}

func TestFaults(t *testing.T) {
	c := check{code: 1, says: []string{"why"}, logs: "slave=bad", warns: "hot"}
	good := &result{code: 1, status: "failed", reason: "that is why", output: "one slave=bad\nother\ntwo slave=bad\n", warned: "it is hot", trail: "log"}
	if f := c.faults(good, good); len(f) != 0 {
		t.Errorf("%q", f)
	}
	for _, test := range []struct {
		change func(r *result)
		says   string
	}{
		{func(r *result) { r.code = 0 }, "exit code 0"},
		{func(r *result) { r.status = "complete" }, `status "complete"`},
		{func(r *result) { r.reason = "" }, `the reason lacks "why"`},
		{func(r *result) { r.warned = "" }, `the warnings lack "hot"`},
		{func(r *result) { r.trail = "" }, "it has left  and not log"},
		{func(r *result) { r.output = "" }, "nothing is logged"},
		{func(r *result) { r.output = "one slave=bad\n" }, `"two slave=bad" is missing`},
		{func(r *result) { r.output = strings.Replace(r.output, "two", "three", 1) }, `"two slave=bad" is missing`},
	} {
		r := *good
		test.change(&r)
		if f := strings.Join(c.faults(&r, good), "; "); !strings.Contains(f, test.says) {
			t.Errorf("%q is not found, but %q", test.says, f)
		}
	}
}

// Missing programs are listed with the packages to install.
func TestAbsent(t *testing.T) {
	p := &platform{needs: []need{{[]string{"no-such-program", "nor-this"}}, {[]string{"go"}}}, packages: []string{"package"}}
	if got := strings.Join(p.absent(), "; "); got != "no-such-program or nor-this; to install: apt-get install package" {
		t.Error(got)
	}
}
