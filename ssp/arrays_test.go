package ssp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// arrayed are components whose FMUs are of FMI 3.0: the variables stand for all elements of arrays with these sizes.
type arrayed map[string]map[string]array

type array struct {
	ssp.Variable
	sizes []int
}

func (a arrayed) Variables(c *ssp.FlatComponent) (ssp.VariableSet, error) {
	set := arraySet{FakeSet{}, a[c.Path]}
	for _, v := range a[c.Path] {
		n := 1
		for _, size := range v.sizes {
			n *= size
		}
		for k := range n {
			one := v.Variable
			switch len(v.sizes) {
			case 1:
				one.Name += fmt.Sprintf("[%d]", k+1)
			case 2:
				one.Name += fmt.Sprintf("[%d,%d]", k/v.sizes[1]+1, k%v.sizes[1]+1)
			}
			set.FakeSet[one.Name] = one
		}
	}
	return set, nil
}

type arraySet struct {
	FakeSet
	arrays map[string]array
}

func (s arraySet) Sizes(name string) []int { return s.arrays[name].sizes }

// An array passes through connectors of systems with the units of these, element by element.
func TestArrayConnections(t *testing.T) {
	size := `<ssc:Dimension size="2"/><ssc:Dimension size="3"/>`
	document := func(inner, outer, attributes string) string {
		return strings.Replace(Head2+Sys("top", "",
			Sys("s", Conns(Con("o", "output", RealType("mm")+inner)), Comp("a", Conns(Con("y", "output", RealType("m")+outer))), Link("a/y", "o", ""))+
				Comp("b", Conns(Con("u", "input", RealType("m")+outer))), Link("s/o", "b/u", ""))+Units+Tail,
			`startConnector="o"`, `startConnector="o"`+attributes, 1)
	}
	vars := arrayed{"s.a": {"y": {Out("y", ssp.Real), []int{2, 3}}}, "b": {"u": {With(In("u", ssp.Real), "mm", MM), []int{2, 3}}}}
	for _, outer := range []string{size, `<ssc:Dimension/><ssc:Dimension sizeConnector="n"/>`} {
		n, l := Sound(t, document(size, outer, ""), nil, vars)
		if links := Links(n); len(links) != 6 || links["s.a.y[2,1] → b.u[2,1]"].Gain != 1000 {
			t.Errorf("%+v, findings %v", links, l.Findings)
		}
	}
	for _, c := range []struct{ inner, outer, attributes, id, message string }{
		{`<ssc:Dimension size="2"/><ssc:Dimension/>`, size, "", "SD10", `"y" is an array of 2 × 3 and "o" is a scalar`},
		{`<ssc:Dimension size="3"/><ssc:Dimension size="2"/>`, size, "", "SD10", `"y" is an array of 2 × 3 and "o" is an array of 3 × 2`},
		{size, `<ssc:Dimension size="6"/>`, "", "SD6", `is an array of 6, and its FMU variable an array of 2 × 3`},
		{size, size, ` startIndices="1 x"`, "SD1", `startIndices is "1 x"`},
		{`<ssc:Dimension size="0"/>`, size, "", "SD10", `an array has from 1 to 65536 elements`},
		{strings.Repeat(`<ssc:Dimension size="1000"/>`, 3), size, "", "SD10", `an array has from 1 to 65536 elements`},
		{size, size, ` startIndices="2 4"`, "SD10", `"s.o" is an array of 2 × 3, which has no element with the indices [2 4]`},
	} {
		Refused(t, document(c.inner, c.outer, c.attributes), nil, vars, c.id, c.message)
	}
	old := Fakes{"s.a": {Out("y", ssp.Real)}, "b": {In("u", ssp.Real)}}
	Refused(t, document(size, size, ""), nil, old, "SD10", "is an array")
}

// A list gives each element of an array its value, in row-major order, with mappings and units.
func TestArrayValues(t *testing.T) {
	vars := arrayed{"c": {"A": {With(Par("A", ssp.Real), "mm", MM), []int{2, 3}}, "v": {Par("v", ssp.Real), []int{2}}, "s": {Par("s", ssp.String), []int{2}},
		"one": {Par("one", ssp.Real), []int{1}}, "x": {Par("x", ssp.Real), nil}}}
	document := func(name, value, mapping string) string {
		return Head2 + Sys("top", Bindings(Inline(` prefix="c."`, Parameter(name, value), mapping)), Comp("c", "")) + Units + Tail
	}
	for _, c := range []struct{ name, value, mapping, want string }{
		{"A", `<ssv:Real value="1 2 3 4 5 6" unit="m"/>`, "", "c.A[1,1]=1000 c.A[1,2]=2000 c.A[1,3]=3000 c.A[2,1]=4000 c.A[2,2]=5000 c.A[2,3]=6000"},
		{"v", `<ssv:Float64 value="1 2"/><ssc:Dimension size="2"/>`, "", "c.v[1]=1 c.v[2]=2"},
		{"v", `<ssc:Dimension size="2"/><ssv:Float64 value="1 2"/>`, "", "c.v[1]=1 c.v[2]=2"},
		{"w", `<ssv:Real value="1 2"/>`, Mapped("c.w", "c.v", LinearTransform(3, 1)), "c.v[1]=4 c.v[2]=7"},
		{"s", `<ssv:String><ssv:Value value="a b"/><ssv:Value value=""/></ssv:String>`, "", `c.s[1]=a b c.s[2]=`},
		{"one", `<ssv:Real value="5"/>`, "", "c.one[1]=5"},
	} {
		n, l := Sound(t, document(c.name, c.value, c.mapping), nil, vars)
		var got []string
		for name, s := range Settings(n) {
			got = append(got, name+"="+s.Value.String())
		}
		if slices.Sort(got); strings.Join(got, " ") != c.want {
			t.Errorf("%s, findings %v, want %s", strings.Join(got, " "), l.Findings, c.want)
		}
	}
	for _, c := range []struct{ name, value, message string }{
		{"A", `<ssv:Real value="1 2 3 4 5"/>`, `is an array of 5 values, and "c.A" is an array of 2 × 3`},
		{"A", `<ssv:Real value="1 2 3 4 5 6"/><ssc:Dimension size="3"/><ssc:Dimension size="2"/>`, `is an array of 6 values with the sizes [3 2], and "c.A" is`},
		{"A", `<ssv:Real value="1"/>`, `is an array of 1 values, and "c.A" is an array of 2 × 3`},
		{"v", `<ssv:Real value="1 2"/><ssc:Dimension size="3"/>`, `is an array of 2 values with the sizes [3]`},
		{"x", `<ssv:Real value="1 2"/>`, `is an array of 2 values, and "c.x" is a scalar`},
	} {
		Refused(t, document(c.name, c.value, ""), nil, vars, "SD17", c.message)
	}
}

// A connector of type Binary is the same as a Binary of its FMU.
func TestBinaryConnectors(t *testing.T) {
	y, u := Out("y", ssp.String), In("u", ssp.String)
	y.MediaType, u.MediaType = "application/octet-stream", "application/octet-stream"
	document := Head2 + Sys("top", "", Comp("a", Conns(Con("y", "output", "<ssc:Binary/>")))+Comp("b", Conns(Con("u", "input", "<ssc:Binary/>"))),
		Link("a/y", "b/u", "")) + Tail
	if n, l := Sound(t, document, nil, Fakes{"a": {y}, "b": {u}}); len(n.Connections) != 1 || len(l.Findings) > 0 {
		t.Errorf("%v", l.Findings)
	}
	Refused(t, document, nil, Fakes{"a": {y}, "b": {In("u", ssp.String)}}, "SD8", "only Binaries of the same mimeType")
}
