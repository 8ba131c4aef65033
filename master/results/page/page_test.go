package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master/results"
)

func written(t testing.TB, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// onePlot makes a page of one plot and gives the points of its line, as they are drawn.
func onePlot(t testing.TB, q Plot) (x, y []float64) {
	t.Helper()
	text := written(t, &Page{Title: "t", Sections: []Section{{Groups: []Group{{Plots: []Plot{q}}}}}})
	path := regexp.MustCompile(`class="line l0" d="([^"]*)"`).FindStringSubmatch(text)
	low := regexp.MustCompile(`data-low="([^"]*)" data-top="([^"]*)"`).FindStringSubmatch(text)
	from := regexp.MustCompile(`data-from="([^"]*)" data-to="([^"]*)"`).FindStringSubmatch(text)
	if path == nil || low == nil || from == nil {
		t.Fatal(text)
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(html.UnescapeString(s), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i, piece := range strings.Split(path[1], "M")[1:] {
		if i > 0 {
			x, y = append(x, math.NaN()), append(y, math.NaN())
		}
		sx, sy := 0.0, 0.0
		list := regexp.MustCompile(`-?\d+`).FindAllString(piece, -1)
		for k := 0; k < len(list); k += 2 {
			sx, sy = sx+number(list[k]), sy+number(list[k+1])
			if k == 2 {
				continue // the dot at the beginning
			}
			x = append(x, number(from[1])+sx/whole*(number(from[2])-number(from[1])))
			y = append(y, number(low[2])-sy/whole*(number(low[2])-number(low[1])))
		}
	}
	return x, y
}

// What is drawn is what was given, to a millionth of the picture.
func TestLine(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct {
		q        Plot
		x, y     []float64
		accuracy float64
	}{
		"line":     {Plot{Lines: []Curve{{T: []float64{0, 1, 3}, V: []float64{1, -2, 4}}}}, []float64{0, 1, 3}, []float64{1, -2, 4}, 1e-5},
		"flat":     {Plot{Lines: []Curve{{T: []float64{0, 1, 2, 3}, V: []float64{1, 1, 1, 4}}}}, []float64{0, 2, 3}, []float64{1, 1, 4}, 1e-5},
		"constant": {Plot{Lines: []Curve{{T: []float64{0, 1, 2}, V: []float64{7, 7, 7}}}}, []float64{0, 2}, []float64{7, 7}, 1e-5},
		"jump":     {Plot{Lines: []Curve{{T: []float64{0, 1, 1, 2}, V: []float64{0, 0, 5, 5}}}}, []float64{0, 1, 1, 2}, []float64{0, 0, 5, 5}, 1e-5},
		"gap":      {Plot{Lines: []Curve{{T: []float64{0, 1, 2, 3, 4}, V: []float64{0, 1, nan, 1, 2}}}}, []float64{0, 1, nan, 3, 4}, []float64{0, 1, nan, 1, 2}, 1e-5},
		"held":     {Plot{Lines: []Curve{{T: []float64{0, 1, 2}, V: []float64{0, 3, 1}}}, Held: true}, []float64{0, 1, 1, 2, 2}, []float64{0, 0, 3, 3, 1}, 1e-5},
		"powers":   {Plot{Lines: []Curve{{T: []float64{0, 1, 2}, V: []float64{1e-3, 0, 10}}}, Log: true}, []float64{0, nan, 2}, []float64{-3, nan, 1}, 1e-5},
		"one":      {Plot{Lines: []Curve{{T: []float64{5}, V: []float64{2}}}}, []float64{5}, []float64{2}, 1e-5},
		"offset":   {Plot{Lines: []Curve{{T: []float64{1e9, 1e9 + 1}, V: []float64{1e5, 1e5 + 1e-3}}}}, []float64{1e9, 1e9 + 1}, []float64{1e5, 1e5 + 1e-3}, 2e-6},
	} {
		x, y := onePlot(t, tt.q)
		ok := len(x) == len(tt.x)
		for i := range min(len(x), len(tt.x)) {
			ok = ok && !(math.Abs(x[i]-tt.x[i]) > tt.accuracy) && !(math.Abs(y[i]-tt.y[i]) > tt.accuracy) && math.IsNaN(x[i]) == math.IsNaN(tt.x[i])
		}
		if !ok {
			t.Errorf("%s: drawn are %v, %v", name, x, y)
		}
	}
	// A line of few points has dots there.
	few := Plot{Lines: []Curve{{T: []float64{0, 1, 2}, V: []float64{0, nan, 1}}}}
	if text := written(t, &Page{Sections: []Section{{Groups: []Group{{Plots: []Plot{few}}}}}}); !strings.Contains(text, `<path class="dots l0" d="M0 1000000h0M1000000 0h0"/>`) {
		t.Error("the points of a line of few have no dots")
	}
	// A line with an error has a band of it about each of its parts: a tenth of 0.1 is a tenth of the picture.
	wide := Plot{Unit: "m", Lines: []Curve{{T: []float64{0, 1, 2, 3, 4}, V: []float64{0, 0, nan, 0.1, 0.1}, Error: 0.01}}}
	text := written(t, &Page{Sections: []Section{{Groups: []Group{{Plots: []Plot{wide}}}}}})
	const band = `<path class="band l0" d="M0 900000L250000 900000L250000 1100000L0 1100000ZM750000 -100000L1000000 -100000L1000000 100000L750000 100000Z"/>`
	if !strings.Contains(text, band) || !strings.Contains(text, "band: rms coupling error, ±0.01 m") {
		t.Errorf("there is no band %s in\n%s", band, text[strings.Index(text, "<figure"):])
	}
	for name, q := range map[string]Plot{
		"huge error": {Lines: []Curve{{T: []float64{0, 1}, V: []float64{-1, 1}, Error: math.MaxFloat64}}},
		"huge":       {Lines: []Curve{{T: []float64{0, 1}, V: []float64{-math.MaxFloat64, math.MaxFloat64}}}}, "tiny": {Lines: []Curve{{T: []float64{0, 5e-324}, V: []float64{0, 5e-324}}}},
		"none": {Name: "none"}, "no numbers": {Lines: []Curve{{T: []float64{0, 1}, V: []float64{nan, nan}}}}, "powers of nothing": {Lines: []Curve{{T: []float64{0, 1}, V: []float64{0, -1}}}, Log: true},
	} {
		text := written(t, &Page{Sections: []Section{{Groups: []Group{{Plots: []Plot{q}}}}}})
		if strings.Contains(text, "d=\"MNaN") || strings.Contains(text, "-9223372036854775808") || strings.Contains(text, `"NaN`) || strings.Contains(text, "%!") {
			t.Errorf("%s: %s", name, text[strings.Index(text, "<figure"):])
		}
	}
}

// Names come from files of anybody.
func TestEscaped(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'&` + "`" + `</template></title></style>-->{{.}}`
	fact := Fact{evil, evil}
	text := written(t, &Page{Title: evil, State: "failed", Reason: evil, Facts: []Fact{fact}, Warnings: []string{evil}, Document: evil, Made: evil, Sections: []Section{{
		Title: evil, Text: []string{evil}, Tables: []Table{{evil, []string{evil}, [][]string{{evil}}}}, Bars: []Bar{{evil, evil, 2}},
		Groups: []Group{{Title: evil, Plots: []Plot{{Name: evil, Unit: evil, Lines: []Curve{{T: []float64{0, 1}, V: []float64{0, 1}}}}},
			Charts: []Chart{{Name: evil, Note: evil, X: Axis{Name: evil, Labels: []string{evil}}, Shapes: []Shape{{Kind: Points, X: []float64{0}, Y: []float64{1}}}}}}},
	}}})
	for _, part := range []string{"<script>alert", "<img", "onerror=alert(2)>\"", "</script><script"} {
		if strings.Contains(text, part) {
			t.Errorf("the page has %s", part)
		}
	}
	if n := strings.Count(text, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	// It is well-formed, with what may stand open in HTML closed.
	closed := regexp.MustCompile(`<(meta|link|input|!DOCTYPE)([^>]*)>`).ReplaceAllString(text, "")
	closed = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`).ReplaceAllString(closed, "")
	closed = strings.NewReplacer(" hidden>", ">", " open>", ">").Replace(closed)
	d := xml.NewDecoder(strings.NewReader(closed))
	d.Entity = xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// The page asks for nothing: it names no place, and its policy forbids all.
func TestSelfContained(t *testing.T) {
	text := written(t, &Page{Title: "t", Sections: []Section{{Groups: []Group{{Plots: []Plot{{Name: "a", Lines: []Curve{{T: []float64{0, 1}, V: []float64{0, 1}}}}}}}}}})
	if m := regexp.MustCompile(`(?i)(https?:)?//[a-z]|@import|url\(|\ssrc=|<link rel="(?:stylesheet|preload)`).FindString(regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAllString(text, "")); m != "" {
		t.Errorf("the page has %q", m)
	}
	for _, part := range []string{"default-src &#39;none&#39;", "connect-src &#39;none&#39;", "script-src &#39;sha256-"} {
		if !strings.Contains(text, part) {
			t.Errorf("the policy lacks %s", part)
		}
	}
}

// A page of fifty variables with a hundred thousand points each has less than 2 MB,
// whatever they are, and their peaks.
func TestSize(t *testing.T) {
	const variables, n = 50, 100_001
	rng := rand.New(rand.NewSource(1))
	p := &Page{Title: "large", Sections: []Section{{Title: "Results", Groups: []Group{{Title: "c"}}}}}
	thin := results.NewThinner(32_000 / variables)
	for k := range variables {
		*thin = *results.NewThinner(32_000 / variables)
		for i := range n {
			v := rng.NormFloat64() // the worst case
			if i == 31_415+k {
				v = 50
			}
			thin.Add(float64(i)*1e-3, v)
		}
		q := Plot{Name: fmt.Sprint("c.v", k), Lines: []Curve{{Given: n}}}
		q.Lines[0].T, q.Lines[0].V = thin.Points(nil, nil)
		p.Sections[0].Groups[0].Plots = append(p.Sections[0].Groups[0].Plots, q)
	}
	text := written(t, p)
	if len(text) > 2_000_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
	if len(text) < 500_000 {
		t.Errorf("the page has %d bytes: where are the lines?", len(text))
	}
	for _, q := range p.Sections[0].Groups[0].Plots {
		peak := 0.0
		for i, v := range q.Lines[0].V {
			if v == 50 {
				peak = q.Lines[0].T[i]
			}
		}
		if math.Abs(peak-31.4) > 0.1 {
			t.Errorf("%s has lost its peak", q.Name)
		}
	}
	if !strings.Contains(text, " of 100001 points") {
		t.Error("the page does not say that points are left out")
	}
}

// Bounds near the values are drawn, with the area beyond them if they hold at each point; others are named below the plot.
func TestBounds(t *testing.T) {
	inf := math.Inf(1)
	q := Plot{Unit: "m", Lines: []Curve{{T: []float64{0, 10}, V: []float64{0, 1}}}, Bounds: []Bound{
		{From: 5, To: inf, Low: -inf, High: 1.5, Kind: Failed}, {From: 0, To: 5, Low: 0.5, High: inf, Once: true, Kind: Met},
		{From: 10, To: 10, Low: 0.4, High: 0.6, Kind: Met}, {From: -inf, To: inf, Low: -100, High: inf, Kind: Met}}}
	page := written(t, &Page{Sections: []Section{{Groups: []Group{{Plots: []Plot{q}}}}}})
	for _, want := range []string{
		`data-low="0" data-top="1.5"`, `<path class="forbidden" d="M500000 0H1000000V-1000000H500000z"/><path class="bound failed" d="M500000 0H1000000"/>`,
		`<path class="bound met once" d="M0 666667H500000"/>`, `<path class="bound met" d="M990000 733333H1010000M990000 600000H1010000"/>`, `bounds outside the plot: -100 m</p>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing:\n%s", want, page[strings.Index(page, "<figure"):][:2500])
		}
	}
}

// Warnings are open at the top, the first ones before the others.
func TestWarnings(t *testing.T) {
	page := written(t, &Page{Warnings: []string{"w1", "w2", "w3", "w4", "w5", "w6", "w7"}, Sections: []Section{{Title: "Results", Text: []string{"x"}}}})
	const want = `<details class="warnings" open><summary><h2>7 warnings</h2></summary><ul id="warnings"><li>w1</li><li>w2</li><li>w3</li><li>w4</li><li>w5</li></ul>` + "\n" +
		`<details><summary>more</summary><ul><li>w6</li><li>w7</li></ul></details></details>`
	if at := strings.Index(page, want); at < 0 || at > strings.Index(page, "<main>") {
		t.Errorf("warnings are not at the top:\n%s", page[strings.Index(page, "<header"):])
	}
}
