package record

import (
	"errors"
	"fmt"
	"strings"
)

// Error is the measured coupling error of a run. Errors inside FMUs are not measured.
type Error struct {
	// Worst is the largest error of an output that feeds an input, of Where: the rms of the difference from the reference
	// over the run / the standard deviation of the reference. null = unknown.
	Worst   *float64 `json:"worst"`
	Where   string   `json:"where"`
	Limit   float64  `json:"limit"`   // above which there is a warning
	Strict  bool     `json:"strict"`  // with which the run fails
	Unknown string   `json:"unknown"` // why it is; "" = it is known
	AtMost  bool     `json:"at_most"` // the reference is not much better than that
	// Determined is the time, in s, from which on almost the same step gives results as different, as with noise or chaos. null = it does not.
	Determined *float64                 `json:"determined_until"`
	Reference  string                   `json:"reference"` // the setting with which the run was compared
	Until      float64                  `json:"until"`     // s, end of the part that was compared
	Partial    bool                     `json:"partial"`   // it is not the whole run
	Runs       int                      `json:"runs"`      // made to measure it
	Variables  map[string]VariableError `json:"variables"`
}

// VariableError is the error of one variable.
type VariableError struct {
	// Relative is as Worst in Error; of a variable that is no Real, the share of time in which its value differs. null = it does not move.
	Relative *float64 `json:"relative"`
	Absolute float64  `json:"absolute"` // rms, in its unit
	Largest  float64  `json:"largest"`  // magnitude, in its unit
	Unit     string   `json:"unit,omitempty"`
	Shift    float64  `json:"shift,omitempty"` // s, of the first change of a variable that is no Real
	Moments  *Moments `json:"moments,omitempty"`
}

// Moments are errors of statistics of a variable, in its unit, where its values at each time are not determined.
type Moments struct {
	Mean    float64 `json:"mean"`
	RMS     float64 `json:"rms"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

// String describes the error in one line.
func (e *Error) String() string {
	const unmeasured = "; errors inside FMUs are not measured"
	if e.Worst == nil {
		return "coupling error: unknown: " + e.Unknown
	}
	about := "about"
	if e.AtMost {
		about = "at most"
	}
	v := e.Variables[e.Where]
	text := fmt.Sprintf("coupling error: %s %s %s (±%s)", e.Where, about, e.Size(), strings.TrimSpace(fmt.Sprintf("%.2g %s", v.Absolute, v.Unit)))
	if e.Determined != nil {
		text += fmt.Sprintf("; from t = %.4g s on, almost the same step gives values as different (noise, chaos or switching)", *e.Determined)
	}
	if e.Partial {
		text += fmt.Sprintf(", up to t = %.4g s", e.Until)
	}
	return text + unmeasured
}

// Warning returns the warning about the error, "" if it is within the limit.
func (e *Error) Warning() string {
	switch {
	case e.Worst == nil:
		return "the coupling error is unknown: " + e.Unknown
	case *e.Worst <= e.Limit && e.Partial:
		return fmt.Sprintf("the coupling error is known up to t = %.4g s only", e.Until)
	case *e.Worst <= e.Limit:
		return ""
	}
	return fmt.Sprintf("the coupling error of %s, %s, is above the limit of %.3g %%: take smaller steps or another algorithm", e.Where,
		e.Size(), 100*e.Limit)
}

// Failure returns the error of a strict run that is not within the limit, or not known to be over its whole time.
func (e *Error) Failure() error {
	if w := e.Warning(); e.Strict && w != "" {
		return errors.New(w)
	}
	return nil
}

// Size describes the largest error, which must be known.
func (e *Error) Size() string { return OfMotion(*e.Worst) }

// OfMotion describes an error relative to the motion.
func OfMotion(v float64) string {
	if v >= 1 {
		return Percent(v) + " its motion"
	}
	return Percent(v) + " of its motion"
}

// Percent formats a relative error.
func Percent(v float64) string {
	if v >= 1 {
		return fmt.Sprintf("%.3g times", v)
	}
	return fmt.Sprintf("%.2g %%", 100*v)
}
