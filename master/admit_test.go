package master_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// A run takes as many macro steps as are admitted; the time of waiting is not its own;
// results are those of a run that nobody stops.
func TestAdmit(t *testing.T) {
	run := func(admit master.Admission) (times []float64, res master.Result, err error) {
		var subs []master.Subsystem
		for _, s := range mastertest.Oscillator() {
			subs = append(subs, s)
		}
		sys, err := master.NewSystem(subs, mastertest.OscillatorConnections())
		if err != nil {
			t.Fatal(err)
		}
		choice, err := algorithms.New("explicit", nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 1, Step: 0.125, Recorders: []master.Recorder{&timesOnly{&times}}, Admit: admit})
		if err != nil {
			t.Fatal(err)
		}
		res, err = r.Run(context.Background())
		return times, res, err
	}
	want, _, err := run(nil)
	if err != nil || len(want) != 9 {
		t.Fatalf("%v, %v", want, err)
	}
	const wait = 50 * time.Millisecond
	var asked []int
	var times []float64
	var res master.Result
	synctest.Test(t, func(*testing.T) { // with a clock that only waiting moves
		times, res, err = run(func(context.Context) (int, error) {
			time.Sleep(wait)
			asked = append(asked, len(asked))
			return []int{1, 3, 0, 1 << 62, 1}[len(asked)-1], nil
		})
	})
	if err != nil || res.Status != master.Complete || !slices.Equal(times, want) || len(asked) != 4 {
		t.Errorf("%v, %s, asked %d times, %v", times, res.Status, len(asked), err)
	}
	if res.MasterSeconds > 0 {
		t.Errorf("the run took %g s, with the time of waiting", res.MasterSeconds)
	}
	broken := errors.New("no more")
	n := 0
	times, res, err = run(func(context.Context) (int, error) {
		if n++; n == 3 {
			return 1, broken
		}
		return 2, nil
	})
	if !errors.Is(err, broken) || len(times) != 5 || res.Accepted != 4 {
		t.Errorf("%v, %d steps, %v", times, res.Accepted, err)
	}
}

type timesOnly struct{ times *[]float64 }

func (r *timesOnly) Begin(*master.System, []master.Port) error { return nil }
func (r *timesOnly) Record(p *master.Point) error {
	*r.times = append(*r.times, p.T)
	return nil
}
func (r *timesOnly) Flush() error            { return nil }
func (r *timesOnly) End(master.Result) error { return nil }
