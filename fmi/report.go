package fmi

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
	"github.com/macrostep/macrostep/fmi/process"
)

// A process reports into the memory that it shares with its parent (process.Shared) which
// calls of FMUs are under way, what instances there are and what FMUs have logged last:
//
//   - The batches lie there, so that the calls under way can be read (crossings).
//   - Regions instances.0, instances.1 … consist of entries, which the tags refer to by
//     number.
//   - Region messages holds the last messages.
//
// Without shared memory all this is ordinary memory.
const (
	instancesRegion = "instances."
	messagesRegion  = "messages"
)

// functionName returns the name of what a tag says is called, "" if it is none.
func functionName(t native.Tag) string {
	switch f, loading := t.Function(); {
	case loading:
		return Loads
	case f < 0 || f >= int(fmi2.NumFunctions):
		return ""
	default:
		return fmi2.Function(f).String()
	}
}

// Loads is the function of a Call in which a library is loaded: its initialisers run.
const Loads = "loading"

// noted is the entry of an instance or of a library.
type noted struct {
	use                             uint64 // 0 = free, else one of the uses below
	nComponent, nFMU, nHash, nModel uint32
	component                       [128]byte
	fmu                             [640]byte
	hash                            [96]byte
	model                           [136]byte
}

// Uses of an entry.
const (
	notedInstance = 1 + iota
	notedLibrary
)

const notedMany = 64 // entries of a region

// entries are those of this process; number k+1 is that of entry k.
var entries struct {
	sync.Mutex
	all  []*noted
	free []int
}

// note enters an instance or a library and returns the tag that refers to it.
func note(use uint64, component string, f *FMU) native.Tag {
	entries.Lock()
	defer entries.Unlock()
	if len(entries.free) == 0 {
		memory := process.Shared().Region(fmt.Sprint(instancesRegion, len(entries.all)/notedMany), notedMany*int(unsafe.Sizeof(noted{})))
		all := unsafe.Slice((*noted)(unsafe.Pointer(&memory[0])), notedMany)
		for k := range all {
			entries.free = append(entries.free, len(entries.all))
			entries.all = append(entries.all, &all[k])
		}
		slices.Reverse(entries.free)
	}
	last := len(entries.free) - 1
	k := entries.free[last]
	entries.free = entries.free[:last]
	e := entries.all[k]
	model := ""
	if f.Description != nil {
		model = f.Description.ModelName
	}
	e.nComponent = put(e.component[:], component)
	e.nFMU = put(e.fmu[:], f.Path)
	e.nHash = put(e.hash[:], f.Hash)
	e.nModel = put(e.model[:], model)
	atomic.StoreUint64(&e.use, use)
	return native.NewTag(k + 1)
}

// forget gives the entry of a tag back.
func forget(t native.Tag) {
	if t == 0 {
		return
	}
	entries.Lock()
	defer entries.Unlock()
	k := t.Number() - 1
	atomic.StoreUint64(&entries.all[k].use, 0)
	entries.free = append(entries.free, k)
}

// loaded makes the entry of a library that is being loaded one of a loaded library.
func markLoaded(t native.Tag) {
	entries.Lock()
	defer entries.Unlock()
	entries.all[t.Number()-1].nComponent = 0
}

// put copies as much of a text as fits, whole characters, and returns its length.
func put(to []byte, text string) uint32 {
	n := min(len(to), len(text))
	for n < len(text) && n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return uint32(copy(to, text[:n]))
}

// Call is a call of an FMU that is under way in another process, or was when that ended.
type Call struct {
	Component string  // name of the instance, or those that a library is loaded for; "" = not known
	FMU       string  // path
	Hash      string  // of the FMU; "" = not known
	Model     string  // name of the model
	Function  string  // for example "fmi2DoStep"; see Loads
	Time      float64 // s, where the FMU was or where the step began; see Timed
	Timed     bool    // there is a time: SetupExperiment had been called
	// ID differs from that of every other call: one that is found twice has lasted.
	ID uint64
}

// String names component, FMU, function and time.
func (c Call) String() string {
	text := filepath.Base(c.FMU)
	if c.Component != "" {
		text = fmt.Sprintf("%s (%s)", c.Component, text)
	}
	text += " in " + c.Function
	if c.Timed {
		text += fmt.Sprintf(" at t = %.12g s", c.Time)
	}
	return text
}

// Calls returns the calls of FMUs that are under way in the process that reports into a
// page, or were when it ended. What the process has written over is left out. Calls of
// instances that have processes of their own are none of that process.
func Calls(p *process.Page) []Call {
	var calls []Call
	known := instances(p)
	for _, c := range native.Crossings(p) {
		k, name := c.Tag.Number(), functionName(c.Tag)
		if k == 0 || k > len(known) || name == "" || known[k-1].FMU == "" {
			continue
		}
		call := known[k-1]
		call.Function, call.ID = name, c.ID
		if !math.IsNaN(c.Time) {
			call.Time, call.Timed = c.Time, true
		}
		calls = append(calls, call)
	}
	return calls
}

// instances returns what is in the entries, as calls without function: number k+1 is at k;
// without FMU where there is none.
func instances(p *process.Page) []Call {
	var all []Call
	eachNoted(p, func(e *noted) {
		if atomic.LoadUint64(&e.use) == 0 {
			all = append(all, Call{})
			return
		}
		all = append(all, e.call())
	})
	return all
}

func eachNoted(p *process.Page, f func(*noted)) {
	for k := 0; ; k++ {
		memory := p.Find(fmt.Sprint(instancesRegion, k))
		if memory == nil {
			return
		}
		all := unsafe.Slice((*noted)(unsafe.Pointer(&memory[0])), min(len(memory)/int(unsafe.Sizeof(noted{})), notedMany))
		for j := range all {
			f(&all[j])
		}
	}
}

func (e *noted) call() Call {
	return Call{Component: taken(e.component[:], e.nComponent), FMU: taken(e.fmu[:], e.nFMU),
		Hash: taken(e.hash[:], e.nHash), Model: taken(e.model[:], e.nModel)}
}

// taken returns a text from memory that anything may stand in.
func taken(from []byte, length uint32) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, fmi2.ValidUTF8(string(from[:min(int64(length), int64(len(from)))])))
}

// Loaded returns the FMUs in the process that reports into a page, as calls without
// function: those that may have ended it by a thread of their own, when no call is under
// way. First the instances, then, without component, the libraries that have none.
func Loaded(p *process.Page) []Call {
	var all, libraries []Call
	eachNoted(p, func(e *noted) {
		switch atomic.LoadUint64(&e.use) {
		case notedInstance:
			all = append(all, e.call())
		case notedLibrary:
			libraries = append(libraries, e.call())
		}
	})
	for _, l := range libraries {
		if !slices.ContainsFunc(all, func(c Call) bool { return c.FMU == l.FMU && c.Hash == l.Hash }) {
			all = append(all, l)
		}
	}
	return all
}

// message is a place for a log message.
type message struct {
	count            uint64 // 1 is the first message
	status           int32
	nInstance, nText uint32
	_                uint32
	instance         [96]byte
	text             [fmi2.MaxLine]byte
}

const keptMessages = 8

// messages are the last ones of the FMUs.
var messages struct {
	sync.Mutex
	count uint64
	all   []message
}

// report keeps a message where the parent finds it.
func report(m fmi2.Message) {
	if process.Shared() == nil {
		return
	}
	messages.Lock()
	defer messages.Unlock()
	if messages.all == nil {
		memory := process.Shared().Region(messagesRegion, keptMessages*int(unsafe.Sizeof(message{})))
		messages.all = unsafe.Slice((*message)(unsafe.Pointer(&memory[0])), keptMessages)
	}
	messages.count++
	to := &messages.all[messages.count%keptMessages]
	atomic.StoreUint64(&to.count, 0)
	to.status = m.Status
	to.nInstance, to.nText = put(to.instance[:], m.Instance), put(to.text[:], m.Text)
	atomic.StoreUint64(&to.count, messages.count)
}

// LastMessages returns the last messages that FMUs have logged in the process that reports
// into a page, at most eight, the oldest first: instance, status, and the first 400 bytes
// of the text. Those of instances that have processes of their own are among them.
func LastMessages(p *process.Page) []LogMessage {
	type counted struct {
		count uint64
		LogMessage
	}
	var all []counted
	memory := p.Find(messagesRegion)
	if memory == nil {
		return nil
	}
	kept := unsafe.Slice((*message)(unsafe.Pointer(&memory[0])), min(len(memory)/int(unsafe.Sizeof(message{})), keptMessages))
	for k := range kept {
		m := &kept[k]
		if n := atomic.LoadUint64(&m.count); n > 0 {
			all = append(all, counted{n, LogMessage{Instance: taken(m.instance[:], m.nInstance), Status: Status(m.status), Text: taken(m.text[:], m.nText)}})
		}
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Compare(a.count, b.count) })
	var out []LogMessage
	for _, m := range all {
		out = append(out, m.LogMessage)
	}
	return out
}
