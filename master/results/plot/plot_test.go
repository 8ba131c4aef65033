package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master/results/axis"
)

// text is a text of an SVG.
type text struct{ x, y, length, share float64 }

// read parses a picture as SVG: its size, its texts, and the data of its paths.
func read(t *testing.T, p Picture) (width, height float64, texts map[string][]text, paths []string) {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	texts = map[string][]text{}
	d := xml.NewDecoder(&b)
	var in *text
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return width, height, texts, paths
		} else if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			value := func(name string) string {
				for _, a := range e.Attr {
					if a.Name.Local == name {
						return a.Value
					}
				}
				return ""
			}
			number := func(name string) float64 { v, _ := strconv.ParseFloat(value(name), 64); return v }
			switch e.Name.Local {
			case "svg":
				if width == 0 {
					width, height = number("width"), number("height")
				}
			case "path":
				paths = append(paths, value("d"))
			case "text":
				in = &text{number("x"), number("y"), number("textLength"), map[string]float64{"middle": 0.5, "end": 1}[value("text-anchor")]}
			}
		case xml.CharData:
			if in != nil {
				texts[string(e)] = append(texts[string(e)], *in)
				in = nil
			}
		}
	}
}

func curve(x []float64, y ...float64) []Line { return []Line{{X: x, Y: y, Style: axis.LineStyle(0)}} }

// No text leaves the picture, and none lies over another one.
func TestTextsHaveRoom(t *testing.T) {
	long := strings.Repeat("plant.conveyor_12.gearbox", 30)
	times := []float64{0, 1, 2}
	p := Picture{Notes: []Note{{"Constant", []string{"a = 1", "b = 2", long}}, {"", []string{"text"}}}}
	for i := range 5 {
		p.Legend = append(p.Legend, Entry{Name: long[:10+60*i], Style: axis.LineStyle(i)})
	}
	for i, y := range [][]float64{{0, 1, 4}, {69 - 1e-6, 69, 69 + 1e-6}, {1e9, 1e9 + 1, 1e9}, {-1e308, 1e308, 0}, {1e-300, 2e-300, 3e-300}, {1, math.NaN(), 1}, {math.NaN(), math.NaN(), math.NaN()}} {
		p.Charts = append(p.Charts, Chart{Title: long[:10+100*i], X: Axis{Name: "time", Unit: "s"}, Y: Axis{Name: long[:i*15], Unit: "m"}, Lines: curve(times, y...)})
	}
	for range 2 { // in one and in two columns
		width, height, texts, _ := read(t, p)
		var all []text
		for s, at := range texts {
			for _, a := range at {
				a.x -= a.share * a.length
				if a.x < 0 || a.x+a.length > width || a.y < ascent || a.y > height {
					t.Errorf("%q at %v in %g × %g", s, a, width, height)
				}
				for _, b := range all {
					if math.Abs(a.y-b.y) < 9 && a.x < b.x+b.length && b.x < a.x+a.length {
						t.Errorf("%q at %v lies over a text at %v", s, a, b)
					}
				}
				all = append(all, a)
			}
		}
		if n := len(texts["nothing to draw"]); len(p.Charts) > 3 && n != 1 {
			t.Errorf("%d charts without anything", n)
		}
		p.Charts = p.Charts[:3]
	}
}

// Values lie where the labels of the axes say.
func TestLines(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4}
	whole := func(lines []Line, log bool) Picture {
		return Picture{Charts: []Chart{{X: Axis{Low: 0, High: 4}, Y: Axis{Low: 1, High: 100, Log: log}, Lines: lines}}}
	}
	held := curve(x, 1, 1, 100, 100, 1)
	held[0].Held, held[0].Start = true, true
	for name, tt := range map[string]struct {
		p    Picture
		want []string // paths in the frame, which is 1 wide and high
	}{
		"linear":      {whole(curve(x, 1, 25.75, 50.5, 100, 1), false), []string{"0,0 1/4,1/4 2/4,2/4 3/4,1 1,0"}},
		"logarithmic": {whole(curve(x, 1, 10, 100, 10, 1), true), []string{"0,0 1/4,2/4 2/4,1 3/4,2/4 1,0"}},
		"interrupted": {whole(curve(x, 1, 100, math.NaN(), -1, 1), true), []string{"0,0 1/4,1", "1,0"}},
		"held":        {whole(held, false), []string{"0,0", "0,0 1/4,0 2/4,0 2/4,1 3/4,1 1,1 1,0"}},
		"closed":      {whole(curve([]float64{0, 4, 0, 4, 0}, 1, 100, 1, 100, 1), false), []string{"0,0 1,1 0,0"}},
	} {
		_, _, _, paths := read(t, tt.p)
		at := slices.IndexFunc(paths, func(d string) bool { return strings.Count(d, "L") == 4 }) // the frame of the chart
		frame := points(t, paths[at])
		w, h := frame[2].x-frame[0].x, frame[2].y-frame[0].y
		if len(paths)-at-1 != len(tt.want) {
			t.Errorf("%s: paths %q", name, paths[at+1:])
			continue
		}
		for i, d := range paths[at+1:] {
			want := strings.Fields(tt.want[i])
			got := points(t, strings.TrimSuffix(d, "h0"))
			if len(got) != len(want) {
				t.Errorf("%s: %s, want %s", name, d, tt.want[i])
				continue
			}
			for k, p := range got {
				x, y, _ := strings.Cut(want[k], ",")
				if math.Abs(p.x-lineWidth-fraction(x)*w) > 0.06 || math.Abs(p.y-lineWidth-(1-fraction(y))*h) > 0.06 {
					t.Errorf("%s: point %d of %s, want %s", name, k, d, tt.want[i])
				}
			}
		}
	}
}

func points(t *testing.T, d string) (out []point) {
	t.Helper()
	for part := range strings.SplitSeq(strings.TrimPrefix(d, "M"), "L") {
		x, y, _ := strings.Cut(part, " ")
		px, err1 := strconv.ParseFloat(x, 64)
		py, err2 := strconv.ParseFloat(y, 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		out = append(out, point{px, py})
	}
	return out
}

func fraction(text string) float64 {
	a, b, found := strings.Cut(text, "/")
	v, _ := strconv.ParseFloat(a, 64)
	if found {
		w, _ := strconv.ParseFloat(b, 64)
		v /= w
	}
	return v
}

// A PNG shows the same at twice the size, and nothing beyond the frame and the lines along it.
func TestPNG(t *testing.T) {
	style := axis.Style{Light: color.RGBA{1, 2, 3, 255}}
	yellow := color.RGBA{250, 250, 0, 255}
	p := Picture{Charts: []Chart{{X: Axis{Low: 0, High: 1}, Y: Axis{Low: 0, High: 1},
		Lines: []Line{{X: []float64{-9, 0.5, 0.5, 9}, Y: []float64{0.5, 0.5, 9, 9}, Style: style}}, Areas: []Area{{0, 0.25, -3, 9, yellow}}}}}
	width, height, _, paths := read(t, p)
	var b bytes.Buffer
	if err := p.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if s := picture.Bounds(); s.Dx() != int(2*width) || s.Dy() != int(2*height) {
		t.Fatalf("%v for %g × %g", s, width, height)
	}
	at := slices.IndexFunc(paths, func(d string) bool { return strings.Count(d, "L") == 4 })
	frame := points(t, paths[at])
	left, top, right, bottom := 2*frame[0].x, 2*frame[0].y, 2*frame[2].x, 2*frame[2].y
	dots := map[color.Color]int{}
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			c := color.RGBAModel.Convert(picture.At(x, y))
			if dots[c]++; c == style.Light || c == yellow {
				if x, y := float64(x), float64(y); x < left-4 || x > right+4 || y < top-4 || y > bottom+4 {
					t.Fatalf("a point of %v at %v, %v, beyond the frame %v", c, x, y, frame)
				}
			}
		}
	}
	half, quarter := (right-left)/2+(bottom-top)/2, (right-left)*(bottom-top)/4
	if n := float64(dots[style.Light]); n < 2*half || n > 4*half {
		t.Errorf("%v points of a line that is %v long", n, half)
	}
	if n := float64(dots[yellow]); math.Abs(n/quarter-1) > 0.05 {
		t.Errorf("%v points of an area of %v", n, quarter)
	}
}
