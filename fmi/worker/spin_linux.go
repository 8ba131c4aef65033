package worker

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// To wake a sleeper on a processor that has gone idle takes 20 to 40 µs on a
// virtual machine, a step of an FMU often less than one. So who waits first
// looks some times, then gives way to others between looks, which keeps the
// processor awake for whoever is to run there, and sleeps only after that. That
// pays only while few do it at the same time: of the workers those that were
// called last. And where a look costs a time slice, because others need the
// processor, it is left alone for a while.
const (
	spinLooks   = 50
	spinYields  = 100
	spinSlice   = time.Millisecond // a yield that takes so long has let another program run
	spinRefrain = 100              // waits without yields after one
)

var origin = time.Now()

// spinner is one side's waiting.
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

// again reports whether to look once more rather than to sleep.
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

// hot are the workers that were called last and may spin.
var hot = struct {
	sync.Mutex
	ring []*shared
	next int
}{ring: make([]*shared, runtime.NumCPU())}

// warm lets the worker spin after the request that is about to be sent.
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

// cool takes a worker off the ring.
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

// chill has the worker sleep at once; the lock of hot is held.
func (s *shared) chill() {
	s.hot.Store(false)
	s.c.hot.Store(0)
}
