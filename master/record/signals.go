package record

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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
	Times []float64 // s; finite, never decreasing

	index   map[string]int    // columns by name
	columns [][]float64       // by column and row; NaN if the cell is no number
	source  []int             // column in the file, by column
	lines   []int             // line in the file, by row
	records func() [][]string // all cells of the file, with the header and the times

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

// ReadSignals reads a Parquet or MAT file as [results.Read] does, or a table in the format of
// [CSV]: a header that begins with time, then one row per time. Fields may be quoted according
// to RFC 4180; blank lines are skipped. Times are finite and never decrease; of two rows at one
// time (a jump) the last one counts. The other cells are checked when a column is used: see
// [BindInputs] and [BindHistory].
//
// Errors name file, line, column and remedy. When ctx ends, its cause is the error.
func ReadSignals(ctx context.Context, path string) (*Signals, error) {
	raw, err := ReadFile(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading signals: %w; name a table that can be read", err)
	}
	if results.Binary(raw) {
		return binarySignals(raw, path)
	}
	return parseSignals(ctx, raw, path)
}

func binarySignals(raw []byte, path string) (*Signals, error) {
	t, err := results.Parse(raw, path, results.ReadOptions{})
	if err != nil {
		return nil, err
	}
	s := &Signals{Path: path, Times: t.Times, good: map[checked]bool{}, index: map[string]int{}}
	for i, c := range t.Columns {
		if c.Text {
			c.Values = slices.Repeat([]float64{math.NaN()}, len(t.Times))
		}
		s.index[c.Name] = i
		s.Names, s.columns, s.source = append(s.Names, c.Name), append(s.columns, slices.Clone(c.Values)), append(s.source, i)
	}
	for row := range t.Times {
		s.lines = append(s.lines, row+1)
	}
	s.records = sync.OnceValue(func() [][]string {
		records := make([][]string, 1, 1+len(t.Times)) // the header is not used
		for row, at := range t.Times {
			record := []string{string(appendReal(nil, at))}
			for _, c := range t.Columns {
				cell := "text"
				if !c.Text {
					cell = string(appendReal(nil, c.Values[row]))
				}
				record = append(record, cell)
			}
			records = append(records, record)
		}
		return records
	})
	return s, nil
}

// ReadFile is like os.ReadFile, but returns when ctx ends, even if a pipe has no writer.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
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

func parseSignals(ctx context.Context, raw []byte, path string) (*Signals, error) {
	if err := results.Stranger(path, raw[:min(len(raw), results.StartBytes)]); err != nil {
		return nil, err
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")) // byte order mark
	r := tableReader(raw)
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty; its first line must be time,component.variable,…", path)
	}
	if err != nil {
		return nil, tableError(path, err)
	}
	s := &Signals{Path: path, good: map[checked]bool{}}
	s.records = sync.OnceValue(func() [][]string {
		all, _ := tableReader(raw).ReadAll() // it was read before
		return all
	})
	if err := s.readHeader(header); err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, tableError(path, err)
		}
		line, _ := r.FieldPos(0)
		if err := s.readRow(row, line); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reading %s: %w", path, context.Cause(ctx))
	}
	if len(s.Times) == 0 {
		return nil, fmt.Errorf("%s: there is no row below the header; give at least one", path)
	}
	return s, nil
}

func tableReader(raw []byte) *csv.Reader {
	r := csv.NewReader(bytes.NewReader(raw))
	r.ReuseRecord = true
	return r
}

func (s *Signals) readHeader(header []string) error {
	first := strings.TrimSpace(header[0])
	if strings.ContainsAny(first, ";\t") {
		return fmt.Errorf("%s:1: the fields are separated by semicolons or tabs; separate them by commas, with decimal points", s.Path)
	}
	if !strings.EqualFold(first, "time") {
		return fmt.Errorf("%s:1: the first column is %q; it must be time", s.Path, first)
	}
	s.index = make(map[string]int, len(header))
	for i, name := range header[1:] {
		name = strings.TrimSpace(name)
		if name == "" {
			return fmt.Errorf("%s:1: column %d has no name; call it component.variable", s.Path, i+2)
		}
		if _, twice := s.index[name]; twice {
			return fmt.Errorf("%s:1: there are two columns %q; remove one", s.Path, name)
		}
		s.index[name] = i
		s.Names, s.source = append(s.Names, name), append(s.source, i)
	}
	s.columns = make([][]float64, len(s.Names))
	return nil
}

func (s *Signals) readRow(row []string, line int) error {
	t, err := parseNumber(row[0])
	if err != nil || math.IsNaN(t) || math.IsInf(t, 0) {
		return fmt.Errorf("%s:%d: time: %q is not a finite number; give seconds with a decimal point", s.Path, line, row[0])
	}
	if n := len(s.Times); n > 0 && t < s.Times[n-1] {
		return fmt.Errorf("%s:%d: time %g is before the time %g of the row above; sort the rows by time", s.Path, line, t, s.Times[n-1])
	}
	s.Times = append(s.Times, t)
	s.lines = append(s.lines, line)
	for i, cell := range row[1:] {
		v, err := parseNumber(cell)
		if err != nil {
			v = math.NaN()
		}
		s.columns[i] = append(s.columns[i], v)
	}
	return nil
}

// Items replaces the names of enumeration items in cells by their numbers: by has the items
// of enumerations by column. A cell must be the name or the number of an item; the error
// lists the items.
func (s *Signals) Items(by map[string]map[string]int32) error {
	var errs []error
	for col, name := range s.Names {
		items := by[name]
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
func (s *Signals) items(col int, items map[string]int32) ([]int32, error) {
	out := make([]int32, 0, len(s.Times))
	for row, cell := range s.cells(col) {
		n, err := Item(strings.TrimSpace(cell), items)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", s.Path, s.lines[row], s.Names[col], err)
		}
		out = append(out, n)
	}
	return out, nil
}

// Item returns the number of an enumeration item that is given by name or number; the error
// lists the items.
func Item(text string, items map[string]int32) (int32, error) {
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
	return 0, fmt.Errorf("%q is neither the name nor the number of an item; the items are %s", text, diag.ListItems(items))
}

// Derived is a column computed from another one: Gain times its value plus Offset, or, with
// a Map, its value replaced according to the map.
type Derived struct {
	Name         string
	Gain, Offset float64
	Map          map[int32]int32
}

// Expand replaces each column named in by with the columns derived from it. Two columns with
// one name are an error.
func (s *Signals) Expand(by map[string][]Derived) error {
	var names []string
	var columns [][]float64
	var source []int
	index := make(map[string]int, len(s.Names))
	for col, name := range s.Names {
		list, replaced := by[name]
		if !replaced {
			list = []Derived{{Name: name, Gain: 1}}
		}
		for _, d := range list {
			if _, twice := index[d.Name]; twice {
				return fmt.Errorf("%s:1: %s is given twice, by the column %q and by another; remove one",
					s.Path, d.Name, name)
			}
			values := s.columns[col]
			if d.Map != nil {
				s.readBooleans(col)
			}
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
	s.Names, s.columns, s.source, s.index = names, columns, source, index
	clear(s.good)
	return nil
}

func (d *Derived) of(v float64) float64 {
	if d.Map == nil {
		return d.Gain*v + d.Offset
	}
	if n := int32(v); float64(n) == v {
		if to, ok := d.Map[n]; ok {
			return float64(to)
		}
	}
	return v
}

// cells returns the texts of column col in the file.
func (s *Signals) cells(col int) []string {
	out := make([]string, len(s.Times))
	for row := range out {
		out[row] = s.cell(col, row)
	}
	return out
}

func (s *Signals) cell(col, row int) string { return s.records()[row+1][s.source[col]+1] }

// parseNumber reads a decimal number, NaN or Inf. It refuses hexadecimal numbers and
// underscores, which strconv.ParseFloat accepts.
func parseNumber(s string) (float64, error) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "xX_pP") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// tableError adds file and remedy to an error of encoding/csv.
func tableError(path string, err error) error {
	var pe *csv.ParseError
	if !errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", path, err)
	}
	remedy := "close the quotes, and double a quote inside a quoted field"
	if errors.Is(pe.Err, csv.ErrFieldCount) {
		remedy = "give every row as many fields as the header, and write numbers with a decimal point, not a comma"
	}
	return fmt.Errorf("%s:%d: %w; %s", path, pe.Line, pe.Err, remedy)
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
	case row == len(v)-1 || s.Times[row] == t:
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
// value of the kind. It replaces the words false and true by numbers.
func (s *Signals) check(col int, kind master.Kind, rows int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.good[checked{col, kind}] {
		return nil
	}
	if kind == master.Boolean {
		s.readBooleans(col)
	}
	for i, v := range s.columns[col][:rows] {
		if !holds[kind].ok(v) {
			return fmt.Errorf("%s:%d: %s: %q is not %s; correct the cell",
				s.Path, s.lines[i], s.Names[col], s.cell(col, i), holds[kind].what)
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

// readBooleans replaces the words false and true in a column by 0 and 1.
func (s *Signals) readBooleans(col int) {
	values := s.columns[col]
	if !slices.ContainsFunc(values, math.IsNaN) {
		return
	}
	for i, cell := range s.cells(col) {
		switch strings.ToLower(strings.TrimSpace(cell)) {
		case "false":
			values[i] = 0
		case "true":
			values[i] = 1
		}
	}
}
