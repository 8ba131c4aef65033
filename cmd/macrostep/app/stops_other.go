//go:build !unix

package app

// forwardStops does nothing: there are no such signals.
func forwardStops() {}
