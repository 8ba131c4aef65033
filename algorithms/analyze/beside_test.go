package analyze

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/master"
)

// late shows −g times its input later: that of a number of steps before, or as sampled every some
// seconds.
type late struct {
	info  master.Info
	g     float64
	steps int     // 0 = it samples
	every float64 // s
	u, y  float64
	past  []float64
}

func newLate(g float64, steps int, every float64) *late {
	return &late{info: master.Info{Name: "late", In: []master.Port{{Name: "u"}}, Out: []master.Port{{Name: "y"}}, StartIn: []float64{0},
		Step: master.Feedthrough{On: [][]int{nil}}, Init: master.Feedthrough{On: [][]int{nil}}, Caps: master.Caps{VariableStep: true, SaveState: true}},
		g: g, steps: steps, every: every, past: make([]float64, steps)}
}

func (s *late) Info() *master.Info          { return &s.info }
func (s *late) SetInputs(u []float64) error { s.u = u[0]; return nil }
func (s *late) Step(_ context.Context, t, h float64) (float64, error) {
	switch {
	case s.steps > 0:
		s.y = -s.g * s.past[0]
		s.past = append(s.past[1:], s.u)
	case math.Floor((t+h)/s.every+1e-9) > math.Floor(t/s.every+1e-9):
		s.y = -s.g * s.u
	}
	return t + h, nil
}
func (s *late) Outputs(y []float64) error { y[0] = s.y; return nil }
func (s *late) SaveState(master.State) (master.State, error) {
	return append(slices.Clone(s.past), s.y), nil
}
func (s *late) RestoreState(v master.State) error {
	s.past, s.y = slices.Clone(v.([]float64)[:s.steps]), v.([]float64)[s.steps]
	return nil
}
func (s *late) FreeState(master.State) error { return nil }

// What acts later than responses are followed looks like what does not act. Followed over the time of
// the forecast it shows, and nothing is told; a plant alone is told of.
func TestActsLater(t *testing.T) {
	for name, c := range map[string]struct {
		second master.Subsystem
		known  bool
	}{
		"dead time": {newLate(5, 120, 0), false}, "long dead time": {newLate(5, 400, 0), false}, "sampled": {newLate(5, 0, 1), false}, "sampled once": {newLate(5, 0, 12), false},
		"plant": {analyzetest.Lag("late", -1, -5, 0), true},
	} {
		sys := analyzetest.Pair(t, analyzetest.Lag("one", -1, 1, 1), c.second)
		r, err := Run(t.Context(), sys, Options{Step: 0.01, From: 0.01, To: 0.02, Stop: 20})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, s := range r.Strategies {
			if told := s.Points != nil; told != c.known || !c.known && !strings.Contains(s.Why, "off its model by 1 of how much") {
				t.Errorf("%s: %s: %v, %q", name, s.Preset, s.Points, s.Why)
			}
		}
		if (r.Recommended >= 0) != c.known || c.known == strings.Contains(r.Subsystems[1].Why, "acts later") {
			t.Errorf("%s: recommended %d, %+v", name, r.Recommended, r.Subsystems[1])
		}
	}
}
