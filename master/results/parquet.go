package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/macrostep/macrostep/master/internal/parquetfile"
)

func isParquet(start []byte) bool { return bytes.HasPrefix(start, []byte("PAR1")) }

// parquetSource is a Parquet file.
type parquetSource struct {
	file   *parquet.File
	leaves []*parquet.Column
	broken bool // the footer is missing
}

func (p *parser) openParquet(file io.ReaderAt, size int64) (source, error) {
	s := &parquetSource{}
	var err error
	if s.file, s.broken, err = parquetfile.Open(file, size); err != nil {
		return nil, err
	}
	s.add(s.file.Root())
	return s, nil
}

// add adds the leaves of a column.
func (s *parquetSource) add(c *parquet.Column) {
	if c.Leaf() {
		s.leaves = append(s.leaves, c)
	}
	for _, part := range c.Columns() {
		s.add(part)
	}
}

func (s *parquetSource) names() (names []string) {
	for _, c := range s.leaves {
		names = append(names, strings.Join(c.Path(), "."))
	}
	return names
}

func (s *parquetSource) rows() int { return int(min(max(s.file.NumRows(), 0), math.MaxInt)) }

func (s *parquetSource) read(p *parser) error {
	if s.broken {
		p.note("the file has no footer, because its run was killed or goes on: it is read up to its last whole row group")
	}
	about := map[string]map[string]string{}
	if text, ok := s.file.Lookup(parquetfile.ColumnsKey); ok {
		_ = json.Unmarshal([]byte(text), &about) // without it, units are unknown
	}
	buffer := make([]parquet.Value, 1024)
	for i := range p.fields {
		c, leaf := &p.t.Columns[i], s.leaves[i]
		if p.left[i] {
			continue
		}
		if c.Unit == "" {
			c.Unit = about[c.Name]["unit"]
		}
		number, text := numberOf(leaf), textOf(leaf, p.options)
		if number == nil {
			p.texts[i]++
			if text == nil {
				continue
			}
			number = func(parquet.Value) float64 { return math.NaN() }
		}
		rows := s.rows()
		c.Values = make([]float64, 0, min(rows, 1<<20)) // the number of rows may be wrong
		for _, g := range s.file.RowGroups() {
			if err := appendChunk(c, g.ColumnChunks()[i], number, text, buffer, rows); err != nil {
				return fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
		if len(c.Values) != rows {
			return fmt.Errorf("column %s has %d values in %d rows", c.Name, len(c.Values), rows)
		}
	}
	if n := len(s.leaves); n > p.fields {
		return errors.New("its last column has no name")
	}
	return nil
}

// appendChunk appends the values of a column in a row group, to at most so many in all, and their texts unless
// text is nil.
func appendChunk(c *Column, chunk parquet.ColumnChunk, number func(parquet.Value) float64,
	text func(parquet.Value) string, buffer []parquet.Value, most int) error {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for values := page.Values(); ; {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				at, cell := math.NaN(), ""
				if !v.IsNull() {
					at = number(v)
				}
				if c.Values = append(c.Values, at); text == nil {
					continue
				}
				if !v.IsNull() {
					cell = text(v)
				}
				c.Cells = append(c.Cells, cell)
			}
			if len(c.Values) > most {
				return fmt.Errorf("it has more than %d values", most)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if n == 0 {
				return io.ErrNoProgress
			}
		}
		parquet.Release(page)
	}
}

// textOf returns the function that makes a text of a value of a column; nil = there are no cells, or its numbers are
// exact.
func textOf(c *parquet.Column, o ReadOptions) func(parquet.Value) string {
	if !o.Cells || c.MaxRepetitionLevel() > 0 {
		return nil
	}
	signed := c.Type().Kind() == parquet.Int64
	if l := c.Type().LogicalType(); l != nil {
		switch l := l.Value.(type) {
		case *format.StringType:
			return parquet.Value.String
		case *format.IntType:
			if signed && !l.IsSigned {
				return func(v parquet.Value) string { return strconv.FormatUint(v.Uint64(), 10) }
			}
		default:
			return nil
		}
	}
	if signed {
		return parquet.Value.String
	}
	return nil
}

// numberOf returns the function that makes a number of a value of a column; nil = the column holds no numbers.
func numberOf(c *parquet.Column) func(parquet.Value) float64 {
	if c.MaxRepetitionLevel() > 0 {
		return nil
	}
	scale, unsigned := 1.0, false
	if l := c.Type().LogicalType(); l != nil {
		switch l := l.Value.(type) {
		case nil:
		case *format.IntType:
			unsigned = !l.IsSigned
		case *format.DecimalType:
			scale = math.Pow10(int(l.Scale))
		default:
			return nil // a date, say
		}
	}
	switch c.Type().Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) float64 {
			if v.Boolean() {
				return 1
			}
			return 0
		}
	case parquet.Int32:
		if unsigned {
			return func(v parquet.Value) float64 { return float64(v.Uint32()) }
		}
		return func(v parquet.Value) float64 { return float64(v.Int32()) / scale }
	case parquet.Int64:
		if unsigned {
			return func(v parquet.Value) float64 { return float64(v.Uint64()) }
		}
		return func(v parquet.Value) float64 { return float64(v.Int64()) / scale }
	case parquet.Float:
		return func(v parquet.Value) float64 { return float64(v.Float()) }
	case parquet.Double:
		return func(v parquet.Value) float64 { return v.Double() }
	}
	return nil
}
