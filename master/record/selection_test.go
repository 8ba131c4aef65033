package record

import (
	"strings"
	"testing"
)

// A pattern that only quotes keep from matching is told the names in quotes.
func TestUnmatchedInQuotes(t *testing.T) {
	names := []string{"'a.b'.p", "'a'.'b'.p", "c.p"}
	for pattern, want := range map[string]string{
		"a.b.p": `no variable matches "a.b.p"; components of one name are told apart by quotes: 'a.b'.p, 'a'.'b'.p (in a shell within double quotes)`,
		"a.b.q": `no variable matches "a.b.q"`,
	} {
		s, err := ParseSelection([]string{pattern, "c.*", "'a.b'.*"})
		must(t, err)
		if err := s.check(names); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}
