package edit_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// read opens a document that refers to no other file.
func read(t testing.TB, data []byte, l *diag.List) *ssp.Document {
	t.Helper()
	p, err := ssp.Open(filepath.Join(Folder(t, map[string]string{"test.ssd": string(data)}), "test.ssd"), l)
	if err != nil {
		return nil
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return p.Root
}

// parse is read for a document that is right.
func parse(t testing.TB, data []byte) *ssp.Document {
	t.Helper()
	l := &diag.List{}
	d := read(t, data, l)
	if d == nil {
		t.Fatalf("%v\n%s", l.Err(), data)
	}
	return d
}

func encode(t testing.TB, d *ssp.Document) []byte {
	t.Helper()
	data, err := edit.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unlike returns the first place where two documents, or parts of them, mean something
// different; "" if they are the same. Places and the trees behind are no part of it.
func unlike(a, b any) string {
	if x, y := meaning("", reflect.ValueOf(a)), meaning("", reflect.ValueOf(b)); x != y {
		return firstDifference(x, y)
	}
	return ""
}

// meaning lists the values in a part of a document, one a line.
func meaning(at string, v reflect.Value) (text string) {
	switch x := v.Interface().(type) {
	case ssp.Place:
		return ""
	case *etree.Element:
		return at + " " + expanded(x) + "\n"
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			text = fmt.Sprintf("%s %s\n", at, v.Elem().Type()) + meaning(at, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "File" && f.Name != "Dir" && f.Name != "Tree" {
				text += meaning(at+"."+f.Name, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			text += meaning(fmt.Sprintf("%s[%d]", at, i), v.Index(i))
		}
	default:
		text = fmt.Sprintf("%s %v\n", at, v)
	}
	return text
}

// expanded writes an element with names in full, comments and all, attributes sorted,
// blanks of the layout left out.
func expanded(el *etree.Element) string {
	if el == nil {
		return ""
	}
	var b strings.Builder
	var walk func(el *etree.Element)
	walk = func(el *etree.Element) {
		uri := el.NamespaceURI()
		if uri == "http://ssp-standard.org/SSP1/ParameterValues" {
			uri = xmltree.SSV
		}
		if uri == xmltree.SSD && slices.Contains([]string{"Annotation", "Unit", "BaseUnit", "Int8", "Float64", "Dimension"}, el.Tag) {
			uri = xmltree.SSC
		}
		fmt.Fprintf(&b, "<{%s}%s", uri, el.Tag)
		var attrs []string
		for i := range el.Attr {
			if _, ok := xmltree.Declaration(el.Attr[i]); !ok {
				attrs = append(attrs, fmt.Sprintf(" {%s}%s=%q", xmltree.Resolve(el, el.Attr[i].Space), el.Attr[i].Key, el.Attr[i].Value))
			}
		}
		slices.Sort(attrs)
		b.WriteString(strings.Join(attrs, "") + ">")
		for _, c := range el.Child {
			switch c := c.(type) {
			case *etree.CharData:
				if strings.TrimSpace(c.Data) != "" {
					b.WriteString(c.Data)
				}
			case *etree.Comment:
				b.WriteString("<!--" + c.Data + "-->")
			case *etree.ProcInst:
				if c.Target != "xml" {
					b.WriteString("<?" + c.Target + " " + c.Inst + "?>")
				}
			case *etree.Element:
				walk(c)
			}
		}
		b.WriteString("</>")
	}
	walk(el)
	return b.String()
}

// wholeDocument is a document with all that an SSD can hold, in the order of the
// schemas, and with comments.
//
//go:embed testdata/everything.ssd
var wholeDocument string

// A document in our layout comes back byte by byte: nothing is lost, nothing that
// means the same is rewritten.
func TestEncodeEverything(t *testing.T) {
	d := parse(t, []byte(wholeDocument))
	got := string(encode(t, d))
	if got != wholeDocument {
		t.Errorf("%s", firstDifference(wholeDocument, got))
	}
	if again := string(encode(t, d)); again != got {
		t.Error("encoding twice gives different bytes: the document was changed")
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%s\n%s", i+1, strings.Join(a[min(i, len(a)):min(i+4, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+4, len(b))], "\n"))
		}
	}
	return "no difference"
}

// Documents as they occur are read, written and read again: the same system, with
// everything in it, in an order and with namespaces that the schemas take.
func TestEncodeForeign(t *testing.T) {
	body := `<System name="s"><Elements><Component name="a" source="a.fmu"><Connectors><Connector kind="output" name="y"><c:Real unit="N"/></Connector></Connectors></Component>
	  <Component name="b" source="b.fmu"><Connectors><Connector kind="input" name="u"><c:Real/></Connector></Connectors></Component></Elements>
	  <Connections><Connection endElement="a" endConnector="y" startElement="b" startConnector="u"/></Connections></System>`
	for name, document := range map[string]string{
		"default namespace": `<SystemStructureDescription xmlns="` + xmltree.SSD + `" xmlns:c="` + xmltree.SSC + `" name="d" version="1.0">` + body + `</SystemStructureDescription>`,
		"odd prefix": `<q:SystemStructureDescription xmlns:q="` + xmltree.SSD + `" xmlns:q2="` + xmltree.SSC + `" name="d" version="1.0"><q:System name="s"><q:Connectors>` +
			`<q:Connector name="x" kind="input"><q2:Real/></q:Connector></q:Connectors></q:System></q:SystemStructureDescription>`,
		"undeclared prefix": `<ssd:SystemStructureDescription xmlns:ssd="` + xmltree.SSD + `" name="d" version="1.0"><ssd:System name="s"/>` +
			`<ssd:DefaultExperiment><ssd:Annotations><ssc:Annotation type="com.opensimulationplatform"><osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="1e-4"/></osp:Algorithm></ssc:Annotation></ssd:Annotations></ssd:DefaultExperiment></ssd:SystemStructureDescription>`,
		"wrong namespaces": `<ssd:SystemStructureDescription xmlns:ssd="` + xmltree.SSD + `" xmlns:ssv="http://ssp-standard.org/SSP1/ParameterValues" name="d" version="1.0"><ssd:System name="s">` +
			`<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="p"><ssv:Parameters><ssv:Parameter name="k"><ssv:Real value="1"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>` +
			`<ssd:Annotations><ssd:Annotation type="org.x"><y xmlns="urn:y" z="1"/></ssd:Annotation></ssd:Annotations></ssd:System><ssd:Units><ssd:Unit name="N"><ssd:BaseUnit kg="1" m="1" s="-2"/></ssd:Unit></ssd:Units></ssd:SystemStructureDescription>`,
		"types of version 2.0 in the namespace around": `<ssd:SystemStructureDescription xmlns:ssd="` + xmltree.SSD + `" name="d" version="2.0"><ssd:System name="s"><ssd:Connectors>` +
			`<ssd:Connector name="x" kind="input"><ssd:Int8/></ssd:Connector><ssd:Connector name="y" kind="input"><ssd:Float64/><ssd:Dimension size="2"/></ssd:Connector></ssd:Connectors></ssd:System></ssd:SystemStructureDescription>`,
		"odd order, empty lists": `<ssd:SystemStructureDescription xmlns:ssd="` + xmltree.SSD + `" xmlns:ssc="` + xmltree.SSC + `" name="d" version="1.0"><ssd:DefaultExperiment stopTime="2"/>` +
			`<ssd:System name="s"><ssd:Connections/><!-- before --><ssd:Elements><ssd:Component source="a.fmu" name="a" x:odd="1" xmlns:x="urn:x" vendor="2"><ssd:ElementGeometry x1="0" y1="0" x2="1" y2="1"/><ssd:Connectors/></ssd:Component></ssd:Elements></ssd:System></ssd:SystemStructureDescription>`,
	} {
		t.Run(name, func(t *testing.T) {
			l := &diag.List{}
			d := read(t, []byte(document), l)
			if d == nil {
				t.Fatal(l.Err())
			}
			data := encode(t, d)
			strict := &diag.List{Strict: true}
			again := read(t, data, strict)
			for _, f := range strict.Findings {
				if f.ID == "SD1T" || f.ID == "SD1S" || again == nil && f.ID == "SD1" {
					t.Errorf("the written document is not well: %v\n%s", f, data)
				}
			}
			again = parse(t, data)
			if diff := unlike(d, again); diff != "" {
				t.Errorf("another system: %s\n%s", diff, data)
			}
			if third := encode(t, again); !bytes.Equal(data, third) {
				t.Errorf("written again: %s", firstDifference(string(data), string(third)))
			}
			want, got := elements(d.Tree), elements(again.Tree)
			if !slices.Equal(want, got) {
				t.Errorf("elements %v\nbecame %v", want, got)
			}
		})
	}
}

// elements lists all elements with their attributes, without empty lists.
func elements(el *etree.Element) []string {
	var out []string
	lists := []string{"Connectors", "Elements", "Connections", "SignalDictionaries", "Units", "Enumerations", "ParameterBindings", "Annotations"}
	if !(slices.Contains(lists, el.Tag) && len(el.ChildElements()) == 0) {
		bare := el.Copy()
		for len(bare.Child) > 0 {
			bare.RemoveChildAt(0)
		}
		out = append(out, el.Tag+expanded(bare)[strings.IndexByte(expanded(bare), '}')+1:])
	}
	for _, k := range el.ChildElements() {
		out = append(out, elements(k)...)
	}
	slices.Sort(out)
	return out
}

// made is a document made by hand.
func made() *ssp.Document {
	one := 1.0
	return &ssp.Document{Name: "hand", System: &ssp.System{
		Common: ssp.Common{Name: "top"},
		Elements: []ssp.Element{
			&ssp.Component{Common: ssp.Common{Name: "a", Description: "first", Connectors: []ssp.Connector{{Name: "y", Kind: ssp.Output, Type: ssp.Real, Unit: "mm"}, {Name: "mode", Kind: ssp.Output, Type: ssp.Enumeration, Enumeration: "modes"}}}, Source: "resources/a.fmu", HasSource: true},
			&ssp.Component{Common: ssp.Common{Name: "b", Connectors: []ssp.Connector{{Name: "u", Kind: ssp.Input, Type: ssp.Real}, {Name: "n", Kind: ssp.Input, Type: ssp.Integer}, {Name: "free", Kind: ssp.Input}},
				Bindings: []ssp.Binding{{Source: "resources/b.ssv", Prefix: "b."}}}, Source: "resources/b.fmu", HasSource: true, Implementation: "CoSimulation"},
		},
		Connections: []ssp.Connection{
			{StartElement: "a", StartConnector: "y", EndElement: "b", EndConnector: "u", Transformation: &ssp.Transformation{Kind: ssp.Linear, Factor: 1, Offset: 0.5}},
			{StartElement: "a", StartConnector: "mode", EndElement: "b", EndConnector: "n", SuppressUnitConversion: true,
				Transformation: &ssp.Transformation{Kind: ssp.IntegerMapping, Numbers: map[int32]int32{2: 20, 1: 10}}},
		},
	},
		Enumerations: []ssp.EnumerationType{{Name: "modes", Items: map[string]int32{"off": 1, "on": 2}}},
		Units:        []unit.Definition{{Name: "mm", Base: &unit.Base{M: 1, Factor: 0.001}}},
		Experiment:   ssp.Experiment{Stop: &one},
	}
}

// madeText is what is written of it.
//
//go:embed testdata/made.ssd
var madeText string

func TestEncodeMade(t *testing.T) {
	if got := string(encode(t, made())); got != madeText {
		t.Error(firstDifference(madeText, got))
	}
	set := &ssp.ParameterSet{Name: "p", Parameters: []ssp.ParameterValue{
		{Name: "a.k", Value: ssp.Value{Type: ssp.Real, Real: 1e6}, Unit: "mm"}, {Name: "a.s", Value: ssp.Value{Type: ssp.String, Text: "two\nlines & <more>"}},
		{Name: "a.on", Value: ssp.Value{Type: ssp.Boolean, Bool: true}}, {Name: "a.mode", Value: ssp.Value{Type: ssp.Enumeration, Text: "off"}, Enumeration: "modes"},
	}, Units: made().Units, Enumerations: made().Enumerations}
	data, err := edit.EncodeSet(set)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ssp.ReadParameterSet(data, "p.ssv", nil)
	if err != nil {
		t.Fatal(err)
	}
	set.Version = "1.0"
	if diff := unlike(set, back); diff != "" {
		t.Errorf("%s\n%s", diff, data)
	}
	m := &ssp.ParameterMapping{Entries: []ssp.MappingEntry{{Source: "k", Target: "a.k", SuppressUnitConversion: true,
		Transformation: &ssp.Transformation{Kind: ssp.BooleanMapping, Factor: 1, Numbers: map[int32]int32{0: 1, 1: 0}}}}}
	if data, err = edit.EncodeMapping(m); err != nil {
		t.Fatal(err)
	}
	d := made()
	d.System.Elements[1].Base().Bindings = []ssp.Binding{{Set: set, Mapping: m}}
	m.Version = "1.0"
	if diff := unlike(m, parse(t, encode(t, d)).System.Elements[1].Base().Bindings[0].Mapping); diff != "" {
		t.Errorf("%s\n%s", diff, data)
	}
}

// What was edited in the model is edited in the document, and nothing else is.
func TestEncodeEdited(t *testing.T) {
	d := parse(t, []byte(wholeDocument))
	a := d.System.Elements[0].(*ssp.Component)
	a.Name = "renamed"
	d.System.Connections[0].StartElement, d.System.Connections[1].StartElement = "renamed", "renamed"
	inner := d.System.Elements[2].(*ssp.System)
	d.System.Elements = []ssp.Element{inner, &ssp.Component{Common: ssp.Common{Name: "a"}, Source: "new.fmu", HasSource: true}, d.System.Elements[3]}
	inner.Elements = []ssp.Element{a} // moved into the nested system
	d.System.Connections = append(d.System.Connections[1:], ssp.Connection{StartElement: "a", StartConnector: "q", EndElement: "inner", EndConnector: "n"})
	d.System.Bindings[0].Set.Parameters[0].Value.Real = 2
	d.System.Bindings[0].Set.Parameters = append(d.System.Bindings[0].Set.Parameters, ssp.ParameterValue{Name: "new", Value: ssp.Value{Type: ssp.Integer, Int: -1}})
	d.System.Bindings = append(d.System.Bindings, ssp.Binding{Source: "more.ssv"})
	d.Units = append(d.Units, unit.Definition{Name: "K", Base: &unit.Base{K: 1, Factor: 1}})
	start := -1.0
	d.Experiment.Start = &start
	d.Metadata["author"] = "D"
	d.System.Annotations = nil

	want := wholeDocument
	replace := func(old, new string) {
		t.Helper()
		if strings.Count(want, old) != 1 {
			t.Fatalf("%q stands %d times", old, strings.Count(want, old))
		}
		want = strings.Replace(want, old, new, 1)
	}
	cut := func(from, to string) string {
		t.Helper()
		i := strings.Index(want, from)
		j := i + strings.Index(want[i:], to) + len(to)
		part := want[i:j]
		want = want[:i] + want[j:]
		return part
	}
	replace(`author="A &amp; B"`, `author="D"`)
	moved := cut("      <!-- the first -->\n", "</ssd:Component>\n")
	moved = strings.TrimPrefix(moved, "      <!-- the first -->\n")
	cut(`      <ssd:Component name="placeholder"/>`, "\n")
	moved = strings.ReplaceAll(strings.Replace(moved, `name="a"`, `name="renamed"`, 1), "      <", "          <")
	inner1 := cut(`      <ssd:System name="inner">`, "</ssd:System>\n")
	inner1 = strings.Replace(inner1, "      </ssd:System>\n", "        <ssd:Elements>\n"+moved+"        </ssd:Elements>\n      </ssd:System>\n", 1)
	replace("      <ssd:SignalDictionaryReference ", inner1+"      <!-- the first -->\n      <ssd:Component name=\"a\" source=\"new.fmu\"/>\n      <ssd:SignalDictionaryReference ")
	cut(`      <ssd:Connection startElement="a" startConnector="y"`, "</ssd:Connection>\n")
	replace(`<ssd:Connection startElement="a" startConnector="e"`, `<ssd:Connection startElement="renamed" startConnector="e"`)
	replace("    </ssd:Connections>\n", `      <ssd:Connection startElement="a" startConnector="q" endElement="inner" endConnector="n"/>`+"\n    </ssd:Connections>\n")
	replace(`value="1.50"`, `value="2"`)
	replace("            </ssv:Parameters>\n", "              <ssv:Parameter name=\"new\">\n                <ssv:Integer value=\"-1\"/>\n              </ssv:Parameter>\n            </ssv:Parameters>\n")
	replace("    </ssd:ParameterBindings>\n", "      <ssd:ParameterBinding source=\"more.ssv\"/>\n    </ssd:ParameterBindings>\n")
	replace("  </ssd:Units>\n", "    <ssc:Unit name=\"K\">\n      <ssc:BaseUnit K=\"1\"/>\n    </ssc:Unit>\n  </ssd:Units>\n")
	replace(`startTime="0"`, `startTime="-1"`)
	i := strings.Index(want, "    <ssd:Annotations>\n      <ssc:Annotation type=\"org.openmodelica\"")
	want = want[:i] + want[i+strings.Index(want[i:], "    </ssd:Annotations>\n")+len("    </ssd:Annotations>\n"):]
	got := string(encode(t, d))
	if strings.ReplaceAll(got, "      <!-- the first -->\n", "") != strings.ReplaceAll(want, "      <!-- the first -->\n", "") {
		t.Errorf("%s", firstDifference(strings.ReplaceAll(want, "      <!-- the first -->\n", ""), strings.ReplaceAll(got, "      <!-- the first -->\n", "")))
	}
}

// Raw parts go from one document to another with their namespaces.
func TestEncodeBorrowed(t *testing.T) {
	from := parse(t, []byte(wholeDocument))
	d := made()
	d.System.Annotations = from.System.Annotations
	d.System.Dictionaries = from.System.Dictionaries
	d.System.Connections[0].Annotations = from.System.Connections[1].Annotations
	d.System.Elements[1].Base().Bindings = nil // its file is not there to be read
	d.System.Connections[1].Transformation.Factor = 1
	back := parse(t, encode(t, d))
	d.Version = "1.0"
	for _, e := range d.System.Elements { // defaults of the standard
		c := e.(*ssp.Component)
		c.Type = ssp.MIMEFMU
		if c.Implementation == "" {
			c.Implementation = "any"
		}
	}
	back.Metadata = nil
	if diff := unlike(d, back); diff != "" {
		t.Errorf("%s\n%s", diff, encode(t, d))
	}
}

// What cannot be written is named, and nothing is written.
func TestEncodeErrors(t *testing.T) {
	for want, change := range map[string]func(*ssp.Document){
		`/SystemStructureDescription: name="a\x00": XML cannot hold the character '\x00'`: func(d *ssp.Document) { d.Name = "a\x00" },
		"the name is empty": func(d *ssp.Document) { d.System.Elements[0].Base().Name = "" },
		`another element of this system is called "a" too`: func(d *ssp.Document) { d.System.Elements[1].Base().Name = "a" },
		"offset: NaN is not a finite number":               func(d *ssp.Document) { d.System.Connections[0].Transformation.Offset = math.NaN() },
		"the mapping has no entry":                         func(d *ssp.Document) { d.System.Connections[1].Transformation.Numbers = nil },
		"new arrays are not supported":                     func(d *ssp.Document) { d.System.Elements[0].Base().Connectors[0].Array = true },
		"new connections of array entries":                 func(d *ssp.Document) { d.System.Connections[0].Indexed = true },
		`the unit "mm" has no base unit`:                   func(d *ssp.Document) { d.Units[0].Base = nil },
		"the enumeration has no name":                      func(d *ssp.Document) { d.System.Elements[0].Base().Connectors[1].Enumeration = "" },
		"new signal dictionaries are not supported":        func(d *ssp.Document) { d.System.Dictionaries = []ssp.Dictionary{{Name: "x"}} },
		"the binding has neither a source nor a set":       func(d *ssp.Document) { d.System.Elements[1].Base().Bindings[0].Source = "" },
	} {
		d := made()
		change(d)
		data, err := edit.Encode(d)
		if err == nil || !strings.Contains(err.Error(), want) || data != nil {
			t.Errorf("%s: error %v, %d bytes", want, err, len(data))
		}
	}
	for want, v := range map[string]ssp.ParameterValue{
		"has no value, or one of a type":                 {Name: "k"},
		"new arrays are not supported":                   {Name: "k", Value: ssp.Value{Type: ssp.Real}, Array: true},
		"the name is empty":                              {Value: ssp.Value{Type: ssp.Real}},
		`the parameter "twice" occurs twice in this set`: {Name: "twice", Value: ssp.Value{Type: ssp.Real}},
	} {
		s := &ssp.ParameterSet{Name: "p", Parameters: []ssp.ParameterValue{{Name: "twice", Value: ssp.Value{Type: ssp.Real}}, v}}
		data, err := edit.EncodeSet(s)
		if err == nil || !strings.Contains(err.Error(), want) || data != nil {
			t.Errorf("%s: error %v, %d bytes", want, err, len(data))
		}
	}
}

// FuzzEncode: what is read can be written, means the same, and is written again as
// it is.
func FuzzEncode(f *testing.F) {
	f.Add([]byte(wholeDocument))
	f.Add([]byte(madeText))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := read(t, data, &diag.List{})
		if d == nil {
			return
		}
		written, err := edit.Encode(d)
		if err != nil {
			return // told
		}
		l := &diag.List{}
		again := read(t, written, l)
		if again == nil {
			t.Fatalf("what was written cannot be read: %v\n%s", l.Err(), written)
		}
		if diff := unlike(d, again); diff != "" {
			t.Fatalf("%s\n%s", diff, written)
		}
		third, err := edit.Encode(again)
		if err != nil || !bytes.Equal(third, written) {
			t.Fatalf("%v: %s", err, firstDifference(string(written), string(third)))
		}
	})
}

// The work of writing grows with the size of a document, not with its square, also for a
// document that was read and is changed.
func TestEncodeLarge(t *testing.T) {
	var fresh, changed [2]float64 // allocations
	for k, n := range []int{100, 1000} {
		system := &ssp.System{Common: ssp.Common{Name: "large"}}
		for i := range n {
			c := &ssp.Component{Common: ssp.Common{Name: fmt.Sprint("c", i)}, Source: "c.fmu", HasSource: true}
			for k := range 10 {
				u, y := fmt.Sprint("u", k), fmt.Sprint("y", k)
				c.Connectors = append(c.Connectors, ssp.Connector{Name: u, Kind: ssp.Input, Type: ssp.Real},
					ssp.Connector{Name: y, Kind: ssp.Output, Type: ssp.Real})
				system.Connections = append(system.Connections, ssp.Connection{StartElement: c.Name, StartConnector: y,
					EndElement: fmt.Sprint("c", (i+k+1)%n), EndConnector: u})
			}
			system.Elements = append(system.Elements, c)
		}
		var data, again []byte
		fresh[k] = testing.AllocsPerRun(1, func() { data = encode(t, &ssp.Document{Name: "large", System: system}) })
		read := parse(t, data)
		slices.Reverse(read.System.Elements)
		slices.Reverse(read.System.Connections)
		changed[k] = testing.AllocsPerRun(1, func() { again = encode(t, read) })
		if len(again) != len(data) {
			t.Errorf("%d and %d bytes", len(data), len(again))
		}
	}
	if fresh[1] > 12*fresh[0] || changed[1] > 12*changed[0] {
		t.Errorf("ten times the components take %.3g and %.3g times the allocations", fresh[1]/fresh[0], changed[1]/changed[0])
	}
}
