package fmi

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
	remotehost "github.com/macrostep/macrostep/fmi/internal/remote"
)

// direct is a link to a host in this process.
type direct struct {
	host   *remotehost.Host
	damage func(answer []byte) []byte
	answer []byte
	closed bool
}

func (d *direct) Post(request []byte, _ uint64) error {
	answer, err := d.host.Answer(request)
	if err == nil && d.damage != nil {
		answer = d.damage(answer)
	}
	d.answer = answer
	return err
}

func (d *direct) Await() ([]byte, error) { return d.answer, nil }

func (d *direct) Close() error {
	d.closed = true
	return nil
}

// directLauncher makes such links.
type directLauncher struct{ last *direct }

func (l *directLauncher) Launch(to Launch) (Link, error) {
	host, err := remotehost.NewHost(to.Log, nil, nil, 0)
	l.last = &direct{host: host}
	return l.last, err
}

// use makes every call of an instance and returns a log of calls, messages and errors.
func use(t *testing.T, f *FMU, l Launcher, run func(*native.Batch)) string {
	t.Helper()
	var b strings.Builder
	note := func(err error) {
		if err != nil {
			b.WriteString(err.Error() + "\n")
		}
	}
	in, err := f.Instantiate("x", InstanceOptions{Launcher: l, Trace: NewTrace(&b), LoggingOn: true, Log: func(m LogMessage) {
		b.WriteString("log " + m.Category + ": " + m.Text + "\n")
	}})
	must(t, err)
	if run != nil {
		in.run = run
	}
	tolerance, stop := 1e-4, 2.0
	note(in.SetDebugLogging(true, []string{"a", "b"}))
	note(in.SetupExperiment(Experiment{Start: 0.5, Stop: &stop, Tolerance: &tolerance}))
	note(in.SetReal([]description.ValueReference{20, 21}, []float64{1.5, -2}))
	note(in.SetInteger([]description.ValueReference{20, 21}, []int64{math.MinInt32, math.MaxInt32}))
	note(in.SetBoolean([]description.ValueReference{20, 21}, []bool{true, false}))
	note(in.SetString([]description.ValueReference{1, 2}, []string{"", "größer"}))
	note(in.EnterInitializationMode())
	note(in.ExitInitializationMode())
	reals, integers, booleans, texts := make([]float64, 2), make([]int64, 2), make([]bool, 2), make([]string, 3)
	note(in.GetReal([]description.ValueReference{21, 20}, reals))
	note(in.GetInteger([]description.ValueReference{21, 20}, integers))
	note(in.GetBoolean([]description.ValueReference{20, 21}, booleans))
	note(in.GetString([]description.ValueReference{1, 2, 13}, texts))
	s, err := in.NewStepper(StepPlan{RealIn: []description.ValueReference{0}, RealOut: []description.ValueReference{1, 2, 3}, IntegerIn: []description.ValueReference{30}, IntegerOut: []description.ValueReference{30},
		BooleanIn: []description.ValueReference{31}, BooleanOut: []description.ValueReference{31}, DerivativeOrders: 2})
	must(t, err)
	for i := range 3 {
		s.RealIn[0], s.IntegerIn[0], s.BooleanIn[0], s.Derivatives[0] = float64(i), int64(i), int32(i%2), 0.5
		_, err := s.Step(0.5+float64(i)/10, 0.1, true)
		note(err)
	}
	note(s.Read())
	note(s.Write())
	state, err := in.GetFMUState(nil)
	note(err)
	_, err = s.Step(0.8, 0.1, true)
	note(err)
	bytes, err := in.SerializeFMUState(state, nil)
	note(err)
	again, err := in.DeserializeFMUState(bytes)
	note(err)
	note(in.SetFMUState(again))
	note(in.FreeFMUState(again))
	slope := make([]float64, 1)
	note(in.GetDirectionalDerivative([]description.ValueReference{1, 2}, []description.ValueReference{3, 4, 5}, []float64{1, 10, 100}, reals))
	note(in.SetRealInputDerivatives([]description.ValueReference{0}, []int32{1}, []float64{2}))
	note(in.GetRealOutputDerivatives([]description.ValueReference{2}, []int32{1}, slope))
	_, err = in.GetRealStatus(LastSuccessfulTime)
	note(err)
	_, err = in.GetIntegerStatus(PendingStatus)
	note(err)
	_, err = in.GetBooleanStatus(Terminated)
	note(err)
	_, err = in.GetStringStatus(PendingStatus)
	note(err)
	// A function that fails.
	note(in.SetInteger([]description.ValueReference{100, 101, 102}, []int64{int64(capi.DoStep), int64(StatusDiscard), 1}))
	_, err = s.Step(0.8, 0.1, true)
	note(err)
	note(in.GetReal(make([]description.ValueReference, 20), make([]float64, 20)))
	note(in.Reset())
	note(in.Free())
	return b.String()
}

// timeless removes times and addresses from a log of calls.
func timeless(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		w := strings.Fields(line)
		for i, s := range w {
			if i == 0 && strings.Contains(s, ".") || strings.HasSuffix(s, "µs") || strings.HasPrefix(s, "state=0x") {
				w[i] = "~"
			}
		}
		b.WriteString(strings.Join(w, " ") + "\n")
	}
	return b.String()
}

// Portable calls and calls through a host have the same arguments and results.
func TestPathsAreTheSame(t *testing.T) {
	f := plainFMU(t)
	here := timeless(use(t, f, nil, nil))
	if portable := timeless(use(t, f, nil, native.RunPortable)); portable != here {
		t.Errorf("%s\nportable:\n%s", here, portable)
	}
	l := &directLauncher{}
	if there := timeless(use(t, f, l, nil)); there != here {
		t.Errorf("%s\nthrough a host:\n%s", here, there)
	}
	if !l.last.closed {
		t.Error("the link is not closed")
	}
	if strings.Contains(here, "lost") || !strings.Contains(here, "Discard") {
		t.Error(here)
	}
}

// A damaged answer does not crash the program.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"", "\x01\x00\x00\x00\x00\x00\x00\x00", strings.Repeat("\xff", 64)} {
		f.Add([]byte(seed), uint16(0))
	}
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint16(24))
	var fmu *FMU
	f.Fuzz(func(t *testing.T, patch []byte, at uint16) {
		if fmu == nil {
			fmu = plainFMU(t)
		}
		l := &directLauncher{}
		in, err := fmu.Instantiate("x", InstanceOptions{Launcher: l})
		must(t, err)
		l.last.damage = func(answer []byte) []byte {
			answer = append([]byte(nil), answer...)
			n := copy(answer[min(int(at), len(answer)):], patch)
			return answer[:max(len(answer)-n%9, 0)]
		}
		_ = in.SetupExperiment(Experiment{})
		_ = in.EnterInitializationMode()
		_ = in.ExitInitializationMode()
		text := make([]string, 2)
		_ = in.GetString([]description.ValueReference{1, 2}, text)
		_, _ = in.GetStringStatus(PendingStatus)
		if s, err := in.GetFMUState(nil); err == nil {
			_ = s
		}
		l.last.damage = nil
		in.remote.err = nil
		in.states = nil
		in.state = StateFatal // the handles may be anything now
		if err := in.Free(); err != nil {
			t.Error(err)
		}
	})
}

// After the end of its process an instance returns the same error from all calls, and can be freed.
func TestLost(t *testing.T) {
	l := &directLauncher{}
	in, err := plainFMU(t).Instantiate("x", InstanceOptions{Launcher: l})
	must(t, err)
	l.last.damage = func([]byte) []byte { return nil }
	first := in.SetupExperiment(Experiment{Start: 1})
	var lost *ProcessError
	if !errors.As(first, &lost) || lost.Func != "fmi2SetupExperiment" || !lost.Timed || lost.Time != 1 {
		t.Fatalf("error %v", first)
	}
	if in.State() != StateFatal {
		t.Errorf("state %v", in.State())
	}
	if _, err := in.NewStepper(StepPlan{}); !errors.Is(err, first) {
		t.Errorf("a stepper: %v", err)
	}
	if err := in.Reset(); !errors.Is(err, first) {
		t.Errorf("reset: %v", err)
	}
	if err := in.Free(); err != nil || !l.last.closed {
		t.Errorf("free: %v", err)
	}
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Error("records are made for 64 bits")
	}
}
