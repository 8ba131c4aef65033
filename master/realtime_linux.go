package master

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Constants of the kernel that package syscall lacks.
const (
	clockMonotonic = 1
	timerAbsolute  = 1
	setTimerSlack  = 29
	getTimerSlack  = 30
	schedOther     = 0
	schedFIFO      = 1
)

// clockSleeper sleeps to absolute times of the monotonic clock.
type clockSleeper struct{ origin time.Duration } // of the kernel's clock, at begin

// start reads the kernel's clock at begin.
func (s *clockSleeper) start(begin time.Time) {
	var now syscall.Timespec
	before := time.Since(begin)
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	s.origin = time.Duration(now.Nano()) - (before+time.Since(begin))/2
}

// until sleeps until a time since begin, or until a signal.
func (s *clockSleeper) until(due time.Duration) {
	at := syscall.NsecToTimespec(int64(s.origin + due))
	syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, clockMonotonic, timerAbsolute, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
}

// prepareThread removes the timer slack of the calling thread, unless leave is set, and sets its priority,
// unless that is 0. undo reverts these settings; notes describe them.
func prepareThread(priority int, leave bool) (undo []func(), notes []string, err error) {
	if !leave {
		prctl := func(what, value uintptr) (uintptr, syscall.Errno) {
			r, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, what, value, 0)
			return r, errno
		}
		slack, errno := prctl(getTimerSlack, 0)
		if errno == 0 {
			_, errno = prctl(setTimerSlack, 1)
		}
		if errno != 0 {
			notes = append(notes, fmt.Sprintf("timer slack left as it is: %v", errno))
		} else {
			undo = append(undo, func() { prctl(setTimerSlack, slack) })
			notes = append(notes, "timer slack 1 ns")
		}
	}
	if priority == 0 {
		return undo, notes, nil
	}
	own := syscall.Gettid()
	if err := schedule(own, schedFIFO, priority); err != nil {
		return undo, notes, fmt.Errorf("the real-time priority %d: %w; it requires CAP_SYS_NICE or a limit on "+
			"real-time priorities (ulimit -r) "+
			"of at least that; or run without", priority, err)
	}
	prioritised.set(own, priority)
	undo = append(undo, func() { prioritised.set(own, 0) })
	return undo, append(notes, fmt.Sprintf("SCHED_FIFO priority %d", priority)), nil
}

// prioritised holds the priorities of the threads of all runs that have one.
var prioritised = priorities{of: map[int]int{}}

type priorities struct {
	mu sync.Mutex
	of map[int]int
}

// set gives a thread a priority (0 takes it away), and schedules all threads of the process.
func (p *priorities) set(thread, priority int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[thread] = priority; priority == 0 {
		delete(p.of, thread)
	}
	// Go's scheduler may resume a locked goroutine by way of another thread, which therefore needs a
	// priority, too.
	policy, rest := schedOther, 0
	for _, own := range p.of {
		if below := max(own-1, 1); policy == schedOther || below < rest {
			policy, rest = schedFIFO, below
		}
	}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil { // the others stay as they are
		_ = schedule(thread, policy, rest)
		return
	}
	for _, e := range entries {
		at, err := strconv.Atoi(e.Name())
		if err != nil || p.of[at] != 0 {
			continue
		}
		_ = schedule(at, policy, rest) // it may have ended meanwhile
	}
}

// schedule sets the scheduling of a thread.
func schedule(thread, policy, priority int) error {
	param := int32(priority)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(thread), uintptr(policy),
		uintptr(unsafe.Pointer(&param))); errno != 0 {
		return errno
	}
	return nil
}
