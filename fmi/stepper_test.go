package fmi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

var plan = StepPlan{
	RealIn: []description.ValueReference{0, 5}, IntegerIn: []description.ValueReference{4}, BooleanIn: []description.ValueReference{2},
	RealOut: []description.ValueReference{1, 2, 3, 5}, IntegerOut: []description.ValueReference{4, 110, 111}, BooleanOut: []description.ValueReference{2},
	DerivativeOrders: 2, DerivativeIn: []int{0},
}

func stepper(tb testing.TB, in *Instance, p StepPlan) *Stepper {
	tb.Helper()
	s, err := in.NewStepper(p)
	must(tb, err)
	return s
}

// fill writes inputs that depend on seed only.
func fill(s *Stepper, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for k := range s.RealIn {
		s.RealIn[k] = r.NormFloat64()
	}
	for k := range s.Derivatives {
		s.Derivatives[k] = r.NormFloat64()
	}
	for k := range s.IntegerIn {
		s.IntegerIn[k] = int64(int32(r.Uint32()))
	}
	for k := range s.BooleanIn {
		s.BooleanIn[k] = int32(r.IntN(2))
	}
}

func outputs(s *Stepper) string { return fmt.Sprint(s.RealOut, s.IntegerOut, s.BooleanOut) }

func TestStepper(t *testing.T) {
	f := plainFMU(t)
	a, c := running(t, f, "a"), running(t, f, "c")
	s := stepper(t, a, plan)
	real := make([]float64, 4)
	ints := make([]int64, 3)
	flags := make([]bool, 1)
	for k := range 50 {
		fill(s, uint64(k))
		s.NoRestoreBefore = k%2 == 0
		at, h := float64(k)*0.1, 0.1
		if st, err := s.Step(at, h, true); st != StatusOK || err != nil {
			t.Fatal(st, err)
		}
		// the same by the ordinary calls
		must(t, c.SetReal(plan.RealIn, s.RealIn))
		must(t, c.SetInteger(plan.IntegerIn, s.IntegerIn))
		must(t, c.SetBoolean(plan.BooleanIn, []bool{s.BooleanIn[0] != 0}))
		must(t, c.SetRealInputDerivatives([]description.ValueReference{0, 0}, []int32{1, 2}, s.Derivatives))
		_, err := c.DoStep(at, h, s.NoRestoreBefore)
		must(t, err)
		must(t, c.GetReal(plan.RealOut, real))
		must(t, c.GetInteger(plan.IntegerOut, ints))
		must(t, c.GetBoolean(plan.BooleanOut, flags))
		if want := fmt.Sprint(real, ints, []int32{int32(flag(flags[0]))}); outputs(s) != want {
			t.Fatalf("step %d: stepper %s, calls %s", k, outputs(s), want)
		}
	}
	if a.Ticks() == 0 || s.Instance() != a {
		t.Error("no ticks, or the wrong instance")
	}

	before := outputs(s)
	if st, err := s.Step(5, 0.1, false); st != StatusOK || err != nil || outputs(s) != before {
		t.Errorf("a step without reading: %v %v, outputs %s", st, err, outputs(s))
	}
	must(t, s.Read())
	if outputs(s) == before || s.RealOut[2] != 5.1 {
		t.Errorf("after Read %s", outputs(s))
	}
	s.RealIn[0] = 21
	must(t, s.Write())
	must(t, s.Read())
	if s.RealOut[1] != 42 {
		t.Errorf("after Write the output is %v", s.RealOut[1])
	}
	must(t, a.Free())
	if s.RealIn != nil || s.BooleanOut != nil {
		t.Error("views into freed memory are left")
	}
	var order *UsageError
	for _, err := range []error{second(s.Step(6, 1, true)), s.Read(), s.Write()} {
		if !errors.As(err, &order) || !strings.Contains(order.Msg, "has been freed") {
			t.Errorf("freed stepper: %v", err)
		}
	}
	if _, err := a.NewStepper(plan); !errors.As(err, &order) {
		t.Error(err)
	}
}

func TestStepperPlans(t *testing.T) {
	in := running(t, plainFMU(t), "plans")
	s := stepper(t, in, StepPlan{})
	if st, err := s.Step(0, 1, true); st != StatusOK || err != nil {
		t.Error(st, err)
	}
	must(t, s.Read())
	must(t, s.Write())
	all := stepper(t, in, StepPlan{RealIn: []description.ValueReference{0, 7}, DerivativeOrders: 2})
	copy(all.RealIn, []float64{1, 2})
	copy(all.Derivatives, []float64{10, 70, 100, 700}) // order 1 of both, order 2 of both
	_, err := all.Step(1, 1, true)
	must(t, err)
	v := make([]float64, 3)
	must(t, in.GetReal([]description.ValueReference{1, 27, 47}, v))
	if want := []float64{1 + 5 + 100./6, 70, 700}; !slices.Equal(v, want) {
		t.Errorf("derivatives arrived as %v, want %v", v, want)
	}
	for _, p := range []StepPlan{
		{RealIn: []description.ValueReference{0}, DerivativeOrders: 1, DerivativeIn: []int{1}},
		{RealIn: []description.ValueReference{0}, DerivativeOrders: 1, DerivativeIn: []int{-1}},
		{DerivativeOrders: -1}, {DerivativeOrders: 17},
	} {
		if _, err := in.NewStepper(p); err == nil {
			t.Errorf("plan %+v was accepted", p)
		}
	}
	for _, h := range []float64{0, -1} {
		if _, err := s.Step(2, h, true); err == nil {
			t.Errorf("a step by %v was made", h)
		}
	}
}

// TestStepperStops makes each call of a step fail in turn.
func TestStepperStops(t *testing.T) {
	f := plainFMU(t)
	paths(t, func(t *testing.T, run func(*native.Batch)) {
		for _, fn := range []capi.Function{capi.SetReal, capi.SetInteger, capi.SetBoolean, capi.SetRealInputDerivatives, capi.DoStep, capi.GetReal, capi.GetInteger, capi.GetBoolean} {
			for _, st := range []Status{StatusWarning, StatusDiscard, StatusErr, StatusPending, Status(-1), Status(77)} {
				in := running(t, f, "stops")
				in.run = run
				s := stepper(t, in, plan)
				fail(t, in, fn, st, 0)
				if fn == capi.SetInteger {
					s.IntegerIn[0] = 0
				}
				_, err := s.Step(0, 1, true)
				steps := make([]int64, 1)
				saved := in.state
				in.state = StateStepComplete
				if fn == capi.GetInteger {
					steps[0] = 1
				} else {
					must(t, in.GetInteger([]description.ValueReference{110}, steps))
				}
				in.state = saved
				wantSteps := int64(1)
				if fn < capi.DoStep && fn >= capi.SetReal && st != StatusWarning {
					wantSteps = 0
				}
				if steps[0] != wantSteps {
					t.Errorf("%v returns %v: %d steps made, want %d", fn, st, steps[0], wantSteps)
				}
				var se *StatusError
				wantErr := st != StatusWarning && (st != StatusPending || fn != capi.DoStep)
				if errors.As(err, &se) != wantErr || wantErr && (se.Func != fn.String() || se.Status != st) {
					t.Errorf("%v returns %v: error %v", fn, st, err)
				}
				if undefined := st < StatusOK || st > StatusPending; undefined && !strings.Contains(err.Error(), "does not define") {
					t.Errorf("%v returns %v: error %v", fn, st, err)
				}
				want := StateError
				switch {
				case st == StatusWarning, st == StatusDiscard && fn != capi.DoStep:
					want = StateStepComplete
				case st == StatusDiscard:
					want = StateStepFailed
				case st == StatusPending && fn == capi.DoStep:
					want = StateStepInProgress
				}
				if saved != want {
					t.Errorf("%v returns %v: state %v, want %v", fn, st, saved, want)
				}
			}
		}
	})
}

// members makes n running instances of two FMUs with a stepper each.
func members(tb testing.TB, n int, o InstanceOptions) []*Stepper {
	tb.Helper()
	fs := []*FMU{plainFMU(tb), plainFMU(tb)}
	var out []*Stepper
	for k := range n {
		in := instance(tb, fs[k%2], fmt.Sprint("m", k), o)
		start(tb, in)
		out = append(out, stepper(tb, in, plan))
	}
	return out
}

// TestBatch compares a batch with the same steppers called one by one.
func TestBatch(t *testing.T) {
	const n = 5
	var c collector
	for name, variant := range map[string]func(s []*Stepper){
		"trampoline": func([]*Stepper) {},
		"portable": func(s []*Stepper) {
			for _, m := range s {
				m.in.run = native.RunPortable
			}
		},
		"traced": func(s []*Stepper) { s[2].in.trace, s[2].in.single = NewTrace(&strings.Builder{}), true },
	} {
		t.Run(name, func(t *testing.T) {
			for _, st := range []Status{StatusOK, StatusWarning, StatusDiscard, StatusErr, StatusPending, StatusFatal, Status(50)} {
				for _, fn := range []capi.Function{capi.SetReal, capi.DoStep, capi.GetReal} {
					a, b := members(t, n, InstanceOptions{Log: c.log}), members(t, n, InstanceOptions{Log: c.log})
					variant(a)
					g, err := NewBatch(a)
					must(t, err)
					for step := range 3 {
						if step == 1 {
							fail(t, a[3].in, fn, st, 1)
							fail(t, b[3].in, fn, st, 1)
						}
						for k := range n {
							fill(a[k], uint64(step*n+k))
							fill(b[k], uint64(step*n+k))
						}
						ran, last := 0, StatusOK
						var want error
						// A member that may not step keeps all from stepping.
						refuses := slices.IndexFunc(b, func(s *Stepper) bool { return s.in.State() != StateStepComplete })
						ok := refuses < 0
						for ok && ran < n && want == nil && last != StatusPending { // what a batch does, call by call
							last, want = b[ran].Step(float64(step), 1, true)
							ran++
						}
						var before, spent uint64
						for k := range n {
							before += a[k].in.Ticks()
						}
						n1, s1, err := g.Step(0, float64(step), 1, true)
						if ok && (n1 != ran || err != nil && s1 != last) || !ok && (n1 != refuses+1 || err == nil) {
							t.Fatalf("%v from %v, step %d: batch ran %d (%v, %v), one by one %d (%v)", st, fn, step, n1, s1, err, ran, last)
						}
						for k := range n {
							if outputs(a[k]) != outputs(b[k]) || a[k].in.State() != b[k].in.State() {
								t.Fatalf("%v from %v, step %d, member %d: batch %s %v, one by one %s %v", st, fn, step, k,
									outputs(a[k]), a[k].in.State(), outputs(b[k]), b[k].in.State())
							}
							spent += a[k].in.Ticks()
						}
						if c := g.crossings[stepAndRead]; ok && c != nil && spent-before != c.batch.End-c.batch.Start {
							t.Errorf("the members' ticks grew by %d, the batch took %d", spent-before, c.batch.End-c.batch.Start)
						}
						if want != nil && (err == nil || err.Error() != want.Error()) {
							t.Fatalf("%v from %v: batch gives %v, one by one %v", st, fn, err, want)
						}
						if want == nil && ok && (err != nil) != (last == StatusPending) {
							t.Fatalf("%v from %v: batch gives %v", st, fn, err)
						}
						if st == StatusPending && ok && fn == capi.DoStep && err != nil && !errors.As(err, new(*StatusError)) {
							t.Fatal(err)
						}
					}
				}
			}
		})
	}
}

func TestBatchMembers(t *testing.T) {
	s := members(t, 2, InstanceOptions{})
	twin := stepper(t, s[0].in, plan)
	must(t, s[1].in.Free())
	for name, m := range map[string][]*Stepper{
		"empty": nil, "nil": {s[0], nil}, "twice": {s[0], s[0]}, "same instance": {s[0], twin}, "freed": {s[0], s[1]},
	} {
		if _, err := NewBatch(m); err == nil {
			t.Errorf("%s: a batch was made", name)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	if native.CallPath == "portable" {
		return // purego's reflected calls allocate, see CallPath
	}
	s := members(t, 10, InstanceOptions{})
	g, err := NewBatch(s)
	must(t, err)
	in := s[0].in
	vr, v, n := []description.ValueReference{0, 5}, make([]float64, 2), make([]int64, 2)
	b := make([]bool, 2)
	state, err := in.GetFMUState(nil)
	must(t, err)
	states := make([]*FMUState, len(s))
	_, err = g.Save(states)
	must(t, err)
	at := 0.0
	for name, f := range map[string]func() error{
		"Stepper.Step":  func() error { _, err := s[0].Step(at, 1, true); return err },
		"Batch.Step":    func() error { _, _, err := g.Step(0, at, 1, true); return err },
		"Batch.Save":    func() error { _, err := g.Save(states); return err },
		"Batch.Restore": func() error { _, err := g.Restore(states); return err },
		"DoStep":        func() error { _, err := in.DoStep(at, 1, false); return err },
		"SetReal":       func() error { return in.SetReal(vr, v) },
		"GetReal":       func() error { return in.GetReal(vr, v) },
		"SetInteger":    func() error { return in.SetInteger(vr, n) },
		"GetBoolean":    func() error { return in.GetBoolean(vr, b) },
		"SetBoolean":    func() error { return in.SetBoolean(vr, b) },
		"GetFMUState":   func() error { _, err := in.GetFMUState(state); return err },
		"SetFMUState":   func() error { return in.SetFMUState(state) },
		"derivatives":   func() error { return in.SetRealInputDerivatives(vr[:1], []int32{1}, v[:1]) },
		"directional":   func() error { return in.GetDirectionalDerivative(vr, vr, v, v) },
	} {
		var err error
		if k := testing.AllocsPerRun(100, func() {
			if e := f(); e != nil {
				err = e
			}
			at++
		}); k != 0 || err != nil {
			t.Errorf("%s: %v allocations, %v", name, k, err)
		}
	}
}

// TestFloatingPointModes lets one FMU leave rounding and flush-to-zero changed.
// Neither the next FMU in the same batch nor Go may be affected, and it is logged once.
func TestFloatingPointModes(t *testing.T) {
	c := new(collector)
	s := members(t, 2, InstanceOptions{Log: c.log})
	var entered [2]float64
	for k, m := range s {
		must(t, m.in.SetInteger([]description.ValueReference{112, 113}, []int64{int64(1 - k), 1}))
	}
	g, err := NewBatch(s)
	must(t, err)
	for k := range 2 {
		_, _, err = g.Step(0, float64(k), 1, true)
		must(t, err)
	}
	_, err = s[0].Step(2, 1, true)
	must(t, err)
	same := func() {
		t.Helper()
		for k, m := range s {
			must(t, m.in.GetReal([]description.ValueReference{20}, entered[k:k+1]))
		}
		if entered[0] != entered[1] {
			t.Errorf("the FMUs were entered in rounding modes %v and %v", entered[0], entered[1])
		}
	}
	same()
	states := make([]*FMUState, 2)
	_, err = g.Save(states)
	must(t, err)
	_, err = g.Restore(states)
	must(t, err)
	same()
	told := 0
	for _, text := range c.texts() {
		if strings.Contains(text, "floating-point modes (rounding, flush to zero or exceptions) in fmi2") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("said %d times, want once: %q", told, c.texts())
	}
	third, tiny := 1.0, 5e-324
	third /= float64(len(s) + 1)
	if third != 1./3 {
		t.Errorf("Go rounds 1/3 to %v", third)
	}
	if tiny *= float64(len(s) - 1); tiny == 0 {
		t.Error("Go flushes small numbers to zero")
	}
}

func BenchmarkStep(b *testing.B) {
	refs := []description.ValueReference{0, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	v := make([]float64, 10)
	for _, p := range []struct {
		name    string
		run     func(*native.Batch)
		batched bool
	}{{"batched", native.Run, true}, {"calls", native.Run, false}, {"purego", native.RunPortable, false}} {
		b.Run(p.name, func(b *testing.B) {
			in := running(b, plainFMU(b), "bench")
			in.run = p.run
			s := stepper(b, in, StepPlan{RealIn: refs, RealOut: refs})
			k := 0.0
			b.ReportAllocs()
			for b.Loop() {
				if p.batched {
					copy(s.RealIn, v)
					if _, err := s.Step(k, 1, true); err != nil {
						b.Fatal(err)
					}
					copy(v, s.RealOut)
				} else {
					if err := in.SetReal(refs, v); err != nil {
						b.Fatal(err)
					}
					if _, err := in.DoStep(k, 1, false); err != nil {
						b.Fatal(err)
					}
					if err := in.GetReal(refs, v); err != nil {
						b.Fatal(err)
					}
				}
				k++
			}
		})
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{2, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := plainFMU(b)
			refs := []description.ValueReference{0, 5, 6}
			var s []*Stepper
			for range n {
				s = append(s, stepper(b, running(b, f, "bench"), StepPlan{RealIn: refs, RealOut: refs}))
			}
			g, err := NewBatch(s)
			must(b, err)
			k := 0.0
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := g.Step(0, k, 1, true); err != nil {
					b.Fatal(err)
				}
				k++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/fmu")
		})
	}
}
