package main

import (
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// The algorithm keeps the contract of master: also where steps are repeated, subsystems are
// late, take steps of one size only or no input derivatives.
func TestTwoSweeps(t *testing.T) {
	for _, n := range []int{1, 4} {
		if err := mastertest.TestAlgorithm(func() master.Algorithm { return &twoSweeps{substeps: n} }); err != nil {
			t.Errorf("%d substeps: %v", n, err)
		}
	}
}
