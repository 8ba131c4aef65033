// Package assemble makes a coupled system from documents: an SSP network (or a
// single FMU) and the FMUs behind its components become a [master.System].
//
//	a, err := assemble.Open("system.ssp", assemble.Options{})
//	defer a.Close()
//	warnings := a.Override(nil, nil, nil, nil)
//	run, err := master.NewRun(a.System, algorithm, master.Options{Start: a.Start.Value, Stop: a.Stop.Value, Step: a.Step.Value})
//
// For many runs a [Model] is opened once, and makes a system for each, with values of its own:
//
//	m, err := assemble.OpenModel("system.ssp", assemble.Options{})
//	defer m.Close()
//	a, err := m.Instantiate(assemble.Real("car.mass", 1200))
//
// Opening touches no FMU: archives are unpacked and documents read, and every
// fault that they show is reported before the first FMU is instantiated.
package assemble
