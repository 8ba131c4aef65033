// Package fields compares objects in all their fields, unexported ones included.
package fields

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Comparison selects what is compared. Functions and channels never are.
type Comparison struct {
	// Ignored names fields, separated by blanks, by the type that has them.
	Ignored map[string]string
	// Skip reports whether a field is ignored because of the path to its struct; nil = none is.
	Skip func(path, field string) bool
	// Outside reports whether objects behind pointers to a type, or behind an interface, belong to others;
	// nil = none do.
	Outside func(t reflect.Type) bool
}

// most is the largest number of differences that are returned.
const most = 10

// Differences returns the paths of fields that differ, with both values.
func (c Comparison) Differences(a, b any) []string {
	d := comparing{Comparison: c, seen: map[uintptr]bool{}}
	d.compare("", reflect.ValueOf(a), reflect.ValueOf(b))
	return d.found
}

type comparing struct {
	Comparison
	seen  map[uintptr]bool
	found []string
}

func (d *comparing) differ(path string, a, b any) {
	if len(d.found) < most {
		d.found = append(d.found, fmt.Sprintf("%s: %v and %v", path, a, b))
	}
}

func (d *comparing) compare(path string, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				d.differ(path, a, b)
			}
			return
		}
		declared := a.Type()
		if a.Kind() == reflect.Pointer {
			if d.seen[a.Pointer()] {
				return
			}
			d.seen[a.Pointer()] = true
			declared = declared.Elem()
		}
		if d.Outside != nil && d.Outside(declared) {
			return
		}
		if a, b = a.Elem(), b.Elem(); a.Type() != b.Type() {
			d.differ(path, a.Type(), b.Type())
			return
		}
		d.compare(path, a, b)
	case reflect.Struct:
		ignored := strings.Fields(d.Ignored[a.Type().Name()])
		for i := range a.NumField() {
			name := a.Type().Field(i).Name
			if !slices.Contains(ignored, name) && (d.Skip == nil || !d.Skip(path, name)) {
				d.compare(path+"."+name, a.Field(i), b.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			d.differ(path, a, b)
			return
		}
		for i := range a.Len() {
			d.compare(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case reflect.Map:
		if a.Len() != b.Len() {
			d.differ(path, a, b)
			return
		}
		for _, k := range a.MapKeys() {
			if other := b.MapIndex(k); other.IsValid() {
				d.compare(fmt.Sprintf("%s[%v]", path, k), a.MapIndex(k), other)
			} else {
				d.differ(path, k, "absent")
			}
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
	default:
		if fmt.Sprint(a) != fmt.Sprint(b) { // distinguishes all bits but those of NaN
			d.differ(path, a, b)
		}
	}
}
