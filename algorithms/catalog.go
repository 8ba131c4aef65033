package algorithms

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Param is one parameter of a preset.
type Param struct {
	Name    string
	Default string
	Range   string // the values allowed, for people
	Doc     string
	set     func(*settings, string) error // presets of this package only
}

// Preset is a named coupling algorithm with its parameters. The presets of this package
// combine parts; other packages add their own to a Catalog.
type Preset struct {
	Name   string
	Doc    string
	Source string // papers and equations
	Params []Param
	Energy bool // monitors the energy at power bonds
	// New returns the algorithm for values, which has exactly the parameters of Params. The
	// caller sets Preset and Values of the choice.
	New   func(values map[string]string, with With) (*Choice, error)
	parts Config // presets of this package: the configuration before the parameters are applied
}

// Catalog is the table of presets that a program offers. A nil Catalog stands for Presets().
type Catalog []Preset

// All returns the presets in the order of the table.
func (c Catalog) All() []Preset {
	if c == nil {
		return Presets()
	}
	return c
}

// presetWords are what others call the presets.
var presetWords = diag.Words{
	"jacobi": "explicit", "parallel": "explicit", "fixedstep": "explicit", "foh": "explicit", "zoh": "explicit",
	"seidel": "gauss-seidel", "gs": "gauss-seidel", "serial": "gauss-seidel", "sequential": "gauss-seidel",
	"newton": "implicit", "iterative": "implicit", "ijcsa": "implicit", "strong": "implicit", "strongcoupling": "implicit",
	"adaptive": "ex-slocal", "variablestep": "ex-slocal", "slocal": "ex-slocal", "milne": "ex-milne", "doubling": "richardson",
	"nepce": "energy-correction", "corrector": "model-based-corrector",
}

// Find returns the preset with a name. Its error lists the presets.
func (c Catalog) Find(name string) (*Preset, error) {
	all := c.All()
	if at := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name }); at >= 0 {
		return &all[at], nil
	}
	list := names(all, func(p Preset) string { return p.Name })
	return nil, fmt.Errorf("no algorithm is called %q%s", name, diag.DidYouMeanOr(name, list, "; choose one of ", presetWords))
}

// Add returns a catalog with more presets. A preset without name or New, or with a name that
// already exists, is an error.
func (c Catalog) Add(more ...Preset) (Catalog, error) {
	out := slices.Clone(c.All())
	for _, p := range more {
		if p.Name == "" || p.New == nil {
			return nil, fmt.Errorf("preset %q: a preset needs a name and New", p.Name)
		}
		if _, err := Catalog(out).Find(p.Name); err == nil {
			return nil, fmt.Errorf("two presets are called %q", p.Name)
		}
		out = append(out, p)
	}
	return out, nil
}

// settings is a configuration while parameters are applied to it.
type settings struct {
	Config
	substepsGiven bool
	deliveryGiven bool
	relaxed       bool // solver.relaxation is given
	discard       master.DiscardPolicy
}

// Choice is an algorithm with its parameters.
type Choice struct {
	Preset    string
	Algorithm master.Algorithm
	Values    map[string]string // all parameters, including defaults
	Discard   master.DiscardPolicy
	Notes     []string // parameters that were given but have no effect
	// Monitor lists variables whose error is estimated. They need not be outputs.
	Monitor []Monitored
}

// DefaultPreset is the preset of a run without an algorithm of its own.
const DefaultPreset = "explicit"

// auto is the default of parameters that depend on others.
const auto = "auto"

// none is the default of limits that are off.
const none = "none"

// The parameters, each described once.
var (
	orderParam = Param{
		Name: "order", Default: "0", Range: "0 … 5",
		Doc: "extrapolation order k of the coupling inputs: a polynomial through the values at the last k+1 " +
			"communication points",
		set: setOrder,
	}
	implicitOrderParam = Param{
		Name: "order", Default: "1", Range: "0 … 5",
		Doc: "order k of the coupling inputs: a polynomial through the value at the end of the macro step and the " +
			"values at the last k communication points",
		set: setOrder,
	}
	adaptiveOrderParam = Param{
		Name: "order", Default: auto, Range: "auto, 0 … 5",
		Doc: "order k of the coupling inputs: auto starts at 0 and lets the error control choose; a number fixes the order",
		set: orAuto(func(s *settings, v string) error {
			s.Control.FixedOrder = true
			return setOrder(s, v)
		}),
	}
	substepsParam = Param{
		Name: "substeps", Default: auto, Range: "auto, 1, 2, …",
		Doc: "number n of substeps per macro step; each gets the polynomial's value at its midpoint, so that the error is of " +
			"order min(k+1, 2) in H. With direct feedthrough the last one gets the value at its end, and n is at least 2. " +
			"A number selects this delivery; auto is 10, for FMUs that cannot interpolate their inputs",
		set: orAuto(func(s *settings, v string) (err error) {
			s.substepsGiven = true
			s.Substeps, err = wholeNumber(v, 1, 1_000_000)
			return err
		}),
	}
	deliveryParam = choiceParam("delivery", auto, []string{auto, "derivatives", "substeps", "held"},
		"how FMUs receive the polynomials: as input derivatives, in substeps, or held at the last value (order 0). "+
			"An FMU that does not support the chosen delivery gets the next one; the manifest lists the delivery "+
			"of each input",
		func(s *settings, i int) { s.Delivery, s.deliveryGiven = Delivery(i), i > 0 })
	sequenceParam = Param{
		Name: "sequence", Default: "graph", Range: "graph, or all components separated by commas",
		Doc: "order in which Gauss–Seidel steps the components; graph puts each after its sources as far as loops allow",
		set: func(s *settings, v string) error {
			if v != "graph" {
				for name := range strings.SplitSeq(v, ",") {
					s.Sequence = append(s.Sequence, strings.TrimSpace(name))
				}
			}
			return nil
		},
	}
	discardParam = choiceParam("discard", "stop", []string{"stop", "shorten"},
		"what to do when an FMU discards a step: stop ends the run; shorten rolls back and takes the step in pieces "+
			"(all FMUs must support rollback; states are saved at every step)",
		func(s *settings, i int) {
			s.discard = []master.DiscardPolicy{master.StopOnDiscard, master.ShortenOnDiscard}[i]
		})
	solverKindParam = choiceParam("solver.kind", "newton-fd", solverKinds,
		"solver for the inputs on loops: newton-fd computes the interface Jacobian from repeated steps; newton-los "+
			"from directional "+
			"derivatives, without extra steps, and refines it by updates; broyden computes one Jacobian and "+
			"updates it; iqn (quasi-Newton by least squares) and fixed-point need none",
		func(s *settings, i int) { s.Solver.Kind = SolverKind(i) })
	solverToleranceParam = Param{
		Name: "solver.tolerance", Default: "1e-6", Range: "greater than 0",
		Doc: "the iteration stops when the weighted norm of the next correction is below this value; the weights " +
			"are control.atol + control.rtol·|value|",
		set: positive(func(s *settings) *float64 { return &s.Solver.Tolerance }),
	}
	solverIterationsParam = Param{
		Name: "solver.max-iterations", Default: auto, Range: "auto, 1, 2, …",
		Doc: "corrector iterations after which the macro step is repeated with a quarter of its size; auto is 12 " +
			"with Newton, else 50",
		set: orAuto(func(s *settings, v string) (err error) {
			s.Solver.MaxIterations, err = wholeNumber(v, 1, 1_000_000)
			return err
		}),
	}
	solverRelaxationParam = Param{
		Name: "solver.relaxation", Default: auto, Range: "auto, above 0 to 2",
		Doc: "relaxation factor of fixed-point (auto: Aitken's factor, computed in each iteration) and of the " +
			"first step of iqn (auto: 0.5)",
		set: orAuto(func(s *settings, v string) error {
			s.relaxed = true
			return between(func(s *settings) *float64 { return &s.Solver.Relaxation }, 0, 2)(s, v)
		}),
	}
	solverSweepParam = choiceParam("solver.sweep", "jacobi", []string{"jacobi", "gauss-seidel"},
		"fixed-point only: jacobi steps all components with the inputs of the last iteration, gauss-seidel one "+
			"after the other with the newest inputs",
		func(s *settings, i int) { s.Solver.GaussSeidel = i == 1 })
	withoutRollbackParam = choiceParam("solver.without-rollback", "refuse", []string{"refuse", "predict"},
		"what to do with components on loops that cannot roll back: refuse the run, or predict: they take the "+
			"predicted inputs and are left out of the iteration",
		func(s *settings, i int) { s.Solver.Predict = i == 1 })
	relativeParam = Param{
		Name: "control.rtol", Default: "1e-4", Range: "greater than 0; or component.variable:1e-5,… with or " +
			"without a general one",
		Doc: "relative tolerance of error estimates and correctors, for all variables or for the named ones (name " +
			"a coupling input or its source)",
		set: toleranceList(func(s *settings) *[]Tolerance { return &s.Control.Relative }),
	}
	absoluteParam = Param{
		Name: "control.atol", Default: auto, Range: "auto; greater than 0; or component.variable:1e-8,… with or " +
			"without a general one",
		Doc: "absolute tolerance in the unit of the variable; auto is 0.01·rtol times the nominal value of the " +
			"variable or, if it has none, its largest magnitude so far, at least 1",
		set: orAuto(toleranceList(func(s *settings) *[]Tolerance { return &s.Control.Absolute })),
	}
	safetyParam = Param{
		Name: "control.safety", Default: "4", Range: "at least 1",
		Doc: "safety factor on the estimated error when the next step size is chosen (meyer uses 2 to 6)",
		set: between(func(s *settings) *float64 { return &s.Control.Safety }, 1, 1e6),
	}
	maxOrderParam = Param{
		Name: "control.max-order", Default: "5", Range: "0 … 5",
		Doc: "highest order that the control may choose; for ex-local at most 4, as its second solution is one order higher",
		set: func(s *settings, v string) (err error) {
			s.Control.MaxOrder, err = wholeNumber(v, 0, MaxOrder)
			return err
		},
	}
	stepParam = choiceParam("control.step", "variable", []string{"variable", "fixed"},
		"variable: the control chooses the step size; fixed: all steps have the size of the run, and the error "+
			"estimate is only reported",
		func(s *settings, i int) { s.Control.FixedStep = i == 1 })
	firstStepParam = Param{
		Name: "control.h0", Default: auto, Range: "auto, seconds",
		Doc: "first step size; auto is a thousandth of the step size of the run",
		set: orAuto(positive(func(s *settings) *float64 { return &s.Control.H0 })),
	}
	leastStepParam = Param{
		Name: "control.h-min", Default: "1e-13", Range: "seconds",
		// meyer uses 1e-12, which the impacts in his first example nearly reach.
		Doc: "smallest step size; below it the run fails",
		set: positive(func(s *settings) *float64 { return &s.Control.HMin }),
	}
	largestStepParam = Param{
		Name: "control.h-max", Default: auto, Range: "auto, seconds",
		Doc: "largest step size; auto is unlimited",
		set: orAuto(positive(func(s *settings) *float64 { return &s.Control.HMax })),
	}
	ratioMinParam = Param{
		Name: "control.ratio-min", Default: "0.5", Range: "above 0 to 1",
		Doc: "smallest ratio of a step size to the previous one, unless a step fails",
		set: between(func(s *settings) *float64 { return &s.Control.RatioMin }, 0, 1),
	}
	ratioMaxParam = Param{
		Name: "control.ratio-max", Default: "2", Range: "at least 1",
		Doc: "largest ratio of a step size to the previous one",
		set: between(func(s *settings) *float64 { return &s.Control.RatioMax }, 1, 1e6),
	}
	piSafetyParam = Param{
		Name: "control.safety", Default: "0.8", Range: "above 0 to 1",
		Doc: "safety factor α of the PI controller for the next step size",
		set: between(func(s *settings) *float64 { return &s.Control.Safety }, 0, 1),
	}
	piFirstStepParam = Param{
		Name: "control.h0", Default: auto, Range: "auto, seconds",
		Doc: "first step size; auto is control.h-min",
		set: firstStepParam.set,
	}
	piLeastStepParam = Param{
		Name: "control.h-min", Default: auto, Range: "auto, seconds",
		Doc: "smallest step size; auto is a tenth of the step size of the run",
		set: orAuto(leastStepParam.set),
	}
	piLargestStepParam = Param{
		Name: "control.h-max", Default: auto, Range: "auto, seconds",
		Doc: "largest step size; auto is ten times the step size of the run",
		set: largestStepParam.set,
	}
	piRatioMinParam = Param{
		Name: "control.ratio-min", Default: "0.2", Range: "above 0 to 1",
		Doc: "smallest ratio of a step size to the previous one",
		set: ratioMinParam.set,
	}
	piRatioMaxParam = Param{
		Name: "control.ratio-max", Default: "1.5", Range: "at least 1",
		Doc: "largest ratio of a step size to the previous one",
		set: ratioMaxParam.set,
	}
	piIntegralParam = Param{
		Name: "control.i-gain", Default: auto, Range: "auto, 0 … 1",
		Doc: "integral gain kI of the PI controller; auto is 0.3/(order+1), with ECCO 0.3/(order+2)",
		set: orAuto(gain(func(s *settings) **float64 { return &s.Control.GainI })),
	}
	piProportionalParam = Param{
		Name: "control.p-gain", Default: auto, Range: "auto, 0 … 1",
		Doc: "proportional gain kP of the PI controller; auto is 0.4/(order+1), with ECCO 0.4/(order+2)",
		set: orAuto(gain(func(s *settings) **float64 { return &s.Control.GainP })),
	}
	pcToleranceParam = Param{
		Name: "pc.tolerance", Default: "1e-3", Range: "greater than 0; or component.variable:1e-2,… with a general one",
		Doc: "TOL of the predictor/corrector indicator |y − ỹ| / (TOL (1 + ρ max(|y|, |ỹ|))), in the unit of the output",
		set: withGeneral(func(s *settings) *[]Tolerance { return &s.Control.PCTolerance }),
	}
	pcRhoParam = Param{
		Name: "pc.rho", Default: "1e-4", Range: "greater than 0; or component.variable:1e-2,… with a general one",
		Doc: "ρ of the predictor/corrector indicator: weight of relative against absolute errors",
		set: withGeneral(func(s *settings) *[]Tolerance { return &s.Control.PCRho }),
	}
	eccoToleranceParam = Param{
		Name: "ecco.tolerance", Default: "1e-5", Range: "greater than 0",
		Doc: "relative tolerance r of ECCO's indicator √(mean (δE / (r (E0 + |E|)))²), for bonds without their own",
		set: positive(func(s *settings) *float64 { return &s.Control.EnergyTolerance }),
	}
	eccoScaleParam = Param{
		Name: "ecco.energy-scale", Default: auto, Range: "auto, joules",
		Doc: "energy scale E0 of ECCO's indicator, for bonds without their own; auto is the difference between the " +
			"highest and the lowest energy that the bond has carried since the start",
		set: orAuto(positive(func(s *settings) *float64 { return &s.Control.EnergyScale })),
	}
	energyMuParam = Param{
		Name: "energy.mu", Default: auto, Range: "auto, 0 … 2",
		Doc: "share μ of the residual energy that is treated as spurious; auto computes it from direct feedthrough " +
			"and rates (rodriguez 3.3)",
		set: func(s *settings, v string) (err error) {
			s.Energy.Mu = math.NaN()
			if v != auto {
				s.Energy.Mu, err = numberFrom(v, 0, 2, "auto or ")
			}
			return err
		},
	}
	energyNuParam = Param{
		Name: "energy.nu", Default: "0", Range: "0 … 1",
		Doc: "weight ν of the energy that earlier corrections did not remove",
		set: func(s *settings, v string) (err error) {
			s.Energy.Nu, err = numberFrom(v, 0, 1, "")
			return err
		},
	}
	energyLimitParam = Param{
		Name: "energy.limit", Default: "1", Range: "above 0",
		Doc: "largest magnitude of the correction, as a fraction of that of the corrected action; the actions of bonds with the " +
			"same flow are added first",
		set: positive(func(s *settings) *float64 { return &s.Energy.Limit }),
	}
	energyAbsoluteParam = Param{
		Name: "energy.limit-absolute", Default: none, Range: "none; greater than 0; or component.variable:100,… " +
			"with or without a general one",
		Doc: "largest magnitude of the correction in the unit of the action, for all bonds or for the named actions (the efforts " +
			"of bonds; the smallest of a vector counts); the smaller of this and energy.limit applies. " +
			"Set it where the action carries a static load, such as a weight",
		set: func(s *settings, v string) error {
			if v == none {
				return nil
			}
			return toleranceList(func(s *settings) *[]Tolerance { return &s.Energy.LimitAbsolute })(s, v)
		},
	}
	modelJacobianParam = withoutRollback(choiceParam("model.jacobian", auto, jacobianSources,
		"source of the model of each component: its directional derivatives, or identification from inputs and outputs "+
			"during the run. auto takes the first that the component supports; the manifest lists which. "+
			"A step that an identified model misses by more than it would correct stays uncorrected",
		func(s *settings, i int) { s.Model.Jacobian = JacobianSource(i) }))
	modelPointParam = choiceParam("model.point", auto, modelPoints,
		"where in a macro step directional derivatives are taken: at its start, with the inputs at the end of the previous "+
			"step; at its start with the inputs of the new step (start-new); or at its end. auto is start at order 0 and end at "+
			"order 1, which have the smallest errors, and start-new from order 2 on, which keeps strongly nonlinear components "+
			"stable for longest. It makes no difference for linear components and does not apply to identified models",
		func(s *settings, i int) { s.Model.Point = ModelPoint(i) })
	modelIdentificationParam = choiceParam("model.identification", "least-squares", []string{"least-squares", "subspace"},
		"how models are identified: by recursive least squares, which follow changes quickly, or by a subspace "+
			"method over a window of steps (MOESP), which tolerates more noise. "+
			"Outputs stay uncorrected until a model is trusted; the manifest says for how long",
		func(s *settings, i int) { s.Model.Subspace = i == 1 })
	modelAlphaParam = Param{
		Name: "model.alpha", Default: "1", Range: "0 … 2",
		Doc: "share α of the remaining state error that a constant offset of the inputs removes in the next macro " +
			"step; 0 corrects the outputs only",
		set: func(s *settings, v string) (err error) {
			s.Model.Alpha, err = numberFrom(v, 0, 2, "")
			return err
		},
	}
	modelRefreshParam = Param{
		Name: "model.refresh", Default: "0.01", Range: "0 or greater",
		Doc: "a model is rebuilt when the relative error of its prediction exceeds this value; 0 rebuilds it in " +
			"every macro step",
		set: func(s *settings, v string) error {
			if v == "0" {
				s.Model.Refresh = 0
				return nil
			}
			return positive(func(s *settings) *float64 { return &s.Model.Refresh })(s, v)
		},
	}
	modelFailureParam = choiceParam("model.failure", "uncorrected", []string{"uncorrected", "stop"},
		"what to do when the model of a component fails (wrong derivatives, values that are not finite, a singular "+
			"interface): leave the component uncorrected with a warning, or stop the run",
		func(s *settings, i int) { s.Model.Stop = i == 1 })
	modelRawParam = choiceParam("model.raw", "false", []string{"true", "false"},
		"true also records the outputs before correction, as raw.component.variable",
		func(s *settings, i int) { s.Model.Raw = i == 0 })
	modelControlParam = choiceParam("control", "fixed", []string{"fixed", "ecco", "predictor-corrector"},
		"fixed keeps the step size of the run; ecco controls it by the residual energy at power bonds; "+
			"predictor-corrector by the difference between outputs and their extrapolation",
		func(s *settings, i int) { s.Control.Estimator = []Estimator{NoEstimate, ECCO, PredictorCorrector}[i] })
	directParam = choiceParam("correction", "none", []string{"none", "feedthrough"},
		"feedthrough corrects the outputs for the error of the extrapolated inputs through direct feedthrough, y + "+
			"D (u − ũ), with D from directional derivatives",
		func(s *settings, i int) { s.Correct = []Correction{NoCorrection, FeedthroughCorrection}[i] })
	monitorParam = Param{
		Name: "monitor", Default: auto, Range: "auto, or component.variable:position, component.variable:velocity, " +
			"… separated by commas",
		Doc: "variables whose error is estimated, with their level. auto finds positions and velocities among the " +
			"outputs by their derivative " +
			"attributes; without these it takes all connected outputs, and all outputs of a component with " +
			"coupling inputs but no connected output. The manifest lists them",
		set: orAuto(func(s *settings, v string) (err error) {
			s.Control.Monitor, err = monitorList(v)
			return err
		}),
	}
)

// upTo4 bounds a parameter of ex-local that holds an order.
func upTo4(p Param) Param {
	set := p.set
	p.Default, p.Range = strings.ReplaceAll(p.Default, "5", "4"), strings.ReplaceAll(p.Range, "5", "4")
	p.set = func(s *settings, v string) error {
		if v == "5" {
			return errors.New("must be at most 4: the second solution of ex-local is one order higher, and 5 is the highest order")
		}
		return set(s, v)
	}
	return p
}

// withoutRollback makes model.jacobian refuse a source that there was.
func withoutRollback(p Param) Param {
	choose := p.set
	p.set = func(s *settings, v string) error {
		if v == "rollback" {
			return errors.New("models from steps repeated after a rollback were removed: nothing showed where they are wrong, " +
				"and a correction by a wrong model makes outputs grow; components with rollback are coupled more accurately by " +
				"the algorithm implicit; else use directional, identify or auto")
		}
		return choose(s, v)
	}
	return p
}

func setOrder(s *settings, v string) (err error) {
	s.Order, err = wholeNumber(v, 0, MaxOrder)
	return err
}

func schemeParam(def string) Param {
	return choiceParam("scheme", def, []string{"jacobi", "gauss-seidel"},
		"jacobi steps all components from the old values; gauss-seidel one after the other, with the new values of "+
			"components already stepped",
		func(s *settings, i int) { s.Scheme = Scheme(i) })
}

// correctionParam and controlParam choose the parts that the energy methods share.
func correctionParam(def string) Param {
	return choiceParam("correction", def, []string{"none", "energy"},
		"energy adds a correction to the action of each bond that removes the spurious energy of the previous step",
		func(s *settings, i int) { s.Correct = Correction(i) })
}

func controlParam(def string) Param {
	return choiceParam("control", def, []string{"fixed", "ecco"},
		"fixed keeps the step size of the run; ecco controls it by the residual energy",
		func(s *settings, i int) { s.Control.Estimator = []Estimator{NoEstimate, ECCO}[i] })
}

// choiceParam returns a parameter whose value is one of the choices; set gets its index.
func choiceParam(name, def string, choices []string, doc string, set func(s *settings, i int)) Param {
	return Param{Name: name, Default: def, Range: strings.Join(choices, ", "), Doc: doc, set: func(s *settings, v string) error {
		i := slices.Index(choices, v)
		if i < 0 {
			last := len(choices) - 1
			return fmt.Errorf("must be %s or %s%s", strings.Join(choices[:last], ", "), choices[last], diag.DidYouMean(v, choices))
		}
		set(s, i)
		return nil
	}}
}

// Presets returns the table of presets.
func Presets() []Preset {
	delivery := []Param{substepsParam, deliveryParam}
	explicit := func(scheme string) []Param {
		return []Param{
			schemeParam(scheme), orderParam, substepsParam, deliveryParam, sequenceParam,
			directParam, modelRefreshParam, modelFailureParam, modelRawParam, discardParam,
		}
	}
	solver := []Param{
		solverKindParam, solverToleranceParam, solverIterationsParam, solverRelaxationParam, solverSweepParam, withoutRollbackParam,
	}
	tolerances := []Param{relativeParam, absoluteParam}
	stepsTo := func(maxOrder Param) []Param {
		return []Param{safetyParam, maxOrder, stepParam, firstStepParam, leastStepParam, largestStepParam, ratioMinParam, ratioMaxParam}
	}
	steps := stepsTo(maxOrderParam)
	order := []Param{adaptiveOrderParam}
	piSteps := []Param{
		piSafetyParam, stepParam, piFirstStepParam, piLeastStepParam, piLargestStepParam, piRatioMinParam, piRatioMaxParam,
		piIntegralParam, piProportionalParam,
	}
	bySchemes := []Param{schemeParam("jacobi"), sequenceParam}
	monitor := []Param{monitorParam}
	energy := func(correction, control string) []Param {
		return slices.Concat([]Param{orderParam}, bySchemes, delivery, []Param{correctionParam(correction), controlParam(control),
			eccoToleranceParam, eccoScaleParam, energyMuParam, energyNuParam, energyLimitParam, energyAbsoluteParam}, piSteps)
	}
	estimating := func(e Estimator, s Scheme) Config { return Config{Scheme: s, Control: Control{Estimator: e}} }
	all := []Preset{
		{
			Name: "explicit",
			Doc: "Explicit coupling, all components in parallel (Jacobi): inputs are extrapolated over the " +
				"macro step, no step is repeated.",
			Source: "schweizer 2.1.2, 2.2.2, 2.3.2; meyer 3.1",
			Params: explicit("jacobi"),
		},
		{
			Name: "gauss-seidel",
			Doc: "Explicit coupling, one component after the other (Gauss–Seidel): inputs use the new values of " +
				"sources that have already been stepped.",
			Source: "schweizer 2.1, one subsystem after the other",
			Params: explicit("gauss-seidel"),
		},
		{
			Name: "implicit",
			Doc: "Implicit coupling with a fixed step size: inputs on loops match the outputs at the end of every " +
				"macro step, " +
				"by a predictor step and corrector steps with rollback.",
			Source: "schweizer 2.1.2, 2.2.2, 2.3.2; meyer 3.2",
			Params: slices.Concat([]Param{implicitOrderParam}, delivery, solver, tolerances),
			parts:  Config{Scheme: Implicit},
		},
		{
			Name: "ex-local",
			Doc: "Explicit coupling, variable order and step size; the error is estimated by comparison with a " +
				"second solution of one order higher (with rollback).",
			Source: "meyer 4.1, 5",
			Params: slices.Concat([]Param{upTo4(adaptiveOrderParam)}, bySchemes, delivery, tolerances, stepsTo(upTo4(maxOrderParam)), monitor),
			parts:  estimating(ExLocal, Jacobi),
		},
		{
			Name: "ex-milne",
			Doc: "Explicit coupling, variable order and step size; the error is estimated by comparison with a " +
				"second, interpolated solution of the same order (with rollback).",
			Source: "meyer 4.2, 5",
			Params: slices.Concat(order, delivery, tolerances, steps, monitor),
			parts:  estimating(ExMilne, Jacobi),
		},
		{
			Name: "ex-slocal",
			Doc: "Explicit coupling, variable order and step size; the error is estimated by comparing " +
				"extrapolated with updated inputs, without extra steps (rejected steps need rollback).",
			Source: "meyer 4.3, 5",
			Params: slices.Concat(order, bySchemes, delivery, tolerances, steps),
			parts:  estimating(ExSLocal, Jacobi),
		},
		{
			Name: "im-milne",
			Doc: "Implicit coupling, variable order and step size; the error is estimated by comparing " +
				"predicted with corrected states (with rollback).",
			Source: "meyer 3.2, 4.4, 5",
			Params: slices.Concat(order, delivery, solver, tolerances, steps, monitor),
			parts:  estimating(ImMilne, Implicit),
		},
		{
			Name: "im-slocal",
			Doc: "Implicit coupling, variable order and step size; the error is estimated by comparing " +
				"predicted with corrected inputs (with rollback).",
			Source: "meyer 3.2, 4.5, 5",
			Params: slices.Concat(order, delivery, solver, tolerances, steps),
			parts:  estimating(ImSLocal, Implicit),
		},
		{
			Name: "richardson",
			Doc: "Explicit coupling, variable order and step size; every step is taken once as a whole and once " +
				"in two halves, whose result is kept (with rollback).",
			Source: "step doubling; meyer (12), 5",
			Params: slices.Concat(order, bySchemes, delivery, tolerances, steps, monitor),
			parts:  estimating(Richardson, Jacobi),
		},
		{
			Name: "predictor-corrector",
			Doc: "Explicit coupling, variable step size, no step is repeated: a PI controller keeps the difference " +
				"between outputs and their " +
				"extrapolation near a tolerance (no rollback).",
			Source: "sadjina III D, (15)–(17), after Busch",
			Params: slices.Concat([]Param{orderParam}, bySchemes, delivery, []Param{pcToleranceParam, pcRhoParam}, piSteps),
			parts:  estimating(PredictorCorrector, Jacobi),
		},
		{
			Name: "ecco",
			Doc: "Explicit coupling, variable step size, no step is repeated: a PI controller keeps the " +
				"residual energy at power bonds near a tolerance (no rollback).",
			Source: "sadjina III",
			Energy: true,
			Params: energy("none", "ecco"),
		},
		{
			Name: "energy-correction",
			Doc: "Explicit coupling; spurious energy that the coupling creates at power bonds is removed by an " +
				"additional action in the next step (no rollback).",
			Source: "rodriguez 3",
			Energy: true,
			Params: energy("energy", "fixed"),
		},
		{
			Name: "model-based-corrector",
			Doc: "Explicit coupling; after every macro step, linear models of the components estimate the error of " +
				"the extrapolated inputs. " +
				"They correct the outputs and, by an offset of the next inputs, the states (no step is repeated).",
			Source: "haid 2",
			Params: slices.Concat([]Param{orderParam}, bySchemes, delivery, []Param{
				modelJacobianParam, modelPointParam, modelIdentificationParam, modelAlphaParam, modelRefreshParam,
				modelFailureParam, modelRawParam, modelControlParam, eccoToleranceParam, eccoScaleParam, pcToleranceParam, pcRhoParam,
			}, piSteps),
			parts: Config{Correct: ModelCorrection},
		},
	}
	for i := range all {
		p := &all[i]
		p.New = p.coupling
	}
	return all
}

// UsesEnergy reports whether a preset of this package monitors the energy at power bonds.
func UsesEnergy(preset string) bool {
	p, err := Catalog(nil).Find(preset)
	return err == nil && p.Energy
}

// With holds what an algorithm needs to know about the system.
type With struct {
	Bonds   []Bond // power bonds to monitor
	Watched []Bond // see Config
	Rates   []Rate
	Spike   float64 // see Config
}

// New returns the algorithm of a preset of this package.
func New(preset string, params map[string]string, with ...With) (*Choice, error) {
	return Catalog(nil).New(preset, params, with...)
}

// New returns the algorithm of a preset with parameters. Unknown presets or parameters and
// values out of range are errors that list what is allowed.
func (c Catalog) New(preset string, params map[string]string, with ...With) (*Choice, error) {
	p, err := c.Find(preset)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if !slices.ContainsFunc(p.Params, func(q Param) bool { return q.Name == key }) {
			list := names(p.Params, func(q Param) string { return q.Name })
			return nil, fmt.Errorf("algorithm %s has no parameter %q%s", preset, key, diag.DidYouMeanOr(key, list, "; it has "))
		}
	}
	values := map[string]string{}
	for _, q := range p.Params {
		v, given := params[q.Name]
		if !given {
			v = q.Default
		}
		values[q.Name] = v
	}
	var w With
	if len(with) > 0 {
		w = with[0]
	}
	choice, err := p.New(values, w)
	if err != nil {
		return nil, err
	}
	choice.Preset, choice.Values = preset, values
	return choice, nil
}

// coupling returns the algorithm of a preset of this package.
func (p *Preset) coupling(values map[string]string, w With) (*Choice, error) {
	s := settings{Config: p.parts}
	s.Bonds, s.Watched, s.Rates, s.Spike = w.Bonds, w.Watched, w.Rates, w.Spike
	for _, q := range p.Params {
		if err := q.set(&s, values[q.Name]); err != nil {
			return nil, fmt.Errorf("parameter %s=%s: %w", q.Name, values[q.Name], err)
		}
	}
	if s.substepsGiven && !s.deliveryGiven {
		s.Delivery = Substeps
	}
	c := &Choice{Discard: s.discard, Monitor: s.Control.Monitor}
	if s.Scheme == Jacobi && s.Sequence != nil {
		c.Notes = append(c.Notes, "the Jacobi scheme steps all subsystems from the same values: the parameter "+
			"sequence has no effect")
	}
	if s.relaxed && s.Solver.Kind < IQN {
		c.Notes = append(c.Notes, "solver.relaxation has no effect with solver.kind="+solverKinds[s.Solver.Kind])
	}
	alg, err := NewCoupling(s.Config)
	c.Algorithm = alg
	return c, err
}

// between sets a number from lowest to highest; lowest 0 is excluded.
func between(field func(*settings) *float64, lowest, highest float64) func(*settings, string) error {
	return func(s *settings, v string) (err error) {
		if *field(s), err = numberFrom(v, lowest, highest, ""); lowest == 0 && (err != nil || *field(s) == 0) {
			return fmt.Errorf("must be greater than 0 and at most %g", highest)
		}
		return err
	}
}

// numberFrom reads a number from lowest to highest; before is put before that in the error.
func numberFrom(v string, lowest, highest float64, before string) (float64, error) {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= lowest && x <= highest) {
		return 0, fmt.Errorf("must be %sa number from %g to %g", before, lowest, highest)
	}
	return x, nil
}

// positive sets a number greater than 0.
func positive(field func(*settings) *float64) func(*settings, string) error {
	return func(s *settings, v string) error {
		x, err := number(v)
		if err == nil {
			*field(s) = x
		}
		return err
	}
}

// gain sets a number from 0 to 1.
func gain(field func(*settings) **float64) func(*settings, string) error {
	return func(s *settings, v string) error {
		x, err := numberFrom(v, 0, 1, "auto or ")
		if err == nil {
			*field(s) = &x
		}
		return err
	}
}

// orAuto leaves the field at its zero value for auto.
func orAuto(set func(*settings, string) error) func(*settings, string) error {
	return func(s *settings, v string) error {
		if v == auto {
			return nil
		}
		return set(s, v)
	}
}

func number(v string) (float64, error) {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, errors.New("must be a number greater than 0")
	}
	return x, nil
}

// toleranceList sets tolerances from "1e-4", "component.variable:1e-8,…" or both together.
func toleranceList(field func(*settings) *[]Tolerance) func(*settings, string) error {
	return func(s *settings, v string) error {
		list := field(s)
		for item := range strings.SplitSeq(v, ",") {
			item = strings.TrimSpace(item)
			name, value := "", item
			if at := strings.LastIndex(item, ":"); at >= 0 {
				name, value = item[:at], item[at+1:]
				if !strings.Contains(name, ".") {
					return fmt.Errorf("%q is not of the form component.variable", name)
				}
			}
			x, err := number(value)
			if err != nil {
				return fmt.Errorf("%q: give a number greater than 0, or component.variable:number", item)
			}
			if named(*list, name) {
				return fmt.Errorf("%q: a second value for the same variables", item)
			}
			*list = append(*list, Tolerance{name, x})
		}
		return nil
	}
}

// withGeneral is toleranceList; a value for the variables that are not named is required.
func withGeneral(field func(*settings) *[]Tolerance) func(*settings, string) error {
	return func(s *settings, v string) error {
		if err := toleranceList(field)(s, v); err != nil {
			return err
		}
		if !named(*field(s), "") {
			return errors.New("needs a general value besides those of variables, such as " +
				"1e-3,component.variable:1e-2")
		}
		return nil
	}
}

// monitorList reads "component.variable:position,…".
func monitorList(v string) ([]Monitored, error) {
	var list []Monitored
	for item := range strings.SplitSeq(v, ",") {
		name, level, _ := strings.Cut(strings.TrimSpace(item), ":")
		m := Monitored{Name: name, Level: master.Velocity}
		switch level {
		case "", "velocity":
		case "position":
			m.Level = master.Position
		default:
			return nil, fmt.Errorf("%q: the level is position or velocity", item)
		}
		if !strings.Contains(name, ".") {
			return nil, fmt.Errorf("%q is not of the form component.variable", name)
		}
		list = append(list, m)
	}
	return list, nil
}

func wholeNumber(v string, lowest, highest int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("must be a whole number from %d to %d", lowest, highest)
	}
	return n, nil
}

func names[T any](list []T, name func(T) string) (s []string) {
	for _, e := range list {
		s = append(s, name(e))
	}
	return s
}
