package algorithms

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Bond declares a power bond: an exchange of energy between two subsystems, by
// pairs of outputs whose product is a power (sadjina II; rodriguez 3.1). A pair
// (a.F, b.v) says that the effort F leads from a to an input of b, and the flow
// v back from b to an input of a; a vector, such as a planar force with its
// velocity, has several pairs.
type Bond struct {
	Name  string
	Pairs []Pair
	// Scale E0 in J and relative tolerance r of (14) of sadjina; 0 = the general
	// ones.
	Scale, Tolerance float64
}

// Pair holds "component.variable" of the two outputs, the effort first.
type Pair struct {
	Effort, Flow string
	// Opposed: effort and flow count in opposite directions where the
	// flow is given: their product is power that leaves that subsystem. Like a
	// force on a chassis that its equation takes with a minus.
	Opposed bool
	Watt    float64 // W per unit of the product of the outputs; 0 = 1
}

// bond is a bond of a system.
type bond struct {
	name             string
	pairs            []bondPair
	scale, tolerance float64

	power, residual float64 // at the last communication point, W
	energy          float64 // residual energy since the start, J
	totals          bondTotals
	powers          spikeDetector // of |residual|

	// over is the number of macro steps after which both sides end a step of their own.
	over  int
	metAt float64 // s, when they last did

	// Of the step that was just taken, at its end, and in J since its sides met before;
	// meets: they do at its end, else there is nothing new.
	nextPower, nextResidual float64
	step, exchanged         float64
	stepHeld                float64 // step, as if the inputs had been held
	meets                   bool
}

// bondPair is one effort with its flow. With a the giver of the effort y_a, taker
// of the flow as u_a = g_f y_b, and b the giver of the flow y_b, taker of the
// effort as u_b = g_e y_a, the powers into the two, each by its own input and
// output, are σ u_b y_b and −σ (g_e/g_f) u_a y_a in units of b; they cancel if
// both inputs are what the outputs say. σ is −1 if the two are opposed, else 1.
type bondPair struct {
	effort, flow     int     // entries of y
	effortIn, flowIn int     // entries of u: of b, of a
	gain             float64 // g_e
	ratio            float64 // g_e / g_f
	watt             float64 // W per unit of u_b y_b
	sign             float64 // σ
}

// power returns u_b y_b for inputs that agree with the outputs: the power into b,
// or, of opposed variables, out of it.
func (p *bondPair) power(y []float64) float64 {
	return p.watt * p.gain * float64(y[p.effort]*y[p.flow])
}

// residual returns δP = σ (ũ_b y_b − (g_e/g_f) ũ_a y_a) in W, (8), (10a) of sadjina
// and (9) of rodriguez: the power that the coupling lets appear.
func (p *bondPair) residual(y []float64, effortIn, flowIn float64) float64 {
	return p.sign * p.watt * (float64(effortIn*y[p.flow]) - p.ratio*float64(flowIn*y[p.effort]))
}

// resolveBonds finds the bonds of a system. Every fault is named.
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
			// An output may serve several bonds, as the flow of a star does; an
			// input takes one exchange.
			for _, k := range []int{pair.effortIn, pair.flowIn} {
				if other, taken := takes[k]; taken {
					return nil, fmt.Errorf("bond %s: %s takes part in bond %s already; an input belongs to one bond", d.Name, sys.InName(k), other)
				}
				takes[k] = d.Name
			}
			b.pairs = append(b.pairs, pair)
		}
		if len(b.pairs) == 0 {
			return nil, fmt.Errorf("bond %s has no pair of an effort and a flow", d.Name)
		}
		bonds = append(bonds, b)
	}
	return bonds, nil
}

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
		return bondPair{}, fmt.Errorf("%s and %s are outputs of the same component; a bond joins two", p.Effort, p.Flow)
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
		return bondPair{}, fmt.Errorf("the connections of %s and %s have the factors %g and %g; a bond needs both different from 0",
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
	// The product is taken in units of b: the effort times its gain.
	watt /= math.Abs(sys.Gain(effortIn))
	return bondPair{effort: effort, flow: flow, effortIn: effortIn, flowIn: flowIn, gain: sys.Gain(effortIn), ratio: ratio, watt: watt, sign: sign}, nil
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
			return 0, fmt.Errorf("%s feeds both %s and %s of %s; a bond needs one", sys.OutName(y), sys.InName(found), sys.InName(k), sys.Infos[i].Name)
		}
		found = k
	}
	if found < 0 {
		return 0, fmt.Errorf("%s does not lead to %s: one direction of the exchange is missing", sys.OutName(y), sys.Infos[i].Name)
	}
	return found, nil
}
