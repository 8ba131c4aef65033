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

// stream transports messages between a run and a host. Send may be called concurrently with Receive.
type stream struct {
	net.Conn
	most     int // length of a valid message
	buf      []byte
	from, to int // unused part of buf
	due      time.Time
	sent     time.Time // deadline of Send
}

func newStream(c net.Conn) *stream { return &stream{Conn: c, most: maxStranger} }

// Send sends a message, of which each piece has its time.
func (s *stream) Send(message []byte) error {
	for len(message) > 0 {
		piece := message[:min(len(message), maxPiece)]
		// Once a second, since it takes as long as a step of a cheap FMU.
		if now := time.Now(); s.sent.Sub(now) < sendTime-time.Second {
			s.sent = now.Add(sendTime)
			if err := s.SetWriteDeadline(s.sent); err != nil {
				return err
			}
		}
		if _, err := s.Write(piece); err != nil {
			return err
		}
		message = message[len(piece):]
	}
	return nil
}

// maxPiece is the longest piece of a message in bytes.
const maxPiece = 1 << 20

// Receive returns the next message, which is valid until the next call. It fails with an error that is a timeout (net.Error)
// if nothing comes for about the time given; 0 = unlimited. The whole message of a stranger must come in the time.
func (s *stream) Receive(within time.Duration) ([]byte, error) {
	if err := s.wait(within); err != nil {
		return nil, err
	}
	if err := s.need(header, within); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(s.buf[s.from:])
	if n > uint32(s.most) {
		return nil, fmt.Errorf("a message has %d bytes, of at most %d", n, s.most)
	}
	size := header + int(n)
	if err := s.need(size, within); err != nil {
		return nil, err
	}
	m := s.buf[s.from : s.from+size]
	s.from += size
	return m, nil
}

// wait sets the deadline of reading.
func (s *stream) wait(within time.Duration) error {
	due := time.Time{}
	if within > 0 {
		due = s.due
		if now := time.Now(); due.Sub(now) < within*3/4 {
			due = now.Add(within)
		}
	}
	if due == s.due {
		return nil
	}
	s.due = due
	return s.SetReadDeadline(due)
}

// need reads until n bytes are there. The buffer grows as they come, not by what the other side says.
func (s *stream) need(n int, within time.Duration) error {
	for s.to-s.from < n {
		if s.from+n > len(s.buf) {
			old := s.buf[s.from:s.to]
			if size := max(min(n, 2*len(old)), 1<<16); size > len(s.buf) {
				s.buf = make([]byte, size)
			}
			s.from, s.to = 0, copy(s.buf, old)
		}
		k, err := s.Read(s.buf[s.to:])
		s.to += k
		if s.to-s.from >= n {
			break
		}
		if err == nil && s.most == maxMessage {
			err = s.wait(within)
		}
		if err == io.EOF {
			err = errors.New("the other side has closed the connection")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// trust lifts the bound of messages.
func (s *stream) trust() { s.most = maxMessage }

// timeout reports whether an error says that no message has come.
func timeout(err error) bool {
	if err == nil {
		return false
	}
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// silence is the error of a host that says nothing.
func silence(d time.Duration) error {
	return fmt.Errorf("it has said nothing for %.2g s", d.Seconds())
}
