package description

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/macrostep/macrostep/fmi/diag"
)

// maxDescription bounds the size of a modelDescription.xml, in bytes: half a
// million variables take an eighth of it.
const maxDescription = 1 << 30

// source reads a document byte by byte, for the XML decoder, and converts it to
// UTF-8. It can record the bytes read. The standard requires UTF-8 (fmi2 12), but
// some exporters write UTF-16 or an 8-bit encoding of Western Europe.
type source struct {
	r        io.Reader // in UTF-8
	memory   []byte
	buf      []byte // in memory, read from r
	pos      int    // in buf
	err      error  // of r, after buf
	encoding string // as declared, "" for UTF-8

	recording bool
	record    []byte
}

func newSource(r io.Reader) (*source, error) {
	s := &source{memory: make([]byte, 64<<10)}
	head := make([]byte, 512)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if what := diag.Pointer(head[:n]); what != "" {
		return nil, pointerError(what)
	}
	head = bytes.TrimPrefix(head[:n], []byte("\xef\xbb\xbf"))
	r = &bounded{io.MultiReader(bytes.NewReader(head), r), maxDescription}
	var coded encoding.Encoding
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("<\x00?\x00")):
		s.encoding, coded = "UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case bytes.HasPrefix(head, []byte("\xfe\xff")), bytes.HasPrefix(head, []byte("\x00<\x00?")):
		s.encoding, coded = "UTF-16", unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	default:
		if s.encoding, coded, err = declaredEncoding(head); err != nil {
			return nil, err
		}
	}
	if s.r = r; coded != nil {
		s.r = coded.NewDecoder().Reader(r)
	}
	return s, nil
}

// pointerError describes a pointer of Git LFS in the place of the document.
type pointerError string

func (e pointerError) Error() string { return string(e) }

// bounded is a reader that fails beyond maxDescription bytes.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the document is longer than %d MB", maxDescription>>20)
	}
	return n, err
}

// more fills the buffer and reports whether it holds a byte.
func (s *source) more() bool {
	for s.pos == len(s.buf) && s.err == nil {
		var n int
		n, s.err = s.r.Read(s.memory)
		s.buf, s.pos = s.memory[:n], 0
	}
	return s.pos < len(s.buf)
}

// ReadByte returns the next byte; the decoder calls it.
func (s *source) ReadByte() (byte, error) {
	if s.pos == len(s.buf) && !s.more() {
		return 0, s.err
	}
	b := s.buf[s.pos]
	s.pos++
	if s.recording {
		s.record = append(s.record, b)
	}
	return b, nil
}

// Read makes source an io.Reader, which xml.NewDecoder wants.
func (s *source) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := s.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = b
	return 1, nil
}

// declaration matches an XML declaration with an encoding. The decoder reports a wrong one.
var declaration = regexp.MustCompile(`^<\?xml[^?]*?encoding[ \t\r\n=]*(?:"([^"?]*)"|'([^'?]*)')[^?]*\?>`)

// declaredEncoding returns the encoding in the XML declaration; without one a document is in UTF-8.
func declaredEncoding(head []byte) (string, encoding.Encoding, error) {
	match := declaration.FindSubmatch(head)
	if match == nil {
		return "", nil, nil
	}
	name := string(match[1]) + string(match[2])
	switch strings.ToLower(name) {
	case "utf-8":
		return "", nil, nil
	case "us-ascii", "ascii", "utf8": // valid UTF-8
		return name, nil, nil
	case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "windows-1252", "cp1252":
		// Browsers do the same: codes in which the two differ are not
		// characters in ISO-8859-1.
		return name, charmap.Windows1252, nil
	case "iso-8859-15", "latin9", "latin-9":
		return name, charmap.ISO8859_15, nil
	}
	return "", nil, encodingError(name)
}

// encodingError is the name of an unsupported encoding.
type encodingError string

func (e encodingError) Error() string {
	return fmt.Sprintf("the encoding %q is not supported; convert the file to UTF-8", clip(string(e)))
}
