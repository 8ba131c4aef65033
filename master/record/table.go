package record

import (
	"cmp"
	"errors"
	"fmt"
	"io"
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
	// mostWorkers is the maximum number of formatting goroutines.
	mostWorkers = 8
	// onGrid is the tolerance, in macro steps, within which a communication point counts as
	// a multiple of the output interval.
	onGrid = 1e-9
)

// Options of a table. The zero value records the default selection at every
// communication point.
type Options struct {
	Format Format // of the file
	Select Selection
	// Driven names the inputs "component.variable" that external signals drive. They are
	// recorded by default, like connected inputs.
	Driven []string
	// Outputs are outputs of the system, which are recorded if Select names them.
	Outputs []Output
	// Interval > 0 thins the rows: after the start there is one row for each multiple of
	// Interval (s, counted from the start), taken at the first communication point at or
	// after it. A point up to 1e-9 of a step before a multiple counts as on it. The first
	// point after several multiples gives one row. The last point of the run always gets a
	// row.
	Interval float64
	// Describe describes a variable "component.variable", for formats with column metadata;
	// nil = columns have no metadata but the unit.
	Describe func(name string) Description
	// Names returns all variables that could be recorded, for the message about a pattern without a
	// match; nil = those that the system reads.
	Names func() []string
	// Chosen is called with the variables at the beginning; nil = no call.
	Chosen func([]Variable)
	// Taken is called with the number of variables when the file is locked, before its content
	// is replaced; nil = no call. An error ends the run.
	Taken func(variables int) error
	// Memory holds the rows until they are in the file; nil = ordinary memory. When a process
	// with ordinary memory dies, rows are lost: those since the last Flush, or at most one row
	// group of Parquet.
	Memory Memory
}

// Output is an output of a system: Gain times the output From of a subsystem plus Offset, with its values replaced by Map.
type Output struct {
	Name, From   string // From is "subsystem.port"
	Unit         string
	Gain, Offset float64
	Map          map[int64]int64
}

// Description describes a variable; "" = unknown.
type Description struct{ Text, Causality, Variability string }

// Table records a run as a table in a file; see the package documentation for the
// formats. Do not use it with a Selection of no variables.
//
// Record only copies values into a ring of rows. Worker goroutines format blocks of rows
// and write them in order. Record waits when the ring is full, so memory is bounded. The
// next call returns the errors of the workers.
//
// A block ends at a limit on its rows or on the bytes of its strings, at checkpoints, and
// at flushes, except for Parquet. A row group is one block, so equal runs give equal files.
type Table struct {
	path string
	opt  Options

	mu   sync.Mutex // for all below; not held while rows are formatted and written
	news *sync.Cond // a block was queued or done, or the table ends

	file    *os.File
	regular bool     // the file can be truncated
	written position // end of the whole rows in the file
	summed  bool     // the checksum is kept up to date; else a checkpoint computes it
	cut     bool     // the file still has to be truncated after the written rows
	tail    int64    // bytes after the written rows that further rows replace
	layout  layout
	dropped []string // variables that the format cannot hold
	encoder encoder
	memory  Memory
	ring    ring
	ledger  *ledger // shows another process what is recorded and what is written
	rows    int     // recorded
	newest  float64 // time of the last row
	held    bool    // the next slot has the newest point, for which no row was due
	err     error   // the first failure, or errEnded
	kept    bool    // rows that could not be written are still in Options.Memory

	// What is in the file.
	rowsWritten   int
	newestWritten float64

	room room
	slot int // of the next row
	from int // first row of the current block
	text int // bytes of its strings

	// Positions in the stream of bytes through the ring of text. Those from textTail on are
	// in use.
	textTail, textHead uint64
	textNext           uint64 // textHead after the next row, whose text begins at textAt
	textAt             int

	queue   []handed
	handed  int            // rows that were queued
	done    int            // rows of these that were written or given up
	workers int            // formatting goroutines
	idle    int            // of these, without a block
	closing bool           // no more rows are accepted
	ended   bool           // the workers return
	ends    sync.WaitGroup // of the workers

	seen

	resumed *position // of the resumed run; nil = from the start
	past    int       // rows up to there
}

// seen holds what decides which points get a row.
type seen struct {
	points      int     // so far
	first, last float64 // time of the first and of the previous point
	due         int     // multiple of the interval for the next row
}

// handed is a queued block: rows from … to-1.
type handed struct {
	from, to int
	slot     int
	text     uint64 // textHead after them
}

// room is the space that an encoder needs.
type room struct {
	workers int // goroutines that may call encode
	rows    int // maximum in a block
	text    int // maximum bytes of strings in a block of more than one row
	slots   int // in the ring
}

var _ master.RecorderArchiver = (*Table)(nil)

// NewTable returns a recorder that creates or replaces the file at path when the run
// begins. A resumed run continues the file if the earlier run wrote to the same path:
// rows after the checkpoint are replaced. A new file gets the header and the rows after the
// checkpoint.
func NewTable(path string, o Options) *Table {
	t := &Table{path: path, opt: o}
	t.news = sync.NewCond(&t.mu)
	return t
}

// encoder encodes blocks of rows.
type encoder interface {
	// begin returns the bytes before the first row.
	begin() ([]byte, error)
	// resume prepares to append after so many bytes of a file, which must begin with the
	// bytes of begin and end with a whole row.
	resume(path string, bytes int64) error
	// room returns the sizes of blocks and buffers.
	room() room
	// encode encodes a block of at least one row. The result is valid until the next call
	// with this worker.
	encode(worker int, b block) (piece, error)
	// whole returns the whole rows within the first n bytes of a piece.
	whole(p piece, n int) piece
	// end returns the bytes after the last row.
	end() ([]byte, error)
}

// previewer is implemented by encoders whose files are read from their end.
type previewer interface {
	// preview returns what end would return; nil if that is too much for the rows since the last
	// preview. Flushes call it while no block is encoded.
	preview() []byte
}

// updater is implemented by encoders whose first bytes depend on the rows.
type updater interface {
	// update returns bytes of a file of so many rows, and their position.
	update(rows int, newest float64) (b []byte, at int64, err error)
}

// piece is encoded whole rows.
type piece struct {
	bytes  []byte
	rows   int
	newest float64 // time of the last row
	ends   []int   // end of each row in bytes; nil if a part of the piece is useless
	last   bool    // nothing follows
}

// Rows returns the number of recorded rows, without the header; after a failed write, the
// number of rows in the file.
func (t *Table) Rows() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows
}

// Newest returns the time of the last row. Other goroutines may call it between Begin and
// End.
func (t *Table) Newest() (at float64, any bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest, t.rows > 0
}

// Err returns the error of a table that is not complete in its file. Call it after End.
func (t *Table) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(t.err, errEnded) {
		return nil
	}
	return t.err
}

// Kept reports whether rows that could not be written are in [Options].Memory, from where
// [Salvage] may write them. Call it after End.
func (t *Table) Kept() bool { return t.kept }

// LeftOut returns the recorded variables that the format cannot hold: strings in a MAT. Call it
// after Begin.
func (t *Table) LeftOut() []string { return t.dropped }

// Columns returns the number of columns, time included; 0 before the run begins.
func (t *Table) Columns() int {
	if t.file == nil {
		return 0
	}
	return len(t.layout.columns)
}

// Begin chooses the columns, creates the file and writes the header. A pattern that matches
// no variable is an error; the file is not touched then.
func (t *Table) Begin(sys *master.System, measured []master.Port) error {
	var err error
	if t.layout, err = choose(sys, measured, &t.opt); err != nil {
		return err
	}
	if t.opt.Format == MAT {
		t.dropped = t.layout.withoutStrings()
	}
	if t.opt.Chosen != nil {
		t.opt.Chosen(t.layout.variables())
	}
	if t.opt.Describe != nil && t.opt.Format != CSV {
		for i := range t.layout.columns[1:] {
			c := &t.layout.columns[1+i]
			c.about = t.opt.Describe(c.name)
		}
	}
	header, err := t.prepare()
	if err == nil {
		t.written.head = int64(len(header))
		t.written.path, err = filepath.Abs(t.path)
	}
	if err != nil {
		return fmt.Errorf("creating the result file: %w", err)
	}
	if t.resumed != nil && t.resumed.path == t.written.path {
		return t.goOn()
	}
	f, regular, err := createLocked(t.path, "--output")
	if err != nil {
		return fmt.Errorf("creating the result file: %w", err)
	}
	t.regular = regular
	if !regular && t.opt.Format == MAT {
		return errors.Join(fmt.Errorf("creating the result file: %s is not a regular file, but rows of a MAT change its header; "+
			"name a file, or use .csv", t.path), f.Close())
	}
	if regular && t.opt.Taken != nil {
		if err := t.opt.Taken(len(t.layout.columns) - 1); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	err = t.allocate()
	if err == nil && regular {
		err = f.Truncate(0)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("creating the result file %s: %w", t.path, err), f.Close())
	}
	t.file = f
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(piece{bytes: header})
	return t.err
}

// prepare makes the encoder for the columns and returns the bytes before the rows.
func (t *Table) prepare() (header []byte, err error) {
	t.encoder = t.opt.Format.encoder(&t.layout)
	t.room = t.encoder.room()
	t.ring = ring{layout: &t.layout, rows: t.room.slots}
	return t.encoder.begin()
}

// allocate allocates the memory for rows and publishes the state of the file.
func (t *Table) allocate() error {
	t.memory = t.opt.Memory
	if t.memory == nil {
		t.memory = ordinary{}
	}
	t.memory.Drop(tableRegion) // from an earlier run
	b, err := region(t.memory, rowsRegion, t.layout.ringBytes(t.ring.rows))
	if err != nil {
		return err
	}
	t.ring.place(b)
	if t.layout.count[master.String] > 0 {
		// A row whose text would wrap around leaves a gap at the end of the ring. With four
		// blocks of text, the current block fits beside such gaps.
		size := max(4, t.room.slots/t.room.rows+2) * t.room.text
		if t.ring.text, err = region(t.memory, textRegion, size); err != nil {
			return err
		}
	}
	t.ledger, err = newLedger(t.memory, tableRegion, t.describe(), t.place())
	return err
}

// place returns the progress of the file.
func (t *Table) place() place {
	p := place{
		bytes: uint64(t.written.bytes), recorded: uint64(t.rowsWritten), newest: math.Float64bits(t.newestWritten),
	}
	if t.cut {
		p.state = fileUntouched
	}
	return p
}

// goOn opens the file of the resumed run.
func (t *Table) goOn() error {
	f, err := t.resumed.reopen()
	if err != nil {
		return err
	}
	err = t.encoder.resume(t.resumed.path, t.resumed.bytes)
	if err != nil {
		err = fmt.Errorf("continuing %s: %w; name another --output", t.path, err)
	} else if t.opt.Taken != nil {
		err = t.opt.Taken(len(t.layout.columns) - 1)
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

// continueAt sets the state of a table with so many rows in its file.
func (t *Table) continueAt(rows int, newest float64) {
	t.rows, t.newest = rows, newest
	t.rowsWritten, t.newestWritten = rows, newest
	t.from, t.handed, t.done = rows, rows, rows
	t.slot = rows % t.ring.rows
}

// ArchiveName returns the name of the table in archives.
func (t *Table) ArchiveName() string { return "results" }

// Archive writes or reads the progress of the table. Before writing, it syncs the rows to
// disk.
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
	a.All(at, rows, &t.newest, &t.seen)
}

// Record adds a row if one is due at this point.
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

// release frees the next slot: the point in it is not the last.
func (t *Table) release() {
	if t.held {
		t.held = false
		t.ledger.held.Store(0)
	}
}

// makeRoom waits until there is room for the next row and its strings.
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
			// No row in memory has text any more.
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

// split ends the current block if the strings of the next row do not fit into it.
func (t *Table) split(size int) {
	if t.rows > t.from && t.text+size > t.room.text {
		t.hand()
	}
}

// fits finds a contiguous place for the strings of the next row and reports whether it is
// free.
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

// accept turns the values in the next slot into a row.
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

// hand queues the current block for the workers.
func (t *Table) hand() {
	slot := t.slot - (t.rows - t.from)
	if slot < 0 { // it ends at the end of the ring
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

// encode encodes a block. It turns a panic into an error, which would otherwise end the
// process.
func (t *Table) encode(worker int, b block) (p piece, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a recorder: %v", r)
		}
	}()
	return t.encoder.encode(worker, b)
}

// wants reports whether a row is due at time at, and advances to the next multiple of the
// interval.
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
	// A running sum would accumulate rounding errors.
	if at < t.first+float64(t.due)*t.opt.Interval-slack {
		return false
	}
	t.due = max(t.due, int(math.Floor((at+slack-t.first)/t.opt.Interval))) + 1
	return true
}

// Flush brings the rows recorded so far to the file, for readers that follow it and so that they
// outlive a process without Options.Memory. For Parquet, these are the rows of full row groups,
// whose boundaries must not depend on the clock. Other goroutines may call it between Begin and
// End.
func (t *Table) Flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.encoder.(previewer); ok {
		t.preview(p)
		return t.err
	}
	return t.flush()
}

// preview ends the file until there are further rows, so that other programs can read it.
func (t *Table) preview(p previewer) {
	for t.done < t.handed {
		t.news.Wait()
	}
	if t.err != nil || t.closing || t.cut || t.tail > 0 || !t.regular || t.rowsWritten == 0 {
		return
	}
	tail := p.preview()
	if _, err := t.file.WriteAt(tail, t.written.bytes); err != nil {
		_ = t.file.Truncate(t.written.bytes) // the rows come first; the next ones report a full disk
		return
	}
	t.tail = int64(len(tail))
}

// flush writes the rows recorded so far, and waits for that.
func (t *Table) flush() error {
	if t.err == nil && t.from < t.rows {
		t.hand()
	}
	for t.done < t.handed {
		t.news.Wait()
	}
	return t.err
}

// write writes whole rows. It must not run concurrently. It unlocks mu meanwhile.
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
		// On a full disk, a write may end within a row, which would be read as wrong numbers.
		kept := t.encoder.whole(p, n)
		if len(kept.bytes) > 0 {
			t.wrote(kept)
		}
		_, back := t.file.Seek(t.written.bytes, io.SeekStart)
		err = errors.Join(err, t.file.Truncate(t.written.bytes), back)
	}
	t.fail(err)
}

// put appends bytes to the file, after checking that no other program changed it. It
// returns the number of bytes written, even after an error.
func (t *Table) put(b []byte) (n int, err error) {
	if t.cut {
		if err := t.file.Truncate(t.written.bytes); err != nil {
			return 0, fmt.Errorf("continuing the result file: %w", err)
		}
		t.cut = false
	}
	if err := whole(t.file, t.written.bytes+t.tail); err != nil {
		return 0, fmt.Errorf("writing results: %w", err)
	}
	if t.tail > 0 {
		if err := t.file.Truncate(t.written.bytes); err != nil {
			return 0, fmt.Errorf("writing results: %w", err)
		}
		t.tail = 0
	}
	if n, err = t.file.Write(b); err != nil {
		return n, &unwritten{err}
	}
	return n, nil
}

// unwritten is the error of a failed write to the file.
type unwritten struct{ error }

func (u *unwritten) Unwrap() error { return u.error }

// wrote counts rows that are in the file.
func (t *Table) wrote(p piece) {
	if t.summed {
		t.written.wrote(p.bytes)
	} else {
		t.written.bytes += int64(len(p.bytes))
	}
	t.rowsWritten += p.rows
	if p.rows > 0 {
		t.newestWritten = p.newest
		if t.update(); t.err != nil {
			return
		}
	}
	t.publish(p.last)
}

// update updates the first bytes of the file.
func (t *Table) update() {
	u, ok := t.encoder.(updater)
	if !ok || t.err != nil {
		return
	}
	b, at, err := u.update(t.rowsWritten, t.newestWritten)
	if err == nil {
		if _, err = t.file.WriteAt(b, at); err != nil {
			err = &unwritten{err}
		}
	}
	if err != nil {
		t.fail(err)
	}
}

// publish shows the progress of the file to another process.
func (t *Table) publish(ends bool) {
	at := t.place()
	if ends {
		at.state = fileEnds
	}
	t.ledger.publish(at)
}

// fail ends the recording with an error.
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

// errEnded is the error of a table that is used after End.
var errEnded = errors.New("the result file is closed")

// End writes the remaining rows and closes the file. It repeats an error of Record or Flush,
// which another goroutine may have received. Other goroutines may call it when the program
// ends; Record fails from then on.
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

// finish writes the bytes after the last row. After a failed write it tries to do so after
// the last whole row: truncation has freed some room.
func (t *Table) finish() {
	failed := t.err
	if t.kept { // Salvage ends the file
		return
	}
	if !t.cut {
		t.update() // memory that is damaged may hold fewer rows than the file had
	}
	if u := (*unwritten)(nil); failed != nil {
		if !t.regular || !errors.As(failed, &u) || t.encoder.resume(t.written.path, t.written.bytes) != nil {
			return
		}
	}
	tail, err := t.encoder.end()
	if err != nil && failed == nil {
		t.fail(fmt.Errorf("writing results: %w", err))
	}
	if len(tail) == 0 || err != nil || t.cut { // a continued file without a new row is left as it was
		return
	}
	t.err = nil
	t.write(piece{bytes: tail, last: true})
	t.err = cmp.Or(failed, t.err)
}

// formatters returns the number of formatting goroutines.
func formatters() int { return min(runtime.GOMAXPROCS(0), mostWorkers) }
