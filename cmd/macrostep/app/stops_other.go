//go:build !unix

package app

import "github.com/macrostep/macrostep/master/supervise"

// forwardStops does nothing: there are no such signals.
func forwardStops(*supervise.Engine) {}
