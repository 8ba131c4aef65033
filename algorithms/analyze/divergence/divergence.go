// Package divergence judges what becomes of a small difference between two runs: whether it grows, dies out, or grows to
// the size of the motion and no more.
//
// The run as it is, and one in which something has been moved a little at the first point, are followed as traces; Follow
// judges one such difference, Together those of moves of different size, which have to agree. It knows nothing of systems.
package divergence

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Fate is what becomes of a small difference.
type Fate uint8

const (
	Unknown   Fate = iota
	Calm           // it dies out, or does not grow
	Undecided      // more steps are needed
	Grows
	Bounded // it grows to the size of the motion, and no more
	Lost    // it cannot be told from noise
)

// Finding is what becomes of a difference: the factor Radius by which it is multiplied in each step, or why that is unknown.
type Finding struct {
	Kind   Fate
	Radius float64
	Why    string
	Ends   bool // a stable range ends before it
}

const (
	// roundingOfRuns is the part of an output that is rounding, after thousands of steps of 1e-16 each.
	roundingOfRuns = 1e-12
	// above is how far a difference has to come above noise to be followed: by two decades and a half its shape shows.
	// atNoise is where it is no more than noise: its peaks are some times its root mean square.
	above, atNoise = 300, 10
	// fewestFollowed points are followed at least: four in each third.
	fewestFollowed = 12
	// pursuitWindows are the parts of a run of which the size of a difference is taken: eight in each third, for a line.
	pursuitWindows = 24
	// levelFactor is what a difference may grow by over a third of a run where it counts as level at once, more than that
	// of rounding; calmFactor where it does after the longest run, less than the power 0.6 of time.
	levelFactor, calmFactor = 1.02, 1.25
	// grownFactor is the growth over two thirds of a run that counts as exponential at once: a square of time gives 9.
	grownFactor = 30
	// steady is the part of the growth in the middle third that there has to be in the last one, and the other way round:
	// of what grows exponentially all, of a power of time 0.58. In long runs with growth by doubled in each third, which no
	// power below 1.7 has, steadyLong is enough: ripples take the rest.
	steady, steadyLong, doubled = 0.8, 0.7, 1.8
	// straight is how far the logarithm of what grows may be from a line, relative to its growth, and straighter where it
	// has grown by little: of a power of time it is 0.05, and more where a wave rises.
	straight, straighter = 0.05, 0.025
	// even is how far the growth in both thirds may be apart where the logarithm ripples by up to four times straighter.
	even = 0.1
	// highestPower is the highest power of time that counts as a motion that nothing holds: a square, with some room.
	highestPower = 2.5
	// outOfNumbers ends a difference: its square is still a number.
	outOfNumbers = 1e150
	// boundedFactor is the least growth of a difference that reaches the size of the motion: with less than a decade the
	// motion itself may have risen.
	boundedFactor = 10
	// unresolvedPart is the part of its variation that the second difference of an output over the steps is where these
	// do not resolve it: of a wave, with 9 steps in a period. It has to vary by more than hardlyMoves of its size, which no
	// rounding does, and by goesOn of what it has varied by before: else it dies out.
	unresolvedPart, hardlyMoves, goesOn = 0.5, 1e-6, 0.9
	// died is by what factor a difference has died out that is calm whatever is left of it: e³.
	died = 20
	// sameGrowth is how far growths seen with different kicks may be apart, relative to them, where both are small: an order
	// less than the kicks are; sameKicks by what factor differences may be that are to go with the kicks, a hundredfold apart.
	sameGrowth, sameKicks = 0.25, 2
)

// Trace holds the outputs of a run at the communication points from that at which inputs were moved.
type Trace struct {
	Y    [][]float64
	Size []float64 // of the outputs, about the operating point
	Held int       // macro steps over which inputs were moved
	Err  error     // ended it before its end
}

// Apart returns how far runs are apart at each point [n], as root mean square over the outputs, each in its size.
func (t *Trace) Apart(other *Trace) []float64 {
	e := make([]float64, min(len(t.Y), len(other.Y)))
	for n := range e {
		for o, v := range t.Y[n] {
			d := (other.Y[n][o] - v) / t.Size[o]
			e[n] += d * d
		}
		e[n] = math.Sqrt(e[n] / float64(len(t.Y[n])))
	}
	return e
}

// evenly is Apart from point skip on, with each output in the size that its difference has over the first half of these points,
// so that growth in some is not hidden by others; those within noise there are left out. The noise is taken along.
func (t *Trace) evenly(other *Trace, skip int, noise []float64) (e, least []float64) {
	n := min(len(t.Y), len(other.Y)) - skip
	if n <= 1 {
		return nil, nil
	}
	e, least = make([]float64, n), make([]float64, n)
	half, counted := (n+1)/2, 0.0
	for o, typical := range t.Size {
		off := func(k int) float64 { return (other.Y[skip+k][o] - t.Y[skip+k][o]) / typical }
		sum := 0.0
		for k := range half {
			sum += off(k) * off(k) / float64(half)
		}
		size := math.Sqrt(sum)
		if !(size > above*slices.Max(noise[skip:skip+half])) || math.IsInf(size, 0) {
			continue
		}
		counted++
		for k := range n {
			e[k] += off(k) / size * off(k) / size
			least[k] = max(least[k], noise[skip+k]/size)
		}
	}
	if counted == 0 {
		return nil, nil
	}
	for k := range e {
		e[k] = math.Sqrt(e[k] / counted)
	}
	return e, least
}

// noise returns what of a difference may be noise, at each point [n]: floor, and rounding of outputs that are as large as
// they have been up to there.
func (t *Trace) noise(floor float64) []float64 {
	out, most := make([]float64, len(t.Y)), 1.0
	for n, y := range t.Y {
		for o, v := range y {
			most = max(most, math.Abs(v)/t.Size[o])
		}
		out[n] = max(floor, roundingOfRuns*most)
	}
	return out
}

// jagged reports whether an output moves from step to step in the last third, and goes on to as in the third before.
func (t *Trace) jagged() bool {
	third := len(t.Y) / 3
	if third < fewestFollowed {
		return false
	}
	variation := func(y [][]float64, o int) (moves, bends float64) { // root mean squares
		n, mean := float64(len(y)), 0.0
		for _, v := range y {
			mean += v[o] / n
		}
		for k, v := range y {
			moves += (v[o] - mean) * (v[o] - mean) / n
			if k >= 2 {
				bend := v[o] - 2*y[k-1][o] + y[k-2][o]
				bends += bend * bend / n
			}
		}
		return math.Sqrt(moves), math.Sqrt(bends)
	}
	for o := range t.Size {
		before, _ := variation(t.Y[third:2*third], o)
		if moves, bends := variation(t.Y[2*third:], o); moves > hardlyMoves*t.Size[o] && moves > goesOn*before && bends > unresolvedPart*moves {
			return true
		}
	}
	return false
}

// Pursuit is what becomes of the difference that a kick makes.
type Pursuit struct {
	kick float64
	Finding
	peak, end float64 // of the difference, the end being the last sixth
	gone      bool    // it is noise in the end
}

// Follow judges the difference of two runs, of which moved has been moved by kick of the size of inputs; floor is the part of
// the outputs by which runs that are alike differ. Long runs show slow growth, too.
func Follow(base, moved *Trace, kick, floor float64, long bool) Pursuit {
	c := Pursuit{kick: kick}
	e, noise := base.Apart(moved), base.noise(floor)
	skip := base.Held + 1
	if len(e) < skip+fewestFollowed {
		skip = min(1, len(e)) // the inputs move from there on
	}
	e, noise = e[skip:], noise[skip:]
	failed := base.Err
	if failed == nil {
		failed = moved.Err
	}
	if n := slices.IndexFunc(e, func(v float64) bool { return !(v < outOfNumbers) }); n >= 0 {
		if e = e[:n]; failed == nil {
			failed = errors.New("the coupled run leaves the numbers")
		}
	}
	seen := false
	for n, v := range e {
		seen = seen || v > above*noise[n]
		c.peak = max(c.peak, v)
		if n >= len(e)-(len(e)+5)/6 {
			c.end, c.gone = max(c.end, v), v <= atNoise*noise[n]
		}
	}
	switch {
	case len(e) < fewestFollowed && failed != nil:
		c.Why, c.Ends = failed.Error(), true
		if n := len(e); n >= 3 && e[n-1] > above*e[0] && e[n-2] > e[0] && e[0] > 0 {
			c.Finding = Finding{Kind: Grows, Radius: math.Pow(e[n-1]/e[0], 1/float64(n-1))}
		}
		return c
	case !seen:
		c.Kind = Lost
		return c
	}
	// Where each output in its own size is within noise in the beginning, all together are not.
	shape, least := base.evenly(moved, skip, base.noise(floor))
	if shape = shape[:min(len(shape), len(e))]; len(shape) < fewestFollowed {
		shape, least = e, noise
	}
	c.Finding = judge(shape, least, long || failed != nil)
	left := !c.gone && c.end > c.peak/died
	switch {
	case failed != nil && c.Kind != Grows:
		c.Finding = Finding{Why: failed.Error(), Ends: true}
	case c.Kind == Calm && !long && failed == nil && left: // it has hardly begun to
		c.Finding = Finding{Kind: Undecided}
	case c.Kind == Calm && base.jagged():
		c.Finding = Finding{Why: "the motion is not resolved by the steps: it may be that of an unstable coupling that is kept within bounds", Ends: true}
	case long && c.Kind != Grows && c.end > c.peak/died: // it may have grown until it was as large as the motion
		most := slices.Max(shape)
		n := slices.IndexFunc(shape, func(v float64) bool { return v >= most/3 })
		if n < fewestFollowed {
			break
		}
		if f := judge(shape[:n], least, true); f.Kind == Grows && math.Pow(f.Radius, float64(n)) >= boundedFactor {
			c.Finding = Finding{Kind: Bounded, Radius: f.Radius}
		}
	}
	return c
}

// judge judges a difference by what its size does: root mean squares over windows, to whose logarithm lines are fitted, in
// the middle third of the run, in the last, and in both. Growth by little is found in long runs only.
func judge(e, noise []float64, long bool) Finding {
	w := min(pursuitWindows, len(e))
	logs, at, times := make([]float64, w), make([]float64, w), make([]float64, w)
	gone := w // first window from which on it is noise
	for k := range w {
		from, to := k*len(e)/w, (k+1)*len(e)/w
		sum := 0.0
		for _, v := range e[from:to] {
			sum += v * v
		}
		size, least := math.Sqrt(sum/float64(to-from)), noise[to-1]
		at[k] = 0.5 * float64(from+to)
		logs[k], times[k] = math.Log(max(size, least)), math.Log(at[k])
		if size > atNoise*least {
			gone = w
		} else if gone == w {
			gone = k
		}
	}
	if gone < w-w/4 {
		first := 0
		for k := range gone {
			if logs[k] > logs[first] {
				first = k
			}
		}
		last := max(gone, first+1)
		return Finding{Kind: Calm, Radius: min(1, math.Exp((logs[last]-logs[first])/(at[last]-at[first])))}
	}
	third := float64(len(e)) / 3
	middle, _ := line(at[w/3:2*w/3], logs[w/3:2*w/3])
	last, _ := line(at[2*w/3:], logs[2*w/3:])
	overall, off := line(at[w/3:], logs[w/3:])
	power, offPower := line(times[w/3:], logs[w/3:])
	first, second := middle*third, last*third // logarithms of the growth over each third
	steadily := last >= steady*middle && middle >= steady*last
	risen := slices.Max(logs[2*w/3:])-slices.Max(logs[:w/3]) > math.Ln2
	switch grown := overall * 2 * third; {
	case math.IsNaN(overall):
		return Finding{Why: "the differences are not finite"}
	case steadily && grown >= math.Log(grownFactor) && off <= straight*grown:
		return Finding{Kind: Grows, Radius: math.Exp(overall)}
	case second <= math.Log(levelFactor) && first <= math.Log(calmFactor) && !risen:
		return Finding{Kind: Calm, Radius: min(1, math.Exp(overall))}
	case !long:
		return Finding{Kind: Undecided, Why: "more steps are needed"}
	case second <= math.Log(calmFactor) && first <= math.Ln2 && !risen:
		return Finding{Kind: Calm, Radius: min(1, math.Exp(overall))}
	case power > 0 && power <= highestPower && offPower <= straighter*power*math.Log(3):
		return Finding{Kind: Calm, Radius: 1} // by a power of time, as of what nothing holds
	case min(last, middle) >= steadyLong*max(last, middle) && min(first, second) >= math.Log(doubled),
		steadily && grown >= math.Log(calmFactor) && (off <= straighter*grown || off <= 4*straighter*grown && math.Abs(last-middle) <= even*middle):
		return Finding{Kind: Grows, Radius: math.Exp(overall)}
	}
	return Finding{Kind: Undecided, Why: fmt.Sprintf("differences grow by %.3g over a third of %d steps and by %.3g over the next, and whether they would go on is not seen", math.Exp(first), len(e), math.Exp(second))}
}

// Least returns the growth in a step below which a difference that is followed over n steps is not told from none.
func Least(n int) float64 { return math.Log(calmFactor) / (float64(n) / 3) }

// line fits one by least squares, and returns its slope and the root mean square of the distances from it.
func line(x, y []float64) (slope, off float64) {
	n, mx, my := float64(len(x)), 0.0, 0.0
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 {
		return 0, 0
	}
	return xy / xx, math.Sqrt(max(0, yy-xy*xy/xx) / n)
}

// Together judges pursuits of different kicks: done once two agree, or the last contradicts one before.
func Together(seen []Pursuit) (Finding, bool) {
	b := seen[len(seen)-1]
	switch b.Kind {
	case Lost:
		return Finding{}, false
	case Unknown:
		return b.Finding, true
	}
	for _, a := range seen[:len(seen)-1] {
		larger, smaller := a, b
		if a.kick < b.kick {
			larger, smaller = b, a
		}
		switch {
		case a.Kind == Lost:
			continue
		case a.Kind != b.Kind && a.Kind != Calm && b.Kind != Calm: // one was too large to be seen growing on
			return Finding{Kind: Bounded, Radius: max(a.Radius, b.Radius)}, true
		case a.Kind != b.Kind:
			return Finding{Why: fmt.Sprintf("what becomes of differences depends on their size: those of %.0e and of %.0e of the inputs do not do the same", a.kick, b.kick)}, true
		case a.Kind == Calm:
			ratio := larger.end * smaller.kick / (larger.kick * smaller.end)
			if larger.end > larger.peak/died && !smaller.gone && !(ratio < sameKicks && ratio > 1./sameKicks) {
				return Finding{Why: "what is left of differences does not go with their size: the motion switches, or does not forget"}, true
			}
			return Finding{Kind: Calm, Radius: max(larger.Radius, min(smaller.Radius, 1))}, true
		}
		if la, lb := math.Log(a.Radius), math.Log(b.Radius); math.Abs(la-lb) > sameGrowth*max(la, lb)+2e-4 {
			return Finding{Kind: Undecided, Why: fmt.Sprintf("differences grow by %.6g or by %.6g in a step, depending on their size", larger.Radius, smaller.Radius)}, true
		}
		return Finding{Kind: b.Kind, Radius: smaller.Radius}, true
	}
	return Finding{}, false
}
