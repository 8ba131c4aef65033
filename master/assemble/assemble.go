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

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/workdir"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// Options of opening a system. The zero value of each field is its default.
type Options struct {
	Strict    bool          // treat violations that a tolerant reading accepts as errors
	Stateless []string      // components that are declared stateless
	Quirks    []Quirk       // in addition to those of the documents
	Compile   bool          // compile the sources of FMUs without a library for this platform
	Dialects  []ssp.Dialect `json:"-"` // of system structures; nil = dialect.All()
	Set       []Assignment  // parameters and start values, which override those of the documents
	// Driven lists the inputs with external signals: "component.variable", of a single FMU also
	// "variable", or inputs of the outermost system.
	Driven   []string
	DrivenBy string // source of these signals, for messages: "--input road.csv"
	// Record reports whether a variable is recorded; nil = the default selection: all outputs
	// and all connected inputs, and for a component with neither all its variables but
	// parameters and constants.
	Record   func(name string) bool `json:"-"`
	Read     func(name string) bool `json:"-"` // further variables that are read, by any of their names; nil = none
	Instance fmi.InstanceOptions    `json:"-"`
	// Isolate sets which components run in separate processes, in addition to
	// IsolateComponents. Launcher starts the processes; nil = no component can be isolated.
	Isolate           Isolation
	IsolateComponents []string
	// On are the components that run on other machines, by the first row whose pattern matches. Host returns the launcher for an address; nil = there are no hosts.
	On       []On
	Host     func(address string, apart bool) (fmi.Launcher, error) `json:"-"`
	Launcher fmi.Launcher                                           `json:"-"`
	// Settle completes the options by the settings that the documents ask for; nil = these have no effect, which is reported.
	Settle func(o *Options, asked []ssp.Asked) error `json:"-"`
	// Restarts is the maximum number of restarts of the process of an isolated component that
	// died in a call; 0 = none. The FMUs of all isolated components must serialise their states
	// then.
	Restarts int
	// Crashed describes the recorded crash of an FMU, "" = none; nil = no records.
	Crashed func(*fmi.FMU) string `json:"-"`
	Cache   string                // folder for measured properties of FMUs (fmuslave.CacheDir); "" = none
	// Copy is the copy of the working folder for instances beside those of the run (see fmuslave.Sandbox); nil = the model
	// makes one. With Sandboxed, the components themselves may change nothing in the working folder: they are for an analysis.
	// Both need a Launcher.
	Copy      *workdir.Copy `json:"-"`
	Sandboxed bool
}

// Hinted is a rate for a component without one, from the step that another tool gives it.
type Hinted struct {
	algorithms.Rate
	Hint ssp.StepHint
}

// On lets the components that match a pattern (* and ?) run on a host.
type On struct{ Pattern, Host string }

// Quirk applies a quirk (see fmuslave.Quirks) to a component; "" is the component of a single FMU.
type Quirk struct{ Component, Name string }

// Assignment sets a parameter or start value. Name is "component.variable", of a single FMU also
// "variable", or the name of a connector of a system, "connector" or "system.connector". The value
// of a connector is passed on over its connections and overrides the bindings of the outermost
// system (ssp 36, 37).
type Assignment struct{ Name, Value string }

// Monitored is a variable "component.variable" that an algorithm reads at each communication
// point.
type Monitored struct {
	Name  string
	Level master.Level // NoLevel = derived from the description of the FMU
}

// Sourced is a number with its source.
type Sourced struct {
	Value  float64
	Source string
}

// Component is a subsystem with its FMU.
type Component struct {
	Name   string
	Source string // of the FMU, as the document or the user gave it
	FMU    *fmi.FMU
	Quirks fmuslave.Quirk // of the documents and the user
	// Preload are the libraries of the quirk Preload, of all components with the FMU.
	Preload []string
	// Isolated is the reason why the component runs in a separate process, "" if it does not. Host is where, "" = on
	// this machine. Unasked: neither the user nor the documents ask for the process.
	Isolated, Host string
	Unasked        bool

	launcher fmi.Launcher // of the process; nil = in this one
}

// Assembly is one system of a [Model].
type Assembly struct {
	Name       string
	Components []Component
	System     *master.System
	Findings   diag.List // for a system of Model.Instantiate only those on its own values

	// Set by Override.
	Start, Stop, Step Sourced
	Tolerance         *Sourced // nil = none
	Hinted            []Hinted
	Asked             []ssp.Asked // settings of the documents
	Held              []string    // inputs "component.variable" with a value of Options.Set and without a source
	model             *Model
	closed            bool
	files             resolver   // the FMUs of documents
	fmus              []*fmi.FMU // each opened file once for the same sizes of arrays
	shown             map[*fmi.FMU]string
	opening           fmi.OpenOptions
	network           *ssp.Network
	pkg               *ssp.Package
	options           Options
	components        []componentPlan
	called            map[string][]int // indices of components by the names of paths
}

// Rules of the assembly.
var (
	ruleImplementation = &diag.Rule{
		ID: "SD19I", Level: diag.Warning, Inert: true, Ref: "ssp 13",
		Doc: "The implementation of a component is an interface that the FMU offers and macrostep runs, which is " +
			"Co-Simulation.",
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
		Doc:    "Settings in the annotation of macrostep or from the user have an effect.",
		Remedy: "remove the setting, or accept the result of a run without it",
	}
	ruleUnconnected = &diag.Rule{
		ID: "CC7U", Level: diag.Warning, Ref: "ssp 24",
		Doc:    "A system connects its components: it has a connection, or inputs or outputs of its own.",
		Remedy: "connect them (macrostep ssp new has --connect), or run each FMU by itself",
	}
	ruleRange = &diag.Rule{
		ID: "CC14V", Level: diag.Warning, Ref: "fmi2 45",
		Doc:    "Values that the user sets lie within the bounds that the FMU declares. It may refuse others.",
		Remedy: "set a value within the bounds",
	}
)

// Rules lists the rules of this package.
func Rules() []*diag.Rule {
	return []*diag.Rule{ruleImplementation, ruleNoImplementation, ruleOnce, ruleNoEffect, ruleUnconnected, ruleRange}
}

// ErrEmpty is the error of a system without FMUs.
var ErrEmpty = errors.New("the system has no component with an FMU, so that there is nothing to run; " +
	"add one, or make a system of FMUs with: macrostep ssp new")

// IsFMU reports whether a path is a single FMU: an .fmu file or a folder with an unpacked FMU.
func IsFMU(path string) bool {
	if strings.EqualFold(filepath.Ext(path), ".fmu") {
		return true
	}
	info, err := os.Stat(filepath.Join(path, "modelDescription.xml"))
	return err == nil && info.Mode().IsRegular()
}

// single creates the network of a single FMU.
func (a *Assembly) single(path string) error {
	f, err := a.open(path)
	if err != nil {
		return err
	}
	base := filepath.Base(f.Path)
	if a.Name = base[:len(base)-len(filepath.Ext(base))]; strings.TrimSpace(a.Name) == "" {
		return fmt.Errorf("%s: the name of the component, the file name without .fmu, is empty; rename the file", path)
	}
	a.network = &ssp.Network{Name: a.Name}
	a.Components = []Component{{Name: a.Name, Source: path, FMU: f}}
	a.index()
	return a.resize()
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
	if err := dialect.Foreign(path); err != nil {
		return err
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
		f := a.files[c.Quoted]
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
	if err := a.resize(); err != nil {
		return err
	}
	if err := a.flatten(); err != nil {
		return err
	}
	a.Name = a.network.Name
	if len(components) == 0 && a.Findings.Err() == nil {
		return fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	return a.Findings.Err()
}

// flatten resolves the documents to a network, with the values of options.Set for connectors.
func (a *Assembly) flatten() (err error) {
	if err := a.give(a.options.Set); err != nil {
		return err
	}
	a.network, err = a.pkg.Flatten(a.files, &a.Findings)
	return err
}

// leastOpeners is the minimum number of FMUs that are opened concurrently, even on fewer
// processors, because opening waits for the disk.
const leastOpeners = 4

// openAll opens each FMU file once, several concurrently.
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
	// Limited, because unpacking and parsing take memory and open files.
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
		}
	}
	all := resolver{}
	for _, c := range components {
		all[c.Quoted] = files[c.Source].fmu
	}
	return all, errors.Join(errs...)
}

// FMUs lists the FMUs, each file once for the same sizes of arrays. The assembly closes them.
func (a *Assembly) FMUs() []*fmi.FMU { return slices.Clone(a.fmus) }

// Root returns the name of the document of the system for messages.
func (a *Assembly) Root() string {
	if a.pkg == nil {
		return a.Components[0].Source
	}
	return a.pkg.Root.File
}

// rename replaces the name of a file in findings: an FMU from an archive is in a private folder,
// which the user does not know.
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

// Load loads the libraries of the FMUs and checks that they can be used, without instantiating
// them. If all components of an FMU are isolated, its library is loaded in a temporary process.
func (a *Assembly) Load(ctx context.Context) error {
	var errs []error
	for _, f := range a.fmus {
		here := slices.ContainsFunc(a.Components, func(c Component) bool { return c.FMU == f && c.Isolated == "" })
		users := strings.Join(a.using(f), ", ")
		var list *diag.List
		var err error
		if here {
			list, err = f.Load(ctx, users)
		} else {
			list, err = f.LoadIn(ctx, a.Components[slices.IndexFunc(a.Components, func(c Component) bool { return c.FMU == f })].launcher)
		}
		a.Findings.Append(list)
		var ended *fmi.ProcessError
		if errors.As(err, &ended) {
			err = fmt.Errorf("%s: %w", users, err)
		}
		errs = append(errs, a.shownError(f, err))
	}
	return errors.Join(errs...)
}

// using returns the names of the components that use an FMU.
func (a *Assembly) using(f *fmi.FMU) []string {
	var names []string
	for _, c := range a.Components {
		if c.FMU == f {
			names = append(names, c.Name)
		}
	}
	return names
}

// ConnectionInfo describes a connection: To = Gain·From + Offset for Reals.
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
			From: a.endpoint(c.From).String(), To: a.endpoint(c.To).String(),
			FromUnit: a.unitOf(c.From), ToUnit: a.unitOf(c.To),
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

// SettingInfo is the value of a variable in the documents.
type SettingInfo struct {
	Name, Value, Origin string
	Weaker              int // number of overridden values
	// At is the variable or the connector of a system to which the value Bound is bound. From a
	// connector, the value is passed on over connections.
	At, Bound string
	// Fed is the connection from an FMU that feeds the variable, "" = none. With it, the value
	// of a parameter has no effect, and that of an input only until the first exchange.
	Fed       string
	Parameter bool
	Steps     []Step // conversions of the value, beginning in its parameter set
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

// judge applies the settings of the documents and the user.
func (a *Assembly) judge(o Options) error {
	a.experiment()
	o, err := a.settle(o)
	if err != nil {
		return err
	}
	if err := a.planQuirks(o); err != nil {
		return err
	}
	if err := a.planIsolation(o); err != nil {
		return err
	}
	a.options = o
	if a.unconnected() {
		a.Findings.Add(ruleUnconnected, a.Root(), "/SystemStructureDescription", 0, "nothing is connected: the %d components run side by side",
			len(a.Components))
	}
	return a.checkRestarts()
}

// unconnected reports whether nothing in a system is connected, although it has outputs and inputs.
func (a *Assembly) unconnected() bool {
	n := a.network
	if len(a.Components) < 2 || len(n.Connections)+len(n.Inputs)+len(n.Outputs) > 0 {
		return false
	}
	has := func(c description.Causality) bool {
		return slices.ContainsFunc(a.Components, func(k Component) bool {
			return slices.ContainsFunc(k.FMU.Description.Variables, func(v description.ScalarVariable) bool { return v.Causality == c })
		})
	}
	return has(description.Input) && has(description.Output)
}

// build creates the system with the values of options.Set.
func (a *Assembly) build() (err error) {
	if a.components, err = a.plan(a.options); err != nil {
		return err
	}
	if a.System, err = a.couple(make([][]fmuslave.Monitored, len(a.Components))); err != nil {
		return err
	}
	for i, info := range a.System.Infos {
		if info.Stateless && !slices.Contains(a.System.Late, i) {
			a.Findings.Add(ruleNoEffect, "", info.Name, 0, "the component is declared stateless but lies on a loop "+
				"of stateless components: its inputs are extrapolated nevertheless")
		}
	}
	return a.Findings.Err()
}

// Monitor makes the run read these variables together with the outputs at each step, instead of
// those of an earlier call. A variable that is not an output becomes an internal port (master.Port).
// Monitor replaces System, so call it before the run. It returns an error and keeps System if a
// name is unknown or a variable is not a continuous Real that is an output or local.
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

// couple creates the slaves as planned and their system. monitor lists the monitored variables by
// component.
func (a *Assembly) couple(monitor [][]fmuslave.Monitored) (*master.System, error) {
	var subsystems []master.Subsystem
	var errs []error
	var sandbox *fmuslave.Sandbox
	if o := &a.options; o.Launcher != nil && able(o.Launcher) {
		sandbox = &fmuslave.Sandbox{Launcher: o.Launcher, Dir: cmp.Or(o.Copy, &a.model.copy).Dir}
	}
	for i, c := range a.Components {
		p := &a.components[i]
		instance, restarts := a.options.Instance, 0
		if c.Isolated != "" {
			instance.Launcher, restarts = c.launcher, a.options.Restarts
		}
		slave, err := fmuslave.New(fmuslave.Config{
			Name: c.Name, FMU: c.FMU, Inputs: p.inputs, Integral: p.integral, Outputs: p.outputs, Watch: p.watch, Monitor: monitor[i],
			Params: p.params, Starts: p.starts, Stateless: p.stateless,
			Options: instance, Restarts: restarts, Cache: &a.model.cache, Quirks: c.Quirks | p.quirks,
			Sandbox: sandbox, Sandboxed: a.options.Sandboxed && sandbox != nil,
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

// able reports whether a launcher can start processes in this program.
func able(l fmi.Launcher) bool {
	w, ok := l.(interface{ Able() bool })
	return !ok || w.Able()
}

// componentPlan is the configuration of one slave.
type componentPlan struct {
	inputs, outputs, watch []string
	integral               []string // inputs that are Reals and take an Integer
	params                 []string // fed by connections during the initialisation
	starts                 []fmuslave.Value
	stateless              bool
	quirks                 fmuslave.Quirk // that follow from what is set in the run
}

// plan plans the slaves of the components.
func (a *Assembly) plan(o Options) ([]componentPlan, error) {
	plan := make([]componentPlan, len(a.Components))
	feeds, fed := a.connected(plan)
	if err := a.planStarts(o, plan); err != nil {
		return nil, err
	}
	for i := range plan {
		p := &plan[i]
		p.starts = slices.DeleteFunc(p.starts, func(v fmuslave.Value) bool { return slices.Contains(p.params, v.Variable) })
	}
	driven, err := a.planDriven(o, fed)
	if err != nil {
		return nil, err
	}
	a.checkSet(o, plan, fed, driven)
	a.hold(o, plan, fed, driven)
	for _, name := range o.Stateless {
		name = cmp.Or(name, a.Alone())
		i := slices.IndexFunc(a.Components, func(c Component) bool { return c.Name == name })
		if i < 0 {
			return nil, a.noComponent(name, "be stateless")
		}
		plan[i].stateless = true
	}
	for i := range plan {
		a.planPorts(o, i, &plan[i], feeds[i], fed[i], driven[i])
	}
	return plan, nil
}

// connected returns, by component, the variables that feed connections and the inputs fed by
// connections. It adds the parameters fed by connections to the plan.
func (a *Assembly) connected(plan []componentPlan) (feeds, fed []map[string]bool) {
	n := len(plan) + len(a.network.Functions)
	feeds, fed = make([]map[string]bool, n), make([]map[string]bool, n)
	for i := range n {
		feeds[i], fed[i] = map[string]bool{}, map[string]bool{}
	}
	for _, c := range a.network.Connections {
		feeds[c.From.Component][c.From.Variable] = true
		if a.toParameter(c.To) {
			plan[c.To.Component].params = append(plan[c.To.Component].params, c.To.Variable)
		} else {
			fed[c.To.Component][c.To.Variable] = true
			if from := a.variableAt(c.From); c.Type == ssp.Real && from != nil && from.Type == description.Integer {
				plan[c.To.Component].integral = append(plan[c.To.Component].integral, c.To.Variable)
			}
		}
	}
	return feeds, fed
}

// checkSet warns of values in options.Set without an effect.
func (a *Assembly) checkSet(o Options, plan []componentPlan, fed, driven []map[string]bool) {
	for _, set := range o.Set {
		i, v, connector, err := a.target(set.Name)
		why := ""
		switch {
		case err != nil: // planStarts reports it
		case connector != nil:
			a.checkGiven(connector.Name, driven)
		case slices.Contains(plan[i].params, v.Name):
			why = "the parameter is connected to one that another FMU calculates: the value set has no effect"
		case fed[i][v.Name]:
			why = "the input is connected: the value set is only the first guess of the initialisation"
		case driven[i][v.Name]:
			why = "the input is given from outside: the value set has no effect"
		}
		if why != "" {
			a.Findings.Add(ruleNoEffect, "", a.Components[i].Name+"."+v.Name, 0, "%s", why)
		}
	}
}

// planPorts chooses inputs, outputs and watched variables of component i. feeds, fed and driven
// are its variables that feed connections, are fed by connections, and are driven by signals.
func (a *Assembly) planPorts(o Options, i int, p *componentPlan, feeds, fed, driven map[string]bool) {
	c := &a.Components[i]
	inputs := maps.Clone(fed)
	maps.Copy(inputs, driven)
	joined, _ := a.paths(i)
	feedsOutput := map[string][]string{} // names of outputs of the system
	for _, o := range a.network.Outputs {
		if o.From.Component == i {
			feedsOutput[o.From.Variable] = append(feedsOutput[o.From.Variable], o.Name)
		}
	}
	for k := range c.FMU.Description.Variables {
		v := &c.FMU.Description.Variables[k]
		names := []string{c.Name + "." + v.Name}
		if joined != c.Name { // read under this name, too, so that the recorder can report the ambiguity
			names = append(names, joined+"."+v.Name)
		}
		if a.pkg == nil {
			names = append(names, v.Name)
		}
		names = append(names, feedsOutput[v.Name]...)
		read := o.Read != nil && slices.ContainsFunc(names, o.Read)
		chosen := o.Record != nil && slices.ContainsFunc(names, o.Record) || read
		if read && v.Causality == description.Input && v.Variability == description.Discrete && c.FMU.Description.CoSimulation.HasEventMode {
			p.quirks |= fmuslave.EventMode // a scenario may set it
		}
		switch {
		case inputs[v.Name]:
			p.inputs = append(p.inputs, v.Name)
		case feeds[v.Name], v.Causality == description.Output &&
			(chosen || o.Record == nil && (v.Type != description.String || v.Clocks == nil)): // fmi3 20
			p.outputs = append(p.outputs, v.Name)
		case chosen && v.Causality != description.Independent && v.Clock == nil:
			p.watch = append(p.watch, v.Name)
		}
	}
	if o.Record == nil && len(p.outputs) == 0 && len(p.inputs) == len(driven) {
		for _, name := range changing(c.FMU.Description, driven) {
			if !slices.Contains(p.watch, name) {
				p.watch = append(p.watch, name)
			}
		}
	}
}

// hold drives free inputs that have a value with this value, so that it is recorded: an FMU need
// not return the values of its inputs.
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
	v := a.variableAt(e)
	return v != nil && v.Causality == description.Parameter
}

// variableAt returns the variable at an end of a connection, nil for a function.
func (a *Assembly) variableAt(e ssp.FlatEnd) *description.ScalarVariable {
	if e.Component >= len(a.Components) {
		return nil
	}
	v, _ := a.Components[e.Component].FMU.Description.Variable(e.Variable)
	return v
}

// changing lists the variables that are not parameters, constants or time, except those in
// without.
func changing(d *description.ModelDescription, without map[string]bool) []string {
	var out []string
	for k := range d.Variables {
		v := &d.Variables[k]
		switch {
		case without[v.Name],
			v.Causality == description.Parameter, v.Causality == description.CalculatedParameter,
			v.Causality == description.Independent, v.Variability == description.Constant,
			v.Variability == description.Fixed, v.Variability == description.Tunable:
		default:
			out = append(out, v.Name)
		}
	}
	return out
}

func (a *Assembly) componentNames() []string {
	var names []string
	for _, c := range a.Components {
		names = append(names, c.Name)
	}
	return names
}

// noComponent returns the error for an unknown component that should do something; others are names that would do as well.
func (a *Assembly) noComponent(name, do string, others ...string) error {
	names := a.componentNames()
	return fmt.Errorf("no component is called %q, which should %s%s", name, do,
		cmp.Or(diag.DidYouMean(name, slices.Concat(names, others)), "; the system has "+strings.Join(names, ", ")))
}

// VariableNames returns the names "component.variable" of all variables of the FMUs.
func (a *Assembly) VariableNames() (names []string) {
	for _, c := range a.Components {
		for _, v := range variableNames(c.FMU.Description) {
			names = append(names, c.Name+"."+v)
		}
	}
	return names
}

// Variable returns the variable with this name in results, nil if there is none. Do not modify it.
func (a *Assembly) Variable(name string) *description.ScalarVariable {
	all, _ := a.meanings(name)
	for _, m := range all {
		if a.Components[m.component].Name+"."+m.v.Name == name {
			return m.v
		}
	}
	return nil
}

// Resolve returns the name in results of a variable named by the user: "component.variable", of a
// single FMU also "variable". Unknown names, such as those of functions, are returned unchanged. An
// ambiguous name is an error.
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

// Alone returns the name of the component of a single FMU, which may be omitted from names of
// variables; "" for a system.
func (a *Assembly) Alone() string {
	if a.pkg != nil {
		return ""
	}
	return a.Components[0].Name
}

// paths returns two names of a component: joined with dots, which may be ambiguous, and in quotes.
// Its Name is one of them.
func (a *Assembly) paths(component int) (joined, quoted string) {
	if a.pkg == nil {
		return a.Components[component].Name, a.Components[component].Name
	}
	c := a.pkg.Components()[component]
	return c.Joined, c.Quoted
}

// meaning is a variable that a name may mean.
type meaning struct {
	component int
	v         *description.ScalarVariable
	quoted    string // its unambiguous name
}

// meanings finds the variables with a name "component.variable", of a single FMU also "variable".
// longest is the component with the longest path that begins the name, -1 if there is none.
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
			if v, ok := variableNamed(a.Components[i].FMU.Description, rest); ok {
				out = append(out, meaning{i, v, quoted + "." + v.Name})
			}
			break
		}
	}
	if a.pkg == nil {
		d := a.Components[0].FMU.Description
		for k, m := range out { // the name of a variable may begin with the name of the component
			if _, ambiguous := d.Variable(m.quoted); ambiguous {
				out[k].quoted = m.v.Name
			}
		}
		if v, ok := variableNamed(d, name); ok {
			out = append(out, meaning{0, v, a.Components[0].Name + "." + v.Name})
		}
	}
	return out, longest
}

// variableNamed returns the variable with a name, which may be in quotes.
func variableNamed(d *description.ModelDescription, name string) (*description.ScalarVariable, bool) {
	if v, ok := d.Variable(name); ok {
		return v, true
	}
	if bare, quoted := ssp.UnquoteName(name); quoted {
		return d.Variable(bare)
	}
	return nil, false
}

// index maps names to components, for fast lookups in large systems.
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

// ambiguousError reports a name with several meanings, and the unambiguous names.
type ambiguousError struct {
	name   string
	quoted []string
}

func (e *ambiguousError) Error() string {
	hint := ""
	if slices.ContainsFunc(e.quoted, func(q string) bool { return strings.Contains(q, "'") }) {
		hint = fmt.Sprintf(`, quotes included (in a shell within double quotes: "%s")`, e.quoted[0])
	}
	return fmt.Sprintf("%q has %d meanings: %s; write the name of the one you mean%s",
		e.name, len(e.quoted), strings.Join(e.quoted, " and "), hint)
}

// find returns the variable with a name.
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
		return -1, nil, fmt.Errorf("%q names no component%s", name,
			cmp.Or(a.similar(name), "; write component.variable, with one of the components "+strings.Join(a.componentNames(), ", ")))
	}
	joined, quoted := a.paths(longest)
	return -1, nil, a.unknown(longest, strings.TrimPrefix(strings.TrimPrefix(name, joined+"."), quoted+"."))
}

// similar returns DidYouMean for a name without a known component: a variable, or else a component.
func (a *Assembly) similar(name string) string {
	component, _, _ := strings.Cut(name, ".")
	return cmp.Or(diag.DidYouMean(name, a.VariableNames()), diag.DidYouMean(component, a.componentNames()))
}

// unknown returns the error for a variable that the component does not have.
func (a *Assembly) unknown(component int, rest string) error {
	c := a.Components[component]
	return fmt.Errorf("component %s has no variable %q%s", c.Name, rest,
		cmp.Or(diag.DidYouMean(rest, variableNames(c.FMU.Description)), "; its modelDescription.xml lists its variables"))
}

func variableNames(d *description.ModelDescription) []string {
	names := make([]string, len(d.Variables))
	for i := range names {
		names[i] = d.Variables[i].Name
	}
	return names
}

// mostDrivenErrors is the maximum number of errors reported for Options.Driven.
const mostDrivenErrors = 20

// planDriven returns the inputs of Options.Driven by component.
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
		d, err := a.drivenTarget(name)
		i, v, connector := d.component, d.v, d.connector
		if connector != nil && err == nil && len(inputs()[name]) > 0 {
			for _, in := range inputs()[name] {
				if driven[in.component][in.variable] {
					errs = append(errs, fmt.Errorf("%s feeds %s.%s, which is given as well; give only one of them",
						name, a.Components[in.component].Name, in.variable))
				}
				driven[in.component][in.variable] = true
			}
			continue
		}
		switch {
		case connector != nil && err == nil:
			errs = append(errs, fmt.Errorf(
				"%s is not an input of the outermost system that feeds an input of an FMU; only free inputs can be given from outside", name))
		case err != nil:
			errs = append(errs, fmt.Errorf("%w%s", err, a.orConnectors(err, ssp.Input)))
		case v.Causality == description.Parameter && v.Variability == description.Tunable:
			errs = append(errs, fmt.Errorf("%s is a tunable parameter, and a table drives inputs only; "+
				"a scenario changes it during the run (--scenario, macrostep help scenarios)", name))
		case v.Causality != description.Input:
			errs = append(errs, fmt.Errorf("%s is not an input: its causality is %s; only free inputs can be given from outside",
				name, v.Causality))
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
