package master

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// initLoop is one algebraic loop: the subsystems on it and its Real inputs.
type initLoop struct {
	subs   []int
	inputs []int // entries of u
	info   Loop
	trial  []float64 // L y + b
}

// solveLoop solves one loop: by a few sweeps, which suffice for a loop that only assumed dependencies
// close, then by Newton's method for the Real inputs; discrete signals by repetition.
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
		return fmt.Errorf("initialisation: the parameter %s depends on itself: %s; cut the loop, or declare in "+
			"the InitialUnknowns of the FMUs what does not depend on each other", n.g.name(scc[at]), loop.name())
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

// solveReals makes the Real inputs of a loop agree with their sources. Newton's method begins where
// the sweeps ended or at the start, whichever is closer: where repetition does not contract, it leads
// away from the solution, soon to infinity.
func (n *initializer) solveReals(l *initLoop) (how string, err error) {
	start, weights := n.inputs(l), make([]float64, len(l.inputs))
	for r, k := range l.inputs {
		weights[r] = n.scale(k)
	}
	end, how, err := n.sweep(l, weights)
	if err != nil || how != "" {
		return how, err
	}
	endAway := math.Inf(1)
	if end != nil {
		endAway = n.away(l, weights)
	}
	if err := n.goTo(l, start); err != nil {
		return "", err
	}
	if endAway < n.away(l, weights) {
		if err := n.goTo(l, end); err != nil {
			return "", err
		}
	}
	return n.newton(l)
}

// sweep evaluates the subsystems of a loop one after the other, a few times, and returns the inputs
// at the end; nil if they have grown beyond initFar. how is "" unless the loop has settled.
func (n *initializer) sweep(l *initLoop, weights []float64) (end []float64, how string, err error) {
	for sweep := 1; sweep <= initSweeps; sweep++ {
		for _, i := range l.subs {
			n.x.Couple(i, n.t, n.x.U)
			for r, k := range l.inputs {
				if !(math.Abs(n.x.U[k]) <= initFar*weights[r]) {
					return nil, "", nil
				}
			}
			if err := n.apply(i); err != nil {
				return nil, "", err
			}
		}
		if worst, _ := n.residual(l); worst <= initTolerance {
			return nil, fmt.Sprintf("settled in %d sweeps", sweep), nil
		}
	}
	return n.inputs(l), "", nil
}

// away returns the largest difference between an input of the loop and its source, by weights.
func (n *initializer) away(l *initLoop, weights []float64) (far float64) {
	n.residual(l)
	for r, k := range l.inputs {
		far = max(far, math.Abs(n.x.U[k]-l.trial[k])/weights[r])
	}
	return far
}

// inputs returns the inputs of a loop.
func (n *initializer) inputs(l *initLoop) []float64 {
	u := make([]float64, len(l.inputs))
	for r, k := range l.inputs {
		u[r] = n.x.U[k]
	}
	return u
}

// goTo sets the inputs of a loop and evaluates its subsystems.
func (n *initializer) goTo(l *initLoop, u []float64) error {
	for r, k := range l.inputs {
		n.x.U[k] = u[r]
	}
	for _, i := range l.subs {
		if err := n.apply(i); err != nil {
			return err
		}
	}
	return nil
}

// residual puts L y + b into l.trial and returns the largest |u − (L y + b)| over the loop's inputs,
// relative to the magnitude of the input, and the input.
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

// newton is Newton's method for F(u) = u − L y(u) − b = 0 over the Real inputs of a loop.
type newton struct {
	n             *initializer
	l             *initLoop
	base, weights []float64 // inputs before the step, and their magnitudes
	step, next    []float64 // Newton steps, at base and at the end of the step
	jac, work     []float64
	worst         float64 // largest residual
	at            int     // input that has it
}

// newton solves a loop from the inputs and outputs as they are.
func (n *initializer) newton(l *initLoop) (how string, err error) {
	m := len(l.inputs)
	s := &newton{n: n, l: l, base: make([]float64, m), weights: make([]float64, m), step: make([]float64, m), next: make([]float64, m),
		jac: make([]float64, m*m), work: make([]float64, m*m)}
	s.worst, s.at = n.residual(l)
	iterations, nudges := 0, 0
	for ; s.worst > initTolerance && iterations < initNewton; iterations++ {
		length, why, err := s.direction()
		if err != nil {
			return "", err
		}
		if why != "" {
			if nudges == initNudges {
				return "", fmt.Errorf("initialisation: the algebraic loop %s %s", l.name(), why)
			}
			nudges++
			if err := s.nudge(nudges); err != nil {
				return "", err
			}
			continue
		}
		if improved, err := s.advance(length); err != nil {
			return "", err
		} else if !improved {
			break
		}
	}
	if !(s.worst <= initAcceptable) {
		return "", fmt.Errorf("initialisation: the algebraic loop %s is not solved: after %d Newton iterations the residual at %s "+
			"is still %.3g of its magnitude; set start values closer to a solution, or cut the loop", l.name(), iterations, n.x.Sys.InName(s.at), s.worst)
	}
	return fmt.Sprintf("solved by Newton in %d iterations, residual %.1e", iterations, s.worst), nil
}

// direction computes the Newton step from the present inputs and returns its length; why is the reason
// why there is none.
func (s *newton) direction() (length float64, why string, err error) {
	for r, k := range s.l.inputs {
		s.base[r], s.weights[r] = s.n.x.U[k], s.n.scale(k)
	}
	broken := s.n.broken(s.l)
	if broken == "" {
		if broken, err = s.n.jacobian(s.l, s.jac); err != nil {
			return 0, "", err
		}
	}
	if broken != "" {
		return 0, "is not solved: " + broken + "; set start values at which all outputs on the loop are finite, or cut the loop", nil
	}
	length, ok := s.solve(s.step)
	if !ok {
		why = "has no unique solution (its Jacobian is singular); give one of its inputs a value from outside, or cut the loop"
	}
	return length, why, nil
}

// solve puts the Newton step −J⁻¹F at the inputs in U into to and returns its length; false if J is
// singular.
func (s *newton) solve(to []float64) (length float64, ok bool) {
	for r, k := range s.l.inputs {
		to[r] = s.l.trial[k] - s.n.x.U[k]
	}
	copy(s.work, s.jac)
	if !solveDense(s.work, to) {
		return 0, false
	}
	for r := range to {
		length = max(length, math.Abs(to[r])/s.weights[r])
		if math.IsNaN(to[r]) {
			return math.Inf(1), true
		}
	}
	return length, true
}

// nudge moves the inputs a little, for the k-th time. The start may be a singular point by chance, as
// 0 often is, or one where a function has no value. A linear loop is singular everywhere.
func (s *newton) nudge(k int) error {
	u := make([]float64, len(s.base))
	for r := range u {
		u[r] = s.base[r] + s.weights[r]*float64(k)/float64(r+2)
	}
	err := s.n.goTo(s.l, u)
	s.worst, s.at = s.n.residual(s.l)
	return err
}

// advance takes the Newton step, halved until the next one, with the same Jacobian, would be shorter
// than this one: the natural monotonicity test of Deuflhard (Newton Methods for Nonlinear Problems,
// 3.3). Unlike the size of F, it depends neither on the units of the equations nor on how steep they
// are, and so finds the way from far off. If no part of the step passes, the inputs go back.
func (s *newton) advance(length float64) (improved bool, err error) {
	u := make([]float64, len(s.base))
	for fraction := 1.0; fraction > 1e-4 && !math.IsInf(length, 0); fraction /= 2 {
		for r := range u {
			u[r] = s.base[r] + fraction*s.step[r]
		}
		if slices.ContainsFunc(u, func(v float64) bool { return math.IsInf(v, 0) }) {
			continue
		}
		if err := s.n.goTo(s.l, u); err != nil {
			return false, err
		}
		worst, at := s.n.residual(s.l)
		following, _ := s.solve(s.next)
		if worst <= initTolerance || !math.IsInf(worst, 0) && following <= (1-fraction/4)*length {
			s.worst, s.at = worst, at
			return true, nil
		}
	}
	return false, s.n.goTo(s.l, s.base)
}

// broken describes a value on the loop that is not finite, "" if there is none.
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

// jacobian puts ∂(u − L y(u))/∂u over the loop's inputs into jac, row-major, by differences.
// why describes an entry that is not finite, "" if all are.
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
		if err := n.differences(k, fed, dy); err != nil {
			return "", err
		}
		for row, r := range l.inputs {
			src := s.source[r]
			if src < s.OutAt[sub] || src >= s.OutAt[sub+1] {
				continue
			}
			v := dy[src-s.OutAt[sub]]
			if v-v != 0 {
				return fmt.Sprintf("%s: the derivative of %s with respect to %s is %s", s.Infos[sub], s.OutName(src), s.InName(k), notFinite(v)), nil
			}
			jac[row*m+col] -= s.gain[r] * v
		}
	}
	return "", nil
}

const initPerturbation = 0x1p-26 // √ε

// differences puts (y(u + δ e_k) − y(u))/δ into dy, over the outputs of the subsystem of input k, for
// δ = initPerturbation times its magnitude; for −δ if one of the outputs fed is not finite. It restores inputs and
// outputs.
func (n *initializer) differences(k int, fed []int, dy []float64) error {
	x := n.x
	sub := owner(x.Sys.InAt, k)
	out, u := x.Out(sub), x.U[k]
	before := slices.Clone(out)
	delta := initPerturbation * n.scale(k)
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
