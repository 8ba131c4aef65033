package algorithms

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// indicator tells the quality of a macro step that stands whatever it says. Its
// value is 1 where the tolerance is just met.
type indicator interface {
	check(*master.System) error
	init(x *master.Exec, t0 float64) error
	// measure gives the quality of the step from t to t+H that was just taken.
	measure(x *master.Exec, t, H float64, degree int) float64
	accept(x *master.Exec, t float64)
	monitored() []string
	archive(a *master.Archive)
	// review returns warnings about the whole run, at its end.
	review() []string
}

// indicatorControl chooses step sizes by an indicator, and never repeats a step
// (sadjina III C).
type indicatorControl struct {
	config   Control
	coupling *Coupling
	quality  indicator
	gain     int     // kI = 0.3/(m+gain), kP = 0.4/(m+gain) at order m
	before   float64 // indicator of the step before; NaN: there was none
	now      float64
	H        float64     // s, of the step under way
	given    *[2]float64 // HMin and HMax as they were given; nil: no run has begun
	// Accepted steps; those of the least size whose indicator is above 1, and the largest of these.
	steps, short int
	worst        float64
}

// Parts of the step size of the run that bound the steps, unless they are given.
const (
	leastPart   = 0.1
	largestPart = 10
	// shortPart is the part of the steps that is told of, if they are too long for the tolerance.
	shortPart = 0.05
)

// Bounds of the indicator keep the controller finite where a step has no error
// at all, and where it has more than a number holds.
const (
	leastIndicator   = 1e-12
	largestIndicator = 1e12
)

func (c *indicatorControl) check(s *master.System) error { return c.quality.check(s) }
func (c *indicatorControl) repeats() bool                { return false }

// firstStep gives the smallest step, as sadjina IV starts, and settles the bounds.
func (c *indicatorControl) firstStep(H float64) float64 {
	if c.config.FixedStep {
		return 0
	}
	// Bounds that are not given follow the step size of each run.
	if c.given == nil {
		c.given = &[2]float64{c.config.HMin, c.config.HMax}
	}
	c.config.HMin, c.config.HMax = c.given[0], c.given[1]
	// One bound that is given moves the other, if need be.
	least, most := c.config.HMin, c.config.HMax
	if least == 0 {
		c.config.HMin = leastPart * H
		if most > 0 {
			c.config.HMin = min(c.config.HMin, most)
		}
	}
	if most == 0 {
		c.config.HMax = max(largestPart*H, least)
	}
	if c.config.H0 > 0 {
		return c.config.H0
	}
	return c.config.HMin
}

func (c *indicatorControl) init(x *master.Exec, t0 float64) error {
	c.before, c.now = math.NaN(), math.NaN()
	c.steps, c.short, c.worst = 0, 0, 0
	return c.quality.init(x, t0)
}

func (c *indicatorControl) attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error) {
	k := c.coupling.order
	c.H = H
	e, err := c.coupling.advance(ctx, x, t, H, k)
	trial := master.Trial{Est: math.NaN(), Indicator: math.NaN(), Iters: e.iterations, Jacobians: e.jacobians}
	if err != nil {
		return trial, err
	}
	c.now = c.quality.measure(x, t, H, k)
	trial.Indicator = c.now
	trial.Next = c.next(H, k)
	return trial, nil
}

// next is the PI controller (15) of sadjina with its bounds. A step without an
// indicator keeps the size.
func (c *indicatorControl) next(H float64, order int) float64 {
	if math.IsNaN(c.now) {
		return H
	}
	now := min(max(c.now, leastIndicator), largestIndicator)
	before := now
	if !math.IsNaN(c.before) {
		before = min(max(c.before, leastIndicator), largestIndicator)
	}
	kI, kP := 0.3/float64(order+c.gain), 0.4/float64(order+c.gain)
	if c.config.GainI != nil {
		kI = *c.config.GainI
	}
	if c.config.GainP != nil {
		kP = *c.config.GainP
	}
	ratio := c.config.Safety * math.Pow(now, -kI-kP) * math.Pow(before, kP)
	ratio = min(max(ratio, c.config.RatioMin), c.config.RatioMax)
	return min(max(ratio*H, c.config.HMin), c.config.HMax)
}

func (c *indicatorControl) accept(x *master.Exec, t float64) {
	c.before = c.now
	if c.steps++; c.now > 1 && c.H <= c.config.HMin*(1+sameStep) {
		c.short++
		c.worst = max(c.worst, c.now)
	}
	c.quality.accept(x, t)
}

// review returns where the bound of the steps stood in the way of the tolerance.
func (c *indicatorControl) review() []string {
	out := c.quality.review()
	if c.config.FixedStep || float64(c.short) < shortPart*float64(c.steps) || c.short < 2 {
		return out
	}
	return append(out, fmt.Sprintf("in %d of %d macro steps the tolerance is not met, by a factor of up to %.3g, because the step is not made smaller than control.h-min = %.4g s; lower it, or raise the tolerance",
		c.short, c.steps, c.worst, c.config.HMin))
}

func (c *indicatorControl) reject(t, H float64) {}

// disturb leaves the size alone: no step is repeated.
func (c *indicatorControl) disturb() float64 { return 0 }

func (c *indicatorControl) archive(a *master.Archive) {
	a.Section("control of the step size")
	a.Float(&c.before)
	a.Int(&c.steps)
	a.Int(&c.short)
	a.Float(&c.worst)
	c.quality.archive(a)
}

func (c *indicatorControl) monitored() []string { return c.quality.monitored() }

// predictorCorrector compares the connected outputs with their extrapolation by
// one degree more than that of the inputs (sadjina (16), (17), after Busch):
//
//	ε = max |y − ỹ| / (TOL (1 + ρ max(|y|, |ỹ|))).
type predictorCorrector struct {
	tolerance, rho []Tolerance

	outputs []int
	names   []string
	tol, r  []float64 // by output
	times   [num.MaxNodes]float64
	values  [num.MaxNodes][]float64
	points  int
	now     []float64
}

func (p *predictorCorrector) check(s *master.System) error {
	return known(s, p.tolerance, p.rho)
}

func (p *predictorCorrector) init(x *master.Exec, t0 float64) error {
	sys := x.Sys
	p.outputs = nil
	for k := range x.W {
		if y, ok := sys.Source(k); ok {
			p.outputs = append(p.outputs, y)
		}
	}
	slices.Sort(p.outputs)
	p.outputs = slices.Compact(p.outputs)
	n := len(p.outputs)
	p.names, p.tol, p.r, p.now = make([]string, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, y := range p.outputs {
		p.names[i] = sys.OutName(y)
		p.tol[i], p.r[i] = ofVariable(p.tolerance, p.names[i]), ofVariable(p.rho, p.names[i])
	}
	for i := range p.values {
		p.values[i] = make([]float64, n)
	}
	p.points = 0
	p.accept(x, t0)
	return nil
}

// measure is (17), with the predictor on the actual grid and of the degree that
// the history allows; the first step, which has nothing to extrapolate from but
// one value, has no indicator.
func (p *predictorCorrector) measure(x *master.Exec, t, H float64, degree int) float64 {
	n := min(degree+2, p.points)
	if n < 2 {
		return math.NaN()
	}
	var w num.WeightTable
	num.Weights(&w, p.times[:n], t+H, 0)
	worst := 0.0
	for i, y := range p.outputs {
		predicted := 0.0
		for j := range n {
			predicted += float64(w[0][j] * p.values[j][i])
		}
		e := math.Abs(x.Y[y]-predicted) / (p.tol[i] * (1 + p.r[i]*max(math.Abs(x.Y[y]), math.Abs(predicted))))
		worst = max(worst, orInf(e))
	}
	return worst
}

func (p *predictorCorrector) accept(x *master.Exec, t float64) {
	oldest := p.values[num.MaxNodes-1]
	copy(p.values[1:], p.values[:])
	copy(p.times[1:], p.times[:])
	p.values[0], p.times[0] = oldest, t
	for i, y := range p.outputs {
		oldest[i] = x.Y[y]
	}
	p.points = min(p.points+1, num.MaxNodes)
}

func (p *predictorCorrector) review() []string { return nil }

func (p *predictorCorrector) archive(a *master.Archive) {
	a.Index(&p.points, 1, num.MaxNodes)
	a.Floats(p.times[:])
	for _, v := range p.values {
		a.Floats(v)
	}
}

func (p *predictorCorrector) monitored() []string {
	var out []string
	for _, name := range p.names {
		out = append(out, name+" (connected output)")
	}
	return out
}
