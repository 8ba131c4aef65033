package master

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Blocks of macro steps are timed periodically. Costs are stored after keepTime, and a warning about
// workers is given after warnTime.
const (
	blockSteps  = 20 // macro steps at least
	blockTime   = time.Millisecond
	blocks      = 5                     // timed in a row
	blocksPause = 45                    // not timed after these
	settleTime  = 20 * time.Millisecond // before the first block; meters may be inexact earlier
	keepTime    = 50 * time.Millisecond
	warnTime    = 500 * time.Millisecond
)

// sampler times blocks of macro steps, to find the cost of a step of each subsystem, and whether several
// workers are faster. It keeps the least of several blocks, because other programs on the machine prolong
// some of them.
type sampler struct {
	next    int       // macro step at which a block begins or ends
	size    int       // of a block, in macro steps
	left    int       // blocks before the next pause, including the present one; 0 = in a pause
	first   int       // macro step at which the block begins
	begin   time.Time // of the block
	seconds []float64 // by subsystem: inside it when the block began
	steps   []int     // by subsystem: taken when the block began
	cost    []float64 // s, of a step by subsystem; +Inf = not known
	// Time of the phases per macro step (s) since the last pause: with workers, and estimated for one
	// thread.
	side, serial float64
	warned       bool
}

func newSampler(n int) sampler {
	return sampler{size: blockSteps, seconds: make([]float64, n), steps: make([]int, n), cost: slices.Repeat([]float64{math.Inf(1)}, n)}
}

// sample ends a block and begins the next.
func (r *Run) sample() {
	s, c := &r.sampler, r.x.crew
	now := c.clock()
	if now.Sub(r.startWall) < settleTime {
		s.next = r.accepted + blockSteps
		return
	}
	if s.left > 0 {
		s.endBlock(r.x, r.accepted)
		if now.Sub(s.begin) < blockTime {
			s.size *= 2
		}
		if s.left--; s.left == 0 {
			c.timed = false
			s.next = r.accepted + blocksPause*s.size
			if len(c.errs) > 1 {
				r.judgeWorkers(now)
			}
			return
		}
	} else {
		s.left, s.side, s.serial = blocks, math.Inf(1), math.Inf(1)
		c.timed = len(c.errs) > 1
	}
	s.begin, s.first, s.next = now, r.accepted, r.accepted+s.size
	c.span = 0
	clear(c.parts)
	for i := range s.seconds {
		s.seconds[i], s.steps[i] = r.x.subsystemSeconds(i), r.x.steps[i]
	}
}

// endBlock evaluates a block that ends at a macro step.
func (s *sampler) endBlock(x *Exec, accepted int) {
	for i := range s.seconds {
		if n := x.steps[i] - s.steps[i]; n > 0 {
			s.cost[i] = min(s.cost[i], (x.subsystemSeconds(i)-s.seconds[i])/float64(n))
		}
	}
	steps := float64(accepted - s.first)
	var parts time.Duration
	for _, part := range x.crew.parts {
		parts += part
	}
	s.side, s.serial = min(s.side, x.crew.span.Seconds()/steps), min(s.serial, parts.Seconds()/steps)
}

// judgeWorkers drops workers that are not faster than one thread if their number was chosen automatically,
// and warns otherwise.
func (r *Run) judgeWorkers(now time.Time) {
	s, c := &r.sampler, r.x.crew
	compared := fmt.Sprintf("with %d workers the subsystems take %.1f µs per macro step, %.1f times as long as in "+
		"one thread (about %.1f µs)",
		len(c.errs), s.side*1e6, s.side/s.serial, s.serial*1e6)
	switch {
	case c.asked == 0 && s.side > worthwhile*s.serial:
		r.note(fmt.Sprintf("%s: the run uses one thread from t = %.12g s on", compared, r.t))
		c.drop()
	case c.asked != 0 && s.side > s.serial && now.Sub(r.startWall) >= warnTime && !s.warned:
		s.warned = true
		r.warn(compared + "; give --workers 1, or leave the choice to macrostep (--workers 0)")
	}
}

func (r *Run) note(text string) {
	r.notes = append(r.notes, text)
	r.opt.Logger.Info(text)
}

// keepCosts stores the costs of steps for later runs, and notes if several workers would have been faster
// but could not be chosen because the costs were unknown.
func (r *Run) keepCosts() {
	if r.accepted < blockSteps || r.wall < keepTime {
		return
	}
	costs := make([]float64, len(r.sys.Subsystems)) // of a macro step
	for i, sub := range r.sys.Subsystems {
		cost := r.sampler.cost[i]
		priced, ok := As[Priced](sub)
		switch {
		case math.IsInf(cost, 1):
			continue
		case ok:
			priced.KeepStepCost(r.opt.Step, cost)
			if known, ok := priced.StepCost(r.opt.Step); ok { // less for an FMU in another process
				cost = known
			}
		}
		costs[i] = cost * float64(r.x.steps[i]) / float64(r.accepted)
	}
	c := r.x.crew
	if c.asked != 0 || c.known || r.pacer != nil {
		return
	}
	workers, side, serial := bestCrew(r.sys.Stepped, costs, handOver)
	outside := max(0, r.wall.Seconds()/float64(r.accepted)-serial)
	part := (outside + side) / (outside + serial)
	if workers < 2 || part > worthwhile {
		return
	}
	text := fmt.Sprintf("--workers %d would have taken about %.2g of the time", workers, part)
	if _, known := stepCosts(r.sys, r.opt.Step); known {
		text += "; the next run will choose it"
	}
	r.note(text)
}
