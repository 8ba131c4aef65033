package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi/worker"
)

// ServerOptions are the options of NewServer.
type ServerOptions struct {
	Name    string   // for messages; "" = the name of the machine
	Program string   // version of the program, for messages
	Folders []string // with the FMUs that are offered
	Accept  bool     // also run FMUs that are sent
	Compile bool     // compile FMUs without a library for this machine
	// MaxInstances bounds the instances at a time; 0 = unlimited.
	MaxInstances int
	// Worker starts the processes. Its limits hold for all instances; clients may ask for lower ones.
	Worker worker.Launcher
	Log    func(text string) // receives a line for each event, without control characters; nil = none
}

// Server runs FMUs for runs on other machines.
type Server struct {
	o     ServerOptions
	id    string
	store *store
	ctx   context.Context // ends with Close
	end   context.CancelFunc

	mu        sync.Mutex
	sessions  map[string]*session // by a number that nobody can guess
	strangers []io.Closer         // connections without a valid greeting, the oldest first
	turned    int                 // connections that were refused since told
	told      time.Time
	instances int
	closed    bool
	running   sync.WaitGroup // connections
}

const (
	// maxStrangers bounds the connections without a valid greeting. One more closes the oldest.
	maxStrangers = 1000
	// helloTime is how long the beginning of a connection may take.
	helloTime = 10 * time.Second
	// refusedPause slows down those who guess tokens.
	refusedPause = 500 * time.Millisecond
	// tellEach is the least time between two messages about refused connections.
	tellEach = time.Minute
)

// NewServer makes a server and lists the FMUs in its folders.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Name == "" {
		o.Name, _ = os.Hostname() // "" is a name too
	}
	log := o.Log
	o.Log = func(text string) {
		if log != nil {
			log(shown(text))
		}
	}
	s := &Server{o: o, id: rand.Text(), sessions: map[string]*session{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	var err error
	s.store, err = newStore(o.Folders, o.Compile, o.Worker.TempDir)
	return s, err
}

// Status describes the server.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{ID: s.id, Name: s.o.Name, Platform: platform, Program: s.o.Program, Instances: s.instances, MaxInstances: s.o.MaxInstances, Accepts: s.o.Accept}
}

// Offers lists the FMUs in the folders of the server.
func (s *Server) Offers() []Offer { return s.store.offers() }

// Serve accepts connections over TCP, with TLS, from clients that know the token, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener, certificate tls.Certificate, token string) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}}
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // for example, there are too many open files
			s.turn("a connection", err.Error())
			time.Sleep(refusedPause)
			continue
		}
		if !s.enter(c) {
			_ = c.Close()
			continue
		}
		go func() {
			defer s.running.Done()
			defer s.meet(c)
			secure := tls.Server(prepare(c), config)
			_ = c.SetDeadline(time.Now().Add(helloTime))
			err := secure.Handshake()
			_ = c.SetDeadline(time.Time{})
			if err != nil {
				s.turn(c.RemoteAddr().String(), err.Error())
				_ = c.Close()
				return
			}
			s.serve(c, newStream(context.Background(), secure, helloTime), c.RemoteAddr().String(), token)
		}()
	}
}

// serve serves a connection, which is a stranger until its greeting, to its end.
func (s *Server) serve(stranger io.Closer, c *stream, from, token string) {
	defer c.Close()
	r, se := s.greet(c, token)
	if se == nil {
		s.turn(from, r.Error)
		_ = c.Send(document(kindReply, r)) // it may be gone
		return
	}
	s.meet(stranger)
	se.serve(r)
}

// turn counts a connection that was refused, and logs the last one now and then.
func (s *Server) turn(from, why string) {
	s.mu.Lock()
	s.turned++
	n, first := s.turned, time.Since(s.told) > tellEach
	if first {
		s.turned, s.told = 0, time.Now()
	}
	s.mu.Unlock()
	switch {
	case first && n > 1:
		s.o.Log(fmt.Sprintf("%d connections were refused, the last from %s: %s", n, from, why))
	case first:
		s.o.Log(fmt.Sprintf("%s: refused: %s", from, why))
	}
}

// enter adds a connection to the strangers, unless the server is closed.
func (s *Server) enter(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	if s.strangers = append(s.strangers, c); len(s.strangers) > maxStrangers {
		_ = s.strangers[0].Close()
		s.strangers = slices.Delete(s.strangers, 0, 1)
	}
	return true
}

// meet removes a connection from the strangers.
func (s *Server) meet(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.strangers, c); i >= 0 {
		s.strangers = slices.Delete(s.strangers, i, i+1)
	}
}

// greet reads a hello and returns the session that it begins; nil = it is refused.
func (s *Server) greet(c *stream, token string) (reply, *session) {
	kind, content, err := c.Receive(maxStranger)
	if err != nil {
		return refusal("", "no greeting: %v", err), nil
	}
	var h hello
	if kind != kindHello || json.Unmarshal(content, &h) != nil {
		return refusal("", "the greeting is not that of macrostep"), nil
	}
	if subtle.ConstantTimeCompare([]byte(h.Token), []byte(token)) != 1 {
		time.Sleep(refusedPause)
		return refusal("copy the file that the host has written (macrostep host prints its name) to this machine, and give it to --on in place of "+
			"the address", "the token is not that of the host"), nil
	}
	if h.Version != version {
		return refusal("run the same version of macrostep on both machines", "host %s (macrostep %s) speaks version %s of the protocol; the run (macrostep %s) speaks %s",
			s.o.Name, s.o.Program, version, h.Program, h.Version), nil
	}
	s.mu.Lock()
	lost := s.sessions[h.Instead]
	s.mu.Unlock()
	if lost != nil {
		lost.abort(true)
		select {
		case <-lost.over:
		case <-time.After(helloTime): // a worker that the system does not end
		}
	}
	about := s.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return refusal("", "host %s ends", s.o.Name), nil
	}
	c.limit = time.Duration(min(max(h.Patience, 1), 24*3600) * float64(time.Second))
	se := &session{server: s, id: rand.Text(), conn: c, slots: map[uint64]*slot{}, over: make(chan struct{})}
	s.sessions[se.id] = se
	return reply{Session: se.id, About: &about}, se
}

// reserve counts a new instance, unless there are too many.
func (s *Server) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.MaxInstances > 0 && s.instances >= s.o.MaxInstances {
		return false
	}
	s.instances++
	return true
}

func (s *Server) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances -= n
}

func (s *Server) forget(se *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, se.id)
}

// launcher returns a launcher with the limits of the server, or lower ones that a client asks for.
func (s *Server) launcher(a *openAsk) *worker.Launcher {
	l := s.o.Worker
	if t := time.Duration(a.Timeout * float64(time.Second)); t > 0 && (l.Timeout == 0 || t < l.Timeout) {
		l.Timeout = t
	}
	if a.Memory > 0 && (l.Memory == 0 || a.Memory < l.Memory) {
		l.Memory = a.Memory
	}
	return &l
}

// Close ends all sessions and removes temporary files.
func (s *Server) Close() error {
	s.end()
	s.mu.Lock()
	s.closed = true
	for _, se := range s.sessions {
		go se.abort(false) // one that does not read waits
	}
	for _, c := range s.strangers {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	return s.store.close()
}

// nameOf returns the name of an instance for messages.
func (a *openAsk) nameOf() string { return fmt.Sprintf("%s (%s)", a.Instance, cmp.Or(a.Model, a.FMU)) }
