// Package record turns runs into files and files into inputs.
//
// [CSV] is a [master.Recorder] that writes the accepted communication points
// of a run as comma-separated values; [Manifest] is the JSON document that
// stands beside a result and says how it came about; [ReadSignals] reads such
// tables back, [BindInputs] makes them the inputs of a run and [BindHistory]
// the communication points before its start.
//
//	sel, err := record.ParseSelection([]string{"chassis.*"})
//	csv := record.NewCSV("results.csv", record.CSVOptions{Select: sel})
//	run, err := master.NewRun(sys, alg, master.Options{…, Recorders: []master.Recorder{csv}})
//
// # The table
//
// The first line is the header: time, then one name a column,
// "component.variable" with the whole path of the component. Fields are quoted
// as RFC 4180 says; lines end with a line feed. A Real is the shortest decimal
// number that reads back to the same bits, NaN, Inf or -Inf; an Integer and an
// enumeration are whole numbers; a Boolean is 0 or 1; a String stands as it is.
//
// The first row is the start, after initialisation. The value of an input at a
// point is the one that holds from there on.
//
// Invariants: only whole rows reach the file, so that a run killed at any
// moment leaves a table that can be read; recording a point allocates nothing.
package record
