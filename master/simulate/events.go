package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/master"
)

// Event is a report of a run in progress. It is plain data.
type Event struct {
	Kind     EventKind
	Level    slog.Level      // of a Message
	Text     string          // of all but Progress
	Facts    string          // of a Message: " (slave=wheel t=0.1)", or ""
	Progress master.Progress // of Progress
}

// EventKind distinguishes events.
type EventKind int

// The kinds of events.
const (
	Message  EventKind = iota // for the log: a warning, an error
	Note                      // for the user, such as a result of the analysis
	Doing                     // the current activity; "" = it has ended
	Progress                  // progress of the run
)

// String returns the message as a line.
func (e Event) String() string {
	switch {
	case e.Kind != Message:
	case e.Level >= slog.LevelError:
		return "error: " + e.Text + e.Facts
	case e.Level >= slog.LevelWarn:
		return "warning: " + e.Text + e.Facts
	}
	return e.Text + e.Facts
}

// events passes events on, one at a time.
type events struct {
	level slog.Level
	mu    sync.Mutex
	to    func(Event)
	trace string // path of the file for the stack of a panic; "" = a temporary one
}

func newEvents(to func(Event), level slog.Level) *events {
	if to == nil {
		to = func(Event) {}
	}
	return &events{level: level, to: to}
}

func (e *events) send(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.to(event)
}

func (e *events) note(text string)           { e.send(Event{Kind: Note, Text: text}) }
func (e *events) doing(text string)          { e.send(Event{Kind: Doing, Text: text}) }
func (e *events) progress(p master.Progress) { e.send(Event{Kind: Progress, Progress: p}) }

func (e *events) debug() bool { return e.level <= slog.LevelDebug }

func (e *events) logger() *slog.Logger { return slog.New(&handler{events: e}) }

// TracePath returns the path of the file for the stack of a panic in the run with a manifest at a path.
func TracePath(manifest string) string {
	if manifest == "" {
		return ""
	}
	return strings.TrimSuffix(manifest, ".json") + ".panic.txt"
}

// KeepTrace writes the stack of a panic to a file, "" for a temporary one, and returns its path.
func KeepTrace(path, stack string) (string, error) {
	text := []byte("macrostep " + Version() + ", " + runtime.Version() + ", " + Platform() + "\n\n" + stack)
	if path != "" {
		return path, os.WriteFile(path, text, 0o666)
	}
	f, err := os.CreateTemp("", "macrostep-*.panic.txt")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Close())
}

// handler turns log records into events.
type handler struct {
	events *events
	facts  string // " key=value …" of the attributes of WithAttrs
	group  string // "name." of the current groups
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.events.level }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	facts := h.facts
	r.Attrs(func(a slog.Attr) bool {
		facts += h.fact(a)
		return true
	})
	if facts != "" {
		facts = " (" + facts[1:] + ")"
	}
	h.events.send(Event{Kind: Message, Level: r.Level, Text: r.Message, Facts: facts})
	return nil
}

// fact returns " key=value", or nothing for an empty attribute.
func (h *handler) fact(a slog.Attr) string {
	if a.Equal(slog.Attr{}) {
		return ""
	}
	if a.Key == "stack" { // of a panic of ours, which is long
		path, err := KeepTrace(h.events.trace, a.Value.String())
		if err != nil {
			path = err.Error()
		}
		return " trace=" + path
	}
	return fmt.Sprintf(" %s%s=%v", h.group, a.Key, a.Value.Resolve())
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	for _, a := range attrs {
		n.facts += h.fact(a)
	}
	return &n
}

func (h *handler) WithGroup(name string) slog.Handler {
	n := *h
	n.group += name + "."
	return &n
}
