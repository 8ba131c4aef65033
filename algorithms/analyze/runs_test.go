package analyze

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// anew gives runs of systems that make makes.
func anew(make func() *master.System) Runs {
	return Runs{Time: time.Minute, Again: func(context.Context) (*master.System, func() error, error) { return make(), nil, nil }}
}

// blind is the report of an analysis to which models tell nothing, filled in from runs.
func blind(t *testing.T, make func() *master.System, o Options) (models, runs *Report) {
	t.Helper()
	models, err := Run(t.Context(), make(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := *models
	r.Recommended, r.Strategies, r.schemes = -1, nil, nil
	for k, s := range models.Strategies {
		if !models.schemes[k].hidden {
			r.Strategies = append(r.Strategies, Strategy{Preset: s.Preset, Order: s.Order, Params: s.Params})
			r.schemes = append(r.schemes, models.schemes[k])
		}
	}
	o.Runs = anew(make)
	if err := r.lookAtRuns(t.Context(), make(), o); err != nil {
		t.Fatal(err)
	}
	return models, &r
}

// modelOf finds the strategy.
func (r *Report) strategy(preset string, order int) *Strategy {
	k := slices.IndexFunc(r.Strategies, func(s Strategy) bool { return s.Preset == preset && s.Order == order })
	return &r.Strategies[k]
}

// Where models are exact, the ends of stable ranges are those that runs show, and so are the
// radii.
func TestRunsAgreeWithModels(t *testing.T) {
	haid := exact.DefaultHaid()
	for name, c := range map[string]struct {
		make func() *master.System
		o    Options
	}{
		"oscillator": {func() *master.System {
			var subs []master.Subsystem
			for _, l := range mastertest.Oscillator() {
				subs = append(subs, l)
			}
			sys, err := master.NewSystem(subs, mastertest.OscillatorConnections())
			if err != nil {
				t.Fatal(err)
			}
			return sys
		}, Options{Step: 1e-2, Order: 1, Stop: 1}},
		"haid":  {func() *master.System { return haidSystem(t, haid, nil) }, Options{Step: 1e-4, Order: 1, Stop: 1e-2}},
		"chain": {func() *master.System { sys, _ := masses(t, 5); return sys }, Options{Step: 1e-3, Order: 1, Stop: 0.1}},
		"lags":  {func() *master.System { return lagLoop(t, -50, 1) }, Options{Step: 1e-2, Order: 1, Stop: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			models, runs := blind(t, c.make, c.o)
			for _, s := range runs.Strategies {
				m := models.strategy(s.Preset, s.Order)
				t.Logf("%s %d: model %v runs %v gaps %v now %.6g %.6g %+v %s", s.Preset, s.Order, m.Stable, s.Stable, s.Gaps, m.Now, s.Now, s.Seen, s.Why)
				if !testing.Verbose() {
					continue
				}
				for _, p := range s.Points {
					k := slices.IndexFunc(m.Points, func(q Radius) bool { return q.Step > p.Step*0.999 })
					if math.Abs(p.Radius-m.Points[max(k, 0)].Radius) > 0.01 || stable(p.Radius) != stable(m.Points[max(k, 0)].Radius) {
						t.Logf("   %.5g  %.6g model at %.5g %.6g", p.Step, p.Radius, m.Points[max(k, 0)].Step, m.Points[max(k, 0)].Radius)
					}
				}
			}
			_ = math.Pi
		})
	}
}
