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
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi/internal/remote"
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
	Log    func(text string) // receives a line for each event; nil = none
}

// Server runs FMUs for runs on other machines.
type Server struct {
	o     ServerOptions
	id    string
	store *store

	mu        sync.Mutex
	sessions  map[string]*session
	strangers []io.Closer // connections without a valid greeting, the oldest first
	instances int
	closed    bool
	running   sync.WaitGroup // connections
}

// maxStrangers bounds the connections without a valid greeting. One more closes the oldest.
const maxStrangers = 100

// NewServer makes a server and lists the FMUs in its folders.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Name == "" {
		o.Name, _ = os.Hostname() // "" is a name too
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	s := &Server{o: o, id: rand.Text(), sessions: map[string]*session{}}
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
			s.o.Log(fmt.Sprintf("a connection was not accepted: %v", err))
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
			secure := tls.Server(quick(c), config)
			_ = c.SetDeadline(time.Now().Add(helloTime))
			err := secure.Handshake()
			_ = c.SetDeadline(time.Time{})
			if err != nil {
				s.o.Log(fmt.Sprintf("%v: refused: %v", c.RemoteAddr(), err))
				_ = c.Close()
				return
			}
			s.serve(c, newStream(secure), c.RemoteAddr().String(), token)
		}()
	}
}

// helloTime is how long the beginning of a connection may take.
const helloTime = 10 * time.Second

// refusedPause slows down those who guess tokens.
const refusedPause = 500 * time.Millisecond

// serve serves a connection, which is a stranger until its greeting, to its end.
func (s *Server) serve(stranger io.Closer, c *stream, from, token string) {
	defer c.Close()
	r, se := s.greet(c, token)
	if r.Code != "" {
		s.o.Log(fmt.Sprintf("%s: refused: %s", from, r.Error))
	}
	if r.Code == codeToken {
		time.Sleep(refusedPause)
	}
	if se == nil {
		_ = c.Send(finish(append(begin(nil, kindReply, 0), document(r)...)))
		return
	}
	s.meet(stranger)
	c.trust()
	se.serve(c, r)
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

// greet reads a hello and returns the session that it begins or goes on with; nil = it is refused.
func (s *Server) greet(c *stream, token string) (reply, *session) {
	m, err := c.Receive(helloTime)
	if err != nil {
		return errorReply(codeRefused, "", "no greeting: %v", err), nil
	}
	kind, _, content, err := open(m)
	var h hello
	if err != nil || kind != kindHello || json.Unmarshal(content, &h) != nil {
		return errorReply(codeRefused, "", "the greeting is not that of macrostep"), nil
	}
	if subtle.ConstantTimeCompare([]byte(h.Token), []byte(token)) != 1 {
		return errorReply(codeToken, "", "the token is not that of the host"), nil
	}
	if h.Max < minVersion || h.Min > version || h.Calls != remote.Version {
		return errorReply(codeVersion, "run the same version of macrostep on both machines",
			"host %s (macrostep %s) speaks versions %d to %d of the protocol, with version %d of calls; the run (macrostep %s) speaks %d to %d, with %d",
			s.o.Name, s.o.Program, minVersion, version, remote.Version, h.Program, h.Min, h.Max, h.Calls), nil
	}
	about := s.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	se := s.sessions[h.Session]
	switch {
	case s.closed:
		return errorReply(codeRefused, "", "host %s ends", s.o.Name), nil
	case h.Session != "" && se == nil:
		return errorReply(codeSession, "", "host %s does not know this run any more", s.o.Name), nil
	case se == nil:
		se = &session{server: s, id: rand.Text(), grace: time.Duration(min(max(h.Grace, 1), 24*3600) * float64(time.Second)),
			slots: map[uint64]*slot{}, ended: make(chan struct{})}
		s.sessions[se.id] = se
	}
	return reply{Version: min(h.Max, version), Session: se.id, About: &about}, se
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
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Values(s.sessions))
	for _, c := range s.strangers {
		_ = c.Close()
	}
	s.mu.Unlock()
	for _, se := range all {
		se.end("the host ends")
	}
	s.running.Wait()
	return s.store.close()
}

// nameOf returns the name of an instance for messages.
func (a *openAsk) nameOf() string { return fmt.Sprintf("%s (%s)", a.Instance, cmp.Or(a.Model, a.FMU)) }
