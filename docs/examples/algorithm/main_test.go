package main

import (
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// The algorithm fulfils the contract of master, also with repeated steps, late subsystems, and subsystems
// with a fixed step or without input derivatives.
func TestTwoSweeps(t *testing.T) {
	for _, n := range []int{1, 4} {
		if err := mastertest.TestAlgorithm(func() master.Algorithm { return &twoSweeps{substeps: n} }); err != nil {
			t.Errorf("%d substeps: %v", n, err)
		}
	}
}
