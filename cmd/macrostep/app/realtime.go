package app

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master"
)

// Names of the flags about real time.
const (
	flagRealtime = "realtime"
	flagOverrun  = "overrun"
	flagPriority = "realtime-priority"
)

const realtimeHelp = `

--realtime keeps each communication point to its time: t after the start of the
stepping, over FACTOR, by the monotonic clock. Deadlines are absolute. The run waits
on a locked thread, asleep until shortly before the deadline and spinning then; the
garbage collector is off until memory has grown by 256 MiB. Summary and manifest
(realtime) tell how late the run was: percentiles, the worst, a histogram, and the
steps that were not done in time, with which --overrun deals: catch-up keeps the
deadlines, skip leaves out the slots that are lost, stop ends the run.`

func realtimeFlags(category string) []cli.Flag {
	return []cli.Flag{
		valueOptional{&cli.StringFlag{Name: flagRealtime, Usage: "keep pace with the clock, at `FACTOR` times its speed (without: 1)", Category: category}},
		&cli.StringFlag{Name: flagOverrun, Usage: "when a step is not done by its deadline: `POLICY` " + strings.Join(master.OverrunPolicies(), ", "), Value: master.CatchUp.String(), Category: category},
		&cli.IntFlag{Name: flagPriority, Usage: "run the stepping by SCHED_FIFO with priority `N`, 1 to 99 (Linux, takes the right to it)", Category: category},
	}
}

// readRealtime reads the flags; nil = as fast as can be.
func readRealtime(c *cli.Context) (*master.Realtime, error) {
	if !c.IsSet(flagRealtime) {
		for _, name := range []string{flagOverrun, flagPriority} {
			if c.IsSet(name) {
				return nil, fmt.Errorf("--%s needs --%s", name, flagRealtime)
			}
		}
		return nil, nil
	}
	rt := &master.Realtime{Factor: 1, Priority: c.Int(flagPriority)}
	var errs []error
	if text := c.String(flagRealtime); text != "true" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			errs = append(errs, fmt.Errorf("--%s: %q is no number greater than 0; give the speed as --%s=2, or none for that of the clock", flagRealtime, text, flagRealtime))
		}
		rt.Factor = v
	}
	policy := slices.Index(master.OverrunPolicies(), c.String(flagOverrun))
	if policy < 0 {
		errs = append(errs, fmt.Errorf("--%s: %q is none of %s", flagOverrun, c.String(flagOverrun), strings.Join(master.OverrunPolicies(), ", ")))
	}
	rt.Overrun = master.OverrunPolicy(max(policy, 0))
	if c.IsSet(flagPriority) && (rt.Priority < 1 || rt.Priority > 99) {
		errs = append(errs, fmt.Errorf("--%s: %d is not 1 to 99", flagPriority, rt.Priority))
	}
	return rt, errors.Join(errs...)
}

// printTiming prints how well a run with steps of this size kept pace; uneven is a word on
// steps of which it is the mean.
func printTiming(w io.Writer, t *master.Timing, step float64, uneven string) {
	missed := "none missed"
	if t.Overruns > 0 {
		missed = fmt.Sprintf("%d missed", t.Overruns)
		if t.Skipped > 0 {
			missed += ", " + plural(t.Skipped, "slot") + " skipped"
		}
	}
	if t.Paused > 1e-3 { // less is asking whether it is
		missed += fmt.Sprintf("; the clock stood still for %s s in pauses", number(t.Paused))
	}
	fmt.Fprintf(w, "real time %s ×, %s of %s%s, %s\n", short(t.Factor), plural(t.Deadlines, "deadline"), micro(step/t.Factor), uneven, missed)
	for _, line := range []struct {
		name string
		d    *master.Distribution
	}{{"late by", &t.Lateness}, {"at work", &t.Work}} {
		fmt.Fprintf(w, "  %s %s (50 %%), %s (99 %%), %s (99.9 %%), %s at worst", line.name, micro(line.d.P50), micro(line.d.P99), micro(line.d.P999), micro(line.d.Worst))
		if line.d == &t.Lateness && t.Deadlines > 0 {
			fmt.Fprintf(w, ", at t = %s s", number(t.WorstAt))
		}
		fmt.Fprintln(w)
	}
}

// micro writes a time in s with three digits.
func micro(s float64) string {
	d := time.Duration(s * 1e9)
	for digit := time.Duration(1); ; digit *= 10 {
		if d < 1000*digit {
			return d.Round(digit).String()
		}
	}
}
