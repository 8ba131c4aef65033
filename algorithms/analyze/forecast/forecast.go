package forecast

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// Forecast is the expected error and cost of a strategy at one macro step size.
type Forecast struct {
	Step float64 `json:"step"` // s
	// Error is the root mean square error over the horizon of the output Of, which has the largest, relative to the
	// standard deviation of that output (haid (33)).
	Error float64 `json:"error"`
	Of    string  `json:"of"`
	// Doubt is the uncertainty of Error, in the same measure: the distance of the models from the components along
	// the motion.
	Doubt float64 `json:"doubt"`
	// FMUSteps is the cost: steps of all subsystems per simulated second, including repeated ones and
	// substeps.
	FMUSteps float64 `json:"fmu_steps_per_second"`
}

// IsRough reports whether the error is only an order of magnitude.
func (f *Forecast) IsRough() bool { return f.Doubt > rough*f.Error && f.Doubt > negligible }

// Size returns the expected error, marked with ~ where it is an order of magnitude.
func (f *Forecast) Size() string {
	if f.IsRough() {
		return fmt.Sprintf("~%.0e", f.Error)
	}
	return fmt.Sprintf("%.2g", f.Error)
}

// Percent returns the expected error in percent of the standard deviation, marked with ~ where it is an order of magnitude.
func (f *Forecast) Percent() string {
	const most = 10
	switch {
	case !(f.Error <= most):
		return fmt.Sprintf("> %d %%", 100*most)
	case f.IsRough():
		return "~" + strconv.FormatFloat(rounded(100*f.Error, 1), 'f', -1, 64) + " %"
	}
	return strconv.FormatFloat(rounded(100*f.Error, 2), 'f', -1, 64) + " %"
}

// rounded returns a number with some significant digits.
func rounded(v float64, digits int) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // cannot fail
	return out
}

// disturbed are relative changes of the states that show how sensitive an error is.
var disturbed = []float64{1e-6, -1e-5, 1e-4}

// Forecasts compares the strategy with the motion at steps around that of the analysis.
func (p *Forecaster) Forecasts(s *twin.Scheme) (out []Forecast) {
	for _, c := range Candidates {
		if f, err := p.forecast(s, c*p.Step); err == nil {
			out = append(out, f)
		}
	}
	return out
}

// forecast compares the strategy at steps of h with the reference.
func (p *Forecaster) forecast(s *twin.Scheme, h float64) (Forecast, error) {
	y, result, err := p.course(s, h, (len(p.ref.y)-1)/int(math.Round(h/p.ref.h)), nil)
	if err != nil {
		return Forecast{}, err
	}
	f := Forecast{Step: h, Doubt: p.doubt}
	if f.Error, f.Of, err = p.errorOf(y, h); err != nil {
		return f, err
	}
	if s.Preset == twin.EnergyCorrection { // a force from a velocity near 0 may amplify small differences
		for _, by := range disturbed {
			moved := func(n int, twins []*twin.Twin) {
				for _, t := range twins {
					for k := range t.X {
						if n == 1 {
							t.X[k] *= 1 + by
						}
					}
				}
			}
			y, _, err := p.course(s, h, len(y)-1, moved)
			if err != nil {
				return f, err
			}
			other, _, err := p.errorOf(y, h)
			if err != nil {
				return f, err
			}
			f.Doubt = max(f.Doubt, math.Abs(other-f.Error))
		}
	}
	f.FMUSteps = stepsPerSecond(&result)
	return f, nil
}

// errorOf returns the error of a motion in steps of h against the reference, and the output where it is largest.
func (p *Forecaster) errorOf(y [][]float64, h float64) (worst float64, of string, err error) {
	each := int(math.Round(h / p.ref.h))
	square := make([]float64, len(p.ref.sizes))
	for n, v := range y {
		for o := range square {
			off := v[o] - p.ref.y[n*each][o]
			square[o] += off * off / float64(len(y))
		}
	}
	return p.worst(square)
}

// worst returns the largest relative error of an output and its name, from the mean squares of the outputs.
func (p *Forecaster) worst(square []float64) (worst float64, of string, err error) {
	at := 0
	for i, m := range p.Models {
		for o := range m.Outputs() {
			if p.ref.sizes[at] > 0 {
				if e := math.Sqrt(square[at]) / p.ref.sizes[at]; !(e <= worst) {
					worst, of = e, p.X.Sys.OutName(p.X.Sys.OutAt[i]+o)
				}
			}
			at++
		}
	}
	if !linear.Finite(worst) {
		return worst, of, errors.New("the run diverges to NaN or infinity [diverges]")
	}
	return worst, of, nil
}

// stepsPerSecond returns the cost of a run: steps of all subsystems per simulated second.
func stepsPerSecond(r *master.Result) float64 {
	taken := 0
	for _, n := range r.SubsystemSteps {
		taken += n
	}
	return float64(taken) / r.Time
}
