package fmuslave

import (
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

var _ master.Tunable = (*Slave)(nil)

// Tunables lists the tunable parameters (fmi2 19) and the inputs that the master does not drive.
func (s *Slave) Tunables() []master.Port { return s.tunablePorts }

// planTunables finds what may be set between steps.
func (s *Slave) planTunables() {
	d := s.config.FMU.Description
	for k := range d.Variables {
		v := &d.Variables[k]
		free := v.Causality == description.Input && !s.drives(v) && (v.Clocks == nil || !s.config.Options.EventMode)
		if free || v.Causality == description.Parameter && v.Variability == description.Tunable && Settable(v) {
			s.tunables = append(s.tunables, signal{variable: v, kind: kindOf(v.Type)})
		}
	}
	s.tunablePorts = ports(s.tunables)
}

// drives reports whether the master drives an input, by any of its names.
func (s *Slave) drives(v *description.ScalarVariable) bool {
	for _, list := range [][]signal{s.in, s.discreteIn} {
		for _, g := range list {
			if g.kind == kindOf(v.Type) && g.variable.ValueReference == v.ValueReference {
				return true
			}
		}
	}
	return false
}

// SetTunable sets a parameter or an input between two steps.
func (s *Slave) SetTunable(k int, v master.Scalar) error {
	value := Value{Real: v.Real, Integer: v.Integer, Boolean: v.Boolean, String: v.Text}
	return s.set(s.instance, valueList{{s.tunables[k].variable, value}})
}
