package algorithms

import (
	"context"

	"github.com/macrostep/macrostep/master"
)

// ExLocal compares with a second solution of degree k+1 (meyer 4.1). It needs an explicit scheme.
const ExLocal Estimator = "ex-local"

var exLocal = estimate{
	twice: true, above: 1, points: pointsAbove,
	solve: func(ctx context.Context, j *errorControl, x *master.Exec, t, H float64, k int, judged bool) (effort, error) {
		if judged {
			j.in.Begin(x, t, H, k+1)
			if err := j.stepAside(ctx, x, t, H); err != nil {
				return effort{}, err
			}
		}
		return j.coupling.advance(ctx, x, t, H, k)
	},
	factors: func(*errorControl, float64, int) (pos, vel float64) { return 1, 1 }, // (15)
}
