package algorithms

import (
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// correctionJudge judges whether the energy correction of a bond removes the energy that the
// coupling adds. The correction assumes that this energy is μ δE. That holds on average, and
// only if the velocities of the two sides are uncorrelated and the action has no static load.
//
// If the side with direct feedthrough has directional derivatives D, the added energy E is
// known step by step. This side computed its outputs y with the inputs ũ; the correct outputs
// are y + D (u − ũ). For the step from t_k, let W(y) be the power of these outputs at the
// start. If the action depends on displacements of the other side,
//
//	E = −W(D (u_k − ũ_k)) H + share δE,
//
// where share is the part of the multi-rate formula (20) beyond μ_SR, due to the motion of
// the other side under a held action. If the action depends on the flow alone, the side
// integrates the flow itself, and the trapezoidal rule for the powers ũ_b y_b − ũ_a y_a at
// both ends of the step gives
//
//	E = (δP H − W(D (u_k − ũ_k)) H) / 2.
type correctionJudge struct {
	why   string // reason why E is unknown; "" = it is known
	sides []feedthroughSide
	share float64
	ask   *master.Phase // computes the derivatives of all sides

	displaced bool // the action depends on displacements

	added, removed float64 // J, by the coupling and by the correction
	// By action: integrals of its value and of its square, in the unit of the input, the
	// last velocity and the number of sign changes of the velocity.
	time         float64 // s
	sum, squares []float64
	velocity     []float64
	turns        []int
	// size is the sum of |E|. An epoch ends when size has grown by epochGrowth since its
	// start, mark. worst holds, for the last epochs, the largest relative deviation of the
	// removed from the added energy. They cover about half of size; the start of a run
	// does not count.
	size, mark float64
	worst      [epochs]float64
}

const (
	epochs      = 4
	epochGrowth = 1.25
)

// feedthroughSide is a subsystem of a bond with direct feedthrough from the other subsystem.
type feedthroughSide struct {
	subsystem int
	direct    master.DirectionalDeriver
	inputs    []sideInput
	du        [2][]float64 // by kind: u − ũ, by input of the subsystem
	dy        [2][]float64 // by kind: D (u − ũ), by output
	asks      [2]bool      // by kind: there are such inputs
	err       error
}

type sideInput struct {
	input int // entry of u
	kind  int // 0: a displacement, 1: an input of the bond
}

// harm is the largest acceptable deviation of the removed from the added energy, relative to
// the added energy. Measured: 0.02 to 0.22 if the correction brings the energy close to the
// reference, at least 0.38 if it does not.
const harm = 0.3

// staticLoad is the ratio of mean and standard deviation of an action above which it carries a
// static load. Under such a load every change of the velocity contributes to the residual
// power, but nothing of it is spurious: it cancels over a period. The part of the correction
// that is cut off at zero velocity does not cancel, and the energies do not show this.
//
// Measured: at most 0.36 in oscillating systems; at least 0.67 in the crane of rodriguez from
// a tenth of its weight on, where errors grow although the energies may agree, but also in a
// crane whose error the correction divides by five. Fewer sign changes of the velocity than
// fewestTurns give no useful mean.
const (
	staticLoad  = 0.5
	fewestTurns = 4
)

// load describes the first action of a bond with a static load; "" = none has one.
func (j *correctionJudge) load(sys *master.System, b *bond) string {
	for i, p := range b.pairs {
		mean := j.sum[i] / j.time
		deviation := math.Sqrt(max(j.squares[i]/j.time-mean*mean, 0))
		if j.turns[i] >= fewestTurns && math.Abs(mean) > staticLoad*deviation {
			return fmt.Sprintf("the action %s carries a static load, %.3g on average with a deviation of %.3g, and "+
				"under one the correction may multiply the error: an energy.limit-absolute far below the load "+
				"bounds that",
				sys.OutName(p.effort), mean/p.gain, deviation/math.Abs(p.gain))
		}
	}
	return ""
}

// newJudge returns the judge of a bond.
func (c *energyCorrection) newJudge(x *master.Exec, b *bond) correctionJudge {
	sys := x.Sys
	n := len(b.pairs)
	j := correctionJudge{sum: make([]float64, n), squares: make([]float64, n), velocity: make([]float64, n), turns: make([]int, n)}
	if c.inTurn {
		j.why = "it can be determined for the Jacobi scheme only"
	}
	for _, p := range b.pairs {
		for _, side := range [][2]int{{p.effort, p.flow}, {p.flow, p.effort}} {
			i, from := num.Owner(sys.OutAt, side[0]), num.Owner(sys.OutAt, side[1])
			for _, each := range [2]int{i, from} {
				if c.in.Over(each) > 1 {
					j.why = fmt.Sprintf("%s takes one step over several macro steps", sys.Infos[each])
				}
			}
			if in, _ := feedsThrough(sys, from, side[0]); in < 0 || j.has(i) {
				continue
			}
			if why := j.addSide(sys, b, i, from); why != "" {
				j.why = why
			}
			if c.in.Order() == 0 {
				ndf := c.step(from)
				j.share = singleRateShare * (0.5 - 0.5*ndf/max(1, c.step(i), ndf))
			}
		}
	}
	if j.why != "" || j.sides == nil {
		return j
	}
	at := map[int]int{}
	var members []int
	for s := range j.sides {
		at[j.sides[s].subsystem] = s
		members = append(members, j.sides[s].subsystem)
	}
	sides := j.sides
	j.ask = x.NewPhase(members, func(i int) error { sides[at[i]].differentiate(); return nil })
	return j
}

// has reports whether a subsystem is one of the sides.
func (j *correctionJudge) has(subsystem int) bool {
	return slices.ContainsFunc(j.sides, func(s feedthroughSide) bool { return s.subsystem == subsystem })
}

// addSide adds subsystem i, with inputs from subsystem from. why is the reason if it cannot.
func (j *correctionJudge) addSide(sys *master.System, b *bond, i, from int) (why string) {
	info := sys.Infos[i]
	direct, ok := master.As[master.DirectionalDeriver](sys.Subsystems[i])
	if !ok || !info.Caps.DirectionalDerivative {
		return fmt.Sprintf("%s gives no directional derivatives", info)
	}
	side := feedthroughSide{subsystem: i, direct: direct}
	for k := range 2 {
		side.du[k], side.dy[k] = make([]float64, len(info.In)), make([]float64, len(info.Out))
	}
	for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
		if sys.SourceSubsystem(k) != from {
			continue
		}
		in := sideInput{k, 0}
		if b.takes(k) {
			in.kind = 1
		}
		side.asks[in.kind] = true
		side.inputs = append(side.inputs, in)
	}
	j.sides = append(j.sides, side)
	return ""
}

// differentiate computes D (u − ũ).
func (s *feedthroughSide) differentiate() {
	for kind, asks := range s.asks {
		if asks && s.err == nil {
			s.err = s.direct.DirectionalDerivative(s.du[kind], s.dy[kind])
		}
	}
}

// accept judges an accepted step of size H in which the correction removed some energy (J). The
// inputs at its end are known but not yet in the history.
func (j *correctionJudge) accept(c *energyCorrection, x *master.Exec, b *bond, H, removed float64) {
	j.removed += removed
	j.observeActions(x, b, H)
	if !j.judges() {
		return
	}
	for s := range j.sides {
		side := &j.sides[s]
		from := x.Sys.InAt[side.subsystem]
		for _, in := range side.inputs {
			end := in.kind == 1 && !j.displaced
			side.du[in.kind][in.input-from] = x.W[in.input] - c.in.Sampled(in.input, c.energy.t, H, end)
		}
	}
	if err := j.ask.Run(); err != nil {
		j.why = err.Error()
		return
	}
	stale := j.staleEnergy(x, b, H)
	if j.why != "" {
		return
	}
	if stale[0] != 0 {
		j.displaced = true
	}
	E := stale[0] + stale[1] + j.share*b.stepHeld
	if !j.displaced {
		E = 0.5 * (b.step + stale[1])
	}
	if math.IsNaN(E) {
		j.why = "the directional derivatives of an output in the bond are not known"
		return
	}
	j.take(E)
}

// observeActions adds a step of size H to the statistics of the actions.
func (j *correctionJudge) observeActions(x *master.Exec, b *bond, H float64) {
	j.time += H
	for i, p := range b.pairs {
		f := x.W[p.effortIn]
		j.sum[i] += float64(f * H)
		j.squares[i] += float64(f * f * H)
		if v := x.Y[p.flow]; v != 0 {
			if v*j.velocity[i] < 0 {
				j.turns[i]++
			}
			j.velocity[i] = v
		}
	}
}

// staleEnergy returns −W(D (u − ũ)) H in J, by kind of input.
func (j *correctionJudge) staleEnergy(x *master.Exec, b *bond, H float64) (stale [2]float64) {
	for s := range j.sides {
		side := &j.sides[s]
		if side.err != nil {
			j.why = fmt.Sprintf("%s: %v", x.Sys.Infos[side.subsystem], side.err)
			return stale
		}
		from := x.Sys.OutAt[side.subsystem]
		for kind, asks := range side.asks {
			if !asks {
				continue
			}
			for _, p := range b.pairs {
				if num.Owner(x.Sys.OutAt, p.effort) == side.subsystem {
					stale[kind] -= p.sign * p.watt * p.gain * side.dy[kind][p.effort-from] * x.Y[p.flow] * H
				} else {
					stale[kind] += p.sign * p.watt * p.gain * side.dy[kind][p.flow-from] * x.Y[p.effort] * H
				}
			}
		}
	}
	return stale
}

func (j *correctionJudge) archive(a *master.Archive) {
	a.All(&j.why, &j.displaced, &j.added, &j.removed, &j.time, j.sum, j.squares, j.velocity, j.turns, &j.size, &j.mark, &j.worst)
}

// judges reports whether the added energy is known.
func (j *correctionJudge) judges() bool { return j.why == "" && j.sides != nil }

// take counts the energy (J) that the coupling added in one step.
func (j *correctionJudge) take(added float64) {
	j.added += added
	j.size += math.Abs(added)
	off := 0.0
	if left := math.Abs(j.added - j.removed); left > 0 {
		off = left / math.Abs(j.added)
	}
	if j.size > epochGrowth*j.mark {
		j.mark = j.size
		copy(j.worst[1:], j.worst[:])
		j.worst[0] = 0
	}
	j.worst[0] = max(j.worst[0], off)
}

// Verdicts. Others begin with "unknown: ".
const (
	helps = "helps"
	harms = "harms"
)

// verdict judges the correction; load describes a static load, "" = none.
func (j *correctionJudge) verdict(load string) string {
	switch {
	case j.why != "":
		return "unknown: " + j.why
	case j.sides == nil:
		return "unknown: there is no direct feedthrough within the bond"
	case slices.Max(j.worst[:]) > harm:
		return harms
	case load != "":
		return "unknown: " + load
	}
	return helps
}
