// Package plot draws charts as SVG and PNG, with the axes and colours of the result pages.
//
//	p := plot.Picture{Charts: []plot.Chart{{Title: "m.x", X: plot.Axis{Name: "time", Unit: "s"}, Y: plot.Axis{Unit: "m"},
//		Lines: []plot.Line{{X: times, Y: values, Style: axis.LineStyle(0)}}}}}
//	err := p.WriteSVG(w)
//
// Lengths are pixels of 1/96 inch; a PNG has two points for each. Text is measured in Liberation Sans, which has the widths of Arial
// and Helvetica, so that an SVG needs no font of its own; other fonts are fitted to these widths.
package plot

import (
	"image/color"
	"io"
	"math"

	"github.com/macrostep/macrostep/master/results/axis"
)

// Picture is a set of charts of one size. Up to three are below each other, more in two columns.
type Picture struct {
	Legend []Entry // above the charts
	Charts []Chart
	Notes  []Note // below the charts
	// Height is that of the frame of a chart; 0 = 180.
	Height float64
}

// Entry is a line in the legend.
type Entry struct {
	Name  string
	Style axis.Style
	Area  bool // a patch instead of a line
}

// Note is text below the charts, in as many columns as fit.
type Note struct {
	Title string // "" = none
	Lines []string
}

// Chart is a frame with axes. If it has nothing to show, it says so.
type Chart struct {
	Title string
	X, Y  Axis
	Areas []Area // behind the lines
	Lines []Line
}

// Axis is an axis of a chart.
type Axis struct {
	Name, Unit string
	// Low and High are the ends of the axis; if they are equal, lines and areas determine them.
	Low, High float64
	Log       bool
	Ticks     []axis.Tick // nil = as axis.New chooses
}

// Line is a line through points. Points that are not finite, or not above 0 on a logarithmic axis, interrupt it.
type Line struct {
	X, Y  []float64
	Style axis.Style
	Held  bool // a value holds until the next point
	Start bool // a dot marks the first point
}

// Area is a coloured rectangle.
type Area struct {
	X0, X1, Y0, Y1 float64
	Color          color.RGBA
}

// The colours of light pages.
var (
	paper = color.RGBA{0xff, 0xff, 0xff, 0xff}
	ink   = color.RGBA{0x1d, 0x27, 0x33, 0xff}
	soft  = color.RGBA{0x5d, 0x6b, 0x7a, 0xff}
	rule  = color.RGBA{0xd9, 0xdf, 0xe6, 0xff}
)

// WriteSVG writes the picture as SVG.
func (p *Picture) WriteSVG(w io.Writer) error {
	l := p.layout()
	c := newSVG(l.width, l.height)
	p.draw(c, l)
	return c.writeTo(w)
}

// WritePNG writes the picture as PNG.
func (p *Picture) WritePNG(w io.Writer) error {
	l := p.layout()
	c := newBitmap(l.width, l.height, 2)
	p.draw(c, l)
	return c.writeTo(w)
}

// canvas is a surface to draw on.
type canvas interface {
	// line draws a line through points; one point is a dot. Without dashes, ends are round.
	line(points []point, width float64, color color.RGBA, dash []float64)
	rectangle(x, y, width, height float64, color color.RGBA)
	// text draws a line of text with its baseline at y. share is the part of it left of x: 0 = it begins there.
	text(x, y float64, text string, f face, color color.RGBA, share float64)
	// inside lets draw draw in a rectangle; what lies beyond is cut off.
	inside(x, y, width, height float64, draw func(canvas))
}

type point struct{ x, y float64 }

const (
	wide, narrow = 760, 560 // widths of a column
	frameHeight  = 180
	edge         = 16 // of the picture
	gap          = 28 // between columns
	lineHeight   = 17
	sample       = 30 // length of a line in the legend
	legendRows   = 6  // of an entry
	labelGap     = 6  // between labels and the frame
	titleGap     = 7  // between title and frame
	between      = 14 // between charts
)

// layout is where everything is.
type layout struct {
	width, height float64
	columns       int
	column        float64 // width of a column
	left, right   float64 // of the frame in its column
	legend        []placed
	charts        []*drawing
	rows          []float64 // top of each row of charts
	notes         []placed
}

// placed is a text at its place.
type placed struct {
	at    point
	text  string
	face  face
	entry *Entry
}

// layout arranges the picture.
func (p *Picture) layout() *layout {
	l := &layout{columns: 1, column: wide}
	if len(p.Charts) > 3 {
		l.columns, l.column = 2, narrow
	}
	l.width = 2*edge + float64(l.columns)*l.column + float64(l.columns-1)*gap
	l.height = edge
	l.placeLegend(p.Legend)
	l.placeCharts(p)
	l.placeNotes(p.Notes)
	l.height += edge - between
	return l
}

// placeLegend arranges the legend in rows.
func (l *layout) placeLegend(entries []Entry) {
	x, most := float64(edge), l.width-2*edge
	for i := range entries {
		rows := wrapped(entries[i].Name, regular, most-sample-labelGap, legendRows)
		w := sample + labelGap + regular.width(rows[0])
		if x > edge && (x+w > l.width-edge || len(rows) > 1) {
			x, l.height = edge, l.height+lineHeight
		}
		l.legend = append(l.legend, placed{point{x, l.height}, rows[0], regular, &entries[i]})
		for _, text := range rows[1:] {
			l.height += lineHeight
			l.legend = append(l.legend, placed{point{x + sample + labelGap, l.height}, text, regular, nil})
		}
		x += w + gap
	}
	if len(entries) > 0 {
		l.height += lineHeight + between
	}
}

// placeCharts arranges the charts in rows, with all frames of a column in line.
func (l *layout) placeCharts(p *Picture) {
	for i := range p.Charts {
		d := newDrawing(&p.Charts[i])
		l.charts = append(l.charts, d)
		for _, t := range d.y.Ticks {
			l.left = max(l.left, small.width(t.Text)+labelGap)
		}
	}
	for _, d := range l.charts {
		d.labelX(l.column - l.left)
		if n := len(d.x.Ticks); n > 0 {
			l.right = max(l.right, small.width(d.x.Ticks[n-1].Text)/2)
		}
		d.wrapTitle(l.column)
	}
	frame := p.Height
	if frame == 0 {
		frame = frameHeight
	}
	for i := 0; i < len(l.charts); i += l.columns {
		titles, below := 0, 0.0
		row := l.charts[i:min(i+l.columns, len(l.charts))]
		for _, d := range row {
			titles = max(titles, d.titleRows())
			if d.xTitle != "" {
				below = lineHeight
			}
		}
		l.rows = append(l.rows, l.height)
		for _, d := range row {
			d.top, d.frame = float64(titles)*lineHeight+titleGap, frame
		}
		l.height += float64(titles)*lineHeight + titleGap + frame + lineHeight + below + between
	}
}

// placeNotes arranges notes in columns.
func (l *layout) placeNotes(notes []Note) {
	for _, n := range notes {
		if n.Title != "" {
			l.notes = append(l.notes, placed{point{edge, l.height}, n.Title, bold, nil})
			l.height += lineHeight
		}
		room := l.width - 2*edge
		var lines []string
		longest := 0.0
		for _, text := range n.Lines {
			lines = append(lines, wrapped(text, regular, room, 5)...)
			longest = max(longest, regular.width(text)+gap)
		}
		columns := max(1, int(room/max(longest, 1)))
		rows := (len(lines) + columns - 1) / columns
		for i, text := range lines {
			at := point{edge + float64(i/rows)*room/float64(columns), l.height + float64(i%rows)*lineHeight}
			l.notes = append(l.notes, placed{at, text, regular, nil})
		}
		l.height += float64(rows)*lineHeight + between
	}
}

// ascent is the distance of a baseline from the top of its row.
const ascent = 13

func (p *Picture) draw(c canvas, l *layout) {
	c.rectangle(0, 0, l.width, l.height, paper)
	for _, t := range l.legend {
		if t.entry == nil { // more of the one before
			c.text(t.at.x, t.at.y+ascent, t.text, t.face, ink, 0)
			continue
		}
		if y := t.at.y + ascent - 4; t.entry.Area {
			c.rectangle(t.at.x, y-6, sample, 12, t.entry.Style.Light)
		} else {
			c.line([]point{{t.at.x, y}, {t.at.x + sample, y}}, lineWidth+0.5, t.entry.Style.Light, t.entry.Style.Dash)
		}
		c.text(t.at.x+sample+labelGap, t.at.y+ascent, t.text, t.face, ink, 0)
	}
	for i, d := range l.charts {
		d.draw(c, edge+float64(i%l.columns)*(l.column+gap), l.rows[i/l.columns], l)
	}
	for _, t := range l.notes {
		c.text(t.at.x, t.at.y+ascent, t.text, t.face, ink, 0)
	}
}

// finite reports whether a value is a number.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
