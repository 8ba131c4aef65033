package twin

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

const (
	// responseSteps is the number of points of a response.
	responseSteps = 25
	// longestStride is the largest number of short steps between two points.
	longestStride = 80
	// measuredNoise is the size of negligible singular values of a measured response, relative to the
	// largest, if replays are exact.
	measuredNoise = 1e-10
	// atRest is the relative change of an output that counts as none.
	atRest = 1e-12
	// Good is the misfit of a model below which the search for a better one ends.
	Good = 1e-4
	// OwnMisfit is the largest distance of the motion of a subsystem with held inputs from that of its model.
	OwnMisfit = 1e-3
	// untrustedShift is the largest relative difference of the responses to the same move at different steps.
	untrustedShift = 0.1
)

// kicks are the moves of an input, relative to its magnitude, in the order in which they are tried: small ones for
// nonlinear subsystems, large ones for inaccurate solvers and for unknown magnitudes.
var kicks = []float64{1e-3, 1e-4, 1e-5, 1e-6, 1e-2, 1e-1, 1, 1e2, 1e4}

// measure returns the response of subsystem i over steps of size h, measured with the kick that gives the best model.
func (p *Point) measure(i int, h float64) (best *linear.Response, err error) {
	for _, kick := range kicks {
		r, failed := p.measureBy(i, h, kick)
		if failed != nil {
			err = failed
			continue
		}
		if best == nil || best.Silent() && !r.Silent() || r.Misfit < best.Misfit && r.Silent() == best.Silent() {
			best = r
		}
		if best.Misfit <= Good && !best.Silent() {
			break
		}
	}
	if best == nil {
		return nil, err
	}
	if best.Misfit > linear.Untrusted {
		return nil, fmt.Errorf("its responses are not those of a linear system of few states: they are off by %.2g [nonlinear]", best.Misfit)
	}
	if err := p.invariant(i, h, best); err != nil {
		return nil, err
	}
	return best, p.grows(i, h, best)
}

// measureBy returns the response of subsystem i over steps of size h. From the operating point, it steps with held
// inputs, and with each coefficient of each input moved up and down over the first step.
func (p *Point) measureBy(i int, h, kick float64) (*linear.Response, error) {
	m, x := p.Models[i], p.X
	ny, nu := m.Outputs(), len(m.Info.In)
	powers := 1 + m.Order
	base, err := p.follow(i, h, -1, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	stride, ways := p.stride(h), make([]float64, nu)
	markov := make([]*mat.Dense, len(base))
	for j := range markov {
		markov[j] = mat.NewDense(max(ny, 1), max(nu*powers, 1), nil)
	}
	noise := max(measuredNoise, 100*x.Replay(i).Replays)
	rounding, sizes := mat.NewDense(max(ny, 1), max(nu*powers, 1), nil), make([]float64, ny)
	for _, y := range base {
		for o, v := range y {
			sizes[o] = max(sizes[o], math.Abs(v))
		}
	}
	for power := range powers {
		for k := range nu {
			// The difference of up and down is the response, the deviation of their mean is noise and nonlinearity.
			way := p.inputSize(i, k) * max(kick, math.Sqrt(x.Replay(i).Replays))
			if power == 0 {
				ways[k] = way
			}
			there, err := p.follow(i, h, k, power, way, 0)
			if err != nil {
				return nil, err
			}
			back, err := p.follow(i, h, k, power, -way, 0)
			if err != nil {
				return nil, err
			}
			for o := range ny {
				off := max(linear.OutputRounding, x.Replay(i).Replays) * sizes[o]
				for j := range there {
					markov[j].Set(o, power*nu+k, (there[j][o]-back[j][o])/(2*way))
					off = max(off, math.Abs(there[j][o]+back[j][o]-2*base[j][o])/2)
				}
				rounding.Set(o, power*nu+k, off/way)
			}
		}
	}
	a, b, c, err := linear.Realise(markov, rounding, noise, stride)
	if err != nil {
		return nil, err
	}
	r := &linear.Response{A: a, C: c, Misfit: linear.Misfit(markov, rounding, a, b, c), Ways: ways}
	for power := range powers {
		r.D = append(r.D, mat.DenseCopyOf(markov[0].Slice(0, max(ny, 1), power*nu, max((power+1)*nu, 1))))
		if b != nil {
			n, _ := b.Dims()
			r.B = append(r.B, mat.DenseCopyOf(b.Slice(0, n, power*nu, (power+1)*nu)))
		}
	}
	for _, y := range base {
		for o := range y {
			if y[o] -= p.Y[x.Sys.OutAt[i]+o]; math.Abs(y[o]) <= atRest*sizes[o] {
				y[o] = 0
			}
		}
	}
	if r.OwnMisfit = r.Drive(base); r.OwnMisfit > OwnMisfit {
		r.TakeWhole(markov, rounding, noise, base, stride)
	}
	return r, nil
}

// inputSize returns the size of input k of subsystem i: its largest magnitude up to the operating point, or the typical
// one if the former is only rounding.
func (p *Point) inputSize(i, k int) float64 {
	size, typical := p.sizes[p.X.Sys.InAt[i]+k], p.Models[i].Info.In[k].Magnitude()
	if size < linear.Nothing*typical {
		return typical
	}
	return size
}

// stride returns the number of steps between two points of a response.
func (p *Point) stride(h float64) int {
	return int(min(max(math.Ceil(p.Window/(responseSteps*h)), 1), longestStride))
}

// follow returns the outputs of subsystem i after each step from the operating point on, with held inputs, except that
// way is added to the coefficient of (s/h)^power of input k over step number when, or over all steps if when is
// negative. k < 0 = all inputs are held.
func (p *Point) follow(i int, h float64, k, power int, way float64, when int) (out [][]float64, err error) {
	x, m := p.X, p.Models[i]
	sub, done, err := p.begin(i)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	derivatives, _ := master.As[master.InputDerivativeSetter](sub)
	hold := x.W[x.Sys.InAt[i]:x.Sys.InAt[i+1]]
	u, du, y := make([]float64, len(hold)), make([]float64, len(hold)), make([]float64, len(m.Info.Out))
	for j := range 1 + (responseSteps-1)*p.stride(h) {
		copy(u, hold)
		if (j == when || when < 0) && k >= 0 && power == 0 {
			u[k] += way
		}
		if err := sub.SetInputs(u); err != nil {
			return nil, err
		}
		if m.Order > 0 {
			factor := 1.0 // m!/h^m
			for order := 1; order <= m.Order; order++ {
				factor *= float64(order) / h
				clear(du)
				if (j == when || when < 0) && k >= 0 && order == power {
					du[k] = factor * way
				}
				if err := derivatives.SetInputDerivatives(order, du); err != nil {
					return nil, err
				}
			}
		}
		if err := p.take(i, sub, j, h); err != nil {
			return nil, err
		}
		if err := p.X.Outputs(i, sub, y); err != nil {
			return nil, err
		}
		out = append(out, append([]float64(nil), y[:m.Outputs()]...))
	}
	return out, nil
}
