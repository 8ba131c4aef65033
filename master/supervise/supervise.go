// Package supervise runs work that may end its process in a process of its own, the
// engine, and keeps what it leaves behind.
//
// Nothing inside a process survives everything that an FMU may do to it. So the engine is
// watched from outside: it reports into shared memory which calls are under way, its last
// messages, and the rows that are not in the files yet. When it dies, does not return
// from a call, or takes too much memory, the supervisor completes its results and says
// which FMU it was. An Engine is started once, makes any number of runs, and is replaced
// when it has died.
//
// The engine is the same program. Its main function calls Main first.
package supervise

import (
	"bufio"
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
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master/simulate"
)

// Options say how engines are started. The zero value is ready for use.
type Options struct {
	Program        string   // whose main function calls Main; "" = the running one
	Stdout, Stderr *os.File // nil = those of this process
	Stdin          *os.File // nil = none
}

// Engine is a process that does work. It does one piece at a time; its methods may be
// called by several goroutines.
type Engine struct {
	opt Options

	working sync.Mutex // held while a piece of work is done
	mu      sync.Mutex // for what follows
	link    *link      // nil = none is running
	reason  string     // why it was ended from here; "" = it was not
	killed  bool       // by Kill
}

// link is a running engine.
type link struct {
	child    *process.Child
	page     *process.Page
	requests *os.File
	encode   *json.Encoder
	answers  *os.File
	decode   *json.Decoder
}

// request is what an engine is sent, a line of JSON each.
type request struct {
	Work    string          `json:"work,omitempty"` // a piece of work begins
	Request json.RawMessage `json:"request,omitempty"`
	Cancel  bool            `json:"cancel,omitempty"` // the piece under way is to end
}

// answer is what an engine sends back.
type answer struct {
	Event  json.RawMessage `json:"event,omitempty"`
	Limits *Limits         `json:"limits,omitempty"` // in force from now on
	Done   bool            `json:"done,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Limits bound what an engine may do. Zero values are no limits.
type Limits struct {
	Call   time.Duration `json:"call"`   // an FMU may take for a call
	Memory uint64        `json:"memory"` // bytes that the engine may have in use beyond those when the limit came into force
}

// New returns an engine, which is started with its first work.
func New(o Options) *Engine { return &Engine{opt: o} }

// start starts the process if there is none.
func (e *Engine) start() (_ *link, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link != nil {
		return e.link, nil
	}
	program, image := e.opt.Program, e.opt.Program
	if program == "" {
		if program, image, err = process.Image(); err != nil {
			return nil, err
		}
	}
	var handed []*os.File // closed here once the engine has them
	defer func() {
		for _, f := range handed {
			_ = f.Close()
		}
	}()
	l := &link{}
	defer func() {
		if err != nil {
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
	// Without shared memory, as under a limit on the size of files, less is kept.
	l.page, _ = process.NewPage()
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
	text, err := json.Marshal(process.Hand(cmd, files...))
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	if l.child, err = process.Start(cmd, process.Options{Group: true, Stack: fmi.LargeStack}); err != nil {
		return nil, err
	}
	l.encode, l.decode = json.NewEncoder(l.requests), json.NewDecoder(bufio.NewReader(l.answers))
	e.link, e.reason, e.killed = l, "", false
	return l, nil
}

// close lets go of an engine that has ended, or that was not started.
func (l *link) close() error {
	var err error
	for _, f := range []*os.File{l.requests, l.answers} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if l.page != nil {
		err = errors.Join(err, l.page.Close())
	}
	return err
}

// Close ends the engine, if it runs, and what its FMUs have left running.
func (e *Engine) Close() error {
	e.mu.Lock()
	l := e.link
	e.link = nil
	e.mu.Unlock()
	if l == nil {
		return nil
	}
	l.end()
	return l.close()
}

// end ends the process, and what its FMUs have left running.
func (l *link) end() {
	_ = l.requests.Close() // it ends by that
	l.requests = nil
	if !l.child.Within(endPatience) {
		l.child.Kill()
		<-l.child.Done()
	}
	endOrphans()
}

// endPatience is how long an engine may take to end.
const endPatience = 2 * time.Second

// Kill ends the engine at once; the work under way ends with a *Death that has this
// reason. It reports whether there was an engine.
func (e *Engine) Kill(reason string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.killed = e.end(reason) || e.killed
	return e.link != nil
}

// end ends the engine for a reason, if none is known yet. The lock is held.
func (e *Engine) end(reason string) bool {
	if e.link == nil || e.reason != "" {
		return false
	}
	e.reason = reason
	e.link.child.Kill()
	return true
}

// Signal sends a signal to the processes of the engine, if it runs.
func (e *Engine) Signal(s os.Signal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link != nil {
		_ = e.link.child.Signal(s) // it may have ended
	}
}

// Calls returns the calls into FMUs that are under way in the engine.
func (e *Engine) Calls() []fmi.Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link == nil || e.link.page == nil {
		return nil
	}
	return fmi.Calls(e.link.page)
}

// Do has the engine do a piece of work that Main was given by this name. events takes
// what the work sends meanwhile; nil discards it. If ctx is done, the work is told so.
// The error is a *Death if the engine has ended without an answer.
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
	if err := l.encode.Encode(request{Work: work, Request: text}); err == nil {
		defer context.AfterFunc(ctx, func() { _ = l.encode.Encode(request{Cancel: true}) })() // it may have ended
	}
	for {
		var a answer
		if err := l.decode.Decode(&a); err != nil {
			return nil, e.died(l)
		}
		switch {
		case a.Event != nil:
			if events != nil {
				events(a.Event)
			}
		case a.Limits != nil:
			w.limit(*a.Limits)
		case a.Done:
			err := e.finish(l)
			if a.Error != "" {
				err = errors.Join(errors.New(a.Error), err)
			}
			return a.Answer, err
		}
	}
}

// finish does what a run could not do itself. Its engine is of no more use then.
func (e *Engine) finish(l *link) error {
	if l.page == nil || !simulate.Left(l.page.Find) {
		return nil
	}
	e.mu.Lock()
	e.link = nil
	e.mu.Unlock()
	l.end()
	return errors.Join(simulate.Finish(l.page.Find), l.close())
}

// Run makes a run in the engine (see package simulate), where its builders are those that
// Main was given. If the engine dies, the results are completed and the outcome holds;
// the error is a *Death then.
func (e *Engine) Run(ctx context.Context, req simulate.Request, events func(simulate.Event)) (simulate.Outcome, error) {
	var out simulate.Outcome
	text, err := e.Do(ctx, runWork, req, func(raw json.RawMessage) {
		var event simulate.Event
		if events != nil && json.Unmarshal(raw, &event) == nil {
			events(event)
		}
	})
	var death *Death
	if errors.As(err, &death) {
		return death.Outcome, err
	}
	if text != nil {
		if bad := json.Unmarshal(text, &out); bad != nil && err == nil {
			err = bad
		}
	}
	return out, err
}
