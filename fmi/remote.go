package fmi

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
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

// call has a request answered.
func call(l Link, request []byte) ([]byte, error) {
	if err := l.Post(request); err != nil {
		return nil, err
	}
	return l.Await()
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

// Error gives the reason.
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

// Unwrap gives how the process ended.
func (e *ProcessError) Unwrap() error { return e.Err }

// remote makes the calls of an instance in another process. It stands where the
// crossing into C is: everything above it is the same for both.
type remote struct {
	in     *Instance
	link   Link
	err    error // the process is lost
	out    wireWriter
	posted error         // by the link, of the request in out
	under  *native.Batch // handed over and not waited for yet
	kept   uint64        // records that the host was told to keep
	states uint64        // saved states that were given a number
	texts  native.Buffer // C strings that came back
	safe   *safe         // nil = a process that ends is not replaced

	time  float64 // where the FMU is, s
	timed bool

	mute  atomic.Bool // what the FMU says was said before
	mu    sync.Mutex
	lines []string // last messages

	waitMu sync.Mutex
	wait   []native.Record // what is waited for
	since  time.Time
}

// LoadIn loads the library in a process of its own, which ends at once, and
// checks what it shows there. It tells early what Instantiate with the same
// Launcher would tell.
func (f *FMU) LoadIn(l Launcher) (*diag.List, error) {
	f.told.Store(true)
	in := &Instance{fmu: f, name: filepath.Base(f.Path), log: &fmi2.Log{}}
	r := &remote{in: in}
	err := r.open(l)
	return &f.findings, errors.Join(err, r.close())
}

// open starts the process and loads the library in it.
func (r *remote) open(l Launcher) error {
	f := r.in.fmu
	if err := f.prepareElsewhere(); err != nil {
		return err
	}
	if err := r.launch(l); err != nil {
		return fmt.Errorf("%s: no process for the FMU: %w", r.in.name, err)
	}
	p := &f.place
	r.out = r.out[:0]
	r.out.word(askLoad)
	r.out.word(wireVersion)
	for _, s := range []string{filepath.Base(f.Path), p.Path, p.Prefix, p.ID} {
		r.out.text(s)
	}
	r.out.word(uint64(flag(p.Chdir)))
	if r.safe != nil {
		r.safe.load = slices.Clone(r.out)
	}
	answer, err := call(r.link, r.out)
	if err != nil {
		return r.lost("loading", err)
	}
	s, changes, failed := r.loaded(answer)
	if s == nil && !errors.Is(failed, errWire) {
		return failed
	}
	if s == nil {
		return r.lost("loading", errWire)
	}
	r.in.sym = new([fmi2.NumFunctions]uintptr)
	for k := range r.in.sym {
		if s.Has(fmi2.Function(k)) {
			r.in.sym[k] = uintptr(k) + 1 // no address here
		}
	}
	return f.judgeElsewhere(s, changes, failed)
}

// loaded reads the answer to askLoad: what the library shows, what loading has
// changed, and why it failed.
func (r *remote) loaded(answer []byte) (s *fmi2.Shown, changes []string, failed error) {
	a := wireReader{rest: answer}
	if v := a.word(); v != wireVersion {
		return nil, nil, fmt.Errorf("%s: the process of the FMU speaks version %d of the protocol and not %d: the program was replaced meanwhile; start it again", r.in.name, v, wireVersion)
	}
	if text := a.text(); text != "" {
		failed = errors.New(text)
	}
	for n := a.word(); n > 0 && !a.bad; n-- {
		changes = append(changes, a.text())
	}
	s = &fmi2.Shown{Exports: a.word(), Types: a.text(), Version: a.text(), Foreign: a.text()}
	if a.bad {
		return nil, nil, errWire
	}
	return s, changes, failed
}

// launch starts a process.
func (r *remote) launch(l Launcher) (err error) {
	f := r.in.fmu
	r.link, err = l.Launch(Launch{Instance: r.in.name, FMU: f.Path, Hash: f.Hash, Model: f.Description.ModelName, Log: r.relay, Output: r.print})
	return err
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
	e := &ProcessError{Instance: r.in.name, FMU: filepath.Base(r.in.fmu.Path), Func: call, Time: r.time, Timed: r.timed, Err: cause}
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

// run is what run is for instances in this process. If the process is lost, the
// record under way gives Fatal, and settle has the reason.
func (r *remote) run(b *native.Batch) {
	r.post(b)
	r.await(b)
}

// post hands a batch over. One that was left without being waited for is ended first.
func (r *remote) post(b *native.Batch) {
	if r.under != nil {
		r.await(r.under)
	}
	r.under = b
	recs := b.Records()
	b.Begin()
	b.Start, b.End, b.Worst = 0, 0, 1 // whose statuses are looked at
	r.out = r.out[:0]
	r.out.word(askRun)
	r.out.word(uint64(len(recs)))
	for k := range recs {
		r.encode(&recs[k])
	}
	r.waitFor(recs)
	r.posted = r.link.Post(r.out)
}

func (r *remote) waitFor(recs []native.Record) {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	if r.wait = recs; recs != nil {
		r.since = time.Now()
	}
}

// Waiting tells what an instance in a process of its own is doing: the function, or
// those that come into question, and since when. It is "" if the instance is not
// called. It may be called by another goroutine than the caller of the instance.
func (in *Instance) Waiting() (call string, since time.Time) {
	r := in.remote
	if r == nil {
		return "", time.Time{}
	}
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	if len(r.wait) == 0 {
		return "", time.Time{}
	}
	var names []string
	for k := range r.wait {
		if name := fmi2.Function(r.wait[k].Fn - 1).String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or "), r.since
}

// await waits until a batch that was handed over is carried out.
func (r *remote) await(b *native.Batch) {
	defer r.waitFor(nil)
	r.under = nil
	recs := b.Records()
	err := r.posted
	for {
		var answer []byte
		if err == nil {
			answer, err = r.link.Await()
		}
		if err == nil {
			err = r.decode(b, recs, answer)
		}
		if err == nil {
			return
		}
		if err = r.goOn(recs, err); err != nil {
			r.fail(b, recs, err)
			return
		}
		err = r.link.Post(r.out)
	}
}

// underWay gives what was called when a process ended: how many records were
// begun, the function, or those that come into question, and the time. It is the
// first record if none is known to be begun.
func (r *remote) underWay(recs []native.Record, err error) (begun int, call string, time float64) {
	var end *Ended
	if errors.As(err, &end) {
		begun = min(end.Begun, len(recs))
	}
	name := ""
	if begun > 0 {
		name = fmi2.Function(recs[begun-1].Fn - 1).String()
	} else {
		var names []string
		for k := range recs {
			names = append(names, fmi2.Function(recs[k].Fn-1).String())
		}
		name = strings.Join(names, ", ")
		if n := len(names); n > 1 {
			name = strings.Join(names[:n-1], ", ") + " or " + names[n-1]
		}
		begun = 1
	}
	time = r.time
	for _, c := range recs[:begun-1] {
		if fmi2.Function(c.Fn-1) == fmi2.DoStep {
			time = c.Float[0] + c.Float[1]
		}
	}
	return begun, name, time
}

// fail marks the record under way.
func (r *remote) fail(b *native.Batch, recs []native.Record, err error) {
	begun, call, time := r.underWay(recs, err)
	for k := range begun {
		recs[k].Ret = uintptr(StatusOK)
	}
	b.Done = uintptr(begun)
	recs[begun-1].Ret = uintptr(StatusFatal)
	if fmi2.Function(recs[begun-1].Fn-1) == fmi2.Instantiate {
		recs[begun-1].Ret = 0
	}
	r.time = time
	_ = r.lost(call, err)
}

// encode writes a record.
func (r *remote) encode(c *native.Record) {
	f := fmi2.Function(c.Fn - 1)
	w := &r.out
	id := c.Sig >> keptShift
	head := uint64(f) | uint64(id&maxID)<<wireKept
	define := id == 0 || id&keptSent == 0
	begin := len(r.out)
	if define {
		head |= wireDefines
		if id != 0 {
			c.Sig |= keptSent << keptShift
		}
	}
	w.word(head)
	shape := fmi2.Shapes[f]
	if define {
		for k, a := range shape {
			if a.Kind == fmi2.ArgCount {
				w.word(uint64(c.Int[k]))
			}
		}
		for k, a := range shape {
			if a.Kind == fmi2.ArgFixed {
				w.memory(c.Int[k], a.Bytes(c))
			}
		}
		if id != 0 {
			r.safe.define(r.out[begin:])
		}
	}
	for k, a := range shape {
		switch a.Kind {
		case fmi2.ArgInt, fmi2.ArgState:
			w.word(uint64(c.Int[k]))
		case fmi2.ArgIn, fmi2.ArgInOut:
			w.memory(c.Int[k], a.Bytes(c))
		case fmi2.ArgText:
			w.text(native.String(c.Int[k], native.MaxString))
		case fmi2.ArgTexts:
			for j := range a.Elements(c) {
				p := c.Int[k]
				w.text(native.String(*(*uintptr)(native.Pointer(p + 8*j)), native.MaxString))
			}
		case fmi2.ArgStateSlot:
			slot := (*uintptr)(native.Pointer(c.Int[k]))
			if *slot == 0 {
				r.states++
				*slot = uintptr(r.states)
			}
			w.word(uint64(*slot))
		}
	}
	switch f {
	case fmi2.DoStep:
		r.time = c.Float[0]
	case fmi2.SetupExperiment:
		r.time, r.timed = c.Float[1], true
	}
	for k := range fmi2.Floats(f) {
		w.memory(native.AddressOf(&c.Float[k]), 8)
	}
}

// Bits of a record's sig above the shift, for a record that the host keeps: its
// number, and that the host has it.
const (
	keptShift = 16
	maxID     = maxKept - 1
	keptSent  = maxKept
)

// keep gives a record a number under which the host keeps what is fixed in it.
func (r *remote) keep(c *native.Record) {
	if r.kept < maxID {
		r.kept++
		c.Sig |= uintptr(r.kept) << keptShift
	}
}

// decode reads what came of the records.
func (r *remote) decode(b *native.Batch, recs []native.Record, answer []byte) error {
	a := wireReader{rest: answer}
	outcome := a.word()
	done := outcome &^ wireStopped
	b.Start, b.End = a.word(), a.word()
	if a.bad || done > uint64(len(recs)) || done == 0 {
		return errWire
	}
	b.Done = uintptr(done)
	for k := range recs[:done] {
		c := &recs[k]
		c.Ret = uintptr(a.word())
		if a.word() != 0 {
			c.Sig |= native.SigModes
			b.Modes = 1
		}
		f := fmi2.Function(c.Fn - 1)
		if f == fmi2.DoStep && !native.Stops(c.Status()) {
			r.time = c.Float[0] + c.Float[1]
		}
		for j, g := range fmi2.Shapes[f] {
			switch g.Kind {
			case fmi2.ArgOut, fmi2.ArgInOut:
				a.memory(c.Int[j], g.Bytes(c))
			case fmi2.ArgTextsOut:
				if err := r.readTexts(&a, c.Int[j], g.Elements(c)); err != nil {
					return err
				}
			}
		}
	}
	// Calls end early only after a status that stops them; an FMU that has written over the
	// count makes them seem to.
	if a.bad || done < uint64(len(recs)) && !native.Stops(recs[done-1].Status()) {
		return errWire
	}
	if r.safe != nil {
		r.safe.write(recs, r.out, outcome)
	}
	return nil
}

// readTexts places strings in C memory and the pointers to them at p. They stay
// until the next that come.
func (r *remote) readTexts(a *wireReader, p, n uintptr) error {
	rest, total := *a, uintptr(0)
	for range n {
		if length := rest.word(); length != wireNull {
			rest.raw(length)
			total += uintptr(length) + 1
		}
	}
	if rest.bad { // so total is no more than the message
		return errWire
	}
	text, err := native.BufferSlice[byte](&r.texts, int(total))
	if err != nil {
		return err
	}
	for j := range n {
		slot := (*uintptr)(native.Pointer(p + 8*j))
		length := a.word()
		if *slot = 0; length == wireNull {
			continue
		}
		s := a.raw(length)
		copy(text, s)
		text[len(s)] = 0
		*slot = native.Address(text)
		text = text[len(s)+1:]
	}
	return nil
}

// relay takes a log message of the host.
func (r *remote) relay(message []byte) {
	a := wireReader{rest: message}
	m := fmi2.Message{Instance: r.in.name, Status: int32(a.word()), Category: a.text(), Text: a.text()}
	if a.bad || r.mute.Load() {
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
	if r.mute.Load() {
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
	in.remote, in.fatal = &remote{in: in}, new(atomic.Bool)
	if o.Restarts > 0 {
		in.remote.safe = &safe{limit: o.Restarts, launcher: l}
	}
	err := in.remote.open(l)
	if err == nil {
		in.library, in.run = in.fmu.place.Path, in.remote.run
		err = in.instantiate(o)
	}
	if err != nil {
		return errors.Join(err, in.dispose())
	}
	return nil
}

// close ends the process.
func (r *remote) close() error {
	err := r.disconnect()
	r.texts.Release()
	return err
}

func (r *remote) disconnect() error {
	if r.link == nil {
		return nil
	}
	err := r.link.Close()
	r.link = nil
	return err
}
