package remote

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Link is the way to one process. It has one caller at a time.
type Link interface {
	// Post hands a request to the Host and does not wait for the answer, which
	// Await returns: once after each Post that gave no error. The answer is valid
	// until the next Post. An error means that the process is of no use any more.
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

// Client makes the calls of an instance in another process. It takes the place of
// the crossing into C: everything above it is the same for both. The address of a function
// in its records is that of Symbols.
type Client struct {
	Name string // of the instance
	// Launch starts a process; again: in the place of one that has ended.
	Launch func(again bool) (Link, error)
	// Begun interprets an error of a link: whether the process has ended, and how many calls
	// of the request under way had been begun, 0 if that is not known.
	Begun func(error) (calls int, ended bool)
	// Lost is called when a process does not answer and is not replaced, and returns the error
	// for that. call names what was under way.
	Lost func(call string, cause error) error
	Say  func(text string) // takes messages about the instance

	Time  float64 // where the FMU is, s
	Timed bool    // SetupExperiment had been called

	restart

	link   Link
	out    wireWriter
	posted error         // by the link, of the request in out
	under  *native.Batch // handed over and not waited for yet
	kept   uint64        // records that the host was told to keep
	states uint64        // saved states that were given a number
	texts  native.Buffer // C strings that came back

	waitMu sync.Mutex
	wait   []native.Record // what is waited for
	from   time.Time       // since when
}

// Loaded is what loading a library in another process has shown.
type Loaded struct {
	Shown   *fmi2.Shown
	Changes []string // to the process
	Failed  error    // why the library does not load
}

// Symbols returns what takes the place of the functions' addresses in records.
func Symbols(s *fmi2.Shown) *[fmi2.NumFunctions]uintptr {
	sym := new([fmi2.NumFunctions]uintptr)
	for k := range sym {
		if s.Has(fmi2.Function(k)) {
			sym[k] = uintptr(k) + 1
		}
	}
	return sym
}

// called returns the function that a record calls.
func called(c *native.Record) fmi2.Function { return fmi2.Function(c.Fn - 1) }

// Open starts the process and has the library of an FMU loaded in it. l.Shown is nil with an
// error.
func (r *Client) Open(fmu string, f fmi2.File) (l Loaded, err error) {
	if r.link, err = r.Launch(false); err != nil {
		return l, fmt.Errorf("%s: no process for the FMU: %w", r.Name, err)
	}
	r.out = r.out[:0]
	r.out.word(askLoad)
	r.out.word(wireVersion)
	for _, s := range []string{fmu, f.Path, f.Prefix, f.ID} {
		r.out.text(s)
	}
	chdir := uint64(0)
	if f.Chdir {
		chdir = 1
	}
	r.out.word(chdir)
	r.load = slices.Clone(r.out)
	answer, err := call(r.link, r.out)
	if err == nil {
		l, err = r.loaded(answer)
	}
	if version := errVersion(""); err != nil && !errors.As(err, &version) {
		err = r.Lost("loading", err)
	}
	return l, err
}

// errVersion is that of a process of another version of the program.
type errVersion string

func (e errVersion) Error() string { return string(e) }

// loaded reads the answer to askLoad.
func (r *Client) loaded(answer []byte) (l Loaded, err error) {
	a := wireReader{rest: answer}
	if v := a.word(); v != wireVersion {
		return l, errVersion(fmt.Sprintf("%s: the process of the FMU speaks version %d of the protocol and not %d: the program was replaced meanwhile; start it again", r.Name, v, wireVersion))
	}
	if text := a.text(); text != "" {
		l.Failed = errors.New(text)
	}
	for n := a.word(); n > 0 && !a.bad; n-- {
		l.Changes = append(l.Changes, a.text())
	}
	l.Shown = &fmi2.Shown{Exports: a.word(), Types: a.text(), Version: a.text(), Foreign: a.text()}
	if a.bad {
		return Loaded{}, errWire
	}
	return l, nil
}

// Run is what native.Run is for instances in this process. If the process is lost, the
// record under way returns Fatal, and Lost was called.
func (r *Client) Run(b *native.Batch) {
	r.Post(b)
	r.Await(b)
}

// Post hands a batch over. One that was left without being waited for is ended first.
func (r *Client) Post(b *native.Batch) {
	if r.under != nil {
		r.Await(r.under)
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

func (r *Client) waitFor(recs []native.Record) {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	if r.wait = recs; recs != nil {
		r.from = time.Now()
	}
}

// Waiting returns what is being called: the function, or those that come into question, and
// since when. It is "" if nothing is called. It may be called by another goroutine.
func (r *Client) Waiting() (call string, since time.Time) {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	if len(r.wait) == 0 {
		return "", time.Time{}
	}
	var names []string
	for k := range r.wait {
		if name := called(&r.wait[k]).String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or "), r.from
}

// Await waits until a batch that was handed over is carried out.
func (r *Client) Await(b *native.Batch) {
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

// underWay returns what was called when a process ended: how many records were
// begun, the function, or those that come into question, and the time. It is the
// first record if none is known to be begun.
func (r *Client) underWay(recs []native.Record, err error) (begun int, call string, time float64) {
	begun, _ = r.Begun(err)
	begun = min(begun, len(recs))
	name := ""
	if begun > 0 {
		name = called(&recs[begun-1]).String()
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
	time = r.Time
	for _, c := range recs[:begun-1] {
		if fmi2.Function(c.Fn-1) == fmi2.DoStep {
			time = c.Float[0] + c.Float[1]
		}
	}
	return begun, name, time
}

// fail marks the record under way.
func (r *Client) fail(b *native.Batch, recs []native.Record, err error) {
	begun, call, time := r.underWay(recs, err)
	for k := range begun {
		recs[k].Ret = fmi2.StatusOK
	}
	b.Done = uintptr(begun)
	recs[begun-1].Ret = fmi2.StatusFatal
	if fmi2.Function(recs[begun-1].Fn-1) == fmi2.Instantiate {
		recs[begun-1].Ret = 0
	}
	r.Time = time
	_ = r.Lost(call, err)
}

// encode writes a record.
func (r *Client) encode(c *native.Record) {
	f := called(c)
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
			r.define(r.out[begin:])
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
		r.Time = c.Float[0]
	case fmi2.SetupExperiment:
		r.Time, r.Timed = c.Float[1], true
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

// Define gives a record a number under which the host keeps what is fixed in it.
func (r *Client) Define(c *native.Record) {
	if r.kept < maxID {
		r.kept++
		c.Sig |= uintptr(r.kept) << keptShift
	}
}

// decode reads what came of the records.
func (r *Client) decode(b *native.Batch, recs []native.Record, answer []byte) error {
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
		f := called(c)
		if f == fmi2.DoStep && !native.Stops(c.Status()) {
			r.Time = c.Float[0] + c.Float[1]
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
	r.write(recs, r.out, outcome)
	return nil
}

// readTexts places strings in C memory and the pointers to them at p. They stay
// until the next that come.
func (r *Client) readTexts(a *wireReader, p, n uintptr) error {
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

// ReadMessage reads a log message that a Host has sent.
func ReadMessage(instance string, message []byte) (m fmi2.Message, ok bool) {
	a := wireReader{rest: message}
	m = fmi2.Message{Instance: instance, Status: int32(a.word()), Category: a.text(), Text: a.text()}
	return m, !a.bad
}

// Close ends the process and frees what came from it.
func (r *Client) Close() error {
	err := r.Disconnect()
	r.texts.Release()
	return err
}

// Disconnect ends the process.
func (r *Client) Disconnect() error {
	if r.link == nil {
		return nil
	}
	err := r.link.Close()
	r.link = nil
	return err
}
