package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// The picture has a chart per algorithm with a known radius and says what everything in it means.
func TestRadiusPlot(t *testing.T) {
	strategy := func(preset string, order int, radii ...float64) analyze.Strategy {
		s := analyze.Strategy{Preset: preset, Order: order}
		for i, r := range radii {
			s.Points = append(s.Points, scan.Radius{Step: []float64{1e-3, 2e-3, 1e-2}[i], Radius: r})
		}
		return s
	}
	r := &analyze.Report{Step: 2e-3, From: 1e-3, To: 1e-2, Strategies: []analyze.Strategy{
		strategy("explicit", 0, 0.9, 0.99, 1.5), strategy("explicit", 1, 0.9, 0.999, 80), strategy("implicit", 0, 1, 1, 1), strategy("other", 2),
	}}
	r.Strategies[0].Gaps = []scan.Gap{{From: 3e-3, To: 4e-3}}
	var b bytes.Buffer
	if err := radiusPlot(&b, r); err != nil {
		t.Fatal(err)
	}
	svg := b.String()
	contains(t, "the picture", svg, ">explicit<", ">implicit<", ">order 0<", ">order 1<", ">stable<", ">unstable<", ">step of the analysis, 0.002 s<",
		">macro step [s]<", ">spectral radius − 1<", ">Radius unknown<", ">other, order 2<", ">-0.01<", ">1<")
	if strings.Contains(svg, ">order 2<") || strings.Contains(svg, ">other<") {
		t.Error("an algorithm without a radius has a chart or a line in the legend")
	}
	line := radiusLine(&r.Strategies[0])
	if n := len(line.Y); n != 4 || line.Y[2] == line.Y[2] {
		t.Errorf("the line %v has no gap", line.Y)
	}
	for _, v := range []float64{-1, -1e-3, 0, 1e-7, 1} {
		if a, b := signedLog(v), signedLog(v+1e-9); !(a < b) || (a < 0) != (v < 0) {
			t.Errorf("%g is at %g", v, a)
		}
	}
}
