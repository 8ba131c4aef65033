package fmi

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// stage prepares the call of a getter or setter and returns the address of its values in C memory, which are not
// cleared.
func (in *Instance) stage(f capi.Function, g *group) (values uintptr, err error) {
	if err := in.begin(f); err != nil {
		return 0, err
	}
	refs, err := native.BufferSlice[uint32](&in.vrBuf, g.variables())
	if err != nil {
		return 0, in.argument(f, "%v", err)
	}
	g.numbers(refs)
	b, err := native.BufferSlice[byte](&in.valBuf, g.n*int(g.size))
	if err != nil {
		return 0, in.argument(f, "%v", err)
	}
	values = native.Address(b)
	r := in.prepare(f, in.comp, native.Address(refs), uintptr(len(refs)), values, uintptr(g.n))
	switch g.storage {
	case description.StoreText:
		clear(b)
	case description.StoreBinary:
		clear(b)
		sizes, err := native.BufferSlice[uintptr](&in.auxBuf, g.n)
		if err != nil {
			return 0, in.argument(f, "%v", err)
		}
		clear(sizes)
		copy(r.Int[3:], []uintptr{native.Address(sizes), values, uintptr(g.n)})
	}
	return values, nil
}

// list is the values of a call: one of its slices.
type list struct {
	reals    []float64
	integers []int64
	booleans []bool
	texts    []string
}

func (l *list) len() int { return len(l.reals) + len(l.integers) + len(l.booleans) + len(l.texts) }

func (l *list) at(k int) (v value) {
	switch {
	case l.reals != nil:
		v.real = l.reals[k]
	case l.integers != nil:
		v.integer = l.integers[k]
	case l.booleans != nil:
		v.integer = int64(flag(l.booleans[k]))
	default:
		v.text = l.texts[k]
	}
	return v
}

func (l *list) put(k int, v value) {
	switch {
	case l.reals != nil:
		l.reals[k] = v.real
	case l.integers != nil:
		l.integers[k] = v.integer
	case l.booleans != nil:
		l.booleans[k] = v.integer != 0
	default:
		l.texts[k] = v.text
	}
}

// access returns the calls for variables of a kind, of which there are n values.
func (in *Instance) access(f capi.Function, kind description.BaseType, vr []description.ValueReference,
	n int) ([]group, error) {
	if n > 0 && len(vr) == n {
		return in.groups(kind, vr)
	}
	err := in.begin(f)
	if err == nil && len(vr) != n {
		err = in.argument(f, "%d value references for %d values", len(vr), n)
	}
	return nil, err
}

// get reads variables of a kind.
func (in *Instance) get(kind description.BaseType, vr []description.ValueReference, to *list) error {
	groups, err := in.access(oldTypes[kind].get, kind, vr, to.len())
	for i := range groups {
		g := &groups[i]
		p, err := in.stage(g.get, g)
		if err == nil {
			err = in.call(g.get)
		}
		if err != nil {
			return err
		}
		if g.storage == description.StoreFloat64 && g.at == nil {
			copy(to.reals, unsafe.Slice((*float64)(native.Pointer(p)), g.n))
			continue
		}
		for i := range g.length() {
			k, element := g.value(i)
			at := p + uintptr(element)*g.size
			switch g.storage {
			case description.StoreText:
				to.texts[k] = capi.ValidUTF8(native.String(*(*uintptr)(native.Pointer(at)), native.MaxString))
			case description.StoreBinary:
				size := *(*uintptr)(native.Pointer(in.rec.Int[3] + 8*uintptr(element)))
				to.texts[k] = native.Copy(*(*uintptr)(native.Pointer(at)), min(size, capi.MaxState))
			default:
				v, ok := loadValue(g.storage, at)
				if !ok {
					return in.unfit(g.get, vr[k], v, g.storage)
				}
				to.put(k, v)
			}
		}
	}
	return err
}

// set writes variables of a kind. In event mode, those that change only at events are written in Event Mode, and texts
// only if they differ from those written last (fmi3 19).
func (in *Instance) set(kind description.BaseType, vr []description.ValueReference, from *list) error {
	v := in.events
	if v == nil {
		return in.write(kind, vr, from)
	}
	if in.state == StateStepComplete && slices.ContainsFunc(vr, in.fmu.jumps) {
		if len(vr) == len(from.texts) && v.repeats(vr, from.texts) {
			return nil
		}
		if err := v.enter(); err != nil {
			return err
		}
	}
	err := in.write(kind, vr, from)
	if err == nil && from.texts != nil {
		v.keep(vr, from.texts)
	}
	return err
}

func (in *Instance) write(kind description.BaseType, vr []description.ValueReference, from *list) error {
	groups, err := in.access(oldTypes[kind].set, kind, vr, from.len())
	for i := range groups {
		g := &groups[i]
		p, err := in.stage(g.set, g)
		if err != nil {
			return err
		}
		if kind == description.String || g.arrays {
			if err = in.setWhole(g, p, vr, from); err != nil {
				return err
			}
			continue
		}
		if g.storage == description.StoreFloat64 && g.at == nil {
			copy(unsafe.Slice((*float64)(native.Pointer(p)), g.n), from.reals)
		} else if err := in.storeAll(g, p, vr, from); err != nil {
			return err
		}
		if err := in.call(g.set); err != nil {
			return err
		}
	}
	return err
}

// storeAll stores the values of a call without arrays.
func (in *Instance) storeAll(g *group, p uintptr, vr []description.ValueReference, from *list) error {
	for i := range g.length() {
		k, element := g.value(i)
		if v := from.at(k); !storeValue(g.storage, p+uintptr(element)*g.size, v) {
			return in.unfit(g.set, vr[k], v, g.storage)
		}
	}
	return nil
}

// setWhole makes the prepared call of a setter of texts or arrays, whose values are at p.
func (in *Instance) setWhole(g *group, p uintptr, vr []description.ValueReference, from *list) error {
	values, err := in.whole(g, from)
	switch {
	case err != nil:
	case from.texts != nil:
		err = in.strings(g, values)
	default:
		for at, v := range values {
			if !storeValue(g.storage, p+uintptr(at)*g.size, v) {
				given := at
				if g.at != nil {
					given = g.index[slices.Index(g.at, at)] // start values, and what was set before, fit
				}
				return in.unfit(g.set, vr[given], v, g.storage)
			}
		}
	}
	if err == nil {
		err = in.call(g.set)
	}
	if err == nil {
		in.remember(g, values)
	}
	return err
}

// whole returns the values of all elements of a group: those given, and of arrays of which only some are given, the
// others as they were set last, or their start values.
func (in *Instance) whole(g *group, from *list) ([]value, error) {
	values, given := make([]value, g.n), make([]bool, g.n)
	for i := range g.length() {
		k, element := g.value(i)
		values[element], given[element] = from.at(k), true
	}
	first := 0
	for k, size := range g.sizes {
		set := in.arrays[g.refs[k]]
		for at := range size {
			x := in.fmu.byReference(description.ValueReference(g.refs[k]) | description.ValueReference(at)<<32)
			switch to := &values[first+at]; {
			case given[first+at]:
			case set != nil:
				*to = set[at]
			case !x.HasStart:
				return nil, usage(in.name, "an array is set whole, and %s has no start value: set all its elements", x.Array.Name)
			default:
				*to = value{x.StartReal, x.StartInteger + int64(flag(x.StartBoolean)), x.StartString}
			}
		}
		first += size
	}
	return values, nil
}

// remember stores the elements of arrays that have been set, also in the memory of steppers that set other elements
// of them.
func (in *Instance) remember(g *group, values []value) {
	first := 0
	for k, ref := range g.refs {
		if g.sizes[k] == 1 {
			first++
			continue
		}
		if in.arrays == nil {
			in.arrays = map[uint32][]value{}
		}
		set := slices.Clone(values[first : first+g.sizes[k]])
		in.arrays[ref] = set
		first += g.sizes[k]
		for _, s := range in.steppers {
			for _, e := range s.edges {
				e.refresh(ref, set)
			}
		}
	}
}

// GetReal reads variables of type Real; v must be as long as vr. After Discard,
// which is an error, a value is not available; v is then unchanged.
func (in *Instance) GetReal(vr []description.ValueReference, v []float64) error {
	return in.get(description.Real, vr, &list{reals: v})
}

// SetReal writes variables of type Real; v must be as long as vr. After Discard,
// which is an error, a value was rejected; the instance remains usable.
func (in *Instance) SetReal(vr []description.ValueReference, v []float64) error {
	return in.set(description.Real, vr, &list{reals: v})
}

// GetInteger reads variables of type Integer or Enumeration like GetReal.
func (in *Instance) GetInteger(vr []description.ValueReference, v []int64) error {
	return in.get(description.Integer, vr, &list{integers: v})
}

// SetInteger writes variables of type Integer or Enumeration like SetReal. A value that does not fit into the type of
// its variable is a *UsageError.
func (in *Instance) SetInteger(vr []description.ValueReference, v []int64) error {
	return in.set(description.Integer, vr, &list{integers: v})
}

// GetBoolean reads variables of type Boolean like GetReal.
func (in *Instance) GetBoolean(vr []description.ValueReference, v []bool) error {
	return in.get(description.Boolean, vr, &list{booleans: v})
}

// SetBoolean writes variables of type Boolean like SetReal.
func (in *Instance) SetBoolean(vr []description.ValueReference, v []bool) error {
	return in.set(description.Boolean, vr, &list{booleans: v})
}

// GetString reads variables of type String, or Binary as bytes, like GetReal. It copies the strings
// (checklist fmi2 47); a null pointer becomes "".
func (in *Instance) GetString(vr []description.ValueReference, v []string) error {
	return in.get(description.String, vr, &list{texts: v})
}

// SetString writes variables of type String or Binary like SetReal. It refuses Strings with
// NUL, which ends a string in C.
func (in *Instance) SetString(vr []description.ValueReference, v []string) error {
	return in.set(description.String, vr, &list{texts: v})
}

// strings copies texts to C memory and stores their addresses, and sizes of Binaries, in the memory of the prepared
// call.
func (in *Instance) strings(g *group, v []value) error {
	texts := make([]string, len(v))
	for k := range v {
		texts[k] = v[k].text
	}
	record := in.rec.Int
	if g.storage == description.StoreBinary {
		for k, s := range texts {
			*(*uintptr)(native.Pointer(record[3] + 8*uintptr(k))) = uintptr(len(s))
		}
		return in.texts(g.set, record[4], texts, true)
	}
	return in.texts(g.set, record[3], texts, false)
}

// texts copies texts to C memory and stores their addresses from pointers on.
func (in *Instance) texts(f capi.Function, pointers uintptr, v []string, binary bool) error {
	total := 0
	for _, s := range v {
		if !binary && strings.ContainsRune(s, 0) {
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
		*(*uintptr)(native.Pointer(pointers + 8*uintptr(k))) = native.Address(text)
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
	of, err := in.reals(unknown)
	if err != nil {
		return err
	}
	by, err := in.reals(known)
	if err != nil {
		return err
	}
	vr, err := native.BufferSlice[uint32](&in.vrBuf, of.variables()+by.variables())
	if err != nil {
		return in.argument(f, "%v", err)
	}
	v, err := native.BufferSlice[float64](&in.valBuf, of.n+by.n)
	if err != nil {
		return in.argument(f, "%v", err)
	}
	knowns := vr[of.variables():]
	of.numbers(vr)
	by.numbers(knowns)
	clear(v[:by.n])
	for i := range by.length() {
		k, at := by.value(i)
		v[at] = dvKnown[k]
	}
	args := []uintptr{in.comp, native.Address(vr), uintptr(of.variables()), native.Address(knowns), uintptr(len(knowns)),
		native.Address(v), native.Address(v[by.n:])}
	if in.api == capi.V3 {
		args = append(slices.Insert(args, 6, uintptr(by.n)), uintptr(of.n))
	}
	in.prepare(f, args...)
	if err := in.call(f); err != nil {
		return err
	}
	for i := range of.length() {
		k, at := of.value(i)
		dvUnknown[k] = v[by.n+at]
	}
	return nil
}

// reals returns the group of Reals of a directional derivative.
func (in *Instance) reals(vr []description.ValueReference) (*group, error) {
	groups, err := in.groups(description.Real, vr)
	if err != nil {
		return nil, err
	}
	if len(groups) > 1 || groups[0].storage != description.StoreFloat64 {
		return nil, in.argument(capi.GetDirectionalDerivative,
			"only derivatives of and by variables of type Float64 are supported")
	}
	return &groups[0], nil
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
	if err := in.call(f); err != nil {
		return err
	}
	copy(v, b)
	return nil
}

// derivatives prepares one of the two functions above and returns its values in C
// memory; nil if there is nothing to call.
func (in *Instance) derivatives(f capi.Function, vr []description.ValueReference, order []int32,
	values int) ([]float64, error) {
	if err := in.begin(f); err != nil || len(vr)+values == 0 {
		return nil, err
	}
	if len(vr) != values {
		return nil, in.argument(f, "%d value references for %d values", len(vr), values)
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
	refs, err := native.BufferSlice[uint32](&in.vrBuf, len(vr))
	if err != nil {
		return nil, in.argument(f, "%v", err)
	}
	for k, v := range vr {
		if in.api == capi.V3 && in.fmu.byReference(v).Array != nil {
			return nil, in.argument(f, "derivatives of elements of arrays are not supported")
		}
		refs[k] = v.Number()
	}
	b, err := native.BufferSlice[float64](&in.valBuf, values)
	if err != nil {
		return nil, in.argument(f, "%v", err)
	}
	in.prepare(f, in.comp, native.Address(refs), uintptr(len(refs)), native.Address(o), native.Address(b), uintptr(values))
	return b, nil
}
