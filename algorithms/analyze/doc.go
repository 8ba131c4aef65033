// Package analyze tells before a run whether a coupling will be stable, with which
// algorithm, at which extrapolation order and up to which macro step.
//
//	report, err := analyze.Run(ctx, system, analyze.Options{Step: 1e-3, Order: 2})
//
// The system is initialised and brought to the operating point as in a run. There a linear
// model of each subsystem is taken over steps of each size that is looked at:
//
//   - measured, where it can go back: its response to each coefficient of its inputs over one
//     step is followed over some more, there and back, and a linear system is realised from
//     that; the solver inside is part of it;
//   - else by directional derivatives, integrated exactly, if further instances, from the start
//     each time, do what they say;
//   - else measured on further instances.
//
// A measured response that is not that of a linear system of few states is no model, and
// what depends on it is unknown.
//
// On the twins that these models make, the strategies themselves are run, the same code as in
// a run of the system. Where their state is that of the subsystems and the outputs at the last
// communication points, one step from each unit vector gives the propagation matrix, whose
// eigenvalues are taken; else, and where the system is large, a long run is followed and its
// dominant mode identified from the outputs. A radius above 1 means growth.
//
// With components that have rates of their own (Options.Rates) the matrix is that of the period after which all take
// part, and the radius its root: the growth in a macro step. The energy correction is not linear:
// its errors are forecast, its stability is not known.
//
// Where models show nothing, Options.Runs has the system itself run, as it is and with its coupled inputs moved a little.
//
// Each job has a package: twin takes the models (linear) at the operating point and makes the twins, scan finds radii and
// stable steps, forecast errors and costs, trial makes runs, and watch looks at a run while it goes on. Judge analyses one
// strategy at one step, Run all of them.
//
// All of this is linear and local: it holds for motions about the operating point.
package analyze
