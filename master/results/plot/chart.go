package plot

import (
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master/results/axis"
)

const lineWidth = 1.5

// drawing is a chart with its axes.
type drawing struct {
	*Chart
	x, y           axis.Axis
	titles         []string // the title in rows
	yTitle, xTitle string
	apart          bool // the title of the y axis has a row of its own
	top, frame     float64
	nothing        bool
}

// Labels of an axis.
const (
	mostX, mostY  = 8, 4
	characterRoom = 8 // width of a character of a label, with what lies between labels
)

func newDrawing(c *Chart) *drawing {
	d := &drawing{Chart: c}
	var xs, ys span
	for _, l := range c.Lines {
		for i, v := range l.Y {
			if x, y := c.X.scaled(l.X[i]), c.Y.scaled(v); finite(x) && finite(y) {
				xs.add(x)
				ys.add(y)
			}
		}
	}
	for _, a := range c.Areas {
		xs.add(c.X.scaled(a.X0))
		xs.add(c.X.scaled(a.X1))
		ys.add(c.Y.scaled(a.Y0))
		ys.add(c.Y.scaled(a.Y1))
	}
	d.nothing = !xs.any
	whole := len(c.Lines) > 0 && !slices.ContainsFunc(c.Lines, func(l Line) bool { return !l.Held || !axis.Integral(l.Y) })
	d.x, d.y = c.X.axis(xs, mostX, false), c.Y.axis(ys, mostY, whole)
	d.yTitle = strings.TrimSpace(c.Y.Name + " " + d.y.Title(c.Y.Unit))
	d.xTitle = strings.TrimSpace(c.X.Name + " " + d.x.Title(c.X.Unit))
	return d
}

// span is the range of values.
type span struct {
	low, high float64
	any       bool
}

func (s *span) add(v float64) {
	switch {
	case !finite(v):
	case !s.any:
		*s = span{v, v, true}
	default:
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
}

// axis returns the axis for values: with the ends that are given, else with round ones.
func (a *Axis) axis(s span, most int, whole bool) axis.Axis {
	low, high := a.scaled(a.Low), a.scaled(a.High)
	switch {
	case a.Ticks != nil:
		return axis.Axis{Low: low, High: high, Ticks: a.Ticks}
	case a.Low < a.High:
		return axis.New(low, high, most, a.Log)
	}
	return axis.Rounded(s.low, s.high, most, a.Log, whole && !a.Log)
}

// scaled returns the value that is linear on the axis; NaN = there is none.
func (a *Axis) scaled(v float64) float64 {
	if !a.Log {
		return v
	}
	if v <= 0 {
		return math.NaN()
	}
	return math.Log10(v)
}

// labelX leaves as many labels on the x axis as there is room for.
func (d *drawing) labelX(width float64) {
	d.x.Thin(int(width / characterRoom))
}

// wrapTitle breaks the title to a width.
func (d *drawing) wrapTitle(width float64) {
	d.titles = wrapped(d.Title, bold, width, 3)
	last := d.titles[len(d.titles)-1]
	d.apart = last != "" && d.yTitle != "" && bold.width(last)+labelGap+regular.width(d.yTitle) > width
	d.yTitle = shortened(d.yTitle, regular, width)
	d.xTitle = shortened(d.xTitle, regular, width)
}

func (d *drawing) titleRows() int {
	if d.apart {
		return len(d.titles) + 1
	}
	return len(d.titles)
}

// draw draws the chart with its left upper corner at x, y.
func (d *drawing) draw(c canvas, x, y float64, l *layout) {
	d.drawTitle(c, x, y)
	left, top, width := x+l.left, y+d.top, l.column-l.left-l.right
	px := func(v float64) float64 { return d.x.At(v) * width }
	py := func(v float64) float64 { return (1 - d.y.At(v)) * d.frame }
	c.inside(left, top, width, d.frame, func(c canvas) {
		for _, a := range d.Areas {
			x0, x1, y0, y1 := px(d.X.scaled(a.X0)), px(d.X.scaled(a.X1)), py(d.Y.scaled(a.Y1)), py(d.Y.scaled(a.Y0))
			c.rectangle(x0, y0, x1-x0, y1-y0, a.Color)
		}
	})
	for _, t := range d.x.Ticks {
		c.line([]point{{left + px(t.Value), top}, {left + px(t.Value), top + d.frame}}, 1, rule, nil)
		c.text(left+px(t.Value), top+d.frame+labelGap+10, t.Text, small, soft, 0.5)
	}
	for _, t := range d.y.Ticks {
		c.line([]point{{left, top + py(t.Value)}, {left + width, top + py(t.Value)}}, 1, rule, nil)
		c.text(left-labelGap, top+py(t.Value)+4, t.Text, small, soft, 1)
	}
	c.line([]point{{left, top}, {left + width, top}, {left + width, top + d.frame}, {left, top + d.frame}, {left, top}}, 1, rule, nil)
	const room = lineWidth // for lines along the frame
	c.inside(left-room, top-room, width+2*room, d.frame+2*room, func(c canvas) {
		for i := range d.Lines {
			d.drawLine(c, &d.Lines[i], func(v float64) float64 { return px(v) + room }, func(v float64) float64 { return py(v) + room })
		}
	})
	if d.nothing {
		c.text(left+width/2, top+d.frame/2, "nothing to draw", regular, soft, 0.5)
	}
	c.text(left+width/2, top+d.frame+lineHeight+ascent+2, d.xTitle, regular, soft, 0.5)
}

func (d *drawing) drawTitle(c canvas, x, y float64) {
	at := 0.0
	for i, row := range d.titles {
		c.text(x, y+ascent+float64(i)*lineHeight, row, bold, ink, 0)
		if at = bold.width(row); row != "" {
			at += labelGap
		}
	}
	last := y + ascent + float64(len(d.titles)-1)*lineHeight
	if d.apart {
		at, last = 0, last+lineHeight
	}
	c.text(x+at, last, d.yTitle, regular, soft, 0)
}

// drawLine draws a line in the frame.
func (d *drawing) drawLine(c canvas, l *Line, px, py func(float64) float64) {
	var run []point
	repeated := false // the run begins where a part that is drawn already ends
	end := func() {
		switch {
		case len(run) > 1:
			c.line(run, lineWidth, l.Style.Light, l.Style.Dash)
		case len(run) == 1 && !repeated:
			c.line(run, 2*lineWidth, l.Style.Light, nil)
		}
		run, repeated = nil, false
	}
	seen := map[[2]point]bool{} // a closed curve is drawn once
	first := l.Start
	for i, v := range l.Y {
		x, y := d.X.scaled(l.X[i]), d.Y.scaled(v)
		if !finite(x) || !finite(y) {
			end()
			continue
		}
		next := point{tenth(px(x)), tenth(py(y))}
		if first {
			c.line([]point{next}, 4*lineWidth, l.Style.Light, nil)
			first = false
		}
		if n := len(run); n > 0 {
			before := run[n-1]
			if next == before {
				continue
			}
			if stretch := [2]point{before, next}; seen[stretch] {
				end()
				repeated = true
			} else {
				seen[stretch] = true
			}
			if l.Held && len(run) > 0 && next.x > before.x && next.y != before.y {
				run = append(run, point{next.x, before.y})
			}
		}
		run = append(run, next)
	}
	end()
}

// tenth rounds to tenths of a pixel; what lies far outside is moved to where numbers are still short.
func tenth(v float64) float64 {
	const far = 1e6
	return math.Round(max(-far, min(v, far))*10) / 10
}
