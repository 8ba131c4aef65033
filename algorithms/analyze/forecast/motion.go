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
	// rough is the relative uncertainty above which an error is only an order of magnitude.
	// Uncertainties below negligible are ignored.
	rough, negligible = 0.5, 1e-4
	// horizonSteps is the largest length of a forecast in steps of the analysis.
	horizonSteps = 1000
	// finer is the number of steps of the reference in the shortest forecast step.
	finer = 4
	// referenceWindow is the length of the responses for the reference, in steps of the analysis.
	referenceWindow = 50
	// ownDoubt is the largest distance from their models, relative to the requested error, of outputs that feed no input
	// and count in the errors.
	ownDoubt = 0.1
)

// Stray is the distance of a component from its model along the forecast motion: the root mean square over time,
// relative to the motion of the output.
type Stray struct {
	Off float64 `json:"off"`
	Of  string  `json:"of"` // the output with the largest distance
}

// Forecaster forecasts errors and costs of strategies along the coupled motion from the operating point on.
type Forecaster struct {
	*twin.Point
	Motion
	ref   *reference
	doubt float64 // of errors
}

// Motion describes the coupled motion from the operating point on.
type Motion struct {
	Horizon float64 `json:"horizon,omitempty"` // s after the operating point, over which errors are forecast
	// Stray is the largest distance of a model from its component along the forecast motion.
	Stray *Stray `json:"stray,omitempty"`
	// Large explains why the motion is too large for linear models, "" = it is not. If it is, the stability holds only
	// for small motions about the operating point.
	Large string `json:"large,omitempty"`
	// Unconfirmed explains why the models are not known to hold along the motion, because it is too large for them or
	// unknown; "" = they hold. Their stability is that of small motions about the operating point.
	Unconfirmed string `json:"unconfirmed,omitempty"`
	// WhyNoError is the reason why errors are not forecast; "" = they are.
	WhyNoError string `json:"why_no_error,omitempty"`
	// Apart lists outputs that feed no input and are not linear; they do not count in the errors.
	Apart []string `json:"-"`
}

// New finds the coupled motion from the operating point up to stop (s), and compares the models with the components along
// it. candidates are the steps of the forecasts, rising, in steps of the analysis; most is the requested error. If errors
// cannot be forecast, WhyNoError is the reason.
func New(at *twin.Point, stop, most float64, candidates []float64) *Forecaster {
	p := &Forecaster{Point: at}
	p.WhyNoError = p.find(stop, most, candidates)
	return p
}

// find fills p and returns why errors cannot be forecast, or "".
func (p *Forecaster) find(stop, most float64, candidates []float64) (why string) {
	steps, longest := float64(horizonSteps), candidates[len(candidates)-1]
	if len(p.Models) > twin.Many {
		steps = twin.FewerSteps
	}
	horizon := min(max(stop-p.T, 0), steps*p.Step)
	horizon = math.Floor(horizon/(longest*p.Step)+1e-9) * longest * p.Step
	if horizon == 0 {
		return "the stop time is too close [no-motion]"
	}
	if p.ref, why = p.refer(horizon, p.Step, candidates[0]); p.ref == nil {
		return why
	}
	p.Horizon = horizon
	off, of, apart, err := p.stray(ownDoubt * most)
	for i := range p.Models { // the run continues from here
		if p.Models[i].Source == twin.Measured {
			err = errors.Join(err, p.X.Restore(i))
		}
	}
	if err == nil && linear.Finite(off) {
		p.Stray, p.doubt = &Stray{Off: off, Of: of}, off
	}
	switch {
	case err != nil:
		p.Unconfirmed = fmt.Sprintf("the components could not follow the forecast motion: %v", err)
		return p.Unconfirmed
	case !(off <= twin.Strayed):
		p.Large = fmt.Sprintf("the motion over %.4g s is too large for linear models: along it, %s is off its model by %.2g "+
			"of how much it moves [nonlinear]", horizon, of, off)
		p.Unconfirmed = p.Large
		return p.Large
	case len(apart) > 0 && !slices.ContainsFunc(p.ref.sizes, func(size float64) bool { return size > 0 }):
		return fmt.Sprintf("the only outputs that move feed no input and are not linear: %s [nonlinear]", twin.SomeNames(apart))
	}
	p.Apart = apart
	return ""
}

// Candidates are the steps of the forecasts, in steps of the analysis; all are multiples of the first, so that they fall
// on steps of the reference.
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

// states are those of the reference, in distances of half a step of the analysis.
type states struct {
	x [][]float64 // by point: of all twins, one after the other
	n int         // steps of the reference between them
}

// driven returns why the motion about the operating point is unknown, or "". It sets Unconfirmed if the components
// may be far from their models.
func (p *Forecaster) driven(h float64, s *twin.Scheme) string {
	for i, m := range p.Models {
		r, err := p.Over(i, p.StepOf(i, s, h))
		switch {
		case err != nil:
			return err.Error()
		case m.Source == twin.Directional:
			p.Unconfirmed = fmt.Sprintf("the motion of %s with held inputs is unknown: it cannot go back [no-rollback]", m.Info)
			return p.Unconfirmed
		case r.OwnMisfit > twin.OwnMisfit:
			why := fmt.Sprintf("the model of the responses of %s does not describe its motion with held inputs: it is off by %.2g [nonlinear]", m.Info, r.OwnMisfit)
			if r.OwnMisfit > twin.Strayed {
				p.Unconfirmed = why
			}
			return why
		}
	}
	return ""
}

// refer returns the reference, or why there is none: implicit coupling over the horizon (s) at a step finer than the
// shortest step of a forecast, shortest·H.
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
		return nil, fmt.Sprintf("the coupled motion is unknown: %v", err)
	}
	r.measure(p.Point)
	if !slices.ContainsFunc(r.sizes, func(size float64) bool { return size > 0 }) {
		return nil, "no output moves from here on, so that errors are not defined: set start values that make the system " +
			"move, or choose another time (--at) [no-motion]"
	}
	return r, ""
}

// measure finds the sizes of the outputs over the motion, and which of them feed inputs.
func (r *reference) measure(p *twin.Point) {
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
	// Outputs far from the source of a motion hardly move: they do not count, unless all move that little.
	if slices.ContainsFunc(r.moves(typical), func(moves float64) bool { return moves > linear.Nothing }) {
		for o, moves := range r.moves(typical) {
			if moves <= linear.Nothing {
				r.sizes[o] = 0
			}
		}
	}
}

// sampled reports whether the inputs of any subsystem are sampled.
func (p *Forecaster) sampled(s *twin.Scheme) bool {
	for i := range p.Models {
		if p.StepOf(i, s, 1) != 1 {
			return true
		}
	}
	return false
}

// course runs the strategy on driven twins from the operating point and returns the outputs at
// each macro step, as deviations from it. keep, if not nil, is called there with the twins.
func (p *Forecaster) course(s *twin.Scheme, h float64, steps int, keep func(n int, twins []*twin.Twin),
) (y [][]float64, result master.Result, err error) {
	twins, sys, err := p.Twins(s, h, -1, 1, true)
	if err != nil {
		return nil, result, err
	}
	if !s.Ideal { // the reference is more accurate in deviations
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

// moves returns the size of the motion of each output, relative to its typical magnitude.
func (r *reference) moves(typical []float64) []float64 {
	out := make([]float64, len(typical))
	for o, size := range r.sizes {
		out[o] = size / typical[o]
	}
	return out
}

// at puts the outputs at a time t after the operating point into y, by the cubic through the four points around it.
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

// stray steps each subsystem and its model along the forecast motion, with inputs held over steps of the analysis. off is
// the largest distance of an output, of, from its model: root mean square over time relative to the motion of the output. It
// is large if the motion leaves the range of linear models, or passes a kink.
//
// An output that feeds no input, such as a power, may be nonlinear without an effect on the coupling. If its distance is
// larger than those of the others and than allowed, it does not count in the errors and is listed in apart.
func (p *Forecaster) stray(allowed float64) (off float64, of string, apart []string, err error) {
	type seen struct {
		at   int
		off  float64
		name string
	}
	var ends []seen // outputs that feed no input
	at := 0         // outputs without internal ones
	for i, m := range p.Models {
		distances, err := p.distances(i, at)
		if err != nil {
			return 0, "", nil, err
		}
		for o, e := range distances {
			name := p.X.Sys.OutName(p.X.Sys.OutAt[i] + o)
			switch {
			case p.ref.sizes[at+o] == 0:
			case !p.ref.feeds[at+o]:
				ends = append(ends, seen{at + o, e, name})
			case !(e <= off):
				off, of = e, name
			}
		}
		at += m.Outputs()
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

// alongMotion returns the inputs of subsystem i at the steps of the analysis along the forecast motion, as deviations.
func (p *Forecaster) alongMotion(i int) [][]float64 {
	sys := p.X.Sys
	each := int(math.Round(p.Step / p.ref.h))
	place, at := map[int]int{}, 0 // of an entry of y among outputs without internal ones
	for j, m := range p.Models {
		for o := range m.Outputs() {
			place[sys.OutAt[j]+o] = at + o
		}
		at += m.Outputs()
	}
	u := make([][]float64, (len(p.ref.y)-1)/each)
	for n := range u {
		u[n] = make([]float64, len(p.Models[i].Info.In))
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
	return u
}

// distances returns the distance of each output of subsystem i from its model along the forecast motion, 0 for outputs
// that do not move. at is the place of its first output in the reference.
func (p *Forecaster) distances(i, at int) ([]float64, error) {
	m, y0 := p.Models[i], p.Y[p.X.Sys.OutAt[i]:]
	r, err := p.Over(i, p.Step)
	if err != nil {
		return nil, err
	}
	if r.Whole != nil {
		r = r.Whole
	}
	model := twin.NewTwin(m.Info, r, p.Step, 0)
	model.Driven = true
	u := p.alongMotion(i)
	real, err := p.Lead(i, p.Step, u)
	if err != nil {
		return nil, err
	}
	steps := float64(len(u))
	out := make([]float64, m.Outputs())
	for o := range out {
		if p.ref.sizes[at+o] == 0 {
			continue
		}
		model.Restart()
		square, mean, moves := 0.0, 0.0, 0.0
		for n, y := range real {
			copy(model.U[0], u[n])
			if _, err := model.Step(p.Ctx, 0, p.Step); err != nil {
				return nil, err
			}
			d := y[o] - y0[o] - model.Y[o]
			square += d * d / steps
			mean += y[o] / steps
		}
		for _, y := range real {
			moves += (y[o] - mean) * (y[o] - mean) / steps
		}
		out[o] = math.Sqrt(square) / max(math.Sqrt(moves), p.ref.sizes[at+o])
	}
	return out, nil
}
