package study

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"github.com/macrostep/macrostep/master"
)

// Report summarises the rows of a study. Only rows that are OK count, but for Statuses and
// Reasons.
type Report struct {
	Statuses map[Status]int `json:"statuses"`
	// Verdicts counts the verdicts on the expectations of a scenario; nil = there is none.
	Verdicts   map[string]int `json:"verdicts,omitempty"`
	Reasons    []Reason       `json:"reasons,omitempty"`
	Statistics []Statistic    `json:"statistics"`
	Effects    []Effect       `json:"effects,omitempty"`
	Morris     []Elementary   `json:"morris,omitempty"`
	Sobol      []Sobol        `json:"sobol,omitempty"`
	// Dropped counts trajectories of Morris, or samples of Saltelli, with a run that is not OK.
	Dropped int        `json:"dropped,omitempty"`
	Optimum *Optimum   `json:"optimum,omitempty"`
	Fit     *Certainty `json:"fit,omitempty"`
	Settled []Settled  `json:"convergence,omitempty"`
	Checks  []Checked  `json:"checks,omitempty"`
}

// Reason is why runs are not OK.
type Reason struct {
	Status Status `json:"status"`
	Text   string `json:"reason"`
	Runs   int    `json:"runs"`
	First  int    `json:"first"` // run
}

// Number is a float64 that may be missing: NaN, null in JSON.
type Number float64

// MarshalJSON writes numbers that are not finite as null.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); v-v != 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Statistic describes the values of a quantity.
type Statistic struct {
	Quantity      string `json:"quantity"`
	Runs          int    `json:"runs"` // that have it
	Mean          Number `json:"mean"`
	Deviation     Number `json:"standard_deviation"`
	StandardError Number `json:"standard_error"` // of the mean
	Minimum       Number `json:"minimum"`
	Q05           Number `json:"q05"`
	Median        Number `json:"median"`
	Q95           Number `json:"q95"`
	Maximum       Number `json:"maximum"`
}

// Effect is that of a factor on a quantity: the mean of the quantity over the runs at each level of the factor,
// or in each of up to ten parts with as many runs each.
type Effect struct {
	Factor      string `json:"factor"`
	Quantity    string `json:"quantity"`
	Correlation Number `json:"correlation"`      // Pearson's; NaN unless both are numbers
	Rank        Number `json:"rank_correlation"` // Spearman's
	// Ratio is the correlation ratio if the values of the factor are no numbers: the root of the share of the variance that is
	// between the means of its values; NaN if fewer than two runs in the mean have a value.
	Ratio Number   `json:"correlation_ratio"`
	At    []string `json:"at"`
	Mean  []Number `json:"mean"`
}

// Elementary holds the elementary effects of Morris, per unit of the factor's range.
type Elementary struct {
	Factor   string `json:"factor"`
	Quantity string `json:"quantity"`
	MuStar   Number `json:"mu_star"` // mean of their magnitudes
	Mu       Number `json:"mu"`
	Sigma    Number `json:"sigma"`
}

// Sobol holds the sensitivity indices of a quantity to a factor, with their standard errors by the bootstrap.
//
// Source: Saltelli et al. 2010, table 2: (b) for the first order, (f) for the total effect.
type Sobol struct {
	Factor     string `json:"factor"`
	Quantity   string `json:"quantity"`
	First      Number `json:"first"`
	FirstError Number `json:"first_error"`
	Total      Number `json:"total"`
	TotalError Number `json:"total_error"`
}

// Summarise evaluates the rows of a study.
func Summarise(p *Plan, f *Findings) *Report {
	r := &Report{Statuses: map[Status]int{}, Optimum: f.Optimum, Fit: f.Fit, Settled: f.Settled, Checks: f.Checks}
	var ok []Row
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.Verdict != master.NoExpectations {
			if r.Verdicts == nil {
				r.Verdicts = map[string]int{}
			}
			r.Verdicts[row.Verdict]++
		}
		if r.Statuses[row.Status]++; row.Status == OK {
			ok = append(ok, *row)
			continue
		}
		k := slices.IndexFunc(r.Reasons, func(e Reason) bool { return e.Status == row.Status && e.Text == row.Reason })
		if k < 0 {
			k = len(r.Reasons)
			r.Reasons = append(r.Reasons, Reason{Status: row.Status, Text: row.Reason, First: row.ID})
		}
		r.Reasons[k].Runs++
	}
	slices.SortStableFunc(r.Reasons, func(a, b Reason) int { return b.Runs - a.Runs })
	for i := range p.Quantities {
		r.Statistics = append(r.Statistics, describe(p.Quantities[i].Name, ok, i))
		if p.Convergence != nil {
			continue
		}
		for j, factor := range p.FactorNames() {
			r.Effects = append(r.Effects, effect(factor, j, p.Quantities[i].Name, i, ok))
		}
	}
	switch {
	case p.Optimise != nil || p.Convergence != nil:
	case p.Design.Kind == DesignMorris:
		r.morris(p, f.Rows)
	case p.Design.Kind == DesignSaltelli:
		r.sobol(p, f.Rows)
	}
	return r
}

// collected returns the values of a quantity in the rows that have it.
func collected(rows []Row, quantity int) (values []float64, have []Row) {
	for _, r := range rows {
		if v := r.Collected[quantity]; v-v == 0 {
			values, have = append(values, v), append(have, r)
		}
	}
	return values, have
}

func describe(name string, rows []Row, quantity int) Statistic {
	v, _ := collected(rows, quantity)
	nan := Number(math.NaN())
	s := Statistic{Quantity: name, Runs: len(v), Mean: nan, Deviation: nan, StandardError: nan, Minimum: nan, Q05: nan, Median: nan, Q95: nan, Maximum: nan}
	if len(v) == 0 {
		return s
	}
	slices.Sort(v)
	s.Mean, s.Minimum, s.Maximum = Number(stat.Mean(v, nil)), Number(v[0]), Number(v[len(v)-1])
	s.Q05, s.Median, s.Q95 = quantile(v, 0.05), quantile(v, 0.5), quantile(v, 0.95)
	if len(v) > 1 {
		deviation := stat.StdDev(v, nil)
		s.Deviation, s.StandardError = Number(deviation), Number(deviation/math.Sqrt(float64(len(v))))
	}
	return s
}

// quantile returns the value at the share p of sorted values, linear between them: the first at 0, the last at 1.
func quantile(v []float64, p float64) Number {
	at := p * float64(len(v)-1)
	i := min(int(at), len(v)-1)
	next := min(i+1, len(v)-1)
	return Number(v[i] + (at-float64(i))*(v[next]-v[i]))
}

// parts is the number of parts of a factor whose values are all different.
const parts = 10

func effect(factor string, j int, quantity string, i int, rows []Row) Effect {
	y, have := collected(rows, i)
	e := Effect{Factor: factor, Quantity: quantity, Correlation: Number(math.NaN()), Rank: Number(math.NaN()), Ratio: Number(math.NaN())}
	x := make([]float64, len(have))
	numeric := len(have) > 1
	levels := map[string][]float64{}
	for n := range have {
		text := have[n].Values[j]
		var err error
		if x[n], err = strconv.ParseFloat(text, 64); err != nil {
			numeric = false
		}
		levels[text] = append(levels[text], y[n])
	}
	if numeric {
		e.Correlation, e.Rank = Number(stat.Correlation(x, y, nil)), Number(stat.Correlation(ranks(x), ranks(y), nil))
	}
	if !numeric && 2*len(levels) <= len(have) {
		mean, between, all := stat.Mean(y, nil), 0.0, 0.0
		for _, level := range levels {
			d := stat.Mean(level, nil) - mean
			between += float64(len(level)) * d * d
		}
		for _, v := range y {
			all += (v - mean) * (v - mean)
		}
		e.Ratio = Number(math.Sqrt(between / all))
	}
	if !numeric || len(levels) <= parts {
		names := make([]string, 0, len(levels))
		for name := range levels {
			names = append(names, name)
		}
		slices.SortFunc(names, compareValues)
		for _, name := range names {
			e.At, e.Mean = append(e.At, name), append(e.Mean, Number(stat.Mean(levels[name], nil)))
		}
		return e
	}
	order := sorted(x)
	for k := range parts {
		part := order[k*len(order)/parts : (k+1)*len(order)/parts]
		var at, mean float64
		for _, n := range part {
			at, mean = at+x[n]/float64(len(part)), mean+y[n]/float64(len(part))
		}
		if len(part) > 0 {
			e.At, e.Mean = append(e.At, strconv.FormatFloat(at, 'g', 6, 64)), append(e.Mean, Number(mean))
		}
	}
	return e
}

// compareValues orders numbers by value, and other texts behind them.
func compareValues(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX == nil && errY == nil && x < y:
		return -1
	case errX == nil && errY == nil && x > y:
		return 1
	case errX == nil && errY != nil:
		return -1
	case errX != nil && errY == nil:
		return 1
	}
	return slices.Compare([]byte(a), []byte(b))
}

// sorted returns the indices of values in ascending order.
func sorted(v []float64) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case v[a] < v[b]:
			return -1
		case v[a] > v[b]:
			return 1
		}
		return 0
	})
	return order
}

// ranks returns the ranks of values; equal ones share the mean of theirs.
func ranks(v []float64) []float64 {
	order, out := sorted(v), make([]float64, len(v))
	for i := 0; i < len(order); {
		end := i + 1
		for end < len(order) && v[order[end]] == v[order[i]] {
			end++
		}
		for _, n := range order[i:end] {
			out[n] = float64(i+end-1) / 2
		}
		i = end
	}
	return out
}

// groups returns the rows of a design in groups of so many, without those that have a run which is not OK.
func (r *Report) groups(rows []Row, size int) (out [][]Row) {
	byID := map[int]Row{}
	last := -1
	for _, row := range rows {
		byID[row.ID] = row
		last = max(last, row.ID)
	}
	for first := 0; first <= last; first += size {
		var group []Row
		for id := first; id < first+size; id++ {
			if row, there := byID[id]; there && row.Status == OK {
				group = append(group, row)
			}
		}
		if len(group) < size {
			r.Dropped++
			continue
		}
		out = append(out, group)
	}
	return out
}

// morris computes the elementary effects: see [morris].
func (r *Report) morris(p *Plan, rows []Row) {
	k := len(p.Factors)
	groups := r.groups(rows, k+1)
	for q := range p.Quantities {
		effects := make([][]float64, k)
		for _, g := range groups {
			for i := range k {
				for j := range k {
					if g[i].Values[j] == g[i+1].Values[j] {
						continue
					}
					step := p.Factors[j].share(g[i+1].Values[j]) - p.Factors[j].share(g[i].Values[j])
					effects[j] = append(effects[j], (g[i+1].Collected[q]-g[i].Collected[q])/step)
				}
			}
		}
		for j := range k {
			e := Elementary{Factor: p.Factors[j].Name, Quantity: p.Quantities[q].Name, MuStar: Number(math.NaN()), Mu: Number(math.NaN()), Sigma: Number(math.NaN())}
			if v := effects[j]; len(v) > 0 {
				e.Mu = Number(stat.Mean(v, nil))
				if len(v) > 1 {
					e.Sigma = Number(stat.StdDev(v, nil))
				}
				for i := range v {
					v[i] = math.Abs(v[i])
				}
				e.MuStar = Number(stat.Mean(v, nil))
			}
			r.Morris = append(r.Morris, e)
		}
	}
}

// share returns the place of a value in a range, 0 to 1.
func (f *Factor) share(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return math.NaN()
	case f.Log:
		return math.Log(v/f.Low) / math.Log(f.High/f.Low)
	}
	return (v - f.Low) / (f.High - f.Low)
}

// resamples is the number of samples of the bootstrap.
const resamples = 200

func (r *Report) sobol(p *Plan, rows []Row) {
	k := len(p.Factors)
	groups := r.groups(rows, k+2)
	for q := range p.Quantities {
		samples := make([][]float64, 0, len(groups)) // A, B, and A with one column of B
		for _, g := range groups {
			values, have := collected(g, q)
			if len(have) == len(g) {
				samples = append(samples, values)
			}
		}
		random := rand.New(rand.NewPCG(p.Design.Seed, seedStream))
		for j := range k {
			first, total := indices(samples, j)
			firsts, totals := make([]float64, resamples), make([]float64, resamples)
			drawn := make([][]float64, len(samples))
			for b := range resamples {
				for n := range drawn {
					drawn[n] = samples[random.IntN(len(samples))]
				}
				firsts[b], totals[b] = indices(drawn, j)
			}
			r.Sobol = append(r.Sobol, Sobol{p.Factors[j].Name, p.Quantities[q].Name, Number(first), Number(stat.StdDev(firsts, nil)), Number(total), Number(stat.StdDev(totals, nil))})
		}
	}
}

// indices returns the indices of the factor j of samples of A, B, and A with one column of B.
func indices(samples [][]float64, j int) (first, total float64) {
	if len(samples) < 2 {
		return math.NaN(), math.NaN()
	}
	both := make([]float64, 0, 2*len(samples))
	for _, s := range samples {
		both = append(both, s[0], s[1])
	}
	mean, variance := stat.MeanVariance(both, nil)
	for _, s := range samples {
		first += (s[1] - mean) * (s[2+j] - s[0])
		total += (s[0] - s[2+j]) * (s[0] - s[2+j])
	}
	n := float64(len(samples))
	return first / n / variance, total / (2 * n) / variance
}

// ReportFile is the report in a folder, as JSON.
const ReportFile = "summary.json"

// Conclude summarises a study, and writes the report and the table as Parquet into its folder.
func Conclude(f *Folder, findings *Findings) (*Report, error) {
	if findings.Checks == nil { // errors measured before stay
		var before struct {
			Checks []Checked `json:"checks"`
		}
		if data, err := os.ReadFile(filepath.Join(f.Path, ReportFile)); err == nil && json.Unmarshal(data, &before) == nil {
			damaged := func(c Checked) bool { return c.Error == nil || checkError(c.Error) != nil || !isLine(c.Why) }
			findings.Checks = slices.DeleteFunc(before.Checks, damaged)
		}
	}
	r := Summarise(f.Plan, findings)
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, err
	}
	return r, errors.Join(writeFile(filepath.Join(f.Path, ReportFile), append(data, '\n')),
		f.WriteFile(ParquetFile, f.writeParquet))
}
