// Package record turns runs into files and files into inputs.
//
// [Table] is a [master.Recorder] that writes the accepted communication points
// of a run as a table, of a [Format]; [Columns] keeps them in memory; [Manifest] is the JSON document that
// stands beside a result and says how it came about; [ReadSignals] reads CSV
// tables back, [BindInputs] makes them the inputs of a run and [BindHistory]
// the communication points before its start.
//
//	sel, err := record.ParseSelection([]string{"chassis.*"})
//	table := record.NewTable("results.csv", record.Options{Select: sel})
//	run, err := master.NewRun(sys, alg, master.Options{…, Recorders: []master.Recorder{table}})
//
// # The table
//
// The first column is time, the others are one variable each, called
// "component.variable" with the whole path of the component. The first row is
// the start, after initialisation. The value of an input at a point is the one
// that holds from there on.
//
// [CSV] begins with a header. Fields are quoted as RFC 4180 says; lines end
// with a line feed. A Real is the shortest decimal number that reads back to
// the same bits, NaN, Inf or -Inf; an Integer and an enumeration are whole
// numbers; a Boolean is 0 or 1; a String stands as it is.
//
// [ArrowFile] and [ArrowStream] are those of the Arrow columnar format, without
// compression and without nulls: a Real is a float64, an Integer and an
// enumeration an int32, a Boolean a bool, a String utf8, with U+FFFD for what is
// none. The metadata of a column holds what is known of its unit, description,
// causality and variability. The first batch has no rows; the others are cut by rows, by
// the bytes of their strings and at checkpoints.
//
// Invariants: a run killed at any moment leaves a table that can be read, of
// rows up to the last line feed or whole record batch, and with [Options].Memory every
// row, once another process has called [Salvage]; recording a point
// allocates nothing and, but for a run that is faster than its writing, takes no
// longer than copying its values; the bytes of a table do not depend on the clock, nor on
// how many goroutines format it.
package record
