package fmus

// The nonlinear oscillators of meyer: two masses with a contact, and chains.

// integer returns an integer parameter of at least lowest.
func integer(name string, start, lowest float64, description string) variable {
	return variable{name: name, description: description, role: count, start: start, min: &lowest}
}

// scaled returns the variable with a nominal value.
func (v variable) scaled(nominal float64) variable {
	v.nominal = nominal
	return v
}

// integration returns the parameters of the solver in src/oscillators.c, with the
// tolerances of meyer.
func integration() []variable {
	return []variable{
		par("rtol", "", 1e-6, "relative tolerance of the integration; one of the experiment takes its place"),
		par("atol_x", "m", 1e-9, "absolute tolerance of displacements"),
		par("atol_v", "m/s", 1e-6, "absolute tolerance of velocities"),
	}
}

func contactMass() *model {
	m := &model{name: "contact_mass", sources: []string{"oscillators.h", "oscillators.c", "contact_mass.c"}, outputOrder: 1,
		stop: 0.2, step: 1e-5,
		description: "Nonlinear two-mass oscillator: one mass on spring and damper before a penalty contact, driven by the " +
			"coupling force; Radau IIA",
		variables: []variable{
			in("F", "N", "coupling force"),
			st("x", "m", "displacement", "x0"),
			st("v", "m/s", "velocity", "v0").rate("x"),
			der("v", "m/s2", "acceleration", []string{"m", "c", "d", "A", "B", "x0", "v0"},
				join(fixed("F"), dependent("x"), fixed("v"))...),
			par("m", "kg", 50, "mass"),
			par("c", "N/m", 1e5, "stiffness of the spring to the ground"),
			par("d", "N.s/m", 0, "damping to the ground"),
			par("A", "N", -1e-2, "contact force A e^(B x): its value at x = 0; 0: no contact"),
			par("B", "1/m", 1e7, "contact force A e^(B x): its growth"),
			par("x0", "m", -2, "displacement at the start"),
			par("v0", "m/s", 100, "velocity at the start"),
		}}
	m.variables = append(m.variables, integration()...)
	return m
}

func couplingCubic() *model {
	return &model{name: "coupling_cubic", sources: []string{"coupling_cubic.c"}, outputOrder: 1, stop: 0.2, step: 1e-6,
		stateless: true,
		description: "Nonlinear spring and damper between two masses without a state, F = c_c s + d_c r + C_c s^3 + D_c " +
			"r^3, s = x2 - x1, r = v2 - v1",
		variables: []variable{
			in("x1", "m", "displacement of mass 1").scaled(1e-3),
			in("v1", "m/s", "velocity of mass 1").scaled(10),
			in("x2", "m", "displacement of mass 2").scaled(1e-3),
			in("v2", "m/s", "velocity of mass 2").scaled(10),
			calc("F", "N", "coupling force on mass 1; mass 2 feels its negative", []string{"c_c", "d_c", "C_c", "D_c"},
				dependent("x1", "v1", "x2", "v2")...).scaled(1e5),
			par("c_c", "N/m", 1e5, "stiffness of the coupling"),
			par("d_c", "N.s/m", 0, "damping of the coupling"),
			par("C_c", "N/m3", 1e5, "cubic stiffness of the coupling"),
			par("D_c", "N.s3/m3", 1e-2, "cubic damping of the coupling"),
		}}
}

func chain() *model {
	// The masses between the coupling masses are internal, but affect the
	// accelerations. Their start values follow from the parameters.
	parameters := []string{"m", "c", "d", "C", "D", "impulse_min", "impulse_max", "impulse_first", "impulse_period",
		"impulse_duration", "impulse_delta", "A", "B", "x0_max", "v0_max"}
	m := &model{name: "chain", sources: []string{"oscillators.h", "oscillators.c", "chain.c"}, outputOrder: 1,
		stop: 0.5, step: 1e-6,
		description: "Piece of a nonlinear oscillator chain: any number of masses, coupled by the forces on the first and the last; Radau IIA",
		variables: []variable{
			in("F_left", "N", "force on the first mass").scaled(1e5),
			in("F_right", "N", "force on the last mass").scaled(1e5),
			st("x_left", "m", "displacement of the first mass", "x0_max").scaled(1e-3),
			st("v_left", "m/s", "velocity of the first mass", "v0_max").rate("x_left").scaled(10),
			st("x_right", "m", "displacement of the last mass", "x0_max").scaled(1e-3),
			st("v_right", "m/s", "velocity of the last mass", "v0_max").rate("x_right").scaled(10),
			der("v_left", "m/s2", "acceleration of the first mass", parameters,
				join(fixed("F_left"), dependent("x_left", "v_left", "x_right", "v_right", "time"))...),
			der("v_right", "m/s2", "acceleration of the last mass", parameters,
				join(fixed("F_right"), dependent("x_left", "v_left", "x_right", "v_right", "time"))...),
			par("m", "kg", 0.1, "each mass"),
			par("c", "N/m", 1e7, "stiffness of each spring"),
			par("d", "N.s/m", 1e4, "damping of each spring"),
			par("C", "N/m3", 1e14, "cubic stiffness of each spring"),
			par("D", "N.s3/m3", 1e2, "cubic damping of each spring"),
			par("impulse_min", "N", 1e6, "smallest amplitude of impulses"),
			par("impulse_max", "N", 5e6, "largest amplitude of impulses"),
			par("impulse_first", "s", 0, "time of the first impulse"),
			par("impulse_period", "s", 0.05, "time from impulse to impulse"),
			par("impulse_duration", "s", 2.5e-3, "duration of an impulse"),
			par("impulse_delta", "s", 1e-5, "time in which an impulse rises and falls"),
			par("A", "N", -1e-2, "contact forces A e^(B x): their value at x = 0"),
			par("B", "1/m", 5e5, "contact forces A e^(B x): their growth"),
			par("x0_max", "m", 1e-3, "displacements at the start are random up to this, to both sides"),
			par("v0_max", "m/s", 10, "velocities at the start are random up to this, in both directions"),
		}}
	m.variables = append(m.variables, integration()...)
	m.variables = append(m.variables,
		integer("masses", 5, 2, "number of masses"),
		integer("number", 1, 1, "number of the first mass in the whole chain"),
		integer("total", 0, 0, "number of masses of the whole chain, for impulses at joints; 0: no mass is its last"),
		integer("seed", 1, 0, "seed of all that is random"),
		integer("impulses", 3, 0, "how many of ten masses feel impulses of random size and direction"),
		integer("impulse_block", 0, 0, "0: random masses; else the masses beside the joints of blocks of so many feel impulses of impulse_max"),
		integer("contacts", 1, 0, "how many of ten masses feel a contact; these start at a negative displacement"),
		integer("ground_left", 0, 0, "1: the first mass is joined to the ground by a spring as between masses"),
		integer("ground_right", 0, 0, "1: so is the last mass"),
	)
	return m
}
