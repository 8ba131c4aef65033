// Package app is the program macrostep. Other programs use it to add algorithms and dialects to the same
// command line.
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
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/supervise"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// Options are the additions of a program to macrostep.
type Options struct {
	// Presets are coupling algorithms in addition to those of package algorithms. --algorithm or a
	// system chooses them, and macrostep algorithms lists them, and macrostep analyze tries them.
	Presets []algorithms.Preset
	// Dialects read additions of further tools to SSP, after those of package dialect.
	Dialects []ssp.Dialect
}

// extensions are the algorithms and dialects of a program: those of macrostep and its own. nil means those
// of macrostep alone.
type extensions struct {
	presets  algorithms.Catalog
	dialects []ssp.Dialect
}

// Main executes a command line (args without the name of the program) and ends the process with its exit
// code. A program must call it first: macrostep starts the program again for its engine and for isolated
// FMUs, and Main does not return there either.
func Main(args []string, o Options) {
	delayCollection()
	worker.Main() // does not return in the process of an isolated FMU
	presets, err := algorithms.Catalog(nil).Add(o.Presets...)
	if err != nil {
		log.Fatal("macrostep: ", err)
	}
	with := extensions{presets, simulate.Dialects(append(dialect.All(), o.Dialects...))}
	works := studyWorks(with)
	works[commandWork] = func(j *supervise.Job) (any, error) { return engineCommand(j, with) }
	supervise.Main(supervise.Config{Works: works})
	p := newProgram(args, os.Stdin, os.Stdout, os.Stderr)
	p.extensions = with
	p.engine = supervise.New(supervise.Options{Stdin: os.Stdin})
	p.newEngine = func() *supervise.Engine { return supervise.New(supervise.Options{Stdout: os.Stderr}) }
	var how answering
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), answeringKey{}, &how))
	// A closed pipe does not end a run. The signal is received, not ignored, because child processes
	// would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	supervise.AdoptOrphans()
	forwardStops()
	go p.handle(signals, &how, cancel)
	code := p.run(ctx)
	cleanUp()
	os.Exit(code)
}

// handle interrupts the command at the first signal and ends the process at the second, or at SIGQUIT.
func (p *program) handle(signals chan os.Signal, how *answering, cancel context.CancelCauseFunc) {
	s := <-signals
	first := time.Now()
	if s == syscall.SIGQUIT {
		signals <- s // ends the process below
	} else {
		fmt.Fprintln(p.stderr, "\nmacrostep:", how)
		cancel(master.ErrInterrupted)
		go p.printWaiting()
	}
	for s = range signals {
		if s != syscall.SIGQUIT && time.Since(first) < again { // the same key press, forwarded by a shell
			continue
		}
		reason := "interrupted twice; the step under way did not return"
		if s == syscall.SIGQUIT {
			reason = "ended at once by SIGQUIT"
		}
		if !p.engine.Kill(reason) {
			cleanUp()
			os.Exit(exitFailed)
		}
	}
}

// cleanUp removes temporary folders, also those of interrupted work.
func cleanUp() { _ = archive.End() } // the next run removes what is left

// delayCollection delays the first garbage collection until 16 MB are in use: a short run ends before that.
func delayCollection() {
	const factor = 4 // of the least heap that is collected
	if os.Getenv("GOGC") == "" {
		usual := debug.SetGCPercent(factor * 100)
		runtime.AddCleanup(new([64]byte), func(percent int) {
			if other := debug.SetGCPercent(percent); other != factor*100 { // set meanwhile
				debug.SetGCPercent(other)
			}
		}, usual)
	}
}

// again is the least time between two key presses.
const again = 50 * time.Millisecond

// commandWork names the work of an engine that executes a command line.
const commandWork = "command"

func engineCommand(j *supervise.Job, with extensions) (any, error) {
	var args []string
	if err := json.Unmarshal(j.Request, &args); err != nil {
		return nil, err
	}
	p := newProgram(args, os.Stdin, os.Stdout, os.Stderr)
	p.extensions, p.job = with, j
	defer cleanUp()
	return p.run(j.Context), nil
}
