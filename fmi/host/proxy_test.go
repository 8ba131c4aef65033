package host_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/host"
)

// proxy is a network between a client and a host, with faults.
type proxy struct {
	net.Listener
	target string
	down   atomic.Bool // connections are refused
	half   atomic.Bool // the host does not see that a connection ends

	mu    sync.Mutex
	conns []net.Conn
	fault [2]func(data []byte) (pass []byte, cut bool) // of the next data to the host, and from it; nil = none
	mute  bool                                         // everything is lost
}

const (
	toHost = iota
	fromHost
)

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{Listener: l, target: target}
	t.Cleanup(func() { _ = l.Close(); p.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if p.down.Load() {
				_ = c.Close()
				continue
			}
			go p.join(c)
		}
	}()
	return p
}

func (p *proxy) join(c net.Conn) {
	h, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = c.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, c, h)
	p.mu.Unlock()
	go p.copy(c, h, fromHost)
	p.copy(h, c, toHost)
}

func (p *proxy) copy(to, from net.Conn, way int) {
	defer func() {
		if !p.half.Load() {
			_, _ = to.Close(), from.Close()
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		data, cut := p.pass(buf[:n], way)
		if _, err := to.Write(data); err != nil || cut {
			return
		}
	}
}

func (p *proxy) pass(data []byte, way int) (pass []byte, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pass = data
	if f := p.fault[way]; f != nil {
		p.fault[way] = nil
		pass, cut = f(data)
	}
	if p.mute {
		pass = nil
	}
	return pass, cut
}

// set arms a fault for the next data of a way.
func (p *proxy) set(way int, f func(data []byte) ([]byte, bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault[way] = f
}

// silence loses everything from now on, or no more.
func (p *proxy) silence(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = on
}

// cut ends all connections, or the client's halves of them.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.conns {
		if i%2 == 0 || !p.half.Load() {
			_ = c.Close()
		}
	}
	if !p.half.Load() {
		p.conns = nil
	}
}

// Faults of a proxy. Those that cut pass so many bytes of a message, which with TLS never are a whole one.
func cutAfter(n int) func([]byte) ([]byte, bool) {
	return func(data []byte) ([]byte, bool) { return data[:min(n, len(data)-1)], true }
}

func damage(data []byte) ([]byte, bool) {
	data[len(data)/2] ^= 1
	return data, false
}

func delay(data []byte) ([]byte, bool) {
	time.Sleep(20 * time.Millisecond)
	return data, false
}

// redirect copies a ticket with another address.
func redirect(t testing.TB, ticket, address string) string {
	t.Helper()
	return changed(t, ticket, func(k *host.Ticket) { k.Address = address })
}

// changed copies a ticket with a change.
func changed(t testing.TB, ticket string, change func(*host.Ticket)) string {
	t.Helper()
	data, err := os.ReadFile(ticket)
	must(t, err)
	var k host.Ticket
	must(t, json.Unmarshal(data, &k))
	change(&k)
	data, err = json.Marshal(k)
	must(t, err)
	path := filepath.Join(t.TempDir(), "ticket.json")
	must(t, os.WriteFile(path, data, 0o600))
	return path
}

// dialed makes a client for a ticket.
func dialed(t testing.TB, ticket string, o host.ClientOptions) *host.Client {
	t.Helper()
	c, err := host.NewClient(ticket, "", o)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
