package record

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
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
	texts   [][]string     // the same, exact; nil = the cells are numbers of a binary file
	table   *results.Table // with lines

	mu   sync.Mutex
	good map[checked]bool // columns whose cells are all values of a port
}

// checked is a column and the port that its cells were checked for.
type checked struct {
	col  int
	port master.Port
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
		s.Names, s.columns, s.texts = append(s.Names, c.Name), append(s.columns, c.Values), append(s.texts, c.Cells)
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
		s.texts[col] = make([]string, len(values))
		for row, n := range values {
			s.columns[col][row], s.texts[col][row] = float64(n), strconv.FormatInt(n, 10)
		}
	}
	return errors.Join(errs...)
}

// items returns the numbers of the items in a column.
func (s *Signals) items(col int, items map[string]int64) ([]int64, error) {
	out := make([]int64, 0, len(s.Times))
	for row := range s.Times {
		n, err := Item(strings.TrimSpace(s.cell(col, row)), items)
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
		given, whole := integer(v, text)
		for _, n := range items {
			if whole && n == given {
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
	var texts [][]string
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
			values, text := s.columns[col], s.texts[col]
			if d.Gain != 1 || d.Offset != 0 || d.Map != nil {
				values, text = slices.Clone(values), make([]string, len(values))
				for row, v := range values {
					values[row], text[row] = d.of(v, s.cell(col, row))
				}
			}
			index[d.Name] = len(names)
			names, columns, texts = append(names, d.Name), append(columns, values), append(texts, text)
		}
	}
	s.Names, s.Named, s.columns, s.texts, s.index = names, slices.Clone(names), columns, texts, index
	clear(s.good)
	return nil
}

// of returns the value derived from a number, and its text.
func (d *Derived) of(v float64, text string) (float64, string) {
	if n, whole := integer(v, text); d.Map != nil && whole {
		if to, ok := d.Map[n]; ok {
			return float64(to), strconv.FormatInt(to, 10)
		}
	}
	if v != v || d.Map != nil {
		return v, text
	}
	v = d.Gain*v + d.Offset
	return v, string(appendReal(nil, v))
}

// text returns a cell; "" if it is a number of a binary file.
func (s *Signals) text(col, row int) string {
	if s.texts[col] == nil {
		return ""
	}
	return s.texts[col][row]
}

// cell is like text, but also writes a number of a binary file.
func (s *Signals) cell(col, row int) string {
	if s.texts[col] == nil {
		return string(appendReal(nil, s.columns[col][row]))
	}
	return s.texts[col][row]
}

// integer returns the whole number in a cell of which v is the nearest float64; the text is needed where that is not
// exact.
func integer(v float64, text string) (n int64, whole bool) {
	if math.Abs(v) < 1<<53 {
		return int64(v), v == math.Trunc(v)
	}
	f, _, err := big.ParseFloat(strings.TrimSpace(text), 10, 128, big.ToNearestEven)
	if err != nil {
		return 0, false
	}
	n, off := f.Int64()
	return n, off == big.Exact && float64(n) == v
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

// check returns an error for the first cell of column col, in the first rows, that is not a value of the port.
func (s *Signals) check(col int, p master.Port, rows int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.good[checked{col, p}] {
		return nil
	}
	for row := range rows {
		if _, ok := s.value(col, row, p); !ok {
			return fmt.Errorf("%s:%d: %s: %q is not %s; correct the cell",
				s.Path, s.table.Lines[row], s.Names[col], s.cell(col, row), p.Values())
		}
	}
	s.good[checked{col, p}] = rows == len(s.Times)
	return nil
}

// held returns a column as a function of its rows, after a check.
func (s *Signals) held(col int, p master.Port) (func(row int) master.Scalar, error) {
	return func(row int) master.Scalar {
		v, _ := s.value(col, row, p)
		return v
	}, s.check(col, p, len(s.Times))
}

// value returns a cell as a value of a port, if it is one.
func (s *Signals) value(col, row int, p master.Port) (out master.Scalar, ok bool) {
	v := s.columns[col][row]
	switch out.Kind = p.Kind; p.Kind {
	case master.Real:
		out.Real, ok = v, true
	case master.Integer:
		out.Integer, ok = integer(v, s.text(col, row))
	case master.Boolean:
		out.Boolean, ok = v == 1, v == 0 || v == 1
	case master.String:
		if out.Text, ok = s.text(col, row), s.texts[col] != nil; ok && p.Binary {
			b, err := hex.DecodeString(strings.TrimSpace(out.Text))
			out.Text, ok = string(b), err == nil
		}
	}
	return out, ok && p.Fits(out)
}
