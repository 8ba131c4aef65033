package assemble

import (
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
