package fmuslave

import (
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

var (
	_ master.StateSerializer = (*Slave)(nil)
	_ master.Archiver        = (*Slave)(nil)
	_ master.Restarter       = (*Slave)(nil)
)

// Keep stores the present state for a restart in another process.
func (s *Slave) Keep() error {
	if err := s.settle(); err != nil {
		return err
	}
	return s.instance.Keep()
}

// Restarts lists the processes of the FMU that ended and were replaced.
func (s *Slave) Restarts() []master.Restart {
	if s.instance == nil {
		return nil
	}
	var out []master.Restart
	for _, r := range s.instance.Restarts() {
		out = append(out, master.Restart{Time: r.Time, Call: r.Func, Cause: r.Cause})
	}
	return out
}

// SerializeState returns the bytes of a saved state (fmi2 59).
func (s *Slave) SerializeState(state master.State) ([]byte, error) {
	return s.instance.SerializeFMUState(state.(*fmi.FMUState), nil)
}

// DeserializeState returns a state from such bytes.
func (s *Slave) DeserializeState(data []byte) (master.State, error) {
	state, err := s.instance.DeserializeFMUState(data)
	if err != nil {
		return nil, err
	}
	return state, nil
}

// Archive carries the state of the slave beyond that of the FMU, which was just restored.
func (s *Slave) Archive(a *master.Archive) {
	a.All(s.stepper.RealIn, s.stepper.IntegerIn, s.stepper.BooleanIn, s.stepper.Derivatives, &s.slaveState)
}
