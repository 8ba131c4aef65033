package analyze

import (
	"fmt"
	"math"
	"math/cmplx"
)

// Growth is a motion that grows whatever the macro step: by a factor of e every 1/Rate seconds.
type Growth struct {
	Component string  `json:"component,omitempty"` // by itself, its inputs held; "" = of the coupled system
	Rate      float64 `json:"rate"`                // 1/s
	Frequency float64 `json:"frequency"`           // Hz
}

func (g *Growth) String() string {
	motion := "a motion without oscillation"
	if g.Frequency > 0 {
		motion = fmt.Sprintf("an oscillation of %.4g Hz", g.Frequency)
	}
	return fmt.Sprintf("%s grows by a factor of e every %.3g s", motion, 1/g.Rate)
}

// alone finds the components that are unstable by themselves.
func (p *point) alone(H float64) (out []Growth) {
	for i, m := range p.models {
		r, err := p.over(i, H)
		if err != nil {
			continue
		}
		worst, grows := largestOf(r), unstable(r)
		if own, uncertain, err := p.free(i, H); err == nil && cmplx.Abs(own) > cmplx.Abs(worst) {
			worst, grows = own, cmplx.Abs(own) > 1+max(marginal, uncertain)
		}
		if grows {
			out = append(out, Growth{m.info.Name, math.Log(cmplx.Abs(worst)) / H, math.Abs(cmplx.Phase(worst)) / (2 * math.Pi * H)})
		}
	}
	return out
}

// ownRates is how far the rates of growth at the shortest steps may be apart that are taken for that of the
// system itself, relative to the largest.
const ownRates = 0.02

// whole finds the growth of the coupled system that no algorithm and no step can change: with all the algorithms, the
// shortest steps of the scan leave the same rate. Of a motion that is too large for linear models nothing of the
// kind is known. frequency gives that of a strategy's mode.
func (r *Report) whole(all []*scheme, frequency func(s *scheme, h float64) float64) *Growth {
	if r.Large != "" {
		return nil
	}
	least, most, n, last := math.Inf(1), 0.0, 0, -1
	var at float64
	for k := range r.Strategies {
		s := &r.Strategies[k]
		if all[k].hidden || len(s.Points) == 0 || s.Multiples > 0 {
			continue
		}
		first := s.Points[0]
		if stable(first.Radius) {
			return nil
		}
		rate := math.Log(first.Radius) / first.Step
		least, most = min(least, rate), max(most, rate)
		n, last, at = n+1, k, first.Step
	}
	if n < 2 || most-least > ownRates*most {
		return nil
	}
	return &Growth{Rate: most, Frequency: frequency(all[last], at)}
}
