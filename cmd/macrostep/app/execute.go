package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

// open opens a system. In the engine its FMUs find standard input empty; what the program itself reads there has been read.
func (p *program) open(ctx context.Context, path string, o simulate.OpenOptions) (*simulate.System, error) {
	if p.job != nil {
		if err := process.EmptyStdin(); err != nil {
			return nil, err
		}
	}
	o.Dialects = p.dialects
	return p.openSystem(ctx, path, o)
}

// execute opens and runs a system, writes its files, and prints messages, progress and summary.
func (p *program) execute(ctx context.Context, r *runRequest) error {
	con := newConsole(p.stderr)
	defer con.clear()
	r.Command = p.args
	a, err := p.attach(ctx, r, con)
	if err != nil {
		return err
	}
	runner := simulate.Runner{Open: p.open, Presets: p.presets, Events: a.event, Prepare: a.prepare, Running: a.running, At: r.at}
	if p.job != nil {
		runner.Settled = func(_ *simulate.Outcome, err error) { p.job.Settle(nil, err) }
	}
	if r.Profile != "" {
		runner.Own = []string{r.Profile}
	}
	out, err := runner.Run(ctx, r.Request)
	con.settle(err)
	con.clear()
	printed := !r.Quiet && out.Manifest != nil
	lines := 0
	if printed {
		text := summary(&out, r.Verbose)
		lines = strings.Count(text, "\n")
		fmt.Fprint(p.stdout, text)
	}
	err = errors.Join(err, a.end(&out))
	if printed {
		if r.Report != "" {
			lines++
		}
		most := max(mostLines-lines-1, 1) // a line may report that there are more
		if r.Verbose {
			most = math.MaxInt
		}
		printWarnings(con, out.Manifest.Warnings, most, out.ManifestPath)
	}
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

const (
	mostLines  = 10 // of the summary
	shownNames = 4  // in a line
)

// summary returns the outcome of a run: status, time, cost, files and what needs attention; with verbose also how the
// coupling worked, and notes.
func summary(o *simulate.Outcome, verbose bool) string {
	var b strings.Builder
	m := o.Manifest
	uneven := ""
	if m.Steps.Accepted > 1 && math.Abs(m.Steps.Mean-m.StepSize.Value) > 1e-9*m.StepSize.Value {
		uneven = " on average"
	}
	printEnd(&b, m, uneven)
	if m.Scenario != nil {
		printScenario(&b, m.Scenario, verbose)
	}
	if m.Realtime != nil {
		printTiming(&b, m.Realtime, m.Steps.Mean, uneven)
	}
	if verbose {
		printCoupling(&b, m)
	} else if n, how := stepLoops(m.Loops); n > 0 {
		fmt.Fprintf(&b, "loops     %s, %s; --%s lists the variables\n", plural(n, "algebraic loop"), how, flagVerbose)
	}
	if f := o.Found; f != nil {
		fmt.Fprintf(&b, "setting   %s (found in %s, %d FMU steps)\n", f.Flags, plural(f.Runs, "run"), f.FMUSteps)
		if ext := filepath.Ext(m.System); ext == ".ssp" || ext == ".ssd" {
			fmt.Fprintf(&b, "to keep   macrostep ssp set %s %s -o FILE.ssp\n", quote(m.System), f.Flags)
		}
	}
	printIsolation(&b, m.FMUs)
	printFiles(&b, o)
	if verbose {
		for _, text := range m.Notes {
			fmt.Fprintf(&b, "note: %s\n", text)
		}
	}
	return b.String()
}

// printIsolation prints which components run in processes of their own although nobody asked for it, and why.
func printIsolation(w io.Writer, list []record.FMU) {
	list = slices.DeleteFunc(slices.Clone(list), func(f record.FMU) bool { return !f.Unasked })
	for _, f := range list[:min(len(list), shownNames)] {
		fmt.Fprintf(w, "isolated  %s: %s\n", f.Component, f.Isolated)
	}
	if more := len(list) - shownNames; more > 0 {
		fmt.Fprintf(w, "isolated  … and %s more; the manifest has the reasons\n", plural(more, "component"))
	}
}

// stepLoops returns the number of algebraic loops within macro steps, and how they are treated.
func stepLoops(loops []master.Loop) (n int, how string) {
	for _, l := range loops {
		if !l.Initialization {
			n, how = n+1, l.Treatment
		}
	}
	return n, how
}

// printEnd prints the outcome and the steps. uneven is a remark for steps of different size.
func printEnd(w io.Writer, m *record.Manifest, uneven string) {
	fmt.Fprintf(w, "%s at t = %s s: %s", ended(m.Outcome), seconds(m.EndTime), plural(m.Steps.Accepted, "step"))
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
	if m.Outcome.Growth != "" && m.Error != nil { // without a check there is a warning
		fmt.Fprintf(w, "growth    %s\n", m.Outcome.Growth)
	}
	if m.Outcome.Regular() && m.Reason != "" {
		fmt.Fprintln(w, m.Reason)
	}
}

// ended returns how a run has ended, for a reader.
func ended(o master.Outcome) string {
	if o.Ended == master.EndedTerminated || o.Ended == master.EndedInterrupted {
		return "ended early"
	}
	return o.Ended
}

// printCoupling prints the algorithm, orders, corrector iterations, monitored variables, power bonds and algebraic loops.
func printCoupling(w io.Writer, m *record.Manifest) {
	fmt.Fprintf(w, "algorithm %s%s\n", m.Algorithm, parameterList(m.Parameters))
	if len(m.Orders) > 1 {
		fmt.Fprintf(w, "orders   %s\n", orderList(m.Orders))
	}
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
	for _, l := range m.Loops {
		fmt.Fprintln(w, loopLine(l))
	}
}

// printFiles prints the files of a run, and the command that resumes it.
func printFiles(w io.Writer, o *simulate.Outcome) {
	m := o.Manifest
	switch {
	case m.Error != nil:
		fmt.Fprintln(w, m.Error)
	case m.Outcome.Regular() && len(m.FMUs) > 1:
		fmt.Fprintf(w, "error     not measured (--%s)\n", flagCheck)
	}
	if o.Table {
		fmt.Fprintf(w, "results   %s (%s, %s)\n", m.Results, plural(o.Rows, "row"), plural(o.Columns, "column"))
	}
	if o.ManifestPath != "" {
		fmt.Fprintf(w, "manifest  %s", o.ManifestPath)
		if n := len(m.Notes); n > 0 {
			fmt.Fprintf(w, " (%s)", plural(n, "note"))
		}
		fmt.Fprintln(w)
	}
	if c := m.Checkpoints; c != nil && c.Time != nil && !m.Outcome.Regular() {
		fmt.Fprintf(w, "to go on from t = %s s: macrostep run --%s %s\n", seconds(*c.Time), flagResume, c.Path)
	}
}

// printWarnings prints the warnings that were not printed during the run, at most some of them.
func printWarnings(con *console, warnings []string, most int, manifest string) {
	left := slices.DeleteFunc(slices.Clone(warnings), con.printed)
	for _, text := range left[:min(len(left), most)] {
		con.print("warning: " + text)
	}
	if more := len(left) - most; more > 0 {
		con.print(plural(more, "more warning") + " in " + cmp.Or(manifest, "the manifest"))
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
		fmt.Fprintf(&b, " %s=%s", k, diag.Clip(params[k], longest))
	}
	return b.String()
}

// orderList lists the number of macro steps of each order.
func orderList(orders map[int]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(orders)) {
		list = append(list, fmt.Sprintf("k=%d: %d", k, orders[k]))
	}
	return strings.Join(list, ", ")
}
