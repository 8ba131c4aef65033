package test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
)

// named is what the name of a file or folder below xml/ says that is wrong with
// the document: the rule that must find it. With an exclamation mark the
// tolerant reading refuses the document too, else it repairs it or lets it pass.
// A document without a rule is right in what its name says. Names are judged by
// the grammar of the standard (fmi2 25), which has no blanks in indices.
var named = map[string]string{
	"vdm/minimal.xml":                         "",
	"vdm/2.2.1_noModelType.xml":               "MD3!",
	"vdm/2.2.1_wrongFMIVersion.xml":           "FA4!",
	"vdm/2.2.1_initialUnknowns2.xml":          "MD32",
	"vdm/2.2.1_invalidOutputs1.xml":           "MD30",
	"vdm/2.2.1_invalidDerivatives1.xml":       "MD31",
	"vdm/2.2.1_invalidDerivatives3.xml":       "MD31M",
	"vdm/2.2.3_invalidTypeName.xml":           "MD12",
	"vdm/2.2.4_duplicateCategories.xml":       "MD6",
	"vdm/2.2.6_duplicateVendorNames.xml":      "MD6",
	"vdm/2.2.7_duplicateVarNames.xml":         "MD17!",
	"vdm/2.2.8_invalidUnknowns.xml":           "MD34",
	"vdm/3.3.1_duplicateSourceFiles.xml":      "MD6",
	"fmil/default_experiment/mixed":           "",
	"fmil/env/locale":                         "",
	"fmil/model_structure/valid":              "",
	"fmil/type_definitions":                   "FA4!", // of FMI 3
	"fmil/variable_test":                      "",
	"fmil/variable_bad_variability_causality": "MD19",

	"fmil/naming_conventions_xmls/array/a":                         "",
	"fmil/naming_conventions_xmls/array/a.a":                       "",
	"fmil/naming_conventions_xmls/array/a1":                        "",
	"fmil/naming_conventions_xmls/array/n0":                        "",
	"fmil/naming_conventions_xmls/array/a1space":                   "MD18",
	"fmil/naming_conventions_xmls/array/aspace1":                   "MD18",
	"fmil/naming_conventions_xmls/array/a12345678space":            "MD18",
	"fmil/naming_conventions_xmls/der/der0":                        "",
	"fmil/naming_conventions_xmls/der/dera12":                      "MD18",
	"fmil/naming_conventions_xmls/der/dera32":                      "MD18",
	"fmil/naming_conventions_xmls/der/dera-no-closing-parenthesis": "MD18",
	"fmil/naming_conventions_xmls/examples/derderx":                "MD18",
	"fmil/naming_conventions_xmls/examples/foo":                    "MD18",
	"fmil/naming_conventions_xmls/flat/q-char-nonescaped":          "MD18", // says structured
	"fmil/naming_conventions_xmls/implementation/0":                "MD18",
	"fmil/naming_conventions_xmls/implementation/_0":               "",
	"fmil/naming_conventions_xmls/implementation/empty":            "MD18",
	"fmil/naming_conventions_xmls/list/aemptyc":                    "MD18",
	"fmil/naming_conventions_xmls/q-name/backslash":                "MD18",
	"fmil/naming_conventions_xmls/q-name/empty":                    "MD18",
	"fmil/naming_conventions_xmls/q-name/q-char":                   "",
	"fmil/naming_conventions_xmls/standard/derpipe34.T142":         "MD18", // a derivative that is an Integer
	"fmil/naming_conventions_xmls/standard/robot.axis.motor234":    "",
	"fmil/naming_conventions_xmls/standard/vehicle.engine.speed":   "",
}

// besides are rules that many of the documents break beside what their names
// say: they are made for one purpose and bare in everything else.
var besides = []string{"MD1L", "MD4", "MD5", "MD21", "MD23", "MD30", "MD32", "MD42"}

// Each document is judged as its name says.
func testRealDocuments(t *testing.T) {
	left := maps.Clone(named)
	root := filepath.Join(*realDir, "xml")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "terminals") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.ToSlash(rel), "/modelDescription.xml")
		want, ok := left[name]
		if !ok {
			t.Errorf("%s: nothing is said about this document", name)
			return nil
		}
		delete(left, name)
		t.Run(name, func(t *testing.T) { judge(t, path, want) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range left {
		t.Errorf("%s is not there", name)
	}
}

// judge reads a document tolerantly and strictly.
func judge(t *testing.T, path, want string) {
	rule, refused := strings.CutSuffix(want, "!")
	for _, strict := range []bool{false, true} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		l := &diag.List{Strict: strict}
		d, err := description.Read(f, path, l)
		f.Close()
		if (d == nil) == (err == nil) {
			t.Fatalf("description %v, error %v", d, err)
		}
		if !strict && (err != nil) != refused {
			t.Errorf("tolerant reading: error %v, want refused: %t", err, refused)
		}
		var ids []string
		for _, x := range l.Findings {
			ids = append(ids, x.ID)
			if x.File != path || x.Message == "" || x.Level > diag.Info && x.Remedy == "" || x.Line == 0 && x.Path == "" {
				t.Errorf("finding without place or remedy: %s", x)
			}
		}
		if rule != "" && !slices.Contains(ids, rule) {
			t.Errorf("strict=%t: findings %v, want %s", strict, ids, rule)
		}
		for _, id := range ids {
			if rule == "" && !slices.Contains(besides, id) {
				t.Errorf("strict=%t: the document is right, and %s is found: %v", strict, id, l.Findings)
			}
		}
	}
}

// What stands in terminalsAndIcons/ is ignored, right or wrong (fmi2 11).
func testRealTerminals(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(*realDir, "xml", "fmil", "terminals_and_icons", "*", "*", "terminalsAndIcons", "terminalsAndIcons.xml"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v: want two documents", found, err)
	}
	for _, path := range found {
		data := read(t, path)
		with := filepath.Join(t.TempDir(), "model.fmu")
		pack(t, with, append(entries(t, fmu(t, victim)), file("terminalsAndIcons/terminalsAndIcons.xml", data))...)
		if o := complete(t, with, "--stop-time", "0.01", "--strict"); len(o.manifest.Warnings) > 0 {
			t.Errorf("warnings %q", o.manifest.Warnings)
		}
	}
}
