// Package record writes the results of runs to files and reads inputs from files.
//
// [Table] is a [master.Recorder] that writes the accepted communication points of a run to
// a file in a [Format]; [Columns] keeps them in memory. [Manifest] is the JSON document that
// records how a result was produced. [ReadSignals] reads tables; [BindInputs] uses them
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
// written unchanged, a Binary as hexadecimal digits, also in Parquet.
//
// [Parquet] has a float64 for a Real, an int64 for an Integer or an enumeration, a Boolean, and a
// UTF-8 string, with U+FFFD for invalid bytes; no nulls. The entry macrostep.columns of its
// metadata is a JSON object with unit, description, causality and variability by column, as far
// as they are known. Row groups are limited in rows and in the bytes of their strings, and end at
// checkpoints. Until the run ends, the footer is missing, and only package results reads the file.
//
// [MAT] is level 4 with the matrices of a Modelica trajectory (binTrans). All values are float64;
// strings are left out. The unit is in brackets at the end of the description.
//
// Invariants: A run killed at any moment leaves a table of whole rows, up to the last line feed,
// the last row or the last row group. With [Options].Memory, no row is lost once another process
// has called [Salvage]. Recording a point allocates no memory and only copies values, unless
// it has to wait for slow writing. The bytes of a table do not depend on the clock or on the
// number of formatting goroutines.
package record
