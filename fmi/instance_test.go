package fmi

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// paths runs a test with the platform's calls and with the portable ones.
func paths(t *testing.T, f func(t *testing.T, run func(*native.Batch))) {
	t.Run("trampoline", func(t *testing.T) { f(t, native.Run) })
	t.Run("portable", func(t *testing.T) { f(t, native.RunPortable) })
}

// Arguments arrive in the FMU on both paths, also those that are not in a trace.
func TestArrives(t *testing.T) {
	paths(t, func(t *testing.T, run func(*native.Batch)) {
		f := plainFMU(t)
		in := instance(t, f, "one", InstanceOptions{Visible: true, LoggingOn: true})
		in.run = run
		said := func(k uintptr, want string) {
			t.Helper()
			if got := probeText(t, in, k); got != want {
				t.Errorf("text %d: %q, want %q", k, got, want)
			}
		}
		said(0, "one")
		said(1, "{probe}")
		said(2, resourceURI(f.Dir, filepath.Separator == '\\'))
		if export(t, in, "probe_finished_null", in.comp)&0xff != 1 {
			t.Error("stepFinished is not null")
		}
		must(t, in.SetDebugLogging(true, []string{"b", "a"}))
		said(3, "b;a;")
		said(4, "visible=1 logging=1 tol=0/0 start=0 stop=0/0")
		must(t, in.SetDebugLogging(false, nil))
		tol, stop := 1e-5, 12.5
		must(t, in.SetupExperiment(Experiment{Tolerance: &tol, Start: 0.5, Stop: &stop}))
		said(4, "visible=1 logging=0 tol=1/1e-05 start=0.5 stop=1/12.5")
		must(t, in.EnterInitializationMode())
		must(t, in.SetString([]description.ValueReference{14, 15}, []string{"here", "there"}))
		s := make([]string, 4)
		must(t, in.GetString([]description.ValueReference{15, 13, 14}, s[:3]))
		must(t, in.GetString([]description.ValueReference{1}, s[3:])) // the FMU forgets what it gave
		if !slices.Equal(s, []string{"there", "", "here", ""}) {
			t.Errorf("strings that pass: %q", s)
		}
		must(t, in.ExitInitializationMode())
		// x' = u over [2, 2.5] with u = 3 + 4 τ + 6 τ²/2
		must(t, in.SetReal([]description.ValueReference{0}, []float64{3}))
		must(t, in.SetRealInputDerivatives([]description.ValueReference{0, 0}, []int32{1, 2}, []float64{4, 6}))
		if st, err := in.DoStep(2, 0.5, true); st != StatusOK || err != nil {
			t.Fatal(st, err)
		}
		r, n := make([]float64, 2), make([]int64, 2)
		must(t, in.GetReal([]description.ValueReference{1, 3}, r))
		must(t, in.GetInteger([]description.ValueReference{110, 111}, n)) // steps, noRestoreBefore
		if !slices.Equal(r, []float64{3*0.5 + 4*0.125 + 0.125, 2.5}) || !slices.Equal(n, []int64{1, 1}) {
			t.Errorf("after the step %v, %v", r, n)
		}
		if text, err := in.GetStringStatus(DoStepStatus); err != nil || text != "" {
			t.Errorf("null string status %q %v", text, err)
		}
		if in.Ticks() == 0 {
			t.Error("no ticks counted")
		}
		must(t, in.Free())
		must(t, in.Free())
	})
}

func TestStates(t *testing.T) {
	in := running(t, plainFMU(t), "states")
	must(t, in.SetReal([]description.ValueReference{0}, []float64{2}))
	s1, err := in.GetFMUState(nil)
	must(t, err)
	_, err = in.DoStep(0, 1, false)
	must(t, err)
	s2, err := in.GetFMUState(nil)
	must(t, err)
	v := make([]float64, 2)
	x := func(want float64) {
		t.Helper()
		must(t, in.GetReal([]description.ValueReference{1, 3}, v))
		if v[0] != want {
			t.Errorf("x = %v, want %v", v[0], want)
		}
	}
	x(2)
	must(t, in.SetFMUState(s1))
	x(0)
	must(t, in.SetFMUState(s2))
	x(2)
	if r, err := in.GetFMUState(s1); err != nil || r != s1 {
		t.Fatal(r, err)
	}
	data, err := in.SerializeFMUState(s1, []byte("before"))
	must(t, err)
	if !strings.HasPrefix(string(data), "beforeMFS2") {
		t.Errorf("serialised %q", data[:12])
	}
	other := instance(t, in.fmu, "other", InstanceOptions{})
	d, err := other.DeserializeFMUState(data[len("before"):])
	must(t, err)
	must(t, other.SetFMUState(d))
	if other.State() != StateStepComplete {
		t.Errorf("life cycle after a deserialised state: %v", other.State())
	}
	must(t, other.GetReal([]description.ValueReference{1}, v[:1]))
	if v[0] != 2 {
		t.Errorf("x = %v in the other instance", v[0])
	}
	for _, bad := range [][]byte{nil, data[:5], []byte("MFS2\x01\xff\x00\x00"), data[:20]} {
		if _, err := other.DeserializeFMUState(bad); err == nil {
			t.Errorf("%q deserialised", bad)
		}
		if other.State() != StateError { // the last one reaches the FMU, which refuses
			continue
		}
		must(t, other.SetFMUState(d))
	}
	var arg *UsageError
	if err := other.SetFMUState(s1); !errors.As(err, &arg) {
		t.Errorf("a state of another instance was set: %v", err)
	}
	if r, err := other.GetFMUState(s1); !errors.As(err, &arg) || r != nil {
		t.Errorf("a state of another instance was reused: %v", err)
	}
	if err := other.FreeFMUState(s1); !errors.As(err, &arg) {
		t.Errorf("a state of another instance was freed: %v", err)
	}
	must(t, in.FreeFMUState(s2))
	must(t, in.FreeFMUState(s2))
	if err := in.SetFMUState(s2); !errors.As(err, &arg) {
		t.Errorf("a freed state was set: %v", err)
	}
	must(t, in.SetInteger([]description.ValueReference{120}, []int64{1}))
	if _, err := in.SerializeFMUState(s1, nil); !errors.As(err, &arg) {
		t.Errorf("a state of 2^64-1 bytes was serialised: %v", err)
	}
	must(t, in.Free()) // frees s1
	if n := export(t, other, "probe_states") & 0xff; n != 1 {
		t.Errorf("%d states alive, want the one of other", n)
	}
	must(t, other.Free())
	if n := export(t, other, "probe_states") & 0xff; n != 0 {
		t.Errorf("%d states alive after Free", n)
	}
}

// After Reset, SetupExperiment must be called again, values are the start values, and earlier saved
// states are freed with the instance (fmi2 61).
func TestReset(t *testing.T) {
	f := plainFMU(t)
	in, other := running(t, f, "reset"), instance(t, f, "other", InstanceOptions{})
	s, err := in.GetFMUState(nil)
	must(t, err)
	vr, v := []description.ValueReference{5}, []float64{3}
	must(t, in.SetReal(vr, v))
	must(t, in.Reset())
	var order *UsageError
	if err := in.EnterInitializationMode(); !errors.As(err, &order) || !strings.Contains(err.Error(), "fmi2SetupExperiment") {
		t.Errorf("initialisation without SetupExperiment: %v", err)
	}
	start(t, in)
	must(t, in.GetReal(vr, v))
	if v[0] != 0 {
		t.Errorf("after Reset a value is still %v", v[0])
	}
	must(t, in.SetFMUState(s)) // of before
	must(t, in.Free())
	if n := export(t, other, "probe_states") & 0xff; n != 0 {
		t.Errorf("%d states alive", n)
	}
}

func TestStatuses(t *testing.T) {
	f := plainFMU(t)
	t.Run("warning", func(t *testing.T) {
		var c collector
		in := instance(t, f, "w", InstanceOptions{Log: c.log})
		start(t, in)
		fail(t, in, capi.DoStep, StatusWarning, 1)
		if st, err := in.DoStep(0, 1, false); st != StatusWarning || err != nil || in.State() != StateStepComplete {
			t.Error(st, err, in.State())
		}
		if !c.has("function 27 returns 1 at 0 of time") {
			t.Errorf("log %q", c.texts())
		}
	})
	t.Run("silent warning", func(t *testing.T) {
		for _, how := range []string{"calls", "stepper", "batch"} {
			var c collector
			in := instance(t, f, "w", InstanceOptions{Log: c.log})
			start(t, in)
			s := stepper(t, in, plan)
			g, err := NewBatch([]*Stepper{s})
			must(t, err)
			must(t, in.SetInteger([]description.ValueReference{104}, []int64{1}))
			fail(t, in, capi.DoStep, StatusWarning, 0)
			for k := range 3 {
				switch how {
				case "calls":
					_, err = in.DoStep(float64(k), 1, false)
				case "stepper":
					_, err = s.Step(float64(k), 1, true)
				case "batch":
					_, _, err = g.Step(0, float64(k), 1, true)
				}
				must(t, err)
			}
			if got := c.texts(); len(got) != 1 || !strings.Contains(got[0], "fmi2DoStep returned Warning without logging a reason") {
				t.Errorf("%s: log %q", how, got)
			}
		}
	})
	for name, c := range map[string]struct {
		status Status
		state  State
	}{"discard in doStep": {StatusDiscard, StateStepFailed}, "error": {StatusErr, StateError}} {
		t.Run(name, func(t *testing.T) {
			in := running(t, f, "e")
			s, err := in.GetFMUState(nil)
			must(t, err)
			fail(t, in, capi.DoStep, c.status, 1)
			st, err := in.DoStep(0, 1, false)
			var se *StatusError
			if st != c.status || !errors.As(err, &se) || se.Func != "fmi2DoStep" || in.State() != c.state {
				t.Fatal(st, err, in.State())
			}
			if want := fmt.Sprintf("function 27 returns %d at 0 of time", c.status); se.Msg != want {
				t.Errorf("message %q, want %q", se.Msg, want)
			}
			var order *UsageError
			if _, err := in.GetBooleanStatus(Terminated); errors.As(err, &order) != (c.status == StatusErr) {
				t.Error(err)
			}
			if err := in.Terminate(); c.status == StatusErr && !errors.As(err, &order) {
				t.Error(err)
			}
			must(t, in.SetFMUState(s))
			_, err = in.DoStep(0, 0.5, false)
			must(t, err)
		})
	}
	t.Run("query answered by error", func(t *testing.T) {
		in := running(t, f, "q")
		fail(t, in, capi.GetRealStatus, StatusErr, 1)
		if _, err := in.GetRealStatus(LastSuccessfulTime); err == nil || in.State() != StateStepComplete {
			t.Error(err, in.State())
		}
	})
	// pend makes a step that is Pending and then has a status.
	pend := func(t *testing.T, in *Instance, then Status) {
		must(t, in.SetInteger([]description.ValueReference{103}, []int64{int64(then)}))
		fail(t, in, capi.DoStep, StatusPending, 1)
		if st, err := in.DoStep(2, 1, false); st != StatusPending || err != nil || in.State() != StateStepInProgress {
			t.Fatal(st, err, in.State())
		}
	}
	t.Run("pending", func(t *testing.T) {
		in := running(t, f, "p")
		pend(t, in, StatusPending)
		if st, err := in.GetStatus(DoStepStatus); st != StatusPending || err != nil || in.State() != StateStepInProgress {
			t.Error(st, err)
		}
		if err := in.Free(); err == nil {
			t.Error("freed while a step was in progress")
		}
		must(t, in.CancelStep())
		if in.State() != StateStepCanceled {
			t.Error(in.State())
		}
		must(t, in.Reset())
		for status, state := range map[Status]State{
			StatusOK: StateStepComplete, StatusWarning: StateStepComplete, StatusDiscard: StateStepFailed, StatusErr: StateError,
		} {
			in := running(t, f, "p2")
			pend(t, in, status)
			if st, err := in.GetStatus(DoStepStatus); st != status || in.State() != state || (err != nil) != (status > StatusWarning) {
				t.Errorf("pending step ended by %v: %v %v %v", status, st, err, in.State())
			}
		}
	})
	t.Run("pending too long", func(t *testing.T) {
		for _, cancels := range []bool{true, false} {
			in := running(t, f, "late")
			in.pending.Limit = 1
			if sym := *in.sym; !cancels {
				sym[capi.CancelStep] = 0
				in.sym = &sym
			}
			pend(t, in, StatusPending)
			_, late := in.GetStatus(DoStepStatus)
			end := map[bool]string{true: " and was cancelled; ", false: " and cannot be cancelled ("}[cancels]
			if late == nil || !strings.Contains(late.Error(), " at t = 2 s: the step was still pending after ") || !strings.Contains(late.Error(), end) {
				t.Errorf("cancels %v: %v", cancels, late)
			}
			want := StateFatal // and nothing is called
			if cancels {
				want = StateStepCanceled
			}
			if err := in.GetReal([]description.ValueReference{0}, make([]float64, 1)); in.State() != want || !cancels && err != late {
				t.Errorf("cancels %v: %v, %v", cancels, in.State(), err)
			}
			must(t, in.Free())
		}
	})
}

func TestFatal(t *testing.T) {
	f := plainFMU(t)
	a, b := running(t, f, "a"), running(t, f, "b")
	st, err := a.GetFMUState(nil)
	must(t, err)
	fail(t, a, capi.DoStep, StatusFatal, 0)
	if st, err := a.DoStep(0, 1, false); st != StatusFatal || err == nil {
		t.Fatal(st, err)
	}
	before := export(t, a, "probe_calls")
	var order *UsageError
	for name, call := range map[string]func() error{
		"Reset":     a.Reset,
		"Get":       func() error { return b.GetReal([]description.ValueReference{0}, make([]float64, 1)) },
		"Terminate": b.Terminate,
		"Set state": func() error { return a.SetFMUState(st) },
		"new":       func() error { _, err := f.Instantiate("c", InstanceOptions{}); return err },
		"stepper":   func() error { _, err := b.NewStepper(StepPlan{}); return err },
	} {
		if err := call(); !errors.As(err, &order) || !strings.Contains(order.Msg, "returned Fatal") {
			t.Errorf("%s after Fatal: %v", name, err)
		}
	}
	must(t, a.Free())
	must(t, b.Free())
	if export(t, a, "probe_calls") != before || export(t, a, "probe_alive")&0xff != 2 {
		t.Error("the FMU was called after Fatal")
	}
	running(t, plainFMU(t), "another FMU is not affected")
}

// The table is checklist fmi2 39 written down a second time: the states by letter.
func TestCallOrder(t *testing.T) {
	f := plainFMU(t)
	const letters, handle = "RICPFXTE", "RICFXTE"
	vr := []description.ValueReference{0}
	reals, integers, booleans, texts, orders := []float64{1}, []int64{1}, []bool{true}, []string{"x"}, []int32{1}
	var s *FMUState
	var data []byte
	calls := []struct {
		fn     capi.Function
		states string
		call   func(in *Instance) error
	}{
		{capi.SetDebugLogging, letters, func(in *Instance) error { return in.SetDebugLogging(true, nil) }},
		{capi.SetupExperiment, "R", func(in *Instance) error { return in.SetupExperiment(Experiment{}) }},
		{capi.EnterInitializationMode, "R", (*Instance).EnterInitializationMode},
		{capi.ExitInitializationMode, "I", (*Instance).ExitInitializationMode},
		{capi.SetReal, "RIC", func(in *Instance) error { return in.SetReal(vr, reals) }},
		{capi.SetInteger, "RIC", func(in *Instance) error { return in.SetInteger(vr, integers) }},
		{capi.SetBoolean, "RIC", func(in *Instance) error { return in.SetBoolean(vr, booleans) }},
		{capi.SetString, "RIC", func(in *Instance) error { return in.SetString(vr, texts) }},
		{capi.GetReal, "ICFXTE", func(in *Instance) error { return in.GetReal(vr, reals) }},
		{capi.GetInteger, "ICFXTE", func(in *Instance) error { return in.GetInteger(vr, integers) }},
		{capi.GetBoolean, "ICFXTE", func(in *Instance) error { return in.GetBoolean(vr, booleans) }},
		{capi.GetString, "ICFXTE", func(in *Instance) error { return in.GetString(vr, texts) }},
		{capi.DoStep, "C", func(in *Instance) error { return second(in.DoStep(0, 1, false)) }},
		{capi.CancelStep, "P", (*Instance).CancelStep},
		{capi.GetStatus, "CPFT", func(in *Instance) error { return second(in.GetStatus(PendingStatus)) }},
		{capi.GetRealStatus, "CPFT", func(in *Instance) error { return second(in.GetRealStatus(0)) }},
		{capi.GetIntegerStatus, "CPFT", func(in *Instance) error { return second(in.GetIntegerStatus(0)) }},
		{capi.GetBooleanStatus, "CPFT", func(in *Instance) error { return second(in.GetBooleanStatus(0)) }},
		{capi.GetStringStatus, "CPFT", func(in *Instance) error { return second(in.GetStringStatus(0)) }},
		{capi.Terminate, "CF", (*Instance).Terminate},
		{capi.Reset, handle, (*Instance).Reset},
		{capi.FreeInstance, handle, (*Instance).Free},
		{capi.SetFMUState, handle, func(in *Instance) error { return in.SetFMUState(s) }},
		{capi.FreeFMUState, handle, func(in *Instance) error { return in.FreeFMUState(s) }},
		{capi.SerializeFMUState, handle, func(in *Instance) error { return second(in.SerializeFMUState(s, nil)) }},
		{capi.DeSerializeFMUState, handle, func(in *Instance) error { return second(in.DeserializeFMUState(data)) }},
		{capi.GetFMUState, handle, func(in *Instance) error { return second(in.GetFMUState(nil)) }},
		{capi.GetDirectionalDerivative, "ICFXTE", func(in *Instance) error { return in.GetDirectionalDerivative(vr, vr, reals, reals) }},
		{capi.SetRealInputDerivatives, "RIC", func(in *Instance) error { return in.SetRealInputDerivatives(vr, orders, reals) }},
		{capi.GetRealOutputDerivatives, "CFXTE", func(in *Instance) error { return in.GetRealOutputDerivatives(vr, orders, reals) }},
	}
	if len(calls) != int(capi.GetStringStatus)-3 { // two of the library, Instantiate, and SerializedFMUStateSize, a part of SerializeFMUState
		t.Errorf("%d of %d functions", len(calls), capi.GetStringStatus+1)
	}
	for _, c := range calls {
		var only []string
		for k, letter := range letters {
			if strings.ContainsRune(c.states, letter) {
				only = append(only, State(k).String())
			}
		}
		for k, letter := range letters {
			in, err := f.Instantiate("order", InstanceOptions{})
			must(t, err)
			s, err = in.GetFMUState(nil)
			must(t, err)
			data, err = in.SerializeFMUState(s, nil)
			must(t, err)
			in.setup, in.state = true, State(k)
			entered := in.crossings
			err = c.call(in)
			var order *UsageError
			allowed := strings.ContainsRune(c.states, letter)
			switch {
			case allowed && err != nil:
				t.Errorf("%v in %v: %v", c.fn, State(k), err)
			case !allowed && !errors.As(err, &order):
				t.Errorf("%v in %v: %v, want a UsageError", c.fn, State(k), err)
			case !allowed && in.crossings != entered:
				t.Errorf("%v in %v entered the FMU", c.fn, State(k))
			case !allowed && !strings.Contains(order.Msg+";", ", only in "+strings.Join(only, ", ")+";"):
				t.Errorf("%v: %v, want %v", c.fn, order, only)
			}
			if in.state != StateFreed {
				in.state = StateInstantiated
			}
			must(t, in.Free())
		}
	}
}

func TestArguments(t *testing.T) {
	in := running(t, plainFMU(t), "arguments")
	vr := []description.ValueReference{0, 1}
	before := in.crossings
	var arg *UsageError
	for name, err := range map[string]error{
		"lengths":       in.GetReal(vr, make([]float64, 1)),
		"set lengths":   in.SetBoolean(vr, nil),
		"NUL":           in.SetString(vr[:1], []string{"a\x00b"}),
		"order 0":       in.SetRealInputDerivatives(vr[:1], []int32{0}, []float64{1}),
		"get order 0":   in.GetRealOutputDerivatives(vr[:1], []int32{0}, []float64{1}),
		"order 3":       in.GetRealOutputDerivatives(vr[:1], []int32{3}, []float64{1}),
		"orders":        in.GetRealOutputDerivatives(vr, []int32{1}, []float64{1, 2}),
		"directional":   in.GetDirectionalDerivative(vr, vr, []float64{1}, []float64{1, 2}),
		"h = 0":         second(in.DoStep(0, 0, false)),
		"h < 0":         second(in.DoStep(0, -1, false)),
		"h NaN":         second(in.DoStep(0, math.NaN(), false)),
		"t infinite":    second(in.DoStep(math.Inf(1), 1, false)),
		"category":      in.SetDebugLogging(true, []string{"c"}),
		"category NUL":  in.SetDebugLogging(true, []string{"a\x00"}),
		"blank name":    second(in.fmu.Instantiate(" ", InstanceOptions{})),
		"name with NUL": second(in.fmu.Instantiate("a\x00", InstanceOptions{})),
	} {
		if !errors.As(err, &arg) {
			t.Errorf("%s: %v, want a UsageError", name, err)
		}
	}
	for name, err := range map[string]error{
		"get": in.GetReal(nil, nil), "set": in.SetString(nil, nil), "boolean": in.GetBoolean(nil, nil),
		"derivatives": in.SetRealInputDerivatives(nil, nil, nil),
		"directional": in.GetDirectionalDerivative(nil, vr, []float64{1, 1}, nil),
	} {
		if err != nil {
			t.Errorf("empty %s: %v", name, err)
		}
	}
	dv := []float64{7, 7}
	must(t, in.GetDirectionalDerivative(vr, nil, nil, dv))
	if !slices.Equal(dv, []float64{0, 0}) {
		t.Errorf("derivative with respect to nothing: %v", dv)
	}
	if in.crossings != before {
		t.Error("the FMU was entered")
	}
}

func second[T any](_ T, err error) error { return err }

func TestCapabilities(t *testing.T) {
	f := plainFMU(t)
	in := running(t, f, "none")
	s, err := in.GetFMUState(nil)
	must(t, err)
	*f.Description.CoSimulation = description.CoSimulation{ModelIdentifier: "probe"}
	vr, v := []description.ValueReference{0}, []float64{0}
	for _, c := range []struct {
		flag string
		call func() error
	}{
		{"canGetAndSetFMUstate", func() error { return in.SetFMUState(s) }},
		{"canGetAndSetFMUstate", func() error { return in.FreeFMUState(s) }},
		{"canGetAndSetFMUstate", func() error { return second(in.GetFMUState(nil)) }},
		{"canSerializeFMUstate", func() error { return second(in.SerializeFMUState(s, nil)) }},
		{"canSerializeFMUstate", func() error { return second(in.DeserializeFMUState(nil)) }},
		{"canInterpolateInputs", func() error { return in.SetRealInputDerivatives(vr, []int32{1}, v) }},
		{"canInterpolateInputs", func() error { return second(in.NewStepper(StepPlan{RealIn: vr, DerivativeOrders: 1})) }},
		{"providesDirectionalDerivative", func() error { return in.GetDirectionalDerivative(vr, vr, v, v) }},
		{"maxOutputDerivativeOrder", func() error { return in.GetRealOutputDerivatives(vr, []int32{1}, v) }},
	} {
		var e *UsageError
		entered := in.crossings
		if err := c.call(); !errors.As(err, &e) || !strings.Contains(err.Error(), c.flag) || in.crossings != entered {
			t.Errorf("%s: %v", c.flag, err)
		}
	}
	f.Description.CoSimulation.CanGetAndSetFMUState = true // to be freed
	lean := probeFMU(t, "-DLEAN")
	in = running(t, lean, "lean")
	var c *UsageError
	if err := in.GetString(vr, []string{""}); !errors.As(err, &c) || !strings.Contains(c.Msg, "does not export") {
		t.Errorf("missing function: %v", err)
	}
	if lean.Exports("fmi2GetString") || !lean.Exports("fmi2DoStep") || lean.Exports("printf") {
		t.Error("Exports is wrong")
	}
}

func TestNames(t *testing.T) {
	for s, want := range map[fmt.Stringer]string{
		StatusOK: "OK", StatusErr: "Error", Status(9): "status(9)", StatusPending: "Pending",
		LastSuccessfulTime: "LastSuccessfulTime", StatusKind(7): "status kind(7)", StateStepFailed: "stepFailed", State(99): "state(99)",
		capi.GetFMUState: "fmi2GetFMUstate", capi.GetStringStatus: "fmi2GetStringStatus",
	} {
		if s.String() != want {
			t.Errorf("%#v is called %q, want %q", s, s.String(), want)
		}
	}
}
