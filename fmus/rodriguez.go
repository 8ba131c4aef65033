package fmus

import "fmt"

// The models of rodriguez. Those that hold the coupling element read their force
// with the inputs of the start of their last micro step.

func symplecticSteps() variable {
	v := microSteps()
	v.description = "symplectic Euler steps in each communication step"
	v.start = 1
	return v
}

func exponents() []variable {
	return []variable{
		par("n_k", "", 1, "the forces of the springs grow with this power of the elongation; stiffnesses are forces at 1 m"),
		par("n_c", "", 1, "the forces of the dampers grow with this power of the rate; dampings are forces at 1 m/s"),
	}
}

func oscillatorMass(k, v0 float64) []variable {
	return []variable{
		par("m", "kg", 1, "mass"),
		par("k", "N/m", k, "stiffness of the spring to the ground"),
		par("c", "N.s/m", 0, "damping to the ground"),
		par("x0", "m", 0, "displacement at the start"),
		par("v0", "m/s", v0, "velocity at the start"),
	}
}

func oscillatorCoupled() *model {
	m := &model{name: "oscillator_coupled", sources: []string{"euler.h", "euler.c", "power_law.h", "power_law.c", "oscillator_coupled.c"},
		outputOrder: 1, stop: 10, step: 1e-3,
		description: "Oscillators of rodriguez: a mass on spring and damper with the coupling element, driven by the motion of another mass; symplectic Euler",
		variables: []variable{
			in("x_other", "m", "displacement of the other mass"),
			in("v_other", "m/s", "velocity of the other mass"),
			st("x", "m", "displacement", "x0"),
			st("v", "m/s", "velocity", "v0").rate("x"),
			der("v", "m/s2", "acceleration", []string{"m", "k", "c", "x0", "v0", "k_c", "c_c", "n_k", "n_c"},
				dependent("x_other", "v_other", "x", "v")...),
			calc("f", "N", "force of the coupling element on the other mass", []string{"x0", "v0", "k_c", "c_c", "n_k", "n_c"},
				dependent("x_other", "v_other", "x", "v")...),
		}}
	m.variables = append(m.variables, oscillatorMass(10, 100)...)
	m.variables = append(m.variables,
		par("k_c", "N/m", 100, "stiffness of the coupling spring"),
		par("c_c", "N.s/m", 0, "damping of the coupling element"))
	m.variables = append(m.variables, exponents()...)
	m.variables = append(m.variables, symplecticSteps())
	return m
}

// driven is a mass under coupling forces of these names.
func driven(name, description string, forces ...string) *model {
	m := &model{name: name, sources: []string{"euler.h", "euler.c", "power_law.h", "power_law.c", "oscillator_driven.c"},
		outputOrder: 1, stop: 10, step: 1e-3, description: description, defines: []string{fmt.Sprintf("FORCES %d", len(forces))}}
	for _, f := range forces {
		m.variables = append(m.variables, in(f, "N", "force of a coupling element"))
	}
	m.variables = append(m.variables,
		st("x", "m", "displacement", "x0"),
		st("v", "m/s", "velocity", "v0").rate("x"),
		der("v", "m/s2", "acceleration", []string{"m", "k", "c", "x0", "v0", "n_k", "n_c"},
			join(fixed(forces...), dependent("x", "v"))...))
	m.variables = append(m.variables, oscillatorMass(1000, -100)...)
	m.variables = append(m.variables, exponents()...)
	m.variables = append(m.variables, symplecticSteps())
	return m
}

func oscillatorDriven() *model {
	return driven("oscillator_driven", "Oscillators of rodriguez: a mass on spring and damper, driven by a coupling force; symplectic Euler", "f")
}

func oscillatorHub() *model {
	return driven("oscillator_hub", "Oscillators of rodriguez: a mass on spring and damper, driven by up to four coupling forces; symplectic Euler",
		"f[1]", "f[2]", "f[3]", "f[4]")
}
