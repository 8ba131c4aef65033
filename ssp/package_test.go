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

// What the standard does not know is named wherever it stands.
func TestUnknownParts(t *testing.T) {
	const gadget = "<ssd:Gadget/>"
	files := map[string]string{ssp.DocumentName: Base, "set.ssv": BaseSet, "map.ssm": BaseMap}
	want := 0
	for name, places := range map[string][]string{
		ssp.DocumentName: {"<ssd:Connectors>", "<ssd:ParameterBindings>", "<ssd:Elements>", "<ssd:Connections>", "<ssd:Enumerations>", "<ssd:Units>",
			`<ssd:Component name="a" source="a.fmu">`, `<ssd:System name="inner">`, `<ssc:Unit name="m">`, `<ssc:Enumeration name="gear">`,
			`<ssd:Connector name="n" kind="output">`, `endElement="b" endConnector="u">`, `factor="2"`, `<ssd:DefaultExperiment startTime="0" stopTime="2">`, `source="set.ssv">`},
		"set.ssv": {"<ssv:Parameters>", `<ssv:Parameter name="gain">`, `<ssv:Units>`},
		"map.ssm": {`<ssm:MappingEntry source="gain" target="a.k">`},
	} {
		for _, place := range places {
			n := strings.Count(files[name], place)
			if n == 0 {
				t.Fatalf("%s is not in %s", place, name)
			}
			want += n
			text := place + gadget
			if !strings.HasSuffix(place, ">") {
				text = place + ` gadget="1"`
			}
			files[name] = strings.ReplaceAll(files[name], place, strings.ReplaceAll(text, gadget, `<g:Gadget xmlns:g="urn:g"/>`))
		}
	}
	_, l := Sound(t, files[ssp.DocumentName], files, baseFakes())
	got := 0
	for _, f := range l.Findings {
		if f.ID != "SD1U" || f.Level != diag.Warning || !strings.Contains(strings.ToLower(f.Message), "gadget") {
			t.Errorf("finding %s", f)
		}
		got++
	}
	if got != want {
		t.Errorf("%d findings, want %d", got, want)
	}
}

// Annotations are told wherever they stand, ours are refused where they mean nothing.
func TestAnnotationsAnywhere(t *testing.T) {
	document, files, vars := everything()
	foreign := `<%s:Annotations><ssc:Annotation type="org.example"/></%[1]s:Annotations>`
	put := func(text, after, prefix string) string {
		if strings.Count(text, after) == 0 {
			t.Fatalf("%s is not there", after)
		}
		return strings.Replace(text, after, after+fmt.Sprintf(foreign, prefix), 1)
	}
	for name, places := range map[string][][2]string{
		ssp.DocumentName: {{`<ssd:Connector name="n" kind="output">`, "ssd"}, {`<ssd:ParameterBinding source="set.ssv">`, "ssd"}, {`<ssc:Unit name="m">`, "ssc"},
			{`<ssc:Enumeration name="gear">`, "ssc"}, {`<ssv:Parameter name="p">`, "ssv"}, {`factor="2"/>`, "ssd"}, {`endConnector="n">`, "ssd"}},
		"set.ssv": {{`<ssv:Parameter name="gain">`, "ssv"}, {`</ssv:Parameters>`, "ssv"}},
		"map.ssm": {{`target="a.k">`, "ssm"}, {`target="level"/>`, "ssm"}},
		"d.ssb":   {{`<ssb:DictionaryEntry name="n">`, "ssb"}, {`</ssb:DictionaryEntry>`, "ssb"}},
	} {
		for _, place := range places {
			all := maps.Clone(files)
			all[ssp.DocumentName] = document
			all[name] = put(all[name], place[0], place[1])
			n, l, err := Flatten(t, all[ssp.DocumentName], all, vars, false)
			l.Findings = slices.DeleteFunc(l.Findings, func(f diag.Finding) bool { return f.ID == "SD1S" }) // annotations stand last
			if err != nil || len(l.Findings) != 1 || l.Findings[0].ID != "SD21" || filepath.Base(l.Findings[0].File) != name || l.Findings[0].Line == 0 || n == nil {
				t.Errorf("%s after %s: %v, findings %v", name, place[0], err, l.Findings)
			}
			all[name] = strings.Replace(all[name], "org.example", ssp.OwnType, 1)
			if _, _, err := Flatten(t, all[ssp.DocumentName], all, vars, false); !diag.Has(err, "SD21O") {
				t.Errorf("%s after %s: our annotation: %v", name, place[0], err)
			}
		}
	}
}
