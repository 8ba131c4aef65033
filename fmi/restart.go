package fmi

import (
	"errors"
	"fmt"
	"os"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Restart tells of a process of an instance that came to its end, and in whose
// place the instance goes on in another.
type Restart struct {
	Func  string  // for example "fmi2DoStep"; several if it is not known which
	Time  float64 // s, where the FMU was or where the step began
	Cause string  // how the process ended
}

// Keep makes the present state the one from which the instance goes on if its
// process ends in a call (InstanceOptions.Restarts). It is for communication
// points: what is asked of the instance after it is written down and done again in
// the new process. Before the first Keep a process that ends is lost, and after
// Reset; those that end in Terminate or Free are not replaced. States saved before
// the last Keep are lost with a process.
//
// The FMU has to save and serialise its state; else the error is a
// *CapabilityError.
func (in *Instance) Keep() error {
	if in.remote == nil || in.remote.safe == nil {
		return in.argument(fmi2.SerializeFMUState, "no restarts of the instance were asked for")
	}
	return in.remote.safe.keep(in)
}

// Restarts lists those so far. The slice belongs to the instance.
func (in *Instance) Restarts() []Restart {
	if in.remote == nil || in.remote.safe == nil {
		return nil
	}
	return in.remote.safe.made
}

// safe holds what takes an instance into another process: how it was brought
// there, the bytes of a state, what was asked of it since.
type safe struct {
	limit    int
	launcher Launcher
	made     []Restart

	load    []byte // the request
	defined []byte // what is fixed in records that the host keeps, for askDefine
	records uint64 // number of those
	birth   tape   // up to the end of the initialisation
	born    bool
	ready   bool // there is a state

	slot        *FMUState
	state, next []byte  // as SerializeFMUState gives it; being written
	time        float64 // s, of the state
	since       tape
	epoch       int // number of Keeps
}

// tape holds requests, and the outcome that each had.
type tape struct {
	data     []byte
	ends     []int // of each request in data
	outcomes []uint64
}

func (t *tape) add(request []byte, outcome uint64) {
	t.data = append(t.data, request...)
	t.ends = append(t.ends, len(t.data))
	t.outcomes = append(t.outcomes, outcome)
}

func (t *tape) clear() { t.data, t.ends, t.outcomes = t.data[:0], t.ends[:0], t.outcomes[:0] }

// keep gets the state of the instance and begins a new tape.
func (s *safe) keep(in *Instance) error {
	var err error
	if s.slot, err = in.GetFMUState(s.slot); err != nil {
		return err
	}
	if s.next, err = in.SerializeFMUState(s.slot, s.next[:0]); err != nil {
		return err
	}
	s.state, s.next = s.next, s.state
	s.time = in.remote.time
	s.since.clear()
	s.epoch++
	s.ready = true
	return nil
}

// reading are the calls that leave an instance as it is.
const reading fmi2.FunctionSet = 1<<fmi2.GetReal | 1<<fmi2.GetInteger | 1<<fmi2.GetBoolean | 1<<fmi2.GetString | 1<<fmi2.GetRealOutputDerivatives |
	1<<fmi2.SerializedFMUStateSize | 1<<fmi2.SerializeFMUState |
	1<<fmi2.GetStatus | 1<<fmi2.GetRealStatus | 1<<fmi2.GetIntegerStatus | 1<<fmi2.GetBooleanStatus | 1<<fmi2.GetStringStatus

// write takes a request down that was answered.
func (s *safe) write(recs []native.Record, request []byte, outcome uint64) {
	f := fmi2.Function(recs[len(recs)-1].Fn - 1)
	switch {
	case !s.born:
		s.birth.add(request, outcome)
		s.born = f == fmi2.ExitInitializationMode && outcome&wireStopped == 0
	case f == fmi2.Reset:
		s.ready = false
	case s.ready && !(len(recs) == 1 && reading.Has(f)):
		s.since.add(request, outcome)
	}
}

// goOn takes the instance into a new process where the last one has ended, so
// that the request under way can be made again. If it cannot, or may not any more,
// the error is the cause with what there is to add.
func (r *remote) goOn(recs []native.Record, cause error) error {
	s := r.safe
	if s == nil || !s.ready {
		return cause
	}
	switch fmi2.Function(recs[0].Fn - 1) {
	case fmi2.Terminate, fmi2.FreeInstance:
		return cause
	}
	_, call, at := r.underWay(recs, cause)
	for {
		if len(s.made) >= s.limit {
			return fmt.Errorf("%w; its process was replaced %d times, and no more is allowed", cause, s.limit)
		}
		s.made = append(s.made, Restart{call, at, cause.Error()})
		r.in.log.Say(fmt.Sprintf("its process ended in %s at t = %.12g s: %v; it goes on in another one from its state at t = %.12g s (restart %d of at most %d)",
			call, at, cause, s.time, len(s.made), s.limit))
		failed := r.replay()
		if failed == nil {
			return nil
		}
		if ended := (*Ended)(nil); !errors.As(failed, &ended) {
			return fmt.Errorf("%w; it cannot go on in another process: %w", cause, failed)
		}
		cause, call, at = failed, "what was done again after a restart", s.time
	}
}

// replay starts another process and brings the instance there to where it was
// before the request under way. What the FMU says meanwhile it has said before.
func (r *remote) replay() error {
	s := r.safe
	r.mute.Store(true)
	defer r.mute.Store(false)
	if err := r.disconnect(); err != nil {
		return err
	}
	r.mu.Lock()
	r.lines = r.lines[:0]
	r.mu.Unlock()
	for _, state := range r.in.states {
		state.lost = state.epoch < s.epoch
	}
	// The library is loaded from there, and the FMU reads its resources when it likes.
	if _, err := os.Stat(r.in.fmu.place.Path); err != nil {
		return fmt.Errorf("the FMU as it was unpacked is gone: %w; something has removed it from the folder for temporary files: set TMPDIR to one that is left alone", err)
	}
	if err := r.launch(s.launcher); err != nil {
		return err
	}
	answer, err := call(r.link, s.load)
	if err != nil {
		return err
	}
	if _, _, err := r.loaded(answer); err != nil {
		return err
	}
	var m wireWriter
	m.word(askDefine)
	m.word(s.records)
	if _, err := call(r.link, append(m, s.defined...)); err != nil {
		return err
	}
	if err := r.play(&s.birth); err != nil {
		return err
	}
	if err := r.putBack(s.state[stateHeader:]); err != nil {
		return err
	}
	return r.play(&s.since)
}

var errOtherway = errors.New("the FMU does not do there what it did before")

// play makes the requests of a tape.
func (r *remote) play(t *tape) error {
	from := 0
	for k, end := range t.ends {
		answer, err := call(r.link, t.data[from:end])
		if err != nil {
			return err
		}
		a := wireReader{rest: answer}
		if outcome := a.word(); a.bad || outcome != t.outcomes[k] {
			return errOtherway
		}
		from = end
	}
	return nil
}

// putBack takes the instance to a serialised state.
func (r *remote) putBack(state []byte) error {
	r.states++
	id := r.states
	for _, request := range []func(*wireWriter){
		func(m *wireWriter) {
			m.word(uint64(fmi2.DeSerializeFMUState) | wireDefines)
			m.word(uint64(len(state)))
			m.raw(state)
			m.word(id)
		},
		func(m *wireWriter) { m.word(uint64(fmi2.SetFMUState) | wireDefines); m.word(id) },
		func(m *wireWriter) { m.word(uint64(fmi2.FreeFMUState) | wireDefines); m.word(id) },
	} {
		var m wireWriter
		m.word(askRun)
		m.word(1)
		request(&m)
		answer, err := call(r.link, m)
		if err != nil {
			return err
		}
		a := wireReader{rest: answer}
		if outcome := a.word(); a.bad || outcome != 1 {
			return errors.New("the FMU does not take its serialised state back (canSerializeFMUstate)")
		}
	}
	return nil
}

// behind is told that the instance went back to a state. One from before the last
// Keep is in no other process.
func (r *remote) behind(state *FMUState) {
	if state.epoch < r.epoch() {
		r.safe.ready = false
	}
}

// define takes down what is fixed in a record that the host keeps.
func (s *safe) define(fixed []byte) {
	if s != nil {
		s.defined = append(s.defined, fixed...)
		s.records++
	}
}

// epoch counts the Keeps.
func (r *remote) epoch() int {
	if r == nil || r.safe == nil {
		return 0
	}
	return r.safe.epoch
}
