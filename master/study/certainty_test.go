package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// formula computes the variables c.y1, c.y2 … at time t from the factors.
type formula func(t float64, x []float64) []float64

// formulaRuns makes runs of a formula with points at 0, 0.1 … 10 s.
type formulaRuns struct {
	plan *Plan
	f    formula
}

func (f formulaRuns) Run(_ context.Context, variants []Variant, done func(Row) error) error {
	for _, v := range variants {
		if err := done(f.row(v)); err != nil {
			return err
		}
	}
	return nil
}

func (f formulaRuns) row(v Variant) Row {
	x := make([]float64, len(v.Values))
	for j := range x {
		x[j], _ = strconv.ParseFloat(v.Values[j], 64)
	}
	row := f.plan.NoRow(v, OK, "")
	var times []float64
	columns := map[string][]float64{}
	for n := range 101 {
		t := float64(n) / 10
		times = append(times, t)
		for k, y := range f.f(t, x) {
			name := fmt.Sprintf("c.y%d", k+1)
			columns[name] = append(columns[name], y)
		}
	}
	for i := range f.plan.Quantities {
		q := &f.plan.Quantities[i]
		row.Collected[i] = q.of(times, columns[q.Variable])
		if v.Samples {
			row.Curves = append(row.Curves, q.curve(times, columns[q.Variable]))
		}
	}
	return row
}

// fitted returns the outcome of a fit of f to its values at x with normal errors; sigma [columns].
func fitted(t *testing.T, f formula, vary string, x []float64, sigma []float64, random *rand.Rand) *Findings {
	t.Helper()
	var table strings.Builder
	table.WriteString("time")
	for k := range sigma {
		fmt.Fprintf(&table, ",c.y%d", k+1)
	}
	for n := range 101 {
		at := float64(n) / 10
		fmt.Fprintf(&table, "\n%g", at)
		for k, y := range f(at, x) {
			fmt.Fprintf(&table, ",%.17g", y+sigma[k]*random.NormFloat64())
		}
	}
	p := mustParse(t, "system: s.ssp\nvary: {"+vary+"}\noptimise: {fit: m.csv}\n", "m.csv", table.String()+"\n")
	s := Study{Plan: p}
	out, err := s.Run(t.Context(), formulaRuns{p, f})
	if err != nil {
		t.Fatal(err)
	}
	if out.Fit == nil || out.Fit.Unknown != "" {
		t.Fatalf("%+v", out.Fit)
	}
	return out
}

// In fits to data with normal errors, the 95 % intervals contain the true values in nearly 95 % of cases, also if columns have
// errors of different size, and on a logarithmic scale.
func TestIntervals(t *testing.T) {
	const fits = 200
	random := rand.New(rand.NewPCG(1, 2))
	decay := formula(func(t float64, x []float64) []float64 {
		return []float64{x[0] * math.Exp(-x[1]*t), x[0] * x[1] * t}
	})
	x, inside := []float64{2, 0.3}, [2]int{}
	for range fits {
		out := fitted(t, decay, "c.a: 'linear(1, 4)', c.b: 'log(0.1, 1)'", x, []float64{0.05, 0.8}, random)
		for j, p := range out.Fit.Parameters {
			if float64(p.Low) <= x[j] && x[j] <= float64(p.High) {
				inside[j]++
			}
		}
	}
	for j, n := range inside {
		if n < 0.9*fits || n > 0.99*fits {
			t.Errorf("the true value of factor %d is in %d of %d intervals", j, n, fits)
		}
	}
}

// A model that does not follow its measurements has no standard errors.
func TestHopelessFit(t *testing.T) {
	p := mustParse(t, "system: s.ssp\nvary: {c.a: 'linear(100, 200)'}\noptimise: {fit: m.csv}\n", "m.csv", "time,c.y1\n0,0\n1,1\n2,0\n3,1\n")
	s := Study{Plan: p}
	out, err := s.Run(t.Context(), formulaRuns{p, func(_ float64, x []float64) []float64 { return x[:1] }})
	if err != nil || !strings.Contains(out.Fit.Unknown, "does not follow them") || out.Fit.Parameters[0].StandardError == out.Fit.Parameters[0].StandardError {
		t.Errorf("%v, %+v", err, out.Fit)
	}
}

// Standard error and correlation of a line y = a + b t are those of linear regression.
func TestLinearRegression(t *testing.T) {
	line := formula(func(t float64, x []float64) []float64 { return []float64{x[0] + x[1]*t} })
	out := fitted(t, line, "c.a: 'linear(-2, 2)', c.b: 'linear(0, 3)'", []float64{0.5, 1}, []float64{0.1}, rand.New(rand.NewPCG(3, 4)))
	n, mean, sxx := 101.0, 5.0, 0.0
	for k := range 101 {
		sxx += math.Pow(float64(k)/10-mean, 2)
	}
	d := float64(out.Fit.Columns[0].Deviation)
	s := math.Sqrt(d * d * n / (n - 2))
	for j, want := range []float64{s * math.Sqrt(1/n+mean*mean/sxx), s / math.Sqrt(sxx)} {
		if got := float64(out.Fit.Parameters[j].StandardError); math.Abs(got-want) > 1e-4*want {
			t.Errorf("standard error %g, want %g", got, want)
		}
	}
	if got, want := float64(out.Fit.Correlations[0][1]), -mean/math.Sqrt(sxx/n+mean*mean); math.Abs(got-want) > 1e-4 {
		t.Errorf("correlation %g, want %g", got, want)
	}
}

// A fit names what its measurements do not determine, and what makes its standard errors too small.
func TestUndetermined(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, test := range []struct {
		name       string
		f          formula
		vary       string
		x, sigma   []float64
		want       string
		determined []bool
	}{
		{"product", func(t float64, x []float64) []float64 { return []float64{x[0]*x[1]*t + x[2]*t*t} },
			"c.a: 'linear(1, 3)', c.b: 'log(1, 10)', c.d: 'linear(0, 2)'", []float64{2, 3, 1}, []float64{0.1},
			"do not determine c.a and c.b separately: raise c.a by 1 %, lower c.b by 1 %", []bool{false, false, true}},
		{"product without errors", func(t float64, x []float64) []float64 { return []float64{math.Sin(x[0] * x[1] * t)} },
			"c.a: 'linear(0.1, 1)', c.b: 'log(0.5, 2)'", []float64{0.5, 1.2}, []float64{0},
			"do not determine c.a and c.b separately", []bool{false, false}},
		{"no effect", func(t float64, x []float64) []float64 { return []float64{x[0] * t} },
			"c.a: 'linear(1, 3)', c.b: 'linear(1, 3)'", []float64{2, 2}, []float64{0.1},
			"do not determine c.b: it does not affect them", []bool{true, false}},
		{"little effect", func(t float64, x []float64) []float64 { return []float64{x[0]*t + 1e-3*x[1]*math.Sin(t)} },
			"c.a: 'linear(1, 3)', c.b: 'linear(1, 3)'", []float64{2, 2}, []float64{0.1},
			"hardly determine c.b: its 95 % interval is wider than its range", []bool{true, true}},
		{"nearly the same", func(t float64, x []float64) []float64 { return []float64{x[0]*t + x[1]*(t+0.1*math.Sin(t))} },
			"c.a: 'linear(-9, 9)', c.b: 'linear(-9, 9)'", []float64{2, 2}, []float64{0.1},
			"determine c.a and c.b only together", []bool{true, true}},
		{"end of the range", func(t float64, x []float64) []float64 { return []float64{x[0] * t} },
			"c.a: 'linear(1, 2)'", []float64{2.5}, []float64{0.1},
			"is the end of its range", []bool{true}},
		{"another model", func(t float64, x []float64) []float64 {
			if len(x) > 1 {
				return []float64{x[0]*t + math.Sin(t)}
			}
			return []float64{x[0] * t}
		}, "c.a: 'linear(1, 3)'", []float64{2, 0}, []float64{0.1}, "are not random", []bool{true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := fitted(t, test.f, test.vary, test.x, test.sigma, random)
			if all := strings.Join(out.Fit.Warnings, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("%q, want %q", all, test.want)
			}
			for j, p := range out.Fit.Parameters {
				if e := p.StandardError; (e == e) != test.determined[j] {
					t.Errorf("the standard error of %s is %g", p.Factor, e)
				}
			}
		})
	}
}
