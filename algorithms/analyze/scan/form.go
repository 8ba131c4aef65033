package scan

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

// reaches are tried in turn: explicit schemes have 1, and other effects are mostly below rounding after a few
// connections.
var reaches = []int{1, 3, 9, 27}

// farther is the largest relative difference between steps from random states and their prediction by a propagation
// matrix that neglects effects beyond the reach.
const farther = 1e-10

// form returns the propagation matrix [size × size]. One step gives one column, or several columns of subsystems that lie
// so far apart that they do not affect the same subsystem in a step (A. R. Curtis, M. J. D. Powell, J. K. Reid, On the
// estimation of sparse Jacobian matrices, 1974). Steps from random states verify this.
func (g *Propagator) form(s *twin.Scheme) (*mat.Dense, error) {
	for _, reach := range reaches {
		if reach < s.Reach {
			continue
		}
		within := g.within(reach)
		groups := g.apart(within)
		if columns := g.columns(); 2*g.batches(groups, columns) > g.Size()-len(reaches) {
			break
		}
		phi, err := g.formIn(groups, within)
		if err != nil {
			return nil, err
		}
		same, err := g.foretells(phi)
		if err != nil {
			return nil, err
		}
		if s.Reach = reach; same {
			return phi, nil
		}
		s.Reach++
	}
	all, every := make([][]int, len(g.twins)), make([][]bool, len(g.twins))
	for i := range all {
		all[i], every[i] = []int{i}, slices.Repeat([]bool{true}, len(g.twins))
	}
	return g.formIn(all, every)
}

// columns returns, by subsystem, its entries of z that matter: its states, and
// its outputs that feed an input, at all points.
func (g *Propagator) columns() [][]int {
	out := make([][]int, len(g.twins))
	for i, seen := range g.seen {
		if seen {
			at := g.subsystemOf(i)
			out[at] = append(out[at], i)
		}
	}
	return out
}

// subsystemOf returns the subsystem of entry i of z.
func (g *Propagator) subsystemOf(i int) int {
	if i >= g.N {
		i = g.N + (i-g.N)%g.Ny
	}
	return g.owner[i]
}

// within reports, by subsystem, which others are at most reach connections downstream of it.
func (g *Propagator) within(reach int) [][]bool {
	out := make([][]bool, len(g.twins))
	for i := range out {
		out[i] = make([]bool, len(g.twins))
		out[i][i] = true
		edge := []int{i}
		for range reach {
			var next []int
			for _, at := range edge {
				for _, to := range g.fed[at] {
					if !out[i][to] {
						out[i][to] = true
						next = append(next, to)
					}
				}
			}
			edge = next
		}
	}
	return out
}

// apart puts subsystems into groups whose members have no subsystem within common reach.
func (g *Propagator) apart(within [][]bool) (groups [][]int) {
	var taken [][]bool // by group: subsystems within reach of a member
	for i, mine := range within {
		fits := func(taken []bool) bool {
			for j, m := range mine {
				if m && taken[j] {
					return false
				}
			}
			return true
		}
		k := slices.IndexFunc(taken, fits)
		if k < 0 {
			k = len(groups)
			groups, taken = append(groups, nil), append(taken, make([]bool, len(mine)))
		}
		groups[k] = append(groups[k], i)
		for j, m := range mine {
			taken[k][j] = taken[k][j] || m
		}
	}
	return groups
}

// batches returns the number of steps that formIn needs for groups.
func (g *Propagator) batches(groups [][]int, columns [][]int) int {
	sum := 0
	for _, group := range groups {
		most := 0
		for _, i := range group {
			most = max(most, len(columns[i]))
		}
		sum += most
	}
	return sum
}

// formIn forms the propagation matrix in steps from one entry of each member of a group.
func (g *Propagator) formIn(groups [][]int, within [][]bool) (*mat.Dense, error) {
	d, columns := g.Size(), g.columns()
	phi := mat.NewDense(max(d, 1), max(d, 1), nil)
	z, next := make([]float64, d), make([]float64, d)
	for _, group := range groups {
		for n := 0; ; n++ {
			clear(z)
			some := false
			for _, i := range group {
				if n < len(columns[i]) {
					z[columns[i][n]] = 1
					some = true
				}
			}
			if !some {
				break
			}
			if err := g.Apply(z, next); err != nil {
				return nil, err
			}
			for _, i := range group {
				if n >= len(columns[i]) {
					continue
				}
				c := columns[i][n]
				for r := range g.fresh() {
					if within[i][g.subsystemOf(r)] {
						phi.Set(r, c, next[r])
					}
				}
			}
		}
	}
	for j := g.fresh(); j < d; j++ { // older points
		phi.Set(j, g.before(j), 1)
	}
	return phi, nil
}

// foretells reports whether the propagation matrix predicts steps from random states.
func (g *Propagator) foretells(phi *mat.Dense) (bool, error) {
	const looks = 2
	rng := rand.New(rand.NewPCG(7, 8))
	d := g.Size()
	z, next := make([]float64, d), make([]float64, d)
	for range looks {
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		if err := g.Apply(z, next); err != nil {
			return false, err
		}
		for r := range g.fresh() {
			sum, size := 0.0, 0.0
			for c, v := range phi.RawRowView(r) {
				sum += v * z[c]
				size += math.Abs(v * z[c])
			}
			if !(math.Abs(next[r]-sum) <= farther*size) {
				return false, nil
			}
		}
	}
	return true, nil
}
