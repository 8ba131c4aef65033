package analyze

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// Forecast is what a strategy is expected to do with one macro step.
type Forecast struct {
	Step float64 `json:"step"` // s
	// Error is the root mean square of the error of an output over the horizon, by the
	// standard deviation of the output (haid (33)), of the output Of, where it is largest.
	Error float64 `json:"error"`
	Of    string  `json:"of"`
	// Doubt is what the error is uncertain by, in the same measure: how far the models stray from
	// the components along the motion. Where it is not below the error, that is an order of magnitude.
	Doubt float64 `json:"doubt"`
	// FMUSteps is the cost: steps of all subsystems per simulated second, repeated ones and
	// substeps included.
	FMUSteps float64 `json:"fmu_steps_per_second"`
}

// IsRough tells that the error is an order of magnitude.
func (f *Forecast) IsRough() bool { return f.Doubt > rough*f.Error && f.Doubt > negligible }

const (
	// rough is the part of an error that its uncertainty has at most where it is more than an order
	// of magnitude; below negligible none is told of: rounding and solvers decide.
	rough, negligible = 0.5, 1e-4
	// horizonSteps is the length of a forecast in steps of the analysis, at most.
	horizonSteps = 1000
	// finer is how many steps of the reference there are in the shortest one forecast.
	finer = 4
	// referenceWindow is how long responses are followed for the reference, in steps of the
	// analysis: it goes far in short steps.
	referenceWindow = 50
	// ownMisfit is how far the motion of a subsystem by itself may be from that of its model.
	ownMisfit = 1e-3
)

// candidates are the steps that are forecast, in steps of the analysis; multiples of the first
// of them, so that all fall on steps of the reference.
var candidates = []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}

// driven returns why the motion about the operating point is not known, "" if it is.
func (p *point) driven(h float64, s *scheme) string {
	for i, m := range p.models {
		r, err := p.over(i, p.stepOf(i, s, h))
		switch {
		case err != nil:
			return err.Error()
		case m.source == Directional:
			return fmt.Sprintf("the motion of %s by itself is not known: it cannot go back", m.info)
		case r.OwnMisfit > ownMisfit:
			return fmt.Sprintf("%s moves by itself in another way than it answers its inputs: off by %.2g", m.info, r.OwnMisfit)
		}
	}
	return ""
}

// strayed is how far a subsystem may be from its model along the forecast motion: the errors of
// strategies, which are differences on the models, are trusted within a factor of 3.
const strayed = 0.3

// stray takes each subsystem along the forecast motion, its inputs held over steps of the analysis,
// its model beside it: off is how far their outputs are apart at most, as root mean squares over time
// relative to how much the output moves. A model holds for small motions about the operating point;
// where the motion is too large for that, or leads over a kink, off is not small.
//
// An output that feeds nobody, such as a power, may be off by itself without anything being wrong with the
// coupling. Where it is farther off than the others, and by more than allowed, it does not count in the
// errors: apart gives its name.
func (p *point) stray(ref *reference, allowed float64) (off float64, of string, apart []string, err error) {
	type seen struct {
		at   int
		off  float64
		name string
	}
	var ends []seen // of those that feed nobody
	sys := p.x.Sys
	each := int(math.Round(p.step / ref.h))
	steps := (len(ref.y) - 1) / each
	at := make([]int, len(p.models)+1) // outputs without internal ones
	place := map[int]int{}             // of an entry of y among them
	for i, m := range p.models {
		at[i+1] = at[i] + m.outputs()
		for o := range m.outputs() {
			place[sys.OutAt[i]+o] = at[i] + o
		}
	}
	for i, m := range p.models {
		r, err := p.over(i, p.step)
		if err != nil {
			return 0, "", nil, err
		}
		if r.Whole != nil {
			r = r.Whole
		}
		model := newTwin(m.info, r, p.step, 0)
		model.driven = true
		u := make([][]float64, steps)
		for n := range u {
			u[n] = make([]float64, len(m.info.In))
			for k := range u[n] {
				from := n
				if slices.Contains(sys.Late, i) {
					from++
				}
				if y, ok := sys.Source(sys.InAt[i] + k); ok {
					u[n][k] = sys.Gain(sys.InAt[i]+k) * ref.y[from*each][place[y]]
				}
			}
		}
		real, err := p.lead(i, p.step, u)
		if err != nil {
			return 0, "", nil, err
		}
		for o := range m.outputs() {
			if ref.sizes[at[i]+o] == 0 {
				continue
			}
			model.restart()
			square, mean, moves := 0.0, 0.0, 0.0
			for n, y := range real {
				copy(model.u[0], u[n])
				if _, err := model.Step(p.ctx, 0, p.step); err != nil {
					return 0, "", nil, err
				}
				d := y[o] - p.y[sys.OutAt[i]+o] - model.y[o]
				square += d * d / float64(steps)
				mean += y[o] / float64(steps)
			}
			for _, y := range real {
				moves += (y[o] - mean) * (y[o] - mean) / float64(steps)
			}
			e, name := math.Sqrt(square)/max(math.Sqrt(moves), ref.sizes[at[i]+o]), sys.OutName(sys.OutAt[i]+o)
			switch {
			case !ref.feeds[at[i]+o]:
				ends = append(ends, seen{at[i] + o, e, name})
			case !(e <= off):
				off, of = e, name
			}
		}
	}
	allowed = max(allowed, off)
	for _, s := range ends {
		switch {
		case !(s.off <= allowed):
			ref.sizes[s.at] = 0
			apart = append(apart, s.name)
		case s.off > off:
			off, of = s.off, s.name
		}
	}
	return off, of, apart, nil
}

// lead goes back to the operating point and takes subsystem i over steps of size h, its inputs being off those
// there by u[n] over step n. It gives the outputs after each.
func (p *point) lead(i int, h float64, u [][]float64) (out [][]float64, err error) {
	x, m := p.x, p.models[i]
	sub, done, err := p.begin(i)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	hold := x.W[x.Sys.InAt[i]:x.Sys.InAt[i+1]]
	now, y := make([]float64, len(hold)), make([]float64, len(m.info.Out))
	derivatives, _ := master.As[master.InputDerivativeSetter](sub)
	for n := range u {
		for k := range now {
			now[k] = hold[k] + u[n][k]
		}
		if err := sub.SetInputs(now); err != nil {
			return nil, err
		}
		for order := 1; n == 0 && order <= m.order; order++ { // none, as long as nothing else is said
			if err := derivatives.SetInputDerivatives(order, make([]float64, len(now))); err != nil {
				return nil, err
			}
		}
		if err := p.take(i, sub, n, h); err != nil {
			return nil, err
		}
		if err := sub.Outputs(y); err != nil {
			return nil, err
		}
		out = append(out, append([]float64(nil), y[:m.outputs()]...))
	}
	return out, nil
}

// course runs the strategy on driven twins from the operating point, and gives the outputs at
// each macro step, as deviations from it. keep, if not nil, is given the twins there.
func (p *point) course(s *scheme, h float64, steps int, keep func(n int, twins []*twin)) (y [][]float64, result master.Result, err error) {
	twins, sys, err := p.twins(s, h, -1, 1, true)
	if err != nil {
		return nil, result, err
	}
	if !s.ideal { // what runs are compared with is to be exact in deviations
		for i, t := range twins {
			p.absolute(i, t)
		}
		if sys, err = p.coupledTwins(twins, -1, 1); err != nil {
			return nil, result, err
		}
	}
	alg, err := s.algorithm()
	if err != nil {
		return nil, result, err
	}
	run, err := master.NewRun(sys, alg, master.Options{Stop: float64(steps) * h, Step: h, Workers: 1})
	if err != nil {
		return nil, result, err
	}
	take := func() {
		if keep != nil {
			keep(len(y), twins)
		}
		now := append([]float64(nil), run.Point().Y...)
		at := 0
		for _, t := range twins {
			for o := range t.y {
				if t.shown != nil {
					now[at] -= t.shown[o]
				}
				at++
			}
		}
		y = append(y, now)
	}
	if err = run.Start(p.ctx); err == nil {
		take()
		for more := true; more && err == nil && len(y) <= steps; {
			more, err = macroStep(p.ctx, run)
			take()
		}
	}
	result, closed := run.Close()
	return y, result, errors.Join(err, closed)
}

// reference is the coupled motion from the operating point, at steps of h.
type reference struct {
	h     float64
	y     [][]float64
	sizes []float64 // standard deviations; 0 = it hardly moves, or does not count
	feeds []bool    // another component, by output
	// scheme is the one by which it was found, states those of its twins.
	scheme *scheme
	states states
}

// sampled reports whether the inputs of a subsystem are sampled.
func (p *point) sampled(s *scheme) bool {
	for i := range p.models {
		if p.stepOf(i, s, 1) != 1 {
			return true
		}
	}
	return false
}

// refer finds the reference: implicit coupling at a step finer than all that are forecast, of which the shortest has
// shortest steps of the analysis.
func (p *point) refer(H, shortest float64) (*reference, string) {
	const pieces = 2 // of a step, where inputs are sampled
	s := &scheme{preset: "implicit", order: max(p.order, 1), substeps: pieces, ideal: true,
		params: map[string]string{"solver.tolerance": "1e-9", "substeps": fmt.Sprint(pieces)}}
	if !p.sampled(s) {
		delete(s.params, "substeps")
	}
	r := &reference{h: H * shortest / finer, scheme: s}
	r.states.n = int(math.Round(H / localSpan / r.h))
	defer func(was float64) { p.window = was }(p.window)
	p.window = referenceWindow * H
	if why := p.driven(r.h, s); why != "" {
		return nil, why
	}
	var err error
	keep := func(n int, twins []*twin) {
		if n%r.states.n != 0 {
			return
		}
		var x []float64
		for _, t := range twins {
			x = append(x, t.x...)
		}
		r.states.x = append(r.states.x, x)
	}
	if r.y, _, err = p.course(s, r.h, int(math.Round(p.horizon/r.h)), keep); err != nil {
		return nil, fmt.Sprintf("the coupled motion is not known: %v", err)
	}
	sys := p.x.Sys
	feeds := make([]bool, sys.OutAt[len(p.models)])
	for k := range sys.InAt[len(p.models)] {
		if y, ok := sys.Source(k); ok {
			feeds[y] = true
		}
	}
	at := 0
	var typical []float64
	for i, m := range p.models {
		for o := range m.outputs() {
			mean, square, largest := 0.0, 0.0, math.Abs(p.y[sys.OutAt[i]+o])
			for _, y := range r.y {
				mean += y[at] / float64(len(r.y))
			}
			for _, y := range r.y {
				square += (y[at] - mean) * (y[at] - mean) / float64(len(r.y))
				largest = max(largest, math.Abs(y[at]))
			}
			size := math.Sqrt(square)
			if !(size > 1e-9*largest) {
				size = 0
			}
			r.sizes = append(r.sizes, size)
			r.feeds = append(r.feeds, feeds[sys.OutAt[i]+o])
			typical = append(typical, m.info.Out[o].Magnitude())
			at++
		}
	}
	// After many subsystems there is hardly anything left to be off, unless all move that little.
	if slices.ContainsFunc(r.moves(typical), func(moves float64) bool { return moves > linear.Nothing }) {
		for o, moves := range r.moves(typical) {
			if moves <= linear.Nothing {
				r.sizes[o] = 0
			}
		}
	}
	if !slices.ContainsFunc(r.sizes, func(size float64) bool { return size > 0 }) {
		return nil, "no output moves from here on, so that there is nothing to be off: give values that set the system in motion, or another time (--at)"
	}
	return r, ""
}

// moves gives how much each output moves in its typical size.
func (r *reference) moves(typical []float64) []float64 {
	out := make([]float64, len(typical))
	for o, size := range r.sizes {
		out[o] = size / typical[o]
	}
	return out
}

// disturbed are the parts by which states are moved to see whether an error hangs on little.
var disturbed = []float64{1e-6, -1e-5, 1e-4}

// errorOf gives the error of a motion in steps of h against the reference, and of which output.
func (p *point) errorOf(y [][]float64, h float64, ref *reference) (worst float64, of string, err error) {
	each := int(math.Round(h / ref.h))
	square := make([]float64, len(ref.sizes))
	for n, v := range y {
		for o := range square {
			off := v[o] - ref.y[n*each][o]
			square[o] += off * off / float64(len(y))
		}
	}
	return p.worst(square, ref)
}

// worst gives the largest error of an output in its size, from their mean squares, and of which output.
func (p *point) worst(square []float64, ref *reference) (worst float64, of string, err error) {
	at := 0
	for i, m := range p.models {
		for o := range m.outputs() {
			if ref.sizes[at] > 0 {
				if e := math.Sqrt(square[at]) / ref.sizes[at]; !(e <= worst) {
					worst, of = e, p.x.Sys.OutName(p.x.Sys.OutAt[i]+o)
				}
			}
			at++
		}
	}
	if !linear.Finite(worst) {
		return worst, of, errors.New("the run leaves the numbers")
	}
	return worst, of, nil
}

// stepsPerSecond gives the cost of a run that is known by its result: steps of all subsystems per simulated second.
func stepsPerSecond(r *master.Result) float64 {
	taken := 0
	for _, n := range r.SubsystemSteps {
		taken += n
	}
	return float64(taken) / r.Time
}

// forecast compares the strategy at steps of h with the reference.
func (p *point) forecast(s *scheme, h float64, ref *reference) (Forecast, error) {
	y, result, err := p.course(s, h, (len(ref.y)-1)/int(math.Round(h/ref.h)), nil)
	if err != nil {
		return Forecast{}, err
	}
	f := Forecast{Step: h, Doubt: p.doubt}
	if f.Error, f.Of, err = p.errorOf(y, h, ref); err != nil {
		return f, err
	}
	if s.preset == energyCorrection { // a force by a velocity near 0 may make much of little
		for _, by := range disturbed {
			moved := func(n int, twins []*twin) {
				for _, t := range twins {
					for k := range t.x {
						if n == 1 {
							t.x[k] *= 1 + by
						}
					}
				}
			}
			y, _, err := p.course(s, h, len(y)-1, moved)
			if err != nil {
				return f, err
			}
			other, _, err := p.errorOf(y, h, ref)
			if err != nil {
				return f, err
			}
			f.Doubt = max(f.Doubt, math.Abs(other-f.Error))
		}
	}
	f.FMUSteps = stepsPerSecond(&result)
	return f, nil
}
