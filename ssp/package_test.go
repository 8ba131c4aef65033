package ssp_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// The three forms of a system give the same network, and Close removes what
// Open has unpacked.
func TestForms(t *testing.T) {
	files := map[string]string{ssp.DocumentName: Single("resources/c%20d.fmu"), "resources/c d.fmu": "x", "other/name.ssd": ""}
	dir := Folder(t, files)
	zipped := Pack(t, "resources/", "", ssp.DocumentName, files[ssp.DocumentName], "resources/c d.fmu", "x", "Variant.ssd", "")
	for _, path := range []string{dir, filepath.Join(dir, ssp.DocumentName), zipped} {
		l := &diag.List{}
		p := Open(t, path, l)
		if err := p.CheckSources(l); err != nil {
			t.Error(err)
		}
		c := p.Components()
		if len(c) != 1 || c[0].Path != "c" || filepath.Base(c[0].Source) != "c d.fmu" || !filepath.IsAbs(p.Dir) {
			t.Errorf("%s: %+v in %s", path, c, p.Dir)
		}
		if _, err := os.ReadFile(c[0].Source); err != nil {
			t.Error(err)
		}
		if path == zipped {
			if len(l.Findings) != 1 || l.Findings[0].ID != "SD2V" || !strings.Contains(l.Findings[0].Message, "Variant.ssd") {
				t.Errorf("findings %v", l.Findings)
			}
			if want := filepath.Join(zipped, ssp.DocumentName); p.Root.File != want {
				t.Errorf("file %s, want %s", p.Root.File, want)
			}
		}
		if err := p.Close(); err != nil { // Open closes it a second time
			t.Error(err)
		}
		if _, err := os.Stat(p.Dir); (err != nil) != (path == zipped) {
			t.Errorf("%s: after Close %v", path, err)
		}
	}
}

// A variant stands behind the package or folder, as in documents (ssp 14). A file whose
// name has such a character is itself.
func TestVariants(t *testing.T) {
	files := map[string]string{ssp.DocumentName: Single("a.fmu"), "Other.ssd": strings.Replace(Single("b.fmu"), `name="test"`, `name="other"`, 1), "a.fmu": "x", "b.fmu": "x"}
	dir := Folder(t, files)
	zipped := Pack(t, Entries(files)...)
	odd := filepath.Join(Folder(t, map[string]string{"odd#1.ssd": Single("a.fmu")}), "odd#1.ssd")
	for path, want := range map[string]string{dir: "test a.fmu", dir + "#Other.ssd": "other b.fmu", zipped + "#Other.ssd": "other b.fmu",
		zipped + "#" + ssp.DocumentName: "test a.fmu", zipped + "#": "test a.fmu", odd: "test a.fmu"} {
		p := Open(t, path, nil)
		if got := p.Root.Name + " " + p.Components()[0].URI; got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	for path, message := range map[string]string{dir + "#None.ssd": "there is no None.ssd, only Other.ssd, SystemStructure.ssd", zipped + "#sub/x.ssd": "at the root",
		zipped + "#..": "no readable ..", odd + "#x.ssd": "variants are documents", filepath.Join(dir, "none.ssp#x.ssd"): "cannot be read"} {
		if _, err := ssp.Open(path, nil); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: error %v, want %q", path, err, message)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // nobody else's folders are counted
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	dir := Folder(t, map[string]string{"a.ssd": Single("c.fmu"), "text": "hello", "empty.ssd": ""})
	for path, message := range map[string]string{
		filepath.Join(dir, "none.ssp"):  "cannot be read",
		dir:                             "there is no SystemStructure.ssd, only a.ssd, empty.ssd",
		filepath.Join(dir, "text"):      "not well-formed",
		filepath.Join(dir, "empty.ssd"): "it is empty",
		Pack(t, "a.fmu", "x"):           "there is no readable SystemStructure.ssd",
		Pack(t, "../a", "x"):            "../a",
		Pack(t):                         "there is no readable SystemStructure.ssd",
		Pack(t, "car/"+ssp.DocumentName, Single("c.fmu")): `there is car/SystemStructure.ssd: it must be at the root`,
		Pack(t, "systemStructure.SSD", Single("c.fmu")):   `there is "systemStructure.SSD": file names are case-sensitive`,
	} {
		before := unpacked(t)
		p, err := ssp.Open(path, nil)
		if err == nil || p != nil || !strings.Contains(err.Error(), message) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: error %v, want one with %q", path, err, message)
		}
		if after := unpacked(t); len(after) != len(before) {
			t.Errorf("%s: left a folder: %v", path, after)
		}
	}
}

// unpacked lists the private folders of this package.
func unpacked(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), archive.Prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Where an FMU is looked for, and what is said if it is not there (ssp 12).
func TestSources(t *testing.T) {
	outside := Folder(t, map[string]string{"x.fmu": "x", "system/" + ssp.DocumentName: Single("../x.fmu")})
	for _, c := range []struct {
		name, path, id string
		level          diag.Level
		message        string
	}{
		{"outside a folder", filepath.Join(outside, "system"), "SD2O", diag.Info, "lies outside"},
		{"outside a package", Pack(t, ssp.DocumentName, Single("../x.fmu")), "SD2", diag.Error, "leads out of the package"},
		{"missing", Folder(t, map[string]string{ssp.DocumentName: Single("x.fmu")}), "SD2", diag.Error, `"x.fmu" of component "c" cannot be read`},
		{"beside", Folder(t, map[string]string{ssp.DocumentName: Single("../../lib/x.fmu"), "x.fmu": "x"}), "SD2", diag.Error, `at "x.fmu"`},
		{"other letters", Pack(t, ssp.DocumentName, Single("resources/x.fmu"), "resources/X.fmu", "x"), "SD2", diag.Error, `there is "X.fmu": file names are case-sensitive`},
		{"in resources", Pack(t, ssp.DocumentName, Single("x.fmu"), "resources/x.fmu", "x"), "SD2", diag.Error, `at "resources/x.fmu"`},
		{"no unpacked FMU", Folder(t, map[string]string{ssp.DocumentName: Single("lib"), "lib/readme": ""}), "SD2", diag.Error, `"lib" of component "c" is a folder without modelDescription.xml`},
		{"scheme", Folder(t, map[string]string{ssp.DocumentName: Single("https://far.away/x.fmu")}), "SD2", diag.Error, "not relative"},
		{"backslash", Folder(t, map[string]string{ssp.DocumentName: Single(`resources\x.fmu`)}), "SD2", diag.Error, "separate folders by /"},
		{"part of an FMU", Folder(t, map[string]string{ssp.DocumentName: Single("x.fmu#model")}), "SD2", diag.Error, "which only systems have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, l := Open(t, c.path, nil), &diag.List{}
			err := p.CheckSources(l)
			if len(l.Findings) != 1 || l.Findings[0].ID != c.id || l.Findings[0].Level != c.level ||
				!strings.Contains(l.Findings[0].Message, c.message) || l.Findings[0].Line == 0 || l.Findings[0].Remedy == "" {
				t.Errorf("findings %v, want %s with %q", l.Findings, c.id, c.message)
			}
			if (err != nil) != (c.level == diag.Error) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Systems, and what is no XML, are no documents of CheckPart; errors in a set are reported.
func TestCheckPart(t *testing.T) {
	for _, c := range []struct {
		text, root string
		known      bool
		finding    string
	}{
		{BaseSet, "ParameterSet", true, ""},
		{strings.Replace(BaseSet, `name="height"`, `name="gain"`, 1), "ParameterSet", true, "SD16T"},
		{Base, "SystemStructureDescription", false, "SD1"},
		{"hello", "", false, "SD1"},
		{"", "", false, "SD1"},
	} {
		l := &diag.List{}
		root, known := ssp.CheckPart([]byte(c.text), "x.xml", l)
		if root != c.root || known != c.known || IDs(l.Findings) != c.finding {
			t.Errorf("%.40q: %q, %t, findings %v, want %s", c.text, root, known, l.Findings, c.finding)
		}
	}
}

// Files of any kind outside of the folder of a document are reported where it refers to
// them (ssp 12).
func TestFilesOutside(t *testing.T) {
	document := Head + `<ssd:System name="top"><ssd:ParameterBindings><ssd:ParameterBinding source="../set.ssv"/>
<ssd:ParameterBinding source="in/set.ssv"/></ssd:ParameterBindings><ssd:Elements>
<ssd:Component name="out" type="application/x-ssp-definition" source="../box.ssd"/>
<ssd:Component name="in" type="application/x-ssp-definition" source="in/box.ssd"/></ssd:Elements>
<ssd:Connections><ssd:Connection startElement="in" startConnector="y" endElement="out" endConnector="u"/></ssd:Connections></ssd:System>` + Tail
	set := SetFile("", "")
	box := func(connector, set string) string {
		return Head + Sys("box", Conns(connector)+Bindings(`<ssd:ParameterBinding source="`+set+`"/>`), "") + Tail
	}
	dir := Folder(t, map[string]string{"set.ssv": set, "box.ssd": box(Con("u", "input", ""), "set.ssv"),
		"system/" + ssp.DocumentName: document, "system/set.ssv": set, "system/in/set.ssv": set, "system/in/box.ssd": box(Con("y", "output", ""), "../set.ssv")})
	l := &diag.List{}
	Open(t, filepath.Join(dir, "system"), l)
	first := strings.Count(Head, "\n") + 1
	want := []string{
		fmt.Sprint(first, ` the file "../set.ssv" lies outside`),
		fmt.Sprint(first+2, ` the source "../box.ssd" of component "out" lies outside`),
		fmt.Sprint(first, ` the file "set.ssv" lies outside`), // of the box outside, beside it
	}
	var got []string
	for _, f := range l.Findings {
		if text, _, is := strings.Cut(f.Message, " the folder"); is && f.ID == "SD2O" && f.Level == diag.Info {
			got = append(got, fmt.Sprint(f.Line, " ", text))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("findings %v, want %q", l.Findings, want)
	}
}

// missing is a resolver that opens the file.
type missing struct{}

func (missing) Variables(c *ssp.FlatComponent) (ssp.VariableSet, error) {
	_, err := os.ReadFile(c.Source)
	return FakeSet{}, err
}

// A resolver that does not find the file gets the same hint.
func TestResolverMisses(t *testing.T) {
	p := Open(t, Folder(t, map[string]string{ssp.DocumentName: Single("x.fmu"), "resources/x.fmu": ""}), nil)
	if _, err := p.Flatten(missing{}, nil); !diag.Has(err, "SD2") || !strings.Contains(err.Error(), `at "resources/x.fmu"`) {
		t.Errorf("error %v", err)
	}
	if _, err := p.Flatten(Fakes{}, nil); err == nil || !strings.Contains(err.Error(), `component "c": no fake for c`) {
		t.Errorf("error %v", err)
	}
}

// No document, dictionary, set or mapping makes the reader or the flattener panic, and what
// is refused gives no network.
func FuzzDocument(f *testing.F) {
	whole, files, _ := everything()
	set, mapping, signals := files["set.ssv"], files["map.ssm"], files["d.ssb"]
	for _, text := range []string{
		Base, whole,
		chain([4]string{RealType("m"), RealType("mm"), RealType(""), RealType("m")}, [3]string{LinearTransform(2, 1), Mapping("Integer", 1, 2), ""}),
		propagate(Bindings(Inline(` prefix="P"`, Parameter("", RealValue(1, "m")), "")), "", ""),
		Annotated(Annotate(ssp.OwnType, `<ms:Component stateless="1"/>`), Annotate("org.tool", `<x:Step xmlns:x="urn:x"/>`),
			Annotate(ssp.OwnType, `<ms:Settings version="1"><ms:Rate component="c" ratio="2"/></ms:Settings>`)),
		around(`source="#box"`, itsConnectors, "", Sys("library", "", system(gain("box", "c.fmu")))),
		Head + bus(dictionary(entry("x", "<ssc:Real/>")), RealType("mm"), "", LinearTransform(2, 1), "") + Units + Tail,
	} {
		f.Add(text, set, mapping, signals)
	}
	f.Add(whole, strings.Replace(set, "1.0", "2.0", 1), strings.Replace(mapping, "gain", "other", 1),
		dictionary(entry("n", `<ssc:Enumeration name="e"/>`), entry("m", `<ssc:Real unit="u"/><ssc:Dimension size="2"/>`)))
	f.Add(whole, mapping, signals, set)
	f.Fuzz(func(t *testing.T, document, set, mapping, signals string) {
		n, _, err := Flatten(t, document, map[string]string{"set.ssv": set, "map.ssm": mapping, "d.ssb": signals}, Generous{}, false, toolDialect)
		if (n == nil) != (err != nil) {
			t.Fatalf("network %v, error %v", n, err)
		}
		if n == nil {
			return
		}
		for _, c := range n.Connections {
			if c.From.Component >= len(n.Components) || c.To.Component >= len(n.Components) {
				t.Fatalf("connection %+v", c)
			}
		}
		if !slices.IsSortedFunc(n.Settings, func(a, b ssp.Setting) int {
			return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Variable, b.Variable))
		}) {
			t.Fatal("settings are not sorted")
		}
	})
}

// What the standard does not know is named wherever it stands, and so are annotations; ours are refused where they mean
// nothing.
func TestUnknownParts(t *testing.T) {
	const foreign, gadget, attribute = "org.example", `<g:Gadget xmlns:g="urn:g"/>`, ` gadget="1"`
	annotation := func(prefix string) string {
		return "<" + prefix + ":Annotations>" + Annotate(foreign, "") + "</" + prefix + ":Annotations>"
	}
	document, files, vars := everything()
	files[ssp.DocumentName] = document
	for _, c := range []struct {
		file, added, id string
		after           []string
	}{
		{ssp.DocumentName, gadget, "SD1U", []string{"<ssd:Connectors>", "<ssd:ParameterBindings>", "<ssd:Elements>", "<ssd:Connections>", "<ssd:Enumerations>", "<ssd:Units>",
			`<ssd:Component name="a" source="a.fmu">`, `<ssd:System name="inner">`, `<ssc:Unit name="m">`, `<ssc:Enumeration name="gear">`,
			`<ssd:Connector name="n" kind="output">`, `endElement="b" endConnector="u">`, `<ssd:DefaultExperiment startTime="0" stopTime="2">`, `source="set.ssv">`}},
		{ssp.DocumentName, attribute, "SD1U", []string{`factor="2"`}},
		{"set.ssv", gadget, "SD1U", []string{"<ssv:Parameters>", `<ssv:Parameter name="gain">`, "<ssv:Units>"}},
		{"map.ssm", gadget, "SD1U", []string{`<ssm:MappingEntry source="gain" target="a.k">`}},
		{ssp.DocumentName, annotation("ssd"), "SD21", []string{`<ssd:Connector name="n" kind="output">`, `<ssd:ParameterBinding source="set.ssv">`, `factor="2"/>`, `endElement="bus">`}},
		{ssp.DocumentName, annotation("ssc"), "SD21", []string{`<ssc:Unit name="m">`, `<ssc:Enumeration name="gear">`}},
		{ssp.DocumentName, annotation("ssv"), "SD21", []string{`<ssv:Parameter name="p">`}},
		{"set.ssv", annotation("ssv"), "SD21", []string{`<ssv:Parameter name="gain">`, `</ssv:Parameters>`}},
		{"map.ssm", annotation("ssm"), "SD21", []string{`target="a.k">`, `target="level"/>`}},
		{"d.ssb", annotation("ssb"), "SD21", []string{`<ssb:DictionaryEntry name="n">`, `</ssb:DictionaryEntry>`}},
	} {
		for _, place := range c.after {
			all := maps.Clone(files)
			all[c.file] = strings.ReplaceAll(files[c.file], place, place+c.added)
			n, l := Sound(t, all[ssp.DocumentName], all, vars)
			found := slices.DeleteFunc(l.Findings, func(f diag.Finding) bool { return f.ID == "SD1S" }) // annotations come last
			for _, f := range found {
				named := c.id == "SD21" || f.Level == diag.Warning && strings.Contains(strings.ToLower(f.Message), "gadget")
				if f.ID != c.id || !named || filepath.Base(f.File) != c.file || f.Line == 0 {
					t.Errorf("%s after %s: finding %s", c.file, place, f)
				}
			}
			if count := strings.Count(files[c.file], place); count == 0 || len(found) != count || n == nil {
				t.Errorf("%s after %s, which is there %d times: findings %v", c.file, place, count, found)
			}
			all[c.file] = strings.ReplaceAll(all[c.file], foreign, ssp.OwnType)
			if _, _, err := Flatten(t, all[ssp.DocumentName], all, vars, false); diag.Has(err, "SD21O") != (c.id == "SD21") {
				t.Errorf("%s after %s: our annotation: %v", c.file, place, err)
			}
		}
	}
}
