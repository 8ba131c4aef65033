package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/simulate"
)

// An engine is started with both the environment variable and the argument, because processes
// started by an FMU inherit the variable.
const (
	variable = "MACROSTEP_ENGINE"
	argument = "engine"
)

// runWork is the work of Engine.Run.
const runWork = "simulate.Run"

// Work is executed in an engine. Only the text of its error is sent to the supervisor.
type Work func(*Job) (answer any, err error)

// Job is a piece of work in progress.
type Job struct {
	// Context is cancelled with the cause master.ErrInterrupted when the work must end.
	Context context.Context
	Request json.RawMessage

	engine *served
}

// Send sends an event to the supervisor.
func (j *Job) Send(event any) {
	if text, err := json.Marshal(event); err == nil {
		j.engine.send(answer{Event: text})
	}
}

// Limit sets the limits that the supervisor enforces.
func (j *Job) Limit(l Limits) {
	j.engine.mu.Lock()
	j.engine.call = l.Call
	j.engine.mu.Unlock()
	j.engine.send(answer{Limits: &l})
}

// Settle sends the answer and the error of the work in advance, before FMUs are terminated and freed. If the
// process ends before the work does, they are valid; otherwise those that the work returns are.
func (j *Job) Settle(result any, err error) {
	a := answered(result, err)
	a.Settled = true
	j.engine.send(a)
}

// OnLost sets the function that is called if the supervisor ends before the work; nil = none. The
// process exits when f returns, at the latest after half a second.
func (j *Job) OnLost(f func()) {
	j.engine.mu.Lock()
	defer j.engine.mu.Unlock()
	j.engine.lost = f
}

// Config lists the work of an engine.
type Config struct {
	Works map[string]Work // by name, for Engine.Do
	// Builders create systems in Go for Engine.Run: see simulate.Request.Builder.
	Builders map[string]simulate.Builder
}

// served is the engine, in its process.
type served struct {
	config Config
	mu     sync.Mutex // for what follows
	out    *json.Encoder
	lost   func()
	busy   bool          // at work
	call   time.Duration // limit of calls into FMUs
}

// isEngine reports whether the process was started as an engine.
func isEngine() bool {
	return os.Getenv(variable) != "" && len(os.Args) == 2 && os.Args[1] == argument
}

// Main runs the engine if the process was started as one, and does not return then, nor in the process of an
// isolated FMU (worker.Main). Call it at the beginning of main.
func Main(c Config) {
	worker.Main()
	if !isEngine() {
		return
	}
	fmt.Fprintln(os.Stderr, "engine:", serve(c))
	os.Exit(1)
}

// exitPanic is the exit code after a panic, as Go has it.
const exitPanic = 2

// lostPatience is the time for an engine without its supervisor to exit.
const lostPatience = 500 * time.Millisecond

// serve does pieces of work and ends the process. It returns only after an error.
func serve(c Config) error {
	var h handover
	text := process.TakeVariable(variable)
	if err := json.Unmarshal([]byte(text), &h); err != nil || len(h.Files) < 2 {
		return fmt.Errorf("the variable %s is %q", variable, text)
	}
	files := h.Files
	process.SetThreadStack(h.Threads)
	process.CloseOnExec(files...)
	if err := process.DefaultSignals(); err != nil {
		return err
	}
	if len(files) > 2 {
		page, err := process.OpenPage(os.NewFile(files[2], "page"))
		if err != nil {
			return err
		}
		process.SetShared(page)
		go beat(page)
	}
	s := &served{config: c, out: json.NewEncoder(os.NewFile(files[1], "answers"))}
	settleSignals()
	go followStops()
	runtime.LockOSThread() // exit handlers run in the thread that has called the FMUs
	process.EndWithThread()
	pieces := make(chan piece)
	go s.read(json.NewDecoder(bufio.NewReader(os.NewFile(files[0], "requests"))), pieces)
	for p := range pieces {
		s.do(p)
	}
	fmi.Exit(0, fmi.ExitTime(s.call)+killPatience) // the supervisor is first to end it
	return nil
}

// piece is a piece of work.
type piece struct {
	request
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// beatRegion is a counter that an engine increases while it runs.
const (
	beatRegion = "beat"
	beatEvery  = 250 * time.Millisecond
)

func beat(page *process.Page) {
	count := (*atomic.Uint64)(unsafe.Pointer(&page.Region(beatRegion, int(unsafe.Sizeof(atomic.Uint64{})))[0]))
	for range time.Tick(beatEvery) {
		count.Add(1)
	}
}

// read reads requests until the supervisor closes the pipe or ends. If a piece of work is not done then, it ends the
// process.
func (s *served) read(in *json.Decoder, pieces chan<- piece) {
	var current piece
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			break
		}
		switch {
		case !r.Cancel:
			s.mu.Lock()
			s.busy = true
			s.mu.Unlock()
			current = piece{request: r}
			current.ctx, current.cancel = context.WithCancelCause(context.Background())
			pieces <- current
		case r.ID == current.ID:
			current.cancel(master.ErrInterrupted)
		}
	}
	s.mu.Lock()
	lost, busy := s.lost, s.busy
	s.mu.Unlock()
	if !busy {
		close(pieces)
		return
	}
	time.AfterFunc(lostPatience, func() { os.Exit(1) })
	if lost != nil {
		lost()
	}
	// The next run removes the temporary folders, which other goroutines may still use.
	os.Exit(0)
}

func (s *served) send(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(a) // without a supervisor, read ends the process
}

// do does a piece of work.
func (s *served) do(r piece) {
	defer r.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			s.send(answer{Panic: fmt.Sprintf("panic: %v", p), Stack: string(debug.Stack())})
			os.Exit(exitPanic)
		}
	}()
	simulate.Withdraw()
	work := s.config.Works[r.Work]
	if r.Work == runWork {
		work = s.run
	}
	var a answer
	if work == nil {
		a.Error = fmt.Sprintf("the engine knows no work %q", r.Work)
	} else {
		a = answered(work(&Job{Context: r.ctx, Request: r.Request, engine: s}))
	}
	a.Done = true
	s.mu.Lock()
	s.lost, s.busy = nil, false
	s.mu.Unlock()
	s.send(a)
}

// answered returns the answer for the result of a work.
func answered(result any, failed error) (a answer) {
	var err error
	if a.Answer, err = json.Marshal(result); failed == nil {
		failed = err
	}
	if failed != nil {
		a.Error = failed.Error()
	}
	return a
}

// run is the work of Engine.Run.
func (s *served) run(j *Job) (any, error) {
	var req simulate.Request
	if err := json.Unmarshal(j.Request, &req); err != nil {
		return nil, err
	}
	limits := Limits{Call: req.StepTimeout, Memory: req.MemoryLimit}
	j.Limit(limits)
	return simulate.Runner{
		Builders: s.config.Builders,
		Events:   func(e simulate.Event) { j.Send(e) },
		Running: func(abandon func(string) string, _ *simulate.System) {
			if abandon == nil {
				j.OnLost(nil)
				return
			}
			j.OnLost(func() { abandon("the supervisor of the run has ended") })
		},
		Settled: func(out *simulate.Outcome, err error) { j.Settle(out, err) },
	}.Run(j.Context, req)
}
