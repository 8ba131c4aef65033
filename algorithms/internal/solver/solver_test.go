package solver

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/internal/num"
)

// equation is an interface equation with its solution.
type equation struct {
	pattern  *num.Matrix
	residual func(z, r []float64)
	jacobian func(z []float64, j *num.Matrix)
	start    []float64
	solution []float64
}

// cost is the cost of one attempt.
type cost struct {
	corrections, jacobians int
	diverged               bool
}

// attempt iterates from start until the norm of a correction is at most tolerance. It takes at most
// the given numbers of corrections and Jacobians.
func (e *equation) attempt(t testing.TB, s Solver, start []float64, tolerance float64, most, jacobians int) (z []float64, did cost) {
	t.Helper()
	n := e.pattern.N
	z = slices.Clone(start)
	r := make([]float64, n)
	before := math.NaN()
	for did.corrections = 0; did.corrections < most; did.corrections++ {
		e.residual(z, r)
		if s.NeedsJacobian() && did.jacobians < jacobians {
			e.jacobian(z, e.pattern)
			did.jacobians++
			if err := s.TakeJacobian(e.pattern); err != nil {
				t.Fatal(err)
			}
		}
		dz := correct(t, s, z, r)
		norm := 0.0
		for i := range dz {
			norm = max(norm, math.Abs(dz[i]))
		}
		if norm <= tolerance {
			return z, did
		}
		if !math.IsNaN(before) && s.Contraction(norm/before) {
			did.diverged = true
			return z, did
		}
		before = norm
		for i := range dz {
			z[i] += dz[i]
		}
	}
	return z, did
}

// errorOf is the largest deviation from the solution.
func (e *equation) errorOf(z []float64) float64 {
	worst := 0.0
	for i, v := range z {
		if d := math.Abs(v - e.solution[i]); !(d <= worst) {
			worst = d
		}
	}
	return worst
}

// linearEquation returns r = z − G z − c with a random G whose largest singular
// value is gain.
func linearEquation(rng *rand.Rand, n int, gain float64) *equation {
	g := mat.NewDense(n, n, randomVector(rng, n*n))
	g.Scale(gain/mat.Norm(g, 2), g)
	return linearFrom(g, randomVector(rng, n))
}

func linearFrom(g *mat.Dense, solution []float64) *equation {
	n := len(solution)
	e := &equation{solution: solution, start: make([]float64, n)}
	apply := func(z, r []float64) {
		for i := range r {
			r[i] = z[i]
			for j, v := range z {
				r[i] -= g.At(i, j) * v
			}
		}
	}
	c := make([]float64, n)
	apply(solution, c)
	e.residual = func(z, r []float64) {
		apply(z, r)
		for i := range r {
			r[i] -= c[i]
		}
	}
	e.pattern = banded(n, n)
	e.jacobian = func(z []float64, a *num.Matrix) {
		for j := range n {
			for i := range n {
				a.Val[j*n+i] = -g.At(i, j)
				if i == j {
					a.Val[j*n+i]++
				}
			}
		}
	}
	return e
}

// cubicChain returns an equation with known solution for n unknowns in a chain. Each unknown is the
// response to springs stiffness·(d + 0.1 d³) to its neighbours.
func cubicChain(n int, stiffness float64) *equation {
	e := &equation{start: make([]float64, n), solution: make([]float64, n)}
	for i := range n {
		e.solution[i] = 1 + 0.5*math.Sin(float64(3*i))
	}
	at := func(z []float64, i int) float64 {
		if i < 0 || i >= n {
			return 0
		}
		return z[i]
	}
	phi := func(z []float64, i int) float64 { // the response to the springs on both sides
		sum := 0.0
		for _, k := range []int{i - 1, i + 1} {
			d := at(z, k) - at(z, i)
			sum += d + 0.1*d*d*d
		}
		return stiffness * sum
	}
	b := make([]float64, n)
	for i := range n {
		b[i] = e.solution[i] - phi(e.solution, i)
	}
	e.residual = func(z, r []float64) {
		for i := range n {
			r[i] = z[i] - phi(z, i) - b[i]
		}
	}
	e.pattern = banded(n, 1)
	e.jacobian = func(z []float64, a *num.Matrix) {
		for j := range n {
			for p := a.ColStart[j]; p < a.ColStart[j+1]; p++ {
				slope := func(d float64) float64 { return stiffness * (1 + 0.3*d*d) }
				if i := a.Row[p]; i == j {
					a.Val[p] = 1 + slope(at(z, i-1)-at(z, i)) + slope(at(z, i+1)-at(z, i))
				} else {
					a.Val[p] = -slope(at(z, j) - at(z, i))
				}
			}
		}
	}
	return e
}

// banded returns the pattern with width diagonals on each side of the main one.
func banded(n, width int) *num.Matrix {
	a := &num.Matrix{N: n, ColStart: []int{0}}
	for j := range n {
		for i := max(0, j-width); i <= min(n-1, j+width); i++ {
			a.Row = append(a.Row, i)
		}
		a.ColStart = append(a.ColStart, len(a.Row))
	}
	a.Val = make([]float64, len(a.Row))
	return a
}

// everySolver returns fresh solvers by name.
func everySolver() map[string]func() Solver {
	return map[string]func() Solver{
		"newton":   func() Solver { return &Newton{} },
		"broyden":  func() Solver { return &Broyden{} },
		"iqn":      func() Solver { return &IQN{} },
		"constant": func() Solver { return &FixedPoint{Relaxation: 0.3} },
		"aitken":   func() Solver { return &FixedPoint{} },
	}
}

func begun(e *equation, s Solver) Solver {
	s.Init(e.pattern)
	s.Begin(0.01, 1)
	return s
}

// take passes the Jacobian at z to a solver.
func (e *equation) take(t testing.TB, s Solver, z []float64) {
	t.Helper()
	e.jacobian(z, e.pattern)
	if err := s.TakeJacobian(e.pattern); err != nil {
		t.Fatal(err)
	}
}

// correct returns the correction at z.
func correct(t testing.TB, s Solver, z, r []float64) (dz []float64) {
	t.Helper()
	dz = make([]float64, len(z))
	if err := s.Correct(z, r, dz); err != nil {
		t.Fatal(err)
	}
	return dz
}

// deaf is a solver without judgement of its contraction, so it requests no refresh.
type deaf struct{ Solver }

func (deaf) Contraction(float64) bool { return false }

// On linear equations each solver needs the number of corrections that its theory gives.
func TestSolversOnLinearEquations(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{1, 2, 3, 5, 8} {
		for _, gain := range []float64{0.3, 3, 30} {
			for range 20 {
				e := linearEquation(rng, n, gain)
				label := fmt.Sprintf("n = %d, gain %g", n, gain)
				check := func(name string, s Solver, corrections, jacobians int, tolerance float64) {
					t.Helper()
					z, did := e.attempt(t, begun(e, s), e.start, 0, corrections, jacobians)
					if d := e.errorOf(z); !(d <= tolerance) {
						t.Errorf("%s, %s: off by %.2g after %d corrections", name, label, d, did.corrections)
					}
				}
				e.jacobian(nil, e.pattern)
				var f mat.LU
				f.Factorize(denseOf(e.pattern))
				condition := f.Cond()
				if condition > 1e4 {
					continue
				}
				check("newton", &Newton{}, 1, 1, 1e-13*condition)
				check("iqn", &IQN{filter: 1e-12}, n+1, 0, 1e-10*condition*condition)

				// Broyden with a first Jacobian that is wrong.
				exact := e.jacobian
				e.jacobian = func(z []float64, a *num.Matrix) {
					exact(z, a)
					for p := range a.Val {
						a.Val[p] += 0.3 * rng.NormFloat64() / float64(n)
					}
				}
				check("broyden", deaf{&Broyden{}}, 2*n, 1, 1e-9*condition*condition)
			}
		}
	}
	// One unknown: Aitken is the secant method.
	for _, gain := range []float64{-1e6, -100, -1, 0.5, 0.98, 3} {
		e := linearFrom(mat.NewDense(1, 1, []float64{gain}), []float64{2})
		z, _ := e.attempt(t, begun(e, &FixedPoint{}), e.start, 0, 2, 0)
		if d := e.errorOf(z); !(d <= 1e-9) {
			t.Errorf("aitken, gain %g: off by %g after two corrections", gain, d)
		}
	}
	// Constant relaxation contracts by |1 − ω(1 − gain)|.
	for _, omega := range []float64{0.1, 0.5, 1} {
		e := linearFrom(mat.NewDense(1, 1, []float64{-0.5}), []float64{2})
		z, _ := e.attempt(t, begun(e, &FixedPoint{Relaxation: omega}), e.start, 0, 7, 0)
		want := 2 * math.Pow(math.Abs(1-omega*1.5), 7)
		if d := e.errorOf(z); !(math.Abs(d-want) <= 1e-14) {
			t.Errorf("constant relaxation %g: off by %g, want %g", omega, d, want)
		}
	}
}

func denseOf(a *num.Matrix) *mat.Dense {
	d := mat.NewDense(a.N, a.N, nil)
	for j := range a.N {
		for p := a.ColStart[j]; p < a.ColStart[j+1]; p++ {
			d.Set(a.Row[p], j, a.Val[p])
		}
	}
	return d
}

func randomVector(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// On nonlinear equations the solvers find the solution within bounds for corrections and Jacobians.
func TestSolversOnNonlinearEquations(t *testing.T) {
	type bound struct{ corrections, jacobians int }
	for _, test := range []struct {
		n         int
		stiffness float64
		want      map[string]bound
	}{
		{1, 0.1, map[string]bound{"newton": {8, 1}, "broyden": {4, 1}, "iqn": {5, 0}, "constant": {50, 0}, "aitken": {5, 0}}},
		{4, 0.1, map[string]bound{"newton": {7, 1}, "broyden": {5, 1}, "iqn": {7, 0}, "constant": {60, 0}, "aitken": {11, 0}}},
		{4, 3, map[string]bound{"newton": {5, 3}, "broyden": {7, 1}, "iqn": {14, 0}}},
		{30, 3, map[string]bound{"newton": {5, 3}, "broyden": {11, 1}, "iqn": {44, 0}}},
		{1000, 10, map[string]bound{"newton": {5, 3}, "broyden": {11, 1}}},
		{100000, 10, map[string]bound{"newton": {5, 3}, "broyden": {11, 1}}},
	} {
		e := cubicChain(test.n, test.stiffness)
		for name, want := range test.want {
			z, did := e.attempt(t, begun(e, everySolver()[name]()), e.start, 1e-10, 100, 100)
			if d := e.errorOf(z); !(d <= 1e-8) || did.corrections > want.corrections || did.jacobians > want.jacobians {
				t.Errorf("%s, n = %d, stiffness %g: off by %.2g after %d corrections with %d Jacobians; want at most %v",
					name, test.n, test.stiffness, d, did.corrections, did.jacobians, want)
			}
			t.Logf("%s, n = %d, stiffness %g: %d corrections, %d Jacobians", name, test.n, test.stiffness, did.corrections, did.jacobians)
		}
	}
}

// A residual that is not finite is an error that names the entry.
func TestSolversRefuseWhatIsNotFinite(t *testing.T) {
	e := cubicChain(5, 1)
	for name, create := range everySolver() {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			s := begun(e, create())
			e.take(t, s, e.start)
			var entry *num.EntryError
			err := s.Correct(e.start, []float64{1, 2, 3, bad, 5}, make([]float64, 5))
			if !errors.Is(err, num.ErrNotFinite) || !errors.As(err, &entry) || entry.Index != 3 {
				t.Errorf("%s, residual %g: error %v", name, bad, err)
			}
		}
	}
}

// Solvers detect divergence, but tolerate a bad start.
func TestSolversTellDivergence(t *testing.T) {
	diverges := &equation{
		pattern:  banded(1, 1),
		residual: func(z, r []float64) { r[0] = math.Atan(z[0]) },
		jacobian: func(z []float64, a *num.Matrix) { a.Val[0] = 1 / (1 + z[0]*z[0]) },
		start:    []float64{3}, solution: []float64{0}, // beyond 1.39 Newton's method diverges
	}
	_, did := diverges.attempt(t, begun(diverges, &Newton{}), diverges.start, 1e-10, 50, 50)
	if !did.diverged || did.corrections != 3 || did.jacobians != 3 {
		t.Errorf("newton on arctan: %+v, want divergence at the second growth with a fresh Jacobian", did)
	}
	growing := linearFrom(mat.NewDense(1, 1, []float64{-9}), []float64{1})
	_, did = growing.attempt(t, begun(growing, &FixedPoint{Relaxation: 1}), growing.start, 1e-10, 50, 0)
	if !did.diverged || did.corrections != fixedPointPatience+1 {
		t.Errorf("fixed point with gain 9: %+v", did)
	}
	z, did := growing.attempt(t, begun(growing, &FixedPoint{}), growing.start, 1e-10, 50, 0)
	if did.diverged || !(growing.errorOf(z) < 1e-9) {
		t.Errorf("Aitken with gain 9: %+v", did)
	}

	for name, create := range everySolver() {
		// Corrections that grow for ever are given up, soon; those that shrink never are.
		e := cubicChain(2, 0.1)
		s := begun(e, create())
		r := []float64{1, 1}
		tell := func(theta float64) bool {
			if s.NeedsJacobian() {
				e.take(t, s, e.start)
			}
			correct(t, s, e.start, r)
			return s.Contraction(theta)
		}
		for range 30 {
			if tell(0.99) {
				t.Errorf("%s: a contraction of 0.99 is taken for divergence", name)
			}
		}
		for range 3 {
			if tell(1.5) && name != "newton" && name != "broyden" || tell(0.5) {
				t.Errorf("%s: growth now and then is taken for divergence", name)
			}
		}
		given := 0
		for given < 20 && !tell(1) {
			given++
		}
		if given == 0 || given > 6 {
			t.Errorf("%s: gives up after %d", name, given)
		}
		// The next attempt starts without that.
		s.Reject()
		s.Begin(0.005, 1)
		if tell(0.5) || tell(1) {
			t.Errorf("%s: the next attempt is given up at once", name)
		}
		if !tell(math.NaN()) {
			t.Errorf("%s: no divergence told for a contraction that is not a number", name)
		}
	}
}

// The Jacobian is kept over macro steps until H or the degree changes, an attempt is rejected, or
// corrections contract badly.
func TestJacobianIsKept(t *testing.T) {
	e := linearEquation(rand.New(rand.NewPCG(1, 1)), 4, 2)
	for name, limit := range map[string]float64{"newton": newtonRefresh, "broyden": broydenRefresh} {
		s := everySolver()[name]()
		s.Init(e.pattern)
		r := []float64{1, 2, 3, 4}
		expect := func(when string, want bool) {
			t.Helper()
			if got := s.NeedsJacobian(); got != want {
				t.Fatalf("%s: needs a Jacobian %s: %t", name, when, got)
			}
			if want {
				if err := s.Correct(e.start, r, make([]float64, 4)); !errors.Is(err, errNoJacobian) {
					t.Fatalf("%s: a correction without Jacobian: error %v", name, err)
				}
				e.take(t, s, nil)
			}
			correct(t, s, e.start, r)
		}
		s.Begin(0.1, 2)
		expect("at first", true)
		expect("in the next iteration", false)
		s.Contraction(limit)
		expect("after good contraction", false)
		s.Accept()
		s.Begin(0.1, 2)
		expect("in the next step", false)
		s.Contraction(math.Nextafter(limit, 1))
		expect("after bad contraction", true)
		s.Accept()
		s.Begin(0.1, 3)
		expect("with another degree", true)
		s.Accept()
		s.Begin(0.2, 3)
		expect("with another H", true)
		s.Reject()
		s.Begin(0.2, 3)
		expect("after a rejection", true)

		// A singular Jacobian is refused, and asked for again, even if it was not
		// asked for before.
		clear(e.pattern.Val)
		if err := s.TakeJacobian(e.pattern); !errors.Is(err, num.ErrSingular) {
			t.Errorf("%s: singular: error %v", name, err)
		}
		expect("after a singular one", true)
	}
}

// steps solves e repeatedly with a slowly moving right side, like macro steps, and counts
// corrections and Jacobians after the first step.
func steps(t testing.TB, e *equation, s Solver, count int) (corrections, jacobians int) {
	t.Helper()
	s.Init(e.pattern)
	base, z, shift := e.residual, slices.Clone(e.start), 0.0
	defer func() { e.residual = base }()
	e.residual = func(z, r []float64) {
		base(z, r)
		for i := range r {
			r[i] -= shift * math.Cos(float64(i))
		}
	}
	for n := range count {
		shift = 0.05 * float64(n)
		s.Begin(0.01, 1)
		var did cost
		if z, did = e.attempt(t, s, z, 1e-9, 100, 100); did.diverged || did.corrections == 100 {
			t.Fatalf("step %d: %+v", n, did)
		}
		s.Accept()
		if n > 0 {
			corrections += did.corrections
			jacobians += did.jacobians
		}
	}
	return corrections, jacobians
}

// Data of one macro step are used in the next ones.
func TestSolversLearnOverSteps(t *testing.T) {
	const count = 20
	e := cubicChain(8, 1)
	for _, test := range []struct {
		name                   string
		s                      Solver
		corrections, jacobians int // in count−1 steps, at most
	}{
		{"newton", &Newton{}, 110, 1},
		{"broyden", &Broyden{}, 105, 0},
		{"broyden of small memory", &Broyden{memory: 3}, 160, 0},
		{"iqn", &IQN{}, 90, 0},
		{"iqn of small memory", &IQN{memory: 10}, 130, 0},
	} {
		corrections, jacobians := steps(t, e, test.s, count)
		if corrections > test.corrections || jacobians > test.jacobians {
			t.Errorf("%s: %d corrections and %d Jacobians after the first step, want at most %d and %d",
				test.name, corrections, jacobians, test.corrections, test.jacobians)
		}
		t.Logf("%s: %d corrections, %d Jacobians", test.name, corrections, jacobians)
	}
	forgetful, _ := steps(t, e, &IQN{reuse: -1}, count)
	learnt, _ := steps(t, e, &IQN{}, count)
	if !(forgetful > 2*learnt) {
		t.Errorf("iqn: %d corrections with reuse, %d without", learnt, forgetful)
	}
	t.Logf("iqn without reuse: %d", forgetful)
}

// With weights in the units of the unknowns, the iterates do not depend on these units: where
// they differ by powers of two, the bits are the same.
func TestWeightsMakeUnitsIrrelevant(t *testing.T) {
	const n, corrections = 6, 9
	rng := rand.New(rand.NewPCG(41, 42))
	g, solution := mat.NewDense(n, n, randomVector(rng, n*n)), randomVector(rng, n)
	g.Scale(1/mat.Norm(g, 2), g)
	var units []float64
	inUnits, solutionInUnits := mat.DenseCopyOf(g), slices.Clone(solution)
	for i := range n {
		units = append(units, math.Ldexp(1, 7*i-20))
		solutionInUnits[i] /= units[i]
	}
	inUnits.Apply(func(i, j int, v float64) float64 { return v * units[j] / units[i] }, g)
	for name, create := range everySolver() {
		iterate := func(e *equation, units []float64) []float64 {
			s := create()
			s.Init(e.pattern)
			w, ok := s.(Weighted)
			if ok {
				weights := make([]float64, n)
				for i := range weights {
					weights[i] = (1 + float64(i)) / units[i]
				}
				w.Weigh(weights)
			} else if name != "newton" {
				t.Errorf("%s takes no weights", name)
			}
			s.Begin(1, 1)
			z, r := make([]float64, n), make([]float64, n)
			for k := range corrections {
				e.residual(z, r)
				if k == 0 && s.NeedsJacobian() {
					e.take(t, s, z)
				}
				for i, d := range correct(t, s, z, r) {
					z[i] += d
				}
			}
			for i := range z {
				z[i] *= units[i]
			}
			return z
		}
		a, b := iterate(linearFrom(g, solution), slices.Repeat([]float64{1}, n)), iterate(linearFrom(inUnits, solutionInUnits), units)
		if !slices.Equal(a, b) {
			t.Errorf("%s: %v in one set of units, %v in the other", name, a, b)
		}
	}
}

// IQN keeps at most memory columns, and none from a rejected attempt, from steps that
// are too old or from another H or degree; a column that repeats an older one replaces it.
func TestIQNColumns(t *testing.T) {
	const n = 6
	e := cubicChain(n, 1)
	s := &IQN{memory: 4, reuse: 2}
	s.Init(e.pattern)
	rng := rand.New(rand.NewPCG(21, 22))
	step := func(H float64, degree, iterates int, end func(), what string, want int) {
		t.Helper()
		s.Begin(H, degree)
		for range iterates {
			correct(t, s, randomVector(rng, n), randomVector(rng, n))
		}
		end()
		if s.kept != want {
			t.Errorf("%s: %d columns, want %d", what, s.kept, want)
		}
	}
	none := func() {}
	step(1, 1, 1, none, "one iterate", 0)
	step(1, 1, 3, none, "three iterates", 2)
	step(1, 1, 7, none, "a full memory", 4)
	s.Init(e.pattern)
	step(1, 1, 7, s.Reject, "a rejection", 0)
	step(1, 1, 2, s.Accept, "the first step", 1)
	s.Reject() // an attempt that never began
	s.Accept()
	step(1, 1, 2, s.Accept, "the second step", 2)
	step(1, 1, 0, s.Accept, "the third step", 1)
	step(1, 1, 0, none, "the fourth step", 1)
	step(1, 1, 0, none, "the fifth step", 0)
	step(1, 1, 3, none, "more iterates", 2)
	step(2, 1, 0, none, "another H", 0)
	step(2, 1, 3, none, "more iterates", 2)
	step(2, 0, 0, none, "another degree", 0)

	z, r := randomVector(rng, n), randomVector(rng, n)
	s.Begin(3, 0)
	for _, by := range []float64{1, 0, 0.5, 1, -2} { // one direction only
		for i := range z {
			z[i] += by
			r[i] += 2 * by * float64(i+1)
		}
		correct(t, s, z, r)
	}
	if s.kept != 1 {
		t.Errorf("moves in one direction: %d columns", s.kept)
	}

	// There are never more columns than unknowns.
	small := cubicChain(2, 1)
	s = &IQN{filter: 1e-14}
	s.Init(small.pattern)
	s.Begin(1, 1)
	for range 9 {
		correct(t, s, randomVector(rng, 2), randomVector(rng, 2))
	}
	if s.kept != 2 {
		t.Errorf("%d columns for two unknowns", s.kept)
	}
}

// Broyden's corrections match the dense formula in weighted norms.
func TestBroydenAgainstDense(t *testing.T) {
	const n = 5
	rng := rand.New(rand.NewPCG(31, 32))
	e := linearEquation(rng, n, 0.5)
	s := &Broyden{}
	s.Init(e.pattern)
	weights := []float64{1, 10, 0.1, 3, 1e3}
	s.Weigh(weights)
	s.Begin(1, 1)
	e.take(t, s, nil)
	b := denseOf(e.pattern)
	var zBefore, rBefore []float64
	for k := range 12 {
		if k%4 == 0 { // a new macro step: nothing to learn from its first iterate
			s.Accept()
			s.Begin(1, 1)
			zBefore = nil
		}
		z, r := randomVector(rng, n), randomVector(rng, n)
		dz := correct(t, s, z, r)
		if zBefore != nil {
			step, defect, weighed := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
			for i := range n {
				step.SetVec(i, z[i]-zBefore[i])
				weighed.SetVec(i, step.AtVec(i)/weights[i]/weights[i])
			}
			defect.MulVec(b, step)
			for i := range n {
				defect.SetVec(i, r[i]-rBefore[i]-defect.AtVec(i))
			}
			b.RankOne(b, 1/mat.Dot(weighed, step), defect, weighed)
		}
		zBefore, rBefore = z, r
		want := mat.NewVecDense(n, nil)
		if err := want.SolveVec(b, mat.NewVecDense(n, r)); err != nil {
			t.Fatal(err)
		}
		for i := range dz {
			if d := math.Abs(dz[i] + want.AtVec(i)); !(d <= 1e-9*mat.Norm(want, 2)) {
				t.Fatalf("correction %d: dz[%d] = %g, want %g", k, i, dz[i], -want.AtVec(i))
			}
		}
	}
}

// Broyden keeps at most memory updates, of the present Jacobian, H and degree, and
// learns nothing from a step that is orthogonal to its effect or lost in rounding.
func TestBroydenUpdates(t *testing.T) {
	e := linearFrom(mat.NewDense(2, 2, nil), []float64{0, 0}) // J = I
	s := &Broyden{memory: 3}
	s.Init(e.pattern)
	s.Begin(1, 1)
	e.take(t, s, nil)
	for _, c := range []struct {
		what string
		z, r [2]float64
		want int
	}{
		{"the first iterate", [2]float64{0, 0}, [2]float64{1, 1}, 0},
		{"a change across the step", [2]float64{1, 0}, [2]float64{1 + 1e-12, 2}, 0},
		{"the same iterate", [2]float64{1, 0}, [2]float64{1, 3}, 0},
		{"an iterate that differs by rounding", [2]float64{1 + 1e-14, 0}, [2]float64{1.5, 3}, 0},
		{"a step", [2]float64{2, 0}, [2]float64{3, 1}, 1},
		{"another", [2]float64{2, 1}, [2]float64{4, 4}, 2},
		{"the next macro step", [2]float64{3, 1}, [2]float64{4, 4}, 2},
		{"a step in it", [2]float64{3, 3}, [2]float64{7, 5}, 3},
		{"more than the memory holds", [2]float64{5, 3}, [2]float64{9, 4}, 0},
		{"one more", [2]float64{5, 4}, [2]float64{9, 7}, 1},
		{"a new Jacobian", [2]float64{6, 4}, [2]float64{1, 1}, 0},
		{"a step from there", [2]float64{7, 4}, [2]float64{3, 1}, 1},
	} {
		switch c.what {
		case "the next macro step":
			s.Accept()
			s.Begin(1, 1)
		case "a new Jacobian":
			e.take(t, s, nil)
		}
		if correct(t, s, c.z[:], c.r[:]); s.kept != c.want {
			t.Errorf("%s: %d updates, want %d", c.what, s.kept, c.want)
		}
	}
	if s.Begin(2, 1); s.kept != 0 {
		t.Errorf("%d updates of another H", s.kept)
	}
}

// Aitken's ω: the formula, its bounds, and its start in the next attempt.
func TestAitkenRelaxation(t *testing.T) {
	e := linearFrom(mat.NewDense(1, 1, []float64{0}), []float64{0})
	s := &FixedPoint{}
	s.Init(e.pattern)
	s.Begin(1, 0)
	for _, c := range []struct {
		what        string
		conclude    func()
		r, relaxing float64
	}{
		{"at first", nil, 1, aitkenStart},
		{"when the residual turns to −1", nil, -1, aitkenStart / 2},
		{"when the residual does not change", nil, -1, aitkenStart / 2},
		{"when it hardly changes", nil, -1 - 1e-9, aitkenStart / 2},
		{"when it changes by a thousandth", nil, -1 + 1e-3, aitkenLargest},
		{"when it vanishes", nil, 0, aitkenLargest},
		{"after it vanished", nil, 1, aitkenLargest},
		{"when it turns to −9999", nil, -9999, 0.01},
		{"after a rejection", s.Reject, 1, aitkenStart},
		{"when it grows by a half", nil, 1.5, -1},
		{"in the next step", s.Accept, 1, -aitkenStart},
		{"when it explodes", nil, -1e30, -aitkenLeast},
	} {
		if c.conclude != nil {
			c.conclude()
			s.Begin(1, 0)
		}
		dz := correct(t, s, []float64{0}, []float64{c.r})
		if !(math.Abs(s.omega-c.relaxing) <= 1e-15*math.Abs(c.relaxing)) || dz[0] != -s.omega*c.r {
			t.Errorf("%s: ω = %g, want %g; correction %g", c.what, s.omega, c.relaxing, dz[0])
		}
	}
}
