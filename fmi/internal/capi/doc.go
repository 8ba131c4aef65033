// Package capi is the part of calling FMUs that is specific to FMI 2.0 for Co-Simulation:
// functions and their arguments, libraries, callbacks and log messages.
package capi
