package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/macrostep/macrostep/master/results/axis"
)

// Chart is a static picture with axes of its own.
type Chart struct {
	Name, Note string
	X, Y       Axis
	Shapes     []Shape
	// Scale is what the strengths of cells stand for: the least and the greatest value; nil = there are no cells.
	Scale []string
}

// Axis is an axis of a chart.
type Axis struct {
	Name string
	// Low and High are the ends of the axis; if they are equal, the shapes determine them.
	Low, High float64
	Log       bool
	Integral  bool     // whole numbers, on an axis that is not logarithmic
	Labels    []string // at 0, 1, …; nil = numbers
}

// Shape is a part of a chart. Points that are not finite, or not above 0 on a logarithmic axis, are left out.
type Shape struct {
	Kind ShapeKind
	Tone ShapeTone
	// Of bars, bar i goes from X[i] to X[i+1], and from Base[i] to Y[i].
	X, Y []float64
	Base []float64 // nil = 0
	// Strength is how strong the colour of cells is, above 0 to 1; 0 = 1.
	Strength float64
}

// ShapeKind is how a shape is drawn.
type ShapeKind string

// The kinds of shapes.
const (
	Line   ShapeKind = "line"
	Points ShapeKind = "points"
	Bars   ShapeKind = "bars"
	// Cells are squares around whole numbers X and Y.
	Cells ShapeKind = "cells"
)

// ShapeTone is the colour of a shape.
type ShapeTone string

// The colours of shapes. Usual and Other differ for colour-blind readers, too.
const (
	Usual ShapeTone = ""
	Other ShapeTone = "other"
	Faint ShapeTone = "faint"
)

// drawnChart is the data of a chart in the template.
type drawnChart struct {
	*Chart
	XTicks, YTicks []tick
	XTitle, YTitle string
	Grid           string
	Paths          []chartPath
	Turned         bool // the labels below
	Nothing        bool
}

type chartPath struct {
	Kind ShapeKind
	Tone ShapeTone
	Path string
	// Strength is that of cells, "" = 1.
	Strength string
}

// Strengths are those in the legend of cells, and those to use for them.
var Strengths = []float64{0.12, 0.24, 0.37, 0.49, 0.62, 0.75, 0.87, 1}

// Strengths returns those of the legend.
func (d drawnChart) Strengths() []float64 { return Strengths }

// draw draws a chart.
func (c *Chart) draw() drawnChart {
	d := drawnChart{Chart: c}
	var xs, ys []float64
	for _, s := range c.Shapes {
		xs, ys = append(xs, s.X...), append(append(ys, s.Y...), s.Base...)
		if s.Kind == Bars && s.Base == nil {
			ys = append(ys, 0)
		}
	}
	xLow, xHigh, xOK := c.X.span(xs)
	yLow, yHigh, yOK := c.Y.span(ys)
	if d.Nothing = !xOK || !yOK; d.Nothing {
		return d
	}
	x := func(v float64) float64 { return (c.X.scaled(v)/2 - xLow/2) / (xHigh/2 - xLow/2) * whole }
	y := func(v float64) float64 { return (yHigh/2 - c.Y.scaled(v)/2) / (yHigh/2 - yLow/2) * whole }
	for _, s := range c.Shapes {
		var b strings.Builder
		pen := "M"
		for i, v := range s.Y {
			left, top := x(s.X[i]), y(v)
			if bad := left + top; bad-bad != 0 {
				pen = "M"
				continue
			}
			switch s.Kind {
			case Bars:
				base := 0.0
				if s.Base != nil {
					base = s.Base[i]
				}
				if v != base {
					fmt.Fprintf(&b, "M%.0f %.0fH%.0fV%.0fH%.0fz", left, y(base), x(s.X[i+1]), top, left)
				}
			case Cells:
				right, bottom := x(s.X[i]+0.5), y(v-0.5)
				fmt.Fprintf(&b, "M%.0f %.0fH%.0fV%.0fH%.0fz", x(s.X[i]-0.5), y(v+0.5), right, bottom, x(s.X[i]-0.5))
			case Points:
				fmt.Fprintf(&b, "M%.0f %.0fh0", left, top)
			default:
				fmt.Fprintf(&b, "%s%.0f %.0f", pen, left, top)
				pen = "L"
			}
		}
		strength := ""
		if s.Strength > 0 {
			strength = full(s.Strength)
		}
		d.Paths = append(d.Paths, chartPath{s.Kind, s.Tone, b.String(), strength})
	}
	d.XTicks, d.XTitle = c.X.ticks(xLow, xHigh, mostX)
	width := 0
	for _, t := range d.XTicks {
		width += len([]rune(t.Text)) + 1
	}
	d.Turned = c.X.Labels != nil && width > labelRoom
	d.YTicks, d.YTitle = c.Y.ticks(yLow, yHigh, mostY)
	d.Grid = grid(d.XTicks, d.YTicks)
	return d
}

// span returns the ends of an axis; ok is false if there is nothing to show on it.
func (a *Axis) span(values []float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	if a.Low < a.High {
		return a.scaled(a.Low), a.scaled(a.High), true
	}
	if a.Labels != nil {
		return -0.5, float64(len(a.Labels)) - 0.5, len(values) > 0
	}
	for _, v := range values {
		if v = a.scaled(v); v-v == 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return 0, 1, false
	}
	if room := 0.1 * math.Abs(low); low == high && room < math.MaxFloat64-math.Abs(low) {
		return low - max(room, 0.1), high + max(room, 0.1), true
	}
	low, high = axis.Widened(low, high)
	return low, high, true
}

// scaled returns the position of a value on the axis, NaN if it has none.
func (a *Axis) scaled(v float64) float64 {
	return (&Plot{Log: a.Log}).scaled(v)
}

// Of the labels of categories: how many there are, and the characters of each. They are turned if they need more than
// labelRoom.
const (
	mostLabels   = 12
	longestLabel = 14
)

// ticks returns the labels and the title of an axis.
func (a *Axis) ticks(low, high float64, most int) (out []tick, title string) {
	if a.Labels == nil {
		n := axis.New(low, high, most, a.Log)
		if a.Integral && !a.Log {
			n = axis.Whole(low, high, most)
		}
		n.Thin(labelRoom)
		return ticks(&n), strings.TrimSpace(a.Name + " " + n.Common)
	}
	every := (len(a.Labels) + mostLabels - 1) / mostLabels
	for i := 0; i < len(a.Labels); i += every {
		text := []rune(a.Labels[i])
		if len(text) > longestLabel {
			text = append(text[:longestLabel-1], '…')
		}
		out = append(out, tick{(float64(i) - low) / (high - low), string(text)})
	}
	return out, a.Name
}
