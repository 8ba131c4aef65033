// Package worker runs instances of FMUs in processes of their own.
//
// The process of an instance is the program itself, started once more. So a
// program that uses the package hands over to it first of all:
//
//	func main() {
//		worker.Main() // does not return in the process of an instance
//		…
//		in, err := f.Instantiate("engine", fmi.InstanceOptions{Launcher: &worker.Launcher{}})
//
// A test does the same at the beginning of TestMain. Nothing that takes long or
// leaves traces should happen before, so not in package initialisers either.
//
// The instance is used as any other. What the FMU does to its process ends that
// process only: the call gives a *fmi.ProcessError, which names the reason. A
// worker has a working directory of its own, which is removed with it, the locale
// C, a stack of 64 MiB and a process group of its own, so that Ctrl-C does not
// reach it; processes that the FMU starts end with it. It ends when the program
// ends, however that comes about.
//
// With InstanceOptions.Restarts an instance survives the end of its process: it
// goes on in another from the state of the last Instance.Keep, and the call that did
// not return is made again.
package worker
