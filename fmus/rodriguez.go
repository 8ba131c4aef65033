package fmus

import "math"

// The models of rodriguez. Those with the coupling element compute its force
// from the inputs at the start of the last micro step.

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
		description: "Oscillators of rodriguez: a mass on spring and damper with the coupling element, driven by the motion " +
			"of another mass; symplectic Euler",
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

// driven returns the model of a mass under coupling forces with these names.
func driven(name, description string, forces ...string) *model {
	m := &model{name: name, sources: []string{"euler.h", "euler.c", "power_law.h", "power_law.c", "oscillator_driven.c"},
		outputOrder: 1, stop: 10, step: 1e-3, description: description}
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
	return driven("oscillator_driven", "Oscillators of rodriguez: a mass on spring and damper, driven by a coupling "+
		"force; symplectic Euler", "f")
}

func oscillatorHub() *model {
	return driven("oscillator_hub", "Oscillators of rodriguez: a mass on spring and damper, driven by up to four "+
		"coupling forces; symplectic Euler",
		"f[1]", "f[2]", "f[3]", "f[4]")
}

func pendulumSources(main string) []string {
	return []string{"euler.h", "euler.c", "differences.h", "differences.c", "pendulum.h", "pendulum.c", main}
}

func pendulumStates() []variable {
	return []variable{
		st("x", "m", "horizontal position of the tip", "l", "x_pin", "theta0"),
		st("y", "m", "height of the tip, seen from the pins", "l", "theta0"),
		st("v_x", "m/s", "horizontal velocity of the tip").rate("x"),
		st("v_y", "m/s", "vertical velocity of the tip").rate("y"),
	}
}

func pendulumParameters(m, xPin, theta0 float64) []variable {
	return []variable{
		par("m", "kg", m, "mass at the tip"),
		par("l", "m", 2, "length of the rod"),
		par("x_pin", "m", xPin, "horizontal position of the pin"),
		par("theta0", "rad", theta0, "angle between the rod and the vertical at the start, positive where the tip is right of the pin"),
		par("g", "m/s2", 9.81, "gravity, downwards"),
		par("alpha", "kg", 1e7, "penalty of the augmented Lagrangian"),
		par("xi", "", 1, "damping ratio of violations of the constraint"),
		par("omega", "1/s", 10, "natural frequency of violations of the constraint"),
	}
}

func pendulumCoupled() *model {
	m := &model{name: "pendulum_coupled", sources: pendulumSources("pendulum_coupled.c"),
		outputOrder: 1, stop: 10, step: 1e-3,
		description: "Coupled pendula of rodriguez: a point mass on a rod with the spring and damper to the tip of the " +
			"other; augmented Lagrangian, symplectic Euler",
		variables: []variable{
			in("x_other", "m", "horizontal position of the other tip"),
			in("y_other", "m", "height of the other tip"),
			in("v_x_other", "m/s", "horizontal velocity of the other tip"),
			in("v_y_other", "m/s", "vertical velocity of the other tip"),
		}}
	m.variables = append(m.variables, pendulumStates()...)
	inputs := []string{"x_other", "y_other", "v_x_other", "v_y_other"}
	all := dependent(append(inputs, "x", "y", "v_x", "v_y")...)
	element := []string{"l", "x_pin", "theta0", "k_c", "c_c", "l_c"}
	start := append([]string{"m", "g", "alpha", "xi", "omega"}, element...)
	m.variables = append(m.variables,
		der("v_x", "m/s2", "horizontal acceleration of the tip", start, all...),
		der("v_y", "m/s2", "vertical acceleration of the tip", start, all...),
		calc("f_x", "N", "horizontal force on the other tip", element, all...),
		calc("f_y", "N", "vertical force on the other tip", element, all...))
	m.variables = append(m.variables, pendulumParameters(5, 0, math.Pi/4)...)
	m.variables = append(m.variables,
		par("k_c", "N/m", 100, "stiffness of the coupling spring"),
		par("c_c", "N.s/m", 0, "damping of the coupling element"),
		par("l_c", "m", 8.75612244303068, "length of the coupling spring without load"),
		symplecticSteps())
	return m
}

func pendulumDriven() *model {
	m := &model{name: "pendulum_driven", sources: pendulumSources("pendulum_driven.c"),
		outputOrder: 1, stop: 10, step: 1e-3,
		description: "Coupled pendula of rodriguez: a point mass on a rod under a force at its tip; augmented Lagrangian, symplectic Euler",
		variables: append([]variable{
			in("f_x", "N", "horizontal force on the tip"),
			in("f_y", "N", "vertical force on the tip"),
		}, pendulumStates()...)}
	all := dependent("f_x", "f_y", "x", "y", "v_x", "v_y")
	start := []string{"m", "l", "x_pin", "theta0", "g", "alpha", "xi", "omega"}
	m.variables = append(m.variables,
		der("v_x", "m/s2", "horizontal acceleration of the tip", start, all...),
		der("v_y", "m/s2", "vertical acceleration of the tip", start, all...))
	m.variables = append(m.variables, pendulumParameters(1, 10.5, -math.Pi/18)...)
	m.variables = append(m.variables, symplecticSteps())
	return m
}

func craneMechanics() *model {
	cylinder := []string{"l_c", "x_B", "y_B", "theta1_0"}
	start := append([]string{"l1", "l2", "m1", "m2", "m3", "theta2_0", "g"}, cylinder...)
	all := dependent("f", "theta1", "theta2", "omega1", "omega2")
	return &model{name: "crane_mechanics", sources: []string{"euler.h", "euler.c", "differences.h", "differences.c", "crane_mechanics.c"},
		outputOrder: 1, stop: 10, step: 1e-3,
		description: "Hydraulic crane of rodriguez: two links under the force of the cylinder; symplectic Euler",
		variables: []variable{
			in("f", "N", "force of the cylinder, pushing its ends apart"),
			st("theta1", "rad", "angle of link 1 to the x axis", "theta1_0"),
			st("theta2", "rad", "angle of link 2 to the x axis", "theta2_0"),
			st("omega1", "rad/s", "angular velocity of link 1").rate("theta1"),
			st("omega2", "rad/s", "angular velocity of link 2").rate("theta2"),
			der("omega1", "rad/s2", "angular acceleration of link 1", start, all...),
			der("omega2", "rad/s2", "angular acceleration of link 2", start, all...),
			calc("s_c", "m", "length of the cylinder", cylinder, dependent("theta1")...),
			calc("v_c", "m/s", "rate of the length of the cylinder", cylinder, dependent("theta1", "omega1")...),
			par("l1", "m", 1, "length of link 1"),
			par("l2", "m", 0.5, "length of link 2"),
			par("m1", "kg", 200, "mass of link 1, uniform"),
			par("m2", "kg", 250, "mass at the joint of the links"),
			par("m3", "kg", 100, "mass at the end of link 2"),
			par("l_c", "m", 0.5, "distance of the cylinder's joint from the foot of link 1"),
			par("x_B", "m", math.Sqrt(3)/2, "foot of the cylinder, horizontal from that of link 1"),
			par("y_B", "m", 0, "foot of the cylinder, height above that of link 1"),
			par("theta1_0", "rad", math.Pi/6, "angle of link 1 at the start"),
			par("theta2_0", "rad", 3*math.Pi/2, "angle of link 2 at the start"),
			par("g", "m/s2", 9.81, "gravity, downwards"),
			symplecticSteps(),
		}}
}

func craneHydraulics() *model {
	start := []string{"a_p", "l3", "s_0", "c_d", "a_v", "rho", "a", "b", "p_T", "p_P", "gamma0", "amplitude", "frequency"}
	length := in("s_c", "m", "length of the cylinder")
	length.start = 0.5
	return &model{name: "crane_hydraulics", sources: []string{"euler.h", "euler.c", "differences.h", "differences.c", "crane_hydraulics.c"},
		outputOrder: 1, stop: 10, step: 1e-3,
		description: "Hydraulic crane of rodriguez: cylinder and valve, driven by the motion of the cylinder; forward Euler",
		variables: []variable{
			length,
			in("v_c", "m/s", "rate of the length of the cylinder"),
			st("p1", "Pa", "pressure in the chamber that pulls", "p_T", "p_P", "gamma0").scaled(1e6),
			st("p2", "Pa", "pressure in the chamber that pushes", "p_T", "p_P", "gamma0").scaled(1e6),
			der("p1", "Pa/s", "rate of that pressure", start, dependent("s_c", "v_c", "p1")...),
			der("p2", "Pa/s", "rate of that pressure", start, dependent("s_c", "v_c", "p2")...),
			calc("f", "N", "force of the cylinder, pushing its ends apart",
				[]string{"a_p", "c", "p_T", "p_P", "gamma0"}, fixed("v_c", "p1", "p2")...),
			calc("gamma", "", "displacement of the spool, 0 closed to 1 open", []string{"gamma0", "amplitude", "frequency"}),
			par("a_p", "m2", 65e-4, "cross section of the piston"),
			par("l3", "m", 0.442, "length of the cylinder's bore"),
			par("s_0", "m", 0.5, "length of the cylinder with the piston in the middle"),
			par("c", "N.s/m", 1e5, "dissipation of the cylinder"),
			par("c_d", "", 0.67, "discharge coefficient of the valve"),
			par("a_v", "m2", 5e-4, "area of the open valve"),
			par("rho", "kg/m3", 850, "density of the fluid"),
			par("a", "1/Pa", 6.53e-10, "bulk modulus of the fluid, (28): compressibility without pressure"),
			par("b", "1/Pa2", -1.19e-18, "bulk modulus of the fluid, (28)"),
			par("p_T", "Pa", 1e5, "pressure of the tank"),
			par("p_P", "Pa", 7.6e6, "pressure of the pump"),
			par("gamma0", "", 0.4543455895980512, "displacement of the spool that the motion (33) is about"),
			par("amplitude", "", 0.1, "amplitude of that motion as part of gamma0"),
			par("frequency", "1/s", 2, "its frequency"),
			microSteps(),
		}}
}
