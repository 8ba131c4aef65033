package fmi

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Host answers the requests of an instance that lives in another process, by
// calls into the FMU in this one. It has one caller at a time, always in the
// same thread. It is for package fmi/worker.
type Host struct {
	send func(message []byte)
	keep func(text string)
	log  *logQueue
	img  *image
	comp uintptr

	batch     *native.Batch
	mem       native.Memory   // lives as long as the process
	recs      []native.Record // of the batch under way
	fns       []function
	slots     []uint64 // number of the state in each record's slot
	kept      []kept
	states    map[uint64]uintptr // fmi2FMUstate, by the number that the other side gives it
	out       wireWriter
	scratch   native.Scratch
	callbacks uintptr

	guard  *native.Guard // the process before the first instance
	tidied time.Time
	told   map[string]bool
}

// kept is a record that requests refer to by a number.
type kept struct {
	rec   native.Record
	there bool
}

// NewHost makes a host. Log messages go to send, one at a time and in any
// thread; they belong to the caller only during the call. keep is told of the text of
// each, one at a time, also of those that are too many to be sent; nil = nobody is. In
// progress, of
// ProgressSize bytes outside of Go's heap and aligned to eight, Begun can be read
// while and after the FMU is called, also by another process; nil = nobody reads
// it. Threads that the FMU makes get a stack of so many bytes, 0 = as it is.
func NewHost(send func(message []byte), keep func(text string), progress unsafe.Pointer, threadStack uint64) (*Host, error) {
	if _, _, err := native.Allocator(); err != nil {
		return nil, err
	}
	h := &Host{send: send, keep: keep, told: map[string]bool{}, states: map[uint64]uintptr{}}
	if progress == nil {
		var err error
		if progress, err = h.mem.Alloc(native.BatchSize); err != nil {
			return nil, err
		}
	}
	h.batch = (*native.Batch)(progress)
	native.BufferLines()
	if threadStack > 0 {
		native.SetThreadStack(uintptr(threadStack))
	}
	return h, nil
}

// ProgressSize is the size of what NewHost takes.
const ProgressSize = int(native.BatchSize)

// Begun counts the calls of the request under way that were begun.
func Begun(progress unsafe.Pointer) int {
	return int(min(atomic.LoadUintptr(&(*native.Batch)(progress).Done), maxKept))
}

// Forget makes Begun 0, before a request.
func Forget(progress unsafe.Pointer) { atomic.StoreUintptr(&(*native.Batch)(progress).Done, 0) }

// Answer carries out a request. The answer is valid until the next one. An error
// means that the request is no such; the process should end.
func (h *Host) Answer(request []byte) ([]byte, error) {
	r := wireReader{rest: request}
	h.out = h.out[:0]
	var err error
	switch r.word() {
	case askLoad:
		err = h.load(&r)
	case askDefine:
		for n := r.word(); n > 0 && err == nil; n-- {
			_, _, err = h.define(&r, &native.Record{})
		}
	case askRun:
		err = h.run(&r)
	default:
		err = errWire
	}
	return h.out, err
}

// load loads the library.
func (h *Host) load(r *wireReader) error {
	version := r.word()
	h.out.word(wireVersion)
	if version != wireVersion {
		return nil
	}
	name := r.text()
	p := libraryPlace{library: r.text(), prefix: r.text(), id: r.text(), chdir: r.word() != 0}
	if r.bad || h.img != nil {
		return errWire
	}
	h.log = &logQueue{fmu: name, sink: h.forward, keep: h.keep}
	img, changes, err := loadImage(&p, 0)
	s := shown{}
	if err != nil {
		h.out.text(err.Error())
	} else {
		h.out.text("")
		h.img, s = img, img.shown
	}
	h.out.word(uint64(len(changes)))
	for _, c := range changes {
		h.out.text(c)
	}
	h.out.word(s.exports)
	for _, text := range []string{s.types, s.version, s.foreign} {
		h.out.text(text)
	}
	if h.callbacks, err = newCallbacks(h.log); err != nil {
		return err
	}
	h.guard, h.tidied = native.Watch(), time.Now()
	return nil
}

// forward sends a log message.
func (h *Host) forward(m LogMessage) {
	var w wireWriter
	w.word(uint64(uint32(m.Status)))
	w.text(m.Category)
	w.text(m.Text)
	h.send(w)
}

// run carries out records.
func (h *Host) run(r *wireReader) error {
	n := r.word()
	if h.img == nil || n == 0 || n > maxKept {
		return errWire
	}
	if int(n) > len(h.recs) {
		recs, err := native.Slice[native.Record](&h.mem, int(n))
		if err != nil {
			return err
		}
		h.recs, h.fns, h.slots = recs, make([]function, n), make([]uint64, n)
	}
	h.scratch.Reset()
	for k := range h.recs[:n] {
		if err := h.decode(r, k); err != nil {
			return err
		}
	}
	if r.bad {
		return errWire
	}
	b := h.batch
	b.Recs, b.N = native.Address(h.recs), uintptr(n)
	if n == 1 && changesProcess.has(h.fns[0]) {
		h.tidy(0)
		g := native.Watch()
		native.Run(b)
		for _, c := range g.Restore() {
			h.log.say("the FMU " + c.Text)
		}
	} else {
		native.Run(b)
		h.tidy(tidyInterval)
	}
	done := b.Done
	if done == 0 || done > uintptr(n) { // it stands in memory that the FMU may write over
		return errWire
	}
	if h.fns[0] == fnFreeInstance {
		h.log.close()
	}
	h.out.word(h.outcome(done))
	h.out.word(b.Start)
	h.out.word(b.End)
	for k := range h.recs[:done] {
		h.encode(k)
	}
	return nil
}

// maxName bounds what is read of the name of an instance.
const maxName = 4096

const tidyInterval = 250 * time.Millisecond

// tidy puts back what steps have changed in the process, a few times a second and
// before calls that are watched themselves: the FMU is to do what it would do in
// the process of the run.
func (h *Host) tidy(interval time.Duration) {
	if time.Since(h.tidied) < interval {
		return
	}
	for _, c := range h.guard.Restore() {
		if !h.told[c.Kind] {
			h.told[c.Kind] = true
			h.log.say("in a step the FMU " + c.Text)
		}
	}
	h.tidied = time.Now()
}

// functionSet is a set of functions, one bit each.
type functionSet uint64

func (s functionSet) has(f function) bool { return s>>f&1 != 0 }

// changesProcess are the calls after which what the FMU changed in the process
// is put back at once.
const changesProcess functionSet = 1<<fnInstantiate | 1<<fnEnterInitializationMode | 1<<fnExitInitializationMode |
	1<<fnTerminate | 1<<fnReset | 1<<fnCancelStep | 1<<fnFreeInstance

// outcome returns how many records were carried out, and whether the last of them
// stopped the batch.
func (h *Host) outcome(records uintptr) uint64 {
	done := uint64(records)
	last, f := &h.recs[done-1], h.fns[done-1]
	switch f {
	case fnFreeInstance: // gives nothing
	case fnInstantiate:
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

// define reads the beginning of a record: what is fixed in it, or under which
// number that is kept.
func (h *Host) define(r *wireReader, c *native.Record) (f function, shape []argument, err error) {
	head := r.word()
	f = function(head & 0xff)
	id := int(head >> wireKept & maxID)
	if f >= numFunctions || h.img == nil || h.img.sym[f] == 0 {
		return f, nil, errWire
	}
	shape = shapes[f]
	switch {
	case head&wireDefines != 0:
		*c = native.Record{Fn: h.img.sym[f], Sig: signature(f)}
		for j, a := range shape {
			if a.kind == argCount {
				c.Int[j] = uintptr(r.word())
			}
		}
		for j, a := range shape {
			if err := h.reserve(r, c, j, a, id > 0); err != nil {
				return f, nil, err
			}
		}
		if id > 0 {
			for len(h.kept) <= id {
				h.kept = append(h.kept, kept{})
			}
			h.kept[id] = kept{*c, true}
		}
	case id < len(h.kept) && h.kept[id].there && h.kept[id].rec.Fn == h.img.sym[f]:
		*c = h.kept[id].rec
	default:
		return f, nil, errWire
	}
	return f, shape, nil
}

// decode reads record k of a request.
func (h *Host) decode(r *wireReader, k int) error {
	c := &h.recs[k]
	f, shape, err := h.define(r, c)
	if err != nil {
		return err
	}
	h.fns[k] = f
	for j, a := range shape {
		switch a.kind {
		case argComponent:
			c.Int[j] = h.comp
		case argLocal:
			c.Int[j] = h.callbacks
		case argInt:
			c.Int[j] = uintptr(r.word())
		case argIn, argInOut:
			r.memory(c.Int[j], a.bytes(c))
		case argText, argTexts:
			if err := h.readTexts(r, c, j, a); err != nil {
				return err
			}
		case argTextsOut:
			clear(unsafe.Slice((*uintptr)(native.Pointer(c.Int[j])), a.elements(c)))
		case argState:
			state, there := h.states[r.word()]
			if !there {
				return errWire
			}
			c.Int[j] = state
		case argStateSlot:
			h.slots[k] = r.word()
			*(*uintptr)(native.Pointer(c.Int[j])) = h.states[h.slots[k]]
		}
	}
	for j := range floats(f) {
		r.memory(native.AddressOf(&c.Float[j]), 8)
	}
	if r.bad {
		return errWire
	}
	if f == fnInstantiate {
		h.log.instance = native.String(c.Int[0], maxName)
	}
	return nil
}

// reserve makes room for what argument j points to, and reads it if it is fixed.
func (h *Host) reserve(r *wireReader, c *native.Record, j int, a argument, keep bool) error {
	size := a.bytes(c)
	switch a.kind {
	case argTextsOut:
		size = 8 * a.elements(c)
	case argFixed, argIn, argOut, argInOut, argStateSlot:
	default:
		return nil
	}
	if a.elements(c) > maxState {
		return errWire
	}
	p, err := h.room(size, keep)
	if err != nil {
		return err
	}
	c.Int[j] = p
	if a.kind == argFixed {
		r.memory(p, size)
	}
	return nil
}

// room gives C memory, until the next request or for good.
func (h *Host) room(size uintptr, keep bool) (uintptr, error) {
	if !keep {
		return h.scratch.Alloc(size)
	}
	p, err := h.mem.Alloc(size)
	return uintptr(p), err
}

// readTexts reads the strings of argument j.
func (h *Host) readTexts(r *wireReader, c *native.Record, j int, a argument) error {
	keep := a.kind == argText // older exporters keep the pointers
	place := func() (uintptr, error) {
		s := r.raw(r.word())
		p, err := h.room(uintptr(len(s))+1, keep)
		if err != nil {
			return 0, err
		}
		b := unsafe.Slice((*byte)(native.Pointer(p)), len(s)+1)
		copy(b, s)
		b[len(s)] = 0
		return p, nil
	}
	var err error
	if a.kind == argText {
		c.Int[j], err = place()
		return err
	}
	n := a.elements(c)
	if n == 0 {
		c.Int[j] = 0
		return nil
	}
	if n > uintptr(len(r.rest)) {
		return errWire
	}
	if c.Int[j], err = h.scratch.Alloc(8 * n); err != nil {
		return err
	}
	for k := range n {
		p, err := place()
		if err != nil {
			return err
		}
		*(*uintptr)(native.Pointer(c.Int[j] + 8*k)) = p
	}
	return nil
}

// encode writes what came of record k.
func (h *Host) encode(k int) {
	c, f := &h.recs[k], h.fns[k]
	w := &h.out
	if f == fnInstantiate {
		h.comp = c.Ret
	}
	w.word(uint64(c.Ret))
	w.word(uint64(c.Sig & native.SigModes))
	for j, a := range shapes[f] {
		switch a.kind {
		case argOut, argInOut:
			w.memory(c.Int[j], a.bytes(c))
		case argTextsOut:
			for i := range a.elements(c) {
				p := *(*uintptr)(native.Pointer(c.Int[j] + 8*i))
				if p == 0 || native.Stops(c.Status()) {
					w.word(wireNull)
					continue
				}
				w.text(native.String(p, native.MaxString))
			}
		case argStateSlot:
			if f == fnFreeFMUState {
				delete(h.states, h.slots[k])
			} else {
				h.states[h.slots[k]] = *(*uintptr)(native.Pointer(c.Int[j]))
			}
		}
	}
}
