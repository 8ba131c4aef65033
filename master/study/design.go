package study

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"
	"gonum.org/v1/gonum/stat/samplemv"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Design defines how the values of the factors are combined.
type Design struct {
	Kind    string
	Samples int    // runs; of Morris, trajectories; of Saltelli, base samples
	Seed    uint64 // the same seed gives the same values
	Levels  int    // of Morris; 0 = 4
	Table   *Table // of DesignTable: a column for each factor, a row for each run
}

// The designs.
const (
	DesignGrid           = "grid"            // all combinations, the last factor fastest
	DesignOneAtATime     = "one-at-a-time"   // the system as it is, then each value of each factor alone
	DesignLatinHypercube = "latin-hypercube" // samples, each factor evenly spread
	DesignHalton         = "halton"          // samples, evenly spread in all dimensions (scrambled by Owen)
	DesignMonteCarlo     = "monte-carlo"     // independent samples
	DesignMorris         = "morris"          // trajectories that move one factor at a time
	DesignSaltelli       = "saltelli"        // for Sobol indices: (factors + 2) × samples
	DesignTable          = "table"           // rows of a table
	designOptimise       = "optimise"        // chosen while the study goes on
	designConvergence    = "convergence"
)

// Designs names those that a plan may choose.
var Designs = []string{DesignGrid, DesignOneAtATime, DesignLatinHypercube, DesignHalton, DesignMonteCarlo, DesignMorris, DesignSaltelli, DesignTable}

// Variant is a run of a study: its number from 0, and the value of each factor; "" = the system's own. One with a number below 0
// is not part of the table: it measures the error of a run, or samples the fitted variables.
type Variant struct {
	ID      int      `json:"id"`
	Values  []string `json:"values"`
	Samples bool     `json:"samples,omitempty"` // the row has Curves
}

// checks reports whether the variant measures the error of a run.
func (v Variant) checks() bool { return v.ID < 0 && !v.Samples }

// check returns the variant that measures the error of the run, which executors do not take for the run itself.
func (v Variant) check() Variant { return Variant{ID: ^v.ID, Values: v.Values} }

// String names the run.
func (v Variant) String() string {
	switch {
	case v.Samples:
		return "a run for standard errors"
	case v.checks():
		return fmt.Sprintf("check of run %d", ^v.ID)
	}
	return fmt.Sprintf("run %d", v.ID)
}

// Variants are those of a design, in their order.
type Variants struct {
	Names []string
	List  []Variant
}

// mostVariants bounds a design.
const mostVariants = 1_000_000

// Variants returns the runs of the design.
func (p *Plan) Variants() (*Variants, error) {
	d, k := &p.Design, len(p.Factors)
	out := &Variants{Names: p.FactorNames()}
	var rows [][]string
	var err error
	switch d.Kind {
	case DesignTable:
		if d.Table == nil {
			return nil, errors.New("design: table needs table: FILE.csv")
		}
		if k > 0 {
			return nil, errors.New("design: the factors of a table are its columns; leave out vary, or take column(FILE.csv, NAME) there with another design")
		}
		rows = d.Table.Rows
	case DesignGrid:
		rows, err = p.grid()
	case DesignOneAtATime:
		rows, err = p.oneAtATime()
	default:
		rows, err = p.sample()
	}
	if err != nil {
		return nil, fmt.Errorf("design: %w", err)
	}
	if d.Kind != DesignTable && d.Table != nil {
		return nil, fmt.Errorf("design: a table goes with the design table, not %s", d.Kind)
	}
	for i, row := range rows {
		out.List = append(out.List, Variant{ID: i, Values: row})
	}
	return out, nil
}

func (p *Plan) grid() ([][]string, error) {
	levels := make([][]string, len(p.Factors))
	total := 1
	for i := range p.Factors {
		var err error
		if levels[i], err = p.Factors[i].grid(); err != nil {
			return nil, err
		}
		if total *= len(levels[i]); total > mostVariants {
			return nil, fmt.Errorf("the grid has more than %d combinations; take fewer values, or a design that samples", mostVariants)
		}
	}
	rows := make([][]string, total)
	for n := range rows {
		row, rest := make([]string, len(levels)), n
		for i := len(levels) - 1; i >= 0; i-- {
			row[i] = levels[i][rest%len(levels[i])]
			rest /= len(levels[i])
		}
		rows[n] = row
	}
	return rows, nil
}

func (p *Plan) oneAtATime() ([][]string, error) {
	k := len(p.Factors)
	rows := [][]string{make([]string, k)}
	for i := range p.Factors {
		levels, err := p.Factors[i].grid()
		if err != nil {
			return nil, err
		}
		for _, v := range levels {
			row := make([]string, k)
			row[i] = v
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// sample returns the rows of a design that samples.
func (p *Plan) sample() ([][]string, error) {
	d, k := &p.Design, len(p.Factors)
	switch {
	case !slices.Contains(Designs, d.Kind):
		return nil, fmt.Errorf("there is no design %q%s", d.Kind, diag.DidYouMeanOr(d.Kind, Designs, "; there are ", designWords))
	case k == 0:
		return nil, fmt.Errorf("%s needs factors; give them in vary", d.Kind)
	case d.Samples < 1:
		return nil, fmt.Errorf("%s needs samples: N", d.Kind)
	case d.Samples > mostVariants/(k+2):
		return nil, fmt.Errorf("%d samples are more than %d runs", d.Samples, mostVariants)
	}
	source := rand.NewPCG(d.Seed, seedStream)
	var points *mat.Dense // in the unit cube, a row for each run
	switch d.Kind {
	case DesignMorris:
		levels := cmp.Or(d.Levels, 4)
		if levels < 2 || levels%2 != 0 {
			return nil, fmt.Errorf("morris takes an even number of levels, not %d", levels)
		}
		for i := range p.Factors {
			if f := &p.Factors[i]; f.Levels != nil || !f.finite() {
				return nil, fmt.Errorf("morris moves factors between two ends; %s: %s has none, give a range", f.Name, f.Text)
			}
		}
		points = morris(k, d.Samples, levels, rand.New(source))
	case DesignSaltelli:
		points = saltelli(k, d.Samples, source)
	default:
		points = mat.NewDense(d.Samples, k, nil)
		unit := distmv.NewUnitUniform(k, source)
		switch d.Kind {
		case DesignLatinHypercube:
			samplemv.LatinHypercube{Q: unit, Src: source}.Sample(points)
		case DesignHalton:
			samplemv.Halton{Kind: samplemv.Owen, Q: unit, Src: source}.Sample(points)
		default:
			samplemv.IID{Dist: unit}.Sample(points)
		}
	}
	n, _ := points.Dims()
	rows := make([][]string, n)
	for i := range rows {
		rows[i] = make([]string, k)
		for j := range p.Factors {
			rows[i][j] = p.Factors[j].Quantile(p.Factors[j].inside(points.At(i, j)))
		}
	}
	return rows, nil
}

// seedStream distinguishes designs from other uses of a seed.
const seedStream = 0x6d6163726f73

// inside keeps a probability away from 0 and 1, where distributions without bounds are infinite.
func (f *Factor) inside(p float64) float64 {
	if f.Levels != nil || f.finite() {
		return p
	}
	const least = 0x1p-53
	return math.Min(math.Max(p, least), 1-least)
}

// morris returns r trajectories of k + 1 points on a grid of p levels. From point to point one factor
// moves by p/(2(p−1)).
//
// Source: M. D. Morris, Factorial sampling plans for preliminary computational experiments,
// Technometrics 33 (1991).
func morris(k, r, p int, random *rand.Rand) *mat.Dense {
	points := mat.NewDense(r*(k+1), k, nil)
	for t := range r {
		at := make([]int, k) // levels, so that equal values are the same numbers
		set := func(row int) {
			for j, level := range at {
				points.Set(row, j, float64(level)/float64(p-1))
			}
		}
		for j := range at { // from where the step leads up or down and stays inside
			at[j] = random.IntN(p/2) + p/2*random.IntN(2)
		}
		set(t * (k + 1))
		for i, j := range random.Perm(k) {
			at[j] = (at[j] + p/2) % p
			set(t*(k+1) + i + 1)
		}
	}
	return points
}

// saltelli returns, for each of n samples, a row of A, a row of B, and k rows of A with one column
// of B. A and B are independent samples.
//
// Source: A. Saltelli et al., Variance based sensitivity analysis of model output, Computer Physics
// Communications 181 (2010).
func saltelli(k, n int, source rand.Source) *mat.Dense {
	ab := mat.NewDense(n, 2*k, nil)
	samplemv.IID{Dist: distmv.NewUnitUniform(2*k, source)}.Sample(ab)
	points := mat.NewDense(n*(k+2), k, nil)
	for i := range n {
		a, b := ab.RawRowView(i)[:k], ab.RawRowView(i)[k:]
		points.SetRow(i*(k+2), a)
		points.SetRow(i*(k+2)+1, b)
		for j := range k {
			mixed := slices.Clone(a)
			mixed[j] = b[j]
			points.SetRow(i*(k+2)+2+j, mixed)
		}
	}
	return points
}
