package probe

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed src/life.c
var life string

// LifeCapabilities are those of the FMU of Sources.
const LifeCapabilities = `canHandleVariableCommunicationStepSize="true" canGetAndSetFMUstate="true"`

// LifeDescription returns modelDescription.xml of the FMU of Sources. content is that of the element CoSimulation.
func LifeDescription(capabilities, content string) string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="life" guid="{life}">
  <CoSimulation modelIdentifier="life" %s>%s</CoSimulation>
  <TypeDefinitions>
    <SimpleType name="Mode"><Enumeration><Item name="low" value="1"/><Item name="high" value="3"/></Enumeration></SimpleType>
  </TypeDefinitions>
  <ModelVariables>
    <ScalarVariable name="u" valueReference="0" causality="input"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="1" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="k" valueReference="2" causality="parameter" variability="fixed"><Real start="2"/></ScalarVariable>
    <ScalarVariable name="mode" valueReference="0" causality="parameter" variability="fixed"><Enumeration declaredType="Mode" start="3"/></ScalarVariable>
    <ScalarVariable name="n" valueReference="1" causality="parameter" variability="fixed"><Integer start="7"/></ScalarVariable>
    <ScalarVariable name="instances" valueReference="2" causality="output" variability="discrete"><Integer/></ScalarVariable>
    <ScalarVariable name="on" valueReference="0" causality="parameter" variability="fixed"><Boolean start="true"/></ScalarVariable>
    <ScalarVariable name="text" valueReference="0" causality="parameter" variability="fixed"><String start="abcdef"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="2" dependencies=""/><Unknown index="6" dependencies=""/></Outputs>
    <InitialUnknowns><Unknown index="2" dependencies=""/><Unknown index="6" dependencies=""/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
`, capabilities, content)
}

// Sources writes dir/name.fmu, which holds C sources and no library. Its sources/buildDescription.xml defines macros of
// src/life.c, "NAME" or "NAME=value".
func Sources(dir, name, capabilities string, macros ...string) (path string, err error) {
	var definitions strings.Builder
	for _, m := range macros {
		key, value, _ := strings.Cut(m, "=")
		fmt.Fprintf(&definitions, `<PreprocessorDefinition name=%q value=%q/>`, key, value)
	}
	return Zip(filepath.Join(dir, name+".fmu"), "modelDescription.xml", LifeDescription(capabilities, ""),
		"sources/life.c", life, "sources/buildDescription.xml", fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="life">
    <SourceFileSet language="C99"><SourceFile name="life.c"/>%s</SourceFileSet>
  </BuildConfiguration>
</fmiBuildDescription>`, &definitions))
}

// LifeSource returns the C source of the FMU of Sources.
func LifeSource() string { return life }

// Zip writes an archive to path. entries are names and contents in turn.
func Zip(path string, entries ...string) (string, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for k := 0; k+1 < len(entries); k += 2 {
		w, err := z.Create(entries[k])
		if err != nil {
			return "", err
		}
		if _, err := w.Write([]byte(entries[k+1])); err != nil {
			return "", err
		}
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, b.Bytes(), 0o666)
}
