package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/validate"
	"github.com/macrostep/macrostep/ssp"
)

// engine is all that the command line asks of the packages which read documents
// and FMUs. Tests put Go subsystems in its place.
type engine interface {
	// Open reads a system: an .ssp, a folder with SystemStructure.ssd, an .ssd
	// or one .fmu. No FMU is instantiated before the run.
	Open(ctx context.Context, path string, o openOptions) (*opened, error)
	// Describe reads a file of the same kinds for macrostep info. With an error the
	// description may hold what is known all the same; nil = nothing.
	Describe(path string, o infoOptions) (*description, error)
	// Explain tells where the values of variables "component.variable" come from.
	Explain(path string, names []string, o infoOptions) ([]*assemble.Explanation, error)
	// Variables lists those of the FMUs of a system, by component.variable.
	Variables(path string) ([]namedVariable, error)
	// Validate judges a file by the rules. The error says that it could not be looked at.
	Validate(ctx context.Context, path string, r validateRequest) (*validate.Report, error)
	// Bonds lists the power bonds that a system may have, and pairs of opposite
	// connections that are none.
	Bonds(ctx context.Context, path string) ([]assemble.BondCandidate, []assemble.NoBond, error)
	// Systems names the example systems.
	Systems() []string
	// WriteSystem builds an example system as dir/name.ssp and gives its path.
	WriteSystem(dir, name string) (string, error)
	// WriteChain builds an oscillator chain as dir/chain.ssp and gives its path.
	WriteChain(dir string, c fmus.Chain) (string, error)
	// Cleanup removes all temporary folders, whatever still runs.
	Cleanup()
}

// infoOptions say how a file is described.
type infoOptions struct {
	Strict bool
	Set    []assignment // as for a run
}

// assignment is component.variable = value.
type assignment struct{ Name, Value string }

// openOptions say how a system is opened.
type openOptions struct {
	Strict    bool
	Stateless []string
	Set       []assignment
	Quirks    []assignment // component = quirk; component "" = the only one
	Compile   bool
	Isolation isolation
	Driven    []string               // inputs "component.variable" given from outside
	DrivenBy  string                 // what gives them, for messages
	Record    func(name string) bool // variables to record; nil = the default choice
	Read      func(name string) bool // further variables to read; nil = none
	// Times in s and tolerance of the user, which beat those of the documents;
	// nil = not given.
	Start, Stop, Step, Tolerance *setting

	Logger     *slog.Logger
	Debug      bool      // the FMUs' debug logging is wanted
	CallByCall bool      // every call into an FMU is a crossing of its own
	Trace      io.Writer // one line for each FMI call; nil = none
}

// isolation says which FMUs run in processes of their own, and how.
type isolation struct {
	Mode          assemble.Isolation
	Given         bool // the user has chosen Mode, and not the default
	Components    []string
	StepTimeout   time.Duration // 0 = none
	MemoryLimit   uint64        // bytes; 0 = none
	Restarts      int           // of a component whose process ended; 0 = its end is that of the run
	RestartsGiven bool          // the user has chosen it
}

// setting is a number of the command line and the flag that gave it.
type setting = record.Setting

// opened is a system ready to run.
type opened struct {
	System            *master.System
	FMUs              []record.FMU
	Start, Stop, Step setting
	Tolerance         *setting                           // nil = none
	Algorithm         string                             // of the documents; "" = none
	Params            map[string]string                  // of the documents
	Findings          []diag.Finding                     // none of them an error
	Warnings          []string                           // about what had to be guessed
	Files             []string                           // that were read, and must not be written
	Settings          []settingInfo                      // parameters and start values in force
	Inputs            map[string][]record.Derived        // what the inputs of the outermost system feed, and inputs by other names
	Items             map[string]map[string]int32        // of driven inputs that are enumerations
	ItemsOf           func(name string) map[string]int32 // of a variable "component.variable" that is an enumeration; nil = nobody knows
	Resolve           func(name string) (string, error)  // gives the name in results of a variable that the user names; nil = the same
	Held              []string                           // inputs "component.variable" that nothing feeds and --set gives a value
	Alone             string                             // component of an FMU that runs alone; "" for a system
	Once              []string                           // components in this process whose FMUs can be instantiated only once in it
	Notices           func() []string                    // about FMUs while they ran, after the run; nil = there are none
	Tidy              func() []string                    // puts back what FMUs change in the process (master.Options.Tidy); nil = nothing
	Close             func() error                       // removes what was unpacked; call it after the run
	// Describe tells what a variable "component.variable" is; nil = nothing is known.
	Describe func(name string) record.Description
	// Power gives the power in W per unit of the product of two outputs, 0 if their
	// units do not tell; nil = there are no units.
	Power func(effort, flow string) (watt float64, err error)
	// Bonds of the documents, and those found by units.
	Bonds     []algorithms.Bond
	BondsSeen func() []algorithms.Bond
	Rates     []algorithms.Rate // of the documents
	Asked     ssp.OwnSettings   // all that the documents ask for, and where
	// Monitor makes the System anew with variables that an algorithm judges by;
	// nil = there is nothing but outputs.
	Monitor func([]algorithms.Monitored) (*master.System, error)
}

// description is what macrostep info shows; one of FMU and System is set.
type description struct {
	FMU      *fmuDescription
	System   *systemDescription
	Findings []diag.Finding
}

// fmuDescription is one FMU.
type fmuDescription struct {
	Path, Hash  string
	Platforms   []string // folders below binaries
	Description *fmi.ModelDescription
}

// namedVariable is a variable of an FMU in a system.
type namedVariable struct {
	Name, Description string
	Settable          bool // before the run
}

// systemDescription is a coupled system. It is its own JSON.
type systemDescription struct {
	// Partial tells that the description is made of the documents alone, as far as that
	// goes: FMUs are missing, or something is wrong.
	Partial     bool                    `json:"partial"`
	Path        string                  `json:"path"`
	Name        string                  `json:"name"`
	Components  []componentInfo         `json:"components"`
	Functions   []assemble.FunctionInfo `json:"functions,omitempty"` // of OSP
	Connections []connectionInfo        `json:"connections"`
	Settings    []settingInfo           `json:"settings"` // parameters and start values in force
	Stateless   []string                `json:"stateless"`
	Loops       []master.Loop           `json:"loops"`
	StartTime   setting                 `json:"start_time"`
	StopTime    setting                 `json:"stop_time"`
	StepSize    setting                 `json:"step_size"`
	Tolerance   *setting                `json:"tolerance"`
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
	Steps  []assemble.Step `json:"steps,omitempty"` // from how the value stands in its parameter set
}
