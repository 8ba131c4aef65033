//go:build !linux

package supervise

// AdoptOrphans does nothing: only Linux can.
func AdoptOrphans() {}

func endOrphans() {}

func followStops() {}
