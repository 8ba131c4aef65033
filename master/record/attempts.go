package record

import (
	"bufio"
	"errors"
	"fmt"
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
	path string

	mu      sync.Mutex // Flush may be called while a step hangs
	file    *os.File
	w       *bufio.Writer
	row     []byte
	err     error     // of the first failed write
	written position  // rows handed to w included
	resumed *position // of the run that is continued; nil = from the start
}

var (
	_ master.RecorderArchiver = (*Attempts)(nil)
	_ master.AttemptRecorder  = (*Attempts)(nil)
)

// NewAttempts gives a table that creates or replaces the file at path when the
// run begins. In a run that is resumed it goes on like the results (NewTable).
func NewAttempts(path string) *Attempts { return &Attempts{path: path} }

// Begin creates the file and writes the header.
func (a *Attempts) Begin(*master.System, []master.Port) error {
	var err error
	if a.written.path, err = filepath.Abs(a.path); err != nil {
		return fmt.Errorf("creating the table of attempts: %w", err)
	}
	if r := a.resumed; r != nil && r.path == a.written.path {
		f, err := r.reopen()
		if err == nil {
			err = f.Truncate(r.bytes)
		}
		if err != nil {
			return fmt.Errorf("the table of attempts: %w", err)
		}
		a.file, a.w, a.written = f, bufio.NewWriterSize(f, chunk), *r
		return nil
	}
	f, err := Create(a.path, os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("creating the table of attempts: %w%s", err, createRemedy(err))
	}
	a.file, a.w = f, bufio.NewWriterSize(f, chunk)
	const header = "t,H,k,iterations,estimate,indicator,accepted\n"
	a.written.wrote([]byte(header))
	_, err = a.w.WriteString(header)
	return errors.Join(err, a.Flush())
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
	a.written.archive(to)
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
	if a.err != nil {
		return a.err
	}
	if _, err := a.w.Write(r); err != nil {
		return a.failed(err)
	}
	a.written.wrote(r)
	return nil
}

// failed keeps the error of the first failed write; what follows on it would only
// hide it.
func (a *Attempts) failed(err error) error {
	a.err = fmt.Errorf("writing the table of attempts: %w; free space, choose another --trace, or leave it out", err)
	return a.err
}

// Record does nothing: attempts are seen by RecordAttempt.
func (a *Attempts) Record(*master.Point) error { return nil }

// Flush hands the rows so far to the file.
func (a *Attempts) Flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	if err := whole(a.file, a.written.bytes-int64(a.w.Buffered())); err != nil {
		a.err = fmt.Errorf("writing the table of attempts: %w", err)
		return a.err
	}
	if err := a.w.Flush(); err != nil {
		return a.failed(err)
	}
	return nil
}

// End closes the file.
func (a *Attempts) End(master.Result) error {
	err := a.Flush()
	if err == nil {
		if err = there(a.file, a.written.path); err != nil {
			err = fmt.Errorf("the table of attempts: %w", err)
		}
	}
	return errors.Join(err, a.file.Close())
}
