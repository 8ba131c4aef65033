// Command macrostep couples FMUs and runs them; macrostep help tells how.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
)

func main() {
	worker.Main() // does not return in the process of an isolated FMU
	e := newEngine()
	var will lastWill
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), lastWillKey{}, &will))
	// Whoever stops reading what is printed does not end a run. Notified, not
	// ignored: workers would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup wants it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		fmt.Fprintln(&screen{to: os.Stderr}, "\nmacrostep:", will.notice())
		cancel(master.ErrInterrupted)
		<-signals
		// A step that does not return cannot be waited for.
		will.carryOut()
		e.Cleanup()
		os.Exit(exitFailed)
	}()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, e)
	e.Cleanup() // of what was interrupted
	os.Exit(code)
}
