//go:build unix && !linux

package worker

import (
	"runtime"
	"syscall"
)

// rssUnit is that of the memory in use: bytes on macOS.
var rssUnit = map[bool]uint64{true: 1, false: 1024}[runtime.GOOS == "darwin"]

// dieWithParent does nothing: the worker sees that its stdin ends.
func dieWithParent(*syscall.SysProcAttr) {}

func prepare() error { return nil }

func raiseStack(uint64) (restore func()) { return func() {} }

func threadStack() uint64 { return 0 }

func limitMemory(uint64) error { return nil }

const runningImage = "" // there is no such path
