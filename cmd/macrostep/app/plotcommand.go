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
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
)

const plotHelp = `Draws results as a picture, SVG or PNG by the extension of the output: one field per
variable, with a line for each FILE that has it. Use it to look at a result, or at
several together. Files may come from other tools (see macrostep help compare).
--diff draws differences from the first FILE instead of values, at the times that
both have, interpolated linearly between rows.

Where a variable has more points than a picture can show, the first, least, greatest
and last point of equal spans of time are drawn, so that no peak is lost.

Examples:
   macrostep plot results.csv
   macrostep plot results.csv --select 'chassis.*' -o chassis.png --force
   macrostep plot explicit.csv implicit.csv --select '*.v_c' -o both.svg
   macrostep plot reference.csv step-*.csv --diff -o errors.svg`

const (
	plotFields  = 24   // of a picture at most
	pictureSpan = 2000 // spans of a line
	fieldWidth  = 14 * vg.Centimeter
	fieldHeight = 7 * vg.Centimeter
	pictureDPI  = 120
)

func (p *program) plotCommand() *cli.Command {
	return &cli.Command{
		Name: "plot", Usage: "draw results", ArgsUsage: "FILE…",
		UsageText: "macrostep plot FILE… [-o FILE.svg|FILE.png] [FLAGS]", Description: plotHelp,
		Flags: []cli.Flag{
			outputFlag("write `FILE.svg` or FILE.png (default: the first FILE with .svg)"), forceFlag(),
			selectFlag("draw"), boolFlag("diff", "draw differences from the first FILE"), timeColumnFlag(),
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
	diff := c.Bool("diff")
	if diff && len(paths) < 2 {
		return &usageError{"plot", errors.New("--diff needs two files, and only one is given")}
	}
	in := newInput(c)
	chosen := in.globs(flagSelect)
	if err := in.err(); err != nil {
		return err
	}
	output, err := target(c, strings.TrimSuffix(paths[0], filepath.Ext(paths[0]))+".svg")
	if err != nil {
		return err
	}
	format := strings.ToLower(filepath.Ext(output))
	if format != ".svg" && format != ".png" {
		return &usageError{"plot", fmt.Errorf("--output %s: a picture must be .svg or .png", output)}
	}
	fields, err := readFields(paths, c.String("time-column"), diff, chosen)
	if err != nil {
		return err
	}
	if n := len(fields) - plotFields; n > 0 {
		fmt.Fprintf(p.stderr, "warning: %s are not drawn, a picture holds %d; --select chooses\n", plural(n, "variable"), plotFields)
		fields = fields[:plotFields]
	}
	plots, err := drawFields(fields, len(paths) > 1)
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	if err := tile(&picture, format, plots); err != nil {
		return err
	}
	if err := writeChecked(output, c.Bool(flagForce), copied(&picture), nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "wrote %s: %s of %s\n", output, plural(len(fields), "variable"), plural(len(paths), "file"))
	return err
}

// readFields reads tables and returns their variables, or the differences from the first table.
func readFields(paths []string, timeColumn string, diff bool, chosen record.Selection) (fields []field, err error) {
	var tables []*results.Table
	var errs []error
	for _, path := range paths {
		read := results.ReadOptions{}
		if !diff || path == paths[0] {
			read = reading(chosen.Of(aloneIn(path)))
		}
		read.TimeColumn = timeColumn
		t, err := readTable(path, read)
		tables, errs = append(tables, t), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if diff {
		fields, err = differenceFields(tables, chosen)
	} else {
		fields = valueFields(tables, chosen)
	}
	if err == nil && len(fields) == 0 {
		err = fmt.Errorf("there is nothing to draw: none of the chosen variables of %s holds numbers", strings.Join(paths, ", "))
	}
	return fields, err
}

// expanded replaces patterns that the shell has left by the files that match.
func expanded(args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		if _, err := os.Stat(arg); err == nil || !strings.ContainsAny(arg, "*?[") {
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

// field is the part of a picture with one variable.
type field struct {
	name, unit string
	lines      []line
}

type line struct {
	file int
	path string
	t, v []float64
}

// valueFields returns a field for each variable, by name.
func valueFields(tables []*results.Table, chosen record.Selection) (fields []field) {
	for i, t := range tables {
		chosen := chosen.Of(aloneIn(t.Path))
		for k := range t.Columns {
			c := &t.Columns[k]
			if !c.Text && (chosen.IsDefault() || chosen.Match(c.Bare) || chosen.Match(c.Name)) {
				fields = addToField(fields, c.Bare, c.Unit, line{i, t.Path, t.Times, c.Values})
			}
		}
	}
	return fields
}

// differenceFields returns a field for each variable with the differences from the first table.
func differenceFields(tables []*results.Table, chosen record.Selection) (fields []field, err error) {
	o := results.CompareOptions{Select: reading(chosen.Of(aloneIn(tables[0].Path))).Select}
	for i, t := range tables[1:] {
		c, err := results.Compare(tables[0], t, o)
		if err != nil {
			return nil, err
		}
		for k, v := range c.Variables {
			times, e := c.Errors(k)
			fields = addToField(fields, v.Name, "", line{i + 1, t.Path + " − " + filepath.Base(tables[0].Path), times, e})
		}
	}
	return fields, nil
}

// addToField adds a line to the field of a variable, which it makes if necessary.
func addToField(fields []field, name, unit string, l line) []field {
	at := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if at < 0 {
		at = len(fields)
		fields = append(fields, field{name: name, unit: unit})
	}
	fields[at].lines = append(fields[at].lines, l)
	return fields
}

// drawFields returns a plot of each field.
func drawFields(fields []field, legend bool) ([]*plot.Plot, error) {
	var plots []*plot.Plot
	for _, f := range fields {
		q := plot.New()
		q.Title.Text = f.name
		q.X.Label.Text, q.Y.Label.Text = "time [s]", ""
		if unit := strings.TrimSpace(f.shrink() + " " + f.unit); unit != "" {
			q.Y.Label.Text = "[" + unit + "]"
		}
		q.Add(plotter.NewGrid())
		q.Legend.Top, q.Legend.XOffs = true, -vg.Points(4)
		for _, l := range f.lines {
			if err := addLine(q, &l, legend); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", l.path, f.name, err)
			}
		}
		if q.X.Min > q.X.Max { // there is no point
			q.X.Min, q.X.Max, q.Y.Min, q.Y.Max = 0, 1, 0, 1
		}
		plots = append(plots, q)
	}
	return plots, nil
}

// hugeValue is a limit below which sums in the plotting library do not overflow: the library does not return
// if a range is not finite.
const hugeValue = 1e300

// shrink divides huge values by hugeValue, in copies, and returns the factor as text; "" = there are none.
func (f *field) shrink() string {
	huge := func(v float64) bool { return math.Abs(v) > hugeValue && !math.IsInf(v, 0) }
	if !slices.ContainsFunc(f.lines, func(l line) bool { return slices.ContainsFunc(l.v, huge) }) {
		return ""
	}
	lines := slices.Clone(f.lines)
	for i := range lines {
		v := slices.Clone(lines[i].v)
		for k := range v {
			v[k] /= hugeValue
		}
		lines[i].v = v
	}
	f.lines = lines
	return fmt.Sprint(hugeValue)
}

// addLine adds a line, interrupted at missing values.
func addLine(q *plot.Plot, l *line, legend bool) error {
	thin := results.NewThinner(pictureSpan)
	for i, v := range l.v {
		thin.Add(l.t[i], v)
	}
	t, v := thin.Points(nil, nil)
	for len(t) > 0 {
		end := slices.IndexFunc(v, math.IsNaN)
		if end < 0 {
			end = len(v)
		}
		if end > 0 {
			points := make(plotter.XYs, end)
			for i := range points {
				points[i] = plotter.XY{X: t[i], Y: v[i]}
			}
			drawn, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			drawn.Color, drawn.Width = orderColors[l.file%len(orderColors)], vg.Points(1.2)
			if l.file >= len(orderColors) {
				drawn.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
			}
			q.Add(drawn)
			if legend {
				q.Legend.Add(l.path, drawn)
				legend = false
			}
		}
		end = min(end+1, len(v))
		t, v = t[end:], v[end:]
	}
	return nil
}

// tile writes plots in one or two columns as a picture.
func tile(w io.Writer, format string, plots []*plot.Plot) error {
	columns := 1
	if len(plots) > 3 {
		columns = 2
	}
	rows := (len(plots) + columns - 1) / columns
	size := vgimg.UseWH(vg.Length(columns)*fieldWidth, vg.Length(rows)*fieldHeight)
	var canvas vg.CanvasWriterTo = vgimg.PngCanvas{Canvas: vgimg.NewWith(size, vgimg.UseDPI(pictureDPI))}
	if format == ".svg" {
		canvas = vgsvg.New(vg.Length(columns)*fieldWidth, vg.Length(rows)*fieldHeight)
	}
	const gap, edge = 5 * vg.Millimeter, 2 * vg.Millimeter
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: gap, PadY: gap, PadTop: edge, PadLeft: edge, PadRight: gap, PadBottom: edge}
	for i, q := range plots {
		q.Draw(tiles.At(draw.New(canvas), i%columns, i/columns))
	}
	_, err := canvas.WriteTo(w)
	return err
}

// copied returns a function that writes a buffer.
func copied(b *bytes.Buffer) func(io.Writer) error {
	return func(w io.Writer) error { _, err := b.WriteTo(w); return err }
}
