package fmi

import (
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// number is a numeric type with the same layout in Go and C.
type number interface{ ~float64 | ~int32 }

// putNumbers copies the numbers of value references.
func putNumbers(to []uint32, vr []description.ValueReference) {
	for k, r := range vr {
		to[k] = r.Number()
	}
}

// references copies value references to C memory.
func (in *Instance) references(f capi.Function, vr []description.ValueReference, values int) (uintptr, error) {
	if len(vr) != values {
		return 0, in.argument(f, "%d value references for %d values", len(vr), values)
	}
	b, err := native.BufferSlice[uint32](&in.vrBuf, len(vr))
	if err != nil {
		return 0, in.argument(f, "%v", err)
	}
	putNumbers(b, vr)
	return native.Address(b), nil
}

// stage prepares a getter or setter and returns its values in C memory, not cleared;
// nil if there is nothing to call.
func stage[T any](in *Instance, f capi.Function, vr []description.ValueReference, values int) ([]T, error) {
	if err := in.begin(f); err != nil {
		return nil, err
	}
	p, err := in.references(f, vr, values)
	if err != nil || len(vr) == 0 {
		return nil, err
	}
	b, err := native.BufferSlice[T](&in.valBuf, values)
	if err != nil {
		return nil, in.argument(f, "%v", err)
	}
	r := in.aim(f, native.SigInts)
	r.Int[0], r.Int[1], r.Int[2], r.Int[3] = in.comp, p, uintptr(len(vr)), native.Address(b)
	return b, nil
}

func getNumbers[T number](in *Instance, f capi.Function, vr []description.ValueReference, v []T) error {
	b, err := stage[T](in, f, vr, len(v))
	if b == nil {
		return err
	}
	return fetch(in, f, b, v)
}

// fetch makes the prepared call of a getter and copies its values from C memory.
func fetch[T number](in *Instance, f capi.Function, from, to []T) error {
	if err := in.call(f); err != nil {
		return err
	}
	copy(to, from)
	return nil
}

// convert reads variables whose values have another type in C.
func convert[C, T any](in *Instance, f capi.Function, vr []description.ValueReference, v []T, from func(C) T) error {
	b, err := stage[C](in, f, vr, len(v))
	if b == nil {
		return err
	}
	clear(b)
	if err := in.call(f); err != nil {
		return err
	}
	for k := range v {
		v[k] = from(b[k])
	}
	return nil
}

func setNumbers[T number](in *Instance, f capi.Function, vr []description.ValueReference, v []T) error {
	b, err := stage[T](in, f, vr, len(v))
	if b == nil {
		return err
	}
	copy(b, v)
	return in.call(f)
}

// GetReal reads variables of type Real; v must be as long as vr. After Discard,
// which is an error, a value is not available; v is then unchanged.
func (in *Instance) GetReal(vr []description.ValueReference, v []float64) error {
	return getNumbers(in, capi.GetReal, vr, v)
}

// SetReal writes variables of type Real; v must be as long as vr. After Discard,
// which is an error, a value was rejected; the instance remains usable.
func (in *Instance) SetReal(vr []description.ValueReference, v []float64) error {
	return setNumbers(in, capi.SetReal, vr, v)
}

// GetInteger reads variables of type Integer or Enumeration like GetReal.
func (in *Instance) GetInteger(vr []description.ValueReference, v []int32) error {
	return getNumbers(in, capi.GetInteger, vr, v)
}

// SetInteger writes variables of type Integer or Enumeration like SetReal.
func (in *Instance) SetInteger(vr []description.ValueReference, v []int32) error {
	return setNumbers(in, capi.SetInteger, vr, v)
}

// GetBoolean reads variables of type Boolean like GetReal.
func (in *Instance) GetBoolean(vr []description.ValueReference, v []bool) error {
	return convert(in, capi.GetBoolean, vr, v, func(b int32) bool { return b != 0 })
}

// SetBoolean writes variables of type Boolean like SetReal.
func (in *Instance) SetBoolean(vr []description.ValueReference, v []bool) error {
	b, err := stage[int32](in, capi.SetBoolean, vr, len(v))
	if b == nil {
		return err
	}
	for k := range v {
		b[k] = int32(flag(v[k]))
	}
	return in.call(capi.SetBoolean)
}

// GetString reads variables of type String like GetReal. It copies the strings
// (checklist fmi2 47); a null pointer becomes "".
func (in *Instance) GetString(vr []description.ValueReference, v []string) error {
	return convert(in, capi.GetString, vr, v, func(p uintptr) string { return capi.ValidUTF8(native.String(p, native.MaxString)) })
}

// SetString writes variables of type String like SetReal. It refuses strings with
// NUL, which ends a string in C.
func (in *Instance) SetString(vr []description.ValueReference, v []string) error {
	b, err := stage[uintptr](in, capi.SetString, vr, len(v))
	if b == nil {
		return err
	}
	if err := in.strings(capi.SetString, b, v); err != nil {
		return err
	}
	return in.call(capi.SetString)
}

// strings copies strings to C memory and stores their addresses in pointers.
func (in *Instance) strings(f capi.Function, pointers []uintptr, v []string) error {
	total := 0
	for _, s := range v {
		if strings.ContainsRune(s, 0) {
			return in.argument(f, "the string %q contains NUL, which ends a string in C", s)
		}
		total += len(s) + 1
	}
	text, err := native.BufferSlice[byte](&in.textBuf, total)
	if err != nil {
		return in.argument(f, "%v", err)
	}
	for k, s := range v {
		copy(text, s)
		text[len(s)] = 0
		pointers[k] = native.Address(text)
		text = text[len(s)+1:]
	}
	return nil
}

// GetDirectionalDerivative returns dvUnknown = J dvKnown with
// J = ∂unknown/∂known at the current point (checklist fmi2 60). dvKnown is as long as
// known, dvUnknown as long as unknown.
func (in *Instance) GetDirectionalDerivative(unknown, known []description.ValueReference, dvKnown, dvUnknown []float64) error {
	const f = capi.GetDirectionalDerivative
	if err := in.begin(f); err != nil {
		return err
	}
	if len(known) != len(dvKnown) || len(unknown) != len(dvUnknown) {
		return in.argument(f, "%d knowns with %d values, %d unknowns with %d values",
			len(known), len(dvKnown), len(unknown), len(dvUnknown))
	}
	if len(unknown) == 0 {
		return nil
	}
	if len(known) == 0 {
		clear(dvUnknown)
		return nil
	}
	vr, err := native.BufferSlice[uint32](&in.vrBuf, len(unknown)+len(known))
	if err != nil {
		return in.argument(f, "%v", err)
	}
	v, err := native.BufferSlice[float64](&in.valBuf, len(unknown)+len(known))
	if err != nil {
		return in.argument(f, "%v", err)
	}
	putNumbers(vr, unknown)
	putNumbers(vr[len(unknown):], known)
	copy(v, dvKnown)
	r := in.aim(f, native.SigInts)
	r.Int = [12]uintptr{in.comp, native.Address(vr), uintptr(len(unknown)), native.Address(vr[len(unknown):]), uintptr(len(known)),
		native.Address(v), native.Address(v[len(known):])}
	return fetch(in, f, v[len(known):], dvUnknown)
}

// SetRealInputDerivatives sets derivatives of Real inputs of the given orders
// (1, 2, …) at the start of the next step; they hold for that step only
// (checklist fmi2 56). The slices are as long as vr.
func (in *Instance) SetRealInputDerivatives(vr []description.ValueReference, order []int32, v []float64) error {
	const f = capi.SetRealInputDerivatives
	b, err := in.derivatives(f, vr, order, len(v))
	if b == nil {
		return err
	}
	copy(b, v)
	return in.call(f)
}

// GetRealOutputDerivatives reads derivatives of Real outputs of orders 1 to
// maxOutputDerivativeOrder (checklist fmi2 56). FMUs return 0 for an unknown
// derivative. The slices are as long as vr.
func (in *Instance) GetRealOutputDerivatives(vr []description.ValueReference, order []int32, v []float64) error {
	const f = capi.GetRealOutputDerivatives
	b, err := in.derivatives(f, vr, order, len(v))
	if b == nil {
		return err
	}
	return fetch(in, f, b, v)
}

// derivatives prepares one of the two functions above and returns its values in C
// memory; nil if there is nothing to call.
func (in *Instance) derivatives(f capi.Function, vr []description.ValueReference, order []int32, values int) ([]float64, error) {
	b, err := stage[float64](in, f, vr, values)
	if b == nil {
		return nil, err
	}
	if len(order) != len(vr) {
		return nil, in.argument(f, "%d value references for %d orders", len(vr), len(order))
	}
	highest := int32(in.fmu.Description.CoSimulation.MaxOutputDerivativeOrder)
	for _, k := range order {
		if k < 1 || f == capi.GetRealOutputDerivatives && k > highest {
			return nil, in.argument(f, "the FMU does not support derivatives of order %d: orders begin at 1, and end at %d for outputs", k, highest)
		}
	}
	o, err := native.BufferSlice[int32](&in.auxBuf, len(order))
	if err != nil {
		return nil, in.argument(f, "%v", err)
	}
	copy(o, order)
	in.rec.Int[3], in.rec.Int[4] = native.Address(o), native.Address(b)
	return b, nil
}
