package results

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	flatbuffers "github.com/google/flatbuffers/go"
)

// An Arrow file is an Arrow stream between magic and footer.
const (
	arrowMagic  = "ARROW1\x00\x00"
	arrowStream = "\xff\xff\xff\xff" // the first bytes of a stream
)

// parseArrow reads an Arrow IPC file or stream of at most size bytes. It reads the file of a
// killed run up to the last whole batch.
func parseArrow(in *bufio.Reader, size int64, path string, o ReadOptions) (t *Table, err error) {
	defer func() { // the library panics on invalid lengths and offsets
		if broken := recover(); broken != nil {
			t, err = nil, arrowError(path, fmt.Errorf("%v", broken))
		}
	}()
	if start, err := in.Peek(len(arrowMagic)); err == nil && string(start) == arrowMagic {
		_, _ = in.Discard(len(arrowMagic))
	}
	const batch = 64 << 20 // more than the incomplete batch of a killed run
	messages := ipc.NewMessageReader(&checked{in: in, most: size + batch},
		ipc.WithMetadataSizeLimit(size+batch), ipc.WithBodySizeLimit(size+batch))
	r, err := ipc.NewReaderFromMessageReader(messages)
	if err != nil {
		return nil, arrowError(path, err)
	}
	defer r.Release()
	p := &parser{t: &Table{Path: path}, scale: 1, options: o}
	var names []string
	for _, f := range r.Schema().Fields() {
		names = append(names, f.Name)
	}
	if err := p.readHeader(names, o); err != nil || o.header {
		return p.t, err
	}
	p.texts = make([]int, p.fields)
	for i, f := range r.Schema().Fields()[:p.fields] {
		if unit, ok := f.Metadata.GetValue("unit"); ok && p.t.Columns[i].Unit == "" {
			p.t.Columns[i].Unit = unit
		}
	}
	rows := 0
	for r.Next() {
		batch := r.RecordBatch()
		rows += int(batch.NumRows())
		if err := p.bound(rows); err != nil {
			return nil, err
		}
		for i := range p.fields {
			if !p.left[i] {
				p.addArrow(i, batch.Column(i))
			}
		}
	}
	switch err := r.Err(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.note("the last batch breaks off and is left out")
	case err != nil:
		return nil, arrowError(path, err)
	}
	p.t.Times, p.t.Columns[p.timeAt].Values = p.t.Columns[p.timeAt].Values, nil
	for i, at := range p.t.Times {
		switch {
		case math.IsNaN(at) || math.IsInf(at, 0):
			return nil, fmt.Errorf("%s: the time in row %d is %g; it must be a finite number", path, i+1, at)
		case i > 0 && at < p.t.Times[i-1]:
			return nil, fmt.Errorf("%s: the time %g in row %d is before that of the row above; sort the rows by time", path, at, i+1)
		}
		p.t.Times[i] = at * p.scale
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return p.t, nil
}

// Slots of the tables of flatbuffers in Arrow messages (Message.fbs, Schema.fbs), and
// kinds of messages.
const (
	messageKind, messageHeader, messageBody = 6, 8, 10
	schemaFields, schemaMetadata            = 6, 8
	fieldChildren, fieldMetadata            = 14, 16
	batchNodes, batchBuffers, batchPacked   = 6, 8, 10
	batchCounts                             = 12
	isSchema, isBatch                       = 1, 3
)

// checked reads a stream and checks the metadata of each message for numbers that would make the
// library allocate too much memory. Invalid offsets in the metadata panic.
type checked struct {
	in   *bufio.Reader
	most int64
	data []byte // next bytes to return
	body int64  // bytes of the body after data
	err  error  // to return after the body
}

func (c *checked) Read(b []byte) (int, error) {
	for {
		switch {
		case len(c.data) > 0:
			n := copy(b, c.data)
			c.data = c.data[n:]
			return n, nil
		case c.body > 0:
			n, err := c.in.Read(b[:min(int64(len(b)), c.body)])
			c.body -= int64(n)
			return n, err
		case c.err != nil:
			return 0, c.err
		}
		c.next()
	}
}

// next reads the beginning of a message, up to its body.
func (c *checked) next() {
	head := make([]byte, 4, 8)
	if _, err := io.ReadFull(c.in, head); err != nil {
		c.err = err
		return
	}
	if binary.LittleEndian.Uint32(head) == 1<<32-1 {
		head = head[:8]
		if _, err := io.ReadFull(c.in, head[4:]); err != nil {
			c.data, c.err = head[:4], io.ErrUnexpectedEOF
			return
		}
	}
	n := binary.LittleEndian.Uint32(head[len(head)-4:])
	if c.data = head; n == 0 {
		c.err = io.EOF
		return
	}
	if int64(n) > c.most {
		c.err = fmt.Errorf("a message has %d bytes, more than the file", n)
		return
	}
	data, err := io.ReadAll(io.LimitReader(c.in, int64(n))) // n may be wrong, so no allocation of n bytes
	if err != nil || len(data) < int(n) {
		c.err = cmp.Or(err, io.ErrUnexpectedEOF)
		return
	}
	if c.body, c.err = checkArrow(data); c.err != nil {
		c.data = nil
		return
	}
	c.data = append(head, data...)
}

// checkArrow checks the metadata of a message and returns the length of its body.
func checkArrow(data []byte) (body int64, err error) {
	message := flatbuffers.Table{Bytes: data, Pos: flatbuffers.GetUOffsetT(data)}
	header := flatbuffers.Table{Bytes: data}
	if o := message.Offset(messageHeader); o != 0 {
		message.Union(&header, flatbuffers.UOffsetT(o))
	}
	switch kind := message.GetByteSlot(messageKind, 0); {
	case header.Pos == 0:
		err = errors.New("a message is empty")
	case kind == isSchema:
		room := len(data)
		err = errors.Join(short(&header, schemaMetadata), shortFields(&header, schemaFields, &room))
	case kind == isBatch && header.Offset(batchPacked) != 0:
		err = errors.New("it is compressed; write it without compression")
	case kind == isBatch:
		err = errors.Join(short(&header, batchNodes), short(&header, batchBuffers), short(&header, batchCounts))
	default:
		err = errors.New("a message is neither schema nor record batch; write strings without dictionary encoding")
	}
	return max(message.GetInt64Slot(messageBody, 0), 0), err
}

// short returns an error for a vector with more elements than the message has bytes.
func short(t *flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	if o := t.Offset(slot); o != 0 {
		if n := t.VectorLen(flatbuffers.UOffsetT(o)); n < 0 || n > len(t.Bytes) {
			return fmt.Errorf("a list of %d is longer than the file", n)
		}
	}
	return nil
}

// shortFields checks the fields of a schema or field recursively. room is the remaining number of
// bytes for fields: fields may be shared, which could make their number exponential.
func shortFields(t *flatbuffers.Table, slot flatbuffers.VOffsetT, room *int) error {
	const smallest = 8 // bytes of a field
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if err := short(t, slot); o == 0 || err != nil {
		return err
	}
	if *room -= smallest * t.VectorLen(o); *room < 0 {
		return errors.New("there are more fields than the file has bytes for")
	}
	for i, at := 0, t.Vector(o); i < t.VectorLen(o); i, at = i+1, at+4 {
		field := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}
		if err := errors.Join(short(&field, fieldMetadata), shortFields(&field, fieldChildren, room)); err != nil {
			return err
		}
	}
	return nil
}

func arrowError(path string, err error) error {
	return fmt.Errorf("%s cannot be read as Apache Arrow: %s; name a complete table, or one of comma-separated values",
		path, strings.TrimPrefix(err.Error(), "arrow/ipc: "))
}

// numbers is a column of numbers of one type.
type numbers[T any] interface{ Value(int) T }

// addArrow appends a batch of a column.
func (p *parser) addArrow(i int, a arrow.Array) {
	c := &p.t.Columns[i]
	take := func(at func(k int) float64) {
		for k := range a.Len() {
			v := math.NaN()
			if a.IsValid(k) {
				v = at(k)
			}
			c.Values = append(c.Values, v)
		}
	}
	switch a := a.(type) {
	case *array.Float64:
		take(a.Value)
	case *array.Float32:
		take(valuesOf(a))
	case *array.Int8:
		take(valuesOf(a))
	case *array.Int16:
		take(valuesOf(a))
	case *array.Int32:
		take(valuesOf(a))
	case *array.Int64:
		take(valuesOf(a))
	case *array.Uint8:
		take(valuesOf(a))
	case *array.Uint16:
		take(valuesOf(a))
	case *array.Uint32:
		take(valuesOf(a))
	case *array.Uint64:
		take(valuesOf(a))
	case *array.Boolean:
		take(func(k int) float64 {
			if a.Value(k) {
				return 1
			}
			return 0
		})
	default:
		p.texts[i]++
	}
}

func valuesOf[T float32 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](a numbers[T]) func(int) float64 {
	return func(k int) float64 { return float64(a.Value(k)) }
}
