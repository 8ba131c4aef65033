package analyze

import (
	"errors"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// propagator is the linear map that one macro step of a strategy is: from z, the states of the
// subsystems and the outputs at the last communication points, newest first, to what they
// are after it. The strategy itself makes the step, in a run that goes on and on: the outputs
// before are forced on the twins, step by step, and then one step is theirs.
//
// With rates it is the map of a period, from one point at which all components take part to the next: only
// there the states of the slow ones and the outputs are all that the strategy goes by. The matrix is formed, and
// not followed, for the same reason as with one rate: its eigenvalues are exact however little the motion is
// damped, where what is followed over some hundred periods leaves a radius near 1 open.
type propagator struct {
	p      *point
	run    *master.Run
	twins  []*twin
	n, ny  int     // states, outputs
	period int     // macro steps of the map
	lags   []int   // the communication points in z, by how many macro steps they lie back
	seen   []bool  // by entry of z: an input, or a state, follows it
	owner  []int   // by entry of z, but for the communication points before the last: its subsystem
	fed    [][]int // by subsystem: those that it feeds
}

func (p *point) newPropagator(s *scheme, h float64, twins []*twin, sys *master.System) (*propagator, error) {
	g := &propagator{p: p, twins: twins, period: s.period()}
	for _, t := range twins {
		g.n += len(t.x)
		g.ny += len(t.y)
	}
	for i, t := range twins {
		g.owner = append(g.owner, slices.Repeat([]int{i}, len(t.x))...)
	}
	for i, t := range twins {
		g.owner = append(g.owner, slices.Repeat([]int{i}, len(t.y))...)
	}
	g.fed = make([][]int, len(twins))
	for k := range sys.InAt[len(twins)] {
		if y, ok := sys.Source(k); ok {
			from, to := g.owner[g.n+y], ownerOf(sys.InAt, k)
			if !slices.Contains(g.fed[from], to) {
				g.fed[from] = append(g.fed[from], to)
			}
		}
	}
	g.look(s, sys)
	const manySteps = 10_000_000
	var err error
	if g.run, err = s.start(sys, h, manySteps); err != nil {
		return nil, err
	}
	if err := g.run.Start(p.ctx); err != nil {
		_, _ = g.run.Close()
		return nil, err
	}
	return g, nil
}

// look finds the communication points that polynomials go through: those at which both the source and the taker of an
// input take part.
func (g *propagator) look(s *scheme, sys *master.System) {
	at := make([]map[int]bool, g.ny) // by output: the lags at which it is seen
	g.lags = []int{0}
	for k := range sys.InAt[len(g.twins)] {
		y, ok := sys.Source(k)
		if !ok {
			continue
		}
		_, one := s.rate(g.twins[g.owner[g.n+y]].info.Name)
		_, other := s.rate(g.twins[ownerOf(sys.InAt, k)].info.Name)
		if at[y] == nil {
			at[y] = map[int]bool{}
		}
		for j := range s.order + 1 {
			lag := j * leastCommonMultiple(one, other)
			at[y][lag] = true
			if !slices.Contains(g.lags, lag) {
				g.lags = append(g.lags, lag)
			}
		}
	}
	if g.period == 1 { // one grid, whatever is seen
		for lag := range s.order + 1 {
			if !slices.Contains(g.lags, lag) {
				g.lags = append(g.lags, lag)
			}
		}
	}
	slices.Sort(g.lags)
	g.seen = slices.Repeat([]bool{true}, g.n)
	for _, lag := range g.lags {
		for y := range g.ny {
			g.seen = append(g.seen, at[y][lag])
		}
	}
}

func (g *propagator) size() int { return g.n + g.ny*len(g.lags) }

// fresh gives how many entries of z, the first ones, a step of the map makes anew: the others are those of before,
// which have grown older.
func (g *propagator) fresh() int {
	fresh, _ := slices.BinarySearch(g.lags, g.period)
	return g.n + g.ny*fresh
}

// before gives the place of what entry i of z was before the map, one that is not fresh.
func (g *propagator) before(i int) int {
	lag := g.lags[(i-g.n)/g.ny] - g.period
	return g.n + slices.Index(g.lags, lag)*g.ny + (i-g.n)%g.ny
}

// apply makes next [size] from z [size].
func (g *propagator) apply(z, next []float64) error {
	for lag := g.lags[len(g.lags)-1]/g.period*g.period + g.period - 1; lag >= 0; lag-- {
		at := g.n
		if j, ok := slices.BinarySearch(g.lags, lag); ok { // else nothing sees what they show
			at += j * g.ny
		}
		for _, t := range g.twins {
			t.forced = z[at : at+len(t.y)]
			at += len(t.y)
		}
		if _, err := macroStep(g.p.ctx, g.run); err != nil {
			return err
		}
	}
	at := 0
	for _, t := range g.twins {
		t.forced = nil
		at += copy(t.x, z[at:at+len(t.x)])
	}
	for lag := g.period - 1; lag >= 0; lag-- {
		if _, err := macroStep(g.p.ctx, g.run); err != nil {
			return err
		}
		if j, ok := slices.BinarySearch(g.lags, lag); ok {
			copy(next[g.n+j*g.ny:g.n+(j+1)*g.ny], g.run.Point().Y)
		}
	}
	for i := g.fresh(); i < g.size(); i++ {
		next[i] = z[g.before(i)]
	}
	at = 0
	for _, t := range g.twins {
		at += copy(next[at:], t.x)
	}
	if !linear.Finite(next...) {
		return errors.New("the coupled step is not finite")
	}
	return nil
}

// dominantOf gives the mode of the propagation that grows most; its outputs only if asked.
func (g *propagator) dominantOf(phi *mat.Dense, outputs bool) (eigen, error) {
	// Outputs that feed nobody follow what else there is.
	var kept []int
	for i, seen := range g.seen {
		if seen {
			kept = append(kept, i)
		}
	}
	d := len(kept)
	if d == 0 {
		return eigen{outputs: make([]float64, g.ny)}, nil
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
			return eigen{}, errNoEigenvalues
		}
		roots(values, g.period)
		worst, lasts := limiting(values, func(int) bool { return true })
		return eigen{value: values[worst], lasts: lasts}, nil
	}
	var e mat.Eigen
	if !e.Factorize(m, mat.EigenRight) {
		return eigen{}, errNoEigenvalues
	}
	values := e.Values(nil)
	roots(values, g.period)
	worst, lasts := limiting(values, func(int) bool { return true })
	mode := eigen{value: values[worst], lasts: lasts}
	var vectors mat.CDense
	e.VectorsTo(&vectors)
	mode.outputs = make([]float64, g.ny)
	for o := range mode.outputs { // after one more step, each as it was before it
		sum := complex(0, 0)
		for c, j := range kept {
			sum += complex(phi.At(g.n+o, j)*size[c], 0) * vectors.At(c, worst)
		}
		if mode.value != 0 {
			mode.outputs[o] = cmplx.Abs(sum / mode.value)
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
