package worker

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/process"
)

// link is the way to a worker: through pipes, or through shared memory with the
// pipes for what does not fit into it and for log messages.
type link struct {
	process  *workerProcess
	dir      *archive.Dir
	life     *os.File // the worker ends when it is closed
	requests *os.File
	answers  *os.File
	shared   *shared // nil = all goes through the pipes
	log      func([]byte)
	timeout  time.Duration
	memory   uint64
	lost     func(*fmi.Ended)

	out    []byte
	in     frames
	logs   uint64 // messages so far
	watch  watchdog
	limit  time.Duration // of the request under way
	loaded bool
	closed bool
}

// Post sends a request.
func (l *link) Post(request []byte) error {
	if l.closed {
		return errors.New("the worker is closed")
	}
	l.limit = l.timeout
	if !l.loaded {
		l.limit = max(l.limit, loadTimeout) // that of the first call, for the start of the process
	}
	if l.timeout > 0 {
		l.watch.begin(l.limit)
	}
	if err := l.send(request); err != nil {
		return l.ended(l.judge(err))
	}
	return nil
}

// Await waits for the answer.
func (l *link) Await() ([]byte, error) {
	answer, err := l.receive()
	if err = l.judge(err); err != nil {
		return nil, l.ended(err)
	}
	return answer, nil
}

// judge stops the clock of a request and returns an error if it took too long.
func (l *link) judge(err error) error {
	l.loaded = true
	if l.timeout > 0 && l.watch.end() {
		return &hungError{l.limit}
	}
	return err
}

// loadTimeout is what a process is given at least to start and to load a library,
// if there is a limit.
const loadTimeout = 10 * time.Second

// hungError is a worker that was ended because it took too long.
type hungError struct{ limit time.Duration }

func (e *hungError) Error() string {
	return fmt.Sprintf("it did not return within %v and was ended", e.limit)
}

func (l *link) send(request []byte) error {
	if l.shared != nil {
		return l.sendShared(request)
	}
	return l.write(request)
}

func (l *link) receive() ([]byte, error) {
	if l.shared != nil {
		return l.receiveShared()
	}
	return l.answer()
}

// write sends a request through the pipe.
func (l *link) write(request []byte) error {
	l.out = appendFrame(l.out[:0], frameRequest, request)
	_, err := l.requests.Write(l.out)
	if err == nil {
		return nil
	}
	// What the worker has said before it ended is to be had all the same.
	if _, end := l.answer(); end != nil {
		err = end
	}
	return err
}

// answer reads frames up to an answer.
func (l *link) answer() ([]byte, error) {
	for {
		kind, message, err := l.in.next()
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

// ended makes the error of a worker that does not answer.
func (l *link) ended(err error) error {
	e := &fmi.Ended{}
	var hung *hungError
	switch {
	case errors.As(err, &hung):
		<-l.process.done
		e.Reason = hung.Error()
	case !l.process.within(closeGrace): // it lives, but has closed its pipe or talks nonsense
		l.process.Kill()
		<-l.process.done
		e.Reason = fmt.Sprintf("the worker does not answer as it should (%v) and was ended", err)
	default:
		e.Reason, e.Crash = l.process.reason()
	}
	e.Begun, e.Output, e.Said = l.shared.begun(), l.process.output(), l.shared.said()
	if l.memory > 0 && hung == nil {
		e.Reason += fmt.Sprintf("; its memory is limited to %d MiB", l.memory/mebibyte)
		if most := process.Peak(l.process.State()); most > 0 {
			e.Reason += fmt.Sprintf(", and it used up to %d MiB", most/mebibyte)
		}
	}
	l.lost(e)
	return e
}

// Close ends the worker.
func (l *link) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	_ = l.requests.Close() // the worker ends when it reads that
	l.shared.end()
	if !l.process.within(closeGrace) {
		l.process.Kill()
		<-l.process.done
	}
	_ = l.life.Close()
	_ = l.answers.Close()
	l.shared.close()
	return l.dir.Remove()
}

// watchdog bounds the time of calls. It counts the time in slices, and one that
// takes much longer than it should as one: then the program did not run, because it
// was stopped (Ctrl-Z) or the machine slept, and could not take an answer either.
type watchdog struct {
	giveUp func() // called when a call takes too long

	mu      sync.Mutex
	timer   *time.Timer
	waiting bool // a call is under way
	late    bool // it was given up
	limit   time.Duration
	used    time.Duration
	looked  time.Time
}

// slice is how often it looks.
func (w *watchdog) slice() time.Duration {
	const slices, shortest, longest = 8, time.Millisecond, time.Second
	return min(max(w.limit/slices, shortest), longest)
}

// begin starts the clock of a call.
func (w *watchdog) begin(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.late, w.limit, w.used, w.looked = true, false, limit, 0, time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.slice(), w.look)
		return
	}
	w.timer.Reset(w.slice())
}

// look counts a slice.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting || w.late {
		return // it was meant for an earlier call
	}
	now := time.Now()
	slice, passed := w.slice(), now.Sub(w.looked)
	w.looked = now
	if w.used += passed; passed > 2*slice {
		// What is left for an answer that has come meanwhile.
		w.used = min(w.used-passed+slice, w.limit-slice)
	}
	if w.used < w.limit {
		w.timer.Reset(min(slice, w.limit-w.used))
		return
	}
	w.late = true
	w.giveUp()
}

// end stops the clock and tells whether the call was given up.
func (w *watchdog) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.waiting = false
	return w.late
}
