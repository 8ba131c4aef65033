package native

import (
	"runtime/debug"
	"sync"

	"github.com/ebitengine/purego"
)

// Listener receives the log messages of an instance, in any thread.
type Listener interface {
	Name() string // of the instance
	// Logged gets the formatted text and the category as C gave them. readable is false if they are not readable, then
	// they are empty; wrong is true if the environment was wrong and the instance was found by its name or because it is
	// the only one.
	Logged(m Message, readable, wrong bool)
}

// Message is a message of an FMU, or of macrostep about it.
type Message struct {
	Instance       string // set by the Listener
	Status         int32
	Category, Text string
}

// handleBase precedes the environments of instances. These are numbers that are looked
// up and never dereferenced, because some FMUs pass something else (checklist fmi2 33).
// No user address has these high bits, so a stray pointer is not a valid environment.
const handleBase uintptr = 0x4d53 << 48

// listeners are the receivers of log messages by environment. The process has one logger
// callback of each kind, since callbacks of Go cannot be freed.
var listeners = struct {
	sync.Mutex
	issued uintptr // handles given out so far, handleBase+1 … handleBase+issued
	by     map[uintptr]Listener
}{by: map[uintptr]Listener{}}

// LogCallback returns the address of the logger callback. Its arguments are environment,
// name of the instance, status, category, format and variadic arguments.
var LogCallback = sync.OnceValue(func() uintptr { return logEntry(0, newLogCallback()) })

// PlainLogCallback returns the address of the logger callback whose arguments are environment, status, category and
// message, which is no format (FMI 3.0, section 2.3.1).
var PlainLogCallback = sync.OnceValue(func() uintptr {
	return logEntry(1, purego.NewCallback(func(env, status, category, message uintptr) uintptr {
		receiveLog(env, 0, int32(status), category, message, nil)
		return 0 // Windows wants a result
	}))
})

// Listen returns a new environment for l.
func Listen(l Listener) (environment uintptr) {
	listeners.Lock()
	defer listeners.Unlock()
	listeners.issued++
	environment = handleBase + listeners.issued
	listeners.by[environment] = l
	return environment
}

// Unlisten discards later messages with an environment.
func Unlisten(environment uintptr) {
	listeners.Lock()
	defer listeners.Unlock()
	delete(listeners.by, environment)
}

// findListener returns the listener for an environment or, if the environment is wrong,
// for the name of an instance; of a plain message, which has no name, the only listener. For
// the environment of a freed instance it does not read the name, which may be freed as well.
func findListener(environment, name uintptr, plain bool) (l Listener, wrong bool) {
	listeners.Lock()
	defer listeners.Unlock()
	if environment-handleBase-1 < listeners.issued {
		return listeners.by[environment], false
	}
	n := String(name, maxField)
	for _, l := range listeners.by {
		if plain && len(listeners.by) == 1 || !plain && l.Name() == n {
			return l, true
		}
	}
	return nil, true
}

// receiveLog is the body of every logger callback; args is nil for a plain message.
func receiveLog(environment, instance uintptr, status int32, category, message uintptr, args *slots) {
	leaveFork()
	// A panic must not unwind the frames of C. Unreadable memory also panics.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	if l, wrong := findListener(environment, instance, args == nil); l != nil {
		m, readable := readMessage(category, message, args)
		m.Status = status
		l.Logged(m, readable, wrong)
	}
}

// readMessage reads the texts of a message.
func readMessage(category, message uintptr, args *slots) (m Message, readable bool) {
	defer func() { _ = recover() }()
	text := String(message, maxMessage)
	if args != nil {
		text = cformat(text, args)
	}
	return Message{Category: String(category, maxField), Text: text}, true
}
