package dialect

import (
	"regexp"
	"strconv"
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
	set    ssp.OwnSettings
	filter *signalFilter // nil = none
}

var _ ssp.Recorder = (*omSimulator)(nil)

// Read takes annotations at the experiment and at the outermost system.
func (o *omSimulator) Read(p *ssp.Reader, a ssp.Annotation, at ssp.Site, _ string) (steps []ssp.StepHint, taken bool) {
	switch {
	case a.Type != typeOMS:
	case at == ssp.AtExperiment:
		o.experiment(p, a.Node())
		return nil, true
	case at == ssp.AtSystem:
		return o.system(p, a), true
	}
	return nil, false
}

// Settings returns algorithm, tolerance and output interval.
func (o *omSimulator) Settings([]*ssp.FlatComponent, bool, *diag.List) ssp.OwnSettings { return o.set }

// system reads the annotation of OMSimulator at a system, in its old and new
// form, with or without the level oms:Annotations (ssp 42).
func (o *omSimulator) system(p *ssp.Reader, a ssp.Annotation) []ssp.StepHint {
	set := &o.set
	var out []ssp.StepHint
	read := func(n *ssp.Node, step string) {
		out = append(out, hint(p, n, step, typeOMS)...)
		if t := hint(p, n, "relativeTolerance", typeOMS); t != nil && set.Tolerance == nil {
			set.Tolerance = &t[0].Value
			set.From("tolerance", t[0].Source, t[0].Place)
		}
	}
	// The variable-step masters of OMSimulator compare a step with two of half the
	// size, and go back (rollback).
	adaptive := func(n *ssp.Node) {
		read(n, "initialStepSize")
		set.Algorithm = "richardson"
		set.From("algorithm", typeOMS+" "+n.Str("description", n.Str("method", n.Name)), p.Place(n))
		for _, k := range []struct{ key, param string }{{"initialStepSize", "control.h0"}, {"minimumStepSize", "control.h-min"},
			{"maximumStepSize", "control.h-max"}, {"relativeTolerance", "control.rtol"}, {"absoluteTolerance", "control.atol"}} {
			for _, h := range hint(&ssp.Reader{List: &diag.List{}, File: p.File}, n, k.key, typeOMS) { // reported before
				set.Params = append(set.Params, ssp.Param{Key: k.param, Value: strconv.FormatFloat(h.Value, 'g', -1, 64), Place: h.Place})
				set.From("param "+k.param, h.Source, h.Place)
			}
		}
	}
	var walk func(n *ssp.Node)
	walk = func(n *ssp.Node) {
		for _, k := range n.Kids {
			switch k.Name {
			case "Annotations":
				walk(k)
			case "SimulationInformation":
				switch k.Str("method", "") {
				case "oms_ma":
					read(k, "fixedStepSize")
				case "oms_mav", "oms_mav2":
					adaptive(k)
				case "":
					walk(k)
				default:
					p.Add(ssp.RuleForeign, k, "the solver %q of OMSimulator is for model exchange and has no effect", k.Str("method", ""))
				}
			case "FixedStepMaster":
				read(k, "stepSize")
			case "VariableStepMaster":
				adaptive(k)
			case "VariableStepSolver":
				p.Add(ssp.RuleForeign, k, "the solver %q of OMSimulator is for model exchange and has no effect", k.Str("description", ""))
			default:
				p.Add(ssp.RuleForeign, k, "the setting %q of OMSimulator is not understood", k.El.FullTag())
			}
		}
	}
	walk(a.Node())
	return out
}

// experiment reads the annotation of OMSimulator at the experiment: which
// signals are recorded, and how often (ssp 42).
func (o *omSimulator) experiment(p *ssp.Reader, n *ssp.Node) {
	for _, k := range n.Kids {
		switch k.Name {
		case "Annotations":
			o.experiment(p, k)
		case "SimulationInformation":
			for _, a := range k.El.Attr {
				switch a.Key {
				case "loggingInterval":
					if v, err := xmltree.ParseReal(a.Value); err != nil || v < 0 {
						p.Add(ssp.RuleForeignPart, k, "loggingInterval=%q is no time and is left out", a.Value)
					} else if v > 0 { // 0: every communication point
						o.set.OutputInterval = &v
						o.set.From("output-interval", typeOMS+" loggingInterval", p.Place(k))
					}
				case "signalFilter":
					o.filter = &signalFilter{a.Value, p.Place(k)}
				case "resultFile":
					p.Add(ssp.RuleForeign, k, "%s=%q of OMSimulator has no effect: the command line names the file of the results (--output)", a.Key, a.Value)
				case "bufferSize":
					p.Add(ssp.RuleForeign, k, "%s=%q of OMSimulator has no effect: results need no buffer of a given size", a.Key, a.Value)
				default:
					if a.Space != "xmlns" && a.Key != "xmlns" {
						p.Add(ssp.RuleForeignPart, k, "the setting %s=%q of OMSimulator is not understood", a.Key, a.Value)
					}
				}
			}
		default:
			p.Add(ssp.RuleForeign, k, "the setting %q of OMSimulator is not understood", k.El.FullTag())
		}
	}
}

// signalFilter is what OMSimulator says that is recorded.
type signalFilter struct {
	text  string // a regular expression over model.system.component.variable, or a file
	place ssp.Place
}

// Record turns the signal filter into names of variables (ssp 42). Its names begin with
// those of the document and of the outermost system.
func (o *omSimulator) Record(f *ssp.Resolved) (names []string, from ssp.SettingSource) {
	if o.filter == nil {
		return nil, from
	}
	at, text := o.filter.place, o.filter.text
	source := typeOMS + " signalFilter"
	missing := 0
	switch {
	case f.Given:
		f.List.Report(ssp.RuleForeignPart, at, "%s is left out: the annotation of macrostep tells what is recorded", source)
		return nil, from
	case text == "" || text == ".*":
		f.List.Report(ssp.RuleForeign, at, "%s=%q selects everything and has no effect: outputs and connected inputs are recorded; --record '*' records all", source, text)
		return nil, from
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
			f.List.Report(ssp.RuleForeignPart, at, "%s=%q is no regular expression that is understood, and is left out: %v", source, text, err)
			return nil, from
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
		f.List.Report(ssp.RuleForeign, at, "%s: %d names are no variables of FMUs, such as connectors of systems, and are left out", source, missing)
	}
	if len(names) == 0 {
		f.List.Report(ssp.RuleForeignPart, at, "%s=%q selects no variable of an FMU, and is left out", source, text)
		return nil, from
	}
	return names, ssp.SettingSource{Text: source, Place: at}
}

// ownName returns "component.variable" for a name of OMSimulator.
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

// readFilter reads the names in a file of OMSimulator.
func readFilter(f *ssp.Resolved, at ssp.Place, uri string) (names []string) {
	data, file, err := f.ReadURI(uri)
	if err != nil {
		f.List.Report(ssp.RuleForeignPart, at, "the signal filter is left out: %v", err)
		return nil
	}
	p := &ssp.Reader{List: f.List, File: file, Prefixes: prefixOMS}
	p.Once("prefix oms") // OMSimulator writes these files without declaring it
	root := p.Parse(data)
	if root == nil {
		return nil
	}
	if !root.Is("SignalFilter", nsOMS) {
		p.Add(ssp.RuleForeignPart, root, "the root element is %q, not SignalFilter of OMSimulator; the file is left out", root.El.FullTag())
		return nil
	}
	for k := range p.Each(root, "Variable", nsOMS) {
		names = append(names, p.Need(k, "name"))
	}
	return names
}
