package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/results/axis"
	"github.com/macrostep/macrostep/master/results/plot"
)

const plotHelp = `Draws results as SVG or PNG: one chart per variable, with a line for each FILE that
has it. --diff draws differences from the first FILE, --against a phase plot. More:
macrostep help results

Examples:
   macrostep plot results.csv --select 'chassis.*' -o chassis.png --force
   macrostep plot explicit.csv implicit.csv --select '*.v_c' -o both.svg
   macrostep plot results.csv --select 'wheel.*' --against chassis.z_c -o phase.svg`

const (
	plotFields  = 24   // charts of a picture at most
	plotListed  = 60   // variables listed below them at most
	pictureSpan = 2000 // spans of a line
	phaseHeight = 420
	lineStyles  = 12 // that differ
)

func (p *program) plotCommand() *cli.Command {
	return &cli.Command{
		Name: "plot", Usage: "draw results", ArgsUsage: "FILE…",
		UsageText: "macrostep plot FILE… [-o FILE.svg|FILE.png] [FLAGS]", Description: plotHelp,
		Flags: []cli.Flag{
			outputFlag("write `FILE.svg` or FILE.png (default: the first FILE with .svg); -: an SVG on standard output"), forceFlag(),
			selectFlag("draw"), matchFlag("variable of the first FILE and its name in others, `A=B`"), boolFlag("diff", "draw differences from the first FILE"),
			stringFlag("against", "draw over the variable `NAME` instead of time"), timeColumnFlag(),
		},
		Action: endsAtOnce(p.plot),
	}
}

func (p *program) plot(c *cli.Context) error {
	if c.NArg() == 0 {
		return &usageError{"plot", errors.New("FILE (a table of results) is missing")}
	}
	paths, err := expanded(c.Args().Slice())
	if err != nil {
		return err
	}
	order := plotOrder{diff: c.Bool("diff"), against: c.String("against"), timeColumn: c.String("time-column")}
	if order.diff && len(paths) < 2 {
		return &usageError{"plot", errors.New("--diff needs two files, and only one is given")}
	}
	if order.diff && order.against != "" {
		return &usageError{"plot", errors.New("--diff draws over time, and --against does not; choose one")}
	}
	in := newInput(c)
	order.chosen, order.match = in.globs(flagSelect), in.matches()
	if err := in.err(); err != nil {
		return err
	}
	output, err := p.target(c, strings.TrimSuffix(paths[0], filepath.Ext(paths[0]))+".svg")
	if err != nil {
		return err
	}
	format := strings.ToLower(filepath.Ext(output))
	if format != ".svg" && format != ".png" && output != onStdout {
		return &usageError{"plot", fmt.Errorf("--output %s: a picture must be .svg or .png", output)}
	}
	if err := checkSelected(paths, order.chosen); err != nil {
		return err
	}
	fields, notes, err := readFields(paths, order)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(p.stderr, "note:", note)
	}
	if len(paths) > lineStyles {
		fmt.Fprintf(p.stderr, "warning: %d files share %d line styles, so that some look alike; draw fewer together\n", len(paths), lineStyles)
	}
	drawn := order.picture(fields, paths, p.stderr)
	var content bytes.Buffer
	write := drawn.WriteSVG
	if format == ".png" {
		write = drawn.WritePNG
	}
	if err := write(&content); err != nil {
		return err
	}
	if err := p.writeOutput(output, c.Bool(flagForce), copied(&content), nil); err != nil {
		return err
	}
	p.wrote(output, ": %s of %s", plural(len(drawn.Charts), "chart"), plural(len(paths), "file"))
	return nil
}

// plotOrder is what to draw.
type plotOrder struct {
	chosen     record.Selection
	diff       bool
	against    string // "" = time
	timeColumn string
	match      map[string]string
}

// readFields reads tables and returns what there is to draw of each variable, and how the tables were interpreted.
func readFields(paths []string, o plotOrder) (fields []field, notes []string, err error) {
	var tables []*results.Table
	var errs []error
	for _, path := range paths {
		read := results.ReadOptions{TimeColumn: o.timeColumn}
		component := aloneIn(path)
		if chosen := o.chosen.Of(component); !chosen.IsDefault() && len(paths) == 1 {
			read.Select = func(name string) bool { return chosen.Match(name) || o.over(name, component) }
		}
		t, err := readTable(path, read)
		tables, errs = append(tables, t), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	for _, t := range tables {
		if len(t.Notes) > 0 {
			notes = append(notes, t.Path+": "+strings.Join(t.Notes, "; "))
		}
	}
	var t together
	if t, err = matched(tables, o.match); err != nil {
		return nil, nil, err
	}
	notes = append(notes, t.notes...)
	t.choose(tables, o.chosen, o.over)
	if o.diff {
		fields, err = differenceFields(tables, &t)
	} else {
		fields, err = valueFields(tables, o, &t)
	}
	if err == nil && len(fields) == 0 {
		err = fmt.Errorf("there is nothing to draw: none of the chosen variables of %s holds numbers", strings.Join(paths, ", "))
	}
	return fields, notes, err
}

// expanded replaces patterns that the shell has left by the files that match. A variable of the first file in place of
// a file is an error.
func expanded(args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		_, err := os.Stat(arg)
		if err == nil || !strings.ContainsAny(arg, "*?[") {
			if err != nil && len(paths) > 0 && hasVariable(paths[0], arg) {
				return nil, fmt.Errorf("%s is a variable of %s; to draw it: --%s %s", arg, paths[0], flagSelect, arg)
			}
			paths = append(paths, arg)
			continue
		}
		found, err := filepath.Glob(arg)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("no file matches %s", arg)
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

func hasVariable(path, name string) bool {
	columns, err := results.Header(path)
	return err == nil && slices.ContainsFunc(columns, func(c results.Column) bool { return c.Bare == name })
}

// field is what there is to draw of one variable.
type field struct {
	name, unit string
	xUnit      string
	equals     string // the output that an input equals; "" = none
	lines      []fieldLine
}

type fieldLine struct {
	number int // in the legend
	x, y   []float64
	held   bool // values hold until the next row
}

// valueFields returns a field for each variable, by name. Values are converted to the unit of the first file that has the
// variable; one whose units have nothing in common has several fields.
func valueFields(tables []*results.Table, o plotOrder, t *together) (fields []field, err error) {
	over := results.Column{Unit: "s"}
	for i, table := range tables {
		if x, err := o.axis(table, func(name string) string { return t.of(i, name) }); err != nil {
			return nil, err
		} else if i == 0 {
			over = *x
		} else if same, ok := x.In(over.Unit); ok || x.Unit == "" || over.Unit == "" {
			over.Values = same.Values
		} else {
			return nil, fmt.Errorf("%s has the unit %s in %s, and %s in %s: one axis cannot show both", o.against, over.Unit, tables[0].Path, x.Unit, table.Path)
		}
		m := manifestAt(table.Path)
		for k := range table.Columns {
			own := &table.Columns[k]
			if own.Text || t.of(i, own.Bare) == over.Bare {
				continue
			}
			f, c := fieldOf(&fields, t.of(i, own.Bare), own, over.Unit)
			equals := source(m, own.Bare)
			f.add(fieldLine{i, over.Values, c.Values, slices.Contains(m.Held, own.Bare) || held(c.Values)}, t.of(i, equals))
		}
	}
	return fields, nil
}

// over reports whether a variable takes the place of time, in a result with a single component, if that is not "".
func (o *plotOrder) over(name, component string) bool {
	return o.against != "" && (name == o.against || component != "" && name == component+"."+o.against)
}

// axis returns the times of a table, or the variable in their place.
func (o *plotOrder) axis(t *results.Table, known func(own string) string) (*results.Column, error) {
	if o.against == "" {
		return &results.Column{Unit: "s", Values: t.Times}, nil
	}
	var names []string
	component := aloneIn(t.Path)
	for k := range t.Columns {
		c := &t.Columns[k]
		if !c.Text && (o.over(c.Bare, component) || o.over(c.Name, component) || o.over(known(c.Bare), component)) {
			return c, nil
		}
		names = append(names, c.Bare)
	}
	return nil, fmt.Errorf("--against %s: %s has no such variable with numbers%s", o.against, t.Path, diag.DidYouMean(o.against, names))
}

// differenceFields returns a field for each variable with the differences from the first table.
func differenceFields(tables []*results.Table, by *together) (fields []field, err error) {
	a := manifestAt(tables[0].Path)
	for i, t := range tables[1:] {
		b := manifestAt(t.Path)
		c, err := results.Compare(tables[0], t, results.CompareOptions{Match: by.pairs[i+1]})
		if err != nil {
			return nil, err
		}
		for k := range c.Variables {
			times, e := c.Errors(k)
			f, _ := fieldOf(&fields, c.Column(k).Bare, c.Column(k), "s")
			equals := source(a, c.Column(k).Bare)
			if equals != source(b, c.Variables[k].InB) {
				equals = ""
			}
			f.add(fieldLine{i, times, e, false}, equals)
		}
	}
	return fields, nil
}

// fieldOf returns the field of a variable, which it makes if necessary, and the column in its unit.
func fieldOf(fields *[]field, name string, c *results.Column, xUnit string) (*field, *results.Column) {
	for i := range *fields {
		f := &(*fields)[i]
		if f.name != name {
			continue
		}
		if f.unit == c.Unit || f.unit == "" || c.Unit == "" {
			return f, c
		}
		if same, ok := c.In(f.unit); ok {
			return f, same
		}
	}
	*fields = append(*fields, field{name: name, unit: c.Unit, xUnit: xUnit})
	return &(*fields)[len(*fields)-1], c
}

// add adds a line; equals is the output that the variable equals there.
func (f *field) add(l fieldLine, equals string) {
	if f.lines == nil {
		f.equals = equals
	} else if equals != f.equals {
		f.equals = ""
	}
	f.lines = append(f.lines, l)
}

// source returns the output that an input equals in a run; "" = there is none.
func source(m *record.Manifest, name string) string {
	if slices.Contains(m.Manipulated, name) || slices.Contains(m.Manipulated, m.Connected[name]) {
		return ""
	}
	return m.Connected[name]
}

// constant returns the only value of a field; NaN if there is no finite one. ok is false if it changes or has gaps.
func (f *field) constant() (value float64, ok bool) {
	value = math.NaN()
	gaps := false
	for _, l := range f.lines {
		for _, v := range l.y {
			switch {
			case v-v != 0:
				gaps = true
			case value != value:
				value = v
			case v != value:
				return 0, false
			}
		}
	}
	return value, !gaps || value != value
}

// picture draws fields. What it leaves out it prints to stderr.
func (o *plotOrder) picture(fields []field, paths []string, stderr io.Writer) *plot.Picture {
	p := &plot.Picture{}
	constants := plot.Note{Title: "Constant"}
	var connected, equal, empty []string
	left := 0
	for i := range fields {
		f := &fields[i]
		switch value, ok := f.constant(); {
		case slices.ContainsFunc(fields, func(g field) bool { return f.equals == g.name }):
			connected = append(connected, f.name+" = "+f.equals)
		case ok && value != value:
			empty = append(empty, f.name)
		case ok && o.diff && value == 0:
			equal = append(equal, f.name)
		case ok:
			constants.Lines = append(constants.Lines, strings.TrimSpace(fmt.Sprintf("%s = %.9g %s", f.name, value, f.unit)))
		case len(p.Charts) == plotFields:
			left++
		default:
			p.Charts = append(p.Charts, o.chart(f))
		}
	}
	if left > 0 {
		fmt.Fprintf(stderr, "warning: %s are not drawn, a picture holds %d; --select chooses\n", plural(left, "variable"), plotFields)
	}
	for _, n := range []plot.Note{{Title: "Connected inputs", Lines: connected}, constants, {Title: "Without a difference", Lines: equal}, {Title: "Without finite values", Lines: empty}} {
		if left := len(n.Lines) - plotListed; left > 0 {
			n.Lines = append(n.Lines[:plotListed], fmt.Sprintf("… and %d more", left))
		}
		if len(n.Lines) > 0 {
			p.Notes = append(p.Notes, n)
		}
	}
	if o.against != "" {
		p.Height = phaseHeight
		if len(p.Charts) > 0 {
			p.Notes = append(p.Notes, plot.Note{Lines: []string{"A dot marks the start of a line."}})
		}
	}
	if len(paths) > 1 && len(p.Charts) > 0 {
		against := ""
		if o.diff {
			against, paths = " − "+filepath.Base(paths[0]), paths[1:]
		}
		for i, path := range paths {
			p.Legend = append(p.Legend, plot.Entry{Name: path + against, Style: axis.LineStyle(i)})
		}
	}
	return p
}

// chart returns the chart of a field.
func (o *plotOrder) chart(f *field) plot.Chart {
	c := plot.Chart{Title: f.name, Y: plot.Axis{Unit: f.unit}, X: plot.Axis{Name: "time", Unit: "s"}}
	if o.against != "" {
		c.X.Name, c.X.Unit = o.against, f.xUnit
	}
	for i, l := range f.lines {
		line := plot.Line{X: l.x, Y: l.y, Style: axis.LineStyle(l.number), Start: o.against != ""}
		if o.against == "" {
			line.Held = l.held
			thin := results.NewThinner(pictureSpan)
			for k, v := range l.y {
				thin.Add(l.x[k], v)
			}
			line.X, line.Y = thin.Points(nil, nil)
			if n := len(l.x); n > 0 {
				if i == 0 {
					c.X.Low, c.X.High = l.x[0], l.x[n-1]
				}
				c.X.Low, c.X.High = min(c.X.Low, l.x[0]), max(c.X.High, l.x[n-1])
			}
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

// held reports whether values are those of a discrete variable: whole numbers that mostly stay the same.
func held(values []float64) bool {
	changes := 0
	for i, v := range values {
		if v != math.Trunc(v) {
			return false
		}
		if i > 0 && v != values[i-1] {
			changes++
		}
	}
	return 2*changes < len(values)-1
}

// copied returns a function that writes a buffer.
func copied(b *bytes.Buffer) func(io.Writer) error {
	return func(w io.Writer) error { _, err := b.WriteTo(w); return err }
}
