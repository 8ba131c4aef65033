package edit_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
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
// different; "" if they are the same. Places and XML are no part of it.
func unlike(a, b any) string {
	if x, y := meaning("", reflect.ValueOf(a)), meaning("", reflect.ValueOf(b)); x != y {
		return firstDifference(x, y)
	}
	return ""
}

// meaning lists the values in a part of a document, one a line.
func meaning(at string, v reflect.Value) (text string) {
	if _, ok := v.Interface().(ssp.Place); ok {
		return ""
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			text = fmt.Sprintf("%s %s\n", at, v.Elem().Type()) + meaning(at, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !slices.Contains([]string{"File", "Dir", "Tree"}, f.Name) {
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

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%s\n%s", i+1, strings.Join(a[min(i, len(a)):min(i+4, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+4, len(b))], "\n"))
		}
	}
	return "no difference"
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
				Transformation: &ssp.Transformation{Kind: ssp.IntegerMapping, Numbers: map[int64]int64{2: 20, 1: 10}}},
		},
	},
		Enumerations: []ssp.EnumerationType{{Name: "modes", Items: map[string]int64{"off": 1, "on": 2}}},
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
	set := &ssp.ParameterSet{Version: "1.0", Name: "p", Parameters: []ssp.ParameterValue{
		{Name: "a.k", Value: ssp.Value{Type: ssp.Real, Real: 1e6}, Unit: "mm"}, {Name: "a.s", Value: ssp.Value{Type: ssp.String, Text: "two\nlines & <more>"}},
		{Name: "a.on", Value: ssp.Value{Type: ssp.Boolean, Bool: true}}, {Name: "a.mode", Value: ssp.Value{Type: ssp.Enumeration, Text: "off"}, Enumeration: "modes"},
		{Name: "a.n", Value: ssp.Value{Type: ssp.Integer, Int: -1 << 63}}, {Name: "a.b", Value: ssp.Value{Type: ssp.Binary, Text: "00ff"}},
	}, Units: made().Units, Enumerations: made().Enumerations}
	m := &ssp.ParameterMapping{Version: "1.0", Entries: []ssp.MappingEntry{{Source: "k", Target: "a.k", SuppressUnitConversion: true,
		Transformation: &ssp.Transformation{Kind: ssp.BooleanMapping, Factor: 1, Numbers: map[int64]int64{0: 1, 1: 0}}}}}
	d := made()
	d.System.Elements[1].Base().Bindings = []ssp.Binding{{Set: set, Mapping: m}}
	d.Enumerations[0].Items["large"] = 1<<53 + 1
	read := parse(t, encode(t, d))
	back := read.System.Elements[1].Base().Bindings[0]
	set.Version = "2.0" // as an Int64 needs
	if read.Enumerations[0].Items["large"] != 1<<53+1 {
		t.Errorf("items %v", read.Enumerations[0].Items)
	}
	if diff := unlike(set, back.Set) + unlike(m, back.Mapping); diff != "" {
		t.Errorf("%s\n%s", diff, encode(t, d))
	}
}

// What cannot be written is named, and nothing is written.
func TestEncodeErrors(t *testing.T) {
	for want, change := range map[string]func(*ssp.Document){
		`/SystemStructureDescription: name="a\x00": XML cannot hold the character '\x00'`: func(d *ssp.Document) { d.Name = "a\x00" },
		"the name is empty":                          func(d *ssp.Document) { d.System.Elements[0].Base().Name = "" },
		`the name "a" occurs twice in this list`:     func(d *ssp.Document) { d.System.Elements[1].Base().Name = "a" },
		"offset: NaN is not a finite number":         func(d *ssp.Document) { d.System.Connections[0].Transformation.Offset = math.NaN() },
		"the mapping has no entry":                   func(d *ssp.Document) { d.System.Connections[1].Transformation.Numbers = nil },
		"arrays cannot be written":                   func(d *ssp.Document) { d.System.Elements[0].Base().Connectors[0].Array = true },
		"connections of array entries":               func(d *ssp.Document) { d.System.Connections[0].EndIndices = []int{1} },
		`the unit "mm" has no base unit`:             func(d *ssp.Document) { d.Units[0].Base = nil },
		"the enumeration has no name":                func(d *ssp.Document) { d.System.Elements[0].Base().Connectors[1].Enumeration = "" },
		"signal dictionaries cannot be written":      func(d *ssp.Document) { d.System.Dictionaries = []ssp.Dictionary{{Name: "x"}} },
		"the binding has neither a source nor a set": func(d *ssp.Document) { d.System.Elements[1].Base().Bindings[0].Source = "" },
	} {
		d := made()
		change(d)
		data, err := edit.Encode(d)
		if err == nil || !strings.Contains(err.Error(), want) || data != nil {
			t.Errorf("%s: error %v, %d bytes", want, err, len(data))
		}
	}
	for want, v := range map[string]ssp.ParameterValue{
		"has no value, or one of a type":      {Name: "k"},
		"arrays cannot be written":            {Name: "k", Value: ssp.Value{Type: ssp.Real}, Array: true},
		"the name is empty":                   {Value: ssp.Value{Type: ssp.Real}},
		`the name "twice" occurs twice`:       {Name: "twice", Value: ssp.Value{Type: ssp.Real}},
		"an enumeration item given by number": {Name: "k", Value: ssp.Value{Type: ssp.Enumeration}},
	} {
		d := made()
		d.System.Bindings = []ssp.Binding{{Set: &ssp.ParameterSet{Name: "p", Parameters: []ssp.ParameterValue{{Name: "twice", Value: ssp.Value{Type: ssp.Real}}, v}}}}
		data, err := edit.Encode(d)
		if err == nil || !strings.Contains(err.Error(), want) || data != nil {
			t.Errorf("%s: error %v, %d bytes", want, err, len(data))
		}
	}
	if _, err := edit.Encode(parse(t, []byte(bare(madeText)))); err == nil || !strings.Contains(err.Error(), "test.ssd was read from a file") {
		t.Errorf("a document that was read: %v", err)
	}
}

// bare is a document without references to other files.
func bare(text string) string {
	return strings.Replace(text, `<ssd:ParameterBinding source="resources/b.ssv" prefix="b."/>`, "", 1)
}

// fresh makes a document that was read one that Encode writes: without annotations, and with
// nothing that has no effect.
func fresh(d *ssp.Document) *ssp.Document {
	plain := func(t *ssp.Transformation) {
		if t != nil && t.Kind != ssp.Linear {
			t.Factor, t.Offset = 1, 0
		}
	}
	d.Tree, d.Annotations, d.Experiment.Annotations = nil, nil, nil
	maps.DeleteFunc(d.Metadata, func(_, v string) bool { return v == "" })
	for e := range d.System.All() {
		e.Base().Annotations = nil
		for _, b := range e.Base().Bindings {
			if b.Mapping != nil {
				for i := range b.Mapping.Entries {
					plain(b.Mapping.Entries[i].Transformation)
				}
			}
		}
		if s, ok := e.(*ssp.System); ok {
			for i := range s.Connections {
				s.Connections[i].Annotations = nil
				plain(s.Connections[i].Transformation)
			}
		}
	}
	return d
}

// FuzzEncode: what is written means the same when it is read, and is written again as it is.
func FuzzEncode(f *testing.F) {
	f.Add([]byte(bare(madeText)))
	f.Add([]byte(inline))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := read(t, data, &diag.List{})
		if d == nil {
			return
		}
		written, err := edit.Encode(fresh(d))
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
		third, err := edit.Encode(fresh(again))
		if err != nil || !bytes.Equal(third, written) {
			t.Fatalf("%v: %s", err, firstDifference(string(written), string(third)))
		}
	})
}

// inline is a document with a set, a mapping and a nested system.
var inline = Head + Sys("s", Bindings(`<ssd:ParameterBinding prefix="p."><ssd:ParameterValues>`+
	strings.TrimPrefix(BaseSet, `<?xml version="1.0"?>`)+`</ssd:ParameterValues><ssd:ParameterMapping>`+
	`<ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="p.gain" target="k"><ssc:LinearTransformation factor="2"/></ssm:MappingEntry>`+
	`</ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding>`), Sys("inner", "", "")) + Tail

// The work of writing grows with the size of a document, not with its square.
func TestEncodeLarge(t *testing.T) {
	var work [2]float64 // allocations
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
		work[k] = testing.AllocsPerRun(1, func() { encode(t, &ssp.Document{Name: "large", System: system}) })
	}
	if work[1] > 12*work[0] {
		t.Errorf("ten times the components take %.3g times the allocations", work[1]/work[0])
	}
}
