package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Norm is what differences are related to.
type Norm string

// The norms, each of A over the times that are compared.
const (
	Range Norm = "range" // greatest value less the least
	RMS   Norm = "rms"   // root of the mean square
)

// Norms lists them.
var Norms = []Norm{Range, RMS}

// Tolerance is what the variables may differ by whose names Match, that of all if nil.
type Tolerance struct {
	Match func(name string) bool
	Value float64
}

// CompareOptions say how tables are compared. The zero value takes all variables that
// both have, and no difference for none.
type CompareOptions struct {
	Norm Norm // "" = Range
	// RelTol is the greatest difference as a part of the norm, AbsTol a further part
	// of it; MeanTol bounds NRMSE. Of several the last that matches holds; without one a
	// bound is 0, and NRMSE is not bounded.
	RelTol, AbsTol, MeanTol []Tolerance
	// Usual is the relative tolerance of variables for which none of the lists has one. Of one that only MeanTol
	// is for, no difference is too large then. 0 = there is none.
	Usual float64
	// ByTime weighs each point by the time between its neighbours, in place of all alike.
	ByTime bool
	// TimeTol is how far two times may lie apart that are one (s); 0 = a millionth of the
	// mean step of the finer table.
	TimeTol float64
	Map     map[string]string      // names in A to names in B
	Select  func(name string) bool // variables of A; nil = all
}

// Comparison is what two tables have in common.
type Comparison struct {
	From, To float64 // s; what both cover
	// Points is the number of those compared: all rows of both tables, where two at one
	// time are one. At those that the other table lacks, it is interpolated linearly
	// between its rows, which was so at InterpolatedA and InterpolatedB points.
	Points, InterpolatedA, InterpolatedB int
	OutsideA, OutsideB                   int // rows outside of what both cover
	Norm                                 Norm
	ByTime                               bool
	Variables                            []Difference // in the order of A
	OnlyA, OnlyB                         []string     // variables that the other lacks, or that have no numbers
	Notes                                []string

	points  []meeting
	columns [][2]*Column // by variable
}

// Errors returns B − A of a variable, by its index, at all points; NaN where one of them
// is no number, and the greatest number where it is greater than that.
func (c *Comparison) Errors(variable int) (t, e []float64) {
	a, b := c.columns[variable][0].Values, c.columns[variable][1].Values
	for i := range c.points {
		m := &c.points[i]
		v := m.b.of(b) - m.a.of(a)
		if va, vb := m.a.of(a), m.b.of(b); finite(va) && finite(vb) {
			v = within(v)
		}
		t, e = append(t, m.t), append(e, v)
	}
	return t, e
}

// Difference is that of one variable, B − A. Scale, Max, RMSE and Limit are the greatest
// number where they are greater than that; Agrees is judged by what they are.
type Difference struct {
	Name  string  // in A, without the unit behind it
	InB   string  // its name in B, likewise
	Scale float64 // of the norm; of the magnitude if the variable is constant; 0 if it is 0
	// Constant reports that A does not change.
	Constant bool
	// Max is the greatest |B − A|, at the time At with the values A and B; NaN if there
	// is no point with two numbers.
	Max, At, A, B float64
	RMSE          float64
	NRMSE         float64 // RMSE over Scale; NaN if Scale is 0 and RMSE is not
	Unequal       int     // points where one of the two is no number, or infinite, and the other is something else
	Limit         float64 // of Max
	MeanLimit     float64 // of NRMSE; Inf = none
	Digits        int     // that the values of B have at most
	Agrees        bool
}

// Agree reports whether all variables do.
func (c *Comparison) Agree() bool {
	return !slices.ContainsFunc(c.Variables, func(d Difference) bool { return !d.Agrees })
}

// Compare compares the variables that two tables have in common, over the time that
// both cover.
//
// Of the values a and b at the points, NRMSE = √(Σ w (b−a)² / Σ w) / s with equal
// weights w, or by the trapezoidal rule, and the norm s of a. Where a table has two
// rows at a time, the first holds before it and the last behind it: these are compared
// with the other's at that time.
//
// Where both tell a unit and these differ, b is converted to that of a if they are known
// and of one dimension; Notes says so, or that it is not.
//
// Names are the same if they are with or without the units behind them, or if one is
// the end of the other behind a point and no second one is.
func Compare(a, b *Table, o CompareOptions) (*Comparison, error) {
	if o.Norm == "" {
		o.Norm = Range
	}
	c := &Comparison{Norm: o.Norm, ByTime: o.ByTime}
	pairs, err := c.match(a, b, o)
	if err != nil {
		return nil, err
	}
	points, err := c.align(a.Times, b.Times, o.TimeTol)
	if err != nil {
		return nil, fmt.Errorf("%s and %s %w", a.Path, b.Path, err)
	}
	for _, p := range pairs {
		ca, cb := &a.Columns[p[0]], &b.Columns[p[1]]
		if ca.Unit != "" && cb.Unit != "" && ca.Unit != cb.Unit {
			what := "numbers are compared as they are"
			same, ok := cb.into(ca.Unit)
			if ok {
				what = "the second is converted"
			}
			c.Notes = append(c.Notes, fmt.Sprintf("%s is in %s and in %s; %s", ca.Bare, ca.Unit, cb.Unit, what))
			cb = same
		}
		c.Variables = append(c.Variables, compare(ca, cb, points, o))
		c.columns = append(c.columns, [2]*Column{ca, cb})
	}
	return c, nil
}

// match finds the variables that are compared: their columns in a and in b.
func (c *Comparison) match(a, b *Table, o CompareOptions) (pairs [][2]int, err error) {
	inB := make([]int, len(a.Columns)) // -1 = none
	taken := make([]bool, len(b.Columns))
	find := func(t *Table, name string) int {
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		if at < 0 {
			at = slices.IndexFunc(t.Columns, func(c Column) bool { return c.Bare == name })
		}
		return at
	}
	var errs []error
	for i := range inB {
		inB[i] = -1
	}
	names := make([]string, 0, len(o.Map))
	for name := range o.Map {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		i, k := find(a, name), find(b, o.Map[name])
		if i < 0 {
			errs = append(errs, fmt.Errorf("%s has no variable %s", a.Path, name))
		}
		if k < 0 {
			errs = append(errs, fmt.Errorf("%s has no variable %s", b.Path, o.Map[name]))
		}
		if i >= 0 && k >= 0 {
			inB[i], taken[k] = k, true
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	chosen := func(i int) bool { return o.Select == nil || o.Select(a.Columns[i].Bare) }
	for _, same := range []func(a, b *Column) bool{
		func(a, b *Column) bool { return a.Name == b.Name },
		func(a, b *Column) bool { return a.Bare == b.Bare },
	} {
		for i := range a.Columns {
			if inB[i] >= 0 || !chosen(i) {
				continue
			}
			for k := range b.Columns {
				if !taken[k] && same(&a.Columns[i], &b.Columns[k]) {
					inB[i], taken[k] = k, true
					break
				}
			}
		}
	}
	c.matchEnds(a, b, inB, taken, chosen)
	for i := range a.Columns {
		if !chosen(i) {
			continue
		}
		ca, k := &a.Columns[i], inB[i]
		switch {
		case k < 0:
			c.OnlyA = append(c.OnlyA, ca.Name)
			continue
		case ca.Text || b.Columns[k].Text:
			odd := ca.Odd
			if !ca.Text {
				odd = b.Columns[k].Odd
			}
			note := ca.Name + " holds texts and is not compared"
			if odd != "" {
				note += ": " + odd
			}
			c.Notes = append(c.Notes, note)
			continue
		}
		pairs = append(pairs, [2]int{i, k})
	}
	if o.Select == nil {
		for k := range b.Columns {
			if !taken[k] {
				c.OnlyB = append(c.OnlyB, b.Columns[k].Name)
			}
		}
	}
	return pairs, nil
}

// matchEnds joins names of which one is the end of the other behind a point, where
// that is clear.
func (c *Comparison) matchEnds(a, b *Table, inB []int, taken []bool, chosen func(int) bool) {
	candidates := make([][]int, len(a.Columns))
	of := make([]int, len(b.Columns))
	for i := range a.Columns {
		if inB[i] >= 0 || !chosen(i) {
			continue
		}
		for k := range b.Columns {
			na, nb := a.Columns[i].Bare, b.Columns[k].Bare
			if !taken[k] && (strings.HasSuffix(nb, "."+na) || strings.HasSuffix(na, "."+nb)) {
				candidates[i] = append(candidates[i], k)
				of[k]++
			}
		}
	}
	told := map[string]int{}
	var order []string
	for i, list := range candidates {
		switch {
		case len(list) == 0:
		case len(list) > 1 || of[list[0]] > 1:
			c.Notes = append(c.Notes, fmt.Sprintf("which of the other table's variables %s is, its name does not tell; --map says it", a.Columns[i].Bare))
		default:
			k := list[0]
			inB[i], taken[k] = k, true
			na, nb := a.Columns[i].Bare, b.Columns[k].Bare
			text := "names of B are taken without " + strings.TrimSuffix(nb, na)
			if len(na) > len(nb) {
				text = "names of A are taken without " + strings.TrimSuffix(na, nb)
			}
			if told[text]++; told[text] == 1 {
				order = append(order, text)
			}
		}
	}
	c.Notes = append(c.Notes, order...)
}

// place is where a table has a value: between two rows, by the share of the second.
type place struct {
	row   int
	share float64
}

func (p place) of(v []float64) float64 {
	if p.share == 0 {
		return v[p.row]
	}
	// This form gives equal neighbours exactly, and does not overflow.
	return float64(v[p.row]*(1-p.share)) + float64(v[p.row+1]*p.share)
}

// meeting is a point at which two tables are compared.
type meeting struct {
	t    float64
	a, b place
}

// align finds the points.
func (c *Comparison) align(a, b []float64, tolerance float64) ([]meeting, error) {
	if tolerance == 0 {
		step := math.Inf(1)
		for _, t := range [][]float64{a, b} {
			if n := len(t); n > 1 && t[n-1] > t[0] {
				step = min(step, (t[n-1]-t[0])/float64(n-1))
			}
		}
		if !math.IsInf(step, 0) {
			tolerance = 1e-6 * step
		}
	}
	c.From, c.To = max(a[0], b[0]), min(a[len(a)-1], b[len(b)-1])
	if c.From > c.To+tolerance {
		return nil, fmt.Errorf("have no time in common: one holds %g to %g s, the other %g to %g s", a[0], a[len(a)-1], b[0], b[len(b)-1])
	}
	inside := func(t []float64) (from, to int) {
		from, _ = slices.BinarySearch(t, c.From-tolerance)
		to, _ = slices.BinarySearchFunc(t, c.To+tolerance, func(e, target float64) int {
			if e > target {
				return 1
			}
			return -1
		})
		return from, to
	}
	i, lastA := inside(a)
	k, lastB := inside(b)
	c.OutsideA, c.OutsideB = len(a)-(lastA-i), len(b)-(lastB-k)
	between := func(t []float64, row int, at float64) place { // row is the first behind
		return place{row - 1, min(max((at-t[row-1])/(t[row]-t[row-1]), 0), 1)}
	}
	together := func(t []float64, row, last int) int { // rows at the time of this one
		n := 1
		for row+n < last && t[row+n] == t[row] {
			n++
		}
		return n
	}
	var points []meeting
	for i < lastA || k < lastB {
		var ta, tb float64
		ta, tb = math.Inf(1), math.Inf(1)
		if i < lastA {
			ta = a[i]
		}
		if k < lastB {
			tb = b[k]
		}
		hasA, hasB := ta <= tb+tolerance, tb <= ta+tolerance
		t, na, nb := ta, 0, 0
		if hasA {
			na = together(a, i, lastA)
		} else {
			t = tb
		}
		if hasB {
			nb = together(b, k, lastB)
		}
		steps := 1
		if na > 1 || nb > 1 {
			steps = 2 // before the jump and behind it
		}
		for step := range steps {
			m := meeting{t: t}
			switch {
			case hasA:
				m.a = place{row: i + step*(na-1)}
			case i == 0 || i == len(a): // within the tolerance of an end
				m.a = place{row: min(i, len(a)-1)}
			default:
				m.a = between(a, i, t)
				c.InterpolatedA++
			}
			switch {
			case hasB:
				m.b = place{row: k + step*(nb-1)}
			case k == 0 || k == len(b):
				m.b = place{row: min(k, len(b)-1)}
			default:
				m.b = between(b, k, t)
				c.InterpolatedB++
			}
			points = append(points, m)
		}
		i, k = i+na, k+nb
	}
	c.points, c.Points = points, len(points)
	return points, nil
}

// compare compares one variable at the points.
func compare(a, b *Column, points []meeting, o CompareOptions) Difference {
	d := Difference{Name: a.Bare, InB: b.Bare, Max: math.NaN(), Digits: b.Digits, MeanLimit: math.Inf(1)}
	unit := 1.0 // what values are divided by: the difference of large ones overflows
	for i := range points {
		m := &points[i]
		for _, v := range [2]float64{m.a.of(a.Values), m.b.of(b.Values)} {
			if finite(v) && math.Abs(v) > math.MaxFloat64/4 {
				unit = 4
			}
		}
	}
	least, greatest, magnitude := math.Inf(1), math.Inf(-1), 0.0
	for i := range points {
		m := &points[i]
		va, vb := m.a.of(a.Values)/unit, m.b.of(b.Values)/unit
		if !finite(va) || !finite(vb) {
			if va != vb && !(va != va && vb != vb) {
				d.Unequal++
			}
			if !finite(va) {
				continue
			}
		}
		least, greatest, magnitude = min(least, va), max(greatest, va), max(magnitude, math.Abs(va))
		if !finite(vb) {
			continue
		}
		if e := math.Abs(vb - va); !(e <= d.Max) {
			d.Max, d.At, d.A, d.B = e, m.t, va*unit, vb*unit
		}
	}
	const rounding = 1e-12 // what of the magnitude is no change
	d.Constant = !(greatest-least > rounding*magnitude)
	switch {
	case d.Constant:
		d.Scale = magnitude
	case o.Norm == Range:
		d.Scale = greatest - least
	default:
		d.Scale = meanSquare(points, o.ByTime, magnitude, func(m *meeting) float64 { return m.a.of(a.Values) / unit })
	}
	d.RMSE = meanSquare(points, o.ByTime, d.Max, func(m *meeting) float64 { return m.b.of(b.Values)/unit - m.a.of(a.Values)/unit })
	if d.NRMSE = d.RMSE / d.Scale; d.RMSE == 0 {
		d.NRMSE = 0
	} else if d.Scale == 0 {
		d.NRMSE = math.NaN()
	}
	rel, relative := tolerance(o.RelTol, a)
	abs, absolute := tolerance(o.AbsTol, a)
	mean, bounded := tolerance(o.MeanTol, a)
	switch {
	case relative || absolute || o.Usual == 0:
	case bounded: // and decides alone
		abs = math.Inf(1)
	default:
		rel = o.Usual
	}
	d.Limit = abs/unit + rel*d.Scale
	if d.MeanLimit = math.Inf(1); bounded {
		d.MeanLimit = mean
	}
	d.Agrees = d.Unequal == 0 && !(d.Max > d.Limit) && (math.IsInf(d.MeanLimit, 0) || d.NRMSE <= d.MeanLimit)
	for _, v := range []*float64{&d.Scale, &d.Max, &d.RMSE} {
		*v = within(*v * unit)
	}
	d.NRMSE = within(d.NRMSE)
	if d.Limit *= unit; !math.IsInf(abs, 0) {
		d.Limit = within(d.Limit)
	}
	return d
}

// within returns the greatest number for what is greater.
func within(v float64) float64 { return max(-math.MaxFloat64, min(v, math.MaxFloat64)) }

// tolerance returns the one of a list that holds for a variable, 0 if there is none.
func tolerance(list []Tolerance, c *Column) (value float64, given bool) {
	for _, t := range slices.Backward(list) {
		if t.Match == nil || t.Match(c.Name) || t.Match(c.Bare) {
			return t.Value, true
		}
	}
	return 0, false
}

// meanSquare returns the root of the mean square of what is finite of f at the points;
// none of it is greater than most.
func meanSquare(points []meeting, byTime bool, most float64, f func(*meeting) float64) float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return most // NaN: there is none
	}
	sum, weights := 0.0, 0.0
	for i := range points {
		v := f(&points[i])
		if !finite(v) {
			continue
		}
		w := 1.0
		if byTime {
			w = (points[min(i+1, len(points)-1)].t - points[max(i-1, 0)].t) / 2
		}
		v /= most // squares of large numbers overflow
		sum, weights = sum+float64(w*float64(v*v)), weights+w
	}
	if weights == 0 { // all at one time
		return most
	}
	return most * math.Sqrt(sum/weights)
}

func finite(v float64) bool { return v-v == 0 }
