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
	initNewton     = 50
	initRounds     = 20 // of discrete signals on a loop
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
		n.x.current = i
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		mode, ok := As[Initializer](sub)
		if !ok {
			continue
		}
		n.modes[i] = mode
		if err := mode.EnterInit(ctx, e); err != nil {
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
		if err := n.modes[i].EvalInit(); err != nil {
			return n.failed(i, err)
		}
	}
	if err := n.x.Read(i); err != nil {
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

func (n *initializer) solveReals(l *initLoop) (how string, err error) {
	for sweep := 1; sweep <= 3; sweep++ {
		for _, i := range l.subs {
			if err := n.evaluate(i); err != nil {
				return "", err
			}
		}
		if worst, _ := n.residual(l); worst <= initTolerance {
			return "settled in " + count(sweep, "sweep"), nil
		}
	}
	return n.newton(l)
}

// count gives a number with its noun.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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

// newton solves u = L y(u) + b over the Real inputs of the loop, with the best
// iterate kept and steps halved where they do not improve.
func (n *initializer) newton(l *initLoop) (string, error) {
	x := n.x
	if err := n.applyAll(l); err != nil {
		return "", err
	}
	worst, at := n.residual(l)
	m := len(l.inputs)
	best, base := make([]float64, m), make([]float64, m)
	step, jac := make([]float64, m), make([]float64, m*m)
	save := func(to []float64) {
		for r, k := range l.inputs {
			to[r] = x.U[k]
		}
	}
	save(best)
	iterations := 0
	for ; worst > initTolerance && iterations < initNewton; iterations++ {
		for r, k := range l.inputs {
			step[r] = l.trial[k] - x.U[k]
		}
		save(base)
		if err := n.jacobian(l, jac); err != nil {
			return "", err
		}
		if !solveDense(jac, step) {
			return "", fmt.Errorf("initialisation: the algebraic loop %s has no unique solution (its Jacobian is singular); "+
				"give one of its inputs a value from outside, or cut the loop", l.name())
		}
		improved := false
		for fraction := 1.0; fraction > 1e-3; fraction /= 2 {
			for r, k := range l.inputs {
				x.U[k] = base[r] + fraction*step[r]
			}
			if err := n.applyAll(l); err != nil {
				return "", err
			}
			if w, where := n.residual(l); w < worst {
				worst, at, improved = w, where, true
				save(best)
				break
			}
		}
		if !improved {
			break
		}
	}
	for r, k := range l.inputs {
		x.U[k] = best[r]
	}
	if err := n.applyAll(l); err != nil {
		return "", err
	}
	if !(worst <= initAcceptable) {
		return "", fmt.Errorf("initialisation: the algebraic loop %s is not solved: after %d Newton iterations the residual at %s is still %.3g of its magnitude; "+
			"set start values closer to a solution, or cut the loop", l.name(), iterations, x.Sys.InName(at), worst)
	}
	return fmt.Sprintf("solved by Newton in %s, residual %.1e", count(iterations, "iteration"), worst), nil
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
			if err := deriver.DirectionalDerivative(du, dy); err != nil {
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
