package algorithms

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Bond declares a power bond: an exchange of energy between two subsystems by pairs of outputs
// whose product is a power (sadjina II; rodriguez 3.1). For a pair (a.F, b.v), the effort F of
// subsystem a is connected to an input of b, and the flow v of b to an input of a. A vector, such
// as a planar force with its velocity, has several pairs.
type Bond struct {
	Name  string
	Pairs []Pair
	// Scale is E0 in J and Tolerance is r of sadjina (14); 0 = the values of Control.
	Scale, Tolerance float64
}

// Pair holds "component.variable" of the two outputs, the effort first.
type Pair struct {
	Effort, Flow string
	// Opposed means that the product of effort and flow is power out of the subsystem with the
	// flow, such as a force on a chassis that enters its equation of motion with a minus sign.
	Opposed bool
	Watt    float64 // unit of the product of the outputs in W; 0 = 1
}

// ParseBond reads NAME=COMPONENT.EFFORT:COMPONENT.FLOW, with further pairs, scale=E0 in J and tolerance=R after commas. A
// minus before an effort makes its pair Opposed. Commas and colons in brackets or single quotes belong to names.
func ParseBond(text string) (b Bond, err error) {
	wrong := fmt.Errorf("%q is not NAME=COMPONENT.EFFORT:COMPONENT.FLOW", text)
	name, list, ok := strings.Cut(text, "=")
	if b.Name = strings.TrimSpace(name); !ok || b.Name == "" || strings.ContainsAny(b.Name, ",\"\r\n") {
		return b, wrong
	}
	for _, item := range splitNames(list, ',') {
		item = strings.TrimSpace(item)
		key, value, _ := strings.Cut(item, "=")
		number := map[string]*float64{"scale": &b.Scale, "tolerance": &b.Tolerance}[key]
		if number != nil {
			if *number, err = strconv.ParseFloat(value, 64); err != nil || !(*number > 0) || math.IsInf(*number, 0) {
				return b, fmt.Errorf("%s=%q is not a number above 0", key, value)
			}
			continue
		}
		item, opposed := strings.CutPrefix(item, "-")
		ends := splitNames(item, ':')
		if len(ends) != 2 || !strings.Contains(ends[0], ".") || !strings.Contains(ends[1], ".") {
			return b, wrong
		}
		b.Pairs = append(b.Pairs, Pair{Effort: ends[0], Flow: ends[1], Opposed: opposed})
	}
	if len(b.Pairs) == 0 {
		return b, wrong
	}
	return b, nil
}

// splitNames splits a text at a separator outside brackets and single quotes.
func splitNames(text string, separator rune) (parts []string) {
	depth, quoted, from := 0, false, 0
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '(':
			depth++
		case c == ']' || c == ')':
			depth--
		case c == separator && depth <= 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// bond is a bond of a system.
type bond struct {
	name             string
	pairs            []bondPair
	scale, tolerance float64

	power, residual float64 // W, at the last communication point
	energy          float64 // J, residual energy since the start
	totals          bondTotals
	powers          spikeDetector // of |residual|

	// The sides meet when both end a step of their own: every over macro steps, last at metAt.
	over  int
	metAt float64 // s

	// The current macro step. The energies belong to the time since the sides last met, and are
	// 0 unless they meet at its end.
	meets                   bool
	nextPower, nextResidual float64 // W, at its end
	step, exchanged         float64 // J, residual and exchanged energy
	stepHeld                float64 // J, residual energy for held inputs
}

// bondPair is an effort with its flow. Subsystem a has the effort y_a as output and the input
// u_a = g_f y_b; subsystem b has the flow y_b as output and the input u_b = g_e y_a. The powers
// into b and a, each from its own input and output, are σ u_b y_b and −σ (g_e/g_f) u_a y_a in
// units of b. They cancel if both inputs match the outputs. σ is −1 for opposed pairs, else 1.
type bondPair struct {
	effort, flow     int     // entries of y
	effortIn, flowIn int     // entries of u: of b, of a
	gain             float64 // g_e
	ratio            float64 // g_e / g_f
	watt             float64 // W per unit of u_b y_b
	sign             float64 // σ
}

// power returns u_b y_b in W for inputs that match the outputs y: the power into b or, for opposed
// pairs, out of b.
func (p *bondPair) power(y []float64) float64 {
	return p.watt * p.gain * float64(y[p.effort]*y[p.flow])
}

// residual returns δP = σ (ũ_b y_b − (g_e/g_f) ũ_a y_a) in W, the power that the coupling adds
// (sadjina (8), (10a); rodriguez (9)).
func (p *bondPair) residual(y []float64, effortIn, flowIn float64) float64 {
	return p.sign * p.watt * (float64(effortIn*y[p.flow]) - p.ratio*float64(flowIn*y[p.effort]))
}

// resolveBonds returns the bonds of a system. Errors name the bond and the reason.
func resolveBonds(sys *master.System, declared []Bond) ([]bond, error) {
	var bonds []bond
	takes := map[int]string{} // input to bond
	for _, d := range declared {
		b := bond{name: d.Name, scale: d.Scale, tolerance: d.Tolerance}
		for _, p := range d.Pairs {
			pair, err := resolvePair(sys, p)
			if err != nil {
				return nil, fmt.Errorf("bond %s: %w", d.Name, err)
			}
			// An output may belong to several bonds, such as the flow of the hub of a star.
			for _, k := range []int{pair.effortIn, pair.flowIn} {
				if other, taken := takes[k]; taken {
					return nil, fmt.Errorf("bond %s: %s already belongs to bond %s; an input can belong to one bond only", d.Name, sys.InName(k), other)
				}
				takes[k] = d.Name
			}
			b.pairs = append(b.pairs, pair)
		}
		if len(b.pairs) == 0 {
			return nil, fmt.Errorf("bond %s has no pairs; a bond needs an effort and a flow", d.Name)
		}
		bonds = append(bonds, b)
	}
	return bonds, nil
}

// resolvePair returns a pair of a bond.
func resolvePair(sys *master.System, p Pair) (bondPair, error) {
	effort, okE := sys.FindOut(p.Effort)
	flow, okF := sys.FindOut(p.Flow)
	switch {
	case !okE:
		return bondPair{}, fmt.Errorf("there is no Real output %s", p.Effort)
	case !okF:
		return bondPair{}, fmt.Errorf("there is no Real output %s", p.Flow)
	}
	a, b := num.Owner(sys.OutAt, effort), num.Owner(sys.OutAt, flow)
	if a == b {
		return bondPair{}, fmt.Errorf("%s and %s are outputs of the same component; a bond joins two components", p.Effort, p.Flow)
	}
	effortIn, err := fedInput(sys, effort, b)
	if err != nil {
		return bondPair{}, err
	}
	flowIn, err := fedInput(sys, flow, a)
	if err != nil {
		return bondPair{}, err
	}
	ratio := sys.Gain(effortIn) / sys.Gain(flowIn)
	if ratio == 0 || math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return bondPair{}, fmt.Errorf("the connections of %s and %s have the factors %g and %g; both must be "+
			"nonzero at a bond",
			p.Effort, p.Flow, sys.Gain(effortIn), sys.Gain(flowIn))
	}
	sign := 1.0
	if p.Opposed {
		sign = -1
	}
	watt := p.Watt
	if watt == 0 {
		watt = 1
	}
	// power and residual include the gain of the effort.
	watt /= math.Abs(sys.Gain(effortIn))
	return bondPair{
		effort: effort, flow: flow, effortIn: effortIn, flowIn: flowIn,
		gain: sys.Gain(effortIn), ratio: ratio, watt: watt, sign: sign,
	}, nil
}

// fedInput returns the one input of subsystem i that an output feeds.
func fedInput(sys *master.System, y, i int) (int, error) {
	found := -1
	for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
		src, ok := sys.Source(k)
		if !ok || src != y {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("%s feeds both %s and %s of %s; at a bond it feeds only one of them",
				sys.OutName(y), sys.InName(found), sys.InName(k), sys.Infos[i].Name)
		}
		found = k
	}
	if found < 0 {
		return 0, fmt.Errorf("%s is not connected to %s: one direction of the exchange is missing", sys.OutName(y), sys.Infos[i].Name)
	}
	return found, nil
}
