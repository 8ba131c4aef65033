package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Certainty is how well the measurements of a fit determine its factors, by the Jacobian of the fitted variables at the
// best run. It holds for a model that is right, with independent errors of the measurements.
type Certainty struct {
	Parameters []Parameter `json:"parameters"`
	// Correlations of the estimates, [parameter][parameter]; null = one of the two is not determined.
	Correlations [][]Number     `json:"correlations"`
	Columns      []FittedColumn `json:"columns"`
	Warnings     []string       `json:"warnings,omitempty"`
	Unknown      string         `json:"unknown,omitempty"` // why there are no standard errors
}

// Parameter is the estimate of a factor.
type Parameter struct {
	Factor        string `json:"factor"`
	Value         Number `json:"value"`
	StandardError Number `json:"standard_error"` // null = unknown, or the measurements do not determine the factor
	// Low and High bound the 95 % interval, by Student's distribution; of a factor on a logarithmic scale, for its logarithm.
	Low  Number `json:"low"`
	High Number `json:"high"`
}

// Texts returns value, standard error and interval with the digits that the standard error justifies.
func (p *Parameter) Texts() (value, standardError, interval string) {
	v, e := float64(p.Value), float64(p.StandardError)
	if e != e {
		return strconv.FormatFloat(v, 'g', 6, 64), "–", "–"
	}
	text := func(v float64) string {
		n := 10 // at most
		if e > 0 && v != 0 {
			n = min(n, max(1, int(math.Floor(math.Log10(math.Abs(v)))-math.Floor(math.Log10(e)))+2))
		}
		return strconv.FormatFloat(v, 'g', n, 64)
	}
	return text(v), strconv.FormatFloat(e, 'g', 2, 64), text(float64(p.Low)) + " to " + text(float64(p.High))
}

// FittedColumn compares a column of measurements with the best run. Of long columns it has points at equal distances.
type FittedColumn struct {
	Variable  string    `json:"variable"`
	Deviation Number    `json:"deviation"` // root mean square of fitted − measured
	Range     Number    `json:"range"`     // of the measurements
	Time      []float64 `json:"time"`      // s
	Measured  []float64 `json:"measured"`
	Fitted    []float64 `json:"fitted"`
}

const (
	mostFitted    = 5000 // points of a column
	fitStep       = 0.01 // of a factor, for differences, relative to the width of its range
	noEffect      = 1e-7 // change of the fit over the width of a factor, relative to the ranges of the measurements
	collinear     = 2e-3 // smallest singular value of the Jacobian with columns of length 1; its differences err by less
	takesPart     = 0.05 // component of a unit vector
	onlyTogether  = 0.98 // correlation of two estimates
	notRandom     = 0.3  // correlation of neighbouring residuals
	exactFit      = 1e-6 // deviation relative to the range
	intervalShare = 0.95
)

// certainty evaluates the Jacobian at the best run of a fit.
func (s *Study) certainty(ctx context.Context, exec Executor, best *Optimum) (*Certainty, error) {
	p := s.Plan
	f := &fitting{plan: p, at: make([]float64, len(p.Factors)), out: &Certainty{}}
	variants := f.variants(best)
	rows, done := make([]Row, len(variants)), 0
	tell := func() {
		if s.Events != nil {
			s.Events(Event{Extra: "computing standard errors", Done: done, Of: len(variants)})
		}
	}
	tell()
	err := exec.Run(ctx, variants, func(r Row) error {
		rows[slices.IndexFunc(variants, func(v Variant) bool { return v.ID == r.ID })] = r
		done++
		tell()
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.evaluate(best, rows)
	return f.out, nil
}

// fitting evaluates a fit. Factors are measured in units of the width of their ranges.
type fitting struct {
	plan   *Plan
	at     []float64    // values of the factors
	points [][3]float64 // of each factor, with three runs: the best, and those of the two variants
	scale  []float64    // width of each factor at its value
	out    *Certainty
}

// variants returns the best run and two for each factor, beside it or, at an end of the range, inside of it.
func (f *fitting) variants(best *Optimum) []Variant {
	list := []Variant{{ID: ^best.Runs, Values: best.Values, Samples: true}}
	f.points, f.scale = make([][3]float64, len(f.at)), make([]float64, len(f.at))
	for j := range f.at {
		factor := &f.plan.Factors[j]
		f.at[j], _ = strconv.ParseFloat(best.Values[j], 64) // as formatNumber wrote it
		f.out.Parameters = append(f.out.Parameters, Parameter{Factor: factor.Name, Value: Number(f.at[j]),
			StandardError: Number(math.NaN()), Low: Number(math.NaN()), High: Number(math.NaN())})
		low, high := factor.quantile(0.1), factor.quantile(0.9)
		by := func(steps float64) float64 {
			if factor.Log {
				return f.at[j] * math.Pow(high/low, steps*fitStep)
			}
			return f.at[j] + steps*fitStep*(high-low)
		}
		steps := [2]float64{-1, 1}
		switch {
		case by(1) > factor.High:
			steps = [2]float64{-1, -2}
		case by(-1) < factor.Low:
			steps = [2]float64{1, 2}
		}
		f.points[j] = [3]float64{f.at[j], by(steps[0]), by(steps[1])}
		f.scale[j] = math.Abs(f.points[j][2]-f.points[j][1]) / (fitStep * math.Abs(steps[1]-steps[0]))
		for _, x := range f.points[j][1:] {
			v := Variant{ID: ^(best.Runs + len(list)), Values: slices.Clone(best.Values), Samples: true}
			v.Values[j] = formatNumber(x)
			list = append(list, v)
		}
	}
	return list
}

// evaluate computes the estimates from the rows of the variants.
func (f *fitting) evaluate(best *Optimum, rows []Row) {
	for k := range rows {
		if rows[k].Status != OK || len(rows[k].Curves) != len(f.plan.Optimise.Fit) {
			f.out.Unknown = fmt.Sprintf("a run beside the best one, with %s, is not ok: %s", f.named(rows[k].Values), rows[k].Reason)
			return
		}
	}
	n, total := len(f.at), 0
	// With the scaled Jacobian K of a column, w = 1/(points · range²) and the variance σ² of its errors: Σ w KᵀK, Σ w² σ² KᵀK.
	a, b := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	slope := mat.NewVecDense(n, nil)
	var columns []*mat.SymDense // w KᵀK of each
	var errors []float64        // mean square of fitted − measured, of each
	var counts []int
	for c, fit := range f.plan.Optimise.Fit {
		q, _ := f.plan.quantity(fit.Quantity)
		quantity := &f.plan.Quantities[q]
		stride := thinned(len(quantity.times))
		out := FittedColumn{Variable: quantity.Variable, Deviation: Number(best.Collected[q]), Range: Number(fit.Scale), Fitted: rows[0].Curves[c]}
		for i := 0; i < len(quantity.times); i += stride {
			out.Time, out.Measured = append(out.Time, quantity.times[i]), append(out.Measured, quantity.values[i])
		}
		f.out.Columns = append(f.out.Columns, out)
		m := len(out.Time)
		K := mat.NewDense(m, n, nil)
		r := mat.NewVecDense(m, nil)
		for i := range m {
			r.SetVec(i, out.Fitted[i]-out.Measured[i])
			for j := range n {
				K.Set(i, j, f.scale[j]*slopeOf(f.points[j], [3]float64{out.Fitted[i], rows[1+2*j].Curves[c][i], rows[2+2*j].Curves[c][i]}))
			}
		}
		w := 1 / (float64(m) * fit.Scale * fit.Scale)
		var kk mat.SymDense
		kk.SymOuterK(w, K.T())
		a.AddSym(a, &kk)
		columns = append(columns, &kk)
		var g mat.VecDense
		g.MulVec(K.T(), r)
		slope.AddScaledVec(slope, w, &g)
		errors = append(errors, mat.Dot(r, r)/float64(m))
		counts = append(counts, len(quantity.times))
		total += len(quantity.times)
		f.judgeResiduals(&out, r.RawVector().Data)
	}
	for i := range f.out.Columns {
		if c := &f.out.Columns[i]; c.Deviation > c.Range {
			f.out.Unknown = fmt.Sprintf("the best run is off %s by %.3g times the range of its measurements: it does not follow them", c.Variable, c.Deviation/c.Range)
			return
		}
	}
	if total <= n {
		f.out.Unknown = fmt.Sprintf("%d measured values of %d factors leave none to judge their errors by", total, n)
		return
	}
	if slices.ContainsFunc(a.RawSymmetric().Data, notFinite) {
		f.out.Unknown = "the differences between the runs beside the best one overflow"
		return
	}
	inverse, undetermined := f.invert(a)
	for c, kk := range columns {
		var leverage mat.Dense
		leverage.Mul(inverse, kk)
		count, scale := float64(counts[c]), f.plan.Optimise.Fit[c].Scale
		free := count - mat.Trace(&leverage)
		if free < 1 {
			f.out.Unknown = fmt.Sprintf("%s has too few measured values", f.out.Columns[c].Variable)
			return
		}
		var part mat.SymDense
		part.ScaleSym(errors[c]/free/(scale*scale), kk) // points that were left out would change neither errors nor kk
		b.AddSym(b, &part)
	}
	var half, cov mat.Dense
	half.Mul(inverse, b)
	cov.Mul(&half, inverse)
	var step mat.VecDense // to the optimum of the linear model
	step.MulVec(inverse, slope)
	step.ScaleVec(-1, &step)
	f.conclude(best, &cov, &step, undetermined, total)
}

// curve returns the values of a variable at the times of its measurements that are used.
func (q *Quantity) curve(t, v []float64) (out []float64) {
	for n := 0; n < len(q.times); n += thinned(len(q.times)) {
		out = append(out, valueAt(t, v, q.times[n]))
	}
	return out
}

// points returns the length of a curve.
func (q *Quantity) points() int {
	stride := thinned(len(q.times))
	return (len(q.times) + stride - 1) / stride
}

// thinned returns the distance of the points that are used of n.
func thinned(n int) int { return max((n+mostFitted-1)/mostFitted, 1) }

// slopeOf returns the derivative at x[0] of the parabola through three points.
func slopeOf(x, y [3]float64) float64 {
	h1, h2 := x[1]-x[0], x[2]-x[0]
	d1, d2 := (y[1]-y[0])/h1, (y[2]-y[0])/h2
	return d1 - h1*(d2-d1)/(h2-h1)
}

// invert returns the inverse of a [n][n], without the directions in which the fit does not change, and the factors that take
// part in these.
func (f *fitting) invert(a *mat.SymDense) (inverse *mat.Dense, undetermined []bool) {
	n := a.SymmetricDim()
	undetermined = make([]bool, n)
	inverse = mat.NewDense(n, n, nil)
	var of []int
	for j := range n {
		if math.Sqrt(a.At(j, j)) > noEffect {
			of = append(of, j)
			continue
		}
		undetermined[j] = true
		f.warn("the measurements do not determine %s: it does not affect them", f.plan.Factors[j].Name)
	}
	if of == nil {
		return inverse, undetermined
	}
	unit := mat.NewSymDense(len(of), nil)
	for r := range of {
		for c := r; c < len(of); c++ {
			unit.SetSym(r, c, a.At(of[r], of[c])/math.Sqrt(a.At(of[r], of[r])*a.At(of[c], of[c])))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(unit, true) {
		return inverse, undetermined // not seen: the matrix is finite
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for k, value := range eigen.Values(nil) {
		if value < collinear*collinear {
			f.warnOfDirection(of, vectors.ColView(k), a, undetermined)
			continue
		}
		for r, i := range of {
			for c, j := range of {
				by := vectors.At(r, k) * vectors.At(c, k) / value / math.Sqrt(a.At(i, i)*a.At(j, j))
				inverse.Set(i, j, inverse.At(i, j)+by)
			}
		}
	}
	return inverse, undetermined
}

// warnOfDirection warns of a combination of factors that the fit does not depend on, and marks them.
func (f *fitting) warnOfDirection(of []int, v mat.Vector, a *mat.SymDense, undetermined []bool) {
	var names, moves []string
	first := 0.0
	for r, j := range of {
		if math.Abs(v.AtVec(r)) < takesPart {
			continue
		}
		undetermined[j] = true
		change := v.AtVec(r) / math.Sqrt(a.At(j, j)) * f.scale[j] / math.Abs(f.at[j])
		if f.at[j] == 0 {
			change = v.AtVec(r) / math.Sqrt(a.At(j, j)) // relative to the width
		}
		if first == 0 {
			first = change
		}
		verb := "raise"
		if change/first < 0 {
			verb = "lower"
		}
		names = append(names, f.plan.Factors[j].Name)
		moves = append(moves, fmt.Sprintf("%s %s by %.2g %%", verb, f.plan.Factors[j].Name, math.Abs(change/first)))
	}
	f.warn("the measurements do not determine %s separately: %s, and the fit is the same. Fix one of them, or measure what tells them apart",
		strings.Join(names, " and "), strings.Join(moves, ", "))
}

// conclude sets standard errors, intervals and correlations from the covariance [n][n]. The search ended step [n] before the
// optimum of the linear model, which is an error like others if the measurements have hardly any.
func (f *fitting) conclude(best *Optimum, cov *mat.Dense, step *mat.VecDense, undetermined []bool, total int) {
	exact := best.Goal < exactFit*exactFit
	atEnd := func(j int) bool {
		factor := &f.plan.Factors[j]
		return f.at[j]-factor.Low < 1e-6*f.scale[j] || factor.High-f.at[j] < 1e-6*f.scale[j]
	}
	limited := false
	for j := range f.at {
		limited = limited || atEnd(j)
	}
	n := len(f.at)
	student := distuv.StudentsT{Sigma: 1, Nu: float64(total - n)}.Quantile((1 + intervalShare) / 2)
	known := func(j int) bool { return !undetermined[j] && cov.At(j, j) >= 0 }
	for j := range n {
		p, factor := &f.out.Parameters[j], &f.plan.Factors[j]
		if atEnd(j) {
			f.warn("the best value of %s is the end of its range, %s: a better one may lie beyond; widen the range", factor.Name,
				strconv.FormatFloat(f.at[j], 'g', 6, 64))
		}
		f.out.Correlations = append(f.out.Correlations, make([]Number, n))
		for k := range n {
			c := cov.At(j, k) / math.Sqrt(cov.At(j, j)*cov.At(k, k))
			switch {
			case !known(j) || !known(k):
				c = math.NaN()
			case j == k:
				c = 1
			case k < j && math.Abs(c) > onlyTogether:
				f.warn("the measurements determine %s and %s only together: the correlation of their estimates is %.3f",
					f.plan.Factors[k].Name, factor.Name, c)
			}
			f.out.Correlations[j][k] = Number(c)
		}
		if !known(j) {
			continue
		}
		relative, short := math.Sqrt(cov.At(j, j)), math.Abs(step.AtVec(j))
		if exact {
			relative = math.Hypot(relative, short)
		} else if short > relative && !limited {
			f.warn("the search ended before the optimum: %s would still change by about %.2g, more than its standard error; give it more "+
				"evaluations, or a narrower range", factor.Name, short*f.scale[j])
		}
		e := relative * f.scale[j]
		p.StandardError, p.Low, p.High = Number(e), Number(f.at[j]-student*e), Number(f.at[j]+student*e)
		if factor.Log {
			p.Low, p.High = Number(f.at[j]*math.Exp(-student*e/f.at[j])), Number(f.at[j]*math.Exp(student*e/f.at[j]))
		}
		if student*relative > 1 {
			f.warn("the measurements hardly determine %s: its 95 %% interval is wider than its range", factor.Name)
		}
	}
}

// judgeResiduals warns of differences that are not random.
func (f *fitting) judgeResiduals(c *FittedColumn, r []float64) {
	n := len(r)
	if n < 20 || float64(c.Deviation) < exactFit*float64(c.Range) {
		return
	}
	if neighbours := stat.Correlation(r[1:], r[:n-1], nil); neighbours > max(notRandom, 4/math.Sqrt(float64(n))) {
		f.warn("the differences between %s and its measurements are not random (neighbours have a correlation of %.2f): the model misses something, or "+
			"the errors are not independent; the values are less certain than their standard errors say", c.Variable, neighbours)
	}
}

func (f *fitting) warn(format string, args ...any) {
	f.out.Warnings = append(f.out.Warnings, fmt.Sprintf(format, args...))
}

// named names the values of the factors.
func (f *fitting) named(values []string) string {
	var parts []string
	for j, v := range values {
		parts = append(parts, f.plan.Factors[j].Name+" = "+v)
	}
	return strings.Join(parts, ", ")
}
