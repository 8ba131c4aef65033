// Package unit holds units as FMI 2.0 and SSP define them, and converts between them.
package unit

// Base is a unit in terms of the seven SI base units and rad
// (fmi2 15, ssp 19): value in base units = Factor·value + Offset.
type Base struct {
	Kg, M, S, A, K, Mol, Cd, Rad int
	Factor, Offset               float64
}

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
