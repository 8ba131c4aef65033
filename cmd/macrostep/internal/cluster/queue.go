package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/macrostep/macrostep/master/study"
)

// Tasks are those of a study, as a worker sees them. The methods may be called by several goroutines, one for each engine.
type Tasks interface {
	// Next delivers the result of an engine's last variant, unless it is nil, and waits for another. The error is ErrOver if
	// there will be none.
	Next(ctx context.Context, engine int, r *Result) (study.Variant, error)
	// Hold says that the engine still runs the variant. It returns false if nobody needs the row any more.
	Hold(ctx context.Context, engine int, v study.Variant) bool
	// Release returns the variant of the engine, if it has one, so that others run it.
	Release(engine int)
}

// Result is what became of a variant.
type Result struct {
	Variant study.Variant
	Row     *study.Row // nil = the engine has ended
	Death   string     // why it has
	Kept    []string   // paths of files of the run, for the study

	keep func() error // puts them where they belong; nil = they are there
}

// ErrOver is the end of a study.
var ErrOver = errors.New("the study is over")

// Queue is the executor of a study: it gives its variants to workers, and what has no row in time to others. Its methods may
// be called by several goroutines.
type Queue struct {
	plan *study.Plan
	log  func(text string)
	most int // runs at a time; 0 = no bound

	mu      sync.Mutex
	lease   time.Duration // leaseTime; tests shorten it
	stall   time.Duration // stallTime; tests shorten it
	orders  []*order
	tasks   map[int]*task        // that were given out, by their variant's ID
	back    []*task              // of these, nobody runs
	held    map[holder]*task     // of these, somebody runs
	seen    map[string]time.Time // workers
	labels  map[string]string    // of workers elsewhere, for messages: " on MACHINE"
	proven  map[string]bool      // workers that have delivered a row
	told    map[string]time.Time // messages
	longest time.Duration        // of the runs so far
	over    bool
	stopped bool               // the study ends before its end: what comes now is wanted later
	changed chan struct{}      // closed when there may be something to give out
	stop    context.CancelFunc // of watch
}

// holder is an engine of a worker.
type holder struct {
	worker string
	engine int
}

// own is the name of the worker in the process of the study.
const own = ""

// order is a call of Run.
type order struct {
	variants []study.Variant // that were not given out yet
	left     int             // rows
	cancel   context.CancelCauseFunc
	finished chan struct{}

	mu    sync.Mutex
	done  func(study.Row) error
	ended bool // done takes no more rows
}

// task is a variant that was given out.
type task struct {
	order   *order
	variant study.Variant
	leases  map[holder]*lease
	deaths  int
	died    map[string]bool // workers whose engines it has ended
	had     map[string]bool // workers that it was given to
	back    time.Time       // when it was given back
	late    bool            // a holder has not delivered in time
}

// lease is the time in which others leave a task to its holder.
type lease struct{ since, seen time.Time }

const (
	// leaseTime is how long a worker may be silent until others get what it runs.
	leaseTime = 10 * time.Second
	// mostDeaths is the number of engines that a variant may end.
	mostDeaths = 3
	// A run that takes so many times as long as the longest so far may be given to another worker that has nothing to do.
	stallFactor = 10
	// It is also worth a warning if it takes longer than this.
	stallTime = time.Minute
)

// NewQueue returns the queue of a study. log takes messages; nil = nobody does.
func NewQueue(p *study.Plan, log func(text string)) *Queue {
	if log == nil {
		log = func(string) {}
	}
	q := &Queue{
		plan: p, log: log, lease: leaseTime, stall: stallTime, changed: make(chan struct{}), tasks: map[int]*task{}, held: map[holder]*task{},
		seen: map[string]time.Time{}, labels: map[string]string{}, proven: map[string]bool{own: true}, told: map[string]time.Time{},
	}
	for _, n := range p.MaxInstances {
		if q.most == 0 || n < q.most {
			q.most = n
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	q.stop = stop
	go q.watch(ctx)
	return q
}

// Close ends the study: workers get ErrOver.
func (q *Queue) Close() {
	q.mu.Lock()
	q.over = true
	q.wake()
	q.mu.Unlock()
	q.stop()
}

func (q *Queue) isOver() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.over
}

// label says where a worker is.
func (q *Queue) label(worker, on string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.labels[worker] = " on " + on
}

// Local returns the tasks for a worker in this process.
func (q *Queue) Local() Tasks { return localTasks{q} }

type localTasks struct{ *Queue }

func (l localTasks) Next(ctx context.Context, engine int, r *Result) (study.Variant, error) {
	h := holder{own, engine}
	if r != nil {
		if err := l.deliver(h, r); err != nil {
			return study.Variant{}, err
		}
	}
	return l.next(ctx, h)
}

func (l localTasks) Hold(_ context.Context, engine int, v study.Variant) bool {
	return l.hold(holder{own, engine}, v)
}

func (l localTasks) Release(engine int) { l.release(holder{own, engine}) }

// Run makes the runs of some variants: see study.Executor.
func (q *Queue) Run(ctx context.Context, variants []study.Variant, done func(study.Row) error) error {
	if len(variants) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := &order{variants: variants, left: len(variants), done: done, cancel: cancel, finished: make(chan struct{})}
	q.mu.Lock()
	q.orders, q.stopped = append(q.orders, o), false
	q.wake()
	q.mu.Unlock()
	defer q.drop(o)
	select {
	case <-o.finished:
	case <-ctx.Done():
	}
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	return context.Cause(ctx)
}

// drop forgets an order.
func (q *Queue) drop(o *order) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.orders = slices.DeleteFunc(q.orders, func(e *order) bool { return e == o })
	q.stopped = o.left > 0
	for _, t := range q.tasks {
		if t.order == o {
			q.remove(t)
		}
	}
}

// wake has those look again who wait for a task. The caller holds mu.
func (q *Queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// next waits for a variant. A holder that asks again before it has delivered gets the same one.
func (q *Queue) next(ctx context.Context, h holder) (study.Variant, error) {
	for {
		q.mu.Lock()
		q.seen[h.worker] = time.Now()
		var t *task
		if ctx.Err() == nil { // else nobody would get it
			t = q.pick(h)
		}
		over, changed := q.over, q.changed
		q.mu.Unlock()
		switch {
		case over:
			return study.Variant{}, ErrOver
		case t != nil:
			return t.variant, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return study.Variant{}, context.Cause(ctx)
		}
	}
}

// pick returns the task for a holder; nil = there is none now. Workers that hold tasks for ever cannot keep others from all runs:
// until they have delivered a row, they get a task that was late once and last, and not the last place of a bounded number. The caller holds mu.
func (q *Queue) pick(h holder) *task {
	t := q.held[h]
	if t != nil {
		t.leases[h].seen = time.Now()
		return t
	}
	proven, free := q.proven[h.worker], q.most-len(q.held)
	if q.most > 0 && (free < 1 || free == 1 && !proven) {
		return nil
	}
	i := slices.IndexFunc(q.back, func(t *task) bool {
		return (proven || !t.late || !t.had[h.worker] && time.Since(t.back) > q.lease) && !q.better(t, h.worker)
	})
	k := slices.IndexFunc(q.orders, func(o *order) bool { return len(o.variants) > 0 })
	switch {
	case i >= 0:
		t = q.back[i]
		q.back = slices.Delete(q.back, i, i+1)
	case k >= 0:
		o := q.orders[k]
		t = q.add(o, o.variants[0])
		o.variants = o.variants[1:]
	default:
		if !proven {
			return nil
		}
		if t = q.stalled(h.worker); t == nil {
			return nil
		}
	}
	q.lend(t, h)
	return t
}

func (q *Queue) add(o *order, v study.Variant) *task {
	t := &task{order: o, variant: v, leases: map[holder]*lease{}, died: map[string]bool{}, had: map[string]bool{}}
	q.tasks[v.ID] = t
	return t
}

func (q *Queue) lend(t *task, h holder) {
	now := time.Now()
	t.leases[h], q.held[h], t.had[h.worker] = &lease{now, now}, t, true
}

// better reports whether a task should wait a moment for another worker than one on which it has ended an engine. The caller
// holds mu.
func (q *Queue) better(t *task, worker string) bool {
	if !t.died[worker] || time.Since(t.back) > q.lease {
		return false
	}
	for other, seen := range q.seen {
		if !t.died[other] && time.Since(seen) < q.lease {
			return true
		}
	}
	return false
}

// stalled returns a task that takes strangely long and could be run by another worker as well; nil = there is none.
// The caller holds mu.
func (q *Queue) stalled(worker string) (oldest *task) {
	if q.most > 0 { // there may be no licence for a second run
		return nil
	}
	began := time.Now().Add(-max(q.lease, stallFactor*q.longest))
	for _, t := range q.tasks {
		last := time.Time{}
		mine := t.died[worker]
		for h, l := range t.leases {
			mine = mine || h.worker == worker
			if l.since.After(last) {
				last = l.since
			}
		}
		if !mine && last.Before(began) {
			oldest, began = t, last
		}
	}
	return oldest
}

// hold prolongs a lease. It returns false if the row is not needed.
func (q *Queue) hold(h holder, v study.Variant) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.seen[h.worker] = now
	t := q.find(v)
	if t == nil {
		return q.stopped
	}
	if l := t.leases[h]; l != nil {
		l.seen = now
	} else if i := slices.Index(q.back, t); i >= 0 && !t.late && q.held[h] == nil { // an earlier process has given it out
		q.back = slices.Delete(q.back, i, i+1)
		q.lend(t, h)
	}
	return true
}

// find returns the task of a variant, also if a coordinator gave it out that has gone; nil = there is none without a row.
// The caller holds mu.
func (q *Queue) find(v study.Variant) *task {
	t := q.tasks[v.ID]
	if t == nil {
		for _, o := range q.orders {
			if i := slices.IndexFunc(o.variants, func(e study.Variant) bool { return e.ID == v.ID }); i >= 0 {
				t = q.add(o, o.variants[i])
				q.back = append(q.back, t)
				o.variants = slices.Delete(slices.Clone(o.variants), i, i+1)
				break
			}
		}
	}
	if t == nil || t.variant.Samples != v.Samples || !slices.Equal(t.variant.Values, v.Values) {
		return nil
	}
	return t
}

// release ends the lease of a holder.
func (q *Queue) release(h holder) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.held[h]; t != nil {
		q.giveBack(h, t)
	}
}

// dismiss ends all leases of a worker.
func (q *Queue) dismiss(worker string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for h, t := range q.held {
		if h.worker == worker {
			q.giveBack(h, t)
		}
	}
}

// giveBack ends a lease. A task that nobody runs will be given out again. The caller holds mu.
func (q *Queue) giveBack(h holder, t *task) {
	delete(t.leases, h)
	delete(q.held, h)
	if len(t.leases) == 0 && q.tasks[t.variant.ID] == t {
		t.back = time.Now()
		q.back = append(q.back, t)
	}
	q.wake()
}

// remove forgets a task. The caller holds mu.
func (q *Queue) remove(t *task) {
	delete(q.tasks, t.variant.ID)
	for h := range t.leases {
		delete(q.held, h)
	}
	q.back = slices.DeleteFunc(q.back, func(e *task) bool { return e == t })
	if q.most > 0 {
		q.wake()
	}
}

// deliver takes the result of a variant. One that nobody needs any more has no effect. The error is a fault if the row is
// none; its variant is given out again.
func (q *Queue) deliver(h holder, r *Result) error {
	q.mu.Lock()
	t := q.find(r.Variant)
	if t == nil {
		defer q.mu.Unlock()
		if q.stopped {
			return errStopped
		}
		return nil
	}
	row := r.Row
	if row == nil && t.leases[h] == nil { // it has said so before, or is too late
		q.mu.Unlock()
		return nil
	}
	if row == nil {
		t.deaths++
		t.died[h.worker] = true
		if t.deaths < mostDeaths {
			first, on := t.deaths == 1, q.labels[h.worker]
			q.mu.Unlock()
			q.release(h)
			if first {
				q.log(fmt.Sprintf("%s%s: %s; another engine tries again", r.Variant, on, r.Death))
			}
			return nil
		}
		crashed := q.plan.NoRow(t.variant, study.Crashed, fmt.Sprintf("%s; so did %d engines in all", r.Death, t.deaths))
		row = &crashed
	}
	if err := q.plan.CheckRow(t.variant, row); err != nil {
		q.mu.Unlock()
		q.release(h)
		return fault{err}
	}
	if l := t.leases[h]; l != nil {
		took := time.Duration(min(row.Seconds, time.Since(l.since).Seconds()) * float64(time.Second))
		q.longest = max(q.longest, took)
	}
	q.remove(t)
	q.proven[h.worker] = true
	q.mu.Unlock()
	var err error
	if r.keep != nil {
		err = r.keep()
	}
	if err == nil {
		err = t.order.take(*row)
	}
	if err != nil {
		t.order.cancel(err)
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.order.left--; t.order.left == 0 {
		close(t.order.finished)
	}
	return nil
}

func (o *order) take(r study.Row) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return errStopped
	}
	return o.done(r)
}

// errStopped is the end of a study that may go on later.
var errStopped = errors.New("the study was interrupted")

// fault is an error of a worker.
type fault struct{ error }

// watch ends leases whose time is over, until ctx is done.
func (q *Queue) watch(ctx context.Context) {
	tick := time.NewTicker(leaseTime / leaseTicks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		q.expire()
	}
}

// leaseTicks is how often a lease is looked at in its time.
const leaseTicks = 10

// expire ends leases whose time is over, and warns of runs that take long.
func (q *Queue) expire() {
	q.mu.Lock()
	now := time.Now()
	slow, since := 0, now
	var oldest *task
	var on string
	for h, t := range q.held {
		l := t.leases[h]
		age, limit := now.Sub(l.since), q.plan.Longest(t.variant)
		switch {
		case now.Sub(l.seen) > q.lease, limit > 0 && age > limit+q.lease:
			t.late = true
			q.giveBack(h, t)
		case age > max(q.stall, stallFactor*q.longest):
			if slow++; l.since.Before(since) {
				oldest, since, on = t, l.since, q.labels[h.worker]
			}
		}
	}
	longest := q.longest
	q.wake() // what is stalled may be given out
	q.mu.Unlock()
	if oldest != nil {
		q.tell("slow", fmt.Sprintf("warning: %d of the runs under way take long: %s%s has taken %v so far, the longest run that has ended %v; "+
			"if it hangs, end its engine or worker (time-limit in the study bounds runs)", slow, oldest.variant, on, now.Sub(since).Round(time.Second), longest.Round(time.Millisecond)))
	}
}

// tellEach is the least time between two messages about the same.
const tellEach = time.Minute

// tell logs a message, unless there was one about the same not long ago.
func (q *Queue) tell(about, text string) {
	q.mu.Lock()
	now := time.Now()
	again := now.Sub(q.told[about]) < tellEach
	if !again {
		q.told[about] = now
	}
	q.mu.Unlock()
	if !again {
		q.log(text)
	}
}
