package fmuslave_test

import (
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/internal/slavetest"
)

func TestMain(m *testing.M) { slavetest.Main(m) }

var (
	calls     = slavetest.Calls
	example   = slavetest.Example
	ints      = slavetest.Ints
	lifeFMU   = slavetest.Life
	must      = slavetest.Must
	newSlave  = slavetest.New
	outputs   = slavetest.Outputs
	probeFMU  = slavetest.Probe
	started   = slavetest.Started
	startedAt = slavetest.StartedAt
)

// fault makes the probe's n-th call of a function after initialisation return a status.
func fault(function, status, n int) []fmuslave.Value {
	return ints("fault", function, "status", status, "at", n)
}

// lived returns a slave of an FMU made by lifeFMU, after its initialisation.
func lived(tb testing.TB, c fmuslave.Config) *fmuslave.Slave {
	tb.Helper()
	c.Name, c.Inputs, c.Outputs = "c", []string{"u"}, []string{"y"}
	return startedAt(tb, c, master.Experiment{Stop: 1})
}
