package edit_test

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// What Bind does not change it keeps: comments, foreign attributes and elements, metadata, order
// and layout, whatever the encoding of the file.
func TestBindKeeps(t *testing.T) {
	const set = `<?xml version="1.0" encoding="UTF-8"?>
<!-- by hand -->
<ssv:ParameterSet name="s" version="1.0" author="Ä" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:x="urn:x" x:mark="1">
	<ssv:Parameters>
		<ssv:Parameter name="c.p"><ssv:Real unit="m" value="1.50"/></ssv:Parameter>   <!-- kept ä -->

		<ssv:Parameter name="c.q" x:id="7"><ssv:Real value="2" unit="m"/><ssv:Annotations><c:Annotation type="org.x"><x:y>  text <x:z/> </x:y></c:Annotation></ssv:Annotations></ssv:Parameter>
		<!-- the end -->
	</ssv:Parameters>
	<ssv:Units><c:Unit name="m"><c:BaseUnit m="1"/></c:Unit></ssv:Units>
	<?tool keep?>
</ssv:ParameterSet>
`
	const units = "\n\t<ssv:Units><c:Unit name=\"m\"><c:BaseUnit m=\"1\"/></c:Unit></ssv:Units>"
	const document = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="t" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription">
 <ssd:System name="top">BINDINGS

  <!-- elements -->
  <ssd:Elements><ssd:Component source="c.fmu" name="c"><ssd:ElementGeometry x1="0" y1="0" x2="1" y2="1"/></ssd:Component></ssd:Elements>
 </ssd:System>
</ssd:SystemStructureDescription>
`
	const file, other = `<ssd:ParameterBindings><ssd:ParameterBinding source="set.ssv"/></ssd:ParameterBindings>`, `<ssd:ParameterBindings><ssd:ParameterBinding prefix="x." source="set.ssv"/></ssd:ParameterBindings>`
	newton := unit.Definition{Name: "N", Base: &unit.Base{Kg: 1, M: 1, S: -2, Factor: 1}}
	m := unit.Definition{Name: "m", Base: &unit.Base{M: 1, Factor: 1}}
	value := func(name string, v float64, unit string) ssp.ParameterValue {
		return ssp.ParameterValue{Name: name, Value: ssp.Value{Type: ssp.Real, Real: v}, Unit: unit}
	}
	p3 := []ssp.ParameterValue{value("c.p", 3, "m")}
	latin := strings.NewReplacer("UTF-8", "ISO-8859-1", "ä", "\xe4", "Ä", "\xc4").Replace
	const q = `<ssv:Real value="2" unit="m"/>`
	binding := `<ssd:ParameterBinding source="resources/parameters.ssv"/>`
	for _, tt := range []struct {
		name, bindings string
		form           func(string) string // of all files
		values         []ssp.ParameterValue
		file           string
		want           []string // replacements in the file, in pairs
	}{
		{"another value", file, nil, p3, "set.ssv", []string{"1.50", "3"}},
		{"the same value", file, nil, []ssp.ParameterValue{value("c.p", 1.5, "m")}, "set.ssv", nil},
		{"another type", file, nil, []ssp.ParameterValue{{Name: "c.q", Value: ssp.Value{Type: ssp.String, Text: `a<"b`}}}, "set.ssv", []string{q, `<ssv:String value="a&lt;&quot;b"/>`}},
		{"without unit", file, nil, []ssp.ParameterValue{value("c.q", 2, "")}, "set.ssv", []string{q, `<ssv:Real value="2"/>`}},
		{"two more, one of a new unit", file, nil, []ssp.ParameterValue{value("c.r", 3, "m"), value("c.s", 4, "N")}, "set.ssv", []string{
			"<!-- the end -->", "<!-- the end -->\n\t\t<ssv:Parameter name=\"c.r\">\n\t\t\t<ssv:Real value=\"3\" unit=\"m\"/>\n\t\t</ssv:Parameter>\n" +
				"\t\t<ssv:Parameter name=\"c.s\">\n\t\t\t<ssv:Real value=\"4\" unit=\"N\"/>\n\t\t</ssv:Parameter>",
			`</c:Unit>`, `</c:Unit><c:Unit name="N"><c:BaseUnit kg="1" m="1" s="-2"/></c:Unit>`}},
		{"the first unit", file, func(s string) string { return strings.NewReplacer(units, "", ` unit="m"`, "").Replace(s) }, p3, "set.ssv", []string{
			q, `<ssv:Real value="2"/>`, ` unit="m" value="1.50"`, ` value="3" unit="m"`,
			units, "", "<?tool keep?>", "<?tool keep?>\n\t<ssv:Units>\n\t\t<c:Unit name=\"m\">\n\t\t\t<c:BaseUnit m=\"1\"/>\n\t\t</c:Unit>\n\t</ssv:Units>"}},
		{"other layout of tags", file, strings.NewReplacer(` name="`, "\n  name = \"", `"/>`, `" />`).Replace, p3, "set.ssv", []string{"1.50", "3"}},
		{"a known wrong namespace", file, strings.NewReplacer("SystemStructureParameterValues", "ParameterValues").Replace, []ssp.ParameterValue{value("c.q", 4, "m")}, "set.ssv",
			[]string{q, `<ssv:Real value="4" unit="m"/>`, "SystemStructureParameterValues", "ParameterValues"}},
		{"line ends of Windows", file, func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }, p3, "set.ssv", []string{"1.50", "3"}},
		{"a byte order mark", file, func(s string) string { return "\ufeff" + s }, p3, "set.ssv", []string{"1.50", "3"}},
		{"Latin-1", file, latin, []ssp.ParameterValue{{Name: "c.q", Value: ssp.Value{Type: ssp.String, Text: "äπ"}}}, "set.ssv", []string{q, `<ssv:String value="äπ"/>`}},
		{"a new set", "", nil, p3, ssp.DocumentName,
			[]string{`name="top">`, "name=\"top\">\n  <ssd:ParameterBindings>\n   " + binding + "\n  </ssd:ParameterBindings>"}},
		{"a new set after others", other, nil, p3, ssp.DocumentName, []string{`source="set.ssv"/>`, `source="set.ssv"/>` + binding}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{ssp.DocumentName: strings.Replace(document, "BINDINGS", tt.bindings, 1), "set.ssv": set}
			want := files[tt.file]
			for i := 0; i < len(tt.want); i += 2 {
				if strings.Count(want, tt.want[i]) != 1 {
					t.Fatalf("%q occurs %d times", tt.want[i], strings.Count(want, tt.want[i]))
				}
				want = strings.Replace(want, tt.want[i], tt.want[i+1], 1)
			}
			if tt.form != nil {
				for name := range files {
					files[name] = tt.form(files[name])
				}
			}
			changed, err := edit.Bind(Open(t, Folder(t, files), nil), tt.values, []unit.Definition{m, newton})
			if err != nil {
				t.Fatal(err)
			}
			names := []string{tt.file}
			if tt.file == ssp.DocumentName {
				names = []string{"resources/parameters.ssv", ssp.DocumentName}
			}
			for i, f := range changed {
				if i >= len(names) || f.Name != names[i] {
					t.Fatalf("changed %s, want %v", f.Name, names)
				}
			}
			if got := string(changed[len(changed)-1].Data); got != want {
				t.Error(firstDifference(want, got))
			}
		})
	}
}

// wholeDocument is a document with all that an SSD can hold, and with comments.
//
//go:embed testdata/everything.ssd
var wholeDocument string

// A new binding is one line more, after all others.
func TestBindEverything(t *testing.T) {
	p := Open(t, filepath.Join(Folder(t, map[string]string{"test.ssd": wholeDocument}), "test.ssd"), nil)
	files, err := edit.Bind(p, []ssp.ParameterValue{{Name: "a.k", Value: ssp.Value{Type: ssp.Integer, Int: 3}}}, nil)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	const end = "\n    </ssd:ParameterBindings>"
	want := strings.Replace(wholeDocument, end, "\n      <ssd:ParameterBinding source=\"test.ssv\"/>"+end, 1)
	if got := string(files[1].Data); got != want || want == wholeDocument {
		t.Error(firstDifference(want, got))
	}
}

// FuzzBind: whatever the set, it has the value after the change, and what else it had; the same
// change once more has no effect.
func FuzzBind(f *testing.F) {
	f.Add([]byte(BaseSet), "gain", "N")
	f.Add([]byte("\xef\xbb\xbf"+strings.ReplaceAll(strings.ReplaceAll(BaseSet, "ssv:", ""), "xmlns:ssv", "xmlns")), "a<b\"'&", "")
	f.Add([]byte(strings.Replace(BaseSet, `"1.0"?`, `"1.0" encoding="ISO-8859-1"?`, 1)), "\u00e4\u03c0", "m")
	f.Fuzz(func(t *testing.T, data []byte, name, unitName string) {
		files := map[string]string{ssp.DocumentName: Head + Sys("s", Bindings(`<ssd:ParameterBinding source="set.ssv"/>`), "") + Tail, "set.ssv": string(data)}
		dir := Folder(t, files)
		open := func() *ssp.Package {
			p, err := ssp.Open(dir, &diag.List{})
			if err != nil {
				return nil
			}
			t.Cleanup(func() { p.Close() })
			return p
		}
		p := open()
		if p == nil {
			return
		}
		v := ssp.ParameterValue{Name: name, Value: ssp.Value{Type: ssp.Real, Real: 0.1}, Unit: unitName}
		u := unit.Definition{Name: unitName, Base: &unit.Base{M: 1, Factor: 2}}
		changed, err := edit.Bind(p, []ssp.ParameterValue{v}, []unit.Definition{u})
		if err != nil {
			return // told
		}
		if err := os.WriteFile(filepath.Join(dir, "set.ssv"), changed[0].Data, 0o600); err != nil {
			t.Fatal(err)
		}
		again := open()
		if again == nil {
			t.Fatalf("it cannot be read: %s", changed[0].Data)
		}
		want, got := p.Root.System.Bindings[0].Set, again.Root.System.Bindings[0].Set
		if i := slices.IndexFunc(want.Units, func(u unit.Definition) bool { return u.Name == unitName }); i < 0 && unitName != "" {
			want.Units = append(want.Units, u)
		} else if i >= 0 && (want.Units[i].Base == nil || *want.Units[i].Base != *u.Base) {
			v.Unit = ""
		}
		same := func(q ssp.ParameterValue) bool { return q.Name == name }
		if i := slices.IndexFunc(want.Parameters, same); i < 0 {
			want.Parameters = append(want.Parameters, v)
		} else {
			want.Parameters[i] = v
			want.Parameters = append(want.Parameters[:i+1], slices.DeleteFunc(want.Parameters[i+1:], same)...)
		}
		if d := unlike(want, got); d != "" {
			t.Fatalf("%s\n%s", d, changed[0].Data)
		}
		twice, err := edit.Bind(again, []ssp.ParameterValue{v}, []unit.Definition{u})
		if err != nil || !bytes.Equal(twice[0].Data, changed[0].Data) {
			t.Fatalf("%v: %s", err, firstDifference(string(changed[0].Data), string(twice[0].Data)))
		}
	})
}

// A value that Bind gives replaces all values of its name, and its unit must be defined.
func TestBindTwice(t *testing.T) {
	const gain = `<ssv:Parameter name="gain"><ssv:Real value="3" unit="m"/></ssv:Parameter>`
	document := Head + Sys("s", Bindings(`<ssd:ParameterBinding source="set.ssv"/>`), "") + Tail
	p := Open(t, Folder(t, map[string]string{ssp.DocumentName: document, "set.ssv": strings.Replace(BaseSet, gain, gain+gain, 1)}), nil)
	values := []ssp.ParameterValue{{Name: "gain", Value: ssp.Value{Type: ssp.Real, Real: 8}}}
	files, err := edit.Bind(p, values, nil)
	if err != nil || len(files) != 1 || strings.Count(string(files[0].Data), `name="gain"`) != 1 || !strings.Contains(string(files[0].Data), `value="8"`) {
		t.Errorf("%v\n%s", err, files)
	}
	values[0].Unit = "N"
	if _, err := edit.Bind(p, values, nil); err == nil || !strings.Contains(err.Error(), `Parameter[@name='gain']: the unit "N" is not defined`) {
		t.Error(err)
	}
}

// Settings change the annotation of macrostep, or make it at the place that the schemas give. Everything else is kept, and the same
// settings once more change nothing.
func TestBindSettings(t *testing.T) {
	const document = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="t" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ms="https://github.com/macrostep/macrostep/ssp/1">
  <ssd:System name="top"/>
  <!-- times -->EXPERIMENT
  <ssd:Annotations><ssc:Annotation type="org.x"/></ssd:Annotations>
</ssd:SystemStructureDescription>
`
	const begin = `<ssc:Annotation type="com.github.macrostep">`
	around := func(content string) string {
		return `<ssd:DefaultExperiment startTime="1"><ssd:Annotations><ssc:Annotation type="org.x"><x/></ssc:Annotation>` + content +
			`</ssd:Annotations></ssd:DefaultExperiment>`
	}
	const made = `
      <ssc:Annotation type="com.github.macrostep">
        <ms:Settings version="1" stepSize="0.1"/>
      </ssc:Annotation>`
	const full = begin + `<ms:Settings version="1" algorithm="implicit" workers="2">
 <ms:Param key="order" value="1"/><!-- kept -->
 <ms:Record match="a.*"/>
 <ms:Param key=" substeps" value="3"/>
 <ms:Param key=" substeps" value="3"/>
</ms:Settings></ssc:Annotation>`
	const twice = "\n <ms:Param key=\" substeps\" value=\"3\"/>\n <ms:Param key=\" substeps\" value=\"3\"/>"
	step, order := ssp.Asked{Name: ssp.StepSize, Text: "0.1"}, ssp.AskParam("order", "1", "", ssp.Place{})
	substeps, algorithm := ssp.AskParam("substeps", "4", "", ssp.Place{}), ssp.Asked{Name: ssp.Algorithm, Text: "explicit"}
	for name, tt := range map[string]struct {
		experiment string
		settings   []ssp.Asked
		want       []string // replacements in the document, in pairs
	}{
		"no experiment": {"", []ssp.Asked{step}, []string{"<!-- times -->", "<ssd:DefaultExperiment>\n    <ssd:Annotations>" +
			made + "\n    </ssd:Annotations>\n  </ssd:DefaultExperiment>\n  <!-- times -->"}},
		"times": {"\n  " + `<ssd:DefaultExperiment startTime="1" stopTime="2"/>`, []ssp.Asked{step}, []string{`stopTime="2"/>`,
			"stopTime=\"2\">\n    <ssd:Annotations>" + made + "\n    </ssd:Annotations>\n  </ssd:DefaultExperiment>"}},
		"annotations of other tools": {around(""), []ssp.Asked{algorithm, order}, []string{`<x/></ssc:Annotation>`, `<x/></ssc:Annotation>` + begin +
			`<ms:Settings version="1" algorithm="explicit"><ms:Param key="order" value="1"/></ms:Settings></ssc:Annotation>`}},
		"a step more": {around(full), []ssp.Asked{step}, []string{`workers="2"`, `workers="2" stepSize="0.1"`}},
		"a parameter": {around(full), []ssp.Asked{substeps}, []string{twice, "\n <ms:Param key=\" substeps\" value=\"4\"/>"}},
		"an algorithm": {around(full), []ssp.Asked{algorithm}, []string{"implicit", "explicit",
			"\n <ms:Param key=\"order\" value=\"1\"/>", "", twice, ""}},
		"with one kept": {around(full), []ssp.Asked{order, algorithm}, []string{"implicit", "explicit", twice, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(document, "EXPERIMENT", tt.experiment, 1)
			want := strings.NewReplacer(tt.want...).Replace(text)
			for _, before := range []string{text, want} {
				files, err := edit.Bind(Open(t, Folder(t, map[string]string{ssp.DocumentName: before}), nil), nil, nil, tt.settings...)
				if err != nil || len(files) != 1 || files[0].Name != ssp.DocumentName {
					t.Fatalf("%v, %v", files, err)
				}
				if got := string(files[0].Data); got != want || want == text {
					t.Error(firstDifference(want, got))
				}
			}
		})
	}
	p := Open(t, Folder(t, map[string]string{ssp.DocumentName: strings.Replace(document, "EXPERIMENT", "", 1)}), nil)
	_, err := edit.Bind(p, nil, nil, ssp.Asked{Name: "rate", Text: "a=2"})
	if err == nil || !strings.Contains(err.Error(), "--rate a=2 cannot be written") {
		t.Error(err)
	}
}
