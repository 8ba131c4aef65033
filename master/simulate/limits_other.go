//go:build !linux

package simulate

// CheckLimits returns an error if the limits of this process are too low to run FMUs.
func CheckLimits() error { return nil }
