//go:build race

package test

// Under the race detector the program is built with it too.
func init() { raced = true }
