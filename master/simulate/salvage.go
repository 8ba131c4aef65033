package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// The regions in which a run leaves what Salvage and Finish need.
const (
	runRegion      = "run"
	runSize        = 64 << 10
	manifestRegion = "manifest" // the last one, if the run could not write it
	manifestSize   = 1 << 20
)

// region is the beginning of the first; a description follows, as JSON.
type region struct {
	length   atomic.Uint64 // of the description; 0 = the run has not begun
	steps    atomic.Uint64 // accepted macro steps
	time     atomic.Uint64 // bits of the time reached, s
	ended    atomic.Uint64 // 1 = the run has ended, and its manifest reports how
	manifest atomic.Uint64 // bytes in the other region
	rows     atomic.Uint64 // 1 = rows could not be written
	folders  atomic.Uint64 // 1 = temporary folders could not be removed
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
	if err != nil || len(text) > runSize-regionHead {
		return // then a supervisor cannot complete the manifest
	}
	memory := process.Shared().Region(runRegion, runSize)
	copy(memory[regionHead:], text)
	b.region = (*region)(unsafe.Pointer(&memory[0]))
	if process.Shared() != nil {
		b.text = process.Shared().Region(manifestRegion, manifestSize)
	}
	b.region.length.Store(uint64(len(text)))
}

// over says that the run has ended, and lets other runs write the manifest.
func (b *beginning) over() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.file.Close() // it was written
	if b.region != nil {
		b.region.ended.Store(1)
	}
}

// leave leaves the manifest to the supervisor, because it cannot be written here.
func (b *beginning) leave() bool {
	if b.region == nil {
		return false
	}
	text, err := b.manifest.JSON()
	if err != nil || len(text) > len(b.text) {
		return false
	}
	copy(b.text, text)
	b.region.manifest.Store(uint64(len(text)))
	return true
}

// leaveRows leaves the rows that could not be written to the supervisor.
func (b *beginning) leaveRows() {
	if b.region != nil {
		b.region.rows.Store(1)
	}
}

// leaveFolders leaves it to the supervisor to remove temporary folders.
func (b *beginning) leaveFolders() bool {
	if b == nil || b.region == nil || process.Shared() == nil {
		return false
	}
	b.region.folders.Store(1)
	return true
}

// Withdraw forgets what a run has left for Salvage and Finish.
func Withdraw() {
	process.Shared().Drop(runRegion)
	process.Shared().Drop(manifestRegion)
	record.Forget(process.Shared())
}

// observe follows how far the run is.
func (b *beginning) observe(p master.Progress) {
	if b.region != nil {
		b.region.steps.Store(uint64(p.Steps))
		b.region.time.Store(math.Float64bits(p.T))
	}
}

// left is what a run has left.
type left struct {
	leaving
	steps                int
	reached              float64
	ended, rows, folders bool
	manifest             []byte // that could not be written; nil = none
}

// leftIn reads it; nil = no run has begun.
func leftIn(find func(name string) []byte) *left {
	memory := find(runRegion)
	if len(memory) < regionHead {
		return nil
	}
	r := (*region)(unsafe.Pointer(&memory[0]))
	n := r.length.Load()
	l := &left{
		steps: int(r.steps.Load()), reached: math.Float64frombits(r.time.Load()),
		ended: r.ended.Load() == 1, rows: r.rows.Load() == 1, folders: r.folders.Load() == 1,
	}
	if n == 0 || n > uint64(len(memory)-regionHead) || json.Unmarshal(memory[regionHead:regionHead+int(n)], &l.leaving) != nil {
		return nil
	}
	if text := find(manifestRegion); r.manifest.Load() > 0 && r.manifest.Load() <= uint64(len(text)) {
		l.manifest = text[:r.manifest.Load()]
	}
	return l
}

// read returns the last manifest of the run; nil = there is none.
func (l *left) read() *record.Manifest {
	text := l.manifest
	if text == nil {
		text, _ = os.ReadFile(l.Manifest)
	}
	m := &record.Manifest{}
	if json.Unmarshal(text, m) != nil {
		return nil
	}
	return m
}

// Salvage completes the results of a run whose process has died, from the shared memory
// that it left: the rows that are not in the files yet, and the manifest, with the
// reason. The outcome is that of the run, as far as it had begun.
func Salvage(find func(name string) []byte, status master.Status, reason string) (out Outcome) {
	l := leftIn(find)
	if l == nil {
		return out
	}
	out.Begun, out.Table = true, l.Table
	saved, err := record.Salvage(find)
	if l.Table && saved.Rows > 0 {
		out.Rows, out.Columns, l.reached = saved.Rows, saved.Columns, math.Max(l.reached, saved.Newest)
		if l.Every {
			l.steps = max(l.steps, saved.Rows-1)
		}
	}
	m := l.read()
	switch {
	case m == nil || !l.ended:
		if err != nil {
			reason = fmt.Sprintf("%s; the results could not be completed: %v", reason, err)
		}
		if m == nil {
			m = &record.Manifest{EndTime: l.reached}
		}
		m.Break(status, reason, l.reached, l.steps)
	case m.Outcome.Regular(): // what comes after the run may be missing
		ended := master.Result{Status: status}
		m.Status, m.Reason, m.Outcome.Ended = status, "after the end of the run: "+reason, ended.Outcome().Ended
	}
	out.Manifest = m
	if l.Manifest != "" && m.Write(l.Manifest) == nil {
		out.ManifestPath = l.Given
	}
	return out
}

// Left reports whether a run that has ended by itself has left something to Finish.
func Left(find func(name string) []byte) bool {
	l := leftIn(find)
	return l != nil && l.ended && (l.rows || l.folders || l.manifest != nil)
}

// Finish does what a run could not do in its own process, in which an FMU may have used up
// what that needs: it writes the rows and the manifest that are left, and removes temporary
// folders. The process has ended.
func Finish(find func(name string) []byte) error {
	l := leftIn(find)
	if l == nil {
		return nil
	}
	if l.folders {
		_, _ = archive.Sweep("", archive.Prefix) // the next run tries again
	}
	m := l.read()
	if m == nil || l.Manifest == "" {
		return nil
	}
	if l.rows {
		saved, err := record.Salvage(find)
		switch {
		case err != nil:
			m.Reason += "; no more rows could be added when the process had ended"
		case saved.Added > 0:
			m.Reason += fmt.Sprintf("; %d more rows, up to t = %.12g s, were added when the process had ended", saved.Added, saved.Newest)
		}
	}
	return m.Write(l.Manifest)
}
