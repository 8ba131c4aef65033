package page

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// What a chart draws is what it was given; values without a place are left out.
func TestChart(t *testing.T) {
	nan := math.NaN()
	line := Axis{Low: 0, High: 10}
	for name, tt := range map[string]struct {
		c     Chart
		paths string
	}{
		"line":   {Chart{X: line, Y: line, Shapes: []Shape{{Kind: Line, X: []float64{0, 5, 6, 10}, Y: []float64{0, 10, nan, 5}}}}, "M0 1000000L500000 0M1000000 500000"},
		"points": {Chart{X: line, Y: line, Shapes: []Shape{{Kind: Points, X: []float64{1, 2}, Y: []float64{1, math.Inf(1)}}}}, "M100000 900000h0"},
		"bars": {Chart{X: line, Y: line, Shapes: []Shape{{Kind: Bars, X: []float64{0, 1, 2}, Y: []float64{5, 0}},
			{Kind: Bars, X: []float64{0, 1, 2}, Y: []float64{5, 1}, Base: []float64{5, 0}}}}, "M0 1000000H100000V500000H0z|M100000 1000000H200000V900000H100000z"},
		"powers": {Chart{X: Axis{Low: 1, High: 100, Log: true}, Y: Axis{Low: 1e-2, High: 1, Log: true}, Shapes: []Shape{{Kind: Line,
			X: []float64{0, 1, 10, 100}, Y: []float64{1, 1, 0.1, 0}}}}, "M0 0L500000 500000"},
		"labels":  {Chart{X: Axis{Labels: []string{"a", "b"}}, Y: line, Shapes: []Shape{{Kind: Points, X: []float64{0, 1}, Y: []float64{0, 10}}}}, "M250000 1000000h0M750000 0h0"},
		"one":     {Chart{Shapes: []Shape{{Kind: Points, X: []float64{3}, Y: []float64{-2}}}}, "M500000 500000h0"},
		"nothing": {Chart{Shapes: []Shape{{Kind: Points, X: []float64{3}, Y: []float64{nan}}}}, ""},
	} {
		d := tt.c.draw()
		var paths []string
		for _, p := range d.Paths {
			paths = append(paths, p.Path)
		}
		if got := strings.Join(paths, "|"); got != tt.paths || d.Nothing != (tt.paths == "") {
			t.Errorf("%s: %s, want %s", name, got, tt.paths)
		}
	}
}

// Labels of categories fit: many are turned, long ones are cut, of very many only some are there.
func TestChartLabels(t *testing.T) {
	for _, tt := range []struct {
		n      int
		text   string
		labels int
		turned bool
	}{{1, "an algorithm with a long name", 1, false}, {3, "an algorithm with a long name", 3, true}, {5, "12345", 5, false}, {6, "12345", 6, true}, {100, "x", 12, false}} {
		c := Chart{X: Axis{Labels: slices.Repeat([]string{tt.text}, tt.n)}, Shapes: []Shape{{Kind: Points, X: []float64{0}, Y: []float64{1}}}}
		d := c.draw()
		if len(d.XTicks) != tt.labels || d.Turned != tt.turned || len([]rune(d.XTicks[0].Text)) > longestLabel {
			t.Errorf("of %d: turned %v, %v", tt.n, d.Turned, d.XTicks)
		}
	}
}
