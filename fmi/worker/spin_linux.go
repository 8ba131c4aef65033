package worker

import (
	"syscall"
	"time"
)

// Waking a thread on an idle processor takes 20 to 40 µs on a virtual machine, a step of an FMU
// often less than 1 µs. So a waiting process first polls, then polls with yields, which keep the
// processor awake and let other workers run, and then sleeps. If a yield takes a time slice,
// because another program needs the processor, the process does not yield for a while.
const (
	spinLooks   = 50
	spinYields  = 100
	spinSlice   = time.Millisecond // a longer yield has run another program
	spinRefrain = 100              // waits without yields after a long yield
)

var origin = time.Now()

// spinner counts the polls of one side.
type spinner struct {
	looks   int
	refrain int
}

func (s *spinner) begin() {
	s.looks = 0
	if s.refrain > 0 {
		s.refrain--
	}
}

// again reports whether to poll again instead of sleeping.
func (s *spinner) again() bool {
	s.looks++
	switch {
	case s.looks <= spinLooks:
		return true
	case s.looks > spinLooks+spinYields, s.refrain > 0:
		return false
	}
	begin := time.Since(origin)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	if time.Since(origin)-begin > spinSlice {
		s.refrain = spinRefrain
	}
	return true
}
