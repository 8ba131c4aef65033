package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
)

const (
	flagExplain = "explain" // names a variable
	flagBonds   = "bonds"
)

const infoHelp = `Shows what is in a file, without running anything. FMU: identity, capabilities,
platforms, variables, and the inputs on which outputs depend. System: components,
connections, values and settings with their sources, algebraic loops. More:
macrostep help building

Examples:
   macrostep info system.ssp
   macrostep info system.ssp --explain wheel.k_w
   macrostep info model.fmu --json | jq '.variables[].name'`

func (p *program) infoCommand() *cli.Command {
	return &cli.Command{
		Name: "info", Usage: "show what is in an FMU or a system", ArgsUsage: "FILE",
		UsageText: "macrostep info FILE [--explain NAME|--bonds] [--set NAME=VALUE] [--json] [--strict]", Description: infoHelp,
		Flags: append([]cli.Flag{
			jsonFlag(),
			listFlag(flagExplain, "show where the value of `COMPONENT.VARIABLE` comes from; with --json, several make an array"),
			boolFlag(flagBonds, "list the power bonds that the system may have"),
		}, settingFlags(flagSet, "strict")...),
		Action: p.info,
	}
}

func (p *program) info(c *cli.Context) error {
	if err := arguments(c, 1, 1, "FILE (an .fmu, an .ssp, a folder or an .ssd)"); err != nil {
		return err
	}
	in, o := newInput(c), looking(p.dialects)
	var given simulate.Request
	in.settings(&given)
	o.Strict, o.Set = given.Strict, given.Set
	if c.IsSet(flagExplain) && c.Bool(flagBonds) {
		in.add(fmt.Errorf("give either --%s or --%s", flagExplain, flagBonds))
	}
	if err := in.err(); err != nil {
		return err
	}
	if c.Bool(flagBonds) {
		return p.bonds(c.Args().First(), o, c.Bool("json"))
	}
	if c.IsSet(flagExplain) {
		return p.explain(c.Args().First(), c.StringSlice(flagExplain), o, c.Bool("json"))
	}
	d, err := describe(c.Args().First(), o)
	switch {
	case d == nil:
	case c.Bool("json"):
		err = errors.Join(writeInfoJSON(p.data(), d), err)
	default:
		writeInfo(p.stdout, d)
	}
	return err
}

// explain prints the sources of the values of variables; as JSON an array if there are several names.
func (p *program) explain(path string, names []string, o assemble.Options, asJSON bool) error {
	list, err := explain(path, names, o)
	switch {
	case len(list) == 0 && err != nil:
		return err
	case asJSON && len(names) > 1:
		return errors.Join(writeJSON(p.data(), list), err)
	case asJSON:
		return errors.Join(writeJSON(p.data(), list[0]), err)
	}
	for i, e := range list {
		if i > 0 {
			fmt.Fprintln(p.stdout)
		}
		writeExplanation(p.stdout, e)
	}
	return err
}

// bonds prints the power bonds that a system may have.
func (p *program) bonds(path string, o assemble.Options, asJSON bool) (err error) {
	a, err := assemble.Open(path, o)
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return err
	}
	found, others := a.Bonds()
	if asJSON {
		return writeJSON(p.data(), struct {
			Bonds  []assemble.BondCandidate `json:"bonds"`
			Others []assemble.NoBond        `json:"others"`
		}{found, others})
	}
	if len(found) == 0 {
		fmt.Fprintln(p.stdout, "No pair of opposite connections is a power by its units.")
	}
	table(p.stdout, rowsOf(found, func(b assemble.BondCandidate) []string {
		return []string{"--bond " + b.Name + "=" + b.Pair, b.Unit}
	}))
	titled(p.stdout, "\nNo bonds:", rowsOf(others, func(o assemble.NoBond) []string { return []string{o.A + ", " + o.B, o.Why} }))
	return nil
}

// Names as in modelDescription.xml.
var (
	causalityNames = []string{"local", "parameter", "calculatedParameter", "input", "output", "independent",
		"structuralParameter"}
	variabilityNames = []string{"continuous", "constant", "fixed", "tunable", "discrete"}
	initialNames     = []string{"", "exact", "approx", "calculated"}
)

// fmuInfo is the JSON of an FMU.
type fmuInfo struct {
	Path             string            `json:"path"`
	Hash             string            `json:"hash"`
	ModelName        string            `json:"model_name"`
	GUID             string            `json:"guid"`
	FMIVersion       string            `json:"fmi_version"`
	Description      string            `json:"description"`
	Author           string            `json:"author"`
	Version          string            `json:"version"`
	Copyright        string            `json:"copyright"`
	License          string            `json:"license"`
	Tool             string            `json:"tool"`
	Date             string            `json:"date"`
	Platforms        []string          `json:"platforms"`
	Interfaces       []string          `json:"interfaces"`
	ModelExchange    bool              `json:"model_exchange"`
	CoSimulation     *capabilitiesInfo `json:"co_simulation"` // null = not offered
	Experiment       experimentInfo    `json:"default_experiment"`
	LogCategories    []string          `json:"log_categories"`
	Variables        []variableInfo    `json:"variables"`
	OutputDependency []dependencyInfo  `json:"outputs"`
	Findings         []findingInfo     `json:"findings"`
}

type capabilitiesInfo struct {
	ModelIdentifier        string `json:"model_identifier"`
	NeedsExecutionTool     bool   `json:"needs_execution_tool"`
	VariableStep           bool   `json:"variable_step"`
	InterpolatesInputs     bool   `json:"interpolates_inputs"`
	OutputDerivatives      int    `json:"output_derivatives"`
	Asynchronous           bool   `json:"asynchronous"`
	OncePerProcess         bool   `json:"once_per_process"`
	NoMemoryFunctions      bool   `json:"no_memory_functions"`
	Rollback               bool   `json:"rollback"`
	SerializesState        bool   `json:"serializes_state"`
	DirectionalDerivatives bool   `json:"directional_derivatives"`
}

type experimentInfo struct {
	StartTime *float64 `json:"start_time"`
	StopTime  *float64 `json:"stop_time"`
	Tolerance *float64 `json:"tolerance"`
	StepSize  *float64 `json:"step_size"`
}

type variableInfo struct {
	Name        string `json:"name"`
	Reference   uint32 `json:"value_reference"`
	Causality   string `json:"causality"`
	Variability string `json:"variability"`
	Initial     string `json:"initial"`
	Type        string `json:"type"`
	Declared    string `json:"declared_type"`
	Unit        string `json:"unit"`
	Start       any    `json:"start"` // null = none
	Description string `json:"description"`
}

type dependencyInfo struct {
	Name     string   `json:"name"`
	Declared bool     `json:"declared"`   // false: assumed to depend on all inputs
	On       []string `json:"depends_on"` // as declared
}

type findingInfo struct {
	Level string `json:"level"`
	diag.Finding
}

func findings(list []diag.Finding) []findingInfo {
	var out []findingInfo
	for _, f := range list {
		out = append(out, findingInfo{f.Level.String(), f})
	}
	return out
}

func newFMUInfo(f *fmuDescription, list []diag.Finding) fmuInfo {
	if f.Outline != nil {
		return newOutlineInfo(f, list)
	}
	d := f.Description
	out := fmuInfo{
		Path: f.Path, Hash: f.Hash, ModelName: d.ModelName, GUID: d.GUID, FMIVersion: d.FMIVersion,
		Description: d.Description, Author: d.Author, Version: d.Version, Copyright: d.Copyright, License: d.License,
		Tool: d.GenerationTool, Date: d.GenerationDateAndTime, Platforms: f.Platforms,
		ModelExchange: d.ModelExchange != nil, Findings: findings(list),
	}
	if out.ModelExchange {
		out.Interfaces = []string{"Model Exchange"}
	}
	if c := d.CoSimulation; c != nil {
		out.Interfaces = append([]string{"Co-Simulation"}, out.Interfaces...)
		out.CoSimulation = &capabilitiesInfo{
			ModelIdentifier: c.ModelIdentifier, NeedsExecutionTool: c.NeedsExecutionTool,
			VariableStep: c.CanHandleVariableCommunicationStepSize, InterpolatesInputs: c.CanInterpolateInputs,
			OutputDerivatives: c.MaxOutputDerivativeOrder, Asynchronous: c.CanRunAsynchronously,
			OncePerProcess: c.CanBeInstantiatedOnlyOncePerProcess, NoMemoryFunctions: c.CanNotUseMemoryManagementFunctions,
			Rollback: c.CanGetAndSetFMUState, SerializesState: c.CanSerializeFMUState,
			DirectionalDerivatives: c.ProvidesDirectionalDerivative,
		}
	}
	if e := d.DefaultExperiment; e != nil {
		out.Experiment = experimentInfo{e.StartTime, e.StopTime, e.Tolerance, e.StepSize}
	}
	for _, c := range d.LogCategories {
		out.LogCategories = append(out.LogCategories, c.Name)
	}
	for i := range d.Variables {
		out.Variables = append(out.Variables, newVariableInfo(&d.Variables[i]))
	}
	name := func(index int) string {
		if index < 1 || index > len(d.Variables) {
			return "#" + strconv.Itoa(index)
		}
		return d.Variables[index-1].Name
	}
	for _, o := range d.Outputs {
		dep := dependencyInfo{Name: name(o.Index), Declared: o.Declared}
		for _, on := range o.Dependencies {
			dep.On = append(dep.On, name(on))
		}
		out.OutputDependency = append(out.OutputDependency, dep)
	}
	return out
}

// newOutlineInfo is newFMUInfo for an FMU that macrostep does not run.
func newOutlineInfo(f *fmuDescription, list []diag.Finding) fmuInfo {
	o := f.Outline
	a, e := o.Attributes, o.Experiment
	out := fmuInfo{
		Path: f.Path, ModelName: a["modelName"], GUID: cmp.Or(a["guid"], a["instantiationToken"]), FMIVersion: o.FMIVersion,
		Description: a["description"], Author: a["author"], Version: a["version"], Copyright: a["copyright"], License: a["license"],
		Tool: a["generationTool"], Date: a["generationDateAndTime"], Platforms: f.Platforms,
		Interfaces: o.Interfaces, ModelExchange: slices.Contains(o.Interfaces, "Model Exchange"),
		Experiment: experimentInfo{e.StartTime, e.StopTime, e.Tolerance, e.StepSize}, Findings: findings(list),
	}
	if len(out.Interfaces) == 0 { // FMI 1.0
		out.Interfaces, out.ModelExchange = []string{"Model Exchange"}, true
	}
	for _, v := range o.Variables {
		reference, _ := strconv.ParseUint(v.Reference, 10, 32)
		info := variableInfo{Name: v.Name, Reference: uint32(reference), Causality: v.Causality, Variability: v.Variability,
			Initial: v.Initial, Type: v.Type + v.Size, Declared: v.DeclaredType, Unit: v.Unit, Description: v.Description}
		if number, err := strconv.ParseFloat(v.Start, 64); err == nil && v.Type != "String" {
			info.Start = number
		} else if v.Start != "" {
			info.Start = v.Start
		}
		out.Variables = append(out.Variables, info)
	}
	return out
}

func newVariableInfo(v *description.ScalarVariable) variableInfo {
	info := variableInfo{
		Name: v.Name, Reference: v.ValueReference.Number(), Causality: nameOf(causalityNames, v.Causality),
		Variability: nameOf(variabilityNames, v.Variability), Initial: nameOf(initialNames, v.Initial),
		Type: v.TypeName(), Declared: v.DeclaredType, Unit: v.Real.Unit, Description: v.Description,
	}
	if !v.HasStart {
		return info
	}
	switch v.Type {
	case description.Real:
		info.Start = v.StartReal
	case description.Integer, description.Enumeration:
		info.Start = v.StartInteger
	case description.Boolean:
		info.Start = v.StartBoolean
	case description.String:
		info.Start = v.StartText()
	}
	return info
}

func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

func writeInfoJSON(w io.Writer, d *fileDescription) error {
	var doc any
	if d.FMU != nil {
		doc = newFMUInfo(d.FMU, d.Findings)
	} else {
		doc = struct {
			*systemDescription
			Findings []findingInfo `json:"findings"`
		}{d.System, findings(d.Findings)}
	}
	return writeJSON(w, doc)
}

// writeExplanation prints the values of a variable, the weakest first.
func writeExplanation(w io.Writer, e *assemble.Explanation) {
	kind := e.Variability + " " + e.Type
	if e.Unit != "" {
		kind += " in " + e.Unit
	}
	if e.Initial != "" {
		kind += ", initial " + e.Initial
	}
	fmt.Fprintf(w, "%s: %s, %s\n", e.Name, e.Causality, kind)
	if e.Note != "" {
		fmt.Fprintf(w, "  %s\n", e.Note)
	}
	if len(e.Chain) == 0 && e.Fed == nil && e.Note == "" {
		fmt.Fprintln(w, "  nothing gives it a value: the FMU has its own")
	}
	var rows [][]string
	for i, o := range e.Chain {
		mark := ""
		switch {
		case i < len(e.Chain)-1:
			mark = "overridden"
		case e.Fed != nil:
			mark = "until the first exchange"
		default:
			mark = "in force"
		}
		rows = append(rows, []string{"  " + o.How, "= " + oneLine(o.Value), mark, o.Place})
		if len(o.Steps) < 2 { // the value is used unchanged
			continue
		}
		for k, s := range o.Steps {
			value := "= " + oneLine(strings.TrimSpace(s.Value+" "+s.Unit))
			if k > 0 && s.Value == o.Steps[k-1].Value && s.Unit == o.Steps[k-1].Unit {
				value = ""
			}
			rows = append(rows, []string{"    " + s.What, value, "", s.Place})
		}
	}
	if f := e.Fed; f != nil {
		via := ""
		if f.Via != "" {
			via = " by way of " + f.Via
		}
		how := joinNonEmpty(linear(master.Linear{Gain: f.Gain, Offset: f.Offset}), f.Map)
		rows = append(rows, []string{"  connected to " + withUnit(f.From, f.Unit) + via, how, "in force", f.Place})
	}
	table(w, rows)
}

func withUnit(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + " [" + unit + "]"
}

func writeInfo(w io.Writer, d *fileDescription) {
	if d.FMU != nil {
		writeFMU(w, newFMUInfo(d.FMU, nil))
	} else {
		writeSystem(w, d.System)
	}
	if len(d.Findings) > 0 {
		fmt.Fprintf(w, "\nFindings\n")
		for _, f := range d.Findings {
			fmt.Fprintf(w, "  %s: %s\n", levelWord(f.Level), f)
		}
	}
}

func writeFMU(w io.Writer, f fmuInfo) {
	platforms := cmp.Or(strings.Join(f.Platforms, ", "), "none (no binaries in the archive)")
	table(w, pairs("Model", f.ModelName, "Description", f.Description, "Version", f.Version, "Author", f.Author,
		"Tool", f.Tool, "Date", f.Date, "License", f.License, "FMI", f.FMIVersion+", "+strings.Join(f.Interfaces, ", "),
		"Platforms", platforms, "GUID", f.GUID, "Hash", f.Hash))
	if c := f.CoSimulation; c != nil {
		titled(w, "\nCo-Simulation "+c.ModelIdentifier, pairs("variable step", yes(c.VariableStep), "rollback", yes(c.Rollback),
			"serialises state", yes(c.SerializesState), "interpolates inputs", yes(c.InterpolatesInputs),
			"output derivatives", orders(c.OutputDerivatives), "directional derivatives", yes(c.DirectionalDerivatives),
			"once per process", yes(c.OncePerProcess), "needs its tool", yes(c.NeedsExecutionTool)))
	}
	e := f.Experiment
	titled(w, "\nDefault experiment", pairs("start", optional(e.StartTime, " s"), "stop", optional(e.StopTime, " s"),
		"step", optional(e.StepSize, " s"), "tolerance", optional(e.Tolerance, "")))
	for _, causality := range []string{"input", "output", "parameter", "calculatedParameter", "structuralParameter", "local", "independent"} {
		writeVariables(w, f.Variables, causality)
	}
	titled(w, "\nOutputs depend directly on", rowsOf(f.OutputDependency, func(d dependencyInfo) []string {
		if !d.Declared {
			return []string{d.Name, "all inputs, by assumption: dependencies are not declared"}
		}
		return []string{d.Name, cmp.Or(strings.Join(d.On, ", "), "no input")}
	}))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orders(n int) string {
	if n == 0 {
		return "no"
	}
	return "up to order " + strconv.Itoa(n)
}

func optional(v *float64, unit string) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64) + unit
}

func writeVariables(w io.Writer, all []variableInfo, causality string) {
	var rows [][]string
	for _, v := range all {
		if v.Causality != causality {
			continue
		}
		kind := strings.TrimSpace(v.Type + " " + v.Declared)
		if v.Variability != "continuous" || (v.Type == "Real" || strings.HasPrefix(v.Type, "Float")) && causality == "parameter" {
			kind = v.Variability + " " + kind
		}
		start := ""
		switch s := v.Start.(type) {
		case nil:
		case string:
			start = "= " + strconv.Quote(s)
		default:
			start = fmt.Sprintf("= %v", s)
		}
		rows = append(rows, []string{v.Name, kind, strings.TrimSpace(start + " " + v.Unit), oneLine(v.Description)})
	}
	titled(w, fmt.Sprintf("\n%s (%d)", causality, len(rows)), rows)
}

func writeSystem(w io.Writer, s *systemDescription) {
	algorithm, tolerance, note := s.Algorithm, "", ""
	if algorithm != "" {
		algorithm += parameterList(s.Params)
	}
	if s.Tolerance != nil {
		tolerance = sourced(*s.Tolerance, "")
	}
	if s.Partial {
		note = "of the documents alone; what the FMUs would add is left out"
	}
	table(w, pairs("System", s.Name, "File", s.Path, "Known", note, "Start", sourced(s.StartTime, " s"), "Stop", sourced(s.StopTime, " s"),
		"Step", sourced(s.StepSize, " s"), "Tolerance", tolerance, "Algorithm", algorithm, "Stateless", strings.Join(s.Stateless, ", ")))
	counted := func(title string, rows [][]string) { titled(w, fmt.Sprintf("\n%s (%d)", title, len(rows)), rows) }
	counted("Components", rowsOf(s.Components, func(c componentInfo) []string {
		missing := ""
		if c.Missing {
			missing = "missing"
		}
		return []string{c.Name, c.Source, portCounts(c.Inputs, c.Outputs), joinNonEmpty(missing, c.Model, c.Tool)}
	}))
	counted("Functions", rowsOf(s.Functions, func(f assemble.FunctionInfo) []string {
		return []string{f.Name, strings.Join(f.Equations, ", ")}
	}))
	counted("Connections", rowsOf(s.Connections, func(c assemble.ConnectionInfo) []string {
		how := joinNonEmpty(linear(master.Linear{Gain: c.Gain, Offset: c.Offset}), c.Map)
		return []string{withUnit(c.From, c.FromUnit), "→ " + withUnit(c.To, c.ToUnit), how, prefixed("via ", c.Via)}
	}))
	if len(s.Connections) == 0 {
		fmt.Fprintln(w, "\nConnections (0)")
	}
	counted("Parameters and start values", rowsOf(s.Settings, func(v settingInfo) []string {
		weaker := ""
		if v.Weaker > 0 {
			weaker = "overrides " + plural(v.Weaker, "other value")
		}
		return []string{v.Name, "= " + oneLine(v.Value), v.Origin, joinNonEmpty(prefixed("over ", v.Over), wayOf(v.Steps), weaker)}
	}))
	counted("Settings of a run", rowsBy(s.Sources, func(name, source string) []string { return []string{name, source} }))
	counted("Algebraic loops", rowsOf(s.Loops, func(l master.Loop) []string { return []string{loopLine(l)} }))
}

// prefixed returns a text with a prefix, or "" for "".
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// wayOf describes the conversions of a value, beginning with the parameter that gives it; "" if it is used
// unchanged.
func wayOf(steps []assemble.Step) string {
	if len(steps) < 2 {
		return ""
	}
	text := ""
	for i, s := range steps {
		value := oneLine(strings.TrimSpace(s.Value + " " + s.Unit))
		switch {
		case i == 0:
			text = "from " + s.What + " in " + s.Place + " = " + value
		case s.Value != steps[i-1].Value || s.Unit != steps[i-1].Unit:
			text += ", " + s.What + " = " + value
		}
	}
	return text
}

func sourced(v simulate.Setting, unit string) string {
	if v.Source == "" {
		return ""
	}
	return fmt.Sprintf("%s%s (%s)", strconv.FormatFloat(v.Value, 'g', -1, 64), unit, v.Source)
}

// linear formats the factor and offset of a connection; "" for the identity.
func linear(l master.Linear) string {
	switch {
	case l.Offset == 0 && (l.Gain == 1 || l.Gain == 0):
		return ""
	case l.Offset == 0:
		return fmt.Sprintf("× %g", l.Gain)
	}
	return fmt.Sprintf("× %g %+g", l.Gain, l.Offset)
}

func joinNonEmpty(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
