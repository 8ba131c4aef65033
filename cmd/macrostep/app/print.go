package app

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/macrostep/macrostep/master/plainjson"
)

func writeJSON(w io.Writer, doc any) error {
	data, err := plainjson.Marshal(doc)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// table prints rows with aligned columns, without blanks at the ends of lines.
func table(w io.Writer, rows [][]string) {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	tw.Flush() // to memory: it cannot fail
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// titled prints an indented table under a title, or nothing if it has no rows.
func titled(w io.Writer, title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for _, row := range rows {
		row[0] = "  " + row[0]
	}
	table(w, rows)
}

// rowsOf returns a row for each element of a list.
func rowsOf[T any](list []T, row func(T) []string) (rows [][]string) {
	for _, v := range list {
		rows = append(rows, row(v))
	}
	return rows
}

// rowsBy returns a row for each element of a map, sorted by name.
func rowsBy[T any](m map[string]T, row func(name string, v T) []string) [][]string {
	return rowsOf(slices.Sorted(maps.Keys(m)), func(name string) []string { return row(name, m[name]) })
}

// pairs returns rows of name and value, without empty values.
func pairs(namesAndValues ...string) (rows [][]string) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		if value := oneLine(pair[1]); value != "" {
			rows = append(rows, []string{pair[0], value})
		}
	}
	return rows
}

// oneLine replaces line breaks and repeated blanks by single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// seconds returns a time without the digits that rounding leaves.
func seconds(t float64) string { return strconv.FormatFloat(t, 'g', 12, 64) }

// size returns a number of bytes with two or three digits.
func size(bytes float64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.2g GB", bytes/1e9)
	case bytes >= 99.5e6:
		return fmt.Sprintf("%.0f MB", bytes/1e6)
	}
	return fmt.Sprintf("%.2g MB", bytes/1e6)
}

// number returns four digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
