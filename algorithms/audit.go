package algorithms

import (
	"context"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// audit detects errors that the estimates of meyer cannot show. These estimates compare solutions
// with different inputs over the same step. If a solver in a component derives its steps from
// the macro step, or samples its inputs only at the start, all solutions have its error. The
// audit steps the components in two halves with the same input polynomials and compares.
//
// A step is audited if it is more than twice as large as the largest audited step, or after
// auditEvery steps without audit. Once an estimate has missed an error, every step is audited,
// and the difference is part of its error.
//
// In the explicit estimates by states, both solutions also use extrapolated inputs and miss an
// impact inside a component during the step (meyer 6.1). After an impact, the coupling inputs
// deviate from their extrapolation by more than expected. The step is then compared with one
// that interpolates the new inputs.
type audit struct {
	growth float64 // of a step beyond the largest audited one that needs an audit
	auditState
	all *input.Stepping // all components that are not stepped late
}

type auditState struct {
	size  float64 // s, largest audited step
	steps int     // accepted since the last audit
	blind bool    // the estimate has missed an error
}

const (
	auditGrowth = 2
	auditEvery  = 64
	// blindness is the difference, in units of the tolerance, above which an estimate that
	// passes the step counts as blind. An estimate of the whole error exceeds the difference.
	blindness = 2
	// innerOrder is the order of the difference in the step size: the local order of Euler's
	// method.
	innerOrder = 2
	// jump is the ratio of the actual to the expected error of an extrapolation above which
	// inputs may have jumped.
	jump = 3
)

func (a *audit) init(x *master.Exec, in *input.Approximation, implicit bool) {
	*a = audit{growth: auditGrowth}
	if implicit { // steps that double differ by the rounding of the Jacobian
		a.growth *= 1 + sameStep
	}
	a.all = input.NewStepping(x, in, x.Sys.Stepped)
}

// due reports whether to audit a step of size H.
func (a *audit) due(H float64) bool {
	return a.blind || H > a.growth*a.size || a.steps >= auditEvery
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

// advance steps all components from t to t+H with the current polynomials.
func (a *audit) advance(ctx context.Context, x *master.Exec, t, H float64) error {
	if err := a.all.Run(ctx, t, H); err != nil {
		return err
	}
	return input.StepLate(ctx, x, x.Sys.Late, t, H)
}

// compareHalves returns the norm of the difference between a whole step and two half steps with
// the same input polynomials, of degree k+1 if possible. It rolls back afterwards.
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

// jumped compares a step that passes with one that interpolates the new inputs, if these may have
// jumped. It returns the norm of the difference if that exceeds the tolerance; else NaN, and
// the state after the step is unchanged.
func (j *errorControl) jumped(ctx context.Context, x *master.Exec, t, H float64, k int) (difference float64, err error) {
	if !j.twice {
		return math.NaN(), nil
	}
	if !j.halves { // else double has set astray
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

// strays reports whether coupling inputs [nu] after a step of size H deviate from their
// extrapolation of degree k by more than the a-priori estimate (31) predicts.
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
	x.Note(fmt.Sprintf("t = %.6g s: %s underestimates the error of a step of %.3g s: its estimate is %.2g times "+
		"the tolerance, but two half steps with the same inputs change the outputs by %.2g "+
		"times the tolerance. The solvers inside the components make this error: they take few steps per macro "+
		"step, or sample "+
		"the inputs at its start. From now on every step must also pass this comparison, which costs more steps. "+
		"Such errors "+
		"accumulate: compare with a run at a tighter tolerance, or use fixed steps (macrostep analyze)",
		t, j.config.Estimator, H, n.largest(), difference))
}
