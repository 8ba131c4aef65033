package app

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

// abilities lists the capabilities of a component that decide which algorithms can be used.
func abilities(s *analyze.Subsystem) string {
	can := func(is bool, what string) string {
		if is {
			return what
		}
		return ""
	}
	return cmp.Or(joinNonEmpty(can(s.Rollback, "rollback"), can(s.Serializes, "serialise"), can(s.VariableStep, "variable step"),
		can(s.InputDerivatives, "input derivatives"), can(s.DirectionalDerivatives, "directional derivatives"),
		can(s.Stateless, "stateless")),
		"steps of one size only")
}

// misfit returns the deviation of the model from the measurements.
func misfit(s *analyze.Subsystem) string {
	if s.Unmeasured || s.Why != "" && s.States == 0 || s.Model == twin.Directional {
		return "-"
	}
	return fmt.Sprintf("%.0e", s.Misfit)
}

const (
	shownGraphLoops = 5
	shownPlaces     = 6 // of a loop, of inputs, of connections
	shownUnstable   = 3 // strategies
)

// someOf lists the first names and the number of the others.
func someOf(names []string, separator string) string {
	if n := len(names) - shownPlaces; n > 0 {
		return strings.Join(names[:shownPlaces], separator) + fmt.Sprintf("%sand %d more", separator, n)
	}
	return strings.Join(names, separator)
}

// printStructure prints the properties of the graph: loops, delays, bonds, and algorithms that cannot be used.
func printStructure(out io.Writer, s *analyze.Structure) {
	fmt.Fprintf(out, "\nstructure\n")
	printLoops(out, s.Loops)
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
		fmt.Fprintf(out, "  of Integers, Booleans and Strings, kept at their values in the models: "+
			"%d of %d connections, %d of them on loops (%s)\n",
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
	var refused, unanalysed reasons
	for _, a := range s.Algorithms {
		switch {
		case a.Refused != "":
			refused.add(a.Refused, a.Preset)
		case a.Unanalysed != "":
			unanalysed.add(a.Unanalysed, a.Preset)
		}
	}
	refused.print(out, "  cannot be used: %s: %s\n")
	unanalysed.print(out, "  not analysed: %s: %s\n")
}

func printLoops(out io.Writer, loops []analyze.Loop) {
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
		fmt.Fprintf(out, "  loop %s, %s, %s: %s\n", kind, by, l.Treatment, someOf(l.Variables, " -> "))
		var gains []string
		if l.Gain != nil {
			gains = append(gains, fmt.Sprintf("gain %.3g at once", *l.Gain))
		}
		if l.StepGain != nil {
			gains = append(gains, fmt.Sprintf("%.3g over a step", *l.StepGain))
		}
		if l.Why != "" {
			gains = append(gains, "its gain is not known: "+l.Why)
		}
		fmt.Fprintf(out, "    %s\n", strings.Join(gains, ", "))
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

// reasons are texts in the order of their first use, each with its algorithms.
type reasons struct {
	texts []string
	of    map[string][]string
}

func (r *reasons) add(text, algorithm string) {
	if r.of == nil {
		r.of = map[string][]string{}
	}
	if r.of[text] == nil {
		r.texts = append(r.texts, text)
	}
	if !slices.Contains(r.of[text], algorithm) {
		r.of[text] = append(r.of[text], algorithm)
	}
}

// print prints each text once, after its algorithms.
func (r *reasons) print(out io.Writer, format string) {
	for _, text := range r.texts {
		fmt.Fprintf(out, format, strings.Join(r.of[text], ", "), text)
	}
}

// printAnalysis prints all of a report for people but the verdict.
func printAnalysis(out io.Writer, r *analyze.Report) {
	printSubsystems(out, r.Subsystems)
	printStructure(out, &r.Structure)
	printStrategies(out, r)
	printVarying(out, r)
	printLimits(out, r)
	printModes(out, r)
}

func printSubsystems(out io.Writer, list []analyze.Subsystem) {
	rows := [][]string{{"component", "model", "states", "off by", "can"}}
	for _, s := range list {
		states := fmt.Sprint(s.States)
		if s.Unmeasured {
			states = "-"
		}
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Model), states, misfit(&s), abilities(&s)})
	}
	table(out, rows)
	for _, s := range list {
		switch {
		case s.Why == "":
		case strings.HasPrefix(s.Why, s.Name+" "): // the component is named already
			fmt.Fprintln(out, s.Why)
		default:
			fmt.Fprintf(out, "%s: %s\n", s.Name, s.Why)
		}
	}
}

// printStrategies prints the table of algorithms and orders at the macro step, with its footnotes.
func printStrategies(out io.Writer, r *analyze.Report) {
	fmt.Fprintf(out, "\nat %.4g s:\n", r.Step)
	rows := [][]string{{"algorithm", "order", "radius", "error", "in one step", "FMU steps/s", "stable steps"}}
	limit, lasts := false, false
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if s.Known() && s.AtLimit() {
			limit, lasts = true, lasts || s.Lasts
		}
		mark := ""
		if s.Seen != nil {
			mark = " (seen in runs)"
		}
		if i == r.Recommended {
			mark += "  <- recommended"
		}
		off, cost, local := "-", "-", "-"
		for _, f := range s.Forecasts {
			if f.Step == r.Step {
				off, cost = f.Size(), fmt.Sprintf("%.4g", f.FMUSteps)
			}
		}
		if l := s.Local; l != nil {
			local = fmt.Sprintf("%.1e ~ H^%.1f", l.Error, math.Round(10*l.Growth)/10+0) // no −0
		}
		rows = append(rows, []string{s.Preset, fmt.Sprint(s.Order), radiusOf(s), off, local, cost, s.Ranges(r) + mark})
	}
	table(out, rows)
	if limit {
		fmt.Fprintf(out, "* at the limit: undamped modes have radius 1, and growth below 1e-6 per step counts as none\n")
	}
	printSeen(out, r)
	if lasts {
		fmt.Fprintf(out, "in brackets: the radius without undamped modes (an integrator that nothing holds, a gain of 1 around a loop, "+
			"an oscillator that feeds nothing)\n")
	}
}

// radiusOf returns the spectral radius of a strategy, with a star at the limit of stability.
func radiusOf(s *analyze.Strategy) string {
	switch {
	case !s.Known():
		return "-"
	case s.AtLimit() && s.Lasts:
		return fmt.Sprintf("1 * (%.6g)", s.Besides)
	case s.AtLimit():
		return "1 *"
	case s.Mode == nil:
		return fmt.Sprintf("%.4g", s.Now)
	}
	return fmt.Sprintf("%.6g", s.Now)
}

// printLimits prints the reasons for missing values, and the limits of the forecasts.
func printLimits(out io.Writer, r *analyze.Report) {
	var printed []string
	once := func(of, why string) {
		if why != "" && !slices.Contains(printed, why) {
			printed = append(printed, why)
			fmt.Fprintf(out, "\n%s: %s", of, why)
		}
	}
	for _, s := range r.Strategies {
		once(s.Preset, s.Untold)
		once(s.Preset, prefixed("the error in one step is not known: ", s.WhyNoLocal))
		once(fmt.Sprintf("%s, order %d", s.Preset, s.Order), s.Why)
	}
	if r.WhyNoError != "" {
		fmt.Fprintf(out, "\nerrors are not forecast: %s", r.WhyNoError)
	}
	if isRough(r) {
		fmt.Fprintf(out, "\n~ an order of magnitude: along the motion, %s is off its model by %.2g of how much it moves",
			r.Stray.Of, r.Stray.Off)
	}
	if r.Unconfirmed != "" && slices.ContainsFunc(r.Strategies, func(s analyze.Strategy) bool { return s.Mode != nil }) {
		fmt.Fprintf(out, "\nradii and stable steps hold only for small motions about the operating point: analyse other times too (--at)")
	}
	if printed != nil || r.WhyNoError != "" || isRough(r) {
		fmt.Fprintln(out)
	}
}

// printModes prints what is unstable by itself, and the modes of the recommended and of unstable strategies.
func printModes(out io.Writer, r *analyze.Report) {
	own := false // a component grows at any step
	for _, g := range r.Alone {
		own = own || !g.ByStep
		fmt.Fprintf(out, "\n%s is unstable by itself, its inputs held: %s", g.Component, &g)
		if g.ByStep {
			fmt.Fprintf(out, "; less at shorter steps: the solver inside the FMU takes steps that are too long for it")
		}
	}
	switch {
	case r.Whole != nil:
		fmt.Fprintf(out, "\nthe coupled system itself is unstable: %s; no macro step and no algorithm changes that\n", r.Whole)
	case own:
		fmt.Fprintf(out, "\nno step changes that; the radii show whether the coupling stabilises it\n")
	case len(r.Alone) > 0:
		fmt.Fprintln(out)
	}
	if s := &r.Strategies[max(r.Recommended, 0)]; s.Mode != nil {
		fmt.Fprintf(out, "\nthe mode that dies out slowest, or grows, at %.4g s: %s\n", r.Step, s.Mode)
	}
	unstable := 0
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if i == max(r.Recommended, 0) || s.Mode == nil || s.IsStable() || r.Whole != nil {
			continue
		}
		if unstable++; unstable > shownUnstable {
			continue
		}
		fmt.Fprintf(out, "\nunstable at %.4g s: %s of order %d grows by %.4g in each step: %s\n", r.Step, s.Preset, s.Order, s.Now, s.Mode)
	}
	if more := unstable - shownUnstable; more > 0 {
		fmt.Fprintf(out, "\nand %d more unstable there, whose modes and connections are in the JSON\n", more)
	}
}

// printVarying prints the steps that algorithms with step control settle at: for each algorithm the cheapest
// variant within the error, else the most exact.
func printVarying(out io.Writer, r *analyze.Report) {
	type candidate struct {
		v *forecast.Varying
		s *forecast.Settled
	}
	var shown []string // presets
	best := map[string]candidate{}
	for i := range r.Varying {
		v := &r.Varying[i]
		s := v.Best(r.Asked)
		if s == nil {
			continue
		}
		before, known := best[v.Preset]
		if !known {
			shown = append(shown, v.Preset)
		}
		if !known || s.Better(before.s, r.Asked) {
			best[v.Preset] = candidate{v, s}
		}
	}
	var why reasons
	for _, v := range r.Varying {
		if _, known := best[v.Preset]; !known {
			why.add(v.Why, v.Preset)
		}
	}
	var rows [][]string
	if len(shown) > 0 {
		fmt.Fprintf(out, "\nwith variable steps (median, and from 10 to 90 %% of the time), over %.4g s:\n", r.Horizon)
		rows = append(rows, []string{"algorithm", "order", "tolerance", "error", "FMU steps/s", "steps"})
	}
	for _, preset := range shown {
		v, s := best[preset].v, best[preset].s
		if s.Fails != "" {
			why.add("it is expected to fail: "+s.Fails, preset)
		}
		rows = append(rows, varyingRow(preset, v, s))
	}
	table(out, rows)
	why.print(out, "\nvariable steps: %s: %s\n")
}

// varyingRow is a row of printVarying.
func varyingRow(preset string, v *forecast.Varying, s *forecast.Settled) []string {
	order, off, cost := v.Order, "-", "-"
	if order == "auto" && s.Accepted > 0 {
		order = fmt.Sprintf("auto (%d)", s.MostOrder)
	}
	text := fmt.Sprintf("%.3g s (%.2g to %.2g)", s.Step, s.Short, s.Long)
	switch {
	case s.Fails != "":
		text = "fails"
	case s.Cut:
		text = fmt.Sprintf("more than %d", s.Accepted-1)
	default:
		off, cost = s.Forecast.Size(), fmt.Sprintf("%.4g", s.FMUSteps)
		if s.Rejected > 0 {
			text += fmt.Sprintf(", %d of %d rejected", s.Rejected, s.Accepted+s.Rejected)
		}
	}
	return []string{preset, order, fmt.Sprintf("%s=%.3g", v.Tolerance, s.Tolerance), off, cost, text}
}

// choiceFlags returns the flags of run for the recommended algorithm with step control.
func choiceFlags(r *analyze.Report) string {
	c := r.RecommendedVarying
	flags := "--algorithm " + c.Preset + analyze.SettingFlags(c.Params, c.Rates)
	if algorithms.UsesEnergy(c.Preset) {
		for _, b := range r.Structure.Bonds {
			if !b.Declared {
				flags += fmt.Sprintf(" --bond '%s=%s'", b.Name, strings.Join(b.Pairs, ","))
			}
		}
	}
	return flags
}

// printSeen prints how the stability of strategies was found by runs, with precision and gaps.
func printSeen(out io.Writer, r *analyze.Report) {
	runs, missed, precision := 0, 0, 0.0
	var seen *analyze.Seen
	for i := range r.Strategies {
		if s := r.Strategies[i].Seen; s != nil {
			seen, runs, missed, precision = s, runs+s.Runs, missed+s.Missed, max(precision, s.Precision)
		}
	}
	if seen == nil {
		return
	}
	fmt.Fprintf(out, "seen in runs: in %d runs of the system itself, with inputs moved a little at the operating point, "+
		"differences were followed over up to %d steps; growth below %.0e per step is not detected, nor are windows of stability between the steps tried",
		runs, seen.Steps, seen.Least)
	if precision > 0 {
		fmt.Fprintf(out, "; the ends of stable ranges are known to a factor of %.3g", 1+precision)
	}
	if missed > 0 {
		fmt.Fprintf(out, "; there was no time for %d steps; allow more with --runs", missed)
	}
	fmt.Fprintln(out)
}

// isRough reports whether a printed error is only an order of magnitude.
func isRough(r *analyze.Report) bool {
	if r.Promised != nil && r.Promised.IsRough() {
		return true
	}
	for _, s := range r.Strategies {
		for _, f := range s.Forecasts {
			if f.Step == r.Step && f.IsRough() {
				return true
			}
		}
	}
	return false
}
