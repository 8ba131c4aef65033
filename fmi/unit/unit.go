// Package unit defines the units of FMI 2.0 and SSP, and converts between them.
//
//	celsius := &unit.Base{K: 1, Factor: 1, Offset: 273.15}
//	kelvin := &unit.Base{K: 1, Factor: 1}
//	gain, offset, err := unit.Convert(celsius, kelvin, false) // 1, 273.15
//
// A unit of unknown dimension is a nil *Base; values are not converted from or to it.
package unit

import (
	"fmt"
	"strings"
)

// Base is a unit in terms of the seven SI base units and rad
// (fmi2 15, ssp 19): value in base units = Factor·value + Offset.
// The zero value is not a valid unit, since its Factor is 0; see One.
type Base struct {
	Kg, M, S, A, K, Mol, Cd, Rad int
	Factor, Offset               float64
}

// One is the unit of dimensionless numbers.
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

// DimensionError is the error for units of different dimensions.
type DimensionError struct{ From, To Base }

// Error names both dimensions.
func (e *DimensionError) Error() string {
	return fmt.Sprintf("the dimensions differ: %s and %s", e.From.Dimension(), e.To.Dimension())
}

// Convert returns gain and offset of the conversion from one unit to another:
//
//	v2 = gain·v1 + offset,  gain = f1/f2,  offset = (o1 − o2)/f2.
//
// The offset is 0 for a relative quantity, which is a difference of two values (fmi2
// 15). If a unit is nil the result is 1, 0. The error is a *DimensionError if the
// exponents differ, including rad; a factor of 0 is also an error. Source: fmi2 16.
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

// exponents returns the exponents in the order of the schema.
func (b Base) exponents() [8]int {
	return [8]int{b.Kg, b.M, b.S, b.A, b.K, b.Mol, b.Cd, b.Rad}
}

// SameDimension reports whether two units have the same exponents of the base units, rad included (fmi2 16).
func (b Base) SameDimension(o Base) bool { return b.exponents() == o.exponents() }

// SamePhysicalDimension reports whether the exponents are equal without rad, as in
// dimensional analysis (fmi2 16).
func (b Base) SamePhysicalDimension(o Base) bool {
	b.Rad, o.Rad = 0, 0
	return b.SameDimension(o)
}

// Times returns the unit of a product of two values. Its offset is 0, because offsets have no
// meaning in a product.
func (b Base) Times(o Base) Base {
	return Base{
		Kg: b.Kg + o.Kg, M: b.M + o.M, S: b.S + o.S, A: b.A + o.A,
		K: b.K + o.K, Mol: b.Mol + o.Mol, Cd: b.Cd + o.Cd, Rad: b.Rad + o.Rad,
		Factor: b.Factor * o.Factor,
	}
}

// IsPower reports whether the unit is one of power, kg·m²·s⁻³ without regard to rad, such as
// N·m·rad/s. Two variables whose product is a power may be effort and flow of a power bond.
func (b Base) IsPower() bool {
	return b.SamePhysicalDimension(Base{Kg: 1, M: 2, S: -3})
}

// names are the base units in the order of exponents.
var names = [8]string{"kg", "m", "s", "A", "K", "mol", "cd", "rad"}

// Dimension returns the exponents, for example "kg·m^2·s^-3", or "1" if all are 0.
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
