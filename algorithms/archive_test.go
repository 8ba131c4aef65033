package algorithms

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// What is counted goes through an archive whole.
func TestCountsArchive(t *testing.T) {
	d := spikeDetector{threshold: 5}
	for k := range 3000 {
		v := 1 + 0.1*math.Sin(float64(k))
		if k%100 == 99 {
			v = 50
		}
		d.add(float64(k), 1, v)
	}
	f := failure{steps: 3, first: 0.5, reason: "why", now: true}
	s := implicit{stagnated: 2, worst: 0.25}
	j := correctionJudge{why: "why", displaced: true, added: 1, removed: 2, size: 3, mark: 4, worst: [epochs]float64{5, 6}}
	a := master.NewArchive()
	j.archive(a)
	d.archive(a)
	f.archive(a)
	s.archive(a)
	var toJ correctionJudge
	to, toF, toS := spikeDetector{threshold: 5}, failure{}, implicit{}
	from := master.ReadArchive(a.Data())
	toJ.archive(from)
	to.archive(from)
	toF.archive(from)
	toS.archive(from)
	if from.Finish() != nil || to != d || toF != f || toS.stagnated != s.stagnated || toS.worst != s.worst || d.spikes == 0 || d.length == 0 || !reflect.DeepEqual(toJ, j) {
		t.Errorf("%v: %+v, want %+v; %+v; %+v", from.Finish(), to, d, toF, toS)
	}
}

// The absolute tolerance of a variable without nominal value follows the largest
// magnitude at accepted points, and is none of the user's or the description's.
func TestScales(t *testing.T) {
	part := func(name string) master.Subsystem {
		unit := [][]float64{{1, 0}, {0, 1}}
		return mastertest.NewLinear(name, mastertest.Matrices{A: unit, B: unit, C: unit}, []float64{0, 0})
	}
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{part("mass1"), part("mass2")}, []master.Connection{
		{From: at("mass2", "y1"), To: at("mass1", "u1")}, {From: at("mass2", "y2"), To: at("mass1", "u2")},
		{From: at("mass1", "y1"), To: at("mass2", "u1")}, {From: at("mass1", "y2"), To: at("mass2", "u2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	tol := tolerances{atol: []Tolerance{{"mass2.y1", 1e-3}}}
	if err := tol.init(sys); err != nil {
		t.Fatal(err)
	}
	y := []float64{1e6, -0.5, 1e6, 3}
	w := []float64{1e6, 3, 1e6, -0.5} // mass1 has the outputs of mass2, mass2 those of mass1
	tol.learn(w, y)
	tol.learn(make([]float64, 4), make([]float64, 4)) // what was large stays so
	for k, want := range []float64{1, 1e-6, 1e-3, 3e-6} {
		if !near(tol.outAbs[k]/want, 1, 1e-12) {
			t.Errorf("output %d: %g, want %g", k, tol.outAbs[k], want)
		}
	}
	for k, want := range []float64{1e-3, 3e-6, 1, 1e-6} {
		if !near(tol.inAbs[k]/want, 1, 1e-12) {
			t.Errorf("input %d: %g, want %g", k, tol.inAbs[k], want)
		}
	}
	to := master.NewArchive()
	tol.archive(to)
	other := tolerances{atol: tol.atol}
	if err := other.init(sys); err != nil {
		t.Fatal(err)
	}
	from := master.ReadArchive(to.Data())
	if other.archive(from); from.Err() != nil || !slices.Equal(other.outAbs, tol.outAbs) || !slices.Equal(other.inAbs, tol.inAbs) {
		t.Errorf("%v: %g, want %g", from.Err(), other.outAbs, tol.outAbs)
	}
	other.learn(w, y)
	if !slices.Equal(other.outScale, tol.outScale) {
		t.Error("scales are not kept")
	}
}
