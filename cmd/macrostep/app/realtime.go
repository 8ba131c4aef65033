package app

import (
	"fmt"
	"io"

	"github.com/macrostep/macrostep/master"
)

// printTiming prints the delays of a run with this mean step in s. uneven is a remark for steps of
// different size.
func printTiming(w io.Writer, t *master.Timing, step float64, uneven string) {
	missed := "none missed"
	if t.Overruns > 0 {
		missed = fmt.Sprintf("%d missed", t.Overruns)
		if t.Skipped > 0 {
			missed += ", " + plural(t.Skipped, "slot") + " skipped"
		}
	}
	if t.Paused > 0 {
		missed += fmt.Sprintf("; the clock was stopped for %s s in pauses", number(t.Paused))
	}
	fmt.Fprintf(w, "real time %s ×, %s of %s%s, %s\n", short(t.Factor), plural(t.Deadlines, "deadline"), micro(step/t.Factor), uneven, missed)
	percentiles := func(d *master.Distribution) string {
		return fmt.Sprintf("%s (50 %%), %s (99 %%), %s (99.9 %%), %s at worst", micro(d.P50), micro(d.P99), micro(d.P999), micro(d.Worst))
	}
	fmt.Fprintf(w, "  late by %s", percentiles(&t.Lateness))
	if t.Deadlines > 0 {
		fmt.Fprintf(w, ", at t = %s s", number(t.WorstAt))
	}
	fmt.Fprintf(w, "\n  at work %s\n", percentiles(&t.Work))
}

// micro formats a time in s with three digits.
func micro(s float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}} {
		if s < 999.5*unit.size {
			return fmt.Sprintf("%.3g %s", s/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g s", s)
}
