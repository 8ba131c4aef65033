// Package fmi reads FMUs of FMI 2.0 and 3.0 for Co-Simulation and calls them, without
// cgo.
//
//	f, findings, err := fmi.Open("engine.fmu", fmi.OpenOptions{})
//	in, err := f.Instantiate("engine", fmi.InstanceOptions{})
//	err = in.SetupExperiment(fmi.Experiment{Start: 0})
//	err = in.EnterInitializationMode()
//	err = in.ExitInitializationMode()
//	s, err := in.NewStepper(fmi.StepPlan{RealIn: inputs, RealOut: outputs})
//	for k := range 1000 {
//		s.RealIn[0] = 1
//		status, err := s.Step(float64(k)*h, h, true)
//		fmt.Println(s.RealOut[0])
//	}
//	err = in.Terminate()
//	err = in.Free()
//	err = f.Close()
//
// Package fmi/description reads and checks modelDescription.xml. Numbers such as
// "fmi2 39" in the documentation refer to the items of docs/fmi2.md; ids
// such as FA3 are rules (see Rules).
//
// # How an FMU is called
//
// A call is a record in C memory: function, arguments, result. On Linux, macOS and
// BSD (amd64 and arm64) an assembly routine makes the calls of a batch of records
// in one switch from Go to C (a crossing). It stops at the first status above
// Warning, restores floating-point modes that an FMU changes and takes time stamps.
// A Stepper sets inputs, steps and reads outputs in one crossing without
// allocation; a Batch does so for many instances. Windows needs a crossing per
// call. On other platforms, or with the build tag macrostep_portable, reflected
// calls of purego take about ten times as long. CallPath names the method in use.
//
// # Names
//
// An FMU uses its own functions and variables, also those with names of the C library or
// of another FMU:
//
//   - Linux with glibc: libraries have a local scope. One that defines names of the
//     global scope, or of libm, is loaded with RTLD_DEEPBIND, after the libraries of the
//     system that it needs, which thus keep their meaning. RTLD_DEEPBIND is not used if
//     it changed the meaning of other names (an allocator is preloaded or linked into the
//     program, a sanitizer replaces functions), or if the FMU defines an allocator itself.
//     Libraries that an FMU uses without naming them, such as libm, enter the global
//     scope only after it could not be loaded.
//   - musl and BSD: the global scope comes first. In musl it contains libm.
//   - macOS and Windows: a library states for each name which library it is from, unless
//     it is linked with -flat_namespace.
//
// Load and CheckNames report names that are replaced (rule FA6S). A plugin that an FMU
// loads by dlopen has the scope that the FMU asks for.
//
// Some things exist once in a process whatever the scope: libraries with the same file
// name and, on Linux, static variables of inline functions in C++ and the operator new if
// it is replaced. FMU.Shared lists them, FMU.Clash finds conflicts, and package assemble
// isolates FMUs that have some. On macOS C++ may share variables unnoticed.
//
// # Invariants
//
//   - Illegal calls are refused before C is entered (checklist fmi2 39).
//   - Memory that an FMU may access is C memory that lives as long as the instance.
//   - An instance has one caller at a time, on one locked thread. Some FMUs need a
//     stack of LargeStack there.
//   - After Fatal no function of that FMU is called; libraries are never unloaded.
//   - An FMU that crashes ends the process. Package fmi/worker runs an instance in a
//     separate process. A parent process that shares memory with this one (see
//     fmi/process) can read the active calls (Calls), the FMUs (Loaded) and their
//     last messages (LastMessages).
//   - Signal handlers, locale and working directory that an FMU changes while it is
//     loaded, created, initialised or ended are restored; floating-point modes before
//     another FMU is called (on amd64 and arm64). A message of the category
//     OwnCategory then names the FMU.
package fmi
