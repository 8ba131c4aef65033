package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/ssp/graph"
)

func draw(t testing.TB, s *graph.System) string {
	t.Helper()
	var b bytes.Buffer
	if err := graph.SVG(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// random makes a system with feedback, bundles, self connections and loose nodes.
func random(seed int64) *graph.System {
	r := rand.New(rand.NewSource(seed))
	n := 1 + r.Intn(60)
	s := &graph.System{Title: fmt.Sprint("random ", seed)}
	for i := range n {
		s.Nodes = append(s.Nodes, graph.Node{Name: fmt.Sprint("n", i), Detail: strings.Repeat("x", r.Intn(3)*20)})
	}
	for range r.Intn(3 * n) {
		e := graph.Edge{From: r.Intn(n), To: r.Intn(n), Output: fmt.Sprint("y", r.Intn(3)), Input: fmt.Sprint("u", r.Intn(9))}
		if r.Intn(5) == 0 {
			e.Loop = 1 + r.Intn(3)
		}
		s.Edges = append(s.Edges, e)
	}
	if len(s.Edges) > 2 {
		s.Bonds = []graph.Bond{{Name: "bond", Edges: []int{0, 1}}}
	}
	return s
}

type rect struct{ x, y, w, h float64 }

func (a rect) overlaps(b rect) bool {
	const tolerance = 0.11 // numbers are rounded to 0.1
	return a.x+a.w > b.x+tolerance && b.x+b.w > a.x+tolerance && a.y+a.h > b.y+tolerance && b.y+b.h > a.y+tolerance
}

// picture is what a test looks at in an SVG.
type picture struct {
	w, h  float64
	boxes []rect
	wires []string
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func look(t testing.TB, svg string) picture {
	t.Helper()
	var p picture
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		texts := map[string]string{}
		for _, a := range e.Attr {
			texts[a.Name.Local] = a.Value
		}
		attr := func(name string) float64 { return number(t, texts[name]) }
		class, path := texts["class"], texts["d"]
		switch {
		case e.Name.Local == "svg":
			p.w, p.h = attr("width"), attr("height")
		case strings.HasPrefix(class, "box"):
			p.boxes = append(p.boxes, rect{attr("x"), attr("y"), attr("width"), attr("height")})
		case strings.HasPrefix(class, "wire") && strings.Contains(path, "C"):
			p.wires = append(p.wires, path)
		}
	}
}

var numbers = regexp.MustCompile(`-?[0-9.]+`)

// ends returns the points where a curve begins and ends.
func ends(t testing.TB, path string) (x1, y1, x2, y2 float64) {
	t.Helper()
	all := numbers.FindAllString(path, -1)
	if len(all) < 4 {
		t.Fatal(path)
	}
	n := len(all)
	return number(t, all[0]), number(t, all[1]), number(t, all[n-2]), number(t, all[n-1])
}

// In every picture each component has a box, no two overlap, all is on the page, each
// pair of connected components has its curve, it begins and ends at sides of boxes, and its
// straight parts cross none.
func TestPictures(t *testing.T) {
	for seed := range int64(300) {
		s := random(seed)
		svg := draw(t, s)
		if again := draw(t, s); again != svg {
			t.Fatalf("seed %d: two pictures of one system differ", seed)
		}
		p := look(t, svg)
		if len(p.boxes) != len(s.Nodes) {
			t.Fatalf("seed %d: %d boxes for %d nodes", seed, len(p.boxes), len(s.Nodes))
		}
		pairs := map[[2]int]bool{}
		for _, e := range s.Edges {
			pairs[[2]int{e.From, e.To}] = true
		}
		if len(p.wires) != len(pairs) {
			t.Fatalf("seed %d: %d curves for %d pairs", seed, len(p.wires), len(pairs))
		}
		for i, a := range p.boxes {
			if a.x < 0 || a.y < 0 || a.x+a.w > p.w || a.y+a.h > p.h {
				t.Fatalf("seed %d: %v is not on the page of %g × %g", seed, a, p.w, p.h)
			}
			for _, b := range p.boxes[:i] {
				if a.overlaps(b) {
					t.Fatalf("seed %d: %v and %v overlap", seed, a, b)
				}
			}
		}
		at := func(x, y float64) bool {
			for _, b := range p.boxes {
				if (math.Abs(x-b.x) < 0.2 || math.Abs(x-b.x-b.w) < 0.2) && y > b.y && y < b.y+b.h {
					return true
				}
			}
			return false
		}
		for _, w := range p.wires {
			x1, y1, x2, y2 := ends(t, w)
			if !at(x1, y1) || !at(x2, y2) {
				t.Fatalf("seed %d: the curve %s does not join boxes", seed, w)
			}
			if b := p.crossed(t, w); b != nil {
				t.Fatalf("seed %d: the curve %s crosses the box %v", seed, w, *b)
			}
		}
	}
}

var segments = regexp.MustCompile(`([MCH])([-0-9. ]+)`)

// crossed returns a box that a straight part of a curve crosses, nil if there is none.
func (p *picture) crossed(t testing.TB, wire string) *rect {
	t.Helper()
	var x, y float64
	for _, part := range segments.FindAllStringSubmatch(wire, -1) {
		var to []float64
		for _, n := range strings.Fields(part[2]) {
			to = append(to, number(t, n))
		}
		if part[1] != "H" {
			x, y = to[len(to)-2], to[len(to)-1]
			continue
		}
		for i, b := range p.boxes {
			if y > b.y && y < b.y+b.h && min(x, to[0]) < b.x+b.w && max(x, to[0]) > b.x {
				return &p.boxes[i]
			}
		}
		x = to[0]
	}
	return nil
}

// A flow without feedback leads to the right only, and its layers are as the longest
// paths say.
func TestFlow(t *testing.T) {
	s := &graph.System{Title: "diamond", Nodes: []graph.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, Edges: []graph.Edge{
		{From: 0, To: 1, Output: "y", Input: "u"}, {From: 1, To: 2, Output: "y", Input: "u"},
		{From: 0, To: 2, Output: "y", Input: "v"}, {From: 2, To: 3, Output: "y", Input: "u"},
	}}
	p := look(t, draw(t, s))
	for i := range 3 {
		if p.boxes[i].x+p.boxes[i].w >= p.boxes[i+1].x {
			t.Errorf("boxes %v", p.boxes)
		}
	}
	for _, w := range p.wires {
		if x1, _, x2, _ := ends(t, w); x1 >= x2 {
			t.Errorf("the curve %s leads back", w)
		}
	}
}

// A pair that feeds each other has two straight lines.
func TestPair(t *testing.T) {
	s := &graph.System{Title: "pair", Nodes: []graph.Node{{Name: "a", Detail: "a.fmu"}, {Name: "b"}}, Edges: []graph.Edge{
		{From: 0, To: 1, Output: "v", Input: "v"}, {From: 1, To: 0, Output: "F", Input: "F"},
	}}
	for _, w := range look(t, draw(t, s)).wires {
		if x1, y1, x2, y2 := ends(t, w); y1 != y2 || x1 == x2 {
			t.Errorf("the curve %s is not straight", w)
		}
	}
}

// Loops and bonds are marked as what they are, and the legend has what occurs.
func TestMarks(t *testing.T) {
	s := &graph.System{Title: "<marks> & more", Nodes: []graph.Node{{Name: `a"<b>`}, {Name: "b"}, {Name: "c"}}, Edges: []graph.Edge{
		{From: 0, To: 1, Output: "y", Input: "u", Loop: 1}, {From: 1, To: 0, Output: "y", Input: "u", Loop: 1},
		{From: 1, To: 2, Output: "y", Input: "u", Loop: 2, Assumed: true}, {From: 2, To: 1, Output: "y", Input: "v", Loop: 2, Assumed: true, Note: "×0.001"},
	}, Bonds: []graph.Bond{{Name: "axle", Edges: []int{0, 1}}, {Name: "guess", Edges: []int{2, 3}, Proposed: true}}}
	svg := draw(t, s)
	for text, n := range map[string]int{
		`class="wire loop"`: 3, `class="wire assumed"`: 3, `class="bond"`: 3, `class="bond proposed"`: 3, // with the legend
		`class="box ring"`: 2, `class="box"`: 1, ">axle<": 1, ">guess<": 0, "bond guess": 2, "several connections": 0,
		"a&#34;&lt;b&gt;.y → b.u  (loop 1)": 1, "c.y → b.v  ×0.001  (loop 2)": 1, "&lt;marks&gt; &amp; more": 2,
	} {
		if got := strings.Count(svg, text); got != n {
			t.Errorf("%s stands %d times, not %d", text, got, n)
		}
	}
	// A narrow picture has the legend in rows, and none of it lies outside.
	page := look(t, svg)
	for _, m := range regexp.MustCompile(`<text x="([\d.]+)" y="([\d.]+)">([^<]+)</text>`).FindAllStringSubmatch(svg, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		if right := x + 6*float64(len(m[3])); right > page.w || y > page.h {
			t.Errorf("%q at %g, %g: the picture is %g × %g", m[3], x, y, page.w, page.h)
		}
	}
	plain := draw(t, &graph.System{Title: "plain", Nodes: []graph.Node{{Name: "a"}}})
	if p := look(t, plain); p.w > 450 {
		t.Errorf("the page of one box is %g wide", p.w)
	}
	for _, text := range []string{"algebraic", "power bond", "connection<"} {
		if strings.Contains(plain, text) {
			t.Errorf("the legend explains %q, which does not occur", text)
		}
	}
}

func TestErrors(t *testing.T) {
	for want, s := range map[string]*graph.System{
		"connection 0 is from node 0 to node 3, but there are 1 nodes": {Nodes: []graph.Node{{}}, Edges: []graph.Edge{{From: 0, To: 3}}},
		`bond "b" has the connection 2, but there are 0 connections`:   {Nodes: []graph.Node{{}}, Bonds: []graph.Bond{{Name: "b", Edges: []int{2}}}},
	} {
		var b bytes.Buffer
		if err := graph.SVG(&b, s); err == nil || err.Error() != want || b.Len() > 0 {
			t.Errorf("%v, want %s; %d bytes", err, want, b.Len())
		}
	}
	if err := graph.SVG(failing{}, random(1)); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that fails: %v", err)
	}
	draw(t, &graph.System{}) // nothing to draw is no error
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A long chain is folded: the page is not much wider than high.
func TestFold(t *testing.T) {
	s := &graph.System{Title: "chain"}
	for i := range 50 {
		s.Nodes = append(s.Nodes, graph.Node{Name: fmt.Sprint("component", i), Detail: "model.fmu"})
		if i > 0 {
			s.Edges = append(s.Edges, graph.Edge{From: i - 1, To: i, Output: "y", Input: "u"}, graph.Edge{From: i, To: i - 1, Output: "F", Input: "F"})
		}
	}
	p := look(t, draw(t, s))
	if p.w > 2400 || p.w/p.h > 3 || p.h/p.w > 1.5 {
		t.Errorf("the page is %g × %g", p.w, p.h)
	}
}
