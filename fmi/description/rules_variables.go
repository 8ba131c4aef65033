package description

import (
	"cmp"
	"maps"
	"slices"

	"github.com/macrostep/macrostep/fmi/diag"
)

// at reports a violation by the variable with this index, from 0.
func (p *reader) at(i int, r *diag.Rule, format string, args ...any) {
	p.mark(p.variable(i), r, format, args...)
}

func (p *reader) variable(i int) location {
	v := &p.d.Variables[i]
	at := location{"ModelVariables", "ScalarVariable", i, v.Line, v.Name}
	if p.three {
		at.element = v.TypeName()
		if p.ordinal != nil {
			at.index = p.ordinal[i]
		}
	}
	return at
}

func (p *reader) checkVariables() {
	d := p.d
	n := len(d.Variables)
	d.byName = make(map[string]int, n)
	p.isState = make([]bool, n)
	independent := -1
	for i := range d.Variables {
		v := &d.Variables[i]
		if first, twice := d.byName[v.Name]; twice {
			p.at(i, ruleDuplicate, "duplicate variable %q; the first is in line %d", clip(v.Name), d.Variables[first].Line)
		} else {
			d.byName[v.Name] = i
		}
		p.checkDerivative(i, v)
	}
	for i := range d.Variables {
		v := &d.Variables[i]
		p.checkDeclaredType(i, v)
		if p.three {
			p.check3(i, v)
		}
		p.checkKind(i, v)
		p.checkStart(i, v)
		p.checkRange(i, v)
		if v.Causality == Independent {
			if independent >= 0 {
				p.at(i, ruleIndependent, "%q is independent, but %q already is", clip(v.Name), clip(d.Variables[independent].Name))
			} else if v.Type != Real {
				p.at(i, ruleIndependent, "%q is independent, but %s instead of Real", clip(v.Name), v.TypeName())
			}
			independent = i
		}
	}
}

// checkDerivative checks the attribute derivative and collects the states.
func (p *reader) checkDerivative(i int, v *ScalarVariable) {
	if v.Derivative == 0 {
		return
	}
	switch of := v.Derivative - 1; {
	case of >= len(p.d.Variables):
		p.at(i, ruleDerivative, "%q is the derivative of a variable out of range; the indices are 1 to %d", clip(v.Name), len(p.d.Variables))
	case of == i:
		p.at(i, ruleDerivative, "%q is the derivative of itself", clip(v.Name))
	case p.d.Variables[of].Type != Real:
		p.at(i, ruleDerivative, "%q is the derivative of %q, which is not a Real", clip(v.Name), clip(p.d.Variables[of].Name))
	default:
		p.isState[of] = true
		return
	}
	v.Derivative = 0
}

// checkDeclaredType adds the attributes of the declared type to the variable,
// whose own attributes take precedence (fmi2 17).
func (p *reader) checkDeclaredType(i int, v *ScalarVariable) {
	if v.DeclaredType == "" {
		if v.Type == Enumeration {
			p.at(i, ruleDeclaredType, "the enumeration %q has no declaredType", clip(v.Name))
		}
		return
	}
	k, defined := p.typeOf[v.DeclaredType]
	if !defined {
		p.at(i, ruleDeclaredType, "the type %q of %q is not defined", clip(v.DeclaredType), clip(v.Name))
		return
	}
	t := &p.d.Types[k]
	if t.Type != v.Type || t.Storage != v.Storage {
		p.at(i, ruleDeclaredType, "%q is %s, its type %q is %s", clip(v.Name), v.TypeName(), clip(t.Name),
			typeName(p.three, t.Type, t.Storage))
		return
	}
	switch v.Type {
	case Real:
		p.mergeReal(i, v, &t.Real)
	case Integer, Enumeration:
		a, b := &v.Integer, &t.Integer
		a.Quantity, a.Min, a.Max = cmp.Or(a.Quantity, b.Quantity), cmp.Or(a.Min, b.Min), cmp.Or(a.Max, b.Max)
	case String:
		v.MediaType = cmp.Or(v.MediaType, t.MediaType)
	case Clock:
		own := v.Clock.given
		v.Clock.given = maps.Clone(t.clock)
		maps.Copy(v.Clock.given, own)
	}
}

// below reports whether both are present and *a < *b.
func below[T int64 | float64](a, b *T) bool { return a != nil && b != nil && *a < *b }

func (p *reader) mergeReal(i int, v *ScalarVariable, t *RealAttributes) {
	a, g := &v.Real, p.given[i]
	a.Quantity, a.Unit = cmp.Or(a.Quantity, t.Quantity), cmp.Or(a.Unit, t.Unit)
	if a.DisplayUnit == "" && a.Unit == t.Unit {
		a.DisplayUnit = t.DisplayUnit
	}
	if g&givenRelative == 0 {
		a.RelativeQuantity = t.RelativeQuantity
	}
	if g&givenUnbounded == 0 {
		a.Unbounded = t.Unbounded
	}
	a.Min, a.Max, a.Nominal = cmp.Or(a.Min, t.Min), cmp.Or(a.Max, t.Max), cmp.Or(a.Nominal, t.Nominal)
}

// combination is a case of the table of fmi2 19: the allowed kinds of initial value, the default first. It is nil for
// a combination that is not allowed.
type combination []Initial

var (
	caseA = combination{Exact}
	caseB = combination{Calculated, Approx}
	caseC = combination{Calculated, Exact, Approx}
	caseD = combination{InitialNone} // inputs
	caseE = combination{InitialNone} // the independent variable
)

// combinations is the table of fmi2 19 by causality and variability.
var combinations = [...][5]combination{
	Local:               {Continuous: caseC, Constant: caseA, Fixed: caseB, Tunable: caseB, Discrete: caseC},
	Parameter:           {Fixed: caseA, Tunable: caseA},
	CalculatedParameter: {Fixed: caseB, Tunable: caseB},
	Input:               {Continuous: caseD, Discrete: caseD},
	Output:              {Continuous: caseC, Constant: caseA, Discrete: caseC},
	Independent:         {Continuous: caseE},
	StructuralParameter: {Fixed: caseA, Tunable: caseA},
}

// initials returns the case of a variable (fmi2 19, fmi3 8). An input of FMI 3.0 may also say exact, which Read drops.
func (v *ScalarVariable) initials() combination {
	if v.Type == Clock {
		return caseD
	}
	return combinations[v.Causality][v.Variability]
}

// defaultVariability returns the replacement of an invalid variability
// (fmi2 63).
func defaultVariability(c Causality, t BaseType) Variability {
	switch {
	case c == Parameter || c == CalculatedParameter || c == StructuralParameter:
		return Fixed
	case c == Independent || t == Real:
		return Continuous
	}
	return Discrete
}

// checkKind repairs variability and initial if they do not fit the causality.
func (p *reader) checkKind(i int, v *ScalarVariable) {
	g := p.given[i]
	want := v.Variability
	switch {
	case v.Type != Real && v.Variability == Continuous && v.Causality != Independent:
		want = defaultVariability(v.Causality, v.Type)
		how := "continuous by default"
		if g&givenVariability != 0 {
			how = "continuous"
		}
		p.at(i, ruleContinuous, "%q is %s and %s; taken as %s", clip(v.Name), v.TypeName(), how, want)
	case v.initials() == nil:
		want = defaultVariability(v.Causality, v.Type)
		rule := *ruleVariability
		rule.Inert = v.Causality != Input && v.Causality != Output // these are extrapolated if continuous
		p.at(i, &rule, "%q is %s and %s; taken as %s", clip(v.Name), v.Causality, v.Variability, want)
	}
	v.Variability = want
	c := v.initials()
	if g&givenInitial != 0 && v.Initial != InitialNone && !slices.Contains(c, v.Initial) {
		p.at(i, ruleInitial, "%q is %s and %s and has initial %s; taken as %s", clip(v.Name), v.Causality, v.Variability, v.Initial, c[0])
		v.Initial = InitialNone
	}
	if v.Initial == InitialNone {
		v.Initial = c[0]
	}
}

// checkStart checks that a start value exists where the standard requires one, and drops it where it forbids one.
func (p *reader) checkStart(i int, v *ScalarVariable) {
	switch {
	case v.AliasOf > 0 || v.Array != nil && v.Array.Resized || v.Type == Clock: // none of its own
	case !v.HasStart && (v.Causality == Input || v.Initial == Exact || v.Initial == Approx):
		p.at(i, ruleNoStart, "the %s %q has no start value", v.Causality, clip(v.Name))
		if v.excludesZero() {
			p.at(i, ruleNoStartRange, "the %s %q has no start value, and 0 lies outside its bounds", v.Causality, clip(v.Name))
		}
	case v.Causality == Independent || v.Initial == Calculated:
		v.dropStart()
	}
}

// excludesZero reports whether 0 lies outside the bounds.
func (v *ScalarVariable) excludesZero() bool {
	zero, none := 0., int64(0)
	switch v.Type {
	case Real:
		return below(&zero, v.Real.Min) || below(v.Real.Max, &zero)
	case Integer:
		return below(&none, v.Integer.Min) || below(v.Integer.Max, &none)
	}
	return false
}

func (v *ScalarVariable) dropStart() {
	v.HasStart, v.StartReal, v.StartInteger, v.StartBoolean, v.StartString = false, 0, 0, false, ""
}

// checkRange checks units, the nominal value and the start value.
func (p *reader) checkRange(i int, v *ScalarVariable) {
	switch v.Type {
	case Real:
		r := &v.Real
		p.checkReal(r, p.variable(i))
		if v.HasStart && (below(&v.StartReal, r.Min) || below(r.Max, &v.StartReal)) {
			p.at(i, ruleStartRange, "%q starts at %g, outside its bounds", clip(v.Name), v.StartReal)
		}
	case Integer, Enumeration:
		if n := &v.Integer; v.HasStart && (below(&v.StartInteger, n.Min) || below(n.Max, &v.StartInteger)) {
			p.at(i, ruleStartRange, "%q starts at %d, outside its bounds", clip(v.Name), v.StartInteger)
		}
	}
}

// settable reports whether a user may set the variable.
func (v *ScalarVariable) settable() bool { return v.Causality == Input || v.Causality == Parameter }

// checkAliases checks the variables that share a base type and a value
// reference (fmi2 21); Integer and Enumeration count as one type.
func (p *reader) checkAliases() {
	if p.three { // they have no attributes of their own
		return
	}
	vars := p.d.Variables
	// One word for each variable makes sorting fast: 2 bits of type, 32 of
	// reference, 30 of index. maxDescription bounds the index.
	keys := make([]uint64, len(vars))
	for i := range vars {
		class := vars[i].Type
		if class == Enumeration {
			class = Integer
		}
		keys[i] = uint64(class)<<62 | uint64(vars[i].ValueReference)<<30 | uint64(i)
	}
	slices.Sort(keys)
	const indexBits = 1<<30 - 1
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && keys[n]>>30 == keys[0]>>30 {
			n++
		}
		if n > 1 {
			set := make([]int, n)
			for k := range set {
				set[k] = int(keys[k] & indexBits)
			}
			p.checkAliasSet(set)
		}
		keys = keys[n:]
	}
}

// checkAliasSet checks one set of aliases, given by ascending indices from 0.
func (p *reader) checkAliasSet(set []int) {
	vars := p.d.Variables
	constant, variable, start := -1, -1, -1 // the last of each kind, and the variable whose start value is used
	for _, i := range set {
		v := &vars[i]
		if i != set[0] {
			v.AliasOf = set[0] + 1
		}
		if v.Variability == Constant {
			constant = i
		} else {
			variable = i
		}
		if v.HasStart && (start < 0 || v.settable() && !vars[start].settable()) {
			start = i
		}
	}
	if constant >= 0 && variable >= 0 {
		p.at(constant, ruleAliasStart, "the constant %q and %q, which is not constant, have the same valueReference",
			clip(vars[constant].Name), clip(vars[variable].Name))
	}
	p.checkAliasSettable(set)
	united := -1
	for _, i := range set {
		v := &vars[i]
		if v.HasStart && i != start {
			name := clip(vars[start].Name)
			if variable >= 0 {
				p.at(i, ruleAliasStart, "%q and %q have the same valueReference and both have a start value", name, clip(v.Name))
				v.dropStart()
			} else if !sameStart(v, &vars[start]) {
				p.at(i, ruleAliasStart, "the constants %q and %q have the same valueReference but different values", name, clip(v.Name))
				v.dropStart()
			}
		}
		if v.Real.Unit != "" {
			if united >= 0 && vars[united].Real.Unit != v.Real.Unit {
				p.at(i, ruleAliasUnit, "%q and %q have the same valueReference but different units: %q and %q",
					clip(v.Name), clip(vars[united].Name), clip(v.Real.Unit), clip(vars[united].Real.Unit))
			} else {
				united = i
			}
		}
	}
}

// checkAliasSettable checks that at most one alias can be set, and none of the independent variable.
func (p *reader) checkAliasSettable(set []int) {
	vars := p.d.Variables
	independent := slices.IndexFunc(set, func(i int) bool { return vars[i].Causality == Independent })
	settable := -1
	for _, i := range set {
		name := clip(vars[i].Name)
		switch {
		case !vars[i].settable():
			continue
		case settable >= 0:
			p.at(i, ruleAliasSettable, "%q and %q have the same valueReference and can both be set", clip(vars[settable].Name), name)
		case independent >= 0:
			p.at(i, ruleAliasSettable, "%q can be set but has the valueReference of the independent variable %q",
				name, clip(vars[set[independent]].Name))
		}
		settable = i
	}
}

func sameStart(a, b *ScalarVariable) bool {
	return a.StartReal == b.StartReal && a.StartInteger == b.StartInteger && a.StartBoolean == b.StartBoolean && a.StartString == b.StartString
}
