package simulate

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// regionName is that of the region in which a run leaves what Salvage needs.
const (
	regionName = "run"
	regionSize = 64 << 10
)

// region is the begin of that region; a description follows, as JSON.
type region struct {
	length atomic.Uint64 // of the description; 0 = the run has not begun, or has ended
	steps  atomic.Uint64 // accepted macro steps
	time   atomic.Uint64 // bits of the time reached, s
}

const regionHead = int(unsafe.Sizeof(region{}))

// leaving is the description.
type leaving struct {
	Manifest string // absolute path; "" = none is written
	Given    string // as the user gave it
	Table    bool
	Every    bool // every communication point has a row
}

// publish makes the run known to a supervisor.
func (b *beginning) publish() {
	text, err := json.Marshal(b.leaving)
	if err != nil || len(text) > regionSize-regionHead {
		return // then a supervisor cannot complete the manifest
	}
	memory := process.Shared().Region(regionName, regionSize)
	copy(memory[regionHead:], text)
	b.region = (*region)(unsafe.Pointer(&memory[0]))
	b.region.length.Store(uint64(len(text)))
}

// withdraw takes that back, since nothing is left to complete, and lets other runs write
// the manifest.
func (b *beginning) withdraw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.file.Close() // it was written
	if b.region != nil {
		b.region.length.Store(0)
		b.region = nil
		process.Shared().Drop(regionName)
	}
	record.Forget(process.Shared())
}

// observe follows how far the run is.
func (b *beginning) observe(p master.Progress) {
	if b.region != nil {
		b.region.steps.Store(uint64(p.Steps))
		b.region.time.Store(math.Float64bits(p.T))
	}
}

// Salvage completes the results of a run whose process has died, from the shared memory
// that it left: the rows that are not in the files yet, and the manifest, with the
// reason. The outcome is that of the run, as far as it had begun.
func Salvage(find func(name string) []byte, status master.Status, reason string) (out Outcome) {
	memory := find(regionName)
	if len(memory) < regionHead {
		return out
	}
	n := binary.NativeEndian.Uint64(memory)
	var l leaving
	if n == 0 || n > uint64(len(memory)-regionHead) || json.Unmarshal(memory[regionHead:regionHead+int(n)], &l) != nil {
		return out
	}
	steps := int(binary.NativeEndian.Uint64(memory[8:]))
	reached := math.Float64frombits(binary.NativeEndian.Uint64(memory[16:]))
	out.Begun, out.Table = true, l.Table
	saved, err := record.Salvage(find)
	if l.Table && saved.Rows > 0 {
		out.Rows, out.Columns, reached = saved.Rows, saved.Columns, math.Max(reached, saved.Newest)
		if l.Every {
			steps = max(steps, saved.Rows-1)
		}
	}
	if err != nil {
		reason = fmt.Sprintf("%s; the results could not be completed: %v", reason, err)
	}
	m := &record.Manifest{}
	text, err := os.ReadFile(l.Manifest)
	if err != nil || json.Unmarshal(text, m) != nil {
		m = &record.Manifest{EndTime: reached}
	}
	m.Break(status, reason, reached, steps)
	out.Manifest = m
	if l.Manifest != "" && m.Write(l.Manifest) == nil {
		out.ManifestPath = l.Given
	}
	return out
}
