package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/macrostep/macrostep/master/study"
)

// Coordinator is the executor of a study: it distributes the variants to the workers that have joined. Its methods
// may be called by several goroutines.
type Coordinator struct {
	link   *Link
	names  names
	folder *study.Folder
	rows   jetstream.ConsumeContext

	mu      sync.Mutex
	waiting map[int]waiting   // by the variant whose row is missing
	early   map[int]study.Row // rows that nobody has ordered in this process
	rested  int               // rows received when the tasks were looked at last
	got     int               // rows received
	failed  error
	stop    context.CancelFunc
}

// waiting is a variant whose row an order lacks.
type waiting struct {
	order   *order
	variant study.Variant
}

// order is a call of Run.
type order struct {
	mu       sync.Mutex // of done
	done     func(study.Row) error
	left     int           // rows; protected by Coordinator.mu
	slots    chan struct{} // one for each task that is published and has no row
	finished chan struct{}
	cancel   context.CancelCauseFunc
}

// ahead bounds the tasks of an order that are published and have no row: enough for hundreds of engines, and
// little memory for a design of millions.
const ahead = 4096

// ackWait is the time after which a task of a worker that was lost is given to another.
const ackWait = 10 * time.Second

// Coordinate puts a study on the server: its files, and streams for its tasks and rows. Rows that are
// there from before, if the study goes on, are kept.
// remote says that workers may be on other machines, and need the files.
func Coordinate(ctx context.Context, l *Link, f *study.Folder, remote bool) (*Coordinator, error) {
	id, err := identity(f.Path)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{link: l, names: names(id), folder: f, waiting: map[int]waiting{}, early: map[int]study.Row{}}
	if err := c.prepare(ctx, remote); err != nil {
		return nil, fmt.Errorf("the server cannot hold the study: %w", err)
	}
	watch, stop := context.WithCancel(context.Background())
	c.stop = stop
	go c.watch(watch)
	return c, nil
}

// Identity is that of the study on the server.
func (c *Coordinator) Identity() string { return string(c.names) }

// replicated makes streams survive the loss of a server, where there are several.
var replicated = []int{3, 1}

func (c *Coordinator) prepare(ctx context.Context, remote bool) (err error) {
	js := c.link.js
	for _, replicas := range replicated {
		_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: c.names.rows(), Subjects: []string{c.names.all("row"), c.names.all("death")}, Replicas: replicas,
		})
		if err != nil {
			continue
		}
		if remote { // before the tasks, by which workers find the study
			if err := upload(ctx, js, c.names, c.folder.Path, replicas); err != nil {
				return err
			}
		}
		var tasks jetstream.Stream
		tasks, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: c.names.tasks(), Subjects: []string{c.names.all("task")}, Retention: jetstream.WorkQueuePolicy, Replicas: replicas,
			Storage: jetstream.MemoryStorage, // an earlier coordinator's are published anew
		})
		if err != nil {
			return err
		}
		// Of an earlier coordinator: what has no row yet is published anew.
		if err := tasks.Purge(ctx); err != nil {
			return err
		}
		_, err = js.CreateOrUpdateConsumer(ctx, c.names.tasks(), jetstream.ConsumerConfig{
			Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: c.mostRuns(),
			MaxWaiting: 10_000,
		})
		if err != nil {
			return err
		}
		break
	}
	if err != nil {
		return err
	}
	return c.follow(ctx)
}

// mostRuns bounds the runs at a time, as FMUs do that can be instantiated so many times only; -1 = no bound.
func (c *Coordinator) mostRuns() int {
	most := -1
	for _, n := range c.folder.Plan.MaxInstances {
		if most < 0 || n < most {
			most = n
		}
	}
	return most
}

// follow receives the rows from the first on. It returns when those are here that were there before.
func (c *Coordinator) follow(ctx context.Context) error {
	rows, err := c.link.js.OrderedConsumer(ctx, c.names.rows(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{c.names.all("row")}})
	if err != nil {
		return err
	}
	info, err := rows.Info(ctx)
	if err != nil {
		return err
	}
	before, seen := info.NumPending, uint64(0)
	all := make(chan struct{})
	if before == 0 {
		close(all)
	}
	c.rows, err = rows.Consume(func(m jetstream.Msg) {
		c.receive(m)
		if seen++; seen == before {
			close(all)
		}
	})
	if err != nil {
		return err
	}
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer is the message of a row.
type answer struct {
	Row  study.Row `json:"row"`
	Kept []string  `json:"kept,omitempty"` // objects with files of the run, by their names
}

// receive hands a row to the order that lacks it.
func (c *Coordinator) receive(m jetstream.Msg) {
	var a answer
	if err := json.Unmarshal(m.Data(), &a); err != nil {
		c.fail(fmt.Errorf("a row of the study cannot be read: %w", err))
		return
	}
	if err := c.fetch(a.Kept); err != nil {
		c.fail(err)
		return
	}
	c.mu.Lock()
	c.got++
	w, ordered := c.waiting[a.Row.ID]
	delete(c.waiting, a.Row.ID)
	if !ordered {
		c.early[a.Row.ID] = a.Row
	}
	c.mu.Unlock()
	if ordered {
		<-w.order.slots
		c.hand(w.order, a.Row)
	}
}

// hand passes a row to its order.
func (c *Coordinator) hand(o *order, r study.Row) {
	o.mu.Lock()
	err := o.done(r)
	o.mu.Unlock()
	if err != nil {
		o.cancel(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.left--; o.left == 0 {
		close(o.finished)
	}
}

// fail ends all orders.
func (c *Coordinator) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
	for _, w := range c.waiting {
		w.order.cancel(err)
	}
}

// Run makes the runs of some variants: see study.Executor.
func (c *Coordinator) Run(ctx context.Context, variants []study.Variant, done func(study.Row) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := &order{done: done, left: len(variants), slots: make(chan struct{}, ahead), finished: make(chan struct{}), cancel: cancel}
	if len(variants) == 0 {
		return nil
	}
	for _, v := range variants {
		if err := c.publish(ctx, o, v); err != nil {
			return err
		}
	}
	select {
	case <-o.finished:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// publish puts a variant among the tasks, unless its row is there already.
func (c *Coordinator) publish(ctx context.Context, o *order, v study.Variant) error {
	c.mu.Lock()
	if c.failed != nil {
		defer c.mu.Unlock()
		return c.failed
	}
	row, early := c.early[v.ID]
	delete(c.early, v.ID)
	c.mu.Unlock()
	if early {
		c.hand(o, row)
		return context.Cause(ctx)
	}
	select {
	case o.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mu.Lock()
	c.waiting[v.ID] = waiting{o, v}
	c.mu.Unlock()
	return c.send(v)
}

// send publishes a task. If it gets lost on the way, watch sends it again.
func (c *Coordinator) send(v study.Variant) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.link.js.PublishAsync(c.names.subject("task", v.ID), data)
	return err
}

// watch publishes anew what has no row when there is no task left and no row comes: a server may fail
// between a task and its confirmation. A variant that runs twice still has one row.
func (c *Coordinator) watch(ctx context.Context) {
	tick := time.NewTicker(ackWait / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.mu.Lock()
		quiet := c.got == c.rested
		c.rested = c.got
		var lost []study.Variant
		for _, w := range c.waiting {
			lost = append(lost, w.variant)
		}
		c.mu.Unlock()
		if !quiet || lost == nil {
			continue
		}
		tasks, err := c.link.js.Stream(ctx, c.names.tasks())
		if err != nil || tasks.CachedInfo().State.Msgs > 0 {
			continue // also while there is no connection
		}
		for _, v := range lost {
			_ = c.send(v) // the next time
		}
	}
}

// End ends the workers of the study and removes the study from the server.
func (c *Coordinator) End(ctx context.Context) error {
	c.Leave()
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	err := errors.Join(c.link.conn.Publish(c.names.end(), nil), c.link.conn.FlushWithContext(ctx))
	for _, stream := range []string{c.names.tasks(), c.names.rows()} {
		err = errors.Join(err, c.link.js.DeleteStream(ctx, stream))
	}
	if removed := c.link.js.DeleteObjectStore(ctx, c.names.bucket()); !errors.Is(removed, jetstream.ErrStreamNotFound) && !errors.Is(removed, jetstream.ErrBucketNotFound) {
		err = errors.Join(err, removed)
	}
	return err
}

// Leave ends the coordinator and keeps the study on the server, to go on with it later.
func (c *Coordinator) Leave() {
	c.stop()
	c.rows.Stop()
}

// endTime is how long the removal of a study may take.
const endTime = 30 * time.Second

// fetch moves files of a run from the server to the folder.
func (c *Coordinator) fetch(kept []string) error {
	if len(kept) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), transferTime)
	defer cancel()
	bucket, err := c.link.js.ObjectStore(ctx, c.names.bucket())
	if err != nil {
		return err
	}
	runs, err := c.folder.Runs()
	if err != nil {
		return err
	}
	for _, name := range kept {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("a worker sends a file with the name %q, which leaves the folder", name)
		}
		path := filepath.Join(runs, name)
		if err := bucket.GetFile(ctx, keptPrefix+name, path+".partial"); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := errors.Join(os.Rename(path+".partial", path), bucket.Delete(ctx, keptPrefix+name)); err != nil {
			return err
		}
	}
	return nil
}

const (
	keptPrefix   = "run "
	transferTime = 10 * time.Minute
)
