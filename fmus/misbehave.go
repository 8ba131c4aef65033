package fmus

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Misbehaving gives the names of the FMUs that do something wrong on purpose.
// They are for tests of what a master makes of it; Build builds them as it does
// those of Names, and BuildMisbehaving with other start values.
//
//   - misbehave: declares and has every capability. Its parameters say what goes
//     wrong: fault what, during in which function, at from which time on, times
//     how often (0: always). See src/misbehave.c.
//     The fault Uncommitted is one of third-party FMUs: a step without
//     noSetFMUStatePriorToCurrentPoint begins where the last one with it began.
//   - misbehave_plain: the same without any optional capability.
//   - misbehave_lies: declares every capability and has none.
//   - misbehave_constant: no variable steps; refuses steps that differ.
//   - misbehave_once: once per process; refuses a second instance.
//   - misbehave_guid: the guid in modelDescription.xml is not the library's.
//   - misbehave_refuse: fmi2Instantiate gives null.
//   - misbehave_load: loading and fmi2Instantiate change locale, directory,
//     signal handlers and floating-point modes.
//
// Faults may end or hang the process (Kills). The parameter marker, a string,
// names a file in which the FMU counts how often the fault has happened, one byte
// each time: times then counts over all processes, and at2 and at3 hold back the
// second and the third time. So
//
//	fault=Segfault at=0.3 at2=0.5 at3=0.7 times=3 marker=/somewhere/marker
//
// ends the first process in the step from 0.3 s, the second in that from 0.5 s and
// the third in that from 0.7 s; the fourth gets through. The parameters, the
// marker's path among them, are part of the saved and of the serialised state.
func Misbehaving() []string {
	var names []string
	for _, m := range misbehaving() {
		names = append(names, m.name)
	}
	return names
}

// BuildMisbehaving builds one of Misbehaving as Build does, but under the name as,
// which is also its modelIdentifier, and with other start values of parameters:
// numbers, items of an enumeration by name, strings as they are. What is to go
// wrong in fmi2Instantiate has to be a start value, since nothing can be set
// before. Besides the errors of Build there are those of names that do not fit.
func BuildMisbehaving(dir, as, name string, starts map[string]string) (path string, err error) {
	i := slices.IndexFunc(misbehaving(), func(m *model) bool { return m.name == name })
	if i < 0 {
		return "", fmt.Errorf("there is no FMU %q among those that misbehave; there are %v", name, Misbehaving())
	}
	m := misbehaving()[i]
	if !identifier(as) {
		return "", fmt.Errorf("an FMU cannot be called %q: its name consists of letters, digits and underscores", as)
	}
	m.name = as
	for _, parameter := range slices.Sorted(maps.Keys(starts)) {
		if err := m.startAt(parameter, starts[parameter]); err != nil {
			return "", fmt.Errorf("building %s.fmu: %w", as, err)
		}
	}
	return m.write(dir)
}

func identifier(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// startAt changes the start value of a parameter.
func (m *model) startAt(name, value string) error {
	i := slices.IndexFunc(m.variables, func(v variable) bool {
		return v.name == name && (v.role == parameter || v.role == count || v.role == text)
	})
	if i < 0 {
		return fmt.Errorf("there is no parameter %q", name)
	}
	v := &m.variables[i]
	switch {
	case v.role == text:
		if len(value) >= maxText || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%s cannot start at %q: it takes up to %d bytes, none of them 0", name, value, maxText-1)
		}
		v.word = value
	case v.enumeration != "":
		item := slices.Index(v.items, value)
		if item < 0 {
			return fmt.Errorf("%s cannot start at %q; there are %v", name, value, v.items)
		}
		v.start = float64(item)
	case v.role == count:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || float64(n) < *v.min {
			return fmt.Errorf("%s cannot start at %q: it is an integer from %s on", name, value, number(*v.min))
		}
		v.start = float64(n)
	default:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s cannot start at %q: it is a finite number", name, value)
		}
		v.start = x
	}
	return nil
}

// maxText is the room for a string with its end; src/fmu.h has the same.
const maxText = 1024

// Ending is how a process ends in which an FMU does something.
type Ending uint8

const (
	Signalled Ending = iota // by a signal
	Exits                   // by exit, with a code
	Hangs                   // not at all: the function never comes back
	Exhausts                // not by itself: the function returns fmi2Error when memory is refused
)

// Kill is a fault that ends or hangs the process.
type Kill struct {
	Fault  string // item of the parameter fault
	Ending Ending
	Signal syscall.Signal // if Signalled: what ends a process that handles no signals; not on Windows
	Code   int            // if Exits
}

// Kills lists the faults that end or hang the process. Each may happen in any of
// Places.
//
//   - Segfault: writes to address 0.
//   - SegfaultThread: a thread of the FMU's own does, while the function waits.
//   - Abort: abort().
//   - Throw: a C++ exception, std::runtime_error, that nobody catches. It is
//     thrown by the C++ library of the machine (libstdc++ or libc++), found when it
//     is needed; without one, an exception of no language by the unwinder alone,
//     then abort(). On Windows the exception of g++ is raised, no C++ object.
//   - IllegalInstruction: one that no processor has.
//   - Exit0, Exit7: exit(0), exit(7).
//   - StackOverflow: calls itself, 4 KiB a time.
//   - EndlessLoop, EndlessSleep: never comes back, with the processor busy or idle.
//   - MemoryHog: takes and touches memory until it is refused, or up to megabytes
//     MiB, which start at 8192 so that a machine without limits gets over it; 0: no
//     bound. Then it gives fmi2Error, or goes on if nothing was refused. The memory
//     is never given back, save one block of 16 MiB when refused.
//   - KillItself: SIGKILL to its own process.
//
// During LogCallback the fault happens in a step while the logger of the master
// runs: Segfault by a string that cannot be read, the endless ones by messages
// without end (EndlessSleep: a thousand a second), the others in a thread of the
// FMU's own. Before each the FMU logs a warning, "fmi2DoStep: Segfault on purpose
// at t = 0.4".
func Kills() []Kill {
	return []Kill{
		{Fault: "Segfault", Ending: Signalled, Signal: syscall.SIGSEGV},
		{Fault: "SegfaultThread", Ending: Signalled, Signal: syscall.SIGSEGV},
		{Fault: "Abort", Ending: Signalled, Signal: syscall.SIGABRT},
		{Fault: "Throw", Ending: Signalled, Signal: syscall.SIGABRT},
		{Fault: "IllegalInstruction", Ending: Signalled, Signal: syscall.SIGILL},
		{Fault: "Exit0", Ending: Exits},
		{Fault: "Exit7", Ending: Exits, Code: 7},
		{Fault: "StackOverflow", Ending: Signalled, Signal: syscall.SIGSEGV},
		{Fault: "EndlessLoop", Ending: Hangs},
		{Fault: "EndlessSleep", Ending: Hangs},
		{Fault: "MemoryHog", Ending: Exhausts},
		{Fault: "KillItself", Ending: Signalled, Signal: syscall.SIGKILL},
	}
}

// Faults lists what can go wrong, None first: the items of the parameter fault.
func Faults() []string {
	all := slices.Clone(faults)
	for _, k := range Kills() {
		all = append(all, k.Fault)
	}
	return all
}

// Places lists where: the items of the parameter during. They are the functions of
// FMI without their fmi2, and LogCallback, which is for Kills alone.
func Places() []string { return slices.Clone(places) }

// Items of the enumerations, of fault those before the kills. The C source gets
// them as Fault_None, … through guid.h.
var (
	faults = []string{
		"None", "Warning", "Discard", "DiscardMute", "DiscardAndEnd", "TooLong", "Error", "Fatal", "Undefined",
		"Pending", "NaN", "Infinity", "StopShort",
		"LogStorm", "LogFormats", "LogThread", "LogEnvironment", "LogName",
		"Rounding", "FlushToZero", "Exceptions", "Locale", "Directory", "Signals",
		"ForgetState", "WrongDerivatives", "RefuseOrders", "IgnoreOrders", "Uncommitted",
	}
	places = []string{
		"DoStep", "GetReal", "SetReal", "SetRealInputDerivatives", "GetDirectionalDerivative", "GetFMUstate", "SetFMUstate",
		"EnterInitializationMode", "ExitInitializationMode", "Terminate", "FreeInstance",
		"Instantiate", "SetupExperiment", "SerializeFMUstate", "DeSerializeFMUstate", "LogCallback",
	}
	endings = []string{"OK", "Discard", "Error", "Fatal", "Uncancellable"}
)

func misbehaving() []*model {
	const (
		variable = ` canHandleVariableCommunicationStepSize="true"`
		async    = ` canRunAsynchronuously="true"`
		optional = async + ` canInterpolateInputs="true" maxOutputDerivativeOrder="5" canGetAndSetFMUstate="true"` +
			` canSerializeFMUstate="true" providesDirectionalDerivative="true"`
		once = ` canBeInstantiatedOnlyOncePerProcess="true"`
	)
	m := func(name, attributes string, defines ...string) *model {
		return &model{name: name, description: "Does one thing wrong, on purpose", wrapped: true, starts: true,
			sources: []string{"lti.h", "lti.c", "wrap.h", "thread.h", "thread.c", "kill.h", "kill.c", "misbehave.c"}, defines: defines,
			stop: 1, step: 0.1, attributes: attributes, variables: misbehaviour()}
	}
	all := []*model{
		m("misbehave", variable+optional),
		m("misbehave_plain", variable),
		m("misbehave_lies", variable+optional, "FMU_PLAIN"),
		m("misbehave_constant", async, "MISBEHAVE_CONSTANT"),
		m("misbehave_once", variable+optional+once, "MISBEHAVE_ONCE"),
		m("misbehave_guid", variable),
		m("misbehave_refuse", variable, "MISBEHAVE_REFUSE"),
		m("misbehave_load", variable, "MISBEHAVE_LOAD"),
	}
	for _, m := range all {
		m.wrongGUID = m.name == "misbehave_guid"
	}
	return all
}

// misbehaviour lists the variables. That w does not depend on u is true only as
// long as d is 0: otherwise it is a feedthrough that is not declared.
func misbehaviour() []variable {
	integer := func(name string, start float64, description string, min float64) variable {
		v := variable{name: name, description: description, role: count, start: start, min: &min}
		return v
	}
	choice := func(name, kind, description string, items []string) variable {
		return variable{name: name, description: description, role: count, enumeration: kind, items: items}
	}
	return []variable{
		in("u", "", "input"),
		st("x", "", "x' = -x + u", "x0"),
		st("z", "", "z' = x"),
		der("x", "", "derivative of x", []string{"x0"}, fixed("u", "x")...),
		der("z", "", "derivative of z", []string{"x0"}, fixed("x")...),
		calc("w", "", "x + d u", []string{"x0"}, fixed("x")...),
		{name: "time", unit: "s", description: "time that the FMU has reached", role: independent},
		par("x0", "", 1, "x at the start"),
		par("d", "", 0, "feedthrough from u to w, which is not declared"),
		par("at", "s", 0, "from when on the fault happens"),
		par("at2", "s", 0, "from when on it happens for the second time; 0: as soon as it can"),
		par("at3", "s", 0, "from when on it happens for the third time and later; 0: as soon as it can"),
		par("above", "s", 0, "TooLong: steps above this size are discarded"),
		par("fraction", "", 0, "part of a step that is made before it is discarded or silently ended"),
		choice("fault", "Fault", "what goes wrong", Faults()),
		choice("during", "During", "in which function", places),
		choice("ending", "Ending", "how a pending step ends", endings),
		integer("times", 0, "how often it goes wrong; 0: always", 0),
		integer("polls", 0, "how often a step is found pending; -1: for ever", -1),
		integer("messages", 5, "how many messages of LogStorm, and at once of LogThread", 0),
		integer("variable", 1, "value reference of what is NaN or infinite in fmi2GetReal", 0),
		integer("megabytes", 8192, "MemoryHog: how much memory it takes at most, in MiB; 0: until it is refused", 0),
		{name: "marker", description: "file in which all processes count how often it went wrong; none: each instance for itself", role: text},
	}
}
