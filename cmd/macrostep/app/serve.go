package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/macrostep/macrostep/master/results/page"
)

// listenTo returns the address of a service as HOST:PORT; without HOST it is for this machine only.
func listenTo(flag, text string) (address string, err error) {
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("--%s: %q is neither HOST:PORT nor a port", flag, text)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// service serves a run until it ends, to clients that send its token.
type service struct {
	url      string
	guard    page.Guard
	listener net.Listener
	server   *http.Server
	body     time.Duration // limit for the body of a request
	done     chan struct{} // closed at the end of the service
}

// tokenVariable names the environment variable with a token for all runs, for programs that need to know
// it in advance.
const tokenVariable = "MACROSTEP_TOKEN"

// tokenForm matches tokens that are valid in an address and hard to guess.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{16,}$`)

// listen listens at the address of a flag, for a service at a path.
func listen(flag, text, path string) (*service, error) {
	address, err := listenTo(flag, text)
	if err != nil {
		return nil, err
	}
	token := os.Getenv(tokenVariable)
	if token != "" && !tokenForm.MatchString(token) {
		return nil, fmt.Errorf("--%s: the token in %s must have at least 16 letters, digits or . _ ~ -", flag, tokenVariable)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w; choose another port, or 0 for a free one", flag, err)
	}
	at := l.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if name, err := os.Hostname(); err == nil && at.IP.IsUnspecified() {
		host = name
	}
	s := &service{
		url:      "http://" + net.JoinHostPort(host, strconv.Itoa(at.Port)) + path,
		guard:    page.Guard{Token: token, Local: at.IP.IsLoopback()},
		listener: l, body: 10 * time.Second, done: make(chan struct{}),
		server: &http.Server{ // disconnects idle and stalled clients
			ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 1 << 16,
		},
	}
	if token != "" { // the user knows it, and others may read what is printed
		s.url += "?token=$" + tokenVariable
		return s, nil
	}
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	s.guard.Token = hex.EncodeToString(secret[:])
	s.url += "?token=" + s.guard.Token
	return s, nil
}

// serve answers requests with h until stop.
func (s *service) serve(h http.Handler) {
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.body)) // the server can
		}
		h.ServeHTTP(w, r)
	})
	go func() {
		defer close(s.done)
		_ = s.server.Serve(s.listener) // it ends by stop; clients see any other error
	}()
}

// stop ends the service. Open connections get one second.
func (s *service) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if errors.Is(s.server.Shutdown(ctx), context.DeadlineExceeded) {
		_ = s.server.Close()
	}
	<-s.done
}
