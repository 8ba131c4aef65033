package algorithms

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
)

// stateSpace is the model x' = A x + B u, y = C x + D u of one subsystem by its
// directional derivatives (haid (7)).
//
// It is kept for as long as it predicts the steps well (haid 6): from the state,
// its derivative and the inputs at one communication point, with Δu what the
// inputs then change by,
//
//	x_{n+1} = x_n + ∫ e^{As} ds ẋ_n + ∫ e^{A(H−s)} B Δu ds,
//	y_{n+1} = y_n + C (x_{n+1} − x_n) + D Δu(H).
//
// Where the subsystem does not show the values of its states, it is made anew in
// every macro step.
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

	seed, rate, slope []float64
	then, now         point
	has, observed     bool // then is that of the end of the last step; now of the present one
	worst             float64
	largest           []float64 // change of each output over a step so far
	predicted         []float64
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
	for range of.in.order + 1 {
		s.moments = append(s.moments, make([]float64, s.n*s.nu))
		s.responses = append(s.responses, make([]float64, s.ny*s.nu))
	}
	s.seed, s.rate, s.slope = make([]float64, max(s.n, s.nu)), make([]float64, s.n), make([]float64, s.ny)
	s.then, s.now = newPoint(s.n, s.ny, s.nu), newPoint(s.n, s.ny, s.nu)
	s.largest, s.predicted = make([]float64, s.ny), make([]float64, s.ny)
	return s
}

// update checks the model by the step just taken, and makes it anew if it must.
func (s *stateSpace) update() (u modelUpdate, err error) {
	if err := s.observe(); err != nil {
		return u, err
	}
	s.observed = true
	H := s.of.span(s.subsystem)
	fresh := !s.known || s.of.config.Refresh == 0 || !s.predicts()
	if s.known && s.has && s.predicts() && !(s.predictionErrorOver(H) <= s.of.config.Refresh) {
		fresh = true
	}
	if fresh {
		u.evaluations, u.changed = 1, true
		s.known = false
		if u.why, err = s.linearise(); err != nil || u.why != "" {
			return u, err
		}
		s.known = true
	}
	if fresh || math.Abs(H-s.H) > sameStep*H {
		u.changed = true
		if u.why = s.integrate(H); u.why != "" {
			s.known = false
		}
	}
	return u, nil
}

// predicts tells whether the model can be checked.
func (s *stateSpace) predicts() bool { return s.linear == nil || s.reader != nil }

// observe reads the point that the step has led to.
func (s *stateSpace) observe() error {
	sys := s.x.Sys
	copy(s.now.y, s.x.Y[sys.OutAt[s.subsystem]:sys.OutAt[s.subsystem+1]])
	for k := range s.nu {
		s.now.u[k] = s.inputAtEnd(sys.InAt[s.subsystem] + k)
	}
	if s.reader == nil {
		return nil
	}
	return s.reader.ReadStates(s.now.x, s.now.xdot)
}

// inputAtEnd is what the subsystem had as input k at the end of the step.
func (s *stateSpace) inputAtEnd(k int) float64 {
	if s.of.late[s.subsystem] {
		return s.x.U[k]
	}
	return s.of.in.atEnd(k, s.subsystem) + s.of.in.bias[k]
}

// predictionErrorOver is the largest error of an output by the prediction over
// the step just taken, relative to its change over the step, or to a thousandth
// of the largest so far.
func (s *stateSpace) predictionErrorOver(H float64) float64 {
	if math.Abs(H-s.H) > sameStep*H {
		if why := s.integrate(H); why != "" {
			return math.NaN()
		}
	}
	for r := range s.n {
		s.rate[r] = dot(s.drift[r*s.n:(r+1)*s.n], s.then.xdot)
	}
	in := s.of.in
	at := s.x.Sys.InAt[s.subsystem]
	for k := range s.nu {
		// Δu = Σ q_m (s/H)^m
		p := in.polynomialOf(at+k, s.subsystem)
		degree := p.degree
		if s.of.late[s.subsystem] || !in.shapes(s.subsystem) || in.holds[at+k] {
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
				q = in.evalOn(p, at+k, &p.start[0]) + in.bias[at+k] - s.then.u[k]
			default:
				q = factor * in.evalOn(p, at+k, &p.start[m])
			}
			for r := range s.n {
				s.rate[r] += float64(s.moments[m][r*s.nu+k] * q)
			}
		}
	}
	worst := 0.0
	for o := range s.ny {
		v := dot(s.c[o*s.n:(o+1)*s.n], s.rate)
		for k := range s.nu {
			v += float64(s.d[o*s.nu+k] * (s.now.u[k] - s.then.u[k]))
		}
		change := math.Abs(s.now.y[o] - s.then.y[o])
		s.largest[o] = max(s.largest[o], change)
		off := math.Abs(s.now.y[o] - s.then.y[o] - v)
		rounding := 1e-12 * max(math.Abs(s.now.y[o]), math.Abs(s.then.y[o]))
		if off <= rounding {
			continue
		}
		if e := off / max(change, leastChange*s.largest[o], rounding); !(e <= worst) {
			worst = e
		}
	}
	if !(worst <= s.worst) {
		s.worst = worst
	}
	return worst
}

// leastChange is the part of the largest change of an output over a step below
// which a change counts as none.
const leastChange = 1e-3

// linearise asks for the derivatives, column by column.
func (s *stateSpace) linearise() (why string, err error) {
	ask := func(k int, byState bool) error {
		seed := s.seed[:s.nu]
		if byState {
			seed = s.seed[:s.n]
		}
		clear(seed)
		seed[k] = 1
		switch {
		case s.linear == nil:
			return s.direct.DirectionalDerivative(seed, s.slope)
		case byState:
			return s.linear.Linearize(seed, nil, s.rate, s.slope)
		}
		return s.linear.Linearize(nil, seed, s.rate, s.slope)
	}
	for q := range s.n + s.nu {
		k, byState := q, q < s.n
		if !byState {
			k -= s.n
		}
		if err := ask(k, byState); err != nil {
			if errors.Is(err, master.ErrCapability) {
				return err.Error(), nil
			}
			return "", err
		}
		rates, slopes, width := s.b, s.d, s.nu
		if byState {
			rates, slopes, width = s.a, s.c, s.n
		}
		for r := range s.n {
			rates[r*width+k] = s.rate[r]
		}
		for o := range s.ny {
			if s.x.Sys.Infos[s.subsystem].Out[o].Internal && math.IsNaN(s.slope[o]) {
				s.slope[o] = 0
			}
			slopes[o*width+k] = s.slope[o]
		}
		if checkFinite(s.rate) != nil || checkFinite(s.slope) != nil {
			what := "the input " + s.x.Sys.Infos[s.subsystem].In[max(k, 0)%max(s.nu, 1)].Name
			if byState {
				what = "the state " + s.linear.States()[k].Name
			}
			return "a directional derivative by " + what + " is not a finite number", nil
		}
	}
	return "", nil
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
		_, parts := holdIntegrals(mat.NewDense(s.n, s.n, s.a), inputs, H, len(s.moments)-1)
		factor := 1.0
		for m, part := range parts {
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
			if checkFinite(s.moments[m]) != nil {
				return fmt.Sprintf("the exponential of its Jacobian over %g s is not finite", H)
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
func (s *stateSpace) respond(j int, course *shape, to, offset []float64) {
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
	if s.observed {
		s.then, s.now = s.now, s.then
		s.has, s.observed = true, false
	}
}

func (s *stateSpace) reject() { s.observed = false }

func (s *stateSpace) predictionError() float64 { return s.worst }

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v * b[i])
	}
	return sum
}
