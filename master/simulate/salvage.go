package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// regionName is the name of the shared region that holds the progress of a run.
const regionName = "run"

// region is the progress of a run, in memory shared with the supervisor.
type region struct {
	turn  atomic.Uint64 // number of the description that is valid, in a region of its own; 0 = the run has not begun
	steps uint64        // accepted macro steps
	time  float64       // reached, s
	wall  float64       // that it took, s
	ended atomic.Uint64 // 1 = its files are complete
}

const regionSize = int(unsafe.Sizeof(region{}))

// descriptionName returns the name of the region of a description. There are two, so that one
// is valid while the other is written.
func descriptionName(turn uint64) string { return fmt.Sprint(regionName, ".", turn%2) }

// findRegion returns the progress of the run in shared memory; nil = there was no run.
func findRegion(find func(name string) []byte) *region {
	memory := find(regionName)
	if len(memory) < regionSize {
		return nil
	}
	r := (*region)(unsafe.Pointer(&memory[0]))
	if r.turn.Load() == 0 {
		return nil
	}
	return r
}

// leaving is the description of a run for its supervisor, as JSON.
type leaving struct {
	Manifest   string // absolute path; "" = none is written
	Given      string // path as the user gave it
	Table      bool
	Checkpoint string          // absolute path; "" = none is written
	Settled    bool            // the run has ended, and Document is its verdict
	Document   json.RawMessage // the current manifest
}

// publish shows the run and its current manifest to the supervisor, if there are files that it
// could complete.
func (b *beginning) publish() {
	if l := &b.leaving; l.Manifest == "" && l.Checkpoint == "" && !l.Table {
		return
	}
	page := process.Shared()
	if b.region == nil {
		b.region = (*region)(unsafe.Pointer(&page.Region(regionName, regionSize)[0]))
	}
	var err error
	if b.leaving.Document, err = b.manifest.JSON(); err != nil {
		return
	}
	text, err := json.Marshal(b.leaving)
	if err != nil {
		return
	}
	turn := b.region.turn.Load() + 1
	page.Drop(descriptionName(turn))
	copy(page.Region(descriptionName(turn), len(text)), text)
	b.reached(b.manifest.EndTime, b.manifest.Steps.Accepted)
	b.region.turn.Store(turn)
}

// over publishes that the files are complete, unless left is set, and unlocks the manifest.
// The description stays, in case the process dies before its work is done.
func (b *beginning) over() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.file.Close() // it was written
	if b.region != nil && !b.left {
		b.region.ended.Store(1)
	}
}

// observe stores the progress of the run.
func (b *beginning) observe(p master.Progress) {
	b.reached(p.T, p.Steps)
	if b.region != nil {
		b.region.wall = p.Wall.Seconds()
	}
}

func (b *beginning) reached(t float64, steps int) {
	b.steps.Store(int64(steps))
	if b.region != nil {
		b.region.steps, b.region.time = uint64(steps), t
	}
}

// Left reports whether a run that has ended needs Salvage to complete its files.
func Left(find func(name string) []byte) bool {
	r := findRegion(find)
	return r != nil && r.ended.Load() == 0
}

// Withdraw drops the shared memory of the last run.
func Withdraw() {
	page := process.Shared()
	for _, name := range []string{regionName, descriptionName(0), descriptionName(1)} {
		page.Drop(name)
	}
	record.Forget(page)
}

// Salvage completes the files of a dead process from its shared memory: it adds the missing
// rows and writes the manifest with the reason of its death, which is a warning if the run had
// ended. The log of calls gets the unfinished calls. Without a reason, the run had ended but
// could not write its files, because an FMU had closed them. The outcome is zero if the run had
// not begun.
func Salvage(find func(name string) []byte, status master.Status, reason string, calls ...fmi.Call) (out Outcome, err error) {
	r := findRegion(find)
	var l leaving
	if r == nil || json.Unmarshal(find(descriptionName(r.turn.Load())), &l) != nil {
		return out, nil
	}
	steps, reached := int(r.steps), r.time
	out.Begun, out.Table = true, l.Table
	var lines []string
	for _, c := range calls {
		lines = append(lines, c.Line())
	}
	saved, err := record.Salvage(find, lines...)
	if l.Table && saved.Rows > 0 {
		out.Rows, out.Columns, reached = saved.Rows, saved.Columns, math.Max(reached, saved.Newest)
	}
	if err != nil && reason != "" && !l.Settled {
		reason = fmt.Sprintf("%s; the results could not be completed: %v", reason, err)
	}
	m := &record.Manifest{}
	if json.Unmarshal(l.Document, m) != nil {
		m = &record.Manifest{Status: master.Incomplete}
	}
	if m.Status == master.Incomplete && !l.Settled {
		m.WallSeconds = r.wall
	}
	files := []string{l.Manifest, l.Checkpoint}
	switch {
	case reason != "" && l.Settled:
		if r.ended.Load() == 1 && !isAt(m, l.Manifest) {
			l.Manifest = ""
		}
		m.Warnings = append(m.Warnings, "after the run: "+reason+"; no result is lost")
	case reason != "":
		m.Break(status, reason, reached, steps)
	case saved.Added > 0:
		m.Reason += fmt.Sprintf("; %d more rows, up to t = %.12g s, were added when the process had ended",
			saved.Added, saved.Newest)
	}
	out.Manifest = m
	for _, path := range files {
		record.Sweep(path)
	}
	if l.Manifest != "" {
		if failed := m.Write(l.Manifest); failed != nil {
			return out, errors.Join(err, failed)
		}
		out.ManifestPath = l.Given
	}
	return out, err
}

// Settled reports whether the run in shared memory had ended, with a verdict that nothing changes.
func Settled(find func(name string) []byte) bool {
	var l leaving
	r := findRegion(find)
	return r != nil && json.Unmarshal(find(descriptionName(r.turn.Load())), &l) == nil && l.Settled
}

// ManifestPath returns the absolute path of the manifest of the run in shared memory; "" = there is none.
func ManifestPath(find func(name string) []byte) string {
	var l leaving
	if r := findRegion(find); r == nil || json.Unmarshal(find(descriptionName(r.turn.Load())), &l) != nil {
		return ""
	}
	return l.Manifest
}

// isAt reports whether a manifest is still where the run has written it. The user may have moved it since.
func isAt(m *record.Manifest, path string) bool {
	there, err := os.ReadFile(path)
	text, failed := m.JSON()
	return err == nil && failed == nil && bytes.Equal(there, text)
}
