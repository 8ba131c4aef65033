package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/reason"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// State is the stability of the present setting in a word.
type State string

// The states.
const (
	Stable    State = "stable"
	Close     State = "hardly stable" // above safety of the largest stable step
	Unstable  State = "unstable"
	Itself    State = "unstable by itself" // the coupled system, whatever the setting
	Varying   State = "variable steps"     // the algorithm chooses its steps and is expected to reach the end
	Fails     State = "fails"              // the run is expected to end early
	Unknown   State = "unknown"
	Uncoupled State = "not coupled" // no component feeds another
)

// Verdict is the answer for the algorithm and step of Options.Own.
type Verdict struct {
	State State `json:"state"`
	// Text has the details.
	Text string `json:"text"`
	// Range is the stable range of the step, Margin its end relative to the step; nil and 0 = the step is in none.
	Range  *scan.Range `json:"range,omitempty"`
	Margin float64     `json:"margin,omitempty"`
	// Error and cost of the setting; nil = unknown.
	Error *forecast.Forecast `json:"error,omitempty"`
	// Keep is set if nothing is recommended that is much better.
	Keep bool `json:"keep"`
	// Reasons why the stability is unknown, and NoError why the error is.
	Reasons []reason.Word `json:"reasons,omitempty"`
	NoError []reason.Word `json:"no_error,omitempty"`
}

// String returns the verdict in a sentence.
func (v *Verdict) String() string {
	switch v.State {
	case Close:
		return "stable, but with little margin: " + v.Text
	case Stable:
		return "stable " + v.Text
	case Itself:
		return "the system itself is unstable, whatever the step: " + v.Text
	case Fails:
		return "the run is expected to fail: " + v.Text
	case Varying:
		return v.Text
	}
	return fmt.Sprintf("%s: %s", v.State, v.Text)
}

// present returns the strategy of Options.Own; nil = it is none of the analysed ones.
func (r *Report) present() *Strategy {
	for i := range r.Strategies {
		if s := &r.Strategies[i]; r.Present != nil && s.Preset == r.Present.Preset && s.Order == r.Present.Order {
			return s
		}
	}
	return nil
}

// Judged returns the strategy whose mode explains the verdict: the present one, else the recommended one; nil = neither is
// known.
func (r *Report) Judged() *Strategy {
	if s := r.present(); s != nil && s.Mode != nil {
		return s
	}
	if r.Recommended >= 0 && r.Strategies[r.Recommended].Mode != nil {
		return &r.Strategies[r.Recommended]
	}
	return nil
}

// judgePresent returns the verdict on Options.Own.
func (r *Report) judgePresent() *Verdict {
	v, s := &Verdict{State: Unknown}, r.present()
	why := r.WhyNotOwn
	switch {
	case s != nil && len(s.Points) > 0:
		r.judgeStep(v, s)
		if why = s.Why; v.State == Unknown {
			why = s.whyUnknown(r.Step)
		}
	case r.Own != nil && r.Own.Fails != "":
		v.State, v.Text = Fails, r.Own.Fails
	case r.Own != nil && s == nil:
		v.State, v.Text = Varying, r.stepsText()
	case s != nil:
		why = s.Why
	}
	if r.Own != nil && r.Own.Fails == "" && !r.Own.Cut {
		v.Error = &r.Own.Forecast
	}
	if s != nil && (len(r.Present.Changed) == 0 || v.Error == nil) {
		for k := range s.Forecasts {
			if f := &s.Forecasts[k]; f.Step == r.Step {
				v.Error = f
			}
		}
	}
	if v.State == Unknown {
		v.Reasons = reason.Of(why)
		if slices.Contains(v.Reasons, reason.Uncoupled) {
			v.State = Uncoupled
		}
		v.Text = cmp.Or(v.Text, why)
	}
	if v.Error == nil && v.State != Uncoupled {
		v.NoError = reason.Of(cmp.Or(r.WhyNoError, r.WhyNotOwn, why))
	}
	v.Keep = r.keeps(v, s)
	return v
}

// judgeStep judges a strategy with known points.
func (r *Report) judgeStep(v *Verdict, s *Strategy) {
	k := slices.IndexFunc(s.Stable, func(in scan.Range) bool { return in.From <= r.Step*(1+1e-9) && r.Step <= in.To*(1+1e-9) })
	switch {
	case s.Known() && !s.IsStable() && r.Large == "" && r.Whole != nil:
		v.State, v.Text = Itself, r.Whole.String()
	case s.Known() && !s.IsStable():
		v.State = Unstable
		v.Text = fmt.Sprintf("a disturbance doubles every %s", r.doubles(s))
		v.Text += r.onlySmall(s) + "; " + s.stableText(r)
	case s.Known() && k >= 0:
		v.Range, v.Margin = &s.Stable[k], s.Stable[k].To/r.Step
		if v.State = Stable; r.Step > safety*v.Range.To && v.Range.To < r.To*(1-1e-9) && s.Multiples == 0 && !s.endsUnknown(*v.Range) {
			v.State = Close
		}
		v.Text = s.reach(*v.Range, r) + r.onlySmall(s)
	case s.Known():
		v.State, v.Text = Stable, "at this step; "+s.stableText(r)
	default:
		v.Text = s.stableText(r)
	}
}

// onlySmall restricts what models show that are not known to hold along the motion.
func (r *Report) onlySmall(s *Strategy) string {
	if r.Unconfirmed == "" || s.Seen != nil {
		return ""
	}
	return ", while the motion is small"
}

// whyUnknown returns why a step is of unknown stability.
func (s *Strategy) whyUnknown(step float64) string {
	for _, g := range s.Gaps {
		if g.From*(1-1e-9) <= step && step <= g.To*(1+1e-9) {
			return g.Why
		}
	}
	return s.Why
}

// doubles returns the time in which a growing motion doubles.
func (r *Report) doubles(s *Strategy) string {
	steps := math.Ln2 / math.Log(s.Now)
	return fmt.Sprintf("%.2g s (%s steps)", steps*r.Step, shortNumber(steps))
}

// stableText describes where a strategy is stable, for a step at which it is not known to be.
func (s *Strategy) stableText(r *Report) string {
	var ranges []string // all below the step, or the first above it
	for _, in := range s.Stable {
		switch {
		case in.To >= r.Step && len(ranges) > 0:
		case in.From <= r.From*(1+1e-9):
			ranges = append(ranges, fmt.Sprintf("only up to %.3g s", in.To))
		default:
			ranges = append(ranges, fmt.Sprintf("from %.3g to %.3g s", in.From, in.To))
		}
	}
	if len(ranges) > 0 {
		return "stable " + strings.Join(ranges, " and ") + s.inRuns()
	}
	return fmt.Sprintf("no step tried from %.3g to %.3g s is stable%s", s.Points[0].Step, s.Points[len(s.Points)-1].Step, s.inRuns())
}

// inRuns marks what trial runs show.
func (s *Strategy) inRuns() string {
	if s.Seen == nil {
		return ""
	}
	return " in trial runs"
}

// reach describes a stable range around the step of the analysis.
func (s *Strategy) reach(in scan.Range, r *Report) string {
	times := shortNumber(in.To/r.Step) + " times"
	if in.To < 1.1*r.Step {
		times = "hardly above"
	}
	text := fmt.Sprintf("up to %.3g s%s, %s the present step", in.To, s.inRuns(), times)
	switch {
	case s.Multiples > 0:
		text = fmt.Sprintf("at whole multiples of %.3g s up to %.3g s", s.Multiples, in.To)
	case in.To <= in.From*(1+1e-9):
		return "at this step" + s.inRuns() + "; shorter and longer ones are unknown"
	case in.To >= r.To*(1-1e-9):
		text = fmt.Sprintf("up to the longest step tried%s, %.3g s, %s the present one", s.inRuns(), in.To, times)
	case s.endsUnknown(in) && in.To < 1.1*r.Step && in.From > r.From*(1+1e-9) && s.beginsUnknown(in):
		return fmt.Sprintf("from %.3g s up to this step%s; shorter and longer ones are unknown", in.From, s.inRuns())
	case s.endsUnknown(in) && in.To < 1.1*r.Step:
		text = "up to this step" + s.inRuns() + "; longer ones are unknown"
	case s.endsUnknown(in):
		text = fmt.Sprintf("up to at least %.3g s%s, %s the present step", in.To, s.inRuns(), times)
	}
	switch {
	case in.From <= r.From*(1+1e-9) || s.Multiples > 0:
	case s.beginsUnknown(in):
		text += fmt.Sprintf("; below %.3g s it is unknown", in.From)
	default:
		text = fmt.Sprintf("from %.3g s %s; below that it is unstable", in.From, text)
	}
	if s.Seen == nil && s.AtLimit() && !s.Lasts {
		text += "; undamped motion goes on"
	}
	return text
}

// Reach describes in a few words how far the steps are stable from a step on; * marks trial runs.
func (s *Strategy) Reach(step float64, r *Report) string {
	star := ""
	if s.Seen != nil {
		star = "*"
	}
	k := slices.IndexFunc(s.Stable, func(in scan.Range) bool { return in.From <= step*(1+1e-9) && step <= in.To*(1+1e-9) })
	switch {
	case len(s.Points) == 0:
		return "unknown"
	case k < 0 && !s.Known():
		return "unknown"
	case k < 0 && len(s.Stable) == 0:
		return "no" + star
	case k < 0 && len(s.Stable) > 1 && s.Stable[0].From <= r.From*(1+1e-9):
		return fmt.Sprintf("no, but up to %.3g s%s", s.Stable[0].To, star)
	case k < 0 && s.Stable[0].To < step && s.Stable[0].From <= r.From*(1+1e-9):
		return fmt.Sprintf("no, only up to %.3g s%s", s.Stable[0].To, star)
	case k < 0:
		return fmt.Sprintf("no, only %.3g to %.3g s%s", s.Stable[0].From, s.Stable[0].To, star)
	case s.Multiples > 0:
		return fmt.Sprintf("at multiples up to %.3g s", s.Stable[k].To)
	case s.Stable[k].To >= r.To*(1-1e-9) && s.Stable[k].From <= r.From*(1+1e-9):
		return "at all steps tried" + star
	case s.Stable[k].To >= r.To*(1-1e-9):
		return fmt.Sprintf("from %.3g s on%s", s.Stable[k].From, star)
	case s.endsUnknown(s.Stable[k]):
		return fmt.Sprintf("at least to %.3g s%s", s.Stable[k].To, star)
	}
	return fmt.Sprintf("up to %.3g s%s", s.Stable[k].To, star)
}

// endsUnknown reports whether steps just above a stable range are of unknown stability.
func (s *Strategy) endsUnknown(in scan.Range) bool {
	k := slices.IndexFunc(s.Points, func(p scan.Radius) bool { return p.Step > in.To*(1+1e-9) })
	if k < 0 {
		return true
	}
	return slices.ContainsFunc(s.Gaps, func(g scan.Gap) bool { return in.To < g.From && g.To < s.Points[k].Step })
}

// beginsUnknown reports whether steps just below a stable range are of unknown stability.
func (s *Strategy) beginsUnknown(in scan.Range) bool {
	k := slices.IndexFunc(s.Points, func(p scan.Radius) bool { return p.Step >= in.From*(1-1e-9) }) - 1
	if k < 0 {
		return true
	}
	return slices.ContainsFunc(s.Gaps, func(g scan.Gap) bool { return s.Points[k].Step < g.From && g.To < in.From })
}

// shortNumber returns a number with two significant digits, without an exponent.
func shortNumber(v float64) string {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64) // cannot fail
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// stepsText describes the steps of an algorithm that chooses them.
func (r *Report) stepsText() string {
	o := r.Own
	if o.Cut {
		return fmt.Sprintf("more than %d steps are expected over %.3g s, half of the time of at most %.2g s", o.Accepted-1, o.Time, o.Step)
	}
	return fmt.Sprintf("steps of %.2g to %.2g s are expected, half of the time of at most %.2g s, %d of %d rejected",
		o.Short, o.Long, o.Step, o.Rejected, o.Accepted+o.Rejected)
}

// cheapEnough is the cost, relative to that of the recommendation, at which a setting that is good is kept.
const cheapEnough = 1.25

// keeps reports whether the present setting is as good as the recommendation.
func (r *Report) keeps(v *Verdict, s *Strategy) bool {
	sameStep := math.Abs(r.StepToTake-r.Step) <= 0.1*r.Step
	good := v.Error != nil && v.Error.Error+v.Error.Doubt <= r.Asked
	switch {
	case v.State == Varying:
		best := r.RecommendedVarying
		return good && (r.Promised == nil || v.Error.FMUSteps <= cheapEnough*r.Promised.FMUSteps) &&
			(best == nil || v.Error.FMUSteps <= cheapEnough*best.FMUSteps)
	case v.State != Stable || s.Multiples == 0 && !s.covers(r.Step, r.From):
		return false
	case r.Recommended >= 0 && s == &r.Strategies[r.Recommended] && sameStep:
		return r.RecommendedVarying == nil
	case r.Promised == nil:
		return true
	}
	return good && v.Error.FMUSteps <= cheapEnough*r.Promised.FMUSteps && r.RecommendedVarying == nil
}

// Alternative is a setting of the comparison.
type Alternative struct {
	Strategy *Strategy         // nil = Varying
	Varying  *forecast.Varying // with Settled
	Settled  *forecast.Settled
	Step     float64            // s; 0 = Varying chooses it
	Forecast *forecast.Forecast // nil = the error is unknown
}

// Same reports whether two alternatives are the same setting.
func (a *Alternative) Same(b *Alternative) bool {
	return a.Strategy == b.Strategy && a.Varying == b.Varying && a.Step == b.Step
}

// Best returns the best setting of each algorithm that is stable with a margin: first the recommended one, then those that
// keep to the error by cost, those of known error by error, and the others in their order, those stable at the step of the
// analysis first.
func (r *Report) Best() (all []Alternative) {
	take := func(preset string, a Alternative) {
		k := slices.IndexFunc(all, func(b Alternative) bool { return b.preset() == preset })
		switch {
		case k < 0:
			all = append(all, a)
		case r.compare(&a, &all[k]) < 0:
			all[k] = a
		}
	}
	for i := range r.Strategies {
		if a, ok := r.best(&r.Strategies[i], i == r.Recommended); ok {
			take(r.Strategies[i].Preset, a)
		}
	}
	for i := range r.Varying {
		v := &r.Varying[i]
		if s := v.Best(r.Asked); s != nil && s.Fails == "" && !s.Cut {
			take(v.Preset, Alternative{Varying: v, Settled: s, Forecast: &s.Forecast})
		}
	}
	slices.SortStableFunc(all, func(a, b Alternative) int { return r.compare(&a, &b) })
	return all
}

func (a *Alternative) preset() string {
	if a.Strategy != nil {
		return a.Strategy.Preset
	}
	return a.Varying.Preset
}

// Recommends reports whether an alternative is the recommended one with steps of one size.
func (r *Report) Recommends(a *Alternative) bool {
	return r.Recommended >= 0 && a.Strategy == &r.Strategies[r.Recommended] && a.Step == r.StepToTake
}

// best returns the best setting of a strategy; not ok = none is stable with a margin.
func (r *Report) best(s *Strategy, recommended bool) (a Alternative, ok bool) {
	if s.Untold != "" || len(s.Points) == 0 {
		return a, false
	}
	if a.Strategy = s; recommended {
		a.Step, a.Forecast = r.StepToTake, r.Promised
		return a, true
	}
	for k := range s.Forecasts {
		f := &s.Forecasts[k]
		if !s.covers(f.Step, r.From) {
			continue
		}
		if b := (Alternative{Strategy: s, Step: f.Step, Forecast: f}); !ok || r.compare(&b, &a) < 0 {
			a, ok = b, true
		}
	}
	switch {
	case ok:
		return a, true
	case s.covers(r.Step, r.From):
		a.Step = r.Step
	default:
		a.Step = s.largest()
	}
	return a, a.Step > 0
}

// compare orders alternatives, the better one first.
func (r *Report) compare(a, b *Alternative) int {
	class := func(a *Alternative) int {
		switch {
		case r.Recommends(a):
			return -1
		case a.Forecast == nil && a.Step != r.Step:
			return 3
		case a.Forecast == nil:
			return 2
		case a.Forecast.Error+a.Forecast.Doubt > r.Asked:
			return 1
		}
		return 0
	}
	ca, cb := class(a), class(b)
	switch {
	case ca != cb:
		return cmp.Compare(ca, cb)
	case ca == 0 && math.Abs(a.Forecast.FMUSteps-b.Forecast.FMUSteps) <= 1e-9*b.Forecast.FMUSteps:
		return 0
	case ca == 0:
		return cmp.Compare(a.Forecast.FMUSteps, b.Forecast.FMUSteps)
	case ca == 1:
		return cmp.Compare(a.Forecast.Error+a.Forecast.Doubt, b.Forecast.Error+b.Forecast.Doubt)
	case ca == 3:
		return cmp.Compare(b.Step, a.Step)
	}
	return 0
}

// Now returns the present setting; nil = its algorithm is none of the analysed strategies.
func (r *Report) Now() *Alternative {
	if s := r.present(); s != nil {
		return &Alternative{Strategy: s, Step: r.Step, Forecast: r.Verdict.Error}
	}
	return nil
}

// Describe describes the dominant mode of a strategy: how fast it swings and dies out or grows.
func (r *Report) Describe(s *Strategy) string {
	rate, f := math.Log(s.slowest())/r.Step, s.Mode.Frequency
	var text string
	switch omega := 2 * math.Pi * f; {
	case f*r.Step >= 0.499:
		text = "alternates from step to step"
	case f == 0:
		text = "no oscillation"
	default:
		if text = fmt.Sprintf("%.3g Hz", f); rate < 0 && s.slowest() < 1-linear.Marginal {
			text += fmt.Sprintf(", damping ratio %.2g", -rate/math.Hypot(rate, omega))
		}
	}
	switch {
	case math.Abs(s.slowest()-1) <= linear.Marginal:
		return text + ", undamped"
	case rate < 0:
		return text + fmt.Sprintf(", halves every %.2g s", -math.Ln2/rate)
	}
	return text + fmt.Sprintf(", doubles every %.2g s", math.Ln2/rate)
}

// Where lists the components of a mode with their outputs, by their share.
func (r *Report) Where(m *scan.Mode) string {
	const most = 3
	var names []string
	outputs := map[string][]string{}
	for _, part := range m.Outputs {
		name := r.owner(part.Name)
		if outputs[name] == nil {
			names = append(names, name)
		}
		outputs[name] = append(outputs[name], strings.TrimPrefix(part.Name, name+"."))
	}
	var parts []string
	for _, name := range names[:min(most, len(names))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", name, strings.Join(outputs[name], ", ")))
	}
	return strings.Join(parts, ", ")
}

// owner returns the component of an output.
func (r *Report) owner(output string) (owner string) {
	for _, s := range r.Subsystems {
		if strings.HasPrefix(output, s.Name+".") && len(s.Name) > len(owner) {
			owner = s.Name
		}
	}
	if owner == "" {
		owner, _, _ = strings.Cut(output, ".")
	}
	return owner
}

// Lever is a connection with the effect of a tenth more gain.
type Lever struct {
	Connection string
	Effect     float64 // relative change of the rate at which the mode dies out, or grows; +0.1 = by a tenth faster
}

// Levers returns the connections that change the mode of a strategy, at most three, and whether it grows.
func (r *Report) Levers(s *Strategy) (levers []Lever, grows bool) {
	const most, change, least = 3, 0.1, 0.005
	radius := s.slowest()
	rate := math.Log(radius)
	if math.Abs(radius-1) <= linear.Marginal {
		return nil, false
	}
	for _, c := range s.Mode.Connections {
		if by := change * c.Share / radius / rate; math.Abs(by) >= least && len(levers) < most {
			levers = append(levers, Lever{c.Name, by})
		}
	}
	return levers, radius > 1
}
