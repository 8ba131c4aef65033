package app

import (
	"cmp"
	"io"
	"math"
	"os"
	"strconv"
	"sync"

	"golang.org/x/term"

	"github.com/macrostep/macrostep/fmi/diag"
)

// screen writes text for people: all of standard error, and standard output except data for programs. It
// escapes control characters, characters that reverse the direction of text, and invalid UTF-8, as \x1b or
// \u202e, because names and messages come from documents, archives and FMUs. Line ends and tabs stay.
type screen struct {
	to     io.Writer
	beside bool // results may go to the same terminal: no line is overwritten

	mu   sync.Mutex
	rest []byte // incomplete character at the end of the text so far
	made []byte
	err  error // first failure of a write
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(text), s.write("", text)
}

// rewrite overwrites the current line of the terminal with one write.
func (s *screen) rewrite(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write("\r", []byte(line)) // kept
}

// write writes control characters, and then text with escapes.
func (s *screen) write(control string, text []byte) error {
	s.made = append(s.made[:0], control...)
	s.made, s.rest = diag.AppendVisible(s.made, append(s.rest, text...))
	_, err := s.to.Write(s.made)
	s.err = cmp.Or(s.err, err)
	return err
}

// flush writes an incomplete character, escaped. It returns the first error of all writes.
func (s *screen) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) > 0 {
		_, err := io.WriteString(s.to, diag.Visible(string(s.rest)))
		s.err, s.rest = cmp.Or(s.err, err), nil
	}
	return s.err
}

// width returns the number of columns of the terminal: $COLUMNS, else what the terminal reports; very many for a file.
// Narrow terminals have leastWidth.
func (s *screen) width() int {
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if f, ok := s.to.(*os.File); ok && err != nil {
		width, _, err = term.GetSize(int(f.Fd()))
	}
	if err != nil || width <= 0 {
		return math.MaxInt
	}
	return max(width, leastWidth)
}

const leastWidth = 40

// data returns standard output for programs: without escapes, unless it is a terminal.
func (p *program) data() io.Writer {
	if isTerminal(p.out) {
		return p.stdout
	}
	return verbatim{p.stdout}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// verbatim writes to the file of a screen without escapes.
type verbatim struct{ s *screen }

func (v verbatim) Write(text []byte) (int, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	_, err := v.s.to.Write(text)
	v.s.err = cmp.Or(v.s.err, err)
	return len(text), nil
}
