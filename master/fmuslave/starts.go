package fmuslave

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// startValues are all values set before the first step: inputs inside
// initialisation mode, everything else before it is entered (fmi2 39, 42).
type startValues struct{ before, inside batch }

// batch sets values by type.
type batch struct {
	realVR, integerVR, booleanVR, stringVR []fmi.ValueReference
	real                                   []float64
	integer                                []int32
	boolean                                []bool
	text                                   []string
}

func (b *batch) add(v *fmi.ScalarVariable, value Value) {
	switch kindOf(v.Type) {
	case master.Real:
		b.realVR, b.real = append(b.realVR, v.ValueReference), append(b.real, value.Real)
	case master.Integer:
		b.integerVR, b.integer = append(b.integerVR, v.ValueReference), append(b.integer, value.Integer)
	case master.Boolean:
		b.booleanVR, b.boolean = append(b.booleanVR, v.ValueReference), append(b.boolean, value.Boolean)
	case master.String:
		b.stringVR, b.text = append(b.stringVR, v.ValueReference), append(b.text, value.String)
	}
}

// remove takes a variable out of the batch, if it is there.
func (b *batch) remove(g signal) {
	r := g.variable.ValueReference
	switch g.kind {
	case master.Real:
		b.realVR, b.real = without(r, b.realVR, b.real)
	case master.Integer:
		b.integerVR, b.integer = without(r, b.integerVR, b.integer)
	case master.Boolean:
		b.booleanVR, b.boolean = without(r, b.booleanVR, b.boolean)
	case master.String:
		b.stringVR, b.text = without(r, b.stringVR, b.text)
	}
}

func without[T any](r fmi.ValueReference, refs []fmi.ValueReference, values []T) ([]fmi.ValueReference, []T) {
	k := slices.Index(refs, r)
	if k < 0 {
		return refs, values
	}
	return slices.Delete(refs, k, k+1), slices.Delete(values, k, k+1)
}

func (b *batch) set(in *fmi.Instance) error {
	if err := in.SetReal(b.realVR, b.real); err != nil {
		return err
	}
	if err := in.SetInteger(b.integerVR, b.integer); err != nil {
		return err
	}
	if err := in.SetBoolean(b.booleanVR, b.boolean); err != nil {
		return err
	}
	return in.SetString(b.stringVR, b.text)
}

// Settable tells whether a start value of the variable can be set: it is an
// input, or not constant and its initial is exact or approx (fmi2 39, ssp 38).
func Settable(v *fmi.ScalarVariable) bool {
	return v.Causality == fmi.Input ||
		v.Causality != fmi.Independent && v.Variability != fmi.Constant && (v.Initial == fmi.Exact || v.Initial == fmi.Approx)
}

// documentedStart gives the start value of the document.
func documentedStart(v *fmi.ScalarVariable) Value {
	return Value{Variable: v.Name, Real: v.StartReal, Integer: v.StartInteger, Boolean: v.StartBoolean, String: v.StartString}
}

// planStarts collects what is set: values given, and the first values of inputs
// that the master drives. All other documented starts are left to the FMU, unless
// a quirk wants them set (fmi2 42). Of several names of one variable,
// a value or start of any of them counts.
func (s *Slave) planStarts() error {
	d := s.config.FMU.Description
	given := make(map[alias]Value, len(s.config.Starts))
	for _, value := range s.config.Starts {
		v, ok := d.Variable(value.Variable)
		switch {
		case !ok:
			return fmt.Errorf("%s: the FMU has no variable %q to set", s.info.Name, value.Variable)
		case !Settable(v):
			return fmt.Errorf("%s: variable %q cannot be set: its causality is %s, its variability %s, its initial %s",
				s.info.Name, v.Name, v.Causality, v.Variability, v.Initial)
		}
		given[aliasOf(v)] = value
	}
	by := make(map[alias]*fmi.ScalarVariable)    // what sets it: an input, if one of its names is one
	start := make(map[alias]*fmi.ScalarVariable) // what documents its start, likewise
	prefer := func(list map[alias]*fmi.ScalarVariable, v *fmi.ScalarVariable) {
		if have := list[aliasOf(v)]; have == nil || have.Causality != fmi.Input && v.Causality == fmi.Input {
			list[aliasOf(v)] = v
		}
	}
	for i := range d.Variables {
		v := &d.Variables[i]
		if Settable(v) {
			prefer(by, v)
		}
		if v.HasStart {
			prefer(start, v)
		}
	}
	transferred := make(map[alias]bool, len(s.params))
	for _, g := range s.params {
		transferred[aliasOf(g.variable)] = true
	}
	for i := range d.Variables {
		v := &d.Variables[i]
		id := aliasOf(v)
		if by[id] != v {
			continue
		}
		value, override := given[id]
		if !override {
			documents := start[id]
			if documents == nil {
				continue
			}
			value = documentedStart(documents)
			driven := v.Causality == fmi.Input && s.drives(v)
			if v.Causality == fmi.Input && !driven || v.Causality == fmi.Parameter && v.Initial == fmi.Exact && !transferred[id] {
				s.documented = append(s.documented, expectation{v, value})
			}
			if q := s.config.Quirks; !driven && !q.Has(SetStarts) && (v.Causality != fmi.Input || !q.Has(InputsBeforeInit)) {
				continue
			}
		} else if s.expects(v) {
			s.given = append(s.given, expectation{v, value})
		}
		if v.Causality == fmi.Input {
			s.starts.inside.add(v, value)
			s.stage(v, value)
		} else {
			s.starts.before.add(v, value)
		}
	}
	return nil
}

// stage makes a start value that of the inputs which are the variable, by this
// or another name.
func (s *Slave) stage(v *fmi.ScalarVariable, value Value) {
	same := func(g signal) bool {
		return g.variable.ValueReference == v.ValueReference && g.kind == kindOf(v.Type)
	}
	for k, in := range s.in {
		if same(in) {
			s.info.StartIn[k] = value.Real
		}
	}
	var at [master.String + 1]int // place among the values of the kind
	start := s.info.StartDiscreteIn
	for _, in := range s.discreteIn {
		k := at[in.kind]
		at[in.kind]++
		if !same(in) {
			continue
		}
		switch in.kind {
		case master.Integer:
			start.Integer[k] = value.Integer
		case master.Boolean:
			start.Boolean[k] = value.Boolean
		case master.String:
			start.String[k] = value.String
		}
	}
}
