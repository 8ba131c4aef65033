//go:build unix

package app

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/macrostep/macrostep/master/supervise"
)

// forwardStops makes engines stop and continue with this process: a terminal sends its
// signals only to the process group of this one.
func forwardStops() {
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGCONT)
	if !signal.Ignored(syscall.SIGTSTP) { // as where there is no job control
		signal.Notify(stops, syscall.SIGTSTP)
	}
	go func() {
		for s := range stops {
			if s == syscall.SIGCONT {
				for k := range 25 { // an engine that has just seen this process stopped may stop later than the first of these
					time.AfterFunc(time.Duration(k)*200*time.Millisecond, func() { supervise.Signal(syscall.SIGCONT) })
				}
				continue
			}
			supervise.Signal(syscall.SIGSTOP)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	}()
}
