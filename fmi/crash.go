package fmi

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// CrashError is a call in which an FMU in this process has crashed, given up where
// it was. Memory and locks of C code may be in any state, so no FMU in this process
// is called any more, and neither is the C library: every instance here has
// StateFatal. Those in processes of their own go on. The program should keep its
// results and end.
type CrashError struct {
	Instance string  // "" if it is not known
	FMU      string  // path, "" if it is not known; with it
	Hash     string  // of its content, and
	Model    string  // the name of the model
	Func     string  // for example "fmi2DoStep", or "loading"; "" = a thread of the FMU's own
	Time     float64 // s, where the FMU was or where the step began; see Timed
	Timed    bool    // SetupExperiment had been called
	Reason   string  // for example "signal SIGSEGV (segmentation fault) at address 0x8"
	Lines    []string
}

// Error names instance, FMU, call, time and cause, quotes the last messages and says
// what helps.
func (e *CrashError) Error() string {
	var b strings.Builder
	if e.Instance != "" {
		b.WriteString(e.Instance + ": ")
	}
	if e.FMU != "" {
		b.WriteString(filepath.Base(e.FMU))
	} else {
		b.WriteString("an FMU")
	}
	if b.WriteString(" crashed in "); e.Func != "" {
		b.WriteString(e.Func)
	} else {
		b.WriteString("a thread of its own")
	}
	if e.Timed {
		fmt.Fprintf(&b, " at t = %.12g s", e.Time)
	}
	b.WriteString(": " + e.Reason)
	if len(e.Lines) > 0 {
		fmt.Fprintf(&b, "; its last messages: %s", strings.Join(e.Lines, "; "))
	}
	return b.String()
}

// firstCrash is the crash after which nothing is called in this process.
var firstCrash atomic.Pointer[CrashError]

// Crashed gives the first crash of an FMU in this process, nil if there was none.
func Crashed() *CrashError { return firstCrash.Load() }

// afterCrash is the error of what is refused since then.
func afterCrash(what string) error {
	return fmt.Errorf("%s: refused, because an FMU has crashed in this process: %w", what, Crashed())
}

// crashed makes the error of a call that was given up, the last of the records of the
// instance that were begun. It is the instance's own from then on.
func (in *Instance) crashed(b *batch, recs []record, last int) {
	r := &recs[last]
	e := &CrashError{Instance: in.name, Func: "a call", Time: in.time, Reason: crashReason(b), Lines: in.log.lastLines()}
	e.FMU, e.Hash, e.Model = in.fmu.Path, in.fmu.Hash, in.fmu.Description.ModelName
	f := in.function(r)
	if f < numFunctions {
		e.Func = f.String()
	}
	e.Timed = in.setup || f == fnSetupExperiment
	for k := last; k < len(recs); k++ { // not made yet
		if in.function(&recs[k]) == fnDoStep {
			e.Time = recs[k].f[0]
		}
	}
	if r.ret = uintptr(StatusFatal); f == fnInstantiate {
		r.ret = 0
	}
	b.signal = 0
	in.crash = e
	noteCrash(e)
}

// noteCrash ends all calls in this process.
func noteCrash(e *CrashError) {
	if firstCrash.CompareAndSwap(nil, e) {
		boundEnding()
	}
}

// callForeign calls a C function that is an FMU's or runs an FMU's code, with
// arguments that are integers and C addresses. modes tells that it left with other
// floating-point modes. The error is a *CrashError, in loading. The tag names the call.
func callForeign(t tag, fn uintptr, args ...uintptr) (ret uintptr, modes bool, err error) {
	var mem cmem
	defer mem.release()
	b := mem.batch()
	recs, err := cslice[record](&mem, 1)
	if err != nil {
		return 0, false, err
	}
	recs[0].fn, recs[0].tag = fn, t
	copy(recs[0].i[:], args)
	b.recs, b.n = address(recs), 1
	run(b)
	if b.signal != 0 {
		e := &CrashError{Func: "loading", Reason: crashReason(b)}
		noteCrash(e)
		return 0, false, e
	}
	return recs[0].ret, b.modes != 0, nil
}

// foreignText calls a function of an FMU that gives a short text.
func foreignText(t tag, fn uintptr) (string, error) {
	p, _, err := callForeign(t, fn)
	const longest = 64
	return cstring(p, longest), err
}

// crashedIn names the FMU whose loading has crashed.
func (f *FMU) crashedIn(e *CrashError) error {
	named := *e
	named.FMU, named.Hash, named.Model = f.Path, f.Hash, f.Description.ModelName
	firstCrash.CompareAndSwap(e, &named)
	return &named
}

// function returns which function a record calls.
func (in *Instance) function(r *record) function {
	for f, address := range in.sym {
		if address == r.fn {
			return function(f)
		}
	}
	return numFunctions
}
