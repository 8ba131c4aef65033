// Package oracle predicts what coupling of the two-mass oscillator gives, for the decompositions and schemes of
// schweizer: trajectories, eigenvalues and spectral radii by propagation matrices, and eigenvalues fitted to recorded
// states. It shares nothing with the master and the FMUs: subsystems are exact by matrix exponentials, polynomials
// come from the product form of Lagrange, and the interface equation of implicit schemes is eliminated by linear
// algebra.
//
// Its own tests hold it against a simulation of the discrete recursion that works with neither, and against what
// schweizer publishes.
package oracle
