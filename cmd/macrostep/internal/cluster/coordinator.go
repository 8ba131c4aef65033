package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
)

// Coordinator lets workers on other machines have tasks of a queue. What workers send it trusts in nothing.
type Coordinator struct {
	link   *Link
	queue  *Queue
	folder *study.Folder
	keys   *keys
	study  string

	list  []byte            // of the files that workers get
	index string            // its hash
	place map[string]string // of the files, by their hashes

	mu      sync.Mutex
	workers map[string]*remote
	closed  bool
	answers sync.WaitGroup // of next
}

// remote is a worker that has joined.
type remote struct {
	name  string
	label string // for messages
	bad   int    // rows
	seen  time.Time
	gone  bool                       // it knows that the study is over, or has left
	next  map[int]context.CancelFunc // requests that wait, by the engine
}

const (
	// mostBad is the number of rows that are none after which a worker gets no more tasks.
	mostBad     = 3
	mostWorkers = 10_000
	// mostEngines bounds the engines of a worker.
	mostEngines = 1024
	// waitTime is how long a request for a task waits.
	waitTime = 5 * time.Second
	// endTime is how long workers may take to notice the end of the study.
	endTime = 5 * time.Second
)

func coordinate(q *Queue, f *study.Folder, k *keys, list []byte, place map[string]string) *Coordinator {
	return &Coordinator{queue: q, folder: f, keys: k, study: k.Study, list: list, index: sumOf(list), place: place, workers: map[string]*remote{}}
}

// Study is the identity of the study.
func (c *Coordinator) Study() string { return c.study }

// Address is HOST:PORT that a server in this process listens to; "" = there is none.
func (c *Coordinator) Address() string {
	if c.link.server == nil {
		return ""
	}
	return c.link.server.Addr().String()
}

// listen answers requests from here on.
func (c *Coordinator) listen() error {
	if err := os.RemoveAll(c.incoming()); err != nil { // of an earlier process
		return err
	}
	for op, do := range map[string]func(*nats.Msg, string){
		opStudies: c.onStudies, opJoin: c.onJoin, opFile: c.onFile, opNext: c.onNext, opHold: c.onHold, opRelease: c.onRelease, opUpload: c.onUpload,
	} {
		to := subject("*.*", c.study, op)
		if op == opStudies {
			to = subjects + "*.*." + op
		}
		_, err := c.link.conn.Subscribe(to, func(m *nats.Msg) {
			// Answers go to nobody but the sender.
			if user, worker := senderOf(m.Subject); user != "" && strings.HasPrefix(m.Reply, inboxes+user+".") {
				do(m, worker)
			}
		})
		if err != nil {
			return err
		}
	}
	if err := c.link.conn.Flush(); err != nil {
		return err
	}
	return c.link.refusal()
}

// some reports whether a worker is there that does not know of the end.
func (c *Coordinator) some() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if !w.gone && time.Since(w.seen) < leaseTime {
			return true
		}
	}
	return false
}

// Close closes the connection. If the study is over, its workers get to know that; else it can go on later.
func (c *Coordinator) Close(over bool) error {
	if over {
		c.queue.Close()
		for end := time.Now().Add(endTime); time.Now().Before(end) && c.some(); {
			time.Sleep(endTime / 100)
		}
	}
	c.mu.Lock()
	c.closed = true
	for _, w := range c.workers {
		for _, cancel := range w.next {
			cancel()
		}
	}
	c.mu.Unlock()
	c.answers.Wait()
	return errors.Join(c.link.Close(), os.RemoveAll(c.incoming()))
}

// known returns the worker of a request; nil = it must join first, and has got that as its answer.
func (c *Coordinator) known(m *nats.Msg, worker string) *remote {
	c.mu.Lock()
	w := c.workers[worker]
	if w != nil {
		w.seen = time.Now()
	}
	c.mu.Unlock()
	if w == nil {
		c.respond(m, answer{Join: true}, nil)
	}
	return w
}

// respond answers a request. If that is lost, the worker asks again.
func (c *Coordinator) respond(m *nats.Msg, a answer, data []byte) {
	if message, err := pack(a, data); err == nil {
		_ = m.Respond(message)
	}
}

func (c *Coordinator) onStudies(m *nats.Msg, _ string) { c.respond(m, answer{Study: c.study}, nil) }

func (c *Coordinator) onJoin(m *nats.Msg, worker string) {
	var q request
	if _, err := unpack(m.Data, &q); err != nil {
		return
	}
	label := fmt.Sprintf("%s (%s)", shown(q.Host, 100), worker[:min(len(worker), 12)])
	if own := simulate.Version(); q.Version != own {
		refused := fmt.Sprintf("the worker on %s is macrostep %s, and the study runs with %s; all machines need the same version", label,
			shown(q.Version, 100), own)
		c.mu.Lock()
		_, known := c.workers[worker]
		c.mu.Unlock()
		if !known {
			c.queue.log(refused)
		}
		c.respond(m, answer{Refused: refused}, nil)
		return
	}
	c.mu.Lock()
	if c.workers[worker] == nil {
		if len(c.workers) >= mostWorkers {
			c.mu.Unlock()
			c.respond(m, answer{Refused: "the study has too many workers"}, nil)
			return
		}
		c.workers[worker] = &remote{name: worker, label: label, next: map[int]context.CancelFunc{}}
	}
	c.workers[worker].seen = time.Now()
	c.mu.Unlock()
	c.respond(m, answer{Index: c.index}, nil)
}

func (c *Coordinator) onFile(m *nats.Msg, worker string) {
	var q request
	if _, err := unpack(m.Data, &q); err != nil || c.known(m, worker) == nil {
		return
	}
	most := max(0, min(q.Most, c.link.most))
	if q.Hash == c.index {
		at := max(0, min(q.At, int64(len(c.list))))
		c.respond(m, answer{}, c.list[at:min(at+int64(most), int64(len(c.list)))])
		return
	}
	path, ok := c.place[q.Hash]
	if !ok || q.At < 0 {
		c.respond(m, answer{Refused: "the study has no such file"}, nil)
		return
	}
	data, err := readPiece(path, q.At, most)
	if err != nil {
		c.queue.log("a worker cannot get a file of the study: " + err.Error())
		c.respond(m, answer{Again: true}, nil)
		return
	}
	c.respond(m, answer{}, data)
}

// task reads a request of an engine, which must be about a variant or may be, and checks that the worker has that from this
// study. It returns nil if the request is answered.
func (c *Coordinator) task(m *nats.Msg, worker string, about bool) (q *request, data []byte) {
	q = &request{}
	data, err := unpack(m.Data, q)
	w := c.known(m, worker)
	switch {
	case w == nil:
		return nil, nil
	case c.refuses(w):
		c.respond(m, answer{Refused: "the study gives no more runs to this worker, because of what it has sent"}, nil)
		return nil, nil
	case err != nil:
		c.bad(m, w, "its message cannot be read: "+err.Error())
		return nil, nil
	case q.Variant == nil && about:
		c.bad(m, w, "its message is about no variant")
		return nil, nil
	case q.Engine < 0 || q.Engine >= mostEngines:
		c.bad(m, w, fmt.Sprintf("its message is of an engine %d", q.Engine))
		return nil, nil
	case q.Variant != nil && !hmac.Equal([]byte(q.Seal), []byte(c.seal(worker, *q.Variant))):
		c.bad(m, w, fmt.Sprintf("its message is about %s, which it was not given", q.Variant))
		return nil, nil
	}
	return q, data
}

// seal returns what proves that the study has given a variant to a worker.
func (c *Coordinator) seal(worker string, v study.Variant) string {
	mac := hmac.New(sha256.New, c.keys.Seal)
	text, _ := json.Marshal(v) // texts and a number can be written
	mac.Write(append([]byte(worker+" "), text...))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// bad takes note of a message that a worker should not have sent. After some of them, the worker gets no more tasks.
func (c *Coordinator) bad(m *nats.Msg, w *remote, what string) {
	c.mu.Lock()
	w.bad++
	n := w.bad
	c.mu.Unlock()
	what = shown(what, 500)
	if n <= mostBad {
		c.queue.log(fmt.Sprintf("warning: the worker on %s: %s; what it was to run is given out again", w.label, what))
	}
	if n == mostBad {
		c.queue.dismiss(w.name)
		c.queue.log(fmt.Sprintf("warning: the worker on %s gets no more runs", w.label))
	}
	c.respond(m, answer{Refused: "the study refuses what this worker has sent: " + what}, nil)
}

// refuses reports whether a worker gets no more tasks.
func (c *Coordinator) refuses(w *remote) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.bad >= mostBad
}

func (c *Coordinator) onNext(m *nats.Msg, worker string) {
	q, _ := c.task(m, worker, false)
	if q == nil {
		return
	}
	w, h := c.known(m, worker), holder{worker, q.Engine}
	if q.Variant != nil {
		var bad badRow
		err := c.deliver(h, q)
		if errors.As(err, &bad) {
			c.bad(m, w, bad.Error())
			return
		}
		if err != nil { // the study ends, and may go on later
			c.respond(m, answer{Again: true}, nil)
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return
	}
	if cancel := w.next[q.Engine]; cancel != nil {
		cancel() // of a request whose answer was lost
	}
	w.next[q.Engine], w.gone = cancel, false
	c.answers.Go(func() {
		defer cancel()
		v, err := c.queue.next(ctx, h)
		switch {
		case errors.Is(err, ErrOver):
			c.respond(m, answer{Over: true}, nil)
			c.mu.Lock()
			w.gone = true
			c.mu.Unlock()
		case err != nil:
			c.respond(m, answer{}, nil) // it asks again
		default:
			c.respond(m, answer{Variant: &v, Seal: c.seal(worker, v)}, nil)
		}
	})
}

// deliver takes the result in a request.
func (c *Coordinator) deliver(h holder, q *request) error {
	r := &Result{Variant: *q.Variant, Row: q.Row, Death: shown(q.Death, 500)}
	fail := func(format string, a ...any) error {
		c.queue.release(h)
		return badRow{fmt.Errorf("the row of %s: %w", r.Variant, fmt.Errorf(format, a...))}
	}
	if q.Large != "" {
		path, err := c.uploaded(h, q.Large)
		if err != nil {
			return fail("%w", err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_ = os.Remove(path) // it goes at the end
		if err := json.Unmarshal(data, &r.Row); err != nil {
			return fail("%w", err)
		}
	}
	if r.Row == nil && r.Death == "" {
		return fail("there is none")
	}
	var from, to []string
	for _, f := range q.Kept {
		if !slices.Contains(keptOf(r.Variant), f.Path) {
			return fail("a file has the name %q", f.Path)
		}
		path, err := c.uploaded(h, f.Hash)
		if err != nil {
			return fail("%s: %w", f.Path, err)
		}
		from, to = append(from, path), append(to, f.Path)
	}
	r.keep = func() error {
		if len(from) == 0 {
			return nil
		}
		runs, err := c.folder.Runs()
		for i := range from {
			err = errors.Join(err, os.Rename(from[i], filepath.Join(runs, to[i])))
		}
		return err
	}
	err := c.queue.deliver(h, r)
	for _, path := range from {
		_ = os.Remove(path) // of what nobody needed; else it goes at the end
	}
	return err
}

func (c *Coordinator) incoming() string { return filepath.Join(c.folder.Path, study.Incoming) }

// upload returns the path of an upload.
func (c *Coordinator) upload(h holder, sum string) string {
	return filepath.Join(c.incoming(), fmt.Sprintf("%s-%d-%s", h.worker, h.engine, sum))
}

// uploaded returns the path of an upload that is whole.
func (c *Coordinator) uploaded(h holder, sum string) (string, error) {
	if !hashes.MatchString(sum) {
		return "", errors.New("it sends a file without a hash")
	}
	path := c.upload(h, sum)
	if found, err := hash(path); err != nil || found != sum {
		return "", errors.New("a file is not whole")
	}
	return path, nil
}

func (c *Coordinator) onUpload(m *nats.Msg, worker string) {
	q, data := c.task(m, worker, true)
	if q == nil {
		return
	}
	if !hashes.MatchString(q.Hash) {
		c.bad(m, c.known(m, worker), "it sends a file without a hash")
		return
	}
	err := os.MkdirAll(c.incoming(), 0o777)
	var end int64
	if err == nil {
		end, err = writePiece(c.upload(holder{worker, q.Engine}, q.Hash), q.At, data)
	}
	if err != nil {
		c.queue.log("a file of a worker cannot be stored: " + err.Error())
		c.respond(m, answer{Again: true}, nil)
		return
	}
	c.respond(m, answer{End: end}, nil)
}

func (c *Coordinator) onHold(m *nats.Msg, worker string) {
	q, _ := c.task(m, worker, true)
	if q == nil {
		return
	}
	needed := c.queue.hold(holder{worker, q.Engine}, *q.Variant)
	c.respond(m, answer{Needed: needed}, nil)
}

func (c *Coordinator) onRelease(m *nats.Msg, worker string) {
	q, _ := c.task(m, worker, false)
	if q == nil {
		return
	}
	c.mu.Lock()
	w := c.workers[worker]
	w.gone = true // unless it asks for more
	if cancel := w.next[q.Engine]; cancel != nil {
		cancel()
	}
	c.mu.Unlock()
	c.queue.release(holder{worker, q.Engine})
	c.respond(m, answer{}, nil)
}

// shown returns a text of another machine for messages: one line without control characters.
func shown(text string, most int) string {
	return diag.Visible(strings.Join(strings.Fields(diag.Clip(text, most)), " "))
}
