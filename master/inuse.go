package master

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// ErrInUse is the error of a run that shares a part with another run that has started and is not closed:
// they would step the same subsystem, for example.
var ErrInUse = errors.New("in use by another run")

// holders are the runs that use objects, from Start to Close. They are global, because runs have nothing in
// common but shared objects.
var holders = struct {
	sync.Mutex
	of map[any]*Run
}{of: map[any]*Run{}}

// part is an object that only one run at a time may use.
type part struct {
	object any
	what   string // for messages
}

// addPart adds an object. Only pointers have an identity, and those to nothing may all be equal.
func addPart(parts []part, object any, what string) []part {
	if t := reflect.TypeOf(object); t == nil || t.Kind() != reflect.Pointer || t.Elem().Size() == 0 {
		return parts
	}
	return append(parts, part{object, what})
}

// subsystemParts returns subsystem i and the subsystems that it wraps.
func (r *Run) subsystemParts(i int) (parts []part) {
	for s := r.given.Subsystems[i]; s != nil; {
		parts = addPart(parts, s, "the subsystem "+r.sys.Infos[i].String())
		u, ok := s.(interface{ Unwrap() Subsystem })
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	return parts
}

// preparedParts returns the algorithm and the hooks.
func (r *Run) preparedParts() []part {
	parts := addPart(nil, r.alg, fmt.Sprintf("the algorithm (%T)", r.alg))
	for _, h := range r.opt.Hooks {
		parts = addPart(parts, h, fmt.Sprintf("the hook %T", h))
	}
	return parts
}

// startedParts returns all parts that no other run may use from Start to Close.
func (r *Run) startedParts() ([]part, error) {
	parts := addPart(r.preparedParts(), r.given, "the system")
	owner := map[any]int{}
	for i := range r.given.Subsystems {
		for _, p := range r.subsystemParts(i) {
			if other, twice := owner[p.object]; twice {
				return nil, fmt.Errorf("the subsystems %s and %s of the system are the same object, which would "+
					"be stepped twice: make one for each name", r.sys.Infos[other], r.sys.Infos[i])
			}
			owner[p.object] = i
			parts = append(parts, p)
		}
	}
	for _, rec := range r.opt.Recorders {
		parts = addPart(parts, rec, fmt.Sprintf("the recorder %T", rec))
	}
	return addPart(parts, r.opt.Attempts, fmt.Sprintf("the recorder of attempts %T", r.opt.Attempts)), nil
}

// mark marks all parts as in use by this run; it fails, and marks nothing, if another run uses one.
func (r *Run) mark(parts []part) error {
	holders.Lock()
	defer holders.Unlock()
	for _, p := range parts {
		if other := holders.of[p.object]; other != nil && other != r {
			return fmt.Errorf("%w: %s; both runs would give wrong numbers: make all parts anew for each run, "+
				"or close the other run first", ErrInUse, p.what)
		}
	}
	for _, p := range parts {
		holders.of[p.object] = r
	}
	return nil
}

// unmark removes the marks of this run from the parts.
func (r *Run) unmark(parts []part) {
	holders.Lock()
	defer holders.Unlock()
	for _, p := range parts {
		if holders.of[p.object] == r {
			delete(holders.of, p.object)
		}
	}
}
