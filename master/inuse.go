package master

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// ErrInUse is the error of a run that shares a part with another run that has started and is not closed:
// they would step the same subsystem, for example.
var ErrInUse = errors.New("in use by another run")

// marks is global, because runs have nothing in common but shared objects.
var marks = struct {
	sync.Mutex
	holder map[any]*Run // from Start to Close
	// prepared holds, by algorithm or hook, the run whose NewRun prepared it last.
	prepared map[any]*Run
}{holder: map[any]*Run{}, prepared: map[any]*Run{}}

// part is an object that only one run at a time may use.
type part struct {
	mark   any
	what   string // for messages
	remedy string
}

// object identifies an object by its place in memory.
type object struct {
	of reflect.Type
	at uintptr
}

// identities returns the keys that identify v: its address, and the addresses of the objects that it
// embeds to implement a role, which is an interface type, as a decorator does. Values without references
// have no state that runs could share, and no key.
func identities(v any, role reflect.Type) []any {
	var marks []any
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Struct && r.Comparable() && hasReference(r) {
		marks = append(marks, v)
	}
	for {
		switch r.Kind() {
		case reflect.Interface:
			r = r.Elem()
			continue
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan:
			// Objects of no size may all be at the same address.
			empty := r.Kind() == reflect.Pointer && r.Type().Elem().Size() == 0 || r.Kind() == reflect.Slice && r.Cap() == 0
			if !r.IsNil() && !empty {
				marks = append(marks, object{r.Type(), r.Pointer()})
			}
		}
		if r.Kind() == reflect.Pointer {
			r = r.Elem()
		}
		if r.Kind() != reflect.Struct {
			return marks
		}
		inner := embedded(r, role)
		if !inner.IsValid() {
			return marks
		}
		r = inner
	}
}

// embedded returns the embedded field that implements the role; the zero Value if there is none.
func embedded(r reflect.Value, role reflect.Type) reflect.Value {
	for i := range r.NumField() {
		if f := r.Type().Field(i); f.Anonymous && f.Type.Implements(role) {
			return r.Field(i)
		}
	}
	return reflect.Value{}
}

// hasReference reports whether a struct holds a pointer, slice or map, so that its copies share memory.
func hasReference(r reflect.Value) bool {
	for i := range r.NumField() {
		switch r.Field(i).Kind() {
		case reflect.Pointer, reflect.Chan, reflect.Interface:
			return true
		}
	}
	return false
}

// The interfaces that parts of a run implement.
var (
	subsystemRole = reflect.TypeFor[Subsystem]()
	algorithmRole = reflect.TypeFor[Algorithm]()
	hookRole      = reflect.TypeFor[Hook]()
	recorderRole  = reflect.TypeFor[Recorder]()
	attemptsRole  = reflect.TypeFor[AttemptRecorder]()
)

func partsOf(v any, role reflect.Type, what, remedy string) []part {
	var parts []part
	for _, mark := range identities(v, role) {
		parts = append(parts, part{mark, what, remedy})
	}
	return parts
}

// subsystemParts returns the parts of subsystem i: itself and the subsystems that it wraps.
func (r *Run) subsystemParts(i int) []part {
	var parts []part
	for s := r.given.Subsystems[i]; s != nil; {
		parts = append(parts, partsOf(s, subsystemRole, "the subsystem "+r.sys.Infos[i].String(),
			"make the subsystems anew for each run")...)
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
	parts := partsOf(r.alg, algorithmRole, fmt.Sprintf("the algorithm (%T)", r.alg), "make an algorithm for each run")
	for _, h := range r.opt.Hooks {
		parts = append(parts, partsOf(h, hookRole, fmt.Sprintf("the hook %T", h), "make a hook for each run")...)
	}
	return parts
}

// startedParts returns all parts that no other run may use from Start to Close.
func (r *Run) startedParts() ([]part, error) {
	parts := append(r.preparedParts(), part{r.given, "the system", "make a system for each run"})
	owner := map[any]int{}
	for i := range r.given.Subsystems {
		for _, p := range r.subsystemParts(i) {
			if other, twice := owner[p.mark]; twice && other != i {
				return nil, fmt.Errorf("the subsystems %s and %s of the system are the same object, which would "+
					"be stepped twice: make one for each name",
					r.sys.Infos[other], r.sys.Infos[i])
			}
			owner[p.mark] = i
			parts = append(parts, p)
		}
	}
	for _, rec := range r.opt.Recorders {
		parts = append(parts, partsOf(rec, recorderRole, fmt.Sprintf("the recorder %T", rec), "make a recorder for each run")...)
	}
	what := fmt.Sprintf("the recorder of attempts %T", r.opt.Attempts)
	return append(parts, partsOf(r.opt.Attempts, attemptsRole, what, "make a recorder for each run")...), nil
}

// shownParts is the largest number of shared parts in a message.
const shownParts = 4

// mark marks all parts as in use by this run; it fails, and marks nothing, if another run uses one.
func (r *Run) mark(parts []part) error {
	marks.Lock()
	defer marks.Unlock()
	var shared, remedies []string
	left := 0
	seen := map[string]bool{}
	for _, p := range parts {
		if other := marks.holder[p.mark]; other == nil || other == r || seen[p.what] {
			continue
		}
		seen[p.what] = true
		if len(shared) == shownParts {
			left++
			continue
		}
		shared = append(shared, p.what)
		if !seen[p.remedy] {
			seen[p.remedy] = true
			remedies = append(remedies, p.remedy)
		}
	}
	if left > 0 {
		shared = append(shared, fmt.Sprintf("%d more", left))
	}
	if len(shared) > 0 {
		return fmt.Errorf("%w: %s; both runs would give wrong numbers: %s, or close the other run first",
			ErrInUse, strings.Join(shared, ", "), strings.Join(remedies, ", "))
	}
	for _, p := range parts {
		marks.holder[p.mark] = r
	}
	return nil
}

// unmark removes the marks of this run from the parts.
func (r *Run) unmark(parts []part) {
	marks.Lock()
	defer marks.Unlock()
	for _, p := range parts {
		if marks.holder[p.mark] == r {
			delete(marks.holder, p.mark)
		}
	}
}

// notePrepared records that this run prepares its algorithm and hooks, and reports whether it was already
// the last one to do so.
func (r *Run) notePrepared() (still bool) {
	marks.Lock()
	defer marks.Unlock()
	still = true
	for _, p := range r.preparedParts() {
		still = still && marks.prepared[p.mark] == r
		marks.prepared[p.mark] = r
	}
	return still
}

// forgetPrepared removes the record of notePrepared.
func (r *Run) forgetPrepared() {
	marks.Lock()
	defer marks.Unlock()
	for _, p := range r.preparedParts() {
		if marks.prepared[p.mark] == r {
			delete(marks.prepared, p.mark)
		}
	}
}
