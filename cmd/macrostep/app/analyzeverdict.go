package app

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/reason"
)

const (
	shownBest    = 5  // alternatives
	labelWidth   = 14 // of the lines of a verdict
	verdictWidth = 96 // at most
)

// verdictPrinter prints the answer of an analysis on one screen: the verdict on the present setting, the best
// alternatives, and a line for each mark in them.
type verdictPrinter struct {
	out     io.Writer
	r       *analyze.Report
	command string // macrostep run SYSTEM, with the settings of the analysis that a run must share
	// analysed are flags of the analysis that a run has differently.
	analysed string
	width    int // of the lines; 0 = verdictWidth
	marks    []string
	words    []reason.Word
}

// line prints a text beside its label.
func (p *verdictPrinter) line(label, text string) {
	if text != "" {
		fmt.Fprintf(p.out, "%-*s%s\n", labelWidth, label, p.foldRest(text, labelWidth))
	}
}

// units are those that stay with their numbers.
var units = regexp.MustCompile(`(\d) (s|Hz|%)(\W|$)`)

// foldRest folds a text whose first line begins at the indent.
func (p *verdictPrinter) foldRest(text string, indent int) string {
	const joined = "\x00"
	text = foldAt(units.ReplaceAllString(text, "$1"+joined+"$2$3"), indent, cmp.Or(p.width, verdictWidth))
	return strings.ReplaceAll(strings.TrimLeft(text, " "), joined, " ")
}

// mark adds a line below the table, once.
func (p *verdictPrinter) mark(text string) {
	if !slices.Contains(p.marks, text) {
		p.marks = append(p.marks, text)
	}
}

// because returns the reasons in words, and has them explained below the table.
func (p *verdictPrinter) because(words ...reason.Word) string {
	var texts []string
	for _, w := range words {
		if texts = append(texts, string(w)); !slices.Contains(p.words, w) {
			p.words = append(p.words, w)
		}
	}
	return strings.Join(texts, ", ")
}

func (p *verdictPrinter) print() {
	r, v := p.r, p.r.Verdict
	setting := r.Present.Preset
	if now := r.Now(); now != nil {
		setting = fmt.Sprintf("%s, order %d, steps of %.4g s", setting, now.Strategy.Order, r.Step)
	}
	fmt.Fprintf(p.out, "%s, from t = %.4g s\n\n", setting, r.At)
	if v.State == analyze.Uncoupled {
		text := "No component feeds another, so no coupling can be unstable or inexact. The only errors are those of the solvers " +
			"inside the FMUs."
		if r.Tolerance > 0 {
			text += fmt.Sprintf(" To see them, compare with a run at a tenth of the tolerance, --tolerance %.4g (macrostep compare); "+
				"an FMU with a constant step ignores it.", r.Tolerance/10)
		}
		p.line("Uncoupled", text)
		return
	}
	p.line("Stability", p.stability())
	p.line("Error", p.error())
	p.advice()
	if s := r.Judged(); s != nil && r.Whole == nil {
		p.mode(s)
	}
	for _, g := range r.Alone {
		what := "No step changes that; the coupling has to hold it."
		if g.ByStep {
			what = "That depends on the step: the solver inside the FMU takes steps that are too long for it. Take a shorter --step-size."
		}
		p.line("Note", fmt.Sprintf("%s alone is unstable with its inputs held: %s. %s", g.Component, &g, what))
	}
	if now := r.Now(); r.Unconfirmed != "" && (now == nil || now.Strategy.Mode != nil) {
		p.line("Note", fmt.Sprintf("This is known for small motions about t = %.4g s only (%s): analyse other times too (--at).", r.At,
			p.because(reason.Of(r.Unconfirmed)...)))
	}
	if now := r.Now(); now != nil && now.Strategy.Untold != "" {
		p.line("Note", fmt.Sprintf("Stability and error are not certain (%s).", p.because(reason.Of(now.Strategy.Untold)...)))
	}
	for _, n := range r.Notes {
		p.line("Note", n+".")
	}
	if n := r.Present.Changed; len(n) > 0 && r.Now() != nil {
		p.line("Note", "Stability is that with the defaults of other parameters, without "+strings.Join(n, ", ")+".")
	}
	p.table()
	for _, m := range p.marks {
		fmt.Fprintln(p.out, p.foldRest(m, 2))
	}
	p.explain(p.words)
}

// explain prints a line for each reason.
func (p *verdictPrinter) explain(words []reason.Word) {
	for _, w := range words {
		means, do := w.Explain()
		if who := p.owners(w); who != "" {
			means = strings.Replace(means, "a component", who, 1)
		}
		fmt.Fprintln(p.out, p.foldRest(fmt.Sprintf("%s: %s; %s", string(w), means, do), 2))
	}
}

// all prints all of the report, with the reasons explained.
func (p *verdictPrinter) all() {
	var text strings.Builder
	printAnalysis(&text, p.r)
	fmt.Fprint(p.out, text.String(), "\n")
	var words []reason.Word
	for _, w := range reason.Of(text.String()) {
		if w != reason.Failed && !slices.Contains(words, w) && !slices.Contains(p.words, w) {
			words = append(words, w)
		}
	}
	p.explain(words)
}

// owners returns the components, or the output, that have a reason; "" = none is known.
func (p *verdictPrinter) owners(w reason.Word) string {
	var names []string
	for _, s := range p.r.Subsystems {
		if s.Why != "" && slices.Contains(reason.Of(s.Why), w) {
			names = append(names, s.Name)
		}
	}
	if names == nil && p.r.Large != "" && p.r.Stray != nil && w == reason.Nonlinear {
		return p.r.Stray.Of
	}
	return someOf(names, ", ")
}

// sentence makes a text a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// stability describes the stability of the present setting.
func (p *verdictPrinter) stability() string {
	v := p.r.Verdict
	switch v.State {
	case analyze.Unknown:
		if s := p.r.Now(); s != nil && len(s.Strategy.Points) > 0 {
			return fmt.Sprintf("Unknown at this step (%s); %s.", p.because(v.Reasons...), v.Text)
		}
		return fmt.Sprintf("Unknown (%s).", p.because(v.Reasons...))
	case analyze.Varying:
		return fmt.Sprintf("The algorithm chooses its steps: %s.", v.Text)
	case analyze.Fails:
		first, _, _ := strings.Cut(v.String(), ";")
		return sentence(first)
	}
	return sentence(v.String())
}

// error describes the expected error of the present setting.
func (p *verdictPrinter) error() string {
	r, v := p.r, p.r.Verdict
	if v.State == analyze.Unstable || v.State == analyze.Fails {
		return ""
	}
	f := v.Error
	if f == nil {
		return fmt.Sprintf("Unknown (%s).", p.because(v.NoError...))
	}
	than := "not sure to be within"
	switch {
	case f.Error+f.Doubt <= r.Asked:
		than = "within"
	case f.Error-f.Doubt > r.Asked:
		than = "above"
	}
	return fmt.Sprintf("%s is expected (rms of %s over %.3g s, relative to its standard deviation), %s the %s %% of --error.",
		p.percent(f), f.Of, r.Horizon, than, shortPercent(r.Asked))
}

func shortPercent(v float64) string { return fmt.Sprintf("%.3g", 100*v) }

// percent returns the error of a forecast, with its mark explained.
func (p *verdictPrinter) percent(f *forecast.Forecast) string {
	switch stray := p.r.Stray; {
	case !f.IsRough():
	case stray == nil || f.Doubt > stray.Off*(1+1e-9):
		p.mark("~ an order of magnitude: the response of the components to such steps is not exactly known")
	default:
		p.mark(fmt.Sprintf("~ an order of magnitude: along the motion, %s is off its model by %.2g %%", stray.Of, 100*stray.Off))
	}
	return f.Percent()
}

// advice prints what to do, with a command to paste.
func (p *verdictPrinter) advice() {
	r, v := p.r, p.r.Verdict
	switch {
	case v.Keep && v.Error != nil:
		p.line("Keep it", "It is stable with a margin, and nothing tried is much better.")
	case v.Keep:
		p.line("Keep it", "It is stable with a margin. To see its error, compare it with a run at half the step (macrostep compare):")
		fmt.Fprintf(p.out, "%*s%s --step-size %.4g\n", labelWidth, "", p.command+p.present(), r.Step/2)
	case r.Promised == nil && r.RecommendedVarying == nil && p.missed():
		p.line("Advice", "Trial runs ran out of time before all steps were tried; allow them more:")
		fmt.Fprintf(p.out, "%*s%s --runs 120\n", labelWidth, "", strings.Replace(p.command, " run ", " analyze ", 1)+p.analysed)
		return
	case r.Recommended < 0 && r.RecommendedVarying == nil:
		p.line("Advice", "Nothing can be recommended: "+r.Why+".")
	}
	if v.Keep {
		return
	}
	label := "Better"
	if r.Recommended >= 0 {
		s := &r.Strategies[r.Recommended]
		a := analyze.Alternative{Strategy: s, Step: r.StepToTake, Forecast: r.Promised}
		if a.Forecast == nil {
			label = "Safer"
		}
		p.line(label, p.gain(&a))
		fmt.Fprintf(p.out, "%*s%s %s --step-size %.4g\n", labelWidth, "", p.command, s.Flags(), r.StepToTake)
		label = "Or"
	}
	if c := r.RecommendedVarying; c != nil {
		p.line(label, fmt.Sprintf("%s with variable steps: error %s, %s.", c.Preset, p.percent(&c.Forecast), p.cost(&c.Forecast)))
		fmt.Fprintf(p.out, "%*s%s %s --step-size %.4g\n", labelWidth, "", p.command, choiceFlags(r), r.Step)
	}
}

// missed reports whether the present setting is stable in trial runs, but its limit is unknown for lack of time, and no other
// algorithm is known to be better.
func (p *verdictPrinter) missed() bool {
	now := p.r.Now()
	if r := p.r; now != nil && r.Recommended >= 0 && &r.Strategies[r.Recommended] != now.Strategy {
		return false
	}
	return p.r.Verdict.State == analyze.Stable && now != nil && now.Strategy.Seen != nil && now.Strategy.Seen.Missed > 0
}

// present returns the flags of the present setting.
func (p *verdictPrinter) present() string {
	text := " --algorithm " + p.r.Present.Preset
	if p.r.Now() != nil {
		text += fmt.Sprintf(" --param order=%d", p.r.Present.Order)
	}
	for _, c := range p.r.Present.Changed {
		text += " --param " + quote(c)
	}
	return text
}

// gain describes what an alternative gains.
func (p *verdictPrinter) gain(a *analyze.Alternative) string {
	r := p.r
	text := fmt.Sprintf("%s, order %d, steps of %.4g s: ", a.Strategy.Preset, a.Strategy.Order, a.Step)
	if f := a.Forecast; f != nil {
		text += fmt.Sprintf("error %s, %s; stable %s.", p.percent(f), p.cost(f), p.stable(a))
		if !(f.Error+f.Doubt <= r.Asked) {
			text += fmt.Sprintf(" Nothing tried is sure to be within %s %%; %s.", shortPercent(r.Asked), p.nearest(f))
			if f.Error > r.Asked && a.Step < r.Step {
				text += " Analyse with a shorter --step-size to see more."
			}
		}
		return text
	}
	return text + fmt.Sprintf("stable %s, its error is unknown.", p.stable(a))
}

// nearest describes how the recommended forecast, which may exceed the error asked for, compares with the alternatives of
// the table.
func (p *verdictPrinter) nearest(f *forecast.Forecast) string {
	fixed, varying, expected := false, false, false // alternatives with a smaller possible or expected error
	for _, a := range p.r.Best() {
		g := a.Forecast
		if g == nil || p.r.Recommends(&a) {
			continue
		}
		if g.Error+g.Doubt < (f.Error+f.Doubt)*(1-1e-9) {
			fixed, varying = fixed || a.Varying == nil, varying || a.Varying != nil
		}
		expected = expected || g.Error < f.Error*(1-1e-9)
	}
	switch {
	case fixed:
		return "this comes about as near as any, at lower cost"
	case varying:
		return "this comes nearest with steps of one size"
	case expected:
		return "this comes nearest, since its error is known better"
	}
	return "this comes nearest"
}

// cost compares the cost of a forecast with that of the present setting.
func (p *verdictPrinter) cost(f *forecast.Forecast) string {
	if now := p.r.Verdict.Error; now != nil && now.FMUSteps > 0 {
		switch times := f.FMUSteps / now.FMUSteps; {
		case math.Abs(times-1) < 0.01:
			return "the same cost"
		default:
			return fmt.Sprintf("%.2g times the cost", times)
		}
	}
	return stepsPerSecond(f) + " FMU steps/s"
}

// stepsPerSecond returns the cost of a forecast.
func stepsPerSecond(f *forecast.Forecast) string { return fmt.Sprintf("%.0f", f.FMUSteps) }

// mode prints the mode that limits the stability, and the connections that change it.
func (p *verdictPrinter) mode(s *analyze.Strategy) {
	r := p.r
	label := "Slowest mode"
	levers, grows := r.Levers(s)
	if grows {
		label = "Growing mode"
	}
	of := ""
	if now := r.Now(); now == nil || now.Strategy != s {
		of = fmt.Sprintf("with %s, order %d: ", s.Preset, s.Order)
	}
	p.line(label, fmt.Sprintf("%s%s; in %s.", of, r.Describe(s), r.Where(s.Mode)))
	var effects []string
	connections := map[string][]string{} // by effect
	for _, l := range levers {
		e := effect(l.Effect, grows)
		if connections[e] == nil {
			effects = append(effects, e)
		}
		connections[e] = append(connections[e], l.Connection)
	}
	for i, e := range effects {
		effects[i] = strings.Join(connections[e], " or ") + ": " + e
	}
	p.line("Connections", strings.Join(effects, "; "))
}

// effect describes what a tenth more gain does to a mode that dies out by as much faster, or a tenth less to one that grows.
func effect(by float64, grows bool) string {
	switch {
	case grows && by >= 1:
		return "10 % less gain may stop the growth"
	case grows && by > 0:
		return fmt.Sprintf("10 %% less gain, %.2g %% slower growth", 100*by)
	case grows:
		return fmt.Sprintf("10 %% less gain, %.2g %% faster growth", -100*by)
	case by <= -1:
		return "10 % more gain may make it grow"
	case by < 0:
		return fmt.Sprintf("10 %% more gain, %.2g %% slower decay", -100*by)
	}
	return fmt.Sprintf("10 %% more gain, %.2g %% faster decay", 100*by)
}

// stable describes the stable steps of an alternative in a few words.
func (p *verdictPrinter) stable(a *analyze.Alternative) string {
	s := a.Strategy
	if s == nil {
		return "-"
	}
	if s.Seen != nil {
		p.mark(fmt.Sprintf("* seen in trial runs of the system itself, which do not show growth below %.2g %% per step", 100*s.Seen.Least))
	}
	return s.Reach(a.Step, p.r)
}

// table prints the best alternatives, and the present setting.
func (p *verdictPrinter) table() {
	r := p.r
	best, now := r.Best(), r.Now()
	if len(best) == 0 && now == nil || r.Verdict.State == analyze.Unknown && len(best) == 0 {
		return // nothing is known
	}
	if r.Verdict.Keep && now != nil { // the setting at its own step says more
		best = slices.DeleteFunc(best, func(a analyze.Alternative) bool { return r.Recommends(&a) })
	}
	best = best[:min(shownBest, len(best))]
	if now != nil {
		i := slices.IndexFunc(best, func(a analyze.Alternative) bool { return a.Same(now) })
		if i < 0 {
			best = append(best, *now)
		} else {
			best[i] = *now // with the error in the verdict
		}
	}
	rows := [][]string{{"algorithm", "order", "step", "error", "FMU steps/s", "stable"}}
	for i := range best {
		rows = append(rows, p.row(&best[i], now))
	}
	if own := r.Own; now == nil && own != nil && r.Verdict.State == analyze.Varying {
		rows = append(rows, []string{r.Present.Preset, "-", fmt.Sprintf("%.2g s", own.Step), p.percent(&own.Forecast), stepsPerSecond(&own.Forecast),
			"variable  <- present"})
	}
	fmt.Fprintln(p.out)
	table(p.out, rows)
}

// row is a row of the table.
func (p *verdictPrinter) row(a, now *analyze.Alternative) []string {
	r := p.r
	off, cost, step := "unknown", "-", fmt.Sprintf("%.4g s", a.Step)
	if f := a.Forecast; f != nil {
		off, cost = p.percent(f), stepsPerSecond(f)
	}
	mark := ""
	switch {
	case now != nil && a.Same(now):
		mark = "  <- present"
	case r.Recommends(a) && !r.Verdict.Keep && a.Forecast == nil:
		mark = "  <- safer"
	case r.Recommends(a) && !r.Verdict.Keep:
		mark = "  <- better"
	}
	if v := a.Varying; v != nil {
		return []string{v.Preset, v.Order, fmt.Sprintf("%.2g s", a.Settled.Step), off, cost, fmt.Sprintf("variable, %s=%.3g", v.Tolerance, a.Settled.Tolerance) + mark}
	}
	return []string{a.Strategy.Preset, fmt.Sprint(a.Strategy.Order), step, off, cost, p.stable(a) + mark}
}
