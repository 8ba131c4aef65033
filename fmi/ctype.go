package fmi

import (
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// ctype is a type in C: its getter and setter, and the size of a value in bytes.
type ctype struct {
	get, set capi.Function
	size     uintptr
}

// ctypes are the types of FMI 3.0. FMI 2.0 has the first one of each kind; its Booleans and Enumerations are passed
// as Int32.
var ctypes = [...]ctype{
	description.StoreFloat64: {capi.GetReal, capi.SetReal, 8},
	description.StoreFloat32: {capi.GetFloat32, capi.SetFloat32, 4},
	description.StoreInt8:    {capi.GetInt8, capi.SetInt8, 1},
	description.StoreUInt8:   {capi.GetUInt8, capi.SetUInt8, 1},
	description.StoreInt16:   {capi.GetInt16, capi.SetInt16, 2},
	description.StoreUInt16:  {capi.GetUInt16, capi.SetUInt16, 2},
	description.StoreInt32:   {capi.GetInteger, capi.SetInteger, 4},
	description.StoreUInt32:  {capi.GetUInt32, capi.SetUInt32, 4},
	description.StoreInt64:   {capi.GetInt64, capi.SetInt64, 8},
	description.StoreUInt64:  {capi.GetUInt64, capi.SetUInt64, 8},
	description.StoreBool:    {capi.GetBoolean, capi.SetBoolean, 1},
	description.StoreText:    {capi.GetString, capi.SetString, 8},
	description.StoreBinary:  {capi.GetBinary, capi.SetBinary, 8},
	description.StoreEnum:    {capi.GetInt64, capi.SetInt64, 8},
}

// oldTypes are the types of FMI 2.0 by kind.
var oldTypes = [...]ctype{
	description.Real:        ctypes[description.StoreFloat64],
	description.Integer:     ctypes[description.StoreInt32],
	description.Boolean:     {capi.GetBoolean, capi.SetBoolean, 4},
	description.String:      ctypes[description.StoreText],
	description.Enumeration: ctypes[description.StoreInt32],
}

var oldStorage = [...]description.Storage{
	description.Real:        description.StoreFloat64,
	description.Integer:     description.StoreInt32,
	description.Boolean:     description.StoreInt32,
	description.String:      description.StoreText,
	description.Enumeration: description.StoreInt32,
}

// group is the variables that one call of a getter or setter takes (fmi3 15).
type group struct {
	*ctype
	storage description.Storage
	vr      []description.ValueReference // all that the group takes, in FMI 2.0; else nil
	refs    []uint32                     // of the variables, in FMI 3.0
	sizes   []int                        // of the variables in elements
	n       int                          // elements of all
	arrays  bool                         // there are arrays
	clocks  []uint32                     // to which the variables belong
	// Of the values of the caller that the group has: their indices and their elements. nil: all values are its
	// elements, in order.
	index, at []int
}

// variables returns the number of variables, and numbers their references.
func (g *group) variables() int { return len(g.vr) + len(g.refs) }

func (g *group) numbers(to []uint32) {
	copy(to, g.refs)
	for k, v := range g.vr {
		to[k] = v.Number()
	}
}

// length returns the number of values of the caller that the group has.
func (g *group) length() int {
	if g.at == nil {
		return g.n
	}
	return len(g.at)
}

// value returns the index and the element of value i of the group.
func (g *group) value(i int) (index, element int) {
	if g.at == nil {
		return i, i
	}
	return g.index[i], g.at[i]
}

// settle drops index and at if all values are elements in order.
func (g *group) settle(values int) {
	for k, at := range g.at {
		if at != k || g.index[k] != k {
			return
		}
	}
	if len(g.at) == g.n && g.n == values {
		g.index, g.at = nil, nil
	}
}

// groups returns the calls for variables of a kind; they are valid until the next call but one. In FMI 3.0 a variable
// is taken whole, and once.
func (in *Instance) groups(kind description.BaseType, vr []description.ValueReference) (list []group, err error) {
	if in.api != capi.V3 {
		in.turn ^= 1
		g := &in.plain[in.turn]
		g.ctype, g.storage, g.vr, g.n = &oldTypes[kind], oldStorage[kind], vr, len(vr)
		return in.plain[in.turn:][:1], nil
	}
	begin := map[uint32]int{} // first element of a variable in its group
	for k, v := range vr {
		x := in.fmu.byReference(v)
		if x == nil {
			return nil, usage(in.name, "no variable has the value reference %d, element %d", v.Number(), v.Element())
		}
		if of := x.Type; of != kind && (of != description.Enumeration || kind != description.Integer) {
			return nil, usage(in.name, "%s has another type", x.Name)
		}
		at := slices.IndexFunc(list, func(g group) bool { return g.storage == x.Storage && slices.Equal(g.clocks, x.Clocks) })
		if at < 0 {
			at = len(list)
			list = append(list, group{ctype: &ctypes[x.Storage], storage: x.Storage, clocks: x.Clocks})
		}
		g := &list[at]
		first, seen := begin[v.Number()]
		if !seen {
			size := 1
			if x.Array != nil {
				size, g.arrays = x.Array.Len(), true
			}
			first = g.n
			begin[v.Number()] = first
			g.refs, g.sizes, g.n = append(g.refs, v.Number()), append(g.sizes, size), g.n+size
		}
		g.index, g.at = append(g.index, k), append(g.at, first+v.Element())
	}
	for k := range list {
		list[k].settle(len(vr))
	}
	return list, nil
}

// byReference returns the variable with a reference of FMI 3.0, nil if there is none.
func (f *FMU) byReference(v description.ValueReference) *description.ScalarVariable {
	f.referenceOnce.Do(func() {
		f.variableAt = make(map[description.ValueReference]int, len(f.Description.Variables))
		for k := range f.Description.Variables {
			x := &f.Description.Variables[k]
			if _, taken := f.variableAt[x.ValueReference]; !taken { // the first of aliases
				f.variableAt[x.ValueReference] = k
			}
		}
	})
	if k, ok := f.variableAt[v]; ok {
		return &f.Description.Variables[k]
	}
	return nil
}

// value is a value above C.
type value struct {
	real    float64
	integer int64 // also of Boolean: 0 or 1
	text    string
}

// storeValue stores a value at p. It reports whether it fits.
func storeValue(storage description.Storage, p uintptr, v value) bool {
	at := native.Pointer(p)
	switch storage {
	case description.StoreFloat64:
		*(*float64)(at) = v.real
	case description.StoreFloat32:
		*(*float32)(at) = float32(v.real)
		return finite(float64(float32(v.real))) || !finite(v.real)
	case description.StoreInt8:
		*(*int8)(at) = int8(v.integer)
		return int64(int8(v.integer)) == v.integer
	case description.StoreUInt8, description.StoreBool:
		*(*uint8)(at) = uint8(v.integer)
		return int64(uint8(v.integer)) == v.integer
	case description.StoreInt16:
		*(*int16)(at) = int16(v.integer)
		return int64(int16(v.integer)) == v.integer
	case description.StoreUInt16:
		*(*uint16)(at) = uint16(v.integer)
		return int64(uint16(v.integer)) == v.integer
	case description.StoreInt32:
		*(*int32)(at) = int32(v.integer)
		return int64(int32(v.integer)) == v.integer
	case description.StoreUInt32:
		*(*uint32)(at) = uint32(v.integer)
		return int64(uint32(v.integer)) == v.integer
	default: // Int64, UInt64, Enumeration
		*(*int64)(at) = v.integer
		return storage != description.StoreUInt64 || v.integer >= 0
	}
	return true
}

// loadValue loads the value at p. It reports whether it fits.
func loadValue(storage description.Storage, p uintptr) (v value, ok bool) {
	at := native.Pointer(p)
	switch storage {
	case description.StoreFloat64:
		v.real = *(*float64)(at)
	case description.StoreFloat32:
		v.real = float64(*(*float32)(at))
	case description.StoreInt8:
		v.integer = int64(*(*int8)(at))
	case description.StoreUInt8:
		v.integer = int64(*(*uint8)(at))
	case description.StoreBool:
		v.integer = int64(flag(*(*uint8)(at) != 0))
	case description.StoreInt16:
		v.integer = int64(*(*int16)(at))
	case description.StoreUInt16:
		v.integer = int64(*(*uint16)(at))
	case description.StoreInt32:
		v.integer = int64(*(*int32)(at))
	case description.StoreUInt32:
		v.integer = int64(*(*uint32)(at))
	default:
		v.integer = *(*int64)(at)
		return v, storage != description.StoreUInt64 || v.integer >= 0
	}
	return v, true
}

// unfit returns the error of a value that does not fit.
func (in *Instance) unfit(f capi.Function, vr description.ValueReference, v value, storage description.Storage) error {
	name := fmt.Sprintf("the variable with reference %d", vr.Number())
	for k := range in.fmu.Description.Variables {
		x := &in.fmu.Description.Variables[k]
		if integer := x.Type == description.Integer || x.Type == description.Enumeration; x.ValueReference == vr &&
			(in.api == capi.V3 || integer) {
			name = x.Name
			break
		}
	}
	if storage == description.StoreFloat32 {
		return in.argument(f, "the value %g of %s does not fit into a Float32", v.real, name)
	}
	if f == capi.GetUInt64 {
		return in.argument(f, "the value %d of %s is larger than %d, the largest integer that macrostep represents",
			uint64(v.integer), name, int64(math.MaxInt64))
	}
	low, high := storage.Range()
	return in.argument(f, "the value %d of %s is not in the range of its type, %d to %d", v.integer, name, low, high)
}
