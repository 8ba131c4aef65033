package fmus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
)

// tight adds the tightest possible tolerances of the integration.
func tight(set map[string]float64) map[string]float64 {
	set["rtol"], set["atol_x"], set["atol_v"] = 1e-11, 1e-16, 1e-11
	return set
}

// drive sets an input and its derivatives.
func (i *instance) drive(name string, u []float64) {
	i.t.Helper()
	i.set(name, u[0])
	for j := 1; j < len(u); j++ {
		i.setDerivative(name, j, u[j])
	}
}

// A linear chain equals the matrix exponential for input polynomials of all degrees.
func TestChainAgainstMatrixExponential(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	worst := 0.0
	for degree := range 6 {
		c := exact.DefaultChain(6)
		c.Spring = exact.Spring{C: 1e5, D: 200}
		c.Impulses, c.Contacts, c.Ground = 0, 0, [2]bool{degree%2 == 0, degree%3 == 0}
		s := exact.LinearChain(c)
		f := start(t, "chain", tight(map[string]float64{"masses": 6, "c": 1e5, "d": 200, "C": 0, "D": 0, "impulses": 0, "contacts": 0,
			"ground_left": one(c.Ground[0]), "ground_right": one(c.Ground[1])}))
		x, v := c.Start()
		x = append(x, v...)
		now := 0.0
		for range 4 {
			h := 1e-3 * (0.5 + r.Float64())
			u := make([][]float64, degree+1)
			left, right := make([]float64, degree+1), make([]float64, degree+1)
			for j := range u {
				scale := 100 * math.Pow(1e3, float64(j))
				left[j], right[j] = scale*r.NormFloat64(), scale*r.NormFloat64()
				u[j] = []float64{left[j], right[j]}
			}
			f.drive("F_left", left)
			f.drive("F_right", right)
			f.step(now, h)
			now += h
			x = s.Step(x, u, h)
			for k, name := range []string{"x_left", "x_right", "v_left", "v_right"} {
				want := []float64{x[0], x[5], x[6], x[11]}[k]
				worst = max(worst, math.Abs(f.get(name)-want)/[]float64{1e-3, 1e-3, 1, 1}[k])
			}
		}
	}
	t.Logf("largest deviation %.2g", worst)
	if !(worst <= 1e-9) {
		t.Errorf("largest deviation %g", worst)
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// The mass before its contact equals the independent integration, through two impacts.
func TestContactMass(t *testing.T) {
	o := exact.DefaultContactOscillator()
	o.Coupling = exact.Spring{}
	for _, c := range []struct{ rtol, atol, want float64 }{{1e-6, 1e-9, 1e-5}, {1e-8, 1e-12, 1e-7}, {1e-10, 1e-15, 1e-9}} {
		f := start(t, "contact_mass", map[string]float64{"rtol": c.rtol, "atol_x": c.atol, "atol_v": c.rtol})
		var times []float64
		for i := range 20 {
			times = append(times, float64(i+1)*0.01)
		}
		rows, err := o.Solve(times)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, x := range rows {
			f.step(float64(i)*0.01, 0.01)
			worst = max(worst, math.Abs(f.get("x")-x[0])/2, math.Abs(f.get("v")-x[1])/100)
			f.near("der(v)", (-o.C1*f.get("x")+o.A*math.Exp(o.B*f.get("x")))/o.M1, 1e-9)
		}
		t.Logf("tolerance %g: largest deviation %.2g", c.rtol, worst)
		if !(worst <= c.want) {
			t.Errorf("tolerance %g: largest deviation %g", c.rtol, worst)
		}
	}
}

// A chain with impulses, contacts, cubic springs and both kinds of damping equals the independent integration, under
// polynomial forces.
func TestChainAgainstReference(t *testing.T) {
	for _, c := range []struct {
		masses, number, seed int
		d                    float64
		block                int
	}{{2, 1, 1, 1e4, 0}, {7, 4, 2, 1e3, 0}, {20, 31, 3, 1e4, 0}, {10, 1, 1, 5e5, 0}, {12, 5, 1, 1e4, 5}} {
		t.Run(fmt.Sprintf("%d masses from %d, d %g", c.masses, c.number, c.d), func(t *testing.T) {
			const from, H, n = 0, 2.5e-5, 40
			o := exact.DefaultChain(c.masses)
			o.Number, o.Seed, o.Block, o.Total, o.Spring.D = c.number, c.seed, c.block, 100, c.d
			o.Ground = [2]bool{true, false}
			o.Duration = 5e-4 // the end of the impulse is passed too
			left, right := []float64{2e4, -4e7, 1e11}, []float64{-1e4, 3e7}
			o.Left = func(t float64) float64 { return exact.Taylor(left, t) }
			o.Right = func(t float64) float64 { return exact.Taylor(right, t) }
			f := start(t, "chain", map[string]float64{"masses": float64(c.masses), "number": float64(c.number), "seed": float64(c.seed),
				"impulse_block": float64(c.block), "total": 100, "d": c.d, "ground_left": 1, "impulse_duration": o.Duration,
				"rtol": 1e-9, "atol_x": 1e-14, "atol_v": 1e-9})
			var times []float64
			for i := range n {
				times = append(times, float64(i+1)*H)
			}
			rows, err := o.Solve(times, 1e-10)
			if err != nil {
				t.Fatal(err)
			}
			x0, v0 := o.Start()
			f.near("x_left", x0[0], 0)
			f.near("v_right", v0[c.masses-1], 0)
			free := o
			free.Contacts = 0
			without, err := free.Solve(times, 1e-8)
			if err != nil {
				t.Fatal(err)
			}
			worst, contacts := 0.0, 0.0
			for i, x := range rows {
				at := float64(i) * H
				f.drive("F_left", []float64{exact.Taylor(left, at), exact.Taylor(left[1:], at), left[2]})
				f.drive("F_right", []float64{exact.Taylor(right, at), right[1]})
				f.step(at, H)
				m := c.masses
				for k, name := range []string{"x_left", "x_right", "v_left", "v_right"} {
					want := []float64{x[0], x[m-1], x[m], x[2*m-1]}[k]
					worst = max(worst, math.Abs(f.get(name)-want)/[]float64{1e-3, 1e-3, 10, 10}[k])
				}
				for k := range m {
					contacts = max(contacts, math.Abs(x[k]-without[i][k])/1e-3)
				}
			}
			t.Logf("largest deviation %.2g, contacts make %.2g", worst, contacts)
			if !(worst <= 1e-6) || c.masses > 2 && !(contacts > 1e-2) {
				t.Errorf("largest deviation %g", worst)
			}
		})
	}
}

// Results do not depend on the step size beyond the tolerance of the solver. The tolerance of the experiment replaces rtol.
func TestChainToleranceAndSteps(t *testing.T) {
	run := func(tolerance, rtol, h float64, n int) []float64 {
		f := instantiate(t, "chain")
		f.set("masses", 8)
		f.set("rtol", rtol)
		f.must(f.Setup(f.c, int32(one(tolerance > 0)), tolerance, 0, 0, 0))
		f.must(f.Enter(f.c))
		f.must(f.Exit(f.c))
		for i := range n {
			f.step(float64(i)*h, h)
		}
		return f.gets("x_left", "v_left", "x_right", "v_right")
	}
	a, b := run(0, 1e-9, 1e-3, 1), run(0, 1e-9, 1e-6, 1000)
	for i, scale := range []float64{1e-3, 10, 1e-3, 10} {
		near(t, "state", a[i], b[i], 2e-6*scale)
	}
	if c := run(1e-9, 1e-3, 1e-3, 1); !slices.Equal(a, c) {
		t.Error("the tolerance of the experiment is not that of the solver")
	}
	if c := run(0, 1e-3, 1e-3, 1); slices.Equal(a, c) {
		t.Error("the parameter rtol has no effect")
	}
	f := instantiate(t, "chain")
	f.refused("tolerance 0", f.Setup(f.c, 1, 0, 0, 0, 0), failed, "tolerance")
}

// A step that the solver cannot make is discarded and changes nothing; a shorter one succeeds.
func TestImpossibleStepIsDiscarded(t *testing.T) {
	f := start(t, "contact_mass", map[string]float64{"x0": -1e-3, "v0": 1})
	f.step(0, 1e-4)
	before := f.all()
	f.drive("F", []float64{0, 0, 0, 0, 0, 1e300})
	f.refused("a force beyond all bounds", f.DoStep(f.c, 1e-4, 1e3, 1), discard, "fmi2DoStep: the step from")
	var status int32
	f.must(f.Status(f.c, 0, &status))
	if status != discard {
		t.Errorf("fmi2GetStatus gives %d", status)
	}
	if after := f.all(); !slices.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
	f.drive("F", []float64{0, 0, 0, 0, 0, 0})
	f.step(1e-4, 1e-4)
	g := start(t, "contact_mass", map[string]float64{"x0": -1e-3, "v0": 1})
	g.step(0, 1e-4)
	g.step(1e-4, 1e-4)
	f.near("x", g.get("x"), 1e-12)
}

// Directional derivatives equal differences of the coupling law, the derivatives of the contact law, and the matrix of a
// linear chain.
func TestOscillatorDerivatives(t *testing.T) {
	law := exact.Spring{C: 1e5, D: 3, C3: 1e5, D3: 1e-2}
	f := start(t, "coupling_cubic", map[string]float64{"d_c": law.D})
	at := []float64{0.3, -2, 0.7, 5}
	names := []string{"x1", "v1", "x2", "v2"}
	for i, n := range names {
		f.set(n, at[i])
	}
	f.step(0, 0.1)
	force := func(x []float64) float64 { return law.Force(x[2]-x[0], x[3]-x[1]) }
	f.near("F", force(at), 1e-9)
	for i, n := range names {
		up, down := slices.Clone(at), slices.Clone(at)
		up[i] += 1e-4
		down[i] -= 1e-4
		d := (force(up) - force(down)) / 2e-4
		near(t, "F by "+n, f.directional("F", n), d, 1e-6*(1+math.Abs(d)))
	}

	o := exact.DefaultContactOscillator()
	g := start(t, "contact_mass", map[string]float64{"x0": -1e-5, "v0": 50, "d": 7})
	g.step(0, 1.2e-7) // against the contact
	slope := (-o.C1 + o.A*o.B*math.Exp(o.B*g.get("x"))) / o.M1
	near(t, "a by x", g.directional("der(v)", "x"), slope, 1e-9*math.Abs(slope))
	near(t, "a by v", g.directional("der(v)", "v"), -7/o.M1, 1e-15)
	near(t, "a by F", g.directional("der(v)", "F"), 1/o.M1, 0)

	for _, masses := range []int{2, 9} {
		// The Jacobian of the linear chain is its matrix.
		c := exact.DefaultChain(masses)
		c.Ground = [2]bool{true, false}
		a := exact.LinearChain(c).A
		h := start(t, "chain", map[string]float64{"masses": float64(masses), "C": 0, "D": 0, "contacts": 0, "ground_left": 1})
		h.step(0, 1e-5)
		last := masses - 1
		for unknown, row := range map[string]int{"der(v_left)": masses, "der(v_right)": masses + last} {
			for known, column := range map[string]int{"x_left": 0, "v_left": masses, "x_right": last, "v_right": masses + last} {
				near(t, unknown+" by "+known, h.directional(unknown, known), a.At(row, column), 1e-9*mat.Max(a))
			}
		}
		near(t, "a by F_left", h.directional("der(v_left)", "F_left"), 10, 0)
		near(t, "a by F_right", h.directional("der(v_left)", "F_right"), 0, 0)
		near(t, "v by F_left", h.directional("v_left", "F_left"), 0, 0)
	}
}

// Finite differences of a step by its input are smooth enough for a corrector at the default tolerances.
func TestFiniteDifferencesAcrossSteps(t *testing.T) {
	f := start(t, "chain", map[string]float64{"masses": 10})
	f.step(0, 1e-5)
	var state uintptr
	f.must(f.GetState(f.c, &state))
	response := func(force float64) float64 {
		f.must(f.SetState(f.c, state))
		f.drive("F_right", []float64{0, force / 1e-5})
		f.step(1e-5, 1e-5)
		return f.get("v_right")
	}
	base, scale := response(1e4), 0.0
	var slopes []float64
	for _, d := range []float64{1, 10, 100, 1000} {
		slopes = append(slopes, (response(1e4+d)-base)/d)
		scale = max(scale, math.Abs(slopes[len(slopes)-1]))
	}
	for _, s := range slopes {
		near(t, "slope", s, slopes[2], 1e-3*scale)
	}
	f.must(f.FreeState(f.c, &state))
}

// States of instances with other numbers of masses are restored; parameters that are not possible are refused.
func TestStatesOfOtherSizes(t *testing.T) {
	f := instantiate(t, "chain")
	f.set("masses", 3)
	var small uintptr
	f.must(f.GetState(f.c, &small)) // before the initialization: no masses yet
	f.enter()
	f.must(f.Exit(f.c))
	f.step(0, 1e-5)
	want := f.all()
	var three uintptr
	f.must(f.GetState(f.c, &three))
	f.must(f.Reset(f.c))
	f.set("masses", 200)
	f.enter()
	f.must(f.Exit(f.c))
	f.step(0, 1e-5)
	f.must(f.SetState(f.c, three))
	if got := f.all(); !slices.Equal(got, want) {
		t.Errorf("%v was restored as %v", want, got)
	}
	f.step(1e-5, 1e-5)
	f.must(f.GetState(f.c, &small))
	f.must(f.SetState(f.c, small))
	f.step(2e-5, 1e-5)
	f.must(f.FreeState(f.c, &three))
	f.must(f.FreeState(f.c, &small))

	for parameter, bad := range map[string]float64{"masses": 2e6, "impulses": 11, "contacts": 11, "ground_left": 2,
		"m": 0, "rtol": 0, "atol_v": -1, "impulse_period": 0} {
		g := instantiate(t, "chain")
		g.set(parameter, bad)
		g.must(g.Setup(g.c, 0, 0, 0, 0, 0))
		g.refused(parameter, g.Enter(g.c), failed, "fmi2EnterInitializationMode: ")
	}
}
