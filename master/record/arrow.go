package record

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/macrostep/macrostep/master"
)

const (
	// batchValues is the number of values in a record batch. A batch has an overhead of 48
	// bytes per column: 1 % with a thousand columns.
	batchValues = 512 << 10
	// leastBatchRows and mostBatchRows bound the rows of a batch.
	leastBatchRows, mostBatchRows = 64, 64 << 10
	// batchText bounds the bytes of strings in a batch of more than one row. A batch of one
	// row holds at most 2 GiB per column, because Arrow's offsets have 32 bits.
	batchText = 4 << 20
)

// arrowEncoder makes a record batch of each block. It runs on one goroutine.
type arrowEncoder struct {
	layout *layout
	schema *arrow.Schema
	file   bool // file format, with magic and footer

	writer batchWriter
	out    bytes.Buffer // output of writer
	header []byte       // schema and a batch without rows

	most  int         // rows in a full batch
	real  [][]float64 // by column of the kind and row
	ints  [][]int32
	bools [][]byte // one bit per row

	batch arrow.RecordBatch // the last one; it refers to the columns
}

// batchWriter is implemented by ipc.Writer and ipc.FileWriter.
type batchWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

func newArrowEncoder(l *layout, file bool) *arrowEncoder {
	e := &arrowEncoder{layout: l, file: file, most: min(max(batchValues/len(l.columns), leastBatchRows), mostBatchRows)}
	var fields []arrow.Field
	for _, c := range l.columns {
		f := arrow.Field{Name: strings.ToValidUTF8(c.name, "\ufffd"), Type: arrowTypes[c.kind]}
		var keys, values []string
		for _, m := range [][2]string{
			{"unit", c.unit}, {"description", c.about.Text}, {"causality", c.about.Causality}, {"variability", c.about.Variability},
		} {
			if m[1] != "" {
				keys, values = append(keys, m[0]), append(values, strings.ToValidUTF8(m[1], "\ufffd"))
			}
		}
		f.Metadata = arrow.NewMetadata(keys, values)
		fields = append(fields, f)
	}
	e.schema = arrow.NewSchema(fields, nil)
	return e
}

var arrowTypes = [...]arrow.DataType{
	master.Real:    arrow.PrimitiveTypes.Float64,
	master.Integer: arrow.PrimitiveTypes.Int32,
	master.Boolean: arrow.FixedWidthTypes.Boolean,
	master.String:  arrow.BinaryTypes.String,
}

func (e *arrowEncoder) room() room {
	// Extra slots take rows while a batch is written: a whole batch, unless the table is very wide.
	extra := max(1, min(e.most, batchValues/len(e.layout.columns)))
	return room{workers: 1, rows: e.most, slots: e.most + extra, text: batchText}
}

// start makes a new writer.
func (e *arrowEncoder) start() (err error) {
	e.out.Reset()
	if e.file {
		e.writer, err = ipc.NewFileWriter(&e.out, ipc.WithSchema(e.schema))
		return err
	}
	e.writer = ipc.NewWriter(&e.out, ipc.WithSchema(e.schema))
	return nil
}

// begin returns the schema, followed by a batch without rows, because the writers emit
// the schema with the first batch. A run that ends before its first full batch thus leaves
// a valid table.
func (e *arrowEncoder) begin() ([]byte, error) {
	e.real = columnsOf[float64](e.layout.count[master.Real], e.most)
	e.ints = columnsOf[int32](e.layout.count[master.Integer], e.most)
	e.bools = columnsOf[byte](e.layout.count[master.Boolean], (e.most+7)/8)
	if err := e.start(); err != nil {
		return nil, err
	}
	if err := e.writeBatch(block{}); err != nil {
		return nil, err
	}
	e.header = bytes.Clone(e.out.Bytes())
	return e.header, nil
}

// columnsOf returns n columns with room for so many rows.
func columnsOf[T any](n, rows int) [][]T {
	columns := make([][]T, n)
	for i := range columns {
		columns[i] = make([]T, rows)
	}
	return columns
}

func (e *arrowEncoder) encode(_ int, b block) (piece, error) {
	e.out.Reset()
	for _, to := range e.bools {
		clear(to)
	}
	some := max(1, blockValues/len(e.layout.columns)) // rows that fit in the cache of a core
	for at := 0; at < b.rows; at += some {
		n := min(some, b.rows-at)
		transpose(e.real, at, window(b.real, len(e.real), at, n), n)
		transpose(e.ints, at, window(b.integer, len(e.ints), at, n), n)
		for k, to := range e.bools {
			for r := at; r < at+n; r++ {
				to[r/8] |= b.boolean[r*len(e.bools)+k] & 1 << (r % 8)
			}
		}
	}
	if err := e.writeBatch(b); err != nil {
		return piece{}, err
	}
	return piece{bytes: e.out.Bytes(), rows: b.rows, newest: b.real[(b.rows-1)*len(e.real)]}, nil
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

// writeBatch passes the rows to the writer.
func (e *arrowEncoder) writeBatch(b block) error {
	if e.batch == nil || int(e.batch.NumRows()) != b.rows || len(b.str) > 0 {
		cols := make([]arrow.Array, len(e.layout.columns))
		for i, c := range e.layout.columns {
			cols[i] = e.array(c, b)
		}
		e.batch = array.NewRecordBatch(e.schema, cols, int64(b.rows))
	}
	return e.writer.Write(e.batch)
}

// array returns the values of a column. Only strings are copied.
func (e *arrowEncoder) array(c column, b block) arrow.Array {
	buffers := []*memory.Buffer{nil, nil}
	switch c.kind {
	case master.Real:
		buffers[1] = memory.NewBufferBytes(arrow.Float64Traits.CastToBytes(e.real[c.at][:b.rows]))
	case master.Integer:
		buffers[1] = memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(e.ints[c.at][:b.rows]))
	case master.Boolean:
		buffers[1] = memory.NewBufferBytes(e.bools[c.at][:(b.rows+7)/8])
	case master.String:
		to := array.NewStringBuilder(memory.DefaultAllocator)
		to.Reserve(b.rows)
		for r := range b.rows {
			to.Append(strings.ToValidUTF8(b.string(b.str[r*e.layout.count[master.String]+c.at]), "\ufffd"))
		}
		return to.NewArray()
	}
	return array.MakeFromData(array.NewData(arrowTypes[c.kind], b.rows, buffers, nil, 0, 0))
}

// whole returns nothing: a batch that is cut is lost.
func (e *arrowEncoder) whole(piece, int) piece { return piece{} }

func (e *arrowEncoder) end() ([]byte, error) {
	e.out.Reset()
	err := e.writer.Close()
	return e.out.Bytes(), err
}

// resume passes the batches of the file through a new writer, so that the footer will list
// them.
func (e *arrowEncoder) resume(path string, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	same := make([]byte, len(e.header))
	if _, err := io.ReadFull(f, same); err != nil || !bytes.Equal(same, e.header) {
		return errOtherColumns
	}
	from := int64(0)
	if e.file {
		from = arrowMagic
	}
	r, err := ipc.NewReader(bufio.NewReaderSize(io.NewSectionReader(f, from, n-from), 1<<20))
	if err != nil {
		return err
	}
	defer r.Release()
	if err := e.start(); err != nil {
		return err
	}
	written := int64(0)
	for r.Next() {
		if err := e.writer.Write(r.RecordBatch()); err != nil {
			return err
		}
		written += int64(e.out.Len())
		e.out.Reset()
	}
	if err := r.Err(); err != nil {
		return err
	}
	if written != n {
		return fmt.Errorf("its record batches should take %d bytes, but the file has %d", written, n)
	}
	return nil
}

// arrowMagic is the number of bytes that an Arrow file has in front of the stream.
const arrowMagic = 8
