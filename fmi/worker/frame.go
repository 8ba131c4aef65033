package worker

import (
	"encoding/binary"
	"io"
)

// A frame is a message in a pipe: its kind and its length in bytes, eight bytes each in native
// order, then the message.
const frameHeader = 16

// Kinds of frames.
const (
	frameRequest uint64 = iota + 1
	frameAnswer
	frameLog
)

// appendFrame appends a frame.
func appendFrame(b []byte, kind uint64, message []byte) []byte {
	b = binary.NativeEndian.AppendUint64(b, kind)
	b = binary.NativeEndian.AppendUint64(b, uint64(len(message)))
	return append(b, message...)
}

// maxFrame bounds a valid length.
const maxFrame = 1 << 40

// frames reads frames with a buffer.
type frames struct {
	r        io.Reader
	buf      []byte
	from, to int // unused part of buf
}

// next returns the next frame. The message is valid until the next call.
func (f *frames) next() (kind uint64, message []byte, err error) {
	if err := f.need(frameHeader); err != nil {
		return 0, nil, err
	}
	kind = binary.NativeEndian.Uint64(f.buf[f.from:])
	n := binary.NativeEndian.Uint64(f.buf[f.from+8:])
	if n > maxFrame {
		return 0, nil, io.ErrUnexpectedEOF
	}
	f.from += frameHeader
	if err := f.need(int(n)); err != nil {
		return 0, nil, err
	}
	message = f.buf[f.from : f.from+int(n)]
	f.from += int(n)
	return kind, message, nil
}

// need reads until n bytes are available.
func (f *frames) need(n int) error {
	if f.to-f.from >= n {
		return nil
	}
	if f.from+n > len(f.buf) {
		old := f.buf[f.from:f.to]
		if n > len(f.buf) {
			f.buf = make([]byte, max(n, 1<<16))
		}
		f.to = copy(f.buf, old)
		f.from = 0
	}
	for f.to-f.from < n {
		k, err := f.r.Read(f.buf[f.to:])
		f.to += k
		if err != nil && f.to-f.from < n {
			return err
		}
	}
	return nil
}
