package master

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// OverrunPolicy is the reaction to a macro step that misses its deadline.
type OverrunPolicy uint8

// The policies.
const (
	// CatchUp keeps the deadlines: late steps follow at once until the run is in time again.
	CatchUp OverrunPolicy = iota
	// SkipSlots moves all later deadlines by whole macro steps, as many as were lost. The simulated time
	// stays behind the clock by that much.
	SkipSlots
	// StopOnOverrun ends the run with ErrOverrun, after recording the point.
	StopOnOverrun
)

// overrunNames are the names of the policies, by their numbers.
var overrunNames = [...]string{"catch-up", "skip", "stop"}

// OverrunPolicies returns the names of the policies.
func OverrunPolicies() []string { return overrunNames[:] }

// String returns the name of the policy.
func (p OverrunPolicy) String() string {
	if int(p) < len(overrunNames) {
		return overrunNames[p]
	}
	return fmt.Sprintf("%d?", uint8(p))
}

// ErrOverrun is the error of a run that has missed a deadline, with StopOnOverrun.
var ErrOverrun = errors.New("deadline missed")

// Realtime synchronises a run with the clock: the communication point at t is accepted, recorded and
// passed to hooks no earlier than (t − start)/Factor seconds after the stepping began, by the monotonic
// clock. Deadlines are absolute, so lateness does not add up.
//
// The run waits on its locked thread: it sleeps until shortly before the deadline (Linux: clock_nanosleep
// to an absolute time; else a timer) and spins for the rest. Unless LeaveRuntime is set, Start changes
// settings of the process and Close restores them: after one garbage collection, the collector is off
// (debug.SetGCPercent(-1)) until the memory of the process has grown by 256 MiB (debug.SetMemoryLimit,
// unless a lower limit is set); on Linux the timer slack of the thread is 1 ns (PR_SET_TIMERSLACK).
//
// The run does not flush its recorders, which might wait for a disk. A program can flush a recorder from
// another goroutine if the recorder allows that.
type Realtime struct {
	Factor  float64 // simulated seconds a second; 0 counts as 1
	Overrun OverrunPolicy
	// Unbounded allows algorithms whose work in a macro step has no bound (Plan.Unbounded), and the
	// repetition of discarded steps.
	Unbounded bool
	// Spin is how long before a deadline sleep ends and spinning begins; 0 = 100 µs,
	// negative = none. It is at most a quarter of a macro step.
	Spin time.Duration
	// Priority is the SCHED_FIFO priority of the thread (Linux; 1 to 99), which requires CAP_SYS_NICE or
	// RLIMIT_RTPRIO. The other threads of the process get the next lower one until the run is closed.
	// 0 keeps the scheduling.
	Priority     int
	LeaveRuntime bool
}

// Timing records how well a run has met its deadlines.
type Timing struct {
	Factor    float64 `json:"factor"`
	Overrun   string  `json:"overrun_policy"`
	Deadlines int     `json:"deadlines"`
	Overruns  int     `json:"overruns"` // steps that missed their deadline
	Skipped   int     `json:"skipped"`  // skipped macro steps of the clock
	Paused    float64 `json:"paused"`   // s for which the run was paused (Options.Admit), and its clock with it
	Waited    float64 `json:"waited"`   // s that the run waited for deadlines
	// Lateness is the time from a deadline to when the run went on; Work is the time from then to the
	// end of the next step.
	Lateness Distribution `json:"lateness"`
	Work     Distribution `json:"work"`
	WorstAt  float64      `json:"worst_at"` // s, simulated: where the lateness was largest
	// Settings lists the changed settings, and those that could not be changed.
	Settings []string `json:"settings"`
}

// Distribution of a time in s. Percentiles are rounded up, by 3 % at most.
type Distribution struct {
	Mean      float64  `json:"mean"`
	P50       float64  `json:"p50"`
	P99       float64  `json:"p99"`
	P999      float64  `json:"p99_9"`
	Worst     float64  `json:"worst"`
	Histogram []Bucket `json:"histogram"` // of 1, 2 and 5 in each decade; empty ones are left out
}

// Bucket counts the times above the previous bucket and up to UpTo.
type Bucket struct {
	UpTo  float64 `json:"up_to"` // s
	Count int     `json:"count"`
}

// histogram counts times with 32 buckets an octave.
type histogram struct {
	counts []int // allocated when the clock starts
	n      int
	sum    float64 // s
	worst  time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	v := uint64(d)
	at := int(v)
	if v >= 32 {
		e := bits.Len64(v) - 1
		at = (e-4)*32 + int(v>>(e-5)&31)
	}
	h.counts[at]++
	h.n++
	h.sum += d.Seconds()
	h.worst = max(h.worst, d)
}

// bound returns the largest time in bucket at.
func (h *histogram) bound(at int) time.Duration {
	if at < 32 {
		return time.Duration(at)
	}
	return min(time.Duration((uint64(32+at%32+1)<<(at/32-1))-1), h.worst)
}

// percentile returns the time that a share q of all times does not exceed.
func (h *histogram) percentile(q float64) float64 {
	rank, n := int(math.Ceil(q*float64(h.n))), 0
	for at, count := range h.counts {
		if n += count; n >= rank && n > 0 {
			return h.bound(at).Seconds()
		}
	}
	return 0
}

func (h *histogram) distribution() Distribution {
	d := Distribution{P50: h.percentile(0.5), P99: h.percentile(0.99), P999: h.percentile(0.999),
		Worst: h.worst.Seconds(), Histogram: []Bucket{}}
	if h.n > 0 {
		d.Mean = h.sum / float64(h.n)
	}
	upTo, next := time.Microsecond, 0
	for count := 0; next < len(h.counts); upTo, count = longer(upTo), 0 {
		for ; next < len(h.counts) && (h.bound(next) <= upTo || upTo >= time.Hour); next++ {
			count += h.counts[next]
		}
		if count > 0 {
			d.Histogram = append(d.Histogram, Bucket{UpTo: upTo.Seconds(), Count: count})
		}
	}
	return d
}

// longer returns the next of 1, 2, 5, 10 …
func longer(d time.Duration) time.Duration {
	lead := d
	for lead >= 10 {
		lead /= 10
	}
	if lead == 2 {
		return d / 2 * 5
	}
	return d * 2
}

// pacer synchronises a run with the clock.
type pacer struct {
	opt      Realtime
	slot     time.Duration // the macro step of the options, in real time
	spin     time.Duration
	from     float64       // simulated time at begin
	begin    time.Time     // of the clock
	moved    time.Duration // by slots that were skipped
	awake    time.Duration // since begin: when the run went on after the last deadline
	sleep    untilSleeper
	undo     []func()
	settings []string // Timing.Settings
	paced
}

// paced is how well a run has met its deadlines so far.
type paced struct {
	timing         Timing // its counts
	waited         time.Duration
	lateness, work histogram
}

// untilSleeper sleeps until times of the clock, given since begin. It may wake early. Runs use a
// clockSleeper; tests with a simulated clock replace it.
type untilSleeper interface {
	start(begin time.Time)
	until(due time.Duration)
}

// Bounds of waiting.
const (
	defaultSpin = 100 * time.Microsecond
	// Longer waits end with the context.
	shortWait  = 20 * time.Millisecond
	heapGrowth = 256 << 20 // bytes
)

// preparePace makes the pacer of a run in real time; it fails if the run cannot be.
func (r *Run) preparePace() error {
	o := r.opt.Realtime
	if o == nil {
		return nil
	}
	p := &pacer{opt: *o, sleep: &clockSleeper{}}
	if p.opt.Factor == 0 {
		p.opt.Factor = 1
	}
	switch slot := r.opt.Step / p.opt.Factor; {
	case !(p.opt.Factor > 0) || math.IsInf(p.opt.Factor, 0):
		return fmt.Errorf("the factor of real time is %g; it must be greater than 0", o.Factor)
	case int(o.Overrun) >= len(overrunNames):
		return fmt.Errorf("there is no overrun policy %d", o.Overrun)
	case o.Priority < 0 || o.Priority > 99:
		return fmt.Errorf("the real-time priority is %d; it must be 1 to 99, or 0 for none", o.Priority)
	case (r.opt.Stop-r.opt.Start)/p.opt.Factor > math.MaxInt64/4e9:
		return fmt.Errorf("the run would take %.3g s of real time; choose an earlier stop time or a larger factor",
			(r.opt.Stop-r.opt.Start)/p.opt.Factor)
	case slot < 1e-6:
		return fmt.Errorf("a macro step of %g s at %g times real time takes %.3g s, less than a microsecond, "+
			"which no run can keep up with; "+
			"choose a larger step size or a smaller factor", r.opt.Step, p.opt.Factor, slot)
	default:
		p.slot = time.Duration(slot * float64(time.Second))
	}
	if !o.Unbounded {
		why := r.plan.Unbounded
		if r.opt.Discard == ShortenOnDiscard {
			why = "discarded steps are taken again in pieces"
		}
		if why != "" {
			return fmt.Errorf("%w: in real time the work of a macro step must have a bound, and %s: choose an "+
				"explicit algorithm with fixed steps, "+
				"or allow it (--debug realtime-unbounded) and watch the lateness", ErrCapability, why)
		}
	}
	if p.spin = o.Spin; p.spin == 0 {
		p.spin = defaultSpin
	}
	p.spin = min(max(p.spin, 0), p.slot/4)
	r.pacer = p
	return nil
}

// start starts the clock at the simulated time t, on the thread of the run.
func (p *pacer) start(t float64) error {
	for _, h := range []*histogram{&p.lateness, &p.work} {
		if h.counts == nil { // else the run was resumed
			h.counts = make([]int, 60*32)
		}
	}
	if !p.opt.LeaveRuntime {
		p.settings = append(p.settings, quiet.begin())
		p.undo = append(p.undo, quiet.end)
	}
	undo, notes, err := prepareThread(p.opt.Priority, p.opt.LeaveRuntime)
	p.undo = append(p.undo, undo...)
	if p.settings = append(p.settings, notes...); err != nil {
		p.stop()
		return err
	}
	p.from = t
	p.begin = time.Now()
	p.sleep.start(p.begin)
	return nil
}

// quietRuntime turns the garbage collector off during runs in real time. The settings belong to the
// process: the first run changes them, the last one restores them.
type quietRuntime struct {
	mu      sync.Mutex
	runs    int
	percent int   // before
	memory  int64 // limit before
	note    string
}

var quiet quietRuntime

func (q *quietRuntime) begin() (note string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.runs++; q.runs > 1 {
		return q.note
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	q.memory = debug.SetMemoryLimit(-1)
	limit := min(q.memory, int64(m.Sys-m.HeapReleased)+heapGrowth)
	q.percent = debug.SetGCPercent(-1)
	debug.SetMemoryLimit(limit)
	q.note = fmt.Sprintf("garbage collection off below %d MiB", limit>>20)
	return q.note
}

func (q *quietRuntime) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.runs--; q.runs == 0 {
		debug.SetGCPercent(q.percent)
		debug.SetMemoryLimit(q.memory)
	}
}

// stop restores the settings that start has changed.
func (p *pacer) stop() {
	for _, undo := range p.undo {
		undo()
	}
	p.undo = nil
}

// due returns the deadline of the simulated time t, since begin.
func (p *pacer) due(t float64) time.Duration {
	return time.Duration((t-p.from)/p.opt.Factor*float64(time.Second)) + p.moved
}

// pace waits for the deadline of the present communication point. It returns an error if the deadline is
// missed and the policy is StopOnOverrun.
func (r *Run) pace(ctx context.Context) error {
	p := r.pacer
	if p == nil {
		return nil
	}
	due, now := p.due(r.t), time.Since(p.begin)
	p.work.add(now - p.awake)
	p.timing.Deadlines++
	missed := now > due
	if missed {
		p.timing.Overruns++
	} else {
		finish := now
		now = p.wait(ctx, due)
		p.waited += now - finish
	}
	if now-due > p.lateness.worst {
		p.timing.WorstAt = r.t
	}
	p.lateness.add(now - due)
	p.awake = now
	if !missed {
		return nil
	}
	switch p.opt.Overrun {
	case SkipSlots:
		slots := (now - due + p.slot - 1) / p.slot
		p.timing.Skipped += int(slots)
		p.moved += slots * p.slot
		p.awake = p.wait(ctx, due+slots*p.slot)
		p.waited += p.awake - now
	case StopOnOverrun:
		return fmt.Errorf("%w: the step to t = %.12g s was done %v late: choose a larger step size or a smaller "+
			"factor of real time, or let the run go on (--overrun catch-up or skip)", ErrOverrun, r.t, now-due)
	}
	return nil
}

// wait waits until the time due since begin, or until ctx ends, and returns the time.
func (p *pacer) wait(ctx context.Context, due time.Duration) time.Duration {
	now := time.Since(p.begin)
	if due-now > shortWait {
		timer := time.NewTimer(due - now - shortWait/2)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return time.Since(p.begin)
		}
	}
	for now = time.Since(p.begin); now < due-p.spin; now = time.Since(p.begin) {
		p.sleep.until(due - p.spin)
	}
	for now < due {
		now = time.Since(p.begin)
	}
	return now
}

// Resync restarts the clock of a run in real time at the present communication point, after a pause that
// the run would catch up otherwise.
func (r *Run) Resync() {
	if p := r.pacer; p != nil && r.phase == running {
		p.moved += time.Since(p.begin) - p.due(r.t)
		p.awake = time.Since(p.begin)
	}
}

// result returns the timing so far.
func (p *pacer) result() *Timing {
	t := p.timing
	t.Factor, t.Overrun, t.Settings, t.Waited = p.opt.Factor, p.opt.Overrun.String(), p.settings, p.waited.Seconds()
	t.Lateness, t.Work = p.lateness.distribution(), p.work.distribution()
	return &t
}

// considerable is the share of missed deadlines from which a run warns.
const considerable = 0.01

// Missed returns a warning if a considerable share of the deadlines was missed, else "".
func (t *Timing) Missed() string {
	share := float64(t.Overruns) / float64(max(t.Deadlines, 1))
	if share < considerable {
		return ""
	}
	effect := "the run did not keep pace with the clock"
	if t.Skipped > 0 {
		effect = fmt.Sprintf("the simulated time fell behind the clock by %d macro steps", t.Skipped)
	}
	return fmt.Sprintf("%d of %d deadlines were missed (%.3g %%), the worst by %.2g s: %s; choose a larger step "+
		"size or a smaller factor of real time, "+
		"or give the run a priority (--realtime-priority)",
		t.Overruns, t.Deadlines, 100*share, t.Lateness.Worst, effect)
}
