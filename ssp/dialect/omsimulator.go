package dialect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

const (
	typeOMS = "org.openmodelica"
	nsOMS   = "https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd"
)

var prefixOMS = map[string]string{"oms": nsOMS}

// omSimulator reads the annotations of OMSimulator.
type omSimulator struct {
	asked  []ssp.Asked
	filter *signalFilter // nil if there is none
}

var _ ssp.Recorder = (*omSimulator)(nil)

// Read reads annotations at the experiment and at the outermost system.
func (o *omSimulator) Read(p *ssp.Reader, a ssp.Annotation, at ssp.Site, _ string) (hints []ssp.StepHint, taken bool) {
	switch {
	case a.Type != typeOMS:
	case at == ssp.AtExperiment:
		o.experiment(p, a.Node())
		return nil, true
	case at == ssp.AtSystem: // old and new form, with or without the level oms:Annotations (ssp 42)
		o.masters(p, a.Node())
		return nil, true
	}
	return nil, false
}

// Settings returns macro step, algorithm, tolerance and output interval.
func (o *omSimulator) Settings([]*ssp.FlatComponent, bool, *diag.List) []ssp.Asked { return o.asked }

// masters reads the masters and solvers below an element.
func (o *omSimulator) masters(p *ssp.Reader, n *ssp.Node) {
	for _, k := range n.Kids {
		switch k.Name {
		case "Annotations":
			o.masters(p, k)
		case "SimulationInformation":
			switch method := k.Str("method", ""); method {
			case "oms_ma":
				o.master(p, k, "fixedStepSize")
			case "oms_mav", "oms_mav2":
				o.adaptive(p, k)
			case "":
				o.masters(p, k)
			default:
				p.Add(ssp.RuleForeign, k, "the solver %q of OMSimulator is for model exchange and has no effect", method)
			}
		case "FixedStepMaster":
			o.master(p, k, "stepSize")
		case "VariableStepMaster":
			o.adaptive(p, k)
		case "VariableStepSolver":
			p.Add(ssp.RuleForeign, k, "the solver %q of OMSimulator is for model exchange and has no effect", k.Str("description", ""))
		default:
			p.Add(ssp.RuleForeign, k, "the setting %q of OMSimulator is not known", k.El.FullTag())
		}
	}
}

// master reads the step, from this attribute, and the tolerance of a master.
func (o *omSimulator) master(p *ssp.Reader, n *ssp.Node, key string) {
	o.asked = append(o.asked, step(p, n, key, typeOMS)...)
	given := slices.ContainsFunc(o.asked, func(a ssp.Asked) bool { return a.Name == "tolerance" })
	for _, t := range hint(p, n, "relativeTolerance", typeOMS) {
		if !given {
			o.asked = append(o.asked, ssp.Asked{Name: "tolerance", Text: ssp.Number(t.Value), From: t.Source, Place: t.Place})
		}
	}
}

// adaptiveParams are the parameters of richardson by the attributes of OMSimulator.
var adaptiveParams = []struct{ key, param string }{
	{"initialStepSize", "control.h0"}, {"minimumStepSize", "control.h-min"}, {"maximumStepSize", "control.h-max"},
	{"relativeTolerance", "control.rtol"}, {"absoluteTolerance", "control.atol"},
}

// adaptive reads a variable-step master. Those of OMSimulator compare a step with two of half
// the size, with rollback.
func (o *omSimulator) adaptive(p *ssp.Reader, n *ssp.Node) {
	o.master(p, n, "initialStepSize")
	from := typeOMS + " " + n.Str("description", n.Str("method", n.Name))
	o.asked = append(o.asked, ssp.Asked{Name: ssp.Algorithm, Text: "richardson", From: from, Place: p.Place(n)})
	silent := &ssp.Reader{List: &diag.List{}, File: p.File} // master has reported errors
	for _, k := range adaptiveParams {
		for _, h := range hint(silent, n, k.key, typeOMS) {
			o.asked = append(o.asked, ssp.AskParam(k.param, ssp.Number(h.Value), h.Source, h.Place))
		}
	}
}

// experiment reads the annotation of OMSimulator at the experiment: the selection of recorded
// signals, and their interval (ssp 42).
func (o *omSimulator) experiment(p *ssp.Reader, n *ssp.Node) {
	for _, k := range n.Kids {
		switch k.Name {
		case "Annotations":
			o.experiment(p, k)
		case "SimulationInformation":
			for _, a := range k.El.Attr {
				if a.Space != "xmlns" && a.Key != "xmlns" {
					o.output(p, k, a.Key, a.Value)
				}
			}
		default:
			p.Add(ssp.RuleForeign, k, "the setting %q of OMSimulator is not known", k.El.FullTag())
		}
	}
}

// output reads one attribute of the settings for results.
func (o *omSimulator) output(p *ssp.Reader, n *ssp.Node, key, value string) {
	switch key {
	case "loggingInterval":
		if v, err := xmltree.ParseReal(value); err != nil || v < 0 {
			p.Add(ssp.RuleForeignPart, n, "loggingInterval=%q is not a time and is ignored", value)
		} else if v > 0 { // 0 means every communication point
			o.asked = append(o.asked, ssp.Asked{Name: "output-interval", Text: ssp.Number(v), From: typeOMS + " loggingInterval", Place: p.Place(n)})
		}
	case "signalFilter":
		o.filter = &signalFilter{value, p.Place(n)}
	case "resultFile":
		p.Add(ssp.RuleForeign, n, "%s=%q of OMSimulator has no effect: --output names the result file", key, value)
	case "bufferSize":
		p.Add(ssp.RuleForeign, n, "%s=%q of OMSimulator has no effect: results need no buffer of a given size", key, value)
	default:
		p.Add(ssp.RuleForeignPart, n, "the setting %s=%q of OMSimulator is not known", key, value)
	}
}

// signalFilter selects recorded variables.
type signalFilter struct {
	text  string // a regular expression over model.system.component.variable, or a file
	place ssp.Place
}

// Record returns the variables that the signal filter selects (ssp 42). Names in OMSimulator begin
// with those of the document and the outermost system.
func (o *omSimulator) Record(f *ssp.Resolved) (names []string, from string, at ssp.Place) {
	if o.filter == nil {
		return nil, "", at
	}
	at = o.filter.place
	text := o.filter.text
	source := typeOMS + " signalFilter"
	missing := 0
	switch {
	case f.Given:
		f.List.Report(ssp.RuleForeignPart, at, "%s is ignored: the annotation of macrostep selects the recorded variables", source)
		return nil, "", at
	case text == "" || text == ".*":
		f.List.Report(ssp.RuleForeign, at, "%s=%q selects everything and has no effect: outputs and connected inputs are recorded; "+
			"--record '*' records all variables", source, text)
		return nil, "", at
	case strings.HasSuffix(text, ".xml"):
		for _, name := range readFilter(f, at, text) {
			if own, ok := ownName(f, name); ok {
				names = append(names, own)
			} else {
				missing++
			}
		}
	default:
		pattern, err := regexp.Compile(`^(?:` + text + `)$`)
		if err != nil {
			f.List.Report(ssp.RuleForeignPart, at, "%s=%q is not a supported regular expression and is ignored: %v", source, text, err)
			return nil, "", at
		}
		prefix := f.Root.Name + "." + f.Root.System.Name + "."
		for i, c := range f.Components() {
			for v := range f.Variables[i].All() {
				if pattern.MatchString(prefix + c.Joined + "." + v.Name) {
					names = append(names, c.Path+"."+v.Name)
				}
			}
		}
	}
	if missing > 0 {
		f.List.Report(ssp.RuleForeign, at,
			"%s: %d names are not variables of FMUs (but connectors of systems, for example) and are ignored",
			source, missing)
	}
	if len(names) == 0 {
		f.List.Report(ssp.RuleForeignPart, at, "%s=%q selects no variable of an FMU and is ignored", source, text)
		return nil, "", at
	}
	return names, source, at
}

// ownName returns "component.variable" for a name in OMSimulator.
func ownName(f *ssp.Resolved, name string) (string, bool) {
	for _, prefix := range []string{f.Root.Name + "." + f.Root.System.Name + ".", ""} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		for i, c := range f.Components() {
			variable, ok := strings.CutPrefix(rest, c.Joined+".")
			if !ok {
				continue
			}
			if _, ok := f.Variables[i].Lookup(variable); ok {
				return c.Path + "." + variable, true
			}
		}
	}
	return "", false
}

// readFilter reads the names in a signal filter file of OMSimulator.
func readFilter(f *ssp.Resolved, at ssp.Place, uri string) (names []string) {
	data, file, err := f.ReadURI(uri)
	if err != nil {
		f.List.Report(ssp.RuleForeignPart, at, "the signal filter is ignored: %v", err)
		return nil
	}
	p := &ssp.Reader{List: f.List, File: file, Prefixes: prefixOMS}
	p.Once("prefix oms") // no finding: OMSimulator does not declare it in these files
	root := p.Parse(data)
	if root == nil {
		return nil
	}
	if !root.Is("SignalFilter", nsOMS) {
		p.Add(ssp.RuleForeignPart, root, "the root element is %q, not SignalFilter of OMSimulator; the file is ignored", root.El.FullTag())
		return nil
	}
	for k := range p.Each(root, "Variable", nsOMS) {
		names = append(names, p.Need(k, "name"))
	}
	return names
}
