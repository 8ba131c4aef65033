package fmi

import (
	"slices"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
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
// The slices are C memory, or copies of it if the types differ there. Free of the instance makes them nil; copies of
// them must not be used afterwards. Boolean inputs are 0 or 1; Boolean outputs other than 0 are true.
type Stepper struct {
	RealIn    []float64
	IntegerIn []int64
	BooleanIn []int32
	// Derivatives holds the derivatives at the start of the step: order 1 of all
	// inputs in DerivativeIn, then order 2, and so on.
	Derivatives []float64
	RealOut     []float64
	IntegerOut  []int64
	BooleanOut  []int32

	// NoRestoreBefore is the argument noRestoreBefore of DoStep.
	NoRestoreBefore bool

	in    *Instance
	batch *native.Batch
	recs  []native.Record // set…, doStep, get…
	fns   []capi.Function // of each record
	do    int             // index of doStep
	edges []*edge
	// Of event mode.
	clocks      [][]uint32                    // to which the variables of each record belong
	discrete    []source                      // inputs that belong to none
	triggered   []*description.ScalarVariable // Clocks of outputs that the FMU activates
	active      []uint32
	clockedOnly bool
}

// source is a value of a stepper.
type source struct {
	real    *float64
	integer *int64
	boolean *int32
}

// NewStepper prepares the calls of a plan. The error is a *UsageError if the FMU does
// not support a call.
func (in *Instance) NewStepper(p StepPlan) (*Stepper, error) {
	if s := in.State(); s == StateFatal || s == StateFreed {
		return nil, in.refuse(capi.DoStep, s)
	}
	if p.DerivativeOrders < 0 || p.DerivativeOrders > 16 {
		return nil, in.argument(capi.SetRealInputDerivatives,
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
	others := 1 + 2*len(ctypes) // at most so many calls of a step without those for derivatives and of Clocks
	if in.events != nil {
		others += in.fmu.clocked()
	}
	recs, err := native.Slice[native.Record](&in.mem, others+p.DerivativeOrders)
	if err != nil {
		return err
	}
	s.recs = recs[:0]
	s.batch = in.mem.Batch()

	if s.RealIn, err = access[float64](s, description.Real, p.RealIn); err != nil {
		return err
	}
	if s.IntegerIn, err = access[int64](s, description.Integer, p.IntegerIn); err != nil {
		return err
	}
	if s.BooleanIn, err = access[int32](s, description.Boolean, p.BooleanIn); err != nil {
		return err
	}
	if in.events != nil {
		s.observe(p.RealIn, func(k int) source { return source{real: &s.RealIn[k]} })
		s.observe(p.IntegerIn, func(k int) source { return source{integer: &s.IntegerIn[k]} })
		s.observe(p.BooleanIn, func(k int) source { return source{boolean: &s.BooleanIn[k]} })
	}
	if err := s.derivatives(p); err != nil {
		return err
	}
	s.do = len(s.recs)
	if err := s.add(capi.DoStep, native.Record{}); err != nil {
		return err
	}
	if s.RealOut, err = access[float64](s, description.Real, p.RealOut); err != nil {
		return err
	}
	if s.IntegerOut, err = access[int64](s, description.Integer, p.IntegerOut); err != nil {
		return err
	}
	s.BooleanOut, err = access[int32](s, description.Boolean, p.BooleanOut)
	return err
}

// add completes a record for f and appends it.
func (s *Stepper) add(f capi.Function, r native.Record) error {
	in := s.in
	if err := in.supports(f); err != nil {
		return err
	}
	if f == capi.DoStep {
		in.stepResults(&r)
	}
	r.Fn, r.Sig, r.Int[0], r.Tag = in.sym[f], in.is(f).Signature(), in.comp, in.tag.Of(uint8(in.is(f)))
	if s.do >= 0 && f != capi.DoStep {
		r.Tag |= native.Stepped
	}
	if in.remote != nil {
		in.remote.Define(&r)
	}
	s.recs = append(s.recs, r) // within the capacity, thus in C memory
	s.fns, s.clocks = append(s.fns, f), append(s.clocks, nil)
	return nil
}

// access adds the getters or setters of variables of a kind and returns their values: those in C memory if they have
// the same type there, else a copy with an edge.
func access[T float64 | int64 | int32](s *Stepper, kind description.BaseType,
	vr []description.ValueReference) ([]T, error) {
	if len(vr) == 0 {
		return nil, nil
	}
	groups, err := s.in.groups(kind, vr)
	if err != nil {
		return nil, err
	}
	var values []T
	for _, g := range groups {
		f := g.get
		if s.do < 0 {
			f = g.set
		}
		refs, err := native.Slice[uint32](&s.in.mem, g.variables())
		if err != nil {
			return nil, err
		}
		g.numbers(refs)
		c, err := native.Slice[uint64](&s.in.mem, (g.n*int(g.size)+7)/8)
		if err != nil {
			return nil, err
		}
		r := native.Record{}
		copy(r.Int[1:], []uintptr{native.Address(refs), uintptr(len(refs)), native.Address(c)})
		if s.in.api == capi.V3 {
			r.Int[4] = uintptr(g.n)
		}
		if err := s.add(f, r); err != nil {
			return nil, err
		}
		s.belong(&g)
		var one T
		_, floats := any(one).(float64)
		same := floats == (g.storage == description.StoreFloat64) && unsafe.Sizeof(one) == g.size
		if g.at == nil && same && kind != description.Integer && g.clocks == nil {
			return unsafe.Slice((*T)(unsafe.Pointer(&c[0])), g.n), nil
		}
		if values == nil {
			values = make([]T, len(vr))
		}
		e := &edge{group: g, f: f, record: len(s.recs) - 1, set: s.do < 0, c: native.Address(c), values: slices.Clone(vr)}
		e.reals, _ = any(values).([]float64)
		e.integers, _ = any(values).([]int64)
		e.booleans, _ = any(values).([]int32)
		if err := e.fill(s.in); err != nil {
			return nil, err
		}
		s.edges = append(s.edges, e)
	}
	return values, nil
}

// derivatives adds a setter of input derivatives for each order, since some FMUs
// refuse calls with more values than inputs.
func (s *Stepper) derivatives(p StepPlan) error {
	const f = capi.SetRealInputDerivatives
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
	refs, err := native.Slice[uint32](&s.in.mem, n)
	if err != nil {
		return err
	}
	for k, w := range which {
		if w < 0 || w >= len(p.RealIn) {
			return s.in.argument(f, "DerivativeIn holds %d, but there are %d Real inputs", w, len(p.RealIn))
		}
		refs[k] = p.RealIn[w].Number()
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
		r := native.Record{}
		copy(r.Int[1:], []uintptr{native.Address(refs), uintptr(n), native.Address(orders),
			native.Address(s.Derivatives[order*n:])})
		if err := s.add(f, r); err != nil {
			return err
		}
	}
	return nil
}

// clear resets the slices, whose memory is freed.
func (s *Stepper) clear() {
	*s = Stepper{in: s.in}
}

// Instance returns the instance of the stepper.
func (s *Stepper) Instance() *Instance { return s.in }

// ready sets the arguments of a step.
func (s *Stepper) ready(r *native.Record, t, h float64) {
	r.Float[0], r.Float[1] = t, h
	r.Int[1] = flag(s.NoRestoreBefore)
	s.in.from, s.in.time = t, t+h
	s.in.forgetStep()
}

// check checks whether a step from t by h is legal.
func (s *Stepper) check(t, h float64) error {
	in := s.in
	if st := in.State(); st != StateStepComplete && (st != StateEventMode || in.events == nil) {
		return in.refuse(capi.DoStep, st)
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
	if s.in.events != nil {
		return s.in.events.step(s, t, h, read)
	}
	s.ready(&s.recs[s.do], t, h)
	return s.carryOut(0, s.length(read), t, h)
}

// Start lets an FMU in event mode handle the events at the start, after Initialization Mode; else it does nothing.
func (s *Stepper) Start() error {
	if s.in.events == nil {
		return nil
	}
	ended, err := s.in.events.handle(s, s.in.time)
	if ended {
		return s.in.argument(capi.UpdateDiscreteStates,
			"the FMU ends the simulation at its start; correct its parameters or inputs")
	}
	return err
}

// Read reads the outputs, for example during and after the initialisation.
func (s *Stepper) Read() error {
	if st := s.in.State(); !s.in.legal(capi.GetReal, st) {
		return s.in.refuse(capi.GetReal, st)
	}
	_, err := s.carryOut(s.do+1, len(s.recs), s.in.now(), 0)
	return err
}

// Write sets the inputs without derivatives, for iterations in the initialisation.
// It is not needed before Step. In stepComplete no output may be read between Write
// and the next step (checklist fmi2 44).
func (s *Stepper) Write() error {
	if st := s.in.State(); !s.in.legal(capi.SetReal, st) {
		return s.in.refuse(capi.SetReal, st)
	}
	n := s.do
	for n > 0 && s.fns[n-1] == capi.SetRealInputDerivatives {
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
	if err := s.store(lo); err != nil {
		return StatusErr, err
	}
	in, b := s.in, s.batch
	last := lo
	if !in.single && in.events == nil {
		b.Recs, b.N = native.Address(s.recs[lo:]), uintptr(hi-lo)
		in.cross(b, t, h)
		last = lo + int(b.Done) - 1
	} else {
		for last = lo; last < hi; last++ {
			if in.events != nil && !s.called(last) {
				s.recs[last].Ret = 0
				continue
			}
			b.Recs, b.N = native.Address(s.recs[last:]), 1
			in.cross(b, t, h)
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
	if err := s.load(s.recs[lo:last+1], lo); err != nil {
		return StatusErr, err
	}
	stepped := lo <= s.do && s.do <= last
	if s.batch.Worst == 0 && !s.in.single && s.in.events == nil && !(stepped && s.in.endedEarly()) {
		return StatusOK, nil
	}
	worst, from := lastNotOK(s.recs[lo : last+1])
	if !native.Stops(int32(worst)) && stepped && s.in.endedEarly() {
		worst, from = StatusDiscard, s.do-lo
	}
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

// length returns the number of calls of a step.
func (s *Stepper) length(read bool) int {
	if read {
		return len(s.recs)
	}
	return s.do + 1
}
