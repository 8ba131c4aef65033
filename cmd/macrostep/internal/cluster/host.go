package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/macrostep/macrostep/fmi/host"
)

// Subjects of hosts. Whoever has an FMU, and room for it, answers to its subject with an identity.
const (
	hostList   = "macrostep.host.list"
	hostAny    = "macrostep.host.any" // of hosts that accept any FMU
	hostFMU    = "macrostep.host.fmu."
	hostID     = "macrostep.host.id." // for connections; the answer is a subject
	answerFull = "full"
)

// hashSubject is the subject of an FMU.
func hashSubject(hash string) string { return hostFMU + strings.ReplaceAll(hash, ":", "-") }

const (
	findTime  = 2 * time.Second // for hosts to answer
	scanEach  = 10 * time.Second
	pingEach  = 5 * time.Second
	goneAfter = 30 * time.Second // without a ping
)

// HostInfo is what a host says of itself.
type HostInfo struct {
	host.Status
	Offers []host.Offer  `json:"offers"`
	Trip   time.Duration `json:"-"`
}

// ServeHost offers the FMUs of a server until ctx ends.
func (l *Link) ServeHost(ctx context.Context, s *host.Server) error {
	h := &hostService{link: l, server: s, subs: map[string]*nats.Subscription{}}
	defer h.stop()
	id := s.Status().ID
	if err := errors.Join(h.subscribe(hostID+id, h.accept), h.subscribe(hostList, h.list)); err != nil {
		return err
	}
	if s.Status().Accepts {
		if err := h.subscribe(hostAny, h.offer); err != nil {
			return err
		}
	}
	for {
		want := map[string]bool{}
		for _, o := range s.Offers() {
			want[hashSubject(o.Hash)] = true
		}
		for subject := range want {
			if err := h.subscribe(subject, h.offer); err != nil {
				return err
			}
		}
		for subject, sub := range h.subs {
			if strings.HasPrefix(subject, hostFMU) && !want[subject] {
				delete(h.subs, subject)
				_ = sub.Unsubscribe()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(scanEach):
		}
	}
}

// hostService is a host on a NATS server.
type hostService struct {
	link    *Link
	server  *host.Server
	subs    map[string]*nats.Subscription
	mu      sync.Mutex
	conns   []*natsConn
	stopped bool
	running sync.WaitGroup
}

func (h *hostService) subscribe(subject string, do nats.MsgHandler) error {
	if h.subs[subject] != nil {
		return nil
	}
	sub, err := h.link.conn.Subscribe(subject, do)
	if err == nil {
		h.subs[subject] = sub
		err = h.link.conn.Flush()
	}
	return err
}

func (h *hostService) stop() {
	for _, sub := range h.subs {
		_ = sub.Unsubscribe()
	}
	h.mu.Lock()
	h.stopped = true
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.running.Wait()
}

func (h *hostService) list(m *nats.Msg) {
	data, err := json.Marshal(HostInfo{Status: h.server.Status(), Offers: h.server.Offers()})
	if err == nil {
		_ = m.Respond(data) // nobody else can be told
	}
}

// offer answers a client that looks for a host.
func (h *hostService) offer(m *nats.Msg) {
	s := h.server.Status()
	answer := s.ID
	if s.MaxInstances > 0 && s.Instances >= s.MaxInstances {
		answer = answerFull
	}
	_ = m.Respond([]byte(answer)) // the client asks again
}

// accept makes the connection that a client asks for. The request is the subject for messages to it.
func (h *hostService) accept(m *nats.Msg) {
	c, in, err := newNATSConn(h.link.conn, string(m.Data))
	if err != nil {
		return // the client asks again
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		_ = c.Close()
		return
	}
	h.conns = append(h.conns, c)
	h.running.Go(func() {
		h.server.ServeConn(c, string(m.Data), "")
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conns = slices.DeleteFunc(h.conns, func(o *natsConn) bool { return o == c })
	})
	_ = m.Respond([]byte(in))
}

// HostDialer finds hosts on a NATS server.
type HostDialer struct {
	URL         string
	Credentials Credentials

	mu   sync.Mutex
	link *Link
}

func (d *HostDialer) String() string { return strings.SplitN(d.URL, "?", 2)[0] }

// Several is true: another host may have the FMU as well.
func (d *HostDialer) Several() bool { return true }

func (d *HostDialer) connected() (*Link, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link == nil {
		l, err := Connect(d.URL, d.Credentials)
		if err != nil {
			return nil, err
		}
		d.link = l
	}
	return d.link, nil
}

// Close closes the connection to the server.
func (d *HostDialer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link == nil {
		return nil
	}
	return d.link.Close()
}

// Dial connects to a host that offers an FMU, or else to one that accepts any; or again to a host.
func (d *HostDialer) Dial(ctx context.Context, fmu, again string) (host.Conn, error) {
	l, err := d.connected()
	if err != nil {
		return nil, err
	}
	id := again
	if id == "" {
		full := false
		for _, subject := range []string{hashSubject(fmu), hostAny} {
			some := false
			if id, some, err = l.find(ctx, subject, nil); err != nil || id != "" {
				break
			}
			full = full || some
		}
		switch {
		case err != nil:
			return nil, err
		case id == "" && full:
			return nil, fmt.Errorf("all hosts at %s with this FMU are at the limits of their instances; wait until another run has ended", d)
		case id == "":
			return nil, fmt.Errorf("no host at %s offers this FMU (%s); macrostep host list %s shows what is offered", d, fmu, d)
		}
	}
	in := nats.NewInbox()
	c, err := natsConnOf(l.conn, in, "")
	if err != nil {
		return nil, err
	}
	if c.out, _, err = l.find(ctx, hostID+id, []byte(in)); err == nil && c.out == "" {
		err = errors.New("the host does not answer")
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	go c.ping()
	return c, nil
}

// find makes a request and returns the first answer, "" if there is none, and whether hosts are at their limits.
func (l *Link) find(ctx context.Context, subject string, request []byte) (answer string, full bool, err error) {
	inbox := nats.NewInbox()
	sub, err := l.conn.SubscribeSync(inbox)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := l.conn.PublishRequest(subject, inbox, request); err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
			return "", full, nil
		case err != nil:
			return "", full, err
		case string(m.Data) == answerFull:
			full = true
		case len(m.Data) > 0:
			return string(m.Data), full, nil
		}
	}
}

// Hosts lists the hosts on a server that answer within a second.
func (l *Link) Hosts(ctx context.Context) ([]HostInfo, error) {
	inbox := nats.NewInbox()
	sub, err := l.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	begin := time.Now()
	if err := l.conn.PublishRequest(hostList, inbox, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var out []HostInfo
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break
		}
		i := HostInfo{Trip: time.Since(begin)}
		if len(m.Data) > 0 && json.Unmarshal(m.Data, &i) == nil {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b HostInfo) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	return out, nil
}

// natsConn is a connection between a run and a host by two subjects. Long messages travel in pieces; an empty
// one says that the run is there.
type natsConn struct {
	conn *nats.Conn
	in   *nats.Subscription
	out  string
	most int // bytes of a piece
	buf  []byte
	end  chan struct{}
	once sync.Once
	host bool // the side of the host, which gets pings
}

// newNATSConn makes the side of a host. in is its subject.
func newNATSConn(c *nats.Conn, out string) (_ *natsConn, in string, err error) {
	in = nats.NewInbox()
	n, err := natsConnOf(c, in, out)
	if err == nil {
		n.host = true
		err = c.Flush() // before the run sends
	}
	return n, in, err
}

func natsConnOf(c *nats.Conn, in, out string) (*natsConn, error) {
	sub, err := c.SubscribeSync(in)
	if err != nil {
		return nil, err
	}
	n := &natsConn{conn: c, in: sub, out: out, most: int(c.MaxPayload()), end: make(chan struct{})}
	return n, sub.SetPendingLimits(-1, -1)
}

func (n *natsConn) ping() {
	t := time.NewTicker(pingEach)
	defer t.Stop()
	for {
		select {
		case <-n.end:
			return
		case <-t.C:
			if n.conn.Publish(n.out, nil) != nil {
				return
			}
		}
	}
}

// Send sends a message in pieces.
func (n *natsConn) Send(message []byte) error {
	for piece := range slices.Chunk(message, n.most) {
		if err := n.conn.Publish(n.out, piece); err != nil {
			return err
		}
	}
	return nil
}

// Receive joins the pieces of a message.
func (n *natsConn) Receive(within time.Duration) ([]byte, error) {
	if within == 0 && n.host {
		within = goneAfter
	}
	n.buf = n.buf[:0]
	for {
		m, err := n.in.NextMsg(within)
		switch {
		case errors.Is(err, nats.ErrTimeout):
			return nil, os.ErrDeadlineExceeded
		case err != nil:
			return nil, err
		case len(m.Data) == 0:
			continue
		}
		n.buf = append(n.buf, m.Data...)
		switch size, err := host.MessageSize(n.buf); {
		case err != nil:
			return nil, err
		case size == len(n.buf):
			return n.buf, nil
		case size < len(n.buf):
			return nil, errors.New("a message was damaged on its way")
		}
	}
}

// Close ends the connection on this side.
func (n *natsConn) Close() error {
	n.once.Do(func() { close(n.end) })
	return n.in.Unsubscribe()
}
