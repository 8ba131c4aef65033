package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/results"
)

// Signals is a table of signals over time, read from a file.
type Signals struct {
	Path  string
	Names []string  // of the columns, without time
	Named []string  // the same with the units of a row of units or a binary file: "u [kN]"
	Times []float64 // s; finite, never decreasing

	index   map[string]int // columns by name
	columns [][]float64    // by column and row; NaN if the cell is no number
	source  []int          // column of table, by column
	table   *results.Table // with lines and cells

	mu   sync.Mutex
	good map[checked]bool // columns whose cells are all values of a kind
}

// checked is a column and the kind that its cells were checked for.
type checked struct {
	col  int
	kind master.Kind
}

// mostErrors is the maximum number of errors reported for one table.
const mostErrors = 20

// ReadSignals reads a table as [results.Read] does; of two rows at one time (a jump) the last one counts. Cells are
// checked when a column is used: see [BindInputs] and [BindHistory].
//
// Errors name file, line, column and remedy. When ctx ends, its cause is the error.
func ReadSignals(ctx context.Context, path string) (*Signals, error) {
	raw, err := ReadFile(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading signals: %w; name a table that can be read", err)
	}
	return parseSignals(ctx, raw, path)
}

func parseSignals(ctx context.Context, raw []byte, path string) (*Signals, error) {
	t, err := results.Parse(raw, path, results.ReadOptions{Cells: true, Context: ctx})
	if err != nil {
		return nil, err
	}
	s := &Signals{Path: path, Times: t.Times, good: map[checked]bool{}, index: map[string]int{}, table: t}
	for i, c := range t.Columns {
		s.index[c.Name] = i
		named := c.Name
		if c.Unit != "" && c.Bare == c.Name { // from a row of units or a binary file
			named += " [" + c.Unit + "]"
		}
		s.Named = append(s.Named, named)
		s.Names, s.columns, s.source = append(s.Names, c.Name), append(s.columns, c.Values), append(s.source, i)
	}
	return s, nil
}

// ReadFile is like os.ReadFile, but returns when ctx ends, and refuses files that could make it wait for ever (see
// [diag.Readable]).
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	if err := diag.Readable(path); err != nil {
		return nil, err
	}
	var raw []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		raw, err = os.ReadFile(path)
	}()
	select {
	case <-done:
		return raw, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Items replaces the names of enumeration items in cells by their numbers: by has the items
// of enumerations by column. A cell must be the name or the number of an item; the error
// lists the items.
func (s *Signals) Items(by map[string]map[string]int64) error {
	var errs []error
	for col := range s.Names {
		items := by[s.Named[col]]
		if len(items) == 0 {
			continue
		}
		values, err := s.items(col, items)
		if err != nil {
			if errs = append(errs, err); len(errs) == mostErrors {
				break
			}
			continue
		}
		for row, n := range values {
			s.columns[col][row] = float64(n)
		}
	}
	return errors.Join(errs...)
}

// items returns the numbers of the items in a column.
func (s *Signals) items(col int, items map[string]int64) ([]int64, error) {
	out := make([]int64, 0, len(s.Times))
	for row, cell := range s.cells(col) {
		n, err := Item(strings.TrimSpace(cell), items)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", s.Path, s.table.Lines[row], s.Names[col], err)
		}
		out = append(out, n)
	}
	return out, nil
}

// Item returns the number of an enumeration item that is given by name or number; the error
// lists the items.
func Item(text string, items map[string]int64) (int64, error) {
	if n, ok := items[text]; ok {
		return n, nil
	}
	if v, err := parseNumber(text); err == nil {
		for _, n := range items {
			if float64(n) == v {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("%q is neither the name nor the number of an item; the items are %s%s", text, diag.ListItems(items),
		diag.DidYouMean(text, slices.Sorted(maps.Keys(items))))
}

// Derived is a column computed from another one: Gain times its value plus Offset, or, with
// a Map, its value replaced according to the map.
type Derived struct {
	Name         string
	Gain, Offset float64
	Map          map[int64]int64
}

// Expand replaces each column named in by with the columns derived from it. Two columns with
// one name are an error.
func (s *Signals) Expand(by map[string][]Derived) error {
	var names []string
	var columns [][]float64
	var source []int
	index := make(map[string]int, len(s.Names))
	for col, name := range s.Names {
		list, replaced := by[s.Named[col]]
		if !replaced {
			list = []Derived{{Name: name, Gain: 1}}
		}
		for _, d := range list {
			if _, twice := index[d.Name]; twice {
				return fmt.Errorf("%s:1: %s is given twice, by the column %q and by another; remove one",
					s.Path, d.Name, name)
			}
			values := s.columns[col]
			if d.Gain != 1 || d.Offset != 0 || d.Map != nil {
				values = slices.Clone(values)
				for i, v := range values {
					values[i] = d.of(v)
				}
			}
			index[d.Name] = len(names)
			names, columns, source = append(names, d.Name), append(columns, values), append(source, s.source[col])
		}
	}
	s.Names, s.Named, s.columns, s.source, s.index = names, slices.Clone(names), columns, source, index
	clear(s.good)
	return nil
}

func (d *Derived) of(v float64) float64 {
	if d.Map == nil {
		return d.Gain*v + d.Offset
	}
	if n := int64(v); float64(n) == v {
		if to, ok := d.Map[n]; ok {
			return float64(to)
		}
	}
	return v
}

// cells returns the texts of column col in the file.
func (s *Signals) cells(col int) []string {
	if c := s.table.Columns[s.source[col]]; c.Cells != nil {
		return c.Cells
	}
	out := make([]string, len(s.Times)) // of a binary file
	for row := range out {
		out[row] = s.cell(col, row)
	}
	return out
}

func (s *Signals) cell(col, row int) string {
	switch c := s.table.Columns[s.source[col]]; {
	case c.Cells != nil:
		return c.Cells[row]
	case c.Text:
		return "text"
	default:
		return string(appendReal(nil, c.Values[row]))
	}
}

// parseNumber reads a decimal number, NaN or Inf. It refuses hexadecimal numbers and
// underscores, which strconv.ParseFloat accepts.
func parseNumber(s string) (float64, error) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "xX_pP") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// Column returns the index of the column with this name.
func (s *Signals) Column(name string) (int, bool) {
	i, ok := s.index[name]
	return i, ok
}

// At returns the value of column col at time t (s): linear between rows, the first value
// before the first row, the last value after the last row, and the last of several rows at
// one time.
func (s *Signals) At(col int, t float64) float64 {
	return s.linear(col, s.row(t), t)
}

// row returns the last row at or before t, or -1.
func (s *Signals) row(t float64) int {
	return sort.Search(len(s.Times), func(i int) bool { return s.Times[i] > t }) - 1
}

func (s *Signals) linear(col, row int, t float64) float64 {
	v := s.columns[col]
	switch {
	case row < 0:
		return v[0]
	case row == len(v)-1 || s.Times[row] >= t:
		return v[row]
	}
	from, to := s.Times[row], s.Times[row+1]
	share := (t - from) / (to - from)
	if math.IsInf(to-from, 0) {
		share = (t/2 - from/2) / (to/2 - from/2)
	}
	// This form is exact for equal neighbours and does not overflow.
	return float64(v[row]*(1-share)) + float64(v[row+1]*share)
}

// check returns an error for the first cell of column col, in the first rows, that is not a
// value of the kind.
func (s *Signals) check(col int, kind master.Kind, rows int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.good[checked{col, kind}] {
		return nil
	}
	for i, v := range s.columns[col][:rows] {
		if !holds[kind].ok(v) {
			return fmt.Errorf("%s:%d: %s: %q is not %s; correct the cell",
				s.Path, s.table.Lines[i], s.Names[col], s.cell(col, i), holds[kind].what)
		}
	}
	s.good[checked{col, kind}] = rows == len(s.Times)
	return nil
}

// holds has, for each kind, the condition on the value of a cell.
var holds = [...]struct {
	what string
	ok   func(v float64) bool
}{
	master.Real: {"a finite number", func(v float64) bool { return v-v == 0 }},
	master.Integer: {"a whole number of 32 bits", func(v float64) bool {
		return v == math.Trunc(v) && v >= math.MinInt32 && v <= math.MaxInt32
	}},
	master.Boolean: {"0, 1, false or true", func(v float64) bool { return v == 0 || v == 1 }},
}
