package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSelection(t *testing.T) {
	if s := selection(t); !s.IsDefault() || s.IsNone() || s.Match("a.b") {
		t.Error("no patterns are the default")
	}
	if s := selection(t, "none"); s.IsDefault() || !s.IsNone() || s.Match("none") {
		t.Error("none")
	}
	for _, bad := range [][]string{{""}, {"none", "a.*"}, {"a.*", "none"}} {
		if _, err := ParseSelection(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "a.b", true}, {"*", "", true}, {"a.b", "a.b", true}, {"a.b", "a.bc", false}, {"a.?", "a.b", true},
		{"a.?", "a.", false}, {"x[1]", "x[1]", true}, {"x[1]", "x1", false}, {"x[?]", "x[7]", true}, {"*.F", "c.d.F", true},
		{"*a*b*", "xxaxxbxx", true}, {"*a*b*", "xxbxxaxx", false}, {"a**b", "ab", true}, {"?", "ü", true},
		{"m\\n", "m\\n", true}, {"{a}", "{a}", true}, {"", "a", false}, {"*.v_?", "chassis.v_c", true},
	} {
		if got := match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q on %q: %t", tt.pattern, tt.name, got)
		}
	}
	// Time must not explode with the number of stars.
	if match(strings.Repeat("*a", 50)+"b", strings.Repeat("a", 5000)) {
		t.Error("matched")
	}
}

// Patterns without a match are errors before the file is touched; components that differ
// in quotes only are named.
func TestSelectionUnmatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.csv")
	c := NewTable(path, Options{Select: selection(t, "all.*", "sys.iner.z", "nowhere", "all.hidden")})
	err := c.Begin(testSystem(t), nil)
	for _, want := range []string{`no variable matches "sys.iner.z"; did you mean "sys.inner.z"?`, `no variable matches "nowhere"`, `no variable matches "all.hidden"`} {
		refused(t, "patterns", err, want)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file was touched")
	}
	names := []string{"'a.b'.p", "'a'.'b'.p", "c.p"}
	for pattern, want := range map[string]string{
		"a.b.p": `no variable matches "a.b.p"; components of one name are told apart by quotes: 'a.b'.p, 'a'.'b'.p (in a shell within double quotes)`,
		"a.b.q": `no variable matches "a.b.q"`,
		"cc.*":  `no variable matches "cc.*"; did you mean "c.*"?`,
		"c":     `no variable matches "c"; did you mean "c.p", "c.*"?`,
	} {
		refused(t, pattern, selection(t, pattern, "c.*", "'a.b'.*").check(names, nil), want)
	}
	if err := selection(t, "c.p", "bond.b.*", "raw.c.p", "*.residual").Check(names); err != nil {
		t.Errorf("quantities of an algorithm are judged: %v", err)
	}
	refused(t, "x.*", selection(t, "x.*", "c.p").Check(names), `no variable matches "x.*"`)
}
