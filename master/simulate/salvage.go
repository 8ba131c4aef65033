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

// rooms are the regions. They are there before FMUs are loaded, which may take away what is
// needed to get them.
var rooms struct {
	run, manifest []byte
	used          bool
}

// Reserve makes room for what Salvage and Finish need, in a process that has a supervisor,
// and forgets what the run before has left. Runs of such a process follow each other.
func Reserve() {
	shared := process.Shared()
	if shared == nil {
		return
	}
	shared.Drop(runRegion)
	shared.Drop(manifestRegion)
	record.Forget(shared)
	rooms.run, rooms.manifest, rooms.used = shared.Region(runRegion, runSize), shared.Region(manifestRegion, manifestSize), false
}

// head returns the region; nil = there is none.
func head() *region {
	if len(rooms.run) == 0 {
		return nil
	}
	return (*region)(unsafe.Pointer(&rooms.run[0]))
}

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
	if b.region = head(); b.region == nil || err != nil || len(text) > runSize-regionHead {
		b.region = nil // then a supervisor cannot complete the manifest
		return
	}
	copy(rooms.run[regionHead:], text)
	b.region.length.Store(uint64(len(text)))
	rooms.used = true
}

// release lets other runs write the manifest.
func (b *beginning) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.file.Close() // it was written
}

// over says that the manifest reports how the run has ended, and whether rows that could
// not be written are left to the supervisor.
func (b *beginning) over(rows bool) {
	if b.region == nil {
		return
	}
	if rows {
		b.region.rows.Store(1)
	}
	b.region.ended.Store(1)
}

// leave leaves the manifest to the supervisor, because it cannot be written here.
func (b *beginning) leave() bool {
	text, err := b.manifest.JSON()
	if b.region == nil || err != nil || len(text) > len(rooms.manifest) {
		return false
	}
	copy(rooms.manifest, text)
	b.region.manifest.Store(uint64(len(text)))
	return true
}

// leaveFolders leaves it to the supervisor, if there is one, to remove temporary folders.
func leaveFolders() bool {
	r := head()
	if r == nil {
		return false
	}
	r.folders.Store(1)
	return true
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
	begun, ended, rows, folders bool
	steps                       int
	reached                     float64
	manifest                    []byte // that could not be written; nil = none
}

// leftIn reads it.
func leftIn(find func(name string) []byte) (l left) {
	memory := find(runRegion)
	if len(memory) < regionHead {
		return l
	}
	r := (*region)(unsafe.Pointer(&memory[0]))
	l.ended, l.rows, l.folders = r.ended.Load() == 1, r.rows.Load() == 1, r.folders.Load() == 1
	l.steps, l.reached = int(r.steps.Load()), math.Float64frombits(r.time.Load())
	n := r.length.Load()
	l.begun = n > 0 && n <= uint64(len(memory)-regionHead) && json.Unmarshal(memory[regionHead:regionHead+int(n)], &l.leaving) == nil
	if text := find(manifestRegion); r.manifest.Load() > 0 && r.manifest.Load() <= uint64(len(text)) {
		l.manifest = text[:r.manifest.Load()]
	}
	return l
}

// last returns the last manifest of the run; nil = there is none.
func (l *left) last() *record.Manifest {
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
	if !l.begun {
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
	m := l.last()
	switch {
	case m == nil || !l.ended:
		if err != nil {
			reason = fmt.Sprintf("%s; the results could not be completed: %v", reason, err)
		}
		if m == nil {
			m = &record.Manifest{}
		}
		m.Break(status, reason, l.reached, l.steps)
	case m.Outcome.Regular(): // but what comes after the run may be missing
		result := master.Result{Status: status}
		m.Status, m.Reason, m.Outcome.Ended = status, "after the end of the run: "+reason, result.Outcome().Ended
	case l.rows:
		m.Reason += added(saved, err)
	}
	out.Manifest = m
	if l.Manifest != "" && m.Write(l.Manifest) == nil {
		out.ManifestPath = l.Given
	}
	return out
}

// added completes the reason of a run that could not write its rows.
func added(s record.Salvaged, err error) string {
	switch {
	case err != nil:
		return "; nor could more rows be added when the process had ended"
	case s.Added > 0:
		return fmt.Sprintf("; %d more rows, up to t = %.12g s, were added when the process had ended", s.Added, s.Newest)
	}
	return ""
}

// Left reports whether a run that has ended by itself has left something to Finish.
func Left(find func(name string) []byte) bool {
	l := leftIn(find)
	return l.folders || l.ended && (l.rows || l.manifest != nil)
}

// Finish does what a run could not do in its own process, in which an FMU may have used up
// what that needs: it writes the rows and the manifest that are left, and removes temporary
// folders. The process has ended.
func Finish(find func(name string) []byte) error {
	l := leftIn(find)
	if l.folders {
		_, _ = archive.Sweep("", archive.Prefix) // the next run tries again
	}
	if !l.begun || !l.rows && l.manifest == nil {
		return nil
	}
	text := ""
	if l.rows {
		text = added(record.Salvage(find))
	}
	m := l.last()
	if m == nil || l.Manifest == "" {
		return nil
	}
	m.Reason += text
	return m.Write(l.Manifest)
}
