package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/results"
)

// The methods of an optimisation.
const (
	MethodNelderMead = "nelder-mead" // a simplex; one run at a time
	MethodCMAES      = "cma-es"      // a population, whose runs are parallel; for many local minima
	MethodLBFGS      = "l-bfgs"      // gradients by central differences, whose runs are parallel; for smooth goals
)

var methods = []string{MethodNelderMead, MethodCMAES, MethodLBFGS}

// usualEvaluations is the default bound of an optimisation.
const usualEvaluations = 500

// AddFit adds a quantity "deviation(NAME)" for each column NAME = component.variable of a table, and makes the
// optimisation reduce Σ (deviation / range of the column)².
func (p *Plan) AddFit(o *Optimisation, path string) error {
	t, err := results.Read(path, results.ReadOptions{})
	if err != nil {
		return err
	}
	for _, c := range t.Columns {
		if c.Values == nil {
			return fmt.Errorf("%s: column %s: %s; correct the cell, or remove the column", path, c.Name, c.Odd)
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range c.Values {
			if v-v == 0 {
				low, high = min(low, v), max(high, v)
			}
		}
		if !(high > low) {
			return fmt.Errorf("%s: column %s does not change; a fit needs measured values that do", path, c.Name)
		}
		q := Quantity{Name: "deviation(" + c.Bare + ")", Text: fmt.Sprintf("deviation(%s, %s)", c.Bare, path), Variable: c.Bare}
		if err := q.readDeviation([]string{c.Bare, path}, func(name string) string { return name }); err != nil {
			return err
		}
		p.Quantities = append(p.Quantities, q)
		o.Fit = append(o.Fit, Fit{q.Name, high - low})
	}
	if o.Fit == nil {
		return fmt.Errorf("%s: the table has no columns beside time; name them component.variable", path)
	}
	return nil
}

func (p *Plan) checkOptimise() error {
	o := p.Optimise
	var errs []error
	if !slices.Contains(methods, o.Method) {
		errs = append(errs, fmt.Errorf("optimise: there is no method %q%s", o.Method, diag.DidYouMeanOr(o.Method, methods, "; there are ")))
	}
	if o.Evaluations == 0 {
		o.Evaluations = usualEvaluations
	}
	if o.Fit == nil {
		_, err := p.quantity(o.Goal)
		errs = append(errs, err)
	}
	if len(p.Factors) == 0 {
		errs = append(errs, errors.New("optimise: nothing varies; give ranges in vary"))
	}
	for i := range p.Factors {
		if f := &p.Factors[i]; f.Levels != nil {
			errs = append(errs, fmt.Errorf("optimise: %s: %s is a list; give a range, linear(FROM, TO)", f.Name, f.Text))
		}
	}
	return errors.Join(errs...)
}

// Optimum is the best run of an optimisation.
type Optimum struct {
	Row
	Goal   float64 // value of what was minimised or maximised; of a fit, Σ (deviation / range)² over the columns
	Runs   int
	Ended  string // why the search ended
	Method string
}

// MarshalJSON writes the run, its values and quantities, and how it was found.
func (o *Optimum) MarshalJSON() ([]byte, error) {
	collected := make([]Number, len(o.Collected))
	for i, v := range o.Collected {
		collected[i] = Number(v)
	}
	return json.Marshal(struct {
		Run       int      `json:"run"`
		Values    []string `json:"values"`
		Collected []Number `json:"collected"`
		Goal      Number   `json:"goal"`
		Runs      int      `json:"runs"`
		Method    string   `json:"method"`
		Ended     string   `json:"ended"`
	}{o.ID, o.Values, collected, Number(o.Goal), o.Runs, o.Method, o.Ended})
}

// search is an optimisation under way. Each factor is a function of one coordinate z without bounds: a
// range of the sine of z, so that its ends are reached, other distributions by their quantiles.
type search struct {
	study *Study
	runs  int
	asked int                // points, of which some were known
	goals map[string]float64 // of the points so far, by the key of their variants
	best  Optimum
	err   error // that ends the search
	ctx   context.Context
	exec  Executor
}

// at returns the value of a factor at a coordinate; that of 0 is the middle.
func (f *Factor) coordinate(z float64) float64 {
	if f.finite() {
		return f.at((1 + math.Sin(z)) / 2)
	}
	return f.quantile(min(max(math.Erfc(-z/math.Sqrt2)/2, 0x1p-53), 1-0x1p-53))
}

// goal returns what is to be as small as possible; +Inf of a run without the value.
func (p *Plan) goal(r *Row) float64 {
	o, sum := p.Optimise, 0.0
	if o.Fit == nil {
		i, _ := p.quantity(o.Goal)
		if sum = r.Collected[i]; o.Maximise {
			sum = -sum
		}
	}
	for _, f := range o.Fit {
		i, _ := p.quantity(f.Quantity)
		sum += (r.Collected[i] / f.Scale) * (r.Collected[i] / f.Scale)
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

// Goal returns the goal of a row of an optimisation, as in [Optimum]; NaN if the row has none.
func (p *Plan) Goal(r *Row) float64 {
	v := p.goal(r)
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	if p.Optimise.Maximise {
		return -v
	}
	return v
}

// evaluate makes the runs at some points, side by side, and returns their goals. A point that was asked for before
// has its run already.
func (s *search) evaluate(points ...[]float64) []float64 {
	p := s.study.Plan
	keys := make([]string, len(points))
	var variants []Variant
	for i, z := range points {
		v := Variant{ID: s.runs, Values: make([]string, len(z))}
		for j := range z {
			v.Values[j] = formatNumber(p.Factors[j].coordinate(z[j]))
		}
		keys[i] = s.study.key(v)
		if _, known := s.goals[keys[i]]; !known {
			s.goals[keys[i]] = math.Inf(1)
			variants = append(variants, v)
			s.runs++
		}
	}
	s.asked += len(points)
	rows := make([]Row, 0, len(variants))
	if s.err == nil {
		s.err = s.study.make(s.ctx, s.exec, variants, func(r Row) { rows = append(rows, r) })
	}
	slices.SortFunc(rows, func(a, b Row) int { return a.ID - b.ID })
	for i := range rows {
		goal := p.goal(&rows[i])
		s.goals[s.study.key(rows[i].Variant)] = goal
		if goal < s.best.Goal || s.best.Runs == 0 {
			s.best = Optimum{Row: rows[i], Goal: goal, Runs: 1}
		}
	}
	goals := make([]float64, len(points))
	for i := range goals {
		goals[i] = s.goals[keys[i]]
	}
	return goals
}

// start returns the middle of the ranges, or if its run is not ok the best of some other points.
func (s *search) start(dim int) []float64 {
	middle := make([]float64, dim)
	if s.evaluate(middle)[0] < math.Inf(1) {
		return middle
	}
	random := rand.New(rand.NewPCG(s.study.Plan.Optimise.Seed, seedStream))
	for s.err == nil && s.runs <= s.study.Plan.Optimise.Evaluations/2 {
		points := make([][]float64, 4*dim)
		for i := range points {
			points[i] = make([]float64, dim)
			for j := range points[i] {
				points[i][j] = math.Pi * (random.Float64() - 0.5) // denser towards the ends of a range
			}
		}
		goals := s.evaluate(points...)
		if best := slices.Index(goals, slices.Min(goals)); goals[best] < math.Inf(1) {
			return points[best]
		}
	}
	return middle
}

func (s *search) status() (optimize.Status, error) {
	if s.err != nil {
		return optimize.Failure, s.err
	}
	if most := s.study.Plan.Optimise.Evaluations; s.runs >= most || s.asked >= 10*most {
		return optimize.FunctionEvaluationLimit, nil
	}
	return optimize.NotTerminated, nil
}

// optimise carries out the optimisation of a plan.
func (s *Study) optimise(ctx context.Context, exec Executor) (*Optimum, error) {
	o := s.Plan.Optimise
	dim := len(s.Plan.Factors)
	w := &search{study: s, ctx: ctx, exec: exec, goals: map[string]float64{}, best: Optimum{Goal: math.Inf(1)}}
	start := w.start(dim)
	if w.err == nil && math.IsInf(w.best.Goal, 1) {
		return nil, fmt.Errorf("optimise: none of the first %d runs has the quantity that is optimised; the reasons are in the table. Narrow the ranges to where runs are ok, and make a new study", w.runs)
	}
	ended := ""
	if o.Method == MethodCMAES {
		ended = w.cmaes(start)
	} else {
		problem := optimize.Problem{
			Func:   func(z []float64) float64 { return w.evaluate(slices.Clone(z))[0] },
			Status: w.status,
		}
		var method optimize.Method = &optimize.NelderMead{SimplexSize: 0.5}
		if o.Method == MethodLBFGS {
			problem.Grad, method = w.gradient, &optimize.LBFGS{}
		}
		settings := &optimize.Settings{Converger: &optimize.FunctionConverge{Absolute: 1e-14, Relative: 1e-7, Iterations: 10 + 5*dim}}
		result, err := optimize.Minimize(problem, start, settings, method)
		if err != nil {
			ended = "no better point found (" + err.Error() + ")" // mostly a line search at the end of a range, or of what is smooth
		} else {
			ended = ending(result.Status)
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	w.best.Runs, w.best.Ended, w.best.Method = w.runs, ended, o.Method
	if o.Maximise {
		w.best.Goal = -w.best.Goal
	}
	return &w.best, nil
}

// gradient computes central differences, with all runs side by side.
func (s *search) gradient(grad, z []float64) {
	const h = 1e-4
	var points [][]float64
	for i := range z {
		for _, d := range []float64{-h, h} {
			point := slices.Clone(z)
			point[i] += d
			points = append(points, point)
		}
	}
	goals := s.evaluate(points...)
	for i := range grad {
		grad[i] = (goals[2*i+1] - goals[2*i]) / (2 * h)
		if grad[i]-grad[i] != 0 { // no run on one side
			grad[i] = 0
		}
	}
}

// ending says why a search ended.
func ending(s optimize.Status) string {
	switch s {
	case optimize.FunctionConvergence, optimize.MethodConverge, optimize.GradientThreshold, optimize.StepConvergence:
		return "converged"
	case optimize.FunctionEvaluationLimit:
		return "all evaluations used"
	}
	return s.String()
}
