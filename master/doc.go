// Package master couples subsystems and steps them together.
//
// A [Subsystem] is anything that can be stepped. [NewSystem] makes a graph of subsystems and connections:
// the vectors u and y of all Real inputs and outputs, with u = L y + b, and copies of the discrete
// signals. A [Run] contains the loop over the macro steps; an [Algorithm] takes each of them, by means of
// an [Exec]; a [Recorder] records the accepted communication points.
//
//	sys, err := master.NewSystem(subsystems, connections)
//	run, err := master.NewRun(sys, algorithm, master.Options{Stop: 1, Step: 1e-3})
//	result, err := run.Run(ctx)
//
// With [Options].Checkpoints a run writes its whole state at intervals; with [Options].Resume another run,
// possibly in another process, continues from it. Each part keeps its state in a struct of plain data ([Archive]).
//
// This package does not depend on FMI, SSP or files. Optional capabilities of a subsystem are further small
// interfaces.
//
// Invariants: a subsystem has one caller at a time; without workers all calls of a run come from the
// goroutine that calls Run's methods, which Start locks to its thread; rejected attempts never reach a
// recorder; the same system with the same options gives the same bits; the result of a failed run is valid.
package master
