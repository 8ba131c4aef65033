package twin

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/internal/num"
)

// mostRates is the largest number of steps of a component per macro step, and of macro steps in a period.
const mostRates = 1000

// OwnRates returns the rates that differ from one step per macro step.
func OwnRates(all []algorithms.Rate) []algorithms.Rate {
	var out []algorithms.Rate
	for _, r := range all {
		if r.Steps > 1 || r.Over > 1 {
			out = append(out, r)
		}
	}
	return out
}

// rateText returns a rate in the syntax of the command line.
func rateText(r algorithms.Rate) string {
	if r.Over > 1 {
		return fmt.Sprintf("%s=1/%d", r.Component, r.Over)
	}
	return fmt.Sprintf("%s=%d", r.Component, r.Steps)
}

// RateTexts returns the rates of the strategy in the syntax of the command line.
func (s *Scheme) RateTexts() []string {
	var out []string
	for _, r := range s.Rates {
		out = append(out, rateText(r))
	}
	return out
}

// Rate returns the number of steps of a component per macro step, and of macro steps per step; one of them is 1.
func (s *Scheme) Rate(component string) (steps, over int) {
	k := slices.IndexFunc(s.Rates, func(r algorithms.Rate) bool { return r.Component == component })
	if k < 0 {
		return 1, 1
	}
	return s.Rates[k].Steps, s.Rates[k].Over
}

// Period returns the number of macro steps after which all components step together; above mostRates it may be too low.
func (s *Scheme) Period() int {
	n := 1
	for _, r := range s.Rates {
		if n = num.LCM(n, r.Over); n > mostRates {
			return n // too long already
		}
	}
	return n
}

// Beyond returns why strategies with these rates are not analysed, or "".
func (s *Scheme) Beyond() string {
	for _, r := range s.Rates {
		if r.Steps > mostRates {
			return fmt.Sprintf("%s takes %d steps per macro step; more than %d are not analysed [too-large]", r.Component, r.Steps, mostRates)
		}
	}
	if s.Period() > mostRates {
		return fmt.Sprintf("the slow components step together after more than %d macro steps; such a coupling is not analysed [too-large]", mostRates)
	}
	return ""
}
