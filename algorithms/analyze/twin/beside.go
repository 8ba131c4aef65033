package twin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
)

const (
	// besideSteps and besideMost are the least and the largest number of steps of the analysis over which a component
	// is compared with its model; besideSilent is the largest where no input moves any output.
	besideSteps, besideMost, besideSilent = 50, 1000, 20_000
	// besideOff is the largest deviation of an output, relative to how much the inputs move it.
	besideOff = Strayed
	// besideSeen is the least predicted part of the squared movement for a model that contains some of the response.
	besideSeen = 1e-6
	// besideHeld is the largest number of steps over which a random input is held.
	besideHeld = 40
)

// Strayed is the largest distance of a subsystem from its model along the forecast motion: the errors of
// strategies, which are differences on the models, are then right within a factor of 3.
const Strayed = 0.3

// Beside steps subsystem i and its model r with slightly varied inputs over the time of the forecast, up to stop (s). It
// returns "" if they agree, else how they differ. Responses are measured over few steps only: a component that
// reacts later, because of dead time or slow sampling, looks like one without response there.
//
// Outputs are compared relative to those with held inputs, which excludes the motion of the
// subsystem by itself. If that motion differs from the model because it leaves the linear range, deviations of the
// same order are accepted.
func (p *Point) Beside(i int, r *linear.Response, stop float64) (string, error) {
	m := p.Models[i]
	if m.Source != Measured && m.Source != Renewed || m.Info.Stateless || r.Ways == nil {
		return "", nil
	}
	var fed []int
	for k := range m.Info.In {
		if p.X.Sys.SourceSubsystem(p.X.Sys.InAt[i]+k) >= 0 {
			fed = append(fed, k)
		}
	}
	if len(fed) == 0 {
		return "", nil
	}
	longest := int(min((stop-p.T)/p.Step, besideSilent))
	steps := max(min(longest, besideMost), besideSteps)
	if len(p.Models) > Many {
		steps = min(steps, FewerSteps)
	}
	why, moved, err := p.besideOver(i, r, fed, steps)
	if err != nil || why != "" || moved || longest <= steps {
		return why, err
	}
	why, _, err = p.besideOver(i, r, fed, longest)
	return why, err
}

// besideOver is Beside over a number of steps; moved reports whether the inputs move an output.
func (p *Point) besideOver(i int, r *linear.Response, fed []int, steps int) (why string, moved bool, err error) {
	m := p.Models[i]
	u := make([][]float64, steps)
	for n := range u {
		u[n] = make([]float64, len(m.Info.In))
	}
	still, err := p.Lead(i, p.Step, u)
	if err != nil {
		return "", false, err
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, k := range fed {
		for n, until, v := 0, 0, 0.0; n < steps; n++ {
			if n == until {
				until += 1 + rng.IntN(besideHeld)
				v = r.Ways[k] * (2*rng.Float64() - 1)
			}
			u[n][k] = v
		}
	}
	led, err := p.Lead(i, p.Step, u)
	if err != nil {
		return "", false, err
	}
	sums, err := p.deviations(i, r, u, still, led)
	if err != nil {
		return "", false, err
	}
	root := func(v float64) float64 { return math.Sqrt(v / float64(steps)) }
	for o, s := range sums {
		noise := 100 * max(linear.OutputRounding, p.X.Replay(i).Replays) * s.size
		if root(s.moves) <= noise && root(s.predicted) <= noise {
			continue
		}
		moved = true
		allowed := besideOff
		if s.by > 0 && root(s.by) > noise && s.predicted > besideSeen*s.moves { // a model without any of the response gets no allowance
			allowed = max(allowed, 10*math.Sqrt(s.astray/s.by))
		}
		if off := math.Sqrt(s.off / max(s.moves, s.predicted)); !(off <= allowed) && root(s.off) > noise {
			names := make([]string, len(fed))
			for n, k := range fed {
				names[n] = m.Info.In[k].Name
			}
			return fmt.Sprintf("%s over %d steps of %.4g s with varied inputs: %s is off its model by %.2g of how much %s "+
				"moves it: it reacts later than its model shows (dead time, slow sampling), or is not linear [nonlinear]",
				m.Info, steps, p.Step, m.Info.Out[o].Name, off, SomeNames(names)), true, nil
		}
	}
	return "", moved, nil
}

// deviation sums squares over the steps of an output.
type deviation struct {
	off, moves, predicted float64 // model from component, effect of the inputs on the component, on the model
	astray, by            float64 // own motion of the model from that of the component, that of the component
	size                  float64 // largest magnitude
}

// deviations compares subsystem i with its model: u are the varied inputs, still and led the outputs of the subsystem with
// held and with varied inputs.
func (p *Point) deviations(i int, r *linear.Response, u, still, led [][]float64) ([]deviation, error) {
	m := p.Models[i]
	model, own := NewTwin(m.Info, r, p.Step, 0), NewTwin(m.Info, r, p.Step, 0)
	if r.Whole != nil {
		own = NewTwin(m.Info, r.Whole, p.Step, 0)
	}
	own.Driven = true
	model.Restart()
	own.Restart()
	sums := make([]deviation, m.Outputs())
	for n := range u {
		copy(model.U[0], u[n])
		for _, t := range []*Twin{model, own} {
			if _, err := t.Step(p.Ctx, 0, p.Step); err != nil {
				return nil, err
			}
		}
		for o := range sums {
			s := &sums[o]
			y0 := p.Y[p.X.Sys.OutAt[i]+o]
			d, by := led[n][o]-still[n][o], still[n][o]-y0
			s.off += (d - model.Y[o]) * (d - model.Y[o])
			s.moves += d * d
			s.predicted += model.Y[o] * model.Y[o]
			s.astray += (by - own.Y[o]) * (by - own.Y[o])
			s.by += by * by
			s.size = max(s.size, math.Abs(still[n][o]))
		}
	}
	return sums, nil
}

// SomeNames lists the first names, and how many more there are.
func SomeNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
