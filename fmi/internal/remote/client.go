package remote

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Link is the connection to a process; see fmi.Link.
type Link interface {
	Post(request []byte, most uint64) error
	Await() (answer []byte, err error)
	Close() error
}

// call sends a request and waits for the answer, which has no arrays.
func call(l Link, request []byte) ([]byte, error) {
	if err := l.Post(request, MaxTexts); err != nil {
		return nil, err
	}
	return l.Await()
}

// Client makes the calls of an instance in another process, instead of a crossing into C. The
// addresses of functions in its records are those of Symbols.
type Client struct {
	Name string        // of the instance
	API  capi.Function // version of its functions
	All  bool          // the process drops no log messages
	// Launch starts a process. again is true if it replaces one that has ended.
	Launch func(again bool) (Link, error)
	// Ended reports whether an error of a link means that the process has ended, the number of calls of the request that
	// were begun, 0 if unknown, and whether only the connection was lost.
	Ended func(error) (calls int, ended, lost bool)
	// Lost returns the error for a process that has ended in a call and is not replaced.
	Lost  func(call string, cause error) error
	Say   func(text string) // receives warnings about the instance
	Time  float64           // of the FMU, s
	Timed bool              // SetupExperiment has been called

	restart

	link   Link
	out    wireWriter
	most   uint64        // length of the answer to it
	posted error         // of link.Post for the request in out
	under  *native.Batch // posted without Await
	kept   uint64        // number of records that the host keeps
	states uint64        // number of saved states so far
	texts  native.Buffer // C strings from the host

	waitMu sync.Mutex
	wait   []native.Record // posted without an answer
	from   time.Time       // time of Post
}

// Loaded is the result of loading a library in another process.
type Loaded struct {
	Shown   *capi.Shown
	Changes []string // of the process
	Failed  error    // why the library cannot be loaded; nil = loaded
}

// Symbols returns numbers that replace the addresses of functions of a version in records; 0 = not exported.
func Symbols(s *capi.Shown, api capi.Function) *[capi.NumFunctions]uintptr {
	sym := new([capi.NumFunctions]uintptr)
	for k := range capi.NumFunctions {
		if s.Has(k) {
			sym[k] = uintptr(k|api) + 1
		}
	}
	return sym
}

// called returns the function of a record.
func called(c *native.Record) capi.Function { return capi.Function(c.Fn - 1) }

// Open starts the process and loads the library of an FMU there: f, or that which Place names if its path
// is "". l.Shown is nil after an error.
func (r *Client) Open(fmu string, f capi.File) (l Loaded, err error) {
	r.out = r.out[:0]
	r.out.word(askLoad)
	r.out.word(Version)
	r.out.text(fmu)
	r.out.file(f)
	r.out.flag(r.All)
	r.load = slices.Clone(r.out)
	for tries := 0; ; tries++ {
		if r.link, err = r.Launch(tries > 0); err != nil {
			return l, fmt.Errorf("%s: no process for the FMU: %w", r.Name, err)
		}
		if l, err = r.begin(); !r.severed(err) || tries == mostLosses {
			break
		}
		_ = r.Disconnect() // it is lost
	}
	if version := errVersion(""); err != nil && !errors.As(err, &version) {
		err = r.Lost("loading", err)
	}
	return l, err
}

// begin has the process load the library.
func (r *Client) begin() (Loaded, error) {
	answer, err := call(r.link, r.load)
	if err != nil {
		return Loaded{}, err
	}
	return r.loaded(answer)
}

// errVersion is the error for a process with another version of the program.
type errVersion string

func (e errVersion) Error() string { return string(e) }

// loaded reads the answer to askLoad.
func (r *Client) loaded(answer []byte) (l Loaded, err error) {
	a := wireReader{rest: answer}
	switch v := a.word(); {
	case v != Version && r.Apart: // the host has said that it is the same
		return l, ErrWire
	case v != Version:
		return l, errVersion(fmt.Sprintf("%s: the process of the FMU uses version %d of the protocol instead of %d: "+
			"the program has been replaced; start it again", r.Name, v, Version))
	}
	text := func() string { return diag.OneLine(a.text(), longestText) }
	if text := text(); text != "" {
		l.Failed = errors.New(text)
	}
	for n := a.word(); n > 0 && !a.bad; n-- {
		l.Changes = append(l.Changes, text())
	}
	l.Shown = &capi.Shown{Exports: a.word(), Types: text(), Version: text(), Foreign: text(), Replaced: text()}
	if a.bad {
		return Loaded{}, ErrWire
	}
	return l, nil
}

// longestText bounds what a process says of a library, in bytes.
const longestText = 10_000

// Run calls a batch, like native.Run in this process. If the process ends, the active record
// returns Fatal, after a call of Lost.
func (r *Client) Run(b *native.Batch) {
	r.Post(b)
	r.Await(b)
}

// Post sends a batch. It first waits for a batch that was posted without Await.
func (r *Client) Post(b *native.Batch) {
	if r.under != nil {
		r.Await(r.under)
	}
	r.under = b
	recs := b.Records()
	b.Begin()
	b.Start, b.End, b.Worst = 0, 0, 1 // so that the caller evaluates the statuses
	r.out, r.most = r.out[:0], Usual
	r.out.word(askRun)
	r.out.word(uint64(len(recs)))
	for k := range recs {
		r.encode(&recs[k])
	}
	r.most += uint64(len(recs)) * 64 // results, and the padding of arrays
	r.waitFor(recs)
	r.posted = r.link.Post(r.out, r.most)
}

func (r *Client) waitFor(recs []native.Record) {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	if r.wait = recs; recs != nil {
		r.from = time.Now()
	}
}

// Waiting returns the active function or the candidates, and its start; "" if none is active.
// Any goroutine may call it.
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

// Await waits for the result of a posted batch.
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
		err = r.link.Post(r.out, r.most)
	}
}

// underWay returns the call in which a process ended: the number of records begun, the
// function or the candidates, and the time. If the number is unknown it is 1.
func (r *Client) underWay(recs []native.Record, err error) (begun int, call string, time float64) {
	begun, _, _ = r.Ended(err)
	begun = min(begun, len(recs))
	name := ""
	if begun > 0 {
		name = called(&recs[begun-1]).String()
	} else {
		var names []string
		for k := range recs {
			names = append(names, called(&recs[k]).String())
		}
		name = strings.Join(names, ", ")
		if n := len(names); n > 1 {
			name = strings.Join(names[:n-1], ", ") + " or " + names[n-1]
		}
		begun = 1
	}
	time = r.Time
	for k := range begun - 1 {
		if c := &recs[k]; called(c).Number() == capi.DoStep {
			time = c.Float[0] + c.Float[1]
		}
	}
	return begun, name, time
}

// fail sets the results of a batch whose process has ended, and calls Lost.
func (r *Client) fail(b *native.Batch, recs []native.Record, err error) {
	begun, call, time := r.underWay(recs, err)
	for k := range begun {
		recs[k].Ret = capi.StatusOK
	}
	b.Done = uintptr(begun)
	recs[begun-1].Ret = capi.StatusFatal
	if called(&recs[begun-1]).Number() == capi.Instantiate {
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
	if define {
		for _, a := range f.Shape() {
			if a.Type == "count" {
				w.word(uint64(c.Int[a.At]))
			}
		}
		for _, a := range f.Shape() {
			if a.Fixed() {
				w.memory(c.Int[a.At], a.Bytes(c))
			}
		}
		if id != 0 {
			r.define(r.out[begin:])
		}
	}
	r.encodeArguments(f, c)
	switch f {
	case capi.DoStep, capi.DoStep | capi.V3:
		r.Time = c.Float[0]
	case capi.SetupExperiment, capi.EnterInitializationMode | capi.V3:
		r.Time, r.Timed = c.Float[1], true
	}
}

// encodeArguments writes the arguments of a record that are not constant.
func (r *Client) encodeArguments(f capi.Function, c *native.Record) {
	w := &r.out
	for _, a := range f.Shape() {
		p := c.Int[a.At]
		switch {
		case a.Float():
			w.memory(native.AddressOf(&c.Float[a.At]), 8)
		case a.Type == "slot":
			slot := (*uintptr)(native.Pointer(p))
			if *slot == 0 {
				r.states++
				*slot = uintptr(r.states)
			}
			w.word(uint64(*slot))
		case a.Type == "text" && !a.Array:
			w.text(native.String(p, native.MaxString))
		case a.Texts() && a.In:
			for j := range a.Elements(c) {
				w.bytes(a.Content(c, j))
			}
		case a.In:
			w.memory(p, a.Bytes(c))
		case a.Out && !a.Texts():
			r.most += uint64(a.Bytes(c))
		case a.Out:
			r.most += MaxTexts
		case !a.Array && a.Type != "count" && !a.Local():
			w.word(uint64(p))
		}
	}
}

// Bits of Sig above the shift, for a record that the host keeps: its number, and whether it
// has been sent.
const (
	keptShift = 16
	maxID     = maxKept - 1
	keptSent  = maxKept
)

// Define assigns a number to a record, under which the host keeps its constant arguments.
func (r *Client) Define(c *native.Record) {
	if r.kept < maxID {
		r.kept++
		c.Sig |= uintptr(r.kept) << keptShift
	}
}

// decode reads the results of the records.
func (r *Client) decode(b *native.Batch, recs []native.Record, answer []byte) error {
	a := wireReader{rest: answer}
	outcome := a.word()
	done := outcome &^ wireStopped
	b.Start, b.End = a.word(), a.word()
	if a.bad || done > uint64(len(recs)) || done == 0 {
		return ErrWire
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
		if f.Number() == capi.DoStep && !native.Stops(c.Status()) {
			r.Time = c.Float[0] + c.Float[1]
		}
		for _, g := range f.Shape() {
			switch p := c.Int[g.At]; {
			case g.Out && g.Texts():
				if err := r.readTexts(&a, p, g.Elements(c)); err != nil {
					return err
				}
			case g.Out:
				a.memory(p, g.Bytes(c))
			}
		}
	}
	// A batch ends early only after a status that stops it. Otherwise the FMU has overwritten
	// the count.
	if a.bad || done < uint64(len(recs)) && !native.Stops(recs[done-1].Status()) {
		return ErrWire
	}
	r.write(recs, r.out, outcome)
	return nil
}

// readTexts stores strings in C memory and pointers to them at p. They are valid until the
// next call.
func (r *Client) readTexts(a *wireReader, p, n uintptr) error {
	rest, total := *a, uintptr(0)
	for range n {
		if length := rest.word(); length != wireNull {
			rest.raw(length)
			total += uintptr(length) + 1
		}
	}
	if rest.bad { // otherwise total is at most the length of the message
		return ErrWire
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

// ReadMessage decodes a log message of a Host.
func ReadMessage(instance string, message []byte) (m native.Message, ok bool) {
	a := wireReader{rest: message}
	a.word() // its number, see AppendGroup
	m = native.Message{Instance: instance, Status: int32(a.word()), Category: a.text(), Text: a.text()}
	return m, !a.bad
}

// LoggedBy returns the number of the instance that a log message of a Host is from.
func LoggedBy(message []byte) (number uint64, ok bool) {
	a := wireReader{rest: message}
	number = a.word()
	return number, !a.bad
}

// Close ends the process and releases memory.
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
