package description

import (
	"encoding/xml"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi/unit"
)

// attributes reads the attributes of a start tag by name. The target of each is a pointer to a string, flag, count
// (an xs:unsignedInt), item value or double, or a function. It reports the required ones that are missing.
func (p *reader) attributes(e *xml.StartElement, targets map[string]any, required ...string) {
	present := map[string]bool{}
	for i := range e.Attr {
		a := &e.Attr[i]
		name := local(a)
		present[name] = true
		switch to := targets[name].(type) {
		case *string:
			*to = a.Value
		case *bool:
			*to = p.flag(a)
		case *int:
			n, _ := p.unsigned(a)
			*to = int(min(n, math.MaxInt32))
		case *int64: // the value of an item
			storage := StoreInt32
			if p.three {
				storage = StoreEnum
			}
			*to, _ = p.integer(a, storage)
		case *float64:
			*to, _ = p.double(a)
		case **float64:
			*to = p.doublePointer(a)
		case func(*xml.Attr):
			to(a)
		default:
			p.unknownAttribute(a)
		}
		if p.err != nil {
			return
		}
	}
	for _, name := range required {
		p.required(present[name], name)
	}
}

// ignored is the target of an attribute that is known and not used.
func ignored(*xml.Attr) {}

func (p *reader) root(e *xml.StartElement) {
	d := p.d
	for i := range e.Attr {
		if a := &e.Attr[i]; local(a) == "fmiVersion" && p.err == nil {
			if d.FMIVersion = p.version(a); d.FMIVersion == "" {
				p.err = errStop // another version has another schema
				return
			}
		}
	}
	p.three = d.FMIVersion == "3.0"
	guid := "guid"
	targets := map[string]any{
		"fmiVersion":            ignored,
		"modelName":             &d.ModelName,
		"description":           &d.Description,
		"author":                &d.Author,
		"version":               &d.Version,
		"copyright":             &d.Copyright,
		"license":               &d.License,
		"generationTool":        &d.GenerationTool,
		"generationDateAndTime": &d.GenerationDateAndTime,
		"variableNamingConvention": func(a *xml.Attr) {
			if _, ok := p.word(a, []string{"flat", "structured"}); ok {
				d.VariableNamingConvention = a.Value
			}
		},
	}
	if p.three {
		guid = "instantiationToken"
	} else {
		targets["numberOfEventIndicators"] = &d.NumberOfEventIndicators
	}
	targets[guid] = &d.GUID
	p.attributes(e, targets, "fmiVersion", "modelName", guid)
	if d.FMIVersion == "" { // not FMI 1 to 3, or another version
		p.err = errStop
		return
	}
	p.readSections()
}

// section is a child of the root; the numbers are the order of the schema (fmi2 13).
type section struct {
	order int
	read  func(*xml.StartElement)
}

// readSections reads the children of the root.
func (p *reader) readSections() {
	known := map[string]section{
		"ModelExchange":     {1, func(e *xml.StartElement) { p.d.ModelExchange = p.offered(e) }},
		"CoSimulation":      {1, func(e *xml.StartElement) { p.d.CoSimulation = p.offered(e) }},
		"UnitDefinitions":   {2, func(*xml.StartElement) { p.list1("Unit", p.unit) }},
		"TypeDefinitions":   {3, func(*xml.StartElement) { p.list1("SimpleType", p.simpleType) }},
		"LogCategories":     {4, func(*xml.StartElement) { p.list1("Category", p.logCategory) }},
		"DefaultExperiment": {5, p.defaultExperiment},
		"VendorAnnotations": {6, func(*xml.StartElement) { p.d.VendorAnnotations = p.annotations() }},
		"ModelVariables": {7, func(*xml.StartElement) {
			p.list1("ScalarVariable", p.scalarVariable)
			p.joinVariables()
		}},
		"ModelStructure": {8, p.modelStructure},
	}
	if p.three {
		p.sections3(known)
	}
	last := 0
	for e := range p.children {
		name := e.Name.Local
		section := known[name]
		if e.Name.Space != "" || section.order == 0 {
			p.unknownElement(e)
			continue
		}
		if first := p.sections[name]; first > 0 {
			p.add(ruleSchema, p.path(""), p.line, "", "duplicate element %s; the first is in line %d", name, first)
			p.skip()
			continue
		}
		p.sections[name] = p.line
		if section.order < last {
			p.add(ruleSchemaLoose, p.path(""), p.line, name, "the element %s is out of order", name)
		}
		last = max(last, section.order)
		section.read(e)
	}
}

// list1 reads an element that must hold at least one element of a name.
func (p *reader) list1(name string, read func(*xml.StartElement)) {
	p.listOf(name, func(e *xml.StartElement) bool {
		if e.Name.Local != name {
			return false
		}
		read(e)
		return true
	})
}

// listOf reads an element that must hold at least one child that read knows.
func (p *reader) listOf(what string, read func(*xml.StartElement) bool) {
	at, line, n := p.path(""), p.line, 0
	p.noAttributes()
	for e := range p.children {
		if e.Name.Space == "" && read(e) {
			n++
		} else {
			p.unknownElement(e)
		}
	}
	if n == 0 && p.err == nil {
		p.add(ruleSchemaLoose, at, line, "", "the list is empty; it needs at least one %s", what)
	}
}

// joinVariables ends the reading of the variables.
func (p *reader) joinVariables() {
	p.d.Variables = slices.Concat(p.chunks...)
	p.chunks = nil
}

func (p *reader) noAttributes() {
	for i := range p.start.Attr {
		p.unknownAttribute(&p.start.Attr[i])
	}
}

// offered reads CoSimulation or ModelExchange.
func (p *reader) offered(e *xml.StartElement) *CoSimulation {
	c := &CoSimulation{}
	targets := map[string]any{
		"modelIdentifier":                     p.identifier(&c.ModelIdentifier),
		"needsExecutionTool":                  &c.NeedsExecutionTool,
		"canBeInstantiatedOnlyOncePerProcess": &c.CanBeInstantiatedOnlyOncePerProcess,
	}
	exchange, state := e.Name.Local == "ModelExchange", "FMUstate"
	if !exchange {
		targets["canHandleVariableCommunicationStepSize"] = &c.CanHandleVariableCommunicationStepSize
		targets["maxOutputDerivativeOrder"] = &c.MaxOutputDerivativeOrder
	}
	switch {
	case p.three:
		state = "FMUState"
		p.targets3(c, targets, exchange)
	case exchange:
		targets["completedIntegratorStepNotNeeded"] = &c.CompletedIntegratorStepNotNeeded
	default:
		targets["canInterpolateInputs"] = &c.CanInterpolateInputs
		targets["canRunAsynchronuously"] = &c.CanRunAsynchronously
	}
	if !p.three {
		targets["canNotUseMemoryManagementFunctions"] = &c.CanNotUseMemoryManagementFunctions
		targets["providesDirectionalDerivative"] = &c.ProvidesDirectionalDerivative
		targets["providesDirectionalDerivatives"] = p.plural(&c.ProvidesDirectionalDerivative)
	}
	targets["canGetAndSet"+state], targets["canSerialize"+state] = &c.CanGetAndSetFMUState, &c.CanSerializeFMUState
	p.attributes(e, targets, "modelIdentifier")
	if c.CanSerializeFMUState && !c.CanGetAndSetFMUState { // fmi2 14
		p.add(ruleSerialize, p.path("canSerialize"+state), p.line, "", "canSerialize%s is true, but canGetAndSet%s is not", state, state)
		c.CanSerializeFMUState = false
	}
	if p.three {
		p.none()
		return c
	}
	p.each(map[string]func(*xml.StartElement){"SourceFiles": func(*xml.StartElement) {
		p.list1("File", func(e *xml.StartElement) {
			c.SourceFiles = append(c.SourceFiles, p.onlyName(e))
			p.none()
		})
	}})
	return c
}

// plural reads providesDirectionalDerivatives, which some exporters took from a draft of the standard (fmi2 14).
func (p *reader) plural(to *bool) func(*xml.Attr) {
	return func(a *xml.Attr) {
		*to = p.flag(a)
		p.add(ruleUnknown, p.path(a.Name.Local), p.line, "", "the attribute is read as providesDirectionalDerivative")
	}
}

// onlyName reads the attributes of an element that has only a name.
func (p *reader) onlyName(e *xml.StartElement) (name string) {
	p.attributes(e, map[string]any{"name": &name}, "name")
	return name
}

func (p *reader) unit(e *xml.StartElement) {
	u := unit.Definition{Name: p.onlyName(e)}
	p.lines.units = append(p.lines.units, p.line)
	p.each(map[string]func(*xml.StartElement){
		"BaseUnit": p.once(func(e *xml.StartElement) { u.Base = p.baseUnit(e) }),
		"DisplayUnit": func(e *xml.StartElement) {
			if display, usable := p.displayUnit(e); usable {
				u.Displays = append(u.Displays, display)
			}
		},
	})
	p.d.Units = append(p.d.Units, u)
}

func (p *reader) baseUnit(e *xml.StartElement) *unit.Base {
	b := &unit.Base{Factor: 1}
	exponent := func(to *int) func(*xml.Attr) {
		return func(a *xml.Attr) {
			n, _ := p.integer(a, StoreInt32)
			*to = int(n)
		}
	}
	p.attributes(e, map[string]any{
		"kg": exponent(&b.Kg), "m": exponent(&b.M), "s": exponent(&b.S), "A": exponent(&b.A),
		"K": exponent(&b.K), "mol": exponent(&b.Mol), "cd": exponent(&b.Cd), "rad": exponent(&b.Rad),
		"factor": p.factor(&b.Factor), "offset": &b.Offset,
	})
	p.none()
	return b
}

// factor reads the factor of a unit, which must not be 0.
func (p *reader) factor(to *float64) func(*xml.Attr) {
	return func(a *xml.Attr) {
		switch f, ok := p.double(a); {
		case ok && f == 0:
			p.add(ruleFactor, p.path(a.Name.Local), p.line, "", "the factor is 0")
		case ok:
			*to = f
		}
	}
}

// displayUnit reads a DisplayUnit, which is not usable if it is an inverse one of FMI 3.0 (fmi3 6).
func (p *reader) displayUnit(e *xml.StartElement) (u unit.Display, usable bool) {
	u.Factor = 1
	inverse := false
	targets := map[string]any{"name": &u.Name, "factor": p.factor(&u.Factor), "offset": &u.Offset}
	if p.three {
		targets["inverse"] = &inverse
	}
	p.attributes(e, targets, "name")
	p.none()
	return u, !inverse
}

// baseTypes are the elements of types and variables in FMI 2.0, in the order of BaseType, and Clock.
var baseTypes = []string{"Real", "Integer", "Boolean", "String", "Enumeration", "Clock"}

// storages2 are the storages of FMI 2.0, in the order of BaseType.
var storages2 = []Storage{StoreFloat64, StoreInt32, StoreBool, StoreText, StoreInt32}

func baseType(e *xml.StartElement) (BaseType, bool) {
	i := slices.Index(baseTypes[:len(storages2)], e.Name.Local)
	return BaseType(max(i, 0)), i >= 0 && e.Name.Space == ""
}

func (p *reader) simpleType(e *xml.StartElement) {
	t := SimpleType{}
	p.attributes(e, map[string]any{"name": &t.Name, "description": &t.Description}, "name")
	line := p.line
	p.lines.types = append(p.lines.types, line)
	typed := false
	for e := range p.children {
		kind, known := baseType(e)
		if !known {
			p.unknownElement(e)
			continue
		}
		if typed {
			p.add(ruleSchema, p.path(""), p.line, "", "the type has a second base type")
		}
		t.Type, t.Storage, typed = kind, storages2[kind], true
		for i := range e.Attr {
			if a := &e.Attr[i]; kind == Enumeration && local(a) != "quantity" || !p.typeAttribute(a, &t) {
				p.unknownAttribute(a)
			}
		}
		if kind == Enumeration {
			t.Items = p.items()
		} else {
			p.none()
		}
	}
	if !typed && p.err == nil {
		p.add(ruleSchema, p.path(""), line, "", "the type %q has no base type", clip(t.Name))
	}
	p.d.Types = append(p.d.Types, t)
}

// typeAttribute reads an attribute that a type has beside its name; false for any other.
func (p *reader) typeAttribute(a *xml.Attr, t *SimpleType) bool {
	switch t.Type {
	case Real:
		return p.realAttribute(a, &t.Real, nil)
	case Integer, Enumeration:
		return p.integerAttribute(a, &t.Integer, t.Storage)
	}
	return false
}

func (p *reader) items() (items []EnumerationItem) {
	p.each(map[string]func(*xml.StartElement){"Item": func(e *xml.StartElement) {
		var it EnumerationItem
		p.attributes(e, map[string]any{"name": &it.Name, "value": &it.Value, "description": &it.Description}, "name", "value")
		p.none()
		items = append(items, it)
	}})
	return items
}

// realAttribute reads an attribute that Real types and variables share, and
// adds it to g, which may be nil. It returns false for any other attribute.
func (p *reader) realAttribute(a *xml.Attr, r *RealAttributes, g *given) bool {
	switch local(a) {
	case "quantity":
		r.Quantity = a.Value
	case "unit":
		r.Unit = a.Value
	case "displayUnit":
		r.DisplayUnit = a.Value
	case "relativeQuantity":
		r.RelativeQuantity = p.flag(a)
		if g != nil {
			*g |= givenRelative
		}
	case "unbounded":
		r.Unbounded = p.flag(a)
		if g != nil {
			*g |= givenUnbounded
		}
	case "min":
		r.Min = p.doublePointer(a)
	case "max":
		r.Max = p.doublePointer(a)
	case "nominal":
		r.Nominal = p.doublePointer(a)
	default:
		return false
	}
	return true
}

// integerAttribute reads an attribute that Integer and Enumeration share; false for any other.
func (p *reader) integerAttribute(a *xml.Attr, n *IntegerAttributes, s Storage) bool {
	switch local(a) {
	case "quantity":
		n.Quantity = a.Value
	case "min":
		n.Min = p.integerPointer(a, s)
	case "max":
		n.Max = p.integerPointer(a, s)
	default:
		return false
	}
	return true
}

func (p *reader) logCategory(e *xml.StartElement) {
	var c LogCategory
	p.attributes(e, map[string]any{"name": &c.Name, "description": &c.Description}, "name")
	p.none()
	p.d.LogCategories = append(p.d.LogCategories, c)
}

func (p *reader) defaultExperiment(e *xml.StartElement) {
	x := &DefaultExperiment{}
	p.d.DefaultExperiment = x
	p.attributes(e, map[string]any{"startTime": &x.StartTime, "stopTime": &x.StopTime, "tolerance": &x.Tolerance, "stepSize": &x.StepSize})
	p.none()
}

// annotations reads the Tool elements of VendorAnnotations or Annotations, in FMI 3.0 the Annotation elements.
func (p *reader) annotations() []VendorAnnotation {
	var list []VendorAnnotation
	element, name := "Tool", "name"
	if p.three {
		element, name = "Annotation", "type"
	}
	p.list1(element, func(e *xml.StartElement) {
		var v VendorAnnotation
		p.attributes(e, map[string]any{name: &v.Tool}, name)
		v.XML = p.raw()
		list = append(list, v)
	})
	return list
}

// Words of the attributes, in the order of their types.
var (
	causalityWords = []string{"local", "parameter", "calculatedParameter", "input", "output", "independent",
		"structuralParameter"}
	variabilityWords = []string{"continuous", "constant", "fixed", "tunable", "discrete"}
	initialWords     = []string{"", "exact", "approx", "calculated"}
	kindWords        = []string{"dependent", "constant", "fixed", "tunable", "discrete"}
)

// newVariable returns a new variable. Variables are stored in chunks, since
// a growing slice would copy them several times.
func (p *reader) newVariable() *ScalarVariable {
	n := len(p.chunks) - 1
	if n < 0 || len(p.chunks[n]) == cap(p.chunks[n]) {
		p.chunks = append(p.chunks, make([]ScalarVariable, 0, 16<<min(n+1, 6)))
		n++
	}
	c := append(p.chunks[n], ScalarVariable{})
	p.chunks[n] = c
	return &c[len(c)-1]
}

// variableAttribute reads an attribute that variables of any type share; false for any other.
func (p *reader) variableAttribute(a *xml.Attr, v *ScalarVariable, g *given) bool {
	switch local(a) {
	case "name":
		v.Name = a.Value
		*g |= givenName
	case "valueReference":
		n, _ := p.unsigned(a)
		v.ValueReference = ValueReference(n)
		*g |= givenReference
	case "description":
		v.Description = a.Value
	case "causality":
		words := causalityWords
		if !p.three {
			words = words[:StructuralParameter]
		}
		k, _ := p.word(a, words)
		v.Causality = Causality(k)
	case "variability":
		k, _ := p.word(a, variabilityWords)
		v.Variability = Variability(k)
		*g |= givenVariability
	case "initial":
		k, _ := p.word(a, initialWords)
		v.Initial = Initial(k)
		*g |= givenInitial
	case "canHandleMultipleSetPerTimeInstant":
		v.CanHandleMultipleSetPerTimeInstant = p.flag(a)
	default:
		return false
	}
	return true
}

func (p *reader) scalarVariable(e *xml.StartElement) {
	p.given = append(p.given, 0)
	v, g := p.newVariable(), &p.given[len(p.given)-1]
	v.Line = p.line
	for i := range e.Attr {
		if a := &e.Attr[i]; !p.variableAttribute(a, v, g) {
			p.unknownAttribute(a)
		}
	}
	p.required(*g&givenName != 0, "name")
	p.required(*g&givenReference != 0, "valueReference")
	typed := false
	for e := range p.children {
		kind, known := baseType(e)
		switch {
		case known && typed:
			p.add(ruleSchema, p.path(""), p.line, "", "the variable has a second base type")
			p.skip()
		case known:
			typed = true
			v.Type, v.Storage = kind, storages2[kind]
			p.typed(e, v, g)
		case e.Name.Local == "Annotations" && e.Name.Space == "":
			v.Annotations = append(v.Annotations, p.annotations()...)
		default:
			p.unknownElement(e)
		}
	}
	if !typed && p.err == nil {
		p.mark(location{"ModelVariables", "ScalarVariable", len(p.given) - 1, v.Line, v.Name}, ruleSchema,
			"the variable %q has no base type", clip(v.Name))
	}
}

// typedAttribute reads an attribute that variables of one type have; false for any other.
func (p *reader) typedAttribute(a *xml.Attr, v *ScalarVariable, g *given) bool {
	switch name := local(a); {
	case name == "declaredType":
		v.DeclaredType = a.Value
	case v.Type == Real && name == "reinit":
		v.Reinit = p.flag(a)
	case v.Type == Real:
		return p.realAttribute(a, &v.Real, g)
	case v.Type == Integer || v.Type == Enumeration:
		return p.integerAttribute(a, &v.Integer, v.Storage)
	default:
		return false
	}
	return true
}

// typed reads the element with the base type of a variable.
func (p *reader) typed(e *xml.StartElement, v *ScalarVariable, g *given) {
	for i := range e.Attr {
		a := &e.Attr[i]
		switch name := local(a); {
		case name == "start":
			p.startValue(a, v)
		case v.Type == Real && name == "derivative":
			n, _ := p.unsigned(a)
			v.Derivative = int(min(n, math.MaxInt32))
			if n == 0 {
				v.Derivative = math.MaxInt32 // out of range, as the rule reports
			}
		case !p.typedAttribute(a, v, g):
			p.unknownAttribute(a)
		}
	}
	p.none()
}

func (p *reader) startValue(a *xml.Attr, v *ScalarVariable) {
	switch v.Type {
	case Real:
		v.StartReal, v.HasStart = p.double(a)
	case Integer, Enumeration:
		v.StartInteger, v.HasStart = p.integer(a, v.Storage)
	case Boolean:
		v.StartBoolean, v.HasStart = p.boolean(a)
	case String:
		v.StartString, v.HasStart = a.Value, true
	}
}

func (p *reader) modelStructure(*xml.StartElement) {
	p.noAttributes()
	list := func(to *[]Unknown, places *[]place) func(*xml.StartElement) {
		return p.once(func(*xml.StartElement) {
			p.list1("Unknown", func(e *xml.StartElement) { p.unknown(e, "index", to, places) })
		})
	}
	p.each(map[string]func(*xml.StartElement){
		"Outputs":         list(&p.d.Outputs, &p.places.outputs),
		"Derivatives":     list(&p.d.Derivatives, &p.places.derivatives),
		"InitialUnknowns": list(&p.d.InitialUnknowns, &p.places.initialUnknowns),
	})
}

// unknown reads an unknown, which an attribute identifies, and appends it to a list.
func (p *reader) unknown(e *xml.StartElement, attribute string, list *[]Unknown, places *[]place) {
	u := Unknown{}
	identified, dependencies, bad := false, true, false
	var kinds *xml.Attr
	for i := range e.Attr {
		a := &e.Attr[i]
		switch local(a) {
		case attribute:
			n, ok := p.unsigned(a)
			u.Index, identified = int(n), true
			bad = bad || !ok
		case "dependencies":
			u.Declared = true
			u.Dependencies, dependencies = indices(a.Value)
			if !dependencies {
				p.add(ruleDependencies, p.path(a.Name.Local), p.line, "", "%q is not a list of numbers from 0 to 4294967295", clip(a.Value))
			}
		case "dependenciesKind":
			kinds = a
		default:
			p.unknownAttribute(a)
		}
	}
	p.required(identified, attribute)
	if kinds != nil && dependencies {
		dependencies = p.kinds(kinds, &u)
	}
	if !dependencies {
		u.Declared, u.Dependencies, u.Kinds = false, nil, nil
	}
	at := place{p.line, p.open[len(p.open)-1].ordinal}
	p.none()
	if identified && !bad {
		*list = append(*list, u)
		*places = append(*places, at)
	}
}
