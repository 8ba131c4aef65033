package app

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/study"
)

// studyMeter shows how far a study is.
type studyMeter struct {
	con         *console
	quiet       bool
	began, last time.Time
	before      int // rows that were there when it began
	done        int
	failed      int
}

func newStudyMeter(con *console, quiet bool, before int) *studyMeter {
	now := time.Now()
	return &studyMeter{con: con, quiet: quiet, began: now, last: now, before: before}
}

func (m *studyMeter) event(e study.Event) {
	every := 200 * time.Millisecond
	if e.Extra != "" { // each may take its time
		every = 0
	} else if m.done++; e.Row.Status != study.OK {
		m.failed++
	}
	now := time.Now()
	if _, ok := m.con.terminal(); !ok {
		every = lineEvery
	}
	if m.quiet || now.Sub(m.last) < every {
		return
	}
	m.last = now
	if e.Extra != "" {
		m.con.status(fmt.Sprintf("%s: %d of %s", e.Extra, e.Done, plural(e.Of, "run")))
		return
	}
	m.con.status(m.line(e.Total, now.Sub(m.began)))
}

func (m *studyMeter) line(total int, since time.Duration) string {
	rate := float64(m.done-m.before) / since.Seconds()
	text := plural(m.done, "run")
	if total > 0 {
		text = fmt.Sprintf("%d of %s  %3.0f %%", m.done, plural(total, "run"), 100*float64(m.done)/float64(total))
	}
	text += fmt.Sprintf("  %s runs/s", short(rate))
	if m.failed > 0 {
		text += fmt.Sprintf("  %d not ok", m.failed)
	}
	if total > 0 && rate > 0 {
		text += fmt.Sprintf("  %s left", duration(float64(total-m.done)/rate))
	}
	return text
}

// shownReasons bounds the reasons that are printed.
const shownReasons = 5

// longestReason bounds a reason that is printed, in bytes; the table has all of it.
const longestReason = 400

// printStudy prints what a study found out.
func printStudy(w io.Writer, f *study.Folder, r *study.Report) {
	total := 0
	for _, n := range r.Statuses {
		total += n
	}
	fmt.Fprintf(w, "%s: %d ok", plural(total, "run"), r.Statuses[study.OK])
	for _, s := range []study.Status{study.Unstable, study.Failed, study.Crashed, study.TimedOut} {
		if n := r.Statuses[s]; n > 0 {
			fmt.Fprintf(w, ", %d %s", n, s)
		}
	}
	fmt.Fprintln(w)
	printVerdicts(w, r)
	for _, reason := range r.Reasons[:min(len(r.Reasons), shownReasons)] {
		fmt.Fprintf(w, "  %s, %s (first: run %d): %s\n", plural(reason.Runs, "run"), reason.Status, reason.First, diag.Clip(reason.Text, longestReason))
	}
	if more := len(r.Reasons) - shownReasons; more > 0 {
		fmt.Fprintf(w, "  and %s more\n", plural(more, "reason"))
	}
	switch {
	case r.Optimum != nil:
		printOptimum(w, f.Plan, r)
	case r.Settled != nil:
		for i := range r.Settled {
			printSettled(w, f.Plan.Convergence.Setting, &r.Settled[i])
		}
	default:
		rows := [][]string{{"quantity", "mean", "standard deviation", "minimum", "median", "maximum"}}
		for _, s := range r.Statistics {
			rows = append(rows, []string{s.Quantity, numberOr(s.Mean), numberOr(s.Deviation), numberOr(s.Minimum), numberOr(s.Median), numberOr(s.Maximum)})
		}
		table(w, rows)
	}
	printSensitivity(w, r)
	printErrors(w, f.Plan, r.Checks, total)
	fmt.Fprintf(w, "results   %s\npage      %s\n", filepath.Join(f.Path, study.ResultsFile), filepath.Join(f.Path, study.PageFile))
}

// printErrors prints the largest coupling error, and of which runs it was measured.
func printErrors(w io.Writer, p *study.Plan, list []study.Checked, total int) {
	var worst *study.Checked
	var why []string
	known, random := 0, 0
	for i := range list {
		c := &list[i]
		switch {
		case c.Error.Worst == nil:
			continue
		case c.Why == study.Random:
			random++
		case p.Optimise == nil:
			why = append(why, fmt.Sprintf("the %s %s", c.Why, p.Quantities[0].Name))
		default:
			why = append(why, "the "+c.Why)
		}
		if known++; worst == nil || *c.Error.Worst > *worst.Error.Worst {
			worst = c
		}
	}
	if random > 0 {
		why = append(why, fmt.Sprintf("%d at random", random))
	}
	switch {
	case worst != nil:
		fmt.Fprintf(w, "coupling error  %s at most %s (run %d), measured in %d of %s (%s)\n", worst.Error.Where, worst.Error.Size(), worst.Run,
			known, plural(total, "run"), strings.Join(why, ", "))
	case list != nil:
		fmt.Fprintln(w, "coupling error  unknown")
	}
}

// warnOfErrors prints warnings about coupling errors, those with the same text together.
func warnOfErrors(w io.Writer, list []study.Checked) {
	runs, texts := map[string][]string{}, []string{}
	for _, c := range list {
		text := c.Error.Warning()
		if c.Error.Determined != nil {
			text = strings.TrimPrefix(c.Error.String(), "coupling error: ")
		}
		if text != "" {
			if runs[text] == nil {
				texts = append(texts, text)
			}
			runs[text] = append(runs[text], fmt.Sprint(c.Run))
		}
	}
	for _, text := range texts[:min(len(texts), shownReasons)] {
		fmt.Fprintf(w, "warning: run %s: %s\n", diag.Some(runs[text]), text)
	}
	if more := len(texts) - shownReasons; more > 0 {
		fmt.Fprintf(w, "and %s in %s\n", plural(more, "more warning"), study.ReportFile)
	}
}

// warnOfFit prints what limits the estimates of a fit.
func warnOfFit(w io.Writer, c *study.Certainty) {
	if c == nil {
		return
	}
	if c.Unknown != "" {
		fmt.Fprintf(w, "warning: standard errors are unknown: %s\n", c.Unknown)
	}
	for _, text := range c.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

func printOptimum(w io.Writer, p *study.Plan, r *study.Report) {
	o := r.Optimum
	fmt.Fprintf(w, "best      run %d of %s (%s: %s), goal %s\n", o.ID, plural(o.Runs, "run"), o.Method, o.Ended, number(o.Goal))
	if r.Fit == nil {
		for i := range p.Factors {
			fmt.Fprintf(w, "  %s = %s\n", p.Factors[i].Name, shortened(o.Values[i]))
		}
		return
	}
	rows := [][]string{{"factor", "value", "standard error", "95 % interval"}}
	for i := range r.Fit.Parameters {
		value, e, interval := r.Fit.Parameters[i].Texts()
		rows = append(rows, []string{r.Fit.Parameters[i].Factor, value, e, interval})
	}
	table(w, rows)
	rows = [][]string{{"fitted", "root mean square of the deviation", "of the range"}}
	for _, c := range r.Fit.Columns {
		rows = append(rows, []string{c.Variable, numberOr(c.Deviation), record.Percent(float64(c.Deviation / c.Range))})
	}
	table(w, rows)
}

// shortened rounds a value to six digits if it is a number; the table has all.
func shortened(value string) string {
	if v, err := strconv.ParseFloat(value, 64); err == nil {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return value
}

func printSettled(w io.Writer, setting string, q *study.Settled) {
	fmt.Fprintf(w, "%s: %s\n", q.Quantity, q.State())
	rows := [][]string{{"  " + setting, "value", "change", "observed order"}}
	for i := range q.Values {
		rows = append(rows, []string{"  " + number(q.Settings[i]), digits(q.Values[i]), numberOr(q.Changes[i]), numberOr(q.Orders[i])})
	}
	table(w, rows)
}

// printSensitivity prints what the factors do to the quantities.
func printSensitivity(w io.Writer, r *study.Report) {
	groups := "samples"
	switch {
	case r.Sobol != nil:
		rows := [][]string{{"Sobol indices", "quantity", "first order", "total"}}
		for _, s := range r.Sobol {
			rows = append(rows, []string{s.Factor, s.Quantity, numberOr(s.First) + " ± " + numberOr(s.FirstError), numberOr(s.Total) + " ± " + numberOr(s.TotalError)})
		}
		table(w, rows)
	case r.Morris != nil:
		groups = "trajectories"
		rows := [][]string{{"elementary effects", "quantity", "mean magnitude", "mean", "standard deviation"}}
		for _, e := range r.Morris {
			rows = append(rows, []string{e.Factor, e.Quantity, numberOr(e.MuStar), numberOr(e.Mu), numberOr(e.Sigma)})
		}
		table(w, rows)
	case r.Optimum == nil:
		printStrongest(w, r)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(w, "%s left out, since not all of their runs are ok: %d\n", groups, r.Dropped)
	}
}

// printVerdicts prints how many runs met the expectations of the scenario.
func printVerdicts(w io.Writer, r *study.Report) {
	var parts []string
	for _, verdict := range []string{master.ExpectationsMet, master.ExpectationsNotMet, master.ExpectationsUndecided} {
		if n := r.Verdicts[verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	if parts != nil {
		fmt.Fprintf(w, "expectations: %s\n", strings.Join(parts, ", "))
	}
}

// shownEffects bounds the correlations that are printed.
const shownEffects = 5

// printStrongest prints the strongest correlations: rank correlations, and correlation ratios of factors that are no numbers.
func printStrongest(w io.Writer, r *study.Report) {
	strength := func(e *study.Effect) float64 {
		if e.Rank != e.Rank {
			return float64(e.Ratio)
		}
		return math.Abs(float64(e.Rank))
	}
	var effects []study.Effect
	for i := range r.Effects {
		if s := strength(&r.Effects[i]); s == s {
			effects = append(effects, r.Effects[i])
		}
	}
	slices.SortStableFunc(effects, func(a, b study.Effect) int { return cmp.Compare(strength(&b), strength(&a)) })
	rows := [][]string{{"strongest effects", "on", "correlation"}}
	for _, e := range effects[:min(len(effects), shownEffects)] {
		text := fmt.Sprintf("%.2f", e.Rank)
		if e.Rank != e.Rank {
			text = fmt.Sprintf("%.2f (ratio)", e.Ratio)
		}
		rows = append(rows, []string{e.Factor, e.Quantity, text})
	}
	if len(rows) > 1 {
		table(w, rows)
	}
}

// digits writes a number with ten digits, – if it is missing.
func digits(v study.Number) string {
	if v != v {
		return "–"
	}
	return fmt.Sprintf("%.10g", float64(v))
}

// numberOr writes a number, – if it is missing.
func numberOr(v study.Number) string {
	if v != v {
		return "–"
	}
	return number(float64(v))
}
