//go:build !linux

package fmi

import "runtime"

// OnLargeStack calls f on the thread of the caller, as if between
// runtime.LockOSThread and runtime.UnlockOSThread: on this system the threads of
// Go have stacks of fixed size. On Linux the size is LargeStack at least.
func OnLargeStack(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
}

func setThreadStack(uintptr) (restore func(), ok bool) { return nil, false }
