package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/macrostep/macrostep/master"
)

// matEncoder formats MAT files of level 4 with the matrices of a Modelica trajectory (Aclass binTrans). The last matrix,
// data_2, has a column for each row of the table; the header before it is updated when rows are written.
type matEncoder struct {
	layout *layout
	runs   []columnRun // all columns
	head   []byte
	count  int // position in the head of the start time, the stop time and the size of data_2
	out    []byte
	from   float64 // start time
	any    bool    // it is known
}

// Types of matrices: numbers of 8 bytes, numbers of 4 bytes, text.
const matDouble, matInt32, matText = 0, 20, 51

func newMatEncoder(l *layout) *matEncoder {
	e := &matEncoder{layout: l}
	e.texts("Aclass", 11, "Atrajectory", "1.1", "", "binTrans")
	var names, descriptions []string
	var info []byte
	for i, c := range l.columns {
		e.runs = addRun(e.runs, c)
		text := strings.NewReplacer("[", "(", "]", ")").Replace(c.about.Text)
		if c.unit != "" {
			text = strings.TrimLeft(text+" ["+c.unit+"]", " ")
		}
		names, descriptions = append(names, c.name), append(descriptions, text)
		table := int32(2)
		if i == 0 {
			table = 0 // the abscissa
		}
		for _, v := range [...]int32{table, int32(i + 1), 0, -1} { // interpolated linearly, undefined outside
			info = binary.LittleEndian.AppendUint32(info, uint32(v))
		}
	}
	e.transposed("name", names)
	e.transposed("description", descriptions)
	e.matrix("dataInfo", matInt32, 4, len(l.columns))
	e.head = append(e.head, info...)
	e.matrix("data_1", matDouble, 1, 2) // times of the constants, of which there are none
	e.count = len(e.head)
	e.head = append(e.head, make([]byte, 16)...)
	e.matrix("data_2", matDouble, len(l.columns), 0)
	return e
}

// matrix appends the header of a matrix.
func (e *matEncoder) matrix(name string, kind, rows, columns int) {
	for _, v := range [...]int{kind, rows, columns, 0, len(name) + 1} {
		e.head = binary.LittleEndian.AppendUint32(e.head, uint32(v))
	}
	e.head = append(append(e.head, name...), 0)
}

// texts appends a matrix with a text in each row.
func (e *matEncoder) texts(name string, width int, rows ...string) {
	e.matrix(name, matText, len(rows), width)
	for k := range width {
		for _, row := range rows {
			c := byte(' ')
			if k < len(row) {
				c = row[k]
			}
			e.head = append(e.head, c)
		}
	}
}

// transposed appends a matrix with a text in each column.
func (e *matEncoder) transposed(name string, columns []string) {
	width := 1
	for _, text := range columns {
		width = max(width, len(text))
	}
	e.matrix(name, matText, width, len(columns))
	for _, text := range columns {
		e.head = append(append(e.head, text...), strings.Repeat(" ", width-len(text))...)
	}
}

func (e *matEncoder) begin() ([]byte, error) { return e.head, nil }
func (e *matEncoder) end() ([]byte, error)   { return nil, nil }

func (e *matEncoder) room() room {
	rows := max(1, blockValues/len(e.layout.columns))
	return room{workers: 1, rows: rows, slots: 3 * rows}
}

func (e *matEncoder) encode(_ int, b block) (piece, error) {
	out := e.out[:0]
	l := e.layout
	for r := range b.rows {
		for _, run := range e.runs {
			switch from := r*l.count[run.kind] + run.at; run.kind {
			case master.Real:
				out = append(out, bytesOf(b.real[from:from+run.n])...)
			case master.Integer:
				for _, v := range b.integer[from : from+run.n] {
					out = appendDouble(out, float64(v))
				}
			default:
				for _, v := range b.boolean[from : from+run.n] {
					out = appendDouble(out, float64(v&1))
				}
			}
		}
	}
	e.out = out
	if !e.any {
		e.from, e.any = b.real[0], true
	}
	return e.whole(piece{bytes: out}, len(out)), nil
}

func appendDouble(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func double(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

func (e *matEncoder) whole(p piece, n int) piece {
	size := 8 * len(e.layout.columns)
	rows := n / size
	if rows == 0 {
		return piece{}
	}
	return piece{bytes: p.bytes[:rows*size], rows: rows, newest: double(p.bytes[(rows-1)*size:])}
}

func (e *matEncoder) update(rows int, newest float64) (b []byte, at int64, err error) {
	if rows > math.MaxInt32 {
		return nil, 0, fmt.Errorf("a MAT holds at most %d rows; record with --output-interval, or to a .parquet", math.MaxInt32)
	}
	b = bytes.Clone(e.head[e.count:][:28])
	binary.LittleEndian.PutUint64(b, math.Float64bits(e.from))
	binary.LittleEndian.PutUint64(b[8:], math.Float64bits(newest))
	header := b[16:] // of data_2: type, rows, columns
	binary.LittleEndian.PutUint32(header[8:], uint32(rows))
	return b, int64(e.count), nil
}

func (e *matEncoder) resume(path string, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	same := make([]byte, len(e.head), len(e.head)+8)
	if _, err := io.ReadFull(f, same); err != nil {
		return errOtherColumns
	}
	copy(same[e.count:], e.head[e.count:][:28])
	if !bytes.Equal(same, e.head) {
		return errOtherColumns
	}
	switch rest := n - int64(len(e.head)); {
	case rest%int64(8*len(e.layout.columns)) != 0:
		return errors.New("it does not end with a whole row")
	case rest > 0:
		first := same[len(same) : len(same)+8]
		if _, err := io.ReadFull(f, first); err != nil {
			return err
		}
		e.from, e.any = double(first), true
	}
	return nil
}
