package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// Varying is the forecast of an algorithm with variable steps at one order: a number, or "auto" if it also chooses the
// order.
type Varying struct {
	Preset string `json:"algorithm"`
	Order  string `json:"order"`
	// Tolerance is the name of its tolerance parameter.
	Tolerance string    `json:"tolerance"`
	Settled   []Settled `json:"settled,omitempty"` // by falling tolerance
	Why       string    `json:"why,omitempty"`     // reason why there is no forecast; "" = there is one
	usual     float64   // value of the tolerance
}

// Settled is the forecast of an algorithm with variable steps at one tolerance. Step is the median step over time.
type Settled struct {
	Tolerance float64 `json:"tolerance,omitempty"`
	Forecast
	// Steps are at most Short in a tenth of the time, and at most Long in nine tenths (s).
	Short float64 `json:"short"`
	Long  float64 `json:"long"`
	// Macro steps over the horizon, and the most frequent order of the accepted ones.
	Accepted  int `json:"accepted"`
	Rejected  int `json:"rejected"`
	MostOrder int `json:"most_order"`
	// Fails is the error with which the run is expected to end early, "" = none. Cut means that it takes too many steps
	// to be followed to the end. All other fields are for the time from the operating point to Time (s).
	Fails string  `json:"fails,omitempty"`
	Cut   bool    `json:"cut,omitempty"`
	Time  float64 `json:"time"`
}

// Choice is an algorithm with variable steps and its parameters.
type Choice struct {
	Preset string            `json:"algorithm"`
	Params map[string]string `json:"params"`
	Rates  []string          `json:"rates,omitempty"` // as Strategy.Rates
	Settled
}

// Options of forecasts.
type Options struct {
	Rates []algorithms.Rate // that differ from one step per macro step
	Bonds []algorithms.Bond
	Error float64 // requested
}

const (
	// mostTighter and mostLooser are the largest numbers of decades below and above the default tolerance that are tried
	// for the requested error.
	mostTighter, mostLooser = 3, 2
	mostSteps               = 20_000 // macro steps of a forecast at most
	// Parts of the time for Settled.Short and Settled.Long.
	shortQuantile = 0.1
	longQuantile  = 0.9
	// beyond is the largest factor by which steps may lie outside the range of steps with models.
	beyond = 1.5
)

// ToleranceOf returns the tolerance parameter of a preset with variable steps, "" for those with fixed steps.
func ToleranceOf(preset string) string {
	switch preset {
	case "ex-local", "ex-milne", "ex-slocal", "richardson", "im-milne", "im-slocal":
		return errorTolerance
	case "predictor-corrector":
		return "pc.tolerance"
	case "ecco":
		return "ecco.tolerance"
	}
	return ""
}

const errorTolerance = "control.rtol"

// Varies returns the presets with variable steps, up to an order, without forecasts.
func Varies(presets []string, order int) (out []Varying) {
	for _, preset := range presets {
		v := Varying{Preset: preset, Order: "auto", Tolerance: ToleranceOf(preset)}
		defaults, err := algorithms.New(preset, nil)
		if v.Tolerance == "" || err != nil {
			continue
		}
		if v.usual, err = strconv.ParseFloat(defaults.Values[v.Tolerance], 64); err != nil {
			continue
		}
		if defaults.Values["order"] == v.Order {
			out = append(out, v)
			continue
		}
		for k := range order + 1 {
			v.Order = fmt.Sprint(k)
			out = append(out, v)
		}
	}
	return out
}

// estimates reports whether the preset estimates errors.
func (v *Varying) estimates() bool { return v.Tolerance == errorTolerance }

// implicit reports whether the preset iterates.
func (v *Varying) implicit() bool { return v.Preset == "im-milne" || v.Preset == "im-slocal" }

// rates returns the rates that the preset supports.
func (v *Varying) rates(all []algorithms.Rate) []algorithms.Rate {
	if v.implicit() {
		return nil
	}
	return all
}

// params returns the parameters of a run with a tolerance.
func (v *Varying) params(tolerance float64) map[string]string {
	out := map[string]string{v.Tolerance: fmt.Sprintf("%.3g", tolerance)}
	if v.Order != "auto" {
		out["order"] = v.Order
	}
	return out
}

// Settle makes the forecasts: at the default tolerance first, then at tighter or looser ones for the requested error.
func (p *Forecaster) Settle(v *Varying, o Options) {
	if v.implicit() && len(p.Models) > twin.Many {
		v.Why = fmt.Sprintf("implicit coupling with variable steps is not forecast for more than %d components [too-large]", twin.Many)
		return
	}
	like := &twin.Scheme{Order: algorithms.MaxOrder, Rates: v.rates(o.Rates)}
	if v.Why = like.Beyond(); v.Why != "" {
		return
	}
	if fixed, err := strconv.Atoi(v.Order); err == nil {
		like.Order = fixed
	}
	if v.Preset == "ex-local" {
		like.Order++
	}
	with := algorithms.With{Rates: like.Rates}
	if algorithms.UsesEnergy(v.Preset) {
		with.Bonds = o.Bonds
	}
	at := func(n int) (s Settled, ok bool) {
		tolerance, estimates := v.usual*math.Pow10(n), 0.0
		if v.estimates() {
			estimates = tolerance
		}
		s, err := p.settled(func() (master.Algorithm, error) {
			choice, err := algorithms.New(v.Preset, v.params(tolerance), with)
			if err != nil {
				return nil, err
			}
			return choice.Algorithm, nil
		}, like, estimates)
		if err != nil {
			v.Why = cmp.Or(v.Why, err.Error())
			return s, false
		}
		s.Tolerance = tolerance
		v.Settled = append(v.Settled, s)
		return s, true
	}
	usual, ok := at(0)
	if !ok || len(p.Models) > twin.Many {
		return
	}
	s := usual
	for n := -1; n >= -mostTighter && ok && s.ends() && !s.keepsTo(o.Error); n-- {
		s, ok = at(n)
	}
	s = usual
	for n := 1; n <= mostLooser && ok && (!s.ends() || s.keepsTo(o.Error)); n++ {
		s, ok = at(n)
	}
	slices.SortStableFunc(v.Settled, func(a, b Settled) int { return cmp.Compare(b.Tolerance, a.Tolerance) })
}

// keepsTo reports whether the run is expected to reach its end with at most this error.
func (s *Settled) keepsTo(most float64) bool { return s.ends() && s.Error+s.Doubt <= most }

// ends reports whether the run is expected to reach its end.
func (s *Settled) ends() bool { return s.Fails == "" && !s.Cut }

// Better reports whether s is preferable to another forecast for a requested error: it keeps to the error at less cost, or
// comes nearer to it.
func (s *Settled) Better(than *Settled, most float64) bool {
	mine, other := s.keepsTo(most), than.keepsTo(most)
	switch {
	case mine != other:
		return mine
	case mine:
		return s.FMUSteps < (1-1e-9)*than.FMUSteps
	case s.ends() != than.ends():
		return s.ends()
	}
	return s.Error+s.Doubt < than.Error+than.Doubt
}

// Best returns the preferable forecast for a requested error; nil = there is none.
func (v *Varying) Best(most float64) *Settled {
	var best *Settled
	for k := range v.Settled {
		if s := &v.Settled[k]; best == nil || s.Better(best, most) {
			best = s
		}
	}
	return best
}

// Own is an algorithm with the parameters of a run.
type Own struct {
	Preset string `json:"algorithm"`
	Order  int    `json:"order"`
	// Changed are the other parameters, as KEY=VALUE, that are not the defaults. The analysis of the stability leaves them out.
	Changed []string                         `json:"changed,omitempty"`
	New     func() (master.Algorithm, error) `json:"-"` // returns a new instance
}

// SettleOwn forecasts the algorithm of a run, or returns why it cannot.
func (p *Forecaster) SettleOwn(o *Own, rates []algorithms.Rate) (*Settled, string) {
	like := &twin.Scheme{Order: algorithms.MaxOrder, Rates: rates}
	if why := like.Beyond(); why != "" {
		return nil, why
	}
	estimates := 0.0
	if ToleranceOf(o.Preset) == errorTolerance {
		estimates = twin.Good
	}
	s, err := p.settled(o.New, like, estimates)
	if err != nil {
		return nil, err.Error()
	}
	return &s, ""
}

// Choose returns the cheapest algorithm with variable steps that keeps to the error; nil = there is none, or
// promised, a forecast with steps of one size, keeps to the error and costs no more.
func Choose(all []Varying, promised *Forecast, o Options) (best *Choice) {
	for k := range all {
		v := &all[k]
		if s := v.Best(o.Error); s != nil && s.keepsTo(o.Error) && (best == nil || s.Better(&best.Settled, o.Error)) {
			rates := &twin.Scheme{Rates: v.rates(o.Rates)}
			best = &Choice{Preset: v.Preset, Params: v.params(s.Tolerance), Rates: rates.RateTexts(), Settled: *s}
		}
	}
	if best != nil && promised != nil && promised.Error+promised.Doubt <= o.Error && promised.FMUSteps <= best.FMUSteps {
		return nil
	}
	return best
}
