package edit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// What Bind does not change it keeps: comments, foreign attributes and elements, metadata
// and order, whatever the layout and encoding of the file.
func TestBindKeeps(t *testing.T) {
	const set = `<?xml version='1.0' encoding='UTF-8'?>
<!-- by hand -->
<ssv:ParameterSet name = 's'	version="1.0" author='Ä'
   xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:c='http://ssp-standard.org/SSP1/SystemStructureCommon' xmlns:x="urn:x" x:mark="1">
	<ssv:Parameters   >
		<ssv:Parameter name='c.p' ><ssv:Real  unit = 'm' value = '1.50' ></ssv:Real></ssv:Parameter>   <!-- kept ä -->
		<ssv:Parameter  name="c.q" x:id="7"><ssv:Real value="2" unit="m"/><ssv:Annotations><c:Annotation type="org.x"><x:y>  text </x:y></c:Annotation></ssv:Annotations></ssv:Parameter>
	</ssv:Parameters>
	<ssv:Units><c:Unit name="m"><c:BaseUnit m="1"/></c:Unit></ssv:Units>
	<?tool keep?>
</ssv:ParameterSet>
`
	const document = `<ssd:SystemStructureDescription version="1.0" name="t" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription">
 <ssd:System name="top">BINDINGS<!-- elements --><ssd:Elements><ssd:Component source="c.fmu"   name="c"><ssd:ElementGeometry x1="0" y1="0" x2="1" y2="1"/></ssd:Component></ssd:Elements>
 </ssd:System>
</ssd:SystemStructureDescription>
`
	const file, other = `<ssd:ParameterBindings><ssd:ParameterBinding source="set.ssv"/></ssd:ParameterBindings>`, `<ssd:ParameterBindings><ssd:ParameterBinding prefix="x." source="set.ssv"/></ssd:ParameterBindings>`
	newton := unit.Definition{Name: "N", Base: &unit.Base{Kg: 1, M: 1, S: -2, Factor: 1}}
	m := unit.Definition{Name: "m", Base: &unit.Base{M: 1, Factor: 1}}
	value := func(name string, v float64, unit string) ssp.ParameterValue {
		return ssp.ParameterValue{Name: name, Value: ssp.Value{Type: ssp.Real, Real: v}, Unit: unit}
	}
	latin := strings.NewReplacer("UTF-8", "ISO-8859-1", "ä", "\xe4", "Ä", "\xc4").Replace
	const q = `<ssv:Real value="2" unit="m"/>`
	last := "</ssv:Parameter>\n\t</ssv:Parameters>"
	binding := `<ssd:ParameterBinding source="resources/parameters.ssv"/>`
	for _, tt := range []struct {
		name, bindings string
		form           func(string) string // of all files
		values         []ssp.ParameterValue
		file           string
		want           []string // replacements in the file, in pairs
	}{
		{"another value", file, nil, []ssp.ParameterValue{value("c.p", 3, "m")}, "set.ssv", []string{"'1.50'", "'3'"}},
		{"the same value", file, nil, []ssp.ParameterValue{value("c.p", 1.5, "m")}, "set.ssv", nil},
		{"another type", file, nil, []ssp.ParameterValue{{Name: "c.q", Value: ssp.Value{Type: ssp.String, Text: `a<"b`}}}, "set.ssv", []string{q, `<ssv:String value="a&lt;&quot;b"/>`}},
		{"without unit", file, nil, []ssp.ParameterValue{value("c.q", 2, "")}, "set.ssv", []string{q, `<ssv:Real value="2"/>`}},
		{"two more, one of a new unit", file, nil, []ssp.ParameterValue{value("c.r", 3, "m"), value("c.s", 4, "N")}, "set.ssv", []string{
			last, `</ssv:Parameter><ssv:Parameter name="c.r"><ssv:Real value="3" unit="m"/></ssv:Parameter><ssv:Parameter name="c.s"><ssv:Real value="4" unit="N"/></ssv:Parameter></ssv:Parameters>`,
			`</c:Unit>`, `</c:Unit><c:Unit name="N"><c:BaseUnit kg="1" m="1" s="-2"/></c:Unit>`}},
		{"line ends of Windows", file, func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }, []ssp.ParameterValue{value("c.p", 3, "m")}, "set.ssv", []string{"'1.50'", "'3'"}},
		{"a byte order mark", file, func(s string) string { return "\ufeff" + s }, []ssp.ParameterValue{value("c.p", 3, "m")}, "set.ssv", []string{"'1.50'", "'3'"}},
		{"Latin-1", file, latin, []ssp.ParameterValue{{Name: "c.q", Value: ssp.Value{Type: ssp.String, Text: "äπ"}}}, "set.ssv", []string{q, `<ssv:String value="äπ"/>`}},
		{"a new set", "", nil, []ssp.ParameterValue{value("c.p", 3, "m")}, ssp.DocumentName,
			[]string{`<ssd:System name="top">`, `<ssd:System name="top"><ssd:ParameterBindings>` + binding + `</ssd:ParameterBindings>`}},
		{"a new set after others", other, nil, []ssp.ParameterValue{value("c.p", 3, "m")}, ssp.DocumentName, []string{`source="set.ssv"/>`, `source="set.ssv"/>` + binding}},
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
			got := changed[len(changed)-1].Data
			if a, b := canonical(t, got), canonical(t, []byte(want)); a != b {
				t.Errorf("%s\nwant\n%s", a, b)
			}
		})
	}
}

// canonical writes a document without its layout: comments and all, attributes sorted.
func canonical(t *testing.T, data []byte) string {
	t.Helper()
	r := &xmltree.Reader{List: &diag.List{}}
	root := r.Parse(data)
	if root == nil {
		t.Fatalf("%v\n%s", r.List.Err(), data)
	}
	return expanded(root.El.Parent())
}

// Whatever the set, what comes out of a change is a set with the value.
func FuzzChangedSet(f *testing.F) {
	f.Add([]byte(BaseSet), "gain", "N")
	f.Add([]byte("\xef\xbb\xbf"+strings.ReplaceAll(strings.ReplaceAll(BaseSet, "ssv:", ""), "xmlns:ssv", "xmlns")), "a<b\"'&", "")
	f.Add([]byte(strings.Replace(BaseSet, `"1.0"?`, `"1.0" encoding="ISO-8859-1"?`, 1)), "\u00e4\u03c0", "m")
	f.Fuzz(func(t *testing.T, data []byte, name, unitName string) {
		was, err := ssp.ReadParameterSet(data, "s", nil)
		if len(data) > 1<<16 || name == "" || err != nil {
			return
		}
		v := ssp.ParameterValue{Name: name, Value: ssp.Value{Type: ssp.Real, Real: 0.1}, Unit: unitName}
		if i := slices.IndexFunc(was.Parameters, func(p ssp.ParameterValue) bool { return p.Name == name }); i >= 0 {
			v.Place = was.Parameters[i].Place
			was.Parameters[i] = v
		} else {
			was.Parameters = append(was.Parameters, v)
		}
		if unitName != "" && !slices.ContainsFunc(was.Units, func(u unit.Definition) bool { return u.Name == unitName }) {
			was.Units = append(was.Units, unit.Definition{Name: unitName, Base: &unit.Base{M: 1, Factor: 2}})
		}
		out, err := edit.EncodeSet(was)
		if err != nil {
			return
		}
		set, err := ssp.ReadParameterSet(out, "s", nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if d := unlike(was, set); d != "" {
			t.Fatalf("%s\n%s", d, out)
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
	if _, err := edit.Bind(p, values, nil); err == nil || !strings.Contains(err.Error(), `the unit "N" of gain is not defined`) {
		t.Error(err)
	}
}
