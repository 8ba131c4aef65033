// Package assemble creates a coupled [master.System] from an SSP document and its FMUs, or from
// a single FMU.
//
//	a, err := assemble.Open("system.ssp", assemble.Options{})
//	defer a.Close()
//	warnings, notes := a.Override(nil, nil, nil, nil)
//	run, err := master.NewRun(a.System, algorithm, master.Options{Start: a.Start.Value, Stop: a.Stop.Value, Step: a.Step.Value})
//
// For many runs, open a [Model] once and instantiate a system with its own values for each run:
//
//	m, err := assemble.OpenModel("system.ssp", assemble.Options{})
//	defer m.Close()
//	a, err := m.Instantiate(assemble.Real("car.mass", 1200))
//
// Opening unpacks archives and reads documents. It does not execute code of FMUs, so that errors
// in documents are reported before the first FMU is instantiated.
package assemble
