package algorithms

import (
	"context"

	"github.com/macrostep/macrostep/master"
)

// ExMilne compares with a second solution by interpolation of degree k (meyer 4.2). It needs the
// Jacobi scheme.
const ExMilne Estimator = "ex-milne"

var exMilne = estimate{
	jacobi: true, twice: true, points: pointsAbove,
	solve: func(ctx context.Context, j *errorControl, x *master.Exec, t, H float64, k int, judged bool) (effort, error) {
		if judged {
			j.in.Begin(x, t, H, k+1)
			for i, u := range j.entries {
				j.scratch[i] = j.in.Extrapolated(u)
			}
			j.in.Begin(x, t, H, k)
			for i, u := range j.entries {
				j.in.Arrived(u, j.scratch[i])
			}
			if err := j.stepAside(ctx, x, t, H); err != nil {
				return effort{}, err
			}
		}
		return j.coupling.advance(ctx, x, t, H, k)
	},
	factors: (*errorControl).milne, // (19), (20)
}
