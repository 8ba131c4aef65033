package algorithms

import (
	"math"
	"testing"
)

// A swing that starts from rest or fades is none; one that sways up by three orders
// of magnitude within some hundred steps, and settles, is, from where it does on.
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

// Steps that grow with a motion that starts from rest, as step size control takes them,
// make no jumps of it.
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
