package dialect

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rebuild is the way to make a system of FMUs that another tool couples.
const rebuild = "make a system of the same FMUs: macrostep ssp new A.fmu B.fmu --connect A.y:B.u -o system.ssp"

// project is a kind of file of another tool that is not read.
type project struct {
	extensions []string
	root       string // XML element, with its namespace before a blank; "" = any file
	has        string // all of these words occur, separated by blanks
	kind       string
	advice     string
}

var projects = []project{
	{[]string{".msim"}, "", "", "a project of MasterSim", rebuild + `; its lines "graph A.y B.u" are the connections`},
	{[]string{".lua"}, "", "oms_", "a script for OMSimulator", `let it write an SSP: oms_export("model", "model.ssp")`},
	{[]string{".py"}, "", "OMSimulator", "a script for OMSimulator", "let it write an SSP, with the function export of the model"},
	{[]string{".dng", ".simx"}, "", "", "a project of DACCOSIM NG", rebuild},
	{[]string{".mabl"}, "", "", "a specification for Maestro", rebuild + "; the connections are in the multi-model that it was made from"},
	{[]string{".json", ".mm"}, "", `"fmus" "connections"`, "a multi-model of Maestro or the INTO-CPS application", rebuild + "; it lists both under fmus and connections"},
	{[]string{".xml"}, "entity", "ptolemy", "a model of Ptolemy II or FIDE", rebuild},
	{[]string{".xml"}, "ecos", "", "a file of Ecos", "give the .ssp that Ecos runs, or " + rebuild},
	{[]string{".xml"}, "OspModelDescription", "", "an addition of OSP to an FMU", "give the OspSystemStructure.xml, or the FMU"},
	{[]string{".xml"}, "fmiModelDescription", "", "the description of an FMU", "give the .fmu, or its unpacked folder"},
	{[]string{".mo"}, "", "", "a model in Modelica", "export it as an FMU for Co-Simulation of FMI 2.0, with OpenModelica or another tool"},
	{[]string{".slx", ".mdl"}, "", "", "a model of Simulink", "export it as an FMU for Co-Simulation of FMI 2.0"},
}

// Foreign returns an error if a file is a project of another tool that macrostep does not read. The
// error names the tool and a way to convert the file.
func Foreign(path string) error {
	extension := strings.ToLower(filepath.Ext(path))
	if !slices.ContainsFunc(projects, func(p project) bool { return slices.Contains(p.extensions, extension) }) {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil // the reader of systems returns the error
	}
	defer file.Close()
	const most = 1 << 20 // the words are near the beginning
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil // a folder
	}
	for _, p := range projects {
		if slices.Contains(p.extensions, extension) && p.matches(text) {
			return fmt.Errorf("%s is %s, which macrostep does not read; %s", path, p.kind, p.advice)
		}
	}
	return nil
}

func (p *project) matches(text []byte) bool {
	for _, word := range strings.Fields(p.has) {
		if !bytes.Contains(text, []byte(word)) {
			return false
		}
	}
	if p.root == "" {
		return true
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		t, err := d.RawToken()
		if err != nil {
			return false
		}
		if e, ok := t.(xml.StartElement); ok {
			return e.Name.Local == p.root || strings.EqualFold(e.Name.Space, p.root)
		}
	}
}
