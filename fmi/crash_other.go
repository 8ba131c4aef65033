//go:build macrostep_portable || !linux || !(amd64 || arm64)

package fmi

import "unsafe"

// CatchCrashes does nothing here; on Linux it makes crashes of FMUs in this process
// errors.
func CatchCrashes(func(*CrashError)) error { return nil }

func crashReason(*batch) string { return "" }

func boundEnding() {}

// batches would hold the batches.
var batches slotTable

type slotTable struct{}

func (*slotTable) enter(*batch) int { return -1 }
func (*slotTable) leave(int)        {}

// mapMemory is for what is needed after a crash, which nothing outlives here.
func mapMemory(uintptr) unsafe.Pointer { return nil }
