package algorithms

import (
	"maps"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// interfaceJacobian is J = I − L S for some inputs. S = ∂y/∂u is the response of the outputs of
// each subsystem at the end of a macro step to its own inputs.
type interfaceJacobian struct {
	columns  []column
	jacobian *num.Matrix
}

// column is one input of a subsystem as a column of the interface Jacobian.
type column struct {
	input     int
	subsystem int
	s         []float64 // ∂y/∂u, [ny of the subsystem]
	entries   []entry
	delta     float64 // perturbation
}

// entry is an entry of a column of J: diagonal − gain·s[out].
type entry struct {
	at       int // in Matrix.Val
	out      int // output of the subsystem; -1 = none
	gain     float64
	diagonal float64 // 1 on the diagonal, else 0
}

// layOut computes the pattern of J from the columns.
func (f *interfaceJacobian) layOut(sys *master.System) {
	n := len(f.columns)
	fedBy := make(map[int][]int) // output to rows
	for j, c := range f.columns {
		if y, ok := sys.Source(c.input); ok {
			fedBy[y] = append(fedBy[y], j)
		}
	}
	m := &num.Matrix{N: n, ColStart: []int{0}}
	for j := range f.columns {
		c := &f.columns[j]
		byRow := map[int]entry{j: {out: -1, diagonal: 1}}
		for out := range c.s {
			for _, row := range fedBy[sys.OutAt[c.subsystem]+out] {
				e := entry{out: out, gain: sys.Gain(f.columns[row].input)}
				if row == j {
					e.diagonal = 1
				}
				byRow[row] = e
			}
		}
		for _, row := range slices.Sorted(maps.Keys(byRow)) {
			e := byRow[row]
			e.at = len(m.Row)
			c.entries = append(c.entries, e)
			m.Row = append(m.Row, row)
		}
		m.ColStart = append(m.ColStart, len(m.Row))
	}
	m.Val = make([]float64, len(m.Row))
	f.jacobian = m
}

// assemble computes the values of J from the columns of S.
func (f *interfaceJacobian) assemble() {
	for j := range f.columns {
		c := &f.columns[j]
		for _, e := range c.entries {
			v := e.diagonal
			if e.out >= 0 {
				v -= float64(e.gain * c.s[e.out])
			}
			f.jacobian.Val[e.at] = v
		}
	}
}
