package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/macrostep/macrostep/master/study"
)

// Engine makes runs in a process of its own.
type Engine interface {
	// Run makes the run of a variant, and returns within its time limit. The error is a *Death if the
	// process has ended.
	Run(ctx context.Context, v study.Variant) (study.Row, error)
	Close() error
}

// Death is the end of an engine during a run; the next Run starts another.
type Death struct{ Reason string }

func (d *Death) Error() string { return d.Reason }

// Worker takes tasks of a study and has its engines make them.
type Worker struct {
	Link     *Link
	Identity string // of the study
	Folder   string // with its files
	Plan     *study.Plan
	Engines  int // 0 = as many as cores
	// New makes an engine with this number, from 0.
	New func(number int) Engine
	// Upload sends tables of runs that are kept to the server; without, they are where they belong.
	Upload bool
	// Log takes messages about what was lost; nil = nobody does.
	Log func(text string)
}

// mostDeaths is the number of engines that a variant may end.
const mostDeaths = 3

// Download gets the files of a study on a server into a folder, and the contents that are not there yet
// into the folder cache.
func Download(ctx context.Context, l *Link, identity, cache, folder string) error {
	return download(ctx, l.js, names(identity), cache, folder)
}

// Run takes tasks until the study is over or ctx is done. While there is no connection, it waits for one.
func (w *Worker) Run(ctx context.Context) error {
	if w.Log == nil {
		w.Log = func(string) {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over, err := w.Link.conn.Subscribe(names(w.Identity).end(), func(*nats.Msg) { cancel(errOver) })
	if err != nil {
		return err
	}
	defer func() { _ = over.Unsubscribe() }() // the connection may be closed
	count := w.Engines
	if count <= 0 {
		count = runtime.GOMAXPROCS(0)
	}
	var running sync.WaitGroup
	errs := make([]error, count)
	for i := range count {
		running.Go(func() {
			e := &taker{Worker: w, names: names(w.Identity), engine: w.New(i)}
			if errs[i] = errors.Join(e.run(ctx), e.engine.Close()); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

var errOver = errors.New("the study is over")

// taker takes tasks for one engine.
type taker struct {
	*Worker
	names  names
	engine Engine
	sent   sync.WaitGroup // rows on their way
}

// pullTime is how long a request for a task waits at the server.
const pullTime = 20 * time.Second

func (t *taker) run(ctx context.Context) error {
	defer t.sent.Wait()
	js, err := t.Link.conn.JetStream()
	if err != nil {
		return err
	}
	var tasks *nats.Subscription
	missing := 0
	for ctx.Err() == nil {
		if tasks == nil {
			if tasks, err = js.PullSubscribe("", consumer, nats.Bind(t.names.tasks(), consumer)); err != nil {
				if errors.Is(err, nats.ErrStreamNotFound) || errors.Is(err, nats.ErrConsumerNotFound) {
					if missing++; missing > 5 { // it was not just about to be made
						return nil
					}
				}
				pause(ctx, time.Second)
				continue
			}
			missing = 0
		}
		pull, end := context.WithTimeout(ctx, pullTime)
		list, err := tasks.Fetch(1, nats.Context(pull))
		waited := pull.Err() != nil
		end()
		switch {
		case err == nil && len(list) == 1:
			if err := t.task(ctx, list[0]); err != nil {
				return err
			}
		case errors.Is(err, nats.ErrConsumerDeleted): // as when the study is over
			tasks = nil
			pause(ctx, time.Second)
		case err != nil && !waited && !errors.Is(err, nats.ErrTimeout):
			t.Log(fmt.Sprintf("no task from the server: %v; trying again", err))
			_ = tasks.Unsubscribe() // the connection may be gone
			tasks = nil
			pause(ctx, time.Second)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// task makes the run of a task, and publishes its row.
func (t *taker) task(ctx context.Context, m *nats.Msg) error {
	var v study.Variant
	if err := json.Unmarshal(m.Data, &v); err != nil {
		_ = m.Term()
		return fmt.Errorf("a task of the study cannot be read: %w", err)
	}
	held := t.hold(m)
	row, err := t.engine.Run(ctx, v)
	held()
	var death *Death
	switch {
	case ctx.Err() != nil:
		_ = m.Nak() // for another worker, at once
		return nil
	case errors.As(err, &death):
		n, counted := t.bury(ctx, v, death)
		if counted != nil || n < mostDeaths {
			_ = m.Nak()
			return nil
		}
		row = t.Plan.NoRow(v, study.Crashed, fmt.Sprintf("%s; so did %d engines in all", death.Reason, n))
	case err != nil:
		return err
	}
	a := answer{Row: row}
	if t.Upload {
		if a.Kept, err = t.upload(ctx, v); err != nil {
			_ = m.Nak()
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	t.sent.Go(func() { t.publish(ctx, m, &a) })
	return nil
}

// hold keeps the task from being assigned to another worker until stop is called.
func (t *taker) hold(m *nats.Msg) (stop func()) {
	tick := time.NewTicker(ackWait / 3)
	done := make(chan struct{})
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_ = m.InProgress() // the task is given to another if no one of these arrives
			}
		}
	}()
	return func() { close(done) }
}

// publish publishes a row, unless there is one, and acknowledges its task.
func (t *taker) publish(ctx context.Context, m *nats.Msg, a *answer) {
	defer t.hold(m)()
	data, err := json.Marshal(a)
	if err != nil {
		t.Log(err.Error())
		return
	}
	for {
		_, err := t.Link.js.Publish(context.WithoutCancel(ctx), t.names.subject("row", a.Row.ID), data, jetstream.WithExpectLastSequencePerSubject(0))
		var refused *jetstream.APIError
		if err == nil || errors.As(err, &refused) && slices.Contains(rowExists, refused.ErrorCode) {
			_ = m.Ack() // given out again if it gets lost
			return
		}
		if ctx.Err() != nil || errors.Is(err, jetstream.ErrNoStreamResponse) && t.over(ctx) {
			return
		}
		pause(ctx, time.Second) // there is no connection
	}
}

// rowExists are the codes of a row that another worker was first to publish.
var rowExists = []jetstream.ErrorCode{jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant}

// over reports whether the study is no longer on the server.
func (t *taker) over(ctx context.Context) bool {
	_, err := t.Link.js.Stream(ctx, t.names.rows())
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// bury counts the engines that a variant has ended, with this one.
func (t *taker) bury(ctx context.Context, v study.Variant, d *Death) (int, error) {
	n, err := t.deaths(ctx, v, d)
	if err != nil || n == 1 {
		t.Log(fmt.Sprintf("%s: %s; another engine tries again", v, d.Reason))
	}
	return n, err
}

// deaths publishes the end of an engine and returns how many there have been of this variant.
func (t *taker) deaths(ctx context.Context, v study.Variant, d *Death) (int, error) {
	subject := t.names.subject("death", v.ID)
	if _, err := t.Link.js.Publish(ctx, subject, []byte(d.Reason)); err != nil {
		return 0, err
	}
	rows, err := t.Link.js.Stream(ctx, t.names.rows())
	if err != nil {
		return 0, err
	}
	info, err := rows.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	return int(info.State.Subjects[subject]), nil
}

// upload sends the files of a run that is kept, and removes them here.
func (t *taker) upload(ctx context.Context, v study.Variant) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(t.Folder, "runs", fmt.Sprintf("%d.*", v.ID)))
	if err != nil || paths == nil {
		return nil, err
	}
	bucket, err := t.Link.js.ObjectStore(ctx, t.names.bucket())
	if err != nil {
		return nil, err
	}
	var sent []string
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, ".partial") {
			continue
		}
		if err := put(ctx, bucket, keptPrefix+name, path); err != nil {
			return nil, err
		}
		sent = append(sent, name)
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return sent, nil
}
