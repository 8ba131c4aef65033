//go:build !linux

package process

import "syscall"

// What only Linux has does nothing here; see the variants for Linux.

const runningImage = "" // there is no such path

// bind does nothing: a child notices the end of its parent by the end of a pipe.
func bind(*syscall.SysProcAttr) {}

func wake(*syscall.SysProcAttr) {}

func awaitEnd(int) bool { return false }

func raiseStack(uint64) (restore func()) { return func() {} }

// ThreadStack returns 0 for unknown.
func ThreadStack() uint64 { return 0 }

// DefaultSignals does nothing here.
func DefaultSignals() error { return nil }

// LimitMemory does nothing here.
func LimitMemory(uint64) error { return nil }

// EndWithThread does nothing here.
func EndWithThread() {}

// Memory returns the present memory use of the process in bytes; 0 = unknown.
func (c *Child) Memory() uint64 { return 0 }
