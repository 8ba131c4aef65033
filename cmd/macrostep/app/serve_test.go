package app

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master/metrics"
)

// Page and metrics need the token and refuse other host names (page.TestGuard), also on this machine.
func TestServiceToken(t *testing.T) {
	l := &liveRun{}
	if _, err := l.follow(t.Context(), "0", nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.end(nil) }() // without a page there is no error
	m, err := listenMetrics("0")
	if err != nil {
		t.Fatal(err)
	}
	defer serveMetrics(m, metrics.New("rig"))()
	for _, s := range []*service{l.service, m} {
		address, token, _ := strings.Cut(s.url, "?token=")
		if s != m {
			address += "events"
		}
		for _, c := range []struct {
			query, host, bearer string
			want                int
		}{{"?token=" + token, "", "", 200}, {"", "", token, 200}, {"", "", "", 403}, {"", "evil.example:80", token, 403}} {
			r, err := http.NewRequest(http.MethodHead, address+c.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			r.Header.Set("Authorization", "Bearer "+c.bearer)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != c.want {
				t.Errorf("%s%s, host %q, bearer %q: %d", address, c.query, c.host, c.bearer, answer.StatusCode)
			}
		}
	}
}

// A token from the environment is used and not printed.
func TestServiceTokenGiven(t *testing.T) {
	t.Setenv(tokenVariable, "0123456789-abcdef")
	s, err := listen(flagMetrics, "0", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer s.listener.Close()
	if !strings.HasSuffix(s.url, "/metrics?token=$MACROSTEP_TOKEN") || s.guard.Token != "0123456789-abcdef" {
		t.Errorf("%s, %+v", s.url, s.guard)
	}
	for _, bad := range []string{"short", "0123456789 abcdef", "0123456789&abcdef"} {
		t.Setenv(tokenVariable, bad)
		if _, err := listen(flagMetrics, "0", "/metrics"); err == nil || !strings.Contains(err.Error(), tokenVariable) || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Idle connections, and those whose request does not end, are closed.
func TestServiceIdle(t *testing.T) {
	s, err := listen(flagMetrics, "0", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	s.server.IdleTimeout, s.body = 50*time.Millisecond, 50*time.Millisecond
	defer serveMetrics(s, metrics.New("rig"))()
	if s.server.ReadHeaderTimeout <= 0 || s.server.WriteTimeout <= 0 {
		t.Error("a client that neither asks nor reads keeps its connection")
	}
	for _, request := range []string{"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"} {
		c, err := net.Dial("tcp", s.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusForbidden {
			t.Fatal(answer, err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil { // until it is closed
			t.Error(err)
		}
	}
}
