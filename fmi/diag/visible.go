package diag

import (
	"fmt"
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

// Visible returns text with the escapes of [AppendVisible].
func Visible(text string) string {
	out, rest := AppendVisible(nil, []byte(text))
	for _, b := range rest {
		out = fmt.Appendf(out, `\x%02x`, b)
	}
	return string(out)
}
