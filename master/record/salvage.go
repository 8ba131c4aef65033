package record

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/macrostep/macrostep/master"
)

// Salvaged is the result of Salvage.
type Salvaged struct {
	Path     string  // of the table; "" = the run had not created one
	Rows     int     // in the file
	Columns  int     // including the time
	Newest   float64 // s, time of the last row, if there are any
	Added    int     // rows that the run had not written
	Attempts string  // path of the table of attempts; "" = the run had not created one
	Calls    string  // path of the log of calls; "" = the run had not created one
}

// openFiles is the folder of the open files of a process.
const openFiles = "/dev/fd/"

// pipePatience is the time to wait for a new reader of a named pipe.
const pipePatience = time.Second

// Salvage completes the files of a dead process from its shared memory: find returns the
// region with a name, nil if there is none ([Options].Memory, [NewAttempts], [NewCallLog]).
// Each recorded row is then in the file exactly once, and the files end like those of a
// complete run. calls are further lines for the log of calls, for the unfinished calls.
// Complete files are not changed.
//
// If the process died while writing to a pipe or a device, a row there may be cut or
// duplicated. Parquet in a pipe gets no footer.
//
// Damaged memory is an error; the rows that the run has written are kept then. The process and
// its children must have ended: Salvage does not write to a file that another process has
// locked.
func Salvage(find func(name string) []byte, calls ...string) (s Salvaged, err error) {
	err = s.table(find)
	var failed [2]error
	s.Attempts, failed[0] = attemptsText.salvage(find, "")
	s.Calls, failed[1] = callsText.salvage(find, strings.Join(calls, ""))
	return s, errors.Join(err, failed[0], failed[1])
}

func (s *Salvaged) table(find func(name string) []byte) (err error) {
	defer salvaging("the results", &err)
	l, description, at, err := openLedger(find(tableRegion))
	if l == nil || err != nil {
		return err
	}
	t, slots, err := undescribe(description)
	if err != nil {
		return err
	}
	if strings.HasPrefix(t.path, openFiles) { // it means another file in this process
		return fmt.Errorf("%s referred to an open file of the process that has ended", t.path)
	}
	t.written.bytes = int64(at.bytes)
	s.Path, s.Columns = t.path, len(t.layout.columns)
	s.Rows, s.Newest = int(at.recorded), math.Float64frombits(at.newest)
	if at.state == fileEnds || at.state == fileLost {
		return nil
	}
	header, err := t.prepare()
	if err != nil {
		return err
	}
	t.ring.rows, t.ledger = slots, &ledger{}
	t.continueAt(s.Rows, s.Newest)
	last, damaged := t.left(l, find)
	if at.state == fileUntouched && last == s.Rows {
		return damaged
	}
	if err := t.reopen(); err != nil {
		return errors.Join(err, damaged)
	}
	t.mu.Lock()
	if t.written.bytes == 0 {
		t.write(piece{bytes: header})
	}
	for t.rows < last && t.err == nil {
		size, ok := t.ring.textIn(t.slot)
		if !ok {
			damaged = errScribbled
			break
		}
		t.split(size)
		t.accept(size)
	}
	t.mu.Unlock()
	err = t.End(master.Result{})
	s.Added, s.Rows, s.Newest = t.rowsWritten-s.Rows, t.rowsWritten, t.newestWritten
	return errors.Join(err, damaged)
}

// salvaging adds context to the error of a function that completes a file, and turns a panic
// due to damaged memory into an error.
func salvaging(what string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", errScribbled, r)
	}
	if *err != nil {
		*err = fmt.Errorf("completing %s of the run: %w", what, *err)
	}
}

// left attaches the memory of the rows that are not in the file, and returns the number of
// all rows.
func (t *Table) left(l *ledger, find func(name string) []byte) (rows int, err error) {
	recorded, held := l.recorded.Load(), l.held.Load()
	if held == recorded+1 {
		recorded = held
	}
	missing := recorded - uint64(t.rows)
	if missing == 0 {
		return t.rows, nil
	}
	b := find(rowsRegion)
	if missing > uint64(t.ring.rows) || len(b)/t.ring.rows < t.layout.ringBytes(1) {
		return t.rows, errScribbled
	}
	t.ring.place(b)
	t.ring.text = find(textRegion)
	return int(recorded), nil
}

// reopen opens the file of a dead process, truncates it to whole rows and prepares to append
// to it.
func (t *Table) reopen() error {
	info, err := os.Stat(t.path)
	if err == nil && info.Mode().IsRegular() != t.regular {
		err = fmt.Errorf("%s was replaced by a file of another type", t.path)
	}
	if err != nil {
		return err
	}
	if !t.regular {
		if t.opt.Format == Parquet {
			t.encoder = endless{t.encoder}
		}
		t.file, err = create(t.path, 0, pipePatience)
		return err
	}
	t.file, err = continueFile(t.path, t.written.bytes, func() error {
		if t.written.bytes == 0 {
			return nil
		}
		return t.encoder.resume(t.path, t.written.bytes)
	})
	return err
}

// endless omits the footer of Parquet, which would be wrong.
type endless struct{ encoder }

func (endless) end() ([]byte, error) { return nil, nil }

// continueFile opens the file of a dead process for writing after its first bytes. It
// truncates the file there if ours confirms that the run wrote these bytes.
func continueFile(path string, bytes int64, ours func() error) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = lock(f)
	}
	if err == nil && info.Size() < bytes {
		err = fmt.Errorf("another program changed it: it has %d bytes, but the run wrote %d", info.Size(), bytes)
	}
	if err == nil {
		err = ours()
	}
	if err == nil {
		err = f.Truncate(bytes)
	}
	if err == nil {
		_, err = f.Seek(bytes, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, nil
}
