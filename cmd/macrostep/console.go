package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// console is the standard error of a run: messages, and on a terminal one line
// of progress that stays below them. It may be used from several goroutines.
type console struct {
	mu       sync.Mutex
	w        *screen
	level    slog.Level
	terminal func() (width int, ok bool)
	line     string          // of progress, now on the screen
	shown    map[string]bool // warnings printed so far
	logged   map[string]int  // how often each line was, of a run that may begin anew; nil = it may not
	again    map[string]int  // of these, lines that the run which has begun anew may say again
}

// mostLogged bounds logged.
const mostLogged = 10_000

func newConsole(w io.Writer, level slog.Level) *console {
	s, ok := w.(*screen)
	if !ok {
		s = &screen{to: w}
	}
	c := &console{w: s, level: level, shown: map[string]bool{}, terminal: func() (int, bool) { return 0, false }}
	if f, ok := s.to.(*os.File); ok && !s.beside && term.IsTerminal(int(f.Fd())) {
		c.terminal = func() (int, bool) {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 {
				width = 80
			}
			return width, true
		}
	}
	return c
}

func (c *console) logger() *slog.Logger { return slog.New(&handler{con: c}) }

// aside gives a logger for trials beside the run: what is logged there is a matter of
// debugging, since the run itself does not fail by it.
func (c *console) aside() *slog.Logger {
	if !c.debug() {
		return slog.New(slog.DiscardHandler)
	}
	return c.logger().With("trial", "analysis")
}

func (c *console) debug() bool { return c.level <= slog.LevelDebug }

// print prints a line above the progress.
func (c *console) print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := c.line
	c.erase()
	fmt.Fprintln(c.w, text)
	c.draw(line)
}

// status replaces the line of progress, or prints it if there is no terminal.
func (c *console) status(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width, ok := c.terminal()
	if !ok {
		fmt.Fprintln(c.w, text)
		return
	}
	if n := utf8.RuneCountInString(text); n >= width {
		text = string([]rune(text)[:width-1]) // a full line would scroll
	}
	// One write, and no blank line in between: erasing first would flicker.
	rest := max(0, utf8.RuneCountInString(c.line)-utf8.RuneCountInString(text))
	c.w.rewrite(text + strings.Repeat(" ", rest))
	c.line = text
}

// clear takes the line of progress away.
func (c *console) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
}

// erase uses blanks, which every terminal understands.
func (c *console) erase() {
	if c.line != "" {
		c.w.rewrite(strings.Repeat(" ", utf8.RuneCountInString(c.line)))
		c.w.rewrite("")
		c.line = ""
	}
}

func (c *console) draw(line string) {
	if line != "" {
		fmt.Fprint(c.w, line)
		c.line = line
	}
}

// mayBeginAnew makes the console that of a run that may begin anew.
func (c *console) mayBeginAnew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logged = map[string]int{}
}

// anew makes the console that of a run that begins anew: what it has said it says only
// where it is said more often.
func (c *console) anew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again, c.logged, c.shown = c.logged, nil, map[string]bool{}
}

// said reports whether a line was said before the run began anew, and takes it down.
func (c *console) said(line string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.again[line] > 0 {
		c.again[line]--
		return true
	}
	if c.logged != nil && len(c.logged) < mostLogged {
		c.logged[line]++
	}
	return false
}

// printed reports whether a message was printed.
func (c *console) printed(message string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown[message]
}

// handler writes log records for people: "warning: text (slave=wheel t=0.1)".
type handler struct {
	con   *console
	facts string // " key=value …" of the attributes given so far
	group string // "name." of the groups entered
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.con.level }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString("error: ")
	case r.Level >= slog.LevelWarn:
		b.WriteString("warning: ")
		h.con.mu.Lock()
		h.con.shown[r.Message] = true
		h.con.mu.Unlock()
	}
	b.WriteString(r.Message)
	facts := h.facts
	r.Attrs(func(a slog.Attr) bool {
		facts += h.fact(a)
		return true
	})
	if facts != "" {
		b.WriteString(" (" + facts[1:] + ")")
	}
	if line := b.String(); !h.con.said(line) {
		h.con.print(line)
	}
	return nil
}

// fact gives " key=value", or nothing for an empty attribute.
func (h *handler) fact(a slog.Attr) string {
	if a.Equal(slog.Attr{}) {
		return ""
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
