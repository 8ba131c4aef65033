package simulate

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// manifest returns what is known before the run.
func (r *run) manifest() *record.Manifest {
	sys, c := r.sys, r.chosen
	m := &record.Manifest{
		Status:   master.Incomplete,
		Reason:   "the run did not come to its end",
		Versions: record.Versions{Macrostep: Version(), Go: runtime.Version(), Platform: Platform()},
		Command:  r.Command, System: r.System, Results: r.Output, FMUs: sys.FMUs,
		Algorithm: c.Preset, Parameters: c.Values, Sources: r.sources(sys, c),
		StartTime: sys.Start, StopTime: sys.Stop, StepSize: sys.Step, Tolerance: sys.Tolerance, EndTime: sys.Start.Value,
	}
	if r.Record.IsNone() {
		m.Results = ""
	}
	for _, f := range sys.Findings {
		if f.Level == diag.Info {
			m.Notes = append(m.Notes, f.String())
		} else {
			m.Warnings = append(m.Warnings, f.String())
		}
	}
	m.Notes = append(m.Notes, c.notes...)
	m.Warnings = slices.Concat(m.Warnings, sys.Warnings, c.warnings)
	return m
}

// beginning writes the manifest of an incomplete run when the run begins: before
// results that are there are replaced, so that the old manifest never stands
// beside the new ones.
type beginning struct {
	manifest *record.Manifest
	file     record.ManifestFile // Path "" = none is written
	written  bool
	stands   bool // that of the beginning has been written
	begun    atomic.Bool
	steps    atomic.Int64
	table    *record.Table // nil = none
	leaving  leaving
	region   *region    // in which it is published; nil = it is not
	left     bool       // the supervisor has to complete the files
	mu       sync.Mutex // held while the manifest is written, and for good by who writes the last one and ends the program
}

func (b *beginning) write() error {
	if b.written {
		return nil
	}
	b.written = true
	b.publish() // first: from now on, a manifest that stays incomplete is completed
	err := b.end()
	if err != nil {
		b.region.turn.Store(0)
	}
	return err
}

// end writes the manifest as it is now, if there is to be one.
func (b *beginning) end() error {
	if b.file.Path == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.file.Write(b.manifest)
	if err == nil {
		b.stands = true
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

// Record follows how far the run is, for when it does not come to an end of its own.
func (b *beginning) Record(p *master.Point) error {
	b.reached(p.T, p.Step)
	return nil
}

func (b *beginning) Flush() error { return nil }

func (b *beginning) End(master.Result) error { return nil }

// flushInterval bounds what is lost when an FMU hangs or takes the process along.
const flushInterval = 250 * time.Millisecond

// flushRegularly writes lines and rows to the files beside the run, which cannot do it
// while an FMU hangs, until the function it returns is called.
func (r *run) flushRegularly() (stop func()) {
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

// interrupted writes the rows so far, and a manifest that records how far the run has
// come; it returns the reason with that. The program ends next.
func (r *run) interrupted(reason string) string {
	b := r.mark
	if !b.begun.Load() {
		return reason
	}
	b.mu.Lock() // nothing is written after this
	m := *b.manifest
	m.Reason = reason
	// Nobody is left to report errors to.
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
