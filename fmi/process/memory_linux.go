package process

import (
	"fmt"
	"os"
)

// Memory returns the present memory use of the process in bytes; 0 = unknown.
func (c *Child) Memory() uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.Pid()))
	var all, resident uint64
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		return 0
	}
	return resident * uint64(os.Getpagesize())
}
