package app

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/record"
)

const (
	shownBest       = 5  // alternatives
	labelWidth      = 14 // of the lines of an answer
	analysisWidth   = 96 // at most
	shownGraphLoops = 5
	shownPlaces     = 6 // of a loop, of inputs, of connections
)

// analysisPrinter prints an analysis: the answer on one screen, and all that it rests on.
type analysisPrinter struct {
	out     io.Writer
	r       *analyze.Report
	command string // macrostep run SYSTEM, with the settings of the analysis that a run must share
	width   int    // of the lines; 0 = analysisWidth
}

// line prints a text beside its label.
func (p *analysisPrinter) line(label, text string) {
	if text != "" {
		fmt.Fprintf(p.out, "%-*s%s\n", labelWidth, label, p.foldRest(text, labelWidth))
	}
}

// units are those that stay with their numbers.
var units = regexp.MustCompile(`(\d) (s|Hz|%)(\W|$)`)

// foldRest folds a text whose first line begins at the indent.
func (p *analysisPrinter) foldRest(text string, indent int) string {
	const joined = "\x00"
	text = foldAt(units.ReplaceAllString(text, "$1"+joined+"$2$3"), indent, cmp.Or(p.width, analysisWidth))
	return strings.ReplaceAll(strings.TrimLeft(text, " "), joined, " ")
}

func (p *analysisPrinter) print() {
	r := p.r
	fmt.Fprintf(p.out, "%s, from t = %.4g to %.4g s\n\n", settingOf(&r.Present), r.Start, r.Stop)
	if r.Verdict.State == analyze.Uncoupled {
		p.line("Not coupled", "No output feeds an input, so no coupling can be unstable or inexact. The only errors are those of the solvers inside the "+
			"FMUs: compare with a run at a tenth of the tolerance (--tolerance, macrostep compare).")
		return
	}
	p.line("Error", p.error())
	p.line("Usable", p.usable())
	p.line("Better", p.better())
	if r.Recommended != nil {
		fmt.Fprintf(p.out, "%*s%s%s\n", labelWidth, "", p.command, flagsOf(r.Recommended))
	}
	if g := r.Reference.Grows; g != "" {
		p.line("Growth", g+", in the reference as well: the system itself grows, which no algorithm and no step changes.")
	}
	p.motion(r.Motion)
	if r.Ended == measure.ErrBudget.Error() {
		p.line("Note", "Not all was tried, since the time is used up. More time: --budget.")
	} else if r.Ended != "" && r.Present.Error != nil {
		p.line("Note", fmt.Sprintf("Not all was tried: %s.", r.Ended))
	}
	if len(r.Strategies) > 0 {
		fmt.Fprintln(p.out)
		p.table(p.bestOfEach())
	}
	fmt.Fprintf(p.out, "%s of the system, %d FMU steps\n", plural(r.Runs, "run"), r.FMUSteps)
}

// motion describes the slowest mode, and the connections that move it.
func (p *analysisPrinter) motion(m *measure.Motion) {
	if m == nil || m.Mode == nil {
		return
	}
	mode := m.Mode
	text := "no swing"
	if mode.Frequency > 0 {
		text = fmt.Sprintf("%.3g Hz", mode.Frequency)
	}
	switch time := math.Ln2 / math.Abs(mode.Rate); {
	case math.Abs(mode.Rate) <= mode.Doubt:
		text += ", neither growing nor dying out beyond the coupling error"
	case mode.Rate > 0:
		text += fmt.Sprintf(", doubles every %.3g s", time)
	default:
		if mode.Frequency > 0 {
			text += fmt.Sprintf(", damping ratio %.2g", mode.Damping)
		}
		if text += fmt.Sprintf(", halves every %.3g s", time); mode.Doubt > 0.1*-mode.Rate {
			text += fmt.Sprintf(" (%.2g to %.2g)", math.Ln2/(mode.Doubt-mode.Rate), math.Ln2/(-mode.Rate-mode.Doubt))
		}
	}
	var in, effects []string
	for _, o := range mode.Outputs {
		if o.Share >= 0.1 {
			in = append(in, o.Name)
		}
	}
	p.line("Slowest mode", fmt.Sprintf("%s; in %s.", text, someOf(in, ", ")))
	for _, c := range mode.Connections {
		if len(effects) == shownBest {
			break
		}
		if text := effect(c, mode); text != "" {
			effects = append(effects, fmt.Sprintf("%s -> %s: 10 %% more gain, %s", c.From, c.To, text))
		}
	}
	if effects == nil {
		effects = []string{"no connection is seen to move it by a hundredth if its gain is a tenth more"}
	}
	p.line("Connections", strings.Join(effects, "; "))
}

// effect describes what a tenth more gain of a connection changes in a mode; "" if that is less than a hundredth, or than its doubt.
func effect(c measure.Lever, m *measure.Mode) string {
	var parts []string
	say := func(by, whole float64, more, less string) {
		doubt := c.Doubt / math.Abs(whole)
		if by /= whole; math.Abs(by) >= max(0.01, doubt) {
			parts = append(parts, fmt.Sprintf("%.2g %% %s", 100*math.Abs(by), map[bool]string{true: more, false: less}[by > 0]))
		}
	}
	switch {
	case math.Abs(m.Rate) <= m.Doubt:
	case m.Rate > 0:
		say(c.Rate, m.Rate, "faster growth", "slower growth")
	default:
		say(c.Rate, m.Rate, "faster decay", "slower decay")
	}
	if m.Frequency > 0 {
		say(2*math.Pi*c.Frequency, 2*math.Pi*m.Frequency, "faster swing", "slower swing")
	}
	return strings.Join(parts, ", ")
}

// error describes the error of the present setting.
func (p *analysisPrinter) error() string {
	r, t := p.r, &p.r.Present
	switch {
	case t.Fails != "":
		return "Unknown, since the run ends early."
	case t.Error == nil || r.Verdict.State == analyze.Unknown:
		return "Unknown: " + r.Verdict.Text + "."
	}
	text := fmt.Sprintf("%s (root mean square over the run), compared with %s", strings.Replace(t.Off(), "the", "The", 1), r.Reference.Setting)
	if doubt := r.Reference.Doubt; doubt != nil && *doubt > 0.3**t.Error {
		text += fmt.Sprintf(", which may be off by %s itself", record.Percent(*doubt))
	}
	return text + "."
}

// usable describes the steps at which the present algorithm is usable, and stable.
func (p *analysisPrinter) usable() string {
	r := p.r
	to := func(l analyze.Limit) (text string) {
		if l.To > r.Step {
			text = fmt.Sprintf(", up to %.4g s, %.2g times the present step", l.To, l.To/r.Step)
		} else if l.To < r.Step {
			text = fmt.Sprintf(", up to %.4g s", l.To)
		}
		if l.Not == 0 && l.To > r.Step {
			text += ", the longest tried"
		}
		if l.Not > 0 {
			text += fmt.Sprintf("; not at %.4g s%s", l.Not, p.at(l.Not))
		}
		return text
	}
	text := "Yes"
	switch {
	case r.Verdict.State == analyze.Unknown:
		return ""
	case r.Present.Chooses && r.Present.Usable: // longer steps stand for larger tolerances
		return "Yes."
	case r.Verdict.State != analyze.Usable && r.Usable.To > 0:
		text = fmt.Sprintf("No: %s. It is usable", r.Verdict.Text)
	case r.Verdict.State != analyze.Usable:
		return fmt.Sprintf("No: %s.", r.Verdict.Text)
	}
	if text += to(r.Usable) + "."; r.Stable.To > r.Usable.To {
		text += " Stable" + to(r.Stable) + "."
	}
	return text
}

// at describes the trial of the present algorithm with a step.
func (p *analysisPrinter) at(step float64) string {
	for _, t := range p.r.Strategies[0].Trials {
		switch {
		case t.Step != step:
		case t.Fails != "":
			return ": " + t.Fails
		case t.Grows != "":
			return ": " + t.Grows
		case t.Error != nil:
			return ": " + t.Off()
		}
	}
	return ""
}

// better describes the recommendation.
func (p *analysisPrinter) better() string {
	r, t := p.r, p.r.Recommended
	switch {
	case t == nil && (r.Present.Error == nil || r.Verdict.State == analyze.Unknown):
		return ""
	case t == nil && r.Present.Usable && *r.Present.Error <= r.Asked:
		return "Nothing that was tried costs a tenth less, or has a tenth less error at this cost."
	case t == nil:
		return fmt.Sprintf("Nothing that was tried has an error of %s.", record.Percent(r.Asked))
	}
	text := fmt.Sprintf("%s: error %s", settingOf(t), record.Percent(*t.Error))
	if r.Present.Fails == "" {
		text += ", " + costs(t.FMUSteps/r.Present.FMUSteps)
	}
	if t.Bound == nil || *t.Bound > r.Asked {
		text += fmt.Sprintf("; nothing that was tried has %s", record.Percent(r.Asked))
	}
	if !t.Usable {
		text += fmt.Sprintf("; whether it is usable is unknown, since runs with shorter steps differ by up to %s from each other", record.Percent(*r.Reference.Doubt))
	}
	return text + "."
}

// costs describes a ratio of costs.
func costs(ratio float64) string {
	switch {
	case math.Abs(ratio-1) < 0.05:
		return "the same cost"
	case ratio >= 100:
		return fmt.Sprintf("%.0f times the cost", ratio)
	}
	return fmt.Sprintf("%.2g times the cost", ratio)
}

// settingOf describes a setting.
func settingOf(t *analyze.Trial) string {
	text := t.Algorithm
	if order := t.Order(); order != "" {
		text += ", order " + order
	}
	for _, key := range slices.Sorted(maps.Keys(t.Params)) {
		if key != "order" {
			text += fmt.Sprintf(", %s=%s", key, t.Params[key])
		}
	}
	for _, rate := range t.Rates {
		text += ", rate " + rate
	}
	if !t.Chooses {
		text += fmt.Sprintf(", steps of %.4g s", t.Step)
	}
	return text
}

// flagsOf returns the flags of a setting.
func flagsOf(t *analyze.Trial) string {
	text := " --algorithm " + t.Algorithm
	for _, key := range slices.Sorted(maps.Keys(t.Params)) {
		text += " --param " + quote(key+"="+t.Params[key])
	}
	for _, rate := range t.Rates {
		text += " --rate " + quote(rate)
	}
	return text + " --step-size " + seconds(t.Step)
}

// bestOfEach returns the present setting, the recommended one, and of each algorithm the cheapest that keeps the error, or else the most
// accurate, by their costs.
func (p *analysisPrinter) bestOfEach() (list []analyze.Trial) {
	r := p.r
	for _, s := range r.Strategies {
		var best *analyze.Trial
		keeps := func(t *analyze.Trial) bool { return t.Usable && t.Bound != nil && *t.Bound <= r.Asked }
		for i := range s.Trials {
			t := &s.Trials[i]
			switch {
			case !t.Maybe():
			case best == nil, t.Usable && !best.Usable, keeps(t) && !keeps(best), keeps(t) && keeps(best) && t.FMUSteps < best.FMUSteps,
				!keeps(t) && !keeps(best) && *t.Error < *best.Error:
				best = t
			}
		}
		if best != nil {
			list = append(list, *best)
		}
	}
	slices.SortStableFunc(list, func(a, b analyze.Trial) int {
		x, y := a.Bound != nil && *a.Bound <= r.Asked, b.Bound != nil && *b.Bound <= r.Asked
		if x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return cmp.Compare(a.FMUSteps, b.FMUSteps)
	})
	list = list[:min(len(list), shownBest)]
	if b := r.Recommended; b != nil && !slices.ContainsFunc(list, func(t analyze.Trial) bool { return same(&t, b) }) {
		list = append([]analyze.Trial{*b}, list...)
	}
	if !slices.ContainsFunc(list, p.isPresent) {
		list = append(list, r.Present)
	}
	return list
}

func (p *analysisPrinter) isPresent(t analyze.Trial) bool { return same(&t, &p.r.Present) }

func same(a, b *analyze.Trial) bool {
	return b != nil && a.Algorithm == b.Algorithm && a.Step == b.Step && maps.Equal(a.Params, b.Params)
}

// table prints trials.
func (p *analysisPrinter) table(list []analyze.Trial) {
	rows := [][]string{{"algorithm", "step", "error", "of", "FMU steps/s", "usable"}}
	for _, t := range list {
		step, off, usable := fmt.Sprintf("%.4g s", t.Step), "-", "no"
		if t.Chooses {
			step = "variable"
		}
		if t.Error != nil && t.Fails == "" {
			off = record.Percent(*t.Error)
		}
		switch {
		case t.Usable:
			usable = "yes"
		case t.Maybe():
			usable = "unknown"
		}
		if t.Fails != "" {
			usable += ", it fails"
		} else if t.Grows != "" {
			usable += ", it grows"
		}
		if same(&t, p.r.Recommended) {
			usable += "  <- better"
		}
		if p.isPresent(t) {
			usable += "  <- present"
		}
		name := t
		name.Chooses = true
		rows = append(rows, []string{settingOf(&name), step, off, t.Of, fmt.Sprintf("%.4g", t.FMUSteps), usable})
	}
	table(p.out, rows)
}

// all prints all runs and the structure.
func (p *analysisPrinter) all() {
	var list []analyze.Trial
	var cannot []string
	for _, s := range p.r.Strategies {
		list = append(list, s.Trials...)
		if s.Why != "" {
			cannot = append(cannot, fmt.Sprintf("%s cannot be used: %s", s.Algorithm, s.Why))
		}
		for _, t := range s.Trials {
			if t.Fails != "" {
				cannot = append(cannot, fmt.Sprintf("%s fails: %s", settingOf(&t), oneLine(t.Fails)))
				break
			}
		}
	}
	p.table(list)
	for _, text := range slices.Compact(cannot) {
		fmt.Fprintln(p.out, text)
	}
	printStructure(p.out, &p.r.Structure, p.r.Motion)
}

// someOf lists the first names and the number of the others.
func someOf(names []string, separator string) string {
	if n := len(names) - shownPlaces; n > 0 {
		return strings.Join(names[:shownPlaces], separator) + fmt.Sprintf("%sand %d more", separator, n)
	}
	return strings.Join(names, separator)
}

// printStructure prints the properties of the graph: loops, delays and bonds.
func printStructure(out io.Writer, s *analyze.Structure, m *measure.Motion) {
	fmt.Fprintf(out, "\nstructure\n")
	printLoops(out, s.Loops)
	if m != nil && m.Gain != nil {
		fmt.Fprintf(out, "  gain around the loops over the first macro step, inputs held: %.3g\n", *m.Gain)
	}
	if m != nil && m.Why != "" {
		fmt.Fprintf(out, "  the slowest mode is unknown: %s\n", m.Why)
	}
	printDelays(out, s.Connections)
	if n := len(s.Discrete); n > 0 {
		var names []string
		on := 0
		for _, c := range s.Discrete {
			names = append(names, c.From+" -> "+c.To)
			if c.Loop {
				on++
			}
		}
		fmt.Fprintf(out, "  of Integers, Booleans and Strings: %d of %d connections, %d of them on loops (%s)\n",
			n, n+len(s.Connections), on, someOf(names, ", "))
	}
	for _, b := range s.Bonds {
		origin := "seen by units"
		if b.Declared {
			origin = "declared"
		}
		fmt.Fprintf(out, "  bond %s, %s: %s\n", b.Name, origin, strings.Join(b.Pairs, ", "))
	}
	if len(s.Unconnected) > 0 {
		fmt.Fprintf(out, "  inputs that nothing feeds: %s\n", someOf(s.Unconnected, ", "))
	}
}

func printLoops(out io.Writer, loops []master.Loop) {
	if len(loops) == 0 {
		fmt.Fprintf(out, "  no algebraic loop\n")
	}
	for i, l := range loops {
		if i == shownGraphLoops {
			fmt.Fprintf(out, "  and %d more loops in the JSON\n", len(loops)-i)
			break
		}
		kind, by := "of a macro step", "declared"
		if l.Initialization {
			kind = "of the initialisation"
		}
		if l.Assumed {
			by = "assumed, as dependencies are not declared"
		}
		fmt.Fprintf(out, "  loop %s, %s: %s\n", kind, by, someOf(l.Variables, " -> "))
	}
}

// printDelays prints for each scheme the connections that it delays.
func printDelays(out io.Writer, connections []analyze.Connection) {
	if len(connections) == 0 {
		return
	}
	var parts []string
	most := 1.0
	for _, scheme := range slices.Sorted(maps.Keys(connections[0].Delay)) {
		var late []string
		for _, c := range connections {
			if c.Delay[scheme] > 0 {
				late = append(late, c.From+" -> "+c.To)
				most = max(most, c.Delay[scheme])
			}
		}
		switch len(late) {
		case 0:
			parts = append(parts, scheme+" none")
		case len(connections):
			parts = append(parts, fmt.Sprintf("%s all %d connections", scheme, len(late)))
		default:
			parts = append(parts, fmt.Sprintf("%s %d of %d (%s)", scheme, len(late), len(connections), someOf(late, ", ")))
		}
	}
	by := "one macro step"
	if most > 1 {
		by = fmt.Sprintf("up to %g macro steps", most)
	}
	fmt.Fprintf(out, "  delayed by %s: %s\n", by, strings.Join(parts, "; "))
}
