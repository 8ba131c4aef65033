package fmi

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// FMUState is a saved state of an instance. It is valid as long as the instance.
type FMUState struct {
	in     *Instance
	handle uintptr // fmi2FMUstate
	state  State   // of the instance, restored by SetFMUState (checklist fmi2 58)
	setup  bool
	time   float64 // s
	epoch  int     // number of calls of Keep before
	lost   bool    // its process has ended
	schedule
}

// owned checks that f can be called with s.
func (in *Instance) owned(f capi.Function, s *FMUState) error {
	switch {
	case s == nil || s.in == nil:
		return in.argument(f, "the state is nil or freed")
	case s.in != in:
		return in.argument(f, "the state is of instance %s", s.in.name)
	case s.lost && f != capi.GetFMUState && f != capi.FreeFMUState:
		return in.argument(f, "the state was lost with the process of the instance")
	}
	return nil
}

// GetFMUState saves the state. It overwrites and returns reuse, a state of the same
// instance, or makes a new one if reuse is nil. FreeFMUState or Free frees states.
func (in *Instance) GetFMUState(reuse *FMUState) (*FMUState, error) {
	if err := in.prepareGet(reuse); err != nil {
		return nil, err
	}
	if err := in.call(capi.GetFMUState); err != nil {
		return nil, err
	}
	return in.saved(reuse), nil
}

func (in *Instance) prepareGet(reuse *FMUState) error {
	const f = capi.GetFMUState
	if err := in.begin(f); err != nil {
		return err
	}
	*in.handle = 0
	if reuse != nil {
		if err := in.owned(f, reuse); err != nil {
			return err
		}
		*in.handle = reuse.handle
	}
	in.prepare(f, in.comp, in.handleAddress())
	return nil
}

// saved returns the state that the FMU has just saved.
func (in *Instance) saved(s *FMUState) *FMUState {
	if s == nil {
		s = &FMUState{in: in}
		in.states = append(in.states, s)
	}
	s.handle, s.state, s.setup, s.time = *in.handle, in.state, in.setup, in.time
	s.epoch, s.lost = in.remote.epoch(), false
	if in.events != nil {
		s.schedule = in.events.clone()
	}
	return s
}

func (in *Instance) handleAddress() uintptr { return native.AddressOf(in.handle) }

// SetFMUState restores a saved state, which remains valid, and the State of the instance at that time. It
// is also legal in StateError and StateStepCanceled.
func (in *Instance) SetFMUState(s *FMUState) error {
	if err := in.prepareSet(s); err != nil {
		return err
	}
	if err := in.call(capi.SetFMUState); err != nil {
		return err
	}
	in.restored(s)
	return nil
}

func (in *Instance) prepareSet(s *FMUState) error {
	const f = capi.SetFMUState
	if err := in.begin(f); err != nil {
		return err
	}
	if err := in.owned(f, s); err != nil {
		return err
	}
	in.prepare(f, in.comp, s.handle)
	return nil
}

func (in *Instance) restored(s *FMUState) {
	in.state, in.setup, in.time = s.state, s.setup, s.time
	if in.events != nil {
		in.events.schedule = s.clone()
	}
	if s.epoch < in.remote.epoch() {
		in.remote.Forget()
	}
}

// FreeFMUState frees a saved state, which must not be used afterwards, not even after
// an error. It ignores nil and freed states.
func (in *Instance) FreeFMUState(s *FMUState) error {
	const f = capi.FreeFMUState
	if s == nil || s.in == nil {
		return nil
	}
	if err := in.begin(f); err != nil {
		return err
	}
	if err := in.owned(f, s); err != nil {
		return err
	}
	*in.handle = s.handle
	in.prepare(f, in.comp, in.handleAddress())
	if k := slices.Index(in.states, s); k >= 0 {
		in.states = slices.Delete(in.states, k, k+1)
	}
	lost := s.lost
	s.in, s.handle = nil, 0
	if lost {
		return nil
	}
	return in.call(f)
}

// A serialised state consists of a header of eight bytes, the bytes of the FMU, in event mode the schedule, and the
// size of that in four bytes. The header is a mark of four bytes, its version, the State, whether SetupExperiment was
// called, and 0.
const (
	stateHeader  = 8
	scheduleSize = 4
)

var stateMark = [5]byte{'M', 'F', 'S', '2', 2}

// SerializeFMUState appends the bytes of a saved state to buf, for DeserializeFMUState
// of any instance of the FMU. Some FMUs accept them only in the same process
// (checklist fmi2 59).
func (in *Instance) SerializeFMUState(s *FMUState, buf []byte) ([]byte, error) {
	if err := in.begin(capi.SerializeFMUState); err != nil {
		return buf, err
	}
	if err := in.begin(capi.SerializedFMUStateSize); err != nil {
		return buf, err
	}
	if err := in.owned(capi.SerializeFMUState, s); err != nil {
		return buf, err
	}
	*in.size = 0
	in.prepare(capi.SerializedFMUStateSize, in.comp, s.handle, native.AddressOf(in.size))
	if err := in.call(capi.SerializedFMUStateSize); err != nil {
		return buf, err
	}
	size := *in.size
	if size > capi.MaxState {
		return buf, in.argument(capi.SerializedFMUStateSize,
			"the FMU returned %d bytes as the size of its state, more than the limit of %d", size, uint64(capi.MaxState))
	}
	b, err := native.BufferSlice[byte](&in.valBuf, int(size))
	if err != nil {
		return buf, in.argument(capi.SerializeFMUState, "%v", err)
	}
	in.prepare(capi.SerializeFMUState, in.comp, s.handle, native.Address(b), size)
	if err := in.call(capi.SerializeFMUState); err != nil {
		return buf, err
	}
	buf = append(buf, stateMark[:]...)
	buf = append(buf, byte(s.state), byte(flag(s.setup)), 0)
	buf = append(buf, b...)
	end := len(buf)
	if in.events != nil {
		buf = s.schedule.appendTo(buf)
	}
	return binary.LittleEndian.AppendUint32(buf, uint32(len(buf)-end)), nil
}

// stateParts returns the bytes of the FMU and the schedule of a serialised state.
func stateParts(data []byte) (body, planned []byte) {
	rest := data[stateHeader : len(data)-scheduleSize]
	n := min(len(rest), int(binary.LittleEndian.Uint32(data[len(data)-scheduleSize:])))
	return rest[:len(rest)-n], rest[len(rest)-n:]
}

// DeserializeFMUState makes a saved state from the bytes of SerializeFMUState, also of
// another instance of the same FMU.
func (in *Instance) DeserializeFMUState(data []byte) (*FMUState, error) {
	const f = capi.DeSerializeFMUState
	if err := in.begin(f); err != nil {
		return nil, err
	}
	if len(data) < stateHeader+scheduleSize || [5]byte(data[:5]) != stateMark || State(data[5]) >= StateFatal {
		return nil, in.argument(f, "the %d bytes are not a state from SerializeFMUState", len(data))
	}
	body, planned := stateParts(data)
	s := &FMUState{in: in, state: State(data[5]), setup: data[6] != 0, time: in.time, epoch: in.remote.epoch()}
	if v := in.events; v != nil && (s.parse(planned) != nil ||
		s.state > StateInitialization && len(s.Clock) != len(v.clocks)) {
		return nil, in.argument(f, "the %d bytes are not a state of an instance in event mode", len(data))
	}
	b, err := native.BufferSlice[byte](&in.valBuf, len(body))
	if err != nil {
		return nil, in.argument(f, "%v", err)
	}
	copy(b, body)
	*in.handle = 0
	in.prepare(f, in.comp, native.Address(b), uintptr(len(body)), in.handleAddress())
	if err := in.call(f); err != nil {
		return nil, err
	}
	s.handle = *in.handle
	in.states = append(in.states, s)
	return s, nil
}

// String returns the instance and its State.
func (s *FMUState) String() string {
	if s == nil || s.in == nil {
		return "freed state"
	}
	return fmt.Sprintf("state of %s, %s", s.in.name, s.state)
}
