package dialect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
)

const typeMCX = "com.avl.model.connect.ssp."

// openMCx reads the annotations of OpenMCx.
type openMCx struct {
	asked      []ssp.Asked
	sequential bool
	triggers   map[string]int // position of components in the trigger sequence, by path
	orders     []ssp.Asked    // extrapolation orders of connections
}

var _ ssp.Annotations = (*openMCx)(nil)

// Read reads the task at the experiment, and annotations of components and connections.
func (m *openMCx) Read(p *ssp.Reader, a ssp.Annotation, at ssp.Site, path string) (hints []ssp.StepHint, taken bool) {
	switch {
	case at == ssp.AtExperiment && a.Type == typeMCX+"task":
		m.task(p, a)
		return nil, true
	case at == ssp.AtConnection && a.Type == typeMCX+"connection.inter_extrapolation":
		m.connection(p, a)
		return nil, true
	case at == ssp.AtComponent && a.Type == typeMCX+"component":
		for _, k := range a.Node().Kids {
			for _, h := range hint(p, k, "deltaTime", a.Type) {
				h.Finer = true
				hints = append(hints, h)
			}
			m.trigger(p, k, path)
		}
		return hints, true
	}
	return nil, false
}

// task reads the annotation of OpenMCx at the experiment (ssp 45).
func (m *openMCx) task(p *ssp.Reader, a ssp.Annotation) {
	for _, k := range a.Node().Kids {
		m.asked = append(m.asked, step(p, k, "deltaTime", typeMCX+"task")...)
		for _, attr := range k.El.Attr {
			switch {
			case attr.Space != "" || attr.Key == "xmlns" || attr.Key == "deltaTime":
			case attr.Key == "stepType" && attr.Value == "sequential":
				m.sequential = true
				m.asked = append(m.asked, ssp.Asked{Name: ssp.Algorithm, Text: "gauss-seidel", From: typeMCX + "task stepType", Place: p.Place(k)})
			case attr.Key == "stepType" && strings.HasPrefix(attr.Value, "parallel"): // explicit, the default
			default:
				p.Add(ssp.RuleForeignPart, k, "the setting %s=%q of OpenMCx is not known", attr.Key, attr.Value)
			}
		}
	}
}

// trigger reads the trigger sequence of a component.
func (m *openMCx) trigger(p *ssp.Reader, n *ssp.Node, path string) {
	for _, a := range n.El.Attr {
		switch {
		case a.Space != "" || a.Key == "xmlns" || a.Key == "deltaTime":
		case a.Key == "triggerSequence":
			v, err := strconv.Atoi(a.Value)
			if err != nil {
				p.Add(ssp.RuleForeignPart, n, "triggerSequence=%q is not a whole number and is ignored", a.Value)
				continue
			}
			if m.triggers == nil {
				m.triggers = map[string]int{}
			}
			m.triggers[path] = v
		default:
			p.Add(ssp.RuleForeignPart, n, "the setting %s=%q of OpenMCx is not known", a.Key, a.Value)
		}
	}
}

// connection reads the extrapolation order of a connection (ssp 45).
func (m *openMCx) connection(p *ssp.Reader, a ssp.Annotation) {
	for _, k := range a.Node().Kids {
		for _, attr := range k.El.Attr {
			switch order := map[string]string{"zero": "0", "first": "1"}[attr.Value]; {
			case attr.Space != "" || attr.Key == "xmlns":
			case attr.Key == "extrapolationOrder" && order != "":
				m.orders = append(m.orders, ssp.AskParam("order", order, typeMCX+"connection.inter_extrapolation extrapolationOrder", p.Place(k)))
			default:
				p.Add(ssp.RuleForeignPart, k, "the setting %s=%q of OpenMCx is not known", attr.Key, attr.Value)
			}
		}
	}
}

// Settings returns the algorithm. If OpenMCx gives the macro step, it adds the sequence, if all
// components have one, and the order, if all connections agree.
func (m *openMCx) Settings(components []*ssp.FlatComponent, leads bool, l *diag.List) []ssp.Asked {
	if leads {
		m.params(components, l)
	}
	return m.asked
}

func (m *openMCx) params(components []*ssp.FlatComponent, l *diag.List) {
	if len(m.orders) > 0 {
		first := m.orders[0]
		if slices.ContainsFunc(m.orders, func(o ssp.Asked) bool { return o.Text != first.Text }) {
			l.Report(ssp.RuleForeignPart, first.Place, "the extrapolation orders of OpenMCx are ignored: they differ, "+
				"but macrostep has one order for all connections")
		} else {
			m.asked = append(m.asked, first)
		}
	}
	if !m.sequential || len(m.triggers) == 0 || len(components) == 0 {
		return // placeholders have no place in a sequence
	}
	var names []string
	for _, c := range components {
		why := ""
		if _, ok := m.triggers[c.Path]; !ok {
			why = "has none"
		} else if strings.Contains(c.Path, ",") {
			why = "has a comma in its name, but commas separate the names of a sequence"
		}
		if why != "" {
			l.Report(ssp.RuleForeignPart, c.Place, "the trigger sequence of OpenMCx is ignored: component %q %s", c.Path, why)
			return
		}
		names = append(names, c.Path)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(m.triggers[a], m.triggers[b]) })
	m.asked = append(m.asked, ssp.AskParam("sequence", strings.Join(names, ","), typeMCX+"component triggerSequence", components[0].Place))
}
