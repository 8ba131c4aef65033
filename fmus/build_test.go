package fmus

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
)

// The same compiler makes the same bytes in every folder, also by simultaneous builds, with the description that
// Description returns.
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

// The library can be built again from the sources in the FMU.
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
	for _, name := range Misbehaving() {
		if slices.Contains(Names(), name) {
			t.Errorf("%s is among the examples", name)
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

// ssd is the part of a system structure that the tests read.
type ssd struct {
	Name   string `xml:"name,attr"`
	System struct {
		Components []struct {
			Name       string `xml:"name,attr"`
			Source     string `xml:"source,attr"`
			Parameters []struct {
				Name          string `xml:"name,attr"`
				Real, Integer struct {
					Value float64 `xml:"value,attr"`
				}
			} `xml:"ParameterBindings>ParameterBinding>ParameterValues>ParameterSet>Parameters>Parameter"`
		} `xml:"Elements>Component"`
	}
	Experiment struct {
		Stop     float64 `xml:"stopTime,attr"`
		Settings struct {
			Step    float64 `xml:"stepSize,attr"`
			Version string  `xml:"version,attr"`
		} `xml:"Annotations>Annotation>Settings"`
	} `xml:"DefaultExperiment"`
}

// written reads a system from its archive, which must hold the document and the FMUs as Build writes them.
func written(t *testing.T, path string, document []byte) (s ssd) {
	t.Helper()
	if !bytes.Equal(entry(t, path, "SystemStructure.ssd"), document) {
		t.Error("the document differs from that in the archive")
	}
	if err := xml.Unmarshal(document, &s); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.System.Components {
		own, err := os.ReadFile(filepath.Join(work, filepath.Base(c.Source)))
		if err != nil || !bytes.Equal(entry(t, path, c.Source), own) {
			t.Errorf("%s is not the FMU that Build writes (%v)", c.Source, err)
		}
	}
	return s
}

// Systems are written with their FMUs and settings. That these fit is checked by validation and runs (package test).
func TestSystems(t *testing.T) {
	dir := t.TempDir()
	for _, name := range Systems() {
		path, err := WriteSystem(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if path != filepath.Join(dir, name+".ssp") {
			t.Errorf("written to %s", path)
		}
		document, err := SystemDocument(name)
		if err != nil {
			t.Fatal(err)
		}
		s := written(t, path, document)
		step := map[string]float64{"contact-oscillator": 1e-5, "corrector-oscillator": 1e-4, "corrector-oscillator-blackbox": 1e-4}[name]
		if settings := s.Experiment.Settings; s.Name != name || s.Experiment.Stop <= 0 ||
			settings.Step != cmp.Or(step, 1e-3) || settings.Version != "1" {
			t.Errorf("%s: name %q, experiment %+v", name, s.Name, s.Experiment)
		}
	}
}

// Chains have the sizes, numbers, grounds and parameters that were given.
func TestChains(t *testing.T) {
	for _, c := range []struct {
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
		path, err := WriteChain(t.TempDir(), c.chain)
		if err != nil {
			t.Fatal(err)
		}
		s := written(t, path, document)
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
