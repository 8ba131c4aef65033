package fmi

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Flush writes what FMUs in this process have printed or written and the C library still holds. Free does
// so, too. The result is false if that lasts longer than two seconds, because a thread of an FMU holds a
// stream or because the reader of a pipe is slow; it goes on in the background then.
func Flush() bool { return native.Flush() }

// Exit ends the process like exit of C: it calls the exit handlers and destructors of FMUs, such as those of
// static objects in C++, and flushes the streams of C, which os.Exit does not. If they take longer than the
// given time, it ends the process nevertheless. Exit calls none of them if there was no instance, or one is not
// freed, as after Fatal, or was freed after an Error.
func Exit(code int, within time.Duration) {
	native.Exit(code, used.Load() && alive.Load() == 0 && !erring.Load(), within)
}

// Alive returns the number of instances in this process that are not freed. After Fatal they never are, and their FMU
// has no further instance in the process.
func Alive() int { return int(alive.Load()) }

// alive is the number of instances in this process that are not freed, used whether there was one, erring whether
// one was freed after an Error.
var (
	alive        atomic.Int32
	used, erring atomic.Bool
)

// ExitTime returns the time for exit handlers and destructors of FMUs whose calls may take the given time;
// 0 = unlimited.
func ExitTime(call time.Duration) time.Duration {
	const usual, least = 30 * time.Second, 2 * time.Second
	return max(cmp.Or(call, usual), least)
}
