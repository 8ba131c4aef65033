package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Client has the tasks of a study on another machine. Its requests are repeated until they are answered.
type Client struct {
	link  *Link
	study string
	name  string // of the worker, in subjects
	log   func(text string)

	silentTime, patience time.Duration // tests shorten them

	mu     sync.Mutex
	index  string         // hash of the list of files; "" = not known yet
	seals  map[int]string // of variants that run here, by the engine
	silent time.Time      // since when there is no answer; zero = there is
	waits  bool           // the user knows
}

const (
	askTime    = 10 * time.Second // for an answer
	askAgain   = time.Second      // after a failure
	silentTime = 5 * time.Second  // without an answer, after which the user gets to know
	patience   = time.Hour        // without an answer, after which the worker ends
)

// longestDeath bounds the reason for the end of an engine in bytes.
const longestDeath = 2000

// Join makes a worker known to a study. identity may be "" if there is only one. log takes messages.
func Join(ctx context.Context, l *Link, identity string, log func(text string)) (*Client, error) {
	c := &Client{
		link: l, name: l.name + "." + random(6), study: cmp.Or(identity, l.study), index: l.index, seals: map[int]string{},
		log: log, silentTime: silentTime, patience: patience,
	}
	if l.study == "" {
		if err := c.choose(ctx); err != nil {
			return nil, err
		}
	}
	return c, c.join(ctx)
}

// Study is the identity of the study.
func (c *Client) Study() string { return c.study }

// choose waits for the study, or for one if there is only one.
func (c *Client) choose(ctx context.Context) error {
	began := time.Now()
	for tries := 0; ; tries++ {
		all, err := c.studies(ctx)
		switch {
		case err != nil:
			return err
		case slices.Contains(all, c.study):
			return nil
		case c.study != "" && len(all) > 0 && tries > 5: // it was not just about to answer
			return fmt.Errorf("the server has no study %s; it has %s", c.study, strings.Join(all, ", "))
		case c.study == "" && len(all) > 1:
			return fmt.Errorf("the server has several studies; choose one with --study: %s", strings.Join(all, ", "))
		case c.study == "" && len(all) == 1:
			c.study = all[0]
			return nil
		case time.Since(began) > c.patience:
			return fmt.Errorf("there has been no study at %s for %v", c.link.url, c.patience)
		case tries == 0:
			c.log("waiting for the study")
		}
		pause(ctx, askAgain)
	}
}

// findTime is how long studies may take to answer.
const findTime = time.Second

// studies lists the studies on the server.
func (c *Client) studies(ctx context.Context) ([]string, error) {
	l := c.link
	inbox := l.conn.NewInbox()
	sub, err := l.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection may be closed
	message, err := pack(request{}, nil)
	if err == nil {
		err = l.conn.PublishRequest(subjects+c.name+"."+opStudies, inbox, message)
	}
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	var all []string
	for {
		m, err := sub.NextMsgWithContext(within)
		if err != nil { // also if nobody answers, or the connection is lost for now
			slices.Sort(all)
			return all, errors.Join(context.Cause(ctx), l.refusal())
		}
		var a answer
		if _, err := unpack(m.Data, &a); err == nil && tokens.MatchString(a.Study) {
			all = append(all, a.Study)
		}
	}
}

// join makes the worker known, for the first time or again.
func (c *Client) join(ctx context.Context) error {
	host, _ := os.Hostname()
	var a answer
	if _, err := c.ask(ctx, opJoin, &request{Version: simulate.Version(), Host: host}, nil, &a); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index != "" && c.index != a.Index {
		return errors.New("the files of the study are not those that it began with; get its join.json anew and start the worker again")
	}
	c.index = a.Index
	return nil
}

// Next is that of Tasks.
func (c *Client) Next(ctx context.Context, engine int, r *Result) (v study.Variant, err error) {
	q, uploads := &request{Engine: engine}, 0
	for {
		if r != nil && q.Variant == nil {
			if q, err = c.result(ctx, engine, r); err != nil {
				return v, err
			}
			uploads++
		}
		var a answer
		if _, err := c.ask(ctx, opNext, q, nil, &a); err != nil {
			return v, err
		}
		q = &request{Engine: engine}
		if a.Missing { // the study has lost it when it was interrupted
			if uploads == mostUploads {
				return v, fmt.Errorf("files of %s do not arrive as they were sent", r.Variant)
			}
			continue
		}
		if r != nil {
			for _, path := range r.Kept {
				err = errors.Join(err, os.Remove(path))
			}
			r = nil
		}
		if a.Variant != nil {
			c.mu.Lock()
			c.seals[engine] = a.Seal
			c.mu.Unlock()
			v = *a.Variant
		}
		if a.Variant != nil || err != nil {
			return v, err
		}
	}
}

// mostUploads is how often a file is sent until it arrives.
const mostUploads = 5

// result returns the request that delivers a result, and uploads what does not go into it.
func (c *Client) result(ctx context.Context, engine int, r *Result) (*request, error) {
	q := &request{Engine: engine, Variant: &r.Variant, Seal: c.seal(engine), Row: r.Row, Death: diag.Clip(r.Death, longestDeath), Once: random(6)}
	for _, path := range r.Kept {
		sum, err := hash(path)
		if err != nil {
			return nil, err
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(c.upload(ctx, q, sum, file), file.Close()); err != nil {
			return nil, err
		}
		q.Kept = append(q.Kept, sent{filepath.Base(path), sum})
	}
	data, err := json.Marshal(q.Row)
	if err == nil && len(data) > c.link.most {
		q.Row, q.Large = nil, sumOf(data)
		err = c.upload(ctx, q, q.Large, bytes.NewReader(data))
	}
	return q, err
}

// upload sends a file, from where the study has it.
func (c *Client) upload(ctx context.Context, q *request, sum string, file io.ReaderAt) error {
	data := make([]byte, c.link.most)
	for at := int64(0); ; {
		n, err := file.ReadAt(data, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var a answer
		if _, err := c.ask(ctx, opUpload, &request{Engine: q.Engine, Variant: q.Variant, Seal: q.Seal, Hash: sum, At: at}, data[:n], &a); err != nil {
			return err
		}
		if n == 0 && a.End == at {
			return nil
		}
		at = a.End
	}
}

// piece gets a piece of a file; none is its end.
func (c *Client) piece(ctx context.Context, sum string, at int64) ([]byte, error) {
	return c.ask(ctx, opFile, &request{Hash: sum, At: at, Most: c.link.most}, nil, &answer{})
}

// Hold is that of Tasks.
func (c *Client) Hold(ctx context.Context, engine int, v study.Variant) bool {
	var a answer
	_, err := c.ask(ctx, opHold, &request{Engine: engine, Variant: &v, Seal: c.seal(engine)}, nil, &a)
	return err != nil && !errors.Is(err, ErrOver) || a.Needed
}

// Release is that of Tasks. It waits a moment at most: what it does not release others get later.
func (c *Client) Release(engine int) {
	if message, err := pack(&request{Engine: engine}, nil); err == nil {
		_, _ = c.link.conn.Request(c.subject(opRelease), message, askAgain)
	}
}

func (c *Client) subject(op string) string { return subject(c.name, c.study, op) }

func (c *Client) seal(engine int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seals[engine]
}

// ask makes a request until it is answered, ctx is done, or the server refuses it.
func (c *Client) ask(ctx context.Context, op string, q *request, data []byte, a *answer) ([]byte, error) {
	message, err := pack(q, data)
	if err != nil {
		return nil, err
	}
	for {
		m, err := c.link.ask(ctx, c.subject(op), message)
		var rest []byte
		if err == nil {
			*a = answer{}
			rest, err = unpack(m.Data, a)
		}
		switch {
		case err != nil:
			if err := c.unanswered(ctx, err); err != nil {
				return nil, err
			}
		case a.Refused != "":
			return nil, errors.New(a.Refused)
		case a.Over:
			return nil, ErrOver
		case a.Join && op != opJoin:
			if err := c.join(ctx); err != nil {
				return nil, err
			}
			continue
		case !a.Again:
			c.answered()
			return rest, nil
		default:
			if err := c.unanswered(ctx, errLater); err != nil {
				return nil, err
			}
		}
		pause(ctx, askAgain)
	}
}

// errLater is the answer of a study that ends for now, or whose disk is full.
var errLater = errors.New("it cannot take what this worker sends")

// unanswered returns an error if it makes no sense to ask again.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		err = nats.ErrDisconnected
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%s: %w; raise max_payload of the server", c.link.url, err)
	}
	if err := c.link.refusal(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent.IsZero() {
		c.silent = time.Now()
	}
	since := time.Since(c.silent)
	if since > c.patience {
		return fmt.Errorf("the study %s at %s has not answered for %v: %w", c.study, c.link.url, c.patience, err)
	}
	if since > c.silentTime && !c.waits {
		c.waits = true
		c.log(fmt.Sprintf("the study %s at %s does not answer (%v); waiting for it (if it is over, end this worker)", c.study, c.link.url, err))
	}
	return nil
}

func (c *Client) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits {
		c.log("the study answers again")
	}
	c.silent, c.waits = time.Time{}, false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
