package master_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// priced is a subsystem that knows its cost, keeps the one that it is given, and meters itself.
type priced struct {
	master.Subsystem
	cost, kept float64 // s; 0 = not known
	seconds    float64
}

func (p *priced) Unwrap() master.Subsystem              { return p.Subsystem }
func (p *priced) StepCost(float64) (s float64, ok bool) { return p.cost, p.cost > 0 }
func (p *priced) KeepStepCost(_, seconds float64)       { p.kept, p.cost = seconds, seconds }
func (p *priced) Seconds() float64                      { return p.seconds }

// Several workers are chosen where, with a hand-over of 50 µs, they take at most nine tenths of the time of one thread.
func TestBestCrew(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const us = 1e-6
	for name, c := range map[string]struct {
		costs   []float64
		workers int
	}{
		"eight of 100 µs":               {slices.Repeat([]float64{100 * us}, 8), 2},
		"two of 130 µs":                 {slices.Repeat([]float64{130 * us}, 2), 2},
		"two of 60 µs":                  {slices.Repeat([]float64{60 * us}, 2), 1},
		"eight of 10 µs":                {slices.Repeat([]float64{10 * us}, 8), 1},
		"two of 1 µs":                   {slices.Repeat([]float64{us}, 2), 1},
		"a thousand of 30 ns":           {slices.Repeat([]float64{0.03 * us}, 1000), 1},
		"one that outweighs the others": {[]float64{1000 * us, us, us, us, us, us, us, us}, 1},
		"unequal ones":                  {[]float64{300 * us, 100 * us, 100 * us, 100 * us}, 2},
		"one":                           {[]float64{1}, 1},
	} {
		if workers := master.BestCrew(c.costs); workers != c.workers {
			t.Errorf("%s: %d workers, want %d", name, workers, c.workers)
		}
	}
}

// The number of workers is chosen by the costs of earlier runs, once; without all of them there is one. The results are
// the same.
func TestWorkersByCost(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var want []string
	for _, c := range []struct {
		costs   [2]float64 // s; 0 = not known
		asked   int
		workers int
	}{{[2]float64{1, 1}, 0, 2}, {[2]float64{1, 0}, 0, 1}, {[2]float64{0, 1}, 0, 1}, {[2]float64{}, 0, 1}, {[2]float64{1e-6, 1e-6}, 0, 1},
		{[2]float64{1, 1}, 1, 1}, {[2]float64{1e-6, 0}, 2, 2}} {
		for _, algorithm := range []string{"explicit", "implicit"} {
			subs := mastertest.Oscillator()
			sys := system(t, []master.Subsystem{&priced{Subsystem: subs[0], cost: c.costs[0]}, &priced{Subsystem: subs[1], cost: c.costs[1]}},
				mastertest.OscillatorConnections()...)
			rows := &everything{}
			result := run(t, made(t, sys, preset(t, algorithm, nil), master.Options{Stop: 0.15, Step: 0.0005, Workers: c.asked, Recorders: []master.Recorder{rows}}))
			if result.Workers != c.workers || len(result.Notes) > 0 {
				t.Errorf("%+v: %d workers, notes %q", c, result.Workers, result.Notes)
			}
			if algorithm != "explicit" {
				continue
			}
			if want == nil {
				want = rows.rows
			}
			if !slices.Equal(rows.rows, want) {
				t.Errorf("%+v: other results", c)
			}
		}
	}
}

// The mean cost of a step is kept for later runs.
func TestStepCosts(t *testing.T) {
	var subs []master.Subsystem
	var costs []*priced
	for i := range 2 {
		f := newFake(fmt.Sprint("f", i), 0, 1)
		p := &priced{Subsystem: f}
		f.step = func(t, H float64) (float64, error) {
			p.seconds += float64(1 + len(f.lengths)%2)
			if len(f.lengths) == 1 {
				time.Sleep(60 * time.Millisecond) // of a shorter run nothing is kept
			}
			return t + H, nil
		}
		subs, costs = append(subs, p), append(costs, p)
	}
	result, err := newRun(t, system(t, subs), master.Options{Stop: 1, Step: 0.001}).Run(t.Context())
	if err != nil || result.Workers != 1 {
		t.Errorf("%v, %d workers", err, result.Workers)
	}
	for _, p := range costs {
		if p.kept != 1.5 {
			t.Errorf("%g s are kept of 1.5", p.kept)
		}
	}
}
