package app

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results/axis"
	"github.com/macrostep/macrostep/master/results/plot"
)

// The pictures of an analysis.
const (
	errorPicture = "error.svg"
	graphPicture = "graph.svg"
)

// plotAnalysis writes the pictures of an analysis into a folder, which it creates if necessary.
func (p *program) plotAnalysis(dir, path string, r *analyze.Report) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--plot: %w", record.NotWritten(dir, err))
	}
	if err := writeChecked(filepath.Join(dir, errorPicture), true, func(w io.Writer) error { return errorPlot(w, r) }, nil); err != nil {
		return err
	}
	_, err := p.sspGraph(path, filepath.Join(dir, graphPicture), part{}, true)
	return err
}

// The colours of the map.
var (
	usableColor   = color.RGBA{0xe3, 0xf3, 0xe8, 0xff}
	unusableColor = color.RGBA{0xfb, 0xe6, 0xe4, 0xff}
	stepStyle     = axis.Style{Light: color.RGBA{0x1d, 0x27, 0x33, 0xff}, Dash: []float64{1.5, 3}}
)

// The errors that are drawn, as powers of ten.
const leastDrawn, mostDrawn = -6, 1

// errorPlot draws the error over the step, one chart for each algorithm with fixed steps.
func errorPlot(w io.Writer, r *analyze.Report) error {
	p := plot.Picture{Height: 220}
	var presets []string
	lines, orders := map[string][]plot.Line{}, map[int]bool{}
	from, to := r.Step, r.Step
	for _, s := range r.Strategies {
		order, err := strconv.Atoi(s.Order)
		if err != nil || len(s.Trials) == 0 {
			continue
		}
		l := plot.Line{Style: axis.LineStyle(order)}
		for _, t := range s.Trials {
			v := float64(mostDrawn)
			if t.Error != nil && t.Fails == "" {
				v = min(max(math.Log10(*t.Error), leastDrawn), mostDrawn)
			}
			l.X, l.Y = append(l.X, t.Step), append(l.Y, v)
			from, to = min(from, t.Step), max(to, t.Step)
		}
		if lines[s.Algorithm] == nil {
			presets = append(presets, s.Algorithm)
		}
		lines[s.Algorithm], orders[order] = append(lines[s.Algorithm], l), true
	}
	if from == to {
		from, to = from/2, 2*to
	}
	steps := axis.Rounded(math.Log10(from), math.Log10(to), 8, true, false)
	from, to = math.Pow(10, steps.Low), math.Pow(10, steps.High)
	var ticks []axis.Tick
	for k := leastDrawn; k <= mostDrawn; k++ {
		ticks = append(ticks, axis.Tick{Value: float64(k), Text: strconv.FormatFloat(math.Pow10(k+2), 'f', -1, 64) + " %"})
	}
	usable := math.Log10(measure.Usable)
	for _, preset := range presets {
		p.Charts = append(p.Charts, plot.Chart{
			Title: preset,
			X:     plot.Axis{Name: "macro step", Unit: "s", Low: from, High: to, Log: true},
			Y:     plot.Axis{Name: "error", Low: leastDrawn, High: mostDrawn, Ticks: ticks},
			Areas: []plot.Area{{X0: from, X1: to, Y0: leastDrawn, Y1: usable, Color: usableColor}, {X0: from, X1: to, Y0: usable, Y1: mostDrawn, Color: unusableColor}},
			Lines: append(lines[preset], plot.Line{X: []float64{r.Step, r.Step}, Y: []float64{leastDrawn, mostDrawn}, Style: stepStyle}),
		})
	}
	for order := range axis.Colors {
		if orders[order] {
			p.Legend = append(p.Legend, plot.Entry{Name: fmt.Sprintf("order %d", order), Style: axis.LineStyle(order)})
		}
	}
	p.Legend = append(p.Legend, plot.Entry{Name: fmt.Sprintf("present step, %g s", r.Step), Style: stepStyle},
		plot.Entry{Name: "usable", Style: axis.Style{Light: usableColor}, Area: true},
		plot.Entry{Name: "not usable", Style: axis.Style{Light: unusableColor}, Area: true})
	p.Notes = []plot.Note{{Title: "How to read it", Lines: []string{
		"The error is the root mean square over the whole run, relative to the motion of the output where it is largest, compared with a finer run.",
		"Errors above 1000 %, and runs that end early, are drawn at the top.",
	}}}
	return p.WriteSVG(w)
}
