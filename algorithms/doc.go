// Package algorithms holds the coupling algorithms. Each consists of a scheme, an input
// approximation and, optionally, corrections and a step control.
//
// The presets are rows of a table ([Presets]); parameters override their parts:
//
//	choice, err := algorithms.New("explicit", map[string]string{"order": "2"})
//	run, err := master.NewRun(system, choice.Algorithm, master.Options{Stop: 1, Step: 1e-3, Discard: choice.Discard})
//
// A [Coupling] is made from a [Config]. The explicit schemes extrapolate the coupling inputs
// u = L y + b by polynomials of order k through the last communication points on the actual,
// unequal grid. After each macro step the outputs are exchanged, and no step is repeated. The
// implicit scheme solves for inputs on loops that match the outputs at the end of each macro
// step. Its corrector steps repeat the macro step from saved states ([Solver]). With an error
// estimate ([Estimator]), order and step size vary ([Control]).
package algorithms
