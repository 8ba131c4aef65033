package algorithms

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// Estimator names an error estimate or an indicator for macro steps.
type Estimator string

// NoEstimate keeps order and step size constant.
const NoEstimate Estimator = ""

// controls is the table of controls of order and step size.
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

// controlKind is a row of the table. It has either an estimate, which rejects steps whose error is
// too large, or an indicator, which only chooses the size of the next step.
type controlKind struct {
	name      Estimator
	estimate  *estimate
	indicator func(k *Control, a *Coupling) (indicator, controller)
	bonds     bool // needs the energy at power bonds
}

// kind returns the row of an estimator; the zero value if there is none.
func (e Estimator) kind() controlKind {
	if i := slices.IndexFunc(controls, func(k controlKind) bool { return k.name == e }); i >= 0 {
		return controls[i]
	}
	return controlKind{}
}

// Monitored names an output whose error is estimated.
type Monitored struct {
	Name  string // "component.variable"
	Level master.Level
}

// Control configures the error estimate and the control of order and step size. The zero value
// keeps both constant.
type Control struct {
	Estimator          Estimator
	Relative, Absolute []Tolerance
	Safety             float64 // SF of meyer 5.3
	RatioMin, RatioMax float64 // bounds of the ratio of a step size to the previous one
	// GainI and GainP are kI and kP of the PI controller, sadjina (15); nil = the values of
	// (15) for the order.
	GainI, GainP *float64
	// Bounds of the step size and first step size in s; 0 = default. With an estimate, the
	// default is a first step of a thousandth of the step size of the run and no upper bound.
	// With an indicator, the bounds are a tenth and ten times the step size of the run, and
	// the first step is the smallest.
	HMin, HMax, H0 float64
	MaxOrder       int
	FixedOrder     bool        // the order is Config.Order
	FixedStep      bool        // all steps have the size of the run; the estimate is only reported
	Monitor        []Monitored // nil = chosen from the outputs

	PCTolerance, PCRho []Tolerance // TOL and ρ of the predictor/corrector, sadjina (17)
	// EnergyScale is E0 of ECCO in J (0 = found during the run) and EnergyTolerance is r,
	// sadjina (14), for bonds without values of their own.
	EnergyScale, EnergyTolerance float64
}

// varies reports whether the control chooses the order.
func (c *Control) varies() bool { return c.Estimator.kind().estimate != nil && !c.FixedOrder }

// degreesAbove returns the degree of the second solution of the estimate minus the order.
func (c *Control) degreesAbove() int {
	if e := c.Estimator.kind().estimate; e != nil {
		return e.above
	}
	return 0
}

// highestOrder returns the highest order that the control may choose.
func (c *Control) highestOrder() int { return min(c.MaxOrder, MaxOrder-c.degreesAbove()) }

// control is the part that chooses order and size of the macro steps.
type control interface {
	part
	// repeats reports whether macro steps are repeated or taken twice.
	repeats() bool
	// firstStep returns the first step size in s, from the step size H of the run; 0 = H.
	firstStep(H float64) float64
	// attempt takes one macro step and judges it (master.Algorithm).
	attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error
	// monitored returns the variables that are judged.
	monitored() []string
	// disturb returns the size of the next step after a jump; 0 = any.
	disturb() float64
}

// newControl returns the control of a configuration; nil = order and step size are constant.
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
		return nil, fmt.Errorf("the estimator %s compares predictor and corrector: it needs "+
			"scheme=implicit", kind.name)
	case !e.implicit && c.Scheme == Implicit:
		return nil, fmt.Errorf("the estimator %s needs an explicit scheme; with scheme=implicit choose im-milne or im-slocal", kind.name)
	case e.jacobi && c.Scheme != Jacobi:
		return nil, fmt.Errorf("the estimator %s needs scheme=jacobi: its constants assume that all inputs are "+
			"extrapolated", kind.name)
	}
	if k.MaxOrder < 0 || k.MaxOrder > MaxOrder {
		return nil, fmt.Errorf("the highest order is %d; it must be between 0 and %d", k.MaxOrder, MaxOrder)
	}
	if k.HMax > 0 && k.HMin > k.HMax || k.HMax > 0 && k.H0 > k.HMax || k.H0 > 0 && k.H0 < k.HMin {
		return nil, fmt.Errorf("the step sizes control.h-min=%g, control.h0=%g and control.h-max=%g (0 = auto) "+
			"contradict each other: they must ascend in this order", k.HMin, k.H0, k.HMax)
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
