//go:build !linux

package process

// Memory returns the present memory use of the process in bytes; 0 = unknown.
func (c *Child) Memory() uint64 { return 0 }
