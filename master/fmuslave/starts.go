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

// startValues are all values set before the first step: inputs inside
// initialisation mode, everything else before it is entered (fmi2 39, 42).
type startValues struct{ before, inside batch }

// batch is values that are set together, by type.
type batch []expectation

func (b *batch) add(v *description.ScalarVariable, value Value) {
	*b = append(*b, expectation{v, value})
}

// remove takes a variable out of the batch, if it is there.
func (b *batch) remove(v *description.ScalarVariable) {
	*b = slices.DeleteFunc(*b, func(x expectation) bool { return aliasOf(x.variable) == aliasOf(v) })
}

// of returns the values of one kind.
func (b batch) of(kind master.Kind) batch {
	return slices.DeleteFunc(slices.Clone(b), func(x expectation) bool { return kindOf(x.variable.Type) != kind })
}

// set sets the values of a batch. After Discard, from which an FMU goes on, the value
// that it refuses is found one by one.
func (s *Slave) set(in *fmi.Instance, b batch) error {
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
func (b batch) send(in *fmi.Instance, kind master.Kind) error {
	if len(b) == 0 {
		return nil
	}
	var vr []description.ValueReference
	var reals []float64
	var integers []int32
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

// setters are the functions that set values, by kind.
var setters = [...]string{master.Real: "fmi2SetReal", master.Integer: "fmi2SetInteger", master.Boolean: "fmi2SetBoolean", master.String: "fmi2SetString"}

// refusal adds to the error of a setter which of the values it was to set.
func (s *Slave) refusal(err error, b batch) error {
	var refused *fmi.StatusError
	if !errors.As(err, &refused) {
		return err
	}
	kind := slices.Index(setters[:], refused.Func)
	if kind < 0 {
		return err
	}
	const shown = 5
	var list []string
	undesired := false
	for _, x := range b.of(master.Kind(kind)) {
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
		err = fmt.Errorf("%w; the quirk setStarts sets documented start values that nobody gave: run without it", err)
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
	var b batch
	for k, g := range s.in {
		b.add(g.variable, Value{Real: u.Real[k]})
	}
	var at [master.String + 1]int
	for _, g := range s.discreteIn {
		var value Value
		switch k := at[g.kind]; g.kind {
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

// Settable reports whether a start value of the variable can be set: it is an
// input, or not constant and its initial is exact or approx (fmi2 39, ssp 38).
func Settable(v *description.ScalarVariable) bool {
	return v.Causality == description.Input ||
		v.Causality != description.Independent && v.Variability != description.Constant && (v.Initial == description.Exact || v.Initial == description.Approx)
}

// documentedStart returns the start value of the document.
func documentedStart(v *description.ScalarVariable) Value {
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
	by := make(map[alias]*description.ScalarVariable)    // what sets it: an input, if one of its names is one
	start := make(map[alias]*description.ScalarVariable) // what documents its start, likewise
	prefer := func(list map[alias]*description.ScalarVariable, v *description.ScalarVariable) {
		if have := list[aliasOf(v)]; have == nil || have.Causality != description.Input && v.Causality == description.Input {
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
			driven := v.Causality == description.Input && s.drives(v)
			if v.Causality == description.Input && !driven || v.Causality == description.Parameter && v.Initial == description.Exact && !transferred[id] {
				s.documented = append(s.documented, expectation{v, value})
			}
			if q := s.config.Quirks; !driven && !q.Has(SetStarts) && (v.Causality != description.Input || !q.Has(InputsBeforeInit)) {
				continue
			}
		} else if s.expects(v) {
			s.given = append(s.given, expectation{v, value})
		}
		if v.Causality == description.Input {
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
		case master.Integer:
			start.Integer[k] = value.Integer
		case master.Boolean:
			start.Boolean[k] = value.Boolean
		case master.String:
			start.String[k] = value.String
		}
	}
}
