package app

import (
	"context"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
)

// backend is the interface of the command line to the packages that read documents and FMUs. Tests replace it
// by subsystems in Go.
type backend interface {
	// Open reads a system: an .ssp, a folder with SystemStructure.ssd, an .ssd
	// or one .fmu. No FMU is instantiated before the run.
	Open(ctx context.Context, path string, o simulate.OpenOptions) (*simulate.System, error)
	// Describe reads a file of the same kinds for macrostep info. Together with an error it may return
	// an incomplete description.
	Describe(path string, o assemble.Options) (*fileDescription, error)
	// Explain returns the sources of the values of variables "component.variable".
	Explain(path string, names []string, o assemble.Options) ([]*assemble.Explanation, error)
	// Variables lists the variables of the FMUs of a system as component.variable.
	Variables(path string) ([]namedVariable, error)
	// WriteSystems builds example systems as dir/name.ssp and calls written with the path of each.
	WriteSystems(ctx context.Context, dir string, names []string, written func(path string)) error
	// WriteChain builds an oscillator chain as dir/chain.ssp and returns its path.
	WriteChain(dir string, c fmus.Chain) (string, error)
}

// fileDescription is the content of a file for macrostep info; one of FMU and System is set.
type fileDescription struct {
	FMU      *fmuDescription
	System   *systemDescription
	Findings []diag.Finding
}

// fmuDescription describes an FMU.
type fmuDescription struct {
	Path, Hash  string
	Platforms   []string // folders in binaries
	Description *description.ModelDescription
	Outline     *description.Outline // in place of Description, for an FMU that macrostep does not run
}

// namedVariable is a variable of an FMU in a system.
type namedVariable struct {
	Name, Description string
	Settable          bool // before the run
}

// systemDescription describes a system, for people and as JSON.
type systemDescription struct {
	// Partial means that the description comes only from the documents, because FMUs are missing or there
	// are errors.
	Partial     bool                      `json:"partial"`
	Path        string                    `json:"path"`
	Name        string                    `json:"name"`
	Components  []componentInfo           `json:"components"`
	Functions   []assemble.FunctionInfo   `json:"functions,omitempty"` // of OSP
	Connections []assemble.ConnectionInfo `json:"connections"`
	Settings    []settingInfo             `json:"settings"` // parameters and start values in force
	Stateless   []string                  `json:"stateless"`
	Loops       []master.Loop             `json:"loops"`
	StartTime   simulate.Setting          `json:"start_time"`
	StopTime    simulate.Setting          `json:"stop_time"`
	StepSize    simulate.Setting          `json:"step_size"`
	Tolerance   *simulate.Setting         `json:"tolerance"`
	Algorithm   string                    `json:"algorithm"`
	Params      map[string]string         `json:"parameters"`
	Sources     map[string]string         `json:"sources"` // of the settings of a run in the documents
}

type componentInfo struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Model   string `json:"model"`
	Tool    string `json:"tool"`
	Inputs  int    `json:"inputs"`
	Outputs int    `json:"outputs"`
	Missing bool   `json:"missing"` // the FMU cannot be read
}

type settingInfo struct {
	Name   string          `json:"name"`
	Value  string          `json:"value"`
	Origin string          `json:"origin"`          // file and place
	Weaker int             `json:"weaker"`          // number of overridden values
	Over   string          `json:"over"`            // connector of a system with the value; "" = the variable itself has it
	Steps  []assemble.Step `json:"steps,omitempty"` // from the value in its parameter set on
}
