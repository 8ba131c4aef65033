// Package judged holds coupled systems of kinds that demonstrations of co-simulation lack, each with a solution of its
// coupled equations that shares no code with the FMUs. With them an estimate of the coupling error is judged by the true one:
//
//	s := judged.Systems()[0]
//	path, err := s.Write(dir) // needs a C compiler
//	… macrostep run path --step-size H --stop-time T --output r.csv, with T = s.Stop and H one of s.Steps …
//	worst, where, err := judged.Error(s, "r.csv")
package judged

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/results"
)

//go:embed src/component.c
var source string

// System is a coupled system. Times are in seconds.
type System struct {
	Name, Kind string
	Stop       float64
	// Steps are macro steps with which explicit coupling with held inputs has an error (see Error) of less than about 5 %,
	// of 5 to 50 %, and of more than 50 %.
	Steps       [3]float64
	Components  []Component
	Connections []Connection

	solve func(times []float64) ([][]float64, error) // the outputs of all components at each time, in their order
}

// Component is an FMU made of C expressions of its states, inputs and time.
type Component struct {
	Name string
	// Part is the longest step (s) of its own integration.
	Part float64
	// NoRollback is set if its state cannot be saved.
	NoRollback bool

	inputs  []string
	states  []state
	outputs []output
	rates   string // statements that set der_x for the states that change between updates
	update  string // statements after each step of the integration
}

// state is a state with its start value.
type state struct {
	name  string
	start float64
}

// output is an output with the inputs that affect it directly.
type output struct {
	name, value string
	feeds       []string
}

// Connection joins an output to an input, both "component.variable".
type Connection struct{ From, To string }

// Write builds the FMUs and writes dir/NAME.ssp.
func (s *System) Write(dir string) (ssp string, err error) {
	root := filepath.Join(dir, s.Name)
	resources := filepath.Join(root, "resources")
	if err := os.MkdirAll(resources, 0o755); err != nil {
		return "", err
	}
	for _, c := range s.Components {
		if _, err := fmus.Pack(resources, c.Name, c.description(), c.source()); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(root, "SystemStructure.ssd"), []byte(s.document()), 0o644); err != nil {
		return "", err
	}
	ssp = filepath.Join(dir, s.Name+".ssp")
	return ssp, archive.Pack(ssp, root)
}

// document returns SystemStructure.ssd.
func (s *System) document() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="%s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
    xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssd:System name="%[1]s">
<ssd:Elements>
`, s.Name)
	for _, c := range s.Components {
		fmt.Fprintf(&b, `<ssd:Component name="%s" type="application/x-fmu-sharedlibrary" source="resources/%[1]s.fmu">`, c.Name)
		b.WriteString("\n<ssd:Connectors>\n")
		for _, name := range c.inputs {
			fmt.Fprintf(&b, "<ssd:Connector name=%q kind=\"input\"><ssc:Real/></ssd:Connector>\n", name)
		}
		for _, o := range c.outputs {
			fmt.Fprintf(&b, "<ssd:Connector name=%q kind=\"output\"><ssc:Real/></ssd:Connector>\n", o.name)
		}
		b.WriteString("</ssd:Connectors></ssd:Component>\n")
	}
	b.WriteString("</ssd:Elements>\n<ssd:Connections>\n")
	for _, c := range s.Connections {
		from, output, _ := strings.Cut(c.From, ".")
		to, input, _ := strings.Cut(c.To, ".")
		fmt.Fprintf(&b, "<ssd:Connection startElement=%q startConnector=%q endElement=%q endConnector=%q/>\n", from, output, to, input)
	}
	fmt.Fprintf(&b, `</ssd:Connections>
</ssd:System>
<ssd:DefaultExperiment startTime="0" stopTime="%g"/>
</ssd:SystemStructureDescription>
`, s.Stop)
	return b.String()
}

// description returns modelDescription.xml.
func (c *Component) description() string {
	var b, structure strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="%s" guid="{judged-%[1]s}">
<CoSimulation modelIdentifier="%[1]s" canHandleVariableCommunicationStepSize="true" canGetAndSetFMUstate="%t"/>
<ModelVariables>
`, c.Name, !c.NoRollback)
	for i, name := range c.inputs {
		fmt.Fprintf(&b, "<ScalarVariable name=%q valueReference=\"%d\" causality=\"input\"><Real start=\"0\"/></ScalarVariable>\n", name, i)
	}
	for i, o := range c.outputs {
		fmt.Fprintf(&b, "<ScalarVariable name=%q valueReference=\"%d\" causality=\"output\"><Real/></ScalarVariable>\n", o.name, len(c.inputs)+i)
		var feeds []string
		for _, name := range o.feeds {
			feeds = append(feeds, fmt.Sprint(slices.Index(c.inputs, name)+1))
		}
		fmt.Fprintf(&structure, "<Unknown index=\"%d\" dependencies=%q/>\n", len(c.inputs)+i+1, strings.Join(feeds, " "))
	}
	fmt.Fprintf(&b, `</ModelVariables>
<ModelStructure>
<Outputs>
%s</Outputs>
<InitialUnknowns>
%[1]s</InitialUnknowns>
</ModelStructure>
</fmiModelDescription>
`, &structure)
	return b.String()
}

// source returns the C source.
func (c *Component) source() string {
	var names, start, outputs strings.Builder
	for i, name := range c.inputs {
		fmt.Fprintf(&names, "#define %s (c_->input_[%d])\n", name, i)
	}
	for i, x := range c.states {
		fmt.Fprintf(&names, "#define %s (c_->state_[%d])\n#define der_%[1]s (c_->rate_[%[2]d])\n", x.name, i)
		fmt.Fprintf(&start, "\t%s = %g;\n", x.name, x.start)
	}
	for i, o := range c.outputs {
		fmt.Fprintf(&outputs, "\tc_->output_[%d] = %s;\n", i, o.value)
	}
	return fmt.Sprintf(`#define INPUTS %d
#define OUTPUTS %d
#define STATES %d
#define STEP %g
%s
#define time (c_->time_)
%s
static void start(Component *c_) {
%s}
static void rates(Component *c_) {
	%s
}
static void outputs(Component *c_) {
%s}
static void update(Component *c_) {
	(void)c_;
	%s
}
`, len(c.inputs), len(c.outputs), len(c.states), c.Part, source, &names, &start, c.rates, &outputs, c.update)
}

// Reference returns the solution of the coupled equations, for each output "component.variable" its values at the times
// (s), which start at 0 or later and do not decrease.
func (s *System) Reference(times []float64) (map[string][]float64, error) {
	values, err := s.solve(times)
	if err != nil {
		return nil, fmt.Errorf("reference of %s: %w", s.Name, err)
	}
	out := map[string][]float64{}
	i := 0
	for _, c := range s.Components {
		for _, o := range c.outputs {
			column := make([]float64, len(times))
			for k := range times {
				column[k] = values[k][i]
			}
			out[c.Name+"."+o.name] = column
			i++
		}
	}
	return out, nil
}

// Error compares a table of results with the reference at its rows: the root mean square of the difference over the
// standard deviation of the reference, and the output that feeds an input where this is largest. It is +Inf or NaN if the
// results are.
func Error(s *System, path string) (worst float64, where string, err error) {
	table, err := results.Read(path, results.ReadOptions{})
	if err != nil {
		return 0, "", err
	}
	reference, err := s.Reference(table.Times)
	if err != nil {
		return 0, "", err
	}
	for _, c := range s.Connections {
		i := slices.IndexFunc(table.Columns, func(column results.Column) bool { return column.Bare == c.From })
		if i < 0 || table.Columns[i].Text {
			return 0, "", fmt.Errorf("%s has no numbers of %s", path, c.From)
		}
		if e := deviation(table.Columns[i].Values, reference[c.From]); where == "" || !(e <= worst) {
			worst, where = e, c.From
		}
		if math.IsNaN(worst) {
			break
		}
	}
	return worst, where, nil
}

// deviation returns the root mean square of a - b over the standard deviation of b.
func deviation(a, b []float64) float64 {
	var difference, mean, variance float64
	for _, v := range b {
		mean += v / float64(len(b))
	}
	for i, v := range b {
		difference += (a[i] - v) * (a[i] - v)
		variance += (v - mean) * (v - mean)
	}
	return math.Sqrt(difference / variance)
}
