package page

import (
	"fmt"

	"github.com/macrostep/macrostep/master/results/page"
)

// fits reports whether the study is a fit that is done. Its page shows the result, and not the way to it.
func (v *view) fits() bool { return v.Report.Fit != nil && v.Report.Optimum != nil }

// fit shows the values of the factors, how certain they are, and the best run beside the measurements.
func (v *view) fit() page.Section {
	s := page.Section{Title: "Fit"}
	o, c := v.Report.Optimum, v.Report.Fit
	if !v.fits() {
		return s
	}
	s.Text = []string{fmt.Sprintf("Run %d fits best: the sum of (deviation / range)² over the columns is %s. Search: %s, %d runs, %s.",
		o.ID, text(o.Goal), o.Method, o.Runs, o.Ended)}
	if c.Unknown != "" {
		s.Text = append(s.Text, "Standard errors are unknown: "+c.Unknown+".")
	}
	for _, w := range c.Warnings {
		s.Text = append(s.Text, "Warning: "+w+".")
	}
	values := page.Table{Head: []string{"factor", "value", "standard error", "95 % interval"}}
	correlations := page.Table{Title: "Correlations of the estimates", Head: []string{"factor"}}
	for j := range c.Parameters {
		p := &c.Parameters[j]
		value, e, interval := p.Texts()
		values.Rows = append(values.Rows, []string{v.named(p.Factor), value, e, interval})
		correlations.Head = append(correlations.Head, p.Factor)
		row := []string{p.Factor}
		for k := range c.Parameters {
			cell := "–"
			if len(c.Correlations) > 0 && c.Correlations[j][k] == c.Correlations[j][k] {
				cell = fmt.Sprintf("%.2f", c.Correlations[j][k]+0)
			}
			row = append(row, cell)
		}
		correlations.Rows = append(correlations.Rows, row)
	}
	columns := page.Table{Head: []string{"fitted", "root mean square of the deviation", "of the range"}}
	var group page.Group
	for i := range c.Columns {
		f := &c.Columns[i]
		columns.Rows = append(columns.Rows, []string{v.named(f.Variable), number(f.Deviation), rounded(100*float64(f.Deviation/f.Range), 2) + " %"})
		residuals := make([]float64, len(f.Time))
		for n := range residuals {
			residuals[n] = f.Fitted[n] - f.Measured[n]
		}
		zero := page.Shape{Kind: page.Line, Tone: page.Faint}
		if n := len(f.Time); n > 0 {
			zero.X, zero.Y = []float64{f.Time[0], f.Time[n-1]}, []float64{0, 0}
		}
		time := page.Axis{Name: "time [s]"}
		group.Charts = append(group.Charts,
			page.Chart{Name: v.named(f.Variable), Note: "measured (points) and best run (line)", X: time, Shapes: []page.Shape{
				{Kind: page.Points, Tone: page.Faint, X: f.Time, Y: f.Measured}, {Kind: page.Line, Tone: page.Other, X: f.Time, Y: f.Fitted}}},
			page.Chart{Name: v.named(f.Variable), Note: "best run − measured", X: time, Shapes: []page.Shape{
				zero, {Kind: page.Points, X: f.Time, Y: residuals}}})
	}
	s.Tables, s.Groups = []page.Table{values, columns}, []page.Group{group}
	if len(c.Parameters) > 1 && c.Unknown == "" {
		s.Tables = []page.Table{values, correlations, columns}
	}
	return s
}
