package analyze

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// mostRates bounds the steps of a component in a macro step, and the macro steps of a period, that are analysed.
const mostRates = 1000

// ownRatesOf gives the rates that are another than that of the macro step.
func ownRatesOf(all []algorithms.Rate) []algorithms.Rate {
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

// rateTexts writes the rates of the strategy.
func (s *scheme) rateTexts() []string {
	var out []string
	for _, r := range s.rates {
		out = append(out, rateText(r))
	}
	return out
}

// CheckRates tells of rates that no run would take, such as those of components that there are not.
func CheckRates(sys *master.System, rates []algorithms.Rate) error {
	if len(rates) == 0 {
		return nil
	}
	choice, err := algorithms.New(explicitScheme, nil, algorithms.With{Rates: rates})
	if err != nil {
		return err
	}
	return choice.Algorithm.Check(sys)
}

// rate gives that of a component: steps in a macro step, or macro steps that one goes over.
func (s *scheme) rate(component string) (steps, over int) {
	k := slices.IndexFunc(s.rates, func(r algorithms.Rate) bool { return r.Component == component })
	if k < 0 {
		return 1, 1
	}
	return s.rates[k].Steps, s.rates[k].Over
}

// period gives the macro steps from one point at which all components take part to the next.
func (s *scheme) period() int {
	n := 1
	for _, r := range s.rates {
		if n = leastCommonMultiple(n, r.Over); n > mostRates {
			return n // too long, as it stands
		}
	}
	return n
}

func leastCommonMultiple(a, b int) int {
	g, r := a, b
	for r != 0 {
		g, r = r, g%r
	}
	return a / g * b
}

// beyond tells that the rates of the strategy are not looked at, "" if they are.
func (s *scheme) beyond() string {
	for _, r := range s.rates {
		if r.Steps > mostRates {
			return fmt.Sprintf("%s takes %d steps a macro step, and more than %d are not analysed", r.Component, r.Steps, mostRates)
		}
	}
	if s.period() > mostRates {
		return fmt.Sprintf("the slow components take part together after more than %d macro steps, and such a coupling is not analysed", mostRates)
	}
	return ""
}

// noLocal returns why the error in one macro step is not looked at with the rates, "" if it is.
func (p *point) noLocal(s *scheme) string {
	const pieces = finer * 10 / localSpan // of the reference in the shortest macro step that is looked at
	for _, r := range s.rates {
		if r.Over > 1 {
			return fmt.Sprintf("%s takes one step over %d macro steps, so that one macro step has no error of its own", r.Component, r.Over)
		}
		if pieces%r.Steps != 0 {
			return fmt.Sprintf("%s takes %d steps a macro step, into which those of the motion that it is compared with do not divide", r.Component, r.Steps)
		}
		for _, m := range p.models {
			if m.info.Name == r.Component && m.order < s.order {
				return fmt.Sprintf("%s takes the polynomials of its inputs in %d steps a macro step as values that it holds, and what that does is not told from its steps", r.Component, r.Steps)
			}
		}
	}
	return ""
}
