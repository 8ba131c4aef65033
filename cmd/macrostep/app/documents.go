package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
)

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

// describe reads an FMU or a system for macrostep info. Together with an error it may return an incomplete description.
func describe(path string, o assemble.Options) (*fileDescription, error) {
	if err := simulate.There(path); err != nil {
		return nil, err
	}
	if !assemble.IsFMU(path) {
		return describeSystem(path, o)
	}
	if len(o.Set) > 0 {
		return nil, fmt.Errorf("--set: %s is an FMU; the flag is for systems", path)
	}
	f, list, err := fmi.Open(path, fmi.OpenOptions{Strict: o.Strict})
	if err != nil {
		return describeOutline(path, err)
	}
	d := &fileDescription{FMU: &fmuDescription{Path: path, Hash: f.Hash, Description: f.Description}, Findings: list.Findings}
	entries, err := os.ReadDir(filepath.Join(f.Dir, "binaries"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, f.Close())
	}
	for _, e := range entries {
		if e.IsDir() {
			d.FMU.Platforms = append(d.FMU.Platforms, e.Name())
		}
	}
	if list, err := f.Locate(); err != nil {
		for _, finding := range list.At(diag.Error) {
			finding.File = path
			d.Findings = append(d.Findings, finding)
		}
	}
	return d, f.Close()
}

// describeOutline describes an FMU that macrostep does not run. refused is the reason.
func describeOutline(path string, refused error) (*fileDescription, error) {
	var list *diag.ListError
	if !errors.As(refused, &list) || !diag.Has(refused, description.RuleVersion.ID) && !diag.Has(refused, description.RuleCoSimulation.ID) {
		return nil, refused
	}
	outline, platforms, err := fmi.ReadOutline(path)
	if err != nil {
		return nil, refused
	}
	return &fileDescription{FMU: &fmuDescription{Path: path, Platforms: platforms, Outline: outline}, Findings: list.Findings}, nil
}

// explain returns the sources of the values of variables "component.variable".
func explain(path string, names []string, o assemble.Options) (list []*assemble.Explanation, err error) {
	a, err := assemble.Open(path, o)
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		if e, err := a.Explain(name); err != nil {
			errs = append(errs, err)
		} else {
			list = append(list, e)
		}
	}
	return list, errors.Join(errs...)
}

// looking returns the options for reading a system that is not run: they accept the same as a run.
func looking(dialects []ssp.Dialect) assemble.Options {
	o := simulate.Reading(context.Background())
	o.Dialects = dialects
	o.Launcher = &worker.Launcher{}
	return o
}

// variablesOf lists the variables of the FMUs of a system as component.variable.
func variablesOf(path string, dialects []ssp.Dialect) ([]namedVariable, error) {
	a, err := assemble.Open(path, looking(dialects))
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	var list []namedVariable
	for _, c := range a.Components {
		for i := range c.FMU.Description.Variables {
			v := &c.FMU.Description.Variables[i]
			list = append(list, namedVariable{Name: c.Name + "." + v.Name, Description: v.Description,
				Settable: v.HasStart && v.Variability != description.Constant})
		}
	}
	if prefix := a.Alone(); prefix != "" { // of a single FMU, also the short names
		for _, v := range slices.Clone(list) {
			v.Name = strings.TrimPrefix(v.Name, prefix+".")
			list = append(list, v)
		}
	}
	return list, a.Close()
}

func describeSystem(path string, o assemble.Options) (*fileDescription, error) {
	a, err := assemble.Open(path, o)
	if err != nil {
		return outline(path, o.Dialects), errors.Join(err, a.Close())
	}
	a.Override(nil, nil, nil, nil) // records the source of guessed numbers
	own, err := simulate.AskedBy(a.Asked)
	if err != nil {
		return outline(path, o.Dialects), errors.Join(err, a.Close())
	}
	s := &systemDescription{
		Path: path, Name: a.Name, Loops: a.System.Loops, Algorithm: own.Algorithm, Params: own.Params, Sources: map[string]string{},
		StartTime: simulate.Setting(a.Start), StopTime: simulate.Setting(a.Stop), StepSize: simulate.Setting(a.Step),
	}
	if a.Tolerance != nil {
		t := simulate.Setting(*a.Tolerance)
		s.Tolerance = &t
	}
	for _, g := range own.Given {
		s.Sources[strings.TrimSpace(g.Name+" "+g.Key)] = g.Source
	}
	for _, h := range a.Hinted {
		s.Sources["rate "+h.Component] = fmt.Sprintf("%s (%s)", h.Hint.Source, h.Hint.Place)
	}
	for i, c := range a.Components {
		info := a.System.Infos[i]
		s.Components = append(s.Components, componentInfo{
			Name: c.Name, Source: c.Source, Model: c.FMU.Description.ModelName, Tool: c.FMU.Description.GenerationTool,
			Inputs: count(c.FMU.Description, description.Input), Outputs: count(c.FMU.Description, description.Output),
		})
		if info.Stateless {
			s.Stateless = append(s.Stateless, c.Name)
		}
	}
	s.Functions = a.Functions()
	s.Connections = a.Connections()
	s.Settings = settingsWith(a.Settings(), o.Set)
	d := &fileDescription{System: s, Findings: append(slices.Clone(a.Findings.Findings), a.Absent()...)}
	return d, a.Close()
}

// settingsWith returns the settings of the documents, overridden by those given by the user.
func settingsWith(documents []assemble.SettingInfo, given []assemble.Assignment) (list []settingInfo) {
	for _, s := range documents {
		v := settingInfo{Name: s.Name, Value: s.Value, Origin: s.Origin, Weaker: s.Weaker, Steps: s.Steps}
		if s.At != s.Name {
			v.Over = s.At
		}
		list = append(list, v)
	}
	for _, set := range given {
		if slices.ContainsFunc(list, func(v settingInfo) bool { return v.Over == set.Name && v.Origin == "--set" }) {
			continue // the value of a connector is in the list
		}
		v := settingInfo{Name: set.Name, Value: set.Value, Origin: "--set"}
		if i := slices.IndexFunc(list, func(old settingInfo) bool { return old.Name == set.Name }); i >= 0 {
			v.Weaker = list[i].Weaker + 1
			list[i] = v
		} else {
			list = append(list, v)
		}
	}
	return list
}

func count(d *description.ModelDescription, c description.Causality) int {
	n := 0
	for i := range d.Variables {
		if d.Variables[i].Causality == c {
			n++
		}
	}
	return n
}
