package twin

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
)

// later are the steps at which inputs are moved again, to compare the responses.
var later = []int{1, 3}

// invariant returns an error if the response of subsystem i depends on when an input is moved: a subsystem with
// internal steps of its own misses some moves.
func (p *Point) invariant(i int, h float64, r *linear.Response) error {
	m := p.Models[i]
	base, err := p.follow(i, h, -1, 0, 0, 0)
	if err != nil {
		return err
	}
	const remedy = "; use whole multiples of its own step as macro step, or another time (--at) [own-steps]"
	const always = -1
	stands := func(y [][]float64) error {
		if j := stillness(p.Y[p.X.Sys.OutAt[i]:p.X.Sys.OutAt[i]+m.Outputs()], y); j > 0 {
			return fmt.Errorf("its outputs do not change over step %d but change in the steps before and after it: it takes "+
				"internal steps of its own%s", j+1, remedy)
		}
		return nil
	}
	if err := stands(base); err != nil {
		return err
	}
	for k := range m.Info.In {
		if r.Ways[k] == 0 {
			continue
		}
		moved, err := p.follow(i, h, k, 0, r.Ways[k], always)
		if err != nil {
			return err
		}
		if err := stands(moved); err != nil {
			return err
		}
		var first [][]float64
		largest := make([]float64, m.Outputs())
		for _, when := range append([]int{0}, later...) {
			y, err := p.follow(i, h, k, 0, r.Ways[k], when)
			if err != nil {
				return err
			}
			for j := range y {
				for o := range y[j] {
					y[j][o] -= base[j][o]
					if when == 0 {
						largest[o] = max(largest[o], math.Abs(y[j][o]))
					}
				}
			}
			if when == 0 {
				first = y
				continue
			}
			for j := when; j < len(y); j++ {
				for o, v := range y[j] {
					noise := 100 * max(linear.OutputRounding, p.X.Replay(i).Replays) * math.Abs(base[j][o])
					if off := math.Abs(v - first[j-when][o]); off > untrustedShift*largest[o]+noise {
						return fmt.Errorf("its response to %s depends on when it is moved (%s is off by %.2g): it takes internal steps "+
							"of its own, or is not linear%s", m.Info.In[k].Name, m.Info.Out[o].Name, off/largest[o], remedy)
					}
				}
			}
		}
	}
	return nil
}

// dither is the relative size, to the largest movement of an output in a step, below which a movement does not count: an
// output at rest may change in its last digit.
const dither = 1e-6

// stillness returns the index of a step over which no output changes, while outputs change in steps before and after it;
// 0 = there is none. start holds the outputs before the first step.
func stillness(start []float64, y [][]float64) int {
	before := func(j int) []float64 {
		if j == 0 {
			return start
		}
		return y[j-1]
	}
	largest := make([]float64, len(start))
	for j := range y {
		for o, v := range y[j] {
			largest[o] = max(largest[o], math.Abs(v-before(j)[o]))
		}
	}
	at, moved := 0, false
	for j := range y {
		moves := false
		for o, v := range y[j] {
			moves = moves || math.Abs(v-before(j)[o]) > dither*largest[o]
		}
		switch {
		case moves && at > 0:
			return at
		case moves:
			moved = true
		case moved && at == 0 && slices.Equal(before(j), y[j]):
			at = j
		}
	}
	return 0
}

const (
	// growsBy is the growth of a motion of the model, from the first third of the steps to the last, from which on the
	// component is compared with it.
	growsBy = 10
	// growsMost is the largest number of these steps.
	growsMost = 5000
	// growsPart is the least part of the motion of the model that the component has to show.
	growsPart = 0.5
)

// grows returns an error if the model of subsystem i over steps of size h grows by itself and the component does not:
// nonlinearity along the motion may appear in a model as states, and growth, that do not exist.
//
// One input is moved a little over one step, as for the model. The differences that this makes in the component and in
// the model are compared until the latter has grown by growsBy.
func (p *Point) grows(i int, h float64, r *linear.Response) error {
	if !r.Unstable() || r.Ways == nil {
		return nil
	}
	m, size := p.Models[i], cmplx.Abs(r.Largest())
	does, says, longest := 0.0, 0.0, 0 // squares of component and model over the last third, outputs by their peak in the model
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
		base, err := p.Lead(i, h, u)
		if err != nil {
			return err
		}
		u[0][k] = way
		moved, err := p.Lead(i, h, u)
		if err != nil {
			return err
		}
		last := len(u) - len(u)/3
		for o := range m.Outputs() {
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
		return fmt.Errorf("its model grows by %.6g in a step with its inputs held, and it does not (it moves by %.2g of "+
			"that after %d steps): it is not linear along its motion; try another time (--at) or smaller motions [nonlinear]", size,
			math.Sqrt(does/says), longest)
	}
	return nil
}

// grown moves input k of the model over one step and returns the outputs until one has grown; nil = none has.
func (p *Point) grown(i int, h float64, r *linear.Response, k int) (y [][]float64, err error) {
	m := p.Models[i]
	model := NewTwin(m.Info, r, h, 0)
	model.U[0][k] = r.Ways[k]
	for n := range growsMost {
		if _, err := model.Step(p.Ctx, 0, h); err != nil {
			return nil, err
		}
		clear(model.U[0])
		y = append(y, append([]float64(nil), model.Y...))
		if n < 2 || n > 20 && n%10 > 0 {
			continue
		}
		for o := range m.Outputs() {
			if first := peak(y[:len(y)/3], o); first > 0 && peak(y[len(y)-len(y)/3:], o) >= growsBy*first {
				return y, nil
			}
		}
	}
	return nil, nil
}

// peak returns the largest magnitude of output o.
func peak(y [][]float64, o int) float64 {
	most := 0.0
	for _, v := range y {
		most = max(most, math.Abs(v[o]))
	}
	return most
}

// departKick is the move of an input, relative to its magnitude, for the comparison with directional derivatives.
const departKick = 1e-3

// compare chooses the model of subsystem i with directional derivatives: that of the derivatives, or, if the internal
// steps of its solver make it behave differently, the one measured on further instances. none is the reason why there
// are no further instances, or "".
func (p *Point) compare(i int, none string, o Options) {
	m := p.Models[i]
	m.Source, m.Why = Directional, p.Broken[i]
	if none == "" {
		from, to := o.Bounds()
		looked := false
		var failed error
		for _, h := range []float64{o.Step, from, math.Sqrt(o.Step * to), to} {
			off, err := p.departure(i, h)
			if err != nil {
				failed = err
				continue
			}
			if looked = true; off > Good {
				m.Source = Renewed
				m.Departs = fmt.Sprintf("over steps of %.4g s they differ by %.2g, probably because of the internal steps of its solver [own-steps]", h, off)
				return
			}
		}
		if looked {
			return
		}
		none = failed.Error()
	}
	caveat := fmt.Sprintf("the internal steps of its solver are not in its model, which is made of directional "+
		"derivatives; these could not be checked: %s [own-steps]", none)
	if m.Why != "" {
		caveat = m.Why + "; " + caveat
	}
	m.Why = caveat
}

// departure returns the largest distance of the responses of subsystem i over steps of size h, to inputs moved over the
// first step, from those of its state space, relative to the largest response of each output to each input.
func (p *Point) departure(i int, h float64) (worst float64, err error) {
	m, x := p.Models[i], p.X
	r, err := m.Space.Over(h, 0)
	if err != nil {
		return 0, err
	}
	base, err := p.follow(i, h, -1, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	exact := linear.Impulse(r, 0, len(base)) // by step
	for k := range m.Info.In {
		way := departKick * p.inputSize(i, k)
		there, err := p.follow(i, h, k, 0, way, 0)
		if err != nil {
			return 0, err
		}
		back, err := p.follow(i, h, k, 0, -way, 0)
		if err != nil {
			return 0, err
		}
		for o := range m.Outputs() {
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
				return 0, fmt.Errorf("%s is not finite [diverges]", m.Info.Out[o].Name)
			}
			if off > noise {
				worst = max(worst, off/largest)
			}
		}
	}
	return worst, nil
}
