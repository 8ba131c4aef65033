package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// Setting is an algorithm with its parameters, the macro step, and the rates of components.
type Setting struct {
	Preset string
	Params map[string]string
	Step   float64 // s
	Rates  []algorithms.Rate
}

// String describes the setting as in "implicit, order 1, steps of 0.002 s".
func (s Setting) String() string {
	text := s.Preset
	if order := s.Params["order"]; order != "" {
		text += ", order " + order
	}
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		if tolerance(name) && s.Chooses() {
			text += fmt.Sprintf(", %s %s", name, s.Params[name])
		}
	}
	if !strings.Contains(text, "tolerance") {
		text += fmt.Sprintf(", steps of %.4g s", s.Step)
	}
	return text
}

// Chooses reports whether the algorithm chooses the steps.
func (s Setting) Chooses() bool {
	return s.Params["control.step"] == "variable" && s.Params["control"] != "fixed"
}

// course is a run with a setting, in memory.
type course struct {
	Setting
	samples *Samples
	points  *Samples      // at its own communication points; nil = they are not kept
	hooks   []master.Hook // beside those of the run
	run     *master.Run
	close   func() error
	steps   int
	cost    int // steps of all subsystems, repeated ones included
	ended   bool
	err     error          // why it ended early
	grows   *master.Growth // nil = nothing does
}

// recorder returns what records the course.
func (c *course) recorder() master.Recorder {
	if c.points == nil {
		return c.samples
	}
	return both{c.samples, c.points}
}

// both takes points twice.
type both [2]*Samples

func (b both) Begin(sys *master.System, watched []master.Port) error {
	return errors.Join(b[0].Begin(sys, watched), b[1].Begin(sys, watched))
}
func (b both) Record(p *master.Point) error { return errors.Join(b[0].Record(p), b[1].Record(p)) }
func (b both) Flush() error                 { return nil }
func (b both) End(r master.Result) error    { return errors.Join(b[0].End(r), b[1].End(r)) }

// parts is the number of parts of the time after which the courses wait for each other.
const parts = 100

// most returns the number of steps of a course beyond which it is given up.
func (m *meter) most(c *course) float64 {
	const few, relative, varying = 1000, 3, 10
	step := c.Step
	if mean, varies := m.mean(); varies && c.Preset == m.Preset {
		step *= mean / m.Step / varying
	} else if c.Chooses() {
		step /= varying
	}
	return few + relative*(m.Samples.Stop-m.Samples.Start)/step
}

// ErrBudget means that the time for measuring is used up.
var ErrBudget = errors.New("the budget is used up")

// advance makes the runs of courses in lock-step, so that all have reached the same time when it ends early, with an error:
// at the end of the budget, or if the context ends.
func (m *meter) advance(ctx context.Context, courses ...*course) error {
	if m.Serial {
		for _, c := range courses {
			if err := m.step(ctx, []*course{c}); err != nil {
				return err
			}
		}
		return nil
	}
	return m.step(ctx, courses)
}

func (m *meter) step(ctx context.Context, courses []*course) error {
	these, cost := fmt.Sprintf("run %d", len(m.courses)+1), 0.0
	if n := len(courses); n > 1 {
		these = fmt.Sprintf("runs %d to %d", len(m.courses)+1, len(m.courses)+n)
	}
	if !m.keep {
		these = "the error is measured by " + these
	}
	for _, c := range courses {
		cost += m.Step / c.Step
		m.courses = append(m.courses, c)
		m.call(func() { c.run, c.close, c.err = m.Begin(ctx, c.Setting, c.recorder(), c.hooks...) })
		c.ended = c.err != nil
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	for part := 1; part <= parts; part++ {
		until := m.Samples.Start + float64(part)/parts*(m.Samples.Stop-m.Samples.Start)
		for _, c := range courses {
			for !c.ended && (c.run.Time() < until || part == parts) {
				m.calls.Unlock()
				more, err := c.run.Step(ctx)
				m.calls.Lock()
				if cause := context.Cause(ctx); cause != nil {
					return cause
				}
				if c.steps++; err == nil && float64(c.steps) > m.most(c) {
					err = errors.New("its steps become too short")
				}
				if c.err = err; err != nil || !more {
					c.ended = true
				}
				if !m.Deadline.IsZero() && time.Now().After(m.Deadline) {
					return ErrBudget
				}
			}
		}
		if m.Progress != nil {
			m.Progress(fmt.Sprintf("%s, about %.2g s: %d %%", these, cost*m.Seconds, part))
		}
	}
	for _, c := range courses {
		_ = c.recorder().End(master.Result{})
		m.end(c)
	}
	return nil
}

// call makes calls of subsystems, from which they may not return.
func (m *meter) call(calls func()) {
	m.calls.Unlock()
	calls()
	m.calls.Lock()
}

// end ends the run of a course. What goes wrong then changes no result.
func (m *meter) end(c *course) {
	if c.run != nil {
		var result master.Result
		m.call(func() { result, _ = c.run.Close() })
		c.run, c.grows = nil, result.Growing
		for _, n := range result.SubsystemSteps {
			c.cost += n
		}
	}
	if c.close != nil {
		m.call(func() { _ = c.close() })
		c.close = nil
	}
}
