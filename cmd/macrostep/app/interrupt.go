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

// answering is the reaction of a command to an interrupt. The context holds it under answeringKey.
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

// endPatience is the time that an interrupted command gets to return: it may be about to rename a finished
// file.
const endPatience = 200 * time.Millisecond

// endsAtOnce returns an action that ends at the first interrupt without waiting for the given one, which
// must prepare its output in memory so that no incomplete file is left.
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

// waitPatience is the time after which an interrupted run prints the calls that it waits for.
const waitPatience = time.Second

// printWaiting prints after waitPatience the calls in the engine that an interrupted command waits for.
func (p *program) printWaiting() {
	time.Sleep(waitPatience)
	var calls []string
	for _, c := range p.engine.Calls() {
		calls = append(calls, c.String())
	}
	if calls != nil {
		fmt.Fprintln(p.stderr, waitingFor(strings.Join(calls, " and ")))
	}
}

// printIsolated is printWaiting for isolated FMUs.
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
		con.print(waitingFor(strings.Join(calls, "; ")))
	}
}

func waitingFor(calls string) string {
	return "macrostep: waiting for " + calls + "; with --step-timeout SECONDS a run ends an FMU that takes longer"
}
