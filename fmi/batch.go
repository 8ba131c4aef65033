package fmi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Batch calls several instances together: those in this process one after the other, in one crossing into C, and those
// in processes of their own at the same time. It allocates nothing.
type Batch struct {
	members   []*Stepper
	apart     bool             // in processes of their own
	single    bool             // a member needs a crossing per call
	follow    bool             // a member has edges, or may end a step early without a status that says so (FMI 3.0)
	begin     int              // first member of the last crossing of a step
	passed    int              // members up to the last one that it called
	crossings [kinds]*crossing // in this process; nil = not used yet

	// Of the present step of members in processes of their own.
	begun bool
	sent  []sent
}

// sent is the step of a member in a process of its own.
type sent struct {
	waits  bool // for its end
	status Status
	err    error
}

// kind is a kind of crossing.
type kind uint8

const (
	stepOnly kind = iota
	stepAndRead
	saveStates
	restoreStates
	kinds
)

// NewBatch makes a batch of steppers of different instances, all of which are in this process, or none. It must not be
// used after Free of one of them; the first one owns its memory.
func NewBatch(members []*Stepper) (*Batch, error) {
	if len(members) == 0 {
		return nil, errors.New("a batch needs at least one stepper")
	}
	b := &Batch{members: slices.Clone(members), sent: make([]sent, len(members))}
	seen := map[*Instance]bool{}
	for _, m := range members {
		if m == nil {
			return nil, errors.New("a batch cannot hold a nil stepper")
		}
		if (m.in.remote != nil) != (members[0].in.remote != nil) {
			return nil, fmt.Errorf("%s: an instance in a process of its own cannot be in a batch with others", m.in.name)
		}
		if seen[m.in] {
			return nil, fmt.Errorf("%s: two steppers of one instance cannot be in one batch", m.in.name)
		}
		if s := m.in.State(); s == StateFatal || s == StateFreed {
			return nil, m.in.refuse(capi.DoStep, s)
		}
		seen[m.in] = true
		b.follow = b.follow || m.in.step != nil || m.edges != nil
		b.single = b.single || m.in.single || m.in.events != nil
	}
	b.apart = members[0].in.remote != nil && !b.single
	return b, nil
}

// Begin starts a step with the first n members, if they are in processes of their own, and reports whether they are;
// Step with the same arguments must follow, for which the others count as stepped. In between no other method of the
// instances may be called.
func (b *Batch) Begin(n int, t, h float64, read bool) bool {
	if !b.apart {
		return false
	}
	b.begun = true
	clear(b.sent)
	for k, m := range b.members[:n] {
		if err := m.check(t, h); err != nil {
			b.sent[k] = sent{status: StatusErr, err: err}
			break
		}
		if err := m.store(0); err != nil {
			b.sent[k] = sent{status: StatusErr, err: err}
			break
		}
		m.ready(&m.recs[m.do], t, h)
		m.batch.Recs, m.batch.N = native.Address(m.recs), uintptr(m.length(read))
		m.in.post(m.batch)
		b.sent[k].waits = true
	}
	return true
}

// Step steps the members from member from on, from t by h, with the results of Stepper.Step. It stops at the first
// one with a status other than OK or Warning; those after it may have been stepped, too: always if they are in
// processes of their own, and if it ended the step early by a result of fmi3DoStep. ran counts the members up to that
// one, and s and err are its status and error; a pending step is a *StatusError with StatusPending. To go on with the
// members after it, call Step with from = ran.
func (b *Batch) Step(from int, t, h float64, read bool) (ran int, s Status, err error) {
	if b.apart {
		return b.collect(from, t, h, read)
	}
	what := stepOnly
	if read {
		what = stepAndRead
	}
	if from < b.passed && from > 0 { // the crossing went on after a member that ended its step early
		return b.outcome(b.crossings[what], from)
	}
	b.passed = 0
	finite := t-t+h-h == 0
	for k, m := range b.members[from:] {
		if in := m.in; in.state != StateStepComplete || in.fatal.Load() || !(h > 0) || !finite {
			if err := m.check(t, h); err != nil {
				return from + k + 1, StatusErr, err
			}
		}
		if m.edges != nil && !b.single {
			if err := m.store(0); err != nil {
				return from + k + 1, StatusErr, err
			}
		}
	}
	if b.single {
		for k := from; k < len(b.members); k++ {
			m := b.members[k]
			if s, err = m.Step(t, h, read); err != nil || s == StatusPending {
				return k + 1, s, goesOn(m, s, err)
			}
		}
		return len(b.members), StatusOK, nil
	}
	c, err := b.crossing(what)
	if err != nil {
		return from + 1, StatusErr, err
	}
	for k := from; k < len(b.members); k++ {
		m := b.members[k]
		m.ready(&c.recs[c.first[k]+m.do], t, h)
		m.in.crossings++
	}
	return b.cross(c, from, t, h)
}

// collect is Step of members in processes of their own.
func (b *Batch) collect(from int, t, h float64, read bool) (ran int, s Status, err error) {
	if from == 0 {
		if !b.begun {
			b.Begin(len(b.members), t, h, read)
		}
		b.begun = false
		for k, m := range b.members {
			if at := &b.sent[k]; at.waits {
				m.in.await(m.batch)
				at.status, at.err = m.outcome(0, int(m.batch.Done)-1)
			}
		}
	}
	for k := from; k < len(b.members); k++ {
		if at := &b.sent[k]; at.err != nil || at.status == StatusPending {
			return k + 1, at.status, goesOn(b.members[k], at.status, at.err)
		}
	}
	return len(b.members), StatusOK, nil
}

// goesOn returns the error of the step of a member; of a pending one, too.
func goesOn(m *Stepper, s Status, err error) error {
	if err != nil || s != StatusPending {
		return err
	}
	return &StatusError{Instance: m.in.name, Func: m.in.is(capi.DoStep).String(), call: capi.DoStep, Status: StatusPending,
		Msg: "the step continues in the background; call GetStatus until it is done, then Read"}
}

// Save saves the states of the members. It overwrites states[k], a state of member k, or makes a new one if it is nil.
// failed is the first member with an error; later ones in this process are not called.
func (b *Batch) Save(states []*FMUState) (failed int, err error) {
	return b.states(saveStates, capi.GetFMUState, states)
}

// Restore restores the states of the members. failed is as in Save.
func (b *Batch) Restore(states []*FMUState) (failed int, err error) {
	return b.states(restoreStates, capi.SetFMUState, states)
}

// states saves or restores.
func (b *Batch) states(what kind, f capi.Function, states []*FMUState) (failed int, err error) {
	for k, m := range b.members {
		if what == saveStates {
			err = m.in.prepareGet(states[k])
		} else {
			err = m.in.prepareSet(states[k])
		}
		if err != nil {
			return k, err
		}
	}
	done := func(k int) {
		if in := b.members[k].in; what == saveStates {
			states[k] = in.saved(states[k])
		} else {
			in.restored(states[k])
		}
	}
	if !b.apart && !b.single {
		c, err := b.crossing(what)
		if err != nil {
			return 0, err
		}
		for k, m := range b.members {
			c.recs[c.first[k]] = *m.in.rec
			m.in.crossings++
		}
		ran, _, err := b.cross(c, 0, b.members[0].in.now(), 0)
		if err != nil {
			ran--
		}
		for k := range ran {
			done(k)
		}
		return ran, err
	}
	for _, m := range b.members {
		if b.apart {
			m.in.post(m.in.batch)
		}
	}
	for k, m := range b.members {
		var e error
		if !b.apart {
			e = m.in.call(f)
		} else if m.in.await(m.in.batch); m.in.rec.Status() != int32(StatusOK) {
			e = m.in.settle(f, Status(m.in.rec.Status()))
		}
		switch {
		case e == nil:
			done(k)
		case !b.apart:
			return k, e
		case err == nil:
			failed, err = k, e
		}
	}
	return failed, err
}

// crossing makes calls to all members in this process.
type crossing struct {
	batch *native.Batch
	recs  []native.Record   // of the members, with a time stamp between two members
	first []int             // first record of each member, and one past the last record and a time stamp
	fns   [][]capi.Function // of the records of each member
	steps bool
	// The first crossings are timed, and then one in so many.
	made int
}

const timedFirst, timedEach = 16, 16

// crossing returns the crossing of a kind.
func (b *Batch) crossing(what kind) (*crossing, error) {
	if b.crossings[what] != nil {
		return b.crossings[what], nil
	}
	c := &crossing{steps: what == stepOnly || what == stepAndRead}
	for _, m := range b.members {
		switch what {
		case saveStates:
			c.fns = append(c.fns, []capi.Function{capi.GetFMUState})
		case restoreStates:
			c.fns = append(c.fns, []capi.Function{capi.SetFMUState})
		default:
			c.fns = append(c.fns, m.fns[:m.length(what == stepAndRead)])
		}
	}
	n := 0
	for _, fns := range c.fns {
		c.first = append(c.first, n)
		n += len(fns) + 1
	}
	c.first = append(c.first, n)
	mem := &b.members[0].in.mem
	var err error
	if c.recs, err = native.Slice[native.Record](mem, n); err != nil {
		return nil, err
	}
	c.recs = c.recs[:n-1]
	if c.steps {
		for k, m := range b.members {
			copy(c.recs[c.first[k]:], m.recs[:len(c.fns[k])])
		}
	}
	c.batch = mem.Batch()
	b.crossings[what] = c
	return c, nil
}

// weight returns the weight of the next crossing in the time of all; 0 = it is not timed.
func (c *crossing) weight() uint64 {
	c.made++
	switch {
	case c.made <= timedFirst:
		return 1
	case c.made%timedEach == 1:
		return timedEach
	}
	return 0
}

// cross makes the calls to the members from member from on, at time t or in a step from t by h. ran, s and err are as
// in Step.
func (b *Batch) cross(c *crossing, from int, t, h float64) (ran int, s Status, err error) {
	weight, n := c.weight(), c.batch
	b.begin = from
	n.Recs, n.N = native.Address(c.recs[c.first[from]:]), uintptr(len(c.recs)-c.first[from])
	n.Time, n.Step, n.Untimed = t, h, flag(weight == 0)
	b.members[0].in.run(n)
	if weight > 0 {
		b.meter(c, from, weight)
	}
	if n.Worst == 0 && n.Modes == 0 && !(c.steps && b.follow && slices.ContainsFunc(b.members[from:], follows)) {
		return len(b.members), StatusOK, nil
	}
	for done := c.first[from] + int(n.Done); b.passed < len(b.members) && c.first[b.passed] < done; {
		b.passed++
	}
	return b.outcome(c, from)
}

// follows reports whether a step of a member needs more than its statuses.
func follows(m *Stepper) bool { return m.edges != nil || m.in.endedEarly() }

// meter adds the time of the last crossing, times weight, to that of the members.
func (b *Batch) meter(c *crossing, from int, weight uint64) {
	start, done := c.batch.Start, c.first[from]+int(c.batch.Done)
	for k := from; k < len(b.members); k++ {
		end, next := c.batch.End, c.first[k+1]
		if next <= done && next < len(c.recs) {
			end = uint64(c.recs[next-1].Ret) // the time stamp after the member
		}
		b.members[k].in.spend(native.Span(start, end), weight)
		if start = end; next >= done {
			return
		}
	}
}

// outcome evaluates the last crossing.
func (b *Batch) outcome(c *crossing, from int) (ran int, s Status, err error) {
	done := c.first[b.begin] + int(c.batch.Done)
	for k := from; k < len(b.members) && c.first[k] < done; k++ {
		in, recs := b.members[k].in, c.recs[c.first[k]:min(done, c.first[k+1]-1)]
		in.changedModes(recs)
		worst, at := lastNotOK(recs)
		if c.steps && !native.Stops(int32(worst)) && b.members[k].in.endedEarly() {
			worst, at = StatusDiscard, b.members[k].do
		}
		ran, s = k+1, defined(worst)
		if c.steps {
			if err = b.members[k].load(recs, 0); err != nil {
				return ran, StatusErr, err
			}
		}
		if worst != StatusOK {
			if c.batch.Untimed != 0 {
				in.spent = 0
			}
			if err = goesOn(b.members[k], s, in.settle(c.fns[k][at], worst)); err != nil {
				return ran, s, err
			}
		}
	}
	return ran, s, nil
}
