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

// backend is all that the command line asks of the packages which read documents
// and FMUs. Tests put Go subsystems in its place.
type backend interface {
	// Open reads a system: an .ssp, a folder with SystemStructure.ssd, an .ssd
	// or one .fmu. No FMU is instantiated before the run.
	Open(ctx context.Context, path string, o simulate.OpenOptions) (*simulate.System, error)
	// Describe reads a file of the same kinds for macrostep info. With an error the
	// description may hold what is known; nil = nothing.
	Describe(path string, o assemble.Options) (*fileDescription, error)
	// Explain returns where the values of variables "component.variable" come from.
	Explain(path string, names []string, o assemble.Options) ([]*assemble.Explanation, error)
	// Variables lists those of the FMUs of a system, by component.variable.
	Variables(path string) ([]namedVariable, error)
	// Systems names the example systems.
	Systems() []string
	// WriteSystem builds an example system as dir/name.ssp and gives its path.
	WriteSystem(dir, name string) (string, error)
	// WriteChain builds an oscillator chain as dir/chain.ssp and gives its path.
	WriteChain(dir string, c fmus.Chain) (string, error)
}

// fileDescription is what macrostep info shows; one of FMU and System is set.
type fileDescription struct {
	FMU      *fmuDescription
	System   *systemDescription
	Findings []diag.Finding
}

// fmuDescription is one FMU.
type fmuDescription struct {
	Path, Hash  string
	Platforms   []string // folders below binaries
	Description *description.ModelDescription
}

// namedVariable is a variable of an FMU in a system.
type namedVariable struct {
	Name, Description string
	Settable          bool // before the run
}

// systemDescription is a coupled system. It is its own JSON.
type systemDescription struct {
	// Partial means that the description comes from the documents alone: FMUs are missing,
	// or something is wrong.
	Partial     bool                    `json:"partial"`
	Path        string                  `json:"path"`
	Name        string                  `json:"name"`
	Components  []componentInfo         `json:"components"`
	Functions   []assemble.FunctionInfo `json:"functions,omitempty"` // of OSP
	Connections []connectionInfo        `json:"connections"`
	Settings    []settingInfo           `json:"settings"` // parameters and start values in force
	Stateless   []string                `json:"stateless"`
	Loops       []master.Loop           `json:"loops"`
	StartTime   simulate.Setting        `json:"start_time"`
	StopTime    simulate.Setting        `json:"stop_time"`
	StepSize    simulate.Setting        `json:"step_size"`
	Tolerance   *simulate.Setting       `json:"tolerance"`
	Algorithm   string                  `json:"algorithm"`
	Params      map[string]string       `json:"parameters"`
	Sources     map[string]string       `json:"sources"` // of the settings of a run that the documents have
}

type componentInfo struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Model   string `json:"model"`
	Tool    string `json:"tool"`
	Inputs  int    `json:"inputs"`
	Outputs int    `json:"outputs"`
	Missing bool   `json:"missing"` // the FMU cannot be had
}

type connectionInfo struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	FromUnit string  `json:"from_unit"`
	ToUnit   string  `json:"to_unit"`
	Gain     float64 `json:"gain"` // of Reals, unit conversion included
	Offset   float64 `json:"offset"`
	Map      string  `json:"map"`    // of other types: values that change
	Via      string  `json:"via"`    // connectors of systems on the way
	Origin   string  `json:"origin"` // file and place
}

type settingInfo struct {
	Name   string          `json:"name"`
	Value  string          `json:"value"`
	Origin string          `json:"origin"`          // file and place
	Weaker int             `json:"weaker"`          // number of values for it that do not count
	Over   string          `json:"over"`            // connector of a system that is bound to the value; "" = the variable itself
	Steps  []assemble.Step `json:"steps,omitempty"` // from the value in its parameter set
}
