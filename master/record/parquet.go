package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/internal/parquetfile"
)

const (
	// groupValues is the number of values in a row group. A page has an overhead of about 120 bytes: 4 % with a thousand
	// columns.
	groupValues = 512 << 10
	// leastGroupRows and mostGroupRows bound the rows of a row group.
	leastGroupRows, mostGroupRows = 64, 64 << 10
	// groupText bounds the bytes of strings in a row group of more than one row.
	groupText = 4 << 20
)

// parquetEncoder makes a row group of each block. It runs on one goroutine.
type parquetEncoder struct {
	layout *layout
	file   *parquetfile.File
	size   int64 // bytes of the file so far
	shown  int64 // size at the last preview
	out    []byte
	most   int // rows in a full group

	real    [][]float64 // by column of the kind and row
	integer [][]int64
	boolean [][]byte // one bit per row
	text    []byte   // of one column
}

var parquetKinds = [...]parquetfile.Kind{
	master.Real: parquetfile.Double, master.Integer: parquetfile.Int64, master.Boolean: parquetfile.Boolean, master.String: parquetfile.Text,
}

func newParquetEncoder(l *layout) *parquetEncoder {
	e := &parquetEncoder{layout: l, most: min(max(groupValues/len(l.columns), leastGroupRows), mostGroupRows)}
	var columns []parquetfile.Column
	about := map[string]map[string]string{}
	for _, c := range l.columns {
		name := strings.ToValidUTF8(c.name, "\ufffd")
		columns = append(columns, parquetfile.Column{Name: name, Kind: parquetKinds[c.kind]})
		known := map[string]string{}
		for key, value := range map[string]string{
			"unit": c.unit, "description": c.about.Text, "causality": c.about.Causality, "variability": c.about.Variability,
		} {
			if value != "" {
				known[key] = value
			}
		}
		about[name] = known
	}
	text, _ := json.Marshal(about) // strings always have a JSON
	e.file = parquetfile.New(columns, []parquetfile.Entry{{Key: parquetfile.ColumnsKey, Value: string(text)}})
	return e
}

func (e *parquetEncoder) room() room {
	// Extra slots take rows while a group is written: a whole group, unless the table is very wide.
	extra := max(1, min(e.most, groupValues/len(e.layout.columns)))
	return room{workers: 1, rows: e.most, slots: e.most + extra, text: groupText}
}

func (e *parquetEncoder) begin() ([]byte, error) {
	e.real = columnsOf[float64](e.layout.count[master.Real], e.most)
	e.integer = columnsOf[int64](e.layout.count[master.Integer], e.most)
	e.boolean = columnsOf[byte](e.layout.count[master.Boolean], (e.most+7)/8)
	head := e.file.Head()
	e.size = int64(len(head))
	return head, nil
}

// columnsOf returns n columns with room for so many rows.
func columnsOf[T any](n, rows int) [][]T {
	columns := make([][]T, n)
	for i := range columns {
		columns[i] = make([]T, rows)
	}
	return columns
}

func (e *parquetEncoder) encode(_ int, b block) (piece, error) {
	for _, to := range e.boolean {
		clear(to)
	}
	some := max(1, blockValues/len(e.layout.columns)) // rows that fit in the cache of a core
	for at := 0; at < b.rows; at += some {
		n := min(some, b.rows-at)
		transpose(e.real, at, window(b.real, len(e.real), at, n), n)
		transpose(e.integer, at, window(b.integer, len(e.integer), at, n), n)
		for k, to := range e.boolean {
			for r := at; r < at+n; r++ {
				to[r/8] |= b.boolean[r*len(e.boolean)+k] & 1 << (r % 8)
			}
		}
	}
	out := e.out[:0]
	var err error
	for _, c := range e.layout.columns {
		if out, err = e.file.AppendPage(out, e.size+int64(len(out)), b.rows, e.plain(c, b)); err != nil {
			return piece{}, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	e.out = out
	e.size += int64(len(out))
	return piece{bytes: out, rows: b.rows, newest: b.real[(b.rows-1)*len(e.real)]}, nil
}

// transpose copies values by row to columns, starting at row at.
func transpose[T any](to [][]T, at int, from []T, rows int) {
	n := len(to)
	k := 0
	for ; k+8 <= n; k += 8 { // one cache line at a time
		var c [8][]T
		for i := range c {
			c[i] = to[k+i][at : at+rows]
		}
		for r := range rows {
			v := (*[8]T)(from[r*n+k:])
			c[0][r], c[1][r], c[2][r], c[3][r] = v[0], v[1], v[2], v[3]
			c[4][r], c[5][r], c[6][r], c[7][r] = v[4], v[5], v[6], v[7]
		}
	}
	for ; k < n; k++ {
		for r, c := 0, to[k][at:at+rows]; r < rows; r++ {
			c[r] = from[r*n+k]
		}
	}
}

// plain returns the values of a column in the plain encoding, until the next call.
func (e *parquetEncoder) plain(c column, b block) []byte {
	switch c.kind {
	case master.Real:
		return bytesOf(e.real[c.at][:b.rows])
	case master.Integer:
		return bytesOf(e.integer[c.at][:b.rows])
	case master.Boolean:
		return e.boolean[c.at][:(b.rows+7)/8]
	}
	e.text = e.text[:0]
	for r := range b.rows {
		s := b.string(b.str[r*e.layout.count[master.String]+c.at])
		if c.binary {
			s = hex.EncodeToString([]byte(s))
		}
		s = strings.ToValidUTF8(s, "\ufffd")
		e.text = append(binary.LittleEndian.AppendUint32(e.text, uint32(len(s))), s...)
	}
	return e.text
}

// bytesOf returns the memory of values: all platforms are little-endian.
func bytesOf[T any](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(*new(T))))
}

// whole returns nothing: a group that is cut is lost.
func (e *parquetEncoder) whole(piece, int) piece { return piece{} }

func (e *parquetEncoder) end() ([]byte, error) { return e.file.Footer(), nil }

// smallFooter is the size in bytes of a footer that is written at any flush. Larger ones add at most a quarter to
// what is written.
const smallFooter = 1 << 20

func (e *parquetEncoder) preview() []byte {
	if n := e.file.FooterSize(); n > smallFooter && n > (e.size-e.shown)/4 {
		return nil
	}
	e.shown = e.size
	return e.file.Footer()
}

func (e *parquetEncoder) resume(path string, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	same := make([]byte, len(e.file.Head()))
	if _, err := f.ReadAt(same, 0); err != nil || !bytes.Equal(same, e.file.Head()) {
		return errOtherColumns
	}
	if e.size, err = e.file.Recover(f, n); err == nil && e.size != n {
		err = errors.New("a row group is damaged")
	}
	return err
}
