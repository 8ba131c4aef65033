package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/simulate"
)

const compareHelp = `Compares two tables of results: A, the reference, and B, perhaps of another tool. A
variable agrees if its greatest difference is at most ATOL + RTOL × (range of A),
and its NRMSE at most --nrmse, if given. Exit code 0: everything compared agrees; 1:
something differs. More: macrostep help results

Examples:
   macrostep compare reference.csv results.csv
   macrostep compare reference.csv other-tool.csv --rtol 1e-2 --rtol 'wheel.*=1e-4'
   macrostep compare a.csv b.csv --match chassis.v_c='Body v' --select 'chassis.*'`

// defaultRelTol is the relative tolerance of variables without any tolerance.
const defaultRelTol = 1e-3

// shownDifferences is the largest number of lines of a comparison.
const shownDifferences = 40

var errDiffer = &runError{errors.New("")} // the differences are printed already

func (p *program) compareCommand() *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "compare two tables of results", ArgsUsage: "A B",
		UsageText: "macrostep compare A B [--rtol R] [--atol A] [--json]", Description: compareHelp,
		Flags: []cli.Flag{
			listFlag("rtol", "accept differences up to R times the norm: `[GLOB=]R`; the last that matches counts"),
			listFlag("atol", "accept differences up to A more: `[GLOB=]A`"),
			listFlag("nrmse", "accept an NRMSE up to E: `[GLOB=]E`"),
			&cli.StringFlag{Name: "norm", Usage: "what differences are relative to, `range or rms` of A", Value: string(results.Range)},
			boolFlag("by-time", "weight rows by the time between them"),
			matchFlag("compare variable A of the first table with B of the second: `A=B`"),
			selectFlag("compare"), timeColumnFlag(),
			stringFlag("time-tolerance", "times at most `T` seconds apart are equal (default: a millionth of the mean step)"),
			boolFlag("strict", "variables and times that only one table has are differences"),
			jsonFlag(),
		},
		Action: endsAtOnce(p.compare),
	}
}

func (p *program) compare(c *cli.Context) error {
	if err := arguments(c, 2, 2, "A B (two tables)"); err != nil {
		return err
	}
	o, err := readComparing(c)
	if err != nil {
		return err
	}
	var tables [2]*results.Table
	var errs []error
	for i := range tables {
		read := results.ReadOptions{TimeColumn: c.String("time-column")}
		if i == 0 && o.Select != nil { // Compare selects the names in B
			read.Select = func(name string) bool { return o.Select(name) || o.Match[name] != "" }
		}
		tables[i], err = readTable(c.Args().Get(i), read)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	a, b := tables[0], tables[1]
	found, err := results.Compare(a, b, o)
	if err != nil {
		return err
	}
	if len(found.Variables) > 0 {
		for _, text := range idle(c, &o, a, found) {
			fmt.Fprintf(p.stderr, "warning: %s: matches no variable that is compared\n", text)
		}
	}
	if o.Select != nil && len(found.Variables)+len(found.OnlyA)+len(found.Notes) == 0 {
		return cmp.Or(checkSelected([]string{a.Path}, newInput(c).globs(flagSelect)), fmt.Errorf("--select matches no variable of %s", a.Path))
	}
	if len(found.Variables) == 0 {
		if len(found.OnlyA) == 0 && len(found.Notes) > 0 {
			return fmt.Errorf("nothing of %s and %s can be compared: %s", a.Path, b.Path, strings.Join(found.Notes, "; "))
		}
		return fmt.Errorf("%s and %s have no variable in common; A has %s, B has %s; --match A=B pairs them",
			a.Path, b.Path, diag.Some(found.OnlyA), diag.Some(found.OnlyB))
	}
	agree := found.Agree()
	if c.Bool("strict") {
		agree = agree && len(found.OnlyA)+len(found.OnlyB)+found.OutsideA+found.OutsideB == 0
	}
	if c.Bool("json") {
		err = compareJSON(p.data(), a, b, found, agree)
	} else {
		printComparison(p.stdout, a, b, found, c.Bool("strict"))
	}
	if err == nil && !agree {
		err = errDiffer
	}
	return err
}

// readTable reads a table, with the units in the manifest beside it. If it lacks the time column of o, a column called
// time is accepted.
func readTable(path string, o results.ReadOptions) (*results.Table, error) {
	t, err := results.Read(path, o)
	if err != nil && o.TimeColumn != "" {
		o.TimeColumn = ""
		if other, failed := results.Read(path, o); failed == nil {
			t, err = other, nil
		}
	}
	if err != nil {
		return nil, err
	}
	addUnits(t, manifestAt(path))
	return t, nil
}

// addUnits adds units from a manifest.
func addUnits(t *results.Table, m *record.Manifest) {
	for i := range t.Columns {
		c := &t.Columns[i]
		c.Unit = cmp.Or(c.Unit, m.Units[c.Bare])
	}
}

// aloneIn returns the component of a table of a single FMU, from the manifest beside it: names of variables
// may omit the component. "" = there are several, or it is unknown.
func aloneIn(path string) string {
	if m := manifestAt(path); len(m.FMUs) == 1 {
		return m.FMUs[0].Component
	}
	return ""
}

// manifestAt returns the manifest beside a table; without one, it is empty.
func manifestAt(path string) *record.Manifest {
	var m record.Manifest
	data, err := readFile(record.ManifestPath(path))
	if err != nil || json.Unmarshal(data, &m) != nil {
		return &record.Manifest{}
	}
	return &m
}

// checkSelected returns an error if a pattern of --select matches no variable of some tables. Tables that cannot be read
// are left to their reader, and so are those from pipes, which can be read only once.
func checkSelected(paths []string, chosen record.Selection) error {
	names := map[string]bool{}
	for _, path := range paths {
		if chosen.IsDefault() || simulate.IsDevice(path) {
			return nil
		}
		columns, err := results.Header(path)
		if err != nil {
			return nil
		}
		for _, c := range columns {
			names[c.Bare], names[c.Name] = true, true
		}
	}
	if err := chosen.Of(aloneIn(paths[0])).Check(slices.Sorted(maps.Keys(names))); err != nil {
		return fmt.Errorf("--%s: %w", flagSelect, err)
	}
	return nil
}

// reading returns options that read only the chosen columns.
func reading(chosen record.Selection) (o results.ReadOptions) {
	if !chosen.IsDefault() {
		o.Select = chosen.Match
	}
	return o
}

// readComparing reads the flags.
func readComparing(c *cli.Context) (results.CompareOptions, error) {
	in := newInput(c)
	alone := aloneIn(c.Args().First())
	tolerances := func(flag string) []results.Tolerance {
		return each(in, flag, func(text string) (t results.Tolerance, err error) {
			value := text
			if at := strings.LastIndexByte(text, '='); at >= 0 {
				glob, err := record.ParseSelection([]string{text[:at]})
				if err != nil {
					return t, fmt.Errorf("%s: %w", text, err)
				}
				t.Match, value = glob.Of(alone).Match, text[at+1:]
			}
			if t.Value, err = notNegative(value); err != nil && value != text {
				err = fmt.Errorf("%s: %w", text, err)
			}
			return t, err
		})
	}
	norms := make([]string, len(results.Norms))
	for i, n := range results.Norms {
		norms[i] = string(n)
	}
	o := results.CompareOptions{
		RelTol: tolerances("rtol"), AbsTol: tolerances("atol"), MeanTol: tolerances("nrmse"), Usual: defaultRelTol,
		Norm: results.Norms[in.oneOf("norm", norms)], ByTime: c.Bool("by-time"), Match: in.matches(),
		Select: reading(in.globs(flagSelect).Of(alone)).Select, TimeTol: in.float("time-tolerance", positiveTime),
	}
	return o, in.err()
}

// flagMatch pairs variables of tables.
const flagMatch = "match"

func matchFlag(usage string) cli.Flag {
	return listFlag(flagMatch, usage)
}

// matches returns the pairs of variables: names in the first table to names in others.
func (in *input) matches() map[string]string {
	list, errs := assignments(in.StringSlice(flagMatch), "A=B, the name of a variable in each of the tables")
	out := map[string]string{}
	for _, m := range list {
		if out[m.Name] = strings.TrimSpace(m.Value); out[m.Name] == "" {
			errs = append(errs, fmt.Errorf("%s has no name in B", m.Name))
		}
	}
	for _, err := range errs {
		in.fail(flagMatch, err)
	}
	return out
}

// together is how the variables of several tables belong together: by the names of the first.
type together struct {
	// By table: its own names to others in the first, and the pairs of --match, from the first to its own.
	names, pairs []map[string]string
	notes        []string
}

// matched finds what belongs together in some tables. A pair of match must be in one of the others.
func matched(tables []*results.Table, match map[string]string) (t together, err error) {
	t.names, t.pairs = make([]map[string]string, len(tables)), make([]map[string]string, len(tables))
	has := func(t *results.Table, name string) bool {
		return slices.ContainsFunc(t.Columns, func(c results.Column) bool { return c.Name == name || c.Bare == name })
	}
	for i, b := range tables[min(1, len(tables)):] {
		pairs := map[string]string{}
		for name, other := range match {
			if has(b, other) || !slices.ContainsFunc(tables[1:], func(t *results.Table) bool { return has(t, other) }) {
				pairs[name] = other
			}
		}
		names, notes, err := results.Counterparts(tables[0], b, pairs)
		if err != nil {
			return t, err
		}
		t.names[i+1], t.pairs[i+1] = names, pairs
		for _, note := range notes {
			t.notes = append(t.notes, fmt.Sprintf("%s (A) and %s (B): %s", tables[0].Path, b.Path, note))
		}
	}
	return t, nil
}

// of returns the name of a variable of table i.
func (t *together) of(i int, own string) string { return cmp.Or(t.names[i][own], own) }

// choose leaves the chosen variables, and those that belong to them; keep names more.
func (t *together) choose(tables []*results.Table, chosen record.Selection, keep func(name, component string) bool) {
	if chosen.IsDefault() {
		return
	}
	is := map[string]bool{}
	for i, table := range tables {
		component := aloneIn(table.Path)
		own := chosen.Of(component)
		for _, c := range table.Columns {
			name := t.of(i, c.Bare)
			is[name] = is[name] || own.Match(c.Bare) || own.Match(c.Name) || own.Match(name) || keep(c.Bare, component) || keep(name, component)
		}
	}
	for i, table := range tables {
		table.Columns = slices.DeleteFunc(table.Columns, func(c results.Column) bool { return !is[t.of(i, c.Bare)] })
	}
}

// idle returns the tolerances that match no variable compared, as flags.
func idle(c *cli.Context, o *results.CompareOptions, a *results.Table, found *results.Comparison) (out []string) {
	compared := map[string]bool{}
	for _, d := range found.Variables {
		compared[d.Name] = true
	}
	for _, flag := range []struct {
		name string
		list []results.Tolerance
	}{{"rtol", o.RelTol}, {"atol", o.AbsTol}, {"nrmse", o.MeanTol}} {
		for i, t := range flag.list {
			matches := func(v results.Column) bool { return compared[v.Bare] && (t.Match(v.Name) || t.Match(v.Bare)) }
			if t.Match != nil && !slices.ContainsFunc(a.Columns, matches) {
				out = append(out, "--"+flag.name+" "+c.StringSlice(flag.name)[i])
			}
		}
	}
	return out
}

// side is a table of a comparison.
type side struct {
	name                  string
	t                     *results.Table
	interpolated, outside int
	only                  []string
}

func sides(a, b *results.Table, c *results.Comparison) []side {
	return []side{{"A", a, c.InterpolatedA, c.OutsideA, c.OnlyA}, {"B", b, c.InterpolatedB, c.OutsideB, c.OnlyB}}
}

// printComparison prints a comparison for people.
func printComparison(out io.Writer, a, b *results.Table, c *results.Comparison, strict bool) {
	both := sides(a, b, c)
	for _, s := range both {
		times := s.t.Times
		fmt.Fprintf(out, "%s  %s: %s, %s from %s to %s s", s.name, s.t.Path, plural(len(s.t.Columns), "variable"), plural(len(times), "row"),
			number(times[0]), number(times[len(times)-1]))
		if len(s.t.Notes) > 0 {
			fmt.Fprintf(out, " (%s)", strings.Join(s.t.Notes, "; "))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "compared at %s from %s to %s s", plural(c.Points, "point"), number(c.From), number(c.To))
	for _, s := range both {
		if s.interpolated > 0 {
			fmt.Fprintf(out, "; %s is interpolated at %d of them", s.name, s.interpolated)
		}
	}
	fmt.Fprintln(out)
	different := ""
	if strict {
		different = ": different"
	}
	for _, s := range both {
		if s.outside > 0 {
			fmt.Fprintf(out, "%s of %s outside of this time, not compared%s\n", plural(s.outside, "row"), s.name, different)
		}
	}
	weighting := "each point weighted equally"
	if c.ByTime {
		weighting = "points weighted by time"
	}
	fmt.Fprintf(out, "norm: %s of A; NRMSE with %s\n\n", c.Norm, weighting)

	printDifferences(out, c.Variables)
	for _, note := range c.Notes {
		fmt.Fprintf(out, "note: %s\n", note)
	}
	for _, s := range both {
		if len(s.only) > 0 {
			fmt.Fprintf(out, "only in %s: %s%s\n", s.name, diag.Some(s.only), different)
		}
	}
	differ := 0
	for _, d := range c.Variables {
		if !d.Agrees {
			differ++
		}
	}
	if differ == 0 {
		fmt.Fprintf(out, "%s compared, all agree\n", plural(len(c.Variables), "variable"))
		return
	}
	fmt.Fprintf(out, "%d of %s compared differ; macrostep plot %s %s --diff shows by how much\n", differ, plural(len(c.Variables), "variable"),
		quote(a.Path), quote(b.Path))
}

// printDifferences prints a table of the variables compared, of many only those that differ most.
func printDifferences(out io.Writer, all []results.Difference) {
	shown := slices.Clone(all)
	if len(shown) > shownDifferences {
		slices.SortStableFunc(shown, func(x, y results.Difference) int { // the worst first
			if x.Agrees != y.Agrees {
				return map[bool]int{false: -1, true: 1}[x.Agrees]
			}
			return -compareNumbers(x.NRMSE, y.NRMSE)
		})
		shown = shown[:shownDifferences]
	}
	rounded := 0
	rows := [][]string{{"variable", "NRMSE", "max", "at s", "A", "B", "limit", ""}}
	for _, d := range shown {
		rows = append(rows, differenceRow(&d))
		if isRounding(&d) {
			rounded = max(rounded, d.Digits)
		}
	}
	table(out, rows)
	if n := len(all) - len(shown); n > 0 {
		fmt.Fprintf(out, "… and %d with smaller differences (--json has all)\n", n)
	}
	if rounded > 0 {
		fmt.Fprintf(out, "some differences are no more than the rounding of B, which holds %d digits\n", rounded)
	}
	fmt.Fprintln(out)
}

// differenceRow is a row of printDifferences.
func differenceRow(d *results.Difference) []string {
	verdict := ""
	switch {
	case d.Unequal > 0:
		verdict = fmt.Sprintf("differs: %s where only one is a number", plural(d.Unequal, "point"))
	case !d.Agrees:
		verdict = "differs"
	}
	if d.Constant {
		verdict = strings.TrimSpace(verdict + " (A is constant)")
	}
	name := d.Name
	if d.InB != d.Name {
		name += " = " + d.InB
	}
	row := []string{name, number(d.NRMSE), number(d.Max), number(d.At), number(d.A), number(d.B), number(d.Limit), verdict}
	if math.IsNaN(d.Max) {
		copy(row[1:6], []string{"-", "-", "-", "-", "-"})
	} else if math.IsNaN(d.NRMSE) {
		row[1] = "-"
	}
	return row
}

// isRounding reports whether a difference is no more than the rounding of B to its digits.
func isRounding(d *results.Difference) bool {
	if d.Agrees || d.Unequal > 0 || d.Max <= 0 || d.Digits <= 0 || d.Digits >= 16 {
		return false
	}
	return d.Max <= 0.5001*math.Pow(10, math.Ceil(math.Log10(math.Abs(d.B)))-float64(d.Digits))
}

// compareNumbers orders numbers; NaN is greater than all.
func compareNumbers(x, y float64) int {
	if nx, ny := math.IsNaN(x), math.IsNaN(y); nx != ny {
		return map[bool]int{false: -1, true: 1}[nx]
	}
	return cmp.Compare(x, y)
}

// compareJSON prints a comparison for programs.
func compareJSON(out io.Writer, a, b *results.Table, c *results.Comparison, agree bool) error {
	type table struct {
		Path  string   `json:"path"`
		Rows  int      `json:"rows"`
		From  float64  `json:"from"` // s
		To    float64  `json:"to"`
		Notes []string `json:"notes"`
		Only  []string `json:"only"` // variables that the other lacks
		// Rows outside of the time that both cover, and points where it has no row.
		Outside      int `json:"outside"`
		Interpolated int `json:"interpolated"`
	}
	type variable struct {
		Name      string  `json:"name"`
		InB       string  `json:"in_b"`
		NRMSE     float64 `json:"nrmse"`
		RMSE      float64 `json:"rmse"`
		Max       float64 `json:"max"`
		At        float64 `json:"at"` // s
		A         float64 `json:"a"`
		B         float64 `json:"b"`
		Scale     float64 `json:"scale"` // of the norm
		Limit     float64 `json:"limit"`
		MeanLimit float64 `json:"nrmse_limit"`
		Constant  bool    `json:"constant"`
		Unequal   int     `json:"unequal"` // points where only one is a number
		Agrees    bool    `json:"agrees"`
	}
	doc := struct {
		Agree     bool         `json:"agree"`
		A         table        `json:"a"`
		B         table        `json:"b"`
		From      float64      `json:"from"` // s; what both cover
		To        float64      `json:"to"`
		Points    int          `json:"points"`
		Norm      results.Norm `json:"norm"`
		ByTime    bool         `json:"by_time"`
		Variables []variable   `json:"variables"`
		Notes     []string     `json:"notes"`
	}{Agree: agree, From: c.From, To: c.To, Points: c.Points, Norm: c.Norm, ByTime: c.ByTime, Notes: c.Notes}
	for i, s := range sides(a, b, c) {
		times := s.t.Times
		*[]*table{&doc.A, &doc.B}[i] = table{s.t.Path, len(times), times[0], times[len(times)-1], s.t.Notes,
			s.only, s.outside, s.interpolated}
	}
	for _, d := range c.Variables {
		if math.IsNaN(d.Max) || math.IsInf(d.Max, 0) { // there is no such point
			d.At, d.A, d.B = d.Max, d.Max, d.Max
		}
		doc.Variables = append(doc.Variables, variable{d.Name, d.InB, d.NRMSE, d.RMSE, d.Max, d.At, d.A, d.B,
			d.Scale, d.Limit, d.MeanLimit, d.Constant, d.Unequal, d.Agrees})
	}
	return writeJSON(out, doc)
}
