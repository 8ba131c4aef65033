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
	// batchValues is how many numbers a record batch gathers. A batch costs 48 bytes a
	// column on top of its values: with a thousand columns, a hundredth.
	batchValues = 512 << 10
	// batchRows bounds the rows of a batch from both sides, with few and with many columns.
	leastBatchRows, mostBatchRows = 64, 64 << 10
	// batchText bounds the bytes of strings in a batch of more than one row. A column of
	// one holds at most 2 GiB: its offsets have 32 bits.
	batchText = 4 << 20
)

// arrowEncoder makes a record batch of each block. It has one worker.
type arrowEncoder struct {
	layout *layout
	schema *arrow.Schema
	file   bool // with magic and footer

	writer batchWriter
	out    gather // where writer writes to
	header []byte // schema, and a batch without rows

	most  int         // rows in a full batch
	real  [][]float64 // by column of the kind and row
	home  []byte      // of all of them
	ints  [][]int32
	bools [][]byte // a bit for each row

	batch arrow.RecordBatch // the last one, on the columns
}

// batchWriter is what ipc.Writer and ipc.FileWriter have in common.
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
		for _, m := range [][2]string{{"unit", c.unit}, {"description", c.about.Text}, {"causality", c.about.Causality}, {"variability", c.about.Variability}} {
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
	// While a batch is written, some rows of the next one are gathered: all of them unless
	// the table is very wide.
	return room{workers: 1, rows: e.most, slots: e.most + max(1, min(e.most, batchValues/len(e.layout.columns))), text: batchText}
}

// start makes a writer that has written nothing yet.
func (e *arrowEncoder) start() (err error) {
	e.out.reset(nil)
	if e.file {
		e.writer, err = ipc.NewFileWriter(&e.out, ipc.WithSchema(e.schema))
		return err
	}
	e.writer = ipc.NewWriter(&e.out, ipc.WithSchema(e.schema))
	return nil
}

// begin returns the schema. It comes with a batch without rows, because the writers
// give the schema with the first batch; so a run that ends before its first full
// batch leaves a table.
func (e *arrowEncoder) begin() ([]byte, error) {
	var all []float64
	e.real, all = columnsOf[float64](e.layout.count[master.Real], e.most)
	e.home = arrow.Float64Traits.CastToBytes(all)
	e.ints, _ = columnsOf[int32](e.layout.count[master.Integer], e.most)
	e.bools, _ = columnsOf[byte](e.layout.count[master.Boolean], (e.most+7)/8)
	if err := e.start(); err != nil {
		return nil, err
	}
	if err := e.writeBatch(block{}); err != nil {
		return nil, err
	}
	e.header = bytes.Join(e.out.bytes(), nil)
	return e.header, nil
}

// columnsOf returns columns that lie side by side in all.
func columnsOf[T any](n, rows int) (columns [][]T, all []T) {
	columns, all = make([][]T, n), make([]T, n*rows)
	for i := range columns {
		columns[i] = all[i*rows : (i+1)*rows : (i+1)*rows]
	}
	return columns, all
}

func (e *arrowEncoder) encode(_ int, b block) (piece, error) {
	e.out.reset(nil)
	if b.rows == e.most {
		e.out.reset(e.home) // without gaps
	}
	for _, to := range e.bools {
		clear(to)
	}
	some := max(1, blockValues/len(e.layout.columns)) // rows that stay in the cache of a core
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
	return piece{bytes: e.out.bytes(), rows: b.rows, newest: b.real[(b.rows-1)*len(e.real)]}, nil
}

// transpose copies rows of values to columns, from row at on.
func transpose[T any](to [][]T, at int, from []T, rows int) {
	n := len(to)
	k := 0
	for ; k+8 <= n; k += 8 { // the values of a cache line together
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

// writeBatch hands the rows to the writer.
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

// array returns the values of a column. Those that are no strings stay where they are.
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

// whole returns nothing: a batch is there or not.
func (e *arrowEncoder) whole(piece, int) piece { return piece{} }

func (e *arrowEncoder) end() ([]byte, error) {
	e.out.reset(nil)
	err := e.writer.Close()
	return bytes.Join(e.out.bytes(), nil), err
}

// resume returns the batches of the file to a new writer, which then knows what stands
// where.
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
	given := int64(0)
	for r.Next() {
		if err := e.writer.Write(r.RecordBatch()); err != nil {
			return err
		}
		given += int64(e.out.size)
		e.out.reset(nil)
	}
	if err := r.Err(); err != nil {
		return err
	}
	if given != n {
		return fmt.Errorf("its record batches take %d bytes, and %d are there", given, n)
	}
	return nil
}

// arrowMagic is the bytes that an Arrow file has before those of a stream.
const arrowMagic = 8
