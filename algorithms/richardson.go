package algorithms

import (
	"context"
	"math"

	"github.com/macrostep/macrostep/master"
)

// Richardson compares one step with two of half the size and keeps the latter. It needs an explicit
// scheme.
const Richardson Estimator = "richardson"

var richardson = estimate{
	twice: true, halves: true,
	points: func(c *Control, k int) int {
		if c.FixedOrder {
			return k + 1
		}
		return max(k+1, 2) // the order of the first, small step cannot be judged
	},
	solve: func(ctx context.Context, j *errorControl, x *master.Exec, t, H float64, k int, _ bool) (effort, error) {
		return effort{}, j.double(ctx, x, t, H, k)
	},
	// The error of one step is c H^q, that of two halves 2 c (H/2)^q, with
	// q = k+3 in positions and k+2 in velocities (meyer (12)).
	factors: func(_ *errorControl, _ float64, k int) (pos, vel float64) {
		return 1 / (math.Ldexp(1, k+2) - 1), 1 / (math.Ldexp(1, k+1) - 1)
	},
}

// double takes the step as a whole, rolls back, and takes it in two halves.
func (j *errorControl) double(ctx context.Context, x *master.Exec, t, H float64, k int) error {
	if _, err := j.coupling.advance(ctx, x, t, H, k); err != nil {
		return err
	}
	copy(j.second, x.Y)
	if err := x.RestoreAll(); err != nil {
		return err
	}
	if j.coupling.energy != nil {
		j.coupling.energy.begin()
	}
	half := H / 2
	middle := master.BeginOf(t+half, half, t+H)
	if _, err := j.coupling.advance(ctx, x, t, half, k); err != nil {
		return err
	}
	x.CoupleAll(middle, j.middle)
	j.astray = j.strays(j.middle, half, k)
	j.in.Push(middle, j.middle)
	_, err := j.coupling.advance(ctx, x, middle, half, k)
	x.CoupleAll(t+H, j.coupled)
	j.astray = j.astray || j.strays(j.coupled, half, k)
	j.in.Pop()
	j.middleAt = middle
	return err
}
