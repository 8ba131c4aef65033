package main

import (
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// The algorithm keeps the contract of master: also where steps are repeated, subsystems are
// late, take steps of one size only or no input derivatives.
func TestSmoothed(t *testing.T) {
	if err := mastertest.TestAlgorithm(func() master.Algorithm { return &smoothed{} }); err != nil {
		t.Error(err)
	}
}
