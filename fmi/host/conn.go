package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi/internal/remote"
)

// Kinds of messages. A run begins with a hello, and sends each other request after the answer to the one before.
const (
	kindHello  uint64 = iota + 1 // JSON of hello
	kindReply                    // JSON of reply, to kindHello, kindAsk and kindPiece
	kindAsk                      // JSON of ask
	kindPiece                    // of an FMU that is sent
	kindRun                      // parts for instances
	kindAnswer                   // to kindRun
	kindSaid                     // parts with what instances have said, before an answer
	kindAlive                    // the host is at work on a request
)

const (
	// maxStranger bounds a message in bytes, of a client that is not known to be entitled.
	maxStranger = 1 << 16
	// maxReply bounds a reply in bytes.
	maxReply = 1 << 20
	// maxPiece is how much is sent at a time, in bytes.
	maxPiece = 1 << 20
)

// pieceTime: at 30 s for a wait, a message must come at 1 MiB/s after it.
const pieceTime = 30

// hurryTime is how long the other side may say nothing after an interrupt.
const hurryTime = 2 * time.Second

// goneAfter is how long a machine may be unreachable until the system ends its connections.
const goneAfter = 30 * time.Second

// prepare makes a connection fit for streams.
func prepare(c net.Conn) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	const probes = 3
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: goneAfter / 2, Interval: goneAfter / 2 / probes, Count: probes}) // as the system can
	return quick(t)
}

// stream transports messages between a run and a host. Send may be called concurrently, also with Receive.
type stream struct {
	net.Conn
	ctx    context.Context // of who waits; after its end, waits take hurryTime
	limit  time.Duration   // of a wait; for each maxPiece bytes, a message has limit/pieceTime more
	frames remote.Frames

	patience remote.Patience // of reading; Limit 0 = unlimited
	due      time.Time       // deadline of reading
	got      int             // bytes of this message

	sending sync.Mutex
	sent    time.Time // deadline of writing
}

func newStream(ctx context.Context, c net.Conn, limit time.Duration) *stream {
	s := &stream{Conn: c, ctx: ctx, limit: limit, patience: remote.Patience{Limit: limit}}
	s.frames.R = (*inSlices)(s)
	return s
}

// Send sends a frame, of which each piece has its time.
func (s *stream) Send(frame []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if len(frame) > remote.Usual { // it may have to wait
		defer context.AfterFunc(s.ctx, func() { _ = s.SetWriteDeadline(time.Now().Add(hurryTime)) })()
	}
	for len(frame) > 0 {
		piece := frame[:min(len(frame), maxPiece)]
		limit, now := s.limit, time.Now()
		if s.ctx.Err() != nil {
			limit = min(limit, hurryTime)
		}
		// Not each time, since it takes as long as a step of a cheap FMU.
		if left := s.sent.Sub(now); left < limit/2 || left > limit {
			s.sent = now.Add(limit)
			if err := s.SetWriteDeadline(s.sent); err != nil {
				return err
			}
		}
		if _, err := s.Write(piece); err != nil {
			return err
		}
		frame = frame[len(piece):]
	}
	return nil
}

// Receive returns the next message, of at most so many bytes, which is valid until the next call (or longer, see
// remote.Frames.Next). It fails if the message does not come in time.
func (s *stream) Receive(most uint64) (kind uint64, message []byte, err error) {
	s.got = 0
	s.patience.Begin(0)
	kind, message, err = s.frames.Next(most)
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the other side has closed the connection")
	}
	return kind, message, err
}

// wait bounds waits for messages, or does not: a run may be idle.
func (s *stream) wait(limit time.Duration) {
	if s.patience.Limit != limit {
		s.patience.Limit, s.due = limit, time.Time{}
		_ = s.SetReadDeadline(time.Time{}) // or reading fails
	}
}

// errSilent is the end of patience.
var errSilent = errors.New("it has said nothing")

// inSlices reads from a stream in slices of its patience.
type inSlices stream

func (r *inSlices) Read(b []byte) (int, error) {
	s := (*stream)(r)
	for {
		if s.patience.Limit == 0 {
			return s.Conn.Read(b)
		}
		if s.ctx.Err() != nil && s.patience.Limit > hurryTime {
			s.patience.Limit = hurryTime
			s.patience.Begin(0)
		}
		slice := s.patience.Slice()
		if now := time.Now(); s.due.Sub(now) < slice/2 {
			s.due = now.Add(slice)
			if err := s.SetReadDeadline(s.due); err != nil {
				return 0, err
			}
		}
		n, err := s.Conn.Read(b)
		s.got += n
		s.patience.Credit(time.Duration(float64(n) / maxPiece * float64(s.limit/pieceTime)))
		late := s.patience.Late()
		switch {
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case late && s.got > 0:
			return n, fmt.Errorf("%w but %d bytes of a message for %v", errSilent, s.got, s.patience.Limit)
		case late:
			return 0, fmt.Errorf("%w for %v", errSilent, s.patience.Limit)
		case n > 0:
			return n, nil
		}
	}
}
