package fmuprobe_test

import (
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/internal/slavetest"
)

func TestMain(m *testing.M) { slavetest.Main(m) }

var (
	example  = slavetest.Example
	must     = slavetest.Must
	outputs  = slavetest.Outputs
	reals    = slavetest.Reals
	started  = slavetest.StartedAt
	unitTime = master.Experiment{Stop: 1}
)
