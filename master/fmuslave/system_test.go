package fmuslave_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/test/probe"
)

func at(subsystem, port string) master.Endpoint {
	return master.Endpoint{Subsystem: subsystem, Port: port}
}

func algorithm(tb testing.TB, preset string, params ...string) master.Algorithm {
	tb.Helper()
	p := map[string]string{}
	for _, kv := range params {
		k, v, _ := strings.Cut(kv, "=")
		p[k] = v
	}
	c, err := algorithms.New(preset, p)
	must(tb, err)
	return c.Algorithm
}

// alone is a slave that shares no crossing.
type alone struct{ *fmuslave.Slave }

func (alone) BatchKey() any { return nil }

// Stepping together is stepping one after the other, failures included.
func TestBatch(t *testing.T) {
	share := []fmuslave.Value{{Variable: "share", Real: 0.5}}
	for _, c := range []struct {
		name  string
		fault []fmuslave.Value // of one of three, in its second step
		is    error
	}{
		{"ok", nil, nil},
		{"warning", fault(probe.DoStep, 1, 2), nil},
		{"discard", append(fault(probe.DoStep, 2, 2), share...), master.ErrDiscard},
		{"terminated", append(fault(probe.DoStep, 2, 2), ints("ends", 1)...), master.ErrTerminated},
		{"terminated at the end", append(append(fault(probe.DoStep, 2, 2), fmuslave.Value{Variable: "share", Real: 1}), ints("ends", 1)...), master.ErrTerminated},
		{"error", fault(probe.DoStep, 3, 2), nil},
		{"setter discards", fault(probe.SetReal, 2, 2), nil},
		{"getter fails", fault(probe.GetReal, 3, 6), nil},
		{"pending", append(fault(probe.DoStep, 5, 2), ints("polls", 3)...), nil},
		{"pending, discard", append(fault(probe.DoStep, 5, 2), ints("polls", 3, "outcome", 2)...), master.ErrDiscard},
		{"pending, error", append(fault(probe.DoStep, 5, 2), ints("outcome", 3)...), nil},
		{"fatal", fault(probe.DoStep, 4, 2), nil},
		// Derivatives are sent at both steps, from the start on.
		{"derivatives refused", fault(probe.SetDerivatives, 3, 2), nil},
	} {
		for faulty := range 3 {
			t.Run(fmt.Sprint(c.name, "/", faulty), func(t *testing.T) { compareGroup(t, c.name, c.fault, faulty, c.is) })
		}
	}
}

var fileNumber = regexp.MustCompile(`probe\d+\.fmu`)

// compareGroup runs three FMUs in a ring, one of which is at fault: in one
// crossing, one by one, and traced.
func compareGroup(t *testing.T, name string, fault []fmuslave.Value, faulty int, is error) {
	type outcome struct {
		status    master.Status
		reason    string
		time      float64
		steps     []int
		y         []float64
		subsystem string
		reached   float64
		calls     [][]string
	}
	run := func(how string) (o outcome) {
		var trace bytes.Buffer
		var subs []master.Subsystem
		for i := range 3 {
			config := fmuslave.Config{Name: fmt.Sprint("c", i), FMU: probeFMU(t, probe.Everything), Inputs: []string{"u"}, Outputs: []string{"x", "y"}, Watch: []string{"w", "odd"}}
			if i == faulty {
				config.Starts = fault
				if name == "fatal" { // each run needs one that is not dead yet
					config.FMU = probeFMU(t, probe.Everything+fmt.Sprintf(` author="%s %d"`, how, faulty))
				}
			}
			if how == "traced" {
				config.Options = fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)}
			}
			s := newSlave(t, config)
			if how == "alone" {
				subs = append(subs, alone{s})
			} else {
				subs = append(subs, s)
			}
		}
		sys, err := master.NewSystem(subs, []master.Connection{
			{From: at("c0", "x"), To: at("c1", "u")}, {From: at("c1", "x"), To: at("c2", "u")}, {From: at("c2", "x"), To: at("c0", "u")},
		})
		must(t, err)
		r, err := master.NewRun(sys, algorithm(t, "explicit", "order=1"), master.Options{Stop: 1.5, Step: 0.5, Strict: errors.Is(is, master.ErrTerminated)})
		must(t, err)
		result, err := r.Run(context.Background())
		var step *master.StepError
		if errors.As(err, &step) {
			if o.subsystem, o.reached = step.Subsystem, step.Reached; math.IsNaN(o.reached) {
				o.reached = -1
			}
		}
		if is != nil && !errors.Is(err, is) {
			t.Errorf("%s: %v, want %v", how, err, is)
		}
		reason := fileNumber.ReplaceAllString(result.Reason, "probe.fmu") // each run may have files of its own
		o.status, o.reason, o.time, o.steps, o.y = result.Status, reason, result.Time, result.SubsystemSteps, slices.Clone(r.Point().Y)
		for i := range 3 {
			o.calls = append(o.calls, calls(&trace, fmt.Sprint("c", i)))
		}
		return o
	}
	together, single, traced := run("together"), run("alone"), run("traced")
	if failed := fault != nil && name != "warning" && name != "pending"; (together.status != master.Complete) != failed || failed && together.subsystem != fmt.Sprint("c", faulty) {
		t.Errorf("%s %s, in %s", together.status, together.reason, together.subsystem)
	}
	if !reflect.DeepEqual(together, single) {
		t.Errorf("together %+v\nalone    %+v", together, single)
	}
	if name == "ok" {
		for i, list := range traced.calls {
			if n := strings.Count(strings.Join(list, " "), "SetRealInputDerivatives DoStep"); n != 3 {
				t.Errorf("c%d: %d steps with derivatives in %v", i, n, list)
			}
		}
	}
	for i := range 3 {
		end := strings.Join(traced.calls[i], " ")
		healthy := i != faulty || fault == nil || traced.status == master.Complete
		if healthy && !strings.HasSuffix(end, "Terminate FreeInstance") {
			t.Errorf("c%d is healthy and its calls end with %s", i, end)
		}
	}
	traced.calls, together.calls = nil, nil
	if !reflect.DeepEqual(together, traced) {
		t.Errorf("together %+v\ntraced   %+v", together, traced)
	}
}

// Strings keep an FMU out of batches.
func TestBatchKey(t *testing.T) {
	slave := func(in, out, watch []string) *fmuslave.Slave {
		s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: probeFMU(t, ""), Inputs: in, Outputs: out, Watch: watch})
		must(t, err)
		return s
	}
	plain, other := slave([]string{"u"}, nil, nil), slave([]string{"mode", "b"}, []string{"x"}, []string{"odd"})
	if plain.BatchKey() != other.BatchKey() {
		t.Error("two FMUs without strings are not stepped together")
	}
	for _, s := range []*fmuslave.Slave{slave([]string{"s"}, nil, nil), slave(nil, []string{"quoted"}, nil), slave(nil, nil, []string{"done"})} {
		if s.BatchKey() == plain.BatchKey() || s.BatchKey() != s.BatchKey() {
			t.Error("an FMU with strings shares a crossing")
		}
	}
}

// Signals of every kind go over connections, in a ring where everything is
// first guessed: an FMU that refuses numbers which are no items of its
// enumeration never sees one, and start values hold until the first exchange.
func TestEveryKind(t *testing.T) {
	var trace bytes.Buffer
	var subs []master.Subsystem
	var connections []master.Connection
	for i := range 2 {
		subs = append(subs, newSlave(t, fmuslave.Config{
			Name: fmt.Sprint("c", i), FMU: probeFMU(t, ""), Inputs: []string{"u", "ud", "mode", "b", "s"},
			Outputs: []string{"x", "y", "echo_ud", "echo_mode", "not_b", "quoted"}, Watch: []string{"w", "count", "odd", "done"},
			Starts:  []fmuslave.Value{{Variable: "mode", Integer: 3}, {Variable: "b", Boolean: i == 1}, {Variable: "s", String: "start"}},
			Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)},
		}))
	}
	for _, p := range [][2]string{{"y", "ud"}, {"echo_ud", "u"}, {"echo_mode", "mode"}, {"quoted", "s"}} {
		connections = append(connections, master.Connection{From: at("c0", p[0]), To: at("c1", p[1])})
	}
	connections[2].Map = map[int64]int64{3: 1}
	connections = append(connections, master.Connection{From: at("c0", "not_b"), To: at("c1", "b")})
	sys, err := master.NewSystem(subs, connections)
	must(t, err)
	file := filepath.Join(t.TempDir(), "r.csv")
	table := record.NewTable(file, record.Options{})
	r, err := master.NewRun(sys, algorithm(t, "gauss-seidel"), master.Options{Stop: 1, Step: 0.5, Recorders: []master.Recorder{table}})
	must(t, err)
	must(t, r.Start(t.Context()))
	p := r.Point()
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"inputs", p.U, []float64{0.5, 0.25, 0.25, 1}},
		{"outputs", p.Y, []float64{0, 1, 0.25, 0, 0.5, 1}},
		{"c0 in", p.DiscreteIn[0], master.Values{Real: []float64{}, Integer: []int64{3}, Boolean: []bool{false}, String: []string{"start"}}},
		{"c0 out", p.DiscreteOut[0], master.Values{Real: []float64{}, Integer: []int64{3}, Boolean: []bool{true}, String: []string{"<start>"}}},
		{"c1 in", p.DiscreteIn[1], master.Values{Real: []float64{}, Integer: []int64{1}, Boolean: []bool{true}, String: []string{"<start>"}}},
		{"c1 out", p.DiscreteOut[1], master.Values{Real: []float64{}, Integer: []int64{1}, Boolean: []bool{false}, String: []string{"<<start>>"}}},
		{"c1 watched", p.Watch[1], master.Values{Real: []float64{0}, Integer: []int64{0}, Boolean: []bool{false}, String: []string{"step 0"}}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	for more := true; more; {
		more, err = r.Step(t.Context())
		must(t, err)
	}
	if want := (master.Values{Real: []float64{2.5}, Integer: []int64{2}, Boolean: []bool{false}, String: []string{"step 2"}}); !reflect.DeepEqual(p.Watch[1], want) {
		t.Errorf("at the end c1 has %v, want %v", p.Watch[1], want)
	}
	result, err := r.Close()
	if err != nil || result.Status != master.Complete {
		t.Errorf("%v %v", result, err)
	}
	if strings.Contains(trace.String(), "-> Error") || strings.Contains(trace.String(), "fmi2SetInteger vr=[0] v=[0]") {
		t.Errorf("calls that are refused:\n%s", &trace)
	}
	for _, i := range []string{"c0", "c1"} {
		var seq []string
		for _, f := range calls(&trace, i) {
			if f == "Terminate" || f == "FreeInstance" || strings.HasPrefix(f, "Instantiate") {
				seq = append(seq, f)
			}
		}
		if !slices.Equal(seq, []string{"Instantiate", "Terminate", "FreeInstance"}) {
			t.Errorf("%s: %v", i, seq)
		}
	}
}

// ring returns n of our linear FMUs, each fed by the one before, ready to step.
func ring(tb testing.TB, n int, single bool, fmu string, alg master.Algorithm, recorders ...master.Recorder) *master.Run {
	tb.Helper()
	f := example(tb, fmu)
	var subs []master.Subsystem
	var connections []master.Connection
	name := func(i int) string { return fmt.Sprint("c", i%n) }
	for i := range n {
		s := newSlave(tb, fmuslave.Config{
			Name: name(i), FMU: f, Inputs: []string{"u[1]"}, Outputs: []string{"y[1]"},
			Starts: []fmuslave.Value{
				{Variable: "A[1,1]", Real: -1}, {Variable: "B[1,1]", Real: 0.5}, {Variable: "C[1,1]", Real: 1}, {Variable: "x0[1]", Real: float64(i + 1)},
			},
		})
		if single {
			subs = append(subs, alone{s})
		} else {
			subs = append(subs, s)
		}
		connections = append(connections, master.Connection{From: at(name(i), "y[1]"), To: at(name(i+1), "u[1]")})
	}
	sys, err := master.NewSystem(subs, connections)
	must(tb, err)
	r, err := master.NewRun(sys, alg, master.Options{Stop: 1e9, Step: 1e-3, Recorders: recorders})
	must(tb, err)
	must(tb, r.Start(context.Background()))
	tb.Cleanup(func() {
		if _, err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// A whole macro step over FMUs allocates nothing, results written.
func TestNoAllocations(t *testing.T) {
	for _, c := range []struct {
		preset string
		params []string
		fmu    string
	}{
		{"explicit", nil, "linear"},
		{"explicit", []string{"order=3"}, "linear"},
		{"explicit", []string{"order=3", "substeps=4"}, "linear"},
		{"explicit", []string{"order=2"}, "blackbox"},
		{"explicit", []string{"order=1", "delivery=held"}, "blackbox"},
		{"gauss-seidel", nil, "linear"},
		{"gauss-seidel", []string{"order=2"}, "linear"},
		{"gauss-seidel", []string{"order=2", "substeps=4"}, "blackbox"},
	} {
		for _, single := range []bool{false, true} {
			table := record.NewTable(filepath.Join(t.TempDir(), "r.csv"), record.Options{})
			r := ring(t, 3, single, c.fmu, algorithm(t, c.preset, c.params...), table)
			step := func() {
				if _, err := r.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				step()
			}
			if n := testing.AllocsPerRun(200, step); n != 0 {
				t.Errorf("%s %v, %s, single %v: %g allocations a step", c.preset, c.params, c.fmu, single, n)
			}
		}
	}
}
