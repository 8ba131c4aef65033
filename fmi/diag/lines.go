package diag

import (
	"slices"
	"sync"
)

// MaxLine is the most bytes of a line that LastLines keeps, and KeptLines the number of lines.
const (
	MaxLine   = 400
	KeptLines = 4
)

// LastLines keeps the last lines of a program, shortened. Any goroutine may use it. The zero value has none.
type LastLines struct {
	mu    sync.Mutex
	lines []string
}

// Add adds a line.
func (l *LastLines) Add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == KeptLines {
		l.lines = slices.Delete(l.lines, 0, 1)
	}
	l.lines = append(l.lines, Clip(line, MaxLine))
}

// Lines returns the lines, the oldest first.
func (l *LastLines) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Take returns the lines and removes them.
func (l *LastLines) Take() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, l.lines = l.lines, nil
	return lines
}
