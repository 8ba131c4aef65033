package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/results/page"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
)

const reportHelp = `Makes a web page of the results of a run and of the manifest beside them: how it
ended, warnings, plots to zoom and combine, step sizes, power bonds, the system,
cost. Several RESULTs share one page, with their differences from the first. More:
macrostep help results

Examples:
   macrostep report results.csv
   macrostep report explicit.csv implicit.csv -o both.html
   macrostep report results.csv --trace steps.csv -o car.html --force`

// comparisonPage is the default name of a page of several results.
const comparisonPage = "comparison.html"

func (p *program) reportCommand() *cli.Command {
	return &cli.Command{
		Name: "report", Usage: "make a web page of the results of one run or several", ArgsUsage: "RESULT…",
		UsageText: "macrostep report RESULT… [-o FILE.html] [FLAGS]", Description: reportHelp,
		Flags: []cli.Flag{
			outputFlag("write `FILE` (default: RESULT.html, of several " + comparisonPage + "); -: standard output"), forceFlag(),
			stringFlag("manifest", "manifest `FILE.json` of one RESULT (default: beside RESULT)"),
			stringFlag("trace", "attempted steps of one RESULT, `FILE.csv` of run --trace (default: that in the manifest, if it exists)"),
			stringFlag("system", "draw `SYSTEM`, if it has moved since the run"),
			stringFlag("analysis", "for one RESULT: also show `FILE.json` of macrostep analyze --json"),
			selectFlag("show"), matchFlag("variable of the first RESULT and its name in others: `A=B`"), timeColumnFlag(),
		},
		Action: endsAtOnce(p.report),
	}
}

func (p *program) report(c *cli.Context) error {
	if err := arguments(c, 1, math.MaxInt, "RESULT (a table of results)"); err != nil {
		return err
	}
	paths, err := expanded(c.Args().Slice())
	if err != nil {
		return err
	}
	in := newInput(c)
	chosen, match := in.globs(flagSelect), in.matches()
	for _, path := range paths {
		if output := c.String(flagOutput); simulate.SamePath(output, path) {
			in.fail(flagOutput, fmt.Errorf("%s would overwrite the results; name another file", output))
		}
	}
	for _, flag := range []string{"manifest", "trace", "analysis"} {
		if len(paths) > 1 && c.String(flag) != "" {
			in.fail(flag, fmt.Errorf("it belongs to one RESULT, and %d are given", len(paths)))
		}
	}
	if err := in.err(); err != nil {
		return err
	}
	normal := strings.TrimSuffix(paths[0], filepath.Ext(paths[0])) + ".html"
	if len(paths) > 1 {
		normal = comparisonPage
	}
	output, err := p.target(c, normal)
	if err != nil {
		return err
	}
	if err := checkSelected(paths, chosen); err != nil {
		return err
	}
	made, err := p.reported(c, paths, chosen, match)
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if err := page.Write(&content, made); err != nil {
		return err
	}
	size := int64(content.Len())
	if err := p.writeOutput(output, c.Bool(flagForce), copied(&content), nil); err != nil {
		return err
	}
	if output != onStdout {
		printReport(p.stdout, output, made, size)
	}
	return nil
}

// reported returns the page of one result or several.
func (p *program) reported(c *cli.Context, paths []string, chosen record.Selection, match map[string]string) (*page.Page, error) {
	var tables []*results.Table
	var list []*reportParts
	for _, path := range paths {
		var read results.ReadOptions
		if len(paths) == 1 {
			read = reading(chosen.Of(aloneIn(path)))
		}
		read.TimeColumn = c.String("time-column")
		r, t, err := readReport(path, c.String("manifest"), read)
		if err != nil {
			return nil, err
		}
		if err := r.readTrace(c.String("trace")); err != nil {
			return nil, err
		}
		tables, list = append(tables, t), append(list, r)
	}
	r := list[0]
	r.findSystem(c.String("system"), p.dialects)
	if len(list) > 1 {
		t, err := matched(tables, match)
		if err != nil {
			return nil, err
		}
		t.choose(tables, chosen, func(string, string) bool { return false })
		return comparedPage(paths, tables, list, &t)
	}
	if name := c.String("analysis"); name != "" {
		var err error
		if r.analysis, err = readAnalysis(name); err != nil {
			return nil, err
		}
	}
	r.addCurves(tables[0], len(tables[0].Columns), nil)
	return pageOf(r, componentsOf(r.manifest)), nil
}

// writeReport writes the page and returns its size in bytes.
func writeReport(path string, force bool, p *page.Page) (size int64, err error) {
	var made bytes.Buffer
	if err := page.Write(&made, p); err != nil {
		return 0, fmt.Errorf("writing %s: %w", path, err)
	}
	size = int64(made.Len())
	return size, writeChecked(path, force, copied(&made), nil)
}

func printReport(w io.Writer, path string, p *page.Page, bytes int64) {
	fmt.Fprintf(w, "page      %s (%s, %s)\n", path, plural(p.Plots(), "plot"), size(float64(bytes)))
}

// fromTheStart extends the page of a resumed run to its start, if the table and the trace that it appended to
// (absolute paths) begin there.
func (r *reportParts) fromTheStart(q *runRequest, table, trace string) {
	from := r.manifest.ResumedFrom.Time
	if whole := r.again(q, table); whole != nil && len(whole.Times) > 0 && whole.Times[0] < from {
		r.stepsOfRows(whole)
	} else {
		note := "The run was resumed at t = %.12g s; earlier points are not in its results and not shown."
		r.notes = append(r.notes, fmt.Sprintf(note, from))
	}
	if trace != "" {
		if steps, accepted, err := readAttempts(trace); err == nil && accepted == r.manifest.Steps.Accepted {
			r.steps = steps
		}
	}
}

// again reads the curves from the table of the run; nil = the table is missing.
func (r *reportParts) again(q *runRequest, table string) *results.Table {
	if q.Record.IsNone() || simulate.IsDevice(table) {
		return nil
	}
	at := map[string]int{}
	for i := range r.curves {
		at[r.curves[i].name] = i
	}
	t, err := results.Read(table, results.ReadOptions{Select: func(name string) bool { _, ok := at[name]; return ok }})
	text := func(c results.Column) bool { return c.Text }
	if err != nil || len(t.Columns) != len(at) || slices.ContainsFunc(t.Columns, text) {
		return nil
	}
	for _, column := range t.Columns {
		c := &r.curves[at[column.Name]]
		c.thin = thinned(t.Times, column.Values, len(t.Columns))
	}
	return t
}

// thinned returns the points of one of n curves.
func thinned(times, values []float64, n int) *results.Thinner {
	thin := results.NewThinner(spansEach(n))
	for i, v := range values {
		thin.Add(times[i], v)
	}
	return thin
}

// reportRun writes the page of a run that has ended.
func (p *program) reportRun(a *attached, out *simulate.Outcome) error {
	r := a.r
	parts := a.seen.parts(titleOf(r.System), out.Manifest)
	if out.Manifest.ResumedFrom != nil {
		parts.fromTheStart(r, a.table, a.trace)
	}
	if parts.source == "" && !r.Record.IsNone() {
		parts.source = r.Output
	}
	parts.findSystem(r.System, p.dialects)
	made := pageOf(parts, componentsOf(parts.manifest))
	size, err := writeReport(a.report, true, made)
	if err != nil {
		return fmt.Errorf("--%s: %w", flagReport, err)
	}
	if !r.Quiet {
		printReport(p.stdout, r.Report, made, size)
	}
	return nil
}

// readReport reads a table and its manifest: the content of its page, without curves, and the table with the
// columns of numbers.
func readReport(path, manifest string, o results.ReadOptions) (*reportParts, *results.Table, error) {
	t, err := readTable(path, o)
	if err != nil {
		return nil, nil, err
	}
	r := &reportParts{title: titleOf(path), name: titleOf(path), source: fmt.Sprintf("%s, %s", path, plural(len(t.Times), "row"))}
	r.notes = append(r.notes, t.Notes...)
	if r.manifest, err = readManifest(path, manifest); err != nil {
		return nil, nil, err
	}
	all := len(t.Columns)
	t.Columns = slices.DeleteFunc(t.Columns, func(c results.Column) bool { return c.Text })
	if len(t.Columns) == 0 {
		return nil, nil, fmt.Errorf("%s: there is nothing to show: none of the chosen columns holds numbers", path)
	}
	if texts := all - len(t.Columns); texts > 0 {
		r.notes = append(r.notes, fmt.Sprintf("Columns of texts are not shown (%d).", texts))
	}
	if m := r.manifest; m != nil {
		r.title = titleOf(m.System)
		addUnits(t, m)
	}
	r.stepsOfRows(t)
	return r, t, nil
}

// addCurves adds the curves of a table, as fine as n curves may be; known are other names of some.
func (r *reportParts) addCurves(t *results.Table, n int, known map[string]string) {
	for _, column := range t.Columns {
		c := curve{name: cmp.Or(known[column.Bare], column.Bare), own: column.Bare, unit: column.Unit, thin: thinned(t.Times, column.Values, n)}
		if m := r.manifest; m == nil {
			c.held = held(column.Values)
		} else {
			c.held, c.equals = slices.Contains(m.Held, c.own), cmp.Or(known[m.Connected[c.own]], m.Connected[c.own])
		}
		r.curves = append(r.curves, c)
	}
}

// readFile is os.ReadFile for files that could make it wait for ever.
func readFile(path string) ([]byte, error) {
	if err := diag.Readable(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// readManifest reads the manifest of a table: the one named, else the one beside it; nil = there is none.
func readManifest(table, named string) (*record.Manifest, error) {
	path := cmp.Or(named, record.ManifestPath(table))
	data, err := readFile(path)
	switch {
	case named == "" && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("--manifest: %w", err)
	}
	m := &record.Manifest{}
	if err = json.Unmarshal(data, m); err == nil && m.Status == "" {
		err = errors.New("it has no status")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not the manifest of a run: %w; name it with --manifest, or move the file", path, err)
	}
	return m, nil
}

// stepsOfRows sets the step sizes from the times of a table, if it has a row for each communication point.
func (r *reportParts) stepsOfRows(t *results.Table) {
	if r.manifest == nil || len(t.Times) != r.manifest.Steps.Accepted+1 || r.manifest.Steps.Accepted == 0 {
		return
	}
	steps := newStepCurves()
	for i := 1; i < len(t.Times); i++ {
		H := t.Times[i] - t.Times[i-1]
		steps.any = steps.any || math.Abs(H-r.manifest.Steps.Mean) > 1e-6*H // equal steps need no plot
		steps.size.Add(t.Times[i-1], H)
	}
	r.steps = steps
}

// readTrace reads a table of attempts: the one named, else that of the run if it exists.
func (r *reportParts) readTrace(path string) error {
	named := path != ""
	if !named && r.manifest != nil {
		path = r.manifest.Trace
	}
	if path == "" {
		return nil
	}
	steps, accepted, err := readAttempts(path)
	switch {
	case err != nil && named:
		return fmt.Errorf("--trace: %w", err)
	case err != nil:
		r.notes = append(r.notes, fmt.Sprintf("The table of attempts %s is missing; name it with --trace.", path))
	case r.manifest != nil && accepted != r.manifest.Steps.Accepted && !named:
		r.notes = append(r.notes, fmt.Sprintf("The attempts in %s belong to another run and are left out.", path))
	default:
		r.steps = steps
	}
	return nil
}

// readAttempts reads a table of record.Attempts and returns the number of accepted attempts.
func readAttempts(path string) (s *stepCurves, accepted int, err error) {
	t, err := results.Read(path, results.ReadOptions{})
	if err != nil {
		return nil, 0, err
	}
	var columns [][]float64
	for _, name := range []string{"H", "k", "iterations", "estimate", "indicator", "accepted"} {
		i := slices.IndexFunc(t.Columns, func(c results.Column) bool { return c.Name == name && !c.Text })
		if i < 0 && name == "indicator" { // tables of older versions lack it
			columns = append(columns, slices.Repeat([]float64{math.NaN()}, len(t.Times)))
			continue
		}
		if i < 0 {
			return nil, 0, fmt.Errorf("%s is not a table of attempts: it has no column %s; run --trace writes one", path, name)
		}
		columns = append(columns, t.Columns[i].Values)
	}
	s = newStepCurves()
	for i, at := range t.Times {
		ok := columns[5][i] == 1
		s.add(at, columns[0][i], columns[1][i], columns[2][i], columns[3][i], columns[4][i], ok)
		if ok {
			accepted++
		}
	}
	return s, accepted, nil
}

func readAnalysis(path string) (*analyze.Report, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("--analysis: %w", err)
	}
	r := &analyze.Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("--analysis: %s: %w; name the output of macrostep analyze --json", path, err)
	}
	if len(r.Strategies) == 0 {
		return nil, fmt.Errorf("--analysis: %s holds no analysis; name the output of macrostep analyze --json", path)
	}
	return r, nil
}

// findSystem draws the system at a path, "" = the system in the manifest.
func (r *reportParts) findSystem(path string, dialects []ssp.Dialect) {
	if path == "" {
		if r.manifest == nil {
			return
		}
		path = r.manifest.System
		if _, err := os.Stat(path); err != nil {
			r.noGraph = fmt.Sprintf("%s is missing; name it with --system.", path)
			return
		}
	}
	var svg template.HTML
	if svg, r.noGraph = picture(path, dialects); svg != "" {
		r.graph = svg
	}
}
