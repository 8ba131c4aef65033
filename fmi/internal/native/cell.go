package native

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/process"
)

// Tag identifies a call: bits 0 to 7 are the number of the function plus one, bit 8 is set
// after the step of the crossing, bits from 16 are the number of the instance. 0 = no call.
type Tag uint64

const (
	tagFunction Tag = 0xff   // mask
	tagLoading  Tag = 0xff   // instead of a function: loading
	tagEnding   Tag = 0xfe   // instead of a function: exit handlers and destructors
	Stepped     Tag = 1 << 8 // the instance is at the end of the step
	tagNumber       = 16     // shift
)

// NewTag returns the tag of an instance with a number > 0.
func NewTag(number int) Tag { return Tag(number) << tagNumber }

// Of returns the tag for a call of f; t is the tag of the instance.
func (t Tag) Of(f uint8) Tag {
	if t == 0 {
		return 0
	}
	return t | Tag(f+1)
}

// loading returns the tag for loading a library; t is the tag of the library.
func (t Tag) loading() Tag { return t.Of(uint8(tagLoading - 1)) }

// ending returns the tag for the exit handlers and destructors of a library.
func (t Tag) ending() Tag { return t.Of(uint8(tagEnding - 1)) }

// Function returns the number of the function, -1 for none, or whether a library is loaded or ended.
func (t Tag) Function() (f int, loading, ending bool) {
	f = int(t & tagFunction)
	return f - 1, f == int(tagLoading), f == int(tagEnding)
}

// Number returns the number of the instance, 0 for none.
func (t Tag) Number() int { return int(t >> tagNumber) }

// cell holds a batch in memory that the parent process can read. It is not in the heap of
// the C library, where an FMU that writes beyond its memory would overwrite it.
type cell struct {
	content [cellSize - 8]byte
	mark    uint64
}

const cellSize = 256

// batchCell marks a used cell. The value is unlikely to occur by accident.
const batchCell = 0x4d53_6261_7463_6800 // "MSbatch"

var cells = process.Pool[cell]{Name: "calls", Many: 256}

// newCell returns a zeroed cell.
func newCell() (number int, c *cell) {
	number, c = cells.Take()
	c.content = [cellSize - 8]byte{}
	atomic.StoreUint64(&c.mark, batchCell)
	return number, c
}

func (c *cell) batch() *Batch { return (*Batch)(unsafe.Pointer(&c.content)) }

// Crossing is an active call.
type Crossing struct {
	Tag  Tag
	Time float64 // of the instance, or start of its step, s; NaN = unknown
	ID   uint64  // differs from the ID of every other call
}

// Crossings returns the active calls of the process that shares a page. The memory may have
// been overwritten with anything.
func Crossings(p *process.Page) []Crossing {
	var out []Crossing
	for k, cell := range cells.In(p) {
		c := cell.read()
		if again := cell.read(); c.Tag == 0 || again.Tag != c.Tag || again.ID != c.ID { // none, or changing
			continue
		}
		c.ID = mixed(c.ID, uint64(k))
		out = append(out, c)
	}
	return out
}

// read returns the active call of a cell, with tag 0 for none.
func (c *cell) read() Crossing {
	if atomic.LoadUint64(&c.mark) != batchCell {
		return Crossing{}
	}
	b := c.batch()
	x := Crossing{Tag: Tag(atomic.LoadUint64((*uint64)(&b.tag))), Time: loadFloat(&b.Time),
		ID: mixed(atomic.LoadUint64(&b.crossings), uint64(atomic.LoadUintptr(&b.Done)))}
	if x.Tag&Stepped != 0 {
		x.Time += loadFloat(&b.Step)
	}
	return x
}

func loadFloat(p *float64) float64 {
	return math.Float64frombits(atomic.LoadUint64((*uint64)(unsafe.Pointer(p))))
}

// mixed returns a hash of two numbers.
func mixed(a, b uint64) uint64 {
	a = (a ^ b) * 0x9e3779b97f4a7c15
	return a ^ a>>29
}
