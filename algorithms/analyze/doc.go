// Package analyze predicts before a run whether a coupling will be stable, with which
// algorithm, at which extrapolation order and up to which macro step.
//
//	report, err := analyze.Run(ctx, system, analyze.Options{Step: 1e-3, Order: 2})
//
// The system is initialised and brought to the operating point as in a run. There, a linear
// model of each subsystem is found, for each step size of the analysis, by the first of these that is possible:
//
//   - from its measured response, if it supports rollback: each coefficient of its inputs is moved up and
//     down over one step, and a linear system is realised from the outputs of this and later
//     steps. The response includes the solver inside the FMU;
//   - from directional derivatives, integrated exactly, if further instances agree with them;
//   - from the response measured on further instances, each led from the start to the operating point.
//
// If a measured response is not that of a linear system of few states, there is no model, and
// all that depends on it is unknown.
//
// The strategies then run on twins, subsystems made of these models, by the same code as in
// a run of the system. If the state of a strategy is that of the subsystems and the outputs at the last
// communication points, one step from each unit vector gives the propagation matrix and its
// eigenvalues. Otherwise a long run is followed, and its
// dominant mode is identified from the outputs. A radius above 1 means growth.
//
// With rates (Options.Rates) the matrix is that of the period after which all components step together, and the radius
// its root: the growth per macro step. The energy correction is not linear: its errors are forecast, its stability is
// unknown.
//
// Where there are no models, trial runs (Options.Runs) compare the system with itself after its coupled inputs were moved
// a little.
//
// Each job has a package: twin finds the models (linear) at the operating point and makes the twins, scan finds radii and
// stable steps, forecast errors and costs, and trial makes trial runs.
//
// All results are linear and local: they hold for small motions about the operating point.
package analyze
