package fmus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
)

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.17g, not %.17g ± %g", what, got, want, tolerance)
	}
}

// The description and the tables in C agree on start values, on what can be set when, and on the model structure;
// GUIDs differ.
func TestDescriptions(t *testing.T) {
	guids := map[string]string{}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			i := instantiate(t, name)
			if guids[i.guid] != "" {
				t.Errorf("%s has the same GUID", guids[i.guid])
			}
			guids[i.guid] = name
			if v, p := i.GetVersion(), i.GetTypes(); v != "2.0" || p != "default" {
				t.Errorf("version %q, platform %q", v, p)
			}
			i.enter()
			var outputs []int
			for k, v := range i.md.Variables {
				if v.Causality == "output" {
					outputs = append(outputs, k+1)
				}
				if v.Integer != nil {
					var got int32
					i.must(i.GetInteger(i.c, &v.Reference, 1, &got))
					if got != *v.Integer.Start {
						t.Errorf("%s starts at %d in C, %d in the description", v.Name, got, *v.Integer.Start)
					}
					continue
				}
				if v.Causality == "parameter" || v.Causality == "input" {
					if got := i.get(v.Name); got != *v.Real.Start {
						t.Errorf("%s starts at %g in C, %g in the description", v.Name, got, *v.Real.Start)
					}
				}
			}
			listed := []int{}
			for _, u := range i.md.Outputs {
				listed = append(listed, u.Index)
			}
			if !slices.Equal(listed, outputs) {
				t.Errorf("ModelStructure lists the outputs %v, the variables are %v", listed, outputs)
			}
			for _, u := range slices.Concat(i.md.Outputs, i.md.Rates, i.md.Initial) {
				if u.Dependencies == nil {
					continue
				}
				last := 0
				for _, s := range strings.Fields(*u.Dependencies) {
					k, err := strconv.Atoi(s)
					if err != nil || k <= last {
						t.Errorf("dependencies of unknown %d do not ascend: %s", u.Index, *u.Dependencies)
					}
					last = k
				}
			}
			i.must(i.Exit(i.c))
			for _, v := range i.md.Variables {
				j := start(t, name, nil)
				one, n := 1.0, int32(1)
				var status int32
				if v.Integer != nil {
					status = j.SetInteger(j.c, &v.Reference, 1, &n)
				} else {
					status = j.SetReal(j.c, &v.Reference, 1, &one)
				}
				if (status == ok) != (v.Causality == "input") {
					t.Errorf("setting %s (%s) between steps: status %d", v.Name, v.Causality, status)
				}
				*messages = nil
			}
		})
	}
}

// Derivatives by undeclared dependencies are 0, and directional derivatives by all declared ones exist.
func TestDependencies(t *testing.T) {
	for _, name := range Names() {
		if strings.HasSuffix(name, "blackbox") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			check := func(i *instance, u unknown, knowns []string) {
				declared := map[string]bool{}
				for _, s := range strings.Fields(*u.Dependencies) {
					k, err := strconv.Atoi(s)
					if err != nil {
						t.Fatal(err)
					}
					declared[i.md.Variables[k-1].Name] = true
				}
				for _, known := range knowns {
					if known == i.md.Variables[u.Index-1].Name {
						continue // what is a state itself does not name itself
					}
					d := i.directional(i.md.Variables[u.Index-1].Name, known)
					if d != 0 && !declared[known] {
						t.Errorf("%s depends on %s (%g), undeclared", i.md.Variables[u.Index-1].Name, known, d)
					}
					delete(declared, known)
				}
				if len(declared) > 0 {
					t.Errorf("%s declares %v, which are no knowns", i.md.Variables[u.Index-1].Name, declared)
				}
			}
			var inputs, parameters, states []string
			set := map[string]float64{}
			l := load(t, name)
			for k, v := range l.md.Variables {
				switch {
				case v.Causality == "input":
					inputs = append(inputs, v.Name)
					set[v.Name] = 0.3 + float64(k)
				case v.Causality == "parameter" && v.Real != nil:
					parameters = append(parameters, v.Name)
					set[v.Name] = 1 + 0.01*float64(k)
				}
				if name == "crane_hydraulics" {
					set["l3"] = 10 // room for the piston
				}
				for _, w := range l.md.Variables {
					if w.Real != nil && w.Real.Derivative == k+1 {
						states = append(states, v.Name)
					}
				}
			}
			i := instantiate(t, name)
			for n, v := range set {
				i.set(n, v)
			}
			i.enter()
			for _, u := range i.md.Initial {
				check(i, u, slices.Concat(inputs, parameters))
			}
			i.must(i.Exit(i.c))
			i.step(0, 0.01)
			for _, u := range slices.Concat(i.md.Outputs, i.md.Rates) {
				check(i, u, slices.Concat(inputs, states))
			}
		})
	}
}

// space returns a random stable state space, a start, and the parameters of linear for them.
func space(r *rand.Rand, nx, nu, ny int, scale float64) (exact.StateSpace, []float64, map[string]float64) {
	set := map[string]float64{}
	fill := func(name string, rows, columns int, f func(i, j int) float64) *mat.Dense {
		m := mat.NewDense(rows, columns, nil)
		for i := range rows {
			for j := range columns {
				v := f(i, j)
				m.Set(i, j, v)
				set[fmt.Sprintf("%s[%d,%d]", name, i+1, j+1)] = v
			}
		}
		return m
	}
	normal := func(int, int) float64 { return r.NormFloat64() }
	s := exact.StateSpace{
		A: fill("A", nx, nx, func(i, j int) float64 {
			v := scale * r.NormFloat64()
			if i == j {
				v -= 3 * scale * math.Sqrt(float64(nx))
			}
			return v
		}),
		B: fill("B", nx, nu, normal), C: fill("C", ny, nx, normal), D: fill("D", ny, nu, normal),
	}
	x := make([]float64, nx)
	for i := range x {
		x[i] = r.NormFloat64()
		set[fmt.Sprintf("x0[%d]", i+1)] = x[i]
	}
	return s, x, set
}

func vector(name string, n int) []string {
	var s []string
	for i := 1; i <= n; i++ {
		s = append(s, fmt.Sprintf("%s[%d]", name, i))
	}
	return s
}

// driveEntry sets input k of linear with derivatives u[0][k], u[1][k], … and returns these.
func (i *instance) driveEntry(u [][]float64, k int) (d []float64) {
	i.t.Helper()
	for j := range u {
		d = append(d, u[j][k])
	}
	i.drive(fmt.Sprintf("u[%d]", k+1), d)
	return d
}

// linear equals the block exponential of gonum, for held to fifth-degree inputs, stiff systems, and several sizes.
func TestLinearIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for _, size := range [][3]int{{1, 1, 1}, {2, 1, 2}, {3, 2, 1}, {5, 3, 4}, {8, 4, 4}} {
		for _, scale := range []float64{0.1, 1, 30} {
			for degree := range 6 {
				s, x, set := space(r, size[0], size[1], size[2], scale)
				f := start(t, "linear", set)
				now := 0.0
				for range 5 {
					h := 0.05 + 0.1*r.Float64()
					u := make([][]float64, degree+1)
					end := make([]float64, size[1])
					for j := range u {
						u[j] = make([]float64, size[1])
						for k := range u[j] {
							u[j][k] = r.NormFloat64()
						}
					}
					for k := range end {
						end[k] = exact.Taylor(f.driveEntry(u, k), h)
					}
					f.step(now, h)
					now += h
					x = s.Step(x, u, h)
					y := s.Outputs(x, end)
					for k, got := range slices.Concat(f.gets(vector("x", size[0])...), f.gets(vector("y", size[2])...)) {
						want := slices.Concat(x, y)[k]
						worst = max(worst, math.Abs(got-want)/(1+math.Abs(want)))
					}
					for k, name := range vector("u", size[1]) {
						near(t, "input after the step", f.get(name), end[k], 1e-14*(1+math.Abs(end[k])))
					}
				}
			}
		}
	}
	t.Logf("largest deviation %.2g", worst)
	if !(worst <= 1e-12) {
		t.Errorf("largest deviation %g", worst)
	}
}

// An oscillator whose states differ by orders of magnitude equals its closed form over 1000 steps.
func TestLinearKeepsDigits(t *testing.T) {
	const k, h, n = 1e6, 1e-4, 1000 // omega = 1000
	f := start(t, "linear", map[string]float64{"A[1,2]": 1, "A[2,1]": -k, "x0[1]": 1e-6})
	for i := range n {
		f.step(float64(i)*h, h)
	}
	w := 1000 * h * n
	f.near("x[1]", 1e-6*math.Cos(w), 1e-6*1e-12)
	f.near("x[2]", -1e-3*math.Sin(w), 1e-3*1e-12)
}

// A step whose size differs by the rounding of times gives the same bits.
func TestStepSizeUpToRounding(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	_, _, set := space(r, 4, 1, 2, 1)
	a, b := start(t, "linear", set), start(t, "linear", set)
	const H = 1e-3
	differ := 0
	for i := range 500 {
		from, to := float64(i)*H, float64(i+1)*H
		a.step(from, H)
		if to-from != H {
			differ++
		}
		b.step(from, to-from)
	}
	if differ == 0 {
		t.Fatal("the steps do not differ at all: the test shows nothing")
	}
	if x, y := a.all(), b.all(); !slices.Equal(x, y) {
		t.Errorf("%v and %v", x, y)
	}
}

// Inputs that are not set again keep the value at the end of their polynomial; derivatives are valid for one step.
func TestDerivativesServeOneStep(t *testing.T) {
	f := start(t, "linear", map[string]float64{"B[1,1]": 1, "D[1,1]": 1})
	f.set("u[1]", 2)
	f.setDerivative("u[1]", 1, 10)
	f.step(0, 0.5)
	f.near("x[1]", 2*0.5+10*0.125, 1e-15)
	f.near("y[1]", 7, 0)
	f.step(0.5, 0.5)
	f.near("x[1]", 2.25+3.5, 1e-15)
	f.near("y[1]", 7, 0)
	f.set("u[1]", 100)
	f.near("y[1]", 7, 0)
}

// The Taylor polynomial of output derivatives equals the exact solution shortly after.
func TestOutputDerivatives(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s, x, set := space(r, 6, 2, 3, 0.5)
	f := start(t, "linear", set)
	u := [][]float64{{1, -2}, {0.5, 3}, {-1, 2}, {4, -3}}
	const h, tau = 0.1, 1e-3
	end := []float64{exact.Taylor(f.driveEntry(u, 0), h+tau), exact.Taylor(f.driveEntry(u, 1), h+tau)}
	f.step(0, h)
	x = s.Step(x, u, h+tau)
	for k, want := range s.Outputs(x, end) {
		name := fmt.Sprintf("y[%d]", k+1)
		d := []float64{f.get(name)}
		for order := 1; order <= 5; order++ {
			d = append(d, f.derivative(name, order))
		}
		near(t, name, exact.Taylor(d, tau), want, 1e-12*(1+math.Abs(want)))
	}
	// The nonlinear ones give the first order: compare with a difference.
	for _, c := range []struct{ name, input string }{{"quarter_wheel_a", "v_c"}, {"quarter_chassis_b", "v_w"}, {"quarter_wheel_b", "F_c"}} {
		outputs := []string{"F_c"}
		if c.name == "quarter_wheel_b" {
			outputs = []string{"z_w", "v_w"}
		}
		f := start(t, c.name, map[string]float64{"micro_steps": 1})
		f.set(c.input, 0.5)
		f.setDerivative(c.input, 1, 2)
		f.step(0, 0.01)
		for _, o := range outputs {
			before, slope := f.get(o), f.derivative(o, 1)
			var state uintptr
			f.must(f.GetState(f.c, &state))
			f.setDerivative(c.input, 1, 2)
			f.step(0.01, 1e-6)
			near(t, c.name+" "+o, (f.get(o)-before)/1e-6, slope, 1e-3*(1+math.Abs(slope)))
			f.must(f.SetState(f.c, state))
			f.must(f.FreeState(f.c, &state))
		}
	}
}

// Steps after a restored state repeat bit by bit, with polynomial inputs and changing step sizes, for every FMU with
// rollback; also in another instance from a serialised state.
func TestRollbackAndSerialisation(t *testing.T) {
	for _, name := range Names() {
		if strings.HasSuffix(name, "blackbox") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			set := map[string]float64{}
			var inputs []string
			for _, v := range load(t, name).md.Variables {
				switch {
				case v.Causality == "input":
					inputs = append(inputs, v.Name)
				case name == "linear" && v.Causality == "parameter":
					set[v.Name] = r.NormFloat64()
				case v.Name == "l3":
					set[v.Name] = 1e3 // room for the piston
				}
			}
			f := start(t, name, set)
			run := func(f *instance, seed uint64, now float64, h []float64) []float64 {
				r := rand.New(rand.NewPCG(seed, 0))
				var trace []float64
				for _, h := range h {
					for _, u := range inputs {
						f.set(u, r.NormFloat64())
						f.setDerivative(u, 1+r.IntN(5), r.NormFloat64())
					}
					f.step(now, h)
					now += h
					trace = append(trace, f.all()...)
				}
				return trace
			}
			run(f, 1, 0, []float64{0.01, 0.02})
			f.set(inputs[0], 3) // pending values are part of the state
			f.setDerivative(inputs[0], 2, 5)
			var state uintptr
			f.must(f.GetState(f.c, &state))
			sizes := []float64{0.02 + 4e-18, 0.01, 0.01 + 2e-18, 0.005, 0.02}
			first := run(f, 2, 0.03, sizes)
			run(f, 3, 0.03+floats.Sum(sizes), []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9})
			f.must(f.SetState(f.c, state))
			if again := run(f, 2, 0.03, sizes); !slices.Equal(first, again) {
				t.Error("the replay differs")
			}

			var size uintptr
			f.must(f.StateSize(f.c, state, &size))
			blob := make([]byte, size)
			f.must(f.Serialize(f.c, state, &blob[0], size))
			g := start(t, name, nil)
			var copied uintptr
			g.must(g.Deserialize(g.c, &blob[0], size, &copied))
			g.must(g.SetState(g.c, copied))
			if other := run(g, 2, 0.03, sizes); !slices.Equal(first, other) {
				t.Error("the run of the other instance differs")
			}
			second := make([]byte, size)
			g.must(g.Serialize(g.c, copied, &second[0], size))
			if !slices.Equal(blob, second) {
				t.Error("the serial form differs after a round trip")
			}

			// States of another instance and broken bytes are refused.
			g.refused("foreign state", g.SetState(g.c, state), failed, "another instance")
			for _, at := range []int{0, 9, int(size) / 2, int(size) - 1} {
				bad := slices.Clone(blob)
				bad[at] ^= 0x10
				var none uintptr
				g.refused("broken bytes", g.Deserialize(g.c, &bad[0], size, &none), failed, "not a state")
			}
			var none uintptr
			g.refused("too few bytes", g.Deserialize(g.c, &blob[0], size-1, &none), failed, "the size")
			// Overwriting a state allocates nothing.
			before := *live
			f.must(f.GetState(f.c, &state))
			if *live != before {
				t.Error("a reused handle was allocated again")
			}
			f.must(f.FreeState(f.c, &state))
			g.must(g.FreeState(g.c, &copied))
			if state != 0 {
				t.Error("the handle is not null after it was freed")
			}
			f.must(f.FreeState(f.c, &state))
		})
	}
}

// Directional derivatives of linear are its matrices; those of the others equal differences of the laws of package exact,
// at the start also by parameters.
func TestDirectionalDerivatives(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	s, _, set := space(r, 8, 4, 4, 1)
	f := start(t, "linear", set)
	f.step(0, 0.1)
	for i := range 8 {
		for j := range 8 {
			near(t, "A", f.directional(fmt.Sprintf("der(x[%d])", i+1), fmt.Sprintf("x[%d]", j+1)), s.A.At(i, j), 0)
			if j < 4 {
				near(t, "B", f.directional(fmt.Sprintf("der(x[%d])", i+1), fmt.Sprintf("u[%d]", j+1)), s.B.At(i, j), 0)
				near(t, "C", f.directional(fmt.Sprintf("y[%d]", j+1), fmt.Sprintf("x[%d]", i+1)), s.C.At(j, i), 0)
			}
			if i < 4 && j < 4 {
				near(t, "D", f.directional(fmt.Sprintf("y[%d]", i+1), fmt.Sprintf("u[%d]", j+1)), s.D.At(i, j), 0)
			}
		}
	}

	for _, q := range []exact.QuarterCar{exact.LinearQuarterCar(), exact.NonlinearQuarterCar()} {
		damper := map[string]float64{"d_c": q.Dc, "n_d": q.Nd}
		a, b := start(t, "quarter_wheel_a", damper), start(t, "quarter_chassis_b", damper)
		a.set("v_c", 0.7)
		a.step(0, 2e-3)
		b.set("v_w", 1.2)
		b.step(0, 2e-3)
		forceA := func(v map[string]float64) float64 { return q.Suspension(v["z_c"]-v["z_w"], v["v_c"]-v["v_w"]) }
		laws := []struct {
			f       *instance
			unknown string
			law     func(v map[string]float64) float64
		}{
			{a, "F_c", forceA},
			{a, "der(v_w)", func(v map[string]float64) float64 { return (forceA(v) - q.Kw*(v["z_w"]-q.ZRoad)) / q.Mw }},
			{a, "der(z_c)", func(v map[string]float64) float64 { return v["v_c"] }},
			{b, "F_c", forceA},
			{b, "der(v_c)", func(v map[string]float64) float64 { return -forceA(v) / q.Mc }},
			{b, "der(z_w)", func(v map[string]float64) float64 { return v["v_w"] }},
		}
		for _, l := range laws {
			at := map[string]float64{}
			for _, n := range []string{"z_c", "v_c", "z_w", "v_w"} {
				at[n] = l.f.get(n)
			}
			near(t, l.unknown, l.f.get(l.unknown), l.law(at), 1e-9*(1+math.Abs(l.law(at))))
			for known, v := range at {
				const h = 1e-6
				at[known] = v + h
				up := l.law(at)
				at[known] = v - h
				d := (up - l.law(at)) / (2 * h)
				at[known] = v
				near(t, l.unknown+" by "+known, l.f.directional(l.unknown, known), d, 1e-5*(1+math.Abs(d)))
			}
		}
	}

	// Several knowns at once, and a parameter at the start.
	m := instantiate(t, "mass_displacement")
	m.set("x0", 0.25)
	m.enter()
	near(t, "acceleration by stiffness", m.directional("der(v)", "c"), -0.25, 1e-8)
	near(t, "acceleration by x0", m.directional("der(v)", "x0"), -2000, 1e-4)
	near(t, "acceleration by mass", m.directional("der(v)", "m"), 500, 1e-4)
	m.near("der(v)", -500, 0)
	unknown, known := m.vr("der(v)"), []uint32{m.vr("x_other"), m.vr("v_other")}
	seed, v := []float64{2, 3}, 0.0
	m.must(m.Directional(m.c, &unknown, 1, &known[0], 2, &seed[0], &v))
	near(t, "two seeds", v, 2*1000+3*10, 1e-12)
	bad := m.vr("m")
	m.refused("derivative of a parameter", m.Directional(m.c, &bad, 1, &known[0], 1, &seed[0], &v), failed, "no derivative")
}

// The black box computes the same numbers as linear, and refuses and declares no optional capability.
func TestBlackbox(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	_, _, set := space(r, 5, 2, 3, 1)
	f, g := start(t, "linear", set), start(t, "blackbox", set)
	for i := range 20 {
		for _, u := range []string{"u[1]", "u[2]"} {
			v := r.NormFloat64()
			f.set(u, v)
			g.set(u, v)
		}
		f.step(float64(i)*0.1, 0.1)
		g.step(float64(i)*0.1, 0.1)
		if a, b := f.gets(vector("y", 4)...), g.gets(vector("y", 4)...); !slices.Equal(a, b) {
			t.Fatalf("outputs %v and %v", a, b)
		}
	}
	for _, a := range g.md.CoSimulation.Attrs {
		if a.Name.Local != "modelIdentifier" && a.Name.Local != "canHandleVariableCommunicationStepSize" {
			t.Errorf("the black box claims %s", a.Name.Local)
		}
	}
	for _, u := range slices.Concat(g.md.Outputs, g.md.Initial, g.md.Rates) {
		if u.Dependencies != nil || u.Kinds != nil {
			t.Errorf("the black box declares dependencies of %d", u.Index)
		}
	}
	var state uintptr
	g.refused("GetFMUstate", g.GetState(g.c, &state), failed, "not offered")
	g.must(g.Reset(g.c))
	vr, v, o := g.vr("u[1]"), 1.0, int32(1)
	g.refused("directional", g.Directional(g.c, &vr, 1, &vr, 1, &v, &v), failed, "not offered")
	g.must(g.Reset(g.c))
	g.refused("input derivatives", g.SetDerivatives(g.c, &vr, 1, &o, &v), failed, "not offered")
}

// Micro steps use the input polynomial at their start, outputs that at the end.
func TestMicroStepsSampleThePolynomial(t *testing.T) {
	f := start(t, "quarter_wheel_b", map[string]float64{"micro_steps": 3, "k_w": 0})
	f.set("F_c", 40)
	f.setDerivative("F_c", 1, 400)
	f.step(0, 0.3)
	v1 := 0.1 * 1.0
	v2 := v1 + 0.1*(1+10*0.1)
	f.near("v_w", v2+0.1*(1+10*0.2), 1e-14)
	f.near("z_w", 0.1*(v1+v2), 1e-14)
	g := start(t, "quarter_wheel_a", map[string]float64{"micro_steps": 2})
	g.set("v_c", 1)
	g.setDerivative("v_c", 1, 100)
	g.step(0, 0.01)
	g.near("z_c", 0.005*(1+1.5), 1e-16)
	q := exact.LinearQuarterCar()
	g.near("F_c", q.Suspension(g.get("z_c")-g.get("z_w"), 2-g.get("v_w")), 1e-10)
}

// Outputs in initialization depend on present inputs and parameters.
func TestInitialization(t *testing.T) {
	f := instantiate(t, "quarter_wheel_a")
	f.must(f.Setup(f.c, 0, 0, 5, 0, 0))
	f.must(f.Enter(f.c))
	f.set("v_c", 2)
	f.near("F_c", 2000, 0)
	f.set("d_c", 500)
	f.near("F_c", 1000, 0)
	f.near("der(v_w)", (1000+15000)/40.0, 1e-12)
	f.must(f.Exit(f.c))
	f.near("F_c", 1000, 0)
	f.step(5, 1e-3)
	var now float64
	f.must(f.RealStatus(f.c, 2, &now))
	near(t, "time", now, 5.001, 1e-15)
	f.must(f.Reset(f.c))
	f.enter()
	f.near("d_c", 1000, 0)
	f.near("F_c", 0, 0)
}

// Every call in every state: calls that the standard forbids are refused with a message and leave the instance failed; the
// others succeed.
func TestCallOrder(t *testing.T) {
	const (
		R = 1 << iota
		I
		C
		T
		E
	)
	states := []struct {
		name string
		bit  int
		to   func(f *instance)
	}{
		{"instantiated", R, func(f *instance) {}},
		{"initialization", I, (*instance).enter},
		{"between steps", C, func(f *instance) { f.enter(); f.must(f.Exit(f.c)) }},
		{"terminated", T, func(f *instance) { f.enter(); f.must(f.Exit(f.c)); f.must(f.Terminate(f.c)) }},
		{"failed", E, func(f *instance) { f.Exit(f.c); *messages = nil }},
	}
	one, v, n := 1.0, 0.0, int32(0)
	order := int32(1)
	calls := []struct {
		name    string
		allowed int
		call    func(f *instance) int32
	}{
		{"SetupExperiment", R, func(f *instance) int32 { return f.Setup(f.c, 0, 0, 0, 0, 0) }},
		{"ExitInitializationMode", I, func(f *instance) int32 { return f.Exit(f.c) }},
		{"Terminate", C, func(f *instance) int32 { return f.Terminate(f.c) }},
		{"Reset", R | I | C | T | E, func(f *instance) int32 { return f.Reset(f.c) }},
		{"DoStep", C, func(f *instance) int32 { return f.DoStep(f.c, 0, 0.1, 1) }},
		{"CancelStep", 0, func(f *instance) int32 { return f.Cancel(f.c) }},
		{"GetReal", I | C | T | E, func(f *instance) int32 { vr := f.vr("F"); return f.GetReal(f.c, &vr, 1, &v) }},
		{"GetInteger of nothing", I | C | T | E, func(f *instance) int32 { return f.GetInteger(f.c, nil, 0, nil) }},
		{"SetReal of an input", R | I | C, func(f *instance) int32 { vr := f.vr("F"); return f.SetReal(f.c, &vr, 1, &one) }},
		{"SetReal of a parameter", R | I, func(f *instance) int32 { vr := f.vr("m"); return f.SetReal(f.c, &vr, 1, &one) }},
		{"SetRealInputDerivatives", R | I | C, func(f *instance) int32 { vr := f.vr("F"); return f.SetDerivatives(f.c, &vr, 1, &order, &one) }},
		{"GetRealOutputDerivatives", C | T, func(f *instance) int32 { vr := f.vr("x"); return f.GetDerivatives(f.c, &vr, 1, &order, &v) }},
		{"GetDirectionalDerivative", I | C | T, func(f *instance) int32 {
			a, b := f.vr("der(v)"), f.vr("F")
			return f.Directional(f.c, &a, 1, &b, 1, &one, &v)
		}},
		{"GetFMUstate", R | I | C | T | E, func(f *instance) int32 {
			var s uintptr
			if status := f.GetState(f.c, &s); status != ok {
				return status
			}
			return f.FreeState(f.c, &s)
		}},
		{"GetRealStatus", C | T, func(f *instance) int32 { return f.RealStatus(f.c, 2, &v) }},
		{"GetBooleanStatus", C | T, func(f *instance) int32 { return f.BooleanStatus(f.c, 3, &n) }},
		{"GetStatus", C | T, func(f *instance) int32 { return f.Status(f.c, 0, &n) }},
	}
	for _, s := range states {
		for _, c := range calls {
			if s.bit == E && (c.name == "GetRealOutputDerivatives" || c.name == "GetDirectionalDerivative") {
				continue // for debugging only; not possible before initialization
			}
			f := instantiate(t, "mass_force")
			s.to(f)
			status := c.call(f)
			if c.allowed&s.bit != 0 {
				if status != ok {
					t.Errorf("%s, %s: status %d, %v", c.name, s.name, status, *messages)
				}
				*messages = nil
				continue
			}
			text := "not allowed"
			if c.name == "SetReal of a parameter" && s.bit == C {
				text = "fixed"
			}
			f.refused(c.name+", "+s.name, status, failed, text)
			if f.DoStep(f.c, 0, 1, 1) != failed {
				t.Errorf("%s, %s: a step after the error", c.name, s.name)
			}
			f.must(f.Reset(f.c))
			*messages = nil
		}
	}
	f := instantiate(t, "mass_force")
	f.refused("no SetupExperiment", f.Enter(f.c), failed, "fmi2SetupExperiment was not called")
	if f.Status(0, 0, nil) != failed {
		t.Error("a null instance is accepted")
	}
}

// Invalid values change nothing and are refused with a message that names the reason.
func TestRefusals(t *testing.T) {
	l := load(t, "linear")
	cb := callbacks()
	for _, bad := range []struct {
		name, guid string
		kind       int32
	}{{"one", l.guid, 0}, {"one", "{other}", 1}, {" ", l.guid, 1}, {"", l.guid, 1}} {
		if c := l.Instantiate(bad.name, bad.kind, bad.guid, "", unsafe.Pointer(&cb), 0, 0); c != 0 || len(*messages) != 1 {
			t.Errorf("%+v: instance %v, messages %v", bad, c, *messages)
		}
		*messages = nil
	}
	if c := l.Instantiate("one", 1, l.guid, "", nil, 0, 0); c != 0 {
		t.Error("instantiated without callbacks")
	}

	f := start(t, "mass_force", nil)
	vr, vrs, nan := f.vr("F"), []uint32{f.vr("F"), f.vr("F")}, math.NaN()
	f.refused("NaN", f.SetReal(f.c, &vr, 1, &nan), discard, "not finite")
	f.refused("second value", f.SetReal(f.c, &vrs[0], 2, &[]float64{5, math.Inf(1)}[0]), discard, "not finite")
	f.near("F", 0, 0)
	one, six, zero := int32(1), int32(6), int32(0)
	f.refused("derivative NaN", f.SetDerivatives(f.c, &vr, 1, &one, &nan), discard, "not finite")
	f.step(0, 0.1)
	f.near("x", 0, 0)

	v := 0.0
	for what, c := range map[string]struct {
		call func(f *instance) int32
		text string
	}{
		"no such variable":        {func(f *instance) int32 { vr := uint32(99); return f.GetReal(f.c, &vr, 1, &v) }, "no real variable"},
		"no such variable to set": {func(f *instance) int32 { vr := uint32(99); return f.SetReal(f.c, &vr, 1, &v) }, "no real variable"},
		"no integers": {func(f *instance) int32 {
			vr := uint32(0)
			return f.GetInteger(f.c, &vr, 1,
				&one)
		}, "no integer variable"},
		"missing array": {func(f *instance) int32 { return f.GetReal(f.c, nil, 1, &v) }, "array is missing"},
		"order 6":       {func(f *instance) int32 { return f.SetDerivatives(f.c, &vr, 1, &six, &v) }, "order"},
		"order 0":       {func(f *instance) int32 { return f.SetDerivatives(f.c, &vr, 1, &zero, &v) }, "order"},
		"derivative of an output": {func(f *instance) int32 {
			vr := f.vr("x")
			return f.SetDerivatives(f.c, &vr, 1,
				&one, &v)
		}, "not that of an input"},
		"output derivative of input": {func(f *instance) int32 { return f.GetDerivatives(f.c, &vr, 1, &one, &v) }, "not that of an output"},
		"output derivative order 6": {func(f *instance) int32 {
			vr := f.vr("x")
			return f.GetDerivatives(f.c, &vr, 1, &six, &v)
		}, "order"},
		"step of no size":      {func(f *instance) int32 { return f.DoStep(f.c, 0.1, 0, 1) }, "not positive"},
		"step backwards":       {func(f *instance) int32 { return f.DoStep(f.c, 0.1, -1, 1) }, "not positive"},
		"endless step":         {func(f *instance) int32 { return f.DoStep(f.c, 0.1, math.Inf(1), 1) }, "not positive"},
		"step from elsewhere":  {func(f *instance) int32 { return f.DoStep(f.c, 0.1001, 0.1, 1) }, "the last one ended"},
		"step from nowhere":    {func(f *instance) int32 { return f.DoStep(f.c, nan, 0.1, 1) }, "the last one ended"},
		"unknown log category": {func(f *instance) int32 { return debugLogging(f, "logNothing") }, "no category"},
		"restore of null":      {func(f *instance) int32 { return f.SetState(f.c, 0) }, "another instance"},
	} {
		g := start(t, "mass_force", nil)
		g.step(0, 0.1)
		g.refused(what, c.call(g), failed, c.text)
	}
	f.must(debugLogging(f, "logEvents"))

	for _, c := range []struct{ fmu, parameter string }{
		{"mass_force", "m"}, {"mass_displacement", "m"}, {"quarter_chassis_a", "m_c"},
		{"quarter_wheel_a", "m_w"}, {"quarter_chassis_b", "m_c"}, {"quarter_wheel_b", "m_w"},
		{"oscillator_coupled", "m"}, {"oscillator_driven", "m"}, {"oscillator_hub", "n_k"}, {"pendulum_coupled", "l"},
		{"pendulum_driven", "alpha"}, {"crane_mechanics", "m3"}, {"crane_mechanics", "l_c"},
		{"crane_hydraulics", "rho"}, {"crane_hydraulics", "p_P"},
	} {
		g := instantiate(t, c.fmu)
		g.set(c.parameter, 0)
		g.must(g.Setup(g.c, 0, 0, 0, 0, 0))
		g.refused(c.fmu+" without "+c.parameter, g.Enter(g.c), failed, "fmi2EnterInitializationMode")
	}
	g := instantiate(t, "quarter_wheel_b")
	micro := g.vr("micro_steps")
	g.refused("no micro steps", g.SetInteger(g.c, &micro, 1, &zero), discard, "at least")
	g.must(g.Setup(g.c, 0, 0, 0, 1, 1))
	g.must(g.Enter(g.c))
	g.must(g.Exit(g.c))
	g.step(0, 1)
	g.refused("beyond the stop", g.DoStep(g.c, 1, 0.1, 1), failed, "stop time")
}

func debugLogging(f *instance, category string) int32 {
	name := append([]byte(category), 0)
	names := []unsafe.Pointer{unsafe.Pointer(&name[0])}
	return f.SetDebugLogging(f.c, 1, 1, unsafe.Pointer(&names[0]))
}

// A model that overflows returns an error with a message, and no infinite values; a saved state can be restored.
func TestOverflow(t *testing.T) {
	f := start(t, "linear", map[string]float64{"A[1,1]": 700, "x0[1]": 1, "C[1,1]": 1})
	var state uintptr
	f.must(f.GetState(f.c, &state))
	f.step(0, 1)
	f.refused("overflow", f.DoStep(f.c, 1, 1, 1), failed, "not finite")
	near(t, "x as it was", f.get("x[1]")/math.Exp(700), 1, 1e-11)
	f.must(f.SetState(f.c, state))
	f.step(0, 1)
	f.must(f.FreeState(f.c, &state))
}
