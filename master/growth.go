package master

import (
	"fmt"
	"math"
)

// Growth describes an output in a loop of connections that grows like a value of an unstable system. A run alone cannot tell
// whether the coupling or the system itself is the cause.
type Growth struct {
	Output   string
	Swings   bool    // about a trend
	Factor   float64 // by which it has grown
	Doubling float64 // s
	Until    float64 // s
}

func (g *Growth) String() string {
	what := g.Output + " doubles"
	if g.Swings {
		what = "the swings of " + g.Output + " double"
	}
	return fmt.Sprintf("%s every %.3g s (%.3g-fold up to t = %.4g s)", what, g.Doubling, g.Factor, g.Until)
}

// CauseUnknown ends the description of growth of which nobody has found the cause.
const CauseUnknown = ", cause unknown (--check)"

// growth detects outputs that grow. It keeps their extremes in equal spans of the run. When there are mostSpans of them, each
// two become one, so that a run may have any length. Samples instead of extremes would show oscillations as slower or smaller
// ones.
type growth struct {
	outputs []int // entries of y
	sys     *System
	growthState
}

// growthState is the state of a growth.
type growthState struct {
	from, now   float64 // start time, present time, s
	width       float64 // of a span, s; 0 = no step yet
	until       float64 // end of the last span, s
	spans       []extremes
	steps, look int    // accepted; at which growth is looked for
	seen        Growth // during the run; no Output = none
}

// extremes holds the lowest and the highest value of each output within a span of the run, and their times.
type extremes struct {
	low, high     []float64
	lowAt, highAt []float64
}

const (
	mostSpans = 256
	// The part of the run in which an output moves, its last half, quarter and eighth have four windows of leastSpans or more.
	windows    = 4
	smallest   = 8
	leastSpans = 4
	// Swings change sign leastTurns times about a straight line in each window, more often than powers of time. They grow if
	// they shrink from no window to the next, by swells in the last, and by tripled in all: an unstable coupling that something
	// keeps within bounds grows more and more slowly.
	leastTurns      = 3
	tripled, swells = 3, 1.1
	// What does not swing, and swings in a last part, must grow exponentially and by tenfold: the logarithm of each
	// ratio of windows is at least evenly of the mean, and of the last at least lasting of those before. The ranges of powers of
	// time slow down: 3, 1.7, 1.4 and so on.
	tenfold         = 10
	evenly, lasting = 0.5, 0.7
	// Smaller motion than this part of an output is that of rounding and of solvers.
	leastMotion = 1e-6
	// During a run, growth is looked for after firstLook steps, and whenever their number has doubled. It must be strong.
	firstLook = 32
	strong    = 1e3
)

// newGrowth returns a detector for the outputs that feed an input and are in a loop: others do not show how the coupling does.
func newGrowth(s *System) *growth {
	g := &growth{sys: s}
	holds, loops, feeds := s.Holds(), s.feedThemselves(), make([]bool, s.OutAt[len(s.Infos)])
	for u, y := range s.source {
		if y >= 0 && !holds[u] && !feeds[y] && loops[owner(s.OutAt, y)] {
			feeds[y], g.outputs = true, append(g.outputs, y)
		}
	}
	values := make([]float64, mostSpans*4*len(g.outputs))
	part := func() (p []float64) {
		p, values = values[:len(g.outputs)], values[len(g.outputs):]
		return p
	}
	g.spans = make([]extremes, mostSpans)
	for i := range g.spans {
		g.spans[i] = extremes{part(), part(), part(), part()}
	}
	g.spans = g.spans[:0]
	return g
}

// begin starts at time t.
func (g *growth) begin(t float64) { g.from, g.look = t, firstLook }

// see records the outputs y after an accepted macro step to t.
func (g *growth) see(t float64, y []float64) {
	if t > g.until || len(g.spans) == 0 {
		g.extend(t, y)
	}
	s := &g.spans[len(g.spans)-1]
	low, high := s.low, s.high
	for n, k := range g.outputs {
		if v := y[k]; v < low[n] {
			low[n], s.lowAt[n] = v, t
		} else if v > high[n] {
			high[n], s.highAt[n] = v, t
		}
	}
	g.steps, g.now = g.steps+1, t
}

// extend adds spans up to time t, with outputs y.
func (g *growth) extend(t float64, y []float64) {
	const rounding = 1e-6 // of a span; its end belongs to it
	if g.width == 0 {
		g.width = t - g.from
	}
	for t-g.from > (mostSpans+rounding)*g.width {
		g.halve()
	}
	for n := max(int(math.Ceil((t-g.from)/g.width-rounding)), 1); len(g.spans) < n; {
		g.spans = g.spans[:len(g.spans)+1]
		s := &g.spans[len(g.spans)-1]
		for n, k := range g.outputs {
			s.low[n], s.lowAt[n], s.high[n], s.highAt[n] = y[k], t, y[k], t
		}
	}
	g.until = g.from + (float64(len(g.spans))+rounding)*g.width
}

// include extends the extremes of output n by a low and a high value.
func (s *extremes) include(n int, low, lowAt, high, highAt float64) {
	if low < s.low[n] {
		s.low[n], s.lowAt[n] = low, lowAt
	}
	if high > s.high[n] {
		s.high[n], s.highAt[n] = high, highAt
	}
}

// halve makes one span of each two.
func (g *growth) halve() {
	g.width *= 2
	n := (len(g.spans) + 1) / 2
	for i := range n {
		g.spans[i], g.spans[2*i] = g.spans[2*i], g.spans[i]
		if 2*i+1 < len(g.spans) {
			next := &g.spans[2*i+1]
			for k := range next.low {
				g.spans[i].include(k, next.low[k], next.lowAt[k], next.high[k], next.highAt[k])
			}
		}
	}
	g.spans = g.spans[:n]
}

// due reports whether growth is to be looked for during the run.
func (g *growth) due() bool {
	if g.steps < g.look {
		return false
	}
	g.look = 2 * g.steps
	return true
}

// most describes the output that grows most, by at least a factor; nil = none does.
func (g *growth) most(least float64) (most *Growth) {
	for n := range g.outputs {
		if by := g.grows(n, least); by != nil && (most == nil || by.Factor > most.Factor) {
			most = by
		}
	}
	return most
}

// grows describes how output n grows, by at least a factor; nil = it does not.
func (g *growth) grows(n int, least float64) *Growth {
	still := 0 // the spans before the one after which it moves
	for s := g.spans; still+1 < len(s) && s[still+1].low[n] == s[0].low[n] && s[still+1].high[n] == s[0].high[n]; {
		still++
	}
	for part := 1; part <= smallest; part *= 2 {
		length := (len(g.spans) - still) / (windows * part)
		if length < leastSpans {
			break
		}
		window := func(q int) []extremes { return g.spans[len(g.spans)-(windows-q)*length:][:length] }
		if first, _ := g.reach(n, window(0)); least > 0 {
			if last, _ := g.reach(n, window(windows-1)); last < least*first {
				continue // quickly: the run goes on
			}
		}
		var swing, far [windows]float64
		swings, size := true, 0.0
		for q := range windows {
			turns := 0
			far[q], size = g.reach(n, window(q))
			swing[q], turns = g.swing(n, window(q))
			swings = swings && turns >= leastTurns
		}
		factor := 0.0
		switch {
		case far[windows-1] < leastMotion*size:
			return nil
		case swings && (part == 1 && swelling(swing) || exponential(swing)):
			factor = swing[windows-1] / swing[0]
		case !swings && exponential(far):
			factor = far[windows-1] / far[0]
		}
		if factor == 0 || factor < least {
			continue
		}
		doubling := float64((windows-1)*length) * g.width / math.Log2(factor)
		return &Growth{Output: g.sys.OutName(g.outputs[n]), Swings: swings, Factor: factor, Doubling: doubling, Until: g.now}
	}
	return nil
}

// swelling reports whether swings grow, perhaps more and more slowly.
func swelling(s [windows]float64) bool {
	return s[0] > 0 && s[1] >= s[0] && s[2] >= s[1] && s[3] >= swells*s[2] && s[3] >= tripled*s[0]
}

// exponential reports whether sizes grow exponentially.
func exponential(s [windows]float64) bool {
	a, b, c := math.Log(s[1]/s[0]), math.Log(s[2]/s[1]), math.Log(s[3]/s[2])
	return s[3] >= tenfold*s[0] && min(a, b, c) >= evenly*(a+b+c)/3 && c >= lasting*max(a, b)
}

// reach returns how far output n goes in spans, from its lowest value to its highest, and its largest magnitude.
func (g *growth) reach(n int, spans []extremes) (far, size float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range spans {
		low, high = min(low, spans[i].low[n]), max(high, spans[i].high[n])
	}
	return high - low, max(high, -low)
}

// swing returns how far the extremes of output n are from a straight line in spans, as root of the sum of squares, and how
// often they change sides.
func (g *growth) swing(n int, spans []extremes) (size float64, turns int) {
	var at, values [2 * mostSpans / windows]float64 // of the extremes, in the order of time
	points := 0
	add := func(t, v float64) { // what is held shows no trend
		if points == 0 || v != values[points-1] {
			at[points], values[points] = t, v
			points++
		}
	}
	for i := range spans {
		if s := &spans[i]; s.lowAt[n] <= s.highAt[n] {
			add(s.lowAt[n], s.low[n])
			add(s.highAt[n], s.high[n])
		} else {
			add(s.highAt[n], s.high[n])
			add(s.lowAt[n], s.low[n])
		}
	}
	middle, mean, slope, spread := 0.0, 0.0, 0.0, 0.0
	for i := range points {
		middle, mean = middle+at[i]/float64(points), mean+values[i]/float64(points)
	}
	for i := range points {
		slope, spread = slope+(at[i]-middle)*(values[i]-mean), spread+(at[i]-middle)*(at[i]-middle)
	}
	if spread == 0 {
		return 0, 0
	}
	last := 0.0
	for i := range points {
		off := values[i] - mean - slope/spread*(at[i]-middle)
		if size = math.Hypot(size, off); off*last < 0 {
			turns++
		}
		last = off
	}
	return size, turns
}
