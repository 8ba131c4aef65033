// Package fmus holds macrostep's own FMUs as C sources, builds them, and writes
// the example systems made of them.
//
// The FMUs are small models with exact or independently computed solutions in
// package exact, for tests, the benchmarks of the papers and
// `macrostep demo`. All implement FMI 2.0 for Co-Simulation over one framework
// (src/fmu.c) and, except blackbox, offer every optional capability: variable
// steps, rollback and serialisation, input polynomials up to degree 5, output
// derivatives, directional derivatives, declared dependencies. Build3 makes them FMUs of
// FMI 3.0 for Co-Simulation, with the same numbers and without input polynomials, which FMI 3.0
// does not have: src/api2.c and src/api3.c are the two interfaces.
//
//   - linear: x' = A x + B u, y = C x + D u with up to 8 states, 4 inputs and 4
//     outputs; A[i,j] … D[i,j] and x0[i] are parameters. Exact for polynomial
//     inputs (block matrix exponential).
//
//   - blackbox: the same without any optional capability but variable steps,
//     without states, and without dependencies.
//
//   - quarter_chassis_a, quarter_wheel_a, quarter_chassis_b, quarter_wheel_b: the
//     quarter car of sadjina section IV in both reticulations. The chassis of A
//     is exact; the others make micro_steps forward Euler steps per macro step.
//
//   - mass_force, mass_displacement, coupling: the two-mass oscillator of
//     schweizer in its decompositions; exact. coupling has no state and declares this
//     by the vendor annotation <stateless/>: its output is a function of its
//     inputs at the end of the step.
//
//   - polynomial: y = a + b u + c u² + d u³, stateless as well, for algebraic
//     loops whose solutions are known.
//
//   - oscillator_coupled, oscillator_driven, oscillator_hub: the masses of
//     rodriguez's oscillators with springs k sgn(z) |z|^n_k and dampers
//     c sgn(z) |z|^n_c; coupled contains the coupling element, driven has one force as input,
//     hub up to four. pendulum_coupled, pendulum_driven: the pendula of rodriguez, each a
//     differential-algebraic system with an augmented Lagrangian.
//     crane_mechanics, crane_hydraulics: the crane of rodriguez. All make micro_steps steps of
//     symplectic Euler per macro step, the hydraulics of forward Euler. A force that
//     depends on an input uses its value at the start of the last micro step.
//
//   - contact_mass, coupling_cubic: the nonlinear two-mass oscillator of meyer 6.1,
//     whose first mass meets a penalty contact; chain: a piece of any size of the
//     nonlinear oscillator chain of meyer 6.2 and 6.6, with impulses and contacts,
//     whose first and last mass are coupled by forces. The masses are integrated by
//     Radau IIA of order 5 with an adaptive step to the tolerances rtol, atol_x and
//     atol_v (src/oscillators.c), in a time linear in the number of masses. The
//     stages of the method use the input polynomials; a step that is not
//     possible is discarded. A chain exposes only its coupling masses, also as continuous
//     states and in directional derivatives.
//
// All other outputs are those at the end of the last step with the input polynomial of
// that step (in initialization: of the present inputs). Input derivatives are valid for
// one step; an input that is not set again keeps the value at the end of its polynomial.
//
// Further FMUs fail on purpose (Misbehaving), up to
// ending or hanging the process (Kills), for tests of masters.
//
// The systems (Systems) are SSPs of these FMUs, with start, stop and step:
//
//	path, err := fmus.WriteSystem(dir, "quarter-car-a") // dir/quarter-car-a.ssp
//	path, err := fmus.WriteChain(dir, fmus.Chain{Masses: 1000, Subsystems: 20}) // dir/chain.ssp
//
// Building needs only a C compiler. The same compiler makes the same bytes each time.
package fmus
