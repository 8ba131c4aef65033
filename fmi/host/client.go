package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/internal/remote"
	"github.com/macrostep/macrostep/fmi/worker"
)

// ClientOptions are the options of NewClient.
type ClientOptions struct {
	Program string // version of the program, for messages
	// Timeout is how long to try to reach the host, and how long it may give no sign; 0 = DefaultTimeout. It is at least a second.
	Timeout time.Duration
}

// DefaultTimeout is that of ClientOptions.
const DefaultTimeout = 30 * time.Second

// Client runs instances on a host. Its methods may be called by several goroutines.
type Client struct {
	ticket Ticket
	dial   func(context.Context) (net.Conn, error)
	o      ClientOptions
	ctx    context.Context // ends when the client is closed
	end    context.CancelCauseFunc

	connecting sync.Mutex
	id         string // of the last session
	failed     time.Time
	failure    error // to reach the host, then

	silences atomic.Int64 // see mostSilences

	mu      sync.Mutex
	session *clientSession // the last one; nil = none was begun
}

// NewClient makes a client of a host: its address, whose ticket is in dir, or the path of a ticket. It connects when
// it is used.
func NewClient(where, dir string, o ClientOptions) (*Client, error) {
	t, config, err := readTicket(where, dir)
	if err != nil {
		return nil, err
	}
	return newClient(t, func(ctx context.Context) (net.Conn, error) { return dialTLS(ctx, t.Address, config) }, o), nil
}

func newClient(t Ticket, dial func(context.Context) (net.Conn, error), o ClientOptions) *Client {
	o.Timeout = max(cmp.Or(o.Timeout, DefaultTimeout), time.Second)
	c := &Client{ticket: t, dial: dial, o: o}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c
}

// Place says where on the host an instance runs, and with which limits.
type Place struct {
	Apart bool // in a process of its own, not with others of the client
	// Limits are the Timeout and Memory of processes; nil or 0 = those of the host.
	Limits *worker.Launcher
}

// Launcher returns a launcher of processes on the host.
func (c *Client) Launcher(p Place) fmi.Elsewhere { return &launcher{c, p} }

type launcher struct {
	client *Client
	place  Place
}

// Host returns the address of the host.
func (l *launcher) Host() string { return l.client.ticket.Address }

// Apart returns a launcher of a process for each instance.
func (l *launcher) Apart() fmi.Launcher {
	p := l.place
	p.Apart = true
	return &launcher{l.client, p}
}

const (
	// mostConnections bounds the connections that are lost before an instance is there.
	mostConnections = 100
	// mostSilences bounds the connections over which nothing comes, without an answer to a request for FMUs between them.
	mostSilences = 2
)

// Launch makes room for an instance on the host.
func (l *launcher) Launch(to fmi.Launch) (fmi.Link, error) {
	a := openAsk{Instance: to.Instance, Model: to.Model, FMU: filepath.Base(to.FMU), Hash: to.Hash, Apart: l.place.Apart}
	if limits := l.place.Limits; limits != nil {
		a.Timeout, a.Memory = limits.Timeout.Seconds(), limits.Memory
	}
	if to.Context == nil {
		to.Context = context.Background()
	}
	for tries := 1; ; tries++ {
		s, err := l.client.connected(to.Context, to.Tell)
		if err != nil {
			return nil, err
		}
		k, err := s.open(to, &a)
		switch {
		case err == nil:
			return k, nil
		case s.alive() || tries == mostConnections || !l.client.again(to.Context, err):
			return nil, err
		}
	}
}

// again reports whether another connection may help after the loss of one. It does not if the host speaks nonsense, or says
// nothing again and again.
func (c *Client) again(ctx context.Context, err error) bool {
	return c.over(ctx) == nil && !errors.Is(err, remote.ErrFrame) && c.silences.Load() < mostSilences
}

// over returns why nobody waits for the host any more, nil if somebody does.
func (c *Client) over(ctx context.Context) error {
	return cmp.Or(context.Cause(c.ctx), context.Cause(ctx))
}

// Status returns the description of the host, its FMUs, and the time of a round trip to it.
func (c *Client) Status(ctx context.Context) (Status, []Offer, time.Duration, error) {
	s, err := c.connected(ctx, nil)
	if err != nil {
		return Status{}, nil, 0, err
	}
	r, err := s.ask(ctx, &ask{List: true})
	if err == nil && r.About == nil {
		err = fmt.Errorf("host %s: %w", c.ticket.Address, remote.ErrFrame)
	}
	if err != nil {
		return Status{}, nil, 0, err
	}
	const least = 20 * time.Millisecond // some clocks are coarse
	began := time.Now()
	for trips := 1; ; trips++ {
		if _, err := s.ask(ctx, &ask{}); err != nil {
			return Status{}, nil, 0, err
		}
		if took := time.Since(began); took > least && trips >= 5 {
			return *r.About, r.Offers, took / time.Duration(trips), nil
		}
	}
}

// Close ends the instances that are left, and the connection. It also ends what waits for the host.
func (c *Client) Close() error {
	c.end(errors.New("the client is closed"))
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil {
		_ = s.conn.Close() // whoever reads it sees that
	}
	return nil
}

// A RefusedError says why a host refuses a connection or an instance.
type RefusedError struct{ Host, Reason, Remedy string }

func (e *RefusedError) Error() string {
	text := e.Host + ": " + shown(e.Reason)
	if e.Remedy != "" {
		text += "; " + shown(e.Remedy)
	}
	return text
}

// tellAfter is how long to try without a word.
const tellAfter = time.Second

// connected returns the session of the connection. If there is none, it tries to make one for as long as it may.
func (c *Client) connected(by context.Context, tell func(string)) (*clientSession, error) {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil && s.alive() {
		return s, nil
	}
	if c.failure != nil && time.Since(c.failed) < c.o.Timeout { // for another instance
		return nil, c.failure
	}
	ctx, cancel := context.WithTimeout(by, c.o.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	began, told := time.Now(), tell == nil
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		s, err := c.connect(ctx)
		var unknown *net.DNSError
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // without the address
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = errSilent
		}
		switch {
		case err == nil:
			return s, nil
		case errors.As(err, new(*RefusedError)):
			return nil, err
		case errors.As(err, &unknown) && unknown.IsNotFound:
			return nil, fmt.Errorf("host %s: %w", c.ticket.Address, err)
		case c.over(by) != nil:
			return nil, fmt.Errorf("host %s: %w", c.ticket.Address, c.over(by))
		case !told && time.Since(began) > tellAfter:
			told = true
			tell(fmt.Sprintf("host %s cannot be reached (%v); trying again for %v", c.ticket.Address, err, c.o.Timeout))
		}
		select {
		case <-ctx.Done():
			if c.over(by) != nil {
				continue
			}
			remedy := ""
			if tell != nil {
				remedy = "; --host-timeout gives it more time"
			}
			c.failed = time.Now()
			c.failure = fmt.Errorf("host %s could not be reached within %v: %w%s", c.ticket.Address, c.o.Timeout, err, remedy)
			return nil, c.failure
		case <-time.After(pause):
		}
	}
}

// connect makes a connection.
func (c *Client) connect(ctx context.Context) (*clientSession, error) {
	ctx, cancel := context.WithTimeout(ctx, min(helloTime, max(c.o.Timeout/4, time.Second))) // one of several
	defer cancel()
	n, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	due, _ := ctx.Deadline()
	conn := newStream(ctx, n, max(time.Until(due), time.Millisecond))
	if err := c.greet(conn); err != nil {
		_ = conn.Close() // err matters more
		return nil, err
	}
	conn.limit, conn.patience.Limit = c.o.Timeout, c.o.Timeout
	s := &clientSession{client: c, conn: conn, links: map[uint64]*link{}}
	s.turn = sync.NewCond(&s.mu)
	c.mu.Lock()
	c.session = s
	c.mu.Unlock()
	if c.ctx.Err() != nil { // Close may not have seen it
		_ = conn.Close()
	}
	return s, nil
}

func (c *Client) greet(conn *stream) error {
	h := hello{Version: version, Program: c.o.Program, Token: c.ticket.Token, Patience: c.o.Timeout.Seconds(), Instead: c.id}
	if err := conn.Send(document(kindHello, h)); err != nil {
		return err
	}
	kind, content, err := conn.Receive(maxStranger)
	if err != nil && !errors.Is(err, remote.ErrFrame) {
		return err
	}
	var r reply
	if err != nil || kind != kindReply || json.Unmarshal(content, &r) != nil || r.Error == "" && r.About == nil {
		return &RefusedError{Host: c.ticket.Address, Reason: "the program that listens there is not a host of this version of macrostep",
			Remedy: "give the address that macrostep host prints"}
	}
	err = c.refused(&r)
	if err == nil {
		c.id = r.Session
	}
	return err
}

// refused returns the error of a reply.
func (c *Client) refused(r *reply) error {
	if r.Error == "" {
		return nil
	}
	return &RefusedError{Host: c.ticket.Address, Reason: r.Error, Remedy: r.Remedy}
}

// clientSession is a connection to a host with its instances. A goroutine that waits for an answer reads the connection for all
// others.
type clientSession struct {
	client *Client
	conn   *stream

	uploading sync.Mutex

	mu      sync.Mutex
	turn    *sync.Cond // something has changed
	reading bool
	err     error // why the session has ended; nil = it has not
	waiting bool  // for the answer to the last request
	since   time.Time
	most    uint64  // length of the answer
	replied **reply // for the answer, if it is a reply
	out     []byte  // buffer of requests
	parts   []remote.Part
	pending []*link // that have a request to be sent
	links   map[uint64]*link
}

func (s *clientSession) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

// open makes room for an instance, and sends the FMU if the host takes any.
func (s *clientSession) open(to fmi.Launch, a *openAsk) (*link, error) {
	k := &link{session: s, to: to}
	missing, err := s.room(k, a)
	if err == nil && missing {
		s.uploading.Lock()
		defer s.uploading.Unlock()
		if missing, err = s.room(k, a); err == nil && missing { // no other instance has sent it meanwhile
			if err = s.send(to.Context, to.FMU, to.Hash); err == nil {
				missing, err = s.room(k, a)
			}
		}
	}
	if err == nil && missing {
		err = fmt.Errorf("host %s has lost the FMU that it was sent", s.client.ticket.Address)
	}
	return k, err
}

// room asks for room for an instance. It returns true if the FMU is missing.
func (s *clientSession) room(k *link, a *openAsk) (missing bool, err error) {
	r, err := s.ask(k.to.Context, &ask{Open: a})
	if err != nil || r.Missing {
		return err == nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.number = r.Instance
	s.links[k.number] = k
	return false, nil
}

// until waits until done is true or the session has ended, for somebody with a context. The caller holds mu.
func (s *clientSession) until(by context.Context, done func() bool) {
	for !done() && s.err == nil {
		if s.reading {
			s.turn.Wait()
			continue
		}
		s.conn.ctx = by
		if !s.waiting {
			if len(s.pending) == 0 {
				return
			}
			s.flush()
		}
		s.read()
	}
}

// flush sends the requests of all instances that have one, in one message.
func (s *clientSession) flush() {
	s.parts, s.most = s.parts[:0], remote.Usual
	for _, k := range s.pending {
		s.parts = append(s.parts, remote.Part{Instance: k.number, Message: k.request})
		s.most += k.most
	}
	s.pending = s.pending[:0]
	frame := remote.EndFrame(remote.AppendParts(remote.BeginFrame(s.out, kindRun), s.parts))
	s.out = nil
	if cap(frame) <= maxPiece { // a large one is not needed again soon
		s.out = frame
	}
	s.request(frame)
}

// request sends a request. The caller holds mu.
func (s *clientSession) request(frame []byte) {
	s.waiting, s.since = true, time.Now()
	if err := s.conn.Send(frame); err != nil {
		s.fail(err)
	}
}

// read receives a message.
func (s *clientSession) read() {
	if s.err != nil {
		return
	}
	s.reading = true
	most := max(s.most, maxSaid)
	s.mu.Unlock()
	kind, content, err := s.conn.Receive(most)
	s.mu.Lock()
	if err == nil && kind != kindSaid && uint64(len(content)) > s.most {
		err = remote.ErrFrame
	}
	if err == nil {
		err = s.take(kind, content)
	}
	if err != nil {
		s.fail(err)
	}
	s.reading = false
	s.turn.Broadcast()
}

// take reads a message of the host.
func (s *clientSession) take(kind uint64, content []byte) error {
	switch {
	case (kind == kindAlive || kind == kindSaid) && s.conn.ctx.Err() != nil && time.Since(s.since) > s.conn.limit:
		return fmt.Errorf("it has not answered for %.3g s", time.Since(s.since).Seconds())
	case kind == kindAlive:
		return nil
	case kind == kindReply && s.waiting && s.replied != nil:
		r := &reply{}
		if json.Unmarshal(content, r) != nil {
			return remote.ErrFrame
		}
		*s.replied, s.replied = r, nil
	case kind == kindSaid:
		return s.give(content)
	case kind == kindAnswer && s.waiting && s.replied == nil:
		if err := s.give(content); err != nil {
			return err
		}
		s.client.silences.Store(0)
	default:
		return remote.ErrFrame
	}
	s.waiting = false
	return nil
}

// give gives parts to the links.
func (s *clientSession) give(content []byte) (err error) {
	if s.parts, err = remote.Parts(s.parts[:0], content); err != nil {
		return remote.ErrFrame
	}
	for _, p := range s.parts {
		k := s.links[p.Instance&(1<<partShift-1)]
		if k == nil {
			continue // a message of an instance that is closed
		}
		switch p.Instance >> partShift {
		case partAnswer:
			if k.answer = p.Message; len(p.Message) <= remote.Usual {
				k.buf = append(k.buf[:0], p.Message...)
				k.answer = k.buf
			}
			k.answered = true
		case partLog:
			k.to.Log(p.Message)
		case partOutput:
			k.to.Output(string(p.Message), false)
		case partEnded:
			e := &fmi.Ended{}
			if json.Unmarshal(p.Message, e) != nil {
				return remote.ErrFrame
			}
			e.Reason = shown(e.Reason)
			k.ended, k.answered = e, true
		}
	}
	return nil
}

// fail ends the session with an error, unless it has ended. The caller holds mu.
func (s *clientSession) fail(err error) {
	if s.err == nil {
		if s.err = err; errors.Is(err, errSilent) {
			s.client.silences.Add(1)
		}
	}
	_ = s.conn.Close()
	s.turn.Broadcast()
}

// reason returns why the session has ended for somebody with a context. The caller holds mu.
func (s *clientSession) reason(by context.Context) error {
	if why := s.client.over(by); why != nil {
		return fmt.Errorf("%w: %w", why, s.err)
	}
	return s.err
}

func (s *clientSession) ask(by context.Context, a *ask) (*reply, error) {
	return s.exchange(by, document(kindAsk, a))
}

// exchange sends a request that is not for FMUs, and returns its reply.
func (s *clientSession) exchange(by context.Context, frame []byte) (*reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until(by, func() bool { return !s.waiting && !s.reading && len(s.pending) == 0 })
	var r *reply
	if s.err == nil {
		s.replied, s.most = &r, maxReply
		s.conn.ctx = by
		s.request(frame)
		s.until(by, func() bool { return r != nil })
	}
	if r == nil {
		return nil, fmt.Errorf("host %s was lost: %w", s.client.ticket.Address, s.reason(by))
	}
	return r, s.client.refused(r)
}

// send sends an FMU.
func (s *clientSession) send(by context.Context, path, hash string) error {
	a := &sendAsk{Name: filepath.Base(path), Hash: hash}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.Tree = info.IsDir(); a.Tree {
		packed, err := archive.NewTempDir("", archive.Prefix)
		if err != nil {
			return err
		}
		defer packed.Remove()
		from := path
		path = filepath.Join(packed.Path, "sent.fmu")
		if err := archive.Pack(path, from); err != nil {
			return err
		}
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err = in.Stat(); err != nil {
		return err
	}
	a.Size = info.Size()
	if _, err := s.ask(by, &ask{Send: a}); err != nil {
		return err
	}
	var frame []byte
	for left := a.Size; left > 0; {
		if err := s.client.over(by); err != nil {
			return err
		}
		frame = remote.BeginFrame(frame, kindPiece)
		head := len(frame)
		frame = append(frame, make([]byte, min(left, maxPiece))...)
		if _, err := io.ReadFull(in, frame[head:]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, err := s.exchange(by, remote.EndFrame(frame)); err != nil {
			return err
		}
		left -= int64(len(frame) - head)
	}
	return nil
}

// link is the connection to an instance on a host.
type link struct {
	session *clientSession
	to      fmi.Launch
	number  uint64

	request  []byte
	most     uint64 // length of the answer
	buf      []byte // of short answers
	answer   []byte
	answered bool
	ended    *fmi.Ended
	closed   bool
}

// Post stores a request. It is sent with those of other instances when an answer is awaited.
func (k *link) Post(request []byte, most uint64) error {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.closed {
		return errors.New("the instance is closed")
	}
	if s.err != nil || k.ended != nil {
		return k.gone()
	}
	k.request, k.most, k.answered = request, most, false
	s.pending = append(s.pending, k)
	return nil
}

// Await sends all stored requests of the session and waits for the answer.
func (k *link) Await() ([]byte, error) {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until(k.to.Context, func() bool { return k.answered })
	if k.ended != nil || !k.answered {
		return nil, k.gone()
	}
	return k.answer, nil
}

// gone returns how the process has ended.
func (k *link) gone() error {
	switch s := k.session; {
	case k.ended != nil:
	case s.err != nil:
		k.ended = &fmi.Ended{Reason: s.reason(k.to.Context).Error(), Lost: s.client.again(k.to.Context, s.err)}
	default:
		k.ended = &fmi.Ended{Reason: "the host has answered, but not this request"}
	}
	return k.ended
}

// Close frees the room of the instance. The error is an *fmi.Ended if exit handlers or destructors ended its worker,
// or did not return.
func (k *link) Close() error {
	s := k.session
	s.mu.Lock()
	if k.closed {
		s.mu.Unlock()
		return nil
	}
	k.closed = true
	over := s.err != nil
	s.mu.Unlock()
	var err error
	if !over {
		var r *reply
		if r, err = s.ask(k.to.Context, &ask{Close: &k.number}); err == nil && r.Ended != nil {
			err = r.Ended
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, k.number)
	if s.err != nil { // the host frees it by itself
		return nil
	}
	return err
}
