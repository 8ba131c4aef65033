// Package fmi reads FMUs of FMI 2.0 for Co-Simulation and calls them, without
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
// Package fmi/description reads and judges modelDescription.xml. Numbers such as
// "fmi2 39" in the documentation refer to the items of docs/fmi2.md; ids
// such as FA3 name rules (see Rules).
//
// # How an FMU is called
//
// A call is a record in C memory: function, arguments, result. A row of records
// is carried out in one crossing into C by an assembly routine (Linux, macOS
// and BSD on amd64 and arm64), which also puts back the floating-point modes that
// an FMU changes and takes time stamps. It stops at the first status above
// Warning. So a Stepper sets, steps and gets in one crossing, and a Group does so
// for many instances, without allocation. On Windows a crossing is made per call;
// elsewhere, or with the build tag macrostep_portable, purego's reflected calls do
// the same at ten times the cost. CallPath tells which.
//
// # Invariants
//
//   - The order of calls is checked before C is entered (checklist fmi2 39).
//   - What C sees stands in C memory that lives as long as the instance.
//   - An instance has one caller at a time, from one locked thread. FMUs may want
//     LargeStack there.
//   - After Fatal nothing of that FMU is called again; libraries are never
//     unloaded.
//   - FMUs run in the process: one that crashes takes it along. Package fmi/worker
//     runs an instance in a process of its own. A parent process that shares memory
//     with this one (see fmi/process) can read there which calls were under way
//     (Calls), which FMUs there were (Loaded) and what they said last (LastMessages).
//   - What can be undone is undone: signal handlers, locale and working directory
//     that an FMU changes while it is loaded, created, initialised or ended are put
//     back, floating-point modes before another FMU is called (on amd64 and arm64), and a
//     message of the category OwnCategory names the FMU.
package fmi
