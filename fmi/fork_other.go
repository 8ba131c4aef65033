//go:build !linux

package fmi

func watchForks() {}

func leaveFork() {}
