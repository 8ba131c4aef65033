package fmuslave

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// linearization lists the unknowns and knowns of the calls for directional derivatives. The derivatives of
// the states come first among the unknowns, the outputs last, and variables that are both between them, so
// that either can be requested alone; among the knowns the inputs come before the states.
type linearization struct {
	states         []master.StateInfo
	unknown, known []description.ValueReference
	rates          int                          // unknowns that are derivatives of states
	outputs        int                          // index of the first unknown that is an output
	inputs         int                          // knowns that are inputs
	seed, slope    []float64                    // over known and unknown
	read           []description.ValueReference // states, then their derivatives
	reader         *fmi.Stepper                 // reads them; nil = not used yet
	rateAt, outAt  []slopeAt                    // of each derivative and output
	rateOn, outOn  [][]int                      // columns that each depends on (master.JacobianPattern)

	refused [2]error // by trial: why requests are refused

	// The state of the FMU before the first request at this communication point, if requests displace
	// it, and whether there was one.
	before    *fmi.FMUState
	displaced bool
}

// slopeAt is the place of a slope. A variable that is a state itself depends on that state and no input,
// which needs no call; a calculated parameter depends on nothing.
type slopeAt struct {
	unknown, state int // -1 = none
	still          bool
}

func (a slopeAt) of(slope, dx []float64) float64 {
	switch {
	case a.unknown >= 0:
		return slope[a.unknown]
	case a.state >= 0 && dx != nil:
		return dx[a.state]
	case a.state >= 0, a.still:
		return 0
	}
	return math.NaN()
}

// continuousStates returns the states of ModelStructure/Derivatives, each once, and their derivatives
// (fmi2 26).
func continuousStates(d *description.ModelDescription) (rates, states []*description.ScalarVariable) {
	seen := map[description.ValueReference]bool{}
	for _, e := range d.Derivatives {
		rate := &d.Variables[e.Index-1]
		if rate.Derivative == 0 {
			continue
		}
		x := &d.Variables[rate.Derivative-1]
		if seen[x.ValueReference] {
			continue
		}
		seen[x.ValueReference] = true
		rates, states = append(rates, rate), append(states, x)
	}
	return rates, states
}

// planLinearization lists states, unknowns and knowns. Between steps the unknowns may be Real outputs and
// the derivatives in ModelStructure, the knowns Real inputs and continuous states (fmi2 60): other
// monitored variables have no slope.
func (s *Slave) planLinearization() {
	l := &s.linear
	*l = linearization{}
	if !s.info.Caps.DirectionalDerivative {
		return
	}
	rates, states := continuousStates(s.config.FMU.Description)
	for i, x := range states {
		info := master.StateInfo{Name: x.Name, Derivative: rates[i].Name}
		if x.Real.Nominal != nil {
			info.Nominal = *x.Real.Nominal
		}
		l.states = append(l.states, info)
	}
	s.planUnknowns(rates, states)
	s.planDependencies(rates, states)
	stateRefs := valueReferences(states)
	l.inputs = len(s.in)
	l.known = slices.Concat(references(s.in, master.Real), stateRefs)
	l.read = slices.Concat(stateRefs, valueReferences(rates))
	l.seed, l.slope = make([]float64, len(l.known)), make([]float64, len(l.unknown))
}

// planUnknowns lists the unknowns, each once, and where the slope of each derivative and output is found.
func (s *Slave) planUnknowns(rates, states []*description.ScalarVariable) {
	l := &s.linear
	stateAt := make(map[description.ValueReference]int, len(states))
	for i, x := range states {
		stateAt[x.ValueReference] = i
	}
	isOut := make(map[description.ValueReference]bool, len(s.out))
	for _, g := range s.out {
		isOut[g.variable.ValueReference] = true
	}
	unknownAt := map[description.ValueReference]int{}
	add := func(v *description.ScalarVariable) {
		r := v.ValueReference
		_, state := stateAt[r]
		if _, listed := unknownAt[r]; !listed && !state {
			unknownAt[r] = len(l.unknown)
			l.unknown = append(l.unknown, r)
		}
	}
	for _, v := range rates {
		if !isOut[v.ValueReference] {
			add(v)
		}
	}
	l.outputs = len(l.unknown)
	for _, v := range rates {
		add(v)
	}
	l.rates = len(l.unknown)
	for _, g := range s.out {
		if g.variable.Causality == description.Output {
			add(g.variable)
		}
	}
	at := func(v *description.ScalarVariable) slopeAt {
		a := slopeAt{-1, -1, v.Causality == description.CalculatedParameter}
		if k, ok := unknownAt[v.ValueReference]; ok {
			a.unknown = k
		}
		if k, ok := stateAt[v.ValueReference]; ok {
			a.state = k
		}
		return a
	}
	for _, v := range rates {
		l.rateAt = append(l.rateAt, at(v))
	}
	for _, g := range s.out {
		l.outAt = append(l.outAt, at(g.variable))
	}
}

// planDependencies lists the columns that each derivative and output depends on.
func (s *Slave) planDependencies(rates, states []*description.ScalarVariable) {
	l, d := &s.linear, s.config.FMU.Description
	columns := map[*description.ScalarVariable]int{}
	for k, x := range states {
		columns[x] = k
	}
	for k, g := range s.in {
		columns[g.variable] = len(states) + k
	}
	for k, v := range rates {
		l.rateOn = append(l.rateOn, dependencies(d, v, columns, l.rateAt[k]))
	}
	for k, g := range s.out {
		l.outOn = append(l.outOn, dependencies(d, g.variable, columns, l.outAt[k]))
	}
}

func valueReferences(list []*description.ScalarVariable) []description.ValueReference {
	out := make([]description.ValueReference, len(list))
	for i, v := range list {
		out[i] = v.ValueReference
	}
	return out
}

// dependencies returns the columns that an unknown depends on by ModelStructure (fmi2 27); nil = all.
func dependencies(d *description.ModelDescription, v *description.ScalarVariable,
	columns map[*description.ScalarVariable]int, at slopeAt) []int {
	on := []int{}
	switch {
	case at.unknown < 0 && at.state >= 0:
		return append(on, at.state)
	case at.unknown < 0:
		return on
	}
	for _, list := range [][]description.Unknown{d.Derivatives, d.Outputs} {
		for _, u := range list {
			if &d.Variables[u.Index-1] != v || !u.Declared {
				continue
			}
			for _, index := range u.Dependencies {
				if k, known := columns[&d.Variables[index-1]]; known {
					on = append(on, k)
				}
			}
			slices.Sort(on)
			return on
		}
	}
	return nil
}

var (
	_ master.StateReader     = (*Slave)(nil)
	_ master.JacobianPattern = (*Slave)(nil)
)

// Dependencies returns the dependencies that ModelStructure declares.
func (s *Slave) Dependencies() (rates, outputs [][]int) { return s.linear.rateOn, s.linear.outOn }

// States lists the continuous states of ModelStructure/Derivatives; none without directional derivatives.
func (s *Slave) States() []master.StateInfo { return s.linear.states }

// ReadStates reads all states and derivatives in one call of the FMU.
func (s *Slave) ReadStates(x, xdot []float64) error {
	l := &s.linear
	if len(l.read) == 0 {
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	if err := s.refresh(); err != nil {
		return err
	}
	if l.reader == nil || l.reader.Instance() != s.instance {
		reader, err := s.instance.NewStepper(fmi.StepPlan{RealOut: l.read})
		if err != nil {
			return err
		}
		l.reader = reader
	}
	if err := l.reader.Read(); err != nil {
		return err
	}
	copy(x, l.reader.RealOut[:len(l.states)])
	copy(xdot, l.reader.RealOut[len(l.states):])
	return nil
}

// Linearize computes the derivatives in one call of the FMU; variables that are states need none. The
// first call tests on separate instances what the FMU accepts, and how requests affect it.
func (s *Slave) Linearize(dx, du, dxdot, dy []float64) error {
	l := &s.linear
	switch {
	case !s.info.Caps.DirectionalDerivative:
		return fmt.Errorf("%w: the FMU provides no directional derivatives", master.ErrCapability)
	case s.instance.State() == fmi.StateInitialization:
		return fmt.Errorf("%w: there are no derivatives with respect to states before the end of the initialisation", master.ErrCapability)
	case dxdot == nil && dy == nil:
		return nil
	}
	first, last, from, to := 0, len(l.known), 0, len(l.unknown)
	if du != nil {
		copy(l.seed[:l.inputs], du)
	} else {
		first = l.inputs
	}
	if dx != nil {
		copy(l.seed[l.inputs:], dx)
	} else {
		last = l.inputs
	}
	if dxdot == nil {
		from = l.outputs
	}
	if dy == nil {
		to = l.rates
	}
	if err := s.slopes(from, to, first, last); err != nil {
		return err
	}
	if dxdot != nil {
		for i, a := range l.rateAt {
			dxdot[i] = a.of(l.slope, dx)
		}
	}
	if dy != nil {
		for k, a := range l.outAt {
			dy[k] = a.of(l.slope, dx)
		}
	}
	return nil
}

// slopes requests the derivatives of unknowns [from, to) by knowns [first, last).
func (s *Slave) slopes(from, to, first, last int) error {
	l := &s.linear
	if from == to {
		return nil
	}
	which := 0
	if from < l.outputs || last > l.inputs {
		which = 1
	}
	displaces, refused := s.tryOut(which)
	if refused != nil {
		return refused
	}
	// Pending reads after a restore come first, because the request may displace inputs until they are set
	// again.
	if err := s.refresh(); err != nil {
		return err
	}
	if displaces && !l.displaced {
		var err error
		if l.before, err = s.instance.GetFMUState(l.before); err != nil {
			return err
		}
		l.displaced = true
	}
	err := s.instance.GetDirectionalDerivative(l.unknown[from:to], l.known[first:last], l.seed[first:last], l.slope[from:to])
	if err == nil {
		return nil
	}
	if settled := s.settle(); settled != nil {
		return errors.Join(err, settled)
	}
	if st := s.instance.State(); st == fmi.StateStepComplete || st == fmi.StateEventMode {
		err = fmt.Errorf("%w: %w", master.ErrCapability, err) // the FMU can go on without them
	}
	return err
}

// settle restores an FMU that requests for derivatives have displaced. It is called when the FMU is used
// again: one restore serves all earlier requests.
func (s *Slave) settle() error {
	if !s.linear.displaced {
		return nil
	}
	s.linear.displaced = false
	s.stringsDirty = len(s.stringIn) > 0
	return s.instance.SetFMUState(s.linear.before)
}

// SendInputs sends the staged Real inputs.
func (s *Slave) SendInputs() error {
	if err := s.settle(); err != nil {
		return err
	}
	return s.instance.SetReal(s.initPlan.RealIn, s.stepper.RealIn[:len(s.in)])
}

// DirectionalDerivative computes dy = ∂y/∂u · du after the initialisation.
func (s *Slave) DirectionalDerivative(du, dy []float64) error { return s.Linearize(nil, du, nil, dy) }

// InitialSlopes is DirectionalDerivative in the initialisation. The request contains no outputs with an exact
// start, whose derivative is 0; that of variables that are only monitored is NaN.
func (s *Slave) InitialSlopes(du, dy []float64) error {
	asked := &s.initUnknowns
	if err := s.instance.GetDirectionalDerivative(asked.vr, s.initPlan.RealIn[:len(s.in)], du, asked.values); err != nil {
		return err
	}
	for k := range dy {
		dy[k] = 0
		if k >= s.coupled {
			dy[k] = math.NaN()
		}
	}
	for k, o := range asked.out {
		dy[o] = asked.values[k]
	}
	return nil
}

// unknowns lists the Real outputs with directional derivatives.
type unknowns struct {
	out    []int // indices into the Real outputs
	vr     []description.ValueReference
	values []float64 // scratch
}

func (u *unknowns) add(out int, vr description.ValueReference) {
	u.out, u.vr, u.values = append(u.out, out), append(u.vr, vr), append(u.values, 0)
}
