package fmi

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// LogMessage is one message of an FMU, or of the binding about it (category
// "macrostep").
type LogMessage struct {
	Instance string
	Status   Status
	Category string // "" if the FMU gave none; it need not be a declared one
	Text     string // formatted, valid UTF-8, variable references replaced by names
}

// OwnCategory is the category of messages that come from the binding itself.
const OwnCategory = "macrostep"

// WrongEnvironment is the message of the binding about an FMU that does not hand back
// its componentEnvironment (checklist fmi2 33).
const WrongEnvironment = "the FMU calls the logger with a wrong componentEnvironment; its messages are found by instance name"

// callbackFunctions is fmi2CallbackFunctions (checklist fmi2 31).
type callbackFunctions struct {
	logger, allocateMemory, freeMemory, stepFinished, environment uintptr
}

// newCallbacks makes q receive what is logged and returns the address of its callback
// struct. The struct is never freed: a thread that the FMU left behind may still
// read it, and old exporters keep the pointer (checklist fmi2 31).
func newCallbacks(q *logQueue) (uintptr, error) {
	calloc, free, err := native.Allocator()
	if err != nil {
		return 0, err
	}
	p, err := native.Alloc(unsafe.Sizeof(callbackFunctions{}))
	if err != nil {
		return 0, err
	}
	q.handle = native.Listen(q)
	// stepFinished stays null: a pending step is polled (checklist fmi2 32, 53).
	*(*callbackFunctions)(p) = callbackFunctions{
		logger: native.LogCallback(), allocateMemory: calloc, freeMemory: free, environment: q.handle,
	}
	return uintptr(p), nil
}

// unregister makes later messages of the instance be ignored.
func (q *logQueue) unregister() { native.Unlisten(q.handle) }

// Name returns the name that the instance logs under.
func (q *logQueue) Name() string { return q.instance }

// Logged takes a message from C.
func (q *logQueue) Logged(l native.Logged) {
	if l.Unreadable {
		q.say("the FMU logs a text that cannot be read, or with values that are none")
		return
	}
	if q.name != nil {
		l.Text = expandReferences(l.Text, q.name)
	}
	q.receive(LogMessage{Instance: q.instance, Status: Status(l.Status), Category: validUTF8(l.Category), Text: validUTF8(l.Text)}, l.Wrong)
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// escaped makes control characters visible: what an FMU says becomes part of an
// error, and is to do nothing to a terminal.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case unicode.IsControl(r):
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// expandReferences replaces #r12# by the name of the Real variable with value
// reference 12, likewise i, b and s, and ## by # (checklist fmi2 34). What does
// not match stays as it is.
func expandReferences(s string, name func(kind byte, vr description.ValueReference) (string, bool)) string {
	k := strings.IndexByte(s, '#')
	if k < 0 {
		return s
	}
	var o strings.Builder
	for ; k >= 0; k = strings.IndexByte(s, '#') {
		o.WriteString(s[:k])
		s = s[k:]
		if strings.HasPrefix(s, "##") {
			o.WriteByte('#')
			s = s[2:]
			continue
		}
		if n, text := parseReference(s, name); n > 0 {
			o.WriteString(text)
			s = s[n:]
			continue
		}
		o.WriteByte('#')
		s = s[1:]
	}
	o.WriteString(s)
	return o.String()
}

// parseReference reads #r12# at the start of s and gives its length, 0 if it is none.
func parseReference(s string, name func(kind byte, vr description.ValueReference) (string, bool)) (int, string) {
	if len(s) < 4 || strings.IndexByte("ribs", s[1]) < 0 {
		return 0, ""
	}
	var vr uint64
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			if vr = vr*10 + uint64(c-'0'); vr > 1<<32-1 {
				return 0, ""
			}
		case c == '#' && i > 2:
			if n, ok := name(s[1], description.ValueReference(vr)); ok {
				return i + 1, n
			}
			return 0, ""
		default:
			return 0, ""
		}
	}
	return 0, ""
}

// Bounds on what an FMU may log within a second; the rest is counted and
// reported as one message.
const (
	logWindow     = time.Second
	logMaxCount   = 2000
	logMaxBytes   = 1 << 20
	recentLines   = 4   // kept for StatusError.Msg
	recentLineLen = 400 // bytes of each
)

// logQueue takes the messages of one instance from whatever thread they come,
// and delivers them one at a time: who finds no delivery going on delivers, in
// order, all that has come meanwhile. The lock is not held while the sink runs,
// so that a sink which calls an FMU that logs does not block itself.
type logQueue struct {
	instance string
	fmu      string // its file
	handle   uintptr
	name     func(kind byte, vr description.ValueReference) (string, bool)
	sink     func(LogMessage)
	keep     func(text string) // told of each message before any is dropped; nil = nobody is

	mu         sync.Mutex
	queue      []LogMessage
	delivering bool
	recent     []string
	warned     bool // of a wrong componentEnvironment

	window       time.Time
	count, bytes int
	dropped      int
}

// receive takes one message of the FMU.
func (q *logQueue) receive(m LogMessage, wrongEnvironment bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remember(m)
	if q.sink == nil {
		return
	}
	if wrongEnvironment && !q.warned {
		q.warned = true
		q.queue = append(q.queue, q.own(WrongEnvironment))
	}
	if t := time.Now(); t.Sub(q.window) >= logWindow {
		q.endWindow()
		q.window = t
	}
	if q.count >= logMaxCount || q.bytes+len(m.Text) > logMaxBytes {
		q.dropped++
	} else {
		q.count++
		q.bytes += len(m.Text)
		q.queue = append(q.queue, m)
	}
	q.deliver()
}

// relay takes a message that the queue of another process has let pass.
func (q *logQueue) relay(m LogMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m.Category != OwnCategory {
		q.remember(m)
	}
	if q.sink != nil {
		q.queue = append(q.queue, m)
		q.deliver()
	}
}

// remember keeps the last lines at Warning or above; q.mu is held.
func (q *logQueue) remember(m LogMessage) {
	report(m)
	if q.keep != nil {
		q.keep(m.Text)
	}
	if m.Status != StatusOK && m.Status != StatusPending {
		q.recent = lastLines(q.recent, m.Text)
	}
}

// lastLines adds a line, bounded, to the last few.
func lastLines(lines []string, line string) []string {
	line = escaped(line)
	if len(line) > recentLineLen {
		line = validUTF8(line[:recentLineLen]) + "…"
	}
	if len(lines) == recentLines {
		lines = append(lines[:0], lines[1:]...)
	}
	return append(lines, strings.TrimSpace(line))
}

// say queues a message of the binding about the instance.
func (q *logQueue) say(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sink != nil {
		q.queue = append(q.queue, q.own(text))
		q.deliver()
	}
}

// close reports what is still to be reported.
func (q *logQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sink != nil {
		q.endWindow()
		q.deliver()
	}
}

func (q *logQueue) own(text string) LogMessage {
	return LogMessage{Instance: q.instance, Status: StatusWarning, Category: OwnCategory, Text: q.fmu + ": " + text}
}

func (q *logQueue) endWindow() {
	if q.dropped > 0 {
		q.queue = append(q.queue, q.own(fmt.Sprintf("%d log messages of the FMU dropped: more than %d or %d bytes within %v",
			q.dropped, logMaxCount, logMaxBytes, logWindow)))
	}
	q.count, q.bytes, q.dropped = 0, 0, 0
}

// deliver hands the queue to the sink; q.mu is held on entry and on return.
func (q *logQueue) deliver() {
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

// hand calls the sink without the lock.
func (q *logQueue) hand(m LogMessage) {
	q.mu.Unlock()
	defer q.mu.Lock()
	q.sink(m)
}

// takeRecent gives the last lines at Warning or above and forgets them.
func (q *logQueue) takeRecent() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := strings.Join(q.recent, "; ")
	q.recent = q.recent[:0]
	return s
}
