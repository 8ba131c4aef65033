package remote

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Restart is a process of an instance that came to its end, and in whose
// place the instance goes on in another.
type Restart struct {
	Func  string  // for example "fmi2DoStep"; several if it is not known which
	Time  float64 // s, where the FMU was or where the step began
	Cause string  // how the process ended
}

// restart holds what takes an instance into another process: how it was brought
// there, the bytes of a state, what was asked of it since.
type restart struct {
	Limit int       // how often the process may be replaced; 0 = never, and nothing is held
	Made  []Restart // so far
	Epoch int       // number of Keeps

	load    []byte // the request
	defined []byte // what is fixed in records that the host keeps, for askDefine
	records uint64 // number of those
	birth   tape   // up to the end of the initialisation
	born    bool
	ready   bool // there is a state

	state []byte  // serialised
	time  float64 // s, of the state
	since tape

	replaying atomic.Bool
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

// Keep makes a serialised state, the present one of the instance, that from which the instance
// goes on in another process. It stays in use.
func (r *Client) Keep(state []byte) {
	r.state, r.time = state, r.Time
	r.since.clear()
	r.Epoch++
	r.ready = true
}

// Forget tells that the instance went back to a state from before the last Keep, which is in no
// other process: until the next Keep there is nothing to go on from.
func (r *Client) Forget() { r.ready = false }

// Replaying reports whether what the FMU does was done before, in a process that has ended.
func (r *Client) Replaying() bool { return r.replaying.Load() }

// reading are the calls that leave an instance as it is.
const reading fmi2.FunctionSet = 1<<fmi2.GetReal | 1<<fmi2.GetInteger | 1<<fmi2.GetBoolean | 1<<fmi2.GetString | 1<<fmi2.GetRealOutputDerivatives |
	1<<fmi2.SerializedFMUStateSize | 1<<fmi2.SerializeFMUState |
	1<<fmi2.GetStatus | 1<<fmi2.GetRealStatus | 1<<fmi2.GetIntegerStatus | 1<<fmi2.GetBooleanStatus | 1<<fmi2.GetStringStatus

// write takes a request down that was answered.
func (s *restart) write(recs []native.Record, request []byte, outcome uint64) {
	f := called(&recs[len(recs)-1])
	switch {
	case s.Limit == 0:
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
func (r *Client) goOn(recs []native.Record, cause error) error {
	s := &r.restart
	if !s.ready {
		return cause
	}
	switch called(&recs[0]) {
	case fmi2.Terminate, fmi2.FreeInstance:
		return cause
	}
	_, call, at := r.underWay(recs, cause)
	for {
		if len(s.Made) >= s.Limit {
			return fmt.Errorf("%w; its process was replaced %d times, and no more is allowed", cause, s.Limit)
		}
		s.Made = append(s.Made, Restart{call, at, cause.Error()})
		r.Say(fmt.Sprintf("its process ended in %s at t = %.12g s: %v; it goes on in another one from its state at t = %.12g s (restart %d of at most %d)",
			call, at, cause, s.time, len(s.Made), s.Limit))
		failed := r.replay()
		if failed == nil {
			return nil
		}
		if _, ended := r.Begun(failed); !ended {
			return fmt.Errorf("%w; it cannot go on in another process: %w", cause, failed)
		}
		cause, call, at = failed, "what was done again after a restart", s.time
	}
}

// replay starts another process and brings the instance there to where it was
// before the request under way. What the FMU says meanwhile it has said before.
func (r *Client) replay() error {
	s := &r.restart
	s.replaying.Store(true)
	defer s.replaying.Store(false)
	if err := r.Disconnect(); err != nil {
		return err
	}
	var err error
	if r.link, err = r.Launch(true); err != nil {
		return err
	}
	answer, err := call(r.link, s.load)
	if err != nil {
		return err
	}
	if _, err := r.loaded(answer); err != nil {
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
	if err := r.putBack(s.state); err != nil {
		return err
	}
	return r.play(&s.since)
}

var errOtherway = errors.New("the FMU does not do there what it did before")

// play makes the requests of a tape.
func (r *Client) play(t *tape) error {
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
func (r *Client) putBack(state []byte) error {
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

// define takes down what is fixed in a record that the host keeps.
func (s *restart) define(fixed []byte) {
	if s.Limit > 0 {
		s.defined = append(s.defined, fixed...)
		s.records++
	}
}
