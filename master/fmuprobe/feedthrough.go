package fmuprobe

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// The test of dependencies moves inputs by leakKick of their magnitude for one step, and back for the next.
// An output that depends on a state driven by them lags behind, and moves less in shorter steps. An output
// that depends on them directly moves at once, in steps of any size, and back. The test uses pulseSizes
// sizes, each pulseShrink of the one before, beginning with the macro step. In the last pulseAgree of them,
// the movement of a direct output must not shrink below pulseSteady, and at most pulseRest of it may remain
// in the second step. A lag shorter than the shortest of these steps, 1/260000 of the macro step, counts as
// a direct dependency, as it does for a master.
const (
	leakKick    = 0.1
	pulseSizes  = 7
	pulseAgree  = 3
	pulseShrink = 1. / 8
	pulseSteady = 0.7
	pulseRest   = 0.5
	// Movements must be larger than noiseRoom times the difference between repetitions, and than this part
	// of the magnitude of an output.
	noiseRoom   = 100
	leastSignal = 1e-9
)

// Feedthrough moves inputs of a subject at the start of the steps, and returns the outputs that move in the
// same step although they are declared not to depend on them. whole: the test was complete.
func Feedthrough(ctx context.Context, s Subject, start, H float64, u Inputs, ins []int) (found []master.Leak, whole bool) {
	t := leakTest{s: s, ctx: ctx, start: start, H: H, u: u}
	var err error
	if t.origin, err = s.SaveState(nil); err != nil {
		return nil, false
	}
	return t.test(ins)
}

// leakTest is the test of one subject.
type leakTest struct {
	s        Subject
	ctx      context.Context
	start, H float64
	u        Inputs
	kick     []float64 // by input
	origin   master.State
}

// claim is the declaration that no output of a set depends on any input of a set.
type claim struct{ ins, outs []int }

func claims(f *master.Feedthrough, ins []int, outs int) []claim {
	var list []claim
	at := map[string]int{}
	for o := range outs {
		if f.Assumed[o] {
			continue
		}
		var free []int
		for _, k := range ins {
			if !slices.Contains(f.On[o], k) {
				free = append(free, k)
			}
		}
		key := fmt.Sprint(free)
		if len(free) == 0 {
			continue
		}
		if _, known := at[key]; !known {
			at[key] = len(list)
			list = append(list, claim{ins: free})
		}
		list[at[key]].outs = append(list[at[key]].outs, o)
	}
	return list
}

// Kicks returns the movement of each Real input from u: upwards, if the maximum allows it.
func Kicks(s interface {
	Info() *master.Info
	InputMax(k int) float64
}, u []float64) []float64 {
	ports := s.Info().In
	list := make([]float64, len(ports))
	for k, p := range ports {
		d := leakKick * max(p.Magnitude(), math.Abs(u[k]))
		d *= 1 + float64(k)/float64(4*len(ports)) // so that no two compensate each other
		if u[k]+d > s.InputMax(k) {
			d = -d
		}
		list[k] = d
	}
	return list
}

// test tests each claim: first with all its inputs moved, then, if an output responds, with each of them.
// If the FMU fails, it returns the findings so far, and whole is false.
func (t *leakTest) test(ins []int) (found []master.Leak, whole bool) {
	t.kick = Kicks(t.s, t.u.Real)
	for _, c := range claims(&t.s.Info().Step, ins, len(t.s.Info().Out)) {
		dy, ok := t.pulse(c.ins)
		if !ok {
			return found, false
		}
		still := func(o int) bool { return dy[o] == 0 }
		if outs := slices.DeleteFunc(slices.Clone(c.outs), still); len(outs) > 0 {
			for _, k := range c.ins {
				if dy, ok = t.pulse([]int{k}); !ok {
					return found, false
				}
				for _, o := range outs {
					if dy[o] != 0 {
						found = append(found, master.Leak{Out: o, In: k, Slope: dy[o] / t.kick[k]})
					}
				}
			}
		}
	}
	return found, t.ctx.Err() == nil
}

// moved returns the inputs with some of them moved.
func (t *leakTest) moved(ins []int) Inputs {
	u := t.u
	u.Real = slices.Clone(u.Real)
	for _, k := range ins {
		u.Real[k] += t.kick[k]
	}
	return u
}

// pulse returns the movement of each output in the shortest step over which inputs are moved; 0 if the output
// does not depend on them directly.
func (t *leakTest) pulse(ins []int) ([]float64, bool) {
	type size struct{ y1, z1, y2, z2, noise []float64 }
	var sizes []size
	h := t.H
	for range pulseSizes {
		y1, y2, ok := t.twoSteps(t.u, h)
		again, _, ok2 := t.twoSteps(t.u, h)
		z1, z2, ok3 := t.twoSteps(t.moved(ins), h)
		if !ok || !ok2 || !ok3 {
			break
		}
		for o := range again {
			again[o] = math.Abs(again[o] - y1[o])
		}
		sizes = append(sizes, size{y1, z1, y2, z2, again})
		h *= pulseShrink
	}
	switch t.s.State() {
	case fmi.StateStepComplete, fmi.StateStepFailed:
	default:
		return nil, false
	}
	dy := make([]float64, len(t.s.Info().Out))
	if len(sizes) < pulseAgree {
		return dy, true
	}
	for o := range dy {
		before := 0.0
		direct := true
		for _, z := range sizes[len(sizes)-pulseAgree:] {
			d := z.z1[o] - z.y1[o]
			least := leastSignal*max(t.s.Info().Out[o].Magnitude(), math.Abs(z.y1[o])) + noiseRoom*z.noise[o]
			direct = direct && math.Abs(d) > least && math.Abs(d) >= pulseSteady*math.Abs(before) &&
				math.Abs(z.z2[o]-z.y2[o]) <= pulseRest*math.Abs(d)
			before = d
		}
		if direct && !math.IsInf(before, 0) {
			dy[o] = before
		}
	}
	return dy, true
}

// twoSteps goes back to the origin and steps twice by h, first with inputs u and then with the original ones;
// false if the FMU fails.
func (t *leakTest) twoSteps(u Inputs, h float64) (first, second []float64, ok bool) {
	if t.s.RestoreState(t.origin) != nil {
		return nil, nil, false
	}
	step := func(u Inputs, at float64) []float64 {
		y := make([]float64, len(t.s.Info().Out))
		if u.Stage(t.s) != nil {
			return nil
		}
		if _, err := t.s.Step(t.ctx, at, h); err != nil || t.s.Outputs(y) != nil {
			return nil
		}
		return y
	}
	if first = step(u, t.start); first == nil {
		return nil, nil, false
	}
	second = step(t.u, t.start+h)
	return first, second, second != nil
}
