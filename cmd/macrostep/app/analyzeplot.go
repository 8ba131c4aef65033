package app

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results/axis"
	"github.com/macrostep/macrostep/master/results/plot"
)

// The pictures of an analysis.
const (
	radiusPicture = "radius.svg"
	graphPicture  = "graph.svg"
)

// plotAnalysis writes the pictures of an analysis into a folder, which it creates if necessary.
func (p *program) plotAnalysis(dir, path string, r *analyze.Report) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--plot: %w", record.NotWritten(dir, err))
	}
	if err := writeChecked(filepath.Join(dir, radiusPicture), true, func(w io.Writer) error { return radiusPlot(w, r) }, nil); err != nil {
		return err
	}
	return p.sspGraph(path, filepath.Join(dir, graphPicture), part{}, true)
}

// The colours of the stability map.
var (
	stableColor   = color.RGBA{0xe3, 0xf3, 0xe8, 0xff}
	unstableColor = color.RGBA{0xfb, 0xe6, 0xe4, 0xff}
	stepStyle     = axis.Style{Light: color.RGBA{0x1d, 0x27, 0x33, 0xff}, Dash: []float64{1.5, 3}}
)

// radiusPlot draws the spectral radius over the step, one chart for each algorithm.
func radiusPlot(w io.Writer, r *analyze.Report) error {
	p := plot.Picture{Height: 220}
	var presets, unknown []string
	byPreset := map[string][]plot.Line{}
	orders := map[int]bool{}
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if len(s.Points) == 0 {
			unknown = append(unknown, fmt.Sprintf("%s, order %d", s.Preset, s.Order))
			continue
		}
		if byPreset[s.Preset] == nil {
			presets = append(presets, s.Preset)
		}
		byPreset[s.Preset] = append(byPreset[s.Preset], radiusLine(s))
		orders[s.Order] = true
	}
	for _, preset := range presets {
		p.Charts = append(p.Charts, radiusChart(preset, byPreset[preset], r))
	}
	for order := range axis.Colors {
		if orders[order] {
			p.Legend = append(p.Legend, plot.Entry{Name: fmt.Sprintf("order %d", order), Style: axis.LineStyle(order)})
		}
	}
	p.Legend = append(p.Legend, plot.Entry{Name: fmt.Sprintf("step of the analysis, %g s", r.Step), Style: stepStyle},
		plot.Entry{Name: "stable", Style: axis.Style{Light: stableColor}, Area: true},
		plot.Entry{Name: "unstable", Style: axis.Style{Light: unstableColor}, Area: true})
	p.Notes = []plot.Note{{Title: "How to read it", Lines: []string{
		"The spectral radius is the factor by which the slowest deviation grows in a macro step: 0.01 above 1 is growth by 1 % per step. Below 1 it dies out, at 1 it stays.",
		"The scale is logarithmic on both sides of 0, and linear below 0.000001. Growth beyond 1 is drawn at 1. Where a line is interrupted, the radius is unknown.",
	}}}
	if len(unknown) > 0 {
		p.Notes = append(p.Notes, plot.Note{Title: "Radius unknown", Lines: unknown})
	}
	return p.WriteSVG(w)
}

// radiusChart returns the chart of an algorithm, with the range of its lines.
func radiusChart(preset string, lines []plot.Line, r *analyze.Report) plot.Chart {
	low, high := signedLog(-1e-5), signedLog(1e-5)
	for _, l := range lines {
		for _, v := range l.Y {
			if v == v {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	low, high = axis.Widened(low, high)
	return plot.Chart{
		Title: preset,
		X:     plot.Axis{Name: "macro step", Unit: "s", Low: r.From, High: r.To, Log: true},
		Y:     plot.Axis{Name: "spectral radius − 1", Low: low, High: high, Ticks: signedTicks(low, high)},
		Areas: []plot.Area{{X0: r.From, X1: r.To, Y0: low, Y1: 0, Color: stableColor}, {X0: r.From, X1: r.To, Y0: 0, Y1: high, Color: unstableColor}},
		Lines: append(lines, plot.Line{X: []float64{r.Step, r.Step}, Y: []float64{low, high}, Style: stepStyle}),
	}
}

// radiusLine returns the curve of a strategy, interrupted where the radius is not known.
func radiusLine(s *analyze.Strategy) plot.Line {
	l := plot.Line{Style: axis.LineStyle(s.Order)}
	for i, at := range s.Points {
		if i > 0 && slices.ContainsFunc(s.Gaps, func(g scan.Gap) bool { return s.Points[i-1].Step < g.From && g.To < at.Step }) {
			l.X, l.Y = append(l.X, at.Step), append(l.Y, math.NaN())
		}
		l.X, l.Y = append(l.X, at.Step), append(l.Y, signedLog(min(at.Radius-1, 1)))
	}
	return l
}

// signedLog is a logarithmic scale for growth and decay per step, linear below a millionth.
func signedLog(v float64) float64 {
	return math.Copysign(math.Log10(1+math.Abs(v)/1e-6), v)
}

// signedTicks returns labels at 0 and at powers of ten on both sides, at every second power where there are many.
func signedTicks(low, high float64) []axis.Tick {
	every := 1
	if high-low > 7 {
		every = 2
	}
	ticks := []axis.Tick{{Value: 0, Text: "0"}}
	for k := 0; k > -6; k -= every {
		v := math.Pow10(k)
		for _, t := range []axis.Tick{{Value: signedLog(v), Text: strconv.FormatFloat(v, 'f', -1, 64)}, {Value: signedLog(-v), Text: strconv.FormatFloat(-v, 'f', -1, 64)}} {
			if low <= t.Value && t.Value <= high {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}
