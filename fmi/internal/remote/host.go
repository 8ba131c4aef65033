package remote

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Host executes the requests of Clients in other processes by calls of FMUs in this one. It has
// one caller at a time, always on the same thread.
type Host struct {
	send func(message []byte)
	keep func(text string)

	progress  unsafe.Pointer
	instances map[uint64]*instance // by number
	out       wireWriter
}

// instance is the host of one instance.
type instance struct {
	number uint64
	send   func(message []byte)
	keep   func(text string)
	log    *capi.Log
	img    *capi.Library
	comp   uintptr    // 0 = not instantiated, or freed
	made   bool       // fmi2Instantiate was called
	failed bool       // a call has returned Error, and no Reset or SetFMUState has succeeded since
	place  *capi.File // of the library, if the Client does not know it
	uri    string     // of the resources, likewise

	batch   *native.Batch
	mem     native.Memory   // lives as long as the process
	recs    []native.Record // of the present batch
	fns     []capi.Function
	slots   []uint64           // number of the state in each record with ArgStateSlot
	kept    []native.Record    // by the number for requests; Fn is 0 if there is none
	states  map[uint64]uintptr // fmi2FMUstate by number
	out     wireWriter
	scratch native.Scratch
	api     capi.Function // version of the library

	guard  *native.Guard // settings of the process before the first instance
	tidied time.Time     // of the last tidy
}

// NewHost makes a host. send receives log messages one at a time in any thread; a message is
// valid only during the call. keep receives the text of each message, including dropped ones,
// one at a time; it may be nil. progress is memory for Begun of ProgressSize bytes, outside of
// the Go heap and aligned to 8 bytes, which another process may read; it may be nil.
// threadStack is the stack size in bytes of threads that the FMUs make, 0 = the default.
func NewHost(send func(message []byte), keep func(text string), progress unsafe.Pointer, threadStack uint64) (*Host, error) {
	if _, _, err := native.Allocator(); err != nil {
		return nil, err
	}
	if progress == nil {
		var err error
		if progress, err = native.Alloc(uintptr(ProgressSize)); err != nil {
			return nil, err
		}
	}
	native.BufferLines()
	if threadStack > 0 {
		native.SetThreadStack(uintptr(threadStack))
	}
	return &Host{send: send, keep: keep, progress: progress, instances: map[uint64]*instance{}}, nil
}

// The memory for progress is a native.Batch and the number of the active instance.

// ProgressSize is the size of the memory for progress in NewHost, in bytes.
const ProgressSize = int(native.BatchSize) + 8

// Begun returns the number of the active instance, and how many calls of its present request were
// begun.
func Begun(progress unsafe.Pointer) (number uint64, calls int) {
	return atomic.LoadUint64(active(progress)), int(min(atomic.LoadUintptr(&(*native.Batch)(progress).Done), maxKept))
}

// Forget resets Begun to 0 before a request.
func Forget(progress unsafe.Pointer) { atomic.StoreUintptr(&(*native.Batch)(progress).Done, 0) }

func active(progress unsafe.Pointer) *uint64 {
	return (*uint64)(unsafe.Add(progress, native.BatchSize))
}

// Part is the part of a request for several instances that is for one of them.
type Part struct {
	Instance uint64 // its number
	Message  []byte
}

// AppendGroup appends a request for several instances to b. Its answer is a list of parts, see Parts.
func AppendGroup(b []byte, parts []Part) []byte {
	w := wireWriter(b)
	w.word(askGroup)
	return AppendParts(w, parts)
}

// AppendParts appends parts to b.
func AppendParts(b []byte, parts []Part) []byte {
	w := wireWriter(b)
	for _, p := range parts {
		w.word(p.Instance)
		w.word(uint64(len(p.Message)))
		w.raw(p.Message)
	}
	return w
}

// Parts appends the parts of a message to list.
func Parts(list []Part, message []byte) ([]Part, error) {
	r := wireReader{rest: message}
	for len(r.rest) > 0 {
		number := r.word()
		list = append(list, Part{number, r.raw(r.word())})
	}
	if r.bad {
		return nil, ErrWire
	}
	return list, nil
}

// Weight returns the number of instances that a request is for, and whether it loads a library.
func Weight(request []byte) (instances int, loads bool) {
	r := wireReader{rest: request}
	kind := r.word()
	if kind != askGroup {
		return 1, kind == askLoad || kind == askPlace
	}
	for len(r.rest) > 0 {
		r.word()
		part := wireReader{rest: r.raw(r.word())}
		kind = part.word()
		instances++
		loads = loads || kind == askLoad || kind == askPlace
	}
	return max(instances, 1), loads
}

// Ends reports whether a request is for fmi2Terminate or fmi2FreeInstance.
func Ends(request []byte) bool {
	r := wireReader{rest: request}
	if kind, n := r.word(), r.word(); kind != askRun || n != 1 {
		return false
	}
	f := capi.Function(r.word() & 0xff).Number()
	return f == capi.Terminate || f == capi.FreeInstance
}

// AppendPlace appends a request that tells a Host where the library of an instance is, and the location of
// its resources, before that of a Client which does not know them.
func AppendPlace(b []byte, f capi.File, uri string) []byte {
	w := wireWriter(b)
	w.word(askPlace)
	w.text(uri)
	w.file(f)
	return w
}

// Answer executes a request, which without askGroup is for instance 0. The answer is valid until the
// next call. After an error, which means an invalid request, the process should end.
func (h *Host) Answer(request []byte) ([]byte, error) {
	r := wireReader{rest: request}
	if r.word() != askGroup {
		return h.answer(0, request)
	}
	h.out = h.out[:0]
	for len(r.rest) > 0 {
		number := r.word()
		part := r.raw(r.word())
		if r.bad {
			return nil, ErrWire
		}
		answer, err := h.answer(number, part)
		if err != nil {
			return nil, err
		}
		h.out = AppendParts(h.out, []Part{{number, answer}})
	}
	return h.out, nil
}

// answer executes a request for an instance.
func (h *Host) answer(number uint64, request []byte) ([]byte, error) {
	in := h.instances[number]
	if in == nil {
		in = &instance{number: number, send: h.send, keep: h.keep, states: map[uint64]uintptr{},
			batch: (*native.Batch)(h.progress)}
		h.instances[number] = in
	}
	Forget(h.progress)
	atomic.StoreUint64(active(h.progress), number)
	return in.answer(request)
}

func (h *instance) answer(request []byte) ([]byte, error) {
	r := wireReader{rest: request}
	h.out = h.out[:0]
	var err error
	switch r.word() {
	case askPlace:
		if h.place != nil {
			return nil, ErrWire // a Client does not choose what is loaded on another machine
		}
		h.uri = r.text()
		place := r.file()
		h.place = &place
		h.out.word(Version)
	case askLoad:
		err = h.load(&r)
	case askDefine:
		for n := r.word(); n > 0 && err == nil; n-- {
			_, _, err = h.define(&r, &native.Record{})
		}
	case askRun:
		err = h.run(&r)
	case askPlay:
		err = h.play(&r)
	default:
		err = ErrWire
	}
	if r.bad {
		err = ErrWire
	}
	return h.out, err
}

// load loads the library.
func (h *instance) load(r *wireReader) error {
	version := r.word()
	h.out.word(Version)
	if version != Version {
		return nil
	}
	name, p := r.text(), r.file()
	all := r.word() != 0
	if h.place != nil {
		if p.Path != "" {
			return ErrWire
		}
		asked := p
		p = *h.place
		p.Chdir = p.Chdir || asked.Chdir
		p.API = asked.API
	}
	if r.bad || h.img != nil || p.Path == "" {
		return ErrWire
	}
	h.log = &capi.Log{FMU: name, Sink: h.forward, All: all}
	if h.keep != nil {
		h.log.Keep = func(m native.Message) { h.keep(m.Text) }
	}
	say := h.out.text
	if h.place != nil { // the Client is on another machine
		say = func(text string) { h.out.text(diag.WithoutPaths(text)) }
	}
	img, changes, err := capi.Load(&p, 0)
	s := capi.Shown{}
	if err != nil {
		say(err.Error())
	} else {
		say("")
		h.img, h.api, s = img, p.API, img.Shown
	}
	h.out.word(uint64(len(changes)))
	for _, c := range changes {
		say(c)
	}
	h.out.word(s.Exports)
	for _, text := range []string{s.Types, s.Version, s.Foreign, s.Replaced} {
		say(text)
	}
	if err = h.log.Register(); err != nil {
		return err
	}
	h.guard, h.tidied = native.Watch(), time.Now()
	return nil
}

// forward encodes and sends a log message.
func (h *instance) forward(m native.Message) {
	var w wireWriter
	w.word(h.number)
	w.word(uint64(uint32(m.Status)))
	w.text(m.Category)
	w.text(m.Text)
	h.send(w)
}

// playTime is after which time play answers, so that the requests of a long tape share no time limit.
const playTime = 10 * time.Millisecond

// play executes requests, as many as it can in playTime but at least one. The answer is their outcomes.
func (h *instance) play(r *wireReader) error {
	var outcomes wireWriter
	for began := time.Now(); len(r.rest) > 0 && (outcomes == nil || time.Since(began) < playTime); {
		request := wireReader{rest: r.raw(r.word())}
		h.out = h.out[:0]
		if request.word() != askRun {
			return ErrWire
		}
		if err := h.run(&request); err != nil {
			return err
		}
		outcomes = append(outcomes, h.out[:8]...)
	}
	h.out = append(h.out[:0], outcomes...)
	return nil
}

// run executes the records of a request.
func (h *instance) run(r *wireReader) error {
	n := r.word()
	if h.img == nil || n == 0 || n > maxKept {
		return ErrWire
	}
	if int(n) > len(h.recs) {
		recs, err := native.Slice[native.Record](&h.mem, int(n))
		if err != nil {
			return err
		}
		h.recs, h.fns, h.slots = recs, make([]capi.Function, n), make([]uint64, n)
	}
	h.scratch.Reset()
	for k := range h.recs[:n] {
		if err := h.decode(r, k); err != nil {
			return err
		}
	}
	if r.bad {
		return ErrWire
	}
	b := h.batch
	b.Recs, b.N = native.Address(h.recs), uintptr(n)
	if n == 1 && changesProcess.Has(h.fns[0]) {
		h.tidy(0)
		if f := h.fns[0].Number(); f == capi.Terminate || f == capi.FreeInstance {
			native.Flush() // a crash loses what is not written
		}
		g := native.Watch()
		native.Run(b)
		for _, c := range g.Restore() {
			h.log.Say(capi.StatusOK, "the FMU "+c.Text)
		}
	} else {
		native.Run(b)
		h.tidy(tidyInterval)
	}
	done := b.Done
	if done == 0 || done > uintptr(n) { // the FMU may have overwritten it
		return ErrWire
	}
	h.judge(h.fns[done-1].Number(), h.recs[done-1].Status())
	h.out.word(h.outcome(done))
	h.out.word(b.Start)
	h.out.word(b.End)
	for k := range h.recs[:done] {
		h.encode(k)
	}
	return nil
}

// judge follows the state of the instance after a call with this status.
func (h *instance) judge(f capi.Function, s int32) {
	switch {
	case f == capi.FreeInstance:
		h.log.Close()
		native.Flush()
		h.comp = 0
	case f == capi.Instantiate:
		h.made = true
	case f >= capi.GetStatus && f <= capi.GetStringStatus:
	case f == capi.Reset, f == capi.SetFMUState:
		h.failed = h.failed && native.Stops(s)
	case native.Stops(s) && s != capi.StatusDiscard && !(f == capi.DoStep && s == capi.StatusPending):
		h.failed = true
	}
}

// Exit ends the process like fmi.Exit.
func (h *Host) Exit(code int, within time.Duration) {
	used, clean := false, true
	for _, in := range h.instances {
		used, clean = used || in.made, clean && in.comp == 0 && !in.failed
	}
	native.Exit(code, used && clean, within)
}

// maxName bounds the length of the name of an instance.
const maxName = 4096

const tidyInterval = 250 * time.Millisecond

// tidy restores settings of the process that steps have changed. It runs a few times a second
// and before the calls in changesProcess, as in the process of the run.
func (h *instance) tidy(interval time.Duration) {
	if time.Since(h.tidied) < interval {
		return
	}
	for _, c := range h.guard.News() {
		h.log.Say(capi.StatusOK, "in a step the FMU "+c.Text) // the process is its own
	}
	h.tidied = time.Now()
}

// changesProcess are the calls after which changed settings of the process are restored at once.
const changesProcess capi.FunctionSet = 1<<capi.Instantiate |
	1<<capi.EnterInitializationMode | 1<<capi.ExitInitializationMode |
	1<<capi.Terminate | 1<<capi.Reset | 1<<capi.CancelStep | 1<<capi.FreeInstance

// outcome returns the number of records called, and wireStopped if the last one stopped the
// batch.
func (h *instance) outcome(records uintptr) uint64 {
	done := uint64(records)
	last, f := &h.recs[done-1], h.fns[done-1].Number()
	switch f {
	case capi.FreeInstance: // returns nothing
	case capi.Instantiate:
		if last.Ret == 0 {
			return done | wireStopped
		}
	default:
		if native.Stops(last.Status()) {
			return done | wireStopped
		}
	}
	return done
}

// define reads the first part of a record: its constant arguments, or the number under which
// they are kept.
func (h *instance) define(r *wireReader, c *native.Record) (f capi.Function, shape []capi.Argument, err error) {
	head := r.word()
	f = capi.Function(head & 0xff)
	id := int(head >> wireKept & maxID)
	if n := f.Number(); n >= capi.NumFunctions || h.img == nil || f.Version() != h.api || h.img.Sym[n] == 0 {
		return f, nil, ErrWire
	}
	shape = f.Shape()
	switch {
	case head&wireDefines != 0:
		*c = native.Record{Fn: h.img.Sym[f.Number()], Sig: f.Signature()}
		for _, a := range shape {
			if a.Type == "count" {
				c.Int[a.At] = uintptr(r.word())
			}
		}
		for _, a := range shape {
			if err := h.reserve(r, c, a, id > 0); err != nil {
				return f, nil, err
			}
		}
		if id > 0 {
			if id >= len(h.kept) {
				h.kept = append(h.kept, make([]native.Record, id+1-len(h.kept))...)
			}
			h.kept[id] = *c
		}
	case id < len(h.kept) && h.kept[id].Fn == h.img.Sym[f.Number()]:
		*c = h.kept[id]
	default:
		return f, nil, ErrWire
	}
	return f, shape, nil
}

// decode reads record k of a request.
func (h *instance) decode(r *wireReader, k int) error {
	c := &h.recs[k]
	f, shape, err := h.define(r, c)
	if err != nil {
		return err
	}
	h.fns[k] = f
	for _, a := range shape {
		to := &c.Int[a.At]
		switch {
		case a.Float():
			r.memory(native.AddressOf(&c.Float[a.At]), 8)
		case a.Type == "component":
			*to = h.comp
		case a.Local():
			*to = h.log.Callback(a.Type)
		case a.Type == "slot":
			h.slots[k] = r.word()
			*(*uintptr)(native.Pointer(*to)) = h.states[h.slots[k]]
		case a.Type == "state":
			state, there := h.states[r.word()]
			if !there {
				return ErrWire
			}
			*to = state
		case a.Texts() && a.Out:
			clear(unsafe.Slice((*uintptr)(native.Pointer(*to)), a.Elements(c)))
		case a.Type == "text" && !a.Array:
			if *to, err = h.string(r.raw(r.word()), true); err != nil { // some FMUs keep the pointers
				return err
			}
		case a.Texts():
			if *to, err = h.readTexts(r, a.Elements(c)); err != nil {
				return err
			}
		case a.In:
			r.memory(*to, a.Bytes(c))
		case !a.Array && a.Type != "count":
			*to = uintptr(r.word())
		}
	}
	if r.bad {
		return ErrWire
	}
	if f.Number() == capi.Instantiate {
		h.log.Instance = native.String(c.Int[0], maxName)
		if h.place != nil {
			c.Int[capi.Resources(f)], err = h.string([]byte(h.uri), true)
		}
	}
	return err
}

// reserve allocates the memory of an array, and reads it if it is constant.
func (h *instance) reserve(r *wireReader, c *native.Record, a capi.Argument, keep bool) error {
	if !a.Array || a.Texts() && a.In {
		return nil
	}
	if a.Elements(c) > capi.MaxState {
		return ErrWire
	}
	p, err := h.room(a.Bytes(c), keep)
	if err != nil {
		return err
	}
	if c.Int[a.At] = p; a.Fixed() {
		r.memory(p, a.Bytes(c))
	}
	return nil
}

// room returns C memory, valid until the next request or, with keep, forever.
func (h *instance) room(size uintptr, keep bool) (uintptr, error) {
	if !keep {
		return h.scratch.Alloc(size)
	}
	p, err := h.mem.Alloc(size)
	return uintptr(p), err
}

// readTexts reads an array of n strings and returns its address.
func (h *instance) readTexts(r *wireReader, n uintptr) (at uintptr, err error) {
	if n == 0 {
		return 0, nil
	}
	if n > uintptr(len(r.rest)) {
		return 0, ErrWire
	}
	if at, err = h.scratch.Alloc(8 * n); err != nil {
		return 0, err
	}
	texts := unsafe.Slice((*uintptr)(native.Pointer(at)), n)
	for k := range texts {
		if texts[k], err = h.string(r.raw(r.word()), false); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// string returns the address of a C string; see room.
func (h *instance) string(s []byte, keep bool) (uintptr, error) {
	p, err := h.room(uintptr(len(s))+1, keep)
	if err != nil {
		return 0, err
	}
	b := unsafe.Slice((*byte)(native.Pointer(p)), len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	return p, nil
}

// encode writes the results of record k.
func (h *instance) encode(k int) {
	c, f := &h.recs[k], h.fns[k]
	w := &h.out
	if f.Number() == capi.Instantiate {
		h.comp = c.Ret
	}
	w.word(uint64(c.Ret))
	w.word(uint64(c.Sig & native.SigModes))
	for _, a := range f.Shape() {
		at := c.Int[a.At]
		switch {
		case a.Type == "slot" && f.Number() == capi.FreeFMUState:
			delete(h.states, h.slots[k])
		case a.Type == "slot":
			h.states[h.slots[k]] = *(*uintptr)(native.Pointer(at))
		case a.Out && a.Texts():
			for i := range a.Elements(c) {
				if native.Stops(c.Status()) {
					w.word(wireNull)
				} else if b := a.Content(c, i); b == nil {
					w.word(wireNull)
				} else {
					w.bytes(b)
				}
			}
		case a.Out:
			w.memory(at, a.Bytes(c))
		}
	}
}
