// Package plainjson writes JSON for programs: lists and objects are never null, and neither is a document invalid because of
// a number.
//
//	data, err := plainjson.Marshal(report)
package plainjson

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Marshal returns a document like that of encoding/json, with its struct tags, indented and with a newline at the end. It
// differs in that nil slices and maps are [] and {}, numbers that are not finite are null, and <, > and & are not escaped.
// Methods MarshalJSON and MarshalText are used; their output is taken as it is.
func Marshal(v any) ([]byte, error) {
	var compact, out bytes.Buffer
	err := write(&compact, reflect.ValueOf(v))
	if err == nil {
		err = json.Indent(&out, bytes.TrimSpace(compact.Bytes()), "", "  ")
	}
	return append(out.Bytes(), '\n'), err
}

func write(b *bytes.Buffer, v reflect.Value) error {
	if k := v.Kind(); k == reflect.Invalid || (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
		b.WriteString("null")
		return nil
	}
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return writeAsIs(b, v)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return write(b, v.Elem())
	case reflect.Float32, reflect.Float64:
		if x := v.Float(); x-x != 0 {
			b.WriteString("null")
			return nil
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() != reflect.Uint8 { // bytes are text
			return writeAll(b, "[]", v.Len(), func(i int) error { return write(b, v.Index(i)) })
		}
	case reflect.Map:
		return writeMap(b, v)
	case reflect.Struct:
		return writeStruct(b, v)
	}
	return writeAsIs(b, v)
}

// writeAsIs writes a value as encoding/json does.
func writeAsIs(b *bytes.Buffer, v reflect.Value) error {
	e := json.NewEncoder(b) // ends it by a newline, a blank in JSON
	e.SetEscapeHTML(false)
	return e.Encode(v.Interface())
}

// writeAll writes n elements between brackets.
func writeAll(b *bytes.Buffer, brackets string, n int, element func(i int) error) error {
	b.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := element(i); err != nil {
			return err
		}
	}
	b.WriteByte(brackets[1])
	return nil
}

func writeMember(b *bytes.Buffer, name string, v reflect.Value) error {
	err := writeAsIs(b, reflect.ValueOf(name))
	b.WriteByte(':')
	return cmp.Or(err, write(b, v))
}

func writeMap(b *bytes.Buffer, v reflect.Value) error {
	type entry struct {
		name string
		key  reflect.Value
	}
	var all []entry
	for _, key := range v.MapKeys() {
		all = append(all, entry{fmt.Sprint(key), key})
	}
	slices.SortFunc(all, func(x, y entry) int { return cmp.Compare(x.name, y.name) })
	return writeAll(b, "{}", len(all), func(i int) error { return writeMember(b, all[i].name, v.MapIndex(all[i].key)) })
}

// member is a field of a struct, or of a struct embedded in it.
type member struct {
	name      string
	index     []int
	omitEmpty bool
}

func writeStruct(b *bytes.Buffer, v reflect.Value) error {
	var values []reflect.Value
	list := slices.DeleteFunc(members(v.Type(), nil), func(m member) bool {
		field, err := v.FieldByIndexErr(m.index) // fails in an embedded nil pointer
		if err != nil || m.omitEmpty && empty(field) {
			return true
		}
		values = append(values, field)
		return false
	})
	return writeAll(b, "{}", len(list), func(i int) error { return writeMember(b, list[i].name, values[i]) })
}

// members returns the members of a struct in their order. A name hides those in embedded structs.
func members(t reflect.Type, at []int) []member {
	var all []member
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		index := append(slices.Clone(at), i)
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			all = append(all, members(inner, index)...)
		case f.IsExported():
			all = append(all, member{cmp.Or(name, f.Name), index, options == "omitempty"})
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(m member) bool {
		return slices.ContainsFunc(all, func(o member) bool { return o.name == m.name && len(o.index) < len(m.index) })
	})
}

// empty reports whether omitempty leaves a value out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
