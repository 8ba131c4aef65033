package fmuslave

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// startValues holds all values set before the first step: inputs inside initialisation mode, other variables
// before it is entered (fmi2 39, 42).
type startValues struct{ before, inside valueList }

// valueList is a list of values that are set together.
type valueList []expectation

func (b *valueList) add(v *description.ScalarVariable, value Value) {
	*b = append(*b, expectation{v, value})
}

// remove removes a variable.
func (b *valueList) remove(v *description.ScalarVariable) {
	*b = slices.DeleteFunc(*b, func(x expectation) bool { return aliasOf(x.variable) == aliasOf(v) })
}

// of returns the values of one kind.
func (b valueList) of(kind master.Kind) valueList {
	return slices.DeleteFunc(slices.Clone(b), func(x expectation) bool { return kindOf(x.variable.Type) != kind })
}

// set sets the values of a list. After Discard, which does not put the FMU into an error state, the values
// are set one by one to find the refused one.
func (s *Slave) set(in *fmi.Instance, b valueList) error {
	for kind := master.Real; kind <= master.String; kind++ {
		some := b.of(kind)
		err := some.send(in, kind)
		var refused *fmi.StatusError
		if len(some) > 1 && errors.As(err, &refused) && refused.Status == fmi.StatusDiscard {
			for k := range some {
				if one := some[k:k+1].send(in, kind); one != nil {
					err, some = one, some[k:k+1]
					break
				}
			}
		}
		if err != nil {
			return s.refusal(err, some)
		}
	}
	return nil
}

// send sets values of one kind in one call.
func (b valueList) send(in *fmi.Instance, kind master.Kind) error {
	if len(b) == 0 {
		return nil
	}
	var vr []description.ValueReference
	var reals []float64
	var integers []int64
	var booleans []bool
	var texts []string
	for _, x := range b {
		vr = append(vr, x.variable.ValueReference)
		reals, integers = append(reals, x.value.Real), append(integers, x.value.Integer)
		booleans, texts = append(booleans, x.value.Boolean), append(texts, x.value.String)
	}
	switch kind {
	case master.Real:
		return in.SetReal(vr, reals)
	case master.Integer:
		return in.SetInteger(vr, integers)
	case master.Boolean:
		return in.SetBoolean(vr, booleans)
	}
	return in.SetString(vr, texts)
}

// refusal adds the values of a list to the error of a setter.
func (s *Slave) refusal(err error, b valueList) error {
	var refused *fmi.StatusError
	if !errors.As(err, &refused) {
		return err
	}
	set, ok := refused.Sets()
	if !ok {
		return err
	}
	const shown = 5
	var list []string
	undesired := false
	for _, x := range b.of(kindOf(set)) {
		list = append(list, x.variable.Name+" = "+s.text(x.variable, x.value))
		undesired = undesired || s.config.Quirks.Has(SetStarts) && !s.drives(x.variable) &&
			!slices.ContainsFunc(s.config.Starts, func(given Value) bool { return given.Variable == x.variable.Name })
	}
	which, more := "", ""
	if n := len(list); n > shown {
		list, more = list[:shown], fmt.Sprintf(" and %d more", n-shown)
	}
	if len(list) > 1 {
		which = "one or more of "
	}
	err = fmt.Errorf("%w; the FMU refuses %s%s%s", err, which, strings.Join(list, ", "), more)
	if undesired {
		err = fmt.Errorf("%w; the quirk setStarts sets documented start values that were not given: run without it", err)
	}
	return err
}

// refusedInput is refusal for the staged inputs.
func (s *Slave) refusedInput(err error) error {
	var refused *fmi.StatusError
	if !errors.As(err, &refused) {
		return err
	}
	u := s.Staged()
	var b valueList
	for k, g := range s.in {
		b.add(g.variable, Value{Real: u.Real[k]})
	}
	var at [master.String + 1]int
	for _, g := range s.discreteIn {
		var value Value
		switch k := at[g.kind]; g.kind {
		case master.Real:
			value.Real = u.Discrete.Real[k]
		case master.Integer:
			value.Integer = u.Discrete.Integer[k]
		case master.Boolean:
			value.Boolean = u.Discrete.Boolean[k]
		case master.String:
			value.String = u.Discrete.String[k]
		}
		at[g.kind]++
		b.add(g.variable, value)
	}
	return s.refusal(err, b)
}

// Settable reports whether a start value of the variable can be set: it is an input, or it is not constant
// and its initial is exact or approx (fmi2 39, ssp 38). Structural parameters of FMI 3.0 are set when the FMU is
// opened.
func Settable(v *description.ScalarVariable) bool {
	return v.Causality == description.Input ||
		v.Causality != description.Independent && v.Causality != description.StructuralParameter &&
			v.Variability != description.Constant &&
			(v.Initial == description.Exact || v.Initial == description.Approx)
}

// documentedStart returns the start value in modelDescription.xml.
func documentedStart(v *description.ScalarVariable) Value {
	return Value{Variable: v.Name, Real: v.StartReal, Integer: v.StartInteger, Boolean: v.StartBoolean, String: v.StartString}
}

// planStarts collects the values to set: given ones, and the first values of inputs that the master drives.
// All other documented starts are left to the FMU, unless a quirk sets them (fmi2 42). Of several names of
// one variable, a value or start of any of them counts.
func (s *Slave) planStarts() error {
	given, err := s.givenStarts()
	if err != nil {
		return err
	}
	d := s.config.FMU.Description
	settable := namesOf(d, Settable)
	documented := namesOf(d, func(v *description.ScalarVariable) bool { return v.HasStart })
	var errs []error
	lacks := map[string]bool{}
	for i := range d.Variables {
		v := &d.Variables[i]
		id := aliasOf(v)
		if settable[id] != v {
			continue
		}
		value, isGiven := given[id]
		if isGiven {
			if s.expects(v) {
				s.given = append(s.given, expectation{v, value})
			}
		} else {
			by := documented[id]
			if a := v.Array; by == nil && a != nil && a.Resized && !s.drives(v) && !s.fed(v) && !lacks[a.Name] {
				lacks[a.Name] = true
				errs = append(errs, fmt.Errorf("%s: %s has no value: with %s, %s has the sizes %d, and the start values in "+
					"modelDescription.xml are for others; set all its %d elements", s.info.Name, v.Name, s.config.FMU.Sizes(),
					a.Name, a.Sizes, a.Len()))
			}
			if by == nil {
				continue
			}
			value = documentedStart(by)
			if s.comparesStart(v) {
				s.documented = append(s.documented, expectation{v, value})
			}
			if !s.setsStart(v) {
				continue
			}
		}
		if v.Causality == description.Input {
			s.starts.inside.add(v, value)
			s.stage(v, value)
		} else {
			s.starts.before.add(v, value)
		}
	}
	return errors.Join(errs...)
}

// givenStarts returns the given values by variable.
func (s *Slave) givenStarts() (map[alias]Value, error) {
	given := make(map[alias]Value, len(s.config.Starts))
	for _, value := range s.config.Starts {
		v, ok := s.config.FMU.Description.Variable(value.Variable)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: the FMU has no variable %q to set", s.info.Name, value.Variable)
		case !Settable(v):
			return nil, fmt.Errorf("%s: variable %q cannot be set: its causality is %s, its variability %s, its initial %s",
				s.info.Name, v.Name, v.Causality, v.Variability, v.Initial)
		}
		given[aliasOf(v)] = value
	}
	return given, nil
}

// namesOf returns, for each variable, its first name for which is holds; an input, if one of these is one.
func namesOf(d *description.ModelDescription, is func(*description.ScalarVariable) bool) map[alias]*description.ScalarVariable {
	names := map[alias]*description.ScalarVariable{}
	for i := range d.Variables {
		v := &d.Variables[i]
		have := names[aliasOf(v)]
		if is(v) && (have == nil || have.Causality != description.Input && v.Causality == description.Input) {
			names[aliasOf(v)] = v
		}
	}
	return names
}

// comparesStart reports whether the documented start of a variable is compared with that of the FMU: it is
// a free input, or a parameter that no output sets.
func (s *Slave) comparesStart(v *description.ScalarVariable) bool {
	if v.Causality == description.Input {
		return !s.drives(v)
	}
	return v.Causality == description.Parameter && v.Initial == description.Exact && !s.fed(v)
}

// fed reports whether a parameter is set by an output during the initialisation.
func (s *Slave) fed(v *description.ScalarVariable) bool {
	return slices.ContainsFunc(s.params, func(g signal) bool { return Same(g.variable, v) })
}

// setsStart reports whether a documented start is set.
func (s *Slave) setsStart(v *description.ScalarVariable) bool {
	input, q := v.Causality == description.Input, s.config.Quirks
	return q.Has(SetStarts) || input && (q.Has(InputsBeforeInit) || s.drives(v))
}

// stage sets the start value of the inputs that are the variable, by any of its names.
func (s *Slave) stage(v *description.ScalarVariable, value Value) {
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
		case master.Real:
			start.Real[k] = value.Real
		case master.Integer:
			start.Integer[k] = value.Integer
		case master.Boolean:
			start.Boolean[k] = value.Boolean
		case master.String:
			start.String[k] = value.String
		}
	}
}
