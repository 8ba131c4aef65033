// Package fmi2 is what is particular to FMI 2.0 for Co-Simulation in calling an FMU: the
// functions and the shapes of their arguments, the library that exports them, the callbacks
// and what comes through the logger.
package fmi2
