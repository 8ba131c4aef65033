package description

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding/unicode"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// fullXML has every element and attribute of the schema, none at its default.
const fullXML = `<?xml version="1.0" encoding="UTF-8"?>
<!-- comment --><!DOCTYPE fmiModelDescription>
<fmiModelDescription xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="x.xsd"
    fmiVersion="2.0" modelName="m &lt;1&gt;" guid="{g}" description="d" author="a" version="v" copyright="c" license="l"
    generationTool="t" generationDateAndTime="2026-01-02T03:04:05Z" variableNamingConvention="structured" numberOfEventIndicators="7">
  <ModelExchange modelIdentifier="me" needsExecutionTool="true" completedIntegratorStepNotNeeded="1"
      canBeInstantiatedOnlyOncePerProcess="true" canNotUseMemoryManagementFunctions="true" canGetAndSetFMUstate="true"
      canSerializeFMUstate="true" providesDirectionalDerivative="true"><SourceFiles><File name="me.c"/></SourceFiles></ModelExchange>
  <CoSimulation modelIdentifier="cs" needsExecutionTool="true" canHandleVariableCommunicationStepSize="true"
      canInterpolateInputs="true" maxOutputDerivativeOrder="3" canRunAsynchronuously="true"
      canBeInstantiatedOnlyOncePerProcess="true" canNotUseMemoryManagementFunctions="true" canGetAndSetFMUstate="true"
      canSerializeFMUstate="true" providesDirectionalDerivative="true"><SourceFiles><File name="a.c"/><File name="b.c"/></SourceFiles></CoSimulation>
  <UnitDefinitions>
    <Unit name="U"><BaseUnit kg="1" m="2" s="-3" A="4" K="5" mol="6" cd="7" rad="8" factor="9.5" offset="-10"/><DisplayUnit name="D" factor="11" offset="12"/></Unit>
    <Unit name="unknown"/>
    <Unit name="number"><BaseUnit/></Unit>
  </UnitDefinitions>
  <TypeDefinitions>
    <SimpleType name="TR" description="real"><Real quantity="Q" unit="U" displayUnit="D" relativeQuantity="true" min="-1" max="1" nominal="0.5" unbounded="true"/></SimpleType>
    <SimpleType name="TI"><Integer quantity="N" min="-2147483648" max="2147483647"/></SimpleType>
    <SimpleType name="TB"><Boolean/></SimpleType>
    <SimpleType name="TS"><String/></SimpleType>
    <SimpleType name="TE"><Enumeration quantity="E"><Item name="one" value="-1" description="minus one"/><Item name="two" value="5"/></Enumeration></SimpleType>
  </TypeDefinitions>
  <LogCategories><Category name="events" description="what happens"/></LogCategories>
  <DefaultExperiment startTime="1" stopTime="2" tolerance="3e-3" stepSize="0.25"/>
  <VendorAnnotations><Tool name="w"><a:x xmlns:a="urn:a" b="&amp;">é<!-- kept --></a:x></Tool><Tool name="empty"/></VendorAnnotations>
  <ModelVariables>
    <ScalarVariable name="s" valueReference="0" description="state" initial="exact" canHandleMultipleSetPerTimeInstant="false">
      <Real declaredType="TR" start="0.25" reinit="true"/>
      <Annotations><Tool name="w"><y/></Tool></Annotations>
    </ScalarVariable>
    <ScalarVariable name="der(s)" valueReference="4294967295" causality="output" variability="continuous" initial="approx"><Real derivative="1" start="-1e-3" unit="U" relativeQuantity="0" nominal="2"/></ScalarVariable>
    <ScalarVariable name="i" valueReference="1" causality="parameter" variability="tunable"><Integer declaredType="TI" start="-5" min="-6" quantity="own"/></ScalarVariable>
    <ScalarVariable name="b" valueReference="2" causality="input" variability="discrete"><Boolean declaredType="TB" start="1"/></ScalarVariable>
    <ScalarVariable name="t" valueReference="3" variability="constant"><String declaredType="TS" start=" &quot;text&quot; "/></ScalarVariable>
    <ScalarVariable name="e" valueReference="1" causality="local" variability="discrete" initial="calculated"><Enumeration declaredType="TE" quantity="F" min="-1" max="5"/></ScalarVariable>
    <ScalarVariable name="k" valueReference="9" causality="calculatedParameter" variability="fixed"><Real/></ScalarVariable>
    <ScalarVariable name="time" valueReference="10" causality="independent"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="2" dependencies=" 1
       4 8 " dependenciesKind="fixed dependent tunable"/></Outputs>
    <Derivatives><Unknown index="2" dependencies="1" dependenciesKind="discrete"/></Derivatives>
    <InitialUnknowns><Unknown index="2" dependencies="" dependenciesKind=""/><Unknown index="7" dependencies="1" dependenciesKind="constant"/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>`

func ptr[T any](v T) *T { return &v }

func TestReadEverything(t *testing.T) {
	got, l, err := readText(fullXML, false)
	must(t, err)
	if len(l.Findings) > 0 {
		t.Errorf("findings %v", l.Findings)
	}
	tr := RealAttributes{Quantity: "Q", Unit: "U", DisplayUnit: "D", RelativeQuantity: true, Unbounded: true, Min: ptr(-1.), Max: ptr(1.), Nominal: ptr(0.5)}
	want := &ModelDescription{
		FMIVersion: "2.0", ModelName: "m <1>", GUID: "{g}", Description: "d", Author: "a", Version: "v", Copyright: "c", License: "l",
		GenerationTool: "t", GenerationDateAndTime: "2026-01-02T03:04:05Z", VariableNamingConvention: "structured", NumberOfEventIndicators: 7,
		ModelExchange: &ModelExchange{ModelIdentifier: "me", NeedsExecutionTool: true, CompletedIntegratorStepNotNeeded: true,
			CanBeInstantiatedOnlyOncePerProcess: true, CanNotUseMemoryManagementFunctions: true, CanGetAndSetFMUState: true, CanSerializeFMUState: true,
			ProvidesDirectionalDerivative: true, SourceFiles: []string{"me.c"}},
		CoSimulation: &CoSimulation{ModelIdentifier: "cs", NeedsExecutionTool: true, CanHandleVariableCommunicationStepSize: true, CanInterpolateInputs: true,
			MaxOutputDerivativeOrder: 3, CanRunAsynchronously: true, CanBeInstantiatedOnlyOncePerProcess: true, CanNotUseMemoryManagementFunctions: true,
			CanGetAndSetFMUState: true, CanSerializeFMUState: true, ProvidesDirectionalDerivative: true, SourceFiles: []string{"a.c", "b.c"}},
		Units: []unit.Definition{
			{Name: "U", Base: &unit.Base{Kg: 1, M: 2, S: -3, A: 4, K: 5, Mol: 6, Cd: 7, Rad: 8, Factor: 9.5, Offset: -10}, Displays: []unit.Display{{Name: "D", Factor: 11, Offset: 12}}},
			{Name: "unknown"},
			{Name: "number", Base: &unit.One},
		},
		Types: []SimpleType{
			{Name: "TR", Description: "real", Type: Real, Real: tr},
			{Name: "TI", Type: Integer, Storage: StoreInt32, Integer: IntegerAttributes{Quantity: "N", Min: ptr[int64](math.MinInt32), Max: ptr[int64](math.MaxInt32)}},
			{Name: "TB", Type: Boolean, Storage: StoreBool},
			{Name: "TS", Type: String, Storage: StoreText},
			{Name: "TE", Type: Enumeration, Storage: StoreInt32, Integer: IntegerAttributes{Quantity: "E"}, Items: []EnumerationItem{{"one", -1, "minus one"}, {"two", 5, ""}}},
		},
		LogCategories:     []LogCategory{{"events", "what happens"}},
		DefaultExperiment: &DefaultExperiment{ptr(1.), ptr(2.), ptr(3e-3), ptr(0.25)},
		VendorAnnotations: []VendorAnnotation{{"w", `<a:x xmlns:a="urn:a" b="&amp;">é<!-- kept --></a:x>`}, {"empty", ""}},
		Variables: []ScalarVariable{
			{Name: "s", Description: "state", Initial: Exact, DeclaredType: "TR", Reinit: true, Real: tr, HasStart: true, StartReal: 0.25, Annotations: []VendorAnnotation{{"w", "<y/>"}}, Line: 29},
			{Name: "der(s)", ValueReference: math.MaxUint32, Causality: Output, Initial: Approx, Derivative: 1, Real: RealAttributes{Unit: "U", Nominal: ptr(2.)}, HasStart: true, StartReal: -1e-3, Line: 33},
			{Name: "i", ValueReference: 1, Causality: Parameter, Variability: Tunable, Initial: Exact, Type: Integer, Storage: StoreInt32, DeclaredType: "TI", Integer: IntegerAttributes{Quantity: "own", Min: ptr[int64](-6), Max: ptr[int64](math.MaxInt32)}, HasStart: true, StartInteger: -5, Line: 34},
			{Name: "b", ValueReference: 2, Causality: Input, Variability: Discrete, Type: Boolean, Storage: StoreBool, DeclaredType: "TB", HasStart: true, StartBoolean: true, Line: 35},
			{Name: "t", ValueReference: 3, Variability: Constant, Initial: Exact, Type: String, Storage: StoreText, DeclaredType: "TS", HasStart: true, StartString: ` "text" `, Line: 36},
			{Name: "e", ValueReference: 1, Variability: Discrete, Initial: Calculated, Type: Enumeration, Storage: StoreInt32, DeclaredType: "TE", Integer: IntegerAttributes{Quantity: "F", Min: ptr[int64](-1), Max: ptr[int64](5)}, AliasOf: 3, Line: 37},
			{Name: "k", ValueReference: 9, Causality: CalculatedParameter, Variability: Fixed, Initial: Calculated, Line: 38},
			{Name: "time", ValueReference: 10, Causality: Independent, Line: 39},
		},
		Outputs:         []Unknown{{Index: 2, Declared: true, Dependencies: []int{1, 4, 8}, Kinds: []DependencyKind{FixedFactor, Dependent, TunableFactor}}},
		Derivatives:     []Unknown{{Index: 2, Declared: true, Dependencies: []int{1}, Kinds: []DependencyKind{DiscreteFactor}}},
		InitialUnknowns: []Unknown{{Index: 2, Declared: true, Dependencies: []int{}}, {Index: 7, Declared: true, Dependencies: []int{1}, Kinds: []DependencyKind{ConstantFactor}}},
	}
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		if field := g.Type().Field(i); field.IsExported() && !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s:\n got %+v\nwant %+v", field.Name, g.Field(i), w.Field(i))
		}
	}
}

func TestDefaults(t *testing.T) {
	d, l, err := readText(`<fmiModelDescription fmiVersion="2.0" modelName="" guid="">
		<CoSimulation modelIdentifier="x"/><ModelVariables><ScalarVariable name="v" valueReference="0"><Real/></ScalarVariable></ModelVariables><ModelStructure/></fmiModelDescription>`, true)
	if err != nil || len(l.Findings) > 0 {
		t.Fatal(err, l.Findings)
	}
	if d.VariableNamingConvention != "flat" || d.DefaultExperiment != nil || !reflect.DeepEqual(d.CoSimulation, &CoSimulation{ModelIdentifier: "x"}) {
		t.Errorf("%+v, %+v", d, d.CoSimulation)
	}
	v := d.Variables[0]
	if v.Causality != Local || v.Variability != Continuous || v.Initial != Calculated || v.HasStart || v.Real != (RealAttributes{}) {
		t.Errorf("%+v", v)
	}
}

// An attribute of a variable takes precedence over that of its declared type; missing
// attributes come from the type (fmi2 17).
func TestTypeAttributes(t *testing.T) {
	const document = `<fmiModelDescription fmiVersion="2.0" modelName="x" guid="1"><CoSimulation modelIdentifier="x"/>
		<UnitDefinitions><Unit name="m"><DisplayUnit name="km"/><DisplayUnit name="mm"/></Unit><Unit name="s"/></UnitDefinitions>
		<TypeDefinitions><SimpleType name="R"><Real quantity="Q" unit="m" displayUnit="km" relativeQuantity="true" min="-1" max="1" nominal="3" unbounded="true"/></SimpleType>
		<SimpleType name="N"><Integer quantity="Q" min="-1" max="1"/></SimpleType></TypeDefinitions>
		<ModelVariables>%s</ModelVariables><ModelStructure/></fmiModelDescription>`
	read := func(variable string) ScalarVariable {
		d, _, err := readText(fmt.Sprintf(document, `<ScalarVariable name="v" valueReference="0" `+variable+`/></ScalarVariable>`), false)
		must(t, err)
		return d.Variables[0]
	}
	of := func() RealAttributes {
		return RealAttributes{Quantity: "Q", Unit: "m", DisplayUnit: "km", RelativeQuantity: true, Unbounded: true, Min: ptr(-1.), Max: ptr(1.), Nominal: ptr(3.)}
	}
	for attributes, change := range map[string]func(r *RealAttributes){
		``:                         func(*RealAttributes) {},
		`quantity="P"`:             func(r *RealAttributes) { r.Quantity = "P" },
		`displayUnit="mm"`:         func(r *RealAttributes) { r.DisplayUnit = "mm" },
		`unit="s"`:                 func(r *RealAttributes) { r.Unit, r.DisplayUnit = "s", "" }, // the display unit is of another unit
		`relativeQuantity="false"`: func(r *RealAttributes) { r.RelativeQuantity = false },
		`unbounded="0"`:            func(r *RealAttributes) { r.Unbounded = false },
		`min="0"`:                  func(r *RealAttributes) { r.Min = ptr(0.) },
		`max="0"`:                  func(r *RealAttributes) { r.Max = ptr(0.) },
		`nominal="5"`:              func(r *RealAttributes) { r.Nominal = ptr(5.) },
	} {
		want := of()
		change(&want)
		if got := read(`><Real declaredType="R" ` + attributes).Real; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", attributes, got, want)
		}
	}
	for attributes, want := range map[string]IntegerAttributes{
		``:             {Quantity: "Q", Min: ptr[int64](-1), Max: ptr[int64](1)},
		`quantity="P"`: {Quantity: "P", Min: ptr[int64](-1), Max: ptr[int64](1)},
		`min="0"`:      {Quantity: "Q", Min: ptr[int64](0), Max: ptr[int64](1)},
		`max="0"`:      {Quantity: "Q", Min: ptr[int64](-1), Max: ptr[int64](0)},
	} {
		if got := read(`variability="discrete"><Integer declaredType="N" ` + attributes).Integer; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", attributes, got, want)
		}
	}
}

// Names are plain text with any naming convention (fmi2 25).
func TestNames(t *testing.T) {
	for _, convention := range []string{"flat", "structured"} {
		for _, name := range []string{"a", "0 a", "a[", "ä→b", "der(", "a.&lt;b&gt;", "a&#9;b"} {
			text := strings.NewReplacer(`variableNamingConvention="structured"`, `variableNamingConvention="`+convention+`"`, `name="half"`, `name="`+name+`"`).Replace(baseXML)
			d, l, err := readText(text, false)
			if err != nil || len(l.Findings) > 0 || d.Variables[9].Name != strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#9;", "\t").Replace(name) {
				t.Errorf("%s %q: %v, findings %v", convention, name, err, l.Findings)
			}
		}
	}
}

// TestInitialTable compares the table of fmi2 19 with the results of Read.
func TestInitialTable(t *testing.T) {
	// By variability: constant, fixed, tunable, discrete, continuous. In each
	// the default, then other allowed values; "" = not allowed, "-" = none.
	table := map[Causality][5]string{
		Parameter:           {"", "e", "e", "", ""},
		CalculatedParameter: {"", "ca", "ca", "", ""},
		Input:               {"", "", "", "-", "-"},
		Output:              {"e", "", "", "cea", "cea"},
		Local:               {"e", "ca", "ca", "cea", "cea"},
		Independent:         {"", "", "", "", "-"},
	}
	letters := map[Initial]string{Exact: "e", Approx: "a", Calculated: "c", InitialNone: "-"}
	for c, row := range table {
		for k, v := range []Variability{Constant, Fixed, Tunable, Discrete, Continuous} {
			for _, i := range []Initial{InitialNone, Exact, Approx, Calculated} {
				initial := ""
				if i != InitialNone {
					initial = fmt.Sprintf(` initial="%v"`, i)
				}
				text := fmt.Sprintf(`<fmiModelDescription fmiVersion="2.0" modelName="x" guid="1"><CoSimulation modelIdentifier="x"/><ModelVariables>
					<ScalarVariable name="v" valueReference="0" causality="%v" variability="%v"%s><Real start="0"/></ScalarVariable></ModelVariables><ModelStructure/></fmiModelDescription>`, c, v, initial)
				d, l, err := readText(text, false)
				must(t, err)
				has := func(id string) bool {
					return slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return f.ID == id })
				}
				got := &d.Variables[0]
				what := fmt.Sprintf("%v %v %v", c, v, i)
				if allowed := row[k] != ""; has("MD19") == allowed {
					t.Errorf("%s: MD19 %v", what, !allowed)
				} else if !allowed {
					continue
				}
				want := row[k][:1]
				if i != InitialNone {
					if ok := strings.Contains(row[k], letters[i]); ok {
						want = letters[i]
					} else if !has("MD20") {
						t.Errorf("%s: no MD20", what)
					}
				}
				if letters[got.Initial] != want || got.Causality != c || got.Variability != v {
					t.Errorf("%s: initial %v", what, got.Initial)
				}
			}
		}
	}
}

func TestEncodings(t *testing.T) {
	const text = `<?xml version="1.0" encoding="ENC"?><fmiModelDescription fmiVersion="2.0" modelName="Größe €𝄞" guid="1"><CoSimulation modelIdentifier="x"/><ModelVariables/><ModelStructure/></fmiModelDescription>`
	in := func(name string) string { return strings.Replace(text, "ENC", name, 1) }
	wide := func(order unicode.Endianness, mark unicode.BOMPolicy) string {
		s, err := unicode.UTF16(order, mark).NewEncoder().String(in("UTF-16"))
		must(t, err)
		return s
	}
	eight := func(name string, codes map[rune]byte) string {
		var b strings.Builder
		for _, r := range in(name) {
			if c, ok := codes[r]; ok {
				b.WriteByte(c)
			} else {
				b.WriteByte(byte(r))
			}
		}
		return b.String()
	}
	const all = "Größe €𝄞"
	for _, c := range []struct{ name, text, want, id string }{
		{"UTF-8", in("UTF-8"), all, ""},
		{"lower case", in("utf-8"), all, ""},
		{"byte order mark", "\xef\xbb\xbf" + in("UTF-8"), all, ""},
		{"no declaration", strings.TrimPrefix(in("UTF-8"), `<?xml version="1.0" encoding="UTF-8"?>`), all, ""},
		{"Latin-1", eight("ISO-8859-1", map[rune]byte{'€': 0x80, '𝄞': '?'}), "Größe €?", "MD2"},
		{"Windows-1252", eight("windows-1252", map[rune]byte{'€': 0x80, '𝄞': 0x9f}), "Größe €Ÿ", "MD2"},
		{"Latin-9", eight("ISO-8859-15", map[rune]byte{'€': 0xa4, '𝄞': 0xbe}), "Größe €Ÿ", "MD2"},
		{"UTF-16LE", wide(unicode.LittleEndian, unicode.UseBOM), all, "MD2"},
		{"UTF-16BE", wide(unicode.BigEndian, unicode.UseBOM), all, "MD2"},
		{"UTF-16LE without mark", wide(unicode.LittleEndian, unicode.IgnoreBOM), all, "MD2"},
		{"UTF-16BE without mark", wide(unicode.BigEndian, unicode.IgnoreBOM), all, "MD2"},
	} {
		for how, r := range map[string]io.Reader{"whole": strings.NewReader(c.text), "bytewise": iotest.OneByteReader(strings.NewReader(c.text))} {
			var l diag.List
			d, err := Read(r, "x", &l)
			must(t, err)
			id := ""
			for _, f := range l.Findings {
				if f.ID != "MD1L" {
					id += f.ID
				}
			}
			if d.ModelName != c.want || id != c.id {
				t.Errorf("%s, %s: %q, want %q; findings %v", c.name, how, d.ModelName, c.want, l.Findings)
			}
		}
	}
}

func TestReadErrorOfReader(t *testing.T) {
	boom := errors.New("boom")
	for _, n := range []int{0, 600, 2000} {
		d, err := Read(io.MultiReader(strings.NewReader(fullXML[:n]), iotest.ErrReader(boom)), "x.xml", nil)
		if d != nil || !errors.Is(err, boom) {
			t.Errorf("after %d bytes: %v", n, err)
		}
		if err != nil && !strings.Contains(err.Error(), "x.xml") {
			t.Errorf("the file is not named: %v", err)
		}
	}
}

func TestGrouping(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<fmiModelDescription fmiVersion="2.0" modelName="x" guid="1"><CoSimulation modelIdentifier="x"/><ModelVariables>`)
	for i := range 50 {
		fmt.Fprintf(&b, `<ScalarVariable name="v%d" valueReference="%d" causality="input"><Real start="0" nominal="0"/></ScalarVariable>`, i, i)
	}
	b.WriteString(`</ModelVariables><ModelStructure/></fmiModelDescription>`)
	_, l, err := readText(b.String(), false)
	if err != nil || len(l.Findings) != 1 {
		t.Fatal(err, l.Findings)
	}
	if got, want := l.Findings[0].Message, `"v0" has the nominal value 0; 49 more places break this rule: v1, v2, v3, v4, v5, v6, v7, v8, …`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, l, err = readText(b.String(), true)
	if err == nil || len(l.Findings) != errorsListed {
		t.Fatal(err, len(l.Findings))
	}
	if last := l.Findings[errorsListed-1].Message; !strings.Contains(last, "30 more places") {
		t.Error(last)
	}
}

// An output that is a state depends on itself as a known.
func TestStateAsOutput(t *testing.T) {
	text := strings.NewReplacer(`name="x" valueReference="2"`, `name="x" valueReference="2" causality="output"`,
		`<Outputs>`, `<Outputs><Unknown index="5" dependencies="5"/>`).Replace(baseXML)
	d, l, err := readText(text, true)
	if err != nil || len(l.Findings) > 0 {
		t.Fatal(err, l.Findings)
	}
	if u := d.Outputs[0]; u.Index != 5 || !reflect.DeepEqual(u.Dependencies, []int{5}) {
		t.Errorf("%+v", u)
	}
}

// What only an exporter cares about is read without a finding, also in strict mode.
func TestTolerated(t *testing.T) {
	const y = `dependencies="2 5" dependenciesKind="constant dependent"`
	for name, c := range map[string]struct {
		old, new string
		check    func(d *ModelDescription) string
	}{
		"identifier":     {`modelIdentifier="base"`, `modelIdentifier="2 base"`, func(d *ModelDescription) string { return differ(d.CoSimulation.ModelIdentifier, "2 base") }},
		"source twice":   {`<File name="b.c"/>`, `<File name="a.c"/>`, func(d *ModelDescription) string { return differ(d.ModelExchange.SourceFiles, []string{"a.c", "a.c"}) }},
		"category twice": {`<Category name="info"/>`, `<Category name="error"/>`, func(d *ModelDescription) string { return differ(len(d.LogCategories), 2) }},
		"tool twice": {`<Tool name="two">`, `<Tool name="one">`, func(d *ModelDescription) string {
			return differ(d.VendorAnnotations[1], VendorAnnotation{"one", "<x/>"})
		}},
		"display unit":    {`displayUnit="km"`, `displayUnit="ft"`, variableIs("x", func(v *ScalarVariable) bool { return v.Real.DisplayUnit == "ft" })},
		"range":           {`initial="calculated"><Real`, `initial="calculated"><Real min="1" max="0"`, variableIs("y", func(v *ScalarVariable) bool { return *v.Real.Min == 1 && *v.Real.Max == 0 })},
		"range of a type": {`declaredType="Length" start`, `declaredType="Length" max="11" start`, variableIs("u", func(v *ScalarVariable) bool { return *v.Real.Max == 11 })},
		"calculated":      {`<Boolean/>`, `<Boolean start="true"/>`, variableIs("on", func(v *ScalarVariable) bool { return !v.HasStart && !v.StartBoolean })},
		"independent":     {`causality="independent"><Real/>`, `causality="independent"><Real start="2"/>`, variableIs("time", func(v *ScalarVariable) bool { return !v.HasStart })},
		"reinit":          {`<Real start="2" min`, `<Real reinit="true" start="2" min`, variableIs("p", func(v *ScalarVariable) bool { return v.Reinit })},
		"alias":           {`name="y_copy" valueReference="4"`, `name="y_copy" valueReference="4" variability="discrete"`, variableIs("y_copy", func(v *ScalarVariable) bool { return v.AliasOf == 7 })},
		"no derivatives":  {`    <Derivatives><Unknown index="6" dependencies="2"/></Derivatives>`, ``, func(d *ModelDescription) string { return differ(len(d.Derivatives), 0) }},
		"order":           {y, `dependencies="5 2 5" dependenciesKind="dependent constant tunable"`, outputsAre(unknownY, unknownOn)},
		"initial kind":    {`dependencies="2" dependenciesKind="constant"`, `dependencies="2" dependenciesKind="tunable"`, nil},
		"own dependency":  {y, `dependencies="2 7"`, outputsAre(Unknown{Index: 7, Declared: true, Dependencies: []int{2, 7}}, unknownOn)},
		"linear Integer":  {dependentXML, `<Unknown index="9" dependencies="3" dependenciesKind="discrete"/>`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			lineOf(t, c.old)
			d, l, err := readText(strings.Replace(baseXML, c.old, c.new, 1), true)
			must(t, err)
			if len(l.Findings) > 0 {
				t.Errorf("findings %v", l.Findings)
			}
			consistent(t, d)
			if c.check != nil {
				if bad := c.check(d); bad != "" {
					t.Error(bad)
				}
			}
		})
	}
}

func TestLookups(t *testing.T) {
	d, _, err := readText(fullXML, false)
	must(t, err)
	made := ModelDescription{Variables: []ScalarVariable{{Name: "a"}, {Name: "b"}}} // without Read
	b, ok := made.Variable("b")
	k, found := d.Variable("k")
	if _, none := d.Variable("kk"); !ok || b != &made.Variables[1] || !found || k != &d.Variables[6] || none {
		t.Errorf("variables %v, %v", b, k)
	}
	if items := d.Enumeration("TE"); len(items) != 2 || d.Enumeration("TX") != nil {
		t.Errorf("items %v", items)
	}
	u, ok := d.Unit("U")
	if _, none := d.Unit("V"); !ok || u != &d.Units[0] || none {
		t.Errorf("unit %v", u)
	}
	if o := d.OutputVariables(); len(o) != 1 || o[0] != &d.Variables[1] {
		t.Errorf("outputs %v", o)
	}
}

func TestStateless(t *testing.T) {
	for xml, want := range map[string]bool{
		`<Tool name="macrostep"><stateless/></Tool>`:                               true,
		`<Tool name="macrostep"><stateless value="true"/></Tool>`:                  true,
		`<Tool name="macrostep"><stateless value="false"/></Tool>`:                 false,
		`<Tool name="macrostep"><m><stateless value=" 1 "></stateless></m></Tool>`: true,
		`<Tool name="macrostep"><x/></Tool>`:                                       false,
		`<Tool name="macrostep"/>`:                                                 false,
		`<Tool name="other"><stateless/></Tool>`:                                   false,
		`<Tool name="other"><x/></Tool><Tool name="macrostep"><stateless/></Tool>`: true,
		`<Tool name="macrostep"><!-- <stateless/> --></Tool>`:                      false,
	} {
		d, _, err := readText(strings.Replace(baseXML, `<Tool name="one"/>`, xml, 1), false)
		must(t, err)
		if got := d.Stateless(); got != want {
			t.Errorf("%s: %v", xml, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(baseXML), false)
	f.Add([]byte(fullXML), true)
	for _, c := range ruleCases {
		f.Add([]byte(strings.Replace(baseXML, c.old, c.new, 1)), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, strict bool) {
		l := &diag.List{Strict: strict}
		d, err := Read(strings.NewReader(string(data)), "x.xml", l)
		sound(t, d, l, err)
	})
}

// sound checks what Read returns.
func sound(t *testing.T, d *ModelDescription, l *diag.List, err error) {
	if (d == nil) == (err == nil) {
		t.Fatalf("description %v, error %v", d != nil, err)
	}
	for _, x := range l.Findings {
		if x.Message == "" || x.Path == "" || x.Remedy == "" || x.Level == diag.Error && err == nil {
			t.Fatalf("finding %+v", x)
		}
	}
	if d != nil {
		consistent(t, d)
		d.Stateless()
	}
}
