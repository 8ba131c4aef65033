package app

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Of several elements in a line, the one of the path is marked.
func TestExcerptOfSeveral(t *testing.T) {
	text := `<?xml version="1.0"?>
<a:S xmlns:a="urn:a" name="s">
<a:C><a:C name="x" kind="in"/><a:C name="y" kind="in"/><a:C kind="in"/><a:C  kind="out"/></a:C><a:D><a:C name="x"/></a:D>
</a:S>
`
	path := write(t, filepath.Join(t.TempDir(), "s.ssd"), text)
	var e excerpts
	line := strings.Split(text, "\n")[2]
	const y = `<a:C name="y" kind="in"/>`
	for _, tt := range []struct{ tag, path, message, want string }{
		{y, "/S/C/C[@name='y']", "wrong", y},
		{`<a:C name="x" kind="in"/>`, "/S/C/C[@name='x']", "wrong", `<a:C name="x" kind="in"/>`},
		{`<a:C  kind="out"/>`, "/S/C/C[2]", "wrong", `<a:C  kind="out"/>`},
		{`<a:C  kind="out"/>`, "/S/C/C[2]/@kind", "wrong", `kind="out"`},
		{y, "/S/C/C[@name='y']", `the kind "in" is none`, "in"},
		{`<a:C name="x"/>`, "/S/D/C[@name='x']", "wrong", `<a:C name="x"/>`},
		{"", "/S/E", "wrong", line}, // the column is not known
	} {
		f := diag.Finding{File: path, Path: tt.path, Line: 3, Message: tt.message}
		if tt.tag != "" {
			f.Column = strings.Index(line, tt.tag) + 1
		}
		m, ok := e.find(f)
		if got := m.text[m.from:m.to]; !ok || got != tt.want {
			t.Errorf("%s: marked %q, want %q", tt.path, got, tt.want)
		}
		if tt.want == "in" && m.from != strings.Index(line, y)+len(`<a:C name="y" kind="`) {
			t.Errorf("%s: marked at %d", tt.path, m.from)
		}
	}
}

// Memory grows linearly with the findings in a document of one line: each finding examines only the
// part of the line that is shown.
func TestExcerptsOfOneLine(t *testing.T) {
	var allocated [2]float64
	for i, n := range []int{200, 2000} {
		var b strings.Builder
		b.WriteString("<S>")
		for k := range n {
			fmt.Fprintf(&b, `<C name="é%d" kind="in" unit="m"/>`, k)
		}
		text := b.String() + "</S>"
		path := write(t, filepath.Join(t.TempDir(), "s.ssd"), text)
		var columns []int
		for k := range n {
			columns = append(columns, strings.Index(text, fmt.Sprintf(`<C name="é%d"`, k))+1)
		}
		var e excerpts
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for k := range n {
			m, ok := e.find(diag.Finding{File: path, Path: fmt.Sprintf("/S/C[@name='é%d']", k), Line: 1, Column: columns[k], Message: "wrong"})
			if text, at, width := m.show(); !ok || !strings.HasPrefix(string([]rune(text)[at:]), fmt.Sprintf(`<C name="é%d"`, k)) || width < 20 {
				t.Fatalf("%d: %q, marked at %d", k, text, at)
			}
		}
		runtime.ReadMemStats(&after)
		allocated[i] = float64(after.TotalAlloc - before.TotalAlloc)
	}
	if slope := math.Log10(allocated[1] / allocated[0]); slope > 1.15 {
		t.Errorf("memory grows with the power %.3f of the size", slope)
	}
}
