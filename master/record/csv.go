package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/master"
)

const (
	// chunk is the number of bytes gathered before they are written.
	chunk = 64 << 10
	// widest is room for a number in a row: a Real takes at most 24 bytes.
	widest = 25
	// onGrid is how far, in macro steps, a communication point may lie before a
	// multiple of the output interval and still count as being on it.
	onGrid = 1e-9
)

// CSVOptions of a CSV recorder. The zero value records the default selection at
// every communication point.
type CSVOptions struct {
	Select Selection
	// Interval > 0 thins the rows: after the start there is one row for each
	// multiple of Interval (s, counted from the start), taken at the first
	// communication point at or after it. A point within 1e-9 of the step before
	// a multiple is on it. A point that is the first after several multiples
	// gives one row, and a stop time between two multiples gives none.
	Interval float64
	// Taken is called when the file is known to be the recorder's own, before
	// anything in it is replaced; nil = nothing. An error ends the run.
	Taken func() error
}

// CSV records a run as a table; see the package documentation for its form. It
// must not be selected to record nothing: leave it out instead.
type CSV struct {
	path string
	opt  CSVOptions

	mu      sync.Mutex // Flush may be called while a step hangs
	file    *os.File
	regular bool     // the file can be cut
	written position // of whole rows in the file
	cut     bool     // what stands behind them is still to be cut off
	buf     []byte
	columns []column
	rows    int
	newest  float64 // time of the last of them
	err     error   // of the first failed write

	// What is in the file.
	rowsWritten   int
	newestWritten float64

	points      int     // seen so far
	first, last float64 // time of the first point and of the one before
	due         int     // multiple of the interval that the next row waits for

	resumed *position // of the run that is continued; nil = from the start
	past    int       // rows up to there
}

var _ master.RecorderArchiver = (*CSV)(nil)

// column is where the values of one column are found in a point.
type column struct {
	from source
	kind master.Kind
	sub  int // subsystem, for the sources below fromY
	at   int // in U or Y, or among the values of the kind
}

type source uint8

const (
	fromU source = iota
	fromY
	fromMeasured
	fromDiscreteIn
	fromDiscreteOut
	fromWatch
)

// NewCSV gives a recorder that creates or replaces the file at path when the
// run begins. In a run that is resumed it continues the file of that path, if the
// run before had it: what stands behind the row of the checkpoint is replaced. A
// file of another path gets the header and the rows behind the checkpoint.
func NewCSV(path string, o CSVOptions) *CSV { return &CSV{path: path, opt: o} }

// Rows gives the number of rows recorded, without the header; after an error of
// writing, of those in the file.
func (c *CSV) Rows() int { return c.rows }

// Newest gives the time of the last row. It may be called from another goroutine,
// from Begin to End.
func (c *CSV) Newest() (t float64, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest, c.rows > 0
}

// Columns gives the number of columns, time included; 0 before the run begins.
func (c *CSV) Columns() int {
	if c.file == nil {
		return 0
	}
	return len(c.columns) + 1
}

// Begin chooses the columns, creates the file and writes the header. A pattern
// that matches no variable is an error, and then no file is touched.
func (c *CSV) Begin(sys *master.System, measured []master.Port) error {
	names, err := c.choose(sys, measured)
	if err != nil {
		return err
	}
	c.buf = make([]byte, 0, chunk+widest*(len(c.columns)+1))
	c.buf = append(c.buf, "time"...)
	for _, n := range names {
		c.buf = appendField(append(c.buf, ','), n)
	}
	c.buf = append(c.buf, '\n')
	if c.written.path, err = filepath.Abs(c.path); err != nil {
		return fmt.Errorf("creating the result file: %w", err)
	}
	if c.resumed != nil && c.resumed.path == c.written.path {
		return c.goOn()
	}
	// Not emptied before it is ours: another run may be writing to it.
	// Nor readable: as its own reader the process would never see a pipe close.
	c.file, err = Create(c.path, 0)
	if err != nil {
		return fmt.Errorf("creating the result file: %w%s", err, createRemedy(err))
	}
	if info, err := c.file.Stat(); err == nil {
		c.regular = info.Mode().IsRegular()
	}
	if c.regular {
		err := lock(c.file)
		if err == nil && c.opt.Taken != nil {
			err = c.opt.Taken()
		}
		if err == nil {
			err = c.file.Truncate(0)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("creating the result file %s: %w", c.path, err), c.file.Close())
		}
	}
	return c.Flush()
}

// goOn continues the file of an earlier part of the run.
func (c *CSV) goOn() error {
	header := c.buf
	f, err := c.resumed.reopen()
	if err != nil {
		return err
	}
	same := make([]byte, len(header))
	if _, err := f.ReadAt(same, 0); err != nil || !bytes.Equal(same, header) {
		return errors.Join(fmt.Errorf("continuing %s: it has other columns than this run; name another --output", c.path), f.Close())
	}
	if c.opt.Taken != nil {
		if err := c.opt.Taken(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	c.file, c.regular, c.cut, c.rows = f, true, true, c.past
	c.written, c.buf = *c.resumed, c.buf[:0]
	c.rowsWritten, c.newestWritten = c.past, c.newest
	return nil
}

// ArchiveName is that of the table.
func (c *CSV) ArchiveName() string { return "results" }

// Archive carries how far the table has come, once that is on disk.
func (c *CSV) Archive(a *master.Archive) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, rows := &c.written, &c.rows
	if a.Reading() {
		c.resumed = &position{}
		at, rows = c.resumed, &c.past
	} else {
		a.Fail(c.flush())
		if c.regular && c.err == nil {
			if err := c.file.Sync(); err != nil {
				a.Fail(fmt.Errorf("writing results: %w", err))
			}
		}
	}
	at.archive(a)
	a.Int(rows)
	a.Float(&c.newest)
	a.Int(&c.points)
	a.Float(&c.first)
	a.Float(&c.last)
	a.Int(&c.due)
}

func createRemedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; create the folder first"
	case errors.Is(err, fs.ErrPermission):
		return "; choose a folder that you may write to"
	}
	return ""
}

// choose fills the columns and gives their names: by subsystem, outputs before
// inputs before further variables; what the algorithm measures at the end.
func (c *CSV) choose(sys *master.System, measured []master.Port) (names []string, err error) {
	var all []string
	for i, info := range sys.Infos {
		bare := true // neither outputs nor connected inputs
		if len(info.DiscreteOut) > 0 || slices.ContainsFunc(info.Out, func(p master.Port) bool { return !p.Internal }) {
			bare = false
		}
		for k := range info.In {
			if _, ok := sys.Source(sys.InAt[i] + k); ok {
				bare = false
			}
		}
		for k := range info.DiscreteIn {
			bare = bare && !sys.DiscreteConnected(i, k)
		}
		take := func(from source, p master.Port, at int, byDefault bool) {
			name := info.Name + "." + p.Name
			if c.opt.Select.IsDefault() {
				if !byDefault {
					return
				}
			} else {
				all = append(all, name)
				if !c.opt.Select.Match(name) {
					return
				}
			}
			names = append(names, name)
			c.columns = append(c.columns, column{from: from, kind: p.Kind, sub: i, at: at})
		}
		for k, p := range info.Out {
			if p.Internal {
				continue
			}
			take(fromY, p, sys.OutAt[i]+k, true)
		}
		byKind(info.DiscreteOut, func(_, at int, p master.Port) { take(fromDiscreteOut, p, at, true) })
		for k, p := range info.In {
			_, connected := sys.Source(sys.InAt[i] + k)
			take(fromU, p, sys.InAt[i]+k, connected || bare)
		}
		byKind(info.DiscreteIn, func(k, at int, p master.Port) {
			take(fromDiscreteIn, p, at, bare || sys.DiscreteConnected(i, k))
		})
		byKind(info.Watch, func(_, at int, p master.Port) { take(fromWatch, p, at, true) })
	}
	for k, p := range measured {
		if !c.opt.Select.IsDefault() {
			all = append(all, p.Name)
			if !c.opt.Select.Match(p.Name) {
				continue
			}
		}
		names = append(names, p.Name)
		c.columns = append(c.columns, column{from: fromMeasured, kind: master.Real, at: k})
	}
	return names, c.opt.Select.unmatched(all)
}

// byKind calls f for each port with its number k and its place at among the
// ports of its kind.
func byKind(ports []master.Port, f func(k, at int, p master.Port)) {
	var n [master.String + 1]int
	for k, p := range ports {
		f(k, n[p.Kind], p)
		n[p.Kind]++
	}
}

// Record adds a row, if the interval wants one at this point.
func (c *CSV) Record(p *master.Point) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if !c.wants(p.T) {
		return nil
	}
	b := appendReal(c.buf, p.T)
	for i := range c.columns {
		col := &c.columns[i]
		b = append(b, ',')
		switch col.from {
		case fromU:
			b = appendReal(b, p.U[col.at])
		case fromY:
			b = appendReal(b, p.Y[col.at])
		case fromMeasured:
			b = appendReal(b, p.Measured[col.at])
		case fromDiscreteIn:
			b = appendValue(b, col, &p.DiscreteIn[col.sub])
		case fromDiscreteOut:
			b = appendValue(b, col, &p.DiscreteOut[col.sub])
		case fromWatch:
			b = appendValue(b, col, &p.Watch[col.sub])
		}
	}
	c.buf = append(b, '\n')
	c.rows++
	c.newest = p.T
	if len(c.buf) >= chunk {
		return c.flush()
	}
	return nil
}

// wants tells whether the interval asks for a row at t, and moves on to the
// next multiple after t.
func (c *CSV) wants(t float64) bool {
	c.points++
	if c.opt.Interval <= 0 {
		return true
	}
	if c.points == 1 {
		c.first, c.last, c.due = t, t, 1
		return true
	}
	slack := onGrid * (t - c.last)
	c.last = t
	// Products, never a running sum: rounding must not shift late rows.
	if t < c.first+float64(c.due)*c.opt.Interval-slack {
		return false
	}
	c.due = max(c.due, int(math.Floor((t+slack-c.first)/c.opt.Interval))) + 1
	return true
}

// Flush writes the rows recorded so far, so that they outlive the process. It
// may be called from another goroutine, from Begin to End.
func (c *CSV) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flush()
}

func (c *CSV) flush() error {
	if c.err != nil || len(c.buf) == 0 {
		return c.err
	}
	if c.cut {
		if c.err = c.file.Truncate(c.written.bytes); c.err != nil {
			c.err = fmt.Errorf("continuing the result file: %w", c.err)
			return c.err
		}
		c.cut = false
	}
	if err := whole(c.file, c.written.bytes); err != nil {
		c.err = fmt.Errorf("writing results: %w", err)
		return c.err
	}
	n, err := c.file.Write(c.buf)
	if err != nil {
		if n > 0 && c.regular {
			// A full disk stops in the middle of a row; a cut row would be read as wrong numbers.
			err = errors.Join(err, c.keepWhole(n))
		}
		c.rows = c.rowsWritten
		kept := "no row is in the file"
		if c.rows > 0 {
			kept = fmt.Sprintf("the rows up to t = %.12g s are kept", c.newestWritten)
		}
		c.err = fmt.Errorf("writing results: %w; free space or choose another --output; %s", err, kept)
		return c.err
	}
	c.written.wrote(c.buf)
	c.rowsWritten, c.newestWritten = c.rows, c.newest
	c.buf = c.buf[:0]
	return nil
}

// keepWhole cuts the file to the whole rows among the n bytes of the buffer that
// it took.
func (c *CSV) keepWhole(n int) error {
	whole := c.buf[:bytes.LastIndexByte(c.buf[:n], '\n')+1]
	rows := bytes.Count(whole, []byte{'\n'})
	if c.written.bytes == 0 && rows > 0 {
		rows-- // the header
	}
	if rows > 0 {
		last := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:]
		t, _, _ := bytes.Cut(last, []byte{','})
		c.newestWritten, _ = strconv.ParseFloat(string(bytes.TrimSpace(t)), 64) // our own number
	}
	c.rowsWritten += rows
	return c.file.Truncate(c.written.bytes + int64(len(whole)))
}

// End writes what is left and closes the file. An error that Record or Flush has
// given it gives again: they may have given it to others than the run.
func (c *CSV) End(master.Result) error {
	if c.file == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.flush()
	if err == nil && !c.cut {
		if err = cmp.Or(whole(c.file, c.written.bytes), there(c.file, c.written.path)); err != nil {
			c.err = fmt.Errorf("the results: %w", err)
			err = c.err
		}
	}
	if cerr := c.file.Close(); cerr != nil && c.err == nil {
		c.err = fmt.Errorf("closing the result file: %w", cerr)
		err = c.err
	}
	return err
}

func appendValue(b []byte, c *column, v *master.Values) []byte {
	switch c.kind {
	case master.Real:
		return appendReal(b, v.Real[c.at])
	case master.Integer:
		return strconv.AppendInt(b, int64(v.Integer[c.at]), 10)
	case master.Boolean:
		if v.Boolean[c.at] {
			return append(b, '1')
		}
		return append(b, '0')
	}
	return appendField(b, v.String[c.at])
}

// appendReal appends the shortest decimal number that reads back to the same
// bits, without an exponent where that is no longer; NaN, Inf, -Inf.
func appendReal(b []byte, v float64) []byte {
	switch a := math.Abs(v); {
	case v != v:
		return append(b, "NaN"...)
	case a > math.MaxFloat64:
		if v < 0 {
			b = append(b, '-')
		}
		return append(b, "Inf"...)
	case a >= 1e-4 && a < 1e15 || a == 0:
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	n := len(b)
	b = strconv.AppendFloat(b, v, 'e', -1, 64)
	// Go writes two digits of exponent and its sign: 1e+20, 1e-05.
	for i := n; i < len(b); i++ {
		if b[i] != 'e' {
			continue
		}
		from, to := i+1, i+1
		if b[from] == '-' {
			to++
			from++
		} else if b[from] == '+' {
			from++
		}
		for from < len(b)-1 && b[from] == '0' {
			from++
		}
		return append(b[:to], b[from:]...)
	}
	return b
}

// appendField appends a text, quoted where RFC 4180 wants it.
func appendField(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	for _, r := range []byte(s) {
		if r == '"' {
			b = append(b, '"')
		}
		b = append(b, r)
	}
	return append(b, '"')
}
