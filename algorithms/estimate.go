package algorithms

import (
	"context"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// estimate is an error estimate for macro steps. It compares two solutions, or the extrapolated
// inputs with the inputs after the step.
type estimate struct {
	implicit bool // needs the implicit scheme; else an explicit one
	jacobi   bool // needs the Jacobi scheme
	twice    bool // takes steps twice and needs rollback even if no step is rejected
	halves   bool // one of the two solutions takes two steps of half the size
	byInputs bool // judges errors of the coupling inputs instead of errors of outputs
	above    int  // degree of the second solution minus the order
	predicts bool // the implicit scheme predicts all subsystems

	// points returns the number of communication points that the estimate at order k needs;
	// nil = k + 1.
	points func(c *Control, k int) int
	// solve takes the macro step and puts the outputs of the second solution into j.second;
	// nil = it takes the step only. A step that is not judged needs no second solution.
	solve func(ctx context.Context, j *errorControl, x *master.Exec, t, H float64, k int, judged bool) (effort, error)
	// factors returns the error of the kept solution divided by the difference of the two, at
	// position and velocity level.
	factors func(j *errorControl, H float64, k int) (pos, vel float64)
	// note returns a warning for a system; "" = none. remedy returns an addition to the error
	// of a run whose steps became too small; worst is the variable with the largest error.
	note   func(sys *master.System) string
	remedy func(j *errorControl, sys *master.System, order int, worst share) string
}

// pointsAbove is estimate.points for a second solution with one point more.
func pointsAbove(_ *Control, k int) int { return k + 2 }

// milne returns C_pos^{k+1} / C_pos^k and C_vel^{k+1} / C_vel^k (meyer 4.2, 4.4).
func (j *errorControl) milne(H float64, k int) (pos, vel float64) {
	posK, velK := num.ErrorConstants(k, H, j.in.Times())
	pos, vel = num.ErrorConstants(k+1, H, j.in.Times())
	return pos / posK, vel / velK
}

// stepAside takes the step with the current polynomials as the second solution and rolls back.
func (j *errorControl) stepAside(ctx context.Context, x *master.Exec, t, H float64) error {
	if err := j.scheme.(*explicit).step(ctx, x, t, H); err != nil {
		return err
	}
	copy(j.second, x.Y)
	return x.RestoreAll()
}
