package analyze

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// Seen describes the trial runs in which the points of a strategy were found.
type Seen struct {
	Looks int `json:"looks"` // step sizes that were tried
	Runs  int `json:"runs"`
	// Steps is the largest number of macro steps of a trial run, Least the smallest growth per step that these show.
	Steps int     `json:"steps"`
	Least float64 `json:"least_growth"`
	// Precision is the largest relative distance from the end of a stable range to the next tried step outside.
	Precision float64 `json:"precision"`
	Now       bool    `json:"at_step"`          // the step of the analysis was tried with a result
	Missed    int     `json:"missed,omitempty"` // steps that were not tried for lack of time
}

// lookAtRuns makes trial runs of the strategies whose stability is unknown from models, or known from them for small
// motions only: then the runs count.
func (r *Report) lookAtRuns(ctx context.Context, sys *master.System, o Options) error {
	if o.Runs.Again == nil || !(o.Runs.Time > 0) || len(r.Structure.Connections) == 0 {
		return nil
	}
	var all []*trial.Strategy
	for k, s := range r.schemes {
		if len(r.Strategies[k].Points) > 0 && r.Unconfirmed == "" || nonlinear(s) != "" || o.Runs.Only != nil && !o.Runs.Only(s.Preset, s.Order) {
			continue
		}
		if alg, err := s.Algorithm(); err == nil && alg.Check(sys) == nil {
			all = append(all, &trial.Strategy{Preset: s.Preset, Order: s.Order, New: s.Algorithm})
		}
	}
	present := func(t *trial.Strategy) int {
		if o.Own != nil && t.Preset == o.Own.Preset && t.Order == o.Own.Order {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *trial.Strategy) int { return present(a) - present(b) })
	if len(sys.Infos) > twin.Many { // runs are slow and seldom give a result
		o.Runs.Time /= 4
	}
	t := o.Runs
	t.Start, t.At, t.Tolerance, t.Step, t.From, t.To = o.Start, o.At, o.Tolerance, r.Step, r.From, r.To
	if err := trial.Run(ctx, t, all); err != nil {
		return err
	}
	for _, t := range all {
		k := slices.IndexFunc(r.schemes, func(s *twin.Scheme) bool { return s.Preset == t.Preset && s.Order == t.Order })
		s := &r.Strategies[k]
		if len(s.Points) > 0 { // of small motions
			r.Recommended = -1
			if len(t.Looks) == 0 {
				s.Untold = cmp.Or(s.Untold, "its stability is that of small motions, because there was no time for runs: "+r.Unconfirmed)
				continue
			}
			s.Result, s.Why = scan.Result{}, r.Unconfirmed
		}
		s.takeTrials(t, r.Step)
	}
	if r.Recommended < 0 {
		if r.recommend(o.Error); r.Recommended >= 0 && r.Strategies[r.Recommended].Seen != nil {
			r.Why += "; trial runs show that it is stable"
		}
	}
	return nil
}

// takeTrials puts the results of trial runs into the strategy.
func (s *Strategy) takeTrials(t *trial.Strategy, step float64) {
	seen, why, last := &Seen{Looks: len(t.Looks), Runs: t.Runs, Missed: t.Missed, Steps: trial.Steps, Least: trial.Least}, "", trial.Unknown
	known := func(k int) bool { return k >= 0 && k < len(t.Looks) && t.Looks[k].Kind != trial.Unknown }
	s.Gaps = nil
	for i, l := range t.Looks {
		if i > 0 && trial.Ends(t.Looks[i-1], l) {
			seen.Precision = max(seen.Precision, l.Step/t.Looks[i-1].Step-1)
		}
		if l.Kind == trial.Calm && len(t.Looks) > 1 && !known(i-1) && !known(i+1) { // may be by chance
			l.Kind, l.Why = trial.Unknown, "differences do not grow, but the neighbouring steps are unknown [undecided]"
		}
		switch {
		case l.Kind != trial.Unknown:
			s.Points = append(s.Points, scan.Radius{Step: l.Step, Radius: l.Radius})
			if l.Step == step && s.Mode == nil {
				s.Now, seen.Now = l.Radius, true
			}
		case s.Gaps != nil && last == trial.Unknown:
			s.Gaps[len(s.Gaps)-1].To = l.Step
		default:
			s.Gaps = append(s.Gaps, scan.Gap{From: l.Step, To: l.Step, Why: l.Why})
			why = cmp.Or(why, fmt.Sprintf("in runs with steps of %.4g s: %s", l.Step, l.Why))
		}
		switch {
		case l.Kind != trial.Calm:
		case last != trial.Calm:
			s.Stable = append(s.Stable, scan.Range{From: l.Step, To: l.Step})
		default:
			s.Stable[len(s.Stable)-1].To = l.Step
		}
		last = l.Kind
	}
	if len(s.Points) == 0 {
		s.Gaps, s.Why = nil, cmp.Or(s.Why, "its stability is unknown")+"; "+cmp.Or(why, trial.ErrNoTime.Error())
		return
	}
	s.Seen, s.Why = seen, why
}
