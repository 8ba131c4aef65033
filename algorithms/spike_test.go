package algorithms

import (
	"math"
	"reflect"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// Oscillations that start from rest, fade or grow slowly are no spikes. One that grows by three
// orders of magnitude within some hundred steps is.
func TestSpikes(t *testing.T) {
	for _, c := range []struct {
		name      string
		size      func(t float64) float64
		from, low float64 // first spike; low = none
	}{
		{"steady", func(float64) float64 { return 1 }, 0, math.Inf(1)},
		{"from rest", func(t float64) float64 { return t * t }, 0, math.Inf(1)},
		{"fading", func(t float64) float64 { return math.Exp(-t) }, 0, math.Inf(1)},
		{"doubling every second", func(t float64) float64 { return math.Exp2(t) }, 0, math.Inf(1)},
		{"window", func(t float64) float64 { return 1 + 5000*math.Exp(-(t-4)*(t-4)/0.2) }, 3, 3.5},
	} {
		d := spikeDetector{threshold: 50}
		for i := range 1000 {
			at := float64(i) * 1e-2
			d.add(at, 1e-2, math.Abs(c.size(at)*math.Sin(13*at)))
		}
		switch {
		case math.IsInf(c.low, 1):
			if d.spikes > 0 {
				t.Errorf("%s: %d spikes, first at %g", c.name, d.spikes, d.firstAt)
			}
		case d.spikes == 0 || d.firstAt < c.from || d.firstAt > c.low:
			t.Errorf("%s: %d spikes, first at %g", c.name, d.spikes, d.firstAt)
		}
	}
}

// Step sizes that grow with a motion from rest cause no spikes.
func TestNoSpikesByStepSize(t *testing.T) {
	d := spikeDetector{threshold: 50}
	at, H := 0.0, 1e-6
	for at < 10 {
		H = min(max(H, 1e-2*at), 1e-2)
		at += H
		d.add(at, H, H*at*at/(1+at*at))
	}
	if d.spikes > 0 {
		t.Errorf("%d spikes, first at %g", d.spikes, d.firstAt)
	}
}

// Counters that the runs of TestResume do not move are archived too.
func TestCountersArchive(t *testing.T) {
	type archiver interface{ archive(*master.Archive) }
	saved := []archiver{
		&implicit{stagnated: 2, cut: 1, worst: 0.25, solved: 7, deaf: 4},
		&correctionJudge{why: "why", displaced: true, added: 1, removed: 2, size: 3, mark: 4, worst: [epochs]float64{5, 6}},
	}
	restored := []archiver{&implicit{}, &correctionJudge{}}
	to := master.NewArchive()
	for _, s := range saved {
		s.archive(to)
	}
	from := master.ReadArchive(to.Data())
	for _, r := range restored {
		r.archive(from)
	}
	if err := from.Finish(); err != nil || !reflect.DeepEqual(restored, saved) {
		t.Errorf("%v: %+v, want %+v", err, restored, saved)
	}
}
