package remote

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Restart describes a process that ended and was replaced; see fmi.Restart.
type Restart struct {
	Func  string
	Time  float64 // s
	Cause string
}

// restart holds the data for a restart: the requests up to the end of the initialisation, a
// saved state, and the requests after it.
type restart struct {
	Limit int  // largest number of restarts after a crash
	Apart bool // a process to which the connection is lost is replaced whatever Limit says
	// Serialises: a state will be kept. Until then, the calls after the initialisation are repeated.
	Serialises bool
	Made       []Restart // restarts so far
	Epoch      int       // number of calls of Keep

	crashes int // restarts after them
	losses  int // of the connection, since the last answer

	load    []byte // request
	defined []byte // constant arguments of records that the host keeps, for askDefine
	records uint64 // number of these records
	birth   tape   // requests up to the end of the initialisation
	born    bool   // birth is complete
	saved   bool   // there is a state

	state  []byte  // serialised
	time   float64 // of the state, s
	since  tape    // requests after the state, or after birth
	broken bool    // since does not have all of them

	replaying atomic.Bool
}

// tape stores requests as askPlay has them, with their outcomes.
type tape struct {
	data     wireWriter
	outcomes []uint64
}

func (t *tape) add(request []byte, outcome uint64) {
	t.data.word(uint64(len(request)))
	t.data.raw(request)
	t.outcomes = append(t.outcomes, outcome)
}

func (t *tape) clear() { t.data, t.outcomes = t.data[:0], t.outcomes[:0] }

// Keep sets the state for a restart to the present state of the instance, serialised. The
// slice remains in use.
func (r *Client) Keep(state []byte) {
	r.state, r.time = state, r.Time
	r.since.clear()
	r.Epoch++
	r.saved, r.broken = true, false
}

const (
	// mostLosses bounds the losses of a connection without an answer between them.
	mostLosses = 100
	// mostSince bounds the requests that are stored as long as no state is kept, in bytes.
	mostSince = 1 << 20
)

// Replaceable reports whether processes are replaced, for which data is stored.
func (s *restart) Replaceable() bool { return s.Limit > 0 || s.Apart }

// severed reports whether an error is the loss of the connection.
func (r *Client) severed(err error) bool {
	_, _, lost := r.Ended(err)
	return r.Apart && lost
}

// Kept reports whether there is a state for a restart.
func (r *Client) Kept() bool { return r.saved && !r.broken }

// Forget disables restarts until the next Keep, after the instance was restored to a state from
// before the last Keep, which a new process would not have.
func (r *Client) Forget() { r.broken = true }

// Replaying reports whether requests are being repeated after a restart.
func (r *Client) Replaying() bool { return r.replaying.Load() }

// reading are the calls that do not change an instance.
const reading capi.FunctionSet = 1<<capi.GetReal | 1<<capi.GetInteger | 1<<capi.GetBoolean | 1<<capi.GetString |
	1<<capi.GetRealOutputDerivatives | 1<<capi.GetFloat32 | 1<<capi.GetInt8 | 1<<capi.GetUInt8 | 1<<capi.GetInt16 | 1<<capi.GetUInt16 |
	1<<capi.GetUInt32 | 1<<capi.GetInt64 | 1<<capi.GetUInt64 | 1<<capi.GetBinary |
	1<<capi.SerializedFMUStateSize | 1<<capi.SerializeFMUState |
	1<<capi.GetStatus | 1<<capi.GetRealStatus | 1<<capi.GetIntegerStatus | 1<<capi.GetBooleanStatus | 1<<capi.GetStringStatus

// write stores an answered request.
func (s *restart) write(recs []native.Record, request []byte, outcome uint64) {
	f := called(&recs[len(recs)-1]).Number()
	s.losses = 0
	switch {
	case !s.Replaceable():
	case !s.born:
		s.birth.add(request, outcome)
		s.born = f == capi.ExitInitializationMode && outcome&wireStopped == 0
	case f == capi.Reset, !s.saved && (!s.Serialises || len(s.since.data)+len(request) > mostSince):
		s.broken = true
		s.since = tape{}
	case !s.broken && !(len(recs) == 1 && reading.Has(f)):
		s.since.add(request, outcome)
	}
}

// goOn restores the instance in a new process, so that the failed request can be repeated. If
// that is not possible, or the limit is reached, the error includes the cause.
func (r *Client) goOn(recs []native.Record, cause error) error {
	s := &r.restart
	if s.broken || !s.saved && !r.severed(cause) {
		return cause
	}
	switch called(&recs[0]).Number() {
	case capi.Terminate, capi.FreeInstance:
		return cause
	}
	_, call, at := r.underWay(recs, cause)
	for {
		what, count := "process ended", ""
		switch lost := r.severed(cause); {
		case lost && s.losses == mostLosses:
			return fmt.Errorf("%w; the connection was lost %d times in this call", cause, mostLosses+1)
		case lost:
			s.losses++
			what = "connection was lost"
		case s.Limit == 0:
			return cause
		case s.crashes == s.Limit:
			return fmt.Errorf("%w; its process was replaced %d times, which is the limit", cause, s.Limit)
		default:
			s.crashes++
			count = fmt.Sprintf(" (restart %d of at most %d)", s.crashes, s.Limit)
		}
		s.Made = append(s.Made, Restart{call, at, cause.Error()})
		from := "its first call"
		if s.saved {
			from = fmt.Sprintf("its state at t = %.12g s", s.time)
		}
		r.Say(fmt.Sprintf("its %s in %s at t = %.12g s: %v; it continues in a new process from %s%s", what, call, at, cause, from, count))
		failed := r.replay()
		if failed == nil {
			return nil
		}
		if _, ended, _ := r.Ended(failed); !ended {
			return fmt.Errorf("%w; it cannot continue in a new process: %w", cause, failed)
		}
		cause, call, at = failed, "a repeated call after a restart", s.time
	}
}

// replay starts a new process and restores the instance there to its state before the failed
// request. Log messages of the FMU are repeated ones meanwhile.
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
	if _, err := r.begin(); err != nil {
		return err
	}
	var m wireWriter
	m.word(askDefine)
	m.word(s.records)
	if _, err := call(r.link, append(m, s.defined...)); err != nil {
		return err
	}
	err = r.play(&s.birth)
	if err == nil && s.saved {
		err = r.putBack(s.state)
	}
	if err != nil {
		return err
	}
	return r.play(&s.since)
}

var errOtherway = errors.New("the FMU behaves differently there")

// mostPlay is the number of bytes after which no further request is repeated by the same message.
const mostPlay = 1 << 18

// play repeats the requests of a tape.
func (r *Client) play(t *tape) error {
	left, outcomes := wireReader{rest: t.data}, t.outcomes
	for len(outcomes) > 0 {
		next := left
		for next.raw(next.word()); len(next.rest) > 0 && len(left.rest)-len(next.rest) < mostPlay; {
			next.raw(next.word())
		}
		var m wireWriter
		m.word(askPlay)
		answer, err := call(r.link, append(m, left.rest[:len(left.rest)-len(next.rest)]...))
		if err != nil {
			return err
		}
		a := wireReader{rest: answer}
		for more := true; more; more = len(a.rest) > 0 { // at least one outcome
			switch outcome := a.word(); {
			case a.bad || len(outcomes) == 0:
				return ErrWire
			case outcome != outcomes[0]:
				return errOtherway
			}
			left.raw(left.word())
			outcomes = outcomes[1:]
		}
	}
	return nil
}

// putBack sets a serialised state.
func (r *Client) putBack(state []byte) error {
	r.states++
	id := r.states
	for _, f := range []capi.Function{capi.DeSerializeFMUState, capi.SetFMUState, capi.FreeFMUState} {
		m := wireWriter(nil)
		m.word(askRun)
		m.word(1)
		m.word(uint64(f|r.API) | wireDefines)
		if f == capi.DeSerializeFMUState {
			m.word(uint64(len(state)))
			m.raw(state)
		}
		m.word(id)
		answer, err := call(r.link, m)
		if err != nil {
			return err
		}
		a := wireReader{rest: answer}
		if outcome := a.word(); a.bad || outcome != 1 {
			return errors.New("the FMU does not accept its serialised state (canSerializeFMUstate)")
		}
	}
	return nil
}

// define stores the constant arguments of a record that the host keeps.
func (s *restart) define(fixed []byte) {
	if s.Replaceable() {
		s.defined = append(s.defined, fixed...)
		s.records++
	}
}
