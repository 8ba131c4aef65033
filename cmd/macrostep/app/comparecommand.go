package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
)

const compareHelp = `Compares two tables of results, A and what is to be judged, B. B may come from
another tool: the column of times may be called time or t in any case and be in s,
ms, us, min or h; fields may be separated by commas, semicolons or tabs, with
decimal points or commas; units may stand behind names or in a second row. What
was taken for what is said.

Compared are all rows of both tables in the time that both cover; where one of
them has no row, its values are linear between its rows, and the number of such
points is said. Two rows at one time are a jump: the first is compared before it,
the last behind it.

Per variable: max is the greatest |B − A|; NRMSE is the root of the mean square of
B − A over all points (with --by-time weighed by time, trapezoidal), over the
norm: --norm range, the greatest value of A less the least, or rms, the root of
the mean square of A. Where A is constant, its magnitude takes the place of the
norm.

Variables are the same if their names are, with or without units, or if one is the
end of the other (model.root.car.v is car.v) and no second one is; --map says what
else is. Where both tables tell a unit, B is converted to that of A if it is known
how; where not, that is said.

A variable agrees if max ≤ ATOL + RTOL × norm, and NRMSE ≤ --nrmse if that is
given. RTOL is 1e-3 for variables that no tolerance is given for.
Exit code 0: all that is compared agrees, 1: not. Variables and times that only one
has are told; with --strict they count as different.

Examples:
   macrostep compare reference.csv results.csv
   macrostep compare reference.csv other-tool.csv --rtol 1e-2 --rtol 'wheel.*=1e-4'
   macrostep compare a.csv b.csv --norm rms --nrmse 1e-3 --rtol 0.1
   macrostep compare a.csv b.csv --map chassis.v_c='Car.Body v' --select 'chassis.*'
   macrostep compare a.csv b.csv --json`

// defaultRelTol holds where no tolerance is given.
const defaultRelTol = 1e-3

// shownDifferences bounds the lines of a comparison.
const shownDifferences = 40

var errDiffer = &runError{errors.New("")} // what differs is printed

func (p *program) compareCommand() *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "compare two tables of results", ArgsUsage: "A B",
		UsageText: "macrostep compare A B [--rtol R] [--atol A] [--json]", Description: compareHelp,
		Flags: []cli.Flag{
			repeatable{&cli.StringSliceFlag{Name: "rtol", Usage: "largest difference relative to the norm, `[GLOB=]R`; of several that match the last holds; repeatable", KeepSpace: true}},
			repeatable{&cli.StringSliceFlag{Name: "atol", Usage: "a further difference that is none, `[GLOB=]A`; repeatable", KeepSpace: true}},
			repeatable{&cli.StringSliceFlag{Name: "nrmse", Usage: "largest NRMSE, `[GLOB=]E`; repeatable", KeepSpace: true}},
			&cli.StringFlag{Name: "norm", Usage: "what differences are related to, `range or rms` of A", Value: string(results.Range)},
			&cli.BoolFlag{Name: "by-time", Usage: "weigh rows by the time between them"},
			repeatable{&cli.StringSliceFlag{Name: "map", Usage: "variable of A and what it is called in B, `A=B`; repeatable", KeepSpace: true}},
			repeatable{&cli.StringSliceFlag{Name: "select", Usage: "compare only the variables of A that `GLOB` matches (* and ? only); repeatable", KeepSpace: true}},
			&cli.StringFlag{Name: "time-column", Usage: "`NAME` of the column of times, if it is called otherwise"},
			&cli.StringFlag{Name: "time-tolerance", Usage: "times that lie at most `T` seconds apart are one (default: a millionth of the mean step)"},
			&cli.BoolFlag{Name: "strict", Usage: "variables and times that only one table has count as different"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
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
		return &usageError{"compare", err}
	}
	var tables [2]*results.Table
	var errs []error
	for i := range tables {
		read := results.ReadOptions{TimeColumn: c.String("time-column")}
		if i == 0 && o.Select != nil { // what variables are called in B, only both together tell
			read.Select = func(name string) bool { return o.Select(name) || o.Map[name] != "" }
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
			fmt.Fprintf(p.stderr, "warning: %s: no variable that is compared is called so\n", text)
		}
	}
	if o.Select != nil && len(found.Variables)+len(found.OnlyA)+len(found.Notes) == 0 {
		return fmt.Errorf("--select matches no variable of %s", a.Path)
	}
	if len(found.Variables) == 0 {
		if len(found.OnlyA) == 0 && len(found.Notes) > 0 {
			return fmt.Errorf("nothing of %s and %s can be compared: %s", a.Path, b.Path, strings.Join(found.Notes, "; "))
		}
		return fmt.Errorf("%s and %s have no variable in common; A has %s, B has %s; --map A=B says which are the same",
			a.Path, b.Path, diag.Some(found.OnlyA), diag.Some(found.OnlyB))
	}
	agree := found.Agree()
	if c.Bool("strict") {
		agree = agree && len(found.OnlyA)+len(found.OnlyB)+found.OutsideA+found.OutsideB == 0
	}
	if c.Bool("json") {
		err = compareJSON(p.data(), a, b, found, agree)
	} else {
		err = printComparison(p.stdout, a, b, found, c.Bool("strict"))
	}
	if err == nil && !agree {
		err = errDiffer
	}
	return err
}

// readTable reads a table; a named column of times has to be in one that has none
// called time only.
func readTable(path string, o results.ReadOptions) (*results.Table, error) {
	t, err := results.Read(path, o)
	if err != nil && o.TimeColumn != "" {
		o.TimeColumn = ""
		if other, failed := results.Read(path, o); failed == nil {
			return other, nil
		}
	}
	return t, err
}

// aloneIn returns the component of a table of one FMU, by the manifest beside it: names of
// its variables need not that of the component. "" = there are several, or nothing says.
func aloneIn(path string) string {
	var m record.Manifest
	data, err := os.ReadFile(manifestBeside(path))
	if err != nil || json.Unmarshal(data, &m) != nil || len(m.FMUs) != 1 {
		return ""
	}
	return m.FMUs[0].Component
}

// manifestBeside names the manifest of a table of results.
func manifestBeside(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".json"
}

// reading keeps only what is chosen.
func reading(chosen record.Selection) (o results.ReadOptions) {
	if !chosen.IsDefault() {
		o.Select = chosen.Match
	}
	return o
}

// readComparing reads the flags and gives all errors at once.
func readComparing(c *cli.Context) (o results.CompareOptions, err error) {
	var errs []error
	tolerances := func(flag string) []results.Tolerance {
		var list []results.Tolerance
		for _, text := range c.StringSlice(flag) {
			var t results.Tolerance
			value := text
			if at := strings.LastIndexByte(text, '='); at >= 0 {
				glob, err := record.ParseSelection([]string{text[:at]})
				if err != nil {
					errs = append(errs, fmt.Errorf("--%s %s: %w", flag, text, err))
				}
				t.Match, value = glob.Of(aloneIn(c.Args().First())).Match, text[at+1:]
			}
			if t.Value, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || !(t.Value >= 0) || math.IsInf(t.Value, 0) {
				errs = append(errs, fmt.Errorf("--%s: %q is not a number of at least 0, nor GLOB=NUMBER", flag, text))
			}
			list = append(list, t)
		}
		return list
	}
	o = results.CompareOptions{RelTol: tolerances("rtol"), AbsTol: tolerances("atol"), MeanTol: tolerances("nrmse"),
		Usual: defaultRelTol, Norm: results.Norm(c.String("norm")), ByTime: c.Bool("by-time"), Map: map[string]string{}}
	if !slices.Contains(results.Norms, o.Norm) {
		errs = append(errs, fmt.Errorf("--norm: %q is neither %s nor %s", o.Norm, results.Range, results.RMS))
	}
	for _, text := range c.StringSlice("map") {
		a, b, ok := strings.Cut(text, "=")
		if a, b = strings.TrimSpace(a), strings.TrimSpace(b); !ok || a == "" || b == "" {
			errs = append(errs, fmt.Errorf("--map: %q is not A=B, the name of a variable in each of the tables", text))
		} else if _, twice := o.Map[a]; twice {
			errs = append(errs, fmt.Errorf("--map: %s is given twice", a))
		} else {
			o.Map[a] = b
		}
	}
	if c.IsSet("select") {
		s, err := record.ParseSelection(c.StringSlice("select"))
		if err != nil {
			errs = append(errs, fmt.Errorf("--select: %w", err))
		}
		o.Select = s.Of(aloneIn(c.Args().First())).Match
	}
	if c.IsSet("time-tolerance") {
		v, err := strconv.ParseFloat(strings.TrimSpace(c.String("time-tolerance")), 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			errs = append(errs, fmt.Errorf("--time-tolerance: %q is not a number above 0", c.String("time-tolerance")))
		}
		o.TimeTol = v
	}
	return o, errors.Join(errs...)
}

// idle returns the tolerances that are for none of the variables compared, as they were written.
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
			if t.Match != nil && !slices.ContainsFunc(a.Columns, func(v results.Column) bool { return compared[v.Bare] && (t.Match(v.Name) || t.Match(v.Bare)) }) {
				out = append(out, "--"+flag.name+" "+c.StringSlice(flag.name)[i])
			}
		}
	}
	return out
}

// printComparison prints a comparison for people.
func printComparison(out io.Writer, a, b *results.Table, c *results.Comparison, strict bool) error {
	for i, t := range []*results.Table{a, b} {
		fmt.Fprintf(out, "%c  %s: %s, %s from %s to %s s", 'A'+i, t.Path, plural(len(t.Columns), "variable"), plural(len(t.Times), "row"), number(t.Times[0]), number(t.Times[len(t.Times)-1]))
		if len(t.Notes) > 0 {
			fmt.Fprintf(out, " (%s)", strings.Join(t.Notes, "; "))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "compared at %s from %s to %s s", plural(c.Points, "point"), number(c.From), number(c.To))
	for _, s := range []struct {
		name string
		n    int
	}{{"A", c.InterpolatedA}, {"B", c.InterpolatedB}} {
		if s.n > 0 {
			fmt.Fprintf(out, "; %s is linear between its rows at %d of them", s.name, s.n)
		}
	}
	fmt.Fprintln(out)
	for _, s := range []struct {
		name string
		n    int
	}{{"A", c.OutsideA}, {"B", c.OutsideB}} {
		if s.n > 0 {
			fmt.Fprintf(out, "%s of %s outside of this time, not compared%s\n", plural(s.n, "row"), s.name, map[bool]string{true: ": different"}[strict])
		}
	}
	weighed := "each point alike"
	if c.ByTime {
		weighed = "points weighed by time"
	}
	fmt.Fprintf(out, "norm: %s of A; NRMSE with %s\n\n", c.Norm, weighed)

	shown := slices.Clone(c.Variables)
	if len(shown) > shownDifferences {
		slices.SortStableFunc(shown, func(x, y results.Difference) int { // the worst first
			if x.Agrees != y.Agrees {
				return map[bool]int{false: -1, true: 1}[x.Agrees]
			}
			return -compareNumbers(x.NRMSE, y.NRMSE)
		})
		shown = shown[:shownDifferences]
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "variable\tNRMSE\tmax\tat s\tA\tB\tlimit\t")
	rounded := 0
	for _, d := range shown {
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
		if !d.Agrees && d.Unequal == 0 && d.Max > 0 && d.Digits > 0 && d.Digits < 16 && d.Max <= 0.5001*math.Pow(10, math.Ceil(math.Log10(math.Abs(d.B)))-float64(d.Digits)) {
			rounded = max(rounded, d.Digits)
		}
		name := d.Name
		if d.InB != d.Name {
			name += " = " + d.InB
		}
		mean, most, at, va, vb := number(d.NRMSE), number(d.Max), number(d.At), number(d.A), number(d.B)
		if math.IsNaN(d.Max) {
			mean, most, at, va, vb = "-", "-", "-", "-", "-"
		} else if math.IsNaN(d.NRMSE) {
			mean = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, mean, most, at, va, vb, number(d.Limit), verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := len(c.Variables) - len(shown); n > 0 {
		fmt.Fprintf(out, "… and %d with smaller differences (--json has all)\n", n)
	}
	if rounded > 0 {
		fmt.Fprintf(out, "some differences are no more than the rounding of B, which holds %d digits\n", rounded)
	}
	fmt.Fprintln(out)
	for _, note := range c.Notes {
		fmt.Fprintf(out, "note: %s\n", note)
	}
	for _, only := range []struct {
		name  string
		names []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		if len(only.names) > 0 {
			fmt.Fprintf(out, "only in %s: %s%s\n", only.name, diag.Some(only.names), map[bool]string{true: ": different"}[strict])
		}
	}
	differ := 0
	for _, d := range c.Variables {
		if !d.Agrees {
			differ++
		}
	}
	if differ == 0 {
		_, err := fmt.Fprintf(out, "%s compared, all agree\n", plural(len(c.Variables), "variable"))
		return err
	}
	_, err := fmt.Fprintf(out, "%d of %s compared differ; macrostep plot %s %s --diff draws by how much\n", differ, plural(len(c.Variables), "variable"), quote(a.Path), quote(b.Path))
	return err
}

// compareNumbers orders numbers; NaN is greater than all.
func compareNumbers(x, y float64) int {
	switch {
	case x != x && y != y || x == y:
		return 0
	case x != x || x > y:
		return 1
	}
	return -1
}

// compareJSON prints a comparison for programs. A number that JSON cannot hold is null.
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
		Name      string   `json:"name"`
		InB       string   `json:"in_b"`
		NRMSE     *float64 `json:"nrmse"`
		RMSE      *float64 `json:"rmse"`
		Max       *float64 `json:"max"`
		At        *float64 `json:"at"` // s
		A         *float64 `json:"a"`
		B         *float64 `json:"b"`
		Scale     *float64 `json:"scale"` // of the norm
		Limit     *float64 `json:"limit"`
		MeanLimit *float64 `json:"nrmse_limit"`
		Constant  bool     `json:"constant"`
		Unequal   int      `json:"unequal"` // points where only one is a number
		Agrees    bool     `json:"agrees"`
	}
	num := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	of := func(t *results.Table, only []string, outside, interpolated int) table {
		return table{t.Path, len(t.Times), t.Times[0], t.Times[len(t.Times)-1], append([]string{}, t.Notes...), append([]string{}, only...), outside, interpolated}
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
	}{agree, of(a, c.OnlyA, c.OutsideA, c.InterpolatedA), of(b, c.OnlyB, c.OutsideB, c.InterpolatedB), c.From, c.To, c.Points, c.Norm, c.ByTime, nil, append([]string{}, c.Notes...)}
	for _, d := range c.Variables {
		v := variable{Name: d.Name, InB: d.InB, NRMSE: num(d.NRMSE), RMSE: num(d.RMSE), Max: num(d.Max), Scale: num(d.Scale), Limit: num(d.Limit), MeanLimit: num(d.MeanLimit),
			Constant: d.Constant, Unequal: d.Unequal, Agrees: d.Agrees}
		if v.Max != nil {
			v.At, v.A, v.B = num(d.At), num(d.A), num(d.B)
		}
		doc.Variables = append(doc.Variables, v)
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}
