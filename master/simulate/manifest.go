package simulate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/ssp"
)

// manifest returns the manifest before the run.
func (r *run) manifest() *record.Manifest {
	sys, c := r.sys, r.chosen
	m := &record.Manifest{
		Status:   master.Incomplete,
		Reason:   "the run did not come to its end",
		Versions: record.Versions{Macrostep: Version(), Go: runtime.Version(), Platform: Platform()},
		Command:  r.Command, System: r.System, Results: r.Output, Trace: r.Trace, FMUs: sys.FMUs,
		Algorithm: c.Preset, Parameters: c.Values, Sources: r.sources(),
		StartTime: sys.Start, StopTime: sys.Stop, StepSize: sys.Step, Tolerance: sys.Tolerance, EndTime: sys.Start.Value,
	}
	if r.Record.IsNone() {
		m.Results = ""
	}
	warnings, notes := judgeFindings(r.System, sys.Findings)
	m.Notes = slices.Concat(notes, sys.Notes, c.notes)
	m.Warnings = slices.Concat(warnings, sys.Warnings, r.aboutStep(), c.warnings)
	return m
}

// sources returns the source of each setting of the system that is in force and not a default, by the name of the setting.
func (r *run) sources() map[string]string {
	sys, c := r.sys, r.chosen
	out := map[string]string{}
	for _, rate := range c.Rates {
		if hint := sys.Hints[rate.Component]; hint != "" {
			out["rate "+rate.Component] = hint
		}
	}
	asked, _ := AskedBy(sys.Asked) // Open has reported errors
	documents := slices.DeleteFunc(asked.Given, func(g Given) bool { return !slices.Contains(coupled, g.Name) })
	same := cmp.Or(r.Algorithm, sys.Algorithm) == sys.Algorithm || sys.Algorithm == ""
	for _, g := range slices.Concat(documents, r.Given) {
		key, there := g.Key, true
		switch e := Find(g.Name); {
		case e.Annotation == "" && e.Component == "", slices.Contains([]string{ssp.StepSize, "tolerance"}, g.Name):
			continue // it is not of a system, or has its source beside it
		case g.Name == "param":
			value, known := c.Values[key]
			there = known && (!g.Document || same && value == asked.Params[key])
		case g.Name == "bond":
			there = slices.ContainsFunc(c.Bonds, func(b algorithms.Bond) bool { return b.Name == key }) && !(g.Document && len(r.Bonds) > 0)
		case g.Name == "rate":
			there = slices.ContainsFunc(c.Rates, func(rate algorithms.Rate) bool { return rate.Component == key })
		case g.Name == "quirk" && sys.Alone != "" && key != "" && !strings.Contains(key, " "):
			key = sys.Alone + " " + key
		}
		if there {
			out[strings.TrimSpace(g.Name+" "+key)] = g.Source
		}
	}
	return out
}

// longerThanRun returns warnings about times between points that are longer than the run m.
func (r *run) longerThanRun(m *record.Manifest) (warnings []string) {
	span := m.StopTime.Value - m.StartTime.Value
	if m.StepSize.Value > span && m.Steps.Accepted == 1 { // variable steps become shorter
		warnings = append(warnings, fmt.Sprintf("the macro step of %.6g s (%s) is longer than the run of %.6g s, which is a single step: "+
			"inputs and results have no values in between; give a shorter --step-size or a later --stop-time",
			m.StepSize.Value, m.StepSize.Source, span))
	}
	if r.Interval > span && !r.Record.IsNone() {
		warnings = append(warnings, fmt.Sprintf("the time between rows, %.6g s (%s), is longer than the run of %.6g s: "+
			"the results have only its start and its end; give a shorter --output-interval",
			r.Interval, m.Sources["output-interval"], span))
	}
	if c := m.Checkpoints; c != nil && c.Every > span {
		warnings = append(warnings, fmt.Sprintf("the time between checkpoints, %.6g s, is longer than the run of %.6g s: "+
			"only an interrupt would have written one; give a shorter time with --checkpoint", c.Every, span))
	}
	return warnings
}

// beginning is a recorder that writes the manifest of an incomplete run when the run begins,
// before earlier results are replaced, so that the old manifest never accompanies new results.
type beginning struct {
	manifest *record.Manifest
	file     record.ManifestFile // Path "" = none is written
	written  bool
	stands   bool // the incomplete manifest was written
	begun    atomic.Bool
	steps    atomic.Int64
	table    *record.Table // nil = none
	leaving  leaving
	region   *region // in shared memory; nil = not published
	left     bool    // the supervisor has to complete the files
	document []byte  // the manifest as written
	conclude func(master.Result)
	// mu is held while the manifest is written. A goroutine that writes the last one and ends
	// the program never unlocks it.
	mu sync.Mutex
}

func (b *beginning) write() error {
	if b.written {
		return nil
	}
	b.written = true
	b.publish() // first, so that a supervisor can complete the manifest
	err := b.end()
	if err != nil {
		b.region.turn.Store(0)
	}
	return err
}

// end writes the current manifest, if it has a path.
func (b *beginning) end() error {
	if b.file.Path == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	text, err := b.manifest.JSON()
	if _, missing := os.Stat(b.file.Path); err == nil && missing == nil && bytes.Equal(text, b.document) {
		return nil
	}
	if err = b.file.Write(b.manifest); err == nil {
		b.stands, b.document = true, text
		return nil
	}
	if _, missing := os.Stat(b.file.Path); missing == nil && !errors.Is(err, record.ErrBusy) {
		of := "is not of this run"
		if b.stands {
			of = "is that of its beginning"
		}
		err = fmt.Errorf("%w; the %s that is there %s", err, b.file.Path, of)
	}
	return err
}

func (b *beginning) Begin(*master.System, []master.Port) error {
	if err := b.write(); err != nil {
		return err
	}
	b.begun.Store(true)
	return nil
}

// Record stores the progress, for a run that is aborted.
func (b *beginning) Record(p *master.Point) error {
	b.reached(p.T, p.Step)
	return nil
}

func (b *beginning) Flush() error { return nil }

func (b *beginning) End(result master.Result) error {
	if b.begun.Load() {
		b.conclude(result)
	}
	return nil
}

// set sets the manifest of a run that has ended.
func (b *beginning) set(m *record.Manifest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.manifest, b.leaving.Settled = m, true
}

// flushInterval bounds the loss of results when an FMU hangs or ends the process.
const flushInterval = 250 * time.Millisecond

// flushRegularly flushes the files on another goroutine, because the run cannot while an FMU
// hangs. The returned function stops it.
func (r *run) flushRegularly() (stop func()) {
	if r.table == nil && r.attempts == nil && r.calls == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(flushInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if !r.mark.begun.Load() {
					continue
				}
				// The run sees the same errors at its next row.
				if r.table != nil {
					_ = r.table.Flush()
				}
				r.flushTexts()
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// flushTexts writes attempts and calls to their files.
func (r *run) flushTexts() {
	if r.attempts != nil {
		_ = r.attempts.Flush()
	}
	if r.calls != nil {
		_ = r.calls.Flush()
	}
}

// interrupted writes the rows so far and a manifest with the progress of the run, and returns
// the reason with the time reached. The program must end next.
func (r *run) interrupted(reason string) string {
	b := r.mark
	if !b.begun.Load() {
		return reason
	}
	b.mu.Lock() // for ever: nothing is written after this
	if b.leaving.Settled {
		return reason
	}
	m := *b.manifest
	m.Reason = reason
	// Errors cannot be reported any more.
	if r.table != nil {
		_ = r.table.End(master.Result{})
		if t, any := r.table.Newest(); any {
			m.EndTime = t
			m.Reason = fmt.Sprintf("%s, in the step from t = %.12g s or later", reason, t)
		}
	}
	r.flushTexts()
	m.Steps.Accepted = int(b.steps.Load()) // no row comes after the end of the table
	if b.file.Path != "" {
		_ = b.file.Write(&m)
	}
	return m.Reason
}
