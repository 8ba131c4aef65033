package results

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Norm is the scale of relative differences.
type Norm string

// The norms, each of A over the compared time.
const (
	Range Norm = "range" // maximum minus minimum
	RMS   Norm = "rms"   // root mean square
)

// Norms lists the norms.
var Norms = []Norm{Range, RMS}

// Tolerance is a tolerance for the variables that Match accepts; nil = all.
type Tolerance struct {
	Match func(name string) bool
	Value float64
}

// CompareOptions are the options of Compare. The zero value compares all common variables and
// allows no differences.
type CompareOptions struct {
	Norm Norm // "" = Range
	// The largest allowed difference is RelTol times the norm plus AbsTol; MeanTol is the limit
	// of NRMSE. The last matching tolerance of each list applies; without one, the tolerance is
	// 0, and NRMSE has no limit.
	RelTol, AbsTol, MeanTol []Tolerance
	// Usual > 0 is the relative tolerance of variables without a tolerance in any list. With
	// it, variables with only a MeanTol have no limit of the difference.
	Usual float64
	// ByTime weights each point by the time between its neighbours instead of equally.
	ByTime bool
	// TimeTol is the largest difference of equal times in s; 0 = a millionth of the mean step of
	// the finer table.
	TimeTol float64
	Match   map[string]string      // names in A to names in B
	Select  func(name string) bool // variables of A; nil = all
}

// Comparison is the result of Compare.
type Comparison struct {
	From, To float64 // s; covered by both tables
	// Points is the number of compared points: the rows of both tables, where rows at equal times
	// count once. If a table has no row at a point, its values are interpolated linearly, at
	// InterpolatedA and InterpolatedB points.
	Points, InterpolatedA, InterpolatedB int
	OutsideA, OutsideB                   int // rows outside From to To
	Norm                                 Norm
	ByTime                               bool
	Variables                            []Difference // in the order of A
	OnlyA, OnlyB                         []string     // variables without a counterpart
	Notes                                []string

	points  []meeting
	columns [][2]*Column // by variable
}

// Errors returns B − A of a variable, by index, at all points: NaN if one of them is not a number;
// limited to the largest float64.
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

// Column returns the column of A that has a variable, by index.
func (c *Comparison) Column(variable int) *Column { return c.columns[variable][0] }

// Difference is the difference B − A of one variable. Scale, Max, RMSE and Limit are limited to
// the largest float64; Agrees uses the exact values.
type Difference struct {
	Name  string  // in A, without unit
	InB   string  // name in B, without unit
	Scale float64 // norm of A; if A is constant, its magnitude
	// Constant: A does not change.
	Constant bool
	// Max is the largest |B − A|, at the time At with the values A and B; NaN if there is no
	// point with two numbers.
	Max, At, A, B float64
	RMSE          float64
	NRMSE         float64 // RMSE / Scale; NaN if Scale is 0 and RMSE is not
	Unequal       int     // points where a value is not finite and the other differs
	Limit         float64 // of Max
	MeanLimit     float64 // of NRMSE; Inf = none
	Digits        int     // maximum number of significant digits in B
	Agrees        bool
}

// Agree reports whether all variables agree.
func (c *Comparison) Agree() bool {
	return !slices.ContainsFunc(c.Variables, func(d Difference) bool { return !d.Agrees })
}

// Compare compares the common variables of two tables over the time that both cover.
//
// With the values a and b at the points, NRMSE = √(Σ w (b−a)² / Σ w) / s, where s is the norm of
// a and the weights w are equal or those of the trapezoidal rule. If a table has several rows at
// a time (a jump), the first is the value before and the last the value after the jump; both are
// compared with the other table.
//
// If the units differ and have the same dimension, b is converted to the unit of a. Notes reports
// different units.
//
// Names match if they are equal with or without units, or if one is "….other" and this is
// unambiguous.
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
			same, ok := cb.In(ca.Unit)
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

// match finds the variables to compare: their columns in a and in b.
func (c *Comparison) match(a, b *Table, o CompareOptions) (pairs [][2]int, err error) {
	chosen := func(i int) bool { return o.Select == nil || o.Select(a.Columns[i].Bare) }
	inB, taken, notes, err := counterparts(a, b, o.Match, chosen)
	if err != nil {
		return nil, err
	}
	c.Notes = append(c.Notes, notes...)
	for i := range a.Columns {
		if !chosen(i) {
			continue
		}
		ca, k := &a.Columns[i], inB[i]
		switch {
		case k < 0:
			c.OnlyA = append(c.OnlyA, ca.Name)
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
		default:
			pairs = append(pairs, [2]int{i, k})
		}
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

// Counterparts returns, by their names without units, the variables of b that are variables of a with other names, with
// these: as [Compare] matches them, and as match says. Notes say how.
func Counterparts(a, b *Table, match map[string]string) (names map[string]string, notes []string, err error) {
	inB, _, notes, err := counterparts(a, b, match, func(int) bool { return true })
	names = map[string]string{}
	for i, k := range inB {
		if k >= 0 && a.Columns[i].Bare != b.Columns[k].Bare {
			names[b.Columns[k].Bare] = a.Columns[i].Bare
		}
	}
	return names, notes, err
}

// counterparts returns the column of b for each of a, -1 = none, and which of b these are.
func counterparts(a, b *Table, match map[string]string, chosen func(i int) bool) (inB []int, taken []bool, notes []string, err error) {
	inB = slices.Repeat([]int{-1}, len(a.Columns))
	taken = make([]bool, len(b.Columns))
	if err := matchNamed(a, b, match, inB, taken); err != nil {
		return nil, nil, nil, err
	}
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
	return inB, taken, matchEnds(a, b, inB, taken, chosen), nil
}

// matchNamed matches the variables that the user has named.
func matchNamed(a, b *Table, match map[string]string, inB []int, taken []bool) error {
	find := func(t *Table, name string) int {
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		if at < 0 {
			at = slices.IndexFunc(t.Columns, func(c Column) bool { return c.Bare == name })
		}
		return at
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(match)) {
		i, k := find(a, name), find(b, match[name])
		if i < 0 {
			errs = append(errs, noVariable(a, name))
		}
		if k < 0 {
			errs = append(errs, noVariable(b, match[name]))
		}
		if i >= 0 && k >= 0 {
			inB[i], taken[k] = k, true
		}
	}
	return errors.Join(errs...)
}

// noVariable returns the error for a variable that a table does not have.
func noVariable(t *Table, name string) error {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Bare)
	}
	return fmt.Errorf("%s has no variable %s%s", t.Path, name, diag.DidYouMean(name, names))
}

// matchEnds matches names of which one is the end of the other after a dot, if unambiguous.
func matchEnds(a, b *Table, inB []int, taken []bool, chosen func(int) bool) (notes []string) {
	named, ending := map[string][]int{}, map[string][]int{} // free columns of B by their name, and by each end of it
	for k, column := range b.Columns {
		if !taken[k] {
			named[column.Bare] = append(named[column.Bare], k)
			for end := range endsOf(column.Bare) {
				ending[end] = append(ending[end], k)
			}
		}
	}
	candidates := make([][]int, len(a.Columns))
	of := make([]int, len(b.Columns))
	for i, column := range a.Columns {
		if inB[i] >= 0 || !chosen(i) {
			continue
		}
		list := slices.Clone(ending[column.Bare])
		for end := range endsOf(column.Bare) {
			list = append(list, named[end]...)
		}
		slices.Sort(list)
		for _, k := range list {
			of[k]++
		}
		candidates[i] = list
	}
	told := map[string]int{}
	var order []string
	for i, list := range candidates {
		switch {
		case len(list) == 0:
		case len(list) > 1 || of[list[0]] > 1:
			notes = append(notes, fmt.Sprintf("%s matches several variables of the other table; choose one with --match",
				a.Columns[i].Bare))
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
	return append(notes, order...)
}

// endsOf iterates over the ends of a name after its dots.
func endsOf(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, end, ok := strings.Cut(name, "."); ok && yield(end); {
			_, end, ok = strings.Cut(end, ".")
		}
	}
}

// place is a position in a table: between row and row+1, with the weight share of the latter.
type place struct {
	row   int
	share float64
}

func (p place) of(v []float64) float64 {
	if p.share == 0 {
		return v[p.row]
	}
	// This form is exact for equal neighbours and does not overflow.
	return float64(v[p.row]*(1-p.share)) + float64(v[p.row+1]*p.share)
}

// meeting is a point at which two tables are compared.
type meeting struct {
	t    float64
	a, b place
}

// align finds the points of comparison. Times that differ by less than the tolerance are equal.
func (c *Comparison) align(a, b []float64, tolerance float64) ([]meeting, error) {
	if tolerance == 0 {
		tolerance = timeTolerance(a, b)
	}
	c.From, c.To = max(a[0], b[0]), min(a[len(a)-1], b[len(b)-1])
	if c.From > c.To+tolerance {
		return nil, fmt.Errorf("have no time in common: one holds %g to %g s, the other %g to %g s",
			a[0], a[len(a)-1], b[0], b[len(b)-1])
	}
	i, lastA := rowsWithin(a, c.From-tolerance, c.To+tolerance)
	k, lastB := rowsWithin(b, c.From-tolerance, c.To+tolerance)
	c.OutsideA, c.OutsideB = len(a)-(lastA-i), len(b)-(lastB-k)
	var points []meeting
	for i < lastA || k < lastB {
		ta, tb := math.Inf(1), math.Inf(1)
		if i < lastA {
			ta = a[i]
		}
		if k < lastB {
			tb = b[k]
		}
		t, na, nb := tb, 0, 0
		if tb <= ta+tolerance {
			nb = rowsAtOnce(b, k, lastB)
		}
		if ta <= tb+tolerance {
			t, na = ta, rowsAtOnce(a, i, lastA)
		}
		steps := 1
		if na > 1 || nb > 1 {
			steps = 2 // before and after the jump
		}
		for step := range steps {
			m := meeting{t: t}
			var betweenA, betweenB int
			m.a, betweenA = locate(a, i, na, step, t)
			m.b, betweenB = locate(b, k, nb, step, t)
			c.InterpolatedA, c.InterpolatedB = c.InterpolatedA+betweenA, c.InterpolatedB+betweenB
			points = append(points, m)
		}
		i, k = i+na, k+nb
	}
	c.points, c.Points = points, len(points)
	return points, nil
}

// timeTolerance returns a millionth of the mean step of the finer table, 0 if none has steps.
func timeTolerance(a, b []float64) float64 {
	step := math.Inf(1)
	for _, t := range [][]float64{a, b} {
		if n := len(t); n > 1 && t[n-1] > t[0] {
			step = min(step, (t[n-1]-t[0])/float64(n-1))
		}
	}
	if math.IsInf(step, 0) {
		return 0
	}
	return 1e-6 * step
}

// rowsWithin returns the rows from, …, to-1 with times from first to last.
func rowsWithin(t []float64, first, last float64) (from, to int) {
	from, _ = slices.BinarySearch(t, first)
	to, _ = slices.BinarySearchFunc(t, last, func(e, target float64) int {
		if e > target {
			return 1
		}
		return -1
	})
	return from, to
}

// rowsAtOnce returns the number of rows from row to last-1 with the time of row.
func rowsAtOnce(t []float64, row, last int) int {
	n := 1
	for row+n < last && t[row+n] == t[row] {
		n++
	}
	return n
}

// locate returns the place of time at in a table whose next rows, n of them, begin at row. If
// they are at this time (n > 0), step 0 is the first and step 1 the last of them; otherwise the
// place lies between two rows, and interpolated is 1, or at an end of the table.
func locate(t []float64, row, n, step int, at float64) (p place, interpolated int) {
	switch {
	case n > 0:
		return place{row: row + step*(n-1)}, 0
	case row == 0 || row == len(t): // within the tolerance of an end
		return place{row: min(row, len(t)-1)}, 0
	}
	return place{row - 1, min(max((at-t[row-1])/(t[row]-t[row-1]), 0), 1)}, 1
}

// compare compares one variable at the points.
func compare(a, b *Column, points []meeting, o CompareOptions) Difference {
	d := Difference{Name: a.Bare, InB: b.Bare, Max: math.NaN(), Digits: b.Digits, MeanLimit: math.Inf(1)}
	unit := 1.0 // values are divided by it, because differences of large values overflow
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
	const rounding = 1e-12 // relative changes below are rounding
	d.Constant = !(greatest-least > rounding*magnitude)
	switch {
	case d.Constant:
		d.Scale = magnitude
	case o.Norm == Range:
		d.Scale = greatest - least
	default:
		d.Scale = meanSquare(points, o.ByTime, magnitude, func(m *meeting) float64 { return m.a.of(a.Values) / unit })
	}
	d.RMSE = meanSquare(points, o.ByTime, d.Max, func(m *meeting) float64 {
		return m.b.of(b.Values)/unit - m.a.of(a.Values)/unit
	})
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
	case bounded: // MeanTol alone decides
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

// within limits v to the largest float64.
func within(v float64) float64 { return max(-math.MaxFloat64, min(v, math.MaxFloat64)) }

// tolerance returns the tolerance of a list for a variable, 0 if there is none.
func tolerance(list []Tolerance, c *Column) (value float64, given bool) {
	for _, t := range slices.Backward(list) {
		if t.Match == nil || t.Match(c.Name) || t.Match(c.Bare) {
			return t.Value, true
		}
	}
	return 0, false
}

// meanSquare returns the root mean square of the finite values of f at the points, of which none
// exceeds most.
func meanSquare(points []meeting, byTime bool, most float64, f func(*meeting) float64) float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return most // NaN: no values
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
