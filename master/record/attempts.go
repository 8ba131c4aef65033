package record

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/macrostep/macrostep/master"
)

// Attempts writes each attempt at a macro step as a row of a table with the header
// t,H,k,iterations,estimate,indicator,accepted: start and size of the step in s, order,
// corrector iterations, error estimate in units of the tolerance, the indicator that the
// step-size control follows (both empty if the algorithm has none), and 1 if the attempt was
// accepted, else 0.
type Attempts struct {
	text
	row      []byte
	recorded position  // end of all rows, also of those that are not in the file yet
	resumed  *position // of the resumed run; nil = from the start
}

var attemptsText = textKind{
	what: "the table of attempts", flag: "--trace", fails: "writing the table of attempts",
	region: "attempts", lines: "attempts.rows",
	header: "t,H,k,iterations,estimate,indicator,accepted\n",
}

var (
	_ master.RecorderArchiver = (*Attempts)(nil)
	_ master.AttemptRecorder  = (*Attempts)(nil)
)

// NewAttempts returns a table that creates or replaces the file at path when the run begins.
// A resumed run continues it like the results (NewTable). Rows are buffered in m; nil =
// ordinary memory.
func NewAttempts(path string, m Memory) *Attempts {
	return &Attempts{text: text{textKind: attemptsText, path: path, memory: m}}
}

// Begin creates the file and writes the header.
func (a *Attempts) Begin(*master.System, []master.Port) error {
	path, err := filepath.Abs(a.path)
	if err != nil {
		return fmt.Errorf("creating the table of attempts: %w", err)
	}
	if r := a.resumed; r != nil && r.path == path {
		a.recorded = *r
		return a.resume(r)
	}
	a.recorded.path = path
	a.recorded.wrote([]byte(a.header))
	return a.create()
}

// ArchiveName returns the name of the table in archives.
func (a *Attempts) ArchiveName() string { return "attempts" }

// Archive writes or reads the progress of the table.
func (a *Attempts) Archive(to *master.Archive) {
	if to.Reading() {
		a.resumed = &position{}
		to.All(a.resumed)
		return
	}
	to.Fail(a.Flush())
	a.mu.Lock()
	defer a.mu.Unlock()
	to.All(&a.recorded)
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
	last := byte('0')
	if accepted {
		last = '1'
	}
	r = append(r, ',', last, '\n')
	a.row = r
	if err := a.add(r); err != nil {
		return err
	}
	a.recorded.wrote(r)
	return nil
}

// Record does nothing; RecordAttempt writes the rows.
func (a *Attempts) Record(*master.Point) error { return nil }

// End closes the file.
func (a *Attempts) End(master.Result) error { return a.Close() }
