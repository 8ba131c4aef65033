package master

import (
	"context"
	"errors"
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
	given  []Values  // by transfer: what the parameter was set to
	// declared marks the ports on loops that are closed by declared dependencies.
	declared []bool
	// Directional derivatives: the inputs by which they were compared with
	// differences, and the subsystems whose are not used.
	compared   map[int]bool
	distrusted map[int]bool
	notes      []string // what is wrong with them

	seen  []*evaluation // the last one of each subsystem
	leaks leaks
	freed map[int]bool // outputs that were found to depend on nothing they deny, or not to be functions
}

// enter brings every subsystem to its initialisation mode.
func (n *initializer) enter(ctx context.Context, e Experiment) error {
	for i := range n.x.able {
		n.x.touch(i)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		mode := n.x.able[i].initializer
		if mode == nil {
			continue
		}
		n.modes[i] = mode
		if err := n.x.crew.on(i, func() error { return mode.EnterInit(ctx, e) }); err != nil {
			return n.failed(i, err)
		}
	}
	return nil
}

// exit leads every subsystem out of its initialisation mode. Outputs may be known only then
// (fmi2 71).
func (n *initializer) exit() error {
	for i, mode := range n.modes {
		n.x.touch(i)
		if mode == nil {
			continue
		}
		if err := n.x.crew.on(i, mode.ExitInit); err != nil {
			return n.failed(i, err)
		}
	}
	for i := range n.modes {
		if err := n.x.readOn(i); err != nil {
			return n.failed(i, err)
		}
	}
	return nil
}

func (n *initializer) failed(i int, err error) error {
	return &StepError{Subsystem: n.x.Sys.Infos[i].Name, Source: n.x.Sys.Infos[i].Source, T: n.t, Reached: n.t, Err: err, Initialize: true}
}

// solve makes inputs and outputs consistent, and begins again with what it
// learns about their order.
func (n *initializer) solve(ctx context.Context) error {
	n.seen, n.freed = make([]*evaluation, len(n.x.Sys.Subsystems)), map[int]bool{}
	for {
		known := len(n.leaks)
		n.report = nil
		err := n.pass(ctx)
		var dead *StepError
		if len(n.leaks) == known || errors.As(err, &dead) || ctx.Err() != nil {
			return err
		}
		for _, l := range n.leaks[known:] {
			n.g.add(l.sub, l.in, l.out)
		}
	}
}

// pass makes inputs and outputs consistent by the order that is known.
func (n *initializer) pass(ctx context.Context) error {
	x := n.x
	n.dirty = make([]bool, len(x.Sys.Subsystems))
	n.given = make([]Values, len(x.Sys.transfers))
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
		if scc[0] >= n.g.transferAt {
			if err := n.transfer(scc[0] - n.g.transferAt); err != nil {
				return err
			}
		}
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
	return n.checkTransfers()
}

// transfer gives a parameter the value of its source.
func (n *initializer) transfer(k int) error {
	x := n.x
	t := &x.Sys.transfers[k]
	v := x.transferred(t)
	if t.kind == Real && v.Real[0]-v.Real[0] != 0 {
		return n.failed(t.from, fmt.Errorf("%s gives %g to the parameter %s", x.Sys.outPortName(t), v.Real[0], x.Sys.paramName(t)))
	}
	setter := x.able[t.to].parameters
	if err := x.crew.on(t.to, func() error { return setter.SetParameter(t.parameter, v) }); err != nil {
		return n.failed(t.to, err)
	}
	n.given[k] = v
	n.seen[t.to] = nil // what changes now is no matter of the inputs
	return nil
}

// checkTransfers fails if a source has another value than it gave to a parameter.
func (n *initializer) checkTransfers() error {
	for k := range n.x.Sys.transfers {
		t := &n.x.Sys.transfers[k]
		gave, now := n.given[k], n.x.transferred(t)
		same := slices.Equal(gave.Integer, now.Integer) && slices.Equal(gave.Boolean, now.Boolean) && slices.Equal(gave.String, now.String)
		if t.kind == Real {
			same = math.Abs(gave.Real[0]-now.Real[0]) <= initAcceptable*max(math.Abs(gave.Real[0]), math.Abs(now.Real[0]))
		}
		if !same {
			return n.failed(t.from, fmt.Errorf("%s has changed since it gave its value to the parameter %s: it follows from inputs, and the InitialUnknowns of its FMU do not say from which", n.x.Sys.outPortName(t), n.x.Sys.paramName(t)))
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
	if err := n.call(i); err != nil {
		return err
	}
	return n.observe(i)
}

// call sets the inputs of a subsystem and reads its outputs.
func (n *initializer) call(i int) error {
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
	if at := slices.IndexFunc(scc, func(v int) bool { return v >= n.g.transferAt }); at >= 0 {
		return fmt.Errorf("initialisation: the parameter %s depends on itself: %s; cut the loop, or declare in the InitialUnknowns of the FMUs what does not depend on each other", n.g.name(scc[at]), loop.name())
	}
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
	how, err = n.newton(l)
	var dead *StepError
	if err == nil || errors.As(err, &dead) || !n.distrust(l) {
		return how, err
	}
	// Derivatives that are right where they were compared may be wrong elsewhere.
	n.put(l, start)
	if err := n.applyAll(l); err != nil {
		return "", err
	}
	return n.newton(l)
}

// distrust makes the loop be solved by differences only; false: it was.
func (n *initializer) distrust(l *initLoop) (news bool) {
	for _, k := range l.inputs {
		sub := owner(n.x.Sys.InAt, k)
		if _, analytic := n.deriver(sub); analytic {
			n.distrusted[sub], news = true, true
		}
	}
	return news
}

// deriver returns the directional derivatives of a subsystem, if they are used.
func (n *initializer) deriver(sub int) (DirectionalDeriver, bool) {
	d := n.x.able[sub].deriver
	return d, d != nil && !n.distrusted[sub]
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
	return max(n.x.Sys.Infos[sub].In[k-n.x.Sys.InAt[sub]].Magnitude(), math.Abs(n.x.U[k]))
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
		why := n.broken(l)
		if why == "" {
			var err error
			if why, err = n.jacobian(l, jac); err != nil {
				return "", err
			}
		}
		length, ok := math.Inf(1), false
		if why == "" {
			length, ok = solve(step)
		}
		if !ok {
			// The start may be a singular point by chance, as 0 often is, or one
			// where a function has no value. A linear loop is singular everywhere.
			if nudges == initNudges {
				if why != "" {
					return "", fmt.Errorf("initialisation: the algebraic loop %s is not solved: %s; "+
						"set start values at which all outputs on the loop are finite, or cut the loop", l.name(), why)
				}
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

// broken names a value on the loop that is no finite number, "" if there is none.
func (n *initializer) broken(l *initLoop) string {
	s := n.x.Sys
	for _, k := range l.inputs {
		if v := l.trial[k]; v-v != 0 {
			src := s.source[k]
			if y := n.x.Y[src]; y-y != 0 {
				return fmt.Sprintf("%s: the output %s is %s", s.Infos[owner(s.OutAt, src)], s.OutName(src), notFinite(y))
			}
			return fmt.Sprintf("%s: the input %s would be %s", s.Infos[owner(s.InAt, k)], s.InName(k), notFinite(v))
		}
	}
	return ""
}

// jacobian puts ∂(u − L y(u))/∂u over the loop's inputs into jac, row-major:
// by directional derivatives where the subsystem has them, else by differences.
// why names an entry that is no finite number, "" if all are.
func (n *initializer) jacobian(l *initLoop, jac []float64) (why string, err error) {
	s := n.x.Sys
	m := len(l.inputs)
	clear(jac)
	var dy []float64
	for col, k := range l.inputs {
		jac[col*m+col] = 1
		sub := owner(s.InAt, k)
		dy = append(dy[:0], n.x.Out(sub)...)
		var fed []int // outputs of the subsystem that feed the loop
		for _, r := range l.inputs {
			if src := s.source[r]; src >= s.OutAt[sub] && src < s.OutAt[sub+1] {
				fed = append(fed, src-s.OutAt[sub])
			}
		}
		told, err := n.derivatives(k, fed, dy)
		if err != nil {
			return "", err
		}
		if !told {
			if err := n.differences(k, initPerturbation, fed, dy); err != nil {
				return "", err
			}
		}
		for row, r := range l.inputs {
			src := s.source[r]
			if src < s.OutAt[sub] || src >= s.OutAt[sub+1] {
				continue
			}
			v := dy[src-s.OutAt[sub]]
			if v-v != 0 {
				return fmt.Sprintf("%s: the derivative of %s by %s is %s", s.Infos[sub], s.OutName(src), s.InName(k), notFinite(v)), nil
			}
			jac[row*m+col] -= s.gain[r] * v
		}
	}
	return "", nil
}

// derivatives puts the directional derivatives by input k into dy, over the
// outputs of its subsystem. The first time they are compared with differences,
// since claims are often wrong: what is not true is told, and not used again.
func (n *initializer) derivatives(k int, fed []int, dy []float64) (told bool, err error) {
	s := n.x.Sys
	sub := owner(s.InAt, k)
	deriver, ok := n.deriver(sub)
	if !ok {
		return false, nil
	}
	du := make([]float64, len(s.Infos[sub].In))
	du[k-s.InAt[sub]] = 1
	n.x.touch(sub)
	err = n.x.crew.on(sub, func() error { return deriver.DirectionalDerivative(du, dy) })
	lie := ""
	switch {
	case errors.Is(err, ErrCapability):
		lie = err.Error()
	case err != nil:
		return false, n.failed(sub, err)
	case n.compared[k]:
		return true, nil
	default:
		n.compared[k] = true
		if lie, err = n.compare(k, fed, dy); err != nil || lie == "" {
			return true, err
		}
	}
	n.distrusted[sub] = true
	n.notes = append(n.notes, fmt.Sprintf("%s: initialisation: %s; differences are taken instead", s.Infos[sub], lie))
	return false, nil
}

// longerWays are what differences are taken over, in magnitudes of an input,
// where a derivative is not that over initPerturbation.
var longerWays = []float64{1e-6, 1e-4, 1e-2}

const initPerturbation = 0x1p-26 // √ε

// compare compares derivatives by input k with differences, for the outputs fed
// of its subsystem, and says what is wrong; "" = nothing.
func (n *initializer) compare(k int, fed []int, dy []float64) (lie string, err error) {
	s := n.x.Sys
	sub := owner(s.InAt, k)
	suspect := map[int]bool{}
	for _, o := range fed {
		suspect[o] = true
	}
	found := make([][]float64, len(dy)) // by output
	floor := func(o int) float64 {
		return SmallSlope * max(s.Infos[sub].Out[o].Magnitude(), math.Abs(n.x.Out(sub)[o])) / n.scale(k)
	}
	d := make([]float64, len(dy))
	for _, way := range append([]float64{initPerturbation}, longerWays...) {
		if err := n.differences(k, way, fed, d); err != nil {
			return "", err
		}
		for o := range suspect {
			if found[o] = append(found[o], d[o]); SlopesAgree(dy[o], d[o], floor(o)) {
				delete(suspect, o)
			}
		}
		if len(suspect) == 0 {
			return "", nil
		}
	}
	for _, o := range fed { // in order
		if !suspect[o] {
			continue
		}
		if truth, wrong := WrongSlope(dy[o], found[o], floor(o)); wrong {
			return fmt.Sprintf("the directional derivative of %s by %s is %.6g, and differences give %.6g",
				s.OutName(s.OutAt[sub]+o), s.InName(k), dy[o], truth), nil
		}
	}
	return "", nil
}

// differences puts (y(u + δ e_k) − y(u))/δ into dy, over the outputs of the
// subsystem of input k, for δ = way times its magnitude; where one of the outputs
// fed is not finite, for −δ. Inputs and outputs are afterwards what they were.
func (n *initializer) differences(k int, way float64, fed []int, dy []float64) error {
	x := n.x
	sub := owner(x.Sys.InAt, k)
	out, u := x.Out(sub), x.U[k]
	before := slices.Clone(out)
	delta := way * n.scale(k)
	for range 2 {
		x.U[k] = u + delta
		err := n.apply(sub)
		for j := range dy {
			dy[j] = (out[j] - before[j]) / (x.U[k] - u)
		}
		x.U[k] = u
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(fed, func(o int) bool { return dy[o]-dy[o] != 0 }) {
			break
		}
		delta = -delta
	}
	return n.apply(sub)
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
