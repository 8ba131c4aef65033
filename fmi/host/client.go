package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/internal/remote"
	"github.com/macrostep/macrostep/fmi/worker"
)

// ClientOptions are the options of NewClient.
type ClientOptions struct {
	Program string // version of the program, for messages
	// Timeout is how long to try to reach a host again to which the connection is lost, and how long the host
	// keeps the instances meanwhile; 0 = DefaultTimeout. It is at least a second.
	Timeout time.Duration
}

// DefaultTimeout is that of ClientOptions.
const DefaultTimeout = 30 * time.Second

// Client runs instances on a host. Its methods may be called by several goroutines.
type Client struct {
	ticket Ticket
	dial   func(context.Context) (net.Conn, error)
	o      ClientOptions

	mu      sync.Mutex
	session *clientSession // the last one; nil = none was begun
	closed  bool
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
	return &Client{ticket: t, dial: dial, o: o}
}

// silent is how long a host may say nothing.
func (c *Client) silent() time.Duration { return min(silentAfter, c.o.Timeout) }

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

// Launch makes room for an instance on the host.
func (l *launcher) Launch(to fmi.Launch) (fmi.Link, error) {
	a := openAsk{Instance: to.Instance, Model: to.Model, FMU: filepath.Base(to.FMU), Hash: to.Hash, Apart: l.place.Apart}
	if limits := l.place.Limits; limits != nil {
		a.Timeout, a.Memory = limits.Timeout.Seconds(), limits.Memory
	}
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if s := c.session; s != nil {
		if k, err := s.open(to, &a); s.alive() {
			return k, err
		}
	}
	s, err := c.begin()
	if err != nil {
		return nil, err
	}
	return s.open(to, &a)
}

// open makes room for an instance, and sends the FMU if the host takes any.
func (s *clientSession) open(to fmi.Launch, a *openAsk) (fmi.Link, error) {
	k := &link{session: s, to: to}
	r, err := s.ask(&ask{Open: a}, k)
	if err == nil && r.Missing {
		if err = s.send(to.FMU, to.Hash, k); err == nil {
			r, err = s.ask(&ask{Open: a}, k)
		}
		if err == nil && r.Missing {
			err = fmt.Errorf("host %s has lost the FMU that it was sent", s.client.ticket.Address)
		}
	}
	if err != nil {
		return nil, err
	}
	k.number = r.Instance
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links[k.number] = k
	return k, nil
}

// Status returns the description of the host, its FMUs, and the time of a round trip to it.
func (c *Client) Status() (Status, []Offer, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return Status{}, nil, 0, errClosed
	}
	if c.session == nil {
		if _, err := c.begin(); err != nil {
			return Status{}, nil, 0, err
		}
	}
	s := c.session
	r, err := s.ask(&ask{List: true}, nil)
	if err != nil {
		return Status{}, nil, 0, err
	}
	shortest := time.Duration(0)
	for range 5 {
		t := time.Now()
		if _, err := s.ask(&ask{}, nil); err != nil {
			return Status{}, nil, 0, err
		}
		if d := time.Since(t); shortest == 0 || d < shortest {
			shortest = d
		}
	}
	return *r.About, r.Offers, shortest, nil
}

// Close ends the instances that are left, and the connection.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.session != nil {
		c.session.close()
	}
	return nil
}

var errClosed = errors.New("the client is closed")

// begin begins a session.
func (c *Client) begin() (*clientSession, error) {
	s := &clientSession{client: c, links: map[uint64]*link{}}
	s.turn = sync.NewCond(&s.mu)
	if err := s.connect(c.o.Timeout); err != nil {
		return nil, err
	}
	c.session = s
	return s, nil
}

// A RefusedError says why a host refuses a connection or an instance.
type RefusedError struct {
	Host, Reason, Remedy string

	code code
}

func (e *RefusedError) Error() string {
	text := e.Host + ": " + e.Reason
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// clientSession is a session on a host. A goroutine that waits for an answer reads the connection for all others.
type clientSession struct {
	client *Client
	id     string

	mu      sync.Mutex
	turn    *sync.Cond // something has changed
	conn    *stream
	reading bool
	err     error // why the session has ended; nil = it has not
	number  uint64
	waiting bool      // for the answer to request number
	out     []byte    // that request
	lost    time.Time // the first loss of the connection since the last sign of the host; zero = none
	replied **reply   // for the answer to an ask; nil = the request is none
	parts   []remote.Part
	pending []*link // that have a request to be sent
	links   map[uint64]*link
	teller  *link // the last that called, for warnings
}

func (s *clientSession) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

// connect makes a connection for the session. If there was one before, the request that the host has not received is sent
// again.
func (s *clientSession) connect(within time.Duration) error {
	within = min(within, helloTime)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c, err := s.client.dial(ctx)
	if err == nil {
		conn := newStream(c)
		var r *reply
		if r, err = s.greet(ctx, conn); err == nil && r.Received < s.number && s.waiting {
			err = conn.Send(s.out)
		}
		if err == nil {
			s.conn, s.id = conn, r.Session
			return nil
		}
		_ = conn.Close()
	}
	if timeout(err) {
		err = fmt.Errorf("host %s: %w", s.client.ticket.Address, silence(within))
	}
	return err
}

func (s *clientSession) greet(ctx context.Context, conn *stream) (*reply, error) {
	c := s.client
	h := hello{Min: minVersion, Max: version, Calls: remote.Version, Program: c.o.Program, Token: c.ticket.Token, Session: s.id,
		Grace: (c.o.Timeout + c.silent()).Seconds()} // the host may see a loss before the client
	if err := conn.Send(finish(append(begin(nil, kindHello, 0), document(h)...))); err != nil {
		return nil, err
	}
	due, _ := ctx.Deadline()
	m, err := conn.Receive(max(time.Until(due), time.Millisecond))
	if err != nil {
		return nil, err
	}
	kind, _, content, err := open(m)
	var r reply
	if err != nil || kind != kindReply || json.Unmarshal(content, &r) != nil || r.Code == "" && r.About == nil {
		return nil, fmt.Errorf("%s is not a host of macrostep", c.ticket.Address)
	}
	conn.trust()
	return &r, c.refused(&r)
}

func (c *Client) refused(r *reply) error {
	if r.Code == "" {
		return nil
	}
	e := &RefusedError{Host: c.ticket.Address, Reason: r.Error, Remedy: r.Remedy, code: r.Code}
	if r.Code == codeToken {
		e.Remedy = "copy the file that the host has written (macrostep host prints its name) to this machine, and give it to --on in place of the address"
	}
	return e
}

// again tries to reach the host again after the connection was lost. The caller holds mu and is the reader.
func (s *clientSession) again(cause error) error {
	_ = s.conn.Close()
	host, limit := s.client.ticket.Address, s.client.o.Timeout
	err := cause
	for {
		if s.lost.IsZero() {
			s.lost = time.Now()
		} else {
			s.mu.Unlock()
			time.Sleep(min(max(time.Since(s.lost)/4, 20*time.Millisecond), time.Second))
			s.mu.Lock()
			if s.err != nil {
				return s.err // it was closed
			}
		}
		left := limit - time.Since(s.lost)
		if left <= 0 {
			return fmt.Errorf("host %s was lost (%w) and could not be reached again within %v (%w); --host-timeout gives it more time",
				host, cause, limit, err)
		}
		err = s.connect(min(left, max(limit/4, time.Second))) // several times
		var no *RefusedError
		switch {
		case err == nil:
			s.tell(fmt.Sprintf("the connection to host %s was lost (%v) and is there again after %.1f s; nothing is lost",
				host, cause, time.Since(s.lost).Seconds()))
			return nil
		case errors.As(err, &no) && no.code == codeSession:
			return fmt.Errorf("host %s was lost (%w) and knows nothing of the run any more", host, cause)
		case errors.As(err, &no) && no.code != codeRefused:
			return err
		}
	}
}

func (s *clientSession) tell(text string) {
	if s.teller != nil && s.teller.to.Tell != nil {
		s.teller.to.Tell(text)
	}
}

// until waits until done is true or the session has ended. The caller holds mu.
func (s *clientSession) until(done func() bool) {
	for !done() && s.err == nil {
		if s.reading {
			s.turn.Wait()
			continue
		}
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
	s.number++
	s.parts = s.parts[:0]
	for _, k := range s.pending {
		s.parts = append(s.parts, remote.Part{Instance: k.number, Message: k.request})
	}
	s.pending = s.pending[:0]
	s.out = finish(remote.AppendParts(begin(s.out, kindRun, s.number), s.parts))
	s.waiting = true
	_ = s.conn.Send(s.out) // read sees that the connection is lost
}

// read receives a message, or makes a new connection.
func (s *clientSession) read() {
	s.reading = true
	conn := s.conn
	s.mu.Unlock()
	silent := s.client.silent()
	m, err := conn.Receive(silent)
	s.mu.Lock()
	if timeout(err) {
		err = silence(silent)
	}
	if err == nil {
		err = s.take(m)
	}
	if err != nil && s.err == nil {
		s.err = s.again(err)
	}
	s.reading = false
	s.turn.Broadcast()
}

// take reads a message of the host.
func (s *clientSession) take(m []byte) error {
	kind, number, content, err := open(m)
	switch {
	case err != nil:
		return err
	case kind == kindAlive:
		s.lost = time.Time{}
		return nil
	case number != s.number || !s.waiting:
		return nil // sent a second time
	case kind == kindReply && s.replied != nil:
		r := &reply{}
		if json.Unmarshal(content, r) != nil {
			return errDamaged
		}
		if err := s.give(r.Parts); err != nil {
			return err
		}
		*s.replied, s.replied = r, nil
	case kind == kindAnswer && s.replied == nil:
		if err := s.deliver(content); err != nil {
			return err
		}
	default:
		return errDamaged
	}
	s.waiting, s.lost = false, time.Time{}
	return nil
}

// deliver gives the parts of an answer to the links.
func (s *clientSession) deliver(content []byte) error {
	var err error
	if s.parts, err = remote.Parts(s.parts[:0], content); err != nil {
		return err
	}
	return s.give(s.parts)
}

func (s *clientSession) give(parts []remote.Part) error {
	for _, p := range parts {
		k := s.links[p.Instance&(1<<partShift-1)]
		if k == nil {
			continue // a message of an instance that is closed
		}
		switch p.Instance >> partShift {
		case partAnswer:
			k.answer, k.answered = append(k.answer[:0], p.Message...), true
		case partLog:
			k.to.Log(p.Message)
		case partOutput:
			k.to.Output(string(p.Message), false)
		case partEnded:
			e := &fmi.Ended{}
			if json.Unmarshal(p.Message, e) != nil {
				return errDamaged
			}
			k.ended, k.answered = e, true
		}
	}
	return nil
}

// ask makes a request that is not for FMUs. Warnings meanwhile go to by.
func (s *clientSession) ask(a *ask, by *link) (*reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until(func() bool { return !s.waiting && !s.reading && len(s.pending) == 0 })
	if s.err != nil {
		return nil, s.err
	}
	if by != nil {
		s.teller = by
	}
	s.number++
	s.out = finish(append(begin(s.out, kindAsk, s.number), document(a)...))
	var r *reply
	s.waiting, s.replied = true, &r
	_ = s.conn.Send(s.out) // as in flush
	s.until(func() bool { return r != nil })
	if r == nil {
		return nil, s.err
	}
	return r, s.client.refused(r)
}

// pieceSize is that of the pieces in which an FMU is sent, in bytes.
const pieceSize = 1 << 20

// send sends an FMU.
func (s *clientSession) send(path, hash string, by *link) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	tree := info.IsDir()
	if tree {
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
	buf := make([]byte, pieceSize)
	for at := int64(0); ; {
		n, err := in.ReadAt(buf, at)
		if n == 0 && err != nil {
			return err
		}
		p := sendAsk{Name: filepath.Base(path), Hash: hash, Tree: tree, At: at, Piece: buf[:n], Last: at+int64(n) >= info.Size()}
		if _, err := s.ask(&ask{Send: &p}, by); err != nil {
			return err
		}
		if at += int64(n); p.Last {
			return nil
		}
	}
}

// close ends the session.
func (s *clientSession) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = errors.New("the session is closed")
		_ = s.conn.Send(finish(begin(nil, kindEnd, 0)))
	}
	_ = s.conn.Close()
	s.turn.Broadcast()
}

// link is the connection to an instance on a host.
type link struct {
	session *clientSession
	to      fmi.Launch
	number  uint64

	request  []byte
	answer   []byte
	answered bool
	ended    *fmi.Ended
	closed   bool
}

// Post stores a request. It is sent with those of other instances when an answer is awaited.
func (k *link) Post(request []byte) error {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.closed {
		return errors.New("the instance is closed")
	}
	if s.err != nil || k.ended != nil {
		return k.gone()
	}
	k.request, k.answered = request, false
	s.pending = append(s.pending, k)
	return nil
}

// Await sends all stored requests of the session and waits for the answer.
func (k *link) Await() ([]byte, error) {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.teller = k
	s.until(func() bool { return k.answered })
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
		k.ended = &fmi.Ended{Reason: s.err.Error(), Lost: true}
	default:
		k.ended = &fmi.Ended{Reason: fmt.Sprintf("host %s has not answered its request", s.client.ticket.Address)}
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
		if r, err = s.ask(&ask{Close: &k.number}, k); err == nil && r.Ended != nil {
			err = r.Ended
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, k.number)
	return err
}
