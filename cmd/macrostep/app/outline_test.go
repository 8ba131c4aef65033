package app

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
)

// info describes FMUs that macrostep does not run, and explains why and what to do; run refuses them.
func TestInfoOutline(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		document string
		shows    []string
		refused  string
	}{
		"one.fmu": {`<fmiModelDescription fmiVersion="1.0" modelName="M" guid="g" generationTool="T 1"><ModelVariables>
<ScalarVariable name="x" valueReference="1" causality="output"><Real unit="m" start="1"/></ScalarVariable></ModelVariables></fmiModelDescription>`,
			[]string{"Tool       T 1\n", "FMI        1.0, Model Exchange\n", "Platforms  linux64\n", "output (1)\n  x  Real  = 1 m\n"}, "is an FMI 1.0 FMU"},
		"exchange.fmu": {`<fmiModelDescription fmiVersion="2.0" modelName="M" guid="g"><ModelExchange modelIdentifier="m"/><ModelVariables>
<ScalarVariable name="x" valueReference="1" causality="input"><Real/></ScalarVariable></ModelVariables><ModelStructure/></fmiModelDescription>`,
			[]string{"FMI        2.0, Model Exchange\n", "input (1)\n  x  Real\n"}, "offers Model Exchange only [MD3]; export the FMU for Co-Simulation, or"},
		"three.fmu": {`<fmiModelDescription fmiVersion="3.0" modelName="M" instantiationToken="g"><ModelExchange modelIdentifier="m"/><ModelVariables>
<Float64 name="x" valueReference="1" causality="parameter" unit="kg" start="1 2"><Dimension start="2"/></Float64></ModelVariables></fmiModelDescription>`,
			[]string{"FMI        3.0, Model Exchange\n", "parameter (1)\n  x  fixed Float64×2  = \"1 2\" kg\n"}, "offers Model Exchange only [MD3]"},
	} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(file)
		for entry, text := range map[string]string{"modelDescription.xml": c.document, "binaries/linux64/m.so": "x"} {
			w, err := z.Create(entry)
			if err == nil {
				_, err = w.Write([]byte(text))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if z.Close() != nil || file.Close() != nil {
			t.Fatal("the FMU cannot be written")
		}
		code, stdout, stderr := callIn(t.Context(), t, dir, nil, "info", name)
		if code != exitDone {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
		contains(t, name, stdout, append(c.shows, "Findings\n  error: ", c.refused)...)
		refuses(t, dir, nil, map[string]string{"run|" + name: c.refused})
	}
	write(t, filepath.Join(dir, "modelDescription.xml"), `<fmiModelDescription fmiVersion="2.0" modelName="M"><CoSimulation/></fmiModelDescription>`)
	refuses(t, dir, nil, map[string]string{"info|.": "[MD1]"}) // a broken one is no foreign one
}
