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

// Memory is a recorder that keeps every point.
type Memory struct {
	T      []float64
	U, Y   [][]float64
	Result master.Result
	Ended  bool
}

// Begin does nothing.
func (m *Memory) Begin(*master.System, []master.Port) error { return nil }

// Record copies the point.
func (m *Memory) Record(p *master.Point) error {
	m.T = append(m.T, p.T)
	m.U = append(m.U, slices.Clone(p.U))
	m.Y = append(m.Y, slices.Clone(p.Y))
	return nil
}

// Flush does nothing.
func (m *Memory) Flush() error { return nil }

// End keeps the result.
func (m *Memory) End(r master.Result) error { m.Result, m.Ended = r, true; return nil }

// TestSubsystem checks that a subsystem follows the rules of package master: a step reaches its end and gives
// no NaN, and a second subsystem gives the same bits. If rollback is declared, a step repeated after a
// restore gives the same bits each time, and approximately those without a restore. If only method Archive
// carries the state (master.Checkpoints), another subsystem that reads it continues with the same bits. A
// master.Linearizer is also checked by TestLinearizer. All violations are returned, joined.
//
// fresh makes a new subsystem, not yet initialised; u are valid inputs.
func TestSubsystem(fresh func() (master.Subsystem, error), u []float64, t0, H float64) error {
	first, rollback, err := trajectory(fresh, u, t0, H, false)
	if err != nil {
		return err
	}
	second, _, err := trajectory(fresh, u, t0, H, false)
	if err != nil {
		return err
	}
	var errs []error
	if !equalBits(first, second) {
		errs = append(errs, fmt.Errorf("two runs differ: %v and %v", first, second))
	}
	if rollback {
		once, _, err := trajectory(fresh, u, t0, H, true)
		errs = append(errs, err)
		again, _, errAgain := trajectory(fresh, u, t0, H, true)
		errs = append(errs, errAgain)
		switch {
		case err != nil || errAgain != nil:
		case !equalBits(once, again):
			errs = append(errs, fmt.Errorf("two runs with rollback differ: %v and %v", once, again))
		case !alike(first, once):
			errs = append(errs, fmt.Errorf("rollback leads elsewhere: %v without, %v with", first, once))
		}
	}
	errs = append(errs, testArchive(fresh, u, t0, H))
	linear, err := linearizes(fresh)
	errs = append(errs, err)
	if linear {
		errs = append(errs, TestLinearizer(fresh, u, t0, H))
	}
	return errors.Join(errs...)
}

const conformanceSteps = 4

// testArchive checks a subsystem whose method Archive carries all of its state.
func testArchive(fresh func() (master.Subsystem, error), u []float64, t0, H float64) (err error) {
	one, err := begin(fresh, u, t0)
	defer func() { err = errors.Join(err, closed(one)) }()
	if err != nil {
		return err
	}
	part, archives := master.As[master.Archiver](one)
	if _, serializes := master.As[master.StateSerializer](one); !archives || serializes || !one.Info().Caps.SerializeState {
		return nil
	}
	other, err := begin(fresh, u, t0)
	defer func() { err = errors.Join(err, closed(other)) }()
	if err != nil {
		return err
	}
	step := func(s master.Subsystem, i int) ([]float64, error) {
		y := make([]float64, len(s.Info().Out))
		err := s.SetInputs(u)
		if err == nil {
			_, err = s.Step(context.Background(), t0+float64(i)*H, H)
		}
		return y, errors.Join(err, s.Outputs(y))
	}
	for i := range conformanceSteps {
		if _, err := step(one, i); err != nil {
			return err
		}
	}
	to := master.NewArchive()
	part.Archive(to)
	from := master.ReadArchive(to.Data())
	reader, _ := master.As[master.Archiver](other)
	reader.Archive(from)
	if err := errors.Join(to.Err(), from.Finish()); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	for i := conformanceSteps; i < 2*conformanceSteps; i++ {
		a, errA := step(one, i)
		b, errB := step(other, i)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if !slices.Equal(a, b) {
			return fmt.Errorf("a subsystem that continues from an archive gives %v, not %v: a part of the state is not in it", b, a)
		}
	}
	return nil
}

// alike reports whether trajectories agree to a thousandth of their size, output by output: a solver that
// restarts after a restore may differ by its tolerance.
func alike(a, b [][]float64) bool {
	for k := range a[0] {
		size := 0.0
		for n := range a {
			size = max(size, math.Abs(a[n][k]))
		}
		for n := range a {
			if math.Abs(a[n][k]-b[n][k]) > 1e-3*size {
				return false
			}
		}
	}
	return true
}

// trajectory returns the outputs after each of a few steps, and whether rollback is declared. With rollback,
// each step is taken three times, each time after a restore, and must repeat exactly.
func trajectory(fresh func() (master.Subsystem, error), u []float64, t0, H float64, rollback bool) (ys [][]float64,
	declared bool, err error) {
	sub, err := begin(fresh, u, t0)
	defer func() { err = errors.Join(err, closed(sub)) }()
	if err != nil {
		return nil, false, err
	}
	info := sub.Info()
	saver, _ := master.As[master.StateSaver](sub)
	if info.Caps.SaveState && saver == nil {
		return nil, false, fmt.Errorf("%s declares rollback but has no method for it", info.Name)
	}
	var state master.State
	for i := range conformanceSteps {
		var y []float64
		t := t0 + float64(i)*H
		if rollback {
			if state, err = saver.SaveState(state); err == nil {
				y, err = repeated(sub, saver, state, u, t, H)
			}
		} else {
			y, err = stepped(sub, u, t, H)
		}
		if err != nil {
			return nil, false, err
		}
		ys = append(ys, y)
	}
	if rollback {
		err = saver.FreeState(state)
	}
	return ys, info.Caps.SaveState, err
}

// repeated takes a step three times, each time after a restore, and returns the outputs.
func repeated(sub master.Subsystem, saver master.StateSaver, state master.State, u []float64, t, H float64) (y []float64, err error) {
	for attempt := range 3 {
		if err := saver.RestoreState(state); err != nil {
			return nil, err
		}
		again, err := stepped(sub, u, t, H)
		if err != nil {
			return nil, err
		}
		if attempt > 0 && !slices.Equal(y, again) {
			return nil, fmt.Errorf("the step from t = %g repeated after a restore gives %v, not %v", t, again, y)
		}
		y = again
	}
	return y, nil
}

// stepped takes a step and returns the outputs, which must not be NaN.
func stepped(sub master.Subsystem, u []float64, t, H float64) ([]float64, error) {
	if err := sub.SetInputs(u); err != nil {
		return nil, err
	}
	reached, err := sub.Step(context.Background(), t, H)
	if err != nil {
		return nil, err
	}
	if !(math.Abs(reached-(t+H)) <= 1e-9*H+4*0x1p-52*math.Abs(t+H)) {
		return nil, fmt.Errorf("the step from t = %g by H = %g ended at t = %g", t, H, reached)
	}
	info := sub.Info()
	y := make([]float64, len(info.Out))
	err = sub.Outputs(y)
	for k, v := range y {
		if math.IsNaN(v) {
			err = errors.Join(err, fmt.Errorf("output %s is %g", info.Out[k].Name, v))
		}
	}
	return y, err
}

// begin makes a subsystem and initialises it with inputs u. The subsystem may be not nil also after an error.
func begin(fresh func() (master.Subsystem, error), u []float64, t0 float64) (master.Subsystem, error) {
	sub, err := fresh()
	if err != nil {
		return nil, err
	}
	init, ok := master.As[master.Initializer](sub)
	if !ok {
		return sub, nil
	}
	if err := init.EnterInit(context.Background(), master.Experiment{Start: t0}); err != nil {
		return sub, err
	}
	if err := sub.SetInputs(u); err != nil {
		return sub, err
	}
	return sub, errors.Join(init.EvalInit(), init.ExitInit())
}

// closed closes a subsystem that has a method Close; it may be nil.
func closed(sub master.Subsystem) error {
	if c, ok := master.As[interface{ Close() error }](sub); ok {
		return c.Close()
	}
	return nil
}

func equalBits(a, b [][]float64) bool {
	return slices.EqualFunc(a, b, func(p, q []float64) bool { return slices.Equal(p, q) })
}

// distance returns the error of the outputs at the end, compared with the exact solution of the oscillator.
func distance(m *Memory) float64 {
	subs := Oscillator()
	first, second := subs[0], subs[1]
	a := mat.NewDense(4, 4, nil)
	a.Slice(0, 2, 0, 2).(*mat.Dense).Copy(first.a)
	a.Slice(0, 2, 2, 4).(*mat.Dense).Mul(first.b, second.c)
	a.Slice(2, 4, 0, 2).(*mat.Dense).Mul(second.b, first.c)
	a.Slice(2, 4, 2, 4).(*mat.Dense).Copy(second.a)
	last := len(m.T) - 1
	a.Scale(m.T[last]-m.T[0], a)
	var e mat.Dense
	e.Exp(a)
	var x, y mat.VecDense
	x.MulVec(&e, mat.NewVecDense(4, append(slices.Clone(first.x0), second.x0...)))
	y.MulVec(first.c, x.SliceVec(0, 2))
	return math.Hypot(m.Y[last][0]-y.AtVec(0), m.Y[last][1]-y.AtVec(1))
}

// Oscillator returns two masses on springs, coupled by a spring and a damper, which belong to the second
// subsystem: the input of the first is a force, its outputs are position and velocity; for the second it is
// the other way round.
func Oscillator() []*Linear {
	first := NewLinear("first", Matrices{
		A: [][]float64{{0, 1}, {-100, -1}},
		B: [][]float64{{0}, {1}},
		C: [][]float64{{1, 0}, {0, 1}},
	}, []float64{1, 0})
	second := NewLinear("second", Matrices{
		A: [][]float64{{0, 1}, {-200, -2}},
		B: [][]float64{{0, 0}, {100, 1}},
		C: [][]float64{{100, 1}},
	}, []float64{0, 0})
	return []*Linear{first, second}
}

// OscillatorConnections returns the connections of Oscillator.
func OscillatorConnections() []master.Connection {
	return []master.Connection{
		master.Connect("second.y1", "first.u1"), master.Connect("first.y1", "second.u1"), master.Connect("first.y2", "second.u2"),
	}
}
