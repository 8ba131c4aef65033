package algorithms

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// JacobianSource is where the model of a subsystem comes from.
type JacobianSource uint8

// The sources.
const (
	AnyJacobian         JacobianSource = iota // the first of the following that a subsystem supports
	DirectionalJacobian                       // A, B, C, D from directional derivatives
	IdentifiedJacobian                        // identified from inputs and outputs
)

var jacobianSources = []string{"auto", "directional", "identify"}

// ModelPoint selects where in a macro step directional derivatives are evaluated.
type ModelPoint uint8

// The points. haid (7) allows both at the start.
const (
	AnyPoint      ModelPoint = iota // chosen by the order
	StartPoint                      // T_n, with the inputs at the end of the previous step
	StartNewPoint                   // T_n, with the inputs at the start of the new step
	EndPoint                        // T_{n+1}
)

var modelPoints = []string{"auto", "start", "start-new", "end"}

// Model configures the model-based corrector.
type Model struct {
	Jacobian JacobianSource
	// Point applies to models from directional derivatives only.
	Point ModelPoint
	// Alpha is the share of the accumulated state error that is removed in the next macro
	// step (haid (21)); 0 = only outputs are corrected.
	Alpha float64
	// Refresh is the relative prediction error above which a model is rebuilt; 0 = models are
	// rebuilt in every macro step.
	Refresh float64
	// Subspace identifies models by a subspace method over a window, instead of by recursive
	// least squares.
	Subspace bool
	// Stop ends the run if a model fails. Otherwise the subsystem continues uncorrected.
	Stop bool
	// Raw also records the outputs before the correction.
	Raw bool
}

// modelCorrector is the model-based corrector (haid 2). After every macro step it estimates the
// error due to the extrapolated inputs ũ and corrects the outputs to ȳ, the outputs for the
// inputs ū = L ȳ + b at the end of the step.
//
// Let ℓ be the polynomial that is 1 at the end of the step and 0 at all points of the
// extrapolation except the oldest. Then ū − ũ = ℓ e − δu, where e is the difference at the end and
// δu a constant offset of the inputs of the step. With the responses of the outputs to a
// deviation along ℓ and to a constant one,
//
//	G = D + ∫ C e^{A(H−s)} B ℓ(s) ds,   G_0 = D + ∫ C e^{A(H−s)} B ds
//
// (14)–(19) become
//
//	ȳ = y + G e − G_0 δu,   (I − L G) e = L (y − G_0 δu) + b − ũ(H),
//
// for any order and unequal steps. This sparse system for the inputs is equivalent to haid's
// system for the outputs: (I − G L)⁻¹ = I + G (I − L G)⁻¹ L.
//
// The remaining error of the states is tracked as E = ∫ (ū − ũ) dt, where ū interpolates one
// point more than ũ. α E / H is the offset of the next step, (20)–(25).
//
// Subsystems without a model keep their outputs. For stateless subsystems the model is D.
type modelCorrector struct {
	config Model
	scheme Scheme
	// direct restricts the correction to direct feedthrough: G = D, δu = 0 (parallel linear
	// correction, haid 1.3).
	direct bool
	in     *input.Approximation

	sys      *master.System
	source   []JacobianSource // by subsystem; AnyJacobian = no model
	why      []string         // by subsystem: reason why it has no model
	members  []int            // subsystems with a model
	models   []responder      // by subsystem
	update   *master.Phase    // updates all models
	renewal  *master.Phase    // rebuilds models at the start of a step
	learners []*identified    // identified models

	interfaceJacobian             // for the connected inputs of members; s = G
	toOffset          [][]float64 // by column: G_0
	shapes            []num.Shape // by column: ℓ of the current G
	active            []bool      // by column: steps of source and subsystem end with this macro step
	lu                *num.LU
	factored          bool

	missed   []float64   // by output: largest extrapolation error at the end of the step
	e        []float64   // by column
	phi      []float64   // L y + b, [nu]
	recorded []int       // rawOutputs
	raw      []float64   // y before the correction, [ny]
	rawThen  []float64   // raw at the last accepted point
	then     []float64   // corrected y at that point
	size     []magnitude // by output, before corrections
	y        []float64   // outputs of the run
	error    []float64   // E at the last accepted point, [nu], input·s
	next     []float64   // E after the attempt
	offset   []float64   // δu of the current step, [nu]
	of       []modelRecord
	singular failure // steps without correction of any subsystem
	t, H     float64 // s, start and size of the current step
}

// responder is the model of one subsystem: the responses of its outputs at the end of a macro step
// to its inputs during the step.
type responder interface {
	// update checks and updates the model after a step. It is called on the thread of the
	// subsystem. An error ends the run.
	update() (modelUpdate, error)
	// respond writes the response to a deviation of the input of column j along a course
	// Σ p_m (s/H)^m to s [ny of the subsystem], and the response to a constant one to offset.
	respond(j int, course *num.Shape, s, offset []float64)
	// accept and reject conclude the step.
	accept()
	reject()
	archive(a *master.Archive)
	// predictionError returns the largest relative prediction error so far; NaN = there was
	// no prediction.
	predictionError() float64
}

// modelUpdate is the outcome of an update.
type modelUpdate struct {
	changed     bool // the responses have changed
	evaluations int
	why         string // reason why there is no model; "" = there is one
}

// modelRecord counts the use of the model of one subsystem.
type modelRecord struct {
	evaluations int // in the current attempt
	total       int
	failed      failure
	trusted     int  // accepted steps with a trusted identified model
	missed      int  // of these, steps that it mispredicted by more than it would correct
	misses      bool // the current attempt is one of the latter
}

// missedShare is the share of mispredicted steps above which a run warns.
const missedShare = 0.1

// failure counts uncorrected steps.
type failure struct {
	steps  int
	first  float64 // s
	reason string  // the last one
	now    bool    // the current attempt is uncorrected
}

// set marks the current attempt, which ends at t, as uncorrected.
func (f *failure) set(t float64, why string) {
	if f.reason == "" {
		f.first = t
	}
	f.reason, f.now = why, true
}

// check chooses the source of each subsystem's model.
func (c *modelCorrector) check(s *master.System) error {
	n := len(s.Subsystems)
	c.sys = s
	c.source, c.why = make([]JacobianSource, n), make([]string, n)
	for i, info := range s.Infos {
		if len(info.In) == 0 || len(info.Out) == 0 {
			continue // nothing to correct
		}
		c.source[i], c.why[i] = c.sourceOf(s, i)
	}
	return nil
}

// sourceOf returns the source of the model of subsystem i, or the reasons why it has none.
func (c *modelCorrector) sourceOf(s *master.System, i int) (JacobianSource, string) {
	info := s.Infos[i]
	linear, _ := master.As[master.Linearizer](s.Subsystems[i])
	_, deriver := master.As[master.DirectionalDeriver](s.Subsystems[i])
	derives := info.Caps.DirectionalDerivative && deriver
	var no [IdentifiedJacobian]string // by source
	switch {
	case !derives:
		no[0] = "it gives no directional derivatives (providesDirectionalDerivative)"
	case c.direct || info.Stateless:
	case linear == nil || len(linear.States()) == 0:
		no[0] = "it exposes no continuous states with their derivatives (ModelStructure/Derivatives)"
	}
	switch {
	case slices.Contains(s.Late, i):
		no[1] = "it is stepped after its sources"
	case c.in.Over(i) > 1:
		no[1] = "it takes one step over several macro steps"
	case c.direct:
		no[1] = "direct feedthrough cannot be determined from a whole step"
	}
	var reasons []string
	for k, reason := range no {
		source := JacobianSource(k) + DirectionalJacobian
		if c.config.Jacobian != AnyJacobian && c.config.Jacobian != source {
			continue
		}
		if reason == "" {
			return source, ""
		}
		reasons = append(reasons, reason)
	}
	return AnyJacobian, strings.Join(reasons, "; ")
}

// keptY returns the corrected output y at the last accepted point.
func (c *modelCorrector) keptY(y int) float64 { return c.then[y] }

// with returns the subsystems whose model has a source.
func (c *modelCorrector) with(source JacobianSource) []int {
	var out []int
	for i, s := range c.source {
		if s == source {
			out = append(out, i)
		}
	}
	return out
}

// doWithout changes the source of a subsystem whose capabilities failed a test, because of why.
// It reports whether the run continues.
func (c *modelCorrector) doWithout(i int, why error) bool {
	if c.config.Stop {
		return false
	}
	if c.config.Jacobian == AnyJacobian && !c.direct && !slices.Contains(c.sys.Late, i) && c.in.Over(i) == 1 {
		c.source[i] = IdentifiedJacobian
		return true
	}
	c.source[i], c.why[i] = AnyJacobian, why.Error()
	return true
}

func (c *modelCorrector) init(x *master.Exec, _ float64) error {
	c.chooseColumns(x)
	c.layOut(x.Sys)
	c.lu = num.NewLU(c.jacobian)
	m, nu := len(c.columns), len(x.W)
	c.shapes, c.active, c.e = make([]num.Shape, m), make([]bool, m), make([]float64, m)
	c.phi, c.error, c.next, c.offset = make([]float64, nu), make([]float64, nu), make([]float64, nu), make([]float64, nu)
	c.raw, c.rawThen, c.then, c.y = slices.Clone(x.Y), slices.Clone(x.Y), slices.Clone(x.Y), x.Y
	c.recorded = c.rawOutputs()
	c.missed, c.size = make([]float64, len(x.Y)), make([]magnitude, len(x.Y))
	c.factored, c.singular = false, failure{}
	c.makeModels(x)
	c.update = x.NewPhase(c.members, c.updateOf)
	c.renewal = x.NewPhase(c.with(DirectionalJacobian), c.renewOf)
	return nil
}

// chooseColumns makes a column for each connected input of a subsystem with a model.
func (c *modelCorrector) chooseColumns(x *master.Exec) {
	sys := x.Sys
	c.interfaceJacobian, c.toOffset, c.members = interfaceJacobian{}, nil, nil
	holds := sys.Holds()
	for i := range sys.Subsystems {
		if c.source[i] == AnyJacobian {
			if c.why[i] != "" {
				x.Note(fmt.Sprintf("%s: its outputs are not corrected: %s", sys.Infos[i], c.why[i]))
			}
			continue
		}
		c.members = append(c.members, i)
		for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
			if sys.SourceSubsystem(k) < 0 || holds[k] {
				continue
			}
			ny := sys.OutAt[i+1] - sys.OutAt[i]
			c.columns = append(c.columns, column{input: k, subsystem: i, s: make([]float64, ny)})
			c.toOffset = append(c.toOffset, make([]float64, ny))
		}
	}
}

// makeModels makes the models of all members.
func (c *modelCorrector) makeModels(x *master.Exec) {
	n := len(x.Sys.Subsystems)
	c.models, c.of, c.learners = make([]responder, n), make([]modelRecord, n), nil
	for _, i := range c.members {
		if c.source[i] == IdentifiedJacobian && c.config.Point != AnyPoint {
			x.Note(fmt.Sprintf("%s: model.point=%s has no effect: its model is identified from many macro steps",
				x.Sys.Infos[i], modelPoints[c.config.Point]))
		}
		if c.in.Order() > 1 && c.in.Delivery(i) == Substeps {
			x.Note(fmt.Sprintf("%s: its inputs are sampled in %d substeps; the difference from the polynomials of "+
				"order %d is not corrected",
				x.Sys.Infos[i], c.in.Substeps(), c.in.Order()))
		}
		switch c.source[i] {
		case DirectionalJacobian:
			c.models[i] = newStateSpace(x, c, i)
		case IdentifiedJacobian:
			c.in.EnableKicks()
			s := newIdentified(x, c, i)
			c.models[i], c.learners = s, append(c.learners, s)
		}
	}
}

// outdated reports whether the model of a member must be rebuilt before the next step.
func (c *modelCorrector) outdated(i int) bool {
	s, ok := c.models[i].(*stateSpace)
	return ok && s.outdated()
}

// point returns where directional derivatives are evaluated.
func (c *modelCorrector) point() ModelPoint {
	switch {
	case c.direct:
		return EndPoint
	case c.config.Point != AnyPoint:
		return c.config.Point
	}
	// On haid's oscillator with nonlinear damping, these have the smallest error at orders 0 and 1,
	// and the widest range of stability from order 2 on.
	switch c.in.Order() {
	case 0:
		return StartPoint
	case 1:
		return EndPoint
	}
	return StartNewPoint
}

// renewOf rebuilds the model of one member before the next step if necessary.
func (c *modelCorrector) renewOf(i int) error {
	if err := c.models[i].(*stateSpace).renew(); err != nil {
		return fmt.Errorf("%s: its model at t = %.12g s: %w", c.sys.Infos[i], c.t, err)
	}
	return nil
}

// span returns the length in s of the step of subsystem i that ends with the current macro step.
func (c *modelCorrector) span(i int) float64 {
	if c.in.Over(i) == 1 {
		return c.H
	}
	return c.t + c.H - c.in.BlockStart(i)
}

// sameSize reports whether two step sizes are equal up to the rounding of times.
func (c *modelCorrector) sameSize(a, b float64) bool {
	const units = 4 // in the last place of a time
	return math.Abs(a-b) <= max(sameStep*a, units*0x1p-52*math.Abs(c.t))
}

// apply sets the input offsets of the step from t to t+H.
func (c *modelCorrector) apply(t, H float64) {
	c.t, c.H = t, H
	for j := range c.columns {
		k := c.columns[j].input
		c.offset[k] = float64(c.config.Alpha*c.error[k]) / c.span(c.columns[j].subsystem)
		c.in.SetBias(k, c.offset[k])
	}
	for _, s := range c.learners {
		s.excite()
	}
}

// before rebuilds models from derivatives at the start of the step.
func (c *modelCorrector) before() error {
	if c.point() != EndPoint && slices.ContainsFunc(c.members, c.outdated) {
		return c.renewal.Run()
	}
	return nil
}

// correct corrects the outputs of the step that was just taken.
func (c *modelCorrector) correct(x *master.Exec) (evaluations int, err error) {
	copy(c.raw, x.Y)
	c.singular.now = false
	for _, i := range c.members {
		c.of[i].failed.now, c.of[i].misses = false, false
	}
	if len(c.learners) > 0 {
		c.measureMissed(x)
	}
	if err := c.update.Run(); err != nil {
		return 0, err
	}
	c.holdTogether()
	for _, i := range c.members {
		r := &c.of[i]
		evaluations += r.evaluations
		if r.failed.now && c.config.Stop && c.source[i] != IdentifiedJacobian { // identification takes time
			return evaluations, fmt.Errorf("%s: the model at t = %.12g s: %s; model.failure=uncorrected continues without it",
				x.Sys.Infos[i], c.t+c.H, r.failed.reason)
		}
	}
	if err := c.factor(x); err != nil {
		return evaluations, err
	}
	c.solve(x)
	return evaluations, nil
}

// measureMissed computes the extrapolation errors of the outputs.
func (c *modelCorrector) measureMissed(x *master.Exec) {
	clear(c.missed)
	for j := range c.columns {
		k := c.columns[j].input
		y, ok := c.sys.Source(k)
		gain := c.sys.Gain(k)
		if !ok || gain == 0 {
			continue
		}
		extrapolated := (c.atEnd(x, j) - c.in.Newest(k)) / gain
		c.missed[y] = max(c.missed[y], math.Abs(x.Y[y]-c.then[y]-extrapolated))
	}
}

// holdTogether disables identified models until all of them are trusted.
func (c *modelCorrector) holdTogether() {
	var missing *identified
	for _, s := range c.learners {
		if !s.trusted {
			missing = s
		}
	}
	for _, s := range c.learners {
		s.waits = missing != nil
		if s.waits && s.trusted {
			c.of[s.subsystem].failed.set(c.t+c.H, "it waits for the model of "+c.sys.Infos[missing.subsystem].Name)
		}
	}
}

// updateOf updates the model of one member.
func (c *modelCorrector) updateOf(i int) error {
	r := &c.of[i]
	r.evaluations = 0
	if !c.in.Due(i) {
		return nil
	}
	u, err := c.models[i].update()
	if err != nil {
		return fmt.Errorf("%s: its model at t = %.12g s: %w", c.sys.Infos[i], c.t+c.H, err)
	}
	r.evaluations = u.evaluations
	r.total += u.evaluations
	if u.why != "" {
		r.failed.set(c.t+c.H, u.why)
	}
	if u.changed {
		for j := range c.columns {
			if c.columns[j].subsystem == i {
				c.shapes[j][0] = math.NaN() // forces respond
			}
		}
	}
	return nil
}

// sameShape is the difference of coefficients up to which shapes count as equal. On a fixed grid
// they differ by rounding.
const sameShape = 1e-10

// factor updates the responses and, if they have changed, factors I − L G.
func (c *modelCorrector) factor(x *master.Exec) error {
	changed := !c.factored
	for j := range c.columns {
		col := &c.columns[j]
		i := col.subsystem
		from := x.Sys.SourceSubsystem(col.input)
		active := c.in.Due(i) && c.in.Due(from) && !c.of[i].failed.now
		var p num.Shape
		if active {
			p = c.course(j)
		}
		if active == c.active[j] && alike(&p, &c.shapes[j]) {
			continue
		}
		changed = true
		c.active[j], c.shapes[j] = active, p
		clear(col.s)
		clear(c.toOffset[j])
		if active {
			c.models[i].respond(j, &c.shapes[j], col.s, c.toOffset[j])
		}
	}
	if !changed {
		return nil
	}
	c.assemble()
	c.factored = true
	if err := c.lu.Factor(c.jacobian); err != nil {
		c.factored = false
		name := ""
		var at *num.EntryError
		if errors.As(err, &at) {
			name = " at " + x.Sys.InName(c.columns[at.Index].input)
			err = at.Err
		}
		c.singular.set(c.t+c.H, fmt.Sprintf("I − L G%s: %v", name, err))
		if c.config.Stop {
			return fmt.Errorf("the model-based corrector at t = %.12g s: %s; model.failure=uncorrected continues without it",
				c.t+c.H, c.singular.reason)
		}
	}
	return nil
}

// alike reports whether two shapes are equal up to rounding.
func alike(a, b *num.Shape) bool {
	for m := range a {
		if !(math.Abs(a[m]-b[m]) <= sameShape) {
			return false
		}
	}
	return true
}

// course returns ℓ for the input of a column.
func (c *modelCorrector) course(j int) num.Shape {
	k, i := c.columns[j].input, c.columns[j].subsystem
	if c.in.Late(i) || !c.in.Shapes(i) {
		return num.Shape{1}
	}
	return c.in.Course(k, c.t, c.span(i))
}

// solve computes the deviations e, the corrected outputs and the errors E.
func (c *modelCorrector) solve(x *master.Exec) {
	ok := c.factored
	if ok {
		for j := range c.columns {
			c.addTo(x, j, c.toOffset[j], -c.offset[c.columns[j].input])
		}
		x.CoupleSome(c.members, c.t+c.H, c.phi)
		for j := range c.columns {
			c.e[j] = 0
			if c.active[j] {
				c.e[j] = c.phi[c.columns[j].input] - c.atEnd(x, j)
			}
		}
		c.lu.Solve(c.e)
		for j := range c.columns {
			if c.active[j] {
				c.addTo(x, j, c.columns[j].s, c.e[j])
			}
		}
		if why := c.groundless(x); why != "" {
			c.singular.set(c.t+c.H, why)
			ok = false
		}
		ok = !c.mispredicted(x) && ok
	}
	if !ok {
		copy(x.Y, c.raw)
		clear(c.e)
	}
	for j := range c.columns {
		c.accumulate(j, ok && c.active[j])
	}
}

// mispredicted reports whether an identified model missed the step by more than it corrects it.
func (c *modelCorrector) mispredicted(x *master.Exec) (any bool) {
	for _, s := range c.learners {
		at := c.sys.OutAt[s.subsystem]
		r := &c.of[s.subsystem]
		r.misses = s.used() && s.misses(x.Y[at:at+s.ny], c.raw[at:at+s.ny])
		any = any || r.misses
	}
	return any
}

// groundless returns the reason why the corrected outputs are wrong; "" = none. They are not
// finite, or a model that did not predict the step moves an output by many times its largest
// value, as with an infinite slope at one point (a square root at 0). Correct models also move
// outputs that start at 0 by that much, but predict the step.
func (c *modelCorrector) groundless(x *master.Exec) string {
	const many = 10 // correct models: up to 2 (haid's oscillator, n_d = 1 … 2); square root: 50 … 150
	if num.CheckFinite(x.Y) != nil && num.CheckFinite(c.raw) == nil {
		return "the correction is not finite"
	}
	for _, i := range c.members {
		s, ok := c.models[i].(*stateSpace)
		for o := c.sys.OutAt[i]; o < c.sys.OutAt[i+1]; o++ {
			largest := max(c.size[o].largest, math.Abs(c.raw[o]), math.Abs(c.then[o]))
			if moved := math.Abs(x.Y[o] - c.raw[o]); ok && moved > many*largest && s.off[o-c.sys.OutAt[i]] > many*largest {
				return fmt.Sprintf("the model of %s does not hold over the step: it would move %s from %.4g to %.4g; "+
					"model.point=end or smaller steps may avoid this", c.sys.Infos[i].Name, c.sys.OutName(o), c.raw[o], x.Y[o])
			}
		}
	}
	return ""
}

// addTo adds the response of a column to the outputs.
func (c *modelCorrector) addTo(x *master.Exec, j int, response []float64, by float64) {
	if by == 0 {
		return
	}
	at := c.sys.OutAt[c.columns[j].subsystem]
	for o, r := range response {
		x.Y[at+o] += float64(r * by)
	}
}

// atEnd returns ũ(H) of a column without offset.
func (c *modelCorrector) atEnd(x *master.Exec, j int) float64 {
	k, i := c.columns[j].input, c.columns[j].subsystem
	if c.in.Late(i) {
		return x.U[k]
	}
	return c.in.AtEnd(k)
}

// accumulate computes E after the attempt by haid (20), where the order of ū is one more than that
// of ũ as in (24), (25).
func (c *modelCorrector) accumulate(j int, corrected bool) {
	k, i := c.columns[j].input, c.columns[j].subsystem
	c.next[k] = c.error[k]
	if c.direct || c.config.Alpha == 0 || c.in.Late(i) || c.sys.Infos[i].Stateless || !c.in.Due(i) {
		return
	}
	H := c.span(i)
	c.next[k] -= float64(H * c.offset[k])
	if c.of[i].failed.now {
		c.next[k] = 0 // without a model the inputs get no offset
	}
	if !corrected {
		return
	}
	degree := c.in.DegreeOf(k)
	times := c.in.TimesOf(k)
	start := c.t
	if c.in.Over(i) > 1 {
		start = times[0]
	}
	above := integral(degree+1, start, H, times)
	c.next[k] += float64(H*above) * c.e[j]
	if newest, ahead := c.in.Ahead(k); ahead {
		// ũ interpolates the new value of a source that was stepped before; ū one old point more.
		below := integral(degree, start, H, times)
		c.next[k] += float64(H*(above-below)) * (newest - c.in.Extrapolated(k))
	}
}

// integral returns the integral over the step, divided by its size, of the shape of a degree that is lower if there
// are few points.
func integral(degree int, start, H float64, times []float64) float64 {
	degree = min(degree, len(times))
	p, sum := num.NewShape(degree, start, H, times), 0.0
	for m, v := range p[:degree+1] {
		sum += v / float64(m+1)
	}
	return sum
}

func (c *modelCorrector) accept(*master.Exec, float64) {
	copy(c.error, c.next)
	copy(c.rawThen, c.raw)
	copy(c.then, c.y)
	for o, y := range c.raw {
		c.size[o].see(y)
	}
	if c.singular.now {
		c.singular.steps++
	}
	for _, i := range c.members {
		r := &c.of[i]
		if r.failed.now {
			r.failed.steps++
		}
		if s, ok := c.models[i].(*identified); ok && s.used() {
			r.trusted++
			if r.misses {
				r.missed++
			}
		}
		c.models[i].accept()
	}
}

// disturb marks all models as outdated after a variable was set, since the value of an input or a
// parameter may change the responses.
func (c *modelCorrector) disturb() {
	for _, m := range c.models {
		if s, ok := m.(*stateSpace); ok {
			s.stale, s.wrong = true, 0
		}
	}
}

func (c *modelCorrector) reject(float64, float64) {
	for _, i := range c.members {
		c.models[i].reject()
	}
}

func (c *modelCorrector) archive(a *master.Archive) {
	a.Section("models")
	for i, source := range c.source {
		a.Same(jacobianSources[source], "the model of "+c.sys.Infos[i].Name)
	}
	for j := range c.columns {
		a.All(c.columns[j].s)
	}
	a.All(c.toOffset, c.shapes, c.active, &c.factored, c.error, c.rawThen, c.then, c.size, c.of, &c.singular)
	c.lu.Archive(a)
	for _, i := range c.members {
		c.models[i].archive(a)
	}
}

// rawOutputs returns the outputs with a model, whose values before the correction may be recorded.
func (c *modelCorrector) rawOutputs() (out []int) {
	for i, info := range c.sys.Infos {
		for o, p := range info.Out {
			if c.source[i] != AnyJacobian && !p.Internal {
				out = append(out, c.sys.OutAt[i]+o)
			}
		}
	}
	return out
}

// quantities lists these outputs as recorded quantities.
func (c *modelCorrector) quantities() []master.Port {
	var out []master.Port
	for _, y := range c.rawOutputs() {
		i := num.Owner(c.sys.OutAt, y)
		out = append(out, master.Port{Name: "raw." + c.sys.OutName(y), Unit: c.sys.Infos[i].Out[y-c.sys.OutAt[i]].Unit})
	}
	return out
}

func (c *modelCorrector) measured(dst []float64) {
	for k, y := range c.recorded {
		dst[k] = c.rawThen[y]
	}
}

// report returns the use of the models by name of the subsystem.
func (c *modelCorrector) report() map[string]master.ModelUse {
	out := map[string]master.ModelUse{}
	for i, info := range c.sys.Infos {
		switch {
		case len(info.In) == 0 || len(info.Out) == 0:
		case c.source[i] == AnyJacobian:
			out[info.Name] = master.ModelUse{Source: "none", Reason: c.why[i]}
		default:
			u := master.ModelUse{Source: jacobianSources[c.source[i]]}
			if c.models != nil && c.models[i] != nil {
				r := &c.of[i]
				u.Uncorrected, u.Mispredicted, u.Reason = r.failed.steps, r.missed, r.failed.reason
				u.Evaluations = r.total
				if e := c.models[i].predictionError(); !math.IsNaN(e) && !math.IsInf(e, 0) {
					u.PredictionError = &e
				}
				if learner, ok := c.models[i].(*identified); ok {
					u.Order, u.SingularValues = learner.found()
				}
			}
			out[info.Name] = u
		}
	}
	return out
}

// review returns warnings about uncorrected steps.
func (c *modelCorrector) review() []string {
	var out []string
	for _, i := range c.members {
		if f := &c.of[i].failed; f.steps > 0 {
			out = append(out, fmt.Sprintf("%s: %d macro steps went uncorrected, first at t = %.6g s: %s; compare with a run "+
				"at another step size or order",
				c.sys.Infos[i], f.steps, f.first, f.reason))
		}
		if r := &c.of[i]; float64(r.missed) > missedShare*float64(r.trusted) {
			out = append(out, fmt.Sprintf("%s: its identified model misses %d of %d macro steps by more than it would correct, and these "+
				"stay uncorrected: the component is too nonlinear, switches or has noise; take smaller steps, or compare with a run by explicit",
				c.sys.Infos[i], r.missed, r.trusted))
		}
	}
	if f := &c.singular; f.steps > 0 {
		out = append(out, fmt.Sprintf("%d macro steps went uncorrected, first at t = %.6g s: %s; compare with a run "+
			"at another step size or order", f.steps, f.first, f.reason))
	}
	return out
}
