// Package watch detects during a run that an output grows as with an unstable coupling.
package watch

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/master"
)

// Recorder warns during a run if macro steps are far too large to be stable. It calls no subsystem and costs a few ns per
// output and step.
//
// Where steps resolve the motion of an output, its second difference over the macro steps is much smaller than the output.
// An unstable coupling multiplies the second difference by the spectral radius in every step. The recorder warns of an
// output that feeds an input if its second difference has reached a tenth of the output after it has grown tenfold in each
// of three windows, in the last not more slowly than before (powers of time slow down). At the beginning of a run two
// windows suffice if the growth over both is four-hundredfold, 1.8 per step in the shortest windows. Growth that steps
// resolve is ignored, and so are jumps and contacts, which grow once.
//
// Only steps of one size are compared. Growth slower than tenfold in the longest window is not seen.
// After the first steps the recorder rests most of the time: growth by a thousandth per step overflows during a rest, which
// ends the run with the same advice.
type Recorder struct {
	// Warn is called at most once, during the run; may be nil.
	Warn func(text string)
	// Text is the warning, "" = none.
	Text string

	sys   *master.System
	feeds []int // entries of y
	state
}

// state is the state of a Recorder.
type state struct {
	windows []window
	last    [2][]float64 // outputs at the last points, newest first
	t, step float64
	points  int // with this step
	// After look points, of which seen have passed, it rests until wake (s).
	look, seen int
	rests      bool
	wake       float64
}

// The points compared at first, and after each rest, and the steps of a rest.
const (
	firstLook = 2000
	laterLook = 400
	rest      = 200_000
)

// window holds maxima over a number of steps, and those of earlier windows.
type window struct {
	steps, taken int
	highest      []float64 // of |y|, by output that feeds another
	bends        [growing + 1][]float64
	full         int
}

const (
	growing    = 3    // ratios of windows
	steep      = 400  // growth over growing-1 windows that suffices at the beginning
	tenfold    = 10   // least growth from window to window
	slowing    = 0.5  // least ratio of the last growth to the one before
	unresolved = 0.1  // least ratio of second difference to output
	sameSize   = 1e-6 // relative tolerance of equal steps
)

// watchedWindows are the lengths of the windows in steps, each a multiple of the one before.
var watchedWindows = []int{5, 20, 80}

var (
	_ master.RecorderArchiver = (*Recorder)(nil)
	_ master.StabilityJudge   = (*Recorder)(nil)
)

// Begin selects the outputs that feed Real inputs which are not held.
func (w *Recorder) Begin(sys *master.System, _ []master.Port) error {
	w.sys = sys
	fed := make([]bool, sys.OutAt[len(sys.Infos)])
	holds := sys.Holds()
	for k := range sys.InAt[len(sys.Infos)] {
		if y, ok := sys.Source(k); ok && !holds[k] && !fed[y] {
			fed[y] = true
			w.feeds = append(w.feeds, y)
		}
	}
	n := len(w.feeds)
	if w.look > 0 && len(w.last[0]) == n {
		return nil // the run is resumed
	}
	w.look = firstLook
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

// ArchiveName returns the name of the recorder in archives.
func (w *Recorder) ArchiveName() string { return "stability" }

// Archive carries the windows so far, and the warning.
func (w *Recorder) Archive(a *master.Archive) { a.All(&w.Text, &w.state) }

// Unstable returns the warning, or "".
func (w *Recorder) Unstable() string { return w.Text }

// take includes the maxima of a shorter window.
func (o *window) take(s *window) {
	for n, v := range s.bends[0] {
		o.bends[0][n] = max(o.bends[0][n], v)
		o.highest[n] = max(o.highest[n], s.highest[n])
	}
	o.taken += s.steps
}

// tell warns that an output grows.
func (w *Recorder) tell(o *window, n int) {
	factor := math.Pow(o.bends[0][n]/o.bends[1][n], 1/float64(o.steps))
	w.Text = fmt.Sprintf("up to t = %.4g s, %s has grown by %.3g in every macro step of %.4g s, and the steps do not "+
		"resolve the motion: the coupling is probably unstable; "+
		"take shorter steps or another algorithm (macrostep analyze finds stable ones)", w.t, w.sys.OutName(w.feeds[n]), factor, w.step)
	if w.Warn != nil {
		w.Warn(w.Text)
	}
}

// grows returns the index of an output that grows, −1 = none.
func (o *window) grows() int {
	ratios := growing
	if o.full < growing { // the run, or its current step size, has only begun
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

// next starts the next window.
func (o *window) next() {
	oldest := o.bends[growing]
	copy(o.bends[1:], o.bends[:growing])
	o.bends[0] = oldest
	clear(oldest)
	clear(o.highest)
	o.taken = 0
	o.full = min(o.full+1, growing)
}

// forget discards all windows.
func (o *window) forget() {
	for _, b := range o.bends {
		clear(b)
	}
	clear(o.highest)
	o.taken, o.full = 0, 0
}

func (w *Recorder) Flush() error              { return nil }
func (w *Recorder) End(_ master.Result) error { return nil }
