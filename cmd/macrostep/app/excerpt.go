package app

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/macrostep/macrostep/fmi/diag"
)

// excerpts reads the lines of documents that findings are about, also from (nested) archives. Documents that
// cannot be read or are not UTF-8 have no excerpts.
type excerpts struct {
	documents map[string][]string
}

// mostExcerpt is the largest size in bytes of a document, or of an archive in an archive, that is read.
const mostExcerpt = 64 << 20

// lines returns the lines of the document of a finding.
func (e *excerpts) lines(file string) []string {
	if lines, known := e.documents[file]; known {
		return lines
	}
	if e.documents == nil {
		e.documents = map[string][]string{}
	}
	var lines []string
	if data := readShown(file); data != nil && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		lines = strings.Split(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), "\n")
	}
	e.documents[file] = lines
	return lines
}

// readShown reads a document by its name in findings: a path, which may continue inside archives after a
// slash or an exclamation mark.
func readShown(name string) []byte {
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() || info.Size() > mostExcerpt {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil
		}
		return data
	}
	for i, c := range name {
		if i == 0 || c != '!' && c != '/' && c != filepath.Separator {
			continue
		}
		info, err := os.Stat(name[:i])
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := os.Open(name[:i])
		if err != nil {
			return nil
		}
		defer f.Close()
		return readIn(f, info.Size(), filepath.ToSlash(name[i+1:]))
	}
	return nil
}

// readIn reads a name in an archive; nil if it is not there.
func readIn(r io.ReaderAt, size int64, name string) []byte {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil
	}
	entry := func(name string) []byte {
		f, err := z.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || info.IsDir() || info.Size() > mostExcerpt {
			return nil
		}
		data, err := io.ReadAll(io.LimitReader(f, mostExcerpt))
		if err != nil {
			return nil
		}
		return data
	}
	if data := entry(name); data != nil {
		return data
	}
	for i, c := range name {
		if c != '!' && c != '/' {
			continue
		}
		if data := entry(name[:i]); data != nil {
			return readIn(bytes.NewReader(data), int64(len(data)), name[i+1:])
		}
	}
	return nil
}

// mark is a line of a document and the marked part of it.
type mark struct {
	line     int // 1-based
	text     string
	from, to int // bytes of text
}

// mostTagLines and mostTag limit the lines of one start tag, and the bytes of each, that are examined: a
// document may be a single line with many findings.
const (
	mostTagLines = 50
	mostTag      = 8 << 10
)

var (
	lastElement = regexp.MustCompile(`/([\w.:-]+)(\[[^/]*\])*$`)
	quoted      = regexp.MustCompile(`"((?:[^"\\]|\\.)+)"`)
	missing     = regexp.MustCompile(`\bno [a-z]+ "((?:[^"\\]|\\.)+)"`)
)

// find returns the line of a finding and marks the attribute at the end of its path, else a name quoted in
// its message, else the start tag.
func (e *excerpts) find(f diag.Finding) (m mark, ok bool) {
	lines := e.lines(f.File)
	if f.Line < 1 || f.Line > len(lines) {
		return m, false
	}
	m = mark{line: f.Line, text: strings.TrimRight(lines[f.Line-1], "\r")}
	path, attribute, isAttribute := strings.Cut(f.Path, "/@")
	begin := f.Column - 1
	if begin < 0 || begin > len(m.text) {
		begin = tagStart(m.text, path)
	}
	if isAttribute {
		if at, ok := findAttribute(lines, f.Line, max(begin, 0), attribute); ok {
			return at, true
		}
	}
	if from, to := findQuoted(m.text, max(begin, 0), f.Message); to > 0 {
		m.from, m.to = from, to
		return m, true
	}
	if m.from = begin; begin < 0 {
		m.from = len(m.text) - len(strings.TrimLeft(m.text, " \t"))
	}
	m.to = len(strings.TrimRight(m.text, " \t"))
	if at := strings.IndexByte(m.text[m.from:], '>'); at >= 0 && begin >= 0 {
		m.to = m.from + at + 1
	}
	return m, m.to > m.from
}

// findAttribute marks an attribute of the start tag that begins in a line (1-based) at a byte.
func findAttribute(lines []string, line, begin int, attribute string) (m mark, ok bool) {
	expr := regexp.MustCompile(`(^|[\s:])(` + regexp.QuoteMeta(attribute) + `\s*=\s*("[^"]*"|'[^']*'))`)
	for n := line; n < line+mostTagLines && n <= len(lines); n++ {
		text, from := strings.TrimRight(lines[n-1], "\r"), 0
		if n == line {
			from = begin
		}
		tag := text[from:min(len(text), from+mostTag)]
		if x := expr.FindStringSubmatchIndex(tag); x != nil {
			return mark{n, text, from + x[4], from + x[5]}, true
		}
		if strings.ContainsRune(tag, '>') {
			break
		}
	}
	return m, false
}

// findQuoted finds a name that a message quotes, a missing one first, in a text from a byte on. to is 0 if
// there is none.
func findQuoted(text string, begin int, message string) (from, to int) {
	shown := text[begin:min(len(text), begin+mostTag)]
	for _, x := range append(missing.FindAllStringSubmatch(message, 1), quoted.FindAllStringSubmatch(message, -1)...) {
		for _, q := range []string{`"` + x[1] + `"`, "'" + x[1] + "'"} {
			if at := strings.Index(shown, q); at >= 0 {
				return begin + at + 1, begin + at + len(q) - 1
			}
		}
	}
	return 0, 0
}

// tagStart returns the byte at which the start tag of the last element of a path begins in a line, -1 if
// there is none.
func tagStart(text, path string) int {
	element := lastElement.FindStringSubmatch(path)
	if element == nil {
		return -1
	}
	name := element[1][strings.LastIndexByte(element[1], ':')+1:]
	expr := regexp.MustCompile(`<([\w.-]+:)?` + regexp.QuoteMeta(name) + `([\s/>]|$)`)
	x := expr.FindStringIndex(text[:min(len(text), mostTag)])
	if x == nil {
		return -1
	}
	return x[0]
}

// shownWidth is the number of characters of a line that are shown.
const shownWidth = 100

// show returns the part of the line around the mark, escaped for the screen, and the position and width of
// the mark in it in characters.
func (m mark) show() (text string, at, width int) {
	// Only bytes that can be shown are examined.
	const most = (shownWidth + 1) * utf8.UTFMax
	left := strings.TrimLeft(m.text[:m.from], " \t")
	for cut := max(len(left)-most, 0); ; cut++ {
		if cut == len(left) || utf8.RuneStart(left[cut]) {
			left = left[cut:]
			break
		}
	}
	before := []rune(left)
	marked := []rune(m.text[m.from:m.to][:min(m.to-m.from, most)])
	after := []rune(m.text[m.to:][:min(len(m.text)-m.to, most)])
	if len(before)+len(marked)+len(after) > shownWidth {
		if len(marked) > shownWidth/2 {
			after = append([]rune(nil), marked[shownWidth/2:]...)
			marked = marked[:shownWidth/2]
		}
		if room := shownWidth / 3; len(before) > room {
			before = append([]rune("…"), before[len(before)-room:]...)
		}
		if room := shownWidth - len(before) - len(marked); len(after) > room {
			after = append(after[:max(room, 0):max(room, 0)], '…')
		}
	}
	clean := func(r []rune) string {
		return diag.Visible(strings.NewReplacer("\t", " ", "\n", " ").Replace(string(r)))
	}
	left, middle := clean(before), clean(marked)
	return left + middle + clean(after), utf8.RuneCountInString(left), utf8.RuneCountInString(middle)
}
