// Package algorithms holds the coupling algorithms, each put together from the
// parts scheme, input approximation, correction and step control.
//
// A preset is a row of one table ([Presets]); parameters override its parts:
//
//	choice, err := algorithms.New("explicit", map[string]string{"order": "2"})
//	run, err := master.NewRun(system, choice.Algorithm, master.Options{Stop: 1, Step: 1e-3, Discard: choice.Discard})
//
// A [Coupling] is made of a [Config]. The explicit schemes extrapolate the coupling inputs
// u = L y + b by polynomials of order k through the last communication points
// on the actual, unequal grid: after each macro step the outputs are exchanged,
// and no step is repeated. The implicit scheme makes the inputs that close loops
// agree with the outputs at the end of each macro step, by correctors that
// repeat it from saved states ([Solver]). Error estimates ([Estimator]) let
// order and step size vary ([Control]).
package algorithms
