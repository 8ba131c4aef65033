package description

import (
	"cmp"
	"encoding/hex"
	"encoding/xml"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// storages are the elements of variables in FMI 3.0, with the ranges of the integers. UInt64 ends where int64 does.
var storages = [...]struct {
	name     string
	kind     BaseType
	min, max int64
}{
	StoreFloat64: {"Float64", Real, 0, 0},
	StoreFloat32: {"Float32", Real, 0, 0},
	StoreInt8:    {"Int8", Integer, math.MinInt8, math.MaxInt8},
	StoreUInt8:   {"UInt8", Integer, 0, math.MaxUint8},
	StoreInt16:   {"Int16", Integer, math.MinInt16, math.MaxInt16},
	StoreUInt16:  {"UInt16", Integer, 0, math.MaxUint16},
	StoreInt32:   {"Int32", Integer, math.MinInt32, math.MaxInt32},
	StoreUInt32:  {"UInt32", Integer, 0, math.MaxUint32},
	StoreInt64:   {"Int64", Integer, math.MinInt64, math.MaxInt64},
	StoreUInt64:  {"UInt64", Integer, 0, math.MaxInt64},
	StoreBool:    {"Boolean", Boolean, 0, 0},
	StoreText:    {"String", String, 0, 0},
	StoreBinary:  {"Binary", String, 0, 0},
	StoreEnum:    {"Enumeration", Enumeration, math.MinInt64, math.MaxInt64},
	StoreClock:   {"Clock", Clock, 0, 0},
}

// storageOf returns the storage with this element in FMI 3.0.
func storageOf(element string) (Storage, bool) {
	for s := range storages {
		if storages[s].name == element {
			return Storage(s), true
		}
	}
	return 0, false
}

const (
	maxElements     = 1 << 20 // of all arrays
	maxDependencies = 1 << 24 // of all unknowns, after the expansion of arrays
)

// several is an element of ModelVariables that becomes several variables, or an array with one element.
type several struct {
	at      int // index of the element
	dims    []dimension
	given   bool // start values are
	starts  []start
	aliases []alias

	sizes   []int
	n       int
	resized bool // by ReadOptions.Structure
}

// dimension is a size, or the reference of a variable that holds it.
type dimension struct {
	size  uint64
	ref   uint32
	byRef bool
}

// start is the start value of one element of an array.
type start struct {
	real    float64
	integer int64
	boolean bool
	text    string
}

type alias struct{ name, description, displayUnit string }

// span are the variables with one reference: n elements from an index, counted from 0, then those of the aliases.
type span struct{ first, n, all int }

// clockAttributes are the attributes of a Clock or its type that are given: times, counts, 0 or 1, or the index of the
// word.
type clockAttributes map[string]float64

var intervalWords = []string{"", "constant", "fixed", "tunable", "changing", "countdown", "triggered"}

// sections3 makes the children of the root those of FMI 3.0.
func (p *reader) sections3(known map[string]section) {
	delete(known, "VendorAnnotations")
	known["ScheduledExecution"] = section{1, func(e *xml.StartElement) { p.offered(e) }}
	known["TypeDefinitions"] = section{3, func(*xml.StartElement) { p.listOf("type", p.type3) }}
	known["ModelVariables"] = section{7, func(*xml.StartElement) {
		p.listOf("variable", p.variable3)
		p.joinVariables()
	}}
	known["ModelStructure"] = section{8, p.structure3}
	known["Annotations"] = section{9, func(*xml.StartElement) { p.d.VendorAnnotations = p.annotations() }}
}

// targets3 adds the attributes of an interface that FMI 2.0 does not have.
func (p *reader) targets3(c *CoSimulation, targets map[string]any, exchange bool) {
	targets["providesDirectionalDerivatives"] = &c.ProvidesDirectionalDerivative
	targets["providesAdjointDerivatives"] = ignored
	targets["providesPerElementDependencies"] = ignored
	targets["providesEvaluateDiscreteStates"] = &c.ProvidesEvaluateDiscreteStates
	if exchange {
		c.CompletedIntegratorStepNotNeeded = true
		targets["needsCompletedIntegratorStep"] = func(a *xml.Attr) { c.CompletedIntegratorStepNotNeeded = !p.flag(a) }
		return
	}
	targets["hasEventMode"] = &c.HasEventMode
	targets["canReturnEarlyAfterIntermediateUpdate"] = &c.CanReturnEarlyAfterIntermediateUpdate
	targets["mightReturnEarlyFromDoStep"] = &c.MightReturnEarlyFromDoStep
	targets["providesIntermediateUpdate"] = &c.ProvidesIntermediateUpdate
	targets["recommendedIntermediateInputSmoothness"] = ignored
	targets["fixedInternalStepSize"] = func(a *xml.Attr) {
		if h := p.doublePointer(a); h != nil && *h <= 0 {
			p.add(ruleStepSize, p.path(a.Name.Local), p.line, "", "the internal step size %g is not greater than 0", *h)
		} else {
			c.FixedInternalStepSize = h
		}
	}
}

// type3 reads a type; false for another element.
func (p *reader) type3(e *xml.StartElement) bool {
	name, isType := strings.CutSuffix(e.Name.Local, "Type")
	s, known := storageOf(name)
	if !isType || !known {
		return false
	}
	t := SimpleType{Type: storages[s].kind, Storage: s}
	if s == StoreClock {
		t.clock = clockAttributes{}
	}
	p.lines.types = append(p.lines.types, p.line)
	p.single = s == StoreFloat32
	named := false
	for i := range e.Attr {
		switch a := &e.Attr[i]; {
		case local(a) == "name":
			t.Name, named = a.Value, true
		case local(a) == "description":
			t.Description = a.Value
		case !p.typeAttribute(a, &t) && !p.attribute3(a, s, &t.MediaType, t.clock):
			p.unknownAttribute(a)
		}
	}
	p.single = false
	p.required(named, "name")
	if t.Type == Enumeration {
		t.Items = p.items()
	} else {
		p.none()
	}
	p.d.Types = append(p.d.Types, t)
	return true
}

// attribute3 reads an attribute that Binaries or Clocks and their types share; false for any other.
func (p *reader) attribute3(a *xml.Attr, s Storage, media *string, c clockAttributes) bool {
	switch name := local(a); {
	case s == StoreBinary && name == "mimeType":
		*media = a.Value
	case s == StoreBinary && name == "maxSize":
	case s != StoreClock:
		return false
	case name == "intervalVariability":
		k, _ := p.word(a, intervalWords)
		c[name] = float64(k)
	case name == "supportsFraction" || name == "canBeDeactivated":
		c[name] = 0
		if p.flag(a) {
			c[name] = 1
		}
	case name == "intervalDecimal" || name == "shiftDecimal" || name == "resolution" ||
		name == "intervalCounter" || name == "shiftCounter":
		c[name], _ = p.double(a)
	default:
		return name == "priority" // of Scheduled Execution
	}
	return true
}

// variable3 reads a variable, which expand may make several ones; false for another element.
func (p *reader) variable3(e *xml.StartElement) bool {
	s, known := storageOf(e.Name.Local)
	if !known {
		return false
	}
	p.given = append(p.given, 0)
	v, g := p.newVariable(), &p.given[len(p.given)-1]
	v.Line, v.three, v.Storage, v.Type = p.line, true, s, storages[s].kind
	v.CanHandleMultipleSetPerTimeInstant = true
	var clock clockAttributes
	if s == StoreClock {
		clock = clockAttributes{}
		v.Clock = &ClockInfo{given: clock}
	}
	x := several{at: len(p.given) - 1}
	p.single, p.started = s == StoreFloat32, p.started[:0]
	for i := range e.Attr {
		switch a := &e.Attr[i]; {
		case local(a) == "start" && s != StoreClock && s != StoreBinary:
			p.startList(a, v)
			x.given = true
		case local(a) == "derivative" && v.Type == Real:
			n, _ := p.unsigned(a)
			v.Derivative = int(n) + 1 // expand resolves it
		case local(a) == "clocks":
			p.clocks(a, v)
		case local(a) == "previous" || local(a) == "intermediateUpdate":
		case !p.variableAttribute(a, v, g) && !p.typedAttribute(a, v, g) && !p.attribute3(a, s, &v.MediaType, clock):
			p.unknownAttribute(a)
		}
	}
	p.single = false
	p.required(*g&givenName != 0, "name")
	p.required(*g&givenReference != 0, "valueReference")
	if *g&givenVariability == 0 {
		v.Variability = defaultVariability(v.Causality, v.Type)
	}
	if v.Causality != Input {
		v.CanHandleMultipleSetPerTimeInstant = false
	} else if v.Initial == Exact {
		v.Initial = InitialNone // as in FMI 2.0
	}
	for e := range p.children {
		switch name := e.Name.Local; {
		case e.Name.Space != "":
			p.unknownElement(e)
		case name == "Annotations":
			v.Annotations = append(v.Annotations, p.annotations()...)
		case name == "Dimension" && s != StoreClock:
			x.dims = append(x.dims, p.dimension(e, v.Name))
		case name == "Start" && (s == StoreText || s == StoreBinary):
			value := xml.Attr{Name: xml.Name{Local: "value"}}
			p.attributes(e, map[string]any{"value": func(a *xml.Attr) { value = *a }})
			p.addStart(&value, v)
			x.given = true
			p.none()
		case name == "Alias":
			x.aliases = append(x.aliases, p.alias(e, v))
		default:
			p.unknownElement(e)
		}
	}
	switch {
	case x.dims == nil && x.given && len(p.started) != 1:
		p.mark(location{"ModelVariables", s.String(), x.at, v.Line, v.Name}, ruleDimension,
			"%q has %d start values for 1 element", clip(v.Name), len(p.started))
	case x.dims != nil || x.aliases != nil:
		x.starts = slices.Clone(p.started)
		p.several = append(p.several, x)
	}
	return true
}

// startList reads the attribute start, a list of values.
func (p *reader) startList(a *xml.Attr, v *ScalarVariable) {
	if v.Storage == StoreText { // Dymola
		p.add(ruleUnknown, p.path(a.Name.Local), p.line, "", "the attribute start of a String is read as the element Start")
		p.addStart(a, v)
		return
	}
	for word := range strings.FieldsSeq(a.Value) {
		p.addStart(&xml.Attr{Name: a.Name, Value: word}, v)
	}
}

// addStart reads one start value.
func (p *reader) addStart(a *xml.Attr, v *ScalarVariable) {
	p.startValue(a, v)
	if v.Storage == StoreBinary {
		b, err := hex.DecodeString(strings.Trim(a.Value, xmlSpace))
		if err != nil {
			p.badValue(a, "a list of bytes, each of two hexadecimal digits")
		}
		v.StartString = string(b)
	}
	p.started = append(p.started, start{v.StartReal, v.StartInteger, v.StartBoolean, v.StartString})
}

// clocks reads the attribute of that name.
func (p *reader) clocks(a *xml.Attr, v *ScalarVariable) {
	list, ok := indices(a.Value)
	if !ok {
		p.badValue(a, "a list of numbers from 0 to 4294967295")
	}
	for _, n := range list {
		v.Clocks = append(v.Clocks, uint32(n))
	}
}

// dimension reads a Dimension of the variable with this name.
func (p *reader) dimension(e *xml.StartElement, name string) (d dimension) {
	sized := false
	p.attributes(e, map[string]any{
		"start": func(a *xml.Attr) {
			n, err := strconv.ParseUint(strings.Trim(a.Value, xmlSpace), 10, 64)
			if d.size, sized = n, true; err != nil || n == 0 {
				p.add(ruleDimension, p.path("start"), p.line, name, "a dimension of %q is %q, not a size from 1 to %d",
					clip(name), clip(a.Value), maxElements)
			}
		},
		"valueReference": func(a *xml.Attr) {
			d.ref, _ = p.unsigned(a)
			d.byRef = true
		},
	})
	if sized == d.byRef {
		p.add(ruleDimension, p.path(""), p.line, name, "a dimension of %q needs either start or valueReference", clip(name))
	}
	p.none()
	return d
}

// alias reads an Alias of a variable.
func (p *reader) alias(e *xml.StartElement, v *ScalarVariable) (a alias) {
	targets := map[string]any{"name": &a.name, "description": &a.description}
	if v.Type == Real {
		targets["displayUnit"] = &a.displayUnit
	}
	p.attributes(e, targets, "name")
	p.none()
	return a
}

// elements3 are the entries of ModelStructure that are kept, in the order of the lists of checkStructure.
var elements3 = []string{"Output", "ContinuousStateDerivative", "InitialUnknown"}

func (p *reader) structure3(*xml.StartElement) {
	p.noAttributes()
	last := 0
	for e := range p.children {
		name := e.Name.Local
		order := slices.Index([]string{"Output", "ContinuousStateDerivative", "ClockedState", "InitialUnknown",
			"EventIndicator"}, name)
		if order < 0 || e.Name.Space != "" {
			p.unknownElement(e)
			continue
		}
		if order < last {
			p.add(ruleSchemaLoose, p.path(""), p.line, name, "the element %s is out of order", name)
		}
		last = max(last, order)
		list, places := new([]Unknown), new([]place) // not kept
		switch name {
		case "Output":
			list, places = &p.d.Outputs, &p.places.outputs
		case "ContinuousStateDerivative":
			list, places = &p.d.Derivatives, &p.places.derivatives
		case "InitialUnknown":
			list, places = &p.d.InitialUnknowns, &p.places.initialUnknowns
		}
		p.unknown(e, "valueReference", list, places)
	}
}

// configure sets the structural parameters of the options, and notes their values in the document.
func (p *reader) configure() {
	if len(p.options.Structure) == 0 {
		return
	}
	left := maps.Clone(p.options.Structure)
	p.documented = map[uint32]int64{}
	for i := range p.d.Variables {
		v := &p.d.Variables[i]
		n, given := left[v.Name]
		if !given || v.Causality != StructuralParameter || v.Type != Integer {
			continue
		}
		delete(left, v.Name)
		low, high := storages[v.Storage].min, storages[v.Storage].max
		if v.Integer.Min != nil {
			low = *v.Integer.Min
		}
		if v.Integer.Max != nil {
			high = *v.Integer.Max
		}
		if n > math.MaxInt64 || int64(n) < low || int64(n) > high {
			p.at(i, ruleDimension, "%d is given for %q, which is from %d to %d", n, clip(v.Name), low, high)
			continue
		}
		p.documented[v.ValueReference.Number()] = v.StartInteger
		v.StartInteger, v.HasStart = int64(n), true
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		p.add(ruleDimension, "/fmiModelDescription/ModelVariables", 0, name,
			"a size is given for %q, which is no structural parameter with whole numbers", clip(name))
	}
}

// expand makes variables of the elements of arrays and of aliases, and indices of references. It returns false
// if sizes are missing.
func (p *reader) expand() bool {
	vars := p.d.Variables
	p.refs = make(map[uint32]span, len(vars))
	for i := range vars {
		r := vars[i].ValueReference.Number()
		if other, twice := p.refs[r]; twice {
			v := &vars[other.first]
			p.at(i, ruleDuplicate, "%q has the value reference %d, as %q in line %d",
				clip(vars[i].Name), r, clip(v.Name), v.Line)
			continue
		}
		p.refs[r] = span{i, 1, 1}
	}
	for i := range vars {
		v := &vars[i]
		v.Clocks = slices.DeleteFunc(v.Clocks, func(r uint32) bool {
			s, found := p.refs[r]
			bad := !found || vars[s.first].Type != Clock
			if bad {
				p.at(i, ruleClock, "%q lists the Clock with the reference %d, which no Clock has", clip(v.Name), r)
			}
			return bad
		})
	}
	total := 0
	for k := range p.several {
		total += p.measure(&p.several[k], total)
	}
	if p.groups[ruleDimension] != nil {
		return false
	}
	if len(p.several) > 0 {
		p.multiply(len(vars) + total)
	}
	for i := range p.d.Variables {
		p.resolveDerivative(i, &p.d.Variables[i])
	}
	return true
}

// measure finds the sizes of an array, and returns the number of elements of it and its aliases; before is that of
// those before it.
func (p *reader) measure(x *several, before int) int {
	v := &p.d.Variables[x.at]
	x.n = 1
	if x.dims == nil {
		return 0
	}
	if v.Causality == StructuralParameter {
		p.at(x.at, ruleDimension, "the structural parameter %q is an array", clip(v.Name))
	}
	documented := 1
	for k, d := range x.dims {
		was := d.size
		if d.byRef {
			size, ok := p.size(x.at, k, d.ref)
			if !ok {
				return 0
			}
			d.size, was = uint64(size), uint64(size)
			if before, changed := p.documented[d.ref]; changed {
				was = uint64(before)
			}
		}
		if d.size > maxElements || x.n*int(d.size) > maxElements || before+x.n*int(d.size)*(1+len(x.aliases)) > maxElements {
			p.at(x.at, ruleDimension, "with %q the arrays of the FMU have more than %d elements", clip(v.Name), maxElements)
			return 0
		}
		x.sizes = append(x.sizes, int(d.size))
		x.n *= int(d.size)
		x.resized = x.resized || was != d.size
		documented *= int(min(was, math.MaxInt32))
	}
	if n := len(x.starts); x.given && n != 1 && n != documented {
		p.at(x.at, ruleDimension, "%q has %d start values for %d elements", clip(v.Name), n, documented)
	}
	return x.n * (1 + len(x.aliases))
}

// size returns the size of dimension k, from 0, of a variable, which another variable holds.
func (p *reader) size(i, k int, ref uint32) (int64, bool) {
	name := clip(p.d.Variables[i].Name)
	at, found := p.refs[ref]
	if !found {
		p.at(i, ruleDimension, "dimension %d of %q is in the reference %d, which no variable has", k+1, name, ref)
		return 0, false
	}
	s := &p.d.Variables[at.first]
	j, array := slices.BinarySearchFunc(p.several, at.first, func(x several, at int) int { return x.at - at })
	array = array && p.several[j].dims != nil
	switch {
	case array || s.Storage != StoreUInt64 || !s.HasStart ||
		s.Causality != StructuralParameter && s.Variability != Constant:
		p.at(i, ruleDimension, "dimension %d of %q is in %q, which is not a UInt64 with a start value "+
			"that is a structural parameter or constant", k+1, name, clip(s.Name))
		return 0, false
	case s.StartInteger < 1:
		p.at(i, ruleDimension, "dimension %d of %q is %d, the value of %q", k+1, name, s.StartInteger, clip(s.Name))
		return 0, false
	}
	return s.StartInteger, true
}

// multiply replaces the elements of ModelVariables with the variables, of which there are at most n.
func (p *reader) multiply(n int) {
	out, given := make([]ScalarVariable, 0, n), make([]given, 0, n)
	p.ordinal = make([]int, 0, n)
	refs := make(map[uint32]span, len(p.refs))
	left := p.several
	for i, v := range p.d.Variables {
		x := &several{n: 1}
		if len(left) > 0 && left[0].at == i {
			x, left = &left[0], left[1:]
		}
		first := len(out)
		for k := range 1 + len(x.aliases) {
			w := v
			if k > 0 {
				a := &x.aliases[k-1]
				w.Name, w.Description, w.Real.DisplayUnit = a.name, a.description, cmp.Or(a.displayUnit, v.Real.DisplayUnit)
			}
			out = x.variables(out, w, first, k)
		}
		for range len(out) - first {
			given, p.ordinal = append(given, p.given[i]), append(p.ordinal, i)
		}
		refs[v.ValueReference.Number()] = span{first, x.n, len(out) - first}
	}
	p.d.Variables, p.given, p.refs = out, given, refs
}

// variables appends the variables of an element, or of its alias with this number from 1. first is the index of the
// first variable of the element.
func (x *several) variables(out []ScalarVariable, v ScalarVariable, first, alias int) []ScalarVariable {
	if x.dims != nil {
		v.Array = &Array{v.Name, x.sizes, len(out), x.resized}
	}
	for j := range x.n {
		w := v
		if x.dims != nil {
			w.Name += subscript(j, x.sizes)
			w.ValueReference |= ValueReference(j) << 32
			if x.resized {
				w.dropStart()
			} else if x.given {
				s := &x.starts[min(j, len(x.starts)-1)]
				w.StartReal, w.StartInteger, w.StartBoolean, w.StartString = s.real, s.integer, s.boolean, s.text
			}
		}
		if alias > 0 {
			w.AliasOf = first + j + 1
			if w.Variability != Constant { // in FMI 2.0 only constants may have several
				w.dropStart()
			}
		}
		out = append(out, w)
	}
	return out
}

// subscript returns the indices of an element, from 1: "[1,2]".
func subscript(j int, sizes []int) string {
	text := "]"
	for _, size := range slices.Backward(sizes) {
		text = "," + strconv.Itoa(j%size+1) + text
		j /= size
	}
	return "[" + text[1:]
}

// resolveDerivative replaces the reference, plus 1, by an index.
func (p *reader) resolveDerivative(i int, v *ScalarVariable) {
	if v.Derivative == 0 {
		return
	}
	r, n := v.Derivative-1, 1
	name := v.Name
	if v.Array != nil {
		n, name = v.Array.Len(), v.Array.Name
	}
	of, found := p.refs[uint32(r)]
	switch {
	case !found:
		p.at(i, ruleDerivative, "%q is the derivative of the reference %d, which no variable has", clip(v.Name), r)
		v.Derivative = 0
	case of.n != n:
		p.at(i, ruleDerivative, "%q has %d elements, but the reference %d, whose derivative it is, has %d",
			clip(name), n, r, of.n)
		v.Derivative = 0
	default:
		v.Derivative = of.first + v.ValueReference.Element() + 1
	}
}

// resolve replaces references by indices. The unknowns of an array share their dependencies.
func (p *reader) resolve(s *structureList) {
	var list []Unknown
	var places []place
	seen := map[uint32]bool{}
	for k, u := range *s.list {
		r := uint32(u.Index)
		at, found := p.refs[r]
		if !found {
			p.add(s.rule, s.path(k), s.places[k].line, "",
				"%s lists the reference %d, which no variable has; the entry is ignored",
				s.name, r)
			continue
		}
		n := at.all
		switch {
		case seen[r]:
			n = 1 // enough to report it
		case s.rule == ruleDerivatives:
			n = at.n // of each state one
		}
		seen[r] = true
		p.resolveDependencies(&u, p.d.Variables[at.first].Name, s.path(k), s.places[k].line)
		for j := range n {
			u.Index = at.first + j + 1
			list, places = append(list, u), append(places, s.places[k])
		}
	}
	*s.list, s.places = list, places
}

// resolveDependencies makes indices of the references on which an unknown depends: those of all elements and aliases.
func (p *reader) resolveDependencies(u *Unknown, name, path string, line int) {
	forget := func(format string, args ...any) {
		p.add(ruleDependencies, path, line, name, "%q depends on "+format, append([]any{clip(name)}, args...)...)
		u.Declared, u.Dependencies, u.Kinds = false, nil, nil
	}
	n := 0
	for _, r := range u.Dependencies {
		at, found := p.refs[uint32(r)]
		if n += at.all; !found {
			forget("the reference %d, which no variable has", r)
			return
		}
	}
	if n == 0 {
		return
	}
	if p.dependencies+n > maxDependencies {
		forget("more elements than can be listed: %d in the whole FMU", maxDependencies)
		return
	}
	p.dependencies += n
	list := make([]int, 0, n)
	var kinds []DependencyKind
	for k, r := range u.Dependencies {
		at := p.refs[uint32(r)]
		for j := range at.all {
			list = append(list, at.first+j+1)
			if u.Kinds != nil {
				kinds = append(kinds, u.Kinds[k])
			}
		}
	}
	u.Dependencies, u.Kinds = list, kinds
	if !strictlyAscending(u.Dependencies) {
		u.sort()
	}
}

// time returns the time of an attribute name+"Decimal", or of a counter; 0 = as none.
func (c clockAttributes) time(name string) float64 {
	if t, given := c[name+"Decimal"]; given || c["resolution"] == 0 {
		return t
	}
	return c[name+"Counter"] / c["resolution"]
}

// check3 completes a Binary or a Clock, and checks a Clock.
func (p *reader) check3(i int, v *ScalarVariable) {
	c := v.Clock
	if v.Storage == StoreBinary {
		v.MediaType = cmp.Or(v.MediaType, "application/octet-stream")
	}
	if c == nil {
		return
	}
	report := func(format string, args ...any) {
		if v.AliasOf == 0 {
			p.at(i, ruleClock, format, append([]any{clip(v.Name)}, args...)...)
		}
	}
	if own := v.Causality == Input || v.Causality == Output || v.Causality == Local; !own || v.Variability != Discrete {
		report("the Clock %q is %s and %s; taken as discrete, and local unless it is input or output",
			v.Causality, v.Variability)
		v.Variability = Discrete
		if !own {
			v.Causality = Local
		}
	}
	if s := p.d.CoSimulation; s != nil && !s.HasEventMode {
		report("%q is a Clock, but the FMU has no event mode")
	}
	c.Interval = intervalWords[int(c.given["intervalVariability"])]
	if c.Interval == "" || c.Interval != "triggered" && v.Causality != Input {
		report("the %[2]s Clock %[1]q has the intervalVariability %[3]q; taken as triggered", v.Causality, c.Interval)
		c.Interval = "triggered"
	}
	c.SupportsFraction, c.CanBeDeactivated = c.given["supportsFraction"] == 1, c.given["canBeDeactivated"] == 1
	c.IntervalDecimal, c.ShiftDecimal = c.given.time("interval"), c.given.time("shift")
	switch c.Interval {
	case "constant", "fixed", "tunable":
		_, decimal := c.given["intervalDecimal"]
		_, counter := c.given["intervalCounter"]
		if c.IntervalDecimal <= 0 && (decimal || counter || c.Interval == "constant") {
			report("the %[2]s Clock %[1]q has no interval greater than 0", c.Interval)
			c.IntervalDecimal = 0
		}
		if c.ShiftDecimal < 0 {
			report("the Clock %q has the shift %g", c.ShiftDecimal)
			c.ShiftDecimal = 0
		}
	default:
		if c.IntervalDecimal != 0 || c.ShiftDecimal != 0 {
			report("the %[2]s Clock %[1]q has an interval or shift, which is ignored", c.Interval)
			c.IntervalDecimal, c.ShiftDecimal = 0, 0
		}
	}
}
