package native

import (
	"runtime/debug"
	"sync"
)

// Listener takes what an instance logs, in any thread.
type Listener interface {
	Name() string // of the instance
	Logged(Logged)
}

// Logged is one call of the logger.
type Logged struct {
	Status         int32
	Category, Text string // as C gave them; the text is formatted
	Wrong          bool   // the environment was not that of the instance, which was found by its name
	Unreadable     bool   // text or arguments; there is nothing else then
}

// handleBase starts the numbers that instances get as environment. They are
// numbers and not addresses, because some FMUs hand back something else: a
// number is looked up and never dereferenced (checklist fmi2 33). The high bits
// are those of no user address, so that a stray pointer is not taken for one.
const handleBase uintptr = 0x4d53 << 48

// listeners routes log messages to instances. There is one logger callback
// in the process, since callbacks of Go can never be freed.
var listeners = struct {
	sync.Mutex
	issued uintptr // handles given out so far, handleBase+1 … handleBase+issued
	by     map[uintptr]Listener
}{by: map[uintptr]Listener{}}

// LogCallback returns the function that C calls to log: environment, name of the instance,
// status, category, format, variadic arguments.
var LogCallback = sync.OnceValue(func() uintptr { return logEntry(newLogCallback()) })

// Listen hands out the environment with which l is called.
func Listen(l Listener) (environment uintptr) {
	listeners.Lock()
	defer listeners.Unlock()
	listeners.issued++
	environment = handleBase + listeners.issued
	listeners.by[environment] = l
	return environment
}

// Unlisten makes later messages with an environment be ignored.
func Unlisten(environment uintptr) {
	listeners.Lock()
	defer listeners.Unlock()
	delete(listeners.by, environment)
}

// findListener returns the listener for an environment, else for the name of an
// instance; wrong reports that the environment was none that was handed out. The
// name is not read for the environment of a freed instance: it may be freed as well.
func findListener(environment, name uintptr) (l Listener, wrong bool) {
	listeners.Lock()
	defer listeners.Unlock()
	if environment-handleBase-1 < listeners.issued {
		return listeners.by[environment], false
	}
	n := String(name, maxField)
	for _, l := range listeners.by {
		if l.Name() == n {
			return l, true
		}
	}
	return nil, true
}

// receiveLog is the body of every platform's logger callback.
func receiveLog(environment, instance uintptr, status int32, category, message uintptr, args cArgs) {
	leaveFork()
	// A panic must not unwind C's frames: the FMU would be left half-done. Memory that
	// cannot be read panics too.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	if l, wrong := findListener(environment, instance); l != nil {
		m := readLogged(category, message, args)
		m.Status, m.Wrong = status, wrong
		l.Logged(m)
	}
}

// readLogged reads the texts of a message.
func readLogged(category, message uintptr, args cArgs) (m Logged) {
	m.Unreadable = true
	defer func() { _ = recover() }()
	text := cformat(String(message, maxMessage), args)
	return Logged{Category: String(category, maxField), Text: text}
}
