package fmi

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
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

	batch     *batch
	mem       cmem     // lives as long as the process
	recs      []record // of the batch under way
	fns       []function
	slots     []uint64 // number of the state in each record's slot
	kept      []kept
	states    map[uint64]uintptr // fmi2FMUstate, by the number that the other side gives it
	out       wireWriter
	scratch   scratch
	callbacks uintptr

	guard  *guard // the process before the first instance
	tidied time.Time
	told   map[string]bool
}

// kept is a record that requests refer to by a number.
type kept struct {
	rec   record
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
	if _, err := libc(); err != nil {
		return nil, err
	}
	h := &Host{send: send, keep: keep, told: map[string]bool{}, states: map[uint64]uintptr{}}
	if progress == nil {
		var err error
		if progress, err = h.mem.alloc(batchSize); err != nil {
			return nil, err
		}
	}
	h.batch = (*batch)(progress)
	bufferLines()
	if threadStack > 0 {
		setThreadStack(uintptr(threadStack))
	}
	return h, nil
}

// ProgressSize is the size of what NewHost takes.
const ProgressSize = int(batchSize)

// Begun counts the calls of the request under way that were begun.
func Begun(progress unsafe.Pointer) int {
	return int(min(atomic.LoadUintptr(&(*batch)(progress).done), maxKept))
}

// Forget makes Begun 0, before a request.
func Forget(progress unsafe.Pointer) { atomic.StoreUintptr(&(*batch)(progress).done, 0) }

// bufferLines has what the FMU prints leave the process line by line, into a
// pipe too, so that the last lines before a crash are not lost.
func bufferLines() {
	name, byLine := "stdout", uintptr(1)
	switch runtime.GOOS {
	case "darwin":
		name = "__stdoutp"
	case "windows": // has no such mode
		return
	}
	stdout, err := libcSymbol(name)
	if err != nil {
		return
	}
	if setvbuf, err := libcSymbol("setvbuf"); err == nil {
		callInts(setvbuf, *(*uintptr)(cptr(stdout)), 0, byLine, 0)
	}
}

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
			_, _, err = h.define(&r, &record{})
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
	h.guard, h.tidied = watch(), time.Now()
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
		recs, err := cslice[record](&h.mem, int(n))
		if err != nil {
			return err
		}
		h.recs, h.fns, h.slots = recs, make([]function, n), make([]uint64, n)
	}
	h.scratch.reset()
	for k := range h.recs[:n] {
		if err := h.decode(r, k); err != nil {
			return err
		}
	}
	if r.bad {
		return errWire
	}
	b := h.batch
	b.recs, b.n = address(h.recs), uintptr(n)
	if n == 1 && changesProcess.has(h.fns[0]) {
		h.tidy(0)
		g := watch()
		run(b)
		for _, c := range g.restore() {
			h.log.say("the FMU " + c.text)
		}
	} else {
		run(b)
		h.tidy(tidyInterval)
	}
	done := b.done
	if done == 0 || done > uintptr(n) { // it stands in memory that the FMU may write over
		return errWire
	}
	if h.fns[0] == fnFreeInstance {
		h.log.close()
	}
	h.out.word(h.outcome(done))
	h.out.word(b.start)
	h.out.word(b.end)
	for k := range h.recs[:done] {
		h.encode(k)
	}
	return nil
}

const tidyInterval = 250 * time.Millisecond

// tidy puts back what steps have changed in the process, a few times a second and
// before calls that are watched themselves: the FMU is to do what it would do in
// the process of the run.
func (h *Host) tidy(interval time.Duration) {
	if time.Since(h.tidied) < interval {
		return
	}
	for _, c := range h.guard.restore() {
		if !h.told[c.kind] {
			h.told[c.kind] = true
			h.log.say("in a step the FMU " + c.text)
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
		if last.ret == 0 {
			return done | wireStopped
		}
	default:
		if stops(last.status()) {
			return done | wireStopped
		}
	}
	return done
}

// define reads the beginning of a record: what is fixed in it, or under which
// number that is kept.
func (h *Host) define(r *wireReader, c *record) (f function, shape []argument, err error) {
	head := r.word()
	f = function(head & 0xff)
	id := int(head >> wireKept & maxID)
	if f >= numFunctions || h.img == nil || h.img.sym[f] == 0 {
		return f, nil, errWire
	}
	shape = shapes[f]
	switch {
	case head&wireDefines != 0:
		*c = record{fn: h.img.sym[f], sig: signature(f)}
		for j, a := range shape {
			if a.kind == argCount {
				c.i[j] = uintptr(r.word())
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
	case id < len(h.kept) && h.kept[id].there && h.kept[id].rec.fn == h.img.sym[f]:
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
			c.i[j] = h.comp
		case argLocal:
			c.i[j] = h.callbacks
		case argInt:
			c.i[j] = uintptr(r.word())
		case argIn, argInOut:
			r.memory(c.i[j], a.bytes(c))
		case argText, argTexts:
			if err := h.readTexts(r, c, j, a); err != nil {
				return err
			}
		case argTextsOut:
			clear(unsafe.Slice((*uintptr)(cptr(c.i[j])), a.elements(c)))
		case argState:
			state, there := h.states[r.word()]
			if !there {
				return errWire
			}
			c.i[j] = state
		case argStateSlot:
			h.slots[k] = r.word()
			*(*uintptr)(cptr(c.i[j])) = h.states[h.slots[k]]
		}
	}
	for j := range floats(f) {
		r.memory(addressOf(&c.f[j]), 8)
	}
	if r.bad {
		return errWire
	}
	if f == fnInstantiate {
		h.log.instance = cstring(c.i[0], maxField)
	}
	return nil
}

// reserve makes room for what argument j points to, and reads it if it is fixed.
func (h *Host) reserve(r *wireReader, c *record, j int, a argument, keep bool) error {
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
	c.i[j] = p
	if a.kind == argFixed {
		r.memory(p, size)
	}
	return nil
}

// room gives C memory, until the next request or for good.
func (h *Host) room(size uintptr, keep bool) (uintptr, error) {
	if !keep {
		return h.scratch.alloc(size)
	}
	p, err := h.mem.alloc(size)
	return uintptr(p), err
}

// readTexts reads the strings of argument j.
func (h *Host) readTexts(r *wireReader, c *record, j int, a argument) error {
	keep := a.kind == argText // older exporters keep the pointers
	place := func() (uintptr, error) {
		s := r.raw(r.word())
		p, err := h.room(uintptr(len(s))+1, keep)
		if err != nil {
			return 0, err
		}
		b := unsafe.Slice((*byte)(cptr(p)), len(s)+1)
		copy(b, s)
		b[len(s)] = 0
		return p, nil
	}
	var err error
	if a.kind == argText {
		c.i[j], err = place()
		return err
	}
	n := a.elements(c)
	if n == 0 {
		c.i[j] = 0
		return nil
	}
	if n > uintptr(len(r.rest)) {
		return errWire
	}
	if c.i[j], err = h.scratch.alloc(8 * n); err != nil {
		return err
	}
	for k := range n {
		p, err := place()
		if err != nil {
			return err
		}
		*(*uintptr)(cptr(c.i[j] + 8*k)) = p
	}
	return nil
}

// encode writes what came of record k.
func (h *Host) encode(k int) {
	c, f := &h.recs[k], h.fns[k]
	w := &h.out
	if f == fnInstantiate {
		h.comp = c.ret
	}
	w.word(uint64(c.ret))
	w.word(uint64(c.sig & sigModes))
	for j, a := range shapes[f] {
		switch a.kind {
		case argOut, argInOut:
			w.memory(c.i[j], a.bytes(c))
		case argTextsOut:
			for i := range a.elements(c) {
				p := *(*uintptr)(cptr(c.i[j] + 8*i))
				if p == 0 || stops(c.status()) {
					w.word(wireNull)
					continue
				}
				w.text(cstring(p, maxCString))
			}
		case argStateSlot:
			if f == fnFreeFMUState {
				delete(h.states, h.slots[k])
			} else {
				h.states[h.slots[k]] = *(*uintptr)(cptr(c.i[j]))
			}
		}
	}
}

// scratch is C memory for one request.
type scratch struct {
	mem   cmem // what is too large for block
	block cbuf
	used  uintptr
}

const (
	scratchBlock = 1 << 16
)

func (s *scratch) reset() {
	s.used = 0
	if len(s.mem.blocks) > 0 {
		s.mem.release()
	}
}

func (s *scratch) alloc(size uintptr) (uintptr, error) {
	if s.block.p == nil {
		if err := s.block.reserve(scratchBlock); err != nil {
			return 0, err
		}
	}
	size = (size + 15) &^ 15
	if size > s.block.size-s.used {
		p, err := s.mem.alloc(size)
		return uintptr(p), err
	}
	p := uintptr(s.block.p) + s.used
	s.used += size
	clear(unsafe.Slice((*byte)(cptr(p)), size))
	return p, nil
}
