package supervise

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/process"
)

// watch ends an engine that exceeds its limits.
type watch struct {
	engine *Engine
	link   *link

	mu     sync.Mutex
	limits Limits
	base   uint64        // memory in use when the first limit was set
	news   chan struct{} // receives when limits have changed
}

// begin starts the watch; stop ends it.
func (w *watch) begin() (stop func()) {
	w.news = make(chan struct{}, 1)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { w.look(done) })
	return func() { close(done); wg.Wait() }
}

// limit sets the limits from now on.
func (w *watch) limit(l Limits) {
	w.mu.Lock()
	if w.limits = l; l.Memory > 0 && w.base == 0 {
		w.base = w.link.child.Memory()
	}
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// The time between checks is a fraction 1/looks of the limit of a call, but at least lookEvery and
// at most longest.
const (
	lookEvery = 20 * time.Millisecond
	looks     = 16
	longest   = time.Second
)

// patience is the minimum time without a sign of life before an engine is killed, if calls are
// limited.
const patience = 10 * time.Second

// look checks the limits of the engine periodically.
func (w *watch) look(done <-chan struct{}) {
	since := map[fmi.Call]time.Time{} // current calls, with the time when each was first seen
	last := time.Now()
	var life life
	for {
		w.mu.Lock()
		limits, base := w.limits, w.base
		w.mu.Unlock()
		every := time.Duration(1<<63 - 1)
		if limits.Call > 0 {
			every = min(max(limits.Call/looks, lookEvery), longest)
		}
		if limits.Memory > 0 {
			every = min(every, 5*lookEvery)
		}
		timer := time.NewTimer(every)
		select {
		case <-done:
			timer.Stop()
			return
		case <-w.news:
			timer.Stop()
			continue
		case <-timer.C:
		}
		now := time.Now()
		if now.Sub(last) > 2*every+longest {
			clear(since) // this process was suspended, and so was the engine
			life.seen = now
		}
		last = now
		if limits.Memory > 0 {
			if used := w.link.child.Memory(); used > base+limits.Memory {
				w.kill(fmt.Sprintf("the engine had %d MiB more in use than before the run, over the limit of %d MiB, and was ended",
					(used-base)>>20, limits.Memory>>20))
				return
			}
		}
		if limits.Call > 0 && w.late(since, now, limits.Call) {
			w.kill(fmt.Sprintf("it did not return within %v and was ended", limits.Call))
			return
		}
		if most := max(limits.Call, patience); limits.Call > 0 && life.silence(w.link.page, now) > most {
			w.kill(fmt.Sprintf("it gave no sign of life for %v and was ended", most))
			return
		}
	}
}

// life is the last sign of life of an engine.
type life struct {
	count uint64
	seen  time.Time
}

// silence returns the time since the last sign of life.
func (l *life) silence(page *process.Page, now time.Time) time.Duration {
	memory := page.Find(beatRegion)
	if len(memory) < 8 {
		return 0
	}
	if count := binary.NativeEndian.Uint64(memory); count != l.count || l.seen.IsZero() {
		l.count, l.seen = count, now
	}
	return now.Sub(l.seen)
}

func (w *watch) kill(reason string) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.engine.kill(reason)
}

// late reports whether a call has taken too long.
func (w *watch) late(since map[fmi.Call]time.Time, now time.Time, limit time.Duration) bool {
	if w.link.page == nil {
		return false
	}
	under := map[fmi.Call]bool{}
	for _, c := range fmi.Calls(w.link.page) {
		under[c] = true
		if first, ok := since[c]; !ok {
			since[c] = now
		} else if now.Sub(first) > limit {
			return true
		}
	}
	for c := range since {
		if !under[c] {
			delete(since, c)
		}
	}
	return false
}
