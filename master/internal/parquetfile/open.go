package parquetfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Open opens the Parquet file of any program. A file of this package that lacks its footer, or is being written, is opened
// up to its last whole row group; broken is set then.
func Open(r io.ReaderAt, size int64) (f *parquet.File, broken bool, err error) {
	if f, err = open(r, size); err == nil {
		return f, false, nil
	}
	start := make([]byte, 8)
	if _, failed := r.ReadAt(start, 0); failed != nil {
		return nil, false, err
	}
	head := HeadSize(start)
	if head == 0 || head > size {
		return nil, false, err
	}
	empty, failed := open(io.NewSectionReader(r, 0, head), head)
	if failed != nil {
		return nil, false, err
	}
	ours := stateOf(empty)
	if int64(len(ours.head)) != head {
		return nil, false, err
	}
	whole := &completed{ReaderAt: r}
	if whole.end, err = ours.Recover(r, size); err != nil {
		return nil, false, err
	}
	whole.footer = ours.Footer()
	f, err = open(whole, whole.end+int64(len(whole.footer)))
	return f, true, err
}

func open(r io.ReaderAt, size int64) (*parquet.File, error) {
	end := make([]byte, 8)
	if size < 12 {
		return nil, fmt.Errorf("it has %d bytes", size)
	}
	if _, err := r.ReadAt(end, size-8); err != nil {
		return nil, err
	}
	if n := footerSize(end); n < 0 || n > size-12 {
		return nil, errors.New("it has no footer")
	}
	return parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
}

// stateOf returns the state of our file of no rows.
func stateOf(f *parquet.File) *File {
	var columns []Column
	for _, c := range f.Root().Columns() {
		columns = append(columns, Column{Name: c.Name(), Kind: Kind(c.Type().Kind())})
	}
	var entries []Entry
	for _, e := range f.Metadata().KeyValueMetadata {
		entries = append(entries, Entry{e.Key, e.Value})
	}
	return New(columns, entries)
}

// completed is a file up to end, followed by a footer.
type completed struct {
	io.ReaderAt
	end    int64
	footer []byte
}

func (c *completed) ReadAt(b []byte, at int64) (n int, err error) {
	if at < c.end {
		n, err = c.ReaderAt.ReadAt(b[:min(int64(len(b)), c.end-at)], at)
		if n == len(b) || int64(n) < c.end-at {
			return n, err
		}
	}
	more := copy(b[n:], c.footer[min(at+int64(n)-c.end, int64(len(c.footer))):])
	if n += more; n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
