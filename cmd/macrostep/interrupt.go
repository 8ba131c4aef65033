package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// lastWill is what is done at a second interrupt, while a step does not return. It
// comes with the context, under lastWillKey.
type lastWill struct {
	mu     sync.Mutex
	f      func()
	atOnce bool // the command ends at the first interrupt
}

type lastWillKey struct{}

// set makes f the will, nil = none. A nil lastWill takes none.
func (w *lastWill) set(f func()) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.f = f
}

func (w *lastWill) carryOut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f != nil {
		w.f()
	}
}

// notice is what an interrupt is answered with.
func (w *lastWill) notice() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.atOnce {
		return "interrupted"
	}
	return "interrupted; what is under way is finished, and a run keeps its results (again: end at once)"
}

// endPatience is how long a command that ends at once may take to end by itself: it may
// be about to put a file in its place.
const endPatience = 200 * time.Millisecond

// endsAtOnce makes an action end at the first interrupt: nothing of it is worth waiting
// for. It makes what it writes in memory first, so that no part of a file is left.
func endsAtOnce(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if w, ok := c.Context.Value(lastWillKey{}).(*lastWill); ok {
			w.mu.Lock()
			w.atOnce = true
			w.mu.Unlock()
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

// interrupted writes the rows so far, and a manifest that tells how far the run has
// come; it gives the reason with that. The program ends next.
func (b *beginning) interrupted(reason string, table *record.Table, attempts *record.Attempts) string {
	if !b.begun.Load() {
		return reason
	}
	b.mu.Lock() // nothing is written after this
	m := *b.manifest
	m.Reason, m.Steps.Accepted = reason, int(b.steps.Load())
	// There is nobody any more to tell of errors.
	if table != nil {
		_ = table.End(master.Result{})
		if t, any := table.Newest(); any {
			m.EndTime = t
			m.Reason = fmt.Sprintf("%s, in the step from t = %.12g s or later", reason, t)
		}
	}
	if attempts != nil {
		_ = attempts.Flush()
	}
	if b.file.Path != "" {
		_ = b.file.Write(&m)
	}
	return m.Reason
}

// waitPatience is how long an interrupted run may take until it is told what it
// waits for.
const waitPatience = time.Second

// tellLoading tells which library an interrupted program waits for, if it does not
// load soon.
func tellLoading(w io.Writer, loaded <-chan struct{}) {
	select {
	case <-loaded:
	case <-time.After(waitPatience):
		if path := fmi.Loading(); path != "" {
			fmt.Fprintf(w, "macrostep: %s is being loaded and has not returned; with --isolate always --step-timeout SECONDS a run ends one that takes longer\n", filepath.Base(path))
		}
	}
}

// tellWaiting tells which FMU an interrupted run waits for, if it does not end soon.
func tellWaiting(con *console, sys *master.System, ended <-chan struct{}) {
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
	if calls == nil {
		con.print("macrostep: the step under way has not returned; an FMU in the process of the run cannot be ended: with --isolate always --step-timeout SECONDS a run ends one that takes longer, and names it")
		return
	}
	con.print("macrostep: waiting for " + strings.Join(calls, "; ") + "; with --step-timeout SECONDS a run ends an FMU that takes longer")
}
