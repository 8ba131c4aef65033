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

// Tolerances for comparing derivatives with differences of two steps. A subsystem solves its equations by
// steps of its own; forward Euler in tenths of H, for example, has an error of a tenth in variables that are
// integrated twice.
const (
	slopeTolerance = 0.15
	slopeFloor     = 1e-6 // of the largest slope of the same output
	slopeSeed      = 1e-3 // of the input, at least of 1

	// Many subsystems compute differences themselves, about a point that depends on the request.
	slopeNoise = 1e-6
)

// TestLinearizer checks that the derivatives of a master.Linearizer are linear in their seeds, that nil works
// for zero seeds and unwanted results, that requests do not change the next outputs (by more than a thousandth,
// for solvers that restart), and that derivatives agree with differences of outputs. For that it predicts, by
// the exponential of the linear system, how the outputs after one more step depend on the inputs, and compares
// with steps with different inputs; H must be small against the time constants. Internal outputs, and
// subsystems that hide their states, are not compared. It returns all violations, joined. The arguments are
// those of TestSubsystem.
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
				errs = append(errs, fmt.Errorf("output %s after a step of %g follows input %s by %g, the "+
					"derivatives say %g", p.Name, H, info.In[k].Name, want, got))
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

// linearized steps a fresh subsystem to a communication point with inputs u, calls ask there, takes one more
// step with inputs last (nil = u), and returns the outputs.
func linearized(fresh func() (master.Subsystem, error), u, last []float64, t0, H float64,
	ask func(master.Subsystem) error) (y []float64, info *master.Info, err error) {
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

// jacobians holds A, B, C and D of a subsystem in one matrix: columns are states, then inputs; rows are
// derivatives, then outputs.
type jacobians struct {
	n, m, p int // states, inputs, outputs
	all     *mat.Dense
	l       master.Linearizer
	info    *master.Info
}

// takeJacobians computes all columns by unit seeds, and checks other seeds against them.
func takeJacobians(s master.Subsystem) (*jacobians, error) {
	l, ok := master.As[master.Linearizer](s)
	if !ok || !s.Info().Caps.DirectionalDerivative {
		return nil, fmt.Errorf("%s: %w: it has no derivatives by its states", s.Info().Name, master.ErrCapability)
	}
	info := s.Info()
	j := &jacobians{n: len(l.States()), m: len(info.In), p: len(info.Out), l: l, info: info}
	rows, cols := j.n+j.p, j.n+j.m
	if rows == 0 || cols == 0 {
		return j, nil
	}
	j.all = mat.NewDense(rows, cols, nil)
	slope, seed := make([]float64, rows), make([]float64, cols)
	for c := range cols {
		clear(seed)
		seed[c] = 1
		if err := l.Linearize(seed[:j.n], seed[j.n:], slope[:j.n], slope[j.n:]); err != nil {
			return nil, err
		}
		for i, v := range slope {
			if math.IsNaN(v) && j.internal(i) {
				v = 0
			}
			if v-v != 0 {
				return nil, fmt.Errorf("the derivative in row %d, column %d of the states and then outputs by the "+
					"states and then inputs is %g", i, c, v)
			}
			j.all.Set(i, c, v)
		}
	}
	for c := range seed {
		seed[c] = float64(c%3) - 1.5
	}
	dx, du := seed[:j.n], seed[j.n:]
	return j, errors.Join(j.check("of states and inputs at once", dx, du), j.check("without dx", nil, du), j.check("without du", dx, nil))
}

// internal reports whether row i belongs to an internal output.
func (j *jacobians) internal(i int) bool { return i >= j.n && j.info.Out[i-j.n].Internal }

// check compares the derivatives for a seed with the columns, and derivatives of states and outputs requested
// separately with those requested together.
func (j *jacobians) check(what string, dx, du []float64) error {
	whole, parts := make([]float64, j.n+j.p), make([]float64, j.n+j.p)
	if err := errors.Join(j.l.Linearize(dx, du, whole[:j.n], whole[j.n:]),
		j.l.Linearize(dx, du, parts[:j.n], nil), j.l.Linearize(dx, du, nil, parts[j.n:])); err != nil {
		return err
	}
	var errs []error
	for i := range whole {
		sum, size := 0.0, 0.0
		add := func(seed []float64, first int) {
			for c, v := range seed {
				sum += j.all.At(i, first+c) * v
				size += math.Abs(j.all.At(i, first+c) * v)
			}
		}
		add(dx, 0)
		add(du, j.n)
		if j.internal(i) {
			continue
		}
		if !(math.Abs(whole[i]-sum) <= slopeNoise*size) {
			errs = append(errs, fmt.Errorf("the derivatives are not linear: a seed %s gives %g in row %d, its parts %g", what, whole[i], i, sum))
		}
		if !(math.Abs(whole[i]-parts[i]) <= slopeNoise*size) {
			errs = append(errs, fmt.Errorf("the derivatives of the states alone, or of the outputs alone, give %g "+
				"in row %d, both at once %g", parts[i], i, whole[i]))
		}
	}
	return errors.Join(errs...)
}

// response returns the derivatives of the outputs after a step of h by inputs that are held:
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
