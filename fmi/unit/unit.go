// Package unit holds units as FMI 2.0 and SSP define them, and converts between them.
//
//	celsius := &unit.Base{K: 1, Factor: 1, Offset: 273.15}
//	kelvin := &unit.Base{K: 1, Factor: 1}
//	gain, offset, err := unit.Convert(celsius, kelvin, false) // 1, 273.15
//
// A unit whose dimension is not known is a nil *Base; nothing is converted
// from or to it.
package unit

import (
	"fmt"
	"strings"
)

// Base is a unit in terms of the seven SI base units and rad
// (fmi2 15, ssp 19): value in base units = Factor·value + Offset.
// The zero value is no unit, since its Factor is 0; One is the neutral one.
type Base struct {
	Kg, M, S, A, K, Mol, Cd, Rad int
	Factor, Offset               float64
}

// One is the unit of a number without dimension.
var One = Base{Factor: 1}

// Display is a display unit: displayed value = Factor·value + Offset (fmi2 15).
type Display struct {
	Name           string
	Factor, Offset float64
}

// Definition is a named unit. Base is nil if the dimension is unknown.
type Definition struct {
	Name     string
	Base     *Base
	Displays []Display
}

// DimensionError says that two units cannot be converted into each other.
type DimensionError struct{ From, To Base }

// Error names both dimensions.
func (e *DimensionError) Error() string {
	return fmt.Sprintf("the dimensions differ: %s and %s", e.From.Dimension(), e.To.Dimension())
}

// Convert returns gain and offset of the change from one unit into another:
//
//	v2 = gain·v1 + offset,  gain = f1/f2,  offset = (o1 − o2)/f2.
//
// The offset is 0 for a relative quantity, a difference of two values (fmi2
// 15). If either unit is nil nothing is converted: 1, 0. It fails with a
// *DimensionError if the exponents differ, rad counted; and if a factor is 0.
// Source: fmi2 16.
func Convert(from, to *Base, relative bool) (gain, offset float64, err error) {
	if from == nil || to == nil {
		return 1, 0, nil
	}
	if !from.SameDimension(*to) {
		return 0, 0, &DimensionError{From: *from, To: *to}
	}
	if from.Factor == 0 || to.Factor == 0 {
		return 0, 0, fmt.Errorf("a unit of dimension %s has the factor 0", from.Dimension())
	}
	if !relative {
		offset = (from.Offset - to.Offset) / to.Factor
	}
	return from.Factor / to.Factor, offset, nil
}

// exponents in the order of the schema.
func (b Base) exponents() [8]int {
	return [8]int{b.Kg, b.M, b.S, b.A, b.K, b.Mol, b.Cd, b.Rad}
}

// SameDimension reports whether two units have the same exponents of the base units, rad included (fmi2 16).
func (b Base) SameDimension(o Base) bool { return b.exponents() == o.exponents() }

// SamePhysicalDimension reports whether the exponents are equal with rad counted
// as 1, as dimensional analysis has it (fmi2 16).
func (b Base) SamePhysicalDimension(o Base) bool {
	b.Rad, o.Rad = 0, 0
	return b.SameDimension(o)
}

// Times returns the dimension of a product of two values, with the product of
// the factors. Offsets have no meaning in a product and are dropped.
func (b Base) Times(o Base) Base {
	return Base{
		Kg: b.Kg + o.Kg, M: b.M + o.M, S: b.S + o.S, A: b.A + o.A,
		K: b.K + o.K, Mol: b.Mol + o.Mol, Cd: b.Cd + o.Cd, Rad: b.Rad + o.Rad,
		Factor: b.Factor * o.Factor,
	}
}

// IsPower reports whether values in this unit are powers, kg·m²·s⁻³ with rad
// counted as 1: N·m·rad/s is one. Two variables whose product is a power may
// be the effort and the flow of a power bond.
func (b Base) IsPower() bool {
	return b.SamePhysicalDimension(Base{Kg: 1, M: 2, S: -3})
}

// names of the base units in the order of exponents.
var names = [8]string{"kg", "m", "s", "A", "K", "mol", "cd", "rad"}

// Dimension writes the exponents, for example "kg·m^2·s^-3"; "1" if all are 0.
func (b Base) Dimension() string {
	var parts []string
	for i, n := range b.exponents() {
		switch n {
		case 0:
		case 1:
			parts = append(parts, names[i])
		default:
			parts = append(parts, fmt.Sprintf("%s^%d", names[i], n))
		}
	}
	if parts == nil {
		return "1"
	}
	return strings.Join(parts, "·")
}
