package diag

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DidYouMean returns "; did you mean …?" for the names that s may stand for, to be
// put behind a message that there is no s: those that differ in upper and lower
// case only, begin with s or end in ".s", three at the most and the shortest
// first; else the one with the fewest letters to change. It is empty if no name
// is near.
func DidYouMean(s string, names []string) string {
	var close []string
	best, nearest := len(s)/3+1, ""
	for _, n := range names {
		if strings.EqualFold(n, s) || s != "" && (strings.HasPrefix(n, s) || strings.HasSuffix(n, "."+s)) {
			close = append(close, n)
			continue
		}
		if len(n)-len(s) >= best || len(s)-len(n) >= best {
			continue
		}
		if d := distance(s, n); d < best {
			best, nearest = d, n
		}
	}
	switch {
	case len(close) > 0:
		const most = 3
		slices.SortStableFunc(close, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		return fmt.Sprintf("; did you mean %s?", quoted(close[:min(most, len(close))]))
	case nearest != "":
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}

func quoted(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("%q", n))
	}
	return strings.Join(out, ", ")
}

// distance is the number of bytes to insert, delete or replace that lead from a
// to b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// ListItems writes the items of an enumeration by their numbers: "red (1), green (2)".
func ListItems(items map[string]int32) string {
	names := slices.SortedFunc(maps.Keys(items), func(a, b string) int {
		return cmp.Or(cmp.Compare(items[a], items[b]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, items[name])
	}
	return strings.Join(names, ", ")
}

// Some lists the first of many names.
func Some(names []string) string {
	const most = 4
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
