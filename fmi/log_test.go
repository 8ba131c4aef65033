package fmi

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// logging returns an instance called "log" and the collector of its messages.
func logging(tb testing.TB) (*Instance, *collector) {
	tb.Helper()
	c := new(collector)
	return instance(tb, plainFMU(tb), "log", InstanceOptions{Log: c.log}), c
}

// TestFormat compares each message with the result of snprintf.
func TestFormat(t *testing.T) {
	in, c := logging(t)
	buf := make([]byte, 4096)
	mem, err := in.mem.Alloc(uintptr(len(buf)))
	must(t, err)
	n := 0
	for ; export(t, in, "log_case", in.comp, uintptr(n), uintptr(mem), uintptr(len(buf)))&0xff != 0; n++ {
		want := native.String(uintptr(mem), len(buf))
		got := c.all[len(c.all)-1]
		if got.Text != want || len(c.all) != n+1 {
			t.Errorf("case %d: %q, snprintf gives %q", n, got.Text, want)
		}
		if got.Instance != "log" || got.Status != StatusOK || got.Category != "format" {
			t.Errorf("case %d: %+v", n, got)
		}
	}
	if n < 25 {
		t.Errorf("only %d cases ran", n)
	}
}

func TestLogger(t *testing.T) {
	in, c := logging(t)
	last := func() LogMessage { return c.all[len(c.all)-1] }
	export(t, in, "log_null", in.comp)
	if m := last(); m.Text != "no name, no category" || m.Category != "" || m.Status != StatusWarning || m.Instance != "log" {
		t.Errorf("%+v", m)
	}
	export(t, in, "log_nulltext", in.comp)
	if m := last(); m.Text != "" || m.Category != "c" {
		t.Errorf("%+v", m)
	}
	for fn, want := range map[string]string{
		"log_percent_n":  "ab77",
		"log_reference":  "u # count flag text #r99# #x1# #r# 50% #",
		"log_nullstring": "(null)|3",
		"log_bytes":      "bad ÿ byte",
	} {
		export(t, in, fn, in.comp)
		if m := last(); m.Text != want {
			t.Errorf("%s gives %q, want %q", fn, m.Text, want)
		}
	}
	export(t, in, "log_wide", in.comp)
	if n := len(last().Text); n < 4096 || n > 3*4096 {
		t.Errorf("widths of 2e9 give %d bytes", n)
	}
	if got, want := in.log.TakeRecent(), "no name, no category; "; got != want {
		t.Errorf("recent lines %q, want %q", got, want)
	}
}

// TestWrongEnvironment hands the logger something else than it was given.
func TestWrongEnvironment(t *testing.T) {
	in, c := logging(t)
	name := func(s string) uintptr {
		b, err := native.Slice[byte](&in.mem, len(s)+1)
		must(t, err)
		copy(b, s)
		return native.Address(b)
	}
	export(t, in, "log_wrong", in.comp, name("log"))
	export(t, in, "log_wrong", in.comp, name("log"))
	export(t, in, "log_wrong", in.comp, name("nobody"))
	export(t, in, "log_wrong", in.comp, 0)
	texts := c.texts()
	if len(texts) != 3 || !strings.Contains(texts[0], "wrong componentEnvironment") || texts[1] != "wrong 1" || texts[2] != "wrong 1" {
		t.Errorf("log %q", texts)
	}
}

// A message after FreeInstance, from a thread of the FMU and with an unreadable name, is ignored.
func TestLateMessage(t *testing.T) {
	in, c := logging(t)
	export(t, in, "log_late", in.comp)
	n := len(c.texts())
	h, _, err := native.OpenLibrary(in.fmu.Library(), 0)
	must(t, err)
	must(t, in.Free())
	native.CallInts(native.Symbol(h, "log_go"))
	if len(c.texts()) != n {
		t.Errorf("late messages %q", c.texts()[n:])
	}
}

// Each message of 8 threads is delivered completely or counted as dropped; none is dropped unless the
// queue is full.
func TestForeignStorm(t *testing.T) {
	t.Run("within the queue", func(t *testing.T) { foreignStorm(t, 200) })
	t.Run("beyond it", func(t *testing.T) { foreignStorm(t, 1000) })
}

func foreignStorm(t *testing.T, each uintptr) {
	in, c := logging(t)
	const threads = 8
	export(t, in, "log_threads", in.comp, threads, each)
	must(t, in.Free())
	counts, delivered, dropped := map[string]int{}, 0, 0
	for _, s := range c.texts() {
		var n int
		if _, err := fmt.Sscanf(s, in.log.FMU+": %d of", &n); err == nil {
			dropped += n
			continue
		}
		counts[s]++
		delivered++
	}
	for s, n := range counts {
		var k int
		if _, err := fmt.Sscanf(s, "line %d", &k); err != nil || s != fmt.Sprint("line ", k) || k >= int(each) || n > threads {
			t.Errorf("%q came %d times", s, n)
		}
	}
	if all := threads * int(each); delivered+dropped != all || delivered < min(all, capi.MaxMessages) {
		t.Errorf("%d messages delivered and %d dropped of %d", delivered, dropped, all)
	}
}

// Of the messages within one call those beyond the queue are counted, and a warning at the end gives the number; with debug
// logging none is dropped.
func TestLogStorm(t *testing.T) {
	c := new(collector)
	all := instance(t, plainFMU(t), "log", InstanceOptions{Log: c.log, LoggingOn: true})
	export(t, all, "log_many", all.comp, capi.MaxMessages+500)
	must(t, all.Free())
	if n := len(c.texts()); n != capi.MaxMessages+500 {
		t.Errorf("%d messages with debug logging, want %d", n, capi.MaxMessages+500)
	}
	in, c := logging(t)
	export(t, in, "log_many", in.comp, capi.MaxMessages+500)
	if n := len(c.texts()); n != capi.MaxMessages {
		t.Errorf("%d messages delivered, want %d", n, capi.MaxMessages)
	}
	must(t, in.Free())
	want := fmt.Sprintf(": 500 of %d log messages of the FMU were dropped", capi.MaxMessages+500)
	if m := c.all[len(c.all)-1]; len(c.all) != capi.MaxMessages+1 || !strings.Contains(m.Text, want) || m.Status != StatusWarning {
		t.Errorf("the last messages are %q", c.texts()[capi.MaxMessages:])
	}
}

// TestLogInsideBatch logs from inside a batch while the sink grows the stack,
// collects garbage and calls the FMU again.
func TestLogInsideBatch(t *testing.T) {
	f := plainFMU(t)
	var other *Instance
	var got []string
	in := instance(t, f, "in", InstanceOptions{Log: func(m LogMessage) {
		got = append(got, m.Text+" "+fmt.Sprint(deep(2000)))
		runtime.GC()
		if err := other.GetReal([]description.ValueReference{3}, make([]float64, 1)); err != nil {
			t.Error(err)
		}
	}})
	other = running(t, f, "other")
	start(t, in)
	s := stepper(t, in, plan)
	fail(t, in, capi.DoStep, StatusWarning, 0)
	done := make(chan error)
	go func() { // a fresh, small stack
		var err error
		for k := range 20 {
			s.RealIn[0] = float64(k)
			if _, err = s.Step(float64(k), 1, true); err != nil {
				break
			}
			if s.RealOut[1] != 2*float64(k) {
				err = fmt.Errorf("output %v at step %d", s.RealOut[1], k)
				break
			}
		}
		done <- err
	}()
	must(t, <-done)
	if len(got) != 20 || !strings.HasSuffix(got[0], " 2000") {
		t.Errorf("%d messages, %q", len(got), got)
	}
}

func deep(n int) int {
	var pad [256]byte
	if n == 0 {
		return int(pad[0])
	}
	return 1 + deep(n-1) + int(pad[n%256])
}

// A panic in the sink neither unwinds the FMU nor stops the log. If the sink makes its instance log,
// it receives the message after it has returned.
func TestSink(t *testing.T) {
	var in *Instance
	var got []string
	depth := 0
	in = instance(t, plainFMU(t), "log", InstanceOptions{Log: func(m LogMessage) {
		depth++
		defer func() { depth-- }()
		if depth > 1 {
			t.Error("the sink was called inside itself")
		}
		switch got = append(got, m.Text); len(got) {
		case 1:
			panic("sink")
		case 2:
			export(t, in, "log_null", in.comp)
		}
	}})
	export(t, in, "log_many", in.comp, 3)
	if !slices.Equal(got, []string{"line 0", "line 1", "no name, no category", "line 2"}) {
		t.Errorf("%q", got)
	}
}

func TestParallelInstances(t *testing.T) {
	var wg sync.WaitGroup
	f := plainFMU(t)
	for k := range 4 {
		var c collector
		in := instance(t, f, fmt.Sprint("p", k), InstanceOptions{Log: c.log})
		start(t, in)
		s := stepper(t, in, plan)
		fail(t, in, capi.DoStep, StatusWarning, 0)
		wg.Go(func() {
			runtime.LockOSThread()
			for n := range 100 {
				if _, err := s.Step(float64(n), 1, true); err != nil {
					t.Error(err)
				}
			}
			if n := len(c.texts()); n != 100 {
				t.Errorf("instance %d logged %d lines", k, n)
			}
		})
	}
	wg.Wait()
}
