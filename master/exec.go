package master

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Exec executes the steps of an algorithm: it stages inputs, steps subsystems, reads outputs, counts the
// calls, and holds the vectors. An algorithm has no other access to subsystems.
type Exec struct {
	Sys *System
	// U holds the inputs of a step, [nu], and DU their derivatives at its start, for orders from 1 to
	// the highest one announced by PrepareDerivatives. The algorithm sets both.
	U  []float64
	DU [][]float64
	// Y holds the outputs as last read, [ny]. An output that feeds nothing and is not finite keeps its last
	// finite value here (0 before the first), so that no algorithm computes with it.
	Y []float64
	// W = L y + b at the last accepted communication point, [nu].
	W []float64
	// Past holds communication points before the start, oldest first.
	Past []PastPoint

	execState
	crew        *crew
	signals     Signals
	steering    *steering // nil: no variable can be overridden
	external    []int     // inputs driven by signals
	step        float64
	own         []float64   // s, by subsystem: the constant step declared by ScaleStep
	given       []float64   // U with overridden values; the same slice if nothing can be overridden
	givenSlopes [][]float64 // DU likewise
	slopes      []int       // highest order of derivatives, by subsystem
	seconds     []float64   // of subsystems that do not meter themselves
	able        []abilities // by subsystem
	solo        []*bound    // by subsystem: itself alone; nil = not used yet
	current     int         // the subsystem that the run's own thread called last, or outside
	notes       []string    // for the warnings of the run

	// By subsystem: how it has ended the simulation, in the present attempt; nil = it has not.
	ended  []*StepError
	ending atomic.Bool // one of them has, in this attempt or an earlier one

	speaking, listening []int  // subsystems with discrete outputs, with discrete inputs
	unsent              []bool // by subsystem: it gets its discrete inputs before its next step

	loose  [][]int   // by subsystem: its outputs that feed nothing
	actual []float64 // [ny], for shown

	// Rollback, by subsystem; nil = its state is never restored.
	saver   []StateSaver
	states  []State
	saved   *Team // all subsystems with rollback
	keepAll *Phase
	point   float64 // time of the last accepted communication point
	isSaved bool    // the states are those of that point
}

// execState is the state of an Exec between two steps, apart from U, Y and W.
type execState struct {
	b                       []float64 // of u = L y + b; entries driven from outside change
	discreteIn, discreteOut []Values
	odd                     []float64 // [ny], of outputs that feed nothing: the value if it is not finite, else 0
	// Outputs at the last accepted point, which a failed or rejected attempt does not change.
	keptY        []float64
	keptDiscrete []Values
	// By subsystem.
	steps, saves, restores []int
	replay                 []Replay
}

// outside is the value of Exec.current during calls of hooks and recorders.
const outside = -1

// PastPoint holds W = L y + b at a communication point before the start.
type PastPoint struct {
	T float64
	W []float64
}

func newExec(s *System, step float64, workers int) *Exec {
	n := len(s.Subsystems)
	x := &Exec{
		Sys: s, crew: newCrew(s, workers, step), step: step,
		execState: execState{b: slices.Clone(s.offset), keptY: make([]float64, s.OutAt[n]), odd: make([]float64, s.OutAt[n]),
			steps: make([]int, n), saves: make([]int, n), restores: make([]int, n), replay: make([]Replay, n)},
		U: make([]float64, s.InAt[n]), W: make([]float64, s.InAt[n]), Y: make([]float64, s.OutAt[n]),
		seconds: make([]float64, n), slopes: make([]int, n),
		own: slices.Repeat([]float64{step}, n), solo: make([]*bound, n),
		current: outside, unsent: make([]bool, n),
		loose: s.loose(), actual: make([]float64, s.OutAt[n]),
		saver: make([]StateSaver, n), states: make([]State, n),
		ended: make([]*StepError, n),
	}
	x.given = x.U
	for i, sub := range s.Subsystems {
		info := s.Infos[i]
		x.discreteIn = append(x.discreteIn, NewValues(info.DiscreteIn))
		if info.StartDiscreteIn != nil {
			x.discreteIn[i].set(info.StartDiscreteIn)
		}
		x.discreteOut = append(x.discreteOut, NewValues(info.DiscreteOut))
		x.keptDiscrete = append(x.keptDiscrete, NewValues(info.DiscreteOut))
		if len(info.DiscreteOut) > 0 {
			x.speaking = append(x.speaking, i)
		}
		if len(info.DiscreteIn) > 0 {
			x.listening = append(x.listening, i)
		}
		x.able = append(x.able, abilitiesOf(sub, info))
	}
	return x
}

// keep saves the outputs as those of an accepted point.
func (x *Exec) keep() {
	copy(x.keptY, x.Y)
	for _, i := range x.speaking {
		x.keptDiscrete[i].set(&x.discreteOut[i])
	}
}

// revert restores the outputs of the last accepted point.
func (x *Exec) revert() {
	copy(x.Y, x.keptY)
	for _, i := range x.speaking {
		x.discreteOut[i].set(&x.keptDiscrete[i])
	}
}

// setAside replaces outputs in Y that feed nothing and are not finite by those of the last accepted point.
func (x *Exec) setAside(loose []int) {
	for _, k := range loose {
		if v := x.Y[k]; v-v != 0 {
			x.Y[k], x.odd[k] = x.keptY[k], v
		} else if x.odd[k] != 0 {
			x.odd[k] = 0
		}
	}
}

// Outputs reads the outputs of s, which is subsystem i or another instance of it, like those in Y.
func (x *Exec) Outputs(i int, s Subsystem, y []float64) error {
	err := s.Outputs(y)
	for _, k := range x.loose[i] {
		if v := &y[k-x.Sys.OutAt[i]]; *v-*v != 0 {
			*v = x.keptY[k]
		}
	}
	return err
}

// shown returns the outputs as they are recorded.
func (x *Exec) shown() []float64 {
	y := x.Y
	for _, loose := range x.loose {
		for _, k := range loose {
			if x.odd[k] == 0 {
				continue
			}
			if &y[0] == &x.Y[0] {
				y = x.actual
				copy(y, x.Y)
			}
			y[k] = x.odd[k]
		}
	}
	return y
}

// set copies values of the same ports.
func (v *Values) set(from *Values) {
	copy(v.Real, from.Real)
	copy(v.Integer, from.Integer)
	copy(v.Boolean, from.Boolean)
	copy(v.String, from.String)
}

// touch records the subsystem that is called, for the report of a panic.
func (x *Exec) touch(i int) {
	if x.crew.owner[i] == 0 {
		x.current = i
	}
}

// In returns the part of u that belongs to subsystem i.
func (x *Exec) In(i int) []float64 { return x.U[x.Sys.InAt[i]:x.Sys.InAt[i+1]] }

// Out returns the part of y that belongs to subsystem i.
func (x *Exec) Out(i int) []float64 { return x.Y[x.Sys.OutAt[i]:x.Sys.OutAt[i+1]] }

// Interpolates reports whether subsystem i takes input derivatives.
func (x *Exec) Interpolates(i int) bool { return x.able[i].derivatives != nil }

// External reports whether entry k of u is driven by signals from outside.
func (x *Exec) External(k int) bool { return slices.Contains(x.external, k) }

// Signal returns the course of entry k of u, which signals from outside drive, over a step from t to t+H (Signals.Over).
func (x *Exec) Signal(k int, t, H float64) (start, end, mean float64) { return x.signals.Over(k, t, H) }

// Couple computes L y + b at time t for the inputs of subsystem i, from the outputs as last read, into
// u [nu].
func (x *Exec) Couple(i int, t float64, u []float64) {
	x.takeSignals(t)
	x.couple(u, x.Sys.InAt[i], x.Sys.InAt[i+1])
}

// CoupleSome is Couple for several subsystems.
func (x *Exec) CoupleSome(members []int, t float64, u []float64) {
	x.takeSignals(t)
	for _, i := range members {
		x.couple(u, x.Sys.InAt[i], x.Sys.InAt[i+1])
	}
}

// CoupleAll is Couple for all subsystems.
func (x *Exec) CoupleAll(t float64, u []float64) {
	x.takeSignals(t)
	x.couple(u, 0, len(u))
}

func (x *Exec) couple(u []float64, from, to int) {
	source, gain := x.Sys.source, x.Sys.gain
	for k := from; k < to; k++ {
		switch src := source[k]; {
		case src < 0:
			u[k] = x.b[k]
		case gain[k] == 1 && x.b[k] == 0:
			u[k] = x.Y[src] // exactly, including the sign of zero
		default:
			// The conversion rounds the product, so that every platform gives the same bits.
			u[k] = float64(gain[k]*x.Y[src]) + x.b[k]
		}
	}
}

// takeSignals puts the signals from outside at time t into b.
func (x *Exec) takeSignals(t float64) {
	for _, k := range x.external {
		x.b[k] = x.signals.Real(k, t)
	}
}

// Stage passes subsystem i its part of U, in the initialisation. It must be called on the thread of the subsystem.
func (x *Exec) Stage(i int) error {
	x.touch(i)
	from, to := x.Sys.InAt[i], x.Sys.InAt[i+1]
	if err := x.give(&bound{members: []int{i}, in: []span{{from, to}}}); err != nil {
		return err
	}
	return x.able[i].stage(x.Sys.Subsystems[i], &Exchange{In: x.given[from:to]})
}

// stage passes a subsystem its inputs.
func (a *abilities) stage(s Subsystem, e *Exchange) error {
	if len(e.In) == 0 {
		return nil
	}
	if err := s.SetInputs(e.In); err != nil {
		return err
	}
	for m, du := range e.Slopes {
		if err := a.derivatives.SetInputDerivatives(m+1, du); err != nil {
			return err
		}
	}
	return nil
}

// give computes the inputs and derivatives that the members of a batch get: their parts of U and DU, which
// must be finite, with overridden values.
func (x *Exec) give(b *bound) error {
	sum := 0.0 // NaN if a number is not finite
	for _, at := range b.in {
		for _, v := range x.U[at.from:at.to] {
			sum += v - v
		}
	}
	for m, parts := range b.slopes {
		for _, at := range parts {
			for _, v := range x.DU[m][at.from:at.to] {
				sum += v - v
			}
		}
	}
	if sum != 0 {
		return x.unbounded(b)
	}
	if x.steering == nil {
		return nil
	}
	for _, i := range b.members {
		from, to := x.Sys.InAt[i], x.Sys.InAt[i+1]
		copy(x.given[from:to], x.steering.inputs(i, x.U[from:to]))
		for m := range x.slopes[i] {
			copy(x.givenSlopes[m][from:to], x.steering.slopes(i, x.DU[m][from:to]))
		}
	}
	return nil
}

// unbounded returns an error that names the input of a batch whose extrapolated value is not finite, or the
// output that is the reason.
func (x *Exec) unbounded(b *bound) error {
	values := append([][]float64{x.U}, x.DU[:len(b.slopes)]...)
	for _, at := range b.in {
		for k := at.from; k < at.to; k++ {
			if y := x.Sys.source[k]; y >= 0 && x.U[k]-x.U[k] != 0 && x.Y[y]-x.Y[y] != 0 {
				return x.notFinite(y, fmt.Sprintf("in the step from t = %.12g s", x.point))
			}
			for _, u := range values {
				if v := u[k]; v-v != 0 {
					return &DivergedError{fmt.Errorf("the extrapolated value of the input %s is %s: the coupling is unstable, or "+
						"values or gains of connections overflow; "+
						"check the gains, and try a smaller step size or a lower order", x.Sys.InName(k), notFinite(v))}
				}
			}
		}
	}
	return nil
}

// StageDiscrete computes the discrete inputs of subsystem i for its next step: the values of their sources
// as last read, and those of signals from outside at time t.
func (x *Exec) StageDiscrete(i int, t float64) {
	if len(x.Sys.Infos[i].DiscreteIn) > 0 {
		x.coupleDiscrete(i, t)
		x.unsent[i] = true
	}
}

// sendDiscrete passes subsystem i its discrete inputs as last coupled.
func (x *Exec) sendDiscrete(i int) error {
	x.unsent[i] = false
	if len(x.Sys.Infos[i].DiscreteIn) == 0 {
		return nil
	}
	x.touch(i)
	return x.able[i].discrete.SetDiscrete(&x.discreteIn[i])
}

// Note adds a warning of the algorithm to those of the run.
func (x *Exec) Note(text string) { x.notes = append(x.notes, text) }

// PrepareDerivatives announces the highest order of input derivatives that subsystem i will get.
func (x *Exec) PrepareDerivatives(i, order int) error {
	if !x.Interpolates(i) {
		return fmt.Errorf("%s: %w: it takes no input derivatives", x.Sys.Infos[i], ErrCapability)
	}
	x.touch(i)
	if err := x.crew.on(i, func() error { return x.able[i].derivatives.PrepareInputDerivatives(order) }); err != nil {
		return err
	}
	for len(x.DU) < order {
		x.DU = append(x.DU, make([]float64, len(x.U)))
		given := x.DU[len(x.DU)-1]
		if x.steering != nil {
			given = make([]float64, len(x.U))
		}
		x.givenSlopes = append(x.givenSlopes, given)
	}
	x.slopes[i] = order
	return nil
}

func (x *Exec) coupleDiscrete(i int, t float64) {
	to := &x.discreteIn[i]
	if x.signals != nil {
		x.signals.Discrete(i, t, to)
	}
	for _, l := range x.Sys.linkAt[i] {
		d := &x.Sys.discrete[l]
		copyMapped(to, d.in, &x.discreteOut[d.from], d.out, d.kind, d.table, d.linear)
	}
	if x.steering != nil {
		for k := range x.steering.pins {
			if p := &x.steering.pins[k]; p.sub == i {
				p.value.write(to, p.at)
			}
		}
	}
}

// copyMapped copies one discrete value, replaced by the table if it is a key there. An Integer becomes a Real by linear; nil = it
// stays an Integer.
func copyMapped(to *Values, in int, from *Values, out int, kind Kind, table map[int64]int64, linear *Linear) {
	switch kind {
	case Integer:
		v := from.Integer[out]
		if mapped, ok := table[v]; ok {
			v = mapped
		}
		if linear != nil {
			to.Real[in] = linear.Gain*float64(v) + linear.Offset
			return
		}
		to.Integer[in] = v
	case Boolean:
		v := from.Boolean[out]
		if table != nil {
			var n int64
			if v {
				n = 1
			}
			if mapped, ok := table[n]; ok {
				v = mapped != 0
			}
		}
		to.Boolean[in] = v
	case String:
		to.String[in] = from.String[out]
	}
}

// transferred returns the value that a parameter gets from its source, as the only one.
func (x *Exec) transferred(t *transfer) Values {
	port := x.Sys.Infos[t.to].Params[t.parameter]
	v := NewValues([]Port{port})
	if t.kind == Real {
		v.Real[0] = t.linear.Gain*x.Out(t.from)[t.out] + t.linear.Offset
		return v
	}
	var linear *Linear
	if port.Kind != t.kind {
		linear = &t.linear
	}
	copyMapped(&v, 0, &x.discreteOut[t.from], t.out, t.kind, t.table, linear)
	return v
}

// Step advances subsystem i from t by H with the inputs in U and DU and reads its outputs. The error is a
// *StepError. Like Restore and Read it must be called on the thread of the subsystem: in a Phase, or directly
// in the attempt for late subsystems.
func (x *Exec) Step(ctx context.Context, i int, t, H float64) error {
	return x.stepBatch(ctx, x.alone(i), t, H, true)
}

// Restore restores state and outputs of subsystem i at the last accepted communication point, from where
// it can be stepped again.
func (x *Exec) Restore(i int) error { return x.restoreBatch(x.alone(i)) }

// ready fails if subsystem i cannot take a step from t by H.
func (x *Exec) ready(i int, t, H float64) error {
	info := x.Sys.Infos[i]
	if !info.Caps.VariableStep && H != x.step && H != x.own[i] {
		return fmt.Errorf("%s: %w: the algorithm asks for a step of %.6g s from t = %.12g s, and the subsystem "+
			"cannot vary its step of %.6g s (canHandleVariableCommunicationStepSize); "+
			"choose an algorithm with steps of one size", info, ErrCapability, H, t, x.own[i])
	}
	return nil
}

// ScaleStep declares, during Init of an algorithm, that subsystem i takes a number of steps per macro
// step, or one step over a number of macro steps; one of the two is 1. The size is over·H/steps.
func (x *Exec) ScaleStep(i, steps, over int) { x.own[i] = float64(over) * x.step / float64(steps) }

// Reverts reports whether the state of subsystem i can be restored in this run.
func (x *Exec) Reverts(i int) bool { return x.saver[i] != nil }

// Replay returns how exactly subsystem i repeats a step; zero if that was not tested.
func (x *Exec) Replay(i int) Replay { return x.replay[i] }

// steer lets s override the inputs that subsystems get.
func (x *Exec) steer(s *steering) {
	x.steering, x.given = s, make([]float64, len(x.U))
}

// RestoreAll restores all subsystems with rollback.
func (x *Exec) RestoreAll() error {
	return x.saved.Restore()
}

// save saves the states at the communication point t, once per macro step.
func (x *Exec) save(t float64) error {
	if x.isSaved && t == x.point {
		return nil
	}
	x.point, x.isSaved = t, true
	if len(x.keepAll.owner) > 0 {
		if err := x.keepAll.Run(); err != nil {
			return err
		}
	}
	return x.saved.save.Run()
}

// prepareRollback prepares saving and restoring.
func (x *Exec) prepareRollback() {
	var members, restarting []int
	for i, saver := range x.saver {
		if saver != nil {
			members = append(members, i)
		}
		if x.able[i].restarter != nil {
			restarting = append(restarting, i)
		}
	}
	x.keepAll = x.NewPhase(restarting, x.keepState)
	x.saved = x.NewTeam(members)
}

// repeats reports whether a whole macro step can be repeated.
func (x *Exec) repeats() bool { return !slices.Contains(x.saver, nil) }

// Read reads the outputs of subsystem i at its present time.
func (x *Exec) Read(i int) error {
	x.touch(i)
	if out := x.Out(i); len(out) > 0 {
		if err := x.Sys.Subsystems[i].Outputs(out); err != nil {
			return err
		}
		x.setAside(x.loose[i])
	}
	if x.able[i].discrete != nil && len(x.Sys.Infos[i].DiscreteOut) > 0 {
		return x.able[i].discrete.Discrete(&x.discreteOut[i])
	}
	return nil
}

// readOn is Read on the thread of the subsystem.
func (x *Exec) readOn(i int) error { return x.crew.on(i, func() error { return x.Read(i) }) }

// Finite returns an error if an output in Y, at time t, is NaN or infinite (fmi2 72).
func (x *Exec) Finite(t float64) error {
	sum := 0.0
	for _, v := range x.Y {
		sum += v - v
	}
	if sum == 0 {
		return nil
	}
	k := slices.IndexFunc(x.Y, func(v float64) bool { return v-v != 0 })
	return x.notFinite(k, fmt.Sprintf("at t = %.12g s", t))
}

// notFinite returns the error for output k.
func (x *Exec) notFinite(k int, when string) error {
	i := owner(x.Sys.OutAt, k)
	feeds, remedy := "", "check its parameters, start values and the inputs without a source"
	if at := slices.Index(x.Sys.source, k); at >= 0 {
		feeds = ", which feeds " + x.Sys.InName(at) + ","
		remedy += "; if the value is meant, limit it in the model or remove the connection: an output that feeds nothing is recorded as it is"
	}
	if x.steps[i] > 0 {
		remedy = "the subsystem has failed, or the coupling is unstable; try a smaller step size or a lower order, or " + remedy
	}
	err := fmt.Errorf("%s: the output %s%s is %s %s: %s", x.Sys.Infos[i], x.Sys.OutName(k), feeds, notFinite(x.Y[k]), when, remedy)
	if x.steps[i] > 0 && math.IsInf(x.Y[k], 0) {
		return &DivergedError{err}
	}
	return err
}

// notFinite describes a value that is not finite.
func notFinite(v float64) string {
	if math.IsNaN(v) {
		return "NaN"
	}
	return "infinite"
}

// subsystemSeconds returns the time spent inside subsystem i.
func (x *Exec) subsystemSeconds(i int) float64 {
	if p := x.able[i].priced; p != nil {
		return p.Seconds()
	}
	return x.seconds[i]
}
