package fmuslave

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// readBackTolerance is what a Real may lose on its way through the FMU,
// relative: conversions of units inside it, not single precision.
const readBackTolerance = 1e-12

// expectation is a value that was asked for and should be there when the
// initialisation is over.
type expectation struct {
	variable *fmi.ScalarVariable
	value    Value
}

// expects tells whether a value given for a variable holds after the
// initialisation: that of a parameter or exact start, and of an input that the
// master does not drive. An approx start is a guess which may change.
func (s *Slave) expects(v *fmi.ScalarVariable) bool {
	if v.Causality != fmi.Input {
		return v.Initial == fmi.Exact
	}
	return !s.drives(v)
}

// kept is a value that the FMU does not have as it was given.
type kept struct {
	expectation
	asked, is string
	err       error // the FMU does not tell what it has
}

// readBack compares what was given with what the FMU has, after initialisation
// and before the first step, when every variable may be read (fmi2 39, 42).
// Some FMUs ignore values, clip them or compute them anew.
func (s *Slave) readBack() error {
	s.notes = nil
	list, err := s.differing()
	for _, x := range list {
		if x.err != nil {
			s.notes = append(s.notes, fmt.Sprintf("%s.%s was set to %s; the FMU does not tell whether it keeps the value: %v", s.info.Name, x.variable.Name, x.asked, x.err))
			continue
		}
		s.notes = append(s.notes, fmt.Sprintf("%s.%s was set to %s and is %s after initialisation: the FMU does not keep the value",
			s.info.Name, x.variable.Name, x.asked, x.is))
	}
	return err
}

// differing lists what was given and is something else now.
func (s *Slave) differing() (list []kept, err error) {
	for _, x := range s.given {
		v := x.variable
		vr := []fmi.ValueReference{v.ValueReference}
		var err error
		differ := false
		asked, is := "", ""
		switch kindOf(v.Type) {
		case master.Real:
			var out [1]float64
			err = s.instance.GetReal(vr, out[:])
			differ = !(math.Abs(out[0]-x.value.Real) <= readBackTolerance*math.Abs(x.value.Real))
			asked, is = fmt.Sprint(x.value.Real), fmt.Sprint(out[0])
		case master.Integer:
			var out [1]int32
			err = s.instance.GetInteger(vr, out[:])
			differ = out[0] != x.value.Integer
			asked, is = s.integerText(v, x.value.Integer), s.integerText(v, out[0])
		case master.Boolean:
			var out [1]bool
			err = s.instance.GetBoolean(vr, out[:])
			differ = out[0] != x.value.Boolean
			asked, is = fmt.Sprint(x.value.Boolean), fmt.Sprint(out[0])
		case master.String:
			var out [1]string
			err = s.instance.GetString(vr, out[:])
			differ = out[0] != x.value.String
			asked, is = fmt.Sprintf("%q", x.value.String), fmt.Sprintf("%q", out[0])
		}
		switch {
		case err != nil && s.instance.State() != fmi.StateStepComplete:
			return list, err
		case err != nil: // the FMU has discarded the call and goes on
			list = append(list, kept{x, asked, is, err})
		case differ:
			list = append(list, kept{x, asked, is, nil})
		}
	}
	return list, nil
}

// integerText names the item of an enumeration.
func (s *Slave) integerText(v *fmi.ScalarVariable, n int32) string {
	if v.Type == fmi.Enumeration {
		for _, item := range s.config.FMU.Description.Enumeration(v.DeclaredType) {
			if item.Value == n {
				return fmt.Sprintf("%s (%d)", item.Name, n)
			}
		}
	}
	return fmt.Sprint(n)
}

// Notes tells which given values the FMU did not keep, after ExitInit.
func (s *Slave) Notes() []string { return s.notes }

var _ master.Noter = (*Slave)(nil)
