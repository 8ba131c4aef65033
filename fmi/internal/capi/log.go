package capi

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Messages of macrostep.
const (
	OwnCategory      = "macrostep" // of messages
	WrongEnvironment = "the FMU calls the logger with a wrong componentEnvironment; its messages are assigned by instance name"
)

// callbackFunctions is fmi2CallbackFunctions (checklist fmi2 31).
type callbackFunctions struct {
	logger, allocateMemory, freeMemory, stepFinished, environment uintptr
}

// Register registers q for log messages. Its callback struct is never freed: threads of the FMU may still read it,
// and some FMUs keep the pointer (checklist fmi2 31).
func (q *Log) Register() error {
	calloc, free, err := native.Allocator()
	if err != nil {
		return err
	}
	p, err := native.Alloc(unsafe.Sizeof(callbackFunctions{}))
	if err != nil {
		return err
	}
	q.handle = native.Listen(q)
	// stepFinished stays null: a pending step is polled (checklist fmi2 32, 53).
	*(*callbackFunctions)(p) = callbackFunctions{
		logger: native.LogCallback(), allocateMemory: calloc, freeMemory: free, environment: q.handle,
	}
	q.callbacks = uintptr(p)
	return nil
}

// Callback returns the value of an argument of Instantiate with this type, after Register.
func (q *Log) Callback(kind string) uintptr {
	switch kind {
	case "callbacks":
		return q.callbacks
	case "environment":
		return q.handle
	}
	return native.PlainLogCallback()
}

// Unregister discards later messages of the instance.
func (q *Log) Unregister() { native.Unlisten(q.handle) }

// Name returns the name of the instance.
func (q *Log) Name() string { return q.Instance }

// Logged receives a message from C.
func (q *Log) Logged(m native.Message, readable, wrong bool) {
	if !readable {
		q.Say(StatusOK, "the FMU logs an unreadable text or invalid arguments")
		return
	}
	if q.VariableName != nil {
		m.Text = ExpandReferences(m.Text, q.VariableName)
	}
	m.Instance, m.Category, m.Text = q.Instance, ValidUTF8(m.Category), ValidUTF8(m.Text)
	q.receive(m, wrong)
}

// ValidUTF8 returns text of an FMU in UTF-8. Bytes that are not are taken as Latin-1, which older tools write.
func ValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			if r = rune(s[0]); r < 0xa0 { // a control character of Latin-1
				r = '?'
			}
		}
		b.WriteRune(r)
		s = s[n:]
	}
	return b.String()
}

// Escaped returns a message of an FMU in one line, without repeated blanks. It escapes control characters,
// so that a message in an error cannot control a terminal.
func Escaped(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \n\t\r", r) }), " ") {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, "\\x%02x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// reference matches ## and the reference to a variable in a message.
var reference = regexp.MustCompile(`##|#[ribs]\d+#`)

// ExpandReferences replaces #r12# with the name of the Real variable with value reference
// 12, likewise i, b and s, and ## with # (checklist fmi2 34). Other text is unchanged.
func ExpandReferences(s string, name func(kind byte, vr uint32) (string, bool)) string {
	var o strings.Builder
	for {
		at := reference.FindStringIndex(s)
		if at == nil {
			return o.String() + s
		}
		m := s[at[0]:at[1]]
		text, known := "#", m == "##"
		if vr, err := strconv.ParseUint(strings.Trim(m[2:], "#"), 10, 32); err == nil {
			if n, ok := name(m[1], uint32(vr)); ok {
				text, known = n, true
			}
		}
		o.WriteString(s[:at[0]] + text)
		if !known { // only the first # is text
			at[1] = at[0] + 1
		}
		s = s[at[1]:]
	}
}

// Bounds on the messages of an FMU within a second, unless Log.All is set. The last message of a Log
// reports the number of dropped ones.
const (
	logWindow   = time.Second
	MaxMessages = 2000
	logMaxBytes = 1 << 20
)

// Log receives the messages of an instance from any thread and passes them to Sink one at a
// time, in order: the first caller drains the queue. Sink is called without the lock, so it
// may call an FMU that logs.
type Log struct {
	Instance     string
	FMU          string // name of its file
	handle       uintptr
	callbacks    uintptr // address of the struct
	VariableName func(kind byte, vr uint32) (string, bool)
	Sink         func(native.Message)
	Keep         func(native.Message) // receives all messages of the FMU, including dropped ones, one at a time; may be nil
	All          bool                 // drop none

	mu         sync.Mutex
	queue      []native.Message
	delivering bool
	recent     diag.LastLines // for StatusError.Msg
	warned     bool           // of a wrong componentEnvironment

	window       time.Time
	count, bytes int // in the window
	all, dropped int
}

// receive queues a message of the FMU.
func (q *Log) receive(m native.Message, wrong bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remember(m)
	if q.Sink == nil {
		return
	}
	if wrong && !q.warned {
		q.warned = true
		q.queue = append(q.queue, q.own(StatusOK, WrongEnvironment))
	}
	if t := time.Now(); t.Sub(q.window) >= logWindow {
		q.window, q.count, q.bytes = t, 0, 0
	}
	if q.all++; !q.All && (q.count >= MaxMessages || q.bytes+len(m.Text) > logMaxBytes) {
		q.dropped++
	} else {
		q.count++
		q.bytes += len(m.Text)
		q.queue = append(q.queue, m)
	}
	q.deliver()
}

// Relay queues a message from the Log of another process, without bounds.
func (q *Log) Relay(m native.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m.Category != OwnCategory {
		q.remember(m)
	}
	if q.Sink != nil {
		q.queue = append(q.queue, m)
		q.deliver()
	}
}

// remember stores the last lines at Warning or above. The caller holds q.mu.
func (q *Log) remember(m native.Message) {
	if q.Keep != nil {
		q.Keep(m)
	}
	if m.Status != StatusOK && m.Status != StatusPending {
		q.recent.Add(Escaped(m.Text))
	}
}

// Say queues a message of macrostep about the instance: a warning, or with StatusOK a note.
func (q *Log) Say(s int32, text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Sink != nil {
		q.queue = append(q.queue, q.own(s, text))
		q.deliver()
	}
}

// Close reports the number of dropped messages.
func (q *Log) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Sink == nil || q.dropped == 0 {
		return
	}
	q.queue = append(q.queue, q.own(StatusWarning, fmt.Sprintf("%d of %d log messages of the FMU were dropped, because they were more than %d "+
		"or %d KiB in a second; with debug logging (-vv) none is dropped", q.dropped, q.all, MaxMessages, logMaxBytes>>10)))
	q.all, q.dropped = 0, 0
	q.deliver()
}

func (q *Log) own(s int32, text string) native.Message {
	return native.Message{Instance: q.Instance, Status: s, Category: OwnCategory, Text: q.FMU + ": " + text}
}

// deliver passes the queue to Sink, unless another caller does. The caller holds q.mu.
func (q *Log) deliver() {
	if q.delivering {
		return
	}
	q.delivering = true
	defer func() { q.delivering = false }()
	for len(q.queue) > 0 {
		m := q.queue[0]
		q.queue = q.queue[1:]
		q.hand(m)
	}
	q.queue = nil
}

// hand calls Sink without the lock.
func (q *Log) hand(m native.Message) {
	q.mu.Unlock()
	defer q.mu.Lock()
	q.Sink(m)
}

// TakeRecent returns and clears the last lines at Warning or above.
func (q *Log) TakeRecent() string { return strings.Join(q.recent.Take(), "; ") }
