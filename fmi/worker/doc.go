// Package worker runs instances of FMUs in separate processes (workers).
//
// A worker runs the same program, so a program that uses the package must call Main first:
//
//	func main() {
//		worker.Main() // does not return in the process of an instance
//		…
//		in, err := f.Instantiate("engine", fmi.InstanceOptions{Launcher: &worker.Launcher{}})
//
// Tests call it at the beginning of TestMain. Code before it, including package initialisers,
// should be fast and without side effects.
//
// The instance is used like any other. If the FMU crashes, only the worker ends, and the call
// returns a *fmi.ProcessError with the reason. A worker has the working folder, environment and limits of
// the program, an empty standard input, a stack of 64 MiB and its own process group, so that Ctrl-C does not
// reach it. What the FMU prints appears on the standard streams of the program, line by line.
// Processes that the FMU starts end with the worker, and the worker ends with the program.
//
// With InstanceOptions.Restarts an instance survives the end of its worker: it continues in a
// new one from the state of the last Instance.Keep, and the failed call is repeated.
package worker
