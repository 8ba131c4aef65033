package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/macrostep/macrostep/fmi/internal/capi"
)

// A frame is a message on its way between processes: its kind and its length in bytes, a word each, then the message.
const frameHeader = 16

// BeginFrame makes b a frame without a message, which is appended before EndFrame.
func BeginFrame(b []byte, kind uint64) []byte {
	return append(binary.LittleEndian.AppendUint64(b[:0], kind), make([]byte, 8)...)
}

// EndFrame writes the length.
func EndFrame(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[8:], uint64(len(b)-frameHeader))
	return b
}

// WriteFrame writes a frame: a short one through buf in one piece, a long one without a copy.
func WriteFrame(w io.Writer, buf *[]byte, kind uint64, message []byte) error {
	b := BeginFrame(*buf, kind)
	binary.LittleEndian.PutUint64(b[8:], uint64(len(message)))
	if len(message) <= Usual {
		b, message = append(b, message...), nil
	}
	*buf = b
	_, err := w.Write(b)
	if err == nil && message != nil {
		_, err = w.Write(message)
	}
	return err
}

// ErrFrame is the error for a message that the other side does not send if it is what it should be.
var ErrFrame = errors.New("an invalid message has come")

// Frames reads frames through a buffer.
type Frames struct {
	R        io.Reader
	buf      []byte
	from, to int // unused part of buf
}

const (
	// MaxTexts bounds the texts in a message in bytes.
	MaxTexts = 64 << 20
	// MaxMessage bounds a message in bytes: a serialised state, and texts.
	MaxMessage = capi.MaxState + MaxTexts
	// Usual is the size of the buffer for frames, in bytes; a longer one gets a buffer of its own.
	Usual = 1 << 16
)

// Next returns the next frame. Its message has at most so many bytes, and is valid until the next call, or, if it is
// longer than Usual, for good.
func (f *Frames) Next(most uint64) (kind uint64, message []byte, err error) {
	if rest := f.buf[f.from:f.to]; len(f.buf) > Usual && len(rest) <= Usual {
		f.buf = make([]byte, Usual)
		f.from, f.to = 0, copy(f.buf, rest)
	}
	if err := f.need(frameHeader); err != nil {
		return 0, nil, err
	}
	kind = binary.LittleEndian.Uint64(f.buf[f.from:])
	n := binary.LittleEndian.Uint64(f.buf[f.from+8:])
	if n > most {
		return 0, nil, fmt.Errorf("%w: it has %d bytes, of at most %d", ErrFrame, n, most)
	}
	f.from += frameHeader
	if err := f.need(int(n)); err != nil {
		return 0, nil, err
	}
	message = f.buf[f.from : f.from+int(n)]
	f.from += int(n)
	return kind, message, nil
}

// need reads until n bytes are there. The buffer grows as they come, not by what the other side says, to four times
// its size at a time.
func (f *Frames) need(n int) error {
	for f.to-f.from < n {
		if f.from == f.to {
			f.from, f.to = 0, 0
		}
		if f.from+n > len(f.buf) && (f.from > 0 || f.to == len(f.buf)) {
			old := f.buf[f.from:f.to]
			if 2*len(old) >= len(f.buf) {
				f.buf = make([]byte, max(min(n, 4*len(f.buf)), Usual))
			}
			f.from, f.to = 0, copy(f.buf, old)
		}
		k, err := f.R.Read(f.buf[f.to:])
		f.to += k
		if err != nil && f.to-f.from < n {
			return err
		}
	}
	return nil
}
