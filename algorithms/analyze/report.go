package analyze

import (
	"cmp"
	"encoding/json"
	"math"

	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

// Report is what an analysis finds.
type Report struct {
	At         float64     `json:"at"`   // s, the operating point
	Step       float64     `json:"step"` // s
	From       float64     `json:"from"` // s, bounds of the scan
	To         float64     `json:"to"`
	Structure  Structure   `json:"structure"`
	Subsystems []Subsystem `json:"subsystems"`
	Strategies []Strategy  `json:"strategies"`
	// Varying are the algorithms that choose their steps; none where errors are not forecast.
	Varying []forecast.Varying `json:"variable_steps,omitempty"`
	forecast.Motion
	// Alone are the components that are unstable by themselves. Whole is the growth of the coupled system by
	// itself, which no step and no algorithm changes; nil = it is stable, or that is not known.
	Alone []scan.Growth `json:"unstable_alone,omitempty"`
	Whole *scan.Growth  `json:"unstable_whole,omitempty"`
	Asked float64       `json:"asked_error"` // of what is recommended
	// Recommended is the index of the strategy to take, −1 if none is stable.
	Recommended int                `json:"recommended"`
	StepToTake  float64            `json:"step_to_take"`       // s
	Promised    *forecast.Forecast `json:"promised,omitempty"` // of it at this step
	Why         string             `json:"why"`
	// RecommendedVarying is an algorithm that chooses its steps and keeps to the error at less cost than what is
	// recommended of those with steps of one size; nil = there is none.
	RecommendedVarying *forecast.Choice `json:"recommended_variable_steps,omitempty"`
	// Own is the forecast of the algorithm of Options.Own, WhyNotOwn why there is none.
	Own       *forecast.Settled `json:"own,omitempty"`
	WhyNotOwn string            `json:"why_not_own,omitempty"`
	// Notes tell what of the system is not as it is analysed.
	Notes []string `json:"notes,omitempty"`

	schemes []*twin.Scheme // of Strategies
}

// Subsystem tells what is known of one.
type Subsystem struct {
	Name  string `json:"name"`
	Model string `json:"model"` // twin.Measured, twin.Directional, twin.Renewed, twin.None
	Why   string `json:"why,omitempty"`
	// Unmeasured tells that its model was not looked at, as nothing could be told of the coupling anyway.
	Unmeasured bool `json:"not_measured,omitempty"`
	// States of the model at the step of the analysis.
	States int `json:"states"`
	// Misfit returns how far the measured responses are from those of the model, relative to the largest
	// of each output to each input.
	Misfit float64 `json:"misfit"`
	// What decides which algorithms can be used.
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
	// Rates are those that it is analysed with, as COMPONENT=N steps a macro step or COMPONENT=1/N, one step over
	// N macro steps; none = each component takes one step a macro step.
	Rates []string `json:"rates,omitempty"`
	scan.Result
	// Forecasts of the error and cost, at steps in the neighbourhood of that of the analysis.
	Forecasts []forecast.Forecast `json:"forecasts,omitempty"`
	// Local is the error of one step, WhyNoLocal why it is not known.
	Local      *forecast.Local `json:"local,omitempty"`
	WhyNoLocal string          `json:"why_no_local,omitempty"`
	// Untold is what a real run will do otherwise than the models, "" if nothing: such a
	// strategy is not recommended.
	Untold string `json:"untold,omitempty"`
	Why    string `json:"why,omitempty"` // it cannot be told, or not be used, because of this
	// Seen tells that runs of the system show what the models do not; nil = all is from the models.
	Seen *Seen `json:"runs,omitempty"`
}

// Known reports whether Now is.
func (s *Strategy) Known() bool { return s.Mode != nil || s.Seen != nil && s.Seen.Now }

// MarshalJSON returns null for the radius at the step of the analysis, and for the stable ranges, where they are not
// known, with the reason in "unknown": 0 would be a coupling that dies out at once, and no range one that
// is stable nowhere.
func (s Strategy) MarshalJSON() ([]byte, error) {
	type plain Strategy
	out := struct {
		plain
		Now     *float64 `json:"radius"`
		Unknown string   `json:"unknown,omitempty"`
	}{plain: plain(s)}
	if s.Known() {
		out.Now = &s.Now
	}
	switch {
	case len(s.Points) == 0:
		out.Points, out.Stable = nil, nil
	case s.Stable == nil:
		out.Stable = []scan.Range{}
	}
	if out.Now == nil || out.Stable == nil {
		out.Unknown = cmp.Or(s.Why, "it was not looked at")
	}
	return json.Marshal(out)
}

// AtLimit reports whether the radius at the step of the analysis is 1 within what counts as no growth,
// a millionth in a step: what is not damped at all stands there, and what grows that slowly.
func (s *Strategy) AtLimit() bool {
	return len(s.Points) > 0 && math.Abs(s.Now-1) <= linear.Marginal && s.Mode != nil
}

// slowest is the radius of all that does not last.
func (s *Strategy) slowest() float64 {
	if s.Lasts {
		return s.Besides
	}
	return s.Now
}

// IsStable reports whether nothing grows at the step of the analysis.
func (s *Strategy) IsStable() bool { return s.Now <= 1+linear.Marginal }
