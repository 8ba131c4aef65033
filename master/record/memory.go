package record

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/macrostep/macrostep/master"
)

// Memory provides memory that outlives the process, for rows that are recorded but not yet
// in the file. If the process dies, another one completes the file from it: see [Salvage].
//
// A Memory serves one [Table], one [Attempts] and one [CallLog] at a time. For further ones,
// wrap it and prefix the names. The regions of a run stay until the next run begins.
type Memory interface {
	// Region returns zeroed, page-aligned memory of at least size bytes under a name that is
	// not in use; nil if no memory is available.
	Region(name string, size int) []byte
	// Drop frees a region.
	Drop(name string)
}

// ordinary is a Memory that ends with the process.
type ordinary struct{}

func (ordinary) Region(_ string, size int) []byte {
	if size == 0 {
		return []byte{}
	}
	words := make([]uint64, (size+7)/8) // aligned for every kind of value
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}

func (ordinary) Drop(string) {}

// The regions of a table.
const (
	tableRegion = "results" // ledger and description
	rowsRegion  = "results.rows"
	textRegion  = "results.text"
)

// Forget drops the regions of recorders whose files are complete.
func Forget(m Memory) {
	for _, name := range []string{
		tableRegion, rowsRegion, textRegion, attemptsText.region, attemptsText.lines, callsText.region, callsText.lines,
	} {
		m.Drop(name)
	}
}

func region(m Memory, name string, size int) ([]byte, error) {
	b := m.Region(name, size)
	if len(b) < size {
		return nil, fmt.Errorf("no memory for %d bytes of rows (%s)", size, name)
	}
	return b[:size], nil
}

// ledger is the first page of a region. From it, another process can complete the file even
// if this process dies at any instruction: it states how much was recorded (rows of a table,
// or bytes of a text) and how much of that is in the file.
//
// Values are stored before the count that includes them. The memory of a row is reused only
// after the place that includes the row was published.
type ledger struct {
	mark     atomic.Uint64 // ledgerMark once all else is valid
	size     uint64        // bytes of the description, which follows the page
	sum      uint64        // checksum of the description
	recorded atomic.Uint64
	// held is n+1 if slot n has the newest point, which gets a row only if it stays the last;
	// 0 = none.
	held   atomic.Uint64
	turn   atomic.Uint64 // places[turn%2] is valid
	places [2]place
}

const (
	ledgerMark = 0x3152454b4f525331 // changes with the layout of the regions
	ledgerPage = 4096
)

// place is the progress of a file.
type place struct {
	bytes    uint64
	recorded uint64 // as in ledger
	newest   uint64 // bits of the time of the last row
	state    uint64
	turn     uint64
	check    uint64 // checksum of the fields above
}

// States of a file.
const (
	fileGrows     = iota // rows end at the place; the recorder may be writing after it
	fileUntouched        // like fileGrows, but nothing was written yet to the continued file
	fileEnds             // complete
	fileLost             // writing failed; Salvage leaves it alone
)

func (p *place) checksum() uint64 {
	h := uint64(14695981039346656037) // FNV-1a by words
	for _, v := range [...]uint64{p.bytes, p.recorded, p.newest, p.state, p.turn} {
		h = (h ^ v) * 1099511628211
		h ^= h >> 29
	}
	return h
}

// newLedger creates the region of a ledger and publishes it with the description and the
// progress of the file.
func newLedger(m Memory, name string, description []byte, at place) (*ledger, error) {
	b, err := region(m, name, ledgerPage+len(description))
	if err != nil {
		return nil, err
	}
	l := (*ledger)(unsafe.Pointer(&b[0]))
	l.size, l.sum = uint64(len(description)), uint64(crc32.Checksum(description, castagnoli))
	copy(b[ledgerPage:], description)
	l.recorded.Store(at.recorded)
	l.publish(at)
	l.mark.Store(ledgerMark)
	return l, nil
}

// publish replaces the place. A process that dies here leaves the old place or the new one.
func (l *ledger) publish(p place) {
	p.turn = l.turn.Load() + 1
	p.check = p.checksum()
	l.places[p.turn%2] = p
	l.turn.Store(p.turn)
}

var errScribbled = errors.New("the shared memory of the run is damaged")

// openLedger reads the region of a ledger. nil = the recorder had not begun.
func openLedger(b []byte) (l *ledger, description []byte, at place, err error) {
	switch {
	case len(b) == 0:
		return nil, nil, at, nil
	case len(b) < ledgerPage:
		return nil, nil, at, errScribbled
	}
	l = (*ledger)(unsafe.Pointer(&b[0]))
	switch l.mark.Load() {
	case 0:
		return nil, nil, at, nil
	case ledgerMark:
	default:
		return nil, nil, at, errScribbled
	}
	if l.size > uint64(len(b)-ledgerPage) {
		return nil, nil, at, errScribbled
	}
	description = b[ledgerPage:][:l.size]
	if l.sum != uint64(crc32.Checksum(description, castagnoli)) {
		return nil, nil, at, errScribbled
	}
	turn := l.turn.Load()
	at = l.places[turn%2]
	if at.turn != turn || at.check != at.checksum() ||
		at.bytes > math.MaxInt64 || at.recorded > math.MaxInt64 || at.state > fileLost {
		return nil, nil, at, errScribbled
	}
	return l, description, at, nil
}

// description is what Salvage needs to know of a table, beside its ledger.
type description struct {
	path    string
	format  Format
	slots   int // in the ring
	regular bool
	columns []column
}

// describe returns the bytes of the description.
func (t *Table) describe() []byte {
	a := master.NewArchive()
	a.All(&description{t.written.path, t.opt.Format, t.ring.rows, t.regular, t.layout.columns})
	return a.Data()
}

// undescribe makes the table that has a description, and returns the slots of its ring.
func undescribe(data []byte) (t *Table, slots int, err error) {
	var d description
	a := master.ReadArchive(data)
	a.All(&d)
	if a.Finish() != nil || int(d.format) >= len(FormatNames) || d.slots < 1 || len(d.columns) == 0 {
		return nil, 0, errScribbled
	}
	t = NewTable(d.path, Options{Format: d.format})
	t.written.path, t.regular = d.path, d.regular
	for _, c := range d.columns {
		t.layout.addColumn(c)
	}
	return t, d.slots, nil
}
