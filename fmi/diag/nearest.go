package diag

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Words are words that others use for names: the name by the word in lower case, without separators.
type Words map[string]string

// DidYouMean returns "; did you mean …?" with up to three names, for the end of a message about an unknown name s. It
// is the name that s means by words. Without one, the names differ from s only in case and separators, begin with s,
// or end in "."+s; the shortest come first. If there are none it is the most similar name. It returns "" if no name
// is similar.
func DidYouMean(s string, names []string, words ...Words) string {
	for _, w := range words {
		if name := w[plain(s)]; slices.Contains(names, name) {
			return fmt.Sprintf("; did you mean %q?", name)
		}
	}
	var close []string
	best, nearest := len(s)/3+1, ""
	for _, n := range names {
		if begin := plain(s); begin != "" && strings.HasPrefix(plain(n), begin) || s != "" && strings.HasSuffix(n, "."+s) {
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

// DidYouMeanOr returns DidYouMean; if that is "", otherwise followed by all names: "; choose one of a, b". A message
// ends with either: what follows a question is not read.
func DidYouMeanOr(s string, names []string, otherwise string, words ...Words) string {
	return cmp.Or(DidYouMean(s, names, words...), otherwise+strings.Join(names, ", "))
}

// plain returns a name in lower case without separators.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

func quoted(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("%q", n))
	}
	return strings.Join(out, ", ")
}

// distance returns the Levenshtein distance of a and b in bytes.
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

// ListItems returns the items of an enumeration in order of their values: "red (1), green (2)".
func ListItems(items map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(items), func(a, b string) int {
		return cmp.Or(cmp.Compare(items[a], items[b]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, items[name])
	}
	return strings.Join(names, ", ")
}

// Some returns up to four names and the number of further ones.
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

// DecimalComma returns the end of a message on a text that is not a number: how to write it if its only fault is a
// decimal comma, else "".
func DecimalComma(text string) string {
	point := strings.Replace(strings.TrimSpace(text), ",", ".", 1)
	if _, err := strconv.ParseFloat(point, 64); err != nil || !strings.Contains(text, ",") {
		return ""
	}
	return "; numbers have a decimal point instead of a comma: " + point
}
