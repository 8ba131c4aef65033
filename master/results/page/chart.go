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
}

// Axis is an axis of a chart.
type Axis struct {
	Name string
	// Low and High are on the axis; if they are equal, the shapes alone determine its ends.
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
}

// ShapeKind is how a shape is drawn.
type ShapeKind string

// The kinds of shapes.
const (
	Line   ShapeKind = "line"
	Points ShapeKind = "points"
	Bars   ShapeKind = "bars"
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
}

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
	xAxis, xTitle, xOK := c.X.axis(xs, mostX, false)
	yAxis, yTitle, yOK := c.Y.axis(ys, mostY, true)
	if d.Nothing = !xOK || !yOK; d.Nothing {
		return d
	}
	xLow, xHigh, yLow, yHigh := xAxis.Low, xAxis.High, yAxis.Low, yAxis.High
	d.XTitle, d.YTitle = xTitle, yTitle
	x := func(v float64) float64 { return (c.X.scaled(v)/2-xLow/2)/(xHigh/2-xLow/2)*whole + 0 } // no -0
	y := func(v float64) float64 { return (yHigh/2-c.Y.scaled(v)/2)/(yHigh/2-yLow/2)*whole + 0 }
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
			case Points:
				fmt.Fprintf(&b, "M%.0f %.0fh0", left, top)
			default:
				fmt.Fprintf(&b, "%s%.0f %.0f", pen, left, top)
				pen = "L"
			}
		}
		d.Paths = append(d.Paths, chartPath{s.Kind, s.Tone, b.String()})
	}
	d.XTicks, d.YTicks = ticks(&xAxis), ticks(&yAxis)
	width := 0
	for _, t := range d.XTicks {
		width += len([]rune(t.Text)) + 1
	}
	d.Turned = c.X.Labels != nil && width > labelRoom
	d.Grid = grid(d.XTicks, d.YTicks)
	return d
}

// axis returns the axis for values, and its title; ok is false if there is nothing to show on it.
func (a *Axis) axis(values []float64, most int, upright bool) (out axis.Axis, title string, ok bool) {
	if a.Labels != nil {
		return a.categories(), a.Name, len(values) > 0
	}
	low, high := math.Inf(1), math.Inf(-1)
	if a.Low < a.High {
		low, high = a.scaled(a.Low), a.scaled(a.High)
	}
	for _, v := range values {
		if v = a.scaled(v); v-v == 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return out, "", false
	}
	out = axis.Rounded(low, high, most, a.Log, a.Integral && !a.Log)
	for fewer := most - 1; !upright && fewer > 1 && !out.Fits(labelRoom); fewer-- {
		out = axis.Rounded(low, high, fewer, a.Log, a.Integral && !a.Log)
	}
	if !upright {
		out.Thin(labelRoom)
	}
	return out, strings.TrimSpace(a.Name + " " + out.Common), true
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

// categories returns the axis of texts.
func (a *Axis) categories() axis.Axis {
	out := axis.Axis{Low: -0.5, High: float64(len(a.Labels)) - 0.5}
	every := (len(a.Labels) + mostLabels - 1) / mostLabels
	for i := 0; i < len(a.Labels); i += every {
		text := []rune(a.Labels[i])
		if len(text) > longestLabel {
			text = append(text[:longestLabel-1], '…')
		}
		out.Ticks = append(out.Ticks, axis.Tick{Value: float64(i), Text: string(text)})
	}
	return out
}
