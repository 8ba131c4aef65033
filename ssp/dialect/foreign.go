package dialect

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// rebuild is the way to make a system of FMUs that another tool couples.
const rebuild = "make a system of the same FMUs: macrostep ssp new A.fmu B.fmu --connect A.y:B.u -o system.ssp"

// project is a kind of file that is not a system.
type project struct {
	extensions []string // nil: all
	root       string   // XML element, with its namespace before a blank; "" = any file
	has        string   // all of these words occur, separated by blanks
	kind       string
	advice     string // FILE is the path
}

// ours are files that macrostep writes or reads, but not as systems.
var ours = []project{
	{nil, "", "\x89MSCKP", "a checkpoint", "to continue its run: macrostep run --resume FILE"},
	{[]string{".csv", ".tsv", ".parquet", ".mat"}, "", "", "a table",
		"to look at it: macrostep plot FILE; to take inputs from it: macrostep run SYSTEM --input FILE"},
	{[]string{".html", ".htm"}, "", "", "a web page", "open it in a browser"},
	{[]string{".yaml", ".yml"}, "", "system: collect:", "a study", "to run it: macrostep study FILE"},
	{[]string{".json"}, "", `"system" "collect"`, "a study", "to run it: macrostep study FILE"},
	{[]string{".yaml", ".yml"}, "", "events:", "a scenario", "to play it: macrostep run SYSTEM --scenario FILE"},
	{[]string{".yaml", ".yml"}, "", "expect:", "a scenario", "to play it: macrostep run SYSTEM --scenario FILE"},
	{[]string{".json"}, "", `"macrostep" "system" "results"`, "the manifest of a run", "give the system that it names"},
	{[]string{".ssv", ".xml"}, "ParameterSet", "", "a parameter set", "give the .ssp or .ssd that binds it"},
	{[]string{".xml"}, "fmiModelDescription", "", "the description of an FMU", "give the folder of the unpacked FMU, FOLDER, or the .fmu"},
	{[]string{".ssm", ".xml"}, "ParameterMapping", "", "a parameter mapping", "give the .ssp or .ssd that uses it"},
}

// projects are files of other tools.
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
	{[]string{".mo"}, "", "", "a model in Modelica", "export it as an FMU for Co-Simulation of FMI 2.0, with OpenModelica or another tool"},
	{[]string{".slx", ".mdl"}, "", "", "a model of Simulink", "export it as an FMU for Co-Simulation of FMI 2.0"},
}

// Foreign returns an error if a file is certainly not a system: macrostep knows it as something else, it is a project of
// another tool, or it is neither XML nor an archive. The error says what to do with it.
func Foreign(path string) error {
	extension := strings.ToLower(filepath.Ext(path))
	if slices.Contains([]string{".ssp", ".ssd", ".fmu"}, extension) {
		return nil
	}
	file, err := diag.Open(path)
	if err != nil {
		return nil // the reader of systems returns the error
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	const most = 1 << 20 // the words are near the beginning
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil
	}
	if what := diag.Pointer(text); what != "" {
		return fmt.Errorf("%s: %s; %s", path, what, diag.FetchPointer)
	}
	is := func(p project) bool {
		return (p.extensions == nil || slices.Contains(p.extensions, extension)) && p.matches(text)
	}
	if i := slices.IndexFunc(ours, is); i >= 0 {
		return fmt.Errorf("%s is %s, not a system; %s", path, ours[i].kind, strings.NewReplacer("FILE", path, "FOLDER", filepath.Dir(path)).Replace(ours[i].advice))
	}
	if i := slices.IndexFunc(projects, is); i >= 0 {
		return fmt.Errorf("%s is %s, which macrostep does not read; %s", path, projects[i].kind, projects[i].advice)
	}
	if begin := bytes.TrimSpace(text); len(begin) > 0 && begin[0] < 0x80 && begin[0] != '<' && !bytes.HasPrefix(begin, []byte("PK")) {
		return fmt.Errorf("%s is not a system: it is neither XML nor an archive; give an .ssp, an .ssd, an .fmu or a folder with SystemStructure.ssd", path)
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
