package algorithms

import (
	"context"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// audit finds errors that the estimates of meyer cannot see. These compare solutions with
// different inputs over the same step. If a solver inside a component takes its steps from
// the macro step, or samples its inputs only at the start, all solutions share its error. To
// see it, the audit steps the components in two halves with the same input polynomials.
//
// It does so before the step size exceeds twice the largest audited one, and every auditEvery steps. Once an
// estimate has missed an error, every step is audited, and the difference judges it too.
//
// Explicit estimates by states also share the extrapolated inputs, and miss an impact inside a
// component during the step (meyer 6.1). Afterwards the coupling inputs are further off their
// extrapolation than expected; then the step is compared with one that has the new inputs.
type audit struct {
	size  float64 // s, largest step that was audited
	steps int     // accepted since the last audit
	blind bool

	all *input.Stepping // all but the stateless components
}

const (
	auditGrowth = 2
	auditEvery  = 64
	// blindness is the difference, in units of the tolerance, above which an estimate that
	// passes the step is blind. An estimate that sees the whole error exceeds the difference.
	blindness = 2
	// innerOrder is the power of the step size with which the difference falls: the local
	// order of Euler's method.
	innerOrder = 2
	// jump is the ratio of the error of an extrapolation to the one expected from the points
	// before, above which inputs may have jumped.
	jump = 3
)

func (a *audit) init(x *master.Exec, in *input.Approximation) (err error) {
	*a = audit{}
	a.all, err = input.NewStepping(x, in, x.Sys.Stepped)
	return err
}

// due reports whether to audit a step of size H.
func (a *audit) due(H float64) bool {
	return a.blind || H > auditGrowth*a.size || a.steps >= auditEvery
}

// conclude records an attempt.
func (a *audit) conclude(audited, stands bool, H float64) {
	switch {
	case !stands:
	case audited:
		a.size, a.steps = max(a.size, H), 0
	default:
		a.steps++
	}
}

func (a *audit) archive(to *master.Archive) {
	num.Carry(to, &a.size, &a.steps, &a.blind)
}

// advance steps all components from t by H with the polynomials as they stand.
func (a *audit) advance(ctx context.Context, x *master.Exec, t, H float64) error {
	if err := a.all.Run(ctx, t, H); err != nil {
		return err
	}
	return input.StepLate(ctx, x, x.Sys.Late, t, H)
}

// compareHalves returns the norm of the difference between a step in one piece and in two
// halves, with the same input polynomials of one degree more than k, and goes back.
func (j *errorControl) compareHalves(ctx context.Context, x *master.Exec, t, H float64, k int) (difference float64, err error) {
	degree, half := min(k+1, j.in.Order()), H/2
	extrapolate := func(t, H float64) error {
		j.in.Begin(x, t, H, degree)
		return j.audit.advance(ctx, x, t, H)
	}
	if err := extrapolate(t, H); err != nil {
		return 0, err
	}
	copy(j.second, x.Y)
	if err := x.RestoreAll(); err != nil {
		return 0, err
	}
	if err := extrapolate(t, half); err != nil {
		return 0, err
	}
	if err := extrapolate(t+half, (t+H)-(t+half)); err != nil {
		return 0, err
	}
	return j.fromSecond(x), x.RestoreAll()
}

// fromSecond returns the norm of the difference between the outputs and the second solution.
func (j *errorControl) fromSecond(x *master.Exec) float64 {
	return max(j.norm(x, j.pos, 1), j.norm(x, j.vel, 1))
}

// jumped returns the norm of the difference between a step that passes and one with the inputs
// that it led to, if these jumped; else NaN, and the step is as it was.
func (j *errorControl) jumped(ctx context.Context, x *master.Exec, t, H float64, k int) (difference float64, err error) {
	if !j.twice {
		return math.NaN(), nil
	}
	if !j.halves { // else the step itself has found out
		j.astray = j.strays(j.coupled, H, k)
	}
	if !j.astray {
		return math.NaN(), nil
	}
	copy(j.second, x.Y)
	if err := x.RestoreAll(); err != nil {
		return 0, err
	}
	interpolate := func(t, H float64, end []float64) error {
		j.in.Begin(x, t, H, k)
		for _, u := range j.entries {
			j.in.Arrived(u, end[u])
		}
		return j.audit.advance(ctx, x, t, H)
	}
	if j.halves {
		half := H / 2
		if err = interpolate(t, half, j.middle); err == nil {
			j.in.Push(t+half, j.middle)
			err = interpolate(t+half, (t+H)-(t+half), j.coupled)
			j.in.Pop()
		}
	} else {
		err = interpolate(t, H, j.coupled)
	}
	if err != nil {
		return 0, err
	}
	if difference = j.fromSecond(x); difference > 1 {
		return difference, nil // the step is repeated
	}
	if err := x.RestoreAll(); err != nil {
		return 0, err
	}
	if j.coupling.energy != nil {
		j.coupling.energy.begin()
	}
	_, err = j.take(ctx, x, t, H, k, true)
	return math.NaN(), err
}

// strays reports whether coupling inputs [nu] after a step of size H are further off their
// extrapolation of degree k than the points before make expect, by (31).
func (j *errorControl) strays(inputs []float64, H float64, k int) bool {
	defect, expected := j.defect(inputs), 0.0
	if past := j.in.History(); past.Holds(k + 1) {
		expected = past.APriori(k, H, j.entries, j.w[:len(j.entries)], j.scratch)
	}
	return defect > max(1, jump*expected)
}

// defect returns the norm of the difference between coupling inputs [nu] and their extrapolation.
func (j *errorControl) defect(inputs []float64) float64 {
	for i, u := range j.entries {
		j.e[i], j.w[i] = j.in.Extrapolated(u)-inputs[u], j.tol.input(u, inputs[u])
	}
	return num.WRMS(j.e[:len(j.entries)], j.w[:len(j.entries)])
}

// sees marks the estimate as blind if an audited step passes it with a large difference.
func (j *errorControl) sees(x *master.Exec, t, H, difference float64, n *errorNorms) {
	if !(difference > blindness) || j.audit.blind || !j.steps.passes(*n) {
		return
	}
	j.audit.blind = true
	x.Note(fmt.Sprintf("t = %.6g s: %s underestimates the error of a step of %.3g s: its estimate is %.2g times the tolerance, but two half steps with the same inputs change the outputs by %.2g "+
		"times the tolerance. The solvers inside the components make this error: they take few steps per macro step, or sample the inputs at its start. From now on every step must pass this comparison "+
		"too, which costs more steps. Such errors accumulate: compare with a run at a tighter tolerance, or use fixed steps (macrostep analyze)",
		t, j.config.Estimator, H, n.largest(), difference))
}
