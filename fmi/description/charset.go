package description

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDescription bounds the size of a modelDescription.xml: eight times that of
// half a million variables.
const maxDescription = 1 << 30

// source gives a document in UTF-8, byte by byte as the XML decoder wants it,
// and can record what passes. The standard asks for UTF-8 (fmi2 12); exporters
// also write the eight-bit sets of Western Europe and UTF-16.
type source struct {
	r        io.Reader
	raw      []byte // read from r
	buf      []byte // in UTF-8, to be given
	pos      int    // in buf
	left     int64  // bytes that may still be read
	err      error  // of r, after buf
	decode   func(dst, raw []byte) []byte
	encoding string // as declared, "" for UTF-8

	recording bool
	record    []byte
}

func newSource(r io.Reader) (*source, error) {
	s := &source{r: r, raw: make([]byte, 64<<10), left: maxDescription}
	n, err := io.ReadAtLeast(r, s.raw, 512)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	s.left -= int64(n)
	head := s.raw[:n]
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		head = head[3:]
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		head, s.encoding, s.decode = head[2:], "UTF-16", newUTF16(false)
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		head, s.encoding, s.decode = head[2:], "UTF-16", newUTF16(true)
	case bytes.HasPrefix(head, []byte("<\x00?\x00")):
		s.encoding, s.decode = "UTF-16", newUTF16(false)
	case bytes.HasPrefix(head, []byte("\x00<\x00?")):
		s.encoding, s.decode = "UTF-16", newUTF16(true)
	default:
		if s.encoding, s.decode, err = declaredEncoding(head); err != nil {
			return nil, err
		}
	}
	s.fill(head)
	return s, nil
}

func (s *source) fill(raw []byte) {
	s.pos = 0
	if s.decode == nil {
		s.buf = raw
	} else {
		s.buf = s.decode(s.buf[:0], raw)
	}
}

// more reads on; it reports whether there is a byte to give.
func (s *source) more() bool {
	for s.pos == len(s.buf) && s.err == nil {
		n, err := s.r.Read(s.raw)
		s.err = err
		if s.left -= int64(n); s.left < 0 {
			n, s.err = 0, fmt.Errorf("longer than %d MB", maxDescription>>20)
		}
		s.fill(s.raw[:n])
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
func declaredEncoding(head []byte) (string, func(dst, raw []byte) []byte, error) {
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
		return name, eightBit(windows1252), nil
	case "iso-8859-15", "latin9", "latin-9":
		return name, eightBit(latin9), nil
	}
	return "", nil, encodingError(name)
}

// encodingError is the name of an encoding that is not supported.
type encodingError string

func (e encodingError) Error() string {
	return fmt.Sprintf("the encoding %q is not supported; convert the file to UTF-8", clip(string(e)))
}

// eightBit decodes a set that has ISO-8859-1 with some codes changed.
func eightBit(changed map[byte]rune) func(dst, raw []byte) []byte {
	var table [256]rune
	for i := range table {
		table[i] = rune(i)
	}
	for b, r := range changed {
		table[b] = r
	}
	return func(dst, raw []byte) []byte {
		for _, b := range raw {
			dst = utf8.AppendRune(dst, table[b])
		}
		return dst
	}
}

var windows1252 = map[byte]rune{
	0x80: '€', 0x82: '‚', 0x83: 'ƒ', 0x84: '„', 0x85: '…', 0x86: '†', 0x87: '‡',
	0x88: 'ˆ', 0x89: '‰', 0x8a: 'Š', 0x8b: '‹', 0x8c: 'Œ', 0x8e: 'Ž', 0x91: '‘',
	0x92: '’', 0x93: '“', 0x94: '”', 0x95: '•', 0x96: '–', 0x97: '—', 0x98: '˜',
	0x99: '™', 0x9a: 'š', 0x9b: '›', 0x9c: 'œ', 0x9e: 'ž', 0x9f: 'Ÿ',
}

var latin9 = map[byte]rune{
	0xa4: '€', 0xa6: 'Š', 0xa8: 'š', 0xb4: 'Ž', 0xb8: 'ž', 0xbc: 'Œ', 0xbd: 'œ', 0xbe: 'Ÿ',
}

// newUTF16 keeps half a unit or half a pair from one call to the next.
func newUTF16(bigEndian bool) func(dst, raw []byte) []byte {
	var odd []byte
	var high rune
	return func(dst, raw []byte) []byte {
		if len(odd) > 0 && len(raw) > 0 {
			raw = append(odd, raw...)
		}
		odd = nil
		for ; len(raw) >= 2; raw = raw[2:] {
			u := rune(raw[0]) | rune(raw[1])<<8
			if bigEndian {
				u = rune(raw[1]) | rune(raw[0])<<8
			}
			if high != 0 {
				r := utf16.DecodeRune(high, u)
				high = 0
				dst = utf8.AppendRune(dst, r)
				if r != utf8.RuneError {
					continue
				}
			}
			if u >= 0xd800 && u < 0xdc00 {
				high = u
				continue
			}
			dst = utf8.AppendRune(dst, u)
		}
		if len(raw) > 0 {
			odd = []byte{raw[0]}
		}
		return dst
	}
}
