package fmus

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// units of the models, with the exponents of their SI base units as in FMI.
var units = []struct{ name, base string }{
	{"N", `kg="1" m="1" s="-2"`},
	{"N.s/m", `kg="1" s="-1"`},
	{"N/m", `kg="1" s="-2"`},
	{"N/m3", `kg="1" m="-2" s="-2"`},
	{"N.s3/m3", `kg="1" m="-2" s="1"`},
	{"1/m", `m="-1"`},
	{"kg", `kg="1"`},
	{"m", `m="1"`},
	{"m/s", `m="1" s="-1"`},
	{"m/s2", `m="1" s="-2"`},
	{"s", `s="1"`},
	{"1/s", `s="-1"`},
	{"rad", `rad="1"`},
	{"rad/s", `rad="1" s="-1"`},
	{"rad/s2", `rad="1" s="-2"`},
	{"m2", `m="2"`},
	{"kg/m3", `kg="1" m="-3"`},
	{"Pa", `kg="1" m="-1" s="-2"`},
	{"Pa/s", `kg="1" m="-1" s="-3"`},
	{"1/Pa", `kg="-1" m="1" s="2"`},
	{"1/Pa2", `kg="-2" m="2" s="4"`},
}

// visible returns the variables that modelDescription.xml lists, without the states of a black box, and their value
// references, which are those of the C table.
func (m *model) visible() (v []variable, reference []int) {
	reals, counts, texts := 0, m.first(count), m.first(text)
	for _, x := range m.variables {
		next := &reals
		switch x.role {
		case count:
			next = &counts
		case text:
			next = &texts
		}
		if !m.plain || x.role == input || x.output || x.role == parameter || x.role == independent {
			v, reference = append(v, x), append(reference, *next)
		}
		*next++
	}
	return v, reference
}

// guid returns a GUID made from the description and the sources, so that an FMU never loads a library of another
// version.
func (m *model) guid(sources []file) string {
	h := sha256.New()
	h.Write([]byte(m.xml("")))
	h.Write([]byte(m.header()))
	for _, f := range sources {
		fmt.Fprintf(h, "%s\n%d\n%s", f.name, len(f.data), f.data)
	}
	s := h.Sum(nil)
	return fmt.Sprintf("{%x-%x-%x-%x-%x}", s[:4], s[4:6], s[6:8], s[8:10], s[10:16])
}

// xml returns modelDescription.xml (fmi2 12–28).
func (m *model) xml(guid string) string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	variables, reference := m.visible()
	index := map[string]int{}
	for i, v := range variables {
		index[v.name] = i + 1
		if m.fmi3 {
			index[v.name] = reference[i]
		}
	}

	p(`<?xml version="1.0" encoding="UTF-8"?>`)
	const head = `<fmiModelDescription fmiVersion="%s" modelName="%s" %s="%s" description="%s" ` +
		`generationTool="macrostep" license="Apache-2.0" variableNamingConvention="structured">`
	if m.fmi3 {
		p(head, "3.0", m.name, "instantiationToken", guid, escape(m.description))
		p(`  <CoSimulation modelIdentifier="%s"%s/>`, m.name, capabilities3.Replace(m.capabilities()))
	} else {
		p(head, "2.0", m.name, "guid", guid, escape(m.description))
		p(`  <CoSimulation modelIdentifier="%s"%s>`, m.name, m.capabilities())
		p(`    <SourceFiles>`)
		m.writeSources(p, "File")
		p(`    </SourceFiles>`)
		p(`  </CoSimulation>`)
	}
	m.writeUnits(p, variables)
	m.writeTypes(p, variables)
	p(`  <LogCategories>`)
	p(`    <Category name="logStatusError" description="why a call was refused"/>`)
	p(`    <Category name="logStatusDiscard" description="why a value was discarded"/>`)
	p(`    <Category name="logEvents" description="instantiation and initialization"/>`)
	p(`  </LogCategories>`)
	p(`  <DefaultExperiment startTime="0" stopTime="%s" stepSize="%s"/>`, number(m.stop), number(m.step))
	if m.stateless && !m.fmi3 {
		p(`  <VendorAnnotations><Tool name="macrostep"><stateless/></Tool></VendorAnnotations>`)
	}

	p(`  <ModelVariables>`)
	for i, v := range variables {
		kind, attributes := v.typed(m.plain, index)
		common := fmt.Sprintf(`name="%s" valueReference="%d"%s description="%s"`, v.name, reference[i], v.attributes(), escape(v.description))
		switch {
		case !m.fmi3:
			p(`    <ScalarVariable %s><%s%s/></ScalarVariable> <!-- %d -->`, common, kind, attributes, i+1)
		case v.role == text:
			p(`    <String %s><Start value="%s"/></String>`, common, escape(v.word))
		default:
			p(`    <%s %s%s/>`, names3[kind], common, attributes)
		}
	}
	p(`  </ModelVariables>`)

	m.writeStructure(p, variables, index)
	if m.stateless && m.fmi3 {
		p(`  <Annotations><Annotation type="macrostep"><stateless/></Annotation></Annotations>`)
	}
	p(`</fmiModelDescription>`)
	return b.String()
}

// names3 are the elements of FMI 3.0 that replace those of FMI 2.0.
var names3 = map[string]string{"Real": "Float64", "Integer": "Int32", "Enumeration": "Enumeration",
	"Outputs": "Output", "Derivatives": "ContinuousStateDerivative", "InitialUnknowns": "InitialUnknown"}

// capabilities3 makes the attributes of CoSimulation those of FMI 3.0.
var capabilities3 = strings.NewReplacer("FMUstate", "FMUState", "DirectionalDerivative", "DirectionalDerivatives",
	` canInterpolateInputs="true"`, "", ` canRunAsynchronuously="true"`, "")

// writeSources writes an element for each C file.
func (m *model) writeSources(p func(string, ...any), element string) {
	for _, s := range m.names() {
		if isC(s) {
			p(`      <%s name="%s"/>`, element, s)
		}
	}
}

// buildDescription returns sources/buildDescription.xml (FMI 3.0 2.5.1.3).
func (m *model) buildDescription() string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	p(`<?xml version="1.0" encoding="UTF-8"?>`)
	p(`<fmiBuildDescription fmiVersion="3.0">`)
	p(`  <BuildConfiguration modelIdentifier="%s">`, m.name)
	p(`    <SourceFileSet language="C99">`)
	m.writeSources(p, "SourceFile")
	p(`    </SourceFileSet>`)
	p(`  </BuildConfiguration>`)
	p(`</fmiBuildDescription>`)
	return b.String()
}

// writeStructure writes ModelStructure (fmi2 26–28; FMI 3.0 2.4.8).
func (m *model) writeStructure(p func(string, ...any), variables []variable, index map[string]int) {
	list := func(name string, is func(v variable) bool, dependencies func(v variable, index map[string]int) string) {
		begin, unknown, end := "    <"+name+">\n", "  <Unknown index", "    </"+name+">\n"
		if m.fmi3 {
			begin, unknown, end = "", "<"+names3[name]+" valueReference", ""
		}
		for _, v := range variables {
			if is(v) {
				begin += fmt.Sprintf("    %s=\"%d\"%s/>\n", unknown, index[v.name], dependencies(v, index))
			}
		}
		p("%s", strings.TrimSuffix(begin+end, "\n"))
	}
	isRate := func(v variable) bool { return v.derivativeOf != "" }
	p(`  <ModelStructure>`)
	list("Outputs", func(v variable) bool { return v.output }, m.dependencies)
	if !m.plain && slices.ContainsFunc(variables, isRate) {
		list("Derivatives", isRate, m.dependencies)
	}
	initial := func(v variable) bool { return v.role == state || v.role == derivative || v.role == calculated }
	list("InitialUnknowns", initial, m.initialDependencies)
	p(`  </ModelStructure>`)
}

func (m *model) capabilities() string {
	const variable = ` canHandleVariableCommunicationStepSize="true"`
	if m.attributes != "" {
		return m.attributes
	}
	if m.plain {
		return variable
	}
	return fmt.Sprintf(variable+` canInterpolateInputs="true" maxOutputDerivativeOrder="%d" canGetAndSetFMUstate="true"`+
		` canSerializeFMUstate="true" providesDirectionalDerivative="true"`, m.outputOrder)
}

func (m *model) writeUnits(p func(string, ...any), variables []variable) {
	used := map[string]bool{}
	for _, v := range variables {
		used[v.unit] = true
	}
	var lines []string
	for _, u := range units {
		if used[u.name] {
			lines = append(lines, fmt.Sprintf(`    <Unit name="%s"><BaseUnit %s/></Unit>`, u.name, u.base))
		}
	}
	if len(lines) > 0 {
		p("  <UnitDefinitions>\n%s\n  </UnitDefinitions>", strings.Join(lines, "\n"))
	}
}

func (m *model) writeTypes(p func(string, ...any), variables []variable) {
	format := `    <SimpleType name="%s"><Enumeration>%s</Enumeration></SimpleType>`
	if m.fmi3 {
		format = `    <EnumerationType name="%s">%s</EnumerationType>`
	}
	var lines []string
	for _, v := range variables {
		if v.enumeration == "" {
			continue
		}
		items := ""
		for i, item := range v.items {
			items += fmt.Sprintf(`<Item name="%s" value="%d"/>`, item, i)
		}
		lines = append(lines, fmt.Sprintf(format, v.enumeration, items))
	}
	if len(lines) > 0 {
		p("  <TypeDefinitions>\n%s\n  </TypeDefinitions>", strings.Join(lines, "\n"))
	}
}

func (v variable) attributes() string {
	switch v.role {
	case input:
		return ` causality="input" variability="continuous"`
	case parameter, count, text:
		return ` causality="parameter" variability="fixed" initial="exact"`
	case independent:
		return ` causality="independent" variability="continuous"`
	}
	if v.output {
		return ` causality="output" variability="continuous" initial="calculated"`
	}
	return ` causality="local" variability="continuous" initial="calculated"`
}

// typed returns the element of the type in FMI 2.0 and its attributes.
func (v variable) typed(plain bool, index map[string]int) (element, attributes string) {
	if v.enumeration != "" {
		return "Enumeration", fmt.Sprintf(` declaredType="%s" start="%s"`, v.enumeration, number(v.start))
	}
	if v.role == count {
		return "Integer", fmt.Sprintf(` start="%s" min="%s"`, number(v.start), number(*v.min))
	}
	if v.role == text {
		return "String", fmt.Sprintf(` start="%s"`, escape(v.word))
	}
	s := ""
	if v.unit != "" {
		s += fmt.Sprintf(` unit="%s"`, v.unit)
	}
	if v.nominal != 0 {
		s += fmt.Sprintf(` nominal="%s"`, number(v.nominal))
	}
	if v.derivativeOf != "" && !plain {
		s += fmt.Sprintf(` derivative="%d"`, index[v.derivativeOf])
	}
	if v.role == input || v.role == parameter {
		s += fmt.Sprintf(` start="%s"`, number(v.start))
	}
	return "Real", s
}

// dependencies returns those between steps, on inputs and states, with ascending indices (fmi2 26–28). A
// state depends on no other known; its dependency on itself is not written.
func (m *model) dependencies(v variable, index map[string]int) string {
	if m.plain {
		return ""
	}
	var on, kind []string
	for _, d := range slices.SortedFunc(slices.Values(v.depends), func(a, b dependency) int { return index[a.name] - index[b.name] }) {
		if _, listed := index[d.name]; !listed || d.name == v.name {
			continue // time is a variable in FMI 3.0 only
		}
		on, kind = append(on, strconv.Itoa(index[d.name])), append(kind, d.kind)
	}
	if len(on) == 0 {
		return ` dependencies=""`
	}
	return fmt.Sprintf(` dependencies="%s" dependenciesKind="%s"`, strings.Join(on, " "), strings.Join(kind, " "))
}

// initialDependencies returns those at the start, on inputs and parameters; states are unknowns there.
func (m *model) initialDependencies(v variable, index map[string]int) string {
	if m.plain {
		return ""
	}
	var on []int
	for _, d := range v.depends {
		for _, x := range m.variables {
			if x.name == d.name && (x.role == input || x.role == independent) {
				on = append(on, index[d.name])
			}
		}
	}
	for _, name := range v.initial {
		on = append(on, index[name])
	}
	slices.Sort(on)
	return fmt.Sprintf(` dependencies="%s"`, strings.Trim(fmt.Sprint(on), "[]"))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escape(s string) string { return escaper.Replace(s) }
