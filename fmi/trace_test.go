package fmi

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// A trace writes values like package fmt.
func TestTraceValues(t *testing.T) {
	reals := []float64{0, math.Copysign(0, -1), 1, -2.5, 1e6, 123456789, 1e20, 1e21, 1e-4, 1e-5, 1. / 3, 5e-324, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	ints := []int32{0, -1, math.MinInt32, math.MaxInt32}
	references := []uint32{0, 7, math.MaxUint32}
	list := func(b *line, kind string, p unsafe.Pointer, n int) {
		*b = append(*b, '[')
		for k := range n {
			if k > 0 {
				b.text(" ")
			}
			b.value(kind, unsafe.Add(p, k*map[string]int{"real": 8, "int": 4, "ref": 4}[kind]))
		}
		b.text("]")
	}
	for n := range len(reals) + 1 {
		var b line
		list(&b, "real", unsafe.Pointer(&reals[0]), n)
		if want := fmt.Sprint(reals[:n]); string(b) != want {
			t.Errorf("%s, want %s", b, want)
		}
	}
	var b line
	b.text(" a=")
	list(&b, "int", unsafe.Pointer(&ints[0]), len(ints))
	b.text(" b=")
	list(&b, "ref", unsafe.Pointer(&references[0]), len(references))
	for _, address := range []uintptr{0, 0xabc} {
		b.text(" e=")
		b.value("state", unsafe.Pointer(&address))
	}
	if want := fmt.Sprintf(" a=%v b=%v e=%#x e=%#x", ints, references, 0, 0xabc); string(b) != want {
		t.Errorf("%s, want %s", b, want)
	}
	for _, c := range []struct {
		call Call
		want string
	}{
		{Call{Component: "bad", Function: "fmi2DoStep", Time: 0.4, Timed: true}, "- bad fmi2DoStep t=0.4 -> unfinished\n"},
		{Call{Component: "two words", Function: "fmi2Instantiate"}, "- \"two words\" fmi2Instantiate -> unfinished\n"},
	} {
		if got := c.call.Line(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A trace holds every call with its arguments and results, in order.
func TestTrace(t *testing.T) {
	text := use(t, plainFMU(t), nil, nil)
	at := 0
	for _, want := range []string{
		`x fmi2Instantiate name="x" type=CoSimulation guid="{probe}" resources="file:///`, `visible=0 loggingOn=1 -> component`,
		`fmi2SetDebugLogging on=1 categories=["a" "b"] -> OK`,
		`fmi2SetupExperiment toleranceDefined=1 tolerance=0.0001 start=0.5 stopDefined=1 stop=2 -> OK`,
		`fmi2SetReal vr=[20 21] v=[1.5 -2] -> OK`, `fmi2SetInteger vr=[20 21] v=[-2147483648 2147483647] -> OK`,
		`fmi2SetBoolean vr=[20 21] v=[1 0] -> OK`, `fmi2SetString vr=[1 2] v=["" "größer"] -> OK`, `fmi2EnterInitializationMode -> OK`,
		`fmi2ExitInitializationMode -> OK`, `fmi2GetReal vr=[21 20] v=[-2 1.5] -> OK`,
		`fmi2GetInteger vr=[21 20] v=[2147483647 -2147483648] -> OK`, `fmi2GetBoolean vr=[20 21] v=[1 0] -> OK`,
		`fmi2GetString vr=[1 2 13] v=["" "größer" null] -> OK`,
		`fmi2SetRealInputDerivatives vr=[0] order=[1] v=[0.5] -> OK`, `fmi2SetRealInputDerivatives vr=[0] order=[2] v=[0] -> OK`,
		`fmi2DoStep t=0.5 h=0.1 noRestoreBefore=0 -> OK`, `fmi2GetReal`, `fmi2GetFMUstate state=0x`, `fmi2SerializedFMUstateSize state=0x`,
		`fmi2SerializeFMUstate state=0x`, `fmi2DeSerializeFMUstate size=`, `fmi2SetFMUstate state=0x`, `fmi2FreeFMUstate state=`,
		`fmi2GetDirectionalDerivative unknown=[1 2] known=[3 4 5] dvKnown=[1 10 100] dvUnknown=[1653 2763] -> OK`,
		`fmi2GetRealOutputDerivatives vr=[2] order=[1] v=[201] -> OK`, `fmi2GetRealStatus kind=LastSuccessfulTime value=2.8`, `fmi2GetIntegerStatus kind=PendingStatus value=41`,
		`fmi2GetBooleanStatus kind=Terminated value=17`, `fmi2GetStringStatus kind=PendingStatus value="still busy"`,
		`fmi2DoStep t=0.8 h=0.1 noRestoreBefore=0 -> Discard`, `fmi2GetReal vr=[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0…20] v=[`, `fmi2Reset -> OK`,
		`fmi2FreeInstance -> void`,
	} {
		k := strings.Index(text[at:], want)
		if k < 0 {
			t.Fatalf("no %q in the rest of the trace:\n%s", want, text[at:])
		}
		at += k
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "log ") && (!strings.HasSuffix(line, "µs\n") || !strings.Contains(line, " x fmi2") || !strings.Contains(line, " -> ")) && !strings.HasPrefix(line, "x: ") {
			t.Errorf("line %q", line)
		}
	}
}

type brokenWriter struct{ n int }

func (w *brokenWriter) Write([]byte) (int, error) { w.n++; return 0, errors.New("disk full") }

func TestTraceError(t *testing.T) {
	w := new(brokenWriter)
	tr := NewTrace(w)
	in := instance(t, plainFMU(t), "two words", InstanceOptions{Trace: tr})
	start(t, in)
	if tr.Err() == nil || w.n != 1 {
		t.Errorf("%v after %d writes", tr.Err(), w.n)
	}
}

// tracedSteps starts an instance that writes to w, and returns a step of three calls.
func tracedSteps(t testing.TB, w io.Writer) (step func()) {
	in := instance(t, plainFMU(t), "traced", InstanceOptions{Trace: NewTrace(w)})
	start(t, in)
	at := 0.0
	vr, values := []description.ValueReference{0, 5}, []float64{1. / 3, 2.5}
	return func() {
		must(t, in.SetReal(vr, values))
		_, err := in.DoStep(at, 0.125, true)
		must(t, err)
		must(t, in.GetReal(vr, values))
		at += 0.125
	}
}

func TestTraceAllocates(t *testing.T) {
	if native.CallPath == "portable" {
		t.Skip("the portable calls allocate themselves; run without -tags macrostep_portable, on a platform of fmi.CallPath \"trampoline\"")
	}
	step := tracedSteps(t, io.Discard)
	if n := testing.AllocsPerRun(100, step); n > 0 {
		t.Errorf("%v allocations for three calls", n)
	}
}

func BenchmarkTrace(b *testing.B) {
	step := tracedSteps(b, io.Discard)
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}
