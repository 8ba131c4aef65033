package description

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// maxDescription bounds the size of a modelDescription.xml: eight times that of
// half a million variables.
const maxDescription = 1 << 30

// source gives a document in UTF-8, byte by byte as the XML decoder wants it,
// and can record what passes. The standard asks for UTF-8 (fmi2 12); exporters
// also write the eight-bit sets of Western Europe and UTF-16.
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

// bounded is a reader with a longest length.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("longer than %d MB", maxDescription>>20)
	}
	return n, err
}

// more reads on; it reports whether there is a byte to give.
func (s *source) more() bool {
	for s.pos == len(s.buf) && s.err == nil {
		var n int
		n, s.err = s.r.Read(s.memory)
		s.buf, s.pos = s.memory[:n], 0
	}
	return s.pos < len(s.buf)
}

// ReadByte is what the decoder calls.
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

// Read is here because the decoder hands its reader on as an io.Reader.
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

// declaredEncoding looks at the XML declaration. Without one a document is in UTF-8.
func declaredEncoding(head []byte) (string, encoding.Encoding, error) {
	if !bytes.HasPrefix(head, []byte("<?xml")) {
		return "", nil, nil
	}
	head = head[:max(0, bytes.Index(head, []byte("?>")))]
	_, value, ok := bytes.Cut(head, []byte("encoding"))
	if !ok {
		return "", nil, nil
	}
	value = bytes.TrimLeft(value, " \t\r\n=")
	if len(value) == 0 {
		return "", nil, nil
	}
	end := bytes.IndexByte(value[1:], value[0])
	if value[0] != '"' && value[0] != '\'' || end < 0 {
		return "", nil, nil // the decoder will complain
	}
	name := string(value[1 : 1+end])
	switch strings.ToLower(name) {
	case "utf-8":
		return "", nil, nil
	case "us-ascii", "ascii", "utf8": // in UTF-8 whatever they are called
		return name, nil, nil
	case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "windows-1252", "cp1252":
		// As browsers do: the codes in which the two differ are no characters
		// in ISO-8859-1, so who uses them means Windows-1252.
		return name, charmap.Windows1252, nil
	case "iso-8859-15", "latin9", "latin-9":
		return name, charmap.ISO8859_15, nil
	}
	return "", nil, encodingError(name)
}

// encodingError is the name of an encoding that is not supported.
type encodingError string

func (e encodingError) Error() string {
	return fmt.Sprintf("the encoding %q is not supported; convert the file to UTF-8", clip(string(e)))
}
