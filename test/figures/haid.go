package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/haid"
)

// macroSteps are those of Figs. 4 and 6 in s, the largest first, each by √10 smaller.
var macroSteps = func() (H [8]float64) {
	for i := range H {
		H[i] = haid.Even(math.Pow(10, -2.5-float64(i)/2))
	}
	return H
}()

// The plane of Figs. 4 and 6 in decades of c_k and d_k, the spacing of the runs, and that of the grid for the lines.
const stiffnesses, dampings, spacing, fine = 10, 7, 0.5, 0.25

// shades are the colours of the macro steps, lighter for smaller steps.
var shades = func() (c [8]color.RGBA) {
	stops := [][3]float64{{44, 127, 184}, {127, 205, 187}, {255, 255, 217}} // from ColorBrewer's YlGnBu
	for i := range c {
		at := 2 * float64(i) / 7
		from := min(int(at), 1)
		mix := func(k int) uint8 {
			return uint8(stops[from][k] + (at-float64(from))*(stops[from+1][k]-stops[from][k]))
		}
		c[i] = color.RGBA{mix(0), mix(1), mix(2), 255}
	}
	return c
}()

var holdNames = []string{"zero-order hold", "first-order hold", "second-order hold", "third-order hold", "fourth-order hold"}

func name(p int, correct bool) string {
	if correct {
		return holdNames[p] + ", corrected"
	}
	return holdNames[p]
}

// at returns the co-simulation at a point of the plane.
func at(x, y, H float64, p int, correct bool) exact.Corrected {
	o := exact.DefaultHaid()
	o.CK, o.DK = math.Pow(10, x), math.Pow(10, y)
	return exact.Corrected{Haid: o, H: H, P: p, Correct: correct, Alpha: 1}
}

// stability draws Fig. 4.
func stability(dir string) error {
	return maps(dir, "haid-4", "stable", true,
		func(e exact.Corrected) (bool, error) {
			// The masses move almost together, so that fast decay does not hide slow growth. Small steps need
			// many steps to show it.
			e.Start = [4]float64{0, 1, 0, 0.9}
			grows, err := haid.Grows(context.Background(), e, int(max(5000, 0.015/e.H)))
			return !grows, err
		},
		func(e exact.Corrected) float64 { return e.Radius() - 1 })
}

// accuracy draws Fig. 6.
func accuracy(dir string) error {
	const limit = 0.01
	steps := func(e exact.Corrected) int { return int(math.Round(0.1 / e.H)) }
	return maps(dir, "haid-6", "accurate", false,
		func(e exact.Corrected) (bool, error) {
			got, err := haid.GlobalError(context.Background(), e, steps(e), limit)
			return got <= limit, err
		},
		func(e exact.Corrected) float64 { return e.GlobalError(steps(e))/limit - 1 })
}

// maps draws a property of the six methods over the plane: fields by runs of holds, lines by excess, which is positive
// where the property must not hold. A field shows the largest macro step from which on the property holds for all
// smaller ones. With islands all steps are run, and a dot shows the largest step that has the property although a
// smaller one has not; without, runs end at the first step from above that has it.
func maps(dir, file, what string, islands bool, holds func(exact.Corrected) (bool, error), excess func(exact.Corrected) float64) error {
	const columns, rows = stiffnesses/spacing + 1, dampings/spacing + 1
	var fields [6][columns][rows]field
	var differ [6][columns][rows]struct {
		runs, off int
		most      float64
	}
	if err := each(6*columns*rows, func(n int) error {
		method, i, j := n%6, n/6%columns, n/6/columns
		f, d := field{level: none, island: none}, &differ[method][i][j]
		for h, H := range macroSteps {
			e := at(float64(i)*spacing, float64(j)*spacing, H, method/2, method%2 == 1)
			got, err := holds(e)
			if err != nil {
				return fmt.Errorf("%+v: %w", e, err)
			}
			d.runs++
			if x := excess(e); got == (x > 0) {
				d.off++
				d.most = max(d.most, math.Abs(x))
			}
			switch {
			case got && f.level == none:
				f.level = h
			case !got && f.level != none:
				if f.island == none {
					f.island = f.level
				}
				f.level = none
			}
			if got && !islands {
				break
			}
		}
		fields[method][i][j] = f
		return nil
	}); err != nil {
		return err
	}
	var lines [6][len(macroSteps)][]segment
	if err := each(6*len(macroSteps), func(n int) error {
		method, h := n%6, n/6
		lines[method][h] = outline(stiffnesses, dampings, fine, func(x, y float64) bool {
			return !(excess(at(x, y, macroSteps[h], method/2, method%2 == 1)) > 0)
		})
		return nil
	}); err != nil {
		return err
	}
	runs, off, most := 0, 0, 0.0
	var plots [3][2]*plot.Plot
	for method := range fields {
		p := plot.New()
		p.Title.Text = name(method/2, method%2 == 1)
		p.Title.Padding = vg.Millimeter
		m := &plane{island: make(map[int][]plotter.XY)}
		for i := range fields[method] {
			for j, f := range fields[method][i] {
				x, y := float64(i)*spacing, float64(j)*spacing
				if f.level != none {
					m.squares = append(m.squares, square{x, y, f.level})
				}
				if f.island != none {
					m.island[f.island] = append(m.island[f.island], plotter.XY{X: x, Y: y})
				}
				d := differ[method][i][j]
				runs, off, most = runs+d.runs, off+d.off, max(most, d.most)
			}
		}
		for _, l := range lines[method] {
			m.lines = append(m.lines, l...)
		}
		p.Add(m)
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, stiffnesses, 0, dampings
		p.X.Padding, p.Y.Padding = 0, 0
		p.X.Tick.Marker, p.Y.Tick.Marker = decades(2), decades(1)
		if method/2 == 2 {
			p.X.Label.Text = "stiffness c_k / (N/m)"
		}
		if method%2 == 0 {
			p.Y.Label.Text = "damping d_k / (N s/m)"
		}
		plots[method/2][method%2] = p
	}
	fmt.Printf("%s: %d runs; %d differ from the matrices, by %.2g at most\n", file, runs, off, most)
	legend := plot.NewLegend()
	legend.Add(what + " up to")
	for h, H := range macroSteps {
		legend.Add("H = "+duration(H), swatch{shades[h]})
	}
	legend.Add("none of them", swatch{color.White})
	legend.Add("by matrices", swatch{nil})
	if islands {
		legend.Add("again at H", dot{shades[0]})
	}
	return tiles(dir, file, [][]*plot.Plot{plots[0][:], plots[1][:], plots[2][:]}, &legend, 21*vg.Centimeter, 24*vg.Centimeter)
}

// none is the index of no macro step.
const none = -1

// field is the result of the runs at a point of the plane, as indices of macroSteps: the largest step from which on the
// property holds for all smaller ones, and the largest that has it although a smaller one has not.
type field struct{ level, island int }

// plane draws squares around the points of runs, lines and dots.
type plane struct {
	squares []square
	lines   []segment
	island  map[int][]plotter.XY
}

type square struct {
	x, y  float64
	level int
}

// Plot implements plot.Plotter.
func (m *plane) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, s := range m.squares {
		const half = spacing/2 + 0.01 // no seams between neighbours
		left, right, low, high := x(s.x-half), x(s.x+half), y(s.y-half), y(s.y+half)
		c.FillPolygon(shades[s.level], c.ClipPolygonXY([]vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}}))
	}
	for _, l := range m.lines {
		c.StrokeLines(lineStyle, c.ClipLinesXY([]vg.Point{{X: x(l[0].X), Y: y(l[0].Y)}, {X: x(l[1].X), Y: y(l[1].Y)}})...)
	}
	for h, points := range m.island {
		for _, at := range points {
			dot{shades[h]}.draw(&c, vg.Point{X: x(at.X), Y: y(at.Y)})
		}
	}
}

var lineStyle = draw.LineStyle{Color: color.Black, Width: vg.Points(0.7)}

// swatch is a field in a legend, or a line if it has no colour.
type swatch struct{ color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *draw.Canvas) {
	if s.Color == nil {
		c.StrokeLine2(lineStyle, c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
		return
	}
	corners := []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}}
	c.FillPolygon(s.Color, corners)
	c.StrokeLines(draw.LineStyle{Color: color.Gray{128}, Width: vg.Points(0.3)}, append(corners, corners[0]))
}

// dot marks a step that has the property although a smaller one has not.
type dot struct{ color.Color }

func (d dot) draw(c *draw.Canvas, at vg.Point) {
	c.DrawGlyph(draw.GlyphStyle{Color: color.Black, Radius: 1.1 * vg.Millimeter, Shape: draw.CircleGlyph{}}, at)
	c.DrawGlyph(draw.GlyphStyle{Color: d, Radius: 0.8 * vg.Millimeter, Shape: draw.CircleGlyph{}}, at)
}

// Thumbnail implements plot.Thumbnailer.
func (d dot) Thumbnail(c *draw.Canvas) { d.draw(c, c.Center()) }

// decades are ticks at powers of ten on an axis of logarithms; every n-th has a label.
type decades int

// Ticks implements plot.Ticker.
func (d decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for k := int(math.Ceil(low)); k <= int(math.Floor(high)); k++ {
		t := plot.Tick{Value: float64(k)}
		if k%int(d) == 0 {
			t.Label = power(k)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// powers are ticks on a logarithmic axis; every n-th power of ten has a label.
type powers int

// Ticks implements plot.Ticker.
func (n powers) Ticks(low, high float64) (ticks []plot.Tick) {
	for k := int(math.Floor(math.Log10(low))); k <= int(math.Ceil(math.Log10(high))); k++ {
		for digit := 1.0; digit < 10; digit++ {
			t := plot.Tick{Value: digit * math.Pow10(k)}
			if digit == 1 && k%int(n) == 0 {
				t.Label = power(k)
			}
			if t.Value >= low*(1-1e-9) && t.Value <= high*(1+1e-9) {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

func power(k int) string {
	return "10" + strings.Map(func(r rune) rune {
		return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹⁻")[strings.IndexRune("0123456789-", r)]
	}, strconv.Itoa(k))
}

// duration formats a step size in s.
func duration(H float64) string {
	if H >= 0.99e-3 {
		return fmt.Sprintf("%.2g ms", 1e3*H)
	}
	return fmt.Sprintf("%.3g µs", 1e6*H)
}

type segment [2]plotter.XY

// outline returns the border of a set in [0, width] × [0, height], by marching squares on a grid with crossings found
// by bisection.
func outline(width, height, spacing float64, inside func(x, y float64) bool) []segment {
	columns, rows := int(width/spacing)+1, int(height/spacing)+1
	in := make([][]bool, columns)
	for i := range in {
		for j := range rows {
			in[i] = append(in[i], inside(float64(i)*spacing, float64(j)*spacing))
		}
	}
	// crossing returns the crossing of the border with the edge from a point of the grid to the next, to the
	// right or upwards.
	known := map[[3]int]plotter.XY{}
	crossing := func(i, j, up int) plotter.XY {
		if at, ok := known[[3]int{i, j, up}]; ok {
			return at
		}
		place := func(s float64) plotter.XY {
			return plotter.XY{X: (float64(i) + s*float64(1-up)) * spacing, Y: (float64(j) + s*float64(up)) * spacing}
		}
		low, high := 0.0, 1.0
		for range 6 {
			mid := (low + high) / 2
			if at := place(mid); inside(at.X, at.Y) == in[i][j] {
				low = mid
			} else {
				high = mid
			}
		}
		known[[3]int{i, j, up}] = place((low + high) / 2)
		return known[[3]int{i, j, up}]
	}
	var out []segment
	for i := range columns - 1 {
		for j := range rows - 1 {
			a, b, c, d := in[i][j], in[i+1][j], in[i+1][j+1], in[i][j+1]
			var at []plotter.XY
			if a != b {
				at = append(at, crossing(i, j, 0))
			}
			if b != c {
				at = append(at, crossing(i+1, j, 1))
			}
			if c != d {
				at = append(at, crossing(i, j+1, 0))
			}
			if d != a {
				at = append(at, crossing(i, j, 1))
			}
			for k := 0; k+1 < len(at); k += 2 {
				out = append(out, segment{at[k], at[k+1]})
			}
		}
	}
	return out
}

// tiles saves plots in rows with a legend on their right.
func tiles(dir, file string, plots [][]*plot.Plot, legend *plot.Legend, width, height vg.Length) error {
	legend.Top, legend.Left, legend.Padding = true, true, vg.Millimeter
	picture := vgsvg.New(width, height)
	all := draw.New(picture)
	const margin = 3 * vg.Millimeter
	beside := 1.4*legend.Rectangle(all).Size().X + 2*margin // other fonts are wider
	t := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: margin, PadY: margin, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: margin}
	canvases := plot.Align(plots, t, draw.Crop(all, 0, -beside, 0, 0))
	for i, row := range plots {
		for j, p := range row {
			p.Draw(canvases[i][j])
		}
	}
	legend.Draw(draw.Crop(all, width-beside+margin, 0, 0, -2*margin))
	path := filepath.Join(dir, file+".svg")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Println(path)
	return nil
}

// localErrors draws Fig. 8.
func localErrors(r *runner, system, dir string) error {
	const perDecade, points, duration = 6, 22, 0.1
	// From 10⁻⁶ s to 10^−2.5 s; no run takes more than 30 000 steps.
	size := func(i int) float64 { return haid.Even(math.Pow(10, -6+float64(i)/perDecade)) }
	o := exact.DefaultHaid()
	var local [5][2][points]float64
	if err := each(10*points, func(n int) error {
		p, correct, i := n/2%5, n%2 == 1, n/10
		H := size(i)
		args, err := haid.Args(system, o, p, H, r.file("history.csv"))
		if err != nil {
			return err
		}
		args = append(append(args, haid.LocalArgs(correct)...), "--stop-time", fmt.Sprint(H*min(30000, math.Round(duration/H))))
		if correct {
			args = append(args, "--algorithm", "model-based-corrector")
		}
		results, err := r.run(args...)
		if err != nil {
			return err
		}
		local[p][n%2][i] = haid.LocalError(results, o, H, 0)
		return nil
	}); err != nil {
		return err
	}
	curves := plot.New()
	curves.X.Label.Text, curves.Y.Label.Text = "macro step H / s", "local error"
	curves.X.Scale, curves.Y.Scale = plot.LogScale{}, plot.LogScale{}
	curves.X.Tick.Marker, curves.Y.Tick.Marker = powers(1), powers(2)
	legend := plot.NewLegend()
	for p := range local {
		for c, e := range local[p] {
			var xy plotter.XYs
			for i, v := range e {
				xy = append(xy, plotter.XY{X: size(i), Y: v})
			}
			line, err := plotter.NewLine(xy)
			if err != nil {
				return err
			}
			line.Color, line.Width = colours[p], vg.Points(1.5)
			if c == 0 {
				line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
			}
			curves.Add(line)
			legend.Add(fmt.Sprintf("p = %d%s", p, []string{"", ", corrected"}[c]), line)
			a, b := xy[1.5*perDecade], xy[11*perDecade/6] // above rounding and below stability limits
			fmt.Printf("haid-8: %s: order %.2f, 1e-3 reached at H = %.2g s\n", name(p, c == 1), math.Log(b.Y/a.Y)/math.Log(b.X/a.X), reached(xy, 1e-3))
		}
	}
	// Smaller errors are only rounding.
	curves.X.Min, curves.X.Max, curves.Y.Min, curves.Y.Max = size(0), size(points-1), 1e-14, 100
	return tiles(dir, "haid-8", [][]*plot.Plot{{curves}}, &legend, 20*vg.Centimeter, 13*vg.Centimeter)
}

// reached returns where a rising curve first reaches y, interpolated in logarithms.
func reached(curve plotter.XYs, y float64) float64 {
	for i := 1; i < len(curve); i++ {
		if a, b := curve[i-1], curve[i]; a.Y <= y && b.Y > y {
			return a.X * math.Pow(b.X/a.X, math.Log(y/a.Y)/math.Log(b.Y/a.Y))
		}
	}
	return math.NaN()
}

// nonlinear draws Fig. 9: the displacement of mass 1 for some n_d and the global
// error over n_d.
func nonlinear(r *runner, system, dir string) error {
	const H, n, between = 1e-3, 300, 20
	shown := []int{0, between / 2, between} // of n_d = 1, 1.05, … 2
	nd := func(i int) float64 { return 1 + float64(i)/between }
	var references [between + 1][][3]float64
	var results [between + 1][3][2]map[string][]float64
	if err := each(between+1, func(i int) error {
		o := haid.Nonlinear(nd(i))
		var err error
		if references[i], err = haid.Reference(o, H, n); err != nil {
			return err
		}
		for p := range results[i] {
			args, err := haid.Args(system, o, p, H, r.file("history.csv"))
			if err != nil {
				return err
			}
			args = append(args, "--stop-time", fmt.Sprint(n*H))
			if results[i][p][0], err = r.run(args...); err != nil {
				return err
			}
			if results[i][p][1], err = r.run(append(args, "--algorithm", "model-based-corrector")...); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	legend := plot.NewLegend()
	styles := []draw.LineStyle{{Color: color.Gray{170}, Width: vg.Points(2.5)}, {Color: colours[1], Width: vg.Points(1.2)}, {Color: colours[0], Width: vg.Points(1.2)}}
	styles[1].Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
	// curves adds a line of each style, unless its values are nil, and ends it at the first value beyond a
	// limit.
	curves := func(to *plot.Plot, x []float64, beyond float64, y ...[]float64) error {
		for k, values := range y {
			if values == nil {
				continue
			}
			var xy plotter.XYs
			for i, v := range values {
				if xy = append(xy, plotter.XY{X: x[i], Y: v}); math.Abs(v) > beyond {
					break
				}
			}
			line, err := plotter.NewLine(xy)
			if err != nil {
				return err
			}
			line.LineStyle = styles[k]
			to.Add(line)
		}
		return nil
	}
	var plots [][]*plot.Plot
	for p := range 3 {
		var row []*plot.Plot
		var without, with, x []float64
		for i, reference := range references {
			x = append(x, nd(i))
			var e [2]float64
			for c := range e {
				e[c] = exact.NRMSE(haid.Rows(results[i][p][c]), reference)
			}
			without, with = append(without, e[0]), append(with, e[1])
			if !slices.Contains(shown, i) {
				continue
			}
			s := plot.New()
			s.Title.Text = fmt.Sprintf("n_d = %g, error %s → %s", nd(i), short(e[0]), short(e[1]))
			s.Title.TextStyle.Font.Size = vg.Points(9)
			var displacement []float64
			for _, y := range reference {
				displacement = append(displacement, y[0])
			}
			if err := curves(s, results[i][p][0]["time"], 0.1, displacement, results[i][p][0]["one.s"], results[i][p][1]["one.s"]); err != nil {
				return err
			}
			s.X.Min, s.X.Max, s.Y.Min, s.Y.Max = 0, n*H, -0.04, 0.04
			if p == 2 {
				s.X.Label.Text = "time / s"
			}
			if i == 0 {
				s.Y.Label.Text = holdNames[p] + ": s₁ / m"
			}
			row = append(row, s)
		}
		e := plot.New()
		e.Title.Text = "global error"
		e.Y.Scale, e.Y.Tick.Marker = plot.LogScale{}, powers(1)
		if err := curves(e, x, 1e3, nil, without, with); err != nil {
			return err
		}
		e.X.Min, e.X.Max, e.Y.Min, e.Y.Max = 1, 2, 0.01, 100
		if p == 2 {
			e.X.Label.Text = "n_d"
		}
		plots = append(plots, append(row, e))
		fmt.Printf("haid-9: %s, n_d = 1, 1.05, … 2: error without %.2g, with %.2g\n", holdNames[p], without, with)
	}
	for k, what := range []string{"reference", "plain hold", "corrected"} {
		legend.Add(what, &plotter.Line{LineStyle: styles[k]})
	}
	return tiles(dir, "haid-9", plots, &legend, 30*vg.Centimeter, 20*vg.Centimeter)
}

// short formats an error for a title.
func short(e float64) string {
	if !(e < 1000) {
		return "> 1000"
	}
	return fmt.Sprintf("%.2g", e)
}
