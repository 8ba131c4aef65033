// Package fmuslave makes an FMI 2.0 Co-Simulation FMU a subsystem of package
// master.
//
// A slave is described from modelDescription.xml alone; the FMU is instantiated when the run initialises
// it. Given parameters and start values are set, and the inputs that the master drives; all others are
// left to the FMU (fmi2 42).
package fmuslave
