package ssp

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/macrostep/macrostep/fmi/diag"
)

// ValueType is the type of a connector, a value or an FMU variable (ssp 18).
// The sized numeric types of version 2.0 count as Real and Integer.
type ValueType uint8

// The types. Unspecified stands for a connector without type, which then has
// that of the FMU variable.
const (
	Unspecified ValueType = iota
	Real
	Integer
	Boolean
	String
	Enumeration
	Binary
	Clock
)

var typeNames = [...]string{"unspecified", "Real", "Integer", "Boolean", "String", "Enumeration", "Binary", "Clock"}

// String returns the name of the element of the standard.
func (t ValueType) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// TypeByName returns the type that an element stands for, and whether it exists
// only since version 2.0.
func TypeByName(name string) (t ValueType, v2, ok bool) {
	switch name {
	case "Float64", "Float32":
		return Real, true, true
	case "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64":
		return Integer, true, true
	}
	at := slices.Index(typeNames[1:], name)
	return ValueType(at + 1), name == "Clock", at >= 0
}

// alike reports whether two types may be connected (SD10).
func alike(a, b ValueType) bool {
	discrete := func(t ValueType) bool { return t == Integer || t == Enumeration }
	return a == Unspecified || b == Unspecified || a == b || discrete(a) && discrete(b)
}

// Value is one typed value. Only the field of its type counts: Real, Int (also
// of Enumeration), Bool or Text (String).
type Value struct {
	Type ValueType
	Real float64
	Int  int32
	Bool bool
	// Text is a String; of an Enumeration it is the name of the item, or "" if
	// the value was given as a number.
	Text string
}

// String returns the value as it would stand in a parameter set.
func (v Value) String() string {
	switch v.Type {
	case Real:
		return strconv.FormatFloat(v.Real, 'g', -1, 64)
	case Boolean:
		return strconv.FormatBool(v.Bool)
	case Integer:
		return strconv.Itoa(int(v.Int))
	case Enumeration:
		if v.Text == "" {
			return strconv.Itoa(int(v.Int))
		}
	}
	return v.Text
}

// coerce turns a value into one of the type of a variable (ssp 40): Integer to
// Real always, Real to Integer if it is integral, Enumeration and Integer into
// each other, nothing else. Names of items are resolved with the items of the
// variable (ssp 39); a value whose name is known only to its own file keeps the
// number which that file gave it.
func (v Value) coerce(to *Variable, own map[string]int32) (Value, error) {
	out := Value{Type: to.Type}
	bad := func() (Value, error) {
		return Value{}, fmt.Errorf("a value of type %s cannot be given to %q, which is of type %s", v.Type, to.Name, to.Type)
	}
	number := func() (int32, error) {
		switch v.Type {
		case Integer:
			return v.Int, nil
		case Real:
			if v.Real != math.Trunc(v.Real) || math.Abs(v.Real) > math.MaxInt32 {
				return 0, fmt.Errorf("%v is no 32-bit integer, which %q needs", v.Real, to.Name)
			}
			return int32(v.Real), nil
		case Enumeration:
			if v.Text == "" {
				return v.Int, nil
			}
			if n, ok := own[v.Text]; ok {
				return n, nil
			}
			return 0, fmt.Errorf("the number of the enumeration item %q is not known", v.Text)
		}
		_, err := bad()
		return 0, err
	}
	var err error
	switch to.Type {
	case Real:
		switch v.Type {
		case Real:
			out.Real = v.Real
		case Integer:
			out.Real = float64(v.Int)
		default:
			return bad()
		}
		if out.Real-out.Real != 0 {
			return Value{}, fmt.Errorf("what units and transformations make of it is %v, which %q cannot take", out.Real, to.Name)
		}
	case Integer:
		out.Int, err = number()
	case Enumeration:
		if n, ok := to.Items[v.Text]; v.Type == Enumeration && v.Text != "" && ok {
			out.Int, out.Text = n, v.Text
			return out, nil
		}
		if v.Type == Enumeration && v.Text != "" && len(to.Items) > 0 {
			return Value{}, fmt.Errorf("%q has no enumeration item %q; it has %s", to.Name, v.Text, diag.ListItems(to.Items))
		}
		if v.Type == Real {
			return bad()
		}
		if out.Int, err = number(); err != nil {
			return Value{}, err
		}
		out.Text = itemName(to.Items, out.Int)
		if out.Text == "" && len(to.Items) > 0 {
			return Value{}, fmt.Errorf("%d is no item of the enumeration of %q; it has %s", out.Int, to.Name, diag.ListItems(to.Items))
		}
	case Boolean:
		if v.Type != Boolean {
			return bad()
		}
		out.Bool = v.Bool
	case String:
		if v.Type != String {
			return bad()
		}
		out.Text = v.Text
	default:
		return bad()
	}
	if err != nil {
		return Value{}, err
	}
	return out, to.inRange(out)
}

// inRange checks the bounds of a variable.
func (to *Variable) inRange(v Value) error {
	x := v.Real
	switch v.Type {
	case Real:
	case Integer:
		x = float64(v.Int)
	default:
		return nil
	}
	if to.Min != nil && x < *to.Min {
		return fmt.Errorf("%v is below the minimum %v of %q", x, *to.Min, to.Name)
	}
	if to.Max != nil && x > *to.Max {
		return fmt.Errorf("%v is above the maximum %v of %q", x, *to.Max, to.Name)
	}
	return nil
}

// itemName returns the name of an item by its number, "" if there is none.
func itemName(items map[string]int32, n int32) string {
	for _, name := range slices.Sorted(maps.Keys(items)) {
		if items[name] == n {
			return name
		}
	}
	return ""
}
