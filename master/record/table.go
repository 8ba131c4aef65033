package record

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/macrostep/macrostep/master"
)

const (
	// blockValues is the number of values that are formatted together: few enough for the
	// cache of a core, enough for writes of at least 64 KiB.
	blockValues = 32 << 10
	// blockText bounds the bytes of strings in a block of more than one row.
	blockText = 1 << 20
	// mostWorkers bounds how many goroutines format.
	mostWorkers = 8
	// onGrid is how far, in macro steps, a communication point may lie before a
	// multiple of the output interval and still count as being on it.
	onGrid = 1e-9
)

// Options of a table. The zero value records the default selection at every
// communication point.
type Options struct {
	Format Format // of the file
	Select Selection
	// Driven names inputs that signals from outside drive, "component.variable". They are
	// recorded by default like connected ones.
	Driven []string
	// Interval > 0 thins the rows: after the start there is one row for each
	// multiple of Interval (s, counted from the start), taken at the first
	// communication point at or after it. A point within 1e-9 of the step before
	// a multiple is on it. A point that is the first after several multiples
	// gives one row. The last point of the run always gets a row.
	Interval float64
	// Describe tells what a variable "component.variable" is, for formats that have
	// room for it; nil = nothing is known but the unit.
	Describe func(name string) Description
	// Taken is called when the file is known to be the recorder's own, before
	// anything in it is replaced; nil = nothing. An error ends the run.
	Taken func() error
	// Memory holds the rows until they are in the file; nil = ordinary memory, and when the
	// process dies, the rows that are not yet in the file are lost: of CSV those since the
	// last Flush, of the Arrow formats at most a batch.
	Memory Memory
}

// Description is what is known of a variable; "" = not told.
type Description struct{ Text, Causality, Variability string }

// Table records a run as a table in a file; see the package documentation for the
// formats. It must not be selected to record nothing: leave it out instead.
//
// Record only copies values, into a ring of rows. Goroutines of the table format blocks of
// them and write these in order. A run that is faster waits for them, so memory is bounded.
// Their errors are returned by the next call.
//
// Blocks end where the number of rows and the bytes of strings say so, at checkpoints, and
// at flushes of CSV. An Arrow batch is a block, so equal runs give equal files.
type Table struct {
	path string
	opt  Options

	mu   sync.Mutex // for all below; not held while rows are formatted and written
	news *sync.Cond // a block was handed over, or is done, or the table ends

	file    *os.File
	regular bool     // the file can be cut
	written position // of whole rows in the file
	summed  bool     // the checksum is kept; else it is found when a checkpoint wants it
	cut     bool     // what stands behind them is still to be cut off
	layout  layout
	encoder encoder
	memory  Memory
	ring    ring
	ledger  *ledger // tells another process what is recorded and what is written
	rows    int
	newest  float64 // time of the last of them
	held    bool    // the slot after them has the last point, which got no row
	err     error   // of the first failure; also that the table has ended
	kept    bool    // rows that could not be written are still in Options.Memory

	// What is in the file.
	rowsWritten   int
	newestWritten float64

	room room
	slot int // of the next row
	from int // first row of the block that is gathered
	text int // bytes of strings in it

	// Bytes that have passed through the ring of text. Those from textTail on are in use.
	textTail, textHead uint64
	textNext           uint64 // textHead with the next row, which begins at textAt
	textAt             int

	queue   []handed
	handed  int            // rows handed over
	done    int            // of these, written or given up
	workers int            // goroutines that format
	idle    int            // of these, without a block
	closing bool           // no more rows are taken
	ended   bool           // the workers are to end
	ends    sync.WaitGroup // of the workers

	points      int     // seen so far
	first, last float64 // time of the first point and of the one before
	due         int     // multiple of the interval that the next row waits for

	resumed *position // of the run that is continued; nil = from the start
	past    int       // rows up to there
}

// handed is a block on its way to the file: rows from … to-1.
type handed struct {
	from, to int
	slot     int
	text     uint64 // textHead after them
}

// room is what an encoder needs.
type room struct {
	workers int // goroutines that may call encode, each with a number below
	rows    int // most in a block
	text    int // most bytes of strings in a block of more than one row
	slots   int // in the ring
}

var _ master.RecorderArchiver = (*Table)(nil)

// NewTable returns a recorder that creates or replaces the file at path when the
// run begins. In a run that is resumed it continues the file of that path, if the
// run before had it: what stands behind the row of the checkpoint is replaced. A
// file of another path gets the header and the rows behind the checkpoint.
func NewTable(path string, o Options) *Table {
	t := &Table{path: path, opt: o}
	t.news = sync.NewCond(&t.mu)
	return t
}

// encoder turns blocks of rows into what stands in a file.
type encoder interface {
	// begin returns what stands before the rows.
	begin() ([]byte, error)
	// resume prepares to go on behind the first bytes of a file, which begin with
	// what begin gave and end with a whole row.
	resume(path string, bytes int64) error
	// room returns how many rows are encoded together.
	room() room
	// encode returns what is to be written for a block of at least one row. It is valid
	// until the next call with this worker.
	encode(worker int, b block) (piece, error)
	// whole returns the part of a piece which is whole rows when only n of its bytes
	// could be written.
	whole(p piece, n int) piece
	// end returns what stands behind the last row.
	end() ([]byte, error)
}

// piece is whole rows for a file.
type piece struct {
	bytes  [][]byte
	rows   int
	newest float64 // time of the last row
	ends   []int   // in bytes, of each row, where a part of the piece is of use
	last   bool    // nothing follows
}

// Rows returns the number of rows recorded, without the header; after an error of
// writing, of those in the file.
func (t *Table) Rows() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows
}

// Newest returns the time of the last row. It may be called from another goroutine,
// from Begin to End.
func (t *Table) Newest() (at float64, any bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest, t.rows > 0
}

// Kept reports whether rows that could not be written are in [Options].Memory, from where
// [Salvage] may write them. It is for a table that has ended.
func (t *Table) Kept() bool { return t.kept }

// Columns returns the number of columns, time included; 0 before the run begins.
func (t *Table) Columns() int {
	if t.file == nil {
		return 0
	}
	return len(t.layout.columns)
}

// Begin chooses the columns, creates the file and writes the header. A pattern
// that matches no variable is an error, and then no file is touched.
func (t *Table) Begin(sys *master.System, measured []master.Port) error {
	var err error
	if t.layout, err = choose(sys, measured, t.opt.Select, t.opt.Driven); err != nil {
		return err
	}
	if t.opt.Describe != nil && t.opt.Format != CSV {
		for i := range t.layout.columns[1:] {
			c := &t.layout.columns[1+i]
			c.about = t.opt.Describe(c.name)
		}
	}
	header, err := t.prepare()
	if err == nil {
		t.written.path, err = filepath.Abs(t.path)
	}
	if err != nil {
		return fmt.Errorf("creating the result file: %w", err)
	}
	if t.resumed != nil && t.resumed.path == t.written.path {
		return t.goOn()
	}
	// Not emptied before it is ours: another run may be writing to it.
	// Nor readable: as its own reader the process would never see a pipe close.
	t.file, err = Create(t.path, 0)
	if err != nil {
		return fmt.Errorf("creating the result file: %w%s", err, createRemedy(err))
	}
	if info, err := t.file.Stat(); err == nil {
		t.regular = info.Mode().IsRegular()
	}
	if t.regular {
		if err = patiently(func() error { return lock(t.file) }); err != nil {
			err = fmt.Errorf("%w; choose another --output", err)
		} else if t.opt.Taken != nil {
			if err := t.opt.Taken(); err != nil {
				return errors.Join(err, t.file.Close())
			}
		}
	}
	if err == nil {
		err = t.allocate()
	}
	if err == nil && t.regular {
		err = t.file.Truncate(0)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("creating the result file %s: %w", t.path, err), t.file.Close())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(piece{bytes: [][]byte{header}})
	return t.err
}

// prepare makes the encoder for the columns, and returns what stands before the rows.
func (t *Table) prepare() (header []byte, err error) {
	t.encoder = t.opt.Format.encoder(&t.layout)
	t.room = t.encoder.room()
	t.ring = ring{layout: &t.layout, rows: t.room.slots}
	return t.encoder.begin()
}

// allocate makes the memory for rows, and publishes where the file stands.
func (t *Table) allocate() error {
	t.memory = t.opt.Memory
	if t.memory == nil {
		t.memory = ordinary{}
	}
	t.memory.Drop(tableRegion) // of an earlier run
	b, err := region(t.memory, rowsRegion, t.layout.ringBytes(t.ring.rows))
	if err != nil {
		return err
	}
	t.ring.place(b)
	if t.layout.count[master.String] > 0 {
		// With four blocks of text in it, the one that is gathered always fits beside the gaps
		// before the rows that would reach over the end.
		if t.ring.text, err = region(t.memory, textRegion, max(4, t.room.slots/t.room.rows+2)*t.room.text); err != nil {
			return err
		}
	}
	a := master.NewArchive()
	t.archive(a)
	t.ledger, err = newLedger(t.memory, tableRegion, a.Data(), t.place())
	return err
}

// place returns how far the file has come.
func (t *Table) place() place {
	p := place{bytes: uint64(t.written.bytes), recorded: uint64(t.rowsWritten), newest: math.Float64bits(t.newestWritten)}
	if t.cut {
		p.state = fileUntouched
	}
	return p
}

// goOn continues the file of an earlier part of the run.
func (t *Table) goOn() error {
	f, err := t.resumed.reopen()
	if err != nil {
		return err
	}
	err = t.encoder.resume(t.resumed.path, t.resumed.bytes)
	if err != nil {
		err = fmt.Errorf("continuing %s: %w; name another --output", t.path, err)
	} else if t.opt.Taken != nil {
		err = t.opt.Taken()
	}
	if err == nil {
		t.written, t.summed, t.cut, t.regular = *t.resumed, true, true, true
		t.continueAt(t.past, t.newest)
		err = t.allocate()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t.file = f
	return nil
}

// continueAt makes the table one that has so many rows in its file.
func (t *Table) continueAt(rows int, newest float64) {
	t.rows, t.newest = rows, newest
	t.rowsWritten, t.newestWritten = rows, newest
	t.from, t.handed, t.done = rows, rows, rows
	t.slot = rows % t.ring.rows
}

// ArchiveName is that of the table.
func (t *Table) ArchiveName() string { return "results" }

// Archive carries how far the table has come, once that is on disk.
func (t *Table) Archive(a *master.Archive) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, rows := &t.written, &t.rows
	if a.Reading() {
		t.resumed = &position{}
		at, rows = t.resumed, &t.past
	} else {
		a.Fail(t.flush())
		if t.regular && t.err == nil {
			err := t.file.Sync()
			if err == nil && !t.summed {
				err = t.written.read()
				t.summed = err == nil
			}
			if err != nil {
				a.Fail(fmt.Errorf("writing results: %w", err))
			}
		}
	}
	a.All(at, rows, &t.newest, &t.points, &t.first, &t.last, &t.due)
}

func createRemedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; create the folder first"
	case errors.Is(err, fs.ErrPermission):
		return "; choose a folder that you may write to"
	}
	return ""
}

// Record adds a row, if the interval wants one at this point.
func (t *Table) Record(p *master.Point) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted := t.wants(p.T)
	size := t.layout.textOf(p)
	if err := t.makeRoom(size); err != nil {
		return err
	}
	t.release()
	t.ring.put(t.slot, p, t.textAt)
	if wanted {
		t.accept(size)
		return nil
	}
	t.held = true
	t.ledger.held.Store(uint64(t.rows) + 1)
	return nil
}

// release makes the next slot free: the point in it will not be the last.
func (t *Table) release() {
	if t.held {
		t.held = false
		t.ledger.held.Store(0)
	}
}

// makeRoom waits until the next row has room, for its strings too.
func (t *Table) makeRoom(size int) error {
	t.split(size)
	for {
		switch {
		case t.err != nil:
			return t.err
		case t.closing:
			return errEnded
		case t.rows-t.done < t.ring.rows && t.fits(uint64(size)):
			return nil
		case t.done == t.rows && size > len(t.ring.text):
			// No row is left in memory that has text.
			t.release()
			t.memory.Drop(textRegion)
			text, err := region(t.memory, textRegion, 2*size)
			if err != nil {
				t.fail(fmt.Errorf("writing results: %w", err))
			}
			t.ring.text, t.textTail, t.textHead = text, 0, 0
		default:
			t.news.Wait()
		}
	}
}

// split ends the block that is gathered if the strings of the next row do not belong in it.
func (t *Table) split(size int) {
	if t.rows > t.from && t.text+size > t.room.text {
		t.hand()
	}
}

// fits finds the place for the strings of the next row, in one piece, and reports whether
// it is free.
func (t *Table) fits(size uint64) bool {
	if size == 0 {
		t.textNext = t.textHead
		return true
	}
	room, begin := uint64(len(t.ring.text)), t.textHead
	if size > room {
		return false
	}
	if rest := room - begin%room; size > rest {
		begin += rest
	}
	if t.textTail == t.textHead { // nothing is in use
		t.textTail = begin
	}
	t.textAt, t.textNext = int(begin%room), begin+size
	return t.textNext-t.textTail <= room
}

// accept makes the values in the next slot a row.
func (t *Table) accept(size int) {
	t.newest = t.ring.time(t.slot)
	t.rows++
	t.text += size
	t.textHead = t.textNext
	t.ledger.recorded.Store(uint64(t.rows))
	if t.slot++; t.slot == t.ring.rows {
		t.slot = 0
	}
	if t.rows-t.from == t.room.rows || t.slot == 0 {
		t.hand()
	}
}

// hand gives the block that is gathered to the workers.
func (t *Table) hand() {
	slot := t.slot - (t.rows - t.from)
	if slot < 0 { // it ends with the ring
		slot += t.ring.rows
	}
	t.queue = append(t.queue, handed{t.from, t.rows, slot, t.textHead})
	t.from, t.handed, t.text = t.rows, t.rows, 0
	if t.idle == 0 && t.workers < t.room.workers {
		worker := t.workers
		t.workers++
		t.ends.Go(func() { t.work(worker) })
	}
	t.news.Broadcast()
}

// work formats and writes blocks until the table ends.
func (t *Table) work(worker int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.queue) == 0 {
			if t.ended {
				return
			}
			t.idle++
			t.news.Wait()
			t.idle--
		}
		h := t.queue[0]
		t.queue = append(t.queue[:0], t.queue[1:]...)
		b := t.ring.block(h.slot, h.to-h.from)
		t.mu.Unlock()
		p, err := t.encode(worker, b)
		t.mu.Lock()
		for t.done != h.from {
			t.news.Wait()
		}
		if err != nil && t.err == nil {
			t.fail(fmt.Errorf("writing results: %w", err))
		}
		t.write(p)
		t.done = h.to
		t.textTail = max(t.textTail, h.text)
		t.news.Broadcast()
	}
}

// encode turns a panic into an error: here nobody else would, and it would take the
// run along.
func (t *Table) encode(worker int, b block) (p piece, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a recorder: %v", r)
		}
	}()
	return t.encoder.encode(worker, b)
}

// wants reports whether the interval asks for a row at time at, and moves on to the
// next multiple after it.
func (t *Table) wants(at float64) bool {
	t.points++
	if t.opt.Interval <= 0 {
		return true
	}
	if t.points == 1 {
		t.first, t.last, t.due = at, at, 1
		return true
	}
	slack := onGrid * (at - t.last)
	t.last = at
	// Products, never a running sum: rounding must not shift late rows.
	if at < t.first+float64(t.due)*t.opt.Interval-slack {
		return false
	}
	t.due = max(t.due, int(math.Floor((at+slack-t.first)/t.opt.Interval))) + 1
	return true
}

// Flush writes the rows recorded so far to a CSV file, for those who follow it, and so
// that they outlive a process without Options.Memory. The Arrow formats are written by
// whole batches only, which no clock may cut. It may be called from another goroutine,
// from Begin to End.
func (t *Table) Flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opt.Format != CSV {
		return t.err
	}
	return t.flush()
}

// flush writes the rows recorded so far.
func (t *Table) flush() error {
	if t.err == nil && t.from < t.rows {
		t.hand()
	}
	for t.done < t.handed {
		t.news.Wait()
	}
	return t.err
}

// write writes whole rows. The caller is the only one to write; the lock is let go
// meanwhile.
func (t *Table) write(p piece) {
	if t.err != nil || len(p.bytes) == 0 {
		return
	}
	t.mu.Unlock()
	n, err := t.put(p.bytes)
	t.mu.Lock()
	if err == nil {
		t.wrote(p)
		return
	}
	if n > 0 && t.regular {
		// A full disk stops in the middle of a row; a cut row would be read as wrong numbers.
		kept := t.encoder.whole(p, n)
		if len(kept.bytes) > 0 {
			t.wrote(kept)
		}
		_, back := t.file.Seek(t.written.bytes, io.SeekStart)
		err = errors.Join(err, t.file.Truncate(t.written.bytes), back)
	}
	t.fail(err)
}

// put writes bytes behind those that are in the file, if that is as it was left. With
// an error of writing, n of them may have been written.
func (t *Table) put(parts [][]byte) (n int, err error) {
	if t.cut {
		if err := t.file.Truncate(t.written.bytes); err != nil {
			return 0, fmt.Errorf("continuing the result file: %w", err)
		}
		t.cut = false
	}
	if err := whole(t.file, t.written.bytes); err != nil {
		return 0, fmt.Errorf("writing results: %w", err)
	}
	for _, b := range parts {
		k, err := t.file.Write(b)
		if n += k; err != nil {
			return n, &unwritten{err}
		}
	}
	return n, nil
}

// unwritten is an error of writing to the file.
type unwritten struct{ error }

func (u *unwritten) Unwrap() error { return u.error }

// wrote takes note of rows that are in the file.
func (t *Table) wrote(p piece) {
	for _, b := range p.bytes {
		if t.summed {
			t.written.wrote(b)
		} else {
			t.written.bytes += int64(len(b))
		}
	}
	t.rowsWritten += p.rows
	if p.rows > 0 {
		t.newestWritten = p.newest
	}
	t.publish(p.last)
}

// publish shows another process how far the file has come.
func (t *Table) publish(ends bool) {
	at := t.place()
	if ends {
		at.state = fileEnds
	}
	t.ledger.publish(at)
}

// fail ends the recording; the first error stands.
func (t *Table) fail(err error) {
	t.rows, t.newest = t.rowsWritten, t.newestWritten
	if u := (*unwritten)(nil); errors.As(err, &u) {
		kept := "no row is in the file"
		if t.rows > 0 {
			kept = fmt.Sprintf("the rows up to t = %.12g s are kept", t.newestWritten)
		}
		err = fmt.Errorf("writing results: %w; free space or choose another --output; %s", err, kept)
		if t.kept = t.regular && t.opt.Memory != nil; !t.kept {
			t.ledger.held.Store(0)
			t.ledger.recorded.Store(uint64(t.rows))
		}
	} else {
		at := t.place()
		at.state = fileLost
		t.ledger.publish(at)
	}
	t.held, t.err = false, err
	t.news.Broadcast()
}

// errEnded is the error of a table that is used after its end.
var errEnded = errors.New("the result file is closed")

// End writes what is left and closes the file. An error that Record or Flush has
// given it gives again: they may have given it to others than the run. It may be
// called from another goroutine when the program ends; Record fails from then on.
func (t *Table) End(master.Result) error {
	if t.file == nil {
		return nil
	}
	t.mu.Lock()
	if t.closing {
		defer t.mu.Unlock()
		return t.err
	}
	t.closing = true
	if t.held {
		t.held = false
		t.accept(0)
	}
	_ = t.flush()
	t.finish()
	t.ended = true
	t.news.Broadcast()
	t.mu.Unlock()
	t.ends.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.err
	if err == nil && !t.cut {
		if err = cmp.Or(whole(t.file, t.written.bytes), there(t.file, t.written.path)); err != nil {
			err = fmt.Errorf("the results: %w", err)
		}
	}
	if cerr := t.file.Close(); cerr != nil && err == nil {
		err = fmt.Errorf("closing the result file: %w", cerr)
	}
	if t.err = err; err == nil {
		t.err = errEnded
		t.publish(true)
	}
	return err
}

// finish writes what stands behind the last row. After a failed write it is tried
// once more, for the rows that are whole: what was cut off has left some room.
func (t *Table) finish() {
	failed := t.err
	if t.kept { // who writes the rest ends the file
		return
	}
	if u := (*unwritten)(nil); failed != nil && (!t.regular || !errors.As(failed, &u) || t.encoder.resume(t.written.path, t.written.bytes) != nil) {
		return
	}
	tail, err := t.encoder.end()
	if len(tail) == 0 || err != nil || t.cut { // a file that got no row stays as it was
		if err != nil && failed == nil {
			t.fail(fmt.Errorf("writing results: %w", err))
		}
		return
	}
	t.err = nil
	t.write(piece{bytes: [][]byte{tail}, last: true})
	t.err = cmp.Or(failed, t.err)
}

// formatters is how many goroutines format side by side.
func formatters() int { return min(runtime.GOMAXPROCS(0), mostWorkers) }
