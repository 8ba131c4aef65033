package algorithms

import (
	"context"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// estimate is one way to estimate the error of a macro step: by the difference of two solutions,
// or of the extrapolated inputs from those that the step has led to.
type estimate struct {
	implicit bool // it goes with the implicit scheme, else with an explicit one
	jacobi   bool // it goes with the Jacobi scheme alone
	twice    bool // steps are taken twice, which needs rollback also where they are not repeated
	halves   bool // one of the two solutions takes two steps of half the size
	byInputs bool // errors of the coupling inputs are judged, not those of states
	above    int  // degrees of the second solution above the order
	predicts bool // the implicit scheme is to predict all subsystems

	// points returns the number of communication points that the estimate of degree k rests on;
	// nil = k + 1.
	points func(c *Control, k int) int
	// solve takes the macro step, and puts the outputs of the second solution into j.second; nil:
	// the step alone. A step that is not judged needs no second solution.
	solve func(ctx context.Context, j *errorControl, x *master.Exec, t, H float64, k int, judged bool) (effort, error)
	// factors returns the constants by which the difference of the two solutions gives the error
	// of the one that stands, at position and velocity level.
	factors func(j *errorControl, H float64, k int) (pos, vel float64)
	// note returns a warning for a system; "" = none. remedy returns what to add to the message
	// of a run that no smaller step helps, from the variable with the greatest error.
	note   func(sys *master.System) string
	remedy func(j *errorControl, sys *master.System, order int, worst share) string
}

// pointsAbove is estimate.points of a second solution that takes one point more.
func pointsAbove(_ *Control, k int) int { return k + 2 }

// milne returns C_pos^{k+1} / C_pos^k and the same of velocities (meyer 4.2, 4.4).
func (j *errorControl) milne(H float64, k int) (pos, vel float64) {
	posK, velK := num.ErrorConstants(k, H, j.in.Times())
	pos, vel = num.ErrorConstants(k+1, H, j.in.Times())
	return pos / posK, vel / velK
}

// stepAside takes the step with the polynomials as they stand, as the second solution, and goes back.
func (j *errorControl) stepAside(ctx context.Context, x *master.Exec, t, H float64) error {
	if err := j.scheme.(*explicit).step(ctx, x, t, H); err != nil {
		return err
	}
	copy(j.second, x.Y)
	return x.RestoreAll()
}
