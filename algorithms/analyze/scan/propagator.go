package scan

import (
	"errors"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Propagator is the linear map of one macro step of a strategy, from z, the states of the
// subsystems and the outputs at the last communication points, newest first, to z after the step.
// The strategy itself makes the step, in a run that never ends: the twins first show the outputs of z, step by
// step, and then make one step from the states of z.
//
// With rates it is the map of a period, from one point at which all components step together to the next: only
// there z is the whole state of the strategy. The eigenvalues of its matrix are exact even for hardly damped motions,
// where a run followed over some hundred periods does not show whether the radius is above 1.
type Propagator struct {
	p      *twin.Point
	Run    *master.Run // to be closed
	twins  []*twin.Twin
	N, Ny  int     // states, outputs
	period int     // macro steps of the map
	Lags   []int   // the communication points in z, by their age in macro steps
	seen   []bool  // by entry of z: it affects a state or an input
	owner  []int   // subsystem of each entry of z, up to the newest communication point
	fed    [][]int // by subsystem: the subsystems that it feeds
}

// NewPropagator starts the run of a strategy on twins. The caller must close Run.
func NewPropagator(p *twin.Point, s *twin.Scheme, h float64, twins []*twin.Twin, sys *master.System) (*Propagator, error) {
	g := &Propagator{p: p, twins: twins, period: s.Period()}
	for _, t := range twins {
		g.N += len(t.X)
		g.Ny += len(t.Y)
	}
	for i, t := range twins {
		g.owner = append(g.owner, slices.Repeat([]int{i}, len(t.X))...)
	}
	for i, t := range twins {
		g.owner = append(g.owner, slices.Repeat([]int{i}, len(t.Y))...)
	}
	g.fed = make([][]int, len(twins))
	for k := range sys.InAt[len(twins)] {
		if y, ok := sys.Source(k); ok {
			from, to := g.owner[g.N+y], num.Owner(sys.InAt, k)
			if !slices.Contains(g.fed[from], to) {
				g.fed[from] = append(g.fed[from], to)
			}
		}
	}
	g.look(s, sys)
	const manySteps = 10_000_000
	var err error
	if g.Run, err = s.Start(sys, h, manySteps); err != nil {
		return nil, err
	}
	if err := g.Run.Start(p.Ctx); err != nil {
		_, _ = g.Run.Close()
		return nil, err
	}
	return g, nil
}

// look finds the communication points used by input polynomials: those at which both the source and the target of a
// connection step.
func (g *Propagator) look(s *twin.Scheme, sys *master.System) {
	at := make([]map[int]bool, g.Ny) // by output: the lags at which it is used
	g.Lags = []int{0}
	for k := range sys.InAt[len(g.twins)] {
		y, ok := sys.Source(k)
		if !ok {
			continue
		}
		_, one := s.Rate(g.twins[g.owner[g.N+y]].Decl.Name)
		_, other := s.Rate(g.twins[num.Owner(sys.InAt, k)].Decl.Name)
		if at[y] == nil {
			at[y] = map[int]bool{}
		}
		for j := range s.Order + 1 {
			lag := j * num.LCM(one, other)
			at[y][lag] = true
			if !slices.Contains(g.Lags, lag) {
				g.Lags = append(g.Lags, lag)
			}
		}
	}
	if g.period == 1 { // the same points for all outputs
		for lag := range s.Order + 1 {
			if !slices.Contains(g.Lags, lag) {
				g.Lags = append(g.Lags, lag)
			}
		}
	}
	slices.Sort(g.Lags)
	g.seen = slices.Repeat([]bool{true}, g.N)
	for _, lag := range g.Lags {
		for y := range g.Ny {
			g.seen = append(g.seen, at[y][lag])
		}
	}
}

// Size returns the length of z.
func (g *Propagator) Size() int { return g.N + g.Ny*len(g.Lags) }

// fresh returns the number of the first entries of z that the map computes; the others are older values.
func (g *Propagator) fresh() int {
	fresh, _ := slices.BinarySearch(g.Lags, g.period)
	return g.N + g.Ny*fresh
}

// before returns the place in z, before the map, of the older value that entry i becomes.
func (g *Propagator) before(i int) int {
	lag := g.Lags[(i-g.N)/g.Ny] - g.period
	return g.N + slices.Index(g.Lags, lag)*g.Ny + (i-g.N)%g.Ny
}

// Apply computes next [size] from z [size].
func (g *Propagator) Apply(z, next []float64) error {
	for lag := g.Lags[len(g.Lags)-1]/g.period*g.period + g.period - 1; lag >= 0; lag-- {
		at := g.N
		if j, ok := slices.BinarySearch(g.Lags, lag); ok { // else the values are not used
			at += j * g.Ny
		}
		for _, t := range g.twins {
			t.Forced = z[at : at+len(t.Y)]
			at += len(t.Y)
		}
		if _, err := twin.MacroStep(g.p.Ctx, g.Run); err != nil {
			return err
		}
	}
	at := 0
	for _, t := range g.twins {
		t.Forced = nil
		at += copy(t.X, z[at:at+len(t.X)])
	}
	for lag := g.period - 1; lag >= 0; lag-- {
		if _, err := twin.MacroStep(g.p.Ctx, g.Run); err != nil {
			return err
		}
		if j, ok := slices.BinarySearch(g.Lags, lag); ok {
			copy(next[g.N+j*g.Ny:g.N+(j+1)*g.Ny], g.Run.Point().Y)
		}
	}
	for i := g.fresh(); i < g.Size(); i++ {
		next[i] = z[g.before(i)]
	}
	at = 0
	for _, t := range g.twins {
		at += copy(next[at:], t.X)
	}
	if !linear.Finite(next...) {
		return errors.New("the coupled step is not finite [diverges]")
	}
	return nil
}

// dominantOf returns the mode of the propagation matrix with the largest growth, with its outputs if outputs is set.
func (g *Propagator) dominantOf(phi *mat.Dense, outputs bool) (Eigen, error) {
	// Outputs that feed no input do not affect the others.
	var kept []int
	for i, seen := range g.seen {
		if seen {
			kept = append(kept, i)
		}
	}
	d := len(kept)
	if d == 0 {
		return Eigen{Outputs: make([]float64, g.Ny)}, nil
	}
	m := mat.NewDense(d, d, nil)
	for r, i := range kept {
		for c, j := range kept {
			if v := phi.At(i, j); math.Abs(v) > vanished { // denormal numbers would spoil the balancing
				m.Set(r, c, v)
			}
		}
	}
	size := linear.Balance(m)
	if !outputs {
		values, ok := linear.Eigenvalues(linear.Compressed(m))
		if !ok {
			return Eigen{}, errNoEigenvalues
		}
		roots(values, g.period)
		worst, lasts := limiting(values, func(int) bool { return true })
		return Eigen{Value: values[worst], Lasts: lasts}, nil
	}
	var e mat.Eigen
	if !e.Factorize(m, mat.EigenRight) {
		return Eigen{}, errNoEigenvalues
	}
	values := e.Values(nil)
	roots(values, g.period)
	worst, lasts := limiting(values, func(int) bool { return true })
	mode := Eigen{Value: values[worst], Lasts: lasts}
	var vectors mat.CDense
	e.VectorsTo(&vectors)
	mode.Outputs = make([]float64, g.Ny)
	for o := range mode.Outputs { // from one more step
		sum := complex(0, 0)
		for c, j := range kept {
			sum += complex(phi.At(g.N+o, j)*size[c], 0) * vectors.At(c, worst)
		}
		if mode.Value != 0 {
			mode.Outputs[o] = cmplx.Abs(sum / mode.Value)
		}
	}
	return mode, nil
}

// roots replaces the eigenvalues of a map over period macro steps by those of one macro step, with the lowest possible
// frequency.
func roots(values []complex128, period int) {
	for i := range values {
		if period > 1 {
			values[i] = cmplx.Pow(values[i], complex(1/float64(period), 0))
		}
	}
}

// vanished is the size below which entries of a propagation matrix count as 0.
const vanished = 1e-100

var errNoEigenvalues = errors.New("the eigenvalues of the coupled step were not found")
