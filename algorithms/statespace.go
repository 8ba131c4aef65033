package algorithms

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// stateSpace is the model x' = A x + B u, y = C x + D u of one subsystem from its directional
// derivatives, haid (7), at the start or at the end of a macro step (Model.Point).
//
// A model is kept as long as it predicts the steps well (haid 6). The prediction starts from the
// state, its derivative and the inputs at one communication point. With the change Δu of the
// inputs from there,
//
//	x_{n+1} = x_n + ∫ e^{As} ds ẋ_n + ∫ e^{A(H−s)} B Δu ds,
//	y_{n+1} = y_n + C (x_{n+1} − x_n) + D Δu(H).
//
// After a bad prediction the model is rebuilt: at the end of this step, or at the start of the
// next. If the subsystem does not provide the values of its states, the model is rebuilt in every
// macro step. If only D is used, it is rebuilt less often the longer it stays constant.
type stateSpace struct {
	of        *modelCorrector
	subsystem int
	x         *master.Exec
	linear    master.Linearizer // nil = the model is D
	direct    master.DirectionalDeriver
	reader    master.StateReader // nil = no prediction

	n, nu, ny int

	groups, owner [][]int // from colour
	dx, du        []float64
	rate, slope   []float64
	now           point
	observed      bool // now is the end of the current step

	// By output: prediction error of the current step, 0 = unknown.
	off  []float64
	held held
	stateSpaceState
}

// held is a discretised model, and of what it was made. An analysis restores the same model many times.
type held struct {
	*num.Hold
	a, b []float64
	H    float64
}

// stateSpaceState is the state of a stateSpace between two steps.
type stateSpaceState struct {
	a, b, c, d []float64 // by rows
	known      bool      // there is a model
	H          float64   // s, step size of moments, responses and drift
	// moments are m! / H^m ∫ e^{A(H−s)} B s^m/m! ds for m = 0, 1, …, by rows [n × nu];
	// responses are C times them [ny × nu].
	moments, responses [][]float64
	drift              []float64 // ∫ e^{As} ds, by rows

	then    point
	has     bool    // then is the end of the previous step
	worst   float64 // largest prediction error
	new     bool    // the current step is the first that the model predicts
	failing bool    // the model did not predict the last step
	stale   bool    // the model must be rebuilt before the next step
	made    bool    // the model was rebuilt before the current step and not integrated yet
	why     string  // reason why there are no derivatives at the start of the current step
	wrong   int     // number of bad first predictions in a row
	lie     string  // reason why there is no model for the rest of the run

	gap, wait int       // steps for which D is kept in total, and from now on
	before    []float64 // the previous D

	// By output: largest change over a step, largest sum of the magnitudes of the terms that change it.
	largest, moved []float64
}

// point is the start of a prediction.
type point struct{ x, xdot, y, u []float64 }

func newPoint(n, ny, nu int) point {
	return point{make([]float64, n), make([]float64, n), make([]float64, ny), make([]float64, nu)}
}

func newStateSpace(x *master.Exec, of *modelCorrector, i int) *stateSpace {
	info, sub := x.Sys.Infos[i], x.Sys.Subsystems[i]
	s := &stateSpace{of: of, subsystem: i, x: x, nu: len(info.In), ny: len(info.Out), stateSpaceState: stateSpaceState{worst: math.NaN()}}
	s.direct, _ = master.As[master.DirectionalDeriver](sub)
	if !of.direct && !info.Stateless {
		s.linear, _ = master.As[master.Linearizer](sub)
		s.n = len(s.linear.States())
		s.reader, _ = master.As[master.StateReader](sub)
	}
	s.a, s.b, s.drift = make([]float64, s.n*s.n), make([]float64, s.n*s.nu), make([]float64, s.n*s.n)
	s.c, s.d = make([]float64, s.ny*s.n), make([]float64, s.ny*s.nu)
	s.before, s.gap = make([]float64, s.ny*s.nu), 1
	for range of.in.OrderFor(i) + 1 {
		s.moments = append(s.moments, make([]float64, s.n*s.nu))
		s.responses = append(s.responses, make([]float64, s.ny*s.nu))
	}
	s.dx, s.du, s.rate, s.slope = make([]float64, s.n), make([]float64, s.nu), make([]float64, s.n), make([]float64, s.ny)
	rows := make([][]int, s.n+s.ny) // dependencies of rates and outputs; nil = all
	if pattern, ok := master.As[master.JacobianPattern](sub); ok && s.linear != nil {
		rates, outputs := pattern.Dependencies()
		rows = slices.Concat(rates, outputs)
	} else if s.linear == nil {
		for o := range rows {
			switch {
			case o >= len(info.Step.On):
				rows[o] = []int{}
			case !info.Step.Assumed[o]:
				rows[o] = append([]int{}, info.Step.On[o]...)
			}
		}
	}
	s.groups, s.owner = colour(s.n+s.nu, rows)
	s.then, s.now = newPoint(s.n, s.ny, s.nu), newPoint(s.n, s.ny, s.nu)
	s.largest, s.moved, s.off = make([]float64, s.ny), make([]float64, s.ny), make([]float64, s.ny)
	return s
}

// renew rebuilds the model at the start of the next step if it is outdated.
func (s *stateSpace) renew() (err error) {
	if !s.outdated() {
		return nil
	}
	s.known, s.stale, s.made, s.new = false, false, true, true
	if !s.has {
		if err := s.observe(&s.then, s.inputAtStart); err != nil {
			return err
		}
		s.has = true
	}
	if s.of.point() == StartNewPoint && s.of.in.Over(s.subsystem) == 1 && !s.of.in.Late(s.subsystem) {
		if err := s.sendInputs(); err != nil {
			return err
		}
	}
	s.why, err = s.linearise()
	s.known = err == nil && s.why == ""
	return err
}

// sendInputs sends the inputs at the start of the next step.
func (s *stateSpace) sendInputs() error {
	at := s.x.Sys.InAt[s.subsystem]
	for k := range s.nu {
		s.du[k] = s.inputAtStart(at+k) + s.of.in.Bias(at+k)
	}
	sub := s.x.Sys.Subsystems[s.subsystem]
	if err := sub.SetInputs(s.du); err != nil {
		return err
	}
	if sender, ok := master.As[master.InputSender](sub); ok {
		return sender.SendInputs()
	}
	return nil
}

// outdated reports whether the model must be rebuilt before the next step.
func (s *stateSpace) outdated() bool { return s.lie == "" && (s.stale || !s.known) }

// update checks the model with the step that was just taken. With derivatives at the end of a step
// it also rebuilds the model if necessary.
func (s *stateSpace) update() (u modelUpdate, err error) {
	if err := s.observe(&s.now, s.inputAtEnd); err != nil {
		return u, err
	}
	s.observed = true
	clear(s.off)
	H := s.of.span(s.subsystem)
	another := !s.of.sameSize(H, s.H) || s.made
	if s.made {
		u.evaluations, s.made = 1, false
		if s.why != "" {
			u.why = s.why
			return u, nil
		}
		s.H = math.NaN()
	}
	s.check(H)
	if s.lie != "" {
		u.why, s.known = s.lie, false
		return u, nil
	}
	if s.of.point() != EndPoint {
		s.new = false
	} else if s.new = s.failing; s.failing {
		u.evaluations, another = 1, true
		if u.why, err = s.rebuild(); err != nil || u.why != "" {
			u.changed = true
			return u, err
		}
	}
	if another {
		u.changed = true
		if u.why = s.integrate(H); u.why != "" {
			s.known = false
		}
	}
	return u, nil
}

// check decides from its prediction of a step of size H whether the model fails or is wrong.
func (s *stateSpace) check(H float64) {
	s.failing = !s.known || s.of.config.Refresh == 0 || !s.predicts() && s.wait == 0
	s.wait = max(s.wait-1, 0)
	if !s.known || !s.has || !s.predicts() {
		return
	}
	off, astray := s.predictionErrorOver(H)
	if !(off <= s.of.config.Refresh) {
		s.failing = true
	}
	if s.linear != nil && s.new && !(astray <= wrongModel) {
		s.wrong++
	} else if astray <= wrongModel {
		s.wrong = 0
	}
	if s.wrong >= wrongModels {
		s.lie = fmt.Sprintf("its directional derivatives contradict its steps: with a model of the previous step, "+
			"the error of an output "+
			"is %.2g of all terms that change it, %d times in a row", astray, s.wrong)
	}
}

// rebuild makes the model from the derivatives at the end of the step.
func (s *stateSpace) rebuild() (why string, err error) {
	clear(s.off)
	known := s.known
	s.known = false
	copy(s.before, s.d)
	if why, err = s.linearise(); err != nil || why != "" {
		return why, err
	}
	s.known = true
	if s.of.direct {
		s.keep(known)
	}
	return "", nil
}

// keep sets the number of steps for which D is kept, since D alone predicts no step. The number
// doubles if D has not changed.
func (s *stateSpace) keep(known bool) {
	const longest = 64
	size, changed := 0.0, 0.0
	for i, v := range s.d {
		size, changed = max(size, math.Abs(v)), max(changed, math.Abs(v-s.before[i]))
	}
	if known && changed <= s.of.config.Refresh*size {
		s.gap = min(2*s.gap, longest)
	} else {
		s.gap = 1
	}
	s.wait = s.gap - 1
}

// Derivatives are wrong if the error of the first prediction exceeds wrongModel times the sum of
// the magnitudes of all terms that change the output, wrongModels times in a row. That sum
// counts at least leastMoved times its largest value. Single bad predictions are normal in
// nonlinear subsystems, for example when a friction force changes its sign.
const (
	wrongModel  = 0.4
	wrongModels = 10
	leastMoved  = 0.1
)

// predicts reports whether the model can be checked.
func (s *stateSpace) predicts() bool {
	return s.reader != nil || s.linear == nil && s.x.Sys.Infos[s.subsystem].Stateless
}

// observe reads the current point, with given inputs.
func (s *stateSpace) observe(p *point, input func(k int) float64) error {
	sys := s.x.Sys
	copy(p.y, s.x.Y[sys.OutAt[s.subsystem]:sys.OutAt[s.subsystem+1]])
	for k := range s.nu {
		p.u[k] = input(sys.InAt[s.subsystem] + k)
	}
	if s.reader == nil {
		return nil
	}
	return s.reader.ReadStates(p.x, p.xdot)
}

// inputAtStart returns the value of input k before a step.
func (s *stateSpace) inputAtStart(k int) float64 { return s.x.W[k] }

// inputAtEnd returns the value of input k at the end of the step.
func (s *stateSpace) inputAtEnd(k int) float64 {
	if s.of.in.Late(s.subsystem) {
		return s.x.U[k]
	}
	return s.of.in.AtEnd(k) + s.of.in.Bias(k)
}

// predictionErrorOver predicts the step of size H that was just taken. worst is the largest error of
// an output relative to its change over the step, or to a thousandth of its largest change so
// far; astray is the largest error relative to all terms that change the output.
func (s *stateSpace) predictionErrorOver(H float64) (worst, astray float64) {
	if !s.of.sameSize(H, s.H) {
		if why := s.integrate(H); why != "" {
			return math.NaN(), math.NaN()
		}
	}
	s.predictStates(H)
	for o := range s.ny {
		v, moved := 0.0, 0.0
		for r, rate := range s.rate {
			term := float64(s.c[o*s.n+r] * rate)
			v += term
			moved += math.Abs(term)
		}
		for k := range s.nu {
			term := float64(s.d[o*s.nu+k] * (s.now.u[k] - s.then.u[k]))
			v += term
			moved += math.Abs(term)
		}
		s.moved[o] = max(s.moved[o], moved)
		change := math.Abs(s.now.y[o] - s.then.y[o])
		s.largest[o] = max(s.largest[o], change)
		off := math.Abs(s.now.y[o] - s.then.y[o] - v)
		s.off[o] = off
		rounding := 1e-12 * max(math.Abs(s.now.y[o]), math.Abs(s.then.y[o]))
		if off <= rounding {
			continue
		}
		if e := off / max(change, leastChange*s.largest[o], rounding); !(e <= worst) {
			worst = e
		}
		if s.moved[o] == 0 {
			continue // it depends on time only
		}
		if e := off / max(change, moved, leastMoved*s.largest[o], leastMoved*s.moved[o], rounding); !(e <= astray) {
			astray = e
		}
	}
	if !(worst <= s.worst) {
		s.worst = worst
	}
	return worst, astray
}

// predictStates computes x_{n+1} − x_n over a step of size H in s.rate.
func (s *stateSpace) predictStates(H float64) {
	for r := range s.n {
		s.rate[r] = num.Dot(s.drift[r*s.n:(r+1)*s.n], s.then.xdot)
	}
	in := s.of.in
	at := s.x.Sys.InAt[s.subsystem]
	for k := range s.nu {
		// Δu = Σ q_m (s/H)^m
		degree := in.DegreeOf(at + k)
		factor := 1.0
		for m := range degree + 1 {
			if m > 0 {
				factor *= H / float64(m)
			}
			var q float64
			switch {
			case degree == 0:
				q = s.now.u[k] - s.then.u[k]
			case m == 0:
				q = in.Slope(at+k, 0) + in.Bias(at+k) - s.then.u[k]
			default:
				q = factor * in.Slope(at+k, m)
			}
			for r := range s.n {
				s.rate[r] += float64(s.moments[m][r*s.nu+k] * q)
			}
		}
	}
}

// leastChange is the smallest change of an output over a step that counts, relative to its largest.
const leastChange = 1e-3

// colour groups the columns (states, then inputs) so that no row depends on two columns of a group.
// One seed then gives the derivatives of a whole group. rows holds the columns on which each row
// (state derivatives, then outputs) depends, nil = all. owner[g][row] is the column of group g on
// which the row depends; −1 = none.
//
// Each column joins the first group that it fits.
func colour(columns int, rows [][]int) (groups [][]int, owner [][]int) {
	reached := make([][]int, columns)
	for r, on := range rows {
		if on == nil {
			for c := range columns {
				reached[c] = append(reached[c], r)
			}
		}
		for _, c := range on {
			reached[c] = append(reached[c], r)
		}
	}
	for c := range columns {
		g := slices.IndexFunc(owner, func(taken []int) bool {
			return !slices.ContainsFunc(reached[c], func(r int) bool { return taken[r] >= 0 })
		})
		if g < 0 {
			g = len(groups)
			groups = append(groups, nil)
			owner = append(owner, slices.Repeat([]int{-1}, len(rows)))
		}
		groups[g] = append(groups[g], c)
		for _, r := range reached[c] {
			owner[g][r] = c
		}
	}
	return groups, owner
}

// linearise computes the derivatives with one seed per group. why is the reason if it cannot.
func (s *stateSpace) linearise() (why string, err error) {
	for g, group := range s.groups {
		clear(s.dx)
		clear(s.du)
		for _, c := range group {
			if c < s.n {
				s.dx[c] = 1
			} else {
				s.du[c-s.n] = 1
			}
		}
		if s.linear == nil {
			err = s.direct.DirectionalDerivative(s.du, s.slope)
		} else {
			err = s.linear.Linearize(s.dx, s.du, s.rate, s.slope)
		}
		if errors.Is(err, master.ErrCapability) {
			return err.Error(), nil
		}
		if err != nil {
			return "", err
		}
		for r, v := range s.rate {
			if why := s.take(s.owner[g][r], r, v, s.a, s.b); why != "" {
				return why, nil
			}
		}
		for o, v := range s.slope {
			if v-v != 0 && !s.x.Sys.Feeds(s.x.Sys.OutAt[s.subsystem]+o) {
				v = 0 // it corrects no input
			}
			if why := s.take(s.owner[g][s.n+o], o, v, s.c, s.d); why != "" {
				return why, nil
			}
		}
	}
	return "", nil
}

// take stores a derivative by a column in the matrix for states or in that for inputs.
func (s *stateSpace) take(column, row int, v float64, byState, byInput []float64) (why string) {
	switch {
	case column < 0:
		return ""
	case v-v != 0 && column < s.n:
		return "the directional derivative by the state " + s.linear.States()[column].Name + " is not a finite number"
	case v-v != 0:
		return "the directional derivative by the input " + s.x.Sys.Infos[s.subsystem].In[column-s.n].Name + " is not a finite number"
	case column < s.n:
		byState[row*s.n+column] = v
	default:
		byInput[row*s.nu+column-s.n] = v
	}
	return ""
}

// integrate computes moments, responses and drift for a step of size H.
func (s *stateSpace) integrate(H float64) (why string) {
	s.H = H
	if s.n > 0 {
		inputs := mat.NewDense(s.n, s.nu+s.n, nil)
		for r := range s.n {
			for k := range s.nu {
				inputs.Set(r, k, s.b[r*s.nu+k])
			}
			inputs.Set(r, s.nu+r, 1)
		}
		h := s.held.Hold
		if s.held.H != H || !slices.Equal(s.held.a, s.a) || !slices.Equal(s.held.b, s.b) {
			var err error
			if h, err = num.NewHold(mat.NewDense(s.n, s.n, s.a), inputs, H, len(s.moments)-1); err != nil {
				return err.Error()
			}
			s.held = held{h, slices.Clone(s.a), slices.Clone(s.b), H}
		}
		factor := 1.0
		for m, part := range h.B {
			if m > 0 {
				factor *= float64(m) / H
			}
			for r := range s.n {
				for k := range s.nu {
					s.moments[m][r*s.nu+k] = factor * part.At(r, k)
				}
				if m == 0 {
					for q := range s.n {
						s.drift[r*s.n+q] = part.At(r, s.nu+q)
					}
				}
			}
		}
	}
	for m := range s.moments {
		for o := range s.ny {
			for k := range s.nu {
				sum := 0.0
				for r := range s.n {
					sum += float64(s.c[o*s.n+r] * s.moments[m][r*s.nu+k])
				}
				s.responses[m][o*s.nu+k] = sum
			}
		}
	}
	return ""
}

// respond implements responder.
func (s *stateSpace) respond(j int, course *num.Shape, to, offset []float64) {
	input := s.of.columns[j].input - s.x.Sys.InAt[s.subsystem]
	end := 0.0
	for _, p := range course {
		end += p
	}
	for o := range to {
		d := s.d[o*s.nu+input]
		to[o] = d * end
		for m := range s.responses {
			to[o] += float64(course[m] * s.responses[m][o*s.nu+input])
		}
		offset[o] = d + s.responses[0][o*s.nu+input]
	}
}

func (s *stateSpace) accept() {
	clear(s.off)
	if s.observed {
		s.then, s.now = s.now, s.then
		s.has, s.observed = true, false
		s.stale = s.failing
	}
}

func (s *stateSpace) archive(a *master.Archive) { a.All(&s.stateSpaceState) }

func (s *stateSpace) reject() { s.observed = false }

func (s *stateSpace) predictionError() float64 { return s.worst }
