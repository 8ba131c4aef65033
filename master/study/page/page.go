package page

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/master/results/axis"
	"github.com/macrostep/macrostep/master/results/page"
	"github.com/macrostep/macrostep/master/study"
)

// Page is a study as a page shows it.
type Page struct {
	Title  string
	Plan   *study.Plan
	Report *study.Report
	Rows   []study.Row
	Total  int // runs of the design; 0 = unknown
	State  State
	Made   string // program and time
}

// State is how far a study is.
type State string

// The states. The page of a running study loads itself again every [Every] seconds.
const (
	Complete    State = "complete"
	Running     State = "running"
	Interrupted State = "interrupted"
)

// Every is the number of seconds between two versions of the page of a running study.
const Every = 5

// The most of what is shown; the tables in the folder have everything.
const (
	mostReasons = 50
	mostCharts  = 60 // in a section
	mostPoints  = 10_000
	mostBars    = 60
)

//go:embed scatter.js
var scatterJS string

//go:embed scatter.css
var scatterCSS string

// Write writes the page as HTML.
func Write(w io.Writer, p *Page) error {
	v := &view{Page: p, factors: p.Plan.FactorNames()}
	for i := range p.Plan.Quantities {
		v.quantities = append(v.quantities, p.Plan.Quantities[i].Name)
	}
	for _, r := range p.Rows {
		if r.Status == study.OK {
			v.ok = append(v.ok, r)
		}
	}
	out := &page.Page{Title: p.Title, State: v.state(), Made: p.Made, Style: template.CSS(scatterCSS)}
	switch p.State {
	case Running:
		out.Tone, out.Refresh = page.Active, Every
	case Interrupted:
		out.Tone = page.Doubtful
	default:
		out.Tone = page.Good
		if len(v.ok) < len(p.Rows) {
			out.Tone = page.Doubtful
		}
	}
	out.Facts = v.facts()
	sections := []page.Section{v.failures(), v.fit(), v.varied(), v.errors()}
	if !v.fits() {
		scatter, err := v.scatter()
		if err != nil {
			return err
		}
		if scatter.Body != "" {
			out.Script = template.JS(scatterJS)
		}
		sections = []page.Section{v.failures(), v.optimum(), v.convergence(), v.varied(), v.statistics(), v.errors(), v.maps(), scatter,
			v.effects(), v.sobol(), v.morris()}
	}
	for _, s := range sections {
		if s.Body != "" || len(s.Text)+len(s.Tables)+len(s.Groups) > 0 {
			out.Sections = append(out.Sections, s)
		}
	}
	return page.Write(w, out)
}

// named returns the name of a factor or a quantity with its unit.
func (v *view) named(name string) string {
	if unit := v.Plan.Units[name]; unit != "" {
		return name + " [" + unit + "]"
	}
	return name
}

// mostLevels is the greatest number of values of a factor that are listed.
const mostLevels = 8

// varied lists the values of the factors.
func (v *view) varied() page.Section {
	s := page.Section{Title: "Factors"}
	if len(v.factors) == 0 || len(v.Rows) == 0 || v.Plan.Convergence != nil {
		return s
	}
	t := page.Table{Head: []string{"factor", "values", "in the system"}}
	for j, name := range v.factors {
		var levels []string
		for _, r := range v.Rows {
			if !slices.Contains(levels, r.Values[j]) {
				levels = append(levels, r.Values[j])
			}
			if len(levels) > mostLevels {
				break
			}
		}
		if c := v.column(v.Rows, j); c.labels == nil {
			for i, level := range levels {
				if x, err := strconv.ParseFloat(level, 64); err == nil {
					levels[i] = rounded(x, digits(c.ends()))
				}
			}
		}
		values := strings.Join(labelled(levels), ", ")
		if len(levels) > mostLevels {
			c := v.column(v.Rows, j)
			low, high := c.ends()
			values = text(low) + " to " + text(high)
			if k := slices.IndexFunc(v.Plan.Factors, func(f study.Factor) bool { return f.Name == name && f.Levels == nil }); k >= 0 {
				values += ", " + v.Plan.Factors[k].Text
			} else if c.labels != nil {
				values = fmt.Sprintf("%d texts", len(c.labels))
			}
		}
		t.Rows = append(t.Rows, []string{v.named(name), values, cmp.Or(v.Plan.Starts[name], "–")})
	}
	s.Tables = []page.Table{t}
	return s
}

// view is a page being made.
type view struct {
	*Page
	factors, quantities []string
	ok                  []study.Row
}

func (v *view) state() string {
	switch {
	case v.State == Complete && len(v.ok) < len(v.Rows):
		return fmt.Sprintf("%s, %d of %d runs not ok", v.State, len(v.Rows)-len(v.ok), len(v.Rows))
	case v.State == Complete:
		return string(v.State)
	case v.Total > 0:
		return fmt.Sprintf("%s: %d of %d", v.State, len(v.Rows), v.Total)
	}
	return fmt.Sprintf("%s: %d", v.State, len(v.Rows))
}

func (v *view) facts() []page.Fact {
	d := v.Plan.Design
	design := d.Kind
	switch {
	case v.Plan.Optimise != nil && v.Plan.Optimise.Fit != nil:
		design = "fit, " + v.Plan.Optimise.Method
	case v.Plan.Optimise != nil:
		design = "optimisation, " + v.Plan.Optimise.Method
	case v.Plan.Convergence != nil:
		design = "convergence of " + v.Plan.Convergence.Setting
	case d.Samples > 0:
		design += fmt.Sprintf(", %d samples, seed %d", d.Samples, d.Seed)
	}
	facts := []page.Fact{{Name: "system", Value: filepath.Base(v.Plan.System)}, {Name: "design", Value: design}, {Name: "runs", Value: strconv.Itoa(len(v.Rows))}}
	for _, s := range []study.Status{study.OK, study.Unstable, study.Failed, study.Crashed, study.TimedOut} {
		if n := v.Report.Statuses[s]; n > 0 {
			facts = append(facts, page.Fact{Name: string(s), Value: fmt.Sprintf("%d (%.3g %%)", n, 100*float64(n)/float64(len(v.Rows)))})
		}
	}
	seconds := 0.0
	for _, r := range v.Rows {
		seconds += r.Seconds
	}
	return append(facts, page.Fact{Name: "time of all runs", Value: rounded(seconds, 3) + " s"})
}

// failures lists why runs are not OK, and shows where in the ranges of the factors they are.
func (v *view) failures() page.Section {
	s := page.Section{Title: "Failures"}
	reasons := v.Report.Reasons
	if len(reasons) == 0 {
		return s
	}
	table := page.Table{Head: []string{"runs", "status", "first run", "reason"}}
	for _, r := range reasons[:min(len(reasons), mostReasons)] {
		table.Rows = append(table.Rows, []string{strconv.Itoa(r.Runs), string(r.Status), strconv.Itoa(r.First), r.Text})
	}
	s.Tables = []page.Table{table}
	if more := len(reasons) - mostReasons; more > 0 {
		s.Text = []string{fmt.Sprintf("%d more reasons are in %s.", more, study.ResultsFile)}
	}
	group := page.Group{Title: "Where they are: runs by factor, those that are not ok in orange", Small: true}
	for j, name := range v.factors[:min(len(v.factors), mostCharts)] {
		all, axis := v.column(v.Rows, j), page.Axis{}
		var ok []float64
		for i, r := range v.Rows {
			if r.Status == study.OK {
				ok = append(ok, all.values[i])
			}
		}
		edges := binEdges(all, len(v.Rows))
		axis.Labels = all.labels
		base, sum := count(edges, ok), count(edges, all.values)
		group.Charts = append(group.Charts, histogram(v.named(name), axis, edges, base, sum))
	}
	s.Groups = []page.Group{group}
	return s
}

func (v *view) statistics() page.Section {
	s := page.Section{Title: "Quantities"}
	if v.Plan.Convergence != nil {
		return s
	}
	table := page.Table{Head: []string{"quantity", "runs", "mean", "standard error", "standard deviation", "minimum", "5 %", "median", "95 %", "maximum"}}
	for _, q := range v.Report.Statistics {
		row := []string{v.named(q.Quantity), strconv.Itoa(q.Runs)}
		places := digits(float64(q.Minimum), float64(q.Maximum))
		for i, n := range []study.Number{q.Mean, q.StandardError, q.Deviation, q.Minimum, q.Q05, q.Median, q.Q95, q.Maximum} {
			if i == 1 || i == 2 {
				row = append(row, number(n))
			} else {
				row = append(row, rounded(float64(n), places))
			}
		}
		table.Rows = append(table.Rows, row)
	}
	s.Tables = []page.Table{table}
	var group page.Group
	for i, name := range v.quantities[:min(len(v.quantities), mostCharts)] {
		c := v.column(v.ok, len(v.factors)+i)
		edges := binEdges(c, len(v.ok))
		group.Charts = append(group.Charts, histogram(v.named(name), page.Axis{}, edges, count(edges, c.values), nil))
	}
	group.Small = len(group.Charts) > 4
	s.Groups = []page.Group{group}
	return s
}

// errors lists the measured coupling errors.
func (v *view) errors() page.Section {
	s := page.Section{Title: "Coupling errors"}
	if v.Report.Checks == nil {
		return s
	}
	t := page.Table{Head: []string{"run", "chosen as", "error", "of", "compared with"}}
	for _, c := range v.Report.Checks {
		row := []string{strconv.Itoa(c.Run), c.Why, "unknown: " + c.Error.Unknown, "", ""}
		if c.Error.Worst != nil {
			row = append(row[:2], c.Error.Size(), c.Error.Where, c.Error.Reference)
		}
		t.Rows = append(t.Rows, row)
	}
	s.Tables = []page.Table{t}
	return s
}

// mostCells is the greatest number of cells of a map.
const mostCells = 2500

// maps returns a map of each quantity over the two factors of a grid.
func (v *view) maps() page.Section {
	s := page.Section{Title: "Both factors"}
	if v.Plan.Optimise != nil || v.Plan.Convergence != nil || v.Plan.Design.Kind != study.DesignGrid || len(v.factors) != 2 {
		return s
	}
	x, shownX := v.levels(0)
	y, shownY := v.levels(1)
	if min(len(x), len(y)) < 2 || len(x)*len(y) > mostCells {
		return s
	}
	var group page.Group
	for q, name := range v.quantities[:min(len(v.quantities), mostCharts)] {
		c := v.column(v.ok, len(v.factors)+q)
		low, high := c.ends()
		if low > high {
			continue
		}
		places := max(digits(low, high)-2, 3)
		m := page.Map{Name: v.named(name), X: v.named(v.factors[0]), Y: v.named(v.factors[1]), Columns: shownX, Low: rounded(low, places), High: rounded(high, places)}
		for _, label := range shownY {
			row := page.MapRow{Label: label, Cells: make([]page.MapCell, len(x))}
			for i := range row.Cells {
				row.Cells[i].Part = math.NaN()
			}
			m.Rows = append(m.Rows, row)
		}
		for i, value := range c.values {
			if value != value {
				continue
			}
			part := 0.0
			if high > low {
				part = (value/2 - low/2) / (high/2 - low/2)
			}
			r := &v.ok[i]
			m.Rows[slices.Index(y, r.Values[1])].Cells[slices.Index(x, r.Values[0])] = page.MapCell{Text: rounded(value, places), Part: part}
		}
		alike(&m)
		group.Maps = append(group.Maps, m)
	}
	if group.Maps != nil {
		s.Groups = []page.Group{group}
	}
	return s
}

// alike gives the values of a map the same number of decimals, if none has an exponent.
func alike(m *page.Map) {
	most := 0
	for _, r := range m.Rows {
		for _, c := range r.Cells {
			if strings.Contains(c.Text, "e") {
				return
			}
			_, decimals, _ := strings.Cut(c.Text, ".")
			most = max(most, len(decimals))
		}
	}
	for _, r := range m.Rows {
		for i := range r.Cells {
			if whole, decimals, _ := strings.Cut(r.Cells[i].Text, "."); whole != "" && most > 0 {
				r.Cells[i].Text = whole + "." + decimals + strings.Repeat("0", most-len(decimals))
			}
		}
	}
}

// levels returns the values of a factor in the order of the design, and as they are shown; numbers ascend.
func (v *view) levels(factor int) (out, shown []string) {
	for _, r := range v.Rows {
		if value := r.Values[factor]; !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	c := v.column(v.Rows, factor)
	if c.labels != nil {
		return out, labelled(out)
	}
	number := func(text string) float64 {
		x, _ := strconv.ParseFloat(text, 64) // of a grid, which has no empty values
		return x
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	places := digits(c.ends())
	for _, text := range out {
		shown = append(shown, rounded(number(text), places))
	}
	return out, shown
}

// column is a factor or a quantity as numbers; of texts, their places in labels.
type column struct {
	values []float64 // NaN = none
	labels []string  // nil = numbers
}

// column returns a column of some rows: the factors first, then the quantities.
func (v *view) column(rows []study.Row, k int) column {
	c := column{values: make([]float64, len(rows))}
	if k -= len(v.factors); k >= 0 {
		for i, r := range rows {
			c.values[i] = finite(r.Collected[k])
		}
		return c
	}
	k += len(v.factors)
	numeric := true
	for i, r := range rows {
		x, err := strconv.ParseFloat(r.Values[k], 64)
		if c.values[i] = finite(x); err != nil {
			c.values[i] = math.NaN()
		}
		numeric = numeric && (err == nil || r.Values[k] == "")
	}
	if numeric {
		return c
	}
	place := map[string]int{}
	for i, r := range rows {
		at, there := place[r.Values[k]]
		if !there {
			at = len(c.labels)
			place[r.Values[k]] = at
			c.labels = append(c.labels, r.Values[k])
		}
		c.values[i] = float64(at)
	}
	c.labels = labelled(c.labels)
	return c
}

// ends returns the least and the greatest value; the least is greater if there is none.
func (c *column) ends() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range c.values {
		if x == x {
			low, high = min(low, x), max(high, x)
		}
	}
	return low, high
}

// binEdges returns the edges of the bins of a histogram.
func binEdges(c column, rows int) []float64 {
	low, high := c.ends()
	if low > high {
		return nil
	}
	n := min(max(int(math.Sqrt(float64(rows))), 5), 40)
	if c.labels != nil {
		low, high, n = -0.5, float64(len(c.labels))-0.5, len(c.labels)
	}
	if width := math.Max(math.Abs(low), math.Abs(high)) * 1e-9; high-low <= width { // equal but for rounding
		low, high, n = low-max(width, 0.5), high+max(width, 0.5), 1
	}
	var edges []float64
	if c.labels == nil && n > 1 { // round ones
		for _, t := range axis.Rounded(low, high, n, false, false).Ticks {
			edges = append(edges, t.Value)
		}
		return edges
	}
	for i := range n + 1 {
		edges = append(edges, low+(high-low)*float64(i)/float64(n))
	}
	return edges
}

func count(edges, values []float64) []float64 {
	if edges == nil {
		return nil
	}
	n := len(edges) - 1
	out := make([]float64, n)
	for _, x := range values {
		if x == x {
			out[min(max(int((x-edges[0])/(edges[n]-edges[0])*float64(n)), 0), n-1)]++
		}
	}
	return out
}

// histogram draws counts; of those in sum, the part above counts has the other colour.
func histogram(name string, x page.Axis, edges, counts, sum []float64) page.Chart {
	c := page.Chart{Name: name, X: x}
	if edges == nil {
		return c
	}
	c.Y.Integral = true
	c.Shapes = []page.Shape{{Kind: page.Bars, X: edges, Y: counts}}
	if sum != nil {
		c.Shapes = append(c.Shapes, page.Shape{Kind: page.Bars, Tone: page.Other, X: edges, Y: sum, Base: counts})
	}
	return c
}

// scatter returns the section with the data of the scatter matrix.
func (v *view) scatter() (page.Section, error) {
	s := page.Section{Title: "Scatter matrix"}
	if len(v.ok) == 0 || len(v.factors) == 0 || v.Plan.Convergence != nil {
		return s, nil
	}
	rows := v.ok
	if len(rows) > mostPoints {
		rows = make([]study.Row, mostPoints)
		for i := range rows {
			rows[i] = v.ok[i*len(v.ok)/mostPoints]
		}
		s.Text = []string{fmt.Sprintf("%d of %d runs are drawn.", mostPoints, len(v.ok))}
	}
	if left := len(v.Rows) - len(v.ok); left > 0 {
		s.Text = append(s.Text, fmt.Sprintf("Left out: %d of %d runs, which are not ok.", left, len(v.Rows)))
	}
	type dataColumn struct {
		Name   string   `json:"name"`
		Ends   []rough  `json:"ends"` // of its axis
		Labels []string `json:"labels,omitempty"`
		Values []rough  `json:"values"`
	}
	var data struct {
		Factors int          `json:"factors"`
		Runs    []int        `json:"runs"`
		Columns []dataColumn `json:"columns"`
	}
	data.Factors = len(v.factors)
	for _, r := range rows {
		data.Runs = append(data.Runs, r.ID)
	}
	for k, name := range slices.Concat(v.factors, v.quantities) {
		c := v.column(rows, k)
		d := dataColumn{Name: v.named(name), Labels: c.labels}
		low, high := c.ends()
		places := digits(low, high)
		d.Ends = []rough{{low, places}, {high, places}}
		switch {
		case low > high:
			d.Ends = []rough{{0, 1}, {0, 1}}
		case c.labels == nil:
			ends := axis.Rounded(low, high, 4, false, false)
			d.Ends = []rough{{ends.Low, places}, {ends.High, places}}
		}
		for _, x := range c.values {
			d.Values = append(d.Values, rough{x, places})
		}
		data.Columns = append(data.Columns, d)
	}
	var b bytes.Buffer
	b.WriteString(`<noscript><p>The scatter matrix needs JavaScript.</p></noscript><div id="scatter"></div><script type="application/json" id="rows">`)
	if err := json.NewEncoder(&b).Encode(data); err != nil { // it escapes <, > and &
		return s, err
	}
	b.WriteString("</script>")
	s.Body = template.HTML(b.String())
	return s, nil
}

// rough is a number with some digits in JSON, null if it is not finite.
type rough struct {
	value  float64
	digits int
}

// MarshalJSON writes the number.
func (r rough) MarshalJSON() ([]byte, error) {
	if v := r.value; v-v != 0 {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, r.value, 'g', r.digits, 64), nil
}

// effects shows the means by level of each factor and the correlations.
func (v *view) effects() page.Section {
	s := page.Section{Title: "Effects of the factors"}
	if len(v.Report.Effects) == 0 || len(v.factors) == 0 || len(v.ok) == 0 {
		return s
	}
	for _, kind := range []struct {
		title string
		of    func(e *study.Effect) study.Number
	}{
		{"Linear correlation (Pearson)", func(e *study.Effect) study.Number { return e.Correlation }},
		{"Rank correlation (Spearman)", func(e *study.Effect) study.Number { return e.Rank }},
		{"Correlation ratio, of factors that are no numbers", func(e *study.Effect) study.Number { return e.Ratio }},
	} {
		if !slices.ContainsFunc(v.Report.Effects, func(e study.Effect) bool { return kind.of(&e) == kind.of(&e) }) {
			continue
		}
		t := page.Table{Title: kind.title, Head: append([]string{"factor"}, v.quantities...)}
		for _, f := range v.factors {
			t.Rows = append(t.Rows, []string{f})
		}
		for i := range v.Report.Effects { // quantity by quantity
			e, cell := &v.Report.Effects[i], "–"
			if c := kind.of(e); c == c {
				cell = fmt.Sprintf("%.2f", math.Round(100*float64(c))/100+0) // no -0.00
			}
			row := &t.Rows[i%len(v.factors)]
			*row = append(*row, cell)
		}
		s.Tables = append(s.Tables, t)
	}
	effects := v.Report.Effects[:min(len(v.Report.Effects), mostCharts/len(v.factors)*len(v.factors))]
	if len(effects) < len(v.Report.Effects) {
		s.Text = []string{fmt.Sprintf("Means are drawn for the first %d quantities; all are in %s.", len(effects)/len(v.factors), study.ReportFile)}
	}
	for first := 0; first < len(effects); first += len(v.factors) {
		group := page.Group{Title: "Mean of " + v.named(effects[first].Quantity), Small: true}
		var y []float64 // of all charts, which share the axis
		for _, e := range effects[first : first+len(v.factors)] {
			evenLog := func(f study.Factor) bool { return f.Name == e.Factor && f.Log }
			c := page.Chart{X: page.Axis{Name: v.named(e.Factor), Log: slices.ContainsFunc(v.Plan.Factors, evenLog)}}
			line := page.Shape{Kind: page.Line}
			for i, at := range e.At {
				x, err := strconv.ParseFloat(at, 64)
				if err != nil {
					c.X.Labels = e.At
				}
				line.X, line.Y = append(line.X, x), append(line.Y, float64(e.Mean[i]))
			}
			if c.X.Labels != nil {
				c.X.Labels = labelled(e.At)
				for i := range line.X {
					line.X[i] = float64(i)
				}
			} else {
				c.Shapes = append(c.Shapes, line)
			}
			c.X.Integral = axis.Integral(line.X)
			y = append(y, line.Y...)
			line.Kind = page.Points
			c.Shapes = append(c.Shapes, line)
			group.Charts = append(group.Charts, c)
		}
		if len(y) > 0 {
			for i := range group.Charts {
				group.Charts[i].Y = page.Axis{Low: slices.Min(y), High: slices.Max(y)}
			}
		}
		s.Groups = append(s.Groups, group)
	}
	return s
}

func (v *view) sobol() page.Section {
	s := page.Section{Title: "Sobol indices", Shares: "Total effect, as a share of the variance"}
	t := page.Table{Head: []string{"factor", "quantity", "first order", "total"}}
	for i, e := range v.Report.Sobol {
		first, total := uncertain(e.First, e.FirstError), uncertain(e.Total, e.TotalError)
		t.Rows = append(t.Rows, []string{e.Factor, e.Quantity, first, total})
		if i < mostBars && e.Total == e.Total {
			s.Bars = append(s.Bars, page.Bar{Name: e.Factor + " on " + e.Quantity, Value: total, Share: float64(e.Total)})
		}
	}
	if t.Rows != nil {
		s.Text, s.Tables = v.dropped("of the samples,"), []page.Table{t}
	}
	return s
}

// uncertain writes an index and its standard error.
func uncertain(n, err study.Number) string {
	if n-n+err-err != 0 {
		return number(n)
	}
	return fmt.Sprintf("%.3f ± %.3f", float64(n), float64(err))
}

func (v *view) morris() page.Section {
	s := page.Section{Title: "Elementary effects (Morris)", Shares: "Mean magnitude, relative to the greatest on the same quantity"}
	t := page.Table{Title: "per unit of the factor's range", Head: []string{"factor", "quantity", "mean magnitude", "mean", "standard deviation"}}
	greatest := map[string]float64{}
	for _, e := range v.Report.Morris {
		if e.MuStar == e.MuStar {
			greatest[e.Quantity] = max(greatest[e.Quantity], float64(e.MuStar))
		}
	}
	for i, e := range v.Report.Morris {
		t.Rows = append(t.Rows, []string{e.Factor, e.Quantity, number(e.MuStar), number(e.Mu), number(e.Sigma)})
		if most := greatest[e.Quantity]; i < mostBars && most > 0 && e.MuStar == e.MuStar {
			s.Bars = append(s.Bars, page.Bar{Name: e.Factor + " on " + e.Quantity, Value: number(e.MuStar), Share: float64(e.MuStar) / most})
		}
	}
	if t.Rows != nil {
		s.Text, s.Tables = v.dropped("of the trajectories,"), []page.Table{t}
	}
	return s
}

func (v *view) dropped(what string) []string {
	if v.Report.Dropped == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Left out: %d %s in which not all runs are ok.", v.Report.Dropped, what)}
}

func (v *view) optimum() page.Section {
	s := page.Section{Title: "Optimum"}
	plan := v.Plan.Optimise
	if plan == nil || len(v.Rows) == 0 {
		return s
	}
	if o := v.Report.Optimum; o != nil {
		s.Text = []string{fmt.Sprintf("Run %d is the best of %d: goal %s. Method %s ended: %s.", o.ID, o.Runs, text(o.Goal), o.Method, o.Ended)}
		t := page.Table{Head: []string{"", "best run"}}
		for j, f := range v.factors {
			if j < len(o.Values) {
				value := o.Values[j]
				if x, err := strconv.ParseFloat(value, 64); err == nil {
					value = text(x)
				}
				t.Rows = append(t.Rows, []string{v.named(f), value})
			}
		}
		for i, q := range v.quantities {
			if i < len(o.Collected) {
				t.Rows = append(t.Rows, []string{v.named(q), number(study.Number(o.Collected[i]))})
			}
		}
		s.Tables = []page.Table{t}
	}
	var all, best page.Shape
	positive, low, high := true, math.Inf(1), math.Inf(-1)
	least := math.NaN()
	for i := range v.Rows {
		g := v.Plan.Goal(&v.Rows[i])
		if g != g {
			continue
		}
		positive, low, high = positive && g > 0, min(low, g), max(high, g)
		x := float64(v.Rows[i].ID)
		all.X, all.Y = append(all.X, x), append(all.Y, g)
		if !(g >= least) && !plan.Maximise || !(g <= least) && plan.Maximise {
			if least == least {
				best.X, best.Y = append(best.X, x), append(best.Y, least)
			}
			least = g
			best.X, best.Y = append(best.X, x), append(best.Y, g)
		}
	}
	if all.X == nil {
		return s
	}
	best.X, best.Y = append(best.X, all.X[len(all.X)-1]), append(best.Y, least)
	all.Kind, all.Tone, best.Kind, best.Tone = page.Points, page.Faint, page.Line, page.Other
	s.Groups = []page.Group{{Charts: []page.Chart{{Name: "Goal", Note: "of each run, and the best so far", X: page.Axis{Name: "run"},
		Y: page.Axis{Log: positive && high > 100*low}, Shapes: []page.Shape{all, best}}}}}
	return s
}

func (v *view) convergence() page.Section {
	s := page.Section{Title: "Convergence"}
	c := v.Plan.Convergence
	if c == nil {
		return s
	}
	var group page.Group
	for _, q := range v.Report.Settled {
		t := page.Table{Title: v.named(q.Quantity) + ": " + q.State(), Head: []string{c.Setting, "value", "change", "observed order"}}
		line, order := page.Shape{Kind: page.Line}, study.Number(math.NaN())
		for i := range q.Values {
			value := "–"
			if x := float64(q.Values[i]); x == x {
				value = strconv.FormatFloat(x, 'g', 10, 64)
			}
			t.Rows = append(t.Rows, []string{text(q.Settings[i]), value, number(q.Changes[i]), rounded(float64(q.Orders[i]), 3)})
			line.X, line.Y = append(line.X, q.Settings[i]), append(line.Y, math.Abs(float64(q.Changes[i])))
			if o := float64(q.Orders[i]); o-o == 0 {
				order = q.Orders[i]
			}
		}
		points := line
		points.Kind = page.Points
		group.Charts = append(group.Charts, page.Chart{Name: "Change of " + v.named(q.Quantity), Note: "observed order " + rounded(float64(order), 3),
			X: page.Axis{Name: c.Setting, Log: true}, Y: page.Axis{Log: true}, Shapes: []page.Shape{line, points}})
		s.Tables = append(s.Tables, t)
	}
	if group.Charts != nil {
		s.Groups = []page.Group{group}
	} else if len(v.Rows) > 0 {
		t := page.Table{Head: append([]string{"run", c.Setting}, v.quantities...)}
		for _, r := range v.Rows {
			row := append([]string{strconv.Itoa(r.ID)}, r.Values...)
			for _, x := range r.Collected {
				row = append(row, number(study.Number(x)))
			}
			t.Rows = append(t.Rows, row)
		}
		s.Tables = []page.Table{t}
	}
	return s
}

// labelled returns levels for people.
func labelled(levels []string) []string {
	out := slices.Clone(levels)
	for i := range out {
		out[i] = cmp.Or(out[i], "own value")
	}
	return out
}

func finite(v float64) float64 {
	if v-v != 0 {
		return math.NaN()
	}
	return v
}

// number writes a number for people, – if it is missing.
func number(n study.Number) string { return rounded(float64(n), usualDigits) }

func text(v float64) string { return rounded(v, usualDigits) }

// usualDigits are those of a number, mostDigits those of one whose neighbours differ little from it.
const (
	usualDigits = 5
	mostDigits  = 12
)

// digits returns how many digits tell values between two numbers apart.
func digits(low, high float64) int {
	n := math.Ceil(math.Log10(math.Max(math.Abs(low), math.Abs(high)) / (high - low)))
	if n != n {
		return usualDigits
	}
	return int(min(max(n+4, usualDigits), mostDigits))
}

// rounded writes a number with some digits, – if it is not finite.
func rounded(v float64, digits int) string {
	if v-v != 0 {
		return "–"
	}
	s := strconv.FormatFloat(v, 'g', digits, 64)
	if short, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(v) < 1e7 && math.Abs(v) >= 1e-4 {
		return strconv.FormatFloat(short, 'f', -1, 64)
	}
	return shortExponent.Replace(s)
}

var shortExponent = strings.NewReplacer("e+0", "e", "e-0", "e-")
