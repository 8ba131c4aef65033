package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/master"
)

// Plan is a run whose error is measured, and how to repeat it.
type Plan struct {
	Setting
	Samples *Samples // of the run
	Reverts bool     // all subsystems can roll back
	Serial  bool     // as many instances at a time as the run has
	// Begin starts a run of new instances with a setting, and with hooks beside those of the run; its points go to the recorder. The second result
	// frees them.
	Begin    func(context.Context, Setting, master.Recorder, ...master.Hook) (*master.Run, func() error, error)
	Progress func(text string) // may be nil
	Seconds  float64           // wall time of the run
	Deadline time.Time         // of measuring; zero = none
}

// Bar is the measured error of a run.
type Bar struct {
	Distances []Distance // of the run from the reference
	Worst     float64    // relative distance
	At        int        // the variable that it is of; -1 = no output that feeds an input moves
	// AtMost means that the reference is not much better than that.
	AtMost bool
	// Undetermined means that noise or chaos separate trajectories, from Determined on.
	Undetermined bool
	Determined   float64 // s
	Reference    Setting
	Grows        *master.Growth // what grows in the reference; nil = nothing
	Until        float64        // s, end of the part that was compared
	Partial      bool           // it is not the whole run
	Runs         int
	Err          error // why there is no reference
}

// ErrDiffers means that a repetition of the run with the same settings gives other results.
var ErrDiffers = errors.New("the system does not repeat itself")

// ErrUncoupled means that no output feeds an input: there is no coupling error.
var ErrUncoupled = errors.New("no output feeds an input")

// fewest is the least number of points that are compared, whole the part of the time that may be missing at the end.
const (
	fewest = 5
	whole  = 0.01
)

// rungs are the parts of the step of the run with which references are run, coarse to fine; checked is the number of those for the error
// of one run. FMUs with steps of their own often have decimal ones.
var rungs = []float64{2, 5, 10, 20, 50, 100, 200}

const checked = 4

// A reference is certain if it changes from one rung to the next by at most certain, relative to the error of the run. Two agree if
// one is certain to weakly, relative to the motion, and its error is at most alike times that of the other. Noise and chaos are
// looked for in errors above weakly.
const (
	certain = 0.5
	weakly  = 0.02
	alike   = 2.5
)

// reference is a scheme with which the run is compared, at two rungs or more.
type reference struct {
	at      func(part float64) Setting
	own     bool      // it is the scheme of the run
	courses []*course // by rung
	// The finest two courses that were run to the end are compared.
	n          int // samples that are compared; an event may end finer runs a little earlier
	fine       *course
	bar, moved []Distance // of the run, and of the coarser one, from the finer one; nil = it failed
	worst      float64    // of bar
	worstAt    int
	change     float64 // the largest of moved; +Inf = they cannot be compared
	doubt      float64 // what the worst variable moves by, relative to its error; likewise
	idle       bool    // a smaller step changes nothing, as where FMUs have steps of their own
}

type meter struct {
	*Plan
	calls      sync.Mutex // held outside of calls of subsystems
	courses    []*course
	keep       bool // the points of references
	references []*reference
}

// Measure measures the error of the run: it repeats it once with the same settings, which must give the same results to the bit, and
// compares it with runs of other schemes with smaller steps. A scheme is a reference if it changes from one step to a smaller one by
// at most half of the error; its own scheme is one only if another agrees. Where none is, steps become smaller still, and at last
// the bar is an upper bound. If it ends early, by context or budget, the bar is for the part that was reached.
func (p *Plan) Measure(ctx context.Context) (*Bar, error) {
	m := &meter{Plan: p}
	m.calls.Lock()
	defer func() {
		for _, c := range m.courses {
			m.end(c)
		}
	}()
	return m.measure(ctx)
}

func (m *meter) measure(ctx context.Context) (*Bar, error) {
	if !m.Samples.coupled() {
		return nil, ErrUncoupled
	}
	if len(m.Samples.T) < fewest {
		return nil, fmt.Errorf("the run has fewer than %d points", fewest)
	}
	again := &course{Setting: m.Setting, samples: &Samples{Start: m.Samples.Start, Stop: m.Samples.Stop}}
	m.references = m.schemes()
	all := m.references
	first := m.refine(all[0])
	stopped := m.advance(ctx, append([]*course{again}, first...)...)
	if again.err != nil {
		return nil, fmt.Errorf("a repetition of the run fails: %w", again.err)
	}
	if again.samples.variables != nil && !slices.Equal(again.samples.variables, m.Samples.variables) {
		return nil, errors.New("a repetition of the run has other variables: a program has opened its system otherwise")
	}
	n := min(len(m.Samples.T), len(again.samples.T))
	if stopped != nil {
		n = min(n, len(first[0].samples.T), len(first[1].samples.T))
	}
	if n < fewest {
		return nil, stopped
	}
	if differs := Same(m.Samples, again.samples, n); differs != "" {
		return nil, fmt.Errorf("%w: a second run with the same settings differs first in %s", ErrDiffers, differs)
	}
	all[0].compare(m.Samples, n)
	_, tried := m.mean() // a run nearby, which shows nothing where the algorithm chooses the steps
	scatters := false
	for stopped == nil && !settled(all) {
		r := next(all)
		switch {
		case scatters: // unless it is the algorithm of the run only, and a reference converges
			b := best(all)
			if len(b.courses) == checked {
				return m.result(all, false), nil
			}
			before := b.change
			if stopped = m.advance(ctx, m.refine(b)...); stopped != nil {
				continue
			}
			if b.compare(m.Samples, n); !(b.change <= converges*before) {
				return m.result(all, true), nil
			}
		case r != nil && len(r.courses) > 0 && !tried: // no reference at the first rungs
			tried = true
			near := m.course(m.tightened(nearby))
			if stopped = m.advance(ctx, near); stopped == nil && near.err == nil && len(near.samples.T) >= fewest {
				worst, _ := m.Samples.Worst(Apart(m.Samples, near.samples, min(n, len(near.samples.T))))
				scatters = best(all).worst > weakly && worst >= certain*best(all).worst
			}
		case r == nil:
			return m.result(all, false), nil
		default:
			if stopped = m.advance(ctx, m.refine(r)...); stopped == nil {
				r.compare(m.Samples, n)
			}
		}
	}
	return m.result(all, scatters && stopped != nil), nil
}

// converges is the largest ratio of the changes of a reference that converges, from one rung to the next.
const converges = 0.6

// nearby is the part of the step of the run for a run that differs from it as much as a finer one where noise or chaos separate
// trajectories.
const nearby = 1 / 0.97

// course returns a course that is sampled where the run is.
func (m *meter) course(s Setting) *course {
	c := &course{Setting: s, samples: &Samples{Start: m.Samples.Start, Stop: m.Samples.Stop, At: func() []float64 { return m.Samples.T }}}
	if m.keep {
		c.points = m.own()
	}
	return c
}

// own returns samples at own points of a run.
func (m *meter) own() *Samples { return &Samples{Start: m.Samples.Start, Stop: m.Samples.Stop} }

// refine adds the course of the next rung, two at first.
func (m *meter) refine(r *reference) (added []*course) {
	for len(added) == 0 || len(r.courses) < 2 {
		c := m.course(r.at(rungs[len(r.courses)]))
		added, r.courses = append(added, c), append(r.courses, c)
	}
	return added
}

// schemes returns the references to compare with, the best first: each at least as good as the run.
func (m *meter) schemes() []*reference {
	order, err := strconv.Atoi(m.Params["order"])
	switch {
	case m.Params["order"] != "" && err != nil: // it varies
		order = usualOrder
	case m.Preset == "model-based-corrector":
		order++
	}
	mean, varies := m.mean()
	fixed := func(preset string, order int) *reference {
		return &reference{own: preset == m.Preset, doubt: math.Inf(1), worst: math.Inf(1), at: func(part float64) Setting {
			return Setting{preset, map[string]string{"order": strconv.Itoa(order)}, decimal(mean / part), nil}
		}}
	}
	own := &reference{own: true, doubt: math.Inf(1), worst: math.Inf(1), at: m.tightened}
	var out []*reference
	if varies {
		out = append(out, own)
	}
	if m.Reverts {
		out = append(out, fixed("implicit", max(order, 1)))
	}
	if m.Preset != "gauss-seidel" {
		out = append(out, fixed("gauss-seidel", order))
	}
	if m.Preset == "gauss-seidel" || !varies && !m.Reverts && m.Preset != "explicit" {
		out = append(out, fixed("explicit", order))
	}
	if !varies && !m.Reverts {
		out = append(out, own)
	}
	return out
}

// mean returns the mean step of the run, in s, and whether the algorithm has chosen its steps.
func (m *meter) mean() (mean float64, chosen bool) {
	s := &m.Samples.steps
	if mean = (s.at - m.Samples.Start) / float64(s.n-1); s.vary() || math.Abs(mean-m.Step) > same*m.Step {
		return mean, true
	}
	return m.Step, false
}

// usualOrder is the order of references for runs of variable order.
const usualOrder = 2

// tightened returns the setting of the run with a part of its step.
func (m *meter) tightened(part float64) Setting { return m.scaled(m.Setting, part) }

// scaled returns a setting with a part of its step, and of the square of its tolerances.
func (m *meter) scaled(s Setting, part float64) Setting {
	_, varies := m.mean()
	varies = varies && s.Preset == m.Preset
	s.Params, s.Step = maps.Clone(s.Params), decimal(s.Step/part)
	for name, text := range s.Params {
		switch {
		case tolerance(name) && s.Chooses():
			s.Params[name] = scaled(text, 1/(part*part))
		case name == "control.h-max" && text == "auto" && varies:
			s.Params[name] = strconv.FormatFloat(m.Samples.steps.longest/part, 'g', 6, 64)
		case name == "control.h0", name == "control.h-max", name == "control.h-min" && part > 1:
			s.Params[name] = scaled(text, 1/part)
		}
	}
	return s
}

// decimal returns a number without the last digits, in which rounding errors are.
func decimal(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	return v
}

// tolerance reports whether a parameter is a tolerance of variable steps.
func tolerance(name string) bool {
	return name == "control.rtol" || name == "control.atol" || name == "pc.tolerance" || name == "ecco.tolerance"
}

// scaled multiplies the numbers in a list such as "a.x:1e-3,1e-4".
func scaled(list string, by float64) string {
	items := strings.Split(list, ",")
	for i, item := range items {
		name, number, named := strings.Cut(item, ":")
		if !named {
			name, number = "", item
		} else {
			name += ":"
		}
		if v, err := strconv.ParseFloat(number, 64); err == nil {
			items[i] = name + strconv.FormatFloat(v*by, 'g', 6, 64)
		}
	}
	return strings.Join(items, ",")
}

// compare compares the run, over its first n samples, with the finest two courses.
func (r *reference) compare(run *Samples, n int) {
	fine, coarse := r.courses[len(r.courses)-1], r.courses[len(r.courses)-2]
	r.fine, r.bar, r.moved, r.worst, r.worstAt, r.change, r.doubt = fine, nil, nil, math.Inf(1), -1, math.Inf(1), math.Inf(1)
	if r.n = min(n, len(fine.samples.T)); fine.err != nil || r.n < fewest {
		return
	}
	if coarse.err == nil {
		r.n = min(r.n, max(len(coarse.samples.T), fewest))
	}
	r.bar = Apart(run, fine.samples, r.n)
	if r.worst, r.worstAt = run.Worst(r.bar); coarse.err != nil || len(coarse.samples.T) < r.n {
		return
	}
	r.moved = Apart(coarse.samples, fine.samples, r.n)
	at := -1
	r.change, at = run.Worst(r.moved)
	r.idle = at >= 0 && r.change == 0
	if r.doubt = 0; r.worstAt >= 0 && r.moved[r.worstAt].Relative > 0 {
		r.doubt = r.moved[r.worstAt].Relative / r.worst
	}
}

// best returns the reference with the least doubt, one that is not the scheme of the run if it is certain.
func best(all []*reference) *reference {
	out := all[0]
	for _, r := range all[1:] {
		if r.doubt < out.doubt && !(out.doubt <= certain && !out.own) {
			out = r
		}
	}
	return out
}

// settled reports whether there is a reference.
func settled(all []*reference) bool {
	b := best(all)
	if b.doubt > certain {
		return false
	}
	return !b.own && !b.idle || confirmed(b, all)
}

// confirmed reports whether another reference agrees.
func confirmed(b *reference, all []*reference) bool {
	for _, r := range all {
		if r == b || r.own && b.own || r.moved == nil {
			continue
		}
		if b.worstAt < 0 {
			return true
		}
		moved := r.moved[b.worstAt].Relative
		if moved <= max(weakly, certain*b.worst) && r.bar[b.worstAt].Relative <= alike*b.worst+moved {
			return true
		}
	}
	return false
}

// next returns the reference to refine: one that was not tried, or else the best; nil if that is at the last rung.
func next(all []*reference) *reference {
	for _, r := range all {
		if len(r.courses) == 0 {
			return r
		}
	}
	if b := best(all); len(b.courses) < checked {
		return b
	}
	return nil
}

// result returns the bar.
func (m *meter) result(all []*reference, scatters bool) *Bar {
	b := best(all)
	out := &Bar{Distances: b.bar, Worst: b.worst, At: b.worstAt, Undetermined: scatters, Runs: len(m.courses)}
	if b.bar == nil {
		for _, c := range m.courses {
			out.Err = cmp.Or(out.Err, c.err)
		}
		out.Err = cmp.Or(out.Err, errors.New("no reference was run to its end"))
		return out
	}
	m.end(b.fine)
	out.Reference, out.Grows, out.Until = b.fine.Setting, b.fine.grows, m.Samples.T[b.n-1]
	end := m.Samples.T[len(m.Samples.T)-1]
	out.Partial = out.Until < end-whole*(end-m.Samples.Start)
	if scatters && b.worstAt >= 0 {
		out.Determined = m.determined(b.fine.samples, b.worstAt, b.n)
	}
	if b.worstAt < 0 || scatters || settled(all) {
		return out
	}
	if b.moved == nil {
		out.Err = errors.New("runs with smaller steps fail")
		return out
	}
	out.AtMost = true
	for _, r := range all {
		if r.doubt <= 1 || r == b {
			out.Worst = max(out.Worst, r.worst+r.doubt*r.worst)
		}
	}
	return out
}

// determined returns the time at which variable k leaves the reference by a tenth of its motion.
func (m *meter) determined(fine *Samples, k, n int) float64 {
	limit := 0.1 * momentsOf(fine.V[k][:n], weightsOf(m.Samples.T[:n])).deviation
	for i := range n {
		if math.Abs(m.Samples.V[k][i]-fine.V[k][i]) > limit {
			return m.Samples.T[i]
		}
	}
	return m.Samples.T[n-1]
}
