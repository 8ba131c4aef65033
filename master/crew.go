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
	dropped []chan func() // of workers that were not faster; they sleep until the run ends
	running bool          // the other workers are started
	asked   int           // requested number of workers; 0 = chosen by the costs
	known   bool          // all costs are known
	pending atomic.Int32  // workers that have not finished their part of the phase
	done    chan struct{} // signals that none is pending
	vain    int           // waits of the run's own thread, see await
	errs    []error       // by worker
	at      []int         // by worker: the member of the phase that failed

	clock func() time.Time
	timed bool            // phases are timed
	span  time.Duration   // of timed phases
	parts []time.Duration // by worker: its part of timed phases
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

// newCrew distributes the subsystems over workers. If workers is 0, the number is chosen by the costs of
// steps in earlier runs; one if these are not known. Late subsystems, which wait for others, stay on the
// run's own thread.
func newCrew(s *System, workers int, H float64) *crew {
	costs, known := make([]float64, len(s.Subsystems)), false
	if workers != 1 {
		costs, known = stepCosts(s, H)
	}
	c := &crew{infos: s.Infos, owner: make([]int, len(s.Subsystems)), asked: workers, known: known}
	if !known {
		costs = slices.Repeat([]float64{1}, len(costs))
	}
	switch {
	case workers != 0:
		workers = max(1, min(workers, len(s.Stepped)))
	case known:
		workers, _, _ = bestCrew(s.Stepped, costs, handOver)
	default:
		workers = 1
	}
	balance(c.owner, s.Stepped, costs, workers)
	c.prepare(workers)
	return c
}

func (c *crew) prepare(workers int) {
	c.errs, c.at, c.parts = make([]error, workers), make([]int, workers), make([]time.Duration, workers)
	c.done = make(chan struct{}, 1)
	c.clock = time.Now
}

const (
	worthwhile    = 0.9    // several workers are chosen if they take at most this part of the time of one thread
	memberCost    = 0.1e-6 // s, of a call of its own for a member that one thread would step with others
	leastHandOver = 1e-6   // s: no machine hands work over and back in less
)

// stepCosts returns the cost (s) of a step of each subsystem in earlier runs; known is false if a Priced
// subsystem does not know it. Subsystems that are not Priced count as zero.
func stepCosts(s *System, H float64) (costs []float64, known bool) {
	costs = make([]float64, len(s.Subsystems))
	for i, sub := range s.Subsystems {
		if priced, ok := As[Priced](sub); ok {
			if costs[i], known = priced.StepCost(H); !known {
				return costs, false
			}
		}
	}
	return costs, known
}

// bestCrew returns the best number of workers for members with these costs of a macro step (s), and the
// time of a macro step with these workers and with one. handOver returns the time (s) of a phase beyond
// the work of its busiest worker; it is called only if it matters.
func bestCrew(members []int, costs []float64, handOver func(work []float64) float64) (workers int, side, serial float64) {
	workers = max(1, min(runtime.GOMAXPROCS(0), len(members)))
	work := balance(make([]int, len(costs)), members, costs, workers)
	for _, w := range work {
		serial += w
	}
	side = slices.Max(work) + float64(len(members))*memberCost
	if side+leastHandOver <= worthwhile*serial {
		if side += handOver(work); side <= worthwhile*serial {
			return workers, side, serial
		}
	}
	return 1, serial, serial
}

// handOver measures the hand-over under the present load of the machine: the median over phases in which
// each worker is busy for its part of a macro step, shortened if that is long.
func handOver(work []float64) float64 {
	const phases, longest = 21, 100e-6
	c := &crew{}
	c.prepare(len(work))
	var workers []int
	for w := range work {
		workers, c.owner = append(workers, w), append(c.owner, w)
	}
	scale := min(1, longest/slices.Max(work))
	p := c.phase(workers, func(w int) error {
		for begin := time.Now(); time.Since(begin).Seconds() < scale*work[w]; {
		}
		return nil
	})
	c.start()
	defer c.stop()
	took := make([]float64, phases)
	for k := range took {
		begin := time.Now()
		_ = p.Run() // its work cannot fail
		took[k] = time.Since(begin).Seconds() - scale*slices.Max(work)
	}
	slices.Sort(took)
	return took[phases/2]
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

// drop moves all subsystems to the run's own thread. The other threads live until the run ends, because
// processes that they have started end with them.
func (c *crew) drop() {
	c.dropped, c.others, c.errs = c.others, nil, c.errs[:1]
	clear(c.owner)
}

// stop ends the other workers.
func (c *crew) stop() {
	for _, work := range slices.Concat(c.others, c.dropped) {
		close(work)
	}
	c.others, c.dropped, c.running = nil, nil, false
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

// part does the part of one worker, timed if phases are.
func (p *Phase) part(at int) {
	if !p.c.timed {
		p.work(at)
		return
	}
	begin := p.c.clock()
	p.work(at)
	p.c.parts[at] += p.c.clock().Sub(begin)
}

// work does the part of one worker.
func (p *Phase) work(at int) {
	alone := len(p.c.errs) == 1
	m := 0
	defer func() {
		if at > 0 {
			if v := recover(); v != nil {
				p.c.errs[at], p.c.at[at] = p.c.panicked(p.names[m], v), m
			}
		}
	}()
	for m = range p.owner {
		if p.owner[m] != at && !alone {
			continue
		}
		if err := p.do(m); err != nil {
			p.c.errs[at], p.c.at[at] = err, m
			return
		}
	}
}

// alone reports whether the run's own thread does all work, and phases are not timed.
func (c *crew) alone() bool { return len(c.others) == 0 && !c.timed }

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
	var begin time.Time
	if c.timed {
		begin = c.clock()
	}
	for at, work := range c.others {
		if p.busy[at+1] {
			c.pending.Add(1)
			work <- p.jobs[at+1]
		}
	}
	p.part(0)
	c.wait()
	if c.timed {
		c.span += c.clock().Sub(begin)
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
