// Package fmuslave makes an FMI 2.0 Co-Simulation FMU a subsystem of package
// master.
//
// A slave is described from modelDescription.xml alone; the FMU is instantiated
// when the run initialises it. Parameters and start values are all set
// explicitly (fmi2 42): those of the document, overridden by those given.
package fmuslave
