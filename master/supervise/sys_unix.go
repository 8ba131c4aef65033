//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"syscall"
)

// settleSignals lets the engine print to a terminal whose foreground it is not, and outlive
// the reader of its output. The latter is noted and not ignored, because
// other processes would inherit that.
func settleSignals() {
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
