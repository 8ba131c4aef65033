package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/simulate"
)

// Death is the error of an engine that died during its work.
type Death struct {
	Cause    string           // "killed by signal SIGSEGV (segmentation fault)", or why it was killed
	Calls    []fmi.Call       // the current calls; if there are any, one of them is the cause
	Loaded   []fmi.Call       // the FMUs in the engine, by instances
	Messages []fmi.LogMessage // the last messages of FMUs
	Record   string           // file about the crash, because of which --isolate auto will isolate the FMU; "" = none
	Outcome  simulate.Outcome
	Lost     error // why the files of Outcome could not be completed; nil = they were
	// After: the work was done or had settled its answer (Job.Settle), and Failed is the error of the work. Such a
	// death is a warning of Outcome. RunEnded: the same of the run of Outcome, but the answer is lost.
	After, RunEnded bool
	Failed          error

	own bool // Cause is a panic of the engine itself
	// Killed: by Engine.Kill. Outside: perhaps by another program.
	Killed, Outside bool
}

// Error returns component, FMU, function, time, cause, the last messages and a remedy.
func (d *Death) Error() string {
	text := d.Reason()
	if d.Lost != nil {
		text += "; its results could not be completed: " + d.Lost.Error()
	}
	switch {
	case d.Killed, d.Outside, d.After, d.own:
		return text
	case d.Record != "":
		return text + "; " + fmt.Sprintf(knownRemedy, d.Record)
	case len(d.Calls) > 0 || len(d.Loaded) > 0:
		return text + "; " + unknownRemedy
	}
	return text
}

// Remedies, if the crash of the FMU was recorded, and if not.
const (
	knownRemedy = "later runs isolate this FMU (unless you delete %s), which does not prevent the crash: to go on after it, " +
		"give --on-crash restart, which needs FMUs that can serialise their states; to see the calls up to it, --debug calls=FILE"
	unknownRemedy = "to find out which FMU it is, run with --isolate always"
)

// Reason is Error without the remedy.
func (d *Death) Reason() string {
	if d.Killed && !d.After || d.own {
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
	if d.After {
		return b.String()
	}
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

// endPatience is the time for an engine to end that has closed its end of a pipe.
const endPatience = 2 * time.Second

// died completes the files of an engine and returns its *Death. after: its work had settled the answer.
func (e *Engine) died(l *link, after bool) *Death {
	if !l.child.Within(endPatience) { // it does not answer as it should
		e.mu.Lock()
		e.kill("it does not answer as it should and was ended")
		e.mu.Unlock()
		l.child.Within(killPatience)
	}
	e.mu.Lock()
	e.link = nil
	d := e.death(l, after)
	byUs := e.reason != ""
	e.mu.Unlock()
	if len(d.Calls) == 1 && !byUs && !d.Outside && !after {
		c, crashes := d.Calls[0], &worker.Record{Dir: fmuslave.CacheDir()}
		if crashes.Take(fmi.Launch{FMU: c.FMU, Hash: c.Hash, Model: c.Model}, &fmi.Ended{Reason: d.Cause, Crash: true}) {
			d.Record = crashes.Path(c.Hash)
		}
	}
	tidy() // first, because processes may hold files
	if l.page != nil {
		status := master.Failed
		if d.Killed {
			status = master.Incomplete
		}
		settled := simulate.Settled(l.page.Find)
		d.Outcome, d.Lost = simulate.Salvage(l.page.Find, status, d.Reason(), d.Calls...)
		if m := d.Outcome.Manifest; settled && !after && m != nil { // its answer did not arrive
			if d.RunEnded = true; !m.Outcome.OK(false) {
				d.Failed = errors.New(cmp.Or(m.Reason, m.Outcome.String()))
			}
		}
	}
	_ = l.close()
	return d
}

// panicked keeps the stack of a panic of the engine beside the manifest of its run. The caller holds mu.
func (e *Engine) panicked(l *link, a *answer) {
	path, err := simulate.KeepTrace(simulate.TracePath(simulate.ManifestPath(l.page.Find)), a.Panic+"\n\n"+a.Stack)
	if err != nil {
		path = err.Error()
	}
	if e.own = e.reason == ""; e.own {
		e.reason = fmt.Sprintf("%s, a fault of macrostep; to report it, send %s", a.Panic, path)
	}
}

// death describes the end of an engine. The caller holds mu.
func (e *Engine) death(l *link, after bool) *Death {
	d := &Death{Cause: e.reason, Killed: e.killed, After: after, own: e.own}
	if e.reason == "" && l.child.Gone() {
		d.Cause, d.Outside = process.Reason(l.child.State())
	}
	if l.page != nil {
		d.Calls, d.Loaded, d.Messages = fmi.Calls(l.page), fmi.Loaded(l.page), fmi.LastMessages(l.page)
	}
	return d
}

// Completed is the error of a run that could not write its files, for example because an FMU
// closed them; the supervisor wrote them after the run.
type Completed struct {
	Outcome simulate.Outcome
	Err     error // why the supervisor could not write them either; nil = the files are complete
}

// Error describes the state of the files.
func (c *Completed) Error() string {
	if c.Err != nil { // the run has failed with an error that the engine reported
		return fmt.Sprintf("neither the engine nor its supervisor could write all files: %v", c.Err)
	}
	text := "the engine could not write its files to the end; they were completed after it"
	if m := c.Outcome.Manifest; m != nil && !m.Outcome.Regular() {
		text += "; the run: " + m.Reason
	}
	return text
}

// Unwrap returns why the files are not complete.
func (c *Completed) Unwrap() error { return c.Err }
