package scan

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// Lengths of followed runs in steps, lags of their Hankel matrix, and the largest number of combined outputs.
const (
	followedSteps = 800
	followedFewer = 300 // of many subsystems
	followedTail  = 160
	followedLags  = 12
	followedMost  = 8
	slightly      = 1e-3 // growth per step below which the modes are less certain than the growth of all outputs
)

// followed runs the strategy from random states and finds the dominant mode in the last
// outputs, by the eigensystem of their Hankel matrix.
func (p *Scanner) followed(s *twin.Scheme, h float64, twins []*twin.Twin, sys *master.System, ny int) (Eigen, error) {
	if err := p.scatter(s, h, twins, rand.New(rand.NewPCG(1, 2))); err != nil {
		return Eigen{}, err
	}
	steps := followedSteps
	if len(twins) > twin.Many {
		steps = followedFewer
	}
	run, err := s.Start(sys, h, steps*s.Period())
	if err != nil {
		return Eigen{}, err
	}
	defer run.Close()
	if err := run.Start(p.Ctx); err != nil {
		return Eigen{}, err
	}
	var series [][]float64
	period := s.Period()
	for range steps {
		if err := p.steps(run, period); err != nil {
			if len(series) > followedTail {
				break // overflow
			}
			return Eigen{}, err
		}
		y := append([]float64(nil), run.Point().Y...)
		largest := 0.0
		for _, v := range y {
			largest = max(largest, math.Abs(v))
		}
		if largest > 1e200 || largest < 1e-200 || math.IsNaN(largest) {
			break
		}
		series = append(series, y)
	}
	if len(series) < 4*followedLags {
		return Eigen{}, errors.New("the coupled run diverges to NaN or infinity at once [diverges]")
	}
	later := series[len(series)/3:]
	tail := series[max(0, len(series)-followedTail):]
	mode, err := dominant(tail)
	if err != nil || mode.Lasts && linear.Stable(mode.Radius()) {
		return mode, err
	}
	if !linear.Stable(mode.Radius()) {
		seen, grown := growth(tail), 0.5*math.Log(mode.Radius())
		switch little := len(twins) > twin.Many || mode.Radius() < 1+slightly; {
		case little && math.Log(seen) < grown:
			// The growth of all outputs is more certain than that of a mode with a small amplitude.
			mode.Value *= complex(min(seen, 1)/mode.Radius(), 0)
		case math.Log(seen) < grown || math.Log(growth(later)) < grown:
			return Eigen{}, fmt.Errorf("followed over %d steps, one mode seems to grow by %.6g in each, but all outputs "+
				"together grow by %.6g: the models that the strategy identifies have noise [noise]", len(series), mode.Radius(), growth(later))
		}
	}
	return mode, resolved(later, mode.Radius())
}

// scatter puts the twins of all subsystems into random states.
func (p *Scanner) scatter(s *twin.Scheme, h float64, twins []*twin.Twin, rng *rand.Rand) error {
	for i := range twins {
		if err := p.scatterOne(s, h, twins, i, rng); err != nil {
			return err
		}
	}
	return nil
}

// scatterOne puts the twin of subsystem i into a random state.
func (p *Scanner) scatterOne(s *twin.Scheme, h float64, twins []*twin.Twin, i int, rng *rand.Rand) error {
	t := twins[i]
	for k := range t.X0 {
		t.X0[k] = rng.NormFloat64()
	}
	r, err := p.Over(i, p.StepOf(i, s, h))
	if err != nil {
		return err
	}
	if clear(t.Y0); r.C != nil {
		linear.Multiply(t.Y0, r.C, t.X0, 1)
	}
	return nil
}

// nearly is the distance from 1 below which a followed radius is checked by resolved.
const nearly = 0.03

// alikeRadius is the largest difference of followed radii that counts as none.
const alikeRadius = 2e-4

// again are the strides of these checks: with points farther apart, slow modes differ more, and noise matters less.
var again = []int{2, 3}

// resolved returns an error if points of a followed run that lie farther apart give another radius, with the opposite
// stability.
func resolved(series [][]float64, radius float64) error {
	if math.Abs(radius-1) > nearly {
		return nil
	}
	for _, stride := range again {
		var apart [][]float64
		for k := (len(series) - 1) % stride; k < len(series); k += stride {
			apart = append(apart, series[k])
		}
		if apart = apart[max(0, len(apart)-followedTail):]; len(apart) < 4*followedLags {
			break
		}
		mode, err := dominant(apart)
		if err != nil {
			return err
		}
		other := math.Pow(mode.Radius(), 1/float64(stride))
		if linear.Stable(other) != linear.Stable(radius) && math.Abs(other-radius) > alikeRadius {
			return fmt.Errorf("followed in a run of the models, it has a radius of %.6g or of %.6g, depending on the points "+
				"used: the models that the strategy identifies have noise [noise]", radius, other)
		}
	}
	return nil
}

// growth returns the growth per step of a series, from the root mean squares of its first and last third,
// each output relative to its largest magnitude.
func growth(series [][]float64) float64 {
	third := len(series) / 3
	sum, first := 0.0, 0.0
	size := make([]float64, len(series[0]))
	for _, y := range series {
		for o, v := range y {
			size[o] = max(size[o], math.Abs(v))
		}
	}
	for k := range third {
		for o, v := range size {
			if v > 0 {
				first += series[k][o] / v * series[k][o] / v
				last := series[len(series)-third+k][o] / v
				sum += last * last
			}
		}
	}
	return math.Pow(sum/first, 0.5/float64(len(series)-third))
}

// hankel returns the Hankel matrix of a series of outputs, each relative to its largest magnitude; more than followedMost
// outputs are combined at random. There is one column more than columns.
func hankel(series [][]float64) (h *mat.Dense, columns int) {
	ny := len(series[0])
	size := make([]float64, ny)
	for _, y := range series {
		for o, v := range y {
			size[o] = max(size[o], math.Abs(v))
		}
	}
	mix := mat.NewDense(min(ny, followedMost), ny, nil)
	rng := rand.New(rand.NewPCG(3, 4))
	rows, _ := mix.Dims()
	for i := range rows {
		for o := range ny {
			switch {
			case size[o] == 0:
			case rows == ny && i == o:
				mix.Set(i, o, 1/size[o])
			case rows < ny:
				mix.Set(i, o, rng.NormFloat64()/size[o])
			}
		}
	}
	columns = len(series) - followedLags
	h = mat.NewDense(rows*followedLags, columns+1, nil)
	v := mat.NewVecDense(rows, nil)
	for k, y := range series {
		v.MulVec(mix, mat.NewVecDense(ny, y))
		for lag := range followedLags {
			if c := k - lag; c >= 0 && c <= columns {
				for i := range rows {
					h.Set(lag*rows+i, c, v.AtVec(i))
				}
			}
		}
	}
	return h, columns
}

// dominant finds the mode of largest growth in a series of outputs.
func dominant(series [][]float64) (Eigen, error) {
	h, columns := hankel(series)
	rows, _ := h.Dims()
	h0, h1 := mat.DenseCopyOf(h.Slice(0, rows, 0, columns)), h.Slice(0, rows, 1, columns+1)
	var svd mat.SVD
	if !svd.Factorize(h0, mat.SVDThin) {
		return Eigen{}, errors.New("the coupled run has no singular values")
	}
	sv := svd.Values(nil)
	n := 0
	for n < len(sv) && sv[n] > 1e-9*sv[0] {
		n++
	}
	if n == 0 {
		return Eigen{}, nil
	}
	var u, w mat.Dense
	svd.UTo(&u)
	svd.VTo(&w)
	un, wn := u.Slice(0, rows, 0, n), w.Slice(0, columns, 0, n)
	var t, a mat.Dense
	t.Mul(un.T(), h1)
	a.Mul(&t, wn)
	for i := range n {
		for j := range n {
			a.Set(i, j, a.At(i, j)/sv[j])
		}
	}
	var e mat.Eigen
	if !e.Factorize(&a, mat.EigenRight) {
		return Eigen{}, errors.New("the eigenvalues of the coupled run were not found")
	}
	values := e.Values(nil)
	amplitudes, err := participation(&e, un, h0, n)
	if err != nil {
		return Eigen{}, err
	}
	most := 0.0
	for _, v := range amplitudes {
		most = max(most, v)
	}
	worst, lasts := limiting(values, func(i int) bool { return amplitudes[i] > 1e-6*most }) // smaller amplitudes are noise
	mode := Eigen{Value: values[worst], Lasts: lasts}
	for _, v := range series[len(series)-1] {
		mode.Outputs = append(mode.Outputs, math.Abs(v))
	}
	return mode, nil
}

// participation returns the amplitude of each mode in the last column.
func participation(e *mat.Eigen, un, h0 mat.Matrix, n int) ([]float64, error) {
	var vectors mat.CDense
	e.VectorsTo(&vectors)
	_, columns := h0.Dims()
	var x mat.VecDense
	x.MulVec(un.T(), mat.NewVecDense(h0.(*mat.Dense).RawMatrix().Rows, mat.Col(nil, columns-1, h0)))
	// V b = x in real numbers.
	m, right := mat.NewDense(2*n, 2*n, nil), mat.NewVecDense(2*n, nil)
	for i := range n {
		for j := range n {
			v := vectors.At(i, j)
			m.Set(i, j, real(v))
			m.Set(i, n+j, -imag(v))
			m.Set(n+i, j, imag(v))
			m.Set(n+i, n+j, real(v))
		}
		right.SetVec(i, x.AtVec(i))
	}
	var b mat.VecDense
	if err := b.SolveVec(m, right); err != nil {
		var condition mat.Condition
		if !errors.As(err, &condition) {
			return nil, err
		}
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Hypot(b.AtVec(i), b.AtVec(n+i))
	}
	return out, nil
}

// steps takes some macro steps.
func (p *Scanner) steps(run *master.Run, n int) error {
	for range n {
		if _, err := twin.MacroStep(p.Ctx, run); err != nil {
			return err
		}
	}
	return nil
}
