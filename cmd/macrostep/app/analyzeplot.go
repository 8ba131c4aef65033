package app

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// orderColors are the colours of the orders 0, 1, …, distinct also for the colour-blind.
var orderColors = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255}, color.RGBA{R: 213, G: 94, B: 0, A: 255}, color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255}, color.RGBA{R: 230, G: 159, B: 0, A: 255}, color.RGBA{R: 86, G: 180, B: 233, A: 255},
}

// The pictures of an analysis.
const (
	radiusPicture = "radius.svg"
	graphPicture  = "graph.svg"
)

// plotAnalysis writes the pictures of an analysis into a folder, which it creates if necessary.
func (p *program) plotAnalysis(dir, path string, r *analyze.Report) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	if err := writeChecked(filepath.Join(dir, radiusPicture), true, func(w io.Writer) error { return radiusPlot(w, r) }, nil); err != nil {
		return err
	}
	return p.sspGraph(path, filepath.Join(dir, graphPicture), part{}, true)
}

// radiusPlot draws the spectral radius over the step, one field for each algorithm.
func radiusPlot(w io.Writer, r *analyze.Report) error {
	const width, height = 11 * vg.Centimeter, 8 * vg.Centimeter
	var presets []string
	fields := map[string]*plot.Plot{}
	for _, s := range r.Strategies {
		f := fields[s.Preset]
		if f == nil {
			f = plot.New()
			f.Title.Text, f.X.Label.Text, f.Y.Label.Text = s.Preset, "macro step [s]", "spectral radius − 1"
			f.X.Scale, f.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
			f.X.Min, f.X.Max = r.From, r.To
			f.Y.Min, f.Y.Max = signedLog(-1), signedLog(1)
			f.Y.Tick.Marker = signedTicks()
			f.Legend.Top, f.Legend.Left, f.Legend.Padding = true, true, vg.Points(3)
			limit := plotter.NewFunction(func(float64) float64 { return 0 })
			limit.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
			f.Add(plotter.NewGrid(), limit)
			presets = append(presets, s.Preset)
			fields[s.Preset] = f
		}
		var legend *plotter.Line
		for _, points := range pieces(&s) {
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color, line.Width = orderColors[s.Order%len(orderColors)], vg.Points(1.5)
			if s.Order > 0 { // to show a line below
				line.Dashes = []vg.Length{vg.Points(8 / float64(s.Order)), vg.Points(1 + 2*float64(s.Order))}
			}
			f.Add(line)
			legend = line
		}
		if legend != nil {
			f.Legend.Add(fmt.Sprintf("order %d", s.Order), legend)
		}
	}
	rows := (len(presets) + 1) / 2
	canvas := vgsvg.NewWith(vgsvg.UseWH(2*width, vg.Length(rows)*height))
	tiles := draw.Tiles{Rows: rows, Cols: 2}
	for i, preset := range presets {
		fields[preset].Draw(tiles.At(draw.New(canvas), i%2, i/2))
	}
	_, err := canvas.WriteTo(w)
	return err
}

// pieces returns the curve of a strategy, interrupted where the radius is not known.
func pieces(s *analyze.Strategy) (out []plotter.XYs) {
	for i, at := range s.Points {
		between := func(g scan.Gap) bool { return s.Points[i-1].Step < g.From && g.To < at.Step }
		if i == 0 || slices.ContainsFunc(s.Gaps, between) {
			out = append(out, nil)
		}
		last := len(out) - 1
		out[last] = append(out[last], plotter.XY{X: at.Step, Y: signedLog(min(at.Radius-1, 1))})
	}
	return out
}

// signedLog is a logarithmic scale for growth and decay per step, linear below a millionth.
func signedLog(v float64) float64 {
	return math.Copysign(math.Log10(1+math.Abs(v)/1e-6), v)
}

func signedTicks() plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 0, Label: "0"}}
	for _, v := range []float64{1e-4, 1e-2, 1} {
		ticks = append(ticks, plot.Tick{Value: signedLog(v), Label: fmt.Sprint(v)}, plot.Tick{Value: signedLog(-v), Label: fmt.Sprint(-v)})
	}
	return ticks
}
