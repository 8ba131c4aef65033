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
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/internal/capi"
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

// talk sends data to a server and returns its replies.
func talk(t testing.TB, s *Server, data []byte) (kinds []uint64, replies []reply) {
	c := &recorded{in: bytes.NewReader(data)}
	s.serve(c, newStream(t.Context(), c, helloTime), "test", "")
	c.mu.Lock()
	defer c.mu.Unlock()
	for in := newStream(t.Context(), &recorded{in: &c.out}, time.Second); ; {
		kind, content, err := in.Receive(remote.MaxMessage)
		if err != nil {
			return kinds, replies
		}
		var r reply
		if kind == kindReply {
			err = json.Unmarshal(content, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if kind != kindAlive {
			kinds, replies = append(kinds, kind), append(replies, r)
		}
	}
}

func message(kind uint64, content []byte) []byte {
	return remote.EndFrame(append(remote.BeginFrame(nil, kind), content...))
}

func greeting(change func(h *hello)) []byte {
	h := hello{Version: version, Patience: 10}
	if change != nil {
		change(&h)
	}
	return document(kindHello, h)
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
	huge := greeting(nil)
	binary.LittleEndian.PutUint64(huge[8:], 1<<30)
	for _, c := range []struct {
		name string
		data []byte
		text string
	}{
		{"", greeting(nil), ""},
		{"another version", greeting(func(h *hello) { h.Version, h.Program = "77.1", "v9" }), "speaks version " + version + " of the protocol; the run (macrostep v9) speaks 77.1"},
		{"wrong token", greeting(func(h *hello) { h.Token = "X" }), "the token is not that of the host"},
		{"another message", document(kindAsk, ask{}), "not that of macrostep"},
		{"no JSON", message(kindHello, []byte("{")), "not that of macrostep"},
		{"too long", message(kindHello, bytes.Repeat([]byte(" "), maxStranger+1)), "no greeting"},
		{"huge", huge, "no greeting"},
		{"text", []byte(strings.Repeat("GET / HTTP/1.1\r\n", 10)), "no greeting"},
		{"nothing", nil, "no greeting"},
	} {
		_, replies := talk(t, testServer(t), c.data)
		if len(replies) != 1 || (replies[0].Error == "") != (c.text == "") || !strings.Contains(replies[0].Error, c.text) ||
			(c.text == "") != (replies[0].About != nil) {
			t.Errorf("%s: %+v", c.name, replies)
		}
	}
}

// An invalid request ends its session, as does the end of the connection.
func TestInvalidRequests(t *testing.T) {
	status := document(kindAsk, ask{List: true})
	huge := bytes.Clone(status)
	binary.LittleEndian.PutUint64(huge[8:], 1<<40)
	for _, c := range []struct {
		name    string
		data    []byte
		replies int
		log     string
	}{
		{"valid", status, 2, ""},
		{"twice", append(bytes.Clone(status), status...), 3, ""},
		{"huge", huge, 1, ""},
		{"cut", status[:len(status)-1], 1, ""},
		{"no JSON", message(kindAsk, []byte("}")), 1, "invalid request"},
		{"unknown kind", message(77, nil), 1, "invalid request"},
		{"a piece of nothing", message(kindPiece, []byte("x")), 1, "invalid request"},
		{"unknown instance", message(kindRun, remote.AppendParts(nil, []remote.Part{{Instance: 9}})), 1, "invalid request"},
		{"no parts", message(kindRun, []byte("xxx")), 1, "invalid request"},
	} {
		s := testServer(t)
		var log []string
		s.o.Log = func(text string) { log = append(log, text) }
		_, replies := talk(t, s, append(greeting(nil), c.data...))
		if len(replies) != c.replies || len(s.sessions) != 0 || !strings.Contains(strings.Join(log, ""), c.log) || c.log == "" && log != nil {
			t.Errorf("%s: %d sessions, %+v, %q", c.name, len(s.sessions), replies, log)
		}
	}
}

// hashOf is the hash of an FMU.
func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// An FMU that is not what its hash says, or does not come whole, is not stored, and nothing of it is left.
func TestPieces(t *testing.T) {
	content := []byte("an FMU")
	hash := hashOf(content)
	valid := sendAsk{Hash: hash, Size: 6}
	for _, c := range []struct {
		name   string
		ask    sendAsk
		pieces []string
		want   string
	}{
		{"valid", valid, []string{"an", " FMU"}, ""},
		{"damaged", valid, []string{"no FMU"}, "its hash is sha256:"},
		{"too long", valid, []string{"an", " FMU and more"}, "longer than the 6 bytes"},
		{"incomplete", valid, []string{"an"}, "(none)"},
		{"empty", sendAsk{Hash: hash}, nil, "its size is said to be 0 bytes"},
		{"a size near the largest", sendAsk{Hash: hash, Size: 1<<63 - 1}, nil, "of which others take 0"},
		{"a size of 40 GiB", sendAsk{Hash: hash, Size: 40 << 30}, nil, "the host has 17179869184 for FMUs that are sent, of which others take 0"},
		{"no archive", sendAsk{Hash: hash, Size: 6, Tree: true}, []string{"an FMU"}, "zip"},
		{"a path", sendAsk{Hash: "../../x", Size: 6}, nil, "is not a hash"},
	} {
		s := testServer(t)
		c.ask.Name = "x.fmu"
		data := append(greeting(nil), document(kindAsk, ask{Send: &c.ask})...)
		for _, p := range c.pieces {
			data = append(data, message(kindPiece, []byte(p))...)
		}
		_, replies := talk(t, s, data)
		last := replies[len(replies)-1]
		if len(replies) != 2+len(c.pieces) || c.want != "(none)" && (last.Error == "") != (c.want == "") ||
			c.want != "(none)" && !strings.Contains(last.Error, c.want) || strings.Contains(last.Error, "/") {
			t.Errorf("%s: %+v", c.name, replies)
		}
		if (s.store.known[hash] != nil) != (c.want == "") || c.want != "" && s.store.taken != 0 {
			t.Errorf("%s: stored %v, %d bytes", c.name, s.store.known, s.store.taken)
		}
		if s.store.dir == nil {
			continue
		}
		if left, err := os.ReadDir(s.store.dir.Path); err != nil || c.want != "" && len(left) > 0 {
			t.Errorf("%s: left %v, %v", c.name, left, err)
		}
	}
}

// FMUs that nobody uses go when another needs their room. Those in use stay.
func TestRoom(t *testing.T) {
	s := testServer(t).store
	s.most = 20
	send := func(content string) error {
		u, err := s.receive(&sendAsk{Name: "x.fmu", Hash: hashOf([]byte(content)), Size: int64(len(content))})
		if err == nil {
			_, err = u.write([]byte(content))
		}
		return err
	}
	for _, content := range []string{"first.....", "first.....", "second...."} { // one that is there already takes nothing
		if err := send(content); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.known) != 2 || s.taken != 20 {
		t.Errorf("%d FMUs, %d bytes", len(s.known), s.taken)
	}
	used := s.use(hashOf([]byte("first.....")))
	used.FMU = &fmi.FMU{}
	if err := send("third....."); err != nil || s.known[used.hash] == nil || len(s.known) != 2 || s.taken != 20 {
		t.Errorf("%v, %v, %d bytes", err, s.known, s.taken)
	}
	if _, err := s.receive(&sendAsk{Name: "x.fmu", Hash: used.hash, Size: 1<<63 - 1}); err == nil || s.taken != 20 {
		t.Errorf("%v, %d bytes", err, s.taken)
	}
	if err := send("fourth, too long"); err == nil || !strings.Contains(err.Error(), "of which others take 10") {
		t.Error(err)
	}
}

// A length takes no memory before the data come.
func TestLengthWithoutData(t *testing.T) {
	m := message(kindAsk, nil)
	binary.LittleEndian.PutUint64(m[8:], remote.MaxMessage)
	s := newStream(t.Context(), &recorded{in: bytes.NewReader(m)}, time.Second)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := s.Receive(remote.MaxMessage)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; err == nil || grown > 1<<20 {
		t.Errorf("%v, %d bytes", err, grown)
	}
}

// A message of any length arrives as it was sent, and long ones stay valid.
func TestLengths(t *testing.T) {
	sizes := []int{0, 1, 100, remote.Usual - 16, remote.Usual, remote.Usual + 1, 3 << 20, 5, 1<<20 + 1, 0, 7 << 20}
	content := func(n int) []byte { return bytes.Repeat([]byte{byte(n), 2, 3}, n/3+1)[:n] }
	out := newStream(t.Context(), &recorded{}, time.Minute)
	for i, n := range sizes {
		if err := out.Send(message(uint64(i), content(n))); err != nil {
			t.Fatal(err)
		}
	}
	in := newStream(t.Context(), &recorded{in: &odd{in: &out.Conn.(*recorded).out}}, time.Minute)
	var long [][]byte
	for i, n := range sizes {
		kind, got, err := in.Receive(remote.MaxMessage)
		if err != nil || kind != uint64(i) || !bytes.Equal(got, content(n)) {
			t.Errorf("message %d: %d, %d bytes, %v", i, kind, len(got), err)
		}
		if n > remote.Usual {
			long = append(long, got)
		}
	}
	for _, m := range long {
		if !bytes.Equal(m, content(len(m))) {
			t.Errorf("a message of %d bytes has changed", len(m))
		}
	}
}

// odd reads odd numbers of bytes.
type odd struct {
	in    io.Reader
	count int
}

func (o *odd) Read(b []byte) (int, error) {
	o.count = (o.count*7 + 13) % 50_000
	return o.in.Read(b[:min(len(b), 1+o.count)])
}

// A reader copies a message of n bytes fewer than three times, in however many pieces it comes.
func TestLinear(t *testing.T) {
	const n = 64 << 20
	f := remote.Frames{R: iotest.HalfReader(&odd{in: io.MultiReader(bytes.NewReader(func() []byte {
		m := message(1, nil)
		binary.LittleEndian.PutUint64(m[8:], n)
		return m
	}()), io.LimitReader(zeros{}, n))})}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, m, err := f.Next(n)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; err != nil || len(m) != n || grown > 3*n {
		t.Errorf("%d bytes, %v, %d bytes allocated", len(m), err, grown)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
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
	dialed  int
}

func (f *fake) dial(context.Context) (net.Conn, error) {
	if f.dialed++; f.dialed > 1 {
		return nil, &RefusedError{Reason: "it is gone"}
	}
	return &recorded{in: bytes.NewReader(bytes.Join(f.answers, nil))}, nil
}

// A host that answers nonsense ends the instance with an error that blames the host.
func TestWrongAnswers(t *testing.T) {
	about := document(kindReply, reply{About: &Status{ID: "Y"}})
	opened := document(kindReply, reply{Instance: 1})
	part := func(number uint64, content string) []byte {
		return message(kindAnswer, remote.AppendParts(nil, []remote.Part{{Instance: number, Message: []byte(content)}}))
	}
	huge := message(kindAnswer, nil)
	binary.LittleEndian.PutUint64(huge[8:], remote.MaxTexts+1000)
	for name, c := range map[string]struct {
		answers [][]byte
		want    string
	}{
		"no description":   {[][]byte{document(kindReply, reply{})}, "not a host of this version"},
		"forged lines":     {[][]byte{document(kindReply, reply{Error: "no\nrun complete\x1b[2J", Remedy: "a\rb"})}, `fake: no\x0arun complete\x1b[2J; a\x0db`},
		"a run, for reply": {[][]byte{about, message(kindAnswer, nil)}, "host fake was lost: an invalid message has come"},
		"no part":          {[][]byte{about, opened, message(kindAnswer, nil)}, "not this request"},
		"another part":     {[][]byte{about, opened, part(7, "x")}, "not this request"},
		"half a part":      {[][]byte{about, opened, message(kindAnswer, []byte("xxx"))}, "an invalid message has come"},
		"no end":           {[][]byte{about, opened, part(1|partEnded<<partShift, "}")}, "an invalid message has come"},
		"reply, for a run": {[][]byte{about, opened, document(kindReply, reply{})}, "an invalid message has come"},
		"too long":         {[][]byte{about, opened, huge}, "an invalid message has come: it has 67109864 bytes, of at most 17825792"},
		"end of file":      {[][]byte{about, opened}, "closed the connection"},
	} {
		f := &fake{answers: c.answers}
		client := newClient(Ticket{Address: "fake"}, f.dial, ClientOptions{Timeout: time.Second})
		l, err := client.Launcher(Place{}).Launch(fmi.Launch{Instance: "c", Log: func([]byte) {}, Output: func(string, bool) {}})
		if err == nil {
			if err = l.Post([]byte("request"), 100); err == nil {
				_, err = l.Await()
			}
			if end := (*fmi.Ended)(nil); !errors.As(err, &end) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		_ = client.Close()
	}
	f := &fake{answers: [][]byte{about, document(kindReply, reply{})}}
	if _, _, _, err := newClient(Ticket{Address: "fake"}, f.dial, ClientOptions{}).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "an invalid message") {
		t.Errorf("a list without a description: %v", err)
	}
}

// The answers to requests of several goroutines reach those who asked.
func TestAsksAtOnce(t *testing.T) {
	s := testServer(t)
	a, b := net.Pipe()
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		s.serve(b, newStream(t.Context(), b, helloTime), "test", "")
	}()
	c := newClient(Ticket{Address: "pipe"}, func(context.Context) (net.Conn, error) { return a, nil }, ClientOptions{})
	if _, _, _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	se := c.session
	t.Cleanup(func() { _ = c.Close() })
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for range 50 {
				list := k%2 == 0
				r, err := se.ask(t.Context(), &ask{List: list})
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
	place := remote.AppendPlace(nil, capi.File{Path: "x"}, "")
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
			data = append(data, p[0], byte(min(len(p)-16, 255)))
			data = append(data, p[16:][:min(len(p)-16, 255)]...)
		}
		f.Add(greeted, data)
	}
	hash := "sha256:" + strings.Repeat("0", 64)
	add(false, greeting(nil))
	for _, a := range []ask{{List: true}, {Open: &openAsk{Instance: "c", FMU: "x.fmu", Hash: hash, Timeout: 1}}, {Close: new(uint64)}} {
		add(true, document(kindAsk, a))
	}
	add(true, document(kindAsk, ask{Send: &sendAsk{Name: "x.fmu", Hash: hash, Size: 2}}), message(kindPiece, []byte("PK")))
	add(true, message(kindRun, remote.AppendParts(nil, []remote.Part{{Instance: 1, Message: []byte("x")}})))
	f.Fuzz(func(t *testing.T, greeted bool, data []byte) {
		var wire []byte
		if greeted {
			wire = greeting(nil)
		}
		for len(data) >= 2 {
			kind, n := uint64(data[0]), min(int(data[1]), len(data)-2)
			if content := data[2 : 2+n]; kind == 255 {
				wire = append(wire, content...)
			} else {
				wire = append(wire, message(kind, content)...)
			}
			data = data[2+n:]
		}
		talk(t, testServer(t), wire)
	})
}
