// Package parquetfile writes Parquet files by row groups, so that the file of a run that was killed can be completed.
//
// A file begins with a complete Parquet file of no rows. Row groups follow: one page per column, in order, each with a
// checksum. The footer at the end lists them. If it is missing, [File.Recover] finds the whole row groups.
//
// Pages hold plain values, compressed by Snappy; all columns are required. Format:
// https://github.com/apache/parquet-format.
package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/snappy"
)

// Kind is the type of a column, with the number of its physical type in the format.
type Kind int32

// The kinds of columns.
const (
	Boolean Kind = 0
	Int64   Kind = 2
	Double  Kind = 5
	Text    Kind = 6 // UTF-8
)

// holds reports whether so many values may take so many bytes.
func (k Kind) holds(values, bytes int) bool {
	switch k {
	case Boolean:
		return bytes == (values+7)/8
	case Int64, Double:
		return bytes == 8*values
	}
	return bytes >= 4*values
}

// Column is a column of a file.
type Column struct {
	Name string // UTF-8
	Kind Kind
}

// Entry is an entry of the metadata of a file.
type Entry struct{ Key, Value string }

// File is the state of a growing file. It holds the metadata of the row groups, some tens of bytes per page.
type File struct {
	columns []Column
	entries []Entry
	head    []byte

	groups, rows int64
	list         []byte // encoded row groups

	group  compact // encoded columns of the current row group
	size   int64   // bytes of its pages
	plain  int64   // the same without compression
	next   int     // column of the next page
	packed []byte
}

const magic = "PAR1"

// New returns a file of no rows.
func New(columns []Column, entries []Entry) *File {
	f := &File{columns: columns, entries: entries}
	meta := f.metadata()
	f.head = append(f.head, magic...)
	f.head = binary.LittleEndian.AppendUint32(f.head, uint32(len(meta)))
	f.head = append(f.head, ended(meta)...)
	return f
}

// Head returns the bytes before the first row group.
func (f *File) Head() []byte { return f.head }

// HeadSize returns the size of the head of a file that begins with b, 0 if it was not written by this package.
func HeadSize(b []byte) int64 {
	if len(b) < 8 || string(b[:4]) != magic {
		return 0
	}
	return 8 + int64(binary.LittleEndian.Uint32(b[4:])) + 8
}

// footerSize returns the size of the metadata before the last eight bytes of a file; -1 = it has none.
func footerSize(end []byte) int64 {
	if string(end[4:]) != magic {
		return -1
	}
	return int64(binary.LittleEndian.Uint32(end))
}

// ended appends length and magic to the metadata of a file.
func ended(meta []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(meta, uint32(len(meta))), magic...)
}

// Footer returns the bytes after the last row group.
func (f *File) Footer() []byte { return ended(f.metadata()) }

// FooterSize returns the approximate size of the footer.
func (f *File) FooterSize() int64 { return int64(len(f.head) + len(f.list)) }

// metadata encodes a FileMetaData.
func (f *File) metadata() []byte {
	c := compact{b: make([]byte, 0, len(f.list)+64*(len(f.columns)+4))}
	c.i32(1, 1) // version
	c.list(2, isStruct, 1+len(f.columns))
	c.nested(func() {
		c.text(4, "results")
		c.i32(5, int32(len(f.columns)))
	})
	for _, column := range f.columns {
		c.nested(func() {
			c.i32(1, int32(column.Kind))
			c.i32(3, 0) // required
			c.text(4, column.Name)
			if column.Kind == Text {
				c.i32(6, 0)                                 // UTF8
				c.field(10, isStruct)                       // the logical type …
				c.nested(func() { c.object(1, func() {}) }) // … is String
			}
		})
	}
	c.i64(3, f.rows)
	c.list(4, isStruct, int(f.groups))
	c.b = append(c.b, f.list...)
	c.list(5, isStruct, len(f.entries))
	for _, e := range f.entries {
		c.nested(func() {
			c.text(1, e.Key)
			c.text(2, e.Value)
		})
	}
	c.text(6, "macrostep")
	return append(c.b, 0)
}

var errTooLarge = errors.New("the strings of a column take more than 2 GiB in few rows; record fewer")

// AppendPage appends the next page to b, with the plain values of the next column in so many rows. at is the position of
// the page in the file. The page of the last column ends a row group.
func (f *File) AppendPage(b []byte, at int64, rows int, values []byte) ([]byte, error) {
	if len(values) > math.MaxInt32/2 {
		return b, errTooLarge
	}
	f.packed = snappy.Encode(f.packed[:cap(f.packed)], values)
	h := compact{b: b}
	h.i32(1, 0) // data page
	h.i32(2, int32(len(values)))
	h.i32(3, int32(len(f.packed)))
	h.i32(4, int32(crc32.ChecksumIEEE(f.packed)))
	h.object(5, func() {
		h.i32(1, int32(rows))
		h.i32(2, plainEncoding)
		h.i32(3, levelEncoding)
		h.i32(4, levelEncoding)
	})
	header := len(h.b) + 1 - len(b)
	f.add(page{at: at, header: header, plain: len(values), packed: len(f.packed), rows: rows})
	return append(append(h.b, 0), f.packed...), nil
}

// Encodings of values and of levels, of which required columns have none.
const plainEncoding, levelEncoding = 0, 3

// page is a page in the file: its position, the sizes of its header and values, and the number of values.
type page struct {
	at                          int64
	header, plain, packed, rows int
}

// add adds a page to the metadata of the file.
func (f *File) add(p page) {
	g := &f.group
	if f.next == 0 {
		*g, f.size, f.plain = compact{b: g.b[:0]}, 0, 0
		g.list(1, isStruct, len(f.columns))
	}
	column := f.columns[f.next]
	plain, packed := int64(p.header+p.plain), int64(p.header+p.packed)
	g.nested(func() {
		g.i64(2, 0) // no metadata elsewhere
		g.object(3, func() {
			g.i32(1, int32(column.Kind))
			g.list(2, isInt32, 1)
			g.zigzag(plainEncoding)
			g.list(3, isText, 1)
			g.bytes(column.Name)
			g.i32(4, 1) // Snappy
			g.i64(5, int64(p.rows))
			g.i64(6, plain)
			g.i64(7, packed)
			g.i64(9, p.at)
		})
	})
	f.size, f.plain = f.size+packed, f.plain+plain
	if f.next++; f.next < len(f.columns) {
		return
	}
	g.i64(2, f.plain)
	g.i64(3, int64(p.rows))
	g.i64(6, f.size)
	f.list = append(append(f.list, g.b...), 0)
	f.next, f.groups, f.rows = 0, f.groups+1, f.rows+int64(p.rows)
}

// Recover makes f the state of a file with the same head, of so many bytes. It returns the end of the whole row groups.
func (f *File) Recover(r io.ReaderAt, size int64) (end int64, err error) {
	f.groups, f.rows, f.list, f.next = 0, 0, nil, 0
	end = int64(len(f.head))
	var group []page
	var b []byte
	for at := end; ; {
		p, err := readPage(r, at, size, &b)
		if err != nil {
			return end, err
		}
		if p.packed == 0 || !f.columns[len(group)].Kind.holds(p.rows, p.plain) || len(group) > 0 && p.rows != group[0].rows {
			return end, nil
		}
		at += int64(p.header + p.packed)
		if group = append(group, p); len(group) == len(f.columns) {
			for _, p := range group {
				f.add(p)
			}
			group, end = group[:0], at
		}
	}
}

// headerRoom is more than the size of the header of a page.
const headerRoom = 64

// readPage reads and checks the page at a position of a file of so many bytes; the zero page = there is no whole one.
// b is a buffer.
func readPage(r io.ReaderAt, at, size int64, b *[]byte) (p page, err error) {
	head := make([]byte, min(headerRoom, size-at))
	if _, err := r.ReadAt(head, at); err != nil && !errors.Is(err, io.EOF) {
		return page{}, err
	}
	h := numbers{b: head}
	if h.next() != 0 { // a footer begins with 1
		return page{}, nil
	}
	p.at, p.plain, p.packed = at, h.next(), h.next()
	sum := uint32(h.next())
	h.object()
	p.rows = h.next()
	encodings := [...]int{h.next(), h.next(), h.next()}
	const ends = "\x00\x00" // of two objects
	p.header = len(head) - len(h.b) + len(ends)
	if h.bad || !bytes.HasPrefix(h.b, []byte(ends)) || encodings != [...]int{plainEncoding, levelEncoding, levelEncoding} ||
		p.plain < 0 || p.packed <= 0 || p.rows <= 0 || int64(p.header+p.packed) > size-at {
		return page{}, nil
	}
	if cap(*b) < p.packed {
		*b = make([]byte, p.packed)
	}
	values := (*b)[:p.packed]
	if _, err := r.ReadAt(values, at+int64(p.header)); err != nil && !errors.Is(err, io.EOF) {
		return page{}, err
	}
	if n, err := snappy.DecodedLen(values); err != nil || n != p.plain || crc32.ChecksumIEEE(values) != sum {
		return page{}, nil
	}
	return p, nil
}

// ColumnsKey is the key of an entry that describes columns: a JSON object of objects of strings, by name of the column and
// property, among them "unit".
const ColumnsKey = "macrostep.columns"
