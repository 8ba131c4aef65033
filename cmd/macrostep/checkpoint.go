package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/scenario"
)

// Names of the flags about checkpoints.
const (
	flagCheckpoint  = "checkpoint"
	flagOnInterrupt = "checkpoint-on-interrupt"
	flagResume      = "resume"
)

// pathFlags are the flags of run whose value is a file.
var pathFlags = []string{"input", "history", "output", "manifest", "trace", "report", "log-fmi-calls", flagScenario}

// checkpointing says where checkpoints of a run go, and from which it goes on.
type checkpointing struct {
	File        string  // "" = none
	Every       float64 // s; 0 = none but on an interrupt
	OnInterrupt bool
	Resume      string // file; "" = from the start
	// Arguments that begin a run which goes on from a checkpoint of this one.
	Arguments []string
}

// resumeArguments lays arguments over those of the run that is resumed, if it is one:
// a flag that is given, and SYSTEM, take the place of theirs.
func resumeArguments(flags, rest []string) ([]string, []string, error) {
	path := ""
	given := map[string]bool{}
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		given[name] = true
		if name == flagResume {
			path = value
		}
	}
	if !given[flagResume] {
		return flags, rest, nil
	}
	c, err := record.ReadCheckpoint(path)
	if err != nil {
		return nil, nil, fmt.Errorf("--%s: %w", flagResume, err)
	}
	var before []string
	for _, f := range c.Arguments {
		name, isFlag := strings.CutPrefix(f, "--")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case isFlag && !given[name]:
			before = append(before, f)
		case !isFlag && len(rest) == 0:
			rest = []string{f}
		}
	}
	return append(before, flags...), rest, nil
}

// keepArguments gives the arguments of a run as they are kept in its checkpoints:
// with absolute paths, so that the run can be resumed from any folder.
func keepArguments(flags []string, system string) ([]string, error) {
	var out []string
	absolute := func(path string) (string, error) {
		if path == "" {
			return "", nil
		}
		return filepath.Abs(path)
	}
	output := false
	second := false // value of the flag of checkpoints
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		isPath := slices.Contains(pathFlags, name)
		switch name {
		case flagResume, flagProfile:
			continue
		case flagCheckpoint:
			isPath, second = second, !second
		case "output":
			output = true
		}
		if isPath {
			var err error
			if value, err = absolute(value); err != nil {
				return nil, err
			}
		}
		out = append(out, "--"+name+"="+value)
	}
	if !output {
		path, err := absolute(defaultOutput)
		if err != nil {
			return nil, err
		}
		out = append(out, "--output="+path)
	}
	system, err := absolute(system)
	return append(out, system), err
}

// readCheckpointing reads the flags.
func readCheckpointing(c *cli.Context) (checkpointing, error) {
	k := checkpointing{OnInterrupt: c.Bool(flagOnInterrupt), Resume: c.String(flagResume)}
	pair := c.StringSlice(flagCheckpoint)
	if c.IsSet(flagResume) && k.Resume == "" {
		return k, fmt.Errorf("--%s: the value is empty", flagResume)
	}
	if len(pair) == 0 {
		if k.OnInterrupt {
			return k, fmt.Errorf("--%s: give --%s EVERY FILE too; with 0 for EVERY there is none but on an interrupt", flagOnInterrupt, flagCheckpoint)
		}
		return k, nil
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(pair[0]), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return k, fmt.Errorf("--%s: %q is no number of seconds; give --%s EVERY FILE, like --%[1]s 10 run.checkpoint", flagCheckpoint, pair[0], flagCheckpoint)
	}
	if len(pair) != 2 || pair[1] == "" {
		return k, fmt.Errorf("--%s takes two values, EVERY FILE, like --%[1]s 10 run.checkpoint", flagCheckpoint)
	}
	k.Every, k.File = v, pair[1]
	if v == 0 {
		k.OnInterrupt = true
	}
	return k, nil
}

// facts are what must be the same in a run that goes on from a checkpoint.
func (r *runRequest) facts(sys *opened, choice *algorithms.Choice, bonds []algorithms.Bond, played *scenario.Scenario) (record.Facts, error) {
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	f := record.Facts{
		"macrostep":      version() + " on " + platform(),
		"algorithm":      choice.Preset,
		"the start time": exact(sys.Start.Value), "the step size": exact(sys.Step.Value),
		"the tolerance for the FMUs":      "none",
		"the time between rows":           exact(r.Interval),
		"the time between checkpoints":    exact(r.Checkpoints.Every),
		"the threshold of --energy-spike": exact(r.Spike),
	}
	if sys.Tolerance != nil {
		f["the tolerance for the FMUs"] = exact(sys.Tolerance.Value)
	}
	for name, v := range choice.Values {
		f["parameter "+name] = v
	}
	for _, fmu := range sys.FMUs {
		f["the FMU of "+fmu.Component] = fmu.Hash
		if len(fmu.Quirks) > 0 {
			f["the quirks of "+fmu.Component] = strings.Join(fmu.Quirks, ", ")
		}
	}
	for _, s := range sys.Settings {
		f["the value of "+s.Name] = s.Value
	}
	for _, s := range r.Set {
		f["the value of "+s.Name] = s.Value
	}
	for _, b := range bonds {
		f["bond "+b.Name] = fmt.Sprintf("%+v, scale %g, tolerance %g", b.Pairs, b.Scale, b.Tolerance)
	}
	for _, rate := range r.Rates {
		f["the rate of "+rate.Component] = fmt.Sprintf("%d/%d", rate.Steps, rate.Over)
	}
	for _, table := range []struct{ flag, path string }{{"--input", r.Input}, {"--history", r.History}} {
		if table.path == "" {
			continue
		}
		hash, err := hashOf(table.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table.flag, err)
		}
		f["the table of "+table.flag] = hash
	}
	if played != nil {
		f["the scenario"] = played.Hash
		for i, path := range played.Files() {
			hash, err := hashOf(path)
			if err != nil {
				return nil, fmt.Errorf("--%s: %w", flagScenario, err)
			}
			f[fmt.Sprintf("table %d of the scenario", i+1)] = hash
		}
	}
	f.AddSystem(sys.System)
	return f, nil
}

func hashOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}

// prepareCheckpoints puts into the options of a run what it takes to go on from a
// checkpoint, and to make some. The manifest tells of both.
func (r *runRequest) prepareCheckpoints(facts func() (record.Facts, error), m *record.Manifest, o *master.Options) error {
	k := &r.Checkpoints
	if k.File == "" && k.Resume == "" {
		return nil
	}
	now, err := facts()
	if err != nil {
		return err
	}
	if k.Resume != "" {
		c, err := record.ReadCheckpoint(k.Resume)
		if err != nil {
			return fmt.Errorf("--%s: %w", flagResume, err)
		}
		if err := c.Matches(now); err != nil {
			return fmt.Errorf("--%s %s: %w", flagResume, k.Resume, err)
		}
		if !(o.Stop > c.T) {
			return fmt.Errorf("--%s %s: the checkpoint is at t = %.12g s, and the run is to stop at %.12g s; give a later --stop-time", flagResume, k.Resume, c.T, o.Stop)
		}
		o.Resume = c.State
		m.ResumedFrom = &record.Resumed{Checkpoint: k.Resume, Time: c.T, Steps: c.Steps}
	}
	if k.File == "" {
		return nil
	}
	// By its absolute path: an FMU may change the working directory meanwhile.
	path, err := filepath.Abs(k.File)
	if err != nil {
		return fmt.Errorf("--%s: %w", flagCheckpoint, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--%s: %w; create the folder first", flagCheckpoint, err)
	}
	record.Sweep(path)
	arguments := k.Arguments
	if m.StepSize.Source == assemble.GuessedStep { // it must not follow another stop time
		arguments = append([]string{fmt.Sprintf("--step-size=%v", m.StepSize.Value)}, arguments...)
	}
	m.Checkpoints = &record.Checkpoints{Path: k.File, Every: k.Every}
	o.Checkpoints = &master.Checkpoints{Every: k.Every, OnInterrupt: k.OnInterrupt, Write: func(c master.Checkpoint) error {
		file := record.Checkpoint{Facts: maps.Clone(now), Arguments: arguments, Every: k.Every, Interrupt: k.OnInterrupt, T: c.T, Steps: c.Steps, State: c.State}
		if err := file.Write(path); err != nil {
			return err
		}
		m.Checkpoints.Written++
		m.Checkpoints.Time = &c.T
		return nil
	}}
	return nil
}
