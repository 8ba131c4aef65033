package master

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

// crew calls the subsystems of a run from fixed threads: many want to be called
// by one thread all their life (fmi2 38). Worker 0 is the goroutine of the run
// itself; the others work beside it while a phase lasts.
//
// What is computed does not depend on the number of workers: each subsystem is
// called in the same order with the same values, and the error of a phase is
// that of its first member that failed.
type crew struct {
	infos   []*Info
	owner   []int        // worker, by subsystem
	others  []*station   // workers but the first
	running bool         // they are up
	patient bool         // who waits may spin first
	guessed bool         // the number of workers was to be chosen, and not all costs were known
	costs   []float64    // s, of a step by subsystem; NaN = not known
	pending atomic.Int32 // workers that have not done their part of the phase
	done    sleeper      // the run's own thread, waiting for them
	errs    []error      // by worker
	at      []int        // by worker: which member of the phase failed
}

// station is where a worker other than the first waits for work.
type station struct {
	sleeper
	given, taken atomic.Uint32 // pieces of work
	job          func()        // nil: it is to end
}

// sleeper lets a thread wait for another: it spins for a while, since a thread that
// sleeps takes far longer to wake than a macro step may last, and then sleeps.
type sleeper struct {
	asleep atomic.Bool
	wake   chan struct{} // holds one
}

// spinTime is how long a thread spins: what it takes to put it to sleep and to wake it.
const spinTime = 50 * time.Microsecond

// await returns when ready does.
func (s *sleeper) await(spins bool, ready func() bool) {
	if ready() {
		return
	}
	if spins {
		const round = 64
		for begin := time.Now(); time.Since(begin) < spinTime; {
			for range round {
				if ready() {
					return
				}
			}
		}
	}
	for {
		s.asleep.Store(true)
		if ready() {
			s.asleep.Store(false)
			return
		}
		<-s.wake
	}
}

// rouse is called after what is waited for has come about.
func (s *sleeper) rouse() {
	if s.asleep.Swap(false) {
		select {
		case s.wake <- struct{}{}:
		default: // it has been told
		}
	}
}

// newCrew spreads the subsystems over workers: as asked, or, with 0, as many as pay
// by the costs of their steps (s), as far as these are known: nil = by earlier runs. Late
// ones, which wait for others, stay with the run's own thread.
func newCrew(s *System, workers int, H float64, costs []float64) *crew {
	known := costs != nil
	if !known {
		costs, known = stepCosts(s, H)
	}
	c := &crew{infos: s.Infos, owner: make([]int, len(s.Subsystems)), costs: costs}
	switch {
	case workers != 0:
		workers = max(1, min(workers, len(s.Stepped)))
	case known:
		workers, _, _ = bestCrew(s.Stepped, costs)
	default:
		workers, c.guessed = 1, true
	}
	if known {
		balance(c.owner, s.Stepped, costs, workers)
	} else {
		for k, i := range s.Stepped {
			c.owner[i] = k * workers / len(s.Stepped)
		}
	}
	c.errs, c.at = make([]error, workers), make([]int, workers)
	c.patient = workers <= runtime.GOMAXPROCS(0)
	c.done.wake = make(chan struct{}, 1)
	return c
}

// More than one worker is chosen if that takes at most this part of the time. A phase
// costs some time (s) beside its work, and so does each of its members that one thread
// could have called with others in one crossing.
const (
	worthwhile = 0.9
	phaseCost  = 10e-6
	memberCost = 0.1e-6
)

// stepCosts gives the time in s that a step of each subsystem takes, NaN if it is not
// known, and whether those that can know it do. Others, Go code beside FMUs, count as
// costing nothing then.
func stepCosts(s *System, H float64) (costs []float64, known bool) {
	costs = slices.Repeat([]float64{math.NaN()}, len(s.Subsystems))
	asked, missing := 0, 0
	for i, sub := range s.Subsystems {
		if priced, ok := As[Priced](sub); ok {
			asked++
			if cost, ok := priced.StepCost(H); ok {
				costs[i] = cost
			} else {
				missing++
			}
		}
	}
	if asked == 0 || missing > 0 {
		return costs, false
	}
	for i, cost := range costs {
		if math.IsNaN(cost) {
			costs[i] = 0
		}
	}
	return costs, true
}

// bestCrew chooses the number of workers for members by the costs of their steps (s),
// and tells what a macro step costs then and with one worker.
func bestCrew(members []int, costs []float64) (workers int, side, serial float64) {
	workers = max(1, min(runtime.GOMAXPROCS(0), len(members)))
	longest, serial := balance(make([]int, len(costs)), members, costs, workers)
	side = longest + phaseCost + float64(len(members))*memberCost
	if side > worthwhile*serial {
		return 1, serial, serial
	}
	return workers, side, serial
}

// balance gives each member in turn, the costly ones first, to the worker that has
// least to do, its owner, and tells the work of the one that has most, and that of all.
func balance(owner, members []int, costs []float64, workers int) (longest, sum float64) {
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	load := make([]float64, workers)
	for _, i := range order {
		least := 0
		for w := range load {
			if load[w] < load[least] {
				least = w
			}
		}
		owner[i] = least
		load[least] += costs[i]
		sum += costs[i]
	}
	return slices.Max(load), sum
}

// start brings the other workers up.
func (c *crew) start() {
	c.running = true
	for range len(c.errs) - 1 {
		st := &station{sleeper: sleeper{wake: make(chan struct{}, 1)}}
		c.others = append(c.others, st)
		ready := func() bool { return st.given.Load() != st.taken.Load() }
		go func() {
			runtime.LockOSThread() // for good: the thread ends with the worker
			for {
				st.await(c.patient, ready)
				st.taken.Add(1)
				if st.job == nil {
					return
				}
				st.job()
				if c.pending.Add(-1) == 0 {
					c.done.rouse()
				}
			}
		}()
	}
}

// stop ends them.
func (c *crew) stop() {
	for _, st := range c.others {
		st.give(nil)
	}
	c.others, c.running = nil, false
}

// give hands a worker that has nothing to do a piece of work.
func (st *station) give(job func()) {
	st.job = job
	st.given.Add(1)
	st.rouse()
}

// wait waits for the workers.
func (c *crew) wait() {
	c.done.await(c.patient, func() bool { return c.pending.Load() == 0 })
}

// on runs f on the thread of subsystem i.
func (c *crew) on(i int, f func() error) error {
	at := c.owner[i]
	if at == 0 || !c.running {
		return f()
	}
	c.pending.Add(1)
	c.others[at-1].give(func() { c.errs[at] = c.guarded(i, f) })
	c.wait()
	err := c.errs[at]
	c.errs[at] = nil
	return err
}

// Phase is work on some subsystems, each on its own thread. It is prepared once;
// running it allocates nothing.
type Phase struct {
	c     *crew
	do    func(m int) error
	owner []int // worker, by member
	names []int // subsystem, by member
	busy  []bool
	jobs  []func()
}

// NewPhase prepares do(i) for each of the members i. Without further workers it
// is done in their order; with them, do must touch nothing that belongs to
// another member.
func (x *Exec) NewPhase(members []int, do func(i int) error) *Phase {
	return x.crew.phase(members, func(m int) error { return do(members[m]) })
}

// phase prepares do(m) for the members m = 0, 1, …, which belong to subsystems.
func (c *crew) phase(subsystems []int, do func(m int) error) *Phase {
	p := &Phase{c: c, do: do, names: subsystems, busy: make([]bool, len(c.errs))}
	for _, i := range subsystems {
		p.owner = append(p.owner, c.owner[i])
		p.busy[c.owner[i]] = true
	}
	for at := range c.errs {
		p.jobs = append(p.jobs, func() { p.work(at) })
	}
	return p
}

// Run does the work and gives the error of the first member that failed.
func (p *Phase) Run() error {
	c := p.c
	if len(c.others) == 0 {
		for m := range p.owner {
			if err := p.do(m); err != nil {
				return err
			}
		}
		return nil
	}
	for at, st := range c.others {
		if p.busy[at+1] {
			c.pending.Add(1)
			st.give(p.jobs[at+1])
		}
	}
	p.work(0)
	c.wait()
	var first error
	place := 0
	for at, err := range c.errs {
		if err != nil && (first == nil || c.at[at] < place) {
			first, place = err, c.at[at]
		}
		c.errs[at] = nil
	}
	return first
}

// work does the part of one worker.
func (p *Phase) work(at int) {
	m := 0
	defer func() {
		if at > 0 {
			if v := recover(); v != nil {
				p.c.errs[at], p.c.at[at] = p.c.panicked(p.names[m], v), m
			}
		}
	}()
	for m = range p.owner {
		if p.owner[m] != at {
			continue
		}
		if err := p.do(m); err != nil {
			p.c.errs[at], p.c.at[at] = err, m
			return
		}
	}
}

// panicError is a panic on the thread of another worker.
type panicError struct {
	subsystem string
	value     any
	stack     []byte
}

func (p *panicError) Error() string {
	return fmt.Sprintf("panic near subsystem %s: %v", p.subsystem, p.value)
}

// guarded makes an error of a panic.
func (c *crew) guarded(i int, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked(i, v)
		}
	}()
	return f()
}

func (c *crew) panicked(i int, v any) error {
	return &panicError{c.infos[i].String(), v, debug.Stack()}
}
