package fmuslave

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// The test of dependencies moves inputs by leakKick of their magnitude for one
// step, and back for the next. An output that follows a state which they drive
// lags behind, and moves the less the shorter the steps are. What depends directly
// moves at once, in steps of any size, and back: in the last pulseAgree of
// pulseSizes sizes, each pulseShrink of the one before, beginning with the macro
// step, it does not shrink below pulseSteady of its movement, and keeps in the
// second step at most pulseRest. A lag that is shorter than the shortest of these
// steps, 1/260000 of the macro step, passes for a direct dependency, and is one
// for a master.
const (
	leakKick    = 0.1
	pulseSizes  = 7
	pulseAgree  = 3
	pulseShrink = 1. / 8
	pulseSteady = 0.7
	pulseRest   = 0.5
	// Movements count above noiseRoom times what repetitions differ, and above
	// this part of the magnitude of an output.
	noiseRoom   = 100
	leastSignal = 1e-9
)

var _ master.FeedthroughVerifier = (*Slave)(nil)

// VerifyFeedthrough moves inputs of an instance of its own and looks whether
// outputs move in a step that do not depend on them by ModelStructure (fmi2 27).
// An FMU that cannot vary its step, lives once per process, or needs the promise that
// none of its steps is undone (master.RestoreAware), is not tested.
// That all is as declared is kept with the hash of the FMU and of its settings
// (see Config.Cache), and not tested again.
func (s *Slave) VerifyFeedthrough(ctx context.Context, e master.Experiment, H float64, ins []int) ([]master.Leak, error) {
	H = min(H, (e.Stop-e.Start)/2)
	if caps := s.info.Caps; s.config.once() || s.unpromised != "" ||
		!caps.SaveState || !caps.VariableStep || !(H > 0) {
		return nil, nil
	}
	var inputs []master.Port
	for _, k := range ins {
		inputs = append(inputs, s.info.In[k])
	}
	store := s.store()
	if store.knowsTrue(inputs) {
		return nil, nil
	}
	twin, err := s.dependent()
	if err != nil {
		return nil, err
	}
	defer func() { // however it ended: nothing depends on it
		_ = twin.Terminate()
		_ = twin.Close()
	}()
	t := leakTest{s: twin, ctx: ctx, start: e.Start, H: H, u: s.staged()}
	if twin.begin(ctx, e, t.u) != nil || twin.ExitInit() != nil {
		return nil, context.Cause(ctx) // the instance of the run says what is wrong
	}
	if t.origin, err = twin.SaveState(nil); err != nil {
		return nil, context.Cause(ctx)
	}
	found, whole := t.test(ins)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if len(found) == 0 && whole {
		store.keepTrue(s.config.FMU.Description.ModelName, inputs)
	}
	var own []master.Leak // at ports of this slave
	for _, l := range found {
		v := twin.out[l.Out].variable
		if l.Out = slices.IndexFunc(s.out[:s.coupled], func(g signal) bool { return g.variable == v }); l.Out >= 0 {
			own = append(own, l)
		}
	}
	return own, nil
}

// dependent gives a twin that shows every output whose dependencies are declared.
func (s *Slave) dependent() (*Slave, error) {
	c := s.config
	c.Name += " (test of dependencies)"
	c.Watch, c.Monitor, c.Options.Log, c.Restarts, c.aside = nil, nil, quiet(c.Options.Log), 0, true
	c.Outputs = slices.Clone(c.Outputs)
	d := c.FMU.Description
	for _, u := range d.Outputs {
		v := &d.Variables[u.Index-1]
		if u.Declared && v.Causality == description.Output && v.Type == description.Real && !slices.Contains(c.Outputs, v.Name) {
			c.Outputs = append(c.Outputs, v.Name)
		}
	}
	return New(c)
}

// leakTest is the test of one twin.
type leakTest struct {
	s        *Slave
	ctx      context.Context
	start, H float64
	u        stagedInputs
	kick     []float64 // by input
	origin   master.State
}

// claim is a set of inputs on none of which any of the outputs is declared to depend.
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

// kicks gives what each input is moved by: upwards, if that is allowed.
func kicks(s *Slave, u []float64) []float64 {
	var list []float64
	for k, g := range s.in {
		d := leakKick * max(s.info.In[k].Magnitude(), math.Abs(u[k]))
		d *= 1 + float64(k)/float64(4*len(s.in)) // so that none makes up for another
		if most := g.variable.Real.Max; most != nil && u[k]+d > *most {
			d = -d
		}
		list = append(list, d)
	}
	return list
}

// test looks at each claim: first with all its inputs moved, then, if an output
// responds to that, with each of them. It gives what is found before the FMU
// fails; whole: it did not.
func (t *leakTest) test(ins []int) (found []master.Leak, whole bool) {
	t.kick = kicks(t.s, t.u.real)
	for _, c := range claims(&t.s.info.Step, ins, len(t.s.info.Out)) {
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

// moved gives the inputs with some of them moved.
func (t *leakTest) moved(ins []int) stagedInputs {
	u := t.u
	u.real = slices.Clone(u.real)
	for _, k := range ins {
		u.real[k] += t.kick[k]
	}
	return u
}

// pulse gives what each output moves by in a step, as short as it may be, over
// which inputs are moved; 0 where it need not depend on them directly.
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
	switch t.s.instance.State() {
	case fmi.StateStepComplete, fmi.StateStepFailed:
	default:
		return nil, false
	}
	dy := make([]float64, len(t.s.info.Out))
	if len(sizes) < pulseAgree {
		return dy, true
	}
	for o := range dy {
		before := 0.0
		direct := true
		for _, z := range sizes[len(sizes)-pulseAgree:] {
			d := z.z1[o] - z.y1[o]
			least := leastSignal*max(t.s.info.Out[o].Magnitude(), math.Abs(z.y1[o])) + noiseRoom*z.noise[o]
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

// twoSteps goes back to the origin and steps twice by h, first with inputs u and
// then with those that stand; false if the FMU does not go along.
func (t *leakTest) twoSteps(u stagedInputs, h float64) (first, second []float64, ok bool) {
	if t.s.RestoreState(t.origin) != nil {
		return nil, nil, false
	}
	step := func(u stagedInputs, at float64) []float64 {
		t.s.NoRestoreBefore(at == t.start) // it goes back to the origin again
		y := make([]float64, len(t.s.info.Out))
		if t.s.stageInputs(u) != nil {
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
