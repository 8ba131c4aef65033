package algorithms_test

import (
	"strings"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// system joins subsystems by connections "a.y1 b.u1".
func system(t testing.TB, subs []master.Subsystem, wires ...string) *master.System {
	t.Helper()
	var connections []master.Connection
	for _, w := range wires {
		from, to, _ := strings.Cut(w, " ")
		connections = append(connections, master.Connection{From: endpoint(from), To: endpoint(to)})
	}
	return systemOf(t, subs, connections)
}

func endpoint(name string) master.Endpoint {
	s, p, _ := strings.Cut(name, ".")
	return master.Endpoint{Subsystem: s, Port: p}
}

func systemOf(t testing.TB, subs []master.Subsystem, c []master.Connection) *master.System {
	t.Helper()
	sys, err := master.NewSystem(subs, c)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// chosen makes the algorithm of a preset.
func chosen(t testing.TB, preset string, params map[string]string, with ...With) *Choice {
	t.Helper()
	c, err := New(preset, params, with...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// simulate carries out a whole run.
func simulate(t testing.TB, sys *master.System, alg master.Algorithm, o master.Options) (master.Result, *mastertest.Memory) {
	t.Helper()
	result, memory, err := try(t, sys, alg, o)
	if err != nil {
		t.Fatal(err)
	}
	return result, memory
}

// try is simulate where it may fail.
func try(t testing.TB, sys *master.System, alg master.Algorithm, o master.Options) (result master.Result, memory *mastertest.Memory, err error) {
	memory = &mastertest.Memory{}
	o.Recorders = append(o.Recorders, memory)
	r, err := master.NewRun(sys, alg, o)
	if err == nil {
		result, err = r.Run(t.Context())
	}
	return result, memory, err
}
