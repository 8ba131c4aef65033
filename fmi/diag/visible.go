package diag

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AppendVisible appends text with escapes for what a terminal would not show as it is: control characters but for line ends and
// tabs, marks that change the direction of text, and bytes that are no UTF-8. rest is an incomplete character at the end.
func AppendVisible(to, text []byte) (out, rest []byte) {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1 && !utf8.FullRune(text):
			return to, text
		case r == utf8.RuneError && n == 1, r < utf8.RuneSelf && r != '\n' && r != '\t' && unicode.IsControl(r):
			to = fmt.Appendf(to, `\x%02x`, text[0])
		case r >= utf8.RuneSelf && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)):
			to = fmt.Appendf(to, `\u%04x`, r)
		default:
			to = append(to, text[:n]...)
		}
		text = text[n:]
	}
	return to, nil
}

// OneLine returns the begin of a text of another program, of at most so many bytes, as Line does.
func OneLine(text string, most int) string {
	return Line(Clip(text, most))
}

// folders are the folders of absolute paths.
var folders = regexp.MustCompile(`(?:[A-Za-z]:)?(?:[/\\][^/\\\s:;,"'()]+)+[/\\]`)

// WithoutPaths returns the begin of a text as one line in which absolute paths are names of files: what another machine may know.
// Folders are known ones, whose names may have spaces.
func WithoutPaths(text string, known ...string) string {
	home, _ := os.UserHomeDir() // "" if there is none
	here, _ := os.Getwd()
	for _, folder := range append([]string{os.TempDir(), here, home}, known...) {
		if len(folder) > 1 {
			text = strings.ReplaceAll(text, folder+string(filepath.Separator), "/./") // a path without spaces
		}
	}
	return OneLine(folders.ReplaceAllString(text, ""), 2000)
}

// Visible returns text with the escapes of [AppendVisible].
func Visible(text string) string {
	out, rest := AppendVisible(nil, []byte(text))
	for _, b := range rest {
		out = fmt.Appendf(out, `\x%02x`, b)
	}
	return string(out)
}

// Line returns text with the escapes of [AppendVisible], and with those of line ends and tabs: it is one line.
func Line(text string) string {
	return strings.NewReplacer("\n", `\x0a`, "\t", `\x09`).Replace(Visible(text))
}
