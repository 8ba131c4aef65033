package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
)

// facts returns the facts that must be the same in a run resumed from a checkpoint.
func (r *run) facts() (record.Facts, error) {
	sys, choice, played := r.sys, r.chosen, r.scenario
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	f := record.Facts{
		"macrostep":      Version() + " on " + Platform(),
		"algorithm":      choice.Preset,
		"the start time": exact(sys.Start.Value), "the step size": exact(sys.Step.Value),
		"the tolerance for the FMUs":      "none",
		"the time between rows":           exact(r.Interval),
		"the time between checkpoints":    exact(r.Checkpoints.Every),
		"the threshold of --energy-spike": exact(r.spike()),
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
	for _, b := range choice.Bonds {
		var pairs []string
		for _, p := range b.Pairs {
			sign := ""
			if p.Opposed {
				sign = "-"
			}
			pairs = append(pairs, fmt.Sprintf("%s%s × %s × %v W", sign, p.Effort, p.Flow, p.Watt))
		}
		f["bond "+b.Name] = fmt.Sprintf("%s, scale %g, tolerance %g", strings.Join(pairs, " + "), b.Scale, b.Tolerance)
	}
	for _, rate := range r.Rates {
		f["the rate of "+rate.Component] = fmt.Sprintf("%d/%d", rate.Steps, rate.Over)
	}
	for _, table := range []struct{ flag, path string }{{"--input", r.Input}, {"--history", r.History}} {
		if table.path == "" {
			continue
		}
		hash, err := record.HashFile(table.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table.flag, err)
		}
		f["the table of "+table.flag] = hash
	}
	if played != nil {
		f["the scenario"] = played.Hash
		for i, path := range played.Files() {
			hash, err := record.HashFile(path)
			if err != nil {
				return nil, fmt.Errorf("--scenario: %w", err)
			}
			f[fmt.Sprintf("table %d of the scenario", i+1)] = hash
		}
	}
	f.AddSystem(sys.System)
	return f, nil
}

// keptStep is the source of the default step size of a run in one resumed from it.
const keptStep = assemble.GuessedStep + " of the run that is resumed"

// readCheckpoint reads the checkpoint from which the run is resumed. The default step of that run is kept.
func (r *run) readCheckpoint() (err error) {
	if r.Checkpoints.Resume == "" {
		return nil
	}
	if r.checkpoint, err = record.ReadCheckpoint(r.Checkpoints.Resume); err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if step := r.checkpoint.DefaultStep; step > 0 && r.open.Step == nil {
		r.open.Step = &Setting{Value: step, Source: keptStep}
	}
	return nil
}

// aboutStep returns a warning about a step that is kept from the run that is resumed, or none.
func (r *run) aboutStep() []string {
	if r.sys.Step.Source != keptStep {
		return nil
	}
	return []string{fmt.Sprintf("no step size is given: the macro step remains %.6g s, %s; for another step, run from the start with --step-size",
		r.sys.Step.Value, keptStep)}
}

// prepareCheckpoints sets the options of the run for resuming from a checkpoint and for
// writing checkpoints, and describes both in the manifest.
func (r *run) prepareCheckpoints(m *record.Manifest) error {
	k, o := &r.Checkpoints, &r.opt
	if k.File == "" && k.Resume == "" {
		return nil
	}
	now, err := r.facts()
	if err != nil {
		return err
	}
	if c := r.checkpoint; c != nil {
		if err := c.Matches(now); err != nil {
			return fmt.Errorf("--resume %s: %w", k.Resume, err)
		}
		if !(o.Stop > c.T) {
			return fmt.Errorf("--resume %s: the checkpoint is at t = %.12g s, and the run is to stop at %.12g s; give a later --stop-time",
				k.Resume, c.T, o.Stop)
		}
		o.Resume = c.State
		m.ResumedFrom = &record.Resumed{Checkpoint: k.Resume, Time: c.T, Steps: c.Steps}
	}
	if k.File == "" {
		return nil
	}
	// Absolute, because an FMU may change the working directory.
	path, err := filepath.Abs(k.File)
	if err != nil {
		return fmt.Errorf("--checkpoint: %w", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--checkpoint: %w; create the folder first", err)
	}
	record.Sweep(path)
	system, settings, err := r.kept()
	if err != nil {
		return fmt.Errorf("--checkpoint: %w", err)
	}
	step := 0.0
	if m.StepSize.Source == assemble.GuessedStep || m.StepSize.Source == keptStep {
		step = m.StepSize.Value
	}
	m.Checkpoints = &record.Checkpoints{Path: k.File, Every: k.Every}
	o.Checkpoints = &master.Checkpoints{Every: k.Every, OnInterrupt: true, Write: func(c master.Checkpoint) error {
		file := record.Checkpoint{Facts: maps.Clone(now), System: system, Settings: settings, DefaultStep: step, Every: k.Every, T: c.T, Steps: c.Steps, State: c.State}
		if err := file.Write(path); err != nil {
			return err
		}
		m.Checkpoints.Written++
		m.Checkpoints.Time = &c.T
		return nil
	}}
	return nil
}

// kept returns the system and the settings of the run for its checkpoints, with absolute paths, so that the run can be resumed
// from any folder.
func (r *run) kept() (system string, settings []Given, err error) {
	absolute := func(path string) string {
		abs, failed := filepath.Abs(path)
		err = errors.Join(err, failed)
		return abs
	}
	for _, g := range r.Given {
		switch {
		case g.Document || g.Name == "resume" || g.Name == "output":
			continue
		case g.Name == "checkpoint":
			g.Text = strings.TrimSuffix(g.Text, r.Checkpoints.File) + absolute(r.Checkpoints.File)
		case g.Name == "on":
			on, failed := parseOn(g.Text)
			g.Text, err = on.Pattern+"="+on.Host, errors.Join(err, failed)
		case Find(g.Name).Path:
			g.Text = absolute(g.Text)
		}
		settings = append(settings, g)
	}
	settings = append(settings, Given{Name: "output", Text: absolute(r.Output), Source: "--output"})
	return absolute(r.System), settings, err
}

// Continue completes the request by the system and the settings of the run whose checkpoint it resumes, unless they are given.
func (r *Request) Continue() error {
	if r.Checkpoints.Resume == "" {
		return nil
	}
	c, err := record.ReadCheckpoint(r.Checkpoints.Resume)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	given := r.Given
	for _, g := range c.Settings {
		if !slices.ContainsFunc(given, func(o Given) bool { return o.Name == g.Name }) {
			if err := r.Apply(g.Name, g.Text, g.Source); err != nil {
				return fmt.Errorf("--resume: %w", err)
			}
		}
	}
	r.System = cmp.Or(r.System, c.System)
	return nil
}
