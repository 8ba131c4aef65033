package ssp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxElements bounds the elements of the arrays with sizes in a document.
const maxElements = 1 << 16

// product returns the number of elements of an array.
func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// subscript returns the indices of element k, from 0: "[1,2]". They count from 1, and the last runs first, as in FMI
// 3.0.
func subscript(k int, sizes []int) string {
	text := "]"
	for i, size := range slices.Backward(sizes) {
		if text = strconv.Itoa(k%size+1) + text; i > 0 {
			text = "," + text
		}
		k /= size
	}
	return "[" + text
}

// elements returns connectors, with those of the elements of an array after it.
func elements(connectors []Connector) []*Connector {
	out := make([]*Connector, 0, len(connectors))
	for i := range connectors {
		c := &connectors[i]
		out = append(out, c)
		if c.Sizes == nil {
			continue
		}
		for k := range product(c.Sizes) {
			one := *c
			one.Name, one.Array, one.Sizes = c.Name+subscript(k, c.Sizes), false, nil
			out = append(out, &one)
		}
	}
	return out
}

// outer returns the connector of an element by its name, or that of the array without sizes in which it is.
func (in *instance) outer(name string) *Connector {
	if c := in.connectors[name]; c != nil {
		return c
	}
	if at := strings.LastIndexByte(name, '['); at > 0 {
		if c := in.connectors[name[:at]]; c != nil && c.Array && c.Sizes == nil {
			return c
		}
	}
	return nil
}

// sizes returns the sizes of an array: those of the FMU variable, or else of the connector; nil if it is a scalar, or
// they are not known.
func (f *flattener) sizes(e end) []int {
	if e.in.index >= 0 {
		if set, ok := f.vars[e.in.index].(ArraySet); ok {
			return set.Sizes(e.name)
		}
		return nil
	}
	if c := e.in.declared(e.name); c != nil && e.in.signals == nil {
		return c.Sizes
	}
	return nil
}

// elementwise returns the connections of the elements if a connection joins arrays, else the connection itself.
func (f *flattener) elementwise(in *instance, c *Connection) (out []Connection) {
	a, from, okA := f.part(in, c, c.StartElement, c.StartConnector, c.StartIndices)
	b, to, okB := f.part(in, c, c.EndElement, c.EndConnector, c.EndIndices)
	switch {
	case !okA || !okB:
		return nil
	case from == nil && to == nil:
		one := *c
		one.StartConnector, one.EndConnector = a, b
		return []Connection{one}
	case !slices.Equal(from, to):
		f.l.Report(ruleTypes, c.Place, "%q is %s and %q is %s; only arrays of the same sizes can be connected",
			c.StartConnector, shape(from), c.EndConnector, shape(to))
		return nil
	}
	for k := range product(from) {
		one := *c
		one.StartConnector, one.EndConnector = a+subscript(k, from), b+subscript(k, to)
		out = append(out, one)
	}
	return out
}

// shape describes an array or, without sizes, a scalar.
func shape(sizes []int) string {
	if sizes == nil {
		return "a scalar"
	}
	return fmt.Sprintf("an array of %s", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(sizes)), " × "), "[]"))
}

// part returns the name of an end of a connection and, if it is a whole array, its sizes.
func (f *flattener) part(in *instance, c *Connection, element, connector string, indices []int) (string, []int, bool) {
	at := in
	if element != "" {
		at = in.byName[element]
	}
	if at == nil { // reported with the connection
		return connector, nil, true
	}
	sizes := f.sizes(end{at, connector})
	if indices == nil {
		return connector, sizes, true
	}
	k, inside := 0, len(indices) == len(sizes)
	for i := range sizes {
		if inside = inside && indices[i] >= 1 && indices[i] <= sizes[i]; inside {
			k = k*sizes[i] + indices[i] - 1
		}
	}
	if !inside {
		f.l.Report(ruleTypes, c.Place, "%q is %s, which has no element with the indices %v; they count from 1",
			end{at, connector}, shape(sizes), indices)
		return "", nil, false
	}
	return connector + subscript(k, sizes), nil, true
}

// assignArray gives the values of an array to the elements of a target.
func (x *binder) assignArray(t end) {
	sizes := x.sizes(t)
	values := x.v.Values
	if !x.v.Array {
		values = []Value{x.v.Value}
	}
	given := x.v.Sizes
	if given == nil && sizes != nil && product(sizes) == len(values) { // a list without dimensions
		given = sizes
	}
	if given == nil || !slices.Equal(given, sizes) || product(given) != len(values) {
		x.l.Report(RuleValue, x.v.Place,
			"the value of %q is an array of %d values%s, and %q is %s; give one value for each element",
			x.v.Name, len(values), strings.TrimPrefix(" with the sizes "+fmt.Sprint(x.v.Sizes), " with the sizes []"), t,
			shape(sizes))
		return
	}
	whole, name := x.v, x.name
	for k, value := range values {
		one := *whole
		one.Name, one.Value, one.Array = whole.Name+subscript(k, sizes), value, false
		x.v, x.name = &one, name+subscript(k, sizes)
		x.bindTo(end{t.in, t.name + subscript(k, sizes)})
	}
}
