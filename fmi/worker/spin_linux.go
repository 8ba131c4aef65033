package worker

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Waking a thread on an idle processor takes 20 to 40 µs on a virtual machine, a step of an FMU
// often less than 1 µs. So a waiting process first polls, then polls with yields, which keep the
// processor awake, and then sleeps. This helps only if few processes do it, so only the workers
// that were called last may yield. If a yield takes a time slice, because another program needs
// the processor, the process does not yield for a while.
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
func (s *spinner) again(hot bool) bool {
	s.looks++
	switch {
	case s.looks <= spinLooks:
		return true
	case s.looks > spinLooks+spinYields, s.refrain > 0, !hot:
		return false
	}
	begin := time.Since(origin)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	if time.Since(origin)-begin > spinSlice {
		s.refrain = spinRefrain
	}
	return true
}

// hot are the workers that were called last and may yield.
var hot = struct {
	sync.Mutex
	ring []*shared
	next int
}{ring: make([]*shared, runtime.NumCPU())}

// warm allows the worker to yield after the next request.
func (s *shared) warm() {
	if s.hot.Load() {
		return
	}
	hot.Lock()
	defer hot.Unlock()
	if old := hot.ring[hot.next]; old != nil {
		old.chill()
	}
	hot.ring[hot.next] = s
	hot.next = (hot.next + 1) % len(hot.ring)
	s.hot.Store(true)
	s.c.hot.Store(1)
}

// cool removes a worker from the ring.
func (s *shared) cool() {
	hot.Lock()
	defer hot.Unlock()
	for k, other := range hot.ring {
		if other == s {
			hot.ring[k] = nil
			s.chill()
		}
	}
}

// chill forbids the worker to yield. The caller holds hot.
func (s *shared) chill() {
	s.hot.Store(false)
	s.c.hot.Store(0)
}
