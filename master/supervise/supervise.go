// Package supervise runs work that may crash in a separate process, the engine, and saves its
// results.
//
// An FMU may end or damage its process, so the engine is supervised from outside: it keeps the
// current FMI calls, the last messages and the rows that are not in the files yet in shared memory.
// When it dies, hangs in a call or takes too much memory, the supervisor completes its results and
// reports the FMU. An Engine is started once, makes any number of runs, and is restarted after it
// has died.
//
// The engine is the same program. Its main function calls Main first.
package supervise

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master/simulate"
)

// Options are the options of an Engine. The zero value is ready for use.
type Options struct {
	Program        string   // its main function calls Main; "" = the running program
	Stdout, Stderr *os.File // nil = those of this process
	Stdin          *os.File // nil = none
}

// Engine is a process that does one piece of work at a time. Its methods may be called
// concurrently.
type Engine struct {
	opt Options

	working sync.Mutex // held during a piece of work
	mu      sync.Mutex // for all below
	link    *link      // nil = not running
	ending  *link      // that end waits for; nil = none
	reason  string     // why the supervisor killed it; "" = it did not
	killed  bool       // by Kill
	own     bool       // reason is a panic of its own
}

// link is a running engine.
type link struct {
	child    *process.Child
	page     *process.Page
	requests *os.File
	sending  sync.Mutex
	works    int // number of pieces of work so far
	busy     bool
	limits   Limits
	answers  *os.File
	decode   *json.Decoder
}

// handover is the content of the environment variable of an engine.
type handover struct {
	Files   []uintptr // requests, answers, and the page if there is one
	Threads uint64    // default stack size of threads, for child processes of the engine
}

// request is a message to an engine, one line of JSON.
type request struct {
	ID      int             `json:"id"`             // of the piece of work
	Work    string          `json:"work,omitempty"` // to begin
	Request json.RawMessage `json:"request,omitempty"`
	Cancel  bool            `json:"cancel,omitempty"` // cancels the work
}

// answer is a message from an engine.
type answer struct {
	Event  json.RawMessage `json:"event,omitempty"`
	Limits *Limits         `json:"limits,omitempty"` // new limits
	// Done: the work is done; Settled: its answer in advance (Job.Settle).
	Done    bool `json:"done,omitempty"`
	Settled bool `json:"settled,omitempty"`
	// Panic is one of the engine itself, which ends then, and Stack where it was.
	Panic  string          `json:"panic,omitempty"`
	Stack  string          `json:"stack,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Limits are the limits of an engine; 0 = no limit.
type Limits struct {
	Call   time.Duration `json:"call"`   // of a call into an FMU
	Memory uint64        `json:"memory"` // bytes in use, beyond those when the limit was set
}

// New returns an engine, which starts with its first work.
func New(o Options) *Engine { return &Engine{opt: o} }

// start starts the process if there is none.
func (e *Engine) start() (_ *link, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link != nil && !e.link.child.Gone() {
		return e.link, nil
	}
	if e.link != nil { // it has ended between two pieces of work
		_ = e.link.close()
		e.link = nil
	}
	program, image := e.opt.Program, e.opt.Program
	if program == "" {
		if program, image, err = process.Image(); err != nil {
			return nil, err
		}
	}
	var handed []*os.File // of the engine, closed here
	defer func() {
		for _, f := range handed {
			_ = f.Close()
		}
	}()
	l := &link{}
	started.Store(e, true) // before the process, so that signals wait for it
	defer func() {
		if err != nil {
			started.Delete(e)
			err = errors.Join(fmt.Errorf("no engine can be started: %w", err), l.close())
		}
	}()
	theirs, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	handed, l.requests = append(handed, theirs), requests
	answers, back, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	handed, l.answers = append(handed, back), answers
	l.page, _ = process.NewPage() // without it (a limit on file sizes), less is saved after a crash
	files := handed
	if l.page != nil {
		files = append(slices.Clip(files), l.page.File())
	}
	cmd := exec.Command(program, argument)
	cmd.Path = image
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.opt.Stdin, os.Stdout, os.Stderr
	if e.opt.Stdout != nil {
		cmd.Stdout = e.opt.Stdout
	}
	if e.opt.Stderr != nil {
		cmd.Stderr = e.opt.Stderr
	}
	text, err := json.Marshal(handover{Files: process.Hand(cmd, files...), Threads: process.ThreadStack()})
	if err != nil {
		return nil, err
	}
	cmd.Env = process.Environment(variable, string(text))
	if l.child, err = process.Start(cmd, process.Options{Group: true, Wake: true, Stack: fmi.LargeStack}); err != nil {
		return nil, err
	}
	go func() {
		<-l.child.Done()
		l.stopReading(answerGrace)
	}()
	l.decode = json.NewDecoder(bufio.NewReader(l.answers))
	e.link, e.reason, e.killed, e.own = l, "", false, false
	return l, nil
}

// answerGrace is the time to read the last answers of a dead engine, killPatience the time for a
// killed engine to die.
const (
	answerGrace  = 200 * time.Millisecond
	killPatience = 5 * time.Second
)

// stopReading ends the reading of answers after some time, because processes started by an FMU
// may keep the pipe open.
func (l *link) stopReading(after time.Duration) { _ = l.answers.SetReadDeadline(time.Now().Add(after)) }

// send sends a request. An engine that has ended is seen when its answer is read.
func (l *link) send(r request) {
	l.sending.Lock()
	defer l.sending.Unlock()
	_ = json.NewEncoder(l.requests).Encode(r)
}

// close closes the files of an engine that has ended or was not started.
func (l *link) close() error {
	var err error
	for _, f := range []*os.File{l.requests, l.answers} {
		if closing := f.Close(); f != nil && !errors.Is(closing, os.ErrClosed) {
			err = errors.Join(err, closing)
		}
	}
	if l.page != nil {
		err = errors.Join(err, l.page.Close())
	}
	return err
}

// Close ends the engine, if it runs, and removes processes and files left by its FMUs. The error is a *Death if
// exit handlers or destructors of FMUs ended the engine, or did not return; runs are complete nevertheless.
func (e *Engine) Close() error {
	l, death := e.end()
	started.Delete(e)
	if l == nil {
		return nil
	}
	err := l.close()
	if death != nil {
		err = errors.Join(death, err)
	}
	return err
}

// end lets the engine exit and removes processes and files left by its FMUs. The *Death is nil if it exits by itself.
func (e *Engine) end() (*link, *Death) {
	e.mu.Lock()
	l := e.link
	e.link, e.ending = nil, l
	var busy bool
	var limit time.Duration
	if l != nil {
		busy, limit = l.busy, fmi.ExitTime(l.limits.Call)
	}
	e.mu.Unlock()
	if l == nil {
		return nil, nil
	}
	gone := l.child.Gone()
	_ = l.requests.Close() // makes it exit; a request that is being sent fails
	if !l.child.Within(limit) {
		e.mu.Lock()
		e.kill(fmt.Sprintf("it did not return within %v and was ended", limit))
		e.mu.Unlock()
		l.child.Within(killPatience)
	}
	e.mu.Lock()
	e.ending = nil
	d := e.death(l, !busy)
	e.mu.Unlock()
	if busy || gone || !l.child.Gone() || l.child.State().Success() {
		d = nil
	} else {
		d.Outcome, d.Lost = simulate.Salvage(l.page.Find, "", d.Reason())
	}
	tidy()
	return l, d
}

// tidy removes processes and temporary folders left by an engine that has ended.
func tidy() {
	endOrphans()
	_, _ = archive.Sweep("", archive.Prefix) // the next run tries again
}

// Kill kills the engine; the current work returns a *Death with this reason. It reports whether
// there was an engine.
func (e *Engine) Kill(reason string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.killed = e.kill(reason) || e.killed
	return e.link != nil || e.ending != nil
}

// kill kills the engine for a reason, unless it was killed before. The caller holds mu.
func (e *Engine) kill(reason string) bool {
	l := cmp.Or(e.link, e.ending)
	if l == nil || e.reason != "" {
		return false
	}
	e.reason = reason
	l.child.Kill()
	l.stopReading(killPatience)
	return true
}

// Signal sends a signal to the processes of all engines that run.
func Signal(s os.Signal) {
	started.Range(func(e, _ any) bool {
		e.(*Engine).signal(s)
		return true
	})
}

// started has the engines that are being started, or were and are not closed.
var started sync.Map

func (e *Engine) signal(s os.Signal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := cmp.Or(e.link, e.ending); l != nil {
		_ = l.child.Signal(s) // fails if it has ended
	}
}

// Calls returns the current calls into FMUs in the engine.
func (e *Engine) Calls() []fmi.Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link == nil || e.link.page == nil {
		return nil
	}
	return fmi.Calls(e.link.page)
}

// Do executes the work that Main has registered by this name in the engine. events receives the
// events of the work; nil discards them. When ctx is done, the context of the work is cancelled.
// The error is a *Death if the engine died without an answer, or after an answer in advance (Job.Settle).
// With an answer, it contains a *Completed if the supervisor had to write the files of a run.
func (e *Engine) Do(ctx context.Context, work string, req any, events func(json.RawMessage)) (json.RawMessage, error) {
	e.working.Lock()
	defer e.working.Unlock()
	text, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	l, err := e.start()
	if err != nil {
		return nil, err
	}
	w := &watch{engine: e, link: l}
	stop := w.begin()
	defer stop()
	l.works++
	e.mu.Lock()
	l.busy = true
	e.mu.Unlock()
	id := l.works
	var settled *answer
	l.send(request{ID: id, Work: work, Request: text})
	defer context.AfterFunc(ctx, func() { l.send(request{ID: id, Cancel: true}) })()
	for {
		var a answer
		if err := l.decode.Decode(&a); err != nil {
			d := e.died(l, settled != nil)
			if settled == nil {
				return nil, d
			}
			if d.Failed = settled.failed(); d.Failed == nil && d.Outcome.Manifest != nil && !d.Outcome.Manifest.Outcome.OK(false) {
				d.Failed = errors.New(d.Outcome.Manifest.Reason) // a file was lost meanwhile
			}
			return settled.Answer, d
		}
		switch {
		case a.Event != nil:
			if events != nil {
				events(a.Event)
			}
		case a.Limits != nil:
			w.limit(*a.Limits)
			e.mu.Lock()
			l.limits = *a.Limits
			e.mu.Unlock()
		case a.Settled:
			settled = &a
		case a.Panic != "":
			e.mu.Lock()
			e.panicked(l, &a)
			e.mu.Unlock()
		case a.Done:
			e.mu.Lock()
			l.busy = false
			e.mu.Unlock()
			err := a.failed()
			if l.page != nil && simulate.Left(l.page.Find) {
				_, _ = e.end() // what ends it then matters less
				c := &Completed{}
				c.Outcome, c.Err = simulate.Salvage(l.page.Find, "", "")
				err = errors.Join(err, c, l.close())
			}
			return a.Answer, err
		}
	}
}

// failed returns the error of the work, nil for none.
func (a *answer) failed() error {
	if a.Error == "" {
		return nil
	}
	return errors.New(a.Error)
}

// Run makes a run in the engine (see package simulate) with the builders of Main. If the engine
// dies, the error is a *Death; the results are completed and the outcome is valid. If it dies after the end
// of the run, when FMUs are terminated and freed, the outcome has a warning and the error is that of the run.
func (e *Engine) Run(ctx context.Context, req simulate.Request, events func(simulate.Event)) (simulate.Outcome, error) {
	var out simulate.Outcome
	text, err := e.Do(ctx, runWork, req, func(raw json.RawMessage) {
		var event simulate.Event
		if events != nil && json.Unmarshal(raw, &event) == nil {
			events(event)
		}
	})
	var death *Death
	if errors.As(err, &death) && (!death.After || death.Outcome.Manifest != nil) {
		if death.After || death.RunEnded {
			err = death.Failed
		}
		return death.Outcome, err
	}
	if death != nil { // without shared memory
		err = death.Failed
	}
	if text != nil {
		if bad := json.Unmarshal(text, &out); bad != nil && err == nil {
			err = bad
		}
	}
	return out, err
}
