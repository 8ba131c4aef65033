package fmuslave_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/test/cc"
	"github.com/macrostep/macrostep/test/probe"
)

// work is for what outlives a test, since libraries stay loaded.
var work string

func TestMain(m *testing.M) {
	cc.Cache()
	var err error
	if work, err = os.MkdirTemp("", "macrostep-fmuslave-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, f := range opened.fmus {
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.RemoveAll(work)
	os.Exit(code)
}

// opened are the FMUs of the tests, each built at its first use.
var opened struct {
	sync.Mutex
	fmus map[string]*fmi.FMU
	n    int
}

func open(tb testing.TB, key string, build func() (string, error)) *fmi.FMU {
	tb.Helper()
	opened.Lock()
	defer opened.Unlock()
	if f := opened.fmus[key]; f != nil {
		return f
	}
	path, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	f, _, err := fmi.Open(path, fmi.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	if opened.fmus == nil {
		opened.fmus = map[string]*fmi.FMU{}
	}
	opened.fmus[key] = f
	return f
}

// example returns one of our FMUs.
func example(tb testing.TB, name string) *fmi.FMU {
	tb.Helper()
	return open(tb, name, func() (string, error) { return fmus.Build(work, name) })
}

// probeFMU returns a probe with these capabilities.
func probeFMU(tb testing.TB, capabilities string) *fmi.FMU {
	tb.Helper()
	return open(tb, "probe "+capabilities, func() (string, error) {
		opened.n++
		return probe.Build(work, fmt.Sprint("probe", opened.n), capabilities, "")
	})
}

// newSlave makes a slave; it is closed at the end of the test.
func newSlave(tb testing.TB, c fmuslave.Config) *fmuslave.Slave {
	tb.Helper()
	s, err := fmuslave.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// started takes a slave through its initialisation with its start values.
func started(tb testing.TB, c fmuslave.Config) *fmuslave.Slave {
	tb.Helper()
	s := newSlave(tb, c)
	start(tb, s)
	return s
}

func start(tb testing.TB, s *fmuslave.Slave) {
	tb.Helper()
	startAt(tb, s, master.Experiment{})
}

func startAt(tb testing.TB, s *fmuslave.Slave, e master.Experiment) {
	tb.Helper()
	must(tb, s.EnterInit(tb.Context(), e))
	must(tb, s.EvalInit())
	must(tb, s.ExitInit())
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// fault makes the probe's n-th call of a function after initialisation give a status.
func fault(function, status, n int) []fmuslave.Value {
	return ints("fault", function, "status", status, "at", n)
}

// ints makes start values of Integers from names and numbers in turn.
func ints(list ...any) []fmuslave.Value {
	var out []fmuslave.Value
	for i := 0; i < len(list); i += 2 {
		out = append(out, fmuslave.Value{Variable: list[i].(string), Integer: int32(list[i+1].(int))})
	}
	return out
}

// calls returns the functions in a trace without their prefix, states and status
// left out; of instance, or of all if it is "".
func calls(trace *bytes.Buffer, instance string) []string {
	var out []string
	for line := range strings.Lines(trace.String()) {
		f := strings.Fields(line)
		if instance == "" || f[1] == instance {
			out = append(out, strings.TrimPrefix(f[2], "fmi2"))
		}
	}
	return out
}

// outputs returns y.
func outputs(tb testing.TB, s master.Subsystem) []float64 {
	tb.Helper()
	y := make([]float64, len(s.Info().Out))
	must(tb, s.Outputs(y))
	return y
}
