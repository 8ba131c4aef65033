package algorithms

import (
	"context"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/master"
)

// indicator measures the quality of macro steps. No step is rejected because of it. Its value is 1
// if the tolerance is just met.
type indicator interface {
	check(*master.System) error
	init(x *master.Exec, t0 float64) error
	// measure returns the indicator of the step from t to t+H that was just taken; NaN = unknown.
	measure(x *master.Exec, t, H float64, degree int) float64
	accept(x *master.Exec, t float64)
	monitored() []string
	archive(a *master.Archive)
	review() []string
}

// controller chooses step sizes from the indicators of the last two steps.
type controller interface {
	// ratio returns the ratio of the next step size to the last one.
	ratio(order int, now, before float64) float64
}

// indicatorControl chooses step sizes from an indicator and repeats no step (sadjina III C).
type indicatorControl struct {
	config   Control
	coupling *Coupling
	quality  indicator
	size     controller
	H        float64     // s, current step size
	given    *[2]float64 // HMin and HMax of the configuration; nil = no run has begun
	indicated
}

// indicated is the state of an indicatorControl.
type indicated struct {
	before float64 // indicator of the previous step; NaN = none
	now    float64 // indicator of the current step
	steps  int     // accepted steps
	short  int     // of these, steps of the smallest size with an indicator above 1
	worst  float64 // largest indicator of these
}

const (
	// Default bounds of the steps relative to the step size of the run.
	leastPart   = 0.1
	largestPart = 10
	// shortPart is the smallest share of steps that miss the tolerance with a warning.
	shortPart = 0.05
)

// Bounds of the indicator. They keep the controller finite if a step has no error or an infinite
// one.
const (
	leastIndicator   = 1e-12
	largestIndicator = 1e12
)

func (c *indicatorControl) check(s *master.System) error { return c.quality.check(s) }
func (c *indicatorControl) repeats() bool                { return false }

// firstStep sets the bounds and returns the first step size, by default the smallest (sadjina IV).
func (c *indicatorControl) firstStep(H float64) float64 {
	if c.config.FixedStep {
		return 0
	}
	// Default bounds depend on the step size of each run.
	if c.given == nil {
		c.given = &[2]float64{c.config.HMin, c.config.HMax}
	}
	c.config.HMin, c.config.HMax = c.given[0], c.given[1]
	// A given bound moves the default of the other if necessary.
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
	c.indicated = indicated{before: math.NaN(), now: math.NaN()}
	return c.quality.init(x, t0)
}

func (c *indicatorControl) attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	k := c.coupling.order
	c.H = H
	e, err := c.coupling.advance(ctx, x, t, H, k)
	trial.Iters, trial.Jacobians = e.iterations, e.jacobians
	if err != nil {
		return err
	}
	c.now = c.quality.measure(x, t, H, k)
	trial.Indicator, trial.Next = c.now, c.next(H, k)
	return nil
}

// next returns the size of the step after one of size H. Without an indicator it is H.
func (c *indicatorControl) next(H float64, order int) float64 {
	if math.IsNaN(c.now) {
		return H
	}
	now := min(max(c.now, leastIndicator), largestIndicator)
	before := now
	if !math.IsNaN(c.before) {
		before = min(max(c.before, leastIndicator), largestIndicator)
	}
	ratio := min(max(c.size.ratio(order, now, before), c.config.RatioMin), c.config.RatioMax)
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

// review returns a warning if the smallest step size prevented the tolerance.
func (c *indicatorControl) review() []string {
	out := c.quality.review()
	if c.config.FixedStep || float64(c.short) < shortPart*float64(c.steps) || c.short < 2 {
		return out
	}
	return append(out, fmt.Sprintf("in %d of %d macro steps the tolerance is not met, by a factor of up to %.3g, "+
		"because the step size "+
		"may not fall below control.h-min = %.4g s; lower control.h-min or raise the tolerance",
		c.short, c.steps, c.worst, c.config.HMin))
}

func (c *indicatorControl) reject(t, H float64) {}

// disturb allows any step size.
func (c *indicatorControl) disturb() float64 { return 0 }

func (c *indicatorControl) archive(a *master.Archive) {
	a.Section("control of the step size")
	a.All(&c.indicated)
	c.quality.archive(a)
}

func (c *indicatorControl) monitored() []string { return c.quality.monitored() }
