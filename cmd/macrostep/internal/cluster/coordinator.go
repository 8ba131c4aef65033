package cluster

import (
	"cmp"
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

	began  time.Time
	filing sync.Mutex // for uploads

	list  []byte            // of the files that workers get
	index string            // its hash
	place map[string]string // of the files, by their hashes

	mu      sync.Mutex
	workers map[string]*remote
	deaths  map[holder]string // that were reported last
	closed  bool
	answers sync.WaitGroup // of next
}

// remote is a worker that has joined.
type remote struct {
	name  string
	label string // for messages
	bad   int    // messages
	seen  time.Time
	gone  bool                       // it knows that the study is over, or has left
	next  map[int]context.CancelFunc // requests that wait, by the engine
}

const (
	// mostBad is the number of messages that no worker should send, after which one gets no more tasks.
	mostBad = 3
	// mostWorkers bounds the workers that are known at a time.
	mostWorkers = 10_000
	// mostFiles is the number of uploads of an engine: table and manifest that are kept, and a row.
	mostFiles = 3
	// mostKept bounds a file of a run that is kept, in bytes.
	mostKept = 16 << 30
	// MostEngines bounds the engines of a worker.
	MostEngines = 1024
	// waitTime is how long a request for a task waits.
	waitTime = 5 * time.Second
	// endTime is how long workers may take to notice the end of the study.
	endTime = 5 * time.Second
)

func coordinate(q *Queue, f *study.Folder, k *keys, list []byte, place map[string]string) *Coordinator {
	return &Coordinator{
		queue: q, folder: f, keys: k, study: k.Study, began: time.Now(), list: list, index: sumOf(list), place: place,
		workers: map[string]*remote{}, deaths: map[holder]string{},
	}
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
	for _, op := range []string{opStudies, opJoin, opFile, opNext, opHold, opRelease, opUpload} {
		to := subject("*.*", c.study, op)
		if op == opStudies {
			to = subjects + "*.*." + op
		}
		if _, err := c.link.conn.Subscribe(to, func(m *nats.Msg) { c.receive(op, m) }); err != nil {
			return err
		}
	}
	err := c.link.conn.Flush()
	for end := time.Now().Add(askTime); err != nil && !c.link.conn.IsClosed() && time.Now().Before(end); err = c.link.conn.Flush() {
		time.Sleep(50 * time.Millisecond) // the server was lost; the connection subscribes again at the next one
	}
	return cmp.Or(err, c.link.refusal())
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
		end, first := time.Now().Add(endTime), c.began
		if c.keys.resumed { // a worker may still wait for an answer of the process before
			first = c.began.Add(askTime + 2*askAgain)
			if time.Until(first) > askAgain {
				c.queue.log("the study is over; waiting until workers of before know")
			}
		}
		for time.Now().Before(first) || time.Now().Before(end) && c.some() {
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
	return c.link.Close()
}

// receive answers a request.
func (c *Coordinator) receive(op string, m *nats.Msg) {
	user, worker := senderOf(m.Subject)
	if user == "" || !strings.HasPrefix(m.Reply, inboxes+user+".") { // answers go to nobody but the sender
		return
	}
	var q request
	data, err := unpack(m.Data, &q)
	w, refused := c.known(worker)
	var a *answer
	switch {
	case op == opStudies:
		a = &answer{Study: c.study}
	case (op == opJoin || op == opFile) && c.queue.isOver():
		a = &answer{Over: true}
		c.leave(w, 0)
	case op == opJoin && err == nil:
		a = c.join(worker, &q)
	case w == nil:
		a = &answer{Join: true}
	case refused:
		a = &answer{Refused: "the study gives no more runs to this worker, because of what it has sent"}
	case err != nil:
		a = c.blame(w, fmt.Errorf("its message cannot be read: %w", err))
	default:
		if err = c.check(w, op, &q); err == nil {
			a, err = c.do(op, m, w, &q, data)
		}
		switch {
		case errors.As(err, new(fault)):
			a = c.blame(w, err)
		case errors.Is(err, errMissing):
			a = &answer{Missing: true}
		case err != nil: // of this side: the study ends, and may go on later; or it can do so later
			a = &answer{Again: true}
		}
	}
	if a != nil {
		c.respond(m, a)
	}
}

// do does what a worker asks for. Without an answer and an error, the answer follows later.
func (c *Coordinator) do(op string, m *nats.Msg, w *remote, q *request, data []byte) (*answer, error) {
	switch h := (holder{w.name, q.Engine}); op {
	case opFile:
		return c.file(q)
	case opUpload:
		c.queue.hold(h, *q.Variant)
		return c.store(h, q, data)
	case opHold:
		return &answer{Needed: c.queue.hold(h, *q.Variant)}, nil
	case opRelease:
		c.leave(w, q.Engine)
		c.queue.release(h)
		return &answer{}, nil
	}
	if q.Variant != nil {
		if err := c.deliver(holder{w.name, q.Engine}, q); err != nil {
			return nil, err
		}
	}
	c.next(m, w, q.Engine)
	return nil, nil
}

// respond answers a request. If that is lost, the worker asks again.
func (c *Coordinator) respond(m *nats.Msg, a *answer) {
	message, err := pack(a, a.data)
	if err == nil && len(message) > int(c.link.conn.MaxPayload()) {
		message, err = pack(answer{Refused: "the answer is larger than the server lets through; raise its max_payload"}, nil)
	}
	if err == nil {
		_ = m.Respond(message)
	}
}

// known returns a worker that has joined, or nil, and whether it gets no more tasks.
func (c *Coordinator) known(worker string) (w *remote, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w = c.workers[worker]; w == nil {
		return nil, false
	}
	w.seen = time.Now()
	return w, w.bad >= mostBad
}

// join makes a worker known.
func (c *Coordinator) join(worker string, q *request) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, own := c.workers[worker], simulate.Version()
	switch {
	case w == nil && len(c.workers) >= mostWorkers:
		c.forget()
		fallthrough
	case w == nil:
		w = &remote{name: worker, label: fmt.Sprintf("%s (%s)", diag.OneLine(q.Host, 100), worker[:min(len(worker), 12)]), next: map[int]context.CancelFunc{}}
		c.workers[worker] = w
		c.queue.label(worker, w.label)
	}
	w.seen = time.Now()
	if q.Version != own {
		refused := fmt.Sprintf("the worker on %s is macrostep %s, and the study runs with %s; all machines need the same version",
			w.label, diag.OneLine(q.Version, 100), own)
		if w.bad < mostBad {
			c.queue.log(refused)
		}
		w.bad = mostBad
		return &answer{Refused: refused}
	}
	return &answer{Index: c.index}
}

// forget forgets the worker that was silent for the longest time. If it is still there, it joins again. The caller holds mu.
func (c *Coordinator) forget() {
	var oldest *remote
	for _, w := range c.workers {
		if oldest == nil || w.seen.Before(oldest.seen) {
			oldest = w
		}
	}
	delete(c.workers, oldest.name)
}

// check returns a fault if a request is not one that a worker makes.
func (c *Coordinator) check(w *remote, op string, q *request) error {
	about := op == opHold || op == opUpload
	switch {
	case about && q.Variant == nil:
		return fault{errors.New("its message is about no variant")}
	case q.Engine < 0 || q.Engine >= MostEngines:
		return fault{fmt.Errorf("its message is of an engine %d", q.Engine)}
	case q.Variant != nil && !hmac.Equal([]byte(q.Seal), []byte(c.seal(w.name, *q.Variant))):
		return fault{fmt.Errorf("its message is about %s, which it was not given", q.Variant)}
	case q.At < 0 || op != opNext && op != opHold && op != opRelease && !hashes.MatchString(q.Hash):
		return fault{errors.New("its message is about no piece of a file")}
	}
	return nil
}

// seal returns what proves that the study has given a variant to a worker.
func (c *Coordinator) seal(worker string, v study.Variant) string {
	mac := hmac.New(sha256.New, c.keys.Seal)
	text, _ := json.Marshal(v) // texts and a number can be written
	mac.Write(append([]byte(worker+" "), text...))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// blame takes note of a fault of a worker. After some of them, it gets no more tasks.
func (c *Coordinator) blame(w *remote, err error) *answer {
	c.mu.Lock()
	w.bad++
	last := w.bad == mostBad
	c.mu.Unlock()
	what := diag.OneLine(err.Error(), 500)
	c.queue.log(fmt.Sprintf("warning: the worker on %s: %s; what it was to run is given out again", w.label, what))
	if last {
		c.queue.dismiss(w.name)
		c.queue.log(fmt.Sprintf("warning: the worker on %s gets no more runs", w.label))
	}
	return &answer{Refused: "the study refuses what this worker has sent: " + what}
}

// file reads a piece of a file of the study; none is its end.
func (c *Coordinator) file(q *request) (*answer, error) {
	most := max(0, min(q.Most, c.link.most))
	if q.Hash == c.index {
		at := min(q.At, int64(len(c.list)))
		return &answer{data: c.list[at:min(at+int64(most), int64(len(c.list)))]}, nil
	}
	path, ok := c.place[q.Hash]
	if !ok {
		return nil, fault{errors.New("it wants a file that the study does not have")}
	}
	data, err := readPiece(path, q.At, most)
	if err != nil {
		c.queue.tell("file", "a worker cannot have a file of the study: "+err.Error())
	}
	return &answer{data: data}, err
}

// store appends a piece to an upload.
func (c *Coordinator) store(h holder, q *request, data []byte) (*answer, error) {
	most := c.folder.Plan.LongestRow(*q.Variant)
	if c.keeps(*q.Variant) {
		most = mostKept
	}
	if q.At+int64(len(data)) > most {
		return nil, fault{errors.New("it sends more than the run has")}
	}
	c.filing.Lock()
	defer c.filing.Unlock()
	path := c.upload(h, q.Hash)
	others, _ := filepath.Glob(c.upload(h, "*"))
	if len(others) >= mostFiles && !slices.Contains(others, path) {
		return nil, fault{errors.New("it sends more files than the run has")}
	}
	err := os.MkdirAll(c.incoming(), 0o777)
	var end int64
	if err == nil {
		end, err = writePiece(path, q.At, data)
	}
	if err != nil {
		c.queue.tell("upload", "a file of a worker cannot be stored, which tries again: "+err.Error())
	}
	return &answer{End: end}, err
}

// next answers a request with a task, when there is one.
func (c *Coordinator) next(m *nats.Msg, w *remote, engine int) {
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	c.leave(w, engine) // a request before, whose answer was lost
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return
	}
	w.next[engine], w.gone = cancel, false
	c.answers.Go(func() {
		defer cancel()
		v, err := c.queue.next(ctx, holder{w.name, engine})
		switch {
		case errors.Is(err, ErrOver):
			c.respond(m, &answer{Over: true})
			c.mu.Lock()
			w.gone = true
			c.mu.Unlock()
		case err != nil:
			c.respond(m, &answer{}) // it asks again
		default:
			c.respond(m, &answer{Variant: &v, Seal: c.seal(w.name, v)})
		}
	})
}

// leave ends the request of an engine that waits for a task. The worker has left, unless it makes another.
func (c *Coordinator) leave(w *remote, engine int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w == nil {
		return
	}
	w.gone = true
	if cancel := w.next[engine]; cancel != nil {
		cancel()
	}
}

// deliver takes the result in a request.
func (c *Coordinator) deliver(h holder, q *request) (err error) {
	r := &Result{Variant: *q.Variant, Row: q.Row, Death: diag.OneLine(q.Death, 500)}
	if q.Row == nil && q.Large == "" && c.repeats(h, q.Once) {
		return nil
	}
	c.filing.Lock()
	defer c.filing.Unlock()
	var uploads []string
	defer func() {
		if err == nil || errors.As(err, new(fault)) { // else they will be needed
			for _, path := range uploads {
				_ = os.Remove(path) // it goes at the end
			}
		}
	}()
	fail := func(format string, a ...any) error {
		c.queue.release(h)
		return fault{fmt.Errorf("the row of %s: %w", r.Variant, fmt.Errorf(format, a...))}
	}
	if q.Large != "" {
		if !hashes.MatchString(q.Large) {
			return fail("it has no hash")
		}
		uploads = append(uploads, c.upload(h, q.Large))
		data, err := readPiece(uploads[0], 0, int(c.folder.Plan.LongestRow(r.Variant))+1)
		if err != nil || sumOf(data) != q.Large {
			return errMissing
		}
		if err := json.Unmarshal(data, &r.Row); err != nil {
			return fail("%w", err)
		}
	}
	if r.Row == nil && r.Death == "" {
		return fail("there is none")
	}
	files := map[string]string{} // uploads by the names that they get
	for _, f := range q.Kept {
		path := c.upload(h, f.Hash)
		switch {
		case !c.keeps(r.Variant), !slices.Contains(study.KeptFiles(r.Variant.ID), f.Path), !hashes.MatchString(f.Hash):
			return fail("a file has the name %q and the hash %q", f.Path, f.Hash)
		case files[f.Path] != "", slices.Contains(uploads, path):
			return fail("a file comes twice")
		}
		if found, err := hash(path); err != nil || found != f.Hash {
			_ = os.Remove(path) // to begin anew
			return errMissing
		}
		uploads, files[f.Path] = append(uploads, path), path
	}
	r.keep = func() error {
		if len(files) == 0 {
			return nil
		}
		runs, err := c.folder.Runs()
		for name, path := range files {
			err = errors.Join(err, os.Rename(path, filepath.Join(runs, name)))
		}
		return err
	}
	return c.queue.deliver(h, r)
}

// repeats reports whether a death was reported before.
func (c *Coordinator) repeats(h holder, once string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, ok := c.deaths[h]
	c.deaths[h] = once
	return ok && before == once
}

// errMissing is an upload that is not there, or damaged.
var errMissing = errors.New("a file is missing")

// keeps reports whether files of a run are kept.
func (c *Coordinator) keeps(v study.Variant) bool {
	return c.folder.Plan.Keep != study.KeepNone && v.ID >= 0
}

func (c *Coordinator) incoming() string { return filepath.Join(c.folder.Path, study.Incoming) }

// upload returns the path of an upload. One whose worker has gone stays until the study ends.
func (c *Coordinator) upload(h holder, sum string) string {
	return filepath.Join(c.incoming(), fmt.Sprintf("%s-%d-%s", h.worker, h.engine, sum))
}
