package trial

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Kind is what becomes of a small difference between two runs.
type Kind uint8

const (
	Unknown Kind = iota
	Calm         // it dies out, or does not grow
	Grows
)

// Finding is what becomes of a difference at a step size: the factor Radius that multiplies it in each step, or why that is
// unknown.
type Finding struct {
	Step   float64 // s
	Kind   Kind
	Radius float64
	Why    string
	open   bool // more steps may show it
}

const (
	// rounding is the part of an output that is rounding: thousands of steps of 1e-16 each.
	rounding = 1e-12
	// above is how far a difference has to come above rounding to be followed: its shape shows over two decades and a half.
	// atNoise is where it is no more than that: the peaks of noise are some times its root mean square.
	above, atNoise = 300, 10
	// windows are the parts of a run of which the size of a difference is taken: the first third shows what the moved
	// inputs do, and eight points the shape after it.
	windows = 12
	// died is the factor by which a difference that dies out decreases at least: e³.
	died = 20
	// calmFactor is the growth over a third of a long run that counts as none, less than the power 0.6 of time, and the
	// least growth over two thirds that counts. In the third before, doubled is less than that of a time that begins at 0.
	calmFactor, doubled = 1.25, 2
	// grownFactor is the growth over two thirds of a short run that counts: a square of time gives 9.
	grownFactor = 30
	// steady is how alike the growths from window to window have to be: equal if exponential, 0.36 for a power of time.
	steady = 0.7
	// boundedFactor is the growth of a difference before it is level that counts: with less than a decade the motion itself
	// may have risen.
	boundedFactor = 10
	// The steps do not resolve an output if its second difference is more than unresolvedPart of its variation: fewer than
	// 9 steps in the period of a wave. It has to vary by more than hardlyMoves of its size, which no rounding does, and by
	// goesOn of its variation in the third before: else it dies out.
	unresolvedPart, hardlyMoves, goesOn = 0.5, 1e-6, 0.9
	// sameGrowth is how far growths after different kicks may be apart, relative to them, where both are small: an order
	// less than the kicks; sameRadius is the least that counts. sameKicks is the factor within which differences have to
	// be in proportion to the kicks, which are a hundredfold apart.
	sameGrowth, sameRadius, sameKicks = 0.25, 2e-4, 2
)

// trace holds the outputs of a run at the communication points from that at which inputs were moved.
type trace struct {
	y    [][]float64
	held int   // macro steps over which inputs were moved
	err  error // ended it early
}

// weigh returns the inverse sizes of outputs [ny] in which the distance of two runs is taken: that of the difference of each over
// the first half, so that none hides growth in another; 0 = it is within rounding. noise is rounding in that measure.
func weigh(a, b [][]float64) (weights []float64, noise float64) {
	weights = make([]float64, len(a[0]))
	for o := range weights {
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

// apart returns the distance of two runs at each point: the root of the sum of squares over the outputs.
func apart(a, b [][]float64, weights []float64) (e []float64) {
	for n := range min(len(a), len(b)) {
		sum := 0.0
		for o, w := range weights {
			sum = math.Hypot(sum, w*(b[n][o]-a[n][o]))
		}
		e = append(e, sum)
	}
	return e
}

// jagged reports whether an output moves from step to step in the last third, as much as in the third before.
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

// compare judges the differences to a run that one kick makes, or two of different size, the larger one first. Long runs show
// slow growth, too.
func compare(base *trace, moved []*trace, long bool) Finding {
	var found [2]Finding
	var end [2]float64 // of the difference: over the last sixth
	var left [2]bool   // it has not died out by then
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
	for k, m := range moved {
		failed := cmp.Or(base.err, m.err)
		e := apart(base.y[skip:], m.y[skip:], weights)
		if n := len(e); n < windows && n >= 3 && e[n-1] > above*e[0] && e[n-2] > e[0] && e[0] > 0 {
			found[k] = Finding{Kind: Grows, Radius: math.Pow(e[n-1]/e[0], 1/float64(n-1))}
			continue
		} else if n < windows {
			return Finding{Why: failed.Error()}
		}
		peak, first := slices.Max(e), slices.Max(e[:windows])
		if !(peak > above*noise) {
			return Finding{Why: "the differences that moved inputs make are within noise", open: true}
		}
		end[k] = slices.Max(e[len(e)-(len(e)+5)/6:])
		left[k] = end[k] > peak/died
		f := judge(e, noise, long || failed != nil)
		switch found[k] = f; {
		case f.Kind == Grows:
		case failed != nil:
			return Finding{Why: failed.Error()}
		case f.Kind == Unknown:
			return f
		case left[k] && peak > boundedFactor*first:
			return Finding{Why: fmt.Sprintf("differences grow by a factor of %.3g and no more: an unstable coupling that is kept within bounds may do that", peak/first)}
		case base.jagged():
			return Finding{Why: "the motion is not resolved by the steps: it may be that of an unstable coupling that is kept within bounds"}
		}
	}
	ratio := end[0] / end[1] * kicks[1] / kicks[0]
	f := found[len(moved)-1]
	switch a, b := math.Log(found[0].Radius), math.Log(f.Radius); {
	case len(moved) == 1:
	case found[0].Kind != f.Kind:
		return Finding{Why: fmt.Sprintf("differences of %.0e and of %.0e of the inputs do not do the same", kicks[0], kicks[1])}
	case f.Kind == Calm && left[0] && end[1] > atNoise*noise && !(ratio < sameKicks && ratio > 1./sameKicks):
		return Finding{Why: "differences are not in proportion to what made them: the motion has noise, switches, does not forget, or is kept within bounds"}
	case f.Kind == Calm:
		f.Radius = max(f.Radius, found[0].Radius)
	case math.Abs(a-b) > sameGrowth*max(a, b)+sameRadius:
		return Finding{Why: fmt.Sprintf("differences grow by %.6g or by %.6g in a step, depending on their size", found[0].Radius, f.Radius), open: true}
	}
	return f
}

// judge judges a difference by how the logarithm of its root mean square goes from window to window. Growth by little is
// found in long runs only.
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
	factor := func(k, l int) float64 { // by which it grows in a step
		return math.Exp((logs[l] - logs[k]) / float64(l-k) / (float64(len(e)) / windows))
	}
	most := func(n int) float64 { return slices.Max(logs[n*third : (n+1)*third]) } // in a third
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
		Why: fmt.Sprintf("differences grow by a factor of %.3g over two thirds of %d steps, and whether they would go on is not known", math.Exp(grown), len(e))}
}
