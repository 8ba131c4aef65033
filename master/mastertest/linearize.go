package mastertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
)

// How far derivatives may be off differences of two steps: a subsystem solves
// its equations by steps of its own, forward Euler in tenths of H for one, which
// is a tenth off in what is integrated twice.
const (
	slopeTolerance = 0.15
	slopeFloor     = 1e-6 // of the largest slope of the same output
	slopeSeed      = 1e-3 // of the input, at least of 1

	// Many take differences themselves, about a point that depends on what is
	// asked for.
	slopeNoise = 1e-6
)

// TestLinearizer checks that the derivatives of a subsystem that has them
// (master.Linearizer) are linear in their seeds, that nil stands for zero and for
// what is not wanted, that asking for them leaves the next outputs as they are, to
// a thousandth for a solver that starts anew, and that they agree with differences
// of outputs: from the derivatives at a communication point it
// predicts how the outputs after one more step, H small against the time
// constants, follow the inputs, by the exponential of the linear system, and
// compares with steps under inputs that differ. Internal outputs take no part,
// nor does a comparison for a subsystem that hides its states. It gives all
// violations, joined. The arguments are those of TestSubsystem.
func TestLinearizer(fresh func() (master.Subsystem, error), u []float64, t0, H float64) error {
	plain, _, err := linearized(fresh, u, nil, t0, H, nil)
	if err != nil {
		return err
	}
	var j *jacobians
	y, info, err := linearized(fresh, u, nil, t0, H, func(s master.Subsystem) error {
		var err error
		j, err = takeJacobians(s)
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	if !alike([][]float64{plain}, [][]float64{y}) {
		errs = append(errs, fmt.Errorf("asking for derivatives changes the outputs after a step from %v to %v", plain, y))
	}
	if j.n == 0 && !info.Stateless {
		return errors.Join(errs...)
	}
	predicted := j.response(H)
	measured := mat.NewDense(max(1, len(y)), max(1, len(u)), nil)
	for k := range u {
		delta := slopeSeed * max(1, math.Abs(u[k]))
		other := slices.Clone(u)
		other[k] += delta
		moved, _, err := linearized(fresh, u, other, t0, H, nil)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for i := range y {
			measured.Set(i, k, (moved[i]-plain[i])/(other[k]-u[k]))
		}
	}
	for i, p := range info.Out {
		if p.Internal {
			continue
		}
		largest := mat.Norm(measured.RowView(i), math.Inf(1))
		for k := range u {
			want, got := measured.At(i, k), predicted.At(i, k)
			if !(math.Abs(got-want) <= slopeTolerance*max(math.Abs(got), math.Abs(want))+slopeFloor*largest) {
				errs = append(errs, fmt.Errorf("output %s after a step of %g follows input %s by %g, the derivatives say %g", p.Name, H, info.In[k].Name, want, got))
			}
		}
	}
	return errors.Join(errs...)
}

// linearizes reports whether a subsystem has derivatives by its states.
func linearizes(fresh func() (master.Subsystem, error)) (bool, error) {
	sub, err := fresh()
	if err != nil {
		return false, err
	}
	_, ok := master.As[master.Linearizer](sub)
	return ok && sub.Info().Caps.DirectionalDerivative, closed(sub)
}

// linearized steps a fresh subsystem to a communication point under inputs u, asks
// it there, takes one more step under last, nil for u, and gives the outputs.
func linearized(fresh func() (master.Subsystem, error), u, last []float64, t0, H float64, ask func(master.Subsystem) error) (y []float64, info *master.Info, err error) {
	sub, err := begin(fresh, u, t0)
	defer func() { err = errors.Join(err, closed(sub)) }()
	if err != nil {
		return nil, nil, err
	}
	for i := range conformanceSteps {
		if i == conformanceSteps-1 {
			if ask != nil {
				if err := ask(sub); err != nil {
					return nil, nil, err
				}
			}
			if last != nil {
				u = last
			}
		}
		if err := sub.SetInputs(u); err != nil {
			return nil, nil, err
		}
		if _, err := sub.Step(context.Background(), t0+float64(i)*H, H); err != nil {
			return nil, nil, err
		}
	}
	y = make([]float64, len(sub.Info().Out))
	return y, sub.Info(), sub.Outputs(y)
}

// jacobians are A, B, C and D of a subsystem in one matrix, states before inputs
// and derivatives before outputs.
type jacobians struct {
	n, m, p int // states, inputs, outputs
	all     *mat.Dense
}

// takeJacobians asks for all columns by unit seeds, and checks the answers to
// other seeds against them.
func takeJacobians(s master.Subsystem) (*jacobians, error) {
	l, ok := master.As[master.Linearizer](s)
	if !ok || !s.Info().Caps.DirectionalDerivative {
		return nil, fmt.Errorf("%s: %w: it gives no derivatives by its states", s.Info().Name, master.ErrCapability)
	}
	info := s.Info()
	j := &jacobians{n: len(l.States()), m: len(info.In), p: len(info.Out)}
	rows, cols := j.n+j.p, j.n+j.m
	if rows == 0 || cols == 0 {
		return j, nil
	}
	j.all = mat.NewDense(rows, cols, nil)
	seed, slope := make([]float64, cols), make([]float64, rows)
	ask := func(dx, du bool) error {
		var x, u []float64
		if dx {
			x = seed[:j.n]
		}
		if du {
			u = seed[j.n:]
		}
		return l.Linearize(x, u, slope[:j.n], slope[j.n:])
	}
	for c := range cols {
		clear(seed)
		seed[c] = 1
		if err := ask(true, true); err != nil {
			return nil, err
		}
		j.all.SetCol(c, slope)
	}
	for i, p := range info.Out {
		for c := range cols {
			if v := j.all.At(j.n+i, c); math.IsNaN(v) && p.Internal {
				j.all.Set(j.n+i, c, 0)
			}
		}
	}
	for i := range rows {
		for c := range cols {
			if v := j.all.At(i, c); math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("the derivative in row %d, column %d of the states and then outputs by the states and then inputs is %g", i, c, v)
			}
		}
	}
	for c := range seed {
		seed[c] = float64(c%3) - 1.5
	}
	var errs []error
	for _, with := range []struct {
		dx, du bool
		what   string
	}{{true, true, "of states and inputs at once"}, {false, true, "without dx"}, {true, false, "without du"}} {
		if err := ask(with.dx, with.du); err != nil {
			return nil, err
		}
		whole, size := slices.Clone(slope), make([]float64, rows)
		internal := func(i int) bool { return i >= j.n && info.Out[i-j.n].Internal }
		for i := range rows {
			sum := 0.0
			for c := range cols {
				if c < j.n && with.dx || c >= j.n && with.du {
					sum += j.all.At(i, c) * seed[c]
					size[i] += math.Abs(j.all.At(i, c) * seed[c])
				}
			}
			if !internal(i) && !(math.Abs(whole[i]-sum) <= slopeNoise*size[i]) {
				errs = append(errs, fmt.Errorf("the derivatives are not linear: a seed %s gives %g in row %d, its parts %g", with.what, whole[i], i, sum))
			}
		}
		var dx, du []float64
		if with.dx {
			dx = seed[:j.n]
		}
		if with.du {
			du = seed[j.n:]
		}
		dots, outs := make([]float64, j.n), make([]float64, j.p)
		if err := errors.Join(l.Linearize(dx, du, dots, nil), l.Linearize(dx, du, nil, outs)); err != nil {
			return nil, err
		}
		for i, v := range append(dots, outs...) {
			if !internal(i) && !(math.Abs(whole[i]-v) <= slopeNoise*size[i]) {
				errs = append(errs, fmt.Errorf("the derivatives of the states alone, or of the outputs alone, give %g in row %d, both at once %g", v, i, whole[i]))
			}
		}
	}
	return j, errors.Join(errs...)
}

// response returns how the outputs after a step of h follow inputs that are held:
// C ∫ e^{A s} ds B + D over the step.
func (j *jacobians) response(h float64) *mat.Dense {
	r := mat.NewDense(max(1, j.p), max(1, j.m), nil)
	if j.p == 0 || j.m == 0 {
		return r
	}
	d := j.all.Slice(j.n, j.n+j.p, j.n, j.n+j.m)
	if j.n == 0 {
		r.Copy(d)
		return r
	}
	size := j.n + j.m
	block := mat.NewDense(size, size, nil)
	block.Slice(0, j.n, 0, size).(*mat.Dense).Scale(h, j.all.Slice(0, j.n, 0, size))
	var e mat.Dense
	e.Exp(block)
	r.Mul(j.all.Slice(j.n, j.n+j.p, 0, j.n), e.Slice(0, j.n, j.n, size))
	r.Add(r, d)
	return r
}
