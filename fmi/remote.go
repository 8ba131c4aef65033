package fmi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
	protocol "github.com/macrostep/macrostep/fmi/internal/remote"
)

// Launcher starts processes for instances. Package fmi/worker has one.
type Launcher interface {
	// Launch starts a process with a Host that answers requests.
	Launch(Launch) (Link, error)
}

// Launch says what a process is for.
type Launch struct {
	Instance string // name of the instance
	FMU      string // path of the archive or folder
	Hash     string // of the FMU; "" = not known
	Model    string // name of the model
	// Log takes the messages that the Host sends, and Output the lines that the
	// FMU prints. They are called one at a time in each case, in any goroutine.
	Log    func(message []byte)
	Output func(line string)
}

// Link is the way to one process. It has one caller at a time.
type Link interface {
	// Post hands a request to the Host and does not wait for the answer, which
	// Await gives: once after each Post that gave no error. The answer is valid
	// until the next Post. All that the Host has logged before it answered was
	// given to Launch.Log. An error means that the process is of no use any more;
	// it is an *Ended if the process has come to its end.
	Post(request []byte) error
	Await() (answer []byte, err error)
	// Close ends the process and waits until it is gone, also when it has ended
	// before.
	Close() error
}

// Ended tells how a process came to its end.
type Ended struct {
	Reason string // for example "killed by signal SIGSEGV (segmentation fault)"
	// Begun counts the calls of the request that were begun, 0 if that is not known.
	Begun  int
	Output []string // the last lines that the FMU printed
	Said   []string // its last log messages, those that were too many to be logged included; nil = not known
	// Crash tells that nothing else is known to have ended it: no limit, and
	// nobody from outside.
	Crash bool
}

// Error returns the reason.
func (e *Ended) Error() string { return e.Reason }

// ProcessError is a call that the process of an isolated instance did not
// return from. The instance is lost; Free it.
type ProcessError struct {
	Instance string
	FMU      string  // file
	Func     string  // for example "fmi2DoStep"; several with commas if it is not known which
	Time     float64 // s, where the FMU was or where the step began; see Timed
	Timed    bool    // SetupExperiment had been called
	Err      error   // how it ended: usually an *Ended
	Lines    []string
}

// Error names instance, FMU, call, time and cause, and quotes the last messages.
func (e *ProcessError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the process of %s ended in %s", e.Instance, e.FMU, e.Func)
	if e.Timed {
		fmt.Fprintf(&b, " at t = %.12g s", e.Time)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if len(e.Lines) > 0 {
		fmt.Fprintf(&b, "; its last messages: %s", strings.Join(e.Lines, "; "))
	}
	return b.String()
}

// Unwrap returns how the process ended.
func (e *ProcessError) Unwrap() error { return e.Err }

// remote is an instance in another process.
type remote struct {
	*protocol.Client
	in  *Instance
	err error // the process is lost

	slot        *FMUState // of Keep
	state, next []byte    // as SerializeFMUState gives it; being written

	mu    sync.Mutex
	lines []string // last messages
}

func newRemote(in *Instance, l Launcher, restarts int) *remote {
	r := &remote{in: in}
	r.Client = &protocol.Client{Name: in.name, Begun: begun, Lost: r.lost, Say: in.log.Say,
		Launch: func(again bool) (protocol.Link, error) { return r.launch(l, again) }}
	r.Limit = restarts
	return r
}

// LoadIn loads the library in a process of its own, which ends at once, and
// checks what it shows there. It tells early what Instantiate with the same
// Launcher would tell.
func (f *FMU) LoadIn(l Launcher) (*diag.List, error) {
	f.told.Store(true)
	r := newRemote(&Instance{fmu: f, name: filepath.Base(f.Path), log: &fmi2.Log{}}, l, 0)
	err := r.open()
	return &f.findings, errors.Join(err, r.Close())
}

// open starts the process and loads the library in it.
func (r *remote) open() error {
	f := r.in.fmu
	if err := f.prepareElsewhere(); err != nil {
		return err
	}
	l, err := r.Open(filepath.Base(f.Path), f.place.File)
	if err != nil {
		return err
	}
	r.in.sym = protocol.Symbols(l.Shown)
	return f.judgeElsewhere(l.Shown, l.Changes, l.Failed)
}

// launch starts a process; again: in the place of one that has ended.
func (r *remote) launch(l Launcher, again bool) (protocol.Link, error) {
	f := r.in.fmu
	if again {
		r.mu.Lock()
		r.lines = r.lines[:0]
		r.mu.Unlock()
		for _, state := range r.in.states {
			state.lost = state.epoch < r.Epoch
		}
		// The library is loaded from there, and the FMU reads its resources when it likes.
		if _, err := os.Stat(f.place.Path); err != nil {
			return nil, fmt.Errorf("the unpacked FMU has been deleted: %w; another program probably cleans the temporary folder: set TMPDIR to a folder that is not cleaned", err)
		}
	}
	return l.Launch(Launch{Instance: r.in.name, FMU: f.Path, Hash: f.Hash, Model: f.Description.ModelName, Log: r.relay, Output: r.print})
}

// begun interprets an error of a Link (protocol.Client).
func begun(err error) (calls int, ended bool) {
	var e *Ended
	if errors.As(err, &e) {
		return e.Begun, true
	}
	return 0, false
}

// prepareElsewhere finds the library, for another process.
func (f *FMU) prepareElsewhere() error {
	loading.Lock()
	defer loading.Unlock()
	if err := f.locate(); err != nil {
		return err
	}
	if _, _, err := native.Allocator(); err != nil {
		return f.adder()(ruleLoad, "", "", "%v", err)
	}
	native.StartTicker()
	return f.compileOnce(f.adder())
}

// judgeElsewhere judges what loading in another process has shown; the findings
// are kept the first time.
func (f *FMU) judgeElsewhere(s *fmi2.Shown, changes []string, failed error) error {
	loading.Lock()
	defer loading.Unlock()
	l := &f.findings
	if f.elsewhere != nil {
		l = &diag.List{Strict: l.Strict}
	}
	f.elsewhere = s
	if err := f.judge(changes, failed, f.addTo(l)); err != nil {
		return err
	}
	return f.check(s, f.addTo(l))
}

// lost makes the error of a process that does not answer.
func (r *remote) lost(call string, cause error) error {
	e := &ProcessError{Instance: r.in.name, FMU: filepath.Base(r.in.fmu.Path), Func: call, Time: r.Time, Timed: r.Timed, Err: cause}
	r.mu.Lock()
	e.Lines = append(e.Lines, r.lines...)
	r.mu.Unlock()
	var end *Ended
	if errors.As(cause, &end) {
		if len(end.Said) > 0 {
			e.Lines = nil
		}
		for _, text := range end.Said {
			e.Lines = fmi2.LastLines(e.Lines, fmi2.ExpandReferences(fmi2.ValidUTF8(text), r.in.fmu.variableName))
		}
		for _, line := range end.Output {
			e.Lines = append(e.Lines, fmi2.Escaped(line))
		}
	}
	r.err = e
	return e
}

// Waiting returns the function that an instance in another process is executing (or the candidates), and since
// when; "" if no call is active. It may be called from any goroutine.
func (in *Instance) Waiting() (call string, since time.Time) {
	if in.remote == nil {
		return "", time.Time{}
	}
	return in.remote.Waiting()
}

// relay takes a log message of the host.
func (r *remote) relay(message []byte) {
	m, ok := protocol.ReadMessage(r.in.name, message)
	if !ok || r.Replaying() {
		return
	}
	if m.Category != fmi2.OwnCategory {
		m.Text = fmi2.ExpandReferences(m.Text, r.in.fmu.variableName)
		r.remember(m.Text)
	}
	r.in.log.Relay(m)
}

// print takes a line that the FMU has printed.
func (r *remote) print(line string) {
	if r.Replaying() {
		return
	}
	r.in.log.Relay(fmi2.Message{Instance: r.in.name, Category: OutputCategory, Text: fmi2.ValidUTF8(line)})
}

// OutputCategory is the category of messages that hold a line which an FMU in a
// process of its own has printed.
const OutputCategory = "output"

// remember keeps the last messages.
func (r *remote) remember(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = fmi2.LastLines(r.lines, text)
}

// instantiateIn makes the instance in a process of its own.
func (in *Instance) instantiateIn(l Launcher, o InstanceOptions) error {
	in.remote, in.fatal = newRemote(in, l, o.Restarts), new(atomic.Bool)
	err := in.remote.open()
	if err == nil {
		in.library, in.run = in.fmu.place.Path, in.remote.Run
		err = in.instantiate(o)
	}
	if err != nil {
		return errors.Join(err, in.dispose())
	}
	return nil
}

// Keep makes the present state the one from which the instance goes on if its
// process ends in a call (InstanceOptions.Restarts). It is for communication
// points: what is asked of the instance after it is written down and done again in
// the new process. Before the first Keep a process that ends is lost, and after
// Reset; those that end in Terminate or Free are not replaced. States saved before
// the last Keep are lost with a process.
//
// The FMU has to save and serialise its state; else the error is a
// *CapabilityError.
func (in *Instance) Keep() error {
	r := in.remote
	if r == nil || r.Limit == 0 {
		return in.argument(fmi2.SerializeFMUState, "no restarts of the instance were asked for")
	}
	var err error
	if r.slot, err = in.GetFMUState(r.slot); err != nil {
		return err
	}
	if r.next, err = in.SerializeFMUState(r.slot, r.next[:0]); err != nil {
		return err
	}
	r.state, r.next = r.next, r.state
	r.Client.Keep(r.state[stateHeader:])
	return nil
}

// Restart tells of a process of an instance that came to its end, and in whose
// place the instance goes on in another.
type Restart struct {
	Func  string  // for example "fmi2DoStep"; several if it is not known which
	Time  float64 // s, where the FMU was or where the step began
	Cause string  // how the process ended
}

// Restarts lists those so far.
func (in *Instance) Restarts() (made []Restart) {
	if in.remote != nil {
		for _, m := range in.remote.Made {
			made = append(made, Restart(m))
		}
	}
	return made
}

// epoch counts the Keeps.
func (r *remote) epoch() int {
	if r == nil {
		return 0
	}
	return r.Epoch
}
