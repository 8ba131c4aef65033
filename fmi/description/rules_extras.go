package description

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// What macrostep has no use for is judged only where someone asks: a run ignores
// it, right or wrong (fmi2 11).
var (
	// RuleTerminals is the rule that CheckTerminals applies to terminalsAndIcons.xml.
	RuleTerminals = &diag.Rule{
		ID: "MD43", Level: diag.Warning, Ref: "fmi2 11",
		Doc:    "terminalsAndIcons/terminalsAndIcons.xml is well-formed, terminals have names, unique where they stand, and their members are variables of the FMU. A run does not use it.",
		Remedy: "harmless for a run; tools that draw or connect terminals may refuse the FMU",
	}
	ruleMembers = &diag.Rule{
		ID: "MD43M", Level: diag.Warning, Ref: "fmi2 11",
		Doc:    "Members of terminals have a variableName and a variableKind.",
		Remedy: "harmless for a run; tools that connect terminals cannot tell what the member is",
	}
	// RuleBuild is the rule that CheckBuild applies to buildDescription.xml.
	RuleBuild = &diag.Rule{
		ID: "MD43B", Level: diag.Warning, Ref: "fmi2 11",
		Doc:    "sources/buildDescription.xml is well-formed, and each configuration is that of a model identifier of the FMU with source files that are there, each once. A run uses the library and not the sources, unless they are to be compiled.",
		Remedy: "harmless while there is a library for the platform; else the sources cannot be compiled as the document says",
	}
)

// ExtraRules lists the rules on the other XML documents of an FMU: those of
// CheckTerminals and CheckBuild.
func ExtraRules() []*diag.Rule { return []*diag.Rule{RuleTerminals, ruleMembers, RuleBuild} }

// extra walks over a document: enter is called at each start tag with the names of the
// elements around it, and the line.
func extra(r io.Reader, root string, enter func(path []string, e *xml.StartElement, line int)) (line int, err error) {
	src, err := newSource(r)
	if err != nil {
		return 1, err
	}
	d := xml.NewDecoder(src)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // converted by src
	var open []string
	seen := false
	for {
		line, _ = d.InputPos()
		t, err := d.Token()
		if err == io.EOF && seen {
			return 0, nil
		}
		if err == io.EOF {
			return line, errors.New("the document has no element")
		}
		if err != nil {
			return line, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if len(open) == 0 && t.Name.Local != root {
				return line, fmt.Errorf("the root element is %s and not %s", clip(t.Name.Local), root)
			}
			if len(open) == maxDepth {
				return line, fmt.Errorf("elements are nested deeper than %d", maxDepth)
			}
			seen = true
			enter(open, &t, line)
			open = append(open, t.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

func attribute(e *xml.StartElement, name string) (string, bool) {
	for i := range e.Attr {
		if local(&e.Attr[i]) == name {
			return e.Attr[i].Value, true
		}
	}
	return "", false
}

// CheckTerminals judges a terminalsAndIcons.xml by the variables of the FMU; with a
// nil description only what it says by itself.
func CheckTerminals(r io.Reader, file string, d *ModelDescription, l *diag.List) {
	names := []map[string]bool{{}} // of the terminals at each depth of nesting
	line, err := extra(r, "fmiTerminalsAndIcons", func(path []string, e *xml.StartElement, line int) {
		where := "/" + strings.Join(append(path[:len(path):len(path)], e.Name.Local), "/")
		bad := func(format string, args ...any) { l.Add(RuleTerminals, file, where, line, format, args...) }
		depth := 0
		for _, p := range path {
			if p == "Terminal" {
				depth++
			}
		}
		switch e.Name.Local {
		case "Terminal":
			names = append(names[:depth+1:depth+1], map[string]bool{})
			name, ok := attribute(e, "name")
			switch {
			case !ok:
				bad("the terminal has no name")
			case names[depth][name]:
				bad("another terminal is called %q too", clip(name))
			}
			names[depth][name] = true
		case "TerminalMemberVariable":
			name, ok := attribute(e, "variableName")
			kind, hasKind := attribute(e, "variableKind")
			switch {
			case !ok || name == "":
				l.Add(ruleMembers, file, where, line, "the member has no variableName")
				return
			case !hasKind || kind == "":
				l.Add(ruleMembers, file, where, line, "the member %q has no variableKind", clip(name))
			}
			if d == nil {
				return
			}
			if _, known := d.Variable(name); !known {
				bad("the member %q is no variable of the FMU", clip(name))
			}
		}
	})
	if err != nil {
		l.Add(RuleTerminals, file, "", line, "%v", err)
	}
}

// CheckBuild judges a buildDescription.xml by the model identifiers and the source
// files of the FMU; nil leaves either out.
func CheckBuild(r io.Reader, file string, d *ModelDescription, has func(name string) bool, l *diag.List) {
	files := map[string]bool{}
	line, err := extra(r, "fmiBuildDescription", func(path []string, e *xml.StartElement, line int) {
		where := "/" + strings.Join(append(path[:len(path):len(path)], e.Name.Local), "/")
		bad := func(format string, args ...any) { l.Add(RuleBuild, file, where, line, format, args...) }
		switch e.Name.Local {
		case "BuildConfiguration":
			clear(files)
			id, ok := attribute(e, "modelIdentifier")
			switch {
			case !ok || id == "":
				bad("the configuration has no modelIdentifier")
			case d != nil && !(d.CoSimulation != nil && d.CoSimulation.ModelIdentifier == id || d.ModelExchange != nil && d.ModelExchange.ModelIdentifier == id):
				bad("the FMU has no interface with the modelIdentifier %q", clip(id))
			}
		case "SourceFile":
			name, ok := attribute(e, "name")
			switch {
			case !ok || name == "":
				bad("the source file has no name")
			case files[name]:
				bad("the source file %q stands twice", clip(name))
			case has != nil && !has(name):
				bad("there is no source file sources/%s", clip(name))
			}
			files[name] = true
		}
	})
	if err != nil {
		l.Add(RuleBuild, file, "", line, "%v", err)
	}
}
