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
// systems, and 10·n connections: nine of each component to the next, and one over
// the connectors of its system to all others. A binding at the top sets a parameter of
// each, and each reads from a dictionary.
func large(n int) string {
	var b strings.Builder
	b.WriteString(Head + `<ssd:System name="top">` + "<ssd:ParameterBindings>")
	b.WriteString(`<ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="s"><ssv:Parameters>`)
	const systems = 10
	each := n / systems
	for k := range n {
		fmt.Fprintf(&b, `<ssv:Parameter name="s%d.c%d.p"><ssv:Real value="%d" unit="m"/></ssv:Parameter>`+"\n", k/each, k%each, k)
	}
	b.WriteString("</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings><ssd:Elements>\n")
	for s := range systems {
		fmt.Fprintf(&b, `<ssd:System name="s%d"><ssd:Connectors><ssd:Connector name="in" kind="input"/><ssd:Connector name="out" kind="output"/></ssd:Connectors><ssd:Elements>`+"\n", s)
		for k := range each {
			fmt.Fprintf(&b, `<ssd:Component name="c%d" source="c.fmu"><ssd:Connectors>`, k)
			for i := range 10 {
				fmt.Fprintf(&b, `<ssd:Connector name="u%d" kind="input"><ssc:Real unit="m"/></ssd:Connector><ssd:Connector name="y%d" kind="output"><ssc:Real unit="mm"/></ssd:Connector>`+"\n", i, i)
			}
			b.WriteString("</ssd:Connectors></ssd:Component>\n")
		}
		b.WriteString("</ssd:Elements><ssd:Connections>\n")
		for k := range each {
			for i := range 9 {
				fmt.Fprintf(&b, `<ssd:Connection startElement="c%d" startConnector="y%d" endElement="c%d" endConnector="u%d"/>`+"\n", k, i, (k+1)%each, i)
			}
			fmt.Fprintf(&b, `<ssd:Connection startConnector="in" endElement="c%d" endConnector="u9">`+LinearTransform(2, 0)+`</ssd:Connection>`+"\n", k)
		}
		b.WriteString(`<ssd:Connection startElement="c0" startConnector="y9" endConnector="out"/></ssd:Connections></ssd:System>` + "\n")
	}
	b.WriteString("</ssd:Elements><ssd:Connections>\n")
	for s := range systems {
		fmt.Fprintf(&b, `<ssd:Connection startElement="s%d" startConnector="out" endElement="s%d" endConnector="in"/>`+"\n", s, (s+1)%systems)
	}
	b.WriteString("</ssd:Connections></ssd:System>\n" + Units + Tail)
	return b.String()
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
	p, err := ssp.Open(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{}
	net, err := p.Flatten(c, l)
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
