package algorithms

import (
	"context"

	"github.com/macrostep/macrostep/master"
)

// ImMilne compares predicted with corrected states (meyer 4.4). It needs the implicit scheme.
const ImMilne Estimator = "im-milne"

var imMilne = estimate{
	implicit: true, predicts: true,
	solve: func(ctx context.Context, j *errorControl, x *master.Exec, t, H float64, k int, _ bool) (effort, error) {
		e, err := j.coupling.advance(ctx, x, t, H, k)
		copy(j.second, j.scheme.(*implicit).predicted)
		return e, err
	},
	factors: func(j *errorControl, H float64, k int) (pos, vel float64) {
		pos, vel = j.milne(H, k)
		return 1 - pos, 1 - vel // (22), (23)
	},
}
