// Package ssptest has shared helpers for tests: pieces of documents, and fake FMUs.
package ssptest

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Asked returns the settings of the run with a name, each as "text source".
func Asked(n *ssp.Network, name string) (list []string) {
	for _, a := range n.Asked {
		if a.Name == name {
			list = append(list, a.Text+" "+a.From)
		}
	}
	return list
}

// Annotated is a system of one component with annotations in all places with settings.
func Annotated(component, system, experiment string) string {
	wrap := func(s string) string {
		if s == "" {
			return ""
		}
		return "<ssd:Annotations>" + s + "</ssd:Annotations>"
	}
	return Head + `<ssd:System name="top"><ssd:Elements><ssd:Component name="c" source="c.fmu">` + wrap(component) +
		`</ssd:Component></ssd:Elements>` + wrap(system) + `</ssd:System><ssd:DefaultExperiment>` + wrap(experiment) +
		`</ssd:DefaultExperiment>` + Tail
}

func Annotate(kind, content string) string {
	return fmt.Sprintf("<ssc:Annotation type=%q>%s</ssc:Annotation>", kind, content)
}

// Con is a connector.
func Con(name, kind, content string) string {
	return `<ssd:Connector name="` + name + `" kind="` + kind + `">` + content + `</ssd:Connector>`
}

func Conns(list ...string) string {
	return "<ssd:Connectors>" + strings.Join(list, "") + "</ssd:Connectors>"
}

// Link is a connection between "element/connector" or a connector of the system. Content that begins with "suppress"
// suppresses the conversion of units.
func Link(from, to, content string) string {
	end := func(which, name string) string {
		element, connector, inside := strings.Cut(name, "/")
		if !inside {
			element, connector = "", name
		}
		text := ` ` + which + `Connector="` + connector + `"`
		if inside {
			text += ` ` + which + `Element="` + element + `"`
		}
		return text
	}
	return "<ssd:Connection" + end("start", from) + end("end", to) + opened(content) + "</ssd:Connection>\n"
}

// opened ends a start tag before this content.
func opened(content string) string {
	if rest, ok := strings.CutPrefix(content, "suppress"); ok {
		return ` suppressUnitConversion="true">` + rest
	}
	return ">" + content
}

// Sys is a system: before is the content before its elements.
func Sys(name, before, elements string, connections ...string) string {
	text := `<ssd:System name="` + name + `">` + before
	if elements != "" {
		text += "<ssd:Elements>" + elements + "</ssd:Elements>"
	}
	if len(connections) > 0 {
		text += "<ssd:Connections>" + strings.Join(connections, "") + "</ssd:Connections>"
	}
	return text + "</ssd:System>\n"
}

func Comp(name, content string) string {
	return `<ssd:Component name="` + name + `" source="` + name + `.fmu">` + content + `</ssd:Component>`
}

// Mapped is an entry of a mapping, with content as in Link.
func Mapped(source, target, content string) string {
	return `<ssm:MappingEntry source="` + source + `" target="` + target + `"` + opened(content) + `</ssm:MappingEntry>`
}

// Told returns the findings of some rules, as ID and message.
func Told(l *diag.List, rules ...string) (out []string) {
	for _, f := range l.Findings {
		if slices.Contains(rules, f.ID) {
			out = append(out, f.ID+" "+f.Message)
		}
	}
	return out
}

// Archived returns a zip archive with these entries: name, content, name, content …
func Archived(t testing.TB, entries ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.Create(entries[i])
		if err == nil {
			_, err = w.Write([]byte(entries[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func Near(a, b float64) bool { return a-b <= 1e-12*b && b-a <= 1e-12*b }

// Open opens a system without errors, and closes it when the test ends.
func Open(t testing.TB, path string, l *diag.List, dialects ...ssp.Dialect) *ssp.Package {
	t.Helper()
	p, err := ssp.Open(path, l, dialects...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Pack writes an archive as a .ssp and returns its path.
func Pack(t testing.TB, entries ...string) string {
	t.Helper()
	return filepath.Join(Folder(t, map[string]string{"system.ssp": Archived(t, entries...)}), "system.ssp")
}

func Single(source string) string {
	return Head + Sys("top", "", fmt.Sprintf(`<ssd:Component name="c" source=%q/>`, source)) + Tail
}

// Generous has every variable: those that connectors declare, and Real inputs.
type Generous struct{}

func (Generous) Variables(c *ssp.FlatComponent) (ssp.VariableSet, error) {
	set := make(FakeSet)
	for _, k := range c.Connectors {
		t := k.Type
		if t == ssp.Unspecified || t > ssp.Enumeration {
			t = ssp.Real
		}
		set[k.Name] = ssp.Variable{Name: k.Name, Type: t, Causality: string(k.Kind), Settable: k.Kind != ssp.Output}
	}
	for _, name := range []string{"p", "k", "u"} {
		if _, ok := set[name]; !ok {
			set[name] = In(name, ssp.Real)
		}
	}
	return set, nil
}

// Inline is a binding with an inline set and, if it is not "", an inline mapping.
func Inline(attrs, parameters, mapping string) string {
	text := "<ssd:ParameterBinding" + attrs + `><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="s"><ssv:Parameters>` +
		parameters + "</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues>"
	if mapping != "" {
		text += `<ssd:ParameterMapping><ssm:ParameterMapping version="1.0">` + mapping + "</ssm:ParameterMapping></ssd:ParameterMapping>"
	}
	return text + "</ssd:ParameterBinding>\n"
}

// SetFile is a set of its own: parameters, and what comes after the list of them.
func SetFile(parameters, more string) string {
	return `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="` + xmltree.SSV + `" xmlns:ssc="` + xmltree.SSC + `"><ssv:Parameters>` +
		parameters + "</ssv:Parameters>" + more + "</ssv:ParameterSet>"
}

// Length is a list with one unit, of this factor to the metre; "" without a factor.
func Length(prefix, name, factor string) string {
	if factor == "" {
		return ""
	}
	return fmt.Sprintf(`<%s:Units><ssc:Unit name=%q><ssc:BaseUnit m="1" factor=%q/></ssc:Unit></%[1]s:Units>`, prefix, name, factor)
}

func Parameter(name, value string) string {
	return fmt.Sprintf(`<ssv:Parameter name=%q>%s</ssv:Parameter>`, name, value)
}

func RealValue(v float64, unit string) string {
	if unit == "" {
		return fmt.Sprintf(`<ssv:Real value="%v"/>`, v)
	}
	return fmt.Sprintf(`<ssv:Real value="%v" unit=%q/>`, v, unit)
}

func Bindings(list ...string) string {
	if text := strings.Join(list, ""); text != "" {
		return "<ssd:ParameterBindings>" + text + "</ssd:ParameterBindings>"
	}
	return ""
}

const Units = `<ssd:Units>
  <ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>
  <ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>
  <ssc:Unit name="km"><ssc:BaseUnit m="1" factor="1000"/></ssc:Unit>
  <ssc:Unit name="K"><ssc:BaseUnit K="1"/></ssc:Unit>
  <ssc:Unit name="degC"><ssc:BaseUnit K="1" offset="273.15"/></ssc:Unit>
  <ssc:Unit name="degF"><ssc:BaseUnit K="1" factor="0.5" offset="255"/></ssc:Unit>
</ssd:Units>
`

// Names are Units and enumerations.
const Names = `<ssd:Enumerations>
  <ssc:Enumeration name="abc"><ssc:Item name="A" value="1"/><ssc:Item name="B" value="2"/><ssc:Item name="C" value="7"/></ssc:Enumeration>
  <ssc:Enumeration name="cba"><ssc:Item name="A" value="7"/><ssc:Item name="B" value="2"/><ssc:Item name="C" value="1"/></ssc:Enumeration>
  <ssc:Enumeration name="xyz"><ssc:Item name="X" value="10"/><ssc:Item name="Y" value="20"/><ssc:Item name="Z" value="30"/></ssc:Enumeration>
</ssd:Enumerations>
` + Units

func RealType(unit string) string {
	if unit == "" {
		return "<ssc:Real/>"
	}
	return fmt.Sprintf("<ssc:Real unit=%q/>", unit)
}

func LinearTransform(factor, offset float64) string {
	return fmt.Sprintf(`<ssc:LinearTransformation factor="%v" offset="%v"/>`, factor, offset)
}

func Mapping(kind string, pairs ...any) string {
	text := "<ssc:" + kind + "MappingTransformation>"
	for i := 0; i < len(pairs); i += 2 {
		text += fmt.Sprintf(`<ssc:MapEntry source="%v" target="%v"/>`, pairs[i], pairs[i+1])
	}
	return text + "</ssc:" + kind + "MappingTransformation>"
}

// Fakes resolves the variables of components by path.
type Fakes map[string][]ssp.Variable

type FakeSet map[string]ssp.Variable

func (s FakeSet) Lookup(name string) (ssp.Variable, bool) { v, ok := s[name]; return v, ok }

func (s FakeSet) All() iter.Seq[ssp.Variable] { return maps.Values(s) }

// Variables returns the set for every FMU.
func (s FakeSet) Variables(*ssp.FlatComponent) (ssp.VariableSet, error) { return s, nil }

func (f Fakes) Variables(c *ssp.FlatComponent) (ssp.VariableSet, error) {
	vars, ok := f[c.Path]
	if !ok {
		return nil, errors.New("no fake for " + c.Path)
	}
	set := make(FakeSet)
	for _, v := range vars {
		set[v.Name] = v
	}
	return set, nil
}

const Head = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="test"
  xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"
  xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
  xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
  xmlns:ms="https://github.com/macrostep/macrostep/ssp/1"
  xmlns:osp="http://opensimulationplatform.com/SSP/OSPAnnotations"
  xmlns:oms="https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd">
`

// Head2 is Head for a document of version 2.0.
var Head2 = strings.Replace(Head, `version="1.0" name`, `version="2.0" name`, 1)

const Tail = `
</ssd:SystemStructureDescription>
`

// Folder writes files into a folder of the test.
func Folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Flatten opens a folder with this document and further files, and flattens it.
func Flatten(t testing.TB, document string, files map[string]string, r ssp.Resolver, strict bool,
	dialects ...ssp.Dialect) (*ssp.Network, *diag.List, error) {
	t.Helper()
	return FlattenAs(t, ssp.DocumentName, document, files, r, strict, dialects...)
}

// FlattenAs is Flatten for a document of this name.
func FlattenAs(t testing.TB, name, document string, files map[string]string, r ssp.Resolver, strict bool,
	dialects ...ssp.Dialect) (*ssp.Network, *diag.List, error) {
	t.Helper()
	all := map[string]string{name: document}
	maps.Copy(all, files)
	l := &diag.List{Strict: strict}
	p, err := ssp.Open(Folder(t, all), l, dialects...)
	if err != nil {
		return nil, l, err
	}
	n, err := p.Flatten(r, l)
	return n, l, errors.Join(err, p.Close())
}

// Sound is Flatten for a document without errors.
func Sound(t testing.TB, document string, files map[string]string, r ssp.Resolver, dialects ...ssp.Dialect) (*ssp.Network, *diag.List) {
	t.Helper()
	n, l, err := Flatten(t, document, files, r, false, dialects...)
	if err != nil {
		t.Fatal(err)
	}
	return n, l
}

func Settings(n *ssp.Network) map[string]ssp.Setting {
	out := make(map[string]ssp.Setting)
	for _, s := range n.Settings {
		out[n.Components[s.Component].Path+"."+s.Variable] = s
	}
	return out
}

// Values lists the settings, each as "variable=value".
func Values(n *ssp.Network) string {
	var list []string
	for _, s := range n.Settings {
		list = append(list, s.Variable+"="+s.Value.String())
	}
	return strings.Join(list, " ")
}

func Links(n *ssp.Network) map[string]ssp.FlatConnection {
	out := make(map[string]ssp.FlatConnection)
	for _, c := range n.Connections {
		out[n.Components[c.From.Component].Path+"."+c.From.Variable+" → "+n.Components[c.To.Component].Path+"."+c.To.Variable] = c
	}
	return out
}

var (
	Metre  = unit.Base{M: 1, Factor: 1}
	MM     = unit.Base{M: 1, Factor: 0.001}
	KM     = unit.Base{M: 1, Factor: 1000}
	Kelvin = unit.Base{K: 1, Factor: 1}
	DegC   = unit.Base{K: 1, Factor: 1, Offset: 273.15}
	DegF   = unit.Base{K: 1, Factor: 0.5, Offset: 255}
)

func In(name string, t ssp.ValueType) ssp.Variable {
	return ssp.Variable{Name: name, Type: t, Causality: "input", Settable: true}
}

func Out(name string, t ssp.ValueType) ssp.Variable {
	return ssp.Variable{Name: name, Type: t, Causality: "output"}
}

func Par(name string, t ssp.ValueType) ssp.Variable {
	return ssp.Variable{Name: name, Type: t, Causality: "parameter", Variability: "fixed", Initial: "exact", Settable: true}
}

func With(v ssp.Variable, name string, b unit.Base) ssp.Variable {
	v.Unit, v.UnitBase = name, &b
	return v
}

func Enum(v ssp.Variable, items map[string]int64) ssp.Variable {
	v.Items = items
	return v
}

// Base is a sound system with something of everything, BaseSet its values and BaseMap the mapping of them. Package
// validate has an example for each rule that breaks it in one place. Base is without its annotation, which needs a dialect.
var (
	Base             = regexp.MustCompile(`(?s) *<ssd:Annotations>.*</ssd:Annotations>\n`).ReplaceAllString(shared("SystemStructure.ssd"), "")
	BaseSet, BaseMap = shared("set.ssv"), shared("map.ssm")
)

func shared(name string) string {
	for _, root := range []string{"..", "../.."} { // tests run in the folder of their package
		if data, err := os.ReadFile(filepath.Join(root, "master", "validate", "testdata", "system", name)); err == nil {
			return strings.ReplaceAll(string(data), "\r\n", "\n")
		}
	}
	panic("there is no " + name + " of package validate")
}

// Refused flattens a document that must have an error of this rule with this text.
func Refused(t testing.TB, document string, files map[string]string, r ssp.Resolver, id, message string,
	dialects ...ssp.Dialect) *diag.List {
	t.Helper()
	n, l, err := Flatten(t, document, files, r, false, dialects...)
	if n != nil || !diag.Has(err, id) || !strings.Contains(err.Error(), message) {
		t.Errorf("error %v, want %s with %q", err, id, message)
	}
	return l
}

// IDs lists the rules of findings.
func IDs(findings []diag.Finding) string {
	var ids []string
	for _, f := range findings {
		ids = append(ids, f.ID)
	}
	return strings.Join(ids, " ")
}

// Entries lists files as Pack takes them, sorted by name.
func Entries(files map[string]string) (entries []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, name, files[name])
	}
	return entries
}
