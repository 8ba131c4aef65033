package forecast

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

const (
	// rough is the largest uncertainty, relative to an error, of an error that is more than an order of magnitude.
	// Uncertainties below negligible are ignored: rounding and solvers decide there.
	rough, negligible = 0.5, 1e-4
	// horizonSteps is the length of a forecast in steps of the analysis, at most.
	horizonSteps = 1000
	// finer is how many steps of the reference there are in the shortest one forecast.
	finer = 4
	// referenceWindow is how long responses are followed for the reference, in steps of the
	// analysis: it goes far in short steps.
	referenceWindow = 50
	// ownDoubt is the part of the error that is asked for by which outputs that feed nobody may be off their models
	// to count in it.
	ownDoubt = 0.1
)

// Stray is the distance of a component from its model along the forecast motion: the root mean square over time,
// relative to the motion of the output.
type Stray struct {
	Off float64 `json:"off"`
	Of  string  `json:"of"` // the output with the largest distance
}

// Forecaster forecasts what strategies do along the coupled motion from the operating point on.
type Forecaster struct {
	*twin.Point
	Motion
	ref   *reference
	doubt float64 // of errors
}

// Motion is what is known of the coupled motion.
type Motion struct {
	Horizon float64 `json:"horizon,omitempty"` // s after the operating point, over which errors are forecast
	// Stray is the largest distance of a model from its component along the forecast motion.
	Stray *Stray `json:"stray,omitempty"`
	// Large explains why the motion is too large for linear models; "" = it is not. The stability then holds only for
	// small motions about the operating point.
	Large string `json:"large,omitempty"`
	// WhyNoError is the reason why errors are not forecast; "" = they are.
	WhyNoError string `json:"why_no_error,omitempty"`
	// Apart lists outputs that feed no input and are not linear; errors leave them out.
	Apart []string `json:"-"`
}

// New finds the coupled motion from the operating point up to a time, and holds the models against the components along
// it. candidates are the steps that errors are to be forecast for, rising, in steps of the analysis; most is the error that
// is asked for. Where errors cannot be forecast, WhyNoError is the reason.
func New(at *twin.Point, stop, most float64, candidates []float64) *Forecaster {
	p := &Forecaster{Point: at}
	p.WhyNoError = p.find(stop, most, candidates)
	return p
}

// find fills p, and returns why errors cannot be forecast, "" if they can.
func (p *Forecaster) find(stop, most float64, candidates []float64) (why string) {
	steps, longest := float64(horizonSteps), candidates[len(candidates)-1]
	if len(p.Models) > twin.Many {
		steps = twin.FewerSteps
	}
	horizon := min(max(stop-p.T, 0), steps*p.Step)
	horizon = math.Floor(horizon/(longest*p.Step)+1e-9) * longest * p.Step
	if horizon == 0 {
		return "there is too little time up to the stop"
	}
	if p.ref, why = p.refer(horizon, p.Step, candidates[0]); p.ref == nil {
		return why
	}
	p.Horizon = horizon
	off, of, apart, err := p.stray(ownDoubt * most)
	for i := range p.Models { // the run goes on from here
		if p.Models[i].Source == twin.Measured {
			err = errors.Join(err, p.X.Restore(i))
		}
	}
	if err == nil && linear.Finite(off) {
		p.Stray, p.doubt = &Stray{Off: off, Of: of}, off
	}
	switch {
	case err != nil:
		return fmt.Sprintf("the components were not led along the forecast motion: %v", err)
	case !(off <= twin.Strayed):
		p.Large = fmt.Sprintf("the motion over %.4g s is too large for linear models: along it, %s is off its model by %.2g of how much it moves", horizon, of, off)
		return p.Large
	case len(apart) > 0 && !slices.ContainsFunc(p.ref.sizes, func(size float64) bool { return size > 0 }):
		return fmt.Sprintf("the outputs that move feed nobody, and are not linear: %s", twin.SomeNames(apart))
	}
	p.Apart = apart
	return ""
}

// Candidates are the steps that are forecast, in steps of the analysis; multiples of the first
// of them, so that all fall on steps of the reference.
var Candidates = []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}

// reference is the coupled motion from the operating point, at steps of h.
type reference struct {
	h     float64
	y     [][]float64
	sizes []float64 // standard deviations; 0 = it hardly moves, or does not count
	feeds []bool    // another component, by output
	// scheme is the one by which it was found, states those of its twins.
	scheme *twin.Scheme
	states states
}

// states are those of the reference at points that lie apart by half a step of the analysis.
type states struct {
	x [][]float64 // by point: of all twins, one after the other
	n int         // steps of the reference between them
}

// driven returns why the motion about the operating point is not known, "" if it is.
func (p *Forecaster) driven(h float64, s *twin.Scheme) string {
	for i, m := range p.Models {
		r, err := p.Over(i, p.StepOf(i, s, h))
		switch {
		case err != nil:
			return err.Error()
		case m.Source == twin.Directional:
			return fmt.Sprintf("the motion of %s by itself is not known: it cannot go back", m.Info)
		case r.OwnMisfit > twin.OwnMisfit:
			return fmt.Sprintf("%s moves by itself in another way than it answers its inputs: off by %.2g", m.Info, r.OwnMisfit)
		}
	}
	return ""
}

// refer finds the reference: implicit coupling at a step finer than all that are forecast, of which the shortest has
// shortest steps of the analysis.
func (p *Forecaster) refer(horizon, H, shortest float64) (*reference, string) {
	const pieces = 2 // of a step, where inputs are sampled
	s := &twin.Scheme{Preset: "implicit", Order: max(p.Order, 1), Substeps: pieces, Ideal: true,
		Params: map[string]string{"solver.tolerance": "1e-9", "substeps": fmt.Sprint(pieces)}}
	if !p.sampled(s) {
		delete(s.Params, "substeps")
	}
	r := &reference{h: H * shortest / finer, scheme: s}
	r.states.n = int(math.Round(H / localSpan / r.h))
	defer func(was float64) { p.Window = was }(p.Window)
	p.Window = referenceWindow * H
	if why := p.driven(r.h, s); why != "" {
		return nil, why
	}
	var err error
	keep := func(n int, twins []*twin.Twin) {
		if n%r.states.n != 0 {
			return
		}
		var x []float64
		for _, t := range twins {
			x = append(x, t.X...)
		}
		r.states.x = append(r.states.x, x)
	}
	if r.y, _, err = p.course(s, r.h, int(math.Round(horizon/r.h)), keep); err != nil {
		return nil, fmt.Sprintf("the coupled motion is not known: %v", err)
	}
	sys := p.X.Sys
	feeds := make([]bool, sys.OutAt[len(p.Models)])
	for k := range sys.InAt[len(p.Models)] {
		if y, ok := sys.Source(k); ok {
			feeds[y] = true
		}
	}
	at := 0
	var typical []float64
	for i, m := range p.Models {
		for o := range m.Outputs() {
			mean, square, largest := 0.0, 0.0, math.Abs(p.Y[sys.OutAt[i]+o])
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
			typical = append(typical, m.Info.Out[o].Magnitude())
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

// sampled reports whether the inputs of a subsystem are sampled.
func (p *Forecaster) sampled(s *twin.Scheme) bool {
	for i := range p.Models {
		if p.StepOf(i, s, 1) != 1 {
			return true
		}
	}
	return false
}

// course runs the strategy on driven twins from the operating point, and gives the outputs at
// each macro step, as deviations from it. keep, if not nil, is given the twins there.
func (p *Forecaster) course(s *twin.Scheme, h float64, steps int, keep func(n int, twins []*twin.Twin)) (y [][]float64, result master.Result, err error) {
	twins, sys, err := p.Twins(s, h, -1, 1, true)
	if err != nil {
		return nil, result, err
	}
	if !s.Ideal { // what runs are compared with is to be exact in deviations
		for i, t := range twins {
			p.Absolute(i, t)
		}
		if sys, err = p.Couple(twins, -1, 1); err != nil {
			return nil, result, err
		}
	}
	alg, err := s.Algorithm()
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
			for o := range t.Y {
				if t.Shown != nil {
					now[at] -= t.Shown[o]
				}
				at++
			}
		}
		y = append(y, now)
	}
	if err = run.Start(p.Ctx); err == nil {
		take()
		for more := true; more && err == nil && len(y) <= steps; {
			more, err = twin.MacroStep(p.Ctx, run)
			take()
		}
	}
	result, closed := run.Close()
	return y, result, errors.Join(err, closed)
}

// moves returns how much each output moves in its typical size.
func (r *reference) moves(typical []float64) []float64 {
	out := make([]float64, len(typical))
	for o, size := range r.sizes {
		out[o] = size / typical[o]
	}
	return out
}

// at puts the motion at a time after the operating point, by the cubic through the four points around it.
func (r *reference) at(t float64, y []float64) {
	const points = 4
	n := min(max(int(t/r.h)-1, 0), max(len(r.y)-points, 0))
	s := t/r.h - float64(n)
	clear(y)
	for j := range min(points, len(r.y)) {
		weight := 1.0
		for l := range min(points, len(r.y)) {
			if l != j {
				weight *= (s - float64(l)) / float64(j-l)
			}
		}
		for o, v := range r.y[n+j] {
			y[o] += weight * v
		}
	}
}

// stray takes each subsystem along the forecast motion, its inputs held over steps of the analysis,
// its model beside it: off is how far their outputs are apart at most, as root mean squares over time
// relative to how much the output moves. A model holds for small motions about the operating point;
// where the motion is too large for that, or leads over a kink, off is not small.
//
// An output that feeds nobody, such as a power, may be off by itself without anything being wrong with the
// coupling. Where it is farther off than the others, and by more than allowed, it does not count in the
// errors: apart gives its name.
func (p *Forecaster) stray(allowed float64) (off float64, of string, apart []string, err error) {
	type seen struct {
		at   int
		off  float64
		name string
	}
	var ends []seen // of those that feed nobody
	sys := p.X.Sys
	each := int(math.Round(p.Step / p.ref.h))
	steps := (len(p.ref.y) - 1) / each
	at := make([]int, len(p.Models)+1) // outputs without internal ones
	place := map[int]int{}             // of an entry of y among them
	for i, m := range p.Models {
		at[i+1] = at[i] + m.Outputs()
		for o := range m.Outputs() {
			place[sys.OutAt[i]+o] = at[i] + o
		}
	}
	for i, m := range p.Models {
		r, err := p.Over(i, p.Step)
		if err != nil {
			return 0, "", nil, err
		}
		if r.Whole != nil {
			r = r.Whole
		}
		model := twin.NewTwin(m.Info, r, p.Step, 0)
		model.Driven = true
		u := make([][]float64, steps)
		for n := range u {
			u[n] = make([]float64, len(m.Info.In))
			for k := range u[n] {
				from := n
				if slices.Contains(sys.Late, i) {
					from++
				}
				if y, ok := sys.Source(sys.InAt[i] + k); ok {
					u[n][k] = sys.Gain(sys.InAt[i]+k) * p.ref.y[from*each][place[y]]
				}
			}
		}
		real, err := p.Lead(i, p.Step, u)
		if err != nil {
			return 0, "", nil, err
		}
		for o := range m.Outputs() {
			if p.ref.sizes[at[i]+o] == 0 {
				continue
			}
			model.Restart()
			square, mean, moves := 0.0, 0.0, 0.0
			for n, y := range real {
				copy(model.U[0], u[n])
				if _, err := model.Step(p.Ctx, 0, p.Step); err != nil {
					return 0, "", nil, err
				}
				d := y[o] - p.Y[sys.OutAt[i]+o] - model.Y[o]
				square += d * d / float64(steps)
				mean += y[o] / float64(steps)
			}
			for _, y := range real {
				moves += (y[o] - mean) * (y[o] - mean) / float64(steps)
			}
			e, name := math.Sqrt(square)/max(math.Sqrt(moves), p.ref.sizes[at[i]+o]), sys.OutName(sys.OutAt[i]+o)
			switch {
			case !p.ref.feeds[at[i]+o]:
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
			p.ref.sizes[s.at] = 0
			apart = append(apart, s.name)
		case s.off > off:
			off, of = s.off, s.name
		}
	}
	return off, of, apart, nil
}
