package fmi

import (
	"fmt"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// StepPlan says what a Stepper exchanges with its instance at each step.
// Strings go by the ordinary calls.
type StepPlan struct {
	RealIn, IntegerIn, BooleanIn    []description.ValueReference
	RealOut, IntegerOut, BooleanOut []description.ValueReference
	// DerivativeOrders is the highest order of input derivatives sent with each
	// step; 0 sends none.
	DerivativeOrders int
	// DerivativeIn are the indices into RealIn that get derivatives; nil = all.
	DerivativeIn []int
}

// Stepper sets the inputs and their derivatives, steps and reads the outputs of
// one instance in one crossing into C, without allocation. Write the inputs,
// call Step, read the outputs.
//
// The slices are views into C memory: they keep their place until Free of the
// instance, which makes them nil; a copy of a slice header must not be used
// after that. Booleans are 0 or 1 on the way in; what is not 0 on the way out
// is true.
type Stepper struct {
	RealIn               []float64
	IntegerIn, BooleanIn []int32
	// Derivatives holds the derivatives of order 1 of all inputs in
	// DerivativeIn, then those of order 2 and so on, at the start of the step.
	Derivatives            []float64
	RealOut                []float64
	IntegerOut, BooleanOut []int32

	// NoRestoreBefore is what DoStep takes as noRestoreBefore.
	NoRestoreBefore bool

	in    *Instance
	batch *native.Batch
	recs  []native.Record // set…, doStep, get…
	fns   []fmi2.Function // of each record
	do    int             // index of doStep
	ticks uint64

	posted bool // Post has handed the calls over
}

// NewStepper prepares the calls of a plan. A CapabilityError says what the FMU
// lacks for it.
func (in *Instance) NewStepper(p StepPlan) (*Stepper, error) {
	if s := in.State(); s == StateFatal || s == StateFreed {
		return nil, in.refuse(fmi2.DoStep, s)
	}
	if p.DerivativeOrders < 0 || p.DerivativeOrders > 16 {
		return nil, in.argument(fmi2.SetRealInputDerivatives, "derivatives up to order %d cannot be sent; the orders 0 to 16 can", p.DerivativeOrders)
	}
	s := &Stepper{in: in, do: -1}
	err := s.build(p)
	if err != nil {
		return nil, err
	}
	in.steppers = append(in.steppers, s)
	return s, nil
}

// build allocates the buffers and fills the records. What a failed one has
// allocated is freed with the instance.
func (s *Stepper) build(p StepPlan) error {
	in := s.in
	const others = 7 // calls of a step beside those of the derivatives
	recs, err := native.Slice[native.Record](&in.mem, others+p.DerivativeOrders)
	if err != nil {
		return err
	}
	s.recs = recs[:0]
	s.batch = in.mem.Batch()

	if s.RealIn, err = access[float64](s, fmi2.SetReal, p.RealIn); err != nil {
		return err
	}
	if s.IntegerIn, err = access[int32](s, fmi2.SetInteger, p.IntegerIn); err != nil {
		return err
	}
	if s.BooleanIn, err = access[int32](s, fmi2.SetBoolean, p.BooleanIn); err != nil {
		return err
	}
	if err := s.derivatives(p); err != nil {
		return err
	}
	s.do = len(s.recs)
	if err := s.add(fmi2.DoStep, native.Record{Sig: native.SigIFFI}); err != nil {
		return err
	}
	if s.RealOut, err = access[float64](s, fmi2.GetReal, p.RealOut); err != nil {
		return err
	}
	if s.IntegerOut, err = access[int32](s, fmi2.GetInteger, p.IntegerOut); err != nil {
		return err
	}
	s.BooleanOut, err = access[int32](s, fmi2.GetBoolean, p.BooleanOut)
	return err
}

// add appends a record for f; the component is filled in.
func (s *Stepper) add(f fmi2.Function, r native.Record) error {
	in := s.in
	if in.sym[f] == 0 {
		return &CapabilityError{Instance: in.name, Func: f.String(), Library: in.library}
	}
	if name, ok := in.fmu.declares(f); !ok {
		return &CapabilityError{Instance: in.name, Func: f.String(), Flag: name}
	}
	r.Fn, r.Int[0], r.Tag = in.sym[f], in.comp, in.tag.Of(uint8(f))
	if s.do >= 0 && f != fmi2.DoStep {
		r.Tag |= native.Stepped
	}
	if in.remote != nil {
		in.remote.Define(&r)
	}
	s.recs = append(s.recs, r) // within the capacity, so it stays in C memory
	s.fns = append(s.fns, f)
	return nil
}

// access adds a getter or setter for the references and gives its values.
func access[T number](s *Stepper, f fmi2.Function, vr []description.ValueReference) ([]T, error) {
	if len(vr) == 0 {
		return nil, nil
	}
	refs, err := native.Slice[description.ValueReference](&s.in.mem, len(vr))
	if err != nil {
		return nil, err
	}
	copy(refs, vr)
	v, err := native.Slice[T](&s.in.mem, len(vr))
	if err != nil {
		return nil, err
	}
	return v, s.add(f, native.Record{Int: [7]uintptr{1: native.Address(refs), 2: uintptr(len(vr)), 3: native.Address(v)}})
}

// derivatives adds the setters of the input derivatives, one for each order:
// some FMUs refuse more values in one call than they have inputs.
func (s *Stepper) derivatives(p StepPlan) error {
	const f = fmi2.SetRealInputDerivatives
	which := p.DerivativeIn
	if which == nil {
		which = make([]int, len(p.RealIn))
		for k := range which {
			which[k] = k
		}
	}
	n := len(which)
	if n == 0 || p.DerivativeOrders == 0 {
		return nil
	}
	refs, err := native.Slice[description.ValueReference](&s.in.mem, n)
	if err != nil {
		return err
	}
	for k, w := range which {
		if w < 0 || w >= len(p.RealIn) {
			return s.in.argument(f, "DerivativeIn holds %d, but there are %d Real inputs", w, len(p.RealIn))
		}
		refs[k] = p.RealIn[w]
	}
	if s.Derivatives, err = native.Slice[float64](&s.in.mem, n*p.DerivativeOrders); err != nil {
		return err
	}
	for order := range p.DerivativeOrders {
		orders, err := native.Slice[int32](&s.in.mem, n)
		if err != nil {
			return err
		}
		for k := range orders {
			orders[k] = int32(order + 1)
		}
		err = s.add(f, native.Record{Int: [7]uintptr{1: native.Address(refs), 2: uintptr(n), 3: native.Address(orders), 4: native.Address(s.Derivatives[order*n:])}})
		if err != nil {
			return err
		}
	}
	return nil
}

// clear takes the views into freed memory away.
func (s *Stepper) clear() {
	*s = Stepper{in: s.in, ticks: s.ticks}
}

// Instance returns the instance that is stepped.
func (s *Stepper) Instance() *Instance { return s.in }

// Ticks returns the time-stamp ticks that this stepper spent inside the FMU, in
// groups too; see TickRate.
func (s *Stepper) Ticks() uint64 { return s.ticks }

// ready fills in the arguments of a step.
func (s *Stepper) ready(r *native.Record, t, h float64) {
	r.Float[0], r.Float[1] = t, h
	r.Int[1] = flag(s.NoRestoreBefore)
	s.in.from, s.in.time = t, t+h
}

// check reports whether a step may be made.
func (s *Stepper) check(t, h float64) error {
	in := s.in
	if st := in.State(); st != StateStepComplete {
		return in.refuse(fmi2.DoStep, st)
	}
	if h > 0 && t-t == 0 && h-h == 0 { // finite
		return nil
	}
	return in.checkStep(t, h)
}

// Step sends the inputs and their derivatives, steps from t by h (s) and, with
// read, reads the outputs; without, they stay as they were (substeps). It stops
// at the first call that gives anything but OK or Warning.
//
// Status and error are as for DoStep. If a setter was what failed, the Func of
// the *StatusError says so and the step was not made; if a getter, it was. After
// Pending and the wait for its end, Read reads the outputs.
func (s *Stepper) Step(t, h float64, read bool) (Status, error) {
	if err := s.check(t, h); err != nil {
		return StatusErr, err
	}
	s.ready(&s.recs[s.do], t, h)
	return s.carryOut(0, s.length(read), t, h)
}

// Post begins what Step with reading does, and Collect ends it. In between the
// instance steps, if it has a process of its own, and others can be posted
// meanwhile; nothing else may be asked of it. Without an error Collect is due,
// also when the outcome does not matter any more.
func (s *Stepper) Post(t, h float64) error {
	if err := s.check(t, h); err != nil {
		return err
	}
	s.ready(&s.recs[s.do], t, h)
	in := s.in
	if in.remote != nil && !in.single {
		s.batch.Recs, s.batch.N = native.Address(s.recs), uintptr(len(s.recs))
		in.crossings++
		in.remote.Post(s.batch)
		s.posted = true
	}
	return nil
}

// Collect returns what Step gives, for the step that was posted.
func (s *Stepper) Collect() (Status, error) {
	if !s.posted {
		step := &s.recs[s.do]
		return s.carryOut(0, len(s.recs), step.Float[0], step.Float[1])
	}
	s.posted = false
	s.in.remote.Await(s.batch)
	s.in.crossed(s.batch)
	s.ticks += native.Span(s.batch.Start, s.batch.End)
	return s.outcome(0, int(s.batch.Done)-1)
}

// Read reads the outputs, for example at the start and while the
// initialisation is iterated.
func (s *Stepper) Read() error {
	if st := s.in.State(); !whenGet.has(st) {
		return s.in.refuse(fmi2.GetReal, st)
	}
	_, err := s.carryOut(s.do+1, len(s.recs), s.in.now(), 0)
	return err
}

// Write sends the inputs, without derivatives, as the iteration of the
// initialisation needs it. (Before a step it is not needed, and after it no
// output may be read until the step is made; checklist fmi2 44.)
func (s *Stepper) Write() error {
	if st := s.in.State(); !whenSet.has(st) {
		return s.in.refuse(fmi2.SetReal, st)
	}
	n := s.do
	for n > 0 && s.fns[n-1] == fmi2.SetRealInputDerivatives {
		n--
	}
	_, err := s.carryOut(0, n, s.in.now(), 0)
	return err
}

// carryOut calls the records from lo to below hi, at time t or in a step from t by h, and
// gives the worst status.
func (s *Stepper) carryOut(lo, hi int, t, h float64) (Status, error) {
	if lo >= hi {
		return StatusOK, nil
	}
	in, b := s.in, s.batch
	last := lo
	if !in.single {
		b.Recs, b.N = native.Address(s.recs[lo:]), uintptr(hi-lo)
		in.cross(b, t, h)
		s.ticks += native.Span(b.Start, b.End)
		last = lo + int(b.Done) - 1
	} else {
		for last = lo; last < hi; last++ {
			b.Recs, b.N = native.Address(s.recs[last:]), 1
			in.cross(b, t, h)
			s.ticks += native.Span(b.Start, b.End)
			in.traceCall(s.fns[last], &s.recs[last])
			if native.Stops(s.recs[last].Status()) {
				break
			}
		}
		last = min(last, hi-1)
	}
	return s.outcome(lo, last)
}

// outcome returns the worst status of the records from lo to last.
func (s *Stepper) outcome(lo, last int) (Status, error) {
	if s.batch.Worst == 0 && !s.in.single {
		return StatusOK, nil
	}
	worst, from := StatusOK, last
	for k := lo; k <= last; k++ {
		if st := Status(s.recs[k].Status()); st != StatusOK {
			worst, from = st, k
		}
	}
	if worst == StatusOK {
		return StatusOK, nil
	}
	return defined(worst), s.in.settle(s.fns[from], worst)
}

// Group steps several steppers in one crossing into C.
type Group struct {
	members []*Stepper
	reads   bool // it reads the outputs
	single  bool // a member is called call by call
	batch   *native.Batch
	recs    []native.Record // those of the members, a time stamp between two members
	first   []int           // index of the first record of each member
	do      []int           // index of each member's doStep
	healthy bool            // all calls of the last Step returned OK
	status  []Status        // else, by member
	timing  timing
	run     func(*native.Batch)
}

// NewGroup makes a group that steps the members in the given order; reads: and reads
// their outputs. They must belong to different instances. A group can be used as long as
// all of those live; its memory is freed with the first one's.
func NewGroup(members []*Stepper, reads bool) (*Group, error) {
	if len(members) == 0 {
		return nil, fmt.Errorf("a group needs at least one stepper")
	}
	seen := map[*Instance]bool{}
	n := 0
	for _, m := range members {
		if m == nil {
			return nil, fmt.Errorf("a group cannot hold a nil stepper")
		}
		if m.in.remote != nil {
			return nil, fmt.Errorf("%s: an instance in a process of its own cannot be in a group", m.in.name)
		}
		if seen[m.in] {
			return nil, fmt.Errorf("%s: two steppers of one instance cannot be in one group", m.in.name)
		}
		if st := m.in.State(); st == StateFatal || st == StateFreed {
			return nil, m.in.refuse(fmi2.DoStep, st)
		}
		seen[m.in] = true
		n += len(m.recs) + 1
	}
	mem := &members[0].in.mem
	recs, err := native.Slice[native.Record](mem, n)
	if err != nil {
		return nil, err
	}
	g := &Group{members: append([]*Stepper(nil), members...), reads: reads, batch: mem.Batch(), recs: recs[:0], run: members[0].in.run}
	for _, m := range members {
		if len(g.recs) > 0 {
			g.recs = append(g.recs, native.Record{})
		}
		g.first = append(g.first, len(g.recs))
		g.do = append(g.do, len(g.recs)+m.do)
		g.recs = append(g.recs, m.recs[:m.length(reads)]...)
		g.status = append(g.status, StatusNotRun)
		g.single = g.single || m.in.single
	}
	g.batch.Recs, g.batch.N = native.Address(g.recs), uintptr(len(g.recs))
	return g, nil
}

// length returns how many calls a step is.
func (s *Stepper) length(read bool) int {
	if read {
		return len(s.recs)
	}
	return s.do + 1
}

// Status returns the worst status of member i in the last Step, StatusNotRun if it was not
// called.
func (g *Group) Status(i int) Status {
	if g.healthy {
		return StatusOK
	}
	return g.status[i]
}

// timing chooses which crossings of a group are timed: the first ones, and then one of so many.
type timing struct{ crossings int }

const timedFirst, timedEach = 16, 16

// next returns for how many crossings the time of the next one counts; 0 = it is not timed.
func (t *timing) next() (weight uint64) {
	t.crossings++
	switch {
	case t.crossings <= timedFirst:
		return 1
	case t.crossings%timedEach == 1:
		return timedEach
	}
	return 0
}

// Step does what Stepper.Step does, for one member after the other, and with the same
// outcome. It stops at the first member that gives anything but OK or Warning; the later
// ones stay where they are. ran counts the members that were called; if err is not nil, the
// last of them failed, or, with a *StatusError of StatusPending, its step goes on. If a
// member cannot be stepped at all, none is called and ran is 0.
func (g *Group) Step(t, h float64) (ran int, err error) {
	finite := t-t+h-h == 0
	for _, m := range g.members {
		if in := m.in; in.state != StateStepComplete || in.fatal.Load() || !(h > 0) || !finite {
			if err := m.check(t, h); err != nil {
				g.forget()
				return 0, err
			}
		}
	}
	if g.single {
		return g.stepEach(t, h)
	}
	for i, m := range g.members {
		m.ready(&g.recs[g.do[i]], t, h)
		m.in.crossings++
	}
	b, weight := g.batch, g.timing.next()
	b.Time, b.Step, b.Untimed = t, h, flag(weight == 0)
	g.run(b)
	if weight > 0 {
		g.meter(weight)
	}
	if g.healthy = b.Worst == 0 && b.Modes == 0; g.healthy {
		return len(g.members), nil
	}
	return g.outcome()
}

// forget forgets the outcome of the last step.
func (g *Group) forget() {
	g.healthy = false
	for i := range g.status {
		g.status[i] = StatusNotRun
	}
}

// meter adds the time of the last crossing to that of the members, so many times.
func (g *Group) meter(weight uint64) {
	start, done := g.batch.Start, int(g.batch.Done)
	for i, m := range g.members {
		end, next := g.batch.End, len(g.recs)
		if i+1 < len(g.first) {
			next = g.first[i+1]
		}
		if next <= done && next < len(g.recs) { // the stamp behind the member
			end = uint64(g.recs[next-1].Ret)
		}
		spent := weight * native.Span(start, end)
		m.ticks += spent
		m.in.spend(spent)
		if start = end; next >= done {
			return
		}
	}
}

// outcome judges the calls of the last crossing.
func (g *Group) outcome() (ran int, err error) {
	g.forget()
	done := int(g.batch.Done)
	for i, m := range g.members {
		lo := g.first[i]
		if lo >= done {
			continue
		}
		recs := g.recs[lo:min(done, lo+m.length(g.reads))]
		m.in.changedModes(recs)
		worst, from := StatusOK, 0
		for k := range recs {
			if st := Status(recs[k].Status()); st != StatusOK {
				worst, from = st, k
			}
		}
		ran, g.status[i] = i+1, defined(worst)
		if worst != StatusOK {
			if g.batch.Untimed != 0 {
				m.in.spent = 0
			}
			err = m.in.settle(m.fns[from], worst)
			if worst == StatusPending && err == nil {
				err = goesOn(m)
			}
		}
	}
	return ran, err
}

// stepEach steps the members one by one.
func (g *Group) stepEach(t, h float64) (int, error) {
	g.forget()
	for i, m := range g.members {
		st, err := m.Step(t, h, g.reads)
		g.status[i] = st
		if st == StatusPending && err == nil {
			err = goesOn(m)
		}
		if err != nil {
			return i + 1, err
		}
	}
	return len(g.members), nil
}

func goesOn(m *Stepper) error {
	return &StatusError{Instance: m.in.name, Func: fmi2.DoStep.String(), Status: StatusPending,
		Msg: "the step goes on in the background; ask GetStatus until it is done, then Read"}
}
