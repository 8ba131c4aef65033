package simulate

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// regionName is that of the region in which a run leaves what Salvage needs.
const regionName = "run"

// region is the begin of that region; a description follows, as JSON.
type region struct {
	length atomic.Uint64 // of the description; 0 = the run has not begun, or has ended
	steps  atomic.Uint64 // accepted macro steps
	time   atomic.Uint64 // bits of the time reached, s
	wall   atomic.Uint64 // bits of the time that it took, s
}

const regionHead = int(unsafe.Sizeof(region{}))

// leaving is the description.
type leaving struct {
	Manifest   string // absolute path; "" = none is written
	Given      string // as the user gave it
	Table      bool
	Checkpoint string          // absolute path; "" = none is written
	Document   json.RawMessage // the manifest as it is now
}

// publish makes the run, with its manifest as it is now, known to a supervisor.
func (b *beginning) publish() {
	b.hide()
	var err error
	if b.leaving.Document, err = b.manifest.JSON(); err != nil {
		return
	}
	text, err := json.Marshal(b.leaving)
	if err != nil {
		return
	}
	memory := process.Shared().Region(regionName, regionHead+len(text))
	copy(memory[regionHead:], text)
	b.region = (*region)(unsafe.Pointer(&memory[0]))
	b.region.length.Store(uint64(len(text)))
}

// hide takes that back.
func (b *beginning) hide() {
	if b.region != nil {
		b.region.length.Store(0)
		b.region = nil
		process.Shared().Drop(regionName)
	}
}

// leave leaves it to the supervisor to complete the files, and reports whether there is one.
func (b *beginning) leave() bool {
	b.left = b.region != nil && process.Shared() != nil
	return b.left
}

// withdraw takes everything back, unless it is left to the supervisor, and lets other runs
// write the manifest.
func (b *beginning) withdraw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.file.Close() // it was written
	if b.left {
		return
	}
	b.hide()
	record.Forget(process.Shared())
}

// observe follows how far the run is.
func (b *beginning) observe(p master.Progress) {
	b.reached(p.T, p.Steps)
	if b.region != nil {
		b.region.wall.Store(math.Float64bits(p.Wall.Seconds()))
	}
}

func (b *beginning) reached(t float64, steps int) {
	b.steps.Store(int64(steps))
	if b.region != nil {
		b.region.steps.Store(uint64(steps))
		b.region.time.Store(math.Float64bits(t))
	}
}

// Left reports whether a run has left something for Salvage to complete.
func Left(find func(name string) []byte) bool { return find(regionName) != nil }

// Salvage completes the results of a run whose process has ended, from the shared memory
// that it left: the rows that are not in the files yet, and the manifest, with the
// reason for which the process died. Without a reason the run had come to its end and
// could not write what was left, because an FMU had taken the files of its process away.
// The outcome is that of the run, as far as it had begun.
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
	}
	if err != nil && reason != "" {
		reason = fmt.Sprintf("%s; the results could not be completed: %v", reason, err)
	}
	m := &record.Manifest{}
	if json.Unmarshal(l.Document, m) != nil {
		m = &record.Manifest{Status: master.Incomplete}
	}
	if m.Status == master.Incomplete {
		m.WallSeconds = math.Float64frombits(binary.NativeEndian.Uint64(memory[24:]))
	}
	switch {
	case reason != "":
		m.Break(status, reason, reached, steps)
	case saved.Added > 0:
		m.Reason += fmt.Sprintf("; %d more rows, up to t = %.12g s, were added when the process had ended", saved.Added, saved.Newest)
	}
	out.Manifest = m
	for _, path := range []string{l.Manifest, l.Checkpoint} {
		record.Sweep(path)
	}
	if l.Manifest != "" && m.Write(l.Manifest) == nil {
		out.ManifestPath = l.Given
	}
	return out
}
