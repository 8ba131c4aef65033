package description

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// base3XML has every element of FMI 3.0, keeps every rule and can be changed to break each.
const base3XML = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0.2" modelName="base" instantiationToken="{3}" variableNamingConvention="structured">
  <ModelExchange modelIdentifier="base_me"/>
  <CoSimulation modelIdentifier="base" canGetAndSetFMUState="true" canSerializeFMUState="true" providesDirectionalDerivatives="true"
      providesAdjointDerivatives="true" providesPerElementDependencies="true" canHandleVariableCommunicationStepSize="true"
      maxOutputDerivativeOrder="2" recommendedIntermediateInputSmoothness="1" providesIntermediateUpdate="true"
      canReturnEarlyAfterIntermediateUpdate="true" mightReturnEarlyFromDoStep="true" hasEventMode="true"
      providesEvaluateDiscreteStates="true" fixedInternalStepSize="0.5"><Annotations><Annotation type="x"/></Annotations></CoSimulation>
  <UnitDefinitions>
    <Unit name="m"><BaseUnit m="1"/><DisplayUnit name="km" factor="0.001"><Annotations><Annotation type="x"/></Annotations></DisplayUnit><DisplayUnit name="1/m" inverse="true"/></Unit>
  </UnitDefinitions>
  <TypeDefinitions>
    <Float64Type name="Length" description="l" quantity="L" unit="m" displayUnit="km" min="-10" max="10" nominal="2"/>
    <Float32Type name="Small" max="0.1"/>
    <Int8Type name="Byte" min="-128" max="100"/>
    <EnumerationType name="Gear"><Item name="low" value="-1"/><Item name="high" value="3000000000"><Annotations><Annotation type="x"/></Annotations></Item></EnumerationType>
    <BinaryType name="Picture" mimeType="image/png" maxSize="9"/>
    <ClockType name="Period" intervalVariability="constant" supportsFraction="true" resolution="1000" intervalCounter="250" shiftCounter="125"/>
  </TypeDefinitions>
  <LogCategories><Category name="logEvents"/></LogCategories>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.25"><Annotations><Annotation type="x"/></Annotations></DefaultExperiment>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent"/>
    <UInt64 name="n" valueReference="1" causality="structuralParameter" start="2" min="0" max="4"/>
    <Float64 name="A" valueReference="3" causality="parameter" variability="tunable" start="1 2 3 4 5 6" unit="m" min="0">
      <Dimension valueReference="1"/><Dimension valueReference="2"/><Alias name="B" description="same"/>
    </Float64>
    <UInt64 name="three" valueReference="2" variability="constant" start="3"/>
    <Float64 name="u" valueReference="4" causality="input" initial="exact" declaredType="Length" start="1"><Dimension start="2"/></Float64>
    <Float64 name="x" valueReference="5" initial="exact" start="0 1" reinit="true"><Dimension start="2"/></Float64>
    <Float64 name="der(x)" valueReference="6" derivative="5"><Dimension start="2"/></Float64>
    <Float64 name="y" valueReference="7" causality="output" unit="m" intermediateUpdate="true"><Annotations><Annotation type="x"><z/></Annotation></Annotations>
      <Dimension start="2"/><Alias name="y_copy" displayUnit="km"/></Float64>
    <Int8 name="byte" valueReference="8" causality="input" declaredType="Byte" start="-128" canHandleMultipleSetPerTimeInstant="false"/>
    <UInt64 name="wide" valueReference="9" causality="parameter" start="9223372036854775807" max="18446744073709551615"/>
    <Enumeration name="gear" valueReference="10" causality="parameter" declaredType="Gear" start="3000000000"/>
    <String name="texts" valueReference="11" variability="constant"><Dimension start="2"/><Start value=" a b "/><Start value=""/><Alias name="words"/></String>
    <Binary name="blob" valueReference="12" causality="parameter" declaredType="Picture"><Start value="00fF41"/></Binary>
    <Float32 name="single" valueReference="13" causality="parameter" declaredType="Small" start="0.1"/>
    <Boolean name="on" valueReference="14" causality="output"/>
    <Clock name="tick" valueReference="15" causality="input" declaredType="Period" intervalVariability="constant" canBeDeactivated="true" priority="1"/>
    <Clock name="fire" valueReference="16" causality="output" intervalVariability="triggered" clocks="15"/>
    <Int32 name="count" valueReference="17" causality="output" clocks="15 16" previous="18"/>
    <Int32 name="was" valueReference="18" clocks="15"/>
    <Clock name="alarm" valueReference="4294967295" causality="input" intervalVariability="fixed" intervalDecimal="0.5" shiftDecimal="0.25"><Alias name="bell"/></Clock>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="7" dependencies="5 4" dependenciesKind="constant dependent"><Annotations><Annotation type="x"/></Annotations></Output>
    <Output valueReference="14" dependencies=""/>
    <Output valueReference="16" dependencies="15"/>
    <Output valueReference="17" dependencies="15 18"/>
    <ContinuousStateDerivative valueReference="6" dependencies="4"/>
    <ClockedState valueReference="17" dependencies="15"/>
    <InitialUnknown valueReference="14" dependencies=""/>
    <InitialUnknown valueReference="7" dependencies="3"/>
    <InitialUnknown valueReference="6"/>
    <EventIndicator valueReference="6"/>
  </ModelStructure>
  <Annotations><Annotation type="macrostep"><stateless/></Annotation></Annotations>
</fmiModelDescription>
`

func TestReadEverything3(t *testing.T) {
	got, l, err := readText(base3XML, true)
	must(t, err)
	if len(l.Findings) > 0 {
		t.Errorf("findings %v", l.Findings)
	}
	consistent(t, got)
	length := RealAttributes{Quantity: "L", Unit: "m", DisplayUnit: "km", Min: ptr(-10.), Max: ptr(10.), Nominal: ptr(2.)}
	bound := float64(float32(0.1))
	want := &ModelDescription{
		FMIVersion: "3.0", ModelName: "base", GUID: "{3}", VariableNamingConvention: "structured",
		ModelExchange: &ModelExchange{ModelIdentifier: "base_me", CompletedIntegratorStepNotNeeded: true},
		CoSimulation: &CoSimulation{ModelIdentifier: "base", CanGetAndSetFMUState: true, CanSerializeFMUState: true, ProvidesDirectionalDerivative: true,
			CanHandleVariableCommunicationStepSize: true, MaxOutputDerivativeOrder: 2, ProvidesIntermediateUpdate: true,
			CanReturnEarlyAfterIntermediateUpdate: true, MightReturnEarlyFromDoStep: true, HasEventMode: true, ProvidesEvaluateDiscreteStates: true,
			FixedInternalStepSize: ptr(0.5)},
		Units: []unit.Definition{{Name: "m", Base: &unit.Base{M: 1, Factor: 1}, Displays: []unit.Display{{Name: "km", Factor: 0.001}}}},
		Types: []SimpleType{
			{Name: "Length", Description: "l", Real: length},
			{Name: "Small", Storage: StoreFloat32, Real: RealAttributes{Max: &bound}},
			{Name: "Byte", Type: Integer, Storage: StoreInt8, Integer: IntegerAttributes{Min: ptr[int64](-128), Max: ptr[int64](100)}},
			{Name: "Gear", Type: Enumeration, Storage: StoreEnum, Items: []EnumerationItem{{"low", -1, ""}, {"high", 3000000000, ""}}},
			{Name: "Picture", Type: String, Storage: StoreBinary, MediaType: "image/png"},
			{Name: "Period", Type: Clock, Storage: StoreClock, clock: clockAttributes{"intervalVariability": 1, "supportsFraction": 1,
				"resolution": 1000, "intervalCounter": 250, "shiftCounter": 125}},
		},
		LogCategories:     []LogCategory{{"logEvents", ""}},
		DefaultExperiment: &DefaultExperiment{StartTime: ptr(0.), StopTime: ptr(1.), StepSize: ptr(0.25)},
		VendorAnnotations: []VendorAnnotation{{"macrostep", "<stateless/>"}},
		// 1 time, 2 n, 3–8 A, 9–14 B, 15 three, 16–17 u, 18–19 x, 20–21 der(x), 22–23 y, 24–25 y_copy, 26 byte, 27 wide, 28 gear,
		// 29–30 texts, 31–32 words, 33 blob, 34 single, 35 on, 36 tick, 37 fire, 38 count, 39 was, 40 alarm, 41 bell
		Outputs: []Unknown{
			{22, true, []int{16, 17, 18, 19}, []DependencyKind{Dependent, Dependent, ConstantFactor, ConstantFactor}},
			{23, true, []int{16, 17, 18, 19}, []DependencyKind{Dependent, Dependent, ConstantFactor, ConstantFactor}},
			{24, true, []int{16, 17, 18, 19}, []DependencyKind{Dependent, Dependent, ConstantFactor, ConstantFactor}},
			{25, true, []int{16, 17, 18, 19}, []DependencyKind{Dependent, Dependent, ConstantFactor, ConstantFactor}},
			{35, true, []int{}, nil}, {38, true, []int{36, 39}, nil}},
		Derivatives: []Unknown{{20, true, []int{16, 17}, nil}, {21, true, []int{16, 17}, nil}},
	}
	starts := []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	want.InitialUnknowns = []Unknown{{Index: 20}, {Index: 21}, {22, true, starts, nil}, {23, true, starts, nil}, {24, true, starts, nil},
		{25, true, starts, nil}, {35, true, []int{}, nil}}
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		field := g.Type().Field(i)
		if field.IsExported() && field.Name != "Variables" && !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s:\n got %+v\nwant %+v", field.Name, g.Field(i), w.Field(i))
		}
	}
	if &got.Outputs[0].Dependencies[0] != &got.Outputs[3].Dependencies[0] {
		t.Error("elements of an array do not share their dependencies")
	}
	if !got.Stateless() {
		t.Error("the annotation is not found")
	}
	if len(got.Variables) != 41 {
		t.Fatalf("%d variables", len(got.Variables))
	}
	for name, v := range map[string]ScalarVariable{
		"time":      {Causality: Independent, Line: 23},
		"n":         {ValueReference: 1, Causality: StructuralParameter, Variability: Fixed, Initial: Exact, Type: Integer, Storage: StoreUInt64, HasStart: true, StartInteger: 2, Integer: IntegerAttributes{Min: ptr[int64](0), Max: ptr[int64](4)}, Line: 24},
		"A[2,1]":    {ValueReference: 3<<32 | 3, Causality: Parameter, Variability: Tunable, Initial: Exact, HasStart: true, StartReal: 4, Real: RealAttributes{Unit: "m", Min: ptr(0.)}, Array: &Array{Name: "A", Sizes: []int{2, 3}, First: 2}, Line: 25},
		"B[2,1]":    {ValueReference: 3<<32 | 3, Description: "same", Causality: Parameter, Variability: Tunable, Initial: Exact, Real: RealAttributes{Unit: "m", Min: ptr(0.)}, AliasOf: 6, Array: &Array{Name: "B", Sizes: []int{2, 3}, First: 8}, Line: 25},
		"u[2]":      {ValueReference: 1<<32 | 4, Causality: Input, DeclaredType: "Length", Real: length, HasStart: true, StartReal: 1, CanHandleMultipleSetPerTimeInstant: true, Array: &Array{Name: "u", Sizes: []int{2}, First: 15}, Line: 29},
		"der(x)[2]": {ValueReference: 1<<32 | 6, Initial: Calculated, Derivative: 19, Array: &Array{Name: "der(x)", Sizes: []int{2}, First: 19}, Line: 31},
		"y_copy[1]": {ValueReference: 7, Causality: Output, Initial: Calculated, Real: RealAttributes{Unit: "m", DisplayUnit: "km"}, AliasOf: 22, Array: &Array{Name: "y_copy", Sizes: []int{2}, First: 23}, Annotations: []VendorAnnotation{{"x", "<z/>"}}, Line: 32},
		"byte":      {ValueReference: 8, Causality: Input, Variability: Discrete, Type: Integer, Storage: StoreInt8, DeclaredType: "Byte", HasStart: true, StartInteger: -128, Integer: IntegerAttributes{Min: ptr[int64](-128), Max: ptr[int64](100)}, Line: 34},
		"wide":      {ValueReference: 9, Causality: Parameter, Variability: Fixed, Initial: Exact, Type: Integer, Storage: StoreUInt64, HasStart: true, StartInteger: math.MaxInt64, Line: 35},
		"gear":      {ValueReference: 10, Causality: Parameter, Variability: Fixed, Initial: Exact, Type: Enumeration, Storage: StoreEnum, DeclaredType: "Gear", HasStart: true, StartInteger: 3000000000, Line: 36},
		"texts[1]":  {ValueReference: 11, Variability: Constant, Initial: Exact, Type: String, Storage: StoreText, HasStart: true, StartString: " a b ", Array: &Array{Name: "texts", Sizes: []int{2}, First: 28}, Line: 37},
		"words[1]":  {ValueReference: 11, Variability: Constant, Initial: Exact, Type: String, Storage: StoreText, HasStart: true, StartString: " a b ", AliasOf: 29, Array: &Array{Name: "words", Sizes: []int{2}, First: 30}, Line: 37},
		"blob":      {ValueReference: 12, Causality: Parameter, Variability: Fixed, Initial: Exact, Type: String, Storage: StoreBinary, DeclaredType: "Picture", MediaType: "image/png", HasStart: true, StartString: "\x00\xffA", Line: 38},
		"single":    {ValueReference: 13, Causality: Parameter, Variability: Fixed, Initial: Exact, Storage: StoreFloat32, DeclaredType: "Small", Real: RealAttributes{Max: &bound}, HasStart: true, StartReal: bound, Line: 39},
		"on":        {ValueReference: 14, Causality: Output, Variability: Discrete, Initial: Calculated, Type: Boolean, Storage: StoreBool, Line: 40},
		"count":     {ValueReference: 17, Causality: Output, Variability: Discrete, Initial: Calculated, Type: Integer, Storage: StoreInt32, Clocks: []uint32{15, 16}, Line: 43},
	} {
		v.Name, v.three = name, true
		if g, ok := got.Variable(name); !ok || !reflect.DeepEqual(*g, v) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *g, v)
		}
	}
	for name, want := range map[string]ClockInfo{
		"tick": {Causality: Input, Interval: "constant", IntervalDecimal: 0.25, ShiftDecimal: 0.125, SupportsFraction: true, CanBeDeactivated: true},
		"fire": {Causality: Output, Interval: "triggered"},
		"bell": {Causality: Input, Interval: "fixed", IntervalDecimal: 0.5, ShiftDecimal: 0.25},
	} {
		v, _ := got.Variable(name)
		c := *v.Clock
		c.given = nil
		if !reflect.DeepEqual(c, want) || v.Type != Clock || v.Causality != Local || v.Storage != StoreClock || v.Variability != Discrete || v.Initial != InitialNone {
			t.Errorf("%s: %+v, %+v", name, c, v)
		}
	}
}

func TestTypeNames(t *testing.T) {
	for text, names := range map[string]map[string]string{
		baseXML:  {"x": "Real", "n": "Integer", "gear": "Enumeration", "on": "Boolean"},
		base3XML: {"x[1]": "Float64", "single": "Float32", "byte": "Int8", "gear": "Enumeration", "blob": "Binary", "words[2]": "String", "tick": "Clock"},
	} {
		d, _, err := readText(text, false)
		must(t, err)
		for name, want := range names {
			if v, ok := d.Variable(name); !ok || v.TypeName() != want {
				t.Errorf("%s is %s, not %s", name, v.TypeName(), want)
			}
		}
	}
	for s := range storages {
		if got, ok := storageOf(Storage(s).String()); !ok || got != Storage(s) {
			t.Errorf("%d: %s", s, Storage(s))
		}
	}
	if s := Storage(len(storages)).String(); s != "15?" {
		t.Error(s)
	}
}

// The elements of an array have numbers in row-major order, their names and references follow.
func TestArrays(t *testing.T) {
	d, _, err := readText(strings.Replace(base3XML, `<Float64 name="x"`,
		`<Float32 name="T" valueReference="99" causality="parameter" start="`+strings.Repeat(" 7\n", 24)+`"><Dimension start="2"/><Dimension start="3"/><Dimension start="4"/></Float32><Float64 name="x"`, 1), true)
	must(t, err)
	v, ok := d.Variable("T[2,1,3]")
	if !ok || v.ValueReference.Number() != 99 || v.ValueReference.Element() != 14 || v.Array.Len() != 24 || &d.Variables[v.Array.First+14] != v || v.StartReal != 7 {
		t.Errorf("%+v", v)
	}
}

// Versions 3.0 and 3.0.x are one; the option refuses them as any other.
func TestVersions3(t *testing.T) {
	for version, good := range map[string]bool{"3.0": true, "3.0.1": true, "3.0.12": true, "3.1": false, "3.0-rc.1": false, "3.0.": false, "3": false} {
		text := strings.Replace(base3XML, "3.0.2", version, 1)
		d, l, err := readText(text, true)
		if good && (err != nil || d.FMIVersion != "3.0" || len(l.Findings) > 0) || !good && !diag.Has(err, "FA4") {
			t.Errorf("%s: %v, %v", version, err, l.Findings)
		}
	}
}

// A size that the options give changes arrays and voids their start values; one that is wrong is named.
func TestStructure(t *testing.T) {
	read := func(text string, sizes map[string]uint64) (*ModelDescription, *diag.List, error) {
		l := &diag.List{Strict: true}
		d, err := ReadWith(strings.NewReader(text), "x.xml", l, ReadOptions{Structure: sizes})
		return d, l, err
	}
	d, l, err := read(base3XML, map[string]uint64{"n": 3})
	must(t, err)
	consistent(t, d)
	n, _ := d.Variable("n")
	a, ok := d.Variable("A[3,3]")
	if _, more := d.Variable("A[4,1]"); !ok || more || a.HasStart || a.Initial != Exact || a.Array.Len() != 9 || n.StartInteger != 3 || len(l.Findings) > 0 {
		t.Errorf("%+v, %+v, %v", a, n, l.Findings)
	}
	d, _, err = read(base3XML, map[string]uint64{"n": 2})
	must(t, err)
	if a, _ := d.Variable("A[2,3]"); a.StartReal != 6 {
		t.Errorf("%+v", a)
	}
	turned := strings.Replace(base3XML, `<Dimension valueReference="1"/><Dimension valueReference="2"/>`, `<Dimension valueReference="1"/><Dimension valueReference="20"/>`, 1)
	turned = strings.Replace(turned, `<UInt64 name="three" valueReference="2" variability="constant"`, `<UInt64 name="three" valueReference="20" causality="structuralParameter"`, 1)
	d, _, err = read(turned, map[string]uint64{"n": 3, "three": 2})
	must(t, err)
	if a, _ := d.Variable("A[3,2]"); a.HasStart {
		t.Errorf("%+v", a)
	}
	for _, c := range []struct {
		text  string
		sizes map[string]uint64
		want  string
	}{
		{base3XML, map[string]uint64{"n": 5}, `5 is given for "n", which is from 0 to 4`},
		{base3XML, map[string]uint64{"n": 1 << 63}, `9223372036854775808 is given for "n", which is from 0 to 4`},
		{base3XML, map[string]uint64{"n": 0}, `dimension 1 of "A" is 0, the value of "n"`},
		{base3XML, map[string]uint64{"three": 3}, `a size is given for "three", which is no structural parameter`},
		{base3XML, map[string]uint64{"m": 3}, `a size is given for "m", which is no structural parameter`},
		{baseXML, map[string]uint64{"n": 3}, `a size is given for "n", which is no structural parameter`},
	} {
		if _, _, err := read(c.text, c.sizes); !diag.Has(err, "MD44") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.sizes, err, c.want)
		}
	}
}

// The number of dependencies is bounded, whatever a small document asks for; beyond it they count as not declared.
func TestDependencies3(t *testing.T) {
	text := strings.NewReplacer(`start="1"><Dimension start="2"/>`, `start="1"><Dimension start="65536"/>`,
		`valueReference="14" dependencies=""/>
    <Output valueReference="16"`, `valueReference="14" dependencies="`+strings.Repeat(" 4", 256)+`"/>
    <Output valueReference="16"`).Replace(base3XML)
	d, l, err := readText(text, false)
	must(t, err)
	if len(d.Variables) != 41-2+65536 || len(d.Outputs[0].Dependencies) != 65536+2 || d.Outputs[4].Declared {
		t.Errorf("%d variables, %d dependencies, %v", len(d.Variables), len(d.Outputs[0].Dependencies), d.Outputs[4].Declared)
	}
	if f := l.Findings; !slices.ContainsFunc(f, func(f diag.Finding) bool {
		return f.ID == "MD33" && strings.Contains(f.Message, `"on" depends on more elements than can be listed: 16777216`)
	}) {
		t.Errorf("%v", f)
	}
}

var ruleCases3 = []ruleCase{
	// What differs in the schema.
	{old: `instantiationToken="{3}"`, new: `guid="{3}"`, want: "MD1:instantiationToken is missing|MD1U:guid", at: "modelName"},
	{old: `fmiVersion="3.0.2"`, new: `fmiVersion=" 3.0.2"`, want: "FA4V:fmiVersion is"},
	{old: `fmiVersion="3.0.2"`, new: `fmiVersion="3.1"`, want: "FA4:is an FMI 3.1 FMU; macrostep reads FMI 2.0 and 3.0"},
	{old: `canGetAndSetFMUState="true"`, new: `canGetAndSetFMUstate="true"`, want: "MD41:but canGetAndSetFMUState is not|MD1U:canGetAndSetFMUstate"},
	{old: `fixedInternalStepSize="0.5"`, new: `fixedInternalStepSize="0"`, want: "MD40:internal step size 0", at: "<CoSimulation",
		check: func(d *ModelDescription) string { return differ(d.CoSimulation.FixedInternalStepSize == nil, true) }},
	{old: `<Float32Type name="Small" max="0.1"/>`, new: `<Float16Type name="Small" max="0.1"/>`, want: "MD1U:Float16Type|MD11:not defined", at: "Float32Type"},
	{old: ` name="Byte" min`, new: ` min`, want: "MD1:name is missing"},
	{old: `<Boolean name="on"`, new: `<Bool name="on"`, want: "MD1U:Bool|MD30|MD32"},
	{old: `name="on" valueReference="14"`, new: `name="on"`, want: "MD1:valueReference is missing"},
	{old: `causality="structuralParameter"`, new: `causality="structural"`, want: "MD1:structuralParameter"},
	{old: `value="00fF41"`, new: `value="00fF4"`, want: "MD1:hexadecimal"},
	{old: `clocks="15 16"`, new: `clocks="15 -1"`, want: "MD1:list of numbers"},
	{old: `intervalCounter="250"`, new: `intervalCounter="x"`, want: "MD1:not a number"},
	{old: `intervalCounter="250"`, new: `intervalCounter="-1"`, want: `MD45:the constant Clock "tick" has no interval`, at: `name="tick"`},
	{old: `start="-128"`, new: `start="x"`, want: "MD1:not an integer"},
	{old: `<Start value=" a b "/><Start value=""/>`, new: `<Start value=" a b "/><Start/><Finish/>`, want: "MD1U:Finish"},
	{old: `<Boolean name="on" valueReference="14"`, new: `<Boolean name="on" unit="m" valueReference="14"`, want: "MD1U:unit"},
	{old: `<Binary name="blob" valueReference="12"`, new: `<Binary name="blob" start="00" valueReference="12"`, want: "MD1U:start"},
	{old: `<String name="texts" valueReference="11" variability="constant"><Dimension start="2"/><Start value=" a b "/><Start value=""/>`,
		new: `<String name="texts" valueReference="11" variability="constant" start=" a b "><Dimension start="2"/>`, want: "MD1U:read as the element Start",
		check: variableIs("texts[2]", func(v *ScalarVariable) bool { return v.StartString == " a b " })},
	{old: `    <ContinuousStateDerivative valueReference="6" dependencies="4"/>`, new: `<InitialUnknown valueReference="6"/><ContinuousStateDerivative valueReference="6" dependencies="4"/>`,
		want: "MD1L:out of order|MD32:twice"},
	{old: `<EventIndicator valueReference="6"/>`, new: `<Indicator/>`, want: "MD1U:Indicator"},
	{old: `dependencies="15 18"`, new: `dependencies="15 x"`, want: "MD33:list of numbers|MD42"},
	{old: `  <Annotations><Annotation type="macrostep">`, new: `  <Annotations><Annotation name="macrostep">`, want: "MD1:type is missing|MD1U:name"},
	{old: base3XML, new: `<fmiModelDescription fmiVersion="3.0" modelName="x" instantiationToken="1"><ScheduledExecution modelIdentifier="x"/><ModelVariables><Float64 name="x" valueReference="0"/></ModelVariables><ModelStructure/></fmiModelDescription>`,
		want: "MD3:Scheduled Execution only: it activates model partitions by clocks, which macrostep does not schedule", at: "-"},
	{old: base3XML, new: `<fmiModelDescription fmiVersion="3.0" modelName="x" instantiationToken="1"><ModelVariables/><ModelStructure/></fmiModelDescription>`,
		want: "MD3:neither|MD1L:at least one variable", at: "-"},

	// Widths.
	{old: `start="-128"`, new: `start="300"`, want: `MD43:start of "byte" is 300, outside of Int8 (-128 to 127)`},
	{old: `min="-128" max="100"`, new: `min="-129" max="100"`, want: `MD43:min of "Byte" is -129, outside of Int8 (-128 to 127)`},
	{old: `start="9223372036854775807"`, new: `start="9223372036854775808"`, want: `MD43:start of "wide" is 9223372036854775808, outside of UInt64 (0 to 9223372036854775807); macrostep represents integers as Int64`},
	{old: `max="18446744073709551615"`, new: `max="18446744073709551616"`, want: `MD43:max of "wide"`},
	{old: `max="18446744073709551615"`, new: `min="-1"`, want: `MD43:min of "wide" is -1`},
	{old: `value="3000000000"`, new: `value="9223372036854775808"`, want: `MD43:value of "high" is 9223372036854775808, outside of Enumeration`},
	{old: `start="0.1"`, new: `start="1e39"`, want: `MD43:start of "single" is 1e39, outside of Float32`},
	{old: `start="1 2 3 4 5 6"`, new: `start="1 2 3 NaN 5 6"`, want: `MD2N:NaN`},

	// Arrays and references.
	{old: `start="1 2 3 4 5 6"`, new: `start="1 2 3 4 5"`, want: `MD44:"A" has 5 start values for 6 elements`},
	{old: `<Start value=" a b "/><Start value=""/>`, new: `<Start value=""/><Start value=""/><Start value=""/>`, want: `MD44:"texts" has 3 start values for 2 elements`},
	{old: `start="-128"`, new: `start="1 2"`, want: `MD44:"byte" has 2 start values for 1 element`},
	{old: `start="-128"`, new: `start=""`, want: `MD44:"byte" has 0 start values for 1 element`},
	{old: `<Dimension valueReference="1"/>`, new: `<Dimension valueReference="77"/>`, want: `MD44:dimension 1 of "A" is in the reference 77, which no variable has`, at: `name="A"`},
	{old: `<Dimension valueReference="1"/>`, new: `<Dimension valueReference="9"/>`, want: `MD44:dimension 1 of "A" is in "wide", which is not a UInt64`, at: `name="A"`},
	{old: `<Dimension valueReference="1"/>`, new: `<Dimension valueReference="4"/>`, want: `MD44:is in "u", which is not a UInt64`, at: `name="A"`},
	{old: `<UInt64 name="n"`, new: `<UInt32 name="n"`, want: `MD44:is in "n", which is not a UInt64`, at: `name="A"`},
	{old: `start="2" min="0"`, new: `min="0"`, want: `MD44:is in "n", which is not a UInt64 with a start value`, at: `name="A"`},
	{old: `start="2" min="0"`, new: `start="0" min="0"`, want: `MD44:dimension 1 of "A" is 0, the value of "n"`, at: `name="A"`},
	{old: `start="2" min="0" max="4"/>`, new: `start="2"><Dimension start="1"/></UInt64>`, want: `MD44:the structural parameter "n" is an array|MD44:is in "n", which is not`},
	{old: `start="1"><Dimension start="2"/>`, new: `start="1"><Dimension start="0"/>`, want: `MD44:a dimension of "u" is "0", not a size`},
	{old: `start="1"><Dimension start="2"/>`, new: `start="1"><Dimension start="-2"/>`, want: `MD44:a dimension of "u" is "-2", not a size`},
	{old: `start="1"><Dimension start="2"/>`, new: `start="1"><Dimension/>`, want: `MD44:a dimension of "u" needs either`},
	{old: `start="1"><Dimension start="2"/>`, new: `start="1"><Dimension start="2" valueReference="1"/>`, want: `MD44:a dimension of "u" needs either`},
	{old: `start="1"><Dimension start="2"/>`, new: `start="1"><Dimension start="1048577"/>`, want: `MD44:with "u" the arrays of the FMU have more than 1048576 elements`},
	{old: `start="1"><Dimension start="2"/>`, new: `start="1"><Dimension start="1048576"/><Dimension start="1048576"/><Dimension start="1048576"/>`, want: `MD44:with "u"`},
	{old: `start="1"><Dimension start="2"/>`, new: `start="1"><Dimension start="524288"/><Alias name="U"/>`, want: `MD44:with "u"`},
	{old: `causality="output"/>`, new: `causality="output"><Alias name="u[1]"/></Boolean>`, want: `MD17:duplicate variable "u[1]"; the first is in line 29`},
	{old: `name="wide" valueReference="9"`, new: `name="wide" valueReference="8"`, want: `MD17:"wide" has the value reference 8, as "byte" in line 34`},
	{old: `<Alias name="words"/>`, new: `<Alias name="words" displayUnit="m"/>`, want: "MD1U:displayUnit"},
	{old: `declaredType="Small"`, new: `declaredType="Length"`, want: `MD11:"single" is Float32, its type "Length" is Float64`},
	{old: `derivative="5"`, new: `derivative="77"`, want: "MD29:the derivative of the reference 77, which no variable has|MD31|MD32|MD37", at: "-"},
	{old: `derivative="5"`, new: `derivative="3"`, want: `MD29:"der(x)" has 2 elements, but the reference 3, whose derivative it is, has 6|MD31|MD32|MD37`, at: "-"},
	{old: `<Output valueReference="14" dependencies=""/>`, new: ``, want: "MD30:does not list|MD42", at: "-"},
	{old: `<Output valueReference="14" dependencies=""/>`, new: `<Output valueReference="14" dependencies=""/><Output valueReference="77"/>`, want: "MD30:lists the reference 77, which no variable has"},
	{old: `<Output valueReference="14" dependencies=""/>`, new: `<Output valueReference="14" dependencies=""/><Output valueReference="7"/>`, want: `MD30:lists "y[1]" twice`},
	{old: `dependencies="15 18"`, new: `dependencies="15 77"`, want: `MD33:"count" depends on the reference 77, which no variable has|MD42`},
	{old: `dependencies="15 18"`, new: `dependencies="15 14"`, want: ""},
	{old: `dependencies="15 18"`, new: `dependencies="15 6"`, want: `MD37:depends on "der(x)[1]", which is not a known`},
	{old: `valueReference="14" causality="output"`, new: `valueReference="14" causality="output" variability="continuous"`, want: "MD23:is Boolean and continuous; taken as discrete"},
	{old: `name="n" valueReference="1" causality="structuralParameter"`, new: `name="n" valueReference="1" causality="structuralParameter" variability="discrete"`, want: "MD19:taken as fixed"},
	{old: `initial="exact" declaredType="Length"`, new: `initial="approx" declaredType="Length"`, want: "MD20:has initial approx",
		check: variableIs("u[1]", func(v *ScalarVariable) bool { return v.Initial == InitialNone })},
	{old: `causality="input" declaredType="Byte" start="-128"`, new: `causality="input" declaredType="Byte"`, want: "MD21:the input"},

	// Clocks.
	{old: `clocks="15 16"`, new: `clocks="14 16"`, want: `MD45:"count" lists the Clock with the reference 14, which no Clock has`,
		check: variableIs("count", func(v *ScalarVariable) bool { return reflect.DeepEqual(v.Clocks, []uint32{16}) })},
	{old: `hasEventMode="true"`, new: ``, want: "MD45:but the FMU has no event mode", at: `name="tick"`},
	{old: `causality="input" intervalVariability="fixed"`, new: `causality="parameter" intervalVariability="fixed"`, want: "MD45:taken as discrete, and local",
		check: variableIs("bell", func(v *ScalarVariable) bool { return v.Causality == Local && v.Clock.Interval == "triggered" })},
	{old: `causality="output" intervalVariability="triggered"`, new: `causality="output" intervalVariability="changing"`, want: `MD45:the output Clock "fire" has the intervalVariability "changing"; taken as triggered`},
	{old: `causality="output" intervalVariability="triggered"`, new: `causality="output" intervalVariability="sometimes"`, want: "MD1:one of constant, fixed"},
	{old: `resolution="1000" `, new: ``, want: `MD45:the constant Clock "tick" has no interval greater than 0`, at: `name="tick"`},
	{old: `intervalDecimal="0.5"`, new: `intervalDecimal="-0.5"`, want: `MD45:the fixed Clock "alarm" has no interval`,
		check: variableIs("alarm", func(v *ScalarVariable) bool { return v.Clock.IntervalDecimal == 0 })},
	{old: `shiftDecimal="0.25"`, new: `shiftDecimal="-0.25"`, want: `MD45:the Clock "alarm" has the shift -0.25`},
	{old: `intervalVariability="fixed"`, new: `intervalVariability="countdown"`, want: `MD45:the countdown Clock "alarm" has an interval or shift, which is ignored`},
}

func FuzzRead3(f *testing.F) {
	f.Add([]byte(base3XML), uint64(0))
	for _, c := range ruleCases3 {
		f.Add([]byte(strings.Replace(base3XML, c.old, c.new, 1)), uint64(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint64) {
		l := &diag.List{}
		o := ReadOptions{}
		if size > 0 {
			o.Structure = map[string]uint64{"n": size}
		}
		d, err := ReadWith(strings.NewReader(string(data)), "x.xml", l, o)
		sound(t, d, l, err)
	})
}
