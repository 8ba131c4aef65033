package assemble

import (
	"slices"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/ssp"
)

var vectorSum = ssp.Function{Path: "s", Inputs: []string{"in[0][0]", "in[0][1]", "in[1][0]", "in[1][1]"}, Outputs: []string{"out[0]", "out[1]"}, Terms: [][]int{{0, 2}, {1, 3}}}

// A sum keeps the contract of subsystems.
func TestSumConforms(t *testing.T) {
	err := mastertest.TestSubsystem(func() (master.Subsystem, error) { return newSum(vectorSum), nil }, []float64{1, 2, 30, 40}, 0, 0.1)
	if err != nil {
		t.Error(err)
	}
}

// It takes its inputs where their polynomials end, goes on along them, and goes back
// to what it was, also by way of bytes.
func TestSum(t *testing.T) {
	s := newSum(vectorSum)
	outputs := func(want ...float64) {
		t.Helper()
		y := make([]float64, 2)
		if err := s.Outputs(y); err != nil || !slices.Equal(y, want) {
			t.Fatalf("outputs %v, want %v (%v)", y, want, err)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(s.PrepareInputDerivatives(2))
	check(s.SetInputs([]float64{1, 2, 30, 40}))
	check(s.EvalInit())
	outputs(31, 42)
	check(s.SetInputDerivatives(1, []float64{1, 0, 0, 0}))
	check(s.SetInputDerivatives(2, []float64{0, 4, 0, 0}))
	before, err := s.SaveState(nil)
	check(err)
	if reached, err := s.Step(t.Context(), 1, 0.5); reached != 1.5 || err != nil {
		t.Fatal(reached, err)
	}
	outputs(31.5, 42.5) // 1 + 0.5, 2 + 4·0.5²/2
	_, err = s.Substep(t.Context(), 1.5, 0.5)
	check(err)
	outputs(32, 44)
	data, err := s.SerializeState(before)
	check(err)
	again, err := s.DeserializeState(data)
	check(err)
	check(s.RestoreState(again))
	outputs(31, 42)
	_, err = s.Step(t.Context(), 1, 0.5)
	check(err)
	outputs(31.5, 42.5)
	if _, err := s.DeserializeState(data[1:]); err == nil {
		t.Error("half a state is taken")
	}
	if err := s.RestoreState([]float64{1}); err == nil {
		t.Error("a part of a state is taken")
	}
	dy := make([]float64, 2)
	check(s.DirectionalDerivative([]float64{1, 10, 100, 1000}, dy))
	if !slices.Equal(dy, []float64{101, 1010}) {
		t.Errorf("derivative %v", dy)
	}
}
