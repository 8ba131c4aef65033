package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// State is the progress of a run.
type State struct {
	State string  `json:"state"` // running or paused
	Text  string  `json:"text"`  // in a few words
	Done  float64 `json:"done"`  // 0 to 1
}

// Update is a change of a plot: the page keeps its first Keep points and appends T and V. V is NaN
// where the line breaks.
type Update struct {
	Plot, Keep int // Plot is the index of a plot in the page
	T, V       []float64
}

// Source is a run in progress. Its methods are called from several goroutines.
type Source interface {
	// Page returns the current page and the time range (s) of its plots. It waits until there
	// is a page or the context ends.
	Page(ctx context.Context) (p *Page, from, to float64, err error)
	State() State
	// Follow returns a function that returns the changes since its last call, at first all
	// points, and the end of the time range.
	Follow() (updates func() (list []Update, to float64))
	// Command is pause, resume, step or stop.
	Command(name string)
	// Changed returns a channel that is closed at the next command or the end.
	Changed() <-chan struct{}
}

// Live serves the page of a run in progress. It is an [http.Handler]: the page at /, server-sent
// events at /events (state, points, alive, end), and POST /command/NAME.
//
// A follower of the events answers alive with POST /alive/DATA, with the data of the event. A
// follower that does not answer for half a minute is disconnected.
//
// The guard controls who may pause a run. Commands also need a header that pages of other sites
// cannot send.
type Live struct {
	source Source
	guard  Guard

	mu      sync.Mutex
	final   []byte // the page of the complete run
	ended   chan struct{}
	open    int                  // number of followers
	loaded  bool                 // a page was requested
	fetched int                  // number of requests for the final page
	heard   map[string]time.Time // last answer, by follower
	number  int                  // of the last follower

	patience time.Duration // for followers that do not answer
	seen     chan struct{}
}

// Unseen is how long the page of a run that has ended waits for its first reader.
const Unseen = 30 * time.Second

// Limits of a live page.
const (
	mostFollowers = 16
	every         = 250 * time.Millisecond
	patience      = 30 * time.Second
	writeTimeout  = 10 * time.Second
	farewell      = 3 * time.Second // for followers to fetch the final page
	linger        = time.Second     // for a page that was loaded and does not follow yet
)

// NewLive returns the service of a run for requests that the guard allows. The zero guard allows
// requests to loopback addresses.
func NewLive(s Source, g Guard) *Live {
	return &Live{source: s, guard: g, ended: make(chan struct{}), seen: make(chan struct{}, 1),
		heard: map[string]time.Time{}, patience: patience}
}

// ServeHTTP answers a request.
func (l *Live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.guard.Handler(http.HandlerFunc(l.answer)).ServeHTTP(w, r)
}

func (l *Live) answer(w http.ResponseWriter, r *http.Request) {
	command, isCommand := "", false
	if rest, ok := bytes.CutPrefix([]byte(r.URL.Path), []byte("/command/")); ok {
		command, isCommand = string(rest), true
	}
	alive, isAlive := strings.CutPrefix(r.URL.Path, "/alive/")
	switch {
	case isCommand && r.Method == http.MethodPost:
		switch command {
		case "pause", "resume", "step", "stop":
		default:
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("X-Macrostep") == "" {
			http.Error(w, "the header X-Macrostep is missing", http.StatusForbidden)
			return
		}
		l.source.Command(command)
		w.WriteHeader(http.StatusNoContent)
	case isAlive && r.Method == http.MethodPost:
		l.mu.Lock()
		if _, follows := l.heard[alive]; follows {
			l.heard[alive] = time.Now()
		}
		l.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case r.URL.Path == "/":
		l.servePage(w, r)
	case r.URL.Path == "/events" && r.Method == http.MethodHead:
		w.Header().Set("Content-Type", "text/event-stream")
	case r.URL.Path == "/events":
		l.serveEvents(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (l *Live) servePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if r.Method == http.MethodHead {
		return
	}
	l.mu.Lock()
	l.loaded = true
	l.mu.Unlock()
	if final := l.last(); final != nil {
		_, _ = w.Write(final) // a closed connection is no error
		l.mu.Lock()
		l.fetched++
		l.mu.Unlock()
		select {
		case l.seen <- struct{}{}:
		default:
		}
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-l.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	p, from, to, err := l.source.Page(ctx)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // waiting for the page may have taken long
	if err != nil {
		if final := l.last(); final != nil {
			_, _ = w.Write(final)
		}
		return
	}
	state := l.source.State()
	if p.State, p.Tone = state.State, Active; state.State == "paused" {
		p.Tone = Doubtful
	}
	p.live = &liveState{Token: l.guard.Token, Done: state.Done, from: from, to: to}
	if to <= from {
		p.live.to = from + 1
	}
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(b.Bytes())
}

func (l *Live) last() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.final
}

func (l *Live) serveEvents(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	full := l.open >= mostFollowers
	asked := time.Now()
	l.number++
	name := strconv.Itoa(l.number)
	if !full {
		l.open++
		l.heard[name] = asked
	}
	l.mu.Unlock()
	if full {
		http.Error(w, "too many pages follow this run", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		l.mu.Lock()
		l.open--
		delete(l.heard, name)
		l.mu.Unlock()
	}()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string, data []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // not supported by all writers
		_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
		return err == nil && out.Flush() == nil
	}
	updates := l.source.Follow()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var told State
	for first := true; ; first = false {
		changed := l.source.Changed()
		if s := l.source.State(); first || s != told {
			data, err := json.Marshal(s)
			if err != nil || !send("state", data) {
				return
			}
			told = s
		}
		if list, to := updates(); len(list) > 0 && !send("points", encode(list, to)) {
			return
		}
		if time.Since(asked) > l.patience/3 {
			asked = time.Now()
			l.mu.Lock()
			silent := time.Since(l.heard[name]) > l.patience
			l.mu.Unlock()
			if silent || !send("alive", []byte(name)) {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-l.ended:
			send("end", []byte("{}"))
			return
		case <-changed:
		case <-tick.C:
		}
	}
}

// encode encodes updates as JSON, with null for NaN.
func encode(list []Update, to float64) []byte {
	number := func(b []byte, v float64) []byte {
		if v-v != 0 {
			return append(b, "null"...)
		}
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	b := number([]byte(`{"to":`), to)
	b = append(b, `,"plots":[`...)
	for i, u := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), int64(u.Plot), 10)
		b = strconv.AppendInt(append(b, ','), int64(u.Keep), 10)
		for _, values := range [][]float64{u.T, u.V} {
			b = append(b, ",["...)
			for k, v := range values {
				if k > 0 {
					b = append(b, ',')
				}
				b = number(b, v)
			}
			b = append(b, ']')
		}
		b = append(b, ']')
	}
	return append(b, "]}"...)
}

// Loaded reports whether somebody has loaded the page.
func (l *Live) Loaded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loaded
}

// End replaces the page by p and waits until all followers have fetched it, for at most a few seconds. If nobody has
// loaded a page yet, it waits for the first reader, for at most [Unseen] or until the context ends.
func (l *Live) End(ctx context.Context, p *Page) error {
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		return err
	}
	l.mu.Lock()
	l.final = b.Bytes()
	expected, most, gone := max(l.open, 1), farewell, (<-chan struct{})(nil)
	switch {
	case !l.loaded:
		most, gone = Unseen, ctx.Done()
	case l.open == 0:
		most = linger
	}
	l.mu.Unlock()
	close(l.ended)
	late := time.After(most)
	for {
		l.mu.Lock()
		all := l.fetched >= expected
		l.mu.Unlock()
		if all {
			return nil
		}
		select {
		case <-l.seen:
		case <-late:
			return nil
		case <-gone:
			return nil
		}
	}
}

// liveState is the additional data of the page of a run in progress.
type liveState struct {
	Token    string
	Done     float64 // progress, 0 to 1
	from, to float64 // s; time range of the plots
}
