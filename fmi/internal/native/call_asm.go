//go:build !macrostep_portable && (linux || darwin || freebsd || netbsd) && (amd64 || arm64)

package native

import (
	"unsafe"

	_ "github.com/ebitengine/purego" // gives a program without cgo the C runtime that runtime.cgocall needs
)

// The runtime guarantees this name for purego. It is not marked noescape, since a callback
// may move the stack of the goroutine while C runs.
//
//go:linkname runtime_cgocall runtime.cgocall
func runtime_cgocall(fn uintptr, arg unsafe.Pointer) int32

// runBatchABI0 is the address of the assembly routine.
var runBatchABI0 uintptr

// CallPath is the method of calling batches.
const CallPath = "trampoline"

// Run calls a batch in one crossing, without allocation.
func Run(b *Batch) { runtime_cgocall(runBatchABI0, unsafe.Pointer(b)) }
