package fmi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
	protocol "github.com/macrostep/macrostep/fmi/internal/remote"
)

// Launcher starts processes for instances. Package fmi/worker has one.
type Launcher interface {
	// Launch starts a process with a Host that executes requests.
	Launch(Launch) (Link, error)
}

// Elsewhere is a Launcher of processes that find the FMU by its hash on another machine. A process that was lost with
// the connection to it (Ended.Lost) is replaced whatever InstanceOptions.Restarts says, if Keep was called, during
// the initialisation, and, if the FMU serialises states, during the first calls after it. Package fmi/host has one.
type Elsewhere interface {
	Launcher
	Host() string    // of the processes, for messages
	Apart() Launcher // of a process for each instance
}

// Launch describes the instance for a new process.
type Launch struct {
	Instance string // name of the instance
	FMU      string // path of the archive or folder
	Hash     string // of the FMU; "" = unknown
	Model    string // name of the model
	// Dir is the working folder of the process; "" = a temporary one. It has no meaning on another machine.
	Dir string
	// Log receives the messages of the Host, Output the lines that the FMU prints to standard output or
	// standard error. Neither is called concurrently with itself; both may be called in any goroutine.
	Log    func(message []byte)
	Output func(line string, stderr bool)
	// Tell receives warnings about the connection.
	Tell func(text string)
	// Context is that of InstanceOptions.
	Context context.Context
}

// Link is the connection to a process. It has one caller at a time.
type Link interface {
	// Post sends a request to the Host without waiting. After each Post without an
	// error, Await must be called once. Its answer has at most so many bytes and is valid until the next Post;
	// Launch.Log has received all messages that the Host logged before. After an
	// error the process is unusable; the error is an *Ended if the process has ended.
	Post(request []byte, most uint64) error
	Await() (answer []byte, err error)
	// Close ends the process and waits for its end.
	Close() error
}

// Ended is the error of a process that has ended.
type Ended struct {
	Reason string // for example "killed by signal SIGSEGV (segmentation fault)"
	// Begun is the number of calls of the request that were begun, 0 if unknown.
	Begun  int
	Output []string // the last lines that the FMU printed
	Said   []string // its last log messages, including dropped ones; nil = unknown
	// Crash is true unless a limit, or another process, is known to have ended it.
	Crash bool
	// Lost is true if it is on another machine, and the connection to it was lost.
	Lost bool
}

// Error returns the reason.
func (e *Ended) Error() string { return e.Reason }

// ProcessError is the error of a call during which the process of an isolated instance
// ended. The instance is unusable and must be freed.
type ProcessError struct {
	Instance string
	FMU      string   // name of the file
	Func     string   // for example "fmi2DoStep"; a list of candidates if unknown; see Ends
	Time     float64  // of the FMU, or start of the step, s; see Timed
	Timed    bool     // Time is valid: SetupExperiment had been called
	Host     string   // of the process, if it was on another machine
	Err      error    // how the process ended: usually an *Ended
	Lines    []string // last messages of the FMU
	Remedy   string   // "" = none
}

// Error names instance, FMU, call, time and cause, and quotes the last messages of the FMU.
func (e *ProcessError) Error() string {
	var b strings.Builder
	what := "process"
	if end := (*Ended)(nil); errors.As(e.Err, &end) && end.Lost {
		what = "connection to the process"
	}
	fmt.Fprintf(&b, "%s: the %s of %s ", e.Instance, what, e.FMU)
	if e.Host != "" {
		fmt.Fprintf(&b, "on host %s ", e.Host)
	}
	fmt.Fprintf(&b, "ended in %s", e.Func)
	if e.Timed {
		fmt.Fprintf(&b, " at t = %.12g s", e.Time)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if len(e.Lines) > 0 {
		fmt.Fprintf(&b, "; its last messages: %s", strings.Join(e.Lines, "; "))
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Unwrap returns how the process ended.
func (e *ProcessError) Unwrap() error { return e.Err }

// remote is an instance in another process.
type remote struct {
	*protocol.Client
	in   *Instance
	err  error         // of a process that has ended
	host string        // name of another machine; "" = this one
	dir  string        // working folder
	mute bool          // what the FMU prints is dropped
	kept time.Time     // of the last Keep
	took time.Duration // by it
	ctx  context.Context

	slot        *FMUState // of Keep
	state, next []byte    // from SerializeFMUState: of the last Keep, and a buffer for the next

	last diag.LastLines // messages
}

func newRemote(in *Instance, l Launcher, o *InstanceOptions) *remote {
	r := &remote{in: in, dir: o.Dir, ctx: o.Context}
	if r.dir == "" {
		r.dir, _ = os.Getwd() // if it has been removed: a temporary one
	}
	r.Client = &protocol.Client{Name: in.name, API: in.fmu.api(), All: in.log.All, Ended: ended, Lost: r.lost,
		Say:    in.Tell,
		Launch: func(again bool) (protocol.Link, error) { return r.launch(l, again) }}
	c := in.fmu.Description.CoSimulation
	r.Limit, r.Serialises = o.Restarts, !o.NoState && c != nil && c.CanGetAndSetFMUState && c.CanSerializeFMUState
	if e, ok := l.(Elsewhere); ok {
		r.host, r.Apart = e.Host(), true
	}
	return r
}

// LoadIn loads and checks the library in a separate process and ends the process. It
// returns the findings of Instantiate with the same Launcher in advance. ctx cancels compiling.
func (f *FMU) LoadIn(ctx context.Context, l Launcher) (*diag.List, error) {
	f.told.Store(true)
	r := newRemote(&Instance{fmu: f, name: filepath.Base(f.Path), log: &capi.Log{}}, l, &InstanceOptions{Context: ctx})
	r.mute = true // the process of an instance prints it again
	err, ended := r.open(ctx), r.end()
	if crash := (*ProcessError)(nil); !errors.As(ended, &crash) { // else that of an instance reports it again
		err = errors.Join(err, ended)
	}
	return &f.findings, err
}

// end ends the process and releases memory. The error is a *ProcessError if exit handlers or destructors
// ended the process, or did not return.
func (r *remote) end() error {
	err := r.Close()
	var end *Ended
	if !errors.As(err, &end) {
		return err
	}
	return &ProcessError{Instance: r.in.name, FMU: filepath.Base(r.in.fmu.Path), Func: Ends, Host: r.host, Err: end, Lines: quoted(end.Output)}
}

// quoted returns lines that an FMU has printed.
func quoted(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, capi.Escaped(capi.ValidUTF8(line)))
	}
	return out
}

// open starts the process and loads the library in it.
func (r *remote) open(ctx context.Context) error {
	f := r.in.fmu
	file := capi.File{Chdir: f.chdir, API: f.api()}
	if r.host == "" {
		if err := f.prepareElsewhere(ctx); err != nil {
			return err
		}
		file = f.place.File
	}
	native.StartTicker()
	l, err := r.Open(filepath.Base(f.Path), file)
	if err != nil {
		return err
	}
	r.in.sym = protocol.Symbols(l.Shown, f.api())
	err = f.judgeElsewhere(l.Shown, l.Changes, l.Failed)
	if err != nil && r.host != "" {
		err = fmt.Errorf("host %s: %w", r.host, err)
	}
	return err
}

// Place returns the request that tells a process where the library of the FMU is, and its resources
// (see internal/remote). It compiles the library if needed, until ctx is done.
func (f *FMU) Place(ctx context.Context) ([]byte, error) {
	if err := f.prepareElsewhere(ctx); err != nil {
		return nil, err
	}
	return protocol.AppendPlace(nil, f.place.File, f.uri), nil
}

// launch starts a process. If again is true, it replaces a process that has ended.
func (r *remote) launch(l Launcher, again bool) (protocol.Link, error) {
	f := r.in.fmu
	if again {
		r.last.Take()
		r.kept = time.Time{} // so that the calls need not be repeated again
		for _, state := range r.in.states {
			state.lost = state.epoch < r.Epoch
		}
	}
	if again && r.host == "" {
		// The library and the resources are still needed.
		if _, err := os.Stat(f.place.Path); err != nil {
			return nil, fmt.Errorf("the unpacked FMU has been deleted: %w; another program probably cleans the temporary folder: "+
				"set TMPDIR to a folder that is not cleaned", err)
		}
	}
	return l.Launch(Launch{Instance: r.in.name, FMU: f.Path, Hash: f.Hash, Model: f.Description.ModelName, Dir: r.dir,
		Log: r.relay, Output: r.print, Tell: r.in.Tell, Context: r.ctx})
}

// ended returns what an error of a Link says if it is an *Ended.
func ended(err error) (calls int, ended, lost bool) {
	var e *Ended
	if errors.As(err, &e) {
		return e.Begun, true, e.Lost
	}
	return 0, false, false
}

// prepareElsewhere finds the library for another process and compiles it if needed.
func (f *FMU) prepareElsewhere(ctx context.Context) error {
	loading.Lock()
	defer loading.Unlock()
	if err := f.locate(); err != nil {
		return err
	}
	if _, _, err := native.Allocator(); err != nil {
		return f.addTo(&f.findings)(ruleLoad, "", "%v", err)
	}
	return f.compileOnce(ctx)
}

// judgeElsewhere checks a library that was loaded in another process. It keeps the
// findings of the first time.
func (f *FMU) judgeElsewhere(s *capi.Shown, changes []string, failed error) error {
	loading.Lock()
	defer loading.Unlock()
	l := &f.findings
	if f.elsewhere != nil || f.image.Load() != nil {
		l = &diag.List{Strict: l.Strict}
	}
	f.elsewhere = s
	if err := f.judge(changes, failed, f.addTo(l)); err != nil {
		return err
	}
	return f.check(s, f.addTo(l))
}

// lost returns the error of a process that has ended in a call.
func (r *remote) lost(call string, cause error) error {
	if r.host != "" && errors.Is(cause, protocol.ErrWire) {
		cause = errors.New("the host has sent an answer that cannot be read")
	}
	e := &ProcessError{Instance: r.in.name, FMU: filepath.Base(r.in.fmu.Path), Func: call,
		Time: r.Time, Timed: r.Timed, Host: r.host, Err: cause}
	e.Lines = r.last.Lines()
	var end *Ended
	if errors.As(cause, &end) {
		if len(end.Said) > 0 {
			var said diag.LastLines
			for _, text := range end.Said {
				said.Add(capi.Escaped(capi.ExpandReferences(capi.ValidUTF8(text), r.in.fmu.variableName)))
			}
			e.Lines = said.Lines()
		}
		e.Lines = append(e.Lines, quoted(end.Output)...)
	}
	serialises := r.in.fmu.Description.CoSimulation.CanSerializeFMUState
	switch {
	case end != nil && end.Lost && !r.Serialises:
		e.Remedy = "the FMU cannot serialise its state, so no run goes on after the loss of its host"
	case end == nil || !end.Crash || r.Limit > 0, call == r.in.is(capi.Terminate).String(),
		call == r.in.is(capi.FreeInstance).String():
	case serialises:
		e.Remedy = "--on-crash restart goes on after a crash; --debug calls=FILE shows the calls up to it, for the exporter"
	default:
		e.Remedy = "the FMU cannot serialise its state, so no run goes on after a crash; --debug calls=FILE shows the calls up to it, for the exporter"
	}
	r.err = e
	return e
}

// Waiting returns the active function of an instance in another process (or the
// candidates) and its start; "" if none is active. Any goroutine may call it.
func (in *Instance) Waiting() (call string, since time.Time) {
	if in.remote == nil {
		return "", time.Time{}
	}
	return in.remote.Waiting()
}

// relay logs a message of the host.
func (r *remote) relay(message []byte) {
	m, ok := protocol.ReadMessage(r.in.name, message)
	if !ok || r.Replaying() {
		return
	}
	if m.Category != capi.OwnCategory {
		m.Text = capi.ExpandReferences(m.Text, r.in.fmu.variableName)
		r.last.Add(capi.Escaped(m.Text))
	}
	r.in.log.Relay(m)
}

// print logs a line that the FMU has printed. It appears on the same stream as from an FMU in this process; from
// another machine only the log has it.
func (r *remote) print(line string, stderr bool) {
	if r.mute || r.Replaying() {
		return
	}
	if to := os.Stdout; r.host == "" {
		if stderr {
			to = os.Stderr
		}
		fmt.Fprintln(to, line)
	}
	r.in.log.Relay(native.Message{Instance: r.in.name, Category: OutputCategory, Text: capi.ValidUTF8(line)})
}

// OutputCategory is the category of messages with a line that an FMU in a separate
// process has printed.
const OutputCategory = "output"

// instantiateIn makes the instance in a separate process.
func (in *Instance) instantiateIn(l Launcher, o InstanceOptions) error {
	in.remote, in.fatal = newRemote(in, l, &o), new(atomic.Bool)
	err := in.remote.open(o.Context)
	if err == nil {
		in.library, in.run = cmp.Or(in.remote.host, in.fmu.place.Path), in.remote.Run
		err = in.instantiate(o)
	}
	if err != nil {
		return errors.Join(err, in.dispose())
	}
	return nil
}

// Keep saves the present state for a restart: if the process ends in a later call, a
// new process continues from this state and repeats the calls made since (see
// InstanceOptions.Restarts). Call Keep at communication points. There is no restart
// before the first Keep, after Reset, or in Terminate and Free. A restart loses the
// states that were saved before the last Keep.
//
// The FMU must be able to serialise its state, or the error is a *UsageError. On another machine Keep does nothing if
// the last state is less than keepInterval old, or than keepShare times as long as it took, since more calls to
// repeat take less time than states that travel.
func (in *Instance) Keep() error {
	r := in.remote
	if r == nil || !r.Replaceable() {
		return in.argument(capi.SerializeFMUState, "the instance has no restarts (InstanceOptions.Restarts)")
	}
	began := time.Now()
	if r.host != "" && r.Kept() && began.Sub(r.kept) < max(keepInterval, keepShare*r.took) {
		return nil
	}
	var err error
	if r.slot, err = in.GetFMUState(r.slot); err != nil {
		return err
	}
	if r.next, err = in.SerializeFMUState(r.slot, r.next[:0]); err != nil {
		return err
	}
	r.state, r.next = r.next, r.state
	body, _ := stateParts(r.state)
	r.Client.Keep(body)
	r.kept = time.Now()
	r.took = r.kept.Sub(began)
	return nil
}

const (
	keepInterval = 250 * time.Millisecond
	keepShare    = 10
)

// Restart describes a process of an instance that ended and was replaced.
type Restart struct {
	Func  string  // for example "fmi2DoStep"; a list of candidates if unknown
	Time  float64 // of the FMU, or start of the step, s
	Cause string  // how the process ended
}

// Restarts lists the restarts so far.
func (in *Instance) Restarts() (made []Restart) {
	if in.remote != nil {
		for _, m := range in.remote.Made {
			made = append(made, Restart(m))
		}
	}
	return made
}

// epoch returns the number of calls of Keep.
func (r *remote) epoch() int {
	if r == nil {
		return 0
	}
	return r.Epoch
}
