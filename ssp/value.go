package ssp

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// ValueType is the type of a connector, a value or an FMU variable (ssp 18). The sized numeric
// types of version 2.0 count as Real and Integer.
type ValueType uint8

// The types. Unspecified is the type of a connector without one; it has that of the FMU variable.
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

// String returns the element name of the type.
func (t ValueType) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// TypeByName returns the type for an element name. v2 is true if the element requires version 2.0.
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

// Value is a typed value. Only the field of its type is used: Real, Int (also of Enumeration), Bool
// or Text (String).
type Value struct {
	Type ValueType
	Real float64
	Int  int64
	Bool bool
	// Text is a String, or the item name of an Enumeration; "" if the item was given by number.
	Text string
}

// String returns the value in the form of a parameter set.
func (v Value) String() string {
	switch v.Type {
	case Real:
		return xmltree.FormatValue(v.Real)
	case Boolean:
		return strconv.FormatBool(v.Bool)
	case Integer:
		return strconv.FormatInt(v.Int, 10)
	case Enumeration:
		if v.Text == "" {
			return strconv.FormatInt(v.Int, 10)
		}
	}
	return v.Text
}

// coerce converts a value into the type of a variable (ssp 40): Integer to Real always, Real to
// Integer if it is whole, Enumeration and Integer into each other, nothing else. The items of
// the variable resolve item names (ssp 39). own holds the items of the file with the value,
// which give the number if the variable has no items.
func (v Value) coerce(to *Variable, own map[string]int64) (Value, error) {
	out := Value{Type: to.Type}
	var err error
	switch {
	case to.Type == Real && v.Type == Real:
		out.Real = v.Real
		if math.IsNaN(out.Real) {
			return Value{}, fmt.Errorf("units and transformations turn it into NaN, which %q cannot take", to.Name)
		}
	case to.Type == Real && v.Type == Integer:
		out.Real, err = v.real()
	case to.Type == Integer && (v.Type == Integer || v.Type == Real || v.Type == Enumeration):
		out.Int, err = v.number(to, own)
	case to.Type == Enumeration && (v.Type == Integer || v.Type == Enumeration):
		out, err = v.item(to, own)
	case to.Type == Boolean && v.Type == Boolean:
		out.Bool = v.Bool
	case to.Type == String && (v.Type == String || v.Type == Binary) && to.MediaType != "":
		out.Text = strings.TrimSpace(v.Text)
		if _, wrong := hex.DecodeString(out.Text); wrong != nil {
			err = fmt.Errorf("%q is not a list of bytes, each of two hexadecimal digits, as in %q", v.Text, to.Name)
		}
	case to.Type == String && v.Type == String:
		out.Text = v.Text
	default:
		err = fmt.Errorf("a value of type %s cannot be given to %q, which is of type %s", v.Type, to.Name, to.Type)
	}
	if err != nil {
		return Value{}, err
	}
	return out, to.inRange(out)
}

// exact is the greatest magnitude up to which a Real holds all integers.
const exact = 1 << 53

// real returns an Integer as a Real.
func (v Value) real() (float64, error) {
	if v.Int < -exact || v.Int > exact {
		return 0, fmt.Errorf("%d is not exact as a Real; give a Float64", v.Int)
	}
	return float64(v.Int), nil
}

// number returns an Integer, Real or Enumeration as an integer.
func (v Value) number(to *Variable, own map[string]int64) (int64, error) {
	switch {
	case v.Type == Real:
		if v.Real != math.Trunc(v.Real) || math.Abs(v.Real) > exact {
			return 0, fmt.Errorf("%v is not an exact integer, which %q requires", v.Real, to.Name)
		}
		return int64(v.Real), nil
	case v.Type == Enumeration && v.Text != "":
		n, ok := own[v.Text]
		if !ok {
			return 0, fmt.Errorf("the number of the enumeration item %q is not known", v.Text)
		}
		return n, nil
	}
	return v.Int, nil
}

// item returns an Integer or Enumeration as an item of an enumeration, by its name if it has one.
func (v Value) item(to *Variable, own map[string]int64) (Value, error) {
	out := Value{Type: Enumeration}
	if v.Type == Enumeration && v.Text != "" && len(to.Items) > 0 {
		n, ok := to.Items[v.Text]
		if !ok {
			return out, fmt.Errorf("%q has no enumeration item %q; it has %s", to.Name, v.Text, diag.ListItems(to.Items))
		}
		out.Int, out.Text = n, v.Text
		return out, nil
	}
	var err error
	if out.Int, err = v.number(to, own); err != nil {
		return out, err
	}
	out.Text = itemName(to.Items, out.Int)
	if out.Text == "" && len(to.Items) > 0 {
		return out, fmt.Errorf("%d is not an item of the enumeration of %q; it has %s", out.Int, to.Name, diag.ListItems(to.Items))
	}
	return out, nil
}

// inRange checks a value against the bounds of a variable.
func (to *Variable) inRange(v Value) error {
	switch x := v.Real; {
	case v.Type != Real:
		if to.Low != to.High && (v.Int < to.Low || v.Int > to.High) {
			return fmt.Errorf("%d is not in the range of %q, %d to %d", v.Int, to.Name, to.Low, to.High)
		}
	case to.Min != nil && x < *to.Min:
		return fmt.Errorf("%v is below the minimum %v of %q", x, *to.Min, to.Name)
	case to.Max != nil && x > *to.Max:
		return fmt.Errorf("%v is above the maximum %v of %q", x, *to.Max, to.Name)
	}
	return nil
}

// itemName returns the name of an item, "" if no item has the number.
func itemName(items map[string]int64, n int64) string {
	for _, name := range slices.Sorted(maps.Keys(items)) {
		if items[name] == n {
			return name
		}
	}
	return ""
}
