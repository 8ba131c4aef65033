package algorithms

import (
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// correctionJudge reports whether the energy correction of a bond removes what the
// coupling adds. The correction takes that for μ δE; this holds on average, and
// only while the velocities of the two sides are not correlated and the action carries
// no static load.
// What is added can be found step by step where the side with direct feedthrough
// gives directional derivatives D: its outputs y stand as computed with the inputs ũ
// that it had, and the other side takes them as if they were y + D (u − ũ). In
// the step from t_k, with W(y) the power of these outputs by the flow there,
//
//	E = −W(D (u_k − ũ_k)) H + share δE
//
// if displacements of the other side lead to the action, which start each step
// from their true values; share is what the multi-rate formula (20) adds to μ_SR
// for the motion of the other side under a held action. If the flow alone
// leads to it, the side integrates the flow that it is given, and by the trapezoidal
// rule over the powers ũ_b y_b − ũ_a y_a at both ends of the step
//
//	E = (δP H − W(D (u_k − ũ_k)) H) / 2
type correctionJudge struct {
	why   string // nothing can be told, because of this
	sides []feedthroughSide
	share float64
	ask   *master.Phase // the derivatives of all sides

	displaced bool // displacements lead to the action

	added, removed float64 // by the coupling, by the correction, J
	// Of each action over the run: its integral and that of its square, in the unit of the input; and
	// how often its velocity changed sign.
	time         float64 // s
	sum, squares []float64
	velocity     []float64 // the last one
	turns        []int
	// The largest part of what was added that the correction left over, or took
	// away beyond it, since the sum of |E| has grown by epochGrowth, and in the
	// epochs before: about half of what was added. How a run begins does not count.
	size, mark float64
	worst      [epochs]float64
}

const (
	epochs      = 4
	epochGrowth = 1.25
)

// feedthroughSide is a subsystem whose outputs in the bond follow inputs from the
// other side directly.
type feedthroughSide struct {
	subsystem int
	direct    master.DirectionalDeriver
	inputs    []sideInput
	du        [2][]float64 // u − ũ of the displacements, of the flows; by input of the subsystem
	dy        [2][]float64 // D (u − ũ); by output
	asks      [2]bool
	err       error
}

type sideInput struct {
	input int // entry of u
	kind  int // 0: displacement, 1: of the bond
}

// harm is the part of the energy added by the coupling that a correction may leave
// over or take away beyond it. Measured: 0.02 to 0.22 where the correction brings
// the energy near its reference, 0.38 and more where it leaves it or leads away.
const harm = 0.3

// staticLoad is the mean of an action, in its standard deviations, above which it carries a static
// load. Under one, every change of the velocity is residual power, and none of it is spurious: over a
// period it cancels, but not what is left of the correction, which is cut off where the velocity passes
// zero. Energies do not show that. Measured: at most 0.36 in systems that swing; 0.67 and more in the
// crane of rodriguez from a tenth of its weight on, where errors multiply though the energies may
// agree, but also in a crane whose error the correction divides by five. Less than fewestTurns of the
// velocity tell no mean.
const (
	staticLoad  = 0.5
	fewestTurns = 4
)

// load describes the first action of a bond that carries a static load; "" = none does.
func (j *correctionJudge) load(sys *master.System, b *bond) string {
	for i, p := range b.pairs {
		mean := j.sum[i] / j.time
		deviation := math.Sqrt(max(j.squares[i]/j.time-mean*mean, 0))
		if j.turns[i] >= fewestTurns && math.Abs(mean) > staticLoad*deviation {
			return fmt.Sprintf("the action %s carries a static load, %.3g on average with a deviation of %.3g, and under one the correction may multiply the error: an energy.limit-absolute far below the load bounds that",
				sys.OutName(p.effort), mean/p.gain, deviation/math.Abs(p.gain))
		}
	}
	return ""
}

func (c *energyCorrection) newJudge(x *master.Exec, b *bond) correctionJudge {
	sys := x.Sys
	n := len(b.pairs)
	j := correctionJudge{sum: make([]float64, n), squares: make([]float64, n), velocity: make([]float64, n), turns: make([]int, n)}
	if c.inTurn {
		j.why = "it is told for the Jacobi scheme only"
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

func (j *correctionJudge) has(subsystem int) bool {
	for _, s := range j.sides {
		if s.subsystem == subsystem {
			return true
		}
	}
	return false
}

// addSide takes subsystem i, which is fed by from; why: the reason why it cannot.
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

// differentiate asks for D (u − ũ).
func (s *feedthroughSide) differentiate() {
	for kind, asks := range s.asks {
		if asks && s.err == nil {
			s.err = s.direct.DirectionalDerivative(s.du[kind], s.dy[kind])
		}
	}
}

// accept looks at the step of size H that was just taken, in which the correction
// removed some energy; the inputs of the next are known, and the history ends
// before them.
func (j *correctionJudge) accept(c *energyCorrection, x *master.Exec, b *bond, H, removed float64) {
	j.removed += removed
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
	if !j.judges() {
		return
	}
	for s := range j.sides {
		side := &j.sides[s]
		from := x.Sys.InAt[side.subsystem]
		for _, in := range side.inputs {
			side.du[in.kind][in.input-from] = x.W[in.input] - c.in.Sampled(in.input, c.energy.t, H, in.kind == 1 && !j.displaced)
		}
	}
	if err := j.ask.Run(); err != nil {
		j.why = err.Error()
		return
	}
	var stale [2]float64
	for s := range j.sides {
		side := &j.sides[s]
		if side.err != nil {
			j.why = fmt.Sprintf("%s: %v", x.Sys.Infos[side.subsystem], side.err)
			return
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

func (j *correctionJudge) archive(a *master.Archive) {
	num.Carry(a, &j.why, &j.displaced, &j.added, &j.removed, &j.time, j.sum, j.squares, j.velocity)
	for i := range j.turns {
		a.Int(&j.turns[i])
	}
	num.Carry(a, &j.size, &j.mark, j.worst[:])
}

// judges reports whether it can tell.
func (j *correctionJudge) judges() bool { return j.why == "" && j.sides != nil }

// take counts what the coupling added in one step.
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

// The verdicts, but for those that say what is not known.
const (
	helps = "helps"
	harms = "harms"
)

// verdict returns the judgement on the correction, also under a static load.
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
