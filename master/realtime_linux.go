package master

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// Numbers of the kernel that package syscall does not have.
const (
	clockMonotonic = 1
	timerAbsolute  = 1
	setTimerSlack  = 29
	getTimerSlack  = 30
	schedFIFO      = 1
)

// clockSleeper sleeps to absolute times of the monotonic clock.
type clockSleeper struct{ origin time.Duration } // of the kernel's clock, at begin

// start notes what the kernel's clock shows at begin.
func (s *clockSleeper) start(begin time.Time) {
	var now syscall.Timespec
	before := time.Since(begin)
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	s.origin = time.Duration(now.Nano()) - (before+time.Since(begin))/2
}

// until sleeps to a time since begin, or until a signal comes.
func (s *clockSleeper) until(due time.Duration) {
	at := syscall.NsecToTimespec(int64(s.origin + due))
	syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, clockMonotonic, timerAbsolute, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
}

// prepareThread has the calling thread woken without slack, and scheduled by a
// priority if that is not 0. leave keeps the slack.
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
	before, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	var old, param int32
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(syscall.SYS_SCHED_GETPARAM, 0, uintptr(unsafe.Pointer(&old)), 0)
	}
	if errno == 0 {
		param = int32(priority)
		_, _, errno = syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, schedFIFO, uintptr(unsafe.Pointer(&param)))
	}
	if errno != 0 {
		return undo, notes, fmt.Errorf("the real-time priority %d: %w; it takes CAP_SYS_NICE or a limit on real-time priorities (ulimit -r) of at least that, or run without", priority, errno)
	}
	undo = append(undo, func() {
		syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, before, uintptr(unsafe.Pointer(&old)))
	})
	return undo, append(notes, fmt.Sprintf("SCHED_FIFO priority %d", priority)), nil
}
