package analyze

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
)

// departKick is how far an input is moved, relative to its magnitude, to hold directional derivatives against
// what a component does.
const departKick = 1e-3

// compare chooses the model of subsystem i, of which there are directional derivatives: that of these, or
// the one measured on further instances where the steps of its own solver, which derivatives know nothing
// of, make it do otherwise. none tells why there are no further instances, "" if there are.
func (p *point) compare(i int, none string, o Options) {
	m := p.models[i]
	m.source, m.why = Directional, p.broken[i]
	if none == "" {
		from, to := o.bounds()
		looked := false
		var failed error
		for _, h := range []float64{o.Step, from, math.Sqrt(o.Step * to), to} {
			off, err := p.departure(i, h)
			if err != nil {
				failed = err
				continue
			}
			if looked = true; off > good {
				m.source = Renewed
				m.departs = fmt.Sprintf("over steps of %.4g s they are apart by %.2g, as by the steps that its own solver takes", h, off)
				return
			}
		}
		if looked {
			return
		}
		none = failed.Error()
	}
	caveat := fmt.Sprintf("the steps that its own solver takes are not in its model, which is of directional derivatives that could not be held against what it does: %s", none)
	if m.why != "" {
		caveat = m.why + "; " + caveat
	}
	m.why = caveat
}

// departure tells how far the responses of subsystem i over steps of size h to inputs held over the first of
// them are from those of its state space, relative to the largest of each output to each input.
func (p *point) departure(i int, h float64) (worst float64, err error) {
	m, x := p.models[i], p.x
	r, err := m.space.Over(h, 0)
	if err != nil {
		return 0, err
	}
	base, err := p.follow(i, h, -1, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	exact := linear.Impulse(r, 0, len(base)) // by step
	for k := range m.info.In {
		way := departKick * p.inputSize(i, k)
		there, err := p.follow(i, h, k, 0, way, 0)
		if err != nil {
			return 0, err
		}
		back, err := p.follow(i, h, k, 0, -way, 0)
		if err != nil {
			return 0, err
		}
		for o := range m.outputs() {
			largest, off, noise := 0.0, 0.0, 0.0
			for j := range base {
				want := 0.0
				if j < len(exact) {
					want = exact[j].At(o, k)
				}
				got := (there[j][o] - back[j][o]) / (2 * way)
				largest = max(largest, math.Abs(want), math.Abs(got))
				off = max(off, math.Abs(got-want))
				noise = max(noise, 100*max(linear.OutputRounding, x.Replay(i).Replays)*math.Abs(base[j][o])/way)
			}
			if !linear.Finite(off) {
				return 0, fmt.Errorf("%s is not finite", m.info.Out[o].Name)
			}
			if off > noise {
				worst = max(worst, off/largest)
			}
		}
	}
	return worst, nil
}
