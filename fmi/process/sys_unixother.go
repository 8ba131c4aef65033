//go:build unix && !linux

package process

import (
	"runtime"
	"syscall"
)

// rssUnit is the unit of Maxrss in bytes.
var rssUnit = map[bool]uint64{true: 1, false: 1024}[runtime.GOOS == "darwin"]

// bind does nothing: a child notices the end of its parent by the end of a pipe.
func bind(*syscall.SysProcAttr) {}

func wake(*syscall.SysProcAttr) {}

func awaitEnd(int) bool { return false }

func raiseStack(uint64) (restore func()) { return func() {} }

// ThreadStack returns 0 for unknown; see the variant for Linux.
func ThreadStack() uint64 { return 0 }

// DefaultSignals does nothing here; see the variant for Linux.
func DefaultSignals() error { return nil }

// LimitMemory does nothing here; see the variant for Linux.
func LimitMemory(uint64) error { return nil }

const runningImage = "" // there is no such path

// EndWithThread does nothing here; see the variant for Linux.
func EndWithThread() {}
