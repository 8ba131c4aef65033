package algorithms

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Tolerance is a tolerance for all variables, or for one.
type Tolerance struct {
	Variable string // "component.variable"; "" = all variables without a tolerance of their own
	Value    float64
}

// Default tolerances. The absolute tolerance is absolutePart times the relative tolerance times the
// nominal value.
const (
	defaultRelative = 1e-4
	absolutePart    = 1e-2
)

// tolerances give the weights W = atol + rtol·|value| (meyer 5.1).
type tolerances struct {
	rtol, atol []Tolerance
	relative   float64 // of variables without a relative tolerance of their own
	inRel, inAbs,
	outRel, outAbs []float64
	inScale, outScale []scale   // variables whose absolute tolerance depends on their values
	inPart            []float64 // scale.part of each input, 0 = the absolute tolerance is fixed
}

// scale is the largest magnitude of a variable without nominal value at accepted points, at least
// 1, the default nominal value (fmi2 17).
type scale struct {
	variable int
	part     float64 // absolute tolerance relative to largest
	largest  float64
}

// learn updates the scales from coupling inputs w [nu] and outputs y [ny] at an accepted point.
func (t *tolerances) learn(w, y []float64) {
	learn(t.inScale, w, t.inAbs)
	learn(t.outScale, y, t.outAbs)
}

func learn(scales []scale, values, absolute []float64) {
	for i := range scales {
		s := &scales[i]
		if v := math.Abs(values[s.variable]); v > s.largest {
			s.largest = v
			absolute[s.variable] = s.part * v
		}
	}
}

func (t *tolerances) archive(a *master.Archive) {
	a.Section("scales of variables")
	a.All(t.inScale, t.outScale, t.inAbs, t.outAbs)
}

// init sets the tolerances of every input and output. An input without a tolerance of its own has
// that of its source, converted to its unit, else the general one.
func (t *tolerances) init(sys *master.System) error {
	t.relative = valueOf(t.rtol, "", defaultRelative)
	if err := known(sys, t.rtol, t.atol); err != nil {
		return err
	}
	nu, ny := sys.InAt[len(sys.Subsystems)], sys.OutAt[len(sys.Subsystems)]
	t.inRel, t.inAbs = make([]float64, nu), make([]float64, nu)
	t.outRel, t.outAbs = make([]float64, ny), make([]float64, ny)
	t.inScale, t.outScale, t.inPart = nil, nil, make([]float64, nu)
	// given reports whether the absolute tolerance or the nominal value is given.
	given := func(name string, nominal float64) bool {
		return nominal > 0 || named(t.atol, name) || named(t.atol, "")
	}
	for i, info := range sys.Infos {
		for p, port := range info.Out {
			k := sys.OutAt[i] + p
			t.outRel[k], t.outAbs[k] = t.of(sys.OutName(k), port.Nominal)
			if !given(sys.OutName(k), port.Nominal) {
				t.outScale = append(t.outScale, scale{k, absolutePart * t.outRel[k], 1})
			}
		}
	}
	for i, info := range sys.Infos {
		for p, port := range info.In {
			k := sys.InAt[i] + p
			rel, abs := t.of(sys.InName(k), port.Nominal)
			learns := !given(sys.InName(k), port.Nominal)
			if y, ok := sys.Source(k); ok {
				gain := math.Abs(sys.Gain(k))
				if !named(t.rtol, sys.InName(k)) && named(t.rtol, sys.OutName(y)) {
					rel = t.outRel[y]
				}
				if !named(t.atol, sys.InName(k)) && named(t.atol, sys.OutName(y)) {
					abs, learns = gain*t.outAbs[y], false
				}
			}
			t.inRel[k], t.inAbs[k] = rel, abs
			if learns {
				t.inPart[k] = absolutePart * rel
				t.inScale = append(t.inScale, scale{k, t.inPart[k], 1})
			}
		}
	}
	return nil
}

// known returns an error if a list names variables that the system does not have.
func known(sys *master.System, lists ...[]Tolerance) error {
	var unknown []string
	for _, list := range lists {
		for _, e := range list {
			if e.Variable == "" {
				continue
			}
			_, in := sys.FindIn(e.Variable)
			_, out := sys.FindOut(e.Variable)
			if !in && !out {
				unknown = append(unknown, e.Variable)
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	var names []string
	for i := range sys.InAt[len(sys.Subsystems)] {
		names = append(names, sys.InName(i))
	}
	for i := range sys.OutAt[len(sys.Subsystems)] {
		names = append(names, sys.OutName(i))
	}
	return fmt.Errorf("a tolerance names %s, which is not a Real input or output of the system%s", strings.Join(unknown, ", "),
		cmp.Or(diag.DidYouMean(unknown[0], names), "; write component.variable"))
}

// valueOf returns the value for a variable: its own, else the general one, else otherwise.
func valueOf(list []Tolerance, name string, otherwise float64) float64 {
	for _, of := range [2]string{name, ""} {
		if i := slices.IndexFunc(list, func(e Tolerance) bool { return e.Variable == of }); i >= 0 {
			return list[i].Value
		}
	}
	return otherwise
}

// of returns the tolerances of a variable with a nominal value; 0 = none.
func (t *tolerances) of(name string, nominal float64) (rel, abs float64) {
	if !(nominal > 0) {
		nominal = 1
	}
	rel = valueOf(t.rtol, name, defaultRelative)
	return rel, valueOf(t.atol, name, absolutePart*rel*nominal)
}

// named reports whether a list has a value for a variable; "" = a general value.
func named(list []Tolerance, name string) bool {
	return slices.ContainsFunc(list, func(e Tolerance) bool { return e.Variable == name })
}

// input returns the weight of input k at a value.
func (t *tolerances) input(k int, value float64) float64 {
	return t.inAbs[k] + float64(t.inRel[k]*math.Abs(value))
}

// unknown returns the weight of input k, of a magnitude, at a value for the solution of equations. An absolute tolerance
// that a single large value has raised would let an iteration end at any small value.
func (t *tolerances) unknown(k int, m *magnitude, value float64) float64 {
	abs := t.inAbs[k]
	if part := t.inPart[k]; part > 0 {
		abs = min(abs, part*max(m.largest, 1))
	}
	return abs + float64(t.inRel[k]*math.Abs(value))
}

// output returns the weight of output k at a value.
func (t *tolerances) output(k int, value float64) float64 {
	return t.outAbs[k] + float64(t.outRel[k]*math.Abs(value))
}
