package fmi

import (
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// edge copies the values of a record of a Stepper between C memory and its slice, if their types differ or the record
// takes more elements of an array than the slice has.
type edge struct {
	group
	f      capi.Function
	record int
	set    bool
	c      uintptr                      // address of the elements
	values []description.ValueReference // of its slice
	// One of the slices of the Stepper.
	reals    []float64
	integers []int64
	booleans []int32
}

// fill sets the elements of arrays that are not in the slice.
func (e *edge) fill(in *Instance) error {
	if !e.set || !e.arrays {
		return nil
	}
	values, err := in.whole(&e.group, &list{reals: make([]float64, len(e.values))})
	for at, v := range values {
		storeValue(e.storage, e.c+uintptr(at)*e.size, v)
	}
	return err
}

// refresh sets the elements of an array that has been set as a whole.
func (e *edge) refresh(ref uint32, values []value) {
	first := 0
	for k, r := range e.refs {
		if r == ref && e.set {
			for at, v := range values {
				storeValue(e.storage, e.c+uintptr(first+at)*e.size, v)
			}
		}
		first += e.sizes[k]
	}
}

// store copies the inputs to C memory before the calls from a record on.
func (s *Stepper) store(from int) error {
	for _, e := range s.edges {
		if !e.set || e.record < from {
			continue
		}
		for i := range e.length() {
			k, at := e.value(i)
			var v value
			switch {
			case e.reals != nil:
				v.real = e.reals[k]
			case e.integers != nil:
				v.integer = e.integers[k]
			default:
				v.integer = int64(e.booleans[k])
			}
			if !storeValue(e.storage, e.c+uintptr(at)*e.size, v) {
				return s.in.unfit(e.f, e.values[k], v, e.storage)
			}
		}
	}
	return nil
}

// load copies the outputs from C memory after the calls of some records, of which the first has the given number. A
// value that does not fit is an error.
func (s *Stepper) load(recs []native.Record, first int) error {
	for _, e := range s.edges {
		if at := e.record - first; e.set || at < 0 || at >= len(recs) || native.Stops(recs[at].Status()) {
			continue
		}
		for i := range e.length() {
			k, at := e.value(i)
			v, ok := loadValue(e.storage, e.c+uintptr(at)*e.size)
			if events := s.in.events; events != nil && e.clocks != nil && ok {
				v = events.hold(e.values[k], v, s.called(e.record))
			}
			switch {
			case !ok:
				return s.in.unfit(e.f, e.values[k], v, e.storage)
			case e.reals != nil:
				e.reals[k] = v.real
			case e.integers != nil:
				e.integers[k] = v.integer
			default:
				e.booleans[k] = int32(v.integer)
			}
		}
	}
	return nil
}
