// Package record writes the results of runs to files and reads inputs from files.
//
// [Table] is a [master.Recorder] that writes the accepted communication points of a run to
// a file in a [Format]; [Columns] keeps them in memory. [Manifest] is the JSON document that
// records how a result was produced. [ReadSignals] reads CSV tables; [BindInputs] uses them
// as inputs of a run, [BindHistory] as the communication points before its start.
//
//	sel, err := record.ParseSelection([]string{"chassis.*"})
//	table := record.NewTable("results.csv", record.Options{Select: sel})
//	run, err := master.NewRun(sys, alg, master.Options{…, Recorders: []master.Recorder{table}})
//
// # The table
//
// The first column is the time; each further column is one variable, named
// "component.variable" with the full path of the component. The first row is the state after
// initialisation. The value of an input at a point is the one from this point on.
//
// [CSV] begins with a header. Fields are quoted according to RFC 4180; lines end with a line
// feed. A Real is the shortest decimal number that reads back to the same bits, NaN, Inf or
// -Inf; an Integer or an enumeration is a whole number; a Boolean is 0 or 1; a String is
// written unchanged.
//
// [ArrowFile] and [ArrowStream] are the IPC formats of Apache Arrow, without compression and
// nulls: a Real is a float64, an Integer or an enumeration an int32, a Boolean a bool, a
// String utf8, with U+FFFD for invalid bytes. The metadata of a column holds unit,
// description, causality and variability, as far as they are known. The first batch has no
// rows. The others are limited in rows and in the bytes of their strings, and end at
// checkpoints.
//
// Invariants: A run killed at any moment leaves a readable table, with whole rows up to the
// last line feed or record batch. With [Options].Memory, no row is lost once another process
// has called [Salvage]. Recording a point allocates no memory and only copies values, unless
// it has to wait for slow writing. The bytes of a table do not depend on the clock or on the
// number of formatting goroutines.
package record
