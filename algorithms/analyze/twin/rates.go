package twin

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/internal/num"
)

// mostRates bounds the steps of a component in a macro step, and the macro steps of a period, that are analysed.
const mostRates = 1000

// OwnRates returns the rates that are other than that of the macro step.
func OwnRates(all []algorithms.Rate) []algorithms.Rate {
	var out []algorithms.Rate
	for _, r := range all {
		if r.Steps > 1 || r.Over > 1 {
			out = append(out, r)
		}
	}
	return out
}

// rateText writes a rate as the command line takes it.
func rateText(r algorithms.Rate) string {
	if r.Over > 1 {
		return fmt.Sprintf("%s=1/%d", r.Component, r.Over)
	}
	return fmt.Sprintf("%s=%d", r.Component, r.Steps)
}

// RateTexts writes the rates of the strategy.
func (s *Scheme) RateTexts() []string {
	var out []string
	for _, r := range s.Rates {
		out = append(out, rateText(r))
	}
	return out
}

// Rate returns that of a component: steps in a macro step, or macro steps that one goes over.
func (s *Scheme) Rate(component string) (steps, over int) {
	k := slices.IndexFunc(s.Rates, func(r algorithms.Rate) bool { return r.Component == component })
	if k < 0 {
		return 1, 1
	}
	return s.Rates[k].Steps, s.Rates[k].Over
}

// Period returns the macro steps from one point at which all components take part to the next.
func (s *Scheme) Period() int {
	n := 1
	for _, r := range s.Rates {
		if n = num.LCM(n, r.Over); n > mostRates {
			return n // too long, as it stands
		}
	}
	return n
}

// Beyond tells that the rates of the strategy are not looked at, "" if they are.
func (s *Scheme) Beyond() string {
	for _, r := range s.Rates {
		if r.Steps > mostRates {
			return fmt.Sprintf("%s takes %d steps a macro step, and more than %d are not analysed", r.Component, r.Steps, mostRates)
		}
	}
	if s.Period() > mostRates {
		return fmt.Sprintf("the slow components take part together after more than %d macro steps, and such a coupling is not analysed", mostRates)
	}
	return ""
}
