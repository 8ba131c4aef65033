//go:build !linux

package native

func watchForks() {}

func leaveFork() {}
