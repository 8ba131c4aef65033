package twin

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
)

const (
	// besideSteps and besideMost are how many steps of the analysis a component is followed beside its model
	// at least and at most; besideSilent at most where no input moves any output.
	besideSteps, besideMost, besideSilent = 50, 1000, 20_000
	// besideOff is how far an output may be off, relative to how much the inputs move it: the
	// measure of strayed.
	besideOff = Strayed
	// besideSeen is the part of the square of a movement that a model that has seen something of it predicts.
	besideSeen = 1e-6
	// besideHeld are the steps over which an input is held at most, from 1 on.
	besideHeld = 40
)

// Strayed is how far a subsystem may be from its model along the forecast motion: the errors of
// strategies, which are differences on the models, are trusted within a factor of 3.
const Strayed = 0.3

// Beside takes subsystem i over the time of the forecast, its inputs varied by little over all of it, and its
// model by the same: "" if the model does what the component does. Over the few steps that responses
// are followed, one that acts later, as by dead time or by sampling more slowly, looks like one that
// does not act.
//
// What is compared is how far the outputs are from those with the inputs held, so that the motion of the
// subsystem by itself has no part in it, unless it leads it to where it is no longer linear: what
// is off by no more than that motion is from the one of the model tells nothing.
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

// besideOver is beside over a number of steps; moved tells that inputs move an output.
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
	model, own := NewTwin(m.Info, r, p.Step, 0), NewTwin(m.Info, r, p.Step, 0)
	if r.Whole != nil {
		own = NewTwin(m.Info, r.Whole, p.Step, 0)
	}
	own.Driven = true
	model.Restart()
	own.Restart()
	sums := make([]struct{ off, moves, predicted, astray, by, size float64 }, m.Outputs())
	for n := range steps {
		copy(model.U[0], u[n])
		for _, t := range []*Twin{model, own} {
			if _, err := t.Step(p.Ctx, 0, p.Step); err != nil {
				return "", false, err
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
	root := func(v float64) float64 { return math.Sqrt(v / float64(steps)) }
	for o, s := range sums {
		noise := 100 * max(linear.OutputRounding, p.X.Replay(i).Replays) * s.size
		if root(s.moves) <= noise && root(s.predicted) <= noise {
			continue
		}
		moved = true
		allowed := besideOff
		if s.by > 0 && root(s.by) > noise && s.predicted > besideSeen*s.moves { // what the model has not seen at all excuses nothing
			allowed = max(allowed, 10*math.Sqrt(s.astray/s.by))
		}
		if off := math.Sqrt(s.off / max(s.moves, s.predicted)); !(off <= allowed) && root(s.off) > noise {
			names := make([]string, len(fed))
			for n, k := range fed {
				names[n] = m.Info.In[k].Name
			}
			return fmt.Sprintf("%s over %d steps of %.4g s with varied inputs: %s is off its model by %.2g of how much %s moves it: it acts later than was looked at, as by dead time or by sampling more slowly, or is not linear",
				m.Info, steps, p.Step, m.Info.Out[o].Name, off, SomeNames(names)), true, nil
		}
	}
	return "", moved, nil
}

// SomeNames lists a few names.
func SomeNames(names []string) string {
	const most = 3
	out := ""
	for n, name := range names[:min(len(names), most)] {
		if n > 0 {
			out += ", "
		}
		out += name
	}
	if len(names) > most {
		out += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return out
}
