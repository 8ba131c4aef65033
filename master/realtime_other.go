//go:build !linux

package master

import (
	"errors"
	"time"
)

// clockSleeper sleeps by the timers of Go.
type clockSleeper struct{ begin time.Time }

func (s *clockSleeper) start(begin time.Time) { s.begin = begin }

// until sleeps to a time since begin.
func (s *clockSleeper) until(due time.Duration) { time.Sleep(due - time.Since(s.begin)) }

// prepareThread has nothing to set here.
func prepareThread(priority int, _ bool) (undo []func(), notes []string, err error) {
	if priority != 0 {
		return nil, nil, errors.New("a real-time priority is set on Linux only; run without")
	}
	return nil, nil, nil
}
