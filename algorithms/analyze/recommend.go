package analyze

import (
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

const (
	// undamped is how close to 1 the radius of a hardly damped coupling is.
	undamped = 1e-4
	// followedOff is the error of a followed radius of such a coupling: over the steps of the run of the models, the
	// slowest mode cannot be separated from similar ones.
	followedOff = 3e-3
)

// doubtFollowed marks radii found in runs of the models (Scheme.Hidden) as inexact if the system is hardly damped.
func (r *Report) doubtFollowed(all []*twin.Scheme) {
	formed := func(k int) bool {
		s := &r.Strategies[k]
		return !all[k].Hidden && s.Mode != nil && math.Abs(s.slowest()-1) < undamped
	}
	for k := range all {
		if !formed(k) {
			continue
		}
		for i := range all {
			if s := &r.Strategies[i]; all[i].Hidden && len(s.Points) > 0 && s.Untold == "" {
				s.Untold = fmt.Sprintf("the system is hardly damped, and this radius is from a run of the models: it may be off "+
					"by %.0g, and the stable steps are not exact [undamped]", followedOff)
			}
		}
		return
	}
}

// nearUnknown is the least relative distance of a recommended step from steps of unknown stability.
const nearUnknown = 0.05

// safety is the largest recommended part of the largest stable step: a half, and a little more, as trial runs do not find
// limits exactly.
const safety = 0.53

// covers reports whether the steps from h to h/safety lie in one stable range, so that h is stable with a margin.
// A range that starts where the scan does, at from, includes shorter steps.
func (s *Strategy) covers(h, from float64) bool {
	if slices.ContainsFunc(s.Gaps, func(g scan.Gap) bool { return h >= g.From*(1-nearUnknown) && h <= g.To*(1+nearUnknown) }) {
		return false
	}
	return slices.ContainsFunc(s.Stable, func(r scan.Range) bool {
		return h <= safety*r.To && (r.From <= h*(1+1e-9) || r.From <= from*(1+1e-9))
	})
}

// largest returns the largest step of the lowest stable range with a margin; 0 = none.
func (s *Strategy) largest() float64 {
	if len(s.Stable) == 0 || s.Stable[0].From > s.Points[0].Step || safety*s.Stable[0].To < s.Stable[0].From {
		return 0
	}
	return safety * s.Stable[0].To
}

// recommend fills Recommended, StepToTake, Promised and Why. Where errors are known, it takes the cheapest strategy and step
// that is stable with a margin and has at most the error most, or else the smallest error; where they are unknown, see
// recommendStable.
func (r *Report) recommend(most float64) {
	nearest, near := r.cheapest(most)
	switch {
	case r.Promised != nil:
		r.Why = fmt.Sprintf("the cheapest with an error of at most %g and a margin of stability", most)
	case nearest == nil:
		r.recommendStable()
		return
	default:
		r.Recommended, r.Promised = near, nearest
		r.Why = fmt.Sprintf("no strategy has an error of at most %g and a margin of stability; this one comes nearest", most)
		if nearest.Error <= most {
			known := fmt.Sprintf("uncertain by %.2g", nearest.Doubt)
			if nearest.IsRough() {
				known = "only an order of magnitude"
			}
			r.Why = fmt.Sprintf("no strategy with a margin of stability can be promised to have an error of at most %g; this "+
				"one comes nearest: its expected error is %s, because the models are off by %.2g along the motion", most, known, nearest.Doubt)
		}
	}
	r.StepToTake = r.Promised.Step
}

// alikeDoubt is the factor between largest possible errors that are alike: where the uncertainty of the models prevails, a
// smaller expected error is not worth its cost.
const alikeDoubt = 1.25

// cheapest sets Promised to the cheapest forecast that is stable with a margin and has at most the error most. It returns
// the one of the others that comes nearest, and the index of its strategy: the forecast with the smallest possible error, or
// if only uncertainty keeps it above most, the cheapest of those with about this uncertainty.
func (r *Report) cheapest(most float64) (nearest *forecast.Forecast, near int) {
	each := func(do func(i int, f *forecast.Forecast)) {
		for i := range r.Strategies {
			s := &r.Strategies[i]
			for k := range s.Forecasts {
				if f := &s.Forecasts[k]; s.Untold == "" && s.covers(f.Step, r.From) {
					do(i, f)
				}
			}
		}
	}
	each(func(i int, f *forecast.Forecast) {
		switch {
		case f.Error+f.Doubt > most:
			if nearest == nil || f.Error+f.Doubt < nearest.Error+nearest.Doubt {
				nearest, near = f, i
			}
		case r.Promised == nil || f.FMUSteps < (1-1e-9)*r.Promised.FMUSteps:
			r.Recommended, r.Promised = i, f
		}
	})
	if nearest != nil && nearest.Error <= most {
		least := alikeDoubt * (nearest.Error + nearest.Doubt)
		each(func(i int, f *forecast.Forecast) {
			if f.Error <= most && f.Error+f.Doubt <= least && f.FMUSteps < (1-1e-9)*nearest.FMUSteps {
				nearest, near = f, i
			}
		})
	}
	return nearest, near
}

// recommendStable takes the simplest strategy that is stable at the step of the analysis with a margin, or else the one with
// the largest stable step.
func (r *Report) recommendStable() {
	best, where := -1, 0.0
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if s.Untold != "" {
			continue
		}
		if s.covers(r.Step, r.From) {
			r.Recommended, r.StepToTake = i, r.Step
			r.Why = "the simplest that is stable at this step with a margin"
			return
		}
		if l := s.largest(); l > where {
			best, where = i, l
		}
	}
	shortKnown := slices.ContainsFunc(r.Strategies, func(s Strategy) bool {
		return len(s.Points) > 0 && (s.Multiples > 0 || s.Points[0].Step <= r.From*(1+1e-9))
	})
	switch {
	case best >= 0:
		r.Recommended, r.StepToTake = best, where
		r.Why = "no strategy is stable at this step with a margin; this one has the largest stable step"
	case !shortKnown:
		r.Why = "the stability at short steps is unknown"
	case r.Whole != nil:
		r.Why = "the system itself is unstable, whatever the step: judge algorithms by their errors over the time of interest"
	default:
		r.Why = "no strategy is stable at the smallest step of the scan"
	}
}
