package description

import (
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

var version3 = regexp.MustCompile(`^3\.0(\.\d+)?$`)

// version checks fmiVersion and returns "2.0" or "3.0", or "" for another version.
func (p *reader) version(a *xml.Attr) string {
	v := strings.Trim(a.Value, xmlSpace)
	version, form := "2.0", a.Value != "2.0"
	switch {
	case version3.MatchString(v):
		version, form = "3.0", a.Value != v
	case v != "2.0" && !strings.HasPrefix(v, "2.0."):
		p.add(RuleVersion, p.path(a.Name.Local), p.line, "", "the FMU is an FMI %s FMU; macrostep reads FMI 2.0 and 3.0",
			clip(v))
		return ""
	}
	if form {
		p.add(ruleFMIVersionForm, p.path(a.Name.Local), p.line, "", "fmiVersion is %q", clip(a.Value))
	}
	return version
}

// identifier reads modelIdentifier, which becomes part of a path.
func (p *reader) identifier(to *string) func(*xml.Attr) {
	return func(a *xml.Attr) {
		s := a.Value
		*to = s
		if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\\:\x00") {
			p.add(ruleIdentifierPath, p.path(a.Name.Local), p.line, "", "modelIdentifier is %q, which cannot name a file", clip(s))
		}
	}
}

// check applies the rules that need the whole document and repairs what
// breaks them.
func (p *reader) check() {
	d := p.d
	switch scheduled := p.sections["ScheduledExecution"]; {
	case d.CoSimulation != nil || d.ModelExchange != nil:
	case scheduled > 0:
		p.add(RuleCoSimulation, "/fmiModelDescription/ScheduledExecution", scheduled, "",
			"the FMU offers Scheduled Execution only: it activates model partitions by clocks, which macrostep does not schedule")
	default:
		p.add(RuleCoSimulation, "/fmiModelDescription", 0, "", "the FMU offers neither Co-Simulation nor Model Exchange")
	}
	p.configure()
	if p.three && !p.expand() {
		return
	}
	for _, s := range []string{"ModelVariables", "ModelStructure"} {
		if p.sections[s] == 0 {
			p.add(ruleSchemaLoose, "/fmiModelDescription", 0, s, "the element %s is missing", s)
		}
	}
	p.checkExperiment()
	p.checkUnits()
	p.checkTypes()
	p.checkVariables()
	p.checkAliases()
	p.checkStructure()
}

func (p *reader) checkExperiment() {
	x := p.d.DefaultExperiment
	if x == nil {
		return
	}
	const path = "/fmiModelDescription/DefaultExperiment"
	line := p.sections["DefaultExperiment"]
	if x.Tolerance != nil && *x.Tolerance < 0 {
		p.add(ruleExperiment, path+"/@tolerance", line, "", "the tolerance %g is negative", *x.Tolerance)
		x.Tolerance = nil
	}
	if x.StepSize != nil && *x.StepSize <= 0 {
		p.add(ruleStepSize, path+"/@stepSize", line, "", "the step size %g is not greater than 0", *x.StepSize)
		x.StepSize = nil
	}
	if x.StopTime == nil {
		return
	}
	start := 0.
	if x.StartTime != nil {
		start = *x.StartTime
	}
	c, span := p.d.CoSimulation, *x.StopTime-start
	switch {
	case span <= 0:
		p.add(ruleExperiment, path+"/@stopTime", line, "", "the stop time %g is not after the start time %g", *x.StopTime, start)
	case x.StepSize == nil:
	case *x.StepSize >= span:
		p.add(ruleExperiment, path+"/@stepSize", line, "", "the step size %g is not shorter than the time span %g", *x.StepSize, span)
	case c != nil && !c.CanHandleVariableCommunicationStepSize:
		if n := span / *x.StepSize; math.Abs(n-math.Round(n)) > 1e-9*n {
			p.add(ruleStepSize, path+"/@stepSize", line, "", "the FMU needs a constant step size, but the time span %g is %.6g steps of %g",
				span, n, *x.StepSize)
		}
	}
}

func (p *reader) checkUnits() {
	seen := make(map[string]int, len(p.d.Units))
	for i := range p.d.Units {
		u := &p.d.Units[i]
		path := fmt.Sprintf("/fmiModelDescription/UnitDefinitions/Unit[%d]", i+1)
		if first, twice := seen[u.Name]; twice {
			p.add(ruleDefinitions, path, p.lines.units[i], u.Name, "the unit %q is already defined in line %d", clip(u.Name), p.lines.units[first])
		} else {
			seen[u.Name] = i
		}
		own := map[string]bool{}
		for _, s := range u.Displays {
			if own[s.Name] {
				p.add(ruleDefinitions, path, p.lines.units[i], u.Name, "the unit %q has the display unit %q twice", clip(u.Name), clip(s.Name))
			}
			own[s.Name] = true
		}
	}
	p.unitOf = seen
}

// location is the place of a type or a variable.
type location struct {
	section, element string
	index            int // of the element in the section, from 0
	line             int
	name             string
}

// mark reports a violation at a location.
func (p *reader) mark(at location, r *diag.Rule, format string, args ...any) {
	p.add(r, "/fmiModelDescription/"+at.section+"/"+at.element+"["+strconv.Itoa(at.index+1)+"]", at.line, at.name, format, args...)
}

func (p *reader) checkTypes() {
	p.typeOf = make(map[string]int, len(p.d.Types))
	for i := range p.d.Types {
		t, line := &p.d.Types[i], p.lines.types[i]
		at := location{"TypeDefinitions", "SimpleType", i, line, t.Name}
		if p.three {
			at.element = t.Storage.String() + "Type"
		}
		if first, twice := p.typeOf[t.Name]; twice {
			p.mark(at, ruleDefinitions, "the type %q is already defined in line %d", clip(t.Name), p.lines.types[first])
		} else {
			p.typeOf[t.Name] = i
		}
		switch t.Type {
		case Real:
			p.checkReal(&t.Real, at)
		case Enumeration:
			p.checkItems(t, at)
		}
	}
}

func (p *reader) checkItems(t *SimpleType, at location) {
	if len(t.Items) == 0 {
		p.mark(at, ruleItems, "the enumeration %q has no items", clip(t.Name))
	}
	names, values := map[string]bool{}, map[int64]bool{}
	for _, it := range t.Items {
		if names[it.Name] {
			p.mark(at, ruleItems, "the enumeration %q has the item %q twice", clip(t.Name), clip(it.Name))
		}
		if values[it.Value] {
			p.mark(at, ruleItems, "the enumeration %q has the value %d twice", clip(t.Name), it.Value)
		}
		names[it.Name], values[it.Value] = true, true
	}
}

// checkReal checks the attributes of a Real type or variable.
func (p *reader) checkReal(r *RealAttributes, at location) {
	if r.Unit != "" {
		p.checkUnit(r.Unit, at)
	}
	if r.Nominal != nil && *r.Nominal <= 0 {
		p.mark(at, ruleNominal, "%q has the nominal value %g", clip(at.name), *r.Nominal)
		r.Nominal = nil
	}
}

// checkUnit checks that a unit is defined. It reports each undefined unit once.
func (p *reader) checkUnit(unit string, at location) {
	if _, defined := p.unitOf[unit]; defined || p.undefined[unit] {
		return
	}
	if p.undefined == nil {
		p.undefined = map[string]bool{}
	}
	p.undefined[unit] = true
	name := at.name
	at.name = unit // a finding for several violations lists units
	p.mark(at, ruleUnit, "the unit %q of %q is not defined", clip(unit), clip(name))
}
