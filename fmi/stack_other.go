//go:build !linux

package fmi

func setThreadStack(uintptr) {}
