package algorithms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Scheme selects how a macro step exchanges the coupling inputs.
type Scheme uint8

// The schemes.
const (
	Jacobi      Scheme = iota // explicit: all subsystems step from the old values
	GaussSeidel               // explicit: one subsystem after the other, with the new values of earlier ones
	Implicit                  // inputs on loops match the outputs at the end of the step
)

// MaxOrder is the highest extrapolation order. Error estimates use one degree more than the
// current order.
const MaxOrder = num.MaxNodes - 2

// Delivery selects how the polynomial of an input reaches its subsystem.
type Delivery = input.Delivery

// The deliveries. A subsystem that does not support the chosen one gets the next one
// in the order derivatives, substeps, held.
const (
	Auto        = input.Auto
	Derivatives = input.Derivatives // input derivatives at the start of the macro step
	Substeps    = input.Substeps    // the polynomial sampled in substeps
	Held        = input.Held        // the last value, as at order 0
)

// Config configures a coupling algorithm. The zero value is explicit coupling (Jacobi) of
// order 0 with a fixed step size.
type Config struct {
	Scheme   Scheme
	Order    int      // extrapolation order k = 0…MaxOrder; ignored with variable order
	Substeps int      // substeps per macro step for the delivery Substeps; 0 = 10
	Delivery Delivery // preferred
	Sequence []string // Gauss–Seidel: names of all subsystems in order; nil = from the graph
	Solver   Solver   // Implicit: solver of the interface equation
	Control  Control  // error estimate, order and step size
	Rates    []Rate   // subsystems with a step of their own; explicit schemes only
	Bonds    []Bond   // power bonds whose energy is monitored
	Watched  []Bond   // if there are none: power bonds whose residual energy is only judged
	Correct  Correction
	Energy   Energy // for EnergyCorrection
	Model    Model  // for ModelCorrection and FeedthroughCorrection
	// Spike is the threshold of the warning about jumps of the residual power, relative to
	// the median of its earlier peaks; 0 = no warning.
	Spike float64
}

// Rate is the step of a subsystem in a multi-rate run: Steps steps per macro step, or one
// step over Over macro steps. One of the two is 1.
//
// A fast subsystem gets the polynomials of its inputs at the start of each of its steps. A
// slow subsystem is stepped with the last of its macro steps; its inputs are extrapolated
// through the points at which its own steps end. Between its steps its outputs are held, or
// extrapolated through their values at these points.
type Rate struct {
	Component   string
	Steps, Over int
}

// String returns COMPONENT=N or COMPONENT=1/N.
func (r Rate) String() string {
	if r.Over > 1 {
		return fmt.Sprintf("%s=1/%d", r.Component, r.Over)
	}
	return fmt.Sprintf("%s=%d", r.Component, r.Steps)
}

// ParseRate reads COMPONENT=N or COMPONENT=1/N.
func ParseRate(text string) (Rate, error) {
	at := strings.LastIndexByte(text, '=')
	number, slow := strings.CutPrefix(text[at+1:], "1/")
	n, err := strconv.Atoi(number)
	switch {
	case at < 1 || err != nil || n < 1:
		return Rate{}, fmt.Errorf("%q is not COMPONENT=N or COMPONENT=1/N with a whole N", text)
	case slow:
		return Rate{Component: text[:at], Steps: 1, Over: n}, nil
	}
	return Rate{Component: text[:at], Steps: n, Over: 1}, nil
}

// Correction selects a correction of coupling variables.
type Correction uint8

// The corrections.
const (
	NoCorrection          Correction = iota
	EnergyCorrection                 // corrects the actions at power bonds (rodriguez)
	ModelCorrection                  // corrects outputs and states by linear models (haid)
	FeedthroughCorrection            // corrects outputs for direct feedthrough (parallel linear correction)
)

const defaultSubsteps = 10

// part is a part of a coupling algorithm that keeps data between steps.
type part interface {
	// check returns an error if the part cannot run on the system.
	check(s *master.System) error
	init(x *master.Exec, t0 float64) error
	// accept concludes the step that ends at t, before its values enter the history. reject
	// discards an attempt.
	accept(x *master.Exec, t float64)
	reject(t, H float64)
	archive(a *master.Archive)
	// review returns warnings at the end of the run.
	review() []string
}

// scheme is the part that takes macro steps.
type scheme interface {
	part
	// advance steps all subsystems from t to t+H with input polynomials of a degree.
	advance(ctx context.Context, x *master.Exec, t, H float64, degree int) (effort, error)
}

// effort counts the work of a macro step beyond one step of each subsystem.
type effort struct{ iterations, jacobians int }

// errNotConverged means that the interface equation of a macro step was not solved.
var errNotConverged = errors.New("the corrector did not converge")

// Coupling is a coupling algorithm made of parts: a scheme, an input approximation and,
// optionally, corrections, an energy monitor and a control of order and step size.
type Coupling struct {
	config  Config
	in      *input.Approximation
	tol     tolerances
	scheme  scheme
	control control           // of order and step size; nil = both are constant
	energy  *energyMonitor    // nil = no bonds
	correct *energyCorrection // nil = none
	model   *modelCorrector   // nil = none
	parts   []part            // all of these, in the order of init and accept

	// settling is the number of macro steps until the effect of a jump has passed through
	// all direct dependencies.
	settling int
	couplingState
}

// couplingState is the state of a Coupling between two steps, apart from those of its parts.
type couplingState struct {
	order int // current order
	jump  int // number of macro steps until the last jump has settled
}

var (
	_ master.Algorithm = (*Coupling)(nil)
	_ master.Planner   = (*Coupling)(nil)
	_ master.Reporter  = (*Coupling)(nil)
	_ master.Disturbed = (*Coupling)(nil)
	_ master.Measuring = (*Coupling)(nil)
	_ master.Waiver    = (*Coupling)(nil)
	_ master.Archiver  = (*Coupling)(nil)
)

// NewCoupling returns a coupling algorithm. Values out of range and incompatible parts are
// errors.
func NewCoupling(c Config) (*Coupling, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Substeps == 0 {
		c.Substeps = defaultSubsteps
	}
	a := &Coupling{config: c}
	a.in = input.New(input.Config{
		Order: c.highestDegree(), Substeps: c.Substeps, Delivery: c.Delivery,
		LooksAhead: c.Scheme != Jacobi || c.Control.Estimator != NoEstimate || c.Correct == ModelCorrection,
		Biased:     c.Correct != NoCorrection,
	})
	a.tol = tolerances{rtol: c.Control.Relative, atol: c.Control.Absolute}
	if c.Scheme == Implicit {
		s, err := newImplicit(c.Solver, &a.tol, a.in)
		if err != nil {
			return nil, err
		}
		e := c.Control.Estimator.kind().estimate
		s.predictAll = e != nil && e.predicts
		a.scheme = s
	} else {
		a.scheme = &explicit{in: a.in, gaussSeidel: c.Scheme == GaussSeidel, names: c.Sequence}
	}
	if len(c.Bonds) > 0 || c.Control.Estimator.kind().bonds || c.Correct == EnergyCorrection {
		a.energy = &energyMonitor{declared: c.Bonds, in: a.in, threshold: c.Spike}
	} else if len(c.Watched) > 0 && c.Scheme != Implicit {
		a.energy = &energyMonitor{declared: c.Watched, in: a.in, watches: true}
	}
	if c.Correct == EnergyCorrection {
		a.correct = &energyCorrection{config: c.Energy, energy: a.energy, in: a.in, inTurn: c.Scheme == GaussSeidel}
	}
	if c.corrects() {
		a.model = &modelCorrector{config: c.Model, scheme: c.Scheme, direct: c.Correct == FeedthroughCorrection, in: a.in}
	}
	var err error
	if a.control, err = newControl(c, a); err != nil {
		return nil, err
	}
	a.parts = append(a.parts, a.scheme)
	if a.energy != nil {
		a.parts = append(a.parts, a.energy)
	}
	if a.correct != nil {
		a.parts = append(a.parts, a.correct)
	}
	if a.model != nil {
		a.parts = append(a.parts, a.model)
	}
	if a.control != nil {
		a.parts = append(a.parts, a.control)
	}
	return a, nil
}

// check refuses values out of range and incompatible parts.
func (c *Config) check() error {
	switch {
	case c.Order < 0 || c.Order > MaxOrder:
		return fmt.Errorf("the extrapolation order is %d; it must be between 0 and %d", c.Order, MaxOrder)
	case c.Substeps < 0:
		return fmt.Errorf("the number of substeps is %d; it must be at least 1", c.Substeps)
	case c.Scheme == Implicit && len(c.Rates) > 0:
		return errors.New("rates need an explicit scheme: an implicit one iterates over one macro step of all subsystems")
	case c.Scheme == Implicit && c.Correct == EnergyCorrection:
		return errors.New("the energy correction needs an explicit scheme: it corrects errors of extrapolated inputs")
	case c.Scheme == Implicit && c.corrects():
		return errors.New("the model-based corrector needs an explicit scheme: it corrects errors of extrapolated inputs")
	case c.corrects() && c.Control.Estimator.kind().estimate != nil:
		return errors.New("the model-based corrector needs a step control that repeats no step: fixed, ecco or " +
			"predictor-corrector")
	}
	return nil
}

// corrects reports whether models correct the outputs.
func (c *Config) corrects() bool {
	return c.Correct == ModelCorrection || c.Correct == FeedthroughCorrection
}

// highestDegree returns the highest degree of the polynomials that are delivered.
func (c *Config) highestDegree() int {
	k := c.Order
	if c.Control.varies() {
		k = c.Control.highestOrder()
	}
	return k + c.Control.degreesAbove()
}

// Check returns an error if the algorithm cannot run on this system.
func (c *Coupling) Check(s *master.System) error {
	if err := c.tol.init(s); err != nil {
		return err
	}
	if err := c.takeRates(s); err != nil {
		return err
	}
	for _, p := range c.parts {
		if err := p.check(s); err != nil {
			return err
		}
	}
	return nil
}

// largestRate bounds Steps and Over of a rate.
const largestRate = 1_000_000

// takeRates checks the rates and passes them to the input approximation.
func (c *Coupling) takeRates(s *master.System) error {
	rates := slices.Repeat([]input.Rate{{Steps: 1, Over: 1}}, len(s.Subsystems))
	all := componentNames(s)
	for _, r := range c.config.Rates {
		i := slices.Index(all, r.Component)
		switch {
		case i < 0:
			return fmt.Errorf("a rate names %q, which is not a component of the system%s",
				r.Component, diag.DidYouMeanOr(r.Component, all, "; the components are "))
		case r.Steps < 1 || r.Over < 1 || r.Steps > 1 && r.Over > 1:
			return fmt.Errorf("the rate of %s is %d/%d; it must be a whole number of steps per macro step, or one step "+
				"per whole number of macro steps", r.Component, r.Steps, r.Over)
		case max(r.Steps, r.Over) > largestRate:
			return fmt.Errorf("the rate of %s is %d/%d; it must lie between 1/%[4]d and %[4]d", r.Component, r.Steps, r.Over, int(largestRate))
		case rates[i] != input.Rate{Steps: 1, Over: 1}:
			return fmt.Errorf("%s has two rates", r.Component)
		case slices.Contains(s.Late, i):
			return fmt.Errorf("%s is stateless and stepped after its sources; it cannot have a rate of its own", r.Component)
		case r.Over > 1 && c.control != nil && c.control.repeats():
			return fmt.Errorf("%s takes one step over %d macro steps and cannot repeat it: choose a step control "+
				"without rollback", r.Component, r.Over)
		}
		rates[i] = input.Rate{Steps: r.Steps, Over: r.Over}
	}
	c.in.SetRates(rates)
	return nil
}

func componentNames(s *master.System) (all []string) {
	for _, info := range s.Infos {
		all = append(all, info.Name)
	}
	return all
}

// Plan returns what the parts need.
func (c *Coupling) Plan(s *master.System, H float64) master.Plan {
	p := master.Plan{Rollback: c.needsRollback(s), Derivatives: c.needsDerivatives(s), Quantities: c.quantities(), Unbounded: c.unbounded(s)}
	if want := c.config.Delivery; want == Auto || want == Derivatives {
		p.InputDerivatives = c.in.Order()
	}
	if c.control != nil {
		p.FirstStep = c.control.firstStep(H)
	}
	e, ok := c.scheme.(*explicit)
	p.Sequential = ok && e.gaussSeidel
	return p
}

// needsRollback returns the subsystems that must roll back: all if steps are repeated or
// taken twice, else those that an implicit scheme repeats.
func (c *Coupling) needsRollback(s *master.System) []int {
	if c.control != nil && c.control.repeats() {
		all := make([]int, len(s.Subsystems))
		for i := range all {
			all[i] = i
		}
		return all
	}
	if i, ok := c.scheme.(*implicit); ok {
		return i.needsRollback(s)
	}
	return nil
}

// needsDerivatives returns the subsystems whose directional derivatives are used.
func (c *Coupling) needsDerivatives(s *master.System) []int {
	if i, ok := c.scheme.(*implicit); ok {
		return i.needsDerivatives(s)
	}
	if c.model != nil {
		return c.model.with(DirectionalJacobian)
	}
	return nil
}

// DoesWithout reports whether the run continues although the model of subsystem i cannot be
// used, because of why.
func (c *Coupling) DoesWithout(i int, why error) bool {
	return c.model != nil && c.model.doWithout(i, why)
}

// unbounded returns why the work of a macro step has no bound.
func (c *Coupling) unbounded(s *master.System) string {
	switch i, implicit := c.scheme.(*implicit); {
	case c.control != nil && c.control.repeats():
		return "the algorithm repeats steps and chooses their size"
	case c.control != nil && c.control.firstStep(1) != 0:
		return "the algorithm chooses the size of the steps"
	case implicit && len(i.needsRollback(s)) > 0:
		return "the algorithm iterates"
	}
	return ""
}

// Disturb drops the history after a jump, for as many macro steps as the jump takes to pass
// through the direct dependencies. Until then no step is judged. next is the size of the next
// step in s; 0 = any.
func (c *Coupling) Disturb() (next float64) {
	c.jump = c.settling
	if c.model != nil {
		c.model.disturb()
	}
	if c.control != nil {
		next = c.control.disturb()
	}
	return next
}

// settle concludes a macro step after a jump.
func (c *Coupling) settle() {
	if c.jump == 0 {
		return
	}
	c.jump--
	c.in.Forget()
	if c.control != nil && !c.config.Control.FixedOrder {
		c.order = 0
	}
}

// settlingSteps returns a bound for the number of macro steps until a jump of an input has
// passed through all direct dependencies: one for each subsystem that has any, plus one.
func settlingSteps(s *master.System) int {
	const most = 8
	n := 1
	for _, i := range s.Stepped {
		on := s.Infos[i].Step.On
		if slices.ContainsFunc(on, func(ins []int) bool { return len(ins) > 0 }) {
			n++
		}
	}
	return min(n, most)
}

// Init prepares the parts.
func (c *Coupling) Init(x *master.Exec, t0 float64) error {
	if err := c.in.Init(x, t0); err != nil {
		return err
	}
	c.tol.learn(x.W, x.Y)
	c.order = c.config.Order
	c.settling, c.jump = settlingSteps(x.Sys), 0
	for _, p := range c.parts {
		if err := p.init(x, t0); err != nil {
			return err
		}
	}
	if c.energy != nil && c.model != nil {
		c.energy.offset = c.model.offset
	}
	return nil
}

// Attempt takes one macro step and, if errors are estimated, judges it.
func (c *Coupling) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) (err error) {
	if c.energy != nil {
		c.energy.begin()
	}
	if c.correct != nil {
		c.correct.apply(x, H)
	}
	if c.model != nil {
		c.model.apply(t, H)
	}
	if c.control != nil {
		err = c.control.attempt(ctx, x, t, H, trial)
	} else {
		var e effort
		e, err = c.advance(ctx, x, t, H, c.order)
		trial.Iters, trial.Jacobians = e.iterations, e.jacobians
		if err != nil && errors.Is(err, errNotConverged) {
			trial.Verdict, trial.Next, trial.Why, err = master.Retry, H/4, err.Error(), nil
		}
	}
	trial.Order = c.degree()
	return err
}

// advance takes one macro step by the scheme, corrects it by models and measures its energy.
func (c *Coupling) advance(ctx context.Context, x *master.Exec, t, H float64, degree int) (effort, error) {
	if c.model != nil {
		if err := c.model.before(); err != nil {
			return effort{}, err
		}
	}
	e, err := c.scheme.advance(ctx, x, t, H, degree)
	if err == nil && c.model != nil {
		e.jacobians, err = c.model.correct(x)
	}
	if err == nil && c.energy != nil {
		c.energy.measure(x, t, H)
	}
	return e, err
}

// degree returns the degree of the polynomials of the last step.
func (c *Coupling) degree() int {
	if c.config.Scheme == Implicit {
		return c.in.DegreeAhead()
	}
	return c.in.Degree()
}

// Accept adds the coupling inputs at t to the history.
func (c *Coupling) Accept(x *master.Exec, t float64) {
	for _, p := range c.parts {
		p.accept(x, t)
	}
	c.in.Push(t, x.W)
	if c.control != nil || c.config.Scheme == Implicit {
		c.tol.learn(x.W, x.Y)
	}
	c.settle()
}

// Reject discards the attempt. The history holds accepted points only.
func (c *Coupling) Reject(t, H float64) {
	for _, p := range c.parts {
		p.reject(t, H)
	}
}

// Archive saves or restores the history and the state of the parts.
func (c *Coupling) Archive(a *master.Archive) {
	a.All(&c.couplingState)
	c.in.Archive(a)
	c.tol.archive(a)
	for _, p := range c.parts {
		p.archive(a)
	}
}

// Report reports the parts.
func (c *Coupling) Report() master.Report {
	r := master.Report{Loops: "broken by the extrapolated inputs", Delivery: c.in.Report()}
	if s, ok := c.scheme.(*implicit); ok {
		r.Loops = s.loopTreatment()
	}
	for _, p := range c.parts {
		r.Warnings = append(r.Warnings, p.review()...)
	}
	if c.control != nil {
		r.Monitored = c.control.monitored()
	}
	if c.model != nil {
		r.Models = c.model.report()
	}
	if c.energy != nil {
		r.Bonds, r.Notes = c.energy.report(), c.energy.notes()
		if c.correct != nil {
			c.correct.report(r.Bonds)
		}
	}
	return r
}

// quantities lists the quantities measured at the bonds and, if they are recorded, the
// outputs before their correction.
func (c *Coupling) quantities() []master.Port {
	var out []master.Port
	if c.energy != nil {
		out = c.energy.quantities()
	}
	if c.model != nil && c.config.Model.Raw {
		out = append(out, c.model.quantities()...)
	}
	return out
}

// Measured writes the values of Plan.Quantities to dst.
func (c *Coupling) Measured(dst []float64) {
	if c.energy != nil && !c.energy.watches {
		n := len(c.energy.declared) * len(bondQuantities)
		c.energy.measured(dst[:n])
		dst = dst[n:]
	}
	if len(dst) > 0 {
		c.model.measured(dst)
	}
}
