package worker

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi/internal/remote"
	"github.com/macrostep/macrostep/fmi/process"
)

// isWorker reports whether the process was started as a worker.
func isWorker() bool {
	return os.Getenv(variable) != "" && len(os.Args) > 1 && os.Args[1] == argument
}

func init() {
	if isWorker() {
		// Only the stack of the main thread grows. Package initialisers run in it.
		runtime.LockOSThread()
	}
}

// Main runs the worker and does not return if the process was started for an instance. Call it at
// the beginning of main.
func Main() {
	if !isWorker() {
		able.Store(true)
		return
	}
	var c config
	err := json.Unmarshal([]byte(process.TakeVariable(variable)), &c)
	if err == nil {
		err = serve(c)
	}
	fmt.Fprintln(os.Stderr, "worker:", err)
	os.Exit(exitServe)
}

// able: the program calls Main, so that it can be started as a worker.
var able atomic.Bool

// exitServe is the exit code of a worker after an error of its own.
const exitServe = 125

// serve executes requests and ends the process. It returns only after an error.
func serve(c config) error {
	requests, answers := os.NewFile(c.Requests, "requests"), os.NewFile(c.Answers, "answers")
	process.Blocking(requests, answers)
	life, err := settle(&c)
	if err != nil {
		return err
	}
	go func() { // also ends the process while the FMU does not return
		_, _ = io.Copy(io.Discard, life)
		os.Exit(0)
	}()
	common, err := openShared(c.Shared)
	if err != nil {
		return err
	}
	w := &writer{to: answers, shared: common}
	host, err := remote.NewHost(w.log, common.keep, common.progress(), c.Threads)
	if err != nil {
		return err
	}
	if err := process.LimitMemory(c.Memory); err != nil {
		return err
	}
	in := remote.Frames{R: requests}
	for {
		request, err := common.request(&in)
		if err == io.EOF {
			host.Exit(0, c.ExitTime)
		}
		if err != nil {
			return err
		}
		answer, err := host.Answer(request)
		if err != nil {
			return err
		}
		if common.answer(answer) {
			continue
		}
		if err := w.send(frameAnswer, answer); err != nil {
			os.Exit(0) // the master has ended
		}
	}
}

// settle prepares the process for an FMU. It takes away standard input, whose end means the end
// of the master.
func settle(c *config) (life *os.File, err error) {
	if life, err = process.TakeStdin(); err != nil {
		return nil, err
	}
	for _, f := range []uintptr{c.Requests, c.Answers, c.Shared} {
		if f != 0 {
			process.CloseOnExec(f)
		}
	}
	process.EndWithThread()
	return life, process.DefaultSignals()
}

// Kinds of frames.
const (
	frameRequest uint64 = iota + 1
	frameAnswer
	frameLog
)

// readRequest reads a request from the pipe.
func readRequest(in *remote.Frames) ([]byte, error) {
	kind, request, err := in.Next(math.MaxInt64)
	if err == nil && kind != frameRequest {
		err = fmt.Errorf("a message of kind %d instead of a request", kind)
	}
	return request, err
}

// writer sends frames from any thread.
type writer struct {
	mu     sync.Mutex
	to     io.Writer
	buf    []byte
	shared *shared
}

func (w *writer) send(kind uint64, message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == frameLog {
		w.shared.announce()
	}
	return remote.WriteFrame(w.to, &w.buf, kind, message)
}

func (w *writer) log(message []byte) { _ = w.send(frameLog, message) } // the master may have ended
