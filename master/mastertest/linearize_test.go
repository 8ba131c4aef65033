package mastertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// full has every matrix, two inputs, and outputs that are integrated once, twice
// and not at all.
func full() *mastertest.Linear {
	return mastertest.NewLinear("l", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-40, -1}}, B: [][]float64{{0, 0}, {3, -2}},
		C: [][]float64{{1, 0}, {0, 1}, {2, 0}}, D: [][]float64{{0, 0}, {0, 0}, {0, 5}},
	}, []float64{1, 0})
}

func TestLinearLinearizes(t *testing.T) {
	l := full()
	if got, want := l.States(), []master.StateInfo{{Name: "x1", Derivative: "der(x1)"}, {Name: "x2", Derivative: "der(x2)"}}; !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
	dx, du := []float64{3, 7}, []float64{11, 13}
	for _, c := range []struct {
		dx, du, dxdot, dy []float64
	}{
		{dx, du, []float64{7, -120 - 7 + 33 - 26}, []float64{3, 7, 6 + 65}},
		{dx, nil, []float64{7, -127}, []float64{3, 7, 6}},
		{nil, du, []float64{0, 7}, []float64{0, 0, 65}},
		{nil, nil, []float64{0, 0}, []float64{0, 0, 0}},
	} {
		dxdot, dy := []float64{9, 9}, []float64{9, 9, 9}
		if err := l.Linearize(c.dx, c.du, dxdot, dy); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(dxdot, c.dxdot) || !slices.Equal(dy, c.dy) {
			t.Errorf("dx = %v, du = %v: %v and %v, want %v and %v", c.dx, c.du, dxdot, dy, c.dxdot, c.dy)
		}
		if err := l.Linearize(c.dx, c.du, nil, nil); err != nil {
			t.Error(err)
		}
	}
	if l.Calls.Linearize != 8 {
		t.Errorf("%d calls counted, want 8", l.Calls.Linearize)
	}
	fresh := func() (master.Subsystem, error) { return full(), nil }
	if err := mastertest.TestLinearizer(fresh, []float64{2, -3}, 0.5, 0.01); err != nil {
		t.Error(err)
	}
}

// wronged gives derivatives that something is done to.
type wronged struct {
	*mastertest.Linear
	to func(dx, du, dxdot, dy []float64) error
}

func (w wronged) Linearize(dx, du, dxdot, dy []float64) error {
	if err := w.Linear.Linearize(dx, du, dxdot, dy); err != nil {
		return err
	}
	return w.to(dx, du, dxdot, dy)
}

// Every way of giving wrong derivatives is caught, by the suite for subsystems too.
func TestBrokenLinearizers(t *testing.T) {
	for _, test := range []struct {
		name string
		sub  func(*mastertest.Linear) master.Subsystem
		want string
	}{
		{"sign", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(_, _, _, dy []float64) error {
				if dy != nil {
					dy[0] = -dy[0]
				}
				return nil
			}}
		}, "output y1 after a step of 0.01 follows input u1"},
		{"a third too much", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(_, _, dxdot, _ []float64) error {
				if dxdot != nil {
					dxdot[1] *= 4. / 3
				}
				return nil
			}}
		}, "output y2"},
		{"no feedthrough", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(dx, _, _, dy []float64) error {
				if dy != nil {
					dy[2] = 0
					if dx != nil {
						dy[2] = 2 * dx[0]
					}
				}
				return nil
			}}
		}, "output y3 after a step of 0.01 follows input u2"},
		{"not linear", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(_, du, _, dy []float64) error {
				if du != nil && dy != nil {
					dy[2] += du[0] * du[0]
				}
				return nil
			}}
		}, "not linear"},
		{"other values alone", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(_, _, dxdot, dy []float64) error {
				if dxdot == nil && dy != nil {
					dy[1]++
				}
				return nil
			}}
		}, "of the outputs alone, give"},
		{"NaN", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(_, _, dxdot, _ []float64) error {
				if dxdot != nil {
					dxdot[0] /= 0
				}
				return nil
			}}
		}, "is NaN"},
		{"moves", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(_, _, _, _ []float64) error {
				_, err := l.Step(context.Background(), 0, 0.001)
				return err
			}}
		}, "changes the outputs"},
		{"refuses", func(l *mastertest.Linear) master.Subsystem {
			return wronged{l, func(_, _, _, _ []float64) error { return errors.New("no such unknown") }}
		}, "no such unknown"},
	} {
		fresh := func() (master.Subsystem, error) { return test.sub(full()), nil }
		for suite, err := range map[string]error{
			"TestLinearizer": mastertest.TestLinearizer(fresh, []float64{2, -3}, 0, 0.01),
			"TestSubsystem":  mastertest.TestSubsystem(fresh, []float64{2, -3}, 0, 0.01),
		} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s: %v, want … %s", suite, test.name, err, test.want)
			}
		}
	}
	// What is not claimed is not asked for.
	fresh := func() (master.Subsystem, error) {
		l := full()
		l.Info().Caps.DirectionalDerivative = false
		return wronged{l, func(_, _, _, _ []float64) error { return errors.New("asked") }}, nil
	}
	if err := mastertest.TestSubsystem(fresh, []float64{2, -3}, 0, 0.01); err != nil {
		t.Error(err)
	}
	if err := mastertest.TestLinearizer(fresh, []float64{2, -3}, 0, 0.01); !errors.Is(err, master.ErrCapability) {
		t.Errorf("%v, want %v", err, master.ErrCapability)
	}
	// Internal outputs take no part.
	fresh = func() (master.Subsystem, error) {
		l := full()
		l.Info().Out[2].Internal = true
		return wronged{l, func(_, _, _, dy []float64) error {
			if dy != nil {
				dy[2] = 1e9
			}
			return nil
		}}, nil
	}
	if err := mastertest.TestSubsystem(fresh, []float64{2, -3}, 0, 0.01); err != nil {
		t.Error(err)
	}
}
