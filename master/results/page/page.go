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

// Page is what a page shows, in this order. Empty parts are left out.
type Page struct {
	Title    string
	State    string // in a few words: how the run ended, or that it is running
	Tone     Tone   // of State
	Reason   string // why it is not complete
	Facts    []Fact // in a few words each
	Warnings []string
	Sections []Section
	// Document is a JSON document that is shown as it is at the end, the manifest.
	Document string
	Made     string // by what and when
	live     *liveState
}

// Tone is the colour of a state.
type Tone string

// The tones.
const (
	Good     Tone = "good"
	Bad      Tone = "bad"
	Doubtful Tone = "doubtful"
	Active   Tone = "active" // the run goes on
)

// Fact is one line of a list.
type Fact struct{ Name, Value string }

// Section is a part of a page under its title.
type Section struct {
	Title   string
	Text    []string      // paragraphs
	Picture template.HTML // an SVG of our own making, whose texts are escaped
	Tables  []Table
	Shares  string // title of the bars
	Bars    []Bar
	Groups  []Group // of plots, shown under their titles
	Closed  bool    // it is opened by the reader
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

// Group holds plots that belong together.
type Group struct {
	Title string
	Plots []Plot
}

// Plot is one variable over time.
type Plot struct {
	Name, Unit string
	T, V       []float64 // V is NaN where the line breaks
	Held       bool      // a value holds until the next one; else lines join them
	Log        bool      // the axis of values is logarithmic
	Given      int       // points of which these were taken; 0 = these are all
	Bad        int       // points that are not finite
	Marks      []Mark
}

// Mark is a time that a plot shows as a line from its bottom to its top.
type Mark struct {
	T    float64
	Kind MarkKind
}

// MarkKind is what happened then.
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

// Write writes a page.
func Write(w io.Writer, p *Page) error {
	sum := sha256.Sum256([]byte(pageJS))
	connect := "'none'"
	if p.live != nil {
		connect = "'self'"
	}
	view := &view{
		Page: p, CSS: template.CSS(pageCSS), JS: template.JS(pageJS), Live: p.live,
		Policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; connect-src " + connect +
			"; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
	view.from, view.to = p.span()
	view.FromText, view.ToText = full(view.from), full(view.to)
	for _, s := range p.Sections {
		vs := viewSection{Section: s}
		for _, g := range s.Groups {
			vg := viewGroup{Title: g.Title}
			for i := range g.Plots {
				vg.Plots = append(vg.Plots, view.draw(&g.Plots[i]))
			}
			vs.Groups = append(vs.Groups, vg)
		}
		view.Sections = append(view.Sections, vs)
	}
	return pageTemplate().Execute(w, view)
}

// view is a page as the template wants it.
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
	Title string
	Plots []drawn
}

// drawn is a plot as it is drawn. All numbers in Path lie between 0 and whole.
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
	Nothing  bool // no point can be drawn
}

// markLines are the marks of one kind.
type markLines struct {
	Kind MarkKind
	Path string
}

type tick struct {
	At   float64 // part of the way from the left or from the bottom
	Text string
}

// Style places a label.
func (t tick) Left() template.CSS   { return template.CSS(fmt.Sprintf("left:%.2f%%", 100*t.At)) }
func (t tick) Bottom() template.CSS { return template.CSS(fmt.Sprintf("bottom:%.2f%%", 100*t.At)) }

// span returns the time that the plots cover.
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

// whole is the side of the square that a plot is drawn in; the page stretches it. Less
// than the numbers below which browsers draw in single precision.
const whole = 1_000_000

// draw makes the picture of a plot.
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
	var b strings.Builder
	pen, lastX, lastY := false, 0, 0
	flat := -1 // x to which the line goes on without a change
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
			fmt.Fprintf(&b, "M%d %dl0 0", x, y) // a point of its own is seen, too
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
	d.Path = b.String()
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

// pair returns two numbers for a path, as short as they can be.
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

// scaled is a value as it is drawn.
func (q *Plot) scaled(v float64) float64 {
	if !q.Log {
		return v
	}
	if v <= 0 {
		return math.NaN()
	}
	return math.Log10(v)
}

// widened returns a picture room above and below the values.
func widened(low, top float64) (float64, float64) {
	const part = 0.06
	room := part * (top/2 - low/2) * 2
	if smallest := 1e-9 * max(math.Abs(low), math.Abs(top)); room < smallest {
		room = max(smallest, room) // what is left is rounding
	}
	if room == 0 {
		room = 1
	}
	return max(low-room, -math.MaxFloat64), min(top+room, math.MaxFloat64)
}

// ticks chooses round numbers for an axis, about so many.
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

// label writes a number to the digit of the step, not longer than it must be.
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
