package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// Judgement is what a strategy does at one step size, and whether growth there is that of the coupled system by itself.
type Judgement struct {
	Radius float64 // spectral radius at the step of the analysis
	// Itself is the growth of the strategy at a step far below, where that is about as fast in time: it is not the
	// coupling's. Whole is the same, where another strategy confirms it: nil = it does not, or that is not known.
	Itself, Whole *Growth
	// Looks is how many spectral radii were found: one of a stable strategy, two to four of an unstable one, and a
	// few more where responses are noisy or unknown.
	Looks int
}

// IsStable reports whether nothing grows at the step.
func (j *Judgement) IsStable() bool { return stable(j.Radius) }

// farBelow are steps at which growth is looked at that is not the coupling's, relative to that of the analysis: the first
// is the shortest of a scan, the other is for FMUs of which nothing is known there.
var farBelow = []float64{1. / 30, 1. / 15}

// Judge analyses one strategy, without parameters of its own, at the step of the analysis alone, where Run scans steps of
// all of them: it is for a run that has grown, in which the time for a whole analysis may be many times that of the run.
// Of Options, it takes the experiment, the operating point, Bonds, Rates and Error.
//
// Errors: those of the run to the operating point, and why the radius is not known or does not hold for the motion.
func Judge(ctx context.Context, sys *master.System, o Options, preset string, order int) (*Judgement, error) {
	o.Order = max(order, 1) // as Run does in runs
	if err := CheckRates(sys, o.Rates); err != nil {
		return nil, err
	}
	j := &Judgement{}
	_, err := at(ctx, sys, o, func(p *point) error { return p.judge(j, o, preset, order) })
	if err != nil {
		return nil, err
	}
	return j, nil
}

// judge fills j.
func (p *point) judge(j *Judgement, o Options, preset string, order int) error {
	var own *scheme
	var formed []*scheme // whose radii are exact, the own one first
	for _, s := range p.schemes(o.Order, ownRatesOf(o.Rates), o.bonds()) {
		if s.preset == preset && s.order == order {
			own = s
		}
		switch {
		case s.hidden:
		case s == own:
			formed = slices.Insert(formed, 0, s)
		default:
			formed = append(formed, s)
		}
	}
	if own == nil {
		return fmt.Errorf("%s of order %d is not analysed", preset, order)
	}
	r := &Report{Step: o.Step, Structure: Structure{Discrete: discreteConnections(p.x.Sys)}}
	p.window = windowSteps * o.Step
	why := p.trust(r, o.Stop, p.moot(&r.Structure))
	why = cmp.Or(why, own.nonlinear())
	if why == "" {
		why = p.refused(own)
	}
	if why != "" {
		return errors.New(why)
	}
	radius := func(s *scheme, h float64) (mode eigen, err error) {
		j.Looks++
		if mode, err = p.spectrum(s, h, -1, 1, false); err == nil {
			err = p.untold(s, h, mode.coupled)
		}
		return mode, err
	}
	mode, err := radius(own, o.Step)
	if err != nil {
		return err
	}
	if p.noisy(own, o.Step) {
		l := look{Radius: Radius{o.Step, mode.radius()}}
		if l.doubt(func(h float64) (float64, error) { mode, err := radius(own, h); return mode.radius(), err }, false); l.err != nil {
			return l.err
		}
	}
	if j.Radius = mode.radius(); stable(j.Radius) {
		return nil
	}
	if p.motion(r, o, []float64{1}); r.Large != "" {
		return errors.New(r.Large)
	}
	for _, part := range farBelow {
		h := part * o.Step
		if mode, err = radius(own, h); err != nil {
			continue
		}
		if rate := math.Log(mode.radius()) / h; rate > math.Log(j.Radius)/o.Step/2 {
			j.Itself = &Growth{Rate: rate, Frequency: mode.frequency(h)}
			j.Whole = p.wholeAt(h, formed, radius)
		}
		break
	}
	return nil
}

// wholeAt returns the growth of the coupled system by itself, from two strategies at a step far below that of the analysis;
// nil = it is stable, or that is not known.
func (p *point) wholeAt(h float64, formed []*scheme, radius func(s *scheme, h float64) (eigen, error)) *Growth {
	const enough = 2
	least, most, frequency := math.Inf(1), 0.0, 0.0
	for _, s := range formed[:enough] {
		mode, err := radius(s, h)
		if err != nil || stable(mode.radius()) {
			return nil
		}
		rate := math.Log(mode.radius()) / h
		least, most, frequency = min(least, rate), max(most, rate), mode.frequency(h)
	}
	if most-least > ownRates*most {
		return nil
	}
	return &Growth{Rate: most, Frequency: frequency}
}
