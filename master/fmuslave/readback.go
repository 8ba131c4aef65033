package fmuslave

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// readBackTolerance is the largest relative change of a Real by the FMU: it allows for conversions of units,
// not for single precision.
const readBackTolerance = 1e-12

// expectation is a given or documented value that a variable should have after the initialisation.
type expectation struct {
	variable *description.ScalarVariable
	value    Value
}

// expects reports whether a given value holds after the initialisation: that of a parameter or exact start,
// and of an input that the master does not drive. An approx start is a guess that may change.
func (s *Slave) expects(v *description.ScalarVariable) bool {
	if v.Causality != description.Input {
		return v.Initial == description.Exact
	}
	return !s.drives(v)
}

// found compares the value of the FMU with an expectation.
type found struct {
	expectation
	asked, is string
	differs   bool
	err       error // of reading the value
}

// readBack compares given and documented values with those of the FMU, after the initialisation and before
// the first step, when every variable may be read (fmi2 39): some FMUs ignore values, clip them, recompute
// them, or start with other parameters than they document (fmi2 42).
func (s *Slave) readBack() error {
	s.notes, s.revived, s.refused = nil, 0, nil
	if s.config.Aside {
		return nil
	}
	list, err := s.compare(s.given)
	if err != nil {
		return err
	}
	for _, x := range list {
		switch {
		case x.err != nil:
			s.notes = append(s.notes, fmt.Sprintf("%s.%s was set to %s, but the value cannot be read back (%v); check its effect in the results",
				s.info.Name, x.variable.Name, x.asked, x.err))
		case x.differs:
			s.notes = append(s.notes, fmt.Sprintf("%s.%s was set to %s and is %s after initialisation: the FMU does not keep the value; remove it, or set what it is computed from",
				s.info.Name, x.variable.Name, x.asked, x.is))
		}
	}
	s.asking.Store(true)
	list, err = s.compare(s.documented)
	s.asking.Store(false)
	if err != nil {
		return err
	}
	var others []string
	for _, x := range list {
		if x.differs {
			others = append(others, fmt.Sprintf("%s is %s (documented: %s)", x.variable.Name, x.is, x.asked))
		}
	}
	if n := len(others); n > 0 {
		const shown = 3
		more := ""
		if n > shown {
			others, more = others[:shown], fmt.Sprintf(", and %d more", n-shown)
		}
		remedy := "the run uses the values of the FMU; choose others with --set, or all documented ones with --quirk " +
			s.info.Name + "=setStarts"
		if s.config.Quirks.Has(SetStarts) {
			remedy = "the FMU does not keep what the quirk setStarts sets, so the documented values are not in force"
		}
		s.notes = append(s.notes, fmt.Sprintf("%s: start values differ from modelDescription.xml: %s%s; %s",
			&s.info, strings.Join(others, ", "), more, remedy))
	}
	return nil
}

// compare reads variables after the initialisation: those of one type in one call, or one by one if the FMU
// refuses that.
func (s *Slave) compare(list []expectation) (all []found, err error) {
	for kind := master.Real; kind <= master.String; kind++ {
		var some []expectation
		for _, x := range list {
			if kindOf(x.variable.Type) == kind {
				some = append(some, x)
			}
		}
		results, refused := s.get(kind, some)
		if refused != nil {
			results = nil
			for k := range some {
				if err := s.revive(refused); err != nil {
					return all, err
				}
				one, err := s.get(kind, some[k:k+1])
				refused = cmp.Or(err, refused)
				results = append(results, one...)
			}
			if err := s.revive(refused); err != nil {
				return all, err
			}
		}
		all = append(all, results...)
	}
	return all, nil
}

// OtherStarts describes the documented start values that an instance does not have although nothing was set
// in it. Variables that cannot be read are left out.
func OtherStarts(c Config, in *fmi.Instance) (texts []string) {
	c.Aside = true
	s, d := &Slave{config: c, instance: in}, c.FMU.Description
	var documented []expectation
	for i := range d.Variables {
		v := &d.Variables[i]
		if !v.HasStart || v.AliasOf != 0 || v.Causality == description.Independent ||
			v.Causality != description.Input && v.Initial != description.Exact {
			continue
		}
		documented = append(documented, expectation{v, documentedStart(v)})
	}
	list, _ := s.compare(documented)
	for _, x := range list {
		if x.differs {
			texts = append(texts, fmt.Sprintf("%s starts at %s in the document and at %s in the FMU", x.variable.Name, x.asked, x.is))
		}
	}
	return texts
}

// mostRevived is the largest number of new instances for reading refused variables.
const mostRevived = 3

// readInto reads variables and calls put for each.
func readInto[T any](get func([]description.ValueReference, []T) error, vr []description.ValueReference, put func(k int, v T)) error {
	values := make([]T, len(vr))
	err := get(vr, values)
	for k, v := range values {
		put(k, v)
	}
	return err
}

// get reads variables of one kind in one call, and compares.
func (s *Slave) get(kind master.Kind, list []expectation) ([]found, error) {
	if len(list) == 0 {
		return nil, nil
	}
	vr := make([]description.ValueReference, len(list))
	is := make([]Value, len(list))
	for k, x := range list {
		vr[k] = x.variable.ValueReference
	}
	err := s.refused
	switch {
	case s.revived == mostRevived:
	case kind == master.Real:
		err = readInto(s.instance.GetReal, vr, func(k int, v float64) { is[k].Real = v })
	case kind == master.Integer:
		err = readInto(s.instance.GetInteger, vr, func(k int, v int64) { is[k].Integer = v })
	case kind == master.Boolean:
		err = readInto(s.instance.GetBoolean, vr, func(k int, v bool) { is[k].Boolean = v })
	case kind == master.String:
		err = readInto(s.instance.GetString, vr, func(k int, v string) { is[k].String = v })
	}
	out := make([]found, len(list))
	for k, x := range list {
		out[k] = found{expectation: x, differs: err == nil && differ(kind, x.value, is[k]), err: err}
		if out[k].differs || err != nil {
			out[k].asked, out[k].is = s.text(x.variable, x.value), s.text(x.variable, is[k])
		}
	}
	return out, err
}

// differ compares two values of a kind. A value may also have one of another kind, such as the name of an item.
func differ(kind master.Kind, a, b Value) bool {
	switch kind {
	case master.Real:
		return !(math.Abs(b.Real-a.Real) <= readBackTolerance*math.Abs(a.Real))
	case master.Integer:
		return a.Integer != b.Integer
	case master.Boolean:
		return a.Boolean != b.Boolean
	}
	return a.String != b.String
}

// text returns a value of a variable for messages.
func (s *Slave) text(v *description.ScalarVariable, x Value) string {
	switch kindOf(v.Type) {
	case master.Real:
		return fmt.Sprint(x.Real)
	case master.Integer:
		return s.integerText(v, x.Integer)
	case master.Boolean:
		return fmt.Sprint(x.Boolean)
	}
	return fmt.Sprintf("%q", x.String)
}

// revive replaces an instance that a refused getter has put into an error state, from which no FMU continues
// (fmi2 54): a parameter that cannot be read should not end the run. If no second instance can be made, the
// present one is reset.
func (s *Slave) revive(refused error) error {
	if st := s.instance.State(); st == fmi.StateStepComplete || st == fmi.StateEventMode {
		return nil
	}
	if s.config.Aside || s.instance.State() != fmi.StateError {
		return refused
	}
	s.revived++
	s.refused = refused
	defer s.asking.Store(s.asking.Swap(true)) // the first instance has logged the same
	u := s.Staged()
	if s.config.once() {
		if s.instance.Reset() != nil {
			return fmt.Errorf("%w; the FMU cannot continue after that, nor be reset: isolate it, so that it can be instantiated again", refused)
		}
		s.stepper = nil
	} else {
		_ = s.instance.Free() // the new instance counts
		if err := s.instantiate(context.Background()); err != nil {
			return err
		}
	}
	if err := errors.Join(s.enter(s.experiment), u.Stage(s)); err != nil {
		return err
	}
	if err := s.EvalInit(); err != nil {
		return err
	}
	return s.leave()
}

// integerText returns an Integer, with the name of its item if it is an Enumeration.
func (s *Slave) integerText(v *description.ScalarVariable, n int64) string {
	if v.Type == description.Enumeration {
		for _, item := range s.config.FMU.Description.Enumeration(v.DeclaredType) {
			if item.Value == int64(n) {
				return fmt.Sprintf("%s (%d)", item.Name, n)
			}
		}
	}
	return fmt.Sprint(n)
}

// Notes returns, after ExitInit, warnings about given values that the FMU did not keep.
func (s *Slave) Notes() []string { return s.notes }

var _ master.Noter = (*Slave)(nil)
