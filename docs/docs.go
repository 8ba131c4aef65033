// Package docs holds the pages of this folder for macrostep help.
package docs

import (
	"embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.md
var pages embed.FS

// Topics lists the names of the pages.
func Topics() (names []string) {
	files, _ := pages.ReadDir(".") // it is part of the program
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".md"))
	}
	return names
}

var link = regexp.MustCompile(`\[([^\]\n]+)\]\([^)\n]*\)`)

// Page returns the text of a page, without links; "" = there is none.
func Page(name string) string {
	if !slices.Contains(Topics(), name) {
		return ""
	}
	text, _ := pages.ReadFile(name + ".md")
	return link.ReplaceAllString(string(text), "$1")
}

// Title returns the first heading of a page.
func Title(name string) string {
	line, _, _ := strings.Cut(Page(name), "\n")
	return strings.TrimPrefix(line, "# ")
}
