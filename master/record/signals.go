package record

import (
	"bytes"
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

	"github.com/macrostep/macrostep/fmi/diag"
)

// Signals is a table of signals over time, read from a file.
type Signals struct {
	Path  string
	Names []string  // of the columns, without time
	Times []float64 // s; finite, never decreasing

	columns [][]float64 // by column and row; NaN for a text
	source  []int       // by column: that of the file; nil = the same
	lines   []int       // by row, in the file
	raw     []byte      // the file, for the cells that are texts
}

// ReadSignals reads a table as [CSV] writes it: a header with time first, then
// a row for each time. Fields may be quoted as RFC 4180 says; blank lines are
// skipped. Times are finite and never decrease; two rows at one time are a jump,
// of which the last holds. What the other cells hold is judged when a column is
// used: see [BindInputs] and [BindHistory].
//
// Errors name file, line, column and remedy.
func ReadSignals(path string) (*Signals, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading signals: %w; name a table that can be read", err)
	}
	return parseSignals(raw, path)
}

func parseSignals(raw []byte, path string) (*Signals, error) {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")) // byte order mark
	r := tableReader(raw)
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty; its first line must be time,component.variable,…", path)
	}
	if err != nil {
		return nil, tableError(path, err)
	}
	s := &Signals{Path: path, raw: raw}
	if err := s.readHeader(header); err != nil {
		return nil, err
	}
	for {
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
	if len(header) == 1 && strings.ContainsAny(first, ";\t") {
		return fmt.Errorf("%s:1: the fields are separated by semicolons or tabs; separate them by commas, with decimal points", s.Path)
	}
	if !strings.EqualFold(first, "time") {
		return fmt.Errorf("%s:1: the first column is %q; it must be time", s.Path, first)
	}
	for i, name := range header[1:] {
		name = strings.TrimSpace(name)
		if name == "" {
			return fmt.Errorf("%s:1: column %d has no name; call it component.variable", s.Path, i+2)
		}
		if slices.Contains(s.Names, name) {
			return fmt.Errorf("%s:1: there are two columns %q; remove one", s.Path, name)
		}
		s.Names = append(s.Names, name)
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

// Items gives cells of enumerations their numbers: by has the items by the names of the
// columns. A cell is the name of an item or its number; any other is an error, which names
// the items.
func (s *Signals) Items(by map[string]map[string]int32) error {
	var errs []error
	for col, name := range s.Names {
		items := by[name]
		if len(items) == 0 {
			continue
		}
		values, err := s.items(col, items)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for row, n := range values {
			s.columns[col][row] = float64(n)
		}
	}
	return errors.Join(errs...)
}

// items gives the numbers of the items in a column.
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

// Item gives the number of an item of an enumeration, by its name or its number; the
// error names the items.
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
	return 0, fmt.Errorf("%q is neither the name nor the number of an item; there are %s", text, diag.ListItems(items))
}

// Derived is a column that follows from another: Gain times it plus Offset, or, with a
// Map, the numbers that the map has replaced.
type Derived struct {
	Name         string
	Gain, Offset float64
	Map          map[int32]int32
}

// Expand puts columns that follow from others in their place: by has them by the names
// of the columns. Two columns of one name are an error.
func (s *Signals) Expand(by map[string][]Derived) error {
	var names []string
	var columns [][]float64
	var source []int
	for col, name := range s.Names {
		from := col
		if s.source != nil {
			from = s.source[col]
		}
		list, replaced := by[name]
		if !replaced {
			list = []Derived{{Name: name, Gain: 1}}
		}
		for _, d := range list {
			if slices.Contains(names, d.Name) {
				return fmt.Errorf("%s:1: %s is given twice, by the column %q and by another; remove one", s.Path, d.Name, name)
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
			names, columns, source = append(names, d.Name), append(columns, values), append(source, from)
		}
	}
	s.Names, s.columns, s.source = names, columns, source
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

// cells gives column col as it stands in the file.
func (s *Signals) cells(col int) []string {
	if s.source != nil {
		col = s.source[col]
	}
	r := tableReader(s.raw)
	out := make([]string, 0, len(s.Times)+1)
	for range len(s.Times) + 1 {
		row, err := r.Read()
		if err != nil {
			panic("record: a table that was read once cannot be read again: " + err.Error())
		}
		out = append(out, strings.Clone(row[col+1]))
	}
	return out[1:] // without the header
}

// parseNumber reads a decimal number, NaN or Inf. Hexadecimal numbers and
// underscores, which Go would take, are no numbers in a table.
func parseNumber(s string) (float64, error) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "xX_pP") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// tableError words an error of encoding/csv with file and remedy.
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

// Column gives the index of the column with this name.
func (s *Signals) Column(name string) (int, bool) {
	i := slices.Index(s.Names, name)
	return i, i >= 0
}

// At gives column col at time t: linear between rows, the first value before
// the first row and the last value after the last one. At a jump it gives the
// last of the rows.
func (s *Signals) At(col int, t float64) float64 {
	return s.linear(col, s.row(t), t)
}

// row gives the last row at or before t, or -1.
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
	// This form gives equal neighbours exactly, and does not overflow.
	return float64(v[row]*(1-share)) + float64(v[row+1]*share)
}

// check gives an error for the first cell of column col in the rows from up to
// to that ok refuses; kind says what was expected.
func (s *Signals) check(col, from, to int, kind string, ok func(v float64) bool) error {
	for i := from; i < to; i++ {
		if !ok(s.columns[col][i]) {
			return fmt.Errorf("%s:%d: %s: %q is not %s; correct the cell", s.Path, s.lines[i], s.Names[col], s.cells(col)[i], kind)
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
