// Package fmus holds macrostep's own FMUs as C sources, builds them, and writes
// the example systems made of them.
//
// The FMUs are small models whose exact or independently computed solutions
// stand in package exact. They serve the tests, the papers' benchmarks and
// `macrostep demo`. All implement FMI 2.0 for Co-Simulation over one framework
// (src/fmu.c) and, except blackbox, offer every optional capability: variable
// steps, rollback and serialisation, input polynomials up to degree 5, output
// derivatives, directional derivatives, declared dependencies.
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
//     schweizer in its decompositions; exact. coupling has no state and says so
//     by the vendor annotation <stateless/>: its output is a function of its
//     inputs at the end of the step.
//
//   - polynomial: y = a + b u + c u² + d u³, stateless as well, for algebraic
//     loops whose solutions are known.
//
//   - oscillator_coupled, oscillator_driven, oscillator_hub: the masses of
//     rodriguez's oscillators with springs k sgn(z) |z|^n_k and dampers
//     c sgn(z) |z|^n_c; coupled holds the coupling element, driven takes one force,
//     hub up to four. pendulum_coupled, pendulum_driven: his pendula, each a
//     differential-algebraic system held together by an augmented Lagrangian.
//     crane_mechanics, crane_hydraulics: his crane. All make micro_steps steps of
//     symplectic Euler per macro step, the hydraulics of forward Euler. Where force
//     follows from input, it does from the input at the start of the last micro step.
//
//   - contact_mass, coupling_cubic: the nonlinear two-mass oscillator of meyer 6.1,
//     whose first mass meets a penalty contact; chain: a piece of any size of the
//     nonlinear oscillator chain of meyer 6.2 and 6.6, with impulses and contacts,
//     whose first and last mass are coupled by forces. The masses are integrated by
//     Radau IIA of order 5 with an adaptive step to the tolerances rtol, atol_x and
//     atol_v (src/oscillators.c), in a time linear in the number of masses. Input
//     polynomials are taken at the stages of the method; a step that cannot be
//     made is discarded. A chain shows its coupling masses only: by continuous
//     states and directional derivatives too.
//
// Other outputs are those at the end of the last step under the input polynomial of
// that step (in initialization: of the present inputs). Input derivatives serve
// one step; an input not set again stays where its polynomial ended.
//
// Besides there are FMUs that do something wrong on purpose (Misbehaving), up to
// ending or hanging the process (Kills), for tests of what a master makes of it.
//
// The systems (Systems) are SSPs of these, each with start, stop and step:
//
//	path, err := fmus.WriteSystem(dir, "quarter-car-a") // dir/quarter-car-a.ssp
//	path, err := fmus.WriteChain(dir, fmus.Chain{Masses: 1000, Subsystems: 20}) // dir/chain.ssp
//
// Building needs a C compiler; there is nothing else to install. The same
// compiler makes the same bytes each time.
package fmus
