package ssp

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// What Bind does not change it leaves as it stands: layout, quotes, order of attributes,
// line ends, encoding. Each document is made to be written anew by nothing else.
func TestBindKeeps(t *testing.T) {
	const set = `<?xml version='1.0' encoding='UTF-8'?>
<!-- by hand -->
<ssv:ParameterSet name = 's'	version="1.0"
   xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:c='http://ssp-standard.org/SSP1/SystemStructureCommon'>
	<ssv:Parameters   >
		<ssv:Parameter name='c.p' ><ssv:Real  unit = 'm' value = '1.50' ></ssv:Real></ssv:Parameter>   <!-- kept ä -->
		<ssv:Parameter  name="c.q"><ssv:Real value="2" unit="m"/></ssv:Parameter>
	</ssv:Parameters>
	<ssv:Units><c:Unit name="m"><c:BaseUnit m="1"/></c:Unit></ssv:Units>
</ssv:ParameterSet>
`
	const document = `<ssd:SystemStructureDescription version="1.0" name="t" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription">
 <ssd:System name="top">BINDINGS<ssd:Elements><ssd:Component source="c.fmu"   name="c"></ssd:Component></ssd:Elements>
 </ssd:System>
</ssd:SystemStructureDescription>
`
	file := `<ssd:ParameterBindings><ssd:ParameterBinding source="set.ssv"/></ssd:ParameterBindings>`
	newton := unit.Definition{Name: "N", Base: &unit.Base{Kg: 1, M: 1, S: -2, Factor: 1}}
	m := unit.Definition{Name: "m", Base: &unit.Base{M: 1, Factor: 1}}
	value := func(name string, v float64, unit string) ParameterValue {
		return ParameterValue{Name: name, Value: Value{Type: Real, Real: v}, Unit: unit}
	}
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	latin := func(s string) string {
		return strings.NewReplacer("UTF-8", "ISO-8859-1", "ä", "\xe4").Replace(s)
	}
	replaced := func(old, new string) func(string) string {
		return func(s string) string {
			if strings.Count(s, old) != 1 {
				t.Fatalf("%q stands %d times", old, strings.Count(s, old))
			}
			return strings.Replace(s, old, new, 1)
		}
	}
	last := `<ssv:Parameter  name="c.q"><ssv:Real value="2" unit="m"/></ssv:Parameter>`
	for _, tt := range []struct {
		name     string
		bindings string
		form     func(string) string // of all files
		values   []ParameterValue
		want     map[string]func(string) string // changed files, from how they were; nil: new
	}{
		{"another value", file, nil, []ParameterValue{value("c.p", 3, "m")}, map[string]func(string) string{"set.ssv": replaced("'1.50'", "'3'")}},
		{"the same value", file, nil, []ParameterValue{value("c.p", 1.5, "m")}, map[string]func(string) string{"set.ssv": strings.Clone}},
		{"another type", file, nil, []ParameterValue{{Name: "c.q", Value: Value{Type: String, Text: `a<"b`}}},
			map[string]func(string) string{"set.ssv": replaced(`<ssv:Real value="2" unit="m"/>`, `<ssv:String value="a&lt;&quot;b"/>`)}},
		{"without unit", file, nil, []ParameterValue{value("c.q", 2, "")}, map[string]func(string) string{"set.ssv": replaced(`value="2" unit="m"`, `value="2"`)}},
		{"two more, one of a new unit", file, nil, []ParameterValue{value("c.r", 3, "m"), value("c.s", 4, "N")}, map[string]func(string) string{"set.ssv": func(s string) string {
			s = replaced(last, last+"\n\t\t"+`<ssv:Parameter name="c.r"><ssv:Real value="3" unit="m"/></ssv:Parameter>`+"\n\t\t"+`<ssv:Parameter name="c.s"><ssv:Real value="4" unit="N"/></ssv:Parameter>`)(s)
			return replaced(`</c:Unit>`, `</c:Unit><c:Unit name="N"><c:BaseUnit kg="1" m="1" s="-2"/></c:Unit>`)(s)
		}}},
		{"line ends of Windows", file, crlf, []ParameterValue{value("c.r", 3, "m")}, map[string]func(string) string{"set.ssv": replaced(last, last+"\r\n\t\t"+`<ssv:Parameter name="c.r"><ssv:Real value="3" unit="m"/></ssv:Parameter>`)}},
		{"a byte order mark", file, func(s string) string { return "\ufeff" + s }, []ParameterValue{value("c.p", 3, "m")}, map[string]func(string) string{"set.ssv": replaced("'1.50'", "'3'")}},
		{"Latin-1", file, latin, []ParameterValue{{Name: "c.q", Value: Value{Type: String, Text: "äπ"}}}, map[string]func(string) string{"set.ssv": replaced(`<ssv:Real value="2" unit="m"/>`, "<ssv:String value=\"\xe4&#x3C0;\"/>")}},
		{"a new set", "", nil, []ParameterValue{value("c.p", 3, "m")}, map[string]func(string) string{"resources/parameters.ssv": nil,
			documentName: replaced(`<ssd:System name="top">`, `<ssd:System name="top"><ssd:ParameterBindings><ssd:ParameterBinding source="resources/parameters.ssv"/></ssd:ParameterBindings>`)}},
		{"a new set behind others", strings.Replace(file, "ssd:ParameterBinding source", `ssd:ParameterBinding prefix="x." source`, 1), crlf, []ParameterValue{value("c.p", 3, "m")}, map[string]func(string) string{"resources/parameters.ssv": nil,
			documentName: replaced(`source="set.ssv"/>`, `source="set.ssv"/><ssd:ParameterBinding source="resources/parameters.ssv"/>`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			form := tt.form
			if form == nil {
				form = strings.Clone
			}
			files := map[string]string{documentName: form(strings.Replace(document, "BINDINGS", tt.bindings, 1)), "set.ssv": form(set)}
			p, err := Open(folder(t, files), &diag.List{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			changed, err := p.Bind(tt.values, []unit.Definition{m, newton})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range changed {
				names = append(names, f.Name)
				change := tt.want[f.Name]
				if change == nil {
					continue
				}
				if want := change(files[f.Name]); string(f.Data) != want {
					t.Errorf("%s:\n%s\nwant\n%s", f.Name, f.Data, want)
				}
			}
			slices.Sort(names)
			if want := slices.Sorted(maps.Keys(tt.want)); !slices.Equal(names, want) {
				t.Errorf("changed %v, want %v", names, want)
			}
		})
	}
}

// Every layout of an empty list takes an entry.
func TestSpliceEmpty(t *testing.T) {
	const head = `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">`
	for text, want := range map[string]string{
		head + "<ssv:Parameters/></ssv:ParameterSet>": head + `<ssv:Parameters><ssv:Parameter name="p"><ssv:Real value="1" unit="m"/></ssv:Parameter></ssv:Parameters>` +
			`<ssv:Units><ssc:Unit xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" name="m"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit></ssv:Units></ssv:ParameterSet>`,
		head + "\n  <ssv:Parameters >\n  </ssv:Parameters>\n</ssv:ParameterSet>": head + "\n  <ssv:Parameters >\n    <ssv:Parameter name=\"p\">\n      <ssv:Real value=\"1\" unit=\"m\"/>\n    </ssv:Parameter>\n  </ssv:Parameters>\n" +
			"  <ssv:Units>\n    <ssc:Unit xmlns:ssc=\"http://ssp-standard.org/SSP1/SystemStructureCommon\" name=\"m\">\n      <ssc:BaseUnit m=\"1\" factor=\"0.001\"/>\n    </ssc:Unit>\n  </ssv:Units>\n</ssv:ParameterSet>",
		head + "\n\t<ssv:Parameters a='1' />\n</ssv:ParameterSet>": head + "\n\t<ssv:Parameters a='1'>\n\t\t<ssv:Parameter name=\"p\">\n\t\t\t<ssv:Real value=\"1\" unit=\"m\"/>\n\t\t</ssv:Parameter>\n\t</ssv:Parameters>\n" +
			"\t<ssv:Units>\n\t\t<ssc:Unit xmlns:ssc=\"http://ssp-standard.org/SSP1/SystemStructureCommon\" name=\"m\">\n\t\t\t<ssc:BaseUnit m=\"1\" factor=\"0.001\"/>\n\t\t</ssc:Unit>\n\t</ssv:Units>\n</ssv:ParameterSet>",
		head + "<ssv:Parameters><!-- none --></ssv:Parameters></ssv:ParameterSet>": head + `<ssv:Parameters><ssv:Parameter name="p"><ssv:Real value="1" unit="m"/></ssv:Parameter><!-- none --></ssv:Parameters>` +
			`<ssv:Units><ssc:Unit xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" name="m"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit></ssv:Units></ssv:ParameterSet>`,
	} {
		got, err := spliceSet([]byte(text), "s", []ParameterValue{{Name: "p", Value: Value{Type: Real, Real: 1}, Unit: "m"}}, []unit.Definition{{Name: "m", Base: &unit.Base{M: 1, Factor: 0.001}}})
		if err != nil || string(got) != want {
			t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
		}
		if _, err := ReadParameterSet(got, "s", nil); err != nil {
			t.Error(err)
		}
	}
}

// Whatever the set, what comes out of a change is a set with the value, or the change is
// left to writing it anew.
func FuzzSplice(f *testing.F) {
	f.Add([]byte(baseSet), "gain", "N")
	f.Add([]byte(strings.ReplaceAll(baseSet, "\n", "\r\n")), "other", "m")
	f.Add([]byte("\xef\xbb\xbf"+strings.ReplaceAll(strings.ReplaceAll(baseSet, "ssv:", ""), "xmlns:ssv", "xmlns")), "a<b\"'&", "")
	f.Add([]byte(strings.Replace(baseSet, `"1.0"?`, `"1.0" encoding="ISO-8859-1"?`, 1)), "\u00e4\u03c0", "m")
	f.Fuzz(func(t *testing.T, data []byte, name, unitName string) {
		if len(data) > 1<<16 || name == "" {
			return
		}
		if _, bad := badRune(name + unitName); bad {
			return
		}
		was, err := ReadParameterSet(data, "s", nil)
		if err != nil {
			return
		}
		v := ParameterValue{Name: name, Value: Value{Type: Real, Real: 0.1}, Unit: unitName}
		var units []unit.Definition
		if unitName != "" && findUnit(was.Units, unitName) == nil {
			units = append(units, unit.Definition{Name: unitName, Base: &unit.Base{M: 1, Factor: 2}})
		}
		out, err := spliceSet(data, "s", []ParameterValue{v}, units)
		if err != nil {
			return
		}
		set, err := ReadParameterSet(out, "s", nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		i := slices.IndexFunc(set.Parameters, func(p ParameterValue) bool { return p.Name == name })
		if i < 0 || set.Parameters[i].Value != v.Value || set.Parameters[i].Unit != unitName || len(set.Units) != len(was.Units)+len(units) {
			t.Fatalf("%d %+v\n%s", i, set.Parameters, out)
		}
	})
}
