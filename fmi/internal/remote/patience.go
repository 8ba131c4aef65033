package remote

import "time"

// Patience bounds a wait that is looked at in slices. Time in which the program was suspended (Ctrl-Z, or sleep of the machine)
// does not count: a slice that takes more than twice as long counts once.
type Patience struct {
	Limit time.Duration

	used   time.Duration
	looked time.Time
}

// Slice is how often to look.
func (p *Patience) Slice() time.Duration {
	const slices, shortest, longest = 8, time.Millisecond, time.Second
	return min(max(p.Limit/slices, shortest), longest)
}

// Begin begins a wait of which some time is over.
func (p *Patience) Begin(used time.Duration) {
	p.used, p.looked = max(min(used, p.Limit-p.Slice()), 0), time.Now()
}

// Credit takes time back, for what has come.
func (p *Patience) Credit(d time.Duration) { p.used = max(p.used-d, 0) }

// Late reports whether the wait has taken too long.
func (p *Patience) Late() bool {
	now := time.Now()
	slice, passed := p.Slice(), now.Sub(p.looked)
	p.looked = now
	if passed > 2*slice { // one slice is left for what is there already
		passed = max(min(slice, p.Limit-slice-p.used), 0)
	}
	p.used += passed
	return p.used >= p.Limit
}

// Left is how long to wait until the next look.
func (p *Patience) Left() time.Duration { return min(p.Slice(), p.Limit-p.used) }
