package fmi

import (
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"
)

// exits holds what is called when C code calls exit, and what became of asking
// for it: the C library keeps what it is given, so it is asked once.
var exits struct {
	once sync.Once
	err  error
	f    atomic.Pointer[func()]
}

// OnExit has f called when C code in this process calls exit, as an FMU may that
// has its own idea of an error: without, the program ends there and then, with
// the FMU's exit code, and that may be 0. f ends the process itself, by os.Exit,
// which no C code notices. The FMU's function is still under way, and f may run on
// a thread of the FMU's own, and on several threads at once: it must not return while
// one of them ends the process. There is one f, the last one; nil takes it back. The
// error says that the C library cannot be asked.
//
// On systems other than Linux it does nothing.
func OnExit(f func()) error {
	if f == nil {
		exits.f.Store(nil)
		return nil
	}
	exits.f.Store(&f)
	exits.once.Do(func() {
		// atexit itself is no symbol of glibc's shared library.
		var register uintptr
		if register, exits.err = libcSymbol("__cxa_atexit"); exits.err == nil {
			// A thread that calls exit takes the next one that none has taken yet, and
			// after the last one the process ends: there are some for further threads.
			const threads = 64
			handler := purego.NewCallback(func(uintptr) uintptr {
				if f := exits.f.Load(); f != nil {
					(*f)()
				}
				return 0
			})
			for range threads {
				callInts(register, handler, 0, 0)
			}
		}
	})
	return exits.err
}
