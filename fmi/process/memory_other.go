//go:build !linux

package process

// Memory returns how much memory the process has in use now, in bytes; 0 = not known.
func (c *Child) Memory() uint64 { return 0 }
