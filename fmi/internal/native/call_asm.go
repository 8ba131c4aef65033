//go:build !macrostep_portable && (linux || darwin || freebsd || netbsd) && (amd64 || arm64)

package native

import (
	"unsafe"

	_ "github.com/ebitengine/purego" // gives a program without cgo the C runtime that runtime.cgocall needs
)

// The runtime keeps this name for purego ("do not remove or change the type
// signature"). It is not marked noescape: a callback may grow and move the
// goroutine's stack while C runs.
//
//go:linkname runtime_cgocall runtime.cgocall
func runtime_cgocall(fn uintptr, arg unsafe.Pointer) int32

// runBatchABI0 is the address of the assembly routine.
var runBatchABI0 uintptr

// CallPath names how batches are carried out.
const CallPath = "trampoline"

// Run carries out a batch in one crossing, without allocation.
func Run(b *Batch) { runtime_cgocall(runBatchABI0, unsafe.Pointer(b)) }
