package main

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Of several elements in a line that of the path is marked.
func TestExcerptOfSeveral(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "s.ssd"), `<?xml version="1.0"?>
<a:S xmlns:a="urn:a" name="s">
<a:C><a:C name="x" kind="in"/><a:C name="y" kind="in"/><a:C kind="in"/><a:C  kind="out"/></a:C><a:D><a:C name="x"/></a:D>
</a:S>
`)
	var e excerpts
	for _, tt := range []struct{ path, message, want string }{
		{"/S/C/C[@name='y']", "wrong", `<a:C name="y" kind="in"/>`},
		{"/S/C/C[@name='x']", "wrong", `<a:C name="x" kind="in"/>`},
		{"/S/C/C[2]", "wrong", `<a:C  kind="out"/>`},
		{"/S/C/C[2]/@kind", "wrong", `kind="out"`},
		{"/S/C/C[@name='y']", `the kind "in" is none`, "in"},
		{"/S/D/C[@name='x']", "wrong", `<a:C name="x"/>`},
		{"/S/E", "wrong", `<a:C><a:C name="x" kind="in"/><a:C name="y" kind="in"/><a:C kind="in"/><a:C  kind="out"/></a:C><a:D><a:C name="x"/></a:D>`},
	} {
		m, ok := e.find(diag.Finding{File: path, Path: tt.path, Line: 3, Message: tt.message})
		if got := m.text[m.from:m.to]; !ok || got != tt.want {
			t.Errorf("%s: marked %q, want %q", tt.path, got, tt.want)
		}
		if tt.want == "in" && m.from != len(`<a:C><a:C name="x" kind="in"/><a:C name="y" kind="`) {
			t.Errorf("%s: marked at %d", tt.path, m.from)
		}
	}
}

// Ten times the findings in a document of one line take ten times the memory: of the
// line only what is shown is looked at for each.
func TestExcerptsOfOneLine(t *testing.T) {
	var allocated [2]float64
	for i, n := range []int{200, 2000} {
		var b strings.Builder
		b.WriteString("<S>")
		for k := range n {
			fmt.Fprintf(&b, `<C name="é%d" kind="in" unit="m"/>`, k)
		}
		path := write(t, filepath.Join(t.TempDir(), "s.ssd"), b.String()+"</S>")
		var e excerpts
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for k := range n {
			m, ok := e.find(diag.Finding{File: path, Path: fmt.Sprintf("/S/C[@name='é%d']", k), Line: 1, Message: "wrong"})
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
