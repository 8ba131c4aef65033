package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master"
)

// parse reads a plan; table are files beside it.
func parse(t *testing.T, text string, tables ...string) (*Plan, error) {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(tables); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, tables[i]), []byte(tables[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return Parse(filepath.Join(dir, "plan.yaml"), []byte(text), nil)
}

func mustParse(t *testing.T, text string, tables ...string) *Plan {
	t.Helper()
	p, err := parse(t, text, tables...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// function is an executor whose rows are a function of the values.
type function struct {
	plan *Plan
	of   func(x []float64) []float64
}

func (f function) Run(_ context.Context, variants []Variant, done func(Row) error) error {
	for _, v := range variants {
		x := make([]float64, len(v.Values))
		for i, text := range v.Values {
			x[i], _ = strconv.ParseFloat(text, 64)
		}
		r := f.plan.NoRow(v, OK, "")
		r.Collected = f.of(x)
		if r.Collected == nil {
			r = f.plan.NoRow(v, Crashed, "it crashed")
		}
		if err := done(r); err != nil {
			return err
		}
	}
	return nil
}

// report carries out a study of a function.
func report(t *testing.T, p *Plan, of func(x []float64) []float64) *Report {
	t.Helper()
	found, err := (&Study{Plan: p}).Run(t.Context(), function{p, of})
	if err != nil {
		t.Fatal(err)
	}
	return Summarise(p, found)
}

func TestGrid(t *testing.T) {
	p := mustParse(t, `
system: s.ssp
vary:
  a.x: linear(1, 2, 3)
  a.y: log(1, 100, 3)
  run.algorithm: [explicit, gauss-seidel]
collect: [final(a.z)]
`)
	v, err := p.Variants()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.x", "a.y", "run.algorithm"}; !slices.Equal(v.Names, want) {
		t.Errorf("%v", v.Names)
	}
	if len(v.List) != 18 || !slices.Equal(v.List[0].Values, []string{"1", "1", "explicit"}) || !slices.Equal(v.List[17].Values, []string{"2", "100", "gauss-seidel"}) {
		t.Errorf("%v", v.List)
	}
	if x, _ := strconv.ParseFloat(v.List[2].Values[1], 64); math.Abs(x-10) > 1e-12 {
		t.Errorf("the middle of a logarithmic range is %g", x)
	}
}

// Values of a list may have commas, brackets and quotes; a single quantity needs no list.
func TestTexts(t *testing.T) {
	p := mustParse(t, `{system: s, vary: {a.t: ["one, two", 'f(x)', 'g(', 'a "quote"', true]}, collect: final(a.z)}`)
	v, err := p.Variants()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range v.List {
		got = append(got, e.Values[0])
	}
	if want := []string{"one, two", "f(x)", "g(", `a "quote"`, "true"}; !slices.Equal(got, want) || p.Quantities[0].Name != "final(a.z)" {
		t.Errorf("%q, %v", got, p.Quantities[0].Name)
	}
}

// Quantiles are linear between the sorted values, the least at 0 and the greatest at 1; verdicts are counted.
func TestStatistics(t *testing.T) {
	p := mustParse(t, "{system: s, collect: [final(a.z)]}")
	for n, want := range map[int][3]float64{1: {0, 0, 0}, 2: {0.05, 0.5, 0.95}, 3: {0.1, 1, 1.9}, 4: {0.15, 1.5, 2.85}, 21: {1, 10, 19}} {
		f := &Findings{}
		for i := range n {
			r := p.NoRow(Variant{ID: i}, OK, "")
			r.Collected[0], r.Verdict = float64(n-1-i), master.ExpectationsMet
			f.Rows = append(f.Rows, r)
		}
		r := Summarise(p, f)
		got := r.Statistics[0]
		for i, q := range []Number{got.Q05, got.Median, got.Q95} {
			if math.Abs(float64(q)-want[i]) > 1e-12 {
				t.Errorf("%d values: %+v, want %v", n, got, want)
			}
		}
		if r.Verdicts[master.ExpectationsMet] != n || len(r.Verdicts) != 1 {
			t.Errorf("%v", r.Verdicts)
		}
	}
}

// The effect of a factor with text values is measured, too: if nothing else matters, its correlation ratio is 1.
func TestEffectOfTexts(t *testing.T) {
	p := mustParse(t, "{system: s, vary: {a.x: [1, 2, 3, 4], a.on: [\"false\", \"true\"]}, collect: [final(a.z)]}")
	f := &Findings{}
	variants, err := p.Variants()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variants.List {
		r := p.NoRow(v, OK, "")
		if r.Collected[0] = 0; v.Values[1] == "true" {
			r.Collected[0] = 5
		}
		f.Rows = append(f.Rows, r)
	}
	for _, e := range Summarise(p, f).Effects {
		if want := map[string][2]float64{"a.x": {0, -1}, "a.on": {-1, 1}}[e.Factor]; math.Abs(orMinus(e.Rank)-want[0])+math.Abs(orMinus(e.Ratio)-want[1]) > 1e-12 {
			t.Errorf("%s: rank correlation %g, ratio %g", e.Factor, e.Rank, e.Ratio)
		}
	}
}

// orMinus returns -1 for NaN.
func orMinus(n Number) float64 {
	if n != n {
		return -1
	}
	return float64(n)
}

// Names of variables have commas in their brackets.
func TestArguments(t *testing.T) {
	for text, want := range map[string][]string{
		"final(a.x)": {"a.x"}, "value(a.x[1,2], 3)": {"a.x[1,2]", "3"}, "value( a.der(x[1, 2]) ,3 )": {"a.der(x[1, 2])", "3"},
		"final()": {""}, "value(a,)": {"a", ""},
	} {
		if _, got, ok := splitCall(text); !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// One at a time begins with the system as it is.
func TestOneAtATime(t *testing.T) {
	p := mustParse(t, "{system: s, vary: {a.x: [1, 2], a.y: [3]}, design: one-at-a-time, collect: [final(a.z)]}")
	v, err := p.Variants()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range v.List {
		got = append(got, strings.Join(e.Values, "/"))
	}
	if want := []string{"/", "1/", "2/", "/3"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Each design that samples has the mean and the standard deviation of its distributions, and gives the
// same values to the same seed.
func TestSampling(t *testing.T) {
	const text = `
system: s
vary:
  a.u: uniform(2, 4)
  a.n: normal(10, 3)
  a.l: lognormal(0, 0.25)
  a.t: triangular(0, 1, 5)
  a.e: [0, 1]
design: %s
samples: 4000
seed: %d
collect: [final(a.z)]
`
	mean := []float64{3, 10, math.Exp(0.25 * 0.25 / 2), 2, 0.5}
	deviation := []float64{2 / math.Sqrt(12), 3, math.Exp(0.25*0.25/2) * math.Sqrt(math.Exp(0.25*0.25)-1), math.Sqrt((0 + 1 + 25 - 0 - 0 - 5) / 18.), 0.5}
	for _, design := range []string{DesignMonteCarlo, DesignLatinHypercube, DesignHalton} {
		v, err := mustParse(t, fmt.Sprintf(text, design, 7)).Variants()
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range mean {
			var x []float64
			for _, e := range v.List {
				n, err := strconv.ParseFloat(e.Values[i], 64)
				if err != nil {
					t.Fatal(err)
				}
				x = append(x, n)
			}
			got := describe("", rowsOf(x), 0)
			within := 4 * deviation[i] / math.Sqrt(float64(len(x))) // of independent samples; the others are better
			if math.Abs(float64(got.Mean)-want) > within || math.Abs(float64(got.Deviation)/deviation[i]-1) > 0.08 {
				t.Errorf("%s: factor %d: mean %g, want %g ± %g; deviation %g, want %g", design, i, got.Mean, want, within, got.Deviation, deviation[i])
			}
		}
		again, _ := mustParse(t, fmt.Sprintf(text, design, 7)).Variants()
		other, _ := mustParse(t, fmt.Sprintf(text, design, 8)).Variants()
		if !slices.Equal(v.List[17].Values, again.List[17].Values) || slices.Equal(v.List[17].Values, other.List[17].Values) {
			t.Errorf("%s: %v with a seed, %v with it again, %v with another", design, v.List[17], again.List[17], other.List[17])
		}
	}
}

func rowsOf(values []float64) (rows []Row) {
	for _, v := range values {
		rows = append(rows, Row{Collected: []float64{v}, Status: OK})
	}
	return rows
}

// A latin hypercube has one sample in each of N equal parts of every factor.
func TestLatinHypercube(t *testing.T) {
	v, err := mustParse(t, "{system: s, vary: {a.x: 'linear(0, 50)', a.y: 'linear(0, 50)'}, samples: 50, collect: [final(a.z)]}").Variants()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		seen := map[int]bool{}
		for _, e := range v.List {
			x, _ := strconv.ParseFloat(e.Values[i], 64)
			seen[int(x)] = true
		}
		if len(seen) != 50 {
			t.Errorf("factor %d: %d of 50 parts have a sample", i, len(seen))
		}
	}
}

// The model y = 3x₁ + 2x₂ + 0·x₃ with independent uniform factors on [0, 1] has the mean 2.5, the variance
// 13/12, and indices 9/13, 4/13 and 0, of first order and total.
func TestSobol(t *testing.T) {
	const text = "{system: s, vary: {a.x: 'linear(0, 1)', a.y: 'linear(0, 1)', a.z: 'linear(0, 1)'}, design: %s, samples: %d, seed: 3, collect: [final(a.w)]}"
	linear := func(x []float64) []float64 { return []float64{3*x[0] + 2*x[1]} }
	r := report(t, mustParse(t, fmt.Sprintf(text, DesignSaltelli, 2000)), linear)
	for i, want := range []float64{9. / 13, 4. / 13, 0} {
		s := r.Sobol[i]
		if math.Abs(float64(s.First)-want) > 3*float64(s.FirstError)+1e-12 || math.Abs(float64(s.Total)-want) > 3*float64(s.TotalError)+1e-12 || s.FirstError > 0.05 {
			t.Errorf("%+v, want %g", s, want)
		}
	}
	r = report(t, mustParse(t, fmt.Sprintf(text, DesignMonteCarlo, 2000)), linear)
	if s := r.Statistics[0]; math.Abs(float64(s.Mean)-2.5) > 3*float64(s.StandardError) || math.Abs(float64(s.Deviation)-math.Sqrt(13./12)) > 0.05 {
		t.Errorf("%+v", s)
	}
}

// Elementary effects of a linear model are its slopes over the whole range; a product spreads.
func TestMorris(t *testing.T) {
	p := mustParse(t, "{system: s, vary: {a.x: 'linear(0, 10)', a.y: 'log(1, 100)', a.z: 'linear(-1, 1)'}, design: morris, samples: 20, collect: [final(a.w)]}")
	r := report(t, p, func(x []float64) []float64 { return []float64{-2*x[0] + math.Log10(x[1]) + x[0]*x[2]} })
	want := []struct{ mu, within float64 }{{-20, 10}, {2, 1e-9}, {0, 30}}
	for i, e := range r.Morris {
		if math.Abs(float64(e.Mu)-want[i].mu) > want[i].within {
			t.Errorf("%+v, want %g", e, want[i].mu)
		}
	}
	for _, e := range r.Effects {
		if len(e.At) != 4 { // levels, without a second one that differs by rounding
			t.Errorf("%s has the levels %v", e.Factor, e.At)
		}
	}
	if r.Morris[1].Sigma > 1e-9 || r.Morris[0].Sigma < 1 {
		t.Errorf("%+v", r.Morris)
	}
	dropped := report(t, p, func(x []float64) []float64 {
		if x[0] == 10 {
			return nil
		}
		return []float64{x[0]}
	})
	if dropped.Dropped == 0 || dropped.Dropped == 20 || dropped.Statuses[Crashed] == 0 || dropped.Reasons[0].Text != "it crashed" {
		t.Errorf("%+v", dropped)
	}
}

// Quantities of a line, a parabola and a jump against their exact values.
func TestQuantities(t *testing.T) {
	times := []float64{0, 0.5, 1, 1, 2}
	values := []float64{0, 1, 2, 4, -4} // up with slope 2, a jump, down with slope 8
	exact := map[string]float64{
		"final(a.x)": -4, "minimum(a.x)": -4, "maximum(a.x)": 4, "time-of-minimum(a.x)": 2, "time-of-maximum(a.x)": 1,
		"integral(a.x)": 1, "mean(a.x)": 0.5, "rms(a.x)": math.Sqrt((4./3 + 16./3) / 2),
		"value(a.x, 0.25)": 0.5, "value(a.x, 1)": 4, "value(a.x, 1.25)": 2, "value(a.x, 2)": -4, "value(a.x, 3)": math.NaN(),
		"crossing(a.x, 1.5)": 0.75, "crossing(a.x, 0, down)": 1.5, "crossing(a.x, 5)": math.NaN(), "crossing(a.x, 3, up)": 1,
		"deviation(a.x, ref.csv)": math.Sqrt(2), "deviation(a.x, ref.csv, other)": math.NaN(),
	}
	for text, want := range exact {
		p := mustParse(t, "{system: s, collect: ['"+text+"']}", "ref.csv", "time,a.x,other\n0,2,0\n0.5,1,0\n3,,1\n")
		if got := p.Quantities[0].of(times, values); !(math.Abs(got-want) <= 1e-14 || math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s = %g, want %g", text, got, want)
		}
	}
}

// No quantity panics on values that are not finite, and those that do not depend on them are exact.
func TestQuantitiesNotFinite(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	times := []float64{0, 1, 2, 3, 4}
	for _, c := range []struct {
		values []float64
		exact  map[string]float64 // the others have no finite value
	}{
		{[]float64{inf, inf, 3, 1, 2}, map[string]float64{"final": 2, "minimum": 1, "time-of-minimum": 3, "time-of-maximum": 0,
			"value(a.x, 2)": 3, "value(a.x, 2.5)": 2, "crossing(a.x, 3)": 2, "crossing(a.x, 2)": 2.5}},
		{[]float64{3, 1, -inf, -1, inf}, map[string]float64{"time-of-minimum": 2, "time-of-maximum": 4,
			"value(a.x, 1)": 1, "value(a.x, 0.5)": 2, "value(a.x, 3)": -1, "crossing(a.x, 2)": 0.5, "crossing(a.x, 0)": 1, "crossing(a.x, -2, up)": 3}},
		{[]float64{3, nan, 1, 2, 4}, map[string]float64{"final": 4, "value(a.x, 2)": 1, "value(a.x, 2.5)": 1.5, "value(a.x, 0)": 3, "crossing(a.x, 1.5)": 2.5,
			"deviation(a.x, ref.csv)": 1}},
		{[]float64{nan, nan, nan, nan, nan}, nil},
	} {
		var all []string
		for name := range reductions {
			all = append(all, name)
		}
		for _, text := range slices.AppendSeq(all, maps.Keys(c.exact)) {
			want, known := c.exact[text]
			whole := text
			if !strings.HasSuffix(text, ")") {
				whole += "(a.x)"
			}
			p := mustParse(t, "{system: s, collect: ['"+whole+"']}", "ref.csv", "time,a.x\n2,0\n3,1\n")
			if got := p.Quantities[0].of(times, c.values); known && got != want || !known && got-got == 0 {
				t.Errorf("%s of %v = %g, want %g (known: %t)", whole, c.values, got, want, known)
			}
		}
	}
}

// cma-es finds the minimum of a narrow valley that is no axis of the factors, with every seed.
func TestCMAES(t *testing.T) {
	for seed := range 5 {
		p := mustParse(t, fmt.Sprintf("{system: s, seed: %d, vary: {a.x: 'linear(-1, 1)', a.y: 'linear(-1, 1)'}, optimise: {minimise: w, evaluations: 1500, method: cma-es}, "+
			"collect: {w: final(a.w)}}", seed))
		o := report(t, p, func(x []float64) []float64 {
			along, across := x[0]+x[1]-0.1, x[0]-x[1]-0.5
			return []float64{along*along + 1e4*across*across}
		}).Optimum
		if o.Goal > 1e-10 || o.Ended != "converged" {
			t.Errorf("seed %d: %g after %d runs: %s", seed, o.Goal, o.Runs, o.Ended)
		}
	}
}

// Each method finds the minimum of a function, also at the end of a range, and maximises, fits and
// counts its runs.
func TestOptimise(t *testing.T) {
	for _, method := range methods {
		p := mustParse(t, "{system: s, vary: {a.x: 'linear(-5, 5)', a.y: 'log(0.1, 100)', a.z: 'linear(0, 1)'}, optimise: {minimise: w, evaluations: 3000, method: "+method+"}, collect: {w: final(a.w)}}")
		bowl := func(x []float64) []float64 {
			return []float64{(x[0]-1.5)*(x[0]-1.5) + math.Pow(math.Log(x[1]/3), 2) + x[2]}
		}
		o := report(t, p, bowl).Optimum
		x, _ := strconv.ParseFloat(o.Values[0], 64)
		y, _ := strconv.ParseFloat(o.Values[1], 64)
		z, _ := strconv.ParseFloat(o.Values[2], 64)
		if math.Abs(x-1.5) > 1e-3 || math.Abs(y-3) > 1e-2 || z > 1e-3 || o.Runs > 3000 {
			t.Errorf("%s: %v after %d runs: %s", method, o.Values, o.Runs, o.Ended)
		}
		p.Optimise.Maximise = true
		top := report(t, p, func(x []float64) []float64 { return []float64{4 - bowl(x)[0]} }).Optimum
		if math.Abs(top.Goal-4) > 1e-2 {
			t.Errorf("%s: the greatest value is %g, want 4", method, top.Goal)
		}
	}
}

// Runs that fail are no minimum, and bounds on evaluations hold.
func TestOptimiseAroundFailures(t *testing.T) {
	for _, method := range methods {
		p := mustParse(t, "{system: s, vary: {a.x: 'linear(-1, 1)'}, optimise: {minimise: w, evaluations: 40, method: "+method+"}, collect: {w: final(a.w)}}")
		o := report(t, p, func(x []float64) []float64 {
			if x[0] < -0.5 {
				return nil
			}
			return []float64{x[0]}
		}).Optimum
		if x, _ := strconv.ParseFloat(o.Values[0], 64); x < -0.5 || x > 0.1 || o.Runs > 50 {
			t.Errorf("%s: %v after %d runs", method, o.Values, o.Runs)
		}
	}
}

// The runs whose errors are measured: the best, the worst, then others, of those that are ok.
func TestChecked(t *testing.T) {
	for plan, want := range map[string]string{
		"vary: {a.x: [1, 3, 0, 2]}, check: 1":                                            "1 smallest",
		"vary: {a.x: [1, 3, 0, 2]}, check: 2":                                            "1 smallest, 2 largest",
		"vary: {a.x: [1, 3, 0, 2]}, check: 9":                                            "1 smallest, 2 largest, 0 random",
		"vary: {a.x: [1, 1]}, check: 2":                                                  "0 smallest, 1 random",
		"vary: {a.x: [2]}, check: 2":                                                     "",
		"vary: {a.x: 'linear(0, 1)'}, optimise: {maximise: w, evaluations: 4}, check: 2": "best, worst",
	} {
		r := report(t, mustParse(t, "{system: s, "+plan+", collect: {w: final(a.w)}}"), func(x []float64) []float64 {
			if x[0] == 2 {
				return nil
			}
			return []float64{-x[0]}
		})
		var got []string
		for _, c := range r.Checks {
			if r.Optimum == nil {
				got = append(got, fmt.Sprint(c.Run, " ", c.Why))
			} else if got = append(got, c.Why); (c.Run == r.Optimum.ID) != (c.Why == "best") {
				t.Errorf("run %d is the %s one, and run %d the optimum", c.Run, c.Why, r.Optimum.ID)
			}
			if c.Error == nil || c.Error.Worst != nil {
				t.Errorf("run %d: %+v", c.Run, c.Error)
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", plan, text, want)
		}
	}
}

// A value v = 1 + c Hᵖ is found to converge with order p.
func TestConvergence(t *testing.T) {
	for order := 1; order <= 3; order++ {
		p := mustParse(t, fmt.Sprintf("{system: s, run: {param: {order: %d}}, convergence: {of: v, from: 0.1, most: 30}, collect: {v: final(a.v), w: final(a.w)}}",
			order-1))
		r := report(t, p, func(x []float64) []float64 { return []float64{1 + 3*math.Pow(x[0], float64(order)), 0} })
		s := r.Settled[0]
		n := len(s.Orders) - 1
		if len(r.Settled) != 1 || !s.Settled || math.Abs(float64(s.Orders[n])-float64(order)) > 1e-3 || math.Abs(float64(s.Changes[n])) > 1e-4 || math.Abs(float64(s.Changes[n-1])) < 1e-4 {
			t.Errorf("order %d: %+v", order, s)
		}
	}
}

// A quantity on which another algorithm does not agree is undecided.
func TestConvergenceCompared(t *testing.T) {
	for off, settled := range map[float64]bool{1e-4: true, 1e-3: false} {
		p := mustParse(t, "{system: s, convergence: {of: v, from: 0.1, most: 30}, collect: {v: final(a.v)}}")
		runs := 0
		s := report(t, p, func(x []float64) []float64 {
			v := 1 + 0.1*x[0]
			if runs++; runs == 9 {
				v += off
			}
			return []float64{v}
		}).Settled[0]
		if len(s.Values) != 8 || s.Settled != settled || s.OtherBy != "implicit" || settled == strings.Contains(s.State(), "undecided: with implicit") {
			t.Errorf("%g: %q after %d runs", off, s.State(), len(s.Values))
		}
	}
}

// One quantity that never settles does not spare the others the comparison.
func TestConvergenceOfSeveral(t *testing.T) {
	p := mustParse(t, "{system: s, convergence: {of: [v, w], from: 0.1, most: 5, tolerance: 0.1}, collect: {v: final(a.v), w: final(a.w)}}")
	runs := 0
	r := report(t, p, func(x []float64) []float64 {
		if runs++; runs == 6 {
			return []float64{2, 0}
		}
		return []float64{1 + 0.1*x[0], math.Pow(-1, float64(runs))}
	}).Settled
	if runs != 6 || r[0].Settled || !strings.Contains(r[0].State(), "with implicit") || r[1].State() != "not settled" {
		t.Errorf("%d runs: %q and %q", runs, r[0].State(), r[1].State())
	}
}

// A small change does not suffice: the order must be possible, and some change must be left.
func TestConvergenceUndecided(t *testing.T) {
	for want, f := range map[string]func(H float64) float64{
		"changes nothing":        func(H float64) float64 { return 2 },
		"the observed order, -":  func(H float64) float64 { return 1 + 1e-7/math.Sqrt(H) },
		"the observed order, 5,": func(H float64) float64 { return 1 + 1e-3*math.Pow(H, 5) },
		"a small change may be":  func(H float64) float64 { return 1 + 1e-6*H },
	} {
		most := map[bool]int{true: 2, false: 5}[strings.HasPrefix(want, "a small")]
		p := mustParse(t, fmt.Sprintf("{system: s, convergence: {of: v, from: 0.1, most: %d}, collect: {v: final(a.v)}}", most))
		s := report(t, p, func(x []float64) []float64 { return []float64{f(x[0])} }).Settled[0]
		if s.Settled || len(s.Values) != most || !strings.Contains(s.State(), "undecided: "+map[bool]string{true: "the last run "}[want == "changes nothing"]+want) {
			t.Errorf("%q: %q after %d runs", want, s.State(), len(s.Values))
		}
	}
}

// What is wrong with a plan is said with its line and a remedy, all at once.
func TestPlanErrors(t *testing.T) {
	for _, c := range []struct{ plan, want string }{
		{"", "the file is empty"},
		{"[1]", "line 1"},
		{"{system: s, colect: [final(a.x)]}", `line 1: there is no key "colect"; did you mean "collect"?`},
		{"{system: s}", "nothing is collected"},
		{"{collect: [final(a.x)]}", "system is missing"},
		{"system: s\ncollect: [top(a.x)]", `plan.yaml:2: top(a.x): there is no quantity "top"`},
		{"{system: s, collect: [final(a.x), final(a.x)]}", "is used twice"},
		{"{system: s, collect: {status: final(a.x)}}", "is used twice"},
		{"{system: s, collect: ['crossing(a.x)']}", "give crossing(VARIABLE, LEVEL)"},
		{"{system: s, collect: ['value(a.x, soon)']}", `"soon" is no time`},
		{"{system: s, collect: ['deviation(a.x, none.csv)']}", "none.csv"},
		{"{system: s, vary: {a.x: 'linear(2, 1)'}, collect: [final(a.x)]}", "TO = 1 is not above FROM = 2"},
		{"{system: s, vary: {a.x: 'log(0, 1)'}, collect: [final(a.x)]}", "above 0"},
		{"{system: s, vary: {a.x: 'normal(0, 0)'}, collect: [final(a.x)]}", "SIGMA is not above 0"},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, collect: [final(a.x)]}", "has no number of points"},
		{"{system: s, vary: {a.x: 'normal(0, 1)'}, design: morris, samples: 3, collect: [final(a.x)]}", "moves factors between two ends"},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, design: sobol, samples: 3, collect: [final(a.x)]}", `there is no design "sobol"; did you mean "saltelli"?`},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, design: latin hypercube, samples: 3, collect: [final(a.x)]}", `did you mean "latin-hypercube"?`},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, design: best, samples: 3, collect: [final(a.x)]}", `there is no design "best"; there are grid, `},
		{"{system: s, vary: {a.x: 'gauss(0, 1)'}, samples: 3, collect: [final(a.x)]}", `there is no "gauss"; did you mean "normal"?`},
		{"{system: s, collect: [mean(a.x)], keep: fail}", `keep: there is no choice "fail"; did you mean "failed"?`},
		{"{system: s, collect: [max(a.x)]}", `there is no quantity "max"; did you mean "maximum"?`},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, design: halton, collect: [final(a.x)]}", "halton needs samples"},
		{"{system: s, vary: {run.output: [a, b]}, collect: [final(a.x)]}", `the setting "output" cannot vary`},
		{"{system: s, run: {checkpoint: c}, collect: [final(a.x)]}", "--checkpoint does not apply"},
		{"{system: s, vary: {a.x: [1, 2]}, optimise: {minimise: y}, collect: {y: final(a.x)}}", "is a list; give a range"},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, optimise: {minimise: z}, collect: {y: final(a.x)}}", `"z" is not collected`},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, optimise: {minimise: y, maximise: y}, collect: {y: final(a.x)}}", "give one of minimise"},
		{"{system: s, convergence: {of: y, setting: stop-time}, collect: {y: final(a.x)}}", "none that becomes smaller"},
		{"{system: s, design: table, collect: [final(a.x)]}", "needs table"},
		{"{system: s, time-limit: 5, collect: [final(a.x)]}", "write for example 30s"},
		{"{system: s, samples: some, collect: [final(a.x)]}", "not a whole number"},
		{"{system: s, vary: {a.x: linear(0, 1)}, collect: [final(a.x)]}", `"linear(0" has no closing bracket`},
		{"{system: s, vary: {a.x: 'log(1, 2'}, collect: [final(a.x)]}", `"log(1, 2" has no closing bracket`},
		{"{system: s, vary: {a.x: []}, collect: [final(a.x)]}", "the list is empty"},
		{"{system: s, vary: {a.x: [[1]]}, collect: [final(a.x)]}", "a list has single values"},
		{"{system: s, vary: {a.x: {b: 1}}, collect: [final(a.x)]}", "a list has single values"},
		{"{system: s, vary: {step-size: [1]}, collect: [final(a.x)]}", "write run.step-size"},
		{"{system: s, collect: {x: 'value(a.x, 2'}}", `"value(a.x, 2" has no closing bracket`},
		{"{system: s, vary: {a.x: [1]}, design: grid, samples: 3, collect: [final(a.x)]}", "the design grid has none"},
		{"{system: s, vary: {a.x: 'linear(0, 1)'}, samples: 3, levels: 4, collect: [final(a.x)]}", "only the design morris has levels"},
		{"{system: s, keep: some, collect: [final(a.x)]}", `there is no choice "some"`},
	} {
		if _, err := parse(t, c.plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n\tgives %v\n\twant %s", c.plan, err, c.want)
		}
	}
}

// All files of a study are on the disk before the one that makes it a study. Rows are soon after they were added, but not one
// by one; an error of that is one of the study.
func TestFolderSyncs(t *testing.T) {
	var mu sync.Mutex
	var synced []string
	rows, times, broken := 0, 0, error(nil)
	file, every := syncFile, syncEvery
	defer func() { syncFile, syncEvery = file, every }()
	syncFile = func(f *os.File) error {
		mu.Lock()
		defer mu.Unlock()
		data, _ := os.ReadFile(f.Name())
		if name := filepath.Base(f.Name()); name == ResultsFile {
			rows, times = bytes.Count(data, []byte("\n"))-1, times+1
		} else if len(data) > 0 {
			synced = append(synced, strings.TrimSuffix(name, ".partial"))
		}
		return broken
	}
	syncEvery = 20 * time.Millisecond
	text := "{system: s, vary: {a.x: 'linear(1, 300, 300)'}, collect: {y: final(a.y)}}"
	p := mustParse(t, text, "table.csv", "x\n1\n")
	f, err := Create(filepath.Join(t.TempDir(), "study"), p, []byte(text), &Inspection{Files: []string{filepath.Join(filepath.Dir(p.Path), "table.csv")}})
	if want := []string{"table.csv", "plan.yaml", VariantsFile, folderIndex}; err != nil || !slices.Equal(synced, want) {
		t.Fatalf("%v; synced %q, want %q", err, synced, want)
	}
	design, err := p.Variants()
	if err != nil {
		t.Fatal(err)
	}
	add := func(k int) error { return f.Add(p.NoRow(design.List[k], OK, "")) }
	// syncs waits for n rows on the disk, and returns how often they were synced until then.
	syncs := func(n int) int {
		for {
			mu.Lock()
			have, syncs := rows, times
			mu.Unlock()
			if have >= n {
				return syncs
			}
			time.Sleep(time.Millisecond)
		}
	}
	began := time.Now()
	for k := range 200 {
		if err := add(k); err != nil {
			t.Fatal(err)
		}
	}
	if n, most := syncs(200), int(time.Since(began)/syncEvery)+1; n > most {
		t.Errorf("synced %d times, want at most %d", n, most)
	}
	if err := add(200); err != nil { // after a pause, too
		t.Fatal(err)
	}
	syncs(201)
	mu.Lock()
	broken = errors.New("the disk is full")
	mu.Unlock()
	for k := 201; err == nil && k < 300; k++ {
		err = add(k)
		time.Sleep(time.Millisecond)
	}
	if err = errors.Join(err, f.Close()); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("%v", err)
	}
}

// A folder keeps rows with all kinds of texts, drops a last row that breaks off, and continues with the runs
// that are missing.
func TestFolder(t *testing.T) {
	text := "{system: s, vary: {a.x: 'linear(1, 5, 5)', a.t: ['q\"uote', ' blank']}, collect: {y: final(a.y)}}"
	p := mustParse(t, text)
	path := filepath.Join(t.TempDir(), "study")
	f, err := Create(path, p, []byte(text), &Inspection{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(path, ReadWrite); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := Create(path, p, []byte(text), &Inspection{}); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("made twice: %v", err)
	}
	broken := errors.New("enough")
	seen := 0
	stops := func(x []float64) []float64 {
		if x[0] == 2 {
			return nil
		}
		return []float64{x[0] / 3}
	}
	s := &Study{Plan: f.Plan, Folder: f, Events: func(Event) { seen++ }}
	_, err = s.Run(t.Context(), executor(func(ctx context.Context, v []Variant, done func(Row) error) error {
		if err := (function{f.Plan, stops}).Run(ctx, v[:7], done); err != nil {
			return err
		}
		return broken
	}))
	if !errors.Is(err, broken) || seen != 7 {
		t.Errorf("%d rows, %v", seen, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(path, ResultsFile)
	whole, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{"", "7,4,\"q", "7,4,\"q\"\"uote\n", "7"} {
		if err := os.WriteFile(results, append(slices.Clone(whole), torn...), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFolder(path, ReadWrite)
		if err != nil {
			t.Fatalf("%q: %v", torn, err)
		}
		if n := len(f.Rows()); n != 7 {
			t.Errorf("%q: %d rows", torn, n)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if f, err = OpenFolder(path, ReadWrite); err != nil {
		t.Fatal(err)
	}
	made := 0
	found, err := (&Study{Plan: f.Plan, Folder: f}).Run(t.Context(), executor(func(ctx context.Context, v []Variant, done func(Row) error) error {
		made += len(v)
		slices.Reverse(v)
		return function{f.Plan, stops}.Run(ctx, v, done)
	}))
	if err != nil || made != 3 || len(found.Rows) != 10 {
		t.Errorf("%d runs, %d rows, %v", made, len(found.Rows), err)
	}
	if err := errors.Join(f.Sort(), f.Close()); err != nil {
		t.Fatal(err)
	}
	table, err := readTable(results)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range table.Rows {
		if row[0] != fmt.Sprint(i) || (row[4] == "crashed") != (i == 2 || i == 3) || row[2] != []string{"q\"uote", " blank"}[i%2] {
			t.Errorf("row %d: %q", i, row)
		}
	}
	if err := Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(path, ReadWrite); err == nil || !strings.Contains(err.Error(), "holds no study") {
		t.Errorf("removed: %v", err)
	}
}

// A study leaves files alone that are not of a study, and completes a folder that was begun.
func TestFolderOfOthers(t *testing.T) {
	text := "{system: s, vary: {a.x: [1, 2]}, collect: {y: final(a.y)}}"
	p := mustParse(t, text)
	path := t.TempDir()
	own := filepath.Join(path, ResultsFile)
	if err := os.WriteFile(own, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Create(path, p, []byte(text), &Inspection{}); err == nil || !strings.Contains(err.Error(), "not of a study") {
			t.Errorf("%v", err)
		}
		if err := Remove(path); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(path)
		if data, _ := os.ReadFile(own); err != nil || string(data) != "mine" || len(entries) != 1 {
			t.Errorf("%v, %v, %q", entries, err, data)
		}
	}
	begun := t.TempDir()
	if _, err := Create(begun, p, []byte(text), &Inspection{Files: []string{filepath.Join(path, "missing.ssp")}}); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	f, err := Create(begun, p, []byte(text), &Inspection{Files: []string{own}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

type executor func(ctx context.Context, v []Variant, done func(Row) error) error

func (e executor) Run(ctx context.Context, v []Variant, done func(Row) error) error {
	return e(ctx, v, done)
}

// A folder has copies of all files at the same places to each other, and its plan reads those.
func TestFolderFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/ref.csv", "b/c/s.ssp", "b/t.csv"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("time,a.x\n0,1\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf("{system: ../b/c/s.ssp, run: {input: '%s'}, collect: ['deviation(a.x, ref.csv)']}", filepath.Join(dir, "b", "t.csv"))
	p, err := Parse(filepath.Join(dir, "a", "plan.yaml"), []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "study")
	f, err := Create(path, p, []byte(text), &Inspection{Files: []string{filepath.Join(dir, "a/ref.csv"), filepath.Join(dir, "b/c/s.ssp"), filepath.Join(dir, "b/t.csv")}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err = OpenFolder(path, ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{f.Plan.System, f.Plan.Run[0].Value} {
		if _, err := os.Stat(file); err != nil || !strings.HasPrefix(file, path) {
			t.Errorf("%s: %v", file, err)
		}
	}
	all, err := FilesOf(path)
	if want := []string{"study.json", "files/a/plan.yaml", "files/a/ref.csv", "files/b/c/s.ssp", "files/b/t.csv"}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%q, %v", all, err)
	}
}
