package fmus

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
)

// The same compiler makes the same bytes, in whatever folder, also at once; the
// description is that of Description.
func testBuildIsDeterministic(t *testing.T) {
	t.Setenv("CC", "") // the libraries of other tests are cached
	dirs := []string{t.TempDir(), t.TempDir()}
	data, errs := make([][]byte, 4), make([]error, 4)
	parallel(len(data), func(i int) {
		path, err := Build(dirs[i%2], "mass_force")
		if err == nil {
			data[i], err = os.ReadFile(path)
		}
		errs[i] = err
	})
	for i := range data {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if !bytes.Equal(data[i], data[0]) {
			t.Errorf("build %d differs from the first", i)
		}
	}
	d, err := Description("mass_force")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(d, entry(t, filepath.Join(dirs[0], "mass_force.fmu"), "modelDescription.xml")) {
		t.Error("Description gives another document")
	}
	for _, dir := range dirs {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 1 {
			t.Errorf("left in the folder: %v", left)
		}
	}
	if d, err := Description("no_such"); err == nil {
		t.Errorf("Description of an unknown FMU: %s", d)
	}
}

func TestGUIDsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, name := range Names() {
		g := load(t, name).guid
		if seen[g] != "" {
			t.Errorf("%s and %s have the GUID %s", name, seen[g], g)
		}
		seen[g] = name
	}
}

// The sources in the FMU suffice to build its library again.
func testSourcesAreWhole(t *testing.T) {
	t.Setenv("CC", "")
	for _, name := range []string{"linear", "blackbox", "quarter_wheel_a"} { // each set of files once
		z, err := zip.OpenReader(filepath.Join(work, name+".fmu"))
		if err != nil {
			t.Fatal(err)
		}
		var src []file
		for _, f := range z.File {
			if s, is := strings.CutPrefix(f.Name, "sources/"); is {
				src = append(src, file{s, entry(t, filepath.Join(work, name+".fmu"), f.Name)})
			}
		}
		z.Close()
		cc, err := csrc.Compiler()
		if err != nil {
			t.Fatal(err)
		}
		library, err := compile(cc, name, src)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(library, entry(t, filepath.Join(work, name+".fmu"), "binaries/"+platform()+"/"+name+csrc.Extension())) {
			t.Errorf("%s: another library", name)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	dir := t.TempDir()
	want := func(what, text string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q in it", what, err, text)
		}
	}
	_, err := Build(dir, "no_such")
	want("unknown FMU", "mass_force", err)
	_, err = WriteSystem(dir, "no-such")
	want("unknown system", "two-mass-ff", err)
	_, err = SystemDocument("../fmus.go")
	want("unknown document", "two-mass-ff", err)
	_, err = Build(filepath.Join(dir, "missing"), "mass_force")
	want("missing folder", "missing", err)

	path := os.Getenv("PATH")
	t.Setenv("CC", "")
	t.Setenv("PATH", dir)
	_, err = Build(dir, "mass_force")
	want("no compiler", "apt install gcc", err)
	_, err = WriteSystem(dir, "two-mass-ff")
	want("no compiler", "set CC", err)
	if paths, err := BuildAll(dir); err == nil {
		t.Errorf("BuildAll without a compiler: %v", paths)
	}
	t.Setenv("CC", "no-such-compiler -O3")
	_, err = Build(dir, "mass_force")
	want("wrong CC", "no-such-compiler", err)
	t.Setenv("PATH", path)
	t.Setenv("CC", "go build -no-such-flag") // a program that fails and says why
	_, err = Build(dir, "mass_force")
	want("failing compiler", "no-such-flag", err)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// ssd is the part of a system structure that the test looks at.
type ssd struct {
	Name   string `xml:"name,attr"`
	System struct {
		Components []struct {
			Name       string `xml:"name,attr"`
			Source     string `xml:"source,attr"`
			Connectors []struct {
				Name string `xml:"name,attr"`
				Kind string `xml:"kind,attr"`
				Real struct {
					Unit string `xml:"unit,attr"`
				}
			} `xml:"Connectors>Connector"`
			Parameters []struct {
				Name          string `xml:"name,attr"`
				Real, Integer struct {
					Value float64 `xml:"value,attr"`
				}
			} `xml:"ParameterBindings>ParameterBinding>ParameterValues>ParameterSet>Parameters>Parameter"`
		} `xml:"Elements>Component"`
		Connections []struct {
			StartElement   string `xml:"startElement,attr"`
			StartConnector string `xml:"startConnector,attr"`
			EndElement     string `xml:"endElement,attr"`
			EndConnector   string `xml:"endConnector,attr"`
		} `xml:"Connections>Connection"`
	}
	Units []struct {
		Name string `xml:"name,attr"`
	} `xml:"Units>Unit"`
	Experiment struct {
		Stop     float64 `xml:"stopTime,attr"`
		Settings struct {
			Step    float64 `xml:"stepSize,attr"`
			Version string  `xml:"version,attr"`
		} `xml:"Annotations>Annotation>Settings"`
	} `xml:"DefaultExperiment"`
}

// The systems fit the FMUs: connectors, units, connections, every input driven
// once; and the archive holds what the document names.
func TestSystems(t *testing.T) {
	dir := t.TempDir()
	for _, name := range Systems() {
		t.Run(name, func(t *testing.T) {
			path, err := WriteSystem(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			if path != filepath.Join(dir, name+".ssp") {
				t.Errorf("written to %s", path)
			}
			document := entry(t, path, "SystemStructure.ssd")
			if d, err := SystemDocument(name); err != nil || !bytes.Equal(d, document) {
				t.Errorf("SystemDocument differs from the archive: %v", err)
			}
			var s ssd
			if err := xml.Unmarshal(document, &s); err != nil {
				t.Fatal(err)
			}
			step := map[string]float64{"contact-oscillator": 1e-5, "corrector-oscillator": 1e-4, "corrector-oscillator-blackbox": 1e-4}[name]
			if step == 0 {
				step = 1e-3
			}
			if s.Name != name || s.Experiment.Stop <= 0 || s.Experiment.Settings.Step != step || s.Experiment.Settings.Version != "1" {
				t.Errorf("name %q, experiment %+v", s.Name, s.Experiment)
			}
			fits(t, path, s)
		})
	}
}

// fits checks that the components of a system are FMUs of ours and that what it
// names of them is there; path is that of its archive, "" if there is none.
func fits(t *testing.T, path string, s ssd) {
	t.Helper()
	units := map[string]bool{"": true}
	for _, u := range s.Units {
		units[u.Name] = true
	}
	kind, driven := map[string]string{}, map[string]int{}
	for _, c := range s.System.Components {
		fmu := strings.TrimSuffix(strings.TrimPrefix(c.Source, "resources/"), ".fmu")
		if path != "" && !bytes.Equal(entry(t, path, c.Source), mustRead(t, filepath.Join(work, fmu+".fmu"))) {
			t.Errorf("%s is another FMU than Build gives", c.Source)
		}
		l := load(t, fmu)
		for _, x := range c.Connectors {
			v, there := l.variables[x.Name]
			if !there || v.Causality != x.Kind || v.Real == nil || v.Real.Unit != x.Real.Unit || !units[x.Real.Unit] {
				t.Errorf("connector %s.%s (%s, %q) does not fit %+v", c.Name, x.Name, x.Kind, x.Real.Unit, v)
			}
			kind[c.Name+"."+x.Name] = x.Kind
		}
		for _, p := range c.Parameters {
			if l.variables[p.Name].Causality != "parameter" {
				t.Errorf("%s.%s is no parameter", c.Name, p.Name)
			}
		}
	}
	for _, c := range s.System.Connections {
		from, to := c.StartElement+"."+c.StartConnector, c.EndElement+"."+c.EndConnector
		if kind[from] != "output" || kind[to] != "input" {
			t.Errorf("connection from %s to %s", from, to)
		}
		driven[to]++
	}
	for c, k := range kind {
		if k == "input" && driven[c] != 1 {
			t.Errorf("%s is driven %d times", c, driven[c])
		}
	}
}

// Chains of all shapes: sizes, numbers, grounds, and parameters in all of them.
func TestChains(t *testing.T) {
	for i, c := range []struct {
		chain Chain
		sizes []int
	}{
		{Chain{Masses: 20, Subsystems: 4}, []int{5, 5, 5, 5}},
		{Chain{Masses: 11, Subsystems: 3, Set: map[string]float64{"d": 1e5, "seed": 7}}, []int{4, 4, 3}},
		{Chain{Masses: 30, Subsystems: 4, Ends: 5}, []int{5, 10, 10, 5}},
		{Chain{Masses: 3, Subsystems: 1}, []int{3}},
	} {
		document, err := ChainDocument(c.chain)
		if err != nil {
			t.Fatal(err)
		}
		path := ""
		if i == 0 { // the archive is the same for all
			if path, err = WriteChain(t.TempDir(), c.chain); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(entry(t, path, "SystemStructure.ssd"), document) {
				t.Error("ChainDocument differs from the archive")
			}
		}
		var s ssd
		if err := xml.Unmarshal(document, &s); err != nil {
			t.Fatal(err)
		}
		fits(t, path, s)
		number, pieces := 1, 0
		for _, x := range s.System.Components {
			got := map[string]float64{}
			for _, p := range x.Parameters {
				got[p.Name] = p.Real.Value + p.Integer.Value
			}
			want := map[string]float64{"c_c": 1e7, "d_c": 1e4, "C_c": 1e14, "D_c": 1e2}
			if d, given := c.chain.Set["d"]; given {
				want["d_c"] = d
			}
			if x.Name[0] == 's' {
				want = map[string]float64{"masses": float64(c.sizes[pieces]), "number": float64(number), "total": float64(c.chain.Masses)}
				maps.Copy(want, c.chain.Set)
				if pieces == 0 {
					want["ground_left"] = 1
				}
				number += c.sizes[pieces]
				if pieces++; pieces == len(c.sizes) {
					want["ground_right"] = 1
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%+v: %s has %v, want %v", c.chain, x.Name, got, want)
			}
		}
		if pieces != len(c.sizes) {
			t.Errorf("%+v: %d subsystems", c.chain, pieces)
		}
	}
	for text, c := range map[string]Chain{
		"at least one":                     {Masses: 5},
		"do not make 3 subsystems":         {Masses: 5, Subsystems: 3},
		"5 at each end":                    {Masses: 12, Subsystems: 4, Ends: 5},
		"needs at least 3":                 {Masses: 12, Subsystems: 2, Ends: 5},
		"1 at each end":                    {Masses: 12, Subsystems: 3, Ends: 1},
		`no parameter "masses"`:            {Masses: 12, Subsystems: 3, Set: map[string]float64{"masses": 4}},
		`no parameter "q"; it has m, c, d`: {Masses: 12, Subsystems: 3, Set: map[string]float64{"q": 4}},
		"whole number of at least 0":       {Masses: 12, Subsystems: 3, Set: map[string]float64{"seed": 1.5}},
		"not a finite number":              {Masses: 12, Subsystems: 3, Set: map[string]float64{"c": math.NaN()}},
	} {
		if _, err := WriteChain(t.TempDir(), c); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q in it", c, err, text)
		}
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
