package master

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Limits of the initialisation. The tolerance is relative to the magnitude of
// the value and its nominal; below rounding nothing more can be asked for, and
// above the last one a start is no start.
const (
	initTolerance  = 1e-12
	initAcceptable = 1e-6
	initNewton     = 200 // enough for a cubic from 1e30
	initNudges     = 3   // away from points where the Jacobian is singular
	initFar        = 1e8 // of its magnitude at the start, which an input may grow to in the sweeps
	initRounds     = 20  // of discrete signals on a loop
)

// initializer solves the initialisation equations of the coupled system: it
// walks the graph of ports in topological order, and solves each loop (fmi2
// 29, 43).
type initializer struct {
	x      *Exec
	t      float64
	g      *portGraph
	modes  []Initializer // by subsystem; nil = none
	dirty  []bool        // by subsystem: inputs changed since it was evaluated
	report []Loop
	before []float64 // scratch
	// declared marks the ports on loops that are closed by declared dependencies.
	declared []bool
}

// enter brings every subsystem to its initialisation mode.
func (n *initializer) enter(ctx context.Context, e Experiment) error {
	for i, sub := range n.x.Sys.Subsystems {
		n.x.touch(i)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		mode, ok := As[Initializer](sub)
		if !ok {
			continue
		}
		n.modes[i] = mode
		if err := n.x.crew.on(i, func() error { return mode.EnterInit(ctx, e) }); err != nil {
			return n.failed(i, err)
		}
	}
	return nil
}

func (n *initializer) failed(i int, err error) error {
	return &StepError{Subsystem: n.x.Sys.Infos[i].Name, Source: n.x.Sys.Infos[i].Source, T: n.t, Reached: n.t, Err: err, Initialize: true}
}

// solve makes inputs and outputs consistent.
func (n *initializer) solve(ctx context.Context) error {
	x := n.x
	n.dirty = make([]bool, len(x.Sys.Subsystems))
	// The start values are the first guess for what is connected, too.
	x.CoupleAll(n.t, x.U)
	for i, info := range x.Sys.Infos {
		for k := range info.StartIn {
			if at := x.Sys.InAt[i] + k; x.Sys.source[at] >= 0 {
				x.U[at] = info.StartIn[k]
			}
		}
		if err := n.applyStaged(i); err != nil {
			return err
		}
		n.dirty[i] = true
	}
	for _, scc := range components(len(n.g.succ), n.g.next) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if cyclic(scc, n.g.next) {
			if err := n.solveLoop(scc); err != nil {
				return err
			}
			continue
		}
		sub, input := n.g.place(scc[0])
		if input {
			n.dirty[sub] = true
		} else if n.dirty[sub] {
			if err := n.evaluate(sub); err != nil {
				return err
			}
		}
	}
	for i := range x.Sys.Subsystems {
		if n.dirty[i] {
			if err := n.evaluate(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// evaluate couples the inputs of a subsystem and reads its outputs. A value that
// is not finite is not handed on: it may be a matter of the first guess, and if
// it stays, its source is to be named and not who refuses it.
func (n *initializer) evaluate(i int) error {
	u := n.x.In(i)
	n.before = append(n.before[:0], u...)
	n.x.Couple(i, n.t, n.x.U)
	for k, v := range u {
		if v-v != 0 {
			u[k] = n.before[k]
		}
	}
	return n.apply(i)
}

// apply reads the outputs of a subsystem at the inputs in U.
func (n *initializer) apply(i int) error {
	n.x.coupleDiscrete(i, n.t)
	return n.applyStaged(i)
}

// applyStaged is apply with the discrete inputs as they were last: at first their
// start values, since an FMU may refuse what a source that was never evaluated
// seems to give.
func (n *initializer) applyStaged(i int) error {
	n.dirty[i] = false
	if err := n.x.Stage(i); err != nil {
		return n.failed(i, err)
	}
	if err := n.x.sendDiscrete(i); err != nil {
		return n.failed(i, err)
	}
	if n.modes[i] != nil {
		if err := n.x.crew.on(i, n.modes[i].EvalInit); err != nil {
			return n.failed(i, err)
		}
	}
	if err := n.x.readOn(i); err != nil {
		return n.failed(i, err)
	}
	return nil
}

// initLoop is one algebraic loop: the subsystems on it and its Real inputs.
type initLoop struct {
	subs   []int
	inputs []int // entries of u
	info   Loop
	trial  []float64 // L y + b
}

// solveLoop solves one loop: two sweeps first, which is all that a loop closed
// by assumption only needs; then Newton for the Real inputs; discrete signals
// by repetition.
func (n *initializer) solveLoop(scc []int) error {
	loop := &initLoop{trial: make([]float64, len(n.x.U))}
	for _, v := range scc {
		sub, input := n.g.place(v)
		loop.subs = append(loop.subs, sub)
		if input && v < n.g.yAt {
			loop.inputs = append(loop.inputs, v)
		}
	}
	slices.Sort(loop.subs)
	loop.subs = slices.Compact(loop.subs)
	loop.info = n.g.loop(scc, n.declared)
	loop.info.Initialization = true

	for range initRounds {
		before := n.discreteState(loop)
		how, err := n.solveReals(loop)
		if err != nil {
			return err
		}
		if slices.Equal(before, n.discreteState(loop)) {
			loop.info.Treatment = how
			n.report = append(n.report, loop.info)
			return nil
		}
	}
	return fmt.Errorf("initialisation: the discrete signals on the algebraic loop %s do not settle in %d rounds; "+
		"set start values closer to a consistent start, or cut the loop", loop.name(), initRounds)
}

func (l *initLoop) name() string {
	const most = 12
	names := l.info.Variables
	tail := ""
	if len(names) > most {
		names, tail = names[:most], fmt.Sprintf(" → … (%d variables)", len(l.info.Variables))
	}
	return strings.Join(names, " → ") + tail
}

func (n *initializer) discreteState(l *initLoop) []string {
	var s []string
	for _, i := range l.subs {
		v := &n.x.discreteOut[i]
		s = append(s, fmt.Sprint(v.Integer, v.Boolean, v.String))
	}
	return s
}

// solveReals makes the Real inputs of a loop agree with their sources. Newton
// begins where the sweeps ended or at the start, whichever is closer: where
// repetition does not contract, it leads away from the solution, soon to
// infinity.
func (n *initializer) solveReals(l *initLoop) (how string, err error) {
	u := n.x.U
	start, weights := make([]float64, len(l.inputs)), make([]float64, len(l.inputs))
	for r, k := range l.inputs {
		start[r], weights[r] = u[k], n.scale(k)
	}
	swept := true
sweeps:
	for sweep := 1; sweep <= 3; sweep++ {
		for _, i := range l.subs {
			n.x.Couple(i, n.t, u)
			for r, k := range l.inputs {
				if !(math.Abs(u[k]) <= initFar*weights[r]) {
					swept = false
					break sweeps
				}
			}
			if err := n.apply(i); err != nil {
				return "", err
			}
		}
		if worst, _ := n.residual(l); worst <= initTolerance {
			return fmt.Sprintf("settled in %d sweeps", sweep), nil
		}
	}
	away := func() (far float64) {
		n.residual(l)
		for r, k := range l.inputs {
			far = max(far, math.Abs(u[k]-l.trial[k])/weights[r])
		}
		return far
	}
	end, endAway := make([]float64, len(start)), math.Inf(1)
	if swept {
		for r, k := range l.inputs {
			end[r] = u[k]
		}
		endAway = away()
	}
	n.put(l, start)
	if err := n.applyAll(l); err != nil {
		return "", err
	}
	if endAway < away() {
		n.put(l, end)
		if err := n.applyAll(l); err != nil {
			return "", err
		}
	}
	return n.newton(l)
}

// put sets the inputs of a loop.
func (n *initializer) put(l *initLoop, v []float64) {
	for r, k := range l.inputs {
		n.x.U[k] = v[r]
	}
}

// residual puts L y + b into l.trial and gives the largest |u − (L y + b)| over
// the loop's inputs, relative to the magnitude of the input, and where.
func (n *initializer) residual(l *initLoop) (worst float64, at int) {
	for _, i := range l.subs {
		n.x.Couple(i, n.t, l.trial)
	}
	at = -1
	for _, k := range l.inputs {
		r := math.Abs(n.x.U[k]-l.trial[k]) / n.scale(k)
		if r > worst || math.IsNaN(r) || at < 0 {
			worst, at = r, k
		}
		if math.IsNaN(r) {
			return math.Inf(1), k
		}
	}
	return worst, at
}

// scale is the magnitude of input k.
func (n *initializer) scale(k int) float64 {
	sub := owner(n.x.Sys.InAt, k)
	nominal := math.Abs(n.x.Sys.Infos[sub].In[k-n.x.Sys.InAt[sub]].Nominal)
	if nominal == 0 {
		nominal = 1
	}
	return max(nominal, math.Abs(n.x.U[k]))
}

func (n *initializer) applyAll(l *initLoop) error {
	for _, i := range l.subs {
		if err := n.apply(i); err != nil {
			return err
		}
	}
	return nil
}

// newton solves F(u) = u − L y(u) − b = 0 over the Real inputs of the loop, from
// the inputs and outputs as they are. A step is halved until the next one, with
// the same Jacobian, would be shorter than this one: the natural monotonicity
// test of Deuflhard (Newton Methods for Nonlinear Problems, 3.3). It depends
// neither on the units of the equations nor on how steep they are, as the size
// of F does, and so finds the way from far off.
func (n *initializer) newton(l *initLoop) (string, error) {
	x := n.x
	m := len(l.inputs)
	base, weights := make([]float64, m), make([]float64, m)
	step, next := make([]float64, m), make([]float64, m)
	jac, work := make([]float64, m*m), make([]float64, m*m)
	// solve gives the Newton step at the inputs in U, −J⁻¹F, and its length.
	solve := func(to []float64) (length float64, ok bool) {
		for r, k := range l.inputs {
			to[r] = l.trial[k] - x.U[k]
		}
		copy(work, jac)
		if !solveDense(work, to) {
			return 0, false
		}
		for r := range to {
			length = max(length, math.Abs(to[r])/weights[r])
			if math.IsNaN(to[r]) {
				return math.Inf(1), true
			}
		}
		return length, true
	}
	worst, at := n.residual(l)
	iterations, nudges := 0, 0
	for ; worst > initTolerance && iterations < initNewton; iterations++ {
		for r, k := range l.inputs {
			base[r], weights[r] = x.U[k], n.scale(k)
		}
		if err := n.jacobian(l, jac); err != nil {
			return "", err
		}
		length, ok := solve(step)
		if !ok {
			// The start may be a singular point by chance, as 0 often is. A
			// linear loop is singular everywhere.
			if nudges == initNudges {
				return "", fmt.Errorf("initialisation: the algebraic loop %s has no unique solution (its Jacobian is singular); "+
					"give one of its inputs a value from outside, or cut the loop", l.name())
			}
			nudges++
			for r, k := range l.inputs {
				x.U[k] = base[r] + weights[r]*float64(nudges)/float64(r+2)
			}
			if err := n.applyAll(l); err != nil {
				return "", err
			}
			worst, at = n.residual(l)
			continue
		}
		improved := false
		for fraction := 1.0; fraction > 1e-4 && !math.IsInf(length, 0); fraction /= 2 {
			finite := true
			for r, k := range l.inputs {
				x.U[k] = base[r] + fraction*step[r]
				finite = finite && !math.IsInf(x.U[k], 0)
			}
			if !finite {
				continue
			}
			if err := n.applyAll(l); err != nil {
				return "", err
			}
			w, where := n.residual(l)
			following, _ := solve(next)
			if w <= initTolerance || !math.IsInf(w, 0) && following <= (1-fraction/4)*length {
				worst, at, improved = w, where, true
				break
			}
		}
		if !improved {
			n.put(l, base)
			if err := n.applyAll(l); err != nil {
				return "", err
			}
			break
		}
	}
	if !(worst <= initAcceptable) {
		return "", fmt.Errorf("initialisation: the algebraic loop %s is not solved: after %d Newton iterations the residual at %s is still %.3g of its magnitude; "+
			"set start values closer to a solution, or cut the loop", l.name(), iterations, x.Sys.InName(at), worst)
	}
	return fmt.Sprintf("solved by Newton in %d iterations, residual %.1e", iterations, worst), nil
}

// jacobian puts ∂(u − L y(u))/∂u over the loop's inputs into jac, row-major:
// by directional derivatives where the subsystem has them, else by differences.
func (n *initializer) jacobian(l *initLoop, jac []float64) error {
	x, s := n.x, n.x.Sys
	m := len(l.inputs)
	clear(jac)
	var dy []float64
	for col, k := range l.inputs {
		jac[col*m+col] = 1
		sub := owner(s.InAt, k)
		out := x.Out(sub)
		dy = append(dy[:0], out...)
		deriver, analytic := As[DirectionalDeriver](s.Subsystems[sub])
		if analytic && s.Infos[sub].Caps.DirectionalDerivative {
			du := make([]float64, len(s.Infos[sub].In))
			du[k-s.InAt[sub]] = 1
			if err := x.crew.on(sub, func() error { return deriver.DirectionalDerivative(du, dy) }); err != nil {
				return n.failed(sub, err)
			}
		} else {
			u := x.U[k]
			delta := math.Sqrt(0x1p-52) * n.scale(k)
			x.U[k] = u + delta
			err := n.apply(sub)
			for j := range dy {
				dy[j] = (out[j] - dy[j]) / (x.U[k] - u)
			}
			x.U[k] = u
			if err != nil {
				return err
			}
			if err := n.apply(sub); err != nil {
				return err
			}
		}
		for row, r := range l.inputs {
			if src := s.source[r]; src >= s.OutAt[sub] && src < s.OutAt[sub+1] {
				jac[row*m+col] -= s.gain[r] * dy[src-s.OutAt[sub]]
			}
		}
	}
	return nil
}

// solveDense solves A x = b in place by elimination with row pivoting; A is
// len(b) × len(b), row-major, and is destroyed. False: A is singular.
func solveDense(a, b []float64) bool {
	n := len(b)
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if math.Abs(a[r*n+c]) > math.Abs(a[pivot*n+c]) {
				pivot = r
			}
		}
		if p := math.Abs(a[pivot*n+c]); p < 1e-14 || math.IsNaN(p) {
			return false
		}
		if pivot != c {
			for k := range n {
				a[c*n+k], a[pivot*n+k] = a[pivot*n+k], a[c*n+k]
			}
			b[c], b[pivot] = b[pivot], b[c]
		}
		for r := c + 1; r < n; r++ {
			f := a[r*n+c] / a[c*n+c]
			if f == 0 {
				continue
			}
			for k := c; k < n; k++ {
				a[r*n+k] -= f * a[c*n+k]
			}
			b[r] -= f * b[c]
		}
	}
	for r := n - 1; r >= 0; r-- {
		for k := r + 1; k < n; k++ {
			b[r] -= a[r*n+k] * b[k]
		}
		b[r] /= a[r*n+r]
	}
	return true
}
