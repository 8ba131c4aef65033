package ssp

import (
	"fmt"
	"maps"
	"slices"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// stage is one step of a signal: a linear change of a Real, or a table for other types.
type stage struct {
	gain, offset float64
	t            *Transformation  // nil for a conversion of units
	from, to     map[string]int64 // items, for a mapping by name

	fromUnit, toUnit string // of a conversion
	at               Place
}

// conversion returns the stage from one unit to another; none if the number stays the same.
func conversion(from, to face, relative bool, at Place) ([]stage, error) {
	gain, offset, err := unit.Convert(from.unit, to.unit, relative)
	if err != nil || gain == 1 && offset == 0 {
		return nil, err
	}
	return []stage{{gain: gain, offset: offset, fromUnit: from.unitName, toUnit: to.unitName, at: at}}, nil
}

// String describes the change of a value.
func (s *stage) String() string {
	switch {
	case s.t == nil:
		return s.fromUnit + " → " + s.toUnit
	case s.t.Kind == Linear && s.offset < 0:
		return fmt.Sprintf("× %v - %v", s.gain, -s.offset)
	case s.t.Kind == Linear:
		return fmt.Sprintf("× %v + %v", s.gain, s.offset)
	}
	return s.t.String()
}

// linear reports whether the stage changes Reals.
func (s *stage) linear() bool { return s.t == nil || s.t.Kind == Linear }

// table returns a mapping by number.
func (s *stage) table() (map[int64]int64, error) {
	if s.t.Kind != EnumerationMapping {
		return s.t.Numbers, nil
	}
	out := make(map[int64]int64, len(s.t.Names))
	for _, source := range slices.Sorted(maps.Keys(s.t.Names)) {
		target := s.t.Names[source]
		a, ok := s.from[source]
		if !ok {
			return nil, fmt.Errorf("%q is not an item of the source; it has %s", source, diag.ListItems(s.from))
		}
		b, ok := s.to[target]
		if !ok {
			return nil, fmt.Errorf("%q is not an item of the target; it has %s", target, diag.ListItems(s.to))
		}
		out[a] = b
	}
	// An item without an entry keeps its name if the target has it, like values of parameters.
	for source := range s.from {
		if _, mapped := s.t.Names[source]; mapped {
			continue
		}
		if b, ok := s.to[source]; ok {
			out[s.from[source]] = b
		}
	}
	return out, nil
}

// compose returns the joint effect of stages.
func compose(stages []stage) (change, error) {
	all := change{gain: 1}
	for i := range stages {
		s := &stages[i]
		if s.linear() {
			all.gain, all.offset = s.gain*all.gain, s.gain*all.offset+s.offset
			continue
		}
		next, err := s.table()
		if err != nil {
			return change{}, err
		}
		if all.table == nil {
			all.table = make(map[int64]int64, len(next))
		}
		for k, v := range all.table {
			if w, ok := next[v]; ok {
				all.table[k] = w
			}
		}
		for k, v := range next {
			if _, changed := all.table[k]; !changed {
				all.table[k] = v
			}
		}
	}
	maps.DeleteFunc(all.table, func(from, to int64) bool { return from == to })
	if len(all.table) == 0 {
		all.table = nil
	}
	return all, nil
}

// apply changes one value.
func (s *stage) apply(v Value) (Value, error) {
	switch {
	case s.linear():
		return s.applyLinear(v)
	case s.t.Kind == BooleanMapping:
		if v.Type != Boolean {
			return v, fmt.Errorf("a boolean mapping needs a Boolean, but the value is of type %s", v.Type)
		}
		if target, ok := s.t.Numbers[toNumber(v.Bool)]; ok {
			v.Bool = target != 0
		}
		return v, nil
	case s.t.Kind == EnumerationMapping:
		return s.applyNames(v)
	}
	if v.Type == Enumeration && v.Text != "" {
		n, ok := s.from[v.Text]
		if !ok {
			return v, fmt.Errorf("the number of the enumeration item %q is not known", v.Text)
		}
		v.Int = n
	} else if v.Type != Integer && v.Type != Enumeration {
		return v, fmt.Errorf("an integer mapping needs an Integer, but the value is of type %s", v.Type)
	}
	if target, ok := s.t.Numbers[v.Int]; ok {
		v = Value{Type: Integer, Int: target}
	}
	return v, nil
}

// applyLinear changes a number. A conversion of units passes other types unchanged.
func (s *stage) applyLinear(v Value) (Value, error) {
	switch v.Type {
	case Integer:
		if s.gain == 1 && s.offset == 0 {
			return v, nil
		}
		x, err := v.real()
		if err != nil {
			return v, err
		}
		v = Value{Type: Real, Real: x}
	case Real:
	default:
		if s.t == nil {
			return v, nil
		}
		return v, fmt.Errorf("a linear transformation needs a number, but the value is of type %s", v.Type)
	}
	v.Real = s.gain*v.Real + s.offset
	return v, nil
}

// applyNames maps an item by its name.
func (s *stage) applyNames(v Value) (Value, error) {
	if v.Type == Integer || v.Type == Enumeration && v.Text == "" {
		v.Text = itemName(s.from, v.Int)
	} else if v.Type != Enumeration {
		return v, fmt.Errorf("an enumeration mapping needs an enumeration, but the value is of type %s", v.Type)
	}
	target, ok := s.t.Names[v.Text]
	if !ok {
		return v, nil
	}
	n, known := s.to[target]
	if len(s.to) > 0 && !known {
		return v, fmt.Errorf("%q is not an item of the target; it has %s", target, diag.ListItems(s.to))
	}
	return Value{Type: Enumeration, Text: target, Int: n}, nil
}

// toNumber returns a Boolean as 0 or 1, as in mappings.
func toNumber(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// Equal reports whether two transformations, or nil for none, have the same effect.
func (t *Transformation) Equal(o *Transformation) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Kind == o.Kind && (t.Kind != Linear || t.Factor == o.Factor && t.Offset == o.Offset) &&
		maps.Equal(t.Numbers, o.Numbers) && maps.Equal(t.Names, o.Names)
}

// suits reports whether a transformation may be applied to a type (SD12).
func (t *Transformation) suits(v ValueType) bool {
	switch t.Kind {
	case Linear:
		return v == Real || v == Unspecified
	case BooleanMapping:
		return v == Boolean || v == Unspecified
	case IntegerMapping:
		return v == Integer || v == Enumeration || v == Unspecified
	}
	return v == Enumeration || v == Unspecified
}

// String names a transformation for messages.
func (t *Transformation) String() string {
	return [...]string{"a linear transformation", "a boolean mapping", "an integer mapping", "an enumeration mapping"}[t.Kind]
}
