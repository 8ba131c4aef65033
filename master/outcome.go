package master

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Outcome is the verdict on a run, by Result.Outcome. Summary, manifest, pages, metrics and exit code are
// based on it.
type Outcome struct {
	// Ended is "complete", "terminated", "failed" or "interrupted".
	Ended string `json:"ended"`
	// Stability is "stable", "unstable", or "unknown" if the run failed too early, or if an output grows and
	// the cause is unknown.
	Stability string `json:"stability"`
	// Unstable describes which value has grown and by how much; "" = none.
	Unstable string `json:"unstable"`
	// Expectations is "none", "met", "not met", or "undecided" if none failed but the run ended before
	// all were decided.
	Expectations string `json:"expectations"`
}

// The values of an Outcome.
const (
	EndedComplete    = "complete"
	EndedTerminated  = "terminated"
	EndedFailed      = "failed"
	EndedInterrupted = "interrupted"

	Stable           = "stable"
	Unstable         = "unstable"
	UnknownStability = "unknown"

	NoExpectations        = "none"
	ExpectationsMet       = "met"
	ExpectationsNotMet    = "not met"
	ExpectationsUndecided = "undecided"
)

// Expectations counts the expectations of hooks.
type Expectations struct {
	Met       int
	Failed    int
	Undecided int // the run ended before
}

func (e *Expectations) add(o Expectations) {
	e.Met, e.Failed, e.Undecided = e.Met+o.Met, e.Failed+o.Failed, e.Undecided+o.Undecided
}

// Expecter is a hook with expectations of its run. Expectations is called at the end.
type Expecter interface{ Expectations() Expectations }

// StabilityJudge is a recorder that detects values that grow like those of an unstable system. Unstable is
// called at the end and describes such a value; "" = there is none.
type StabilityJudge interface{ Unstable() string }

// Outcome is the verdict on the run.
func (r *Result) Outcome() Outcome {
	o := Outcome{Ended: string(r.Status), Stability: Stable, Unstable: r.Unstable, Expectations: NoExpectations}
	if r.Status == Incomplete {
		o.Ended = EndedInterrupted
	}
	switch {
	case r.Unstable != "":
		o.Stability = Unstable
	case r.Status == Failed || r.Accepted == 0 || r.Growing != nil && !r.Growing.Own:
		o.Stability = UnknownStability
	}
	switch e := r.Expectations; {
	case e.Failed > 0:
		o.Expectations = ExpectationsNotMet
	case e.Undecided > 0:
		o.Expectations = ExpectationsUndecided
	case e.Met > 0:
		o.Expectations = ExpectationsMet
	}
	return o
}

// String returns the verdict as in "complete, unstable, expectations not met". It omits "stable",
// expectations if there are none, and an unknown stability of a run that did not end regularly.
func (o Outcome) String() string {
	text := o.Ended
	switch {
	case o.Stability == Unstable:
		text += ", unstable"
	case o.Stability == UnknownStability && o.Regular():
		text += ", stability unknown"
	}
	if o.Expectations != NoExpectations {
		text += ", expectations " + o.Expectations
	}
	return text
}

// Regular reports whether the run ended regularly.
func (o Outcome) Regular() bool { return o.Ended == EndedComplete || o.Ended == EndedTerminated }

// OK reports whether the run is a success (exit code 0): it ended regularly and met all expectations. A
// strict run must also be complete and not unstable.
func (o Outcome) OK(strict bool) bool {
	asExpected := o.Expectations == NoExpectations || o.Expectations == ExpectationsMet
	return o.Regular() && asExpected && (!strict || o.Ended == EndedComplete && o.Stability != Unstable)
}

// Growth describes an output whose peaks grow steadily, or whose swings grow, also if they do so more and more slowly.
type Growth struct {
	Output string
	By     float64 // from the first quarter of the run to the last
	Swings bool
	Own    bool // the coupling is not the cause
}

func (g *Growth) String() string {
	what := "the peaks of %s grow steadily"
	if g.Swings {
		what = "the swings of %s grow"
	}
	return fmt.Sprintf(what+", by a factor of %.3g from the first quarter of the run to the last", g.Output, g.By)
}

// growth keeps the extremes of the outputs in equal spans of the run. When there are growthSpans of them, each two become
// one, so that a run may have any length. Samples instead of extremes would show oscillations as slower or smaller ones.
type growth struct {
	from, width float64 // start time; length of a span, 0 = no step yet, in s
	spans       []extremes
	start       []float64
}

// extremes holds the lowest and the highest value of each output within a span of the run, and their times.
type extremes struct {
	low, high     []float64
	lowAt, highAt []float64
}

const (
	growthSpans = 64
	quarters    = 4

	// absurd is a growth, relative to start and nominal value, that no quantity of a meaningful system
	// reaches in a short time.
	absurd = 1e12
	// exponential suffices for values that grow exponentially throughout: by everSteeper in each quarter
	// of the run. A power p of time grows by (4/3)^p in the last quarter, and a population that starts
	// with 20 may well reach 3e7.
	exponential = 1e9
	everSteeper = 30
	// steep is a growth over the second half of the run that powers of time, 2^p, do not reach; it
	// separates an absurd value from the integral of a large one.
	steep = 256
	// A value grows steadily if its peaks grow at least by this factor from each quarter of the run to
	// the next, and the last time by not much less than before. A power p of time slows down: 2^p,
	// 1.5^p, 1.33^p.
	steadily, slowing = 1.4, 0.5
	// Swings that grow by doubled over the run, and by swells in its last quarter, may be those of an unstable
	// coupling. They change sign leastTurns times in leastSwing spans of a quarter, more often than powers of time
	// about a line. An output is ignored beside one that swings muchMore.
	doubled, swells        = 2, 1.1
	leastSwing, leastTurns = 8, 3
	muchMore               = 10
)

func newGrowth(outputs int) *growth {
	g := &growth{spans: make([]extremes, growthSpans), start: make([]float64, outputs)}
	for i := range g.spans {
		values := make([]float64, 4*outputs)
		part := func(n int) []float64 { return values[n*outputs : (n+1)*outputs] }
		g.spans[i] = extremes{part(0), part(1), part(2), part(3)}
	}
	g.spans = g.spans[:0]
	return g
}

// begin records the outputs at the start.
func (g *growth) begin(t float64, y []float64) {
	copy(g.start, y)
	g.spans, g.from, g.width = g.spans[:0], t, 0
}

// see records the outputs y after an accepted macro step to t.
func (g *growth) see(t float64, y []float64) {
	const rounding = 1e-6 // of a span; its end belongs to it
	if g.width == 0 {
		g.width = t - g.from
	}
	for t-g.from > (growthSpans+rounding)*g.width {
		g.halve()
	}
	for at := max(int(math.Ceil((t-g.from)/g.width-rounding)), 1); len(g.spans) < at; {
		g.spans = g.spans[:len(g.spans)+1]
		s := &g.spans[len(g.spans)-1]
		copy(s.low, y)
		copy(s.high, y)
		for k := range y {
			s.lowAt[k], s.highAt[k] = t, t
		}
	}
	g.spans[len(g.spans)-1].add(y, t)
}

func (s *extremes) add(y []float64, t float64) {
	for k, v := range y {
		if v < s.low[k] {
			s.low[k], s.lowAt[k] = v, t
		}
		if v > s.high[k] {
			s.high[k], s.highAt[k] = v, t
		}
	}
}

// halve makes one span of each two.
func (g *growth) halve() {
	g.width *= 2
	n := (len(g.spans) + 1) / 2
	for i := range n {
		g.spans[i], g.spans[2*i] = g.spans[2*i], g.spans[i]
		if 2*i+1 < len(g.spans) {
			s, next := &g.spans[i], &g.spans[2*i+1]
			for k := range s.low {
				if next.low[k] < s.low[k] {
					s.low[k], s.lowAt[k] = next.low[k], next.lowAt[k]
				}
				if next.high[k] > s.high[k] {
					s.high[k], s.highAt[k] = next.high[k], next.highAt[k]
				}
			}
		}
	}
	g.spans = g.spans[:n]
}

// peaks returns the largest magnitude of output k in each quarter of the run. ok is false if there are too few spans.
func (g *growth) peaks(k int) (highest [quarters]float64, ok bool) {
	n := len(g.spans)
	for i, s := range g.spans {
		q := i * quarters / n
		highest[q] = max(highest[q], -s.low[k], s.high[k])
	}
	return highest, n >= quarters
}

// beyond returns the index of an output that has diverged, -1 = none; y are the outputs at the end.
func (g *growth) beyond(y []float64, magnitude func(k int) float64) int {
	for k, v := range y {
		grown := math.Abs(v) / max(math.Abs(g.start[k]), magnitude(k))
		if !(grown > exponential) {
			continue
		}
		highest, ok := g.peaks(k)
		always := ok
		for q := 1; q < quarters; q++ {
			always = always && highest[q] >= everSteeper*highest[q-1]
		}
		if always || grown > absurd && (!ok || highest[quarters-1] >= steep*highest[1]) {
			return k
		}
	}
	return -1
}

// steady returns the steadily growing output that grows most, -1 = none, and the factor from its peak in
// the first quarter of the run to that in the last. Outputs are ignored while a comparable one is larger
// and does not grow.
func (g *growth) steady(alike func(j, k int) bool) (most int, by float64) {
	most = -1
	for k := range g.start {
		h, ok := g.peaks(k)
		if !ok || h[0] == 0 {
			continue
		}
		last, f := h[3]/h[2], h[3]/h[0]
		grows := h[1] >= steadily*h[0] && h[2] >= steadily*h[1] && last >= steadily && last >= slowing*max(h[1]/h[0], h[2]/h[1])
		if !grows || f <= by {
			continue
		}
		small := false
		for j := range g.start {
			o, _ := g.peaks(j)
			small = small || alike(j, k) && o[3] > h[3] && o[3] < steadily*o[0]
		}
		if !small {
			most, by = k, f
		}
	}
	return most, by
}

// swings returns how far the extremes of output k are from a straight line in each quarter of the run, as root mean square.
// ok is false if it does not swing to and fro throughout, or there are too few spans.
func (g *growth) swings(k int) (size [quarters]float64, ok bool) {
	n := len(g.spans) / quarters
	if n < leastSwing {
		return size, false
	}
	for q := range size {
		spans := g.spans[len(g.spans)-(quarters-q)*n:][:n]
		var at, values [2 * growthSpans / quarters]float64 // of the extremes, in the order of time
		points := 0
		for i := range spans {
			s := &spans[i]
			first, second := points, points+1
			if points += 2; s.highAt[k] < s.lowAt[k] {
				first, second = second, first
			}
			at[first], values[first] = s.lowAt[k], s.low[k]
			at[second], values[second] = s.highAt[k], s.high[k]
		}
		middle, mean, slope, spread := 0.0, 0.0, 0.0, 0.0
		for i := range points {
			middle, mean = middle+at[i]/float64(points), mean+values[i]/float64(points)
		}
		for i := range points {
			slope, spread = slope+(at[i]-middle)*values[i], spread+(at[i]-middle)*(at[i]-middle)
		}
		turns, last := 0, 0.0
		for i := range points {
			off := values[i] - mean - slope/spread*(at[i]-middle)
			if size[q] = math.Hypot(size[q], off); off*last < 0 {
				turns++
			}
			last = off
		}
		if turns < leastTurns {
			return size, false
		}
	}
	return size, true
}

// swelling returns the output whose swings grow most, −1 = none, and the factor from the first quarter of the run to the
// last. Growth may slow down, as of an unstable coupling that something keeps within bounds. candidate restricts the
// outputs. They are ignored while a comparable one swings much more and does not grow.
func (g *growth) swelling(candidate func(k int) bool, alike func(j, k int) bool) (most int, by float64) {
	most = -1
	grows := func(s [quarters]float64) bool {
		return s[1] >= s[0] && s[2] >= s[1] && s[3] >= swells*s[2] && s[3] >= doubled*s[0]
	}
	for k := range g.start {
		s, ok := g.swings(k)
		if f := s[3] / s[0]; !ok || !grows(s) || !(f > by) || !candidate(k) {
			continue
		}
		small := false
		for j := range g.start {
			if alike(j, k) {
				o, _ := g.swings(j)
				small = small || o[3] > muchMore*s[3] && !grows(o)
			}
		}
		if !small {
			most, by = k, s[3]/s[0]
		}
	}
	return most, by
}

// judgeStability determines whether the run was stable, and warns if it was not.
func (r *Run) judgeStability() {
	if r.accepted == 0 {
		return
	}
	text := ""
	for _, rec := range r.opt.Recorders[:r.record.begun] {
		if j, ok := rec.(StabilityJudge); ok && text == "" {
			text = j.Unstable()
		}
	}
	port := func(k int) (subsystem int, p *Port) {
		at := owner(r.sys.OutAt, k)
		return at, &r.sys.Infos[at].Out[k-r.sys.OutAt[at]]
	}
	k := r.growth.beyond(r.x.keptY, func(k int) float64 {
		_, p := port(k)
		return p.Magnitude()
	})
	if k >= 0 {
		grown := fmt.Sprintf("%s has grown to %.3g: the coupling is probably unstable; try a smaller step size or a lower order, "+
			"or see whether a component or the whole is unstable by itself (macrostep analyze)", r.sys.OutName(k), r.x.keptY[k])
		r.warn(grown)
		text = cmp.Or(text, grown)
	}
	alike := func(j, k int) bool {
		a, p := port(j)
		b, q := port(k)
		return a == b && p.Unit == q.Unit
	}
	if coupled := slices.ContainsFunc(r.sys.source, func(y int) bool { return y >= 0 }); text == "" && coupled {
		grows := Growth{}
		if k, grows.By = r.growth.steady(alike); k < 0 {
			grows.Swings = true
			k, grows.By = r.growth.swelling(func(k int) bool { return r.sys.feedsItself(owner(r.sys.OutAt, k)) }, alike)
		}
		if k >= 0 {
			grows.Output = r.sys.OutName(k)
			r.result.Growing = &grows
		}
	}
	r.result.Unstable = text
}
