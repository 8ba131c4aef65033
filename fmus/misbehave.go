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

// Misbehaving returns the names of the FMUs that fail on purpose, for tests of
// masters. Build builds them like those of Names, BuildMisbehaving with other start values.
//
//   - misbehave: declares and has every capability. Its parameters select the fault
//     (fault), the function (during), the time from which it happens (at), and
//     how often (times, 0: always). See src/misbehave.c.
//     The fault Uncommitted is known from third-party FMUs: a step without
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
// Faults may end or hang the process (Kills) or damage it (Harms). The string parameter marker
// names a file to which the FMU appends a byte for each fault:
// times then counts over all processes, and at2 and at3 delay the
// second and the third fault. For example,
//
//	fault=Segfault at=0.3 at2=0.5 at3=0.7 times=3 marker=/somewhere/marker
//
// ends the first process in the step from 0.3 s, the second in that from 0.5 s and
// the third in that from 0.7 s; the fourth completes. The parameters, including
// the path of the marker, are part of the saved and of the serialised state.
func Misbehaving() []string {
	var names []string
	for _, m := range misbehaving() {
		names = append(names, m.name)
	}
	return names
}

// BuildMisbehaving builds one of Misbehaving like Build, but under the name as,
// which is also its modelIdentifier, and with other start values of parameters:
// numbers, names of enumeration items, strings. A fault in fmi2Instantiate can only be selected
// by a start value. Errors: those of Build, and names and values that do not fit.
func BuildMisbehaving(dir, as, name string, starts map[string]string) (path string, err error) {
	m, err := misbehavingAs(as, name, starts)
	if err != nil {
		return "", err
	}
	return m.write(dir)
}

// BuildMisbehaving3 is BuildMisbehaving for FMI 3.0. Pending, DiscardMute and what concerns input
// derivatives do not happen there. Discard and TooLong leave the instance as it was; DiscardAndEnd
// returns OK with terminateSimulation, at the time at. Faults of GetReal and SetReal are those of Float64.
func BuildMisbehaving3(dir, as, name string, starts map[string]string) (path string, err error) {
	m, err := misbehavingAs(as, name, starts)
	if err != nil {
		return "", err
	}
	return m.as3().write(dir)
}

func misbehavingAs(as, name string, starts map[string]string) (*model, error) {
	i := slices.IndexFunc(misbehaving(), func(m *model) bool { return m.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no misbehaving FMU is called %q; choose one of %s", name, strings.Join(Misbehaving(), ", "))
	}
	m := misbehaving()[i]
	if !identifier(as) {
		return nil, fmt.Errorf("an FMU cannot be called %q: its name consists of letters, digits and underscores", as)
	}
	m.name = as
	for _, parameter := range slices.Sorted(maps.Keys(starts)) {
		if err := m.startAt(parameter, starts[parameter]); err != nil {
			return nil, fmt.Errorf("building %s.fmu: %w", as, err)
		}
	}
	return m, nil
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
			return fmt.Errorf("%s cannot start at %q; it must be one of %s", name, value, strings.Join(v.items, ", "))
		}
		v.start = float64(item)
	case v.role == count:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || float64(n) < *v.min {
			return fmt.Errorf("%s cannot start at %q: it must be an integer of at least %s", name, value, number(*v.min))
		}
		v.start = float64(n)
	default:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s cannot start at %q: it must be a finite number", name, value)
		}
		v.start = x
	}
	return nil
}

// maxText is the size of the buffer for a string with its final 0, as in src/fmu.h.
const maxText = 1024

// Ending is how a fault ends the process.
type Ending uint8

const (
	Signalled Ending = iota // by a signal
	Exits                   // by exit, with a code
	Hangs                   // not at all: the function never returns
	Leaves                  // when it is seen that the function has ended its thread
	Exhausts                // only by a memory limit: the function returns fmi2Error when memory is refused
)

// Kill is a fault that ends or hangs the process.
type Kill struct {
	Fault  string // item of the parameter fault
	Ending Ending
	Signal syscall.Signal // if Signalled: the signal that ends a process without signal handlers; not on Windows
	Code   int            // if Exits
	Linux  bool           // only on Linux; elsewhere nothing happens
}

// Kills lists the faults that end or hang the process. Each may happen in any of
// Places.
//
//   - Segfault: writes to address 0.
//   - SegfaultThread: a thread of the FMU writes to address 0, while the function waits.
//   - Abort: abort().
//   - Throw: an uncaught C++ exception, std::runtime_error, thrown
//     by the C++ library of the machine (libstdc++ or libc++), which is loaded when
//     needed; without one, an exception of no language by the unwinder alone,
//     then abort(). On Windows the exception of g++ is raised, without a C++ object.
//   - IllegalInstruction: an instruction that no processor has.
//   - Exit0, Exit7: exit(0), exit(7).
//   - StackOverflow: endless recursion, 4 KiB per call.
//   - EndlessLoop, EndlessSleep: never returns, with the processor busy or idle.
//   - MemoryHog: allocates and touches memory until it is refused, or up to the parameter megabytes
//     in MiB (8192 by default; 0: no bound). It returns fmi2Error if memory was refused. It
//     frees no memory, except one block of 16 MiB when refused.
//   - KillItself: SIGKILL to its own process.
//
// On Linux also:
//
//   - FreedText, FreedArgument: logs a text, or a text with an argument, in unreadable memory,
//     like freed memory. UnendedText: the text has no final 0 before such memory.
//   - BusError, DivideByZero, JumpNowhere, FreeTwice: as named.
//   - UnmapStack: unmaps the stack that it runs on.
//   - StackOverflowThread: StackOverflow in a thread of the FMU.
//   - SegfaultWithoutStack, SegfaultTinyStack: Segfault without an alternate signal
//     stack, or with one that is too small.
//   - SegfaultIgnored, SegfaultBlocked, SegfaultHandled: Segfault with SIGSEGV ignored,
//     blocked, or with a handler that returns, so that it repeats forever.
//   - AbortIgnored: abort() with SIGABRT ignored and blocked.
//   - RaiseQuit … RaisePipe: raise() with the signal of that name.
//   - Alarm: alarm(1), then waits for 1.2 s. ProfileTimer, VirtualTimer: a timer
//     sends SIGPROF or SIGVTALRM each millisecond of processor time. All of these
//     return in a process that handles the signals.
//   - ExitNow0, QuickExit0, ExitGroup0: _exit(0), quick_exit(0), the system call
//     exit_group. ExitThread0: a thread of the FMU calls exit(0).
//   - LeaveThread, PthreadExit: ends its thread, by the system call or by
//     pthread_exit.
//   - KillGroup: SIGKILL to its process group, if the process is the leader of one.
//   - StopItself: SIGSTOP to its own process, then sleeps forever.
//   - LoopBlocked: EndlessLoop with all signals blocked.
//
// During LogCallback the fault happens in a step while the logger of the master
// runs: Segfault by an unreadable string, the endless ones by endless messages
// (EndlessSleep: a thousand per second), the others in a thread of the
// FMU. Before each fault the FMU logs a warning, "fmi2DoStep: Segfault on purpose
// at t = 0.4". During Load, Unload and Exit it happens while the library is loaded,
// in its destructor or in its exit handler; this is selected by BuildMisbehaving, and
// nothing is logged.
func Kills() []Kill {
	const segv, abrt, bus, fpe, trap = syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGTRAP
	// Windows has no names for these.
	const quit, sys, prof, vtalrm, xcpu, pipe, stkflt syscall.Signal = 3, 31, 27, 26, 24, 13, 16
	ends := func(fault string, s syscall.Signal) Kill { return Kill{Fault: fault, Signal: s, Linux: true} }
	exits := func(fault string) Kill { return Kill{Fault: fault, Ending: Exits, Linux: true} }
	hangs := func(fault string) Kill { return Kill{Fault: fault, Ending: Hangs, Linux: true} }
	leaves := func(fault string) Kill { return Kill{Fault: fault, Ending: Leaves, Linux: true} }
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
		ends("FreedText", segv), ends("FreedArgument", segv), ends("UnendedText", segv),
		ends("BusError", bus), ends("DivideByZero", fpe), ends("JumpNowhere", segv), ends("FreeTwice", abrt),
		ends("UnmapStack", segv), ends("StackOverflowThread", segv),
		ends("SegfaultWithoutStack", segv), ends("SegfaultTinyStack", segv), ends("SegfaultIgnored", segv),
		ends("SegfaultBlocked", segv), hangs("SegfaultHandled"),
		ends("AbortIgnored", abrt),
		ends("RaiseQuit", quit), ends("RaiseSys", sys), ends("RaiseTerm", syscall.SIGTERM),
		ends("RaiseInt", syscall.SIGINT), ends("RaiseHup", syscall.SIGHUP),
		ends("RaiseStkflt", stkflt),
		ends("RaiseBus", bus), ends("RaiseTrap", trap), ends("RaiseXCPU", xcpu), ends("RaisePipe", pipe),
		ends("Alarm", syscall.SIGALRM), ends("ProfileTimer", prof), ends("VirtualTimer", vtalrm),
		exits("ExitNow0"), exits("QuickExit0"), exits("ExitGroup0"), exits("ExitThread0"),
		leaves("LeaveThread"), leaves("PthreadExit"),
		ends("KillGroup", syscall.SIGKILL), hangs("StopItself"), hangs("LoopBlocked"),
	}
}

// Harms lists the faults after which the function returns, but which damage the process or
// something outside it. They happen on Linux only.
//
//   - BlockSignals, IgnoreSignals: all signals are blocked in the calling thread, or
//     ignored. DropSignalStack: removes the alternate signal stack.
//   - FreedName: like FreedText with the name of the instance, logged with a wrong environment, so
//     that a logger may read it.
//   - StopAndReturn: SIGSTOP to its own process, which may stop after the return.
//   - JumpOutOfLogger: leaves the logger by siglongjmp.
//   - LimitAddressSpace, LimitFiles, LimitFileSize, LimitProcesses: setrlimit to 16 MiB
//     of address space, to no more files, bytes of a file or processes.
//   - UseUpFiles: opens files until no more can be opened. CloseFiles: closes all descriptors from 3
//     on. CloseOutput: closes 0, 1 and 2. ScribbleFiles: writes "{lost" to each file and
//     pipe from 3 on. TruncateFiles: truncates each of the files to 0 bytes.
//   - HoldStream: a thread waits for a line for ever and holds the stream meanwhile.
//   - RemoveFolder: the folder of the library becomes the working directory and is
//     removed with the library. RemoveFile: removes the file named by the parameter victim.
//     Umask: files created later cannot be read.
//   - ProtectHeap: makes Go's heap inaccessible.
//   - Undumpable, TraceMe, Seccomp: by prctl and ptrace. Seccomp allows
//     the thread only read, write and exit.
//   - LeaveGroup: enters the process group of the parent. KillParent: SIGKILL to the
//     parent if it is the same program.
//   - ForkReturn: forks, and the child returns from the function, too. ForkExec: the
//     child fails to start a program and calls exit(1). ForkCrash: Segfault in the child.
//     ForkSleep: the child sleeps forever. ForkDaemon: a grandchild sleeps forever, in a
//     session of its own. Except for ForkSleep, the FMU waits for its child and logs how it
//     ended, "the child ended by 0 with 127".
func Harms() []string { return slices.Clone(harms) }

var harms = []string{
	"BlockSignals", "IgnoreSignals", "DropSignalStack", "FreedName", "StopAndReturn", "JumpOutOfLogger",
	"LimitAddressSpace", "LimitFiles", "LimitFileSize", "LimitProcesses", "UseUpFiles",
	"CloseFiles", "CloseOutput", "ScribbleFiles", "TruncateFiles",
	"HoldStream", "RemoveFolder", "RemoveFile", "Umask", "ProtectHeap", "Undumpable", "TraceMe", "Seccomp", "LeaveGroup", "KillParent",
	"ForkReturn", "ForkExec", "ForkCrash", "ForkSleep", "ForkDaemon",
}

// Faults lists the items of the parameter fault, None first.
func Faults() []string {
	all := slices.Clone(faults)
	for _, k := range Kills() {
		all = append(all, k.Fault)
	}
	return append(all, harms...)
}

// Places lists the items of the parameter during: the functions of
// FMI without the prefix fmi2, and LogCallback, Load, Unload and Exit, which are for Kills and Harms only.
func Places() []string { return slices.Clone(places) }

// Items of the enumerations; those of fault without Kills and Harms. The C source gets
// them as Fault_None, … in guid.h.
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
		"Load", "Unload", "Exit",
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
		return &model{name: name, description: "Does one thing wrong, on purpose", wrapped: true, outputOrder: 5,
			sources: []string{"lti.h", "lti.c", "wrap.h", "thread.h", "thread.c", "kill.h", "kill.c", "kill_linux.c", "misbehave.c"},
			defines: defines, stop: 1, step: 0.1, attributes: attributes, variables: misbehaviour()}
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

// misbehaviour returns the variables. If d is not 0, w has a feedthrough from u that is not declared.
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
		integer("ballast", 0, "how much its state has beside x, in MiB", 0),
		{name: "marker", description: "file in which all processes count how often it went wrong; none: each instance for itself", role: text},
		{name: "victim", description: "file that RemoveFile removes", role: text},
		{name: "trail", description: "begins the names of files to which steps, an exit handler and a destructor write; none: they do not", role: text},
	}
}
