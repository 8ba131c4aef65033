package results

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Table holds numbers over time.
type Table struct {
	Path    string
	Times   []float64 // s; finite, never decreasing; two rows at one time are a jump
	Columns []Column  // without time
	Notes   []string  // assumptions about the format
	Lines   []int     // with ReadOptions.Cells, the line of each row in the file
}

// Column is one variable of a table.
type Column struct {
	Name   string    // as in the header
	Bare   string    // name without unit
	Unit   string    // "" = not given
	Values []float64 // by row; NaN for an empty cell; nil if Text
	Text   bool      // some cells are no numbers
	Odd    string    // the first of these cells with its line, for messages; "" = unknown
	Digits int       // maximum number of significant digits
	// Cells is, with ReadOptions.Cells, the text by row; of a binary file only of integers and texts. Values is never
	// nil then.
	Cells []string
}

// ReadOptions are the options of Read. The zero value reads all variables of a file with a column
// time or t.
type ReadOptions struct {
	TimeColumn string // name of the time column; "" = time or t
	// Select reports whether a variable is kept, by its name with or without unit; nil = all.
	// Other columns are left out and take no memory.
	Select func(name string) bool
	// MostValues is the maximum number of values; 0 = 2^29, which take 4 GiB.
	MostValues int
	// Cells keeps the texts of all cells and their lines. Two columns of one name are an error then.
	Cells bool
	// Context ends the reading with its cause; nil = nothing does.
	Context context.Context

	header bool // read only the header
}

const mostValues = 1 << 29

// Read reads a table from a file: a header, then one row per time. It accepts the formats of many
// programs: fields separated by commas, semicolons or tabs, quoted or not; decimal points or
// commas; a column time or t in any case, with or without a unit (s, ms, us, min, h; Times are in
// s); units after names, as "v [m/s]", "v (m/s)" or "v / m/s", or in a second row; "true" and
// "false" for 1 and 0; a line sep=; of spreadsheets; comment lines that begin with # before the
// header. An incomplete last line is left out. Table.Notes lists the assumptions about the format.
//
// Parquet files of any program, and MAT files of level 4 with the trajectories of Modelica tools, are
// recognised by their first bytes.
//
// Errors name file, line and remedy.
func Read(path string, o ReadOptions) (*Table, error) {
	f, err := diag.Open(path)
	if err == nil {
		defer f.Close()
		var info os.FileInfo
		if info, err = f.Stat(); err == nil {
			return parse(f, info.Size(), path, o)
		}
	}
	return nil, fmt.Errorf("reading results: %w; name a table that can be read", err)
}

// Header reads the columns of a table without values and without the time column. It does not read
// units in a second row.
func Header(path string) ([]Column, error) {
	t, err := Read(path, ReadOptions{header: true})
	if err != nil {
		return nil, err
	}
	return t.Columns, nil
}

// parser reads one table.
type parser struct {
	t       *Table
	csv     *csv.Reader
	end     *lastByte
	skipped int // lines before the header
	timeAt  int // column of the time
	scale   float64
	pointAt int // line of the first decimal point, 0 = none yet
	commaAt int
	texts   []int  // by column: cells that are no numbers
	left    []bool // by column: it is not kept
	kept    int    // columns
	fields  int
	options ReadOptions
}

// lastByte keeps the last byte that was read.
type lastByte struct {
	r    io.Reader
	last byte
}

func (l *lastByte) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if n > 0 {
		l.last = b[n-1]
	}
	return n, err
}

// Parse is like Read for the content of a file.
func Parse(content []byte, path string, o ReadOptions) (*Table, error) {
	return parse(bytes.NewReader(content), int64(len(content)), path, o)
}

// Binary reports whether a file that begins with these bytes is a Parquet or MAT.
func Binary(start []byte) bool { return isParquet(start) || isMat(start) }

// parse reads a table. size is the number of bytes, 0 if they come through a pipe.
func parse(from io.Reader, size int64, path string, o ReadOptions) (*Table, error) {
	end := &lastByte{r: from}
	in := bufio.NewReaderSize(end, 1<<20)
	start, err := in.Peek(StartBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading results: %w; name a table that can be read", err)
	}
	if Binary(start) {
		file, ok := from.(io.ReaderAt)
		if !ok || size == 0 {
			all, err := io.ReadAll(in)
			if err != nil {
				return nil, fmt.Errorf("reading results: %w", err)
			}
			file, size = bytes.NewReader(all), int64(len(all))
		}
		p := &parser{t: &Table{Path: path}, scale: 1, options: o}
		return p.binary(file, size, isParquet(start))
	}
	if err := Stranger(path, start); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(start, []byte(byteOrderMark)) {
		_, _ = in.Discard(len(byteOrderMark))
	}
	p := &parser{t: &Table{Path: path}, scale: 1, options: o, end: end}
	separator, header := byte(0), ""
	for {
		header, err = in.ReadString('\n')
		text := strings.TrimSpace(header)
		if s, ok := strings.CutPrefix(strings.Trim(text, `"`), "sep="); ok && len(s) == 1 {
			separator = s[0]
		} else if text != "" && text[0] != '#' || err != nil {
			break
		}
		p.skipped++
	}
	if separator == 0 {
		separator = separatorOf(header)
	}
	p.csv = csv.NewReader(io.MultiReader(strings.NewReader(header), in))
	p.csv.Comma, p.csv.ReuseRecord, p.csv.FieldsPerRecord = rune(separator), true, -1
	switch separator {
	case ';':
		p.note("fields are separated by semicolons")
	case '\t':
		p.note("fields are separated by tabs")
	case ',':
	default:
		return nil, fmt.Errorf("%s:1: the separator %q is not a comma, semicolon or tab; use one of them", path, separator)
	}
	names, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty; its first line must name the columns, as in time,component.variable", path)
	}
	if err != nil {
		return nil, p.failed(err)
	}
	if err := p.readHeader(names, o); err != nil || o.header {
		return p.t, err
	}
	if err := p.readRows(); err != nil {
		return nil, err
	}
	return p.t, nil
}

// separatorOf returns the separator of the fields of a header. Semicolons and tabs have
// precedence, because names contain commas more often.
func separatorOf(header string) byte {
	plain := "" // what is not in quotes
	for i, part := range strings.Split(header, `"`) {
		if i%2 == 0 {
			plain += part
		}
	}
	for _, separator := range []byte(";\t") {
		if strings.IndexByte(plain, separator) >= 0 {
			return separator
		}
	}
	return ','
}

func (p *parser) note(format string, args ...any) {
	p.t.Notes = append(p.t.Notes, fmt.Sprintf(format, args...))
}

func (p *parser) line() int {
	if p.csv == nil { // there are no lines
		return 1
	}
	line, _ := p.csv.FieldPos(0)
	return line + p.skipped
}

// failed adds file, line and remedy to an error of encoding/csv.
func (p *parser) failed(err error) error {
	var pe *csv.ParseError
	if !errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", p.t.Path, err)
	}
	return fmt.Errorf("%s:%d: %w; close the quotes, and double a quote inside a quoted field", p.t.Path, pe.Line+p.skipped, pe.Err)
}

// units are the forms of names with units.
var units = sync.OnceValue(func() (u struct{ inBrackets, inParens, behindBar, isIndex, ofLibcosim, timeBar *regexp.Regexp }) {
	u.inBrackets = regexp.MustCompile(`^(.*\S)\s*\[([^\[\]]*)\]$`)
	u.inParens = regexp.MustCompile(`^(.*\S)\s+\(([^()]*|[^()]*\([^()]*\)[^()]*)\)$`)
	u.behindBar = regexp.MustCompile(`^(.*\S)\s+/\s+([^\s()]+|\([^()]*\))$`)
	u.isIndex = regexp.MustCompile(`^[0-9,\s]*$`)                     // x[1,2] is a name
	u.ofLibcosim = regexp.MustCompile(`^[0-9]+ [A-Za-z]+ [A-Za-z]+$`) // v [3 real output]
	u.timeBar = regexp.MustCompile(`^(?i:time|t)/(\S+)$`)
	return u
})

// SplitUnit splits the unit off a name.
func SplitUnit(name string) (bare, unit string) {
	forms := units()
	if m := forms.timeBar.FindStringSubmatch(name); m != nil {
		return strings.TrimSuffix(name, "/"+m[1]), m[1]
	}
	for _, form := range []*regexp.Regexp{forms.inBrackets, forms.behindBar, forms.inParens} {
		m := form.FindStringSubmatch(name)
		if m == nil || form == forms.inBrackets && forms.isIndex.MatchString(m[2]) {
			continue
		}
		if forms.ofLibcosim.MatchString(m[2]) {
			return m[1], ""
		}
		return m[1], strings.Trim(m[2], " ()")
	}
	return name, ""
}

// timeUnits has the units of time in s.
var timeUnits = map[string]float64{
	"": 1, "s": 1, "sec": 1, "seconds": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "min": 60, "h": 3600,
}

func (p *parser) readHeader(names []string, o ReadOptions) error {
	p.fields = len(names)
	if p.fields > 1 && strings.TrimSpace(names[p.fields-1]) == "" {
		p.fields-- // a separator at the end of each line
	}
	p.timeAt = -1
	for i, name := range names[:p.fields] {
		name = strings.TrimSpace(strings.Clone(name))
		bare, unit := SplitUnit(name)
		p.t.Columns = append(p.t.Columns, Column{Name: name, Bare: bare, Unit: unit})
		switch {
		case p.timeAt >= 0:
		case o.TimeColumn != "":
			if name == o.TimeColumn || bare == o.TimeColumn {
				p.timeAt = i
			}
		case strings.EqualFold(bare, "time"), strings.EqualFold(bare, "t"):
			p.timeAt = i
		}
	}
	if p.timeAt < 0 {
		var all, have []string
		for _, c := range p.t.Columns {
			all, have = append(all, c.Name), append(have, strconv.Quote(c.Name))
		}
		const shown = 5
		if n := len(have); n > shown {
			have = append(have[:shown], fmt.Sprintf("… (%d)", n))
		}
		wanted := "time or t"
		if o.TimeColumn != "" {
			wanted = o.TimeColumn
		}
		if ofStudy(p.t.Columns) {
			return fmt.Errorf("%s is the table of a study, with a row for each run and no time; the page beside it shows it", p.t.Path)
		}
		return fmt.Errorf("%s:%d: no column is called %s; the columns are %s; give that of the time this name, or name it (--time-column)%s",
			p.t.Path, p.line(), wanted, strings.Join(have, ", "), diag.DidYouMean(wanted, all))
	}
	p.left = make([]bool, p.fields)
	for i, c := range p.t.Columns {
		p.left[i] = o.Select != nil && i != p.timeAt && !o.Select(c.Name) && !o.Select(c.Bare)
		if !p.left[i] {
			p.kept++
		}
	}
	if o.header {
		p.t.Columns = slices.Delete(p.t.Columns, p.timeAt, p.timeAt+1)
		return nil
	}
	return p.timeIn(p.t.Columns[p.timeAt].Unit)
}

// ofStudy reports whether columns are those of master/study.
func ofStudy(columns []Column) bool {
	for _, name := range []string{"run", "status", "verdict", "engine"} {
		if !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name }) {
			return false
		}
	}
	return true
}

// bound returns an error if so many rows exceed MostValues.
func (p *parser) bound(rows int) error {
	most := p.options.MostValues
	if most == 0 {
		most = mostValues
	}
	if rows > most/p.kept {
		return fmt.Errorf("%s holds more than the %.3g million numbers that can be kept, of %d variables; "+
			"choose some of them, or record with an output interval", p.t.Path, float64(most)/1e6, p.kept)
	}
	return nil
}

// timeIn sets the unit of the times.
func (p *parser) timeIn(unit string) error {
	scale, known := timeUnits[unit]
	if !known {
		return fmt.Errorf("%s:%d: the unit %q of the time is not one of s, ms, us, min, h; convert the times to seconds", p.t.Path, p.line(), unit)
	}
	if p.scale = scale; scale != 1 {
		p.note("times are in %s", unit)
	}
	return nil
}

func (p *parser) readRows() error {
	t := p.t
	p.texts = make([]int, p.fields)
	var broken error // no error if it is an incomplete last line
	for first := true; ; first = false {
		if ctx := p.options.Context; ctx != nil && ctx.Err() != nil {
			return fmt.Errorf("reading %s: %w", t.Path, context.Cause(ctx))
		}
		row, err := p.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if broken != nil {
			return broken
		}
		if err != nil {
			return p.failed(err)
		}
		if len(row) == p.fields+1 && strings.TrimSpace(row[p.fields]) == "" {
			row = row[:p.fields]
		}
		if len(row) != p.fields {
			broken = fmt.Errorf("%s:%d: this row has %d fields, and the header names %d; "+
				"give every row as many, and numbers with a decimal point where commas separate fields",
				t.Path, p.line(), len(row), p.fields)
			if len(row) > p.fields {
				return broken
			}
			continue
		}
		at, ok := p.number(row[p.timeAt], nil)
		if first && !ok {
			if unit := strings.Trim(strings.TrimSpace(row[p.timeAt]), "[]()"); timeUnits[unit] != 0 {
				for i := range t.Columns {
					if i != p.timeAt && t.Columns[i].Unit == "" {
						t.Columns[i].Unit = strings.Trim(strings.TrimSpace(strings.Clone(row[i])), "[]()")
					}
				}
				if err := p.timeIn(unit); err != nil {
					return err
				}
				p.note("the second row holds units")
				continue
			}
		}
		if !ok || math.IsNaN(at) || math.IsInf(at, 0) {
			return fmt.Errorf("%s:%d: time: %q is not a finite number; give one in every row", t.Path, p.line(), row[p.timeAt])
		}
		if at *= p.scale; len(t.Times) > 0 && at < t.Times[len(t.Times)-1] {
			return fmt.Errorf("%s:%d: time %g is before the time %g of the row above; sort the rows by time",
				t.Path, p.line(), at, t.Times[len(t.Times)-1])
		}
		t.Times = append(t.Times, at)
		if p.options.Cells {
			t.Lines = append(t.Lines, p.line())
		}
		if err := p.bound(len(t.Times)); err != nil {
			return err
		}
		for i, cell := range row {
			if i == p.timeAt || p.left[i] {
				continue
			}
			c := &t.Columns[i]
			v, ok := p.number(cell, c)
			if !ok {
				if p.texts[i]++; p.texts[i] == 1 {
					c.Odd = oddCell(cell, p.line())
				}
				v = math.NaN()
			}
			c.Values = append(c.Values, v)
			if p.options.Cells {
				c.Cells = append(c.Cells, strings.Clone(cell))
			}
		}
	}
	if broken != nil {
		if p.end.last == '\n' {
			return broken
		}
		p.note("the last line breaks off and is left out")
	}
	return p.finish()
}

// oddCell describes a cell that is not a number, with a probable reason.
func oddCell(cell string, line int) string {
	const shown = 40
	cell = strings.TrimSpace(strings.Clone(cell))
	text := fmt.Sprintf("%.*q in line %d is not a number", shown, cell, line)
	if separated().MatchString(cell) {
		text += "; write numbers without separators of thousands"
	}
	return text
}

// separated matches a number with separators of thousands.
var separated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-+]?[0-9]{1,3}([., '’_\x{a0}\x{202f}][0-9]{3})+([.,][0-9]*)?$`)
})

// finish checks the whole table and removes columns that are not kept.
func (p *parser) finish() error {
	t := p.t
	switch {
	case len(t.Times) > 0:
	case p.csv == nil:
		return fmt.Errorf("%s holds no complete rows: the file breaks off, or nothing was recorded; name a complete file", t.Path)
	default:
		return fmt.Errorf("%s: there is no row below the header; give at least one", t.Path)
	}
	if first, last := t.Times[0], t.Times[len(t.Times)-1]; math.IsInf(last-first, 0) {
		return fmt.Errorf("%s: the time span from %g to %g s is too large for a number; correct the time column", t.Path, first, last)
	}
	if p.commaAt > 0 {
		if p.pointAt > 0 {
			return fmt.Errorf("%s:%d: there is a decimal comma, and in line %d a decimal point; use one of them", t.Path, p.commaAt, p.pointAt)
		}
		p.note("decimal commas")
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; p.texts[i] > 0 {
			if c.Text = true; !p.options.Cells {
				c.Values = nil
			}
		}
	}
	columns := t.Columns[:0]
	for i, c := range t.Columns {
		if i != p.timeAt && !p.left[i] {
			columns = append(columns, c)
		}
	}
	t.Columns = columns
	if p.options.Cells {
		for i, c := range t.Columns {
			if slices.ContainsFunc(t.Columns[:i], func(o Column) bool { return o.Name == c.Name }) {
				return fmt.Errorf("%s: there are two columns %q; remove one", t.Path, c.Name)
			}
		}
		p.keepCells()
	}
	seen := map[string]bool{}
	t.Columns = slices.DeleteFunc(t.Columns, func(c Column) bool {
		if seen[c.Name] {
			p.note("there are several columns %s; the first is used", c.Name)
		}
		again := seen[c.Name]
		seen[c.Name] = true
		return again
	})
	return nil
}

// number reads a cell; an empty cell is NaN. It updates the number of digits in c.
func (p *parser) number(cell string, c *Column) (v float64, ok bool) {
	cell = strings.TrimSpace(cell)
	if cell == "" {
		return math.NaN(), true
	}
	digits, comma, point, leading := 0, -1, false, true
	for i := range len(cell) {
		switch b := cell[i]; {
		case b >= '0' && b <= '9':
			if leading = leading && b == '0'; !leading {
				digits++
			}
			continue
		case b == '.':
			point = true
			continue
		case b == ',':
			if comma >= 0 {
				return 0, false
			}
			comma = i
			continue
		case b == 'e', b == 'E':
		case b == '-', b == '+':
			if i == 0 {
				continue
			}
		default: // also x and _, which strconv accepts
			return word(cell)
		}
		break // the exponent
	}
	if comma >= 0 && point {
		return 0, false
	}
	if comma >= 0 {
		cell = cell[:comma] + "." + cell[comma+1:]
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	if comma >= 0 && p.commaAt == 0 {
		p.commaAt = p.line()
	}
	if point && p.pointAt == 0 {
		p.pointAt = p.line()
	}
	if c != nil {
		c.Digits = max(c.Digits, digits)
	}
	return v, true
}

// word reads the words for NaN, infinity and Booleans.
func word(cell string) (float64, bool) {
	s := strings.ToLower(cell)
	sign := 1
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		s, sign = rest, -1
	}
	s = strings.TrimPrefix(s, "+")
	switch {
	case s == "nan" || strings.HasPrefix(s, "nan(") || strings.HasPrefix(s, "1.#qnan") || strings.HasPrefix(s, "1.#ind"):
		return math.NaN(), true
	case s == "inf" || s == "infinity" || strings.HasPrefix(s, "1.#inf"):
		return math.Inf(sign), true
	case s == "true":
		return 1, true
	case s == "false":
		return 0, true
	}
	return 0, false
}

// keepCells makes the cells and lines of a binary file, which has numbers only.
func (p *parser) keepCells() {
	if p.csv != nil {
		return
	}
	for row := range p.t.Times {
		p.t.Lines = append(p.t.Lines, row+1)
	}
	for i := range p.t.Columns {
		c := &p.t.Columns[i]
		if c.Text {
			c.Values = slices.Repeat([]float64{math.NaN()}, len(p.t.Times))
		}
		c.Values = slices.Clone(c.Values) // a column of a MAT may share its values with others
	}
}
