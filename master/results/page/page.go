package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
)

// Page is the content of a page, in this order. Empty parts are left out.
type Page struct {
	Title    string
	State    string // in a few words: how the run ended, or that it is running
	Tone     Tone   // of State
	Reason   string // why the run is not complete
	Facts    []Fact // in a few words each
	Warnings []string
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
}

// Plot is one variable over time.
type Plot struct {
	Name, Unit string
	T, V       []float64 // V is NaN where the line breaks
	Held       bool      // steps instead of lines between points
	Log        bool      // logarithmic axis of values
	Given      int       // number of points before thinning; 0 = not thinned
	Bad        int       // number of points that are not finite
	Marks      []Mark
}

// Mark is a vertical line in a plot.
type Mark struct {
	T    float64
	Kind MarkKind
}

// MarkKind is the meaning of a mark.
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
		Page: p, CSS: template.CSS(pageCSS), JS: template.JS(pageJS), Live: p.live,
		Policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; connect-src " + connect +
			"; script-src" + scripts,
	}
	view.from, view.to = p.span()
	view.FromText, view.ToText = full(view.from), full(view.to)
	for _, s := range p.Sections {
		vs := viewSection{Section: s}
		for _, g := range s.Groups {
			vg := viewGroup{Title: g.Title, Small: g.Small}
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
	Plots            int
	from, to         float64
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
}

// drawn is the data of a plot in the template. Coordinates in Path are from 0 to whole.
type drawn struct {
	*Plot
	Number   int
	Path     string
	Low, Top string // value at the bottom and at the top of the picture
	XTicks   []tick
	YTicks   []tick
	Grid     string
	Lines    []markLines
	Thinned  bool
	Points   int
	Nothing  bool // there are no finite points
}

// markLines are the marks of one kind.
type markLines struct {
	Kind MarkKind
	Path string
}

type tick struct {
	At   float64 // position from the left or the bottom, 0 to 1
	Text string
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
				if n := len(q.T); n > 0 {
					from, to = min(from, q.T[0]), max(to, q.T[n-1])
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

// draw draws a plot.
func (w *view) draw(q *Plot) drawn {
	d := drawn{Plot: q, Number: w.Plots, Points: len(q.T), Thinned: q.Given > len(q.T)+q.Bad}
	w.Plots++
	low, top := math.Inf(1), math.Inf(-1)
	for _, v := range q.V {
		if v = q.scaled(v); v-v == 0 {
			low, top = min(low, v), max(top, v)
		}
	}
	if low > top {
		d.Nothing = true
		low, top = 0, 1
	}
	low, top = widened(low, top)
	d.Low, d.Top = full(low), full(top)
	d.Path = w.line(q, low, top)
	d.XTicks, d.YTicks = ticks(w.from, w.to, 5, false), ticks(low, top, 4, q.Log)
	if n := len(d.XTicks); n > 0 {
		d.XTicks[n-1].Text += " s"
	}
	d.Grid = grid(d.XTicks, d.YTicks)
	for _, kind := range []MarkKind{Event, Met, Failed} {
		path := ""
		for _, m := range q.Marks {
			if m.Kind == kind && m.T >= w.from && m.T <= w.to {
				path += fmt.Sprintf("M%d 0v%d", int(math.Round((m.T-w.from)/(w.to-w.from)*whole)), whole)
			}
		}
		if path != "" {
			d.Lines = append(d.Lines, markLines{kind, path})
		}
	}
	return d
}

// line returns the path of the line of a plot whose values are drawn from low to top.
func (w *view) line(q *Plot, low, top float64) string {
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
	for i, t := range q.T {
		v := q.scaled(q.V[i])
		if v-v != 0 {
			end()
			pen = false
			continue
		}
		x := int(math.Round((t - w.from) / (w.to - w.from) * whole))
		y := int(math.Round((top/2 - v/2) / (top/2 - low/2) * whole))
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
		fmt.Fprintf(&b, "M%d 0v%d", int(t.At*whole), whole)
	}
	for _, t := range y {
		fmt.Fprintf(&b, "M0 %dh%d", int((1-t.At)*whole), whole)
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

// widened adds a margin above and below the values.
func widened(low, top float64) (float64, float64) {
	const part = 0.06
	room := part * (top/2 - low/2) * 2
	if smallest := 1e-9 * max(math.Abs(low), math.Abs(top)); room < smallest {
		room = max(smallest, room) // smaller differences are rounding
	}
	if room == 0 {
		room = 1
	}
	return max(low-room, -math.MaxFloat64), min(top+room, math.MaxFloat64)
}

// ticks chooses about most round numbers for an axis.
func ticks(low, top float64, most int, log bool) []tick {
	var out []tick
	add := func(v float64, text string) {
		if v >= low && v <= top {
			out = append(out, tick{(v/2 - low/2) / (top/2 - low/2), text})
		}
	}
	if log {
		mantissas := []float64{1}
		if top-low < 3 {
			mantissas = []float64{1, 2, 5}
		}
		every := max(1, int(top-low)/most)
		for k := math.Floor(low); k <= top; k += float64(every) {
			for _, m := range mantissas {
				add(k+math.Log10(m), fmt.Sprintf("%ge%g", m, k))
			}
		}
		if len(out) > 1 {
			return out
		}
		out = nil
	}
	step := top/float64(most) - low/float64(most)
	decade := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*decade >= step*(1-1e-9) {
			step = m * decade
			break
		}
	}
	for i := math.Ceil(low / step); i*step <= top && len(out) <= 2*most; i++ {
		if v := i * step; log {
			add(v, strconv.FormatFloat(math.Pow(10, v), 'g', 3, 64))
		} else {
			add(v, label(v, step))
		}
	}
	return out
}

// label formats a number with as many digits as the step requires.
func label(v, step float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, int(math.Floor(math.Log10(math.Abs(v))))-int(math.Floor(math.Log10(step)))) + 1
	s := strconv.FormatFloat(v, 'g', digits, 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(v) < 1e5 && math.Abs(v) >= 1e-3 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	mantissa, exponent, ok := strings.Cut(s, "e")
	if !ok {
		if s = strconv.FormatFloat(v, 'e', max(0, digits-1), 64); !strings.Contains(s, "e") {
			return s
		}
		mantissa, exponent, _ = strings.Cut(s, "e")
	}
	n, err := strconv.Atoi(exponent)
	if err != nil {
		return s
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + "e" + strconv.Itoa(n)
}

func full(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
