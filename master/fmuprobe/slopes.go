package fmuprobe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// The test of directional derivatives compares them with the outputs.
//
// In the initialisation, where inputs can be set and outputs read, it uses differences over slopeWays of the
// magnitude of each input.
//
// Within steps an input is moved by each of slopeKicks of its magnitude and held
// over one step of size h. With x' = f(x, u), y = g(x, u) and A, B, C, D their derivatives,
// the response of the outputs is, by the Taylor series,
//
//	R(h) = D + h C B + h²/2 C A B + O(h³),
//
// and so its relative difference from the response predicted by the derivatives vanishes with h. h is the
// macro step, multiplied by responseShrink up to responseSizes-1 times. Derivatives by states are used if the
// FMU provides them; otherwise the prediction is D alone.
//
// Derivatives are right if the response agrees at one size for one of the movements. They are wrong if the
// response is visible in the last responseAgree sizes, is the same for both movements within kickSteady,
// differs from the prediction equally at each of these sizes, within responseSteady, and grows with the same
// power of h, 0 or 1, as the prediction, within powerTolerance. That excludes responses that are not analytic
// in h, such as those of FMUs whose solver takes its own steps, and those of two integrations: with a fixed number of
// Euler steps in each step they are not h²/2, however small h is.
const (
	responseSizes  = 9
	responseShrink = 1. / 4
	responseAgree  = 3
	responseSteady = 0.7
	powerTolerance = 0.2
	kickSteady     = 0.01
	// Responses must be larger than noiseRoom times the difference between repetitions, and than this part
	// of the magnitude of an output, because of rounding. Errors of solvers may be larger, but do not grow
	// with a power of h.
	leastResponse = 1e-11
)

var (
	slopeWays  = []float64{0x1p-26, 1e-6, 1e-4, 1e-2} // √ε and more
	slopeKicks = [...]float64{1e-2, 1e-4}
)

// LinearSubject is a subject with directional derivatives.
type LinearSubject interface {
	Subject
	master.Initializer
	master.Linearizer
	// InitialSlopes returns dy = ∂y/∂u · du in the initialisation.
	InitialSlopes(du, dy []float64) error
}

// Slopes is a test of directional derivatives.
type Slopes struct {
	master.SlopeTest
	Compared int // number of derivatives
}

// agreed records how well a derivative and a difference agree.
func (t *Slopes) agreed(told, found float64) {
	t.Compared++
	if size := max(math.Abs(told), math.Abs(found)); size > 0 {
		t.Difference = max(t.Difference, math.Abs(told-found)/size)
	}
}

const withoutDerivatives = "with the quirk noDirectionalDerivatives nothing relies on them"

// Initially compares in the initialisation of the subject.
func (t *Slopes) Initially(ctx context.Context, s LinearSubject, u Inputs) error {
	outs := slices.IndexFunc(s.Info().Out, func(p master.Port) bool { return p.Internal })
	if outs < 0 {
		outs = len(s.Info().Out)
	}
	y := func(u []float64) ([]float64, bool) {
		y := make([]float64, len(s.Info().Out))
		ok := s.SetInputs(u) == nil && s.EvalInit() == nil && s.Outputs(y) == nil
		return y, ok
	}
	du, dy := make([]float64, len(s.Info().In)), make([]float64, len(s.Info().Out))
	for k := range s.Info().In {
		du[k] = 1
		err := s.InitialSlopes(du, dy)
		du[k] = 0
		if err != nil {
			return Refusal(ctx, s) // the test within steps may succeed
		}
		size := max(s.Info().In[k].Magnitude(), math.Abs(u.Real[k]))
		before, ok := y(u.Real)
		if !ok {
			return Refusal(ctx, s)
		}
		found := make([][]float64, outs)
		for _, way := range slopeWays {
			moved := slices.Clone(u.Real)
			moved[k] += way * size
			after, ok := y(moved)
			if !ok {
				return Refusal(ctx, s)
			}
			for o := range found {
				found[o] = append(found[o], (after[o]-before[o])/(moved[k]-u.Real[k]))
			}
		}
		if _, ok := y(u.Real); !ok {
			return Refusal(ctx, s)
		}
		for o := range found {
			floor := master.SmallSlope * max(s.Info().Out[o].Magnitude(), math.Abs(before[o])) / size
			if truth, wrong := master.WrongSlope(dy[o], found[o], floor); wrong {
				return fmt.Errorf("%w: the FMU declares providesDirectionalDerivative, but in the initialisation "+
					"the derivative of %s with respect to %s is %.6g, "+
					"but differences give %.6g; %s",
					master.ErrCapability, s.Info().Out[o].Name, s.Info().In[k].Name, dy[o], truth, withoutDerivatives)
			}
			agrees := func(f float64) bool { return math.Abs(f) > floor && master.SlopesAgree(dy[o], f, floor) }
			if at := slices.IndexFunc(found[o], agrees); at >= 0 {
				t.agreed(dy[o], found[o][at])
			}
		}
	}
	return nil
}

// Refusal returns the error of a subject that fails in the test: nil, unless the failure ends all instances of
// the FMU, or ctx has ended.
func Refusal(ctx context.Context, s Subject) error {
	if s.State() == fmi.StateFatal {
		return errors.New("the FMU returned Fatal in the test of its directional derivatives; " + withoutDerivatives)
	}
	return context.Cause(ctx)
}

// Within compares responses over steps of H and less, from the start of the steps. states: the subject has
// derivatives by states.
func (t *Slopes) Within(ctx context.Context, s LinearSubject, start, H float64, u Inputs, states bool) error {
	origin, err := s.SaveState(nil)
	if err != nil {
		return Refusal(ctx, s)
	}
	r := responses{s: s, ctx: ctx, origin: origin, start: start, u: u, states: states}
	r.baseline(H)
	if len(r.sizes) < responseAgree {
		return Refusal(ctx, s)
	}
	for k := range s.Info().In {
		told, ok := r.told(k)
		if !ok || !r.respond(k) {
			return Refusal(ctx, s)
		}
		for o, p := range s.Info().Out {
			if still := r.still[0][o]; still-still != 0 || math.IsNaN(told[0][o]) && p.Internal {
				continue
			}
			if err := t.judge(&r, k, o, told); err != nil {
				return err
			}
		}
	}
	return nil
}

// responses holds the responses of a subject over steps of several sizes from its origin.
type responses struct {
	s      LinearSubject
	ctx    context.Context
	origin master.State
	start  float64
	u      Inputs
	states bool // the subject has derivatives by states
	sizes  []float64
	still  [][]float64 // outputs after a step of each size
	noise  [][]float64
	slopes [len(slopeKicks)][][]float64 // responses to the input that was moved last
	kick   float64                      // the smallest of its movements
}

// step steps from the origin by h.
func (r *responses) step(u Inputs, h float64) ([]float64, bool) {
	y := make([]float64, len(r.s.Info().Out))
	if r.s.RestoreState(r.origin) != nil || u.Stage(r.s) != nil {
		return nil, false
	}
	if _, err := r.s.Step(r.ctx, r.start, h); err != nil {
		return nil, false
	}
	return y, r.s.Outputs(y) == nil
}

// baseline steps with the original inputs, in smaller and smaller steps, as far as the FMU takes them.
func (r *responses) baseline(H float64) {
	for i := range responseSizes {
		h := H * math.Pow(responseShrink, float64(i))
		y, ok := r.step(r.u, h)
		again, ok2 := r.step(r.u, h)
		if !ok || !ok2 {
			return
		}
		for o := range again {
			again[o] = math.Abs(again[o] - y[o])
		}
		r.sizes, r.still, r.noise = append(r.sizes, h), append(r.still, y), append(r.noise, again)
	}
}

// respond steps with input k moved.
func (r *responses) respond(k int) bool {
	whole := Kicks(r.s, r.u.Real)[k] / leakKick
	for i, part := range slopeKicks {
		u := r.u
		u.Real = slices.Clone(u.Real)
		u.Real[k] += part * whole
		kick := u.Real[k] - r.u.Real[k]
		r.kick = math.Abs(kick)
		r.slopes[i] = nil
		for n, h := range r.sizes {
			y, ok := r.step(u, h)
			if !ok {
				return false
			}
			for o := range y {
				y[o] = (y[o] - r.still[n][o]) / kick
			}
			r.slopes[i] = append(r.slopes[i], y)
		}
	}
	return true
}

// told returns D, C B and C A B for input k, by the derivatives of the FMU.
func (r *responses) told(k int) (told [3][]float64, ok bool) {
	if r.s.RestoreState(r.origin) != nil {
		return told, false
	}
	for i := range told {
		told[i] = make([]float64, len(r.s.Info().Out))
	}
	du := make([]float64, len(r.s.Info().In))
	du[k] = 1
	if !r.states {
		return told, r.s.Linearize(nil, du, nil, told[0]) == nil
	}
	states := len(r.s.States())
	b, ab := make([]float64, states), make([]float64, states)
	return told, r.s.Linearize(nil, du, b, told[0]) == nil && r.s.Linearize(b, nil, ab, told[1]) == nil &&
		r.s.Linearize(ab, nil, nil, told[2]) == nil
}

// judge compares the response of output o to input k with the derivatives.
func (t *Slopes) judge(r *responses, k, o int, told [3][]float64) error {
	if slices.ContainsFunc(told[:], func(d []float64) bool { return d[o]-d[o] != 0 }) {
		return fmt.Errorf("%w: the FMU declares providesDirectionalDerivative, but the derivative of %s with respect to %s is not a finite number; %s",
			master.ErrCapability, r.s.Info().Out[o].Name, r.s.Info().In[k].Name, withoutDerivatives)
	}
	type pair struct {
		says, does, differs, h float64
		steady                 bool // for both movements
	}
	var seen []pair
	for i, h := range r.sizes {
		large, small := r.slopes[0][i][o], r.slopes[1][i][o]
		p := pair{says: told[0][o] + h*told[1][o] + h*h/2*told[2][o], h: h}
		p.steady = math.Abs(large-small) <= kickSteady*math.Abs(small)
		if p.does = small; math.Abs(p.says-large) < math.Abs(p.says-small) {
			p.does = large
		}
		larger := max(math.Abs(p.says), math.Abs(p.does))
		least := leastResponse*max(r.s.Info().Out[o].Magnitude(), math.Abs(r.still[i][o])) + noiseRoom*r.noise[i][o]
		if !(larger*r.kick > least) { // both are invisible, also in smaller steps
			break
		}
		p.differs = math.Abs(p.says-p.does) / larger
		seen = append(seen, p)
	}
	power := func(a, b float64) float64 { return math.Log(math.Abs(b/a)) / math.Log(responseShrink) }
	n := len(seen)
	if n < 2 || power(seen[n-2].does, seen[n-1].does) > 1+powerTolerance {
		return nil
	}
	best := slices.MinFunc(seen, func(a, b pair) int { return cmp.Compare(a.differs, b.differs) })
	if master.SlopesAgree(best.says, best.does, 0) {
		t.agreed(best.says, best.does)
		if t.Step == 0 || best.h < t.Step {
			t.Step = best.h
		}
		return nil
	}
	if n < responseAgree {
		return nil
	}
	last := seen[n-responseAgree:]
	for i := 1; i < len(last); i++ {
		a, b := last[i-1], last[i]
		does, says := power(a.does, b.does), power(a.says, b.says)
		switch {
		case !a.steady || !b.steady, b.differs < responseSteady*a.differs:
			return nil
		case a.says == 0 && b.says == 0:
			// The prediction is zero. Only a response by an integration, which derivatives by states
			// would contain, makes it wrong; direct responses are tested by Feedthrough.
			if !r.states || !(math.Abs(does-1) <= powerTolerance) {
				return nil
			}
		case !(math.Abs(does-says) <= powerTolerance && does < 1+powerTolerance):
			return nil
		}
	}
	end := last[len(last)-1]
	return fmt.Errorf("%w: the FMU declares providesDirectionalDerivative, which predicts that %s changes by %.6g "+
		"for each unit of %s over a step of %.3g s, "+
		"but it changes by %.6g; %s",
		master.ErrCapability, r.s.Info().Out[o].Name, end.says, r.s.Info().In[k].Name, end.h, end.does, withoutDerivatives)
}
