package supervise

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/simulate"
)

// Death is the end of an engine that has not finished its work.
type Death struct {
	Cause    string           // "killed by signal SIGSEGV (segmentation fault)", or why it was ended
	Calls    []fmi.Call       // under way then; one of them is the culprit, if there are any
	Loaded   []fmi.Call       // the FMUs in the engine, by instances
	Messages []fmi.LogMessage // the last ones of FMUs
	Known    bool             // the culprit is on record: --isolate auto isolates it the next time
	Outcome  simulate.Outcome

	lost error // why the results could not be completed
	// Killed says that Engine.Kill has ended it, Outside that somebody else may have.
	Killed, Outside bool
}

// Error names component, FMU, function, time and cause, quotes the last messages and says
// what helps.
func (d *Death) Error() string {
	text := d.Reason()
	if d.lost != nil {
		text += "; its results could not be completed: " + d.lost.Error()
	}
	switch {
	case d.Killed, d.Outside:
		return text
	case d.Known:
		return text + "; " + knownRemedy
	case len(d.Calls) > 0 || len(d.Loaded) > 0:
		return text + "; " + unknownRemedy
	}
	return text
}

// What helps, if the culprit is on record, and if it is not.
const (
	knownRemedy   = "the FMU is on record now: run it again, and it gets a process of its own, by --isolate auto, which is the default, or always"
	unknownRemedy = "run it again with --isolate always"
)

// Reason is Error without what helps.
func (d *Death) Reason() string {
	if d.Killed {
		return d.Cause
	}
	var b strings.Builder
	switch {
	case len(d.Calls) > 0:
		for i, c := range d.Calls {
			if i > 0 {
				b.WriteString(", or ")
			}
			b.WriteString(c.String())
		}
	case len(d.Loaded) > 0:
		var files []string
		for _, c := range d.Loaded {
			if name := filepath.Base(c.FMU); !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
		fmt.Fprintf(&b, "an FMU ended the engine outside of its calls, perhaps in a thread of its own (loaded: %s)", strings.Join(files, ", "))
	default:
		b.WriteString("the engine ended")
	}
	b.WriteString(": " + d.Cause)
	for i, m := range d.Messages {
		if i == 0 {
			b.WriteString("; the last messages: ")
		} else {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", m.Instance, m.Text)
	}
	return b.String()
}

// died completes what an engine has left behind.
func (e *Engine) died(l *link) error {
	if !l.child.Within(endPatience) { // it does not answer as it should
		e.mu.Lock()
		e.kill("it does not answer as it should and was ended")
		e.mu.Unlock()
		l.child.Within(killPatience)
	}
	e.mu.Lock()
	e.link = nil
	reason, killed := e.reason, e.killed
	e.mu.Unlock()
	d := &Death{Cause: reason, Killed: killed}
	if reason == "" && l.child.Gone() {
		d.Cause, d.Outside = process.Reason(l.child.State())
	}
	if l.page != nil {
		d.Calls, d.Loaded, d.Messages = fmi.Calls(l.page), fmi.Loaded(l.page), fmi.LastMessages(l.page)
	}
	if len(d.Calls) == 1 && reason == "" && !d.Outside {
		c, crashes := d.Calls[0], &worker.Record{Dir: fmuslave.CacheDir()}
		d.Known = crashes.Take(fmi.Launch{FMU: c.FMU, Hash: c.Hash, Model: c.Model}, &fmi.Ended{Reason: d.Cause, Crash: true})
	}
	tidy() // before: processes may hold files
	if l.page != nil {
		status := master.Failed
		if d.Killed {
			status = master.Incomplete
		}
		d.Outcome, d.lost = simulate.Salvage(l.page.Find, status, d.Reason(), d.Calls...)
	}
	_ = l.close()
	return d
}

// Completed is the end of a run that could not write its files to the end, because an FMU
// had taken away what its process needs for that; they were written after its end.
type Completed struct {
	Outcome simulate.Outcome
	Err     error // why that was not possible either; nil = the files are complete
}

// Error reports what became of the files.
func (c *Completed) Error() string {
	text := "the engine could not write its files to the end; they were completed after it"
	if c.Err != nil {
		text = fmt.Sprintf("neither the engine nor its supervisor could write all files: %v", c.Err)
	}
	if m := c.Outcome.Manifest; m != nil && !m.Outcome.Regular() {
		text += "; the run: " + m.Reason
	}
	return text
}

// Unwrap returns why the files are not complete.
func (c *Completed) Unwrap() error { return c.Err }
