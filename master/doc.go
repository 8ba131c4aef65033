// Package master couples subsystems and steps them together.
//
// A [Subsystem] is anything that can be stepped. [NewSystem] freezes subsystems
// and connections into a graph: the vectors u and y of all Real inputs and
// outputs with u = L y + b, and copies of the discrete signals. A [Run] owns
// the one loop over the macro steps; an [Algorithm] says what happens within
// one of them, with the [Exec] it is handed; a [Recorder] takes the accepted
// communication points.
//
//	sys, err := master.NewSystem(subsystems, connections)
//	run, err := master.NewRun(sys, algorithm, master.Options{Stop: 1, Step: 1e-3})
//	result, err := run.Run(ctx)
//
// With [Options].Checkpoints a run hands out its whole state now and then; with
// [Options].Resume another run, in another process if the subsystems can do
// that, goes on from it. Each part lists its state once ([Archiver]).
//
// Data flows one way, and nothing here knows FMI, SSP or files: a subsystem
// brings what it is able to do as further small interfaces.
//
// Invariants: a subsystem has one caller at a time, and all calls of a run come
// from the goroutine that calls Run's methods (which Start locks to its thread);
// rejected attempts never reach a recorder; the same system with the same
// options gives the same bits; a partial result is a result.
package master
