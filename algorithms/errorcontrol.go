package algorithms

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Estimator is the way in which the error of a macro step is estimated.
type Estimator uint8

// The estimators. All but the last judge a step, which is repeated with a
// smaller size if its error is too large, and need rollback.
const (
	NoEstimate         Estimator = iota
	ExLocal                      // explicit; against a second solution of degree k+1 (meyer 4.1)
	ExMilne                      // explicit; against a second solution by interpolation of degree k (meyer 4.2)
	ExSLocal                     // explicit; extrapolated against updated inputs (meyer 4.3)
	ImMilne                      // implicit; predicted against corrected states (meyer 4.4)
	ImSLocal                     // implicit; predicted against corrected inputs (meyer 4.5)
	Richardson                   // explicit; one step against two of half the size
	PredictorCorrector           // extrapolated against new outputs, without repetition (sadjina III D)
	ECCO                         // residual energy at power bonds, without repetition (sadjina III C)
)

var estimatorNames = []string{"none", "ex-local", "ex-milne", "ex-slocal", "im-milne", "im-slocal", "richardson", "predictor-corrector", "ecco"}

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
func (c *Control) varies() bool {
	return c.Estimator != NoEstimate && !c.indicates() && !c.FixedOrder
}

// highestOrder is the highest one that the control chooses. The second solution of ExLocal
// takes one more.
func (c *Control) highestOrder() int {
	if c.Estimator == ExLocal {
		return min(c.MaxOrder, MaxOrder-1)
	}
	return c.MaxOrder
}

// indicates tells that steps are chosen by an indicator, and none is repeated.
func (c *Control) indicates() bool { return c.Estimator >= PredictorCorrector }

// firstPart of the step size of the run is the first one, unless it is given.
const firstPart = 1e-3

// newControl gives the control of a configuration.
func newControl(c Config, a *Coupling) (control, error) {
	k := c.Control
	name := estimatorNames[k.Estimator]
	switch {
	case k.Estimator == ImMilne || k.Estimator == ImSLocal:
		if c.Scheme != Implicit {
			return nil, fmt.Errorf("the estimator %s compares predictor and corrector: it goes with scheme=implicit", name)
		}
	case c.Scheme == Implicit && !k.indicates():
		return nil, fmt.Errorf("the estimator %s goes with an explicit scheme; with scheme=implicit choose im-milne or im-slocal", name)
	case k.Estimator == ExMilne && c.Scheme != Jacobi:
		return nil, fmt.Errorf("the estimator %s goes with scheme=jacobi: its constants belong to inputs that are all extrapolated", name)
	}
	if k.MaxOrder < 0 || k.MaxOrder > MaxOrder {
		return nil, fmt.Errorf("the highest order is %d; it lies between 0 and %d", k.MaxOrder, MaxOrder)
	}
	if k.HMax > 0 && k.HMin > k.HMax || k.HMax > 0 && k.H0 > k.HMax || k.H0 > 0 && k.H0 < k.HMin {
		return nil, fmt.Errorf("the step sizes control.h-min=%g, control.h0=%g and control.h-max=%g (0 = auto) contradict each other: they ascend in this order", k.HMin, k.H0, k.HMax)
	}
	switch k.Estimator {
	case PredictorCorrector:
		quality := &predictorCorrector{tolerance: k.PCTolerance, rho: k.PCRho}
		return &indicatorControl{config: k, coupling: a, quality: quality, gain: 1}, nil
	case ECCO:
		quality := &ecco{energy: a.energy, scale: k.EnergyScale, tolerance: k.EnergyTolerance}
		return &indicatorControl{config: k, coupling: a, quality: quality, gain: 2}, nil
	}
	if k.HMax == 0 {
		k.HMax = math.Inf(1)
	}
	return &errorControl{config: k, fixed: c.Order, coupling: a, scheme: a.scheme, in: a.in, tol: &a.tol}, nil
}

// errorControl estimates the error of a macro step, decides whether it stands,
// and chooses order and size of the next (meyer 4 and 5).
type errorControl struct {
	config   Control
	fixed    int // the order, if it is fixed
	coupling *Coupling
	scheme   scheme
	in       *input.Approximation
	tol      *tolerances

	steps    *stepControl
	entries  []int // coupling inputs that are extrapolated
	pos, vel []int // outputs judged, by level
	names    []string

	second   []float64   // y [ny] of the second solution
	coupled  []float64   // L y + b [nu] at the end of the step
	middle   []float64   // and at the middle of a doubled step
	middleAt float64     // NaN: the step was not doubled
	astray   bool        // inputs were further off their extrapolation than expected
	past     num.History // with the end of the step in front
	e, w     []float64   // scratch over the variables judged
	scratch  []float64
	asked    bool // the last attempt asked for its repetition
	next     decision
	first    float64 // s, size of the first step; 0 = that of the run
	creep    creep
	audit    audit
}

// creep finds out whether the steps stay far below what the run was asked for.
type creep struct {
	size  float64 // s, macro step of the run
	steps int     // since
	since float64 // time of the run, s
	told  bool
}

// So many steps in a row creep that are on average below this part of that of the run.
const (
	creepSteps = 5000
	creepPart  = 1e-6
)

// take counts a step that ends at t, and gives the mean size (s) of those that creep; 0 =
// none do.
func (c *creep) take(t float64) float64 {
	if c.steps++; c.steps < creepSteps || c.told {
		return 0
	}
	mean := (t - c.since) / creepSteps
	c.steps, c.since = 0, t
	if mean < creepPart*c.size {
		return mean
	}
	return 0
}

// check refuses step doubling where a subsystem cannot take half a step, and estimates
// that have nothing to go by.
func (j *errorControl) check(s *master.System) error {
	extrapolated, held := coupledInputs(s)
	if len(extrapolated) == 0 && len(held) > 0 && !j.config.FixedStep {
		return fmt.Errorf("%w: the error estimate compares extrapolated inputs, and every coupled input is held, because its variability or that of its source is discrete "+
			"(such as %s): the estimate is 0 whatever the step; choose steps of one size (control.step=fixed, explicit, gauss-seidel), or ecco or predictor-corrector",
			master.ErrCapability, s.InName(held[0]))
	}
	if j.config.Estimator != Richardson {
		return nil
	}
	for _, info := range s.Infos {
		if !info.Caps.VariableStep {
			return fmt.Errorf("%s: %w: richardson takes every macro step in two halves as well, and the component cannot vary its step (canHandleVariableCommunicationStepSize): "+
				"choose an algorithm that takes steps of one size (explicit, gauss-seidel, implicit, or ex-local with control.step=fixed)", info, master.ErrCapability)
		}
	}
	return nil
}

func (j *errorControl) repeats() bool {
	switch j.config.Estimator {
	case ExLocal, ExMilne, Richardson:
		return true
	}
	return !j.config.FixedStep
}

func (j *errorControl) firstStep(H float64) float64 {
	if j.config.FixedStep {
		return 0
	}
	j.creep.size = H
	j.first = j.config.H0
	if j.first == 0 {
		j.first = min(max(firstPart*H, j.config.HMin), j.config.HMax)
	}
	return j.first
}

// disturb begins anew with the first size.
func (j *errorControl) disturb() float64 {
	j.steps.failures = 0
	return j.first
}

func (j *errorControl) monitored() []string { return j.names }

// byInputs tells that the errors of the coupling inputs are judged, not those of states.
func (j *errorControl) byInputs() bool {
	return j.config.Estimator == ExSLocal || j.config.Estimator == ImSLocal
}

// coupledInputs gives the connected inputs of the subsystems that are not stepped late:
// those that are extrapolated, and those that are held.
func coupledInputs(sys *master.System) (extrapolated, held []int) {
	holds := sys.Holds()
	for _, i := range sys.Stepped {
		for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
			if _, connected := sys.Source(k); !connected {
				continue
			}
			if holds[k] {
				held = append(held, k)
			} else {
				extrapolated = append(extrapolated, k)
			}
		}
	}
	return extrapolated, held
}

func (j *errorControl) init(x *master.Exec, t0 float64) error {
	sys := x.Sys
	for i := range sys.Subsystems { // halves: those of richardson, and of the audit
		if err := x.Splits(i); err != nil && (j.config.Estimator == Richardson || !j.config.FixedStep) {
			return err
		}
	}
	j.pos, j.vel, j.names = nil, nil, nil
	var held []int
	if j.entries, held = coupledInputs(sys); len(held) > 0 && !j.config.FixedStep {
		x.Note(fmt.Sprintf("the error estimate ignores inputs that are held over each macro step because they or their sources are discrete (%d, such as %s): "+
			"control.h-max limits by how much they may be late", len(held), sys.InName(held[0])))
	}
	if err := j.chooseStates(sys); err != nil {
		return err
	}
	if j.byInputs() {
		j.names = nil
		for _, k := range j.entries {
			j.names = append(j.names, sys.InName(k)+" (coupling input)")
		}
	}
	if j.config.Estimator == ExSLocal && len(sys.Loops) > 0 {
		x.Note(fmt.Sprintf("ex-slocal compares extrapolated inputs with updated ones, and outputs on the loop %s hold extrapolated ones, as far as there is "+
			"direct feedthrough: the estimate may not vanish with the step (meyer 4.3); ex-local, ex-milne and implicit schemes do not have this",
			strings.Join(sys.Loops[0].Variables, " → ")))
	}
	n := max(len(j.entries), len(j.pos), len(j.vel))
	j.second = make([]float64, len(x.Y))
	j.coupled, j.middle = make([]float64, len(x.W)), make([]float64, len(x.W))
	j.middleAt = math.NaN()
	j.past = num.History{Times: make([]float64, input.MaxPoints+1), Values: make([][]float64, input.MaxPoints+1)}
	j.e, j.w, j.scratch = make([]float64, n), make([]float64, n), make([]float64, n)
	j.steps = &stepControl{config: controlConfig{
		Safety: j.config.Safety, RatioMin: j.config.RatioMin, RatioMax: j.config.RatioMax,
		HMin: j.config.HMin, HMax: j.config.HMax, MaxOrder: j.config.highestOrder(),
		FixedOrder: j.config.FixedOrder, FixedStep: j.config.FixedStep,
	}}
	j.creep.since = t0
	if err := j.audit.init(x, j.in); err != nil {
		return err
	}
	j.coupling.order = 0
	if j.config.FixedOrder {
		j.coupling.order = j.fixed
	}
	return nil
}

// chooseStates finds the outputs that are judged: those the user names, else the
// positions and velocities among the outputs, else all connected outputs, as
// velocities. Of a component with coupling inputs that has none among these, its
// connected outputs are, else all: what it is off by would be seen by nobody.
func (j *errorControl) chooseStates(sys *master.System) error {
	add := func(y int, level master.Level, why string) {
		if level == master.Position {
			j.pos = append(j.pos, y)
		} else {
			j.vel = append(j.vel, y)
		}
		j.names = append(j.names, sys.OutName(y)+" ("+why+")")
	}
	words := map[master.Level]string{master.NoLevel: "velocity level", master.Position: "position level", master.Velocity: "velocity level"}
	for _, m := range j.config.Monitor {
		y, ok := sys.FindOut(m.Name)
		if !ok {
			return fmt.Errorf("monitor=%s: no Real output has this name", m.Name)
		}
		add(y, m.Level, words[m.Level]+", named")
	}
	if len(j.names) > 0 {
		return nil
	}
	for i, info := range sys.Infos {
		for p, port := range info.Out {
			if port.Level != master.NoLevel {
				add(sys.OutAt[i]+p, port.Level, words[port.Level]+", by its derivative attribute")
			}
		}
	}
	feeds := make([]bool, sys.OutAt[len(sys.Infos)])
	for _, k := range j.entries {
		y, _ := sys.Source(k)
		feeds[y] = true
	}
	if len(j.names) == 0 {
		for y, does := range feeds {
			if does {
				add(y, master.NoLevel, "connected output, judged as velocity level")
			}
		}
	}
	for _, k := range j.entries {
		i := num.Owner(sys.InAt, k)
		from, to := sys.OutAt[i], sys.OutAt[i+1]
		judged := func(y int) bool { return y >= from && y < to }
		if slices.ContainsFunc(j.pos, judged) || slices.ContainsFunc(j.vel, judged) {
			continue
		}
		connected := slices.Contains(feeds[from:to], true)
		for y := from; y < to; y++ {
			switch {
			case sys.Infos[i].Out[y-from].Internal:
			case feeds[y]:
				add(y, master.NoLevel, "connected output, judged as velocity level")
			case !connected:
				add(y, master.NoLevel, "output of a component that feeds no other, judged as velocity level")
			}
		}
	}
	return nil
}

// pointsNeeded is the number of communication points that the estimate of degree
// k rests on.
func (j *errorControl) pointsNeeded(k int) int {
	switch {
	case j.config.Estimator == ExLocal, j.config.Estimator == ExMilne:
		return k + 2
	case j.config.Estimator == Richardson && !j.config.FixedOrder:
		return max(k+1, 2) // the first step, which is small, has no order to choose from
	}
	return k + 1
}

func (j *errorControl) attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error) {
	k := j.coupling.order
	judged := len(j.in.Times()) >= j.pointsNeeded(k) && j.coupling.jump == 0
	outcome := attemptOutcome{H: H, order: k, norms: unknownNorms}
	audited := judged && !j.config.FixedStep && j.audit.due(H)
	difference := math.NaN()
	if audited {
		var err error
		if difference, err = j.compareHalves(ctx, x, t, H, k); err != nil {
			return master.Trial{Est: math.NaN(), Indicator: math.NaN()}, err
		}
	}
	e, err := j.solve(ctx, x, t, H, k, judged)
	var worst part // of an error that is too large
	trial := master.Trial{Est: math.NaN(), Indicator: math.NaN(), Iters: e.iterations, Jacobians: e.jacobians}
	switch {
	case errors.Is(err, errNotConverged):
		outcome.result = notConverged
		trial.Why = err.Error()
	case err != nil:
		return trial, err
	default:
		x.CoupleAll(t+H, j.coupled)
		outcome.result = stepUnjudged
		if judged {
			outcome.norms = j.norms(x, H, k)
			if j.sees(x, t, H, difference, &outcome.norms); j.audit.blind {
				outcome.norms.inner = difference
			}
			if j.steps.passes(outcome.norms) && !j.config.FixedStep {
				jumped, err := j.jumped(ctx, x, t, H, k)
				if err != nil {
					return trial, err
				}
				if !math.IsNaN(jumped) {
					outcome.norms.inner = jumped
				}
			}
			trial.Est = outcome.norms.largest()
			outcome.result = stepAccepted
			if !j.steps.passes(outcome.norms) {
				outcome.result = errorTooLarge
				worst = j.most(x, H, k)
				trial.Why = fmt.Sprintf("the estimated error is %.3g times the tolerance, mostly that %s", trial.Est, worst)
			}
		}
	}
	stands := outcome.result == stepAccepted || outcome.result == stepUnjudged
	j.audit.conclude(audited, stands, H)
	past := j.in.History()
	if stands {
		past = j.withNew(t + H)
	}
	for i, u := range j.entries {
		j.w[i] = j.tol.input(u, past.Values[0][u])
	}
	next, err := j.steps.conclude(outcome, past, j.entries, j.w[:len(j.entries)], j.scratch)
	if err != nil {
		if trial.Why != "" {
			err = fmt.Errorf("%w; the last attempt: %s%s", err, trial.Why, j.direct(x.Sys, k, worst))
		}
		return trial, fmt.Errorf("t = %.12g s: %w", t, err)
	}
	if stands {
		if mean := j.creep.take(t + H); mean > 0 && judged {
			j.creep.told = true
			part := j.most(x, H, k)
			x.Note(fmt.Sprintf("t = %.6g s: the steps stay at %.2g s because of the error %s; where noise or rounding makes it, no smaller step helps: "+
				"loosen control.atol for it (control.atol=%s:VALUE), or take another algorithm", t+H, mean, part, part.name))
		}
	}
	j.next = next
	j.asked = !stands
	trial.Next = next.H
	if !stands {
		trial.Verdict = master.Retry
	}
	return trial, nil
}

// withNew gives the history with the end of the step in front.
func (j *errorControl) withNew(t float64) num.History {
	n := 0
	put := func(t float64, v []float64) { j.past.Times[n], j.past.Values[n] = t, v; n++ }
	put(t, j.coupled)
	if !math.IsNaN(j.middleAt) {
		put(j.middleAt, j.middle)
	}
	for i, t := range j.in.Times() {
		if n < len(j.past.Times) {
			put(t, j.in.At(i))
		}
	}
	return num.History{Times: j.past.Times[:n], Values: j.past.Values[:n]}
}

// solve takes the macro step, and before or after it what the estimator compares
// it with, to j.second.
func (j *errorControl) solve(ctx context.Context, x *master.Exec, t, H float64, k int, judged bool) (effort, error) {
	j.middleAt = math.NaN()
	switch j.config.Estimator {
	case ExLocal, ExMilne:
		if judged {
			if err := j.compare(ctx, x, t, H, k); err != nil {
				return effort{}, err
			}
		}
	case Richardson:
		return effort{}, j.double(ctx, x, t, H, k)
	case ImMilne:
		e, err := j.coupling.advance(ctx, x, t, H, k)
		copy(j.second, j.scheme.(*implicit).predicted)
		return e, err
	}
	return j.coupling.advance(ctx, x, t, H, k)
}

// compare takes the second solution of ExLocal and ExMilne, and goes back.
func (j *errorControl) compare(ctx context.Context, x *master.Exec, t, H float64, k int) error {
	j.in.Begin(x, t, H, k+1)
	if j.config.Estimator == ExMilne {
		for i, u := range j.entries {
			j.scratch[i] = j.in.Extrapolated(u)
		}
		j.in.Begin(x, t, H, k)
		for i, u := range j.entries {
			j.in.Arrived(u, j.scratch[i])
		}
	}
	if err := j.scheme.(*explicit).step(ctx, x, t, H); err != nil {
		return err
	}
	copy(j.second, x.Y)
	return x.RestoreAll()
}

// double takes the step at once, goes back, and takes it in two halves, which stand.
func (j *errorControl) double(ctx context.Context, x *master.Exec, t, H float64, k int) error {
	if _, err := j.coupling.advance(ctx, x, t, H, k); err != nil {
		return err
	}
	copy(j.second, x.Y)
	if err := x.RestoreAll(); err != nil {
		return err
	}
	if j.coupling.energy != nil {
		j.coupling.energy.begin()
	}
	half := H / 2
	middle := master.BeginOf(t+half, half, t+H)
	if _, err := j.coupling.advance(ctx, x, t, half, k); err != nil {
		return err
	}
	x.CoupleAll(middle, j.middle)
	j.astray = j.strays(j.middle, half, k)
	j.in.Push(middle, j.middle)
	_, err := j.coupling.advance(ctx, x, middle, half, k)
	x.CoupleAll(t+H, j.coupled)
	j.astray = j.astray || j.strays(j.coupled, half, k)
	j.in.Pop()
	j.middleAt = middle
	return err
}

// norms gives the weighted norms of the estimated errors.
func (j *errorControl) norms(x *master.Exec, H float64, k int) errorNorms {
	n := unknownNorms
	if j.byInputs() {
		n.u = orInf(j.defect(j.coupled)) // (21), (24)
		return n
	}
	factorPos, factorVel := j.factors(H, k)
	if len(j.pos) > 0 {
		n.pos = j.norm(x, j.pos, factorPos)
	}
	if len(j.vel) > 0 || len(j.pos) == 0 {
		n.vel = j.norm(x, j.vel, factorVel)
	}
	return n
}

// part is the share of one variable in an error.
type part struct {
	name             string
	input            int // coupling input; -1: an output
	error, tolerance float64
}

func (p part) String() string {
	return fmt.Sprintf("of %s (%.2g, tolerance %.2g)", p.name, p.error, p.tolerance)
}

// most gives the variable that has the greatest part in the error of the step of size H
// that was just estimated.
func (j *errorControl) most(x *master.Exec, H float64, k int) (worst part) {
	take := func(name string, input int, e, w float64) {
		if worst.name == "" || math.IsNaN(e) || math.Abs(e)*worst.tolerance > worst.error*w {
			worst = part{name, input, math.Abs(e), w}
		}
	}
	if j.byInputs() {
		for _, u := range j.entries {
			take(x.Sys.InName(u), u, j.in.Extrapolated(u)-j.coupled[u], j.tol.input(u, j.coupled[u]))
		}
		return worst
	}
	pos, vel := j.factors(H, k)
	for _, y := range j.pos {
		take(x.Sys.OutName(y), -1, pos*(x.Y[y]-j.second[y]), j.tol.output(y, x.Y[y]))
	}
	for _, y := range j.vel {
		take(x.Sys.OutName(y), -1, vel*(x.Y[y]-j.second[y]), j.tol.output(y, x.Y[y]))
	}
	return worst
}

// direct tells of direct feedthrough behind the input with the greatest error: an output
// that follows an extrapolated input has its value of the step before, and what it lacks is
// not less in a smaller step (meyer 4.3).
func (j *errorControl) direct(sys *master.System, order int, worst part) string {
	if j.config.Estimator != ExSLocal || order > 0 || worst.name == "" || worst.input < 0 {
		return ""
	}
	y, _ := sys.Source(worst.input)
	i := num.Owner(sys.OutAt, y)
	for _, k := range j.entries {
		if f := &sys.Infos[i].Step; num.Owner(sys.InAt, k) == i && y-sys.OutAt[i] < len(f.On) && slices.Contains(f.On[y-sys.OutAt[i]], k-sys.InAt[i]) {
			return fmt.Sprintf("; %s follows %s directly, as it was in the step before, and that is no less in a smaller step (meyer 4.3): take ex-local, ex-milne or an implicit scheme", sys.OutName(y), sys.InName(k))
		}
	}
	return ""
}

// norm gives the weighted norm of the difference between some outputs and the second
// solution, times a factor.
func (j *errorControl) norm(x *master.Exec, outputs []int, factor float64) float64 {
	for i, y := range outputs {
		j.e[i] = factor * (x.Y[y] - j.second[y])
		j.w[i] = j.tol.output(y, x.Y[y])
	}
	return orInf(num.WRMS(j.e[:len(outputs)], j.w[:len(outputs)]))
}

// orInf makes the norm of what is no number one that never passes.
func orInf(norm float64) float64 {
	if math.IsNaN(norm) {
		return math.Inf(1)
	}
	return norm
}

// factors are the constants by which the difference of the two solutions gives
// the error of the one that stands.
func (j *errorControl) factors(H float64, k int) (pos, vel float64) {
	switch j.config.Estimator {
	case ExLocal:
		return 1, 1 // (15)
	case Richardson:
		// The error of one step is c H^q, that of two halves 2 c (H/2)^q, with
		// q = k+3 in positions and k+2 in velocities (12).
		return 1 / (math.Ldexp(1, k+2) - 1), 1 / (math.Ldexp(1, k+1) - 1)
	}
	nodes := j.in.Times()
	posK, velK := num.ErrorConstants(k, H, nodes)
	pos, vel = num.ErrorConstants(k+1, H, nodes)
	pos, vel = pos/posK, vel/velK
	if j.config.Estimator == ImMilne {
		return 1 - pos, 1 - vel // (22), (23)
	}
	return pos, vel // (19), (20)
}

func (j *errorControl) accept(x *master.Exec, t float64) {
	if !math.IsNaN(j.middleAt) {
		j.in.Push(j.middleAt, j.middle)
	}
	j.coupling.order = j.next.order
}

func (j *errorControl) archive(a *master.Archive) {
	a.Section("control of order and step size")
	j.steps.archive(a)
	a.Int(&j.creep.steps)
	a.Float(&j.creep.since)
	a.Bool(&j.creep.told)
	j.audit.archive(a)
}

// reject takes note that the step is repeated; a subsystem that discarded it
// counts as a failure.
func (j *errorControl) reject(t, H float64) {
	if j.asked {
		j.asked = false
		j.coupling.order = j.next.order
		return
	}
	outcome := attemptOutcome{H: H, order: j.coupling.order, result: stepDiscarded,
		norms: unknownNorms}
	for i, u := range j.entries {
		j.w[i] = j.tol.input(u, j.in.At(0)[u])
	}
	if next, err := j.steps.conclude(outcome, j.in.History(), j.entries, j.w[:len(j.entries)], j.scratch); err == nil {
		j.coupling.order = next.order
	}
}
