package worker

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/internal/remote"
	"github.com/macrostep/macrostep/fmi/process"
)

// link is the connection to a worker by pipes, or by shared memory with pipes for large messages
// and log messages.
type link struct {
	process  *workerProcess
	dir      *archive.Dir // temporary working folder; nil = none
	life     *os.File     // closing it ends the worker
	requests *os.File
	answers  *os.File
	shared   *shared // nil = pipes only
	log      func([]byte)
	timeout  time.Duration
	memory   uint64
	lost     func(*fmi.Ended)

	out    []byte
	in     remote.Frames
	most   uint64 // length of the answer
	logs   uint64 // log messages so far
	watch  watchdog
	limit  time.Duration // of the present request
	ending bool          // the present request ends an instance
	closed bool
	gone   bool   // the worker has ended, and ended has returned how
	active uint64 // of a worker that has ended
}

// Active returns the number of the instance that a worker of several was calling when it ended, if Ended.Begun is
// not 0.
func (l *link) Active() uint64 { return l.active }

// Kill ends the process. Any goroutine may call it.
func (l *link) Kill() { l.process.Kill() }

// Post sends a request.
func (l *link) Post(request []byte, most uint64) error {
	l.most = most
	if l.closed {
		return errors.New("the worker is closed")
	}
	if l.timeout > 0 {
		n, loads := remote.Weight(request)
		if l.limit = l.timeout; loads {
			l.limit = max(l.limit, loadTimeout)
		}
		l.limit *= min(time.Duration(n), math.MaxInt64/l.limit)
		l.watch.begin(l.limit)
	}
	l.ending = remote.Ends(request)
	send := l.write
	if l.shared != nil {
		send = l.sendShared
	}
	if err := send(request); err != nil {
		return l.ended(l.judge(err))
	}
	return nil
}

// Await waits for the answer.
func (l *link) Await() ([]byte, error) {
	receive := l.answer
	if l.shared != nil {
		receive = l.receiveShared
	}
	answer, err := receive()
	if err = l.judge(err); err != nil {
		return nil, l.ended(err)
	}
	return answer, nil
}

// judge stops the watchdog and returns an error if the request took too long.
func (l *link) judge(err error) error {
	if l.timeout > 0 && l.watch.end() {
		return &hungError{l.limit}
	}
	return err
}

// loadTimeout is the least time limit for starting a process and loading a library.
const loadTimeout = 10 * time.Second

// hungError is the error for a worker that was ended because it took too long.
type hungError struct{ limit time.Duration }

func (e *hungError) Error() string {
	return fmt.Sprintf("it did not return within %v and was ended", e.limit)
}

// write sends a request through the pipe.
func (l *link) write(request []byte) error {
	err := remote.WriteFrame(l.requests, &l.out, frameRequest, request)
	if err == nil {
		return nil
	}
	// Read the log messages of a worker that has ended.
	if _, end := l.answer(); end != nil {
		err = end
	}
	return err
}

// answer reads frames up to an answer.
func (l *link) answer() ([]byte, error) {
	for {
		kind, message, err := l.in.Next(max(l.most, remote.MaxTexts))
		switch {
		case err != nil:
			return nil, err
		case kind == frameAnswer:
			return message, nil
		case kind == frameLog:
			l.log(message)
			l.logs++
		}
	}
}

// ended returns the error for a worker without an answer, and ends the worker.
func (l *link) ended(err error) error {
	l.gone = true
	e := &fmi.Ended{}
	var hung *hungError
	switch {
	case errors.As(err, &hung):
		<-l.process.done
		e.Reason = hung.Error()
	case !l.process.within(closeGrace): // it has closed its pipe or sent an invalid message
		l.process.Kill()
		<-l.process.done
		e.Reason = fmt.Sprintf("the worker sent an invalid answer (%v) and was ended", err)
	default:
		e.Reason, e.Crash = l.process.reason()
	}
	l.active, e.Begun = l.shared.begun()
	e.Output, e.Said = l.process.output.Lines(), l.shared.said()
	if l.memory > 0 && hung == nil {
		e.Reason += fmt.Sprintf("; its memory is limited to %d MiB", l.memory/mebibyte)
		if most := process.Peak(l.process.State()); most > 0 {
			e.Reason += fmt.Sprintf(", and it used up to %d MiB", most/mebibyte)
		}
	}
	if !l.ending { // a run whose FMU crashes there is complete
		l.lost(e)
	}
	return e
}

// Close ends the worker. The error is an *fmi.Ended if its exit handlers or destructors ended it, or did not
// return.
func (l *link) Close() (err error) {
	if l.closed {
		return nil
	}
	l.closed = true
	_ = l.requests.Close() // this ends the worker
	l.shared.end()
	if limit := fmi.ExitTime(l.timeout); !l.process.within(limit) {
		l.process.Kill()
		<-l.process.done
		err = &fmi.Ended{Reason: (&hungError{limit}).Error()}
	} else if !l.gone && !l.process.State().Success() {
		reason, _ := l.process.reason()
		err = &fmi.Ended{Reason: reason, Output: l.process.output.Lines()}
	}
	_ = l.life.Close()
	_ = l.answers.Close()
	l.shared.close()
	if l.dir != nil {
		err = errors.Join(err, l.dir.Remove())
	}
	return err
}

// watchdog bounds the time of calls.
type watchdog struct {
	giveUp func()      // called when a call takes too long
	there  func() bool // whether the answer is there but has not been collected; nil = unknown

	mu       sync.Mutex
	timer    *time.Timer
	waiting  bool // a call is active
	late     bool // it took too long
	patience remote.Patience
}

// begin starts the time of a call.
func (w *watchdog) begin(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.late, w.patience.Limit = true, false, limit
	w.patience.Begin(0)
	if w.timer == nil {
		w.timer = time.AfterFunc(w.patience.Left(), w.look)
		return
	}
	w.timer.Reset(w.patience.Left())
}

// look ends a call that takes too long.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting || w.late {
		return // the timer of an earlier call
	}
	if !w.patience.Late() {
		w.timer.Reset(w.patience.Left())
		return
	}
	if w.there != nil && w.there() {
		return
	}
	w.late = true
	w.giveUp()
}

// end stops the time and reports whether the call took too long.
func (w *watchdog) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.waiting = false
	return w.late
}
