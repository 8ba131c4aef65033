package diag

import (
	"slices"
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	var l LastLines
	if l.Lines() != nil || l.Take() != nil {
		t.Error("there are lines")
	}
	long := strings.Repeat("x", MaxLine+1)
	for _, line := range []string{"a", "b", "c", "d", "e", long} {
		l.Add(line)
	}
	want := []string{"c", "d", "e", Clip(long, MaxLine)}
	got := l.Lines()
	l.Add("f")
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	if got := l.Take(); len(got) != KeptLines || got[0] != "d" || got[3] != "f" || l.Lines() != nil {
		t.Errorf("taken %q, left %q", got, l.Lines())
	}
}
