// Package app is the program macrostep. Other programs build on it to offer algorithms and
// dialects of their own on the same command line.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/supervise"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// Options are what a program adds to macrostep.
type Options struct {
	// Presets are coupling algorithms beside those of package algorithms. They are chosen by
	// --algorithm or by a system, and listed by macrostep algorithms. macrostep analyze does
	// not judge them.
	Presets []algorithms.Preset
	// Dialects are what further tools add to SSP, after those of package dialect.
	Dialects []ssp.Dialect
}

// extensions are what a program offers: that of macrostep and its own. Nil stands for that of
// macrostep alone.
type extensions struct {
	presets  algorithms.Catalog
	dialects []ssp.Dialect
}

// Main carries out a command line, args without the name of the program, and ends the process
// with its exit code. It is the first thing that a program does: macrostep starts the program
// again for its engine and for isolated FMUs, and Main does not return there either.
func Main(args []string, o Options) {
	delayCollection()
	worker.Main() // does not return in the process of an isolated FMU
	presets, err := algorithms.Catalog(nil).Add(o.Presets...)
	if err != nil {
		log.Fatal("macrostep: ", err)
	}
	with := extensions{presets, append(dialect.All(), o.Dialects...)}
	works := studyWorks(with)
	works[commandWork] = func(j *supervise.Job) (any, error) { return engineCommand(j, with) }
	supervise.Main(supervise.Config{Works: works})
	p := newProgram(args, os.Stdin, os.Stdout, os.Stderr, documents{with.dialects})
	p.extensions = with
	p.engine = supervise.New(supervise.Options{Stdin: os.Stdin})
	var how answering
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), answeringKey{}, &how))
	// A closed pipe does not end a run. The signal is received, not ignored, because child
	// processes would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup wants it
		signal.Notify(signals, syscall.SIGHUP)
	}
	supervise.AdoptOrphans()
	forwardStops(p.engine)
	go func() {
		s := <-signals
		first := time.Now()
		if s == syscall.SIGQUIT {
			signals <- s // it ends at once
		} else {
			fmt.Fprintln(p.stderr, "\nmacrostep:", &how)
			cancel(master.ErrInterrupted)
			go p.printWaiting()
		}
		for s = range signals {
			if s != syscall.SIGQUIT && time.Since(first) < again { // the same key press, through a shell too
				continue
			}
			// A step that does not return cannot be waited for.
			if !p.engine.Kill(endedAtOnce[s == syscall.SIGQUIT]) {
				cleanUp()
				os.Exit(exitFailed)
			}
		}
	}()
	code := p.run(ctx)
	cleanUp()
	os.Exit(code)
}

// cleanUp removes temporary folders, also those of what was interrupted.
func cleanUp() { _ = archive.End() } // what stays is swept by the next run

// delayCollection has the garbage collector wait until 16 MB are in use: a short run ends
// before that. From then on it works as usual.
func delayCollection() {
	const factor = 4 // of the least heap that is collected
	if os.Getenv("GOGC") == "" {
		usual := debug.SetGCPercent(factor * 100)
		runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
	}
}

// endedAtOnce are the reasons for ending at once: by SIGQUIT, and else.
var endedAtOnce = map[bool]string{true: "ended at once by SIGQUIT", false: "interrupted twice; the step under way did not return"}

// again is the time from which on a second signal is one of its own.
const again = 50 * time.Millisecond

// commandWork is a command with its arguments, as an engine does it.
const commandWork = "command"

func engineCommand(j *supervise.Job, with extensions) (any, error) {
	var args []string
	if err := json.Unmarshal(j.Request, &args); err != nil {
		return nil, err
	}
	p := newProgram(args, os.Stdin, os.Stdout, os.Stderr, documents{with.dialects})
	p.extensions, p.job = with, j
	defer cleanUp()
	return p.run(j.Context), nil
}
