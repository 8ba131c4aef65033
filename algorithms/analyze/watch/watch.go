// Package watch looks, while a run goes on, whether an output grows as with an unstable coupling.
package watch

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/master"
)

// Recorder is a recorder that looks, while a run goes on, whether its steps are far beyond what is
// stable. It asks the subsystems for nothing and costs some ns per output and step.
//
// The second difference of an output over the macro steps is small beside the output where steps
// resolve its motion. An unstable coupling multiplies it by the spectral radius in every step, whatever the
// size of what it begins with. So it tells of outputs that feed others whose second difference has
// grown tenfold in each of three windows, no more slowly in the last than before, as
// powers of time do, and has come to a tenth of the output. At the beginning, two windows are enough if it has grown
// four-hundredfold over both, which is by 1.8 in a step in the shortest. What grows by itself in a motion that steps resolve is
// passed over, and so are jumps and contacts, which grow once.
//
// Only steps of one size are compared. Growth that is slower than tenfold in the longest window is not seen.
// After the first steps it looks now and then only: what grows by as little as a thousandth in a step
// has left the numbers in between, which ends the run with the same advice.
type Recorder struct {
	// Warn is told once, while the run goes on; nil = nobody is.
	Warn func(text string)
	// Text is what it was told, "" if nothing.
	Text string

	sys     *master.System
	feeds   []int // entries of y
	windows []window
	last    [2][]float64 // outputs at the last points, newest first
	t, step float64
	points  int // with this step
	// It looks at so many points, and then rests up to a time.
	look, seen int
	rests      bool
	wake       float64
}

// The points that are looked at first and later, and the steps in between.
const (
	firstLook = 2000
	laterLook = 400
	rest      = 200_000
)

// window holds maxima over a number of steps, and those of the windows before.
type window struct {
	steps, taken int
	highest      []float64 // of |y|, by output that feeds another
	bends        [growing + 1][]float64
	full         int
}

const (
	growing    = 3    // ratios of windows
	steep      = 400  // of one less, in all: at the beginning, as a short run has no more
	tenfold    = 10   // each of them at least
	slowing    = 0.5  // by which the last may be smaller than the one before
	unresolved = 0.1  // part of an output that its second difference has where steps do not resolve it
	sameSize   = 1e-6 // of steps, relative
)

// watchedWindows are multiples of the one before.
var watchedWindows = []int{5, 20, 80}

var (
	_ master.Recorder       = (*Recorder)(nil)
	_ master.StabilityJudge = (*Recorder)(nil)
)

// Begin takes the outputs that feed others.
func (w *Recorder) Begin(sys *master.System, _ []master.Port) error {
	w.sys, w.points, w.look = sys, 0, firstLook
	fed := make([]bool, sys.OutAt[len(sys.Infos)])
	holds := sys.Holds()
	for k := range sys.InAt[len(sys.Infos)] {
		if y, ok := sys.Source(k); ok && !holds[k] && !fed[y] {
			fed[y] = true
			w.feeds = append(w.feeds, y)
		}
	}
	n := len(w.feeds)
	w.last = [2][]float64{make([]float64, n), make([]float64, n)}
	for _, steps := range watchedWindows {
		v := window{steps: steps, highest: make([]float64, n)}
		for k := range v.bends {
			v.bends[k] = make([]float64, n)
		}
		w.windows = append(w.windows, v)
	}
	return nil
}

// Record compares a point with the last two.
func (w *Recorder) Record(p *master.Point) error {
	if w.Text != "" || w.rests && p.T < w.wake {
		return nil
	}
	if w.rests {
		w.rests, w.points, w.seen, w.look = false, 0, 0, laterLook
	}
	if w.seen++; w.seen >= w.look && w.points > 1 {
		w.rests, w.wake = true, p.T+rest*w.step
		return nil
	}
	if step := p.T - w.t; w.points < 2 || math.Abs(step-w.step) > sameSize*step {
		if w.points > 1 {
			w.points = 1 // the step has changed
		}
		w.step = step
		for k := range w.windows {
			w.windows[k].forget()
		}
	}
	w.t = p.T
	w.points++
	first := &w.windows[0]
	for n, y := range w.feeds {
		v := p.Y[y]
		bend, size := math.Abs(v-2*w.last[0][n]+w.last[1][n]), math.Abs(v)
		w.last[0][n], w.last[1][n] = v, w.last[0][n]
		if w.points < 3 {
			continue
		}
		if bend > first.bends[0][n] {
			first.bends[0][n] = bend
		}
		if size > first.highest[n] {
			first.highest[n] = size
		}
	}
	if w.points < 3 {
		return nil
	}
	first.taken++
	for k := range w.windows {
		o := &w.windows[k]
		if o.taken < o.steps {
			break
		}
		if n := o.grows(); n >= 0 {
			w.tell(o, n)
			return nil
		}
		if k+1 < len(w.windows) {
			w.windows[k+1].take(o)
		}
		o.next()
	}
	return nil
}

// Unstable returns what Warn was told.
func (w *Recorder) Unstable() string { return w.Text }

// take takes the maxima of a shorter window in.
func (o *window) take(s *window) {
	for n, v := range s.bends[0] {
		o.bends[0][n] = max(o.bends[0][n], v)
		o.highest[n] = max(o.highest[n], s.highest[n])
	}
	o.taken += s.steps
}

// tell says that an output grows.
func (w *Recorder) tell(o *window, n int) {
	factor := math.Pow(o.bends[0][n]/o.bends[1][n], 1/float64(o.steps))
	w.Text = fmt.Sprintf("up to t = %.4g s, %s has grown by %.3g in every macro step of %.4g s, in a motion that the steps do not resolve, as it does where the coupling is unstable: "+
		"take shorter steps or another algorithm (macrostep analyze tells which are stable)", w.t, w.sys.OutName(w.feeds[n]), factor, w.step)
	if w.Warn != nil {
		w.Warn(w.Text)
	}
}

// grows returns an output that does, −1 if none.
func (o *window) grows() int {
	ratios := growing
	if o.full < growing { // the run, or steps of this size, have only just begun
		if ratios = growing - 1; o.full < ratios {
			return -1
		}
	}
	for n, now := range o.bends[0] {
		if !(now >= unresolved*o.highest[n]) || math.IsInf(now, 0) {
			continue
		}
		grown := true
		for k := range ratios {
			grown = grown && o.bends[k+1][n] > 0 && o.bends[k][n] >= tenfold*o.bends[k+1][n]
		}
		if ratios < growing {
			grown = grown && now >= steep*o.bends[ratios][n]
		}
		if grown && now/o.bends[1][n] >= slowing*o.bends[1][n]/o.bends[2][n] {
			return n
		}
	}
	return -1
}

// next begins the next window.
func (o *window) next() {
	oldest := o.bends[growing]
	copy(o.bends[1:], o.bends[:growing])
	o.bends[0] = oldest
	clear(oldest)
	clear(o.highest)
	o.taken = 0
	o.full = min(o.full+1, growing)
}

// forget begins anew.
func (o *window) forget() {
	for _, b := range o.bends {
		clear(b)
	}
	clear(o.highest)
	o.taken, o.full = 0, 0
}

func (w *Recorder) Flush() error              { return nil }
func (w *Recorder) End(_ master.Result) error { return nil }
