package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/macrostep/macrostep/master"
)

// chunk is the number of bytes of attempts gathered before they are written.
const chunk = 64 << 10

// Attempts writes every attempt at a macro step as a row of a table with the
// header t,H,k,iterations,estimate,indicator,accepted: start and size of the step
// in s, order in force, corrector iterations, error estimate in units of the
// tolerance, indicator of quality that only informs the step control (both empty if
// the algorithm has none), and 1 if the attempt was accepted, else 0.
type Attempts struct {
	path   string
	memory Memory

	mu       sync.Mutex // Flush may be called while a step hangs
	file     *os.File
	regular  bool // the file can be cut
	rows     buffer
	ledger   *ledger // tells another process what is recorded and what is written
	row      []byte
	err      error     // of the first failed write
	recorded position  // rows that are not in the file included
	resumed  *position // of the run that is continued; nil = from the start
}

// attemptsHeader begins the file.
const attemptsHeader = "t,H,k,iterations,estimate,indicator,accepted\n"

// buffer is a ring of bytes on their way to a file. begin and end count those of the whole
// file.
type buffer struct {
	bytes      []byte
	begin, end uint64
}

// add appends a row, if there is room.
func (b *buffer) add(row []byte) bool {
	size := uint64(len(b.bytes))
	if b.end+uint64(len(row))-b.begin > size {
		return false
	}
	n := copy(b.bytes[b.end%size:], row)
	copy(b.bytes, row[n:])
	b.end += uint64(len(row))
	return true
}

// write empties the buffer. After an error it keeps what was not written.
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

var (
	_ master.RecorderArchiver = (*Attempts)(nil)
	_ master.AttemptRecorder  = (*Attempts)(nil)
)

// NewAttempts returns a table that creates or replaces the file at path when the run
// begins. In a run that is resumed it goes on like the results (NewTable). Rows wait in m
// to be written; nil = ordinary memory.
func NewAttempts(path string, m Memory) *Attempts { return &Attempts{path: path, memory: m} }

// Begin creates the file and writes the header.
func (a *Attempts) Begin(*master.System, []master.Port) error {
	var err error
	if a.recorded.path, err = filepath.Abs(a.path); err != nil {
		return fmt.Errorf("creating the table of attempts: %w", err)
	}
	if r := a.resumed; r != nil && r.path == a.recorded.path {
		f, err := r.reopen()
		if err == nil {
			a.file, a.regular, a.recorded = f, true, *r
			err = errors.Join(a.allocate(), f.Truncate(r.bytes))
		}
		if err != nil {
			return fmt.Errorf("the table of attempts: %w", err)
		}
		return nil
	}
	if a.file, err = Create(a.path, 0); err != nil {
		return fmt.Errorf("creating the table of attempts: %w%s", err, createRemedy(err))
	}
	if info, serr := a.file.Stat(); serr == nil {
		a.regular = info.Mode().IsRegular()
	}
	if a.regular {
		if err = lock(a.file); err != nil {
			err = fmt.Errorf("%s: %w; choose another --trace", a.path, err)
		}
	}
	if err == nil {
		err = a.allocate()
	}
	if err == nil && a.regular {
		err = a.file.Truncate(0)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("creating the table of attempts: %w", err), a.file.Close())
	}
	a.row = append(a.row, attemptsHeader...)
	return errors.Join(a.add(), a.Flush())
}

// allocate makes the memory for rows, and publishes where the file stands.
func (a *Attempts) allocate() error {
	m := a.memory
	if m == nil {
		m = ordinary{}
	}
	m.Drop(attemptsRegion) // of an earlier run
	var err error
	if a.rows.bytes, err = region(m, bufferRegion, chunk); err != nil {
		return err
	}
	a.rows.begin, a.rows.end = uint64(a.recorded.bytes), uint64(a.recorded.bytes)
	about := master.NewArchive()
	about.String(&a.recorded.path)
	about.Bool(&a.regular)
	a.ledger, err = newLedger(m, attemptsRegion, about.Data(), a.place(fileGrows))
	return err
}

func (a *Attempts) place(state uint64) place {
	return place{bytes: a.rows.begin, recorded: a.rows.begin, state: state}
}

// isAttempts reports whether the file at path begins as a table of attempts, if it has
// that many bytes.
func isAttempts(path string, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	begin := make([]byte, min(n, int64(len(attemptsHeader))))
	if _, err := io.ReadFull(f, begin); err != nil || !bytes.HasPrefix([]byte(attemptsHeader), begin) {
		return errOtherColumns
	}
	return nil
}

// ArchiveName is that of the table.
func (a *Attempts) ArchiveName() string { return "attempts" }

// Archive carries how far the table has come.
func (a *Attempts) Archive(to *master.Archive) {
	if to.Reading() {
		a.resumed = &position{}
		a.resumed.archive(to)
		return
	}
	to.Fail(a.Flush())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recorded.archive(to)
}

// RecordAttempt adds a row.
func (a *Attempts) RecordAttempt(t, H float64, trial master.Trial, accepted bool, _ error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := strconv.AppendFloat(a.row[:0], t, 'g', -1, 64)
	r = strconv.AppendFloat(append(r, ','), H, 'g', -1, 64)
	r = strconv.AppendInt(append(r, ','), int64(trial.Order), 10)
	r = strconv.AppendInt(append(r, ','), int64(trial.Iters), 10)
	for _, v := range [...]float64{trial.Est, trial.Indicator} {
		if r = append(r, ','); !math.IsNaN(v) {
			r = strconv.AppendFloat(r, v, 'g', -1, 64)
		}
	}
	stands := byte('0')
	if accepted {
		stands = '1'
	}
	r = append(r, ',', stands, '\n')
	a.row = r
	return a.add()
}

// add records a.row.
func (a *Attempts) add() error {
	for a.err == nil && !a.rows.add(a.row) {
		_ = a.flush()
	}
	if a.err == nil {
		a.recorded.wrote(a.row)
		a.ledger.recorded.Store(a.rows.end)
	}
	return a.err
}

// failed keeps the error of the first failed write; what follows on it would only
// hide it.
func (a *Attempts) failed(err error) error {
	a.err = fmt.Errorf("writing the table of attempts: %w; free space, choose another --trace, or leave it out", err)
	return a.err
}

// Record does nothing: attempts are seen by RecordAttempt.
func (a *Attempts) Record(*master.Point) error { return nil }

// Flush writes the rows so far to the file.
func (a *Attempts) Flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.flush()
}

func (a *Attempts) flush() error {
	if a.err != nil {
		return a.err
	}
	if err := whole(a.file, int64(a.rows.begin)); err != nil {
		a.err = fmt.Errorf("writing the table of attempts: %w", err)
		a.ledger.publish(a.place(fileLost))
		return a.err
	}
	err := a.rows.write(a.file)
	a.ledger.publish(a.place(fileGrows))
	if err != nil {
		return a.failed(err)
	}
	return nil
}

// End closes the file.
func (a *Attempts) End(master.Result) error {
	err := a.Flush()
	if err == nil {
		a.ledger.publish(a.place(fileEnds))
		if err = there(a.file, a.recorded.path); err != nil {
			err = fmt.Errorf("the table of attempts: %w", err)
		}
	}
	return errors.Join(err, a.file.Close())
}
