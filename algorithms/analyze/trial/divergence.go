package trial

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Kind is the course of a small difference between two runs.
type Kind uint8

const (
	Unknown Kind = iota
	Calm         // it decays, or does not grow
	Grows
)

// Finding is the course of a difference at a step size: the factor Radius per step, or why it is unknown.
type Finding struct {
	Step   float64 // s
	Kind   Kind
	Radius float64
	Why    string
	open   bool // a longer run may decide
}

const (
	// rounding is the relative rounding error of an output after thousands of steps of 1e-16 each.
	rounding = 1e-12
	// above is the least ratio of a difference to rounding: its shape then shows over two and a half decades. Below
	// atNoise times rounding a difference is noise, whose peaks are a few times its root mean square.
	above, atNoise = 300, 10
	// windows is the number of parts of a run in which the size of a difference is taken: the first third shows the
	// effect of the moved inputs, the other eight show the shape.
	windows = 12
	// died is the least decrease of a decaying difference: e³.
	died = 20
	// calmFactor is the largest growth over a third of a long run that counts as none, less than that of time to the
	// power 0.6, and the least growth over two thirds that counts. doubled is the same with the third before, where time
	// starts at 0.
	calmFactor, doubled = 1.25, 2
	// grownFactor is the least growth over two thirds of a short run that counts; a square of time gives 9.
	grownFactor = 30
	// steady is the least ratio of the growths from window to window: 1 if exponential, 0.36 for a power of time.
	steady = 0.7
	// boundedFactor is the least growth before a level part that counts; less may be a rise of the motion itself.
	boundedFactor = 10
	// The steps do not resolve an output if its second difference is more than unresolvedPart of its variation: fewer
	// than 9 steps per period of a wave. The variation must exceed hardlyMoves of the output, which excludes rounding,
	// and goesOn of the variation in the third before, which excludes decay.
	unresolvedPart, hardlyMoves, goesOn = 0.5, 1e-6, 0.9
	// sameGrowth is the largest relative difference of the growths after different kicks, sameRadius the absolute one
	// that never counts. sameKicks is the factor within which differences have to be in proportion to the kicks, which
	// are a hundredfold apart.
	sameGrowth, sameRadius, sameKicks = 0.25, 2e-4, 2
)

// trace holds the outputs of a run at the communication points from the operating point on.
type trace struct {
	y    [][]float64
	held int   // macro steps over which inputs were moved
	err  error // that ended the run early
}

// weigh returns a weight for each output [ny]: the inverse root mean square of its difference over the first half, so
// that no output hides growth of another; 0 = the difference is within rounding, or the output, which then feeds no input,
// is not finite at a point. noise is rounding in this measure.
func weigh(a, b [][]float64) (weights []float64, noise float64) {
	weights = make([]float64, len(a[0]))
	for o := range weights {
		odd := func(y []float64) bool { return y[o]-y[o] != 0 }
		if slices.ContainsFunc(a, odd) || slices.ContainsFunc(b, odd) {
			continue
		}
		own, most := 0.0, 0.0
		for n := range (min(len(a), len(b)) + 1) / 2 {
			own, most = math.Hypot(own, b[n][o]-a[n][o]), max(most, math.Abs(a[n][o]))
		}
		if own /= math.Sqrt(float64(len(a)+1) / 2); own > above*rounding*most {
			weights[o], noise = 1/own, max(noise, rounding*most/own)
		}
	}
	return weights, noise
}

// apart returns the distance of two runs at each point: the root of the weighted sum of squares over the outputs.
func apart(a, b [][]float64, weights []float64) (e []float64) {
	for n := range min(len(a), len(b)) {
		sum := 0.0
		for o, w := range weights {
			if w > 0 {
				sum = math.Hypot(sum, w*(b[n][o]-a[n][o]))
			}
		}
		e = append(e, sum)
	}
	return e
}

// jagged reports whether the steps do not resolve an output in the last third, and its variation does not decay.
func (t *trace) jagged() bool {
	third := len(t.y) / 3
	for o := range t.y[0] {
		var y, bends []float64
		for n, v := range t.y[third:] {
			if y = append(y, v[o]); n >= third {
				bends = append(bends, y[n]-2*y[n-1]+y[n-2])
			}
		}
		moves, before := stat.PopStdDev(y[third:], nil), stat.PopStdDev(y[:third], nil)
		size := max(slices.Max(y), -slices.Min(y))
		if moves > max(hardlyMoves*size, goesOn*before) && stat.PopStdDev(bends, nil) > unresolvedPart*moves {
			return true
		}
	}
	return false
}

// course is the finding for the difference of one kick, with what the comparison of kicks needs.
type course struct {
	Finding
	end  float64 // largest difference in the last sixth of the run
	left bool    // the difference has not decayed by then
}

// compare judges the differences from a run after one kick, or after two, the larger one first. Long runs also show slow
// growth.
func compare(base *trace, moved []*trace, long bool) Finding {
	n := len(base.y)
	for _, m := range moved {
		if n = min(n, len(m.y)); n < 3 {
			return Finding{Why: cmp.Or(base.err, m.err).Error()}
		}
	}
	skip := 1 // the inputs move from there on
	if n > base.held+windows {
		skip += base.held
	}
	weights, noise := weigh(base.y[skip:], moved[0].y[skip:])
	var found []course
	for _, m := range moved {
		c := follow(apart(base.y[skip:], m.y[skip:], weights), noise, cmp.Or(base.err, m.err), long)
		if c.Kind == Unknown {
			return c.Finding
		}
		if c.Kind == Calm && base.jagged() {
			return Finding{Why: "the steps do not resolve the motion: it may be an unstable coupling that is kept within bounds [undecided]"}
		}
		found = append(found, c)
	}
	if len(moved) == 1 {
		return found[0].Finding
	}
	return agree(found[0], found[1], noise)
}

// follow judges the difference e of one kick. failed is why a run ended early, or nil.
func follow(e []float64, noise float64, failed error, long bool) (c course) {
	if n := len(e); n < windows && n >= 3 && e[n-1] > above*e[0] && e[n-2] > e[0] && e[0] > 0 {
		c.Finding = Finding{Kind: Grows, Radius: math.Pow(e[n-1]/e[0], 1/float64(n-1))}
		return c
	} else if n < windows {
		c.Why = failed.Error()
		return c
	}
	peak, first := slices.Max(e), slices.Max(e[:windows])
	if !(peak > above*noise) {
		c.Finding = Finding{Why: "the differences that moved inputs make are within noise [noise]", open: true}
		return c
	}
	c.end = slices.Max(e[len(e)-(len(e)+5)/6:])
	c.left = c.end > peak/died
	switch c.Finding = judge(e, noise, long || failed != nil); {
	case c.Kind == Grows:
	case failed != nil:
		c.Finding = Finding{Why: failed.Error()}
	case c.Kind == Calm && c.left && peak > boundedFactor*first:
		c.Finding = Finding{Why: fmt.Sprintf("differences grow by a factor of %.3g and then stay level: an unstable "+
			"coupling that is kept within bounds may do that [undecided]", peak/first)}
	}
	return c
}

// agree returns the finding that two kicks of different size share.
func agree(large, small course, noise float64) Finding {
	f := small.Finding
	ratio := large.end / small.end * kicks[1] / kicks[0]
	switch a, b := math.Log(large.Radius), math.Log(small.Radius); {
	case large.Kind != small.Kind:
		return Finding{Why: fmt.Sprintf("differences of %.0e and of %.0e of the inputs behave differently [nonlinear]", kicks[0], kicks[1])}
	case f.Kind == Calm && large.left && small.end > atNoise*noise && !(ratio < sameKicks && ratio > 1./sameKicks):
		return Finding{Why: "differences are not in proportion to the moved inputs: the motion has noise, switches, keeps a " +
			"memory, or is kept within bounds [nonlinear]"}
	case f.Kind == Calm:
		f.Radius = max(f.Radius, large.Radius)
	case math.Abs(a-b) > sameGrowth*max(a, b)+sameRadius:
		return Finding{Why: fmt.Sprintf("differences grow by %.6g or by %.6g in a step, depending on their size [nonlinear]",
			large.Radius, small.Radius), open: true}
	}
	return f
}

// judge judges a difference by the logarithm of its root mean square from window to window. Slow growth is found in long
// runs only.
func judge(e []float64, noise float64, long bool) Finding {
	const third = windows / 3
	logs, gone := make([]float64, windows), windows // the window from which on it is noise
	var rates []float64                             // growth from window to window, after the first third
	for k := range logs {
		size := math.Sqrt(stat.MomentAbout(2, e[k*len(e)/windows:(k+1)*len(e)/windows], 0, nil))
		if logs[k] = math.Log(max(size, math.SmallestNonzeroFloat64)); size > atNoise*noise {
			gone = windows
		} else {
			gone = min(gone, k)
		}
		if k > third {
			rates = append(rates, logs[k]-logs[k-1])
		}
	}
	factor := func(k, l int) float64 { // growth per step between windows
		return math.Exp((logs[l] - logs[k]) / float64(l-k) / (float64(len(e)) / windows))
	}
	most := func(n int) float64 { return slices.Max(logs[n*third : (n+1)*third]) } // of a third
	grown, peak := logs[windows-1]-logs[third], slices.Index(logs, slices.Max(logs))
	least, fastest := slices.Min(rates), slices.Max(rates)
	switch {
	case gone <= 3*windows/4 && peak < gone:
		return Finding{Kind: Calm, Radius: factor(peak, gone)}
	case least > 0 && least >= steady*fastest && (grown >= math.Log(grownFactor) || long && grown >= math.Log(calmFactor)):
		return Finding{Kind: Grows, Radius: factor(third, windows-1)}
	case fastest <= 0 && grown <= -math.Log(died),
		long && most(2)-most(1) <= math.Log(calmFactor) && most(1)-most(0) <= math.Log(doubled) && most(2)-most(0) <= math.Log(doubled):
		return Finding{Kind: Calm, Radius: min(1, factor(third, windows-1))}
	}
	return Finding{open: true,
		Why: fmt.Sprintf("differences grow by a factor of %.3g over two thirds of %d steps; whether they would grow further "+
			"is unknown [undecided]", math.Exp(grown), len(e))}
}
