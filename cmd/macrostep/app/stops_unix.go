//go:build unix

package app

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/macrostep/macrostep/master/supervise"
)

// forwardStops makes the engine stop and continue with this process: a terminal sends its
// signals only to the process group of this one.
func forwardStops(e *supervise.Engine) {
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGCONT)
	if !signal.Ignored(syscall.SIGTSTP) { // as where there is no job control
		signal.Notify(stops, syscall.SIGTSTP)
	}
	go func() {
		for s := range stops {
			if s == syscall.SIGCONT {
				e.Signal(syscall.SIGCONT)
				continue
			}
			e.Signal(syscall.SIGSTOP)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	}()
}
