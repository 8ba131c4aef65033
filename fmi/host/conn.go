package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
)

// Conn transports messages between a run and a host. Send may be called concurrently with Receive.
type Conn interface {
	// Send sends a message within a few seconds.
	Send(message []byte) error
	// Receive returns the next message, which is valid until the next call. It fails with an error that is a
	// timeout (net.Error) if none comes for about the time given; 0 = unlimited.
	Receive(within time.Duration) ([]byte, error)
	Close() error
}

// A message begins with its length without the header, its checksum (CRC-32C of the rest), kind and number, all
// little-endian.
const header = 4 + 4 + 8 + 8

// Kinds of messages.
const (
	kindHello  uint64 = iota + 1 // JSON of hello
	kindReply                    // JSON of reply, to hello and kindAsk
	kindAsk                      // JSON of ask
	kindRun                      // parts for instances
	kindAnswer                   // to kindRun
	kindAlive                    // the host is at work on a request
	kindEnd                      // of a session
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// begin makes b a message of a kind without content, to which content is appended before finish.
func begin(b []byte, kind, number uint64) []byte {
	b = append(b[:0], make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint64(b, kind)
	return binary.LittleEndian.AppendUint64(b, number)
}

// finish completes the header of a message.
func finish(b []byte) []byte {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-header))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b
}

// errDamaged is the error for a message that is not what was sent.
var errDamaged = errors.New("a message was damaged on its way")

// open returns the parts of a message.
func open(b []byte) (kind, number uint64, content []byte, err error) {
	if len(b) < header || int(binary.LittleEndian.Uint32(b)) != len(b)-header ||
		binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return 0, 0, nil, errDamaged
	}
	return binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), b[header:], nil
}

// Bounds of messages in bytes: before a client is known to be entitled, and after.
const (
	maxStranger = 1 << 16
	maxMessage  = 1 << 30
)

// sendTime is how long a message may wait for room on its way.
const sendTime = 10 * time.Second

// stream is a Conn over TCP.
type stream struct {
	net.Conn
	most     int // length of a valid message
	buf      []byte
	from, to int // unused part of buf
	due      time.Time
	sent     time.Time // deadline of Send
}

func newStream(c net.Conn) *stream { return &stream{Conn: c, most: maxStranger} }

// Send sends a message. The deadline is set once a second, since that takes as long as a step of a cheap FMU.
func (s *stream) Send(message []byte) error {
	if now := time.Now(); s.sent.Sub(now) < sendTime-time.Second {
		s.sent = now.Add(sendTime)
		if err := s.SetWriteDeadline(s.sent); err != nil {
			return err
		}
	}
	_, err := s.Write(message)
	return err
}

// Receive returns the next message.
func (s *stream) Receive(within time.Duration) ([]byte, error) {
	due := time.Time{}
	if within > 0 {
		due = s.due
		if now := time.Now(); due.Sub(now) < within*3/4 {
			due = now.Add(within)
		}
	}
	if due != s.due {
		s.due = due
		if err := s.SetReadDeadline(due); err != nil {
			return nil, err
		}
	}
	if err := s.need(header); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(s.buf[s.from:]))
	if n > s.most {
		return nil, errDamaged
	}
	if err := s.need(header + n); err != nil {
		return nil, err
	}
	m := s.buf[s.from : s.from+header+n]
	s.from += header + n
	return m, nil
}

// need reads until n bytes are there.
func (s *stream) need(n int) error {
	if s.to-s.from >= n {
		return nil
	}
	if s.from+n > len(s.buf) {
		old := s.buf[s.from:s.to]
		if n > len(s.buf) {
			s.buf = make([]byte, max(n, 1<<16))
		}
		s.from, s.to = 0, copy(s.buf, old)
	}
	for s.to-s.from < n {
		k, err := s.Read(s.buf[s.to:])
		s.to += k
		if err != nil && s.to-s.from < n {
			if err == io.EOF {
				err = errors.New("the other side has closed the connection")
			}
			return err
		}
	}
	return nil
}

// trust lifts the bound of messages.
func trust(c Conn) {
	if s, ok := c.(*stream); ok {
		s.most = maxMessage
	}
}

// timeout reports whether an error says that no message has come.
func timeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// silence is the error of a host that says nothing.
func silence(d time.Duration) error { return fmt.Errorf("it has said nothing for %v", d) }

// MessageSize returns the length of the message that begins with b, at least that of its header.
func MessageSize(b []byte) int {
	if len(b) < 4 {
		return header
	}
	return header + int(binary.LittleEndian.Uint32(b))
}
