package fmi

import (
	"bytes"
	"encoding/gob"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// events is the event mode of an instance of FMI 3.0 (fmi3 19, 21): the FMU handles events at the start of a step and
// within it and, if no inputs are driven for which they should wait, at its end.
type events struct {
	in     *Instance
	clocks []*description.ScalarVariable // input Clocks that are not triggered
	bare   *Stepper                      // of Instance.DoStep
	// C memory.
	update    *update
	clock     *uint32 // the Clock of a call, and its values
	time      *float64
	qualifier *int32 // also the fmi3Clock
	scratch   []uint64
	schedule
}

// update has the results of fmi3UpdateDiscreteStates, as C writes them.
type update struct {
	need, terminate, nominals, values, defined uint64 // fmi3Boolean in the lowest byte
	next                                       float64
}

// schedule is the part of the state of an instance that is not in the FMU (fmi3 23). Times are in s.
type schedule struct {
	At     float64 // that the FMU has reached
	Needed bool    // the FMU has found an event there
	Next   float64 // time event; +Inf = none
	Clock  []ticks
	Inputs []uint64 // discrete ones that were set last, as bits
	Texts  []held   // likewise
	Held   []held   // outputs that belong to Clocks, as of the last ticks
}

// held is the value of a variable as it was set or read last.
type held struct {
	Reference description.ValueReference
	Real      float64
	Integer   int64
	Text      string
}

// ticks are the ticks of a Clock.
type ticks struct {
	First, Interval float64 // of a periodic Clock
	Made            int
	Next            float64
	Due             bool
}

// maxIterations bounds the event iteration, and the events and early returns within a billionth of a step; maxEvents
// bounds those within a step.
const (
	maxIterations = 1000
	maxEvents     = 1000000
)

// newEvents prepares the event mode.
func newEvents(in *Instance) (*events, error) {
	v := &events{in: in, schedule: schedule{Next: math.Inf(1)}}
	for _, f := range []capi.Function{capi.EnterEventMode, capi.UpdateDiscreteStates, capi.EnterStepMode} {
		if err := in.supports(f); err != nil {
			return nil, err
		}
	}
	for k := range in.fmu.Description.Variables {
		x := &in.fmu.Description.Variables[k]
		if x.Clock != nil && x.AliasOf == 0 && x.Clock.Causality == description.Input &&
			x.Clock.Interval != "triggered" {
			v.clocks = append(v.clocks, x)
		}
	}
	u, err := native.Slice[update](&in.mem, 1)
	if err != nil {
		return nil, err
	}
	words, err := native.Slice[uint64](&in.mem, 3)
	v.update, v.clock = &u[0], (*uint32)(unsafe.Pointer(&words[0]))
	v.time, v.qualifier = (*float64)(unsafe.Pointer(&words[1])), (*int32)(unsafe.Pointer(&words[2]))
	return v, err
}

// rounding is how far apart two times may be that are meant to be t.
func rounding(t float64) float64 { return 4 * 0x1p-52 * math.Abs(t) }

// nextTime returns the time of the next event that is known, +Inf = none.
func (v *events) nextTime() float64 {
	next := v.Next
	for _, c := range v.Clock {
		next = min(next, c.Next)
	}
	return next
}

// due reports whether there is an event at a time.
func (v *events) due(at float64) bool { return v.Needed || v.nextTime() <= at+rounding(at) }

// NextEvent returns the time of the first event after t that is known, s; +Inf = none, or no event mode.
func (in *Instance) NextEvent(t float64) float64 {
	next := math.Inf(1)
	if v := in.events; v != nil {
		at := t + rounding(t)
		if v.Next > at {
			next = v.Next
		}
		for k, c := range v.Clock {
			if c.Next <= at && periodic(v.clocks[k]) {
				c.Next += c.Interval
			}
			if c.Next > at {
				next = min(next, c.Next)
			}
		}
	}
	return next
}

// call calls a function of one Clock, whose first value is at an address.
func (v *events) call(f capi.Function, clock *description.ScalarVariable, value uintptr) error {
	if err := v.in.begin(f); err != nil {
		return err
	}
	*v.clock = clock.ValueReference.Number()
	v.in.prepare(f, v.in.comp, native.AddressOf(v.clock), 1, value, native.AddressOf(v.qualifier))
	return v.in.call(f)
}

// start asks for the intervals that the document does not have, at the end of Initialization Mode.
func (v *events) start() error {
	v.Clock = make([]ticks, len(v.clocks))
	for k, x := range v.clocks {
		c := &v.Clock[k]
		first := x.Clock.ShiftDecimal
		if c.Interval = x.Clock.IntervalDecimal; c.Interval == 0 {
			known, err := v.ask(k)
			if err != nil {
				return err
			}
			if first = *v.time; periodic(x) {
				if err := v.call(capi.GetShiftDecimal, x, native.AddressOf(v.time)); err != nil {
					return err
				}
				c.Interval, first = first, *v.time
			} else if !known {
				first = math.Inf(1)
			}
		}
		if !(first >= 0) {
			return v.untickable(k, "shift", first)
		}
		c.First = v.in.time + first
		c.Next = c.First
	}
	return nil
}

func periodic(x *description.ScalarVariable) bool {
	return x.Clock.Interval == "constant" || x.Clock.Interval == "fixed" || x.Clock.Interval == "tunable"
}

// ask asks for the interval of Clock k, into time, and reports whether it has changed. That of a countdown Clock may
// not be known yet.
func (v *events) ask(k int) (changed bool, err error) {
	const unchanged, isChanged = 1, 2
	x := v.clocks[k]
	if err := v.call(capi.GetIntervalDecimal, x, native.AddressOf(v.time)); err != nil {
		return false, err
	}
	q, interval := *v.qualifier, *v.time
	if q < 0 || q > isChanged || q == 0 && x.Clock.Interval != "countdown" {
		return false, v.in.argument(capi.GetIntervalDecimal, "the FMU does not know the interval of the %s Clock %s; "+
			"correct the parameters on which it depends, or ask the exporter", x.Clock.Interval, x.Name)
	}
	changed = q == isChanged || q == unchanged && x.Clock.Interval == "changing"
	if (changed || periodic(x)) && (!(interval >= 0) || periodic(x) && !(interval > 0 && finite(interval))) {
		return false, v.untickable(k, "interval", interval)
	}
	return changed, nil
}

// untickable returns the error of a Clock with such an interval or shift, s.
func (v *events) untickable(k int, what string, value float64) error {
	x := v.clocks[k]
	return usage(v.in.name, "at t = %.12g s the %s Clock %s has the %s %g s, with which it cannot tick; "+
		"correct the parameters on which it depends, or ask the exporter", v.in.time, x.Clock.Interval, x.Name, what, value)
}

// change calls a function that changes the mode.
func (v *events) change(f capi.Function, to State) error {
	if err := v.in.begin(f); err != nil {
		return err
	}
	v.in.prepare(f, v.in.comp)
	err := v.in.call(f)
	if err == nil {
		v.in.state = to
	}
	return err
}

// enter enters Event Mode, if the instance is not in it.
func (v *events) enter() error {
	if v.in.state == StateEventMode {
		return nil
	}
	return v.change(capi.EnterEventMode, StateEventMode)
}

// handle lets the FMU handle the events that are due at a time: it ticks Clocks, passes the inputs of s, iterates, and
// leaves Event Mode. ended: the FMU ends the simulation.
func (v *events) handle(s *Stepper, now float64) (ended bool, err error) {
	in, u := v.in, v.update
	if err := v.enter(); err != nil {
		return false, err
	}
	in.time, v.At, v.Needed, v.Next = now, now, false, math.Inf(1)
	for range maxIterations {
		if err := v.tick(s, now); err != nil {
			return false, err
		}
		if err := in.begin(capi.UpdateDiscreteStates); err != nil {
			return false, err
		}
		*u = update{}
		in.prepare(capi.UpdateDiscreteStates, in.comp, native.AddressOf(&u.need), native.AddressOf(&u.terminate),
			native.AddressOf(&u.nominals), native.AddressOf(&u.values), native.AddressOf(&u.defined), native.AddressOf(&u.next))
		if err := in.call(capi.UpdateDiscreteStates); err != nil || u.terminate&0xff != 0 {
			return err == nil, err
		}
		again, err := v.advance(now)
		if err != nil {
			return false, err
		}
		if u.need&0xff != 0 || again {
			continue
		}
		if u.defined&0xff != 0 {
			if v.Next = u.next; math.IsNaN(v.Next) {
				return false, in.argument(capi.UpdateDiscreteStates, "at t = %.12g s the next event time is NaN; "+
					"correct the model, or ask the exporter", now)
			}
		}
		return false, v.change(capi.EnterStepMode, StateStepComplete)
	}
	return false, in.argument(capi.UpdateDiscreteStates,
		"at t = %.12g s the event iteration has not ended after %d calls: "+
			"the FMU triggers events without end; correct the model or its inputs", now, maxIterations)
}

// tick activates the Clocks that are due, passes the inputs of s, and reads what belongs to active Clocks.
func (v *events) tick(s *Stepper, now float64) error {
	var active []uint32
	for k, x := range v.clocks {
		c := &v.Clock[k]
		if c.Due = c.Next <= now+rounding(now); !c.Due {
			continue
		}
		*v.qualifier = 1
		if err := v.call(capi.SetClock, x, native.AddressOf(v.qualifier)); err != nil {
			return err
		}
		active = append(active, x.ValueReference.Number())
	}
	if err := s.exchange(0, s.do, active, true); err != nil {
		return err
	}
	v.Inputs = s.inputs(v.Inputs[:0])
	for _, x := range s.triggered {
		if err := v.call(capi.GetClock, x, native.AddressOf(v.qualifier)); err != nil {
			return err
		}
		if *v.qualifier&0xff != 0 {
			active = append(active, x.ValueReference.Number())
		}
	}
	if active == nil {
		return nil
	}
	return s.exchange(s.do+1, len(s.recs), active, false)
}

// advance schedules the next ticks. again: some are due at once.
func (v *events) advance(now float64) (again bool, err error) {
	for k, x := range v.clocks {
		c, kind := &v.Clock[k], x.Clock.Interval
		if c.Due {
			c.Made++
			c.Next = math.Inf(1)
			if periodic(x) {
				c.Next = c.First + float64(float64(c.Made)*c.Interval)
			}
		}
		if kind == "countdown" || kind == "changing" && c.Due || kind == "tunable" && x.Clock.IntervalDecimal == 0 {
			changed, err := v.ask(k)
			if err != nil {
				return false, err
			}
			if changed {
				c.First, c.Interval, c.Made = now+*v.time, *v.time, 0
				c.Next = c.First
			}
			again = again || c.Next <= now
		}
	}
	return again, nil
}

// step is Stepper.Step in event mode: it handles the events at t, with the inputs there, and those before t+h. Those at
// t+h wait for the inputs of the next step, unless none are driven.
func (v *events) step(s *Stepper, t, h float64, read bool) (worst Status, err error) {
	in, at, end := v.in, t, t+h
	if math.Abs(v.At-t) <= rounding(t) { // the times that the FMU gets are contiguous
		at = v.At
	}
	in.time = at
	v.scratch = s.inputs(v.scratch[:0])
	if in.state == StateEventMode || v.due(at) || !slices.Equal(v.Inputs, v.scratch) {
		if ended, err := v.handle(s, at); ended || err != nil {
			return v.stopped(ended, err)
		}
	}
	if err := s.exchange(0, s.do, nil, true); err != nil {
		return StatusErr, err
	}
	driven := len(s.RealIn)+len(s.IntegerIn)+len(s.BooleanIn) > 0
	for idle, made := 0, 0; at < end-rounding(end); {
		to := min(v.nextTime(), end)
		if next := v.nextTime(); next > end && next <= end+rounding(end) {
			to = next
		}
		if idle, made = idle+1, made+1; to > at {
			size := to - at
			if at == t && to == end {
				size = h
			}
			s.ready(&s.recs[s.do], at, size)
			status, err := s.carryOut(s.do, s.do+1, at, size)
			if worst = max(worst, status); err != nil {
				return status, err
			}
			switch last := in.step.last; {
			case in.step.early&0xff == 0 && !(math.Abs(last-to) <= rounding(to)): // fmi3 17
			case last >= at && last <= to+rounding(to):
				to = last
			default:
				return StatusErr, in.argument(capi.DoStep, "from t = %.12g s by %.12g s: the FMU returned early and has reached "+
					"%.12g s, which is not in the step; ask the exporter", at, size, last)
			}
			if to-at > 1e-9*h {
				idle = 0
			}
			at, v.Needed = max(at, to), in.step.event&0xff != 0
			v.At, in.time = at, at
		}
		if idle > maxIterations || made > maxEvents {
			return StatusErr, in.argument(capi.DoStep, "the FMU has returned early, or announced events, %d times near t = %.12g s; "+
				"correct the model or its inputs", min(made, maxEvents), at)
		}
		if at >= end-rounding(end) && driven {
			break
		}
		if v.due(at) {
			if ended, err := v.handle(s, at); ended || err != nil {
				return v.stopped(ended, err)
			}
		}
	}
	in.from, in.time = t, end
	if !read {
		return worst, nil
	}
	status, err := s.carryOut(s.do+1, len(s.recs), end, 0)
	return max(worst, status), err
}

// stopped returns the outcome of a step in which the FMU has ended the simulation in its Event Mode, or failed.
func (v *events) stopped(ended bool, err error) (Status, error) {
	if !ended {
		return StatusErr, err
	}
	v.in.forgetStep()
	v.in.step.terminate, v.in.step.last = 1, v.in.time
	err = v.in.settle(capi.DoStep, StatusDiscard)
	if e := (*StatusError)(nil); errors.As(err, &e) {
		e.Func = v.in.is(capi.UpdateDiscreteStates).String()
	}
	return StatusDiscard, err
}

// repeats reports whether texts are those that were set last.
func (v *events) repeats(vr []description.ValueReference, texts []string) bool {
	for k, r := range vr {
		if !slices.Contains(v.Texts, held{Reference: r, Text: texts[k]}) {
			return false
		}
	}
	return true
}

// keep stores texts that have been set.
func (v *events) keep(vr []description.ValueReference, texts []string) {
	for k, r := range vr {
		v.Texts = slices.DeleteFunc(v.Texts, func(h held) bool { return h.Reference == r })
		v.Texts = append(v.Texts, held{Reference: r, Text: texts[k]})
	}
}

// exchange makes those of the calls lo to hi-1 whose variables belong to an active Clock or, if others is true, to
// none.
func (s *Stepper) exchange(lo, hi int, active []uint32, others bool) error {
	s.active, s.clockedOnly = active, !others
	_, err := s.carryOut(lo, hi, s.in.now(), 0)
	s.active, s.clockedOnly = nil, false
	return err
}

// called reports whether a record is among the calls now: outside of Initialization Mode, what belongs to Clocks is set
// and read only while one of them is active (fmi3 20).
func (s *Stepper) called(record int) bool {
	clocks := s.clocks[record]
	if clocks == nil {
		return !s.clockedOnly
	}
	return s.in.state == StateInitialization ||
		slices.ContainsFunc(clocks, func(c uint32) bool { return slices.Contains(s.active, c) })
}

// inputs appends the discrete inputs that belong to no Clock.
func (s *Stepper) inputs(to []uint64) []uint64 {
	for _, x := range s.discrete {
		switch {
		case x.real != nil:
			to = append(to, math.Float64bits(*x.real))
		case x.integer != nil:
			to = append(to, uint64(*x.integer))
		default:
			to = append(to, uint64(*x.boolean))
		}
	}
	return to
}

// observe adds inputs whose changes are events.
func (s *Stepper) observe(vr []description.ValueReference, at func(k int) source) {
	for k, r := range vr {
		if s.in.fmu.jumps(r) && len(s.in.fmu.byReference(r).Clocks) == 0 {
			s.discrete = append(s.discrete, at(k))
		}
	}
}

// jumps reports whether a variable changes only at events.
func (f *FMU) jumps(r description.ValueReference) bool {
	x := f.byReference(r)
	return x != nil && x.Variability != description.Continuous
}

// belong notes the Clocks of the last record, whose variables are those of g.
func (s *Stepper) belong(g *group) {
	s.clocks[len(s.clocks)-1] = g.clocks
	for _, c := range g.clocks {
		x := s.in.fmu.byReference(description.ValueReference(c))
		if s.do >= 0 && x != nil && x.Clock.Interval == "triggered" && !slices.Contains(s.triggered, x) {
			s.triggered = append(s.triggered, x)
		}
	}
}

// clocked returns the number of variables that belong to Clocks.
func (f *FMU) clocked() (n int) {
	for k := range f.Description.Variables {
		n += min(1, len(f.Description.Variables[k].Clocks))
	}
	return n
}

// hold returns the value of an output that belongs to Clocks: that just read, or else the last one.
func (v *events) hold(r description.ValueReference, x value, read bool) value {
	at := slices.IndexFunc(v.Held, func(h held) bool { return h.Reference == r })
	if at < 0 {
		at = len(v.Held)
		v.Held = append(v.Held, held{Reference: r, Real: x.real, Integer: x.integer})
	}
	if h := &v.Held[at]; read {
		h.Real, h.Integer = x.real, x.integer
	} else {
		x.real, x.integer = h.Real, h.Integer
	}
	return x
}

// clone returns a copy.
func (s schedule) clone() schedule {
	s.Clock, s.Inputs = slices.Clone(s.Clock), slices.Clone(s.Inputs)
	s.Texts, s.Held = slices.Clone(s.Texts), slices.Clone(s.Held)
	return s
}

// appendTo and parse encode a schedule.
func (s *schedule) appendTo(b []byte) []byte {
	w := bytes.NewBuffer(b)
	if err := gob.NewEncoder(w).Encode(s); err != nil {
		panic(err) // all fields are plain numbers
	}
	return w.Bytes()
}

func (s *schedule) parse(b []byte) error { return gob.NewDecoder(bytes.NewReader(b)).Decode(s) }
