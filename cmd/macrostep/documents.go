package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/validate"
	"github.com/macrostep/macrostep/ssp"
)

// documents is the engine of the program: documents and FMUs.
type documents struct{}

var _ engine = documents{}

func newEngine() engine { return documents{} }

// Open assembles a system. The FMUs' libraries are loaded, so that one that
// cannot be is found before the first FMU is instantiated.
func (documents) Open(ctx context.Context, path string, o openOptions) (*opened, error) {
	if err := there(path); err != nil {
		return nil, err
	}
	options := assemble.Options{Strict: o.Strict, Stateless: o.Stateless, Driven: o.Driven, DrivenBy: o.DrivenBy, Record: o.Record, Read: o.Read, Compile: o.Compile, Cache: fmuslave.CacheDir()}
	options.Isolate, options.IsolateGiven, options.IsolateComponents = o.Isolation.Mode, o.Isolation.Given, o.Isolation.Components
	options.Restarts, options.RestartsGiven = o.Isolation.Restarts, o.Isolation.RestartsGiven
	options.Select, options.Columns = selectNames, columnsOf(ctx)
	crashes := &worker.Record{Dir: fmuslave.CacheDir()}
	options.Crashed = crashes.Crashed
	launcher := &worker.Launcher{Timeout: o.Isolation.StepTimeout, Memory: o.Isolation.MemoryLimit, Lost: crashes.Lost}
	options.Launcher = launcher
	for _, q := range o.Quirks {
		options.Quirks = append(options.Quirks, assemble.Quirk{Component: q.Name, Name: q.Value})
	}
	for _, a := range o.Set {
		options.Set = append(options.Set, assemble.Assignment(a))
	}
	seen := &notices{}
	options.Instance = fmi.InstanceOptions{LoggingOn: o.Debug, CallByCall: o.CallByCall, Log: func(m fmi.LogMessage) {
		if m.Category == fmi.OwnCategory {
			seen.add(m)
			o.Logger.Log(context.Background(), levelOf(m.Status), m.Instance+": "+m.Text)
			return
		}
		o.Logger.Log(context.Background(), levelOf(m.Status), printable(m.Text), "slave", m.Instance, "category", m.Category)
	}}
	var trace *fmi.Trace
	if o.Trace != nil {
		trace = fmi.NewTrace(o.Trace)
		options.Instance.Trace = trace
	}
	a, err := assemble.Open(path, options)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if err := limit(launcher, &a.Asked); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	var here, isolated []*fmi.FMU
	for _, c := range a.Components {
		if c.Isolated == "" {
			here = append(here, c.FMU)
		} else {
			isolated = append(isolated, c.FMU)
		}
	}
	if err := a.CheckErrors(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	mark := crashes.Begin(here)
	crashed := func(e *fmi.CrashError) (known bool) {
		if e.Hash == "" {
			mark.Leave(e.Reason)
			return mark != nil
		}
		if e.Instance == "" { // it was in no call
			var names []string
			for _, c := range a.Components {
				if c.Isolated == "" && c.FMU.Hash == e.Hash {
					names = append(names, c.Name)
				}
			}
			e.Instance = strings.Join(names, " or ")
		}
		known = crashes.Take(fmi.Launch{FMU: e.FMU, Hash: e.Hash, Model: e.Model}, &fmi.Ended{Reason: e.Reason, Crash: true})
		mark.End()
		return known
	}
	called := func() { // the FMUs, for the last time
		if e := fmi.Crashed(); e != nil {
			c := *e
			crashed(&c)
		}
		mark.End()
	}
	if err := a.Load(); err != nil {
		called()
		return nil, errors.Join(err, a.Close())
	}
	warnings := a.Override(value(o.Start), value(o.Stop), value(o.Step), value(o.Tolerance))
	out := &opened{
		System: a.System, Start: toSetting(a.Start, o.Start), Stop: toSetting(a.Stop, o.Stop), Step: toSetting(a.Step, o.Step),
		Algorithm: a.Algorithm, Params: a.Params, Asked: a.Asked, Findings: a.Findings.Findings, Warnings: warnings,
		Files: a.Files(), Notices: seen.list, Tidy: fmi.WatchProcess(here).Restore,
		Power:     a.Power,
		Describe:  func(name string) record.Description { return describe(a, name) },
		Bonds:     declaredBonds(a.DeclaredBonds),
		BondsSeen: func() []algorithms.Bond { return bondsSeen(a) },
		Monitor: func(list []algorithms.Monitored) (*master.System, error) {
			var named []assemble.Monitored
			for _, m := range list {
				named = append(named, assemble.Monitored{Name: m.Name, Level: m.Level})
			}
			err := a.Monitor(named)
			return a.System, err
		},
		Crashed: crashed,
		Close: func() error {
			called()
			crashes.Absolve(isolated)
			err := a.Close()
			if trace != nil && trace.Err() != nil {
				err = errors.Join(err, fmt.Errorf("the log of FMI calls ends early: %w", trace.Err()))
			}
			return err
		},
	}
	out.Rates = ratesOf(a.Rates)
	out.Items, out.ItemsOf = a.Items(), a.ItemsOf
	out.Resolve, out.Alone, out.Held = a.Resolve, a.Alone(), a.Held
	out.Inputs = map[string][]record.Derived{}
	for name, list := range a.Inputs() {
		for _, in := range list {
			out.Inputs[name] = append(out.Inputs[name], record.Derived{Name: in.Name, Gain: in.Gain, Offset: in.Offset, Map: in.Map})
		}
	}
	if a.Tolerance != nil {
		t := toSetting(*a.Tolerance, o.Tolerance)
		out.Tolerance = &t
	}
	for _, v := range a.Settings() {
		out.Settings = append(out.Settings, newSettingInfo(v))
	}
	for _, c := range a.Components {
		if c.Isolated == "" && c.FMU.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
			out.Once = append(out.Once, c.Name)
		}
		out.FMUs = append(out.FMUs, record.FMU{Component: c.Name, Path: c.Source, Hash: c.FMU.Hash, Tool: c.FMU.Description.GenerationTool, Quirks: c.Quirks.Names(), Isolated: c.Isolated})
	}
	return out, nil
}

// describe tells what the description of an FMU says of a variable of a system.
func describe(a *assemble.Assembly, name string) record.Description {
	v := a.Variable(name)
	if v == nil {
		return record.Description{}
	}
	return record.Description{Text: v.Description, Causality: v.Causality.String(), Variability: v.Variability.String()}
}

// selectNames and columnsOf understand what documents say of recording and of tables.
func selectNames(patterns []string) (func(name string) bool, error) {
	s, err := record.ParseSelection(patterns)
	return s.Match, err
}

func columnsOf(ctx context.Context) func(path string) ([]string, error) {
	return func(path string) ([]string, error) {
		s, err := record.ReadSignals(ctx, path)
		if err != nil {
			return nil, err
		}
		return s.Names, nil
	}
}

// limit sets the limits of processes that the documents give, where the user has
// given none. No process has been started yet.
func limit(l *worker.Launcher, asked *ssp.OwnSettings) error {
	if asked.StepTimeout != nil && l.Timeout == 0 {
		l.Timeout = timeoutOf(*asked.StepTimeout)
	}
	if asked.MemoryLimit != nil && l.Memory == 0 {
		if *asked.MemoryLimit > largestMemory {
			return fmt.Errorf("%s: memoryLimit: %g MiB is more than there can be; leave it out for no limit", asked.Sources["memory-limit"].Place, *asked.MemoryLimit)
		}
		l.Memory = memoryOf(*asked.MemoryLimit)
	}
	return nil
}

// printable makes the text of an FMU safe to print: control characters, which
// could steer a terminal, and bytes that are no UTF-8 are replaced.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

// notices are the messages of the binding about FMUs, which belong into the
// manifest: what an FMU changed in the process, log messages dropped. They may
// come from threads of the FMUs.
type notices struct {
	mu    sync.Mutex
	texts []string
}

const mostNotices = 100

func (n *notices) add(m fmi.LogMessage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if text := m.Instance + ": " + m.Text; len(n.texts) < mostNotices && !slices.Contains(n.texts, text) {
		n.texts = append(n.texts, text)
	}
}

func (n *notices) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.texts)
}

// levelOf gives the level of a message of an FMU: what is OK is for debugging.
func levelOf(s fmi.Status) slog.Level {
	switch s {
	case fmi.StatusOK, fmi.StatusPending:
		return slog.LevelDebug
	case fmi.StatusWarning, fmi.StatusDiscard:
		return slog.LevelWarn
	}
	return slog.LevelError
}

func value(s *setting) *float64 {
	if s == nil {
		return nil
	}
	return &s.Value
}

// toSetting keeps the name of the flag where one was given.
func toSetting(s assemble.Sourced, flag *setting) setting {
	if flag != nil {
		return *flag
	}
	return setting{Value: s.Value, Source: s.Source}
}

// bondsSeen gives the bonds that units show.
func bondsSeen(a *assemble.Assembly) []algorithms.Bond {
	var bonds []algorithms.Bond
	found, _ := a.Bonds()
	for _, b := range found {
		bonds = append(bonds, algorithms.Bond{Name: b.Name, Pairs: []algorithms.Pair{{Effort: b.Effort, Flow: b.Flow}}})
	}
	return bonds
}

// ratesOf gives the rates of documents as the algorithms take them.
func ratesOf(rates []ssp.Rate) []algorithms.Rate {
	var out []algorithms.Rate
	for _, r := range rates {
		out = append(out, algorithms.Rate{Component: r.Component, Steps: r.Ratio, Over: r.Over})
	}
	return out
}

// declaredBonds gives the bonds of the annotation as the algorithms take them.
func declaredBonds(declared []ssp.Bond) []algorithms.Bond {
	var bonds []algorithms.Bond
	for _, d := range declared {
		b := algorithms.Bond{Name: d.Name}
		if d.EnergyScale != nil {
			b.Scale = *d.EnergyScale
		}
		if d.Tolerance != nil {
			b.Tolerance = *d.Tolerance
		}
		for _, p := range d.Pairs {
			b.Pairs = append(b.Pairs, algorithms.Pair{Effort: p.Effort, Flow: p.Flow, Opposed: p.Opposed})
		}
		bonds = append(bonds, b)
	}
	return bonds
}

// Bonds looks at the connections of a system.
func (documents) Bonds(_ context.Context, path string) ([]assemble.BondCandidate, []assemble.NoBond, error) {
	a, err := assemble.Open(path, looking())
	if err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	bonds, others := a.Bonds()
	return bonds, others, a.Close()
}

// Validate judges a file.
func (documents) Validate(ctx context.Context, path string, r validateRequest) (*validate.Report, error) {
	return validate.File(ctx, path, validate.Options{
		Strict: r.Strict, Disable: r.Disable, Dynamic: r.Dynamic, Compile: r.Compile, Step: r.Step, Cache: fmuslave.CacheDir(),
		Launcher: &worker.Launcher{Timeout: trialTimeout},
		Assemble: assemble.Options{Select: selectNames, Columns: columnsOf(ctx)},
		Strategy: func(a *assemble.Assembly) assemble.Strategy { return strategyOf(a, path, r) },
	})
}

// trialTimeout ends an FMU that does not come back from a call while it is tried.
const trialTimeout = time.Minute

// strategyOf chooses the algorithm as a run of the system would.
func strategyOf(a *assemble.Assembly, path string, r validateRequest) assemble.Strategy {
	sys := &opened{System: a.System, Algorithm: a.Algorithm, Params: a.Params, Asked: a.Asked,
		Bonds: declaredBonds(a.DeclaredBonds), Rates: ratesOf(a.Rates), BondsSeen: func() []algorithms.Bond { return bondsSeen(a) }}
	choice, _, _, _, _, err := choose(&runRequest{System: path, Algorithm: r.Algorithm, Params: r.Params}, sys)
	if err != nil {
		return assemble.Strategy{Preset: cmp.Or(r.Algorithm, a.Algorithm), Unfit: err}
	}
	s := assemble.Strategy{Preset: choice.Preset, Algorithm: choice.Algorithm, Discard: choice.Discard, Order: -1}
	if order, err := strconv.Atoi(choice.Values["order"]); err == nil {
		s.Order = order
	}
	if names := choice.Values["sequence"]; names != "" && names != "graph" && choice.Values["scheme"] == "gauss-seidel" {
		for name := range strings.SplitSeq(names, ",") {
			s.Sequence = append(s.Sequence, strings.TrimSpace(name))
		}
	}
	return s
}

// Describe reads an FMU or a system for macrostep info.
func (documents) Describe(path string, o infoOptions) (*description, error) {
	if err := there(path); err != nil {
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
		return nil, err
	}
	d := &description{FMU: &fmuDescription{Path: path, Hash: f.Hash, Description: f.Description}, Findings: list.Findings}
	entries, err := os.ReadDir(filepath.Join(f.Dir, "binaries"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, f.Close())
	}
	for _, e := range entries {
		if e.IsDir() {
			d.FMU.Platforms = append(d.FMU.Platforms, e.Name())
		}
	}
	return d, f.Close()
}

// Explain tells where values come from.
func (documents) Explain(path string, names []string, o infoOptions) (list []*assemble.Explanation, err error) {
	a, err := assemble.Open(path, describing(o))
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

// looking are the options for a look at a system that nothing is run of: what a run
// would accept is accepted.
func looking() assemble.Options {
	return assemble.Options{Select: selectNames, Columns: columnsOf(context.Background()), Launcher: &worker.Launcher{}}
}

func describing(o infoOptions) assemble.Options {
	out := looking()
	out.Strict = o.Strict
	for _, a := range o.Set {
		out.Set = append(out.Set, assemble.Assignment(a))
	}
	return out
}

// there reports whether a file or folder that the user names is there, and else what is
// nearest to it.
func there(path string) error {
	file, _ := ssp.SplitVariant(path)
	for _, name := range []string{path, file} { // a # may be part of a name
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	folder := filepath.Dir(file)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("%s: there is no folder %s", file, folder)
	}
	var systems []string
	for _, e := range entries {
		if slices.Contains([]string{".ssp", ".ssd", ".fmu"}, strings.ToLower(filepath.Ext(e.Name()))) {
			systems = append(systems, e.Name())
		}
	}
	hint := diag.DidYouMean(filepath.Base(file), systems)
	switch {
	case hint != "":
	case len(systems) == 0:
		hint = "; there is no system or FMU in this folder; macrostep ssp new makes a system, macrostep demo examples"
	default:
		hint = "; there are " + someNames(systems)
	}
	return fmt.Errorf("%s: no such file%s", file, hint)
}

// Variables lists the variables of the FMUs of a system.
func (documents) Variables(path string) ([]namedVariable, error) {
	a, err := assemble.Open(path, looking())
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	var list []namedVariable
	for _, c := range a.Components {
		for i := range c.FMU.Description.Variables {
			v := &c.FMU.Description.Variables[i]
			list = append(list, namedVariable{Name: c.Name + "." + v.Name, Description: v.Description, Settable: v.HasStart && v.Variability != fmi.Constant})
		}
	}
	if prefix := a.Alone(); prefix != "" { // the short names, too
		for _, v := range slices.Clone(list) {
			v.Name = strings.TrimPrefix(v.Name, prefix+".")
			list = append(list, v)
		}
	}
	return list, a.Close()
}

func describeSystem(path string, o infoOptions) (*description, error) {
	a, err := assemble.Open(path, describing(o))
	if err != nil {
		return outline(path), errors.Join(err, a.Close())
	}
	a.Override(nil, nil, nil, nil) // where a number is guessed, its source says so
	s := &systemDescription{
		Path: path, Name: a.Name, Loops: a.System.Loops, Algorithm: a.Algorithm, Params: a.Params,
		Sources: map[string]string{}, StartTime: toSetting(a.Start, nil), StopTime: toSetting(a.Stop, nil), StepSize: toSetting(a.Step, nil),
	}
	if a.Tolerance != nil {
		t := toSetting(*a.Tolerance, nil)
		s.Tolerance = &t
	}
	for name, source := range a.Asked.Sources {
		s.Sources[name] = fmt.Sprintf("%s (%s)", source.Text, source.Place)
	}
	for i, c := range a.Components {
		info := a.System.Infos[i]
		s.Components = append(s.Components, componentInfo{
			Name: c.Name, Source: c.Source, Model: c.FMU.Description.ModelName, Tool: c.FMU.Description.GenerationTool,
			Inputs: count(c.FMU.Description, fmi.Input), Outputs: count(c.FMU.Description, fmi.Output),
		})
		if info.Stateless {
			s.Stateless = append(s.Stateless, c.Name)
		}
	}
	s.Functions = a.Functions()
	for _, c := range a.Connections() {
		s.Connections = append(s.Connections, connectionInfo(c))
	}
	for _, v := range a.Settings() {
		s.Settings = append(s.Settings, newSettingInfo(v))
	}
	for _, set := range o.Set { // beats them
		if slices.ContainsFunc(s.Settings, func(v settingInfo) bool { return v.Over == set.Name && v.Origin == "--set" }) {
			continue // a connector, whose value is there
		}
		v := settingInfo{Name: set.Name, Value: set.Value, Origin: "--set"}
		if i := slices.IndexFunc(s.Settings, func(old settingInfo) bool { return old.Name == set.Name }); i >= 0 {
			v.Weaker = s.Settings[i].Weaker + 1
			s.Settings[i] = v
		} else {
			s.Settings = append(s.Settings, v)
		}
	}
	d := &description{System: s, Findings: slices.Clone(a.Findings.Findings)}
	return d, a.Close()
}

func newSettingInfo(s assemble.SettingInfo) settingInfo {
	out := settingInfo{Name: s.Name, Value: s.Value, Origin: s.Origin, Weaker: s.Weaker, Steps: s.Steps}
	if s.At != s.Name {
		out.Over = s.At
	}
	return out
}

func count(d *fmi.ModelDescription, c fmi.Causality) int {
	n := 0
	for i := range d.Variables {
		if d.Variables[i].Causality == c {
			n++
		}
	}
	return n
}

// Systems names the example systems.
func (documents) Systems() []string { return fmus.Systems() }

// WriteSystem builds an example system.
func (documents) WriteSystem(dir, name string) (string, error) { return fmus.WriteSystem(dir, name) }

// WriteChain builds an oscillator chain.
func (documents) WriteChain(dir string, c fmus.Chain) (string, error) { return fmus.WriteChain(dir, c) }

// Cleanup removes all temporary folders.
func (documents) Cleanup() { archive.Cleanup() }
