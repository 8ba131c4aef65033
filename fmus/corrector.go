package fmus

func correctorOne() *model {
	return &model{name: "corrector_one", sources: []string{"lti.h", "lti.c", "corrector_one.c"}, outputOrder: 5, stop: 0.3, step: 1e-4,
		description: "Two-mass oscillator of haid: mass 1, driven by the coupling force; exact for polynomial inputs",
		variables: []variable{
			in("F", "N", "coupling force"),
			st("s", "m", "displacement", "s0"),
			st("v", "m/s", "velocity", "v0").rate("s"),
			der("v", "m/s2", "acceleration", []string{"m", "c", "d", "s0", "v0"}, fixed("F", "s", "v")...),
			par("m", "kg", 10, "mass"),
			par("c", "N/m", 1e6, "stiffness of the spring to the ground"),
			par("d", "N.s/m", 1, "damping to the ground"),
			par("s0", "m", 0, "displacement at the start"),
			par("v0", "m/s", 1, "velocity at the start"),
		}}
}

func correctorTwo() *model {
	return &model{name: "corrector_two", sources: []string{"lti.h", "lti.c", "corrector_two.c"}, outputOrder: 5, stop: 0.3, step: 1e-4,
		description: "Two-mass oscillator of haid: mass 2 with the coupling spring and damper, driven by the motion of mass " +
			"1; exact for polynomial inputs if n_d = 1",
		variables: []variable{
			in("s_other", "m", "displacement of mass 1"),
			in("v_other", "m/s", "velocity of mass 1"),
			hidden(st("s", "m", "displacement", "s0")),
			hidden(st("v", "m/s", "velocity", "v0").rate("s")),
			der("v", "m/s2", "acceleration", []string{"m", "c", "d", "s0", "v0", "c_k", "d_k", "n_d", "d_min", "d_max"},
				join(fixed("s_other"), dependent("v_other"), fixed("s"), dependent("v"))...),
			calc("F", "N", "coupling force, by which mass 2 pulls mass 1", []string{"s0", "v0", "c_k", "d_k", "n_d", "d_min", "d_max"},
				join(fixed("s_other"), dependent("v_other"), fixed("s"), dependent("v"))...),
			par("m", "kg", 10, "mass"),
			par("c", "N/m", 1e7, "stiffness of the spring to the ground"),
			par("d", "N.s/m", 2, "damping to the ground"),
			par("s0", "m", 0, "displacement at the start"),
			par("v0", "m/s", 1, "velocity at the start"),
			par("c_k", "N/m", 2e5, "stiffness of the coupling"),
			par("d_k", "N.s/m", 5e2, "damping of the coupling, where the velocities differ by 1 m/s"),
			par("n_d", "", 1, "exponent of the damping force; 1: linear, and then without bounds"),
			par("d_min", "N.s/m", 10, "least damping if n_d is not 1"),
			par("d_max", "N.s/m", 1e4, "largest damping if n_d is not 1"),
		}}
}

// hidden makes an output a local variable.
func hidden(v variable) variable {
	v.output = false
	return v
}

// bare takes all optional capabilities away.
func bare(m *model) *model {
	m.name, m.plain, m.outputOrder = m.name+"_blackbox", true, 0
	m.description += "; without rollback, derivatives, input interpolation and dependencies"
	return m
}
