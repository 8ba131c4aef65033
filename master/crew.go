package master

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

// crew calls each subsystem of a run from a fixed thread, because many must be called from one thread all
// their life (fmi2 38). Worker 0 is the goroutine of the run; the others work in parallel during a phase.
//
// Results do not depend on the number of workers: each subsystem is called in the same order with the same
// values, and the error of a phase is that of its first member that failed.
type crew struct {
	infos   []*Info
	owner   []int         // worker, by subsystem
	others  []chan func() // work for the workers but the first
	running bool          // the other workers are started
	pending atomic.Int32  // workers that have not finished their part of the phase
	done    chan struct{} // signals that none is pending
	vain    int           // unsuccessful spins of the run's own thread in a row, see await
	errs    []error       // by worker
	at      []int         // by worker: the member of the phase that failed
}

// A waiting thread first spins, because waking a sleeping thread may take longer than a macro step, and
// then sleeps. After spinning in vain several times it sleeps at once: the other thread may need the
// processor.
const (
	spinTime  = 50 * time.Microsecond // about the time to put a thread to sleep and wake it
	spinVain  = 4                     // waits in vain after which a thread spins rarely
	spinAgain = 16                    // it then spins in one of this many waits
)

// await receives from a channel; vain counts the waits since spinning last succeeded.
func await[T any](from chan T, vain *int) T {
	if *vain < spinVain || *vain%spinAgain == 0 {
		const round = 64
		for begin := time.Now(); time.Since(begin) < spinTime; {
			for range round {
				if len(from) > 0 {
					*vain = 0
					return <-from
				}
			}
		}
	}
	*vain++
	return <-from
}

// newCrew distributes the subsystems over workers, for the whole run. If workers is 0, the number is chosen
// by the costs of steps in earlier runs; one if these are not known. Late subsystems, which wait for others,
// stay on the run's own thread.
func newCrew(s *System, workers int, H float64) *crew {
	costs, known := make([]float64, len(s.Subsystems)), false
	if workers != 1 {
		costs, known = stepCosts(s, H)
	}
	switch {
	case workers > 0:
		workers = max(1, min(workers, len(s.Stepped)))
	case known:
		workers = bestCrew(s.Stepped, costs)
	default:
		workers = 1
	}
	if !known {
		costs = slices.Repeat([]float64{1}, len(costs))
	}
	c := &crew{infos: s.Infos, owner: make([]int, len(s.Subsystems)), errs: make([]error, workers), at: make([]int, workers),
		done: make(chan struct{}, 1)}
	balance(c.owner, s.Stepped, costs, workers)
	return c
}

// balance assigns each member, in order of falling cost, to the worker with the least work, and returns the
// work of each worker.
func balance(owner, members []int, costs []float64, workers int) (work []float64) {
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	work = make([]float64, workers)
	for _, i := range order {
		least := 0
		for w := range work {
			if work[w] < work[least] {
				least = w
			}
		}
		owner[i] = least
		work[least] += costs[i]
	}
	return work
}

// start starts the other workers.
func (c *crew) start() {
	c.running = true
	for range len(c.errs) - 1 {
		work := make(chan func(), 1)
		c.others = append(c.others, work)
		go func() {
			runtime.LockOSThread() // for good: the thread ends with the worker
			vain := 0
			for job := await(work, &vain); job != nil; job = await(work, &vain) {
				job()
				if c.pending.Add(-1) == 0 {
					select {
					case c.done <- struct{}{}:
					default: // a signal is there already
					}
				}
			}
		}()
	}
}

// stop ends the other workers.
func (c *crew) stop() {
	for _, work := range c.others {
		close(work)
	}
	c.others, c.running = nil, false
}

// wait waits for the workers.
func (c *crew) wait() {
	for c.pending.Load() > 0 {
		await(c.done, &c.vain)
	}
}

// on runs f on the thread of subsystem i.
func (c *crew) on(i int, f func() error) error {
	at := c.owner[i]
	if at == 0 || !c.running {
		return f()
	}
	c.pending.Add(1)
	c.others[at-1] <- func() { c.errs[at] = c.guarded(i, f) }
	c.wait()
	err := c.errs[at]
	c.errs[at] = nil
	return err
}

// Phase is work on some subsystems, each on its own thread. Running it allocates nothing.
type Phase struct {
	c     *crew
	do    func(m int) error
	owner []int // worker, by member
	names []int // subsystem, by member
	busy  []bool
	jobs  []func()
}

// NewPhase prepares do(i) for each of the members i. With one worker the calls are made in their order;
// with several, do must not access anything of another member.
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
		p.jobs = append(p.jobs, func() { p.part(at) })
	}
	return p
}

// part does the part of one worker.
func (p *Phase) part(at int) {
	m := 0
	defer func() {
		if v := recover(); v != nil { // also of the run's own thread, which has to wait for the others
			p.c.errs[at], p.c.at[at] = p.c.panicked(p.names[m], v), m
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

// alone reports whether the run's own thread does all work.
func (c *crew) alone() bool { return len(c.others) == 0 }

// Run does the work and returns the error of the first member that failed.
func (p *Phase) Run() error {
	c := p.c
	if c.alone() {
		for m := range p.owner {
			if err := p.do(m); err != nil {
				return err
			}
		}
		return nil
	}
	for at, work := range c.others {
		if p.busy[at+1] {
			c.pending.Add(1)
			work <- p.jobs[at+1]
		}
	}
	p.part(0)
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

// panicError is a panic on the thread of another worker.
type panicError struct {
	subsystem string
	value     any
	stack     []byte
}

func (p *panicError) Error() string {
	return fmt.Sprintf("panic near subsystem %s: %v", p.subsystem, p.value)
}

// guarded turns a panic of f into an error.
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
