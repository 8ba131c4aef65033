package diag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	hard  = &Rule{ID: "A1", Level: Error, Remedy: "mend it"}
	soft  = &Rule{ID: "A2", Level: Warning, Strict: true, Remedy: "think"}
	fixed = &Rule{ID: "A3", Level: Warning}
	info  = &Rule{ID: "A4", Level: Info, Strict: true}
	inert = &Rule{ID: "A5", Level: Warning, Strict: true, Inert: true}
)

// Strict rules, and only those, become errors in the strict reading, unless they are inert.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		strict bool
		want   []Level
		errors int
	}{
		{false, []Level{Error, Warning, Warning, Info, Info}, 1},
		{true, []Level{Error, Error, Warning, Error, Info}, 3},
	} {
		l := List{Strict: c.strict}
		for _, r := range []*Rule{hard, soft, fixed, info, inert} {
			l.Add(r, "f.xml", "/a", 3, "%d of %s", 2, r.ID)
		}
		var got []Level
		for _, f := range l.Findings {
			got = append(got, f.Level)
		}
		if !slices.Equal(got, c.want) || len(l.At(Error)) != c.errors {
			t.Errorf("strict %v: %v, want %v", c.strict, got, c.want)
		}
		var list *ListError
		if err := l.Err(); !errors.As(err, &list) || len(list.Findings) != c.errors || strings.Count(err.Error(), "\n") != c.errors-1 {
			t.Errorf("strict %v: error %v", c.strict, err)
		}
		if f := l.Findings[0]; f.Message != "2 of A1" || f.Remedy != "mend it" || f.Path != "/a" || f.Line != 3 || f.File != "f.xml" {
			t.Errorf("%+v", f)
		}
	}
	l := List{}
	l.Add(soft, "", "", 0, "no error")
	if err := l.Err(); err != nil {
		t.Error(err)
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short", "ten bytes.": "ten bytes.", "cut at words": "cut at…", "unbreakable": "unbreakabl…", "a unbreakable": "a unbreaka…", "123456789ä": "123456789…",
	} {
		if got := Clip(text, 10); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestFindingString(t *testing.T) {
	for _, c := range []struct {
		f    Finding
		want string
	}{
		{Finding{ID: "A1", File: "f.xml", Path: "/a/b", Line: 7, Message: "it is wrong", Remedy: "mend it"}, "f.xml:7: /a/b: it is wrong [A1]; mend it"},
		{Finding{File: "f.xml", Message: "it is wrong"}, "f.xml: it is wrong"},
		{Finding{ID: "A1", Line: 7, Message: "it is wrong"}, "line 7: it is wrong [A1]"},
		{Finding{Path: "/a", Message: "it is wrong"}, "/a: it is wrong"},
	} {
		if got := c.f.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for l, want := range map[Level]string{Info: "info", Warning: "warning", Error: "error", 9: "level(9)"} {
		if l.String() != want {
			t.Errorf("%s, want %s", l, want)
		}
	}
}

func TestAppend(t *testing.T) {
	strict, l := &List{Strict: true}, &List{}
	strict.Add(soft, "b", "", 2, "x")
	l.Add(hard, "b", "", 1, "y")
	l.Append(strict)
	l.Append(nil)
	if len(l.Findings) != 2 || l.Findings[1].Level != Error {
		t.Errorf("%v: levels do not stay", l.Findings)
	}
}

// An error is searched for a rule also when it is wrapped or joined.
func TestHas(t *testing.T) {
	l := List{}
	l.Add(hard, "", "", 0, "x")
	wrapped := fmt.Errorf("opening: %w", errors.Join(errors.New("other"), l.Err()))
	if !Has(wrapped, "A1") || Has(wrapped, "A2") || Has(nil, "A1") || Has(errors.New("A1"), "A1") {
		t.Error("Has is wrong")
	}
	other := List{}
	other.Add(&Rule{ID: "B1", Level: Error}, "", "", 0, "x")
	if both := errors.Join(l.Err(), other.Err()); !Has(both, "A1") || !Has(both, "B1") {
		t.Error("of two lists in one error only one is searched")
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"count", "counter.total", "Mass", "engine.speed", "gear.speed", "x", "counts", "k_w"}
	for _, c := range []struct{ s, want string }{
		{"coumt", `; did you mean "count"?`},
		{"mass", `; did you mean "Mass"?`},
		{"kw", `; did you mean "k_w"?`},
		{"gearSpeed", `; did you mean "gear.speed"?`},
		{"speed", `; did you mean "gear.speed", "engine.speed"?`},
		{"cou", `; did you mean "count", "counts", "counter.total"?`},
		{"COUNTER", `; did you mean "counter.total"?`},
		{"motor speed", `; did you mean "engine.speed"?`},
		{"nothing like it", ""},
		{"engine_speed", `; did you mean "engine.speed"?`},
		{"_x", `; did you mean "x"?`},
		{"y", ""},
		{"", ""},
	} {
		if got := DidYouMean(c.s, names, Words{"motorspeed": "engine.speed", "nothing": "removed"}); got != c.want {
			t.Errorf("%q: %q, want %q", c.s, got, c.want)
		}
	}
	for s, want := range map[string]string{"coumt": `; did you mean "count"?`, "none": "; choose one of " + strings.Join(names, ", ")} {
		if got := DidYouMeanOr(s, names, "; choose one of "); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestDecimalComma(t *testing.T) {
	for text, want := range map[string]string{"2,5": "; numbers have a decimal point instead of a comma: 2.5", " -1,5e3 ": "; numbers have a decimal point instead of a comma: -1.5e3",
		"2.5": "", "1,2,3": "", "a,b": "", "": ""} {
		if got := DecimalComma(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
