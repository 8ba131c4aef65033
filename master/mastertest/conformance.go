package mastertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

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
func (m *Memory) Begin(*master.System) error { return nil }

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

// TestSubsystem checks that a subsystem keeps the contract of master: a step
// reaches its end and gives finite outputs, a second subsystem steps to the
// same bits, and, if rollback is claimed, a step repeated after a restore gives
// the same bits, from any number of attempts. It gives all violations, joined.
//
// fresh makes a new subsystem, not yet initialised; u are inputs it can take.
func TestSubsystem(fresh func() (master.Subsystem, error), u []float64, t0, H float64) error {
	first, err := trajectory(fresh, u, t0, H, false)
	if err != nil {
		return err
	}
	second, err := trajectory(fresh, u, t0, H, false)
	if err != nil {
		return err
	}
	var errs []error
	if !equalBits(first, second) {
		errs = append(errs, fmt.Errorf("two runs differ: %v and %v", first, second))
	}
	sub, err := fresh()
	if err != nil {
		return err
	}
	if sub.Info().Caps.SaveState {
		once, err := trajectory(fresh, u, t0, H, true)
		errs = append(errs, err)
		again, err := trajectory(fresh, u, t0, H, true)
		errs = append(errs, err)
		if !equalBits(once, again) {
			errs = append(errs, fmt.Errorf("two runs with rollback differ: %v and %v", once, again))
		}
	}
	return errors.Join(errs...)
}

const conformanceSteps = 4

// trajectory gives the outputs after each of a few steps. With rollback each
// step is taken three times, from a restore each time, and must repeat itself.
func trajectory(fresh func() (master.Subsystem, error), u []float64, t0, H float64, rollback bool) (ys [][]float64, err error) {
	ctx := context.Background()
	sub, err := fresh()
	if err != nil {
		return nil, err
	}
	if c, ok := master.As[interface{ Close() error }](sub); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	info := sub.Info()
	if init, ok := master.As[master.Initializer](sub); ok {
		if err := init.EnterInit(ctx, master.Experiment{Start: t0}); err != nil {
			return nil, err
		}
		if err := sub.SetInputs(u); err != nil {
			return nil, err
		}
		if err := errors.Join(init.EvalInit(), init.ExitInit()); err != nil {
			return nil, err
		}
	}
	saver, _ := master.As[master.StateSaver](sub)
	if rollback && saver == nil {
		return nil, fmt.Errorf("%s claims rollback and has no method for it", info.Name)
	}
	read := func() ([]float64, error) {
		y := make([]float64, len(info.Out))
		err := sub.Outputs(y)
		for k, v := range y {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				err = errors.Join(err, fmt.Errorf("output %s is %g", info.Out[k].Name, v))
			}
		}
		return y, err
	}
	step := func(i int) ([]float64, error) {
		t := t0 + float64(i)*H
		if err := sub.SetInputs(u); err != nil {
			return nil, err
		}
		reached, err := sub.Step(ctx, t, H)
		if err != nil {
			return nil, err
		}
		if math.Abs(reached-(t+H)) > 1e-9*H {
			return nil, fmt.Errorf("the step from %g by %g reached %g", t, H, reached)
		}
		return read()
	}
	for i := range conformanceSteps {
		var y []float64
		if !rollback {
			if y, err = step(i); err != nil {
				return nil, err
			}
			ys = append(ys, y)
			continue
		}
		state, err := saver.SaveState(nil)
		if err != nil {
			return nil, err
		}
		for attempt := range 3 {
			if err := saver.RestoreState(state); err != nil {
				return nil, err
			}
			again, err := step(i)
			if err != nil {
				return nil, err
			}
			if attempt > 0 && !slices.Equal(y, again) {
				return nil, fmt.Errorf("step %d repeated after a restore gives %v, not %v", i, again, y)
			}
			y = again
		}
		if err := saver.FreeState(state); err != nil {
			return nil, err
		}
		ys = append(ys, y)
	}
	return ys, nil
}

func equalBits(a, b [][]float64) bool {
	return slices.EqualFunc(a, b, func(p, q []float64) bool { return slices.Equal(p, q) })
}

// TestAlgorithm checks that an algorithm keeps the contract of master on a
// damped oscillator cut in two: it runs to the end, hits the grid exactly,
// gives the same bits twice, restores nothing unless it repeats, and leaves a
// partial result when cancelled. It gives all violations, joined.
func TestAlgorithm(fresh func() master.Algorithm) error {
	const steps = 64
	run := func(ctx context.Context) (*Memory, []*Linear, error) {
		subs := Oscillator()
		sys, err := master.NewSystem([]master.Subsystem{subs[0], subs[1]}, OscillatorConnections())
		if err != nil {
			return nil, nil, err
		}
		m := &Memory{}
		r, err := master.NewRun(sys, fresh(), master.Options{Start: 1, Stop: 1 + steps*0.01, Step: 0.01, Recorders: []master.Recorder{m}})
		if err != nil {
			return nil, nil, err
		}
		_, err = r.Run(ctx)
		return m, subs, err
	}
	a, subs, err := run(context.Background())
	if err != nil {
		return err
	}
	b, _, err := run(context.Background())
	if err != nil {
		return err
	}
	var errs []error
	if !slices.Equal(a.T, b.T) || !equalBits(a.Y, b.Y) || !equalBits(a.U, b.U) {
		errs = append(errs, errors.New("two runs differ"))
	}
	if len(a.T) == 0 || a.T[0] != 1 {
		errs = append(errs, errors.New("the first recorded point is not the start"))
	}
	if a.Result.Status != master.Complete {
		errs = append(errs, fmt.Errorf("status %s: %s", a.Result.Status, a.Result.Reason))
	}
	for _, s := range subs {
		if a.Result.Rejected == 0 && s.Calls.Restore > s.Calls.Save*2 {
			errs = append(errs, fmt.Errorf("%s: %d restores of %d saved states", s.Info().Name, s.Calls.Restore, s.Calls.Save))
		}
		if s.Calls.Save > 0 && s.Calls.Free == 0 {
			errs = append(errs, fmt.Errorf("%s: saved states are not freed", s.Info().Name))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, _, err := run(ctx)
	if !errors.Is(err, context.Canceled) || c == nil || !c.Ended || c.Result.Status != master.Incomplete {
		errs = append(errs, errors.New("a cancelled run does not end as incomplete"))
	}
	return errors.Join(errs...)
}

// Oscillator gives two masses on springs, coupled by a spring and damper of
// which the second subsystem holds: the first takes a force and gives position
// and velocity, the second takes these and gives the force back.
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

// OscillatorConnections couples the two.
func OscillatorConnections() []master.Connection {
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	return []master.Connection{
		{From: at("second", "y1"), To: at("first", "u1")},
		{From: at("first", "y1"), To: at("second", "u1")},
		{From: at("first", "y2"), To: at("second", "u2")},
	}
}
