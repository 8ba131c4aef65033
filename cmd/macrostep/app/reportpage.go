package app

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/results/page"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/graph"
)

const (
	// pagePlots is the largest number of plots of variables on a page, pageWatched that of variables of a run
	// from which they are taken.
	pagePlots   = 200
	pageWatched = 2000
	// pageSpans is the number of spans (results.Thinner) of all plots of a page, and plotSpans the
	// largest number of one. A span takes up to four points of about ten bytes.
	pageSpans = 32_000
	plotSpans = 4000
)

// spansEach returns the number of spans of each of n curves.
func spansEach(n int) int { return min(plotSpans, pageSpans/min(max(n, 1), pagePlots)) }

// bondPrefix is the prefix of the recorded quantities of power bonds.
const bondPrefix = "bond."

// curve is a variable of a result.
type curve struct {
	name, unit string
	own        string // its name in the manifest
	held       bool   // it changes only at communication points
	equals     string // the output that a connected input equals; "" = none
	thin       *results.Thinner
}

// lineOf returns the line of a plot, in the colour of result of.
func lineOf(thin *results.Thinner, of int) page.Curve {
	l := page.Curve{Of: of}
	l.T, l.V = thin.Points(nil, nil)
	l.Given, l.Bad = thin.Given()
	return l
}

// constant returns the value of a plot whose lines are equal and constant.
func constant(q *page.Plot) (value float64, ok bool) {
	for i, l := range q.Lines {
		if l.Bad > 0 || len(l.V) == 0 {
			return 0, false
		}
		if i == 0 {
			value = l.V[0]
		}
		if slices.ContainsFunc(l.V, func(v float64) bool { return v != value }) {
			return 0, false
		}
	}
	return value, len(q.Lines) > 0
}

// plotsOf returns the plots of the variables of some results in the order of their tables. Connected inputs that
// equal an output of the page are left out; of counts them.
func plotsOf(list []*reportParts) (plots []page.Plot, of []*curve, equal int) {
	at := map[string]int{}
	there := map[string]bool{}
	for _, r := range list {
		for i := range r.curves {
			there[r.curves[i].name] = true
		}
	}
	left := map[string]bool{}
	for k, r := range list {
		for i := range r.curves {
			c := &r.curves[i]
			manipulated := r.manifest != nil && slices.Contains(r.manifest.Manipulated, c.own)
			if c.equals != "" && there[c.equals] && !manipulated {
				left[c.name] = true
				continue
			}
			n, known := at[c.name]
			if !known {
				n = len(plots)
				at[c.name] = n
				plots, of = append(plots, page.Plot{Name: c.name, Unit: c.unit, Held: c.held}), append(of, c)
			}
			l := lineOf(c.thin, k)
			if r.manifest != nil && r.manifest.Error != nil && !c.held {
				l.Error = r.manifest.Error.Variables[c.own].Absolute
			}
			plots[n].Lines = append(plots[n].Lines, l)
		}
	}
	return plots, of, len(left)
}

// byComponent groups plots by component: the longest name that matches, else the part before the first
// dot. Quantities of bonds are in the last group, without a title.
func byComponent(plots []page.Plot, components []string) []page.Group {
	at := map[string]int{}
	var groups []page.Group
	var bonds page.Group
	for _, q := range plots {
		name, group := q.Name, ""
		if strings.HasPrefix(name, bondPrefix) {
			bonds.Plots = append(bonds.Plots, q)
			continue
		}
		for _, c := range components {
			if len(c) > len(group) && strings.HasPrefix(name, c+".") {
				group = c
			}
		}
		if group == "" {
			group, _, _ = strings.Cut(name, ".")
		}
		k, there := at[group]
		if !there {
			k = len(groups)
			at[group] = k
			groups = append(groups, page.Group{Title: group})
		}
		groups[k].Plots = append(groups[k].Plots, q)
	}
	return append(groups, bonds)
}

// reportParts is the content of the page of a run.
type reportParts struct {
	title    string
	name     string           // of the result, on a page of several
	going    bool             // the run goes on: a variable may still change
	manifest *record.Manifest // nil = none
	curves   []curve
	left     int // number of variables without a curve
	steps    *stepCurves
	graph    template.HTML
	noGraph  string // why there is none
	analysis *analyze.Report
	notes    []string // on the results
	source   string   // file of the results
}

// stepCurves are step size, order, iterations and error estimates over time.
type stepCurves struct {
	size, order, iterations, estimate, indicator, rejected *results.Thinner
	rejections, iterated, highest                          int
	any                                                    bool
}

func newStepCurves() *stepCurves {
	thin := func() *results.Thinner { return results.NewThinner(plotSpans) }
	return &stepCurves{size: thin(), order: thin(), iterations: thin(), estimate: thin(), indicator: thin(), rejected: thin()}
}

// add adds an attempt at a macro step of H from t, both in s.
func (s *stepCurves) add(t, H, order, iterations, estimate, indicator float64, accepted bool) {
	s.any = true
	s.iterated = max(s.iterated, int(iterations))
	s.iterations.Add(t, iterations)
	s.estimate.Add(t, estimate)
	s.indicator.Add(t, indicator)
	if !accepted {
		s.rejections++
	}
	s.rejected.Add(t, float64(s.rejections))
	if accepted {
		s.size.Add(t, H)
		s.order.Add(t, order)
		s.highest = max(s.highest, int(order))
	}
}

// RecordAttempt adds an attempt of a run.
func (s *stepCurves) RecordAttempt(t, H float64, trial master.Trial, accepted bool, _ error) error {
	s.add(t, H, float64(trial.Order), float64(trial.Iters), trial.Est, trial.Indicator, accepted)
	return nil
}

// plots returns the plots of the steps of result of.
func (s *stepCurves) plots(of int) []page.Plot {
	var plots []page.Plot
	add := func(name, unit string, thin *results.Thinner, log bool) {
		l := lineOf(thin, of)
		l.Given -= l.Bad // without an estimate
		l.Bad = 0
		if len(l.T) > 0 {
			plots = append(plots, page.Plot{Name: name, Unit: unit, Held: !log, Log: log, Lines: []page.Curve{l}})
		}
	}
	add("step size", "s", s.size, varies(s.size))
	if s.highest > 0 {
		add("order", "", s.order, false)
	}
	if s.iterated > 0 {
		add("iterations", "per attempt", s.iterations, false)
	}
	add("error estimate", "in tolerances", s.estimate, true)
	add("indicator of the coupling error", "", s.indicator, true)
	if s.rejections > 0 {
		add("rejected attempts", "so far", s.rejected, false)
	}
	return plots
}

// varies reports whether values differ so much that they need a logarithmic axis.
func varies(h *results.Thinner) bool {
	_, v := h.Points(nil, nil)
	least, most := math.Inf(1), 0.0
	for _, x := range v {
		if x > 0 {
			least, most = min(least, x), max(most, x)
		}
	}
	return most > 5*least
}

// pageOf returns the page of a run; components are those of the system.
func pageOf(r *reportParts, components []string) *page.Page {
	out := &page.Page{Title: r.title, Made: madeNow()}
	m := r.manifest
	if m != nil {
		out.State, out.Tone = verdictShown(m.Verdict())
		out.Reason, out.Warnings, out.Facts = m.Reason, m.Warnings, pageFacts(m)
		if data, err := m.JSON(); err == nil {
			out.Document = string(data)
		}
	}
	if r.source != "" {
		out.Facts = append(out.Facts, page.Fact{Name: "results", Value: r.source})
	}
	add := func(list ...page.Section) { out.Sections = append(out.Sections, list...) }
	if m != nil && m.Scenario != nil {
		add(scenarioSection(m.Scenario))
	}
	add(curveSections([]*reportParts{r}, components)...)
	add(stepSection([]*reportParts{r}))
	if m != nil && m.Realtime != nil {
		add(realtimeSection(m.Realtime))
	}
	if r.graph != "" {
		add(page.Section{Title: "System", Picture: r.graph})
	} else if r.noGraph != "" {
		add(page.Section{Title: "System", Text: []string{"There is no picture of the system: " + r.noGraph}})
	}
	if m != nil {
		add(costSection(m), analysisSection(r.analysis))
		add(manifestSections(m)...)
	}
	out.Sections = withContent(out.Sections)
	return out
}

func madeNow() string {
	return "made by macrostep " + simulate.Version() + " on " + time.Now().Format("2006-01-02 15:04")
}

// withContent returns the sections that are not empty.
func withContent(list []page.Section) []page.Section {
	return slices.DeleteFunc(list, func(s page.Section) bool {
		return len(s.Text)+len(s.Tables)+len(s.Bars)+len(s.Groups) == 0 && s.Picture == ""
	})
}

// stepSection returns the steps of some results.
func stepSection(list []*reportParts) page.Section {
	s := page.Section{Title: "Steps"}
	var plots []page.Plot
	for k, r := range list {
		if r.steps == nil || !r.steps.any {
			continue
		}
		for _, q := range r.steps.plots(k) {
			at := slices.IndexFunc(plots, func(p page.Plot) bool { return p.Name == q.Name })
			if at < 0 {
				plots = append(plots, q)
				continue
			}
			plots[at].Lines = append(plots[at].Lines, q.Lines...)
		}
	}
	plots, rows := apartFromConstants(plots)
	addTable(&s, "", "constant|value|unit", rows)
	if len(plots) > 0 {
		s.Groups = []page.Group{{Plots: plots}}
	}
	return s
}

// apartFromConstants separates plots from constants, which need no plot: rows of name, value and unit.
func apartFromConstants(list []page.Plot) (plots []page.Plot, rows [][]string) {
	for _, q := range list {
		judged := slices.ContainsFunc(q.Marks, func(m page.Mark) bool { return m.Kind != page.Event })
		if v, ok := constant(&q); ok && !judged {
			rows = append(rows, []string{q.Name, strconv.FormatFloat(v, 'g', 10, 64), q.Unit})
			continue
		}
		plots = append(plots, q)
	}
	return plots, rows
}

// verdictShown returns the outcome of a run for the page.
func verdictShown(o master.Outcome) (text string, tone page.Tone) {
	switch {
	case o.OK(true):
		tone = page.Good
	case o.Ended == master.EndedFailed || o.Expectations == master.ExpectationsNotMet || o.Stability == master.Unstable:
		tone = page.Bad
	default:
		tone = page.Doubtful
	}
	return o.String(), tone
}

// constantsOpen is the largest number of constants that are shown at once.
const constantsOpen = 12

// curveSections returns the plots of results and of power bonds, and the constants.
func curveSections(list []*reportParts, components []string) []page.Section {
	results, bonds := page.Section{Title: "Results"}, page.Section{Title: "Power bonds"}
	first := list[0]
	left, going := 0, false
	for _, r := range list {
		left, going = max(left, r.left), going || r.going
		for _, note := range r.notes {
			if len(list) > 1 {
				note = r.name + ": " + note
			}
			results.Text = append(results.Text, note)
		}
	}
	plots, _, equal := plotsOf(list)
	var constants [][]string
	if len(list) == 1 && first.manifest != nil {
		for i := range plots {
			plots[i].Marks, plots[i].Bounds = marks(first.manifest.Scenario, plots[i].Name), bounds(first.manifest.Scenario, plots[i].Name)
		}
	}
	if !going {
		plots, constants = apartFromConstants(plots)
	}
	if more := len(plots) - pagePlots; more > 0 {
		left += more
		plots = plots[:pagePlots]
	}
	if left > 0 {
		results.Text = append(results.Text, fmt.Sprintf("%s are not shown: a page holds %d plots; macrostep report --select chooses.",
			plural(left, "more variable"), pagePlots))
	}
	if equal > 0 {
		results.Text = append(results.Text, fmt.Sprintf("Connected inputs that equal their sources are not drawn (%d).", equal))
	}
	if slices.ContainsFunc(plots, func(q page.Plot) bool {
		return slices.ContainsFunc(q.Lines, func(l page.Curve) bool { return l.Given > len(l.T)+l.Bad })
	}) {
		results.Text = append(results.Text, "Long results are thinned: of equal spans of time the first, least, greatest and last point are drawn, "+
			"so that no peak is lost.")
	}
	groups := byComponent(plots, components)
	last := len(groups) - 1
	results.Groups = groups[:last]
	if len(groups[last].Plots) > 0 {
		bonds.Groups = groups[last:]
	}
	if m := first.manifest; m != nil && len(m.Bonds) > 0 && len(list) == 1 {
		addTable(&bonds, "", "bond|residual energy|mean power|mean residual power|peak residual power|correction",
			rowsBy(m.Bonds, func(name string, b master.BondEnergy) []string {
				return []string{name, number(b.ResidualEnergy) + " J", number(b.MeanPower) + " W", number(b.MeanAbsResidualPower) + " W",
					number(b.PeakResidualPower) + " W", cmp.Or(b.Correction, "none")}
			}))
		bonds.Text = append(bonds.Text, "Residual power is power that the coupling creates or destroys at a bond.")
	}
	fixed := page.Section{Title: plural(len(constants), "constant"), Closed: len(constants) > constantsOpen}
	addTable(&fixed, "", "variable|value|unit", constants)
	return []page.Section{results, fixed, bonds}
}

// addTable adds a table if it has rows; heads are the column titles, separated by bars.
func addTable(s *page.Section, title, heads string, rows [][]string) {
	if len(rows) > 0 {
		s.Tables = append(s.Tables, page.Table{Title: title, Head: strings.Split(heads, "|"), Rows: rows})
	}
}

// pageFacts summarises a run.
func pageFacts(m *record.Manifest) []page.Fact {
	var list []page.Fact
	add := func(name, format string, args ...any) {
		list = append(list, page.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	until, rejected := "", ""
	if m.Status != master.Complete {
		until = fmt.Sprintf(" of %g s", m.StopTime.Value)
	}
	if m.Steps.Rejected > 0 {
		rejected = fmt.Sprintf(", %d more rejected", m.Steps.Rejected)
	}
	add("system", "%s", m.System)
	add("algorithm", "%s%s", m.Algorithm, parameterList(given(m)))
	add("time", "%.12g to %.12g s%s", m.StartTime.Value, m.EndTime, until)
	add("macro steps", "%d%s", m.Steps.Accepted, rejected)
	mean := ""
	if h := m.StepSize.Value; math.Abs(m.Steps.Mean-h) > 1e-3*h {
		mean = fmt.Sprintf("; mean %s s", number(m.Steps.Mean))
	}
	add("step size", "%g s (%s)%s", m.StepSize.Value, m.StepSize.Source, mean)
	if m.Error != nil {
		add("coupling error", "%s", strings.TrimPrefix(m.Error.String(), "coupling error: "))
	}
	if m.Scenario != nil {
		add("scenario", "%s", scenarioLine(m.Scenario))
	}
	if t := m.Realtime; t != nil {
		add("real time", "%d of %s missed; late by %s (99 %%), %s at worst", t.Overruns, plural(t.Deadlines, "deadline"),
			micro(t.Lateness.P99), micro(t.Lateness.Worst))
	}
	if len(m.Orders) > 1 {
		add("steps of order", "%s", orderList(m.Orders))
	}
	if m.Iterations > 0 {
		add("corrector", "%s, %s", plural(m.Iterations, "iteration"), plural(m.Jacobians, "Jacobian"))
	}
	if wall := m.WallSeconds; wall > 0 {
		add("took", "%s, %s × real time", duration(wall), short((m.EndTime-m.StartTime.Value)/wall))
	}
	if m.ResumedFrom != nil {
		add("resumed", "from %s at %.12g s", m.ResumedFrom.Checkpoint, m.ResumedFrom.Time)
	}
	add("version", "macrostep %s, %s, %s", m.Versions.Macrostep, m.Versions.Go, m.Versions.Platform)
	return list
}

// given returns the parameters that do not have their default.
func given(m *record.Manifest) map[string]string {
	out := map[string]string{}
	for key, v := range m.Parameters {
		if _, ok := m.Sources["param "+key]; ok {
			out[key] = v
		}
	}
	return out
}

// scenarioSection returns the outcome of a scenario.
func scenarioSection(sc *record.Scenario) page.Section {
	s := page.Section{Title: "Scenario", Text: []string{scenarioLine(sc)}}
	addTable(&s, "Expectations", "verdict|expected|time|value|line", rowsOf(sc.Expectations, func(e record.Expectation) []string {
		at := "–"
		if e.Time != nil {
			at = fmt.Sprintf("%.6g s", *e.Time)
		}
		if !e.Passed {
			s.Text = append(s.Text, e.Message)
		}
		value := e.Value
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			value = fmt.Sprintf("%.6g", v)
		}
		return []string{verdictOf(e), e.What, at, value, strconv.Itoa(e.Line)}
	}))
	shown := sc.Events[:min(len(sc.Events), pageEvents)]
	addTable(&s, "What happened", "time|event|line", rowsOf(shown, func(e record.ScenarioEvent) []string {
		return []string{fmt.Sprintf("%.6g s", e.Time), strings.Join(e.Did, "; "), strconv.Itoa(e.Line)}
	}))
	if more := len(sc.Events) - len(shown); more > 0 {
		s.Text = append(s.Text, plural(more, "more event")+" in the manifest.")
	}
	if len(sc.Events)+len(sc.Expectations) > 0 {
		s.Text = append(s.Text, "In the plots, upright broken lines mark events (grey) and the time of the verdict of expectations. Level lines are their bounds: "+
			"solid if they hold at each point, broken if at one of them.")
	}
	return s
}

// scenarioLine returns the outcome of a scenario in a line.
func scenarioLine(sc *record.Scenario) string {
	count := sc.Count()
	events := plural(cmp.Or(sc.Given, len(sc.Events)), "event") // older manifests have no number
	if sc.Happened < sc.Given {
		events = fmt.Sprintf("%d of %s", sc.Happened, events)
	}
	text := fmt.Sprintf("%s: %s, %d of %s met", cmp.Or(sc.Name, sc.Path), events, count.Met, plural(len(sc.Expectations), "expectation"))
	if count.Undecided > 0 {
		text += fmt.Sprintf(", %d not judged", count.Undecided)
	}
	return text
}

// verdictOf returns the outcome of an expectation.
func verdictOf(e record.Expectation) string {
	switch {
	case e.Passed:
		return "met"
	case e.Undecided():
		return "not judged"
	}
	return "failed"
}

// pageEvents is the largest number of events of a scenario on a page.
const pageEvents = 100

// marks returns the times of a scenario in the plot of a variable.
func marks(sc *record.Scenario, variable string) (list []page.Mark) {
	if sc == nil {
		return nil
	}
	for _, e := range sc.Events[:min(len(sc.Events), pageEvents)] {
		list = append(list, page.Mark{T: e.Time, Kind: page.Event})
	}
	for _, e := range sc.Expectations {
		if e.Variable == variable && e.Time != nil {
			list = append(list, page.Mark{T: *e.Time, Kind: map[bool]page.MarkKind{true: page.Met, false: page.Failed}[e.Passed]})
		}
	}
	return list
}

// bounds returns the expectations of a variable that are bounds of a number.
func bounds(sc *record.Scenario, variable string) (list []page.Bound) {
	if sc == nil {
		return nil
	}
	or := func(v *float64, open float64) float64 {
		if v != nil {
			return *v
		}
		return open
	}
	for _, e := range sc.Expectations {
		if e.Variable != variable || e.Min == nil && e.Max == nil || e.Undecided() {
			continue
		}
		below, above := math.Inf(-1), math.Inf(1)
		list = append(list, page.Bound{From: or(e.From, below), To: or(e.Until, above), Low: or(e.Min, below), High: or(e.Max, above),
			Once: e.Once, Kind: map[bool]page.MarkKind{true: page.Met, false: page.Failed}[e.Passed]})
	}
	return list
}

// realtimeSection returns the delays of a run in real time.
func realtimeSection(t *master.Timing) page.Section {
	s := page.Section{Title: "Real time", Shares: "Deadlines by how late the run was"}
	pace := fmt.Sprintf("%s × the speed of the clock, %s, ", short(t.Factor), plural(t.Deadlines, "deadline"))
	if t.Overruns == 0 {
		pace += "none missed."
	} else {
		pace += fmt.Sprintf("%d missed (%s): the macro step ended later.", t.Overruns, t.Overrun)
	}
	if t.Skipped > 0 {
		pace += " " + plural(t.Skipped, "slot") + " skipped."
	}
	if t.Paused > 0 {
		pace += fmt.Sprintf(" The run was paused for %s s, for which the clock was stopped.", number(t.Paused))
	}
	s.Text = append(s.Text, pace)
	s.Text = append(s.Text, fmt.Sprintf("The run was latest at t = %.6g s.", t.WorstAt))
	if len(t.Settings) > 0 {
		s.Text = append(s.Text, "Set for it: "+strings.Join(t.Settings, "; ")+".")
	}
	row := func(name string, d *master.Distribution) []string {
		return []string{name, micro(d.Mean), micro(d.P50), micro(d.P99), micro(d.P999), micro(d.Worst)}
	}
	addTable(&s, "", "time|mean|50 %|99 %|99.9 %|worst", [][]string{row("late", &t.Lateness), row("at work", &t.Work)})
	for _, b := range t.Lateness.Histogram {
		share := float64(b.Count) / float64(max(t.Deadlines, 1))
		s.Bars = append(s.Bars, page.Bar{Name: "≤ " + micro(b.UpTo), Value: strconv.Itoa(b.Count), Share: share})
	}
	return s
}

// costSection returns the time of each FMU and of macrostep.
func costSection(m *record.Manifest) page.Section {
	s := page.Section{Title: "Cost"}
	total := m.MasterSeconds + m.StartSeconds
	for _, v := range m.Seconds {
		total += v
	}
	if total <= 0 {
		return s
	}
	names := slices.SortedFunc(maps.Keys(m.Seconds), func(a, b string) int {
		return cmp.Or(-cmp.Compare(m.Seconds[a], m.Seconds[b]), cmp.Compare(a, b))
	})
	for _, name := range names {
		seconds, steps := m.Seconds[name], m.FMUSteps[name]
		value := duration(seconds)
		if steps > 0 {
			value += fmt.Sprintf(", %d steps of %s", steps, micro(seconds/float64(steps)))
		}
		s.Bars = append(s.Bars, page.Bar{Name: name, Value: value, Share: seconds / total})
	}
	add := func(part string, seconds float64) {
		s.Bars = append(s.Bars, page.Bar{Name: part, Value: duration(seconds), Share: seconds / total})
	}
	if m.StartSeconds == 0 { // an older manifest
		add("macrostep", m.MasterSeconds)
		return s
	}
	add("macrostep: coupling", m.MasterSeconds-m.RecordSeconds)
	add("macrostep: recording", m.RecordSeconds)
	add("start: loading, initialisation", m.StartSeconds)
	return s
}

// analysisSection returns an analysis of the system; r may be nil.
func analysisSection(r *analyze.Report) page.Section {
	s := page.Section{Title: "Analysis"}
	if r == nil {
		return s
	}
	s.Text = append(s.Text, fmt.Sprintf("The present setting is %s: %s.", r.Verdict.State, r.Verdict.Text))
	var rows [][]string
	for _, line := range r.Strategies {
		for _, t := range line.Trials {
			name, off, usable := settingOf(&t), "–", "no"
			if same(&t, r.Recommended) {
				name += " (recommended)"
			}
			if t.Error != nil {
				off = record.Percent(*t.Error)
			}
			if t.Usable {
				usable = "yes"
			}
			rows = append(rows, []string{name, number(t.Step), off, t.Of, fmt.Sprintf("%.4g", t.FMUSteps), cmp.Or(t.Fails, t.Grows, usable)})
		}
	}
	addTable(&s, "Runs compared with "+r.Reference.Setting, "setting|step in s|error|of|FMU steps per s|usable", rows)
	return s
}

// manifestSections returns coupling, settings and notes of a manifest.
func manifestSections(m *record.Manifest) []page.Section {
	coupling := page.Section{Title: "Coupling", Closed: true}
	addTable(&coupling, "Algebraic loops", "loop|dependencies|treatment", rowsOf(m.Loops, func(l master.Loop) []string {
		name, how := strings.Join(l.Variables, " → "), "declared"
		if l.Initialization {
			name = "initialisation: " + name
		}
		if l.Assumed {
			how = "assumed"
		}
		return []string{name, how, l.Treatment}
	}))
	addTable(&coupling, "Inputs between communication points", "input|how|order", rowsOf(m.Delivery, func(d master.Delivery) []string {
		return []string{d.Input, d.How, strconv.Itoa(d.Order)}
	}))
	addTable(&coupling, "Models of the subsystems", "component|source|evaluations|steps without|steps mispredicted|why",
		rowsBy(m.Models, func(name string, u master.ModelUse) []string {
			return []string{name, u.Source, strconv.Itoa(u.Evaluations), strconv.Itoa(u.Uncorrected), strconv.Itoa(u.Mispredicted), u.Reason}
		}))
	var restarts [][]string
	for _, name := range slices.Sorted(maps.Keys(m.Restarts)) {
		for _, r := range m.Restarts[name] {
			restarts = append(restarts, []string{name, number(r.Time), r.Call, r.Cause})
		}
	}
	addTable(&coupling, "Restarts", "component|at s|call|cause", restarts)
	settings := page.Section{Title: "Settings", Closed: true}
	addTable(&settings, "Parameters of "+m.Algorithm, "parameter|value|from", rowsBy(m.Parameters, func(key, value string) []string {
		return []string{key, value, cmp.Or(m.Sources["param "+key], "default")}
	}))
	addTable(&settings, "FMUs", "component|file|made by|own process|quirks|SHA-256", rowsOf(m.FMUs, func(f record.FMU) []string {
		return []string{f.Component, f.Path, f.Tool, cmp.Or(f.Isolated, "no"), strings.Join(f.Quirks, ", "),
			strings.TrimPrefix(f.Hash, "sha256:")}
	}))
	return []page.Section{coupling, settings, {Title: "Notes", Text: m.Notes, Closed: true}}
}

// componentsOf returns the components of a run; nil = there is no manifest.
func componentsOf(m *record.Manifest) []string {
	if m == nil {
		return nil
	}
	var names []string
	for _, f := range m.FMUs {
		names = append(names, f.Component)
	}
	return names
}

// picture draws a system for a page; why is the reason if it cannot.
func picture(path string, dialects []ssp.Dialect) (svg template.HTML, why string) {
	s, err := pictured(path, dialects)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return "", first
	}
	if len(s.Nodes) > readable {
		return "", fmt.Sprintf("%d components are too many for a picture; macrostep ssp graph --depth 1 draws parts", len(s.Nodes))
	}
	var b bytes.Buffer
	if err := graph.SVG(&b, s); err != nil {
		return "", err.Error()
	}
	return template.HTML(b.String()), "" // graph.SVG escapes the texts
}

// titleOf returns the title of the page of a system.
func titleOf(system string) string {
	base := filepath.Base(system)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
