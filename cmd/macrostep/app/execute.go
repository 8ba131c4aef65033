package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

// execute opens and runs a system, writes its files, and prints messages, progress and summary.
func (p *program) execute(ctx context.Context, r *runRequest) error {
	con := newConsole(p.stderr)
	defer con.clear()
	r.Command = p.args
	if r.Quiet && !slices.Contains(r.Given, flagLogLevel) {
		r.LogLevel = slog.LevelError
	}
	a, err := p.attach(ctx, r, con)
	if err != nil {
		return err
	}
	runner := simulate.Runner{Open: p.backend.Open, Presets: p.presets, Events: a.event, Prepare: a.prepare, Running: a.running, At: r.at}
	out, err := runner.Run(ctx, r.Request)
	con.clear()
	if !r.Quiet && out.Manifest != nil {
		summary(p.stdout, con, &out)
	}
	err = errors.Join(err, a.end(&out))
	var refused *simulate.RequestError
	switch {
	case err == nil:
		return nil
	case out.Begun:
		return &runError{err}
	case errors.As(err, &refused):
		return &usageError{"run", err}
	}
	return err
}

// The largest numbers of entries in the summary.
const (
	shownWarnings = 10
	shownLoops    = 5
	shownNames    = 4
	shownEvents   = 8
)

// summary prints the outcome of a run.
func summary(w io.Writer, con *console, o *simulate.Outcome) {
	m := o.Manifest
	uneven := ""
	if m.Steps.Accepted > 1 && math.Abs(m.Steps.Mean-m.StepSize.Value) > 1e-9*m.StepSize.Value {
		uneven = ", on average"
	}
	printEnd(w, m, uneven)
	if m.Scenario != nil {
		printScenario(w, m.Scenario)
	}
	if m.Realtime != nil {
		printTiming(w, m.Realtime, m.Steps.Mean, uneven)
	}
	printCoupling(w, m)
	printFiles(w, o)
	if n := len(m.Notes); n > 0 {
		fmt.Fprintf(w, "%s in the manifest\n", plural(n, "note"))
	}
	printWarnings(w, con, m.Warnings)
}

// printEnd prints the outcome, the steps and the algorithm. uneven is a remark for steps of different
// size.
func printEnd(w io.Writer, m *record.Manifest, uneven string) {
	fmt.Fprintf(w, "%s at t = %g s: %s", m.Outcome.Ended, m.EndTime, plural(m.Steps.Accepted, "step"))
	if m.Steps.Accepted > 0 {
		fmt.Fprintf(w, " of %s s%s", number(m.Steps.Mean), uneven)
	}
	if wall := m.WallSeconds; wall > 0 {
		fmt.Fprintf(w, " in %s (%s × real time)", duration(wall), short((m.EndTime-m.StartTime.Value)/wall))
	}
	if m.Steps.Rejected > 0 {
		fmt.Fprintf(w, ", %d more rejected", m.Steps.Rejected)
	}
	fmt.Fprintln(w)
	if verdict := m.Outcome.String(); verdict != m.Outcome.Ended {
		fmt.Fprintf(w, "outcome   %s\n", verdict)
	}
	fmt.Fprintf(w, "algorithm %s%s\n", m.Algorithm, parameterList(m.Parameters))
	if len(m.Orders) > 1 {
		fmt.Fprintf(w, "orders   %s\n", orderList(m.Orders))
	}
	if m.Outcome.Regular() && m.Reason != "" {
		fmt.Fprintln(w, m.Reason)
	}
}

// printCoupling prints corrector iterations, monitored variables, power bonds and algebraic loops.
func printCoupling(w io.Writer, m *record.Manifest) {
	if m.Iterations > 0 {
		fmt.Fprintf(w, "corrector %s, %s of the interface\n", plural(m.Iterations, "iteration"), plural(m.Jacobians, "Jacobian"))
	}
	if n := len(m.Monitored); n > 0 {
		fmt.Fprintf(w, "error of  %s", strings.Join(m.Monitored[:min(n, shownNames)], ", "))
		if n > shownNames {
			fmt.Fprintf(w, " … (%d variables)", n)
		}
		fmt.Fprintln(w)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Bonds)) {
		b := m.Bonds[name]
		fmt.Fprintf(w, "bond      %s: residual energy %s J, mean power %s W, mean residual power %s W, at most %s W\n",
			name, number(b.ResidualEnergy), number(b.MeanPower), number(b.MeanAbsResidualPower), number(b.PeakResidualPower))
	}
	for _, l := range m.Loops[:min(len(m.Loops), shownLoops)] {
		fmt.Fprintln(w, loopLine(l))
	}
	if more := len(m.Loops) - shownLoops; more > 0 {
		fmt.Fprintf(w, "  and %s more in the manifest\n", plural(more, "loop"))
	}
}

// printFiles prints the files of a run, and the command that resumes it.
func printFiles(w io.Writer, o *simulate.Outcome) {
	m := o.Manifest
	if o.Table {
		fmt.Fprintf(w, "results   %s (%s, %s)\n", m.Results, plural(o.Rows, "row"), plural(o.Columns, "column"))
	}
	if o.ManifestPath != "" {
		fmt.Fprintf(w, "manifest  %s\n", o.ManifestPath)
	}
	if c := m.Checkpoints; c != nil && c.Time != nil && !m.Outcome.Regular() {
		fmt.Fprintf(w, "to go on from t = %g s: macrostep run --%s %s\n", *c.Time, flagResume, c.Path)
	}
}

// printWarnings prints the warnings that were not printed during the run.
func printWarnings(w io.Writer, con *console, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	left := slices.DeleteFunc(slices.Clone(warnings), con.printed)
	fmt.Fprint(w, plural(len(warnings), "warning"))
	if printed := len(warnings) - len(left); printed > 0 {
		fmt.Fprintf(w, ", %d of them above", printed)
	}
	fmt.Fprintln(w)
	for _, text := range left[:min(len(left), shownWarnings)] {
		fmt.Fprintf(w, "  %s\n", text)
	}
	if more := len(left) - shownWarnings; more > 0 {
		fmt.Fprintf(w, "  and %d more in the manifest\n", more)
	}
}

// loopLine describes a loop in a line, with at most shownNames of its variables.
func loopLine(l master.Loop) string {
	names := l.Variables
	more := ""
	if len(names) > shownNames {
		more = fmt.Sprintf(" → … (%d variables)", len(names))
		names = names[:shownNames]
	} else if len(names) > 0 {
		more = " → " + names[0]
	}
	where, how := "loop", "declared"
	if l.Initialization {
		where = "loop of the initialisation"
	}
	if l.Assumed {
		how = "assumed, since dependencies are not declared"
	}
	return fmt.Sprintf("%s  %s%s: %s; %s", where, strings.Join(names, " → "), more, how, l.Treatment)
}

// parameterList returns parameters with long values cut; the manifest has them in full.
func parameterList(params map[string]string) string {
	const longest = 60
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(params)) {
		v := params[k]
		if len(v) > longest {
			v = strings.ToValidUTF8(v[:longest], "") + "…"
		}
		fmt.Fprintf(&b, " %s=%s", k, v)
	}
	return b.String()
}

// orderList lists the number of macro steps of each order.
func orderList(orders map[int]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(orders)) {
		fmt.Fprintf(&b, " k=%d: %d", k, orders[k])
	}
	return b.String()
}
