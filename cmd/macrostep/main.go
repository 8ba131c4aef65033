// Command macrostep couples FMUs and runs them; macrostep help tells how.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/supervise"
)

func main() {
	worker.Main() // does not return in the process of an isolated FMU
	supervise.Main(supervise.Config{Works: map[string]supervise.Work{commandWork: engineCommand}})
	p := &program{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, backend: documents{}}
	p.engine = supervise.New(supervise.Options{Stdin: os.Stdin})
	supervise.AdoptOrphans()
	var how answering
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), answeringKey{}, &how))
	// Whoever stops reading what is printed does not end a run. Notified, not
	// ignored: other processes would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup wants it
		signal.Notify(signals, syscall.SIGHUP)
	}
	forwardStops(p.engine)
	go func() {
		<-signals
		first := time.Now()
		fmt.Fprintln(os.Stderr, "\nmacrostep:", &how)
		cancel(master.ErrInterrupted)
		go p.tellWaiting()
		for range signals {
			if time.Since(first) < again { // the same key press, through a shell too
				continue
			}
			// A step that does not return cannot be waited for.
			if !p.engine.Kill("interrupted twice; the step under way did not return") {
				p.backend.Cleanup()
				os.Exit(exitFailed)
			}
		}
	}()
	os.Exit(p.run(ctx))
}

// again is the time from which on a second signal is one of its own.
const again = 50 * time.Millisecond

// commandWork is a command with its arguments, as an engine does it.
const commandWork = "command"

func engineCommand(j *supervise.Job) (any, error) {
	var args []string
	if err := json.Unmarshal(j.Request, &args); err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGPIPE)
	p := &program{args: args, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, backend: documents{}, job: j}
	return p.run(j.Context), nil
}
