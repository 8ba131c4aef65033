package page

import (
	"bufio"
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// still is a run that only does what it is told.
type still struct {
	mu      sync.Mutex
	told    []string
	changed chan struct{}
}

func (s *still) Page(context.Context) (*Page, float64, float64, error) {
	return &Page{Title: "run", Sections: []Section{{Title: "Results", Groups: []Group{{Plots: []Plot{{Name: "a.x", Lines: []Curve{{T: []float64{0}, V: []float64{1}}}}}}}}}}, 0, 0, nil
}
func (s *still) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.told) > 0 && s.told[len(s.told)-1] == "pause" {
		return State{"paused", "t = 1", 0.5}
	}
	return State{"running", "t = 1", 0.5}
}
func (s *still) Follow() func() ([]Update, float64) {
	given := false
	return func() ([]Update, float64) {
		if given {
			return nil, 0
		}
		given = true
		return []Update{{0, 0, []float64{0, 1}, []float64{1, math.NaN()}}, {2, 5, []float64{}, []float64{}}}, 1.5
	}
}
func (s *still) Command(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, name)
	close(s.changed)
	s.changed = make(chan struct{})
}
func (s *still) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// request sends a request with a header and returns its status and body.
func request(t *testing.T, server *httptest.Server, method, path, host string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	for k := 0; k+1 < len(header); k += 2 {
		r.Header.Set(header[k], header[k+1])
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// Commands need a header, the right origin, a local host and the token.
func TestLiveRequests(t *testing.T) {
	for _, token := range []string{"", "secret"} {
		s := &still{changed: make(chan struct{})}
		server := httptest.NewServer(NewLive(s, Guard{Token: token}))
		defer server.Close()
		query := ""
		if token != "" {
			query = "?token=" + token
		}
		for _, tt := range []struct {
			method, path, header string
			want                 int
		}{
			{"GET", "/" + query, "", 200}, {"POST", "/command/pause" + query, "1", 204}, {"POST", "/command/step" + query, "1", 204},
			{"POST", "/command/pause" + query, "", 403}, {"GET", "/command/pause" + query, "1", 404}, {"POST", "/command/rm" + query, "1", 404},
			{"POST", "/" + query, "1", 405}, {"GET", "/etc/passwd" + query, "", 404}, {"GET", "/../../etc/passwd" + query, "", 404},
			{"HEAD", "/" + query, "", 200}, {"HEAD", "/events" + query, "", 200}, {"PUT", "/events" + query, "", 405},
		} {
			if code, body := request(t, server, tt.method, tt.path, "", "X-Macrostep", tt.header); code != tt.want {
				t.Errorf("token %q: %s %s gives %d: %s", token, tt.method, tt.path, code, body)
			}
		}
		// Pages of other sites send their own origin.
		for from, want := range map[string]int{"": 204, server.URL: 204, "http://evil.example": 403, "null": 403, "http://127.0.0.1:1": 403, "%": 403} {
			code, _ := request(t, server, http.MethodPost, "/command/step"+query, "", "X-Macrostep", "1", "Origin", from)
			if code != want {
				t.Errorf("from %q: %d", from, code)
			}
		}
		if !slices.Equal(s.told, []string{"pause", "step", "step", "step"}) {
			t.Errorf("the run was told %v", s.told)
		}
		if token == "" {
			// Names of other sites that resolve to this machine.
			for host, want := range map[string]int{"evil.example": 403, "evil.example:80": 403, "localhost:1": 200, "LocalHost:1": 200, "[::1]:1": 200, "127.0.0.1": 200} {
				if code, _ := request(t, server, "GET", "/", host); code != want {
					t.Errorf("host %s: %d", host, code)
				}
			}
			continue
		}
		for _, path := range []string{"/", "/events", "/?token=", "/?token=secrets", "/events?token=Secret"} {
			if code, body := request(t, server, "GET", path, ""); code != 403 || strings.Contains(body, token) {
				t.Errorf("%s: %d", path, code)
			}
		}
	}
}

// pipe is the answer to a request that goes on.
type pipe struct {
	*io.PipeWriter
	header http.Header
}

func (p *pipe) Header() http.Header { return p.header }
func (p *pipe) WriteHeader(int)     {}
func (p *pipe) Flush()              {}

// follow asks for the events of a run, without a network, so that the clock of a test may
// be one that only waiting moves.
func follow(l *Live) *bufio.Scanner {
	r, w := io.Pipe()
	go func() {
		l.ServeHTTP(&pipe{w, http.Header{}}, httptest.NewRequest("GET", "http://localhost/events", nil))
		w.Close()
	}()
	return bufio.NewScanner(r)
}

// asked sends a request that is answered at once.
func asked(l *Live, method, path string) (int, string) {
	r := httptest.NewRequest(method, "http://localhost"+path, nil)
	r.Header.Set("X-Macrostep", "1")
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A page that does not answer any more leaves its place; one that does stays.
func TestLiveAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLive(&still{changed: make(chan struct{})}, Guard{})
		begin := time.Now()
		stays := func(answers bool) time.Duration {
			in, alive := follow(l), false
			for in.Scan() {
				if name, ok := strings.CutPrefix(in.Text(), "data: "); ok && alive && answers {
					if code, body := asked(l, "POST", "/alive/"+name); code != 204 {
						t.Errorf("%d: %s", code, body)
					}
				}
				alive = in.Text() == "event: alive"
			}
			return time.Since(begin)
		}
		var answering time.Duration
		done := make(chan struct{})
		go func() { answering = stays(true); close(done) }()
		if silent := stays(false); silent < patience || silent > 2*patience {
			t.Errorf("a silent page is dropped after %v", silent)
		}
		time.Sleep(10 * patience)
		l.mu.Lock()
		if l.open != 1 || len(l.heard) != 1 {
			t.Errorf("%d follow, %v", l.open, l.heard)
		}
		l.mu.Unlock()
		close(l.ended)
		if <-done; answering < 10*patience {
			t.Errorf("a page that answers is dropped after %v", answering)
		}
	})
}

// What a page is told, in order; at the end it fetches the last page, for which the run waits.
func TestLiveEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &still{changed: make(chan struct{})}
		l := NewLive(s, Guard{})
		in := follow(l)
		next := func(want string) {
			t.Helper()
			var got []string
			for in.Scan() && in.Text() != "" {
				got = append(got, in.Text())
			}
			if strings.Join(got, "|") != want {
				t.Fatalf("%q, not %q", got, want)
			}
		}
		next(`event: state|data: {"state":"running","text":"t = 1","done":0.5}`)
		next(`event: points|data: {"to":1.5,"plots":[[0,0,[0,1],[1,null]],[2,5,[],[]]]}`)
		s.Command("pause")
		next(`event: state|data: {"state":"paused","text":"t = 1","done":0.5}`)
		ended := make(chan error, 1)
		go func() { ended <- l.End(t.Context(), &Page{Title: "whole"}) }()
		next(`event: end|data: {}`)
		time.Sleep(farewell / 2)
		select {
		case <-ended:
			t.Error("the run does not wait for its page")
		default:
		}
		if code, body := asked(l, "GET", "/"); code != 200 || !strings.Contains(body, "<h1>whole</h1>") || strings.Contains(body, "progress id") {
			t.Errorf("%d: %s", code, body)
		}
		synctest.Wait()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the run waits although its page is fetched")
		}
	})
}

// A run that ends before anybody has loaded its page waits for the first reader.
func TestLiveWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		at, want time.Duration
		do       func(l *Live, cancel func())
	}{
		"loaded":    {Unseen / 2, Unseen / 2, func(l *Live, _ func()) { asked(l, "GET", "/") }},
		"looked at": {Unseen / 2, Unseen, func(l *Live, _ func()) { asked(l, "HEAD", "/") }},
		"cancelled": {Unseen / 3, Unseen / 3, func(_ *Live, cancel func()) { cancel() }},
		"ended":     {-1, linger, func(l *Live, _ func()) { asked(l, "GET", "/") }}, // loaded before the end
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := NewLive(&still{changed: make(chan struct{})}, Guard{})
			if tt.at < 0 {
				tt.do(l, cancel)
			} else {
				go func() { time.Sleep(tt.at); tt.do(l, cancel) }()
			}
			begin := time.Now()
			if err := l.End(ctx, &Page{Title: "whole"}); err != nil || time.Since(begin) != tt.want {
				t.Errorf("%s: the page waits %v, %v", name, time.Since(begin), err)
			}
			time.Sleep(time.Minute)
		})
	}
}
