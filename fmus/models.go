package fmus

import (
	"fmt"
	"slices"
)

// model is the description of one FMU and its sources. Value references count the variables of a type from 0; the
// C sources get the variables from guid.h, and name parameters by an enumeration in this order.
type model struct {
	name        string
	description string
	sources     []string // in addition to those of every FMU
	plain       bool     // blackbox: no optional capabilities
	wrapped     bool     // its own source wraps the functions of the framework, see wrap.h
	wrongGUID   bool     // modelDescription.xml has another guid than the library
	defines     []string // further macros for the sources
	attributes  string   // of CoSimulation; "": as follows from the other fields
	stateless   bool
	fmi3        bool // FMI 3.0, otherwise 2.0
	outputOrder int  // maxOutputDerivativeOrder
	stop, step  float64
	variables   []variable
}

type role uint8

const (
	input      role = iota
	state           // continuous state, a function of parameters at the start
	derivative      // of a state
	calculated      // of states and inputs
	parameter
	independent
	count // integer parameter
	text  // string parameter
)

// roles are the names of the roles of reals in src/fmu.h.
var roles = [...]string{"INPUT", "STATE", "DERIVATIVE", "CALCULATED", "PARAMETER", "INDEPENDENT"}

type variable struct {
	name, unit, description string
	role                    role
	output                  bool // causality output, otherwise local
	start                   float64
	word                    string  // start of a string
	nominal                 float64 // 0: none
	min                     *float64
	enumeration             string   // type of a parameter that is an enumeration, "" if none
	items                   []string // of it, counting from 0
	derivativeOf            string   // name of the state that this variable is the derivative of
	depends                 []dependency
	initial                 []string // parameters that the value at the start depends on, in addition to depends
}

// dependency is an input or state that a variable depends on.
type dependency struct {
	name string
	kind string // as in dependenciesKind
}

func in(name, unit, description string) variable {
	return variable{name: name, unit: unit, description: description, role: input}
}

func par(name, unit string, start float64, description string) variable {
	v := variable{name: name, unit: unit, description: description, role: parameter, start: start}
	return v
}

// st returns a state; its start value depends on the parameters initial.
func st(name, unit, description string, initial ...string) variable {
	return variable{name: name, unit: unit, description: description, role: state, output: true,
		depends: []dependency{{name, "constant"}}, initial: initial}
}

// rate returns a state that is also the derivative of another one.
func (v variable) rate(of string) variable {
	v.derivativeOf = of
	return v
}

func der(of, unit, description string, initial []string, depends ...dependency) variable {
	return variable{name: "der(" + of + ")", unit: unit, description: description, role: derivative,
		derivativeOf: of, depends: depends, initial: initial}
}

func calc(name, unit, description string, initial []string, depends ...dependency) variable {
	return variable{name: name, unit: unit, description: description, role: calculated, output: true,
		depends: depends, initial: initial}
}

func microSteps() variable {
	one := 1.0
	return variable{name: "micro_steps", description: "forward Euler steps in each communication step",
		role: count, start: 10, min: &one}
}

func fixed(names ...string) []dependency { return kinds("fixed", names) }

func dependent(names ...string) []dependency { return kinds("dependent", names) }

func kinds(kind string, names []string) []dependency {
	var d []dependency
	for _, n := range names {
		d = append(d, dependency{n, kind})
	}
	return d
}

func join(d ...[]dependency) []dependency {
	var all []dependency
	for _, x := range d {
		all = append(all, x...)
	}
	return all
}

// models returns all models in the order of Names.
func models() []*model {
	return []*model{
		linear(), blackbox(),
		quarterChassisA(), quarterWheelA(), quarterChassisB(), quarterWheelB(),
		massForce(), massDisplacement(), coupling(), polynomial(),
		contactMass(), couplingCubic(), chain(),
		oscillatorCoupled(), oscillatorDriven(), oscillatorHub(),
		pendulumCoupled(), pendulumDriven(), craneMechanics(), craneHydraulics(),
		correctorOne(), correctorTwo(), bare(correctorOne()), bare(correctorTwo()),
	}
}

func find(name string) (*model, error) {
	for _, m := range append(models(), misbehaving()...) {
		if m.name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("no FMU of macrostep is called %q; choose one of %v", name, Names())
}

// find3 returns a model for FMI 3.0, where time is a variable (2.4.7.4).
func find3(name string) (*model, error) {
	m, err := find(name)
	if err != nil {
		return nil, err
	}
	return m.as3(), nil
}

func (m *model) as3() *model {
	m.fmi3 = true
	if !slices.ContainsFunc(m.variables, func(v variable) bool { return v.role == independent }) {
		m.variables = append(m.variables, variable{name: "time", unit: "s", description: "time", role: independent})
	}
	return m
}

// first returns the first value reference of integers or strings: each variable of FMI 3.0 has its own.
func (m *model) first(r role) int {
	if !m.fmi3 {
		return 0
	}
	return map[role]int{count: 1 << 16, text: 2 << 16}[r]
}

// Sizes of linear.
const (
	linearStates  = 8
	linearInputs  = 4
	linearOutputs = 4
)

func linear() *model {
	const nx, nu, ny = linearStates, linearInputs, linearOutputs
	m := &model{name: "linear", sources: []string{"lti.h", "lti.c", "linear.c"}, outputOrder: 5, stop: 1, step: 1e-3,
		description: "State space x' = A x + B u, y = C x + D u, exact for polynomial inputs"}
	vector := func(name string, n int) []string {
		var s []string
		for i := 1; i <= n; i++ {
			s = append(s, fmt.Sprintf("%s[%d]", name, i))
		}
		return s
	}
	row := func(name string, i, n int) []string {
		var s []string
		for j := 1; j <= n; j++ {
			s = append(s, fmt.Sprintf("%s[%d,%d]", name, i, j))
		}
		return s
	}
	u, x, y, x0 := vector("u", nu), vector("x", nx), vector("y", ny), vector("x0", nx)
	for i := range u {
		m.variables = append(m.variables, in(u[i], "", "input"))
	}
	for i := range x {
		v := st(x[i], "", "state", x0[i])
		v.output = false
		m.variables = append(m.variables, v)
	}
	all := join(fixed(u...), fixed(x...))
	for i := range x {
		start := append(append(row("A", i+1, nx), row("B", i+1, nu)...), x0...)
		m.variables = append(m.variables, der(x[i], "", "derivative of the state", start, all...))
	}
	for i := range y {
		start := append(append(row("C", i+1, nx), row("D", i+1, nu)...), x0...)
		m.variables = append(m.variables, calc(y[i], "", "output", start, all...))
	}
	for _, p := range []struct {
		name    string
		rows, n int
	}{{"A", nx, nx}, {"B", nx, nu}, {"C", ny, nx}, {"D", ny, nu}} {
		for i := 1; i <= p.rows; i++ {
			for _, name := range row(p.name, i, p.n) {
				m.variables = append(m.variables, par(name, "", 0, "coefficient"))
			}
		}
	}
	for i := range x0 {
		m.variables = append(m.variables, par(x0[i], "", 0, "state at the start"))
	}
	return m
}

func blackbox() *model {
	m := bare(linear())
	m.name = "blackbox"
	return m
}

// massC and the following functions return parameters that several models share.
func massC() variable { return par("m_c", "kg", 400, "mass of the chassis") }

func wheelParameters() []variable {
	return []variable{
		par("m_w", "kg", 40, "mass of the wheel"),
		par("k_w", "N/m", 150000, "stiffness of the tyre"),
		par("z_road", "m", 0.1, "height of the road from the start on"),
	}
}

func suspensionParameters() []variable {
	return []variable{
		par("k_c", "N/m", 15000, "stiffness of the suspension"),
		par("d_c", "", 1000, "damping of the suspension: force at a relative velocity of 1 m/s, N (s/m)^(2/(1+2 n_d))"),
		par("n_d", "", 0.5, "the damping force grows with the relative velocity to the power 2/(1+2 n_d)"),
	}
}

func quarterChassisA() *model {
	return &model{name: "quarter_chassis_a", sources: []string{"lti.h", "lti.c", "quarter_chassis_a.c"},
		outputOrder: 5, stop: 4, step: 1e-3,
		description: "Quarter car, reticulation A: the chassis as a free mass under the force of the suspension; exact",
		variables: []variable{
			in("F_c", "N", "force of the suspension, pulling the chassis down"),
			st("z_c", "m", "displacement of the chassis"),
			st("v_c", "m/s", "velocity of the chassis").rate("z_c"),
			der("v_c", "m/s2", "acceleration of the chassis", []string{"m_c"}, fixed("F_c")...),
			massC(),
		}}
}

func quarterWheelA() *model {
	force := join(dependent("v_c"), fixed("z_w"), dependent("v_w"), fixed("z_c"))
	m := &model{name: "quarter_wheel_a", sources: []string{"euler.h", "euler.c", "quarter_wheel_a.c"},
		outputOrder: 1, stop: 4, step: 1e-3,
		description: "Quarter car, reticulation A: wheel and suspension, driven by the velocity of the chassis; forward Euler",
		variables: []variable{
			in("v_c", "m/s", "velocity of the chassis"),
			st("z_w", "m", "displacement of the wheel"),
			st("v_w", "m/s", "velocity of the wheel").rate("z_w"),
			st("z_c", "m", "displacement of the chassis, integrated from its velocity"),
			der("v_w", "m/s2", "acceleration of the wheel", []string{"m_w", "k_w", "z_road", "k_c", "d_c", "n_d"}, force...),
			der("z_c", "m/s", "velocity of the chassis", nil, dependency{"v_c", "constant"}),
			calc("F_c", "N", "force of the suspension, pulling the chassis down", []string{"k_c", "d_c", "n_d"}, force...),
		}}
	// The displacement of the chassis belongs to the chassis; here it is internal.
	m.variables[3].output = false
	m.variables = append(m.variables, wheelParameters()...)
	m.variables = append(m.variables, suspensionParameters()...)
	m.variables = append(m.variables, microSteps())
	return m
}

func quarterChassisB() *model {
	force := join(dependent("v_w"), fixed("z_c"), dependent("v_c"), fixed("z_w"))
	m := &model{name: "quarter_chassis_b", sources: []string{"euler.h", "euler.c", "quarter_chassis_b.c"},
		outputOrder: 1, stop: 4, step: 1e-3,
		description: "Quarter car, reticulation B: chassis and suspension, driven by the velocity of the wheel; forward Euler",
		variables: []variable{
			in("v_w", "m/s", "velocity of the wheel"),
			st("z_c", "m", "displacement of the chassis"),
			st("v_c", "m/s", "velocity of the chassis").rate("z_c"),
			st("z_w", "m", "displacement of the wheel, integrated from its velocity"),
			der("v_c", "m/s2", "acceleration of the chassis", []string{"m_c", "k_c", "d_c", "n_d"}, force...),
			der("z_w", "m/s", "velocity of the wheel", nil, dependency{"v_w", "constant"}),
			calc("F_c", "N", "force of the suspension, pulling the chassis down", []string{"k_c", "d_c", "n_d"}, force...),
			massC(),
		}}
	m.variables[3].output = false
	m.variables = append(m.variables, suspensionParameters()...)
	m.variables = append(m.variables, microSteps())
	return m
}

func quarterWheelB() *model {
	m := &model{name: "quarter_wheel_b", sources: []string{"euler.h", "euler.c", "quarter_wheel_b.c"},
		outputOrder: 1, stop: 4, step: 1e-3,
		description: "Quarter car, reticulation B: the wheel under the force of the suspension; forward Euler",
		variables: []variable{
			in("F_c", "N", "force of the suspension, pushing the wheel up"),
			st("z_w", "m", "displacement of the wheel"),
			st("v_w", "m/s", "velocity of the wheel").rate("z_w"),
			der("v_w", "m/s2", "acceleration of the wheel", []string{"m_w", "k_w", "z_road"}, fixed("F_c", "z_w")...),
		}}
	m.variables = append(m.variables, wheelParameters()...)
	m.variables = append(m.variables, microSteps())
	return m
}

func massParameters() []variable {
	return []variable{
		par("m", "kg", 1, "mass"),
		par("c", "N/m", 1000, "stiffness of the spring to the ground"),
		par("d", "N.s/m", 10, "damping to the ground"),
		par("x0", "m", 0, "displacement at the start"),
		par("v0", "m/s", 0, "velocity at the start"),
	}
}

func couplingParameters() []variable {
	return []variable{
		par("c_c", "N/m", 1000, "stiffness of the coupling spring"),
		par("d_c", "N.s/m", 10, "damping of the coupling"),
	}
}

func massForce() *model {
	m := &model{name: "mass_force", sources: []string{"lti.h", "lti.c", "mass_force.c"}, outputOrder: 5, stop: 0.5, step: 1e-3,
		description: "Two-mass oscillator: one mass on spring and damper, driven by the coupling force; exact for polynomial inputs",
		variables: []variable{
			in("F", "N", "coupling force"),
			st("x", "m", "displacement", "x0"),
			st("v", "m/s", "velocity", "v0").rate("x"),
			der("v", "m/s2", "acceleration", []string{"m", "c", "d", "x0", "v0"}, fixed("F", "x", "v")...),
		}}
	m.variables = append(m.variables, massParameters()...)
	return m
}

func massDisplacement() *model {
	m := &model{name: "mass_displacement", sources: []string{"lti.h", "lti.c", "mass_displacement.c"}, outputOrder: 5, stop: 0.5, step: 1e-3,
		description: "Two-mass oscillator: one mass with the coupling spring and damper, driven by the motion of the other; " +
			"exact for polynomial inputs",
		variables: []variable{
			in("x_other", "m", "displacement of the other mass"),
			in("v_other", "m/s", "velocity of the other mass"),
			st("x", "m", "displacement", "x0"),
			st("v", "m/s", "velocity", "v0").rate("x"),
			der("v", "m/s2", "acceleration", []string{"m", "c", "d", "x0", "v0", "c_c", "d_c"},
				fixed("x_other", "v_other", "x", "v")...),
		}}
	m.variables = append(m.variables, massParameters()...)
	m.variables = append(m.variables, couplingParameters()...)
	return m
}

func coupling() *model {
	m := &model{name: "coupling", sources: []string{"lti.h", "lti.c", "coupling.c"}, outputOrder: 5, stop: 0.5, step: 1e-3,
		stateless:   true,
		description: "Two-mass oscillator: the coupling spring and damper without a state, F = c_c (x2 - x1) + d_c (v2 - v1)",
		variables: []variable{
			in("x1", "m", "displacement of mass 1"),
			in("v1", "m/s", "velocity of mass 1"),
			in("x2", "m", "displacement of mass 2"),
			in("v2", "m/s", "velocity of mass 2"),
			calc("F", "N", "coupling force on mass 1; mass 2 feels its negative", []string{"c_c", "d_c"},
				fixed("x1", "v1", "x2", "v2")...),
		}}
	m.variables = append(m.variables, couplingParameters()...)
	return m
}

func polynomial() *model {
	return &model{name: "polynomial", sources: []string{"polynomial.c"}, outputOrder: 1, stop: 1, step: 1e-3,
		stateless:   true,
		description: "Nonlinear function without a state, y = a + b u + c u^2 + d u^3, for algebraic loops",
		variables: []variable{
			in("u", "", "input"),
			calc("y", "", "output", []string{"a", "b", "c", "d"}, dependent("u")...),
			par("a", "", 0, "constant"),
			par("b", "", 0, "coefficient of u"),
			par("c", "", 0, "coefficient of u^2"),
			par("d", "", 0, "coefficient of u^3"),
		}}
}
