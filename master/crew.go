package master

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
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
	thread  func(f func()) // calls f on a thread as the subsystems want it
	owner   []int          // worker, by subsystem
	jobs    []chan func()  // by worker but the first
	pending sync.WaitGroup
	errs    []error // by worker
	at      []int   // by worker: which member of the phase failed
}

// newCrew spreads the subsystems over workers. Late ones, which wait for others,
// stay with the run's own thread.
func newCrew(s *System, workers int) *crew {
	workers = max(1, min(workers, len(s.Stepped)))
	c := &crew{infos: s.Infos, thread: s.onThread(), owner: make([]int, len(s.Subsystems)), errs: make([]error, workers), at: make([]int, workers)}
	for k, i := range s.Stepped {
		c.owner[i] = k * workers / len(s.Stepped)
	}
	return c
}

// onThread gives what calls a function bound to a thread as the subsystems want it.
func (s *System) onThread() func(f func()) {
	for _, sub := range s.Subsystems {
		if u, ok := As[ThreadUser](sub); ok {
			return u.OnThread
		}
	}
	return func(f func()) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f()
	}
}

// start brings the other workers up.
func (c *crew) start() {
	for range len(c.errs) - 1 {
		jobs := make(chan func())
		c.jobs = append(c.jobs, jobs)
		go c.thread(func() {
			runtime.LockOSThread() // for good: the thread ends with the worker
			for job := range jobs {
				job()
			}
		})
	}
}

// stop ends them.
func (c *crew) stop() {
	for _, jobs := range c.jobs {
		close(jobs)
	}
	c.jobs = nil
}

// on runs f on the thread of subsystem i.
func (c *crew) on(i int, f func() error) error {
	at := c.owner[i]
	if at == 0 || len(c.jobs) == 0 {
		return f()
	}
	c.pending.Add(1)
	c.jobs[at-1] <- func() {
		defer c.pending.Done()
		c.errs[at] = c.guarded(i, f)
	}
	c.pending.Wait()
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
		p.jobs = append(p.jobs, func() {
			defer c.pending.Done()
			p.work(at)
		})
	}
	return p
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

// Run does the work and gives the error of the first member that failed.
func (p *Phase) Run() error {
	c := p.c
	for at, jobs := range c.jobs {
		if p.busy[at+1] {
			c.pending.Add(1)
			jobs <- p.jobs[at+1]
		}
	}
	p.work(0)
	if len(c.jobs) > 0 {
		c.pending.Wait()
	}
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
