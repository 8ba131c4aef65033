package fmi

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"
)

// rounds is a number of macro steps that are carried out in one crossing, with the
// layout that the assembly trampolines know, as have the types below. It stops
// after the first call whose status is not OK or Warning, and after a round with an
// output that is no finite number. All of it stands in libc memory.
type rounds struct {
	left        uintptr // rounds to carry out
	index       int64   // of the communication point that the next one begins at
	start, step float64 // of the communication points start + index·step
	t           float64 // of the present round
	h           float64 // what every step is told
	members     uintptr // address of the first member
	count       uintptr // of members
	row         uintptr // where the next round puts its row
	segments    uintptr // address of what a row is made of
	nsegments   uintptr
	done        uintptr // rounds carried out
	at          uintptr // the member under way
	status      uint32  // that stopped it; 0 = none
	call        uint32  // which call of the member gave it
	other       uintptr // the call, if it is one of roundCall
	infinite    uint32  // not 0: the last round has an output that is no finite number
	unusual     uint32  // not 0: a member has flags
	begin, end  uint64  // time stamps
	mask        uint64  // members are timed in rounds whose index has none of these bits
	timing      uint64  // not 0: this is such a round
	stamp       uint64  // the last time stamp in it
	stop        uint32  // not 0: the round under way is the last one; another thread may set it
	_           uint32
	tag         tag // of the member under way, of the call if that is one of roundCall; 0 = the crossing is over
}

// The calls that rounds.call tells apart.
const (
	roundSet = iota
	roundDo
	roundGet
	roundOther
)

// The flags of a member.
const (
	warnedSet   = 1 << iota // a call has given Warning
	warnedOther             // roundOther
	warnedDo
	warnedGet
	changedModes = 1 << 8 // a call left with other floating-point modes; they are put back
)

// roundMember is an instance in a round: what is copied to inputs, the setter of
// the Real inputs, the step, and the getter of the Real outputs. Without a step it
// only copies.
type roundMember struct {
	copies        uintptr // address of the roundCopies, the roundScalings follow
	plain, scaled uint32
	set           uintptr
	inRefs        uintptr
	nin, nout     uint32
	in            uintptr
	comp          uintptr
	do            uintptr
	get           uintptr
	outRefs, out  uintptr
	finite        uint32 // so many of the outputs are judged
	noRestore     uint32
	extras        uintptr // address of roundExtras; 0 = Real inputs and outputs only
	ticks         uint64
	flags         uint32
	_             uint32
	tag           tag
}

type roundCopy struct{ from, to uintptr }

// roundScaling copies gain·x + offset; the product is rounded on its own.
type roundScaling struct {
	from, to     uintptr
	gain, offset float64
}

// roundExtras is what a member exchanges beside Reals.
type roundExtras struct {
	moves, setters, getters uint32
	_                       uint32
	move, setter, getter    uintptr // addresses of the first ones
}

// roundMove copies an int32; truth, if not 0, makes 1 of what is not 0.
type roundMove struct{ from, to, truth uintptr }

type roundCall struct {
	fn, refs, n, values uintptr
	tag                 tag
}

type roundSegment struct{ from, quads uintptr }

// RoundPlan is a macro step as it is repeated: turns, one after the other.
type RoundPlan struct {
	Steppers []*Stepper // of different instances, without input derivatives
	Turns    []Turn
	// The communication points are Start + i·Step. Every step is told Step itself: the
	// difference of two points varies in its last bit (fmi2 49).
	Start, Step float64
	// Rows is the number of rounds of a crossing whose outputs are kept; 0 = none are.
	Rows int
}

// Turn is a part of a round: values are copied from outputs as they are to inputs,
// and one stepper makes its step.
type Turn struct {
	Reals    []RealCopy
	Integers []IntegerCopy
	Booleans []IntegerCopy
	Stepper  int // index; -1 = only the copies
	Judged   int // so many of RealOut must be finite numbers
}

// RealCopy copies output Out of stepper From, times Gain plus Offset, to input In of
// stepper To. Gain 1 and Offset 0 copy every bit.
type RealCopy struct {
	From, Out, To, In int
	Gain, Offset      float64
}

// IntegerCopy copies an Integer or a Boolean.
type IntegerCopy struct{ From, Out, To, In int }

// Rounds carries out macro steps of steppers, one after the other, in one crossing
// into C. Their buffers are those of the steppers: what is in the inputs that no
// turn copies to goes to the FMU as it is.
type Rounds struct {
	plan     RoundPlan
	head     *rounds
	members  []roundMember
	rows     []float64
	row      int        // of them make a row
	segments int        // make a row
	places   []rowPlace // by stepper
	shown    bool       // the steppers show a row
}

// rowPlace is where a row holds the outputs of a stepper, and the steppers' own.
type rowPlace struct {
	real, integer, boolean int
	realOut                []float64
	integerOut, booleanOut []int32
}

// ErrNoRounds tells that an instance cannot take part: it has a process of its own, is
// called call by call, takes input derivatives, or the platform has no trampoline.
var ErrNoRounds = errors.New("it takes no steps among others in one crossing into C")

// NewRounds prepares the crossing; ErrNoRounds if an instance cannot take part.
func NewRounds(p RoundPlan) (*Rounds, error) {
	if len(p.Steppers) == 0 || len(p.Turns) == 0 {
		return nil, fmt.Errorf("rounds need at least one stepper and one turn")
	}
	for _, s := range p.Steppers {
		switch {
		case runRounds == nil || s.in.remote != nil || s.in.single || s.Derivatives != nil:
			return nil, fmt.Errorf("%s: %w", s.in.name, ErrNoRounds)
		case s.in.State() != StateStepComplete:
			return nil, s.in.refuse(fnDoStep, s.in.State())
		}
	}
	r := &Rounds{plan: p}
	return r, r.build()
}

func (r *Rounds) build() error {
	mem := &r.plan.Steppers[0].in.mem
	var err error
	r.head = (*rounds)(mem.cell(roundsCell))
	if r.members, err = cslice[roundMember](mem, len(r.plan.Turns)); err != nil {
		return err
	}
	for k := range r.plan.Turns {
		if err := r.turn(mem, &r.plan.Turns[k], &r.members[k]); err != nil {
			return err
		}
	}
	h := r.head
	h.start, h.step, h.h = r.plan.Start, r.plan.Step, r.plan.Step
	h.members, h.count = address(r.members), uintptr(len(r.members))
	return r.planRows(mem)
}

// turn fills in a member.
func (r *Rounds) turn(mem *cmem, t *Turn, m *roundMember) error {
	if err := r.copies(mem, t, m); err != nil {
		return err
	}
	var extras roundExtras
	var err error
	if extras.move, extras.moves, err = r.moves(mem, t); err != nil {
		return err
	}
	if t.Stepper >= 0 {
		s := r.plan.Steppers[t.Stepper]
		m.tag = s.in.tag.of(fnSetReal)
		m.comp, m.noRestore = s.in.comp, uint32(flag(s.NoRestoreBefore))
		var setters, getters []roundCall
		for k := range s.recs {
			c := &s.recs[k]
			call := roundCall{c.fn, c.i[1], c.i[2], c.i[3], c.tag}
			switch f := s.fns[k]; {
			case f == fnSetReal:
				m.set, m.inRefs, m.nin, m.in = call.fn, call.refs, uint32(call.n), call.values
			case f == fnDoStep:
				m.do = call.fn
			case f == fnGetReal:
				m.get, m.outRefs, m.nout, m.out = call.fn, call.refs, uint32(call.n), call.values
			case k < s.do:
				setters = append(setters, call)
			default:
				getters = append(getters, call)
			}
		}
		m.finite = uint32(min(t.Judged, len(s.RealOut)))
		if extras.setter, extras.setters, err = inMemory(mem, setters); err != nil {
			return err
		}
		if extras.getter, extras.getters, err = inMemory(mem, getters); err != nil {
			return err
		}
	}
	if extras.moves+extras.setters+extras.getters > 0 {
		p, err := cslice[roundExtras](mem, 1)
		if err != nil {
			return err
		}
		p[0] = extras
		m.extras = address(p)
	}
	return nil
}

// inMemory puts elements into C memory.
func inMemory[T any](mem *cmem, all []T) (at uintptr, n uint32, err error) {
	if len(all) == 0 {
		return 0, 0, nil
	}
	p, err := cslice[T](mem, len(all))
	copy(p, all)
	return address(p), uint32(len(all)), err
}

// copies lists what goes from Real outputs to Real inputs.
func (r *Rounds) copies(mem *cmem, t *Turn, m *roundMember) error {
	var plain []roundCopy
	var scaled []roundScaling
	for _, c := range t.Reals {
		from, to := addressOf(&r.plan.Steppers[c.From].RealOut[c.Out]), addressOf(&r.plan.Steppers[c.To].RealIn[c.In])
		if c.Gain == 1 && c.Offset == 0 {
			plain = append(plain, roundCopy{from, to})
		} else {
			scaled = append(scaled, roundScaling{from, to, c.Gain, c.Offset})
		}
	}
	size := uintptr(len(plain))*unsafe.Sizeof(roundCopy{}) + uintptr(len(scaled))*unsafe.Sizeof(roundScaling{})
	if size == 0 {
		return nil
	}
	p, err := mem.alloc(size)
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*roundCopy)(p), len(plain)), plain)
	behind := unsafe.Add(p, uintptr(len(plain))*unsafe.Sizeof(roundCopy{}))
	copy(unsafe.Slice((*roundScaling)(behind), len(scaled)), scaled)
	m.copies, m.plain, m.scaled = uintptr(p), uint32(len(plain)), uint32(len(scaled))
	return nil
}

func (r *Rounds) moves(mem *cmem, t *Turn) (at uintptr, n uint32, err error) {
	var all []roundMove
	for _, c := range t.Integers {
		all = append(all, roundMove{addressOf(&r.plan.Steppers[c.From].IntegerOut[c.Out]), addressOf(&r.plan.Steppers[c.To].IntegerIn[c.In]), 0})
	}
	for _, c := range t.Booleans {
		all = append(all, roundMove{addressOf(&r.plan.Steppers[c.From].BooleanOut[c.Out]), addressOf(&r.plan.Steppers[c.To].BooleanIn[c.In]), 1})
	}
	return inMemory(mem, all)
}

// planRows lists what a row is made of.
func (r *Rounds) planRows(mem *cmem) error {
	if r.plan.Rows == 0 {
		return nil
	}
	var segments []roundSegment
	add := func(at uintptr, quads int) int {
		begin := r.row
		if quads > 0 {
			segments = append(segments, roundSegment{at, uintptr(quads)})
			r.row += quads
		}
		return begin
	}
	for _, s := range r.plan.Steppers {
		r.places = append(r.places, rowPlace{
			real:    add(address(s.RealOut), len(s.RealOut)),
			integer: add(address(s.IntegerOut), (len(s.IntegerOut)+1)/2),
			boolean: add(address(s.BooleanOut), (len(s.BooleanOut)+1)/2),
			realOut: s.RealOut, integerOut: s.IntegerOut, booleanOut: s.BooleanOut,
		})
	}
	var err error
	if r.rows, err = cslice[float64](mem, r.row*r.plan.Rows); err != nil {
		return err
	}
	at, n, err := inMemory(mem, segments)
	r.head.segments, r.segments = at, int(n)
	return err
}

// sampleAbove is the number of rounds in a crossing from which on the members are
// timed in some of them only.
const sampleAbove, sampleMask = 64, 15

// Run carries out n rounds, the first from communication point i. It gives how many
// are done, and whether all their outputs are finite: if not, it has stopped after
// the first round with one that is not. failed is the turn whose call has ended it in
// the round behind those, -1 if none; the outcome of this call is as Stepper.Step gives it.
// With rows, what each round gave is kept; n is at most RoundPlan.Rows then.
func (r *Rounds) Run(i, n int, rows bool) (done int, finite bool, failed int, status Status, err error) {
	r.Show(-1)
	h := r.head
	h.left, h.index, h.mask = uintptr(n), int64(i), 0
	if n >= sampleAbove {
		h.mask = sampleMask
	}
	atomic.StoreUint32(&h.stop, 0)
	h.row, h.nsegments = address(r.rows), 0
	if rows {
		h.nsegments = uintptr(r.segments)
	}
	for _, s := range r.plan.Steppers {
		if st := s.in.State(); st != StateStepComplete {
			return 0, true, -1, StatusErr, s.in.refuse(fnDoStep, st)
		}
		s.in.crossings++
	}
	runRounds(h)
	done = int(h.done)
	for _, s := range r.plan.Steppers {
		s.in.time = h.start + float64(float64(i+done)*h.step)
	}
	r.meter()
	if h.unusual != 0 {
		r.tell()
	}
	if h.status == uint32(StatusOK) {
		return done, h.infinite == 0, -1, StatusOK, nil
	}
	failed = int(h.at-h.members) / int(unsafe.Sizeof(roundMember{})) // in memory that no FMU should have got at
	s := r.plan.Steppers[r.plan.Turns[failed].Stepper]
	f := fnDoStep
	switch h.call {
	case roundSet:
		f = fnSetReal
	case roundGet:
		f = fnGetReal
	case roundOther:
		call := (*roundCall)(cptr(h.other))
		for k := range s.recs {
			if s.recs[k].i[3] == call.values && s.recs[k].fn == call.fn {
				f = s.fns[k]
			}
		}
	}
	s.in.from, s.in.spent = h.t, 0 // how long the call took is not known
	status = Status(int32(h.status))
	return done, true, failed, defined(status), s.in.settle(f, status)
}

// Stop makes the round under way the last one of the present Run. Another goroutine may
// call it, until the instances are freed.
func (r *Rounds) Stop() { atomic.StoreUint32(&r.head.stop, 1) }

// meter gives the time of the crossing to the instances, as their shares in the
// rounds in which they were timed.
func (r *Rounds) meter() {
	total, sum := span(r.head.begin, r.head.end), uint64(0)
	for k := range r.members {
		sum += r.members[k].ticks
	}
	for k := range r.members {
		m := &r.members[k]
		if at := r.plan.Turns[k].Stepper; at >= 0 && sum > 0 {
			s := r.plan.Steppers[at]
			share := uint64(float64(total) * (float64(m.ticks) / float64(sum)))
			s.ticks += share
			s.in.ticks += share
		}
		m.ticks = 0
	}
}

// tell tells what the FMUs have done beside failing.
func (r *Rounds) tell() {
	for k := range r.members {
		m := &r.members[k]
		if m.flags == 0 {
			continue
		}
		s := r.plan.Steppers[r.plan.Turns[k].Stepper]
		if m.flags&changedModes != 0 && s.in.fmu.modes.CompareAndSwap(false, true) {
			s.in.log.say("the FMU changes the floating-point modes (rounding, flush to zero or exceptions) during macro steps; they are put back")
		}
		msg := s.in.log.takeRecent()
		// In the order of the calls.
		for _, w := range []struct {
			bit  uint32
			call string
		}{{warnedSet, fnSetReal.String()}, {warnedOther, s.otherCalls()}, {warnedDo, fnDoStep.String()}, {warnedGet, fnGetReal.String()}} {
			if m.flags&w.bit != 0 {
				s.in.tellWarning(w.call, msg)
			}
		}
		m.flags = 0
	}
}

// otherCalls names the calls of a step for what is no Real, one of which has given Warning.
func (s *Stepper) otherCalls() string {
	var names []string
	for k, f := range s.fns {
		if k != s.do && f != fnSetReal && f != fnGetReal {
			names = append(names, f.String())
		}
	}
	return strings.Join(names, " or ")
}

// Show makes the outputs of the steppers those of round j of the last Run, until the
// next one; -1 makes them what they are now.
func (r *Rounds) Show(j int) {
	if j < 0 && !r.shown {
		return
	}
	r.shown = j >= 0
	for k, s := range r.plan.Steppers {
		p := &r.places[k]
		if j < 0 {
			s.RealOut, s.IntegerOut, s.BooleanOut = p.realOut, p.integerOut, p.booleanOut
			continue
		}
		row := r.rows[j*r.row:]
		if n := len(p.realOut); n > 0 {
			s.RealOut = row[p.real : p.real+n]
		}
		if n := len(p.integerOut); n > 0 {
			s.IntegerOut = unsafe.Slice((*int32)(unsafe.Pointer(&row[p.integer])), n)
		}
		if n := len(p.booleanOut); n > 0 {
			s.BooleanOut = unsafe.Slice((*int32)(unsafe.Pointer(&row[p.boolean])), n)
		}
	}
}
