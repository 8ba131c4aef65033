package master

import "math"

// grid is the sequence of communication points t0 + i·H, never a running sum.
type grid struct {
	start, stop, step float64
	whole             int  // number of whole steps
	rest              bool // a shorter step ends at stop
	meets             bool // the last whole step ends at stop, up to rounding
}

func newGrid(start, stop, step float64) grid {
	g := grid{start: start, stop: stop, step: step}
	// Large times are rounded by more than the tolerance.
	tolerance := max(gridTolerance, g.rounding()/step)
	g.whole = int(math.Floor((stop-start)/step + tolerance))
	last := g.at(g.whole)
	g.rest = stop-last > tolerance*step
	g.meets = math.Abs(stop-last) <= g.rounding()
	return g
}

// at returns communication point i. The last one is stop itself. The conversion rounds the product, so
// that every platform gives the same bits.
func (g *grid) at(i int) float64 {
	if i > g.whole || i == g.whole && g.meets {
		return g.stop
	}
	return g.start + float64(float64(i)*g.step)
}

// size returns the size of the step from communication point i. It is the same number for all whole steps,
// because the difference of two points varies in its last bit, and some FMUs compare exactly (fmi2 49).
func (g *grid) size(i int) float64 {
	if i < g.whole {
		return g.step
	}
	return g.stop - g.at(i)
}

// rounding returns a bound for the rounding errors of communication points.
func (g *grid) rounding() float64 { return max(rounding(g.start), rounding(g.stop)) }

// bounded reports whether no step ends after stop, even by rounding.
func (g *grid) bounded() bool {
	last := g.points() - 1
	return g.at(last)+g.size(last) <= g.stop
}

func (g *grid) points() int {
	if g.rest {
		return g.whole + 1
	}
	return g.whole
}

// timeline is the present time of a run and the size of its next macro step.
type timeline struct {
	grid grid
	moment
}

// moment is the state of a timeline.
type moment struct {
	onGrid   int     // grid points reached
	t        float64 // s, the last accepted communication point
	lost     float64 // rounding error of t, if the steps vary
	want     float64 // size of the next macro step, if the algorithm chooses it; else 0
	intended float64 // size of the present step including lost; 0 = it was clipped
	clipped  bool    // steps were clipped to end at the stop time
}

// target returns the end of the next macro step and its size. If the algorithm chooses the size, the step
// does not go beyond until.
func (l *timeline) target(until float64) (end, H float64) {
	if l.want == 0 {
		end = l.grid.at(l.onGrid + 1)
		if l.t == l.grid.at(l.onGrid) {
			return end, l.grid.size(l.onGrid)
		}
		return end, end - l.t // the rest of a step that was shortened
	}
	left := until - l.t
	l.intended = 0
	l.clipped = l.clipped || left < 2*l.want && until == l.grid.stop
	switch {
	case left <= l.want*(1+stretch): // rather than a sliver at the end
		end = until
	case left < 2*l.want:
		end = l.t + left/2
	default:
		l.intended = l.want + l.lost
		end = l.t + l.intended
	}
	return end, end - l.t
}

// stretch is the fraction by which the last step may be longer than wanted.
const stretch = 1e-3

// reach makes the time reached by a step of size H the present one; whole: it is the target of the step.
// next is the size of the next step wanted by the algorithm; 0 = the same.
func (l *timeline) reach(reached, H float64, whole bool, next float64) {
	if l.want > 0 {
		if next == 0 {
			next = l.want
		}
		// A clipped step does not reduce the size of later ones.
		if whole && H < l.want && next >= H {
			next = max(next, l.want)
		}
		l.lost = 0
		if whole && l.intended > 0 {
			l.lost = l.intended - (reached - l.t)
		}
		l.want = next
	} else if whole {
		l.onGrid++
	}
	l.t = reached
}

// atEnd reports whether the run has come to its end.
func (l *timeline) atEnd() bool {
	if l.want > 0 {
		return l.t == l.grid.stop
	}
	return l.onGrid == l.grid.points()
}
