package algorithms

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// ExSLocal compares extrapolated with updated inputs (meyer 4.3). It needs an explicit scheme.
const ExSLocal Estimator = "ex-slocal"

var exSLocal = estimate{
	byInputs: true, // (21)
	note: func(sys *master.System) string {
		if len(sys.Loops) == 0 {
			return ""
		}
		return fmt.Sprintf("ex-slocal compares extrapolated with updated inputs, but outputs on the loop through %s (%d "+
			"variables) may depend directly on extrapolated inputs: the estimate may not vanish with the step size "+
			"(meyer 4.3); use ex-local, ex-milne or an implicit scheme",
			sys.Loops[0].Variables[0], len(sys.Loops[0].Variables))
	},
	// An output with direct feedthrough of an extrapolated input has the value of the step before.
	// Its error does not decrease with the step size (meyer 4.3).
	remedy: func(j *errorControl, sys *master.System, order int, worst share) string {
		if order > 0 || worst.name == "" || worst.input < 0 {
			return ""
		}
		y, _ := sys.Source(worst.input)
		i := num.Owner(sys.OutAt, y)
		out := y - sys.OutAt[i]
		for _, k := range j.entries {
			if on := sys.Infos[i].Step.On; num.Owner(sys.InAt, k) == i && out < len(on) && slices.Contains(on[out], k-sys.InAt[i]) {
				return fmt.Sprintf("; %s depends directly on %s and has the value of the step before, so its error does not "+
					"decrease with the step size (meyer 4.3): use ex-local, ex-milne or an implicit scheme", sys.OutName(y), sys.InName(k))
			}
		}
		return ""
	},
}
