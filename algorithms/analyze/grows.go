package analyze

import (
	"fmt"
	"math"
	"math/cmplx"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
)

const (
	// growsBy is by what factor a motion of the model has to have grown, from the first third of the steps to the
	// last, that is looked for on the component.
	growsBy = 10
	// growsMost are the steps over which it is followed at most.
	growsMost = 5000
	// growsPart is the part of the motion of the model that the component has to show then.
	growsPart = 0.5
)

// unstable tells that the model grows by itself by more than it may be off by.
func unstable(r *linear.Response) bool {
	return cmplx.Abs(largestOf(r)) > 1+max(marginal, slowPart*r.Misfit)
}

// grows fails if the model of subsystem i over steps of size h grows by itself and the component does not: a
// motion along which the component is not linear shows in a model as states, and growth, that there are not.
//
// One input is moved over one step by little, as for the model, and what becomes of the difference that
// this makes is compared, while the difference in the model grows by some factors of e.
func (p *point) grows(i int, h float64, r *linear.Response) error {
	if !unstable(r) || r.Ways == nil {
		return nil
	}
	m, size := p.models[i], cmplx.Abs(largestOf(r))
	does, says, longest := 0.0, 0.0, 0 // squares over the last third, each output by its largest in the model
	for k, way := range r.Ways {
		if way == 0 {
			continue
		}
		expected, err := p.grown(i, h, r, k)
		if err != nil {
			return err
		}
		if expected == nil {
			continue
		}
		u := make([][]float64, len(expected))
		for n := range u {
			u[n] = make([]float64, len(r.Ways))
		}
		base, err := p.lead(i, h, u)
		if err != nil {
			return err
		}
		u[0][k] = way
		moved, err := p.lead(i, h, u)
		if err != nil {
			return err
		}
		last := len(u) - len(u)/3
		for o := range m.outputs() {
			if !(peak(expected[last:], o) >= growsBy*peak(expected[:len(u)/3], o)) {
				continue
			}
			for n := last; n < len(u); n++ {
				v, d := expected[n][o]/peak(expected[last:], o), (moved[n][o]-base[n][o])/peak(expected[last:], o)
				says, does = says+v*v, does+d*d
			}
		}
		longest = max(longest, len(u))
	}
	if says > 0 && !(math.Sqrt(does/says) >= growsPart) {
		return fmt.Errorf("its model grows by %.6g in a step with its inputs held, and it does not (it moves by %.2g of that after %d steps): it is not linear along its motion; another time (--at), or smaller motions, may show more", size, math.Sqrt(does/says), longest)
	}
	return nil
}

// grown moves input k of the model over one step, and gives its outputs until one has grown; nil = none has.
func (p *point) grown(i int, h float64, r *linear.Response, k int) (y [][]float64, err error) {
	m := p.models[i]
	model := newTwin(m.info, r, h, 0)
	model.u[0][k] = r.Ways[k]
	for n := range growsMost {
		if _, err := model.Step(p.ctx, 0, h); err != nil {
			return nil, err
		}
		clear(model.u[0])
		y = append(y, append([]float64(nil), model.y...))
		if n < 2 || n > 20 && n%10 > 0 {
			continue
		}
		for o := range m.outputs() {
			if first := peak(y[:len(y)/3], o); first > 0 && peak(y[len(y)-len(y)/3:], o) >= growsBy*first {
				return y, nil
			}
		}
	}
	return nil, nil
}

// peak gives the largest size of output o.
func peak(y [][]float64, o int) float64 {
	most := 0.0
	for _, v := range y {
		most = max(most, math.Abs(v[o]))
	}
	return most
}
