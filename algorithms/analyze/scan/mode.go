package scan

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

// Mode is the dominant mode at the step of the analysis, which limits the stability.
type Mode struct {
	Frequency float64 `json:"frequency"` // Hz
	Outputs   []Part  `json:"outputs"`   // largest first
	// Connections with the effect of their gain on the radius, dρ/d ln g, largest first.
	Connections []Part `json:"connections"`
}

// Part is the share of an output or connection in a mode.
type Part struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// String describes the mode, and on a second line the connections that limit it.
func (m *Mode) String() string {
	text := fmt.Sprintf("%.4g Hz; mostly in %s", m.Frequency, partsOf(m.Outputs, "%s (%.2g)"))
	if len(m.Connections) > 0 {
		text += fmt.Sprintf("\nconnections by how their gain changes it: %s", partsOf(m.Connections, "%s (%+.2g)"))
	}
	return text
}

func partsOf(parts []Part, format string) string {
	var out []string
	for _, p := range parts {
		out = append(out, fmt.Sprintf(format, p.Name, p.Share))
	}
	return strings.Join(out, ", ")
}

// describe returns the outputs and connections of a mode.
func (p *Scanner) describe(s *twin.Scheme, H float64, mode Eigen) *Mode {
	const most = 5
	sys := p.X.Sys
	m := &Mode{Frequency: mode.Frequency(H)}
	at := 0
	for i, model := range p.Models {
		for o := range model.Outputs() {
			size := math.Abs(p.Y[sys.OutAt[i]+o])
			if n := model.Info.Out[o].Nominal; n > 0 {
				size = max(size, n)
			}
			if size == 0 {
				size = 1
			}
			m.Outputs = append(m.Outputs, Part{Name: sys.OutName(sys.OutAt[i] + o), Share: mode.Outputs[at] / size})
			at++
		}
	}
	m.Outputs = largest(m.Outputs, most, true)
	const change = 1e-3
	many := len(p.Models) > twin.Many
	if !many || !linear.Stable(mode.Radius()) {
		for k := range sys.InAt[len(sys.InAt)-1] {
			if sys.SourceSubsystem(k) < 0 {
				continue
			}
			if y, _ := sys.Source(k); many && !slices.ContainsFunc(m.Outputs, func(part Part) bool { return part.Name == sys.OutName(y) }) {
				continue // among many, only connections from outputs with a large share
			}
			if moved, err := p.Spectrum(s, H, k, 1+change, false); err == nil {
				y, _ := sys.Source(k)
				by := cmplx.Abs(moved.Value) - cmplx.Abs(mode.Value)
				if moved.Lasts != mode.Lasts { // an eigenvalue has left 1
					by = moved.Radius() - mode.Radius()
				}
				m.Connections = append(m.Connections, Part{sys.OutName(y) + " -> " + sys.InName(k), by / change})
			}
		}
		m.Connections = largest(m.Connections, most, false)
	}
	return m
}

// alike is the relative difference below which shares count as equal, so that rounding does not change their order.
const alike = 1e-6

// largest returns the largest parts, relative to the first if relative is set.
func largest(parts []Part, most int, relative bool) []Part {
	slices.SortStableFunc(parts, func(a, b Part) int {
		switch x, y := math.Abs(a.Share), math.Abs(b.Share); {
		case math.Abs(x-y) <= alike*max(x, y):
			return 0
		case x > y:
			return -1
		}
		return 1
	})
	parts = parts[:min(most, len(parts))]
	if relative && len(parts) > 0 && parts[0].Share > 0 {
		whole := parts[0].Share
		for i := range parts {
			parts[i].Share /= whole
		}
	}
	return parts
}
