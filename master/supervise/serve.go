package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/process"
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
func (j *Job) Limit(l Limits) { j.engine.send(answer{Limits: &l}) }

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
}

// isEngine reports whether the process was started as an engine.
func isEngine() bool {
	return os.Getenv(variable) != "" && len(os.Args) == 2 && os.Args[1] == argument
}

// Main runs the engine if the process was started as one, and does not return then. Call it at the
// beginning of main.
func Main(c Config) {
	if !isEngine() {
		return
	}
	if err := serve(c); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lostPatience is the time for an engine without its supervisor to exit.
const lostPatience = 500 * time.Millisecond

func serve(c Config) error {
	var h handover
	if err := json.Unmarshal([]byte(os.Getenv(variable)), &h); err != nil || len(h.Files) < 2 {
		return fmt.Errorf("the variable %s is %q", variable, os.Getenv(variable))
	}
	files := h.Files
	process.SetThreadStack(h.Threads)
	_ = os.Unsetenv(variable)
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
	pieces := make(chan piece)
	go s.read(json.NewDecoder(bufio.NewReader(os.NewFile(files[0], "requests"))), pieces)
	for p := range pieces {
		s.do(p)
	}
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

// read reads requests until the supervisor closes the pipe or ends. It then exits.
func (s *served) read(in *json.Decoder, pieces chan<- piece) {
	var current piece
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			break
		}
		switch {
		case !r.Cancel:
			current = piece{request: r}
			current.ctx, current.cancel = context.WithCancelCause(context.Background())
			pieces <- current
		case r.ID == current.ID:
			current.cancel(master.ErrInterrupted)
		}
	}
	time.AfterFunc(lostPatience, func() { os.Exit(1) })
	s.mu.Lock()
	lost := s.lost
	s.mu.Unlock()
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
	simulate.Withdraw()
	work := s.config.Works[r.Work]
	if r.Work == runWork {
		work = s.run
	}
	a := answer{Done: true}
	if work == nil {
		a.Error = fmt.Sprintf("the engine knows no work %q", r.Work)
	} else {
		result, err := work(&Job{Context: r.ctx, Request: r.Request, engine: s})
		if err != nil {
			a.Error = err.Error()
		}
		if a.Answer, err = json.Marshal(result); err != nil && a.Error == "" {
			a.Error = err.Error()
		}
	}
	s.mu.Lock()
	s.lost = nil
	s.mu.Unlock()
	s.send(a)
}

// run is the work of Engine.Run.
func (s *served) run(j *Job) (any, error) {
	var req simulate.Request
	if err := json.Unmarshal(j.Request, &req); err != nil {
		return nil, err
	}
	limits := Limits{Call: req.Isolation.StepTimeout, Memory: req.Isolation.MemoryLimit}
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
	}.Run(j.Context, req)
}
