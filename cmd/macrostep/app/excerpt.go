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

// excerpts gives the lines of documents that findings are about, also of documents
// in archives and in archives in those. It is a convenience: what cannot be read, or is
// not UTF-8, is not shown.
type excerpts struct {
	documents map[string][]string
}

// mostExcerpt bounds a document, or an archive in an archive, that is read for its
// lines.
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

// readShown reads a document by the name that findings have for it: a path, which may
// go on in archives, after a slash or an exclamation mark.
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

// readIn reads what a name means in an archive.
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

// mark is a line of a document and what in it is meant.
type mark struct {
	line     int // 1-based
	text     string
	from, to int // bytes of text
}

// mostTagLines and mostTag bound the lines of one start tag, and the bytes of a line from
// there on, that are examined: a document may be a single line, with many findings.
const (
	mostTagLines = 50
	mostTag      = 8 << 10
)

var (
	lastElement = regexp.MustCompile(`/([\w.:-]+)(\[[^/]*\])*$`)
	quoted      = regexp.MustCompile(`"((?:[^"\\]|\\.)+)"`)
	missing     = regexp.MustCompile(`\bno [a-z]+ "((?:[^"\\]|\\.)+)"`)
)

// find returns the line of a finding and marks the attribute that its path ends in,
// else a name quoted in its message, a missing one first, else the start tag.
func (e *excerpts) find(f diag.Finding) (m mark, ok bool) {
	lines := e.lines(f.File)
	if f.Line < 1 || f.Line > len(lines) {
		return m, false
	}
	m = mark{line: f.Line, text: strings.TrimRight(lines[f.Line-1], "\r")}
	path, attribute, isAttribute := strings.Cut(f.Path, "/@")
	element := ""
	if x := lastElement.FindStringSubmatch(path); x != nil {
		element = x[1]
	}
	begin := f.Column - 1
	if begin < 0 || begin > len(m.text) {
		begin = tagStart(m.text, element)
	}
	if isAttribute {
		expr := regexp.MustCompile(`(^|[\s:])(` + regexp.QuoteMeta(attribute) + `\s*=\s*("[^"]*"|'[^']*'))`)
		for n := f.Line; n < f.Line+mostTagLines && n <= len(lines); n++ {
			text, from := strings.TrimRight(lines[n-1], "\r"), 0
			if n == f.Line {
				from = max(begin, 0)
			}
			tag := text[from:min(len(text), from+mostTag)]
			if x := expr.FindStringSubmatchIndex(tag); x != nil {
				return mark{n, text, from + x[4], from + x[5]}, true
			}
			if strings.ContainsRune(tag, '>') {
				break
			}
		}
	}
	for _, x := range append(missing.FindAllStringSubmatch(f.Message, 1), quoted.FindAllStringSubmatch(f.Message, -1)...) {
		for _, q := range []string{`"` + x[1] + `"`, "'" + x[1] + "'"} {
			from := max(begin, 0)
			if at := strings.Index(m.text[from:min(len(m.text), from+mostTag)], q); at >= 0 {
				m.from = from + at + 1
				m.to = m.from + len(q) - 2
				return m, true
			}
		}
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

// tagStart finds the start tag of an element in a line, −1 if it is not there.
func tagStart(text, element string) int {
	if element == "" {
		return -1
	}
	text = text[:min(len(text), mostTag)]
	x := regexp.MustCompile(`<([\w.-]+:)?` + regexp.QuoteMeta(element[strings.LastIndexByte(element, ':')+1:]) + `([\s/>]|$)`).FindStringIndex(text)
	if x == nil {
		return -1
	}
	return x[0]
}

// shownWidth is the part of a line that is shown.
const shownWidth = 100

// show returns the part of the line around the mark as a screen shows it, and where the
// mark is in it, in characters.
func (m mark) show() (text string, at, width int) {
	// Of a long line only as much is looked at as can be shown: a character has four bytes
	// at most.
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
		return visible(strings.NewReplacer("\t", " ", "\n", " ").Replace(string(r)))
	}
	left, middle := clean(before), clean(marked)
	return left + middle + clean(after), utf8.RuneCountInString(left), utf8.RuneCountInString(middle)
}
