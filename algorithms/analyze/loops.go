package analyze

import (
	"errors"
	"fmt"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// errOnlyInitial means that a dependency exists only in the initialisation.
var errOnlyInitial = errors.New("its outputs depend on these inputs during the initialisation only")

// slopes returns the derivatives of the outputs of subsystem i by its inputs, [ny × nu]: immediate ones for h = 0, else
// those over a step of size h with held inputs.
func (p *analysis) slopes(i int, h float64) (*mat.Dense, error) {
	info, sub := p.X.Sys.Infos[i], p.X.Sys.Subsystems[i]
	ny, nu := p.Models[i].Outputs(), len(info.In)
	if h > 0 {
		r, err := p.Over(i, h)
		if err != nil {
			return nil, err
		}
		return r.D[0], nil
	}
	d := mat.NewDense(max(ny, 1), max(nu, 1), nil)
	if deriver, ok := master.As[master.DirectionalDeriver](sub); ok && info.Caps.DirectionalDerivative {
		du, dy := make([]float64, nu), make([]float64, len(info.Out))
		for k := range nu {
			clear(du)
			du[k] = 1
			if err := deriver.DirectionalDerivative(du, dy); err != nil {
				return nil, fmt.Errorf("%s: %w", info, err)
			}
			for o := range ny {
				d.Set(o, k, dy[o])
			}
		}
		return d, nil
	}
	// Extrapolation of D(h) = D + c h + d h² + … from three short steps to h = 0.
	const short = 0.1
	weights := []float64{1. / 3, -2, 8. / 3}
	for n, w := range weights {
		r, err := p.Over(i, short*p.Step/float64(int(1)<<n))
		if err != nil {
			return nil, err
		}
		if info.Stateless {
			return r.D[0], nil
		}
		for o := range ny {
			for k := range nu {
				d.Set(o, k, d.At(o, k)+w*r.D[0].At(o, k))
			}
		}
	}
	return d, nil
}

// gain returns the spectral radius of L D over the Real inputs on a loop, D being the slopes for h.
func (p *analysis) gain(l *master.Loop, h float64) (float64, error) {
	sys := p.X.Sys
	var ins []int // entries of u
	for _, name := range l.Variables {
		if u, ok := sys.FindIn(name); ok {
			ins = append(ins, u)
		} else if _, ok := sys.FindOut(name); !ok {
			return 0, fmt.Errorf("%s on it is not a Real", name)
		}
	}
	m := mat.NewDense(len(ins), len(ins), nil)
	for from, u := range ins {
		i := num.Owner(sys.InAt, u)
		d, err := p.slopes(i, h)
		if err != nil {
			return 0, err
		}
		info := sys.Infos[i]
		for to, v := range ins {
			y, ok := sys.Source(v)
			if !ok || y < sys.OutAt[i] || y >= sys.OutAt[i+1] {
				continue
			}
			o := y - sys.OutAt[i]
			in := u - sys.InAt[i]
			switch on := func(f *master.Feedthrough) bool { return o < len(f.On) && slices.Contains(f.On[o], in) }; {
			case h > 0 || on(&info.Step):
				m.Set(to, from, sys.Gain(v)*d.At(o, in))
			case l.Initialization && on(&info.Init):
				return 0, fmt.Errorf("%s: %w", info, errOnlyInitial)
			}
		}
	}
	var e mat.Eigen
	if !e.Factorize(m, mat.EigenNone) {
		return 0, errors.New("its eigenvalues were not found")
	}
	worst := 0.0
	for _, v := range e.Values(nil) {
		worst = max(worst, cmplx.Abs(v))
	}
	return worst, nil
}

// loops returns the loops with their gains.
func (p *analysis) loops(found []master.Loop) []Loop {
	out := []Loop{}
	for _, l := range found {
		loop := Loop{Loop: l}
		if g, err := p.gain(&l, 0); err == nil {
			loop.Gain = &g
		} else {
			loop.Why = err.Error()
		}
		if !l.Initialization {
			if g, err := p.gain(&l, p.Step); err == nil {
				loop.StepGain = &g
			}
		}
		out = append(out, loop)
	}
	return out
}
