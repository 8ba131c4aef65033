package simulate

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// leastAddressSpace is the address space that a run takes, nearly all only reserved: by Go, by
// the C library for each thread, for stacks. Both end the program if they are refused.
const leastAddressSpace = 2800 << 20

// CheckLimits returns an error if the limits of this process are too low to run FMUs.
func CheckLimits() error {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &l) != nil || l.Cur >= leastAddressSpace {
		return nil
	}
	return fmt.Errorf("the address space is limited to %d MiB (ulimit -v), and runs need %d MiB, most of which is only reserved; raise the limit: memory is bounded by --memory-limit, or by a control group", l.Cur>>20, leastAddressSpace>>20)
}
