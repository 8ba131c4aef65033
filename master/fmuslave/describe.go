package fmuslave

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// signal is a variable and the kind of its port.
type signal struct {
	variable *description.ScalarVariable
	kind     master.Kind
}

// kindOf returns the kind of a type; an enumeration is an Integer.
func kindOf(t description.BaseType) master.Kind {
	switch t {
	case description.Integer, description.Enumeration:
		return master.Integer
	case description.Boolean:
		return master.Boolean
	case description.String:
		return master.String
	}
	return master.Real
}

// describe fills in the master's description of the FMU from modelDescription.xml.
func (s *Slave) describe(c *Config) error {
	d := c.FMU.Description
	cs := d.CoSimulation
	q := c.Quirks
	s.info = master.Info{
		Name: c.Name, Source: filepath.Base(c.FMU.Path), Stateless: c.Stateless || d.Stateless(),
		Caps: master.Caps{
			VariableStep:          cs.CanHandleVariableCommunicationStepSize && !q.Has(ConstantH),
			InputDerivatives:      cs.CanInterpolateInputs && !q.Has(NoInputDerivatives),
			OutputDerivatives:     cs.MaxOutputDerivativeOrder,
			SaveState:             cs.CanGetAndSetFMUState && !q.Has(NoRollback),
			SerializeState:        cs.CanSerializeFMUState && !q.Has(NoRollback),
			DirectionalDerivative: cs.ProvidesDirectionalDerivative && !q.Has(NoDirectionalDerivatives),
		},
	}
	_, elsewhere := c.Options.Launcher.(fmi.Elsewhere)
	if s.info.Caps.Restarts = c.Restarts > 0; elsewhere && !c.Aside && c.Restarts == 0 {
		// The machine may be lost, and then a restart is better than none.
		s.info.Caps.Restarts = s.info.Caps.SaveState && s.info.Caps.SerializeState
		s.info.Caps.UntriedRestarts = s.info.Caps.Restarts
	}
	if c.Restarts > 0 && (c.Options.Launcher == nil || !s.info.Caps.SaveState || !s.info.Caps.SerializeState) {
		return fmt.Errorf("%s: %w: a component is restarted only if it runs in a process of its own and serialises its state "+
			"(canGetAndSetFMUstate and canSerializeFMUstate)", &s.info, master.ErrCapability)
	}
	ins, err := s.signals(d, c.Inputs, "input", description.Input)
	if err != nil {
		return err
	}
	if err := s.driveOnce(ins); err != nil {
		return err
	}
	if s.config.Options.EventMode, err = s.usesEvents(ins); err != nil {
		return err
	}
	outs, err := s.signals(d, c.Outputs, "output", description.Output, description.CalculatedParameter)
	if err != nil {
		return err
	}
	watch, err := s.signals(d, c.Watch, "")
	if err != nil {
		return err
	}
	params, err := s.signals(d, c.Params, "parameter", description.Parameter)
	if err != nil {
		return err
	}
	for _, g := range params {
		if !Settable(g.variable) {
			return fmt.Errorf("%s: parameter %q cannot be set: its variability is %s, its initial %s",
				s.info.Name, g.variable.Name, g.variable.Variability, g.variable.Initial)
		}
	}
	for _, g := range slices.Concat(ins, outs, watch) {
		if s.config.Options.EventMode && g.kind == master.String && g.variable.Clocks != nil {
			return fmt.Errorf("%s: %q belongs to a Clock, and only numbers of Clocks are exchanged and recorded (fmi3 20); "+
				"choose other variables (--record)", s.info.Name, g.variable.Name)
		}
	}
	s.info.Params, s.params = ports(params), params
	s.info.In, s.in, s.info.DiscreteIn, s.discreteIn = split(ins, c.Integral)
	s.info.Out, s.out, s.info.DiscreteOut, s.discreteOut = split(outs, nil)
	if err := s.monitor(d, c.Monitor); err != nil {
		return err
	}
	s.info.Watch, s.watch = ports(watch), watch
	discrete := master.NewValues(s.info.DiscreteIn)
	s.info.StartIn, s.info.StartDiscreteIn = make([]float64, len(s.in)), &discrete
	s.describeDependencies(d, q)
	return nil
}

// usesEvents reports whether the FMU is run in event mode (fmi3 19).
func (s *Slave) usesEvents(driven []signal) (bool, error) {
	d := s.config.FMU.Description
	asked := s.config.Quirks.Has(EventMode)
	if !d.CoSimulation.HasEventMode {
		if asked {
			return false, fmt.Errorf("%s: %w: the FMU has no event mode (hasEventMode of FMI 3.0); do without the quirk "+
				"eventMode",
				&s.info, master.ErrCapability)
		}
		return false, nil
	}
	return asked || d.Ticked() || slices.ContainsFunc(driven, func(g signal) bool {
		return g.variable.Variability == description.Discrete
	}), nil
}

// NextEvent returns the time of the first event after t that the FMU has announced, s; +Inf = none.
func (s *Slave) NextEvent(t float64) float64 { return s.instance.NextEvent(t) }

// describeDependencies fills in the dependencies of outputs on inputs.
func (s *Slave) describeDependencies(d *description.ModelDescription, q Quirk) {
	outs, ins := slices.Concat(s.out, s.discreteOut), slices.Concat(s.in, s.discreteIn)
	unknowns := d.InitialUnknowns
	if q.Has(IgnoreInitialUnknowns) {
		unknowns = nil
	}
	s.info.Step = feedthrough(d, outs, ins, slices.Concat(d.Derivatives, d.Outputs), false)
	s.info.Init = feedthrough(d, outs, ins, unknowns, true)
	_, states := continuousStates(d)
	for o := s.coupled; o < len(s.out); o++ {
		s.info.Init.On[o], s.info.Init.Assumed[o] = nil, false // not read in initialisation mode
		r := s.out[o].variable.ValueReference
		if slices.ContainsFunc(states, func(x *description.ScalarVariable) bool { return x.ValueReference == r }) {
			s.info.Step.On[o], s.info.Step.Assumed[o] = nil, false
		}
	}
}

// monitor adds monitored variables that are not outputs here as internal ports after the outputs, and sets
// the levels of all of them.
func (s *Slave) monitor(d *description.ModelDescription, list []Monitored) error {
	s.coupled = len(s.out)
	given := map[string]master.Level{}
	for _, m := range list {
		found, err := s.signals(d, []string{m.Variable}, "")
		if err != nil {
			return err
		}
		v := found[0].variable
		refused := func(why string, is any) error {
			return fmt.Errorf("%s: variable %q cannot be monitored: its %s", s.info.Name, v.Name, fmt.Sprintf(why, is))
		}
		switch {
		case v.Type != description.Real:
			return refused("type is %s; only a Real has an error that can be measured", v.Type)
		case v.Causality != description.Local && v.Causality != description.Output:
			return refused("causality is %s; choose an output or a local variable", v.Causality)
		case v.Variability != description.Continuous:
			return refused("variability is %s; choose one that is continuous", v.Variability)
		}
		if m.Level != master.NoLevel {
			given[v.Name] = m.Level
		}
		if !slices.ContainsFunc(s.out, func(g signal) bool { return g.variable == v }) {
			s.out = append(s.out, found[0])
		}
	}
	internal := ports(s.out[s.coupled:])
	for k := range internal {
		internal[k].Internal = true
	}
	s.info.Out = append(s.info.Out, internal...)
	found := newLevels(d)
	for k, g := range s.out {
		level, ok := given[g.variable.Name]
		if !ok {
			level = found.level(g.variable.ValueReference)
		}
		s.info.Out[k].Level = level
	}
	return nil
}

// signals looks up the named variables, which must have one of the causalities; none = any causality.
func (s *Slave) signals(d *description.ModelDescription, names []string, what string,
	causalities ...description.Causality) ([]signal, error) {
	var out []signal
	for _, name := range names {
		v, ok := d.Variable(name)
		if !ok {
			return nil, fmt.Errorf("%s: the FMU has no variable %q", s.info.Name, name)
		}
		if len(causalities) > 0 && !slices.Contains(causalities, v.Causality) {
			return nil, fmt.Errorf("%s: variable %q is not usable as %s: its causality is %s", s.info.Name, name, what, v.Causality)
		}
		out = append(out, signal{v, kindOf(v.Type)})
	}
	return out, nil
}

// alias identifies a variable that may have several names.
type alias struct {
	kind master.Kind
	vr   description.ValueReference
}

func aliasOf(v *description.ScalarVariable) alias { return alias{kindOf(v.Type), v.ValueReference} }

// Same reports whether v and w are names of one variable.
func Same(v, w *description.ScalarVariable) bool { return aliasOf(v) == aliasOf(w) }

// driveOnce fails if two inputs are one variable, because each would overwrite the other (fmi2 67).
func (s *Slave) driveOnce(ins []signal) error {
	names := make(map[alias]string, len(ins))
	for _, g := range ins {
		id := alias{g.kind, g.variable.ValueReference}
		if other, twice := names[id]; twice {
			return fmt.Errorf("%s: the inputs %q and %q are one variable under two names (valueReference %d) and "+
				"cannot both be driven; connect one of them",
				s.info.Name, other, g.variable.Name, id.vr)
		}
		names[id] = g.variable.Name
	}
	return nil
}

func ports(list []signal) []master.Port {
	var out []master.Port
	for _, g := range list {
		p := master.Port{Name: g.variable.Name, Unit: g.variable.Real.Unit, Kind: g.kind}
		switch store := g.variable.Storage; g.kind {
		case master.Integer:
			p.Low, p.High = g.variable.Range()
		case master.String:
			p.Binary = store == description.StoreBinary
		case master.Real:
			p.Single = store == description.StoreFloat32
			p.Discrete = g.variable.Variability != description.Continuous
			if n := g.variable.Real.Nominal; n != nil {
				p.Nominal = *n
			}
		}
		out = append(out, p)
	}
	return out
}

// split separates the Reals, which are extrapolated, from the other signals, among them those that take an Integer.
func split(list []signal, integral []string) (reals []master.Port, r []signal, others []master.Port, o []signal) {
	for _, g := range list {
		if g.kind == master.Real && !slices.Contains(integral, g.variable.Name) {
			r = append(r, g)
		} else {
			o = append(o, g)
		}
	}
	return ports(r), r, ports(o), o
}

// feedthrough reads the dependencies of outputs on inputs from the entries of ModelStructure (fmi2 26–29).
// An output without an entry, or whose entry has no attribute dependencies, is assumed to depend on all
// inputs. One with an exact start value depends on none during initialisation, and a calculated parameter
// on none after it.
func feedthrough(d *description.ModelDescription, outs, ins []signal, entries []description.Unknown, init bool) master.Feedthrough {
	inputOf := make(map[*description.ScalarVariable]int, len(ins))
	for k, in := range ins {
		inputOf[in.variable] = k
	}
	entryOf := make(map[*description.ScalarVariable]*description.Unknown, len(entries))
	for e := range entries {
		entryOf[&d.Variables[entries[e].Index-1]] = &entries[e]
	}
	f := master.Feedthrough{On: make([][]int, len(outs)), Assumed: make([]bool, len(outs))}
	for o, out := range outs {
		entry := entryOf[out.variable]
		switch {
		case init && out.variable.Initial == description.Exact, !init && out.variable.Causality == description.CalculatedParameter:
		case entry == nil || !entry.Declared:
			f.Assumed[o] = len(ins) > 0
			for k := range ins {
				f.On[o] = append(f.On[o], k)
			}
		default:
			for _, index := range entry.Dependencies {
				if k, ok := inputOf[&d.Variables[index-1]]; ok {
					f.On[o] = append(f.On[o], k)
				}
			}
			slices.Sort(f.On[o])
		}
	}
	return f
}
