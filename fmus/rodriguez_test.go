package fmus

import (
	"fmt"
	"math"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
)

// star returns initialised FMUs of an oscillator.
func star(t *testing.T, s exact.Star, coupledSteps, hubSteps int) (coupled []*instance, hub *instance) {
	set := func(m exact.OscillatorMass, steps int) map[string]float64 {
		return map[string]float64{"m": m.M, "k": m.K, "c": m.C, "x0": m.X0, "v0": m.V0,
			"n_k": s.SpringPower, "n_c": s.DamperPower, "micro_steps": float64(steps)}
	}
	for _, m := range s.Coupled {
		p := set(m, coupledSteps)
		p["k_c"], p["c_c"] = m.Kc, m.Cc
		p["x_other"], p["v_other"] = s.Hub.X0, s.Hub.V0
		coupled = append(coupled, start(t, "oscillator_coupled", p))
	}
	return coupled, start(t, "oscillator_hub", set(s.Hub, hubSteps))
}

// The oscillators, coupled by held inputs, equal the plain loop of package exact, for several micro step ratios and laws.
func TestOscillators(t *testing.T) {
	damped := exact.EnergyStar3()
	damped.Coupled[0].C, damped.Coupled[0].Cc, damped.Coupled[1].Cc, damped.Hub.C = 0.5, 0.4, 0.3, 0.2
	damped.Hub.X0, damped.Coupled[1].X0 = 0.5, -1
	for _, c := range []struct {
		name         string
		star         exact.Star
		coupled, hub int
	}{
		{"two", exact.EnergyOscillator(), 1, 1},
		{"two, R = 10", exact.EnergyOscillator(), 1, 10},
		{"two, R = 1/10", exact.EnergyOscillator(), 10, 1},
		{"three", exact.EnergyStar3(), 1, 1},
		{"three, damped", damped, 2, 3},
		{"five", exact.EnergyStar5(), 1, 1},
		{"square root", exact.SqrtOscillator(), 1, 1},
		{"quadratic", exact.QuadraticOscillator(), 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			const H, n = 1e-3, 1000
			coupled, hub := star(t, c.star, c.coupled, c.hub)
			states, forces := c.star.Jacobi(H, n, c.coupled, c.hub)
			for i := range states {
				last := len(states[i]) - 2
				x, v := hub.get("x"), hub.get("v")
				near(t, "x of the hub", x, states[i][last], 1e-11)
				near(t, "v of the hub", v, states[i][last+1], 1e-9)
				for k, m := range coupled {
					f := m.get("f")
					m.near("x", states[i][2*k], 1e-11)
					m.near("v", states[i][2*k+1], 1e-9)
					near(t, "f", f, forces[i][k], 1e-8)
					hub.set(fmt.Sprintf("f[%d]", k+1), f)
					m.set("x_other", x)
					m.set("v_other", v)
				}
				for _, m := range append(coupled, hub) {
					m.step(float64(i)*H, H)
				}
			}
		})
	}
}

// The force uses the input at the start of the last micro step. The input itself is that at the end of its polynomial, and
// the next step begins there.
func TestForceIsOfTheLastMicroStep(t *testing.T) {
	f := start(t, "oscillator_coupled", map[string]float64{"k": 0, "v0": 0, "m": 1e12, "micro_steps": 4})
	f.set("x_other", 1)
	f.setDerivative("x_other", 1, 10)
	f.step(0, 0.4)
	f.near("f", -100*(1+10*0.3), 1e-6)
	f.near("x_other", 5, 1e-15)
	f.step(0.4, 0.4)
	f.near("f", -500, 1e-6)
	g := start(t, "oscillator_coupled", map[string]float64{"k": 0, "v0": 0, "m": 1e12})
	g.set("x_other", 1)
	g.setDerivative("x_other", 1, 10)
	g.step(0, 0.4)
	g.near("f", -100, 1e-6)
	h := start(t, "pendulum_coupled", map[string]float64{"m": 1e12, "micro_steps": 2, "g": 0, "l_c": 0})
	h.set("x_other", 3)
	h.set("y_other", h.get("y"))
	h.setDerivative("x_other", 1, 1)
	h.step(0, 1)
	h.near("f_x", -100*(3.5-h.get("x")), 1e-6)
	// Tips that meet have no direction, and no force.
	p := start(t, "pendulum_coupled", map[string]float64{"m": 1e12, "g": 0})
	p.set("x_other", p.get("x"))
	p.set("y_other", p.get("y"))
	p.step(0, 1e-3)
	p.near("f_x", 0, 0)
	c := start(t, "crane_hydraulics", map[string]float64{"micro_steps": 1})
	c.setDerivative("v_c", 1, 1)
	c.step(0, 1e-4)
	c.near("f", 65e-4*(c.get("p2")-c.get("p1")), 1e-9)
}

// Slopes of the power laws are exact; infinite ones at rest are replaced by finite ones.
func TestSlopesOfPowers(t *testing.T) {
	d := start(t, "quarter_wheel_a", map[string]float64{"n_d": 1.5, "d_c": 900})
	near(t, "damping at rest", d.directional("F_c", "v_c"), 900*0.5*1e3, 1e-6)
	f := start(t, "oscillator_coupled", map[string]float64{"n_k": 0.5, "n_c": 2, "c_c": 3, "v0": 2})
	near(t, "stiffness at rest", f.directional("f", "x"), 100*0.5*1e3, 1e-6)
	f.set("x_other", 0.25)
	f.set("v_other", -1)
	f.step(0, 1e-9)
	near(t, "stiffness", f.directional("f", "x_other"), -100*0.5/0.5, 1e-4)
	near(t, "damping", f.directional("f", "v_other"), -3*2*3, 1e-4)
	f.near("f", -100*0.5+3*9, 1e-4)
}

// Accelerations of the augmented Lagrangian satisfy the stabilised constraint along the rod, and follow the force across it.
func TestAugmentedLagrangian(t *testing.T) {
	const l, m, g, omega = 2.0, 1.0, 9.81, 10.0
	f := start(t, "pendulum_driven", map[string]float64{"x_pin": 0, "theta0": 1})
	f.set("f_x", 30)
	f.set("f_y", -5)
	for i := range 50 {
		f.step(float64(i)*0.01, 0.01)
		x, y, vx, vy := f.get("x"), f.get("y"), f.get("v_x"), f.get("v_y")
		ax, ay := f.get("der(v_x)"), f.get("der(v_y)")
		violation, rate := (x*x+y*y-l*l)/(2*l), (x*vx+y*vy)/l
		near(t, "constraint", (x*ax+y*ay)/l, -(vx*vx+vy*vy)/l-2*omega*rate-omega*omega*violation, 1e-10)
		near(t, "free direction", m*(x*ay-y*ax), x*(-5-m*g)-y*30, 1e-10)
	}
	f.set("f_x", 0)
	f.set("f_y", 0)
}

// The right sides of the crane are those of package exact.
func TestCrane(t *testing.T) {
	c := exact.DefaultCrane()
	x, dx := make([]float64, 6), make([]float64, 6)
	const H = 1e-3
	m, h := start(t, "crane_mechanics", map[string]float64{"theta1_0": 0.3, "theta2_0": 5.5}),
		start(t, "crane_hydraulics", map[string]float64{"micro_steps": 20})
	h.set("s_c", m.get("s_c"))
	for i := range 300 {
		now := float64(i+1) * H
		m.set("f", h.get("f"))
		m.step(float64(i)*H, H)
		h.set("s_c", m.get("s_c"))
		h.set("v_c", m.get("v_c"))
		h.step(float64(i)*H, H)
		copy(x, m.gets("theta1", "theta2", "omega1", "omega2"))
		copy(x[4:], h.gets("p1", "p2"))
		s, v, f := c.Cylinder(x)
		c.Right(now, x, dx)
		m.near("s_c", s, 1e-13)
		m.near("v_c", v, 1e-12)
		h.near("f", f, 1e-7)
		h.near("gamma", c.Spool(now), 1e-12)
		h.near("der(p1)", dx[4], 1e-3+1e-9*math.Abs(dx[4]))
		h.near("der(p2)", dx[5], 1e-3+1e-9*math.Abs(dx[5]))
		// The mechanics still have the force of the start of the step.
		arm, mass := v/x[2], c.M3*c.L1*c.L2
		if math.Abs(x[2]) > 1e-3 {
			d := m.get("der(omega1)") - dx[2]
			e := m.get("der(omega2)") - dx[3]
			a11, a12, a22 := (c.M1/3+c.M2+c.M3)*c.L1*c.L1, mass*math.Cos(x[0]-x[1]), c.M3*c.L2*c.L2
			df := m.get("f") - f
			near(t, "acceleration of link 1", a11*d+a12*e, df*arm, 1e-6*(1+math.Abs(df)))
			near(t, "acceleration of link 2", a12*d+a22*e, 0, 1e-6)
		}
	}
}

// A step in which the piston would leave its cylinder is discarded and changes nothing.
func TestPistonMeetsTheEnd(t *testing.T) {
	h := start(t, "crane_hydraulics", nil)
	h.step(0, 1e-3)
	p1, status := h.get("p1"), int32(0)
	h.set("s_c", 0.5+0.2211)
	status = h.DoStep(h.c, 1e-3, 1e-3, 1)
	h.refused("a step beyond the end", status, discard, "fmi2DoStep: the step from t = 0.001 by 0.001: the piston")
	h.near("p1", p1, 0)
	h.set("s_c", 0.5)
	h.step(1e-3, 1e-3)
}
