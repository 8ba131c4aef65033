package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/remote"
	"github.com/macrostep/macrostep/fmi/worker"
)

// recorded is a network connection with data that are there from the beginning.
type recorded struct {
	net.Conn
	in  io.Reader
	mu  sync.Mutex
	out bytes.Buffer
}

func (c *recorded) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *recorded) SetReadDeadline(time.Time) error  { return nil }
func (c *recorded) SetWriteDeadline(time.Time) error { return nil }
func (c *recorded) Close() error                     { return nil }

func (c *recorded) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(b)
}

// talk sends data to a server and returns its messages.
func talk(t testing.TB, s *Server, data []byte) (kinds []uint64, replies []reply) {
	c := &recorded{in: bytes.NewReader(data)}
	s.serve(c, newStream(c), "test", "")
	c.mu.Lock()
	defer c.mu.Unlock()
	for in := newStream(&recorded{in: &c.out}); ; in.trust() {
		m, err := in.Receive(0)
		if err != nil {
			return kinds, replies
		}
		kind, _, content, err := open(m)
		var r reply
		if err == nil && kind == kindReply {
			err = json.Unmarshal(content, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds, replies = append(kinds, kind), append(replies, r)
	}
}

func message(kind, number uint64, content []byte) []byte {
	return finish(append(begin(nil, kind, number), content...))
}

func greeting(change func(h *hello)) []byte {
	h := hello{Min: minVersion, Max: version, Calls: remote.Version}
	if change != nil {
		change(&h)
	}
	return message(kindHello, 0, document(h))
}

func testServer(t testing.TB) *Server {
	s, err := NewServer(ServerOptions{Accept: true, Worker: worker.Launcher{TempDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestGreeting(t *testing.T) {
	long := message(kindHello, 0, bytes.Repeat([]byte(" "), maxStranger+1))
	huge := greeting(nil)
	binary.LittleEndian.PutUint32(huge, 1<<30)
	for _, c := range []struct {
		name string
		data []byte
		want code
		text string
	}{
		{"", greeting(nil), "", ""},
		{"newer", greeting(func(h *hello) { h.Min, h.Max = version+1, version+2 }), codeVersion, "the run (macrostep ) speaks 2 to 3"},
		{"newer, but speaks this one", greeting(func(h *hello) { h.Max = version + 1 }), "", ""},
		{"older", greeting(func(h *hello) { h.Min, h.Max = 0, minVersion-1 }), codeVersion, "speaks versions 1 to 1"},
		{"other calls", greeting(func(h *hello) { h.Calls++ }), codeVersion, "version 6 of calls"},
		{"ended session", greeting(func(h *hello) { h.Session = "X" }), codeSession, "does not know this run any more"},
		{"wrong token", greeting(func(h *hello) { h.Token = "X" }), codeToken, "the token is not that of the host"},
		{"another message", message(kindAsk, 0, document(ask{})), codeRefused, "not that of macrostep"},
		{"no JSON", message(kindHello, 0, []byte("{")), codeRefused, "not that of macrostep"},
		{"too long", long, codeRefused, "no greeting"},
		{"huge", huge, codeRefused, "no greeting"},
		{"text", []byte(strings.Repeat("GET / HTTP/1.1\r\n", 10)), codeRefused, "no greeting"},
		{"nothing", nil, codeRefused, "no greeting"},
	} {
		_, replies := talk(t, testServer(t), c.data)
		if len(replies) != 1 || replies[0].Code != c.want || !strings.Contains(replies[0].Error, c.text) ||
			(c.want == "") != (replies[0].Session != "") {
			t.Errorf("%s: %+v", c.name, replies)
		}
	}
}

// An invalid request ends its session. A message that is damaged or twice there, or the end of the connection, do not.
func TestInvalidRequests(t *testing.T) {
	status := message(kindAsk, 1, document(ask{List: true}))
	damaged := bytes.Clone(status)
	damaged[header] ^= 1
	huge := bytes.Clone(status)
	binary.LittleEndian.PutUint32(huge, 1<<31)
	for _, c := range []struct {
		name    string
		data    []byte
		replies int
		stays   bool
	}{
		{"valid", status, 2, true},
		{"twice", append(bytes.Clone(status), status...), 2, true},
		{"damaged", damaged, 1, true},
		{"huge", huge, 1, true},
		{"no JSON", message(kindAsk, 1, []byte("}")), 1, false},
		{"unknown kind", message(77, 1, nil), 1, false},
		{"unknown instance", message(kindRun, 1, remote.AppendParts(nil, []remote.Part{{Instance: 9}})), 1, false},
		{"no parts", message(kindRun, 1, []byte("xxx")), 1, false},
		{"the end", message(kindEnd, 0, nil), 1, false},
	} {
		s := testServer(t)
		_, replies := talk(t, s, append(greeting(nil), c.data...))
		s.mu.Lock()
		n := len(s.sessions)
		s.mu.Unlock()
		if len(replies) != c.replies || (n == 1) != c.stays {
			t.Errorf("%s: %d sessions, %+v", c.name, n, replies)
		}
	}
}

// An FMU that is not what its hash says is not stored.
func TestPieces(t *testing.T) {
	content := []byte("an FMU")
	sum := sha256.Sum256(content)
	hash := "sha256:" + hex.EncodeToString(sum[:])
	for _, c := range []struct {
		name   string
		pieces []sendAsk
		want   string
	}{
		{"valid", []sendAsk{{Hash: hash, Piece: content[:2]}, {Hash: hash, At: 2, Piece: content[2:], Last: true}}, ""},
		{"damaged", []sendAsk{{Hash: hash, Piece: []byte("no FMU"), Last: true}}, "its hash is sha256:"},
		{"a piece is missing", []sendAsk{{Hash: hash, At: 2, Piece: content[2:], Last: true}}, "its hash is sha256:"},
		{"before the begin", []sendAsk{{Hash: hash, At: -1, Piece: content, Last: true}}, "negative"},
		{"no archive", []sendAsk{{Hash: hash, Piece: content, Tree: true, Last: true}}, "zip"},
		{"a path", []sendAsk{{Hash: "../../x", Piece: content, Last: true}}, "is not a hash"},
	} {
		s := testServer(t)
		data := greeting(nil)
		for i, p := range c.pieces {
			p.Name = "x.fmu"
			data = append(data, message(kindAsk, uint64(i+1), document(ask{Send: &p}))...)
		}
		_, replies := talk(t, s, data)
		last := replies[len(replies)-1]
		if len(replies) != 1+len(c.pieces) || (last.Code == "") != (c.want == "") || !strings.Contains(last.Error, c.want) {
			t.Errorf("%s: %+v", c.name, replies)
		}
		if (s.store.sent[hash] != "") != (c.want == "") {
			t.Errorf("%s: stored %v", c.name, s.store.sent)
		}
		if left, err := os.ReadDir(s.store.dir.Path); err != nil || c.want != "" && len(left) > 0 {
			t.Errorf("%s: left %v, %v", c.name, left, err)
		}
	}
}

// A length takes no memory before the data come.
func TestLengthWithoutData(t *testing.T) {
	m := message(kindAsk, 1, nil)
	binary.LittleEndian.PutUint32(m, maxMessage)
	s := newStream(&recorded{in: bytes.NewReader(m)})
	s.trust()
	if _, err := s.Receive(0); err == nil || cap(s.buf) > 1<<17 {
		t.Errorf("%v, %d bytes", err, cap(s.buf))
	}
}

// A message of any length arrives as it was sent.
func TestLengths(t *testing.T) {
	sizes := []int{0, 1, 100, 1<<16 - header, 1 << 16, 3 << 20, 5, 1<<20 + 1}
	content := func(n int) []byte { return bytes.Repeat([]byte{byte(n), 2, 3}, n/3+1)[:n] }
	out := newStream(&recorded{})
	for i, n := range sizes {
		if err := out.Send(message(kindRun, uint64(i), content(n))); err != nil {
			t.Fatal(err)
		}
	}
	in := newStream(&recorded{in: &out.Conn.(*recorded).out})
	in.trust()
	for i, n := range sizes {
		m, err := in.Receive(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, number, got, err := open(m); err != nil || number != uint64(i) || !bytes.Equal(got, content(n)) {
			t.Errorf("message %d: %d, %v", i, number, err)
		}
	}
}

// Two sessions may send an FMU at the same time.
func TestPiecesAtOnce(t *testing.T) {
	content := []byte("an FMU")
	sum := sha256.Sum256(content)
	hash := "sha256:" + hex.EncodeToString(sum[:])
	s := testServer(t)
	for _, p := range []sendAsk{{Hash: hash, Piece: content[:2]}, {Hash: hash, At: 2, Piece: content[2:], Last: true}} {
		if err := errors.Join(s.store.receive("A", &p), s.store.receive("B", &p)); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(s.store.dir.Path); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

// The oldest of too many connections without a greeting has to go.
func TestStrangersBounded(t *testing.T) {
	s := testServer(t)
	var all []net.Conn
	for range maxStrangers + 1 {
		a, b := net.Pipe()
		if all = append(all, b); !s.enter(a) {
			t.Fatal("refused")
		}
		s.running.Done()
	}
	for i, want := range []error{io.EOF, os.ErrDeadlineExceeded} {
		_ = all[i].SetReadDeadline(time.Now().Add(-time.Second)) // fails if it is closed
		if _, err := all[i].Read(make([]byte, 1)); !errors.Is(err, want) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// fake is a host that gives certain answers.
type fake struct {
	answers [][]byte
	stays   bool
	dialed  int
}

func (f *fake) dial(context.Context) (net.Conn, error) {
	if f.dialed++; f.dialed > 1 && !f.stays {
		return nil, errors.New("it is gone")
	}
	return &recorded{in: bytes.NewReader(bytes.Join(f.answers, nil))}, nil
}

// A host that answers nonsense ends the instance with an error.
func TestWrongAnswers(t *testing.T) {
	about := message(kindReply, 0, document(reply{Version: 1, Session: "X", About: &Status{ID: "Y"}}))
	opened := message(kindReply, 1, document(reply{Instance: 1}))
	part := func(number uint64, content string) []byte {
		return message(kindAnswer, 2, remote.AppendParts(nil, []remote.Part{{Instance: number, Message: []byte(content)}}))
	}
	t.Parallel()
	for name, answers := range map[string][][]byte{
		"no description":   {message(kindReply, 0, document(reply{}))},
		"a run, for reply": {about, message(kindAnswer, 1, nil)},
		"no part":          {about, opened, message(kindAnswer, 2, nil)},
		"another part":     {about, opened, part(7, "x")},
		"no end":           {about, opened, part(1|partEnded<<partShift, "}")},
		"reply, for a run": {about, opened, message(kindReply, 2, document(reply{}))},
		"end of file":      {about, opened},
		"end of each file": {about, opened},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{answers: answers, stays: strings.Contains(name, "each")}
			c := newClient(Ticket{Address: "fake"}, f.dial, ClientOptions{Timeout: time.Second})
			l, err := c.Launcher(Place{}).Launch(fmi.Launch{Instance: "c", Log: func([]byte) {}, Output: func(string, bool) {}})
			if err == nil {
				if err = l.Post([]byte("request")); err == nil {
					_, err = l.Await()
				}
				if end := (*fmi.Ended)(nil); !errors.As(err, &end) {
					t.Errorf("%v", err)
				}
			}
			if err == nil || err.Error() == "" {
				t.Errorf("%v", err)
			}
			_ = c.Close()
		})
	}
}

// The answers to requests of several goroutines reach those who asked.
func TestAsksAtOnce(t *testing.T) {
	s := testServer(t)
	a, b := net.Pipe()
	go s.serve(b, newStream(b), "test", "")
	c := newClient(Ticket{Address: "pipe"}, func(context.Context) (net.Conn, error) { return a, nil }, ClientOptions{})
	if _, _, _, err := c.Status(); err != nil {
		t.Fatal(err)
	}
	se := c.session
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for range 50 {
				list := k%2 == 0
				r, err := se.ask(&ask{List: list}, nil)
				if err != nil || (r.About != nil) != list {
					t.Errorf("%v, %+v", err, r)
				}
			}
		})
	}
	all.Wait()
	_ = c.Close()
}

// Wrap changes the connections that a client makes.
func (c *Client) Wrap(wrap func(net.Conn) net.Conn) {
	dial := c.dial
	c.dial = func(ctx context.Context) (net.Conn, error) {
		n, err := dial(ctx)
		if err == nil {
			n = wrap(n)
		}
		return n, err
	}
}

func TestWeight(t *testing.T) {
	place := remote.AppendPlace(nil, fmi2.File{Path: "x"}, "")
	three := remote.AppendGroup(nil, []remote.Part{{Instance: 1, Message: make([]byte, 8)}, {Instance: 2, Message: place}, {Instance: 3}})
	for _, c := range []struct {
		request []byte
		n       int
		loads   bool
	}{{place, 1, true}, {make([]byte, 8), 1, false}, {three, 3, true}, {three[:len(three)-1], 3, true}, {nil, 1, false}} {
		if n, loads := remote.Weight(c.request); n != c.n || loads != c.loads {
			t.Errorf("%x: %d, %v", c.request, n, loads)
		}
	}
}

// FuzzServe sends messages to a host: before a greeting, or after it. The first byte of each is its kind, the second its length.
func FuzzServe(f *testing.F) {
	add := func(greeted bool, parts ...[]byte) {
		var data []byte
		for _, p := range parts {
			data = append(data, byte(binary.LittleEndian.Uint64(p[8:])), byte(min(len(p)-header, 255)))
			data = append(data, p[header:][:min(len(p)-header, 255)]...)
		}
		f.Add(greeted, data)
	}
	hash := "sha256:" + strings.Repeat("0", 64)
	add(false, greeting(nil))
	add(false, greeting(func(h *hello) { h.Session = "X" }), message(kindEnd, 0, nil))
	for _, a := range []ask{{List: true}, {Open: &openAsk{Instance: "c", FMU: "x.fmu", Hash: hash, Timeout: 1}}, {Close: new(uint64)},
		{Send: &sendAsk{Name: "x.fmu", Hash: hash, Piece: []byte("PK"), Last: true}}} {
		add(true, message(kindAsk, 1, document(a)), message(kindEnd, 0, nil))
	}
	add(true, message(kindRun, 1, remote.AppendParts(nil, []remote.Part{{Instance: 1, Message: []byte("x")}})))
	f.Fuzz(func(t *testing.T, greeted bool, data []byte) {
		var wire []byte
		if greeted {
			wire = greeting(nil)
		}
		for number := uint64(1); len(data) >= 2; number++ {
			kind, n := uint64(data[0]), min(int(data[1]), len(data)-2)
			if content := data[2 : 2+n]; kind == 255 {
				wire = append(wire, content...)
			} else {
				wire = append(wire, message(kind, number, content)...)
			}
			data = data[2+n:]
		}
		talk(t, testServer(t), wire)
	})
}
