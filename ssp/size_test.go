package ssp_test

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// large is a document with n components of ten inputs and ten outputs each, in ten
// systems, and 10·n connections: nine from each component to the next, and one from a
// neighbouring system to each component. A binding at the top sets a parameter of each.
func large(n int) string {
	const systems = 10
	each := n / systems
	var ports, links []string
	for i := range 10 {
		ports = append(ports, Con(fmt.Sprint("u", i), "input", RealType("m")), Con(fmt.Sprint("y", i), "output", RealType("mm")))
	}
	var values, elements strings.Builder
	for s := range systems {
		system := fmt.Sprint("s", s)
		var components strings.Builder
		wires := []string{Link("c0/y9", "out", "")}
		for k := range each {
			name := fmt.Sprint("c", k)
			values.WriteString(Parameter(system+"."+name+".p", RealValue(float64(k), "m")))
			components.WriteString(Comp(name, Conns(ports...)))
			for i := range 9 {
				wires = append(wires, Link(fmt.Sprint(name, "/y", i), fmt.Sprint("c", (k+1)%each, "/u", i), ""))
			}
			wires = append(wires, Link("in", name+"/u9", LinearTransform(2, 0)))
		}
		elements.WriteString(Sys(system, Conns(Con("in", "input", ""), Con("out", "output", "")), components.String(), wires...))
		links = append(links, Link(system+"/out", fmt.Sprint("s", (s+1)%systems, "/in"), ""))
	}
	return Head + Sys("top", Bindings(Inline("", values.String(), "")), elements.String(), links...) + Units + Tail
}

// counting answers for every component of large, and counts the questions.
type counting struct{ lookups int }

func (c *counting) Variables(*ssp.FlatComponent) (ssp.VariableSet, error) { return c, nil }
func (c *counting) All() iter.Seq[ssp.Variable]                           { return func(func(ssp.Variable) bool) {} }
func (c *counting) Lookup(name string) (ssp.Variable, bool) {
	c.lookups++
	switch name[0] {
	case 'u':
		return With(In(name, ssp.Real), "m", Metre), true
	case 'y':
		return With(Out(name, ssp.Real), "mm", MM), true
	}
	return Par(name, ssp.Real), name == "p"
}

// read opens and flattens large, and checks what comes out.
func read(t testing.TB, dir string, n int) *counting {
	t.Helper()
	l := &diag.List{}
	c := &counting{}
	net, err := Open(t, dir, l).Flatten(c, l)
	if err != nil {
		t.Fatal(err)
	}
	if len(net.Components) != n || len(net.Connections) != 10*n || len(net.Settings) != n || len(l.Findings) != 0 {
		t.Fatalf("%d components, %d connections, %d settings, findings %v", len(net.Components), len(net.Connections), len(net.Settings), l.Findings)
	}
	return c
}

// Ten times the components take at most ten times the memory and the questions, to
// the power 1.15: nothing is done for each pair of things.
func TestLinear(t *testing.T) {
	var allocated [2]float64
	var lookups [2]int
	sizes := [2]int{50, 500}
	for i, n := range sizes {
		dir := Folder(t, map[string]string{ssp.DocumentName: large(n)})
		allocated[i] = testing.AllocsPerRun(1, func() { lookups[i] = read(t, dir, n).lookups })
	}
	for what, ratio := range map[string]float64{"allocations": allocated[1] / allocated[0], "lookups": float64(lookups[1]) / float64(lookups[0])} {
		if slope := math.Log10(ratio); slope > 1.15 {
			t.Errorf("%s grow with the power %.3f of the size", what, slope)
		}
	}
}
