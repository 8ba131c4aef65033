package algorithms

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// Estimator names the way in which the error of a macro step is estimated.
type Estimator string

// NoEstimate leaves order and step size as they are.
const NoEstimate Estimator = ""

// controls is the table of the ways to control order and step size.
var controls = []controlKind{
	{name: ExLocal, estimate: &exLocal},
	{name: ExMilne, estimate: &exMilne},
	{name: ExSLocal, estimate: &exSLocal},
	{name: ImMilne, estimate: &imMilne},
	{name: ImSLocal, estimate: &imSLocal},
	{name: Richardson, estimate: &richardson},
	{name: PredictorCorrector, indicator: newPredictorCorrector},
	{name: ECCO, indicator: newECCO, bonds: true},
}

// controlKind is a row of the table. It has an estimate, by which a step is judged, and repeated
// with a smaller size if its error is too large; or an indicator, by which the next size is
// chosen.
type controlKind struct {
	name      Estimator
	estimate  *estimate
	indicator func(k *Control, a *Coupling) (indicator, controller)
	bonds     bool // it needs the energy at power bonds
}

func (e Estimator) kind() controlKind {
	if i := slices.IndexFunc(controls, func(k controlKind) bool { return k.name == e }); i >= 0 {
		return controls[i]
	}
	return controlKind{}
}

// Monitored names an output by which the error is estimated.
type Monitored struct {
	Name  string // "component.variable"
	Level master.Level
}

// Control configures the error estimate, and the control of order and step size
// by it. The zero value estimates nothing.
type Control struct {
	Estimator          Estimator
	Relative, Absolute []Tolerance
	Safety             float64 // SF of meyer 5.3
	RatioMin, RatioMax float64 // bounds of one step size over the one before
	// GainI and GainP are kI and kP of the PI controller of sadjina (15); nil: those
	// of (15) by order.
	GainI, GainP *float64
	// Steps in s. 0 stands for a first step of a thousandth of the step size of
	// the run and no upper bound; with the predictor/corrector for bounds of a
	// tenth and of ten times that size, and a first step of the least.
	HMin, HMax, H0 float64
	MaxOrder       int
	FixedOrder     bool        // Config.Order holds
	FixedStep      bool        // steps have the size of the run; the estimate is only reported
	Monitor        []Monitored // nil = found (chooseStates)

	PCTolerance, PCRho []Tolerance // of the predictor/corrector, (17) of sadjina
	// E0 in J (0 = learnt from the run) and r of ECCO, (14) of sadjina, for bonds
	// that have none of their own.
	EnergyScale, EnergyTolerance float64
}

// varies reports whether the order changes.
func (c *Control) varies() bool { return c.Estimator.kind().estimate != nil && !c.FixedOrder }

// degreesAbove is the number of degrees that the second solution of the estimate has above the order.
func (c *Control) degreesAbove() int {
	if e := c.Estimator.kind().estimate; e != nil {
		return e.above
	}
	return 0
}

// highestOrder is the highest one that the control chooses.
func (c *Control) highestOrder() int { return min(c.MaxOrder, MaxOrder-c.degreesAbove()) }

// control chooses order and size of the macro steps by an estimate of the error.
type control interface {
	part
	// repeats reports whether it takes subsystems back.
	repeats() bool
	// firstStep returns the first step size, from the one of the run; 0 = none is chosen.
	firstStep(H float64) float64
	// attempt takes one macro step by the scheme, and judges it.
	attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error)
	monitored() []string
	// disturb returns the size of the next step after a jump; 0 = any.
	disturb() float64
}

// newControl returns the control of a configuration; nil: there is none.
func newControl(c Config, a *Coupling) (control, error) {
	k := c.Control
	if k.Estimator == NoEstimate {
		return nil, nil
	}
	kind := k.Estimator.kind()
	switch e := kind.estimate; {
	case kind.name == NoEstimate:
		return nil, fmt.Errorf("no error estimate is called %q", k.Estimator)
	case e == nil:
	case e.implicit && c.Scheme != Implicit:
		return nil, fmt.Errorf("the estimator %s compares predictor and corrector: it goes with scheme=implicit", kind.name)
	case !e.implicit && c.Scheme == Implicit:
		return nil, fmt.Errorf("the estimator %s goes with an explicit scheme; with scheme=implicit choose im-milne or im-slocal", kind.name)
	case e.jacobi && c.Scheme != Jacobi:
		return nil, fmt.Errorf("the estimator %s goes with scheme=jacobi: its constants belong to inputs that are all extrapolated", kind.name)
	}
	if k.MaxOrder < 0 || k.MaxOrder > MaxOrder {
		return nil, fmt.Errorf("the highest order is %d; it lies between 0 and %d", k.MaxOrder, MaxOrder)
	}
	if k.HMax > 0 && k.HMin > k.HMax || k.HMax > 0 && k.H0 > k.HMax || k.H0 > 0 && k.H0 < k.HMin {
		return nil, fmt.Errorf("the step sizes control.h-min=%g, control.h0=%g and control.h-max=%g (0 = auto) contradict each other: they ascend in this order", k.HMin, k.H0, k.HMax)
	}
	if kind.indicator != nil {
		quality, size := kind.indicator(&k, a)
		return &indicatorControl{config: k, coupling: a, quality: quality, size: size}, nil
	}
	if k.HMax == 0 {
		k.HMax = math.Inf(1)
	}
	k.MaxOrder = k.highestOrder()
	return &errorControl{estimate: kind.estimate, config: k, fixed: c.Order, coupling: a, scheme: a.scheme, in: a.in, tol: &a.tol}, nil
}
