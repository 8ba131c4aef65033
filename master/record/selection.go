package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Selection selects the variables to record. The zero value is the default: all outputs, all
// connected or driven inputs, and for a component with none of these all its variables except
// parameters and constants.
type Selection struct {
	patterns []string
	none     bool
	alone    string // argument of Of
}

// ParseSelection reads patterns for names "component.variable". In a pattern, * matches any
// characters, also dots, ? matches one character, and all others match themselves, also
// brackets. The single pattern "none" selects nothing; no patterns give the default.
func ParseSelection(patterns []string) (Selection, error) {
	if slices.Contains(patterns, "") {
		return Selection{}, errors.New("an empty pattern selects nothing; " +
			`give a name like component.variable, a pattern like "component.*", or none`)
	}
	if slices.Contains(patterns, "none") {
		if len(patterns) > 1 {
			return Selection{}, errors.New("none must be the only pattern; leave out either it or the others")
		}
		return Selection{none: true}, nil
	}
	return Selection{patterns: slices.Clone(patterns)}, nil
}

// Of returns the selection for a single FMU whose component has this name: its patterns also
// match names of variables without the component. "" changes nothing.
func (s Selection) Of(component string) Selection {
	s.alone = component
	return s
}

// IsDefault reports whether no patterns were given.
func (s Selection) IsDefault() bool { return !s.none && len(s.patterns) == 0 }

// IsNone reports whether nothing is to be recorded.
func (s Selection) IsNone() bool { return s.none }

// Match reports whether a pattern matches the name "component.variable". It returns false
// for the default selection, which has no patterns.
func (s Selection) Match(name string) bool {
	return slices.ContainsFunc(s.patterns, func(p string) bool { return s.matches(p, name) })
}

func (s Selection) matches(pattern, name string) bool {
	if match(pattern, name) {
		return true
	}
	bare, ok := strings.CutPrefix(name, s.alone+".")
	return ok && s.alone != "" && match(pattern, bare)
}

// Check returns an error that lists the patterns that match none of these variables
// "component.variable", before a run. It does not judge patterns that may match quantities
// of an algorithm (bond.… and raw.…), which only a run knows.
func (s Selection) Check(variables []string) error {
	s.patterns = slices.DeleteFunc(slices.Clone(s.patterns), func(p string) bool {
		return p[0] == '*' || p[0] == '?' || strings.HasPrefix(p, "bond.") || strings.HasPrefix(p, "raw.")
	})
	return s.check(variables, nil)
}

// check returns an error that lists the patterns without a match, and the names without * and
// ? that match several variables. further returns more names to suggest; nil = there are none.
func (s Selection) check(names []string, further func() []string) error {
	var errs []error
	for _, p := range s.patterns {
		var matched []string
		for _, n := range names {
			if s.matches(p, n) {
				matched = append(matched, n)
			}
		}
		switch {
		case len(matched) == 0:
			all := names
			if further != nil {
				all = slices.Concat(names, further())
			}
			errs = append(errs, noMatch(p, all))
		case len(matched) > 1 && !strings.ContainsAny(p, "*?"):
			if i := slices.Index(matched, p); i >= 0 { // in a single FMU, it is also the short name of another variable
				matched[i] = strings.TrimPrefix(p, s.alone+".")
			}
			errs = append(errs, fmt.Errorf("%q matches %d variables: %s; write the full name of the one you mean",
				p, len(matched), strings.Join(matched, " and ")))
		}
	}
	return errors.Join(errs...)
}

// noMatch returns the error for a pattern that matches none of the names, with similar names and patterns.
func noMatch(pattern string, names []string) error {
	_, variables, _ := strings.Cut(pattern, ".")
	if !strings.ContainsAny(variables, "*?") {
		variables = "*"
	}
	similar := slices.Clone(names)
	for _, n := range names {
		component, _, dotted := strings.Cut(n, ".")
		if p := component + "." + variables; dotted && !slices.Contains(similar, p) {
			similar = append(similar, p)
		}
	}
	return fmt.Errorf("no variable matches %q%s", pattern,
		cmp.Or(inQuotes(pattern, names), diag.DidYouMean(pattern, similar), "; a pattern is component.variable, with * and ?"))
}

// inQuotes lists, as the end of a message, the first names that a pattern would match if they
// had no quotes.
func inQuotes(pattern string, names []string) string {
	const most = 4
	var quoted []string
	for _, n := range names {
		if plain := strings.ReplaceAll(n, "'", ""); plain != n && match(pattern, plain) && len(quoted) < most {
			quoted = append(quoted, n)
		}
	}
	if quoted == nil {
		return ""
	}
	return fmt.Sprintf("; components of one name are told apart by quotes: %s (in a shell within double quotes)",
		strings.Join(quoted, ", "))
}

// match matches a glob pattern with * and ? in time len(pattern)·len(name).
func match(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, mark := -1, 0 // index of the last *, and the end of its match in name
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0: // let the * take one more
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
