package algorithms

import (
	"context"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// replays measures responses of subsystems by differences of repeated macro steps. From the last
// communication point, all subsystems are stepped with the extrapolated inputs, then for each
// input with a deviation along its course and with a constant one, unless both are the same.
//
// The responses are kept as long as they predict. A check perturbs all inputs of each subsystem
// together and compares. If the result agrees within Model.Refresh, the number of macro steps to
// the next check doubles, up to longestTrust. A check is due at once if the change of an output
// over a step differs from that of the previous step by more than half of the larger one, such
// as when a limit is reached. After a change of step size or order the responses are measured
// again.
type replays struct {
	of      *modelCorrector
	x       *master.Exec
	members []int
	goBack  *master.StateSet
	steps   *input.Stepping
	rounds  [][]int     // columns that are perturbed together: at most one of each member
	base    []float64   // outputs of the unperturbed step, [ny]
	size    []float64   // by column: largest magnitude of the input so far
	shaped  [][]float64 // by column: response along the course
	offset  [][]float64 // by column: response to a constant
	course  []num.Shape // by column: the course of shaped

	valid    bool    // shaped and offset have been measured
	H        float64 // s, step size at the measurement
	wait     int     // macro steps to the next check
	trust    int     // wait after a check that agreed
	measured bool    // in the current attempt
	worst    float64 // largest prediction error
}

// longestTrust is the largest number of macro steps between checks.
const longestTrust = 8

func newReplays(x *master.Exec, of *modelCorrector) (*replays, error) {
	r := &replays{of: of, x: x, members: of.with(RollbackJacobian), worst: math.NaN(), trust: 1}
	n := len(of.columns)
	r.base, r.size, r.course = make([]float64, len(x.Y)), make([]float64, n), make([]num.Shape, n)
	r.shaped, r.offset = make([][]float64, n), make([][]float64, n)
	used := map[int]int{}
	for j := range of.columns {
		col := &of.columns[j]
		if of.source[col.subsystem] != RollbackJacobian {
			continue
		}
		r.size[j] = math.Abs(x.W[col.input])
		r.shaped[j], r.offset[j] = make([]float64, len(col.s)), make([]float64, len(col.s))
		g := used[col.subsystem]
		used[col.subsystem]++
		if g == len(r.rounds) {
			r.rounds = append(r.rounds, nil)
		}
		r.rounds[g] = append(r.rounds[g], j)
	}
	r.goBack = x.NewStateSet(r.members)
	var err error
	r.steps, err = input.NewStepping(x, of.in, r.members)
	return r, err
}

// measure updates the responses for the next step from t to t+H, whose polynomials are set, and
// rolls the members back to t.
func (r *replays) measure(ctx context.Context, t, H float64) error {
	fresh := !r.valid || r.of.config.Refresh == 0 || !r.of.sameSize(H, r.H)
	for _, round := range r.rounds {
		for _, j := range round {
			if !alike(r.of.course(j), r.course[j]) {
				fresh = true
			}
		}
	}
	r.measured = false
	if !fresh {
		if r.wait--; r.wait > 0 {
			return nil
		}
	}
	if err := r.step(ctx, t, H); err != nil {
		return err
	}
	copy(r.base, r.x.Y)
	if !fresh {
		agrees, err := r.check(ctx, t, H)
		if err != nil {
			return err
		}
		if agrees {
			r.trust = min(2*r.trust, longestTrust)
			r.wait = r.trust
			return r.goBack.Restore()
		}
	}
	r.trust, r.wait = 1, 1
	r.valid, r.H, r.measured = true, H, true
	for _, round := range r.rounds {
		for _, j := range round {
			r.course[j] = r.of.course(j)
		}
		if err := r.respond(ctx, t, H, round, r.along, r.shaped); err != nil {
			return err
		}
		constant := true
		for _, j := range round {
			constant = constant && r.course[j] == num.Shape{1}
		}
		if constant {
			for _, j := range round {
				copy(r.offset[j], r.shaped[j])
			}
		} else if err := r.respond(ctx, t, H, round, r.aside, r.offset); err != nil {
			return err
		}
	}
	return r.goBack.Restore()
}

// step rolls the members back to t and steps them to t+H.
func (r *replays) step(ctx context.Context, t, H float64) error {
	if err := r.goBack.Restore(); err != nil {
		return err
	}
	return r.steps.Run(ctx, t, H)
}

// along perturbs the input of a column along its course, by way at the end; 0 = not at all.
func (r *replays) along(j int, way float64) {
	k := r.of.columns[j].input
	in := r.of.in
	if way == 0 {
		in.Withdraw(k)
		return
	}
	in.Arrived(k, in.AtEnd(k)+way)
}

// aside perturbs it by a constant.
func (r *replays) aside(j int, way float64) {
	k := r.of.columns[j].input
	r.of.in.SetBias(k, r.of.offset[k]+way)
}

// way returns the perturbation of the input of a column, above rounding and replay noise.
func (r *replays) way(j int) float64 {
	col := &r.of.columns[j]
	r.size[j] = max(r.size[j], math.Abs(r.of.in.Last(col.input)))
	size := r.size[j]
	if size == 0 {
		size = nominal(r.x.Sys, col.input)
	}
	return size * max(perturbation, math.Sqrt(r.x.Replay(col.subsystem).Replays))
}

// respond measures the responses to the columns of a round.
func (r *replays) respond(ctx context.Context, t, H float64, round []int, move func(j int, way float64), to [][]float64) error {
	for _, j := range round {
		r.of.columns[j].delta = r.way(j)
		move(j, r.of.columns[j].delta)
	}
	err := r.step(ctx, t, H)
	for _, j := range round {
		move(j, 0)
		col := &r.of.columns[j]
		at := r.x.Sys.OutAt[col.subsystem]
		for o := range to[j] {
			to[j][o] = (r.x.Y[at+o] - r.base[at+o]) / col.delta
		}
	}
	return err
}

// check perturbs all inputs together and reports whether the responses predict the outputs.
func (r *replays) check(ctx context.Context, t, H float64) (bool, error) {
	for _, round := range r.rounds {
		for _, j := range round {
			r.of.columns[j].delta = r.way(j)
			r.along(j, r.of.columns[j].delta)
		}
	}
	err := r.step(ctx, t, H)
	worst := 0.0
	for _, i := range r.members {
		at := r.x.Sys.OutAt[i]
		for o := range r.x.Sys.OutAt[i+1] - at {
			predicted := 0.0
			for _, round := range r.rounds {
				for _, j := range round {
					if r.of.columns[j].subsystem == i {
						predicted += float64(r.shaped[j][o] * r.of.columns[j].delta)
					}
				}
			}
			did := r.x.Y[at+o] - r.base[at+o]
			off := math.Abs(did - predicted)
			noise := max(1e-12, 10*r.x.Replay(i).Replays) * math.Abs(r.base[at+o])
			if off <= noise {
				continue
			}
			worst = math.Max(worst, off/max(math.Abs(did), math.Abs(predicted), noise))
		}
	}
	for _, round := range r.rounds {
		for _, j := range round {
			r.along(j, 0)
		}
	}
	if !(worst <= r.worst) {
		r.worst = worst
	}
	return worst <= r.of.config.Refresh, err
}

// reject drops the responses, since the next attempt has another size.
func (r *replays) reject() { r.valid = false }

func (r *replays) archive(a *master.Archive) {
	num.Carry(a, &r.valid, &r.H, &r.wait, &r.trust, &r.worst, r.size)
	for j := range r.course {
		num.Carry(a, r.course[j][:], r.shaped[j], r.offset[j])
	}
}

// replayed is the model of one subsystem by replays.
type replayed struct {
	replays   *replays
	subsystem int
	y, yNow   []float64 // outputs at the start and at the end of the step
	change    []float64 // of the outputs over the previous step
	departs   bool      // the change over the step differs much from change
	seen      bool      // change is known
}

func newReplayed(r *replays, i int) *replayed {
	ny := r.x.Sys.OutAt[i+1] - r.x.Sys.OutAt[i]
	return &replayed{replays: r, subsystem: i, y: make([]float64, ny), yNow: make([]float64, ny), change: make([]float64, ny)}
}

// update reports whether the responses were measured before the step just taken.
func (r *replayed) update() (modelUpdate, error) {
	copy(r.yNow, r.replays.x.Y[r.replays.x.Sys.OutAt[r.subsystem]:])
	r.departs = false
	for o, v := range r.yNow {
		change := v - r.y[o]
		rounding := 1e-9 * math.Abs(v)
		if off := math.Abs(change - r.change[o]); r.seen && off > 0.5*max(math.Abs(change), math.Abs(r.change[o])) && off > rounding {
			r.departs = true
		}
	}
	u := modelUpdate{changed: r.replays.measured}
	if u.changed {
		u.evaluations = 1
	}
	for j := range r.replays.of.columns {
		if r.replays.of.columns[j].subsystem != r.subsystem {
			continue
		}
		if num.CheckFinite(r.replays.shaped[j]) != nil || num.CheckFinite(r.replays.offset[j]) != nil {
			u.why = fmt.Sprintf("the response to %s is not a finite number", r.replays.x.Sys.InName(r.replays.of.columns[j].input))
		}
	}
	return u, nil
}

func (r *replayed) respond(j int, _ *num.Shape, s, offset []float64) {
	copy(s, r.replays.shaped[j])
	copy(offset, r.replays.offset[j])
}

func (r *replayed) accept() {
	for o, v := range r.yNow {
		r.change[o], r.y[o] = v-r.y[o], v
	}
	r.seen = true
	if r.departs {
		r.replays.wait = 1
	}
}

func (r *replayed) reject() {}
func (r *replayed) archive(a *master.Archive) {
	num.Carry(a, r.y, r.change, &r.seen)
}

func (r *replayed) predictionError() float64 { return r.replays.worst }
