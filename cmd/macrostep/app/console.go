package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
)

// console prints messages of a run to standard error, on a terminal above a line of progress. It may be
// used from several goroutines.
type console struct {
	mu       sync.Mutex
	w        *screen
	terminal func() (width int, ok bool)
	line     string           // of progress, on the screen
	held     []simulate.Event // errors of FMUs that the error of the run may quote
	shown    map[string]bool  // warnings printed so far
}

func newConsole(w io.Writer) *console {
	s, ok := w.(*screen)
	if !ok {
		s = &screen{to: w}
	}
	c := &console{w: s, shown: map[string]bool{}, terminal: func() (int, bool) { return 0, false }}
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

// print prints a line above the progress.
func (c *console) print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := c.line
	c.erase()
	fmt.Fprintln(c.w, text)
	c.draw(line)
}

// settle prints the errors of FMUs, except those that the error of the run, if any, quotes.
func (c *console) settle(err error) {
	c.mu.Lock()
	held := c.held
	c.held = nil
	c.mu.Unlock()
	final := ""
	if err != nil {
		final = oneLine(err.Error())
	}
	const atLeast = 300 // bytes of a message, which the error quotes
	for _, e := range held {
		if text := oneLine(e.Text); text == "" || !strings.Contains(final, strings.TrimSuffix(diag.Clip(text, atLeast), "…")) {
			c.print(e.String())
		}
	}
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
	// Erasing first would flicker.
	rest := max(0, utf8.RuneCountInString(c.line)-utf8.RuneCountInString(text))
	c.w.rewrite(text + strings.Repeat(" ", rest))
	c.line = text
}

// clear erases the line of progress.
func (c *console) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
}

// erase overwrites the line of progress with blanks, which works on every terminal.
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

// log prints a message of a run. Errors wait for settle.
func (c *console) log(e simulate.Event) {
	if e.Level >= slog.LevelError {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = append(c.held, e)
		return
	}
	if e.Level >= slog.LevelWarn && e.Level < slog.LevelError {
		c.mu.Lock()
		c.shown[e.Text] = true
		c.mu.Unlock()
	}
	c.print(e.String())
}

// printed reports whether a message was printed.
func (c *console) printed(message string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown[message]
}
