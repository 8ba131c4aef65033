package master_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
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

// laggard returns a clock by which each look at it takes a millisecond, so that a hand-over
// always costs more than it gains.
func laggard() func() time.Time {
	begin, looks := time.Now().Add(time.Hour), atomic.Int64{}
	return func() time.Time { return begin.Add(time.Duration(looks.Add(1)) * time.Millisecond) }
}

// still returns a clock that has stopped: phases take no time.
func still() func() time.Time {
	now := time.Now().Add(time.Hour)
	return func() time.Time { return now }
}

// Workers that were chosen and do not pay are dropped in the middle of a run; those that
// were asked for stay, with one warning. The results are those of one thread.
func TestWorkersDropped(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, algorithm := range []string{"explicit", "implicit"} {
		timed := func(workers int, clock func() time.Time) ([]string, master.Result) {
			t.Helper()
			subs := mastertest.Oscillator()
			sys := system(t, []master.Subsystem{&priced{Subsystem: subs[0], cost: 1}, &priced{Subsystem: subs[1], cost: 1}}, mastertest.OscillatorConnections()...)
			rows := &everything{}
			r := made(t, sys, preset(t, algorithm, nil), master.Options{Stop: 0.15, Step: 0.0005, Workers: workers, Recorders: []master.Recorder{rows}})
			r.SetClock(clock)
			result := run(t, r)
			return rows.rows, result
		}
		want, _ := timed(1, still())
		for _, c := range []struct {
			name            string
			asked           int
			clock           func() time.Time
			workers         int
			notes, warnings int
		}{
			{"chosen, and pays", 0, still(), 2, 0, 0},
			{"chosen, and does not pay", 0, laggard(), 1, 1, 0},
			{"asked for, and does not pay", 2, laggard(), 2, 0, 1},
		} {
			rows, result := timed(c.asked, c.clock)
			if !slices.Equal(rows, want) {
				t.Errorf("%s, %s: other results", algorithm, c.name)
			}
			about := func(texts []string) int {
				return strings.Count(strings.Join(texts, ""), "with 2 workers the subsystems take")
			}
			if result.Workers != c.workers || about(result.Notes) != c.notes || about(result.Warnings) != c.warnings {
				t.Errorf("%s, %s: %d workers after %d steps, notes %q, warnings %q", algorithm, c.name, result.Workers, result.Accepted, result.Notes, result.Warnings)
			}
		}
	}
}

// The cost that is kept is that of undisturbed steps. A run that did not know it uses one
// thread, and notes that more would have paid.
func TestStepCosts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, c := range []struct {
		cost float64 // s
		note string
	}{{1e-6, ""}, {1, "--workers 2 would have taken about 0.5 of the time; the next run will choose it"}} {
		var subs []master.Subsystem
		var costs []*priced
		for i := range 2 {
			f := newFake(fmt.Sprint("f", i), 0, 1)
			p := &priced{Subsystem: f}
			f.step = func(t, H float64) (float64, error) {
				p.seconds += c.cost
				if len(f.lengths)%100 == 30 {
					p.seconds += 100 * c.cost // another program
				}
				if len(f.lengths) == 1 {
					time.Sleep(60 * time.Millisecond) // of a shorter run nothing is kept
				}
				return t + H, nil
			}
			subs, costs = append(subs, p), append(costs, p)
		}
		result, err := newRun(t, system(t, subs), master.Options{Stop: 1, Step: 0.001}).Run(t.Context())
		if err != nil || result.Workers != 1 || strings.Join(result.Notes, "") != c.note {
			t.Errorf("%v, %d workers, %q", err, result.Workers, result.Notes)
		}
		for _, p := range costs {
			if p.kept < 0.999*c.cost || p.kept > 1.001*c.cost {
				t.Errorf("%g s are kept of %g", p.kept, c.cost)
			}
		}
	}
}
