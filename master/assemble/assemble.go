package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// Options of opening a system. The zero value of each field is its default.
type Options struct {
	Strict    bool          // findings that a tolerant reading lets pass are errors
	Stateless []string      // components that are declared stateless
	Quirks    []Quirk       // beside those of the documents
	Compile   bool          // compile the sources of FMUs without a library for this platform
	Dialects  []ssp.Dialect // of system structures; nil: dialect.All()
	// Context ends a compilation that is under way; nil = nothing does.
	Context  context.Context
	Set      []Assignment // parameters and start values, beating those of the documents
	Driven   []string     // inputs "component.variable" (of an FMU alone also "variable"), or of the outermost system, that are given from outside
	DrivenBy string       // what gives them, for messages: "--input road.csv"
	// Record tells which variables are recorded; nil records the default
	// choice: all outputs and all connected inputs, and for a component with
	// neither all its variables that are not parameters or constants.
	Record   func(name string) bool
	Read     func(name string) bool // further variables that are read, by any of their names; nil = none
	Instance fmi.InstanceOptions
	// Isolate says which components run in processes of their own, started by
	// Launcher; IsolateComponents names some that do. Nil Launcher: none can. With
	// IsolateGiven the user has chosen Isolate, else the documents may.
	Isolate           Isolation
	IsolateGiven      bool
	IsolateComponents []string
	// What documents ask for needs these: Select makes a Record of patterns, Columns
	// gives the names of the signals in a table. Without Select their choice has no effect;
	// without Columns a table of inputs is an error.
	Select   func(patterns []string) (func(name string) bool, error)
	Columns  func(path string) (names []string, err error)
	Launcher fmi.Launcher
	// Restarts is how often the process of an isolated component may be replaced
	// when it has come to its end in a call; 0 = never. The FMUs of all isolated
	// components have to serialise their states then. With RestartsGiven the user has
	// chosen it, else the documents may.
	Restarts      int
	RestartsGiven bool
	// Crashed returns how an FMU is known to have crashed, "" if it is not; nil
	// knows of none.
	Crashed func(*fmi.FMU) string
	Cache   string // folder for what is measured about FMUs (fmuslave.CacheDir); "" = none
}

// Quirk gives a component a quirk, by its name (see fmuslave.Quirks). The component of an
// FMU alone need not be named.
type Quirk struct{ Component, Name string }

// Assignment sets a parameter or start value: Name is "component.variable" (of an FMU alone
// also "variable"), or that of a
// connector of a system, "connector" or "system.connector", whose value goes on over its
// connections as one that the outermost system binds last (ssp 36, 37).
type Assignment struct{ Name, Value string }

// Monitored is a variable "component.variable" that an algorithm wants to see at
// every communication point.
type Monitored struct {
	Name  string
	Level master.Level // NoLevel = as the description of the FMU tells
}

// Sourced is a number and where it comes from.
type Sourced struct {
	Value  float64
	Source string
}

// Component is one subsystem and the FMU behind it.
type Component struct {
	Name   string
	Source string // of the FMU, as the document or the user gave it
	FMU    *fmi.FMU
	Quirks fmuslave.Quirk // in force, of the documents and the user
	// Isolated tells why the component runs in a process of its own, "" if it
	// does not.
	Isolated string
}

// Assembly is one system of a [Model].
type Assembly struct {
	Name       string
	Components []Component
	System     *master.System
	Findings   diag.List // of a system of Model.Instantiate those on its own values only

	// Settled by Override.
	Start, Stop, Step Sourced
	Tolerance         *Sourced          // nil = none
	Algorithm         string            // of our annotation; "" = none
	Params            map[string]string // of our annotation
	DeclaredBonds     []ssp.Bond        // of our annotation; their ends are Real outputs
	Rates             []ssp.Rate        // of our annotation
	Asked             ssp.OwnSettings   // all that the documents ask for, and where
	Held              []string          // inputs "component.variable" that nothing feeds and Options.Set gives a value
	model             *Model
	closed            bool
	files             resolver   // the FMUs of documents
	fmus              []*fmi.FMU // each opened file once
	shown             map[*fmi.FMU]string
	opening           fmi.OpenOptions
	network           *ssp.Network
	pkg               *ssp.Package
	options           Options
	components        []componentPlan
	called            map[string][]int // components by what paths gives, in their order
}

// Rules of the assembly.
var (
	ruleImplementation = &diag.Rule{
		ID: "SD19I", Level: diag.Warning, Ref: "ssp 13",
		Doc:    "The implementation of a component is an interface that the FMU offers and macrostep runs, which is Co-Simulation.",
		Remedy: "set implementation=\"CoSimulation\" or leave it out",
	}
	ruleNoImplementation = &diag.Rule{
		ID: "SD19M", Level: diag.Error, Ref: "ssp 13",
		Doc:    "The implementation of a component is an interface that the FMU offers.",
		Remedy: "set implementation=\"CoSimulation\" or leave it out",
	}
	ruleOnce = &diag.Rule{
		ID: "CC36", Level: diag.Error, Ref: "fmi2 37",
		Doc:    "An FMU that can be instantiated only once per process is used once in it.",
		Remedy: "use it for one component only, or let further ones run in processes of their own: --isolate auto",
	}
	ruleNoEffect = &diag.Rule{
		ID: "SD21N", Level: diag.Warning, Ref: "ssp 46",
		Doc:    "What the annotation of macrostep or the user asks for has an effect.",
		Remedy: "remove it, or take the result as that of a run without it",
	}
	ruleRange = &diag.Rule{
		ID: "CC14V", Level: diag.Warning, Ref: "fmi2 45",
		Doc:    "Values that the user sets lie within the bounds which the FMU gives. It may refuse others.",
		Remedy: "set a value within the bounds",
	}
)

// Rules lists the rules of this package.
func Rules() []*diag.Rule {
	return []*diag.Rule{ruleImplementation, ruleNoImplementation, ruleOnce, ruleNoEffect, ruleRange}
}

// ErrEmpty tells that there is nothing to be run in a system.
var ErrEmpty = errors.New("the system has no component with an FMU, so that there is nothing to run; add one, or make a system of FMUs with: macrostep ssp new")

// IsFMU reports whether a path names a single FMU: by its ending, or because it is
// a folder with an unpacked one.
func IsFMU(path string) bool {
	if strings.EqualFold(filepath.Ext(path), ".fmu") {
		return true
	}
	info, err := os.Stat(filepath.Join(path, "modelDescription.xml"))
	return err == nil && info.Mode().IsRegular()
}

// single makes the network of one FMU.
func (a *Assembly) single(path string) error {
	f, err := a.open(path)
	if err != nil {
		return err
	}
	base := filepath.Base(f.Path)
	if a.Name = base[:len(base)-len(filepath.Ext(base))]; strings.TrimSpace(a.Name) == "" {
		return fmt.Errorf("%s: the component is called by the file name without .fmu, and that is empty; rename the file", path)
	}
	a.network = &ssp.Network{Name: a.Name}
	a.Components = []Component{{Name: a.Name, Source: path, FMU: f}}
	a.index()
	return nil
}

func (a *Assembly) open(path string) (*fmi.FMU, error) {
	f, list, err := fmi.Open(path, a.opening)
	a.Findings.Append(list)
	if err != nil {
		return nil, err
	}
	a.fmus = append(a.fmus, f)
	return f, nil
}

func (a *Assembly) fromSSP(path string) (err error) {
	dialects := a.options.Dialects
	if dialects == nil {
		dialects = dialect.All()
	}
	if a.pkg, err = ssp.Open(path, &a.Findings, dialects...); err != nil {
		return err
	}
	if err := a.pkg.CheckSources(&a.Findings); err != nil {
		return err
	}
	components := a.pkg.Components()
	if a.files, err = a.openAll(components); err != nil {
		return err
	}
	a.pkg.Name(a.files)
	for _, c := range components {
		f := a.files[c.Source]
		a.Components = append(a.Components, Component{Name: c.Path, Source: c.URI, FMU: f})
		switch {
		case c.Implementation == "any", c.Implementation == "CoSimulation":
		case c.Implementation == "ModelExchange" && f.Description.ModelExchange != nil:
			a.Findings.Add(ruleImplementation, c.Place.File, c.Place.Path, c.Place.Line,
				"implementation is %s; macrostep runs the FMU as Co-Simulation, which it offers too", c.Implementation)
		default:
			a.Findings.Add(ruleNoImplementation, c.Place.File, c.Place.Path, c.Place.Line,
				"implementation is %s, which the FMU %q of component %q does not offer", c.Implementation, c.URI, c.Path)
		}
	}
	a.index()
	if err := a.flatten(); err != nil {
		return err
	}
	a.Name = a.network.Name
	if len(components) == 0 && a.Findings.Err() == nil {
		return fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	return a.Findings.Err()
}

// flatten resolves the documents, with the values of options.Set for connectors.
func (a *Assembly) flatten() (err error) {
	if err := a.give(a.options.Set); err != nil {
		return err
	}
	a.network, err = a.pkg.Flatten(a.files, &a.Findings)
	return err
}

// leastOpeners is how many FMUs are opened side by side, on few processors too: part
// of it is waiting for the disk.
const leastOpeners = 4

// openAll opens each FMU file once, several at a time.
func (a *Assembly) openAll(components []*ssp.FlatComponent) (resolver, error) {
	type opened struct {
		shown string
		fmu   *fmi.FMU
		list  *diag.List
		err   error
	}
	files := map[string]*opened{}
	var order []string
	for _, c := range components {
		if files[c.Source] == nil {
			files[c.Source] = &opened{shown: c.Shown}
			order = append(order, c.Source)
		}
	}
	// Each takes memory and open files while it is unpacked and parsed.
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(order), max(leastOpeners, runtime.GOMAXPROCS(0))) {
		wg.Go(func() {
			for k := int(next.Add(1)) - 1; k < len(order); k = int(next.Add(1)) - 1 {
				r := files[order[k]]
				r.fmu, r.list, r.err = fmi.Open(order[k], a.opening)
			}
		})
	}
	wg.Wait()
	var errs []error
	byFile := resolver{}
	for _, file := range order {
		r := files[file]
		rename(r.list.Findings, file, r.shown)
		if list := (*diag.ListError)(nil); errors.As(r.err, &list) {
			rename(list.Findings, file, r.shown)
		}
		a.Findings.Append(r.list)
		errs = append(errs, r.err)
		if r.fmu != nil {
			a.fmus = append(a.fmus, r.fmu)
			if a.shown == nil {
				a.shown = map[*fmi.FMU]string{}
			}
			a.shown[r.fmu] = r.shown
			byFile[file] = r.fmu
		}
	}
	return byFile, errors.Join(errs...)
}

// FMUs lists the FMUs, each file once. They stay the assembly's.
func (a *Assembly) FMUs() []*fmi.FMU { return slices.Clone(a.fmus) }

// Root returns the name of the document that the system was read from, as the user knows it.
func (a *Assembly) Root() string {
	if a.pkg == nil {
		return a.Components[0].Source
	}
	return a.pkg.Root.File
}

// Shown returns findings about an FMU of the system the name of its file that the user
// knows.
func (a *Assembly) Shown(f *fmi.FMU, findings []diag.Finding) []diag.Finding {
	out := slices.Clone(findings)
	if shown := a.shown[f]; shown != "" {
		rename(out, f.Path, shown)
	}
	return out
}

// rename names a file in findings as the user knows it: an FMU of an archive
// lies in a private folder.
func rename(findings []diag.Finding, file, shown string) {
	for i := range findings {
		findings[i].File = strings.Replace(findings[i].File, file, shown, 1)
	}
}

// Files lists the files on disk that the system was read from.
func (a *Assembly) Files() []string {
	var files []string
	if a.pkg != nil {
		files = a.pkg.Files()
	}
	for _, f := range a.fmus {
		files = append(files, f.Path)
	}
	return files
}

// Load brings the libraries of the FMUs into the process, or into one of their
// own for a moment if all components of an FMU are isolated, and checks that they
// can be used; nothing is instantiated.
func (a *Assembly) Load() error {
	var errs []error
	for _, f := range a.fmus {
		here := slices.ContainsFunc(a.Components, func(c Component) bool { return c.FMU == f && c.Isolated == "" })
		users := strings.Join(a.using(f), ", ")
		var list *diag.List
		var err error
		if here {
			list, err = f.Load(users)
		} else {
			list, err = f.LoadIn(a.options.Launcher)
		}
		a.Findings.Append(list)
		var ended *fmi.ProcessError
		if errors.As(err, &ended) {
			err = fmt.Errorf("%s: %w", users, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// using names the components of an FMU.
func (a *Assembly) using(f *fmi.FMU) []string {
	var names []string
	for _, c := range a.Components {
		if c.FMU == f {
			names = append(names, c.Name)
		}
	}
	return names
}

// ConnectionInfo is one connection in words: To = Gain·From + Offset for Reals.
type ConnectionInfo struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	FromUnit string  `json:"from_unit"` // of the variables; "" = none
	ToUnit   string  `json:"to_unit"`
	Gain     float64 `json:"gain"` // of Reals, unit conversion included
	Offset   float64 `json:"offset"`
	Map      string  `json:"map"`    // "1 → 2, 3 → 1" for other types; "" = values pass unchanged
	Via      string  `json:"via"`    // connectors of systems on the way, separated by commas
	Origin   string  `json:"origin"` // file and place
}

// Connections lists the connections between the FMUs.
func (a *Assembly) Connections() []ConnectionInfo {
	var out []ConnectionInfo
	for _, c := range a.network.Connections {
		out = append(out, ConnectionInfo{
			From: a.endpoint(c.From).String(), To: a.endpoint(c.To).String(), FromUnit: a.unitOf(c.From), ToUnit: a.unitOf(c.To),
			Gain: c.Gain, Offset: c.Offset, Map: mapText(c.Map), Via: strings.Join(c.Via, ", "), Origin: c.Place.String(),
		})
	}
	return out
}

// endpoint names an end of a connection.
func (a *Assembly) endpoint(e ssp.FlatEnd) master.Endpoint {
	if k := e.Component - len(a.Components); k >= 0 {
		return master.Endpoint{Subsystem: a.network.Functions[k].Path, Port: e.Variable}
	}
	return master.Endpoint{Subsystem: a.Components[e.Component].Name, Port: e.Variable}
}

// SettingInfo is one value that the documents give: of which variable, and where.
// Weaker counts the values for it that do not count. At is what the value is bound to,
// and Bound the value there: where At is not Name it is a connector of a system, from
// which the value comes over connections. Fed names the connection from an FMU that
// gives the variable another value, "" if there is none; of a parameter the value then
// has no effect, of an input only until the first exchange.
type SettingInfo struct {
	Name, Value, Origin string
	Weaker              int
	At, Bound           string
	Fed                 string
	Parameter           bool
	Steps               []Step // from how the value stands in its set
}

// Settings lists the parameters and start values of the documents.
func (a *Assembly) Settings() []SettingInfo {
	fed := map[ssp.FlatEnd]string{}
	for _, c := range a.network.Connections {
		fed[c.To] = fmt.Sprintf("%s → %s (%s)", a.endpoint(c.From), a.endpoint(c.To), c.Place)
	}
	var out []SettingInfo
	for _, s := range a.network.Settings {
		end := ssp.FlatEnd{Component: s.Component, Variable: s.Variable}
		name, at := a.Components[s.Component].Name+"."+s.Variable, s.From.At()
		if joined, _ := a.paths(s.Component); at == joined+"."+s.Variable {
			at = name
		}
		out = append(out, SettingInfo{
			Name: name, Value: s.Value.String(),
			Origin: s.From.Place.String(), Weaker: len(s.Overrides), At: at, Bound: s.From.Bound.String(),
			Fed: fed[end], Parameter: a.toParameter(end), Steps: newSteps(s.From.Steps),
		})
	}
	return out
}

// judge settles what the documents and the user ask for.
func (a *Assembly) judge(o Options) error {
	a.experiment()
	o, err := a.settle(o)
	if err != nil {
		return err
	}
	if err := a.planIsolation(o); err != nil {
		return err
	}
	if err := a.planQuirks(o); err != nil {
		return err
	}
	a.options = o
	return a.checkRestarts()
}

// build makes the system, with the values of options.Set.
func (a *Assembly) build() (err error) {
	if a.components, err = a.plan(a.options); err != nil {
		return err
	}
	if a.System, err = a.couple(make([][]fmuslave.Monitored, len(a.Components))); err != nil {
		return err
	}
	for i, info := range a.System.Infos {
		if info.Stateless && !slices.Contains(a.System.Late, i) {
			a.Findings.Add(ruleNoEffect, "", info.Name, 0, "the component is declared stateless but lies on a loop of stateless components: its inputs are extrapolated all the same")
		}
	}
	return a.Findings.Err()
}

// Monitor has variables read together with the outputs at each step, in place of
// those of an earlier call. What is no output becomes an internal port
// (master.Port), which is neither connected nor, for that alone, recorded. It
// makes a new System, so call it before one is run. Errors, with which the System
// stays as it is: a name that there is not; a variable that is no continuous Real,
// or neither output nor local.
func (a *Assembly) Monitor(list []Monitored) error {
	monitor := make([][]fmuslave.Monitored, len(a.Components))
	var errs []error
	for _, m := range list {
		i, v, err := a.find(m.Name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		monitor[i] = append(monitor[i], fmuslave.Monitored{Variable: v.Name, Level: m.Level})
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	system, err := a.couple(monitor)
	if err != nil {
		return err
	}
	a.System = system
	return nil
}

// couple makes the slaves as planned, with what is monitored by component, and
// the system of them.
func (a *Assembly) couple(monitor [][]fmuslave.Monitored) (*master.System, error) {
	var subsystems []master.Subsystem
	var errs []error
	for i, c := range a.Components {
		p := &a.components[i]
		instance, restarts := a.options.Instance, 0
		if c.Isolated != "" {
			instance.Launcher, restarts = a.options.Launcher, a.options.Restarts
		}
		slave, err := fmuslave.New(fmuslave.Config{
			Name: c.Name, FMU: c.FMU, Inputs: p.inputs, Outputs: p.outputs, Watch: p.watch, Monitor: monitor[i],
			Params: p.params, Starts: p.starts, Stateless: p.stateless, Options: instance, Restarts: restarts, Cache: a.options.Cache, Quirks: c.Quirks,
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		subsystems = append(subsystems, slave)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, f := range a.network.Functions {
		subsystems = append(subsystems, newSum(f))
	}
	var connections []master.Connection
	for _, c := range a.network.Connections {
		m := master.Connection{From: a.endpoint(c.From), To: a.endpoint(c.To), Map: c.Map}
		if c.Gain != 1 || c.Offset != 0 {
			m.Linear = &master.Linear{Gain: c.Gain, Offset: c.Offset}
		}
		connections = append(connections, m)
	}
	return master.NewSystem(subsystems, connections)
}

// componentPlan is what one component gives to its slave.
type componentPlan struct {
	inputs, outputs, watch []string
	params                 []string // that others give during the initialisation
	starts                 []fmuslave.Value
	stateless              bool
}

func (a *Assembly) plan(o Options) ([]componentPlan, error) {
	plan := make([]componentPlan, len(a.Components))
	all := len(plan) + len(a.network.Functions)
	connectedIn := make([]map[string]bool, all)
	connectedOut := make([]map[string]bool, all)
	for i := range all {
		connectedIn[i], connectedOut[i] = map[string]bool{}, map[string]bool{}
	}
	for _, c := range a.network.Connections {
		connectedOut[c.From.Component][c.From.Variable] = true
		if a.toParameter(c.To) {
			plan[c.To.Component].params = append(plan[c.To.Component].params, c.To.Variable)
			continue
		}
		connectedIn[c.To.Component][c.To.Variable] = true
	}
	if err := a.planStarts(o, plan); err != nil {
		return nil, err
	}
	for i := range plan {
		p := &plan[i]
		p.starts = slices.DeleteFunc(p.starts, func(v fmuslave.Value) bool { return slices.Contains(p.params, v.Variable) })
	}
	driven, err := a.planDriven(o, connectedIn)
	if err != nil {
		return nil, err
	}
	for _, set := range o.Set {
		i, v, connector, err := a.target(set.Name)
		if err != nil {
			continue // planStarts has said so
		}
		if connector != nil {
			a.checkGiven(connector.Name, driven)
			continue
		}
		switch {
		case slices.Contains(plan[i].params, v.Name):
			a.Findings.Add(ruleNoEffect, "", set.Name, 0, "the parameter is connected to one that another FMU calculates: the value set has no effect")
		case connectedIn[i][v.Name]:
			a.Findings.Add(ruleNoEffect, "", set.Name, 0, "the input is connected: the value set is only the first guess of the initialisation")
		case driven[i][v.Name]:
			a.Findings.Add(ruleNoEffect, "", set.Name, 0, "the input is given from outside: the value set has no effect")
		}
	}
	a.hold(o, plan, connectedIn, driven)
	for i, c := range a.network.Components {
		plan[i].stateless = c.Stateless
	}
	for _, name := range o.Stateless {
		i := slices.IndexFunc(a.Components, func(c Component) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no component is called %q to be stateless; the system has %s", name, a.componentNames())
		}
		plan[i].stateless = true
	}
	for i, c := range a.Components {
		p := &plan[i]
		inputs := connectedIn[i]
		maps.Copy(inputs, driven[i])
		var names []string
		joined, _ := a.paths(i) // what has that name only is read so that the recorder can tell of it
		for k := range c.FMU.Description.Variables {
			v := &c.FMU.Description.Variables[k]
			names := append(names[:0], c.Name+"."+v.Name)
			if joined != c.Name {
				names = append(names, joined+"."+v.Name)
			}
			if a.pkg == nil {
				names = append(names, v.Name)
			}
			chosen := o.Record != nil && slices.ContainsFunc(names, o.Record) || o.Read != nil && slices.ContainsFunc(names, o.Read)
			byDefault := o.Record == nil
			switch {
			case inputs[v.Name]:
				p.inputs = append(p.inputs, v.Name)
			case connectedOut[i][v.Name], v.Causality == description.Output && (chosen || byDefault):
				p.outputs = append(p.outputs, v.Name)
			case chosen && v.Causality != description.Independent:
				p.watch = append(p.watch, v.Name)
			}
		}
		if o.Record == nil && len(p.outputs) == 0 && len(p.inputs) == len(driven[i]) {
			for _, name := range changing(c.FMU.Description, driven[i]) {
				if !slices.Contains(p.watch, name) {
					p.watch = append(p.watch, name)
				}
			}
		}
	}
	return plan, nil
}

// hold lets free inputs with a value be driven by it, so that the value is what is recorded:
// an FMU need not give back its inputs.
func (a *Assembly) hold(o Options, plan []componentPlan, connected, driven []map[string]bool) {
	asked := map[string]bool{} // by Options.Set
	for _, set := range o.Set {
		if i, v, connector, err := a.target(set.Name); err == nil && connector == nil {
			asked[a.Components[i].Name+"."+v.Name] = true
		}
	}
	for _, s := range a.network.Settings {
		if s.From.Place.File == byUser {
			asked[a.Components[s.Component].Name+"."+s.Variable] = true
		}
	}
	for i := range plan {
		d := a.Components[i].FMU.Description
		fed := func(v *description.ScalarVariable) bool { // by any of its names
			for _, names := range []map[string]bool{connected[i], driven[i]} {
				for name := range names {
					if w, _ := d.Variable(name); w != nil && fmuslave.Same(v, w) {
						return true
					}
				}
			}
			return false
		}
		for _, start := range plan[i].starts {
			v, _ := d.Variable(start.Variable)
			if v == nil || v.Causality != description.Input || fed(v) {
				continue
			}
			driven[i][v.Name] = true
			if name := a.Components[i].Name + "." + v.Name; asked[name] {
				a.Held = append(a.Held, name)
			}
		}
	}
}

// toParameter reports whether a connection leads to a parameter of an FMU.
func (a *Assembly) toParameter(e ssp.FlatEnd) bool {
	if e.Component >= len(a.Components) {
		return false // of a function
	}
	v, ok := a.Components[e.Component].FMU.Description.Variable(e.Variable)
	return ok && v.Causality == description.Parameter
}

// changing lists the variables that are no parameters, constants or time, but
// for those left out.
func changing(d *description.ModelDescription, without map[string]bool) []string {
	var out []string
	for k := range d.Variables {
		v := &d.Variables[k]
		switch {
		case without[v.Name], v.Causality == description.Parameter, v.Causality == description.CalculatedParameter, v.Causality == description.Independent,
			v.Variability == description.Constant, v.Variability == description.Fixed, v.Variability == description.Tunable:
		default:
			out = append(out, v.Name)
		}
	}
	return out
}

func (a *Assembly) componentNames() string {
	var names []string
	for _, c := range a.Components {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// Variable returns the variable of an FMU that results call by this name, nil if there is
// none. It stays the assembly's.
func (a *Assembly) Variable(name string) *description.ScalarVariable {
	all, _ := a.meanings(name)
	for _, m := range all {
		if a.Components[m.component].Name+"."+m.v.Name == name {
			return m.v
		}
	}
	return nil
}

// Resolve returns the name by which results call the variable that a user means by a name:
// "component.variable", of an FMU alone also "variable". A name that no FMU knows stays as
// it is: that of a function, for example. One that means several variables is an error.
func (a *Assembly) Resolve(name string) (string, error) {
	i, v, err := a.find(name)
	switch several := (*ambiguousError)(nil); {
	case err == nil:
		return a.Components[i].Name + "." + v.Name, nil
	case errors.As(err, &several):
		return "", err
	}
	return name, nil
}

// Alone returns the name of the component of an FMU that is opened alone, whose variables
// need no name of a component; "" for a system.
func (a *Assembly) Alone() string {
	if a.pkg != nil {
		return ""
	}
	return a.Components[0].Name
}

// paths returns the names by which a component may be called: joined with dots, and in
// quotes, which means no other one. Its Name is one of them.
func (a *Assembly) paths(component int) (joined, quoted string) {
	if a.pkg == nil {
		return a.Components[component].Name, a.Components[component].Name
	}
	c := a.pkg.Components()[component]
	return c.Joined, c.Quoted
}

// meaning is a variable that a name stands for.
type meaning struct {
	component int
	v         *description.ScalarVariable
	quoted    string // the name that means nothing else
}

// meanings finds the variables with a name "component.variable", of an FMU alone also those
// with the name "variable"; longest is the component
// of the longest path that the name begins with, -1 if there is none.
func (a *Assembly) meanings(name string) (out []meaning, longest int) {
	longest = -1
	length := 0
	var found []int
	for i := range len(name) { // names of components may have dots
		if name[i] == '.' {
			found = append(found, a.called[name[:i]]...)
		}
	}
	slices.Sort(found)
	for _, i := range slices.Compact(found) {
		joined, quoted := a.paths(i)
		for _, path := range []string{joined, quoted} {
			rest, ok := strings.CutPrefix(name, path+".")
			if !ok {
				continue
			}
			if len(path) > length {
				longest, length = i, len(path)
			}
			if v, ok := a.Components[i].FMU.Description.Variable(rest); ok {
				out = append(out, meaning{i, v, quoted + "." + v.Name})
			}
			break
		}
	}
	if a.pkg == nil {
		d := a.Components[0].FMU.Description
		for k, m := range out { // the name of a variable may begin like that of the component
			if _, ambiguous := d.Variable(m.quoted); ambiguous {
				out[k].quoted = m.v.Name
			}
		}
		if v, ok := d.Variable(name); ok {
			out = append(out, meaning{0, v, a.Components[0].Name + "." + name})
		}
	}
	return out, longest
}

// index maps names to components; large systems look them up often.
func (a *Assembly) index() {
	a.called = make(map[string][]int, len(a.Components))
	for i := range a.Components {
		joined, quoted := a.paths(i)
		a.called[joined] = append(a.called[joined], i)
		if quoted != joined {
			a.called[quoted] = append(a.called[quoted], i)
		}
	}
}

// ambiguousError tells that a name means several things, with names of which each means
// one of them.
type ambiguousError struct {
	name   string
	quoted []string
}

func (e *ambiguousError) Error() string {
	hint := ""
	if slices.ContainsFunc(e.quoted, func(q string) bool { return strings.Contains(q, "'") }) {
		hint = fmt.Sprintf(`, quotes included (in a shell within double quotes: "%s")`, e.quoted[0])
	}
	return fmt.Sprintf("%q means %d things: %s; write the one that is meant so%s", e.name, len(e.quoted), strings.Join(e.quoted, " and "), hint)
}

// find returns the variable that a user means by a name.
func (a *Assembly) find(name string) (component int, v *description.ScalarVariable, err error) {
	all, longest := a.meanings(name)
	switch {
	case len(all) == 1:
		return all[0].component, all[0].v, nil
	case len(all) > 1:
		var quoted []string
		for _, m := range all {
			quoted = append(quoted, m.quoted)
		}
		return -1, nil, &ambiguousError{name, quoted}
	case longest < 0 && slices.ContainsFunc(a.Components, func(c Component) bool { return c.Name == name }):
		return -1, nil, fmt.Errorf("%q is a component; write %s.variable", name, name)
	case longest < 0 && a.pkg == nil:
		return -1, nil, a.unknown(0, name)
	case longest < 0:
		return -1, nil, fmt.Errorf("%q names no component; write component.variable, with one of the components %s", name, a.componentNames())
	}
	joined, quoted := a.paths(longest)
	return -1, nil, a.unknown(longest, strings.TrimPrefix(strings.TrimPrefix(name, joined+"."), quoted+"."))
}

// unknown reports a variable that a component does not have.
func (a *Assembly) unknown(component int, rest string) error {
	c := a.Components[component]
	return fmt.Errorf("component %s has no variable %q%s", c.Name, rest,
		cmp.Or(diag.DidYouMean(rest, variableNames(c.FMU.Description)), "; its modelDescription.xml lists those that there are"))
}

func variableNames(d *description.ModelDescription) []string {
	names := make([]string, len(d.Variables))
	for i := range names {
		names[i] = d.Variables[i].Name
	}
	return names
}

// mostDrivenErrors are reported of the names that are given from outside.
const mostDrivenErrors = 20

// planDriven finds the inputs that are given from outside, by component.
func (a *Assembly) planDriven(o Options, connected []map[string]bool) ([]map[string]bool, error) {
	driven := make([]map[string]bool, len(a.Components))
	var errs []error
	for i := range driven {
		driven[i] = map[string]bool{}
	}
	inputs := sync.OnceValue(a.Inputs)
	for _, name := range o.Driven {
		if len(errs) >= mostDrivenErrors {
			break
		}
		i, v, connector, err := a.target(name)
		if connector != nil && len(inputs()[name]) > 0 {
			for _, in := range inputs()[name] {
				if driven[in.component][in.variable] {
					errs = append(errs, fmt.Errorf("%s feeds %s.%s, which is given, too; give one of them", name, a.Components[in.component].Name, in.variable))
				}
				driven[in.component][in.variable] = true
			}
			continue
		}
		switch {
		case connector != nil:
			errs = append(errs, fmt.Errorf("%s is no input of the outermost system that feeds an input of an FMU; only free inputs can be given from outside", name))
		case err != nil:
			errs = append(errs, fmt.Errorf("%w%s", err, a.orConnectors(err, ssp.Input)))
		case v.Causality != description.Input:
			errs = append(errs, fmt.Errorf("%s is no input but has causality %s; only free inputs can be given from outside", name, v.Causality))
		case connected[i][v.Name]:
			errs = append(errs, fmt.Errorf("%s is connected to an output; only free inputs can be given from outside", name))
		default:
			driven[i][v.Name] = true
		}
	}
	if o.DrivenBy != "" {
		for k, err := range errs {
			errs[k] = fmt.Errorf("%s: %w", o.DrivenBy, err)
		}
	}
	return driven, errors.Join(errs...)
}
