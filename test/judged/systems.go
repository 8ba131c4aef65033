package judged

import (
	"fmt"
	"math"
)

// Systems returns the systems, one of each kind.
func Systems() []*System {
	return []*System{lorenz(), lotka(), stickSlip(), backlash(), vanDerPol(), loop(), ring(), beats(), quantised(), robertson()}
}

// plain returns outputs without direct feedthrough that are states.
func plain(names ...string) []output {
	var out []output
	for _, name := range names {
		out = append(out, output{name: name, value: name})
	}
	return out
}

// lorenz is the system of Lorenz, Deterministic nonperiodic flow, J. Atmos. Sci. 20 (1963), cut at z.
func lorenz() *System {
	f := flow{
		start: []float64{1, 1, 20},
		rates: func(_ int, _ float64, x, dx []float64) {
			dx[0], dx[1], dx[2] = 10*(x[1]-x[0]), x[0]*(28-x[2])-x[1], x[0]*x[1]-8./3*x[2]
		},
		output: func(_ int, _ float64, x []float64) []float64 { return x },
	}
	return &System{
		Name: "lorenz", Kind: "chaos", Stop: 6, Steps: [3]float64{1e-5, 1e-4, 5e-3},
		Components: []Component{
			{Name: "roll", Part: 2.5e-4, inputs: []string{"z"}, states: []state{{"x", 1}, {"y", 1}}, outputs: plain("x", "y"),
				rates: "der_x = 10*(y - x); der_y = x*(28 - z) - y;"},
			{Name: "profile", Part: 2.5e-4, NoRollback: true, inputs: []string{"x", "y"}, states: []state{{"z", 20}}, outputs: plain("z"),
				rates: "der_z = x*y - 8*z/3;"},
		},
		Connections: []Connection{{"roll.x", "profile.x"}, {"roll.y", "profile.y"}, {"profile.z", "roll.z"}},
		solve:       f.solve,
	}
}

// lotka is the system of Lotka and Volterra. The reference integrates the logarithms of the populations.
func lotka() *System {
	f := flow{
		start: []float64{math.Log(10), math.Log(5)},
		rates: func(_ int, _ float64, q, dq []float64) {
			dq[0], dq[1] = 1.1-0.4*math.Exp(q[1]), 0.1*math.Exp(q[0])-0.4
		},
		output: func(_ int, _ float64, q []float64) []float64 { return []float64{math.Exp(q[0]), math.Exp(q[1])} },
	}
	return &System{
		Name: "lotka", Kind: "predator and prey, coupled by products", Stop: 50, Steps: [3]float64{1e-3, 1e-2, 0.05},
		Components: []Component{
			{Name: "prey", Part: 2e-3, inputs: []string{"eaters"}, states: []state{{"n", 10}}, outputs: plain("n"),
				rates: "der_n = (1.1 - 0.4*eaters)*n;"},
			{Name: "predator", Part: 2e-3, inputs: []string{"food"}, states: []state{{"n", 5}}, outputs: plain("n"),
				rates: "der_n = (0.1*food - 0.4)*n;"},
		},
		Connections: []Connection{{"prey.n", "predator.food"}, {"predator.n", "prey.eaters"}},
		solve:       f.solve,
	}
}

// stickSlip is a block of 1 kg, drawn by a spring whose end moves at 0.2 m/s, on a base of 3 kg on a spring. The contact is
// elastic (400 N/m) until its force reaches 4 N, then slips at 2 N until the relative velocity changes its sign.
func stickSlip() *System {
	// States: stretch of the spring, velocity of the block, position and velocity of the base, deflection of the contact. The mode
	// is the direction of slip, 0 = it sticks.
	f := flow{
		start: make([]float64, 5),
		rates: func(mode int, _ float64, x, dx []float64) {
			friction := 2 * float64(mode)
			if mode == 0 {
				friction = 400 * x[4]
				dx[4] = x[1] - x[3]
			}
			dx[0] = 0.2 - x[1]
			dx[1] = 20*x[0] + 0.2*dx[0] - friction
			dx[2] = x[3]
			dx[3] = (friction - 100*x[2] - 4*x[3]) / 3
		},
		inside: func(mode int, _ float64, x []float64) float64 {
			if mode == 0 {
				return 4 - 400*math.Abs(x[4])
			}
			return float64(mode) * (x[1] - x[3])
		},
		next: func(mode int, _ float64, x []float64) int {
			if mode == 0 {
				return int(math.Copysign(1, x[4]))
			}
			x[4] = float64(mode) * 2 / 400
			return 0
		},
		output: func(mode int, _ float64, x []float64) []float64 {
			friction := 2 * float64(mode)
			if mode == 0 {
				friction = 400 * x[4]
			}
			return []float64{friction, x[3]}
		},
		most: 5e-3,
	}
	return &System{
		Name: "stick-slip", Kind: "dry friction between two bodies", Stop: 15, Steps: [3]float64{2.5e-5, 5e-4, 5e-3},
		Components: []Component{
			{Name: "block", Part: 2e-5, inputs: []string{"below"},
				states:  []state{{"stretch", 0}, {"v", 0}, {"z", 0}, {"slip", 0}},
				outputs: []output{{name: "friction", value: "slip ? 2*slip : 400*z"}},
				rates: `double pull = 20*stretch + 0.2*(0.2 - v);
	der_stretch = 0.2 - v; der_v = pull - (slip ? 2*slip : 400*z); der_z = slip ? 0 : v - below;`,
				update: `if (slip == 0 && fabs(400*z) > 4) slip = z > 0 ? 1 : -1;
	else if (slip*(v - below) < 0) { z = slip*2/400; slip = 0; }`},
			{Name: "base", Part: 1e-3, NoRollback: true, inputs: []string{"push"}, states: []state{{"x", 0}, {"v", 0}}, outputs: plain("v"),
				rates: "der_x = v; der_v = (push - 100*x - 4*v)/3;"},
		},
		Connections: []Connection{{"block.friction", "base.push"}, {"base.v", "block.below"}},
		solve:       f.solve,
	}
}

// backlash is a motor of 0.1 kg m² that swings a load of 0.2 kg m² through teeth of 50 N m/rad with a play of ±0.05 rad.
func backlash() *System {
	torque := func(side int, x []float64) float64 {
		if side == 0 {
			return 0
		}
		return 50 * (x[0] - x[2] - 0.05*float64(side))
	}
	// States: angle and speed of the motor and of the load. The mode is the side that touches, 0 = none.
	f := flow{
		start: make([]float64, 4),
		rates: func(side int, t float64, x, dx []float64) {
			m := torque(side, x)
			dx[0], dx[1], dx[2], dx[3] = x[1], (2*math.Sin(3*t)-0.3*x[1]-m)/0.1, x[3], (m-0.4*x[3])/0.2
		},
		inside: func(side int, _ float64, x []float64) float64 {
			if side == 0 {
				return 0.05 - math.Abs(x[0]-x[2])
			}
			return float64(side)*(x[0]-x[2]) - 0.05
		},
		next: func(side int, _ float64, x []float64) int {
			if side == 0 {
				return int(math.Copysign(1, x[0]-x[2]))
			}
			return 0
		},
		output: func(side int, _ float64, x []float64) []float64 { return []float64{x[0], torque(side, x)} },
		most:   5e-3,
	}
	return &System{
		Name: "backlash", Kind: "play in a gear between two inertias", Stop: 10, Steps: [3]float64{1e-4, 1e-3, 5e-3},
		Components: []Component{
			{Name: "motor", Part: 1e-4, inputs: []string{"load"}, states: []state{{"angle", 0}, {"speed", 0}}, outputs: plain("angle"),
				rates: "der_angle = speed; der_speed = (2*sin(3*time) - 0.3*speed - load)/0.1;"},
			{Name: "gear", Part: 1e-4, NoRollback: true, inputs: []string{"drive"}, states: []state{{"angle", 0}, {"speed", 0}},
				outputs: []output{{"torque", "50*(fdim(drive - angle, 0.05) - fdim(angle - drive, 0.05))", []string{"drive"}}},
				rates: `double torque = 50*(fdim(drive - angle, 0.05) - fdim(angle - drive, 0.05));
	der_angle = speed; der_speed = (torque - 0.4*speed)/0.2;`},
		},
		Connections: []Connection{{"motor.angle", "gear.drive"}, {"gear.torque", "motor.load"}},
		solve:       f.solve,
	}
}

// vanDerPol is the oscillator of van der Pol with μ = 4. The reference integrates it in the plane of Liénard,
// w = x - x³/3 - x'/μ.
func vanDerPol() *System {
	velocity := func(x []float64) float64 { return 4 * (x[0] - x[0]*x[0]*x[0]/3 - x[1]) }
	f := flow{
		start:  []float64{2, 2 - 8./3},
		rates:  func(_ int, _ float64, x, dx []float64) { dx[0], dx[1] = velocity(x), x[0]/4 },
		output: func(_ int, _ float64, x []float64) []float64 { return []float64{x[0], velocity(x)} },
	}
	return &System{
		Name: "van-der-pol", Kind: "relaxation oscillator", Stop: 40, Steps: [3]float64{5e-5, 3e-4, 5e-3},
		Components: []Component{
			{Name: "displacement", Part: 1e-3, inputs: []string{"v"}, states: []state{{"x", 2}}, outputs: plain("x"), rates: "der_x = v;"},
			{Name: "velocity", Part: 1e-3, NoRollback: true, inputs: []string{"x"}, states: []state{{"v", 0}}, outputs: plain("v"),
				rates: "der_v = 4*(1 - x*x)*v - x;"},
		},
		Connections: []Connection{{"displacement.x", "velocity.x"}, {"velocity.v", "displacement.v"}},
		solve:       f.solve,
	}
}

// loop is a nonlinear algebraic loop of gain up to 0.48 through two components with one state each.
func loop() *System {
	around := func(t float64, x []float64) (y, u float64) {
		rest := x[0] + 0.6*(math.Sin(t)-0.9*x[1])
		for range 50 { // Newton's method: y + 0.48 tanh y increases
			th := math.Tanh(y)
			y -= (y + 0.48*th - rest) / (1 + 0.48*(1-th*th))
		}
		return y, (y - x[0]) / 0.6
	}
	f := flow{
		start: []float64{1, 0},
		rates: func(_ int, t float64, x, dx []float64) {
			y, u := around(t, x)
			dx[0], dx[1] = u-2*x[0], (y-x[1])/0.8
		},
		output: func(_ int, t float64, x []float64) []float64 {
			y, u := around(t, x)
			return []float64{y, u}
		},
	}
	return &System{
		Name: "loop", Kind: "direct feedthrough around the loop", Stop: 20, Steps: [3]float64{1e-2, 0.1, 0.5},
		Components: []Component{
			{Name: "plant", Part: 2e-3, inputs: []string{"u"}, states: []state{{"p", 1}}, outputs: []output{{"y", "p + 0.6*u", []string{"u"}}},
				rates: "der_p = u - 2*p;"},
			{Name: "feedback", Part: 2e-3, inputs: []string{"y"}, states: []state{{"q", 0}},
				outputs: []output{{"u", "sin(time) - 0.8*tanh(y) - 0.9*q", []string{"y"}}}, rates: "der_q = (y - q)/0.8;"},
		},
		Connections: []Connection{{"plant.y", "feedback.y"}, {"feedback.u", "plant.u"}},
		solve:       f.solve,
	}
}

// ring is a flow through five cells and back, the first of which is heated.
func ring() *System {
	f := flow{
		start: []float64{1, 0, 0, 0, 0},
		rates: func(_ int, t float64, x, dx []float64) {
			dx[0] = math.Pow(math.Sin(0.4*t), 2)
			for i := range x {
				dx[i] += (1+0.1*float64(i))*(x[(i+4)%5]-x[i]) - 0.05*x[i]
			}
		},
		output: func(_ int, _ float64, x []float64) []float64 { return x },
	}
	s := &System{Name: "ring", Kind: "one-way ring of five cells", Stop: 40, Steps: [3]float64{2e-2, 0.2, 1.2}, solve: f.solve}
	for i, rate := range []string{"inlet - T - 0.05*T + pow(sin(0.4*time), 2)", "1.1*(inlet - T) - 0.05*T", "1.2*(inlet - T) - 0.05*T",
		"1.3*(inlet - T) - 0.05*T", "1.4*(inlet - T) - 0.05*T"} {
		x := state{"T", 0}
		if i == 0 {
			x.start = 1
		}
		s.Components = append(s.Components, Component{Name: fmt.Sprintf("cell%d", i+1), Part: 5e-3, NoRollback: i == 2, inputs: []string{"inlet"},
			states: []state{x}, outputs: plain("T"), rates: "der_T = " + rate + ";"})
		s.Connections = append(s.Connections, Connection{fmt.Sprintf("cell%d.T", i+1), fmt.Sprintf("cell%d.inlet", (i+1)%5+1)})
	}
	return s
}

// beats are two oscillators of 1 kg, 10 N/m and 0.01 N s/m, joined by a spring of 0.3 N/m. The reference is the closed form
// of the sum and the difference, which are damped oscillations of their own.
func beats() *System {
	mode := func(t, stiffness float64) float64 { // from 1 m at rest
		w := math.Sqrt(stiffness - 0.005*0.005)
		return math.Exp(-0.005*t) * (math.Cos(w*t) + 0.005/w*math.Sin(w*t))
	}
	solve := func(times []float64) (out [][]float64, err error) {
		for _, t := range times {
			sum, difference := mode(t, 10), mode(t, 10.6)
			out = append(out, []float64{(sum + difference) / 2, (sum - difference) / 2})
		}
		return out, nil
	}
	return &System{
		Name: "beats", Kind: "weakly coupled and damped oscillators over many periods", Stop: 200, Steps: [3]float64{5e-3, 4e-2, 0.125},
		Components: []Component{
			{Name: "left", Part: 5e-3, inputs: []string{"other"}, states: []state{{"x", 1}, {"v", 0}}, outputs: plain("x"),
				rates: "der_x = v; der_v = -10*x - 0.01*v - 0.3*(x - other);"},
			{Name: "right", Part: 5e-3, inputs: []string{"other"}, states: []state{{"x", 0}, {"v", 0}}, outputs: plain("x"),
				rates: "der_x = v; der_v = -10*x - 0.01*v - 0.3*(x - other);"},
		},
		Connections: []Connection{{"left.x", "right.other"}, {"right.x", "left.other"}},
		solve:       solve,
	}
}

// quantised is a position control whose sensor has a resolution of 0.05 m.
func quantised() *System {
	// States: position, velocity, integral of the controller. The mode is the value of the converter in units.
	f := flow{
		start: make([]float64, 3),
		rates: func(mode int, t float64, x, dx []float64) {
			e := math.Sin(0.4*t) - 0.05*float64(mode)
			dx[0], dx[1], dx[2] = x[1], 8*e+2*x[2]-3*x[1], e
		},
		inside: func(mode int, _ float64, x []float64) float64 { return 0.025 - math.Abs(x[0]-0.05*float64(mode)) },
		next: func(mode int, _ float64, x []float64) int {
			return mode + int(math.Copysign(1, x[0]-0.05*float64(mode)))
		},
		output: func(mode int, t float64, x []float64) []float64 {
			y := 0.05 * float64(mode)
			return []float64{y, 8*(math.Sin(0.4*t)-y) + 2*x[2]}
		},
		most: 5e-3,
	}
	return &System{
		Name: "quantised", Kind: "AD converter in the loop", Stop: 20, Steps: [3]float64{1e-3, 2e-2, 0.25},
		Components: []Component{
			{Name: "drive", Part: 1e-3, inputs: []string{"force"}, states: []state{{"x", 0}, {"v", 0}},
				outputs: []output{{name: "reading", value: "0.05*floor(x/0.05 + 0.5)"}}, rates: "der_x = v; der_v = force - 3*v;"},
			{Name: "control", Part: 1e-3, NoRollback: true, inputs: []string{"reading"}, states: []state{{"sum", 0}},
				outputs: []output{{"force", "8*(sin(0.4*time) - reading) + 2*sum", []string{"reading"}}}, rates: "der_sum = sin(0.4*time) - reading;"},
		},
		Connections: []Connection{{"drive.reading", "control.reading"}, {"control.force", "drive.force"}},
		solve:       f.solve,
	}
}

// robertson is the reaction A → B, B + C → A + C, 2 B → B + C of Robertson, The solution of a set of reaction rate equations,
// in Numerical Analysis, an Introduction (1966), with rates of 0.04, 100 and 3000 1/s. The reference uses A = 1 - B - C.
func robertson() *System {
	f := flow{
		start: []float64{0, 0},
		rates: func(_ int, _ float64, x, dx []float64) {
			dx[1] = 3000 * x[0] * x[0]
			dx[0] = 0.04*(1-x[0]-x[1]) - 100*x[0]*x[1] - dx[1]
		},
		output: func(_ int, _ float64, x []float64) []float64 { return []float64{1 - x[0] - x[1], x[1], x[0]} },
		most:   2e-2,
	}
	return &System{
		Name: "robertson", Kind: "reaction of slow and fast rates", Stop: 40, Steps: [3]float64{2e-2, 0.2, 1.6},
		Components: []Component{
			{Name: "slow", Part: 2e-3, inputs: []string{"B"}, states: []state{{"A", 1}, {"C", 0}}, outputs: plain("A", "C"),
				rates: "der_A = 100*B*C - 0.04*A; der_C = 3000*B*B;"},
			{Name: "fast", Part: 2e-3, inputs: []string{"A", "C"}, states: []state{{"B", 0}}, outputs: plain("B"),
				rates: "der_B = 0.04*A - 100*B*C - 3000*B*B;"},
		},
		Connections: []Connection{{"slow.A", "fast.A"}, {"slow.C", "fast.C"}, {"fast.B", "slow.B"}},
		solve:       f.solve,
	}
}
