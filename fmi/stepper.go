package fmi

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// StepPlan lists the values that a Stepper exchanges at each step. Strings need
// GetString and SetString.
type StepPlan struct {
	RealIn, IntegerIn, BooleanIn    []description.ValueReference
	RealOut, IntegerOut, BooleanOut []description.ValueReference
	// DerivativeOrders is the highest order of input derivatives that are set at each
	// step; 0 = none.
	DerivativeOrders int
	// DerivativeIn are the indices into RealIn of inputs with derivatives; nil = all.
	DerivativeIn []int
}

// Stepper sets the inputs and their derivatives, steps and reads the outputs of
// one instance in one crossing into C, without allocation. The caller fills the
// input slices, calls Step and reads the output slices.
//
// The slices are C memory. Free of the instance makes them nil; copies of them must
// not be used afterwards. Boolean inputs are 0 or 1; Boolean outputs other than 0
// are true.
type Stepper struct {
	RealIn               []float64
	IntegerIn, BooleanIn []int32
	// Derivatives holds the derivatives at the start of the step: order 1 of all
	// inputs in DerivativeIn, then order 2, and so on.
	Derivatives            []float64
	RealOut                []float64
	IntegerOut, BooleanOut []int32

	// NoRestoreBefore is the argument noRestoreBefore of DoStep.
	NoRestoreBefore bool

	in    *Instance
	batch *native.Batch
	recs  []native.Record // set…, doStep, get…
	fns   []fmi2.Function // of each record
	do    int             // index of doStep
	ticks uint64

	posted bool // the step has been sent to a separate process
}

// NewStepper prepares the calls of a plan. The error is a *UsageError if the FMU does
// not support a call.
func (in *Instance) NewStepper(p StepPlan) (*Stepper, error) {
	if s := in.State(); s == StateFatal || s == StateFreed {
		return nil, in.refuse(fmi2.DoStep, s)
	}
	if p.DerivativeOrders < 0 || p.DerivativeOrders > 16 {
		return nil, in.argument(fmi2.SetRealInputDerivatives,
			"DerivativeOrders is %d; it must be 0 to 16", p.DerivativeOrders)
	}
	s := &Stepper{in: in, do: -1}
	err := s.build(p)
	if err != nil {
		return nil, err
	}
	in.steppers = append(in.steppers, s)
	return s, nil
}

// build allocates the buffers and fills the records. Free of the instance releases
// the memory, also after an error.
func (s *Stepper) build(p StepPlan) error {
	in := s.in
	const others = 7 // calls of a step without those for derivatives
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

// add completes a record for f and appends it.
func (s *Stepper) add(f fmi2.Function, r native.Record) error {
	in := s.in
	if err := in.supports(f); err != nil {
		return err
	}
	r.Fn, r.Int[0], r.Tag = in.sym[f], in.comp, in.tag.Of(uint8(f))
	if s.do >= 0 && f != fmi2.DoStep {
		r.Tag |= native.Stepped
	}
	if in.remote != nil {
		in.remote.Define(&r)
	}
	s.recs = append(s.recs, r) // within the capacity, thus in C memory
	s.fns = append(s.fns, f)
	return nil
}

// access adds a getter or setter for the references and returns its values.
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

// derivatives adds a setter of input derivatives for each order, since some FMUs
// refuse calls with more values than inputs.
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
		err = s.add(f, native.Record{Int: [7]uintptr{1: native.Address(refs), 2: uintptr(n),
			3: native.Address(orders), 4: native.Address(s.Derivatives[order*n:])}})
		if err != nil {
			return err
		}
	}
	return nil
}

// clear resets the slices, whose memory is freed.
func (s *Stepper) clear() {
	*s = Stepper{in: s.in, ticks: s.ticks}
}

// Instance returns the instance of the stepper.
func (s *Stepper) Instance() *Instance { return s.in }

// Ticks returns the time that this stepper spent inside the FMU, also in groups, in
// ticks (see TickRate).
func (s *Stepper) Ticks() uint64 { return s.ticks }

// ready sets the arguments of a step.
func (s *Stepper) ready(r *native.Record, t, h float64) {
	r.Float[0], r.Float[1] = t, h
	r.Int[1] = flag(s.NoRestoreBefore)
	s.in.from, s.in.time = t, t+h
}

// check checks whether a step from t by h is legal.
func (s *Stepper) check(t, h float64) error {
	in := s.in
	if st := in.State(); st != StateStepComplete {
		return in.refuse(fmi2.DoStep, st)
	}
	return in.checkStep(t, h)
}

// Step sets the inputs and their derivatives, steps from t by h (s) and, if read is
// true, reads the outputs; otherwise they do not change (for substeps). It stops at
// the first status other than OK or Warning.
//
// Status and error are those of DoStep. If Func of the *StatusError is a setter, the
// step was not made; if it is a getter, the step was made. After Pending, wait for the
// end of the step and then call Read.
func (s *Stepper) Step(t, h float64, read bool) (Status, error) {
	if err := s.check(t, h); err != nil {
		return StatusErr, err
	}
	s.ready(&s.recs[s.do], t, h)
	return s.carryOut(0, s.length(read), t, h)
}

// Post starts a step with reading, and Collect waits for its end. Instances in
// separate processes thus step in parallel. In between, no other method of the
// instance may be called. After Post without an error, Collect must be called.
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

// Collect returns status and error of the step that Post started.
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

// Read reads the outputs, for example during and after the initialisation.
func (s *Stepper) Read() error {
	if st := s.in.State(); !legal(fmi2.GetReal).has(st) {
		return s.in.refuse(fmi2.GetReal, st)
	}
	_, err := s.carryOut(s.do+1, len(s.recs), s.in.now(), 0)
	return err
}

// Write sets the inputs without derivatives, for iterations in the initialisation.
// It is not needed before Step. In stepComplete no output may be read between Write
// and the next step (checklist fmi2 44).
func (s *Stepper) Write() error {
	if st := s.in.State(); !legal(fmi2.SetReal).has(st) {
		return s.in.refuse(fmi2.SetReal, st)
	}
	n := s.do
	for n > 0 && s.fns[n-1] == fmi2.SetRealInputDerivatives {
		n--
	}
	_, err := s.carryOut(0, n, s.in.now(), 0)
	return err
}

// carryOut makes the calls of the records lo to hi-1, at time t or in a step from t by h,
// and returns the last status other than OK.
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

// outcome returns the last status other than OK of the records lo to last.
func (s *Stepper) outcome(lo, last int) (Status, error) {
	if s.batch.Worst == 0 && !s.in.single {
		return StatusOK, nil
	}
	worst, from := lastNotOK(s.recs[lo : last+1])
	if worst == StatusOK {
		return StatusOK, nil
	}
	return defined(worst), s.in.settle(s.fns[lo+from], worst)
}

// lastNotOK returns the last status other than OK and the index of its record. It is the
// worst status, since a batch stops at the first status above Warning.
func lastNotOK(recs []native.Record) (s Status, index int) {
	for k := range recs {
		if st := Status(recs[k].Status()); st != StatusOK {
			s, index = st, k
		}
	}
	return s, index
}

// Group steps several steppers in one crossing into C.
type Group struct {
	members []*Stepper
	reads   bool // outputs are read
	single  bool // a member needs a crossing per call
	batch   *native.Batch
	recs    []native.Record // of the members, with a time stamp between two members
	first   []int           // index of the first record of each member
	do      []int           // index of doStep of each member
	healthy bool            // all calls of the last Step returned OK
	status  []Status        // of each member, unless healthy
	timing  timing
	run     func(*native.Batch)
}

// NewGroup makes a group that steps the members in the given order and, if reads is
// true, reads their outputs. The members must belong to different instances. The group
// must not be used after Free of one of them; the first one owns its memory.
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
	g := &Group{members: slices.Clone(members), reads: reads, batch: mem.Batch(), recs: recs[:0], run: members[0].in.run}
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

// length returns the number of calls of a step.
func (s *Stepper) length(read bool) int {
	if read {
		return len(s.recs)
	}
	return s.do + 1
}

// Status returns the worst status of member i in the last Step, or StatusNotRun.
func (g *Group) Status(i int) Status {
	if g.healthy {
		return StatusOK
	}
	return g.status[i]
}

// timing selects the crossings of a group that are timed: the first 16, then every 16th.
type timing struct{ crossings int }

const timedFirst, timedEach = 16, 16

// next returns the weight of the next crossing in the time of all; 0 = it is not timed.
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

// Step steps one member after the other, with the same results as Stepper.Step. It
// stops at the first member with a status other than OK or Warning. ran is the number
// of members that were called; if err is not nil, it concerns the last of them. For a
// pending step err is a *StatusError with StatusPending. If a step is illegal for a
// member, no member is called and ran is 0.
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

// forget resets the status of all members.
func (g *Group) forget() {
	g.healthy = false
	for i := range g.status {
		g.status[i] = StatusNotRun
	}
}

// meter adds the time of the last crossing, times weight, to the ticks of the members.
func (g *Group) meter(weight uint64) {
	start, done := g.batch.Start, int(g.batch.Done)
	for i, m := range g.members {
		end, next := g.batch.End, len(g.recs)
		if i+1 < len(g.first) {
			next = g.first[i+1]
		}
		if next <= done && next < len(g.recs) { // the time stamp after the member
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

// outcome evaluates the last crossing: the number of members called and the error.
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
		worst, from := lastNotOK(recs)
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

// goesOn returns the error of a group for a pending step.
func goesOn(m *Stepper) error {
	return &StatusError{Instance: m.in.name, Func: fmi2.DoStep.String(), Status: StatusPending,
		Msg: "the step continues in the background; call GetStatus until it is done, then Read"}
}
