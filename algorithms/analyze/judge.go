package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// Judgement is the stability of a strategy at one step size, and whether growth is that of the coupled system itself.
type Judgement struct {
	Radius float64 // spectral radius at the step of the analysis
	// Itself is the growth at a much smaller step if it is about as fast in time, so that the coupling is not its cause.
	// Whole is the same growth if another strategy confirms it. nil = not found.
	Itself, Whole *scan.Growth
	// Looks counts the spectral radii computed: one of a stable strategy, two to four of an unstable one, and a
	// few more where responses are noisy or unknown.
	Looks int
}

// IsStable reports whether nothing grows at the step.
func (j *Judgement) IsStable() bool { return linear.Stable(j.Radius) }

// farBelow are the steps, relative to that of the analysis, at which growth is not due to the coupling: the shortest of a
// scan, and one for FMUs of which nothing is known there.
var farBelow = []float64{1. / 30, 1. / 15}

// Judge analyses one strategy with default parameters at Options.Step only. It is for a run whose outputs have grown,
// where the whole analysis by Run might take many times as long as the run. Of Options, it uses the experiment, the
// operating point, Bonds, Rates and Error.
//
// Errors: those of the run to the operating point, and why the radius is unknown or does not hold for the motion.
func Judge(ctx context.Context, sys *master.System, o Options, preset string, order int) (*Judgement, error) {
	o.Order = max(order, 1) // as Run does in runs
	if err := CheckRates(sys, o.Rates); err != nil {
		return nil, err
	}
	j := &Judgement{}
	_, err := twin.At(ctx, sys, o.at(), func(p *twin.Point) error {
		return (&analysis{Scanner: &scan.Scanner{Point: p}}).judge(j, o, preset, order)
	})
	if err != nil {
		return nil, err
	}
	return j, nil
}

// JudgeInRuns is Judge by trial runs of the system, which need no models and show faster growth only. Of Options, it also
// uses Runs. Errors: those of the context, and why nothing grows in the runs, or why the cause of growth is unknown.
func JudgeInRuns(ctx context.Context, o Options, own *forecast.Own) (*Judgement, error) {
	look := func(h float64) (trial.Finding, error) {
		s, t := &trial.Strategy{Preset: own.Preset, Order: own.Order, New: own.New}, o.Runs
		t.Start, t.At, t.Tolerance, t.Step, t.From, t.To = o.Start, o.At, o.Tolerance, h, h, h
		if err := trial.Run(ctx, t, []*trial.Strategy{s}); err != nil {
			return trial.Finding{}, err
		} else if s.Missed > 0 {
			return trial.Finding{}, trial.ErrNoTime
		}
		return s.Looks[0], nil
	}
	now, err := look(o.Step)
	if err != nil {
		return nil, err
	} else if now.Kind != trial.Grows {
		return nil, errors.New(cmp.Or(now.Why, "nothing grows in trial runs [undecided]"))
	}
	j := &Judgement{Radius: now.Radius}
	rate := math.Log(now.Radius) / o.Step
	part := max(farBelow[1], 2*trial.Least/(rate*o.Step)) // the growth of the system itself shows from there on
	if part > 0.5 {
		return nil, errors.New("the growth is too slow to find its cause in trial runs [undecided]")
	}
	short, err := look(part * o.Step)
	if err != nil {
		return nil, err
	}
	switch {
	case short.Kind == trial.Unknown:
		return nil, errors.New(short.Why)
	case short.Kind == trial.Grows && math.Log(short.Radius)/short.Step > rate/2:
		j.Itself = &scan.Growth{Rate: math.Log(short.Radius) / short.Step}
	}
	return j, nil
}

// judge fills j.
func (p *analysis) judge(j *Judgement, o Options, preset string, order int) error {
	var own *twin.Scheme
	var formed []*twin.Scheme // with exact radii, own first
	for _, s := range p.schemes(o.Order, twin.OwnRates(o.Rates), o.bonds()) {
		if s.Preset == preset && s.Order == order {
			own = s
		}
		switch {
		case s.Hidden:
		case s == own:
			formed = slices.Insert(formed, 0, s)
		default:
			formed = append(formed, s)
		}
	}
	if own == nil {
		return fmt.Errorf("%s of order %d is not analysed [not-covered]", preset, order)
	}
	r := &Report{Step: o.Step, Structure: Structure{Discrete: discreteConnections(p.X.Sys)}}
	why := p.trust(r, o.Stop, p.moot(&r.Structure))
	why = cmp.Or(why, nonlinear(own))
	if why == "" {
		why = p.refused(own)
	}
	if why != "" {
		return errors.New(why)
	}
	radius := func(s *twin.Scheme, h float64) (scan.Eigen, error) {
		j.Looks++
		return p.Radius(s, h, false)
	}
	mode, err := radius(own, o.Step)
	if err != nil {
		return err
	}
	beside := func(h float64) (float64, error) { mode, err := radius(own, h); return mode.Radius(), err }
	if err := p.Doubt(own, o.Step, mode.Radius(), beside); err != nil {
		return err
	}
	j.Radius = mode.Radius()
	switch p.follow(r, o, []float64{1}); {
	case linear.Stable(j.Radius) && r.Unconfirmed != "":
		return errors.New(r.Unconfirmed)
	case linear.Stable(j.Radius):
		return nil
	case r.Large != "":
		return errors.New(r.Large)
	}
	for _, part := range farBelow {
		h := part * o.Step
		if mode, err = radius(own, h); err != nil {
			continue
		}
		if rate := math.Log(mode.Radius()) / h; rate > math.Log(j.Radius)/o.Step/2 {
			j.Itself = &scan.Growth{Rate: rate, Frequency: mode.Frequency(h)}
			j.Whole = p.wholeAt(h, formed, radius)
		}
		break
	}
	return nil
}

// ownRates is the largest relative difference of growth rates at the shortest steps that counts as growth of the system
// itself.
const ownRates = 0.02

// whole returns the growth of the coupled system that no algorithm and no step can change: the rate that all algorithms
// have at the shortest steps of the scan. nil = there is none, or the motion is too large for linear models. frequency
// returns the frequency in Hz of the mode of a strategy at a step.
func (r *Report) whole(all []*twin.Scheme, frequency func(s *twin.Scheme, h float64) float64) *scan.Growth {
	if r.Large != "" {
		return nil
	}
	least, most, n, last := math.Inf(1), 0.0, 0, -1
	var at float64
	for k := range r.Strategies {
		s := &r.Strategies[k]
		if all[k].Hidden || len(s.Points) == 0 || s.Multiples > 0 {
			continue
		}
		first := s.Points[0]
		if linear.Stable(first.Radius) {
			return nil
		}
		rate := math.Log(first.Radius) / first.Step
		least, most = min(least, rate), max(most, rate)
		n, last, at = n+1, k, first.Step
	}
	if n < 2 || most-least > ownRates*most {
		return nil
	}
	return &scan.Growth{Rate: most, Frequency: frequency(all[last], at)}
}

// wholeAt returns the growth of the coupled system itself, from two strategies at a step far below that of the analysis;
// nil = it is stable, or unknown.
func (p *analysis) wholeAt(h float64, formed []*twin.Scheme, radius func(s *twin.Scheme, h float64) (scan.Eigen, error)) *scan.Growth {
	const enough = 2
	least, most, frequency := math.Inf(1), 0.0, 0.0
	for _, s := range formed[:enough] {
		mode, err := radius(s, h)
		if err != nil || linear.Stable(mode.Radius()) {
			return nil
		}
		rate := math.Log(mode.Radius()) / h
		least, most, frequency = min(least, rate), max(most, rate), mode.Frequency(h)
	}
	if most-least > ownRates*most {
		return nil
	}
	return &scan.Growth{Rate: most, Frequency: frequency}
}
