package validate

import (
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
)

var ruleGain = &diag.Rule{
	ID: "CC4", Level: diag.Warning, Ref: "fmi2 29, 43, 60",
	Doc: "The gain around the algebraic loops of a macro step is below 1: the spectral radius of the matrix by " +
		"which a change of the coupling inputs comes back to them at once, at the start, by directional " +
		"derivatives. Otherwise repetition (fixed point) does not converge, and explicit coupling of order 0 " +
		"grows in every step.",
	Remedy: "take an implicit algorithm with --param solver.kind=newton-fd or newton-los, or a smaller " +
		"solver.relaxation",
}

// gains computes the gain around the loops of a system, in a separate run with all components
// isolated.
func (j *judge) gains() {
	o := j.o.Assemble
	o.Launcher, o.Cache, o.Compile = j.o.Launcher, j.o.Cache, j.o.Compile
	if o.Launcher != nil {
		o.Isolate, o.Copy, o.Sandboxed = assemble.IsolateAlways, j.o.copy, true
	}
	a, err := assemble.Open(j.path, o) // never nil
	defer func() { _ = a.Close() }()   // the next program removes files that remain
	if err != nil || j.o.Strategy == nil {
		return // reported by system
	}
	a.Override(nil, nil, nil, nil)
	var variables []string
	for _, l := range a.System.Loops {
		if !l.Assumed {
			variables = append(variables, l.Variables...)
		}
	}
	s := j.o.Strategy(a)
	if variables == nil || s.Algorithm == nil {
		return
	}
	run, err := master.NewRun(a.System, s.Algorithm, master.Options{
		Start: a.Start.Value, Stop: a.Stop.Value, Step: a.Step.Value, Discard: s.Discard,
	})
	if err != nil {
		return // reported by the rules on the algorithm
	}
	err = run.Start(j.ctx)
	if err == nil {
		if radius, known := loopGain(a.System, variables); known && radius >= 1 {
			j.l.Add(ruleGain, a.Root(), "", 0, "the gain around the loop is %.4g: %s",
				radius, strings.Join(variables[:min(len(variables), 6)], " → "))
		}
	}
	_, _ = run.Close()
}

// loopGain returns the spectral radius of L D for the inputs on loops, where D are the directional
// derivatives of the outputs; false if a component does not provide them.
func loopGain(sys *master.System, variables []string) (radius float64, known bool) {
	var ins []int // entries of u
	for _, name := range variables {
		if u, ok := sys.FindIn(name); ok {
			ins = append(ins, u)
		}
	}
	m := make([][]float64, len(ins)) // to, from
	for i := range m {
		m[i] = make([]float64, len(ins))
	}
	for from, u := range ins {
		i := slices.IndexFunc(sys.InAt[1:], func(end int) bool { return u < end })
		deriver, ok := master.As[master.DirectionalDeriver](sys.Subsystems[i])
		if !ok || !sys.Infos[i].Caps.DirectionalDerivative {
			return 0, false
		}
		du, dy := make([]float64, len(sys.Infos[i].In)), make([]float64, len(sys.Infos[i].Out))
		du[u-sys.InAt[i]] = 1
		if deriver.DirectionalDerivative(du, dy) != nil {
			return 0, false
		}
		for to, v := range ins {
			if y, ok := sys.Source(v); ok && y >= sys.OutAt[i] && y < sys.OutAt[i+1] {
				m[to][from] = sys.Gain(v) * dy[y-sys.OutAt[i]]
			}
		}
	}
	return spectralRadius(m)
}

// squarings is the number of squarings of a matrix, for its power 2^squarings.
const squarings = 20

// spectralRadius returns the limit of |M^n|^(1/n) (Gelfand) to a few digits; false if M is not
// finite. It overwrites M.
func spectralRadius(m [][]float64) (float64, bool) {
	n := len(m)
	exponent := 0.0 // logarithm of the norms that were divided out
	power := 1.0
	for range squarings {
		norm := 0.0
		for _, row := range m {
			for _, v := range row {
				if norm = max(norm, math.Abs(v)); math.IsNaN(v) {
					return 0, false
				}
			}
		}
		if norm == 0 {
			return 0, true
		}
		if math.IsInf(norm, 0) {
			return 0, false
		}
		exponent += math.Log(norm) / power
		next := make([][]float64, n)
		for i := range next {
			next[i] = make([]float64, n)
			for k := range n {
				for l := range n {
					next[i][l] += m[i][k] / norm * (m[k][l] / norm)
				}
			}
		}
		m, power = next, 2*power
	}
	return math.Exp(exponent), true
}
