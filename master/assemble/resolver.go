package assemble

import (
	"iter"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/ssp"
)

// resolver provides package ssp with the FMUs of a system, by FlatComponent.Quoted.
type resolver map[string]*fmi.FMU

// Variables returns the variables of the FMU behind a component.
func (r resolver) Variables(c *ssp.FlatComponent) (ssp.VariableSet, error) {
	return variables{r[c.Quoted].Description}, nil
}

// variables is a model description as an ssp.VariableSet.
type variables struct{ d *description.ModelDescription }

// ModelName returns the name by which OSP finds its model description.
func (s variables) ModelName() string { return s.d.ModelName }

// Lookup finds a variable by its name.
func (s variables) Lookup(name string) (ssp.Variable, bool) {
	v, ok := s.d.Variable(name)
	if !ok {
		return ssp.Variable{}, false
	}
	return s.view(v), true
}

// Sizes returns the sizes of an array of FMI 3.0, nil if there is none.
func (s variables) Sizes(name string) []int {
	const most = 32 // dimensions
	for k := range most {
		if v, ok := s.d.Variable(name + "[1" + strings.Repeat(",1", k) + "]"); ok && v.Array != nil && v.Array.Name == name {
			return v.Array.Sizes
		}
	}
	return nil
}

// Unit finds a unit by its name.
func (s variables) Unit(name string) *unit.Base {
	if u, ok := s.d.Unit(name); ok {
		return u.Base
	}
	return nil
}

// All returns the variables in document order.
func (s variables) All() iter.Seq[ssp.Variable] {
	return func(yield func(ssp.Variable) bool) {
		for i := range s.d.Variables {
			if !yield(s.view(&s.d.Variables[i])) {
				return
			}
		}
	}
}

func (s variables) view(v *description.ScalarVariable) ssp.Variable {
	out := ssp.Variable{
		Name: v.Name, Type: typeOf(v.Type),
		Causality: v.Causality.String(), Variability: v.Variability.String(), Initial: v.Initial.String(),
		Settable: fmuslave.Settable(v),
	}
	if v.Storage == description.StoreBinary {
		out.MediaType = v.MediaType
	}
	switch v.Type {
	case description.Real:
		out.Unit, out.RelativeQuantity = v.Real.Unit, v.Real.RelativeQuantity
		out.Min, out.Max = v.Real.Min, v.Real.Max
		if u, ok := s.d.Unit(v.Real.Unit); ok {
			out.UnitBase = u.Base
		}
	case description.Integer:
		out.Low, out.High = v.Bounds()
	case description.Enumeration:
		out.Low, out.High = v.Range()
		out.Items = map[string]int64{}
		for _, item := range s.d.Enumeration(v.DeclaredType) {
			out.Items[item.Name] = int64(item.Value)
		}
	}
	return out
}

func typeOf(t description.BaseType) ssp.ValueType {
	v, _, _ := ssp.TypeByName(t.String())
	return v
}
