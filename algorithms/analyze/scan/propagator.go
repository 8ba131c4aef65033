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

// Propagator is the linear map that one macro step of a strategy is: from z, the states of the
// subsystems and the outputs at the last communication points, newest first, to what they
// are after it. The strategy itself makes the step, in a run that goes on and on: the outputs
// before are forced on the twins, step by step, and then one step is theirs.
//
// With rates it is the map of a period, from one point at which all components take part to the next: only
// there the states of the slow ones and the outputs are all that the strategy goes by. The matrix is formed, and
// not followed, for the same reason as with one rate: its eigenvalues are exact however little the motion is
// damped, where what is followed over some hundred periods leaves a radius near 1 open.
type Propagator struct {
	p      *twin.Point
	Run    *master.Run // to be closed
	twins  []*twin.Twin
	N, Ny  int     // states, outputs
	period int     // macro steps of the map
	Lags   []int   // the communication points in z, by how many macro steps they lie back
	seen   []bool  // by entry of z: an input, or a state, follows it
	owner  []int   // by entry of z, but for the communication points before the last: its subsystem
	fed    [][]int // by subsystem: those that it feeds
}

// NewPropagator starts the run of a strategy on twins.
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

// look finds the communication points that polynomials go through: those at which both the source and the taker of an
// input take part.
func (g *Propagator) look(s *twin.Scheme, sys *master.System) {
	at := make([]map[int]bool, g.Ny) // by output: the lags at which it is seen
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
	if g.period == 1 { // one grid, whatever is seen
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

func (g *Propagator) Size() int { return g.N + g.Ny*len(g.Lags) }

// fresh returns how many entries of z, the first ones, a step of the map makes anew: the others are those of before,
// which have grown older.
func (g *Propagator) fresh() int {
	fresh, _ := slices.BinarySearch(g.Lags, g.period)
	return g.N + g.Ny*fresh
}

// before returns the place of what entry i of z was before the map, one that is not fresh.
func (g *Propagator) before(i int) int {
	lag := g.Lags[(i-g.N)/g.Ny] - g.period
	return g.N + slices.Index(g.Lags, lag)*g.Ny + (i-g.N)%g.Ny
}

// Apply makes next [size] from z [size].
func (g *Propagator) Apply(z, next []float64) error {
	for lag := g.Lags[len(g.Lags)-1]/g.period*g.period + g.period - 1; lag >= 0; lag-- {
		at := g.N
		if j, ok := slices.BinarySearch(g.Lags, lag); ok { // else nothing sees what they show
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
		return errors.New("the coupled step is not finite")
	}
	return nil
}

// dominantOf returns the mode of the propagation that grows most; its outputs only if asked.
func (g *Propagator) dominantOf(phi *mat.Dense, outputs bool) (Eigen, error) {
	// Outputs that feed nobody follow what else there is.
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
			if v := phi.At(i, j); math.Abs(v) > vanished { // what is near the least numbers spoils the balance
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
	for o := range mode.Outputs { // after one more step, each as it was before it
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

// roots makes of the eigenvalues of a map over some macro steps those of one: the growth in each, and the slowest
// motion that looks like it.
func roots(values []complex128, period int) {
	for i := range values {
		if period > 1 {
			values[i] = cmplx.Pow(values[i], complex(1/float64(period), 0))
		}
	}
}

// vanished counts as 0 in a propagation: effects through many subsystems.
const vanished = 1e-100

var errNoEigenvalues = errors.New("the eigenvalues of the coupled step were not found")
