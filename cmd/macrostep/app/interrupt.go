package app

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master"
)

// answering is how an interrupt is answered. It comes with the context, under
// answeringKey.
type answering struct {
	atOnce atomic.Bool // the command ends at the first interrupt
}

type answeringKey struct{}

func (a *answering) String() string {
	if a.atOnce.Load() {
		return "interrupted"
	}
	return "interrupted; what is under way is finished, and a run keeps its results (again: end at once)"
}

// endPatience is how long a command that ends at once may take to end by itself: it may
// be about to put a file in its place.
const endPatience = 200 * time.Millisecond

// endsAtOnce makes an action end at the first interrupt, without waiting for it. Such an action
// prepares its output in memory, so that no part of a file is left.
func endsAtOnce(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if a, ok := c.Context.Value(answeringKey{}).(*answering); ok {
			a.atOnce.Store(true)
		}
		done := make(chan error, 1)
		go func() { done <- action(c) }()
		select {
		case err := <-done:
			return err
		case <-c.Context.Done():
		}
		select {
		case err := <-done:
			return err
		case <-time.After(endPatience):
			return &runError{fmt.Errorf("%w before the end; nothing is written", context.Cause(c.Context))}
		}
	}
}

// waitPatience is the time after which an interrupted run prints what it waits for.
const waitPatience = time.Second

// printWaiting prints the calls in the engine that an interrupted command waits for, if it does
// not end soon.
func (p *program) printWaiting() {
	time.Sleep(waitPatience)
	var calls []string
	for _, c := range p.engine.Calls() {
		calls = append(calls, c.String())
	}
	if calls != nil {
		fmt.Fprintf(p.stderr, "macrostep: waiting for %s; with --step-timeout SECONDS a run ends an FMU that takes longer\n", strings.Join(calls, " and "))
	}
}

// printIsolated is printWaiting for FMUs in processes of their own.
func printIsolated(con *console, sys *master.System, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-time.After(waitPatience):
	}
	var calls []string
	for i, sub := range sys.Subsystems {
		w, ok := master.As[interface{ Waiting() (string, time.Time) }](sub)
		if !ok {
			continue
		}
		if call, since := w.Waiting(); call != "" {
			calls = append(calls, fmt.Sprintf("%s in %s, for %s", sys.Infos[i], call, duration(time.Since(since).Seconds())))
		}
	}
	if calls != nil {
		con.print("macrostep: waiting for " + strings.Join(calls, "; ") + "; with --step-timeout SECONDS a run ends an FMU that takes longer")
	}
}
