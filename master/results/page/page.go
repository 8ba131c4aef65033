package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/master/results/axis"
)

// Page is the content of a page, in this order. Empty parts are left out.
type Page struct {
	Title  string
	State  string // in a few words: how the run ended, or that it is running
	Tone   Tone   // of State
	Reason string // why the run is not complete
	Facts  []Fact // in a few words each
	// Lines names the results that the plots compare; empty = the plots have one line each.
	Lines    []string
	Warnings []string // shown at the top
	Sections []Section
	// Document is the manifest as JSON, which is shown at the end.
	Document string
	Made     string // program and time
	// Refresh makes the browser load the page again after this many seconds; 0 = never.
	Refresh int
	// Style and Script are added to those of the page.
	Style  template.CSS
	Script template.JS
	live   *liveState
}

// Plots returns the number of plots.
func (p *Page) Plots() (n int) {
	for _, s := range p.Sections {
		for _, g := range s.Groups {
			n += len(g.Plots)
		}
	}
	return n
}

// Tone is the colour of a state.
type Tone string

// The tones.
const (
	Good     Tone = "good"
	Bad      Tone = "bad"
	Doubtful Tone = "doubtful"
	Active   Tone = "active" // running
)

// Fact is one line of a list.
type Fact struct{ Name, Value string }

// Section is a part of a page with a title.
type Section struct {
	Title   string
	Text    []string      // paragraphs
	Picture template.HTML // SVG with escaped texts
	Tables  []Table
	Shares  string // title of the bars
	Bars    []Bar
	Groups  []Group       // of plots
	Body    template.HTML // after the groups
	Closed  bool          // initially collapsed
}

// Table is a table of texts.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// Bar is a share of a whole.
type Bar struct {
	Name, Value string
	Share       float64 // 0 to 1
}

// Group holds plots, or charts, that belong together.
type Group struct {
	Title  string
	Plots  []Plot
	Charts []Chart
	Small  bool // the charts are
	Maps   []Map
}

// Map is a table of values over two axes, whose colours are between those of the least and of the greatest value.
type Map struct {
	Name      string
	X, Y      string   // names of the axes
	Columns   []string // labels, from left to right
	Rows      []MapRow // from the bottom to the top
	Low, High string   // the least and the greatest value
}

// MapRow is a row of a map.
type MapRow struct {
	Label string
	Cells []MapCell // one for each column
}

// MapCell is a value of a map.
type MapCell struct {
	Text string
	Part float64 // 0 for the least value to 1 for the greatest; NaN = there is no value
}

// Plot is one variable over time.
type Plot struct {
	Name, Unit string
	Lines      []Curve
	Held       bool // steps instead of lines between points
	Log        bool // logarithmic axis of values
	Marks      []Mark
	Bounds     []Bound
}

// Curve is a line of a plot.
type Curve struct {
	Of    int       // index in Page.Lines, and of the colour
	T, V  []float64 // V is NaN where the line breaks
	Given int       // number of points before thinning; 0 = not thinned
	Bad   int       // number of points that are not finite
	// Error is drawn as a band about the line; 0 = none. It is in the unit of the plot, which has no logarithmic axis.
	Error float64
}

// Mark is a vertical line in a plot.
type Mark struct {
	T    float64
	Kind MarkKind
}

// Bound is what values are expected to be during a time: from Low to High, which may be infinite, at each point or, if Once,
// at one of them.
type Bound struct {
	From, To, Low, High float64 // s; From = To is a point
	Once                bool
	Kind                MarkKind // Met or Failed
}

// MarkKind is the meaning of a mark, or of a bound.
type MarkKind string

// The kinds of marks.
const (
	Event  MarkKind = "event"
	Met    MarkKind = "met"
	Failed MarkKind = "failed"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"style":   func(i int) int { return i % lineStyles },
		"percent": func(v float64) string { return strconv.FormatFloat(100*min(max(v, 0), 1), 'f', 2, 64) },
	}).Parse(pageHTML))
})

// Write writes a page as HTML.
func Write(w io.Writer, p *Page) error {
	scripts := ""
	for _, script := range []string{pageJS, string(p.Script)} {
		if script == "" {
			continue
		}
		sum := sha256.Sum256([]byte(script))
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	connect := "'none'"
	if p.live != nil {
		connect = "'self'"
	}
	view := &view{
		Page: p, CSS: template.CSS(colors() + pageCSS), JS: template.JS(pageJS), Live: p.live,
		Policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; connect-src " + connect +
			"; script-src" + scripts,
	}
	view.from, view.to = p.span()
	view.FromText, view.ToText = full(view.from), full(view.to)
	view.time = axis.New(view.from, view.to, mostX, false)
	view.time.Thin(labelRoom)
	for _, s := range p.Sections {
		vs := viewSection{Section: s}
		for _, g := range s.Groups {
			vg := viewGroup{Title: g.Title, Small: g.Small}
			for _, m := range g.Maps {
				vg.Maps = append(vg.Maps, m.draw())
			}
			for i := range g.Plots {
				vg.Plots = append(vg.Plots, view.draw(&g.Plots[i]))
			}
			for i := range g.Charts {
				vg.Charts = append(vg.Charts, g.Charts[i].draw())
			}
			vs.Groups = append(vs.Groups, vg)
		}
		view.Sections = append(view.Sections, vs)
	}
	return pageTemplate().Execute(w, view)
}

// view is the data of the template.
type view struct {
	*Page
	CSS              template.CSS
	JS               template.JS
	Policy           string
	Live             *liveState
	Sections         []viewSection
	FromText, ToText string // of the time, s
	drawn            int    // plots so far
	from, to         float64
	time             axis.Axis
}

type viewSection struct {
	Section
	Groups []viewGroup
}

type viewGroup struct {
	Title  string
	Plots  []drawn
	Charts []drawnChart
	Small  bool
	Maps   []drawnMap
}

// drawn is the data of a plot in the template. Coordinates in paths are from 0 to whole.
type drawn struct {
	*Plot
	Number        int
	Paths         []linePath
	Low, Top      string // value at the bottom and at the top of the picture
	YTitle, XName string
	XTicks        []tick
	YTicks        []tick
	Grid          string
	Marked        []markLines
	Bounds        []drawnBound
	Beyond        []string // bounds that are too far from the values to be drawn
	Points, Given int      // of all lines
	Bad           int
	Integral      bool // all values are whole, and hold
	Thinned       bool
	Nothing       bool // there are no finite points
	Error         float64
}

type linePath struct {
	Of   int
	Path string
	Band string // "" = none
	Dots string // at the points of a line that has few; "" = none
}

// Notes returns what is below a plot.
func (d drawn) Notes() string {
	var list []string
	add := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(d.Thinned, "%d of %d points", d.Points, d.Given)
	add(d.Bad > 0, "%d not finite", d.Bad)
	add(d.Error > 0, "band: rms coupling error, ±%.2g %s", d.Error, d.Unit)
	add(d.Beyond != nil, "bounds outside the plot: %s %s", strings.Join(d.Beyond, ", "), d.Unit)
	return strings.TrimSpace(strings.Join(list, "; "))
}

// mostDots is the greatest number of points of a line that are marked. The script has it, too.
const mostDots = 20

// markLines are the marks of one kind.
type markLines struct {
	Kind MarkKind
	Path string
}

// drawnBound is the picture of a bound: its lines, and the area where values may not be, if it is not a point.
type drawnBound struct {
	Kind       MarkKind
	Once       bool
	Path, Area string
}

type tick struct {
	At   float64 // position from the left or the bottom, 0 to 1
	Text string
}

// ticks returns the labels of an axis.
func ticks(a *axis.Axis) (out []tick) {
	for _, t := range a.Ticks {
		out = append(out, tick{a.At(t.Value), t.Text})
	}
	return out
}

// Left returns the style of a label of the time axis.
func (t tick) Left() template.CSS { return template.CSS(fmt.Sprintf("left:%.2f%%", 100*t.At)) }

// Bottom returns the style of a label of the value axis.
func (t tick) Bottom() template.CSS { return template.CSS(fmt.Sprintf("bottom:%.2f%%", 100*t.At)) }

// span returns the time range of the plots.
func (p *Page) span() (from, to float64) {
	if p.live != nil {
		return p.live.from, p.live.to
	}
	from, to = math.Inf(1), math.Inf(-1)
	for _, s := range p.Sections {
		for _, g := range s.Groups {
			for _, q := range g.Plots {
				for _, l := range q.Lines {
					if n := len(l.T); n > 0 {
						from, to = min(from, l.T[0]), max(to, l.T[n-1])
					}
				}
			}
		}
	}
	if from > to {
		return 0, 1
	}
	if from == to {
		to = from + 1
	}
	return from, to
}

// whole is the side of the square in which a plot is drawn; the page stretches it. Browsers draw
// in single precision, which represents such integers exactly.
const whole = 1_000_000

// Of the labels of an axis: about how many there are, and the characters of all on the axis of x.
const (
	mostX, mostY = 5, 4
	labelRoom    = 31
)

// draw draws a plot.
func (w *view) draw(q *Plot) drawn {
	d := drawn{Plot: q, Number: w.drawn}
	w.drawn++
	low, top := math.Inf(1), math.Inf(-1)
	d.Integral = q.Held && !q.Log
	for _, l := range q.Lines {
		d.Integral = d.Integral && axis.Integral(l.V)
		for _, v := range l.V {
			if v = q.scaled(v); v-v == 0 {
				low, top = min(low, v), max(top, v)
			}
		}
		d.Thinned = d.Thinned || l.Given > len(l.T)+l.Bad
		d.Points, d.Given, d.Bad = d.Points+len(l.T), d.Given+max(l.Given, len(l.T)), d.Bad+l.Bad
	}
	if low > top {
		d.Nothing = true
		low, top = 0, 1
	}
	low, top, d.Beyond = w.withBounds(q, low, top)
	y := axis.Rounded(low, top, mostY, q.Log, d.Integral)
	low, top = y.Low, y.High
	d.Low, d.Top = full(low), full(top)
	d.Bounds = w.bounds(q, low, top)
	for i := range q.Lines {
		d.Paths = append(d.Paths, linePath{q.Lines[i].Of, w.line(q, &q.Lines[i], low, top), w.band(&q.Lines[i], low, top), w.dots(q, &q.Lines[i], low, top)})
		if e := q.Lines[i].Error; e > 0 {
			d.Error = max(d.Error, e)
		}
	}
	d.XTicks, d.YTicks = ticks(&w.time), ticks(&y)
	d.XName, d.YTitle = "time "+w.time.Title("s"), y.Title(q.Unit)
	d.Grid = grid(d.XTicks, d.YTicks)
	for _, kind := range []MarkKind{Event, Met, Failed} {
		path := ""
		for _, m := range q.Marks {
			if m.Kind == kind && m.T >= w.from && m.T <= w.to {
				path += fmt.Sprintf("M%d 0v%d", int(math.Round((m.T-w.from)/(w.to-w.from)*whole)), whole)
			}
		}
		if path != "" {
			d.Marked = append(d.Marked, markLines{kind, path})
		}
	}
	return d
}

// farthest is how many times their range the limits of a bound may be from the values to be drawn.
const farthest = 3.0

// withBounds returns the range of values and of the limits near them, and names the other limits.
func (w *view) withBounds(q *Plot, low, top float64) (from, to float64, beyond []string) {
	room := farthest * (top - low)
	if room == 0 {
		room = max(math.Abs(low), 1)
	}
	from, to = low, top
	for _, b := range q.Bounds {
		for _, v := range []float64{b.Low, b.High} {
			switch at := q.scaled(v); {
			case at-at != 0:
			case at < low-room || at > top+room:
				beyond = append(beyond, strconv.FormatFloat(v, 'g', 6, 64))
			default:
				from, to = min(from, at), max(to, at)
			}
		}
	}
	return from, to, beyond
}

// bounds draws the bounds of a plot whose values are drawn from low to top. Each is at least pointWide wide.
func (w *view) bounds(q *Plot, low, top float64) (out []drawnBound) {
	const pointWide = whole / 50
	for _, b := range q.Bounds {
		d := drawnBound{Kind: b.Kind, Once: b.Once}
		left, _ := w.place(max(b.From, w.from), 0, low, top)
		right, _ := w.place(min(b.To, w.to), 0, low, top)
		if b.To < w.from || b.From > w.to {
			continue
		}
		point := right-left < pointWide
		if point {
			left, right = (left+right-pointWide)/2, (left+right+pointWide)/2
		}
		for i, v := range []float64{b.Low, b.High} {
			at := q.scaled(v)
			if at-at != 0 || at < low || at > top {
				continue
			}
			_, y := w.place(0, at, low, top)
			d.Path += fmt.Sprintf("M%d %dH%d", left, y, right)
			if !point && !b.Once {
				d.Area += fmt.Sprintf("M%d %dH%dV%dH%dz", left, y, right, 2*whole-3*whole*i, left)
			}
		}
		if d.Path != "" {
			out = append(out, d)
		}
	}
	return out
}

// line returns the path of the line of a plot whose values are drawn from low to top.
func (w *view) line(q *Plot, l *Curve, low, top float64) string {
	var b strings.Builder
	pen, lastX, lastY := false, 0, 0
	flat := -1 // end of a horizontal segment that is not written yet
	to := func(x, y int) {
		b.WriteString(pair(x-lastX, y-lastY))
		lastX, lastY = x, y
	}
	end := func() {
		if flat >= 0 {
			to(flat, lastY)
			flat = -1
		}
	}
	for i, t := range l.T {
		v := q.scaled(l.V[i])
		if v-v != 0 {
			end()
			pen = false
			continue
		}
		x, y := w.place(t, v, low, top)
		switch {
		case !pen:
			fmt.Fprintf(&b, "M%d %dl0 0", x, y) // makes isolated points visible
			pen, lastX, lastY = true, x, y
		case y == lastY:
			flat = x
		default:
			end()
			if q.Held && x != lastX {
				to(x, lastY)
			}
			to(x, y)
		}
	}
	end()
	return b.String()
}

// band returns the path of the band about a line.
func (w *view) band(l *Curve, low, top float64) string {
	var b strings.Builder
	if !(l.Error > 0) || math.IsInf(l.Error, 0) {
		return ""
	}
	for from := 0; from < len(l.T); from++ {
		to := from
		for to < len(l.T) && l.V[to]-l.V[to] == 0 {
			to++
		}
		command := "M"
		point := func(i int, by float64) {
			x, y := w.place(l.T[i], l.V[i]+by, low, top)
			fmt.Fprintf(&b, "%s%d %d", command, x, min(max(y, -whole), 2*whole))
			command = "L"
		}
		for i := from; i < to; i++ {
			point(i, l.Error)
		}
		for i := to - 1; i >= from; i-- {
			point(i, -l.Error)
		}
		if from = to; command == "L" {
			b.WriteString("Z")
		}
	}
	return b.String()
}

// place returns the place of a point.
func (w *view) place(t, v, low, top float64) (x, y int) {
	return int(math.Round((t - w.from) / (w.to - w.from) * whole)), int(math.Round((top/2 - v/2) / (top/2 - low/2) * whole))
}

// dots returns the path of the dots of a line; "" if it has many points or holds its values.
func (w *view) dots(q *Plot, l *Curve, low, top float64) string {
	var b strings.Builder
	if len(l.T) > mostDots || q.Held {
		return ""
	}
	for i, t := range l.T {
		if v := q.scaled(l.V[i]); v-v == 0 {
			x, y := w.place(t, v, low, top)
			fmt.Fprintf(&b, "M%d %dh0", x, y)
		}
	}
	return b.String()
}

// pair formats two numbers of a path as short as possible.
func pair(x, y int) string {
	s := strconv.Itoa(x)
	if x >= 0 {
		s = " " + s
	}
	if y >= 0 {
		return s + " " + strconv.Itoa(y)
	}
	return s + strconv.Itoa(y)
}

func grid(x, y []tick) string {
	var b strings.Builder
	for _, t := range x {
		fmt.Fprintf(&b, "M%d 0v%d", int(math.Round(t.At*whole)), whole)
	}
	for _, t := range y {
		fmt.Fprintf(&b, "M0 %dh%d", int(math.Round((1-t.At)*whole)), whole)
	}
	return b.String()
}

// scaled returns the position of a value on the axis, NaN if it has none.
func (q *Plot) scaled(v float64) float64 {
	if !q.Log {
		return v
	}
	if v <= 0 {
		return math.NaN()
	}
	return math.Log10(v)
}

// colors returns the style of lines.
func colors() string {
	var b strings.Builder
	set := func(of func(axis.Style) color.RGBA) {
		b.WriteString(":root{")
		for i := range axis.Colors {
			c := of(axis.LineStyle(i))
			fmt.Fprintf(&b, "--c%d:#%02x%02x%02x;", i, c.R, c.G, c.B)
		}
		b.WriteString("}")
	}
	set(func(s axis.Style) color.RGBA { return s.Light })
	b.WriteString("@media (prefers-color-scheme:dark){")
	set(func(s axis.Style) color.RGBA { return s.Dark })
	b.WriteString("}")
	for i := range lineStyles {
		fmt.Fprintf(&b, ".l%d{stroke:var(--c%d);color:var(--c%d)", i, i%axis.Colors, i%axis.Colors)
		if dash := axis.LineStyle(i).Dash; dash != nil {
			fmt.Fprintf(&b, ";stroke-dasharray:%s", strings.Trim(fmt.Sprint(dash), "[]"))
		}
		b.WriteString("}")
	}
	return b.String()
}

// lineStyles is the number of different styles of lines.
const lineStyles = 12

func full(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
