package description

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// baseXML keeps every rule and can be changed to break each.
const baseXML = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="base" guid="{1}" generationDateAndTime="2026-01-02T03:04:05Z" variableNamingConvention="structured">
  <ModelExchange modelIdentifier="base_me"><SourceFiles><File name="a.c"/><File name="b.c"/></SourceFiles></ModelExchange>
  <CoSimulation modelIdentifier="base" canGetAndSetFMUstate="true" canSerializeFMUstate="true"/>
  <UnitDefinitions>
    <Unit name="m"><BaseUnit m="1"/><DisplayUnit name="mm" factor="1000"/><DisplayUnit name="km" factor="0.001"/></Unit>
    <Unit name="K"><BaseUnit K="1"/></Unit>
  </UnitDefinitions>
  <TypeDefinitions>
    <SimpleType name="Length"><Real unit="m" displayUnit="mm" min="-10" max="10" nominal="0.5"/></SimpleType>
    <SimpleType name="Count"><Integer min="0" max="9"/></SimpleType>
    <SimpleType name="Gear"><Enumeration><Item name="low" value="1"/><Item name="high" value="2"/></Enumeration></SimpleType>
  </TypeDefinitions>
  <LogCategories><Category name="error"/><Category name="info"/></LogCategories>
  <DefaultExperiment startTime="0" stopTime="1" tolerance="1e-6" stepSize="0.25"/>
  <VendorAnnotations><Tool name="one"/><Tool name="two"><x/></Tool></VendorAnnotations>
  <ModelVariables>
    <ScalarVariable name="time" valueReference="0" causality="independent"><Real/></ScalarVariable>
    <ScalarVariable name="u" valueReference="1" causality="input" canHandleMultipleSetPerTimeInstant="true"><Real declaredType="Length" start="1"/></ScalarVariable>
    <ScalarVariable name="n" valueReference="1" causality="input" variability="discrete"><Integer declaredType="Count" start="3"/></ScalarVariable>
    <ScalarVariable name="gear" valueReference="2" causality="parameter" variability="fixed"><Enumeration declaredType="Gear" start="1"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="2" initial="exact"><Real unit="m" displayUnit="km" start="0" reinit="true"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="3"><Real derivative="5"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="4" causality="output" initial="calculated"><Real unit="m"/></ScalarVariable>
    <ScalarVariable name="y_copy" valueReference="4"><Real unit="m"/></ScalarVariable>
    <ScalarVariable name="on" valueReference="0" causality="output" variability="discrete"><Boolean/></ScalarVariable>
    <ScalarVariable name="half" valueReference="5" causality="calculatedParameter" variability="fixed"><Real/></ScalarVariable>
    <ScalarVariable name="g" valueReference="6" variability="constant"><Real start="9.81"/></ScalarVariable>
    <ScalarVariable name="g_copy" valueReference="6" variability="constant"><Real start="9.81"/></ScalarVariable>
    <ScalarVariable name="p" valueReference="7" causality="parameter" variability="tunable"><Real start="2" min="0" max="5" nominal="1"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs>
      <Unknown index="7" dependencies="2 5" dependenciesKind="constant dependent"/>
      <Unknown index="9" dependencies="3" dependenciesKind="dependent"/>
    </Outputs>
    <Derivatives><Unknown index="6" dependencies="2"/></Derivatives>
    <InitialUnknowns>
      <Unknown index="6"/>
      <Unknown index="7" dependencies="2" dependenciesKind="constant"/>
      <Unknown index="9" dependencies=""/>
      <Unknown index="10"/>
    </InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
`

func readText(text string, strict bool) (*ModelDescription, *diag.List, error) {
	l := &diag.List{Strict: strict}
	d, err := Read(strings.NewReader(text), "x.xml", l)
	return d, l, err
}

// must fails the test if an error is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lineOf returns the line of a text that occurs once in baseXML.
func lineOf(t *testing.T, text string) int {
	t.Helper()
	return lineIn(t, baseXML, text)
}

// lineIn returns the line of a text that occurs once in a document.
func lineIn(t *testing.T, document, text string) int {
	t.Helper()
	if n := strings.Count(document, text); n != 1 {
		t.Fatalf("%q stands %d times in the document", text, n)
	}
	return 1 + strings.Count(document[:strings.Index(document, text)], "\n")
}

func TestBaseKeepsEveryRule(t *testing.T) {
	d, l, err := readText(baseXML, true)
	must(t, err)
	if len(l.Findings) > 0 {
		t.Errorf("findings: %v", l.Findings)
	}
	if len(d.Variables) != 13 || len(d.Outputs) != 2 || len(d.InitialUnknowns) != 4 {
		t.Errorf("%d variables, %d outputs, %d initial unknowns", len(d.Variables), len(d.Outputs), len(d.InitialUnknowns))
	}
}

// ruleCase breaks base at one place.
type ruleCase struct {
	old, new string
	want     string // rules broken, by id; after a colon part of the message
	at       string // text in the line of the finding; "" = old; "-" = any
	check    func(d *ModelDescription) string
}

func variableIs(name string, check func(v *ScalarVariable) bool) func(d *ModelDescription) string {
	return func(d *ModelDescription) string {
		v, ok := d.Variable(name)
		if !ok || !check(v) {
			return fmt.Sprintf("%s is %+v", name, v)
		}
		return ""
	}
}

func outputsAre(want ...Unknown) func(d *ModelDescription) string {
	return func(d *ModelDescription) string { return differ(d.Outputs, want) }
}

func initialsAre(want ...Unknown) func(d *ModelDescription) string {
	return func(d *ModelDescription) string { return differ(d.InitialUnknowns, want) }
}

// differ returns a message if the values differ, else "".
func differ(got, want any) string {
	if fmt.Sprint(got) == fmt.Sprint(want) {
		return ""
	}
	return fmt.Sprintf("%v, want %v", got, want)
}

var (
	unknownY  = Unknown{Index: 7, Declared: true, Dependencies: []int{2, 5}, Kinds: []DependencyKind{ConstantFactor, Dependent}}
	unknownOn = Unknown{Index: 9, Declared: true, Dependencies: []int{3}, Kinds: []DependencyKind{Dependent}}
	initialY  = Unknown{Index: 7, Declared: true, Dependencies: []int{2}, Kinds: []DependencyKind{ConstantFactor}}
	initialOn = Unknown{Index: 9, Declared: true}
)

const dependentXML = `<Unknown index="9" dependencies="3" dependenciesKind="dependent"/>`

var ruleCases = []ruleCase{
	// Well-formedness and schema.
	{old: `</ModelStructure>`, new: ``, want: "MD1:unexpected end tag", at: "-"},
	{old: `</fmiModelDescription>`, new: ``, want: "MD1:ends inside fmiModelDescription", at: "-"},
	{old: `</fmiModelDescription>`, new: `</fmiModelDescription><x/>`, want: "MD1:second root"},
	{old: baseXML, new: ``, want: "MD1:no element", at: "-"},
	{old: baseXML, new: `<html/>`, want: "MD1:root element is html"},
	{old: baseXML, new: `<fmi:fmiModelDescription fmiVersion="2.0"/>`, want: "MD1:root element"},
	{old: baseXML, new: `<fmiModelDescription modelName="x" guid="1"/>`, want: "MD1:fmiVersion is missing"},
	{old: `<?xml version="1.0"`, new: `<?xml version="1.1"`, want: "MD1:version"},
	{old: `encoding="UTF-8"`, new: `encoding="EBCDIC"`, want: "MD1:convert the file to UTF-8", at: "-"},
	{old: `modelName="base"`, new: `modelName="b` + "\xff" + `se"`, want: "MD1:invalid UTF-8"},
	{old: `modelName="base"`, new: `modelName="b" modelName="c"`, want: "MD1:duplicate attribute modelName"},
	{old: ` modelName="base"`, new: ``, want: "MD1:modelName is missing", at: "modelName"},
	{old: ` guid="{1}"`, new: ``, want: "MD1:guid is missing", at: "modelName"},
	{old: `variableNamingConvention="structured"`, new: `variableNamingConvention="free"`, want: "MD1:one of flat, structured"},
	{old: ` modelIdentifier="base"`, new: ``, want: "MD1:modelIdentifier is missing"},
	{old: `canGetAndSetFMUstate="true"`, new: `canGetAndSetFMUstate="True"`, want: "MD1:true, false|MD41:but canGetAndSetFMUstate is not"},
	{old: `  <LogCategories>`, new: `<CoSimulation modelIdentifier="z"/><LogCategories>`, want: "MD1:duplicate element CoSimulation"},
	{old: `<BaseUnit K="1"/>`, new: `<BaseUnit K="1.0"/>`, want: "MD1:integer of 32 bits"},
	{old: `<Unit name="K">`, new: `<Unit>`, want: "MD1:name is missing"},
	{old: `<DisplayUnit name="mm" factor="1000"/>`, new: `<DisplayUnit factor="1000"/>`, want: "MD1:name is missing"},
	{old: `<Integer min="0" max="9"/>`, new: ``, want: "MD1:no base type"},
	{old: `<Integer min="0" max="9"/>`, new: `<Integer min="0" max="3000000000"/>`, want: "MD1:32 bits"},
	{old: `stepSize="0.25"`, new: `stepSize="0x1p-2"`, want: "MD1:not a number"},
	{old: `stepSize="0.25"`, new: `stepSize=""`, want: "MD1:not a number"},
	{old: `name="u" valueReference="1"`, new: `name="u"`, want: "MD1:valueReference is missing"},
	{old: `name="u" valueReference="1"`, new: `name="u" valueReference="4294967296"`, want: "MD1:4294967295"},
	{old: `name="on" valueReference="0" causality="output"`, new: `name="on" valueReference="0" causality="out"`, want: "MD1:one of local"},
	{old: `causality="output" variability="discrete"><Boolean/>`, new: `causality="output" variability="discrete">`, want: "MD1:no base type"},
	{old: `<Boolean/>`, new: `<Boolean/><Real/>`, want: "MD1:second base type"},
	{old: `name="half" valueReference="5"`, new: `name="half" valueReference="5" initial="later"`, want: "MD1:one of exact"},
	{old: `    <Derivatives><Unknown index="6" dependencies="2"/>`, new: `<Derivatives><Unknown/>`, want: "MD1:index is missing"},
	{old: `<x/>`, new: strings.Repeat(`<x>`, maxDepth+1), want: "MD1:nested deeper"},

	// Read all the same.
	{old: ` stepSize="0.25"`, new: ` stepSize="0.25" interval="3"`, want: "MD1U:interval"},
	{old: `<x/></Tool></VendorAnnotations>`, new: `<x/></Tool></VendorAnnotations><Extra><deep>text</deep></Extra>`, want: "MD1U:Extra"},
	{old: `canSerializeFMUstate="true"`, new: `canSerializeFMUstate="true" providesDirectionalDerivatives="true"`, want: "MD1U:read as",
		check: func(d *ModelDescription) string { return differ(d.CoSimulation.ProvidesDirectionalDerivative, true) }},
	{old: `  <ModelVariables>`, new: `  <ModelVariables>text`, want: "MD1U:unexpected text"},
	{old: `<Category name="error"/><Category name="info"/>`, new: ``, want: "MD1L:at least one Category"},
	{old: `  <CoSimulation`, new: `  <DefaultExperiment/><CoSimulation`, want: "MD1L:CoSimulation is out of order|MD1:duplicate", at: "-"},
	{old: `encoding="UTF-8"`, new: `encoding="ISO-8859-1"`, want: "MD2:ISO-8859-1"},
	{old: `nominal="0.5"`, new: `nominal="NaN"`, want: "MD2N:NaN"},
	{old: `min="-10"`, new: `min="-1e999"`, want: "MD2N:too large"},

	// Header.
	{old: `fmiVersion="2.0"`, new: `fmiVersion="1.0"`, want: "FA4:FMI 1.0"},
	{old: `fmiVersion="2.0"`, new: `fmiVersion=" 2.0.3 "`, want: "FA4V:2.0.3",
		check: func(d *ModelDescription) string { return differ(d.FMIVersion, "2.0") }},
	{old: baseXML, new: `<fmiModelDescription fmiVersion="2.0" modelName="x" guid="1"/>`, want: "MD3:neither|MD1L:ModelVariables", at: "-"},
	{old: baseXML, new: `<fmiModelDescription fmiVersion="2.0" modelName="x" guid="1"><CoSimulation modelIdentifier="x"/><ModelVariables><ScalarVariable name="v" valueReference="0"><Real/></ScalarVariable></ModelVariables></fmiModelDescription>`, want: "MD1L:ModelStructure", at: "-"},
	{old: `modelIdentifier="base"`, new: `modelIdentifier="../../base"`, want: "MD4P:cannot name a file"},
	{old: `modelIdentifier="base"`, new: `modelIdentifier=""`, want: "MD4P:cannot name a file"},
	{old: `canGetAndSetFMUstate="true" canSerialize`, new: `canSerialize`, want: "MD41:canSerializeFMUstate",
		check: func(d *ModelDescription) string { return differ(d.CoSimulation.CanSerializeFMUState, false) }},
	{old: `stopTime="1"`, new: `stopTime="-1"`, want: "MD39:not after"},
	{old: `stepSize="0.25"`, new: `stepSize="1"`, want: "MD39:not shorter"},
	{old: `tolerance="1e-6"`, new: `tolerance="-1e-6"`, want: "MD39:negative",
		check: func(d *ModelDescription) string { return differ(d.DefaultExperiment.Tolerance == nil, true) }},
	{old: `stepSize="0.25"`, new: `stepSize="0"`, want: "MD40:not greater than 0",
		check: func(d *ModelDescription) string { return differ(d.DefaultExperiment.StepSize == nil, true) }},
	{old: `stepSize="0.25"`, new: `stepSize="0.3"`, want: "MD40:3.33333 steps of 0.3"},

	// Units and types.
	{old: `<Unit name="K">`, new: `<Unit name="m">`, want: "MD7:already defined in line 6"},
	{old: `<DisplayUnit name="km"`, new: `<DisplayUnit name="mm"`, want: "MD7:twice", at: "-"},
	{old: `<SimpleType name="Count">`, new: `<SimpleType name="Length">`, want: "MD7:already defined|MD11:Count", at: "-"},
	{old: `factor="1000"`, new: `factor="0"`, want: "MD8:factor is 0"},
	{old: `<BaseUnit K="1"/>`, new: `<BaseUnit K="1" factor="0.0"/>`, want: "MD8:factor is 0"},
	{old: `<Real unit="m" displayUnit="km"`, new: `<Real unit="ft"`, want: "MD9:ft"},
	{old: `<Real declaredType="Length"`, new: `<Real declaredType="Width"`, want: "MD11:Width"},
	{old: `<Real declaredType="Length"`, new: `<Real declaredType="Count"`, want: "MD11:its type"},
	{old: `<Enumeration declaredType="Gear"`, new: `<Enumeration`, want: "MD11:no declaredType"},
	{old: `<Item name="high"`, new: `<Item name="low"`, want: "MD13:low"},
	{old: `value="2"`, new: `value="1"`, want: "MD13:value 1"},
	{old: `<Item name="low" value="1"/><Item name="high" value="2"/>`, new: ``, want: "MD13:no items"},
	{old: `nominal="0.5"`, new: `nominal="-1"`, want: "MD15:-1", check: variableIs("u", func(v *ScalarVariable) bool { return v.Real.Nominal == nil })},
	{old: `nominal="1"/>`, new: `nominal="0"/>`, want: "MD15:nominal value 0", check: variableIs("p", func(v *ScalarVariable) bool { return v.Real.Nominal == nil })},
	{old: `declaredType="Length" start="1"`, new: `declaredType="Length" start="11"`, want: "MD16:outside", check: variableIs("u", func(v *ScalarVariable) bool { return v.StartReal == 11 })},
	{old: `declaredType="Count" start="3"`, new: `declaredType="Count" start="-1"`, want: "MD16:outside"},
	{old: `<Real start="2" min="0" max="5" nominal="1"/>`, new: `<Real min="1" max="5" nominal="1"/>`, want: "MD16Z:the parameter \"p\" has no start value, and 0 lies outside its bounds|MD21:the parameter",
		check: variableIs("p", func(v *ScalarVariable) bool { return !v.HasStart })},
	{old: `declaredType="Count" start="3"`, new: `declaredType="Count" min="1"`, want: "MD16Z:the input|MD21:the input"},

	// Variables.
	{old: `name="u" valueReference`, new: `name="n" valueReference`, want: "MD17:the first is in line 19", at: `name="n"`},
	{old: `causality="output" initial="calculated"`, new: `causality="output" variability="tunable"`, want: "MD19:taken as continuous",
		check: variableIs("y", func(v *ScalarVariable) bool {
			return v.Causality == Output && v.Variability == Continuous && v.Initial == Calculated
		})},
	{old: `causality="parameter" variability="tunable"`, new: `causality="parameter" variability="constant"`, want: "MD19:taken as fixed",
		check: variableIs("p", func(v *ScalarVariable) bool { return v.Variability == Fixed && v.Initial == Exact && v.HasStart })},
	{old: `name="u" valueReference="1" causality="input"`, new: `name="u" valueReference="1" causality="input" variability="fixed"`, want: "MD19:taken as continuous",
		check: variableIs("u", func(v *ScalarVariable) bool { return v.Causality == Input && v.Variability == Continuous })},
	{old: `causality="calculatedParameter" variability="fixed"`, new: `causality="calculatedParameter" variability="fixed" initial="exact"`, want: "MD20:taken as calculated",
		check: variableIs("half", func(v *ScalarVariable) bool { return v.Initial == Calculated })},
	{old: `name="u" valueReference="1" causality="input"`, new: `name="u" valueReference="1" causality="input" initial="exact"`, want: "MD20:has initial exact",
		check: variableIs("u", func(v *ScalarVariable) bool { return v.Initial == InitialNone })},
	{old: `declaredType="Length" start="1"`, new: `declaredType="Length"`, want: "MD21:the input", check: variableIs("u", func(v *ScalarVariable) bool { return !v.HasStart })},
	{old: `<Real start="2" min`, new: `<Real min`, want: "MD21:the parameter"},
	{old: `name="x" valueReference="2" initial="exact"><Real unit="m" displayUnit="km" start="0"`, new: `name="x" valueReference="2" initial="approx"><Real unit="m" displayUnit="km"`, want: "MD21:the local"},
	{old: `name="g_copy" valueReference="6" variability="constant"><Real start="9.81"/>`, new: `name="g_copy" valueReference="66" variability="constant"><Real/>`, want: "MD21:the local"},
	{old: `name="n" valueReference="1" causality="input" variability="discrete"`, new: `name="n" valueReference="1" causality="input"`, want: "MD23:continuous by default; taken as discrete",
		check: variableIs("n", func(v *ScalarVariable) bool { return v.Variability == Discrete })},
	{old: `causality="parameter" variability="fixed"`, new: `causality="parameter" variability="continuous"`, want: "MD23:is Enumeration and continuous; taken as fixed"},
	{old: `causality="independent"><Real/>`, new: `causality="independent"><Boolean/>`, want: "MD24:instead of Real", at: "-"},
	{old: `name="y_copy" valueReference="4"`, new: `name="y_copy" valueReference="44" causality="independent"`, want: "MD24:already is"},

	// Aliases.
	{old: `name="p" valueReference="7"`, new: `name="p" valueReference="6"`, want: "MD26:not constant", at: `name="g_copy"`,
		check: variableIs("p", func(v *ScalarVariable) bool { return v.AliasOf == 11 && v.HasStart })},
	{old: `name="p" valueReference="7"`, new: `name="p" valueReference="2"`, want: "MD26:both have a start", at: "-",
		check: variableIs("x", func(v *ScalarVariable) bool { return !v.HasStart })}, // the start of the parameter counts
	{old: `name="g_copy" valueReference="6" variability="constant"><Real start="9.81"/>`, new: `name="g_copy" valueReference="6" variability="constant"><Real start="9.80"/>`, want: "MD26:different values"},
	{old: `name="n" valueReference="1"`, new: `name="n" valueReference="2"`, want: "MD27:both be set|MD26:both have a start", at: "-"},
	{old: `name="p" valueReference="7"`, new: `name="p" valueReference="0"`, want: "MD27:independent", at: "-"},
	{old: `name="y_copy" valueReference="4"><Real unit="m"/>`, new: `name="y_copy" valueReference="4"><Real unit="K"/>`, want: "MD28:different units"},

	// Structure.
	{old: `derivative="5"`, new: `derivative="14"`, want: "MD29:1 to 13|MD31|MD32|MD37", at: "-",
		check: variableIs("der(x)", func(v *ScalarVariable) bool { return v.Derivative == 0 })},
	{old: `derivative="5"`, new: `derivative="6"`, want: "MD29:of itself|MD31|MD32|MD37", at: "-"},
	{old: `derivative="5"`, new: `derivative="3"`, want: "MD29:not a Real|MD31|MD32|MD37", at: "-"},
	{old: dependentXML, new: ``, want: "MD30:does not list|MD42", at: "-", check: outputsAre(unknownY, Unknown{Index: 9})},
	{old: dependentXML, new: dependentXML + dependentXML, want: "MD30:twice", check: outputsAre(unknownY, unknownOn)},
	{old: dependentXML, new: dependentXML + `<Unknown index="2"/>`, want: "MD30:not an output", check: outputsAre(unknownY, unknownOn)},
	{old: dependentXML, new: dependentXML + `<Unknown index="0"/>`, want: "MD30:1 to 13", check: outputsAre(unknownY, unknownOn)},
	{old: `<Unknown index="6" dependencies="2"/>`, new: `<Unknown index="6" dependencies="2"/><Unknown index="8"/>`, want: "MD31:not the derivative"},
	{old: `      <Unknown index="10"/>`, new: ``, want: "MD32:does not list", at: `<ModelStructure>`, check: initialsAre(Unknown{Index: 6}, initialY, initialOn, Unknown{Index: 10})},
	{old: `<Unknown index="10"/>`, new: `<Unknown index="10"/><Unknown index="2"/>`, want: "MD32:not an unknown", check: initialsAre(Unknown{Index: 6}, initialY, initialOn, Unknown{Index: 10})},
	{old: `<Unknown index="9" dependencies=""/>`, new: `<Unknown index="10"/><Unknown index="9" dependencies=""/>`, want: "MD32:out of order", check: initialsAre(Unknown{Index: 6}, initialY, initialOn, Unknown{Index: 10})},
	{old: `dependencies="2 5"`, new: `dependencies="0 2"`, want: "MD33:variable 0|MD42", at: "-", check: outputsAre(Unknown{Index: 7}, unknownOn)},
	{old: `dependencies="2 5"`, new: `dependencies="2 x"`, want: "MD33:not a list|MD42", at: "-", check: outputsAre(Unknown{Index: 7}, unknownOn)},
	{old: `dependenciesKind="constant dependent"`, new: `dependenciesKind="constant"`, want: "MD34:1 entries, dependencies has 2|MD42", at: "-", check: outputsAre(Unknown{Index: 7}, unknownOn)},
	{old: `dependenciesKind="constant dependent"`, new: `dependenciesKind="constant linear"`, want: "MD34:linear|MD42", at: "-"},
	{old: `<Unknown index="6" dependencies="2"/>`, new: `<Unknown index="6" dependenciesKind="dependent"/>`, want: "MD34:without dependencies"},
	{old: `dependencies="2 5" dependenciesKind="constant dependent"`, new: `dependencies="2 13"`, want: "MD37:not a known"},
	{old: `dependencies="2" dependenciesKind="constant"`, new: `dependencies="10"`, want: "MD37:not a known"},
	{old: dependentXML, new: `<Unknown index="9"/>`, want: "MD42:depend on all inputs", at: `name="on"`, check: outputsAre(unknownY, Unknown{Index: 9})},
}

func TestRules(t *testing.T) {
	byID := map[string]*diag.Rule{}
	for _, r := range Rules() {
		if byID[r.ID] != nil {
			t.Errorf("the id %s stands twice", r.ID)
		}
		byID[r.ID] = r
	}
	broken := map[string]bool{}
	for n, c := range slices.Concat(ruleCases, ruleCases3) {
		base := baseXML
		if n >= len(ruleCases) {
			base = base3XML
		}
		id, _, _ := strings.Cut(c.want, ":")
		t.Run(fmt.Sprintf("%d %s", n, id), func(t *testing.T) {
			at := c.at
			if at == "" {
				at = c.old
			}
			line := 0
			if at != "-" {
				line = lineIn(t, base, at)
			}
			lineIn(t, base, c.old)
			text := strings.Replace(base, c.old, c.new, 1)
			d, l, err := readText(text, false)
			if (d == nil) != (err != nil) {
				t.Fatalf("description %v and error %v", d != nil, err)
			}
			wants := strings.Split(c.want, "|")
			if c.want == "" {
				wants = nil
			}
			serious, raised := false, false
			for n, w := range wants {
				id, message, _ := strings.Cut(w, ":")
				r := byID[id]
				if r == nil {
					t.Fatalf("there is no rule %s", id)
				}
				broken[id] = true
				serious = serious || r.Level == diag.Error
				i := slices.IndexFunc(l.Findings, func(f diag.Finding) bool { return f.ID == id && strings.Contains(f.Message, message) })
				if i < 0 {
					t.Errorf("no finding of %s with %q in %v", id, message, l.Findings)
					continue
				}
				f := l.Findings[i]
				raised = raised || r.Level == diag.Error || r.Strict && !f.Inert
				level := r.Level
				if f.Inert {
					level = diag.Info
				}
				if f.Level != level || f.Remedy == "" || f.File != "x.xml" {
					t.Errorf("finding %+v", f)
				}
				if line > 0 && n == 0 && f.Line != line {
					t.Errorf("line %d, want %d: %s", f.Line, line, f)
				}
				if f.Path == "" {
					t.Errorf("no path: %v", f)
				}
			}
			for _, f := range l.Findings {
				if !slices.ContainsFunc(wants, func(w string) bool { return w == f.ID || strings.HasPrefix(w, f.ID+":") }) {
					t.Errorf("finding too many: %s", f)
				}
			}
			if (err != nil) != serious {
				t.Errorf("error %v", err)
			}
			if _, _, err := readText(text, true); (err != nil) != raised {
				t.Errorf("strict: error %v, want one: %v", err, raised)
			}
			if err == nil && c.check != nil {
				if bad := c.check(d); bad != "" {
					t.Error(bad)
				}
			}
			if err == nil {
				consistent(t, d)
			}
		})
	}
	for id, r := range byID {
		if !broken[id] {
			t.Errorf("%s is not tested", id)
		}
		if r.Doc == "" || r.Remedy == "" || r.Ref == "" {
			t.Errorf("%s lacks documentation", id)
		}
	}
}

// consistent checks the invariants of every description.
func consistent(t *testing.T, d *ModelDescription) {
	t.Helper()
	n := len(d.Variables)
	for i := range d.Variables {
		v := &d.Variables[i]
		if w, ok := d.Variable(v.Name); !ok || w != v {
			t.Fatalf("the variable %q is not found", v.Name)
		}
		switch {
		case !slices.Contains(v.initials(), v.Initial):
			t.Fatalf("%q: %v, %v, %v do not fit", v.Name, v.Causality, v.Variability, v.Initial)
		case v.Type != Real && v.Variability == Continuous && v.Causality != Independent:
			t.Fatalf("%q is %v and continuous", v.Name, v.Type)
		case v.HasStart && v.Initial == Calculated:
			t.Fatalf("%q is calculated and starts", v.Name)
		case v.Derivative < 0 || v.Derivative > n || v.AliasOf < 0 || v.AliasOf > i:
			t.Fatalf("%q: derivative of %d, alias of %d", v.Name, v.Derivative, v.AliasOf)
		}
	}
	for _, list := range [][]Unknown{d.Outputs, d.Derivatives, d.InitialUnknowns} {
		seen := map[int]bool{}
		for _, u := range list {
			if u.Index < 1 || u.Index > n || seen[u.Index] || u.Kinds != nil && len(u.Kinds) != len(u.Dependencies) {
				t.Fatalf("unknown %+v of %d variables", u, n)
			}
			seen[u.Index] = true
			if !u.Declared && u.Dependencies != nil || !strictlyAscending(u.Dependencies) {
				t.Fatalf("unknown %+v", u)
			}
			for _, k := range u.Dependencies {
				if k < 1 || k > n {
					t.Fatalf("unknown %+v of %d variables", u, n)
				}
			}
		}
	}
	if len(d.OutputVariables()) != len(d.Outputs) {
		t.Fatalf("%d outputs of %d", len(d.Outputs), len(d.OutputVariables()))
	}
}
