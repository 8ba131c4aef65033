package fmi

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
	"github.com/macrostep/macrostep/fmi/process"
)

// A process records its active FMI calls, its instances and the last log messages of its
// FMUs in the memory that it shares with its parent (process.Shared):
//
//   - Batches of calls, from which the active calls can be read.
//   - Regions instances.0, instances.1 … with an entry for each instance or library. The
//     tags of calls are numbers of entries.
//   - Region messages with the last messages.
//
// Without shared memory they are in ordinary memory.
const messagesRegion = "messages"

// functionName returns the name of the function in a tag, "" if the tag is invalid.
func functionName(t native.Tag) string {
	switch f, loading, ending := t.Function(); {
	case loading:
		return Loads
	case ending:
		return Ends
	case f < 0 || capi.Function(f).Number() >= capi.NumFunctions:
		return ""
	default:
		return capi.Function(f).String()
	}
}

// Loads is the function of a Call that loads a library and runs its initialisers.
const Loads = "loading"

// Ends is the function of a Call, or of a *ProcessError, at the end of a process (Exit).
const Ends = "its exit handlers and destructors"

// noted is the entry of an instance or of a library.
type noted struct {
	use       uint64 // 0 = free, notedInstance or notedLibrary
	component [128]byte
	fmu       [640]byte
	hash      [96]byte
	model     [136]byte
}

// Uses of an entry.
const (
	notedInstance = 1 + iota
	notedLibrary
)

var entries = process.Pool[noted]{Name: "instances", Many: 64}

// note makes an entry for an instance or a library and returns its tag.
func note(use uint64, component string, f *FMU) native.Tag {
	k, e := entries.Take()
	model := ""
	if f.Description != nil {
		model = f.Description.ModelName
	}
	put(e.component[:], component)
	put(e.fmu[:], f.Path)
	put(e.hash[:], f.Hash)
	put(e.model[:], model)
	atomic.StoreUint64(&e.use, use)
	return native.NewTag(k)
}

// forget frees the entry of a tag.
func forget(t native.Tag) {
	if t != 0 {
		atomic.StoreUint64(&entries.At(t.Number()).use, 0)
		entries.Free(t.Number())
	}
}

// markLoaded removes the instance from the entry of a library after loading.
func markLoaded(t native.Tag) { put(entries.At(t.Number()).component[:], "") }

// put copies as many whole characters of a text as fit, and fills the rest with zeros.
func put(to []byte, text string) {
	n := min(len(to), len(text))
	for n < len(text) && n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	clear(to[copy(to, text[:n]):])
}

// Call is a call of an FMU that is under way in another process, or was when that ended.
type Call struct {
	Component string  // name of the instance, or those that a library is loaded for; "" = not known
	FMU       string  // path
	Hash      string  // of the FMU; "" = not known
	Model     string  // name of the model
	Function  string  // for example "fmi2DoStep"; see Loads, Ends
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

// Calls returns the active FMI calls of the process that shares a page, or those at its
// end. It omits entries that have been overwritten, and calls in other processes.
func Calls(p *process.Page) []Call {
	var calls []Call
	known := map[int]Call{} // by the number of the entry
	for n, e := range entries.In(p) {
		if atomic.LoadUint64(&e.use) != 0 {
			known[n] = e.call()
		}
	}
	for _, c := range native.Crossings(p) {
		call, name := known[c.Tag.Number()], functionName(c.Tag)
		if name == "" || call.FMU == "" {
			continue
		}
		call.Function, call.ID = name, c.ID
		if !math.IsNaN(c.Time) {
			call.Time, call.Timed = c.Time, true
		}
		calls = append(calls, call)
	}
	return calls
}

// call returns an entry as a call without function.
func (e *noted) call() Call {
	return Call{Component: taken(e.component[:]), FMU: taken(e.fmu[:]), Hash: taken(e.hash[:]), Model: taken(e.model[:])}
}

// taken returns a text that put has written, from memory that may have been overwritten with anything.
func taken(from []byte) string {
	text, _, _ := bytes.Cut(bytes.Clone(from), []byte{0})
	return capi.Escaped(capi.ValidUTF8(string(text)))
}

// Loaded returns the FMUs in the process that shares a page, as calls without function.
// If no call is active, a thread of one of them may have ended the process. The instances
// come first, then the libraries without instance.
func Loaded(p *process.Page) []Call {
	var all, libraries []Call
	for _, e := range entries.In(p) {
		switch atomic.LoadUint64(&e.use) {
		case notedInstance:
			all = append(all, e.call())
		case notedLibrary:
			libraries = append(libraries, e.call())
		}
	}
	for _, l := range libraries {
		if !slices.ContainsFunc(all, func(c Call) bool { return c.FMU == l.FMU && c.Hash == l.Hash }) {
			all = append(all, l)
		}
	}
	return all
}

// message is a slot for a log message.
type message struct {
	count    uint64 // 1 is the first message
	status   int32
	_        uint32
	instance [96]byte
	text     [diag.MaxLine]byte
}

const keptMessages = 8

// messages are the last messages of the FMUs.
var messages struct {
	sync.Mutex
	count uint64
	all   []message
}

// report stores a message for the parent.
func report(m native.Message) {
	if process.Shared() == nil {
		return
	}
	messages.Lock()
	defer messages.Unlock()
	if messages.all == nil {
		memory := process.Shared().Region(messagesRegion, keptMessages*int(unsafe.Sizeof(message{})))
		messages.all = process.Values[message](memory, keptMessages)
	}
	messages.count++
	to := &messages.all[messages.count%keptMessages]
	atomic.StoreUint64(&to.count, 0)
	to.status = m.Status
	put(to.instance[:], m.Instance)
	put(to.text[:], diag.Clip(m.Text, diag.MaxLine-len("…")))
	atomic.StoreUint64(&to.count, messages.count)
}

// LastMessages returns up to eight last log messages of FMUs in the process that shares a
// page, the oldest first: instance, status, and the first 400 bytes of the text. They
// include messages of instances in other processes.
func LastMessages(p *process.Page) []LogMessage {
	kept := slices.Clone(process.Values[message](p.Find(messagesRegion), keptMessages))
	slices.SortFunc(kept, func(a, b message) int { return cmp.Compare(a.count, b.count) })
	var out []LogMessage
	for _, m := range kept {
		if m.count > 0 {
			out = append(out, LogMessage{Instance: taken(m.instance[:]), Status: Status(m.status), Text: taken(m.text[:])})
		}
	}
	return out
}
