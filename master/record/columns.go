package record

import (
	"fmt"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Columns is a [master.Recorder] that keeps the points of a run in memory, in the columns of
// a [Table]. The zero value records the default selection of variables. A new run discards
// the points of the previous one. Do not modify the slices that the methods return.
type Columns struct {
	Select Selection
	Result master.Result // of the run, when it has ended

	layout  layout
	real    [][]float64
	integer [][]int64
	boolean [][]bool
	text    [][]string
}

// Begin chooses the columns.
func (c *Columns) Begin(sys *master.System, measured []master.Port) (err error) {
	c.layout, err = choose(sys, measured, &Options{Select: c.Select})
	n := c.layout.count
	c.real, c.integer = make([][]float64, n[master.Real]), make([][]int64, n[master.Integer])
	c.boolean, c.text = make([][]bool, n[master.Boolean]), make([][]string, n[master.String])
	return err
}

// Record appends a point.
func (c *Columns) Record(p *master.Point) error {
	c.real[0] = append(c.real[0], p.T)
	for i := range c.layout.segments {
		s := &c.layout.segments[i]
		switch s.from {
		case fromU:
			extend(c.real, s, p.U)
			continue
		case fromY:
			extend(c.real, s, p.Y)
			continue
		case fromMeasured:
			extend(c.real, s, p.Measured)
			continue
		}
		switch v := s.values(p); s.kind {
		case master.Real:
			extend(c.real, s, v.Real)
		case master.Integer:
			extend(c.integer, s, v.Integer)
		case master.Boolean:
			extend(c.boolean, s, v.Boolean)
		case master.String:
			extend(c.text, s, v.String)
		}
	}
	return nil
}

// extend appends the values of a segment to their columns.
func extend[T any](columns [][]T, s *segment, from []T) {
	for k, v := range from[s.at : s.at+s.n] {
		columns[s.to+k] = append(columns[s.to+k], v)
	}
}

// Flush does nothing.
func (c *Columns) Flush() error { return nil }

// End keeps the result.
func (c *Columns) End(r master.Result) error {
	c.Result = r
	return nil
}

// Time returns the communication points in s.
func (c *Columns) Time() []float64 {
	if c.real == nil {
		return nil
	}
	return c.real[0]
}

// Names lists the variables "component.variable" in the order of a table.
func (c *Columns) Names() []string {
	var names []string
	for i := range c.layout.columns {
		if i > 0 { // time
			names = append(names, c.layout.columns[i].name)
		}
	}
	return names
}

// Real returns the values of a Real at the points of Time. If there is none of this name and
// type, the error lists similar names.
func (c *Columns) Real(name string) ([]float64, error) { return find(c, name, master.Real, c.real) }

// Integer returns the values of an Integer or an enumeration.
func (c *Columns) Integer(name string) ([]int64, error) {
	return find(c, name, master.Integer, c.integer)
}

// Boolean returns the values of a Boolean.
func (c *Columns) Boolean(name string) ([]bool, error) {
	return find(c, name, master.Boolean, c.boolean)
}

// Text returns the values of a String.
func (c *Columns) Text(name string) ([]string, error) { return find(c, name, master.String, c.text) }

func find[T any](c *Columns, name string, kind master.Kind, columns [][]T) ([]T, error) {
	for i := range c.layout.columns {
		switch column := &c.layout.columns[i]; {
		case i == 0 || column.name != name:
		case column.kind != kind:
			types := [...]string{
				master.Real: "a Real", master.Integer: "an Integer", master.Boolean: "a Boolean", master.String: "a String",
			}
			return nil, fmt.Errorf("%s is recorded as %s, not as %s", name, types[column.kind], types[kind])
		default:
			return columns[column.at], nil
		}
	}
	names := c.Names()
	if len(names) == 0 {
		return nil, fmt.Errorf("no variable %q was recorded", name)
	}
	return nil, fmt.Errorf("no variable %q was recorded%s", name, diag.DidYouMeanOr(name, names, "; the recorded variables are "))
}
