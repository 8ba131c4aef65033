package scan

import (
	"cmp"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

// Radius is the spectral radius of the coupled run at one step size: the factor by which
// what grows most, or dies out slowest, is multiplied in every macro step.
type Radius struct {
	Step   float64 `json:"step"` // s
	Radius float64 `json:"radius"`
}

// Range of step sizes in s.
type Range struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Gap is a range of the step size, in s, of which nothing is known.
type Gap struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Why  string  `json:"why"`
}

const (
	// Points of a scan, and of many subsystems.
	Points, fewerPoints = 61, 13
	// edgePrecision is that of the ends of stable ranges, and of many subsystems.
	edgePrecision, coarsePrecision = 1e-4, 2e-3
	// Where fewer than fewKnown points of the scan are known, or less than one in fewPart, whole multiples of the
	// step are looked at, MostMultiples of them at most; where none is known up to lastTry, no more.
	fewKnown, fewPart, MostMultiples, lastTry = 3, 4, 12, 3
	// besidePoint is how far beside a step one looks whether it is unstable there too, relative to it.
	besidePoint, besideAlone = 2e-3, 1e-2
)

// Scanner looks at strategies on the models of a system at an operating point.
type Scanner struct{ *twin.Point }

// Result is what a scan shows of a strategy.
type Result struct {
	Points []Radius `json:"points"`
	// Stable are the ranges of the step size in which nothing grows, within the scan; known if there are Points;
	// stability is not monotone in the step, so there may be several.
	Stable []Range `json:"stable"`
	// Gaps are ranges of the step size within the scan of which nothing is known, with the reason:
	// those from the first to the last step that was looked at in vain.
	Gaps []Gap `json:"gaps,omitempty"`
	// Multiples is the step of whose whole multiples alone something is told, where FMUs take steps of
	// their own; 0 = the points are those of the scan.
	Multiples float64 `json:"multiples_of,omitempty"`
	// Now is the spectral radius at the step of the analysis, if there is a Mode.
	Now float64 `json:"radius"`
	// Lasts tells that something does not die out: there is an eigenvalue of 1 besides that of
	// Mode, of a displacement that nothing holds, or of a gain of 1 around a loop, or something that nothing
	// feeds oscillates without damping. Besides is the
	// radius of all else.
	Lasts   bool    `json:"lasts,omitempty"`
	Besides float64 `json:"radius_besides,omitempty"`
	Mode    *Mode   `json:"mode,omitempty"`
}

// Radius returns the dominant mode at steps of size h, as far as the models tell whether it grows.
func (p *Scanner) Radius(s *twin.Scheme, h float64, outputs bool) (Eigen, error) {
	mode, err := p.Spectrum(s, h, -1, 1, outputs)
	if err == nil {
		err = p.untold(s, h, mode.Coupled)
	}
	return mode, err
}

// Scan finds the radius over the step sizes from … to, and the ranges without growth; H is the step of the analysis. why is the first
// reason why something is not known.
func (p *Scanner) Scan(s *twin.Scheme, H, from, to float64) (out Result, why string) {
	radius := func(h float64) (float64, error) {
		mode, err := p.Radius(s, h, false)
		if err != nil {
			why = cmp.Or(why, fmt.Sprintf("at steps of %.4g s: %v", h, err))
			return math.NaN(), err
		}
		return mode.Radius(), nil
	}
	points, precision := Points, edgePrecision
	if len(p.Models) > twin.Many {
		points, precision = fewerPoints, coarsePrecision
	}
	var looked []look
	for i := range points {
		h := from * math.Pow(to/from, float64(i)/float64(points-1))
		v, err := radius(h)
		looked = append(looked, look{Radius{h, v}, err})
		if p.Ctx.Err() != nil {
			break
		}
	}
	confirm(looked, radius, func(h float64) bool { return p.noisy(s, h) })
	out.take(looked)
	if len(out.Points) < fewKnown || fewPart*len(out.Points) < len(looked) {
		// FMUs with steps of their own are known at whole multiples of them, if at all.
		whole := wholeSteps(H, from, to)
		var known []Radius
		for _, h := range whole {
			if v, err := radius(h); err == nil {
				known = append(known, Radius{h, v})
			} else if p.Ctx.Err() != nil || len(known) == 0 && h >= lastTry*H {
				break
			}
		}
		if len(known) > len(out.Points) || len(known) >= fewKnown {
			out.Points, out.Gaps, out.Multiples = known, nil, H
		}
	}
	// The end of a range between two points, by secants, each followed by a look to its
	// other side, and by halves in turn.
	edge := func(from, to Radius, was bool) float64 {
		a, b := from.Step, to.Step
		above := func(v float64) float64 { return v - 1 - linear.Marginal }
		fa, fb := above(from.Radius), above(to.Radius)
		look := func(h float64) {
			v, _ := radius(h) // NaN with an error
			f := above(v)
			if (f <= 0) == was {
				a, fa = h, f
			} else { // unknown counts as this
				b, fb = h, f
			}
		}
		for n := 0; b-a > precision*a; n++ {
			c, beside := a+(b-a)*fa/(fa-fb), 0.5*precision*a
			if n%2 == 1 || !(c > a+beside && c < b-beside) {
				look(math.Sqrt(a * b))
				continue
			}
			if look(c); c == a {
				look(c + beside)
			} else {
				look(c - beside)
			}
		}
		return a
	}
	if out.Multiples > 0 {
		edge = func(from, to Radius, was bool) float64 { // nothing is known between them
			if was {
				return from.Step
			}
			return to.Step / (1 + precision)
		}
	}
	// A step that is left out parts what is known on both of its sides.
	parted := func(i int) bool {
		before, after := out.Points[i-1].Step, out.Points[i].Step
		return out.Multiples > 0 && after-before > 1.5*out.Multiples ||
			slices.ContainsFunc(out.Gaps, func(g Gap) bool { return before < g.From && g.To < after })
	}
	for i, point := range out.Points {
		switch {
		case !linear.Stable(point.Radius):
		case i == 0 || parted(i):
			out.Stable = append(out.Stable, Range{point.Step, point.Step})
		case !linear.Stable(out.Points[i-1].Radius):
			begin := edge(out.Points[i-1], point, false)
			out.Stable = append(out.Stable, Range{begin * (1 + precision), point.Step})
		}
		if n := len(out.Stable); n > 0 && linear.Stable(point.Radius) {
			out.Stable[n-1].To = point.Step
			if i+1 < len(out.Points) && !parted(i+1) && !linear.Stable(out.Points[i+1].Radius) {
				out.Stable[n-1].To = edge(point, out.Points[i+1], true)
			}
		}
	}
	mode, err := p.Radius(s, H, true)
	if err != nil {
		return out, cmp.Or(why, err.Error())
	}
	known := slices.ContainsFunc(out.Stable, func(r Range) bool { return r.From <= H && H <= r.To })
	if known != linear.Stable(mode.Radius()) && out.Multiples == 0 || p.noisy(s, H) {
		at := look{Radius: Radius{H, mode.Radius()}}
		if at.doubt(radius, false); at.err != nil {
			out.fill(Gap{H, H, at.err.Error()})
			return out, fmt.Sprintf("at steps of %.4g s: %v", H, at.err)
		}
	}
	if out.Now = mode.Radius(); mode.Lasts {
		out.Lasts, out.Besides = true, cmplx.Abs(mode.Value)
	}
	out.Mode = p.describe(s, H, mode)
	return out, why
}

// look is a point of the scan, or why it is not known.
type look struct {
	Radius
	err error
}

// doubt looks at steps close by on both sides, and makes the point unknown if whether it is stable cannot be
// told from all three: the measured responses of FMUs with solvers that choose their own steps have
// noise, which differs from step to step.
//
// One that stands alone in the scan is looked at in a wider neighbourhood, too.
func (l *look) doubt(radius func(h float64) (float64, error), alone bool) {
	least, most := l.Radius.Radius, l.Radius.Radius
	besides := []float64{-besidePoint, besidePoint}
	if alone {
		besides = append(besides, -besideAlone, besideAlone)
	}
	for _, beside := range besides {
		h := l.Step * (1 + beside)
		v, err := radius(h)
		if err != nil {
			l.err = fmt.Errorf("at %.6g s close by: %w", h, err)
			return
		}
		least, most = min(least, v), max(most, v)
	}
	if linear.Stable(least) != linear.Stable(most) {
		l.err = fmt.Errorf("the radius is between %.6g and %.6g at steps close by: the responses of the components have noise", least, most)
	}
}

// Doubt returns why it is not known for noise whether a step is stable that has a radius, nil if it is. at returns radii.
func (p *Scanner) Doubt(s *twin.Scheme, h, radius float64, at func(h float64) (float64, error)) error {
	l := look{Radius: Radius{h, radius}}
	if p.noisy(s, h) {
		l.doubt(at, false)
	}
	return l.err
}

// confirm looks closer at the points beside which the stability changes: at those that stand alone, and, where
// responses are noisy, at all of them, on and on where others have become unknown.
func confirm(looked []look, radius func(h float64) (float64, error), noisy func(h float64) bool) {
	done := make([]bool, len(looked))
	differs := func(i, j int) bool {
		return j >= 0 && j < len(looked) && (looked[j].err != nil && done[j] || looked[j].err == nil && linear.Stable(looked[i].Radius.Radius) != linear.Stable(looked[j].Radius.Radius))
	}
	for again := true; again; {
		again = false
		for i := range looked {
			l := &looked[i]
			if done[i] || l.err != nil {
				continue
			}
			before, after := differs(i, i-1), differs(i, i+1)
			if before && after || (before || after) && noisy(l.Step) {
				done[i], again = true, true
				l.doubt(radius, before && after)
			}
		}
	}
}

// take puts the points that are known, and the gaps between them.
func (s *Result) take(looked []look) {
	for i, l := range looked {
		switch {
		case l.err == nil:
			s.Points = append(s.Points, l.Radius)
		case i > 0 && looked[i-1].err != nil:
			s.Gaps[len(s.Gaps)-1].To = l.Step
		default:
			s.Gaps = append(s.Gaps, Gap{l.Step, l.Step, l.err.Error()})
		}
	}
}

// fill puts a gap among the others.
func (s *Result) fill(g Gap) {
	if slices.ContainsFunc(s.Gaps, func(have Gap) bool { return have.From <= g.From && g.To <= have.To }) {
		return
	}
	s.Gaps = append(s.Gaps, g)
	slices.SortFunc(s.Gaps, func(a, b Gap) int { return cmp.Compare(a.From, b.From) })
}

// Noisy reports whether the response of a component over such steps is known with less than
// rounding.
func (p *Scanner) noisy(s *twin.Scheme, h float64) bool {
	for i := range p.Models {
		if r, err := p.Over(i, p.StepOf(i, s, h)); err != nil || r.Misfit > clean {
			return true
		}
	}
	return false
}

// clean is the misfit of a model up to which its response has no noise to speak of.
const clean = 1e-7

// Untold tells that a radius is too close to 1 for models that are off by so much: a mode that is slow
// beside the steps takes little part in the responses.
func (p *Scanner) untold(s *twin.Scheme, h, radius float64) error {
	for i, m := range p.Models {
		r, err := p.Over(i, p.StepOf(i, s, h))
		if err != nil {
			return err
		}
		if r.Misfit > twin.Good && math.Abs(radius-1) <= linear.SlowPart*r.Misfit {
			return fmt.Errorf("the model of %s is off by %.1g, and whether the coupling grows by %.3g in a step or does not is within that", m.Info, r.Misfit, radius)
		}
	}
	return nil
}

// wholeSteps returns whole multiples of the step of the analysis within the scan.
func wholeSteps(H, from, to float64) (out []float64) {
	for n := range MostMultiples {
		if h := float64(n+1) * H; h >= from*(1-1e-9) && h <= to*(1+1e-9) {
			out = append(out, h)
		}
	}
	return out
}
