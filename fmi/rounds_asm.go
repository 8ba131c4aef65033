//go:build !macrostep_portable && (linux || darwin || freebsd || netbsd) && (amd64 || arm64)

package fmi

import "unsafe"

// runRoundsABI0 is the address of the assembly routine.
var runRoundsABI0 uintptr

// runRounds carries out rounds in one crossing, without allocation; nil where the
// platform cannot.
var runRounds = func(r *rounds) { runtime_cgocall(runRoundsABI0, unsafe.Pointer(r)) }
