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

// Radius is the spectral radius of the coupled run at one step size: the factor per macro step of the
// motion that grows most, or decays most slowly.
type Radius struct {
	Step   float64 `json:"step"` // s
	Radius float64 `json:"radius"`
}

// Range of step sizes in s.
type Range struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Gap is a range of step sizes, in s, with unknown stability.
type Gap struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Why  string  `json:"why"`
}

const (
	// Points is the number of points of a scan, fewerPoints that for many subsystems.
	Points, fewerPoints = 61, 13
	// edgePrecision is the relative precision of the ends of stable ranges, coarsePrecision that for many subsystems.
	edgePrecision, coarsePrecision = 1e-4, 2e-3
	// If fewer than fewKnown points of the scan are known, or less than one in fewPart, whole multiples of the step are
	// tried, at most MostMultiples, and no more if none is known up to lastTry.
	fewKnown, fewPart, MostMultiples, lastTry = 3, 4, 12, 3
	// besidePoint and besideAlone are the relative distances of the steps that look.doubt compares.
	besidePoint, besideAlone = 2e-3, 1e-2
)

// Scanner finds radii and stable steps of strategies on the models of a system at an operating point.
type Scanner struct{ *twin.Point }

// Result is the result of a scan of one strategy.
type Result struct {
	Points []Radius `json:"points"`
	// Stable are the ranges of stable steps within the scan, known if there are Points. Stability is not monotone in the
	// step, so there may be several.
	Stable []Range `json:"stable"`
	// Gaps are ranges of steps within the scan with unknown stability, from the first to the last unknown point, with
	// the reason.
	Gaps []Gap `json:"gaps,omitempty"`
	// Multiples is set if Points are whole multiples of this step, because FMUs take internal steps of their own;
	// 0 = Points are those of the scan.
	Multiples float64 `json:"multiples_of,omitempty"`
	// Now is the spectral radius at the step of the analysis, known if there is a Mode.
	Now float64 `json:"radius"`
	// Lasts is set if another eigenvalue is 1: of a free displacement, a loop with gain 1, or the undamped motion of a
	// component without inputs. Besides is the radius of all other motion.
	Lasts   bool    `json:"lasts,omitempty"`
	Besides float64 `json:"radius_besides,omitempty"`
	Mode    *Mode   `json:"mode,omitempty"`
}

// Radius returns the dominant mode at steps of size h, with an error if the models are too inexact to decide its stability.
func (p *Scanner) Radius(s *twin.Scheme, h float64, outputs bool) (Eigen, error) {
	mode, err := p.Spectrum(s, h, -1, 1, outputs)
	if err == nil {
		err = p.untold(s, h, mode.Coupled)
	}
	return mode, err
}

// Scan finds the radius over the step sizes from … to, and the stable ranges; H is the step of the analysis. why is the
// first reason why something is unknown.
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
		if known := p.multiples(radius, H, from, to); len(known) > len(out.Points) || len(known) >= fewKnown {
			out.Points, out.Gaps, out.Multiples = known, nil, H
		}
	}
	out.findStable(radius, precision)
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

// multiples returns the known radii at whole multiples of the step of the analysis: FMUs with internal steps of their own
// have linear responses only there.
func (p *Scanner) multiples(radius func(h float64) (float64, error), H, from, to float64) (known []Radius) {
	for _, h := range wholeSteps(H, from, to) {
		if v, err := radius(h); err == nil {
			known = append(known, Radius{h, v})
		} else if p.Ctx.Err() != nil || len(known) == 0 && h >= lastTry*H {
			break
		}
	}
	return known
}

// findStable finds the stable ranges between the points, their ends with a relative precision.
func (s *Result) findStable(radius func(h float64) (float64, error), precision float64) {
	end := func(from, to Radius, was bool) float64 { return edge(radius, from, to, was, precision) }
	if s.Multiples > 0 {
		end = func(from, to Radius, was bool) float64 { // nothing is known between multiples
			if was {
				return from.Step
			}
			return to.Step / (1 + precision)
		}
	}
	// An unknown step separates the points on both sides.
	parted := func(i int) bool {
		before, after := s.Points[i-1].Step, s.Points[i].Step
		return s.Multiples > 0 && after-before > 1.5*s.Multiples ||
			slices.ContainsFunc(s.Gaps, func(g Gap) bool { return before < g.From && g.To < after })
	}
	for i, point := range s.Points {
		if !linear.Stable(point.Radius) {
			continue
		}
		if i == 0 || parted(i) {
			s.Stable = append(s.Stable, Range{point.Step, point.Step})
		} else if !linear.Stable(s.Points[i-1].Radius) {
			s.Stable = append(s.Stable, Range{end(s.Points[i-1], point, false) * (1 + precision), point.Step})
		}
		last := &s.Stable[len(s.Stable)-1]
		last.To = point.Step
		if i+1 < len(s.Points) && !parted(i+1) && !linear.Stable(s.Points[i+1].Radius) {
			last.To = end(point, s.Points[i+1], true)
		}
	}
}

// edge returns the last step from the first of two points on with the same stability, was, with a relative precision: by
// secants, each followed by a look to its other side, in turn with bisection.
func edge(radius func(h float64) (float64, error), from, to Radius, was bool, precision float64) float64 {
	a, b := from.Step, to.Step
	above := func(v float64) float64 { return v - 1 - linear.Marginal }
	fa, fb := above(from.Radius), above(to.Radius)
	look := func(h float64) {
		v, _ := radius(h) // NaN with an error
		f := above(v)
		if (f <= 0) == was {
			a, fa = h, f
		} else { // includes unknown steps
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

// look is a point of the scan, or why it is unknown.
type look struct {
	Radius
	err error
}

// doubt makes the point unknown if steps close by on both sides differ from it in stability: the measured responses of
// FMUs with variable-step solvers have noise, which differs from step to step. A point that differs from both of its
// neighbours in the scan (alone) is compared with a wider neighbourhood, too.
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
		l.err = fmt.Errorf("the radius is between %.6g and %.6g at steps close by: the responses of the components have noise [noise]", least, most)
	}
}

// confirm doubts the points next to a change of stability: those that differ from both neighbours, and all of them where
// responses are noisy, again while points become unknown.
func confirm(looked []look, radius func(h float64) (float64, error), noisy func(h float64) bool) {
	done := make([]bool, len(looked))
	differs := func(i, j int) bool {
		if j < 0 || j >= len(looked) {
			return false
		}
		if looked[j].err != nil {
			return done[j]
		}
		return linear.Stable(looked[i].Radius.Radius) != linear.Stable(looked[j].Radius.Radius)
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

// take adds the known points, and gaps for the others.
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

// fill adds a gap, unless one contains it.
func (s *Result) fill(g Gap) {
	if slices.ContainsFunc(s.Gaps, func(have Gap) bool { return have.From <= g.From && g.To <= have.To }) {
		return
	}
	s.Gaps = append(s.Gaps, g)
	slices.SortFunc(s.Gaps, func(a, b Gap) int { return cmp.Compare(a.From, b.From) })
}

// noisy reports whether the response of a component over such steps has more error than rounding.
func (p *Scanner) noisy(s *twin.Scheme, h float64) bool {
	for i := range p.Models {
		if r, err := p.Over(i, p.StepOf(i, s, h)); err != nil || r.Misfit > clean {
			return true
		}
	}
	return false
}

// clean is the largest misfit of a model whose response counts as free of noise.
const clean = 1e-7

// untold returns an error if a radius is too close to 1 for the misfit of the models: modes that are slow compared with the
// steps have little effect on the responses.
func (p *Scanner) untold(s *twin.Scheme, h, radius float64) error {
	for i, m := range p.Models {
		r, err := p.Over(i, p.StepOf(i, s, h))
		if err != nil {
			return err
		}
		if r.Misfit > twin.Good && math.Abs(radius-1) <= linear.SlowPart*r.Misfit {
			return fmt.Errorf("the model of %s is off by %.1g, too much to decide whether a radius of %.6g is stable [noise]", m.Info, r.Misfit, radius)
		}
	}
	return nil
}

// wholeSteps returns the whole multiples of the step of the analysis within the scan.
func wholeSteps(H, from, to float64) (out []float64) {
	for n := range MostMultiples {
		if h := float64(n+1) * H; h >= from*(1-1e-9) && h <= to*(1+1e-9) {
			out = append(out, h)
		}
	}
	return out
}
