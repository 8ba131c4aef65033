package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/ssp"
)

// OpenOptions are the options of Open: of the Request those that concern the system, with Driven, DrivenBy and Read, which
// are those of signals and of a scenario.
type OpenOptions struct {
	Request
	// Expendable says that this process may end with an FMU: FMUs on record as having ended one
	// before are not isolated for that.
	Expendable bool
	Logger     *slog.Logger
	Debug      bool      // turn on the debug logging of FMUs
	Calls      io.Writer // one line for each FMI call; nil = none
}

// System is a system ready to run.
type System struct {
	System            *master.System
	FMUs              []record.FMU
	Start, Stop, Step Setting
	Tolerance         *Setting                            // nil = none
	Algorithm         string                              // of the documents; "" = none
	Params            map[string]string                   // of the documents
	Findings          []diag.Finding                      // none of them an error
	Warnings          []string                            // about guessed settings
	Files             []string                            // that were read and must not be overwritten
	Settings          []assemble.SettingInfo              // parameters and start values of the documents
	Inputs            map[string][]record.Derived         // inputs of FMUs fed by inputs of the outermost system or named otherwise
	Outputs           []record.Output                     // of the outermost system
	Items             map[string]map[string]int64         // of driven inputs that are enumerations
	ItemsOf           func(name string) map[string]int64  // items of an enumeration "component.variable"; nil = unknown
	Resolve           func(name string) (string, error)   // the name in results of a variable named by the user; nil = the same
	Held              []string                            // inputs "component.variable" with a value of --set and without a source
	Alone             string                              // component of a single FMU; "" for a system
	Once              []string                            // components in this process whose FMUs can be instantiated only once in it
	Few               bool                                // a component is on a host or drives a tool, which may refuse further instances
	Notes             []string                            // that need no action
	Mortal            []string                            // warnings of hosts whose loss ends a run, for its begin
	Notices           func() (warnings, notes []string)   // about FMUs during the run, to be called after it; nil = none
	Tidy              func() (restored, lasting []string) // undoes changes of FMUs to the process (master.Options.Tidy); nil = none
	StepTimeout       time.Duration                       // of a call into an FMU in this process; 0 = none
	MemoryLimit       uint64                              // bytes, of the FMUs in this process; 0 = none
	Close             func() error                        // removes unpacked files; call it after the run
	// Describe describes a variable "component.variable"; nil = nothing is known.
	Describe func(name string) record.Description
	// Names returns all variables "component.variable" of the FMUs; nil = those of System are all.
	Names func() []string
	// Power returns the power in W per unit of the product of two outputs, 0 if their units
	// are unknown; nil = there are no units.
	Power func(effort, flow string) (watt float64, err error)
	// Bonds of the documents, and those found by units.
	Bonds     []algorithms.Bond
	BondsSeen func() []algorithms.Bond
	Rates     []algorithms.Rate // of the documents
	Hints     map[string]string // sources of those Rates that come from steps of components
	Asked     []ssp.Asked       // settings of the documents
	// Monitor recreates the System with further variables for the error estimate; nil = only
	// outputs can be monitored.
	Monitor func([]algorithms.Monitored) (*master.System, error)
	// Shared: other processes run the FMUs in the same working folder at the same time.
	Shared bool
}

// Open reads a system and its FMUs. It loads the libraries, so that errors are found before
// the first FMU is instantiated.
func Open(ctx context.Context, path string, o OpenOptions) (*System, error) {
	m, options, err := opening(ctx, path, &o)
	if err != nil {
		return nil, err
	}
	a, err := assemble.Open(path, options) // never nil
	var out *System
	if err == nil {
		out, err = m.system(a, &o, func() error { return a.Load(ctx) })
	}
	if err != nil {
		return nil, errors.Join(err, a.Close(), m.leave())
	}
	return out, m.leave()
}

// assemble returns the options for assemble.Open, without those on processes.
func (o *OpenOptions) assemble(ctx context.Context, seen *notices) assemble.Options {
	out := o.Options
	out.Dialects, out.Set, out.Cache = Dialects(out.Dialects), slices.Clone(out.Set), fmuslave.CacheDir()
	if !o.Record.IsDefault() {
		out.Record = o.Record.Match
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	out.Instance = fmi.InstanceOptions{LoggingOn: o.Debug, StepTimeout: o.StepTimeout, CallByCall: o.CallByCall}
	out.Instance.Log = func(m fmi.LogMessage) {
		if m.Category == fmi.OwnCategory {
			seen.add(m)
			logger.Log(context.Background(), levelOf(m.Status), m.Instance+": "+m.Text)
			return
		}
		logger.Log(context.Background(), levelOf(m.Status), m.Text, "slave", m.Instance, "category", m.Category)
	}
	if o.Calls != nil {
		out.Instance.Trace = fmi.NewTrace(o.Calls)
	}
	return out
}

// settle returns a function that completes the options of opening a system by the settings of its documents. with gets the
// request that has them all.
func settle(ctx context.Context, r Request, with func(*Request) error) func(*assemble.Options, []ssp.Asked) error {
	return func(o *assemble.Options, asked []ssp.Asked) error {
		all := r
		all.Options = *o
		if err := all.Adopt(asked); err != nil {
			return err
		}
		*o = all.Options
		o.Instance.StepTimeout = all.StepTimeout
		if !all.Record.IsDefault() {
			o.Record = all.Record.Match
		}
		if i := slices.IndexFunc(asked, func(a ssp.Asked) bool { return a.Name == "input" }); i >= 0 && o.DrivenBy == "" {
			s, err := record.ReadSignals(ctx, asked[i].Text)
			if err != nil {
				return fmt.Errorf("%s: the input %s: %w", asked[i].Place, asked[i].Shown, err)
			}
			o.Driven, o.DrivenBy = s.Named, asked[i].Shown
		}
		return with(&all)
	}
}

// mortal returns System.Mortal.
func mortal(a *assemble.Assembly) (warnings []string) {
	hosts := map[string][]string{}
	for i := range a.Components {
		c := &a.Components[i]
		if k := slices.IndexFunc(a.System.Infos, func(info *master.Info) bool { return info.Name == c.Name }); c.Host != "" && !a.System.Infos[k].Caps.Restarts {
			hosts[c.Host] = append(hosts[c.Host], c.Name)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(hosts)) {
		warnings = append(warnings, fmt.Sprintf("if the connection to host %s is lost, the run ends and keeps its rows, because the state of %s cannot be "+
			"serialised (canSerializeFMUstate)", at, strings.Join(hosts[at], ", ")))
	}
	return warnings
}

// newSystem describes an assembly for a run, after settling its times.
func newSystem(a *assemble.Assembly, o *OpenOptions) (*System, error) {
	warnings, notes := a.Override(value(o.Start), value(o.Stop), value(o.Step), value(o.Tolerance))
	own, err := AskedBy(a.Asked)
	if err != nil {
		return nil, err
	}
	out := &System{
		System: a.System, Algorithm: own.Algorithm, Params: own.Params, Asked: a.Asked, Hints: map[string]string{},
		Start: toSetting(a.Start, o.Start), Stop: toSetting(a.Stop, o.Stop), Step: toSetting(a.Step, o.Step),
		Findings: a.Findings.Findings, Warnings: warnings, Notes: notes, Mortal: mortal(a), Files: a.Files(), Settings: a.Settings(),
		Items: a.Items(), ItemsOf: a.ItemsOf, Resolve: a.Resolve, Alone: a.Alone(), Held: a.Held,
		Inputs: map[string][]record.Derived{}, Power: a.Power, Rates: own.Rates,
		Describe:  func(name string) record.Description { return describe(a, name) },
		Names:     a.VariableNames,
		Bonds:     own.Bonds,
		BondsSeen: func() []algorithms.Bond { return bondsSeen(a) },
		Monitor: func(list []algorithms.Monitored) (*master.System, error) {
			var named []assemble.Monitored
			for _, m := range list {
				named = append(named, assemble.Monitored{Name: m.Name, Level: m.Level})
			}
			err := a.Monitor(named)
			return a.System, err
		},
	}
	for _, h := range a.Hinted {
		out.Rates = append(out.Rates, h.Rate)
		out.Hints[h.Component] = fmt.Sprintf("%s (%s)", h.Hint.Source, h.Hint.Place)
	}
	for name, list := range a.Inputs() {
		for _, in := range list {
			out.Inputs[name] = append(out.Inputs[name], record.Derived{Name: in.Name, Gain: in.Gain, Offset: in.Offset, Map: in.Map})
		}
	}
	out.Outputs = a.Outputs()
	if a.Tolerance != nil {
		t := toSetting(*a.Tolerance, o.Tolerance)
		out.Tolerance = &t
	}
	for _, c := range a.Components {
		out.Few = out.Few || c.Host != "" || c.FMU.Description.CoSimulation.NeedsExecutionTool
		if c.Isolated == "" && c.FMU.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
			out.Once = append(out.Once, c.Name)
		}
		out.FMUs = append(out.FMUs, record.FMU{Component: c.Name, Path: c.Source, Hash: c.FMU.Hash,
			Tool: c.FMU.Description.GenerationTool, Quirks: c.QuirkNames(), Isolated: c.Isolated, Unasked: c.Unasked})
	}
	return out, nil
}

// describe returns the description of a variable from its modelDescription.xml.
func describe(a *assemble.Assembly, name string) record.Description {
	v := a.Variable(name)
	if v == nil {
		return record.Description{}
	}
	return record.Description{Text: v.Description, Causality: v.Causality.String(), Variability: v.Variability.String()}
}

// Reading returns the options with which assemble evaluates the settings of documents, without running anything.
func Reading(ctx context.Context) assemble.Options {
	return assemble.Options{
		Dialects: Dialects(nil), Settle: settle(ctx, Request{}, func(*Request) error { return nil }),
		Host: func(address string, _ bool) (fmi.Launcher, error) { return unreached(address), nil },
	}
}

// unreached is the launcher for a host when documents are only read.
type unreached string

func (u unreached) Host() string { return string(u) }

func (u unreached) Apart() fmi.Launcher { return u }

func (u unreached) Launch(fmi.Launch) (fmi.Link, error) {
	return nil, fmt.Errorf("host %s is not connected", string(u))
}

// notices collects messages of package fmi about FMUs for the manifest, such as changes to the
// process or dropped log messages. They may come from threads of the FMUs.
type notices struct {
	mu              sync.Mutex
	warnings, notes []string
}

const mostNotices = 100

func (n *notices) add(m fmi.LogMessage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := &n.warnings
	if m.Status == fmi.StatusOK {
		list = &n.notes
	}
	if text := m.Instance + ": " + m.Text; len(*list) < mostNotices && !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

func (n *notices) list() (warnings, notes []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.warnings), slices.Clone(n.notes)
}

// levelOf returns the log level of a message of an FMU.
func levelOf(s fmi.Status) slog.Level {
	switch s {
	case fmi.StatusOK, fmi.StatusPending:
		return slog.LevelDebug
	case fmi.StatusWarning, fmi.StatusDiscard:
		return slog.LevelWarn
	}
	return slog.LevelError
}

func value(s *Setting) *float64 {
	if s == nil {
		return nil
	}
	return &s.Value
}

// toSetting returns the setting of the flag if it was given.
func toSetting(s assemble.Sourced, flag *Setting) Setting {
	if flag != nil {
		return *flag
	}
	return Setting{Value: s.Value, Source: s.Source}
}

// bondsSeen returns the bonds found by units.
func bondsSeen(a *assemble.Assembly) []algorithms.Bond {
	var bonds []algorithms.Bond
	found, _ := a.Bonds()
	for _, b := range found {
		bonds = append(bonds, algorithms.Bond{Name: b.Name, Pairs: []algorithms.Pair{{Effort: b.Effort, Flow: b.Flow}}})
	}
	return bonds
}

// There returns an error with similar names if a file or folder does not exist.
func There(path string) error {
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
	slices.SortStableFunc(systems, func(a, b string) int { // FMUs after systems
		fmu := func(name string) bool { return strings.EqualFold(filepath.Ext(name), ".fmu") }
		switch {
		case fmu(a) == fmu(b):
			return 0
		case fmu(b):
			return -1
		}
		return 1
	})
	hint := diag.DidYouMean(filepath.Base(file), systems)
	switch {
	case hint != "":
	case len(systems) == 0:
		hint = "; there is no system or FMU in this folder; macrostep ssp new makes a system, macrostep demo examples"
	default:
		hint = "; there are " + diag.Some(systems)
	}
	return fmt.Errorf("%s: no such file%s", file, hint)
}
