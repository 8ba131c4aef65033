package native

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// heard collects the messages of an instance.
type heard struct{ texts []string }

func (h *heard) Name() string { return "" }

func (h *heard) Logged(m Message, readable, wrong bool) {
	h.texts = append(h.texts, fmt.Sprintf("%d %s: %s, %t %t", m.Status, m.Category, m.Text, readable, wrong))
	if m.Text == "panic" {
		panic(m.Text)
	}
}

// Plain messages arrive from the calling thread and from another one, unchanged. Those with a wrong environment arrive
// if there is only one instance; those of a freed one do not.
func TestPlainLog(t *testing.T) {
	callback := PlainLogCallback()
	if again := PlainLogCallback(); again != callback || LogCallback() == callback {
		t.Error("the callbacks are not one of each kind")
	}
	var mem Memory
	defer mem.Release()
	text := func(s string) uintptr {
		b, err := Slice[byte](&mem, len(s)+1)
		if err != nil {
			t.Fatal(err)
		}
		copy(b, s)
		return Address(b)
	}
	const unreadable, foreign = 1, 0x1234
	category, message := text("c"), text("100%d of %s %n")
	for _, say := range []string{"say", "say_thread"} {
		log := func(environment, category, message uintptr) {
			t.Helper()
			if st := call(t, say, callback, environment, 3, category, message); st != 0 {
				t.Errorf("%s returns %d", say, st)
			}
		}
		var one, two heard
		expect := func(h *heard, want ...string) {
			t.Helper()
			if !slices.Equal(h.texts, want) {
				t.Errorf("%s: heard %q, want %q", say, h.texts, want)
			}
			h.texts = nil
		}
		first := Listen(&one)
		log(first, category, message)
		log(first, 0, 0)
		log(first, unreadable, message)
		log(first, category, text("panic"))
		log(0, category, message)
		log(foreign, category, message)
		expect(&one, "3 c: 100%d of %s %n, true false", "3 : , true false", "3 : , false false", "3 c: panic, true false",
			"3 c: 100%d of %s %n, true true", "3 c: 100%d of %s %n, true true")
		second := Listen(&two)
		log(0, category, message)
		log(foreign, category, message)
		log(second, category, message)
		expect(&one)
		expect(&two, "3 c: 100%d of %s %n, true false")
		Unlisten(first)
		log(first, category, message)
		log(first, unreadable, unreadable)
		expect(&one)
		expect(&two)
		Unlisten(second)
		log(0, category, message)
		expect(&two)
	}
}

// A forked process that logs ends without a message.
func TestPlainLogForked(t *testing.T) {
	if runtime.GOOS != "linux" || CallPath != "trampoline" {
		t.Skip("only the trampolines of Linux end a forked process before it enters Go; run on Linux without -tags macrostep_portable")
	}
	var h heard
	environment := Listen(&h)
	defer Unlisten(environment)
	if st := call(t, "say_forked", PlainLogCallback(), environment, 0, 0, 0); st != forkExit || len(h.texts) > 0 {
		t.Errorf("the forked process ended with %d, want %d; heard %q", st, forkExit, h.texts)
	}
}
