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

// stateSpace is the model x' = A x + B u, y = C x + D u of one subsystem by its
// directional derivatives (haid (7)).
//
// The derivatives are those at the start of the macro step (haid (7)), or at its end
// (Model.Point).
//
// The model is kept for as long as it predicts the steps well (haid 6): from the state,
// its derivative and the inputs at one communication point, with Δu what the
// inputs then change by,
//
//	x_{n+1} = x_n + ∫ e^{As} ds ẋ_n + ∫ e^{A(H−s)} B Δu ds,
//	y_{n+1} = y_n + C (x_{n+1} − x_n) + D Δu(H).
//
// A model that fails at this is made anew: at the end of the step at once, at the start
// for the next step. Where the subsystem does not show the values of its states, it is made
// anew in every macro step; D alone, for the correction of direct feedthrough, the less often
// the longer it stays what it is.
type stateSpace struct {
	of        *modelCorrector
	subsystem int
	x         *master.Exec
	linear    master.Linearizer // nil: D alone
	direct    master.DirectionalDeriver
	reader    master.StateReader // nil: no prediction

	n, nu, ny  int
	a, b, c, d []float64 // by rows
	known      bool
	H          float64
	// moments of the input over the step: m! / H^m ∫ e^{A(H−s)} B s^m/m! ds, by
	// rows [n × nu], for m = 0, 1, …, and C times them [ny × nu].
	moments, responses [][]float64
	drift              []float64 // ∫ e^{As} ds, by rows

	groups, owner  [][]int // colouring of the columns
	dx, du         []float64
	rate, slope    []float64
	then, now      point
	has, observed  bool // then is that of the end of the last step; now of the present one
	worst          float64
	new            bool      // the present step is the first that it predicts
	failing        bool      // it failed to predict the present step
	stale          bool      // it must be made anew before the next step
	made           bool      // before the present step, and not integrated yet
	why            string    // the derivatives at the start of the present step are none
	wrong          int       // first predictions in a row that were far off
	lie            string    // there is no model for the rest of the run, because of this
	gap, wait      int       // steps for which D alone is kept, and is yet
	before         []float64 // D that was kept
	largest, moved []float64 // change of each output over a step so far, and all that moved it
	off            []float64 // by how much the model in force failed to predict each output of the step; 0 = unknown
}

// point is what a prediction starts from.
type point struct{ x, xdot, y, u []float64 }

func newPoint(n, ny, nu int) point {
	return point{make([]float64, n), make([]float64, n), make([]float64, ny), make([]float64, nu)}
}

func newStateSpace(x *master.Exec, of *modelCorrector, i int) *stateSpace {
	info, sub := x.Sys.Infos[i], x.Sys.Subsystems[i]
	s := &stateSpace{of: of, subsystem: i, x: x, nu: len(info.In), ny: len(info.Out), worst: math.NaN()}
	s.direct, _ = master.As[master.DirectionalDeriver](sub)
	if !of.direct && !info.Stateless {
		s.linear, _ = master.As[master.Linearizer](sub)
		s.n = len(s.linear.States())
		s.reader, _ = master.As[master.StateReader](sub)
	}
	s.a, s.b, s.drift = make([]float64, s.n*s.n), make([]float64, s.n*s.nu), make([]float64, s.n*s.n)
	s.c, s.d = make([]float64, s.ny*s.n), make([]float64, s.ny*s.nu)
	s.before, s.gap = make([]float64, s.ny*s.nu), 1
	for range of.in.Order() + 1 {
		s.moments = append(s.moments, make([]float64, s.n*s.nu))
		s.responses = append(s.responses, make([]float64, s.ny*s.nu))
	}
	s.dx, s.du, s.rate, s.slope = make([]float64, s.n), make([]float64, s.nu), make([]float64, s.n), make([]float64, s.ny)
	rows := make([][]int, s.n+s.ny) // nil = on all
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

// renew makes the model at the start of the step about to be taken, if the step before has
// shown that it must.
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
	s.why, err = s.linearise()
	s.known = err == nil && s.why == ""
	return err
}

// outdated reports whether there is no model that may be kept for the next step.
func (s *stateSpace) outdated() bool { return s.lie == "" && (s.stale || !s.known) }

// update checks the model by the step just taken, and makes it anew if it must and is
// that of the end of the step.
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
	s.failing = !s.known || s.of.config.Refresh == 0 || !s.predicts() && s.wait == 0
	s.wait = max(s.wait-1, 0)
	if s.known && s.has && s.predicts() {
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
			s.lie = fmt.Sprintf("its directional derivatives do not tell what it does: by a model made in the step before, an output is off by %.2g of all that moves it, %d times in a row", astray, s.wrong)
		}
	}
	if s.lie != "" {
		u.why, s.known = s.lie, false
		return u, nil
	}
	if s.of.atStart() {
		s.new = false
	} else {
		s.new = s.failing
		if s.failing {
			u.evaluations, u.changed, another = 1, true, true
			clear(s.off)
			known := s.known
			s.known = false
			copy(s.before, s.d)
			if u.why, err = s.linearise(); err != nil || u.why != "" {
				return u, err
			}
			s.known = true
			if s.of.direct {
				s.keep(known)
			}
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

// keep decides for how many steps D, which no step can be predicted by alone, is kept: for twice
// as many as before, if it has not changed.
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

// A model whose first prediction is off by wrongModel of all that moves the output, or of
// leastMoved of the most that has, wrongModels times in a row, is none. Where terms cancel, the
// change of the output says nothing of the model; where it is not linear, a model of the
// step before may be far off for a step or two, as where a friction changes its sign.
const (
	wrongModel  = 0.4
	wrongModels = 10
	leastMoved  = 0.1
)

// predicts reports whether the model can be checked.
func (s *stateSpace) predicts() bool {
	return s.reader != nil || s.linear == nil && s.x.Sys.Infos[s.subsystem].Stateless
}

// observe reads a point: that at the start of the run, or that which the step has led to.
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

// inputAtStart is the value of input k before the first step.
func (s *stateSpace) inputAtStart(k int) float64 { return s.x.W[k] }

// inputAtEnd is what the subsystem had as input k at the end of the step.
func (s *stateSpace) inputAtEnd(k int) float64 {
	if s.of.in.Late(s.subsystem) {
		return s.x.U[k]
	}
	return s.of.in.AtEnd(k) + s.of.in.Bias(k)
}

// predictionErrorOver is the largest error of an output by the prediction over
// the step just taken, relative to its change over the step, or to a thousandth
// of the largest so far; and relative to all that moves it.
func (s *stateSpace) predictionErrorOver(H float64) (worst, astray float64) {
	if !s.of.sameSize(H, s.H) {
		if why := s.integrate(H); why != "" {
			return math.NaN(), math.NaN()
		}
	}
	for r := range s.n {
		s.rate[r] = num.Dot(s.drift[r*s.n:(r+1)*s.n], s.then.xdot)
	}
	in := s.of.in
	at := s.x.Sys.InAt[s.subsystem]
	for k := range s.nu {
		// Δu = Σ q_m (s/H)^m
		degree := in.DegreeOf(at + k)
		if s.of.in.Late(s.subsystem) || !in.Shapes(s.subsystem) || in.Holds(at+k) {
			degree = 0
		}
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
			continue // time alone moves it
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

// leastChange is the part of the largest change of an output over a step below
// which a change counts as none.
const leastChange = 1e-3

// colour groups the columns, states before inputs, so that no row depends on two
// of a group: the derivatives of a group come from one seed. owner gives for each
// row, rates before outputs, the column of the group that it depends on, −1 = none.
//
// Columns are taken in turn, each into the first group that it fits.
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

// linearise asks for the derivatives, by as few seeds as the pattern allows.
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
			if math.IsNaN(v) && s.x.Sys.Infos[s.subsystem].Out[o].Internal {
				v = 0
			}
			if why := s.take(s.owner[g][s.n+o], o, v, s.c, s.d); why != "" {
				return why, nil
			}
		}
	}
	return "", nil
}

// take puts a derivative in its place, in the matrix of the states or in that of
// the inputs.
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

// integrate finds the moments over a step of size H.
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
		h, err := num.NewHold(mat.NewDense(s.n, s.n, s.a), inputs, H, len(s.moments)-1)
		if err != nil {
			return err.Error()
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

// respond combines the moments.
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

func (s *stateSpace) archive(a *master.Archive) {
	num.Carry(a, &s.known, &s.gap, &s.wait, &s.H)
	num.Carry(a, s.a, s.b, s.c, s.d, s.drift, s.before, s.largest, s.moved, s.then.x, s.then.xdot, s.then.y, s.then.u)
	for m := range s.moments {
		num.Carry(a, s.moments[m], s.responses[m])
	}
	num.Carry(a, &s.has, &s.worst, &s.new, &s.stale, &s.made, &s.why, &s.wrong, &s.lie)
}

func (s *stateSpace) reject() { s.observed = false }

func (s *stateSpace) predictionError() float64 { return s.worst }
