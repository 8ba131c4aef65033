package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/master"
)

// csvEncoder formats comma-separated values. Workers share no mutable data.
type csvEncoder struct {
	layout *layout
	runs   []columnRun // all columns but the time
	header []byte
	each   []csvWorker
}

// columnRun is a run of columns of one kind whose values are adjacent in a block.
type columnRun struct {
	kind   master.Kind
	binary bool
	at, n  int
}

// csvWorker holds the buffers of one worker.
type csvWorker struct {
	out  []byte
	ends []int      // of the rows in out
	seen []seenReal // the Reals of the row formatted last
}

// seenReal caches the text of a number, so that values which do not change are formatted
// once.
type seenReal struct {
	bits uint64
	text [widest + 7]byte // 32 bytes are copied in two moves
	n    uint8            // bytes of text; 0 = none yet
}

// widest is the length of a comma and the longest Real.
const widest = 25

func newCSVEncoder(l *layout) *csvEncoder {
	e := &csvEncoder{layout: l, each: make([]csvWorker, formatters())}
	for i := range l.columns {
		if i > 0 {
			e.header = append(e.header, ',')
			e.runs = addRun(e.runs, l.columns[i])
		}
		e.header = appendField(e.header, l.columns[i].name)
	}
	e.header = append(e.header, '\n')
	return e
}

// addRun adds a column to the runs.
func addRun(runs []columnRun, c column) []columnRun {
	if n := len(runs); n > 0 && runs[n-1] == (columnRun{c.kind, c.binary, runs[n-1].at, c.at - runs[n-1].at}) {
		runs[n-1].n++
		return runs
	}
	return append(runs, columnRun{c.kind, c.binary, c.at, 1})
}

func (e *csvEncoder) begin() ([]byte, error) { return e.header, nil }
func (e *csvEncoder) end() ([]byte, error)   { return nil, nil }

func (e *csvEncoder) room() room {
	rows, workers := max(1, blockValues/len(e.layout.columns)), len(e.each)
	// Two more blocks than workers: one is filled, one waits.
	return room{workers: workers, rows: rows, slots: (workers + 2) * rows, text: blockText}
}

// errOtherColumns is the error of a file to be continued that belongs to another table.
var errOtherColumns = errors.New("it has other columns than this run")

func (e *csvEncoder) resume(path string, _ int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	same := make([]byte, len(e.header))
	if _, err := io.ReadFull(f, same); err != nil || !bytes.Equal(same, e.header) {
		return errOtherColumns
	}
	return nil
}

func (e *csvEncoder) encode(worker int, b block) (piece, error) {
	l, w := e.layout, &e.each[worker]
	nr, ni, nb, ns := l.count[master.Real], l.count[master.Integer], l.count[master.Boolean], l.count[master.String]
	if w.seen == nil {
		w.seen = make([]seenReal, nr)
	}
	out, ends := w.out[:0], w.ends[:0]
	for r := range b.rows {
		reals := window(b.real, nr, r, 1)
		out = appendReal(out, reals[0])
		for _, run := range e.runs {
			for at := run.at; at < run.at+run.n; at++ {
				switch run.kind {
				case master.Real:
					out = w.seen[at].append(out, reals[at])
				case master.Integer:
					out = strconv.AppendInt(append(out, ','), int64(b.integer[r*ni+at]), 10)
				case master.Boolean:
					out = append(out, ',', '0'+b.boolean[r*nb+at]&1)
				case master.String:
					if out = append(out, ','); run.binary {
						out = hex.AppendEncode(out, []byte(b.string(b.str[r*ns+at])))
					} else {
						out = appendField(out, b.string(b.str[r*ns+at]))
					}
				}
			}
		}
		out = append(out, '\n')
		ends = append(ends, len(out))
	}
	w.out, w.ends = out, ends
	return piece{bytes: out, rows: b.rows, newest: b.real[(b.rows-1)*nr], ends: ends}, nil
}

func (e *csvEncoder) whole(p piece, n int) piece {
	rows, _ := slices.BinarySearch(p.ends, n+1)
	if rows == 0 {
		return piece{}
	}
	last := p.bytes[:p.ends[rows-1]]
	kept := piece{bytes: last, rows: rows}
	if rows > 1 {
		last = last[p.ends[rows-2]:]
	}
	t, _, _ := bytes.Cut(last, []byte{','})
	kept.newest, _ = strconv.ParseFloat(string(bytes.TrimSpace(t)), 64) // we wrote it
	return kept
}

// append appends a comma and the number v.
func (s *seenReal) append(b []byte, v float64) []byte {
	b = slices.Grow(b, len(s.text))
	n := len(b)
	if bits := math.Float64bits(v); s.n == 0 || s.bits != bits {
		b = appendReal(append(b, ','), v)
		s.bits, s.n = bits, uint8(copy(s.text[:], b[n:]))
		return b
	}
	*(*[len(s.text)]byte)(b[n : n+len(s.text)]) = s.text
	return b[: n+int(s.n) : cap(b)]
}

// appendReal appends the shortest decimal number that reads back to the same bits, without
// an exponent from 1e-4 to 1e15; NaN, Inf or -Inf.
func appendReal(b []byte, v float64) []byte {
	switch a := math.Abs(v); {
	case v != v:
		return append(b, "NaN"...)
	case a > math.MaxFloat64:
		if v < 0 {
			b = append(b, '-')
		}
		return append(b, "Inf"...)
	case a >= 1e-4 && a < 1e15:
		if whole := int64(v); float64(whole) == v {
			return strconv.AppendInt(b, whole, 10) // the same text, but faster
		}
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	case a == 0:
		if math.Signbit(v) {
			b = append(b, '-')
		}
		return append(b, '0')
	}
	n := len(b)
	b = strconv.AppendFloat(b, v, 'e', -1, 64)
	// Go writes at least two digits of exponent and its sign: 1e+20, 1e-05.
	to := n + bytes.IndexByte(b[n:], 'e') + 1
	from := to + 1
	if b[to] == '-' {
		to++
	}
	for from < len(b)-1 && b[from] == '0' {
		from++
	}
	return append(b[:to], b[from:]...)
}

// appendField appends a text, quoted if RFC 4180 requires it.
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
