package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/master"
)

// chunk is the size of the buffer for lines in bytes.
const chunk = 64 << 10

// text is a file of lines with a buffer in shared memory. Lines are written when the buffer
// is full and by Flush. If the process dies, Salvage writes them.
type text struct {
	textKind
	path   string
	memory Memory

	mu       sync.Mutex // Flush may be called while a step hangs
	file     *os.File   // nil = not open
	absolute string     // path of the file
	regular  bool       // the file can be truncated
	waiting  buffer
	ledger   *ledger // shows another process what is recorded and what is written
	err      error   // of the first failed write
}

// textKind holds the constants of one kind of text file.
type textKind struct {
	what, flag    string // for messages
	fails         string // begins the message of a failed write
	region, lines string // names of the memory regions: ledger with description, and lines
	header        string // first line
}

// buffer is a ring of bytes to be written. begin and end are their positions in the file.
type buffer struct {
	bytes      []byte
	begin, end uint64
}

// add appends a line and reports whether there was room.
func (b *buffer) add(line []byte) bool {
	size := uint64(len(b.bytes))
	if b.end+uint64(len(line))-b.begin > size {
		return false
	}
	n := copy(b.bytes[b.end%size:], line)
	copy(b.bytes, line[n:])
	b.end += uint64(len(line))
	return true
}

// write writes the bytes. After an error it keeps those that were not written.
func (b *buffer) write(to io.Writer) error {
	size := uint64(len(b.bytes))
	for b.begin < b.end {
		at := b.begin % size
		n, err := to.Write(b.bytes[at:min(size, at+b.end-b.begin)])
		b.begin += uint64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// create creates or truncates the file and writes the header.
func (x *text) create() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("creating %s: %w", x.what, err)
		}
	}()
	if x.absolute, err = filepath.Abs(x.path); err != nil {
		return err
	}
	f, regular, err := createLocked(x.path, x.flag)
	if err != nil {
		return err
	}
	x.regular = regular
	err = x.allocate(0)
	if err == nil && regular {
		err = f.Truncate(0)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	x.file = f
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.header == "" {
		return nil
	}
	return errors.Join(x.add([]byte(x.header)), x.flush())
}

// resume continues the file of an earlier run.
func (x *text) resume(from *position) error {
	f, err := from.reopen()
	if err == nil {
		x.file, x.absolute, x.regular = f, from.path, true
		err = errors.Join(x.allocate(from.bytes), f.Truncate(from.bytes))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", x.what, err)
	}
	return nil
}

// allocate allocates the buffer for a file of so many bytes and publishes its state.
func (x *text) allocate(size int64) error {
	m := x.memory
	if m == nil {
		m = ordinary{}
	}
	m.Drop(x.region) // from an earlier run
	m.Drop(x.lines)
	var err error
	if x.waiting.bytes, err = region(m, x.lines, chunk); err != nil {
		return err
	}
	x.waiting.begin, x.waiting.end, x.err = uint64(size), uint64(size), nil
	about := master.NewArchive()
	about.All(&x.absolute, &x.regular)
	x.ledger, err = newLedger(m, x.region, about.Data(), x.place(fileGrows))
	return err
}

func (x *text) place(state uint64) place {
	return place{bytes: x.waiting.begin, recorded: x.waiting.begin, state: state}
}

// add adds a line to the buffer. The caller holds mu.
func (x *text) add(line []byte) error {
	for len(line) > 0 && x.err == nil {
		n := min(len(line), chunk)
		if !x.waiting.add(line[:n]) {
			_ = x.flush()
			continue
		}
		x.ledger.recorded.Store(x.waiting.end)
		line = line[n:]
	}
	return x.err
}

// Flush writes the buffered lines to the file.
func (x *text) Flush() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.flush()
}

func (x *text) flush() error {
	if x.err != nil {
		return x.err
	}
	if err := whole(x.file, int64(x.waiting.begin)); err != nil {
		x.err = fmt.Errorf("%s: %w", x.fails, err)
		x.ledger.publish(x.place(fileLost))
		return x.err
	}
	err := x.waiting.write(x.file)
	x.ledger.publish(x.place(fileGrows))
	if err != nil {
		x.err = fmt.Errorf("%s: %w; free space, choose another %s, or leave it out", x.fails, err, x.flag)
	}
	return x.err
}

// Close writes the buffered lines and closes the file, if it is open.
func (x *text) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.file == nil {
		return nil
	}
	err := x.flush()
	if err == nil {
		x.ledger.publish(x.place(fileEnds))
		if err = there(x.file, x.absolute); err != nil {
			err = fmt.Errorf("%s: %w", x.what, err)
		}
	}
	err = errors.Join(err, x.file.Close())
	x.file, x.err = nil, os.ErrClosed
	return err
}

// salvage completes the file of a dead process and appends more. It returns the path of the
// file, "" if the process had not created it.
func (k *textKind) salvage(find func(name string) []byte, more string) (path string, err error) {
	defer salvaging(k.what, &err)
	l, description, at, err := openLedger(find(k.region))
	if l == nil || err != nil {
		return "", err
	}
	a := master.ReadArchive(description)
	regular := false
	if a.All(&path, &regular); a.Finish() != nil {
		return "", errScribbled
	}
	if at.state == fileEnds || at.state == fileLost {
		return path, nil
	}
	if strings.HasPrefix(path, openFiles) {
		return path, fmt.Errorf("%s referred to an open file of the process that has ended", path)
	}
	b := buffer{bytes: find(k.lines), begin: at.recorded, end: l.recorded.Load()}
	damaged := error(nil)
	if b.end-b.begin > uint64(len(b.bytes)) {
		b.end, damaged = b.begin, errScribbled
	}
	var f *os.File
	if regular {
		f, err = continueFile(path, int64(b.begin), func() error { return k.begins(path, int64(b.begin)) })
	} else {
		f, err = create(path, 0, pipePatience)
	}
	if err != nil {
		return path, errors.Join(err, damaged)
	}
	if b.end == 0 {
		more = k.header + more
	}
	err = b.write(f)
	if err == nil {
		_, err = f.WriteString(more)
	}
	return path, errors.Join(err, f.Close(), damaged)
}

// begins returns an error unless the first n bytes of the file at path agree with the header.
func (k *textKind) begins(path string, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	begin := make([]byte, min(n, int64(len(k.header))))
	if _, err := io.ReadFull(f, begin); err != nil || !bytes.HasPrefix([]byte(k.header), begin) {
		return errOtherColumns
	}
	return nil
}
