package master_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macrostep/macrostep/master"
)

// A run takes as many macro steps as are admitted; the time of waiting is not its own;
// results are those of a run that nobody stops.
func TestAdmit(t *testing.T) {
	admitted := func(admit master.Admission) ([]float64, master.Result, error) {
		sys, _ := oscillator(t)
		rec := &times{}
		res, err := newRun(t, sys, master.Options{Stop: 1, Step: 0.125, Recorders: []master.Recorder{rec}, Admit: admit}).Run(context.Background())
		return rec.t, res, err
	}
	want, _, err := admitted(nil)
	if err != nil || len(want) != 9 {
		t.Fatalf("%v, %v", want, err)
	}
	const wait = 50 * time.Millisecond
	var asked []int
	var times []float64
	var res master.Result
	synctest.Test(t, func(*testing.T) { // with a clock that only waiting moves
		times, res, err = admitted(func(context.Context) (int, bool, error) {
			time.Sleep(wait)
			asked = append(asked, len(asked))
			return []int{1, 3, 0, 1 << 62, 1}[len(asked)-1], true, nil
		})
	})
	if err != nil || res.Status != master.Complete || !slices.Equal(times, want) || len(asked) != 4 {
		t.Errorf("%v, %s, asked %d times, %v", times, res.Status, len(asked), err)
	}
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sys, _ := oscillator(t)
			r := newRun(t, sys, master.Options{Stop: 1, Step: 0.125, Realtime: &master.Realtime{}, Admit: func(context.Context) (int, bool, error) {
				time.Sleep(wait)
				return 4, paused, nil
			}})
			r.Simulate()
			timed, err := r.Run(t.Context())
			if p := timed.Realtime.Paused; err != nil || paused != (p > 0) || paused && p < wait.Seconds() {
				t.Errorf("paused %t: %v, paused for %g s", paused, err, p)
			}
		})
	}
	if res.MasterSeconds > 0 {
		t.Errorf("the run took %g s, with the time of waiting", res.MasterSeconds)
	}
	broken := errors.New("no more")
	n := 0
	times, res, err = admitted(func(context.Context) (int, bool, error) {
		if n++; n == 3 {
			return 1, false, broken
		}
		return 2, false, nil
	})
	if !errors.Is(err, broken) || len(times) != 5 || res.Accepted != 4 {
		t.Errorf("%v, %d steps, %v", times, res.Accepted, err)
	}
}
