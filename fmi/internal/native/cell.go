package native

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/process"
)

// Tag names a call: from bit 0 on the number of the function plus one, at bit 8 whether the
// step of the crossing has been made, from bit 16 on the number of the instance. 0 = no call.
type Tag uint64

const (
	tagFunction Tag = 0xff   // mask
	tagLoading  Tag = 0xff   // in place of the function
	Stepped     Tag = 1 << 8 // the instance is at the end of the step
	tagNumber       = 16     // shift
)

// NewTag returns the tag of an instance; its number is above 0.
func NewTag(number int) Tag { return Tag(number) << tagNumber }

// Of returns the tag for a call of a function; t is that of the instance.
func (t Tag) Of(f uint8) Tag {
	if t == 0 {
		return 0
	}
	return t | Tag(f+1)
}

// loading returns the tag for loading what t refers to.
func (t Tag) loading() Tag {
	if t == 0 {
		return 0
	}
	return t | tagLoading
}

// Function returns the number of the function that is called, -1 for none, or that a library
// is being loaded.
func (t Tag) Function() (f int, loading bool) {
	f = int(t & tagFunction)
	return f - 1, f == int(tagLoading)
}

// Number returns the number of the instance, 0 if there is none.
func (t Tag) Number() int { return int(t >> tagNumber) }

// cell is a place for a batch in memory that the parent process sees. It lies away from
// the heap of the C library: an FMU that writes beyond its own memory does not get there.
type cell struct {
	content [cellSize - 8]byte
	mark    uint64
}

const (
	callsRegion = "calls." // of the shared memory: calls.0, calls.1, …
	cellSize    = 256
	callsMany   = 256 // cells of a region
)

// batchCell marks a cell that is in use; it is unlikely to be there by accident.
const batchCell = 0x4d53_6261_7463_6800 // "MSbatch"

// cells are the free ones.
var cells struct {
	sync.Mutex
	free    []*cell
	regions int
}

// newCell returns a zeroed cell.
func newCell() *cell {
	cells.Lock()
	defer cells.Unlock()
	if len(cells.free) == 0 {
		memory := process.Shared().Region(fmt.Sprint(callsRegion, cells.regions), callsMany*cellSize)
		cells.regions++
		all := unsafe.Slice((*cell)(unsafe.Pointer(&memory[0])), callsMany)
		for k := range slices.Backward(all) { // the first one is used first
			cells.free = append(cells.free, &all[k])
		}
	}
	last := len(cells.free) - 1
	c := cells.free[last]
	cells.free = cells.free[:last]
	c.content = [cellSize - 8]byte{}
	atomic.StoreUint64(&c.mark, batchCell)
	return c
}

func (c *cell) batch() *Batch { return (*Batch)(unsafe.Pointer(&c.content)) }

// freeCells takes cells back.
func freeCells(all []*cell) {
	cells.Lock()
	defer cells.Unlock()
	for _, c := range all {
		atomic.StoreUint64(&c.mark, 0)
	}
	cells.free = append(cells.free, all...)
}

// Crossing is a call that is under way.
type Crossing struct {
	Tag  Tag
	Time float64 // s, where the instance is or where its step began; NaN = not known
	ID   uint64  // differs from that of every other call
}

// Crossings returns the calls under way in the process that reports into a page. The memory
// may hold anything.
func Crossings(p *process.Page) []Crossing {
	var out []Crossing
	for k := uint64(0); ; k++ {
		memory := p.Find(fmt.Sprint(callsRegion, k))
		if memory == nil {
			return out
		}
		all := unsafe.Slice((*cell)(unsafe.Pointer(&memory[0])), min(len(memory)/cellSize, callsMany))
		for j := range all {
			c := all[j].read()
			if again := all[j].read(); c.Tag == 0 || again.Tag != c.Tag || again.ID != c.ID { // it was just changing
				continue
			}
			c.ID = mixed(c.ID, k<<32|uint64(j))
			out = append(out, c)
		}
	}
}

// read returns the call under way in a cell; its tag is 0 if there is none.
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

// mixed returns a number that changes with either of two.
func mixed(a, b uint64) uint64 {
	a = (a ^ b) * 0x9e3779b97f4a7c15
	return a ^ a>>29
}
