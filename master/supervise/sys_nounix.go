//go:build !unix

package supervise

func settleSignals() {}
