package analyze

import (
	"cmp"
	"math"

	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master/plainjson"
)

// Report is the result of an analysis.
type Report struct {
	At         float64     `json:"at"`                  // s, the operating point
	Step       float64     `json:"step"`                // s
	Tolerance  float64     `json:"tolerance,omitempty"` // of the solvers in the components; 0 = none is given
	From       float64     `json:"from"`                // s, bounds of the scan
	To         float64     `json:"to"`
	Structure  Structure   `json:"structure"`
	Subsystems []Subsystem `json:"subsystems"`
	Strategies []Strategy  `json:"strategies"`
	// Varying are the algorithms with variable steps; empty where errors are not forecast.
	Varying []forecast.Varying `json:"variable_steps,omitempty"`
	forecast.Motion
	// Alone are the components that are unstable by themselves. Whole is the growth of the coupled system
	// itself, which no step and no algorithm changes; nil = it is stable, or unknown.
	Alone []scan.Growth `json:"unstable_alone,omitempty"`
	Whole *scan.Growth  `json:"unstable_whole,omitempty"`
	Asked float64       `json:"asked_error"` // Options.Error
	// Recommended is the index of the recommended strategy, −1 = none.
	Recommended int                `json:"recommended"`
	StepToTake  float64            `json:"step_to_take"`       // s
	Promised    *forecast.Forecast `json:"promised,omitempty"` // forecast of the recommended strategy at StepToTake
	Why         string             `json:"why"`
	// RecommendedVarying is an algorithm with variable steps that keeps to the error at less cost than Recommended;
	// nil = there is none.
	RecommendedVarying *forecast.Choice `json:"recommended_variable_steps,omitempty"`
	// Present is Options.Own, Verdict the answer for it; nil = none was given.
	Present *forecast.Own `json:"present,omitempty"`
	Verdict *Verdict      `json:"verdict,omitempty"`
	// Own is the forecast of the algorithm of Options.Own, WhyNotOwn why there is none.
	Own       *forecast.Settled `json:"own,omitempty"`
	WhyNotOwn string            `json:"why_not_own,omitempty"`
	// Notes are differences between the system and what was analysed.
	Notes []string `json:"notes,omitempty"`

	schemes []*twin.Scheme // of Strategies
}

// Subsystem is what is known of one subsystem.
type Subsystem struct {
	Name  string `json:"name"`
	Model string `json:"model"` // twin.Measured, twin.Directional, twin.Renewed, twin.None
	Why   string `json:"why,omitempty"`
	// Unmeasured means that no model was made, because the stability is unknown or irrelevant anyway.
	Unmeasured bool `json:"not_measured,omitempty"`
	// States of the model at the step of the analysis.
	States int `json:"states"`
	// Misfit is the distance of the measured responses from the model, relative to the largest response
	// of each output to each input.
	Misfit float64 `json:"misfit"`
	// Capabilities that decide which algorithms can be used.
	Rollback               bool `json:"rollback"`
	Serializes             bool `json:"serializes_state"`
	VariableStep           bool `json:"variable_step"`
	InputDerivatives       bool `json:"input_derivatives"`
	DirectionalDerivatives bool `json:"directional_derivatives"`
	Stateless              bool `json:"stateless"`
}

// Strategy is one algorithm at one order.
type Strategy struct {
	Preset string            `json:"algorithm"`
	Order  int               `json:"order"`
	Params map[string]string `json:"params,omitempty"`
	// Rates of the components, as COMPONENT=N steps per macro step or COMPONENT=1/N, one step per N macro steps;
	// the others take one step per macro step.
	Rates []string `json:"rates,omitempty"`
	scan.Result
	// Forecasts of error and cost at steps around that of the analysis.
	Forecasts []forecast.Forecast `json:"forecasts,omitempty"`
	// Local is the error of one step, WhyNoLocal the reason why it is unknown.
	Local      *forecast.Local `json:"local,omitempty"`
	WhyNoLocal string          `json:"why_no_local,omitempty"`
	// Untold is how a real run will differ from the models, or "". Such a strategy is not recommended.
	Untold string `json:"untold,omitempty"`
	Why    string `json:"why,omitempty"` // reason why something is unknown, or why it cannot be used
	// Seen is set if the stability is from trial runs; nil = it is from the models.
	Seen *Seen `json:"runs,omitempty"`
}

// Known reports whether Now is known.
func (s *Strategy) Known() bool { return s.Mode != nil || s.Seen != nil && s.Seen.Now }

// MarshalJSON writes null for an unknown radius at the step of the analysis, and leaves out unknown stable ranges, with
// the reason in "unknown": a radius of 0 would mean immediate decay, an empty list that no step is stable.
func (s Strategy) MarshalJSON() ([]byte, error) {
	type plain Strategy
	out := struct {
		plain
		Now     *float64      `json:"radius"`
		Stable  *[]scan.Range `json:"stable,omitempty"`
		Unknown string        `json:"unknown,omitempty"`
	}{plain: plain(s)}
	if s.Known() {
		out.Now = &s.Now
	}
	if len(s.Points) > 0 {
		out.Stable = &s.Stable
	}
	if out.Now == nil || out.Stable == nil {
		out.Unknown = cmp.Or(s.Why, "it was not analysed")
	}
	return plainjson.Marshal(out)
}

// AtLimit reports whether the radius at the step of the analysis is 1 within a millionth: undamped motion, or growth too
// slow to count.
func (s *Strategy) AtLimit() bool {
	return len(s.Points) > 0 && math.Abs(s.Now-1) <= linear.Marginal && s.Mode != nil
}

// slowest returns the radius without an eigenvalue of 1.
func (s *Strategy) slowest() float64 {
	if s.Lasts {
		return s.Besides
	}
	return s.Now
}

// IsStable reports whether nothing grows at the step of the analysis.
func (s *Strategy) IsStable() bool { return s.Now <= 1+linear.Marginal }
