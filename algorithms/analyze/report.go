package analyze

import (
	"errors"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/record"
)

// Report is the result of an analysis.
type Report struct {
	Start     float64   `json:"start"` // s
	Stop      float64   `json:"stop"`
	Step      float64   `json:"step"`  // s, of the present setting
	Asked     float64   `json:"asked"` // largest error of a recommendation
	Verdict   Verdict   `json:"verdict"`
	Present   Trial     `json:"present"`
	Reference Reference `json:"reference"`
	// Usable and Stable are where the present algorithm was found so.
	Usable Limit `json:"usable"`
	Stable Limit `json:"stable"`
	// Recommended is better than the present setting (measure.Comparison.Best); nil = nothing that was tried is.
	Recommended *Trial          `json:"recommended"`
	Strategies  []Strategy      `json:"strategies"` // the first is the present one
	Runs        int             `json:"runs"`
	FMUSteps    int             `json:"fmu_steps"`       // of all runs
	Ended       string          `json:"ended,omitempty"` // why no more was tried; "" = nothing more can be better
	Motion      *measure.Motion `json:"motion"`          // nil = there was no time for it, or the system has no loops
	Structure   Structure       `json:"structure"`
}

// Limit is between two steps that were tried: the longest at which something holds, and the next, at which it does not; 0 = none.
type Limit struct {
	To  float64 `json:"to"`  // s
	Not float64 `json:"not"` // s
}

// State is what is known of the present setting in a word.
type State string

// The states.
const (
	Usable    State = "usable"
	Unusable  State = "unusable" // its error is larger than measure.Usable
	Unstable  State = "unstable" // it grows, or overflows, and the reference does not
	Fails     State = "fails"
	Uncoupled State = "not coupled" // no output feeds an input
	Unknown   State = "unknown"
)

// Verdict is the answer for the present setting.
type Verdict struct {
	State State  `json:"state"`
	Text  string `json:"text"`
}

// Reference is the run that others are compared with.
type Reference struct {
	Setting string `json:"setting"`
	// Change is how much it changes from the step before, relative to the motion.
	Change *float64 `json:"change"`
	// Doubt is what it may be off by in the outputs that have the errors of the present and of the best setting. Above measure.Trusted,
	// no run is known to be usable.
	Doubt *float64 `json:"doubt"`
	Grows string   `json:"grows,omitempty"` // what grows in it: the system itself
}

// Strategy is an algorithm with its trials.
type Strategy struct {
	Algorithm string  `json:"algorithm"`
	Order     string  `json:"order"`
	Trials    []Trial `json:"trials"` // from long steps to short ones
	Why       string  `json:"why,omitempty"`
}

// Trial is a run with a setting over the whole time.
type Trial struct {
	Algorithm string            `json:"algorithm"`
	Params    map[string]string `json:"params"` // those that differ from the defaults, and the order
	Rates     []string          `json:"rates"`
	Step      float64           `json:"step"` // s; of algorithms that choose their steps the first
	Chooses   bool              `json:"chooses_steps"`
	// Error is relative to the motion of the output Of; Bound is larger by the error that the reference may have. nil = unknown.
	Error    *float64 `json:"error"`
	Bound    *float64 `json:"error_at_most"`
	Of       string   `json:"of"`
	FMUSteps float64  `json:"fmu_steps_per_second"` // of simulated time
	Stable   bool     `json:"stable"`               // it ends regularly, and nothing grows that does not in the reference
	Usable   bool     `json:"usable"`               // and its error is at most measure.Usable
	Grows    string   `json:"grows,omitempty"`
	Fails    string   `json:"fails,omitempty"`
}

// Order returns the extrapolation order, "" if the algorithm has none.
func (t *Trial) Order() string { return t.Params["order"] }

// Maybe reports whether the run is usable as far as the reference is right.
func (t *Trial) Maybe() bool { return t.Stable && t.Error != nil && *t.Error <= measure.Usable }

// New describes a comparison. presets are those of its settings.
func New(c *measure.Comparison, presets algorithms.Catalog) *Report {
	s := c.Samples
	r := &Report{Start: s.Start, Stop: s.Stop, Step: c.Present.Step, Asked: c.Error, Runs: c.Runs, FMUSteps: c.Cost, Motion: c.Motion}
	describe := func(t *measure.Trial) Trial {
		out := Trial{Algorithm: t.Preset, Params: Changed(presets, t.Setting), Step: t.Step, Chooses: t.Chooses(), Stable: t.Stable, Usable: t.Usable && t.Doubt <= measure.Trusted,
			FMUSteps: float64(t.Cost) / math.Max(t.Until-s.Start, t.Step)}
		for _, rate := range t.Rates {
			out.Rates = append(out.Rates, rate.String())
		}
		if t.At >= 0 && !math.IsNaN(t.Error) {
			out.Error, out.Of = &t.Error, s.Name(t.At)
			if !math.IsNaN(t.Bound) {
				out.Bound = &t.Bound
			}
		}
		if t.Grows != nil {
			out.Grows = t.Grows.String()
		}
		if t.Err != nil {
			out.Fails = t.Err.Error()
		}
		return out
	}
	for _, l := range c.Lines {
		line := Strategy{Algorithm: l.Preset, Order: l.Params["order"], Why: l.Why}
		for _, t := range l.Trials {
			line.Trials = append(line.Trials, describe(t))
		}
		r.Strategies = append(r.Strategies, line)
	}
	r.Present = describe(c.Present)
	doubt := c.Present.Doubt
	if c.Present.At >= 0 {
		r.Reference.Doubt = &doubt
	}
	if c.Best != nil {
		doubt = max(doubt, c.Best.Doubt)
		if best := describe(c.Best); best.Usable || !c.Present.Usable { // rather one that may be usable than one that is not
			r.Recommended = &best
		}
	}
	if b := c.Bar; b != nil && b.Err == nil {
		r.Reference.Setting = c.Reference.String()
		if b.Grows != nil {
			r.Reference.Grows = b.Grows.String()
		}
	}
	if c.Change >= 0 {
		r.Reference.Change = &c.Change
	}
	r.Usable = limit(r.Strategies[0].Trials, func(t *Trial) bool { return t.Usable })
	r.Stable = limit(r.Strategies[0].Trials, func(t *Trial) bool { return t.Stable })
	if c.Err != nil {
		r.Ended = c.Err.Error()
	}
	r.Verdict = r.judge(c)
	if c.Bar != nil && c.Bar.Partial {
		r.Verdict.Text += fmt.Sprintf(" (up to t = %.4g s only, which was reached)", c.Bar.Until)
	}
	return r
}

// Changed returns the parameters of a setting that are not the defaults, and always its order.
func Changed(presets algorithms.Catalog, s measure.Setting) map[string]string {
	out := map[string]string{}
	p, err := presets.Find(s.Preset)
	if err != nil {
		return s.Params
	}
	for _, q := range p.Params {
		if v, given := s.Params[q.Name]; given && (v != q.Default || q.Name == "order" && v != "auto") {
			out[q.Name] = v
		}
	}
	return out
}

// limit returns the longest step at which something holds, before the first at which it does not.
func limit(trials []Trial, holds func(*Trial) bool) (l Limit) {
	for k := len(trials) - 1; k >= 0; k-- {
		switch t := &trials[k]; {
		case holds(t):
			l.To = t.Step
		case l.To > 0:
			l.Not = t.Step
			return l
		}
	}
	return l
}

// judge returns the verdict on the present setting.
func (r *Report) judge(c *measure.Comparison) Verdict {
	p := &r.Present
	switch {
	case errors.Is(c.Err, measure.ErrUncoupled):
		return Verdict{Uncoupled, "no component feeds another, so no coupling can be unstable or inexact; the only errors are those of the solvers inside the FMUs"}
	case p.Fails != "":
		return Verdict{Fails, fmt.Sprintf("the run ends at t = %.4g s: %s", c.Present.Until, p.Fails)}
	case c.Bar != nil && c.Bar.Undetermined:
		return Verdict{Unknown, fmt.Sprintf("from t = %.4g s on, almost the same step gives values as different (noise, chaos or switching): no setting can be judged by them",
			c.Bar.Determined)}
	case p.Error == nil && r.Ended == "":
		return Verdict{Unknown, "no compared output moves, so there is nothing to which an error relates"}
	case p.Error == nil:
		return Verdict{Unknown, "there is no reference: " + r.Ended}
	case c.Present.Usable && !p.Usable:
		return Verdict{Unknown, fmt.Sprintf("%s, and runs with shorter steps differ by up to %s from each other", p.Off(), record.Percent(*r.Reference.Doubt))}
	case p.Usable:
		text := p.Off()
		if p.Grows != "" {
			text += "; " + p.Grows + ", in the reference as well: the system itself grows"
		}
		return Verdict{Usable, text}
	case p.Grows != "" && r.Reference.Grows == "":
		return Verdict{Unstable, p.Grows + ", and nothing does in the reference: the coupling is unstable"}
	}
	return Verdict{Unusable, p.Off()}
}

// Off describes the error, "" if it is unknown.
func (t *Trial) Off() string {
	if t.Error == nil {
		return ""
	}
	return fmt.Sprintf("the error of %s is %s", t.Of, record.OfMotion(*t.Error))
}
